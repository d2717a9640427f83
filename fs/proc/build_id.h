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
 * @file: the file, as a VMA maps it. The caller holds a reference.
 * @id: set to the build ID, which begins at its first byte.
 *
 * The file is read through its page cache, and only if it is a regular file
 * that has one: no read method, fanotify event or LSM hook is called for the
 * query. Pages that are not resident are read in, so this may sleep, and no
 * lock that a file system or a page fault takes may be held.
 *
 * Return: the length of the build ID, 1 to BUILD_ID_SIZE_MAX bytes, or 0 if
 * there is none: @file is no ELF executable or shared object of this machine's
 * byte order, it has no such note, or it could not be read.
 */
size_t proc_build_id(struct file *file, u8 id[BUILD_ID_SIZE_MAX]);

#endif /* _PROC_BUILD_ID_H */
