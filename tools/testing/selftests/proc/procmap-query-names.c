// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY returns the name of every kind of mapping as the text
 * of the same file shows it, and that maps and smaps show the same mappings.
 */
#include <dirent.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "../kselftest_harness.h"
#include "procmap-huge.h"
#include "procmap-query.h"

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA

#define ADDRESS_OF_VSYSCALL	0xffffffffff600000

#define DELETED		" (deleted)"

/* The longest name that prctl(PR_SET_VMA) takes. */
#define ANON_NAME_MAX	79

#ifndef PR_SET_VMA
#define PR_SET_VMA		0x53564d41
#define PR_SET_VMA_ANON_NAME	0
#endif

/* Every byte of a path as an escape, and then some. */
#define ESCAPED_MAX	(4 * PATH_MAX + 16)

static void *map_file(int fd, int flags)
{
	return mmap(NULL, page_size(), PROT_READ, flags, fd, 0);
}

static void *map_anonymous(int flags)
{
	return mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
		    flags | MAP_ANONYMOUS, -1, 0);
}

/* Create a file and map it, and let the mapping be all that holds it. */
static void *map_new_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *addr;

	if (fd < 0)
		return MAP_FAILED;
	addr = map_file(fd, MAP_PRIVATE);
	close(fd);
	return addr;
}

/*
 * What covers @addr has one name, by the ioctl and in the text of @fd: @name, or
 * any if that is NULL.
 */
static void expect_name_in(struct __test_metadata *const _metadata, int fd,
			   const void *addr, const char *name)
{
	char seen[PATH_MAX] = "", escaped[ESCAPED_MAX];
	const struct maps_line *line;
	struct procmap_query query;
	struct maps maps;

	ASSERT_TRUE(addr != MAP_FAILED);
	ASSERT_EQ(0, query_name(fd, (uintptr_t)addr, 0, &query, seen,
				sizeof(seen)));
	if (name)
		EXPECT_STREQ(name, seen);
	EXPECT_EQ(*seen ? strlen(seen) + 1 : 0, query.vma_name_size);

	ASSERT_EQ(0, read_maps(fd, &maps));
	line = line_at(&maps, (uintptr_t)addr);
	ASSERT_TRUE(!!line);
	escape_name(seen, escaped, sizeof(escaped));
	EXPECT_STREQ(line->name, escaped);
	/* The heap may have grown since. */
	EXPECT_EQ(line->start, query.vma_start);
	free_maps(&maps);
}

static void expect_name(struct __test_metadata *const _metadata,
			const void *addr, const char *name)
{
	const int fd = open_maps(0);

	ASSERT_LE(0, fd);
	expect_name_in(_metadata, fd, addr, name);
	close(fd);
}

/* Find what the text calls @name, and see that the ioctl does, too. */
static bool expect_shown(struct __test_metadata *const _metadata,
			 const char *name)
{
	uint64_t start = 0;
	struct maps maps;
	size_t i;
	int fd;

	fd = open_maps(0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, read_maps(fd, &maps));
	for (i = 0; i < maps.nr; i++)
		if (!strcmp(maps.lines[i].name, name))
			start = maps.lines[i].start;
	free_maps(&maps);
	close(fd);
	if (!start)
		return false;
	expect_name(_metadata, (void *)(uintptr_t)start, name);
	return true;
}

/* Memory of the process itself. */
FIXTURE(memory)
{
	int fd;			/* the own maps file */
};

FIXTURE_SETUP(memory)
{
	self->fd = open_maps(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(memory)
{
	close(self->fd);
}

TEST_F(memory, private_anonymous_memory_has_no_name)
{
	expect_name(_metadata, map_anonymous(MAP_PRIVATE), "");
}

TEST_F(memory, heap)
{
	ASSERT_TRUE(sbrk(page_size()) != (void *)-1);
	expect_name(_metadata, (uint8_t *)sbrk(0) - 1, "[heap]");
	EXPECT_TRUE(expect_shown(_metadata, "[heap]"));
}

TEST_F(memory, stack)
{
	int local;

	expect_name(_metadata, &local, "[stack]");
	EXPECT_TRUE(expect_shown(_metadata, "[stack]"));
}

TEST_F(memory, vdso)
{
	if (!expect_shown(_metadata, "[vdso]"))
		SKIP(return, "this process has no [vdso]");
}

TEST_F(memory, vvar)
{
	if (!expect_shown(_metadata, "[vvar]"))
		SKIP(return, "this process has no [vvar]");
}

TEST_F(memory, vsyscall_page_is_no_mapping)
{
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, ADDRESS_OF_VSYSCALL, 0,
					&query));
	EXPECT_EQ(-ENOENT, query_fields(self->fd, ADDRESS_OF_VSYSCALL, NEXT,
					&query));
}

TEST_F(memory, shared_anonymous_memory_is_a_file)
{
	expect_name(_metadata, map_anonymous(MAP_SHARED), "/dev/zero" DELETED);
}

TEST_F(memory, memfd)
{
	const int fd = memfd_create("x", MFD_CLOEXEC);

	ASSERT_LE(0, fd);
	expect_name(_metadata, map_file(fd, MAP_SHARED), "/memfd:x" DELETED);
	expect_name(_metadata, map_file(fd, MAP_PRIVATE), "/memfd:x" DELETED);
}

/* The longest name that memfd_create(2) takes. */
TEST_F(memory, memfd_with_a_long_name)
{
	char name[250] = "", shown[300];
	int fd;

	memset(name, 'n', sizeof(name) - 1);
	fd = memfd_create(name, MFD_CLOEXEC);
	ASSERT_LE(0, fd);
	sprintf(shown, "/memfd:%s" DELETED, name);
	expect_name(_metadata, map_file(fd, MAP_SHARED), shown);
}

TEST_F(memory, memfd_with_a_newline_in_its_name)
{
	const int fd = memfd_create("a\nb", MFD_CLOEXEC);

	ASSERT_LE(0, fd);
	expect_name(_metadata, map_file(fd, MAP_SHARED),
		    "/memfd:a\nb" DELETED);
}

TEST_F(memory, sysv_shared_memory)
{
	const int id = shmget(IPC_PRIVATE, page_size(), IPC_CREAT | 0600);
	void *addr;

	if (id < 0)
		SKIP(return, "no System V shared memory, CONFIG_SYSVIPC");
	addr = shmat(id, NULL, 0);
	EXPECT_EQ(0, shmctl(id, IPC_RMID, NULL));
	expect_name(_metadata, addr, "/SYSV00000000" DELETED);
}

TEST_F(memory, posix_shared_memory)
{
	char path[64];
	void *addr;
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/procmap-query-%d", getpid());
	fd = shm_open(path + strlen("/dev/shm"), O_RDWR | O_CREAT | O_EXCL,
		      0600);
	if (fd < 0)
		SKIP(return, "no POSIX shared memory");
	addr = map_file(fd, MAP_SHARED);
	expect_name(_metadata, addr, path);
	EXPECT_EQ(0, shm_unlink(path + strlen("/dev/shm")));
	strcat(path, DELETED);
	expect_name(_metadata, addr, path);
}

TEST_F(memory, device)
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
	bool unsupported;
	char name[ANON_NAME_MAX + 1];
	char shown[sizeof("[anon:]") + ANON_NAME_MAX];
};

FIXTURE_VARIANT(anon_name)
{
	size_t length;
};

FIXTURE_VARIANT_ADD(anon_name, empty) {
	.length = 0,
};

FIXTURE_VARIANT_ADD(anon_name, one_byte) {
	.length = 1,
};

FIXTURE_VARIANT_ADD(anon_name, longest) {
	.length = ANON_NAME_MAX,
};

/* Give memory a name, or none. Returns 0 or -errno. */
static int set_name(void *addr, const char *name)
{
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, page_size(),
		     name) ? -errno : 0;
}

FIXTURE_SETUP(anon_name)
{
	size_t i;
	int err;

	for (i = 0; i < variant->length; i++)
		self->name[i] = "name and :"[i % 10];
	sprintf(self->shown, "[anon:%s]", self->name);
	self->addr = map_anonymous(MAP_PRIVATE);
	ASSERT_TRUE(self->addr != MAP_FAILED);
	err = set_name(self->addr, self->name);
	self->unsupported = err == -EINVAL;
	ASSERT_EQ(self->unsupported ? -EINVAL : 0, err);
}

FIXTURE_TEARDOWN(anon_name)
{
}

TEST_F(anon_name, is_shown)
{
	if (self->unsupported)
		SKIP(return, "memory has no names, CONFIG_ANON_VMA_NAME");
	expect_name(_metadata, self->addr, self->shown);
}

TEST_F(anon_name, can_be_taken_away)
{
	if (self->unsupported)
		SKIP(return, "memory has no names, CONFIG_ANON_VMA_NAME");
	ASSERT_EQ(0, set_name(self->addr, NULL));
	expect_name(_metadata, self->addr, "");
}

TEST_F(anon_name, fits_its_buffer_to_the_byte)
{
	const size_t length = strlen(self->shown);
	struct procmap_query query;
	const int fd = open_maps(0);
	char name[100];

	if (self->unsupported)
		SKIP(return, "memory has no names, CONFIG_ANON_VMA_NAME");
	ASSERT_EQ(0, query_name(fd, (uintptr_t)self->addr, 0, &query, name,
				length + 1));
	EXPECT_STREQ(self->shown, name);
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, length));
}

/* But for shared memory, since Linux 6.2. */
TEST_F(anon_name, is_not_for_a_file)
{
	void *const addr = map_file(memfd_create("file", MFD_CLOEXEC),
				    MAP_PRIVATE);
	char shown[100];
	int err;

	ASSERT_TRUE(addr != MAP_FAILED);
	err = set_name(addr, self->name);
	if (err)
		EXPECT_EQ(self->unsupported ? -EINVAL : -EBADF, err);
	snprintf(shown, sizeof(shown), "[anon_shmem:%s]", self->name);
	expect_name(_metadata, addr, err ? "/memfd:file" DELETED : shown);
}

FIXTURE(huge_page)
{
	struct huge_pool pool;
	void *addr;
};

FIXTURE_SETUP(huge_page)
{
	self->addr = MAP_FAILED;
	if (!add_huge_page(&self->pool))
		return;
	self->addr = mmap(NULL, HUGE_PAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
			  HUGE_PAGE_FLAG, -1, 0);
}

FIXTURE_TEARDOWN(huge_page)
{
	if (self->addr != MAP_FAILED)
		munmap(self->addr, HUGE_PAGE_SIZE);
	EXPECT_TRUE(remove_huge_page(&self->pool));
}

TEST_F(huge_page, name)
{
	if (self->addr == MAP_FAILED)
		SKIP(return, "no huge page is available");
	expect_name(_metadata, self->addr, "/anon_hugepage" DELETED);
	expect_name(_metadata, (uint8_t *)self->addr + HUGE_PAGE_SIZE - 1,
		    "/anon_hugepage" DELETED);
}

TEST_F(huge_page, page_size)
{
	struct procmap_query query;
	const int fd = open_maps(0);
	struct maps smaps;
	uint64_t *sizes;
	size_t i;

	if (self->addr == MAP_FAILED)
		SKIP(return, "no huge page is available");
	ASSERT_EQ(0, query_fields(fd, (uintptr_t)self->addr, 0, &query));
	EXPECT_EQ(HUGE_PAGE_SIZE, query.vma_page_size);
	ASSERT_EQ(0, read_smaps(0, &smaps, &sizes));
	for (i = 0; i < smaps.nr; i++)
		if (smaps.lines[i].start == (uintptr_t)self->addr)
			break;
	ASSERT_NE(smaps.nr, i);
	EXPECT_EQ(sizes[i], query.vma_page_size);
}

/* A directory of its own, where the process works. */
struct directory {
	int fd;
	char path[64];
};

static bool make_directory(struct directory *directory)
{
	char name[] = "/tmp/procmap-query.XXXXXX";

	if (!mkdtemp(name))
		return false;
	directory->fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* The path as the kernel shows it, whatever /tmp is. */
	return directory->fd >= 0 && !fchdir(directory->fd) &&
	       getcwd(directory->path, sizeof(directory->path));
}

static void remove_contents(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int below;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!unlinkat(fd, entry->d_name, 0))
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY);
		if (below >= 0)
			remove_contents(below);
		unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

static bool remove_directory(struct directory *directory)
{
	remove_contents(directory->fd);
	return !rmdir(directory->path);
}

/* Files by name. */
FIXTURE(file)
{
	struct directory directory;
};

FIXTURE_SETUP(file)
{
	ASSERT_TRUE(make_directory(&self->directory));
}

FIXTURE_TEARDOWN(file)
{
	EXPECT_TRUE(remove_directory(&self->directory));
}

/* A new file called @name shows as the directory's path, a slash and @name. */
static void expect_path(struct __test_metadata *const _metadata,
			const struct directory *directory, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory->path, name);
	expect_name(_metadata, map_new_file(name), path);
}

TEST_F(file, plain)
{
	expect_path(_metadata, &self->directory, "plain");
}

TEST_F(file, deleted)
{
	void *const addr = map_new_file("file");
	char path[PATH_MAX];

	ASSERT_EQ(0, unlink("file"));
	snprintf(path, sizeof(path), "%s/file" DELETED, self->directory.path);
	expect_name(_metadata, addr, path);
}

TEST_F(file, that_is_only_called_deleted)
{
	expect_path(_metadata, &self->directory, "file" DELETED);
}

TEST_F(file, renamed)
{
	void *const addr = map_new_file("before");
	char path[PATH_MAX];

	ASSERT_EQ(0, rename("before", "after"));
	snprintf(path, sizeof(path), "%s/after", self->directory.path);
	expect_name(_metadata, addr, path);
}

TEST_F(file, with_a_newline)
{
	expect_path(_metadata, &self->directory, "a\nb\n");
}

TEST_F(file, with_a_backslash)
{
	expect_path(_metadata, &self->directory, "a\\b\\");
}

/* The text is the same for these two, the answer is not. */
TEST_F(file, with_what_the_text_writes_for_a_newline)
{
	expect_path(_metadata, &self->directory, "a\\012b");
	expect_path(_metadata, &self->directory, "a\nb");
}

TEST_F(file, with_bytes_of_any_kind)
{
	char name[256] = " ";
	unsigned int byte;

	for (byte = 1; byte < 255; byte++)
		name[byte] = byte == '/' ? ' ' : (char)byte;
	expect_path(_metadata, &self->directory, name);
}

/*
 * A path is shown as the reader sees it, from the root directory that the reader
 * has at that moment: neither the opener's nor the target's root counts. What is
 * not below it is shown from the root of all mounts, which may be another one
 * than that of this test.
 */
TEST_F(file, seen_from_another_root_directory)
{
	const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int fd = open_maps(0);
	char path[PATH_MAX];
	void *outside, *inside;

	ASSERT_LE(0, root);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, mkdir("root", 0700));
	outside = map_new_file("outside");
	inside = map_new_file("root/inside");
	snprintf(path, sizeof(path), "%s/root/inside", self->directory.path);
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
	struct directory directory;
	void *addr;
	char shown[PATH_MAX + 16];
};

FIXTURE_VARIANT(path)
{
	size_t length;		/* of what is shown */
	bool deleted;
	bool too_long;
};

FIXTURE_VARIANT_ADD(path, of_254_bytes) {
	.length = 254,
};

FIXTURE_VARIANT_ADD(path, of_255_bytes) {
	.length = 255,
};

FIXTURE_VARIANT_ADD(path, of_256_bytes) {
	.length = 256,
};

FIXTURE_VARIANT_ADD(path, of_257_bytes) {
	.length = 257,
};

FIXTURE_VARIANT_ADD(path, of_2000_bytes) {
	.length = 2000,
};

FIXTURE_VARIANT_ADD(path, of_path_max) {
	.length = PATH_MAX - 1,
};

FIXTURE_VARIANT_ADD(path, over_path_max) {
	.length = PATH_MAX,
	.too_long = true,
};

FIXTURE_VARIANT_ADD(path, deleted_of_255_bytes) {
	.length = 255,
	.deleted = true,
};

FIXTURE_VARIANT_ADD(path, deleted_of_256_bytes) {
	.length = 256,
	.deleted = true,
};

FIXTURE_VARIANT_ADD(path, deleted_of_path_max) {
	.length = PATH_MAX - 1,
	.deleted = true,
};

FIXTURE_VARIANT_ADD(path, deleted_over_path_max) {
	.length = PATH_MAX,
	.deleted = true,
	.too_long = true,
};

/* Append a slash and a name of @length bytes, and return where that begins. */
static char *append_name(char *path, size_t length)
{
	char *const name = path + strlen(path) + 1;

	name[-1] = '/';
	memset(name, 'n', length);
	name[length] = '\0';
	return name;
}

/*
 * Map a file whose path has @length bytes. The process moves down with the
 * path, which may become longer than what open(2) takes.
 */
static void *map_long_path(char *path, size_t length)
{
	const char *name;
	size_t left;

	while ((left = length - strlen(path)) > NAME_MAX + 1) {
		/* Leave room for a slash and a byte. */
		name = append_name(path, left - 3 < NAME_MAX ? left - 3 :
							       NAME_MAX);
		if (mkdir(name, 0700) || chdir(name))
			return MAP_FAILED;
	}
	name = append_name(path, left - 1);
	return map_new_file(name);
}

FIXTURE_SETUP(path)
{
	const size_t suffix = variant->deleted ? strlen(DELETED) : 0;

	ASSERT_TRUE(make_directory(&self->directory));
	strcpy(self->shown, self->directory.path);
	self->addr = map_long_path(self->shown, variant->length - suffix);
	ASSERT_TRUE(self->addr != MAP_FAILED);
	if (variant->deleted) {
		ASSERT_EQ(0, unlink(strrchr(self->shown, '/') + 1));
		strcat(self->shown, DELETED);
	}
	ASSERT_EQ(variant->length, strlen(self->shown));
}

FIXTURE_TEARDOWN(path)
{
	EXPECT_TRUE(remove_directory(&self->directory));
}

TEST_F(path, is_told_up_to_path_max)
{
	const int fd = open_maps(0);
	struct procmap_query query;
	char name[2 * PATH_MAX];

	if (!variant->too_long)
		return expect_name(_metadata, self->addr, self->shown);

	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, PATH_MAX));
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, sizeof(name)));
}

TEST_F(path, fits_its_buffer_to_the_byte)
{
	const int fd = open_maps(0);
	const size_t size = variant->length + 1;
	struct procmap_query query;
	char name[PATH_MAX + 1];

	if (!variant->too_long) {
		name[size] = 'x';
		ASSERT_EQ(0, query_name(fd, (uintptr_t)self->addr, 0, &query,
					name, size));
		EXPECT_EQ(size, query.vma_name_size);
		EXPECT_STREQ(self->shown, name);
		EXPECT_EQ('x', name[size]);
	}
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, size - 1));
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, 1));
}

TEST_F(path, does_not_matter_when_no_name_is_wanted)
{
	const int fd = open_maps(0);
	struct procmap_query query;

	EXPECT_EQ(0, query_fields(fd, (uintptr_t)self->addr, 0, &query));
	EXPECT_EQ((uintptr_t)self->addr, query.vma_start);
}

/* Another process, which holds still, and its two text files. */
FIXTURE(text)
{
	struct child child;
	int fd;
	struct maps maps;
	struct maps smaps;
	uint64_t *page_sizes;
};

static int map_some(int control, void *arg)
{
	(void)arg;
	if (map_file(memfd_create("a\nb", 0), MAP_SHARED) == MAP_FAILED ||
	    map_anonymous(MAP_SHARED) == MAP_FAILED ||
	    map_anonymous(MAP_PRIVATE) == MAP_FAILED ||
	    sbrk(page_size()) == (void *)-1)
		return 1;
	notify(control);
	await(control);
	return 0;
}

FIXTURE_SETUP(text)
{
	ASSERT_TRUE(start_child(&self->child, map_some, NULL));
	ASSERT_TRUE(await(self->child.control));
	self->fd = open_maps(self->child.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, read_maps(self->fd, &self->maps));
	ASSERT_EQ(0, read_smaps(self->child.pid, &self->smaps,
				&self->page_sizes));
	ASSERT_LT(3u, self->maps.nr);
}

FIXTURE_TEARDOWN(text)
{
	stop_child(&self->child);
	free_maps(&self->maps);
	free_maps(&self->smaps);
	free(self->page_sizes);
	close(self->fd);
}

TEST_F(text, is_the_same_in_maps_and_smaps)
{
	size_t i;

	ASSERT_EQ(self->maps.nr, self->smaps.nr);
	for (i = 0; i < self->maps.nr; i++) {
		const struct maps_line *const a = &self->maps.lines[i];
		const struct maps_line *const b = &self->smaps.lines[i];

		EXPECT_EQ(a->start, b->start);
		EXPECT_EQ(a->end, b->end);
		EXPECT_EQ(a->flags, b->flags);
		EXPECT_EQ(a->offset, b->offset);
		EXPECT_EQ(a->inode, b->inode);
		EXPECT_EQ(a->dev_major, b->dev_major);
		EXPECT_EQ(a->dev_minor, b->dev_minor);
		EXPECT_STREQ(a->name, b->name);
	}
}

TEST_F(text, is_what_the_ioctl_tells)
{
	char name[PATH_MAX], escaped[ESCAPED_MAX];
	struct procmap_query query;
	size_t i;

	for (i = 0; i < self->smaps.nr; i++) {
		const struct maps_line *const line = &self->smaps.lines[i];

		name[0] = '\0';
		ASSERT_EQ(0, query_name(self->fd, line->start, 0, &query, name,
					sizeof(name)));
		escape_name(name, escaped, sizeof(escaped));
		EXPECT_STREQ(line->name, escaped);
		EXPECT_TRUE(same_fields(line, &query));
		EXPECT_EQ(self->page_sizes[i], query.vma_page_size);
	}
}

TEST_HARNESS_MAIN
