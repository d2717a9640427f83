// SPDX-License-Identifier: GPL-2.0
/*
 * Print the cost of one way to read the mappings of a process. bench/measure calls this:
 *
 *	bench PID WORK WHICH WANT RESULT [ADDRESS...]
 *
 * WHICH mappings a walk returns is an index of filters[]; WANT is 1 for names, and 2 more for
 * build IDs. RESULT has to come out of each run: the error number of an ioctl, or the number
 * of mappings that a walk returns; of a reader, at least so many. A kernel that lacks the
 * ioctl ends it with status 3.
 *
 *	bench map
 *
 * measures how long mmap(2) and munmap(2) take: once for each byte of stdin, it prints the median
 * and the 99th percentile in ns, with a tab between. Another process reads the mappings of this
 * one meanwhile.
 *
 *	bench self NR
 *
 * prints the costs of finding the stack of the main thread among NR mappings: by <procmap_self.h>,
 * and by glibc's pthread_getattr_np(3).
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/procmap_query.h>
#include <linux/procmap_scan.h>
#include <malloc.h>
#include <procmap.h>
#include <procmap_self.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cost.h"

/* The addresses of a work, and the room of a scan for records, names and build IDs. */
#define ADDRS_MAX	1000
#define SCAN_VMAS	65536
#define SCAN_DATA	1048576

/* The largest threshold that malloc(3) takes, in bytes. */
#define KEPT_MEMORY	(32 << 20)

#define NO_IOCTL	3

/* "bench map" has so many mappings, and maps so many times. */
#define PAGE		4096
#define NR_VMAS		5000
#define NR_TIMES	20000

/* The filters of a walk, for each method. */
static const struct {
	unsigned int library;
	uint64_t query;
	uint64_t scan;
} filters[] = {
	{ 0 },
	{ PROCMAP_EXECUTABLE, PROCMAP_QUERY_VMA_EXECUTABLE, PROCMAP_VMA_EXECUTABLE },
	{ PROCMAP_FILE_BACKED, PROCMAP_QUERY_FILE_BACKED_VMA, PROCMAP_VMA_FILE_BACKED },
};

static int maps;
static struct procmap *procmap;
static uint64_t addrs[ADDRS_MAX];
static size_t nr_addrs;
static unsigned int which, want;
static size_t expected;

static char name[PATH_MAX];
static unsigned char build_id[PROCMAP_BUILD_ID_MAX];

/* The query, and the fields of it that an answer overwrites. */
static struct procmap_query the_query = { .size = sizeof(the_query) };
static uint32_t name_size, build_id_size;

static int query(uint64_t addr)
{
	the_query.query_addr = addr;
	the_query.vma_name_size = name_size;
	the_query.build_id_size = build_id_size;
	return ioctl(maps, PROCMAP_QUERY, &the_query) ? errno : 0;
}

static size_t any_ioctl(void)
{
	return ioctl(maps, _IO('f', 0x7f)) ? errno : 0;
}

static size_t query_lookup(void)
{
	static size_t run;

	return query(addrs[run++ % nr_addrs]);
}

static size_t query_walk(void)
{
	uint64_t addr = 0;
	size_t nr = 0;
	int error;

	while (!(error = query(addr))) {
		addr = the_query.vma_end;
		nr++;
	}
	if (error != ENOENT)
		errx(2, "walk by query: %s", strerror(error));
	return nr;
}

static struct procmap_vma scan_vmas[SCAN_VMAS];
static char scan_data[SCAN_DATA];

/* The generation that a scan is told to know, and the one that it has seen. */
static uint64_t known_generation, generation;

/* There is room for all mappings, so one call returns them. */
static size_t scan_walk(void)
{
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.filter = filters[which].scan,
		.want = want,
		.known_generation = known_generation,
		.end = UINT64_MAX,
		.vec = (uintptr_t)scan_vmas,
		.vec_len = SCAN_VMAS,
		.vma_size = sizeof(*scan_vmas),
		.data = (uintptr_t)scan_data,
		.data_size = sizeof(scan_data),
	};
	const int nr = ioctl(maps, PROCMAP_SCAN, &arg);

	if (nr < 0 && errno == ENOTTY)
		exit(NO_IOCTL);
	if (nr < 0 || arg.walk_end != arg.end)
		err(2, "walk by scan");
	generation = arg.generation;
	return nr;
}

static size_t library_walk(void)
{
	const unsigned int flags = filters[which].library |
				   (want > PROCMAP_SCAN_NAMES ? PROCMAP_WANT_BUILD_ID : 0);
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	size_t nr = 0;
	int error;

	while (!(error = procmap_next(procmap, &cursor, flags, &vma)))
		nr++;
	if (error != -ENOENT)
		errx(2, "walk by library: %s", strerror(-error));
	return nr;
}

/* Read mappings until killed, and write a byte for each time. */
static size_t library_read(void)
{
	while (library_walk() >= expected && write(STDOUT_FILENO, ".", 1) == 1)
		;
	errx(2, "the reader misses mappings");
}

static size_t text_lookup(void)
{
	const struct procmap_mapping *vma;
	int error = 0;
	size_t i;

	for (i = 0; i < nr_addrs && !error; i++)
		error = procmap_find(procmap, addrs[i], 0, &vma);
	return -error;
}

static size_t pass(void)
{
	const struct procmap_resolved *resolved;
	const int error = procmap_resolve(procmap, addrs, nr_addrs, 0, &resolved);

	if (!error)
		procmap_free_resolved(resolved);
	return -error;
}

/* The method is the library's. */
static const struct {
	const char *name;
	size_t (*run)(void);
	enum procmap_method method;
} works[] = {
	{ "query-any", any_ioctl, PROCMAP_ANY_METHOD },
	{ "query-lookup", query_lookup, PROCMAP_ANY_METHOD },
	{ "query-walk", query_walk, PROCMAP_ANY_METHOD },
	{ "query-pass", pass, PROCMAP_BY_QUERY },
	{ "query-read", library_read, PROCMAP_BY_QUERY },
	{ "scan-walk", scan_walk, PROCMAP_ANY_METHOD },
	{ "scan-unchanged", scan_walk, PROCMAP_ANY_METHOD },
	{ "scan-read", library_read, PROCMAP_BY_SCAN },
	{ "text-lookup", text_lookup, PROCMAP_BY_TEXT },
	{ "text-walk", library_walk, PROCMAP_BY_TEXT },
	{ "text-pass", pass, PROCMAP_BY_TEXT },
	{ "text-read", library_read, PROCMAP_BY_TEXT },
};

static size_t work;

static void do_work(void *unused)
{
	const size_t result = works[work].run();

	(void)unused;
	if (result != expected)
		errx(2, "%s: %zu, not %zu", works[work].name, result, expected);
}

static void open_target(const char *pid)
{
	const struct procmap_options by = {
		.size = sizeof(by),
		.method = works[work].method,
	};
	char path[64];
	int error;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = open(path, O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		err(2, "%s", path);
	error = procmap_open_pid(atoi(pid), &by, &procmap);
	if (error == -ENOTTY)
		exit(NO_IOCTL);
	if (error)
		errx(2, "%s: %s", path, strerror(-error));
}

static void prepare_query(void)
{
	if (works[work].run == query_walk)
		the_query.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA |
					filters[which].query;
	if (want & PROCMAP_SCAN_NAMES) {
		the_query.vma_name_addr = (uintptr_t)name;
		name_size = sizeof(name);
	}
	if (want & PROCMAP_SCAN_BUILD_IDS) {
		the_query.build_id_addr = (uintptr_t)build_id;
		build_id_size = sizeof(build_id);
	}
}

static void *map_page(void *at, int prot, int flags)
{
	void *const page = mmap(at, PAGE, prot, flags | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		err(2, "mmap");
	return page;
}

/* Map the page at @spot and unmap it, and write to @ns how long each of the times took. */
static void map_and_unmap(void *spot, uint64_t *ns)
{
	size_t i;

	for (i = 0; i < NR_TIMES; i++) {
		const uint64_t begin = now(CLOCK_MONOTONIC);

		map_page(spot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED);
		if (munmap(spot, PAGE))
			err(2, "munmap");
		ns[i] = now(CLOCK_MONOTONIC) - begin;
	}
}

static int map(void)
{
	static uint64_t ns[NR_TIMES];
	void *spot;
	size_t i;

	for (i = 0; i < NR_VMAS; i++)
		map_page(NULL, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE);
	spot = map_page(NULL, PROT_NONE, MAP_SHARED);
	map_and_unmap(spot, ns);	/* once, so that all is warm */
	while (getchar() != EOF) {
		map_and_unmap(spot, ns);
		qsort(ns, NR_TIMES, sizeof(*ns), by_number);
		printf("%llu\t%llu\n", (unsigned long long)ns[NR_TIMES / 2],
		       (unsigned long long)ns[NR_TIMES * 99 / 100]);
		fflush(stdout);
	}
	return 0;
}

static void find_own_stack(void *stack)
{
	struct procmap_self_mapping mapping;

	if (procmap_self((uintptr_t)stack, &mapping))
		errx(2, "procmap_self");
}

static void ask_glibc(void *unused)
{
	pthread_attr_t attr;

	(void)unused;
	if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_destroy(&attr))
		errx(2, "pthread_getattr_np");
}

static int find_in_self(const char *nr)
{
	size_t i = 0;

	if (procmap_open_self(NULL, &procmap))
		errx(2, "cannot open the mappings of this process");
	for (i = library_walk(); i < strtoul(nr, NULL, 10); i++)
		map_page(NULL, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE);
	printf("%.0f\t%.0f\n", cost_of_run(find_own_stack, &i), cost_of_run(ask_glibc, NULL));
	return 0;
}

int main(int argc, char **argv)
{
	const size_t nr_works = sizeof(works) / sizeof(*works);

	if (argc == 2 && !strcmp(argv[1], "map"))
		return map();
	if (argc == 3 && !strcmp(argv[1], "self"))
		return find_in_self(argv[2]);
	while (argc > 2 && work < nr_works && strcmp(works[work].name, argv[2]))
		work++;
	if (argc < 6 || argc - 6 > ADDRS_MAX || work == nr_works)
		errx(2, "usage: bench PID WORK WHICH WANT RESULT [ADDRESS...] | map | self NR");
	which = atoi(argv[3]);
	want = atoi(argv[4]);
	expected = atoi(argv[5]);
	for (; argv[6 + nr_addrs]; nr_addrs++)
		addrs[nr_addrs] = strtoull(argv[6 + nr_addrs], NULL, 16);
	/* Memory that was freed is not given back: page faults are not measured. */
	mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	open_target(argv[1]);
	prepare_query();
	if (!strcmp(argv[2], "scan-unchanged")) {
		scan_walk();
		known_generation = generation;
		if (!generation)
			exit(NO_IOCTL);
	}
	printf("%.1f\n", cost_of_run(do_work, NULL));
	return 0;
}
