/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between bases, in linux-VERSION.c. See also vma_name.h. */
#ifndef _LIVE_LIVE_H
#define _LIVE_LIVE_H

#include <linux/ftrace.h>

/* True if the base itself has an ioctl on /proc/<pid>/maps. */
extern const bool base_has_ioctl;

/* Have a traced function go on at @addr, with its arguments. Called by ftrace. */
void live_redirect(struct ftrace_regs *regs, unsigned long addr);

#endif /* _LIVE_LIVE_H */
