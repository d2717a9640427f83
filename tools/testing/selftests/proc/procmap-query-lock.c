// SPDX-License-Identifier: GPL-2.0
/*
 * Test how PROCMAP_QUERY waits for the mmap_lock of the target: killable, and not
 * interrupted by other signals; and for how many VMAs it holds that lock.
 */
#include "procmap-lock.h"
#include "procmap-trace.h"

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
	expect_death(_metadata, &self->waiting.reader);
}

TEST_F_TIMEOUT(waiting, query_goes_on_after_another_signal, RACE_TIMEOUT)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	expect_no_interruption(_metadata, &self->waiting, 0);
}

/* Code of this program, which the target has at the same address. */
static int call_covering(int fd)
{
	struct procmap_query query;

	return query_fields(fd, (uintptr_t)call, 0, &query);
}

FIXTURE(held)
{
	struct waiting waiting;
	const char *missing;
};

FIXTURE_SETUP(held)
{
	self->waiting.request = PROCMAP_QUERY;
	self->waiting.call = call_covering;
	self->missing = hold_lock(_metadata, &self->waiting);
}

FIXTURE_TEARDOWN(held)
{
	stop_waiting(&self->waiting);
}

TEST_F_TIMEOUT(held, query_does_not_wait_for_a_writer_elsewhere, RACE_TIMEOUT)
{
	if (!self->missing)
		self->missing = expect_no_wait(_metadata, &self->waiting, 0);
	if (self->missing)
		SKIP(return, "%s", self->missing);
}

/*
 * A writer in the target waits as long as one hold of mmap_lock lasts. So a query
 * looks at 64 VMAs under one hold, no more, however many do not pass its filters.
 */
#define VMAS_PER_HOLD	64

/* A target of many mappings, and a reader that looks for one that is not there. */
FIXTURE(vain)
{
	struct child target;
	struct child reader;
	int fd;			/* the target's maps file */
	struct holds holds;
};

static int be_large(int control, void *arg)
{
	unsigned int i;

	for (i = 0; i < nr_many(); i++)
		if (mmap(page_at(i), page_size(),
			 i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE |
			 MAP_NORESERVE, -1, 0) != page_at(i))
			return 1;
	notify(control);
	await(control);
	return 0;
}

static bool is_in_vain(int fd)
{
	const uint64_t flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA |
			       PROCMAP_QUERY_VMA_WRITABLE |
			       PROCMAP_QUERY_VMA_EXECUTABLE;
	struct procmap_query query;

	return query_fields(fd, 0, flags, &query) == -ENOENT;
}

/* Take its own lock; then query once, and on and on once it is to. */
static int be_vain_reader(int control, void *arg)
{
	const int fd = *(const int *)arg;

	if (!await(control) || munmap(page_at(0), page_size()) ||
	    !notify(control) || !await(control) || !is_in_vain(fd) ||
	    !notify(control) || !await(control))
		return 1;
	while (is_in_vain(fd))
		;
	return 1;
}

static bool let_reader_go_on(const struct child *reader)
{
	return notify(reader->control) && await(reader->control);
}

FIXTURE_SETUP(vain)
{
	const char *missing;

	ASSERT_TRUE(start_child(&self->target, be_large, NULL));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(start_child(&self->reader, be_vain_reader, &self->fd));
	missing = start_tracing(self->reader.pid);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(let_reader_go_on(&self->reader));
	read_trace(self->reader.pid, &self->holds);
	ASSERT_NE('\0', self->holds.own[0]);
	ASSERT_EQ(0, self->holds.others);
	ASSERT_TRUE(let_reader_go_on(&self->reader));
	read_trace(self->reader.pid, &self->holds);
}

FIXTURE_TEARDOWN(vain)
{
	stop_child(&self->reader);
	stop_child(&self->target);
	EXPECT_TRUE(stop_tracing());
}

/*
 * It dies at the next drop of the lock, but for one that it was about to take. One
 * test shows both, since a debug kernel takes half a minute to set up the trace.
 */
TEST_F_TIMEOUT(vain, query_drops_the_lock_and_looks_at_fatal_signals,
	       RACE_TIMEOUT)
{
	const pid_t pid = self->reader.pid;

	if (!self->holds.others)
		SKIP(return, "a query takes no mmap_lock here");
	EXPECT_LE(nr_many() / VMAS_PER_HOLD, (unsigned int)self->holds.others);

	ASSERT_TRUE(empty_trace());
	ASSERT_TRUE(notify(self->reader.control));
	do {
		read_trace(pid, &self->holds);
	} while (!self->holds.others && !is_late());
	expect_death(_metadata, &self->reader);
	read_trace(pid, &self->holds);
	ASSERT_TRUE(self->holds.signalled);
	EXPECT_GE(1, self->holds.after_signal);
}

TEST_HARNESS_MAIN
