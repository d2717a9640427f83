/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: where memory comes from: the caller's for a result, none at
 * all, and none in a signal handler.
 */
#include <sys/time.h>

static bool is_same_result(const struct procmap_resolved *a,
			   const struct procmap_resolved *b)
{
	size_t i;

	if (a->nr_locations != b->nr_locations || a->nr_mappings != b->nr_mappings ||
	    memcmp(a->locations, b->locations,
		   a->nr_locations * sizeof(*a->locations)))
		return false;
	for (i = 0; i < a->nr_mappings; i++) {
		const struct procmap_mapping *const x = a->mappings[i];
		const struct procmap_mapping *const y = b->mappings[i];

		if (x->start != y->start || x->end != y->end ||
		    x->offset != y->offset || x->inode != y->inode ||
		    x->dev_major != y->dev_major || x->dev_minor != y->dev_minor ||
		    x->page_size != y->page_size || x->flags != y->flags ||
		    x->build_id_size != y->build_id_size ||
		    (x->build_id_size > 0 &&
		     memcmp(x->build_id, y->build_id, x->build_id_size)) ||
		    x->name_len != y->name_len || strcmp(x->name, y->name) ||
		    x->name == y->name)
			return false;
	}
	return true;
}

TEST_F(scene, resolves_into_memory_of_the_caller)
{
	static const unsigned int flags[] = {
		0, PROCMAP_READABLE, PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_PAGE_SIZE,
	};
	const struct procmap_resolved *resolved, *expected;
	size_t nr_addrs, size, i;
	uint64_t *addrs;
	void *memory;

	addrs = calloc(4 * self->maps.nr + 2, sizeof(*addrs));
	nr_addrs = make_addresses(&self->maps, addrs);
	size = PROCMAP_RESOLVE_SIZE(nr_addrs);
	memory = malloc(size);
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		ASSERT_EQ(0, procmap_resolve(self->procmap, addrs, nr_addrs, flags[i],
					     &expected));
		ASSERT_EQ(0, procmap_resolve_into(self->procmap, addrs, nr_addrs,
						  flags[i], memory, size, &resolved));
		EXPECT_TRUE(is_same_result(expected, resolved));
		procmap_free_resolved(expected);
	}
	free(memory);
	free(addrs);
}

TEST_F(scene, resolve_into_bad_arguments_are_refused)
{
	const struct procmap_resolved *resolved;
	const uint64_t addr = 0;
	uint64_t memory[128];

	EXPECT_EQ(-EINVAL, procmap_resolve_into(NULL, &addr, 1, 0, memory,
						sizeof(memory), &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve_into(self->procmap, NULL, 1, 0, memory,
						sizeof(memory), &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve_into(self->procmap, &addr, 0, 0, memory,
						sizeof(memory), &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve_into(self->procmap, &addr, 1,
						PROCMAP_COVERING_OR_NEXT, memory,
						sizeof(memory), &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve_into(self->procmap, &addr, 1, 0, NULL,
						sizeof(memory), &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve_into(self->procmap, &addr, 1, 0, memory,
						sizeof(memory), NULL));
	EXPECT_EQ(-EINVAL, procmap_resolve_into(self->procmap, &addr, UINT32_MAX, 0,
						memory, sizeof(memory), &resolved));
	EXPECT_EQ(-ENOSPC, procmap_resolve_into(self->procmap, &addr, UINT32_MAX - 1,
						0, memory, sizeof(memory),
						&resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve(self->procmap, &addr, UINT32_MAX, 0,
					   &resolved));
}

#define CANARY	0xa5

/*
 * Resolve into @size bytes at the end of a page, behind which there is none. Returns
 * 1 if a byte in front of them was written.
 */
static int resolve_at_end(struct procmap *procmap, const uint64_t *addrs, size_t nr,
			  char *end, size_t size, size_t area,
			  const struct procmap_resolved **resolved)
{
	char *const memory = end - size;
	const char *at;
	int err;

	memset(end - area, CANARY, area);
	err = procmap_resolve_into(procmap, addrs, nr, 0, memory, size, resolved);
	for (at = end - area; at < memory; at++)
		if (*at != (char)CANARY)
			return 1;
	return err;
}

/* From a text, since this takes thousands of calls. Each size begins elsewhere. */
static void try_each_size(struct __test_metadata *_metadata, size_t after)
{
	static const uint64_t addrs[] = {
		0x7f0000001800, 0x400000, 1, 0x7f0000000000, 0xe03fff, 0x451fff,
		UINT64_MAX, 0x400000,
	};
	const size_t nr = sizeof(addrs) / sizeof(*addrs), area = 2 * PAGE;
	const struct procmap_resolved *resolved, *expected;
	struct procmap *procmap;
	size_t size, needed;
	char *end;
	int err;

	end = mmap(NULL, area + PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(end != MAP_FAILED);
	end += area;
	ASSERT_EQ(0, mprotect(end, PAGE, PROT_NONE));
	end -= after;
	memset(end, CANARY, after);
	ASSERT_EQ(0, procmap_open_text(saved, strlen(saved), &procmap));
	ASSERT_EQ(0, procmap_resolve(procmap, addrs, nr, 0, &expected));
	ASSERT_EQ(4, expected->nr_mappings);

	calls.allocated = 0;
	for (needed = 1; needed < PAGE; needed++) {
		err = resolve_at_end(procmap, addrs, nr, end, needed, PAGE, &resolved);
		if (!err)
			break;
		ASSERT_EQ(-ENOSPC, err);
	}
	for (size = needed; size < needed + 100; size++) {
		err = resolve_at_end(procmap, addrs, nr, end, size, PAGE, &resolved);
		/* Another alignment of the same size may need a little more. */
		if (size >= needed + 32)
			ASSERT_EQ(0, err);
		if (err) {
			ASSERT_EQ(-ENOSPC, err);
			continue;
		}
		ASSERT_LE((uintptr_t)end - size, (uintptr_t)resolved);
		ASSERT_TRUE(is_same_result(expected, resolved));
	}
	EXPECT_EQ(0, calls.allocated);
	/* What the header promises for names of this length. */
	EXPECT_GE(PROCMAP_RESOLVE_SIZE(nr), needed);
	for (size = 0; size < after; size++)
		EXPECT_EQ(CANARY, (uint8_t)end[size]);
	procmap_free_resolved(expected);
	procmap_close(procmap);
	munmap(end + after - area, area + PAGE);
}

TEST(memory_of_each_size)
{
	try_each_size(_metadata, 0);
}

TEST(memory_of_each_size_that_ends_unaligned)
{
	try_each_size(_metadata, 8);
	try_each_size(_metadata, 9);
}

/* Many addresses in many mappings, in the memory that the header promises is enough. */
TEST_F_TIMEOUT(change, memory_for_many_mappings, SLOW)
{
	const struct procmap_resolved *resolved;
	uint64_t addrs[3000];
	size_t size, i;
	void *memory;

	ASSERT_TRUE(split(self->area, 3000));
	for (i = 0; i < 3000; i++)
		addrs[i] = (uintptr_t)self->area + i * 7 % 3000 * PAGE + i;
	size = PROCMAP_RESOLVE_SIZE(3000);
	memory = malloc(size);
	ASSERT_EQ(0, procmap_resolve_into(self->procmap, addrs, 3000, 0, memory,
					  size, &resolved));
	EXPECT_EQ(3000, resolved->nr_mappings);
	for (i = 0; i < 3000; i++) {
		const uint32_t index = resolved->locations[i].mapping;

		ASSERT_EQ(addrs[i] & -PAGE, resolved->mappings[index]->start);
		ASSERT_EQ(addrs[i] - (uintptr_t)self->area,
			  resolved->locations[i].offset);
	}
	free(memory);
}

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
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	size_t nr_addrs, size, i;
	struct procmap *procmap;
	uint64_t *addrs, cursor;
	int nr_changes = 0;
	void *memory;

	addrs = calloc(4 * self->maps.nr + 2, sizeof(*addrs));
	nr_addrs = make_addresses(&self->maps, addrs);
	size = PROCMAP_RESOLVE_SIZE(nr_addrs);
	memory = malloc(size);
	ASSERT_EQ(0, procmap_open_pid(self->child.pid, variant->method, &procmap));
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
	ASSERT_EQ(0, procmap_resolve_into(procmap, addrs, nr_addrs, flags, memory,
					  size, &resolved));
	calls.allocated = 0;
	cursor = 0;
	while (!procmap_next(procmap, &cursor, flags, &found))
		;
	ASSERT_EQ(0, procmap_resolve_into(procmap, addrs, nr_addrs, flags, memory,
					  size, &resolved));
	for (i = 0; i < nr_addrs; i++)
		procmap_find(procmap, addrs[i], flags, &found);
	EXPECT_EQ(0, calls.allocated);

	for (i = 0; i < 2; i++)
		procmap_snapshot_free(snapshots[i]);
	procmap_close(procmap);
	free(memory);
	free(addrs);
}

/* What the signal handler uses and has found. */
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
		ASSERT_EQ(0, procmap_open_pid(self->child.pid, variant->method,
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
