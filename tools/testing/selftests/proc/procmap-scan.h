/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of PROCMAP_SCAN share: the call itself, and the truth, to which
 * its records are compared: the text of the same file.
 */
#ifndef PROCMAP_SCAN_TEST_H
#define PROCMAP_SCAN_TEST_H

#include <linux/procmap_scan.h>
#include <sys/mman.h>

#include "procmap-query.h"

#define NAMES		PROCMAP_SCAN_NAMES
#define BUILD_IDS	PROCMAP_SCAN_BUILD_IDS

/* The end of a range that has all mappings. */
#define NO_END		(~0ull)

/* What a scan may write to. */
struct room {
	struct procmap_vma *vec;
	char *data;
	uint32_t vec_len;
	uint32_t data_size;
};

/* What the text does not show of a mapping, as PROCMAP_QUERY returns it. */
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
};

/* Random numbers, the same for the same seed, which is not 0. */
static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

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

static inline void free_room(struct room *room)
{
	munmap(room->vec, room->vec_len * sizeof(*room->vec));
	if (room->data)
		munmap(room->data, room->data_size);
}

static inline struct procmap_scan_arg ask(const struct room *room,
					  uint64_t start, uint64_t end,
					  uint64_t flags)
{
	return (struct procmap_scan_arg) {
		.size = sizeof(struct procmap_scan_arg),
		.flags = flags,
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

/* Are these bytes at the offset, within the used part of the data? */
static inline bool is_data(const struct procmap_scan_arg *arg, uint32_t offset,
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

/* The first line from the @i-th on that a scan has to return: its index. */
static inline size_t next_line(const struct maps *maps, size_t i,
			       const struct procmap_scan_arg *arg)
{
	if (arg->start == arg->end)
		return maps->nr;
	while (i < maps->nr && maps->lines[i].start < arg->end &&
	       !passes(&maps->lines[i], arg->flags))
		i++;
	return i < maps->nr && maps->lines[i].start < arg->end ? i : maps->nr;
}

/* Bytes of data that a line needs if it shares none. */
static inline uint32_t data_of(const struct extra *extra, uint64_t flags)
{
	return (flags & NAMES ? extra->name_size : 0) +
	       (flags & BUILD_IDS ? extra->build_id_size : 0);
}

/* What is wrong with a record, or "". */
static inline const char *wrong_record(const struct truth *truth, size_t i,
				       const struct procmap_scan_arg *arg,
				       const struct procmap_vma *record)
{
	const struct maps_line *const line = &truth->maps.lines[i];
	const struct extra *const extra = &truth->extras[i];
	const uint32_t name_size = arg->flags & NAMES ? extra->name_size : 0;
	const uint32_t id_size = arg->flags & BUILD_IDS ?
				 extra->build_id_size : 0;
	const uint64_t cut = line->start < arg->start ?
			     arg->start - line->start : 0;

	if (record->start != line->start + cut || record->end != line->end)
		return "range";
	if (record->flags != line->flags)
		return "flags";
	if (record->offset != (is_file(line) ? line->offset + cut : 0))
		return "offset";
	if (record->inode != line->inode ||
	    record->dev_major != line->dev_major ||
	    record->dev_minor != line->dev_minor)
		return "file";
	if (record->page_size != extra->page_size)
		return "page size";

	if (record->name_size != name_size ||
	    !is_data(arg, record->name_offset, extra->name, name_size))
		return "name";
	if (record->build_id_size != id_size ||
	    !is_data(arg, record->build_id_offset, extra->build_id, id_size))
		return "build ID";
	return "";
}

/*
 * What is wrong with the first @nr records, or "". Sets @next to the line that a
 * scan has to return next, and @data_used to the end of the data of those before.
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
 * Compare the result of a scan, a number of records or -errno, to the truth.
 * Returns what is wrong with it, or "".
 */
static inline const char *wrong_scan(const struct truth *truth,
				     const struct procmap_scan_arg *arg, int nr)
{
	const size_t returned = nr < 0 ? 0 : nr;
	const struct extra *extra;
	uint32_t data_used = 0;
	const char *wrong;
	size_t next = 0;
	uint64_t low;

	if (nr < 0 && nr != -ENOSPC && nr != -ENAMETOOLONG)
		return strerror(-nr);
	if (returned > arg->vec_len)
		return "more records than vec_len";
	wrong = wrong_records(truth, arg, returned, &next, &data_used);
	if (*wrong)
		return wrong;
	if (nr >= 0 && arg->data_used != data_used)
		return "data_used";
	if (arg->walk_end == arg->end)
		return nr < 0 ? "walk_end of an error" :
		       next < truth->maps.nr ? "too few records" : "";

	/* A full array ends the scan, even if no mapping is left. */
	low = returned ? record_at(arg, returned - 1)->end : arg->start;
	if (arg->walk_end < low || arg->walk_end > arg->end)
		return "walk_end";
	if (next == truth->maps.nr)
		return returned < arg->vec_len ? "walk_end of all" : "";
	if (arg->walk_end > truth->maps.lines[next].start &&
	    arg->walk_end != arg->start)
		return "walk_end past the next";
	if (returned == arg->vec_len)
		return "";

	extra = &truth->extras[next];
	if (arg->flags & NAMES && extra->too_long)
		return returned || nr == -ENAMETOOLONG ? "" : "a path too long";
	/* It needs less if it shares data with another record. */
	if (data_of(extra, arg->flags) <= arg->data_size - data_used ||
	    (!returned && nr != -ENOSPC))
		return "an end too early";
	if (!returned && arg->data_used != data_of(extra, arg->flags))
		return "data_used after ENOSPC";
	return "";
}

/* Where the mapping ends that an error is about. */
static inline uint64_t end_of_next(const struct truth *truth,
				   const struct procmap_scan_arg *arg)
{
	const struct maps *const maps = &truth->maps;
	const size_t i = next_line(maps, first_line(maps, arg->walk_end), arg);

	return maps->lines[i].end;
}

/*
 * Scan the whole range of @arg, from walk_end each time: with more of the room's
 * data if a record does not fit, and past a path that is too long. Returns what
 * is wrong, or "". Adds the number of calls to @calls.
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

	for (; left; left--, arg.start = arg.walk_end) {
		arg.data = arg.data_size ? (uintptr_t)room->data : 0;
		nr = procmap_scan(fd, &arg);
		++*calls;
		wrong = wrong_scan(truth, &arg, nr);
		if (!*wrong && nr == -ENOSPC && arg.data_used > room->data_size)
			wrong = "a need for more data than there can be";
		if (!*wrong && nr == -ENAMETOOLONG)
			arg.walk_end = end_of_next(truth, &arg);
		if (*wrong || arg.walk_end >= arg.end)
			return wrong;
		arg.data_size = nr == -ENOSPC ? arg.data_used : data_size;
	}
	return "a walk without an end";
}

#endif /* PROCMAP_SCAN_TEST_H */
