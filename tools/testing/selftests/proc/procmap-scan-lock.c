// SPDX-License-Identifier: GPL-2.0
/*
 * Test how PROCMAP_SCAN waits for the mmap_lock of the target: killable, and not
 * interrupted by other signals.
 */
#include "procmap-lock.h"
#include "procmap-scan.h"

/* One record: a scan that found it looks at signals only after that. */
static int call(int fd)
{
	struct procmap_vma vma;
	const struct room room = { .vec = &vma, .vec_len = 1 };
	struct procmap_scan_arg arg = ask(&room, 0, NO_END, 0);

	return procmap_scan(fd, &arg);
}

FIXTURE(waiting)
{
	struct waiting waiting;
	const char *missing;
};

FIXTURE_SETUP(waiting)
{
	skip_without_scan(_metadata);
	self->waiting.request = PROCMAP_SCAN;
	self->waiting.call = call;
	self->missing = start_waiting(_metadata, &self->waiting);
}

FIXTURE_TEARDOWN(waiting)
{
	stop_waiting(&self->waiting);
}

TEST_F_TIMEOUT(waiting, scan_dies_of_a_fatal_signal, RACE_TIMEOUT)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	expect_death(_metadata, &self->waiting);
}

TEST_F_TIMEOUT(waiting, scan_goes_on_after_another_signal, RACE_TIMEOUT)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	expect_no_interruption(_metadata, &self->waiting, 1);
}

TEST_HARNESS_MAIN
