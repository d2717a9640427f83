// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_SCAN: copy the VMAs in a range of addresses to an array.
 *
 * A scan proceeds in chunks, and each chunk in three steps:
 *
 * - walk_chunk() takes mmap_lock and walks a bounded number of VMAs. It copies
 *   their fields and special names, and takes a reference on each file.
 * - emit_items() runs without the lock. It formats paths and reads build IDs,
 *   once per file, and drops the references.
 * - copy_chunk_out() copies the chunk to the caller. It first tries with page
 *   faults disabled, so that references on files already seen can be kept for
 *   the next chunks. If that fails it drops them, since a copy that faults may
 *   block indefinitely.
 *
 * The next chunk starts at the address where this one ended, with whatever is
 * mapped there by then.
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

/* Sizes of the structures in the first version of the ABI, in bytes. */
#define ARG_SIZE_MIN	72
#define VMA_SIZE_MIN	72

/*
 * VMAs walked per hold of mmap_lock: the longest that a writer waits. More
 * would gain little, since a chunk's fixed cost is a twentieth of that of its
 * VMAs.
 */
#define CHUNK_VMAS	64

/* Bytes for the special names of one chunk; if they run out, the chunk ends. */
#define SPECIALS_SIZE	1280

/* Bytes for names and build IDs: enough for the longest of one VMA. */
#define DATA_SIZE	(PATH_MAX + SHORT_NAME_SIZE + BUILD_ID_SIZE_MAX)

/* Files remembered, and slots of their hash table: at most half are in use. */
#define FILES_BITS	6
#define NR_FILES	BIT(FILES_BITS)
#define NR_SLOTS	(2 * NR_FILES)

static_assert(offsetof(struct procmap_vma, dev_minor) ==
	      offsetof(struct procmap_vma, start) +
	      offsetof(struct vma_fields, dev_minor));

/**
 * struct item - a VMA that needs more than its fields emitted
 * @record: index of its record in the chunk.
 * @file: its file, or NULL. The item owns a reference from walk_chunk() to the
 *	end of emit_items().
 * @path: path of @file if that is the VMA's name and names are wanted, or NULL.
 *	Valid as long as @file is.
 */
struct item {
	u32 record;
	struct file *file;
	const struct path *path;
};

/**
 * struct seen_file - a file whose name and build ID have been emitted
 * @file: the file. The entry owns a reference while it is in &chunk.files.
 * @path: its path, or NULL if that is not the VMA's name or not wanted.
 * @name_offset: as in &struct procmap_vma.
 * @name_size: as in &struct procmap_vma.
 * @build_id_offset: as in &struct procmap_vma.
 * @build_id_size: as in &struct procmap_vma.
 * @build_id: the build ID, of @build_id_size bytes.
 *
 * Later VMAs of the same file share the name and the build ID.
 */
struct seen_file {
	struct file *file;
	const struct path *path;
	u32 name_offset;
	u32 name_size;
	u32 build_id_offset;
	u32 build_id_size;
	u8 build_id[BUILD_ID_SIZE_MAX];
};

/**
 * struct chunk - the VMAs of one hold of mmap_lock, and the files seen so far
 * @end: the address up to which the chunk covers the range.
 * @nr: number of records in @vmas.
 * @nr_items: number of entries in @items.
 * @specials_used: bytes used of @specials.
 * @data_used: bytes used of @data.
 * @nr_files: number of entries in @files.
 * @last: 1 + index of the most recently emitted file in @files, or 0.
 * @slots: hash table over @files: 1 + index of an entry, or 0 for a free slot.
 * @files: the files seen; kept from chunk to chunk.
 * @prev: copy of the most recently emitted entry when all were put, without a
 *	reference: its @file and @path must not be followed.
 * @prev_name: path of @prev, which identifies it from then on; size 0 if
 *	unknown.
 * @vmas: the records. Until emit_item(), the name offset of a special name is
 *	an offset in @specials.
 * @items: the VMAs that need more than their fields, in the order of @vmas.
 * @specials: special names, each with its NUL.
 * @data: the bytes that go to the caller's data.
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
	struct seen_file files[NR_FILES];
	struct seen_file prev;
	struct name_buf prev_name;
	struct procmap_vma vmas[CHUNK_VMAS];
	struct item items[CHUNK_VMAS];
	char specials[SPECIALS_SIZE];
	char data[DATA_SIZE];
};

/* One chunk is all that a call allocates, but for a path in @prev_name. */
static_assert(sizeof(struct chunk) <= SZ_16K);

/**
 * struct scan - progress of one PROCMAP_SCAN
 * @mm: the address space, or NULL for a kernel thread. The caller of
 *	procmap_scan() keeps it allocated.
 * @arg: the arguments, copied in and checked.
 * @pos: the address up to which the scan is done.
 * @nr: records copied out.
 * @data_used: bytes of data copied out.
 * @data_needed: after -ENOSPC, bytes of data that the next record needs.
 * @chunk: the current chunk.
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

/* Copy in and check the arguments, in the order that the ABI documents. */
static int copy_arg_in(struct procmap_scan_arg *arg,
		       const struct procmap_scan_arg __user *uarg)
{
	const int err = copy_struct_in(arg, sizeof(*arg), ARG_SIZE_MIN, uarg);

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

/**
 * add_item - add what a VMA needs emitted besides its fields
 * @chunk: the chunk.
 * @vma: the VMA. mmap_lock is held.
 * @record: the VMA's record.
 * @flags: &procmap_scan_arg.flags.
 *
 * The new item takes a reference on the VMA's file.
 *
 * Return: false, and no reference taken, if the special names have no room
 * left.
 */
static bool add_item(struct chunk *chunk, struct vm_area_struct *vma,
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
		record->name_size = format_special_name(chunk->specials +
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

/**
 * add_vma - add a VMA to the chunk
 * @chunk: the chunk.
 * @vma: the VMA. mmap_lock is held.
 * @flags: &procmap_scan_arg.flags.
 * @pos: address where the record starts if the VMA starts below it.
 *
 * Return: false if the chunk has no room for it.
 */
static bool add_vma(struct chunk *chunk, struct vm_area_struct *vma, u64 flags,
		    u64 pos)
{
	struct procmap_vma *record = &chunk->vmas[chunk->nr];

	copy_fields((struct vma_fields *)record, vma);
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
	    !add_item(chunk, vma, record, flags))
		return false;
	chunk->nr++;
	return true;
}

/**
 * walk_chunk - collect the next chunk of VMAs
 * @scan: the scan.
 *
 * Takes and drops mmap_lock for reading; may sleep to take it. Nothing is
 * allocated, formatted or read from a file while it is held. Each item of the
 * chunk owns a reference on its file afterwards, which emit_items() drops. The
 * last reference to the address space may be dropped here, which may sleep.
 *
 * Return: 0, -ESRCH if the address space is gone, or -EINTR if a fatal signal
 * arrived while waiting for the lock.
 */
static int walk_chunk(struct scan *scan)
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
		    (chunk->nr == room || !add_vma(chunk, vma, flags, pos)))
			break;
		pos = vma->vm_end;
	}
	chunk->end = min(pos, end);

	unlock_vmas(scan->mm);
	return 0;
}

/* Separate opens of one path are the same file with the same name. */
static bool is_same_file(const struct seen_file *seen, const struct item *item)
{
	return seen->file->f_mapping == item->file->f_mapping &&
	       !seen->path == !item->path &&
	       (!item->path || path_equal(seen->path, item->path));
}

/*
 * Find the file of @item among those seen. If it is not there, return NULL and
 * set @slot to the free slot where it belongs.
 */
static struct seen_file *find_file(struct chunk *chunk, const struct item *item,
				   u32 *slot)
{
	for (*slot = hash_ptr(item->file->f_mapping, FILES_BITS + 1);
	     chunk->slots[*slot]; *slot = (*slot + 1) % NR_SLOTS) {
		struct seen_file *seen = &chunk->files[chunk->slots[*slot] - 1];

		if (is_same_file(seen, item))
			return seen;
	}
	return NULL;
}

/* Drop the references on all files seen, and forget the files. */
static void put_files(struct chunk *chunk)
{
	while (chunk->nr_files)
		fput(chunk->files[--chunk->nr_files].file);
	chunk->last = 0;
	memset(chunk->slots, 0, sizeof(chunk->slots));
}

/**
 * put_files_keep_name - drop the references on all files, remember one path
 * @chunk: the chunk.
 *
 * The next VMAs may map the most recently emitted file and should share its
 * name and build ID. So its path is formatted and kept in @prev_name, unless it
 * has changed since it was emitted. May sleep: it allocates memory and runs
 * deferred fput() work. The caller holds no lock.
 */
static void put_files_keep_name(struct chunk *chunk)
{
	struct seen_file *prev = &chunk->prev;
	struct name_buf *name = &chunk->prev_name;

	if (chunk->last) {
		*prev = chunk->files[chunk->last - 1];
		kfree(name->allocated);
		name->allocated = NULL;
		if (!prev->path || format_path(name, prev->path, PATH_MAX) ||
		    name->size != prev->name_size)
			name->size = 0;
	}
	put_files(chunk);
	run_deferred_puts();
}

/* Append to the data. Returns the offset where the caller finds the bytes. */
static u32 emit_bytes(struct scan *scan, const void *bytes, u32 size)
{
	struct chunk *chunk = scan->chunk;
	const u32 offset = scan->data_used + chunk->data_used;

	memmove(chunk->data + chunk->data_used, bytes, size);
	chunk->data_used += size;
	return offset;
}

/**
 * emit_name - append the path of a file to the data
 * @scan: the scan.
 * @seen: the file; its name's offset and size are set. The caller holds a
 *	reference on it.
 *
 * No bytes are appended if the path is that of &chunk.prev: it is in the
 * caller's data already.
 *
 * Return: 0, -EAGAIN if the chunk has no room left, or -ENAMETOOLONG if the
 * path is longer than PATH_MAX.
 */
static int emit_name(struct scan *scan, struct seen_file *seen)
{
	struct chunk *chunk = scan->chunk;
	const struct name_buf *prev = &chunk->prev_name;
	char *buffer = chunk->data + chunk->data_used;
	const u32 left = DATA_SIZE - BUILD_ID_SIZE_MAX - chunk->data_used;
	const u32 size = min_t(u32, left, PATH_MAX);
	const char *name = d_path(seen->path, buffer, size);

	if (IS_ERR(name))
		return size < PATH_MAX ? -EAGAIN : PTR_ERR(name);

	/* d_path() writes to the end of the buffer. */
	seen->name_size = buffer + size - name;
	seen->name_offset = seen->name_size == prev->size &&
			    !memcmp(name, prev->text, prev->size) ?
			    chunk->prev.name_offset :
			    emit_bytes(scan, name, seen->name_size);
	return 0;
}

/* The same for the build ID. May sleep: it may read the file. */
static void emit_build_id(struct scan *scan, struct seen_file *seen)
{
	const struct seen_file *prev = &scan->chunk->prev;

	seen->build_id_size = proc_build_id(seen->file, seen->build_id);
	if (!seen->build_id_size)
		return;
	seen->build_id_offset = seen->build_id_size == prev->build_id_size &&
				!memcmp(seen->build_id, prev->build_id,
					seen->build_id_size) ?
				prev->build_id_offset :
				emit_bytes(scan, seen->build_id,
					   seen->build_id_size);
}

/* Does all that the chunk has emitted fit into what is left of the buffer? */
static bool fits_in_data(const struct scan *scan)
{
	return scan->chunk->data_used <= scan->arg.data_size - scan->data_used;
}

/**
 * emit_file - emit name and build ID of an item's file, unless done before
 * @scan: the scan.
 * @item: the item; it has a file, and its record is completed.
 *
 * A file that is remembered gets a reference of its own, apart from the item's.
 * If NR_FILES are remembered already, all of them are put first. May sleep, see
 * emit_build_id().
 *
 * Return: as emit_item().
 */
static int emit_file(struct scan *scan, const struct item *item)
{
	struct chunk *chunk = scan->chunk;
	struct procmap_vma *record = &chunk->vmas[item->record];
	struct seen_file *seen;
	u32 slot;
	int err;

	seen = find_file(chunk, item, &slot);
	if (!seen) {
		if (chunk->nr_files == NR_FILES) {
			put_files(chunk);
			find_file(chunk, item, &slot);
		}
		seen = &chunk->files[chunk->nr_files];
		*seen = (struct seen_file) {
			.file = item->file, .path = item->path,
		};
		if (seen->path) {
			err = emit_name(scan, seen);
			if (err)
				return err;
		}
		if (scan->arg.flags & PROCMAP_SCAN_BUILD_IDS)
			emit_build_id(scan, seen);
		if (!fits_in_data(scan))
			return -ENOSPC;
		get_file(seen->file);
		chunk->slots[slot] = ++chunk->nr_files;
	}
	if (item->path) {
		record->name_offset = seen->name_offset;
		record->name_size = seen->name_size;
	}
	record->build_id_offset = seen->build_id_offset;
	record->build_id_size = seen->build_id_size;
	chunk->last = seen - chunk->files + 1;
	return 0;
}

/**
 * emit_item - emit name and build ID of one VMA
 * @scan: the scan.
 * @item: the item.
 *
 * Nothing stays appended to the data on an error. May sleep, see emit_file().
 *
 * Return: 0, -EAGAIN if the chunk has no room left, -ENOSPC if the caller's
 * buffer has none, or -ENAMETOOLONG.
 */
static int emit_item(struct scan *scan, const struct item *item)
{
	struct chunk *chunk = scan->chunk;
	struct procmap_vma *record = &chunk->vmas[item->record];
	const u32 begin = chunk->data_used;
	int err = 0;

	if (DATA_SIZE - begin < SHORT_NAME_SIZE + BUILD_ID_SIZE_MAX)
		return -EAGAIN;

	if (record->name_size)
		record->name_offset = emit_bytes(scan, chunk->specials +
					       record->name_offset,
					       record->name_size);
	if (item->file)
		err = emit_file(scan, item);
	if (!err && !fits_in_data(scan))
		err = -ENOSPC;
	if (err) {
		scan->data_needed = chunk->data_used - begin;
		chunk->data_used = begin;
	}
	return err;
}

/**
 * emit_items - emit names and build IDs of the chunk
 * @scan: the scan. No lock is held.
 *
 * The chunk is cut before the first record that fails. The items' references on
 * their files are dropped in any case. May sleep.
 *
 * Return: 0, or the error of the record that ended the chunk, see emit_item().
 */
static int emit_items(struct scan *scan)
{
	struct chunk *chunk = scan->chunk;
	const struct item *item = chunk->items;
	int err = 0;
	u32 i;

	chunk->data_used = 0;
	for (i = 0; i < chunk->nr_items && !err; i++)
		err = emit_item(scan, item++);
	if (err) {
		chunk->nr = (--item)->record;
		chunk->end = chunk->vmas[chunk->nr].start;
	}
	for (i = 0; i < chunk->nr_items; i++)
		if (chunk->items[i].file)
			fput(chunk->items[i].file);
	return err;
}

/* May fault, and so block indefinitely, unless page faults are disabled. */
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

/**
 * copy_chunk_out - copy records and data to the caller
 * @scan: the scan. No lock is held; references are held on the files seen only.
 *
 * With page faults disabled the copy cannot block, so those references are
 * kept. If it fails they are dropped, and it is repeated with page faults
 * enabled: it may then block indefinitely, on memory behind userfaultfd or
 * FUSE.
 *
 * Return: 0 or -EFAULT.
 */
static int copy_chunk_out(struct scan *scan)
{
	int err;

	pagefault_disable();
	err = copy_data_and_records(scan);
	pagefault_enable();
	if (!err)
		return 0;
	put_files_keep_name(scan->chunk);
	return copy_data_and_records(scan);
}

/*
 * Walk, emit and copy out one chunk. An error that ended the chunk early is
 * returned after its records have been copied; -EAGAIN is not an error then.
 */
static int scan_chunk(struct scan *scan)
{
	const struct chunk *chunk = scan->chunk;
	int err, end;

	err = walk_chunk(scan);
	if (err)
		return err;
	end = emit_items(scan);
	err = copy_chunk_out(scan);
	if (err)
		return err;
	scan->pos = chunk->end;
	scan->nr += chunk->nr;
	scan->data_used += chunk->data_used;
	return end == -EAGAIN ? 0 : end;
}

/*
 * Any signal ends the scan between two chunks, not only a fatal one: the caller
 * continues from walk_end.
 */
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

	/* A 32-bit kernel has no mappings above ULONG_MAX. */
	scan.pos = scan.arg.start > ULONG_MAX ? scan.arg.end : scan.arg.start;
	chunk = kvmalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	scan.chunk = chunk;
	chunk->prev.build_id_size = 0;
	chunk->prev_name.size = 0;
	chunk->prev_name.allocated = NULL;
	chunk->nr_files = 0;
	put_files(chunk);

	err = scan_chunks(&scan);

	put_files(chunk);
	kfree(chunk->prev_name.allocated);
	kvfree(chunk);

	/* -EFAULT is returned even if records have been copied out before. */
	if (err == -EFAULT)
		return err;
	if (err == -ENOSPC && !scan.nr)
		scan.data_used = scan.data_needed;
	if (put_user(scan.pos, &uarg->walk_end) ||
	    put_user(scan.data_used, &uarg->data_used))
		return -EFAULT;
	return scan.nr ?: err;
}
