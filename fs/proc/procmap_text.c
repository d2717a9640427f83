// SPDX-License-Identifier: GPL-2.0
/*
 * The text of /proc/<pid>/maps: find and lock the VMA of each line.
 *
 * The position between two lines is the end of the last one, so it never goes back. A VMA
 * that has grown or been merged meanwhile, and starts before the position, is shown whole.
 */
#include <linux/sched/signal.h>

#include "procmap_text.h"

/* The positions of the gate VMA and past it. No VMA ends there. */
#define GATE_POS	((loff_t)-2UL)
#define END_POS		((loff_t)-1UL)

static struct vm_area_struct *text_find(struct procmap_text *text, loff_t *pos)
{
	struct procmap_walk *walk = &text->walk;
	struct vm_area_struct *vma;
	int err;

	for (;;) {
		if (!text->is_locked) {
			err = procmap_walk_lock(walk);
			if (err)
				return err == -ESRCH ? NULL : ERR_PTR(err);
			text->is_locked = true;
		}
		vma = procmap_walk_next(walk);
		if (vma) {
			procmap_vma_assert_locked(vma);
			return vma;
		}
		if (walk->pos >= walk->end) {
			*pos = GATE_POS;
			return text->gate;
		}
		procmap_text_stop(text);
		if (fatal_signal_pending(current))
			return ERR_PTR(-EINTR);
		cond_resched();
	}
}

struct vm_area_struct *procmap_text_start(struct procmap_text *text,
					  struct mm_struct *mm,
					  struct vm_area_struct *gate, loff_t *pos)
{
	procmap_walk_init(&text->walk, mm, *pos, U64_MAX, 0, false);
	text->gate = gate;
	return text_find(text, pos);
}

struct vm_area_struct *procmap_text_next(struct procmap_text *text, loff_t *pos)
{
	if (*pos == GATE_POS) {
		*pos = END_POS;
		return NULL;
	}
	*pos = text->walk.pos;
	return text_find(text, pos);
}

void procmap_text_stop(struct procmap_text *text)
{
	if (!text->is_locked)
		return;
	text->is_locked = false;
	procmap_walk_unlock(&text->walk);
	procmap_assert_unlocked(&text->walk);
}
