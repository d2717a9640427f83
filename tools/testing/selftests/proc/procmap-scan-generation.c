// SPDX-License-Identifier: GPL-2.0
/*
 * Test the generation of an address space that PROCMAP_SCAN returns: calls that change
 * mappings move it, and others do not. A kernel that does not count changes returns 0, and
 * does not compare the known one. Other kernels return no records as long as it is the same.
 */
#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

/* No mapping below it keeps a stack there from growing. */
#define STACK_PAGE	800

#define VEC_LEN		1024
#define DATA_SIZE	(64 * 4096)

/* A process that looks at itself, with private memory of eight pages at AREA. */
FIXTURE(generation)
{
	int fd;
	struct scan_buffers buffers;
	uint64_t first;		/* the generation before the test, or 0 */
};

static struct procmap_scan_arg arg_since(const struct _test_data_generation *self,
					 uint64_t generation)
{
	struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, SCAN_ALL);

	arg.known_generation = generation;
	return arg;
}

/* Returns the generation, of a scan that has to be complete. */
static uint64_t scan_since(struct __test_metadata *const _metadata,
			   const struct _test_data_generation *self, uint64_t generation)
{
	struct procmap_scan_arg arg = arg_since(self, generation);

	EXPECT_LT(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(0u, arg.flags & PROCMAP_SCAN_CHANGED);
	return arg.generation;
}

FIXTURE_SETUP(generation)
{
	SKIP_WITHOUT_SCAN();
	self->buffers = make_scan_buffers(VEC_LEN, DATA_SIZE);
	ASSERT_TRUE(map_area(0, 8, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1));
	self->fd = open_maps(0);
	self->first = scan_since(_metadata, self, 0);
}

FIXTURE_TEARDOWN(generation)
{
}

TEST_F(generation, is_counted)
{
	if (!self->first)
		SKIP(return, "this kernel does not count changes of mappings");
}

TEST_F(generation, moves_with_each_change_of_mappings)
{
	uint64_t before = self->first, after;
	unsigned int i;

	for (i = 0; i < 4; i++, before = after) {
		switch (i) {
		case 0:
			ASSERT_TRUE(map_area(STACK_PAGE, 1, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_GROWSDOWN, -1));
			break;
		case 1:
			*page_at(STACK_PAGE - 1) = 1;
			break;
		case 2:
			ASSERT_EQ(0, mprotect(page_at(2), page_size(), PROT_READ));
			break;
		default:
			ASSERT_EQ(0, munmap(page_at(1), page_size()));
			break;
		}
		after = scan_since(_metadata, self, before);
		EXPECT_EQ(!before, after == before) {
			TH_LOG("change %u", i);
		}
		EXPECT_EQ(!before, !after);
	}
}

/* Nothing is written but the argument, if the kernel knows that there is nothing new. */
TEST_F(generation, stays_with_mappings_and_then_there_are_no_records)
{
	struct procmap_scan_arg arg = arg_since(self, self->first);
	struct procmap_vma *const vec = self->buffers.vec;

	*page_at(0) = 1;
	memset(vec, FILL, sizeof(*vec));
	memset(self->buffers.data, FILL, DATA_SIZE);
	EXPECT_EQ(!self->first, procmap_scan(self->fd, &arg) > 0);
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(self->first, arg.generation);
	EXPECT_EQ(!self->first, !!arg.data_used);
	EXPECT_EQ(0u, arg.data_needed);
	EXPECT_EQ(0u, arg.flags & PROCMAP_SCAN_CHANGED);
	EXPECT_EQ(!!self->first, is_filled(vec, sizeof(*vec), FILL));
	EXPECT_EQ(!!self->first, is_filled(self->buffers.data, DATA_SIZE, FILL));
}

TEST_F(generation, is_not_that_of_another_time)
{
	static const uint64_t others[] = {
		1, 2, 3, INT_MAX, UINT_MAX, 1ull << 32, 1ull << 63, ~0ull,
	};
	unsigned int i;

	EXPECT_EQ(self->first, scan_since(_metadata, self, self->first + 2));
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i] != self->first)
			EXPECT_EQ(self->first, scan_since(_metadata, self, others[i]));
}

/* All calls of a scan have that of the first as long as nothing changes. */
TEST_F(generation, is_returned_throughout_a_scan)
{
	struct procmap_scan_arg arg = arg_since(self, 0);
	unsigned int calls;

	arg.vec_len = 2;
	for (calls = 0; arg.walk_end != arg.end; calls++) {
		ASSERT_LE(0, procmap_scan(self->fd, &arg));
		ASSERT_EQ(self->first, arg.generation);
		ASSERT_EQ(0u, arg.flags & PROCMAP_SCAN_CHANGED);
		arg.start = arg.walk_end;
	}
	EXPECT_LT(1u, calls);
}

/* Wrong arguments and a process that is gone are errors, changed or not. */
TEST_F(generation, is_looked_at_after_errors)
{
	struct procmap_scan_arg arg = arg_since(self, self->first);
	struct child child;
	int fd;

	arg.want |= 0x04;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	ASSERT_TRUE(start_child(&child, keep_still, NULL));
	fd = open_maps(child.pid);
	arg = arg_since(self, 0);
	ASSERT_LT(0, procmap_scan(fd, &arg));
	stop_child(&child);
	arg = arg_since(self, arg.generation);
	EXPECT_EQ(-ESRCH, procmap_scan(fd, &arg));
}

TEST_HARNESS_MAIN
