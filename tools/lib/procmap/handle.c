// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Handles: open, close, and follow a process that executes another program.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "internal.h"

/* Free the text of maps, whose file is that of the handle. */
static void end_text(struct procmap *procmap)
{
	procmap->maps.fd = -1;
	text_close(&procmap->maps);
	procmap->maps = (struct text) { .fd = -1 };
}

static struct procmap *new_handle(void)
{
	struct procmap *const procmap = calloc(1, sizeof(*procmap));

	if (!procmap)
		return NULL;
	procmap->fd = -1;
	procmap->process = -1;
	procmap->dir = -1;
	procmap->maps.fd = -1;
	procmap->smaps.fd = -1;
	if (name_reserve(&procmap->name, PATH_MAX) || name_reserve(&procmap->part, PATH_MAX)) {
		free(procmap->name.bytes);
		free(procmap);
		return NULL;
	}
	return procmap;
}

/* Return whether procfs is mounted with hidepid=2, and hides the process with this directory. */
static bool is_hidden(int dir)
{
	struct stat stat;

	return fstat(dir, &stat) && errno == ENOENT;
}

/* Open the maps file below the directory of a process or thread. */
static int open_maps_of(struct procmap *procmap, enum procmap_method method)
{
	end_text(procmap);
	if (procmap->fd >= 0)
		close(procmap->fd);
	procmap->fd = openat(procmap->dir, "maps", O_RDONLY | O_CLOEXEC);
	if (procmap->fd < 0 && errno == ENOENT)
		return is_hidden(procmap->dir) ? -EPERM : -ESRCH;
	if (procmap->fd < 0)
		return -errno;
	procmap->maps.fd = procmap->fd;
	return choose_method(procmap, method);
}

int read_number(int fd, const char *label, int *number)
{
	char text[4096];
	const char *line;
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	line = strstr(text, label);
	if (!line)
		return -ENODATA;
	*number = atoi(line + strlen(label));
	return 0;
}

static int read_status(int dir, const char *label, int *number)
{
	return read_number(openat(dir, "status", O_RDONLY | O_CLOEXEC), label, number);
}

/*
 * Open the directory of a thread of process @pid: the one in the root of procfs, which has
 * map_files. Another thread may have the ID by now.
 */
static int open_thread_dir(const struct procmap *procmap, const char *name, int pid)
{
	char path[sizeof("../") + NAME_MAX];
	int dir, owner;

	snprintf(path, sizeof(path), "../%s", name);
	dir = openat(procmap->process, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || (!read_status(dir, "\nTgid:\t", &owner) && owner == pid))
		return dir;
	close(dir);
	return -1;
}

/*
 * The main thread has exited: open the maps file of another thread, which has the mappings
 * of the process.
 */
static int open_thread(struct procmap *procmap, enum procmap_method method)
{
	const int tasks = openat(procmap->dir, "task",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list;
	struct dirent *task;
	int err = -ESRCH, pid;

	list = tasks < 0 ? NULL : fdopendir(tasks);
	if (!list) {
		err = -errno;
		if (tasks >= 0)
			close(tasks);
		return err == -ENOENT ? -ESRCH : err;
	}
	procmap->process = procmap->dir;
	procmap->dir = -1;
	if (read_status(procmap->process, "\nTgid:\t", &pid))
		pid = 0;
	while (err == -ESRCH && (task = readdir(list))) {
		if (*task->d_name == '.')
			continue;
		if (procmap->dir >= 0)
			close(procmap->dir);
		procmap->dir = open_thread_dir(procmap, task->d_name, pid);
		if (procmap->dir >= 0)
			err = open_maps_of(procmap, method);
	}
	closedir(list);
	return err;
}

/* Return whether the process with this directory in /proc has an address space. */
static bool has_memory(int dir)
{
	int kilobytes;

	return !read_status(dir, "\nVmSize:\t", &kilobytes);
}

/* More than any process executes programs in a row. */
#define OPEN_TRIES	10

/* Open the mappings of the process whose directory in /proc the handle has. */
static int open_maps(struct procmap *procmap, enum procmap_method method)
{
	unsigned int tries;
	int err = -ESRCH;

	/* Between the opening and the first call, it may execute a program. */
	for (tries = 0; tries < OPEN_TRIES && err == -ESRCH; tries++) {
		err = open_maps_of(procmap, method);
		if (err == -ESRCH && !has_memory(procmap->dir))
			return open_thread(procmap, method);
	}
	return err;
}

int open_in(int dir, enum procmap_method method, unsigned int flags,
	    struct procmap **procmap)
{
	struct procmap *new;
	int err;

	new = new_handle();
	if (!new) {
		close(dir);
		return -ENOMEM;
	}
	new->dir = dir;
	new->flags = flags;
	err = open_maps(new, method);
	if (err) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

static int take_options(struct procmap_options *options,
			const struct procmap_options *given)
{
	const int err = take_struct(options, sizeof(*options), given);

	if (!options->proc)
		options->proc = "/proc";
	return !err && is_method(options->method) && !(options->flags & ~OPTION_FLAGS) ?
	       0 : -EINVAL;
}

/* Return whether procfs is of the PID namespace of this process: it shows one ID of it. */
static bool has_our_pids(const char *proc)
{
	char path[PATH_MAX], label[sizeof("\nNSpid:\t\n") + 3 * sizeof(pid_t)];
	int ignored;

	snprintf(path, sizeof(path), "%s/self/status", proc);
	snprintf(label, sizeof(label), "\nNSpid:\t%d\n", (int)getpid());
	return !read_number(open(path, O_RDONLY | O_CLOEXEC), label, &ignored);
}

/*
 * The directory of a process is missing: the process is, or procfs, or procfs is mounted
 * with hidepid=4 and hides it. kill(2) tells whether the process is there.
 */
static int missing_process_error(const char *proc, pid_t pid)
{
	struct statfs fs;

	if (statfs(proc, &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return -ENOENT;
	return pid && (!kill(pid, 0) || errno == EPERM) && has_our_pids(proc) ? -EPERM : -ESRCH;
}

/* A maps file without the directory of its process. */
static int open_maps_fd(int fd, const struct procmap_options *options,
			struct procmap **procmap)
{
	struct procmap *const new = new_handle();
	int err;

	if (!new) {
		close(fd);
		return -ENOMEM;
	}
	new->fd = fd;
	new->maps.fd = fd;
	new->flags = options->flags;
	err = choose_method(new, options->method);
	if (err) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

/*
 * An emulator of programs of another architecture may give a file of its own for the maps of
 * this process, with the addresses that the program sees, but only by the path. Returns the
 * descriptor of such a file; or -1 if that path leads to procfs, or nowhere.
 */
static int open_emulated_maps(const char *dir)
{
	char path[PATH_MAX + sizeof("/maps")];
	struct statfs fs;
	int fd;

	snprintf(path, sizeof(path), "%s/maps", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (!fstatfs(fd, &fs) && fs.f_type != PROC_SUPER_MAGIC))
		return fd;
	close(fd);
	return -1;
}

/* There is nothing but the text: the kernel knows other addresses. */
static int open_emulated(int maps, struct procmap_options *options, struct procmap **procmap)
{
	if (options->method == PROCMAP_ANY_METHOD)
		options->method = PROCMAP_BY_TEXT;
	if (options->method == PROCMAP_BY_TEXT)
		return open_maps_fd(maps, options, procmap);
	close(maps);
	return -ENOTTY;
}

/* @pid: 0 for this process. */
static int open_process(pid_t pid, const struct procmap_options *given,
			struct procmap **procmap)
{
	struct procmap_options options;
	char path[PATH_MAX], name[3 * sizeof(pid)] = "self";
	int dir, maps = -1;

	if (!procmap || take_options(&options, given))
		return -EINVAL;
	if (pid)
		snprintf(name, sizeof(name), "%d", (int)pid);
	if (snprintf(path, sizeof(path), "%s/%s", options.proc, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	if (!pid || pid == getpid())
		maps = open_emulated_maps(path);
	if (maps >= 0)
		return open_emulated(maps, &options, procmap);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? missing_process_error(options.proc, pid) : -errno;
	return open_in(dir, options.method, options.flags, procmap);
}

int procmap_open_pid(pid_t pid, const struct procmap_options *options,
		     struct procmap **procmap)
{
	return pid > 0 ? open_process(pid, options, procmap) : -EINVAL;
}

int procmap_open_self(const struct procmap_options *options, struct procmap **procmap)
{
	return open_process(0, options, procmap);
}

int procmap_open_fd(int fd, const struct procmap_options *given, struct procmap **procmap)
{
	struct procmap_options options;
	struct statfs fs;
	struct stat stat;
	int own;

	if (!procmap || take_options(&options, given))
		return -EINVAL;
	if (fstatfs(fd, &fs) || fstat(fd, &stat))
		return -errno;
	if (fs.f_type != PROC_SUPER_MAGIC)
		return -EINVAL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	return S_ISDIR(stat.st_mode) ? open_in(own, options.method, options.flags, procmap) :
				       open_maps_fd(own, &options, procmap);
}

/* Set @pid to the ID that the process has in the PID namespace of @proc. */
static int read_pidfd(const char *proc, int pidfd, int *pid)
{
	char path[PATH_MAX];
	int err;

	if (fcntl(pidfd, F_GETFD) < 0)
		return -errno;
	if (snprintf(path, sizeof(path), "%s/thread-self/fdinfo/%d", proc, pidfd) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	err = read_number(open(path, O_RDONLY | O_CLOEXEC), "\nPid:\t", pid);
	if (err)
		return err == -ENODATA ? -EBADF : err;
	return *pid > 0 ? 0 : -ESRCH;
}

int procmap_open_pidfd(int pidfd, const struct procmap_options *given,
		       struct procmap **procmap)
{
	struct procmap_options options;
	struct procmap *new;
	int pid, again, err;

	if (!procmap || take_options(&options, given))
		return -EINVAL;
	err = read_pidfd(options.proc, pidfd, &pid);
	if (!err)
		err = procmap_open_pid(pid, given, &new);
	if (err)
		return err;
	/* Once it has been waited for, its ID may be that of another process. */
	err = read_pidfd(options.proc, pidfd, &again);
	if (err) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

int procmap_open_text(const char *text, size_t size,
		      const struct procmap_options *given, struct procmap **procmap)
{
	struct procmap_options options;
	struct procmap *new;
	int err;

	if (!text || !size || !procmap || take_options(&options, given) ||
	    (options.method != PROCMAP_ANY_METHOD &&
	     options.method != PROCMAP_BY_TEXT))
		return -EINVAL;
	new = new_handle();
	if (!new)
		return -ENOMEM;
	new->method = PROCMAP_BY_TEXT;
	new->maps.bytes = (char *)text;	/* never written to */
	new->maps.end = size;
	do {
		err = text_next(&new->maps, 0, 0, &new->found, &new->name);
	} while (!err);
	text_restart(&new->maps);
	if (err != -ENOENT) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

int procmap_reopen(struct procmap *procmap)
{
	struct procmap *new;
	struct procmap old;
	int dir, err;

	if (!procmap || procmap->dir < 0)
		return -EINVAL;
	dir = dup_process(procmap);
	if (dir < 0)
		return dir;
	err = open_in(dir, procmap->any ? PROCMAP_ANY_METHOD : procmap->method,
		      procmap->flags, &new);
	if (err)
		return err;
	old = *procmap;
	new->programs = old.programs + 1;
	*procmap = *new;
	*new = old;
	procmap_close(new);
	return 0;
}

void procmap_close(struct procmap *procmap)
{
	if (!procmap)
		return;
	end_text(procmap);
	text_close(&procmap->smaps);
	scan_free(&procmap->scan);
	free_mounts(&procmap->mounts[0]);
	free_mounts(&procmap->mounts[1]);
	free(procmap->name.bytes);
	free(procmap->part.bytes);
	if (procmap->fd >= 0)
		close(procmap->fd);
	if (procmap->dir >= 0)
		close(procmap->dir);
	if (procmap->process >= 0)
		close(procmap->process);
	free(procmap);
}

/* method_of() may store whether the kernel has the scan, which the caller does not see. */
int procmap_get_method(const struct procmap *procmap)
{
	return procmap ? (int)method_of((struct procmap *)procmap) : -EINVAL;
}

/* The address space is gone: tell an exit from an execve(2). */
static int exit_or_exec_error(const struct procmap *procmap)
{
	const int dir = procmap->process < 0 ? procmap->dir : procmap->process;
	int fd, is_gone, nr_threads = 0;

	if (dir < 0)
		return -ESRCH;
	fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		switch (errno) {
		case EACCES:
		case EPERM:
			return -ESTALE;
		case EMFILE:
		case ENFILE:
		case ENOMEM:
			return -errno;
		default:
			return is_hidden(dir) ? -ESTALE : -ESRCH;
		}
	}
	is_gone = text_is_there(fd);
	close(fd);
	/* It may execute another program at this moment. */
	if (!is_gone || has_memory(dir))
		return -ESTALE;
	/* If the main thread has exited, there may be others. */
	return !read_status(dir, "\nThreads:\t", &nr_threads) &&
	       nr_threads > 1 ? -ESTALE : -ESRCH;
}

int lookup_error(const struct procmap *procmap, int err)
{
	return err == -ESRCH ? exit_or_exec_error(procmap) : err;
}
