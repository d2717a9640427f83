/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * PROCMAP_QUERY: look up one mapping of a process, by ioctl(2) on an opened
 * /proc/<pid>/maps or /proc/<pid>/task/<tid>/maps.
 *
 * Layout, numbers and error codes are those of <linux/fs.h> in Linux 6.11,
 * where mainline defines this ioctl. This header includes <linux/fs.h> first
 * and defines only what is missing there, so both can be included in any order.
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
/* Look up one mapping by address. */
#define PROCMAP_QUERY	_IOWR(PROCFS_IOCTL_MAGIC, 17, struct procmap_query)

/**
 * enum procmap_query_flags - filters of a query, and permissions of a mapping
 * @PROCMAP_QUERY_VMA_READABLE: in &procmap_query.query_flags, match only
 *	readable mappings; in &procmap_query.vma_flags, the mapping is readable.
 *	The next three flags are used in both fields, too.
 * @PROCMAP_QUERY_VMA_WRITABLE: writable mappings.
 * @PROCMAP_QUERY_VMA_EXECUTABLE: executable mappings.
 * @PROCMAP_QUERY_VMA_SHARED: shared mappings: those shown with ``s`` in the
 *	text of /proc/<pid>/maps.
 * @PROCMAP_QUERY_COVERING_OR_NEXT_VMA: if no mapping that passes the filters
 *	covers the address, return the next one above it.
 * @PROCMAP_QUERY_FILE_BACKED_VMA: match only mappings of files.
 *
 * A mapping has to pass all filters that are given. The values are those of
 * Linux 6.11.
 */
enum procmap_query_flags {
	PROCMAP_QUERY_VMA_READABLE		= 0x01,
	PROCMAP_QUERY_VMA_WRITABLE		= 0x02,
	PROCMAP_QUERY_VMA_EXECUTABLE		= 0x04,
	PROCMAP_QUERY_VMA_SHARED		= 0x08,
	PROCMAP_QUERY_COVERING_OR_NEXT_VMA	= 0x10,
	PROCMAP_QUERY_FILE_BACKED_VMA		= 0x20,
};

/**
 * struct procmap_query - the argument of PROCMAP_QUERY
 * @size: In: size of the caller's structure in bytes, which is its version:
 *	from 24 (@query_addr included) to a page. If it is smaller than the
 *	kernel's, only the fields that fit are returned. If it is larger, all
 *	bytes that the kernel does not know must be zero. E2BIG, EINVAL.
 * @query_flags: In: any of &enum procmap_query_flags. EINVAL.
 * @query_addr: In: the address to look up. Any value is valid.
 * @vma_start: Out: first address of the mapping.
 * @vma_end: Out: first address past the mapping.
 * @vma_flags: Out: permissions of the mapping: the four PROCMAP_QUERY_VMA_*
 *	flags.
 * @vma_page_size: Out: size of the mapping's pages, in bytes.
 * @vma_offset: Out: file offset of @vma_start, in bytes; 0 without a file.
 * @inode: Out: inode number of the file; 0 without a file.
 * @dev_major: Out: major number of the file's device; 0 without a file.
 * @dev_minor: Out: minor number of the file's device; 0 without a file.
 * @vma_name_size: In: size of the name buffer in bytes, or 0 for no name. Out:
 *	size of the name including its NUL, or 0 if the mapping has none.
 *	ENAMETOOLONG.
 * @build_id_size: In: size of the build ID buffer in bytes, or 0 for no build
 *	ID. Out: size of the build ID, 1 to 20, or 0 if there is none.
 *	ENAMETOOLONG.
 * @vma_name_addr: In: address of the name buffer; 0 if and only if
 *	@vma_name_size is 0. EINVAL. The name is the path of the file, followed
 *	by `` (deleted)`` if the file has been unlinked; or the name that the
 *	text shows without a file, such as ``[heap]``. It is in raw bytes: a
 *	newline is not escaped as ``\012``. PATH_MAX bytes are enough, except for
 *	a path that is longer than that, which fails with ENAMETOOLONG.
 * @build_id_addr: In: address of the build ID buffer; 0 if and only if
 *	@build_id_size is 0. EINVAL. The build ID is read from the notes of the
 *	mapped ELF executable or shared object. A file that cannot be read has
 *	none.
 *
 * The ioctl returns 0, or -1 with one of these values in errno:
 *
 * * E2BIG: @size is larger than a page, or larger than the kernel's structure
 *   with a nonzero byte past it.
 * * EINVAL: @size is smaller than 24; @query_flags has an unknown flag; or only
 *   one of a buffer's address and its size is 0.
 * * ESRCH: the address space is gone (its processes have exited or executed
 *   another program), or the task is a kernel thread.
 * * EINTR: a fatal signal arrived while waiting for mmap_lock.
 * * ENOENT: no mapping matches.
 * * ENAMETOOLONG: the name or the build ID is longer than its buffer.
 * * ENOMEM: no memory for the name.
 * * EFAULT: the structure or a buffer cannot be read or written.
 * * ENOTTY: the kernel does not implement PROCMAP_QUERY, or the file is not a
 *   maps file.
 *
 * They are checked in this order. After an error the structure and the buffers
 * have undefined content. Permission to inspect the process is checked by
 * open(2), and not again by the ioctl.
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
