// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: measure one lookup and one walk with each method, in processes
 * with few and with many mappings; print numbers, and plot them with gnuplot.
 */
#include "procfs_query.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many mappings to add to the some thirty that a process has. */
static const size_t sizes[] = {
	10, 30, 100, 300, 1000, 3000, 10000, 30000, 60000
};

#define NR_SIZES	(sizeof(sizes) / sizeof(*sizes))

/* Repeat each measurement for this time, within these limits. */
#define RUNS_MIN	9
#define RUNS_MAX	1001
#define RUNS_NS		50000000

enum work { LOOKUP, WALK, NR_WORKS };

static const char *const work_names[NR_WORKS] = { "lookup", "walk" };

/**
 * struct curve - one kind of work with one method
 * @work: the work.
 * @method: the method.
 */
struct curve {
	enum work work;
	enum procmap_method method;
};

#define NR_CURVES_MAX	(NR_WORKS * NR_METHODS)

/**
 * struct curves - all curves to measure
 * @nr: the number of curves.
 * @curves: the curves; the last of each work uses the text.
 */
struct curves {
	size_t nr;
	struct curve curves[NR_CURVES_MAX];
};

/**
 * struct point - the measurements of one process
 * @vmas: the number of its mappings.
 * @us: the median of each curve, in us.
 */
struct point {
	size_t vmas;
	double us[NR_CURVES_MAX];
};

/**
 * struct subject - a process to measure
 * @pid: the process.
 * @start: the start of the mappings that were made, of a page each.
 * @nr: the number of these mappings.
 */
struct subject {
	pid_t pid;
	uint64_t start;
	size_t nr;
};

/*
 * Make @nr mappings of a page. No two neighbours can be merged, and a tenth map
 * the file of this program. Returns the start of the first, or NULL.
 */
static char *make_mappings(size_t nr)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *region;
	size_t i;

	region = mmap(NULL, nr * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (file < 0 || region == MAP_FAILED)
		return NULL;
	for (i = 0; i < nr; i++) {
		if (i % 10 == 0 &&
		    mmap(region + i * page, page, PROT_READ,
			 MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
			return NULL;
		if (i % 10 && i % 2 &&
		    mprotect(region + i * page, page, PROT_READ))
			return NULL;
	}
	return region;
}

/*
 * The process to measure: report the start of its mappings, and wait. It is
 * killed when its parent exits; if that happened before prctl(), the write fails.
 */
static void be_subject(int out, size_t nr)
{
	const char *start;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start = make_mappings(nr);
	if (write(out, &start, sizeof(start)) != sizeof(start))
		_exit(EXIT_TROUBLE);
	close(out);
	for (;;)
		pause();
}

static void start_subject(struct subject *subject, size_t nr)
{
	char *start = NULL;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		fail("pipe: %s", strerror(errno));
	subject->pid = fork();
	if (subject->pid < 0)
		fail("fork: %s", strerror(errno));
	if (!subject->pid) {
		close(ends[0]);
		be_subject(ends[1], nr);
	}
	close(ends[1]);
	if (read(ends[0], &start, sizeof(start)) != sizeof(start) || !start)
		fail("cannot make %zu mappings in a process: raise vm.max_map_count",
		     nr);
	close(ends[0]);
	subject->start = (uintptr_t)start;
	subject->nr = nr;
}

static void stop_subject(const struct subject *subject)
{
	kill(subject->pid, SIGKILL);
	waitpid(subject->pid, NULL, 0);
}

/* The addresses jump about, and are the same for each method. */
static int look_up(struct procmap *procmap, const struct subject *subject,
		   size_t run, size_t *nr_found)
{
	const size_t which = (run + 1) * 7919 % subject->nr;
	const struct procmap_mapping *vma;

	(*nr_found)++;
	return procmap_find(procmap,
			    subject->start + which * sysconf(_SC_PAGESIZE), 0,
			    &vma);
}

static int walk(struct procmap *procmap, size_t *nr_found)
{
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	int err;

	for (*nr_found = 0; !(err = procmap_next(procmap, &cursor, 0, &vma));)
		(*nr_found)++;
	return err == -ENOENT ? 0 : err;
}

static int measure_work(const struct subject *subject, enum procmap_method method,
			enum work work, double *us, size_t *nr_found)
{
	uint64_t ns[RUNS_MAX], begin, begin_all;
	struct procmap *procmap;
	size_t nr = 0;
	int err;

	err = procmap_open_pid(subject->pid, method, &procmap);
	if (err)
		return err;
	begin_all = now_ns();
	do {
		begin = now_ns();
		err = work == LOOKUP ?
		      look_up(procmap, subject, nr, nr_found) :
		      walk(procmap, nr_found);
		ns[nr++] = now_ns() - begin;
	} while (!err && nr < RUNS_MAX &&
		 (nr < RUNS_MIN || now_ns() - begin_all < RUNS_NS));
	procmap_close(procmap);
	qsort(ns, nr, sizeof(*ns), by_number);
	*us = median_us(ns, nr);
	return err;
}

/* Skip lookups with the scan: the library does them with PROCMAP_QUERY. */
static void find_curves(struct curves *curves)
{
	enum procmap_method methods[NR_METHODS];
	const size_t nr_methods = methods_to_compare(methods);
	size_t work, method;

	curves->nr = 0;
	for (work = 0; work < NR_WORKS; work++)
		for (method = 0; method < nr_methods; method++)
			if (work != LOOKUP || methods[method] != PROCMAP_BY_SCAN)
				curves->curves[curves->nr++] =
					(struct curve) { work, methods[method] };
}

static int measure(size_t nr, const struct curves *curves, struct point *point)
{
	struct subject subject;
	int err = 0;
	size_t i;

	start_subject(&subject, nr);
	for (i = 0; i < curves->nr && !err; i++)
		err = measure_work(&subject, curves->curves[i].method,
				   curves->curves[i].work, &point->us[i],
				   &point->vmas);
	stop_subject(&subject);
	return err;
}

static void show_progress(size_t done)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (done < NR_SIZES)
		fprintf(stderr, "\r%zu of %zu: %zu mappings\033[K", done + 1,
			NR_SIZES, sizes[done]);
	else
		fputs("\r\033[K", stderr);
}

/* One point per line; gnuplot reads these lines, too. */
static void json_points(struct json *json, const struct curves *curves,
			const struct point *points)
{
	size_t i, j;
	char key[80];

	for (i = 0; i < NR_SIZES; i++) {
		json_open(json, NULL, '{');
		json_number(json, "vmas", points[i].vmas);
		for (j = 0; j < curves->nr; j++) {
			snprintf(key, sizeof(key), "%s_%s_us",
				 work_names[curves->curves[j].work],
				 method_name(curves->curves[j].method));
			json_real(json, key, points[i].us[j]);
		}
		json_close(json, '}');
	}
}

/* The ratio beside the text compares it with the method in the column before. */
static void print_points(FILE *out, const struct curves *curves,
			 const struct point *points)
{
	size_t i, j;

	fputs("medians in us\n    VMAs", out);
	for (j = 0; j < curves->nr; j++) {
		fprintf(out, " %8s, %-5s", work_names[curves->curves[j].work],
			method_name(curves->curves[j].method));
		if (curves->curves[j].method == PROCMAP_BY_TEXT)
			fputs("  ratio", out);
	}
	fputc('\n', out);
	for (i = 0; i < NR_SIZES; i++) {
		const struct point *const point = &points[i];

		fprintf(out, "%8zu", point->vmas);
		for (j = 0; j < curves->nr; j++) {
			fprintf(out, " %15.1f", point->us[j]);
			if (curves->curves[j].method == PROCMAP_BY_TEXT)
				fprintf(out, " %6.1f",
					point->us[j] / point->us[j - 1]);
		}
		fputc('\n', out);
	}
}

/**
 * struct gnuplot - a running gnuplot
 * @pid: its process.
 * @in: its standard input; draw() closes it.
 * @out: its standard output, the SVG; draw() closes it.
 */
struct gnuplot {
	pid_t pid;
	FILE *in;
	FILE *out;
};

/* Start it before the measurements, which take long: it may not be installed. */
static void start_gnuplot(struct gnuplot *gnuplot)
{
	char *const argv[] = { "gnuplot", NULL };
	posix_spawn_file_actions_t actions;
	int in[2], out[2], err;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		fail("pipe: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	err = posix_spawnp(&gnuplot->pid, *argv, &actions, NULL, argv, environ);
	if (err)
		fail("gnuplot: %s: install gnuplot-nox", strerror(err));
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	gnuplot->in = need(fdopen(in[1], "w"));
	gnuplot->out = need(fdopen(out[0], "r"));
}

/*
 * Draw the points. Returns the SVG, @len bytes; the caller frees it. SIGPIPE must not
 * end this program: if gnuplot does not read, it has failed, and its status shows that.
 */
static char *draw(struct gnuplot *gnuplot, const struct curves *curves,
		  const struct point *points, size_t *len)
{
	struct json json = { .out = gnuplot->in, .first = true };
	const sighandler_t before = signal(SIGPIPE, SIG_IGN);
	char *svg;
	int status;
	size_t i;

	fputs("$points << END", gnuplot->in);
	json_points(&json, curves, points);
	fputs("\nEND\n"
	      "set terminal svg size 800,560 dynamic background 'white'\n"
	      "set datafile separator ':,}'\n"
	      "set logscale xy\n"
	      "set xlabel 'VMAs'\n"
	      "set ylabel 'microseconds, median'\n"
	      "set key left top\n"
	      "set grid\n"
	      "set rmargin 5\n"
	      "plot ", gnuplot->in);
	for (i = 0; i < curves->nr; i++)
		fprintf(gnuplot->in,
			"%s$points using 2:%zu with linespoints linetype %d pointtype %d title '%s by %s'",
			i ? ", " : "", 4 + 2 * i, curves->curves[i].method,
			4 + 2 * curves->curves[i].work,
			work_names[curves->curves[i].work],
			method_name(curves->curves[i].method));
	fputc('\n', gnuplot->in);
	fclose(gnuplot->in);
	signal(SIGPIPE, before);

	svg = read_all(gnuplot->out, len);
	fclose(gnuplot->out);
	if (waitpid(gnuplot->pid, &status, 0) != gnuplot->pid || status || !*len)
		fail("gnuplot failed: the plot was not written");
	return svg;
}

/* Check before the measurements, which take long, that @name can be written. */
static void check_file(const char *name)
{
	char *const copy = need(strdup(name));
	struct stat stat_of_file;

	if (!stat(name, &stat_of_file) && !S_ISREG(stat_of_file.st_mode))
		fail("%s is not a regular file: give another", name);
	if (access(dirname(copy), W_OK))
		fail("%s: %s: give a file that can be written", name,
		     strerror(errno));
	free(copy);
}

/*
 * Write a temporary file and rename it, so that the file has all of the plot or
 * stays as it was. Signals are blocked, so that no temporary file is left behind.
 */
static void write_file(const char *name, const char *bytes, size_t len)
{
	sigset_t all, before;
	bool good = false;
	char *unnamed;
	FILE *file;
	int fd;

	if (asprintf(&unnamed, "%s.XXXXXX", name) < 0)
		need(NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	fd = mkstemp(unnamed);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (file) {
		const mode_t mask = umask(0);

		umask(mask);
		good = !fchmod(fd, 0666 & ~mask) &&
		       fwrite(bytes, 1, len, file) == len;
		good = !fclose(file) && good && !rename(unnamed, name);
	}
	if (!good) {
		const int err = errno;

		unlink(unnamed);
		fail("%s: %s: the plot was not written", name, strerror(err));
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	free(unnamed);
}

int scale(const struct options *options, FILE *out)
{
	struct json json = json_to(out, options);
	struct point points[NR_SIZES];
	struct gnuplot gnuplot;
	struct curves curves;
	size_t i, len;
	char *svg;
	int err;

	check_file(options->scale);
	start_gnuplot(&gnuplot);
	find_curves(&curves);
	for (i = 0; i < NR_SIZES; i++) {
		show_progress(i);
		err = measure(sizes[i], &curves, &points[i]);
		if (err) {
			show_progress(NR_SIZES);
			return err;
		}
	}
	show_progress(NR_SIZES);
	svg = draw(&gnuplot, &curves, points, &len);
	write_file(options->scale, svg, len);
	free(svg);

	if (options->json) {
		json_begin(&json, options);
		json_open(&json, "scale", '[');
		json_points(&json, &curves, points);
		json_close(&json, ']');
		json_end(&json);
	} else {
		print_points(out, &curves, points);
	}
	return EXIT_SUCCESS;
}
