// SPDX-License-Identifier: GPL-2.0
/* procfs_query: read files about processes in /proc. */
#include "procfs.h"
#include "mapping.h"
#include "tool.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

const char *proc_dir = "/proc";

/* The path of a file of a process; the caller frees it. */
char *path_of_process(pid_t pid, const char *name)
{
	return format("%s/%d/%s", proc_dir, pid, name);
}

/* Exit if an error is not about the process that was looked at when it occurred. */
void fail_without_proc(int err)
{
	char *const path = format("%s/self", proc_dir);
	struct stat self;

	fail_without_files(err);
	if (lstat(path, &self))
		fail("no procfs is mounted at %s: mount one there, or give --proc DIR",
		     proc_dir);
	free(path);
}

/*
 * Return the ID of this process in @proc_dir, which may belong to another PID namespace;
 * 0 if it has none there.
 */
pid_t own_pid(void)
{
	char *const path = format("%s/self", proc_dir);
	char pid[3 * sizeof(pid_t)] = "";
	const ssize_t len = readlink(path, pid, sizeof(pid) - 1);

	free(path);
	return len < 0 ? 0 : atoi(pid);
}

/* The process's main thread may have exited: its other threads have the program. */
static ssize_t read_link_of_thread(pid_t pid, char *program)
{
	char *const path = path_of_process(pid, "task");
	char link[NAME_MAX + sizeof("/exe")];
	struct dirent *task;
	ssize_t len = -1;
	DIR *tasks;

	tasks = opendir(path);
	free(path);
	while (tasks && len < 0 && (task = readdir(tasks))) {
		snprintf(link, sizeof(link), "%s/exe", task->d_name);
		len = readlinkat(dirfd(tasks), link, program, PATH_MAX - 1);
	}
	if (tasks)
		closedir(tasks);
	return len;
}

/* The path of the program that a process runs, or NULL; the caller frees it. */
char *program_of(pid_t pid)
{
	char *const path = path_of_process(pid, "exe");
	char *const program = need(malloc(PATH_MAX));
	ssize_t len;

	len = readlink(path, program, PATH_MAX - 1);
	free(path);
	if (len < 0)
		len = read_link_of_thread(pid, program);
	if (len < 0) {
		free(program);
		return NULL;
	}
	program[len] = '\0';
	cut_deleted(program);
	return program;
}
