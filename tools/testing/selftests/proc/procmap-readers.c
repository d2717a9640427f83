// SPDX-License-Identifier: GPL-2.0
/*
 * Test who may use PROCMAP_QUERY and PROCMAP_SCAN on whom, and that a target's
 * address space is gone once it exits or executes another program.
 */
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "procmap-query.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

#define NOBODY	65534

#define STACK_SIZE	(64u << 10)

/* A target maps a page here. The kernel places nothing here by itself. */
#define MARK	0x20000000

/*
 * An ioctl that looks for the mark, or for any mapping. Returns 0, or -errno. No
 * mapping is -ENOENT, one that is not the mark -EBADMSG.
 */
typedef int find_t(int fd, bool any);

static int find_by_query(int fd, bool any)
{
	struct procmap_query query;
	const int err = any ?
		query_fields(fd, 0, PROCMAP_QUERY_COVERING_OR_NEXT_VMA, &query) :
		query_fields(fd, MARK, 0, &query);

	if (err || any)
		return err;
	return query.vma_start == MARK &&
	       query.vma_end == MARK + page_size() ? 0 : -EBADMSG;
}

#ifdef HAVE_PROCMAP_SCAN
static int find_by_scan(int fd, bool any)
{
	struct procmap_vma vma;
	const struct room room = { .vec = &vma, .vec_len = 1 };
	struct procmap_scan_arg arg = any ?
		scan_arg(&room, 0, NO_END, 0) :
		scan_arg(&room, MARK, MARK + page_size(), 0);
	const int nr = procmap_scan(fd, &arg);

	if (nr < 1)
		return nr ?: -ENOENT;
	return any || (vma.start == MARK && vma.end == MARK + page_size()) ?
	       0 : -EBADMSG;
}
#endif

static bool map_mark(void)
{
	void *const mark = (void *)MARK;

	return mmap(mark, page_size(), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		    0) == mark;
}

/*
 * A target that executes another program: this one itself, which then reports that it
 * runs, and as whom, and waits.
 */

/* The argument by which an executed program knows itself. */
#define BE_EXECUTED	"procmap-executed"

/*
 * This runs before main(). The executed program writes its user to its standard
 * output, and exits when its standard input ends.
 */
static void __attribute__((constructor)) be_executed(int argc, char **argv)
{
	const uid_t uid = geteuid();

	if (argc != 2 || strcmp(argv[1], BE_EXECUTED))
		return;
	if (write(STDOUT_FILENO, &uid, sizeof(uid)) == sizeof(uid))
		await(STDIN_FILENO);
	_exit(0);
}

/* Become another program, at the other end of @control. */
static int execute_self(const char *path, int control)
{
	dup2(control, STDIN_FILENO);
	dup2(control, STDOUT_FILENO);
	execl(path, "procmap", BE_EXECUTED, NULL);
	return 1;
}

/* Wait until the new program runs. Returns its effective uid, or -1. */
static uid_t wait_for_executed(int control)
{
	uid_t uid;

	if (read(control, &uid, sizeof(uid)) != sizeof(uid))
		return -1;
	return uid;
}

/* Be another user from now on. */
static bool become_user(uid_t uid)
{
	return !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

/* Be another user for a while, and root again. */
static bool act_as_user(uid_t uid)
{
	return !seteuid(0) && !setegid(uid) && !seteuid(uid);
}

/* A target that waits to be ended. */
static int be_target(int control, void *arg)
{
	(void)arg;
	if (!map_mark())
		return 1;
	notify(control);
	await(control);
	return 0;
}

/* A target of another user that executes @arg as soon as it hears. */
static int be_nobody_that_executes(int control, void *arg)
{
	/* After a change of user, even that user could not open its maps. */
	if (!become_user(NOBODY) || prctl(PR_SET_DUMPABLE, 1) ||
	    be_target(control, NULL))
		return 1;
	return execute_self(arg, control);
}

FIXTURE(reader)
{
	find_t *find;
	struct child target;
	int fd;			/* the target's maps file */
};

FIXTURE_VARIANT(reader)
{
	find_t *find;
};

FIXTURE_VARIANT_ADD(reader, query) { find_by_query };
#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(reader, scan) { find_by_scan };
#endif

FIXTURE_SETUP(reader)
{
#ifdef HAVE_PROCMAP_SCAN
	if (variant->find == find_by_scan)
		skip_without_scan(_metadata);
#endif
	self->find = variant->find;
	self->fd = -1;
}

FIXTURE_TEARDOWN(reader)
{
	stop_child(&self->target);
	close(self->fd);
}

/* Start a target and open its maps file. */
static void start_target(struct __test_metadata *const _metadata,
			 struct _test_data_reader *self,
			 int (*run)(int control, void *arg), void *arg)
{
	ASSERT_TRUE(start_child(&self->target, run, arg));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, self->find(self->fd, false));
}

/* Wherever it looks, the address space is gone. */
static bool mm_is_gone(const struct _test_data_reader *self)
{
	return self->find(self->fd, false) == -ESRCH &&
	       self->find(self->fd, true) == -ESRCH;
}

/* Open the target's maps file anew and look for any mapping. */
static int open_and_find(const struct _test_data_reader *self, pid_t pid)
{
	const int fd = open_maps(pid);
	const int err = fd < 0 ? fd : self->find(fd, true);

	close(fd);
	return err;
}

/* Try to open the target's maps file as another user, and use a passed one. */
static int be_refused(int control, void *arg)
{
	const struct _test_data_reader *const self = arg;
	int fd;

	if (!become_user(NOBODY))
		return 1;
	fd = open_maps(self->target.pid);
	if (fd != -EACCES && fd != -EPERM)
		return 2;
	fd = recv_fd(control);
	return fd >= 0 && !self->find(fd, false) ? 0 : 3;
}

TEST_F(reader, who_may_not_open_the_file_may_use_one_that_is_passed)
{
	struct child refused;

	if (geteuid())
		SKIP(return, "needs root");
	start_target(_metadata, self, be_target, NULL);
	/* It has no copy of the opened file. */
	close(self->fd);
	ASSERT_TRUE(start_child(&refused, be_refused, self));
	self->fd = open_maps(self->target.pid);
	ASSERT_TRUE(send_fd(refused.control, self->fd));
	EXPECT_EQ(0, end_of_child(&refused));
}

/* A zombie has no address space, though its directory in /proc is there. */
TEST_F(reader, of_a_target_that_has_exited_gets_esrch)
{
	siginfo_t info;

	start_target(_metadata, self, be_target, NULL);
	ASSERT_TRUE(notify(self->target.control));
	ASSERT_EQ(0, waitid(P_PID, self->target.pid, &info,
			    WEXITED | WNOWAIT));
	EXPECT_TRUE(mm_is_gone(self));
	EXPECT_EQ(-ESRCH, open_and_find(self, self->target.pid));

	ASSERT_EQ(0, end_of_child(&self->target));
	EXPECT_TRUE(mm_is_gone(self));
}

/* It has none, and never had one. kthreadd has pid 2. */
TEST_F(reader, of_a_kernel_thread_gets_esrch)
{
	char name[16];

	if (!read_file("/proc/2/comm", name, sizeof(name)) ||
	    strcmp(name, "kthreadd\n"))
		SKIP(return, "kthreadd is not visible here");
	self->fd = open_maps(2);
	if (self->fd == -EACCES)
		SKIP(return, "only root can open the maps of kthreadd");
	ASSERT_LE(0, self->fd);
	EXPECT_TRUE(mm_is_gone(self));
}

/* A reader who could open the target before must not see the new program. */
TEST_F(reader, of_a_target_that_has_executed_a_setuid_program_gets_esrch)
{
	const char *const missing = mount_scratch();
	char path[] = SCRATCH "/program", command[128];
	uid_t uid;

	if (missing)
		SKIP(return, "%s", missing);
	snprintf(command, sizeof(command),
		 "cp /proc/%d/exe %s && chmod 4755 %s", getpid(), path, path);
	ASSERT_EQ(0, system(command));
	ASSERT_TRUE(start_child(&self->target, be_nobody_that_executes, path));
	ASSERT_TRUE(await(self->target.control));
	ASSERT_TRUE(act_as_user(NOBODY));
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, self->find(self->fd, false));

	ASSERT_TRUE(notify(self->target.control));
	uid = wait_for_executed(self->target.control);
	ASSERT_NE((uid_t)-1, uid);
	EXPECT_TRUE(mm_is_gone(self));
	if (uid)
		SKIP(return, "no setuid programs, with no_new_privs");
	EXPECT_EQ(-EACCES, open_and_find(self, self->target.pid));
	ASSERT_TRUE(act_as_user(0));
	EXPECT_EQ(0, open_and_find(self, self->target.pid));
}

/*
 * A target that shares its address space with another process (CLONE_VM): its
 * file stays valid until the last of the two exits.
 */
static int be_sharer(void *arg)
{
	const int *const keep = arg;
	char byte;

	return read(keep[0], &byte, 1) == 1 ? 0 : 1;
}

/* @arg: a pipe that the sharer waits at. Reports its pid once it is to go. */
static int be_shared(int control, void *arg)
{
	const int *const keep = arg;
	uint8_t *const stack = malloc(STACK_SIZE);
	pid_t pid;

	/* The sharer, too, ends with the test. */
	close(keep[1]);
	if (!stack || be_target(control, NULL))
		return 1;
	pid = clone(be_sharer, stack + STACK_SIZE, CLONE_VM | SIGCHLD, arg);
	return pid < 0 || write(control, &pid, sizeof(pid)) != sizeof(pid) ||
	       !await(control);
}

TEST_F(reader, of_a_shared_address_space_keeps_it_when_one_exits)
{
	struct pollfd end = { .events = POLLIN };
	int keep[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(keep));
	start_target(_metadata, self, be_shared, keep);
	ASSERT_TRUE(notify(self->target.control));
	ASSERT_EQ((ssize_t)sizeof(pid),
		  read(self->target.control, &pid, sizeof(pid)));
	end.fd = syscall(SYS_pidfd_open, pid, 0);
	ASSERT_LE(0, end.fd);
	ASSERT_TRUE(notify(self->target.control));
	ASSERT_EQ(0, end_of_child(&self->target));

	EXPECT_EQ(0, self->find(self->fd, false));
	ASSERT_EQ(1, write(keep[1], "", 1));
	ASSERT_EQ(1, poll(&end, 1, 20000)) {
		TH_LOG("the sharer does not exit");
	}
	EXPECT_TRUE(mm_is_gone(self));
}

static void *be_thread(void *arg)
{
	const int *const control = arg;
	const pid_t tid = syscall(SYS_gettid);

	if (write(*control, &tid, sizeof(tid)) == sizeof(tid))
		await(*control);
	return NULL;
}

/* A target with a second thread, which reports its tid, and exits when it hears. */
static int be_threaded(int control, void *arg)
{
	pthread_t thread;

	(void)arg;
	if (!map_mark() || !notify(control) ||
	    pthread_create(&thread, NULL, be_thread, &control) ||
	    pthread_join(thread, NULL))
		return 1;
	notify(control);
	await(control);
	return 0;
}

TEST_F(reader, may_open_the_file_of_a_thread)
{
	char path[64];
	pid_t tid;

	start_target(_metadata, self, be_threaded, NULL);
	close(self->fd);
	ASSERT_EQ((ssize_t)sizeof(tid),
		  read(self->target.control, &tid, sizeof(tid)));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", self->target.pid,
		 tid);
	self->fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, self->find(self->fd, false));

	/* The thread leaves the address space to the others. */
	ASSERT_TRUE(notify(self->target.control));
	ASSERT_TRUE(await(self->target.control));
	EXPECT_EQ(0, self->find(self->fd, false));
	stop_child(&self->target);
	EXPECT_TRUE(mm_is_gone(self));
}

TEST_HARNESS_MAIN
