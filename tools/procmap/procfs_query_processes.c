// SPDX-License-Identifier: GPL-2.0
/* procfs_query: which processes to inspect, and what runs in them. */
#include "procfs_query.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <unistd.h>

/*
 * Read the rest of a file, up to its end or an error. The bytes end with a NUL. The
 * caller frees them.
 */
char *read_all(FILE *file, size_t *len)
{
	char *bytes = NULL;
	size_t size = 0;

	for (*len = 0; !feof(file) && !ferror(file);) {
		if (*len + 1 >= size) {
			size = size * 2 + 64 * 1024;
			bytes = need(realloc(bytes, size));
		}
		*len += fread(bytes + *len, 1, size - 1 - *len, file);
	}
	if (bytes)
		bytes[*len] = '\0';
	return bytes;
}

/*
 * Read a file of a process. The caller frees it. Returns NULL, with errno, if that
 * fails.
 */
char *read_proc(pid_t pid, const char *name)
{
	char *text = NULL, *path;
	FILE *file;
	size_t len;

	if (asprintf(&path, "/proc/%d/%s", pid, name) < 0)
		need(NULL);
	file = fopen(path, "re");
	free(path);
	if (!file)
		return NULL;
	text = read_all(file, &len);
	if (ferror(file)) {
		const int err = errno;

		free(text);
		text = NULL;
		fclose(file);
		errno = err;
		return NULL;
	}
	fclose(file);
	return text;
}

/* Cut off what the kernel has appended to the path of a deleted file. */
void cut_deleted(char *path)
{
	const size_t len = strlen(path);

	if (len > strlen(DELETED) && !strcmp(path + len - strlen(DELETED), DELETED))
		path[len - strlen(DELETED)] = '\0';
}

/* The path of the program that a process runs, or NULL; the caller frees it. */
char *program_of(pid_t pid)
{
	char link[sizeof("/proc//exe") + 3 * sizeof(pid)];
	char *const program = need(malloc(PATH_MAX));
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, program, PATH_MAX - 1);
	if (len < 0) {
		free(program);
		return NULL;
	}
	program[len] = '\0';
	cut_deleted(program);
	return program;
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

/*
 * Find the effective user ID, which ps(1) and pgrep(1) take, too. The directory in /proc
 * is root's if the process is not dumpable. Returns false if the process is gone.
 */
bool find_uid(pid_t pid, uid_t *uid)
{
	char *const status = read_proc(pid, "status");
	const char *const line = status ? strstr(status, "\nUid:\t") : NULL;
	const bool is_there = line &&
			      sscanf(line, "\nUid:\t%*u\t%u", uid) == 1;

	free(status);
	return is_there;
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
	       (!options->user || has_user(pid, options->uid)) &&
	       (!options->unit || is_in_unit(pid, options->unit));
}

/* Like pgrep(1), skip the calling process. */
void find_processes(const struct options *options, struct processes *processes)
{
	struct dirent *entry;
	DIR *proc;

	proc = opendir("/proc");
	if (!proc)
		fail("/proc: %s: mount it", strerror(errno));
	while ((entry = readdir(proc))) {
		const pid_t pid = isdigit((unsigned char)*entry->d_name) ?
				  atoi(entry->d_name) : 0;

		if (pid && pid != getpid() && is_wanted(pid, options))
			add_process(processes, pid);
	}
	closedir(proc);
	if (processes->nr)
		qsort(processes->pids, processes->nr, sizeof(*processes->pids),
		      by_pid);
}
