/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The name and the inode of a VMA: the same ones for the text of a maps file and
 * for its ioctls.
 */
#ifndef _PROC_VMA_NAME_H
#define _PROC_VMA_NAME_H

#include <linux/dcache.h>
#include <linux/fs.h>
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

/**
 * proc_vma_inode - get the inode whose number and device the text shows
 * @vma: the VMA, which has a file. The caller has locked it.
 *
 * Where stacked file systems map backing files, it is that of the file that the
 * user has opened.
 *
 * Return: the inode. No reference is taken.
 */
static inline const struct inode *proc_vma_inode(const struct vm_area_struct *vma)
{
#ifdef FMODE_BACKING
	return file_user_inode(vma->vm_file);
#else
	return file_inode(vma->vm_file);
#endif
}

#endif /* _PROC_VMA_NAME_H */
