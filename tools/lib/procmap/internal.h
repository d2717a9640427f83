/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the files of libprocmap share.
 */
#ifndef PROCMAP_INTERNAL_H
#define PROCMAP_INTERNAL_H

#include <errno.h>
#include <linux/procmap_query.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if __has_include(<linux/procmap_scan.h>)
#include <linux/procmap_scan.h>
#endif

#include "procmap.h"

#define hidden	__attribute__((visibility("hidden")))

#define PERMISSIONS	(PROCMAP_READABLE | PROCMAP_WRITABLE |	\
			 PROCMAP_EXECUTABLE | PROCMAP_SHARED)
#define FILTERS		(PERMISSIONS | PROCMAP_FILE_BACKED)

/**
 * struct name_buffer - where the name of a mapping stands
 * @bytes: the name, or NULL if nothing has been allocated yet.
 * @size: bytes allocated.
 */
struct name_buffer {
	char *bytes;
	size_t size;
};

/**
 * struct text - the lines of maps or smaps, read as they are needed
 * @fd: the file, or -1: all of the text is in @bytes, and not ours.
 * @pos: how much of the file has been read.
 * @bytes: what has been read last.
 * @size: bytes allocated, 0 if they are not ours.
 * @begin: where in @bytes the next line begins.
 * @end: where in @bytes that ends which has been read.
 * @passed: no mapping is left in the text that ends at or below this address.
 * @seen_line: a line has been found.
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
 * struct scan - mappings that PROCMAP_SCAN has told, and are handed out one by one
 * @vmas: the mappings.
 * @data: their names and build IDs.
 * @data_used: bytes of @data.
 * @nr: how many mappings there are.
 * @next: the first of them that may still be handed out.
 * @hits: how many have been.
 * @from: where the scan began.
 * @to: where it ended: between the two, there are no other mappings.
 * @passed: no address below this one has been asked for since the last restart.
 * @flags: what was asked for.
 * @batch: how many mappings were asked for, 0 if none have been.
 * @room: how many there is room for.
 * @queries: addresses that have been asked for by single queries.
 * @patience: after so many of them, a scan is tried.
 */
struct scan {
	struct procmap_vma *vmas;
	char *data;
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
 * @way: PROCMAP_BY_SCAN, PROCMAP_BY_IOCTL or PROCMAP_BY_TEXT.
 * @fd: the maps file, -1 for a saved text.
 * @own_fd: @fd is ours.
 * @dir: the process' directory in /proc, opened with O_PATH; -1 if unknown.
 * @maps: the text of maps.
 * @smaps: the text of smaps, opened when it is needed first.
 * @walk: the one of the two that procmap_next() goes on in, or NULL.
 * @scan: what has been told in advance, by scan.
 * @name: the name of the mapping that was found last.
 * @last: the mapping whose file a build ID was read from last, by text and since
 *	the text was read from its beginning; its inode is 0 if there is none.
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
 * Open anew, for reading, what is open as @fd: most who hold a file may, and it
 * is theirs alone then. Returns the new one or -errno.
 */
hidden int reopen(int fd);

/*
 * Make room for @size bytes in all. Returns 0 or -ENOMEM.
 */
hidden int name_reserve(struct name_buffer *name, size_t size);

/*
 * Write each newline in a name of @len bytes, which is counted anew, as the text
 * does. Returns 0 or -ENOMEM.
 */
hidden int escape_name(struct name_buffer *name, size_t *len);

/* Go back to the first line. */
hidden void text_restart(struct text *text);

/* Free what it holds, the file included. */
hidden void text_close(struct text *text);

/*
 * Find the next line of a mapping that ends above @addr and passes the filters
 * in @flags. Returns 0, -ENOENT, -ESRCH, -EBADMSG, or what read(2) and malloc(3)
 * say.
 */
hidden int text_next(struct text *text, uint64_t addr, unsigned int flags,
		     struct procmap_mapping *mapping, struct name_buffer *name);

/*
 * Is it the text of a maps file, as far as its first line tells? Returns 0,
 * -EINVAL, -ESRCH if it is empty, or what read(2) says.
 */
hidden int text_probe(struct text *text);

/*
 * Find the first mapping that ends above @addr and passes the filters, in rising
 * order: after @restart, no address is below the one before. Returns as
 * procmap_find().
 */
hidden int find_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
		     bool restart, struct procmap_mapping *mapping);

/* The same by a query, which is good for any address. */
hidden int find_by_ioctl(struct procmap *procmap, uint64_t addr,
			 unsigned int flags, struct procmap_mapping *mapping);

#ifdef PROCMAP_SCAN
/* Returns 0 if there is a PROCMAP_SCAN, or what the ioctl says. */
hidden int scan_probe(int fd);

/* The same as find_from(), by scan. */
hidden int scan_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		     bool restart, struct procmap_mapping *mapping);

/* Free what it holds. */
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

/* Read the build ID of a file into @mapping, by text. */
hidden void find_build_id(struct procmap *procmap,
			  struct procmap_mapping *mapping);

/* Look for the build ID of an ELF file. Returns its size, or 0. */
hidden int read_build_id(int fd, uint8_t id[PROCMAP_BUILD_ID_MAX]);

#endif /* PROCMAP_INTERNAL_H */
