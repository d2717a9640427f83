// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Copies of mappings and their names, in the order in which they are found.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Most names are paths of about this length, and several mappings have one. */
#define NAME_BYTES	16

static int reserve_mapping(struct collection *collection)
{
	const size_t size = collection->size * 2 + 32;
	struct procmap_mapping *mappings;

	if (collection->nr < collection->size)
		return 0;
	mappings = realloc(collection->mappings, size * sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	collection->mappings = mappings;
	collection->size = size;
	return 0;
}

static int reserve_name(struct collection *collection, size_t len)
{
	const size_t size = (collection->names_len + len) * 2 +
			    collection->size * NAME_BYTES;
	char *names;

	if (len <= collection->names_size - collection->names_len)
		return 0;
	names = realloc(collection->names, size);
	if (!names)
		return -ENOMEM;
	collection->names = names;
	collection->names_size = size;
	return 0;
}

static bool has_name_of(const struct collection *collection,
			const struct procmap_mapping *last,
			const struct procmap_mapping *mapping)
{
	return last->name_len == mapping->name_len &&
	       !memcmp(collection->names + (uintptr_t)last->name, mapping->name,
		       mapping->name_len);
}

/* Until all mappings are there, a name is an offset in the buffer. */
int collect(struct collection *collection, const struct procmap_mapping *mapping)
{
	const size_t len = mapping->name_len + 1;
	struct procmap_mapping *new;
	size_t at;
	int err;

	err = reserve_mapping(collection);
	if (err)
		return err;
	new = &collection->mappings[collection->nr];
	/* Often, the name is that of the previous mapping. */
	if (collection->nr && has_name_of(collection, new - 1, mapping)) {
		at = (uintptr_t)new[-1].name;
	} else {
		err = reserve_name(collection, len);
		if (err)
			return err;
		at = collection->names_len;
		memcpy(collection->names + at, mapping->name, len);
		collection->names_len += len;
	}
	*new = *mapping;
	new->name = (const char *)(uintptr_t)at;
	collection->nr++;
	return 0;
}

void end_collection(struct collection *collection)
{
	size_t i;

	for (i = 0; i < collection->nr; i++) {
		struct procmap_mapping *const mapping = &collection->mappings[i];

		mapping->name = collection->names + (uintptr_t)mapping->name;
	}
}

void free_collection(const struct collection *collection)
{
	free(collection->mappings);
	free(collection->names);
}
