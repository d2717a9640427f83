// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how long mmap(2) and munmap(2) take while another process reads the
 * mappings all the time: "bench/bench contention" runs this in a guest of two
 * CPUs. It prints a JSON object for each method of reading, first for none.
 *
 *	contention METHOD	METHOD is the name to print for the PROCMAP_QUERY
 *				of the running kernel
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
#include <errno.h>
#include <procmap.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096
#define NR_VMAS		5000
#define NR_ROUNDS	5
#define NR_TIMES	20000

/**
 * struct method - how the mappings are read meanwhile
 * @name: its name in the report; that of PROCMAP_QUERY is replaced by METHOD.
 * @has_reader: there is a reader.
 * @way: how that reader uses the library.
 *
 * The rounds of the methods take turns. PROCMAP_SCAN is the last: not every
 * kernel has it.
 */
static struct method {
	const char *name;
	bool has_reader;
	enum procmap_way way;
} methods[] = {
	{ "none", false, PROCMAP_ANY_WAY },
	{ "text", true, PROCMAP_BY_TEXT },
	{ "query", true, PROCMAP_BY_IOCTL },
	{ "scan", true, PROCMAP_BY_SCAN },
};

#define NR_METHODS	(sizeof(methods) / sizeof(*methods))
#define QUERY		2

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(2, "there is no CPU %d", cpu);
}

static uint64_t now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void walk(struct procmap *procmap)
{
	struct procmap_mapping vma;
	uint64_t cursor = 0;
	int error;

	do {
		error = procmap_next(procmap, &cursor, 0, &vma);
	} while (!error);
	if (error != -ENOENT)
		errx(2, "the reader: %s", strerror(-error));
}

/* Walk over all mappings of @pid until killed; write to @ready after the first. */
static void read_mappings(pid_t pid, enum procmap_way way, int ready)
{
	struct procmap *procmap;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_on(1);
	if (procmap_open_pid(pid, way, &procmap))
		errx(2, "cannot open the mappings of %d", pid);
	walk(procmap);
	if (write(ready, "", 1) != 1)
		err(2, "write");
	for (;;)
		walk(procmap);
}

/* Return once the reader has walked over all mappings for the first time. */
static pid_t start_reader(enum procmap_way way)
{
	const pid_t self = getpid();
	pid_t reader;
	int ready[2];
	char byte;

	if (pipe(ready))
		err(2, "pipe");
	reader = fork();
	if (reader < 0)
		err(2, "fork");
	if (!reader)
		read_mappings(self, way, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(2, "the reader failed");
	close(ready[0]);
	return reader;
}

static void stop_reader(pid_t reader)
{
	int status;

	kill(reader, SIGKILL);
	if (waitpid(reader, &status, 0) != reader || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGKILL)
		errx(2, "the reader failed");
}

static void map_and_unmap(uint64_t *ns)
{
	size_t i;

	for (i = 0; i < NR_TIMES; i++) {
		const uint64_t begin = now();
		void *const page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED || munmap(page, PAGE))
			err(2, "mmap");
		ns[i] = now() - begin;
	}
}

static void do_round(const struct method *method, uint64_t *ns)
{
	pid_t reader;

	if (!method->has_reader) {
		map_and_unmap(ns);
		return;
	}
	reader = start_reader(method->way);
	map_and_unmap(ns);
	stop_reader(reader);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(const char *kernel, const char *method, uint64_t *ns,
		   size_t nr)
{
	qsort(ns, nr, sizeof(*ns), by_number);
	printf("{\"kernel\": \"%s\", \"method\": \"%s\", \"median_ns\": %llu, \"p99_ns\": %llu, \"worst_ns\": %llu}\n",
	       kernel, method, (unsigned long long)ns[nr / 2],
	       (unsigned long long)ns[nr / 100 * 99],
	       (unsigned long long)ns[nr - 1]);
}

static size_t count_methods(void)
{
	struct procmap *procmap;

	if (procmap_open_self(PROCMAP_BY_SCAN, &procmap))
		return NR_METHODS - 1;
	procmap_close(procmap);
	return NR_METHODS;
}

int main(int argc, char **argv)
{
	const size_t nr_methods = count_methods();
	uint64_t *ns[NR_METHODS];
	struct utsname host;
	size_t i, round;

	if (argc != 2)
		errx(2, "usage: contention METHOD");
	methods[QUERY].name = argv[1];
	uname(&host);
	run_on(0);
	for (i = 0; i < nr_methods; i++) {
		ns[i] = calloc(NR_ROUNDS * NR_TIMES, sizeof(**ns));
		if (!ns[i])
			err(2, "calloc");
	}
	for (i = 0; i < NR_VMAS; i++)
		if (mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			err(2, "mmap");
	for (round = 0; round < NR_ROUNDS; round++)
		for (i = 0; i < nr_methods; i++)
			do_round(&methods[i], ns[i] + round * NR_TIMES);
	for (i = 0; i < nr_methods; i++)
		report(host.release, methods[i].name, ns[i],
		       NR_ROUNDS * NR_TIMES);
	return 0;
}
