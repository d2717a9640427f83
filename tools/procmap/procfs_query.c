// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: show which mappings of a process cover given addresses, or list
 * them, with the ioctls PROCMAP_QUERY and PROCMAP_SCAN or from the text of
 * /proc/PID/maps.
 *
 * This file reads the command line and runs the command on each process. Each command
 * declares its options in the file that does its work.
 */
#include "options.h"
#include "procfs_query_input.h"
#include "procfs_query_print.h"
#include "procfs_query_processes.h"
#include "procfs_query_trouble.h"
#include "tool.h"

#include <unistd.h>

/* A process that executes another program meanwhile is tried at most this often. */
#define ATTEMPTS_MAX		10

/* There are fewer bits in options.given; filters share one. */
#define NR_OPTIONS_MAX		64

static void print_version(FILE *out, struct argp_state *state)
{
	const unsigned int library = procmap_version();

	(void)state;
	fprintf(out, "procfs_query %u.%u.%u, libprocmap %u.%u.%u\n",
		PROCMAP_VERSION >> 16, PROCMAP_VERSION >> 8 & 0xff,
		PROCMAP_VERSION & 0xff, library >> 16, library >> 8 & 0xff,
		library & 0xff);
}

/*
 * argp(3) exits after --help, and does not look whether it could be printed. The reason is
 * that of the last write: help fits into the buffer.
 */
static char output_buffer[BUFSIZ];

static void check_output(void)
{
	errno = EIO;
	if (fflush(stdout) || ferror(stdout)) {
		warnx("standard output: %s: the result is incomplete", strerror(errno));
		_exit(EXIT_TROUBLE);
	}
}

/* The options that are not those of a command. */
static const struct tool_option other_options[] = {
	{ .argp = { .name = "executable", .group = GROUP_FILTERS, .doc = "Executable" },
	  .bit = OPT_FILTER, .flags = PROCMAP_EXECUTABLE },
	{ .argp = { .name = "readable", .group = GROUP_FILTERS, .doc = "Readable" },
	  .bit = OPT_FILTER, .flags = PROCMAP_READABLE },
	{ .argp = { .name = "writable", .group = GROUP_FILTERS, .doc = "Writable" },
	  .bit = OPT_FILTER, .flags = PROCMAP_WRITABLE },
	{ .argp = { .name = "shared", .group = GROUP_FILTERS,
		    .doc = "Shared (s in /proc/PID/maps)" },
	  .bit = OPT_FILTER, .flags = PROCMAP_SHARED },
	{ .argp = { .name = "file-backed", .group = GROUP_FILTERS,
		    .doc = "Mapping of a file" },
	  .bit = OPT_FILTER, .flags = PROCMAP_FILE_BACKED },
	{ .argp = { .name = "query", .key = 'Q', .group = GROUP_METHOD,
		    .doc = "Use PROCMAP_QUERY or fail, for build IDs, too: see the manual" },
	  .bit = OPT_QUERY, .takes = ~(OPT_SCAN | OPT_TEXT),
	  .method = PROCMAP_BY_QUERY },
	{ .argp = { .name = "scan", .key = 'S', .group = GROUP_METHOD,
		    .doc = "Use PROCMAP_SCAN; fail if the kernel does not have it" },
	  .bit = OPT_SCAN, .takes = ~(OPT_QUERY | OPT_TEXT),
	  .method = PROCMAP_BY_SCAN },
	{ .argp = { .name = "text", .key = 'T', .group = GROUP_METHOD,
		    .doc = "Parse the text of /proc/PID/maps" },
	  .bit = OPT_TEXT, .takes = ~(OPT_QUERY | OPT_SCAN),
	  .method = PROCMAP_BY_TEXT },
	{ .argp = { .name = "build-id", .key = 'B', .group = GROUP_OUTPUT,
		    .doc = "Print build IDs" },
	  .bit = OPT_BUILD_ID, .flags = PROCMAP_WANT_BUILD_ID },
	{ .argp = { .name = "json", .key = 'j', .group = GROUP_OUTPUT,
		    .doc = "Print JSON" },
	  .bit = OPT_JSON },
	{}
};

/*
 * The first command that was given does the work, so --interval and --bench come before
 * the commands that they are given with.
 */
static const struct tool_option *const tables[] = {
	watch_options, bench_options, show_options, sum_options, deleted_options,
	ids_options, process_options, other_options,
};

#define NR_TABLES		(sizeof(tables) / sizeof(*tables))

/* All options, in the order of the tables, and their entries in --help. */
static const struct tool_option *all_options[NR_OPTIONS_MAX];
static size_t nr_options;

static const struct argp_option headings[] = {
	{ .doc = "Processes and work:", .group = GROUP_WORK },
	{ .doc = "Filters (a mapping has to pass all of them):", .group = GROUP_FILTERS },
	{ .doc = "Method:", .group = GROUP_METHOD },
	{ .doc = "Output:", .group = GROUP_OUTPUT },
	{ .doc = "Measuring the methods, instead of printing:", .group = GROUP_MEASURING },
	{ .key = 'h', .doc = "The same as --help", .group = -1 },
	{}
};

#define NR_HEADINGS		(sizeof(headings) / sizeof(*headings))

static struct argp_option argp_options[NR_OPTIONS_MAX + NR_HEADINGS];

/* The key of an option without a letter is no character. */
static void collect_options(void)
{
	const struct tool_option *option;
	size_t table;

	for (table = 0; table < NR_TABLES; table++) {
		for (option = tables[table]; option->bit; option++) {
			argp_options[nr_options] = option->argp;
			if (!option->argp.key)
				argp_options[nr_options].key = 0x100 + nr_options;
			all_options[nr_options++] = option;
		}
	}
	memcpy(argp_options + nr_options, headings, sizeof(headings));
}

static const char argp_args_doc[] =
	"ADDR...\n-f FILE\n--list\n--name NAME\n--sum\n--deleted\n--build-ids";

static const char argp_doc[] =
	"Show which mappings of a process cover the given addresses, or list its mappings: with the ioctls PROCMAP_SCAN and PROCMAP_QUERY on /proc/PID/maps if the kernel has them, otherwise from the text of that file.\n"
	"\n"
	"Addresses are hexadecimal, with or without 0x. For each, a line is printed: address, file offset, build ID (with -B), name. \"-\" means none; \"?\" means that the file with the build ID cannot be read.\n"
	"\vExamples:\n"
	"  procfs_query -p 1 7f5e12345678          what is mapped there\n"
	"  procfs_query -p 1 -B -f addresses.txt   the input of a symbolizer\n"
	"  procfs_query -p 1 --list --executable   the code of a process\n"
	"  procfs_query -p 1 --list --interval 1   what is mapped and unmapped\n"
	"  procfs_query --all --name '*/libssl*'   who has mapped a library\n"
	"  procfs_query --all --sum -B             which files are mapped, and how much\n"
	"  procfs_query --all --deleted            what to restart after an upgrade\n"
	"  procfs_query --all --build-ids          which builds of libraries are in use\n"
	"  procfs_query -p 1 --list --bench 100    which method is fastest?\n"
	"\n"
	"Exit status:\n"
	"  0  something was found\n"
	"  1  nothing was found\n"
	"  2  bad usage, or the process cannot be inspected";

/* The names of the options with these bits, as they are typed, for a message. */
static const char *names_of(unsigned int bits)
{
	const char *names = "";
	size_t i;

	for (i = 0; i < nr_options; i++) {
		const struct argp_option *const argp = &all_options[i]->argp;

		if (bits & all_options[i]->bit)
			names = format("%s%s%s%s", names, *names ? " or " : "",
				       argp->flags & OPTION_DOC ? "" : "--", argp->name);
	}
	return names;
}

static void check_option(const struct options *options,
			 const struct tool_option *option)
{
	unsigned int bad = 0;

	if (option->takes)
		bad = options->given & ~(option->takes | option->bit | OPT_COMMON);
	/* The message names one of them. */
	bad &= -bad;
	if (bad)
		fail("%s does not work with %s: leave one of them out",
		     names_of(option->bit), names_of(bad));
	if (option->needs && !given(options, option->needs))
		fail("%s works only with %s: add that", names_of(option->bit),
		     names_of(option->needs));
}

/* Return the first command that was given, or NULL. */
static const struct tool_option *command_of(const struct options *options)
{
	size_t i;

	for (i = 0; i < nr_options; i++) {
		const struct tool_option *const option = all_options[i];

		if (given(options, option->bit) && (option->work || option->run))
			return option;
	}
	return NULL;
}

static void check_options(const struct options *options)
{
	size_t i;

	if (!given(options, OPT_PROCESSES))
		fail("no process given: use -p PID, --all, --fd N or --maps-file PATH");
	for (i = 0; i < nr_options; i++) {
		if (given(options, all_options[i]->bit))
			check_option(options, all_options[i]);
	}
	if (!command_of(options))
		fail("give addresses, -f FILE, --list, --name, --sum, --deleted or --build-ids");
}

static void take_option(struct options *options, const struct tool_option *option,
			const char *arg)
{
	options->given |= option->bit;
	options->flags |= option->flags;
	if (option->method)
		options->method = option->method;
	if (option->parse)
		option->parse(options, arg);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *const options = state->input;
	size_t i;

	switch (key) {
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case ARGP_KEY_ARG:
		add_argument(options, arg);
		return 0;
	case ARGP_KEY_END:
		sort_processes(options);
		check_options(options);
		return 0;
	}
	for (i = 0; i < nr_options; i++) {
		if (argp_options[i].key == key) {
			take_option(options, all_options[i], arg);
			return 0;
		}
	}
	return ARGP_ERR_UNKNOWN;
}

/* Among several processes, skip those that exited or that we may not inspect. */
static bool can_be_skipped(const struct options *options, int err)
{
	return is_of_many(options) && (err == -ESRCH || err == -EACCES ||
				       err == -EPERM || err == -ESTALE);
}

/* Among several processes, leave out those without the given name. */
static bool is_to_be_printed(const struct options *options, int status)
{
	return status == EXIT_SUCCESS ||
	       (status > 0 && !(given(options, OPT_NAME) && is_of_many(options)));
}

/* Work on a process, and print the output if all of it is of one program. */
static int try_to_work_on(const struct options *options,
			  const struct tool_option *command)
{
	struct output output;
	int attempt, err = -ESTALE;

	for (attempt = 0; attempt < ATTEMPTS_MAX && err == -ESTALE; attempt++) {
		begin_output(&output);
		err = command->work(options, output.file);
		end_output(&output, is_to_be_printed(options, err));
	}
	return err;
}

static int work(struct options *options, const struct tool_option *command)
{
	struct output output;
	int status = EXIT_FAILURE;
	size_t i, nr_inspected = 0, nr_denied = 0, nr_empty = 0;

	for (i = 0; i < options->nr_pids; i++) {
		int err;

		options->pid = options->pids[i];
		err = try_to_work_on(options, command);
		if (err < 0 && !can_be_skipped(options, err))
			report_trouble(options, err);
		nr_inspected += err >= 0;
		nr_denied += err == -EACCES || err == -EPERM;
		/* Of all processes, some exit meanwhile, and some are kernel threads. */
		if (err == -ESRCH && given(options, OPT_PID) && !report_if_gone(options))
			nr_empty++;
		if (err == EXIT_SUCCESS)
			status = EXIT_SUCCESS;
	}
	if (!nr_inspected) {
		report_skipped(nr_denied, nr_empty);
		fail("found no process that you may inspect: see ps(1)");
	}
	if (command->finish) {
		if (is_of_many(options))
			options->pid = 0;
		begin_output(&output);
		status = command->finish(options, output.file);
		end_output(&output, true);
	}
	report_skipped(nr_denied, nr_empty);
	report_unverified();
	return status;
}

/*
 * A program that writes to a pipe may wait for the answer to each line, so answer it
 * before reading the next one. --bench and several processes need all addresses
 * first.
 */
static bool is_streamed(const struct options *options, const struct input *input)
{
	return input->is_pipe && !is_of_many(options) &&
	       !given(options, OPT_BENCH);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse_option,
		.args_doc = argp_args_doc,
		.doc = argp_doc,
	};
	const struct tool_option *command;
	struct options options = {};
	struct input input = {};
	bool streamed = false;
	int status;

	argp_err_exit_status = EXIT_TROUBLE;
	argp_program_version_hook = print_version;
	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, output_buffer, _IOFBF, sizeof(output_buffer));
	atexit(check_output);
	collect_options();
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (given(&options, OPT_FD))
		look_at_fd(&options);
	if (options.maps_file)
		read_maps_file(&options);
	if (options.file) {
		open_input(&input, options.file);
		streamed = is_streamed(&options, &input);
		if (!streamed)
			read_addresses(&options, &input);
	}
	look_at_terminal();

	command = command_of(&options);
	if (command->run) {
		status = command->run(&options);
	} else if (streamed) {
		status = answer_input(&options, &input);
	} else {
		find_processes(&options);
		status = work(&options, command);
	}
	if (status < 0)
		report_trouble(&options, status);
	close_input(&input);
	free(options.name);
	free(options.pattern);
	free(options.pids);
	free(options.text);
	free(options.addrs);
	return status;
}
