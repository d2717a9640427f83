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
 * @generation: that of the address space while the mappings were read; 0 if it changed or
 *	is unknown.
 * @all: the mappings.
 * @slots: where to search them.
 */
struct procmap_snapshot {
	unsigned int flags;
	const struct procmap *procmap;
	unsigned int programs;
	uint64_t generation;
	struct collection all;
	struct slots slots;
};

_Static_assert(offsetof(struct procmap_mapping, end) == offsetof(struct range, end),
	       "range");

static void empty_snapshot(struct procmap_snapshot *snapshot)
{
	free_collection(&snapshot->all);
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
			err = collect(&snapshot->all, mapping);
	}
	if (err == -ENOENT)
		err = generation_of(procmap, &after);
	if (err)
		return err;
	snapshot->procmap = procmap;
	snapshot->programs = procmap->programs;
	snapshot->generation = after == before ? before : 0;
	end_collection(&snapshot->all);
	return slots_make(&snapshot->slots, snapshot->all.mappings, sizeof(*mapping),
			  snapshot->all.nr);
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

/* Return whether two mappings are equal in the fields that @flags asks for. */
static bool is_equal(const struct procmap_mapping *a,
		     const struct procmap_mapping *b, unsigned int flags)
{
	const unsigned int ignored = flags & PROCMAP_WANT_DELETED ?
				     0 : DELETED_FLAGS;

	return a->start == b->start && a->end == b->end &&
	       a->offset == b->offset && same_file(a, b) &&
	       !((a->flags ^ b->flags) & ~ignored) &&
	       (!a->page_size || !b->page_size ||
		a->page_size == b->page_size) &&
	       a->name_len == b->name_len &&
	       !memcmp(a->name, b->name, a->name_len) &&
	       (!(flags & PROCMAP_WANT_BUILD_ID) || same_build_id(a, b));
}

static int stop_at_difference(void *context, const struct procmap_mapping *was,
			      const struct procmap_mapping *is)
{
	(void)context;
	(void)was;
	(void)is;
	return 1;
}

/* Without a change, what the caller has of the snapshot stays valid. */
static int replace_snapshot(struct procmap_snapshot *snapshot, struct procmap_snapshot *new)
{
	const struct procmap_snapshot old = *snapshot;

	if (!procmap_snapshot_compare(snapshot, new, stop_at_difference, NULL)) {
		snapshot->procmap = new->procmap;
		snapshot->programs = new->programs;
		snapshot->generation = new->generation;
		return 0;
	}
	*snapshot = *new;
	*new = old;
	return 1;
}

/* No generation tells that a file was deleted. */
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
		ret = replace_snapshot(snapshot, &new);
	empty_snapshot(&new);
	return ret;
}

int procmap_snapshot_is_consistent(const struct procmap_snapshot *snapshot)
{
	return snapshot && snapshot->generation;
}

size_t procmap_snapshot_count(const struct procmap_snapshot *snapshot)
{
	return snapshot ? snapshot->all.nr : 0;
}

const struct procmap_mapping *
procmap_snapshot_at(const struct procmap_snapshot *snapshot, size_t index)
{
	return snapshot && index < snapshot->all.nr ? &snapshot->all.mappings[index] : NULL;
}

const struct procmap_mapping *
procmap_snapshot_find(const struct procmap_snapshot *snapshot, uint64_t addr)
{
	const struct procmap_mapping *mappings;
	size_t at;

	if (!snapshot)
		return NULL;
	mappings = snapshot->all.mappings;
	at = slots_below(&snapshot->slots, mappings, sizeof(*mappings),
			 snapshot->all.nr, addr);
	return at < snapshot->all.nr && mappings[at].start <= addr ? &mappings[at] : NULL;
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
	empty_snapshot(snapshot);
	free(snapshot);
}
