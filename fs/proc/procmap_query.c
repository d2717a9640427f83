// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY: look up one VMA of a process and return its fields, its name
 * and its build ID.
 *
 * A query has these steps:
 *
 * - copy_query_in() copies in and checks the caller's structure.
 * - find_vma_for() locks the VMAs, looks up the one that matches, copies its
 *   fields and a special name, and takes a reference on its path or file.
 * - format_name() and read_build_id() run without the lock. Then that reference
 *   is dropped.
 * - copy_query_out() copies to the caller. That may block indefinitely, on
 *   memory behind userfaultfd or FUSE, so no reference is held there. If the one on
 *   a file was the last, the file is released when the caller returns to user space.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "build_id.h"
#include "procmap_query.h"
#include "procmap_vma.h"

#define PERMISSIONS	(PROCMAP_QUERY_VMA_READABLE | \
			 PROCMAP_QUERY_VMA_WRITABLE | \
			 PROCMAP_QUERY_VMA_EXECUTABLE | \
			 PROCMAP_QUERY_VMA_SHARED)
#define KNOWN_FLAGS	(PERMISSIONS | PROCMAP_QUERY_FILE_BACKED_VMA | \
			 PROCMAP_QUERY_COVERING_OR_NEXT_VMA)

/**
 * struct answer - name and build ID of the VMA that a query found
 * @need: what is needed of the VMA's file. The references are owned until name and
 *	build ID are complete.
 * @name: the name; undefined if there is none.
 * @name_size: size of a special name with its NUL; 0 if there is none; or an
 *	error.
 * @allocated: the buffer of a path that does not fit into @small, or NULL.
 * @small: the buffer of all other names.
 * @build_id: the build ID.
 */
struct answer {
	struct procmap_file need;
	const char *name;
	int name_size;
	char *allocated;
	char small[SHORT_NAME_SIZE];
	u8 build_id[BUILD_ID_SIZE_MAX];
};

/*
 * Copy in and check a query, in the order that the ABI documents. May fault, so
 * no lock is held.
 */
static int copy_query_in(struct procmap_query *query,
			 const struct procmap_query __user *uquery)
{
	const size_t size_min = offsetofend(struct procmap_query, query_addr);
	int err;

	err = procmap_copy_arg(query, sizeof(*query), size_min, uquery);
	if (err)
		return err;
	if (query->query_flags & ~(u64)KNOWN_FLAGS)
		return -EINVAL;
	if (!query->vma_name_size != !query->vma_name_addr)
		return -EINVAL;
	if (!query->build_id_size != !query->build_id_addr)
		return -EINVAL;
	return 0;
}

/*
 * Copy the fields and a special name of the VMA found, and take a reference on
 * its path or file if that is needed. The VMA is locked: nothing is allocated,
 * formatted or read from a file. Returns false if the walk has to come back to it.
 */
static bool copy_fields(struct procmap_query *query, struct answer *answer,
			struct vma_walk *walk, struct vm_area_struct *vma)
{
	const struct path *path = NULL;

	query->vma_start = vma->vm_start;
	query->vma_end = vma->vm_end;
	query->vma_flags = procmap_vma_permissions(vma);
	query->vma_page_size = vma_kernel_pagesize(vma);
	procmap_file_fields(vma, &query->vma_offset, &query->inode,
			    &query->dev_major, &query->dev_minor);

	answer->name_size = 0;
	if (query->vma_name_size)
		answer->name_size = procmap_copy_name(walk, vma, answer->small,
						      &path);
	if (answer->name_size == -EAGAIN)
		return false;
	answer->need.file = NULL;
	answer->need.path.mnt = NULL;
	if (vma->vm_file && (path || query->build_id_size))
		procmap_get_file(&answer->need, vma->vm_file, path,
				 query->build_id_size);
	return true;
}

/**
 * find_vma_for - look up the VMA that matches a query, and copy it
 * @mm: the address space, or NULL for a kernel thread.
 * @query: the query; its outputs are set but for name and build ID.
 * @answer: the file, the path and a special name are set.
 *
 * Takes and drops the lock of the VMAs; may sleep to take it.
 *
 * Return: 0; -ESRCH if the address space is gone; -EINTR if a fatal signal
 * arrived; -ENOENT if no VMA matches.
 */
static int find_vma_for(struct mm_struct *mm, struct procmap_query *query,
			struct answer *answer)
{
	const u64 addr = query->query_addr;
	struct vma_walk walk = {
		.mm = mm,
		.pos = addr,
		.end = U64_MAX,
		.permissions = query->query_flags & PERMISSIONS,
		.file_backed =
			query->query_flags & PROCMAP_QUERY_FILE_BACKED_VMA,
	};
	struct vm_area_struct *vma;
	bool is_found;
	int err;

	/* Only a covering VMA starts below that. */
	if (!(query->query_flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA) &&
	    addr < U64_MAX)
		walk.end = addr + 1;

	for (;;) {
		err = procmap_lock_vmas(&walk);
		if (err)
			return err;
		vma = procmap_next_vma(&walk);
		is_found = vma && copy_fields(query, answer, &walk, vma);
		procmap_unlock_vmas(&walk);

		if (is_found)
			return 0;
		if (walk.pos >= walk.end)
			return -ENOENT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
}

/**
 * format_path - format the path that is the name
 * @answer: the answer; its path is owned. @name and @allocated are set.
 * @wanted: size of the user's buffer in bytes.
 *
 * Most paths fit into the small buffer. May sleep to allocate; no lock is held.
 *
 * Return: the size of the path in bytes, including the NUL; -ENAMETOOLONG if it
 * is longer than @wanted or PATH_MAX; or -ENOMEM.
 */
static int format_path(struct answer *answer, u32 wanted)
{
	u32 size = min_t(u32, wanted, SHORT_NAME_SIZE);
	char *buffer = answer->small;
	char *path;

	path = d_path(&answer->need.path, buffer, size);
	if (path == ERR_PTR(-ENAMETOOLONG) && wanted > SHORT_NAME_SIZE) {
		size = min_t(u32, wanted, PATH_MAX);
		buffer = kmalloc(size, GFP_KERNEL_ACCOUNT);
		if (!buffer)
			return -ENOMEM;
		answer->allocated = buffer;
		path = d_path(&answer->need.path, buffer, size);
	}
	if (IS_ERR(path))
		return PTR_ERR(path);

	/* d_path() writes to the end of the buffer. */
	answer->name = path;
	return buffer + size - path;
}

/*
 * Format the name, and check that it fits. The answer's path is owned; no lock
 * is held. May sleep to allocate.
 */
static int format_name(struct answer *answer, struct procmap_query *query)
{
	int size = answer->name_size;

	answer->name = answer->small;
	if (answer->need.path.mnt)
		size = format_path(answer, query->vma_name_size);
	if (size < 0)
		return size;
	if (size > query->vma_name_size)
		return -ENAMETOOLONG;

	query->vma_name_size = size;
	return 0;
}

/*
 * Read the build ID if it is wanted, and check that it fits. The answer's file
 * is owned; no lock is held. May sleep, and block on a read of the file.
 */
static int read_build_id(struct answer *answer, struct procmap_query *query)
{
	int size = 0;

	if (!query->build_id_size)
		return 0;
	if (answer->need.file)
		size = proc_build_id(answer->need.file, answer->build_id, true);
	if (size > query->build_id_size)
		return -ENAMETOOLONG;

	query->build_id_size = size;
	return 0;
}

/*
 * Copy name, build ID and fields to the caller. A copy that faults may block
 * indefinitely, so the caller holds no lock and no reference to the target.
 */
static int copy_query_out(struct procmap_query __user *uquery,
			  const struct procmap_query *query,
			  const struct answer *answer)
{
	if (query->vma_name_size &&
	    copy_to_user(u64_to_user_ptr(query->vma_name_addr), answer->name,
			 query->vma_name_size))
		return -EFAULT;
	if (query->build_id_size &&
	    copy_to_user(u64_to_user_ptr(query->build_id_addr),
			 answer->build_id, query->build_id_size))
		return -EFAULT;
	if (query->size >= sizeof(*query))
		return copy_to_user(uquery, query, sizeof(*query)) ? -EFAULT : 0;
	return copy_to_user(uquery, query, query->size) ? -EFAULT : 0;
}

int procmap_query(struct mm_struct *mm, struct procmap_query __user *uquery)
{
	struct procmap_query query;
	struct answer answer;
	int err;

	err = copy_query_in(&query, uquery);
	if (err)
		return err;
	err = find_vma_for(mm, &query, &answer);
	if (err)
		return err;

	answer.allocated = NULL;
	err = format_name(&answer, &query);
	if (!err)
		err = read_build_id(&answer, &query);
	procmap_put_file(&answer.need);

	if (!err)
		err = copy_query_out(uquery, &query, &answer);
	kfree(answer.allocated);
	return err;
}
