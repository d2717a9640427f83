// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Views of a table: the pieces of mappings, their records, and the files of those. */
#include <errno.h>
#include <search.h>
#include <string.h>

#include "table.h"

void *allocate(struct procmap_table *table, size_t size)
{
	void *const bytes = calloc(1, size);

	if (bytes)
		table->stats.bytes += size;
	return bytes;
}

void release(struct procmap_table *table, void *bytes, size_t size)
{
	if (bytes)
		table->stats.bytes -= size;
	free(bytes);
}

/* Make room for @nr entries of an array. Returns the array, or NULL. */
void *grow(struct procmap_table *table, void *array, size_t nr, size_t *size,
	   size_t entry)
{
	size_t more = *size + *size / 2 + 4;

	if (nr <= *size)
		return array;
	if (more < nr)
		more = nr;
	array = realloc(array, more * entry);
	if (!array)
		return NULL;
	table->stats.bytes += (more - *size) * entry;
	*size = more;
	return array;
}

void user_is_gone(const struct procmap_table *table, void *user)
{
	if (user && table->options.gone)
		table->options.gone(table->options.context, user);
}

/* Files */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int compare_build_ids(const struct procmap_mapping *a, const struct procmap_mapping *b)
{
	if (a->build_id_size != b->build_id_size)
		return a->build_id_size < b->build_id_size ? -1 : 1;
	return a->build_id_size <= 0 ? 0 :
	       memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* The observed process chooses the names: a balanced tree is fast whatever they are. */
static int compare_files(const void *one, const void *other)
{
	const struct procmap_mapping *const a = &((const struct file *)one)->mapping;
	const struct procmap_mapping *const b = &((const struct file *)other)->mapping;
	int order = compare_numbers(a->inode, b->inode);

	order = order ? order : compare_numbers(a->dev_major, b->dev_major);
	order = order ? order : compare_numbers(a->dev_minor, b->dev_minor);
	order = order ? order : compare_numbers(a->name_len, b->name_len);
	order = order ? order : memcmp(a->name, b->name, a->name_len);
	return order ? order : compare_build_ids(a, b);
}

/* Get the file of a mapping. */
static struct file *get_file(struct procmap_table *table,
			     const struct procmap_mapping *mapping)
{
	struct file wanted = { .mapping = *mapping }, *file, **known;

	known = tfind(&wanted, &table->files, compare_files);
	if (known) {
		(*known)->refs++;
		return *known;
	}
	file = allocate(table, sizeof(*file) + mapping->name_len + 1);
	if (!file)
		return NULL;
	file->refs = 1;
	memcpy(file->name, mapping->name, mapping->name_len);
	file->mapping = wanted.mapping;
	file->mapping.name = file->name;
	if (tsearch(file, &table->files, compare_files))
		return file;
	release(table, file, sizeof(*file) + mapping->name_len + 1);
	return NULL;
}

static void put_file(struct procmap_table *table, struct file *file)
{
	if (--file->refs)
		return;
	tdelete(file, &table->files, compare_files);
	release(table, file, sizeof(*file) + file->mapping.name_len + 1);
}

/* Records */

/* An event may have a build ID instead of the inode. */
static bool is_of_file(const struct procmap_mapping *mapping)
{
	return has_file(mapping) || mapping->name[0] == '/';
}

struct record *new_record(struct procmap_table *table,
			  const struct procmap_mapping *mapping)
{
	struct record *const record = allocate(table, sizeof(*record));

	if (!record)
		return NULL;
	record->file = get_file(table, mapping);
	if (!record->file) {
		release(table, record, sizeof(*record));
		return NULL;
	}
	record->refs = 1;
	record->start = mapping->start;
	record->end = mapping->end;
	record->offset = mapping->offset;
	record->page_size = mapping->page_size;
	record->flags = mapping->flags;
	record->is_of_file = is_of_file(mapping);
	table->stats.mappings++;
	return record;
}

void put_record(struct procmap_table *table, struct record *record)
{
	if (!record || --record->refs)
		return;
	user_is_gone(table, record->user);
	put_file(table, record->file);
	table->stats.mappings--;
	release(table, record, sizeof(*record));
}

/* Views */

struct view *new_view(struct procmap_table *table, enum extent extent)
{
	struct view *const view = allocate(table, sizeof(*view));

	if (!view)
		return NULL;
	view->refs = 1;
	view->extent = extent;
	return view;
}

static void drop_slots(struct procmap_table *table, struct view *view)
{
	if (!view->slots.nr)
		return;
	release(table, view->slots.below,
		(view->slots.nr + 1) * sizeof(*view->slots.below));
	view->slots = (struct slots) { .nr = 0 };
}

/* Without memory, the view is searched without slots. */
void make_slots(struct procmap_table *table, struct view *view)
{
	if (!view->slots.nr &&
	    !slots_make(&view->slots, view->pieces, sizeof(*view->pieces), view->nr) &&
	    view->slots.nr)
		table->stats.bytes += (view->slots.nr + 1) *
				      sizeof(*view->slots.below);
}

void put_view(struct procmap_table *table, struct view *view)
{
	size_t i;

	if (!view || --view->refs)
		return;
	for (i = 0; i < view->nr; i++)
		put_record(table, view->pieces[i].record);
	drop_slots(table, view);
	release(table, view->pieces, view->size * sizeof(*view->pieces));
	release(table, view, sizeof(*view));
}

/* Replace pieces from index @first up to @last. The view is not shared. */
int splice(struct procmap_table *table, struct view *view, size_t first, size_t last,
	   const struct piece *with, size_t nr)
{
	const size_t after = view->nr - last;
	struct piece *pieces;
	size_t i;

	if (!nr && first == last)
		return 0;
	pieces = grow(table, view->pieces, first + nr + after, &view->size,
		      sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	view->pieces = pieces;
	for (i = 0; i < nr; i++)
		get_record(with[i].record);
	for (i = first; i < last; i++)
		put_record(table, pieces[i].record);
	if (first + nr != last)
		memmove(pieces + first + nr, pieces + last, after * sizeof(*pieces));
	memcpy(pieces + first, with, nr * sizeof(*pieces));
	view->nr = first + nr + after;
	return 0;
}

struct view *copy_view(struct procmap_table *table, const struct view *view)
{
	struct view *const copy = new_view(table, view->extent);

	if (!copy || !splice(table, copy, 0, 0, view->pieces, view->nr))
		return copy;
	put_view(table, copy);
	return NULL;
}

static bool is_flat(const struct piece *pieces, size_t nr)
{
	size_t i;

	for (i = 1; i < nr; i++)
		if (pieces[i].start < pieces[i - 1].end)
			return false;
	return true;
}

/*
 * Merge two lists in rising order into @to; the first one covers the second. Returns the
 * number of pieces: each of the first list may divide one of the second.
 */
static size_t merge_pieces(const struct piece *above, size_t nr_above,
			   const struct piece *below, size_t nr_below, struct piece *to)
{
	struct piece *const begin = to;

	for (; nr_below; below++, nr_below--) {
		struct piece rest = *below;

		while (nr_above && above->end <= rest.start) {
			*to++ = *above++;
			nr_above--;
		}
		while (nr_above && above->start < rest.end) {
			if (rest.start < above->start) {
				*to = rest;
				to++->end = above->start;
			}
			rest.start = above->end;
			if (above->end > rest.end)
				break;
			*to++ = *above++;
			nr_above--;
		}
		if (rest.start < rest.end)
			*to++ = rest;
	}
	memcpy(to, above, nr_above * sizeof(*to));
	return to + nr_above - begin;
}

/*
 * Replace pieces, each of which covers those after it, by their visible parts in rising
 * order. @pieces and @spare have room for twice as many. Returns the number of parts.
 */
size_t flatten(struct piece *pieces, size_t nr, struct piece *spare)
{
	const size_t half = nr / 2;
	size_t nr_above, nr_below;

	if (is_flat(pieces, nr))
		return nr;
	memcpy(spare, pieces, half * sizeof(*pieces));
	memcpy(spare + 2 * half, pieces + half, (nr - half) * sizeof(*pieces));
	nr_above = flatten(spare, half, pieces);
	nr_below = flatten(spare + 2 * half, nr - half, pieces);
	return merge_pieces(spare, nr_above, spare + 2 * half, nr_below, pieces);
}

/*
 * Put a record in the place of earlier ones in the view. Later ones stay. The slots stay if
 * no range changes.
 */
int put_in_view(struct procmap_table *table, struct view *view, uint64_t from,
		struct record *record)
{
	const struct piece piece = { record->start, record->end, from, record };
	const size_t first = pieces_below(view, record->start);
	size_t i, last = first, nr = 0;
	struct piece *pieces;
	int err;

	while (last < view->nr && view->pieces[last].start < piece.end)
		last++;
	if (last == first + 1 && view->pieces[first].start == piece.start &&
	    view->pieces[first].end == piece.end)
		return view->pieces[first].from > from ? 0 :
		       splice(table, view, first, last, &piece, 1);

	pieces = malloc((last - first + 1) * 4 * sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (i = first; i < last; i++)
		if (view->pieces[i].from > from)
			pieces[nr++] = view->pieces[i];
	pieces[nr++] = piece;
	for (i = first; i < last; i++)
		if (view->pieces[i].from <= from)
			pieces[nr++] = view->pieces[i];
	nr = flatten(pieces, nr, pieces + 2 * nr);
	drop_slots(table, view);
	err = splice(table, view, first, last, pieces, nr);
	free(pieces);
	return err;
}
