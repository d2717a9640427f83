/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between bases, in linux-VERSION.c. See also vma_name.h. */
#ifndef _LIVE_LIVE_H
#define _LIVE_LIVE_H

#include <linux/ftrace.h>

/* True if the base itself has an ioctl on /proc/<pid>/maps. */
extern const bool base_has_ioctl;

/* The flags with which ftrace has the arguments of a traced function. */
extern const unsigned long base_ftrace_flags;

/* The second argument of the traced function, the open method. Called by ftrace. */
struct file *live_file(struct ftrace_regs *regs);

#endif /* _LIVE_LIVE_H */
