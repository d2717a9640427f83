// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY finds all mappings that stay, and nothing that never was, while
 * mappings change, and while the process forks, exits or executes another program.
 */
#include "../kselftest_harness.h"
#include "procmap_race.h"

/* Walks, and such that must have met a change. */
#define WALKS		200
#define DISTURBED	30

/* Targets that exit or execute another program, and forks of one. */
#define EXITS		60
#define FORKS		300

/* Query all that a mapping has. Returns 0 or -errno; -EBADMSG for a wrong build ID. */
static int query_line(int fd, uint64_t addr, uint64_t flags, struct maps_line *line)
{
	static char name[PATH_MAX];
	uint8_t id[BUILD_ID_SIZE];
	struct procmap_query query = QUERY(.query_addr = addr, .query_flags = flags,
		.vma_name_addr = (uintptr_t)name, .vma_name_size = sizeof(name),
		.build_id_addr = (uintptr_t)id, .build_id_size = sizeof(id));
	int err;

	*name = '\0';
	err = procmap_query(fd, &query);
	*line = (struct maps_line) {
		.start = query.vma_start, .end = query.vma_end, .flags = query.vma_flags,
		.offset = query.vma_offset, .inode = query.inode, .name = name,
		.dev_major = query.dev_major, .dev_minor = query.dev_minor,
	};
	/* The file at AREA has an ID. */
	if (!err && line->start >= AREA && line->end <= addr_of(FENCE_PAGE) && line->inode &&
	    (query.build_id_size != sizeof(id) || memcmp(id, scene_id, sizeof(id))))
		return -EBADMSG;
	return err;
}

/* Put the mappings from an address on to @found, or until an error. */
static int walk(int fd, uint64_t addr, uint64_t end, uint64_t flags, struct maps *found)
{
	struct maps_line line;
	int err;

	*found = (struct maps) {};
	while (!(err = query_line(fd, addr, flags | QUERY_NEXT, &line)) && line.start < end) {
		found->lines = reallocarray(found->lines, found->nr + 1, sizeof(line));
		line.name = strdup(line.name);
		found->lines[found->nr++] = line;
		if (line.end <= addr)
			return -EBADMSG;
		addr = line.end;
	}
	return err == -ENOENT ? 0 : err;
}

FIXTURE(race)
{
	struct race race;
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
	ASSERT_TRUE(start_race(&self->race, variant->kind));
}

FIXTURE_TEARDOWN(race)
{
	EXPECT_TRUE(end_race(&self->race));
}

/* The answer is that of a state. Counts those that only one state has. */
static bool is_of_a_state(const struct race *race, uint64_t addr, uint64_t flags,
			  unsigned int seen[MAX_STATES])
{
	const struct maps_line *expected;
	unsigned int i, state = 0, nr = 0;
	struct maps_line line;
	int err;

	err = query_line(race->fd, addr, flags, &line);
	for (i = 0; i < race->nr_states; i++) {
		expected = expected_line(&race->states[i], addr, flags);
		if (expected ? !err && same_line(expected, &line) : err == -ENOENT) {
			state = i;
			nr++;
		}
	}
	if (nr == 1)
		seen[state]++;
	return nr;
}

TEST_F_TIMEOUT(race, each_answer_is_of_a_state_and_each_state_is_seen, LONG_TIMEOUT)
{
	static const uint64_t flags[] = { 0, PROCMAP_QUERY_VMA_EXECUTABLE, QUERY_NEXT };
	unsigned int seen[MAX_STATES] = {}, n, i, nr_seen = 0;

	for (n = 0; n < WALKS || nr_seen < self->race.nr_states ||
	     !race_is_over(&self->race); n++) {
		for (i = 0; i < RACE_PAGES * ARRAY_SIZE(flags); i++)
			ASSERT_TRUE(is_of_a_state(&self->race, addr_of(i % RACE_PAGES) + i,
						  flags[i / RACE_PAGES], seen)) {
				TH_LOG("page %u, flags %#jx", i % RACE_PAGES,
				       (uintmax_t)flags[i / RACE_PAGES]);
			}
		for (i = nr_seen = 0; i < self->race.nr_states; i++)
			nr_seen += seen[i] > 0;
		ASSERT_FALSE(is_late());
	}
}

TEST_F_TIMEOUT(race, each_walk_finds_known_mappings_and_the_one_that_stays, LONG_TIMEOUT)
{
	unsigned int n, before, disturbed = 0;
	struct maps found;

	for (n = 0; n < WALKS || disturbed < DISTURBED || !race_is_over(&self->race); n++) {
		before = self->race.shared->changes;
		ASSERT_EQ(0, walk(self->race.fd, AREA, addr_of(RACE_END),
				  n % 2 ? PROCMAP_QUERY_VMA_READABLE : 0, &found));
		disturbed += self->race.shared->changes != before;
		ASSERT_STREQ("", wrong_in_race(&self->race, &found, false));
		free_maps(&found);
		ASSERT_FALSE(is_late());
	}
}

/* A process whose mappings do not change, until it hears. */
FIXTURE(target)
{
	struct child child;
	int fd;
	struct maps text;
};

FIXTURE_SETUP(target)
{
}

FIXTURE_TEARDOWN(target)
{
	stop_child(&self->child);
}

static void start_target(struct __test_metadata *const _metadata,
			 struct _test_data_target *self,
			 int (*run)(int control, void *arg), void *arg)
{
	ASSERT_TRUE(start_child(&self->child, run, arg));
	ASSERT_TRUE(await(self->child.control));
	self->fd = open_maps(self->child.pid);
	ASSERT_EQ(0, read_maps(self->fd, &self->text));
	ASSERT_TRUE(notify(self->child.control));
}

/* Walk until the first ESRCH: all is right before. Returns the walks, or -1. */
static int walks_until_gone(int fd, const struct maps *text)
{
	struct maps found;
	bool is_right;
	int err, n;

	for (n = 0; !is_late(); n++) {
		err = walk(fd, 0, ~0ull, 0, &found);
		is_right = err == -ESRCH || (!err && same_maps(text, &found));
		free_maps(&found);
		if (!is_right)
			return -1;
		if (err)
			return n;
	}
	return -1;
}

/* Debug kernels take long to execute a program. */
TEST_F_TIMEOUT(target, that_exits_or_executes_a_program_is_whole_and_then_gone, LONG_TIMEOUT)
{
	unsigned int i;
	int n, walks = 0;

	for (i = 0; i < EXITS; i++) {
		start_target(_metadata, self,
			     i % 4 ? exit_when_it_hears : execute_when_it_hears, NULL);
		n = walks_until_gone(self->fd, &self->text);
		ASSERT_LE(0, n);
		ASSERT_EQ(0, walks_until_gone(self->fd, &self->text));
		walks += n;
		if (i % 4) {
			ASSERT_EQ(0, end_of_child(&self->child));
		} else {
			/* The new program sends this back. */
			ASSERT_TRUE(notify(self->child.control));
			ASSERT_TRUE(await(self->child.control));
		}
		stop_child(&self->child);
		close(self->fd);
		free_maps(&self->text);
	}
	EXPECT_LT(0, walks);
}

/* A child has the mappings of its parent, as long as it is there. */
TEST_F_TIMEOUT(target, that_forks_has_children_that_are_whole_and_then_gone, LONG_TIMEOUT)
{
	struct forks *const forks = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd, n, walks = 0;

	start_target(_metadata, self, fork_when_it_hears, forks);
	while (forks->nr < FORKS || !walks) {
		fd = open_maps(forks->newborn ?: INT_MAX);
		if (fd < 0)
			continue;
		n = walks_until_gone(fd, &self->text);
		ASSERT_LE(0, n);
		walks += n;
		close(fd);
		ASSERT_FALSE(is_late());
	}
}

TEST_HARNESS_MAIN
