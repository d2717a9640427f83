// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Lookups of single mappings by PROCMAP_QUERY.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal.h"

SAME(PROCMAP_READABLE, PROCMAP_QUERY_VMA_READABLE);
SAME(PROCMAP_WRITABLE, PROCMAP_QUERY_VMA_WRITABLE);
SAME(PROCMAP_EXECUTABLE, PROCMAP_QUERY_VMA_EXECUTABLE);
SAME(PROCMAP_SHARED, PROCMAP_QUERY_VMA_SHARED);
SAME(PROCMAP_FILE_BACKED, PROCMAP_QUERY_FILE_BACKED_VMA);

static int call_query(int fd, struct procmap_query *query)
{
	const unsigned int command = PROCMAP_QUERY;	/* an int in musl */
	int ret;

	query->size = sizeof(*query);
	do {
		ret = ioctl(fd, command, query);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

int query_probe(int fd)
{
	struct procmap_query any = {
		.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
	};
	const int err = call_query(fd, &any);

	return err == -ENOENT ? 0 : err;
}

int query_build_id(struct procmap *procmap, struct procmap_mapping *mapping)
{
	struct procmap_query answer = {
		.query_addr = mapping->start,
		.vma_name_addr = (uintptr_t)procmap->part.bytes,
		.vma_name_size = PATH_MAX,
		.build_id_addr = (uintptr_t)mapping->build_id,
		.build_id_size = sizeof(mapping->build_id),
	};
	struct procmap_mapping now = { 0 };
	int err;

	err = call_query(procmap->fd, &answer);
	if (err)
		return err;
	if (answer.vma_name_size > PATH_MAX)
		return -EPROTO;
	now.name_len = answer.vma_name_size ? answer.vma_name_size - 1 : 0;
	err = escape_name(&procmap->part, &now.name_len);
	if (err)
		return err;
	now.name = procmap->part.bytes;
	/*
	 * The mapping may be another one by now, or have been split. On btrfs and overlayfs,
	 * two files may have the same device and inode.
	 */
	if (answer.vma_offset - answer.vma_start != mapping->offset - mapping->start ||
	    answer.inode != mapping->inode ||
	    answer.dev_major != mapping->dev_major ||
	    answer.dev_minor != mapping->dev_minor ||
	    (mapping->name && !same_name(mapping, &now)))
		return -ESTALE;
	if (answer.build_id_size > sizeof(mapping->build_id))
		return -EPROTO;
	mapping->build_id_size = answer.build_id_size;
	return 0;
}

/* A walk has to end, whatever the kernel returns. */
static bool is_valid_answer(const struct procmap_query *answer, uint64_t addr)
{
	return answer->vma_end > addr && answer->vma_end > answer->vma_start &&
	       answer->vma_name_size <= PATH_MAX &&
	       answer->build_id_size <= PROCMAP_BUILD_ID_MAX;
}

int find_by_query(struct procmap *procmap, uint64_t addr, unsigned int flags,
		  struct procmap_mapping *mapping)
{
	const bool ask_build_id = flags & PROCMAP_WANT_BUILD_ID;
	struct procmap_query answer = {
		.query_addr = addr,
		.query_flags = flags & (FILTERS | PROCMAP_COVERING_OR_NEXT),
		.vma_name_addr = (uintptr_t)procmap->name.bytes,
		.vma_name_size = PATH_MAX,
	};
	bool without_name = false;
	size_t name_len;
	int err;

	if (ask_build_id) {
		answer.build_id_addr = (uintptr_t)mapping->build_id;
		answer.build_id_size = sizeof(mapping->build_id);
	}
	err = call_query(procmap->fd, &answer);
	if (err == -ENAMETOOLONG) {
		without_name = true;
		answer.vma_name_addr = 0;
		answer.vma_name_size = 0;
		answer.build_id_size = ask_build_id ?
				       sizeof(mapping->build_id) : 0;
		err = call_query(procmap->fd, &answer);
	}
	if (err)
		return err;
	if (!is_valid_answer(&answer, addr))
		return -EPROTO;

	mapping->start = answer.vma_start;
	mapping->end = answer.vma_end;
	mapping->offset = answer.vma_offset;
	mapping->inode = answer.inode;
	mapping->page_size = answer.vma_page_size;
	mapping->flags = answer.vma_flags & PERMISSIONS;
	mapping->dev_major = answer.dev_major;
	mapping->dev_minor = answer.dev_minor;
	mapping->build_id_size = ask_build_id ? (int32_t)answer.build_id_size : -EAGAIN;
	if (without_name)
		return take_from_text(procmap, addr, flags, mapping);
	name_len = answer.vma_name_size ? answer.vma_name_size - 1 : 0;
	procmap->name.bytes[name_len] = '\0';
	err = escape_name(&procmap->name, &name_len);
	mapping->name = procmap->name.bytes;
	mapping->name_len = name_len;
	return err;
}

/* With the filters, the kernel might pass over many mappings for one that is not needed. */
int find_next_by_query(struct procmap *procmap, uint64_t addr, unsigned int flags,
		       struct procmap_mapping *mapping)
{
	if (flags & PROCMAP_UNFILTERED)
		flags &= ~FILTERS;
	return find_by_query(procmap, addr, flags | PROCMAP_COVERING_OR_NEXT,
			     mapping);
}
