// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_SCAN: copy the VMAs in a range of addresses to an array.
 *
 * A scan proceeds in chunks. The fields and special names of the VMAs of a chunk are
 * copied while they are locked. After that, paths are formatted and build IDs looked for
 * in resident pages, with references on the files. Copying to the caller may block for
 * ever, so no reference to the target is owned there. Each chunk starts at the address
 * where the one before it ended, with the mappings of that time.
 */
#include <linux/file.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "build_id.h"
#include "procmap_scan.h"
#include "procmap_walk.h"

#define KNOWN_FILTERS	(PROCMAP_PERMISSIONS | PROCMAP_VMA_FILE_BACKED)
#define KNOWN_WANTS	(PROCMAP_SCAN_NAMES | PROCMAP_SCAN_BUILD_IDS)

/* This is the first version of the ABI: no caller's structure is smaller. */
static_assert(sizeof(struct procmap_scan_arg) == 104);
static_assert(sizeof(struct procmap_vma) == 72);

#define RECORDS_PER_CHUNK	32U

/* All that a call allocates. */
#define SCAN_SIZE	8192
#define DATA_SIZE	(SCAN_SIZE - sizeof(struct scan))

/**
 * struct scan - progress of one PROCMAP_SCAN, and its current chunk
 * @arg: the arguments, copied in and checked; its outputs are kept up to date.
 * @walk: the walk.
 * @nr_copied: records copied out.
 * @nr_likely: number of records that are likely to fit into a chunk.
 * @nr: number of records of the chunk.
 * @data_used: bytes used of @data.
 * @records: the records, to be copied to the caller's array.
 * @files: the file of each record that needs it, or NULL. Records in a row with the
 *	same file share a reference, which is dropped with the last of them.
 * @paths: the path of the file that is the name of each record, or NULL.
 * @data: bytes to be copied to the caller's data, DATA_SIZE: special names first.
 */
struct scan {
	struct procmap_scan_arg arg;
	struct procmap_walk walk;
	u32 nr_copied;
	u32 nr_likely;
	u32 nr;
	u32 data_used;
	struct procmap_vma records[RECORDS_PER_CHUNK];
	struct file *files[RECORDS_PER_CHUNK];
	const struct path *paths[RECORDS_PER_CHUNK];
	char data[];
};

/* The longest name and build ID of one VMA fit. */
static_assert(sizeof(struct scan) + PATH_MAX + BUILD_ID_SIZE_MAX <= SCAN_SIZE);

/* Copy in and check the arguments, in the order that the ABI documents. */
static int scan_copy_arg_in(struct procmap_scan_arg *arg,
			    const struct procmap_scan_arg __user *uarg)
{
	const int err = procmap_copy_arg(arg, sizeof(*arg), sizeof(*arg), uarg);

	if (err)
		return err;
	if (arg->filter & ~(u64)KNOWN_FILTERS || arg->want & ~(u64)KNOWN_WANTS)
		return -EINVAL;
	if (!PAGE_ALIGNED(arg->start) || arg->end < arg->start)
		return -EINVAL;
	if (!arg->vec || !IS_ALIGNED(arg->vec, sizeof(u64)) ||
	    !arg->vec_len || arg->vec_len > INT_MAX)
		return -EINVAL;
	if (arg->vma_size < sizeof(struct procmap_vma) ||
	    arg->vma_size > PAGE_SIZE || !IS_ALIGNED(arg->vma_size, sizeof(u64)))
		return -EINVAL;
	return !arg->data != !arg->data_size ? -EINVAL : 0;
}

/* Add the record of a VMA, without path and build ID, to the chunk. */
static void scan_add_vma(struct scan *scan, struct vm_area_struct *vma)
{
	const u64 want = scan->arg.want;
	const u32 i = scan->nr++;
	struct procmap_vma *record = &scan->records[i];
	struct file *file = vma->vm_file;
	int size = 0;

	procmap_vma_assert_locked(vma);
	record->start = vma->vm_start;
	record->end = vma->vm_end;
	record->flags = procmap_vma_permissions(vma);
	if (file)
		record->flags |= PROCMAP_VMA_FILE_BACKED;
	record->page_size = procmap_vma_page_size(vma);
	procmap_file_fields(vma, &record->offset, &record->inode,
			    &record->dev_major, &record->dev_minor);
	record->build_id_offset = 0;
	record->build_id_size = 0;

	scan->paths[i] = NULL;
	if (want & PROCMAP_SCAN_NAMES)
		size = procmap_copy_name(vma, scan->data + scan->data_used,
					 &scan->paths[i]);
	if (size < 0) {
		record->flags |= PROCMAP_VMA_NAME_TOO_LONG;
		size = 0;
	}
	record->name_offset = scan->arg.data_used + scan->data_used;
	record->name_size = size;
	scan->data_used += size;

	scan->files[i] = NULL;
	if (file && (scan->paths[i] || want & PROCMAP_SCAN_BUILD_IDS)) {
		scan->files[i] = file;
		if (!i || scan->files[i - 1] != file)
			get_file(file);
	}
}

/*
 * Copy the next VMAs, at most @max, to the chunk. Return 0, -ESRCH if the address space
 * is gone, or -EINTR if a fatal signal arrived while waiting for the lock.
 */
static int scan_collect(struct scan *scan, u32 max)
{
	struct vm_area_struct *vma;
	int err;

	scan->nr = 0;
	scan->data_used = 0;
	err = procmap_walk_lock(&scan->walk);
	if (err)
		return err;
	while (scan->nr < max &&
	       DATA_SIZE - scan->data_used >= SHORT_NAME_SIZE) {
		vma = procmap_walk_next(&scan->walk);
		if (!vma)
			break;
		scan_add_vma(scan, vma);
	}
	procmap_walk_unlock(&scan->walk);
	procmap_assert_unlocked(&scan->walk);
	return 0;
}

/* Complete the name of a record by its path. Return false if the chunk has no room. */
static bool scan_add_path(struct scan *scan, struct procmap_vma *record,
			  const struct path *path)
{
	const u32 room = min_t(u32, DATA_SIZE - scan->data_used, PATH_MAX);
	char *buffer = scan->data + scan->data_used;
	char *name = d_path(path, buffer, room);

	if (IS_ERR(name)) {
		record->flags |= PROCMAP_VMA_NAME_TOO_LONG;
		return room == PATH_MAX;
	}
	/* d_path() writes to the end of the buffer. */
	record->name_size = buffer + room - name;
	record->name_offset = scan->arg.data_used + scan->data_used;
	memmove(buffer, name, record->name_size);
	scan->data_used += record->name_size;
	return true;
}

/* Complete the build ID of a record. Return false if the chunk has no room. */
static bool scan_add_build_id(struct scan *scan, struct procmap_vma *record,
			      struct file *file)
{
	int size;

	if (DATA_SIZE - scan->data_used < BUILD_ID_SIZE_MAX)
		return false;
	size = proc_build_id(file, scan->data + scan->data_used, false);
	if (size < 0)
		record->flags |= PROCMAP_VMA_BUILD_ID_NOT_READ;
	if (size <= 0)
		return true;
	record->build_id_size = size;
	record->build_id_offset = scan->arg.data_used + scan->data_used;
	scan->data_used += size;
	return true;
}

/* Complete record @i with path and build ID. Return false if the chunk has no room. */
static bool scan_complete(struct scan *scan, u32 i)
{
	struct procmap_vma *record = &scan->records[i];
	const struct procmap_vma *same = record - 1;
	struct file *file = scan->files[i];

	if (!file)
		return true;
	/* A library has four or five VMAs in a row. */
	if (i && file == scan->files[i - 1] && !record->name_size &&
	    scan->paths[i] == scan->paths[i - 1]) {
		record->flags |= same->flags & (PROCMAP_VMA_NAME_TOO_LONG |
						PROCMAP_VMA_BUILD_ID_NOT_READ);
		record->name_offset = same->name_offset;
		record->name_size = same->name_size;
		record->build_id_offset = same->build_id_offset;
		record->build_id_size = same->build_id_size;
		return true;
	}
	if (scan->paths[i] && !scan_add_path(scan, record, scan->paths[i]))
		return false;
	return !(scan->arg.want & PROCMAP_SCAN_BUILD_IDS) ||
	       scan_add_build_id(scan, record, file);
}

/*
 * Complete the records of the chunk, and drop the references on files. Return the number
 * of records that fit into the chunk and into the caller's data. Unless it is 0, the data
 * is that of these records, with the special names of the other ones.
 */
static u32 scan_complete_all(struct scan *scan)
{
	const u32 room = scan->arg.data_size - scan->arg.data_used;
	u32 i, nr = 0, used = 0;

	for (i = 0; i < scan->nr; i++) {
		if (nr == i && scan_complete(scan, i) && scan->data_used <= room) {
			used = scan->data_used;
			nr++;
		}
		if (scan->files[i] && (i + 1 == scan->nr ||
				       scan->files[i + 1] != scan->files[i]))
			fput(scan->files[i]);
	}
	if (nr)
		scan->data_used = used;
	return nr;
}

/* Keep the first @nr records of the chunk, which fit, and go on behind them. */
static void scan_keep(struct scan *scan, u32 nr)
{
	if (nr < scan->nr)
		scan->walk.pos = scan->records[nr - 1].end;
	scan->nr = nr;
	scan->nr_likely = RECORDS_PER_CHUNK;
	if (scan->data_used)
		scan->nr_likely = clamp_t(u32, DATA_SIZE * nr / scan->data_used, 1,
					  RECORDS_PER_CHUNK);
}

static int scan_copy_out(const struct scan *scan)
{
	const u32 size = scan->arg.vma_size;
	const u32 known = sizeof(*scan->records);
	char __user *data = u64_to_user_ptr(scan->arg.data);
	char __user *vec = u64_to_user_ptr(scan->arg.vec);
	u32 i;

	data += scan->arg.data_used;
	vec += (u64)scan->nr_copied * size;
	if (copy_to_user(data, scan->data, scan->data_used))
		return -EFAULT;
	if (size == known)
		return copy_to_user(vec, scan->records, scan->nr * size) ?
		       -EFAULT : 0;
	for (i = 0; i < scan->nr; i++, vec += size)
		if (copy_to_user(vec, &scan->records[i], known) ||
		    clear_user(vec + known, size - known))
			return -EFAULT;
	return 0;
}

/*
 * Scan one chunk. If not even its first record fits, collect that one alone, without the
 * special names of others. If that does not fit, return -ENOSPC.
 */
static int scan_chunk(struct scan *scan)
{
	const u64 pos = scan->walk.pos;
	u32 max = min(scan->nr_likely, scan->arg.vec_len - scan->nr_copied);
	u32 nr;
	int err;

	/* Any signal ends a scan that has moved, and a fatal one ends every scan. */
	if (pos == scan->arg.start ?
	    fatal_signal_pending(current) : signal_pending(current))
		return -EINTR;
	cond_resched();
	for (;;) {
		err = scan_collect(scan, max);
		if (err)
			return err;
		nr = scan_complete_all(scan);
		if (nr || !scan->nr)
			break;
		scan->walk.pos = pos;
		if (scan->nr == 1) {
			scan->arg.data_needed = scan->data_used;
			return -ENOSPC;
		}
		max = 1;
	}
	if (nr)
		scan_keep(scan, nr);
	err = scan_copy_out(scan);
	if (err)
		return err;
	scan->nr_copied += scan->nr;
	scan->arg.data_used += scan->data_used;
	return 0;
}

/*
 * Get a number that changes whenever the address space does; 0 if there is none, if the
 * address space has no users left, or while a writer is at work. It comes back after 2^31
 * writers.
 */
static u64 scan_generation(const struct mm_struct *mm)
{
	unsigned int seq;

	if (!mm || !atomic_read(&mm->mm_users))
		return 0;
	seq = procmap_lock_seq(mm);
	return seq & 1 ? 0 : seq;
}

long procmap_scan(struct mm_struct *mm, struct procmap_scan_arg __user *uarg)
{
	struct procmap_scan_arg arg __uninitialized;
	struct scan *scan;
	long ret;

	ret = scan_copy_arg_in(&arg, uarg);
	if (ret)
		return ret;
	arg.walk_end = arg.end;
	arg.data_used = 0;
	arg.data_needed = 0;
	arg.flags = PROC_BUILD_ID_IS_QUERYS ? PROCMAP_SCAN_QUERY_IS_BOUNDED : 0;
	arg.generation = scan_generation(mm);
	if (arg.generation && arg.generation == arg.known_generation)
		return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;

	scan = kmalloc(SCAN_SIZE, GFP_KERNEL_ACCOUNT);
	if (!scan)
		return -ENOMEM;
	scan->arg = arg;
	procmap_walk_init(&scan->walk, mm, arg.start, arg.end,
			  arg.filter & PROCMAP_PERMISSIONS,
			  arg.filter & PROCMAP_VMA_FILE_BACKED);
	scan->nr_copied = 0;
	scan->nr_likely = RECORDS_PER_CHUNK;

	ret = 0;
	while (!ret && scan->walk.pos < scan->walk.end &&
	       scan->nr_copied < arg.vec_len)
		ret = scan_chunk(scan);
	scan->arg.walk_end = min(scan->walk.pos, scan->walk.end);
	/* mmput() in procmap_walk_unlock() orders this after the reads of the VMAs. */
	if (arg.generation && arg.generation != scan_generation(mm))
		scan->arg.flags |= PROCMAP_SCAN_CHANGED;
	/* -EFAULT is returned even if records have been copied out before. */
	if (ret != -EFAULT && scan->nr_copied)
		ret = scan->nr_copied;
	if (copy_to_user(uarg, &scan->arg, sizeof(scan->arg)))
		ret = -EFAULT;
	kfree(scan);
	return ret;
}
