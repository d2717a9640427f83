// SPDX-License-Identifier: GPL-2.0
/*
 * Test how PROCMAP_QUERY waits for the mmap_lock of the target: killable, and not
 * interrupted by other signals.
 */
#include "procmap-lock.h"

/* The first mapping: no kernel can find that without the lock of all. */
static int call(int fd)
{
	struct procmap_query query;

	return query_fields(fd, 0, PROCMAP_QUERY_COVERING_OR_NEXT_VMA, &query);
}

FIXTURE(waiting)
{
	struct waiting waiting;
	const char *missing;
};

FIXTURE_SETUP(waiting)
{
	self->waiting.request = PROCMAP_QUERY;
	self->waiting.call = call;
	self->missing = start_waiting(_metadata, &self->waiting);
}

FIXTURE_TEARDOWN(waiting)
{
	stop_waiting(&self->waiting);
}

TEST_F_TIMEOUT(waiting, query_dies_of_a_fatal_signal, RACE_TIMEOUT)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	expect_death(_metadata, &self->waiting);
}

TEST_F_TIMEOUT(waiting, query_goes_on_after_another_signal, RACE_TIMEOUT)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	expect_no_interruption(_metadata, &self->waiting, 0);
}

TEST_HARNESS_MAIN
