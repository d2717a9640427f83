// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Slots, which say where to search an array of ranges.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

static const struct range *range_at(const void *entries, size_t size, size_t index)
{
	return (const void *)((const char *)entries + index * size);
}

/*
 * Find the ranges that are close together: from the one in the middle, up to gaps that
 * are larger than all that is between them.
 */
static void find_close(const void *entries, size_t size, size_t nr, size_t *first,
		       size_t *last)
{
	uint64_t start, end;
	bool is_larger;

	*first = nr / 2;
	*last = *first;
	do {
		start = range_at(entries, size, *first)->start;
		end = range_at(entries, size, *last)->end;
		is_larger = false;
		if (*first && start - range_at(entries, size, *first - 1)->end <=
			      end - start) {
			--*first;
			is_larger = true;
		}
		if (*last + 1 < nr && range_at(entries, size, *last + 1)->start - end <=
				      end - start) {
			++*last;
			is_larger = true;
		}
	} while (is_larger);
}

int slots_make(struct slots *slots, const void *entries, size_t size, size_t nr)
{
	size_t first, last, slot, i;
	uint64_t span;

	*slots = (struct slots) { .nr = 0 };
	if (!nr)
		return 0;
	find_close(entries, size, nr, &first, &last);
	slots->base = range_at(entries, size, first)->start;
	span = range_at(entries, size, last)->end - slots->base;
	while (slots->shift < 63 && (span - 1) >> slots->shift >= nr)
		slots->shift++;
	slots->nr = ((span - 1) >> slots->shift) + 1;

	slots->below = calloc(slots->nr + 1, sizeof(*slots->below));
	if (!slots->below) {
		slots->nr = 0;
		return -ENOMEM;
	}
	for (slot = 0, i = first; slot < slots->nr; slot++) {
		const uint64_t offset = (uint64_t)slot << slots->shift;

		while (i <= last &&
		       range_at(entries, size, i)->end - slots->base <= offset)
			i++;
		slots->below[slot] = i;
	}
	slots->below[slot] = last + 1;
	return 0;
}
