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
 * Every work is first done with its answers compared to the text, and then
 * measured.
 *
 * Link it statically, with the build ID that program_id has: a static program has
 * so few mappings of its own that the target process can be one of 20 mappings.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#ifndef PROCMAP_QUERY	/* <linux/fs.h> has it since Linux 6.11 */
#include <linux/procmap_query.h>
#endif
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
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096

/*
 * The libraries of the target: one for so many VMAs. Every fourth of them has a
 * .bss. Their paths have PATH_SHORT to PATH_LONG bytes, in PATH_LENGTHS steps.
 */
#define VMAS_PER_LIBRARY	50
#define LIBRARY_PAGES		4
#define HAS_BSS(nr)		((nr) % 4 == 3)
#define PATH_SHORT		30
#define PATH_LONG		200
#define PATH_LENGTHS		10

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
static const size_t sizes[] = { 20, 100, 1000, 10000, 60000 };

/* The one size that the headline figures are measured in. */
#define HEADLINE_VMAS	10000

/*
 * The build ID that bench/bench has this program linked with. Each library is the
 * beginning of the program, with an ID of its own.
 */
static const unsigned char program_id[] = "procmap bench/bench.";
static unsigned char program[LIBRARY_PAGES * PAGE];
static unsigned char *id_in_program;

static void read_program(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, program, sizeof(program)) != sizeof(program))
		err(2, "/proc/self/exe");
	close(fd);
	id_in_program = memmem(program, sizeof(program), program_id,
			       PROCMAP_BUILD_ID_MAX);
	if (!id_in_program)
		errx(2, "this program has another build ID");
}

static void make_build_id(unsigned char *id, uint32_t nr)
{
	memcpy(id, program_id, PROCMAP_BUILD_ID_MAX);
	memcpy(id, &nr, sizeof(nr));
}

static size_t path_length(size_t nr)
{
	return PATH_SHORT + nr % PATH_LENGTHS * (PATH_LONG - PATH_SHORT) /
	       (PATH_LENGTHS - 1);
}

/* The number of a library is in the last three bytes of its path. */
#define NUMBER_SIZE	3
#define NUMBER_BASE	26

/* Make the path of a library below /opt. Its directories have 15-byte names. */
static void make_path(char path[PATH_LONG + 1], size_t nr)
{
	const size_t len = path_length(nr);
	size_t at;

	memcpy(path, "/opt", 4);
	for (at = 4; at < len; at++)
		path[at] = at % 16 == 4 ? '/' : 'a' + at % 16;
	path[len] = '\0';
	for (at = len - 1; at >= len - NUMBER_SIZE; at--) {
		path[at] = 'A' + nr % NUMBER_BASE;
		nr /= NUMBER_BASE;
	}
}

/* Return the number of the library at a path, or -1 if it is another file. */
static long number_of(const char *path)
{
	const size_t len = strlen(path);
	size_t at, nr = 0;

	if (strncmp(path, "/opt/", 5) || len < PATH_SHORT)
		return -1;
	for (at = len - NUMBER_SIZE; at < len; at++)
		nr = nr * NUMBER_BASE + path[at] - 'A';
	return nr;
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

/* Make the file of a library, and return it opened as the dynamic linker does. */
static int make_library(size_t nr)
{
	char path[PATH_LONG + 1];
	int fd;

	make_path(path, nr);
	make_directories(path);
	make_build_id(id_in_program, nr);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, program, sizeof(program)) != sizeof(program))
		err(2, "%s", path);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(2, "%s", path);
	return fd;
}

static char *map(void *at, size_t pages, int prot, int flags, int fd,
		 size_t page)
{
	char *const mapped = mmap(at, pages * PAGE, prot, MAP_PRIVATE | flags,
				  fd, page * PAGE);

	if (mapped == MAP_FAILED)
		err(2, "mmap: raise vm.max_map_count");
	return mapped;
}

/*
 * Map a library as the dynamic linker does: the whole at an address that the
 * kernel chooses, and over it one segment after the other. Returns the number of
 * VMAs.
 */
static size_t map_library(size_t nr)
{
	const bool has_bss = HAS_BSS(nr);
	const int fd = make_library(nr);
	char *const at = map(NULL, LIBRARY_PAGES + has_bss, PROT_READ, 0, fd, 0);

	map(at + PAGE, 1, PROT_READ | PROT_EXEC, MAP_FIXED, fd, 1);
	map(at + 2 * PAGE, 1, PROT_READ, MAP_FIXED, fd, 2);
	map(at + 3 * PAGE, 1, PROT_READ | PROT_WRITE, MAP_FIXED, fd, 3);
	if (has_bss)
		map(at + 4 * PAGE, 1, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_ANONYMOUS, -1, 0);
	close(fd);
	return LIBRARY_PAGES + has_bss;
}

static size_t count_vmas(struct procmap *procmap, unsigned int filters)
{
	const struct procmap_mapping *vma;
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
	const struct procmap_mapping *vma;
	struct procmap *procmap;
	uint64_t cursor = 0;

	if (procmap_open_self(PROCMAP_BY_TEXT, &procmap))
		errx(2, "no /proc/self/maps");
	while (!procmap_next(procmap, &cursor, 0, &vma))
		if (!strncmp(vma->name, "[v", 2))
			munmap((void *)vma->start, vma->end - vma->start);
	procmap_close(procmap);
}

/*
 * Become a process of @nr mappings: libraries, and as many anonymous mappings
 * behind each. Every second of those is readable: neighbours with the same
 * permissions would be merged.
 */
static void become_target(size_t nr)
{
	const size_t nr_libraries = (nr - 1) / VMAS_PER_LIBRARY + 1;
	size_t used, made = 0, i;

	unmap_vdso();
	used = count_own_vmas();
	for (i = 0; i < nr_libraries; i++)
		used += LIBRARY_PAGES + HAS_BSS(i);
	if (used > nr)
		errx(2, "program and libraries alone have %zu mappings", used);
	for (i = 0; i < nr_libraries; i++) {
		map_library(i);
		for (; made < (i + 1) * (nr - used) / nr_libraries; made++)
			map(NULL, 1, made % 2 ? PROT_READ : PROT_NONE,
			    MAP_ANONYMOUS, -1, 0);
	}
}

/* Start a target of @nr mappings. It waits for a signal. */
static pid_t start_target(size_t nr)
{
	int ends[2];
	char byte;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		err(2, "pipe");
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become_target(nr);
		if (write(ends[1], "", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		errx(2, "cannot make a process with %zu mappings", nr);
	close(ends[0]);
	return pid;
}

enum method { BY_QUERY, BY_SCAN, BY_TEXT, NR_METHODS };

/* The mappings that a walk returns. */
enum which { ALL, EXECUTABLE, FILES };

/* The mappings that the lookups of a work are for. */
enum places { EVERYWHERE, SHORT_PATHS, LONG_PATHS, NR_PLACES };

/**
 * struct bench - what a work needs
 * @pid: the process whose mappings it reads.
 * @fd: its opened maps file.
 * @lines: the lines of its text, with the build IDs that its files have.
 * @nr_vmas: number of @lines, and so of its mappings.
 * @addrs: for lookups: addresses of mappings all over the process.
 * @nr_long: number of mappings with a path of PATH_LONG bytes.
 * @pass: addresses of a symbolizer's pass.
 * @hole: an address below the last mapping that is not mapped.
 * @stack: an address in the stack, a mapping with a special name.
 * @procmaps: the library's handles on @fd, by method; NULL for scans, which the
 *	works do by the ioctl itself.
 * @work: what is being done.
 * @expected: number of mappings that a walk has to return.
 * @run: number of runs so far, for lookups that take addresses in turn.
 * @units: number of lookups, or of mappings walked over, in one run.
 * @queries: average number of ioctls per unit.
 */
struct bench {
	pid_t pid;
	int fd;
	struct procmap_mapping *lines;
	size_t nr_vmas;
	uint64_t addrs[NR_PLACES][NR_ADDRS];
	size_t nr_long;
	uint64_t pass[PASS_ADDRS];
	uint64_t hole;
	uint64_t stack;
	struct procmap *procmaps[NR_METHODS];
	const struct work *work;
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
 * @agrees: does it once, or more often where it takes addresses in turn, and
 *	returns whether each answer agrees with the text.
 * @which: the mappings that it returns, if it is a walk.
 * @build_ids: it is a walk that returns build IDs, too.
 * @headline: it is one of the figures of "bench METHOD short".
 */
struct work {
	const char *name;
	enum method method;
	int (*run)(struct bench *bench);
	bool (*agrees)(struct bench *bench);
	enum which which;
	bool build_ids;
	bool headline;
};

static bool is_file(const struct procmap_mapping *line)
{
	return line->inode || line->dev_major || line->dev_minor;
}

static bool is_returned(const struct procmap_mapping *line, enum which which)
{
	switch (which) {
	case EXECUTABLE:
		return line->flags & PROCMAP_EXECUTABLE;
	case FILES:
		return is_file(line);
	default:
		return true;
	}
}

/* The first line from @i on that a walk returns. */
static size_t next_line(const struct bench *bench, size_t i, enum which which)
{
	while (i < bench->nr_vmas && !is_returned(&bench->lines[i], which))
		i++;
	return i;
}

static const struct procmap_mapping *line_at(const struct bench *bench,
					     uint64_t addr)
{
	size_t i;

	for (i = 0; i < bench->nr_vmas; i++)
		if (addr >= bench->lines[i].start && addr < bench->lines[i].end)
			return &bench->lines[i];
	return NULL;
}

/* The text says nothing of page sizes: all are PAGE. 0 is "not known". */
static bool is_same(const struct procmap_mapping *line,
		    const struct procmap_mapping *answer)
{
	return answer->start == line->start && answer->end == line->end &&
	       answer->offset == line->offset && answer->inode == line->inode &&
	       (!answer->page_size || answer->page_size == PAGE) &&
	       answer->flags == line->flags &&
	       answer->dev_major == line->dev_major &&
	       answer->dev_minor == line->dev_minor &&
	       answer->name_len == line->name_len &&
	       !memcmp(answer->name, line->name, line->name_len);
}

static bool is_same_id(const struct procmap_mapping *line,
		       const unsigned char *id, size_t size)
{
	return size == (size_t)line->build_id_size &&
	       !memcmp(id, line->build_id, size);
}

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

/* Is the answer to the last query what the line says? */
static bool is_answer(const struct procmap_mapping *line)
{
	const struct procmap_query *const query = &the_query;
	const struct procmap_mapping answer = {
		.start = query->vma_start,
		.end = query->vma_end,
		.offset = query->vma_offset,
		.inode = query->inode,
		.page_size = query->vma_page_size,
		.name = query->vma_name_addr ? name : line->name,
		.name_len = !query->vma_name_addr ? line->name_len :
			    query->vma_name_size ? query->vma_name_size - 1 : 0,
		.flags = query->vma_flags,
		.dev_major = query->dev_major,
		.dev_minor = query->dev_minor,
	};

	return is_same(line, &answer) &&
	       (!query->vma_name_size || !name[query->vma_name_size - 1]) &&
	       (!query->build_id_addr ||
		is_same_id(line, build_id, query->build_id_size));
}

static uint64_t next_address(struct bench *bench, enum places places)
{
	return bench->addrs[places][bench->run++ % NR_ADDRS];
}

static int floor_of_ioctl(struct bench *bench)
{
	return ioctl(bench->fd, _IO('f', 0x7f)) && errno == ENOTTY ? 0 : EIO;
}

static int lookup(struct bench *bench)
{
	return query(bench, next_address(bench, EVERYWHERE), 0, false, false);
}

static int lookup_special(struct bench *bench)
{
	return query(bench, bench->stack, 0, true, false);
}

static int lookup_short(struct bench *bench)
{
	return query(bench, next_address(bench, SHORT_PATHS), 0, true, false);
}

static int lookup_long(struct bench *bench)
{
	return query(bench, next_address(bench, LONG_PATHS), 0, true, false);
}

static int lookup_build_id(struct bench *bench)
{
	return query(bench, next_address(bench, SHORT_PATHS), 0, true, true);
}

static bool lookups_agree(struct bench *bench)
{
	size_t i;

	for (i = 0; i < NR_ADDRS; i++) {
		const struct procmap_mapping *line;

		if (bench->work->run(bench))
			return false;
		line = line_at(bench, the_query.query_addr);
		if (!line || !is_answer(line))
			return false;
	}
	return true;
}

static int lookup_miss(struct bench *bench)
{
	return query(bench, bench->hole, 0, false, false) == ENOENT ? 0 : EIO;
}

static bool miss_agrees(struct bench *bench)
{
	return !lookup_miss(bench) && !line_at(bench, bench->hole);
}

/*
 * Every walk costs per mapping of the target, whether the filters let it pass or
 * not. It fails unless it returned as many mappings as they let pass.
 */
static int walked(struct bench *bench, size_t ioctls, bool complete)
{
	bench->units = bench->nr_vmas;
	bench->queries = (double)ioctls / bench->units;
	return complete ? 0 : EIO;
}

static const uint64_t query_flags[] = {
	[ALL] = PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
	[EXECUTABLE] = PROCMAP_QUERY_COVERING_OR_NEXT_VMA |
		       PROCMAP_QUERY_VMA_EXECUTABLE,
	[FILES] = PROCMAP_QUERY_COVERING_OR_NEXT_VMA |
		  PROCMAP_QUERY_FILE_BACKED_VMA,
};

static int query_walk(struct bench *bench)
{
	const bool build_ids = bench->work->build_ids;
	const uint64_t flags = query_flags[bench->work->which];
	uint64_t addr = 0;
	size_t nr = 0;
	int error;

	while (!(error = query(bench, addr, flags, true, build_ids))) {
		addr = the_query.vma_end;
		nr++;
	}
	return walked(bench, nr + 1, error == ENOENT && nr == bench->expected);
}

static bool query_walk_agrees(struct bench *bench)
{
	const struct work *const work = bench->work;
	const uint64_t flags = query_flags[work->which];
	uint64_t addr = 0;
	size_t i;

	for (i = next_line(bench, 0, work->which); i < bench->nr_vmas;
	     i = next_line(bench, i + 1, work->which)) {
		if (query(bench, addr, flags, true, work->build_ids) ||
		    !is_answer(&bench->lines[i]))
			return false;
		addr = the_query.vma_end;
	}
	return query(bench, addr, flags, true, work->build_ids) == ENOENT;
}

static const uint64_t scan_filters[] = {
	[ALL] = 0,
	[EXECUTABLE] = PROCMAP_VMA_EXECUTABLE,
	[FILES] = PROCMAP_VMA_FILE_BACKED,
};

static struct procmap_vma scan_vmas[SCAN_VMAS];
static char scan_data[SCAN_DATA];

/* There is room for all mappings, so one call returns them. */
static int scan_walk(struct bench *bench)
{
	const struct work *const work = bench->work;
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.filter = scan_filters[work->which],
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

static bool is_record(const struct procmap_mapping *line,
		      const struct procmap_vma *vma, bool build_ids)
{
	const uint64_t flags = vma->flags & ~(uint64_t)PROCMAP_VMA_FILE_BACKED;
	const char *const name = scan_data + vma->name_offset;
	const struct procmap_mapping answer = {
		.start = vma->start,
		.end = vma->end,
		.offset = vma->offset,
		.inode = vma->inode,
		.page_size = vma->page_size,
		.name = name,
		.name_len = vma->name_size ? vma->name_size - 1 : 0,
		.flags = flags,
		.dev_major = vma->dev_major,
		.dev_minor = vma->dev_minor,
	};

	return is_same(line, &answer) &&
	       is_file(line) == !!(vma->flags & PROCMAP_VMA_FILE_BACKED) &&
	       (!vma->name_size || !name[vma->name_size - 1]) &&
	       (build_ids ? is_same_id(line, (unsigned char *)scan_data +
					     vma->build_id_offset,
				       vma->build_id_size) :
			    !vma->build_id_size);
}

static bool scan_walk_agrees(struct bench *bench)
{
	const struct work *const work = bench->work;
	size_t i, nr = 0;

	if (scan_walk(bench))
		return false;
	for (i = next_line(bench, 0, work->which); i < bench->nr_vmas;
	     i = next_line(bench, i + 1, work->which))
		if (!is_record(&bench->lines[i], &scan_vmas[nr++],
			       work->build_ids))
			return false;
	return true;
}

static const unsigned int text_filters[] = {
	[ALL] = 0,
	[EXECUTABLE] = PROCMAP_EXECUTABLE,
	[FILES] = PROCMAP_FILE_BACKED,
};

static int text_walk(struct bench *bench)
{
	const size_t nr = count_vmas(bench->procmaps[BY_TEXT],
				     text_filters[bench->work->which]);

	return walked(bench, 0, nr == bench->expected);
}

static bool text_walk_agrees(struct bench *bench)
{
	const enum which which = bench->work->which;
	const struct procmap_mapping *answer;
	uint64_t cursor = 0;
	size_t i;

	for (i = next_line(bench, 0, which); i < bench->nr_vmas;
	     i = next_line(bench, i + 1, which))
		if (procmap_next(bench->procmaps[BY_TEXT], &cursor,
				 text_filters[which], &answer) ||
		    !is_same(&bench->lines[i], answer))
			return false;
	return !text_walk(bench);
}

/*
 * Look up addresses all over the process in one run: by text, the cost of a
 * lookup depends on the address.
 */
#define TEXT_LOOKUPS	8

static uint64_t text_address(const struct bench *bench, size_t i)
{
	return bench->addrs[EVERYWHERE][i * (NR_ADDRS / TEXT_LOOKUPS)];
}

static int text_lookup(struct bench *bench)
{
	const struct procmap_mapping *vma;
	int error = 0;
	size_t i;

	bench->units = TEXT_LOOKUPS;
	for (i = 0; i < TEXT_LOOKUPS && !error; i++)
		error = procmap_find(bench->procmaps[BY_TEXT],
				     text_address(bench, i), 0, &vma);
	return error;
}

static bool text_lookup_agrees(struct bench *bench)
{
	const struct procmap_mapping *answer;
	size_t i;

	for (i = 0; i < TEXT_LOOKUPS; i++) {
		const uint64_t addr = text_address(bench, i);

		if (procmap_find(bench->procmaps[BY_TEXT], addr, 0, &answer) ||
		    !is_same(line_at(bench, addr), answer))
			return false;
	}
	return true;
}

static int resolve_pass(struct bench *bench,
			const struct procmap_resolved **resolved)
{
	return procmap_resolve(bench->procmaps[bench->work->method],
			       bench->pass, PASS_ADDRS, 0, resolved);
}

static int pass(struct bench *bench)
{
	const struct procmap_resolved *resolved;
	int error;

	error = resolve_pass(bench, &resolved);
	if (error)
		return error;
	bench->queries = resolved->nr_mappings;
	procmap_free_resolved(resolved);
	return 0;
}

static bool location_agrees(const struct bench *bench, size_t i,
			    const struct procmap_resolved *resolved)
{
	const struct procmap_location *const location = &resolved->locations[i];
	const struct procmap_mapping *const line = line_at(bench,
							   bench->pass[i]);

	return location->mapping < resolved->nr_mappings &&
	       location->offset == line->offset + bench->pass[i] - line->start &&
	       is_same(line, resolved->mappings[location->mapping]);
}

static bool pass_agrees(struct bench *bench)
{
	const struct procmap_resolved *resolved;
	bool agrees = true;
	size_t i;

	if (resolve_pass(bench, &resolved))
		return false;
	for (i = 0; i < PASS_ADDRS && agrees; i++)
		agrees = location_agrees(bench, i, resolved);
	procmap_free_resolved(resolved);
	return agrees;
}

/* Their names in the report. The first is replaced by the argument METHOD. */
static const char *method_names[NR_METHODS] = { "query", "scan", "text" };

static const struct work works[] = {
	{ "lookup", BY_QUERY,
	  .run = lookup, .agrees = lookups_agree, .headline = true },
	{ "lookup", BY_TEXT,
	  .run = text_lookup, .agrees = text_lookup_agrees },
	{ "miss", BY_QUERY,
	  .run = lookup_miss, .agrees = miss_agrees },
	{ "special name", BY_QUERY,
	  .run = lookup_special, .agrees = lookups_agree },
	{ "30-byte path", BY_QUERY,
	  .run = lookup_short, .agrees = lookups_agree, .headline = true },
	{ "200-byte path", BY_QUERY,
	  .run = lookup_long, .agrees = lookups_agree },
	{ "path and build ID", BY_QUERY,
	  .run = lookup_build_id, .agrees = lookups_agree, .headline = true },
	{ "walk, per VMA", BY_QUERY,
	  .run = query_walk, .agrees = query_walk_agrees, .headline = true },
	{ "walk, per VMA", BY_SCAN,
	  .run = scan_walk, .agrees = scan_walk_agrees, .headline = true },
	{ "walk, per VMA", BY_TEXT,
	  .run = text_walk, .agrees = text_walk_agrees },
	{ "executable walk, per VMA", BY_QUERY,
	  .run = query_walk, .agrees = query_walk_agrees, .which = EXECUTABLE },
	{ "executable walk, per VMA", BY_SCAN,
	  .run = scan_walk, .agrees = scan_walk_agrees, .which = EXECUTABLE,
	  .headline = true },
	{ "executable walk, per VMA", BY_TEXT,
	  .run = text_walk, .agrees = text_walk_agrees, .which = EXECUTABLE },
	{ "build IDs, per VMA", BY_QUERY,
	  .run = query_walk, .agrees = query_walk_agrees, .which = FILES,
	  .build_ids = true },
	{ "build IDs, per VMA", BY_SCAN,
	  .run = scan_walk, .agrees = scan_walk_agrees, .which = FILES,
	  .build_ids = true, .headline = true },
	{ "symbolizer's pass", BY_QUERY,
	  .run = pass, .agrees = pass_agrees },
	{ "symbolizer's pass", BY_TEXT,
	  .run = pass, .agrees = pass_agrees },
};

#define NR_WORKS	(sizeof(works) / sizeof(*works))

static bool always(struct bench *bench)
{
	(void)bench;
	return true;
}

static const struct work the_floor = {
	"floor", BY_QUERY, .run = floor_of_ioctl, .agrees = always,
};

/* The CPU time of this thread: early in a boot, other tasks run as well. */
static uint64_t now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void fail(const struct bench *bench, const char *how)
{
	errx(2, "%s by %s, %zu VMAs: %s", bench->work->name,
	     method_names[bench->work->method], bench->nr_vmas, how);
}

static void do_work(struct bench *bench)
{
	const int error = bench->work->run(bench);

	if (error)
		fail(bench, strerror(abs(error)));
}

/* Make a work the current one. Fails if it answers anything but the text. */
static void begin_work(struct bench *bench, const struct work *work)
{
	size_t i;

	bench->work = work;
	bench->expected = 0;
	for (i = 0; i < bench->nr_vmas; i++)
		bench->expected += is_returned(&bench->lines[i], work->which);
	bench->run = 0;
	bench->units = 1;
	bench->queries = 1;
	if (!work->agrees(bench))
		fail(bench, "it does not agree with the text");
	bench->run = 0;
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

	begin_work(bench, work);
	do_work(bench);
	begin = now();
	do_work(bench);
	once = now() - begin;
	runs = BATCH_COST / (once + 1) + 1;
	for (i = 0; i < NR_BATCHES; i++) {
		begin = now();
		for (j = 0; j < runs; j++)
			do_work(bench);
		costs[i] = (double)(now() - begin) / runs / bench->units;
	}
	qsort(costs, NR_BATCHES, sizeof(*costs), by_number);
	return costs[NR_BATCHES / 2];
}

static bool parse_line(char *text, struct procmap_mapping *line)
{
	unsigned long long start, end, offset, inode;
	unsigned int dev_major, dev_minor;
	char perms[5];
	int name = 0;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end,
		   perms, &offset, &dev_major, &dev_minor, &inode, &name) < 7 ||
	    !name)
		return false;
	*line = (struct procmap_mapping) {
		.start = start,
		.end = end,
		.offset = offset,
		.inode = inode,
		.name = strdup(text + name),
		.name_len = strlen(text + name),
		.flags = (perms[0] == 'r' ? PROCMAP_READABLE : 0) |
			 (perms[1] == 'w' ? PROCMAP_WRITABLE : 0) |
			 (perms[2] == 'x' ? PROCMAP_EXECUTABLE : 0) |
			 (perms[3] == 's' ? PROCMAP_SHARED : 0),
		.dev_major = dev_major,
		.dev_minor = dev_minor,
	};
	return line->name;
}

/* The text does not show build IDs, but who has made the files knows them. */
static void add_build_id(struct procmap_mapping *line)
{
	const long nr = number_of(line->name);

	if (!is_file(line))
		return;
	line->build_id_size = PROCMAP_BUILD_ID_MAX;
	if (nr < 0)
		memcpy(line->build_id, program_id, PROCMAP_BUILD_ID_MAX);
	else
		make_build_id(line->build_id, nr);
}

/* Read @nr lines of the text, without that of the vsyscall page, which is no VMA. */
static void read_text(struct bench *bench, const char *path, size_t nr)
{
	FILE *const file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	bench->lines = calloc(nr, sizeof(*bench->lines));
	if (!file || !bench->lines)
		err(2, "%s", path);
	while (getline(&text, &size, file) > 0) {
		struct procmap_mapping line;

		if (!parse_line(text, &line))
			errx(2, "%s: %s", path, text);
		if (!strcmp(line.name, "[vsyscall]"))
			continue;
		if (bench->nr_vmas == nr)
			errx(2, "%s has more than %zu mappings", path, nr);
		add_build_id(&line);
		bench->lines[bench->nr_vmas++] = line;
	}
	if (bench->nr_vmas != nr)
		errx(2, "%s has %zu mappings, not %zu", path, bench->nr_vmas, nr);
	free(text);
	fclose(file);
}

static bool is_at(const struct procmap_mapping *line, enum places places)
{
	switch (places) {
	case SHORT_PATHS:
		return number_of(line->name) >= 0 &&
		       line->name_len == PATH_SHORT;
	case LONG_PATHS:
		return number_of(line->name) >= 0 &&
		       line->name_len == PATH_LONG;
	default:
		return true;
	}
}

/*
 * Spread addresses over the mappings. 7919 is a prime: successive addresses are
 * far apart. Returns the number of mappings.
 */
static size_t spread(struct bench *bench, enum places places)
{
	uint64_t *const starts = calloc(bench->nr_vmas, sizeof(*starts));
	size_t nr = 0, i;

	if (!starts)
		err(2, "calloc");
	for (i = 0; i < bench->nr_vmas; i++)
		if (is_at(&bench->lines[i], places))
			starts[nr++] = bench->lines[i].start;
	for (i = 0; i < NR_ADDRS && nr; i++)
		bench->addrs[places][i] = starts[i * 7919 % nr];
	free(starts);
	return nr;
}

/* Spread the addresses of the pass over the code of the libraries. */
static void spread_pass(struct bench *bench)
{
	uint64_t *const starts = calloc(bench->nr_vmas, sizeof(*starts));
	size_t nr = 0, pass, i;

	if (!starts)
		err(2, "calloc");
	for (i = 0; i < bench->nr_vmas; i++)
		if (number_of(bench->lines[i].name) >= 0 &&
		    is_returned(&bench->lines[i], EXECUTABLE))
			starts[nr++] = bench->lines[i].start;
	pass = nr < PASS_VMAS ? nr : PASS_VMAS;
	for (i = 0; i < PASS_ADDRS; i++)
		bench->pass[i] = starts[i * 7919 % pass * (nr / pass)] +
				 i * 31 % PAGE;
	free(starts);
}

static void find_special(struct bench *bench)
{
	size_t i;

	for (i = 0; i < bench->nr_vmas; i++)
		if (!strcmp(bench->lines[i].name, "[stack]"))
			bench->stack = bench->lines[i].start;
	bench->hole = bench->lines[bench->nr_vmas - 1].start - PAGE;
	if (!bench->stack || line_at(bench, bench->hole))
		errx(2, "the target has no stack, or no hole below its end");
}

/* Start a target of @nr mappings, open its maps file, and read its text. */
static void open_bench(struct bench *bench, size_t nr)
{
	char path[sizeof("/proc//maps") + 3 * sizeof(pid_t)];

	memset(bench, 0, sizeof(*bench));
	bench->pid = start_target(nr);
	snprintf(path, sizeof(path), "/proc/%d/maps", bench->pid);
	bench->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (bench->fd < 0)
		err(2, "%s", path);
	if (procmap_open_fd(bench->fd, PROCMAP_BY_QUERY,
			    &bench->procmaps[BY_QUERY]) ||
	    procmap_open_fd(bench->fd, PROCMAP_BY_TEXT,
			    &bench->procmaps[BY_TEXT]))
		errx(2, "this kernel has no PROCMAP_QUERY");
	read_text(bench, path, nr);
	find_special(bench);
	spread(bench, EVERYWHERE);
	spread(bench, SHORT_PATHS);
	bench->nr_long = spread(bench, LONG_PATHS);
	spread_pass(bench);
}

static void close_bench(struct bench *bench)
{
	procmap_close(bench->procmaps[BY_QUERY]);
	procmap_close(bench->procmaps[BY_TEXT]);
	close(bench->fd);
	while (bench->nr_vmas)
		free((char *)bench->lines[--bench->nr_vmas].name);
	free(bench->lines);
	kill(bench->pid, SIGKILL);
	waitpid(bench->pid, NULL, 0);
}

static bool can_be_done(const struct work *work, const struct bench *bench)
{
	if (work->method == BY_SCAN && ioctl(bench->fd, PROCMAP_SCAN, NULL) &&
	    errno == ENOTTY)
		return false;
	return work->run != lookup_long || bench->nr_long;
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
		       bench->nr_vmas, cost,
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
	begin_work(bench, &works[i]);
	for (run = 0; run < 10; run++)
		do_work(bench);
	mark_trace(trace, "begin");
	MARK();
	for (run = 0; run < runs; run++)
		do_work(bench);
	MARK();
	mark_trace(trace, "end");
}

int main(int argc, char **argv)
{
	const bool headline_only = argc == 3 && !strcmp(argv[2], "short");
	const bool is_profile = argc == 5;
	static struct bench bench;
	struct utsname host;
	size_t i;

	if (argc != 2 && !headline_only && !is_profile)
		errx(2, "usage: bench METHOD [short | WORK VMAS RUNS]");
	if (strcmp(argv[1], method_names[BY_SCAN]) &&
	    strcmp(argv[1], method_names[BY_TEXT]))
		method_names[BY_QUERY] = argv[1];
	uname(&host);
	read_program();
	if (is_profile) {
		open_bench(&bench, strtoul(argv[3], NULL, 10));
		profile(&bench, argv[1], argv[2], strtoul(argv[4], NULL, 10));
		close_bench(&bench);
		return 0;
	}
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (headline_only && sizes[i] != HEADLINE_VMAS)
			continue;
		open_bench(&bench, sizes[i]);
		measure(&bench, host.release, headline_only);
		close_bench(&bench);
	}
	return 0;
}
