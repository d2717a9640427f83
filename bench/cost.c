// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "cost.h"

/*
 * The least number of instructions in a batch. Of that many, timer interrupts
 * are 0.1 %.
 */
#define BATCH_COST	4000000ULL
#define NR_BATCHES	5

/* Early in a boot, other tasks run as well. */
#define CPU_TIME	CLOCK_THREAD_CPUTIME_ID

uint64_t now(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void mark(void)
{
#ifdef __aarch64__
	asm volatile (".inst 0xd5032fff");
#else
	asm volatile (".byte 0x66, 0x66, 0x66, 0x66, 0x87, 0xdb");
#endif
}

double cost_of_run(void (*run)(void *context), void *context)
{
	uint64_t costs[NR_BATCHES], begin, once;
	size_t i, j, runs;

	run(context);
	for (i = 0; i < NR_MARKED; i++) {
		begin = now(CPU_TIME);
		mark();
		run(context);
		mark();
		once = now(CPU_TIME) - begin;
	}
	if (once >= NR_BATCHES * BATCH_COST)
		return once;
	runs = BATCH_COST / (once + 1) + 1;
	for (i = 0; i < NR_BATCHES; i++) {
		begin = now(CPU_TIME);
		for (j = 0; j < runs; j++)
			run(context);
		costs[i] = now(CPU_TIME) - begin;
	}
	qsort(costs, NR_BATCHES, sizeof(*costs), by_number);
	return (double)costs[NR_BATCHES / 2] / runs;
}
