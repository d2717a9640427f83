/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a walk remembers that locks VMAs one by one.
 */
#ifndef _PROC_PROCMAP_VMA_LOCK_H
#define _PROC_PROCMAP_VMA_LOCK_H

#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>

/**
 * struct procmap_locks - the locks of a walk
 * @vma: the VMA whose own lock is held, or NULL.
 * @seq: mm_lock_seq when the tree was looked at last.
 * @tries: consecutive attempts that met a writer. Dropping the locks does not
 *	reset it.
 * @tree: what is held while the tree is walked. It is dropped once a VMA is locked
 *	that was found under mmap_lock.
 */
struct procmap_locks {
	struct vm_area_struct *vma;
	unsigned int seq;
	unsigned int tries;
	enum { TREE_UNLOCKED, TREE_RCU, TREE_MMAP_LOCK } tree;
};

/* mm_lock_seq is odd while a writer holds mmap_lock, and moves when it begins and ends. */
static inline unsigned int procmap_lock_seq(const struct mm_struct *mm)
{
#ifdef CONFIG_PER_VMA_LOCK
	/* Not a seqcount's read section: KCSAN keeps checking. */
	return smp_load_acquire(&mm->mm_lock_seq.sequence);
#else
	return 1;	/* nothing counts */
#endif
}

static inline bool procmap_locks_held(const struct procmap_locks *locks)
{
	return locks->vma || locks->tree;
}

/*
 * Drop RCU or mmap_lock, but not the lock of the VMA that procmap_walk_next() has returned.
 * The caller may sleep then, and calls procmap_walk_unlock() next.
 */
static __always_inline void procmap_unlock_tree(struct procmap_locks *locks,
						struct mm_struct *mm)
{
	if (locks->tree == TREE_RCU)
		rcu_read_unlock();
	else if (locks->tree == TREE_MMAP_LOCK)
		mmap_read_unlock(mm);
	locks->tree = TREE_UNLOCKED;
}

#endif /* _PROC_PROCMAP_VMA_LOCK_H */
