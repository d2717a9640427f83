/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names that the engine uses, and older kernels lack. Each file of the module includes this
 * first. A macro of the headers, or one of Kbuild, tells that a name is missing: a
 * distribution's 5.14 may have the memory management of 6.5.
 */
#ifndef _LIVE_COMPAT_H
#define _LIVE_COMPAT_H

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/highmem.h>
#include <linux/lockdep.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/procmap_query.h>
#include <linux/sched.h>
#include <linux/shmem_fs.h>
#include <linux/uio.h>

#ifndef VMA_ITERATOR	/* before 6.1: an rbtree and a list */
struct vma_iterator {
	struct mm_struct *mm;
	struct vm_area_struct *vma;
	unsigned long addr;
};

static inline void vma_iter_init(struct vma_iterator *vmi, struct mm_struct *mm,
				 unsigned long addr)
{
	vmi->mm = mm;
	vmi->vma = NULL;
	vmi->addr = addr;
}

/* Not called again once it has returned NULL. */
static inline struct vm_area_struct *vma_next(struct vma_iterator *vmi)
{
	vmi->vma = vmi->vma ? vmi->vma->vm_next : find_vma(vmi->mm, vmi->addr);
	return vmi->vma;
}

static inline struct vm_area_struct *live_vma_lookup(struct mm_struct *mm, unsigned long addr)
{
	return find_vma_intersection(mm, addr, addr + 1);
}

#define vma_lookup		live_vma_lookup
#endif

#ifdef AOP_FLAG_NOFS	/* before 5.19 */
#define read_folio		readpage
/* It is not exported. */
#define shmem_mapping(mapping)	((mapping)->host->i_sb->s_magic == TMPFS_MAGIC)
#endif

/*
 * Before 5.15 it must not be called: beside a hole that is punched it may leave a page in
 * the cache that is no longer in the file. There is no way around the inode's lock.
 */
#if !LIVE_INVALIDATE_LOCK
static inline ssize_t live_filemap_read(struct kiocb *kiocb, struct iov_iter *iter,
					ssize_t already_read)
{
	return kiocb->ki_filp->f_op->read_iter(kiocb, iter);
}

#define filemap_read		live_filemap_read
#endif

#if !LIVE_FTRACE_ARGS	/* before 6.2: FTRACE_OPS_FL_SAVE_REGS has them all saved */
#define ftrace_regs_get_argument(regs, n)	regs_get_kernel_argument(ftrace_get_regs(regs), n)
#endif

#if !LIVE_FTRACE_REGS	/* before 5.11 */
#define ftrace_regs		pt_regs
#define ftrace_get_regs(regs)	(regs)
#define kmap_local_page(page)	kmap(page)
#define kunmap_local(addr)	kunmap(kmap_to_page(addr))
#endif

#ifndef ITER_DEST	/* before 6.1 */
#define ITER_DEST		READ
#endif

#ifndef TASK_FREEZABLE	/* before 6.1 */
#define TASK_FREEZABLE		0
#endif

#ifndef __uninitialized	/* 2024, and stable releases */
#define __uninitialized		__attribute__((__uninitialized__))
#endif

#ifndef lockdep_assert_not_held	/* before 5.13 */
#define lockdep_assert_not_held(lock)	((void)(lock))
#endif

#if defined(VMA_REF_LIMIT) && !defined(VM_REFCNT_LIMIT)	/* 6.15 to 6.19 */
#define VM_REFCNT_LIMIT		VMA_REF_LIMIT
#define __vma_lockdep_acquire_read(vma) \
	rwsem_acquire_read(&(vma)->vmlock_dep_map, 0, 1, _RET_IP_)
#endif

#endif /* _LIVE_COMPAT_H */
