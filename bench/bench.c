// SPDX-License-Identifier: GPL-2.0
/*
 * The workload of bench/bench: measure the cost of each method to read the
 * mappings of a process. It runs in a guest whose clock counts instructions
 * (scripts/vm -i), and prints one JSON object per line and figure.
 *
 *	bench METHOD			all works, methods and sizes; METHOD is
 *					the name to print for the PROCMAP_QUERY of
 *					the running kernel
 *	bench METHOD short		the headline figures only
 *	bench METHOD WORK VMAS RUNS	run one work RUNS times, once it is warm,
 *					between marks for bench/tcg-profile.c and
 *					for ftrace; METHOD can be "scan" or
 *					"text", too
 *
 * Link it statically: a static program has so few mappings of its own that the
 * target process can be one of 10 mappings.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/procmap_scan.h>
#include <procmap.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096
#define NR_FILES	50
#define PATH_MIN	20
#define PATH_LONG	200
#define PATH_SHORT	30

/* The symbolizer's pass resolves PASS_ADDRS addresses in PASS_VMAS mappings. */
#define PASS_ADDRS	1000
#define PASS_VMAS	50

/* The room for records and for their names and build IDs in one scan. */
#define SCAN_VMAS	65536
#define SCAN_DATA	1048576

/* The lookups take these addresses in turn. */
#define NR_ADDRS	512

/*
 * The least number of instructions in a batch. Of that many, timer interrupts
 * are 0.1 %.
 */
#define BATCH_COST	4000000
#define NR_BATCHES	5

/* Numbers of VMAs in the target. */
static const size_t sizes[] = { 10, 100, 1000, 10000, 60000 };

/* The one size that the headline figures are measured in. */
#define HEADLINE_VMAS	10000

/**
 * struct target - the process whose mappings are read, in memory shared with it
 * @nr_vmas: number of its mappings, without vsyscall.
 * @addrs: one address in each of NR_ADDRS mappings, all over the process.
 * @pass: addresses of a symbolizer's pass.
 * @hole: an address below the last mapping that is not mapped.
 * @stack: an address in the stack, a mapping with a special name.
 * @nr_files: number of file mappings. The first and every NR_FILES-th after it
 *	map a file with a path of PATH_SHORT bytes, their successors one with a
 *	path of PATH_LONG bytes.
 * @at: start addresses of the mappings, in the order in which they were made.
 */
struct target {
	size_t nr_vmas;
	uint64_t addrs[NR_ADDRS];
	uint64_t pass[PASS_ADDRS];
	uint64_t hole;
	uint64_t stack;
	size_t nr_files;
	uint64_t at[];
};

/* Make a path of @len bytes below /opt. Its directories have 15-byte names. */
static void make_path(char path[PATH_LONG + 1], size_t len, int nr)
{
	size_t at;

	memcpy(path, "/opt", 4);
	for (at = 4; at < len; at++)
		path[at] = at % 16 == 4 ? '/' : 'a' + at % 16;
	/* No path ends in a slash, and no two are equal. */
	if (path[len - 1] == '/')
		path[len - 1] = '_';
	path[len - 2] = 'A' + nr / 26;
	path[len - 1] = 'A' + nr % 26;
	path[len] = '\0';
}

static void make_directories(char *path)
{
	char *slash = path;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			err(2, "%s", path);
		*slash = '/';
	}
}

/* Copy this program, so that the file has a build ID. */
static int make_file(size_t len, int nr)
{
	const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char path[PATH_LONG + 1];
	struct stat stat;
	int to;

	make_path(path, len, nr);
	make_directories(path);
	to = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (from < 0 || to < 0 || fstat(from, &stat) ||
	    sendfile(to, from, NULL, stat.st_size) != stat.st_size)
		err(2, "%s", path);
	close(from);
	return to;
}

/* Let the kernel choose the address, as most programs do. */
static uint64_t map(int prot, int fd)
{
	void *const at = mmap(NULL, PAGE, prot,
			      MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (at == MAP_FAILED)
		err(2, "mmap: raise vm.max_map_count");
	return (uintptr_t)at;
}

static size_t count_vmas(struct procmap *procmap, unsigned int filters)
{
	struct procmap_mapping vma;
	uint64_t cursor = 0;
	size_t nr = 0;
	int error;

	while (!(error = procmap_next(procmap, &cursor, filters, &vma)))
		nr++;
	if (error != -ENOENT)
		errx(2, "cannot count mappings: %s", strerror(-error));
	return nr;
}

static size_t count_own_vmas(void)
{
	struct procmap *procmap;
	size_t nr;

	if (procmap_open_self(PROCMAP_BY_TEXT, &procmap))
		errx(2, "no /proc/self/maps");
	nr = count_vmas(procmap, 0);
	procmap_close(procmap);
	return nr;
}

/* Unmap [vvar] and [vdso]: a process that only waits does not need them. */
static void unmap_vdso(void)
{
	struct procmap_mapping vma;
	struct procmap *procmap;
	uint64_t cursor = 0;

	if (procmap_open_self(PROCMAP_BY_TEXT, &procmap))
		errx(2, "no /proc/self/maps");
	while (!procmap_next(procmap, &cursor, 0, &vma))
		if (!strncmp(vma.name, "[v", 2))
			munmap((void *)vma.start, vma.end - vma.start);
	procmap_close(procmap);
}

/*
 * Make mappings until there are @nr. A tenth are file mappings, half of those
 * executable. The others are anonymous, every second one readable: neighbours
 * with the same permissions would be merged.
 */
static void become_target(struct target *target, size_t nr, int fds[NR_FILES])
{
	size_t own, more, pass, i;
	uint64_t *const at = target->at;

	unmap_vdso();
	own = count_own_vmas();
	if (own >= nr)
		errx(2, "the program alone has %zu mappings", own);
	more = nr - own;
	target->hole = map(PROT_NONE, -1);
	for (i = 0; i < more; i++) {
		if (i % 10)
			at[i] = map(i % 2 ? PROT_READ : PROT_NONE, -1);
		else
			at[i] = map(i / 10 % 2 ? PROT_READ : PROT_READ | PROT_EXEC,
				    fds[i / 10 % NR_FILES]);
	}
	munmap((void *)target->hole, PAGE);
	target->nr_vmas = count_own_vmas();
	if (target->nr_vmas != nr)
		errx(2, "%zu mappings, not %zu", target->nr_vmas, nr);

	/* 7919 is a prime: successive addresses are far apart. */
	for (i = 0; i < NR_ADDRS; i++)
		target->addrs[i] = at[i * 7919 % more];
	target->nr_files = (more + 9) / 10;
	pass = target->nr_files < PASS_VMAS ? target->nr_files : PASS_VMAS;
	for (i = 0; i < PASS_ADDRS; i++)
		target->pass[i] = at[i * 7919 % pass *
				      (target->nr_files / pass) * 10] +
				   i * 31 % PAGE;
	target->stack = (uintptr_t)&own;
}

static struct target *start_target(size_t nr, int fds[NR_FILES], pid_t *pid)
{
	struct target *target;
	int ends[2];
	char byte;

	target = mmap(NULL, sizeof(*target) + nr * sizeof(*target->at), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (target == MAP_FAILED || pipe2(ends, O_CLOEXEC))
		err(2, "no memory or pipe");
	*pid = fork();
	if (*pid < 0)
		err(2, "fork");
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become_target(target, nr, fds);
		if (write(ends[1], "", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		errx(2, "cannot make a process with %zu mappings", nr);
	close(ends[0]);
	return target;
}

enum method { BY_QUERY, BY_SCAN, BY_TEXT, NR_METHODS };

/**
 * struct bench - what a work needs
 * @pid: the process whose mappings it reads.
 * @target: what is known of that process.
 * @fd: its opened maps file.
 * @procmaps: the library's handles on @fd, by method; NULL for scans, which the
 *	works do by the ioctl itself.
 * @procmap: the handle of the work's method.
 * @nr_executable: number of the target's executable mappings.
 * @nr_file_backed: number of its file mappings.
 * @run: number of runs so far, for lookups that take addresses in turn.
 * @units: number of lookups, or of mappings walked over, in one run.
 * @queries: average number of ioctls per unit.
 */
struct bench {
	pid_t pid;
	const struct target *target;
	int fd;
	struct procmap *procmaps[NR_METHODS];
	struct procmap *procmap;
	size_t nr_executable;
	size_t nr_file_backed;
	size_t run;
	size_t units;
	double queries;
};

static char name[PATH_MAX];
static unsigned char build_id[PROCMAP_BUILD_ID_MAX];

/* Set only the fields that change from one query to the next. */
static struct procmap_query the_query = { .size = sizeof(the_query) };

static int query(const struct bench *bench, uint64_t addr, uint64_t flags,
		 bool want_name, bool want_build_id)
{
	struct procmap_query *const query = &the_query;

	query->query_flags = flags;
	query->query_addr = addr;
	query->vma_name_addr = want_name ? (uintptr_t)name : 0;
	query->vma_name_size = want_name ? sizeof(name) : 0;
	query->build_id_addr = want_build_id ? (uintptr_t)build_id : 0;
	query->build_id_size = want_build_id ? sizeof(build_id) : 0;
	return ioctl(bench->fd, PROCMAP_QUERY, query) ? errno : 0;
}

static uint64_t next_address(struct bench *bench)
{
	return bench->target->addrs[bench->run++ % NR_ADDRS];
}

/* Return an address in file @nr, of each of its mappings in turn. */
static uint64_t next_in_file(struct bench *bench, size_t nr)
{
	const struct target *const target = bench->target;
	const size_t rounds = (target->nr_files - nr + NR_FILES - 1) / NR_FILES;

	return target->at[(bench->run++ % rounds * NR_FILES + nr) * 10];
}

static int floor_of_ioctl(struct bench *bench)
{
	return ioctl(bench->fd, _IO('f', 0x7f)) && errno == ENOTTY ? 0 : EIO;
}

static int lookup(struct bench *bench)
{
	return query(bench, next_address(bench), 0, false, false);
}

static int lookup_miss(struct bench *bench)
{
	return query(bench, bench->target->hole, 0, false, false) ==
	       ENOENT ? 0 : EIO;
}

static int lookup_special(struct bench *bench)
{
	return query(bench, bench->target->stack, 0, true, false);
}

static int lookup_short(struct bench *bench)
{
	return query(bench, next_in_file(bench, 0), 0, true, false);
}

static int lookup_long(struct bench *bench)
{
	return query(bench, next_in_file(bench, 1), 0, true, false);
}

static int lookup_build_id(struct bench *bench)
{
	const int error = query(bench, next_in_file(bench, 0), 0, true, true);

	if (!error && the_query.build_id_size != sizeof(build_id))
		return ENODATA;
	return error;
}

/*
 * Every walk costs per mapping of the target, whether the filters let it pass or
 * not. It fails unless it returned every mapping that they let pass.
 */
static int walked(struct bench *bench, size_t ioctls, bool complete)
{
	bench->units = bench->target->nr_vmas;
	bench->queries = (double)ioctls / bench->units;
	return complete ? 0 : EIO;
}

static int walk_by_query(struct bench *bench, uint64_t filters,
			 bool want_build_id, size_t expected)
{
	uint64_t addr = 0;
	size_t nr = 0;
	int error;

	while (!(error = query(bench, addr,
			       filters | PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
			       true, want_build_id))) {
		addr = the_query.vma_end;
		nr++;
	}
	return walked(bench, nr + 1, error == ENOENT && nr == expected);
}

static int walk_by_scan(struct bench *bench, uint64_t flags, size_t expected)
{
	static struct procmap_vma vmas[SCAN_VMAS];
	static char data[SCAN_DATA];
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.flags = flags | PROCMAP_SCAN_NAMES,
		.end = UINT64_MAX,
		.vec = (uintptr_t)vmas,
		.vec_len = SCAN_VMAS,
		.vma_size = sizeof(*vmas),
		.data = (uintptr_t)data,
		.data_size = sizeof(data),
	};
	size_t nr = 0, ioctls = 0;
	int ret;

	for (; arg.start != arg.end; arg.start = arg.walk_end) {
		ret = ioctl(bench->fd, PROCMAP_SCAN, &arg);
		if (ret < 0)
			return errno;
		nr += ret;
		ioctls++;
	}
	return walked(bench, ioctls, nr == expected);
}

static int walk_by_text(struct bench *bench, unsigned int filters,
			size_t expected)
{
	return walked(bench, 0, count_vmas(bench->procmap, filters) == expected);
}

static int query_all(struct bench *bench)
{
	return walk_by_query(bench, 0, false, bench->target->nr_vmas);
}

static int query_executable(struct bench *bench)
{
	return walk_by_query(bench, PROCMAP_QUERY_VMA_EXECUTABLE, false,
			     bench->nr_executable);
}

static int query_build_ids(struct bench *bench)
{
	return walk_by_query(bench, PROCMAP_QUERY_FILE_BACKED_VMA, true,
			     bench->nr_file_backed);
}

static int scan_all(struct bench *bench)
{
	return walk_by_scan(bench, 0, bench->target->nr_vmas);
}

static int scan_executable(struct bench *bench)
{
	return walk_by_scan(bench, PROCMAP_QUERY_VMA_EXECUTABLE,
			    bench->nr_executable);
}

static int scan_build_ids(struct bench *bench)
{
	return walk_by_scan(bench, PROCMAP_QUERY_FILE_BACKED_VMA |
				   PROCMAP_SCAN_BUILD_IDS,
			    bench->nr_file_backed);
}

static int text_all(struct bench *bench)
{
	return walk_by_text(bench, 0, bench->target->nr_vmas);
}

static int text_executable(struct bench *bench)
{
	return walk_by_text(bench, PROCMAP_EXECUTABLE, bench->nr_executable);
}

/*
 * Look up addresses all over the process in one run: by text, the cost of a
 * lookup depends on the address.
 */
static int text_lookup(struct bench *bench)
{
	struct procmap_mapping vma;
	int error = 0;
	size_t i;

	bench->units = 8;
	for (i = 0; i < NR_ADDRS && !error; i += NR_ADDRS / bench->units)
		error = procmap_find(bench->procmap, bench->target->addrs[i], 0,
				     &vma);
	return error;
}

static int pass(struct bench *bench)
{
	struct procmap_resolved *resolved;
	int error;

	error = procmap_resolve(bench->procmap, bench->target->pass, PASS_ADDRS,
				0, &resolved);
	if (error)
		return error;
	error = resolved->places[0].mapping == PROCMAP_NOT_MAPPED ? EIO : 0;
	bench->queries = resolved->nr_mappings;
	procmap_free_resolved(resolved);
	return error;
}

/* Their names in the report. The first is replaced by the argument METHOD. */
static const char *method_names[NR_METHODS] = { "query", "scan", "text" };

/**
 * struct work - one thing to measure
 * @name: its name in the report.
 * @method: how it reads the mappings.
 * @run: does it once; returns 0, or an error number of either sign.
 * @headline: it is one of the figures of "bench METHOD short".
 */
struct work {
	const char *name;
	enum method method;
	int (*run)(struct bench *bench);
	bool headline;
};

static const struct work works[] = {
	{ "lookup", BY_QUERY, lookup, true },
	{ "lookup", BY_TEXT, text_lookup, false },
	{ "miss", BY_QUERY, lookup_miss, false },
	{ "special name", BY_QUERY, lookup_special, false },
	{ "30-byte path", BY_QUERY, lookup_short, true },
	{ "200-byte path", BY_QUERY, lookup_long, false },
	{ "path and build ID", BY_QUERY, lookup_build_id, true },
	{ "walk, per VMA", BY_QUERY, query_all, true },
	{ "walk, per VMA", BY_SCAN, scan_all, true },
	{ "walk, per VMA", BY_TEXT, text_all, false },
	{ "executable walk, per VMA", BY_QUERY, query_executable, false },
	{ "executable walk, per VMA", BY_SCAN, scan_executable, true },
	{ "executable walk, per VMA", BY_TEXT, text_executable, false },
	{ "build IDs, per VMA", BY_QUERY, query_build_ids, false },
	{ "build IDs, per VMA", BY_SCAN, scan_build_ids, true },
	{ "symbolizer's pass", BY_QUERY, pass, false },
	{ "symbolizer's pass", BY_TEXT, pass, false },
};

#define NR_WORKS	(sizeof(works) / sizeof(*works))

static const struct work the_floor = { "floor", BY_QUERY, floor_of_ioctl, true };

/* The CPU time of this thread: early in a boot, other tasks run as well. */
static uint64_t now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void do_work(const struct work *work, struct bench *bench)
{
	int error;

	bench->procmap = bench->procmaps[work->method];
	error = work->run(bench);
	if (error)
		errx(2, "%s by %s, %zu VMAs: %s", work->name,
		     method_names[work->method], bench->target->nr_vmas,
		     strerror(abs(error)));
}

static int by_number(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return the median cost of a unit over NR_BATCHES batches. */
static double cost_of(const struct work *work, struct bench *bench)
{
	double costs[NR_BATCHES];
	uint64_t begin, once;
	size_t i, j, runs;

	bench->run = 0;
	bench->units = 1;
	bench->queries = 1;
	do_work(work, bench);
	begin = now();
	do_work(work, bench);
	once = now() - begin;
	runs = BATCH_COST / (once + 1) + 1;
	for (i = 0; i < NR_BATCHES; i++) {
		begin = now();
		for (j = 0; j < runs; j++)
			do_work(work, bench);
		costs[i] = (double)(now() - begin) / runs / bench->units;
	}
	qsort(costs, NR_BATCHES, sizeof(*costs), by_number);
	return costs[NR_BATCHES / 2];
}

static void open_maps(struct bench *bench, pid_t pid)
{
	char path[sizeof("/proc//maps") + 3 * sizeof(pid)];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	bench->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (bench->fd < 0)
		err(2, "%s", path);
	if (procmap_open_fd(bench->fd, PROCMAP_BY_IOCTL,
			    &bench->procmaps[BY_QUERY]) ||
	    procmap_open_fd(bench->fd, PROCMAP_BY_TEXT,
			    &bench->procmaps[BY_TEXT]))
		errx(2, "this kernel has no PROCMAP_QUERY");
	bench->nr_executable = count_vmas(bench->procmaps[BY_TEXT],
					  PROCMAP_EXECUTABLE);
	bench->nr_file_backed = count_vmas(bench->procmaps[BY_TEXT],
					   PROCMAP_FILE_BACKED);
}

/* Start a target of @nr mappings, and open its maps file. */
static struct bench open_bench(size_t nr, int fds[NR_FILES])
{
	struct bench bench = {};

	bench.target = start_target(nr, fds, &bench.pid);
	open_maps(&bench, bench.pid);
	return bench;
}

static void close_bench(struct bench *bench)
{
	procmap_close(bench->procmaps[BY_QUERY]);
	procmap_close(bench->procmaps[BY_TEXT]);
	close(bench->fd);
	kill(bench->pid, SIGKILL);
	waitpid(bench->pid, NULL, 0);
}

static bool can_be_done(const struct work *work, const struct bench *bench)
{
	if (work->method == BY_SCAN && ioctl(bench->fd, PROCMAP_SCAN, NULL) &&
	    errno == ENOTTY)
		return false;
	return work->run != lookup_long || bench->target->nr_files > 1;
}

static void measure(struct bench *bench, const char *kernel, bool headline_only)
{
	const double floor = cost_of(&the_floor, bench);
	size_t i;

	for (i = 0; i < NR_WORKS; i++) {
		const struct work *const work = &works[i];
		double cost;

		/* A headline figure that cannot be measured is an error. */
		if (headline_only ? !work->headline :
				    !can_be_done(work, bench))
			continue;
		cost = cost_of(work, bench);
		printf("{\"kernel\": \"%s\", \"method\": \"%s\", \"work\": \"%s\", \"vmas\": %zu, \"instructions\": %.1f, \"floor\": %.1f}\n",
		       kernel, method_names[work->method], work->name,
		       bench->target->nr_vmas, cost,
		       work->method == BY_TEXT ? 0 : floor * bench->queries);
		fflush(stdout);
	}
}

/* A form of an instruction that no compiler emits, for bench/tcg-profile.c. */
#define MARK() asm volatile(".byte 0x66, 0x66, 0x66, 0x66, 0x87, 0xdb" ::: "memory")

/* Write a line to the kernel's trace, if tracefs is mounted. */
static void mark_trace(int trace, const char *text)
{
	if (trace >= 0 && write(trace, text, strlen(text)) < 0)
		err(2, "trace_marker");
}

static void profile(struct bench *bench, const char *method, const char *name,
		    size_t runs)
{
	const int trace = open("/sys/kernel/tracing/trace_marker",
			       O_WRONLY | O_CLOEXEC);
	size_t i, run;

	for (i = 0; i < NR_WORKS; i++)
		if (!strcmp(method_names[works[i].method], method) &&
		    !strcmp(works[i].name, name))
			break;
	if (i == NR_WORKS)
		errx(2, "there is no work '%s' by %s", name, method);
	for (run = 0; run < 10; run++)
		do_work(&works[i], bench);
	mark_trace(trace, "begin");
	MARK();
	for (run = 0; run < runs; run++)
		do_work(&works[i], bench);
	MARK();
	mark_trace(trace, "end");
}

static size_t path_length(int nr)
{
	switch (nr) {
	case 0:
		return PATH_SHORT;
	case 1:
		return PATH_LONG;
	default:
		return PATH_MIN + nr * (PATH_LONG - PATH_MIN) / NR_FILES;
	}
}

int main(int argc, char **argv)
{
	const bool headline_only = argc == 3 && !strcmp(argv[2], "short");
	const bool is_profile = argc == 5;
	struct utsname host;
	struct bench bench;
	int fds[NR_FILES];
	size_t i;

	if (argc != 2 && !headline_only && !is_profile)
		errx(2, "usage: bench METHOD [short | WORK VMAS RUNS]");
	if (strcmp(argv[1], method_names[BY_SCAN]) &&
	    strcmp(argv[1], method_names[BY_TEXT]))
		method_names[BY_QUERY] = argv[1];
	uname(&host);
	for (i = 0; i < NR_FILES; i++)
		fds[i] = make_file(path_length(i), i);
	if (is_profile) {
		bench = open_bench(strtoul(argv[3], NULL, 10), fds);
		profile(&bench, argv[1], argv[2], strtoul(argv[4], NULL, 10));
		close_bench(&bench);
		return 0;
	}
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (headline_only && sizes[i] != HEADLINE_VMAS)
			continue;
		bench = open_bench(sizes[i], fds);
		measure(&bench, host.release, headline_only);
		close_bench(&bench);
	}
	return 0;
}
