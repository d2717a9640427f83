// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY holds nothing of its target where it may block for ever: at each of
 * its copies from and to the caller, whose memory is behind userfaultfd.
 */
#include "../kselftest_harness.h"
#include "procmap_util.h"

/* Pages of the call: its structure, the name and the build ID. */
enum { STRUCT_PAGE, NAME_PAGE, ID_PAGE, NR_PAGES };

FIXTURE(blocked)
{
	struct child target;
	struct blocked_call call;
};

FIXTURE_VARIANT(blocked)
{
	unsigned int page;
	bool at_write;
	int at_exit;		/* what the call returns if the target exits meanwhile */
};

FIXTURE_VARIANT_ADD(blocked, at_reading_the_struct) { STRUCT_PAGE, false, -ESRCH };
FIXTURE_VARIANT_ADD(blocked, at_the_name) { NAME_PAGE, false, 0 };
FIXTURE_VARIANT_ADD(blocked, at_the_build_id) { ID_PAGE, false, 0 };
FIXTURE_VARIANT_ADD(blocked, at_writing_the_struct) { STRUCT_PAGE, true, 0 };

FIXTURE_SETUP(blocked)
{
	struct blocked_call *const call = &self->call;
	const char *missing;

	call->command = PROCMAP_QUERY;
	call->page = variant->page;
	call->at_write = variant->at_write;
	missing = start_blocked_target(&self->target, call, NR_PAGES);
	if (missing)
		SKIP_SETUP(missing);
	*(struct procmap_query *)call->arg = QUERY(.query_addr = AREA,
		.vma_name_addr = (uintptr_t)call->arg + NAME_PAGE * page_size(),
		.vma_name_size = page_size(),
		.build_id_addr = (uintptr_t)call->arg + ID_PAGE * page_size(),
		.build_id_size = page_size());
	ASSERT_TRUE(start_blocked_call(call));
}

FIXTURE_TEARDOWN(blocked)
{
	stop_child(&self->target);
}

/* The call has found the file. */
static void expect_answer(struct __test_metadata *const _metadata,
			  const struct _test_data_blocked *self)
{
	const char *const pages = self->call.arg;
	const struct procmap_query *const query = (void *)pages;

	EXPECT_EQ(addr_of(0), query->vma_start);
	EXPECT_EQ(addr_of(1), query->vma_end);
	EXPECT_STREQ(BLOCKED_FILE, pages + NAME_PAGE * page_size());
	EXPECT_EQ(BUILD_ID_SIZE, query->build_id_size);
	EXPECT_EQ(0, memcmp(scene_id, pages + ID_PAGE * page_size(), BUILD_ID_SIZE));
}

/* mmap(2) in the target waits for mmap_lock. */
TEST_F(blocked, call_lets_the_target_change_its_mappings)
{
	ASSERT_TRUE(notify(self->target.control));
	EXPECT_TRUE(await(self->target.control));
	ASSERT_TRUE(finish_blocked_call(&self->call));
	EXPECT_EQ(0, self->call.ret);
	expect_answer(_metadata, self);
}

/* A file system can be unmounted only if no file of it is held. */
TEST_F(blocked, call_lets_the_address_space_and_its_files_go_at_exit)
{
	struct procmap_query query;

	ASSERT_EQ(-1, umount2(SCRATCH, 0));
	ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, query_fields(self->call.fd, AREA, 0, &query));
	stop_child(&self->target);
	EXPECT_EQ(-ESRCH, query_fields(self->call.fd, AREA, 0, &query));
	EXPECT_EQ(0, umount2(SCRATCH, 0));
	ASSERT_TRUE(finish_blocked_call(&self->call));
	EXPECT_EQ(variant->at_exit, self->call.ret);
	if (!variant->at_exit)
		expect_answer(_metadata, self);
}

TEST_HARNESS_MAIN
