// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how long mmap(2) and munmap(2) take while another process reads the
 * mappings all the time: "bench/bench contention" runs this in guests of two
 * CPUs, and each time prints a JSON object for each method of reading, first for
 * none.
 *
 *	contention METHOD	METHOD is the name to print for the PROCMAP_QUERY of
 *				the running kernel
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
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
#include "target.h"

#define NR_VMAS		5000

#define NR_TIMES	20000

/**
 * struct method - how the mappings are read meanwhile
 * @name: its name in the report; that of PROCMAP_QUERY is replaced by METHOD.
 * @has_reader: there is a reader.
 * @method: how that reader uses the library.
 *
 * PROCMAP_SCAN is the last: not every kernel has it.
 */
static struct method {
	const char *name;
	bool has_reader;
	enum procmap_method method;
} methods[] = {
	{ "none", .has_reader = false },
	{ "text", true, .method = PROCMAP_BY_TEXT },
	{ "query", true, .method = PROCMAP_BY_QUERY },
	{ "scan", true, .method = PROCMAP_BY_SCAN },
};

#define NR_METHODS	(sizeof(methods) / sizeof(*methods))
#define QUERY		2

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

/* Read mappings of @pid until killed. */
static void read_mappings(pid_t pid, const struct method *method)
{
	struct procmap *procmap;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_on(1);
	if (procmap_open_pid(pid, BY(method->method), &procmap))
		errx(2, "cannot open the mappings of %d", pid);
	for (;; ++*nr_reads)
		if (count_vmas(procmap, 0) < NR_VMAS)
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
static pid_t start_reader(const struct method *method)
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

static void map_and_unmap(uint64_t *ns)
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

static void measure(const struct method *method, uint64_t *ns)
{
	const pid_t reader = method->has_reader ? start_reader(method) : 0;

	map_and_unmap(ns);
	if (reader)
		stop_reader(reader);
}

static void report(const char *kernel, const char *method, uint64_t *ns)
{
	qsort(ns, NR_TIMES, sizeof(*ns), by_number);
	printf("{\"kernel\": \"%s\", \"method\": \"%s\", \"median_ns\": %llu, \"p99_ns\": %llu}\n",
	       kernel, method, (unsigned long long)ns[NR_TIMES / 2],
	       (unsigned long long)ns[NR_TIMES * 99 / 100]);
}

static size_t count_methods(void)
{
	struct procmap *procmap;

	if (procmap_open_self(BY(PROCMAP_BY_SCAN), &procmap))
		return NR_METHODS - 1;
	procmap_close(procmap);
	return NR_METHODS;
}

int main(int argc, char **argv)
{
	const size_t nr_methods = count_methods();
	static uint64_t ns[NR_TIMES];
	struct utsname host;
	char kernel[128];
	size_t i;

	if (argc != 2)
		errx(2, "usage: contention METHOD");
	uname(&host);
	snprintf(kernel, sizeof(kernel), "%s%s", host.release,
		 nr_methods == NR_METHODS ? ", module" : "");
	methods[QUERY].name = argv[1];
	run_on(0);
	for (i = 0; i < NR_VMAS; i++)
		map(i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE);
	spot = map(PROT_NONE, MAP_SHARED);
	nr_reads = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	map_and_unmap(ns);	/* once, so that all is warm */
	for (i = 0; i < nr_methods; i++) {
		measure(&methods[i], ns);
		report(kernel, methods[i].name, ns);
	}
	return 0;
}
