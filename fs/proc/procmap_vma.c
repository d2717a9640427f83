// SPDX-License-Identifier: GPL-2.0
/*
 * What PROCMAP_QUERY and PROCMAP_SCAN share. This file alone knows how VMAs are
 * locked.
 */
#include <linux/build_bug.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/procmap_query.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "build_id.h"
#include "procmap_vma.h"
#include "vma_name.h"

struct workqueue_struct *procmap_put_queue;

/**
 * struct put_work - a file that a work drops the last reference on
 * @work: the work.
 * @file: the file. The work owns the reference.
 */
struct put_work {
	struct work_struct work;
	struct file *file;
};

/* Three of the permission flags are those of the kernel. */
static_assert(PROCMAP_QUERY_VMA_READABLE == VM_READ);
static_assert(PROCMAP_QUERY_VMA_WRITABLE == VM_WRITE);
static_assert(PROCMAP_QUERY_VMA_EXECUTABLE == VM_EXEC);

/* The permissions of a VMA as PROCMAP_QUERY_VMA_* flags. */
static u64 vma_permissions(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & (VM_READ | VM_WRITE | VM_EXEC)) |
	       (vma->vm_flags & VM_MAYSHARE ? PROCMAP_QUERY_VMA_SHARED : 0);
}

/**
 * procmap_lock_vmas - lock the VMAs for the next steps of a walk
 * @walk: the walk; it goes on at @pos.
 *
 * On success the caller holds mmap_lock for reading and a reference on the users
 * of the address space, and drops both with procmap_unlock_vmas(). May sleep.
 *
 * Return: 0, -ESRCH if the address space has no users left, or -EINTR if a fatal
 * signal arrived while waiting for the lock.
 */
int procmap_lock_vmas(struct vma_walk *walk)
{
	if (!walk->mm || !mmget_not_zero(walk->mm))
		return -ESRCH;
	if (mmap_read_lock_killable(walk->mm)) {
		mmput_async(walk->mm);
		return -EINTR;
	}
	walk->left = VMAS_PER_HOLD;
	vma_iter_init(&walk->vmi, walk->mm, walk->pos);
	return 0;
}

/**
 * procmap_unlock_vmas - undo procmap_lock_vmas()
 * @walk: the walk.
 *
 * If the users of the address space have gone meanwhile, it is torn down by a
 * work: that closes files and completes asynchronous I/O, and a target whose
 * files are on FUSE can make it wait for ever.
 */
void procmap_unlock_vmas(struct vma_walk *walk)
{
	mmap_read_unlock(walk->mm);
	mmput_async(walk->mm);
}

/**
 * procmap_next_vma - find the next VMA that passes the filter
 * @walk: the walk. The VMAs are locked.
 *
 * @pos advances past the VMAs that do not pass, or to @end behind the last VMA.
 * It does not advance past the VMA returned: the caller does that when it is
 * done with it.
 *
 * Return: the VMA, which stays locked until procmap_unlock_vmas(); or NULL if
 * there is none, or if as many have been looked at as one hold of the lock
 * allows. @pos is below @end then.
 */
struct vm_area_struct *procmap_next_vma(struct vma_walk *walk)
{
	struct vm_area_struct *vma;

	/* A 32-bit kernel has no mappings there. */
	if (walk->pos > ULONG_MAX)
		walk->pos = walk->end;

	for (; walk->left; walk->left--) {
		vma = walk->pos < walk->end ? vma_next(&walk->vmi) : NULL;
		if (!vma || vma->vm_start >= walk->end) {
			walk->pos = walk->end;
			return NULL;
		}
		if (!(walk->permissions & ~vma_permissions(vma)) &&
		    (vma->vm_file || !walk->file_backed)) {
			walk->left--;
			return vma;
		}
		walk->pos = vma->vm_end;
	}
	return NULL;
}

/* Copy a special name. Returns its size with the NUL, or -ENAMETOOLONG. */
static int copy_special_name(char to[SHORT_NAME_SIZE],
			     const struct vma_name *name)
{
	const char *const parts[] = {
		name->prefix ?: "", name->text, name->prefix ? "]" : "",
	};
	size_t size = 0;
	ssize_t len;
	int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		len = strscpy(to + size, parts[i], SHORT_NAME_SIZE - size);
		if (len < 0)
			return -ENAMETOOLONG;
		size += len;
	}
	return size + 1;
}

/**
 * procmap_copy_vma - copy what the ioctls return of a VMA
 * @copy: set to it.
 * @vma: the VMA. It is locked.
 * @want_name: get its special name, or the path that is its name.
 * @want_file: get its file.
 * @buffer: memory for the special name.
 *
 * Nothing is allocated, formatted or read from a file.
 */
void procmap_copy_vma(struct vma_copy *copy, struct vm_area_struct *vma,
		      bool want_name, bool want_file,
		      char buffer[SHORT_NAME_SIZE])
{
	struct vma_name name;

	copy->start = vma->vm_start;
	copy->end = vma->vm_end;
	copy->permissions = vma_permissions(vma);
	copy->page_size = vma_kernel_pagesize(vma);
	copy->offset = 0;
	copy->inode = 0;
	copy->dev_major = 0;
	copy->dev_minor = 0;
	copy->has_file = vma->vm_file;
	copy->file = NULL;
	copy->path = NULL;
	copy->name = buffer;
	copy->name_size = 0;

	if (vma->vm_file) {
		const struct inode *inode = file_inode(vma->vm_file);

		copy->offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		copy->inode = inode->i_ino;
		copy->dev_major = MAJOR(inode->i_sb->s_dev);
		copy->dev_minor = MINOR(inode->i_sb->s_dev);
	}
	if (want_name) {
		proc_vma_name(vma, &name);
		copy->path = name.path;
		if (name.text)
			copy->name_size = copy_special_name(buffer, &name);
	}
	if (vma->vm_file && (copy->path || want_file))
		copy->file = get_file(vma->vm_file);
}

static void put_file_work(struct work_struct *work)
{
	struct put_work *put = container_of(work, struct put_work, work);

	__fput_sync(put->file);
	kfree(put);
}

/**
 * procmap_put_file - drop the reference of procmap_copy_vma()
 * @file: the file, or NULL. No lock is held.
 *
 * If the target has unmapped and closed the file meanwhile, this reference is
 * the last. fput() releases the file before the caller returns to user space,
 * and on FUSE that may wait for ever for an answer of the server. Then a work
 * does it.
 */
void procmap_put_file(struct file *file)
{
	struct put_work *put;

	if (!file)
		return;
	if (!proc_file_may_hang(file)) {
		fput(file);
		return;
	}
	if (atomic_long_add_unless(&file->f_count, -1, 1))
		return;
	put = kmalloc(sizeof(*put), GFP_KERNEL | __GFP_NOFAIL);
	put->file = file;
	INIT_WORK(&put->work, put_file_work);
	queue_work(procmap_put_queue, &put->work);
}

/**
 * procmap_copy_arg - copy in a structure whose first member, a u64, is its size
 * @arg: set to the structure. Bytes past the user's size are set to zero.
 * @size: size of the structure that the kernel knows, in bytes.
 * @size_min: smallest user size accepted, in bytes. The largest is a page.
 * @uarg: the user's structure. No byte past the user's size is touched.
 *
 * May fault, so no lock is held.
 *
 * Return: 0; -E2BIG if the user's size is larger than a page, or if a byte past
 * @size is not zero; -EINVAL if it is smaller than @size_min; or -EFAULT.
 */
int procmap_copy_arg(void *arg, size_t size, size_t size_min,
		     const void __user *uarg)
{
	u64 user_size;
	int err;

	if (get_user(user_size, (const u64 __user *)uarg))
		return -EFAULT;
	if (user_size > PAGE_SIZE)
		return -E2BIG;
	if (user_size < size_min)
		return -EINVAL;
	err = copy_struct_from_user(arg, size, uarg, user_size);
	/* The user may have changed it since it was checked. */
	*(u64 *)arg = user_size;
	return err;
}
