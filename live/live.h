/* SPDX-License-Identifier: GPL-2.0 */
/* The parts that differ between bases, in linux-VERSION.c. See also proc_vma_inode(). */
#ifndef _LIVE_LIVE_H
#define _LIVE_LIVE_H

#include <linux/fs.h>
#include <linux/ftrace.h>

/*
 * The beginning of the private data of a maps file's struct seq_file, as in
 * fs/proc/internal.h, which is not in the headers packages; live_check_file() verifies
 * it. @mm is NULL for a kernel thread; otherwise the opened file owns a reference on it
 * (mmgrab()), not on its users.
 */
struct proc_maps_private {
	struct inode *inode;
	struct task_struct *task;
	struct mm_struct *mm;
};

/* True if the base itself has an ioctl on /proc/<pid>/maps. */
extern const bool base_has_ioctl;

/* The flags with which ftrace has the arguments of a traced function. */
extern const unsigned long base_ftrace_flags;

/* The second argument of the traced function, the open method. Called by ftrace. */
struct file *live_file(struct ftrace_regs *regs);

/*
 * Return true if an address space has the gate VMA. get_gate_vma() is not exported. @mm is
 * NULL for a kernel thread.
 */
bool base_has_gate(const struct mm_struct *mm);

/*
 * Make the copied operations read the text without mmap_lock, or print why they do not.
 * @file is an opened maps file of the current process. Return 0, or -EINTR.
 */
int live_text_init(struct file *file, struct file_operations *operations);

#endif /* _LIVE_LIVE_H */
