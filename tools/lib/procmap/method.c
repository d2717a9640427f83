// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The method of a handle, an ioctl or the text, and lookups by it.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "internal.h"

bool is_method(enum procmap_method method)
{
	return method == PROCMAP_ANY_METHOD || method == PROCMAP_BY_QUERY ||
	       method == PROCMAP_BY_TEXT || method == PROCMAP_BY_SCAN;
}

/* Return whether the next method should be tried after this error of an ioctl. */
static bool is_unavailable(int err)
{
	return err == -ENOTTY || err == -EACCES || err == -EPERM ||
	       err == -ENOSYS;
}

/*
 * Every kernel that has the scan has the query, too, which also finds a process gone, and
 * is all that procmap_find() needs.
 */
static int probe(int fd, enum procmap_method method)
{
	int err = query_probe(fd);

	if (!err && method == PROCMAP_BY_SCAN)
		err = scan_probe(fd);
	return err < 0 ? err : 0;
}

static int choose_ioctl(struct procmap *procmap, enum procmap_method method)
{
	procmap->method = method;
	return probe(procmap->fd, method);
}

enum procmap_method method_of(struct procmap *procmap)
{
	if (procmap->method == PROCMAP_ANY_METHOD)
		procmap->method = kernel_has_scan(procmap) ? PROCMAP_BY_SCAN :
							     PROCMAP_BY_QUERY;
	return procmap->method;
}

bool takes_kernel_ids(struct procmap *procmap)
{
	return procmap->method != PROCMAP_BY_TEXT &&
	       (procmap->flags & PROCMAP_KERNEL_BUILD_IDS || query_is_bounded(procmap));
}

int procmap_check_method(const struct procmap *procmap, enum procmap_method method)
{
	const bool by_ioctl = method == PROCMAP_BY_QUERY || method == PROCMAP_BY_SCAN;

	if (!procmap || !is_method(method))
		return -EINVAL;
	if (procmap->fd < 0)
		return by_ioctl ? -ENODEV : 0;
	return by_ioctl ? probe(procmap->fd, method) : text_is_there(procmap->fd);
}

int choose_method(struct procmap *procmap, enum procmap_method method)
{
	int err;

	procmap->any = method == PROCMAP_ANY_METHOD;
	if (method != PROCMAP_BY_TEXT) {
		err = choose_ioctl(procmap, method);
		if (!is_unavailable(err) || !procmap->any)
			return err;
	}
	procmap->method = PROCMAP_BY_TEXT;
	return text_is_there(procmap->fd);
}

/* Open smaps, unless it is that of another program by now. */
static void start_smaps(struct procmap *procmap)
{
	struct text *const smaps = &procmap->smaps;

	smaps->fd = openat(procmap->dir, "smaps", O_RDONLY | O_CLOEXEC);
	if (smaps->fd < 0 || !text_is_there(procmap->fd))
		return;
	close(smaps->fd);
	smaps->fd = -1;
}

/* The text to read: smaps for page sizes if it can be opened, or else maps. */
static struct text *text_with_fields(struct procmap *procmap, unsigned int flags)
{
	struct text *const smaps = &procmap->smaps;

	if (!(flags & PROCMAP_WANT_PAGE_SIZE) || procmap->dir < 0)
		return &procmap->maps;
	if (smaps->fd < 0)
		start_smaps(procmap);
	return smaps->fd < 0 ? &procmap->maps : smaps;
}

static int find_in_text(struct procmap *procmap, uint64_t addr, unsigned int flags,
			struct procmap_mapping *mapping)
{
	struct text *const text = text_with_fields(procmap, flags);
	int err;

	/* Positions in maps and smaps are unrelated, so a switch restarts. */
	if (procmap->walk != text || addr < text->passed)
		text_restart(text);
	procmap->walk = text;
	err = text_next(text, addr, flags, mapping, &procmap->name);
	if (err)
		procmap->walk = NULL;	/* reading may have reached the end: restart */
	return err;
}

void start_over(struct procmap *procmap)
{
	procmap->walk = NULL;
	scan_start_over(&procmap->scan);
}

/*
 * A walk over all mappings takes a query for each, which costs more than its line in the
 * text. Without the scan, a build ID takes a query of its own in any case. The text of maps
 * has no page sizes.
 */
static bool is_faster_by_text(const struct procmap *procmap, unsigned int flags)
{
	return procmap->any && !(flags & (FILTERS | PROCMAP_UNFILTERED |
					  PROCMAP_WANT_PAGE_SIZE));
}

int find_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
	      struct procmap_mapping *mapping)
{
	switch (method_of(procmap)) {
	case PROCMAP_BY_SCAN:
		return scan_find(procmap, addr, flags, mapping);
	case PROCMAP_BY_QUERY:
		return is_faster_by_text(procmap, flags) ?
		       find_in_text(procmap, addr, flags, mapping) :
		       find_next_by_query(procmap, addr, query_flags(procmap, flags),
					  mapping);
	default:
		return find_in_text(procmap, addr, flags, mapping);
	}
}

int find_at(struct procmap *procmap, uint64_t addr, unsigned int flags,
	    struct procmap_mapping *mapping)
{
	const int err = procmap->method == PROCMAP_BY_TEXT ?
			find_in_text(procmap, addr, flags, mapping) :
			find_by_query(procmap, addr, query_flags(procmap, flags), mapping);

	return !err && mapping->start > addr && !(flags & PROCMAP_COVERING_OR_NEXT) ?
	       -ENOENT : err;
}
