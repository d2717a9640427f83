// SPDX-License-Identifier: GPL-2.0
/*
 * Let each allocation and each copy of a query fail once: the error is a clean
 * one, and the next query works.
 */
#include <sys/mman.h>

#include "procmap-fail.h"

/* No query has as many places that can fail. */
#define FAULTS_MAX	200

FIXTURE(fault)
{
	struct injection injection;
	char *dir;
	char path[PATH_MAX];
	void *map;
	int maps;
	int file;
	int fds;
};

FIXTURE_VARIANT(fault)
{
	/* Length of the path of the mapped file with its NUL, 0 for none. */
	size_t path_size;
	bool want_build_id;
	/* Nothing of the file is in memory. */
	bool evicted;
	/* The query allocates memory by itself. */
	bool allocates;
};

FIXTURE_VARIANT_ADD(fault, fields) {
	.allocates = false,
};

FIXTURE_VARIANT_ADD(fault, short_path) {
	.path_size = 100,
	.allocates = false,
};

FIXTURE_VARIANT_ADD(fault, long_path) {
	.path_size = 300,
	.allocates = true,
};

FIXTURE_VARIANT_ADD(fault, longest_path) {
	.path_size = PATH_MAX,
	.allocates = true,
};

FIXTURE_VARIANT_ADD(fault, build_id) {
	.want_build_id = true,
	.allocates = false,
};

FIXTURE_VARIANT_ADD(fault, evicted_build_id) {
	.want_build_id = true,
	.evicted = true,
	.allocates = true,
};

/* A file of one page whose path has @size bytes with the NUL. */
static int make_file(char path[PATH_MAX], size_t size)
{
	size_t len = strlen(path);

	while (size - 1 - len > NAME_MAX) {
		path[len] = '/';
		memset(path + len + 1, 'd', 100);
		len += 101;
		path[len] = '\0';
		if (mkdir(path, 0700))
			return -1;
	}
	path[len] = '/';
	memset(path + len + 1, 'f', size - 2 - len);
	path[size - 1] = '\0';
	return open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
}

static void remove_file(char path[PATH_MAX], size_t dir_len)
{
	unlink(path);
	while (strlen(path) > dir_len) {
		*strrchr(path, '/') = '\0';
		rmdir(path);
	}
}

FIXTURE_SETUP(fault)
{
	char dir[] = "/tmp/procmap-fault-XXXXXX";
	const char *missing = open_injection(&self->injection);

	if (!missing && variant->want_build_id)
		missing = open_evictable(&self->file);
	if (missing)
		SKIP_SETUP(missing);

	ASSERT_TRUE(!!mkdtemp(dir));
	self->dir = strdup(dir);
	strcpy(self->path, self->dir);
	if (!variant->want_build_id)
		self->file = make_file(self->path, variant->path_size ?: 100);
	ASSERT_LE(0, self->file);
	self->map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, self->file, 0);
	ASSERT_TRUE(self->map != MAP_FAILED);
	self->maps = open_maps(0);
	ASSERT_LE(0, self->maps);

	ASSERT_TRUE(let_everything_fail());
	/* Slabs take pages when they need some, which the tests cannot foresee. */
	if (!variant->evicted)
		ASSERT_TRUE(set(PAGE_WAIT, "Y"));
	self->fds = count_fds();
}

FIXTURE_TEARDOWN(fault)
{
	EXPECT_TRUE(restore_settings(&self->injection));
	munmap(self->map, 4096);
	if (!variant->want_build_id)
		remove_file(self->path, strlen(self->dir));
	rmdir(self->dir);
	free(self->dir);
}

/* What a query of the fixture's kind returns. */
struct answer {
	int err;
	/* There was a place to fail, and it did. */
	bool failed;
	unsigned int name_size;
	unsigned int build_id_size;
	char name[PATH_MAX];
	unsigned char build_id[20];
};

static void query_failing_at(unsigned int nth, struct answer *answer,
			     const struct _test_data_fault *self,
			     const struct _fixture_variant_fault *variant)
{
	struct procmap_query query = {
		.size = sizeof(query),
		.query_addr = (uintptr_t)self->map,
	};

	memset(answer, 0, sizeof(*answer));
	if (variant->path_size) {
		query.vma_name_addr = (uintptr_t)answer->name;
		query.vma_name_size = sizeof(answer->name);
	}
	if (variant->want_build_id) {
		query.build_id_addr = (uintptr_t)answer->build_id;
		query.build_id_size = sizeof(answer->build_id);
	}
	if (variant->evicted)
		posix_fadvise(self->file, 0, 0, POSIX_FADV_DONTNEED);

	if (!arm(self->injection.fail_nth, nth))
		abort();
	answer->err = procmap_query(self->maps, &query);
	answer->failed = disarm(self->injection.fail_nth);
	answer->name_size = query.vma_name_size;
	answer->build_id_size = query.build_id_size;
}

/* How many queries ended in EFAULT, in anything else, and in ENOMEM. */
struct outcomes {
	int copies;
	int others;
	int no_memory;
};

/*
 * Let the first place fail, then the second, and so on. An allocation that only
 * some queries make shifts the places after it, so a place can be hit twice or
 * not at all.
 */
static void fail_each_place(struct __test_metadata *const _metadata,
			    const struct _test_data_fault *self,
			    const struct _fixture_variant_fault *variant,
			    struct outcomes *outcomes)
{
	static struct answer good, answer;
	int nth;

	memset(outcomes, 0, sizeof(*outcomes));
	query_failing_at(0, &good, self, variant);
	ASSERT_EQ(0, good.err);
	ASSERT_EQ(variant->want_build_id, good.build_id_size > 0);
	if (variant->path_size)
		ASSERT_STREQ(self->path, good.name);

	for (nth = 1; nth < FAULTS_MAX; nth++) {
		query_failing_at(nth, &answer, self, variant);
		if (!answer.failed)
			break;
		if (answer.err == -EFAULT)
			outcomes->copies++;
		else
			outcomes->others++;
		if (answer.err == -ENOMEM)
			outcomes->no_memory++;
		/* A build ID that cannot be read is no error. */
		if (variant->want_build_id && answer.err != -EFAULT)
			EXPECT_EQ(0, answer.err);
		/* Some allocations are not needed: then the answer is the same. */
		if (!answer.err && answer.build_id_size == good.build_id_size)
			EXPECT_EQ(0, memcmp(&good.name, &answer.name,
					    sizeof(good.name)));

		query_failing_at(0, &answer, self, variant);
		EXPECT_EQ(0, memcmp(&good, &answer, sizeof(good)));
	}
	EXPECT_GT(FAULTS_MAX, nth);
	EXPECT_EQ(0, answer.err);
	EXPECT_EQ(self->fds, count_fds());
}

/* A copy that fails is EFAULT, whichever it is. */
TEST_F(fault, each_copy_can_fail)
{
	const bool is_long = variant->path_size || variant->want_build_id;
	struct outcomes outcomes;

	ASSERT_TRUE(let_only_copies_fail());
	fail_each_place(_metadata, self, variant, &outcomes);
	/* The structure in, the name or the build ID out, the structure out. */
	EXPECT_EQ(is_long ? 3 : 2, outcomes.copies);
	/* Reading a page takes memory from pools, which cannot run out. */
	if (!variant->evicted)
		EXPECT_EQ(0, outcomes.others);
}

/* Without memory for the path, ENOMEM; without memory for the build ID, none. */
TEST_F(fault, each_allocation_can_fail)
{
	struct outcomes outcomes;

	fail_each_place(_metadata, self, variant, &outcomes);
	EXPECT_EQ(variant->allocates, outcomes.others > 0);
	EXPECT_EQ(variant->allocates && variant->path_size,
		  outcomes.no_memory > 0);
}

TEST_HARNESS_MAIN
