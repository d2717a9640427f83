/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A walk over the VMAs of an address space, and the fields of a VMA that are returned.
 */
#ifndef _PROC_PROCMAP_WALK_H
#define _PROC_PROCMAP_WALK_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/kdev_t.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/path.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "procmap_query.h"
#include "vma_name.h"

/*
 * Buffer size for special names and for most paths, in bytes. The longest special
 * name is "[anon_shmem:NAME]", with the 80 bytes that prctl(PR_SET_VMA) allows.
 */
#define SHORT_NAME_SIZE		256

/* VMAs that are looked at before the locks are dropped. */
#define VMAS_PER_HOLD		64U

/**
 * struct procmap_walk - a walk over the VMAs of an address space
 * @mm: the address space, or NULL for a kernel thread. The caller keeps it
 *	allocated.
 * @pos: the address up to which the walk is done: the VMAs that end above it
 *	are still to come.
 * @end: VMAs that start at or above this address are left out.
 * @permissions: PROCMAP_QUERY_VMA_* flags, all of which a VMA needs to pass.
 * @file_backed: only VMAs with a file pass.
 * @left: VMAs that may be looked at until the locks are dropped.
 * @vmi: the position in the tree while the locks are held, unless @end is @pos + 1.
 * @locked: the VMA whose own lock is held, or NULL.
 * @seq: mm_lock_seq when the tree was looked at last.
 * @tries: consecutive attempts that met a writer. Dropping the locks does not
 *	reset it.
 * @is_mmap_locked: mmap_lock is held for reading. It is dropped once a VMA is locked.
 * @is_rcu_locked: RCU is held. procmap_walk_unlock_tree() clears both.
 */
struct procmap_walk {
	struct mm_struct *mm;
	u64 pos;
	u64 end;
	u64 permissions;
	bool file_backed;
	unsigned int left;
	struct vma_iterator vmi;
#ifdef CONFIG_PER_VMA_LOCK
	struct vm_area_struct *locked;
	unsigned int seq;
	unsigned int tries;
	bool is_mmap_locked;
	bool is_rcu_locked;
#endif
};

/* The permission flags. */
#define PROCMAP_PERMISSIONS	(PROCMAP_QUERY_VMA_READABLE | \
			 PROCMAP_QUERY_VMA_WRITABLE | \
			 PROCMAP_QUERY_VMA_EXECUTABLE | \
			 PROCMAP_QUERY_VMA_SHARED)

/* Three of them are those of the kernel. */
static_assert(PROCMAP_QUERY_VMA_READABLE == VM_READ);
static_assert(PROCMAP_QUERY_VMA_WRITABLE == VM_WRITE);
static_assert(PROCMAP_QUERY_VMA_EXECUTABLE == VM_EXEC);

/*
 * Begin a walk from @pos to @end over the VMAs that pass a filter. procmap_walk_lock()
 * sets the other members: a lookup need not clear them.
 */
static inline void procmap_walk_init(struct procmap_walk *walk,
				     struct mm_struct *mm, u64 pos, u64 end,
				     u64 permissions, bool file_backed)
{
	walk->mm = mm;
	walk->pos = pos;
	walk->end = end;
	walk->permissions = permissions;
	walk->file_backed = file_backed;
#ifdef CONFIG_PER_VMA_LOCK
	walk->tries = 0;
#endif
}

/* The caller has found @vma by procmap_walk_next(), and not dropped its lock. */
static inline void procmap_assert_locked(const struct procmap_walk *walk,
					 struct vm_area_struct *vma)
{
#ifdef CONFIG_PER_VMA_LOCK
	vma_assert_locked(vma);
#else
	lockdep_assert_held(&walk->mm->mmap_lock);
#endif
}

/*
 * The caller holds no lock of the target's, and may allocate, format paths, read
 * files, and copy to user space. mmput() has asserted that it may sleep.
 */
static inline void procmap_assert_unlocked(const struct procmap_walk *walk)
{
	lockdep_assert_not_held(&walk->mm->mmap_lock);
#ifdef CONFIG_PER_VMA_LOCK
	WARN_ON_ONCE(walk->locked);
#endif
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
		inode = proc_vma_inode(vma);
		*offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		*ino = inode->i_ino;
		*dev_major = MAJOR(inode->i_sb->s_dev);
		*dev_minor = MINOR(inode->i_sb->s_dev);
	}
}

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

/**
 * procmap_walk_lock - take the locks for the next steps of a walk
 * @walk: the walk; it goes on at @pos.
 *
 * On success the caller holds RCU or mmap_lock for reading, and a reference on the
 * users of the address space, and drops both with procmap_walk_unlock(). May sleep.
 * In between, the caller may not, except after procmap_walk_unlock_tree().
 *
 * Return: 0, -ESRCH if the address space has no users left, or -EINTR if a fatal
 * signal arrived while waiting for the lock.
 */
int procmap_walk_lock(struct procmap_walk *walk);

/**
 * procmap_walk_next - find the next VMA that passes the filter
 * @walk: the walk. procmap_walk_lock() has taken its locks.
 *
 * @pos advances past the VMA returned and those that do not pass, or to @end behind the
 * last VMA.
 *
 * Return: the VMA, which stays locked until procmap_walk_unlock() or the next call;
 * NULL if there is none; or, with @pos below @end, NULL after VMAS_PER_HOLD VMAs or if
 * a writer was met. After NULL, the locks have to be dropped.
 */
struct vm_area_struct *procmap_walk_next(struct procmap_walk *walk);

/**
 * procmap_walk_unlock - undo procmap_walk_lock()
 * @walk: the walk.
 *
 * If the users of the address space have gone meanwhile, this tears it down, as in
 * the base's own readers of maps.
 */
void procmap_walk_unlock(struct procmap_walk *walk);

#ifdef CONFIG_PER_VMA_LOCK
/*
 * Drop RCU or mmap_lock, but not the lock of the VMA that procmap_walk_next() has returned.
 * The caller may sleep then, and calls procmap_walk_unlock() next.
 */
static __always_inline void procmap_walk_unlock_tree(struct procmap_walk *walk)
{
	if (walk->is_rcu_locked)
		rcu_read_unlock();
	else if (walk->is_mmap_locked)
		mmap_read_unlock(walk->mm);
	walk->is_rcu_locked = false;
	walk->is_mmap_locked = false;
}
#endif

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

#endif /* _PROC_PROCMAP_WALK_H */
