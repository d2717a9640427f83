// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY returns the name of every kind of mapping as the text of the same
 * file shows it.
 */
#include <linux/prctl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/shm.h>

#include "../kselftest_harness.h"
#include "procmap_util.h"

#define DELETED		" (deleted)"

/* The longest name that prctl(PR_SET_VMA) takes. */
#define ANON_NAME_MAX	79

static void *map_file(int fd, int flags)
{
	return mmap(NULL, page_size(), PROT_READ, flags, fd, 0);
}

static void *map_anonymous(int flags)
{
	return mmap(NULL, page_size(), PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

/* Create a file and map it, and let the mapping be all that holds it. */
static void *map_new_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *const addr = ftruncate(fd, page_size()) ? MAP_FAILED :
							map_file(fd, MAP_PRIVATE);

	close(fd);
	return addr;
}

/*
 * The mapping at @addr has one name, by the ioctl and in the text of @fd: @name, or any if
 * that is NULL. The buffer is not on the stack: it must not grow meanwhile.
 */
static void expect_name_in(struct __test_metadata *const _metadata, int fd,
			   const void *addr, const char *name)
{
	static char seen[PATH_MAX];
	const struct maps_line *line;
	struct procmap_query query;
	struct maps maps;

	seen[0] = '\0';
	ASSERT_NE(MAP_FAILED, addr);
	ASSERT_EQ(0, query_name(fd, (uintptr_t)addr, &query, seen, sizeof(seen)));
	if (name)
		EXPECT_STREQ(name, seen);
	EXPECT_EQ(*seen ? strlen(seen) + 1 : 0, query.vma_name_size);
	ASSERT_EQ(0, read_maps(fd, &maps));
	line = line_at(&maps, (uintptr_t)addr);
	ASSERT_TRUE(!!line);
	EXPECT_TRUE(is_name(line, seen)) {
		TH_LOG("%s instead of %s", seen, line->name);
	}
	/* The heap may have grown since. */
	EXPECT_EQ(line->start, query.vma_start);
	free_maps(&maps);
}

static void expect_name(struct __test_metadata *const _metadata, const void *addr,
			const char *name)
{
	const int fd = open_maps(0);

	expect_name_in(_metadata, fd, addr, name);
	close(fd);
}

TEST(heap)
{
	ASSERT_TRUE(sbrk(page_size()) != (void *)-1);
	expect_name(_metadata, (uint8_t *)sbrk(0) - 1, "[heap]");
}

TEST(stack)
{
	int local;

	expect_name(_metadata, &local, "[stack]");
}

TEST(vdso)
{
	const uintptr_t addr = getauxval(AT_SYSINFO_EHDR);

	if (!addr)
		SKIP(return, "this process has no [vdso]");
	expect_name(_metadata, (void *)addr, "[vdso]");
}

TEST(memfd)
{
	char longest[250] = "", shown[300];
	const char *const names[] = { "x", "a\nb", longest };
	unsigned int i;
	int fd;

	memset(longest, 'n', sizeof(longest) - 1);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		fd = memfd_create(names[i], MFD_CLOEXEC);
		ASSERT_LE(0, fd);
		sprintf(shown, "/memfd:%s" DELETED, names[i]);
		expect_name(_metadata, map_file(fd, MAP_SHARED), shown);
		expect_name(_metadata, map_file(fd, MAP_PRIVATE), shown);
	}
}

TEST(sysv_shared_memory)
{
	const int id = shmget(IPC_PRIVATE, page_size(), IPC_CREAT | 0600);
	void *addr;

	if (id < 0)
		SKIP(return, "no System V shared memory, CONFIG_SYSVIPC");
	addr = shmat(id, NULL, 0);
	EXPECT_EQ(0, shmctl(id, IPC_RMID, NULL));
	expect_name(_metadata, addr, "/SYSV00000000" DELETED);
}

TEST(device)
{
	const int fd = open("/dev/zero", O_RDONLY);

	if (fd < 0)
		SKIP(return, "no zero device");
	expect_name(_metadata, map_file(fd, MAP_PRIVATE), "/dev/zero");
}

/* Memory with a name that the process gave it. */
FIXTURE(anon_name)
{
	void *addr;
	char name[ANON_NAME_MAX + 1];
	char shown[sizeof("[anon:]") + ANON_NAME_MAX];
};

FIXTURE_VARIANT(anon_name)
{
	size_t length;
};

FIXTURE_VARIANT_ADD(anon_name, empty) { .length = 0 };
FIXTURE_VARIANT_ADD(anon_name, longest) { .length = ANON_NAME_MAX };

/* Give memory a name. Returns 0 or -errno. */
static int set_name(void *addr, const char *name)
{
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, page_size(), name) ? -errno : 0;
}

FIXTURE_SETUP(anon_name)
{
	size_t i;
	int err;

	for (i = 0; i < variant->length; i++)
		self->name[i] = "name and :"[i % 10];
	sprintf(self->shown, "[anon:%s]", self->name);
	self->addr = map_anonymous(MAP_PRIVATE);
	ASSERT_NE(MAP_FAILED, self->addr);
	err = set_name(self->addr, self->name);
	if (err == -EINVAL)
		SKIP_SETUP("memory has no names, CONFIG_ANON_VMA_NAME");
	ASSERT_EQ(0, err);
}

FIXTURE_TEARDOWN(anon_name)
{
}

TEST_F(anon_name, is_shown)
{
	expect_name(_metadata, self->addr, self->shown);
}

TEST_F(anon_name, fits_its_buffer_to_the_byte)
{
	const size_t length = strlen(self->shown);
	const uint64_t addr = (uintptr_t)self->addr;
	struct procmap_query query;
	const int fd = open_maps(0);
	char name[100];

	ASSERT_EQ(0, query_name(fd, addr, &query, name, length + 1));
	EXPECT_STREQ(self->shown, name);
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, addr, &query, name, length));
}

/* But for shared memory, since Linux 6.2. */
TEST_F(anon_name, is_not_for_a_file)
{
	void *const addr = map_file(memfd_create("file", MFD_CLOEXEC), MAP_PRIVATE);
	char shown[100];
	int err;

	ASSERT_NE(MAP_FAILED, addr);
	err = set_name(addr, self->name);
	if (err)
		EXPECT_EQ(-EBADF, err);
	snprintf(shown, sizeof(shown), "[anon_shmem:%s]", self->name);
	expect_name(_metadata, addr, err ? "/memfd:file" DELETED : shown);
}

/* Files in a directory of its own, where the process works. */
FIXTURE(file)
{
	char directory[64];
};

FIXTURE_SETUP(file)
{
	ASSERT_TRUE(make_directory(self->directory));
}

FIXTURE_TEARDOWN(file)
{
	EXPECT_TRUE(remove_directory(self->directory));
}

/* The text is the same for a newline and for a path with its escape. */
TEST_F(file, is_told_byte_for_byte)
{
	char all[256] = " ", path[PATH_MAX];
	const char *const names[] = {
		"plain", "a\nb\n", "a\\b\\", "a\\012b", "a\nb", "file" DELETED, all,
	};
	unsigned int i;

	for (i = 1; i < 255; i++)
		all[i] = i == '/' ? ' ' : (char)i;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", self->directory, names[i]);
		expect_name(_metadata, map_new_file(names[i]), path);
	}
}

/*
 * A path is shown as the reader sees it, from the root directory that the reader has at
 * that moment: neither the opener's nor the target's root counts. A file that is not below
 * it is shown from the root of all mounts, which may be another one than that of this test.
 */
TEST_F(file, is_seen_from_the_root_directory_of_the_reader)
{
	const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int fd = open_maps(0);
	void *outside, *inside;
	char path[PATH_MAX];

	ASSERT_EQ(0, mkdir("root", 0700));
	outside = map_new_file("outside");
	inside = map_new_file("root/inside");
	snprintf(path, sizeof(path), "%s/root/inside", self->directory);
	expect_name_in(_metadata, fd, inside, path);

	if (chroot("root"))
		SKIP(return, "only root can change its root directory");
	expect_name_in(_metadata, fd, inside, "/inside");
	expect_name_in(_metadata, fd, outside, NULL);
	/* Back again: the teardown needs the whole path. */
	ASSERT_EQ(0, fchdir(root));
	ASSERT_EQ(0, chroot("."));
}

/* A path of a given length, made of directories with long names. */
FIXTURE(path)
{
	char directory[64];
	void *addr;
	int fd;
	char shown[3 * PATH_MAX + 16];
};

FIXTURE_VARIANT(path)
{
	size_t length;		/* of the name that is shown */
	bool deleted;
};

FIXTURE_VARIANT_ADD(path, of_255_bytes) { .length = 255 };
FIXTURE_VARIANT_ADD(path, of_256_bytes) { .length = 256 };
FIXTURE_VARIANT_ADD(path, of_path_max) { .length = PATH_MAX - 1 };
FIXTURE_VARIANT_ADD(path, over_path_max) { .length = PATH_MAX };
FIXTURE_VARIANT_ADD(path, far_over_path_max) { .length = 3 * PATH_MAX };
FIXTURE_VARIANT_ADD(path, deleted_of_path_max) { .length = PATH_MAX - 1, .deleted = true };
FIXTURE_VARIANT_ADD(path, deleted_over_path_max) { .length = PATH_MAX, .deleted = true };

FIXTURE_SETUP(path)
{
	const size_t suffix = variant->deleted ? strlen(DELETED) : 0;

	ASSERT_TRUE(make_directory(self->directory));
	strcpy(self->shown, self->directory);
	self->addr = map_file(make_long_path(self->shown, variant->length - suffix),
			      MAP_PRIVATE);
	ASSERT_NE(MAP_FAILED, self->addr);
	if (variant->deleted) {
		ASSERT_EQ(0, unlink(strrchr(self->shown, '/') + 1));
		strcat(self->shown, DELETED);
	}
	ASSERT_EQ(variant->length, strlen(self->shown));
	self->fd = open_maps(0);
}

FIXTURE_TEARDOWN(path)
{
	close(self->fd);
	EXPECT_TRUE(remove_directory(self->directory));
}

TEST_F(path, is_told_up_to_path_max)
{
	static const size_t sizes[] = { PATH_MAX, 2 * PATH_MAX };
	struct procmap_query query;
	char name[2 * PATH_MAX];
	unsigned int i;

	if (variant->length < PATH_MAX)
		return expect_name(_metadata, self->addr, self->shown);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(-ENAMETOOLONG, query_name(self->fd, (uintptr_t)self->addr, &query,
						    name, sizes[i]));
}

TEST_F(path, fits_its_buffer_to_the_byte)
{
	const uint64_t addr = (uintptr_t)self->addr;
	const size_t size = variant->length + 1;
	struct procmap_query query;
	char name[3 * PATH_MAX + 1];

	if (variant->length < PATH_MAX) {
		name[size] = 'x';
		ASSERT_EQ(0, query_name(self->fd, addr, &query, name, size));
		EXPECT_EQ(size, query.vma_name_size);
		EXPECT_STREQ(self->shown, name);
		EXPECT_EQ('x', name[size]);
	}
	EXPECT_EQ(-ENAMETOOLONG, query_name(self->fd, addr, &query, name, size - 1));
	EXPECT_EQ(-ENAMETOOLONG, query_name(self->fd, addr, &query, name, 1));
}

TEST_HARNESS_MAIN
