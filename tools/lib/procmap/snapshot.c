// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * All mappings of a process at one time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/**
 * struct procmap_snapshot - see procmap.h
 * @flags: the caller's flags.
 * @procmap: the handle that it was taken from, which may be closed by now.
 * @programs: &procmap.programs of it.
 * @generation: that of the address space all the time while the mappings were read;
 *	0 if it changed or is unknown.
 * @nr: number of mappings.
 * @size: mappings that @mappings has room for.
 * @mappings: the mappings. Owned.
 * @names: their names, each with its NUL. Owned.
 * @names_len: bytes used of @names.
 * @slots: where to search @mappings.
 */
struct procmap_snapshot {
	unsigned int flags;
	const struct procmap *procmap;
	unsigned int programs;
	uint64_t generation;
	size_t nr;
	size_t size;
	struct procmap_mapping *mappings;
	struct name_buffer names;
	size_t names_len;
	struct slots slots;
};

_Static_assert(offsetof(struct procmap_mapping, end) == offsetof(struct range, end),
	       "range");

/* Until all mappings are there, a name is an offset in the buffer. */
static int add(struct procmap_snapshot *snapshot,
	       const struct procmap_mapping *mapping)
{
	const size_t size = mapping->name_len + 1;
	struct procmap_mapping *mappings;
	size_t at = snapshot->names_len;
	int err;

	if (snapshot->nr == snapshot->size) {
		const size_t more = snapshot->size * 2 + 64;

		mappings = realloc(snapshot->mappings, more * sizeof(*mappings));
		if (!mappings)
			return -ENOMEM;
		snapshot->mappings = mappings;
		snapshot->size = more;
	}
	/* Often, the name is that of the previous mapping. */
	if (snapshot->nr) {
		const struct procmap_mapping *const last =
			&snapshot->mappings[snapshot->nr - 1];

		if (last->name_len == mapping->name_len &&
		    !memcmp(snapshot->names.bytes + (uintptr_t)last->name,
			    mapping->name, size))
			at = (uintptr_t)last->name;
	}
	if (at == snapshot->names_len) {
		err = name_reserve(&snapshot->names, at + size);
		if (err)
			return err;
		memcpy(snapshot->names.bytes + at, mapping->name, size);
		snapshot->names_len += size;
	}
	mappings = &snapshot->mappings[snapshot->nr++];
	*mappings = *mapping;
	mappings->name = (const char *)(uintptr_t)at;
	return 0;
}

static int finish(struct procmap_snapshot *snapshot)
{
	size_t i;

	for (i = 0; i < snapshot->nr; i++) {
		struct procmap_mapping *const mapping = &snapshot->mappings[i];

		mapping->name = snapshot->names.bytes + (uintptr_t)mapping->name;
	}
	return slots_make(&snapshot->slots, snapshot->mappings,
			  sizeof(*snapshot->mappings), snapshot->nr);
}

static void empty(struct procmap_snapshot *snapshot)
{
	free(snapshot->mappings);
	free(snapshot->names.bytes);
	free(snapshot->slots.below);
}

static int generation_of(struct procmap *procmap, uint64_t *generation)
{
	int err = 0;

	if (method_of(procmap) == PROCMAP_BY_SCAN)
		err = scan_generation(procmap, generation);
	return lookup_error(procmap, err);
}

static int read_all(struct procmap *procmap, struct procmap_snapshot *snapshot)
{
	const struct procmap_mapping *mapping;
	uint64_t before = 0, after = 0, cursor = 0;
	int err;

	err = generation_of(procmap, &before);
	start_over(procmap);
	while (!err) {
		err = procmap_next(procmap, &cursor, snapshot->flags, &mapping);
		if (!err)
			err = add(snapshot, mapping);
	}
	if (err == -ENOENT)
		err = generation_of(procmap, &after);
	if (err)
		return err;
	snapshot->procmap = procmap;
	snapshot->programs = procmap->programs;
	snapshot->generation = after == before ? before : 0;
	return finish(snapshot);
}

int procmap_snapshot_take(struct procmap *procmap, unsigned int flags,
			  struct procmap_snapshot **snapshot)
{
	struct procmap_snapshot *new;
	int err;

	if (!procmap || !snapshot)
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->flags = flags;
	err = read_all(procmap, new);
	if (err)
		procmap_snapshot_free(new);
	else
		*snapshot = new;
	return err;
}

static bool same_build_id(const struct procmap_mapping *a,
			  const struct procmap_mapping *b)
{
	return a->build_id_size == b->build_id_size &&
	       (a->build_id_size <= 0 ||
		!memcmp(a->build_id, b->build_id, a->build_id_size));
}

/* Are two mappings equal in what @flags asks for? */
static bool is_equal(const struct procmap_mapping *a,
		     const struct procmap_mapping *b, unsigned int flags)
{
	const unsigned int ignored = flags & PROCMAP_WANT_DELETED ?
				     0 : PROCMAP_DELETED;

	return a->start == b->start && a->end == b->end &&
	       a->offset == b->offset && same_file(a, b) &&
	       !((a->flags ^ b->flags) & ~ignored) &&
	       (!a->page_size || !b->page_size ||
		a->page_size == b->page_size) &&
	       a->name_len == b->name_len &&
	       !memcmp(a->name, b->name, a->name_len) &&
	       (!(flags & PROCMAP_WANT_BUILD_ID) || same_build_id(a, b));
}

static int differs(void *context, const struct procmap_mapping *was,
		   const struct procmap_mapping *is)
{
	(void)context;
	(void)was;
	(void)is;
	return 1;
}

/* Without a change, what the caller has of the snapshot stays valid. */
static int replace(struct procmap_snapshot *snapshot, struct procmap_snapshot *new)
{
	const struct procmap_snapshot old = *snapshot;

	if (!procmap_snapshot_compare(snapshot, new, differs, NULL)) {
		snapshot->procmap = new->procmap;
		snapshot->programs = new->programs;
		snapshot->generation = new->generation;
		return 0;
	}
	*snapshot = *new;
	*new = old;
	return 1;
}

/* Whether a file was deleted has no generation. */
int procmap_snapshot_refresh(struct procmap_snapshot *snapshot,
			     struct procmap *procmap)
{
	struct procmap_snapshot new = { .flags = 0 };
	uint64_t generation;
	int ret;

	if (!snapshot || !procmap)
		return -EINVAL;
	generation = snapshot->generation;
	if (generation && snapshot->procmap == procmap &&
	    snapshot->programs == procmap->programs &&
	    !(snapshot->flags & PROCMAP_WANT_DELETED)) {
		ret = generation_of(procmap, &generation);
		if (ret || generation == snapshot->generation)
			return ret;
	}
	new.flags = snapshot->flags;
	ret = read_all(procmap, &new);
	if (!ret)
		ret = replace(snapshot, &new);
	empty(&new);
	return ret;
}

int procmap_snapshot_is_consistent(const struct procmap_snapshot *snapshot)
{
	return snapshot && snapshot->generation;
}

size_t procmap_snapshot_count(const struct procmap_snapshot *snapshot)
{
	return snapshot ? snapshot->nr : 0;
}

const struct procmap_mapping *
procmap_snapshot_at(const struct procmap_snapshot *snapshot, size_t index)
{
	return snapshot && index < snapshot->nr ? &snapshot->mappings[index] : NULL;
}

const struct procmap_mapping *
procmap_snapshot_find(const struct procmap_snapshot *snapshot, uint64_t addr)
{
	const struct procmap_mapping *mappings;
	size_t at;

	if (!snapshot)
		return NULL;
	mappings = snapshot->mappings;
	at = slots_below(&snapshot->slots, mappings, sizeof(*mappings),
			 snapshot->nr, addr);
	return at < snapshot->nr && mappings[at].start <= addr ? &mappings[at] : NULL;
}

int procmap_snapshot_compare(const struct procmap_snapshot *before,
			     const struct procmap_snapshot *after,
			     int (*changed)(void *context,
					    const struct procmap_mapping *was,
					    const struct procmap_mapping *is),
			     void *context)
{
	unsigned int flags;
	size_t i = 0, j = 0;
	int ret;

	if (!before || !after || !changed)
		return -EINVAL;
	flags = before->flags & after->flags;
	for (;;) {
		const struct procmap_mapping *was = procmap_snapshot_at(before, i);
		const struct procmap_mapping *is = procmap_snapshot_at(after, j);

		if (!was && !is)
			return 0;
		if (was && is && was->start < is->start)
			is = NULL;
		else if (was && is && is->start < was->start)
			was = NULL;
		i += !!was;
		j += !!is;
		if (was && is && is_equal(was, is, flags))
			continue;
		ret = changed(context, was, is);
		if (ret)
			return ret;
	}
}

void procmap_snapshot_free(struct procmap_snapshot *snapshot)
{
	if (!snapshot)
		return;
	empty(snapshot);
	free(snapshot);
}
