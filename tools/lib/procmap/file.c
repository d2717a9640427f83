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
 * file shows. So map the file and look it up in our own maps file. Returns 0, or
 * -ESTALE if it is another file.
 */
static int check_seen_as(const struct procmap *procmap, int fd,
			 const struct procmap_mapping *mapping)
{
	const struct procmap_options options = {
		.size = sizeof(options),
		.method = procmap && procmap->method == PROCMAP_BY_TEXT ?
			  PROCMAP_BY_TEXT : PROCMAP_ANY_METHOD,
	};
	struct procmap_mapping mapped;
	struct procmap *self;
	void *page;
	int err;

	page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	err = procmap_open_self(&options, &self);
	if (!err) {
		err = find_at(self, (uintptr_t)page, 0, &mapped);
		if (!err && !same_file(&mapped, mapping))
			err = -ESTALE;
		procmap_close(self);
	}
	munmap(page, 1);
	return err;
}

static bool is_stat_of(const struct stat *stat,
		       const struct procmap_mapping *mapping)
{
	return stat->st_ino == mapping->inode &&
	       major(stat->st_dev) == mapping->dev_major &&
	       minor(stat->st_dev) == mapping->dev_minor;
}

/* As in the kernel, files of procfs and sysfs have no build ID. */
static int build_id_of(int fd, uint8_t id[PROCMAP_BUILD_ID_MAX])
{
	struct statfs fs;

	return fstatfs(fd, &fs) || fs.f_type == PROC_SUPER_MAGIC ||
	       fs.f_type == SYSFS_MAGIC ? 0 : read_build_id(fd, 0, id);
}

static bool is_build_id_of(int fd, const struct procmap_mapping *mapping)
{
	uint8_t id[PROCMAP_BUILD_ID_MAX];

	return build_id_of(fd, id) == mapping->build_id_size &&
	       !memcmp(id, mapping->build_id, mapping->build_id_size);
}

/*
 * Returns 0, or -ESTALE if it is another file. The inode number may be that of another file
 * by now, and an event may have reported the build ID instead.
 */
static int check_file_of(const struct procmap *procmap, int fd,
			 const struct procmap_mapping *mapping)
{
	struct stat stat;
	int err = 0;

	if (has_file(mapping)) {
		if (fstat(fd, &stat))
			return -errno;
		if (!is_stat_of(&stat, mapping))
			err = check_seen_as(procmap, fd, mapping);
	}
	if (!err && mapping->build_id_size > 0 && !is_build_id_of(fd, mapping))
		return -ESTALE;
	return err;
}

/* Open the file of an O_PATH descriptor for reading, if it is regular. */
static int open_regular(int path_fd)
{
	struct stat stat;

	if (fstat(path_fd, &stat))
		return -errno;
	return S_ISREG(stat.st_mode) ? reopen(path_fd) : -ENODEV;
}

/*
 * Open a regular file. @path is relative to the process's directory in /proc; without a
 * process, it is absolute.
 */
static int open_below(const struct procmap *procmap, const char *path)
{
	int path_fd, fd;

	path_fd = openat(procmap ? procmap->dir : -1, path, ONLY_PATH);
	if (path_fd < 0)
		return -errno;
	fd = open_regular(path_fd);
	close(path_fd);
	return fd;
}

static int open_path(struct procmap *procmap, const char *path,
		     const struct procmap_mapping *mapping)
{
	const int fd = open_below(procmap, path);
	int err;

	if (fd < 0)
		return fd;
	err = check_file_of(procmap, fd, mapping);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* If it @is_new, the mapping was found a moment ago: it need not be compared. */
static int open_map_file(struct procmap *procmap,
			 const struct procmap_mapping *mapping, bool is_new)
{
	char path[sizeof("map_files/-") + 2 * 16];

	snprintf(path, sizeof(path), "map_files/%llx-%llx",
		 (unsigned long long)mapping->start,
		 (unsigned long long)mapping->end);
	return is_new ? open_below(procmap, path) :
			open_path(procmap, path, mapping);
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

static bool has_our_mounts(const struct procmap *procmap)
{
	struct stat theirs, ours;

	return !fstatat(procmap->dir, "ns/mnt", &theirs, 0) &&
	       !stat("/proc/self/ns/mnt", &ours) &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/*
 * A name is looked up below the root of the process, and then below that of the reader:
 * it is relative to that if the file is there, and the process may be in a chroot. In
 * another mount namespace, the root of the reader has other files. Returns the root to
 * try after @root, which is NULL at first; NULL after the last.
 */
static const char *next_root(const struct procmap *procmap, const char *root)
{
	if (!root)
		return "root";
	return *root && has_our_mounts(procmap) ? "" : NULL;
}

/*
 * Open the file by its name below one of the roots. "\012" in the name may be these
 * four characters or an escaped newline, so try both.
 */
static int open_below_root(struct procmap *procmap, const char *root,
			   const struct procmap_mapping *mapping)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s%s", root, mapping->name) < 0)
		return -ENOMEM;
	fd = open_path(procmap, path, mapping);
	if (fd < 0 && unescape(path))
		fd = open_path(procmap, path, mapping);
	free(path);
	return fd;
}

/* The error is that below the root of the process. */
static int open_by_name(struct procmap *procmap,
			const struct procmap_mapping *mapping)
{
	const char *root = NULL;
	int fd, err = 0;

	if (!mapping->name || *mapping->name != '/')
		return -ENODEV;
	while ((root = next_root(procmap, root))) {
		fd = open_below_root(procmap, root, mapping);
		if (fd >= 0)
			return fd;
		if (!err)
			err = fd;
	}
	return err;
}

static int open_mapped(struct procmap *procmap,
		       const struct procmap_mapping *mapping, bool is_new)
{
	int fd;

	if (!has_file(mapping) || procmap->dir < 0)
		return -ENODEV;
	fd = open_map_file(procmap, mapping, is_new);
	if (fd < 0 && fd != -ENODEV)
		fd = open_by_name(procmap, mapping);
	return fd;
}

/*
 * Open the file by the process, or else by its name below @root, where it need not be in
 * the same place: it is compared with the mapping. The error is that by the process.
 */
static int open_anywhere(struct procmap *procmap, const struct procmap_mapping *mapping,
			 const char *root)
{
	int fd = -ENODEV, elsewhere;

	if ((procmap && procmap->dir < 0) ||
	    (!has_file(mapping) && mapping->build_id_size <= 0))
		return -ENODEV;
	if (procmap) {
		fd = open_map_file(procmap, mapping, false);
		if (fd < 0 && fd != -ENODEV)
			fd = open_by_name(procmap, mapping);
		if (fd >= 0 || fd == -ENODEV)
			return fd;
	}
	if (!mapping->name || *mapping->name != '/')
		return fd;
	elsewhere = open_below_root(procmap, root, mapping);
	return elsewhere >= 0 || !procmap ? elsewhere : fd;
}

/**
 * struct procmap_file - see procmap.h
 * @fd: the file. Owned.
 * @has_segments: @segments and @err have been set.
 * @err: what reading the segments returned.
 * @segments: the segments.
 * @build_id_size: size of @build_id in bytes; -1 if it has not been read.
 * @build_id: the build ID.
 */
struct procmap_file {
	int fd;
	bool has_segments;
	int err;
	struct segments segments;
	int build_id_size;
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
};

/* The file keeps @fd, also if this fails. */
static int new_file(int fd, struct procmap_file **file)
{
	struct procmap_file *const new = calloc(1, sizeof(*new));

	if (!new) {
		close(fd);
		return -ENOMEM;
	}
	new->fd = fd;
	new->build_id_size = -1;
	*file = new;
	return 0;
}

int procmap_open_file(struct procmap *procmap, const struct procmap_mapping *mapping,
		      const struct procmap_file_options *given,
		      struct procmap_file **file)
{
	struct procmap_file_options options;
	int fd;

	if (!mapping || !file || take_struct(&options, sizeof(options), given))
		return -EINVAL;
	fd = open_anywhere(procmap, mapping, options.root ? options.root : "");
	return fd < 0 ? fd : new_file(fd, file);
}

int procmap_open_file_fd(int fd, struct procmap_file **file)
{
	int own;

	if (!file)
		return -EINVAL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? -errno : new_file(own, file);
}

int procmap_file_fd(const struct procmap_file *file)
{
	return file ? file->fd : -EINVAL;
}

/* Returns 0, or why the file has no segments. */
static int need_segments(struct procmap_file *file)
{
	if (!file->has_segments) {
		file->err = read_segments(file->fd, &file->segments);
		file->has_segments = file->err != -ENOMEM;
	}
	return file->err;
}

int procmap_file_address(struct procmap_file *file, uint64_t offset, uint64_t *address)
{
	int err;

	if (!file || !address)
		return -EINVAL;
	err = need_segments(file);
	return err ? err : address_in(&file->segments, offset, address);
}

int procmap_file_mapped_address(struct procmap_file *file,
				const struct procmap_mapping *mapping, uint64_t addr,
				uint64_t *address)
{
	int err;

	if (!file || !mapping || !address || addr < mapping->start ||
	    addr >= mapping->end)
		return -EINVAL;
	err = need_segments(file);
	return err ? err : mapped_address_in(&file->segments, mapping, addr, address);
}

int procmap_file_build_id(struct procmap_file *file,
			  uint8_t build_id[PROCMAP_BUILD_ID_MAX])
{
	if (!file || !build_id)
		return -EINVAL;
	if (file->build_id_size < 0)
		file->build_id_size = build_id_of(file->fd, file->build_id);
	memcpy(build_id, file->build_id, file->build_id_size);
	return file->build_id_size;
}

void procmap_close_file(struct procmap_file *file)
{
	if (!file)
		return;
	close(file->fd);
	free(file->segments.all);
	free(file);
}

/* @is_new: see open_map_file(). */
static void read_build_id_of_file(struct procmap *procmap,
				  struct procmap_mapping *mapping, bool is_new)
{
	int fd;

	fd = procmap->fd < 0 ? -ENODEV : open_mapped(procmap, mapping, is_new);
	if (fd == -ENODEV && procmap->fd >= 0 && procmap->dir >= 0) {
		mapping->build_id_size = 0;	/* not a regular file */
	} else if (fd < 0) {
		mapping->build_id_size = fd;
	} else {
		mapping->build_id_size = build_id_of(fd, mapping->build_id);
		close(fd);
	}
}

static void read_build_id_of_vdso(struct procmap *procmap,
				  struct procmap_mapping *mapping)
{
	const int fd = procmap->dir < 0 ? -1 :
		       openat(procmap->dir, "mem", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	mapping->build_id_size = read_build_id(fd, mapping->start,
					       mapping->build_id);
	close(fd);
}

void find_build_id(struct procmap *procmap, struct procmap_mapping *mapping)
{
	const bool by_text = procmap->method == PROCMAP_BY_TEXT;

	mapping->build_id_size = 0;
	if (has_file(mapping)) {
		/* If a query does not return it, the mapping is another one by now. */
		if (by_text || query_build_id(procmap, mapping))
			read_build_id_of_file(procmap, mapping, by_text);
	} else if (!strcmp(mapping->name, "[vdso]")) {
		read_build_id_of_vdso(procmap, mapping);
	}
}

static bool stat_agrees(struct procmap *procmap,
			const struct procmap_mapping *mapping)
{
	const char *root = NULL;
	bool agrees = false;
	struct stat stat;
	char *path;

	while (!agrees && (root = next_root(procmap, root))) {
		if (asprintf(&path, "%s%s", root, mapping->name) < 0)
			return false;
		agrees = !fstatat(procmap->dir, path, &stat, AT_NO_AUTOMOUNT) &&
			 is_stat_of(&stat, mapping);
		free(path);
	}
	return agrees;
}

/* Return whether there is nothing at the path, or another file. */
static bool is_missing(const struct procmap *procmap, int err)
{
	return err == -ESTALE || ((err == -ENOENT || err == -ENOTDIR) &&
				  !faccessat(procmap->dir, "root", F_OK, 0));
}

/*
 * Without permission to look, or if the main thread has exited, what the kernel appended
 * to the name has to do.
 */
bool is_deleted(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	int fd;

	if (procmap->dir < 0 || *mapping->name != '/' ||
	    stat_agrees(procmap, mapping))
		return false;
	fd = open_by_name(procmap, mapping);
	if (fd < 0)
		return is_missing(procmap, fd) ||
		       mapping->name_len != name_len_of_file(mapping);
	close(fd);
	return false;
}
