// SPDX-License-Identifier: GPL-2.0
/*
 * The workload of "bench/bench library": measure what the operations of libprocmap
 * cost by each method that the running kernel has, and by the default. It runs in a
 * guest whose clock counts instructions (scripts/vm -i), and prints one JSON object
 * per line and figure.
 *
 *	library			in processes of 10,000 and of 50,000 mappings, and
 *				in a table of 1,000 processes of 200
 *	library names		in one of 65,537 named mappings, if the kernel has
 *				CONFIG_ANON_VMA_NAME; vm.max_map_count has to allow
 *				for them
 *
 * What an operation returns is compared with the text before it is measured.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/prctl.h>
#include <malloc.h>
#include <procmap_table.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cost.h"
#include "target.h"

/* Numbers of mappings in the target. */
static const size_t sizes[] = { 10000, 50000 };

/* So many random addresses are resolved, or looked up in a snapshot. */
#define NR_ADDRS	10000

/* A lookup by text passes half of the process, on average. */
#define NR_FINDS	500
#define NR_FINDS_TEXT	8

/* A symbolizer's pass: so many addresses in so many mappings. */
#define PASS_ADDRS	1000
#define PASS_VMAS	50

/* The largest threshold that malloc(3) takes, in bytes. */
#define KEPT_MEMORY	(32 << 20)

/* A table of so many processes, with TABLE_VMAS mappings each, of 20 programs. */
#define TABLE_PIDS	1000
#define TABLE_PROGRAMS	20

/* So many mappings are named, and one more by what is looked for. */
#define NR_NAMED	65536
#define NAME		"OTEL_CTX"

static const struct {
	const char *name;
	enum procmap_method method;
} methods[] = {
	{ "default", PROCMAP_ANY_METHOD },
	{ "query", PROCMAP_BY_QUERY },
	{ "scan", PROCMAP_BY_SCAN },
	{ "text", PROCMAP_BY_TEXT },
};

#define NR_METHODS	(sizeof(methods) / sizeof(*methods))

/**
 * struct bench - what an operation needs
 * @target: the process whose mappings it reads.
 * @path: its directory in /proc.
 * @procmap: a handle on its mappings.
 * @method: index of the handle's method in methods[].
 * @work: the operation.
 * @addrs: random addresses of @target.
 * @pass: addresses of a symbolizer's pass.
 * @snapshot: a snapshot of @target.
 * @named: the mapping that is called NAME, when that is looked for.
 */
struct bench {
	struct target target;
	char path[sizeof("/proc/") + 3 * sizeof(pid_t)];
	struct procmap *procmap;
	size_t method;
	const struct work *work;
	uint64_t addrs[NR_ADDRS];
	uint64_t pass[PASS_ADDRS];
	struct procmap_snapshot *snapshot;
	uint64_t named;
};

/**
 * struct work - an operation to measure
 * @name: its name in the report.
 * @run: does it once; returns 0 or a negative error.
 * @agrees: does it once, and returns whether the result agrees with the text.
 * @units: what its cost is divided by.
 * @flags: what it passes to the library.
 */
struct work {
	const char *name;
	int (*run)(struct bench *bench);
	bool (*agrees)(struct bench *bench);
	size_t (*units)(const struct bench *bench);
	unsigned int flags;
};

static const char *kernel;

static void report(const char *work, const char *method, size_t nr_vmas,
		   double cost)
{
	printf("{\"kernel\": \"%s\", \"method\": \"%s\", \"work\": \"%s\", \"vmas\": %zu, \"instructions\": %.1f}\n",
	       kernel, method, work, nr_vmas, cost);
	fflush(stdout);
}

static size_t once(const struct bench *bench)
{
	(void)bench;
	return 1;
}

static size_t per_vma(const struct bench *bench)
{
	return bench->target.nr_vmas;
}

static size_t per_addr(const struct bench *bench)
{
	(void)bench;
	return NR_ADDRS;
}

static bool passes(const struct procmap_mapping *line, unsigned int flags)
{
	if ((flags & PROCMAP_FILE_BACKED) && !is_file(line))
		return false;
	return !(flags & PROCMAP_EXECUTABLE) ||
	       (line->flags & PROCMAP_EXECUTABLE);
}

/* Does a mapping say what the line does, with the build ID if that was wanted? */
static bool is_returned(const struct procmap_mapping *line,
			const struct procmap_mapping *mapping, unsigned int flags)
{
	return is_same(line, mapping) &&
	       (!(flags & PROCMAP_WANT_BUILD_ID) ||
		is_same_id(line, mapping->build_id, mapping->build_id_size));
}

/* What opening a handle and closing it cannot do without. */
static int open_alone(struct bench *bench)
{
	const int dir = open(bench->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);

	close(fd);
	close(dir);
	return fd < 0 ? -errno : 0;
}

static int open_handle(struct bench *bench)
{
	struct procmap *procmap;
	int error;

	error = procmap_open_pid(bench->target.pid, BY(methods[bench->method].method),
				 &procmap);
	if (!error)
		procmap_close(procmap);
	return error;
}

static int open_and_find(struct bench *bench)
{
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	int error;

	error = procmap_open_pid(bench->target.pid, BY(methods[bench->method].method),
				 &procmap);
	if (error)
		return error;
	error = procmap_find(procmap, bench->addrs[0], 0, &mapping);
	procmap_close(procmap);
	return error;
}

static bool open_agrees(struct bench *bench)
{
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	bool agrees;

	if (procmap_open_pid(bench->target.pid, BY(methods[bench->method].method),
			     &procmap))
		return false;
	agrees = !procmap_find(procmap, bench->addrs[0], 0, &mapping) &&
		 is_same(line_at(&bench->target, bench->addrs[0]), mapping);
	procmap_close(procmap);
	return agrees;
}

static int walk(struct bench *bench)
{
	const struct procmap_mapping *mapping;
	uint64_t cursor = 0;
	int error;

	do {
		error = procmap_next(bench->procmap, &cursor, bench->work->flags,
				     &mapping);
	} while (!error);
	return error == -ENOENT ? 0 : error;
}

static bool walk_agrees(struct bench *bench)
{
	const struct target *const target = &bench->target;
	const unsigned int flags = bench->work->flags;
	const struct procmap_mapping *mapping;
	uint64_t cursor = 0;
	size_t i;

	for (i = 0; i < target->nr_vmas; i++)
		if (passes(&target->lines[i], flags) &&
		    (procmap_next(bench->procmap, &cursor, flags, &mapping) ||
		     !is_returned(&target->lines[i], mapping, flags)))
			return false;
	return procmap_next(bench->procmap, &cursor, flags, &mapping) == -ENOENT;
}

static bool is_resolved(const struct bench *bench, uint64_t addr,
			const struct procmap_mapping *mapping)
{
	const struct procmap_mapping *const line = line_at(&bench->target, addr);

	return passes(line, bench->work->flags) ? mapping && is_same(line, mapping) :
						  !mapping;
}

static bool resolved_agrees(struct bench *bench, const uint64_t *addrs, size_t nr)
{
	const struct procmap_resolved *resolved;
	bool agrees = true;
	size_t i;

	if (procmap_resolve(bench->procmap, addrs, nr, bench->work->flags,
			    &resolved))
		return false;
	for (i = 0; i < nr && agrees; i++)
		agrees = is_resolved(bench, addrs[i], resolved->mappings[i]);
	procmap_free_resolved(resolved);
	return agrees;
}

static int resolve_addrs(struct bench *bench, const uint64_t *addrs, size_t nr)
{
	const struct procmap_resolved *resolved;
	int error;

	error = procmap_resolve(bench->procmap, addrs, nr, bench->work->flags,
				&resolved);
	if (!error)
		procmap_free_resolved(resolved);
	return error;
}

static int resolve(struct bench *bench)
{
	return resolve_addrs(bench, bench->addrs, NR_ADDRS);
}

static bool resolve_agrees(struct bench *bench)
{
	return resolved_agrees(bench, bench->addrs, NR_ADDRS);
}

static int pass(struct bench *bench)
{
	return resolve_addrs(bench, bench->pass, PASS_ADDRS);
}

static bool pass_agrees(struct bench *bench)
{
	return resolved_agrees(bench, bench->pass, PASS_ADDRS);
}

static size_t per_find(const struct bench *bench)
{
	return procmap_get_method(bench->procmap) == PROCMAP_BY_TEXT ?
	       NR_FINDS_TEXT : NR_FINDS;
}

static int find(struct bench *bench)
{
	const size_t nr = per_find(bench);
	const struct procmap_mapping *mapping;
	int error = 0;
	size_t i;

	for (i = 0; i < nr && !error; i++)
		error = procmap_find(bench->procmap, bench->addrs[i], 0, &mapping);
	return error;
}

static bool find_agrees(struct bench *bench)
{
	const size_t nr = per_find(bench);
	const struct procmap_mapping *mapping;
	size_t i;

	for (i = 0; i < nr; i++)
		if (procmap_find(bench->procmap, bench->addrs[i], 0, &mapping) ||
		    !is_same(line_at(&bench->target, bench->addrs[i]), mapping))
			return false;
	return true;
}

static int take(struct bench *bench)
{
	struct procmap_snapshot *snapshot;
	int error;

	error = procmap_snapshot_take(bench->procmap, bench->work->flags,
				      &snapshot);
	if (!error)
		procmap_snapshot_free(snapshot);
	return error;
}

/* Is the snapshot of the bench, a new one for each method, what the text says? */
static bool snapshot_agrees(struct bench *bench)
{
	const struct target *const target = &bench->target;
	struct procmap_snapshot *const snapshot = bench->snapshot;
	size_t i;

	if (procmap_snapshot_count(snapshot) != target->nr_vmas)
		return false;
	for (i = 0; i < target->nr_vmas; i++)
		if (!is_same(&target->lines[i], procmap_snapshot_at(snapshot, i)))
			return false;
	return true;
}

static int find_in_snapshot(struct bench *bench)
{
	size_t i;

	for (i = 0; i < NR_ADDRS; i++)
		if (!procmap_snapshot_find(bench->snapshot, bench->addrs[i]))
			return -ENOENT;
	return 0;
}

static bool find_in_snapshot_agrees(struct bench *bench)
{
	const struct procmap_mapping *mapping;
	size_t i;

	for (i = 0; i < NR_ADDRS; i++) {
		mapping = procmap_snapshot_find(bench->snapshot, bench->addrs[i]);
		if (!mapping ||
		    !is_same(line_at(&bench->target, bench->addrs[i]), mapping))
			return false;
	}
	return true;
}

static int refresh(struct bench *bench)
{
	return procmap_snapshot_refresh(bench->snapshot, bench->procmap);
}

static bool refresh_agrees(struct bench *bench)
{
	return !refresh(bench) && snapshot_agrees(bench);
}

static const struct work the_opens = {
	"open and close", open_alone, open_agrees, once, 0,
};

static const struct work works[] = {
	{ "open and close", open_handle, open_agrees, once, 0 },
	{ "walk", walk, walk_agrees, per_vma, 0 },
	{ "walk, executable", walk, walk_agrees, per_vma, PROCMAP_EXECUTABLE },
	{ "walk, files", walk, walk_agrees, per_vma, PROCMAP_FILE_BACKED },
	{ "walk, build IDs", walk, walk_agrees, per_vma,
	  PROCMAP_WANT_BUILD_ID },
	{ "walk, files, build IDs", walk, walk_agrees, per_vma,
	  PROCMAP_FILE_BACKED | PROCMAP_WANT_BUILD_ID },
	{ "resolve", resolve, resolve_agrees, per_addr, 0 },
	{ "resolve, executable", resolve, resolve_agrees, per_addr,
	  PROCMAP_EXECUTABLE },
	{ "symbolizer's pass", pass, pass_agrees, once, 0 },
	{ "find", find, find_agrees, per_find, 0 },
	{ "snapshot", take, snapshot_agrees, per_vma, 0 },
	{ "find in a snapshot", find_in_snapshot, find_in_snapshot_agrees,
	  per_addr, 0 },
	{ "refresh", refresh, refresh_agrees, once, 0 },
};

#define NR_WORKS	(sizeof(works) / sizeof(*works))

static void fail(const struct bench *bench, const char *how)
{
	errx(2, "%s by %s, %zu mappings: %s", bench->work->name,
	     methods[bench->method].name, bench->target.nr_vmas, how);
}

static void do_work(void *context)
{
	struct bench *const bench = context;
	const int error = bench->work->run(bench);

	if (error)
		fail(bench, strerror(abs(error)));
}

static double cost_of(const struct work *work, struct bench *bench)
{
	bench->work = work;
	if (!work->agrees(bench))
		fail(bench, "it does not agree with the text");
	return cost_of_run(do_work, bench) / work->units(bench);
}

/* Returns whether the running kernel has the method. */
static bool open_method(struct bench *bench, pid_t pid, size_t method)
{
	const int error = procmap_open_pid(pid, BY(methods[method].method),
					   &bench->procmap);

	bench->method = method;
	if (error && error != -ENOTTY)
		errx(2, "open by %s: %s", methods[method].name, strerror(-error));
	return !error;
}

/* Random, but the same in each run. */
static void choose_addrs(struct bench *bench)
{
	const struct target *const target = &bench->target;
	size_t i;

	srand48(1);
	for (i = 0; i < NR_ADDRS; i++)
		bench->addrs[i] = target->lines[lrand48() % target->nr_vmas].start +
				  lrand48() % PAGE;
	spread_pass(target, PASS_VMAS, bench->pass, PASS_ADDRS);
}

static void measure_method(struct bench *bench)
{
	size_t i;

	if (procmap_snapshot_take(bench->procmap, 0, &bench->snapshot))
		errx(2, "snapshot by %s", methods[bench->method].name);
	for (i = 0; i < NR_WORKS; i++)
		report(works[i].name, methods[bench->method].name,
		       bench->target.nr_vmas, cost_of(&works[i], bench));
	procmap_snapshot_free(bench->snapshot);
	procmap_close(bench->procmap);
}

static void measure(struct bench *bench, size_t nr_vmas)
{
	size_t i;

	start_target(&bench->target, nr_vmas);
	snprintf(bench->path, sizeof(bench->path), "/proc/%d",
		 bench->target.pid);
	choose_addrs(bench);
	report(the_opens.name, "alone", nr_vmas, cost_of(&the_opens, bench));
	for (i = 0; i < NR_METHODS; i++)
		if (open_method(bench, bench->target.pid, i))
			measure_method(bench);
	stop_target(&bench->target);
}

/* Make mappings of our own that are not merged, and return the first of them. */
static char *map_many(size_t nr)
{
	char *const at = mmap(NULL, nr * PAGE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	if (at == MAP_FAILED)
		err(2, "mmap");
	for (i = 0; i < nr; i += 2)
		if (mprotect(at + i * PAGE, PAGE, PROT_READ))
			err(2, "mprotect: raise vm.max_map_count");
	return at;
}

static int set_name(const char *at, const char *name)
{
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, PAGE, name);
}

/* Name each mapping by its number, but the one in the middle by NAME. */
static void name_all(char *at, size_t nr)
{
	char name[sizeof("mapping-") + 3 * sizeof(size_t)];
	size_t i;

	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "mapping-%zu", i);
		if (set_name(at + i * PAGE, i == nr / 2 ? NAME : name))
			err(2, "PR_SET_VMA_ANON_NAME");
	}
}

static void fork_once(void *context)
{
	const pid_t pid = fork();

	(void)context;
	if (pid < 0)
		err(2, "fork");
	if (!pid)
		_exit(0);
	if (waitpid(pid, NULL, 0) != pid)
		err(2, "waitpid");
}

static int find_name(struct bench *bench)
{
	const struct procmap_mapping *mapping;
	uint64_t cursor = 0;
	int error;

	error = procmap_find_name(bench->procmap, NAME, PROCMAP_EXACT, &cursor, 0,
				  &mapping);
	if (error)
		return error;
	return mapping->start == bench->named ? 0 : -EIO;
}

/* Is there one line with that name, and is it that of the mapping we found? */
static bool find_name_agrees(struct bench *bench)
{
	FILE *const file = fopen("/proc/self/maps", "re");
	unsigned long long start;
	size_t size = 0, nr = 0;
	char *text = NULL;

	if (!file)
		err(2, "/proc/self/maps");
	while (getline(&text, &size, file) > 0)
		nr += strstr(text, " [anon:" NAME "]\n") &&
		      sscanf(text, "%llx-", &start) == 1 && start == bench->named;
	free(text);
	fclose(file);
	return nr == 1 && !find_name(bench);
}

static const struct work the_search = {
	"find by name", find_name, find_name_agrees, once, 0,
};

static void measure_names(struct bench *bench)
{
	const size_t nr = NR_NAMED + 1;
	char *const at = map_many(nr);
	size_t i;

	if (set_name(at, NULL)) {
		warnx("this kernel has no CONFIG_ANON_VMA_NAME");
		return;
	}
	bench->target.nr_vmas = nr;
	bench->named = (uintptr_t)at + nr / 2 * PAGE;
	report("fork", "unnamed", nr, cost_of_run(fork_once, NULL));
	name_all(at, nr);
	report("fork", "named", nr, cost_of_run(fork_once, NULL));
	for (i = 0; i < NR_METHODS; i++) {
		if (!open_method(bench, getpid(), i))
			continue;
		report(the_search.name, methods[i].name, nr,
		       cost_of(&the_search, bench));
		procmap_close(bench->procmap);
	}
}

/* Four mappings in a row are of one file. */
#define TABLE_FILES	(TABLE_VMAS / 4)

/**
 * struct table_bench - what is measured of a table
 * @table: the table.
 * @time: the time of the last event.
 * @next: the number of the next event.
 * @names: the names of the files of each program.
 * @questions: what the table is asked for.
 */
struct table_bench {
	struct procmap_table *table;
	uint64_t time;
	size_t next;
	char names[TABLE_PROGRAMS][TABLE_FILES][48];
	struct {
		pid_t pid;
		uint64_t addr;
	} questions[NR_ADDRS];
};

static uint64_t table_addr(size_t vma)
{
	return 0x7f0000000000 + vma * 2 * PAGE;
}

/* Something is mapped; in the end, each process has TABLE_VMAS. */
static void report_mmap(struct table_bench *bench)
{
	const size_t vma = bench->next % TABLE_VMAS;
	const pid_t pid = bench->next / TABLE_VMAS % TABLE_PIDS + 1;
	const unsigned int program = pid % TABLE_PROGRAMS;
	const struct procmap_mmap event = {
		.size = sizeof(event),
		.addr = table_addr(vma),
		.len = PAGE,
		.pgoff = vma % 4 * PAGE,
		.ino = program * TABLE_FILES + vma / 4 + 1,
		.filename = bench->names[program][vma / 4],
		.maj = 8,
		.prot = PROT_READ | PROT_EXEC,
	};

	if (procmap_table_mmap(bench->table, pid, ++bench->time, &event))
		errx(2, "procmap_table_mmap");
	bench->next++;
}

static void report_mmaps(void *context)
{
	struct table_bench *const bench = context;
	size_t i;

	for (i = 0; i < TABLE_VMAS; i++)
		report_mmap(bench);
}

/* Each process is asked for the next of its mappings, in an order that jumps. */
static void prepare_table(struct table_bench *bench)
{
	size_t i, j;

	for (i = 0; i < TABLE_PROGRAMS; i++)
		for (j = 0; j < TABLE_FILES; j++)
			snprintf(bench->names[i][j], sizeof(bench->names[i][j]),
				 "/usr/lib/x86_64-linux-gnu/lib%zu.so.%zu", j, i);
	for (i = 0; i < NR_ADDRS; i++) {
		bench->questions[i].pid = i * 337 % TABLE_PIDS + 1;
		bench->questions[i].addr = table_addr(i * 7 % TABLE_VMAS) + i % PAGE;
	}
}

static const struct procmap_mapping *find_question(struct table_bench *bench, size_t i)
{
	const struct procmap_table_mapping *found;

	if (procmap_table_find(bench->table, bench->questions[i].pid, bench->time,
			       bench->questions[i].addr, &found))
		errx(2, "a mapping is not in the table");
	return found->mapping;
}

static void find_in_table(void *context)
{
	size_t i;

	for (i = 0; i < NR_ADDRS; i++)
		find_question(context, i);
}

static void check_table(struct table_bench *bench)
{
	const struct procmap_mapping *found;
	size_t i, vma, program;

	for (i = 0; i < NR_ADDRS; i++) {
		vma = i * 7 % TABLE_VMAS;
		program = bench->questions[i].pid % TABLE_PROGRAMS;
		found = find_question(bench, i);
		if (found->start != table_addr(vma) ||
		    strcmp(found->name, bench->names[program][vma / 4]))
			errx(2, "wrong result in a table");
	}
}

static void measure_table(void)
{
	const struct procmap_table_options options = {
		.size = sizeof(options),
		.flags = PROCMAP_TABLE_EVENTS_ONLY,
		.window = TABLE_VMAS,
	};
	static struct table_bench bench;
	size_t i;

	prepare_table(&bench);
	if (procmap_table_new(&options, &bench.table))
		errx(2, "procmap_table_new");
	for (i = 0; i < TABLE_PIDS; i++)
		report_mmaps(&bench);
	check_table(&bench);
	report("bytes per process of a table", "table", TABLE_VMAS,
	       (double)procmap_table_get_stats(bench.table)->bytes / TABLE_PIDS);
	report("find in a table", "table", TABLE_VMAS,
	       cost_of_run(find_in_table, &bench) / NR_ADDRS);
	report("an mmap event for a table", "table", TABLE_VMAS,
	       cost_of_run(report_mmaps, &bench) / TABLE_VMAS);
	procmap_table_free(bench.table);
}

/* What is done without a table: the text is read for each sample. */
static void measure_reading(struct bench *bench)
{
	static const struct work reading = {
		"find in a table", open_and_find, open_agrees, once, 0,
	};

	start_target(&bench->target, TABLE_VMAS);
	choose_addrs(bench);
	bench->method = NR_METHODS - 1;
	report(reading.name, "text", TABLE_VMAS, cost_of(&reading, bench));
	stop_target(&bench->target);
}

int main(int argc, char **argv)
{
	const bool names = argc == 2 && !strcmp(argv[1], "names");
	static struct bench bench;
	static struct utsname host;
	size_t i;

	if (argc != 1 && !names)
		errx(2, "usage: library [names]");
	/* Memory that was freed is not given back: page faults are not measured. */
	mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	uname(&host);
	kernel = host.release;
	if (names) {
		measure_names(&bench);
		return 0;
	}
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		measure(&bench, sizes[i]);
	measure_table();
	measure_reading(&bench);
	return 0;
}
