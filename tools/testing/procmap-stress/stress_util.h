/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The duration and the seed of random tests, and mappings that change. Without these
 * variables, they run for a few seconds, and for enough calls, files or targets on a slow
 * machine, from a random seed:
 *
 *	PROCMAP_SOAK_CALLS	run for so many calls of each ioctl, files or targets
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

/* Why the kernel's reader of build IDs is not this project's, or NULL. */
const char *find_build_id_reader(void);

/* Begin a run, and print its seed. */
struct soak begin_soak(void);
bool soak_is_over(const struct soak *soak, unsigned long calls);
/* Another seed for each part of a run: a thread, a file. */
uint64_t soak_seed(const struct soak *soak, uint64_t part);

/* Random numbers, the same for the same seed; below @end, which is not 0. */
uint64_t next_random(uint64_t *seed);
uint64_t rand_below(uint64_t end, uint64_t *seed);

/*
 * An area in which mappings change. Every PILLAR_STEP-th page is mapped and readable at all
 * times, although the mapping that covers it changes; and there is a stack, with no neighbour
 * below that would keep it from growing.
 */
#define NR_PAGES	400
#define PILLAR_STEP	8
#define STACK_PAGE	800
#define STACK_PAGES	20
#define END_PAGE	(STACK_PAGE + 1)

bool map_changing_area(void);
/* Make the nth change. Either file may be mapped. */
bool change_area(unsigned int n, const int files[2], uint64_t *seed);

#endif /* STRESS_UTIL_H */
