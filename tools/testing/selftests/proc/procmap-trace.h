/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How often a process takes the mmap_lock of another one: trace events show it.
 */
#ifndef PROCMAP_TRACE_H
#define PROCMAP_TRACE_H

#include "procmap-query.h"

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

static bool stop_tracing(void)
{
	return !rmdir(TRACE);
}

static bool empty_trace(void)
{
	const int fd = open(TRACE "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd >= 0 && !close(fd);
}

/* What the trace shows of a process. */
struct holds {
	char own[32];		/* the name of its own mmap_lock */
	int others;		/* how often it took that of another process */
	bool signalled;		/* somebody has sent a signal */
	int after_signal;	/* how often it took that of another process then */
};

/*
 * Read the trace. If the name of its own lock is not known, it is that of the
 * first which the process took.
 */
static void read_trace(pid_t pid, struct holds *holds)
{
	FILE *const trace = fopen(TRACE "trace", "re");
	char line[512], task[16], mm[32];

	holds->others = 0;
	holds->signalled = false;
	holds->after_signal = 0;
	sprintf(task, "-%d ", pid);
	while (trace && fgets(line, sizeof(line), trace)) {
		const char *const event = strstr(line, LOCKED ": mm=");

		if (strstr(line, SIGNALLED ": "))
			holds->signalled = true;
		if (!event || !strstr(line, task) ||
		    sscanf(event, LOCKED ": mm=%31s", mm) != 1)
			continue;
		if (!*holds->own)
			strcpy(holds->own, mm);
		if (!strcmp(holds->own, mm))
			continue;
		holds->others++;
		holds->after_signal += holds->signalled;
	}
	if (trace)
		fclose(trace);
}

#endif /* PROCMAP_TRACE_H */
