/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts that the ioctls share: copy in the argument, and copy the fields of a VMA.
 */
#ifndef _PROC_PROCMAP_VMA_H
#define _PROC_PROCMAP_VMA_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/kdev_t.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/path.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "procmap_base.h"

/*
 * Buffer size for special names and for most paths, in bytes. The longest special
 * name is "[anon_shmem:NAME]", with the 80 bytes that prctl(PR_SET_VMA) allows.
 */
#define SHORT_NAME_SIZE		256

/* The permission flags. */
#define PROCMAP_PERMISSIONS	(PROCMAP_QUERY_VMA_READABLE | \
			 PROCMAP_QUERY_VMA_WRITABLE | \
			 PROCMAP_QUERY_VMA_EXECUTABLE | \
			 PROCMAP_QUERY_VMA_SHARED)

/* Three of them are those of the kernel. */
static_assert(PROCMAP_QUERY_VMA_READABLE == VM_READ);
static_assert(PROCMAP_QUERY_VMA_WRITABLE == VM_WRITE);
static_assert(PROCMAP_QUERY_VMA_EXECUTABLE == VM_EXEC);

/**
 * procmap_copy_arg - copy in a structure whose first member, a u64, is its size
 * @arg: set to the structure. Bytes past the user's size are set to zero.
 * @size: size of the structure that the kernel knows, in bytes; a constant, so
 *	that the usual copy is one of a constant size.
 * @size_min: smallest user size accepted, in bytes. The largest is a page.
 * @uarg: the user's structure. No byte past the user's size is touched.
 *
 * May fault, so no lock is held.
 *
 * Return: 0; -E2BIG if the user's size is larger than a page, or if a byte past
 * @size is not zero; -EINVAL if it is smaller than @size_min; or -EFAULT.
 */
static __always_inline int procmap_copy_arg(void *arg, size_t size,
					    size_t size_min,
					    const void __user *uarg)
{
	u64 user_size;
	int err;

	if (get_user(user_size, (const u64 __user *)uarg))
		return -EFAULT;
	if (likely(user_size == size)) {
		err = copy_from_user(arg, uarg, size) ? -EFAULT : 0;
	} else {
		if (user_size > PAGE_SIZE)
			return -E2BIG;
		if (user_size < size_min)
			return -EINVAL;
		err = copy_struct_from_user(arg, size, uarg, user_size);
	}
	/* The user may have changed it since it was checked. */
	*(u64 *)arg = user_size;
	return err;
}

/* The permissions of a VMA, which is locked, as PROCMAP_QUERY_VMA_* flags. */
static inline u64 procmap_vma_permissions(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & (VM_READ | VM_WRITE | VM_EXEC)) |
	       (vma->vm_flags & VM_MAYSHARE ? PROCMAP_QUERY_VMA_SHARED : 0);
}

/* The page size of a VMA, which is locked, in bytes. */
static inline u64 procmap_vma_page_size(struct vm_area_struct *vma)
{
	return vma->vm_ops && vma->vm_ops->pagesize ?
	       vma_kernel_pagesize(vma) : PAGE_SIZE;
}

/* Get the fields of a VMA's file; 0 without one. The VMA is locked. */
static inline void procmap_file_fields(const struct vm_area_struct *vma,
				       u64 *offset, u64 *ino, u32 *dev_major,
				       u32 *dev_minor)
{
	const struct inode *inode;

	*offset = 0;
	*ino = 0;
	*dev_major = 0;
	*dev_minor = 0;
	if (vma->vm_file) {
		inode = procmap_vma_inode(vma);
		*offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		*ino = inode->i_ino;
		*dev_major = MAJOR(inode->i_sb->s_dev);
		*dev_minor = MINOR(inode->i_sb->s_dev);
	}
}

/**
 * procmap_copy_name - copy the name of a VMA, unless it is a path
 * @vma: the VMA. It is locked.
 * @buffer: set to the special name.
 * @path: set to the path that is the name, or to NULL. It is valid as long as
 *	a reference on the VMA's file is held.
 *
 * A special name is formatted here, since it is not valid once the VMA is unlocked.
 *
 * Return: size of the special name in bytes, with its NUL; 0 if there is none;
 * or -ENAMETOOLONG if it does not fit.
 */
int procmap_copy_name(struct vm_area_struct *vma, char buffer[SHORT_NAME_SIZE],
		      const struct path **path);

#endif /* _PROC_PROCMAP_VMA_H */
