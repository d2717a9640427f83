// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The scan method: PROCMAP_SCAN returns many mappings at a time. A walk uses
 * all of them. Lookups of rising addresses may need most of the mappings, or a
 * few that are far apart; then single queries are cheaper.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal.h"

/*
 * Size of a batch, in mappings: small at first, for callers that stop early.
 * With the largest, the fixed cost of a call no longer matters.
 */
#define BATCH_MIN	16
#define BATCH_MAX	256

/* Bytes for the names and build IDs of @nr mappings, if of usual length. */
#define DATA_SIZE(nr)	((nr) * 128)

/*
 * After this number of single queries, which cost about as much as a few
 * batches, try a batch. Each time it does not pay off, wait twice as long.
 */
#define PATIENCE	64

/* A query costs as much as this number of mappings in a scan. */
#define MAPPINGS_A_QUERY	4

SAME(PROCMAP_READABLE, PROCMAP_VMA_READABLE);
SAME(PROCMAP_WRITABLE, PROCMAP_VMA_WRITABLE);
SAME(PROCMAP_EXECUTABLE, PROCMAP_VMA_EXECUTABLE);
SAME(PROCMAP_SHARED, PROCMAP_VMA_SHARED);

static uint64_t filter_of(unsigned int flags)
{
	return (flags & PERMISSIONS) |
	       (flags & PROCMAP_FILE_BACKED ? PROCMAP_VMA_FILE_BACKED : 0);
}

static int do_scan(int fd, struct procmap_scan_arg *arg)
{
	const unsigned int command = PROCMAP_SCAN;	/* an int in musl */
	const int nr = ioctl(fd, command, arg);

	return nr < 0 ? -errno : nr;
}

/* Scan no addresses. */
int scan_probe(int fd)
{
	struct procmap_vma vma;
	struct procmap_scan_arg none = {
		.size = sizeof(none),
		.walk_end = 1,
		.vec = (uintptr_t)&vma,
		.vec_len = 1,
		.vma_size = sizeof(vma),
	};
	const int err = do_scan(fd, &none);

	if (err < 0)
		return err;
	/* A filter may let a call succeed that it does not make. */
	if (none.walk_end)
		return -ENOTTY;
	return none.flags & PROCMAP_SCAN_QUERY_IS_BOUNDED ? 1 : 0;
}

static void ask_for_scan(struct procmap *procmap)
{
	int answer;

	if (procmap->has_scan)
		return;
	answer = scan_probe(procmap->fd);
	procmap->has_scan = answer < 0 ? -1 : 1;
	procmap->is_bounded = answer > 0;
}

bool kernel_has_scan(struct procmap *procmap)
{
	ask_for_scan(procmap);
	return procmap->has_scan > 0;
}

bool query_is_bounded(struct procmap *procmap)
{
	ask_for_scan(procmap);
	return procmap->is_bounded;
}

unsigned int query_flags(struct procmap *procmap, unsigned int flags)
{
	return (flags & PROCMAP_WANT_BUILD_ID) && !query_is_bounded(procmap) ?
	       flags & ~PROCMAP_WANT_BUILD_ID : flags;
}

void scan_free(struct scan *scan)
{
	free(scan->vmas);
	free(scan->data);
}

/* Drop the batch. The next one begins at @start, a multiple of the page size. */
static void drop_batch(struct scan *scan, uint64_t start)
{
	scan->from = start;
	scan->to = start;
	scan->passed = 0;
	scan->nr = 0;
	scan->next = 0;
}

/*
 * Make room for @size bytes of data. It is zeroed, since checkers of memory do not know
 * that an ioctl will write it. Returns 0 or -ENOMEM.
 */
static int reserve_data(struct scan *scan, uint32_t size)
{
	char *data;

	if (size <= scan->data_size)
		return 0;
	data = calloc(1, size);
	if (!data)
		return -ENOMEM;
	free(scan->data);
	scan->data = data;
	scan->data_size = size;
	return 0;
}

/* Allocate for the largest batch, so that later ones need no more. */
static int allocate_batch(struct scan *scan)
{
	if (!scan->vmas)
		scan->vmas = calloc(BATCH_MAX, sizeof(*scan->vmas));
	return scan->vmas ? reserve_data(scan, DATA_SIZE(BATCH_MAX)) : -ENOMEM;
}

/* Double the size of the next batch. */
static void grow_batch(struct scan *scan)
{
	scan->batch = scan->batch ? scan->batch * 2 : BATCH_MIN;
	if (scan->batch > BATCH_MAX)
		scan->batch = BATCH_MAX;
}

/*
 * Get the batch that follows the current one. It may be empty: after a signal,
 * or if the next mapping needs more data than there was room for.
 */
static int next_batch(struct procmap *procmap, unsigned int flags)
{
	struct scan *const scan = &procmap->scan;
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.filter = filter_of(flags),
		.want = PROCMAP_SCAN_NAMES |
			(flags & PROCMAP_WANT_BUILD_ID ?
			 PROCMAP_SCAN_BUILD_IDS : 0),
		.start = scan->to,
		.end = UINT64_MAX,
		.vma_size = sizeof(*scan->vmas),
	};
	int nr, err;

	err = allocate_batch(scan);
	if (err)
		return err;
	grow_batch(scan);
	arg.vec = (uintptr_t)scan->vmas;
	arg.vec_len = scan->batch;
	arg.data = (uintptr_t)scan->data;
	arg.data_size = scan->data_size;
	nr = do_scan(procmap->fd, &arg);
	scan->nr = 0;
	scan->next = 0;
	if (nr < 0 && nr != -EINTR && nr != -ENOSPC)
		return nr;
	/* A walk has to end, whatever the kernel returns. */
	if (nr > (int)scan->batch || arg.data_used > arg.data_size ||
	    arg.walk_end < arg.start || (nr >= 0 && arg.walk_end == arg.start) ||
	    (nr == -ENOSPC && arg.data_needed <= arg.data_size))
		return -EPROTO;
	if (nr == -ENOSPC) {
		err = reserve_data(scan, arg.data_needed);
		if (err)
			return err;
	}
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

/*
 * Check a record, whatever the kernel returned, and copy it to @mapping. @addr is
 * the address that is looked up.
 */
static int take_record(struct procmap *procmap, const struct procmap_vma *vma,
		       uint64_t addr, struct procmap_mapping *mapping)
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
	if (!(scan->flags & PROCMAP_WANT_BUILD_ID) ||
	    vma->flags & PROCMAP_VMA_BUILD_ID_NOT_READ)
		mapping->build_id_size = -EAGAIN;
	memcpy(mapping->build_id, scan->data + vma->build_id_offset,
	       vma->build_id_size);
	return vma->flags & PROCMAP_VMA_NAME_TOO_LONG ?
	       take_from_text(procmap, addr, scan->flags, mapping) :
	       take_name(procmap, vma, mapping);
}

/* The first mapping of the batch that ends above @addr, or NULL. */
static const struct procmap_vma *find_in_batch(struct scan *scan, uint64_t addr)
{
	while (scan->next < scan->nr && scan->vmas[scan->next].end <= addr)
		scan->next++;
	return scan->next < scan->nr ? &scan->vmas[scan->next] : NULL;
}

/* Return whether, for an address above the batch, another batch is likely to beat a query. */
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

static int find_one(struct procmap *procmap, uint64_t addr, unsigned int flags,
		    struct procmap_mapping *mapping)
{
	struct scan *const scan = &procmap->scan;
	const int err = find_next_by_query(procmap, addr, query_flags(procmap, flags), mapping);

	scan->queries++;
	scan->batch = 0;
	drop_batch(scan, err ? 0 : mapping->end);
	scan->passed = addr;
	return err;
}

void scan_start_over(struct scan *scan)
{
	drop_batch(scan, 0);
	scan->batch = 0;
	scan->queries = 0;
	scan->patience = PATIENCE;
}

int scan_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
	      struct procmap_mapping *mapping)
{
	struct scan *const scan = &procmap->scan;
	const struct procmap_vma *vma;
	uint64_t at = addr;
	int err;

	if (addr < scan->passed || addr < scan->from || flags != scan->flags) {
		scan_start_over(scan);
		scan->flags = flags;
	}
	scan->passed = addr;
	for (;;) {
		if (at < scan->to) {
			vma = find_in_batch(scan, at);
			if (vma) {
				scan->hits++;
				return take_record(procmap, vma, at, mapping);
			}
			at = scan->to;
		}
		if (scan->to == UINT64_MAX) {
			drop_batch(scan, 0);
			scan->passed = addr;
			return -ENOENT;
		}
		if (at != scan->to && !batch_is_better(scan))
			return find_one(procmap, at, flags, mapping);
		err = next_batch(procmap, flags);
		if (err)
			return err;
	}
}

int scan_generation(struct procmap *procmap, uint64_t *generation)
{
	struct procmap_vma vma;
	struct procmap_scan_arg arg = {
		.size = sizeof(arg),
		.known_generation = *generation,
		.end = UINT64_MAX,
		.vec = (uintptr_t)&vma,
		.vec_len = 1,
		.vma_size = sizeof(vma),
	};
	const int nr = do_scan(procmap->fd, &arg);

	*generation = arg.generation;
	return nr < 0 && nr != -EINTR ? nr : 0;
}
