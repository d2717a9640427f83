/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The name of a VMA: the same one for the text of a maps file and for its ioctl.
 */
#ifndef _PROC_VMA_NAME_H
#define _PROC_VMA_NAME_H

#include <linux/dcache.h>
#include <linux/mm_types.h>

/**
 * struct vma_name - the name of a VMA as /proc/<pid>/maps shows it
 * @path: the path to show, or NULL. It belongs to the VMA's file, and is valid
 *	as long as a reference on that is held.
 * @text: if @path is NULL: the name, or NULL if the VMA has none. Valid as long
 *	as the VMA is locked.
 * @format: of a name set by prctl(PR_SET_VMA): the format to print @text with, such as
 *	"[anon:%s]". Otherwise NULL.
 */
struct vma_name {
	const struct path *path;
	const char *text;
	const char *format;
};

/**
 * proc_vma_name - get the name of a VMA
 * @vma: the VMA. The caller has locked it, at least for reading; the gate VMA
 *	needs no lock.
 * @name: set to the name. No reference is taken.
 */
void proc_vma_name(struct vm_area_struct *vma, struct vma_name *name);

#endif /* _PROC_VMA_NAME_H */
