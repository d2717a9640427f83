/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A walk over the VMAs of an address space.
 */
#ifndef _PROC_PROCMAP_WALK_H
#define _PROC_PROCMAP_WALK_H

#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/mmdebug.h>
#include <linux/types.h>

#include "procmap_vma.h"

/* VMAs that are looked at before the locks are dropped. */
#define VMAS_PER_HOLD		64U

/**
 * struct procmap_walk - a walk over the VMAs of an address space
 * @mm: the address space, or NULL for a kernel thread. The caller keeps it
 *	allocated.
 * @pos: the address up to which the walk is done: the VMAs that end above it
 *	are still to come.
 * @end: VMAs that start at or above this address are left out.
 * @permissions: PROCMAP_QUERY_VMA_* flags, all of which a VMA needs to pass.
 * @file_backed: only VMAs with a file pass.
 * @left: VMAs that may be looked at until the locks are dropped.
 * @vmi: the position in the tree while the locks are held, unless @end is @pos + 1.
 * @locks: what this kernel's way to lock VMAs has to remember.
 */
struct procmap_walk {
	struct mm_struct *mm;
	u64 pos;
	u64 end;
	u64 permissions;
	bool file_backed;
	unsigned int left;
	struct vma_iterator vmi;
	struct procmap_locks locks;
};

/*
 * Begin a walk from @pos to @end over the VMAs that pass a filter. procmap_walk_lock()
 * sets the other members: a lookup need not clear them. A 32-bit kernel has no mappings
 * above ULONG_MAX.
 */
static inline void procmap_walk_init(struct procmap_walk *walk,
				     struct mm_struct *mm, u64 pos, u64 end,
				     u64 permissions, bool file_backed)
{
	walk->mm = mm;
	walk->pos = pos <= ULONG_MAX ? pos : end;
	walk->end = end;
	walk->permissions = permissions;
	walk->file_backed = file_backed;
	walk->locks = (struct procmap_locks){ };
}

static inline bool procmap_walk_passes(const struct procmap_walk *walk,
				       const struct vm_area_struct *vma)
{
	return !(walk->permissions & ~procmap_vma_permissions(vma)) &&
	       (vma->vm_file || !walk->file_backed);
}

/*
 * Go past a VMA that has been found, or with NULL to @end. Return true if it is one that
 * the walk returns.
 */
static inline bool procmap_walk_advance(struct procmap_walk *walk,
					const struct vm_area_struct *vma)
{
	if (!vma || vma->vm_start >= walk->end) {
		walk->pos = walk->end;
		return false;
	}
	walk->pos = vma->vm_end;
	return procmap_walk_passes(walk, vma);
}

/*
 * The caller holds no lock of the target's, and may allocate, format paths, read
 * files, and copy to user space. mmput() has asserted that it may sleep.
 */
static inline void procmap_assert_unlocked(const struct procmap_walk *walk)
{
	lockdep_assert_not_held(&walk->mm->mmap_lock);
	VM_WARN_ON_ONCE(procmap_locks_held(&walk->locks));
}

/**
 * procmap_walk_lock - take the locks for the next steps of a walk
 * @walk: the walk; it goes on at @pos.
 *
 * On success the caller holds RCU or mmap_lock for reading, and a reference on the
 * users of the address space, and drops both with procmap_walk_unlock(). May sleep.
 * In between, the caller may not.
 *
 * Return: 0, -ESRCH if the address space has no users left, or -EINTR if a fatal
 * signal arrived while waiting for the lock.
 */
int procmap_walk_lock(struct procmap_walk *walk);

/**
 * procmap_walk_next - find the next VMA that passes the filter
 * @walk: the walk. procmap_walk_lock() has taken its locks.
 *
 * @pos advances past the VMA returned and those that do not pass, or to @end behind the
 * last VMA.
 *
 * Return: the VMA, which stays locked until procmap_walk_unlock() or the next call;
 * NULL if there is none; or, with @pos below @end, NULL after VMAS_PER_HOLD VMAs or if
 * a writer was met. After NULL, the locks have to be dropped.
 */
struct vm_area_struct *procmap_walk_next(struct procmap_walk *walk);

/**
 * procmap_walk_unlock - undo procmap_walk_lock()
 * @walk: the walk.
 *
 * If the users of the address space have gone meanwhile, this tears it down, as in
 * the base's own readers of maps.
 */
void procmap_walk_unlock(struct procmap_walk *walk);

#endif /* _PROC_PROCMAP_WALK_H */
