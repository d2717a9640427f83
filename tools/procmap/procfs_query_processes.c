// SPDX-License-Identifier: GPL-2.0
/* procfs_query: which processes to inspect. */
#include "procfs_query.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <unistd.h>

/* Read the copy of a maps file before anything else is done: it may be a FIFO. */
void read_maps_file(struct options *options)
{
	FILE *const file = fopen(options->maps_file, "re");

	if (file)
		options->text = read_all(file, &options->text_len);
	if (!file || ferror(file))
		fail("%s: %s: give a copy of /proc/PID/maps",
		     options->maps_file, strerror(errno));
	fclose(file);
}

/* A name with a slash is a path. */
static bool runs(pid_t pid, const char *name)
{
	char *const program = program_of(pid);
	bool is_match = false;

	if (program) {
		const char *const base = strrchr(program, '/');

		is_match = !strcmp(strchr(name, '/') || !base ? program :
								base + 1, name);
	}
	free(program);
	return is_match;
}

static bool has_user(pid_t pid, uid_t uid)
{
	uid_t effective;

	return find_uid(pid, &effective) && effective == uid;
}

/* A process is also in the slices and units around its control group. */
static bool is_in_unit(pid_t pid, const char *unit)
{
	const size_t len = strlen(unit);
	char *const groups = read_proc(pid, "cgroup");
	const char *at = groups;
	bool is_match = false;

	while (at && !is_match && (at = strstr(at, unit))) {
		is_match = at > groups && at[-1] == '/' &&
			   (at[len] == '/' || at[len] == '\n');
		at++;
	}
	free(groups);
	return is_match;
}

void add_process(struct processes *processes, pid_t pid)
{
	processes->pids = need(reallocarray(processes->pids, processes->nr + 1,
					    sizeof(pid)));
	processes->pids[processes->nr++] = pid;
}

int by_pid(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

static bool is_wanted(pid_t pid, const struct options *options)
{
	return (!options->exe || runs(pid, options->exe)) &&
	       (!given(options, OPT_USER) || has_user(pid, options->uid)) &&
	       (!options->unit || is_in_unit(pid, options->unit));
}

/* Like pgrep(1), skip the calling process. */
void find_processes(const struct options *options, struct processes *processes)
{
	const pid_t own = own_pid();
	struct dirent *entry;
	DIR *proc;

	proc = opendir("/proc");
	fail_without_proc(proc ? 0 : -errno);
	if (!proc)
		fail("/proc: %s: mount another one there", strerror(errno));
	while ((entry = readdir(proc))) {
		const pid_t pid = isdigit((unsigned char)*entry->d_name) ?
				  atoi(entry->d_name) : 0;

		if (pid && pid != own && is_wanted(pid, options))
			add_process(processes, pid);
	}
	closedir(proc);
	if (processes->nr)
		qsort(processes->pids, processes->nr, sizeof(*processes->pids),
		      by_pid);
}

static void set_pid(struct options *options, const char *text)
{
	unsigned long pid;

	if (!strcmp(text, "self")) {
		pid = own_pid();
		if (!pid) {
			fail_without_proc(-errno);
			fail("/proc is of a PID namespace without this process: mount another one");
		}
	} else if (!parse_number(text, INT_MAX, &pid)) {
		fail("'%s' is not a process ID: give a positive number, or self",
		     quote(text, strlen(text)));
	}
	options->pid = pid;
}

static void set_exe(struct options *options, const char *text)
{
	if (!*text)
		fail("'' is not a program: give its name, or its path");
	options->exe = text;
}

static void set_user(struct options *options, const char *text)
{
	const struct passwd *user;
	unsigned long uid;
	char *end;

	errno = 0;
	user = getpwnam(text);
	fail_without_files(-errno);
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

static void set_maps_file(struct options *options, const char *text)
{
	options->maps_file = text;
}

const struct tool_option process_options[] = {
	{ .argp = { .name = "pid", .key = 'p', .arg = "PID", .group = GROUP_WORK,
		    .doc = "The process, or self" },
	  .bit = OPT_PID, .takes = ~(OPT_MANY | OPT_MAPS_FILE), .parse = set_pid },
	{ .argp = { .name = "all", .key = 'a', .group = GROUP_WORK,
		    .doc = "All processes that you may inspect" },
	  .bit = OPT_ALL, .takes = ~(OPT_PID | OPT_EXE | OPT_MAPS_FILE) },
	{ .argp = { .name = "exe", .key = 'e', .arg = "NAME", .group = GROUP_WORK,
		    .doc = "All processes that run this program, a name or a path" },
	  .bit = OPT_EXE, .takes = ~(OPT_PID | OPT_ALL | OPT_MAPS_FILE),
	  .parse = set_exe },
	{ .argp = { .name = "maps-file", .key = 'm', .arg = "PATH", .group = GROUP_WORK,
		    .doc = "Read PATH, a copy of /proc/PID/maps, instead of a process" },
	  .bit = OPT_MAPS_FILE,
	  .takes = OPT_EITHER | OPT_LIST | OPT_NAME | OPT_SUM | OPT_VERBOSE | OPT_TEXT,
	  .parse = set_maps_file },
	{ .argp = { .name = "user", .key = 'u', .arg = "USER", .group = GROUP_WORK,
		    .doc = "Only processes of this user, a name or an ID" },
	  .bit = OPT_USER, .parse = set_user },
	{ .argp = { .name = "unit", .arg = "UNIT", .group = GROUP_WORK,
		    .doc = "Only processes of this unit of systemd" },
	  .bit = OPT_UNIT, .parse = set_unit },
	{}
};
