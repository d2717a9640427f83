// SPDX-License-Identifier: GPL-2.0
/* procfs_query: print how the mappings of a running process change. */
#include "procfs_query_json.h"
#include "procfs_query_lookup.h"
#include "procfs_query_print.h"
#include "tool.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define NS_PER_SECOND	1000000000

/* The longest interval. */
#define SECONDS_MAX	86400

/**
 * struct watcher - the state of printing changes
 * @options: the command line.
 * @out: the stream.
 * @when: the time of this look.
 */
struct watcher {
	const struct options *options;
	FILE *out;
	char when[sizeof("2026-11-23T05:40:01.123+00:00")];
};

static struct json json_event(const struct watcher *watcher, const char *event)
{
	struct json json = json_begin_with(watcher->out, watcher->options);

	json_string(&json, "time", watcher->when);
	json_string(&json, "event", event);
	return json;
}

static void print_sign(const struct watcher *watcher, enum colour colour,
		       const char *sign, const struct procmap_mapping *vma)
{
	int indent;

	indent = fprintf(watcher->out, "%s ", watcher->when);
	indent += print_coloured(watcher->out, colour, sign);
	indent += fprintf(watcher->out, " ");
	print_line(watcher->out, watcher->options, vma, indent);
}

/* Print a mapping that appeared (@was is NULL), vanished (@is) or changed. */
static int print_change(void *context, const struct procmap_mapping *was,
			const struct procmap_mapping *is)
{
	const struct watcher *const watcher = context;
	struct json json;

	if (!given(watcher->options, OPT_JSON)) {
		if (was)
			print_sign(watcher, is ? YELLOW : RED, is ? "<" : "-",
				   was);
		if (is)
			print_sign(watcher, was ? YELLOW : GREEN,
				   was ? ">" : "+", is);
		return 0;
	}
	json = json_event(watcher, was ? is ? "changed" : "vanished" : "appeared");
	json_vma(&json, "was", watcher->options, was);
	json_vma(&json, "is", watcher->options, is);
	json_end(&json);
	return 0;
}

static void print_first(const struct watcher *watcher, size_t nr)
{
	struct json json;

	if (given(watcher->options, OPT_JSON)) {
		json = json_event(watcher, "first");
		json_number(&json, "mappings", nr);
		json_end(&json);
	} else {
		fprintf(watcher->out, "%s   %zu mappings\n", watcher->when, nr);
	}
}

static void print_executed(const struct watcher *watcher, const char *program, size_t nr)
{
	struct json json;
	int column;

	if (given(watcher->options, OPT_JSON)) {
		json = json_event(watcher, "executed");
		json_number(&json, "mappings", nr);
		json_program(&json, program);
		json_end(&json);
		return;
	}
	column = fprintf(watcher->out, "%s ", watcher->when);
	column += print_coloured(watcher->out, BOLD, "* executed");
	column += fprintf(watcher->out, ", %zu mappings: ", nr);
	print_program(watcher->out, program, column);
	fputc('\n', watcher->out);
}

static void print_exited(const struct watcher *watcher)
{
	struct json json;

	if (given(watcher->options, OPT_JSON)) {
		json = json_event(watcher, "exited");
		json_end(&json);
	} else {
		fprintf(watcher->out, "%s ", watcher->when);
		print_coloured(watcher->out, BOLD, "* exited");
		fputc('\n', watcher->out);
	}
}

/* Exit, as after a write, once nobody reads standard output any more. */
static void sleep_ns(uint64_t ns)
{
	const struct timespec timeout = {
		.tv_sec = ns / NS_PER_SECOND,
		.tv_nsec = ns % NS_PER_SECOND,
	};
	struct pollfd reader = { .fd = STDOUT_FILENO };

	if (ppoll(&reader, 1, &timeout, NULL) <= 0)
		return;
	raise(SIGPIPE);
	fail("standard output: %s: the result is incomplete", strerror(EPIPE));
}

/*
 * Sleep until the next multiple of the interval since @start. Multiples that have passed,
 * for example while this process was stopped, are skipped.
 */
static void wait_for_next(uint64_t start, double seconds)
{
	const uint64_t interval = seconds * NS_PER_SECOND;
	const uint64_t passed = (now_ns(CLOCK_MONOTONIC) - start) / interval;
	const uint64_t next = start + (passed + 1) * interval;
	uint64_t now;

	while ((now = now_ns(CLOCK_MONOTONIC)) < next)
		sleep_ns(next - now);
}

static void set_time(struct watcher *watcher)
{
	const size_t size = sizeof(watcher->when);
	char zone[sizeof("+0000")];
	struct timespec now;
	struct tm *local;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	local = localtime(&now.tv_sec);
	strftime(zone, sizeof(zone), "%z", local);
	len = strftime(watcher->when, size, "%FT%T", local);
	snprintf(watcher->when + len, size - len, ".%03ld%.3s:%s",
		 now.tv_nsec / 1000000, zone, zone + 3);
}

/* Bring a snapshot up to date; take it if there is none yet. */
static int refresh(struct procmap *procmap, const struct options *options,
		   struct procmap_snapshot **snapshot)
{
	int ret;

	if (!*snapshot)
		return procmap_snapshot_take(procmap, options->flags,
					     snapshot);
	ret = procmap_snapshot_refresh(*snapshot, procmap);
	return ret < 0 ? ret : 0;
}

/*
 * Go on with the new program. Its name is looked up by process ID. The ID was not reused
 * if the mappings can be read afterwards.
 */
static int follow(struct procmap *procmap, const struct options *options,
		  struct procmap_snapshot **now, char **program)
{
	int err = procmap_reopen(procmap);

	if (err)
		return err;
	free(*program);
	*program = program_of(options->pid);
	/* A snapshot of another program cannot be refreshed. */
	procmap_snapshot_free(*now);
	*now = NULL;
	return refresh(procmap, options, now);
}

/* Look at the mappings, and print what has changed since @before. */
static int look(struct procmap *procmap, struct watcher *watcher,
		const struct procmap_snapshot *before,
		struct procmap_snapshot **now)
{
	bool has_executed = false;
	struct output output;
	char *program = NULL;
	int err;

	set_time(watcher);
	err = refresh(procmap, watcher->options, now);
	while (err == -ESTALE) {
		has_executed = true;
		err = follow(procmap, watcher->options, now, &program);
	}
	if (err && (err != -ESRCH || !before))
		goto free;

	begin_output(&output);
	watcher->out = output.file;
	if (err)
		print_exited(watcher);
	else if (!before)
		print_first(watcher, procmap_snapshot_count(*now));
	else if (has_executed)
		print_executed(watcher, program, procmap_snapshot_count(*now));
	if (before && !err)
		procmap_snapshot_compare(before, *now, print_change, watcher);
	end_output(&output, true);
free:
	free(program);
	return err;
}

/*
 * Print changes until the process exits. Two snapshots take turns: the last one must not
 * change before it is compared with the next one.
 */
static int watch(const struct options *options)
{
	struct watcher watcher = { .options = options };
	struct procmap_snapshot *before = NULL, *now = NULL, *oldest;
	struct procmap *procmap;
	uint64_t start;
	int err;

	err = procmap_open_pid(options->pid, BY(options->method, options), &procmap);
	if (err)
		return err;
	start = now_ns(CLOCK_MONOTONIC);
	for (;;) {
		err = look(procmap, &watcher, before, &now);
		if (err)
			break;
		oldest = before;
		before = now;
		now = oldest;
		wait_for_next(start, options->interval);
	}
	if (err == -ESRCH && before)
		err = EXIT_SUCCESS;
	procmap_close(procmap);
	procmap_snapshot_free(before);
	procmap_snapshot_free(now);
	return err;
}

static void set_interval(struct options *options, const char *text)
{
	char *end;

	options->interval = strtod(text, &end);
	if (end == text || *end ||
	    !(options->interval >= 0.001 && options->interval <= SECONDS_MAX))
		fail("'%s' is not an interval: give seconds from 0.001 to %d",
		     quote(text, strlen(text)), SECONDS_MAX);
}

const struct tool_option watch_options[] = {
	{ .argp = { .name = "interval", .key = 'i', .arg = "SECONDS", .group = GROUP_WORK,
		    .doc = "Look again every SECONDS and print the changes" },
	  .bit = OPT_INTERVAL,
	  .takes = OPT_PID | OPT_LIST | OPT_METHODS | OPT_BUILD_ID, .needs = OPT_LIST,
	  .parse = set_interval, .run = watch },
	{}
};
