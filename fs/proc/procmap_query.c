// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY: look up one VMA of a process and tell its fields, its name
 * and its build ID.
 *
 * A query goes through three stages. It is copied in and checked. Then the VMA
 * is found under mmap_lock, where its fields and a short special name are
 * copied and a reference is taken on its file, and nothing is allocated,
 * formatted or read. With the lock dropped, the path and the build ID are made
 * from the file, and all is copied out once no reference is held any more: a
 * copy to memory behind userfaultfd or FUSE can block for ever.
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
 * struct answer - what is known of the VMA that answers
 * @file: its file, referenced, if the path or the build ID is wanted; or NULL.
 * @path: the path of @file, if it is the name and is wanted; or NULL.
 * @name: its name.
 * @build_id: its build ID.
 */
struct answer {
	struct file *file;
	const struct path *path;
	struct made_name name;
	u8 build_id[BUILD_ID_SIZE_MAX];
};

/* What the debug aids have a say in before a copy_to_user(), and so here. */
static bool may_access_user(void)
{
	might_fault();
	return !should_fail_usercopy();
}

/*
 * Read a query of the size that this header has, as most are: field by field is
 * several times cheaper than a copy, which has to be checked first. The fields
 * that only answer are left as they are.
 */
static bool read_fields(struct procmap_query *query,
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

static int copy_query_in(struct procmap_query *query,
			 const struct procmap_query __user *uquery)
{
	int err;

	if (!may_access_user())
		return -EFAULT;
	if (!read_fields(query, uquery)) {
		err = read_struct(query, sizeof(*query),
				  offsetofend(struct procmap_query, query_addr),
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

/* Apart, for what it has on the stack: most queries do without. */
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

static struct vm_area_struct *find_vma_for(struct mm_struct *mm,
					   const struct procmap_query *query)
{
	const u64 addr = query->query_addr;
	const u64 flags = query->query_flags;
	struct vm_area_struct *vma;

	/* A 32-bit kernel maps nothing up there. */
	if (addr > ULONG_MAX)
		return NULL;

	vma = vma_at(mm, addr);
	if (vma && passes_filters(vma, flags))
		return vma;
	if (!(flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA))
		return NULL;
	return find_vma_from(mm, vma ? vma->vm_end : addr, flags);
}

/* All that happens under the lock. */
static int find_answer(struct mm_struct *mm, struct procmap_query *query,
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

	fill_fields((struct vma_fields *)&query->vma_start, vma);
	if (query->vma_name_size) {
		proc_vma_name(vma, &name);
		answer->path = name.path;
		if (name.text) {
			answer->name.size =
				write_special_name(answer->name.small, &name);
			answer->name.text = answer->name.small;
		}
	}
	if (vma->vm_file && (answer->path || query->build_id_size))
		answer->file = get_file(vma->vm_file);

unlock:
	unlock_vmas(mm);
	return err;
}

static int make_name(struct answer *answer, struct procmap_query *query)
{
	int err;

	if (answer->path) {
		err = make_path(&answer->name, answer->path,
				query->vma_name_size);
		if (err)
			return err;
	}
	if (answer->name.size > query->vma_name_size)
		return -ENAMETOOLONG;

	query->vma_name_size = answer->name.size;
	return 0;
}

static int make_build_id(struct answer *answer, struct procmap_query *query)
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

/* The counterpart of read_fields(). */
static bool write_fields(struct procmap_query __user *uquery,
			 const struct procmap_query *query)
{
	if (!may_access_user() ||
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

static bool write_bytes(u64 address, const void *from, u32 size)
{
	char __user *to = u64_to_user_ptr(address);

	if (!may_access_user() || !user_write_access_begin(to, size))
		return false;
	unsafe_copy_to_user(to, from, size, fault);
	user_write_access_end();
	return true;
fault:
	user_write_access_end();
	return false;
}

/* May block for ever: nothing of the target is held here. */
static int copy_answer_out(struct procmap_query __user *uquery,
			   const struct procmap_query *query,
			   const struct answer *answer)
{
	if (query->vma_name_size &&
	    !write_bytes(query->vma_name_addr, answer->name.text,
			 query->vma_name_size))
		return -EFAULT;
	if (query->build_id_size &&
	    !write_bytes(query->build_id_addr, answer->build_id,
			 query->build_id_size))
		return -EFAULT;
	if (query->size == sizeof(*query))
		return write_fields(uquery, query) ? 0 : -EFAULT;
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

	/* The buffers are left as they are: clearing them costs half a query. */
	answer.file = NULL;
	answer.path = NULL;
	answer.name.size = 0;
	answer.name.allocated = NULL;

	err = find_answer(mm, &query, &answer);
	if (err)
		return err;

	err = make_name(&answer, &query);
	if (!err)
		err = make_build_id(&answer, &query);
	if (answer.file)
		fput(answer.file);
	finish_dropping_references();

	if (!err)
		err = copy_answer_out(uquery, &query, &answer);
	kfree(answer.name.allocated);
	return err;
}
