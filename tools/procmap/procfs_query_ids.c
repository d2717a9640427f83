// SPDX-License-Identifier: GPL-2.0
/* procfs_query: list the build IDs of mapped files, and who maps them. */
#include "procfs_query_json.h"
#include "procfs_query_lookup.h"
#include "procfs_query_print.h"
#include "procfs_query_processes.h"
#include "tool.h"

/**
 * struct file - a mapped file, by one of its names
 * @first: the first of its mappings; its name is a copy that the file owns.
 * @pids: the processes that map it, in rising order.
 * @nr_pids: the number of processes.
 * @room: the number that @pids has room for.
 */
struct file {
	struct procmap_mapping first;
	pid_t *pids;
	size_t nr_pids;
	size_t room;
};

/**
 * struct id - a build ID, and the files and processes that have it
 * @files: the files, in the rows.
 * @nr_files: the number of files.
 * @names: their names, sorted, each once. The files own them.
 * @nr_names: the number of names.
 * @pids: the processes that map one of them, in rising order.
 * @nr_pids: the number of processes.
 */
struct id {
	void **files;
	size_t nr_files;
	const char **names;
	size_t nr_names;
	pid_t *pids;
	size_t nr_pids;
};

/* The mapped files of all processes so far. */
static struct rows ids;

/* Files with the same build ID are neighbours. */
static int by_file_of_row(const void *a, const void *b)
{
	return by_file(*(void *const *)a, *(void *const *)b);
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_first_name(const void *a, const void *b)
{
	const struct id *const x = a;
	const struct id *const y = b;
	const int order = by_string(x->names, y->names);

	return order ? order : by_build_id(x->files[0], y->files[0]);
}

static void add_pid(struct file *file, pid_t pid)
{
	if (file->nr_pids && file->pids[file->nr_pids - 1] == pid)
		return;
	file->pids = room_for_one(file->pids, file->nr_pids, &file->room,
				  sizeof(pid));
	file->pids[file->nr_pids++] = pid;
}

static void add_mapping(const struct options *options, const struct procmap_mapping *vma)
{
	fail_without_files(vma->build_id_size);
	add_pid(row_of(&ids, vma, sizeof(struct file)), options->pid);
}

static int add_to_ids(const struct options *options, FILE *out)
{
	(void)out;
	return visit_snapshot(options, add_mapping);
}

/* Collect the names and the processes of all files with the ID. */
static void complete_id(struct id *id)
{
	const struct file *file;
	size_t nr_pids = 0, i, k;

	for (i = 0; i < id->nr_files; i++) {
		file = id->files[i];
		nr_pids += file->nr_pids;
	}
	id->names = need(reallocarray(NULL, id->nr_files, sizeof(*id->names)));
	id->pids = need(reallocarray(NULL, nr_pids, sizeof(*id->pids)));
	for (i = 0; i < id->nr_files; i++) {
		file = id->files[i];
		id->names[i] = file->first.name;
		for (k = 0; k < file->nr_pids; k++)
			id->pids[id->nr_pids++] = file->pids[k];
	}
	qsort(id->names, id->nr_files, sizeof(*id->names), by_string);
	for (i = 0; i < id->nr_files; i++) {
		if (!i || strcmp(id->names[i], id->names[i - 1]))
			id->names[id->nr_names++] = id->names[i];
	}
	id->nr_pids = sort_pids(id->pids, id->nr_pids);
}

/*
 * Group files by build ID. They are sorted by it, and @first is the first one that has
 * one. Returns NULL if there is none; the caller frees the result.
 */
static struct id *group(size_t first, size_t *nr)
{
	struct id *groups = NULL;
	size_t i;

	*nr = 0;
	for (i = first; i < ids.nr; i++) {
		void **const file = &ids.all[i];

		if (i == first || by_build_id(file[-1], file[0])) {
			groups = need(reallocarray(groups, *nr + 1,
						   sizeof(*groups)));
			groups[(*nr)++] = (struct id) { .files = file };
		}
		groups[*nr - 1].nr_files++;
	}
	for (i = 0; i < *nr; i++)
		complete_id(&groups[i]);
	if (*nr)
		qsort(groups, *nr, sizeof(*groups), by_first_name);
	return groups;
}

static void json_id(const struct id *id, FILE *out)
{
	struct json json = json_begin(out, true);
	size_t i;

	json_build_id(&json, id->files[0]);
	json_number(&json, "processes", id->nr_pids);
	json_open(&json, "pids", '[');
	for (i = 0; i < id->nr_pids; i++)
		json_number(&json, NULL, id->pids[i]);
	json_close(&json, ']');
	json_open(&json, "files", '[');
	for (i = 0; i < id->nr_files; i++) {
		json_open(&json, NULL, '{');
		json_name(&json, id->files[i]);
		json_inode(&json, id->files[i]);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_end(&json);
}

/*
 * Print as many processes as fit into the rest of the line, and the number of the others:
 * thousands may map a file. Pipes and files get all of them.
 */
static void print_pids(const struct id *id, size_t column, FILE *out)
{
	const size_t width = terminal_width();
	size_t room = NAME_WIDTH_MIN, i;
	char pid[32], rest[32];

	if (width > column + room)
		room = width - column;
	for (i = 0; i < id->nr_pids; i++) {
		size_t len;

		len = snprintf(pid, sizeof(pid), "%s%d", i ? "," : "", id->pids[i]);
		if (i + 1 < id->nr_pids)
			snprintf(rest, sizeof(rest), " +%zu", id->nr_pids - i - 1);
		else
			*rest = '\0';
		if (width && i && len + strlen(rest) > room)
			break;
		fputs(pid, out);
		room -= len < room ? len : room;
	}
	if (i < id->nr_pids)
		fprintf(out, " +%zu", id->nr_pids - i);
}

static void print_id(const struct id *id, FILE *out)
{
	size_t column = BUILD_ID_WIDTH + 1, i;

	print_build_id_column(out, id->files[0]);
	column += fprintf(out, "%9zu  ", id->nr_pids);
	for (i = 0; i < id->nr_names; i++) {
		if (i)
			column += fprintf(out, ", ");
		column += print_whole_name(out, id->names[i]);
	}
	column += fprintf(out, "  ");
	print_pids(id, column, out);
	fputc('\n', out);
}

/* Print the number of files without a known build ID. */
static void print_others(const struct options *options, size_t unreadable,
			 size_t without, FILE *out)
{
	struct json json;

	if (given(options, OPT_JSON)) {
		json = json_begin(out, true);
		json_number(&json, "without_build_id", without);
		json_number(&json, "unreadable", unreadable);
		json_end(&json);
		return;
	}
	if (without)
		fprintf(out, "files without a build ID: %zu\n", without);
	if (unreadable)
		fprintf(out, "files that cannot be read: %zu\n", unreadable);
}

static int print_ids(const struct options *options, FILE *out)
{
	size_t unreadable = 0, without = 0, nr, i;
	struct id *groups;

	if (ids.nr)
		qsort(ids.all, ids.nr, sizeof(*ids.all), by_file_of_row);
	for (i = 0; i < ids.nr; i++) {
		const struct file *const file = ids.all[i];

		if (file->first.build_id_size > 0)
			break;
		if (file->first.build_id_size)
			unreadable++;
		else
			without++;
	}
	groups = group(i, &nr);
	if (nr && !given(options, OPT_JSON))
		print_headings(out, options, "build ID                                 processes",
			       "paths  PIDs");
	for (i = 0; i < nr; i++) {
		if (given(options, OPT_JSON))
			json_id(&groups[i], out);
		else
			print_id(&groups[i], out);
		free(groups[i].names);
		free(groups[i].pids);
	}
	print_others(options, unreadable, without, out);
	free(groups);
	return nr ? EXIT_SUCCESS : EXIT_FAILURE;
}

const struct tool_option ids_options[] = {
	{ .argp = { .name = "build-ids", .group = GROUP_WORK,
		    .doc = "List the build IDs of mapped files, and the processes that map them" },
	  .bit = OPT_BUILD_IDS, .takes = OPT_PID | OPT_MANY | OPT_METHODS,
	  .flags = PROCMAP_FILE_BACKED | PROCMAP_WANT_BUILD_ID,
	  .work = add_to_ids, .finish = print_ids },
	{}
};
