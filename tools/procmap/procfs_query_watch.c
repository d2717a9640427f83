// SPDX-License-Identifier: GPL-2.0
/* procfs_query: print how the mappings of a running process change. */
#include "procfs_query.h"

#include <time.h>

#define NS_PER_SECOND	1000000000

/**
 * struct snapshot - all mappings at one time
 * @vmas: the mappings, in rising order; their names are copies that it owns.
 * @nr: the number of mappings.
 * @size: the number of mappings that @vmas has room for.
 */
struct snapshot {
	struct procmap_mapping *vmas;
	size_t nr;
	size_t size;
};

static void empty_snapshot(struct snapshot *snapshot)
{
	while (snapshot->nr)
		free((char *)snapshot->vmas[--snapshot->nr].name);
}

static void add_to_snapshot(void *context, uint64_t addr,
			    const struct procmap_mapping *vma)
{
	struct snapshot *const snapshot = context;
	struct procmap_mapping *copy;

	(void)addr;
	if (snapshot->nr == snapshot->size) {
		snapshot->size = snapshot->size * 2 + 64;
		snapshot->vmas = need(reallocarray(snapshot->vmas,
						   snapshot->size,
						   sizeof(*snapshot->vmas)));
	}
	copy = &snapshot->vmas[snapshot->nr++];
	*copy = *vma;
	copy->name = need(strdup(vma->name));
}

static bool is_same_vma(const struct procmap_mapping *a,
			const struct procmap_mapping *b)
{
	return a->start == b->start && a->end == b->end &&
	       a->flags == b->flags && a->offset == b->offset &&
	       a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && !strcmp(a->name, b->name);
}

/**
 * struct watcher - the state of printing changes
 * @out: the stream.
 * @options: the command line.
 * @column: where names begin in a line.
 */
struct watcher {
	FILE *out;
	const struct options *options;
	int column;
};

static void print_changed(const struct watcher *watcher, const char *when,
			  enum colour colour, const char *sign,
			  const struct procmap_mapping *vma)
{
	int indent;

	indent = fprintf(watcher->out, "%s ", when);
	indent += print_coloured(watcher->out, colour, sign);
	indent += fprintf(watcher->out, " ");
	print_line(watcher->out, vma, indent, watcher->column);
}

/* Print a mapping that appeared (@was is NULL), vanished (@is) or changed. */
static void print_change(const struct watcher *watcher, const char *when,
			 const struct procmap_mapping *was,
			 const struct procmap_mapping *is)
{
	const bool build_id = watcher->options->build_id;
	struct json json = { .out = watcher->out };

	if (!watcher->options->json) {
		if (was)
			print_changed(watcher, when, is ? YELLOW : RED,
				      is ? "<" : "-", was);
		if (is)
			print_changed(watcher, when, was ? YELLOW : GREEN,
				      was ? ">" : "+", is);
		return;
	}
	json_begin(&json, watcher->options);
	json_string(&json, "time", when);
	json_string(&json, "change",
		    was ? is ? "changed" : "vanished" : "appeared");
	if (was)
		json_vma(&json, "was", was, build_id);
	if (is)
		json_vma(&json, "is", is, build_id);
	json_end(&json);
}

static void print_changes(struct watcher *watcher, const char *when,
			  const struct snapshot *before,
			  const struct snapshot *now)
{
	size_t i = 0, j = 0;

	while (i < before->nr || j < now->nr) {
		const struct procmap_mapping *was = NULL, *is = NULL;

		if (i < before->nr)
			was = &before->vmas[i];
		if (j < now->nr)
			is = &now->vmas[j];
		if (was && is && was->start < is->start)
			is = NULL;
		else if (was && is && is->start < was->start)
			was = NULL;
		i += !!was;
		j += !!is;
		if (!was || !is || !is_same_vma(was, is))
			print_change(watcher, when, was, is);
	}
}

static void print_first(struct watcher *watcher, const char *when,
			size_t nr)
{
	struct json json = { .out = watcher->out };

	if (watcher->options->json) {
		json_begin(&json, watcher->options);
		json_string(&json, "time", when);
		json_number(&json, "mappings", nr);
		json_end(&json);
	} else {
		fprintf(watcher->out, "%s   %zu mappings\n", when, nr);
	}
}

/*
 * Sleep until the next multiple of the interval since @start. Those that have passed,
 * for example while this process was stopped, are skipped.
 */
static void wait_for_next(uint64_t start, double seconds)
{
	const uint64_t interval = seconds * NS_PER_SECOND;
	const uint64_t passed = (now_ns() - start) / interval;
	const uint64_t ns = start + (passed + 1) * interval;
	const struct timespec next = {
		.tv_sec = ns / NS_PER_SECOND,
		.tv_nsec = ns % NS_PER_SECOND,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL))
		;
}

#define TIME_SIZE	sizeof("2026-11-23T05:40:01.123+00:00")

static void format_time(char text[TIME_SIZE])
{
	char zone[sizeof("+0000")];
	struct timespec now;
	struct tm *local;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	local = localtime(&now.tv_sec);
	strftime(zone, sizeof(zone), "%z", local);
	len = strftime(text, TIME_SIZE, "%FT%T", local);
	snprintf(text + len, TIME_SIZE - len, ".%03ld%.3s:%s",
		 now.tv_nsec / 1000000, zone, zone + 3);
}

/* Take a snapshot, and print what has changed since the one before. */
static int look(struct procmap *procmap, struct watcher *watcher,
		struct snapshot *before, struct snapshot *now, bool is_first)
{
	struct output output;
	char when[TIME_SIZE];
	int err;

	format_time(when);
	empty_snapshot(now);
	err = visit(procmap, watcher->options, add_to_snapshot, now);
	if (err)
		return err;
	begin_output(&output);
	watcher->out = output.file;
	if (is_first)
		print_first(watcher, when, now->nr);
	else
		print_changes(watcher, when, before, now);
	end_output(&output, true);
	return 0;
}

/*
 * The address space is gone: the process has exited or executed another program.
 * Open its new one, if there is one, and look at that.
 */
static int look_anew(const struct options *options, struct procmap **procmap,
		     struct watcher *watcher, struct snapshot *before,
		     struct snapshot *now, bool is_first)
{
	int err;

	procmap_close(*procmap);
	*procmap = NULL;
	err = procmap_open_pid(options->pid, options->method, procmap);
	return err ? err : look(*procmap, watcher, before, now, is_first);
}

/* Print changes until the process exits. */
int watch(const struct options *options)
{
	struct watcher watcher = { .options = options, .column = name_column() };
	struct snapshot snapshots[2] = {};
	struct procmap *procmap;
	uint64_t start;
	unsigned int i;
	int err;

	err = procmap_open_pid(options->pid, options->method, &procmap);
	if (err)
		return err;
	start = now_ns();
	for (i = 0; !err; i++) {
		if (i)
			wait_for_next(start, options->interval);
		err = look(procmap, &watcher, &snapshots[(i + 1) % 2],
			   &snapshots[i % 2], !i);
		if (err == -ESRCH)
			err = look_anew(options, &procmap, &watcher,
					&snapshots[(i + 1) % 2],
					&snapshots[i % 2], !i);
	}
	procmap_close(procmap);
	for (i = 0; i < 2; i++) {
		empty_snapshot(&snapshots[i]);
		free(snapshots[i].vmas);
	}
	return err == -ESRCH || err == -ENOENT ? EXIT_SUCCESS : err;
}
