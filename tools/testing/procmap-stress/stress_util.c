// SPDX-License-Identifier: GPL-2.0
/*
 * The duration and the seed of random tests.
 */
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

#include "stress_util.h"

#define SOAK_SECONDS	10
#define SOAK_CALLS	500

static uint64_t env_number(const char *variable, uint64_t otherwise)
{
	const char *const value = getenv(variable);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

struct soak begin_soak(void)
{
	struct soak soak = {
		.calls = env_number("PROCMAP_SOAK_CALLS", 0),
		.end = time(NULL) + env_number("PROCMAP_SOAK_SECONDS", SOAK_SECONDS),
	};

	if (getrandom(&soak.seed, sizeof(soak.seed), 0) != sizeof(soak.seed))
		soak.seed = time(NULL);
	soak.seed = env_number("PROCMAP_SOAK_SEED", soak.seed) ?: 1;
	printf("# PROCMAP_SOAK_SEED=%#jx\n", (uintmax_t)soak.seed);
	return soak;
}

bool soak_is_over(const struct soak *soak, unsigned long calls)
{
	if (soak->calls)
		return calls >= soak->calls;
	return calls >= SOAK_CALLS && time(NULL) >= soak->end;
}

uint64_t soak_seed(const struct soak *soak, uint64_t part)
{
	uint64_t seed = (soak->seed ^ part * 0x9e3779b97f4a7c15) ?: 1;

	/* Parts that differ in few bits are to begin with different numbers. */
	next_random(&seed);
	next_random(&seed);
	return seed;
}

uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

uint64_t rand_below(uint64_t end, uint64_t *seed)
{
	return (next_random(seed) >> 16) % end;
}

/* Seconds until loops that wait for something give up. */
#define PATIENCE	600

/* It counts from the first call in a test, which is a process. */
bool is_late(void)
{
	static atomic_long first;
	const long now = time(NULL);
	long unset = 0;

	atomic_compare_exchange_strong(&first, &unset, now);
	return now - first > PATIENCE;
}
