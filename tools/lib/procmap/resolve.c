// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Resolve many addresses at once, in rising order, so that each mapping and
 * each gap is looked up once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define FLAGS	(FILTERS | PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_PAGE_SIZE)

/**
 * struct resolution - a result, and what is needed to build it
 * @public: the part that the caller sees.
 * @size_mappings: mappings that @public has room for.
 * @names: the names, each with its NUL. Until all mappings are found, the name
 *	of a mapping is an offset in this buffer.
 * @names_len: bytes used of @names.
 * @name_at: offset of the most recent name.
 * @name_size: size of the most recent name in bytes, including the NUL.
 */
struct resolution {
	struct procmap_resolved public;
	size_t size_mappings;
	struct name_buffer names;
	size_t names_len;
	size_t name_at;
	size_t name_size;
};

/**
 * struct question - one of the addresses
 * @addr: the address.
 * @index: its index in the caller's array.
 */
struct question {
	uint64_t addr;
	size_t index;
};

/* Mappings have whole pages, so the order within a page does not matter. */
#define PAGE_BITS	12

/* Up to this number, insertion sort is faster than sorting by byte. */
#define FEW		32

static void sort_few(struct question *questions, size_t nr)
{
	size_t i, j;

	for (i = 1; i < nr; i++) {
		const struct question question = questions[i];

		for (j = i; j && questions[j - 1].addr > question.addr; j--)
			questions[j] = questions[j - 1];
		questions[j] = question;
	}
}

/* Stable sort by one byte of the address. */
static void sort_by_byte(const struct question *from, struct question *to,
			 size_t nr, unsigned int shift)
{
	size_t ends[256] = { 0 }, sum = 0, i;

	for (i = 0; i < nr; i++)
		ends[from[i].addr >> shift & 0xff]++;
	for (i = 0; i < 256; i++) {
		const size_t count = ends[i];

		ends[i] = sum;
		sum += count;
	}
	for (i = 0; i < nr; i++)
		to[ends[from[i].addr >> shift & 0xff]++] = from[i];
}

/*
 * Radix sort: sort @nr questions by page, one byte at a time from the lowest,
 * skipping bytes that are the same in all addresses (no bit in @differing).
 * @questions has room for 2 * @nr. A comparison sort would cost several times
 * as much as the lookups. Returns the half of @questions that has the result.
 */
static struct question *sort(struct question *questions, size_t nr,
			     uint64_t differing)
{
	struct question *from = questions, *to = questions + nr, *other;
	unsigned int shift;

	if (nr <= FEW) {
		sort_few(questions, nr);
		return questions;
	}
	for (shift = PAGE_BITS; shift < 64; shift += 8) {
		if (!(differing >> shift & 0xff))
			continue;
		sort_by_byte(from, to, nr, shift);
		other = from;
		from = to;
		to = other;
	}
	return from;
}

/* Are the addresses sorted already? This ends at the first one that is not. */
static bool rise(const uint64_t *addrs, size_t nr)
{
	size_t i;

	for (i = 1; i < nr; i++)
		if (addrs[i] < addrs[i - 1])
			return false;
	return true;
}

/*
 * The addresses, sorted by page; NULL without memory. The caller frees @memory
 * in both cases.
 */
static struct question *questions_on(const uint64_t *addrs, size_t nr_addrs,
				     void **memory)
{
	struct question *const questions =
		calloc(nr_addrs, 2 * sizeof(*questions));
	uint64_t differing = 0;
	size_t i;

	*memory = questions;
	if (!questions)
		return NULL;
	for (i = 0; i < nr_addrs; i++) {
		questions[i] = (struct question) { addrs[i], i };
		differing |= addrs[i] ^ addrs[0];
	}
	return rise(addrs, nr_addrs) ? questions :
				       sort(questions, nr_addrs, differing);
}

/* Add a name, unless it is that of the previous mapping, as it often is. */
static int add_name(struct resolution *new,
		    const struct procmap_mapping *mapping)
{
	const size_t size = mapping->name_len + 1;
	int err;

	if (new->name_size == size &&
	    !memcmp(new->names.bytes + new->name_at, mapping->name, size))
		return 0;
	err = name_reserve(&new->names, new->names_len + size);
	if (err)
		return err;
	memcpy(new->names.bytes + new->names_len, mapping->name, size);
	new->name_at = new->names_len;
	new->name_size = size;
	new->names_len += size;
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

static int resolve(struct procmap *procmap, const struct question *questions,
		   unsigned int flags, struct resolution *new)
{
	const struct question *question = questions;
	const struct question *const end = questions + new->public.nr_places;
	struct procmap_place *const places = new->public.places;
	struct procmap_mapping found;
	int err;

	while (question != end) {
		uint64_t to_offset;
		uint32_t index;
		bool has_offset;

		err = find_from(procmap, question->addr, flags,
				question == questions, &found);
		if (err == -ENOENT)
			break;
		if (err)
			return err;
		while (question != end && question->addr < found.start)
			places[question++->index].mapping = PROCMAP_NOT_MAPPED;
		if (question == end || question->addr >= found.end)
			continue;

		index = new->public.nr_mappings;
		err = add_mapping(new, &found);
		if (err)
			return err;
		has_offset = has_file(&found);
		to_offset = found.offset - found.start;
		for (; question != end && question->addr < found.end;
		     question++) {
			struct procmap_place *const place =
				&places[question->index];

			place->mapping = index;
			if (has_offset)
				place->offset = question->addr + to_offset;
		}
	}
	/* The addresses above the last mapping. */
	while (question != end)
		places[question++->index].mapping = PROCMAP_NOT_MAPPED;
	return 0;
}

int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    struct procmap_resolved **resolved)
{
	struct question *questions;
	struct resolution *new;
	int err = -ENOMEM;
	void *memory;

	if (!procmap || !addrs || !nr_addrs || (flags & ~FLAGS) || !resolved)
		return -EINVAL;
	questions = questions_on(addrs, nr_addrs, &memory);
	new = calloc(1, sizeof(*new));
	if (new) {
		new->public.nr_places = nr_addrs;
		new->public.places = calloc(nr_addrs,
					    sizeof(*new->public.places));
	}
	if (questions && new && new->public.places)
		err = resolve(procmap, questions, flags, new);
	free(memory);
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
	/* @public is the first member. */
	struct resolution *const new = (struct resolution *)resolved;

	if (!resolved)
		return;
	free(resolved->places);
	free(resolved->mappings);
	free(new->names.bytes);
	free(new);
}
