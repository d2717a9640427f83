// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Handles, and the lookup of one mapping by PROCMAP_QUERY or in the text.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "internal.h"

#define CALL_FLAGS	(FILTERS | PROCMAP_COVERING_OR_NEXT |	\
			 PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_PAGE_SIZE)

SAME(PROCMAP_READABLE, PROCMAP_QUERY_VMA_READABLE);
SAME(PROCMAP_WRITABLE, PROCMAP_QUERY_VMA_WRITABLE);
SAME(PROCMAP_EXECUTABLE, PROCMAP_QUERY_VMA_EXECUTABLE);
SAME(PROCMAP_SHARED, PROCMAP_QUERY_VMA_SHARED);
SAME(PROCMAP_FILE_BACKED, PROCMAP_QUERY_FILE_BACKED_VMA);

/* As in the text, so that all methods return the same names. */
static const char newline[] = "\\012";
#define NEWLINE_LEN	(sizeof(newline) - 1)

int name_reserve(struct name_buffer *name, size_t size)
{
	char *bytes;

	if (size <= name->size)
		return 0;
	size = size < PATH_MAX ? PATH_MAX : size * 2;
	bytes = realloc(name->bytes, size);
	if (!bytes)
		return -ENOMEM;
	name->bytes = bytes;
	name->size = size;
	return 0;
}

int reopen(int fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	int new;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	new = open(path, O_RDONLY | O_CLOEXEC);
	return new < 0 ? -errno : new;
}

/* Open the directory in /proc of the process that the maps file belongs to. */
static int open_dir_of(int fd)
{
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	static const char maps[] = "/maps";
	char path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < (ssize_t)sizeof(maps) - 1)
		return -1;
	path[len] = '\0';
	len -= sizeof(maps) - 1;
	if (strcmp(path + len, maps))
		return -1;
	path[len] = '\0';
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int query(int fd, struct procmap_query *query)
{
	int ret;

	query->size = sizeof(*query);
	do {
		ret = ioctl(fd, PROCMAP_QUERY, query);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

/* Returns 0 if PROCMAP_QUERY works, or its error. */
static int probe_ioctl(int fd)
{
	struct procmap_query any = {
		.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
	};
	const int err = query(fd, &any);

	return err == -ENOENT ? 0 : err;
}

/* Does this error of an ioctl mean that the next method should be tried? */
static bool is_unavailable(int err)
{
	return err == -ENOTTY || err == -EACCES || err == -EPERM ||
	       err == -ENOSYS;
}

/* Read the text through a file of our own, if we may open one. */
static int start_text(struct procmap *procmap)
{
	procmap->maps.fd = reopen(procmap->fd);
	if (procmap->maps.fd < 0)
		procmap->maps.fd = fcntl(procmap->fd, F_DUPFD_CLOEXEC, 0);
	return procmap->maps.fd < 0 ? -errno : 0;
}

static int choose_way(struct procmap *procmap, enum procmap_way way)
{
	int err;

	if (way == PROCMAP_ANY_WAY || way == PROCMAP_BY_SCAN) {
		procmap->way = PROCMAP_BY_SCAN;
		err = scan_probe(procmap->fd);
		if (!is_unavailable(err) || way == PROCMAP_BY_SCAN)
			return err;
	}
	if (way == PROCMAP_ANY_WAY || way == PROCMAP_BY_IOCTL) {
		procmap->way = PROCMAP_BY_IOCTL;
		err = probe_ioctl(procmap->fd);
		if (!is_unavailable(err) || way == PROCMAP_BY_IOCTL)
			return err;
	}
	procmap->way = PROCMAP_BY_TEXT;
	err = start_text(procmap);
	if (err)
		return err;
	return text_probe(&procmap->maps);
}

static struct procmap *new_handle(void)
{
	struct procmap *const procmap = calloc(1, sizeof(*procmap));

	if (procmap) {
		procmap->fd = -1;
		procmap->dir = -1;
		procmap->maps.fd = -1;
		procmap->smaps.fd = -1;
	}
	return procmap;
}

static bool is_way(enum procmap_way way)
{
	return way == PROCMAP_ANY_WAY || way == PROCMAP_BY_IOCTL ||
	       way == PROCMAP_BY_TEXT || way == PROCMAP_BY_SCAN;
}

/* Open a handle by the process's directory in /proc, which the handle keeps. */
static int open_dir(const char *path, enum procmap_way way,
		    struct procmap **procmap)
{
	struct procmap *const new = new_handle();
	int err;

	if (!new)
		return -ENOMEM;
	new->own_fd = true;
	new->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (new->dir >= 0)
		new->fd = openat(new->dir, "maps", O_RDONLY | O_CLOEXEC);
	err = new->fd < 0 ? -errno : choose_way(new, way);
	if (err) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

int procmap_open_pid(pid_t pid, enum procmap_way way, struct procmap **procmap)
{
	char path[sizeof("/proc/") + 3 * sizeof(pid)];

	if (pid <= 0 || !is_way(way) || !procmap)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return open_dir(path, way, procmap);
}

int procmap_open_self(enum procmap_way way, struct procmap **procmap)
{
	if (!is_way(way) || !procmap)
		return -EINVAL;
	return open_dir("/proc/self", way, procmap);
}

static int check_fd(int fd)
{
	const int mode = fcntl(fd, F_GETFL);
	struct statfs fs;
	struct stat stat;

	if (mode < 0 || (mode & O_ACCMODE) == O_WRONLY || (mode & O_PATH))
		return -EBADF;
	if (fstatfs(fd, &fs) || fstat(fd, &stat))
		return -errno;
	return fs.f_type == PROC_SUPER_MAGIC && S_ISREG(stat.st_mode) ? 0 :
									-EINVAL;
}

int procmap_open_fd(int fd, enum procmap_way way, struct procmap **procmap)
{
	struct procmap *new;
	int err;

	if (!is_way(way) || !procmap)
		return -EINVAL;
	err = check_fd(fd);
	if (err)
		return err;
	new = new_handle();
	if (!new)
		return -ENOMEM;
	new->fd = fd;
	new->dir = open_dir_of(fd);
	err = choose_way(new, way);
	if (err) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

int procmap_open_text(const char *text, size_t size, struct procmap **procmap)
{
	struct procmap *new;

	if (!text || !size || !procmap)
		return -EINVAL;
	new = new_handle();
	if (!new)
		return -ENOMEM;
	new->way = PROCMAP_BY_TEXT;
	new->maps.bytes = (char *)text;	/* never written to */
	new->maps.end = size;
	*procmap = new;
	return 0;
}

void procmap_close(struct procmap *procmap)
{
	if (!procmap)
		return;
	text_close(&procmap->maps);
	text_close(&procmap->smaps);
	scan_free(&procmap->scan);
	free(procmap->name.bytes);
	if (procmap->own_fd && procmap->fd >= 0)
		close(procmap->fd);
	if (procmap->dir >= 0)
		close(procmap->dir);
	free(procmap);
}

int procmap_get_way(const struct procmap *procmap)
{
	return procmap ? (int)procmap->way : -EINVAL;
}

/* The text to read: smaps for page sizes if it can be opened, or else maps. */
static struct text *text_for(struct procmap *procmap, unsigned int flags)
{
	struct text *const smaps = &procmap->smaps;

	if (!(flags & PROCMAP_WANT_PAGE_SIZE) || procmap->dir < 0)
		return &procmap->maps;
	if (smaps->fd < 0)
		smaps->fd = openat(procmap->dir, "smaps", O_RDONLY | O_CLOEXEC);
	return smaps->fd < 0 ? &procmap->maps : smaps;
}

static int find_in_text(struct procmap *procmap, uint64_t addr,
			unsigned int flags, bool restart,
			struct procmap_mapping *mapping)
{
	struct text *const text = text_for(procmap, flags);
	int err;

	/* Positions in maps and smaps are unrelated, so a switch restarts. */
	if (restart || procmap->walk != text || addr < text->passed) {
		text_restart(text);
		procmap->last.inode = 0;
	}
	procmap->walk = text;
	err = text_next(text, addr, flags, mapping, &procmap->name);
	if (!err && (flags & PROCMAP_WANT_BUILD_ID))
		find_build_id(procmap, mapping);
	return err;
}

/* In place, from the last byte to the first. */
int escape_name(struct name_buffer *name, size_t *len)
{
	size_t nr_newlines = 0, i;
	char *to;
	int err;

	if (!memchr(name->bytes, '\n', *len))
		return 0;
	for (i = 0; i < *len; i++)
		nr_newlines += name->bytes[i] == '\n';
	err = name_reserve(name, *len + nr_newlines * (NEWLINE_LEN - 1) + 1);
	if (err)
		return err;

	i = *len;
	*len += nr_newlines * (NEWLINE_LEN - 1);
	to = name->bytes + *len;
	*to = '\0';
	while (i--) {
		if (name->bytes[i] != '\n') {
			*--to = name->bytes[i];
		} else {
			to -= NEWLINE_LEN;
			memcpy(to, newline, NEWLINE_LEN);
		}
	}
	return 0;
}

int take_from_text(struct procmap *procmap, uint64_t addr, unsigned int flags,
		   struct procmap_mapping *mapping)
{
	const struct procmap_mapping by_ioctl = *mapping;
	int err;

	if (procmap->maps.fd < 0) {
		err = start_text(procmap);
		if (err)
			return err;
	}
	text_restart(&procmap->maps);
	err = text_next(&procmap->maps, addr, flags & FILTERS, mapping,
			&procmap->name);
	if (!err && same_file(mapping, &by_ioctl)) {
		mapping->page_size = by_ioctl.page_size;
		mapping->build_id_size = by_ioctl.build_id_size;
	}
	return err;
}

int find_by_ioctl(struct procmap *procmap, uint64_t addr, unsigned int flags,
		  struct procmap_mapping *mapping)
{
	struct procmap_query answer = {
		.query_addr = addr,
		.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA |
			       (flags & FILTERS),
	};
	bool without_name = false;
	size_t name_len;
	int err;

	err = name_reserve(&procmap->name, PATH_MAX);
	if (err)
		return err;
	answer.vma_name_addr = (uintptr_t)procmap->name.bytes;
	answer.vma_name_size = PATH_MAX;
	if (flags & PROCMAP_WANT_BUILD_ID) {
		answer.build_id_addr = (uintptr_t)mapping->build_id;
		answer.build_id_size = sizeof(mapping->build_id);
	}
	err = query(procmap->fd, &answer);
	if (err == -ENAMETOOLONG) {
		without_name = true;
		answer.vma_name_addr = 0;
		answer.vma_name_size = 0;
		answer.build_id_size = answer.build_id_addr ?
				       sizeof(mapping->build_id) : 0;
		err = query(procmap->fd, &answer);
	}
	if (err)
		return err;
	/* A walk has to end, whatever the kernel returns. */
	if (answer.vma_end <= addr || answer.vma_end <= answer.vma_start ||
	    answer.vma_name_size > PATH_MAX ||
	    answer.build_id_size > sizeof(mapping->build_id))
		return -EPROTO;

	mapping->start = answer.vma_start;
	mapping->end = answer.vma_end;
	mapping->offset = answer.vma_offset;
	mapping->inode = answer.inode;
	mapping->page_size = answer.vma_page_size;
	mapping->flags = answer.vma_flags & PERMISSIONS;
	mapping->dev_major = answer.dev_major;
	mapping->dev_minor = answer.dev_minor;
	mapping->build_id_size = answer.build_id_size;
	if (without_name)
		return take_from_text(procmap, addr, flags, mapping);

	name_len = answer.vma_name_size ? answer.vma_name_size - 1 : 0;
	procmap->name.bytes[name_len] = '\0';
	err = escape_name(&procmap->name, &name_len);
	if (err)
		return err;
	mapping->name = procmap->name.bytes;
	mapping->name_len = name_len;
	return 0;
}

int find_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
	      bool restart, struct procmap_mapping *mapping)
{
	switch (procmap->way) {
	case PROCMAP_BY_SCAN:
		return scan_find(procmap, addr, flags, restart, mapping);
	case PROCMAP_BY_IOCTL:
		return find_by_ioctl(procmap, addr, flags, mapping);
	default:
		return find_in_text(procmap, addr, flags, restart, mapping);
	}
}

int procmap_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 struct procmap_mapping *mapping)
{
	int err;

	if (!procmap || !mapping || (flags & ~CALL_FLAGS))
		return -EINVAL;
	err = find_from(procmap, addr, flags, true, mapping);
	if (!err && mapping->start > addr && !(flags & PROCMAP_COVERING_OR_NEXT))
		err = -ENOENT;
	return err;
}

int procmap_next(struct procmap *procmap, uint64_t *cursor, unsigned int flags,
		 struct procmap_mapping *mapping)
{
	int err;

	if (!procmap || !cursor || !mapping ||
	    (flags & ~CALL_FLAGS) || (flags & PROCMAP_COVERING_OR_NEXT))
		return -EINVAL;
	err = find_from(procmap, *cursor, flags, false, mapping);
	if (err)
		return err;
	if (mapping->start < *cursor) {
		if (has_file(mapping))
			mapping->offset += *cursor - mapping->start;
		mapping->start = *cursor;
	}
	*cursor = mapping->end;
	return 0;
}
