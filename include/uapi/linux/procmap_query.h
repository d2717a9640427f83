/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * PROCMAP_QUERY: look up one mapping of a process, by ioctl(2) on an opened
 * /proc/<pid>/maps or /proc/<pid>/task/<tid>/maps.
 *
 * For programs and modules that are built without the <linux/fs.h> of Linux 6.11, which
 * defines this ioctl. This header includes <linux/fs.h> first and defines only what is
 * missing there, so both can be included in any order.
 */
#ifndef _UAPI_LINUX_PROCMAP_QUERY_H
#define _UAPI_LINUX_PROCMAP_QUERY_H

#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/types.h>

#ifndef PROCFS_IOCTL_MAGIC
#define PROCFS_IOCTL_MAGIC 'f'
#endif

#ifndef PROCMAP_QUERY
/* Look up one mapping by its address. */
#define PROCMAP_QUERY	_IOWR(PROCFS_IOCTL_MAGIC, 17, struct procmap_query)

/*
 * Filters in &procmap_query.query_flags, all of which a mapping has to pass. The first four
 * are its permissions in &procmap_query.vma_flags, too.
 */
enum procmap_query_flags {
	PROCMAP_QUERY_VMA_READABLE		= 0x01,
	PROCMAP_QUERY_VMA_WRITABLE		= 0x02,
	PROCMAP_QUERY_VMA_EXECUTABLE		= 0x04,
	PROCMAP_QUERY_VMA_SHARED		= 0x08,
	/* If no mapping covers the address, take the next one above it. */
	PROCMAP_QUERY_COVERING_OR_NEXT_VMA	= 0x10,
	PROCMAP_QUERY_FILE_BACKED_VMA		= 0x20,
};

/**
 * struct procmap_query - the argument of PROCMAP_QUERY
 * @size: In: size of this structure, which is its version.
 * @query_flags: In: any of &enum procmap_query_flags.
 * @query_addr: In: the address.
 * @vma_start: Out: first address of the mapping.
 * @vma_end: Out: first address past it.
 * @vma_flags: Out: its permissions.
 * @vma_page_size: Out: size of its pages, in bytes.
 * @vma_offset: Out: file offset of @vma_start, in bytes; 0 without a file.
 * @inode: Out: inode number of the file, or 0.
 * @dev_major: Out: major number of the file's device, or 0.
 * @dev_minor: Out: minor number of the file's device, or 0.
 * @vma_name_size: In: size of the buffer, or 0. Out: size of the name with its NUL, or 0.
 * @build_id_size: In: size of the buffer, or 0. Out: size of the build ID, or 0.
 * @vma_name_addr: In: address of the buffer for the name, or 0.
 * @build_id_addr: In: address of the buffer for the build ID, or 0.
 *
 * Documentation/filesystems/procmap_query.rst describes them and the errors.
 */
struct procmap_query {
	__u64 size;
	__u64 query_flags;
	__u64 query_addr;
	__u64 vma_start;
	__u64 vma_end;
	__u64 vma_flags;
	__u64 vma_page_size;
	__u64 vma_offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	__u32 vma_name_size;
	__u32 build_id_size;
	__u64 vma_name_addr;
	__u64 build_id_addr;
};
#endif /* PROCMAP_QUERY */

#endif /* _UAPI_LINUX_PROCMAP_QUERY_H */
