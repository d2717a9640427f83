/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A walk over VMAs that are locked one by one.
 */
#ifndef _PROC_PROCMAP_VMA_LOCK_H
#define _PROC_PROCMAP_VMA_LOCK_H

#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>

#include "procmap_walk.h"

/*
 * Drop RCU or mmap_lock, but not the lock of the VMA that procmap_walk_next() has returned.
 * The caller may sleep then, and calls procmap_walk_unlock() next.
 */
static __always_inline void procmap_walk_unlock_tree(struct procmap_walk *walk)
{
	if (walk->tree_lock == TREE_RCU)
		rcu_read_unlock();
	else if (walk->tree_lock == TREE_MMAP_LOCK)
		mmap_read_unlock(walk->mm);
	walk->tree_lock = TREE_UNLOCKED;
}

#endif /* _PROC_PROCMAP_VMA_LOCK_H */
