/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: the interfaces between its source files. */
#ifndef PROCFS_QUERY_H
#define PROCFS_QUERY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

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

#include "json.h"
#include "tool.h"

/* The methods: query, scan, text. */
#define NR_METHODS			3

/**
 * struct options - the command line
 * @pid: the process; with @all or @exe, the current one, or 0 for the totals; 0
 *	with @maps_file.
 * @all: inspect all processes.
 * @exe: inspect all processes that run this program, or NULL.
 * @user: with @all or @exe, only those of this user, or NULL.
 * @uid: the ID of @user.
 * @unit: with @all or @exe, only those of this unit of systemd, or NULL.
 * @maps_file: the file that is read instead of a process, or NULL.
 * @text: its content.
 * @text_len: the number of bytes.
 * @method: the method to use, or PROCMAP_ANY_METHOD.
 * @file: the file with addresses, or NULL.
 * @addrs: the addresses, in the order in which they are printed.
 * @nr_addrs: the number of addresses.
 * @size_addrs: the number of addresses that @addrs has room for.
 * @filters: the flags that a mapping must have.
 * @runs: the number of runs of the benchmark, or 0.
 * @interval: the seconds between two snapshots, or 0.
 * @sort: print addresses in rising order.
 * @list: list all mappings.
 * @name: list the mappings with this name, or that match this pattern, or NULL.
 * @match: how to compare with @name.
 * @sum: add up the sizes of all mappings, by file.
 * @deleted: list the mapped files that were deleted or replaced.
 * @build_ids: list the build IDs of all mapped files.
 * @compare: compare the results of all methods.
 * @build_id: print build IDs.
 * @rss: print how much of each mapping is resident.
 * @verbose: with each address, print the line of its mapping.
 * @json: print JSON.
 */
struct options {
	pid_t pid;
	bool all;
	const char *exe;
	const char *user;
	uid_t uid;
	char *unit;
	const char *maps_file;
	char *text;
	size_t text_len;
	enum procmap_method method;
	const char *file;
	uint64_t *addrs;
	size_t nr_addrs;
	size_t size_addrs;
	unsigned int filters;
	unsigned long runs;
	double interval;
	bool sort;
	bool list;
	char *name;
	enum procmap_match match;
	bool sum;
	bool deleted;
	bool build_ids;
	bool compare;
	bool build_id;
	bool rss;
	bool verbose;
	bool json;
};

/* procfs_query.c */

bool is_of_many(const struct options *options);
bool prints_mappings(const struct options *options);
const char *method_name(enum procmap_method method);
size_t methods_to_compare(enum procmap_method methods[NR_METHODS]);
unsigned int flags_of(const struct options *options);
int open_mappings(const struct options *options, struct procmap **procmap);
int by_number(const void *a, const void *b);

typedef void (*visit_fn)(void *context, uint64_t addr,
			 const struct procmap_mapping *vma);

int visit(struct procmap *procmap, const struct options *options,
	  visit_fn visit_one, void *context);

/* procfs_query_processes.c */

/**
 * struct processes - the processes to inspect
 * @pids: their IDs, in rising order.
 * @nr: the number of IDs.
 */
struct processes {
	pid_t *pids;
	size_t nr;
};

void add_process(struct processes *processes, pid_t pid);
void find_processes(const struct options *options, struct processes *processes);
bool find_uid(pid_t pid, uid_t *uid);
char *program_of(pid_t pid);
int by_pid(const void *a, const void *b);
char *read_all(FILE *file, size_t *len);
char *read_proc(pid_t pid, const char *name);

/* procfs_query_trouble.c */

void report_trouble(const struct options *options, int err);
void report_skipped(size_t nr);

/* procfs_query_input.c */

/**
 * struct input - a file with addresses
 * @name: its name, for messages.
 * @file: the stream.
 * @is_pipe: whoever writes it may wait for the answers.
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

const char *parse_address(const char *text, size_t len, uint64_t *addr);
void open_input(struct input *input, const char *path);
bool next_address(struct input *input, uint64_t *addr);
void close_input(struct input *input);

/* procfs_query_print.c */

/*
 * show(), answer(), watch(), compare(), bench() and the functions of sums return
 * an exit status or -errno.
 */

int show(const struct options *options, FILE *out);
int answer(const struct options *options, struct input *input);

/* The columns of a build ID, without the blank after it. */
#define BUILD_ID_WIDTH		(2 * PROCMAP_BUILD_ID_MAX)

/**
 * struct line_format - what is in the line of a mapping
 * @column: where names begin, if there is nothing else than in the text.
 * @rss: the resident part of each mapping is before the build ID, or NULL.
 * @build_id: the build ID is before the name.
 */
struct line_format {
	int column;
	struct rss *rss;
	bool build_id;
};

struct line_format line_format(const struct options *options);
void print_process(FILE *out, const struct options *options);
void print_line(FILE *out, const struct procmap_mapping *vma, int indent,
		const struct line_format *format);
void print_build_id_column(FILE *out, const struct procmap_mapping *vma);
void permissions(const struct procmap_mapping *vma, char text[5]);
bool has_file(const struct procmap_mapping *vma);
uint64_t file_offset(const struct procmap_mapping *vma, uint64_t addr);

/* procfs_query_json.c */

struct json json_to(FILE *out, const struct options *options);
void json_begin(struct json *json, const struct options *options);
void json_inode(struct json *json, const struct procmap_mapping *vma);
void json_program(struct json *json, const char *program);
void json_name(struct json *json, const struct procmap_mapping *vma);
void json_build_id(struct json *json, const struct procmap_mapping *vma);
void json_vma(struct json *json, const char *key,
	      const struct procmap_mapping *vma,
	      const struct line_format *format);
void json_answer(struct json *json, const struct options *options,
		 uint64_t addr, const struct procmap_mapping *vma);

/* procfs_query_rss.c */

int read_rss(const struct options *options, struct rss **rss);
bool find_rss(const struct rss *rss, const struct procmap_mapping *vma,
	      uint64_t *bytes);
void free_rss(struct rss *rss);

/* procfs_query_watch.c */

int watch(const struct options *options);

/* procfs_query_sum.c */

/**
 * struct sums - the sizes of mappings, by file
 * @sums: one for each file or other name. add_to_sums() allocates them,
 *	print_sums() frees them.
 * @nr: the number of sums.
 * @tree: the same sums as a tsearch(3) tree.
 * @processes: the number of processes that were added.
 */
struct sums {
	struct sum **sums;
	size_t nr;
	void *tree;
	size_t processes;
};

int add_to_sums(const struct options *options, struct sums *sums);
int print_sums(const struct options *options, struct sums *sums, FILE *out);

/* procfs_query_files.c */

/**
 * struct file_visitor - what to do with the mapped files of a process
 * @want: the flags for what the library has to find out about a new file.
 * @begin: called before the first mapping; again if the process executes another
 *	program, whose mappings are visited then.
 * @visit: called for each mapping; returns whether its file is new.
 * @learn: called for mappings of new files, after all were visited, with what is
 *	wanted. Meanwhile, another file may have been mapped instead.
 * @context: passed to these functions.
 */
struct file_visitor {
	unsigned int want;
	void (*begin)(void *context);
	bool (*visit)(void *context, const struct procmap_mapping *vma);
	void (*learn)(void *context, const struct procmap_mapping *vma);
	void *context;
};

int visit_files(const struct options *options,
		const struct file_visitor *visitor);
int by_inode(const struct procmap_mapping *x, const struct procmap_mapping *y);

/* procfs_query_deleted.c */

/**
 * struct deleted - the mapped files of all processes so far
 * @files: a tsearch(3) tree. print_deleted() allocates its nodes, free_deleted()
 *	frees them.
 * @walks: the number of walks over the mappings of a process.
 * @has_headings: the line above the first process has been printed.
 */
struct deleted {
	void *files;
	size_t walks;
	bool has_headings;
};

int print_deleted(const struct options *options, struct deleted *deleted,
		  FILE *out);
void free_deleted(struct deleted *deleted);

/* procfs_query_ids.c */

/**
 * struct ids - the mapped files of all processes so far, and their build IDs
 * @files: the files. add_to_ids() allocates them, print_ids() frees them.
 * @nr: the number of files.
 * @tree: the same files as a tsearch(3) tree.
 * @walks: the number of walks over the mappings of a process.
 */
struct ids {
	struct file **files;
	size_t nr;
	void *tree;
	size_t walks;
};

int add_to_ids(const struct options *options, struct ids *ids);
int print_ids(const struct options *options, struct ids *ids, FILE *out);

/* procfs_query_compare.c */

/**
 * struct comparison - counts of a comparison
 * @processes: processes that were compared.
 * @changed: processes that kept changing, which no other count includes.
 * @addresses: addresses that were looked up.
 * @mappings: mappings whose fields were compared.
 * @names: mappings with a name.
 * @build_ids: mappings with a build ID.
 * @unreadable: mappings whose file the text method could not read.
 * @differences: differences that were found.
 */
struct comparison {
	size_t processes;
	size_t changed;
	size_t addresses;
	size_t mappings;
	size_t names;
	size_t build_ids;
	size_t unreadable;
	size_t differences;
};

int compare(const struct options *options, struct comparison *total, FILE *out);
int print_comparison(const struct options *options,
		     const struct comparison *total, FILE *out);

/* procfs_query_bench.c */

int bench(const struct options *options, FILE *out);

#endif /* PROCFS_QUERY_H */
