/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: what takes no memory, and so works in a signal handler while
 * malloc(3) holds its locks.
 */

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
