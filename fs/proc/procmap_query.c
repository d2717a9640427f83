// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY: look up one VMA of a process and return its fields, its name
 * and its build ID.
 *
 * A query has these steps:
 *
 * - copy_query_in() copies in and checks the caller's structure.
 * - get_answer() takes mmap_lock, looks up the VMA, copies its fields and a
 *   short special name, and takes a reference on its file. Nothing is
 *   allocated, formatted or read from a file while the lock is held.
 * - format_name() and read_build_id() run without the lock. Then all references
 *   are dropped.
 * - copy_answer_out() copies to the caller. That may block indefinitely, on
 *   memory behind userfaultfd or FUSE, so no reference is held there.
 */
#include <linux/build_bug.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "build_id.h"
#include "procmap_query.h"
#include "procmap_vma.h"

#define KNOWN_FLAGS	(PROCMAP_FILTERS | PROCMAP_QUERY_COVERING_OR_NEXT_VMA)

static_assert(offsetof(struct procmap_query, dev_minor) ==
	      offsetof(struct procmap_query, vma_start) +
	      offsetof(struct vma_fields, dev_minor));

/**
 * struct answer - what a query found, besides the fields of the VMA
 * @file: the VMA's file, or NULL if it is not needed. Owns a reference until
 *	the name and the build ID are complete.
 * @path: path of @file if that is the VMA's name and the name is wanted, or
 *	NULL. Valid as long as @file is.
 * @name: the name; size 0 if there is none or it is not wanted.
 * @build_id: the build ID, of &procmap_query.build_id_size bytes.
 */
struct answer {
	struct file *file;
	const struct path *path;
	struct name_buf name;
	u8 build_id[BUILD_ID_SIZE_MAX];
};

/*
 * The debugging hooks of copy_to_user() and copy_from_user(), which the unsafe
 * accessors do not have.
 */
static bool check_user_access(void)
{
	might_fault();
	return !should_fail_usercopy();
}

/**
 * get_fields - copy in a query of the size that this kernel knows
 * @query: only the fields with direction "in" are set.
 * @uquery: the caller's structure.
 *
 * Field by field is several times cheaper than copy_struct_in(). May fault.
 *
 * Return: false if the size is another, or on a fault; use copy_struct_in()
 * then.
 */
static bool get_fields(struct procmap_query *query,
		       const struct procmap_query __user *uquery)
{
	if (!user_read_access_begin(uquery, sizeof(*uquery)))
		return false;
	unsafe_get_user(query->size, &uquery->size, fault);
	unsafe_get_user(query->query_flags, &uquery->query_flags, fault);
	unsafe_get_user(query->query_addr, &uquery->query_addr, fault);
	unsafe_get_user(query->vma_name_size, &uquery->vma_name_size, fault);
	unsafe_get_user(query->build_id_size, &uquery->build_id_size, fault);
	unsafe_get_user(query->vma_name_addr, &uquery->vma_name_addr, fault);
	unsafe_get_user(query->build_id_addr, &uquery->build_id_addr, fault);
	user_read_access_end();
	return query->size == sizeof(*query);
fault:
	user_read_access_end();
	return false;
}

/*
 * Copy in and check a query, in the order that the ABI documents. May fault, so
 * no lock is held.
 */
static int copy_query_in(struct procmap_query *query,
			 const struct procmap_query __user *uquery)
{
	int err;

	if (!check_user_access())
		return -EFAULT;
	if (!get_fields(query, uquery)) {
		err = copy_struct_in(query, sizeof(*query),
				     offsetofend(struct procmap_query,
						 query_addr),
				     uquery);
		if (err)
			return err;
	}

	if (query->query_flags & ~(u64)KNOWN_FLAGS)
		return -EINVAL;
	if (!query->vma_name_size != !query->vma_name_addr)
		return -EINVAL;
	if (!query->build_id_size != !query->build_id_addr)
		return -EINVAL;
	return 0;
}

/*
 * Find the first VMA at or above @addr that passes the filters. mmap_lock is
 * held. Not inlined: most queries do not need the iterator on their stack.
 */
static noinline struct vm_area_struct *
find_vma_from(struct mm_struct *mm, unsigned long addr, u64 flags)
{
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	vma_iter_init(&vmi, mm, addr);
	while ((vma = next_vma(&vmi)))
		if (passes_filters(vma, flags))
			return vma;
	return NULL;
}

/* Find the VMA that matches the query, or NULL. mmap_lock is held. */
static struct vm_area_struct *find_vma_for(struct mm_struct *mm,
					   const struct procmap_query *query)
{
	const u64 addr = query->query_addr;
	const u64 flags = query->query_flags;
	struct vm_area_struct *vma;

	/* A 32-bit kernel has no mappings above ULONG_MAX. */
	if (addr > ULONG_MAX)
		return NULL;

	vma = vma_at(mm, addr);
	if (vma && passes_filters(vma, flags))
		return vma;
	if (!(flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA))
		return NULL;
	return find_vma_from(mm, vma ? vma->vm_end : addr, flags);
}

/**
 * get_answer - look up the VMA and copy what is needed of it
 * @mm: the address space, or NULL for a kernel thread.
 * @query: the query; the fields of the VMA are filled in.
 * @answer: its buffers need not be initialized. On success, @file owns a
 *	reference if it is not NULL.
 *
 * Takes and drops mmap_lock of @mm for reading; may sleep to take it. The last
 * reference to the address space may be dropped here, which may sleep.
 *
 * Return: 0; -ESRCH if the address space is gone; -EINTR if a fatal signal
 * arrived while waiting for the lock; -ENOENT if no VMA matches.
 */
static int get_answer(struct mm_struct *mm, struct procmap_query *query,
		      struct answer *answer)
{
	struct vm_area_struct *vma;
	struct vma_name name;
	int err;

	err = lock_vmas(mm);
	if (err)
		return err;

	vma = find_vma_for(mm, query);
	if (!vma) {
		err = -ENOENT;
		goto unlock;
	}

	copy_fields((struct vma_fields *)&query->vma_start, vma);
	if (query->vma_name_size) {
		proc_vma_name(vma, &name);
		answer->path = name.path;
		if (name.text) {
			answer->name.size =
				format_special_name(answer->name.small, &name);
			answer->name.text = answer->name.small;
		}
	}
	if (vma->vm_file && (answer->path || query->build_id_size))
		answer->file = get_file(vma->vm_file);

unlock:
	unlock_vmas(mm);
	return err;
}

/*
 * Format the path if it is the name, and check that the name fits. No lock is
 * held; the answer's file is. May sleep to allocate memory.
 */
static int format_name(struct answer *answer, struct procmap_query *query)
{
	int err;

	if (answer->path) {
		err = format_path(&answer->name, answer->path,
				  query->vma_name_size);
		if (err)
			return err;
	}
	if (answer->name.size > query->vma_name_size)
		return -ENAMETOOLONG;

	query->vma_name_size = answer->name.size;
	return 0;
}

/*
 * Read the build ID if it is wanted, and check that it fits. No lock is held;
 * the answer's file is. May sleep to read the file.
 */
static int read_build_id(struct answer *answer, struct procmap_query *query)
{
	size_t size = 0;

	if (!query->build_id_size)
		return 0;
	if (answer->file)
		size = proc_build_id(answer->file, answer->build_id);
	if (size > query->build_id_size)
		return -ENAMETOOLONG;

	query->build_id_size = size;
	return 0;
}

/* Copy out the fields with direction "out", like get_fields(). May fault. */
static bool put_fields(struct procmap_query __user *uquery,
		       const struct procmap_query *query)
{
	if (!check_user_access() ||
	    !user_write_access_begin(uquery, sizeof(*uquery)))
		return false;
	unsafe_put_user(query->vma_start, &uquery->vma_start, fault);
	unsafe_put_user(query->vma_end, &uquery->vma_end, fault);
	unsafe_put_user(query->vma_flags, &uquery->vma_flags, fault);
	unsafe_put_user(query->vma_page_size, &uquery->vma_page_size, fault);
	unsafe_put_user(query->vma_offset, &uquery->vma_offset, fault);
	unsafe_put_user(query->inode, &uquery->inode, fault);
	unsafe_put_user(query->dev_major, &uquery->dev_major, fault);
	unsafe_put_user(query->dev_minor, &uquery->dev_minor, fault);
	unsafe_put_user(query->vma_name_size, &uquery->vma_name_size, fault);
	unsafe_put_user(query->build_id_size, &uquery->build_id_size, fault);
	user_write_access_end();
	return true;
fault:
	user_write_access_end();
	return false;
}

/* copy_to_user() for a few bytes, without its fixed cost. May fault. */
static bool copy_bytes_out(u64 address, const void *from, u32 size)
{
	char __user *to = u64_to_user_ptr(address);

	if (!check_user_access() || !user_write_access_begin(to, size))
		return false;
	unsafe_copy_to_user(to, from, size, fault);
	user_write_access_end();
	return true;
fault:
	user_write_access_end();
	return false;
}

/*
 * Copy name, build ID and fields to the caller. A faulting copy may block
 * indefinitely, so the caller holds no lock and no reference to the target.
 */
static int copy_answer_out(struct procmap_query __user *uquery,
			   const struct procmap_query *query,
			   const struct answer *answer)
{
	if (query->vma_name_size &&
	    !copy_bytes_out(query->vma_name_addr, answer->name.text,
			    query->vma_name_size))
		return -EFAULT;
	if (query->build_id_size &&
	    !copy_bytes_out(query->build_id_addr, answer->build_id,
			    query->build_id_size))
		return -EFAULT;
	if (query->size == sizeof(*query))
		return put_fields(uquery, query) ? 0 : -EFAULT;
	if (copy_to_user(uquery, query,
			 min_t(u64, query->size, sizeof(*query))))
		return -EFAULT;
	return 0;
}

int procmap_query(struct mm_struct *mm, struct procmap_query __user *uquery)
{
	struct procmap_query query __uninitialized;
	struct answer answer __uninitialized;
	int err;

	err = copy_query_in(&query, uquery);
	if (err)
		return err;

	/* Do not clear the buffers: that would cost half as much as a query. */
	answer.file = NULL;
	answer.path = NULL;
	answer.name.size = 0;
	answer.name.allocated = NULL;

	err = get_answer(mm, &query, &answer);
	if (err)
		return err;

	err = format_name(&answer, &query);
	if (!err)
		err = read_build_id(&answer, &query);
	if (answer.file)
		fput(answer.file);
	run_deferred_puts();

	if (!err)
		err = copy_answer_out(uquery, &query, &answer);
	kfree(answer.name.allocated);
	return err;
}
