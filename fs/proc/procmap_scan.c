// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_SCAN: copy the VMAs in a range of addresses to an array.
 *
 * A scan proceeds in chunks, and each chunk in three steps:
 *
 * - collect_vmas() locks the VMAs and walks a bounded number of them. It copies
 *   their fields and special names, and takes references on their files.
 * - emit_records() runs without the lock. It formats paths, looks for build IDs
 *   in resident pages, and drops the references.
 * - copy_chunk_out() copies the chunk to the caller. That may block
 *   indefinitely, so no reference is held.
 *
 * A file that has to be read for its build ID ends the chunk before its VMA. The
 * next chunk is that VMA alone, so that only its file is held while the read may
 * block. Each chunk starts at the address where the one before it ended, with
 * whatever is mapped there by then.
 */
#include <linux/build_bug.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/path.h>
#include <linux/procmap_query.h>
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

/* struct vma_copy has the permissions of both ioctls. */
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
 * @room: VMAs that the chunk may have. If that is one, its file may be read.
 * @nr: number of VMAs, and of records, of the chunk.
 * @data_used: bytes used of @data.
 * @chunk_end: the address up to which the chunk covers the range.
 * @vmas: the VMAs. Their files are owned from collect_vmas() to the end of
 *	emit_records().
 * @records: what goes to the caller's array.
 * @specials: the special names of @vmas.
 * @data: what goes to the caller's data.
 */
struct scan {
	struct procmap_scan_arg arg;
	struct vma_walk walk;
	u32 nr_copied;
	u32 room;
	u32 nr;
	u32 data_used;
	u64 chunk_end;
	struct vma_copy vmas[VMAS_PER_HOLD];
	struct procmap_vma records[VMAS_PER_HOLD];
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
	struct vma_walk walk = scan->walk;
	struct vm_area_struct *vma;
	u32 specials_used = 0;
	int err;

	err = procmap_lock_vmas(&walk);
	if (err)
		return err;

	scan->nr = 0;
	scan->room = min(scan->room, scan->arg.vec_len - scan->nr_copied);
	while (scan->nr < scan->room &&
	       SPECIALS_SIZE - specials_used >= SHORT_NAME_SIZE) {
		struct vma_copy *copy = &scan->vmas[scan->nr];

		vma = procmap_next_vma(&walk);
		if (!vma)
			break;
		procmap_copy_vma(copy, vma,
				 scan->arg.want & PROCMAP_SCAN_NAMES,
				 scan->arg.want & PROCMAP_SCAN_BUILD_IDS,
				 scan->specials + specials_used);
		if (copy->name_size > 0)
			specials_used += copy->name_size;
		walk.pos = copy->end;
		scan->nr++;
	}
	scan->chunk_end = min(walk.pos, walk.end);

	procmap_unlock_vmas(&walk);
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
static int emit_name(struct scan *scan, const struct vma_copy *vma,
		     struct procmap_vma *record)
{
	const u32 room = DATA_SIZE - BUILD_ID_SIZE_MAX - scan->data_used;
	char *buffer = scan->data + scan->data_used;
	const char *name = vma->name;
	int size = vma->name_size;

	if (vma->path) {
		name = d_path(vma->path, buffer, room);
		if (IS_ERR(name) && room < PATH_MAX)
			return -EAGAIN;
		/* d_path() writes to the end of the buffer. */
		size = IS_ERR(name) ? PTR_ERR(name) : buffer + room - name;
	}
	if (size < 0) {
		record->flags |= PROCMAP_VMA_NAME_TOO_LONG;
	} else if (size) {
		record->name_offset = emit_bytes(scan, name, size);
		record->name_size = size;
	}
	return 0;
}

/* Emit the build ID. Returns 0, or -EAGAIN if the file has to be read for it. */
static int emit_build_id(struct scan *scan, const struct vma_copy *vma,
			 struct procmap_vma *record)
{
	u8 id[BUILD_ID_SIZE_MAX];
	const int size = proc_build_id(vma->file, id, scan->room == 1);

	if (size < 0) {
		scan->room = 1;
		return size;
	}
	if (size) {
		record->build_id_offset = emit_bytes(scan, id, size);
		record->build_id_size = size;
	}
	return 0;
}

/* Have two VMAs the same name and build ID? Their files are owned. */
static bool is_same_file(const struct vma_copy *a, const struct vma_copy *b)
{
	return a->file->f_mapping == b->file->f_mapping && !a->path == !b->path &&
	       (!a->path || path_equal(a->path, b->path));
}

/**
 * emit_record - make the record of one VMA
 * @scan: the scan.
 * @i: index of the VMA and of its record.
 * @prev: index of the last VMA before it that owns a file, or @i.
 *
 * A library has four or five VMAs in a row: they share name and build ID. May
 * sleep, see proc_build_id().
 *
 * Return: 0; -EAGAIN if the chunk has to end before it; or -ENOSPC if the
 * caller's buffer has no room for its name and build ID.
 */
static int emit_record(struct scan *scan, u32 i, u32 prev)
{
	const struct vma_copy *vma = &scan->vmas[i];
	struct procmap_vma *record = &scan->records[i];
	int err = 0;

	if (DATA_SIZE - scan->data_used < SHORT_NAME_SIZE + BUILD_ID_SIZE_MAX)
		return -EAGAIN;
	*record = (struct procmap_vma) {
		.start = vma->start,
		.end = vma->end,
		.flags = vma->permissions,
		.page_size = vma->page_size,
		.offset = vma->offset,
		.inode = vma->inode,
		.dev_major = vma->dev_major,
		.dev_minor = vma->dev_minor,
	};
	if (vma->has_file)
		record->flags |= PROCMAP_VMA_FILE_BACKED;

	if (prev != i && vma->file && is_same_file(vma, &scan->vmas[prev])) {
		const struct procmap_vma *same = &scan->records[prev];

		record->flags |= same->flags & PROCMAP_VMA_NAME_TOO_LONG;
		record->name_offset = same->name_offset;
		record->name_size = same->name_size;
		record->build_id_offset = same->build_id_offset;
		record->build_id_size = same->build_id_size;
		return 0;
	}
	if (vma->path || vma->name_size)
		err = emit_name(scan, vma, record);
	if (!err && vma->file && (scan->arg.want & PROCMAP_SCAN_BUILD_IDS))
		err = emit_build_id(scan, vma, record);
	if (!err && scan->data_used > scan->arg.data_size - scan->arg.data_used)
		err = -ENOSPC;
	return err;
}

/*
 * Make the records of the chunk, which is cut before the first VMA that fails,
 * and drop the references on files. Returns 0, or -ENOSPC if that cut it. May
 * sleep; no lock is held.
 */
static int emit_records(struct scan *scan)
{
	const u32 nr = scan->nr;
	u32 i, begin = 0, prev = 0;
	int err = 0;

	scan->data_used = 0;
	for (i = 0; i < nr && !err; i++) {
		begin = scan->data_used;
		err = emit_record(scan, i, scan->vmas[prev].file ? prev : i);
		if (scan->vmas[i].file)
			prev = i;
	}
	if (!err) {
		/* More files may have to be read: do not begin with all again. */
		scan->room = min(2 * scan->room, VMAS_PER_HOLD);
	} else {
		scan->nr = --i;
		scan->chunk_end = i ? scan->vmas[i - 1].end : scan->walk.pos;
		if (err == -ENOSPC)
			scan->arg.data_needed = scan->data_used - begin;
		scan->data_used = begin;
	}
	for (i = 0; i < nr; i++)
		procmap_put_file(scan->vmas[i].file);
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

/* Any signal ends the scan between two chunks: the caller continues it. */
static int scan_chunks(struct scan *scan)
{
	int err = 0;

	while (!err && scan->walk.pos < scan->walk.end &&
	       scan->nr_copied < scan->arg.vec_len) {
		if (scan->walk.pos != scan->arg.start && signal_pending(current))
			return -EINTR;
		cond_resched();
		err = scan_chunk(scan);
	}
	return err;
}

long procmap_scan(struct mm_struct *mm, struct procmap_scan_arg __user *uarg)
{
	struct procmap_scan_arg arg;
	struct scan *scan;
	long ret;

	ret = copy_arg_in(&arg, uarg);
	if (ret)
		return ret;
	/* All that a call allocates. */
	scan = kvmalloc(sizeof(*scan), GFP_KERNEL_ACCOUNT);
	if (!scan)
		return -ENOMEM;

	arg.data_used = 0;
	arg.data_needed = 0;
	/* This base does not count the changes of an address space. */
	arg.generation = 0;
	arg.flags = 0;
	scan->arg = arg;
	scan->walk = (struct vma_walk) {
		.mm = mm,
		.pos = arg.start,
		.end = arg.end,
		.permissions = arg.filter & PERMISSIONS,
		.file_backed = arg.filter & PROCMAP_VMA_FILE_BACKED,
	};
	scan->nr_copied = 0;
	scan->room = VMAS_PER_HOLD;

	ret = scan_chunks(scan);
	scan->arg.walk_end = scan->walk.pos;
	/* -EFAULT is returned even if records have been copied out before. */
	if (ret != -EFAULT) {
		if (scan->nr_copied)
			ret = scan->nr_copied;
		if (copy_to_user(uarg, &scan->arg,
				 min_t(u64, arg.size, sizeof(arg))))
			ret = -EFAULT;
	}
	kvfree(scan);
	return ret;
}
