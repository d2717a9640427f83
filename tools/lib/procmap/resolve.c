// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Many addresses at once: they are taken in rising order, so that each mapping,
 * and each gap, is asked for once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* qsort_r() */
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define FLAGS	(FILTERS | PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_PAGE_SIZE)

/**
 * struct resolution - what is handed out, and what is needed to make it
 * @public: what the caller sees.
 * @size_mappings: how many there is room for.
 * @names: the names, each with its NUL; a mapping's is an offset in it until
 *	all have been found.
 * @names_len: bytes used of it.
 * @name_at: where the name of the last mapping is.
 */
struct resolution {
	struct procmap_resolved public;
	size_t size_mappings;
	struct name_buffer names;
	size_t names_len;
	size_t name_at;
};

static bool is_rising(const uint64_t *addrs, size_t nr_addrs)
{
	size_t i;

	for (i = 1; i < nr_addrs; i++)
		if (addrs[i - 1] > addrs[i])
			return false;
	return true;
}

static int by_address(const void *a, const void *b, void *context)
{
	const uint64_t *const addrs = context;
	const uint64_t x = addrs[*(const size_t *)a];
	const uint64_t y = addrs[*(const size_t *)b];

	return (x > y) - (x < y);
}

/* The indexes of the addresses in rising order; NULL if there is no memory. */
static size_t *order_of(const uint64_t *addrs, size_t nr_addrs)
{
	size_t *const order = calloc(nr_addrs, sizeof(*order));
	size_t i;

	if (!order)
		return NULL;
	for (i = 0; i < nr_addrs; i++)
		order[i] = i;
	if (!is_rising(addrs, nr_addrs))
		qsort_r(order, nr_addrs, sizeof(*order), by_address,
			(void *)addrs);
	return order;
}

/* Neighbours have the same name more often than not. */
static int add_name(struct resolution *new,
		    const struct procmap_mapping *mapping)
{
	const size_t len = mapping->name_len + 1;
	int err;

	if (new->names_len &&
	    !strcmp(new->names.bytes + new->name_at, mapping->name))
		return 0;
	err = name_reserve(&new->names, new->names_len + len);
	if (err)
		return err;
	memcpy(new->names.bytes + new->names_len, mapping->name, len);
	new->name_at = new->names_len;
	new->names_len += len;
	return 0;
}

static int add_mapping(struct resolution *new,
		       const struct procmap_mapping *mapping)
{
	struct procmap_resolved *const public = &new->public;
	struct procmap_mapping *mappings;
	int err;

	if (public->nr_mappings == new->size_mappings) {
		const size_t size = new->size_mappings * 2 + 16;

		if (size >= PROCMAP_NOT_MAPPED)
			return -ENOMEM;
		mappings = realloc(public->mappings, size * sizeof(*mappings));
		if (!mappings)
			return -ENOMEM;
		public->mappings = mappings;
		new->size_mappings = size;
	}
	err = add_name(new, mapping);
	if (err)
		return err;
	mappings = &public->mappings[public->nr_mappings++];
	*mappings = *mapping;
	mappings->name = (const char *)(uintptr_t)new->name_at;
	return 0;
}

static void set_names(struct resolution *new)
{
	size_t i;

	for (i = 0; i < new->public.nr_mappings; i++) {
		struct procmap_mapping *const mapping = &new->public.mappings[i];

		mapping->name = new->names.bytes + (uintptr_t)mapping->name;
	}
}

static int resolve(struct procmap *procmap, const uint64_t *addrs,
		   const size_t *order, unsigned int flags,
		   struct resolution *new)
{
	struct procmap_mapping found = { .end = 0 };
	bool at_end = false, added = false;
	size_t i;
	int err;

	for (i = 0; i < new->public.nr_places; i++) {
		const uint64_t addr = addrs[order[i]];
		struct procmap_place *const place = &new->public.places[order[i]];

		if (!at_end && addr >= found.end) {
			err = find_from(procmap, addr, flags, !i, &found);
			if (err && err != -ENOENT)
				return err;
			at_end = err == -ENOENT;
			added = false;
		}
		if (at_end || addr < found.start) {
			place->mapping = PROCMAP_NOT_MAPPED;
			continue;
		}
		if (!added) {
			err = add_mapping(new, &found);
			if (err)
				return err;
			added = true;
		}
		place->mapping = new->public.nr_mappings - 1;
		if (has_file(&found))
			place->offset = found.offset + (addr - found.start);
	}
	return 0;
}

int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    struct procmap_resolved **resolved)
{
	struct resolution *new;
	size_t *order;
	int err = -ENOMEM;

	if (!procmap || !addrs || !nr_addrs || (flags & ~FLAGS) || !resolved)
		return -EINVAL;
	order = order_of(addrs, nr_addrs);
	new = calloc(1, sizeof(*new));
	if (new) {
		new->public.nr_places = nr_addrs;
		new->public.places = calloc(nr_addrs,
					    sizeof(*new->public.places));
	}
	if (order && new && new->public.places)
		err = resolve(procmap, addrs, order, flags, new);
	free(order);
	if (err) {
		procmap_free_resolved(new ? &new->public : NULL);
		return err;
	}
	set_names(new);
	*resolved = &new->public;
	return 0;
}

void procmap_free_resolved(struct procmap_resolved *resolved)
{
	/* It stands at the beginning of the other. */
	struct resolution *const new = (struct resolution *)resolved;

	if (!resolved)
		return;
	free(resolved->places);
	free(resolved->mappings);
	free(new->names.bytes);
	free(new);
}
