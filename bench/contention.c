// SPDX-License-Identifier: GPL-2.0
/*
 * What a process that maps and unmaps waits for another that asks about its
 * mappings all the time: "bench/bench contention" runs it in a guest of two
 * CPUs. It prints a JSON object for each way to ask, the first being not to.
 *
 *	contention WAY		WAY names the ioctl of this kernel
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
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

/* The rounds of a way take turns with those of the others. */
static const struct {
	enum procmap_way way;
	bool asks;
} ways[] = {
	{ PROCMAP_ANY_WAY, false },
	{ PROCMAP_BY_TEXT, true },
	{ PROCMAP_BY_IOCTL, true },
	{ PROCMAP_BY_SCAN, true },
};

#define NR_WAYS		(sizeof(ways) / sizeof(*ways))

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

/* Walk over all mappings of @pid, again and again. */
static void ask(pid_t pid, enum procmap_way way)
{
	struct procmap_mapping vma;
	struct procmap *procmap;
	uint64_t cursor;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_on(1);
	if (procmap_open_pid(pid, way, &procmap))
		errx(2, "cannot ask about %d", pid);
	for (;;)
		for (cursor = 0; !procmap_next(procmap, &cursor, 0, &vma);)
			;
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

static void do_round(size_t way, uint64_t *ns)
{
	const pid_t self = getpid();
	pid_t asker = 0;

	if (ways[way].asks) {
		asker = fork();
		if (asker < 0)
			err(2, "fork");
		if (!asker)
			ask(self, ways[way].way);
		/* Until it is under way. */
		usleep(100000);
	}
	map_and_unmap(ns);
	if (!asker)
		return;
	if (waitpid(asker, NULL, WNOHANG))
		errx(2, "the one that asks has ended");
	kill(asker, SIGKILL);
	waitpid(asker, NULL, 0);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(const char *kernel, const char *way, uint64_t *ns, size_t nr)
{
	qsort(ns, nr, sizeof(*ns), by_number);
	printf("{\"kernel\": \"%s\", \"way\": \"%s\", \"median_ns\": %llu, \"p99_ns\": %llu, \"worst_ns\": %llu}\n",
	       kernel, way, (unsigned long long)ns[nr / 2],
	       (unsigned long long)ns[nr / 100 * 99],
	       (unsigned long long)ns[nr - 1]);
}

static const char *name_of(size_t way, const char *ioctl)
{
	if (!ways[way].asks)
		return "alone";
	switch (ways[way].way) {
	case PROCMAP_BY_TEXT:
		return "text";
	case PROCMAP_BY_SCAN:
		return "scan";
	default:
		return ioctl;
	}
}

/* Not every kernel can be asked in all ways: the last is to scan. */
static size_t count_ways(void)
{
	struct procmap *procmap;

	if (procmap_open_self(PROCMAP_BY_SCAN, &procmap))
		return NR_WAYS - 1;
	procmap_close(procmap);
	return NR_WAYS;
}

int main(int argc, char **argv)
{
	const size_t nr_ways = count_ways();
	uint64_t *ns[NR_WAYS];
	struct utsname host;
	size_t i, round;

	if (argc != 2)
		errx(2, "usage: contention WAY");
	uname(&host);
	run_on(0);
	for (i = 0; i < nr_ways; i++) {
		ns[i] = calloc(NR_ROUNDS * NR_TIMES, sizeof(**ns));
		if (!ns[i])
			err(2, "calloc");
	}
	for (i = 0; i < NR_VMAS; i++)
		if (mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			err(2, "mmap");
	for (round = 0; round < NR_ROUNDS; round++)
		for (i = 0; i < nr_ways; i++)
			do_round(i, ns[i] + round * NR_TIMES);
	for (i = 0; i < nr_ways; i++)
		report(host.release, name_of(i, argv[1]), ns[i],
		       NR_ROUNDS * NR_TIMES);
	return 0;
}
