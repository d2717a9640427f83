/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: what takes no memory, and works in a signal handler.
 */
#include <sys/time.h>

static int count_change(void *context, const struct procmap_mapping *was,
			const struct procmap_mapping *is)
{
	(void)was;
	(void)is;
	++*(int *)context;
	return 0;
}

/* Only the first walk, and the first text, need more than the handle has. */
TEST_F(scene, nothing_is_allocated)
{
	const bool by_text = expected_method(variant->method) == PROCMAP_BY_TEXT;
	const unsigned int flags = by_text ? 0 : PROCMAP_WANT_BUILD_ID;
	struct procmap_snapshot *snapshots[2];
	const struct procmap_mapping *found;
	size_t nr_addrs, i;
	struct procmap *procmap;
	uint64_t *addrs, cursor;
	int nr_changes = 0;

	addrs = calloc(4 * self->maps.nr + 2, sizeof(*addrs));
	nr_addrs = make_addresses(&self->maps, addrs);
	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method), &procmap));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, procmap_snapshot_take(self->procmap,
						   i ? PROCMAP_READABLE : 0,
						   &snapshots[i]));

	calls.allocated = 0;
	for (i = 0; i < nr_addrs && !by_text; i++)
		procmap_find(procmap, addrs[i], flags, &found);
	EXPECT_EQ(0, calls.allocated);

	for (i = 0; i < nr_addrs; i++)
		procmap_snapshot_find(snapshots[0], addrs[i]);
	for (i = 0; i < procmap_snapshot_count(snapshots[0]); i++)
		EXPECT_NE(NULL, procmap_snapshot_at(snapshots[0], i));
	EXPECT_EQ(0, procmap_snapshot_compare(snapshots[0], snapshots[1],
					      count_change, &nr_changes));
	EXPECT_LT(0, nr_changes);
	EXPECT_EQ(0, calls.allocated);

	cursor = 0;
	while (!procmap_next(procmap, &cursor, flags, &found))
		;
	calls.allocated = 0;
	cursor = 0;
	while (!procmap_next(procmap, &cursor, flags, &found))
		;
	for (i = 0; i < nr_addrs; i++)
		procmap_find(procmap, addrs[i], flags, &found);
	EXPECT_EQ(0, calls.allocated);

	for (i = 0; i < 2; i++)
		procmap_snapshot_free(snapshots[i]);
	procmap_close(procmap);
	free(addrs);
}

/* The objects that the signal handler uses and has found. */
static struct {
	struct procmap *procmap;
	struct procmap_snapshot *snapshot;
	uint64_t addr;
	uint64_t start;
	int nr;
	int nr_wrong;
} handler;

static void find_in_handler(int signal)
{
	const struct procmap_mapping *found;

	(void)signal;
	if (handler.procmap &&
	    (procmap_find(handler.procmap, handler.addr, 0, &found) ||
	     found->start != handler.start))
		handler.nr_wrong++;
	found = procmap_snapshot_find(handler.snapshot, handler.addr);
	if (!found || found->start != handler.start)
		handler.nr_wrong++;
	__atomic_fetch_add(&handler.nr, 1, __ATOMIC_RELAXED);
}

/* While malloc(3) holds its locks, a handler that allocates would wait for ever. */
TEST_F(scene, finds_in_a_signal_handler)
{
	static const struct itimerval often = {
		.it_interval.tv_usec = 100, .it_value.tv_usec = 100,
	};
	static const struct sigaction ignored = { .sa_handler = SIG_IGN };
	static const struct itimerval never;
	struct sigaction action = { .sa_handler = find_in_handler };
	const struct maps_line *const line = line_named(&self->maps, "plain");
	const struct procmap_mapping *found;
	uint64_t seed = 1, cursor = 0;
	void *blocks[64] = {};

	/* The text is not for handlers. */
	if (expected_method(variant->method) != PROCMAP_BY_TEXT)
		ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method),
					      &handler.procmap));
	handler.addr = line->end - 1;
	handler.start = line->start;
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &handler.snapshot));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	while (__atomic_load_n(&handler.nr, __ATOMIC_RELAXED) < 500) {
		const uint64_t random = next_random(&seed);

		free(blocks[random % 64]);
		blocks[random % 64] = malloc(random >> 8 & 0xffff);
		if (procmap_next(self->procmap, &cursor, 0, &found))
			cursor = 0;
	}
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	ASSERT_EQ(0, sigaction(SIGALRM, &ignored, NULL));
	EXPECT_EQ(0, handler.nr_wrong);
	for (seed = 0; seed < 64; seed++)
		free(blocks[seed]);
	procmap_snapshot_free(handler.snapshot);
	procmap_close(handler.procmap);
}
