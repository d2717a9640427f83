/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module has to know of each base, in linux-VERSION.c, besides the name
 * of a VMA: proc_vma_name().
 */
#ifndef _LIVEPATCH_LIVE_H
#define _LIVEPATCH_LIVE_H

/*
 * The function that the base calls for ioctls on /proc/<pid>/maps, or NULL if it
 * has none there. Read only when the module is loaded.
 */
extern const char *const base_ioctl;

#endif /* _LIVEPATCH_LIVE_H */
