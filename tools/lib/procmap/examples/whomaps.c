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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct file {
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
};

/*
 * Identify a file as maps files do, by mapping it here: on btrfs and overlayfs, stat(2)
 * returns another device.
 */
static int identify(const char *path, struct file *file)
{
	const struct procmap_mapping *mapping;
	struct procmap *self = NULL;
	int fd, err;
	void *page;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	err = page == MAP_FAILED ? -errno : procmap_open_self(NULL, &self);
	close(fd);
	if (!err)
		err = procmap_find(self, (uintptr_t)page, 0, &mapping);
	if (!err)
		*file = (struct file) {
			mapping->inode, mapping->dev_major, mapping->dev_minor,
		};
	if (page != MAP_FAILED)
		munmap(page, 1);
	procmap_close(self);
	return err;
}

/* Returns 0, or the error that ended the walk before the last mapping. */
static int print_process(pid_t pid, const struct file *file)
{
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	uint64_t cursor = 0;
	int err;

	err = procmap_open_pid(pid, NULL, &procmap);
	if (err)
		return err;
	while (!(err = procmap_next(procmap, &cursor, PROCMAP_FILE_BACKED, &mapping))) {
		if (mapping->inode != file->inode ||
		    mapping->dev_major != file->dev_major ||
		    mapping->dev_minor != file->dev_minor)
			continue;
		printf("%d %" PRIx64 "-%" PRIx64 " %c%c%c%c %s\n", (int)pid,
		       mapping->start, mapping->end,
		       mapping->flags & PROCMAP_READABLE ? 'r' : '-',
		       mapping->flags & PROCMAP_WRITABLE ? 'w' : '-',
		       mapping->flags & PROCMAP_EXECUTABLE ? 'x' : '-',
		       mapping->flags & PROCMAP_SHARED ? 's' : 'p', mapping->name);
	}
	procmap_close(procmap);
	return err == -ENOENT ? 0 : err;
}

int main(int argc, char **argv)
{
	glob_t processes;
	struct file file = { .inode = 0 };
	int err, unseen = 0, status = 0;
	size_t i;

	if (argc != 2) {
		fprintf(stderr, "usage: whomaps FILE\n");
		return 2;
	}
	err = identify(argv[1], &file);
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

		err = print_process(pid, &file);
		if (err == -EACCES || err == -EPERM) {
			unseen++;
		} else if (err && err != -ESRCH && err != -ESTALE) {
			/* Not one that exits, executes a program, or is the kernel's. */
			fprintf(stderr, "%d: %s\n", (int)pid, strerror(-err));
			status = 1;
		}
	}
	if (unseen)
		fprintf(stderr, "no permission to see %d of the processes\n", unseen);
	globfree(&processes);
	return status;
}
