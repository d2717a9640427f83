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
 * proc_build_id - find the build ID of an ELF file in its notes
 * @file: the mapped file. The caller owns a reference on it, and holds no lock.
 * @id: set to the build ID, starting at byte 0. Undefined if 0 is returned.
 * @may_read: pages that are not resident may be read.
 *
 * Resident pages are looked at in the page cache; no method of the file system is
 * called, and nothing is allocated. Other pages are read, but for those of sysfs and procfs,
 * and of FUSE, of an untrusted mounter and of stacked file systems: a user's server may never
 * answer, and no signal ends the wait for it. On ext4, XFS, btrfs and, since 6.12, f2fs, the
 * read does not take the inode's lock, which a writer may hold; elsewhere it takes the locks
 * that read(2) takes. No LSM and no fanotify listener is asked.
 *
 * Return: the length of the build ID, 1 to BUILD_ID_SIZE_MAX bytes; 0 if @file
 * is not an ELF executable or shared object of this machine's byte order, has no
 * such note, or cannot be read; or, unless @may_read, -EAGAIN if a page would have to
 * be read.
 */
int proc_build_id(struct file *file, u8 id[BUILD_ID_SIZE_MAX], bool may_read);

/* PROCMAP_QUERY finds build IDs by this function, too. */
#define PROC_BUILD_ID_IS_QUERYS		true

#endif /* _PROC_BUILD_ID_H */
