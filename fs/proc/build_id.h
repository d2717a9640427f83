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
 * @file: the mapped file. The caller owns a reference on it.
 * @id: set to the build ID, starting at byte 0. Undefined if 0 is returned.
 * @may_block: pages that are not resident may be read.
 *
 * Only regular files with a page cache have one. Resident pages are looked at in
 * the page cache; no method of the file system is called, and nothing is
 * allocated. Other pages are read as a page fault or read(2) reads them, but only
 * from file systems where no user can make that wait: ext2, ext3, ext4, XFS and tmpfs.
 * That may block for as long as the device does, or until a fatal signal arrives;
 * that does not end a wait for what a file system reads for itself, nor for swap. The
 * caller must not hold a lock that a file system or a page fault takes, such as
 * mmap_lock.
 *
 * Return: the length of the build ID, 1 to BUILD_ID_SIZE_MAX bytes; 0 if @file
 * is not an ELF executable or shared object of this machine's byte order, has no
 * such note, or cannot be read; or, unless @may_block, -EAGAIN if a page has to
 * be read.
 */
int proc_build_id(struct file *file, u8 id[BUILD_ID_SIZE_MAX], bool may_block);

/**
 * proc_file_has_pages - may a file have a build ID?
 * @file: the file.
 *
 * Return: true for regular files with a page cache that may be looked at.
 */
bool proc_file_has_pages(struct file *file);

/**
 * proc_file_may_hang - can a user without privileges make operations hang?
 * @file: the file.
 *
 * Return: true for FUSE and for file systems of an untrusted mounter: a read, or
 * what the last fput() does, may wait there for a process that never answers, and no
 * signal ends it.
 */
bool proc_file_may_hang(const struct file *file);

#endif /* _PROC_BUILD_ID_H */
