/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The duration and the seed of random tests. Without these variables, they run for a few
 * seconds, and for enough calls, files or targets on a slow machine, from a random seed:
 *
 *	PROCMAP_SOAK_CALLS	run for so many calls of each ioctl, files or targets
 *	PROCMAP_SOAK_SECONDS	otherwise, run for so long
 *	PROCMAP_SOAK_SEED	the seed, as a run prints it
 */
#ifndef STRESS_UTIL_H
#define STRESS_UTIL_H

#include "procmap_scan_util.h"

/* The harness ends no test that is to run for days. */
#define SOAK_TIMEOUT	(30 * 24 * 3600)

struct soak {
	uint64_t seed;		/* not 0 */
	unsigned long calls;	/* 0: until @end */
	long end;
};

/* Begin a run, and print its seed. */
struct soak begin_soak(void);
bool soak_is_over(const struct soak *soak, unsigned long calls);
/* Another seed for each part of a run: a thread, a file. */
uint64_t soak_seed(const struct soak *soak, uint64_t part);

/* Random numbers, the same for the same seed; below @end, which is not 0. */
uint64_t next_random(uint64_t *seed);
uint64_t rand_below(uint64_t end, uint64_t *seed);

/* Becomes true when a test has taken longer than a slow machine may take. */
bool is_late(void);

#endif /* STRESS_UTIL_H */
