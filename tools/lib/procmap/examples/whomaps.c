// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Print the processes that map a file, as a package manager does before it replaces
 * the file: the process ID, the ranges and their permissions.
 *
 *	cc whomaps.c $(pkg-config --cflags --libs libprocmap)
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <procmap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_file(const char *path, struct procmap_file **file)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat stat;
	int err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &stat) || !S_ISREG(stat.st_mode) ? -ENODEV :
							   procmap_open_file_fd(fd, file);
	close(fd);
	return err;
}

static void print_mapping(pid_t pid, const struct procmap_mapping *mapping)
{
	printf("%d %" PRIx64 "-%" PRIx64 " %c%c%c%c %s\n", (int)pid,
	       mapping->start, mapping->end,
	       mapping->flags & PROCMAP_READABLE ? 'r' : '-',
	       mapping->flags & PROCMAP_WRITABLE ? 'w' : '-',
	       mapping->flags & PROCMAP_EXECUTABLE ? 'x' : '-',
	       mapping->flags & PROCMAP_SHARED ? 's' : 'p', mapping->name);
}

/*
 * Returns 0, or the error that ended the walk before the last mapping; -EXDEV if some
 * mappings may be of another file, as on btrfs without the permission to see more.
 */
static int print_process(pid_t pid, struct procmap_file *file)
{
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	bool may_be_others = false;
	uint64_t cursor = 0;
	int err;

	err = procmap_open_pid(pid, NULL, &procmap);
	if (err)
		return err;
	while (!(err = procmap_find_file(procmap, file, &cursor, 0, &mapping)) ||
	       err == -EXDEV) {
		if (err)
			may_be_others = true;
		else
			print_mapping(pid, mapping);
	}
	procmap_close(procmap);
	if (err != -ENOENT)
		return err;
	return may_be_others ? -EXDEV : 0;
}

int main(int argc, char **argv)
{
	glob_t processes;
	struct procmap_file *file;
	int err, unseen = 0, status = 0;
	size_t i;

	if (argc != 2) {
		fprintf(stderr, "usage: whomaps FILE\n");
		return 2;
	}
	err = open_file(argv[1], &file);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	if (glob("/proc/[0-9]*", GLOB_NOSORT, NULL, &processes)) {
		fprintf(stderr, "/proc has no processes\n");
		return 1;
	}
	for (i = 0; i < processes.gl_pathc; i++) {
		const pid_t pid = atoi(processes.gl_pathv[i] + strlen("/proc/"));

		err = print_process(pid, file);
		if (err == -EACCES || err == -EPERM) {
			unseen++;
		} else if (err == -EXDEV) {
			fprintf(stderr, "%d: may map it, or a file like it: run as root\n",
				(int)pid);
			status = 1;
		} else if (err && err != -ESRCH && err != -ESTALE) {
			/* Not one that exits, executes a program, or is the kernel's. */
			fprintf(stderr, "%d: %s\n", (int)pid, strerror(-err));
			status = 1;
		}
	}
	if (unseen)
		fprintf(stderr, "no permission to see %d of the processes\n", unseen);
	globfree(&processes);
	procmap_close_file(file);
	return status;
}
