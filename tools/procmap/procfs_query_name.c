// SPDX-License-Identifier: GPL-2.0
/* procfs_query: find mappings by a name, by the file that it leads to, or by a pattern. */
#include "procfs_query_name.h"
#include "tool.h"

#include <limits.h>
#include <unistd.h>

/**
 * struct found - copies of the mappings of a process that were found
 * @all: the mappings, in no order; some may be there twice.
 * @nr: the number of mappings.
 * @room: the number that @all has room for.
 */
struct found {
	struct procmap_mapping *all;
	size_t nr;
	size_t room;
};

/**
 * struct answers - what was found in all processes
 * @nr_found: the number of mappings.
 * @has_file: the path leads to a file in one of them.
 * @nr_unsure: the number of mappings that may be of another file.
 * @nr_not_followed: the number of processes in which the path could not be followed.
 * @err: the first reason.
 */
static struct answers {
	size_t nr_found;
	bool has_file;
	size_t nr_unsure;
	size_t nr_not_followed;
	int err;
} answers;

static void add(struct found *found, const struct procmap_mapping *vma)
{
	found->all = room_for_one(found->all, found->nr, &found->room, sizeof(*found->all));
	found->all[found->nr] = *vma;
	found->all[found->nr++].name = need(strdup(vma->name));
}

static bool has(const struct found *found, uint64_t start)
{
	size_t i;

	for (i = 0; i < found->nr; i++) {
		if (found->all[i].start == start)
			return true;
	}
	return false;
}

static int add_named(struct procmap *procmap, const struct options *options, const char *name,
		     enum procmap_match match, struct found *found)
{
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	int err;

	while (!(err = procmap_find_name(procmap, name, match, &cursor, options->flags, &vma)))
		add(found, vma);
	return err == -ENOENT ? 0 : err;
}

/* Add those that have the name of the file without links: an older file may have had it. */
static int add_namesakes(struct procmap *procmap, const struct options *options,
			 const struct procmap_file *file, struct found *found)
{
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)], path[PATH_MAX];
	char *name;
	ssize_t len;
	int err;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", procmap_file_fd(file));
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return 0;
	path[len] = '\0';
	name = escape(path);
	err = strcmp(name, options->name) ?
	      add_named(procmap, options, name, PROCMAP_EXACT, found) : 0;
	free(name);
	return err;
}

/* Files that cannot be mapped, as those of procfs, are in no process. */
static int add_mappings_of(struct procmap *procmap, const struct options *options,
			   struct procmap_file *file, struct found *found)
{
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	int err;

	while (!(err = procmap_find_file(procmap, file, &cursor, options->flags, &vma)) ||
	       err == -EXDEV) {
		if (!err)
			add(found, vma);
		else if (!has(found, vma->start))
			answers.nr_unsure++;
	}
	return err == -ENOENT || (!cursor && (err == -ENODEV || err == -EIO)) ? 0 : err;
}

/* Without a file at the path, there are only the names. */
static int add_file(struct procmap *procmap, const struct options *options,
		    struct found *found)
{
	struct procmap_file *file;
	int err = procmap_open_path(procmap, options->path, &file);

	if (err == -ENOENT || err == -ENOTDIR || err == -ENODEV || err == -ESRCH)
		return 0;
	if (err) {
		answers.nr_not_followed++;
		answers.err = answers.err ? answers.err : err;
		return 0;
	}
	answers.has_file = true;
	err = add_namesakes(procmap, options, file, found);
	if (!err)
		err = add_mappings_of(procmap, options, file, found);
	procmap_close_file(file);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct procmap_mapping *const x = a, *const y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Visit each once, in the order of the addresses, if there was no error. Frees all. */
static void visit_found(struct found *found, int err, visit_fn visit_one, void *context)
{
	uint64_t end = 0;
	size_t i;

	if (found->nr)
		qsort(found->all, found->nr, sizeof(*found->all), by_start);
	for (i = 0; i < found->nr; i++) {
		const struct procmap_mapping *const vma = &found->all[i];

		if (!err && vma->start >= end) {
			visit_one(context, &(struct answer) { .addr = vma->start, .vma = vma });
			answers.nr_found++;
			end = vma->end;
		}
		free((char *)vma->name);
	}
	free(found->all);
}

int visit_name(struct procmap *procmap, const struct options *options, visit_fn visit_one,
	       void *context)
{
	struct found found = {};
	int err;

	err = add_named(procmap, options, options->name, PROCMAP_EXACT, &found);
	if (!err && options->path && !options->maps_file)
		err = add_file(procmap, options, &found);
	if (!err && !found.nr && options->pattern)
		err = add_named(procmap, options, options->pattern, PROCMAP_GLOB, &found);
	visit_found(&found, err, visit_one, context);
	return err;
}

/* Say what is not known, and if nothing was found, what was looked for. */
int finish_name(const struct options *options, FILE *out)
{
	(void)out;
	if (answers.nr_unsure)
		warnx("%zu mapping%s with the inode of %s may be of another file: run as root",
		      answers.nr_unsure, answers.nr_unsure == 1 ? "" : "s", options->name);
	if (answers.nr_not_followed)
		warnx("%s could not be followed in %zu process%s, only compared by name: %s",
		      options->name, answers.nr_not_followed,
		      answers.nr_not_followed == 1 ? "" : "es",
		      answers.err == -EREMOTE ? "its server may be dead: see --ask-servers" :
						strerror(-answers.err));
	if (answers.nr_found)
		return EXIT_SUCCESS;
	warnx("no mapping%s has the name %s%s%s%s",
	      given(options, OPT_FILTER) ? " that passes the filters" : "", options->name,
	      answers.has_file ? ", or is of the file at this path" : "",
	      options->pattern ? ", or matches it as a pattern" : "",
	      !options->path || given(options, OPT_MAPS_FILE | OPT_FD) || answers.has_file ||
	      answers.nr_not_followed ? "" : "; no regular file is at this path");
	return EXIT_FAILURE;
}

/*
 * In names such as [heap] and [anon:*], the first bracket belongs to the name: it does
 * not begin a set of characters.
 */
void parse_name(struct options *options, const char *text)
{
	const char *const end = strchr(text, ']');
	const bool is_bracketed = *text == '[' && end && !end[1];

	if (!*text)
		fail("'' is not a name: give that of a mapping, or a pattern");
	free(options->name);
	free(options->pattern);
	options->name = escape(text);
	options->path = *text == '/' ? text : NULL;
	options->pattern = NULL;
	if (strpbrk(text + is_bracketed, "*?["))
		options->pattern = format("%s%s", is_bracketed ? "\\" : "", text);
}
