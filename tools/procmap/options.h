/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: the command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <argp.h>
#include <procmap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

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
 * struct options - the command line
 * @given: the bits of the options that were given.
 * @pids: the processes to inspect, in rising order.
 * @nr_pids: the number of processes.
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
	pid_t *pids;
	size_t nr_pids;
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

/* Of --deleted: say how many files were judged by their names alone, in all processes. */
void report_unverified(void);

#endif /* OPTIONS_H */
