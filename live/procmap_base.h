/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The names that differ between kernels.
 */
#ifndef _PROC_PROCMAP_BASE_H
#define _PROC_PROCMAP_BASE_H

#include <linux/fs.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>

/* The file system reads buffered through filemap_read(), which waits for pages alone. */
#ifdef FOP_BUFFER_RASYNC
#define procmap_has_buf_rasync(file)	((file)->f_op->fop_flags & FOP_BUFFER_RASYNC)
#else	/* before 6.10 */
#define procmap_has_buf_rasync(file)	((file)->f_mode & FMODE_BUF_RASYNC)
#endif

#if LIVE_VMA_LOCK
#include "../fs/proc/procmap_vma_lock.h"
#endif

/*
 * procmap_vma_trylock(): lock a VMA of @mm that was found under RCU, unless a writer has.
 * procmap_vma_is_detached(): true if it was unmapped between finding and locking it.
 * procmap_vma_lock(): lock a VMA while mmap_lock is held for reading. There is no writer
 * to wait for; return false if there are too many readers.
 */
/* A count of references. Memory of VMAs is reused under RCU. */
#if LIVE_VMA_LOCK && defined(VM_REFCNT_LIMIT)

/* A VMA that is reused is kept by its lock. Its mm may go with it: keep that as well. */
static inline void procmap_vma_unlock_other(struct vm_area_struct *vma)
{
	struct mm_struct *other = vma->vm_mm;

	rcu_read_unlock();
	mmgrab(other);
	vma_end_read(vma);
	mmdrop(other);
	rcu_read_lock();
}

/* The kernel's own vma_start_read() is not exported. */
static inline bool procmap_vma_trylock(struct mm_struct *mm, struct vm_area_struct *vma)
{
	/* A reader, even a short one, would delay the writer. */
	if (READ_ONCE(vma->vm_lock_seq) == READ_ONCE(mm->mm_lock_seq.sequence))
		return false;
	if (!__refcount_inc_not_zero_limited_acquire(&vma->vm_refcnt, NULL,
						     VM_REFCNT_LIMIT))
		return false;
	__vma_lockdep_acquire_read(vma);
	if (unlikely(vma->vm_mm != mm)) {
		procmap_vma_unlock_other(vma);
		return false;
	}
	/* Pairs with vma_end_write_all(): what that writer has changed is seen. */
	if (likely(vma->vm_lock_seq != smp_load_acquire(&mm->mm_lock_seq.sequence)))
		return true;
	vma_end_read(vma);
	return false;
}

static inline bool procmap_vma_is_detached(const struct vm_area_struct *vma)
{
	return false;
}

#define procmap_vma_lock(vma)		vma_start_read_locked(vma)
#define procmap_vma_assert_locked(vma)	vma_assert_locked(vma)

#elif LIVE_VMA_LOCK

static inline bool procmap_vma_trylock(struct mm_struct *mm, struct vm_area_struct *vma)
{
	return vma_start_read(vma);
}

#define procmap_vma_is_detached(vma)	((vma)->detached)
#define procmap_vma_lock(vma)		(down_read(&(vma)->vm_lock->lock), true)
#define procmap_vma_assert_locked(vma)	vma_assert_locked(vma)

#else

#define procmap_vma_assert_locked(vma) \
	lockdep_assert_held(&(vma)->vm_mm->mmap_lock)

struct procmap_locks { };	/* mmap_lock is all */

#define procmap_locks_held(locks)	false
#define procmap_lock_seq(mm)		1	/* nothing counts */

#endif

/* The inode and the path that the text shows. The VMA has a file, and is locked. */
#if LIVE_USER_INODE
#define procmap_vma_inode(vma)		file_user_inode((vma)->vm_file)
#else
#define procmap_vma_inode(vma)		file_inode((vma)->vm_file)
#endif
#if LIVE_USER_PATH
#define procmap_vma_path(vma)		file_user_path((vma)->vm_file)
#else
#define procmap_vma_path(vma)		(&(vma)->vm_file->f_path)
#endif

/*
 * Get the name of a locked VMA, or of the gate VMA, as the text shows it: @path, which is
 * valid while its file is; or @name, while the VMA is locked, and the format to print it
 * with, or NULL, if prctl(PR_SET_VMA) has set it; or none. No reference is taken.
 */
void get_vma_name(struct vm_area_struct *vma, const struct path **path,
		  const char **name, const char **format);

#endif /* _PROC_PROCMAP_BASE_H */
