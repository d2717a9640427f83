// SPDX-License-Identifier: GPL-2.0
/*
 * Find VMAs under RCU, and lock them one by one.
 */
#include <linux/err.h>
#include <linux/iopoll.h>
#include <linux/sched/mm.h>

#include "procmap_walk.h"

/* Attempts to find VMAs without mmap_lock while writers are met. */
#define TRIES_MAX		4

/*
 * Time to wait for a writer before another attempt. A thread that maps and unmaps one VMA
 * while that very VMA is looked up takes 1.0 to 1.2 times as long as alone; without the
 * wait, 5.8 to 6.4 times.
 */
#define WRITER_TIMEOUT_US	50

/* No writer has been at work since the counter was @seq. */
static bool walk_is_unchanged(const struct mm_struct *mm, unsigned int seq)
{
	return !(seq & 1) && !read_seqcount_retry(&mm->mm_lock_seq, seq);
}

static int walk_take_lock(struct procmap_walk *walk)
{
	unsigned int seq;

	if (walk->locks.tries &&
	    (walk->locks.tries >= TRIES_MAX ||
	     read_poll_timeout_atomic(procmap_lock_seq, seq, !(seq & 1), 1,
				      WRITER_TIMEOUT_US, false, walk->mm))) {
		walk->left = 1;
		walk->locks.tries = 0;
		walk->locks.tree = TREE_MMAP_LOCK;
		return mmap_read_lock_killable(walk->mm);
	}
	walk->locks.tree = TREE_RCU;
	rcu_read_lock();
	return 0;
}

int procmap_walk_lock(struct procmap_walk *walk)
{
	if (!walk->mm || !mmget_not_zero(walk->mm))
		return -ESRCH;
	walk->left = VMAS_PER_HOLD;
	if (walk_take_lock(walk)) {
		mmput(walk->mm);
		return -EINTR;
	}
	return 0;
}

void procmap_walk_unlock(struct procmap_walk *walk)
{
	/* Before RCU: nothing else keeps a VMA that was detached when it was locked. */
	if (walk->locks.vma)
		vma_end_read(walk->locks.vma);
	walk->locks.vma = NULL;
	procmap_unlock_tree(&walk->locks, walk->mm);
	mmput(walk->mm);
}

/*
 * Find the VMA at @pos, or the first one above it that starts below @end. While no VMA is
 * locked, each step begins at the root of the tree, by mas_walk().
 */
static struct vm_area_struct *walk_down(struct procmap_walk *walk)
{
	struct ma_state *mas = &walk->vmi.mas;
	struct vm_area_struct *vma;

	/* The first step of a walk over one address is the last one. */
	if (walk->left == VMAS_PER_HOLD && walk->end - walk->pos == 1)
		return vma_lookup(walk->mm, walk->pos);

	vma_iter_init(&walk->vmi, walk->mm, walk->pos);
	while (!(vma = mas_walk(mas)) && mas->last != ULONG_MAX &&
	       mas->last + 1 < walk->end)
		mas_set(mas, mas->last + 1);
	return vma;
}

/* Find and lock a VMA, with mmap_lock held. One with too many readers is looked for again. */
static struct vm_area_struct *walk_find_without_writer(struct procmap_walk *walk)
{
	struct vm_area_struct *vma = walk_down(walk);

	if (vma && !procmap_vma_lock(vma))
		return ERR_PTR(-EAGAIN);
	walk->locks.vma = vma;
	/* The caller may format a path, and needs the VMA only. */
	procmap_unlock_tree(&walk->locks, walk->mm);
	return vma;
}

/*
 * Find and lock the next VMA. Return NULL if there is none, or -EAGAIN to look again, as
 * long as there is @left.
 *
 * While a VMA is locked, vma_next() goes on from there, unless a writer was at work since
 * the iterator was placed: it would pass over a VMA that has grown since. If none was, a
 * VMA that does not pass need not be locked.
 *
 * A VMA that covers @pos does so while it is locked. A gap at @pos may be a state
 * between two steps of a writer, such as mremap(2) onto another mapping: it counts only
 * if no writer was at work.
 */
static struct vm_area_struct *walk_find(struct procmap_walk *walk)
{
	struct vm_area_struct *vma;
	unsigned int seq;

	if (walk->locks.tree == TREE_MMAP_LOCK)
		return walk_find_without_writer(walk);

	seq = procmap_lock_seq(walk->mm);
	vma = walk->locks.vma && seq == walk->locks.seq && !(seq & 1) ?
	      vma_next(&walk->vmi) : walk_down(walk);
	walk->locks.seq = seq;
	/* A writer may change it meanwhile, and then it is not used. */
	if (vma && walk->locks.vma && !data_race(procmap_walk_passes(walk, vma)) &&
	    walk_is_unchanged(walk->mm, seq)) {
		walk->pos = walk->vmi.mas.last + 1;
		return ERR_PTR(-EAGAIN);
	}
	if (vma) {
		if (!procmap_vma_trylock(walk->mm, vma))
			goto contended;
		if (walk->locks.vma)
			vma_end_read(walk->locks.vma);
		walk->locks.vma = vma;
		if (procmap_vma_is_detached(vma) || vma->vm_end <= walk->pos)
			goto contended;
	}
	if ((vma && vma->vm_start <= walk->pos) ||
	    walk_is_unchanged(walk->mm, seq)) {
		walk->locks.tries = 0;
		return vma;
	}
contended:
	walk->locks.tries++;
	walk->left = 1;	/* drop the locks first */
	return ERR_PTR(-EAGAIN);
}

struct vm_area_struct *procmap_walk_next(struct procmap_walk *walk)
{
	struct vm_area_struct *vma;

	while (walk->left && walk->pos < walk->end) {
		vma = walk_find(walk);
		walk->left--;
		if (!IS_ERR(vma) && procmap_walk_advance(walk, vma)) {
			lockdep_assert_not_held(&walk->mm->mmap_lock);
			return vma;
		}
	}
	return NULL;
}
