// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_SCAN: the layout of its structures, and each of their
 * fields, filters and errors.
 */
#include <assert.h>

#include "procmap-scan.h"

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

#define R	PROCMAP_QUERY_VMA_READABLE
#define W	PROCMAP_QUERY_VMA_WRITABLE
#define X	PROCMAP_QUERY_VMA_EXECUTABLE
#define S	PROCMAP_QUERY_VMA_SHARED
#define F	PROCMAP_QUERY_FILE_BACKED_VMA

#define ALL	(NAMES | BUILD_IDS)

/* Where the kernel places nothing by itself, in 32 bits as in 64. */
#define SCENE_START	0x20000000

/* Each mapping has so many pages, and as many that are free follow. */
#define MAPPING_PAGES	2

/* An offset of more than 32 bits. */
#define FAR_OFFSET	0x10fedcba000

#define FILE_NAME	"/memfd:procmap-scan (deleted)"

/* What the buffers are filled with. */
#define FILL		0xa5

enum mappings {
	PRIVATE_NONE,
	PRIVATE_RW,
	PRIVATE_RX,
	SHARED_RW,
	FILE_NONE,
	FILE_R,
	FILE_RW,
	PRIVATE_R,
	FILE_RX,
	FILE_SHARED_RW,
	OTHER_FILE,
	FILE_FAR,
	NR_MAPPINGS,
};

enum backing { NO_FILE, ELF_FILE, EMPTY_FILE };

/* The scene: what is mapped, and with what flags it must answer. */
static const struct {
	int prot;
	int flags;
	enum backing backing;
	uint64_t offset;
	uint64_t answer;
} scene[NR_MAPPINGS] = {
	[PRIVATE_NONE] = { PROT_NONE, MAP_PRIVATE, NO_FILE, 0, 0 },
	[PRIVATE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, NO_FILE, 0,
			 R | W },
	[PRIVATE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, NO_FILE, 0,
			 R | X },
	/* The kernel puts a file behind it. */
	[SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, NO_FILE, 0,
			R | W | S | F },
	[FILE_NONE] = { PROT_NONE, MAP_PRIVATE, ELF_FILE, 0, F },
	[FILE_R] = { PROT_READ, MAP_PRIVATE, ELF_FILE, 0, R | F },
	[FILE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, ELF_FILE, 0x1000,
		      R | W | F },
	[PRIVATE_R] = { PROT_READ, MAP_PRIVATE, NO_FILE, 0, R },
	[FILE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, ELF_FILE, 0x2000,
		      R | X | F },
	[FILE_SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, ELF_FILE,
			     0x3000, R | W | S | F },
	[OTHER_FILE] = { PROT_READ, MAP_PRIVATE, EMPTY_FILE, 0, R | F },
	[FILE_FAR] = { PROT_READ, MAP_PRIVATE, ELF_FILE, FAR_OFFSET, R | F },
};

static const uint8_t build_id[20] = "\x01\x23\x45\x67\x89 a build ID";

static uint64_t start_of(unsigned int mapping)
{
	return SCENE_START + (uint64_t)mapping * 2 * MAPPING_PAGES *
			     page_size();
}

static uint64_t end_of(unsigned int mapping)
{
	return start_of(mapping) + MAPPING_PAGES * page_size();
}

static uint64_t scene_end(void)
{
	return start_of(NR_MAPPINGS);
}

static bool map_scene(void)
{
	const int elf = memfd_create("procmap-scan", MFD_CLOEXEC);
	const int empty = memfd_create("empty", MFD_CLOEXEC);
	const int fds[] = {
		[NO_FILE] = -1, [ELF_FILE] = elf, [EMPTY_FILE] = empty,
	};
	unsigned int i;

	if (elf < 0 || empty < 0 || !write_elf(elf, build_id))
		return false;
	for (i = 0; i < NR_MAPPINGS; i++) {
		void *const addr = (void *)(uintptr_t)start_of(i);
		int flags = scene[i].flags | MAP_FIXED_NOREPLACE;

		if (scene[i].backing == NO_FILE)
			flags |= MAP_ANONYMOUS;
		if (mmap64(addr, MAPPING_PAGES * page_size(), scene[i].prot,
			   flags, fds[scene[i].backing],
			   scene[i].offset) != addr)
			return false;
	}
	return true;
}

/* Map the scene, and pass on the own maps file, opened. */
static int be_target(int control, void *arg)
{
	const int fd = open_maps(0);

	(void)arg;
	if (!map_scene() || fd < 0 || !send_fd(control, fd))
		return 1;
	hear(control);
	return 0;
}

/* A buffer of @size bytes that ends with its page, before one without access. */
static void *map_to_page_end(size_t size, int prot)
{
	const size_t bytes = (size + page_size() - 1) & -page_size();
	uint8_t *const pages = map_room(bytes + page_size());

	if (!pages || mprotect(pages + bytes, page_size(), PROT_NONE) ||
	    (bytes && mprotect(pages, bytes, prot)))
		abort();
	return pages + bytes - size;
}

/* A process with known mappings, and one that scans them. */
FIXTURE(process)
{
	struct child target;
	int fd;			/* the target's maps file */
	struct truth truth;
	struct room room;
};

FIXTURE_VARIANT(process)
{
	bool forked;		/* the target is another process */
	bool passed;		/* which opens its file and passes it on */
};

FIXTURE_VARIANT_ADD(process, self) {
};

FIXTURE_VARIANT_ADD(process, other_process) {
	.forked = true,
};

FIXTURE_VARIANT_ADD(process, passed_fd) {
	.forked = true,
	.passed = true,
};

FIXTURE_SETUP(process)
{
	skip_without_scan(_metadata);
	if (variant->forked) {
		ASSERT_TRUE(start_child(&self->target, be_target, NULL));
		self->fd = recv_fd(self->target.control);
		ASSERT_LE(0, self->fd);
	} else {
		ASSERT_TRUE(map_scene());
	}
	if (!variant->passed)
		self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(make_room(&self->room, 64, 4096));
	memset(self->room.vec, FILL, 64 * sizeof(*self->room.vec));
	memset(self->room.data, FILL, 4096);
	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
}

FIXTURE_TEARDOWN(process)
{
	stop_child(&self->target);
	free_truth(&self->truth);
	free_room(&self->room);
	close(self->fd);
}

static struct procmap_scan_arg ask_scene(const struct _test_data_process *self,
					 uint64_t flags)
{
	return ask(&self->room, SCENE_START, scene_end(), flags);
}

/* The scene itself: without it, the tests below would prove nothing. */

TEST_F(process, text_shows_the_scene)
{
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *line = line_at(&self->truth.maps,
						       start_of(i));

		ASSERT_NE(NULL, line);
		EXPECT_EQ(start_of(i), line->start);
		EXPECT_EQ(end_of(i), line->end);
		EXPECT_EQ(scene[i].answer & ~(uint64_t)F, line->flags);
		EXPECT_EQ(scene[i].offset, line->offset);
		EXPECT_EQ(!(scene[i].answer & F), !line->inode);
	}
}

/* Each field of the answer. */

TEST_F(process, all_is_as_in_the_scene)
{
	struct procmap_scan_arg arg = ask_scene(self, ALL);
	unsigned int i;

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_EQ(scene_end(), arg.walk_end);
	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct procmap_vma *const vma = &self->room.vec[i];
		const char *const data = self->room.data;

		EXPECT_EQ(start_of(i), vma->start);
		EXPECT_EQ(end_of(i), vma->end);
		EXPECT_EQ(scene[i].answer & ~(uint64_t)F, vma->flags);
		EXPECT_EQ(page_size(), vma->page_size);
		EXPECT_EQ(scene[i].offset, vma->offset);
		EXPECT_EQ(!(scene[i].answer & F), !vma->inode);
		EXPECT_EQ(!(scene[i].answer & F), !vma->name_size);
		if (scene[i].backing != ELF_FILE) {
			EXPECT_EQ(0u, vma->build_id_size);
			continue;
		}
		EXPECT_EQ(sizeof(FILE_NAME), vma->name_size);
		EXPECT_STREQ(FILE_NAME, data + vma->name_offset);
		EXPECT_EQ(sizeof(build_id), vma->build_id_size);
		EXPECT_EQ(0, memcmp(build_id, data + vma->build_id_offset,
				    sizeof(build_id)));
	}
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg, NR_MAPPINGS));
}

TEST_F(process, page_size_is_that_of_smaps)
{
	struct procmap_scan_arg arg = ask_scene(self, 0);
	struct maps smaps;
	uint64_t *sizes;
	size_t i, found = 0;

	ASSERT_EQ(0, read_smaps(self->target.pid, &smaps, &sizes));
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	for (i = 0; i < smaps.nr; i++) {
		if (smaps.lines[i].start != self->room.vec[found].start)
			continue;
		EXPECT_EQ(sizes[i], self->room.vec[found].page_size);
		found++;
	}
	EXPECT_EQ((size_t)NR_MAPPINGS, found);
}

TEST_F(process, names_and_build_ids_are_told_if_wanted)
{
	const uint64_t wanted[] = { 0, NAMES, BUILD_IDS, ALL };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct procmap_scan_arg arg = ask_scene(self, wanted[i]);

		ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&self->truth, &arg, NR_MAPPINGS));
		for (n = 0; n < NR_MAPPINGS; n++) {
			if (!(wanted[i] & NAMES))
				EXPECT_EQ(0u, self->room.vec[n].name_size);
			if (!(wanted[i] & BUILD_IDS))
				EXPECT_EQ(0u, self->room.vec[n].build_id_size);
		}
		EXPECT_EQ(!wanted[i], !arg.data_used);
	}
}

TEST_F(process, no_data_is_needed_where_there_is_no_name)
{
	struct procmap_scan_arg arg = ask(&self->room, start_of(PRIVATE_NONE),
					  end_of(PRIVATE_RX), ALL);

	arg.data = 0;
	arg.data_size = 0;
	EXPECT_EQ(3, procmap_scan(self->fd, &arg));
	EXPECT_EQ(end_of(PRIVATE_RX), arg.walk_end);
	EXPECT_EQ(0u, arg.data_used);
}

TEST_F(process, input_fields_stay)
{
	struct procmap_scan_arg arg = ask_scene(self, ALL | R);
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
	struct procmap_scan_arg arg = ask_scene(self, ALL);

	arg.walk_end = ~0ull;
	arg.data_used = ~0u;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg, NR_MAPPINGS));
}

TEST_F(process, file_position_stays)
{
	struct procmap_scan_arg arg = ask_scene(self, ALL);

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
	struct procmap_scan_arg arg = ask_scene(self, ALL);

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_TRUE(is_filled(self->room.vec + NR_MAPPINGS,
			      (64 - NR_MAPPINGS) * sizeof(*self->room.vec)));
	EXPECT_TRUE(is_filled(self->room.data + arg.data_used,
			      4096 - arg.data_used));
}

TEST_F(process, nothing_is_written_without_a_record)
{
	struct procmap_scan_arg arg = ask(&self->room, end_of(FILE_R),
					  start_of(FILE_RW), ALL);

	ASSERT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_TRUE(is_filled(self->room.vec, 64 * sizeof(*self->room.vec)));
	EXPECT_TRUE(is_filled(self->room.data, 4096));
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
				ask(&self->room, start, end, ALL);
			const int nr = procmap_scan(self->fd, &arg);

			ASSERT_STREQ("", wrong_scan(&self->truth, &arg, nr)) {
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
			ask(&self->room, end_of(FILE_NONE), ends[i], ALL);

		ASSERT_EQ(nr[i], procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&self->truth, &arg, nr[i]));
		EXPECT_EQ(ends[i], arg.walk_end);
	}
}

TEST_F(process, file_is_cut_off_at_the_start_with_its_offset_moved)
{
	const uint64_t start = start_of(FILE_FAR) + page_size();
	struct procmap_scan_arg arg = ask(&self->room, start, start + 1, ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start, self->room.vec->start);
	EXPECT_EQ(end_of(FILE_FAR), self->room.vec->end);
	EXPECT_EQ(FAR_OFFSET + (uint64_t)page_size(), self->room.vec->offset);
}

TEST_F(process, memory_is_cut_off_at_the_start_without_an_offset)
{
	const uint64_t start = start_of(PRIVATE_RW) + page_size();
	struct procmap_scan_arg arg = ask(&self->room, start, start + 1, ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start, self->room.vec->start);
	EXPECT_EQ(end_of(PRIVATE_RW), self->room.vec->end);
	EXPECT_EQ(0u, self->room.vec->offset);
}

TEST_F(process, mapping_is_told_whole_at_the_end)
{
	const uint64_t end = start_of(FILE_R) + page_size();
	struct procmap_scan_arg arg = ask(&self->room, end_of(FILE_NONE), end,
					  ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_R), self->room.vec->start);
	EXPECT_EQ(end_of(FILE_R), self->room.vec->end);
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
			ask(&self->room, addrs[i], addrs[i], ALL);

		EXPECT_EQ(0, procmap_scan(self->fd, &arg));
		EXPECT_EQ(addrs[i], arg.walk_end);
		EXPECT_EQ(0u, arg.data_used);
	}
}

TEST_F(process, range_can_reach_to_the_largest_number)
{
	const uint64_t last = -(uint64_t)page_size();
	struct procmap_scan_arg arg = ask(&self->room, last, NO_END, ALL);

	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);

	arg = ask(&self->room, start_of(FILE_FAR), NO_END, 0);
	arg.vec_len = 1;
	EXPECT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(start_of(FILE_FAR), self->room.vec->start);
	EXPECT_LE(end_of(FILE_FAR), arg.walk_end);
}

TEST_F(process, whole_address_space_is_that_of_the_text)
{
	size_t calls = 0;

	/* The maps of this process change as its memory is used. */
	if (!variant->forked)
		return;
	EXPECT_STREQ("", wrong_walk(self->fd, &self->truth, &self->room,
				    ask(&self->room, 0, NO_END, ALL), &calls));
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
				ask_scene(self, filters | wanted[i]);
			const int nr = procmap_scan(self->fd, &arg);

			ASSERT_STREQ("", wrong_scan(&self->truth, &arg, nr)) {
				TH_LOG("filters %#llx", (long long)filters);
			}
			ASSERT_EQ(scene_end(), arg.walk_end);
			seen += nr;
		}
	}
	EXPECT_LT(0u, seen);
}

/* The array. */

TEST_F(process, scan_goes_on_where_the_array_was_full)
{
	const uint64_t flags[] = { 0, ALL, R, ALL | F };
	uint32_t vec_len;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		for (vec_len = 1; vec_len <= NR_MAPPINGS + 1; vec_len++) {
			struct procmap_scan_arg arg = ask_scene(self, flags[i]);
			size_t calls = 0;

			arg.vec_len = vec_len;
			EXPECT_STREQ("", wrong_walk(self->fd, &self->truth,
						    &self->room, arg, &calls)) {
				TH_LOG("vec_len %u", vec_len);
			}
			if (!flags[i])
				EXPECT_LE(NR_MAPPINGS / vec_len, calls);
		}
	}
}

TEST_F(process, walk_end_is_the_end_once_all_is_told)
{
	struct procmap_scan_arg arg = ask_scene(self, 0);

	arg.vec_len = NR_MAPPINGS - 1;
	ASSERT_EQ(NR_MAPPINGS - 1, procmap_scan(self->fd, &arg));
	EXPECT_GT(scene_end(), arg.walk_end);
	EXPECT_LE(end_of(NR_MAPPINGS - 2), arg.walk_end);
	EXPECT_GE(start_of(NR_MAPPINGS - 1), arg.walk_end);

	arg.start = arg.walk_end;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_EQ(scene_end(), arg.walk_end);
	EXPECT_EQ(start_of(NR_MAPPINGS - 1), self->room.vec->start);
}

TEST_F(process, only_the_records_that_are_told_need_room)
{
	const size_t size = NR_MAPPINGS * sizeof(struct procmap_vma);
	struct procmap_scan_arg arg = ask_scene(self, ALL);

	arg.vec = (uintptr_t)map_to_page_end(size, PROT_READ | PROT_WRITE);
	arg.vec_len = INT_MAX;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg, NR_MAPPINGS));
}

TEST_F(process, only_the_data_that_is_told_needs_room)
{
	struct procmap_scan_arg arg = ask_scene(self, ALL);

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	arg.data = (uintptr_t)map_to_page_end(arg.data_used,
					      PROT_READ | PROT_WRITE);
	arg.data_size = UINT_MAX;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg, NR_MAPPINGS));
}

TEST_F(process, buffers_are_not_looked_at_when_there_is_nothing_to_write)
{
	struct procmap_scan_arg arg = ask(&self->room, end_of(FILE_R),
					  start_of(FILE_RW), ALL);

	arg.vec = 8;
	arg.data = 1;
	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	arg.start = start_of(PRIVATE_RW);
	arg.end = end_of(PRIVATE_RW);
	arg.vec = (uintptr_t)self->room.vec;
	EXPECT_EQ(1, procmap_scan(self->fd, &arg));
}

/* Callers that know another version of the structures. */

TEST_F(process, longer_record_has_zeros_past_what_is_known)
{
	static const uint32_t sizes[] = { 72, 80, 88, 128, 1024, 4088, 4096 };
	const struct procmap_vma *const vec = self->room.vec;
	struct procmap_scan_arg plain = ask_scene(self, ALL);
	uint8_t *const longer = map_room(NR_MAPPINGS * 4096 + 4096);
	uint8_t zeros[4096] = {};
	unsigned int i, n;

	ASSERT_NE(NULL, longer);
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

TEST_F(process, longer_record_is_zeroed_in_pages_that_nobody_has_touched)
{
	struct procmap_scan_arg arg = ask_scene(self, ALL);

	arg.vec = (uintptr_t)map_room(NR_MAPPINGS * 4096);
	arg.vma_size = 4096;
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg, NR_MAPPINGS));
}

TEST_F(process, longer_arg_of_zeros_is_taken)
{
	struct procmap_scan_arg *const arg = map_room(page_size());
	const uint8_t *const bytes = (void *)arg;
	uint8_t *const zeros = calloc(1, page_size());
	size_t size;

	ASSERT_TRUE(arg && zeros);
	for (size = sizeof(*arg); size <= page_size(); size++) {
		*arg = ask_scene(self, ALL);
		arg->size = size;
		ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, arg));
		ASSERT_STREQ("", wrong_scan(&self->truth, arg, NR_MAPPINGS));
		ASSERT_EQ(size, arg->size);
		ASSERT_EQ(0, memcmp(bytes + sizeof(*arg), zeros,
				    page_size() - sizeof(*arg)));
	}
}

TEST_F(process, nothing_past_the_size_is_read)
{
	struct procmap_scan_arg *arg =
		map_to_page_end(sizeof(*arg), PROT_READ | PROT_WRITE);

	*arg = ask_scene(self, ALL);
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

	*arg = ask_scene(self, 0);
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

	*arg = ask_scene(self, 0);
	arg->size = page_size();
	for (i = sizeof(*arg); i < page_size(); i++) {
		bytes[i] = 1;
		ASSERT_EQ(-E2BIG, procmap_scan(self->fd, arg)) {
			TH_LOG("byte %zu", i);
		}
		bytes[i] = 0;
	}
	/* What is past the size is nobody's business. */
	arg->size = sizeof(*arg);
	bytes[sizeof(*arg)] = 1;
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, arg));
}

TEST_F(process, size_short_of_data_used_is_einval)
{
	struct procmap_scan_arg arg = ask_scene(self, 0);

	for (arg.size = 0; arg.size < 72; arg.size++)
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

TEST_F(process, unknown_flag_is_einval)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		const uint64_t flag = 1ull << bit;
		struct procmap_scan_arg arg = ask_scene(self, flag);
		const int nr = procmap_scan(self->fd, &arg);

		EXPECT_EQ(!(flag & (FILTERS | ALL)), nr == -EINVAL);
		EXPECT_EQ(!!(flag & (FILTERS | ALL)), nr > 0);
	}
}

TEST_F(process, start_that_is_not_aligned_is_einval)
{
	struct procmap_scan_arg arg = ask_scene(self, 0);
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
	struct procmap_scan_arg arg = ask_scene(self, 0);
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
	struct procmap_scan_arg arg = ask_scene(self, 0);
	unsigned int offset;

	arg.vec = 0;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	for (offset = 1; offset < 8; offset++) {
		arg.vec = (uintptr_t)self->room.vec + offset;
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	}
	arg.vec = (uintptr_t)self->room.vec + 8;
	EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

TEST_F(process, vec_len_that_is_0_or_too_large_is_einval)
{
	static const uint32_t bad[] = { 0, 0x80000000, 0xffffffff };
	static const uint32_t good[] = { NR_MAPPINGS, 0x7fffffff };
	struct procmap_scan_arg arg = ask_scene(self, 0);
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
	struct procmap_scan_arg arg = ask_scene(self, 0);
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

TEST_F(process, data_without_size_or_size_without_data_is_einval)
{
	/* It does not matter whether names or build IDs are wanted. */
	const uint64_t wanted[] = { 0, ALL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct procmap_scan_arg arg = ask_scene(self, wanted[i]);

		arg.data = 0;
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
		arg = ask_scene(self, wanted[i]);
		arg.data_size = 0;
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	}
}

TEST_F(process, arg_that_cannot_be_read_is_efault)
{
	const struct procmap_scan_arg arg = ask_scene(self, 0);
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

	*arg = ask_scene(self, 0);
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
		struct procmap_scan_arg arg = ask_scene(self, ALL);

		arg.vec = vecs[i];
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg)) {
			TH_LOG("vec %#llx", (long long)vecs[i]);
		}
		arg = ask_scene(self, 0);
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
			ask(&self->room, start_of(FILE_R), scene_end(), ALL);

		arg.data = places[i];
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg)) {
			TH_LOG("data %#llx", (long long)places[i]);
		}
	}
}

/* This is one error that comes also after the first record. */
TEST_F(process, bad_page_behind_the_first_records_is_efault)
{
	const size_t size = sizeof(struct procmap_vma);
	unsigned int fits;

	for (fits = 0; fits < NR_MAPPINGS; fits++) {
		struct procmap_scan_arg arg = ask_scene(self, ALL);
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
	struct procmap_scan_arg arg = ask_scene(self, ALL);
	struct procmap_vma first;

	/* The first that has a name is not the first. */
	arg.data = 1;
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
	arg.end = start_of(SHARED_RW);
	EXPECT_EQ(SHARED_RW, procmap_scan(self->fd, &arg));

	arg = ask_scene(self, ALL);
	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
	first = self->room.vec[SHARED_RW];
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
			ask(&self->room, start_of(FILE_R), end_of(FILE_R),
			    wanted_data[i]);

		for (size = 0; size < needed_data[i]; size++) {
			arg.data = size ? (uintptr_t)self->room.data : 0;
			arg.data_size = size;
			ASSERT_EQ(-ENOSPC, procmap_scan(self->fd, &arg));
			EXPECT_EQ(needed_data[i], arg.data_used);
			EXPECT_EQ(start_of(FILE_R), arg.walk_end);
		}
		EXPECT_TRUE(is_filled(self->room.data, 4096));
		arg.data_size = arg.data_used;
		ASSERT_EQ(1, procmap_scan(self->fd, &arg));
		EXPECT_EQ(needed_data[i], arg.data_used);
		EXPECT_STREQ("", wrong_scan(&self->truth, &arg, 1));
		memset(self->room.data, FILL, 4096);
	}
}

TEST_F(process, mapping_without_room_is_the_first_from_walk_end_on)
{
	struct procmap_scan_arg arg = ask_scene(self, BUILD_IDS | R | F);

	/* Those before it do not pass, or have no build ID, or need room. */
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
	struct procmap_scan_arg arg = ask(&self->room, start_of(SHARED_RW),
					  scene_end(), NAMES);
	uint32_t size;

	ASSERT_LT(0, procmap_scan(self->fd, &arg));
	for (size = self->room.vec[0].name_size;
	     size < self->room.vec[0].name_size + sizeof(FILE_NAME); size++) {
		arg.data_size = size;
		ASSERT_EQ(1, procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&self->truth, &arg, 1));
		EXPECT_LE(end_of(SHARED_RW), arg.walk_end);
		EXPECT_GE(start_of(FILE_NONE), arg.walk_end);
	}
	/* Then that of the other file is missing. */
	arg.data_size = size;
	ASSERT_EQ(OTHER_FILE - SHARED_RW, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&self->truth, &arg,
				    OTHER_FILE - SHARED_RW));
}

TEST_F(process, scan_goes_on_with_more_data)
{
	size_t calls = 0;
	uint32_t size;

	for (size = 0; size <= 200; size++) {
		struct procmap_scan_arg arg = ask_scene(self, ALL);

		arg.data_size = size;
		ASSERT_STREQ("", wrong_walk(self->fd, &self->truth, &self->room,
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
	struct procmap_scan_arg arg = ask_scene(self, 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-1, ioctl(self->fd, commands[i], &arg));
		EXPECT_EQ(ENOTTY, errno);
	}
}

TEST_F(process, scan_of_another_file_is_enotty)
{
	static const char *const names[] = { "smaps", "smaps_rollup", "stat" };
	struct procmap_scan_arg arg = ask_scene(self, 0);
	char path[64];
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s",
			 variant->forked ? self->target.pid : getpid(),
			 names[i]);
		fd = open(path, O_RDONLY);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-ENOTTY, procmap_scan(fd, &arg));
		close(fd);
	}
}

/* Of two faults, the one that is checked first is told. */

TEST_F(process, size_is_checked_before_the_rest_is_read)
{
	uint64_t *const size = map_to_page_end(sizeof(*size),
					       PROT_READ | PROT_WRITE);

	*size = page_size() + 1;
	EXPECT_EQ(-E2BIG, procmap_scan(self->fd, (void *)size));
	*size = 71;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, (void *)size));
}

TEST_F(process, size_and_bytes_past_the_struct_are_checked_before_fields)
{
	struct procmap_scan_arg args[2] = {
		ask_scene(self, 0), { .size = 1 },
	};

	args[0].vec = 0;
	args[0].size = page_size() + 1;
	EXPECT_EQ(-E2BIG, procmap_scan(self->fd, args));
	args[0].size = sizeof(args);
	EXPECT_EQ(-E2BIG, procmap_scan(self->fd, args));
	args[1].size = 0;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, args));
}

TEST_F(process, fields_are_checked_before_buffers_are_written)
{
	struct procmap_scan_arg arg = ask_scene(self, 0x10);

	arg.vec = 8;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
	arg = ask_scene(self, 0);
	arg.vec = 8;
	arg.data = 0;
	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
}

TEST_F(process, fields_are_checked_before_the_range)
{
	struct procmap_scan_arg arg = ask(&self->room, end_of(FILE_R),
					  end_of(FILE_R), 0x10);

	EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg));
}

/* An address space that has gone after its file was opened, or never was. */
FIXTURE(gone)
{
	struct child target;
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

/* Pass on the own maps file, and become another program. */
static int be_execed(int control, void *arg)
{
	const int fd = open_maps(0);

	(void)arg;
	if (fd < 0 || !send_fd(control, fd) ||
	    fcntl(control, F_SETFD, FD_CLOEXEC))
		return 1;
	execlp("sleep", "sleep", "1000", NULL);
	return 1;
}

static bool is_kernel_thread(pid_t pid)
{
	char path[64], name[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (!fgets(name, sizeof(name), file))
			name[0] = '\0';
		fclose(file);
	}
	return !strcmp(name, "kthreadd\n");
}

FIXTURE_SETUP(gone)
{
	int status;

	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&self->room, 64, 4096));
	switch (variant->end) {
	case EXITED:
		ASSERT_TRUE(start_child(&self->target, be_target, NULL));
		self->fd = recv_fd(self->target.control);
		stop_child(&self->target);
		break;
	case EXECED:
		ASSERT_TRUE(start_child(&self->target, be_execed, NULL));
		self->fd = recv_fd(self->target.control);
		/* It is closed by the other program. */
		ASSERT_FALSE(hear(self->target.control));
		ASSERT_EQ(0, waitpid(self->target.pid, &status, WNOHANG));
		break;
	case KERNEL_THREAD:
		if (!is_kernel_thread(2))
			SKIP(_exit(255), "no kernel thread is to be seen");
		self->fd = open_maps(2);
		if (self->fd == -EACCES)
			SKIP(_exit(255), "only root can open that of a kernel thread");
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

/* Mappings of files, as many as it takes, one page each. */
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
	/* Neighbours differ, or they would be one mapping. */
	const int prot = page % 2 ? PROT_READ : PROT_READ | PROT_EXEC;
	void *const addr = (void *)(SCENE_START + page * page_size());

	return mmap(addr, page_size(), prot,
		    MAP_PRIVATE | MAP_FIXED_NOREPLACE | flags, fd,
		    0) == addr;
}

/* A file with a build ID and a name of so many bytes. */
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

/* Scan what is all of one file, and see that its name is in the data once. */
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

/* Where a page has to be faulted in, nothing of the target can be held. */
TEST_F(neighbours, share_in_pages_that_nobody_has_touched)
{
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
}

TEST_F(neighbours, share_in_an_array_that_nobody_has_touched)
{
	memset(self->files.room.data, FILL, 4096);
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
}

TEST_F(neighbours, share_in_data_that_nobody_has_touched)
{
	memset(self->files.room.vec, FILL, 1024 * sizeof(struct procmap_vma));
	scan_pages_of_one_file(_metadata, &self->files, NR_NEIGHBOURS);
}

/* An array that spans pages, the first of which have been read but not written. */
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

/* The room that all of them need is that of one, which is told in the error. */
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

TEST_F(files, that_are_many_are_all_told)
{
	unsigned int i;

	for (i = 0; i < 200; i++)
		ASSERT_TRUE(map_page_of(i, make_named_elf(4 + i), 0));
	scan_pages(_metadata, self, 200, 200);
}

/* More than two at a time, twice each, and all of them again. */
TEST_F(files, that_take_turns_are_all_told)
{
	int fds[100];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = make_named_elf(1 + i);
	for (i = 0; i < 400; i++)
		ASSERT_TRUE(map_page_of(i, fds[i / 2 % ARRAY_SIZE(fds)], 0));
	scan_pages(_metadata, self, 400, 400);
}

/* The same path for another file: another build ID. */
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

/* A path that is longer than PATH_MAX. */
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
		/* It comes before ENOSPC. */
		arg.data_size = 1;
		EXPECT_EQ(-ENAMETOOLONG, procmap_scan(self->files.fd, &arg));
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

	/* Those of an even number can be executed. */
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

TEST_HARNESS_MAIN
