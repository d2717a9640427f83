// SPDX-License-Identifier: GPL-2.0
/*
 * Test that each answer of PROCMAP_QUERY is of a state that was, while mappings change, and
 * while the process exits.
 */
#include "../kselftest_harness.h"
#include "procmap_util.h"

/* The pages from AREA on where mappings change, and behind them one that stays. */
#define RACE_PAGES	10
#define FENCE_PAGE	11

#define NR_STATES	4

/* At the least; and answers that are others than before the last change. */
#define QUERIES		40000
#define CHANGES		150
#define EXITS		60

/*
 * One system call leads from each state to the next, and from the last to the first, so
 * nothing else is ever to be seen.
 */
static bool change_state(unsigned int n, int file)
{
	const size_t size = page_size();

	switch (n % NR_STATES) {
	case 0:
		return mmap(page_at(0), 4 * size, PROT_READ, MAP_FIXED | MAP_PRIVATE, file,
			    0) == page_at(0);
	case 1:
		return !mprotect(page_at(0), 2 * size, PROT_READ | PROT_EXEC);
	case 2:
		return mremap(page_at(2), 2 * size, 2 * size, MREMAP_MAYMOVE | MREMAP_FIXED,
			      page_at(6)) == page_at(6);
	default:
		return !munmap(page_at(0), RACE_PAGES * size);
	}
}

/* Go through all states, one for each byte heard; then without pause. */
static int keep_changing(int control, void *arg)
{
	const int file = make_elf("race", scene_id);
	unsigned int n;

	(void)arg;
	if (mmap(page_at(FENCE_PAGE), page_size(), PROT_READ, MAP_FIXED | MAP_PRIVATE |
		 MAP_ANONYMOUS, -1, 0) != page_at(FENCE_PAGE))
		return 1;
	for (n = 0; change_state(n, file); n++)
		if (n < NR_STATES && !(notify(control) && await(control)))
			return 1;
	return 1;
}

FIXTURE(race)
{
	struct child child;
	int fd;			/* its maps file */
	struct maps states[NR_STATES];
};

FIXTURE_SETUP(race)
{
	unsigned int i;

	ASSERT_TRUE(start_child(&self->child, keep_changing, NULL));
	self->fd = open_maps(self->child.pid);
	for (i = 0; i < NR_STATES; i++) {
		ASSERT_TRUE(await(self->child.control));
		ASSERT_EQ(0, read_maps(self->fd, &self->states[i]));
		ASSERT_TRUE(notify(self->child.control));
	}
}

FIXTURE_TEARDOWN(race)
{
	stop_child(&self->child);
}

/* Query all that a mapping has: only the file has a name and a build ID. */
static bool is_of_a_state(const struct _test_data_race *self, uint64_t addr, uint64_t flags,
			  uint64_t *start)
{
	char name[64] = "";
	uint8_t id[BUILD_ID_SIZE];
	struct procmap_query query = QUERY(.query_addr = addr, .query_flags = flags,
		.vma_name_addr = (uintptr_t)name, .vma_name_size = sizeof(name),
		.build_id_addr = (uintptr_t)id, .build_id_size = sizeof(id));
	const int err = procmap_query(self->fd, &query);
	const struct maps_line *line;
	unsigned int i;

	*start = query.vma_start;
	for (i = 0; i < NR_STATES; i++) {
		line = expected_line(&self->states[i], addr, flags);
		if (!line && err == -ENOENT)
			return true;
		if (line && !err && same_fields(line, &query) && is_name(line, name) &&
		    query.build_id_size == (line->inode ? BUILD_ID_SIZE : 0) &&
		    !memcmp(id, scene_id, query.build_id_size))
			return true;
	}
	return false;
}

TEST_F_TIMEOUT(race, each_answer_is_of_a_state, LONG_TIMEOUT)
{
	static const uint64_t flags[] = {
		0, PROCMAP_QUERY_VMA_EXECUTABLE, QUERY_NEXT,
		QUERY_NEXT | PROCMAP_QUERY_VMA_READABLE,
	};
	uint64_t start, last[RACE_PAGES * ARRAY_SIZE(flags)] = {};
	unsigned int n, i, changes = 0;

	for (n = 0; n < QUERIES || changes < CHANGES; n++) {
		i = n % ARRAY_SIZE(last);
		ASSERT_TRUE(is_of_a_state(self, addr_of(i % RACE_PAGES) + i,
					  flags[i / RACE_PAGES], &start)) {
			TH_LOG("page %u, flags %#jx", i % RACE_PAGES,
			       (uintmax_t)flags[i / RACE_PAGES]);
		}
		changes += last[i] != start;
		last[i] = start;
		ASSERT_FALSE(is_late());
	}
}

TEST_F_TIMEOUT(race, process_that_exits_has_all_mappings_until_esrch, LONG_TIMEOUT)
{
	struct procmap_query query;
	unsigned int i, n;
	struct child child;
	int fd, err;

	for (i = 0; i < EXITS; i++) {
		ASSERT_TRUE(start_child(&child, keep_scene, NULL));
		ASSERT_TRUE(await(child.control));
		fd = open_maps(child.pid);
		ASSERT_TRUE(notify(child.control));
		for (n = 0; !(err = query_fields(fd, start_of(n % NR_MAPPINGS), 0, &query)); n++)
			ASSERT_EQ(start_of(n % NR_MAPPINGS), query.vma_start);
		ASSERT_EQ(-ESRCH, err);
		ASSERT_EQ(-ESRCH, query_fields(fd, 0, QUERY_NEXT, &query));
		ASSERT_EQ(0, end_of_child(&child));
		close(fd);
	}
}

TEST_HARNESS_MAIN
