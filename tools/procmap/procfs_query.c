// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: show which mappings of a process cover given addresses, or list
 * them, with the ioctls PROCMAP_QUERY and PROCMAP_SCAN or from the text of
 * /proc/PID/maps.
 *
 * libprocmap looks the mappings up, by each of these methods. This program
 * prints, compares and times the results.
 */
#include "procfs_query.h"

#include <argp.h>
#include <ctype.h>
#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#define BENCH_RUNS_MAX		1000000

/* A process that executes another program meanwhile is tried at most this often. */
#define ATTEMPTS_MAX		10

/* Whether there may be several processes, so that each needs a heading. */
bool is_of_many(const struct options *options)
{
	return options->all || options->exe;
}

const char *method_name(enum procmap_method method)
{
	switch (method) {
	case PROCMAP_ANY_METHOD:
		return "default";
	case PROCMAP_BY_SCAN:
		return "scan";
	case PROCMAP_BY_QUERY:
		return "query";
	default:
		return "text";
	}
}

/*
 * The methods to compare: the ioctl, whether or not the kernel has it; the scan,
 * if the kernel has it; the text, always last. Returns how many.
 */
size_t methods_to_compare(enum procmap_method methods[NR_METHODS])
{
	struct procmap *procmap;
	size_t nr = 0;

	methods[nr++] = PROCMAP_BY_QUERY;
	if (!procmap_open_self(PROCMAP_BY_SCAN, &procmap)) {
		procmap_close(procmap);
		methods[nr++] = PROCMAP_BY_SCAN;
	}
	methods[nr++] = PROCMAP_BY_TEXT;
	return nr;
}

/* The flags of every lookup. */
unsigned int flags_of(const struct options *options)
{
	return options->filters |
	       (options->deleted || options->build_ids ? PROCMAP_FILE_BACKED :
							 0) |
	       (options->build_id || options->compare ? PROCMAP_WANT_BUILD_ID :
							0);
}

/* Whether the work is to print mappings, not what addresses have. */
bool prints_mappings(const struct options *options)
{
	return options->list || options->name;
}

static int next_mapping(struct procmap *procmap, const struct options *options,
			uint64_t *cursor, const struct procmap_mapping **vma)
{
	const unsigned int flags = flags_of(options);

	return options->name ?
	       procmap_find_name(procmap, options->name, options->match, cursor,
				 flags, vma) :
	       procmap_next(procmap, cursor, flags, vma);
}

int open_mappings(const struct options *options, struct procmap **procmap)
{
	return options->maps_file ?
	       procmap_open_text(options->text, options->text_len, procmap) :
	       procmap_open_pid(options->pid, options->method, procmap);
}

static int visit_mappings(struct procmap *procmap, const struct options *options,
			  visit_fn visit, void *context)
{
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	int err;

	while (!(err = next_mapping(procmap, options, &cursor, &vma)))
		visit(context, vma->start, vma);
	return err == -ENOENT ? 0 : err;
}

static int visit_addresses(struct procmap *procmap,
			   const struct options *options, visit_fn visit,
			   void *context)
{
	const struct procmap_resolved *resolved;
	size_t i;
	int err;

	err = procmap_resolve(procmap, options->addrs, options->nr_addrs,
			      flags_of(options), &resolved);
	if (err)
		return err;
	for (i = 0; i < options->nr_addrs; i++) {
		const uint32_t index = resolved->locations[i].mapping;

		visit(context, options->addrs[i],
		      index == PROCMAP_NOT_MAPPED ? NULL :
						    resolved->mappings[index]);
	}
	procmap_free_resolved(resolved);
	return 0;
}

/*
 * Do the requested lookups in one pass: visit each address with the mapping that
 * covers it, or NULL; or, without addresses, each mapping with its start.
 */
int visit(struct procmap *procmap, const struct options *options,
	  visit_fn visit_one, void *context)
{
	return options->nr_addrs ?
	       visit_addresses(procmap, options, visit_one, context) :
	       visit_mappings(procmap, options, visit_one, context);
}

int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_version(FILE *out, struct argp_state *state)
{
	const unsigned int library = procmap_version();

	(void)state;
	fprintf(out, "procfs_query %u.%u.%u, libprocmap %u.%u.%u\n",
		PROCMAP_VERSION >> 16, PROCMAP_VERSION >> 8 & 0xff,
		PROCMAP_VERSION & 0xff, library >> 16, library >> 8 & 0xff,
		library & 0xff);
}

enum {
	KEY_EXECUTABLE = 0x100,
	KEY_READABLE,
	KEY_WRITABLE,
	KEY_SHARED,
	KEY_FILE_BACKED,
	KEY_DELETED,
	KEY_BUILD_IDS,
	KEY_SORT,
	KEY_UNIT,
};

static const struct argp_option argp_options[] = {
	{ .doc = "Processes and work:" },
	{ .name = "pid", .key = 'p', .arg = "PID",
	  .doc = "The process, or self" },
	{ .name = "all", .key = 'a',
	  .doc = "All processes that you may inspect" },
	{ .name = "exe", .key = 'e', .arg = "NAME",
	  .doc = "All processes that run this program, a name or a path" },
	{ .name = "user", .key = 'u', .arg = "USER",
	  .doc = "With --all or --exe: only those of this user, a name or an ID" },
	{ .name = "unit", .key = KEY_UNIT, .arg = "UNIT",
	  .doc = "With --all or --exe: only those of this unit of systemd" },
	{ .name = "maps-file", .key = 'm', .arg = "PATH",
	  .doc = "Read PATH, a copy of /proc/PID/maps, instead of a process" },
	{ .name = "file", .key = 'f', .arg = "FILE",
	  .doc = "Read addresses, one a line; # begins a comment; - is answered line by line" },
	{ .name = "sort", .key = KEY_SORT,
	  .doc = "Print addresses in rising order, not in the order given" },
	{ .name = "list", .key = 'l',
	  .doc = "List all mappings, as in /proc/PID/maps" },
	{ .name = "name", .key = 'n', .arg = "NAME",
	  .doc = "List the mappings with this name; with one of *?[ in it, NAME is a pattern" },
	{ .name = "sum", .key = 's',
	  .doc = "Add up the sizes of all mappings, by file" },
	{ .name = "deleted", .key = KEY_DELETED,
	  .doc = "List the mapped files that were deleted or replaced" },
	{ .name = "build-ids", .key = KEY_BUILD_IDS,
	  .doc = "List the build IDs of mapped files, and the processes that map them" },
	{ .name = "interval", .key = 'i', .arg = "SECONDS",
	  .doc = "With --list: look again every SECONDS and print the changes" },

	{ .doc = "Filters (a mapping has to pass all of them):" },
	{ .name = "executable", .key = KEY_EXECUTABLE, .doc = "Executable" },
	{ .name = "readable", .key = KEY_READABLE, .doc = "Readable" },
	{ .name = "writable", .key = KEY_WRITABLE, .doc = "Writable" },
	{ .name = "shared", .key = KEY_SHARED,
	  .doc = "Shared (s in /proc/PID/maps)" },
	{ .name = "file-backed", .key = KEY_FILE_BACKED,
	  .doc = "Mapping of a file" },

	{ .doc = "Method:" },
	{ .name = "query", .key = 'Q',
	  .doc = "Use PROCMAP_QUERY; fail if the kernel does not have it" },
	{ .name = "scan", .key = 'S',
	  .doc = "Use PROCMAP_SCAN; fail if the kernel does not have it" },
	{ .name = "text", .key = 'T', .doc = "Parse the text of /proc/PID/maps" },

	{ .doc = "Output:" },
	{ .name = "verbose", .key = 'v',
	  .doc = "With each address, print the line of its mapping too" },
	{ .name = "build-id", .key = 'B',
	  .doc = "Print build IDs; with -T they are read from the files" },
	{ .name = "rss", .key = 'r',
	  .doc = "With --list or --name: print the resident KiB of each mapping, which is slow" },
	{ .name = "json", .key = 'j', .doc = "Print JSON" },

	{ .doc = "Comparing and measuring the methods, instead of printing:" },
	{ .name = "compare", .key = 'c',
	  .doc = "Print where their results differ, build IDs included" },
	{ .name = "bench", .key = 'b', .arg = "N",
	  .doc = "Run each N times, in turns, and print time and system calls" },

	{ .key = 'h', .doc = "The same as --help", .group = -1 },
	{}
};

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
	"  procfs_query -p 1 --list --compare      do all methods agree?\n"
	"  procfs_query -p 1 --list --bench 100    which method is fastest?\n"
	"\n"
	"With -T, build IDs are read from /proc/PID/map_files, which needs CAP_CHECKPOINT_RESTORE, or else from the path if it still leads to the mapped file.\n"
	"\n"
	"In JSON, addresses and offsets are hexadecimal strings, inode numbers are decimal strings. In a name, program or file, each byte that is not valid UTF-8 becomes \\u0080 to \\u00ff; name_hex, program_hex or file_hex then has all bytes.\n"
	"\n"
	"On a terminal, names are shortened to fit, and colours are used unless NO_COLOR is set. In a pipe, names are complete.\n"
	"\n"
	"Exit status:\n"
	"  0  something was found, and with --compare nothing differs\n"
	"  1  nothing was found, or something differs\n"
	"  2  bad usage, or the process cannot be inspected";

static void set_interval(struct options *options, const char *text)
{
	if (!parse_seconds(text, &options->interval))
		fail("'%s' is not an interval: give seconds from 0.001 to %d",
		     quote(text, strlen(text)), SECONDS_MAX);
}

static void set_pid(struct options *options, const char *text)
{
	unsigned long pid = getpid();

	if (strcmp(text, "self") && !parse_number(text, INT_MAX, &pid))
		fail("'%s' is not a process ID: give a positive number, or self",
		     quote(text, strlen(text)));
	options->pid = pid;
}

/*
 * In names such as [heap] and [anon:*], the first bracket is that of the name, and
 * does not begin a set of characters.
 */
static void set_name(struct options *options, const char *text)
{
	const char *const end = strchr(text, ']');
	const bool is_bracketed = *text == '[' && end && !end[1];

	if (!*text)
		fail("'' is not a name: give that of a mapping, or a pattern");
	options->match = strpbrk(text + is_bracketed, "*?[") ? PROCMAP_GLOB :
							       PROCMAP_EXACT;
	free(options->name);
	if (asprintf(&options->name, "%s%s",
		     is_bracketed && options->match == PROCMAP_GLOB ? "\\" : "",
		     text) < 0)
		need(NULL);
}

static void set_method(struct options *options, enum procmap_method method)
{
	if (options->method != PROCMAP_ANY_METHOD && options->method != method)
		fail("-Q, -S and -T exclude each other: use one of them");
	options->method = method;
}

static void add_address(struct options *options, uint64_t addr)
{
	options->addrs = room_for_one(options->addrs, options->nr_addrs,
				      &options->size_addrs, sizeof(addr));
	options->addrs[options->nr_addrs++] = addr;
}

static void read_addresses(struct options *options, struct input *input)
{
	uint64_t addr;

	while (next_address(input, &addr))
		add_address(options, addr);
}

static void add_argument(struct options *options, const char *text)
{
	const char *problem;
	uint64_t addr;

	problem = parse_address(text, strlen(text), &addr);
	if (!*text)
		problem = "is not a hexadecimal address";
	if (problem)
		fail("argument '%s' %s", quote(text, strlen(text)), problem);
	add_address(options, addr);
}

static void set_user(struct options *options, const char *text)
{
	const struct passwd *const user = getpwnam(text);
	char *end;

	unsigned long uid;

	options->user = text;
	if (user) {
		options->uid = user->pw_uid;
		return;
	}
	errno = 0;
	uid = strtoul(text, &end, 10);
	options->uid = uid;
	if (!isdigit((unsigned char)*text) || *end || errno || uid >= UINT32_MAX)
		fail("'%s' is no user: give a name or a user ID",
		     quote(text, strlen(text)));
}

/* As for systemctl(1), a name without a type is that of a service. */
static void set_unit(struct options *options, const char *text)
{
	if (!*text || strchr(text, '/'))
		fail("'%s' is not a unit: give a name such as ssh.service",
		     quote(text, strlen(text)));
	free(options->unit);
	if (asprintf(&options->unit, "%s%s", text,
		     strchr(text, '.') ? "" : ".service") < 0)
		need(NULL);
}

/* Read it before anything else is done: it may be a FIFO. */
static void read_maps_file(struct options *options)
{
	FILE *const file = fopen(options->maps_file, "re");

	if (file)
		options->text = read_all(file, &options->text_len);
	if (!file || ferror(file))
		fail("%s: %s: give a copy of /proc/PID/maps",
		     options->maps_file, strerror(errno));
	fclose(file);
}

static void check_maps_file(const struct options *options)
{
	if (options->maps_file &&
	    (options->build_id || options->interval || options->compare ||
	     options->runs || options->deleted || options->build_ids ||
	     (options->method != PROCMAP_ANY_METHOD &&
	      options->method != PROCMAP_BY_TEXT)))
		fail("--maps-file is a text: only addresses, --list, --name and --sum work");
}

static void check_process(const struct options *options)
{
	switch (!!options->pid + options->all + !!options->exe +
		!!options->maps_file) {
	case 0:
		fail("no process given: use -p PID, --all, --exe NAME or --maps-file PATH");
	case 1:
		break;
	default:
		fail("-p, --all, --exe and --maps-file exclude each other: use one of them");
	}
	if ((options->user || options->unit) && !is_of_many(options))
		fail("--user and --unit select processes: use them with --all or --exe NAME");
	check_maps_file(options);
	if (is_of_many(options) && (options->interval || options->runs))
		fail("--interval and --bench work on one process: use -p PID");
}

static void check_work(const struct options *options)
{
	const struct {
		bool is_given;
		const char *name;
	} works[] = {
		{ options->nr_addrs, "addresses" },
		{ options->file, "-f FILE" },
		{ options->list, "--list" },
		{ options->name, "--name" },
		{ options->sum, "--sum" },
		{ options->deleted, "--deleted" },
		{ options->build_ids, "--build-ids" },
	};
	const char *first = NULL;
	size_t i;

	for (i = 0; i < sizeof(works) / sizeof(*works); i++) {
		if (first && works[i].is_given)
			fail("%s and %s exclude each other: use one of them", first,
			     works[i].name);
		if (works[i].is_given)
			first = works[i].name;
	}
	if (!first)
		fail("give addresses, -f FILE, --list, --name, --sum, --deleted or --build-ids");
}

static void check_options(const struct options *options)
{
	check_process(options);
	check_work(options);
	if (options->sort && !options->file && !options->nr_addrs)
		fail("--sort is for addresses: use it with them, or with -f FILE");
	if (options->compare && options->runs)
		fail("--compare and --bench exclude each other: use one of them");
	if (options->interval && !options->list)
		fail("--interval watches all mappings: use it with --list");
	if (options->interval && (options->compare || options->runs))
		fail("--interval excludes --compare and --bench: use one of them");
	if (options->rss && (!prints_mappings(options) || options->interval ||
			     options->compare || options->runs))
		fail("--rss is of listed mappings: use it with --list or --name only");
	if (options->name && options->compare)
		fail("--name excludes --compare: use --list");
	if (options->sum && (options->compare || options->runs))
		fail("--sum excludes --compare and --bench: use --list");
	if ((options->deleted || options->build_ids) &&
	    (options->compare || options->runs || options->build_id))
		fail("--deleted and --build-ids exclude --compare, --bench, -B: use --list");
	if (options->method && (options->compare || options->runs))
		fail("--compare and --bench use all methods: leave out -Q, -S and -T");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
		set_pid(options, arg);
		break;
	case 'f':
		options->file = arg;
		break;
	case 'l':
		options->list = true;
		break;
	case 'a':
		options->all = true;
		break;
	case 'e':
		if (!*arg)
			fail("'' is not a program: give its name, or its path");
		options->exe = arg;
		break;
	case 'n':
		set_name(options, arg);
		break;
	case 'u':
		set_user(options, arg);
		break;
	case KEY_UNIT:
		set_unit(options, arg);
		break;
	case 'm':
		options->maps_file = arg;
		break;
	case 's':
		options->sum = true;
		break;
	case KEY_DELETED:
		options->deleted = true;
		break;
	case KEY_BUILD_IDS:
		options->build_ids = true;
		break;
	case KEY_SORT:
		options->sort = true;
		break;
	case 'i':
		set_interval(options, arg);
		break;
	case KEY_EXECUTABLE:
		options->filters |= PROCMAP_EXECUTABLE;
		break;
	case KEY_READABLE:
		options->filters |= PROCMAP_READABLE;
		break;
	case KEY_WRITABLE:
		options->filters |= PROCMAP_WRITABLE;
		break;
	case KEY_SHARED:
		options->filters |= PROCMAP_SHARED;
		break;
	case KEY_FILE_BACKED:
		options->filters |= PROCMAP_FILE_BACKED;
		break;
	case 'Q':
		set_method(options, PROCMAP_BY_QUERY);
		break;
	case 'S':
		set_method(options, PROCMAP_BY_SCAN);
		break;
	case 'T':
		set_method(options, PROCMAP_BY_TEXT);
		break;
	case 'v':
		options->verbose = true;
		break;
	case 'B':
		options->build_id = true;
		break;
	case 'r':
		options->rss = true;
		break;
	case 'j':
		options->json = true;
		break;
	case 'c':
		options->compare = true;
		break;
	case 'b':
		if (!parse_number(arg, BENCH_RUNS_MAX, &options->runs))
			fail("'%s' is not a number of runs: give one from 1 to %d",
			     quote(arg, strlen(arg)), BENCH_RUNS_MAX);
		break;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARG:
		add_argument(options, arg);
		break;
	case ARGP_KEY_END:
		check_options(options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/**
 * struct totals - results over all processes
 * @comparison: counts and differences of --compare.
 * @sums: the sums of --sum.
 * @deleted: what is known of files, for --deleted.
 * @ids: the files of --build-ids.
 */
struct totals {
	struct comparison comparison;
	struct sums sums;
	struct deleted deleted;
	struct ids ids;
};

static int work_on(const struct options *options, struct totals *totals,
		   FILE *out)
{
	if (options->compare)
		return compare(options, &totals->comparison, out);
	if (options->sum)
		return add_to_sums(options, &totals->sums);
	if (options->deleted)
		return print_deleted(options, &totals->deleted, out);
	if (options->build_ids)
		return add_to_ids(options, &totals->ids);
	return options->runs ? bench(options, out) : show(options, out);
}

static int print_totals(const struct options *options, struct totals *totals,
			FILE *out)
{
	if (options->compare)
		return print_comparison(options, &totals->comparison, out);
	return options->sum ? print_sums(options, &totals->sums, out) :
			      print_ids(options, &totals->ids, out);
}

/* With --all or --exe, skip processes that exited or that we may not inspect. */
static bool can_be_skipped(const struct options *options, int err)
{
	return is_of_many(options) && (err == -ENOENT || err == -ESRCH ||
				       err == -EACCES || err == -EPERM ||
				       err == -ESTALE);
}

/* With --all or --exe, a process without the name that is looked for is left out. */
static bool is_to_be_printed(const struct options *options, int status)
{
	return status == EXIT_SUCCESS ||
	       (status > 0 && !(options->name && is_of_many(options)));
}

/* Work on a process, and print the output if all of it is of one program. */
static int try_to_work_on(const struct options *options, struct totals *totals)
{
	struct output output;
	int attempt, err = -ESTALE;

	for (attempt = 0; attempt < ATTEMPTS_MAX && err == -ESTALE; attempt++) {
		begin_output(&output);
		err = work_on(options, totals, output.file);
		end_output(&output, is_to_be_printed(options, err));
	}
	return err;
}

static void append(char **text, const char *before, const char *name)
{
	char *longer;

	if (!name)
		return;
	if (asprintf(&longer, "%s%s%s", *text, before,
		     quote(name, strlen(name))) < 0)
		need(NULL);
	free(*text);
	*text = longer;
}

static void fail_without_process(const struct options *options)
{
	char *which = need(strdup(""));

	append(&which, " running ", options->exe);
	append(&which, " of user ", options->user);
	append(&which, " in unit ", options->unit);
	fail("found no process%s that you may inspect: see ps(1), or run as root",
	     which);
}

static int work(struct options *options, const struct processes *processes)
{
	const bool has_totals = options->compare || options->sum ||
				options->build_ids;
	struct totals totals = {};
	struct output output;
	int status = EXIT_FAILURE;
	size_t i, nr_inspected = 0, nr_denied = 0;

	for (i = 0; i < processes->nr; i++) {
		int err;

		options->pid = processes->pids[i];
		err = try_to_work_on(options, &totals);
		if (err < 0 && !can_be_skipped(options, err))
			report_trouble(options, err);
		nr_inspected += err >= 0;
		nr_denied += err == -EACCES || err == -EPERM;
		if (err == EXIT_SUCCESS)
			status = EXIT_SUCCESS;
	}
	if (!nr_inspected)
		fail_without_process(options);
	if (has_totals) {
		if (is_of_many(options))
			options->pid = 0;
		begin_output(&output);
		status = print_totals(options, &totals, output.file);
		end_output(&output, true);
	}
	free_deleted(&totals.deleted);
	report_skipped(nr_denied);
	return status;
}

/*
 * Whether each line of the input is to be answered before the next one is read:
 * whoever writes them may wait for the answers. What has to have all addresses
 * first, or more than one process, reads all lines first.
 */
static bool is_streamed(const struct options *options, const struct input *input)
{
	return input->is_pipe && !options->sort && !options->compare &&
	       !options->runs && !is_of_many(options);
}

static int work_on_processes(struct options *options)
{
	struct processes processes = {};
	int status;

	if (is_of_many(options))
		find_processes(options, &processes);
	else
		add_process(&processes, options->pid);
	status = work(options, &processes);
	free(processes.pids);
	return status;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse_option,
		.args_doc = argp_args_doc,
		.doc = argp_doc,
	};
	struct options options = {};
	struct input input = {};
	bool streamed = false;
	int status;

	argp_err_exit_status = EXIT_TROUBLE;
	argp_program_version_hook = print_version;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (options.maps_file)
		read_maps_file(&options);
	if (options.file) {
		open_input(&input, options.file);
		streamed = is_streamed(&options, &input);
		if (!streamed)
			read_addresses(&options, &input);
	}
	if (options.nr_addrs && (options.sort || options.compare))
		qsort(options.addrs, options.nr_addrs, sizeof(*options.addrs),
		      by_number);
	look_at_terminal();

	if (options.interval)
		status = watch(&options);
	else if (streamed)
		status = answer(&options, &input);
	else
		status = work_on_processes(&options);
	if (status < 0)
		report_trouble(&options, status);
	close_input(&input);
	free(options.name);
	free(options.unit);
	free(options.text);
	free(options.addrs);
	return status;
}
