// SPDX-License-Identifier: GPL-2.0
/*
 * Test how PROCMAP_QUERY and PROCMAP_SCAN wait for the mmap_lock of the target:
 * killable, not interrupted by other signals, and with per-VMA locks only for a
 * writer of the same VMA; and for how many VMAs they hold that lock.
 */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

#include "kselftest_harness.h"
#include "stress_util.h"

/* The device of the module in lock-holder/, which holds that lock. */
#define HOLDER_DEVICE	"/dev/procmap_lock_holder"

/* The wait of the reader must be killable. */
static void expect_death(struct __test_metadata *const _metadata, struct child *reader)
{
	ASSERT_EQ(0, kill(reader->pid, SIGKILL));
	EXPECT_EQ(-1, end_of_child(reader));
}

/* The report of the reader when its ioctl returns. */
struct report {
	int result;
	int signals;	/* caught meanwhile */
};

FIXTURE(held)
{
	unsigned long request;
	uint64_t start;		/* where the reader looks for a mapping */
	struct child target;
	struct child reader;
	int fd;			/* the target's maps file */
	int hold;		/* the device: closing it releases the lock */
};

FIXTURE_VARIANT(held)
{
	unsigned long request;
};

FIXTURE_VARIANT_ADD(held, query) { PROCMAP_QUERY };
FIXTURE_VARIANT_ADD(held, scan) { PROCMAP_SCAN };

FIXTURE_SETUP(held)
{
	self->hold = -1;
	SKIP_WITHOUT_SCAN();
	if (access(HOLDER_DEVICE, F_OK))
		SKIP_SETUP("the module procmap_lock_holder is not loaded");
	if (access(HOLDER_DEVICE, W_OK))
		SKIP_SETUP("only root can hold a lock");
	self->request = variant->request;
	ASSERT_TRUE(start_child(&self->target, keep_scene, NULL));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
}

static void release_lock(struct _test_data_held *self)
{
	if (self->hold >= 0)
		close(self->hold);
	self->hold = -1;
}

/* The lock first: a process cannot exit while its own is held. */
FIXTURE_TEARDOWN(held)
{
	release_lock(self);
	stop_child(&self->reader);
	stop_child(&self->target);
}

static atomic_int nr_signals;

static void count_signal(int signal)
{
	(void)signal;
	nr_signals++;
}

/* Find the first mapping from an address on. Returns 1, or -errno. */
static int find_first(const struct _test_data_held *self)
{
	struct procmap_query query;
	struct procmap_vma vma;
	const struct scan_buffers buffers = { .vec = &vma, .vec_len = 1 };
	struct procmap_scan_arg arg = scan_arg(&buffers, self->start, NO_END, 0);

	if (self->start)
		arg.end = self->start + page_size();
	if (self->request == PROCMAP_SCAN)
		return procmap_scan(self->fd, &arg);
	return query_fields(self->fd, self->start, QUERY_NEXT, &query) ?: 1;
}

static int be_reader(int control, void *arg)
{
	const struct sigaction action = { .sa_handler = count_signal };
	const struct _test_data_held *const self = arg;
	struct report report;

	if (sigaction(SIGUSR1, &action, NULL) || !notify(control) ||
	    !await(control))
		return 1;
	report.result = find_first(self);
	report.signals = nr_signals;
	if (write(control, &report, sizeof(report)) != sizeof(report))
		return 1;
	await(control);
	return 0;
}

/* The reader is in its ioctl if the second argument of its system call is the request. */
static bool is_blocked(const struct _test_data_held *self)
{
	unsigned long nr, fd, seen;
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/syscall", self->reader.pid);
	return read_file(path, text, sizeof(text)) &&
	       sscanf(text, "%lu %lx %lx", &nr, &fd, &seen) == 3 &&
	       seen == self->request;
}

/* Hold the target's lock, and let the reader begin. */
static void start_reader(struct __test_metadata *const _metadata,
			 struct _test_data_held *self, uint64_t start)
{
	char pid[16];

	self->start = start;
	ASSERT_TRUE(start_child(&self->reader, be_reader, self));
	ASSERT_TRUE(await(self->reader.control));
	/* Only now: a child would have the file, and the lock with it. */
	self->hold = open(HOLDER_DEVICE, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, self->hold);
	snprintf(pid, sizeof(pid), "%d", self->target.pid);
	ASSERT_EQ((ssize_t)strlen(pid), write(self->hold, pid, strlen(pid)));
	ASSERT_TRUE(notify(self->reader.control));
}

/* No kernel can find the first mapping of all without the lock of all. */
static void start_waiting(struct __test_metadata *const _metadata,
			  struct _test_data_held *self)
{
	start_reader(_metadata, self, 0);
	while (!is_blocked(self))
		sched_yield();
}

static void expect_report(struct __test_metadata *const _metadata,
			  const struct _test_data_held *self, int signals)
{
	struct report report;

	ASSERT_EQ((ssize_t)sizeof(report),
		  read(self->reader.control, &report, sizeof(report)));
	EXPECT_EQ(1, report.result);
	EXPECT_EQ(signals, report.signals);
}

TEST_F_TIMEOUT(held, reader_dies_of_a_fatal_signal, LONG_TIMEOUT)
{
	start_waiting(_metadata, self);
	expect_death(_metadata, &self->reader);
}

/* When kill(2) returns, it has woken whom it can wake. */
TEST_F_TIMEOUT(held, reader_waits_on_after_another_signal, LONG_TIMEOUT)
{
	start_waiting(_metadata, self);
	ASSERT_EQ(0, kill(self->reader.pid, SIGUSR1));
	EXPECT_TRUE(is_blocked(self));
	release_lock(self);
	expect_report(_metadata, self, 1);
}

TEST_F_TIMEOUT(held, reader_does_not_wait_for_a_writer_elsewhere, LONG_TIMEOUT)
{
	struct pollfd control = { .events = POLLIN };

	/* Code of this program is in the target, too. */
	start_reader(_metadata, self, (uintptr_t)be_reader & -page_size());
	control.fd = self->reader.control;
	while (!poll(&control, 1, 0))
		if (is_blocked(self))
			SKIP(return, "this kernel locks all VMAs for one");
	expect_report(_metadata, self, 0);
}

#define TRACEFS		SCRATCH "/tracefs"
#define TRACE		TRACEFS "/instances/procmap/"
#define LOCKED		"mmap_lock_acquire_returned"
#define SIGNALLED	"signal_generate"

/* Trace the process and this one. Returns NULL, or why that cannot be. */
static const char *start_tracing(pid_t pid)
{
	const char *const missing = mount_scratch();
	char pids[32];

	if (missing)
		return missing;
	if (mkdir(TRACEFS, 0700) || mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		return "no tracefs, CONFIG_TRACING";
	rmdir(TRACE);
	sprintf(pids, "%d %d", pid, getpid());
	/*
	 * A buffer for some thousand events, so that it is read in no time. The
	 * counter is the clock that all CPUs share.
	 */
	if (mkdir(TRACE, 0700) || !write_file(TRACE "set_event_pid", pids) ||
	    !write_file(TRACE "buffer_size_kb", "256") ||
	    !write_file(TRACE "trace_clock", "counter") ||
	    !write_file(TRACE "events/mmap_lock/" LOCKED "/enable", "1") ||
	    !write_file(TRACE "events/signal/" SIGNALLED "/enable", "1"))
		return "no trace event " LOCKED;
	return NULL;
}

/* The locks that a process took, by the trace. */
struct locks {
	char own[32];		/* the name of its own mmap_lock */
	unsigned int others;	/* how often it took that of another process */
	bool signalled;		/* somebody has sent a signal */
	unsigned int after_signal; /* how often it took another one then */
};

/*
 * Read the trace. If the name of its own lock is not known, it is that of the
 * first which the process took.
 */
static void read_trace(pid_t pid, struct locks *locks)
{
	FILE *const trace = fopen(TRACE "trace", "re");
	char line[512], task[16], mm[32];

	locks->others = 0;
	locks->signalled = false;
	locks->after_signal = 0;
	sprintf(task, "-%d ", pid);
	while (trace && fgets(line, sizeof(line), trace)) {
		const char *const event = strstr(line, LOCKED ": mm=");

		if (strstr(line, SIGNALLED ": "))
			locks->signalled = true;
		if (!event || !strstr(line, task) ||
		    sscanf(event, LOCKED ": mm=%31s", mm) != 1)
			continue;
		if (!*locks->own)
			strcpy(locks->own, mm);
		if (!strcmp(locks->own, mm))
			continue;
		locks->others++;
		locks->after_signal += locks->signalled;
	}
	if (trace)
		fclose(trace);
}

/*
 * A writer in the target waits as long as a reader has mmap_lock. So a reader looks
 * at 64 VMAs at most before it drops the lock, whether they pass its filters or not.
 */
#define VMAS_PER_HOLD	64

/* The number of mappings, which takes a debug kernel minutes. */
static unsigned int nr_many(void)
{
	return atoi(getenv("PROCMAP_TEST_MAPPINGS") ?: "60000");
}

/* A target of many mappings, and a reader that looks at all of them. */
FIXTURE(large)
{
	struct child target;
	struct child reader;
	bool (*look_at_all)(int fd);
	int fd;			/* the target's maps file */
	struct locks locks;
};

FIXTURE_VARIANT(large)
{
	bool (*look_at_all)(int fd);
};

/* No mapping passes the filters. */
static bool query_for_none(int fd)
{
	struct procmap_query query;

	return query_fields(fd, 0, QUERY_NEXT | PROCMAP_QUERY_VMA_WRITABLE |
			    PROCMAP_QUERY_VMA_EXECUTABLE, &query) == -ENOENT;
}

static bool scan_all(int fd)
{
	static struct scan_buffers buffers;
	struct procmap_scan_arg arg;

	if (!buffers.vec)
		buffers = make_scan_buffers(nr_many() + 1000, 0);
	arg = scan_arg(&buffers, 0, NO_END, 0);
	return procmap_scan(fd, &arg) >= (int)nr_many();
}

FIXTURE_VARIANT_ADD(large, query) { query_for_none };
FIXTURE_VARIANT_ADD(large, scan) { scan_all };

static int be_large(int control, void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr_many(); i++)
		if (!map_area(i, 1, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_NORESERVE,
			      -1))
			return 1;
	notify(control);
	await(control);
	return 0;
}

/* Take its own lock; then search once, and on and on once it is to. */
static int be_busy_reader(int control, void *arg)
{
	const struct _test_data_large *const self = arg;

	if (!await(control) || munmap(page_at(0), page_size()) ||
	    !notify(control) || !await(control) || !self->look_at_all(self->fd) ||
	    !notify(control) || !await(control))
		return 1;
	while (self->look_at_all(self->fd))
		;
	return 1;
}

static bool let_reader_go_on(const struct child *reader)
{
	return notify(reader->control) && await(reader->control);
}

FIXTURE_SETUP(large)
{
	const char *missing;

	SKIP_WITHOUT_SCAN();
	self->look_at_all = variant->look_at_all;
	ASSERT_TRUE(start_child(&self->target, be_large, NULL));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(start_child(&self->reader, be_busy_reader, self));
	missing = start_tracing(self->reader.pid);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(let_reader_go_on(&self->reader));
	read_trace(self->reader.pid, &self->locks);
	ASSERT_NE('\0', self->locks.own[0]);
	ASSERT_EQ(0u, self->locks.others);
	ASSERT_TRUE(let_reader_go_on(&self->reader));
	read_trace(self->reader.pid, &self->locks);
}

FIXTURE_TEARDOWN(large)
{
	stop_child(&self->reader);
	stop_child(&self->target);
	EXPECT_EQ(0, rmdir(TRACE));
}

/*
 * It dies at the next drop of the lock, but for one that it was about to take. One
 * test shows both, since a debug kernel takes half a minute to set up the trace.
 */
TEST_F_TIMEOUT(large, target_is_unlocked_often_and_fatal_signals_are_looked_at,
	       LONG_TIMEOUT)
{
	const pid_t pid = self->reader.pid;

	if (!self->locks.others)
		SKIP(return, "the ioctl takes no mmap_lock here");
	EXPECT_LE(nr_many() / VMAS_PER_HOLD, self->locks.others);

	ASSERT_EQ(0, close(open(TRACE "trace", O_WRONLY | O_TRUNC)));
	ASSERT_TRUE(notify(self->reader.control));
	do {
		read_trace(pid, &self->locks);
	} while (!self->locks.others);
	expect_death(_metadata, &self->reader);
	read_trace(pid, &self->locks);
	ASSERT_TRUE(self->locks.signalled);
	EXPECT_GE(1u, self->locks.after_signal);
}

TEST_HARNESS_MAIN
