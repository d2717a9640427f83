/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the live module share. */
#ifndef _LIVE_LIVE_H
#define _LIVE_LIVE_H

#include <linux/fs.h>
#include <linux/mm.h>

/*
 * The beginning of the private data of a maps file's struct seq_file, as in
 * fs/proc/internal.h, which is not in the headers packages; live_check_file() verifies
 * it. @mm is NULL for a kernel thread; otherwise the opened file owns a reference on it
 * (mmgrab()), not on its users.
 */
struct proc_maps_private {
	struct inode *inode;
	struct task_struct *task;
#ifdef VM_REFCNT_LIMIT	/* since 6.18; 6.15 to 6.17 are refused */
	struct vma_iterator iter;
	loff_t last_pos;
#endif
	struct mm_struct *mm;
};

/*
 * Make the copied operations read the text without mmap_lock, or print why they do not.
 * @file is an opened maps file of the current process. Return 0, or -EINTR.
 */
int live_text_init(struct file *file, struct file_operations *operations);

#endif /* _LIVE_LIVE_H */
