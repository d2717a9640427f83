// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: print mappings. On a terminal, use colours and
 * shorten names to fit the line; elsewhere, print the lines of /proc/PID/maps.
 */
#include "procfs_query_print.h"
#include "procfs_query_input.h"
#include "procfs_query_json.h"
#include "procfs_query_lookup.h"
#include "procfs_query_name.h"
#include "tool.h"

/*
 * Names begin in this column on a terminal too narrow for the column of the text, and
 * so do build IDs.
 */
#define NARROW_COLUMN		56

/*
 * Find the column of names in the text. It depends on the size of a pointer in
 * the kernel, so a 32-bit program has to look.
 */
static int find_name_column(void)
{
	char *const path = path_of_process(own_pid(), "maps");
	FILE *const maps = fopen(path, "re");
	char next = '\n';
	int column = 0;

	fail_without_files(maps ? 0 : -errno);
	/* Only a name has a slash or a bracket. */
	while (maps && next == '\n' &&
	       fscanf(maps, "%*[^/[\n]%n%c", &column, &next) == 1)
		;
	if (maps)
		fclose(maps);
	free(path);
	return column;
}

/* Print "?" for NULL. Returns the columns on a terminal. */
size_t print_program(FILE *out, const char *program, size_t column)
{
	char *const escaped = escape(program ? program : "?");
	const size_t width = print_name(out, escaped, column);

	free(escaped);
	return width;
}

/* Each of several processes has a heading. */
void print_process(FILE *out, const struct options *options)
{
	char pid[sizeof(": ") + 3 * sizeof(options->pid)];
	char *program;

	if (!is_of_many(options))
		return;
	program = program_of(options->pid);
	snprintf(pid, sizeof(pid), "%d: ", options->pid);
	print_program(out, program, print_coloured(out, BOLD, pid));
	fputc('\n', out);
	free(program);
}

/* Print the headings of a table, with a column of build IDs in front of the last one. */
void print_headings(FILE *out, const struct options *options, const char *columns,
		    const char *last)
{
	const bool has_ids = given(options, OPT_BUILD_ID);
	char line[120];

	snprintf(line, sizeof(line), "%s  %-*s%s", columns,
		 has_ids ? BUILD_ID_WIDTH + 1 : 0, has_ids ? "build ID" : "", last);
	print_coloured(out, BOLD, line);
	fputc('\n', out);
}

/* Print "-" without a build ID, "?" if the file cannot be read. */
void print_build_id_column(FILE *out, const struct procmap_mapping *vma)
{
	int i;

	fail_without_files(vma->build_id_size);
	if (vma->build_id_size > 0) {
		for (i = 0; i < vma->build_id_size; i++)
			fprintf(out, "%02x", vma->build_id[i]);
		fprintf(out, "%*s",
			BUILD_ID_WIDTH - 2 * vma->build_id_size + 1, "");
	} else {
		fprintf(out, "%-*s ", BUILD_ID_WIDTH,
			vma->build_id_size ? "?" : "-");
	}
}

/*
 * Print the line of a mapping: byte for byte that of the text, unless it has a build ID
 * or is for a terminal, where it begins at column @indent.
 */
void print_line(FILE *out, const struct options *options,
		const struct procmap_mapping *vma, int indent)
{
	/* With an address, the line before has it. */
	const bool with_build_id = given(options, OPT_BUILD_ID) &&
				   given(options, OPT_LIST | OPT_NAME);
	const size_t width = terminal_width();
	static int name_column = -1;
	char perms[5];
	int column, len;

	if (name_column < 0)
		name_column = find_name_column();
	column = name_column;
	if (with_build_id || (width && width < (size_t)column + 2 * NAME_WIDTH_MIN))
		column = NARROW_COLUMN;
	permissions(vma, perms);
	len = fprintf(out, "%08" PRIx64 "-%08" PRIx64 " ", vma->start, vma->end);
	if (~vma->flags & PROCMAP_EXECUTABLE)
		len += fprintf(out, "%s", perms);
	else
		len += print_coloured(out, vma->flags & PROCMAP_WRITABLE ?
				      RED : GREEN, perms);
	len += fprintf(out, " %08" PRIx64 " %02x:%02x %" PRIu64 " ", vma->offset,
		       vma->dev_major, vma->dev_minor, vma->inode);
	if (vma->name_len || with_build_id)
		len += fprintf(out, "%*s", len < column ? column - len : 1, "");
	if (with_build_id) {
		print_build_id_column(out, vma);
		len += BUILD_ID_WIDTH + 1;
	}
	if (vma->name_len)
		print_name(out, vma->name, indent + len);
	fputc('\n', out);
}

/**
 * struct printer - the state of printing what was found
 * @out: the stream.
 * @options: the command line.
 * @json: the state of JSON.
 * @nr_found: the number of mappings, or of mapped addresses, printed so far.
 */
struct printer {
	FILE *out;
	const struct options *options;
	struct json json;
	size_t nr_found;
};

static int print_optional_address(FILE *out, bool is_known, uint64_t addr, const char *other)
{
	return is_known ? fprintf(out, "0x%016" PRIx64 " ", addr) :
			  fprintf(out, "%-18s ", other);
}

/* Print "-" for an address that is not in the file, "?" if the file cannot be read. */
static void print_address(const struct printer *printer, const struct answer *answer)
{
	const struct procmap_mapping *const vma = answer->vma;
	FILE *const out = printer->out;
	int column;

	column = fprintf(out, "0x%016" PRIx64 " ", answer->addr);
	if (!vma) {
		print_coloured(out, YELLOW, "not mapped");
		fputc('\n', out);
		return;
	}

	column += print_optional_address(out, has_file(vma),
					 file_offset(vma, answer->addr), "-");
	if (given(printer->options, OPT_ELF_ADDRESS))
		column += print_optional_address(out, answer->elf > 0,
						 answer->elf_address,
						 answer->elf ? "?" : "-");
	if (given(printer->options, OPT_BUILD_ID)) {
		print_build_id_column(out, vma);
		column += BUILD_ID_WIDTH + 1;
	}
	print_name(out, vma->name_len ? vma->name : "-", column);
	fputc('\n', out);
	if (given(printer->options, OPT_VERBOSE))
		print_line(out, printer->options, vma, fprintf(out, "  "));
}

static void print_found(void *context, const struct answer *answer)
{
	struct printer *const printer = context;

	printer->nr_found += !!answer->vma;
	if (given(printer->options, OPT_LIST | OPT_NAME))
		print_line(printer->out, printer->options, answer->vma, 0);
	else
		print_address(printer, answer);
}

static void json_found(void *context, const struct answer *answer)
{
	struct printer *const printer = context;
	struct json *const json = &printer->json;

	printer->nr_found += !!answer->vma;
	if (given(printer->options, OPT_LIST | OPT_NAME)) {
		json_vma(json, NULL, printer->options, answer->vma);
	} else {
		json_open(json, NULL, '{');
		json_answer(json, printer->options, answer);
		json_close(json, '}');
	}
}

/* Begin a JSON object that has the method. */
static struct json json_by(FILE *out, const struct options *options, struct procmap *procmap)
{
	struct json json = json_begin_with(out, options);

	json_string(&json, "method", method_name(procmap_get_method(procmap)));
	return json;
}

static int show(const struct options *options, FILE *out)
{
	const bool is_json = given(options, OPT_JSON);
	struct printer printer = { .out = out, .options = options };
	struct procmap *procmap;
	int err;

	err = open_mappings(options, &procmap);
	if (err)
		return err;
	if (is_json) {
		printer.json = json_by(out, options, procmap);
		json_open(&printer.json,
			  given(options, OPT_LIST | OPT_NAME) ? "vmas" : "addresses", '[');
	} else {
		print_process(out, options);
	}

	err = visit(procmap, options, is_json ? json_found : print_found, &printer);
	procmap_close(procmap);
	if (err)
		return err;
	if (is_json) {
		json_close(&printer.json, ']');
		json_end(&printer.json);
	}
	return printer.nr_found ? EXIT_SUCCESS : EXIT_FAILURE;
}

/*
 * After an execve(2), addresses are those of the new program. A mapping has to stay while
 * the file is opened for its ELF address.
 */
static int resolve_now(struct procmap *procmap, uint64_t addr, unsigned int flags,
		       const struct procmap_resolved **resolved)
{
	int err = procmap_resolve(procmap, &addr, 1, flags, resolved);

	while (err == -ESTALE) {
		err = procmap_reopen(procmap);
		if (!err)
			err = procmap_resolve(procmap, &addr, 1, flags, resolved);
	}
	return err;
}

static void print_streamed(struct printer *printer, struct procmap *procmap,
			   const struct answer *answer)
{
	struct output output;
	struct json json;

	begin_output(&output);
	printer->out = output.file;
	if (given(printer->options, OPT_JSON)) {
		json = json_by(output.file, printer->options, procmap);
		json_answer(&json, printer->options, answer);
		json_end(&json);
	} else {
		print_address(printer, answer);
	}
	end_output(&output, true);
	printer->nr_found += !!answer->vma;
}

/* Answer each line of the input before reading the next one. */
int answer_input(const struct options *options, struct input *input)
{
	struct printer printer = { .options = options };
	const struct procmap_resolved *resolved;
	struct procmap *procmap;
	struct answer answer;
	uint64_t addr;
	int err;

	err = open_mappings(options, &procmap);
	if (err)
		return err;
	while (next_address(input, &addr)) {
		err = resolve_now(procmap, addr, options->flags, &resolved);
		if (err)
			break;
		answer = answer_of(options, procmap, addr, resolved->mappings[0]);
		print_streamed(&printer, procmap, &answer);
		procmap_free_resolved(resolved);
	}
	procmap_close(procmap);
	if (err)
		return err;
	return printer.nr_found ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void set_file(struct options *options, const char *text)
{
	options->file = text;
}

#define OPT_SHOW	(OPT_PROCESSES | OPT_METHODS | OPT_BUILD_ID | OPT_BENCH)

const struct tool_option show_options[] = {
	{ .argp = { .name = "an address", .flags = OPTION_DOC | OPTION_HIDDEN },
	  .bit = OPT_ADDRESSES,
	  .takes = OPT_SHOW | OPT_VERBOSE | OPT_ELF_ADDRESS,
	  .work = show },
	{ .argp = { .name = "file", .key = 'f', .arg = "FILE", .group = GROUP_WORK,
		    .doc = "Read addresses, one a line; each line of - is answered at once" },
	  .bit = OPT_FILE,
	  .takes = OPT_SHOW | OPT_VERBOSE | OPT_ELF_ADDRESS,
	  .parse = set_file, .work = show },
	{ .argp = { .name = "list", .key = 'l', .group = GROUP_WORK,
		    .doc = "List all mappings, as in /proc/PID/maps" },
	  .bit = OPT_LIST,
	  .takes = OPT_SHOW | OPT_INTERVAL,
	  .work = show },
	{ .argp = { .name = "name", .key = 'n', .arg = "NAME", .group = GROUP_WORK,
		    .doc = "List the mappings of this name, file or pattern" },
	  .bit = OPT_NAME, .takes = OPT_SHOW,
	  .parse = parse_name, .work = show, .finish = finish_name },
	{ .argp = { .name = "verbose", .key = 'v', .group = GROUP_OUTPUT,
		    .doc = "With each address, print the line of its mapping too" },
	  .bit = OPT_VERBOSE, .needs = OPT_EITHER },
	{ .argp = { .name = "elf-address", .key = 'E', .group = GROUP_OUTPUT,
		    .doc = "With each address, print the one that it has in the ELF file" },
	  .bit = OPT_ELF_ADDRESS, .needs = OPT_EITHER },
	{}
};
