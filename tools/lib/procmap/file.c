// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Opened files: their ELF addresses and build IDs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/**
 * struct procmap_file - see procmap.h
 * @fd: the file. Owned.
 * @dir: the directory in procfs of the process that maps it; or -1. Owned.
 * @procmap: a handle on that process, opened on first use; or NULL. Owned.
 * @begin: where the ELF file begins in it, in bytes.
 * @has_segments: @segments and @err have been set.
 * @err: what reading the segments returned.
 * @segments: the segments.
 * @has_build_id: @build_id_size and @build_id have been set.
 * @build_id_size: size of @build_id in bytes; or -errno.
 * @build_id: the build ID.
 * @has_identity: @identity has been set.
 * @identity: the file as maps shows it.
 */
struct procmap_file {
	int fd;
	int dir;
	struct procmap *procmap;
	uint64_t begin;
	bool has_segments;
	int err;
	struct segments segments;
	bool has_build_id;
	int build_id_size;
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
	bool has_identity;
	struct identity identity;
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
	new->dir = -1;
	*file = new;
	return 0;
}

/* Open by the process, or else below @options->root. Returns the error of the former. */
static int open_file(struct procmap *procmap, const struct procmap_mapping *mapping,
		     const struct procmap_file_options *options)
{
	int fd = -ENODEV, elsewhere, dir;
	char path[PATH_MAX];

	if (procmap) {
		fd = open_mapped(procmap, mapping);
		if (fd >= 0 || fd == -ENODEV ||
		    (fd == -ESTALE && mapping->build_id_size <= 0) ||
		    procmap->flags & PROCMAP_NO_SERVERS)
			return fd;
		elsewhere = open_elsewhere(procmap->dir, mapping, options->root);
		return elsewhere >= 0 ? elsewhere : fd;
	}
	if (snprintf(path, sizeof(path), "%s/self", options->proc) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = open_elsewhere(dir, mapping, options->root);
	close(dir);
	return fd;
}

int procmap_open_file(struct procmap *procmap, const struct procmap_mapping *mapping,
		      const struct procmap_file_options *given,
		      struct procmap_file **file)
{
	struct procmap_file_options options;
	struct procmap_file *new;
	int fd, err;

	if (!mapping || !file || take_struct(&options, sizeof(options), given))
		return -EINVAL;
	if (!options.root)
		options.root = "";
	if (!options.proc)
		options.proc = "/proc";
	fd = open_file(procmap, mapping, &options);
	err = fd < 0 ? fd : new_file(fd, &new);
	if (err)
		return err;
	if (procmap)
		new->dir = dup_process(procmap);
	if (procmap && new->dir < 0) {
		err = new->dir;
		procmap_close_file(new);
		return err;
	}
	*file = new;
	return 0;
}

int procmap_open_path(struct procmap *procmap, const char *path,
		      struct procmap_file **file)
{
	int fd;

	if (!procmap || !path || !file)
		return -EINVAL;
	fd = open_in_root(procmap, path);
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

int need_identity(struct procmap_file *file, int dir, const struct identity **identity)
{
	const int err = file->has_identity ? 0 : identify(dir, file->fd, &file->identity);

	file->has_identity = !err;
	*identity = &file->identity;
	return err;
}

int procmap_file_set_begin(struct procmap_file *file, uint64_t begin)
{
	if (!file)
		return -EINVAL;
	if (!is_elf(file->fd, begin))
		return -ENOEXEC;
	file->begin = begin;
	free(file->segments.all);
	file->segments = (struct segments) { .nr = 0 };
	file->has_segments = false;
	file->has_build_id = false;
	return 0;
}

/* Returns 0, or the error of read_segments(). */
static int need_segments(struct procmap_file *file)
{
	if (!file->has_segments) {
		file->err = read_segments(file->fd, file->begin, &file->segments);
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
	if (!err && offset < file->begin)
		err = -ENOENT;
	return err ? err : address_in(&file->segments, offset - file->begin, address);
}

/* Without a process, or rights on it, there is no handle. Returns 0, or why one is missing. */
static int need_process(struct procmap_file *file)
{
	int dir, err;

	if (file->procmap || file->dir < 0)
		return 0;
	dir = fcntl(file->dir, F_DUPFD_CLOEXEC, 0);
	err = dir < 0 ? -errno : open_in(dir, PROCMAP_ANY_METHOD, 0, &file->procmap);
	return is_limit_of_caller(err) ? err : 0;
}

/*
 * Find the next mapping of the file behind @near that begins below @to, with its offset in the
 * image. No other file with the same device and inode in maps is mapped within a load of it.
 */
static bool find_near(struct procmap_file *file, const struct procmap_mapping *mapping,
		      uint64_t to, struct procmap_mapping *near)
{
	const unsigned int flags = PROCMAP_COVERING_OR_NEXT | PROCMAP_FILE_BACKED;

	while (file->procmap && !find_at(file->procmap, near->end, flags, near) &&
	       near->start < to) {
		if (same_file(near, mapping)) {
			near->offset -= file->begin;
			return true;
		}
	}
	return false;
}

/* Return whether the mapping, or a part of it, is still mapped at the address. */
static bool is_there(struct procmap_file *file, const struct procmap_mapping *mapping,
		     uint64_t addr)
{
	struct procmap_mapping there = { .end = addr };

	return find_near(file, mapping, addr + 1, &there) &&
	       there.start - there.offset == mapping->start - mapping->offset;
}

/*
 * Look at the mappings around the address for the load bias: those of the same load are less
 * than its size away. All that tell one have to agree: the file may be mapped several times.
 * @mapping has its offset in the image.
 */
static int address_by_load(struct procmap_file *file, const struct procmap_mapping *mapping,
			   uint64_t addr, uint64_t *address)
{
	const struct segments *const segments = &file->segments;
	const uint64_t size = segments->high - segments->low;
	const uint64_t to = addr < UINT64_MAX - size ? addr + size : UINT64_MAX;
	struct procmap_mapping near = { .end = addr > size ? addr - size : 0 };
	const bool is_alone = !is_there(file, mapping, addr);
	bool is_loaded = false;
	uint64_t bias, at, found;

	while (!is_alone && find_near(file, mapping, to, &near)) {
		if (!find_bias(segments, &near, &bias) ||
		    addr - bias - segments->low >= size)
			continue;
		if (mapped_address_in(segments, mapping, addr, &bias, false, &at) ||
		    (is_loaded && at != found))
			return -ENOENT;
		is_loaded = true;
		found = at;
	}
	if (!is_loaded)
		return mapped_address_in(segments, mapping, addr, NULL, is_alone, address);
	*address = found;
	return 0;
}

int procmap_file_mapped_address(struct procmap_file *file,
				const struct procmap_mapping *mapping, uint64_t addr,
				uint64_t *address)
{
	struct procmap_mapping in_image;
	uint64_t bias;
	int err;

	if (!file || !mapping || !address || addr < mapping->start ||
	    addr >= mapping->end)
		return -EINVAL;
	err = need_segments(file);
	if (!err && mapping->offset < file->begin)
		err = -ENOENT;
	if (err)
		return err;
	in_image = *mapping;
	in_image.offset -= file->begin;
	if (find_bias(&file->segments, &in_image, &bias))
		return mapped_address_in(&file->segments, &in_image, addr, &bias, false,
					 address);
	err = need_process(file);
	return err ? err : address_by_load(file, &in_image, addr, address);
}

int procmap_file_build_id(struct procmap_file *file,
			  uint8_t build_id[PROCMAP_BUILD_ID_MAX])
{
	if (!file || !build_id)
		return -EINVAL;
	if (!file->has_build_id)
		file->build_id_size = build_id_of(file->fd, file->begin, file->build_id);
	file->has_build_id = true;
	if (file->build_id_size > 0)
		memcpy(build_id, file->build_id, file->build_id_size);
	return file->build_id_size;
}

void procmap_close_file(struct procmap_file *file)
{
	if (!file)
		return;
	close(file->fd);
	if (file->dir >= 0)
		close(file->dir);
	procmap_close(file->procmap);
	free(file->segments.all);
	free(file);
}
