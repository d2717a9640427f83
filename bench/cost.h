/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Measure costs by the clock: in a guest whose clock counts instructions, they are the
 * number of those.
 */
#ifndef BENCH_COST_H
#define BENCH_COST_H

#include <stdint.h>
#include <time.h>

/* The time by a clock, in nanoseconds. */
uint64_t now(clockid_t clock);

/* For qsort(3): the order of two uint64_t. */
int by_number(const void *a, const void *b);

/* So many runs of each work are marked for plugin.c. */
#define NR_MARKED	3

/*
 * The cost of a run, once it is warm: the median over some batches of runs, or that
 * of one run which costs as much as those.
 */
double cost_of_run(void (*run)(void *context), void *context);

#endif /* BENCH_COST_H */
