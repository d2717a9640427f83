// SPDX-License-Identifier: GPL-2.0
/*
 * Test the generation of an address space that PROCMAP_SCAN returns: calls that change
 * mappings move it, and others do not. A kernel that does not count changes returns 0, and
 * does not compare the known one. Other kernels return no records as long as it is the same.
 */
#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

#define STACK_GROWTH	0x100000

/* The content of a buffer before a call. */
#define FILL		0xa5

/* Calls of the target, on private memory of eight pages at AREA. */
enum change {
	MMAP, MUNMAP, MPROTECT, STACK, NOTHING, WRITE,
};

static bool grow_stack(void)
{
	char frame[STACK_GROWTH];

	return read_file("/proc/self/comm", frame, sizeof(frame));
}

static bool make_change(enum change change)
{
	const size_t size = page_size();

	switch (change) {
	case MMAP:
		return mmap(page_at(1), size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
			    MAP_FIXED, -1, 0) != MAP_FAILED;
	case MUNMAP:
		return !munmap(page_at(1), size);
	case MPROTECT:
		return !mprotect(page_at(1), size, PROT_READ);
	case STACK:
		return grow_stack();
	case WRITE:
		*page_at(0) = 1;
		return true;
	default:
		return true;
	}
}

/* Make the change whenever it hears. */
static int keep_changing(int control, void *arg)
{
	const enum change *const change = arg;
	bool ok = mmap(page_at(0), 8 * page_size(), PROT_READ | PROT_WRITE, MAP_FIXED |
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;

	while (ok && notify(control) && await(control))
		ok = make_change(*change);
	return 1;
}

FIXTURE(generation)
{
	struct child target;
	int fd;			/* its maps file */
	struct maps text;
	struct scan_buffers buffers;
};

FIXTURE_VARIANT(generation)
{
	enum change change;
};

FIXTURE_VARIANT_ADD(generation, mmap) { MMAP };
FIXTURE_VARIANT_ADD(generation, munmap) { MUNMAP };
FIXTURE_VARIANT_ADD(generation, mprotect) { MPROTECT };
FIXTURE_VARIANT_ADD(generation, grow_stack) { STACK };
FIXTURE_VARIANT_ADD(generation, nothing) { NOTHING };
FIXTURE_VARIANT_ADD(generation, write_to_a_page) { WRITE };

static void read_text(struct __test_metadata *const _metadata,
		      struct _test_data_generation *self)
{
	free_maps(&self->text);
	ASSERT_EQ(0, read_smaps(self->target.pid, &self->text));
	ASSERT_EQ(0, read_build_ids(self->fd, &self->text));
}

FIXTURE_SETUP(generation)
{
	enum change change = variant->change;

	SKIP_WITHOUT_SCAN();
	self->buffers = make_scan_buffers(1024, 64 * 4096);
	ASSERT_TRUE(start_child(&self->target, keep_changing, &change));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	read_text(_metadata, self);
}

FIXTURE_TEARDOWN(generation)
{
	stop_child(&self->target);
	free_maps(&self->text);
	close(self->fd);
}

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
	const int nr = procmap_scan(self->fd, &arg);

	EXPECT_EQ((int)self->text.nr, nr);
	EXPECT_STREQ("", wrong_scan(&arg, nr, &self->text));
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(0u, arg.flags);
	return arg.generation;
}

/* The kernel knows that nothing has changed since, if it knows the generation. */
static void expect_nothing_since(struct __test_metadata *const _metadata,
				 const struct _test_data_generation *self,
				 uint64_t generation)
{
	struct procmap_scan_arg arg = arg_since(self, generation);

	if (!generation) {
		EXPECT_EQ(0u, scan_since(_metadata, self, 0));
		return;
	}
	memset(self->buffers.vec, FILL, sizeof(struct procmap_vma));
	memset(self->buffers.data, FILL, page_size());
	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(generation, arg.generation);
	EXPECT_EQ(0u, arg.data_used);
	EXPECT_EQ(0u, arg.data_needed);
	EXPECT_EQ(0u, arg.flags);
	EXPECT_TRUE(is_filled(self->buffers.vec, sizeof(struct procmap_vma), FILL));
	EXPECT_TRUE(is_filled(self->buffers.data, page_size(), FILL));
}

TEST_F(generation, moves_with_mappings_only)
{
	const bool changes = variant->change != NOTHING && variant->change != WRITE;
	const uint64_t generation = scan_since(_metadata, self, 0);

	expect_nothing_since(_metadata, self, generation);
	ASSERT_TRUE(notify(self->target.control) && await(self->target.control));
	read_text(_metadata, self);
	if (!generation || !changes) {
		expect_nothing_since(_metadata, self, generation);
		return;
	}
	EXPECT_NE(generation, scan_since(_metadata, self, generation));
	EXPECT_NE(0u, scan_since(_metadata, self, generation));
}

TEST_F(generation, is_counted)
{
	if (!scan_since(_metadata, self, 0))
		SKIP(return, "this kernel does not count changes of mappings");
}

TEST_F(generation, is_not_that_of_another_time)
{
	static const uint64_t others[] = {
		1, 2, 3, INT_MAX, UINT_MAX, 1ull << 32, 1ull << 63, ~0ull,
	};
	const uint64_t generation = scan_since(_metadata, self, 0);
	unsigned int i;

	EXPECT_EQ(generation, scan_since(_metadata, self, generation + 2));
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i] != generation)
			EXPECT_EQ(generation, scan_since(_metadata, self, others[i]));
}

/* All calls of a scan have that of the first as long as nothing changes. */
TEST_F(generation, is_returned_throughout_a_scan)
{
	const uint64_t generation = scan_since(_metadata, self, 0);
	struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, SCAN_ALL);
	unsigned int calls;

	arg.vec_len = 2;
	for (calls = 0; arg.walk_end != arg.end; calls++) {
		ASSERT_LE(0, procmap_scan(self->fd, &arg));
		ASSERT_EQ(generation, arg.generation);
		ASSERT_EQ(0u, arg.flags);
		arg.start = arg.walk_end;
	}
	EXPECT_LT(1u, calls);
}

/* Wrong arguments and a process that is gone are errors, changed or not. */
TEST_F(generation, is_looked_at_after_errors)
{
	const uint64_t generation = scan_since(_metadata, self, 0);
	struct procmap_scan_arg arg = arg_since(self, generation);

	arg.want |= 0x04;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	arg = arg_since(self, generation);
	arg.vec = 0;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	stop_child(&self->target);
	arg = arg_since(self, generation);
	EXPECT_EQ(-ESRCH, procmap_scan(self->fd, &arg));
}

TEST_HARNESS_MAIN
