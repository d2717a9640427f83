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
#include <linux/fault-inject-usercopy.h>
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
 * @name: its name, in one of the two buffers that follow.
 * @name_size: bytes of @name, with the NUL; 0 if it has none.
 * @long_name: allocated for a path that is longer than @short_name, or NULL.
 * @short_name: the buffer for all others.
 * @build_id: its build ID.
 */
struct answer {
	struct file *file;
	const struct path *path;
	const char *name;
	u32 name_size;
	char *long_name;
	char short_name[SHORT_NAME_SIZE];
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

/* Read one of any size. */
static int read_struct(struct procmap_query *query,
		       const struct procmap_query __user *uquery)
{
	u64 size;
	int err;

	if (get_user(size, &uquery->size))
		return -EFAULT;
	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < offsetofend(struct procmap_query, query_addr))
		return -EINVAL;
	err = copy_struct_from_user(query, sizeof(*query), uquery, size);
	/* Whatever the caller has made of it since. */
	query->size = size;
	return err;
}

static int copy_query_in(struct procmap_query *query,
			 const struct procmap_query __user *uquery)
{
	int err;

	if (!may_access_user())
		return -EFAULT;
	if (!read_fields(query, uquery)) {
		err = read_struct(query, uquery);
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
 * The four functions that follow are all that knows how a VMA is locked and
 * found. Between the first and the last, the VMAs of @mm hold still.
 */
static int lock_vmas(struct mm_struct *mm)
{
	if (!mm || !mmget_not_zero(mm))
		return -ESRCH;
	if (!mmap_read_trylock(mm) && mmap_read_lock_killable(mm)) {
		mmput(mm);
		return -EINTR;
	}
	return 0;
}

static struct vm_area_struct *vma_at(struct mm_struct *mm, unsigned long addr)
{
	return vma_lookup(mm, addr);
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
	const u64 permissions = flags & PERMISSION_FLAGS;

	if ((flags & PROCMAP_QUERY_FILE_BACKED_VMA) && !vma->vm_file)
		return false;
	return !permissions || !(permissions & ~vma_permissions(vma));
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

static void append_to_name(struct answer *answer, const char *text)
{
	const u32 left = SHORT_NAME_SIZE - answer->name_size;
	const ssize_t len = strscpy(answer->short_name + answer->name_size, text,
				    left);

	answer->name_size += len < 0 ? left - 1 : len;
}

static void copy_special_name(struct answer *answer,
			      const struct vma_name *name)
{
	if (name->prefix)
		append_to_name(answer, name->prefix);
	append_to_name(answer, name->text);
	if (name->prefix)
		append_to_name(answer, "]");
	answer->name_size++;
	answer->name = answer->short_name;
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
static int make_path(struct answer *answer, u32 wanted)
{
	u32 size = min_t(u32, wanted, SHORT_NAME_SIZE);
	char *buffer = answer->short_name;
	char *name;

	name = d_path(answer->path, buffer, size);
	if (name == ERR_PTR(-ENAMETOOLONG) && wanted > SHORT_NAME_SIZE) {
		size = min_t(u32, wanted, PATH_MAX);
		buffer = kmalloc(size, GFP_KERNEL);
		if (!buffer)
			return -ENOMEM;
		answer->long_name = buffer;
		name = d_path(answer->path, buffer, size);
	}
	if (IS_ERR(name))
		return PTR_ERR(name);

	/* It stands at the end of the buffer. */
	answer->name = name;
	answer->name_size = buffer + size - name;
	return 0;
}

static int make_name(struct answer *answer, struct procmap_query *query)
{
	int err;

	if (answer->path) {
		err = make_path(answer, query->vma_name_size);
		if (err)
			return err;
	}
	if (answer->name_size > query->vma_name_size)
		return -ENAMETOOLONG;

	query->vma_name_size = answer->name_size;
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
	    !write_bytes(query->vma_name_addr, answer->name,
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
	answer.name_size = 0;
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
		err = copy_answer_out(uquery, &query, &answer);
	kfree(answer.long_name);
	return err;
}
