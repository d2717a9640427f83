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
 * struct resolution - a result
 * @public: the part that the caller sees.
 * @found: the mappings that have at least one of the addresses.
 * @mappings: for each address, one of them or NULL.
 */
struct resolution {
	struct procmap_resolved public;
	struct collection found;
	const struct procmap_mapping *mappings[];
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

/* Mappings have whole pages: the order within one matters only in a saved text. */
#define PAGE_BITS	12

/* Up to this number, insertion sort is faster than sorting by byte. */
#define FEW		32

static void sort_few_questions(struct question *questions, size_t nr)
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
static struct question *sort_questions(struct question *questions, size_t nr,
				       uint64_t differing, unsigned int shift)
{
	struct question *from = questions, *to = questions + nr, *other;

	if (nr <= FEW) {
		sort_few_questions(questions, nr);
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

/* Return whether the addresses are sorted. This ends at the first one that is not. */
static bool addresses_rise(const uint64_t *addrs, size_t nr)
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
	return addresses_rise(addrs, nr_addrs) ? questions :
				       sort_questions(questions, nr_addrs, differing, shift);
}

/* Collect the mappings of the questions, which are in rising order. */
static int collect_found(struct procmap *procmap, const struct question *question,
			 size_t nr, unsigned int flags, struct collection *collection)
{
	const struct question *const end = question + nr;
	struct procmap_mapping *const found = &procmap->found;
	int err;

	start_over(procmap);
	while (question != end) {
		err = look_up_from(procmap, question->addr, flags | PROCMAP_UNFILTERED,
				   found);
		if (err)
			return err == -ENOENT ? 0 : err;
		while (question != end && question->addr < found->start)
			question++;
		if (question == end || question->addr >= found->end)
			continue;
		if (passes(found, flags)) {
			err = collect(collection, found);
			if (err)
				return err;
		}
		while (question != end && question->addr < found->end)
			question++;
	}
	return 0;
}

static void assign_mappings(struct resolution *new, const struct question *question, size_t nr)
{
	const struct question *const end = question + nr;
	const struct procmap_mapping *const mappings = new->found.mappings;
	const size_t nr_mappings = new->found.nr;
	size_t at = 0;

	for (; question != end; question++) {
		while (at < nr_mappings && mappings[at].end <= question->addr)
			at++;
		if (at < nr_mappings && mappings[at].start <= question->addr)
			new->mappings[question->index] = &mappings[at];
	}
}

static int resolve_addresses(struct procmap *procmap, const uint64_t *addrs, size_t nr_addrs,
			     unsigned int flags, struct resolution *new)
{
	const size_t size = 2 * sizeof(struct question);
	const struct question *questions;
	struct question *memory;
	int err;

	memory = nr_addrs > PTRDIFF_MAX / size ? NULL : malloc(nr_addrs * size);
	if (!memory)
		return -ENOMEM;
	questions = questions_on(addrs, nr_addrs, procmap->fd < 0 ? 0 : PAGE_BITS,
				 memory);
	err = collect_found(procmap, questions, nr_addrs, flags, &new->found);
	if (!err) {
		end_collection(&new->found);
		assign_mappings(new, questions, nr_addrs);
	}
	free(memory);
	return err;
}

int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    const struct procmap_resolved **resolved)
{
	struct resolution *new;
	int err;

	if (!procmap || !addrs || !nr_addrs || (flags & ~WALK_FLAGS) || !resolved)
		return -EINVAL;
	new = nr_addrs > PTRDIFF_MAX / sizeof(*new->mappings) - sizeof(*new) ? NULL :
	      calloc(1, sizeof(*new) + nr_addrs * sizeof(*new->mappings));
	if (!new)
		return -ENOMEM;
	new->public.mappings = new->mappings;
	new->public.nr_addrs = nr_addrs;
	err = resolve_addresses(procmap, addrs, nr_addrs, flags, new);
	if (err)
		procmap_free_resolved(&new->public);
	else
		*resolved = &new->public;
	return err;
}

void procmap_free_resolved(const struct procmap_resolved *resolved)
{
	/* It is the first member. */
	struct resolution *const resolution = (struct resolution *)resolved;

	if (!resolution)
		return;
	free_collection(&resolution->found);
	free(resolution);
}
