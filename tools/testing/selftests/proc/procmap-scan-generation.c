// SPDX-License-Identifier: GPL-2.0
/*
 * Test the generation of an address space that PROCMAP_SCAN returns: every call that
 * changes mappings moves it, reading does not.
 */
#include <sys/prctl.h>

#include "procmap-scan.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA		0x53564d41
#define PR_SET_VMA_ANON_NAME	0
#endif

#define AREA_PAGES	8
#define STACK_GROWTH	0x100000

/* A scan of this process, as far as the only record of @room. */
static int scan_own(int fd, const struct room *room, uint64_t known,
		    struct procmap_scan_arg *arg)
{
	*arg = ask(room, 0, NO_END, 0);
	arg->known_generation = known;
	return procmap_scan(fd, arg);
}

/* The calls that change mappings: they work on an area of private pages. */

static bool do_mmap(char *area)
{
	return mmap(area + page_size(), page_size(), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool do_munmap(char *area)
{
	return !munmap(area + page_size(), page_size());
}

static bool do_mprotect(char *area)
{
	return !mprotect(area + page_size(), page_size(), PROT_READ);
}

static bool do_mremap(char *area)
{
	return mremap(area, AREA_PAGES * page_size(), 2 * AREA_PAGES * page_size(),
		      MREMAP_MAYMOVE) != MAP_FAILED;
}

static bool do_brk(char *area)
{
	(void)area;
	return sbrk(page_size()) != (void *)-1;
}

static bool do_mlock(char *area)
{
	return !mlock(area + page_size(), page_size());
}

static bool do_madvise(char *area)
{
	return !madvise(area + page_size(), page_size(), MADV_DONTFORK);
}

static bool do_name(char *area)
{
	return !prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, area, page_size(), "name");
}

static bool do_grow_stack(char *area)
{
	char frame[STACK_GROWTH];

	(void)area;
	return read_file("/proc/self/comm", frame, sizeof(frame));
}

/* And those that do not. */

static bool do_nothing(char *area)
{
	return area;
}

static bool do_read_text(char *area)
{
	char text[256];

	(void)area;
	return read_file("/proc/self/maps", text, sizeof(text));
}

static bool do_query(char *area)
{
	struct procmap_query query;
	const int fd = open_maps(0);
	const int err = query_fields(fd, (uintptr_t)area, 0, &query);

	close(fd);
	return !err;
}

static bool do_write_to_a_page(char *area)
{
	area[0] = 1;
	return true;
}

FIXTURE(generation)
{
	int fd;
	char *area;
	struct procmap_vma vma;
	struct room room;
	struct procmap_scan_arg before;
};

FIXTURE_VARIANT(generation)
{
	bool (*call)(char *area);
	bool changes;
};

FIXTURE_VARIANT_ADD(generation, mmap) {
	.call = do_mmap,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, munmap) {
	.call = do_munmap,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, mprotect) {
	.call = do_mprotect,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, mremap) {
	.call = do_mremap,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, brk) {
	.call = do_brk,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, mlock) {
	.call = do_mlock,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, madvise) {
	.call = do_madvise,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, name) {
	.call = do_name,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, grow_stack) {
	.call = do_grow_stack,
	.changes = true,
};

FIXTURE_VARIANT_ADD(generation, nothing) {
	.call = do_nothing,
};

FIXTURE_VARIANT_ADD(generation, read_text) {
	.call = do_read_text,
};

FIXTURE_VARIANT_ADD(generation, query) {
	.call = do_query,
};

FIXTURE_VARIANT_ADD(generation, write_to_a_page) {
	.call = do_write_to_a_page,
};

FIXTURE_SETUP(generation)
{
	skip_without_scan(_metadata);
	self->fd = open_maps(0);
	ASSERT_LE(0, self->fd);
	self->area = map_room(AREA_PAGES * page_size());
	ASSERT_NE(NULL, self->area);
	/* So that reading allocates nothing for the first time. */
	ASSERT_TRUE(do_read_text(self->area));
	self->room = (struct room){ .vec = &self->vma, .vec_len = 1 };
	ASSERT_EQ(1, scan_own(self->fd, &self->room, 0, &self->before));
	EXPECT_EQ(0, self->before.flags);
	if (!self->before.generation)
		SKIP_SETUP("this kernel does not count changes of mappings");
}

FIXTURE_TEARDOWN(generation)
{
	close(self->fd);
}

TEST_F(generation, moves_with_mappings_only)
{
	struct procmap_scan_arg after;
	int nr;

	if (!variant->call(self->area))
		SKIP(return, "this kernel cannot do that: %s", strerror(errno));
	nr = scan_own(self->fd, &self->room, self->before.generation, &after);
	EXPECT_EQ(0, after.flags);
	EXPECT_NE(0, after.generation);
	if (variant->changes) {
		EXPECT_NE(self->before.generation, after.generation);
		EXPECT_EQ(1, nr);
		EXPECT_GT(NO_END, after.walk_end);
		return;
	}
	EXPECT_EQ(self->before.generation, after.generation);
	EXPECT_EQ(0, nr);
	EXPECT_EQ(NO_END, after.walk_end);
	EXPECT_EQ(0, after.data_used);

	/* Another one counts as changed. */
	EXPECT_EQ(1, scan_own(self->fd, &self->room, self->before.generation + 2,
			      &after));
}

TEST_HARNESS_MAIN
