// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <time.h>

#include "cost.h"

/*
 * The least number of instructions in a batch. Of that many, timer interrupts
 * are 0.1 %.
 */
#define BATCH_COST	4000000ULL
#define NR_BATCHES	5

uint64_t now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static int by_number(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double cost_of_run(void (*run)(void *context), void *context)
{
	double costs[NR_BATCHES];
	uint64_t begin, once;
	size_t i, j, runs;

	run(context);
	begin = now();
	run(context);
	once = now() - begin;
	if (once >= NR_BATCHES * BATCH_COST)
		return once;
	runs = BATCH_COST / (once + 1) + 1;
	for (i = 0; i < NR_BATCHES; i++) {
		begin = now();
		for (j = 0; j < runs; j++)
			run(context);
		costs[i] = (double)(now() - begin) / runs;
	}
	qsort(costs, NR_BATCHES, sizeof(*costs), by_number);
	return costs[NR_BATCHES / 2];
}
