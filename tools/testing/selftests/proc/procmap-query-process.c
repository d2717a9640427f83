// SPDX-License-Identifier: GPL-2.0
/*
 * Test who may use PROCMAP_QUERY on whom, that it shows all mappings of another process, and
 * that a target's address space is gone once it exits or executes another program.
 */
#include <poll.h>

#include "../kselftest_harness.h"
#include "procmap_util.h"

#define NOBODY		65534

static bool become_nobody(void)
{
	return !setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY);
}

/* Returns 0 if the target has its scene, or -errno. */
static int find_scene(int fd)
{
	struct procmap_query query;

	return query_fields(fd, start_of(FILE_R), 0, &query);
}

FIXTURE(target)
{
	struct child child;
	int fd;			/* its maps file */
};

FIXTURE_SETUP(target)
{
}

FIXTURE_TEARDOWN(target)
{
	stop_child(&self->child);
}

/* Start a target that maps the scene and notifies, and open its maps file. */
static void start_target(struct __test_metadata *const _metadata,
			 struct _test_data_target *self,
			 int (*run)(int control, void *arg), void *arg)
{
	ASSERT_TRUE(start_child(&self->child, run, arg));
	ASSERT_TRUE(await(self->child.control));
	self->fd = open_maps(self->child.pid);
	ASSERT_EQ(0, find_scene(self->fd));
}

TEST_F(target, is_shown_by_a_passed_file_to_who_may_not_open_it)
{
	int fd, status;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root");
	start_target(_metadata, self, keep_scene, NULL);
	pid = fork();
	if (!pid) {
		fd = become_nobody() ? open_maps(self->child.pid) : 0;
		_exit((fd != -EACCES && fd != -EPERM) || find_scene(self->fd));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* A zombie has no address space, though its directory in /proc is there. */
TEST_F(target, that_has_exited_is_esrch)
{
	siginfo_t info;

	start_target(_metadata, self, keep_scene, NULL);
	ASSERT_TRUE(notify(self->child.control));
	ASSERT_EQ(0, waitid(P_PID, self->child.pid, &info, WEXITED | WNOWAIT));
	EXPECT_EQ(-ESRCH, find_scene(self->fd));
	EXPECT_EQ(-ESRCH, find_scene(open_maps(self->child.pid)));

	ASSERT_EQ(0, end_of_child(&self->child));
	EXPECT_EQ(-ESRCH, find_scene(self->fd));
}

/* It has none, and never had one. kthreadd has pid 2. */
TEST_F(target, that_is_a_kernel_thread_is_esrch)
{
	char name[16];

	if (!read_file("/proc/2/comm", name, sizeof(name)) || strcmp(name, "kthreadd\n"))
		SKIP(return, "kthreadd is not visible here");
	self->fd = open_maps(2);
	if (self->fd == -EACCES)
		SKIP(return, "only root can open the maps of kthreadd");
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(-ESRCH, find_scene(self->fd));
}

/* After a change of user, even that user could not open its maps. */
static int be_nobody_that_executes(int control, void *arg)
{
	return !become_nobody() || prctl(PR_SET_DUMPABLE, 1) ? 1 :
	       keep_scene_and_execute(control, arg);
}

/* A reader who could open the target before must not see the new program. */
TEST_F(target, that_has_executed_a_setuid_program_is_esrch)
{
	const char *const missing = mount_scratch();
	struct stat program;
	char path[64];

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(run_in_shell("cp $(command -v cat) " SCRATCH "/cat && chmod 4755 "
				 SCRATCH "/cat") && !setenv("PATH", SCRATCH, true));
	ASSERT_TRUE(start_child(&self->child, be_nobody_that_executes, NULL));
	ASSERT_TRUE(await(self->child.control));
	ASSERT_TRUE(!setegid(NOBODY) && !seteuid(NOBODY));
	self->fd = open_maps(self->child.pid);
	ASSERT_EQ(0, find_scene(self->fd));

	ASSERT_TRUE(notify(self->child.control) && notify(self->child.control) &&
		    await(self->child.control));
	EXPECT_EQ(-ESRCH, find_scene(self->fd));
	snprintf(path, sizeof(path), "/proc/%d", self->child.pid);
	if (stat(path, &program) || program.st_uid)
		SKIP(return, "no setuid programs, with no_new_privs");
	EXPECT_EQ(-EACCES, open_maps(self->child.pid));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(-ENOENT, find_scene(open_maps(self->child.pid)));
}

/* Share the address space with another process, which tells its ID, and waits at @arg. */
static int be_shared(int control, void *arg)
{
	const int keep = *(int *)arg;
	pid_t pid;

	if (keep_scene(control, NULL) || vfork())
		return 1;
	pid = getpid();
	_exit(write(control, &pid, sizeof(pid)) != sizeof(pid) || !await(keep));
}

/* vfork(2) does not return before the other process is gone, but a signal ends it. */
TEST_F(target, that_shares_its_address_space_keeps_it_until_the_last_exits)
{
	struct pollfd end = { .events = POLLIN };
	int keep[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(keep));
	start_target(_metadata, self, be_shared, keep);
	ASSERT_TRUE(notify(self->child.control));
	ASSERT_EQ((ssize_t)sizeof(pid), read(self->child.control, &pid, sizeof(pid)));
	end.fd = syscall(SYS_pidfd_open, pid, 0);
	ASSERT_LE(0, end.fd);
	stop_child(&self->child);

	EXPECT_EQ(0, find_scene(self->fd));
	ASSERT_EQ(1, write(keep[1], "", 1));
	ASSERT_EQ(1, poll(&end, 1, 20000));
	EXPECT_EQ(-ESRCH, find_scene(self->fd));
}

/* From each mapping to the next, with its name. */
TEST_F(target, has_the_mappings_of_its_text)
{
	struct procmap_query query = {};
	const struct maps_line *line;
	char name[PATH_MAX];
	struct maps smaps;

	start_target(_metadata, self, keep_scene, NULL);
	ASSERT_EQ(0, read_smaps(self->child.pid, &smaps));
	for (line = smaps.lines; line < smaps.lines + smaps.nr; line++) {
		ASSERT_EQ(0, query_fields(self->fd, query.vma_end, QUERY_NEXT, &query));
		EXPECT_TRUE(same_fields(line, &query)) {
			TH_LOG("%#jx %s", (uintmax_t)line->start, line->name);
		}
		EXPECT_EQ(line->page_size, query.vma_page_size);
		*name = '\0';
		ASSERT_EQ(0, query_name(self->fd, line->end - 1, &query, name, sizeof(name)));
		EXPECT_TRUE(is_name(line, name));
	}
	EXPECT_EQ(-ENOENT, query_fields(self->fd, query.vma_end, QUERY_NEXT, &query));
}

TEST_HARNESS_MAIN
