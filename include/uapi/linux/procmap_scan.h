/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * PROCMAP_SCAN: copy all mappings of a process in a range of addresses, by
 * ioctl(2) on an opened /proc/<pid>/maps or /proc/<pid>/task/<tid>/maps.
 *
 * This is an extension that is not in mainline. It is modelled on PAGEMAP_SCAN
 * of Linux 6.7, and uses the filters of PROCMAP_QUERY.
 */
#ifndef _UAPI_LINUX_PROCMAP_SCAN_H
#define _UAPI_LINUX_PROCMAP_SCAN_H

#include <linux/procmap_query.h>

/* Copy all mappings in a range to an array. Not in mainline. */
#define PROCMAP_SCAN	_IOWR(PROCFS_IOCTL_MAGIC, 0xe0, struct procmap_scan_arg)

/**
 * enum procmap_scan_flags - what to return of a mapping besides its fields
 * @PROCMAP_SCAN_NAMES: its name.
 * @PROCMAP_SCAN_BUILD_IDS: the build ID of its file.
 *
 * They go to &procmap_scan_arg.flags, together with filters of &enum
 * procmap_query_flags.
 */
enum procmap_scan_flags {
	PROCMAP_SCAN_NAMES		= 0x10000,
	PROCMAP_SCAN_BUILD_IDS		= 0x20000,
};

/**
 * struct procmap_vma - one record of PROCMAP_SCAN: a mapping
 * @start: Out: first address of the mapping; or the address up to which the
 *	scan was already done, if the mapping starts below that.
 * @end: Out: first address past the mapping.
 * @flags: Out: permissions: the four PROCMAP_QUERY_VMA_* flags.
 * @page_size: Out: size of the mapping's pages, in bytes.
 * @offset: Out: file offset of @start, in bytes; 0 without a file.
 * @inode: Out: inode number of the file; 0 without a file.
 * @dev_major: Out: major number of the file's device; 0 without a file.
 * @dev_minor: Out: minor number of the file's device; 0 without a file.
 * @name_offset: Out: offset of the name in the data buffer, in bytes, if
 *	@name_size is not 0.
 * @name_size: Out: size of the name in bytes, including its NUL; 0 if the
 *	mapping has none or names are not wanted. The name is the one that
 *	PROCMAP_QUERY returns.
 * @build_id_offset: Out: offset of the build ID in the data buffer, in bytes,
 *	if
 *	@build_id_size is not 0.
 * @build_id_size: Out: size of the build ID, 1 to 20 bytes; 0 if there is none
 *	or build IDs are not wanted.
 *
 * Consecutive mappings of one file share the name and the build ID: their
 * records have the same offsets, and the bytes are in the data buffer once.
 * Mappings without a file may lie between them.
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
 * struct procmap_scan_arg - the argument of PROCMAP_SCAN
 * @size: In: size of the caller's structure in bytes, which is its version:
 *	from 72 (@data_used included) to a page. If it is larger than the
 *	kernel's, all bytes that the kernel does not know must be zero. E2BIG,
 *	EINVAL.
 * @flags: In: what to return, of &enum procmap_scan_flags; and filters: any of
 *	&enum procmap_query_flags except PROCMAP_QUERY_COVERING_OR_NEXT_VMA.
 *	EINVAL.
 * @start: In: first address of the range, a multiple of the page size. EINVAL.
 * @end: In: first address past the range, not below @start. EINVAL. Pass
 *	U64_MAX for all mappings.
 * @walk_end: Out: the address up to which the scan is done. It equals @end if
 *	and only if the scan is complete. Otherwise, pass it as @start to
 *	continue.
 * @vec: In: address of the array of records, &struct procmap_vma; a multiple of
 *	8, and not 0. EINVAL.
 * @data: In: address of the buffer for names and build IDs; 0 if and only if
 *	@data_size is 0. EINVAL.
 * @vec_len: In: length of the array in records, 1 to 2^31 - 1. EINVAL.
 * @vma_size: In: size of one record in the array, in bytes: a multiple of 8,
 *	from 72 (@build_id_size included) to a page. Bytes that the kernel does
 *	not know are set to zero. EINVAL.
 * @data_size: In: size of the buffer at @data, in bytes. ENOSPC.
 * @data_used: Out: bytes used of the buffer. After ENOSPC: bytes that the first
 *	record needs.
 *
 * The records are the mappings that overlap the range and pass all filters, in
 * rising order, as many as @vec and @data have room for. A mapping that starts
 * below the range is cut at @start, and its offset adjusted. One that ends
 * above the range is returned whole.
 *
 * The process may change its mappings during a scan, which may take several
 * calls. Still, no address is returned twice within one scan, and none is
 * missed that is mapped, and passes the filters, during the whole scan.
 *
 * The ioctl returns the number of records, which may be 0, or -1 with one of
 * these values in errno:
 *
 * * E2BIG: @size is larger than a page, or larger than the kernel's structure
 *   with a nonzero byte past it.
 * * EINVAL: @size is smaller than 72; @flags has an unknown flag; @start is not
 *   a multiple of the page size; @end is below @start; @vec is 0 or not a
 *   multiple of 8; @vec_len is 0 or larger than 2^31 - 1; @vma_size is out of
 *   range or not a multiple of 8; or only one of @data and @data_size is 0.
 * * EFAULT: the structure, the array or the data buffer cannot be read or
 *   written.
 * * ESRCH: the address space is gone (its processes have exited or executed
 *   another program), or the task is a kernel thread.
 * * EINTR: a signal arrived. Continue from @walk_end.
 * * ENAMETOOLONG: the path of the file is longer than PATH_MAX.
 * * ENOSPC: the name and the build ID of one mapping do not fit into the data
 *   buffer.
 * * ENOMEM: no memory.
 * * ENOTTY: the kernel does not implement PROCMAP_SCAN, or the file is not a
 *   maps file.
 *
 * The arguments are checked first, in the order of this list. EFAULT is always
 * returned. Any other error after the first record ends the call before the
 * mapping concerned; the records so far are returned, and the next call returns
 * the error if it persists. After EINTR, ENAMETOOLONG and ENOSPC, the mapping
 * concerned is the first one at or above @walk_end that passes the filters.
 * After any other error, the structure, the array and the data buffer have
 * undefined content.
 *
 * Permission to inspect the process is checked by open(2), and not again by the
 * ioctl.
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
