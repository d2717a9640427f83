/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests share whose ioctl waits for the mmap_lock of another process.
 * The module in procmap-hold/ holds that lock.
 */
#ifndef PROCMAP_LOCK_TEST_H
#define PROCMAP_LOCK_TEST_H

#include <poll.h>

#include "procmap-race.h"

#define HOLD_DEVICE	"/dev/procmap_hold"

/**
 * struct waiting - a process that waits in an ioctl
 * @target: the process whose lock is held.
 * @reader: the process that waits for it.
 * @hold: the opened device, or -1. Closing it releases the lock.
 * @fd: the maps file of @target, which @reader has, too.
 * @request: the ioctl.
 * @call: runs the ioctl once on @fd. Returns a result or -errno.
 */
struct waiting {
	struct child target;
	struct child reader;
	int hold;
	int fd;
	unsigned long request;
	int (*call)(int fd);
};

/* What the reader reports when its ioctl returns. */
struct report {
	int result;
	int signals;	/* caught meanwhile */
};

static atomic_int nr_signals;

static inline void count_signal(int signal)
{
	(void)signal;
	nr_signals++;
}

static inline int be_waiting_target(int control, void *arg)
{
	(void)arg;
	notify(control);
	await(control);
	return 0;
}

static inline int be_waiting_reader(int control, void *arg)
{
	const struct sigaction action = { .sa_handler = count_signal };
	const struct waiting *const waiting = arg;
	struct report report;

	if (sigaction(SIGUSR1, &action, NULL) || !notify(control) ||
	    !await(control))
		return 1;
	report.result = waiting->call(waiting->fd);
	report.signals = nr_signals;
	if (write(control, &report, sizeof(report)) != sizeof(report))
		return 1;
	await(control);
	return 0;
}

/* Is the process blocked in that ioctl? Its second argument is the request. */
static inline bool is_blocked_in(pid_t pid, unsigned long request)
{
	unsigned long nr, fd, seen;
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	return read_file(path, text, sizeof(text)) &&
	       sscanf(text, "%lu %lx %lx", &nr, &fd, &seen) == 3 &&
	       seen == request;
}

/*
 * Hold the target's lock and let the reader begin. Returns NULL, or why that cannot
 * be done here.
 */
static inline const char *hold_lock(struct __test_metadata *const _metadata,
				    struct waiting *waiting)
{
	char pid[16];

	waiting->hold = -1;
	if (access(HOLD_DEVICE, F_OK))
		return "the module procmap_hold is not loaded";
	ASSERT_TRUE(start_child(&waiting->target, be_waiting_target, NULL));
	ASSERT_TRUE(await(waiting->target.control));
	waiting->fd = open_maps(waiting->target.pid);
	ASSERT_LE(0, waiting->fd);
	ASSERT_TRUE(start_child(&waiting->reader, be_waiting_reader, waiting));
	ASSERT_TRUE(await(waiting->reader.control));

	/* Only now: a child would have the file, and the lock with it. */
	waiting->hold = open(HOLD_DEVICE, O_WRONLY | O_CLOEXEC);
	if (waiting->hold < 0)
		return "only root can hold a lock";
	snprintf(pid, sizeof(pid), "%d", waiting->target.pid);
	ASSERT_EQ((ssize_t)strlen(pid),
		  write(waiting->hold, pid, strlen(pid)));
	ASSERT_TRUE(notify(waiting->reader.control));
	return NULL;
}

/* The same, and wait until the reader waits. */
static inline const char *start_waiting(struct __test_metadata *const _metadata,
					struct waiting *waiting)
{
	const char *const missing = hold_lock(_metadata, waiting);

	if (missing)
		return missing;
	while (!is_blocked_in(waiting->reader.pid, waiting->request) &&
	       !is_late())
		sched_yield();
	ASSERT_TRUE(is_blocked_in(waiting->reader.pid, waiting->request)) {
		TH_LOG("the ioctl did not wait in %d seconds", PATIENCE);
	}
	return NULL;
}

static inline void release_lock(struct waiting *waiting)
{
	if (waiting->hold >= 0)
		close(waiting->hold);
	waiting->hold = -1;
}

/* The lock first: a process cannot exit while its own is held. */
static inline void stop_waiting(struct waiting *waiting)
{
	release_lock(waiting);
	stop_child(&waiting->reader);
	stop_child(&waiting->target);
}

/*
 * A signal that is caught does not end the wait: when kill(2) returns, it has
 * woken whom it can wake. The result comes once the lock is released.
 */
static inline void expect_no_interruption(struct __test_metadata *const _metadata,
					  struct waiting *waiting, int result)
{
	struct report report;

	ASSERT_EQ(0, kill(waiting->reader.pid, SIGUSR1));
	EXPECT_TRUE(is_blocked_in(waiting->reader.pid, waiting->request));
	release_lock(waiting);
	ASSERT_EQ((ssize_t)sizeof(report),
		  read(waiting->reader.control, &report, sizeof(report)));
	EXPECT_EQ(result, report.result);
	EXPECT_EQ(1, report.signals);
}

/*
 * With per-VMA locks, the reader does not wait for the lock of all if it finds a VMA
 * that nobody writes to. Returns NULL, or why that cannot be said here.
 */
static inline const char *expect_no_wait(struct __test_metadata *const _metadata,
					 struct waiting *waiting, int result)
{
	struct pollfd control = { .fd = waiting->reader.control, .events = POLLIN };
	struct report report;

	while (!poll(&control, 1, 0) && !is_late())
		if (is_blocked_in(waiting->reader.pid, waiting->request))
			return "this kernel locks all VMAs for one";
	ASSERT_EQ((ssize_t)sizeof(report),
		  read(waiting->reader.control, &report, sizeof(report)));
	EXPECT_EQ(result, report.result);
	return NULL;
}

#endif /* PROCMAP_LOCK_TEST_H */
