// SPDX-License-Identifier: GPL-2.0
/* procfs_query: the time and the system calls that each method needs. */
#include "procfs_query_json.h"
#include "procfs_query_lookup.h"
#include "tool.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS_MAX	1000000

/* The methods: the default of the library; query, scan, text. */
#define NR_METHODS	4

/**
 * struct timing - the cost of the runs of one method
 * @method: the method.
 * @ns: the time of each run; bench() allocates and frees it.
 * @syscalls: the number of system calls in a run.
 * @nr_found: the number of mappings, or of mapped addresses, in the last run.
 */
struct timing {
	enum procmap_method method;
	uint64_t *ns;
	unsigned long syscalls;
	size_t nr_found;
};

static void count_found(void *context, const struct answer *answer)
{
	size_t *nr_found = context;

	*nr_found += !!answer->vma;
}

static int run(const struct options *options, enum procmap_method method, size_t *nr_found)
{
	struct procmap *procmap;
	int err;

	*nr_found = 0;
	err = procmap_open_pid(options->pid, BY(method, options), &procmap);
	if (!err) {
		err = visit(procmap, options, count_found, nr_found);
		procmap_close(procmap);
	}
	return err;
}

static int time_run(const struct options *options, struct timing *timing, unsigned long nr)
{
	const uint64_t begin = now_ns(CLOCK_MONOTONIC);
	const int err = run(options, timing->method, &timing->nr_found);

	timing->ns[nr] = now_ns(CLOCK_MONOTONIC) - begin;
	return err;
}

/*
 * One run between two calls of getppid(), which mark it for the tracer. A run
 * before it lets the heap grow to its size.
 */
static void run_to_be_counted(const struct options *options, enum procmap_method method)
{
	size_t nr_found;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(EXIT_TROUBLE);
	run(options, method, &nr_found);
	raise(SIGSTOP);
	syscall(SYS_getppid);
	run(options, method, &nr_found);
	syscall(SYS_getppid);
	_exit(0);
}

/* Count the system calls of a run with ptrace(2). Returns 0 if that fails. */
static unsigned long count_syscalls(const struct options *options, enum procmap_method method)
{
	const pid_t child = fork();
	unsigned long stops = 0;
	bool counting = false;
	int status;

	if (!child)
		run_to_be_counted(options, method);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		struct __ptrace_syscall_info info = {};

		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info),
			       &info);
			if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
				if (info.entry.nr == SYS_getppid)
					counting = !counting;
				else
					stops += counting;
			}
		} else {
			ptrace(PTRACE_SETOPTIONS, child, NULL,
			       PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
		}
		ptrace(PTRACE_SYSCALL, child, NULL, NULL);
	}
	return stops;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(const uint64_t *sorted_ns, size_t nr)
{
	return (sorted_ns[(nr - 1) / 2] + sorted_ns[nr / 2]) / 2000.0;
}

static void json_timings(FILE *out, const struct options *options,
			 const struct timing *timings, size_t nr)
{
	const unsigned long runs = options->runs;
	struct json json = json_begin_with(out, options);
	size_t i;

	json_open(&json, "bench", '{');
	json_number(&json, "runs", runs);
	for (i = 0; i < nr; i++) {
		const struct timing *const timing = &timings[i];

		json_open(&json, method_name(timing->method), '{');
		json_real(&json, "min_us", timing->ns[0] / 1000.0);
		json_real(&json, "median_us", median_us(timing->ns, runs));
		json_real(&json, "max_us", timing->ns[runs - 1] / 1000.0);
		json_number(&json, "syscalls", timing->syscalls);
		json_number(&json, "found", timing->nr_found);
		json_close(&json, '}');
	}
	json_close(&json, '}');
	json_end(&json);
}

static void print_timings(FILE *out, const struct options *options,
			  const struct timing *timings, size_t nr)
{
	const unsigned long runs = options->runs;
	size_t i;

	fprintf(out, "%lu runs each, times in us\n", runs);
	fprintf(out, "%-7s %12s %12s %12s %12s %9s\n", "", "min", "median",
		"max", "syscalls", "found");
	for (i = 0; i < nr; i++) {
		const struct timing *const timing = &timings[i];

		fprintf(out, "%-7s %12.1f %12.1f %12.1f %12lu %9zu\n",
			method_name(timing->method), timing->ns[0] / 1000.0,
			median_us(timing->ns, runs), timing->ns[runs - 1] / 1000.0,
			timing->syscalls, timing->nr_found);
	}
}

/*
 * Choose the methods to measure: the default; the query, even if the kernel lacks it; the
 * scan, if the kernel has it; the text. Returns their number.
 */
static size_t choose_methods(const struct options *options, struct timing timings[NR_METHODS])
{
	struct procmap *procmap;
	size_t nr = 1;

	timings[nr++].method = PROCMAP_BY_QUERY;
	if (!procmap_open_self(BY(PROCMAP_BY_SCAN, options), &procmap)) {
		procmap_close(procmap);
		timings[nr++].method = PROCMAP_BY_SCAN;
	}
	timings[nr++].method = PROCMAP_BY_TEXT;
	return nr;
}

static int bench(const struct options *options, FILE *out)
{
	struct timing timings[NR_METHODS] = {};
	const size_t nr_methods = choose_methods(options, timings);
	bool found = false;
	unsigned long nr;
	int err = 0;
	size_t i;

	for (i = 0; i < nr_methods; i++)
		timings[i].ns = need(calloc(options->runs, sizeof(uint64_t)));

	/* Take turns, each time with another method first. */
	for (nr = 0; nr < options->runs && !err; nr++)
		for (i = 0; i < nr_methods && !err; i++)
			err = time_run(options, &timings[(nr + i) % nr_methods],
				       nr);
	if (!err) {
		for (i = 0; i < nr_methods; i++) {
			qsort(timings[i].ns, options->runs, sizeof(uint64_t),
			      by_number);
			timings[i].syscalls = count_syscalls(options, timings[i].method);
			found |= timings[i].nr_found;
		}
		if (given(options, OPT_JSON))
			json_timings(out, options, timings, nr_methods);
		else
			print_timings(out, options, timings, nr_methods);
		err = found ? EXIT_SUCCESS : EXIT_FAILURE;
	}

	for (i = 0; i < nr_methods; i++)
		free(timings[i].ns);
	return err;
}

static void set_runs(struct options *options, const char *text)
{
	if (!parse_number(text, RUNS_MAX, &options->runs))
		fail("'%s' is not a number of runs: give one from 1 to %d",
		     quote(text, strlen(text)), RUNS_MAX);
}

const struct tool_option bench_options[] = {
	{ .argp = { .name = "bench", .key = 'b', .arg = "N", .group = GROUP_MEASURING,
		    .doc = "Run each N times, in turns, and print time and system calls" },
	  .bit = OPT_BENCH,
	  .takes = OPT_PID | OPT_EITHER | OPT_LIST | OPT_NAME | OPT_BUILD_ID,
	  .needs = OPT_EITHER | OPT_LIST | OPT_NAME,
	  .parse = set_runs, .work = bench },
	{}
};
