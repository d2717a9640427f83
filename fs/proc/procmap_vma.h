/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is told of a VMA, and how one is locked and found: for PROCMAP_QUERY, and
 * for all that tells the same of more than one.
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

/* The one thing asked of the base: proc_vma_name(). */
#include "vma_name.h"

#define PROCMAP_PERMISSIONS	(PROCMAP_QUERY_VMA_READABLE | \
				 PROCMAP_QUERY_VMA_WRITABLE | \
				 PROCMAP_QUERY_VMA_EXECUTABLE | \
				 PROCMAP_QUERY_VMA_SHARED)
#define PROCMAP_FILTERS		(PROCMAP_PERMISSIONS | \
				 PROCMAP_QUERY_FILE_BACKED_VMA)

/*
 * Room for every name but a path, of which "[anon:" and the 80 bytes that
 * prctl(PR_SET_VMA) allows are the longest, and for most paths.
 */
#define SHORT_NAME_SIZE	256

/*
 * The fields of a VMA, as they follow one another in each structure of the ABI
 * that has them; they are written there, as this is.
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
 * The four functions that follow are all that knows how a VMA is locked and
 * found. Between the first and the last, the VMAs of @mm hold still.
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

static inline struct vm_area_struct *vma_at(struct mm_struct *mm,
					    unsigned long addr)
{
	return vma_lookup(mm, addr);
}

/* The first VMA that ends above where @vmi stands, which moves past it. */
static inline struct vm_area_struct *next_vma(struct vma_iterator *vmi)
{
	return vma_next(vmi);
}

static inline void unlock_vmas(struct mm_struct *mm)
{
	mmap_read_unlock(mm);
	mmput(mm);
}

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

/* The reverse: the same for all VMAs that a filter is held against. */
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

static inline void fill_fields(struct vma_fields *fields,
			       struct vm_area_struct *vma)
{
	fields->start = vma->vm_start;
	fields->end = vma->vm_end;
	fields->flags = vma_permissions(vma);
	/* Most are anonymous, and have no operations that could tell another. */
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

static inline u32 append_to_name(char name[SHORT_NAME_SIZE], u32 size,
				 const char *text)
{
	const u32 left = SHORT_NAME_SIZE - size;
	const ssize_t len = strscpy(name + size, text, left);

	return size + (len < 0 ? left - 1 : len);
}

/* Write a name that is no path. Returns its bytes, with the NUL. */
static inline u32 write_special_name(char name[SHORT_NAME_SIZE],
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
 * struct made_name - a name that has been made, and the buffers for it
 * @text: the name, in one of the two that follow.
 * @size: bytes of @text, with the NUL; 0 if there is none.
 * @allocated: for a path that is longer than @small, or NULL.
 * @small: for all others.
 */
struct made_name {
	const char *text;
	u32 size;
	char *allocated;
	char small[SHORT_NAME_SIZE];
};

/*
 * Make a path in the small buffer first: most fit, and where the caller's, of
 * @wanted bytes, is shorter still, a longer path is not wanted.
 */
static inline int make_path(struct made_name *name, const struct path *path,
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

	/* It stands at the end of the buffer. */
	name->text = text;
	name->size = buffer + size - text;
	return 0;
}

/*
 * Read a structure whose first member, an u64, tells its size, which is its
 * version: from @size_min to a page. @size is what the kernel knows of it.
 */
static inline int read_struct(void *to, size_t size, size_t size_min,
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
	/* Whatever the caller has made of it since. */
	*(u64 *)to = user_size;
	return err;
}

/*
 * If the target has gone meanwhile, references to it and to its files that were
 * dropped were the last. The files are then closed by task work, which waits
 * for the return to user space, and a copy to it can put that off for ever.
 */
static inline void finish_dropping_references(void)
{
	if (unlikely(task_work_pending(current)))
		task_work_run();
}

#endif /* _PROC_PROCMAP_VMA_H */
