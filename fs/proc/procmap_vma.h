/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What PROCMAP_QUERY and PROCMAP_SCAN share: how VMAs are locked and looked up,
 * filtered, copied and named, and how sized structures are copied in.
 */
#ifndef _PROC_PROCMAP_VMA_H
#define _PROC_PROCMAP_VMA_H

#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/procmap_query.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>

/* proc_vma_name() is all that the engine calls in the rest of fs/proc. */
#include "vma_name.h"

#define PROCMAP_PERMISSIONS	(PROCMAP_QUERY_VMA_READABLE | \
				 PROCMAP_QUERY_VMA_WRITABLE | \
				 PROCMAP_QUERY_VMA_EXECUTABLE | \
				 PROCMAP_QUERY_VMA_SHARED)
#define PROCMAP_FILTERS		(PROCMAP_PERMISSIONS | \
				 PROCMAP_QUERY_FILE_BACKED_VMA)

/*
 * Buffer size for special names and for most paths, in bytes. The longest
 * special name is "[anon:NAME]", with the 80 bytes that prctl(PR_SET_VMA)
 * allows.
 */
#define SHORT_NAME_SIZE	256

/*
 * The fields of a VMA in the order in which both struct procmap_query and
 * struct procmap_vma have them, so that copy_fields() can write to either.
 */
struct vma_fields {
	u64 start;
	u64 end;
	u64 flags;
	u64 page_size;
	u64 offset;
	u64 inode;
	u32 dev_major;
	u32 dev_minor;
};

/*
 * Only these four helpers know how VMAs are locked and looked up: lock_vmas(),
 * vma_at(), next_vma() and unlock_vmas().
 */

/**
 * lock_vmas - lock the VMAs of an address space against changes
 * @mm: the address space, or NULL for a kernel thread.
 *
 * On success the caller holds mmap_lock for reading and a reference on the
 * users of @mm, and drops both with unlock_vmas(). May sleep.
 *
 * Return: 0, -ESRCH if @mm has no users left, or -EINTR if a fatal signal
 * arrived while waiting for the lock.
 */
static inline int lock_vmas(struct mm_struct *mm)
{
	if (!mm || !mmget_not_zero(mm))
		return -ESRCH;
	if (!mmap_read_trylock(mm) && mmap_read_lock_killable(mm)) {
		mmput(mm);
		return -EINTR;
	}
	return 0;
}

/* The VMA that covers @addr, or NULL. Between lock_vmas() and unlock_vmas(). */
static inline struct vm_area_struct *vma_at(struct mm_struct *mm,
					    unsigned long addr)
{
	return vma_lookup(mm, addr);
}

/*
 * The first VMA that ends above the position of @vmi, which advances past it;
 * or NULL. Between lock_vmas() and unlock_vmas().
 */
static inline struct vm_area_struct *next_vma(struct vma_iterator *vmi)
{
	return vma_next(vmi);
}

/*
 * Undo lock_vmas(). If the users of @mm have gone meanwhile, this mmput() is
 * the last and tears the address space down, which may sleep.
 */
static inline void unlock_vmas(struct mm_struct *mm)
{
	mmap_read_unlock(mm);
	mmput(mm);
}

/* The VMA's permissions as PROCMAP_QUERY_VMA_* flags. */
static inline u64 vma_permissions(const struct vm_area_struct *vma)
{
	u64 flags = 0;

	if (vma->vm_flags & VM_READ)
		flags |= PROCMAP_QUERY_VMA_READABLE;
	if (vma->vm_flags & VM_WRITE)
		flags |= PROCMAP_QUERY_VMA_WRITABLE;
	if (vma->vm_flags & VM_EXEC)
		flags |= PROCMAP_QUERY_VMA_EXECUTABLE;
	if (vma->vm_flags & VM_MAYSHARE)
		flags |= PROCMAP_QUERY_VMA_SHARED;
	return flags;
}

/* The reverse: the VM_* flags that a VMA needs to pass the filters @flags. */
static inline unsigned long wanted_vm_flags(u64 flags)
{
	unsigned long wanted = 0;

	if (flags & PROCMAP_QUERY_VMA_READABLE)
		wanted |= VM_READ;
	if (flags & PROCMAP_QUERY_VMA_WRITABLE)
		wanted |= VM_WRITE;
	if (flags & PROCMAP_QUERY_VMA_EXECUTABLE)
		wanted |= VM_EXEC;
	if (flags & PROCMAP_QUERY_VMA_SHARED)
		wanted |= VM_MAYSHARE;
	return wanted;
}

static inline bool passes_filters(const struct vm_area_struct *vma, u64 flags)
{
	if ((flags & PROCMAP_QUERY_FILE_BACKED_VMA) && !vma->vm_file)
		return false;
	return !(wanted_vm_flags(flags) & ~vma->vm_flags);
}

/* Copy the fields of a VMA that lock_vmas() has locked. */
static inline void copy_fields(struct vma_fields *fields,
			       struct vm_area_struct *vma)
{
	fields->start = vma->vm_start;
	fields->end = vma->vm_end;
	fields->flags = vma_permissions(vma);
	/* Most VMAs have no vm_ops; their page size is PAGE_SIZE. */
	fields->page_size = vma->vm_ops ? vma_kernel_pagesize(vma) : PAGE_SIZE;

	if (vma->vm_file) {
		const struct inode *inode = file_inode(vma->vm_file);

		fields->offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		fields->inode = inode->i_ino;
		fields->dev_major = MAJOR(inode->i_sb->s_dev);
		fields->dev_minor = MINOR(inode->i_sb->s_dev);
	} else {
		fields->offset = 0;
		fields->inode = 0;
		fields->dev_major = 0;
		fields->dev_minor = 0;
	}
}

/*
 * Append @text at offset @size and return the offset of its NUL. What does not
 * fit is cut off.
 */
static inline u32 append_to_name(char name[SHORT_NAME_SIZE], u32 size,
				 const char *text)
{
	const u32 left = SHORT_NAME_SIZE - size;
	const ssize_t len = strscpy(name + size, text, left);

	return size + (len < 0 ? left - 1 : len);
}

/*
 * Format a name that is not a path, while the VMA is locked. Returns its size
 * in bytes, including the NUL.
 */
static inline u32 format_special_name(char name[SHORT_NAME_SIZE],
				      const struct vma_name *of)
{
	u32 size = 0;

	if (of->prefix)
		size = append_to_name(name, size, of->prefix);
	size = append_to_name(name, size, of->text);
	if (of->prefix)
		size = append_to_name(name, size, "]");
	return size + 1;
}

/**
 * struct name_buf - a formatted name and its buffers
 * @text: the name, within @small or @allocated; undefined if @size is 0.
 * @size: size of the name in bytes, including the NUL; 0 if there is none.
 * @allocated: buffer of a path that does not fit into @small, or NULL. The
 *	owner of the structure calls kfree() on it.
 * @small: buffer of all other names.
 */
struct name_buf {
	const char *text;
	u32 size;
	char *allocated;
	char small[SHORT_NAME_SIZE];
};

/**
 * format_path - format a path
 * @name: set to the path. @allocated is NULL before.
 * @path: the path. The caller holds a reference on its file, and no lock.
 * @wanted: size of the user's buffer in bytes: a longer path is an error.
 *
 * Tries the small buffer first, since most paths fit. May sleep to allocate.
 *
 * Return: 0, -ENAMETOOLONG if the path is longer than @wanted or PATH_MAX, or
 * -ENOMEM.
 */
static inline int format_path(struct name_buf *name, const struct path *path,
			      u32 wanted)
{
	u32 size = min_t(u32, wanted, SHORT_NAME_SIZE);
	char *buffer = name->small;
	char *text;

	text = d_path(path, buffer, size);
	if (text == ERR_PTR(-ENAMETOOLONG) && wanted > SHORT_NAME_SIZE) {
		size = min_t(u32, wanted, PATH_MAX);
		buffer = kmalloc(size, GFP_KERNEL);
		if (!buffer)
			return -ENOMEM;
		name->allocated = buffer;
		text = d_path(path, buffer, size);
	}
	if (IS_ERR(text))
		return PTR_ERR(text);

	/* d_path() writes to the end of the buffer. */
	name->text = text;
	name->size = buffer + size - text;
	return 0;
}

/**
 * copy_struct_in - copy in a structure whose first member, a u64, is its size
 * @to: destination. Bytes past the user's size are set to zero.
 * @size: size of the structure that the kernel knows, in bytes.
 * @size_min: smallest user size accepted, in bytes. The largest is a page.
 * @from: the user's structure.
 *
 * May fault, so no lock is held.
 *
 * Return: 0; -E2BIG if the user's size is larger than a page, or if a byte past
 * @size is not zero; -EINVAL if it is smaller than @size_min; or -EFAULT.
 */
static inline int copy_struct_in(void *to, size_t size, size_t size_min,
				 const void __user *from)
{
	u64 user_size;
	int err;

	if (get_user(user_size, (const u64 __user *)from))
		return -EFAULT;
	if (user_size > PAGE_SIZE)
		return -E2BIG;
	if (user_size < size_min)
		return -EINVAL;
	err = copy_struct_from_user(to, size, from, user_size);
	/* The user may have changed it since it was checked. */
	*(u64 *)to = user_size;
	return err;
}

/*
 * Close files whose last reference was just dropped, which happens if the
 * target has gone meanwhile. fput() defers that to task work, which runs on
 * return to user space, and a copy to the caller that faults can delay that
 * indefinitely. May sleep; the caller holds no lock.
 */
static inline void run_deferred_puts(void)
{
	if (unlikely(task_work_pending(current)))
		task_work_run();
}

#endif /* _PROC_PROCMAP_VMA_H */
