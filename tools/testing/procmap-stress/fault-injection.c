// SPDX-License-Identifier: GPL-2.0
/*
 * Let each allocation and each copy of PROCMAP_QUERY and PROCMAP_SCAN fail: errors are clean
 * ones, and the next call works.
 */
#include "kselftest_harness.h"
#include "stress_util.h"

#define DEBUGFS		"/sys/kernel/debug/"
#define SLAB_WAIT	DEBUGFS "failslab/ignore-gfp-wait"
#define PAGE_WAIT	DEBUGFS "fail_page_alloc/ignore-gfp-wait"
#define PAGE_ORDER	DEBUGFS "fail_page_alloc/min-order"

/* Let every allocation and every copy fail, by fail-nth alone: they may stay so. */
static const struct {
	const char *path;
	const char *value;
} settings[] = {
	{ SLAB_WAIT, "N" },
	{ PAGE_WAIT, "N" },
	{ PAGE_ORDER, "0" },
	{ DEBUGFS "failslab/verbose", "0" },
	{ DEBUGFS "failslab/task-filter", "Y" },
	{ DEBUGFS "failslab/probability", "0" },
	{ DEBUGFS "failslab/times", "-1" },
	{ DEBUGFS "fail_page_alloc/verbose", "0" },
	{ DEBUGFS "fail_page_alloc/task-filter", "Y" },
	{ DEBUGFS "fail_page_alloc/probability", "0" },
	{ DEBUGFS "fail_page_alloc/times", "-1" },
	{ DEBUGFS "fail_usercopy/verbose", "0" },
};

/* No call has as many places that can fail. */
#define FAULTS_MAX	200u

/* Memory of a call: its structure, and what it writes. */
#define VEC_SIZE	16384
#define CALL_SIZE	65536

FIXTURE(call)
{
	int fail_nth;
	int file;		/* to be evicted before each call, or -1 */
	int fd;
	unsigned long command;
	int ret;		/* of the last call, or -errno */
	int good_ret;		/* of one that does not fail */
	char *memory, *before, *good;
};

FIXTURE_VARIANT(call)
{
	unsigned long command;
	unsigned int nr;	/* mappings of the file */
	uint32_t vma_size;
	uint64_t want;		/* as of a scan */
	bool is_long;		/* the path needs a buffer of its own */
	bool evicted;		/* nothing of the file is in memory */
	bool allocates;		/* without that memory, there is no answer */
	int copies;		/* at the least; faults are not injected into single words */
};

FIXTURE_VARIANT_ADD(call, query_of_fields) { .command = PROCMAP_QUERY, .nr = 1 };

FIXTURE_VARIANT_ADD(call, query_of_short_path_and_build_id) {
	.command = PROCMAP_QUERY, .nr = 1, .want = SCAN_ALL, .copies = 2,
};

FIXTURE_VARIANT_ADD(call, query_of_long_path) {
	.command = PROCMAP_QUERY, .nr = 1, .want = PROCMAP_SCAN_NAMES, .is_long = true,
	.allocates = true, .copies = 1,
};

FIXTURE_VARIANT_ADD(call, query_of_evicted_build_id) {
	.command = PROCMAP_QUERY, .nr = 1, .want = PROCMAP_SCAN_BUILD_IDS, .evicted = true,
	.copies = 1,
};

/* More than a scan copies at once. */
FIXTURE_VARIANT_ADD(call, scan_of_all) {
	.command = PROCMAP_SCAN, .nr = 100, .vma_size = 72, .want = SCAN_ALL,
	.allocates = true, .copies = 4,
};

FIXTURE_VARIANT_ADD(call, scan_of_longer_records) {
	.command = PROCMAP_SCAN, .nr = 10, .vma_size = 80, .want = SCAN_ALL,
	.allocates = true, .copies = 4,
};

/* Returns NULL, or why no faults can be injected. */
static const char *set_up_injection(struct _test_data_call *self)
{
	unsigned int i;

	self->fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (self->fail_nth < 0)
		return "needs root and CONFIG_FAULT_INJECTION";
	for (i = 0; i < ARRAY_SIZE(settings); i++)
		if (!write_file(settings[i].path, settings[i].value))
			return "needs debugfs with failslab, fail_page_alloc and fail_usercopy";
	return NULL;
}

static bool arm(const struct _test_data_call *self, unsigned int nth)
{
	char text[16];
	const int len = sprintf(text, "%u", nth);

	return pwrite(self->fail_nth, text, len, 0) == len;
}

/*
 * Make a call whose nth place fails. Returns false if there is none. What disarms it can be
 * hit by the fault as well, but only once.
 */
static bool call_with_fault(struct _test_data_call *self, unsigned int nth)
{
	char text[16] = "";
	bool failed;

	memcpy(self->memory, self->before, CALL_SIZE);
	posix_fadvise(self->file, 0, 0, POSIX_FADV_DONTNEED);
	if (!arm(self, nth))
		abort();
	self->ret = ioctl(self->fd, self->command, self->memory);
	self->ret = self->ret < 0 ? -errno : self->ret;
	failed = pread(self->fail_nth, text, sizeof(text) - 1, 0) > 0 && !strcmp(text, "0\n");
	if (!arm(self, 0) && !arm(self, 0))
		abort();
	return failed;
}

/* Fill in the structure of a call. */
static void prepare(struct _test_data_call *self,
		    const struct _fixture_variant_call *variant)
{
	const uint64_t vec = (uintptr_t)self->memory + page_size(), data = vec + VEC_SIZE;
	const bool names = variant->want & PROCMAP_SCAN_NAMES;
	const bool ids = variant->want & PROCMAP_SCAN_BUILD_IDS;

	if (variant->command == PROCMAP_QUERY)
		*(struct procmap_query *)self->before = QUERY(.query_addr = AREA,
			.vma_name_addr = names ? vec : 0,
			.vma_name_size = names ? PATH_MAX : 0,
			.build_id_addr = ids ? data : 0,
			.build_id_size = ids ? PATH_MAX : 0);
	else
		*(struct procmap_scan_arg *)self->before = (struct procmap_scan_arg) {
			.size = sizeof(struct procmap_scan_arg),
			.want = variant->want,
			.start = AREA,
			.end = addr_of(variant->nr),
			.vec = vec,
			.vec_len = VEC_SIZE / variant->vma_size,
			.vma_size = variant->vma_size,
			.data = data,
			.data_size = CALL_SIZE - page_size() - VEC_SIZE,
		};
}

FIXTURE_SETUP(call)
{
	char path[PATH_MAX];
	const char *missing;
	unsigned int i;

	SKIP_WITHOUT_SCAN();
	missing = set_up_injection(self) ?:
		  (variant->evicted ? find_build_id_reader() ?: mount_scratch_ext4() :
				      mount_scratch());
	if (missing)
		SKIP_SETUP(missing);
	sprintf(path, "%s/%0*d", variant->evicted ? SCRATCH_DISK : SCRATCH,
		variant->is_long ? 250 : 10, 0);
	ASSERT_EQ(0, mkdir(path, 0700));
	strcat(path, "/a file");
	self->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	ASSERT_TRUE(write_elf(self->file, scene_id) && !fsync(self->file));
	/* Neighbours differ, or they would be merged. */
	for (i = 0; i < variant->nr; i++)
		ASSERT_TRUE(map_area(i, 1, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE,
				     self->file));
	if (!variant->evicted) {
		close(self->file);
		self->file = -1;
	}
	self->fd = open_maps(0);
	self->command = variant->command;
	self->memory = map_pages(CALL_SIZE);
	self->before = map_pages(CALL_SIZE);
	self->good = map_pages(CALL_SIZE);
	prepare(self, variant);

	/* Slabs take pages when they need some, which the tests cannot foresee. */
	if (!variant->evicted)
		ASSERT_TRUE(write_file(PAGE_WAIT, "Y"));
	call_with_fault(self, 0);
	ASSERT_EQ(variant->command == PROCMAP_QUERY ? 0 : (int)variant->nr, self->ret);
	self->good_ret = self->ret;
	memcpy(self->good, self->memory, CALL_SIZE);
}

/* The file system can be unmounted: no call has left a reference on its file. */
FIXTURE_TEARDOWN(call)
{
	EXPECT_EQ(0, munmap(page_at(0), variant->nr * page_size()));
	close(self->file);
	EXPECT_EQ(0, umount2(variant->evicted ? SCRATCH_DISK : SCRATCH, 0));
}

/* Calls that failed, by error, and calls that did without a build ID. */
struct outcomes {
	int copies;
	int no_memory;
	int no_build_id;
};

static bool is_good(const struct _test_data_call *self)
{
	return self->ret == self->good_ret && !memcmp(self->good, self->memory, CALL_SIZE);
}

/*
 * Let the first place fail, then the second, and so on; each time, the next call is right.
 * An allocation that only some calls make shifts the places after it, so a place can be hit
 * twice or not at all.
 */
static struct outcomes fail_each_place(struct __test_metadata *const _metadata,
				       struct _test_data_call *self)
{
	const struct procmap_query *const query = (void *)self->memory;
	struct outcomes outcomes = {};
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX && call_with_fault(self, nth); nth++) {
		if (self->ret == -EFAULT)
			outcomes.copies++;
		else if (self->ret == -ENOMEM)
			outcomes.no_memory++;
		else if (self->file >= 0 && !self->ret && !query->build_id_size)
			outcomes.no_build_id++;
		else
			EXPECT_TRUE(is_good(self))
				TH_LOG("place %u: %d", nth, self->ret);
		call_with_fault(self, 0);
		EXPECT_TRUE(is_good(self))
			TH_LOG("after place %u: %d", nth, self->ret);
	}
	EXPECT_NE(FAULTS_MAX, nth);
	return outcomes;
}

/* A copy that fails is EFAULT, however many records there are already. */
TEST_F_TIMEOUT(call, with_a_copy_that_fails_is_efault, LONG_TIMEOUT)
{
	struct outcomes outcomes;

	ASSERT_TRUE(write_file(SLAB_WAIT, "Y"));
	ASSERT_TRUE(write_file(PAGE_ORDER, "10"));
	outcomes = fail_each_place(_metadata, self);
	EXPECT_LE(variant->copies, outcomes.copies);
	EXPECT_EQ(0, outcomes.no_memory);
}

/* But for a build ID, which is then none. */
TEST_F_TIMEOUT(call, with_an_allocation_that_fails_is_enomem, LONG_TIMEOUT)
{
	const struct outcomes outcomes = fail_each_place(_metadata, self);

	EXPECT_EQ(variant->allocates, outcomes.no_memory > 0);
	EXPECT_EQ(variant->evicted, outcomes.no_build_id > 0);
}

TEST_HARNESS_MAIN
