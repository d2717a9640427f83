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
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>

#include "build_id.h"
#include "procmap_query.h"

#define PERMISSION_FLAGS (PROCMAP_QUERY_VMA_READABLE | \
			  PROCMAP_QUERY_VMA_WRITABLE | \
			  PROCMAP_QUERY_VMA_EXECUTABLE | \
			  PROCMAP_QUERY_VMA_SHARED)
#define KNOWN_FLAGS	 (PERMISSION_FLAGS | \
			  PROCMAP_QUERY_COVERING_OR_NEXT_VMA | \
			  PROCMAP_QUERY_FILE_BACKED_VMA)

/*
 * Room for every special name, of which "[anon:" and the 80 bytes that
 * prctl(PR_SET_VMA) allows are the longest, and for most paths.
 */
#define SHORT_NAME_SIZE	256

/**
 * struct answer - what is known of the VMA that answers
 * @file: its file, referenced, if the path or the build ID is wanted; or NULL.
 * @path: the path of @file, if it is the name and is wanted; or NULL.
 * @name: its name, in one of the two buffers that follow, or NULL.
 * @long_name: allocated for a path that is longer than @short_name, or NULL.
 * @short_name: the buffer for all others.
 * @build_id: its build ID.
 */
struct answer {
	struct file *file;
	const struct path *path;
	const char *name;
	char *long_name;
	char short_name[SHORT_NAME_SIZE];
	u8 build_id[BUILD_ID_SIZE_MAX];
};

static int copy_query_in(struct procmap_query *query, u64 *size,
			 const struct procmap_query __user *uquery)
{
	int err;

	if (get_user(*size, &uquery->size))
		return -EFAULT;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	if (*size < offsetofend(struct procmap_query, query_addr))
		return -EINVAL;
	err = copy_struct_from_user(query, sizeof(*query), uquery, *size);
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
 * The three functions that follow are all that knows how a VMA is locked and
 * found. Between the first and the last, the VMAs of @mm hold still.
 */
static int lock_vmas(struct mm_struct *mm)
{
	if (!mm || !mmget_not_zero(mm))
		return -ESRCH;
	if (mmap_read_lock_killable(mm)) {
		mmput(mm);
		return -EINTR;
	}
	return 0;
}

/* The first VMA that ends above where @vmi stands, which moves past it. */
static struct vm_area_struct *next_vma(struct vma_iterator *vmi)
{
	return vma_next(vmi);
}

static void unlock_vmas(struct mm_struct *mm)
{
	mmap_read_unlock(mm);
	mmput(mm);
}

static u64 vma_permissions(const struct vm_area_struct *vma)
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

static bool passes_filters(const struct vm_area_struct *vma, u64 flags)
{
	if ((flags & PROCMAP_QUERY_FILE_BACKED_VMA) && !vma->vm_file)
		return false;
	return !(flags & PERMISSION_FLAGS & ~vma_permissions(vma));
}

static struct vm_area_struct *find_vma_for(struct mm_struct *mm,
					   const struct procmap_query *query)
{
	const u64 addr = query->query_addr;
	const u64 flags = query->query_flags;
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	/* A 32-bit kernel maps nothing up there. */
	if (addr > ULONG_MAX)
		return NULL;

	vma_iter_init(&vmi, mm, addr);
	while ((vma = next_vma(&vmi))) {
		if (!(flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA) &&
		    vma->vm_start > addr)
			return NULL;
		if (passes_filters(vma, flags))
			return vma;
	}
	return NULL;
}

static void copy_fields(struct procmap_query *query, struct vm_area_struct *vma)
{
	query->vma_start = vma->vm_start;
	query->vma_end = vma->vm_end;
	query->vma_flags = vma_permissions(vma);
	query->vma_page_size = vma_kernel_pagesize(vma);

	if (vma->vm_file) {
		const struct inode *inode = file_inode(vma->vm_file);

		query->vma_offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		query->inode = inode->i_ino;
		query->dev_major = MAJOR(inode->i_sb->s_dev);
		query->dev_minor = MINOR(inode->i_sb->s_dev);
	} else {
		query->vma_offset = 0;
		query->inode = 0;
		query->dev_major = 0;
		query->dev_minor = 0;
	}
}

static void copy_special_name(struct answer *answer,
			      const struct vma_name *name)
{
	char *to = answer->short_name;

	*to = '\0';
	if (name->prefix)
		strlcat(to, name->prefix, SHORT_NAME_SIZE);
	strlcat(to, name->text, SHORT_NAME_SIZE);
	if (name->prefix)
		strlcat(to, "]", SHORT_NAME_SIZE);
	answer->name = to;
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

	copy_fields(query, vma);
	if (query->vma_name_size) {
		proc_vma_name(vma, &name);
		answer->path = name.path;
		if (name.text)
			copy_special_name(answer, &name);
	}
	if (vma->vm_file && (answer->path || query->build_id_size))
		answer->file = get_file(vma->vm_file);

unlock:
	unlock_vmas(mm);
	return err;
}

/*
 * Make the path in the short buffer first: most fit, and where the caller's is
 * shorter still, a longer path is not wanted.
 */
static int make_path(struct answer *answer, u32 size)
{
	char *name;

	name = d_path(answer->path, answer->short_name,
		      min_t(u32, size, SHORT_NAME_SIZE));
	if (name == ERR_PTR(-ENAMETOOLONG) && size > SHORT_NAME_SIZE) {
		size = min_t(u32, size, PATH_MAX);
		answer->long_name = kmalloc(size, GFP_KERNEL);
		if (!answer->long_name)
			return -ENOMEM;
		name = d_path(answer->path, answer->long_name, size);
	}
	if (IS_ERR(name))
		return PTR_ERR(name);

	answer->name = name;
	return 0;
}

static int make_name(struct answer *answer, struct procmap_query *query)
{
	size_t size = 0;
	int err;

	if (answer->path) {
		err = make_path(answer, query->vma_name_size);
		if (err)
			return err;
	}
	if (answer->name)
		size = strlen(answer->name) + 1;
	if (size > query->vma_name_size)
		return -ENAMETOOLONG;

	query->vma_name_size = size;
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

/* May block for ever: nothing of the target is held here. */
static int copy_answer_out(struct procmap_query __user *uquery, u64 size,
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
	if (copy_to_user(uquery, query, min_t(u64, size, sizeof(*query))))
		return -EFAULT;
	return 0;
}

int procmap_query(struct mm_struct *mm, struct procmap_query __user *uquery)
{
	struct procmap_query query;
	struct answer answer;
	u64 size;
	int err;

	err = copy_query_in(&query, &size, uquery);
	if (err)
		return err;

	/* The buffers are left as they are: clearing them costs a query. */
	answer.file = NULL;
	answer.path = NULL;
	answer.name = NULL;
	answer.long_name = NULL;

	err = find_answer(mm, &query, &answer);
	if (err)
		return err;

	err = make_name(&answer, &query);
	if (!err)
		err = make_build_id(&answer, &query);
	if (answer.file)
		fput(answer.file);

	/*
	 * If the target has gone meanwhile, the references dropped above were
	 * the last. The files are then closed by task work, which waits for
	 * the return to user space, and the copies can put that off for ever.
	 */
	if (unlikely(task_work_pending(current)))
		task_work_run();

	if (!err)
		err = copy_answer_out(uquery, size, &query, &answer);
	kfree(answer.long_name);
	return err;
}
