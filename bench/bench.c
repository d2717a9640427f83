// SPDX-License-Identifier: GPL-2.0
/*
 * The workload of bench/bench: what the kernel is asked about a process with
 * many mappings, and what each question costs. It runs in a guest whose clock
 * counts instructions (scripts/vm -i), and prints a JSON object a line.
 *
 *	bench WAY			in all sizes and ways; WAY names the
 *					PROCMAP_QUERY of this kernel
 *	bench WAY WORK VMAS RUNS	one work, by that WAY, "scan" or "text", so
 *					often, once it is warm, between marks for
 *					bench/tcg-profile.c and for ftrace
 *
 * It is to be linked statically: so it has few mappings of its own, and the
 * process that is asked about can be one of 10.
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
#include <time.h>
#include <unistd.h>

#define PAGE		4096
#define NR_FILES	50
#define PATH_MIN	20
#define PATH_LONG	200
#define PATH_SHORT	30

/* The symbolizer's pass: so many addresses, in so many mappings. */
#define PASS_ADDRS	1000
#define PASS_VMAS	50

/* What a scan has room for in one ioctl. */
#define SCAN_VMAS	65536
#define SCAN_DATA	1048576

/* Addresses that the lookups go round. */
#define NR_ADDRS	512

/* A batch costs so many instructions at least: the timer's interrupts are 0.1 %. */
#define BATCH_COST	4000000
#define NR_BATCHES	5

static const size_t sizes[] = { 10, 100, 1000, 10000, 60000 };

/**
 * struct subject - the process that is asked about, in memory it shares
 * @nr_vmas: its mappings, without vsyscall.
 * @addrs: an address in each of some mappings, all over the process.
 * @pass: addresses of a symbolizer's pass.
 * @hole: an address in no mapping, below the last.
 * @stack: one in the mapping with a special name.
 * @nr_files: mappings of files; the first, and each NR_FILES on, is of a file
 *	with a path of PATH_SHORT bytes, the next of one of PATH_LONG bytes.
 * @at: the mappings that were made, in their order.
 */
struct subject {
	size_t nr_vmas;
	uint64_t addrs[NR_ADDRS];
	uint64_t pass[PASS_ADDRS];
	uint64_t hole;
	uint64_t stack;
	size_t nr_files;
	uint64_t at[];
};

/* A path below /opt of @len bytes, in folders with names of 15. */
static void make_path(char path[PATH_LONG + 1], size_t len, int nr)
{
	size_t at;

	memcpy(path, "/opt", 4);
	for (at = 4; at < len; at++)
		path[at] = at % 16 == 4 ? '/' : 'a' + at % 16;
	/* No path ends in a slash, and no two are the same. */
	if (path[len - 1] == '/')
		path[len - 1] = '_';
	path[len - 2] = 'A' + nr / 26;
	path[len - 1] = 'A' + nr % 26;
	path[len] = '\0';
}

static void make_folders(char *path)
{
	char *slash = path;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			err(2, "%s", path);
		*slash = '/';
	}
}

/* A copy of a program, with its build ID. */
static int make_file(size_t len, int nr)
{
	const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char path[PATH_LONG + 1];
	struct stat stat;
	int to;

	make_path(path, len, nr);
	make_folders(path);
	to = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (from < 0 || to < 0 || fstat(from, &stat) ||
	    sendfile(to, from, NULL, stat.st_size) != stat.st_size)
		err(2, "%s", path);
	close(from);
	return to;
}

/* Where the kernel wants it, as programs do. */
static uint64_t map(int prot, int fd)
{
	void *const at = mmap(NULL, PAGE, prot,
			      MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (at == MAP_FAILED)
		err(2, "mmap: raise vm.max_map_count");
	return (uintptr_t)at;
}

static size_t count_vmas(void)
{
	struct procmap_mapping vma;
	struct procmap *procmap;
	uint64_t cursor = 0;
	size_t nr = 0;

	if (procmap_open_self(PROCMAP_BY_TEXT, &procmap))
		errx(2, "no /proc/self/maps");
	while (!procmap_next(procmap, &cursor, 0, &vma))
		nr++;
	procmap_close(procmap);
	return nr;
}

/* Give up [vvar] and [vdso], which a process that waits has no use for. */
static void have_fewer_vmas(void)
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
 * Get up to @nr mappings, a tenth of them of files: half of those code, half
 * data. The others are anonymous memory, every other one readable.
 */
static void be_subject(struct subject *subject, size_t nr, int fds[NR_FILES])
{
	size_t own, more, pass, i;
	uint64_t *const at = subject->at;

	have_fewer_vmas();
	own = count_vmas();
	if (own >= nr)
		errx(2, "the program alone has %zu mappings", own);
	more = nr - own;
	subject->hole = map(PROT_NONE, -1);
	for (i = 0; i < more; i++) {
		if (i % 10)
			at[i] = map(i % 2 ? PROT_READ : PROT_NONE, -1);
		else
			at[i] = map(i / 10 % 2 ? PROT_READ : PROT_READ | PROT_EXEC,
				    fds[i / 10 % NR_FILES]);
	}
	munmap((void *)subject->hole, PAGE);
	subject->nr_vmas = count_vmas();
	if (subject->nr_vmas != nr)
		errx(2, "%zu mappings, not %zu", subject->nr_vmas, nr);

	/* 7919 is a prime: the addresses jump about. */
	for (i = 0; i < NR_ADDRS; i++)
		subject->addrs[i] = at[i * 7919 % more];
	subject->nr_files = (more + 9) / 10;
	pass = subject->nr_files < PASS_VMAS ? subject->nr_files : PASS_VMAS;
	for (i = 0; i < PASS_ADDRS; i++)
		subject->pass[i] = at[i * 7919 % pass *
				      (subject->nr_files / pass) * 10] +
				   i * 31 % PAGE;
	subject->stack = (uintptr_t)&own;
}

static struct subject *start_subject(size_t nr, int fds[NR_FILES], pid_t *pid)
{
	struct subject *subject;
	int ends[2];
	char byte;

	subject = mmap(NULL, sizeof(*subject) + nr * sizeof(*subject->at), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (subject == MAP_FAILED || pipe2(ends, O_CLOEXEC))
		err(2, "no memory or pipe");
	*pid = fork();
	if (*pid < 0)
		err(2, "fork");
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_subject(subject, nr, fds);
		if (write(ends[1], "", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		errx(2, "no process with %zu mappings", nr);
	close(ends[0]);
	return subject;
}

/**
 * struct bench - what a work needs
 * @subject: the process it asks about.
 * @fd: its opened maps file.
 * @procmap: the same, by ioctl or by text.
 * @run: how often the work has been done; the lookups go round the addresses.
 * @units: what one run does: so many lookups, or mappings.
 * @queries: the ioctls that a unit takes, on average.
 */
struct bench {
	const struct subject *subject;
	int fd;
	struct procmap *procmap;
	size_t run;
	size_t units;
	double queries;
};

static char name[PATH_MAX];
static unsigned char build_id[PROCMAP_BUILD_ID_MAX];

/* Only what changes from one query to the next is written. */
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
	return bench->subject->addrs[bench->run++ % NR_ADDRS];
}

/* Go round the mappings of file @nr. */
static uint64_t next_in_file(struct bench *bench, size_t nr)
{
	const struct subject *const subject = bench->subject;
	const size_t rounds = (subject->nr_files - nr + NR_FILES - 1) / NR_FILES;

	return subject->at[(bench->run++ % rounds * NR_FILES + nr) * 10];
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
	return query(bench, bench->subject->hole, 0, false, false) ==
	       ENOENT ? 0 : EIO;
}

static int lookup_special(struct bench *bench)
{
	return query(bench, bench->subject->stack, 0, true, false);
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

/* Returns how many ioctls it took, or 0. */
static size_t walk_by_query(const struct bench *bench, uint64_t flags,
			    bool want_build_id)
{
	uint64_t addr = 0;
	size_t nr = 0;
	int error;

	while (!(error = query(bench, addr,
			       flags | PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
			       true, want_build_id))) {
		addr = the_query.vma_end;
		nr++;
	}
	return error == ENOENT ? nr + 1 : 0;
}

static size_t walk_by_scan(const struct bench *bench, uint64_t flags)
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
	size_t nr = 0;

	for (; arg.start != arg.end; arg.start = arg.walk_end, nr++)
		if (ioctl(bench->fd, PROCMAP_SCAN, &arg) < 0)
			return 0;
	return nr;
}

/* All walks go over the same mappings, whatever they are told of them. */
static int walked(struct bench *bench, size_t queries)
{
	bench->units = bench->subject->nr_vmas;
	bench->queries = (double)queries / bench->units;
	return queries ? 0 : EIO;
}

static int walk(struct bench *bench)
{
	return walked(bench, walk_by_query(bench, 0, false));
}

static int walk_executable(struct bench *bench)
{
	return walked(bench, walk_by_query(bench, PROCMAP_QUERY_VMA_EXECUTABLE,
					   false));
}

static int walk_build_ids(struct bench *bench)
{
	return walked(bench, walk_by_query(bench, PROCMAP_QUERY_FILE_BACKED_VMA,
					   true));
}

static int scan(struct bench *bench)
{
	return walked(bench, walk_by_scan(bench, 0));
}

static int scan_executable(struct bench *bench)
{
	return walked(bench, walk_by_scan(bench, PROCMAP_QUERY_VMA_EXECUTABLE));
}

static int scan_build_ids(struct bench *bench)
{
	return walked(bench, walk_by_scan(bench, PROCMAP_QUERY_FILE_BACKED_VMA |
					  PROCMAP_SCAN_BUILD_IDS));
}

/* All over the process in one run, for one can be much dearer than another. */
static int text_lookup(struct bench *bench)
{
	struct procmap_mapping vma;
	int error = 0;
	size_t i;

	bench->units = 8;
	for (i = 0; i < NR_ADDRS && !error; i += NR_ADDRS / bench->units)
		error = procmap_find(bench->procmap, bench->subject->addrs[i], 0,
				     &vma);
	return error;
}

static int text_walk_with(struct bench *bench, unsigned int flags)
{
	struct procmap_mapping vma;
	uint64_t cursor = 0;
	int error;

	do {
		error = procmap_next(bench->procmap, &cursor, flags, &vma);
	} while (!error);
	bench->units = bench->subject->nr_vmas;
	return error == -ENOENT ? 0 : error;
}

static int text_walk(struct bench *bench)
{
	return text_walk_with(bench, 0);
}

static int text_walk_executable(struct bench *bench)
{
	return text_walk_with(bench, PROCMAP_EXECUTABLE);
}

static int pass(struct bench *bench)
{
	struct procmap_resolved *resolved;
	int error;

	error = procmap_resolve(bench->procmap, bench->subject->pass, PASS_ADDRS,
				0, &resolved);
	if (error)
		return error;
	error = resolved->places[0].mapping == PROCMAP_NOT_MAPPED ? EIO : 0;
	bench->queries = resolved->nr_mappings;
	procmap_free_resolved(resolved);
	return error;
}

enum way { BY_QUERY, BY_SCAN, BY_TEXT };

/* What the report calls them; the first is this kernel's WAY. */
static const char *way_names[] = { "query", "scan", "text" };

/**
 * struct work - something that is asked
 * @name: its name in the report.
 * @way: by which way.
 * @run: does it; not 0 if it went wrong.
 */
struct work {
	const char *name;
	enum way way;
	int (*run)(struct bench *bench);
};

static const struct work works[] = {
	{ "lookup", BY_QUERY, lookup },
	{ "lookup", BY_TEXT, text_lookup },
	{ "miss", BY_QUERY, lookup_miss },
	{ "special name", BY_QUERY, lookup_special },
	{ "30-byte path", BY_QUERY, lookup_short },
	{ "200-byte path", BY_QUERY, lookup_long },
	{ "path and build ID", BY_QUERY, lookup_build_id },
	{ "walk, per VMA", BY_QUERY, walk },
	{ "walk, per VMA", BY_SCAN, scan },
	{ "walk, per VMA", BY_TEXT, text_walk },
	{ "executable walk, per VMA", BY_QUERY, walk_executable },
	{ "executable walk, per VMA", BY_SCAN, scan_executable },
	{ "executable walk, per VMA", BY_TEXT, text_walk_executable },
	{ "build IDs, per VMA", BY_QUERY, walk_build_ids },
	{ "build IDs, per VMA", BY_SCAN, scan_build_ids },
	{ "symbolizer's pass", BY_QUERY, pass },
	{ "symbolizer's pass", BY_TEXT, pass },
};

#define NR_WORKS	(sizeof(works) / sizeof(*works))

static const struct work the_floor = { "floor", BY_QUERY, floor_of_ioctl };

/* Of this thread alone: early in a boot, the kernel has more to do. */
static uint64_t now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void do_work(const struct work *work, struct bench *bench)
{
	const int error = work->run(bench);

	if (error)
		errx(2, "%s by %s, %zu VMAs: %s", work->name,
		     way_names[work->way], bench->subject->nr_vmas,
		     strerror(abs(error)));
}

static int by_number(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of some batches, per unit. */
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

static void open_ways(struct bench *bench, pid_t pid,
		      struct procmap *procmaps[])
{
	char path[sizeof("/proc//maps") + 3 * sizeof(pid)];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	bench->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (bench->fd < 0)
		err(2, "%s", path);
	if (procmap_open_fd(bench->fd, PROCMAP_BY_IOCTL, &procmaps[BY_QUERY]) ||
	    procmap_open_fd(bench->fd, PROCMAP_BY_TEXT, &procmaps[BY_TEXT]))
		errx(2, "this kernel has no PROCMAP_QUERY");
	procmaps[BY_SCAN] = NULL;
}

static bool can_be_done(const struct work *work, const struct bench *bench)
{
	if (work->way == BY_SCAN && ioctl(bench->fd, PROCMAP_SCAN, NULL) &&
	    errno == ENOTTY)
		return false;
	return work->run != lookup_long || bench->subject->nr_files > 1;
}

static void measure_all(struct bench *bench, struct procmap *procmaps[],
			const char *kernel)
{
	const double floor = cost_of(&the_floor, bench);
	size_t i;

	for (i = 0; i < NR_WORKS; i++) {
		const struct work *const work = &works[i];
		double cost;

		if (!can_be_done(work, bench))
			continue;
		bench->procmap = procmaps[work->way];
		cost = cost_of(work, bench);
		printf("{\"kernel\": \"%s\", \"way\": \"%s\", \"work\": \"%s\", \"vmas\": %zu, \"instructions\": %.1f, \"floor\": %.1f}\n",
		       kernel, way_names[work->way], work->name,
		       bench->subject->nr_vmas, cost,
		       work->way == BY_TEXT ? 0 : floor * bench->queries);
		fflush(stdout);
	}
}

/* An instruction that nothing else has, for bench/tcg-profile.c. */
#define MARK() asm volatile(".byte 0x66, 0x66, 0x66, 0x66, 0x87, 0xdb" ::: "memory")

/* A line in the kernel's trace, if there is one. */
static void mark_trace(int trace, const char *text)
{
	if (trace >= 0 && write(trace, text, strlen(text)) < 0)
		err(2, "trace_marker");
}

static void profile(struct bench *bench, struct procmap *procmaps[],
		    const char *way, const char *name, size_t runs)
{
	const int trace = open("/sys/kernel/tracing/trace_marker",
			       O_WRONLY | O_CLOEXEC);
	size_t i, run;

	for (i = 0; i < NR_WORKS; i++)
		if (!strcmp(way_names[works[i].way], way) &&
		    !strcmp(works[i].name, name))
			break;
	if (i == NR_WORKS)
		errx(2, "there is no work '%s' by %s", name, way);
	bench->procmap = procmaps[works[i].way];
	for (run = 0; run < 10; run++)
		do_work(&works[i], bench);
	mark_trace(trace, "begin");
	MARK();
	for (run = 0; run < runs; run++)
		do_work(&works[i], bench);
	MARK();
	mark_trace(trace, "end");
}

int main(int argc, char **argv)
{
	int fds[NR_FILES];
	struct utsname host;
	const bool is_profile = argc == 5;
	size_t i, nr_sizes = is_profile ? 1 : sizeof(sizes) / sizeof(*sizes);

	if (argc != 2 && !is_profile)
		errx(2, "usage: bench WAY [WORK VMAS RUNS]");
	if (strcmp(argv[1], way_names[BY_SCAN]) &&
	    strcmp(argv[1], way_names[BY_TEXT]))
		way_names[BY_QUERY] = argv[1];
	uname(&host);
	for (i = 0; i < NR_FILES; i++)
		fds[i] = make_file(i == 0 ? PATH_SHORT : i == 1 ? PATH_LONG :
				   PATH_MIN + i * (PATH_LONG - PATH_MIN) / NR_FILES,
				   i);
	for (i = 0; i < nr_sizes; i++) {
		struct procmap *procmaps[sizeof(way_names) / sizeof(*way_names)];
		struct bench bench = {};
		pid_t pid;

		bench.subject = start_subject(is_profile ?
					      strtoul(argv[3], NULL, 10) :
					      sizes[i], fds, &pid);
		open_ways(&bench, pid, procmaps);
		if (is_profile)
			profile(&bench, procmaps, argv[1], argv[2],
				strtoul(argv[4], NULL, 10));
		else
			measure_all(&bench, procmaps, host.release);
		procmap_close(procmaps[BY_QUERY]);
		procmap_close(procmaps[BY_TEXT]);
		close(bench.fd);
		kill(pid, SIGKILL);
	}
	return 0;
}
