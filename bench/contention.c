// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how long mmap(2) and munmap(2) take: once for each line of stdin, print the median
 * and the 99th percentile in ns, with a tab between. bench/measure has another process read
 * the mappings of this one meanwhile.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cost.h"

#define PAGE		4096
#define NR_VMAS		5000
#define NR_TIMES	20000

/* The page that is mapped and unmapped. */
static char *spot;

/* How long each of the times took. */
static uint64_t ns[NR_TIMES];

static void *map(int prot, int flags)
{
	void *const page = mmap(NULL, PAGE, prot, flags | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		err(2, "mmap");
	return page;
}

static void map_and_unmap(void)
{
	size_t i;

	for (i = 0; i < NR_TIMES; i++) {
		const uint64_t begin = now(CLOCK_MONOTONIC);
		void *const page = mmap(spot, PAGE, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		if (page == MAP_FAILED || munmap(page, PAGE))
			err(2, "mmap");
		ns[i] = now(CLOCK_MONOTONIC) - begin;
	}
}

int main(void)
{
	size_t i;

	for (i = 0; i < NR_VMAS; i++)
		map(i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE);
	spot = map(PROT_NONE, MAP_SHARED);
	map_and_unmap();	/* once, so that all is warm */
	while (getchar() != EOF) {
		map_and_unmap();
		qsort(ns, NR_TIMES, sizeof(*ns), by_number);
		printf("%llu\t%llu\n", (unsigned long long)ns[NR_TIMES / 2],
		       (unsigned long long)ns[NR_TIMES * 99 / 100]);
		fflush(stdout);
	}
	return 0;
}
