// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_SCAN holds nothing of its target where it may block for ever, at each of
 * its copies from and to the caller, whose memory is behind userfaultfd; and what becomes of
 * a scan during which mappings change, or a signal comes.
 */
#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

/* Pages of the call: its structure, the records and the data. */
enum { ARG_PAGE, VEC_PAGE, DATA_PAGE = VEC_PAGE + 5, NR_PAGES = DATA_PAGE + 10 };

/* Bytes of records before the second page of them, however large a page is. */
#define FIRST_RECORDS	4096

FIXTURE(blocked)
{
	struct child target;
	struct maps text;	/* before the call */
	struct procmap_scan_arg *arg;
	struct blocked_call call;
};

FIXTURE_VARIANT(blocked)
{
	unsigned int page;
	bool at_write;
	/* The least that the call returns if the target exits meanwhile. */
	int least;
};

FIXTURE_VARIANT_ADD(blocked, at_reading_the_arg) { ARG_PAGE, false, -ESRCH };
FIXTURE_VARIANT_ADD(blocked, at_the_first_record) { VEC_PAGE, false, 1 };
FIXTURE_VARIANT_ADD(blocked, at_the_second_page_of_records) { VEC_PAGE + 1, false, 1 };
FIXTURE_VARIANT_ADD(blocked, at_the_data) { DATA_PAGE, false, 1 };
FIXTURE_VARIANT_ADD(blocked, at_writing_the_arg) { ARG_PAGE, true, BLOCKED_PAGES };

/* The call has to be started yet. */
FIXTURE_SETUP(blocked)
{
	struct blocked_call *const call = &self->call;
	const char *missing;

	SKIP_WITHOUT_SCAN();
	call->command = PROCMAP_SCAN;
	call->page = variant->page;
	call->at_write = variant->at_write;
	missing = start_blocked_target(&self->target, call, NR_PAGES);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_EQ(0, read_smaps(self->target.pid, &self->text));
	ASSERT_EQ(0, read_build_ids(call->fd, &self->text));
	self->arg = (void *)call->arg;
	*self->arg = (struct procmap_scan_arg) {
		.size = sizeof(*self->arg),
		.want = SCAN_ALL,
		.start = AREA,
		.end = addr_of(BLOCKED_PAGES),
		.vec = (uintptr_t)call->arg + (VEC_PAGE + 1) * page_size() - FIRST_RECORDS,
		.vec_len = BLOCKED_PAGES,
		.vma_size = sizeof(struct procmap_vma),
		.data = (uintptr_t)call->arg + DATA_PAGE * page_size(),
		.data_size = (NR_PAGES - DATA_PAGE) * page_size(),
	};
}

FIXTURE_TEARDOWN(blocked)
{
	stop_child(&self->target);
}

/*
 * The first records are those from before the change, all others from after it. The first
 * of these begins among the old ones, and is whole.
 */
TEST_F(blocked, call_lets_mappings_merge_and_goes_on_with_those_of_then)
{
	const struct blocked_call *const call = &self->call;
	struct maps after, *maps = &self->text;
	const struct maps_line *line;
	unsigned int changes = 0;
	uint64_t pos = AREA;
	int n;

	ASSERT_TRUE(start_blocked_call(&self->call));
	ASSERT_TRUE(notify(self->target.control));
	ASSERT_TRUE(await(self->target.control));
	ASSERT_EQ(0, read_smaps(self->target.pid, &after));
	ASSERT_EQ(0, read_build_ids(call->fd, &after));
	ASSERT_TRUE(finish_blocked_call(&self->call));
	for (n = 0; n < call->ret; n++, pos = line->end) {
		line = line_at(maps, pos);
		if (maps == &self->text &&
		    *wrong_record(self->arg, record_at(self->arg, n), line)) {
			maps = &after;
			line = line_at(maps, pos);
			changes++;
		}
		ASSERT_STREQ("", wrong_record(self->arg, record_at(self->arg, n), line));
	}
	EXPECT_EQ(self->arg->end, pos);
	EXPECT_EQ(self->arg->end, self->arg->walk_end);
	EXPECT_EQ(variant->at_write ? 0u : 1u, changes);
	/* All of it is of one state if it had not begun, or was at its end. */
	if (variant->page != ARG_PAGE)
		EXPECT_EQ(!!self->arg->generation, self->arg->flags & PROCMAP_SCAN_CHANGED);
	free_maps(&after);
}

/* A file system can be unmounted only if no file of it is held. */
TEST_F(blocked, call_lets_the_address_space_and_its_files_go_at_exit)
{
	struct procmap_query query;
	size_t next;

	ASSERT_TRUE(start_blocked_call(&self->call));
	ASSERT_EQ(-1, umount2(SCRATCH, 0));
	ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, query_fields(self->call.fd, AREA, 0, &query));
	stop_child(&self->target);
	EXPECT_EQ(-ESRCH, query_fields(self->call.fd, AREA, 0, &query));
	EXPECT_EQ(0, umount2(SCRATCH, 0));
	ASSERT_TRUE(finish_blocked_call(&self->call));
	EXPECT_LE(variant->least, self->call.ret);
	if (self->call.ret < 0)
		return;
	EXPECT_STREQ("", wrong_records(self->arg, self->call.ret, &self->text, &next));
	EXPECT_EQ(next == self->text.nr, self->arg->walk_end == self->arg->end);
}

static void ignore_signal(int signal)
{
	(void)signal;
}

/* No time has to be met: the scan blocks meanwhile. */
static void interrupt_call(struct __test_metadata *const _metadata, struct blocked_call *call)
{
	const struct sigaction action = { .sa_handler = ignore_signal };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_TRUE(start_blocked_call(call));
	ASSERT_EQ(0, pthread_kill(call->thread, SIGUSR1));
	ASSERT_TRUE(finish_blocked_call(call));
}

/* The records that were copied out before the signal are returned. */
TEST_F(blocked, call_that_is_interrupted_goes_on_from_walk_end)
{
	size_t next;
	int nr;

	interrupt_call(_metadata, &self->call);
	ASSERT_LE(1, self->call.ret);
	EXPECT_STREQ("", wrong_records(self->arg, self->call.ret, &self->text, &next));
	if (self->arg->walk_end == self->arg->end) {
		EXPECT_TRUE(variant->at_write);
		return;
	}
	EXPECT_FALSE(variant->at_write);
	self->arg->start = self->arg->walk_end;
	nr = procmap_scan(self->call.fd, self->arg);
	EXPECT_STREQ("", wrong_scan(self->arg, nr, &self->text));
	EXPECT_EQ(BLOCKED_PAGES, self->call.ret + nr);
}

/* Nothing is shared, so there is nothing to return but the error. */
TEST_F(blocked, call_that_is_interrupted_without_a_record_is_eintr)
{
	if (variant->page != ARG_PAGE || variant->at_write)
		return;
	self->arg->filter = PROCMAP_VMA_SHARED;
	interrupt_call(_metadata, &self->call);
	EXPECT_EQ(-EINTR, self->call.ret);
	EXPECT_EQ(0u, self->arg->data_needed);
	/* A caller that is interrupted often gets on all the same. */
	EXPECT_LT(self->arg->start, self->arg->walk_end);
	EXPECT_GT(self->arg->end, self->arg->walk_end);

	self->arg->start = self->arg->walk_end;
	EXPECT_EQ(0, procmap_scan(self->call.fd, self->arg));
	EXPECT_EQ(self->arg->end, self->arg->walk_end);
}

TEST_HARNESS_MAIN
