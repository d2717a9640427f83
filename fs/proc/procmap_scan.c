// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_SCAN: tell of all VMAs in a range of addresses.
 *
 * A scan goes on chunk by chunk, each in the stages of a PROCMAP_QUERY. Under
 * mmap_lock, a bounded number of VMAs is looked at: their fields and special
 * names are copied, and references taken on their files. With the lock dropped,
 * paths and build IDs are made, once a file, and all is copied out: at first
 * with page faults disabled, so that files can stay remembered for the chunks to
 * come, and if that does not do, with no reference held. The next chunk begins
 * at the address up to which all has been told, with what is mapped there then.
 */
#include <linux/build_bug.h>
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/path.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "build_id.h"
#include "procmap_scan.h"
#include "procmap_vma.h"

#define KNOWN_FLAGS	(PROCMAP_FILTERS | PROCMAP_SCAN_NAMES | \
			 PROCMAP_SCAN_BUILD_IDS)

/* The sizes that the ABI began with, below which there is none. */
#define ARG_SIZE_MIN	72
#define VMA_SIZE_MIN	72

/*
 * A writer waits for so many VMAs at most. More would save little: what a chunk
 * costs by itself is a twentieth of what its VMAs do.
 */
#define CHUNK_VMAS	64

/* Room for special names, of a chunk in which many VMAs have one. */
#define SPECIALS_SIZE	1280

/* Room for a name and a build ID as long as they can be. */
#define DATA_SIZE	(PATH_MAX + SHORT_NAME_SIZE + BUILD_ID_SIZE_MAX)

/* How many files are remembered, in a hash table with room for twice as many. */
#define FILES_BITS	6
#define NR_FILES	BIT(FILES_BITS)
#define NR_SLOTS	(2 * NR_FILES)

static_assert(offsetof(struct procmap_vma, dev_minor) ==
	      offsetof(struct procmap_vma, start) +
	      offsetof(struct vma_fields, dev_minor));

/**
 * struct item - a VMA of which there is more to tell than its fields
 * @record: which one of the chunk it is.
 * @file: its file, referenced, or NULL.
 * @path: the path of @file, if it is the name and is wanted; or NULL.
 */
struct item {
	u32 record;
	struct file *file;
	const struct path *path;
};

/**
 * struct told_file - a file of which all has been told, for other VMAs of it
 * @file: the file, referenced.
 * @path: its path, or NULL if that is not the name or is not wanted.
 * @name_offset: as in a record, like the three that follow.
 * @name_size: ...
 * @build_id_offset: ...
 * @build_id_size: ...
 * @build_id: its build ID.
 */
struct told_file {
	struct file *file;
	const struct path *path;
	u32 name_offset;
	u32 name_size;
	u32 build_id_offset;
	u32 build_id_size;
	u8 build_id[BUILD_ID_SIZE_MAX];
};

/**
 * struct chunk - the VMAs that are looked at in one go, and the files of those
 *	before
 * @end: all below this address has been looked at.
 * @nr: how many VMAs pass the filters.
 * @nr_items: how many of those have more than fields.
 * @specials_used: bytes used of @specials.
 * @data_used: bytes used of @data.
 * @nr_files: files that are remembered.
 * @last: the one of those that has been told last, and 1 more; 0 for none.
 * @slots: a hash table of indices into @files, each 1 more; 0 is free.
 * @files: the files.
 * @lost: the file that had been told last when all were forgotten: it is known
 *	by its name then.
 * @lost_name: its path; of no size if that is not known.
 * @vmas: the records. The offset of a special name is one in @specials at first.
 * @items: those with more than fields.
 * @specials: special names.
 * @data: what goes to the caller's data.
 */
struct chunk {
	u64 end;
	u32 nr;
	u32 nr_items;
	u32 specials_used;
	u32 data_used;
	u32 nr_files;
	u32 last;
	u8 slots[NR_SLOTS];
	struct told_file files[NR_FILES];
	struct told_file lost;
	struct made_name lost_name;
	struct procmap_vma vmas[CHUNK_VMAS];
	struct item items[CHUNK_VMAS];
	char specials[SPECIALS_SIZE];
	char data[DATA_SIZE];
};

/* One call allocates so much. */
static_assert(sizeof(struct chunk) <= SZ_16K);

/**
 * struct scan - how far a scan has come
 * @mm: the address space.
 * @arg: what is wanted.
 * @pos: all below this address has been told.
 * @nr: records that have been copied out.
 * @data_used: bytes of data that have been.
 * @data_needed: bytes of data that the first record needs, if it has no room.
 * @chunk: the VMAs at hand.
 */
struct scan {
	struct mm_struct *mm;
	struct procmap_scan_arg arg;
	u64 pos;
	u32 nr;
	u32 data_used;
	u32 data_needed;
	struct chunk *chunk;
};

static int copy_arg_in(struct procmap_scan_arg *arg,
		       const struct procmap_scan_arg __user *uarg)
{
	const int err = read_struct(arg, sizeof(*arg), ARG_SIZE_MIN, uarg);

	if (err)
		return err;
	if (arg->flags & ~(u64)KNOWN_FLAGS)
		return -EINVAL;
	if (!PAGE_ALIGNED(arg->start) || arg->end < arg->start)
		return -EINVAL;
	if (!arg->vec || !IS_ALIGNED(arg->vec, sizeof(u64)))
		return -EINVAL;
	if (!arg->vec_len || arg->vec_len > INT_MAX)
		return -EINVAL;
	if (arg->vma_size < VMA_SIZE_MIN || arg->vma_size > PAGE_SIZE ||
	    !IS_ALIGNED(arg->vma_size, sizeof(u64)))
		return -EINVAL;
	if (!arg->data != !arg->data_size)
		return -EINVAL;
	return 0;
}

/* Take what there is to tell beside the fields; false if it has no room. */
static bool take_item(struct chunk *chunk, struct vm_area_struct *vma,
		      struct procmap_vma *record, u64 flags)
{
	struct vma_name name;
	struct item *item;

	if (flags & PROCMAP_SCAN_NAMES)
		proc_vma_name(vma, &name);
	else
		name = (struct vma_name) {};
	if (name.text) {
		if (SPECIALS_SIZE - chunk->specials_used < SHORT_NAME_SIZE)
			return false;
		record->name_offset = chunk->specials_used;
		record->name_size = write_special_name(chunk->specials +
						       chunk->specials_used,
						       &name);
		chunk->specials_used += record->name_size;
	}
	if (!name.text && !vma->vm_file)
		return true;

	item = &chunk->items[chunk->nr_items++];
	item->record = chunk->nr;
	item->file = vma->vm_file ? get_file(vma->vm_file) : NULL;
	item->path = name.path;
	return true;
}

/* Returns false if it has no room. */
static bool take_vma(struct chunk *chunk, struct vm_area_struct *vma, u64 flags,
		     u64 pos)
{
	struct procmap_vma *record = &chunk->vmas[chunk->nr];

	fill_fields((struct vma_fields *)record, vma);
	record->name_offset = 0;
	record->name_size = 0;
	record->build_id_offset = 0;
	record->build_id_size = 0;
	if (vma->vm_start < pos) {
		record->start = pos;
		if (vma->vm_file)
			record->offset += pos - vma->vm_start;
	}

	if ((flags & (PROCMAP_SCAN_NAMES | PROCMAP_SCAN_BUILD_IDS)) &&
	    !take_item(chunk, vma, record, flags))
		return false;
	chunk->nr++;
	return true;
}

/* All that happens under the lock. */
static int take_chunk(struct scan *scan)
{
	struct chunk *chunk = scan->chunk;
	const u64 end = scan->arg.end, flags = scan->arg.flags;
	const u32 room = min_t(u32, scan->arg.vec_len - scan->nr, CHUNK_VMAS);
	struct vm_area_struct *vma;
	struct vma_iterator vmi;
	u64 pos = scan->pos;
	u32 looked;
	int err;

	err = lock_vmas(scan->mm);
	if (err)
		return err;

	chunk->nr = 0;
	chunk->nr_items = 0;
	chunk->specials_used = 0;
	vma_iter_init(&vmi, scan->mm, pos);
	for (looked = 0; looked < CHUNK_VMAS; looked++) {
		vma = next_vma(&vmi);
		if (!vma || vma->vm_start >= end) {
			pos = end;
			break;
		}
		if (passes_filters(vma, flags) &&
		    (chunk->nr == room || !take_vma(chunk, vma, flags, pos)))
			break;
		pos = vma->vm_end;
	}
	chunk->end = min(pos, end);

	unlock_vmas(scan->mm);
	return 0;
}

/* Opened once or more than once, a file has one name at one place. */
static bool is_same_file(const struct told_file *told, const struct item *item)
{
	return told->file->f_mapping == item->file->f_mapping &&
	       !told->path == !item->path &&
	       (!item->path || path_equal(told->path, item->path));
}

/* The file, if it is remembered; else NULL, and @slot is for it. */
static struct told_file *find_file(struct chunk *chunk, const struct item *item,
				   u32 *slot)
{
	for (*slot = hash_ptr(item->file->f_mapping, FILES_BITS + 1);
	     chunk->slots[*slot]; *slot = (*slot + 1) % NR_SLOTS) {
		struct told_file *told = &chunk->files[chunk->slots[*slot] - 1];

		if (is_same_file(told, item))
			return told;
	}
	return NULL;
}

static void forget_files(struct chunk *chunk)
{
	while (chunk->nr_files)
		fput(chunk->files[--chunk->nr_files].file);
	chunk->last = 0;
	memset(chunk->slots, 0, sizeof(chunk->slots));
}

/*
 * Give back all references. The VMAs that come next may be of the file that was
 * told last, and shall share its name and build ID: so its path is kept, unless
 * it has changed since.
 */
static void let_go_of_files(struct chunk *chunk)
{
	struct told_file *lost = &chunk->lost;
	struct made_name *name = &chunk->lost_name;

	if (chunk->last) {
		*lost = chunk->files[chunk->last - 1];
		kfree(name->allocated);
		name->allocated = NULL;
		if (!lost->path || make_path(name, lost->path, PATH_MAX) ||
		    name->size != lost->name_size)
			name->size = 0;
	}
	forget_files(chunk);
	finish_dropping_references();
}

/* Add to the caller's data, and tell where the caller will find it. */
static u32 add_data(struct scan *scan, const void *bytes, u32 size)
{
	struct chunk *chunk = scan->chunk;
	const u32 offset = scan->data_used + chunk->data_used;

	memmove(chunk->data + chunk->data_used, bytes, size);
	chunk->data_used += size;
	return offset;
}

static int make_name(struct scan *scan, struct told_file *told)
{
	struct chunk *chunk = scan->chunk;
	const struct made_name *lost = &chunk->lost_name;
	char *buffer = chunk->data + chunk->data_used;
	const u32 left = DATA_SIZE - BUILD_ID_SIZE_MAX - chunk->data_used;
	const u32 size = min_t(u32, left, PATH_MAX);
	const char *name = d_path(told->path, buffer, size);

	if (IS_ERR(name))
		return size < PATH_MAX ? -EAGAIN : PTR_ERR(name);

	/* It stands at the end of the buffer. */
	told->name_size = buffer + size - name;
	told->name_offset = told->name_size == lost->size &&
			    !memcmp(name, lost->text, lost->size) ?
			    chunk->lost.name_offset :
			    add_data(scan, name, told->name_size);
	return 0;
}

static void make_build_id(struct scan *scan, struct told_file *told)
{
	const struct told_file *lost = &scan->chunk->lost;

	told->build_id_size = proc_build_id(told->file, told->build_id);
	if (!told->build_id_size)
		return;
	told->build_id_offset = told->build_id_size == lost->build_id_size &&
				!memcmp(told->build_id, lost->build_id,
					told->build_id_size) ?
				lost->build_id_offset :
				add_data(scan, told->build_id,
					 told->build_id_size);
}

static bool caller_has_room(const struct scan *scan)
{
	return scan->chunk->data_used <= scan->arg.data_size - scan->data_used;
}

/*
 * Make name and build ID of the VMA's file, unless they have been made before.
 * A reference of its own is taken on a file that is remembered.
 */
static int make_file(struct scan *scan, const struct item *item)
{
	struct chunk *chunk = scan->chunk;
	struct procmap_vma *record = &chunk->vmas[item->record];
	struct told_file *told;
	u32 slot;
	int err;

	told = find_file(chunk, item, &slot);
	if (!told) {
		if (chunk->nr_files == NR_FILES) {
			forget_files(chunk);
			find_file(chunk, item, &slot);
		}
		told = &chunk->files[chunk->nr_files];
		*told = (struct told_file) {
			.file = item->file, .path = item->path,
		};
		if (told->path) {
			err = make_name(scan, told);
			if (err)
				return err;
		}
		if (scan->arg.flags & PROCMAP_SCAN_BUILD_IDS)
			make_build_id(scan, told);
		if (!caller_has_room(scan))
			return -ENOSPC;
		get_file(told->file);
		chunk->slots[slot] = ++chunk->nr_files;
	}
	if (item->path) {
		record->name_offset = told->name_offset;
		record->name_size = told->name_size;
	}
	record->build_id_offset = told->build_id_offset;
	record->build_id_size = told->build_id_size;
	chunk->last = told - chunk->files + 1;
	return 0;
}

/*
 * Make all that is to be told of a VMA. Returns 0, -EAGAIN if the chunk has no
 * room for it, -ENOSPC if the caller has none, or -ENAMETOOLONG.
 */
static int make_item(struct scan *scan, const struct item *item)
{
	struct chunk *chunk = scan->chunk;
	struct procmap_vma *record = &chunk->vmas[item->record];
	const u32 begin = chunk->data_used;
	int err = 0;

	if (DATA_SIZE - begin < SHORT_NAME_SIZE + BUILD_ID_SIZE_MAX)
		return -EAGAIN;

	if (record->name_size)
		record->name_offset = add_data(scan, chunk->specials +
					       record->name_offset,
					       record->name_size);
	if (item->file)
		err = make_file(scan, item);
	if (!err && !caller_has_room(scan))
		err = -ENOSPC;
	if (err) {
		scan->data_needed = chunk->data_used - begin;
		chunk->data_used = begin;
	}
	return err;
}

/*
 * With no lock held, make what goes to the caller's data. The chunk ends before
 * the first record that this fails for.
 */
static int make_data(struct scan *scan)
{
	struct chunk *chunk = scan->chunk;
	const struct item *item = chunk->items;
	int err = 0;
	u32 i;

	chunk->data_used = 0;
	for (i = 0; i < chunk->nr_items && !err; i++)
		err = make_item(scan, item++);
	if (err) {
		chunk->nr = (--item)->record;
		chunk->end = chunk->vmas[chunk->nr].start;
	}
	for (i = 0; i < chunk->nr_items; i++)
		if (chunk->items[i].file)
			fput(chunk->items[i].file);
	return err;
}

static int copy_data_and_records(const struct scan *scan)
{
	const struct chunk *chunk = scan->chunk;
	const u32 size = scan->arg.vma_size;
	const u32 known = min_t(u32, size, sizeof(*chunk->vmas));
	char __user *data = u64_to_user_ptr(scan->arg.data + scan->data_used);
	char __user *vec = u64_to_user_ptr(scan->arg.vec + (u64)scan->nr * size);
	u32 i;

	if (chunk->data_used && copy_to_user(data, chunk->data, chunk->data_used))
		return -EFAULT;
	if (size == sizeof(*chunk->vmas))
		return copy_to_user(vec, chunk->vmas, chunk->nr * size) ?
		       -EFAULT : 0;
	for (i = 0; i < chunk->nr; i++, vec += size)
		if (copy_to_user(vec, &chunk->vmas[i], known) ||
		    clear_user(vec + known, size - known))
			return -EFAULT;
	return 0;
}

/*
 * The files are remembered while that can't block. Where it may, for ever,
 * nothing of the target is held.
 */
static int copy_chunk_out(struct scan *scan)
{
	int err;

	pagefault_disable();
	err = copy_data_and_records(scan);
	pagefault_enable();
	if (!err)
		return 0;
	let_go_of_files(scan->chunk);
	return copy_data_and_records(scan);
}

static int scan_chunk(struct scan *scan)
{
	const struct chunk *chunk = scan->chunk;
	int err, end;

	err = take_chunk(scan);
	if (err)
		return err;
	end = make_data(scan);
	err = copy_chunk_out(scan);
	if (err)
		return err;
	scan->pos = chunk->end;
	scan->nr += chunk->nr;
	scan->data_used += chunk->data_used;
	return end == -EAGAIN ? 0 : end;
}

static int scan_chunks(struct scan *scan)
{
	int err = 0;

	while (!err && scan->pos < scan->arg.end &&
	       scan->nr < scan->arg.vec_len) {
		if (scan->pos != scan->arg.start && signal_pending(current))
			return -EINTR;
		cond_resched();
		err = scan_chunk(scan);
	}
	return err;
}

long procmap_scan(struct mm_struct *mm, struct procmap_scan_arg __user *uarg)
{
	struct scan scan = { .mm = mm };
	struct chunk *chunk;
	int err;

	err = copy_arg_in(&scan.arg, uarg);
	if (err)
		return err;

	/* A 32-bit kernel maps nothing up there. */
	scan.pos = scan.arg.start > ULONG_MAX ? scan.arg.end : scan.arg.start;
	chunk = kvmalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	scan.chunk = chunk;
	chunk->lost.build_id_size = 0;
	chunk->lost_name.size = 0;
	chunk->lost_name.allocated = NULL;
	chunk->nr_files = 0;
	forget_files(chunk);

	err = scan_chunks(&scan);

	forget_files(chunk);
	kfree(chunk->lost_name.allocated);
	kvfree(chunk);

	/* Whether a chunk was copied out before a bad pointer, is not told. */
	if (err == -EFAULT)
		return err;
	if (err == -ENOSPC && !scan.nr)
		scan.data_used = scan.data_needed;
	if (put_user(scan.pos, &uarg->walk_end) ||
	    put_user(scan.data_used, &uarg->data_used))
		return -EFAULT;
	return scan.nr ?: err;
}
