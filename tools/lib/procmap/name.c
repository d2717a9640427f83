// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Find mappings by name.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "internal.h"

/* A part of a name: @len bytes from @begin on. */
struct part {
	const char *begin;
	size_t len;
};

/* The name that a program gave its memory, or the file of its memory. */
static bool own_name(const struct part *name, struct part *own)
{
	static const struct {
		const char *before;
		const char *after;
	} kinds[] = {
		{ "[anon:", "]" },
		{ "[anon_shmem:", "]" },
		{ "/memfd:", "" },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const size_t before = strlen(kinds[i].before);
		const size_t after = strlen(kinds[i].after);

		if (name->len < before + after ||
		    memcmp(name->begin, kinds[i].before, before) ||
		    memcmp(name->begin + name->len - after, kinds[i].after, after))
			continue;
		own->begin = name->begin + before;
		own->len = name->len - before - after;
		return true;
	}
	return false;
}

static bool is_equal(const struct part *part, const char *pattern, size_t len)
{
	return part->len == len && !memcmp(part->begin, pattern, len);
}

/* fnmatch(3) takes a string: copy a part, unless it ends where the name does. */
static int matches_glob(struct procmap *procmap, const struct part *part,
			const char *pattern)
{
	const char *string = part->begin;

	if (string[part->len]) {
		struct name_buffer *const copy = &procmap->part;
		const int err = name_reserve(copy, part->len + 1);

		if (err)
			return err;
		memcpy(copy->bytes, part->begin, part->len);
		copy->bytes[part->len] = '\0';
		string = copy->bytes;
	}
	return !fnmatch(pattern, string, 0);
}

/* Returns 1, 0 or -ENOMEM. */
static int has_name(struct procmap *procmap, const struct procmap_mapping *mapping,
		    const char *pattern, size_t len, enum procmap_match match)
{
	const struct part whole = { mapping->name, mapping->name_len };
	struct part parts[4] = { whole };
	size_t nr = 1, i;

	if (name_len_of_file(mapping) != whole.len)
		parts[nr++] = (struct part) { whole.begin,
					      name_len_of_file(mapping) };
	for (i = nr; i-- > 0;)
		nr += own_name(&parts[i], &parts[nr]);
	for (i = 0; i < nr; i++) {
		const int ret = match == PROCMAP_GLOB ?
				matches_glob(procmap, &parts[i], pattern) :
				is_equal(&parts[i], pattern, len);

		if (ret)
			return ret;
	}
	return 0;
}

int procmap_find_name(struct procmap *procmap, const char *pattern,
		      enum procmap_match match, uint64_t *cursor,
		      unsigned int flags,
		      const struct procmap_mapping **mapping)
{
	const struct procmap_mapping *found;
	size_t len;
	int ret;

	if (!procmap || !pattern || !cursor || !mapping ||
	    (match != PROCMAP_EXACT && match != PROCMAP_GLOB))
		return -EINVAL;
	len = strlen(pattern);
	for (;;) {
		ret = procmap_next(procmap, cursor, flags, &found);
		if (ret)
			return ret;
		ret = has_name(procmap, found, pattern, len, match);
		if (ret < 0)
			return ret;
		if (ret) {
			*mapping = found;
			return 0;
		}
	}
}
