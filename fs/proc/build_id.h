/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The build ID of a mapped ELF file.
 */
#ifndef _PROC_BUILD_ID_H
#define _PROC_BUILD_ID_H

#include <linux/buildid.h>
#include <linux/types.h>

struct file;

/**
 * proc_build_id - read the build ID of an ELF file from its notes
 * @file: the mapped file. The caller holds a reference on it.
 * @id: set to the build ID, starting at byte 0. Undefined if 0 is returned.
 *
 * The file is read through its page cache, and only if it is a regular file
 * that has one. No read method, fanotify event or LSM hook is called. Pages
 * that are not resident are read in, so this may sleep. The caller must not
 * hold a lock that a file system or a page fault takes, such as mmap_lock.
 *
 * Return: the length of the build ID, 1 to BUILD_ID_SIZE_MAX bytes; or 0 if
 * @file is not an ELF executable or shared object of this machine's byte order,
 * has no such note, or cannot be read.
 */
size_t proc_build_id(struct file *file, u8 id[BUILD_ID_SIZE_MAX]);

#endif /* _PROC_BUILD_ID_H */
