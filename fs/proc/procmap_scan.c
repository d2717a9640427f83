// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_SCAN: copy the VMAs in a range of addresses to an array.
 *
 * A scan proceeds in chunks, and each chunk in three steps:
 *
 * - collect_vmas() locks the VMAs and walks a bounded number of them. It copies
 *   their fields and special names to records, and takes references on their
 *   files.
 * - emit_records() runs without the lock. It formats paths, looks for build IDs
 *   in resident pages, and drops the references.
 * - copy_chunk_out() copies the chunk to the caller. That may block
 *   indefinitely, so no reference is held.
 *
 * A file that has to be read for its build ID ends the chunk before its VMA. The
 * next chunk has no other file, so that only this one is held while the read may
 * block. Each chunk starts at the address where the one before it ended, with
 * whatever is mapped there by then.
 */
#include <linux/build_bug.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "build_id.h"
#include "procmap_scan.h"
#include "procmap_vma.h"

#define PERMISSIONS	(PROCMAP_VMA_READABLE | PROCMAP_VMA_WRITABLE | \
			 PROCMAP_VMA_EXECUTABLE | PROCMAP_VMA_SHARED)
#define KNOWN_FILTERS	(PERMISSIONS | PROCMAP_VMA_FILE_BACKED)
#define KNOWN_WANTS	(PROCMAP_SCAN_NAMES | PROCMAP_SCAN_BUILD_IDS)

/* The two ioctls report the same permissions. */
static_assert((int)PROCMAP_VMA_READABLE == PROCMAP_QUERY_VMA_READABLE);
static_assert((int)PROCMAP_VMA_WRITABLE == PROCMAP_QUERY_VMA_WRITABLE);
static_assert((int)PROCMAP_VMA_EXECUTABLE == PROCMAP_QUERY_VMA_EXECUTABLE);
static_assert((int)PROCMAP_VMA_SHARED == PROCMAP_QUERY_VMA_SHARED);

/* Sizes of the structures in the first version of the ABI, in bytes. */
#define ARG_SIZE_MIN	104
#define VMA_SIZE_MIN	72

/* Bytes for the special names of one chunk; if they run out, the chunk ends. */
#define SPECIALS_SIZE	1280

/* Bytes for names and build IDs: enough for the longest of one VMA. */
#define DATA_SIZE	(PATH_MAX + BUILD_ID_SIZE_MAX)

/**
 * struct scan - progress of one PROCMAP_SCAN, and its current chunk
 * @arg: the arguments, copied in and checked; its outputs are kept up to date.
 * @walk: the walk; its position is where the next chunk starts.
 * @nr_copied: records copied out.
 * @files_max: files that the chunk may have. If that is one, it may be read.
 * @has_work: the caller releases a file when it returns to user space.
 * @nr: number of records of the chunk.
 * @nr_files: number of files of the chunk.
 * @specials_used: bytes used of @specials.
 * @data_used: bytes used of @data.
 * @chunk_end: the address up to which the chunk covers the range.
 * @records: what goes to the caller's array. From collect_vmas(), the name is a
 *	special one, and its offset that in @specials.
 * @file_of: the file that each record needs, or NULL. VMAs in a row share one.
 * @files: what is needed of the files, in the order of the records. The references
 *	are owned from collect_vmas() to the end of emit_records().
 * @specials: the special names.
 * @data: what goes to the caller's data.
 */
struct scan {
	struct procmap_scan_arg arg;
	struct vma_walk walk;
	u32 nr_copied;
	u32 files_max;
	bool has_work;
	u32 nr;
	u32 nr_files;
	u32 specials_used;
	u32 data_used;
	u64 chunk_end;
	struct procmap_vma records[VMAS_PER_HOLD];
	const struct procmap_file *file_of[VMAS_PER_HOLD];
	struct procmap_file files[VMAS_PER_HOLD];
	char specials[SPECIALS_SIZE];
	char data[DATA_SIZE];
};

/* Copy in and check the arguments, in the order that the ABI documents. */
static int copy_arg_in(struct procmap_scan_arg *arg,
		       const struct procmap_scan_arg __user *uarg)
{
	const int err = procmap_copy_arg(arg, sizeof(*arg), ARG_SIZE_MIN, uarg);

	if (err)
		return err;
	if (arg->filter & ~(u64)KNOWN_FILTERS || arg->want & ~(u64)KNOWN_WANTS)
		return -EINVAL;
	if (!PAGE_ALIGNED(arg->start) || arg->end < arg->start)
		return -EINVAL;
	if (!arg->vec || !IS_ALIGNED(arg->vec, sizeof(u64)) ||
	    !arg->vec_len || arg->vec_len > INT_MAX)
		return -EINVAL;
	if (arg->vma_size < VMA_SIZE_MIN || arg->vma_size > PAGE_SIZE ||
	    !IS_ALIGNED(arg->vma_size, sizeof(u64)))
		return -EINVAL;
	return !arg->data != !arg->data_size ? -EINVAL : 0;
}

/* Is that what is needed of the file? References keep both from being reused. */
static bool is_needed(const struct procmap_file *need, const struct file *file,
		      const struct path *path)
{
	if (need->file ? need->file != file : !path)
		return false;
	return path ? path_equal(&need->path, path) : !need->path.mnt;
}

/*
 * Get what is needed of the file of a VMA, which is locked. A library has four or
 * five VMAs in a row: they share one reference. Returns NULL if the chunk has no
 * room for it.
 */
static const struct procmap_file *collect_file(struct scan *scan,
					       struct file *file,
					       const struct path *path)
{
	struct procmap_file *entry = &scan->files[scan->nr_files];

	if (scan->nr_files && is_needed(entry - 1, file, path))
		return entry - 1;
	if (scan->nr_files == scan->files_max)
		return NULL;
	scan->nr_files++;
	procmap_get_file(entry, file, path,
			 scan->arg.want & PROCMAP_SCAN_BUILD_IDS);
	return entry;
}

/*
 * Make the record of a VMA, which is locked, but for what its file has. Returns
 * false if the chunk has no room for its file, or the walk has to come back to it.
 */
static bool collect_vma(struct scan *scan, struct vma_walk *walk,
			struct vm_area_struct *vma)
{
	struct procmap_vma *record = &scan->records[scan->nr];
	const struct path *path = NULL;
	struct file *file = vma->vm_file;
	int size = 0;

	record->start = vma->vm_start;
	record->end = vma->vm_end;
	record->flags = procmap_vma_permissions(vma);
	record->page_size = vma_kernel_pagesize(vma);
	if (file)
		record->flags |= PROCMAP_VMA_FILE_BACKED;
	procmap_file_fields(vma, &record->offset, &record->inode,
			    &record->dev_major, &record->dev_minor);
	record->name_offset = 0;
	record->name_size = 0;
	record->build_id_offset = 0;
	record->build_id_size = 0;

	if (scan->arg.want & PROCMAP_SCAN_NAMES)
		size = procmap_copy_name(walk, vma, scan->specials +
					 scan->specials_used, &path);
	if (size == -EAGAIN)
		return false;
	if (size < 0) {
		record->flags |= PROCMAP_VMA_NAME_TOO_LONG;
	} else if (size) {
		record->name_offset = scan->specials_used;
		record->name_size = size;
		scan->specials_used += size;
	}

	scan->file_of[scan->nr] = NULL;
	if (file && (path || scan->arg.want & PROCMAP_SCAN_BUILD_IDS)) {
		scan->file_of[scan->nr] = collect_file(scan, file, path);
		if (!scan->file_of[scan->nr])
			return false;
	}
	scan->nr++;
	return true;
}

/**
 * collect_vmas - copy the VMAs of the next chunk
 * @scan: the scan.
 *
 * Takes and drops the lock of the VMAs; may sleep to take it. Nothing is
 * allocated, formatted or read from a file while it is held.
 *
 * Return: 0, -ESRCH if the address space is gone, or -EINTR if a fatal signal
 * arrived while waiting for the lock.
 */
static int collect_vmas(struct scan *scan)
{
	const u32 room = min(VMAS_PER_HOLD, scan->arg.vec_len - scan->nr_copied);
	struct vma_walk walk = scan->walk;
	struct vm_area_struct *vma;
	int err;

	err = procmap_lock_vmas(&walk);
	if (err)
		return err;

	scan->nr = 0;
	scan->nr_files = 0;
	scan->specials_used = 0;
	while (scan->nr < room &&
	       SPECIALS_SIZE - scan->specials_used >= SHORT_NAME_SIZE) {
		vma = procmap_next_vma(&walk);
		if (!vma || !collect_vma(scan, &walk, vma))
			break;
		walk.pos = vma->vm_end;
	}
	scan->chunk_end = min(walk.pos, walk.end);

	procmap_unlock_vmas(&walk);
	/* How it goes on; the position moves when the chunk is copied out. */
	walk.pos = scan->walk.pos;
	scan->walk = walk;
	return 0;
}

/* Append to the data. Returns the offset where the caller finds the bytes. */
static u32 emit_bytes(struct scan *scan, const void *bytes, u32 size)
{
	const u32 offset = scan->arg.data_used + scan->data_used;

	memmove(scan->data + scan->data_used, bytes, size);
	scan->data_used += size;
	return offset;
}

/* Emit the name. Returns 0, or -EAGAIN if the chunk has no room for it. */
static int emit_name(struct scan *scan, struct procmap_vma *record,
		     const struct path *path)
{
	const u32 room = DATA_SIZE - BUILD_ID_SIZE_MAX - scan->data_used;
	char *buffer = scan->data + scan->data_used;
	const char *name = scan->specials + record->name_offset;

	if (path) {
		name = d_path(path, buffer, room);
		if (IS_ERR(name) && room < PATH_MAX)
			return -EAGAIN;
		if (IS_ERR(name)) {
			record->flags |= PROCMAP_VMA_NAME_TOO_LONG;
			return 0;
		}
		/* d_path() writes to the end of the buffer. */
		record->name_size = buffer + room - name;
	}
	record->name_offset = emit_bytes(scan, name, record->name_size);
	return 0;
}

/* Emit the build ID. Returns 0, or -EAGAIN if the file has to be read for it. */
static int emit_build_id(struct scan *scan, struct procmap_vma *record,
			 struct file *file)
{
	u8 id[BUILD_ID_SIZE_MAX];
	const int size = proc_build_id(file, id, scan->files_max == 1);

	if (size < 0) {
		scan->files_max = 1;
		return size;
	}
	if (size) {
		record->build_id_offset = emit_bytes(scan, id, size);
		record->build_id_size = size;
	}
	return 0;
}

/**
 * emit_record - complete the record of one VMA
 * @scan: the scan.
 * @i: index of the record.
 * @prev: index of the last record before it that has a file, or @i.
 *
 * May sleep, see proc_build_id().
 *
 * Return: 0; -EAGAIN if the chunk has to end before it; or -ENOSPC if the
 * caller's buffer has no room for its name and build ID.
 */
static int emit_record(struct scan *scan, u32 i, u32 prev)
{
	struct procmap_vma *record = &scan->records[i];
	const struct procmap_vma *same = &scan->records[prev];
	const struct procmap_file *file = scan->file_of[i];
	const bool is_same = prev != i && file == scan->file_of[prev];
	const struct path *path = file && file->path.mnt ? &file->path : NULL;
	int err = 0;

	if (DATA_SIZE - scan->data_used < SHORT_NAME_SIZE + BUILD_ID_SIZE_MAX)
		return -EAGAIN;
	if (path && is_same) {
		record->flags |= same->flags & PROCMAP_VMA_NAME_TOO_LONG;
		record->name_offset = same->name_offset;
		record->name_size = same->name_size;
	} else if (path || record->name_size) {
		err = emit_name(scan, record, path);
	}
	if (file && is_same) {
		record->build_id_offset = same->build_id_offset;
		record->build_id_size = same->build_id_size;
	} else if (!err && file && file->file &&
		   scan->arg.want & PROCMAP_SCAN_BUILD_IDS) {
		err = emit_build_id(scan, record, file->file);
	}
	if (!err && scan->data_used > scan->arg.data_size - scan->arg.data_used)
		err = -ENOSPC;
	return err;
}

/*
 * Complete the records of the chunk, which is cut before the first one that
 * fails, and drop the references on files. Returns 0, or -ENOSPC if that cut it.
 * May sleep; no lock is held.
 */
static int emit_records(struct scan *scan)
{
	u32 i, begin = 0, prev = 0;
	int err = 0;

	scan->data_used = 0;
	for (i = 0; i < scan->nr; i++) {
		begin = scan->data_used;
		err = emit_record(scan, i, scan->file_of[prev] ? prev : i);
		if (err)
			break;
		if (scan->file_of[i])
			prev = i;
	}
	if (!err) {
		/* More files may have to be read: do not begin with all again. */
		if (scan->nr)
			scan->files_max = min(2 * scan->files_max, VMAS_PER_HOLD);
	} else {
		scan->nr = i;
		scan->chunk_end = i ? scan->records[i - 1].end : scan->walk.pos;
		if (err == -ENOSPC)
			scan->arg.data_needed = scan->data_used - begin;
		scan->data_used = begin;
	}
	for (i = 0; i < scan->nr_files; i++)
		scan->has_work |= procmap_put_file(&scan->files[i]);
	return err == -EAGAIN ? 0 : err;
}

/* May fault, and so block indefinitely. No lock and no reference is held. */
static int copy_chunk_out(const struct scan *scan)
{
	const u32 size = scan->arg.vma_size;
	const u32 known = min_t(u32, size, sizeof(*scan->records));
	char __user *data = u64_to_user_ptr(scan->arg.data);
	char __user *vec = u64_to_user_ptr(scan->arg.vec);
	u32 i;

	data += scan->arg.data_used;
	vec += (u64)scan->nr_copied * size;
	if (copy_to_user(data, scan->data, scan->data_used))
		return -EFAULT;
	if (size == sizeof(*scan->records))
		return copy_to_user(vec, scan->records, scan->nr * size) ?
		       -EFAULT : 0;
	for (i = 0; i < scan->nr; i++, vec += size)
		if (copy_to_user(vec, &scan->records[i], known) ||
		    clear_user(vec + known, size - known))
			return -EFAULT;
	return 0;
}

/* An error that ended the chunk is returned after its records are copied. */
static int scan_chunk(struct scan *scan)
{
	int err, end;

	err = collect_vmas(scan);
	if (err)
		return err;
	end = emit_records(scan);
	err = copy_chunk_out(scan);
	if (err)
		return err;
	scan->walk.pos = scan->chunk_end;
	scan->nr_copied += scan->nr;
	scan->arg.data_used += scan->data_used;
	return end;
}

/*
 * Any signal ends the scan once it has moved: the caller continues it. Before that, a
 * fatal one does. So does work for the return to user space: the release of a file may
 * end a lock, or write access, that others wait for.
 */
static int scan_chunks(struct scan *scan)
{
	int err = 0;

	while (!err && scan->walk.pos < scan->walk.end &&
	       scan->nr_copied < scan->arg.vec_len) {
		if (scan->walk.pos == scan->arg.start ?
		    fatal_signal_pending(current) :
		    signal_pending(current) || scan->has_work)
			return -EINTR;
		cond_resched();
		err = scan_chunk(scan);
	}
	return err;
}

static int copy_arg_out(struct procmap_scan_arg __user *uarg,
			const struct procmap_scan_arg *arg)
{
	/* The user's is not smaller: this is the first version. */
	static_assert(sizeof(*arg) == ARG_SIZE_MIN);
	return copy_to_user(uarg, arg, sizeof(*arg)) ? -EFAULT : 0;
}

long procmap_scan(struct mm_struct *mm, struct procmap_scan_arg __user *uarg)
{
	struct procmap_scan_arg arg;
	struct scan *scan;
	long ret;

	ret = copy_arg_in(&arg, uarg);
	if (ret)
		return ret;
	arg.walk_end = arg.end;
	arg.data_used = 0;
	arg.data_needed = 0;
	arg.flags = 0;
	arg.generation = procmap_generation(mm);
	if (arg.generation && arg.generation == arg.known_generation)
		return copy_arg_out(uarg, &arg);

	/* All that a call allocates. */
	scan = kvmalloc(sizeof(*scan), GFP_KERNEL_ACCOUNT);
	if (!scan)
		return -ENOMEM;
	scan->arg = arg;
	scan->walk = (struct vma_walk) {
		.mm = mm,
		.pos = arg.start,
		.end = arg.end,
		.permissions = arg.filter & PERMISSIONS,
		.file_backed = arg.filter & PROCMAP_VMA_FILE_BACKED,
	};
	scan->nr_copied = 0;
	scan->files_max = VMAS_PER_HOLD;
	scan->has_work = false;

	ret = scan_chunks(scan);
	scan->arg.walk_end = scan->walk.pos;
	/* The VMAs have been read before: procmap_unlock_vmas() ends with mmput(). */
	if (arg.generation && arg.generation != procmap_generation(mm))
		scan->arg.flags |= PROCMAP_SCAN_CHANGED;
	/* -EFAULT is returned even if records have been copied out before. */
	if (ret != -EFAULT) {
		if (scan->nr_copied)
			ret = scan->nr_copied;
		if (copy_arg_out(uarg, &scan->arg))
			ret = -EFAULT;
	}
	kvfree(scan);
	return ret;
}
