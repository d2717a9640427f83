// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: list processes that still map files that were deleted or replaced,
 * as after an upgrade of a library.
 */
#include "procfs_query.h"

#include <search.h>

/* The hexadecimal digits in the name of a System V shared memory segment. */
#define SYSV_KEY_LEN		8

/* What mkstemp(3) appends to a name. */
#define MKSTEMP_LEN		6
#define LETTERS_AND_DIGITS	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool begins_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/*
 * The kernel keeps some memory in files which never were in a directory. They look deleted,
 * but a restart does not replace them.
 */
static bool is_memory(const char *name)
{
	static const char *const names[] = {
		"/[aio]", "/anon_hugepage", "/dev/zero", "/drm mm object",
		"/i915", "/secretmem",
	};
	static const char sysv[] = "/SYSV";
	size_t i;

	if (begins_with(name, "/memfd:") || begins_with(name, "/dmabuf:"))
		return true;
	if (begins_with(name, sysv)) {
		name += strlen(sysv);
		return strspn(name, "0123456789abcdef") == SYSV_KEY_LEN &&
		       !strcmp(name + SYSV_KEY_LEN, DELETED);
	}
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (begins_with(name, names[i]))
			return !strcmp(name + strlen(names[i]), DELETED);
	}
	return false;
}

/*
 * Files that programs use as memory, which are in a directory for a moment, or never: those
 * of O_TMPFILE, named by their inode, and those of mkstemp(3) by libffi, liborc, the libGL
 * of NVIDIA and libxshmfence. A program of such a name is mapped private, and is not in a
 * directory for temporary files.
 */
static bool is_temporary(const struct procmap_mapping *vma)
{
	static const char *const templates[] = { "ffi", "orcexec.", ".gl", "shmfd-" };
	const char *const name = strrchr(vma->name, '/') + 1;
	const bool may_be_temporary = vma->flags & PROCMAP_SHARED ||
				      begins_with(vma->name, "/tmp/") ||
				      begins_with(vma->name, "/var/tmp/");
	char of_tmpfile[sizeof("#" DELETED) + 3 * sizeof(vma->inode)];
	size_t i;

	snprintf(of_tmpfile, sizeof(of_tmpfile), "#%" PRIu64 DELETED, vma->inode);
	if (!strcmp(name, of_tmpfile))
		return true;
	for (i = 0; i < sizeof(templates) / sizeof(*templates); i++) {
		const size_t len = strlen(templates[i]);

		if (may_be_temporary && begins_with(name, templates[i]) &&
		    strspn(name + len, LETTERS_AND_DIGITS) == MKSTEMP_LEN &&
		    !strcmp(name + len + MKSTEMP_LEN, DELETED))
			return true;
	}
	return false;
}

static void add_file(void *context, uint64_t addr, const struct procmap_mapping *vma)
{
	struct procmap_mapping file = *vma;
	char *path;

	(void)addr;
	if (~vma->flags & PROCMAP_DELETED || is_memory(vma->name) || is_temporary(vma))
		return;
	path = need(strdup(vma->name));
	cut_deleted(path);
	file.name = path;
	row_of(context, &file, sizeof(file));
	free(path);
}

static void json_row(FILE *out, const struct options *options, const char *program,
		     const struct procmap_mapping *file)
{
	struct json json = { .out = out, .first = true };

	fputc('{', out);
	json_number(&json, "pid", options->pid);
	json_program(&json, program);
	json_exact(&json, "file", "file_hex", file->name, strlen(file->name));
	json_inode(&json, file);
	if (given(options, OPT_BUILD_ID))
		json_build_id(&json, file);
	json_end(&json);
}

static void print_headings(FILE *out, const struct options *options)
{
	static bool has_headings;
	char line[120];

	if (!has_headings) {
		snprintf(line, sizeof(line), "    pid program  %-*sfile",
			 given(options, OPT_BUILD_ID) ? BUILD_ID_WIDTH + 1 : 0,
			 given(options, OPT_BUILD_ID) ? "build ID" : "");
		print_coloured(out, BOLD, line);
		fputc('\n', out);
	}
	has_headings = true;
}

static void print_row(FILE *out, const struct options *options, const char *program,
		      const struct procmap_mapping *file)
{
	const size_t width = given(options, OPT_BUILD_ID) ? BUILD_ID_WIDTH + 1 : 0;
	char *const escaped = escape(program ? program : "?");
	size_t column = fprintf(out, "%7d ", options->pid);

	/* Leave room for the path. */
	column += print_name(out, escaped, column + width + NAME_WIDTH_MIN + 2);
	column += fprintf(out, "  ") + width;
	if (width)
		print_build_id_column(out, file);
	print_name(out, file->name, column);
	fputc('\n', out);
	free(escaped);
}

static void print_files(const struct options *options, FILE *out,
			const struct rows *deleted)
{
	char *const program = program_of(options->pid);
	size_t i;

	if (!given(options, OPT_JSON))
		print_headings(out, options);
	for (i = 0; i < deleted->nr; i++) {
		if (given(options, OPT_JSON))
			json_row(out, options, program, deleted->all[i]);
		else
			print_row(out, options, program, deleted->all[i]);
	}
	free(program);
}

static void free_file(void *file)
{
	free((char *)((struct procmap_mapping *)file)->name);
	free(file);
}

static int print_deleted(const struct options *options, FILE *out)
{
	struct rows deleted = {};
	struct procmap *procmap;
	int err;

	err = open_mappings(options, &procmap);
	if (err)
		return err;
	err = visit(procmap, options, add_file, &deleted);
	procmap_close(procmap);
	if (!err && deleted.nr)
		print_files(options, out, &deleted);
	tdestroy(deleted.tree, free_file);
	free(deleted.all);
	return err || deleted.nr ? err : EXIT_FAILURE;
}

const struct tool_option deleted_options[] = {
	{ .argp = { .name = "deleted", .group = GROUP_WORK,
		    .doc = "List the mapped files that were deleted or replaced" },
	  .bit = OPT_DELETED, .takes = OPT_PID | OPT_MANY | OPT_METHODS | OPT_BUILD_ID,
	  .flags = PROCMAP_FILE_BACKED | PROCMAP_WANT_DELETED, .work = print_deleted },
	{}
};
