/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What an opened /proc/<pid>/maps tells in binary form, by ioctl(2).
 *
 * The layout, the numbers and the error codes of PROCMAP_QUERY are those of
 * Linux 6.11's <linux/fs.h>. Each command is guarded by itself, after that
 * header has been read, so this one may stand before or after a system header
 * that has it.
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
 * enum procmap_query_flags - which mappings may answer, and which one does
 * @PROCMAP_QUERY_VMA_READABLE: in &procmap_query.query_flags: only a mapping
 *	that can be read; in &procmap_query.vma_flags: this one can. The three
 *	flags that follow are used in both fields in the same way.
 * @PROCMAP_QUERY_VMA_WRITABLE: a mapping that can be written.
 * @PROCMAP_QUERY_VMA_EXECUTABLE: a mapping that can be executed.
 * @PROCMAP_QUERY_VMA_SHARED: a mapping that the text file shows as ``s``.
 * @PROCMAP_QUERY_COVERING_OR_NEXT_VMA: the first mapping at or above the
 *	address that passes every filter answers. Without this flag only one
 *	that covers the address can.
 * @PROCMAP_QUERY_FILE_BACKED_VMA: only a mapping of a file. Filters add up: a
 *	mapping has to pass all that are given.
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
 * struct procmap_query - the question and the answer of PROCMAP_QUERY
 * @size: In: bytes of the caller's structure, which is its version: from 24
 *	(up to and with @query_addr) to a page. A shorter one than the kernel's
 *	gets the fields that fit; of a longer one, the bytes that the kernel
 *	does not know must be zero.
 * @query_flags: In: any of &enum procmap_query_flags.
 * @query_addr: In: the address to look up.
 * @vma_start: Out: first address of the mapping.
 * @vma_end: Out: first address past the mapping.
 * @vma_flags: Out: its permissions, the four PROCMAP_QUERY_VMA_* flags.
 * @vma_page_size: Out: size in bytes of the pages that back it.
 * @vma_offset: Out: offset in bytes of @vma_start in the file, 0 without one.
 * @inode: Out: number of the file's inode, 0 without a file.
 * @dev_major: Out: major number of the file's device, 0 without a file.
 * @dev_minor: Out: minor number of the file's device, 0 without a file.
 * @vma_name_size: In: bytes at @vma_name_addr, 0 if no name is wanted. Out:
 *	length of the name with its NUL byte, 0 if the mapping has none.
 * @build_id_size: In: bytes at @build_id_addr, 0 if no build ID is wanted.
 *	Out: length of the build ID, 1 to 20 bytes, 0 if there is none.
 * @vma_name_addr: In: address of the buffer for the name, or 0. The name is
 *	the path of the file as raw bytes, followed by `` (deleted)`` once it
 *	has no link left, or what the text file shows instead of a path, such
 *	as ``[heap]``. The text writes a newline as ``\012``, this does not.
 *	A name takes PATH_MAX bytes at most.
 * @build_id_addr: In: address of the buffer for the build ID, or 0. It is
 *	taken from the notes of the ELF file (ET_EXEC or ET_DYN) that is mapped.
 *	A file that cannot be read has none.
 *
 * The ioctl returns 0, or -1 with errno one of
 *
 * * E2BIG: @size is larger than a page, or there is a nonzero byte past the
 *   kernel's structure.
 * * EINVAL: @size does not reach past @query_addr, or @query_flags has an
 *   unknown flag, or a buffer's address comes without its size or the reverse.
 * * ESRCH: the address space that was opened has no user left, since its
 *   process has exited or executed another program, or it never was one (a
 *   kernel thread).
 * * EINTR: a fatal signal arrived while waiting for the lock.
 * * ENOENT: no mapping answers.
 * * ENAMETOOLONG: the name or the build ID is longer than its buffer.
 * * ENOMEM: there was no memory for the name.
 * * EFAULT: the structure or a buffer cannot be read or written.
 * * ENOTTY: this kernel has no PROCMAP_QUERY, or the file is not a maps file.
 *
 * They are checked in this order. After an error the content of the structure
 * and of the buffers is undefined. The right to look into the process was
 * checked when the file was opened, and is not checked again.
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
