/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The name of a VMA, decided in one place for all that show it.
 */
#ifndef _PROC_VMA_NAME_H
#define _PROC_VMA_NAME_H

struct path;
struct vm_area_struct;

/**
 * struct vma_name - what stands for the name of a VMA in /proc/<pid>/maps
 * @path: the path to show, or NULL. It belongs to the VMA's file.
 * @text: without @path: the name itself, or NULL if the VMA has none.
 * @prefix: what goes before a @text that was given with prctl(PR_SET_VMA), as
 *	in ``[anon:TEXT]``, and asks for the closing bracket; or NULL.
 *
 * The pointers are good for as long as the VMA is locked, and that to the path
 * for as long as its file is held.
 */
struct vma_name {
	const struct path *path;
	const char *text;
	const char *prefix;
};

/**
 * proc_vma_name - tell what stands for the name of a VMA
 * @vma: the VMA, locked by the caller for reading at least; or the gate VMA.
 * @name: set to its name.
 */
void proc_vma_name(struct vm_area_struct *vma, struct vma_name *name);

#endif /* _PROC_VMA_NAME_H */
