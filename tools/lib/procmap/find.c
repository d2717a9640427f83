// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Find one mapping, or walk over them, or over those of a file.
 */
#include <errno.h>

#include "internal.h"

/* Fill in the requested attributes of the file of a mapping. Returns 0 or -errno. */
static int add_wanted(struct procmap *procmap, unsigned int flags,
		      struct procmap_mapping *mapping)
{
	int found = 0;

	if (!(flags & PROCMAP_WANT_BUILD_ID))
		mapping->build_id_size = 0;
	else if (mapping->build_id_size == -EAGAIN || !has_file(mapping))
		find_build_id(procmap, mapping);
	if (flags & PROCMAP_WANT_DELETED)
		found = look_for_file(procmap, mapping);
	if (found < 0)
		return found;
	mapping->flags |= found;
	return 0;
}

int look_up_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 struct procmap_mapping *mapping)
{
	const int err = find_from(procmap, addr, flags, mapping);

	if (err)
		return lookup_error(procmap, err);
	return add_wanted(procmap, flags, mapping);
}

int procmap_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 const struct procmap_mapping **mapping)
{
	int err;

	if (!procmap || !mapping ||
	    (flags & ~(WALK_FLAGS | PROCMAP_COVERING_OR_NEXT)))
		return -EINVAL;
	start_over(procmap);
	err = find_at(procmap, addr, flags, &procmap->found);
	if (err)
		return lookup_error(procmap, err);
	err = add_wanted(procmap, flags, &procmap->found);
	if (!err)
		*mapping = &procmap->found;
	return err;
}

/* Move the cursor to the end of a mapping, and cut off what is below the cursor. */
static void pass(uint64_t *cursor, struct procmap_mapping *found)
{
	if (found->start < *cursor) {
		if (has_file(found))
			found->offset += *cursor - found->start;
		found->start = *cursor;
	}
	*cursor = found->end;
}

int procmap_next(struct procmap *procmap, uint64_t *cursor, unsigned int flags,
		 const struct procmap_mapping **mapping)
{
	int err;

	if (!procmap || !cursor || !mapping || (flags & ~WALK_FLAGS))
		return -EINVAL;
	err = look_up_from(procmap, *cursor, flags, &procmap->found);
	if (err)
		return err;
	pass(cursor, &procmap->found);
	*mapping = &procmap->found;
	return 0;
}

int procmap_find_file(struct procmap *procmap, struct procmap_file *file,
		      uint64_t *cursor, unsigned int flags,
		      const struct procmap_mapping **mapping)
{
	const struct identity *identity;
	struct procmap_mapping *found;
	int ret, err;

	if (!procmap || !file || !cursor || !mapping || (flags & ~WALK_FLAGS))
		return -EINVAL;
	found = &procmap->found;
	ret = procmap->dir < 0 ? -ENODEV : need_identity(file, procmap->dir, &identity);
	while (!ret) {
		ret = find_from(procmap, *cursor, flags, found);
		if (ret)
			return lookup_error(procmap, ret);
		ret = is_mapping_of(procmap, found, procmap_file_fd(file), identity);
		if (ret) {
			err = add_wanted(procmap, flags, found);
			if (err)
				return err;
			*mapping = found;
		}
		pass(cursor, found);
	}
	return ret < 0 ? ret : 0;
}

unsigned int procmap_version(void)
{
	return PROCMAP_VERSION;
}
