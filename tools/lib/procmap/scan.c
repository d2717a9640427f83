// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Mappings by the ioctl PROCMAP_SCAN, which tells about many at a time. A walk
 * wants all of them. Who asks for addresses, in rising order, may want most of
 * the mappings, or few that are far apart; then single queries are cheaper.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal.h"

/*
 * The size of a batch, in mappings: small at first, for those who stop soon. The
 * kernel does with the largest what it would do with all.
 */
#define BATCH_MIN	16
#define BATCH_MAX	512

/* Names and build IDs of @nr mappings, and of one however long they are. */
#define DATA_SIZE(nr)	(PATH_MAX + PROCMAP_BUILD_ID_MAX + (nr) * 128)

/*
 * So many queries cost about what a few batches do; then it is tried whether
 * those serve better, and less and less often if they do not.
 */
#define PATIENCE	64

/* A query costs as much as so many mappings in a scan. */
#define MAPPINGS_A_QUERY	4

static int do_scan(int fd, struct procmap_scan_arg *arg)
{
	const int nr = ioctl(fd, PROCMAP_SCAN, arg);

	return nr < 0 ? -errno : nr;
}

int scan_probe(int fd)
{
	struct procmap_vma vma;
	struct procmap_scan_arg any = {
		.size = sizeof(any),
		.end = UINT64_MAX,
		.vec = (uintptr_t)&vma,
		.vec_len = 1,
		.vma_size = sizeof(vma),
	};
	const int nr = do_scan(fd, &any);

	return nr < 0 && nr != -EINTR ? nr : 0;
}

void scan_free(struct scan *scan)
{
	free(scan->vmas);
	free(scan->data);
}

/* Nothing is at hand; @boundary is an address where no mapping is cut in two. */
static void start_over(struct scan *scan, uint64_t boundary)
{
	scan->from = boundary;
	scan->to = boundary;
	scan->passed = 0;
	scan->nr = 0;
	scan->next = 0;
}

/* Make the next batch twice as large, and room for it. */
static int grow_batch(struct scan *scan)
{
	unsigned int batch = scan->batch ? scan->batch * 2 : BATCH_MIN;
	void *memory;

	if (batch > BATCH_MAX)
		batch = BATCH_MAX;
	if (batch > scan->room) {
		memory = realloc(scan->vmas, batch * sizeof(*scan->vmas));
		if (!memory)
			return -ENOMEM;
		scan->vmas = memory;
		memory = realloc(scan->data, DATA_SIZE(batch));
		if (!memory)
			return -ENOMEM;
		scan->data = memory;
		scan->room = batch;
	}
	scan->batch = batch;
	return 0;
}

/* Get the mappings from where the last ones ended. */
static int next_batch(struct procmap *procmap, unsigned int flags)
{
	struct scan *const scan = &procmap->scan;
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.flags = (flags & FILTERS) | PROCMAP_SCAN_NAMES |
			 (flags & PROCMAP_WANT_BUILD_ID ?
			  PROCMAP_SCAN_BUILD_IDS : 0),
		.start = scan->to,
		.end = UINT64_MAX,
		.vma_size = sizeof(*scan->vmas),
	};
	int nr, err;

	err = grow_batch(scan);
	if (err)
		return err;
	arg.vec = (uintptr_t)scan->vmas;
	arg.vec_len = scan->batch;
	arg.data = (uintptr_t)scan->data;
	arg.data_size = DATA_SIZE(scan->batch);
	nr = do_scan(procmap->fd, &arg);
	scan->nr = 0;
	scan->next = 0;
	if (nr < 0 && nr != -EINTR)
		return nr;
	/* Whatever the kernel answers, a walk comes to its end. */
	if (nr > (int)scan->batch || arg.data_used > arg.data_size ||
	    arg.walk_end < arg.start || (nr >= 0 && arg.walk_end == arg.start))
		return -EPROTO;
	scan->from = arg.start;
	scan->to = arg.walk_end;
	scan->nr = nr < 0 ? 0 : nr;
	scan->hits = 0;
	scan->data_used = arg.data_used;
	return 0;
}

static bool is_in_data(const struct scan *scan, uint32_t offset, uint32_t size)
{
	return size <= scan->data_used && offset <= scan->data_used - size;
}

static int take_name(struct procmap *procmap, const struct procmap_vma *vma,
		     struct procmap_mapping *mapping)
{
	struct name_buffer *const buffer = &procmap->name;
	char *name = procmap->scan.data + vma->name_offset;
	size_t len = vma->name_size ? vma->name_size - 1 : 0;
	int err;

	if (!vma->name_size) {
		mapping->name = "";
	} else if (!memchr(name, '\n', len)) {
		mapping->name = name;
	} else {
		err = name_reserve(buffer, len + 1);
		if (err)
			return err;
		memcpy(buffer->bytes, name, len + 1);
		err = escape_name(buffer, &len);
		if (err)
			return err;
		mapping->name = buffer->bytes;
	}
	mapping->name_len = len;
	return 0;
}

static int take_record(struct procmap *procmap, const struct procmap_vma *vma,
		       struct procmap_mapping *mapping)
{
	const struct scan *const scan = &procmap->scan;

	if (vma->start >= vma->end ||
	    vma->build_id_size > sizeof(mapping->build_id) ||
	    !is_in_data(scan, vma->build_id_offset, vma->build_id_size) ||
	    !is_in_data(scan, vma->name_offset, vma->name_size) ||
	    (vma->name_size &&
	     scan->data[vma->name_offset + vma->name_size - 1]))
		return -EPROTO;

	mapping->start = vma->start;
	mapping->end = vma->end;
	mapping->offset = vma->offset;
	mapping->inode = vma->inode;
	mapping->page_size = vma->page_size;
	mapping->flags = vma->flags & PERMISSIONS;
	mapping->dev_major = vma->dev_major;
	mapping->dev_minor = vma->dev_minor;
	mapping->build_id_size = vma->build_id_size;
	memcpy(mapping->build_id, scan->data + vma->build_id_offset,
	       vma->build_id_size);
	return take_name(procmap, vma, mapping);
}

/* The first mapping at hand that ends above @addr, or NULL. */
static const struct procmap_vma *at_hand(struct scan *scan, uint64_t addr)
{
	while (scan->next < scan->nr && scan->vmas[scan->next].end <= addr)
		scan->next++;
	return scan->next < scan->nr ? &scan->vmas[scan->next] : NULL;
}

/* Is a batch likely to serve better than a query for an address further up? */
static bool batch_is_better(struct scan *scan)
{
	if (!scan->nr)
		return scan->queries >= scan->patience;
	if (scan->hits * MAPPINGS_A_QUERY >= scan->nr)
		return true;
	scan->queries = 0;
	scan->patience *= 2;
	return false;
}

static int find_by_query(struct procmap *procmap, uint64_t addr,
			 unsigned int flags, struct procmap_mapping *mapping)
{
	struct scan *const scan = &procmap->scan;
	const int err = find_by_ioctl(procmap, addr, flags, mapping);

	scan->queries++;
	scan->batch = 0;
	start_over(scan, err ? 0 : mapping->end);
	scan->passed = addr;
	return err;
}

int scan_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
	      bool restart, struct procmap_mapping *mapping)
{
	struct scan *const scan = &procmap->scan;
	const struct procmap_vma *vma;
	uint64_t at = addr;
	int err;

	if (restart || addr < scan->passed || addr < scan->from ||
	    flags != scan->flags) {
		start_over(scan, 0);
		scan->flags = flags;
		scan->batch = 0;
		scan->queries = 0;
		scan->patience = PATIENCE;
	}
	if (restart)
		return find_by_query(procmap, addr, flags, mapping);

	scan->passed = addr;
	for (;;) {
		if (at < scan->to) {
			vma = at_hand(scan, at);
			if (vma) {
				scan->hits++;
				return take_record(procmap, vma, mapping);
			}
			at = scan->to;
		}
		if (scan->to == UINT64_MAX) {
			start_over(scan, 0);
			scan->passed = addr;
			return -ENOENT;
		}
		if (at != scan->to && !batch_is_better(scan))
			return find_by_query(procmap, at, flags, mapping);
		err = next_batch(procmap, flags);
		/* The text has names that are too long for the ioctls. */
		if (err == -ENAMETOOLONG)
			return find_by_query(procmap, at, flags, mapping);
		if (err)
			return err;
	}
}
