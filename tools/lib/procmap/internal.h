/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Definitions shared by the files of libprocmap.
 */
#ifndef PROCMAP_INTERNAL_H
#define PROCMAP_INTERNAL_H

#include <errno.h>
#include <linux/fs.h>
#include <linux/procmap_scan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* A tree with this header may be built with an older <linux/fs.h>. */
#ifndef PROCMAP_QUERY
#include <linux/procmap_query.h>
#endif

#include "procmap.h"

#define hidden	__attribute__((visibility("hidden")))

#define PERMISSIONS	(PROCMAP_READABLE | PROCMAP_WRITABLE |	\
			 PROCMAP_EXECUTABLE | PROCMAP_SHARED)
#define FILTERS		(PERMISSIONS | PROCMAP_FILE_BACKED)
#define DELETED_FLAGS	(PROCMAP_DELETED | PROCMAP_REPLACED | PROCMAP_UNVERIFIED)
#define OPTION_FLAGS	(PROCMAP_KERNEL_BUILD_IDS | PROCMAP_NO_SERVERS | PROCMAP_ALL_SERVERS)
#define WALK_FLAGS	(FILTERS | PROCMAP_WANT_BUILD_ID |	\
			 PROCMAP_WANT_PAGE_SIZE | PROCMAP_WANT_DELETED)

/* These flags of the library and of an ioctl are passed on unchanged. */
#define SAME(ours, theirs)	_Static_assert((int)(ours) == (int)(theirs), #ours)

/**
 * struct name_buffer - a buffer for the name of a mapping
 * @bytes: the buffer, or NULL if nothing has been allocated yet. Owned.
 * @size: size of the buffer, in bytes.
 */
struct name_buffer {
	char *bytes;
	size_t size;
};

/**
 * struct text - the text of maps or smaps, read as it is needed
 * @fd: the file; or -1 for a saved text. Owned, unless it is that of the handle.
 * @pos: file offset up to which the file has been read.
 * @bytes: the part that was read last, owned; or all of a saved text, which
 *	belongs to the caller.
 * @size: bytes allocated for @bytes; 0 for a saved text.
 * @begin: offset in @bytes of the next line.
 * @end: offset in @bytes of the end of what was read.
 * @passed: end of the last mapping that was read: the rest of the text has only
 *	mappings above.
 * @seen_line: at least one line was read.
 * @has_cr: each line of a saved text ends in CR LF.
 */
struct text {
	int fd;
	off_t pos;
	char *bytes;
	size_t size;
	size_t begin;
	size_t end;
	uint64_t passed;
	bool seen_line;
	bool has_cr;
};

/**
 * struct scan - a batch of mappings from PROCMAP_SCAN, returned one by one
 * @vmas: the mappings. Owned.
 * @data: their names and build IDs. Owned.
 * @data_size: bytes allocated for @data.
 * @data_used: bytes used of @data.
 * @nr: number of mappings.
 * @next: index of the first mapping that has not been passed.
 * @hits: number of lookups that this batch has served.
 * @from: address where the batch begins.
 * @to: address where it ends. @vmas has all mappings between the two that pass
 *	the filters.
 * @passed: the highest address looked up since the last restart.
 * @flags: the caller's flags for this batch.
 * @batch: mappings requested for this batch; 0 if there was none.
 * @queries: lookups by single queries since the last attempt to scan.
 * @patience: number of @queries after which a scan is attempted.
 */
struct scan {
	struct procmap_vma *vmas;
	char *data;
	uint32_t data_size;
	uint32_t data_used;
	size_t nr;
	size_t next;
	size_t hits;
	uint64_t from;
	uint64_t to;
	uint64_t passed;
	unsigned int flags;
	unsigned int batch;
	size_t queries;
	size_t patience;
};

/**
 * struct mounts - the mounts that a process sees
 * @file: mountinfo, once it was read. Owned.
 * @nr: number of mounts.
 * @all: the mounts, in the order in which they hide each other. Owned.
 */
struct mounts {
	FILE *file;
	size_t nr;
	struct mount *all;
};

/**
 * struct procmap - see procmap.h
 * @flags: enum procmap_open_flags.
 * @method: the method; PROCMAP_ANY_METHOD means one of the two ioctls, see method_of().
 * @any: the caller leaves the method to the library.
 * @has_scan: the kernel has PROCMAP_SCAN: 1; it has not: -1; not tried yet: 0.
 * @is_bounded: its PROCMAP_QUERY is not mainline's; known if @has_scan is.
 * @fd: the maps file; -1 for a saved text.
 * @dir: the directory in procfs of the process, or of one of its threads if the
 *	main one has exited; -1 if unknown.
 * @process: the directory of the process if @dir is that of a thread; or -1.
 * @maps: the text of maps, of @fd.
 * @smaps: the text of smaps, opened on first use.
 * @walk: the text that was read last, @maps or @smaps; or NULL.
 * @scan: the current batch of the scan method.
 * @name: the name of the mapping that was returned last.
 * @found: the mapping that was returned last.
 * @part: part of a name, for procmap_find_name(); or the name to which a build ID belongs.
 * @programs: how often procmap_reopen() has found another program.
 * @mounts: those of the process, and those of the reader; read when they are needed.
 */
struct procmap {
	unsigned int flags;
	enum procmap_method method;
	bool any;
	int has_scan;
	bool is_bounded;
	int fd;
	int dir;
	int process;
	struct text maps;
	struct text smaps;
	struct text *walk;
	struct scan scan;
	struct name_buffer name;
	struct procmap_mapping found;
	struct name_buffer part;
	unsigned int programs;
	struct mounts mounts[2];
};

static inline bool has_file(const struct procmap_mapping *mapping)
{
	return mapping->inode || mapping->dev_major || mapping->dev_minor;
}

static inline bool same_file(const struct procmap_mapping *a,
			     const struct procmap_mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor;
}

/* The length of a name without its " (deleted)". */
static inline size_t name_len_of_file(const struct procmap_mapping *mapping)
{
	static const char deleted[] = " (deleted)";
	const size_t len = sizeof(deleted) - 1;

	if (mapping->name_len < len ||
	    memcmp(mapping->name + mapping->name_len - len, deleted, len))
		return mapping->name_len;
	return mapping->name_len - len;
}

static inline bool same_name(const struct procmap_mapping *a,
			     const struct procmap_mapping *b)
{
	const size_t len = name_len_of_file(a);

	return b->name && len == name_len_of_file(b) && !memcmp(a->name, b->name, len);
}

static inline bool passes(const struct procmap_mapping *mapping,
			  unsigned int flags)
{
	if ((flags & PROCMAP_FILE_BACKED) && !has_file(mapping))
		return false;
	return !(flags & PERMISSIONS & ~mapping->flags);
}

/* util.c */

/*
 * Copy the caller's structure, which begins with its size, to one of @size bytes. Set the
 * fields that it does not have, or all if @from is NULL, to zero. Returns 0, or -EINVAL if
 * an unknown field is not zero.
 */
hidden int take_struct(void *to, size_t size, const void *from);

/* Grow the buffer to at least @size bytes. Returns 0 or -ENOMEM. */
hidden int name_reserve(struct name_buffer *name, size_t size);

/*
 * Escape each newline in a name of @len bytes as the text does, and update
 * @len. Returns 0 or -ENOMEM.
 */
hidden int escape_name(struct name_buffer *name, size_t *len);

/* collect.c, slots.c */

/**
 * struct collection - copies of mappings
 * @nr: number of mappings.
 * @size: mappings that @mappings has room for.
 * @mappings: the mappings. Owned.
 * @names_len: bytes used of @names.
 * @names_size: bytes allocated for @names.
 * @names: their names, each with its NUL. Owned.
 */
struct collection {
	size_t nr;
	size_t size;
	struct procmap_mapping *mappings;
	size_t names_len;
	size_t names_size;
	char *names;
};

/* Add a copy of the mapping. Returns 0 or -ENOMEM. */
hidden int collect(struct collection *collection,
		   const struct procmap_mapping *mapping);

/* After the last mapping: let all point to their names. */
hidden void end_collection(struct collection *collection);

hidden void free_collection(const struct collection *collection);

/**
 * struct range - the first members of each entry of an array that is searched
 * @start: first address.
 * @end: first address past it.
 */
struct range {
	uint64_t start;
	uint64_t end;
};

/**
 * struct slots - an index of an array of ranges in rising order
 * @base: where the slots begin.
 * @shift: a slot has 2^@shift addresses.
 * @nr: number of slots, at most that of the ranges; 0: search all ranges.
 * @below: for each slot and behind the last one, the number of ranges that end at or
 *	below it. Owned.
 *
 * Most mappings are close together, in the area for mmap(2). That is divided into
 * slots, so that there are few ranges to search. For addresses elsewhere, all are
 * searched.
 */
struct slots {
	uint64_t base;
	unsigned int shift;
	size_t nr;
	uint32_t *below;
};

/* Make the slots of @nr entries of @size bytes. Returns 0 or -ENOMEM. */
hidden int slots_make(struct slots *slots, const void *entries, size_t size, size_t nr);

/* The number of entries that end at or below an address. */
static inline size_t slots_below(const struct slots *slots, const void *entries,
				 size_t size, size_t nr, uint64_t addr)
{
	const uint64_t slot = (addr - slots->base) >> slots->shift;
	size_t from = 0, to = nr;

	if (addr >= slots->base && slot < slots->nr) {
		from = slots->below[slot];
		to = slots->below[slot + 1];
	}
	/* It is in [from, to]. */
	while (from < to) {
		const size_t middle = (from + to) / 2;
		const struct range *const range =
			(const void *)((const char *)entries + middle * size);

		if (range->end <= addr)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* elf.c */

/*
 * Read the build ID of an ELF file, or of an image at @begin. Returns its size, 0 if
 * there is none, or -errno if that is not known.
 */
hidden int read_build_id(int fd, uint64_t begin,
			 uint8_t id[PROCMAP_BUILD_ID_MAX]);

/**
 * struct segments - the segments of an ELF file that are loaded
 * @are_fixed: they are loaded at their addresses, as those of ET_EXEC are.
 * @low: the lowest address, by whole pages.
 * @high: the first address past all, by whole pages.
 * @nr: number of segments.
 * @all: the segments, in the order of the file. Owned.
 */
struct segments {
	bool are_fixed;
	uint64_t low;
	uint64_t high;
	size_t nr;
	struct segment {
		uint64_t offset;
		uint64_t file_size;
		uint64_t size;
		uint64_t address;
		uint32_t flags;	/* as a mapping has them */
	} *all;
};

/* Return whether an ELF file of this byte order begins there. */
hidden bool is_elf(int fd, uint64_t begin);

/* Of the image at @begin. Returns 0, -ENOEXEC or -ENOMEM. */
hidden int read_segments(int fd, uint64_t begin, struct segments *segments);

/* The address of a byte of the file, in the first segment with it. Returns 0 or -ENOENT. */
hidden int address_in(const struct segments *segments, uint64_t offset,
		      uint64_t *address);

/*
 * Set the load bias if the mapping tells it: only one segment can be mapped so, and has these
 * permissions; or its addresses are fixed.
 */
hidden bool find_bias(const struct segments *segments,
		      const struct procmap_mapping *mapping, uint64_t *bias);

/*
 * The address of @addr, in the segment that the mapping maps. @bias: the load bias; NULL if
 * it is not known: then it is the only segment with this page of the file or, if nothing but
 * the mapping is known, the one that has most in common with it. Returns 0, or -ENOENT if no
 * segment is mapped there, or several may be.
 */
hidden int mapped_address_in(const struct segments *segments,
			     const struct procmap_mapping *mapping, uint64_t addr,
			     const uint64_t *bias, bool is_alone, uint64_t *address);

/*
 * text.c, query.c and scan.c find mappings by one interface of the kernel each. They set
 * build_id_size to -EAGAIN if they were not asked for the build ID, or cannot tell it.
 */

/* Internal: do not have the kernel search for a mapping that passes. */
#define PROCMAP_UNFILTERED	0x80000000u

/* text.c */

/* Go back to the first line. */
hidden void text_restart(struct text *text);

/* Close the file and free the buffer. */
hidden void text_close(struct text *text);

/*
 * Find the next line of a mapping that ends above @addr and passes the filters
 * in @flags. Returns 0, -ENOENT, -ESRCH, -EBADMSG, -ENOMEM or an error of
 * read(2).
 */
hidden int text_next(struct text *text, uint64_t addr, unsigned int flags,
		     struct procmap_mapping *mapping, struct name_buffer *name);

/*
 * Check that a maps file has a text, that is, that its address space still exists. This
 * reads one byte, for which the kernel makes only one line. Returns 0, -ESRCH, or an error
 * of read(2).
 */
hidden int text_is_there(int fd);

/*
 * Replace @mapping, which an ioctl returned without its name, by the first
 * mapping of the text that ends above @addr and passes the filters in @flags.
 * The page size stays, unless another file is mapped there by now.
 */
hidden int take_from_text(struct procmap *procmap, uint64_t addr,
			  unsigned int flags, struct procmap_mapping *mapping);

/* query.c */

/* Returns 0 if PROCMAP_QUERY works, or its error. */
hidden int query_probe(int fd);

/*
 * Find a mapping by PROCMAP_QUERY, for addresses in any order; without
 * PROCMAP_COVERING_OR_NEXT only one that covers @addr.
 */
hidden int find_by_query(struct procmap *procmap, uint64_t addr,
			 unsigned int flags, struct procmap_mapping *mapping);

/* find_from() by PROCMAP_QUERY. */
hidden int find_next_by_query(struct procmap *procmap, uint64_t addr,
			      unsigned int flags, struct procmap_mapping *mapping);

/*
 * Get the build ID from the kernel; see takes_kernel_ids(). Returns 0 or -errno; -ESTALE if the
 * mapping changed.
 */
hidden int query_build_id(struct procmap *procmap,
			  struct procmap_mapping *mapping);

/* scan.c */

/* Returns 1 if PROCMAP_SCAN works and says that the query is bounded, 0 if not, or its error. */
hidden int scan_probe(int fd);

hidden bool kernel_has_scan(struct procmap *procmap);

/*
 * Mainline's query reads the build ID of whatever is mapped, for as long as that takes, and in
 * some kernels oopses for shared memory. A query may be mainline's unless a scan says otherwise.
 */
hidden bool query_is_bounded(struct procmap *procmap);

/*
 * The flags for a query, which then does not ask mainline for a build ID: find_build_id() does
 * when the name is known, if at all.
 */
hidden unsigned int query_flags(struct procmap *procmap, unsigned int flags);

/* Drop the batch. */
hidden void scan_start_over(struct scan *scan);

/* find_from() by PROCMAP_SCAN. */
hidden int scan_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		     struct procmap_mapping *mapping);

/*
 * The generation of the address space; 0 if the kernel does not number them.
 * Returns 0 or -errno.
 */
hidden int scan_generation(struct procmap *procmap, uint64_t *generation);

/* Free the buffers. */
hidden void scan_free(struct scan *scan);

/* method.c */

hidden bool is_method(enum procmap_method method);

/*
 * The method of walks. With PROCMAP_ANY_METHOD, the first walk finds out whether the kernel
 * has the scan.
 */
hidden enum procmap_method method_of(struct procmap *procmap);

/*
 * Return whether the kernel may be asked for a build ID: the caller wants that, or a scan says
 * that the query is not mainline's.
 */
hidden bool takes_kernel_ids(struct procmap *procmap);

/*
 * Choose the method of a handle whose maps file was opened. Returns 0, or the error of
 * the method that the caller wants.
 */
hidden int choose_method(struct procmap *procmap, enum procmap_method method);

/* Begin a new series of calls: use nothing that an earlier one has returned. */
hidden void start_over(struct procmap *procmap);

/*
 * Find the first mapping that ends above @addr and passes the filters in
 * @flags; with PROCMAP_UNFILTERED, also one in front of it that does not pass. A
 * series of calls with rising addresses is fast. Returns as procmap_find().
 */
hidden int find_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
		     struct procmap_mapping *mapping);

/*
 * Find the mapping at @addr; with PROCMAP_COVERING_OR_NEXT, or the next one that passes
 * the filters in @flags. Returns as procmap_find().
 */
hidden int find_at(struct procmap *procmap, uint64_t addr, unsigned int flags,
		   struct procmap_mapping *mapping);

/* handle.c */

/*
 * Read the number behind @label, which begins a line of a file, and close the file, if it
 * could be opened. Returns 0, -ENODATA if there is no such line, or -errno.
 */
hidden int read_number(int fd, const char *label, int *number);

/* Open a handle by a process's directory in procfs, which the handle keeps. */
hidden int open_in(int dir, enum procmap_method method, unsigned int flags,
		   struct procmap **procmap);

/*
 * Return the error for one of a lookup: the address space is also gone (-ESRCH) after an
 * execve(2), which is -ESTALE.
 */
hidden int lookup_error(const struct procmap *procmap, int err);

/* mounts.c */

enum mount_kind {
	MOUNT_UNKNOWN,	/* it is not among the mounts */
	MOUNT_LOCAL,
	MOUNT_SERVED,	/* a server answers for its files: FUSE, or a network */
};

/* Return whether a file was not looked at for a limit of the caller's. */
static inline bool is_limit_of_caller(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* Set the kind of the mount that has the device of the mapping. Returns 0 or -errno. */
hidden int mount_of(struct procmap *procmap, const struct procmap_mapping *mapping,
		    enum mount_kind *kind);

/* Returns -EREMOTE if the flags of the handle forbid to read the file; or -errno. */
hidden int may_read_file(struct procmap *procmap, const struct procmap_mapping *mapping);

/*
 * Open a path below @root with O_PATH: "root", that of the process, or "", that of the
 * reader. Returns -EREMOTE if a server would have to be asked.
 */
hidden int open_without_server(struct procmap *procmap, const char *root,
			       const char *path);

hidden void free_mounts(struct mounts *mounts);

/* mapped.c */

#define MAP_FILES_SIZE	(sizeof("map_files/-") + 2 * 16)

/* The path of the link to the file of a mapping in the directory of its process. */
hidden const char *map_files_path(const struct procmap_mapping *mapping,
				  char path[MAP_FILES_SIZE]);

/*
 * Open a file in the directory of this process. A procfs of a PID namespace that does not
 * have it has no such directory.
 */
hidden int open_own(int dir, const char *name, int flags);

/* Return whether the process with this directory has our namespace, "ns/mnt" or another. */
hidden bool has_our_namespace(int dir, const char *name);

/*
 * Open the file of a mapping of the process, if it is regular. Returns -ESTALE if only
 * another file is found, or one that is not known to be the mapped one.
 */
hidden int open_mapped(struct procmap *procmap, const struct procmap_mapping *mapping);

/* Duplicate the process's directory in procfs. Returns a descriptor or -errno. */
hidden int dup_process(const struct procmap *procmap);

/* Open a regular file by its path in the root of the process, also by links in it. */
hidden int open_in_root(struct procmap *procmap, const char *path);

/*
 * The same as open_mapped() by its name below @root. @dir: the directory in procfs of any
 * process.
 */
hidden int open_elsewhere(int dir, const struct procmap_mapping *mapping,
			  const char *root);

/**
 * struct identity - a file as maps shows it
 * @numbers: its device and inode; other fields mean nothing.
 * @are_unique: no other file has these.
 */
struct identity {
	struct procmap_mapping numbers;
	bool are_unique;
};

/* Identify a regular file, by mapping it. Returns 0 or -errno. */
hidden int identify(int dir, int fd, struct identity *identity);

/*
 * Return 1 if a mapping of the process is of the file, 0 if it is not, -EXDEV if that is not
 * known, or another error.
 */
hidden int is_mapping_of(struct procmap *procmap, const struct procmap_mapping *mapping,
			 int fd, const struct identity *identity);

/* read_build_id(), but as in the kernel, files of procfs and sysfs have none. */
hidden int build_id_of(int fd, uint64_t begin, uint8_t id[PROCMAP_BUILD_ID_MAX]);

/*
 * Read the build ID of the file by the method of the handle, or that of the vdso
 * from memory.
 */
hidden void find_build_id(struct procmap *procmap, struct procmap_mapping *mapping);

/*
 * Look whether the file of a mapping is at its path. Returns DELETED_FLAGS, or -EMFILE, -ENFILE
 * or -ENOMEM.
 */
hidden int look_for_file(struct procmap *procmap, const struct procmap_mapping *mapping);

/* file.c */

/* Return what identify() finds, once. Returns 0 or -errno. */
hidden int need_identity(struct procmap_file *file, int dir,
			 const struct identity **identity);

/* find.c */

/* find_from(), with the requested attributes of the file, and lookup_error(). */
hidden int look_up_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
			struct procmap_mapping *mapping);

#endif /* PROCMAP_INTERNAL_H */
