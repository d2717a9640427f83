/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What PROCMAP_QUERY and PROCMAP_SCAN share: how VMAs are locked, walked,
 * filtered and copied, and how sized structures are copied in.
 */
#ifndef _PROC_PROCMAP_VMA_H
#define _PROC_PROCMAP_VMA_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct file;
struct path;
struct workqueue_struct;

/*
 * Buffer size for special names and for most paths, in bytes. The longest
 * special name is "[anon:NAME]", with the 80 bytes that prctl(PR_SET_VMA)
 * allows.
 */
#define SHORT_NAME_SIZE		256

/* VMAs looked at per hold of mmap_lock: the longest that a writer waits. */
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
 * @left: VMAs that may be looked at until the lock is dropped.
 * @vmi: the position in the tree while the lock is held.
 */
struct vma_walk {
	struct mm_struct *mm;
	u64 pos;
	u64 end;
	u64 permissions;
	bool file_backed;
	unsigned int left;
	struct vma_iterator vmi;
};

/**
 * struct vma_copy - what the ioctls return of a VMA
 * @start: first address.
 * @end: first address past it.
 * @permissions: permissions as PROCMAP_QUERY_VMA_* flags.
 * @page_size: size of its pages in bytes.
 * @offset: file offset of @start in bytes; 0 without a file.
 * @inode: inode number of the file; 0 without a file.
 * @dev_major: major number of the file's device; 0 without a file.
 * @dev_minor: minor number of the file's device; 0 without a file.
 * @has_file: there is a file.
 * @file: the file, if its path or its build ID is needed, or NULL. The owner of
 *	the structure owns a reference, for procmap_put_file().
 * @path: the path of @file if that is the VMA's name and the name is wanted, or
 *	NULL. Valid as long as @file is.
 * @name: the special name, unless @name_size is 0.
 * @name_size: size of the special name in bytes, including its NUL; 0 if there
 *	is none or it is not wanted; -ENAMETOOLONG if it does not fit into
 *	SHORT_NAME_SIZE.
 */
struct vma_copy {
	u64 start;
	u64 end;
	u64 permissions;
	u64 page_size;
	u64 offset;
	u64 inode;
	u32 dev_major;
	u32 dev_minor;
	bool has_file;
	struct file *file;
	const struct path *path;
	const char *name;
	int name_size;
};

/*
 * For the last references on files of file systems that may hang. Whoever hooks
 * the ioctls up allocates it before the first one.
 */
extern struct workqueue_struct *procmap_put_queue;

int procmap_lock_vmas(struct vma_walk *walk);
struct vm_area_struct *procmap_next_vma(struct vma_walk *walk);
void procmap_unlock_vmas(struct vma_walk *walk);
void procmap_copy_vma(struct vma_copy *copy, struct vm_area_struct *vma,
		      bool want_name, bool want_file,
		      char buffer[SHORT_NAME_SIZE]);
void procmap_put_file(struct file *file);
int procmap_copy_arg(void *arg, size_t size, size_t size_min,
		     const void __user *uarg);

#endif /* _PROC_PROCMAP_VMA_H */
