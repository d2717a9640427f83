// SPDX-License-Identifier: GPL-2.0
/*
 * The files of mappings: found by their names, opened by whoever may, and told from others
 * that have their names, or their device and inode, now.
 */
#include <linux/openat2.h>
#include <sched.h>
#include <sys/sendfile.h>
#include <sys/sysmacros.h>

#include "kselftest_harness.h"
#include "util.h"

/*
 * This process, with a directory for files that it maps.
 */
FIXTURE(files)
{
	char dir[32];
	struct procmap *procmap;
};

FIXTURE_VARIANT(files)
{
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(files, any) { .method = PROCMAP_ANY_METHOD };
FIXTURE_VARIANT_ADD(files, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(files, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(files, text) { .method = PROCMAP_BY_TEXT };

FIXTURE_SETUP(files)
{
	if (missing_method(variant->method))
		SKIP_SETUP(missing_method(variant->method));
	ASSERT_TRUE(make_test_directory(self->dir));
	ASSERT_EQ(0, procmap_open_self(BY(variant->method), &self->procmap));
}

FIXTURE_TEARDOWN(files)
{
	calls.opens = -1;
	procmap_close(self->procmap);
	EXPECT_EQ(0, chdir("/"));
	umount2(self->dir, MNT_DETACH);
	EXPECT_TRUE(remove_directory(self->dir));
}

/* Return the only mapping that procmap_find_name() finds, or NULL, also on an error. */
static void *only_one(struct procmap *procmap, const char *pattern,
		      enum procmap_match match)
{
	const struct procmap_mapping *found;
	uint64_t cursor = 0, start;

	if (procmap_find_name(procmap, pattern, match, &cursor, 0, &found))
		return NULL;
	start = found->start;
	if (found->end != cursor ||
	    procmap_find_name(procmap, pattern, match, &cursor, 0, &found) != -ENOENT)
		return NULL;
	return (void *)(uintptr_t)start;
}

#define EXPECT_FOUND(at, pattern)					\
	EXPECT_EQ((void *)(at), only_one(self->procmap, pattern, PROCMAP_EXACT))
#define EXPECT_GLOBBED(at, pattern)					\
	EXPECT_EQ((void *)(at), only_one(self->procmap, pattern, PROCMAP_GLOB))

static char *map_memfd(const char *name, int nr_pages)
{
	const int fd = memfd_create(name, MFD_CLOEXEC);
	char *map = MAP_FAILED;

	if (!ftruncate(fd, nr_pages * PAGE))
		map = mmap(NULL, nr_pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return map;
}

TEST_F(files, by_path)
{
	char *const plain = map_file(self->dir, "plain", NULL);
	char *const gone = map_file(self->dir, "gone", NULL);
	char *const newline = map_file(self->dir, "new\nline", NULL);
	char *const literal = map_file(self->dir, "there (deleted)", NULL);

	ASSERT_EQ(0, unlink(in(self->dir, "gone")));
	EXPECT_FOUND(gone, in(self->dir, "gone"));
	EXPECT_FOUND(gone, in(self->dir, "gone (deleted)"));
	EXPECT_GLOBBED(gone, "*/gone");
	EXPECT_GLOBBED(gone, "*/gone (deleted)");
	EXPECT_FOUND(plain, in(self->dir, "plain"));
	EXPECT_FOUND(NULL, "plain");
	EXPECT_FOUND(NULL, in(self->dir, "plain*"));
	EXPECT_GLOBBED(plain, in(self->dir, "pl[a-b]in*"));
	EXPECT_GLOBBED(NULL, "plain");
	EXPECT_FOUND(newline, in(self->dir, "new\\012line"));
	EXPECT_GLOBBED(newline, "*/new\\\\012line");
	EXPECT_FOUND(literal, in(self->dir, "there (deleted)"));
	EXPECT_FOUND(literal, in(self->dir, "there"));
}

/* In the order of the addresses, from the cursor on, and only those that pass. */
TEST_F(files, all_of_a_name)
{
	const struct procmap_mapping *found;
	uint64_t cursor;
	char *map;
	int i;

	map = map_memfd("pages", 8);
	ASSERT_TRUE(split(map, 8));
	for (cursor = 0, i = 0; i < 8; i++) {
		ASSERT_EQ(0, procmap_find_name(self->procmap, "pages", PROCMAP_EXACT, &cursor,
					       0, &found));
		EXPECT_EQ((uintptr_t)map + i * PAGE, found->start);
		EXPECT_EQ(found->end, cursor);
	}
	for (cursor = (uintptr_t)map + 2 * PAGE, i = 3; i < 8; i += 2) {
		ASSERT_EQ(0, procmap_find_name(self->procmap, "p*s", PROCMAP_GLOB, &cursor,
					       PROCMAP_READABLE, &found));
		EXPECT_EQ((uintptr_t)map + i * PAGE, found->start);
	}
	EXPECT_EQ(-ENOENT, procmap_find_name(self->procmap, "p*s", PROCMAP_GLOB, &cursor,
					     PROCMAP_READABLE, &found));
}

TEST_F(files, by_name_of_memfd)
{
	void *const map = map_memfd("frame buffer", 1);
	void *const odd = map_memfd("[anon:odd]", 1);

	EXPECT_FOUND(map, "frame buffer");
	EXPECT_FOUND(map, "frame buffer (deleted)");
	EXPECT_FOUND(map, "/memfd:frame buffer");
	EXPECT_FOUND(map, "/memfd:frame buffer (deleted)");
	EXPECT_FOUND(NULL, "memfd:frame buffer");
	EXPECT_GLOBBED(map, "frame buff??");
	/* Its own name is not that of anonymous memory. */
	EXPECT_FOUND(odd, "[anon:odd]");
	EXPECT_FOUND(NULL, "odd");
}

static bool name_anon(void *map, const char *name)
{
	return !prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, map, PAGE, name);
}

TEST_F(files, by_name_of_anonymous_memory)
{
	void *const map = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
	void *const shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS,
				  -1, 0);

	if (!name_anon(map, "arena 1"))
		SKIP(return, "this kernel has no CONFIG_ANON_VMA_NAME");
	EXPECT_FOUND(map, "arena 1");
	EXPECT_FOUND(map, "[anon:arena 1]");
	EXPECT_FOUND(NULL, "arena 1]");
	EXPECT_GLOBBED(map, "arena [0-9]");
	/* Since Linux 6.2. */
	if (name_anon(shared, "queue")) {
		EXPECT_FOUND(shared, "queue");
		EXPECT_FOUND(shared, "[anon_shmem:queue]");
	}
}

TEST_F(files, what_has_no_such_name)
{
	struct procmap *const procmap = self->procmap;
	const struct procmap_mapping *found;
	uint64_t cursor = 0;

	EXPECT_EQ(-ENOENT, procmap_find_name(procmap, "no such name", PROCMAP_EXACT, &cursor, 0,
					     &found));
	EXPECT_NE(0, cursor);
	/* With large pages, a program may have no memory of that kind before. */
	ASSERT_NE(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	cursor = 0;
	ASSERT_EQ(0, procmap_find_name(procmap, "", PROCMAP_EXACT, &cursor, 0, &found));
	EXPECT_STREQ("", found->name);
	EXPECT_EQ(-EINVAL, procmap_find_name(NULL, "", PROCMAP_EXACT, &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(procmap, NULL, PROCMAP_EXACT, &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(procmap, "", 2, &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(procmap, "", PROCMAP_EXACT, NULL, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(procmap, "", PROCMAP_EXACT, &cursor,
					     PROCMAP_COVERING_OR_NEXT, &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(procmap, "", PROCMAP_EXACT, &cursor, 0, NULL));
}

static void *map_path(const char *path, int nr_pages)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *const map = mmap(NULL, nr_pages * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	return map;
}

/* A mapping of a file, and whether the test has deleted or replaced that. */
struct fate {
	void *map;
	bool is_deleted;
};

#define NR_FATES	7

/* Names that the text does not show as deleted come first. */
static bool make_fates(const char *dir, struct fate *fates)
{
	static const char *const names[NR_FATES] = {
		"untouched", "moved", "new\nline", "unlinked", "replaced", "confusing",
		"literal (deleted)",
	};
	size_t i;

	for (i = 0; i < NR_FATES; i++)
		fates[i] = (struct fate) { map_file(dir, names[i], NULL), i >= 3 && i < 6 };
	/* In the end, the text shows the path of a file, but not of the mapped one. */
	return !unlink(in(dir, "unlinked")) &&
	       !rename(in(dir, "moved"), in(dir, "to here")) &&
	       map_file(dir, "another", NULL) != MAP_FAILED &&
	       !rename(in(dir, "another"), in(dir, "replaced")) &&
	       !unlink(in(dir, "confusing")) &&
	       map_file(dir, "confusing (deleted)", NULL) != MAP_FAILED;
}

/* The first file for which it is not so, found or passed in a walk; or -1. */
static int first_wrong(struct procmap *procmap, const struct fate *fates, int nr)
{
	const unsigned int flags = PROCMAP_WANT_DELETED;
	const struct procmap_mapping *found;
	int i;

	for (i = 0; i < nr; i++) {
		uint64_t cursor = (uintptr_t)fates[i].map;

		if (procmap_find(procmap, cursor, flags, &found) ||
		    !(found->flags & PROCMAP_DELETED) == fates[i].is_deleted ||
		    procmap_next(procmap, &cursor, flags, &found) ||
		    !(found->flags & PROCMAP_DELETED) == fates[i].is_deleted ||
		    procmap_find(procmap, found->start, 0, &found) ||
		    (found->flags & PROCMAP_DELETED))
			return i;
	}
	return -1;
}

/* One of its names is deleted. */
TEST_F(files, that_have_two_names)
{
	const char *const paths[] = { in(self->dir, "one"), in(self->dir, "two") };
	struct fate fates[2];
	int i, deleted;

	for (deleted = 0; deleted < 2; deleted++) {
		ASSERT_TRUE(map_file(self->dir, "one", NULL) != MAP_FAILED);
		ASSERT_EQ(0, link(paths[0], paths[1]));
		for (i = 0; i < 2; i++)
			fates[i] = (struct fate) { map_path(paths[i], 1), i == deleted };
		ASSERT_EQ(0, unlink(paths[deleted]));
		EXPECT_EQ(-1, first_wrong(self->procmap, fates, 2));
		ASSERT_EQ(0, unlink(paths[!deleted]));
	}
}

/* The text shows both as one. */
TEST_F(files, of_names_that_look_alike)
{
	const struct fate fates[] = {
		{ map_file(self->dir, "a\nb\\012", NULL), false },
		{ map_file(self->dir, "a\\012b\n", NULL), true },
	};

	ASSERT_EQ(0, unlink(in(self->dir, "a\\012b\n")));
	EXPECT_EQ(-1, first_wrong(self->procmap, fates, 2));
}

/*
 * Walk over the mappings of a file. Returns 1 for the one at @map, 4 for each other one, and
 * 16 for each that is not known; or an error.
 */
static int walk_file(struct procmap *procmap, int fd, const void *map)
{
	const struct procmap_mapping *found;
	struct procmap_file *file;
	uint64_t cursor = 0;
	int ret, nr = 0;

	ret = procmap_open_file_fd(fd, &file);
	if (ret)
		return ret;
	while (!(ret = procmap_find_file(procmap, file, &cursor, 0, &found)) || ret == -EXDEV) {
		if (found->end != cursor)
			break;
		nr += ret ? 16 : found->start == (uintptr_t)map ? 1 : 4;
	}
	procmap_close_file(file);
	return ret == -ENOENT ? nr : ret;
}

static int walk_path(struct procmap *procmap, const char *path, const void *map)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const int ret = walk_file(procmap, fd, map);

	close(fd);
	return ret;
}

TEST_F(files, by_the_file_whatever_its_name)
{
	int fd;
	void *const map = map_file(self->dir, "one", &fd);
	void *const other = map_file(self->dir, "other", NULL);

	ASSERT_EQ(0, link(in(self->dir, "one"), in(self->dir, "two")));
	ASSERT_EQ(0, symlink("two", in(self->dir, "link")));
	EXPECT_EQ(1, walk_path(self->procmap, in(self->dir, "link"), map));
	ASSERT_EQ(0, rename(in(self->dir, "other"), in(self->dir, "one")));
	EXPECT_EQ(1, walk_path(self->procmap, in(self->dir, "one"), other));
	ASSERT_EQ(0, unlink(in(self->dir, "two")));
	EXPECT_EQ(1, walk_file(self->procmap, fd, map));
	munmap(map, PAGE);
	EXPECT_EQ(0, walk_file(self->procmap, fd, map));
	close(fd);
}

/* In the order of the addresses, from the cursor on, and only those that pass. */
TEST_F(files, all_of_a_file)
{
	const int fd = memfd_create("pages", MFD_CLOEXEC);
	const struct procmap_mapping *found;
	struct procmap_file *file;
	uint64_t cursor;
	char *map;
	int i;

	ASSERT_EQ(0, ftruncate(fd, 8 * PAGE));
	map = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_TRUE(split(map, 8));
	ASSERT_EQ(0, procmap_open_file_fd(fd, &file));
	for (cursor = 0, i = 0; i < 8; i++) {
		ASSERT_EQ(0, procmap_find_file(self->procmap, file, &cursor, 0, &found));
		EXPECT_EQ((uintptr_t)map + i * PAGE, found->start);
		EXPECT_EQ(i * PAGE, found->offset);
	}
	for (cursor = (uintptr_t)map + 2 * PAGE, i = 3; i < 8; i += 2) {
		ASSERT_EQ(0, procmap_find_file(self->procmap, file, &cursor, PROCMAP_READABLE,
					       &found));
		EXPECT_EQ((uintptr_t)map + i * PAGE, found->start);
	}
	EXPECT_EQ(-ENOENT, procmap_find_file(self->procmap, file, &cursor, PROCMAP_READABLE,
					     &found));
	procmap_close_file(file);
	close(fd);
}

TEST_F(files, by_what_is_no_regular_file)
{
	static const char line[] = "1000-2000 r--p 0 0:1 1 /a\n";
	const struct procmap_mapping *found;
	struct procmap *saved;
	struct procmap_file *file;
	uint64_t cursor = 0;

	EXPECT_EQ(-ENODEV, walk_path(self->procmap, "/dev/zero", NULL));
	EXPECT_EQ(-ENODEV, walk_path(self->procmap, "/", NULL));
	ASSERT_EQ(0, procmap_open_text(line, strlen(line), NULL, &saved));
	EXPECT_EQ(-ENODEV, walk_path(saved, "/proc/self/exe", NULL));
	procmap_close(saved);
	ASSERT_EQ(0, procmap_open_file_fd(STDIN_FILENO, &file));
	EXPECT_EQ(-EINVAL, procmap_find_file(NULL, file, &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_file(self->procmap, NULL, &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_file(self->procmap, file, NULL, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_file(self->procmap, file, &cursor, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_find_file(self->procmap, file, &cursor,
					     PROCMAP_COVERING_OR_NEXT, &found));
	procmap_close_file(file);
}

/* What is mapped of it to identify it would stay mapped, or take a page. */
TEST_F(files, by_a_file_of_huge_pages)
{
	const int huge = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct stat stat;
	void *map;

	if (huge < 0 || fstat(huge, &stat))
		SKIP(return, "this kernel has no CONFIG_HUGETLBFS");
	EXPECT_EQ(0, walk_file(self->procmap, huge, NULL));
	map = mmap(NULL, stat.st_blksize, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, huge, 0);
	ASSERT_TRUE(map != MAP_FAILED);
	EXPECT_EQ(1, walk_file(self->procmap, huge, map));
	munmap(map, stat.st_blksize);
	close(huge);
}

/* A file that has the name and the numbers may be another one, unless it has the build ID. */
TEST_F(files, that_are_not_mapped_any_more)
{
	char *const map = map_file(self->dir, "one", NULL);
	const struct procmap_mapping *found;
	struct procmap_mapping old;
	char name[64];
	struct stat one, opened;
	int fd;

	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID, &found));
	old = *found;
	old.name = strcpy(name, found->name);
	ASSERT_TRUE(map_file(self->dir, "two", &fd) != MAP_FAILED);
	ASSERT_TRUE(mmap(map, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == map);
	close(fd);
	ASSERT_EQ(0, stat(in(self->dir, "one"), &one));
	fd = open_file(self->procmap, &old);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(fd, &opened));
	EXPECT_EQ(one.st_ino, opened.st_ino);
	close(fd);
	old.build_id_size = 0;
	EXPECT_EQ(-ESTALE, open_file(self->procmap, &old));
	/* What is mapped there had the same name. */
	ASSERT_EQ(0, rename(in(self->dir, "one"), in(self->dir, "kept")));
	ASSERT_EQ(0, rename(in(self->dir, "two"), in(self->dir, "one")));
	ASSERT_EQ(0, unlink(in(self->dir, "one")));
	ASSERT_EQ(0, rename(in(self->dir, "kept"), in(self->dir, "one")));
	EXPECT_EQ(-ESTALE, open_file(self->procmap, &old));
	ASSERT_EQ(0, unlink(in(self->dir, "one")));
	EXPECT_EQ(-ENOENT, open_file(self->procmap, &old));
}

/*
 * Its owner has huge pages at its path now: what is mapped of them to compare it would stay
 * mapped, or cannot be mapped.
 */
TEST_F(files, whose_name_leads_to_a_huge_page)
{
	void *const map = map_file(self->dir, "one", NULL);
	const int huge = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct procmap_snapshot *snapshot;
	struct procmap_file *file;
	char link[32];

	if (huge < 0)
		SKIP(return, "this kernel has no CONFIG_HUGETLBFS");
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", huge);
	ASSERT_EQ(0, unlink(in(self->dir, "one")));
	ASSERT_EQ(0, symlink(link, in(self->dir, "one")));
	/* Without its process, it is looked up by its name. */
	EXPECT_EQ(-ESTALE,
		  procmap_open_file(NULL, procmap_snapshot_find(snapshot, (uintptr_t)map), NULL,
				    &file));
	procmap_snapshot_free(snapshot);
	close(huge);
}

static int stay_in_root(int control, void *root)
{
	return chroot(root) || !notify(control) ? 1 : keep_still(control, NULL);
}

/* Its names in maps are relative to the root of the reader. */
TEST_F(files, that_were_deleted_in_a_chroot)
{
	struct fate fates[NR_FATES];
	struct procmap *procmap;
	struct child child;

	if (geteuid())
		SKIP(return, "only root can chroot");
	ASSERT_TRUE(make_fates(self->dir, fates));
	ASSERT_TRUE(start_child(&child, stay_in_root, self->dir) && await(child.control));
	ASSERT_EQ(0, procmap_open_pid(child.pid, BY(variant->method), &procmap));
	EXPECT_EQ(-1, first_wrong(procmap, fates, NR_FATES));
	procmap_close(procmap);
	stop_child(&child);
}

#define NOBODY	65534

/* Look at the own process without privileges from then on. */
static bool become_nobody(void)
{
	return !setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY) &&
	       !prctl(PR_SET_DUMPABLE, 1);
}

/* The value of @expression in a child without privileges, of which @nobody is a handle; or -1. */
#define AS_NOBODY(method, expression)					\
	({								\
		const pid_t child = fork();				\
		struct procmap *nobody;					\
		int status;						\
									\
		if (!child)						\
			_exit(become_nobody() && !procmap_open_self(BY(method), &nobody) ?	\
			      (expression) : 255);			\
		waitpid(child, &status, 0) == child && WIFEXITED(status) ?	\
			WEXITSTATUS(status) : -1;			\
	})

TEST_F(files, that_were_deleted_where_one_may_not_look)
{
	struct fate fates[NR_FATES];

	if (geteuid())
		SKIP(return, "only root can become nobody");
	ASSERT_TRUE(make_fates(self->dir, fates));
	ASSERT_EQ(0, chmod(self->dir, 0700));
	/* All that the last one has is its name. */
	EXPECT_EQ(0, AS_NOBODY(variant->method, first_wrong(nobody, fates, NR_FATES - 1) + 1));
}

/* The size of its build ID, or the error, and 128 if it is deleted. */
static int look_at_file(struct procmap *procmap, const void *map)
{
	const struct procmap_mapping *found;

	if (procmap_find(procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_DELETED,
			 &found))
		return 255;
	return (found->flags & PROCMAP_DELETED ? 128 : 0) + abs(found->build_id_size);
}

/* At its path, another one is mounted, which the kernel does not say. */
TEST_F(files, that_are_hidden)
{
	const bool by_file = !kernel_gives_ids(variant->method);
	void *const map = map_file(self->dir, "hidden", NULL);
	struct stat dir;

	ASSERT_NE(MAP_FAILED, map_file(self->dir, "plain", NULL));
	ASSERT_EQ(0, chmod(self->dir, 0755));
	ASSERT_EQ(0, stat(self->dir, &dir));
	ASSERT_EQ(0, chmod(in(self->dir, "plain"), 0644));
	if (unshare(CLONE_NEWNS) || mount("none", "/", "", MS_REC | MS_PRIVATE, ""))
		SKIP(return, "only root can mount a file");
	ASSERT_EQ(0, mount(in(self->dir, "plain"), in(self->dir, "hidden"), "", MS_BIND, ""));
	EXPECT_EQ(128 + 20, look_at_file(self->procmap, map));
	/* Where a device has no major number, nobody can tell whether a file is the mapped one. */
	if (major(dir.st_dev))
		EXPECT_EQ(128 + (by_file ? ESTALE : 20),
			  AS_NOBODY(variant->method, look_at_file(nobody, map)));
	EXPECT_EQ(0, umount2(in(self->dir, "hidden"), MNT_DETACH));
}

/* The build ID of the file of a mapping, without its process; or an error. */
static int id_size_of(const struct procmap_mapping *mapping, const char *root,
		      const char *proc)
{
	const struct procmap_file_options options = {
		.size = sizeof(options), .root = root, .proc = proc,
	};
	uint8_t id[PROCMAP_BUILD_ID_MAX];
	struct procmap_file *file;
	int size;

	size = procmap_open_file(NULL, mapping, &options, &file);
	if (size)
		return size;
	size = procmap_file_build_id(file, id);
	procmap_close_file(file);
	return size == sizeof(id) && memcmp(id, scene_id, size) ? -EIO : size;
}

/* Mappings of a snapshot or a table are looked up by their paths, and compared. */
TEST_F(files, without_a_process)
{
	void *const map = map_file(self->dir, "one", NULL);
	const struct procmap_file_options none = { .size = 0 };
	const struct procmap_mapping *found;
	struct procmap_mapping by_id = { .name = NULL };
	struct procmap_snapshot *snapshot;
	struct procmap_file *file;

	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	procmap_close(self->procmap);
	self->procmap = NULL;
	found = procmap_snapshot_find(snapshot, (uintptr_t)map);
	ASSERT_TRUE(!!found);
	EXPECT_EQ(20, id_size_of(found, NULL, NULL));
	EXPECT_EQ(20, id_size_of(found, "/proc/self/root", NULL));
	EXPECT_EQ(-ENOENT, id_size_of(found, self->dir, NULL));
	EXPECT_EQ(-EINVAL, procmap_open_file(NULL, found, &none, &file));

	/* An event has the build ID instead of the inode. */
	by_id.name = found->name;
	by_id.name_len = found->name_len;
	EXPECT_EQ(-ENODEV, id_size_of(&by_id, NULL, NULL));
	by_id.build_id_size = sizeof(by_id.build_id);
	memcpy(by_id.build_id, scene_id, sizeof(by_id.build_id));
	EXPECT_EQ(20, id_size_of(&by_id, NULL, NULL));
	by_id.build_id[19]++;
	EXPECT_EQ(-ESTALE, id_size_of(&by_id, NULL, NULL));
	/* The number of its inode may be used again. */
	by_id.inode = found->inode;
	by_id.dev_major = found->dev_major;
	by_id.dev_minor = found->dev_minor;
	EXPECT_EQ(-ESTALE, id_size_of(&by_id, NULL, NULL));
	by_id.build_id[19]--;
	EXPECT_EQ(20, id_size_of(&by_id, NULL, NULL));
	by_id.inode++;
	EXPECT_EQ(-ESTALE, id_size_of(&by_id, NULL, NULL));

	/* Below the root of a container, which has another file at the path. */
	ASSERT_EQ(0, rename(in(self->dir, "one"), in(self->dir, "two")));
	ASSERT_TRUE(map_file(self->dir, "one", NULL) != MAP_FAILED);
	EXPECT_EQ(-ESTALE, id_size_of(found, NULL, NULL));
	by_id = *found;
	by_id.name = "/two";
	EXPECT_EQ(20, id_size_of(&by_id, self->dir, NULL));
	procmap_snapshot_free(snapshot);
}

/* Give the directory of the fixture a file system of its own, and go there. */
static bool mount_tmpfs(const char *dir)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", "", MS_REC | MS_PRIVATE, "") &&
	       !mount("none", dir, "tmpfs", 0, "mode=755") && !chdir(dir);
}

/* Write an ELF file, below the directory of the fixture. */
static bool write_object(const char *path, const uint8_t id[20])
{
	const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	const bool is_written = fd >= 0 && write_elf(fd, id) && !ftruncate(fd, 4 * PAGE);

	close(fd);
	return is_written;
}

static bool mount_image(const char *type, const char *size, const char *dir)
{
	char command[160];

	snprintf(command, sizeof(command), "set -e; truncate -s %s image; "
		 "mkfs.%s -q image >/dev/null; mkdir %s; mount -o loop image %s",
		 size, type, dir, dir);
	return !system(command);
}

/*
 * Compare the answers on the mapping at @map of a file that had @id when it was mapped, and
 * is @file, or has changed since (NULL): found, found in a walk, opened after a lookup
 * with and without the build ID, and not deleted, unless it has changed. Returns 16 times the
 * number of those that are wrong, and the number of errors among the answers.
 */
static int count_wrong(struct procmap *procmap, const void *map, const uint8_t id[20],
		       const struct stat *file)
{
	const struct procmap_mapping *found;
	struct stat opened;
	uint8_t got[20];
	int wrong = 0, errors, size, i;

	size = walk_to_build_id(procmap, map, got);
	errors = size < 0;
	wrong += size >= 0 && (size != 20 || memcmp(got, id, 20));
	for (i = 0; i < 2; i++) {
		if (procmap_find(procmap, (uintptr_t)map,
				 i ? PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_DELETED : 0,
				 &found))
			return 255;
		wrong += file && found->flags & PROCMAP_DELETED;
		errors += found->build_id_size < 0;
		wrong += found->build_id_size > 0 && memcmp(found->build_id, id, 20);
		size = open_file(procmap, found);
		errors += size < 0;
		if (size < 0)
			continue;
		wrong += !file || fstat(size, &opened) || opened.st_dev != file->st_dev ||
			 opened.st_ino != file->st_ino;
		close(size);
	}
	return wrong * 16 + errors;
}

TEST_F(files, of_any_name)
{
	static const char *const names[] = {
		"plain", "new\nline", "literal\\012", "with blank ", "gone",
	};
	const bool by_file = !kernel_gives_ids(variant->method);
	struct stat file;
	void *map;
	int i;

	if (geteuid() || chmod(self->dir, 0755))
		SKIP(return, "only root can become nobody");
	for (i = 0; i < 5; i++) {
		const bool is_gone = i == 4;

		map = map_file(self->dir, names[i], NULL);
		ASSERT_EQ(0, stat(in(self->dir, names[i]), &file));
		ASSERT_EQ(0, chmod(in(self->dir, names[i]), 0644));
		ASSERT_EQ(0, is_gone && unlink(in(self->dir, names[i])));
		/* It is one more that is wrong for count_wrong() if it is deleted. */
		EXPECT_EQ(is_gone ? 16 : 0, count_wrong(self->procmap, map, scene_id, &file));
		EXPECT_EQ(!is_gone ? 0 : by_file ? 16 + 4 : 16 + 2,
			  AS_NOBODY(variant->method, count_wrong(nobody, map, scene_id, &file)));
	}
}

/* Two files have the same device and inode in maps. */
TEST_F(files, files_of_two_subvolumes)
{
	const bool by_file = !kernel_gives_ids(variant->method);
	static const char *const paths[] = { "m/a/file", "m/b/file" };
	const uint8_t *const ids[] = { scene_id, other_id };
	const struct procmap_mapping *found[2];
	struct procmap_snapshot *snapshot;
	struct stat files[2];
	int i, as_nobody;
	void *map[2];

	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	if (!mount_image("btrfs", "128M", "m") ||
	    system("btrfs -q subvolume create m/a && btrfs -q subvolume create m/b"))
		SKIP(return, "cannot mount btrfs");
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(write_object(paths[i], ids[i]));
		map[i] = map_path(paths[i], 1);
		ASSERT_TRUE(map[i] != MAP_FAILED);
		ASSERT_EQ(0, stat(paths[i], &files[i]));
	}
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	for (i = 0; i < 2; i++)
		found[i] = procmap_snapshot_find(snapshot, (uintptr_t)map[i]);
	EXPECT_EQ(found[0]->inode, found[1]->inode);
	EXPECT_EQ(found[0]->dev_minor, found[1]->dev_minor);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, count_wrong(self->procmap, map[i], ids[i], &files[i]));
		as_nobody = AS_NOBODY(variant->method,
				      count_wrong(nobody, map[i], ids[i], &files[i]));
		EXPECT_EQ(0, by_file ? as_nobody / 16 : as_nobody);
		EXPECT_EQ(1, walk_path(self->procmap, paths[i], map[i]));
		as_nobody = AS_NOBODY(variant->method, walk_path(nobody, paths[i], map[i]));
		EXPECT_EQ(2, as_nobody / 16 + as_nobody % 16);
	}
	/* The other one is where the mapped one was, which is as if that were deleted. */
	ASSERT_EQ(0, mount(paths[1], paths[0], "", MS_BIND, ""));
	EXPECT_EQ(16, count_wrong(self->procmap, map[0], ids[0], &files[0]));
	/* By the file, nobody knows. */
	EXPECT_EQ(!by_file,
		  AS_NOBODY(variant->method,
			    count_wrong(nobody, map[0], ids[0], &files[0])) / 16);
	EXPECT_EQ(0, umount2(paths[0], MNT_DETACH));
	/* The other one is mapped where the first one was. */
	ASSERT_EQ(map[0], mremap(map[1], PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, map[0]));
	EXPECT_EQ(-ESTALE, open_file(self->procmap, found[0]));
	procmap_snapshot_free(snapshot);
	munmap(map[0], PAGE);
}

/* It was mapped as a file of the lower layer, and is copied to the upper one. */
static void write_on_overlay(struct __test_metadata *_metadata, struct procmap *procmap,
			     enum procmap_method method)
{
	const bool by_file = !kernel_gives_ids(method);
	const struct procmap_mapping *found;
	struct stat file;
	int as_nobody;
	void *map;

	ASSERT_EQ(0, system("mkdir lower upper work m"));
	ASSERT_TRUE(write_object("lower/file", scene_id));
	ASSERT_EQ(0, mount("none", "m", "overlay", 0,
			   "lowerdir=lower,upperdir=upper,workdir=work"));
	map = map_path("m/file", 1);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_EQ(0, stat("m/file", &file));
	EXPECT_EQ(0, count_wrong(procmap, map, scene_id, &file));
	as_nobody = AS_NOBODY(method, count_wrong(nobody, map, scene_id, &file));
	EXPECT_EQ(0, by_file ? as_nobody / 16 : as_nobody);
	EXPECT_EQ(1, walk_path(procmap, "m/file", map));
	as_nobody = AS_NOBODY(method, walk_path(nobody, "m/file", map));
	EXPECT_EQ(1, as_nobody / 16 + as_nobody % 16);

	ASSERT_TRUE(write_object("m/file", other_id));
	EXPECT_EQ(0, count_wrong(procmap, map, scene_id, NULL) / 16);
	EXPECT_EQ(0, AS_NOBODY(method, count_wrong(nobody, map, scene_id, NULL)) / 16);
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_EQ(by_file ? -ESTALE : 20, found->build_id_size);
	EXPECT_EQ(-ESTALE, open_file(procmap, found));
	munmap(map, PAGE);
	EXPECT_EQ(0, umount2("m", MNT_DETACH));
}

/* A device of tmpfs has no major number, as that of the overlay has none. */
TEST_F(files, file_on_overlayfs_on_tmpfs_is_written)
{
	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	write_on_overlay(_metadata, self->procmap, variant->method);
}

TEST_F(files, file_on_overlayfs_on_a_disk_is_written)
{
	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	if (!mount_image("ext4", "16M", "disk"))
		SKIP(return, "cannot mount ext4");
	ASSERT_EQ(0, chdir("disk"));
	write_on_overlay(_metadata, self->procmap, variant->method);
	ASSERT_EQ(0, chdir(self->dir));
	EXPECT_EQ(0, umount2("disk", MNT_DETACH));
}

/* A row of cases.h. */
struct file_case {
	const char *name;
	const char *before;
	const char *file;
	const char *since;
	const char *build_id;
	const char *deleted;
	const char *opened;
};

static const struct file_case cases[] = {
#define SETUP(line)
#define CASE_OF(...)	{ __VA_ARGS__ },
#include "cases.h"
#undef SETUP
#undef CASE_OF
};

static const char setup[] =
#define SETUP(line)	line "\n"
#define CASE_OF(...)
#include "cases.h"
#undef SETUP
#undef CASE_OF
;

static bool run_command(const char *command)
{
	char *script;
	int status = -1;

	if (asprintf(&script, "%s%s", setup, command) >= 0)
		status = system(script);
	free(script);
	return !status;
}

/* Make the files that the commands of the cases take. */
static bool make_files_of_cases(void)
{
	char bytes[3 * PAGE];
	const int fd = open("plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	memset(bytes, 'a', sizeof(bytes));
	return fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes) &&
	       !close(fd) && write_object("one", scene_id) && write_object("two", other_id);
}

/* Map a page of the file of a case. */
static void *map_case(const struct file_case *row)
{
	const int file = open(row->file, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *map;
	int fd;

	if (strchr(row->file, '/')) {
		map = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	} else {
		fd = memfd_create("case", MFD_CLOEXEC);
		map = fstat(file, &stat) || ftruncate(fd, stat.st_size) ||
		      (stat.st_blocks && sendfile(fd, file, NULL, stat.st_size) < 0) ?
		      MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
		close(fd);
	}
	close(file);
	return map;
}

/* The name of what a build ID, or an error instead of it, is that of. */
static const char *name_of_id(int size, const uint8_t *id)
{
	if (size <= 0)
		return size ? "unknown" : "none";
	return size == 20 && !memcmp(id, scene_id, 20) ? "one" :
	       size == 20 && !memcmp(id, other_id, 20) ? "two" : "another";
}

static const char *name_of_flags(unsigned int flags)
{
	if (flags & PROCMAP_UNVERIFIED && ~flags & PROCMAP_DELETED)
		return "unverified";
	return flags & PROCMAP_REPLACED ? "replaced" :
	       flags & PROCMAP_DELETED ? "deleted" : "there";
}

static const char *name_of_opened(struct procmap *procmap, const struct procmap_mapping *found)
{
	uint8_t id[PROCMAP_BUILD_ID_MAX];
	struct procmap_file *file;
	int size;

	if (procmap_open_file(procmap, found, NULL, &file))
		return "unknown";
	size = procmap_file_build_id(file, id);
	procmap_close_file(file);
	return name_of_id(size, id);
}

static bool is_as_expected(const struct file_case *row, const char *what, const char *expected,
			   const char *got)
{
	const bool is_same = !strcmp(expected, got);

	if (!is_same)
		fprintf(stderr, "# %s: %s: expected %s, got %s\n", row->name, what, expected, got);
	return is_same;
}

/* It is opened as it is, whatever its build ID was. */
static bool is_answered(const struct file_case *row, enum procmap_method method, void *map)
{
	const unsigned int flags = PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_DELETED;
	const bool may_know = kernel_gives_ids(method) && !strcmp(row->build_id, "unknown");
	const struct procmap_mapping *found;
	struct procmap *procmap;
	const char *id;
	bool is_good;

	if (procmap_open_self(BY(method), &procmap) ||
	    procmap_find(procmap, (uintptr_t)map, flags, &found))
		return false;
	id = name_of_id(found->build_id_size, found->build_id);
	is_good = is_as_expected(row, "deleted", row->deleted, name_of_flags(found->flags)) &
		  is_as_expected(row, "build ID", may_know ? "one" : row->build_id, id);
	is_good &= !procmap_find(procmap, (uintptr_t)map, 0, &found) &&
		   is_as_expected(row, "opened", row->opened, name_of_opened(procmap, found));
	procmap_close(procmap);
	return is_good;
}

/* Each case has a mount namespace and a file system of its own. */
static int try_case(const struct file_case *row, const char *dir, enum procmap_method method)
{
	void *map;

	if (!mount_tmpfs(dir) || !make_files_of_cases())
		return 1;
	if (!run_command(row->before))
		return SKIP_STATUS;
	map = map_case(row);
	return map == MAP_FAILED || !run_command(row->since) || !is_answered(row, method, map);
}

TEST_F(files, of_the_table)
{
	size_t i;
	int status;
	pid_t pid;

	if (geteuid())
		SKIP(return, "only root can mount a file system");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		pid = fork();
		if (!pid)
			_exit(try_case(&cases[i], self->dir, variant->method));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		if (status == SKIP_STATUS << 8)
			TH_LOG("cannot be made here: %s", cases[i].name);
		else
			EXPECT_EQ(0, status) TH_LOG("%s", cases[i].name);
	}
}

/* It is deleted, so that only the process leads to it. */
TEST_F(files, file_whose_mapping_was_split_since)
{
	const struct procmap_mapping *found;
	struct procmap_snapshot *snapshot;
	char *map;
	int i;

	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	ASSERT_TRUE(write_object("file", scene_id));
	map = map_path("file", 3);
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	ASSERT_EQ(0, mprotect(map + PAGE, PAGE, PROT_NONE));
	found = procmap_snapshot_find(snapshot, (uintptr_t)map);
	EXPECT_EQ(1, AS_NOBODY(variant->method, open_file(nobody, found) >= 0));
	ASSERT_EQ(0, unlink("file"));
	for (i = 0; i < 3; i++) {
		const int fd = open_file(self->procmap, found);

		EXPECT_LE(0, fd);
		close(fd);
		munmap(map + i * PAGE, PAGE);
	}
	EXPECT_EQ(-ENOENT, open_file(self->procmap, found));
	procmap_snapshot_free(snapshot);
}

TEST_F(files, procfs_that_is_elsewhere)
{
	struct procmap_options options = {
		.size = sizeof(options), .method = variant->method, .proc = "elsewhere",
	};
	static char long_path[PATH_MAX];
	struct procmap_mapping mapping;
	const struct procmap_mapping *found;
	struct procmap *procmap;
	char name[64];
	void *map;

	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	map = map_file(self->dir, "file", NULL);
	ASSERT_EQ(0, mkdir("elsewhere", 0755));
	ASSERT_EQ(0, mount("/proc", "elsewhere", "", MS_BIND, ""));
	ASSERT_EQ(0, mount("none", "/proc", "tmpfs", 0, ""));
	EXPECT_EQ(-ENOENT, procmap_open_self(BY(variant->method), &procmap));
	ASSERT_EQ(0, procmap_open_self(&options, &procmap));
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID |
				  PROCMAP_WANT_DELETED, &found));
	EXPECT_TRUE(has_test_id(found));
	EXPECT_EQ(PROCMAP_READABLE, found->flags);
	mapping = *found;
	mapping.name = strcpy(name, found->name);
	EXPECT_LE(0, open_file(procmap, &mapping));
	EXPECT_EQ(-ENOENT, id_size_of(&mapping, NULL, NULL));
	EXPECT_EQ(20, id_size_of(&mapping, NULL, "elsewhere"));
	ASSERT_EQ(0, unlink("file"));
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID |
				  PROCMAP_WANT_DELETED, &found));
	EXPECT_TRUE(has_test_id(found));
	EXPECT_EQ(PROCMAP_READABLE | PROCMAP_DELETED, found->flags);
	procmap_close(procmap);
	ASSERT_EQ(0, procmap_open_pid(getpid(), &options, &procmap));
	procmap_close(procmap);
	memset(long_path, '/', sizeof(long_path) - 1);
	options.proc = long_path;
	EXPECT_EQ(-ENAMETOOLONG, procmap_open_pid(getpid(), &options, &procmap));
	EXPECT_EQ(0, umount2("/proc", MNT_DETACH));
	EXPECT_EQ(0, umount2("elsewhere", MNT_DETACH));
}

/* Ask for build IDs in all ways: of a memfd that has no page, and of a plain file. */
static void ask_for_ids(struct __test_metadata *_metadata, struct procmap *procmap, void *map)
{
	const unsigned int flags = PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_DELETED;
	const uint64_t addr = (uintptr_t)map;
	const struct procmap_mapping *found;
	const struct procmap_resolved *resolved;
	struct procmap_snapshot *snapshot;
	uint8_t id[20];

	ASSERT_EQ(0, procmap_find(procmap, addr, flags, &found));
	close(open_file(procmap, found));
	walk_to_build_id(procmap, map, id);
	ASSERT_EQ(0, procmap_resolve(procmap, &addr, 1, flags, &resolved));
	procmap_free_resolved(resolved);
	ASSERT_EQ(0, procmap_snapshot_take(procmap, flags, &snapshot));
	procmap_snapshot_free(snapshot);
}

/* Kernels oops, or wait for a server, in mainline's own answers. */
TEST_F(files, whose_build_ids_mainline_is_not_asked_for)
{
	struct procmap_options options = {
		.size = sizeof(options), .method = variant->method,
		.flags = PROCMAP_KERNEL_BUILD_IDS,
	};
	void *const plain = map_file(self->dir, "plain", NULL);
	const struct procmap_mapping *found;
	struct procmap *procmap;

	calls.ids_asked = 0;
	ask_for_ids(_metadata, self->procmap, map_memfd("holes", 1));
	ask_for_ids(_metadata, self->procmap, plain);
	EXPECT_EQ(kernel_gives_ids(variant->method), !!calls.ids_asked);
	/* Who knows the kernel may want its answer. */
	calls.ids_asked = 0;
	ASSERT_EQ(0, procmap_open_self(&options, &procmap));
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)plain, PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_TRUE(has_test_id(found));
	EXPECT_EQ(expected_method(variant->method) != PROCMAP_BY_TEXT, calls.ids_asked);
	procmap_close(procmap);
	options.flags = ~0u;
	EXPECT_EQ(-EINVAL, procmap_open_self(&options, &procmap));
	/* A kernel may have the scan, and mainline's query. */
	calls.hide_bound = true;
	calls.ids_asked = 0;
	ASSERT_EQ(0, procmap_open_self(BY(variant->method), &procmap));
	ask_for_ids(_metadata, procmap, plain);
	EXPECT_EQ(0, calls.ids_asked);
	procmap_close(procmap);
	calls.hide_bound = false;
}

static int open_path(struct procmap *procmap, const char *path, const char *content)
{
	char there[16] = "";
	struct procmap_file *file;
	int err;

	err = procmap_open_path(procmap, path, &file);
	if (err)
		return err;
	if (pread(procmap_file_fd(file), there, sizeof(there) - 1, 0) < 0 ||
	    strcmp(there, content))
		err = -EIO;
	procmap_close_file(file);
	return err;
}

/* Mount FUSE with a server that answers nothing. Returns its descriptor, or -1. */
static int mount_dead_server(const char *dir)
{
	const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[80];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	return fd < 0 || mount("none", dir, "fuse", 0, options) ? -1 : fd;
}

/* The ways to a file, of which some lead through a mount whose server is dead. */
static void check_ways(struct __test_metadata *_metadata, struct procmap *procmap,
		       const char *dir, void *const *maps)
{
	static const unsigned int expected[] = {
		0, PROCMAP_UNVERIFIED, PROCMAP_UNVERIFIED | PROCMAP_DELETED,
	};
	const struct procmap_mapping *found;
	char path[64];
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)maps[i], PROCMAP_WANT_DELETED,
					  &found));
		EXPECT_EQ(PROCMAP_READABLE | expected[i], found->flags);
	}
	snprintf(path, sizeof(path), "%s/good", dir);
	EXPECT_EQ(0, open_path(procmap, path, "good"));
	snprintf(path, sizeof(path), "%s/links/up", dir);
	EXPECT_EQ(0, open_path(procmap, path, "good"));
	snprintf(path, sizeof(path), "%s/links/absolute", dir);
	EXPECT_EQ(0, open_path(procmap, path, "good"));
	snprintf(path, sizeof(path), "%s/links/served", dir);
	EXPECT_EQ(-EREMOTE, open_path(procmap, path, ""));
	snprintf(path, sizeof(path), "%s/links/loop", dir);
	EXPECT_EQ(-ELOOP, open_path(procmap, path, ""));
	snprintf(path, sizeof(path), "%s/none/file", dir);
	EXPECT_EQ(-ENOENT, open_path(procmap, path, ""));
}

/* Its user, in a user namespace, or root has mounted it over files that are mapped. */
TEST_F(files, behind_a_server_that_is_dead)
{
	struct procmap_options options = {
		.size = sizeof(options), .method = variant->method,
		.flags = PROCMAP_NO_SERVERS,
	};
	static const int errors[] = { 0, EINVAL, ENOSYS };
	const struct procmap_mapping *found;
	struct procmap *procmap;
	int i, server, file;
	char target[64];
	void *maps[3];

	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	ASSERT_EQ(0, system("mkdir served links; ln -s ../served/file links/served; "
			    "ln -s ../links/../good links/up; ln -s loop links/loop"));
	snprintf(target, sizeof(target), "%s/good", self->dir);
	ASSERT_EQ(0, symlink(target, "links/absolute"));
	file = open("good", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ASSERT_EQ(4, write(file, "good", 4));
	close(file);
	maps[0] = map_path("good", 1);
	maps[1] = map_file("served", "file", NULL);
	maps[2] = map_file("served", "gone", NULL);
	ASSERT_EQ(0, unlink("served/gone"));
	server = mount_dead_server("served");
	if (server < 0)
		SKIP(return, "cannot mount FUSE");
	ASSERT_EQ(0, procmap_open_self(&options, &procmap));
	for (i = 0; i < 3; i++) {
		calls.openat2_errno = errors[i];
		check_ways(_metadata, procmap, self->dir, maps);
	}
	calls.openat2_errno = 0;
	/* The mount has gone. */
	close(server);
	ASSERT_EQ(0, umount2("served", MNT_DETACH));
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)maps[1], PROCMAP_WANT_DELETED, &found));
	EXPECT_EQ(PROCMAP_READABLE, found->flags);
	procmap_close(procmap);
}

/* In a chroot, a link leads to another file than outside. */
TEST_F(files, by_path_in_the_root_of_the_process)
{
	const struct open_how how = {};
	const int before = count_fds();
	struct procmap *procmap;
	struct child child;
	int file;

	if (geteuid())
		SKIP(return, "needs root");
	if (syscall(SYS_openat2, -1, "", &how, sizeof(how)) && errno == ENOSYS)
		SKIP(return, "no openat2");
	file = open(in(self->dir, "inside"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ASSERT_EQ(6, write(file, "inside", 6));
	close(file);
	ASSERT_EQ(0, symlink("/inside", in(self->dir, "absolute")));
	ASSERT_EQ(0, symlink("../../../../inside", in(self->dir, "upwards")));
	ASSERT_EQ(0, symlink("/proc/self/exe", in(self->dir, "magic")));
	ASSERT_EQ(0, mkfifo(in(self->dir, "fifo"), 0600));
	ASSERT_TRUE(start_child(&child, stay_in_root, self->dir) && await(child.control));
	ASSERT_EQ(0, procmap_open_pid(child.pid, BY(variant->method), &procmap));
	EXPECT_EQ(0, open_path(procmap, "/inside", "inside"));
	EXPECT_EQ(0, open_path(procmap, "absolute", "inside"));
	EXPECT_EQ(0, open_path(procmap, "/upwards", "inside"));
	EXPECT_EQ(-ENOENT, open_path(procmap, "/etc/passwd", ""));
	EXPECT_EQ(-ENOENT, open_path(procmap, "/magic", ""));
	EXPECT_EQ(-ENODEV, open_path(procmap, "/fifo", ""));
	EXPECT_EQ(-ENODEV, open_path(procmap, "/", ""));
	EXPECT_EQ(-EINVAL, procmap_open_path(procmap, NULL, NULL));
	stop_child(&child);
	procmap_close(procmap);
	EXPECT_EQ(before, count_fds());
}

TEST_HARNESS_MAIN
