/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What PROCMAP_QUERY and PROCMAP_SCAN share: how VMAs are locked, walked,
 * filtered and copied, and how sized structures are copied in.
 */
#ifndef _PROC_PROCMAP_VMA_H
#define _PROC_PROCMAP_VMA_H

#include <linux/build_bug.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/path.h>
#include <linux/types.h>
#ifndef PROCMAP_QUERY	/* <linux/fs.h> has it since Linux 6.11 */
#include <linux/procmap_query.h>
#endif

#include "vma_name.h"

struct workqueue_struct;

/*
 * Buffer size for special names and for most paths, in bytes. The longest
 * special name is "[anon:NAME]", with the 80 bytes that prctl(PR_SET_VMA)
 * allows.
 */
#define SHORT_NAME_SIZE		256

/*
 * VMAs looked at per hold of mmap_lock, which is the longest that a writer waits, or
 * per RCU read-side critical section.
 */
#define VMAS_PER_HOLD		64U

/**
 * struct vma_walk - a walk over the VMAs of an address space
 * @mm: the address space, or NULL for a kernel thread. The caller keeps it
 *	allocated.
 * @pos: the address up to which the walk is done: the VMAs that end above it
 *	are still to come.
 * @end: VMAs that start at or above this address are left out.
 * @permissions: PROCMAP_QUERY_VMA_* flags, all of which a VMA needs to pass.
 * @file_backed: only VMAs with a file pass.
 * @left: VMAs that may be looked at until the locks are dropped.
 * @vmi: the position in the tree while the locks are held.
 * @locked: the VMA whose own lock is held, or NULL.
 * @from: where the search for the next VMA began.
 * @seq: mm_lock_seq before the tree was looked at: @vmi is of that time.
 * @is_mmap_locked: mmap_lock is held for reading; otherwise, it is RCU.
 * @may_walk_up: it may go on in the tree from where it stands.
 * @is_contended: the walk met a writer since the locks were taken. This and the next
 *	two are kept from one procmap_lock_vmas() to the next.
 * @tries: how often it met one in a row at the same position.
 * @met_at: that position.
 */
struct vma_walk {
	struct mm_struct *mm;
	u64 pos;
	u64 end;
	u64 permissions;
	bool file_backed;
	unsigned int left;
	struct vma_iterator vmi;
#ifdef CONFIG_PER_VMA_LOCK
	struct vm_area_struct *locked;
	u64 from;
	unsigned int seq;
	bool is_mmap_locked;
	bool may_walk_up;
	bool is_contended;
	unsigned int tries;
	u64 met_at;
#endif
};

/*
 * For the last references on files of file systems that may hang. Whoever hooks
 * the ioctls up allocates it before the first one.
 */
extern struct workqueue_struct *procmap_put_queue;

/* Three of the permission flags are those of the kernel. */
static_assert(PROCMAP_QUERY_VMA_READABLE == VM_READ);
static_assert(PROCMAP_QUERY_VMA_WRITABLE == VM_WRITE);
static_assert(PROCMAP_QUERY_VMA_EXECUTABLE == VM_EXEC);

/* The permissions of a VMA, which is locked, as PROCMAP_QUERY_VMA_* flags. */
static inline u64 procmap_vma_permissions(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & (VM_READ | VM_WRITE | VM_EXEC)) |
	       (vma->vm_flags & VM_MAYSHARE ? PROCMAP_QUERY_VMA_SHARED : 0);
}

/* What the ioctls return of the file of a VMA, which is locked; 0 without one. */
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
 * struct procmap_file - what is needed of the file of a VMA
 * @file: the file, or NULL if its path is all that is needed.
 * @path: the path that is the name; all NULL if there is none. It has a reference of
 *	its own if @file is NULL.
 *
 * Whoever drops the last reference on a file releases it: for a socket, that may take
 * as long as its SO_LINGER says, and others may wait for the end of a file that is
 * open for writing, or locked. So for the path of such a file, only that is
 * referenced.
 */
struct procmap_file {
	struct file *file;
	struct path path;
};

int procmap_lock_vmas(struct vma_walk *walk);
struct vm_area_struct *procmap_next_vma(struct vma_walk *walk);
void procmap_unlock_vmas(struct vma_walk *walk);
u64 procmap_generation(const struct mm_struct *mm);
int procmap_copy_name(struct vma_walk *walk, struct vm_area_struct *vma,
		      char buffer[SHORT_NAME_SIZE], const struct path **path);
void procmap_get_file(struct procmap_file *need, struct file *file,
		      const struct path *path, bool is_read);
bool procmap_put_file(const struct procmap_file *need);
int procmap_copy_arg(void *arg, size_t size, size_t size_min,
		     const void __user *uarg);

#endif /* _PROC_PROCMAP_VMA_H */
