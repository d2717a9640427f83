/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: handles and files that are opened by a descriptor or a path.
 */
#include <sys/sendfile.h>

static int open_pidfd(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

static bool has_first_line(struct procmap *procmap, const struct maps *maps)
{
	const struct procmap_mapping *found;

	return !procmap_find(procmap, maps->lines[0].start, 0, &found) &&
	       is_as_line(found, &maps->lines[0]);
}

TEST_F(scene, opened_by_its_pidfd)
{
	const int pidfd = open_pidfd(self->child.pid);
	const int before = count_fds();
	struct procmap *procmap;

	if (pidfd < 0)
		SKIP(return, "no pidfd");
	ASSERT_EQ(0, procmap_open_pidfd(pidfd, BY(variant->method), &procmap));
	EXPECT_TRUE(has_first_line(procmap, &self->maps));
	procmap_close(procmap);
	EXPECT_EQ(-EINVAL, procmap_open_pidfd(pidfd, NULL, NULL));
	EXPECT_EQ(-EBADF, procmap_open_pidfd(-1, NULL, &procmap));
	EXPECT_EQ(-EBADF, procmap_open_pidfd(self->child.control, NULL, &procmap));
	EXPECT_EQ(-ENOENT, procmap_open_pidfd(pidfd, &(const struct procmap_options) {
			.size = sizeof(struct procmap_options), .proc = "/none" }, &procmap));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_open_pidfd(pidfd, NULL, &procmap));
	EXPECT_EQ(before, count_fds() + 1);	/* that to control the child */
	close(pidfd);
}

/* All that a handle by ID can. */
TEST_F(scene, opened_by_its_directory)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	char path[32];
	int dir, file;

	snprintf(path, sizeof(path), "/proc/%d", self->child.pid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT_EQ(0, procmap_open_fd(dir, BY(variant->method), &procmap));
	close(dir);
	EXPECT_TRUE(has_first_line(procmap, &self->maps));
	ASSERT_EQ(0, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT | PROCMAP_FILE_BACKED,
				  &found));
	file = open_file(procmap, found);
	EXPECT_LE(0, file);
	close(file);
	ASSERT_TRUE(execute(&self->child));
	EXPECT_EQ(-ESTALE, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT, &found));
	EXPECT_EQ(0, procmap_reopen(procmap));
	procmap_close(procmap);
}

/* Mappings, and what the kernel says of their files. */
TEST_F(scene, opened_by_its_maps_file)
{
	const int maps = open_maps(self->child.pid);
	const struct procmap_mapping *found;
	struct procmap *procmap;

	ASSERT_EQ(0, procmap_open_fd(maps, BY(variant->method), &procmap));
	close(maps);
	EXPECT_TRUE(has_first_line(procmap, &self->maps));
	ASSERT_EQ(0, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT | PROCMAP_FILE_BACKED |
				  PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_DELETED |
				  PROCMAP_WANT_PAGE_SIZE, &found));
	EXPECT_FALSE(found->flags & PROCMAP_DELETED);
	if (procmap_get_method(procmap) == PROCMAP_BY_TEXT) {
		EXPECT_EQ(-ENODEV, found->build_id_size);
		EXPECT_EQ(0, found->page_size);
	} else {
		EXPECT_LT(0, found->build_id_size);
		EXPECT_EQ(PAGE, found->page_size);
	}
	EXPECT_EQ(-ENODEV, open_file(procmap, found));
	EXPECT_EQ(-EINVAL, procmap_reopen(procmap));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT, &found));
	procmap_close(procmap);
}

TEST(what_is_no_maps_file_is_not_opened)
{
	const int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	const int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	const struct procmap_mapping *found;
	struct procmap *procmap;

	EXPECT_EQ(-EINVAL, procmap_open_fd(file, NULL, &procmap));
	EXPECT_EQ(-EBADF, procmap_open_fd(-1, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_fd(status, NULL, NULL));
	ASSERT_EQ(0, procmap_open_fd(status, BY(PROCMAP_BY_TEXT), &procmap));
	EXPECT_EQ(-EBADMSG, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT, &found));
	procmap_close(procmap);
	close(file);
	close(status);
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

/* In a chroot, a link leads to another file than outside. */
TEST_F(files, by_path_in_the_root_of_the_process)
{
	struct child child = { .pid = -1 };
	struct procmap *procmap;
	const int before = count_fds();
	int file;

	if (geteuid())
		SKIP(return, "needs root");
	file = open(in(self->dir, "inside"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ASSERT_EQ(6, write(file, "inside", 6));
	close(file);
	ASSERT_EQ(0, symlink("/inside", in(self->dir, "absolute")));
	ASSERT_EQ(0, symlink("../../../../inside", in(self->dir, "upwards")));
	ASSERT_EQ(0, symlink("/proc/self/exe", in(self->dir, "magic")));
	ASSERT_EQ(0, mkfifo(in(self->dir, "fifo"), 0600));
	ASSERT_TRUE(start_child(&child, wait_in_chroot, self->dir));
	ASSERT_TRUE(await(child.control));
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

/* A library that is stored in an archive, with a page in front of it. */
TEST_F(files, elf_file_in_an_archive)
{
	struct procmap_mapping mapping = { .flags = PROCMAP_READABLE };
	uint8_t id[PROCMAP_BUILD_ID_MAX], in_archive[PROCMAP_BUILD_ID_MAX];
	struct procmap_file *alone, *archive;
	const struct procmap_mapping *found;
	uint64_t address, expected;
	void *const map = map_loads(self->dir, ET_DYN);
	int fd;

	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, 0, &found));
	ASSERT_EQ(0, procmap_open_file(self->procmap, found, NULL, &alone));
	fd = open(in(self->dir, "archive"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ASSERT_EQ(PAGE, lseek(fd, PAGE, SEEK_SET));
	ASSERT_LT(0, sendfile(fd, procmap_file_fd(alone), &(off_t) { 0 }, 1 << 20));
	ASSERT_EQ(0, procmap_open_file_fd(fd, &archive));
	close(fd);

	EXPECT_EQ(0, procmap_file_build_id(archive, in_archive));
	EXPECT_EQ(-ENOEXEC, procmap_file_address(archive, PAGE, &address));
	EXPECT_EQ(-ENOEXEC, procmap_file_set_begin(archive, 0));
	EXPECT_EQ(-ENOEXEC, procmap_file_set_begin(archive, PAGE + 8));
	EXPECT_EQ(-ENOEXEC, procmap_file_set_begin(archive, UINT64_MAX));
	EXPECT_EQ(-EINVAL, procmap_file_set_begin(NULL, 0));
	EXPECT_EQ(0, procmap_file_set_begin(alone, 0));
	ASSERT_EQ(0, procmap_file_set_begin(archive, PAGE));

	EXPECT_EQ(procmap_file_build_id(alone, id), procmap_file_build_id(archive, in_archive));
	ASSERT_EQ(0, procmap_file_address(alone, 0x1c00, &expected));
	ASSERT_EQ(0, procmap_file_address(archive, PAGE + 0x1c00, &address));
	EXPECT_EQ(expected, address);
	EXPECT_EQ(-ENOENT, procmap_file_address(archive, 0x10, &address));
	mapping.end = 0x2000;
	mapping.offset = PAGE + 0x1000;
	ASSERT_EQ(0, procmap_file_mapped_address(archive, &mapping, 0x10, &address));
	mapping.offset = 0x1000;
	ASSERT_EQ(0, procmap_file_mapped_address(alone, &mapping, 0x10, &expected));
	EXPECT_EQ(expected, address);
	mapping.offset = 0;
	EXPECT_EQ(-ENOENT, procmap_file_mapped_address(archive, &mapping, 0x10, &address));
	procmap_close_file(alone);
	procmap_close_file(archive);
}
