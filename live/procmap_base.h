/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The names that differ between kernels, of the lock of a VMA, its file's inode and path.
 * The headers are searched for a macro or a file, never for a version: a distribution's
 * kernel may have the memory management of a later one.
 */
#ifndef _PROC_PROCMAP_BASE_H
#define _PROC_PROCMAP_BASE_H

#include <linux/fs.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>

/*
 * procmap_vma_trylock(): lock a VMA of @mm that was found under RCU, unless a writer has.
 * procmap_vma_is_detached(): true if it was unmapped between finding and locking it.
 * procmap_vma_lock(): lock a VMA while mmap_lock is held for reading. There is no writer
 * to wait for.
 */
#ifdef LIVE_VMA_LOCK

#define procmap_vma_trylock(mm, vma)	vma_start_read(vma)
#define procmap_vma_is_detached(vma)	((vma)->detached)
#define procmap_vma_lock(vma)		(down_read(&(vma)->vm_lock->lock), true)
#define procmap_vma_assert_locked(vma)	vma_assert_locked(vma)

#else

#define procmap_vma_assert_locked(vma) \
	lockdep_assert_held(&(vma)->vm_mm->mmap_lock)

#endif

/*
 * The inode and the path that the text shows. The VMA has a file, and is locked. Stacked
 * file systems may map a file of their own instead of the one that the user has opened.
 */
#if __has_include(<linux/backing-file.h>)
#define procmap_vma_inode(vma)		file_user_inode((vma)->vm_file)
#define procmap_vma_path(vma)		file_user_path((vma)->vm_file)
#else
#define procmap_vma_inode(vma)		file_inode((vma)->vm_file)
#define procmap_vma_path(vma)		(&(vma)->vm_file->f_path)
#endif

#endif /* _PROC_PROCMAP_BASE_H */
