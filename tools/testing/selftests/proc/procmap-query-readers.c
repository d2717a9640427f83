// SPDX-License-Identifier: GPL-2.0
/*
 * Test who may query whom with PROCMAP_QUERY; that a target's address space is
 * gone once it exits or executes another program; and that a reader which blocks
 * holds nothing of its target.
 */
#include <poll.h>

#include "procmap-blocked.h"
#include "procmap-exec.h"

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA

#define NOBODY	65534

#define STACK_SIZE	(64u << 10)

/* A target maps a page here. The kernel places nothing here by itself. */
#define MARK	0x20000000

static bool map_mark(void)
{
	void *const mark = (void *)MARK;

	return mmap(mark, page_size(), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		    0) == mark;
}

/* Returns 0 if the query finds the mark, or -errno. */
static int query_mark(int fd)
{
	struct procmap_query query;
	const int err = query_fields(fd, MARK, 0, &query);

	if (err)
		return err;
	return query.vma_start == MARK &&
	       query.vma_end == MARK + page_size() ? 0 : -EBADMSG;
}

/* Open and query. Returns 0, or the first error. */
static int open_and_query(pid_t pid)
{
	const int fd = open_maps(pid);
	struct procmap_query query;
	int err;

	if (fd < 0)
		return fd;
	err = query_fields(fd, 0, NEXT, &query);
	close(fd);
	return err;
}

/* Be another user from now on. */
static bool become(uid_t uid)
{
	return !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

/* Be another user for a while, and root again. */
static bool act_as(uid_t uid)
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

/* A target that executes @arg as soon as it hears. */
static int be_target_that_executes(int control, void *arg)
{
	if (!map_mark())
		return 1;
	notify(control);
	await(control);
	return execute(arg, control);
}

/* The same, as another user. */
static int be_nobody_that_executes(int control, void *arg)
{
	/* After a change of user, even that user could not open its maps. */
	if (!become(NOBODY) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	return be_target_that_executes(control, arg);
}

/* Readers of a living target. */
FIXTURE(reader)
{
	struct child target;
};

FIXTURE_SETUP(reader)
{
	ASSERT_TRUE(start_child(&self->target, be_target, NULL));
	ASSERT_TRUE(await(self->target.control));
}

FIXTURE_TEARDOWN(reader)
{
	stop_child(&self->target);
}

TEST_F(reader, may_be_the_process_itself)
{
	const int fd = open_maps(0);

	EXPECT_EQ(-ENOENT, query_mark(fd));
	ASSERT_TRUE(map_mark());
	EXPECT_EQ(0, query_mark(fd));
}

TEST_F(reader, may_be_another_process)
{
	const int fd = open_maps(self->target.pid);

	EXPECT_EQ(0, query_mark(fd));
}

/* Try to open the maps file of the process @arg as another user. */
static int be_refused(int control, void *arg)
{
	const pid_t *const pid = arg;
	int fd;

	if (!become(NOBODY))
		return 1;
	fd = open_maps(*pid);
	if (fd != -EACCES && fd != -EPERM)
		return 2;
	notify(control);

	/* Access is checked at open: a file opened by root can be queried. */
	fd = recv_fd(control);
	if (fd < 0)
		return 0;
	return query_mark(fd) ? 3 : 0;
}

TEST_F(reader, of_another_user_is_refused_at_open)
{
	struct child reader;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_TRUE(start_child(&reader, be_refused, &self->target.pid));
	EXPECT_TRUE(await(reader.control));
	stop_child(&reader);
}

TEST_F(reader, who_may_not_open_may_query_a_passed_fd)
{
	struct child reader;
	int fd;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_TRUE(start_child(&reader, be_refused, &self->target.pid));
	ASSERT_TRUE(await(reader.control));
	fd = open_maps(self->target.pid);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(send_fd(reader.control, fd));
	EXPECT_EQ(0, end_of_child(&reader));
}

TEST_F(reader, of_a_kernel_thread_gets_esrch)
{
	if (!sees_kthreadd())
		SKIP(return, "kthreadd is not visible here");
	EXPECT_EQ(-ESRCH, open_and_query(2));
}

/* A target that exits. */
FIXTURE(exit)
{
	struct child target;
	int fd;
};

FIXTURE_SETUP(exit)
{
	ASSERT_TRUE(start_child(&self->target, be_target, NULL));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, query_mark(self->fd));
}

FIXTURE_TEARDOWN(exit)
{
	stop_child(&self->target);
	close(self->fd);
}

TEST_F(exit, gives_esrch)
{
	ASSERT_TRUE(notify(self->target.control));
	ASSERT_EQ(0, end_of_child(&self->target));
	EXPECT_TRUE(is_gone(self->fd));
}

TEST_F(exit, by_a_signal_gives_esrch)
{
	stop_child(&self->target);
	EXPECT_TRUE(is_gone(self->fd));
}

/* A zombie has no address space, though its directory in /proc is there. */
TEST_F(exit, of_a_zombie_gives_esrch)
{
	siginfo_t info;

	ASSERT_TRUE(notify(self->target.control));
	ASSERT_EQ(0, waitid(P_PID, self->target.pid, &info,
			    WEXITED | WNOWAIT));
	EXPECT_TRUE(is_gone(self->fd));
	EXPECT_EQ(-ESRCH, open_and_query(self->target.pid));
}

/* A target that executes another program. */
FIXTURE(exec)
{
	struct child target;
	int fd;
};

FIXTURE_SETUP(exec)
{
}

FIXTURE_TEARDOWN(exec)
{
	stop_child(&self->target);
	close(self->fd);
}

TEST_F(exec, gives_esrch)
{
	ASSERT_TRUE(start_child(&self->target, be_target_that_executes,
				"/proc/self/exe"));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, query_mark(self->fd));

	ASSERT_TRUE(notify(self->target.control));
	ASSERT_EQ(geteuid(), hear_executed(self->target.control));
	EXPECT_TRUE(is_gone(self->fd));
	/* The process lives: opened anew, its file has other mappings. */
	EXPECT_EQ(0, open_and_query(self->target.pid));
	EXPECT_EQ(-ENOENT, query_mark(open_maps(self->target.pid)));
}

/* Make a copy of this program. */
static bool copy_program(const char *to, mode_t mode)
{
	const int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	char buffer[4096];
	ssize_t n = -1;

	if (in < 0 || out < 0)
		return false;
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, n) != n)
			return false;
	close(in);
	return !n && !fchmod(out, mode) && !close(out);
}

/* A reader who could open the target before must not see the new program. */
TEST_F(exec, of_a_setuid_program_gives_esrch)
{
	const char *const missing = mount_scratch();
	char path[] = SCRATCH "/program";
	uid_t uid;

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(copy_program(path, 04755));
	ASSERT_TRUE(start_child(&self->target, be_nobody_that_executes, path));
	ASSERT_TRUE(await(self->target.control));
	ASSERT_TRUE(act_as(NOBODY));
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, query_mark(self->fd));

	ASSERT_TRUE(notify(self->target.control));
	uid = hear_executed(self->target.control);
	ASSERT_NE((uid_t)-1, uid);
	EXPECT_TRUE(is_gone(self->fd));
	if (uid)
		SKIP(return, "no setuid programs, with no_new_privs");
	EXPECT_EQ(-EACCES, open_and_query(self->target.pid));
	ASSERT_TRUE(act_as(0));
	EXPECT_EQ(0, open_and_query(self->target.pid));
}

/*
 * A target that shares its address space with another process (CLONE_VM): its
 * file stays valid until the last of the two exits.
 */
struct shared {
	int keep[2];		/* a pipe that the sharer waits at */
	const char *program;	/* what the target executes, or NULL */
};

FIXTURE(sharer)
{
	struct child target;
	struct shared shared;
	int sharer;		/* pidfd */
	int fd;
};

static int share(void *arg)
{
	const int *const keep = arg;
	char byte;

	return read(keep[0], &byte, 1) == 1 ? 0 : 1;
}

/* A target that has a sharer, and then exits or executes a program. */
static int be_shared(int control, void *arg)
{
	struct shared *shared = arg;
	uint8_t *const stack = malloc(STACK_SIZE);
	pid_t pid;

	if (!stack || !map_mark())
		return 1;
	/* The sharer, too, ends with the test. */
	close(shared->keep[1]);
	pid = clone(share, stack + STACK_SIZE, CLONE_VM | SIGCHLD,
		    shared->keep);
	if (pid < 0 || write(control, &pid, sizeof(pid)) != sizeof(pid))
		return 1;
	await(control);
	return shared->program ? execute(shared->program, control) : 0;
}

FIXTURE_VARIANT(sharer)
{
	bool executes;
};

FIXTURE_VARIANT_ADD(sharer, of_a_target_that_exits) {
};

FIXTURE_VARIANT_ADD(sharer, of_a_target_that_executes) {
	.executes = true,
};

FIXTURE_SETUP(sharer)
{
	pid_t pid;

	if (variant->executes)
		self->shared.program = "/proc/self/exe";
	ASSERT_EQ(0, pipe(self->shared.keep));
	ASSERT_TRUE(start_child(&self->target, be_shared, &self->shared));
	ASSERT_EQ(sizeof(pid), (size_t)read(self->target.control, &pid,
					    sizeof(pid)));
	self->sharer = syscall(SYS_pidfd_open, pid, 0);
	ASSERT_LE(0, self->sharer);
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, query_mark(self->fd));

	ASSERT_TRUE(notify(self->target.control));
	ASSERT_TRUE(variant->executes ?
		    hear_executed(self->target.control) == geteuid() :
		    end_of_child(&self->target) == 0);
}

FIXTURE_TEARDOWN(sharer)
{
	stop_child(&self->target);
	close(self->sharer);
	close(self->fd);
}

TEST_F(sharer, keeps_the_address_space)
{
	struct pollfd end = { .fd = self->sharer, .events = POLLIN };

	EXPECT_EQ(0, query_mark(self->fd));
	ASSERT_EQ(1, write(self->shared.keep[1], "", 1));
	ASSERT_EQ(1, poll(&end, 1, 20000)) {
		TH_LOG("the sharer does not exit");
	}
	EXPECT_TRUE(is_gone(self->fd));
}

/* A target with a second thread. */
FIXTURE(thread)
{
	struct child target;
	pid_t tid;
};

static void *be_thread(void *arg)
{
	const int *const control = arg;
	const pid_t tid = syscall(SYS_gettid);

	if (write(*control, &tid, sizeof(tid)) == sizeof(tid))
		await(*control);
	return NULL;
}

static int be_threaded(int control, void *arg)
{
	pthread_t thread;

	(void)arg;
	if (!map_mark() || pthread_create(&thread, NULL, be_thread, &control) ||
	    pthread_join(thread, NULL))
		return 1;
	notify(control);
	await(control);
	return 0;
}

FIXTURE_SETUP(thread)
{
	ASSERT_TRUE(start_child(&self->target, be_threaded, NULL));
	ASSERT_EQ(sizeof(self->tid),
		  (size_t)read(self->target.control, &self->tid,
			       sizeof(self->tid)));
}

FIXTURE_TEARDOWN(thread)
{
	stop_child(&self->target);
}

static int open_task_maps(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", pid, tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

TEST_F(thread, file_answers)
{
	const pid_t tids[] = { self->target.pid, self->tid };
	struct procmap_query query;
	struct maps maps;
	unsigned int i;
	size_t line;
	int fd;

	for (i = 0; i < ARRAY_SIZE(tids); i++) {
		fd = open_task_maps(self->target.pid, tids[i]);
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, query_mark(fd));
		ASSERT_EQ(0, read_maps(fd, &maps));
		for (line = 0; line < maps.nr; line++) {
			const struct maps_line *const l = &maps.lines[line];

			ASSERT_EQ(0, query_fields(fd, l->start, 0, &query));
			EXPECT_TRUE(same_fields(l, &query));
		}
		EXPECT_LT(0u, maps.nr);
		free_maps(&maps);
		close(fd);
	}
}

TEST_F(thread, that_exits_leaves_the_address_space_to_the_others)
{
	const int fd = open_task_maps(self->target.pid, self->tid);

	ASSERT_LE(0, fd);
	ASSERT_TRUE(notify(self->target.control));
	ASSERT_TRUE(await(self->target.control));
	EXPECT_EQ(0, query_mark(fd));
	stop_child(&self->target);
	EXPECT_TRUE(is_gone(fd));
}

/* What a reader that blocks passes to its query: see procmap-blocked.h. */
enum buffer_page { QUERY_PAGE, NAME_PAGE, BUILD_ID_PAGE };

FIXTURE_VARIANT_ADD(blocked, at_reading_the_struct) {
	.page = QUERY_PAGE,
	.least = -ESRCH,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_name) {
	.page = NAME_PAGE,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_build_id) {
	.page = BUILD_ID_PAGE,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_struct) {
	.page = QUERY_PAGE,
	.write = true,
};

static bool map_file(int fd)
{
	void *const mark = (void *)MARK;

	return mmap(mark, page_size(), PROT_READ,
		    MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == mark;
}

static void prepare_call(struct __test_metadata *const _metadata,
			 struct blocked_call *call)
{
	struct procmap_query *const query = page_at(call, QUERY_PAGE);

	ASSERT_EQ(0, query_mark(call->fd));
	*query = (struct procmap_query) {
		.size = sizeof(*query),
		.query_addr = MARK,
		.vma_name_addr = (uintptr_t)page_at(call, NAME_PAGE),
		.vma_name_size = page_size(),
		.build_id_addr = (uintptr_t)page_at(call, BUILD_ID_PAGE),
		.build_id_size = page_size(),
	};
	call->command = PROCMAP_QUERY;
	call->full = 0;
}

static void check_answer(struct __test_metadata *const _metadata,
			 const struct blocked_call *call)
{
	const struct procmap_query *const query = page_at(call, QUERY_PAGE);
	const char *const name = page_at(call, NAME_PAGE);

	EXPECT_EQ((uint64_t)MARK, query->vma_start);
	EXPECT_EQ(MARK + page_size(), query->vma_end);
	EXPECT_STREQ(MAPPED_FILE, name);
	EXPECT_EQ(sizeof(MAPPED_FILE), query->vma_name_size);
	EXPECT_EQ(sizeof(build_id), query->build_id_size);
	EXPECT_EQ(0, memcmp(build_id, page_at(call, BUILD_ID_PAGE),
			    sizeof(build_id)));
}

TEST_HARNESS_MAIN
