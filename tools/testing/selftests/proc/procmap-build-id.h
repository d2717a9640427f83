/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Get the build ID of a mapping by either ioctl, from files that are resident or not.
 */
#ifndef PROCMAP_BUILD_ID_H
#define PROCMAP_BUILD_ID_H

#include <sys/mman.h>

#include "procmap-query.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

#define ID_MAX		20

enum way { QUERY, SCAN };

/* A scan found that pages would have to be read. */
#define NOT_READ	(-EAGAIN)

/* Skip the test, in its setup, if this kernel does not have the ioctl. */
static inline void skip_without_way(struct __test_metadata *const _metadata,
				    enum way way)
{
#ifdef HAVE_PROCMAP_SCAN
	if (way == SCAN)
		skip_without_scan(_metadata);
#endif
}

#ifdef HAVE_PROCMAP_SCAN
static inline int scan_build_id(int maps, uint64_t addr, uint8_t id[ID_MAX])
{
	char data[ID_MAX];
	struct procmap_vma vma;
	const struct room room = {
		.vec = &vma,
		.vec_len = 1,
		.data = data,
		.data_size = sizeof(data),
	};
	struct procmap_scan_arg arg = scan_arg(&room, addr, addr + 1, BUILD_IDS);
	const int nr = procmap_scan(maps, &arg);

	if (nr != 1)
		return nr < 0 ? nr : -ENOENT;
	if (vma.flags & PROCMAP_VMA_BUILD_ID_NOT_READ)
		return vma.build_id_size ? -EBADMSG : NOT_READ;
	memcpy(id, data + vma.build_id_offset, vma.build_id_size);
	return vma.build_id_size;
}
#endif

/* Returns the size of the build ID, 0 if there is none, NOT_READ, or -errno. */
static inline int get_build_id(enum way way, int maps, const void *addr,
			       uint8_t id[ID_MAX])
{
	struct procmap_query query;
	int err;

#ifdef HAVE_PROCMAP_SCAN
	if (way == SCAN)
		return scan_build_id(maps, (uintptr_t)addr, id);
#endif
	err = query_build_id(maps, (uintptr_t)addr, &query, id, ID_MAX);
	return err ?: (int)query.build_id_size;
}

/* Returns how many pages of the file are resident, or -1. */
static inline int resident_pages(int fd)
{
	const size_t size = lseek(fd, 0, SEEK_END);
	const size_t pages = (size + page_size() - 1) / page_size();
	unsigned char resident[pages + 1];
	int sum = 0;
	void *addr;
	size_t i;

	if (!pages)
		return 0;
	/* A mapping that nobody has touched. */
	addr = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (addr == MAP_FAILED || mincore(addr, size, resident))
		return -1;
	munmap(addr, size);
	for (i = 0; i < pages; i++)
		sum += resident[i] & 1;
	return sum;
}

/* Drop the pages of the file from memory. */
static inline bool evict_file(int fd)
{
	return !fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) &&
	       !resident_pages(fd);
}

#endif /* PROCMAP_BUILD_ID_H */
