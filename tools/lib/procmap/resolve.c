// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Resolve many addresses at once, in rising order, so that each mapping and
 * each gap is looked up once.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/**
 * struct resolution - a result, with which its memory begins
 * @public: the part that the caller sees.
 * @alignment: where pointers are smaller than what follows needs, rounds the size up.
 * @locations: the locations, behind this structure.
 * @mappings: the mappings, behind the locations.
 * @names: the names, which grow down towards the mappings. The most recent one is
 *	the first.
 * @name_size: size of the most recent name in bytes, including the NUL.
 * @questions: room for the addresses, behind the names; and for the pointers to the
 *	mappings, when the addresses are no longer needed.
 */
struct resolution {
	union {
		struct procmap_resolved public;
		uint64_t alignment;
	};
	struct procmap_location *locations;
	struct procmap_mapping *mappings;
	char *names;
	size_t name_size;
	struct question *questions;
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

/*
 * Mappings have whole pages, so the order within a page does not matter; but for those
 * that only a saved text has.
 */
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
 * Radix sort: sort @nr questions from bit @shift on, one byte at a time from the lowest,
 * skipping bytes that are the same in all addresses (no bit in @differing).
 * @questions has room for 2 * @nr. A comparison sort would cost several times
 * as much as the lookups. Returns the half of @questions that has the result.
 */
static struct question *sort(struct question *questions, size_t nr,
			     uint64_t differing, unsigned int shift)
{
	struct question *from = questions, *to = questions + nr, *other;

	if (nr <= FEW) {
		sort_few(questions, nr);
		return questions;
	}
	for (; shift < 64; shift += 8) {
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

/* The addresses, sorted from bit @shift on; @questions has room for 2 * @nr_addrs. */
static const struct question *questions_on(const uint64_t *addrs, size_t nr_addrs,
					   unsigned int shift,
					   struct question *questions)
{
	uint64_t differing = 0;
	size_t i;

	for (i = 0; i < nr_addrs; i++) {
		questions[i] = (struct question) { addrs[i], i };
		differing |= addrs[i] ^ addrs[0];
	}
	return rise(addrs, nr_addrs) ? questions :
				       sort(questions, nr_addrs, differing, shift);
}

/*
 * Add a mapping and its name, unless that is the name of the previous mapping, as it
 * often is.
 */
static int add_mapping(struct resolution *new,
		       const struct procmap_mapping *mapping)
{
	const size_t size = mapping->name_len + 1;
	const bool is_new = new->name_size != size ||
			    memcmp(new->names, mapping->name, size);
	struct procmap_mapping *const copy =
		&new->mappings[new->public.nr_mappings];

	if ((size_t)(new->names - (char *)copy) <
	    sizeof(*copy) + (is_new ? size : 0))
		return -ENOSPC;
	if (is_new) {
		new->names -= size;
		memcpy(new->names, mapping->name, size);
		new->name_size = size;
	}
	*copy = *mapping;
	copy->name = new->names;
	new->public.nr_mappings++;
	return 0;
}

static int resolve(struct procmap *procmap, const struct question *question,
		   unsigned int flags, struct resolution *new)
{
	const struct question *const end = question + new->public.nr_locations;
	struct procmap_location *const locations = new->locations;
	struct procmap_mapping *const found = &procmap->found;
	int err;

	start_over(procmap);
	while (question != end) {
		uint64_t to_offset;
		uint32_t index;
		bool has_offset;

		err = find_from(procmap, question->addr,
				flags | PROCMAP_UNFILTERED, found);
		if (err == -ENOENT)
			break;
		if (err)
			return lookup_error(procmap, err);
		while (question != end && question->addr < found->start)
			locations[question++->index].mapping = PROCMAP_NOT_MAPPED;
		if (question == end || question->addr >= found->end)
			continue;
		if (!passes(found, flags)) {
			while (question != end && question->addr < found->end)
				locations[question++->index].mapping =
					PROCMAP_NOT_MAPPED;
			continue;
		}

		index = new->public.nr_mappings;
		err = add_mapping(new, found);
		if (err)
			return err;
		has_offset = has_file(found);
		to_offset = found->offset - found->start;
		for (; question != end && question->addr < found->end;
		     question++) {
			struct procmap_location *const location =
				&locations[question->index];

			location->mapping = index;
			if (has_offset)
				location->offset = question->addr + to_offset;
		}
	}
	/* The addresses above the last mapping. */
	while (question != end)
		locations[question++->index].mapping = PROCMAP_NOT_MAPPED;
	return 0;
}

/* Lay the memory out. Returns NULL if it is too small. */
static struct resolution *lay_out(void *memory, size_t size, size_t nr_addrs)
{
	const size_t align = _Alignof(max_align_t);
	const size_t skip = -(uintptr_t)memory % align;
	struct resolution *new;
	size_t size_locations, size_questions;

	if (nr_addrs >= SIZE_MAX / (sizeof(*new->locations) +
				    2 * sizeof(*new->questions)) - sizeof(*new))
		return NULL;
	size_locations = nr_addrs * sizeof(*new->locations);
	size_questions = 2 * nr_addrs * sizeof(*new->questions);
	if (size < skip + sizeof(*new) + size_locations + size_questions + align)
		return NULL;

	new = (struct resolution *)((char *)memory + skip);
	memset(new, 0, sizeof(*new));
	new->locations = (struct procmap_location *)(new + 1);
	memset(new->locations, 0, size_locations);
	new->mappings =
		(struct procmap_mapping *)(new->locations + nr_addrs);
	size = (size - skip - size_questions) & -align;
	new->questions = (struct question *)((char *)new + size);
	new->names = (char *)new->questions;
	new->public.locations = new->locations;
	new->public.nr_locations = nr_addrs;
	return new;
}

int procmap_resolve_into(struct procmap *procmap, const uint64_t *addrs,
			 size_t nr_addrs, unsigned int flags, void *memory,
			 size_t size, const struct procmap_resolved **resolved)
{
	const struct procmap_mapping **pointers;
	const struct question *questions;
	struct resolution *new;
	size_t i;
	int err;

	if (!procmap || !addrs || !nr_addrs || nr_addrs >= PROCMAP_NOT_MAPPED ||
	    (flags & ~WALK_FLAGS) || !memory || !resolved)
		return -EINVAL;
	new = lay_out(memory, size, nr_addrs);
	if (!new)
		return -ENOSPC;
	questions = questions_on(addrs, nr_addrs, procmap->fd < 0 ? 0 : PAGE_BITS,
				 new->questions);
	err = resolve(procmap, questions, flags, new);
	if (err)
		return err;
	pointers = (const struct procmap_mapping **)new->questions;
	for (i = 0; i < new->public.nr_mappings; i++)
		pointers[i] = &new->mappings[i];
	new->public.mappings = pointers;
	*resolved = &new->public;
	return 0;
}

int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    const struct procmap_resolved **resolved)
{
	size_t size = PROCMAP_RESOLVE_SIZE(nr_addrs);
	void *memory;
	int err;

	if (nr_addrs >= PROCMAP_NOT_MAPPED)
		return -EINVAL;
	if (size / 384 < nr_addrs)
		return -ENOMEM;
	for (;; size *= 2) {
		memory = size <= PTRDIFF_MAX ? malloc(size) : NULL;
		if (!memory)
			return -ENOMEM;
		err = procmap_resolve_into(procmap, addrs, nr_addrs, flags,
					   memory, size, resolved);
		if (!err)
			return 0;
		free(memory);
		if (err != -ENOSPC)
			return err;
	}
}

void procmap_free_resolved(const struct procmap_resolved *resolved)
{
	/* It is the first member of the memory, which malloc(3) has aligned. */
	free((void *)resolved);
}
