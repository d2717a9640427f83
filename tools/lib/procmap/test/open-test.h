/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: handles and files that are opened by a descriptor or a path.
 */
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
