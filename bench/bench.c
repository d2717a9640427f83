// SPDX-License-Identifier: GPL-2.0
/*
 * The workload of bench/bench: measure the cost of each method to read the
 * mappings of a process. It runs in a guest whose clock counts instructions
 * (scripts/vm -i), and prints a line for each figure: kernel, method, work and cost, with
 * tabs between.
 *
 *	bench METHOD			all works and methods; METHOD is the name to print
 *					for the PROCMAP_QUERY of the running kernel
 *	bench METHOD short		the headline figures only
 *
 * A walk fails unless it returns as many mappings as the text has.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/procmap_query.h>
#include <linux/procmap_scan.h>
#include <malloc.h>
#include <procmap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cost.h"
#include "target.h"

/* The symbolizer's pass resolves PASS_ADDRS addresses in PASS_VMAS mappings. */
#define PASS_ADDRS	1000
#define PASS_VMAS	50

/* The room for records and for their names and build IDs in one scan. */
#define SCAN_VMAS	65536
#define SCAN_DATA	1048576

/* The largest threshold that malloc(3) takes, in bytes. */
#define KEPT_MEMORY	(32 << 20)

/* The lookups take these addresses in turn. */
#define NR_ADDRS	512

/* The number of VMAs in the target. */
#define NR_VMAS		10000

/* The mappings that a walk returns. */
enum which { ALL, EXECUTABLE, FILES };

/* The addresses that lookups take; a symbolizer has those of code. */
enum places { EVERYWHERE, SHORT_PATHS, LONG_PATHS, CODE, STACK, HOLE, NR_PLACES };

/**
 * struct bench - what a work needs
 * @target: the process whose mappings it reads.
 * @fd: its opened maps file.
 * @addrs: for lookups: addresses in it.
 * @procmaps: the library's handles on the process, by method: query and text.
 * @has_scan: the kernel has PROCMAP_SCAN.
 * @generation: of the address space, for scans that know it; 0 if the kernel does not.
 * @work: what is being done.
 * @lookups: the addresses that it takes in turn.
 * @expected: number of mappings that a walk has to return.
 * @run: number of runs so far.
 * @units: number of lookups, or of mappings walked over, in one run.
 * @queries: average number of ioctls per unit.
 */
struct bench {
	struct target target;
	int fd;
	uint64_t addrs[NR_PLACES][PASS_ADDRS];
	struct procmap *procmaps[PROCMAP_BY_TEXT + 1];
	bool has_scan;
	uint64_t generation;
	const struct work *work;
	const uint64_t *lookups;
	size_t expected;
	size_t run;
	size_t units;
	double queries;
};

/**
 * struct work - one thing to measure
 * @name: its name in the report.
 * @method: how it reads the mappings.
 * @run: does it once; returns 0, or an error number of either sign.
 * @error: what that has to return.
 * @places: the addresses that it looks up.
 * @which: the mappings that it returns, if it is a walk.
 * @names: it is by query, and returns names.
 * @build_ids: it returns build IDs, too.
 * @headline: it is one of the figures of "bench METHOD short".
 */
struct work {
	const char *name;
	enum procmap_method method;
	int (*run)(struct bench *bench);
	int error;
	enum places places;
	enum which which;
	bool names;
	bool build_ids;
	bool headline;
};

static char name[PATH_MAX];
static unsigned char build_id[PROCMAP_BUILD_ID_MAX];

/* The query of a work, and the fields of it that an answer overwrites. */
static struct procmap_query the_query = { .size = sizeof(the_query) };
static uint32_t name_size, build_id_size;

static int query(const struct bench *bench, uint64_t addr)
{
	the_query.query_addr = addr;
	the_query.vma_name_size = name_size;
	the_query.build_id_size = build_id_size;
	return ioctl(bench->fd, PROCMAP_QUERY, &the_query) ? errno : 0;
}

static int any_ioctl(struct bench *bench)
{
	return ioctl(bench->fd, _IO('f', 0x7f)) && errno == ENOTTY ? 0 : EIO;
}

static int lookup(struct bench *bench)
{
	return query(bench, bench->lookups[bench->run++ % NR_ADDRS]);
}

/*
 * Every walk costs per mapping of the target, whether the filters let it pass or
 * not. It fails unless it returned as many mappings as they let pass.
 */
static int walked(struct bench *bench, size_t ioctls, bool complete)
{
	bench->units = NR_VMAS;
	bench->queries = (double)ioctls / bench->units;
	return complete ? 0 : EIO;
}

/* The filters of a walk, for each method. */
static const struct {
	unsigned int library;
	uint64_t query;
	uint64_t scan;
} filters[] = {
	[ALL] = { 0 },
	[EXECUTABLE] = { PROCMAP_EXECUTABLE, PROCMAP_QUERY_VMA_EXECUTABLE,
			 PROCMAP_VMA_EXECUTABLE },
	[FILES] = { PROCMAP_FILE_BACKED, PROCMAP_QUERY_FILE_BACKED_VMA,
		    PROCMAP_VMA_FILE_BACKED },
};

static int query_walk(struct bench *bench)
{
	uint64_t addr = 0;
	size_t nr = 0;
	int error;

	while (!(error = query(bench, addr))) {
		addr = the_query.vma_end;
		nr++;
	}
	return walked(bench, nr + 1, error == ENOENT && nr == bench->expected);
}

static struct procmap_vma scan_vmas[SCAN_VMAS];
static char scan_data[SCAN_DATA];

/* There is room for all mappings, so one call returns them. */
static int scan_walk(struct bench *bench)
{
	const struct work *const work = bench->work;
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.filter = filters[work->which].scan,
		.want = PROCMAP_SCAN_NAMES |
			(work->build_ids ? PROCMAP_SCAN_BUILD_IDS : 0),
		.end = UINT64_MAX,
		.vec = (uintptr_t)scan_vmas,
		.vec_len = SCAN_VMAS,
		.vma_size = sizeof(*scan_vmas),
		.data = (uintptr_t)scan_data,
		.data_size = sizeof(scan_data),
	};
	const int ret = ioctl(bench->fd, PROCMAP_SCAN, &arg);

	if (ret < 0)
		return errno;
	return walked(bench, 1, arg.walk_end == arg.end &&
				(size_t)ret == bench->expected);
}

/* Scan one mapping, unless the address space is of this generation. */
static int scan_since(const struct bench *bench, uint64_t *generation)
{
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.known_generation = *generation,
		.end = UINT64_MAX,
		.vec = (uintptr_t)scan_vmas,
		.vec_len = 1,
		.vma_size = sizeof(*scan_vmas),
	};
	const int nr = ioctl(bench->fd, PROCMAP_SCAN, &arg);

	*generation = arg.generation;
	return nr;
}

static int unchanged_scan(struct bench *bench)
{
	uint64_t generation = bench->generation;

	return scan_since(bench, &generation) ? EPROTO : 0;
}

static struct procmap *handle(const struct bench *bench)
{
	return bench->procmaps[bench->work->method];
}

static unsigned int library_flags(const struct work *work)
{
	return filters[work->which].library |
	       (work->build_ids ? PROCMAP_WANT_BUILD_ID : 0);
}

static int library_walk(struct bench *bench)
{
	const size_t nr = count_vmas(handle(bench), library_flags(bench->work));

	return walked(bench, 0, nr == bench->expected);
}

/*
 * Look up addresses all over the process in one run: by text, the cost of a
 * lookup depends on the address.
 */
#define LIBRARY_LOOKUPS	8

static int library_lookup(struct bench *bench)
{
	const struct procmap_mapping *vma;
	int error = 0;
	size_t i;

	bench->units = LIBRARY_LOOKUPS;
	for (i = 0; i < LIBRARY_LOOKUPS && !error; i++)
		error = procmap_find(handle(bench),
				     bench->addrs[EVERYWHERE][i * (NR_ADDRS / LIBRARY_LOOKUPS)],
				     0, &vma);
	return error;
}

static int pass(struct bench *bench)
{
	const struct procmap_resolved *resolved;
	const int error = procmap_resolve(handle(bench), bench->addrs[CODE],
					  PASS_ADDRS, 0, &resolved);

	if (error)
		return error;
	bench->queries = PASS_VMAS;
	procmap_free_resolved(resolved);
	return 0;
}

/* Their names in the report. That of the query is replaced by the argument METHOD. */
static const char *method_names[] = {
	"default", "query", "text", "scan",
};

static const struct work works[] = {
	{ "any ioctl", PROCMAP_BY_QUERY,
	  .run = any_ioctl },
	{ "lookup", PROCMAP_BY_QUERY,
	  .run = lookup, .headline = true },
	{ "lookup", PROCMAP_BY_TEXT,
	  .run = library_lookup },
	{ "miss", PROCMAP_BY_QUERY,
	  .run = lookup, .places = HOLE, .error = ENOENT, .headline = true },
	{ "special name", PROCMAP_BY_QUERY,
	  .run = lookup, .places = STACK, .names = true },
	{ "30-byte path", PROCMAP_BY_QUERY,
	  .run = lookup, .places = SHORT_PATHS, .names = true, .headline = true },
	{ "200-byte path", PROCMAP_BY_QUERY,
	  .run = lookup, .places = LONG_PATHS, .names = true },
	{ "path and build ID", PROCMAP_BY_QUERY,
	  .run = lookup, .places = SHORT_PATHS, .names = true, .build_ids = true,
	  .headline = true },
	{ "walk, per VMA", PROCMAP_BY_QUERY,
	  .run = query_walk, .names = true, .headline = true },
	{ "walk, per VMA", PROCMAP_BY_SCAN,
	  .run = scan_walk, .headline = true },
	{ "walk, per VMA", PROCMAP_BY_TEXT,
	  .run = library_walk, .headline = true },
	{ "unchanged scan", PROCMAP_BY_SCAN,
	  .run = unchanged_scan, .headline = true },
	{ "executable walk, per VMA", PROCMAP_BY_QUERY,
	  .run = query_walk, .which = EXECUTABLE, .names = true },
	{ "executable walk, per VMA", PROCMAP_BY_SCAN,
	  .run = scan_walk, .which = EXECUTABLE, .headline = true },
	{ "executable walk, per VMA", PROCMAP_BY_TEXT,
	  .run = library_walk, .which = EXECUTABLE },
	{ "build IDs, per VMA", PROCMAP_BY_QUERY,
	  .run = query_walk, .which = FILES, .names = true, .build_ids = true },
	{ "build IDs, per VMA", PROCMAP_BY_SCAN,
	  .run = scan_walk, .which = FILES, .build_ids = true, .headline = true },
	{ "symbolizer's pass", PROCMAP_BY_QUERY,
	  .run = pass },
	{ "symbolizer's pass", PROCMAP_BY_TEXT,
	  .run = pass },
	{ "build IDs, per VMA", PROCMAP_BY_TEXT,
	  .run = library_walk, .which = FILES, .build_ids = true },
};

#define NR_WORKS	(sizeof(works) / sizeof(*works))

static void do_work(void *context)
{
	struct bench *const bench = context;
	const struct work *const work = bench->work;
	const int error = work->run(bench);

	if (error != work->error)
		errx(2, "%s by %s: error %d, not %d", work->name,
		     method_names[work->method], error, work->error);
}

/* Return the cost of a unit. */
static double cost_of(const struct work *work, struct bench *bench)
{
	bench->work = work;
	bench->expected = count_vmas(bench->procmaps[PROCMAP_BY_TEXT],
				     filters[work->which].library);
	bench->run = 0;
	bench->units = 1;
	bench->queries = 1;
	the_query.query_flags = work->run != query_walk ? 0 :
		PROCMAP_QUERY_COVERING_OR_NEXT_VMA | filters[work->which].query;
	name_size = work->names ? sizeof(name) : 0;
	build_id_size = work->build_ids ? sizeof(build_id) : 0;
	the_query.vma_name_addr = name_size ? (uintptr_t)name : 0;
	the_query.build_id_addr = build_id_size ? (uintptr_t)build_id : 0;
	bench->lookups = bench->addrs[work->places];
	return cost_of_run(do_work, bench) / bench->units;
}

static bool is_at(const struct procmap_mapping *line, enum places places, size_t nr)
{
	switch (places) {
	case SHORT_PATHS:
		return is_library(line->name) && line->name_len == PATH_SHORT;
	case LONG_PATHS:
		return is_library(line->name) && line->name_len == PATH_LONG;
	case CODE:
		return is_library(line->name) && line->flags & PROCMAP_EXECUTABLE;
	case STACK:
		return !strcmp(line->name, "[stack]");
	case HOLE:
		return nr == NR_VMAS - 1;
	default:
		return true;
	}
}

/*
 * Spread addresses over the mappings, those of code over PASS_VMAS of them; a hole is below
 * the last one. 7919 is a prime: successive addresses are far apart.
 */
static void spread(struct bench *bench, enum places places)
{
	static uint64_t starts[NR_VMAS];
	size_t nr = 0, nr_vmas, i;

	for (i = 0; i < NR_VMAS; i++) {
		const struct procmap_mapping *const line =
			procmap_snapshot_at(bench->target.text, i);

		if (is_at(line, places, i))
			starts[nr++] = line->start - (places == HOLE ? PAGE : 0);
	}
	if (!nr)
		errx(2, "the target lacks a kind of mappings");
	nr_vmas = places == CODE && nr > PASS_VMAS ? PASS_VMAS : nr;
	for (i = 0; i < PASS_ADDRS; i++)
		bench->addrs[places][i] = starts[i * 7919 % nr_vmas * (nr / nr_vmas)] +
					  (places == CODE ? i * 31 % PAGE : 0);
}

/* Start the target, and open its maps file. */
static void open_bench(struct bench *bench)
{
	char path[sizeof("/proc//maps") + 3 * sizeof(pid_t)];
	enum procmap_method by;
	enum places places;
	int error;

	start_target(&bench->target, NR_VMAS);
	snprintf(path, sizeof(path), "/proc/%d/maps", bench->target.pid);
	bench->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (bench->fd < 0)
		err(2, "%s", path);
	for (by = PROCMAP_BY_QUERY; by <= PROCMAP_BY_TEXT; by++) {
		error = procmap_open_pid(bench->target.pid, BY(by), &bench->procmaps[by]);
		if (error)
			errx(2, "open by %s: %s", method_names[by], strerror(-error));
	}
	/* A scan that does not know the generation finds a mapping. */
	bench->has_scan = scan_since(bench, &bench->generation) == 1;
	for (places = 0; places < NR_PLACES; places++)
		spread(bench, places);
}

static bool can_be_done(const struct work *work, const struct bench *bench)
{
	return (work->method != PROCMAP_BY_SCAN || bench->has_scan) &&
	       (work->run != unchanged_scan || bench->generation);
}

static void measure(struct bench *bench, const char *kernel, bool headline_only)
{
	const double floor = cost_of(works, bench);
	size_t i;

	for (i = 0; i < NR_WORKS; i++) {
		const struct work *const work = &works[i];
		double cost;

		if ((headline_only && !work->headline) || !can_be_done(work, bench))
			continue;
		cost = cost_of(work, bench);
		if (work->method != PROCMAP_BY_TEXT && work->run != any_ioctl)
			cost -= floor * bench->queries;
		printf("%s\t%s\t%s\t%.1f\n", kernel, method_names[work->method],
		       work->name, cost);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const bool headline_only = argc == 3 && !strcmp(argv[2], "short");
	static struct bench bench;
	struct utsname host;

	if (argc != 2 && !headline_only)
		errx(2, "usage: bench METHOD [short]");
	/* Memory that was freed is not given back: page faults are not measured. */
	mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	method_names[PROCMAP_BY_QUERY] = argv[1];
	uname(&host);
	open_bench(&bench);
	measure(&bench, host.release, headline_only);
	return 0;
}
