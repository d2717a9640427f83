// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how long mmap(2) and munmap(2) take while another process reads the
 * mappings all the time: "bench/bench contention" runs this in guests of two
 * CPUs, and each time prints a line for each method of reading, first for none: kernel,
 * method, median and 99th percentile in ns, with tabs between.
 *
 *	contention METHOD	METHOD is the name to print for the PROCMAP_QUERY of
 *				the running kernel
 */
#include <err.h>
#include <procmap.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cost.h"

#define PAGE		4096
#define NR_VMAS		5000
#define NR_TIMES	20000

/* Options with a method. */
#define BY(by)	(&(const struct procmap_options) {		\
			.size = sizeof(struct procmap_options), .method = (by) })

/* Names of the methods in the report. That of the query is replaced by METHOD. */
#define NO_READER	PROCMAP_ANY_METHOD
static const char *method_names[] = {
	[NO_READER] = "none",
	[PROCMAP_BY_QUERY] = "query",
	[PROCMAP_BY_TEXT] = "text",
	[PROCMAP_BY_SCAN] = "scan",
};

/* The page that is mapped and unmapped. */
static char *spot;

/* In memory that the reader shares: how often it has read all. */
static _Atomic size_t *nr_reads;

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(2, "there is no CPU %d", cpu);
}

static void *map(int prot, int flags)
{
	void *const page = mmap(NULL, PAGE, prot, flags | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		err(2, "mmap");
	return page;
}

static size_t count_vmas(struct procmap *procmap)
{
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	size_t nr = 0;

	while (!procmap_next(procmap, &cursor, 0, &vma))
		nr++;
	return nr;
}

/* Read mappings of @pid until killed. */
static void read_mappings(pid_t pid, enum procmap_method method)
{
	struct procmap *procmap;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_on(1);
	if (procmap_open_pid(pid, BY(method), &procmap))
		errx(2, "cannot open the mappings of %d", pid);
	for (;; ++*nr_reads)
		if (count_vmas(procmap) < NR_VMAS)
			errx(2, "the reader misses mappings");
}

static void await_read(pid_t reader)
{
	const size_t seen = *nr_reads;

	while (*nr_reads == seen) {
		if (waitpid(reader, NULL, WNOHANG))
			errx(2, "the reader failed");
		usleep(1000);
	}
}

/* Return once the reader has read for the first time. */
static pid_t start_reader(enum procmap_method method)
{
	const pid_t self = getpid(), reader = fork();

	if (reader < 0)
		err(2, "fork");
	if (!reader)
		read_mappings(self, method);
	await_read(reader);
	return reader;
}

/* The reader has to have been reading all the time: it reads once more. */
static void stop_reader(pid_t reader)
{
	await_read(reader);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
}

/* How long each of the times took. */
static uint64_t ns[NR_TIMES];

static void map_and_unmap(void)
{
	size_t i;

	for (i = 0; i < NR_TIMES; i++) {
		const uint64_t begin = now(CLOCK_MONOTONIC);
		void *const page = mmap(spot, PAGE, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		if (page == MAP_FAILED || munmap(page, PAGE))
			err(2, "mmap");
		ns[i] = now(CLOCK_MONOTONIC) - begin;
	}
}

static void measure(const char *kernel, enum procmap_method method)
{
	const pid_t reader = method == NO_READER ? 0 : start_reader(method);

	map_and_unmap();
	if (reader)
		stop_reader(reader);
	qsort(ns, NR_TIMES, sizeof(*ns), by_number);
	printf("%s\t%s\t%llu\t%llu\n", kernel, method_names[method],
	       (unsigned long long)ns[NR_TIMES / 2],
	       (unsigned long long)ns[NR_TIMES * 99 / 100]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	enum procmap_method method, last = PROCMAP_BY_TEXT;
	struct procmap *procmap;
	struct utsname host;
	char kernel[128];
	size_t i;

	if (argc != 2)
		errx(2, "usage: contention METHOD");
	method_names[PROCMAP_BY_QUERY] = argv[1];
	if (!procmap_open_self(BY(PROCMAP_BY_SCAN), &procmap)) {
		last = PROCMAP_BY_SCAN;
		procmap_close(procmap);
	}
	uname(&host);
	snprintf(kernel, sizeof(kernel), "%s%s", host.release,
		 last == PROCMAP_BY_SCAN ? ", module" : "");
	run_on(0);
	for (i = 0; i < NR_VMAS; i++)
		map(i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE);
	spot = map(PROT_NONE, MAP_SHARED);
	nr_reads = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	map_and_unmap();	/* once, so that all is warm */
	for (method = NO_READER; method <= last; method++)
		measure(kernel, method);
	return 0;
}
