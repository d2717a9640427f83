// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_SCAN returns all mappings that stay, and nothing that never was, while
 * mappings change.
 */
#include "../kselftest_harness.h"
#include "procmap_race.h"
#include "procmap_scan_util.h"

/* Walks, and such that must have met a change. */
#define WALKS		200
#define DISTURBED	30

#define VEC_LEN		1000
#define DATA_SIZE	65536

/* The arguments of the nth walk: the smaller data is enough for one record of the file. */
static struct procmap_scan_arg nth_arg(const struct scan_buffers *buffers, unsigned int n)
{
	static const uint32_t vec_lens[] = { VEC_LEN, 1, 2, 7, 31, 32, 33, 64, 200 };
	struct procmap_scan_arg arg = scan_arg(buffers, 0, NO_END, SCAN_ALL);

	arg.vec_len = vec_lens[n % ARRAY_SIZE(vec_lens)];
	arg.data_size = n / ARRAY_SIZE(vec_lens) % 2 ? 42 : DATA_SIZE;
	return arg;
}

/* The file at AREA has an ID, and other mappings there have none. */
static bool has_right_ids(const struct maps *maps)
{
	const struct maps_line *line;

	for (line = maps->lines; line < maps->lines + maps->nr; line++) {
		const bool has_id = line->inode && line->start < addr_of(FENCE_PAGE);

		if (line->build_id_size != (has_id ? BUILD_ID_SIZE : 0) ||
		    memcmp(line->build_id, scene_id, line->build_id_size))
			return false;
	}
	return true;
}

FIXTURE(race)
{
	struct race race;
	struct scan_buffers buffers;
};

FIXTURE_VARIANT(race)
{
	enum race_kind kind;
};

FIXTURE_VARIANT_ADD(race, mmap_and_munmap) { MMAP };
FIXTURE_VARIANT_ADD(race, mprotect_splits) { MPROTECT };
FIXTURE_VARIANT_ADD(race, mremap_moves) { MREMAP };
FIXTURE_VARIANT_ADD(race, stack_grows) { STACK };
FIXTURE_VARIANT_ADD(race, file_is_renamed) { RENAME };

FIXTURE_SETUP(race)
{
	SKIP_WITHOUT_SCAN();
	self->buffers = make_scan_buffers(VEC_LEN, DATA_SIZE);
	ASSERT_TRUE(start_race(&self->race, variant->kind));
}

FIXTURE_TEARDOWN(race)
{
	EXPECT_TRUE(end_race(&self->race));
}

TEST_F_TIMEOUT(race, each_walk_finds_known_mappings_and_the_one_that_stays, LONG_TIMEOUT)
{
	unsigned int n, before, disturbed = 0;
	struct maps found;

	for (n = 0; n < WALKS || disturbed < DISTURBED || !race_is_over(&self->race); n++) {
		struct procmap_scan_arg arg = nth_arg(&self->buffers, n);

		arg.start = AREA;
		arg.end = addr_of(RACE_END);
		arg.filter = n % 2 ? PROCMAP_VMA_READABLE : 0;
		before = self->race.shared->changes;
		ASSERT_EQ(0, scan_to_maps(self->race.fd, &self->buffers, arg, &found));
		disturbed += self->race.shared->changes != before;
		ASSERT_STREQ("", wrong_in_race(&self->race, &found, false));
		ASSERT_TRUE(has_right_ids(&found));
		free_maps(&found);
		ASSERT_FALSE(is_late());
	}
}

TEST_HARNESS_MAIN
