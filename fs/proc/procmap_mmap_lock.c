// SPDX-License-Identifier: GPL-2.0
/*
 * Find VMAs, with mmap_lock held for reading.
 */
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/sched/mm.h>

#include "procmap_walk.h"

int procmap_walk_lock(struct procmap_walk *walk)
{
	if (!walk->mm || !mmget_not_zero(walk->mm))
		return -ESRCH;
	walk->left = VMAS_PER_HOLD;
	if (mmap_read_lock_killable(walk->mm)) {
		mmput(walk->mm);
		return -EINTR;
	}
	return 0;
}

void procmap_walk_unlock(struct procmap_walk *walk)
{
	mmap_read_unlock(walk->mm);
	mmput(walk->mm);
}

static struct vm_area_struct *walk_find(struct procmap_walk *walk)
{
	if (walk->left < VMAS_PER_HOLD)
		return vma_next(&walk->vmi);

	/* The first step of a walk over one address is the last one. */
	if (walk->end - walk->pos == 1)
		return vma_lookup(walk->mm, walk->pos);

	vma_iter_init(&walk->vmi, walk->mm, walk->pos);
	return vma_next(&walk->vmi);
}

struct vm_area_struct *procmap_walk_next(struct procmap_walk *walk)
{
	struct vm_area_struct *vma;

	while (walk->left && walk->pos < walk->end) {
		vma = walk_find(walk);
		walk->left--;
		if (procmap_walk_advance(walk, vma))
			return vma;
	}
	return NULL;
}
