// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY: look up one VMA of a process and return its fields, its name
 * and its build ID.
 *
 * The VMA is looked up, and its fields and a special name copied, while it is locked.
 * A path is formatted and a build ID read after that, with a reference on the file.
 * Copying to the caller may block for ever, on memory behind userfaultfd or FUSE: no
 * reference to the target is owned there.
 */
#include <linux/file.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "build_id.h"
#include "procmap_query.h"
#include "procmap_walk.h"

#define KNOWN_FLAGS	(PROCMAP_PERMISSIONS | PROCMAP_QUERY_FILE_BACKED_VMA | \
			 PROCMAP_QUERY_COVERING_OR_NEXT_VMA)

/**
 * struct query_answer - name and build ID of the VMA that a query found
 * @file: the VMA's file, on which a reference is owned, or NULL if it is not needed.
 * @path: the path of @file that is the name, or NULL.
 * @name: the name; undefined if there is none.
 * @name_size: size of a special name with its NUL; 0 if there is none; or an
 *	error.
 * @allocated: the buffer of a path that does not fit into @small, or NULL.
 * @small: the buffer of all other names.
 * @build_id: the build ID.
 */
struct query_answer {
	struct file *file;
	const struct path *path;
	const char *name;
	int name_size;
	char *allocated;
	char small[SHORT_NAME_SIZE];
	u8 build_id[BUILD_ID_SIZE_MAX];
};

/* Copy in and check a query, in the order that the ABI documents. */
static int query_copy_in(struct procmap_query *query,
			 const struct procmap_query __user *uquery)
{
	const int err = procmap_copy_arg(query, sizeof(*query),
					 offsetofend(struct procmap_query, query_addr),
					 uquery);

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

/* Copy out a query. If it has the kernel's size, copy only its outputs. */
static int query_copy_out(const struct procmap_query *query,
			  struct procmap_query __user *uquery)
{
	if (unlikely(query->size < sizeof(*query)))
		return copy_to_user(uquery, query, query->size) ? -EFAULT : 0;
	return copy_to_user(&uquery->vma_start, &query->vma_start,
			    offsetofend(struct procmap_query, build_id_size) -
			    offsetof(struct procmap_query, vma_start)) ? -EFAULT : 0;
}

/* Copy the wanted fields of the VMA that a query found. @answer may be NULL. */
static void query_copy_vma(struct procmap_query *query,
			   struct query_answer *answer,
			   struct vm_area_struct *vma)
{
	procmap_vma_assert_locked(vma);
	query->vma_start = vma->vm_start;
	query->vma_end = vma->vm_end;
	query->vma_flags = procmap_vma_permissions(vma);
	query->vma_page_size = procmap_vma_page_size(vma);
	procmap_file_fields(vma, &query->vma_offset, &query->inode,
			    &query->dev_major, &query->dev_minor);
	if (!answer)
		return;

	answer->file = NULL;
	answer->path = NULL;
	answer->name_size = 0;
	if (query->vma_name_size)
		answer->name_size = procmap_copy_name(vma, answer->small,
						      &answer->path);
	if (vma->vm_file && (answer->path || query->build_id_size))
		answer->file = get_file(vma->vm_file);
}

/**
 * query_find - look up the VMA that matches a query, and copy it
 * @mm: the address space, or NULL for a kernel thread.
 * @query: the query; its outputs are set but for name and build ID.
 * @answer: the file, the path and a special name are set; NULL if neither name nor
 *	build ID is wanted.
 *
 * Return: 0; -ESRCH if the address space is gone; -EINTR if a fatal signal
 * arrived; -ENOENT if no VMA matches.
 */
static int query_find(struct mm_struct *mm, struct procmap_query *query,
		      struct query_answer *answer)
{
	const u64 flags = query->query_flags;
	const u64 addr = query->query_addr;
	struct procmap_walk walk __uninitialized;
	struct vm_area_struct *vma;
	u64 end = U64_MAX;
	int err;

	/* Only a covering VMA starts below that. */
	if (!(flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA) && addr < U64_MAX)
		end = addr + 1;
	procmap_walk_init(&walk, mm, addr, end, flags & PROCMAP_PERMISSIONS,
			  flags & PROCMAP_QUERY_FILE_BACKED_VMA);

	for (;;) {
		err = procmap_walk_lock(&walk);
		if (err)
			return err;
		vma = procmap_walk_next(&walk);
		if (vma)
			query_copy_vma(query, answer, vma);
		procmap_walk_unlock(&walk);

		procmap_assert_unlocked(&walk);
		if (vma)
			return 0;
		if (walk.pos >= walk.end)
			return -ENOENT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
}

/*
 * Format the path that is the name; most fit into the small buffer. Return its size in
 * bytes with the NUL, at most @wanted; -ENAMETOOLONG if it is longer than that, or than
 * PATH_MAX; or -ENOMEM.
 */
static int query_format_path(struct query_answer *answer, u32 wanted)
{
	u32 size = min_t(u32, wanted, SHORT_NAME_SIZE);
	char *buffer = answer->small;
	char *path;

	path = d_path(answer->path, buffer, size);
	if (path == ERR_PTR(-ENAMETOOLONG) && wanted > SHORT_NAME_SIZE) {
		size = min_t(u32, wanted, PATH_MAX);
		buffer = kmalloc(size, GFP_KERNEL_ACCOUNT);
		if (!buffer)
			return -ENOMEM;
		answer->allocated = buffer;
		path = d_path(answer->path, buffer, size);
	}
	if (IS_ERR(path))
		return PTR_ERR(path);

	/* d_path() writes to the end of the buffer. */
	answer->name = path;
	return buffer + size - path;
}

/* Complete the name and the build ID, each of which is wanted if its buffer has a size. */
static int query_complete(struct query_answer *answer,
			  struct procmap_query *query)
{
	int size = answer->name_size;

	answer->name = answer->small;
	if (answer->path)
		size = query_format_path(answer, query->vma_name_size);
	if (size < 0)
		return size;
	if (size > query->vma_name_size)
		return -ENAMETOOLONG;
	query->vma_name_size = size;

	size = 0;
	if (answer->file && query->build_id_size)
		size = proc_build_id(answer->file, answer->build_id, true);
	if (size > query->build_id_size)
		return -ENAMETOOLONG;
	query->build_id_size = size;
	return 0;
}

/* Not inlined, so that a query for the fields alone has no large stack. */
static noinline int query_find_named(struct mm_struct *mm,
				     struct procmap_query *query)
{
	struct query_answer answer __uninitialized;
	int err;

	err = query_find(mm, query, &answer);
	if (err)
		return err;

	answer.allocated = NULL;
	err = query_complete(&answer, query);
	if (answer.file)
		fput(answer.file);

	if (!err && query->vma_name_size &&
	    copy_to_user(u64_to_user_ptr(query->vma_name_addr), answer.name,
			 query->vma_name_size))
		err = -EFAULT;
	if (!err && query->build_id_size &&
	    copy_to_user(u64_to_user_ptr(query->build_id_addr),
			 answer.build_id, query->build_id_size))
		err = -EFAULT;
	kfree(answer.allocated);
	return err;
}

int procmap_query(struct mm_struct *mm, struct procmap_query __user *uquery)
{
	struct procmap_query query __uninitialized;
	int err;

	err = query_copy_in(&query, uquery);
	if (err)
		return err;
	if (query.vma_name_size || query.build_id_size)
		err = query_find_named(mm, &query);
	else
		err = query_find(mm, &query, NULL);
	if (err)
		return err;

	return query_copy_out(&query, uquery);
}
