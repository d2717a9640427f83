/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * PROCMAP_SCAN: all mappings of an opened /proc/<pid>/maps by one ioctl(2).
 * An extension: no mainline kernel has it.
 */
#ifndef _UAPI_LINUX_PROCMAP_SCAN_H
#define _UAPI_LINUX_PROCMAP_SCAN_H

#include <linux/procmap_query.h>

/* Tell of all mappings in a range of addresses; no mainline kernel has it. */
#define PROCMAP_SCAN	_IOWR(PROCFS_IOCTL_MAGIC, 0xe0, struct procmap_scan_arg)

/**
 * enum procmap_scan_flags - what a scan tells of a mapping, beside its fields
 * @PROCMAP_SCAN_NAMES: its name.
 * @PROCMAP_SCAN_BUILD_IDS: the build ID of its file.
 *
 * They are used beside the filters of &enum procmap_query_flags.
 */
enum procmap_scan_flags {
	PROCMAP_SCAN_NAMES		= 0x10000,
	PROCMAP_SCAN_BUILD_IDS		= 0x20000,
};

/**
 * struct procmap_vma - a record of PROCMAP_SCAN: one mapping
 * @start: First address; or &procmap_scan_arg.start, if the mapping begins
 *	below that.
 * @end: First address past the mapping.
 * @flags: Its permissions, the four PROCMAP_QUERY_VMA_* flags.
 * @page_size: Size in bytes of the pages that back it.
 * @offset: Offset in bytes of @start in the file, 0 without one.
 * @inode: Number of the file's inode, 0 without a file.
 * @dev_major: Major number of the file's device, 0 without a file.
 * @dev_minor: Minor number of the file's device, 0 without a file.
 * @name_offset: Where in the data the name begins, if @name_size is not 0.
 * @name_size: Length of the name with its NUL byte, 0 if the mapping has none or
 *	names are not wanted. It is the name that PROCMAP_QUERY tells.
 * @build_id_offset: Where in the data the build ID is, if @build_id_size is not
 *	0.
 * @build_id_size: Length of the build ID, 1 to 20 bytes; 0 if there is none or
 *	build IDs are not wanted.
 *
 * Mappings of one file that follow one another, with none of another file
 * between them, have the name and the build ID of the first: they are in the
 * data once.
 */
struct procmap_vma {
	__u64 start;
	__u64 end;
	__u64 flags;
	__u64 page_size;
	__u64 offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	__u32 name_offset;
	__u32 name_size;
	__u32 build_id_offset;
	__u32 build_id_size;
};

/**
 * struct procmap_scan_arg - the question of PROCMAP_SCAN
 * @size: In: bytes of the caller's structure, which is its version: from 72 (up
 *	to and with @data_used) to a page. Of one that is longer than the
 *	kernel's, the bytes that the kernel does not know must be zero.
 * @flags: In: what is wanted, of &enum procmap_scan_flags; and which mappings
 *	are, by any of &enum procmap_query_flags but COVERING_OR_NEXT_VMA.
 * @start: In: first address of the range, a multiple of the page size.
 * @end: In: first address past the range, not below @start. The largest number
 *	there is will do for all mappings.
 * @walk_end: Out: how far the scan has come: all below has been told. It is
 *	@end if and only if the scan is complete; if it is not, it goes on with
 *	this as the next @start.
 * @vec: In: address of the array of &struct procmap_vma, a multiple of 8.
 * @data: In: address of the buffer for names and build IDs. May be 0 if
 *	@data_size is.
 * @vec_len: In: how many records the array has room for, from 1 to 2^31 - 1.
 * @vma_size: In: bytes of a record, as the caller knows it: a multiple of 8,
 *	from 72 (up to and with @build_id_size) to a page. Records stand so far
 *	from one another, and the bytes that the kernel does not know are set to
 *	zero.
 * @data_size: In: bytes at @data.
 * @data_used: Out: bytes that have been used of them. After ENOSPC: bytes that
 *	the first record needs.
 *
 * All mappings that lie in the range, or reach into it, and pass the filters are
 * told in rising order, as many as @vec and @data have room for. One that
 * begins below the range is cut off there, with its offset moved; one that ends
 * above it is told whole.
 *
 * The process may change its mappings meanwhile. Still no address is told twice
 * within a scan, also one of several calls, and none is missed that was mapped,
 * and passed the filters, throughout.
 *
 * The ioctl returns the number of records, which can be 0, or -1 with errno one
 * of
 *
 * * E2BIG: @size is larger than a page, or there is a nonzero byte past the
 *   kernel's structure.
 * * EINVAL: @size is smaller than 72; @flags has an unknown flag; @start is no
 *   multiple of the page size; @end is below @start; @vec is 0 or no multiple of
 *   8; @vec_len is 0 or larger than 2^31 - 1; @vma_size is not as said
 *   above; or just one of @data and @data_size is 0.
 * * EFAULT: the structure, the array or the data cannot be read or written.
 * * ESRCH: the address space that was opened has no user left, or it never was
 *   one (see &struct procmap_query).
 * * EINTR: a signal arrived. @walk_end tells where to go on.
 * * ENAMETOOLONG: the path of the file is longer than PATH_MAX.
 * * ENOSPC: the name and the build ID of one mapping do not fit into the data.
 * * ENOMEM: there was no memory.
 * * ENOTTY: this kernel has no PROCMAP_SCAN, or the file is not a maps file.
 *
 * The arguments are checked first, in the order of this list. What goes wrong
 * after the first record, but for EFAULT, ends the scan before the mapping that
 * it concerns and is no error: the next call meets what is still so. After EINTR,
 * ENAMETOOLONG and ENOSPC, the mapping concerned is the first at or above
 * @walk_end that passes the filters. After any other error, the content of the
 * structure, the array and the data is undefined.
 */
struct procmap_scan_arg {
	__u64 size;
	__u64 flags;
	__u64 start;
	__u64 end;
	__u64 walk_end;
	__u64 vec;
	__u64 data;
	__u32 vec_len;
	__u32 vma_size;
	__u32 data_size;
	__u32 data_used;
};

#endif /* _UAPI_LINUX_PROCMAP_SCAN_H */
