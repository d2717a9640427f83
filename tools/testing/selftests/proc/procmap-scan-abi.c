// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_SCAN: the layout of its structures, and each of their
 * fields, filters and errors.
 */
#include <assert.h>
#include <stdatomic.h>

#include "procmap-exec.h"
#include "procmap-order.h"
#include "procmap-scan.h"
#include "procmap-scene.h"

#define ASSERT_OFFSET(type, field, bytes) \
	static_assert(offsetof(struct type, field) == (bytes), "")

#define ASSERT_SIZE(type, field, bytes) \
	static_assert(sizeof((*(struct type *)0).field) == (bytes), "")

ASSERT_OFFSET(procmap_scan_arg, size, 0);
ASSERT_OFFSET(procmap_scan_arg, filter, 8);
ASSERT_OFFSET(procmap_scan_arg, want, 16);
ASSERT_OFFSET(procmap_scan_arg, start, 24);
ASSERT_OFFSET(procmap_scan_arg, end, 32);
ASSERT_OFFSET(procmap_scan_arg, known_generation, 40);
ASSERT_OFFSET(procmap_scan_arg, walk_end, 48);
ASSERT_OFFSET(procmap_scan_arg, generation, 56);
ASSERT_OFFSET(procmap_scan_arg, vec, 64);
ASSERT_OFFSET(procmap_scan_arg, data, 72);
ASSERT_OFFSET(procmap_scan_arg, vec_len, 80);
ASSERT_OFFSET(procmap_scan_arg, vma_size, 84);
ASSERT_OFFSET(procmap_scan_arg, data_size, 88);
ASSERT_OFFSET(procmap_scan_arg, data_used, 92);
ASSERT_OFFSET(procmap_scan_arg, data_needed, 96);
ASSERT_OFFSET(procmap_scan_arg, flags, 100);

ASSERT_SIZE(procmap_scan_arg, size, 8);
ASSERT_SIZE(procmap_scan_arg, filter, 8);
ASSERT_SIZE(procmap_scan_arg, want, 8);
ASSERT_SIZE(procmap_scan_arg, start, 8);
ASSERT_SIZE(procmap_scan_arg, end, 8);
ASSERT_SIZE(procmap_scan_arg, known_generation, 8);
ASSERT_SIZE(procmap_scan_arg, walk_end, 8);
ASSERT_SIZE(procmap_scan_arg, generation, 8);
ASSERT_SIZE(procmap_scan_arg, vec, 8);
ASSERT_SIZE(procmap_scan_arg, data, 8);
ASSERT_SIZE(procmap_scan_arg, vec_len, 4);
ASSERT_SIZE(procmap_scan_arg, vma_size, 4);
ASSERT_SIZE(procmap_scan_arg, data_size, 4);
ASSERT_SIZE(procmap_scan_arg, data_used, 4);
ASSERT_SIZE(procmap_scan_arg, data_needed, 4);
ASSERT_SIZE(procmap_scan_arg, flags, 4);
static_assert(sizeof(struct procmap_scan_arg) == 104, "");

ASSERT_OFFSET(procmap_vma, start, 0);
ASSERT_OFFSET(procmap_vma, end, 8);
ASSERT_OFFSET(procmap_vma, flags, 16);
ASSERT_OFFSET(procmap_vma, page_size, 24);
ASSERT_OFFSET(procmap_vma, offset, 32);
ASSERT_OFFSET(procmap_vma, inode, 40);
ASSERT_OFFSET(procmap_vma, dev_major, 48);
ASSERT_OFFSET(procmap_vma, dev_minor, 52);
ASSERT_OFFSET(procmap_vma, name_offset, 56);
ASSERT_OFFSET(procmap_vma, name_size, 60);
ASSERT_OFFSET(procmap_vma, build_id_offset, 64);
ASSERT_OFFSET(procmap_vma, build_id_size, 68);

ASSERT_SIZE(procmap_vma, start, 8);
ASSERT_SIZE(procmap_vma, end, 8);
ASSERT_SIZE(procmap_vma, flags, 8);
ASSERT_SIZE(procmap_vma, page_size, 8);
ASSERT_SIZE(procmap_vma, offset, 8);
ASSERT_SIZE(procmap_vma, inode, 8);
ASSERT_SIZE(procmap_vma, dev_major, 4);
ASSERT_SIZE(procmap_vma, dev_minor, 4);
ASSERT_SIZE(procmap_vma, name_offset, 4);
ASSERT_SIZE(procmap_vma, name_size, 4);
ASSERT_SIZE(procmap_vma, build_id_offset, 4);
ASSERT_SIZE(procmap_vma, build_id_size, 4);
static_assert(sizeof(struct procmap_vma) == 72, "");

/* The array is, in 32 bits, too. */
static_assert(_Alignof(struct procmap_vma) == 8, "");
static_assert(_Alignof(struct procmap_scan_arg) == 8, "");

static_assert(PROCMAP_SCAN == 0xc06866e0, "");
static_assert(PROCMAP_VMA_READABLE == 0x01, "");
static_assert(PROCMAP_VMA_WRITABLE == 0x02, "");
static_assert(PROCMAP_VMA_EXECUTABLE == 0x04, "");
static_assert(PROCMAP_VMA_SHARED == 0x08, "");
static_assert(PROCMAP_VMA_FILE_BACKED == 0x10, "");
static_assert(PROCMAP_VMA_NAME_TOO_LONG == 0x20, "");
static_assert(PROCMAP_SCAN_NAMES == 0x01, "");
static_assert(PROCMAP_SCAN_BUILD_IDS == 0x02, "");
static_assert(PROCMAP_SCAN_CHANGED == 0x01, "");

/* The scene has the filters of PROCMAP_QUERY: R, W, X and S are the same here. */
#define FILE_BACKED	PROCMAP_VMA_FILE_BACKED

#define NR_ROOM		64
#define DATA_SIZE	4096

/* What a scan writes to, and the truth. Each test is a process of its own. */
static struct room room;
static struct truth truth;

static void make_buffers(struct __test_metadata *const _metadata, int fd)
{
	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&room, NR_ROOM, DATA_SIZE));
	memset(room.vec, FILL, NR_ROOM * sizeof(*room.vec));
	memset(room.data, FILL, DATA_SIZE);
	ASSERT_EQ(0, read_truth(fd, &truth));
}

static struct procmap_scan_arg ask_scene(uint64_t want)
{
	return ask(&room, SCENE_START, scene_end(), want);
}

static struct procmap_scan_arg ask_filtered(uint64_t filter, uint64_t want)
{
	struct procmap_scan_arg arg = ask_scene(want);

	arg.filter = filter;
	return arg;
}

/* The flags of a mapping's record. */
static uint64_t flags_of(enum mapping mapping)
{
	return (scene[mapping].passes & PERMISSIONS) |
	       (scene[mapping].passes & F ? FILE_BACKED : 0);
}

/* Each field of the answer. */

TEST_F(process, all_is_as_in_the_scene)
{
	struct procmap_scan_arg arg = ask_scene(ALL);
	unsigned int i;

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_EQ(scene_end(), arg.walk_end);
	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct procmap_vma *const vma = &room.vec[i];
		const char *const data = room.data;

		EXPECT_EQ(start_of(i), vma->start);
		EXPECT_EQ(end_of(i), vma->end);
		EXPECT_EQ(flags_of(i), vma->flags);
		EXPECT_EQ(page_size(), vma->page_size);
		EXPECT_EQ(scene[i].offset, vma->offset);
		EXPECT_EQ(!(scene[i].passes & F), !vma->inode);
		EXPECT_EQ(!(scene[i].passes & F), !vma->name_size);
		if (!is_elf(i)) {
			EXPECT_EQ(0u, vma->build_id_size);
			continue;
		}
		EXPECT_EQ(sizeof(FILE_NAME), vma->name_size);
		EXPECT_STREQ(FILE_NAME, data + vma->name_offset);
		EXPECT_EQ(sizeof(build_id), vma->build_id_size);
		EXPECT_EQ(0, memcmp(build_id, data + vma->build_id_offset,
				    sizeof(build_id)));
	}
	EXPECT_STREQ("", wrong_scan(&truth, &arg, NR_MAPPINGS));
}

TEST_F(process, page_size_is_that_of_smaps)
{
	struct procmap_scan_arg arg = ask_scene(0);
	struct maps smaps;
	uint64_t *sizes;
	size_t i, found = 0;

	ASSERT_EQ(0, read_smaps(self->target.pid, &smaps, &sizes));
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	for (i = 0; i < smaps.nr; i++) {
		if (smaps.lines[i].start != room.vec[found].start)
			continue;
		EXPECT_EQ(sizes[i], room.vec[found].page_size);
		found++;
	}
	EXPECT_EQ((size_t)NR_MAPPINGS, found);
}

TEST_F(process, names_and_build_ids_are_returned_if_wanted)
{
	const uint64_t wanted[] = { 0, NAMES, BUILD_IDS, ALL };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct procmap_scan_arg arg = ask_scene(wanted[i]);

		ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&truth, &arg, NR_MAPPINGS));
		for (n = 0; n < NR_MAPPINGS; n++) {
			if (!(wanted[i] & NAMES))
				EXPECT_EQ(0u, room.vec[n].name_size);
			if (!(wanted[i] & BUILD_IDS))
				EXPECT_EQ(0u, room.vec[n].build_id_size);
		}
		EXPECT_EQ(!wanted[i], !arg.data_used);
	}
}

TEST_F(process, no_data_is_needed_where_there_is_no_name)
{
	struct procmap_scan_arg arg = ask(&room, start_of(PRIVATE_NONE),
					  end_of(PRIVATE_RX), ALL);

	arg.data = 0;
	arg.data_size = 0;
	EXPECT_EQ(3, procmap_scan(self->fd, &arg));
	EXPECT_EQ(end_of(PRIVATE_RX), arg.walk_end);
	EXPECT_EQ(0u, arg.data_used);
}

TEST_F(process, input_fields_stay)
{
	struct procmap_scan_arg arg = ask_filtered(R, ALL);
	const struct procmap_scan_arg before = arg;

	ASSERT_LT(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(scene_end(), arg.walk_end);
	EXPECT_LT(0u, arg.data_used);
	arg.walk_end = before.walk_end;
	arg.generation = before.generation;
	arg.data_used = before.data_used;
	EXPECT_EQ(0, memcmp(&before, &arg, sizeof(arg)));
}

TEST_F(process, what_the_caller_left_in_output_fields_does_not_matter)
{
	struct procmap_scan_arg arg = ask_scene(ALL);

	arg.walk_end = ~0ull;
	arg.generation = ~0ull;
	arg.data_used = ~0u;
	arg.data_needed = ~0u;
	arg.flags = ~0u;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, NR_MAPPINGS));
	EXPECT_EQ(0u, arg.data_needed);
}

TEST_F(process, file_position_stays)
{
	struct procmap_scan_arg arg = ask_scene(ALL);

	ASSERT_EQ(7, lseek(self->fd, 7, SEEK_SET));
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_EQ(7, lseek(self->fd, 0, SEEK_CUR));
}

static bool is_filled(const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;

	while (size && *byte == FILL) {
		byte++;
		size--;
	}
	return !size;
}

TEST_F(process, what_is_past_the_answer_stays)
{
	struct procmap_scan_arg arg = ask_scene(ALL);

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_TRUE(is_filled(room.vec + NR_MAPPINGS,
			      (NR_ROOM - NR_MAPPINGS) * sizeof(*room.vec)));
	EXPECT_TRUE(is_filled(room.data + arg.data_used,
			      DATA_SIZE - arg.data_used));
}

TEST_F(process, nothing_is_written_without_a_record)
{
	struct procmap_scan_arg arg = ask(&room, end_of(FILE_R),
					  start_of(FILE_RW), ALL);

	ASSERT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_TRUE(is_filled(room.vec, NR_ROOM * sizeof(*room.vec)));
	EXPECT_TRUE(is_filled(room.data, DATA_SIZE));
	EXPECT_EQ(0u, arg.data_used);
}

/* Ranges and filters. */

TEST_F(process, every_range_is_that_of_the_text)
{
	const uint64_t page = page_size();
	uint64_t start, end;

	for (start = SCENE_START - page; start <= scene_end(); start += page) {
		for (end = start; end <= scene_end(); end += page) {
			struct procmap_scan_arg arg =
				ask(&room, start, end, ALL);
			const int nr = procmap_scan(self->fd, &arg);

			ASSERT_STREQ("", wrong_scan(&truth, &arg, nr)) {
				TH_LOG("%#llx to %#llx", (long long)start,
				       (long long)end);
			}
			ASSERT_EQ(end, arg.walk_end);
		}
	}
}

TEST_F(process, end_need_not_be_aligned)
{
	const uint64_t ends[] = {
		start_of(FILE_R) - 1, start_of(FILE_R) + 1, end_of(FILE_R) - 1,
		end_of(FILE_R) + 1,
	};
	const int nr[] = { 0, 1, 1, 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		struct procmap_scan_arg arg =
			ask(&room, end_of(FILE_NONE), ends[i], ALL);

		ASSERT_EQ(nr[i], procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&truth, &arg, nr[i]));
		EXPECT_EQ(ends[i], arg.walk_end);
	}
}

/* A record has the whole mapping, wherever the range begins and ends. */

TEST_F(process, file_that_begins_below_the_start_is_whole)
{
	const uint64_t start = start_of(FILE_FAR) + page_size();
	struct procmap_scan_arg arg = ask(&room, start, scene_end(), ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_FAR), room.vec->start);
	EXPECT_EQ(end_of(FILE_FAR), room.vec->end);
	EXPECT_EQ(FAR_OFFSET, (long long)room.vec->offset);
	EXPECT_EQ(scene_end(), arg.walk_end);
}

TEST_F(process, memory_that_begins_below_the_start_is_whole)
{
	const uint64_t start = start_of(PRIVATE_RW) + page_size();
	struct procmap_scan_arg arg = ask(&room, start, end_of(PRIVATE_RW),
					  ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(PRIVATE_RW), room.vec->start);
	EXPECT_EQ(end_of(PRIVATE_RW), room.vec->end);
	EXPECT_EQ(0u, room.vec->offset);
}

/* So the next scan begins past the mapping, and does not return it again. */
TEST_F(process, mapping_that_ends_above_the_end_is_whole)
{
	const uint64_t end = start_of(FILE_R) + page_size();
	struct procmap_scan_arg arg = ask(&room, end_of(FILE_NONE), end,
					  ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_R), room.vec->start);
	EXPECT_EQ(end_of(FILE_R), room.vec->end);
	EXPECT_EQ(end, arg.walk_end);
}

TEST_F(process, mapping_around_the_range_is_whole)
{
	const uint64_t start = start_of(FILE_RW) + page_size();
	struct procmap_scan_arg arg = ask(&room, start, start + 1, ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_RW), room.vec->start);
	EXPECT_EQ(end_of(FILE_RW), room.vec->end);
	EXPECT_EQ(scene[FILE_RW].offset, room.vec->offset);
	EXPECT_EQ(start + 1, arg.walk_end);
}

TEST_F(process, range_can_be_empty_anywhere)
{
	const uint64_t addrs[] = {
		0, end_of(FILE_R), start_of(FILE_R),
		start_of(FILE_R) + page_size(), -(uint64_t)page_size(),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		struct procmap_scan_arg arg =
			ask(&room, addrs[i], addrs[i], ALL);

		EXPECT_EQ(0, procmap_scan(self->fd, &arg));
		EXPECT_EQ(addrs[i], arg.walk_end);
		EXPECT_EQ(0u, arg.data_used);
	}
}

/* The sum of two addresses must not wrap around. */
TEST_F(process, range_can_reach_to_the_largest_number)
{
	const uint64_t last = -(uint64_t)page_size();
	struct procmap_scan_arg arg = ask(&room, last, NO_END, ALL);

	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);

	arg = ask(&room, start_of(FILE_FAR), NO_END, 0);
	arg.vec_len = 1;
	EXPECT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_FAR), room.vec->start);
	EXPECT_LE(end_of(FILE_FAR), arg.walk_end);
}

/* A newer harness has a mapping of its own for each test. */
TEST_F(process, whole_address_space_is_that_of_the_text)
{
	struct procmap_scan_arg arg;
	struct room large;
	size_t calls = 0;

	ASSERT_TRUE(make_room(&large, 1024, 64 * 4096));
	arg = ask(&large, 0, NO_END, ALL);
	ASSERT_LE(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);
	/* The test's own mappings change as it runs, so they are not compared. */
	if (variant->forked) {
		EXPECT_STREQ("", wrong_walk(self->fd, &truth, &large,
					    ask(&large, 0, NO_END, ALL), &calls));
		EXPECT_EQ(1u, calls);
	}
	free_room(&large);
}

TEST_F(process, every_set_of_filters_is_that_of_the_text)
{
	const uint64_t wanted[] = { 0, NAMES, BUILD_IDS, ALL };
	uint64_t filter;
	unsigned int i, seen = 0;

	for (filter = 0; filter <= SCAN_FILTERS; filter++) {
		for (i = 0; i < ARRAY_SIZE(wanted); i++) {
			struct procmap_scan_arg arg =
				ask_filtered(filter, wanted[i]);
			const int nr = procmap_scan(self->fd, &arg);

			ASSERT_STREQ("", wrong_scan(&truth, &arg, nr)) {
				TH_LOG("filter %#llx", (long long)filter);
			}
			ASSERT_EQ(scene_end(), arg.walk_end);
			seen += nr;
		}
	}
	EXPECT_LT(0u, seen);
}

/* The array of records, and the data. */

/* wrong_walk() makes each walk_end the next start, as callers do. */
TEST_F(process, scan_goes_on_where_the_array_was_full)
{
	const uint64_t filters[] = { 0, 0, R, FILE_BACKED };
	const uint64_t wanted[] = { 0, ALL, 0, ALL };
	uint32_t vec_len;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(filters); i++) {
		for (vec_len = 1; vec_len <= NR_MAPPINGS + 1; vec_len++) {
			struct procmap_scan_arg arg =
				ask_filtered(filters[i], wanted[i]);
			size_t calls = 0;

			arg.vec_len = vec_len;
			EXPECT_STREQ("", wrong_walk(self->fd, &truth,
						    &room, arg, &calls)) {
				TH_LOG("vec_len %u", vec_len);
			}
			if (!filters[i])
				EXPECT_LE(NR_MAPPINGS / vec_len, calls);
		}
	}
}

TEST_F(process, walk_end_is_the_end_once_all_is_returned)
{
	struct procmap_scan_arg arg = ask_scene(0);

	arg.vec_len = NR_MAPPINGS - 1;
	ASSERT_EQ(NR_MAPPINGS - 1, procmap_scan(self->fd, &arg));
	EXPECT_GT(scene_end(), arg.walk_end);
	EXPECT_LE(end_of(NR_MAPPINGS - 2), arg.walk_end);
	EXPECT_GE(start_of(NR_MAPPINGS - 1), arg.walk_end);

	go_on(&arg);
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(scene_end(), arg.walk_end);
	EXPECT_EQ(start_of(NR_MAPPINGS - 1), room.vec->start);
}

/* vec_len is a limit: the kernel must not check that all of the array is there. */
TEST_F(process, only_the_records_returned_need_room)
{
	const size_t size = NR_MAPPINGS * sizeof(struct procmap_vma);
	struct procmap_scan_arg arg = ask_scene(ALL);

	arg.vec = (uintptr_t)map_to_page_end(size, PROT_READ | PROT_WRITE);
	arg.vec_len = INT_MAX;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, NR_MAPPINGS));
}

TEST_F(process, only_the_data_returned_needs_room)
{
	struct procmap_scan_arg arg = ask_scene(ALL);

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	arg.data = (uintptr_t)map_to_page_end(arg.data_used,
					      PROT_READ | PROT_WRITE);
	arg.data_size = UINT_MAX;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, NR_MAPPINGS));
}

/* An address is checked by writing to it, so a bad one is no error here. */
TEST_F(process, buffers_are_not_looked_at_when_there_is_nothing_to_write)
{
	struct procmap_scan_arg arg = ask(&room, end_of(FILE_R),
					  start_of(FILE_RW), ALL);

	arg.vec = 8;
	arg.data = 1;
	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	arg.start = start_of(PRIVATE_RW);
	arg.end = end_of(PRIVATE_RW);
	arg.vec = (uintptr_t)room.vec;
	EXPECT_EQ(1, procmap_scan(self->fd, &arg));
}

/* Callers built against another version of the structures. */

TEST_F(process, longer_record_has_zeros_past_what_is_known)
{
	static const uint32_t sizes[] = { 72, 80, 88, 128, 1024, 4088, 4096 };
	const struct procmap_vma *const vec = room.vec;
	struct procmap_scan_arg plain = ask_scene(ALL);
	uint8_t *const longer = map_room(NR_MAPPINGS * 4096 + 4096);
	uint8_t zeros[4096] = {};
	unsigned int i, n;

	ASSERT_TRUE(!!longer);
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &plain));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		const size_t size = sizes[i], past = size - sizeof(*vec);
		struct procmap_scan_arg arg = plain;

		memset(longer, FILL, NR_MAPPINGS * 4096 + 4096);
		arg.vec = (uintptr_t)longer;
		arg.vma_size = size;
		ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
		for (n = 0; n < NR_MAPPINGS; n++) {
			const uint8_t *const record = longer + n * size;

			EXPECT_EQ(0, memcmp(record, &vec[n], sizeof(*vec)));
			EXPECT_EQ(0, memcmp(record + sizeof(*vec), zeros,
					    past));
		}
		EXPECT_TRUE(is_filled(longer + NR_MAPPINGS * size, 4096));
	}
}

/* Where a page has to be faulted in, the kernel copies by another method. */
TEST_F(process, longer_record_is_zeroed_in_pages_not_in_memory)
{
	struct procmap_scan_arg arg = ask_scene(ALL);

	arg.vec = (uintptr_t)map_room(NR_MAPPINGS * 4096);
	arg.vma_size = 4096;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, NR_MAPPINGS));
}

TEST_F(process, longer_arg_of_zeros_is_taken)
{
	struct procmap_scan_arg *const arg = map_room(page_size());
	const uint8_t *const bytes = (void *)arg;
	uint8_t *const zeros = calloc(1, page_size());
	size_t size;

	ASSERT_TRUE(arg && zeros);
	for (size = sizeof(*arg); size <= page_size(); size++) {
		*arg = ask_scene(ALL);
		arg->size = size;
		ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, arg));
		ASSERT_STREQ("", wrong_scan(&truth, arg, NR_MAPPINGS));
		ASSERT_EQ(size, arg->size);
		ASSERT_EQ(0, memcmp(bytes + sizeof(*arg), zeros,
				    page_size() - sizeof(*arg)));
	}
}

/* The page after the structure is not accessible: reading it would be EFAULT. */
TEST_F(process, nothing_past_the_size_is_read)
{
	struct procmap_scan_arg *arg =
		map_to_page_end(sizeof(*arg), PROT_READ | PROT_WRITE);

	*arg = ask_scene(ALL);
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, arg));
}

/* Each error. */

TEST_F(process, size_over_a_page_is_e2big)
{
	const uint64_t sizes[] = {
		page_size() + 1, 2 * page_size(), (1ull << 32) + 104, ~0ull,
	};
	struct procmap_scan_arg *const arg = map_room(4 * page_size());
	unsigned int i;

	*arg = ask_scene(0);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		arg->size = sizes[i];
		EXPECT_EQ(-E2BIG, procmap_scan(self->fd, arg));
	}
}

TEST_F(process, nonzero_byte_past_the_struct_is_e2big)
{
	struct procmap_scan_arg *const arg = map_room(page_size());
	uint8_t *const bytes = (void *)arg;
	size_t i;

	*arg = ask_scene(0);
	arg->size = page_size();
	for (i = sizeof(*arg); i < page_size(); i++) {
		bytes[i] = 1;
		ASSERT_EQ(-E2BIG, procmap_scan(self->fd, arg)) {
			TH_LOG("byte %zu", i);
		}
		bytes[i] = 0;
	}
	/* A byte past the size is not part of the structure. */
	arg->size = sizeof(*arg);
	bytes[sizeof(*arg)] = 1;
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, arg));
}

TEST_F(process, size_short_of_the_flags_is_einval)
{
	struct procmap_scan_arg arg = ask_scene(0);

	for (arg.size = 0; arg.size < 104; arg.size++)
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

/* A page without access follows: reading the whole structure would be EFAULT. */
TEST_F(process, size_too_small_is_einval_before_a_page_without_access)
{
	size_t size;

	for (size = 8; size < 104; size++) {
		void *const arg = map_to_page_end(size, PROT_READ | PROT_WRITE);

		memcpy(arg, &(uint64_t) { size }, sizeof(uint64_t));
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, arg));
	}
}

TEST_F(process, unknown_filter_is_einval)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		const uint64_t filter = 1ull << bit;
		struct procmap_scan_arg arg = ask_filtered(filter, ALL);
		const int nr = procmap_scan(self->fd, &arg);

		EXPECT_EQ(!(filter & SCAN_FILTERS), nr == -EINVAL);
		EXPECT_EQ(!!(filter & SCAN_FILTERS), nr > 0);
	}
}

/* It is known, but only as a flag of a record. */
TEST_F(process, name_too_long_is_no_filter)
{
	struct procmap_scan_arg arg =
		ask_filtered(PROCMAP_VMA_NAME_TOO_LONG, ALL);

	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	arg.filter |= PROCMAP_VMA_READABLE;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
}

TEST_F(process, unknown_want_is_einval)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		const uint64_t want = 1ull << bit;
		struct procmap_scan_arg arg = ask_scene(want);
		const int nr = procmap_scan(self->fd, &arg);

		EXPECT_EQ(want & ALL ? NR_MAPPINGS : -EINVAL, nr);
	}
}

TEST_F(process, start_that_is_not_aligned_is_einval)
{
	struct procmap_scan_arg arg = ask_scene(0);
	uint64_t offset;

	for (offset = 1; offset < page_size(); offset++) {
		arg.start = SCENE_START + offset;
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	}
	arg.start = SCENE_START + page_size();
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

TEST_F(process, end_below_the_start_is_einval)
{
	struct procmap_scan_arg arg = ask_scene(0);
	const uint64_t ends[] = { 0, SCENE_START - page_size(), SCENE_START - 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		arg.end = ends[i];
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	}
	arg.end = SCENE_START;
	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
}

TEST_F(process, vec_that_is_0_or_not_aligned_is_einval)
{
	struct procmap_scan_arg arg = ask_scene(0);
	unsigned int offset;

	arg.vec = 0;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	for (offset = 1; offset < 8; offset++) {
		arg.vec = (uintptr_t)room.vec + offset;
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	}
	arg.vec = (uintptr_t)room.vec + 8;
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

TEST_F(process, vec_len_that_is_0_or_too_large_is_einval)
{
	static const uint32_t bad[] = { 0, 0x80000000, 0xffffffff };
	static const uint32_t good[] = { NR_MAPPINGS, 0x7fffffff };
	struct procmap_scan_arg arg = ask_scene(0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		arg.vec_len = bad[i];
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		arg.vec_len = good[i];
		EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	}
}

TEST_F(process, vma_size_that_is_too_small_too_large_or_odd_is_einval)
{
	static const uint32_t bad[] = {
		0, 8, 64, 71, 73, 76, 79, 84, 4095, 4097, 4104, 8192,
		0x80000048, 0xfffffff8,
	};
	struct procmap_scan_arg arg = ask_scene(0);
	uint8_t *const vec = map_room(NR_MAPPINGS * 4096);
	unsigned int i;

	ASSERT_EQ(4096u, page_size());
	arg.vec = (uintptr_t)vec;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		arg.vma_size = bad[i];
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg)) {
			TH_LOG("vma_size %u", bad[i]);
		}
	}
	for (arg.vma_size = 72; arg.vma_size <= 4096; arg.vma_size += 8)
		EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

/* This is checked even if neither names nor build IDs are wanted. */
TEST_F(process, data_without_size_or_size_without_data_is_einval)
{
	const uint64_t wanted[] = { 0, ALL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct procmap_scan_arg arg = ask_scene(wanted[i]);

		arg.data = 0;
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
		arg = ask_scene(wanted[i]);
		arg.data_size = 0;
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	}
}

TEST_F(process, arg_that_cannot_be_read_is_efault)
{
	const struct procmap_scan_arg arg = ask_scene(0);
	uint8_t *const end = map_to_page_end(sizeof(arg),
					     PROT_READ | PROT_WRITE);
	size_t fits;

	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, NULL));
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, (void *)8));
	for (fits = 0; fits < sizeof(arg); fits++) {
		uint8_t *const bytes = end + sizeof(arg) - fits;

		memcpy(bytes, &arg, fits);
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, (void *)bytes));
	}
}

TEST_F(process, arg_that_cannot_be_written_is_efault)
{
	struct procmap_scan_arg *const arg = map_room(page_size());

	*arg = ask_scene(0);
	ASSERT_EQ(0, mprotect(arg, page_size(), PROT_READ));
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, arg));
}

TEST_F(process, vec_that_cannot_be_written_is_efault)
{
	const uint64_t vecs[] = {
		8, (uintptr_t)map_to_page_end(0, 0),
		(uintptr_t)map_to_page_end(page_size(), PROT_READ),
		1ull << 47, 1ull << 63, ~7ull,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(vecs); i++) {
		struct procmap_scan_arg arg = ask_scene(ALL);

		arg.vec = vecs[i];
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg)) {
			TH_LOG("vec %#llx", (long long)vecs[i]);
		}
		arg = ask_scene(0);
		arg.vec = vecs[i];
		arg.vma_size = 80;
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
	}
}

TEST_F(process, data_that_cannot_be_written_is_efault)
{
	const uint64_t places[] = {
		1, (uintptr_t)map_to_page_end(0, 0),
		(uintptr_t)map_to_page_end(page_size(), PROT_READ),
		1ull << 47, 1ull << 63, ~0ull,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		struct procmap_scan_arg arg =
			ask(&room, start_of(FILE_R), scene_end(), ALL);

		arg.data = places[i];
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg)) {
			TH_LOG("data %#llx", (long long)places[i]);
		}
	}
}

/* Any other error after the first record ends the scan early instead. */
TEST_F(process, bad_page_behind_the_first_records_is_efault)
{
	const size_t size = sizeof(struct procmap_vma);
	unsigned int fits;

	for (fits = 0; fits < NR_MAPPINGS; fits++) {
		struct procmap_scan_arg arg = ask_scene(ALL);
		const size_t bytes = fits * size + size - 8;

		/* The last bytes of one record cannot be written. */
		arg.vec = (uintptr_t)map_to_page_end(bytes,
						     PROT_READ | PROT_WRITE);
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
		arg.vec_len = fits ?: 1;
		EXPECT_EQ(fits ? (int)fits : -EFAULT,
			  procmap_scan(self->fd, &arg));
	}
}

TEST_F(process, bad_page_behind_the_first_data_is_efault)
{
	struct procmap_scan_arg arg = ask_scene(ALL);
	struct procmap_vma first;

	/* The first that has a name is not the first. */
	arg.data = 1;
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
	arg.end = start_of(SHARED_RW);
	EXPECT_EQ(SHARED_RW, procmap_scan(self->fd, &arg));

	arg = ask_scene(ALL);
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	first = room.vec[SHARED_RW];
	arg.data = (uintptr_t)map_to_page_end(first.name_size,
					      PROT_READ | PROT_WRITE);
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
	arg.end = start_of(FILE_NONE);
	EXPECT_EQ(FILE_NONE, procmap_scan(self->fd, &arg));
	EXPECT_EQ(first.name_size, arg.data_used);
}

/* The ELF file's name and build ID, by what is wanted. */
static const uint64_t wanted_data[] = { NAMES, BUILD_IDS, ALL };
static const uint32_t needed_data[] = {
	sizeof(FILE_NAME), sizeof(build_id),
	sizeof(FILE_NAME) + sizeof(build_id),
};

TEST_F(process, data_too_small_for_the_first_is_enospc)
{
	unsigned int i;
	uint32_t size;

	for (i = 0; i < ARRAY_SIZE(wanted_data); i++) {
		struct procmap_scan_arg arg =
			ask(&room, start_of(FILE_R), end_of(FILE_R),
			    wanted_data[i]);

		for (size = 0; size < needed_data[i]; size++) {
			arg.data = size ? (uintptr_t)room.data : 0;
			arg.data_size = size;
			arg.data_used = ~0u;
			ASSERT_EQ(-ENOSPC, procmap_scan(self->fd, &arg));
			EXPECT_EQ(needed_data[i], arg.data_needed);
			EXPECT_EQ(0u, arg.data_used);
			EXPECT_EQ(start_of(FILE_R), arg.walk_end);
			EXPECT_EQ(0u, arg.flags);
		}
		EXPECT_TRUE(is_filled(room.data, DATA_SIZE));
		arg.data_size = arg.data_needed;
		ASSERT_EQ(1, procmap_scan(self->fd, &arg));
		EXPECT_EQ(needed_data[i], arg.data_used);
		EXPECT_EQ(0u, arg.data_needed);
		EXPECT_STREQ("", wrong_scan(&truth, &arg, 1));
		memset(room.data, FILL, DATA_SIZE);
	}
}

/* Where the range begins in the middle of the mapping, too. */
TEST_F(process, walk_end_of_enospc_is_not_below_the_start)
{
	struct procmap_scan_arg arg =
		ask(&room, start_of(FILE_R) + page_size(), scene_end(), ALL);

	arg.data_size = 1;
	ASSERT_EQ(-ENOSPC, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, -ENOSPC));
	EXPECT_EQ(arg.start, arg.walk_end);
	arg.data_size = arg.data_needed;
	ASSERT_LE(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_R), room.vec->start);
}

TEST_F(process, mapping_without_room_is_the_first_from_walk_end_on)
{
	struct procmap_scan_arg arg = ask_filtered(R | FILE_BACKED, BUILD_IDS);

	/* Only SHARED_RW comes before it: it passes, and has no build ID. */
	arg.data_size = 1;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_LE(end_of(SHARED_RW), arg.walk_end);
	EXPECT_GE(start_of(FILE_R), arg.walk_end);
	EXPECT_EQ(sizeof(build_id), arg.data_needed);
	EXPECT_EQ(0u, arg.data_used);
	go_on(&arg);
	ASSERT_EQ(-ENOSPC, procmap_scan(self->fd, &arg));
	EXPECT_LE(arg.start, arg.walk_end);
	EXPECT_GE(start_of(FILE_R), arg.walk_end);
	EXPECT_EQ(sizeof(build_id), arg.data_needed);
	EXPECT_EQ(0u, arg.data_used);
}

/* What is needed is known before it is an error, and is enough for the next call. */
TEST_F(process, room_that_ends_after_the_first_record_is_no_error)
{
	struct procmap_scan_arg arg = ask(&room, start_of(SHARED_RW),
					  scene_end(), NAMES);
	uint32_t first, size;

	ASSERT_LT(0, procmap_scan(self->fd, &arg));
	first = room.vec[0].name_size;
	for (size = first; size < first + sizeof(FILE_NAME); size++) {
		arg.data_size = size;
		ASSERT_EQ(1, procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&truth, &arg, 1));
		EXPECT_EQ(first, arg.data_used);
		EXPECT_EQ(sizeof(FILE_NAME), arg.data_needed);
		EXPECT_LE(end_of(SHARED_RW), arg.walk_end);
		EXPECT_GE(start_of(FILE_NONE), arg.walk_end);
	}
	arg.data_size = size;
	ASSERT_LE(2, procmap_scan(self->fd, &arg));

	arg.data_size = first;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	go_on(&arg);
	arg.data_size = arg.data_needed;
	ASSERT_LE(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_NONE), room.vec->start);
	EXPECT_STREQ(FILE_NAME, room.data + room.vec->name_offset);
}

/* The data would be too small for the next, but no record is left for it either. */
TEST_F(process, data_needed_is_none_or_true_if_the_array_is_full)
{
	struct procmap_scan_arg arg = ask(&room, start_of(SHARED_RW),
					  scene_end(), NAMES);

	arg.vec_len = 1;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	arg.data_size = room.vec->name_size;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, 1));
}

TEST_F(process, scan_goes_on_with_more_data)
{
	size_t calls = 0;
	uint32_t size;

	for (size = 0; size <= 200; size++) {
		struct procmap_scan_arg arg = ask_scene(ALL);

		arg.data_size = size;
		ASSERT_STREQ("", wrong_walk(self->fd, &truth, &room,
					    arg, &calls)) {
			TH_LOG("data_size %u", size);
		}
	}
	EXPECT_LT(2 * 200u, calls);
}

TEST_F(process, another_command_is_enotty)
{
	static const unsigned int commands[] = {
		_IO('f', 0xe0),
		_IOR('f', 0xe0, struct procmap_scan_arg),
		_IOW('f', 0xe0, struct procmap_scan_arg),
		_IOWR('f', 0xe0, char),
		_IOWR('f', 0xdf, struct procmap_scan_arg),
		_IOWR('f', 0xe1, struct procmap_scan_arg),
		_IOWR('g', 0xe0, struct procmap_scan_arg),
	};
	struct procmap_scan_arg arg = ask_scene(0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-1, ioctl(self->fd, commands[i], &arg));
		EXPECT_EQ(ENOTTY, errno);
	}
}

TEST_F(process, scan_of_another_file_is_enotty)
{
	struct procmap_scan_arg arg = ask_scene(0);

	expect_enotty(_metadata, &self->target, PROCMAP_SCAN, &arg);
}

/* The order of the errors. */

static struct procmap_scan_arg *arg_in(struct attempt *attempt)
{
	return (struct procmap_scan_arg *)&attempt->arg;
}

static void unknown_filter(struct attempt *attempt)
{
	arg_in(attempt)->filter |= 0x40;
}

static void name_too_long_as_filter(struct attempt *attempt)
{
	arg_in(attempt)->filter |= PROCMAP_VMA_NAME_TOO_LONG;
}

static void unknown_want(struct attempt *attempt)
{
	arg_in(attempt)->want |= 0x04;
}

static void start_not_aligned(struct attempt *attempt)
{
	arg_in(attempt)->start++;
}

static void end_below_start(struct attempt *attempt)
{
	arg_in(attempt)->end = arg_in(attempt)->start - 1;
}

static void no_vec(struct attempt *attempt)
{
	arg_in(attempt)->vec = 0;
}

static void vec_not_aligned(struct attempt *attempt)
{
	arg_in(attempt)->vec = (uintptr_t)room.vec + 4;
}

static void vec_len_zero(struct attempt *attempt)
{
	arg_in(attempt)->vec_len = 0;
}

static void vma_size_too_small(struct attempt *attempt)
{
	arg_in(attempt)->vma_size = sizeof(struct procmap_vma) - 8;
}

static void set_data(struct attempt *attempt, uint64_t addr, uint32_t size)
{
	arg_in(attempt)->data = addr;
	arg_in(attempt)->data_size = size;
}

static void data_without_size(struct attempt *attempt)
{
	set_data(attempt, (uintptr_t)room.data, 0);
}

static void data_size_without_data(struct attempt *attempt)
{
	set_data(attempt, 0, room.data_size);
}

static void data_too_small(struct attempt *attempt)
{
	arg_in(attempt)->data_size = sizeof(FILE_NAME) - 1;
}

static void bad_data_address(struct attempt *attempt)
{
	arg_in(attempt)->data = 1;
}

static void bad_vec_address(struct attempt *attempt)
{
	arg_in(attempt)->vec = 8;
}

/*
 * Where the scan ended is written for an error, too: so it comes after all that
 * is wrong with the fields, and before the errors of a mapping. EINTR and ENOMEM
 * cannot be made here.
 */
static const struct fault faults[] = {
	FAULT(another_command, -ENOTTY),
	FAULT(no_struct, -EFAULT),
	FAULT(size_over_a_page, -E2BIG),
	FAULT(size_too_small, -EINVAL),
	FAULT(half_a_struct, -EFAULT),
	FAULT(byte_past_the_struct, -E2BIG),
	FAULT(unknown_filter, -EINVAL),
	FAULT(name_too_long_as_filter, -EINVAL),
	FAULT(unknown_want, -EINVAL),
	FAULT(start_not_aligned, -EINVAL),
	FAULT(end_below_start, -EINVAL),
	FAULT(no_vec, -EINVAL),
	FAULT(vec_not_aligned, -EINVAL),
	FAULT(vec_len_zero, -EINVAL),
	FAULT(vma_size_too_small, -EINVAL),
	FAULT(data_without_size, -EINVAL),
	FAULT(data_size_without_data, -EINVAL),
	FAULT(read_only_struct, -EFAULT),
	FAULT(exited_process, -ESRCH),
	FAULT(data_too_small, -ENOSPC),
	FAULT(bad_data_address, -EFAULT),
	FAULT(bad_vec_address, -EFAULT),
};

TEST_F(process, earlier_of_two_faults_is_reported)
{
	const struct procmap_scan_arg arg = ask(&room, start_of(FILE_R),
						scene_end(), ALL);
	const struct attempt good = make_attempt(self->fd, PROCMAP_SCAN, 104,
						 &arg);

	check_order(_metadata, &good, faults, ARRAY_SIZE(faults));
}

/* An empty range is complete before any mapping is looked at. */
TEST_F(process, fields_are_checked_even_if_the_range_is_empty)
{
	struct procmap_scan_arg arg = ask(&room, end_of(FILE_R),
					  end_of(FILE_R), 0x04);

	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
}

/* A file whose address space is gone, or never was there. */
FIXTURE(gone)
{
	struct child target;
	pid_t pid;
	int fd;
	struct room room;
};

enum end { EXITED, EXECED, KERNEL_THREAD };

FIXTURE_VARIANT(gone)
{
	enum end end;
};

FIXTURE_VARIANT_ADD(gone, exited) {
	.end = EXITED,
};

FIXTURE_VARIANT_ADD(gone, execed) {
	.end = EXECED,
};

FIXTURE_VARIANT_ADD(gone, kernel_thread) {
	.end = KERNEL_THREAD,
};

static int be_execed(int control, void *arg)
{
	return send_maps(control, arg) ?: execute("/proc/self/exe", control);
}

FIXTURE_SETUP(gone)
{
	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&self->room, NR_ROOM, DATA_SIZE));
	switch (variant->end) {
	case EXITED:
		ASSERT_TRUE(start_child(&self->target, send_maps, NULL));
		self->pid = self->target.pid;
		self->fd = recv_fd(self->target.control);
		/* Its status is that of send_maps(): it has not executed. */
		ASSERT_EQ(0, end_of_child(&self->target));
		break;
	case EXECED:
		ASSERT_TRUE(start_child(&self->target, be_execed, NULL));
		self->pid = self->target.pid;
		self->fd = recv_fd(self->target.control);
		/* Only the new program reports its user: so it has not exited. */
		ASSERT_EQ(geteuid(), hear_executed(self->target.control));
		break;
	case KERNEL_THREAD:
		self->pid = 2;
		if (!sees_kthreadd())
			SKIP_SETUP("kthreadd is not visible here");
		self->fd = open_maps(self->pid);
		if (self->fd == -EACCES)
			SKIP_SETUP("only root can open the maps of kthreadd");
	}
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(gone)
{
	stop_child(&self->target);
	close(self->fd);
}

TEST_F(gone, process_is_esrch)
{
	struct procmap_scan_arg arg = ask(&self->room, 0, NO_END, ALL);

	EXPECT_EQ(-ESRCH, procmap_scan(self->fd, &arg));
	arg = ask(&self->room, SCENE_START, SCENE_START + 1, 0);
	EXPECT_EQ(-ESRCH, procmap_scan(self->fd, &arg));
}

/* After exec the process lives on: opened anew, its file has other mappings. */
TEST_F(gone, process_that_is_opened_anew)
{
	static const int errors[] = {
		[EXITED] = -ENOENT, [EXECED] = 0, [KERNEL_THREAD] = -ESRCH,
	};
	struct procmap_scan_arg arg = ask(&self->room, 0, NO_END, 0);
	const int fd = open_maps(self->pid);
	const int nr = fd < 0 ? fd : procmap_scan(fd, &arg);

	EXPECT_EQ(errors[variant->end], nr < 0 ? nr : 0);
	EXPECT_EQ(variant->end == EXECED, nr > 0);
}

TEST_F(gone, arguments_are_checked_before_the_process)
{
	struct procmap_scan_arg args[2] = {
		ask(&self->room, 0, NO_END, 0), { .size = 1 },
	};

	args[0].size = sizeof(args);
	EXPECT_EQ(-E2BIG, procmap_scan(self->fd, args));
	args[0].size = 95;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, args));
	args[0] = ask(&self->room, 1, NO_END, 0);
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, args));
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, NULL));
}

/* No process is needed to return nothing. */
TEST_F(gone, process_does_not_matter_if_the_range_is_empty)
{
	struct procmap_scan_arg arg = ask(&self->room, SCENE_START, SCENE_START,
					  ALL);

	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(SCENE_START, arg.walk_end);
}

TEST_F(gone, process_is_checked_before_buffers_are_written)
{
	struct procmap_scan_arg arg = ask(&self->room, 0, NO_END, ALL);

	arg.vec = 8;
	arg.data = 1;
	EXPECT_EQ(-ESRCH, procmap_scan(self->fd, &arg));
}

/*
 * Mappings of one page each, of one file or of many. Records may share names and
 * build IDs, or not, but each must have those of its own mapping.
 */
FIXTURE(files)
{
	int fd;
	struct truth truth;
	struct room room;
};

FIXTURE_SETUP(files)
{
	skip_without_scan(_metadata);
	self->fd = open_maps(0);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(make_room(&self->room, 1024, 64 * 4096));
}

FIXTURE_TEARDOWN(files)
{
	close(self->fd);
}

static bool map_page_of(unsigned int page, int fd, int flags)
{
	/* Neighbours differ, or the kernel would merge them. */
	const int prot = page % 2 ? PROT_READ : PROT_READ | PROT_EXEC;
	void *const addr = (void *)(SCENE_START + page * page_size());

	return mmap(addr, page_size(), prot,
		    MAP_PRIVATE | MAP_FIXED_NOREPLACE | flags, fd,
		    0) == addr;
}

/* An ELF file whose name has @name_size bytes. */
static int make_named_elf(size_t name_size)
{
	char name[250] = "";
	int fd;

	memset(name, 'n', name_size);
	fd = memfd_create(name, MFD_CLOEXEC);
	return write_elf(fd, build_id) ? fd : -1;
}

static uint64_t end_of_pages(unsigned int nr)
{
	return SCENE_START + nr * page_size();
}

/* The room is enough for all of them, also if none shares anything. */
static void scan_pages(struct __test_metadata *const _metadata,
		       struct _test_data_files *self, unsigned int nr_pages,
		       unsigned int nr)
{
	struct procmap_scan_arg arg = ask(&self->room, SCENE_START,
					  end_of_pages(nr_pages), ALL);

	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
	ASSERT_EQ((int)nr, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg, nr));
	EXPECT_EQ(arg.end, arg.walk_end);
}

#define NR_NEIGHBOURS	300

FIXTURE(neighbours)
{
	struct _test_data_files files;
};

FIXTURE_VARIANT(neighbours)
{
	size_t name_size;
};

FIXTURE_VARIANT_ADD(neighbours, short_name) {
	.name_size = 4,
};

/* "/memfd:" goes before it, and " (deleted)" follows. */
FIXTURE_VARIANT_ADD(neighbours, name_of_256_bytes) {
	.name_size = 256 - 7 - 10 - 1,
};

FIXTURE_VARIANT_ADD(neighbours, name_of_257_bytes) {
	.name_size = 257 - 7 - 10 - 1,
};

FIXTURE_SETUP(neighbours)
{
	const int fd = make_named_elf(variant->name_size);
	unsigned int i;

	files_setup(_metadata, &self->files, NULL);
	ASSERT_LE(0, fd);
	for (i = 0; i < NR_NEIGHBOURS; i++)
		ASSERT_TRUE(map_page_of(i, fd, 0));
}

FIXTURE_TEARDOWN(neighbours)
{
	files_teardown(_metadata, &self->files, NULL);
}

TEST_F(neighbours, of_one_file_have_its_name_and_build_id)
{
	memset(self->files.room.vec, FILL, 1024 * sizeof(struct procmap_vma));
	memset(self->files.room.data, FILL, 64 * 4096);
	scan_pages(_metadata, &self->files, NR_NEIGHBOURS, NR_NEIGHBOURS);
}

/* Where a copy faults pages in, it may block: files are held up to it at most. */
TEST_F(neighbours, have_them_in_pages_not_in_memory)
{
	scan_pages(_metadata, &self->files, NR_NEIGHBOURS, NR_NEIGHBOURS);
}

TEST_F(neighbours, have_them_with_an_array_not_in_memory)
{
	memset(self->files.room.data, FILL, 64 * 4096);
	scan_pages(_metadata, &self->files, NR_NEIGHBOURS, NR_NEIGHBOURS);
}

TEST_F(neighbours, have_them_with_data_not_in_memory)
{
	memset(self->files.room.vec, FILL, 1024 * sizeof(struct procmap_vma));
	scan_pages(_metadata, &self->files, NR_NEIGHBOURS, NR_NEIGHBOURS);
}

/* The array is mapped, but to the zero page: writing to it faults, too. */
TEST_F(neighbours, have_them_in_pages_that_have_been_read_only)
{
	const size_t size = 1024 * sizeof(struct procmap_vma);

	ASSERT_EQ(0, madvise(self->files.room.vec, size, MADV_POPULATE_READ));
	scan_pages(_metadata, &self->files, NR_NEIGHBOURS, NR_NEIGHBOURS);
}

TEST_F(neighbours, with_a_bad_page_for_the_last_of_them_are_efault)
{
	const size_t size = NR_NEIGHBOURS * sizeof(struct procmap_vma);
	struct procmap_scan_arg arg =
		ask(&self->files.room, SCENE_START,
		    end_of_pages(NR_NEIGHBOURS), ALL);

	arg.vec = (uintptr_t)map_to_page_end(size - 8, PROT_READ | PROT_WRITE);
	EXPECT_EQ(-EFAULT, procmap_scan(self->files.fd, &arg));
	arg.vec_len = NR_NEIGHBOURS - 1;
	EXPECT_EQ(NR_NEIGHBOURS - 1, procmap_scan(self->files.fd, &arg));
}

/* Whatever they share, what each of them needs by itself is enough. */
TEST_F(neighbours, need_no_more_room_than_one_copy_each)
{
	struct procmap_scan_arg arg =
		ask(&self->files.room, SCENE_START,
		    end_of_pages(NR_NEIGHBOURS), ALL);
	uint32_t needed;

	arg.data_size = 1;
	ASSERT_EQ(-ENOSPC, procmap_scan(self->files.fd, &arg));
	needed = arg.data_needed;
	arg.data_size = needed;
	ASSERT_LE(1, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(needed, arg.data_used);

	arg.data_size = NR_NEIGHBOURS * needed;
	arg.data = (uintptr_t)map_to_page_end(arg.data_size,
					      PROT_READ | PROT_WRITE);
	ASSERT_EQ(NR_NEIGHBOURS, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(arg.end, arg.walk_end);
}

/* A file between memory, and between gaps. */
TEST_F(files, between_memory)
{
	const int fd = make_named_elf(4);
	unsigned int i;

	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, i % 3 ? -1 : fd,
					i % 3 ? MAP_ANONYMOUS : 0));
	scan_pages(_metadata, self, 300, 300);
}

TEST_F(files, between_gaps)
{
	const int fd = make_named_elf(4);
	unsigned int i;

	for (i = 0; i < 300; i += 2)
		ASSERT_TRUE(map_page_of(i, fd, 0));
	scan_pages(_metadata, self, 300, 150);
}

TEST_F(files, that_were_opened_more_than_once)
{
	char path[32];
	unsigned int i;
	int fd;

	sprintf(path, "/proc/self/fd/%d", make_named_elf(4));
	for (i = 0; i < 300; i++) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		ASSERT_TRUE(map_page_of(i, fd, 0));
		close(fd);
	}
	scan_pages(_metadata, self, 300, 300);
}

/* One file with two paths, by turns: what is shared by inode is wrong. */
TEST_F(files, that_have_two_paths_keep_them)
{
	char first[] = "/tmp/procmap-scan-XXXXXX", second[64];
	int fds[2];
	unsigned int i;

	fds[0] = mkstemp(first);
	snprintf(second, sizeof(second), "%.24s-2", first);
	ASSERT_TRUE(write_elf(fds[0], build_id));
	ASSERT_EQ(0, link(first, second));
	fds[1] = open(second, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fds[1]);
	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, fds[i % 3 == 2], 0));
	scan_pages(_metadata, self, 300, 300);
	EXPECT_EQ(0, unlink(first));
	EXPECT_EQ(0, unlink(second));
}

TEST_F(files, after_those_of_another)
{
	const int other = make_named_elf(4), fd = make_named_elf(7);
	unsigned int i;

	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, i < 40 ? other : fd, 0));
	scan_pages(_metadata, self, 300, 300);
}

/* Names that take the same room must not be taken for one another. */
TEST_F(files, of_names_of_one_length_keep_them)
{
	char name[16];
	unsigned int i;
	int fd;

	for (i = 0; i < 200; i++) {
		sprintf(name, "file %03u", i);
		fd = memfd_create(name, MFD_CLOEXEC);
		ASSERT_TRUE(map_page_of(i, fd, 0));
	}
	scan_pages(_metadata, self, 200, 200);
}

TEST_F(files, that_are_many_are_all_returned)
{
	unsigned int i;

	for (i = 0; i < 200; i++)
		ASSERT_TRUE(map_page_of(i, make_named_elf(4 + i), 0));
	scan_pages(_metadata, self, 200, 200);
}

/* Each twice, and all of them again: none is the one before for long. */
TEST_F(files, that_take_turns_are_all_returned)
{
	int fds[100];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = make_named_elf(1 + i);
	for (i = 0; i < 400; i++)
		ASSERT_TRUE(map_page_of(i, fds[i / 2 % ARRAY_SIZE(fds)], 0));
	scan_pages(_metadata, self, 400, 400);
}

/* Only the build IDs differ: what is shared by the name is wrong. */
TEST_F(files, of_one_name_keep_their_build_ids)
{
	uint8_t id[20];
	unsigned int i;
	int fd;

	for (i = 0; i < 200; i++) {
		memset(id, i, sizeof(id));
		fd = memfd_create("same", MFD_CLOEXEC);
		ASSERT_TRUE(write_elf(fd, id));
		ASSERT_TRUE(map_page_of(i, fd, 0));
	}
	scan_pages(_metadata, self, 200, 200);
}

/* A file whose path is about as long as PATH_MAX. */
FIXTURE(long_path)
{
	struct _test_data_files files;
	char *top;
	unsigned int depth;
	char name[NAME_MAX + 1];
};

FIXTURE_VARIANT(long_path)
{
	size_t length;		/* of the path, without its NUL */
	bool too_long;
};

FIXTURE_VARIANT_ADD(long_path, that_is_the_longest) {
	.length = PATH_MAX - 1,
};

FIXTURE_VARIANT_ADD(long_path, that_is_one_byte_too_long) {
	.length = PATH_MAX,
	.too_long = true,
};

FIXTURE_VARIANT_ADD(long_path, that_is_far_too_long) {
	.length = 3 * PATH_MAX,
	.too_long = true,
};

#define DEEP_NAME_LENGTH	200
/* The file has two pages in a row, others have those before and after. */
#define PAGE_OF_LONG_PATH	2
#define NR_LONG_PATH_PAGES	6

/* No path of that length can be passed to a system call: go there step by step. */
static void descend(struct __test_metadata *const _metadata,
		    struct _test_data_long_path *self, size_t length)
{
	char top[] = "/tmp/procmap-scan-XXXXXX", deep[DEEP_NAME_LENGTH + 1] = "";
	char cwd[PATH_MAX];
	size_t left;

	ASSERT_TRUE(!!mkdtemp(top));
	self->top = strdup(top);
	ASSERT_EQ(0, chdir(top));
	/* As the kernel shows it, whatever /tmp is. */
	ASSERT_TRUE(!!getcwd(cwd, sizeof(cwd)));
	memset(deep, 'd', DEEP_NAME_LENGTH);
	for (left = length - strlen(cwd); left > NAME_MAX;
	     left -= DEEP_NAME_LENGTH + 1) {
		ASSERT_EQ(0, mkdir(deep, 0700));
		ASSERT_EQ(0, chdir(deep));
		self->depth++;
	}
	memset(self->name, 'f', left - 1);
}

FIXTURE_SETUP(long_path)
{
	unsigned int i;
	int fd;

	files_setup(_metadata, &self->files, NULL);
	descend(_metadata, self, variant->length);
	fd = open(self->name, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	ASSERT_TRUE(write_elf(fd, build_id));
	for (i = 0; i < NR_LONG_PATH_PAGES; i++)
		ASSERT_TRUE(map_page_of(i, i / 2 == PAGE_OF_LONG_PATH / 2 ?
					   fd : make_named_elf(4 + i), 0));
	close(fd);
	ASSERT_EQ(0, read_truth(self->files.fd, &self->files.truth));
}

FIXTURE_TEARDOWN(long_path)
{
	char deep[DEEP_NAME_LENGTH + 1] = "";

	memset(deep, 'd', DEEP_NAME_LENGTH);
	EXPECT_EQ(0, unlink(self->name));
	while (self->depth--) {
		EXPECT_EQ(0, chdir(".."));
		EXPECT_EQ(0, rmdir(deep));
	}
	EXPECT_EQ(0, rmdir(self->top));
	files_teardown(_metadata, &self->files, NULL);
}

static uint64_t page_of(unsigned int page)
{
	return SCENE_START + page * page_size();
}

static struct procmap_scan_arg
ask_long_path(const struct _test_data_long_path *self, uint64_t want)
{
	return ask(&self->files.room, SCENE_START,
		   end_of_pages(NR_LONG_PATH_PAGES), want);
}

TEST_F(long_path, has_its_length_in_the_text)
{
	const struct maps *const maps = &self->files.truth.maps;

	EXPECT_EQ(variant->length,
		  strlen(line_at(maps, page_of(PAGE_OF_LONG_PATH))->name));
}

TEST_F(long_path, is_an_error_of_a_query)
{
	struct procmap_query query;
	char name[2 * PATH_MAX];

	EXPECT_EQ(variant->too_long ? -ENAMETOOLONG : 0,
		  query_name(self->files.fd, page_of(PAGE_OF_LONG_PATH), 0,
			     &query, name, sizeof(name)));
}

/* Its record has no name, but all else. */
TEST_F(long_path, is_a_flag_of_a_record)
{
	struct procmap_scan_arg arg = ask_long_path(self, ALL);
	const struct procmap_vma *const vma =
		&self->files.room.vec[PAGE_OF_LONG_PATH];
	unsigned int i;

	ASSERT_EQ(NR_LONG_PATH_PAGES, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(arg.end, arg.walk_end);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(variant->too_long ? PROCMAP_VMA_NAME_TOO_LONG : 0,
			  vma[i].flags & PROCMAP_VMA_NAME_TOO_LONG);
		EXPECT_EQ(variant->too_long ? 0 : variant->length + 1,
			  vma[i].name_size);
		EXPECT_EQ(sizeof(build_id), vma[i].build_id_size);
		EXPECT_TRUE(is_data(&arg, vma[i].build_id_offset, build_id,
				    sizeof(build_id)));
	}
	EXPECT_STREQ("", wrong_scan(&self->files.truth, &arg,
				    NR_LONG_PATH_PAGES));
}

TEST_F(long_path, is_a_flag_if_only_names_are_wanted)
{
	struct procmap_scan_arg arg = ask_long_path(self, NAMES);

	ASSERT_EQ(NR_LONG_PATH_PAGES, procmap_scan(self->files.fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->files.truth, &arg,
				    NR_LONG_PATH_PAGES));
}

/* Without looking at the name, the kernel does not know its length. */
TEST_F(long_path, does_not_matter_if_no_names_are_wanted)
{
	const uint64_t wanted[] = { 0, BUILD_IDS };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct procmap_scan_arg arg = ask_long_path(self, wanted[i]);

		ASSERT_EQ(NR_LONG_PATH_PAGES,
			  procmap_scan(self->files.fd, &arg));
		EXPECT_EQ(R | X | FILE_BACKED,
			  self->files.room.vec[PAGE_OF_LONG_PATH].flags);
		EXPECT_STREQ("", wrong_scan(&self->files.truth, &arg,
					    NR_LONG_PATH_PAGES));
	}
}

TEST_F(long_path, is_met_only_if_it_passes_the_filters)
{
	const uint64_t filters[] = { X, W };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(filters); i++) {
		struct procmap_scan_arg arg = ask_long_path(self, ALL);

		arg.filter = filters[i];
		/* Only pages with an even number are executable. */
		ASSERT_EQ(filters[i] == X ? 3 : 0,
			  procmap_scan(self->files.fd, &arg));
		EXPECT_EQ(arg.end, arg.walk_end);
		EXPECT_STREQ("", wrong_scan(&self->files.truth, &arg,
					    filters[i] == X ? 3 : 0));
	}
}

TEST_F(long_path, does_not_end_a_walk)
{
	size_t calls = 0;
	unsigned int i;

	for (i = 1; i <= NR_LONG_PATH_PAGES; i++) {
		struct procmap_scan_arg arg = ask_long_path(self, ALL);

		arg.vec_len = i;
		EXPECT_STREQ("", wrong_walk(self->files.fd, &self->files.truth,
					    &self->files.room, arg, &calls));
	}
}

/* What is not returned needs no room. */
TEST_F(long_path, needs_no_data_if_it_is_too_long)
{
	const uint32_t name_size = variant->too_long ? 0 : variant->length + 1;
	const uint32_t needed = name_size + sizeof(build_id);
	struct procmap_scan_arg arg = ask_long_path(self, ALL);

	arg.start = page_of(PAGE_OF_LONG_PATH);
	arg.data_size = needed - 1;
	EXPECT_EQ(-ENOSPC, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(needed, arg.data_needed);
	arg.data_size = needed;
	/* The other page of the file may share it. */
	EXPECT_LE(1, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(needed, arg.data_used);

	arg = ask_long_path(self, NAMES);
	arg.start = page_of(PAGE_OF_LONG_PATH);
	arg.end = page_of(PAGE_OF_LONG_PATH + 2);
	arg.data = 0;
	arg.data_size = 0;
	EXPECT_EQ(variant->too_long ? 2 : -ENOSPC,
		  procmap_scan(self->files.fd, &arg));
}

/* Deleted, it has a longer path: what decides is what would be returned. */
TEST_F(long_path, is_too_long_once_it_is_deleted)
{
	struct procmap_scan_arg arg = ask_long_path(self, ALL);

	ASSERT_EQ(0, unlink(self->name));
	ASSERT_EQ(NR_LONG_PATH_PAGES, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(R | X | FILE_BACKED | PROCMAP_VMA_NAME_TOO_LONG,
		  self->files.room.vec[PAGE_OF_LONG_PATH].flags);
	/* The fixture removes it. */
	close(open(self->name, O_RDWR | O_CREAT | O_CLOEXEC, 0700));
}

/*
 * A kernel that does not know when an address space changes returns the generation
 * 0, and takes none that is passed in for that of the address space. One that does
 * know returns nothing as long as it is the same.
 */
FIXTURE(generation)
{
	struct child target;
	int fd;
	struct truth truth;
	struct room room;
};

enum change { NOTHING, MAP, UNMAP, PROTECT, MOVE, GROW };

FIXTURE_VARIANT(generation)
{
	enum change change;
};

FIXTURE_VARIANT_ADD(generation, and_nothing) {
	.change = NOTHING,
};

FIXTURE_VARIANT_ADD(generation, and_mmap) {
	.change = MAP,
};

FIXTURE_VARIANT_ADD(generation, and_munmap) {
	.change = UNMAP,
};

FIXTURE_VARIANT_ADD(generation, and_mprotect) {
	.change = PROTECT,
};

FIXTURE_VARIANT_ADD(generation, and_mremap) {
	.change = MOVE,
};

FIXTURE_VARIANT_ADD(generation, and_growth) {
	.change = GROW,
};

#define STACK_PAGE	1000

static bool make_change(enum change change)
{
	const size_t size = page_size();
	char *const page = (void *)(uintptr_t)page_of(0);
	char *const stack = (void *)(uintptr_t)page_of(STACK_PAGE);

	switch (change) {
	case MAP:
		return map_page_of(10, -1, MAP_ANONYMOUS);
	case UNMAP:
		return !munmap(page, size);
	case PROTECT:
		return !mprotect(page, size, PROT_NONE);
	case MOVE:
		return mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
			      page + 10 * size) != MAP_FAILED;
	case GROW:
		atomic_store((atomic_char *)(stack - size), 1);
		return true;
	default:
		return true;
	}
}

/* Make the change whenever it hears. */
static int be_changing(int control, void *arg)
{
	const enum change *const change = arg;
	void *const stack = (void *)(uintptr_t)page_of(STACK_PAGE);

	if (!map_page_of(0, make_named_elf(4), 0) ||
	    !map_page_of(1, -1, MAP_ANONYMOUS) ||
	    mmap(stack, page_size(), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE |
		 MAP_GROWSDOWN, -1, 0) != stack)
		return 1;
	do {
		notify(control);
	} while (await(control) && make_change(*change));
	return 1;
}

FIXTURE_SETUP(generation)
{
	enum change change = variant->change;

	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&self->room, 1024, 64 * 4096));
	ASSERT_TRUE(start_child(&self->target, be_changing, &change));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
}

FIXTURE_TEARDOWN(generation)
{
	stop_child(&self->target);
	free_truth(&self->truth);
	close(self->fd);
}

static struct procmap_scan_arg ask_since(const struct room *room,
					 uint64_t generation)
{
	struct procmap_scan_arg arg = ask(room, 0, NO_END, ALL);

	arg.known_generation = generation;
	return arg;
}

/* Returns the generation, of a scan that has to be complete. */
static uint64_t scan_since(struct __test_metadata *const _metadata,
			   struct _test_data_generation *self,
			   uint64_t generation)
{
	struct procmap_scan_arg arg = ask_since(&self->room, generation);
	const int nr = procmap_scan(self->fd, &arg);

	EXPECT_EQ((int)self->truth.maps.nr, nr);
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg, nr));
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(0u, arg.flags);
	return arg.generation;
}

/* Nothing has changed since that generation, and the kernel knows. */
static void expect_nothing_since(struct __test_metadata *const _metadata,
				 const struct _test_data_generation *self,
				 uint64_t generation)
{
	struct procmap_scan_arg arg = ask_since(&self->room, generation);

	memset(self->room.vec, FILL, sizeof(*self->room.vec));
	memset(self->room.data, FILL, page_size());
	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(generation, arg.generation);
	EXPECT_EQ(0u, arg.data_used);
	EXPECT_EQ(0u, arg.data_needed);
	EXPECT_EQ(0u, arg.flags);
	EXPECT_TRUE(is_filled(self->room.vec, sizeof(*self->room.vec)));
	EXPECT_TRUE(is_filled(self->room.data, page_size()));
}

TEST_F(generation, of_another_time_is_not_this_one)
{
	static const uint64_t others[] = {
		1, 2, 3, INT_MAX, UINT_MAX, 1ull << 32, 1ull << 63, ~0ull,
	};
	const uint64_t generation = scan_since(_metadata, self, 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i] != generation)
			EXPECT_EQ(generation,
				  scan_since(_metadata, self, others[i]));
}

TEST_F(generation, changes_with_the_mappings)
{
	const uint64_t generation = scan_since(_metadata, self, 0);

	if (generation)
		expect_nothing_since(_metadata, self, generation);
	else
		EXPECT_EQ(0u, scan_since(_metadata, self, 0));

	ASSERT_TRUE(notify(self->target.control));
	ASSERT_TRUE(await(self->target.control));
	free_truth(&self->truth);
	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
	if (!generation) {
		EXPECT_EQ(0u, scan_since(_metadata, self, 0));
	} else if (variant->change == NOTHING) {
		expect_nothing_since(_metadata, self, generation);
	} else {
		EXPECT_NE(generation, scan_since(_metadata, self, generation));
		EXPECT_NE(0u, scan_since(_metadata, self, generation));
	}
}

/* All calls of a scan have that of the first as long as nothing changes. */
TEST_F(generation, is_the_same_throughout_a_scan)
{
	const uint64_t generation = scan_since(_metadata, self, 0);
	struct procmap_scan_arg arg = ask(&self->room, 0, NO_END, ALL);
	unsigned int calls;

	arg.vec_len = 2;
	for (calls = 0; arg.walk_end != arg.end; calls++) {
		ASSERT_LE(0, procmap_scan(self->fd, &arg));
		ASSERT_EQ(generation, arg.generation);
		ASSERT_EQ(0u, arg.flags);
		go_on(&arg);
	}
	EXPECT_LT(1u, calls);
}

/* Whatever the generation, the arguments have to be right and the process there. */
TEST_F(generation, is_looked_at_after_errors)
{
	const uint64_t generation = scan_since(_metadata, self, 0);
	struct procmap_scan_arg arg;

	arg = ask_since(&self->room, generation);
	arg.want |= 0x04;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	arg = ask_since(&self->room, generation);
	arg.vec = 0;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	stop_child(&self->target);
	arg = ask_since(&self->room, generation);
	EXPECT_EQ(-ESRCH, procmap_scan(self->fd, &arg));
}

#define HUGE_PAGE_SIZE	(2u << 20)

/* smaps takes the size from the VMA. No huge page is needed to map one. */
TEST(page_size_of_huge_pages_is_that_of_smaps)
{
	const int fd = open_maps(0);
	struct procmap_scan_arg arg;
	struct maps smaps;
	uint64_t *sizes;
	uint64_t start;
	void *addr;

	skip_without_scan(_metadata);
	addr = mmap(NULL, HUGE_PAGE_SIZE, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HUGETLB |
		    (21 << MAP_HUGE_SHIFT), -1, 0);
	if (addr == MAP_FAILED)
		SKIP(return, "no huge pages of 2 MB, CONFIG_HUGETLBFS");
	start = (uintptr_t)addr;
	ASSERT_TRUE(make_room(&room, 1, 0));
	ASSERT_EQ(0, read_smaps(0, &smaps, &sizes));
	arg = ask(&room, start, start + HUGE_PAGE_SIZE, 0);
	ASSERT_EQ(1, procmap_scan(fd, &arg));
	EXPECT_EQ(start, room.vec->start);
	EXPECT_EQ(HUGE_PAGE_SIZE, room.vec->page_size);
	EXPECT_EQ(sizes[line_at(&smaps, start) - smaps.lines],
		  room.vec->page_size);
}

TEST_HARNESS_MAIN
