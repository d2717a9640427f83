// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Open the mapped file, and read its build ID for the text method.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "internal.h"

/* Opening a device or a FIFO with O_PATH has no side effects. */
#define ONLY_PATH	(O_PATH | O_CLOEXEC)

/*
 * On btrfs and overlayfs, stat(2) returns another device or inode than the maps
 * file shows. So map the file and look it up in our own maps file.
 */
static bool is_seen_as(int fd, const struct procmap_mapping *mapping)
{
	struct procmap_mapping mapped;
	struct procmap *self;
	bool same = false;
	void *page;

	page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return false;
	if (!procmap_open_self(PROCMAP_ANY_WAY, &self)) {
		same = !procmap_find(self, (uintptr_t)page, 0, &mapped) &&
		       same_file(&mapped, mapping);
		procmap_close(self);
	}
	munmap(page, 1);
	return same;
}

static bool is_file_of(int fd, const struct procmap_mapping *mapping)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return false;
	if (stat.st_ino == mapping->inode &&
	    major(stat.st_dev) == mapping->dev_major &&
	    minor(stat.st_dev) == mapping->dev_minor)
		return true;
	return is_seen_as(fd, mapping);
}

/* Open the file of an O_PATH descriptor for reading, if it is regular. */
static int open_regular(int path_fd)
{
	struct stat stat;

	if (fstat(path_fd, &stat))
		return -errno;
	return S_ISREG(stat.st_mode) ? reopen(path_fd) : -ENODEV;
}

/* Open a regular file. @path is relative to the process's directory in /proc. */
static int open_below(const struct procmap *procmap, const char *path)
{
	int path_fd, fd;

	path_fd = openat(procmap->dir, path, ONLY_PATH);
	if (path_fd < 0)
		return -errno;
	fd = open_regular(path_fd);
	close(path_fd);
	return fd;
}

static int open_map_file(struct procmap *procmap,
			 const struct procmap_mapping *mapping)
{
	char path[sizeof("map_files/-") + 2 * 16];

	snprintf(path, sizeof(path), "map_files/%llx-%llx",
		 (unsigned long long)mapping->start,
		 (unsigned long long)mapping->end);
	return open_below(procmap, path);
}

static int open_path(struct procmap *procmap, const char *path,
		     const struct procmap_mapping *mapping)
{
	int fd = open_below(procmap, path);

	if (fd >= 0 && !is_file_of(fd, mapping)) {
		close(fd);
		fd = -ESTALE;
	}
	return fd;
}

/* Replace each \012 by a newline. Returns whether there was any. */
static bool unescape(char *path)
{
	const char *from = path;
	bool any = false;
	char *to = path;

	while (*from) {
		if (!strncmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 4;
			any = true;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return any;
}

/*
 * Open the file by its name. "\012" in the name may be these four characters or
 * an escaped newline, so try both.
 */
static int open_by_name(struct procmap *procmap,
			const struct procmap_mapping *mapping)
{
	char *path;
	int fd;

	if (!mapping->name || *mapping->name != '/')
		return -ENODEV;
	if (asprintf(&path, "root%s", mapping->name) < 0)
		return -ENOMEM;
	fd = open_path(procmap, path, mapping);
	if (fd < 0 && unescape(path))
		fd = open_path(procmap, path, mapping);
	free(path);
	return fd;
}

int procmap_open_file(struct procmap *procmap,
		      const struct procmap_mapping *mapping)
{
	int fd;

	if (!procmap || !mapping)
		return -EINVAL;
	if (!has_file(mapping) || procmap->dir < 0)
		return -ENODEV;
	fd = open_map_file(procmap, mapping);
	if (fd < 0 && fd != -ENODEV)
		fd = open_by_name(procmap, mapping);
	return fd;
}

/* As in the kernel, only files that use the page cache have a build ID. */
static bool is_in_page_cache(int fd)
{
	struct statx stat;
	struct statfs fs;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &stat) || fstatfs(fd, &fs))
		return false;
	return !(stat.stx_attributes & STATX_ATTR_DAX) &&
	       (unsigned int)fs.f_type != HUGETLBFS_MAGIC &&
	       fs.f_type != PROC_SUPER_MAGIC && fs.f_type != SYSFS_MAGIC;
}

void find_build_id(struct procmap *procmap, struct procmap_mapping *mapping)
{
	struct procmap_mapping *const last = &procmap->last;
	int fd;

	mapping->build_id_size = 0;
	if (!has_file(mapping))
		return;
	if (last->inode && same_file(last, mapping)) {
		mapping->build_id_size = last->build_id_size;
		memcpy(mapping->build_id, last->build_id,
		       sizeof(mapping->build_id));
		return;
	}

	fd = procmap->fd < 0 ? -ENODEV : procmap_open_file(procmap, mapping);
	if (fd == -ENODEV && procmap->fd >= 0 && procmap->dir >= 0) {
		mapping->build_id_size = 0;	/* not a regular file */
	} else if (fd < 0) {
		mapping->build_id_size = fd;
	} else {
		if (is_in_page_cache(fd))
			mapping->build_id_size =
				read_build_id(fd, mapping->build_id);
		close(fd);
	}
	*last = *mapping;
}
