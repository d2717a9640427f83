// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_QUERY: the layout of its structure, and each of its
 * fields, filters and errors.
 */
#include <assert.h>
#include <poll.h>

#include "procmap-order.h"
#include "procmap-scene.h"
#include "procmap-uffd.h"

#define ASSERT_OFFSET(field, bytes) \
	static_assert(offsetof(struct procmap_query, field) == (bytes), "")

#define ASSERT_SIZE(field, bytes) \
	static_assert(sizeof((*(struct procmap_query *)0).field) == (bytes), "")

ASSERT_OFFSET(size, 0);
ASSERT_OFFSET(query_flags, 8);
ASSERT_OFFSET(query_addr, 16);
ASSERT_OFFSET(vma_start, 24);
ASSERT_OFFSET(vma_end, 32);
ASSERT_OFFSET(vma_flags, 40);
ASSERT_OFFSET(vma_page_size, 48);
ASSERT_OFFSET(vma_offset, 56);
ASSERT_OFFSET(inode, 64);
ASSERT_OFFSET(dev_major, 72);
ASSERT_OFFSET(dev_minor, 76);
ASSERT_OFFSET(vma_name_size, 80);
ASSERT_OFFSET(build_id_size, 84);
ASSERT_OFFSET(vma_name_addr, 88);
ASSERT_OFFSET(build_id_addr, 96);

ASSERT_SIZE(size, 8);
ASSERT_SIZE(query_flags, 8);
ASSERT_SIZE(query_addr, 8);
ASSERT_SIZE(vma_start, 8);
ASSERT_SIZE(vma_end, 8);
ASSERT_SIZE(vma_flags, 8);
ASSERT_SIZE(vma_page_size, 8);
ASSERT_SIZE(vma_offset, 8);
ASSERT_SIZE(inode, 8);
ASSERT_SIZE(dev_major, 4);
ASSERT_SIZE(dev_minor, 4);
ASSERT_SIZE(vma_name_size, 4);
ASSERT_SIZE(build_id_size, 4);
ASSERT_SIZE(vma_name_addr, 8);
ASSERT_SIZE(build_id_addr, 8);
static_assert(sizeof(struct procmap_query) == 104, "");

static_assert(PROCMAP_QUERY == 0xc0686611, "");
static_assert(PROCMAP_QUERY_VMA_READABLE == 0x01, "");
static_assert(PROCMAP_QUERY_VMA_WRITABLE == 0x02, "");
static_assert(PROCMAP_QUERY_VMA_EXECUTABLE == 0x04, "");
static_assert(PROCMAP_QUERY_VMA_SHARED == 0x08, "");
static_assert(PROCMAP_QUERY_COVERING_OR_NEXT_VMA == 0x10, "");
static_assert(PROCMAP_QUERY_FILE_BACKED_VMA == 0x20, "");

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA
/* What a query for everything writes to. Each test is a process of its own. */
static struct {
	char name[256];
	uint8_t build_id[20];
} buffers;

static void make_buffers(struct __test_metadata *const _metadata, int fd)
{
	memset(&buffers, FILL, sizeof(buffers));
}

static struct procmap_query ask_all(uint64_t addr)
{
	return (struct procmap_query) {
		.size = sizeof(struct procmap_query),
		.query_addr = addr,
		.vma_name_addr = (uintptr_t)buffers.name,
		.vma_name_size = sizeof(buffers.name),
		.build_id_addr = (uintptr_t)buffers.build_id,
		.build_id_size = sizeof(buffers.build_id),
	};
}

static struct procmap_query ask_fields(uint64_t addr, uint64_t flags)
{
	return (struct procmap_query) {
		.size = sizeof(struct procmap_query),
		.query_flags = flags,
		.query_addr = addr,
	};
}

/* Each field of the answer. */

TEST_F(process, range_is_that_of_the_text)
{
	struct procmap_query query;
	size_t i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *line = line_of(&self->maps, i);

		ASSERT_EQ(0, query_fields(self->fd, start_of(i), 0, &query));
		EXPECT_EQ(line->start, query.vma_start);
		EXPECT_EQ(line->end, query.vma_end);
	}
}

TEST_F(process, vma_flags_are_those_of_the_text)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		ASSERT_EQ(0, query_fields(self->fd, start_of(i), 0, &query));
		EXPECT_EQ(line_of(&self->maps, i)->flags, query.vma_flags);
		EXPECT_EQ(scene[i].passes & ~(uint64_t)F, query.vma_flags);
	}
}

TEST_F(process, page_size_is_that_of_smaps)
{
	struct procmap_query query;
	struct maps smaps;
	uint64_t *sizes;
	size_t i, found = 0;

	ASSERT_EQ(0, read_smaps(self->target.pid, &smaps, &sizes));
	for (i = 0; i < smaps.nr; i++) {
		const uint64_t start = smaps.lines[i].start;

		if (start < SCENE_START || start > start_of(NR_MAPPINGS))
			continue;
		found++;
		ASSERT_EQ(0, query_fields(self->fd, start, 0, &query));
		EXPECT_EQ(sizes[i], query.vma_page_size);
	}
	EXPECT_EQ((size_t)NR_MAPPINGS, found);
}

TEST_F(process, offset_is_that_of_the_text)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		ASSERT_EQ(0, query_fields(self->fd, start_of(i), 0, &query));
		EXPECT_EQ(line_of(&self->maps, i)->offset, query.vma_offset);
		EXPECT_EQ(scene[i].offset, query.vma_offset);
	}
}

TEST_F(process, offset_is_that_of_the_start_for_every_address)
{
	const uint64_t addr = end_of(FILE_RW) - 1;
	struct procmap_query query;

	ASSERT_EQ(0, query_fields(self->fd, addr, 0, &query));
	EXPECT_EQ(scene[FILE_RW].offset, query.vma_offset);
}

TEST_F(process, inode_and_device_are_those_of_the_text)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *line = line_of(&self->maps, i);

		ASSERT_EQ(0, query_fields(self->fd, start_of(i), 0, &query));
		EXPECT_EQ(line->inode, query.inode);
		EXPECT_EQ(line->dev_major, query.dev_major);
		EXPECT_EQ(line->dev_minor, query.dev_minor);
	}
}

TEST_F(process, name_is_that_of_the_text)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *line = line_of(&self->maps, i);

		buffers.name[0] = '\0';
		ASSERT_EQ(0, query_name(self->fd, start_of(i), 0, &query,
					buffers.name, sizeof(buffers.name)));
		EXPECT_STREQ(line->name, buffers.name);
		EXPECT_EQ(line->name[0] ? strlen(line->name) + 1 : 0,
			  query.vma_name_size);
	}
}

TEST_F(process, build_id_is_that_of_the_file)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		memset(buffers.build_id, 0, sizeof(buffers.build_id));
		ASSERT_EQ(0, query_build_id(self->fd, start_of(i), &query,
					    buffers.build_id,
					    sizeof(buffers.build_id)));
		EXPECT_EQ(is_elf(i) ? sizeof(build_id) : 0,
			  query.build_id_size);
		EXPECT_EQ(is_elf(i), !memcmp(build_id, buffers.build_id,
					     sizeof(build_id)));
	}
}

TEST_F(process, everything_can_be_queried_at_once)
{
	struct procmap_query query = ask_all(start_of(FILE_FAR));

	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_TRUE(same_fields(line_of(&self->maps, FILE_FAR), &query));
	EXPECT_STREQ(FILE_NAME, buffers.name);
	EXPECT_EQ(sizeof(FILE_NAME), query.vma_name_size);
	EXPECT_EQ(sizeof(build_id), query.build_id_size);
	EXPECT_EQ(0, memcmp(build_id, buffers.build_id, sizeof(build_id)));
}

TEST_F(process, fields_of_a_file_are_zero_without_one)
{
	struct procmap_query query = ask_all(start_of(PRIVATE_RW));

	query.vma_offset = ~0ull;
	query.inode = ~0ull;
	query.dev_major = ~0u;
	query.dev_minor = ~0u;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(0u, query.vma_offset);
	EXPECT_EQ(0u, query.inode);
	EXPECT_EQ(0u, query.dev_major);
	EXPECT_EQ(0u, query.dev_minor);
}

TEST_F(process, sizes_are_zero_without_name_and_build_id)
{
	struct procmap_query query = ask_all(start_of(PRIVATE_RW));

	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(0u, query.vma_name_size);
	EXPECT_EQ(0u, query.build_id_size);
}

TEST_F(process, build_id_size_is_zero_for_a_file_that_is_no_elf)
{
	struct procmap_query query = ask_all(start_of(SHARED_RW));

	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(0u, query.build_id_size);
	EXPECT_LT(0u, query.vma_name_size);
}

TEST_F(process, what_the_caller_left_in_output_fields_does_not_matter)
{
	struct procmap_query clean = ask_fields(start_of(FILE_RW), 0);
	struct procmap_query query = clean;

	memset(&query.vma_start, 0xff,
	       offsetof(struct procmap_query, vma_name_size) -
	       offsetof(struct procmap_query, vma_start));
	ASSERT_EQ(0, procmap_query(self->fd, &clean));
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(0, memcmp(&clean, &query, sizeof(query)));
}

TEST_F(process, input_fields_stay)
{
	struct procmap_query query = ask_all(start_of(FILE_RW) + 5);

	query.query_flags = NEXT | F | W;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(sizeof(query), query.size);
	EXPECT_EQ((uint64_t)(NEXT | F | W), query.query_flags);
	EXPECT_EQ(start_of(FILE_RW) + 5, query.query_addr);
	EXPECT_EQ((uintptr_t)buffers.name, query.vma_name_addr);
	EXPECT_EQ((uintptr_t)buffers.build_id, query.build_id_addr);
}

/* A reader may mix read() and queries on one file. */
TEST_F(process, file_position_stays)
{
	struct procmap_query query;
	char before[100], after[100];

	ASSERT_EQ(sizeof(before), (size_t)pread(self->fd, before,
						sizeof(before), 0));
	ASSERT_EQ(7, lseek(self->fd, 7, SEEK_SET));
	ASSERT_EQ(0, query_fields(self->fd, start_of(FILE_RW), 0, &query));
	EXPECT_EQ(7, lseek(self->fd, 0, SEEK_CUR));
	ASSERT_EQ(sizeof(after), (size_t)pread(self->fd, after,
					       sizeof(after), 0));
	EXPECT_EQ(0, memcmp(before, after, sizeof(before)));
}

/* Filters, and the next mapping. */

TEST_F(process, each_filter_lets_through_what_has_it)
{
	static const uint64_t filters[] = { R, W, X, S, F };
	struct procmap_query query;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(filters); i++) {
		for (j = 0; j < NR_MAPPINGS; j++) {
			const int err = scene[j].passes & filters[i] ?
					0 : -ENOENT;

			ASSERT_EQ(err, query_fields(self->fd, start_of(j),
						    filters[i], &query)) {
				TH_LOG("mapping %u, filter %u", j, i);
			}
		}
	}
}

TEST_F(process, all_filters_that_are_given_must_hold)
{
	struct procmap_query query;
	uint64_t flags;
	unsigned int i;

	for (flags = 0; flags <= FILTERS; flags++) {
		if (flags & ~(uint64_t)FILTERS)
			continue;
		for (i = 0; i < NR_MAPPINGS; i++) {
			const int err = flags & ~scene[i].passes ?
					-ENOENT : 0;

			ASSERT_EQ(err, query_fields(self->fd, start_of(i),
						    flags, &query)) {
				TH_LOG("mapping %u, filters %#llx", i,
				       (unsigned long long)flags);
			}
		}
	}
}

TEST_F(process, next_is_the_first_above_that_passes_all_filters)
{
	struct procmap_query query;
	unsigned int i, next;
	uint64_t flags;

	for (flags = 0; flags <= FILTERS; flags++) {
		if (flags & ~(uint64_t)FILTERS)
			continue;
		for (i = 0; i < NR_MAPPINGS; i++) {
			for (next = i; next < NR_MAPPINGS; next++)
				if (!(flags & ~scene[next].passes))
					break;
			/* The mappings above the scene are not known here. */
			if (next == NR_MAPPINGS)
				continue;
			ASSERT_EQ(0, query_fields(self->fd, start_of(i),
						  flags | NEXT, &query));
			ASSERT_EQ(start_of(next), query.vma_start) {
				TH_LOG("from mapping %u, filters %#llx", i,
				       (unsigned long long)flags);
			}
		}
	}
}

TEST_F(process, filter_that_nothing_above_passes_is_enoent)
{
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, last_page, NEXT | F,
					&query));
}

TEST_F(process, next_prefers_what_covers)
{
	struct procmap_query query;

	ASSERT_EQ(0, query_fields(self->fd, end_of(FILE_R) - 1, NEXT, &query));
	EXPECT_EQ(start_of(FILE_R), query.vma_start);
}

TEST_F(process, next_is_found_from_a_gap)
{
	struct procmap_query query;

	ASSERT_EQ(0, query_fields(self->fd, end_of(FILE_R), NEXT, &query));
	EXPECT_EQ(start_of(FILE_RW), query.vma_start);
	EXPECT_EQ(end_of(FILE_RW), query.vma_end);
}

/* The boundaries. */

TEST_F(process, first_and_last_byte_are_covered)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		ASSERT_EQ(0, query_fields(self->fd, start_of(i), 0, &query));
		EXPECT_EQ(start_of(i), query.vma_start);
		ASSERT_EQ(0, query_fields(self->fd, end_of(i) - 1, 0, &query));
		EXPECT_EQ(start_of(i), query.vma_start);
	}
}

TEST_F(process, byte_before_and_byte_after_are_not_covered)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		EXPECT_EQ(-ENOENT, query_fields(self->fd, start_of(i) - 1, 0,
						&query));
		EXPECT_EQ(-ENOENT, query_fields(self->fd, end_of(i), 0,
						&query));
	}
}

TEST_F(process, next_of_the_byte_before_is_the_mapping)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		ASSERT_EQ(0, query_fields(self->fd, start_of(i) - 1, NEXT,
					  &query));
		EXPECT_EQ(start_of(i), query.vma_start);
	}
}

TEST_F(process, nothing_covers_address_zero)
{
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, 0, 0, &query));
}

TEST_F(process, next_of_address_zero_is_the_first_mapping)
{
	struct procmap_query query;

	ASSERT_EQ(0, query_fields(self->fd, 0, NEXT, &query));
	EXPECT_TRUE(same_fields(&self->maps.lines[0], &query));
}

TEST_F(process, last_page_is_covered_to_its_last_byte)
{
	struct procmap_query query;

	ASSERT_EQ(0, query_fields(self->fd, last_page, 0, &query));
	EXPECT_TRUE(same_fields(line_at(&self->maps, last_page), &query));
	EXPECT_EQ(last_page + page_size(), query.vma_end);
	EXPECT_EQ(0, query_fields(self->fd, last_page + page_size() - 1, 0,
				  &query));
}

TEST_F(process, nothing_follows_the_last_page)
{
	const uint64_t end = last_page + page_size();
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, end, 0, &query));
	EXPECT_EQ(-ENOENT, query_fields(self->fd, end, NEXT, &query));
}

TEST_F(process, nothing_is_at_the_highest_addresses)
{
	static const uint64_t addrs[] = { 1ull << 63, -4096ull, -2ull, -1ull };
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		EXPECT_EQ(-ENOENT, query_fields(self->fd, addrs[i], 0,
						&query));
		EXPECT_EQ(-ENOENT, query_fields(self->fd, addrs[i], NEXT,
						&query));
	}
}

/* A kernel that cuts the address to 32 bits would find FILE_R. */
TEST_F(process, address_is_not_cut_to_32_bits)
{
	const uint64_t addr = start_of(FILE_R) + (1ull << 32);
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, addr, 0, &query));
}

/* The size of the structure. */

/*
 * A caller built against another version of the structure gets the fields it
 * knows; a longer structure has zeros in those that the kernel does not know.
 */
TEST_F(process, every_size_writes_the_fields_that_fit_and_no_more)
{
	const size_t max = page_size();
	struct procmap_query full;
	uint8_t *bytes, *zeros, *guard;
	size_t size;

	bytes = calloc(4, max);
	ASSERT_TRUE(!!bytes);
	zeros = bytes + 2 * max;
	guard = bytes + 3 * max;
	memset(guard, FILL, max);
	ASSERT_EQ(0, query_fields(self->fd, start_of(FILE_RW), 0, &full));

	for (size = 24; size <= max; size++) {
		struct procmap_query query = ask_fields(start_of(FILE_RW), 0);
		const size_t fits = size < sizeof(query) ? size :
							   sizeof(query);

		query.size = size;
		full.size = size;
		memset(bytes, 0, size);
		memcpy(bytes, &query, fits);
		memcpy(bytes + size, guard, max);
		ASSERT_EQ(0, procmap_query(self->fd, (void *)bytes)) {
			TH_LOG("size %zu", size);
		}
		ASSERT_EQ(0, memcmp(bytes, &full, fits));
		ASSERT_EQ(0, memcmp(bytes + fits, zeros, size - fits));
		ASSERT_EQ(0, memcmp(bytes + size, guard, max));
	}
}

/* The page after the structure is not accessible: reading it would be EFAULT. */
TEST_F(process, nothing_past_the_size_is_touched)
{
	uint8_t *end = map_to_page_end(0, PROT_READ | PROT_WRITE);
	size_t size;

	for (size = 24; size <= page_size(); size++) {
		struct procmap_query query = ask_fields(start_of(FILE_RW), 0);

		query.size = size;
		memset(end - size, 0, size);
		memcpy(end - size, &query,
		       size < sizeof(query) ? size : sizeof(query));
		ASSERT_EQ(0, procmap_query(self->fd, (void *)(end - size))) {
			TH_LOG("size %zu", size);
		}
	}
}

/* A call with a structure whose end is that of a page. */
struct short_call {
	int fd;
	uint8_t *arg;
	int err;
};

static int be_short_caller(int control, void *arg)
{
	struct short_call *const call = arg;

	call->err = procmap_query(call->fd, (void *)call->arg);
	return !notify(control);
}

/* Returns false if the call touches the page behind, which it gets then. */
static bool make_short_call(struct short_call *call, int uffd, uint8_t *behind)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct worker caller = {};
	bool touches;

	if (!start_worker(&caller, be_short_caller, call, false))
		return false;
	fds[0].fd = uffd;
	fds[1].fd = caller.child.control;
	touches = poll(fds, 2, -1) <= 0 || fds[0].revents;
	if (touches)
		give_page(uffd, behind, behind - page_size());
	return !end_of_worker(&caller) && !touches;
}

/*
 * The page behind the structure is missing: who reads it or writes to it waits,
 * even if it could go on without, as from a fault on an inaccessible page.
 */
TEST_F(process, page_past_the_size_is_left_missing)
{
	static const struct {
		size_t size;
		int err;
	} cases[] = {
		{ 8, -EINVAL }, { 24, 0 }, { 56, 0 }, { 88, 0 }, { 96, 0 },
		{ 104, 0 }, { 112, 0 },
	};
	uint8_t *const end = map_to_page_end(0, PROT_READ | PROT_WRITE);
	const char *missing;
	unsigned int i;
	int uffd;

	missing = open_userfaultfd(&uffd, 0);
	if (missing)
		SKIP(return, "%s", missing);
	/* Otherwise it cannot be polled. */
	ASSERT_EQ(0, fcntl(uffd, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, mprotect(end, page_size(), PROT_READ | PROT_WRITE));
	ASSERT_TRUE(watch_pages(uffd, end, page_size(),
				UFFDIO_REGISTER_MODE_MISSING));

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const size_t size = cases[i].size;
		struct procmap_query query = ask_fields(start_of(FILE_RW), 0);
		const size_t fits = size < sizeof(query) ? size :
							   sizeof(query);
		struct short_call call = { .fd = self->fd, .arg = end - size };

		query.size = size;
		memset(end - size, 0, size);
		memcpy(end - size, &query, fits);
		ASSERT_TRUE(make_short_call(&call, uffd, end)) {
			TH_LOG("size %zu", size);
		}
		ASSERT_EQ(cases[i].err, call.err);
		if (call.err)
			continue;
		ASSERT_EQ(0, query_fields(self->fd, start_of(FILE_RW), 0,
					  &query));
		query.size = size;
		EXPECT_EQ(0, memcmp(end - size, &query, fits));
	}
}

TEST_F(process, struct_without_build_id_field_can_have_a_name)
{
	struct procmap_query query = ask_all(start_of(FILE_R));

	query.size = offsetof(struct procmap_query, build_id_addr);
	query.build_id_size = 0;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_STREQ(FILE_NAME, buffers.name);
}

TEST_F(process, longer_struct_can_have_name_and_build_id)
{
	struct {
		struct procmap_query query;
		uint8_t zero[64];
	} longer = {
		.query = ask_all(start_of(FILE_R)),
	};

	longer.query.size = sizeof(longer);
	ASSERT_EQ(0, procmap_query(self->fd, &longer.query));
	EXPECT_STREQ(FILE_NAME, buffers.name);
	EXPECT_EQ(sizeof(build_id), longer.query.build_id_size);
}

/* The buffers. */

TEST_F(process, no_buffers_means_none_wanted)
{
	struct procmap_query query;

	ASSERT_EQ(0, query_fields(self->fd, start_of(FILE_R), 0, &query));
	EXPECT_EQ(0u, query.vma_name_size);
	EXPECT_EQ(0u, query.build_id_size);
}

TEST_F(process, name_buffer_can_be_just_as_long_as_the_name)
{
	struct procmap_query query = ask_all(start_of(FILE_R));

	memset(buffers.name, FILL, sizeof(buffers.name));
	query.vma_name_size = sizeof(FILE_NAME);
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(sizeof(FILE_NAME), query.vma_name_size);
	EXPECT_STREQ(FILE_NAME, buffers.name);
	EXPECT_EQ((char)FILL, buffers.name[sizeof(FILE_NAME)]);
}

TEST_F(process, build_id_buffer_can_be_longer_than_the_build_id)
{
	uint8_t id[4096] = {};
	struct procmap_query query;

	ASSERT_EQ(0, query_build_id(self->fd, start_of(FILE_R), &query, id,
				    sizeof(id)));
	EXPECT_EQ(sizeof(build_id), query.build_id_size);
	EXPECT_EQ(0, memcmp(build_id, id, sizeof(build_id)));
}

/* The size given is a limit: the kernel must not check that all of it is there. */
TEST_F(process, only_the_bytes_of_the_name_need_to_be_writable)
{
	char *name = map_to_page_end(sizeof(FILE_NAME),
				     PROT_READ | PROT_WRITE);
	struct procmap_query query = ask_all(start_of(FILE_R));

	query.vma_name_addr = (uintptr_t)name;
	query.vma_name_size = 0xffffffff;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(sizeof(FILE_NAME), query.vma_name_size);
	EXPECT_STREQ(FILE_NAME, name);
}

TEST_F(process, only_the_bytes_of_the_build_id_need_to_be_writable)
{
	uint8_t *id = map_to_page_end(sizeof(build_id),
				      PROT_READ | PROT_WRITE);
	struct procmap_query query = ask_all(start_of(FILE_R));

	query.build_id_addr = (uintptr_t)id;
	query.build_id_size = 0xffffffff;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(sizeof(build_id), query.build_id_size);
	EXPECT_EQ(0, memcmp(build_id, id, sizeof(build_id)));
}

/* An address is checked by writing to it, so a bad one is no error here. */
TEST_F(process, buffers_are_not_looked_at_when_there_is_nothing_to_write)
{
	struct procmap_query query = ask_all(start_of(PRIVATE_RW));

	query.vma_name_addr = 1;
	query.build_id_addr = 1;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(0u, query.vma_name_size);
	EXPECT_EQ(0u, query.build_id_size);
}

/* Each error. */

TEST_F(process, size_over_a_page_is_e2big)
{
	static const uint64_t over[] = { 1, 4096, 1ull << 32 };
	uint8_t *bytes = calloc(4, page_size());
	struct procmap_query query = ask_fields(start_of(FILE_R), 0);
	unsigned int i;

	ASSERT_TRUE(!!bytes);
	for (i = 0; i < ARRAY_SIZE(over); i++) {
		query.size = page_size() + over[i];
		memcpy(bytes, &query, sizeof(query));
		EXPECT_EQ(-E2BIG, procmap_query(self->fd, (void *)bytes));
	}
	query.size = ~0ull;
	memcpy(bytes, &query, sizeof(query));
	EXPECT_EQ(-E2BIG, procmap_query(self->fd, (void *)bytes));
}

TEST_F(process, nonzero_byte_past_the_struct_is_e2big)
{
	struct procmap_query query = ask_fields(start_of(FILE_R), 0);
	uint8_t *bytes = calloc(1, page_size());
	size_t i;

	ASSERT_TRUE(!!bytes);
	query.size = page_size();
	memcpy(bytes, &query, sizeof(query));
	for (i = sizeof(query); i < page_size(); i++) {
		bytes[i] = 1;
		ASSERT_EQ(-E2BIG, procmap_query(self->fd, (void *)bytes)) {
			TH_LOG("byte %zu", i);
		}
		bytes[i] = 0;
	}
}

TEST_F(process, size_short_of_query_addr_is_einval)
{
	struct procmap_query query = ask_fields(start_of(FILE_R), 0);

	for (query.size = 0; query.size < 24; query.size++)
		EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
	EXPECT_EQ(0, procmap_query(self->fd, &query));
}

TEST_F(process, unknown_flag_is_einval)
{
	struct procmap_query query;
	unsigned int bit;

	for (bit = 6; bit < 64; bit++)
		EXPECT_EQ(-EINVAL, query_fields(self->fd, start_of(FILE_R),
						1ull << bit, &query));
}

/* An address beyond the size is 0, whatever follows the structure in memory. */
TEST_F(process, buffer_size_without_field_for_address_is_einval)
{
	struct procmap_query query = ask_all(start_of(FILE_R));

	query.size = offsetof(struct procmap_query, build_id_addr);
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
	query.size = offsetof(struct procmap_query, vma_name_addr);
	query.build_id_size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(process, address_that_nothing_covers_is_enoent)
{
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, end_of(FILE_R) + 1, 0,
					&query));
}

/* The buffer has to hold the NUL, too. */
TEST_F(process, name_longer_than_its_buffer_is_enametoolong)
{
	struct procmap_query query = ask_all(start_of(FILE_R));
	uint32_t size;

	for (size = 1; size < sizeof(FILE_NAME); size++) {
		query.vma_name_size = size;
		EXPECT_EQ(-ENAMETOOLONG, procmap_query(self->fd, &query));
	}
}

TEST_F(process, build_id_longer_than_its_buffer_is_enametoolong)
{
	struct procmap_query query = ask_all(start_of(FILE_R));
	uint32_t size;

	for (size = 1; size < sizeof(build_id); size++) {
		query.build_id_size = size;
		EXPECT_EQ(-ENAMETOOLONG, procmap_query(self->fd, &query));
	}
}

TEST_F(process, struct_that_cannot_be_read_is_efault)
{
	struct procmap_query *query;

	EXPECT_EQ(-EFAULT, procmap_query(self->fd, NULL));
	query = map_to_page_end(0, PROT_READ | PROT_WRITE);
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, query));
}

TEST_F(process, struct_that_cannot_be_read_to_its_end_is_efault)
{
	const struct procmap_query query = ask_fields(start_of(FILE_R), 0);
	uint8_t *end = map_to_page_end(0, PROT_READ | PROT_WRITE);
	size_t fits;

	for (fits = 1; fits < sizeof(query); fits++) {
		memcpy(end - fits, &query, fits);
		EXPECT_EQ(-EFAULT, procmap_query(self->fd,
						 (void *)(end - fits)));
	}
}

TEST_F(process, struct_that_cannot_be_written_is_efault)
{
	struct procmap_query *query;

	query = map_to_page_end(sizeof(*query), PROT_READ | PROT_WRITE);
	*query = ask_fields(start_of(FILE_R), 0);
	ASSERT_EQ(0, mprotect((uint8_t *)(query + 1) - page_size(),
			      page_size(), PROT_READ));
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, query));
}

TEST_F(process, name_buffer_that_cannot_be_written_is_efault)
{
	struct procmap_query query = ask_all(start_of(FILE_R));

	query.vma_name_addr = (uintptr_t)map_to_page_end(256, PROT_READ);
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.vma_name_addr = 1;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.vma_name_addr = ~0ull;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
}

TEST_F(process, build_id_buffer_that_cannot_be_written_is_efault)
{
	struct procmap_query query = ask_all(start_of(FILE_R));

	query.build_id_addr = (uintptr_t)map_to_page_end(20, PROT_READ);
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.build_id_addr = 1;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.build_id_addr = ~0ull;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
}

/* The size and the direction are part of the command's number. */
TEST_F(process, another_command_is_enotty)
{
	static const unsigned int commands[] = {
		_IO('f', 17),
		_IOR('f', 17, struct procmap_query),
		_IOW('f', 17, struct procmap_query),
		_IOWR('f', 17, char),
		_IOWR('f', 16, struct procmap_query),
		_IOWR('f', 18, struct procmap_query),
		_IOWR('g', 17, struct procmap_query),
	};
	struct procmap_query query = ask_fields(start_of(FILE_R), 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-1, ioctl(self->fd, commands[i], &query));
		EXPECT_EQ(ENOTTY, errno);
	}
}

TEST_F(process, query_of_another_file_is_enotty)
{
	struct procmap_query query = ask_fields(start_of(FILE_R), 0);

	expect_enotty(_metadata, &self->target, PROCMAP_QUERY, &query);
}

TEST(exited_process_is_esrch)
{
	const int fd = open_maps_of_exited();
	struct procmap_query query;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-ESRCH, query_fields(fd, start_of(FILE_R), 0, &query));
	EXPECT_EQ(-ESRCH, query_fields(fd, 0, NEXT, &query));
}

/* The order of the errors. */

static struct procmap_query *query_in(struct attempt *attempt)
{
	return (struct procmap_query *)&attempt->arg;
}

static void unknown_flag(struct attempt *attempt)
{
	query_in(attempt)->query_flags |= 1 << 6;
}

static void set_name(struct attempt *attempt, uint64_t addr, uint32_t size)
{
	query_in(attempt)->vma_name_addr = addr;
	query_in(attempt)->vma_name_size = size;
}

static void set_build_id(struct attempt *attempt, uint64_t addr, uint32_t size)
{
	query_in(attempt)->build_id_addr = addr;
	query_in(attempt)->build_id_size = size;
}

static void name_without_size(struct attempt *attempt)
{
	set_name(attempt, (uintptr_t)buffers.name, 0);
}

static void name_size_without_name(struct attempt *attempt)
{
	set_name(attempt, 0, sizeof(buffers.name));
}

static void build_id_without_size(struct attempt *attempt)
{
	set_build_id(attempt, (uintptr_t)buffers.build_id, 0);
}

static void build_id_size_without_build_id(struct attempt *attempt)
{
	set_build_id(attempt, 0, sizeof(buffers.build_id));
}

static void address_in_a_gap(struct attempt *attempt)
{
	query_in(attempt)->query_addr = end_of(FILE_R);
}

static void name_too_long(struct attempt *attempt)
{
	query_in(attempt)->vma_name_size = sizeof(FILE_NAME) - 1;
}

static void build_id_too_long(struct attempt *attempt)
{
	query_in(attempt)->build_id_size = sizeof(build_id) - 1;
}

static void bad_name_address(struct attempt *attempt)
{
	query_in(attempt)->vma_name_addr = 1;
}

static void bad_build_id_address(struct attempt *attempt)
{
	query_in(attempt)->build_id_addr = 1;
}

/* EINTR and ENOMEM cannot be made here. */
static const struct fault faults[] = {
	FAULT(another_command, -ENOTTY),
	FAULT(no_struct, -EFAULT),
	FAULT(size_over_a_page, -E2BIG),
	FAULT(size_too_small, -EINVAL),
	FAULT(half_a_struct, -EFAULT),
	FAULT(byte_past_the_struct, -E2BIG),
	FAULT(unknown_flag, -EINVAL),
	FAULT(name_without_size, -EINVAL),
	FAULT(name_size_without_name, -EINVAL),
	FAULT(build_id_without_size, -EINVAL),
	FAULT(build_id_size_without_build_id, -EINVAL),
	FAULT(exited_process, -ESRCH),
	FAULT(address_in_a_gap, -ENOENT),
	FAULT(name_too_long, -ENAMETOOLONG),
	FAULT(build_id_too_long, -ENAMETOOLONG),
	FAULT(bad_name_address, -EFAULT),
	FAULT(bad_build_id_address, -EFAULT),
	FAULT(read_only_struct, -EFAULT),
};

TEST_F(process, earlier_of_two_faults_is_reported)
{
	const struct procmap_query query = ask_all(start_of(FILE_R));
	const struct attempt good = make_attempt(self->fd, PROCMAP_QUERY, 24,
						 &query);

	check_order(_metadata, &good, faults, ARRAY_SIZE(faults));
}

TEST_HARNESS_MAIN
