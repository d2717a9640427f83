// SPDX-License-Identifier: GPL-2.0
/*
 * Test how PROCMAP_SCAN waits for the mmap_lock of the target: killable, and not
 * interrupted by other signals; and for how many VMAs it holds that lock.
 */
#include "procmap-lock.h"
#include "procmap-scan.h"
#include "procmap-trace.h"

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
	expect_death(_metadata, &self->waiting.reader);
}

TEST_F_TIMEOUT(waiting, scan_goes_on_after_another_signal, RACE_TIMEOUT)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	expect_no_interruption(_metadata, &self->waiting, 1);
}

/* The record of this program's code, which the target has at the same address. */
static int call_covering(int fd)
{
	const uint64_t start = (uintptr_t)call & -page_size();
	struct procmap_vma vma;
	const struct room room = { .vec = &vma, .vec_len = 1 };
	struct procmap_scan_arg arg = ask(&room, start, start + page_size(), 0);

	return procmap_scan(fd, &arg);
}

FIXTURE(held)
{
	struct waiting waiting;
	const char *missing;
};

FIXTURE_SETUP(held)
{
	skip_without_scan(_metadata);
	self->waiting.request = PROCMAP_SCAN;
	self->waiting.call = call_covering;
	self->missing = hold_lock(_metadata, &self->waiting);
}

FIXTURE_TEARDOWN(held)
{
	stop_waiting(&self->waiting);
}

TEST_F_TIMEOUT(held, scan_does_not_wait_for_a_writer_elsewhere, RACE_TIMEOUT)
{
	if (!self->missing)
		self->missing = expect_no_wait(_metadata, &self->waiting, 1);
	if (self->missing)
		SKIP(return, "%s", self->missing);
}

/*
 * A writer in the target waits as long as one hold of mmap_lock lasts. So a scan
 * looks at 64 VMAs under one hold, no more, whether they pass its filters or not:
 * for 65 it has to take the lock twice.
 */
#define VMAS_PER_HOLD	64
#define NR_LOCK_PAGES	300

FIXTURE(lock)
{
	struct child target;
	int fd;
	struct room room;
};

FIXTURE_VARIANT(lock)
{
	uint64_t filter;
	bool passes;	/* all VMAs pass this filter, or none */
};

FIXTURE_VARIANT_ADD(lock, without_filters) {
	.passes = true,
};

FIXTURE_VARIANT_ADD(lock, with_a_filter_that_none_passes) {
	.filter = PROCMAP_VMA_SHARED,
};

static int be_locked(int control, void *arg)
{
	unsigned int i;

	for (i = 0; i < NR_LOCK_PAGES; i++)
		if (mmap(page_at(i), page_size(),
			 i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0) != page_at(i))
			return 1;
	notify(control);
	await(control);
	return 0;
}

FIXTURE_SETUP(lock)
{
	const char *missing;

	skip_without_scan(_metadata);
	missing = start_tracing(getpid());
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(start_child(&self->target, be_locked, NULL));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(make_room(&self->room, NR_LOCK_PAGES, 0));
}

FIXTURE_TEARDOWN(lock)
{
	stop_child(&self->target);
	EXPECT_TRUE(stop_tracing());
}

TEST_F(lock, is_dropped_after_a_bounded_number_of_vmas)
{
	static const int nr[] = { 1, 64, 65, 128, 129, NR_LOCK_PAGES };
	struct holds holds = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nr); i++) {
		struct procmap_scan_arg arg =
			ask(&self->room, AREA, addr_of(nr[i]), 0);

		arg.filter = variant->filter;
		ASSERT_TRUE(empty_trace());
		/* This takes the lock of this process first, which has a name. */
		ASSERT_TRUE(!!map_room(page_size()));
		ASSERT_EQ(variant->passes ? nr[i] : 0,
			  procmap_scan(self->fd, &arg));
		read_trace(getpid(), &holds);
		ASSERT_NE('\0', holds.own[0]);
		if (!holds.others)
			SKIP(return, "a scan takes no mmap_lock here");
		EXPECT_LE((nr[i] + VMAS_PER_HOLD - 1) / VMAS_PER_HOLD,
			  holds.others) {
			TH_LOG("%d VMAs", nr[i]);
		}
	}
}

TEST_HARNESS_MAIN
