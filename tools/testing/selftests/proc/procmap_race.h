/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process whose mappings change from one known state to another, over and over, and how
 * a process ends.
 */
#ifndef PROCMAP_RACE_H
#define PROCMAP_RACE_H

#include <stdatomic.h>

#include "procmap_util.h"

/* The pages from AREA on where mappings change, and behind them one that stays. */
#define RACE_PAGES	10
#define FENCE_PAGE	(RACE_PAGES + 1)
#define RACE_END	(FENCE_PAGE + 1)

#define MAX_STATES	4

enum race_kind { MMAP, MPROTECT, MREMAP, STACK, RENAME, NR_RACES };

struct race {
	struct child changer;
	int fd;			/* its maps file */
	unsigned int nr_states;
	struct maps states[MAX_STATES];	/* the text of each */
	struct race_shared {
		atomic_uint changes;
		atomic_bool stop;
	} *shared;
};

bool start_race(struct race *race, enum race_kind kind);
/* Let the changer end. Returns false if it could not make its changes. */
bool end_race(struct race *race);
/* No fewer changes than this are a race. */
bool race_is_over(const struct race *race);

/*
 * Check lines that were found from AREA to RACE_END meanwhile: each was in a state, and none
 * is missing that stays. With @is_cut, a mapping is shown from the end of the line before
 * on. Returns a fault, or "".
 */
const char *wrong_in_race(const struct race *race, const struct maps *found, bool is_cut);

/* For start_child(): map pages at AREA that do not merge, and notify; then ... */
int exit_when_it_hears(int control, void *arg);
int execute_when_it_hears(int control, void *arg);

/* ... fork on and on, in memory that the test shares. */
struct forks {
	atomic_int newborn;
	atomic_uint nr;
};

int fork_when_it_hears(int control, void *forks);

#endif /* PROCMAP_RACE_H */
