// SPDX-License-Identifier: GPL-2.0
/*
 * The duration and the seed of random tests, and mappings that change.
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

const char *find_build_id_reader(void)
{
	return run_in_shell("grep -qw proc_build_id /proc/kallsyms") ?
	       NULL : "build IDs are read by lib/buildid.c here";
}

struct soak begin_soak(void)
{
	struct soak soak = {
		.calls = env_number("PROCMAP_SOAK_CALLS", 0),
		.end = time(NULL) + SOAK_SECONDS,
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

bool map_changing_area(void)
{
	return map_area(0, NR_PAGES, PROT_READ, MAP_PRIVATE, -1) &&
	       map_area(STACK_PAGE, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_GROWSDOWN, -1);
}

/* A page further each time, until the stack is cut off. */
static bool grow_stack_on(unsigned int n)
{
	const unsigned int pages = n % (STACK_PAGES + 1);

	if (!pages)
		return !munmap(page_at(STACK_PAGE - STACK_PAGES), STACK_PAGES * page_size());
	atomic_store((atomic_char *)page_at(STACK_PAGE - pages), 1);
	return true;
}

/* Replace, split and merge mappings: of many pages, or of some between two pillars. */
bool change_area(unsigned int n, const int files[2], uint64_t *seed)
{
	const uint64_t random = next_random(seed);
	const unsigned int first = 1 + (random >> 8) % (PILLAR_STEP - 1);
	const bool is_between = n % 8 > 1;
	unsigned int page = (random >> 16) % (NR_PAGES / PILLAR_STEP) * PILLAR_STEP;
	unsigned int nr = 1 + (random >> 24) % (10 * PILLAR_STEP);
	int prot = (random >> 32) % 8;

	if (n % 8 == 0)
		return grow_stack_on(n / 8);
	if (is_between) {
		page += first;
		nr = 1 + nr % (PILLAR_STEP - first);
	} else {
		prot = PROT_READ | (prot & PROT_EXEC);
		nr = nr > NR_PAGES - page ? NR_PAGES - page : nr;
	}
	if ((random >> 40) % 4 < 2)
		return map_area(page, nr, prot, MAP_PRIVATE,
				(random >> 40) % 4 ? files[n % 2] : -1);
	if (is_between && (random >> 42) % 2)
		return !munmap(page_at(page), nr * page_size());
	/* It ends at a page that is not mapped. */
	mprotect(page_at(page), nr * page_size(), prot);
	return true;
}
