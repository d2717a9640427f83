// SPDX-License-Identifier: GPL-2.0
/*
 * Test who may query whom with PROCMAP_QUERY, what a target that exits or
 * executes another program answers, and that a reader which blocks holds
 * nothing of its target.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../kselftest_harness.h"
#include "procmap-query.h"

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA

#define NOBODY	65534

#define STACK_SIZE	(64u << 10)

/* Where a target maps what readers look for, and so where nobody else does. */
#define MARK	0x20000000

/* What makes this program another one when it is executed, see below. */
#define BE_EXECUTED	"procmap-query-executed"

static const uint8_t build_id[20] = "the readers' file";

static bool map_mark(void)
{
	void *const mark = (void *)MARK;

	return mmap(mark, page_size(), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		    0) == mark;
}

/* Returns 0 if the mark is told, or -errno. */
static int query_mark(int fd)
{
	struct procmap_query query;
	const int err = query_fields(fd, MARK, 0, &query);

	if (err)
		return err;
	return query.vma_start == MARK &&
	       query.vma_end == MARK + page_size() ? 0 : -EBADMSG;
}

/* Whatever is asked of it, the address space has gone. */
static bool is_gone(int fd)
{
	struct procmap_query query;

	return query_mark(fd) == -ESRCH &&
	       query_fields(fd, 0, NEXT, &query) == -ESRCH;
}

/* Open and query, and return what went wrong first: 0 or -errno. */
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

/*
 * Hide what is in /tmp behind a new file system, from this process and the
 * children it will have alone. Nothing is left of it when they end.
 */
static bool mount_tmp(void)
{
	return !unshare(CLONE_NEWNS) &&
	       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
}

/*
 * A program that has been executed gets here before it gets to main(): it
 * tells on its standard output who it has become, and waits for its standard
 * input to end.
 */
static void __attribute__((constructor)) be_executed(int argc, char **argv)
{
	const uid_t uid = geteuid();
	char byte;

	if (argc != 2 || strcmp(argv[1], BE_EXECUTED))
		return;
	if (write(STDOUT_FILENO, &uid, sizeof(uid)) == sizeof(uid))
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
	_exit(0);
}

/* Become another program. @control is what it talks to. */
static int execute(const char *path, int control)
{
	dup2(control, STDIN_FILENO);
	dup2(control, STDOUT_FILENO);
	execl(path, "procmap-query", BE_EXECUTED, NULL);
	return 1;
}

/* Wait for the new program. Returns its effective uid, or -1. */
static uid_t hear_executed(int control)
{
	uid_t uid;

	if (read(control, &uid, sizeof(uid)) != sizeof(uid))
		return -1;
	return uid;
}

/* A target that waits to be ended. */
static int be_target(int control, void *arg)
{
	(void)arg;
	if (!map_mark())
		return 1;
	tell(control);
	hear(control);
	return 0;
}

/* A target that executes @arg when it is told. */
static int be_target_that_executes(int control, void *arg)
{
	if (!map_mark())
		return 1;
	tell(control);
	hear(control);
	return execute(arg, control);
}

/* The same, as another user. */
static int be_nobody_that_executes(int control, void *arg)
{
	/* A process that has changed its uid is no longer open to its own. */
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
	ASSERT_TRUE(hear(self->target.control));
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

/* Open the maps file of the process @arg as another user, and fail. */
static int be_refused(int control, void *arg)
{
	const pid_t *const pid = arg;
	int fd;

	if (!become(NOBODY))
		return 1;
	fd = open_maps(*pid);
	if (fd != -EACCES && fd != -EPERM)
		return 2;
	tell(control);

	/* What was opened by somebody else answers all the same. */
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
	EXPECT_TRUE(hear(reader.control));
	stop_child(&reader);
}

TEST_F(reader, who_may_not_open_may_query_a_passed_fd)
{
	struct child reader;
	int fd;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_TRUE(start_child(&reader, be_refused, &self->target.pid));
	ASSERT_TRUE(hear(reader.control));
	fd = open_maps(self->target.pid);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(send_fd(reader.control, fd));
	EXPECT_EQ(0, end_of_child(&reader));
}

TEST_F(reader, of_a_kernel_thread_gets_esrch)
{
	char line[64] = "";
	FILE *const file = fopen("/proc/2/status", "re");

	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (strcmp(line, "Name:\tkthreadd\n"))
		SKIP(return, "kthreadd is not to be seen here");
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
	ASSERT_TRUE(hear(self->target.control));
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
	ASSERT_TRUE(tell(self->target.control));
	ASSERT_EQ(0, end_of_child(&self->target));
	EXPECT_TRUE(is_gone(self->fd));
}

TEST_F(exit, by_a_signal_gives_esrch)
{
	stop_child(&self->target);
	EXPECT_TRUE(is_gone(self->fd));
}

TEST_F(exit, of_a_zombie_gives_esrch)
{
	siginfo_t info;

	ASSERT_TRUE(tell(self->target.control));
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
	ASSERT_TRUE(hear(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, query_mark(self->fd));

	ASSERT_TRUE(tell(self->target.control));
	ASSERT_EQ(geteuid(), hear_executed(self->target.control));
	EXPECT_TRUE(is_gone(self->fd));
	/* It lives, for those who open anew, and has no mark. */
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

TEST_F(exec, of_a_setuid_program_gives_esrch)
{
	char path[] = "/tmp/program";
	uid_t uid;

	if (geteuid() || !mount_tmp())
		SKIP(return, "needs root, to mount a file system");
	ASSERT_TRUE(copy_program(path, 04755));
	ASSERT_TRUE(start_child(&self->target, be_nobody_that_executes, path));
	ASSERT_TRUE(hear(self->target.control));
	ASSERT_TRUE(act_as(NOBODY));
	self->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, query_mark(self->fd));

	ASSERT_TRUE(tell(self->target.control));
	uid = hear_executed(self->target.control);
	ASSERT_NE((uid_t)-1, uid);
	EXPECT_TRUE(is_gone(self->fd));
	if (uid)
		SKIP(return, "no setuid programs, with no_new_privs");
	EXPECT_EQ(-EACCES, open_and_query(self->target.pid));
	ASSERT_TRUE(act_as(0));
	EXPECT_EQ(0, open_and_query(self->target.pid));
}

/* A target whose address space is also that of another process. */
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

/* A target that has a sharer, and exits or executes a program when told. */
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
	hear(control);
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

	ASSERT_TRUE(tell(self->target.control));
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
	ASSERT_EQ(1, poll(&end, 1, -1));
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
		hear(*control);
	return NULL;
}

static int be_threaded(int control, void *arg)
{
	pthread_t thread;

	(void)arg;
	if (!map_mark() || pthread_create(&thread, NULL, be_thread, &control) ||
	    pthread_join(thread, NULL))
		return 1;
	tell(control);
	hear(control);
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
	ASSERT_TRUE(tell(self->target.control));
	ASSERT_TRUE(hear(self->target.control));
	EXPECT_EQ(0, query_mark(fd));
	stop_child(&self->target);
	EXPECT_TRUE(is_gone(fd));
}

/*
 * A reader that blocks in the middle of its query, since one of the pages that
 * it gave for the answer is behind userfaultfd. The target has mapped a file
 * of a file system that nobody else uses.
 */
#define MAPPED_FILE	"/tmp/file"

enum buffer_page { QUERY_PAGE, NAME_PAGE, BUILD_ID_PAGE, NR_PAGES };

/* Such a reader: the pages, what they hold as a copy, and one to block at. */
struct reader {
	int fd;			/* the target's maps file */
	int uffd;
	uint8_t *pages;
	uint8_t *copies;
	enum buffer_page page;
	bool write;		/* it blocks only on writing to the page */
	pthread_t thread;
	int err;		/* what the query ended with */
};

FIXTURE(blocked_reader)
{
	const char *unsupported;	/* why this cannot be tested here */
	struct child target;
	struct reader reader;
};

FIXTURE_VARIANT(blocked_reader)
{
	enum buffer_page page;
	bool write;
	bool early;	/* it blocks before it has looked at the target */
};

FIXTURE_VARIANT_ADD(blocked_reader, at_reading_the_struct) {
	.page = QUERY_PAGE,
	.early = true,
};

FIXTURE_VARIANT_ADD(blocked_reader, at_writing_the_name) {
	.page = NAME_PAGE,
};

FIXTURE_VARIANT_ADD(blocked_reader, at_writing_the_build_id) {
	.page = BUILD_ID_PAGE,
};

FIXTURE_VARIANT_ADD(blocked_reader, at_writing_the_struct) {
	.page = QUERY_PAGE,
	.write = true,
};

/* Map the file, and now and then something else for a moment. */
static int be_mapper(int control, void *arg)
{
	void *const mark = (void *)MARK;
	const int fd = open(MAPPED_FILE, O_RDONLY);
	void *other;

	(void)arg;
	if (fd < 0 || mmap(mark, page_size(), PROT_READ,
			   MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) != mark)
		return 1;
	close(fd);
	tell(control);
	while (hear(control)) {
		other = mmap(NULL, page_size(), PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (other == MAP_FAILED || munmap(other, page_size()))
			return 1;
		tell(control);
	}
	return 0;
}

/* Make the file that the target maps. */
static bool make_file(void)
{
	const int fd = open(MAPPED_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	const bool made = write_elf(fd, build_id);

	close(fd);
	return made;
}

/* Open userfaultfd. Returns why it cannot be used, or NULL. */
static const char *open_uffd(struct reader *reader)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = reader->write ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0,
	};

	reader->uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (reader->uffd < 0)
		return "no userfaultfd, CONFIG_USERFAULTFD";
	if (ioctl(reader->uffd, UFFDIO_API, &api))
		return "userfaultfd cannot protect memory from writing";
	return NULL;
}

/* Write the question to its page, and keep a copy. */
static bool make_pages(struct reader *reader)
{
	const size_t size = NR_PAGES * page_size();
	struct procmap_query *query;

	reader->pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reader->pages == MAP_FAILED)
		return false;
	reader->copies = reader->pages + size;

	memset(reader->pages, 0, size);
	query = (void *)reader->pages;
	query->size = sizeof(*query);
	query->query_addr = MARK;
	query->vma_name_addr = (uintptr_t)reader->pages +
			       NAME_PAGE * page_size();
	query->vma_name_size = page_size();
	query->build_id_addr = (uintptr_t)reader->pages +
			       BUILD_ID_PAGE * page_size();
	query->build_id_size = page_size();
	memcpy(reader->copies, reader->pages, size);
	return true;
}

static bool protect_page(const struct reader *reader, bool protect)
{
	struct uffdio_writeprotect arg = {
		.range.start = (uintptr_t)reader->pages +
			       reader->page * page_size(),
		.range.len = page_size(),
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(reader->uffd, UFFDIO_WRITEPROTECT, &arg);
}

/* Let the page be missing, or be protected from writing. */
static bool watch_page(const struct reader *reader)
{
	uint8_t *const page = reader->pages + reader->page * page_size();
	struct uffdio_register arg = {
		.range.start = (uintptr_t)page,
		.range.len = page_size(),
		.mode = reader->write ? UFFDIO_REGISTER_MODE_WP :
					UFFDIO_REGISTER_MODE_MISSING,
	};

	if (ioctl(reader->uffd, UFFDIO_REGISTER, &arg))
		return false;
	if (reader->write)
		return protect_page(reader, true);
	return !madvise(page, page_size(), MADV_DONTNEED);
}

/* Let the page have the content that it had. */
static bool serve_page(const struct reader *reader)
{
	const size_t offset = reader->page * page_size();
	struct uffdio_copy arg = {
		.dst = (uintptr_t)reader->pages + offset,
		.src = (uintptr_t)reader->copies + offset,
		.len = page_size(),
	};

	if (reader->write)
		return protect_page(reader, false);
	return !ioctl(reader->uffd, UFFDIO_COPY, &arg);
}

/* Wait until somebody blocks at the page. */
static bool is_blocked(const struct reader *reader)
{
	struct uffd_msg message;

	return read(reader->uffd, &message, sizeof(message)) ==
		       sizeof(message) &&
	       message.event == UFFD_EVENT_PAGEFAULT &&
	       (message.arg.pagefault.address & -page_size()) ==
		       (uintptr_t)reader->pages + reader->page * page_size();
}

static void *be_reader(void *arg)
{
	struct reader *reader = arg;

	reader->err = procmap_query(reader->fd, (void *)reader->pages);
	return NULL;
}

FIXTURE_SETUP(blocked_reader)
{
	struct reader *reader = &self->reader;

	reader->page = variant->page;
	reader->write = variant->write;
	self->unsupported = geteuid() || !mount_tmp() ?
			    "needs root, to mount a file system" :
			    open_uffd(reader);
	if (self->unsupported)
		return;
	ASSERT_TRUE(make_file());
	ASSERT_TRUE(start_child(&self->target, be_mapper, NULL));
	ASSERT_TRUE(hear(self->target.control));
	reader->fd = open_maps(self->target.pid);
	ASSERT_EQ(0, query_mark(reader->fd));

	ASSERT_TRUE(make_pages(reader));
	ASSERT_TRUE(watch_page(reader));
	ASSERT_EQ(0, pthread_create(&reader->thread, NULL, be_reader, reader));
	ASSERT_TRUE(is_blocked(reader));
}

FIXTURE_TEARDOWN(blocked_reader)
{
	stop_child(&self->target);
}

/* Let the reader go on, and see that it got the right answer, or @err. */
static void unblock(struct __test_metadata *const _metadata,
		    struct reader *reader, int err)
{
	const struct procmap_query *const query = (void *)reader->pages;
	const uint8_t *const id = reader->pages + BUILD_ID_PAGE * page_size();
	const char *const name = (char *)reader->pages +
				 NAME_PAGE * page_size();

	ASSERT_TRUE(serve_page(reader));
	ASSERT_EQ(0, pthread_join(reader->thread, NULL));
	ASSERT_EQ(err, reader->err);
	if (err)
		return;
	EXPECT_EQ((uint64_t)MARK, query->vma_start);
	EXPECT_EQ(MARK + page_size(), query->vma_end);
	EXPECT_STREQ(MAPPED_FILE, name);
	EXPECT_EQ(sizeof(MAPPED_FILE), query->vma_name_size);
	EXPECT_EQ(sizeof(build_id), query->build_id_size);
	EXPECT_EQ(0, memcmp(build_id, id, sizeof(build_id)));
}

TEST_F(blocked_reader, lets_the_target_change_its_mappings)
{
	if (self->unsupported)
		SKIP(return, "%s", self->unsupported);
	ASSERT_TRUE(tell(self->target.control));
	EXPECT_TRUE(hear(self->target.control));
	unblock(_metadata, &self->reader, 0);
}

TEST_F(blocked_reader, lets_the_address_space_go_at_exit)
{
	if (self->unsupported)
		SKIP(return, "%s", self->unsupported);
	ASSERT_EQ(0, query_mark(self->reader.fd));
	stop_child(&self->target);
	EXPECT_TRUE(is_gone(self->reader.fd));
	unblock(_metadata, &self->reader, variant->early ? -ESRCH : 0);
}

TEST_F(blocked_reader, lets_the_file_system_go_at_exit)
{
	if (self->unsupported)
		SKIP(return, "%s", self->unsupported);
	ASSERT_EQ(-1, umount2("/tmp", 0));
	ASSERT_EQ(EBUSY, errno);
	stop_child(&self->target);
	EXPECT_EQ(0, umount2("/tmp", 0));
	unblock(_metadata, &self->reader, variant->early ? -ESRCH : 0);
}

TEST_HARNESS_MAIN
