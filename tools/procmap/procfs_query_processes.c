// SPDX-License-Identifier: GPL-2.0
/* procfs_query: which processes to inspect. */
#include "procfs_query_processes.h"
#include "procfs_query_lookup.h"
#include "procfs_query_trouble.h"
#include "tool.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

/* The process of this program, until find_self() finds its ID. */
#define SELF	(-1)

/*
 * Read the copy of a maps file before anything else is done: it may be a FIFO. A file with
 * a NUL is not a text, and may be endless.
 */
void read_maps_file(struct options *options)
{
	FILE *const file = fopen(options->maps_file, "re");
	ssize_t len = -1;
	size_t room = 0;

	if (file)
		len = getdelim(&options->text, &room, '\0', file);
	if (file && len < 0 && !feof(file) && errno == ENOMEM)
		fail("out of memory");
	if (!file || ferror(file))
		fail("%s: %s: give a copy of /proc/PID/maps",
		     options->maps_file, strerror(errno));
	fclose(file);
	options->text_len = len < 0 ? 0 : len;
}

/*
 * Look at the descriptor before a file is opened that would get its number. Only the text
 * shows that it is that of a maps file.
 */
void look_at_fd(struct options *options)
{
	const struct procmap_mapping *vma;
	struct procmap *procmap;
	uint64_t cursor = 0;
	struct stat stat;
	int err;

	err = procmap_open_fd(options->fd, BY(PROCMAP_BY_TEXT, options), &procmap);
	if (!err) {
		err = procmap_next(procmap, &cursor, 0, &vma);
		procmap_close(procmap);
	}
	if (err)
		report_trouble(options, err);
	options->is_only_maps = !fstat(options->fd, &stat) && S_ISREG(stat.st_mode);
}

static void add_process(struct options *options, pid_t pid)
{
	options->pids = need(reallocarray(options->pids, options->nr_pids + 1, sizeof(pid)));
	options->pids[options->nr_pids++] = pid;
}

static int by_pid(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

/* Find the ID of this process, after --proc was parsed. */
static pid_t find_self(void)
{
	const pid_t pid = own_pid();

	if (!pid) {
		fail_without_proc(-errno);
		fail("%s is of a PID namespace without this process: give a process ID",
		     proc_dir);
	}
	return pid;
}

/* Put processes in order, each once. Returns the new number of processes. */
size_t sort_pids(pid_t *pids, size_t nr)
{
	size_t i, left = 0;

	qsort(pids, nr, sizeof(*pids), by_pid);
	for (i = 0; i < nr; i++) {
		if (!left || pids[left - 1] != pids[i])
			pids[left++] = pids[i];
	}
	return left;
}

void sort_processes(struct options *options)
{
	size_t i;

	if (!options->nr_pids)
		return;
	for (i = 0; i < options->nr_pids; i++) {
		if (options->pids[i] == SELF)
			options->pids[i] = find_self();
	}
	options->nr_pids = sort_pids(options->pids, options->nr_pids);
	options->pid = options->pids[0];
	if (options->nr_pids > 1)
		options->given |= OPT_SEVERAL;
}

/* Find those of --all: like pgrep(1), skip this one. That of --fd or --maps-file is 0. */
void find_processes(struct options *options)
{
	const pid_t own = own_pid();
	struct dirent *entry;
	DIR *proc;

	if (given(options, OPT_FD | OPT_MAPS_FILE))
		add_process(options, 0);
	if (!given(options, OPT_ALL))
		return;
	proc = opendir(proc_dir);
	fail_without_proc(proc ? 0 : -errno);
	if (!proc)
		fail("%s: %s: mount another one there", proc_dir, strerror(errno));
	while ((entry = readdir(proc))) {
		const pid_t pid = isdigit((unsigned char)*entry->d_name) ?
				  atoi(entry->d_name) : 0;

		if (pid && pid != own)
			add_process(options, pid);
	}
	closedir(proc);
	sort_processes(options);
}

static pid_t parse_pid(const char *text)
{
	unsigned long pid;

	if (!strcmp(text, "self"))
		return SELF;
	if (!parse_number(text, INT_MAX, &pid))
		fail("'%s' is not a process ID: give a positive number, or self",
		     quote(text, strlen(text)));
	return pid;
}

static void add_pids(struct options *options, const char *text)
{
	char *const pids = need(strdup(text));
	char *rest = pids, *pid;

	while ((pid = strsep(&rest, ",")))
		add_process(options, parse_pid(pid));
	free(pids);
}

static void set_fd(struct options *options, const char *text)
{
	unsigned long fd = 0;

	if (strcmp(text, "0") && !parse_number(text, INT_MAX, &fd))
		fail("'%s' is not a descriptor: give the number of an opened /proc/PID/maps",
		     quote(text, strlen(text)));
	options->fd = fd;
}

static void set_maps_file(struct options *options, const char *text)
{
	options->maps_file = text;
}

static void set_proc(struct options *options, const char *text)
{
	(void)options;
	proc_dir = text;
}

const struct tool_option process_options[] = {
	{ .argp = { .name = "pid", .key = 'p', .arg = "PID,...", .group = GROUP_WORK,
		    .doc = "The process, or several, or self" },
	  .bit = OPT_PID, .takes = ~(OPT_ALL | OPT_FD | OPT_MAPS_FILE), .parse = add_pids },
	{ .argp = { .name = "several processes", .flags = OPTION_DOC | OPTION_HIDDEN },
	  .bit = OPT_SEVERAL },
	{ .argp = { .name = "all", .key = 'a', .group = GROUP_WORK,
		    .doc = "All processes that you may inspect" },
	  .bit = OPT_ALL, .takes = ~(OPT_PID | OPT_FD | OPT_MAPS_FILE) },
	{ .argp = { .name = "fd", .arg = "N", .group = GROUP_WORK,
		    .doc = "The process of descriptor N, an opened /proc/PID/maps or /proc/PID" },
	  .bit = OPT_FD, .takes = ~(OPT_PID | OPT_ALL | OPT_MAPS_FILE), .parse = set_fd },
	{ .argp = { .name = "maps-file", .key = 'm', .arg = "PATH", .group = GROUP_WORK,
		    .doc = "Read PATH, a copy of /proc/PID/maps, instead of a process" },
	  .bit = OPT_MAPS_FILE,
	  .takes = OPT_EITHER | OPT_LIST | OPT_NAME | OPT_SUM | OPT_VERBOSE | OPT_TEXT,
	  .parse = set_maps_file },
	{ .argp = { .name = "proc", .arg = "DIR", .group = GROUP_WORK,
		    .doc = "Where procfs is mounted, instead of /proc" },
	  .bit = OPT_PROC, .takes = ~OPT_MAPS_FILE, .parse = set_proc },
	{ .argp = { .name = "ask-servers", .group = GROUP_WORK,
		    .doc = "Look at files on FUSE and networks, too, and wait for their servers" },
	  .bit = OPT_ASK_SERVERS, .takes = ~OPT_MAPS_FILE },
	{}
};
