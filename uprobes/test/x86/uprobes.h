/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that is made to have uprobes on it, and the counts of these. In 64 and in 32
 * bits.
 */
#ifndef _SELFTESTS_X86_UPROBES_H
#define _SELFTESTS_X86_UPROBES_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_SIZE	4096

/* A privileged instruction of one byte, which nobody gets past. */
#define HLT		0xf4

/* Of a uprobe: at the return of the function that begins there. */
#define RETPROBE	1

/* A file of code. Uprobes are on files, so each that has other code is a new one. */
static inline int make_code(const void *insns, size_t size, size_t at)
{
	const int fd = memfd_create("uprobes", MFD_CLOEXEC);
	unsigned char code[TEXT_SIZE];

	memset(code, HLT, sizeof(code));
	memcpy(code + at, insns, size);
	if (fd >= 0 && write(fd, code, sizeof(code)) == sizeof(code))
		return fd;
	close(fd);
	return -1;
}

/* Map it, over what is mapped at @text unless that is NULL. */
static inline void *map_code(void *text, int fd)
{
	return mmap(text, TEXT_SIZE, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | (text ? MAP_FIXED : 0), fd, 0);
}

static inline int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	return syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The number of a type of probes in perf_event_open(2). */
static inline int probe_type(const char *name)
{
	char path[100];
	FILE *file;
	int type;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (fscanf(file, "%d", &type) != 1)
		type = -EBADMSG;
	fclose(file);
	return type;
}

/* Return why there are no uprobes and calls to count here; NULL if there are. */
static inline const char *why_no_uprobes(void)
{
	if (geteuid())
		return "only root has uprobes";
	if (probe_type("uprobe") < 0 || probe_type("kprobe") < 0)
		return "this kernel has no uprobes or no kprobes in perf";
	return NULL;
}

/*
 * Count a task's hits of a uprobe on a file of code. All threads of its process hit it.
 */
static inline int open_uprobe(pid_t pid, int fd, uint64_t at, uint64_t config)
{
	char path[40];
	struct perf_event_attr attr = {
		.type = probe_type("uprobe"), .config = config,
		.uprobe_path = (uintptr_t)path, .probe_offset = at,
	};

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open_event(&attr, pid, -1);
}

/* Return the count of an event; -1 if it cannot be read. */
static inline int64_t count(int event)
{
	int64_t nr;

	return read(event, &nr, sizeof(nr)) == sizeof(nr) ? nr : -1;
}

/* Events on each CPU. */
struct calls {
	int *events;
	int nr;
};

/*
 * Count the calls of a function of the kernel by all tasks. A kprobe is slow to come and to
 * go, so that one is for all tests of a program.
 */
static inline bool open_calls(struct calls *calls, const char *function)
{
	struct perf_event_attr attr = {
		.type = probe_type("kprobe"), .kprobe_func = (uintptr_t)function,
	};
	const int nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int cpu, event;

	calls->events = calloc(nr_cpus, sizeof(int));
	if (!calls->events)
		return false;
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		event = open_event(&attr, -1, cpu);
		if (event >= 0)
			calls->events[calls->nr++] = event;
		else if (errno != ENODEV)	/* It is offline. */
			return false;
	}
	return calls->nr > 0;
}

static inline int64_t count_calls(const struct calls *calls)
{
	int64_t nr = 0;
	int i;

	for (i = 0; i < calls->nr; i++)
		nr += count(calls->events[i]);
	return nr;
}

/* Wait for a child, and return whether it ended with status 0. */
static inline bool ends_well(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

#endif /* _SELFTESTS_X86_UPROBES_H */
