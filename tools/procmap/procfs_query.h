/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: the interfaces between its source files. */
#ifndef PROCFS_QUERY_H
#define PROCFS_QUERY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <argp.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <procmap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Options of a handle, with a method. */
#define BY(by, options)	(&(const struct procmap_options) {			\
				.size = sizeof(struct procmap_options), .method = (by),	\
				.proc = proc_dir, .flags = open_flags(options) })

/*
 * The options, as bits of options.given; OPT_ADDRESSES are arguments without an option,
 * and OPT_SEVERAL is a list of several processes.
 */
enum {
	OPT_ADDRESSES	= 1 << 0,
	OPT_FILE	= 1 << 1,
	OPT_LIST	= 1 << 2,
	OPT_NAME	= 1 << 3,
	OPT_SUM		= 1 << 4,
	OPT_DELETED	= 1 << 5,
	OPT_BUILD_IDS	= 1 << 6,
	OPT_INTERVAL	= 1 << 7,
	OPT_BENCH	= 1 << 8,
	OPT_VERBOSE	= 1 << 9,
	OPT_BUILD_ID	= 1 << 10,
	OPT_JSON	= 1 << 11,
	OPT_FILTER	= 1 << 12,
	OPT_PID		= 1 << 13,
	OPT_ALL		= 1 << 14,
	OPT_SEVERAL	= 1 << 15,
	OPT_MAPS_FILE	= 1 << 16,
	OPT_QUERY	= 1 << 17,
	OPT_SCAN	= 1 << 18,
	OPT_TEXT	= 1 << 19,
	OPT_ELF_ADDRESS	= 1 << 20,
	OPT_PROC	= 1 << 21,
	OPT_ASK_SERVERS	= 1 << 22,
	OPT_FD		= 1 << 23,
};

/* Addresses, given in either way; options for several processes, or for any. */
#define OPT_EITHER		(OPT_ADDRESSES | OPT_FILE)
#define OPT_MANY		(OPT_ALL | OPT_SEVERAL)
#define OPT_PROCESSES		(OPT_PID | OPT_MANY | OPT_FD | OPT_MAPS_FILE)
#define OPT_METHODS		(OPT_QUERY | OPT_SCAN | OPT_TEXT)

/* All options work with these. */
#define OPT_COMMON		(OPT_JSON | OPT_FILTER | OPT_PROC | OPT_ASK_SERVERS)

/**
 * struct processes - the processes to inspect
 * @pids: their IDs, in rising order.
 * @nr: the number of IDs.
 */
struct processes {
	pid_t *pids;
	size_t nr;
};

/**
 * struct options - the command line
 * @given: the bits of the options that were given.
 * @processes: the processes to inspect.
 * @pid: the process, or the current one of several; 0 for the totals of several, and
 *	with --fd and --maps-file.
 * @fd: the descriptor of --fd.
 * @is_only_maps: it is that of a maps file, without the directory of the process.
 * @maps_file: the file that is read instead of a process, or NULL.
 * @text: its content.
 * @text_len: the number of bytes.
 * @method: the method to use, or PROCMAP_ANY_METHOD.
 * @file: the file with addresses, or NULL.
 * @addrs: the addresses, in the order in which they are printed.
 * @nr_addrs: the number of addresses.
 * @size_addrs: the number of addresses that @addrs has room for.
 * @flags: the flags of every lookup.
 * @runs: the number of runs of the benchmark.
 * @interval: the seconds between two snapshots.
 * @name: list the mappings with this name, as maps has it.
 * @path: or those of the file at this path; NULL: it is none.
 * @pattern: or, if there are none, those that match this pattern; NULL: it is none.
 */
struct options {
	unsigned int given;
	struct processes processes;
	pid_t pid;
	int fd;
	bool is_only_maps;
	const char *maps_file;
	char *text;
	size_t text_len;
	enum procmap_method method;
	const char *file;
	uint64_t *addrs;
	size_t nr_addrs;
	size_t size_addrs;
	unsigned int flags;
	unsigned long runs;
	double interval;
	char *name;
	const char *path;
	char *pattern;
};

/* Returns true if one of these options was given. */
static inline bool given(const struct options *options, unsigned int bits)
{
	return options->given & bits;
}

/* Returns true if there may be several processes, so that each needs a heading. */
static inline bool is_of_many(const struct options *options)
{
	return given(options, OPT_MANY);
}

/* The groups of --help. */
enum {
	GROUP_WORK = 1,
	GROUP_FILTERS,
	GROUP_METHOD,
	GROUP_OUTPUT,
	GROUP_MEASURING,
};

/**
 * struct tool_option - an option of the command line, or a command
 * @argp: its name, key and argument, and its line in --help.
 * @bit: its bit in options.given.
 * @takes: the options that it works with besides OPT_COMMON; 0: no rule of its own.
 * @needs: one of these has to be given, too; 0: no rule.
 * @flags: bits to add to options.flags.
 * @method: the value for options.method, or PROCMAP_ANY_METHOD.
 * @parse: takes its argument, or NULL.
 * @work: of a command, work on a process. Returns an exit status or -errno. State for
 *	all processes is static, and stays until the program exits.
 * @finish: of a command, print the result for all processes, or NULL. Returns the exit
 *	status.
 * @run: of a command without @work, work on the only process, and print on the way.
 *	Returns an exit status or -errno.
 */
struct tool_option {
	struct argp_option argp;
	unsigned int bit;
	unsigned int takes;
	unsigned int needs;
	unsigned int flags;
	enum procmap_method method;
	void (*parse)(struct options *options, const char *text);
	int (*work)(const struct options *options, FILE *out);
	int (*finish)(const struct options *options, FILE *out);
	int (*run)(const struct options *options);
};

/* The options of each file; an empty one ends an array. */
extern const struct tool_option process_options[], show_options[], watch_options[],
	sum_options[], deleted_options[], ids_options[], bench_options[];

/* tool.c */

#define EXIT_TROUBLE		2

/* The kernel appends this to the path of a file that was deleted. */
#define DELETED			" (deleted)"

/* The longest duration. */
#define SECONDS_MAX		86400

#define fail(...)		errx(EXIT_TROUBLE, __VA_ARGS__)

void *need(void *memory);
void *room_for_one(void *elements, size_t nr, size_t *room, size_t size);
bool parse_number(const char *text, unsigned long max, unsigned long *number);
bool parse_seconds(const char *text, double *seconds);
uint64_t now_ns(void);
const char *quote(const char *text, size_t len);
char *escape(const char *path);
void cut_deleted(char *path);

/**
 * struct output - output that is held back until all of it is known to be good
 * @file: the stream to write to.
 * @bytes: the output so far; end_output() frees it.
 * @len: the number of bytes.
 */
struct output {
	FILE *file;
	char *bytes;
	size_t len;
};

void begin_output(struct output *output);
void end_output(struct output *output, bool is_good);

void look_at_terminal(void);
size_t terminal_width(void);

/* The fewest columns for a name, even on a narrow terminal. */
#define NAME_WIDTH_MIN		20

enum colour {
	BOLD = 1,
	RED = 31,
	GREEN = 32,
	YELLOW = 33,
};

int print_coloured(FILE *out, enum colour colour, const char *text);
size_t print_whole_name(FILE *out, const char *name);
size_t print_name(FILE *out, const char *name, size_t column);
void print_hex(FILE *out, const void *bytes, size_t len);
bool is_control(uint32_t c);

/* json.c */

/**
 * struct json - a JSON object that is being written
 * @out: the stream.
 * @first: the next member or element needs no comma.
 * @one_line: the object is one line, also if it has arrays.
 */
struct json {
	FILE *out;
	bool first;
	bool one_line;
};

struct json json_begin(FILE *out, bool one_line);
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_end(struct json *json);
void json_null(struct json *json, const char *key);
void json_bool(struct json *json, const char *key, bool value);
void json_number(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value);
void json_address(struct json *json, const char *key, uint64_t addr);
bool json_string(struct json *json, const char *key, const char *string);
void json_hex(struct json *json, const char *key, const void *bytes, size_t len);
void json_exact(struct json *json, const char *key, const char *hex_key,
		const char *string);

/* procfs_query_lookup.c */

const char *method_name(enum procmap_method method);
unsigned int open_flags(const struct options *options);
int open_mappings(const struct options *options, struct procmap **procmap);
int visit_snapshot(const struct options *options,
		   void (*visit)(const struct options *options,
				 const struct procmap_mapping *vma));
int by_build_id(const struct procmap_mapping *x, const struct procmap_mapping *y);
int by_file(const void *a, const void *b);

/**
 * struct rows - what is printed of each file, or other name
 * @all: the rows: structures whose first member is the first mapping of the file; its
 *	name is a copy.
 * @nr: the number of rows.
 * @room: the number that @all has room for.
 * @tree: the same rows as a tsearch(3) tree.
 */
struct rows {
	void **all;
	size_t nr;
	size_t room;
	void *tree;
};

bool begins_with(const char *name, const char *prefix);
bool is_memory(const char *name);
void *row_of(struct rows *rows, const struct procmap_mapping *vma, size_t size);
void permissions(const struct procmap_mapping *vma, char text[5]);
bool has_file(const struct procmap_mapping *vma);
uint64_t file_offset(const struct procmap_mapping *vma, uint64_t addr);
int elf_address(const struct options *options, struct procmap *procmap,
		const struct procmap_mapping *vma, uint64_t addr, uint64_t *address);

typedef void (*visit_fn)(void *context, uint64_t addr,
			 const struct procmap_mapping *vma);

int visit(struct procmap *procmap, const struct options *options,
	  visit_fn visit_one, void *context);

/* procfs_query_name.c */

void set_name(struct options *options, const char *text);
int visit_name(struct procmap *procmap, const struct options *options,
	       visit_fn visit_one, void *context);
int finish_name(const struct options *options, FILE *out);

/* procfs_query_proc.c */

/* Where procfs is mounted. */
extern const char *proc_dir;

char *path_of_process(pid_t pid, const char *name);
void fail_without_files(int err);
void fail_without_proc(int err);
pid_t own_pid(void);
char *program_of(pid_t pid);

/* procfs_query_deleted.c */

void report_unverified(void);

/* procfs_query_processes.c */

void add_process(struct options *options, pid_t pid);
void find_processes(struct options *options);
void sort_processes(struct options *options);
int by_pid(const void *a, const void *b);
void look_at_fd(struct options *options);
void read_maps_file(struct options *options);

/* procfs_query_trouble.c */

void report_trouble(const struct options *options, int err);
bool report_if_gone(const struct options *options);
void report_skipped(size_t nr_denied, size_t nr_empty);

/* procfs_query_input.c */

/**
 * struct input - a file with addresses
 * @name: its name, for messages.
 * @file: the stream.
 * @is_pipe: the writer may wait for the answers.
 * @has_address: an address was found.
 * @line: the number of lines that were read.
 * @text: the line that was read last.
 */
struct input {
	const char *name;
	FILE *file;
	bool is_pipe;
	bool has_address;
	size_t line;
	char text[4096];
};

void add_argument(struct options *options, const char *text);
void open_input(struct input *input, const char *path);
bool next_address(struct input *input, uint64_t *addr);
void read_addresses(struct options *options, struct input *input);
void close_input(struct input *input);

/* procfs_query_print.c */

/* Returns an exit status or -errno. */
int answer(const struct options *options, struct input *input);

/* The columns of a build ID, without the blank after it. */
#define BUILD_ID_WIDTH		(2 * PROCMAP_BUILD_ID_MAX)

/**
 * struct line_format - the columns in the line of a mapping
 * @column: the column of names in lines without other columns than the text has.
 * @build_id: the build ID is before the name.
 */
struct line_format {
	int column;
	bool build_id;
};

struct line_format line_format(const struct options *options);
size_t print_program(FILE *out, const char *program, size_t column);
void print_headings(FILE *out, const struct options *options, const char *columns,
		    const char *last);
void print_process(FILE *out, const struct options *options);
void print_line(FILE *out, const struct procmap_mapping *vma, int indent,
		const struct line_format *format);
void print_build_id_column(FILE *out, const struct procmap_mapping *vma);

/* procfs_query_json.c */

struct json json_begin_with(FILE *out, const struct options *options);
void json_inode(struct json *json, const struct procmap_mapping *vma);
void json_program(struct json *json, const char *program);
void json_name(struct json *json, const struct procmap_mapping *vma);
void json_build_id(struct json *json, const struct procmap_mapping *vma);
void json_vma(struct json *json, const char *key,
	      const struct procmap_mapping *vma,
	      const struct line_format *format);
void json_answer(struct json *json, const struct options *options,
		 struct procmap *procmap, uint64_t addr,
		 const struct procmap_mapping *vma);

#endif /* PROCFS_QUERY_H */
