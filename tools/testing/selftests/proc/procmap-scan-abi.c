// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_SCAN: the layout of its structures, and each of their
 * fields, filters and errors.
 */
#include <assert.h>

#include "procmap-exec.h"
#include "procmap-order.h"
#include "procmap-scan.h"
#include "procmap-scene.h"

#define ASSERT_OFFSET(type, field, bytes) \
	static_assert(offsetof(struct type, field) == (bytes), "")

#define ASSERT_SIZE(type, field, bytes) \
	static_assert(sizeof((*(struct type *)0).field) == (bytes), "")

ASSERT_OFFSET(procmap_scan_arg, size, 0);
ASSERT_OFFSET(procmap_scan_arg, flags, 8);
ASSERT_OFFSET(procmap_scan_arg, start, 16);
ASSERT_OFFSET(procmap_scan_arg, end, 24);
ASSERT_OFFSET(procmap_scan_arg, walk_end, 32);
ASSERT_OFFSET(procmap_scan_arg, vec, 40);
ASSERT_OFFSET(procmap_scan_arg, data, 48);
ASSERT_OFFSET(procmap_scan_arg, vec_len, 56);
ASSERT_OFFSET(procmap_scan_arg, vma_size, 60);
ASSERT_OFFSET(procmap_scan_arg, data_size, 64);
ASSERT_OFFSET(procmap_scan_arg, data_used, 68);

ASSERT_SIZE(procmap_scan_arg, size, 8);
ASSERT_SIZE(procmap_scan_arg, flags, 8);
ASSERT_SIZE(procmap_scan_arg, start, 8);
ASSERT_SIZE(procmap_scan_arg, end, 8);
ASSERT_SIZE(procmap_scan_arg, walk_end, 8);
ASSERT_SIZE(procmap_scan_arg, vec, 8);
ASSERT_SIZE(procmap_scan_arg, data, 8);
ASSERT_SIZE(procmap_scan_arg, vec_len, 4);
ASSERT_SIZE(procmap_scan_arg, vma_size, 4);
ASSERT_SIZE(procmap_scan_arg, data_size, 4);
ASSERT_SIZE(procmap_scan_arg, data_used, 4);
static_assert(sizeof(struct procmap_scan_arg) == 72, "");

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

static_assert(PROCMAP_SCAN == 0xc04866e0, "");
static_assert(PROCMAP_SCAN_NAMES == 0x10000, "");
static_assert(PROCMAP_SCAN_BUILD_IDS == 0x20000, "");

#define ALL	(NAMES | BUILD_IDS)

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

static struct procmap_scan_arg ask_scene(uint64_t flags)
{
	return ask(&room, SCENE_START, scene_end(), flags);
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
		EXPECT_EQ(scene[i].passes & ~(uint64_t)F, vma->flags);
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
	struct procmap_scan_arg arg = ask_scene(ALL | R);
	const struct procmap_scan_arg before = arg;

	ASSERT_LT(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(scene_end(), arg.walk_end);
	EXPECT_LT(0u, arg.data_used);
	arg.walk_end = before.walk_end;
	arg.data_used = before.data_used;
	EXPECT_EQ(0, memcmp(&before, &arg, sizeof(arg)));
}

TEST_F(process, what_the_caller_left_in_output_fields_does_not_matter)
{
	struct procmap_scan_arg arg = ask_scene(ALL);

	arg.walk_end = ~0ull;
	arg.data_used = ~0u;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, NR_MAPPINGS));
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

/* A record begins at the start of the scan, and its offset is that of the cut. */
TEST_F(process, file_is_cut_off_at_the_start_with_its_offset_moved)
{
	const uint64_t start = start_of(FILE_FAR) + page_size();
	struct procmap_scan_arg arg = ask(&room, start, start + 1, ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start, room.vec->start);
	EXPECT_EQ(end_of(FILE_FAR), room.vec->end);
	EXPECT_EQ(FAR_OFFSET + (uint64_t)page_size(), room.vec->offset);
}

TEST_F(process, memory_is_cut_off_at_the_start_without_an_offset)
{
	const uint64_t start = start_of(PRIVATE_RW) + page_size();
	struct procmap_scan_arg arg = ask(&room, start, start + 1, ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start, room.vec->start);
	EXPECT_EQ(end_of(PRIVATE_RW), room.vec->end);
	EXPECT_EQ(0u, room.vec->offset);
}

/* So the next scan begins past the mapping, and does not return it again. */
TEST_F(process, mapping_is_not_cut_off_at_the_end)
{
	const uint64_t end = start_of(FILE_R) + page_size();
	struct procmap_scan_arg arg = ask(&room, end_of(FILE_NONE), end,
					  ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_R), room.vec->start);
	EXPECT_EQ(end_of(FILE_R), room.vec->end);
	EXPECT_EQ(end, arg.walk_end);
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

TEST_F(process, whole_address_space_is_that_of_the_text)
{
	struct procmap_scan_arg arg = ask(&room, 0, NO_END, ALL);
	size_t calls = 0;

	ASSERT_LE(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);
	/* The test's own mappings change as it runs, so they are not compared. */
	if (!variant->forked)
		return;
	EXPECT_STREQ("", wrong_walk(self->fd, &truth, &room,
				    ask(&room, 0, NO_END, ALL), &calls));
	EXPECT_EQ(1u, calls);
}

TEST_F(process, every_set_of_filters_is_that_of_the_text)
{
	const uint64_t wanted[] = { 0, NAMES, BUILD_IDS, ALL };
	uint64_t filters;
	unsigned int i, seen = 0;

	for (filters = 0; filters <= FILTERS; filters++) {
		if (filters & ~FILTERS)
			continue;
		for (i = 0; i < ARRAY_SIZE(wanted); i++) {
			struct procmap_scan_arg arg =
				ask_scene(filters | wanted[i]);
			const int nr = procmap_scan(self->fd, &arg);

			ASSERT_STREQ("", wrong_scan(&truth, &arg, nr)) {
				TH_LOG("filters %#llx", (long long)filters);
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
	const uint64_t flags[] = { 0, ALL, R, ALL | F };
	uint32_t vec_len;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		for (vec_len = 1; vec_len <= NR_MAPPINGS + 1; vec_len++) {
			struct procmap_scan_arg arg = ask_scene(flags[i]);
			size_t calls = 0;

			arg.vec_len = vec_len;
			EXPECT_STREQ("", wrong_walk(self->fd, &truth,
						    &room, arg, &calls)) {
				TH_LOG("vec_len %u", vec_len);
			}
			if (!flags[i])
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

	arg.start = arg.walk_end;
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
		page_size() + 1, 2 * page_size(), (1ull << 32) + 72, ~0ull,
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

TEST_F(process, size_short_of_data_used_is_einval)
{
	struct procmap_scan_arg arg = ask_scene(0);

	for (arg.size = 0; arg.size < 72; arg.size++)
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

TEST_F(process, unknown_flag_is_einval)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		const uint64_t flag = 1ull << bit;
		struct procmap_scan_arg arg = ask_scene(flag);
		const int nr = procmap_scan(self->fd, &arg);

		EXPECT_EQ(!(flag & (FILTERS | ALL)), nr == -EINVAL);
		EXPECT_EQ(!!(flag & (FILTERS | ALL)), nr > 0);
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
	uint8_t *const end = map_to_page_end(72, PROT_READ | PROT_WRITE);
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
			ASSERT_EQ(-ENOSPC, procmap_scan(self->fd, &arg));
			EXPECT_EQ(needed_data[i], arg.data_used);
			EXPECT_EQ(start_of(FILE_R), arg.walk_end);
		}
		EXPECT_TRUE(is_filled(room.data, DATA_SIZE));
		arg.data_size = arg.data_used;
		ASSERT_EQ(1, procmap_scan(self->fd, &arg));
		EXPECT_EQ(needed_data[i], arg.data_used);
		EXPECT_STREQ("", wrong_scan(&truth, &arg, 1));
		memset(room.data, FILL, DATA_SIZE);
	}
}

TEST_F(process, mapping_without_room_is_the_first_from_walk_end_on)
{
	struct procmap_scan_arg arg = ask_scene(BUILD_IDS | R | F);

	/* Only SHARED_RW comes before it: it passes, and has no build ID. */
	arg.data_size = 1;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_LE(end_of(SHARED_RW), arg.walk_end);
	EXPECT_GE(start_of(FILE_R), arg.walk_end);
	arg.start = arg.walk_end;
	ASSERT_EQ(-ENOSPC, procmap_scan(self->fd, &arg));
	EXPECT_LE(arg.start, arg.walk_end);
	EXPECT_GE(start_of(FILE_R), arg.walk_end);
	EXPECT_EQ(sizeof(build_id), arg.data_used);
}

TEST_F(process, room_that_ends_after_the_first_record_is_no_error)
{
	struct procmap_scan_arg arg = ask(&room, start_of(SHARED_RW),
					  scene_end(), NAMES);
	uint32_t size;

	ASSERT_LT(0, procmap_scan(self->fd, &arg));
	for (size = room.vec[0].name_size;
	     size < room.vec[0].name_size + sizeof(FILE_NAME); size++) {
		arg.data_size = size;
		ASSERT_EQ(1, procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&truth, &arg, 1));
		EXPECT_LE(end_of(SHARED_RW), arg.walk_end);
		EXPECT_GE(start_of(FILE_NONE), arg.walk_end);
	}
	/* The name of the one file fits, that of the other does not. */
	arg.data_size = size;
	ASSERT_EQ(OTHER_FILE - SHARED_RW, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg,
				    OTHER_FILE - SHARED_RW));
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
		_IOWR('f', 17, struct procmap_scan_arg),
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

static void unknown_flag(struct attempt *attempt)
{
	arg_in(attempt)->flags |= 0x10;
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
 * is wrong with the fields, and before the errors of a mapping. ENAMETOOLONG
 * needs another scene, see long_path below. EINTR and ENOMEM cannot be made here.
 */
static const struct fault faults[] = {
	FAULT(another_command, -ENOTTY),
	FAULT(no_struct, -EFAULT),
	FAULT(size_over_a_page, -E2BIG),
	FAULT(size_too_small, -EINVAL),
	FAULT(half_a_struct, -EFAULT),
	FAULT(byte_past_the_struct, -E2BIG),
	FAULT(unknown_flag, -EINVAL),
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
	const struct attempt good = make_attempt(self->fd, PROCMAP_SCAN, 72,
						 &arg);

	check_order(_metadata, &good, faults, ARRAY_SIZE(faults));
}

/* An empty range is complete before any mapping is looked at. */
TEST_F(process, fields_are_checked_even_if_the_range_is_empty)
{
	struct procmap_scan_arg arg = ask(&room, end_of(FILE_R),
					  end_of(FILE_R), 0x10);

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
	args[0].size = 71;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, args));
	args[0] = ask(&self->room, 1, NO_END, 0);
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, args));
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, NULL));
}

TEST_F(gone, process_is_checked_before_buffers_are_written)
{
	struct procmap_scan_arg arg = ask(&self->room, 0, NO_END, ALL);

	arg.vec = 8;
	arg.data = 1;
	EXPECT_EQ(-ESRCH, procmap_scan(self->fd, &arg));
}

/* Mappings of one page each, of one file or of many: may records share data? */
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

/* Scan pages of one file, and check that its name is in the data once. */
static void scan_pages_of_one_file(struct __test_metadata *const _metadata,
				   struct _test_data_files *self,
				   unsigned int nr)
{
	const struct procmap_vma *const vec = self->room.vec;
	unsigned int i, others = 0;

	scan_pages(_metadata, self, nr, nr);
	for (i = 1; i < nr; i++)
		others += vec[i].name_offset != vec->name_offset ||
			  vec[i].build_id_offset != vec->build_id_offset;
	EXPECT_EQ(0u, others);
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

TEST_F(neighbours, of_one_file_share_name_and_build_id)
{
	memset(self->files.room.vec, FILL, 1024 * sizeof(struct procmap_vma));
	memset(self->files.room.data, FILL, 4096);
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
}

/*
 * The kernel drops its references to files before a page is faulted in, since
 * that may block, and remembers the last file by its name alone.
 */
TEST_F(neighbours, share_in_pages_not_in_memory)
{
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
}

TEST_F(neighbours, share_in_an_array_not_in_memory)
{
	memset(self->files.room.data, FILL, 4096);
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
}

TEST_F(neighbours, share_in_data_not_in_memory)
{
	memset(self->files.room.vec, FILL, 1024 * sizeof(struct procmap_vma));
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
}

/* The array is mapped, but to the zero page: writing to it faults, too. */
TEST_F(neighbours, share_in_pages_that_have_been_read_only)
{
	const size_t size = 1024 * sizeof(struct procmap_vma);

	ASSERT_EQ(0, madvise(self->files.room.vec, size, MADV_POPULATE_READ));
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
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

/* They need the room of one, which is what ENOSPC reports. */
TEST_F(neighbours, need_room_once)
{
	struct procmap_scan_arg arg =
		ask(&self->files.room, SCENE_START,
		    end_of_pages(NR_NEIGHBOURS), ALL);
	uint32_t needed;

	arg.data_size = 1;
	ASSERT_EQ(-ENOSPC, procmap_scan(self->files.fd, &arg));
	needed = arg.data_used;
	arg.data = (uintptr_t)map_to_page_end(needed, PROT_READ | PROT_WRITE);
	arg.data_size = needed;
	ASSERT_EQ(NR_NEIGHBOURS, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(needed, arg.data_used);
	EXPECT_EQ(arg.end, arg.walk_end);
}

TEST_F(files, share_across_memory_between_them)
{
	const int fd = make_named_elf(4);
	unsigned int i;

	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, i % 3 ? -1 : fd,
					i % 3 ? MAP_ANONYMOUS : 0));
	scan_pages(_metadata, self, 300, 300);
	for (i = 0; i < 300; i += 3)
		ASSERT_EQ(0u, self->room.vec[i].name_offset);
}

TEST_F(files, share_across_a_gap)
{
	const int fd = make_named_elf(4);
	unsigned int i;

	for (i = 0; i < 300; i += 2)
		ASSERT_TRUE(map_page_of(i, fd, 0));
	scan_pages(_metadata, self, 300, 150);
	for (i = 0; i < 150; i++)
		ASSERT_EQ(0u, self->room.vec[i].name_offset);
}

TEST_F(files, share_if_they_were_opened_more_than_once)
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
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0u, self->room.vec[i].name_offset);
		ASSERT_EQ(self->room.vec[0].build_id_offset,
			  self->room.vec[i].build_id_offset);
	}
}

TEST_F(files, share_after_those_of_another)
{
	const int other = make_named_elf(4), fd = make_named_elf(7);
	unsigned int i;

	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, i < 40 ? other : fd, 0));
	scan_pages(_metadata, self, 300, 300);
	for (i = 40; i < 300; i++)
		ASSERT_EQ(self->room.vec[40].name_offset,
			  self->room.vec[i].name_offset);
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

/* More files than the kernel remembers at a time, twice each, and again. */
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

/* Sharing goes by the file, not by its path: here only the build IDs differ. */
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

/* A file whose path is longer than PATH_MAX. */
FIXTURE(long_path)
{
	struct _test_data_files files;
	char *top;
	unsigned int depth;
	size_t length;
};

#define DEEP_NAME_LENGTH	200
#define PAGE_OF_LONG_PATH	2
#define NR_LONG_PATH_PAGES	5

FIXTURE_SETUP(long_path)
{
	char top[] = "/tmp/procmap-scan-XXXXXX", deep[DEEP_NAME_LENGTH + 1] = "";
	unsigned int i;
	int fd;

	files_setup(_metadata, &self->files, NULL);
	ASSERT_TRUE(!!mkdtemp(top));
	self->top = strdup(top);
	ASSERT_EQ(0, chdir(top));
	memset(deep, 'd', DEEP_NAME_LENGTH);
	for (i = 0; i <= PATH_MAX / DEEP_NAME_LENGTH; i++) {
		ASSERT_EQ(0, mkdir(deep, 0700));
		ASSERT_EQ(0, chdir(deep));
		self->depth++;
	}
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	ASSERT_TRUE(write_elf(fd, build_id));
	for (i = 0; i < NR_LONG_PATH_PAGES; i++)
		ASSERT_TRUE(map_page_of(i, i == PAGE_OF_LONG_PATH ?
					   fd : make_named_elf(4 + i), 0));
	close(fd);
	ASSERT_EQ(0, read_truth(self->files.fd, &self->files.truth));
}

FIXTURE_TEARDOWN(long_path)
{
	char deep[DEEP_NAME_LENGTH + 1] = "";

	memset(deep, 'd', DEEP_NAME_LENGTH);
	EXPECT_EQ(0, unlink("file"));
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

TEST_F(long_path, is_too_long_for_a_query)
{
	struct procmap_query query;
	char name[PATH_MAX];

	EXPECT_EQ(-ENAMETOOLONG,
		  query_name(self->files.fd, page_of(PAGE_OF_LONG_PATH), 0,
			     &query, name, sizeof(name)));
}

TEST_F(long_path, is_enametoolong)
{
	const uint64_t wanted[] = { NAMES, ALL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct procmap_scan_arg arg =
			ask(&self->files.room, page_of(PAGE_OF_LONG_PATH),
			    end_of_pages(NR_LONG_PATH_PAGES), wanted[i]);

		EXPECT_EQ(-ENAMETOOLONG, procmap_scan(self->files.fd, &arg));
		EXPECT_EQ(page_of(PAGE_OF_LONG_PATH), arg.walk_end);
	}
}

TEST_F(long_path, is_no_error_after_the_first_record)
{
	struct procmap_scan_arg arg =
		ask(&self->files.room, SCENE_START,
		    end_of_pages(NR_LONG_PATH_PAGES), ALL);

	ASSERT_EQ(PAGE_OF_LONG_PATH, procmap_scan(self->files.fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->files.truth, &arg,
				    PAGE_OF_LONG_PATH));
	EXPECT_EQ(page_of(PAGE_OF_LONG_PATH), arg.walk_end);
}

TEST_F(long_path, is_met_only_if_it_passes_the_filters)
{
	struct procmap_scan_arg arg =
		ask(&self->files.room, SCENE_START,
		    end_of_pages(NR_LONG_PATH_PAGES), ALL | X);

	/* Only pages with an even number are executable. */
	ASSERT_EQ(1, procmap_scan(self->files.fd, &arg));
	EXPECT_LE(page_of(1), arg.walk_end);
	EXPECT_GE(page_of(PAGE_OF_LONG_PATH), arg.walk_end);
	arg.start = page_of(1);
	EXPECT_EQ(-ENAMETOOLONG, procmap_scan(self->files.fd, &arg));
	EXPECT_LE(page_of(1), arg.walk_end);
	EXPECT_GE(page_of(PAGE_OF_LONG_PATH), arg.walk_end);

	arg.flags = ALL | W;
	EXPECT_EQ(0, procmap_scan(self->files.fd, &arg));
	EXPECT_EQ(arg.end, arg.walk_end);
}

TEST_F(long_path, does_not_matter_if_no_names_are_wanted)
{
	struct procmap_scan_arg arg =
		ask(&self->files.room, SCENE_START,
		    end_of_pages(NR_LONG_PATH_PAGES), BUILD_IDS);

	ASSERT_EQ(NR_LONG_PATH_PAGES, procmap_scan(self->files.fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->files.truth, &arg,
				    NR_LONG_PATH_PAGES));
}

TEST_F(long_path, can_be_gone_past)
{
	struct procmap_scan_arg arg =
		ask(&self->files.room, page_of(PAGE_OF_LONG_PATH + 1),
		    end_of_pages(NR_LONG_PATH_PAGES), ALL);
	size_t calls = 0;

	ASSERT_EQ(NR_LONG_PATH_PAGES - PAGE_OF_LONG_PATH - 1,
		  procmap_scan(self->files.fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->files.truth, &arg,
				    NR_LONG_PATH_PAGES - PAGE_OF_LONG_PATH - 1));

	arg.start = SCENE_START;
	EXPECT_STREQ("", wrong_walk(self->files.fd, &self->files.truth,
				    &self->files.room, arg, &calls));
	EXPECT_EQ(3u, calls);
}

/* After an error of the arguments or the process, before one of the buffers. */
TEST_F(long_path, error_has_its_place_in_the_order)
{
	const struct procmap_scan_arg arg =
		ask(&self->files.room, page_of(PAGE_OF_LONG_PATH),
		    end_of_pages(NR_LONG_PATH_PAGES), ALL);
	const struct attempt good = make_attempt(self->files.fd, PROCMAP_SCAN,
						 72, &arg);
	bool earlier = true;
	unsigned int i;

	room = self->files.room;
	EXPECT_EQ(-ENAMETOOLONG, try(&good));
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		struct attempt bad = good;

		if (faults[i].make == data_too_small)
			earlier = false;
		faults[i].make(&bad);
		EXPECT_EQ(earlier ? faults[i].err : -ENAMETOOLONG, try(&bad)) {
			TH_LOG("%s", faults[i].name);
		}
	}
	EXPECT_FALSE(earlier);
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

/*
 * A writer in the target waits as long as one hold of mmap_lock lasts. So a scan
 * looks at 64 VMAs under one hold, no more, whether they pass its filters or not:
 * for 65 it has to take the lock twice. Trace events count how often it does.
 */
#define VMAS_PER_HOLD	64
#define NR_LOCK_PAGES	300
#define TRACEFS		SCRATCH "/tracefs"
#define TRACE		TRACEFS "/instances/procmap-scan/"
#define LOCKED		"mmap_lock_acquire_returned"

FIXTURE(lock)
{
	struct child target;
	int fd;
	struct room room;
};

FIXTURE_VARIANT(lock)
{
	uint64_t flags;
	bool passes;	/* all VMAs pass these flags, or none */
};

FIXTURE_VARIANT_ADD(lock, without_filters) {
	.passes = true,
};

FIXTURE_VARIANT_ADD(lock, with_a_filter_that_none_passes) {
	.flags = S,
};

static int be_locked(int control, void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < NR_LOCK_PAGES; i++)
		if (!map_page_of(i, -1, MAP_ANONYMOUS))
			return 1;
	notify(control);
	await(control);
	return 0;
}

/* Trace the mmap_lock events of this process. Returns NULL, or why it cannot. */
static const char *start_tracing(void)
{
	const char *const missing = mount_scratch();
	char pid[16];

	if (missing)
		return missing;
	if (mkdir(TRACEFS, 0700) || mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		return "no tracefs, CONFIG_TRACING";
	rmdir(TRACE);
	sprintf(pid, "%d", getpid());
	if (mkdir(TRACE, 0700) || !write_file(TRACE "set_event_pid", pid) ||
	    !write_file(TRACE "events/mmap_lock/" LOCKED "/enable", "1"))
		return "no trace event " LOCKED;
	return NULL;
}

FIXTURE_SETUP(lock)
{
	const char *missing;

	skip_without_scan(_metadata);
	missing = start_tracing();
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(start_child(&self->target, be_locked, NULL));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(make_room(&self->room, NR_LOCK_PAGES, 0));
}

FIXTURE_TEARDOWN(lock)
{
	stop_child(&self->target);
	EXPECT_EQ(0, rmdir(TRACE));
}

/*
 * How often another process' mmap_lock was taken since the trace was emptied, or
 * -1. The first line is of this process, and shows how its own lock is named.
 */
static int count_holds(void)
{
	char line[512], own[32] = "", mm[32];
	FILE *const trace = fopen(TRACE "trace", "re");
	int holds = 0;

	while (trace && fgets(line, sizeof(line), trace)) {
		const char *const event = strstr(line, LOCKED ": mm=");

		if (!event || sscanf(event, LOCKED ": mm=%31s", mm) != 1)
			continue;
		if (!*own)
			strcpy(own, mm);
		holds += !!strcmp(own, mm);
	}
	if (trace)
		fclose(trace);
	return *own ? holds : -1;
}

static bool empty_trace(void)
{
	const int fd = open(TRACE "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd >= 0 && !close(fd);
}

TEST_F(lock, is_dropped_after_a_bounded_number_of_vmas)
{
	static const int nr[] = { 1, 64, 65, 128, 129, NR_LOCK_PAGES };
	unsigned int i;
	int holds;

	for (i = 0; i < ARRAY_SIZE(nr); i++) {
		struct procmap_scan_arg arg =
			ask(&self->room, SCENE_START, end_of_pages(nr[i]),
			    variant->flags);

		ASSERT_TRUE(empty_trace());
		/* This takes the lock of this process. */
		ASSERT_TRUE(!!map_room(page_size()));
		ASSERT_EQ(variant->passes ? nr[i] : 0,
			  procmap_scan(self->fd, &arg));
		holds = count_holds();
		if (!holds)
			SKIP(return, "a scan takes no mmap_lock here");
		EXPECT_LE((nr[i] + VMAS_PER_HOLD - 1) / VMAS_PER_HOLD, holds) {
			TH_LOG("%d VMAs", nr[i]);
		}
	}
}

TEST_HARNESS_MAIN
