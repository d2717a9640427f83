/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * PROCMAP_SCAN: copy the mappings of a process in a range of addresses, by ioctl(2) on an
 * opened /proc/<pid>/maps or /proc/<pid>/task/<tid>/maps. It is modelled on PAGEMAP_SCAN of
 * Linux 6.7. Documentation/filesystems/procmap_scan.rst has its rules.
 */
#ifndef _UAPI_LINUX_PROCMAP_SCAN_H
#define _UAPI_LINUX_PROCMAP_SCAN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Copy the mappings in a range to an array. */
#define PROCMAP_SCAN	_IOWR('f', 0xe0, struct procmap_scan_arg)

/**
 * enum procmap_vma_flags - properties of a mapping, and filters but for the last two
 * @PROCMAP_VMA_READABLE: its pages may be read.
 * @PROCMAP_VMA_WRITABLE: its pages may be written.
 * @PROCMAP_VMA_EXECUTABLE: its pages may be executed.
 * @PROCMAP_VMA_SHARED: it is shared, not private.
 * @PROCMAP_VMA_FILE_BACKED: it has a file.
 * @PROCMAP_VMA_NAME_TOO_LONG: its name is longer than PATH_MAX, and not returned.
 * @PROCMAP_VMA_BUILD_ID_NOT_READ: its file would have to be read for the build ID.
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
 * enum procmap_scan_want - what to return besides the fields of a mapping
 * @PROCMAP_SCAN_NAMES: its name.
 * @PROCMAP_SCAN_BUILD_IDS: the build ID of its file.
 */
enum procmap_scan_want {
	PROCMAP_SCAN_NAMES		= 0x01,
	PROCMAP_SCAN_BUILD_IDS		= 0x02,
};

/**
 * enum procmap_scan_flags - status of a call
 * @PROCMAP_SCAN_CHANGED: the mappings have changed since the generation was read.
 * @PROCMAP_SCAN_QUERY_IS_BOUNDED: PROCMAP_QUERY of this file waits for no server of a user's.
 */
enum procmap_scan_flags {
	PROCMAP_SCAN_CHANGED		= 0x01,
	PROCMAP_SCAN_QUERY_IS_BOUNDED	= 0x02,
};

/**
 * struct procmap_vma - one record of PROCMAP_SCAN: a mapping
 * @start: Out: first address of the mapping.
 * @end: Out: first address past it.
 * @flags: Out: any of &enum procmap_vma_flags.
 * @page_size: Out: size of its pages, in bytes.
 * @offset: Out: file offset of @start, in bytes; 0 without a file.
 * @inode: Out: inode number of the file, or 0.
 * @dev_major: Out: major number of the file's device, or 0.
 * @dev_minor: Out: minor number of the file's device, or 0.
 * @name_offset: Out: offset of the name in the data buffer, in bytes.
 * @name_size: Out: size of the name with its NUL, or 0.
 * @build_id_offset: Out: offset of the build ID in the data buffer, in bytes.
 * @build_id_size: Out: size of the build ID, 1 to 20 bytes, or 0.
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
 * @size: In: size of this structure, which is its version.
 * @filter: In: properties that a mapping must have, of &enum procmap_vma_flags.
 * @want: In: any of &enum procmap_scan_want.
 * @start: In: first address of the range, a multiple of the page size.
 * @end: In: first address past the range; U64_MAX for all mappings.
 * @known_generation: In: a generation that an earlier call returned, or 0.
 * @walk_end: Out: the address to go on from; @end if the scan is complete.
 * @generation: Out: generation of the mappings when the call began; 0 if unknown.
 * @vec: In: address of the array of &struct procmap_vma, a multiple of 8.
 * @data: In: address of the buffer for names and build IDs, or 0.
 * @vec_len: In: length of the array in records, 1 to 2^31 - 1.
 * @vma_size: In: size of a record, a multiple of 8, from 72 bytes to a page.
 * @data_size: In: size of the buffer, in bytes, or 0.
 * @data_used: Out: bytes used of the buffer.
 * @data_needed: Out: bytes that the next record needs, if it did not fit; or 0.
 * @flags: Out: any of &enum procmap_scan_flags.
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
