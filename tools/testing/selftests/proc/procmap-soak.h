/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The duration and the seed of random tests. Without these variables, they run for a few
 * seconds, and for enough calls, files or targets on a slow machine, from a random seed:
 *
 *	PROCMAP_SOAK_CALLS	run for so many calls of each ioctl, files or targets
 *	PROCMAP_SOAK_SECONDS	otherwise, run for so long
 *	PROCMAP_SOAK_SEED	the seed, as a run prints it
 */
#ifndef PROCMAP_SOAK_H
#define PROCMAP_SOAK_H

#include <sys/random.h>

#include "procmap-race.h"

#define SOAK_SECONDS	10
#define SOAK_CALLS	500

/* The harness ends no test that is to run for days. */
#define SOAK_TIMEOUT	(30 * 24 * 3600)

struct soak {
	uint64_t seed;
	unsigned long calls;	/* 0: until @end */
	long end;
};

static inline uint64_t env_number(const char *variable, uint64_t otherwise)
{
	const char *const value = getenv(variable);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

/* Begin a run, and print its seed. */
static inline struct soak begin_soak(struct __test_metadata *const _metadata)
{
	struct soak soak = {
		.calls = env_number("PROCMAP_SOAK_CALLS", 0),
		.end = seconds_now() + env_number("PROCMAP_SOAK_SECONDS",
						  SOAK_SECONDS),
	};

	if (getrandom(&soak.seed, sizeof(soak.seed), 0) != sizeof(soak.seed))
		soak.seed = time(NULL);
	/* A seed is not 0. */
	soak.seed = env_number("PROCMAP_SOAK_SEED", soak.seed) ?: 1;
	TH_LOG("PROCMAP_SOAK_SEED=%#jx", (uintmax_t)soak.seed);
	return soak;
}

static inline bool soak_is_over(const struct soak *soak, unsigned long calls)
{
	if (soak->calls)
		return calls >= soak->calls;
	return calls >= SOAK_CALLS && seconds_now() >= soak->end;
}

/* Another seed for each part of a run: a thread, a file. */
static inline uint64_t soak_seed(const struct soak *soak, uint64_t part)
{
	uint64_t seed = (soak->seed ^ part * 0x9e3779b97f4a7c15) ?: 1;

	/* Parts that differ in few bits are to begin with different numbers. */
	next_random(&seed);
	next_random(&seed);
	return seed;
}

/* A random number below @end, which is not 0. */
static inline uint64_t rand_below(uint64_t end, uint64_t *seed)
{
	return (next_random(seed) >> 16) % end;
}

#endif /* PROCMAP_SOAK_H */
