/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * PROCMAP_SCAN: copy the mappings of a process in a range of addresses, by
 * ioctl(2) on an opened /proc/<pid>/maps or /proc/<pid>/task/<tid>/maps.
 *
 * This is an extension that is not in mainline. It is modelled on PAGEMAP_SCAN
 * of Linux 6.7.
 */
#ifndef _UAPI_LINUX_PROCMAP_SCAN_H
#define _UAPI_LINUX_PROCMAP_SCAN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Copy the mappings in a range to an array. Not in mainline. */
#define PROCMAP_SCAN	_IOWR('f', 0xe0, struct procmap_scan_arg)

/**
 * enum procmap_vma_flags - properties of a mapping
 * @PROCMAP_VMA_READABLE: its pages may be read.
 * @PROCMAP_VMA_WRITABLE: its pages may be written.
 * @PROCMAP_VMA_EXECUTABLE: its pages may be executed.
 * @PROCMAP_VMA_SHARED: it is shared, not private.
 * @PROCMAP_VMA_FILE_BACKED: it has a file.
 * @PROCMAP_VMA_NAME_TOO_LONG: it has a name, which is wanted, and not returned
 *	since it is longer than PATH_MAX. Only reported, no filter.
 * @PROCMAP_VMA_BUILD_ID_NOT_READ: its build ID is wanted, and not returned since
 *	pages of its file would have to be read for it. PROCMAP_QUERY reads them.
 *	Only reported, no filter.
 *
 * They are reported in &procmap_vma.flags. All but the last two are filters in
 * &procmap_scan_arg.filter, too.
 */
enum procmap_vma_flags {
	PROCMAP_VMA_READABLE		= 0x01,
	PROCMAP_VMA_WRITABLE		= 0x02,
	PROCMAP_VMA_EXECUTABLE		= 0x04,
	PROCMAP_VMA_SHARED		= 0x08,
	PROCMAP_VMA_FILE_BACKED		= 0x10,
	PROCMAP_VMA_NAME_TOO_LONG	= 0x20,
	PROCMAP_VMA_BUILD_ID_NOT_READ	= 0x40,
};

/**
 * enum procmap_scan_want - optional outputs besides the fields of a mapping
 * @PROCMAP_SCAN_NAMES: its name.
 * @PROCMAP_SCAN_BUILD_IDS: the build ID of its file.
 *
 * For &procmap_scan_arg.want.
 */
enum procmap_scan_want {
	PROCMAP_SCAN_NAMES		= 0x01,
	PROCMAP_SCAN_BUILD_IDS		= 0x02,
};

/**
 * enum procmap_scan_flags - status of a call
 * @PROCMAP_SCAN_CHANGED: the address space has changed since
 *	&procmap_scan_arg.generation was read: the records may be of different
 *	states of it. Never set if the generation is 0.
 *
 * For &procmap_scan_arg.flags.
 */
enum procmap_scan_flags {
	PROCMAP_SCAN_CHANGED		= 0x01,
};

/**
 * struct procmap_vma - one record of PROCMAP_SCAN: a mapping
 * @start: Out: first address of the mapping.
 * @end: Out: first address past the mapping.
 * @flags: Out: its properties, of &enum procmap_vma_flags.
 * @page_size: Out: size of the mapping's pages, in bytes.
 * @offset: Out: file offset of @start, in bytes; 0 without a file.
 * @inode: Out: inode number of the file; 0 without a file.
 * @dev_major: Out: major number of the file's device; 0 without a file.
 * @dev_minor: Out: minor number of the file's device; 0 without a file.
 * @name_offset: Out: offset of the name in the data buffer, in bytes, if
 *	@name_size is not 0.
 * @name_size: Out: size of the name in bytes, including its NUL; 0 if the
 *	mapping has none, or names are not wanted, or it is longer than PATH_MAX
 *	(%PROCMAP_VMA_NAME_TOO_LONG). The name is the one that PROCMAP_QUERY
 *	returns.
 * @build_id_offset: Out: offset of the build ID in the data buffer, in bytes,
 *	if @build_id_size is not 0.
 * @build_id_size: Out: size of the build ID, 1 to 20 bytes; 0 if there is none,
 *	or build IDs are not wanted, or it would have to be read
 *	(%PROCMAP_VMA_BUILD_ID_NOT_READ).
 *
 * Records may share a name or a build ID in the data buffer. That is allowed,
 * not promised: two records of one file may also have two copies.
 */
struct procmap_vma {
	__aligned_u64 start;
	__aligned_u64 end;
	__aligned_u64 flags;
	__aligned_u64 page_size;
	__aligned_u64 offset;
	__aligned_u64 inode;
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
 *	from 104 (@flags included) to a page. If it is larger than the kernel's,
 *	all bytes that the kernel does not know must be zero. E2BIG, EINVAL.
 * @filter: In: return only mappings that have all these properties, of &enum
 *	procmap_vma_flags. EINVAL.
 * @want: In: the optional outputs, of &enum procmap_scan_want.
 *	EINVAL.
 * @start: In: first address of the range, a multiple of the page size. EINVAL.
 * @end: In: first address past the range, not below @start. EINVAL. Pass
 *	U64_MAX for all mappings.
 * @known_generation: In: 0; or the generation that an earlier call on this open
 *	file returned. If the address space is still of that generation, the scan
 *	is complete at once, with 0 records. 0 counts as changed.
 * @walk_end: Out: the address up to which the scan is done. It equals @end if
 *	and only if the scan is complete. Otherwise, pass it as @start to
 *	continue.
 * @generation: Out: the generation of the address space when the call began: a
 *	number that changes whenever its mappings do; or 0 if the kernel does not
 *	know, and then nothing counts as unchanged. It may come back after 2^31
 *	changes.
 * @vec: In: address of the array of records, &struct procmap_vma; a multiple of
 *	8, and not 0. EINVAL.
 * @data: In: address of the buffer for names and build IDs; 0 if and only if
 *	@data_size is 0. EINVAL.
 * @vec_len: In: length of the array in records, 1 to 2^31 - 1. EINVAL.
 * @vma_size: In: size of one record in the array, in bytes: a multiple of 8,
 *	from 72 (@build_id_size included) to a page. Bytes that the kernel does
 *	not know are set to zero. EINVAL.
 * @data_size: In: size of the buffer at @data, in bytes.
 * @data_used: Out: bytes used of the buffer, never more than @data_size.
 * @data_needed: Out: if the call ended because the rest of the buffer is too
 *	small for the name and the build ID of the next record, the bytes that
 *	those take; otherwise 0.
 * @flags: Out: status of the call, of &enum procmap_scan_flags.
 *
 * The records are the mappings that overlap the range and pass all filters, as
 * many as @vec and @data have room for, rising by their ends. Start, end and
 * offset are those of the whole mapping, also of one that begins below @start or
 * ends above @end.
 *
 * The process may change its mappings during a scan, which may take several
 * calls. No mapping is missed that passes the filters and is left alone during
 * the whole scan. A record may begin below @start, or below the end of the record
 * before it if the mapping there has changed meanwhile: a caller that
 * wants each address once cuts it there.
 *
 * If the first and the last call of a scan return the same generation, which is
 * not 0, and the last one does not set %PROCMAP_SCAN_CHANGED, then all records
 * are of one state of the address space. The generation does not change if a
 * mapped file is renamed or replaced: it says nothing about names and build IDs.
 *
 * The ioctl returns the number of records, which may be 0, or -1 with one of
 * these values in errno:
 *
 * * E2BIG: @size is larger than a page, or larger than the kernel's structure
 *   with a nonzero byte past it.
 * * EINVAL: @size is smaller than 104; @filter or @want has an unknown bit;
 *   @start is not a multiple of the page size; @end is below @start; @vec is 0
 *   or not a multiple of 8; @vec_len is 0 or larger than 2^31 - 1; @vma_size is
 *   out of range or not a multiple of 8; or only one of @data and @data_size is
 *   0.
 * * EFAULT: the structure, the array or the data buffer cannot be read or
 *   written.
 * * ESRCH: the address space is gone (its processes have exited or executed
 *   another program), or the task is a kernel thread.
 * * EINTR: a signal arrived, or other work that the kernel does for the caller
 *   as if it were one (TIF_NOTIFY_SIGNAL, which io_uring uses). Continue from
 *   @walk_end.
 * * ENOSPC: the name and the build ID of the first record do not fit into the
 *   data buffer. @data_needed says how many bytes they take.
 * * ENOMEM: no memory.
 * * ENOTTY: the kernel does not implement PROCMAP_SCAN, or the file is not a
 *   maps file.
 *
 * The arguments are checked first, in the order of this list. EFAULT is always
 * returned. Any other error after the first record ends the call before the
 * mapping concerned; the records so far are returned, and the next call returns
 * the error if it persists. After EINTR and ENOSPC, the outputs are valid. After
 * any other error, the structure, the array and the data buffer have undefined
 * content.
 *
 * An empty range is complete at once, even if the process is gone.
 *
 * Permission to inspect the process is checked by open(2), and not again by the
 * ioctl.
 */
struct procmap_scan_arg {
	__aligned_u64 size;
	__aligned_u64 filter;
	__aligned_u64 want;
	__aligned_u64 start;
	__aligned_u64 end;
	__aligned_u64 known_generation;
	__aligned_u64 walk_end;
	__aligned_u64 generation;
	__aligned_u64 vec;
	__aligned_u64 data;
	__u32 vec_len;
	__u32 vma_size;
	__u32 data_size;
	__u32 data_used;
	__u32 data_needed;
	__u32 flags;
};

#endif /* _UAPI_LINUX_PROCMAP_SCAN_H */
