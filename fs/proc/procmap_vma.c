// SPDX-License-Identifier: GPL-2.0
/*
 * What PROCMAP_QUERY and PROCMAP_SCAN share. This file alone knows how VMAs are
 * locked.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/iopoll.h>
#include <linux/kcsan-checks.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/path.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "build_id.h"
#include "procmap_vma.h"
#include "vma_name.h"

struct workqueue_struct *procmap_put_queue;

/**
 * struct put_work - a last reference on a file, which a work drops
 * @work: the work, which owns it.
 * @file: the file.
 */
struct put_work {
	struct work_struct work;
	struct file *file;
};

/* Does a VMA pass the filter of a walk? */
static bool passes(const struct vma_walk *walk, const struct vm_area_struct *vma)
{
	return !(walk->permissions & ~procmap_vma_permissions(vma)) &&
	       (vma->vm_file || !walk->file_backed);
}

#ifdef CONFIG_PER_VMA_LOCK

/*
 * With per-VMA locks, no writer waits for the reader of another VMA: a VMA is found
 * under RCU, which keeps it allocated, and locked by itself. Where that fails because
 * a writer is at work, it is tried again behind that writer, and then mmap_lock is
 * taken until one VMA is found.
 *
 * mm_lock_seq is odd while a writer holds mmap_lock, and moves when it begins and
 * ends. With another type of counter, the functions below would be wrong.
 */
static_assert(__same_type(((struct mm_struct *)NULL)->mm_lock_seq, seqcount_t));

/* How often a VMA is looked for without mmap_lock, and how long a writer is awaited. */
#define TRIES_MAX		4
#define WRITER_TIMEOUT_US	50

/* What follows is no read side of a seqcount, in which KCSAN looks for no races. */
static unsigned int read_seq(const struct mm_struct *mm)
{
	const unsigned int seq = raw_read_seqcount(&mm->mm_lock_seq);

	kcsan_atomic_next(0);
	return seq;
}

/*
 * Wait for a writer to end. It may sleep, so not for long: somewhat longer than most
 * hold mmap_lock.
 */
static bool await_writer(const struct mm_struct *mm)
{
	unsigned int seq;

	return !read_poll_timeout_atomic(read_seq, seq, !(seq & 1), 1,
					 WRITER_TIMEOUT_US, false, mm);
}

static int lock_walk(struct vma_walk *walk)
{
	walk->locked = NULL;
	walk->is_mmap_locked = walk->is_contended &&
		(walk->tries >= TRIES_MAX || !await_writer(walk->mm));
	walk->is_contended = false;
	walk->may_walk_up = !preempt_model_preemptible();
	walk->seq = read_seq(walk->mm);
	if (walk->is_mmap_locked)
		return mmap_read_lock_killable(walk->mm);
	rcu_read_lock();
	/* sparse does not know locks that are held on a condition. */
	__release(RCU);
	return 0;
}

static void unlock_vma(struct vma_walk *walk)
{
	if (walk->locked)
		vma_end_read(walk->locked);
	walk->locked = NULL;
}

static void unlock_walk(struct vma_walk *walk)
{
	unlock_vma(walk);
	if (walk->is_mmap_locked) {
		mmap_read_unlock(walk->mm);
	} else {
		__acquire(RCU);
		rcu_read_unlock();
	}
}

/* Has no writer been at work since the counter was @seq? */
static bool is_unchanged(const struct mm_struct *mm, unsigned int seq)
{
	return !(seq & 1) && !read_seqcount_retry(&mm->mm_lock_seq, seq);
}

/* The search begins anew: what has been left out is of another time. */
static void meet_writer(struct vma_walk *walk)
{
	walk->pos = walk->from;
	walk->tries = walk->pos == walk->met_at ? walk->tries + 1 : 1;
	walk->met_at = walk->pos;
	walk->is_contended = true;
}

/* Returns false if the locks have to be dropped before another VMA is looked for. */
static bool begin_search(struct vma_walk *walk)
{
	walk->from = walk->pos;
	return !walk->is_mmap_locked || walk->left == VMAS_PER_HOLD;
}

/*
 * The heap has its name by mm->brk, which brk(2) changes before it locks the VMA, and
 * back again if it fails. Returns false if a writer may be at that.
 */
static bool get_name(struct vma_walk *walk, struct vm_area_struct *vma,
		     struct vma_name *name)
{
	unsigned int seq;
	bool may_be_heap;

	if (walk->is_mmap_locked || vma->vm_file) {
		proc_vma_name(vma, name);
		return true;
	}
	seq = read_seq(walk->mm);
	/* What a writer changes meanwhile is not used. */
	kcsan_disable_current();
	proc_vma_name(vma, name);
	may_be_heap = vma->vm_end > walk->mm->start_brk;
	kcsan_enable_current();
	if (!may_be_heap || is_unchanged(walk->mm, seq))
		return true;
	meet_writer(walk);
	return false;
}

/*
 * Find the VMA at or above @pos. Not by mas_find(): munmap(2) of everything leaves an
 * empty tree, and it begins again where it meets a dead node, without regard to that.
 */
static struct vm_area_struct *find_first_vma(struct vma_walk *walk)
{
	struct ma_state *mas = &walk->vmi.mas;
	struct vm_area_struct *vma;

	mas_set(mas, walk->pos);
	while (!(vma = mas_walk(mas)) && mas->last != ULONG_MAX)
		mas_set(mas, mas->last + 1);
	return vma;
}

/*
 * Find and lock the next VMA, and unlock the one before it. Returns NULL if there is
 * none, or -EAGAIN if the locks have to be dropped first.
 *
 * A VMA that covers @pos does so while it is locked. That nothing is mapped at @pos
 * may be a state between two steps of a writer, such as mremap(2) onto another
 * mapping, so it counts only if no writer was at work. Then, a VMA that does not pass
 * the filter need not be locked either, but for the first: as long as one is, the tree
 * is not empty. For all of them to be of one time, a search that has left out some
 * ends with the next writer.
 */
static struct vm_area_struct *next_vma(struct vma_walk *walk)
{
	struct vm_area_struct *vma;
	unsigned int seq;
	bool is_locked;
	u64 end;

	if (walk->is_mmap_locked)
		return vma_next(&walk->vmi);

	for (;;) {
		/*
		 * From where it stands, the iterator would go on behind what is
		 * there now, which may have grown.
		 */
		seq = read_seq(walk->mm);
		if (seq != walk->seq) {
			if (walk->pos != walk->from)
				goto contended;
			mas_set(&walk->vmi.mas, walk->pos);
			walk->seq = seq;
		}
		/*
		 * vma_next() walks up the tree, too: where a writer is preempted
		 * between two steps, it begins again until that goes on. One that
		 * begins meanwhile runs on another CPU, and this task does not
		 * come to preempt it there where the kernel is not preemptible.
		 */
		vma = walk->locked && !(seq & 1) && walk->may_walk_up ?
		      vma_next(&walk->vmi) : find_first_vma(walk);
		/* What a writer changes meanwhile is not used. */
		if (!vma || !walk->locked || data_race(passes(walk, vma)))
			break;
		/* Nor that. */
		end = data_race(vma->vm_end);
		if (!is_unchanged(walk->mm, seq))
			break;
		walk->pos = end;
		if (end >= walk->end)
			return NULL;
		if (!--walk->left)
			return ERR_PTR(-EAGAIN);
	}
	if (vma) {
		is_locked = vma_start_read(vma);
		kcsan_atomic_next(0);	/* as in read_seq() */
		if (!is_locked)
			goto contended;
		unlock_vma(walk);
		walk->locked = vma;
		if (vma->detached || vma->vm_end <= walk->pos)
			goto contended;
		if (vma->vm_start <= walk->pos && walk->pos == walk->from)
			return vma;
	}
	if (is_unchanged(walk->mm, seq))
		return vma;
contended:
	meet_writer(walk);
	return ERR_PTR(-EAGAIN);
}

/**
 * procmap_generation - get the generation of an address space
 * @mm: the address space, or NULL for a kernel thread.
 *
 * Every writer of mmap_lock moves it. The counter has 32 bits; after 2^31 writers,
 * the number of mappings has to be the same, too, to be taken for the same.
 *
 * Return: the generation; 0 if there is none, if the address space has no users left,
 * or while a writer is at work.
 */
u64 procmap_generation(const struct mm_struct *mm)
{
	unsigned int seq;
	u64 count;

	if (!mm || !atomic_read(&mm->mm_users))
		return 0;
	seq = read_seq(mm);
	/* What a writer changes meanwhile is not used. */
	count = data_race(READ_ONCE(mm->map_count));
	return is_unchanged(mm, seq) ? count << 32 | seq : 0;
}

#else /* !CONFIG_PER_VMA_LOCK */

static int lock_walk(struct vma_walk *walk)
{
	return mmap_read_lock_killable(walk->mm);
}

static void unlock_walk(struct vma_walk *walk)
{
	mmap_read_unlock(walk->mm);
}

static bool begin_search(struct vma_walk *walk)
{
	return true;
}

static bool get_name(struct vma_walk *walk, struct vm_area_struct *vma,
		     struct vma_name *name)
{
	proc_vma_name(vma, name);
	return true;
}

static struct vm_area_struct *next_vma(struct vma_walk *walk)
{
	return vma_next(&walk->vmi);
}

/* Changes of an address space are not counted. */
u64 procmap_generation(const struct mm_struct *mm)
{
	return 0;
}

#endif

/**
 * procmap_lock_vmas - lock the VMAs for the next steps of a walk
 * @walk: the walk; it goes on at @pos.
 *
 * On success the caller holds RCU or mmap_lock for reading, and a reference on the
 * users of the address space, and drops both with procmap_unlock_vmas(). May sleep;
 * the caller may not, in between.
 *
 * Return: 0, -ESRCH if the address space has no users left, or -EINTR if a fatal
 * signal arrived while waiting for the lock.
 */
int procmap_lock_vmas(struct vma_walk *walk)
{
	if (!walk->mm || !mmget_not_zero(walk->mm))
		return -ESRCH;
	walk->left = VMAS_PER_HOLD;
	if (lock_walk(walk)) {
		mmput(walk->mm);
		return -EINTR;
	}
	vma_iter_init(&walk->vmi, walk->mm, walk->pos);
	return 0;
}

/**
 * procmap_unlock_vmas - undo procmap_lock_vmas()
 * @walk: the walk.
 *
 * If the users of the address space have gone meanwhile, this tears it down, as in
 * the base's own readers of maps: that may wait for the server of a FUSE file that
 * was mapped. A work must not do it: what a kernel thread drops is released by the
 * one work of delayed_fput(), which would wait, for all.
 */
void procmap_unlock_vmas(struct vma_walk *walk)
{
	unlock_walk(walk);
	mmput(walk->mm);
}

/**
 * procmap_next_vma - find the next VMA that passes the filter
 * @walk: the walk. The VMAs are locked.
 *
 * @pos advances past the VMAs that do not pass, or to @end behind the last VMA.
 * It does not advance past the VMA returned: the caller does that when it is
 * done with it.
 *
 * Return: the VMA, which stays locked until procmap_unlock_vmas() or the next call;
 * or NULL if there is none, or because as many VMAs have been looked at as one hold
 * allows, or for a writer; @pos is below @end in the last two cases. After NULL, the
 * locks have to be dropped.
 */
struct vm_area_struct *procmap_next_vma(struct vma_walk *walk)
{
	struct vm_area_struct *vma;

	/* A 32-bit kernel has no mappings there. */
	if (walk->pos > ULONG_MAX)
		walk->pos = walk->end;
	if (!begin_search(walk))
		return NULL;

	for (; walk->left; walk->left--) {
		vma = walk->pos < walk->end ? next_vma(walk) : NULL;
		if (IS_ERR(vma))
			return NULL;
		if (!vma || vma->vm_start >= walk->end) {
			walk->pos = walk->end;
			return NULL;
		}
		if (passes(walk, vma)) {
			walk->left--;
			return vma;
		}
		walk->pos = vma->vm_end;
	}
	return NULL;
}

/**
 * procmap_copy_name - copy the name of a VMA, unless it is a path
 * @walk: the walk that found the VMA.
 * @vma: the VMA. It is locked.
 * @buffer: set to the special name.
 * @path: set to the path that is the name, or to NULL. It is valid as long as
 *	a reference on the VMA's file is held.
 *
 * Nothing is allocated or formatted.
 *
 * Return: size of the special name in bytes, with its NUL; 0 if there is none;
 * -ENAMETOOLONG if it does not fit; or -EAGAIN if the locks have to be dropped, and
 * the walk goes on with this VMA.
 */
int procmap_copy_name(struct vma_walk *walk, struct vm_area_struct *vma,
		      char buffer[SHORT_NAME_SIZE], const struct path **path)
{
	struct vma_name name;
	int len;

	if (!get_name(walk, vma, &name))
		return -EAGAIN;
	*path = name.path;
	if (!name.text)
		return 0;
	if (name.format)
		len = snprintf(buffer, SHORT_NAME_SIZE, name.format, name.text);
	else
		len = strscpy(buffer, name.text, SHORT_NAME_SIZE);
	return len >= 0 && len < SHORT_NAME_SIZE ? len + 1 : -ENAMETOOLONG;
}

static void put_by_work(struct work_struct *work)
{
	struct put_work *put = container_of(work, struct put_work, work);

	__fput_sync(put->file);
	kfree(put);
	module_put(THIS_MODULE);
}

/* May the release of a file wait for a process that never answers? */
static bool may_hang(const struct file *file)
{
	return proc_file_may_hang(file) || proc_file_is_stacked(file);
}

/*
 * If the target has unmapped and closed the file meanwhile, this reference is the
 * last. fput() releases the file before the caller returns to user space, which is late
 * if copying to its memory blocks, as in mainline's query. On FUSE, or an overlay with a
 * layer there, the release may wait for ever. Then a work does it. If as many wait as the
 * queue runs at a time, the others wait in the queue, also for files of other users: those
 * are released late, but no reader waits. No other files are released there.
 *
 * Returns whether the caller has to return to user space for the file to be released.
 */
static bool put_file(struct file *file)
{
	struct put_work *put;

	if (atomic_long_add_unless(&file->f_count, -1, 1))
		return false;
	if (!may_hang(file)) {
		fput(file);
		return true;
	}
	put = kmalloc(sizeof(*put), GFP_KERNEL | __GFP_NOFAIL);
	put->file = file;
	/* Or its exit would wait for the work. The caller's maps file holds one. */
	__module_get(THIS_MODULE);
	INIT_WORK(&put->work, put_by_work);
	queue_work(procmap_put_queue, &put->work);
	return false;
}

/*
 * May, and should, the last reference be dropped here, or by a work? A file of whose
 * inode something was ever locked may have a lock or a lease that it ends.
 */
static bool is_released_at_once(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	return may_hang(file) ||
	       (S_ISREG(inode->i_mode) && !(file->f_mode & FMODE_WRITE) &&
		!READ_ONCE(inode->i_flctx));
}

/**
 * procmap_get_file - get what is needed of the file of a VMA
 * @need: set to it.
 * @file: the file. Its VMA is locked.
 * @path: the path of @file that is the name, or NULL if that is not needed.
 * @is_read: the file is looked at for its build ID.
 *
 * The last reference on the path of a FUSE file may wait for the server, too, and
 * only that on a file is dropped by a work.
 */
void procmap_get_file(struct procmap_file *need, struct file *file,
		      const struct path *path, bool is_read)
{
	need->file = NULL;
	need->path = (struct path) {};
	if (path)
		need->path = *path;
	if ((path && is_released_at_once(file)) ||
	    (is_read && proc_file_has_pages(file)))
		need->file = get_file(file);
	else if (path)
		path_get(path);
}

/**
 * procmap_put_file - put what procmap_get_file() got
 * @need: it. No lock is held. May sleep.
 *
 * Return: true if that was the last reference on a file, which is released when the
 * caller returns to user space.
 */
bool procmap_put_file(const struct procmap_file *need)
{
	if (need->file)
		return put_file(need->file);
	if (need->path.mnt)
		path_put(&need->path);
	return false;
}

/**
 * procmap_copy_arg - copy in a structure whose first member, a u64, is its size
 * @arg: set to the structure. Bytes past the user's size are set to zero.
 * @size: size of the structure that the kernel knows, in bytes.
 * @size_min: smallest user size accepted, in bytes. The largest is a page.
 * @uarg: the user's structure. No byte past the user's size is touched.
 *
 * May fault, so no lock is held.
 *
 * Return: 0; -E2BIG if the user's size is larger than a page, or if a byte past
 * @size is not zero; -EINVAL if it is smaller than @size_min; or -EFAULT.
 */
int procmap_copy_arg(void *arg, size_t size, size_t size_min,
		     const void __user *uarg)
{
	u64 user_size;
	int err;

	if (get_user(user_size, (const u64 __user *)uarg))
		return -EFAULT;
	if (user_size > PAGE_SIZE)
		return -E2BIG;
	if (user_size < size_min)
		return -EINVAL;
	err = copy_struct_from_user(arg, size, uarg, user_size);
	/* The user may have changed it since it was checked. */
	*(u64 *)arg = user_size;
	return err;
}
