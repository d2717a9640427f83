// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: list processes that still map files that were deleted or replaced,
 * as after an upgrade of a library.
 */
#include "procfs_query_json.h"
#include "procfs_query_lookup.h"
#include "procfs_query_print.h"
#include "tool.h"

#include <fcntl.h>
#include <search.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fewest digits of a random number in a name: Java takes one of 64 bits. */
#define RANDOM_DIGITS_MIN	18

/**
 * struct deleted_file - a file that was deleted or replaced
 * @first: the first of its mappings.
 * @is_birth_known: @born is known.
 * @born: when the file was made, in seconds after the start of the process.
 */
struct deleted_file {
	struct procmap_mapping first;
	bool is_birth_known;
	double born;
};

/* Files that were judged by their names alone, in all processes. */
static size_t nr_unverified;

/* A file of O_TMPFILE, which was in no directory, is named by its inode. */
static bool is_tmpfile(const struct procmap_mapping *vma)
{
	char name[sizeof("#" DELETED) + 3 * sizeof(vma->inode)];

	snprintf(name, sizeof(name), "#%" PRIu64 DELETED, vma->inode);
	return !strcmp(strrchr(vma->name, '/') + 1, name);
}

/* The start of a process, in seconds since the boot; -1 if it is not known. */
static double start_of_process(pid_t pid)
{
	/* It is field 22, and the name of the program, field 2, ends in the last ")". */
	enum { BLANKS = 20 };
	char *const path = path_of_process(pid, "stat");
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024] = "", *field;
	ssize_t len = -1;
	int i;

	free(path);
	if (fd >= 0) {
		len = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	field = len < 0 ? NULL : strrchr(text, ')');
	for (i = 0; field && i < BLANKS; i++)
		field = strchr(field + 1, ' ');
	return field ? strtod(field, NULL) / sysconf(_SC_CLK_TCK) : -1;
}

/*
 * Set when the file was made, if the file system tells that. Both times are by the clock of
 * the boot, so that a clock that was set since the boot matters only for the file's.
 */
static void set_birth(const struct options *options, struct deleted_file *file)
{
	const struct procmap_mapping *const vma = &file->first;
	const double start = start_of_process(options->pid);
	struct statx stat;
	char *path;

	/* A server is not asked. */
	if (start < 0 || vma->flags & PROCMAP_UNVERIFIED)
		return;
	path = format("%s/%d/map_files/%" PRIx64 "-%" PRIx64, proc_dir, options->pid,
		      vma->start, vma->end);
	if (!statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_BTIME, &stat) &&
	    stat.stx_mask & STATX_BTIME) {
		file->is_birth_known = true;
		file->born = stat.stx_btime.tv_sec + stat.stx_btime.tv_nsec / 1e9 - start -
			     (int64_t)(now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME)) / 1e9;
	}
	free(path);
}

static bool is_in_system_folder(const char *name)
{
	static const char *const folders[] = { "/usr/", "/lib", "/bin/", "/sbin/", "/opt/" };
	size_t i;

	for (i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (begins_with(name, folders[i]))
			return true;
	return false;
}

/*
 * As of Java's File.createTempFile(): in a folder for temporary files, with a random number in
 * front of the suffix, or at the end. It may have been made for the process, before its start.
 */
static bool is_temporary(const char *path)
{
	const char *const name = strrchr(path, '/') + 1;
	const char *const suffix = strrchr(name, '.');
	const char *end = suffix ? suffix : name + strlen(name);
	size_t digits = 0;

	while (end > name && end[-1] >= '0' && end[-1] <= '9') {
		end--;
		digits++;
	}
	return digits >= RANDOM_DIGITS_MIN && (strstr(path, "/tmp/") || strstr(path, "/temp/"));
}

/*
 * Runtimes unpack a library to a file, map it and delete it, after each start again: a
 * restart would change nothing. An upgrade of a plugin leaves another file at its path.
 */
static bool is_made_by_process(const struct deleted_file *file, const char *path)
{
	const double tick = 1.0 / sysconf(_SC_CLK_TCK);

	/* Nobody looked whether there is another file, or there is one. */
	if (file->first.flags & (PROCMAP_UNVERIFIED | PROCMAP_REPLACED))
		return false;
	return !is_in_system_folder(path) &&
	       ((file->is_birth_known && file->born > tick) || is_temporary(path));
}

static void add_file(const struct options *options, const struct procmap_mapping *vma,
		     struct rows *files)
{
	struct deleted_file file = { .first = *vma }, *row;
	char *path;

	if (is_memory(vma->name) || (*vma->name == '/' && is_tmpfile(vma)))
		return;
	nr_unverified += !!(vma->flags & PROCMAP_UNVERIFIED);
	if (~vma->flags & PROCMAP_DELETED)
		return;
	path = need(strdup(vma->name));
	cut_deleted(path);
	set_birth(options, &file);
	if (!is_made_by_process(&file, path)) {
		file.first.name = path;
		row = row_of(files, &file.first, sizeof(*row));
		row->is_birth_known = file.is_birth_known;
		row->born = file.born;
	}
	free(path);
}

void report_unverified(void)
{
	if (nr_unverified)
		warnx("%zu mapping%s judged by name: see --ask-servers",
		      nr_unverified, nr_unverified == 1 ? " was" : "s were");
}

static void json_row(FILE *out, const struct options *options, const char *program,
		     const struct deleted_file *row)
{
	const struct procmap_mapping *const file = &row->first;
	struct json json = json_begin(out, true);

	json_number(&json, "pid", options->pid);
	json_program(&json, program);
	json_exact(&json, "file", "file_hex", file->name);
	json_inode(&json, file);
	if (given(options, OPT_BUILD_ID))
		json_build_id(&json, file);
	json_bool(&json, "replaced", file->flags & PROCMAP_REPLACED);
	json_bool(&json, "verified", ~file->flags & PROCMAP_UNVERIFIED);
	if (row->is_birth_known)
		json_real(&json, "born_after_start", row->born);
	else
		json_null(&json, "born_after_start");
	json_end(&json);
}

static void print_row(FILE *out, const struct options *options, const char *program,
		      const struct deleted_file *row)
{
	const struct procmap_mapping *const file = &row->first;
	const size_t width = given(options, OPT_BUILD_ID) ? BUILD_ID_WIDTH + 1 : 0;
	size_t column = fprintf(out, "%7d ", options->pid);

	/* Leave room for the path. */
	column += print_program(out, program, column + width + NAME_WIDTH_MIN + 2);
	column += fprintf(out, "  ") + width;
	if (width)
		print_build_id_column(out, file);
	print_name(out, file->name, column);
	fputc('\n', out);
}

static void print_files(const struct options *options, FILE *out,
			const struct rows *files)
{
	char *const program = program_of(options->pid);
	static bool has_headings;
	size_t i;

	if (!given(options, OPT_JSON) && !has_headings)
		print_headings(out, options, "    pid program", "file");
	has_headings = true;
	for (i = 0; i < files->nr; i++) {
		if (given(options, OPT_JSON))
			json_row(out, options, program, files->all[i]);
		else
			print_row(out, options, program, files->all[i]);
	}
	free(program);
}

static void free_file(void *file)
{
	free((char *)((struct deleted_file *)file)->first.name);
	free(file);
}

static int print_deleted(const struct options *options, FILE *out)
{
	const struct procmap_mapping *vma;
	struct procmap *procmap;
	struct rows files = {};
	uint64_t cursor = 0;
	int err;

	err = open_mappings(options, &procmap);
	if (err)
		return err;
	while (!(err = procmap_next(procmap, &cursor, options->flags, &vma)))
		add_file(options, vma, &files);
	procmap_close(procmap);
	if (err == -ENOENT && files.nr)
		print_files(options, out, &files);
	tdestroy(files.tree, free_file);
	free(files.all);
	if (err != -ENOENT)
		return err;
	return files.nr ? EXIT_SUCCESS : EXIT_FAILURE;
}

const struct tool_option deleted_options[] = {
	{ .argp = { .name = "deleted", .group = GROUP_WORK,
		    .doc = "List the mapped files that were deleted or replaced" },
	  .bit = OPT_DELETED, .takes = OPT_PID | OPT_MANY | OPT_METHODS | OPT_BUILD_ID,
	  .flags = PROCMAP_FILE_BACKED | PROCMAP_WANT_DELETED, .work = print_deleted },
	{}
};
