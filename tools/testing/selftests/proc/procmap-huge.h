/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A huge page for a test: one more than the system has, while the test runs.
 */
#ifndef PROCMAP_HUGE_TEST_H
#define PROCMAP_HUGE_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#define HUGE_PAGE_SIZE	(2u << 20)
#define HUGE_PAGES_FILE	"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

/* For mmap(2) and memfd_create(2). */
#define HUGE_PAGE_FLAG	(21 << MAP_HUGE_SHIFT)

struct huge_pool {
	unsigned long before;	/* pages that the system had */
	bool added;
};

static inline bool set_huge_pages(unsigned long nr)
{
	FILE *const file = fopen(HUGE_PAGES_FILE, "we");
	bool done;

	if (!file)
		return false;
	done = fprintf(file, "%lu\n", nr) > 0;
	return !fclose(file) && done;
}

/* Returns false if the system has no pages of this size. */
static inline bool add_huge_page(struct huge_pool *pool)
{
	FILE *const file = fopen(HUGE_PAGES_FILE, "re");
	bool known;

	if (!file)
		return false;
	known = fscanf(file, "%lu", &pool->before) == 1;
	fclose(file);
	pool->added = known && set_huge_pages(pool->before + 1);
	return known;
}

static inline bool remove_huge_page(const struct huge_pool *pool)
{
	return !pool->added || set_huge_pages(pool->before);
}

#endif /* PROCMAP_HUGE_TEST_H */
