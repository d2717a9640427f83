/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module has to know of each base, in linux-VERSION.c, besides the name
 * of a VMA: proc_vma_name().
 */
#ifndef _LIVE_LIVE_H
#define _LIVE_LIVE_H

#include <linux/ftrace.h>

/*
 * The function that the base calls for ioctls on /proc/<pid>/maps, or NULL if it
 * has none there. Read only when the module is loaded.
 */
extern const char *const base_ioctl;

/* Have a traced function go on at @addr, with its arguments. Called by ftrace. */
void live_redirect(struct ftrace_regs *regs, unsigned long addr);

#endif /* _LIVE_LIVE_H */
