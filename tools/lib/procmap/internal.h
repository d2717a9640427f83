/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Definitions shared by the files of libprocmap.
 */
#ifndef PROCMAP_INTERNAL_H
#define PROCMAP_INTERNAL_H

#include <errno.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A tree with this header may be built with an older <linux/fs.h>. */
#ifndef PROCMAP_QUERY
#include <linux/procmap_query.h>
#endif

#if __has_include("linux/procmap_scan.h")
#include <linux/procmap_scan.h>
#endif

#include "procmap.h"

#define hidden	__attribute__((visibility("hidden")))

#define PERMISSIONS	(PROCMAP_READABLE | PROCMAP_WRITABLE |	\
			 PROCMAP_EXECUTABLE | PROCMAP_SHARED)
#define FILTERS		(PERMISSIONS | PROCMAP_FILE_BACKED)

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
 * @fd: the file, owned; or -1 for a saved text.
 * @pos: file offset up to which the file has been read.
 * @bytes: the part that was read last, owned; or all of a saved text, which
 *	belongs to the caller.
 * @size: bytes allocated for @bytes; 0 for a saved text.
 * @begin: offset in @bytes of the next line.
 * @end: offset in @bytes of the end of what was read.
 * @passed: end of the last mapping that was read: the rest of the text has only
 *	mappings above.
 * @seen_line: at least one line was read.
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
 * @room: mappings that @vmas has room for.
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
	unsigned int room;
	size_t queries;
	size_t patience;
};

/**
 * struct procmap - see procmap.h
 * @way: the method: PROCMAP_BY_SCAN, PROCMAP_BY_IOCTL or PROCMAP_BY_TEXT.
 * @fd: the maps file; -1 for a saved text.
 * @own_fd: procmap_close() closes @fd.
 * @dir: the directory of the process in /proc, opened with O_PATH; -1 if
 *	unknown.
 * @maps: the text of maps.
 * @smaps: the text of smaps, opened on first use.
 * @walk: the text that was read last, @maps or @smaps; or NULL.
 * @scan: the current batch of the scan method.
 * @name: the name of the mapping that was returned last.
 * @last: text method: the mapping for which the last build ID was read since
 *	the last restart of the text; its inode is 0 if there is none.
 */
struct procmap {
	enum procmap_way way;
	int fd;
	bool own_fd;
	int dir;
	struct text maps;
	struct text smaps;
	struct text *walk;
	struct scan scan;
	struct name_buffer name;
	struct procmap_mapping last;
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

/*
 * Open the file of @fd again, for reading, with a file offset of its own. Most
 * callers that have the file open are allowed to. Returns the new file
 * descriptor or -errno.
 */
hidden int reopen(int fd);

/* Grow the buffer to at least @size bytes. Returns 0 or -ENOMEM. */
hidden int name_reserve(struct name_buffer *name, size_t size);

/*
 * Escape each newline in a name of @len bytes as the text does, and update
 * @len. Returns 0 or -ENOMEM.
 */
hidden int escape_name(struct name_buffer *name, size_t *len);

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
 * Check by the first line that this is the text of a maps file. Returns 0,
 * -EINVAL if it is not, -ESRCH if it is empty, or an error of read(2).
 */
hidden int text_probe(struct text *text);

/*
 * Find the first mapping that ends above @addr and passes the filters in
 * @flags. A series of calls with rising addresses is fast; @restart begins a
 * new one. Returns as procmap_find().
 */
hidden int find_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
		     bool restart, struct procmap_mapping *mapping);

/* The same by PROCMAP_QUERY, for addresses in any order. */
hidden int find_by_ioctl(struct procmap *procmap, uint64_t addr,
			 unsigned int flags, struct procmap_mapping *mapping);

/*
 * Replace @mapping, which an ioctl returned without its name, by the first
 * mapping of the text that ends above @addr and passes the filters in @flags.
 * Page size and build ID stay, unless another file is mapped there by now.
 */
hidden int take_from_text(struct procmap *procmap, uint64_t addr,
			  unsigned int flags, struct procmap_mapping *mapping);

#ifdef PROCMAP_SCAN
/* Returns 0 if PROCMAP_SCAN works, or its error. */
hidden int scan_probe(int fd);

/* find_from() by PROCMAP_SCAN. */
hidden int scan_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		     bool restart, struct procmap_mapping *mapping);

/* Free the buffers. */
hidden void scan_free(struct scan *scan);
#else
static inline int scan_probe(int fd)
{
	(void)fd;
	return -ENOTTY;
}

static inline int scan_find(struct procmap *procmap, uint64_t addr,
			    unsigned int flags, bool restart,
			    struct procmap_mapping *mapping)
{
	(void)restart;
	return find_by_ioctl(procmap, addr, flags, mapping);
}

static inline void scan_free(struct scan *scan)
{
	(void)scan;
}
#endif

/* Open the mapped file and read its build ID into @mapping: the text method. */
hidden void find_build_id(struct procmap *procmap,
			  struct procmap_mapping *mapping);

/* Read the build ID of an ELF file. Returns its size, or 0 if there is none. */
hidden int read_build_id(int fd, uint8_t id[PROCMAP_BUILD_ID_MAX]);

#endif /* PROCMAP_INTERNAL_H */
