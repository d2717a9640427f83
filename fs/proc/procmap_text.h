/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The VMAs of the lines of /proc/<pid>/maps, without mmap_lock.
 */
#ifndef _PROC_PROCMAP_TEXT_H
#define _PROC_PROCMAP_TEXT_H

#include <linux/mm_types.h>
#include <linux/types.h>

#include "procmap_walk.h"

/**
 * struct procmap_text - progress of a reader of the text
 * @walk: the walk over the VMAs.
 * @gate: the gate VMA, which has the last line, or NULL.
 * @is_locked: procmap_walk_lock() has taken the locks of @walk.
 *
 * It is zero when the file is opened. The caller's lock on the file protects it.
 */
struct procmap_text {
	struct procmap_walk walk;
	struct vm_area_struct *gate;
	bool is_locked;
};

/**
 * procmap_text_start - find the VMA of the first line of a read
 * @text: the text.
 * @mm: the opened address space, or NULL for a kernel thread. The caller keeps
 *	it allocated (mmgrab()); it may have no users left.
 * @gate: its gate VMA, or NULL.
 * @pos: 0, or the value that this or procmap_text_next() has set.
 *
 * May sleep. Whatever is returned, the caller ends the read by procmap_text_stop().
 *
 * Return: the VMA, which is locked until the next call. NULL if there is none, or if @mm
 * has no users left; or -EINTR if a fatal signal arrived.
 */
struct vm_area_struct *procmap_text_start(struct procmap_text *text,
					  struct mm_struct *mm,
					  struct vm_area_struct *gate, loff_t *pos);

/**
 * procmap_text_next - find the VMA of the next line
 * @text: the text. A VMA has been found.
 * @pos: moves behind the line of that VMA.
 *
 * May sleep.
 *
 * Return: as procmap_text_start() does.
 */
struct vm_area_struct *procmap_text_next(struct procmap_text *text, loff_t *pos);

/**
 * procmap_text_stop - unlock the VMA of the current line, if there is one
 * @text: the text.
 */
void procmap_text_stop(struct procmap_text *text);

#endif /* _PROC_PROCMAP_TEXT_H */
