// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers for the tests of PROCMAP_SCAN: scan, and compare the records with the text.
 */
#include "procmap_scan_util.h"

int procmap_scan(int fd, struct procmap_scan_arg *arg)
{
	return call_ioctl(fd, PROCMAP_SCAN, arg);
}

struct scan_buffers make_scan_buffers(uint32_t vec_len, uint32_t data_size)
{
	return (struct scan_buffers) {
		.vec = map_pages(vec_len * sizeof(struct procmap_vma)),
		.vec_len = vec_len,
		.data = data_size ? map_pages(data_size) : NULL,
		.data_size = data_size,
	};
}

struct procmap_scan_arg scan_arg(const struct scan_buffers *buffers, uint64_t start,
				 uint64_t end, uint64_t want)
{
	return (struct procmap_scan_arg) {
		.size = sizeof(struct procmap_scan_arg),
		.want = want,
		.start = start,
		.end = end,
		.vec = (uintptr_t)buffers->vec,
		.vec_len = buffers->vec_len,
		.vma_size = sizeof(struct procmap_vma),
		.data = (uintptr_t)buffers->data,
		.data_size = buffers->data_size,
	};
}

struct procmap_vma *record_at(const struct procmap_scan_arg *arg, size_t i)
{
	return (void *)(uintptr_t)(arg->vec + i * arg->vma_size);
}

/* These bytes are in the used part of the data. */
static bool is_in_data(const struct procmap_scan_arg *arg, uint32_t offset, uint32_t size)
{
	return offset <= arg->data_used && size <= arg->data_used - offset;
}

const char *name_of(const struct procmap_scan_arg *arg, const struct procmap_vma *record)
{
	const char *const name = (void *)(uintptr_t)(arg->data + record->name_offset);

	if (!record->name_size)
		return "";
	return is_in_data(arg, record->name_offset, record->name_size) &&
	       strnlen(name, record->name_size) == record->name_size - 1 ?
	       name : "a name that is not in the data";
}

bool has_build_id(const struct procmap_scan_arg *arg, const struct procmap_vma *record,
		  const void *id, uint32_t size)
{
	return record->build_id_size == size &&
	       (!size || (is_in_data(arg, record->build_id_offset, size) &&
			  !memcmp((void *)(uintptr_t)(arg->data + record->build_id_offset),
				  id, size)));
}

int read_build_ids(int fd, struct maps *maps)
{
	struct procmap_query query;
	struct maps_line *line;
	int err;

	for (line = maps->lines; line < maps->lines + maps->nr; line++) {
		err = query_build_id(fd, line->start, &query, line->build_id,
				     sizeof(line->build_id));
		if (err)
			return err;
		line->build_id_size = query.build_id_size;
	}
	return 0;
}

static uint64_t flags_of_line(const struct maps_line *line)
{
	return line->flags | (is_file(line) ? PROCMAP_VMA_FILE_BACKED : 0);
}

static bool is_too_long(const struct maps_line *line)
{
	return strlen(line->name) >= PATH_MAX;
}

const char *wrong_record(const struct procmap_scan_arg *arg,
			 const struct procmap_vma *record, const struct maps_line *line)
{
	const char *const name = name_of(arg, record);
	uint64_t flags = flags_of_line(line);

	if (arg->want & PROCMAP_SCAN_NAMES && is_too_long(line))
		flags |= PROCMAP_VMA_NAME_TOO_LONG;
	if (arg->want & PROCMAP_SCAN_BUILD_IDS && is_file(line) && !record->build_id_size)
		flags |= record->flags & PROCMAP_VMA_BUILD_ID_NOT_READ;
	if (record->flags != flags)
		return "flags";
	if (record->start != line->start || record->end != line->end)
		return "range";
	if (record->offset != line->offset || record->inode != line->inode ||
	    record->dev_major != line->dev_major || record->dev_minor != line->dev_minor)
		return "file";
	if (record->page_size != line->page_size)
		return "page size";
	if (!(arg->want & PROCMAP_SCAN_NAMES) || is_too_long(line)) {
		if (record->name_size)
			return "a name that is not wanted";
	} else if (!is_name(line, name) ||
		   record->name_size != (*name ? strlen(name) + 1 : 0)) {
		return "name";
	}
	if (!(arg->want & PROCMAP_SCAN_BUILD_IDS) ||
	    record->flags & PROCMAP_VMA_BUILD_ID_NOT_READ)
		return record->build_id_size ? "a build ID that is not wanted" : "";
	return has_build_id(arg, record, line->build_id, line->build_id_size) ? "" :
	       "build ID";
}

/* The first line from @i on that a scan has to return, or the end. */
static size_t next_line(const struct maps *maps, size_t i, const struct procmap_scan_arg *arg)
{
	while (i < maps->nr && maps->lines[i].start < arg->end &&
	       (maps->lines[i].end <= arg->start ||
		arg->filter & ~flags_of_line(&maps->lines[i])))
		i++;
	return i < maps->nr && maps->lines[i].start < arg->end && arg->start < arg->end ?
	       i : maps->nr;
}

/* Sets @next to the line that has to come next, and checks data_used. */
const char *wrong_records(const struct procmap_scan_arg *arg, int nr,
			  const struct maps *maps, size_t *next)
{
	uint32_t used = 0, end;
	const char *wrong;
	int n;

	*next = next_line(maps, 0, arg);
	for (n = 0; n < nr; n++, *next = next_line(maps, *next + 1, arg)) {
		const struct procmap_vma *const record = record_at(arg, n);

		if (*next == maps->nr)
			return "too many records";
		wrong = wrong_record(arg, record, &maps->lines[*next]);
		if (*wrong)
			return wrong;
		end = record->name_size ? record->name_offset + record->name_size : 0;
		used = end > used ? end : used;
		end = record->build_id_size ?
		      record->build_id_offset + record->build_id_size : 0;
		used = end > used ? end : used;
	}
	if (arg->data_used != used || used > arg->data_size)
		return "data_used";
	return "";
}

const char *wrong_scan(const struct procmap_scan_arg *arg, int nr, const struct maps *maps)
{
	const int returned = nr < 0 ? 0 : nr;
	const struct maps_line *line;
	const char *wrong;
	uint32_t name, id;
	uint64_t low;
	size_t next;

	if (nr < 0 && nr != -ENOSPC)
		return strerror(-nr);
	wrong = wrong_records(arg, returned, maps, &next);
	if (*wrong)
		return wrong;
	if (arg->flags & ~(PROCMAP_SCAN_QUERY_IS_BOUNDED |
			   (uint32_t)(arg->generation ? PROCMAP_SCAN_CHANGED : 0)))
		return "flags of the call";
	line = next < maps->nr ? &maps->lines[next] : NULL;
	if (arg->walk_end == arg->end)
		return line ? "too few records" : arg->data_needed ? "data_needed" : "";
	low = returned ? record_at(arg, returned - 1)->end : arg->start;
	if (arg->walk_end < low || arg->walk_end > arg->end ||
	    (line && arg->walk_end > line->start && arg->walk_end != arg->start))
		return "walk_end";
	/* A full array ends the scan, even if no mapping is left. */
	if (nr != -ENOSPC && !arg->data_needed)
		return (uint32_t)returned == arg->vec_len ? "" : "an end too early";

	if (!returned != (nr == -ENOSPC))
		return "ENOSPC if and only if there is no record";
	if (!line)
		return "no data is needed at the end";
	name = arg->want & PROCMAP_SCAN_NAMES && *line->name && !is_too_long(line) ?
	       strlen(line->name) + 1 : 0;
	id = arg->want & PROCMAP_SCAN_BUILD_IDS ? line->build_id_size : 0;
	/* An escape of the text is one byte, and an ID may have to be read. */
	if (arg->data_needed != name + id && arg->data_needed != name &&
	    !strstr(line->name, "\\012"))
		return "data_needed";
	return arg->data_needed <= arg->data_size - arg->data_used ?
	       "the data has room for the next" : "";
}

/* Each call returns a record, or how much data the next one needs. */
const char *wrong_walk(int fd, const struct scan_buffers *buffers,
		       struct procmap_scan_arg arg, const struct maps *maps)
{
	const uint32_t data_size = arg.data_size;
	size_t left = 2 * maps->nr + 2;
	const char *wrong;
	int nr;

	for (; left; left--, arg.start = arg.walk_end) {
		arg.data = arg.data_size ? (uintptr_t)buffers->data : 0;
		nr = procmap_scan(fd, &arg);
		wrong = wrong_scan(&arg, nr, maps);
		if (*wrong || arg.walk_end == arg.end)
			return wrong;
		arg.data_size = nr == -ENOSPC ? arg.data_needed : data_size;
		if (arg.data_size > buffers->data_size)
			return "a need for more data than there can be";
	}
	return "a walk without an end";
}
