/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests of PROCMAP_SCAN: the call itself, and the text of the same file,
 * with which its records are compared.
 */
#ifndef PROCMAP_SCAN_TEST_H
#define PROCMAP_SCAN_TEST_H

#include <sys/mman.h>

#include "procmap-query.h"

#if __has_include("linux/procmap_scan.h")
#include <linux/procmap_scan.h>

/* Without it, a program is built without its tests of the scan. */
#define HAVE_PROCMAP_SCAN

#define NAMES		PROCMAP_SCAN_NAMES
#define BUILD_IDS	PROCMAP_SCAN_BUILD_IDS
#define ALL		(NAMES | BUILD_IDS)

#define PERMISSIONS	(PROCMAP_VMA_READABLE | PROCMAP_VMA_WRITABLE | \
			 PROCMAP_VMA_EXECUTABLE | PROCMAP_VMA_SHARED)
#define SCAN_FILTERS	(PERMISSIONS | PROCMAP_VMA_FILE_BACKED)

/* The end of a range that has all mappings. */
#define NO_END		(~0ull)

/* The array and the data buffer of a scan. */
struct room {
	struct procmap_vma *vec;
	char *data;
	uint32_t vec_len;
	uint32_t data_size;
};

/* The fields of a mapping that the text does not show, by PROCMAP_QUERY. */
struct extra {
	uint64_t page_size;
	char *name;		/* as raw bytes, NULL if there is none */
	uint32_t name_size;
	uint32_t build_id_size;
	uint8_t build_id[20];
	bool too_long;		/* the name is longer than PATH_MAX */
};

struct truth {
	struct maps maps;
	struct extra *extras;
	bool is_resident;	/* all files that are looked at are in memory */
};

/* Run a scan and return the number of records or -errno. */
static inline int procmap_scan(int fd, struct procmap_scan_arg *arg)
{
	const int nr = ioctl(fd, PROCMAP_SCAN, arg);

	return nr < 0 ? -errno : nr;
}

/* Skip the test, in its setup, if this kernel has no PROCMAP_SCAN. */
static inline void skip_without_scan(struct __test_metadata *const _metadata)
{
	struct procmap_scan_arg arg = {};
	const int fd = open_maps(0);
	const int err = procmap_scan(fd, &arg);

	close(fd);
	if (err == -ENOTTY)
		SKIP_SETUP("this kernel has no PROCMAP_SCAN");
}

/* Map pages. They are not in memory until they are written to. */
static inline void *map_room(size_t size)
{
	void *const addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

static inline bool make_room(struct room *room, uint32_t vec_len,
			     uint32_t data_size)
{
	room->vec_len = vec_len;
	room->data_size = data_size;
	room->vec = map_room(vec_len * sizeof(*room->vec));
	room->data = data_size ? map_room(data_size) : NULL;
	return room->vec && (room->data || !data_size);
}

/* Without filters, which the caller can set. */
static inline struct procmap_scan_arg scan_arg(const struct room *room,
					       uint64_t start, uint64_t end,
					       uint64_t want)
{
	return (struct procmap_scan_arg) {
		.size = sizeof(struct procmap_scan_arg),
		.want = want,
		.start = start,
		.end = end,
		.vec = (uintptr_t)room->vec,
		.vec_len = room->vec_len,
		.vma_size = sizeof(struct procmap_vma),
		.data = (uintptr_t)room->data,
		.data_size = room->data_size,
	};
}

static inline const struct procmap_vma *
record_at(const struct procmap_scan_arg *arg, size_t i)
{
	return (void *)(uintptr_t)(arg->vec + i * arg->vma_size);
}

static inline const char *data_at(const struct procmap_scan_arg *arg,
				  uint32_t offset)
{
	return (void *)(uintptr_t)(arg->data + offset);
}

/* These bytes are at the offset, within the used part of the data. */
static inline bool data_matches(const struct procmap_scan_arg *arg, uint32_t offset,
				const void *bytes, uint32_t size)
{
	return !size || (offset <= arg->data_used &&
			 size <= arg->data_used - offset &&
			 !memcmp(data_at(arg, offset), bytes, size));
}

/* Returns 0, -errno, or -EAGAIN if the mapping has changed since. */
static inline int read_extra(int fd, const struct maps_line *line,
			     struct extra *extra)
{
	static char name[PATH_MAX], escaped[4 * PATH_MAX + 16];
	struct procmap_query query;
	int err;

	err = query_build_id(fd, line->start, &query, extra->build_id,
			     sizeof(extra->build_id));
	if (err)
		return err;
	extra->build_id_size = query.build_id_size;
	extra->page_size = query.vma_page_size;

	name[0] = '\0';
	err = query_name(fd, line->start, 0, &query, name, sizeof(name));
	extra->too_long = err == -ENAMETOOLONG;
	if (extra->too_long)
		return strlen(line->name) < PATH_MAX ? -EAGAIN : 0;
	if (err)
		return err;
	escape_name(name, escaped, sizeof(escaped));
	if (!same_fields(line, &query) || strcmp(line->name, escaped))
		return -EAGAIN;
	extra->name_size = query.vma_name_size;
	extra->name = query.vma_name_size ? strdup(name) : NULL;
	return 0;
}

static inline void free_truth(struct truth *truth)
{
	size_t i;

	for (i = 0; truth->extras && i < truth->maps.nr; i++)
		free(truth->extras[i].name);
	free(truth->extras);
	truth->extras = NULL;
	free_maps(&truth->maps);
}

/* Returns 0, -errno, or -EAGAIN if the mappings change meanwhile. */
static inline int read_truth(int fd, struct truth *truth)
{
	size_t i;
	int err;

	truth->extras = NULL;
	truth->is_resident = false;
	err = read_maps(fd, &truth->maps);
	if (err)
		return err;
	truth->extras = calloc(truth->maps.nr + 1, sizeof(*truth->extras));
	if (!truth->extras)
		err = -ENOMEM;
	for (i = 0; !err && i < truth->maps.nr; i++)
		err = read_extra(fd, &truth->maps.lines[i], &truth->extras[i]);
	if (err)
		free_truth(truth);
	return err == -ENOENT ? -EAGAIN : err;
}

/* The first line that ends above the address: its index, or that past all. */
static inline size_t first_line(const struct maps *maps, uint64_t addr)
{
	size_t low = 0, high = maps->nr;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (maps->lines[middle].end > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The flags of a record of the line, apart from a name too long. */
static inline uint64_t flags_of_line(const struct maps_line *line)
{
	return line->flags | (is_file(line) ? PROCMAP_VMA_FILE_BACKED : 0);
}

/* The first line from the @i-th on that a scan has to return: its index. */
static inline size_t next_line(const struct maps *maps, size_t i,
			       const struct procmap_scan_arg *arg)
{
	if (arg->start == arg->end)
		return maps->nr;
	while (i < maps->nr && maps->lines[i].start < arg->end &&
	       arg->filter & ~flags_of_line(&maps->lines[i]))
		i++;
	return i < maps->nr && maps->lines[i].start < arg->end ? i : maps->nr;
}

/* Bytes of data that a line needs if it shares none. */
static inline uint32_t data_size_of(const struct extra *extra, uint64_t want)
{
	return (want & NAMES ? extra->name_size : 0) +
	       (want & BUILD_IDS ? extra->build_id_size : 0);
}

/* A scan may leave out the build ID if it would have to be read. */
static inline bool may_be_unread(const struct truth *truth, size_t i,
				 const struct procmap_scan_arg *arg)
{
	return !truth->is_resident && arg->want & BUILD_IDS &&
	       is_file(&truth->maps.lines[i]);
}

/* Check a record. Returns its fault, or "". */
static inline const char *wrong_record(const struct truth *truth, size_t i,
				       const struct procmap_scan_arg *arg,
				       const struct procmap_vma *record)
{
	const struct maps_line *const line = &truth->maps.lines[i];
	const struct extra *const extra = &truth->extras[i];
	const bool not_read = may_be_unread(truth, i, arg) &&
			      record->flags & PROCMAP_VMA_BUILD_ID_NOT_READ;
	const uint32_t name_size = arg->want & NAMES ? extra->name_size : 0;
	const uint32_t id_size = arg->want & BUILD_IDS && !not_read ?
				 extra->build_id_size : 0;
	uint64_t flags = flags_of_line(line);

	if (arg->want & NAMES && extra->too_long)
		flags |= PROCMAP_VMA_NAME_TOO_LONG;
	if (not_read)
		flags |= PROCMAP_VMA_BUILD_ID_NOT_READ;

	if (record->start != line->start || record->end != line->end)
		return "range";
	if (record->flags != flags)
		return "flags";
	if (record->offset != (is_file(line) ? line->offset : 0))
		return "offset";
	if (record->inode != line->inode ||
	    record->dev_major != line->dev_major ||
	    record->dev_minor != line->dev_minor)
		return "file";
	if (record->page_size != extra->page_size)
		return "page size";

	if (record->name_size != name_size ||
	    !data_matches(arg, record->name_offset, extra->name, name_size))
		return "name";
	if (record->build_id_size != id_size ||
	    !data_matches(arg, record->build_id_offset, extra->build_id, id_size))
		return "build ID";
	return "";
}

/*
 * Check the first @nr records. Sets @next to the line that a scan has to return next,
 * and @data_used to the end of the data of those before. Returns their fault, or "".
 */
static inline const char *wrong_records(const struct truth *truth,
					const struct procmap_scan_arg *arg,
					size_t nr, size_t *next,
					uint32_t *data_used)
{
	const struct maps *const maps = &truth->maps;
	const char *wrong;
	size_t n, i;

	i = next_line(maps, first_line(maps, arg->start), arg);
	for (n = 0; n < nr; n++, i = next_line(maps, i + 1, arg)) {
		const struct procmap_vma *const record = record_at(arg, n);
		const uint32_t name_end = record->name_offset +
					  record->name_size;
		const uint32_t id_end = record->build_id_offset +
					record->build_id_size;

		if (i == maps->nr)
			return "too many records";
		wrong = wrong_record(truth, i, arg, record);
		if (*wrong)
			return wrong;
		if (record->name_size && name_end > *data_used)
			*data_used = name_end;
		if (record->build_id_size && id_end > *data_used)
			*data_used = id_end;
	}
	*next = i;
	return "";
}

/*
 * Check the first @nr records, and the outputs of a call that may have ended anywhere.
 * Sets @next to the line to be returned next. Returns a fault, or "".
 */
static inline const char *wrong_part(const struct truth *truth,
				     const struct procmap_scan_arg *arg,
				     size_t nr, size_t *next)
{
	uint32_t data_used = 0;
	const char *wrong;
	uint64_t low;

	if (nr > arg->vec_len)
		return "more records than vec_len";
	wrong = wrong_records(truth, arg, nr, next, &data_used);
	if (*wrong)
		return wrong;
	if (arg->data_used != data_used || data_used > arg->data_size)
		return "data_used";
	if (arg->flags && (arg->flags != PROCMAP_SCAN_CHANGED ||
			   !arg->generation))
		return "flags of the call";
	if (arg->walk_end == arg->end)
		return *next < truth->maps.nr ? "too few records" : "";

	low = nr ? record_at(arg, nr - 1)->end : arg->start;
	if (arg->walk_end < low || arg->walk_end > arg->end)
		return "walk_end";
	if (*next < truth->maps.nr && arg->walk_end != arg->start &&
	    arg->walk_end > truth->maps.lines[*next].start)
		return "walk_end past the next";
	return "";
}

/*
 * Compare the result of a scan, a number of records or -errno, with the truth. It may
 * have ended early for want of room, and for no other reason. Returns a fault, or "".
 */
static inline const char *wrong_scan(const struct truth *truth,
				     const struct procmap_scan_arg *arg, int nr)
{
	const size_t returned = nr < 0 ? 0 : nr;
	const char *wrong;
	uint32_t needed;
	size_t next = 0;

	if (nr < 0 && nr != -ENOSPC)
		return strerror(-nr);
	wrong = wrong_part(truth, arg, returned, &next);
	if (*wrong)
		return wrong;
	if (nr != -ENOSPC && !arg->data_needed) {
		/* A full array ends the scan, even if no mapping is left. */
		return arg->walk_end == arg->end || returned == arg->vec_len ?
		       "" : "an end too early";
	}

	if (returned && nr == -ENOSPC)
		return "ENOSPC after a record";
	if (!returned && nr != -ENOSPC)
		return "no ENOSPC";
	if (arg->walk_end == arg->end || next == truth->maps.nr)
		return "no data is needed at the end";
	needed = data_size_of(&truth->extras[next], arg->want);
	if (may_be_unread(truth, next, arg) && arg->data_needed < needed)
		needed = data_size_of(&truth->extras[next], arg->want & NAMES);
	if (arg->data_needed != needed)
		return "data_needed";
	return needed <= arg->data_size - arg->data_used ?
	       "the data has room for the next" : "";
}

/* Let the next call begin where the last one ended. */
static inline void continue_scan(struct procmap_scan_arg *arg)
{
	arg->start = arg->walk_end;
}

/*
 * Scan the whole range of @arg, from walk_end each time, and with as much of the
 * room's data as is needed if a record does not fit. Adds the number of calls to
 * @calls. Returns a fault, or "".
 */
static inline const char *wrong_walk(int fd, const struct truth *truth,
				     const struct room *room,
				     struct procmap_scan_arg arg, size_t *calls)
{
	const uint32_t data_size = arg.data_size;
	/* Each call returns a record, or how much data the next one needs. */
	size_t left = 2 * truth->maps.nr + 2;
	const char *wrong;
	int nr;

	for (; left; left--, continue_scan(&arg)) {
		arg.data = arg.data_size ? (uintptr_t)room->data : 0;
		nr = procmap_scan(fd, &arg);
		++*calls;
		wrong = wrong_scan(truth, &arg, nr);
		if (*wrong || arg.walk_end == arg.end)
			return wrong;
		arg.data_size = nr == -ENOSPC ? arg.data_needed : data_size;
		if (arg.data_size > room->data_size)
			return "a need for more data than there can be";
	}
	return "a walk without an end";
}

#endif /* __has_include("linux/procmap_scan.h") */
#endif /* PROCMAP_SCAN_TEST_H */
