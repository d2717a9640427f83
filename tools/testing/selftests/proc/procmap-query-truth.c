// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY and the text of /proc/<pid>/maps agree on every
 * mapping of every process, for every filter and at every edge.
 */
#include "procmap-truth.h"

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA

/* In a process with more mappings, not every set of filters is tried. */
#define MANY_MAPPINGS	500

/* The flags to try at each address. */
struct filters {
	uint64_t flags[64];
	size_t nr;
};

/* All sets of filters, with and without NEXT. */
static void fill_every_filter(struct filters *filters)
{
	for (filters->nr = 0; filters->nr < 64; filters->nr++)
		filters->flags[filters->nr] = filters->nr;
}

/* None, and each filter alone, with and without NEXT. */
static void fill_few_filters(struct filters *filters)
{
	static const uint64_t single[] = {
		0, PROCMAP_QUERY_VMA_READABLE, PROCMAP_QUERY_VMA_WRITABLE,
		PROCMAP_QUERY_VMA_EXECUTABLE, PROCMAP_QUERY_VMA_SHARED,
		PROCMAP_QUERY_FILE_BACKED_VMA,
	};
	unsigned int i;

	filters->nr = 0;
	for (i = 0; i < ARRAY_SIZE(single); i++) {
		filters->flags[filters->nr++] = single[i];
		filters->flags[filters->nr++] = single[i] | NEXT;
	}
}

/* Query one address with all filters. No line below @maps can be the answer. */
static bool agrees_at(struct subject *subject, const struct filters *filters,
		      const struct maps *maps, uint64_t addr)
{
	struct procmap_query query;
	size_t i;

	for (i = 0; i < filters->nr; i++) {
		const uint64_t flags = filters->flags[i];
		const struct maps_line *const line =
			expected_line(maps, addr, flags);
		const int err = query_fields(subject->fd, addr, flags, &query);

		subject->calls++;
		if (err != (line ? 0 : -ENOENT))
			return differ(subject, "result", addr, flags);
		if (line && !same_fields(line, &query))
			return differ(subject, "fields", addr, flags);
	}
	return true;
}

/* Query at each edge, one byte before and after it, and at both ends. */
static bool agrees_at_edges(struct subject *subject,
			    const struct filters *filters)
{
	const struct maps *const maps = &subject->maps;
	uint64_t next = 0;
	size_t i, j;

	for (i = 0; i < maps->nr; i++) {
		const struct maps_line *const line = &maps->lines[i];
		const size_t below = i ? i - 1 : 0;
		const struct maps rest = {
			.lines = maps->lines + below,
			.nr = maps->nr - below,
		};
		const uint64_t addrs[] = {
			0, line->start - 1, line->start, line->start + 1,
			line->end - 1, line->end, line->end + 1,
		};

		/* In rising order, each address once. */
		for (j = 0; j < ARRAY_SIZE(addrs); j++) {
			if (addrs[j] < next || addrs[j] > line->end + 1)
				continue;
			if (!agrees_at(subject, filters, &rest, addrs[j]))
				return false;
			next = addrs[j] + 1;
		}
	}
	return agrees_at(subject, filters, maps, ~0ull);
}

static bool agrees_on_name(struct subject *subject, size_t i)
{
	const struct maps_line *const line = &subject->maps.lines[i];
	char name[PATH_MAX] = "", escaped[4 * PATH_MAX + 16];
	struct procmap_query query;
	const int err = query_name(subject->fd, line->start, 0, &query, name,
				   sizeof(name));

	subject->calls++;
	/* The text has no limit, the ioctl has PATH_MAX. */
	if (err == -ENAMETOOLONG && strlen(line->name) >= PATH_MAX)
		return true;
	if (err)
		return differ(subject, strerror(-err), line->start, 0);
	escape_name(name, escaped, sizeof(escaped));
	if (strcmp(line->name, escaped) ||
	    query.vma_name_size != (*name ? strlen(name) + 1 : 0))
		return differ(subject, "name", line->start, 0);
	if (query.vma_page_size != subject->page_sizes[i])
		return differ(subject, "page size", line->start, 0);
	return true;
}

static bool agrees(struct subject *subject, const void *arg)
{
	struct filters filters;
	size_t i;

	(void)arg;
	if (subject->maps.nr > MANY_MAPPINGS)
		fill_few_filters(&filters);
	else
		fill_every_filter(&filters);
	if (!agrees_at_edges(subject, &filters))
		return false;
	for (i = 0; i < subject->maps.nr; i++)
		if (!agrees_on_name(subject, i))
			return false;
	return true;
}

FIXTURE(everyone)
{
	struct child children[NR_CHILDREN];
};

FIXTURE_SETUP(everyone)
{
	start_still_children(_metadata, self->children);
}

FIXTURE_TEARDOWN(everyone)
{
	unsigned int i;

	for (i = 0; i < NR_CHILDREN; i++)
		stop_child(&self->children[i]);
}

TEST_F_TIMEOUT(everyone, is_told_alike_by_text_and_ioctl, 300)
{
	compare_all_processes(_metadata, self->children, agrees, NULL);
}

TEST_HARNESS_MAIN
