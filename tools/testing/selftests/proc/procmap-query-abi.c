// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_QUERY: the layout of its structure, and each of its
 * fields, filters and errors.
 */
#include <assert.h>
#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "procmap-query.h"

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
#define R	PROCMAP_QUERY_VMA_READABLE
#define W	PROCMAP_QUERY_VMA_WRITABLE
#define X	PROCMAP_QUERY_VMA_EXECUTABLE
#define S	PROCMAP_QUERY_VMA_SHARED
#define F	PROCMAP_QUERY_FILE_BACKED_VMA

/* Where the kernel places nothing by itself, in 32 bits as in 64. */
#define SCENE_START	0x20000000

/* Each mapping has so many pages, and as many that are free follow. */
#define MAPPING_PAGES	2

/* An offset of more than 32 bits. */
#define FAR_OFFSET	0x10fedcba000

#define FILE_NAME	"/memfd:procmap-query (deleted)"

enum mappings {
	PRIVATE_NONE,
	PRIVATE_R,
	PRIVATE_RW,
	PRIVATE_RX,
	SHARED_RW,
	FILE_NONE,
	FILE_R,
	FILE_RW,
	FILE_RX,
	FILE_SHARED_RW,
	FILE_SHARED_RX,
	READONLY_FILE_SHARED_R,
	FILE_FAR,
	NR_MAPPINGS,
};

enum backing { NO_FILE, FILE_READ_WRITE, FILE_READ_ONLY };

/* The scene: what is mapped, and with what flags it must answer. */
static const struct {
	int prot;
	int flags;
	enum backing backing;
	uint64_t offset;
	uint64_t answer;
} scene[NR_MAPPINGS] = {
	[PRIVATE_NONE] = { PROT_NONE, MAP_PRIVATE, NO_FILE, 0, 0 },
	[PRIVATE_R] = { PROT_READ, MAP_PRIVATE, NO_FILE, 0, R },
	[PRIVATE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, NO_FILE, 0,
			 R | W },
	[PRIVATE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, NO_FILE, 0,
			 R | X },
	/* The kernel puts a file behind it. */
	[SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, NO_FILE, 0,
			R | W | S | F },
	[FILE_NONE] = { PROT_NONE, MAP_PRIVATE, FILE_READ_WRITE, 0, F },
	[FILE_R] = { PROT_READ, MAP_PRIVATE, FILE_READ_WRITE, 0, R | F },
	[FILE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, FILE_READ_WRITE,
		      0x1000, R | W | F },
	[FILE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, FILE_READ_WRITE,
		      0x2000, R | X | F },
	[FILE_SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED,
			     FILE_READ_WRITE, 0x3000, R | W | S | F },
	[FILE_SHARED_RX] = { PROT_READ | PROT_EXEC, MAP_SHARED,
			     FILE_READ_WRITE, 0, R | X | S | F },
	/* The kernel lets VM_SHARED go here, yet the text shows an s. */
	[READONLY_FILE_SHARED_R] = { PROT_READ, MAP_SHARED, FILE_READ_ONLY, 0,
				     R | S | F },
	[FILE_FAR] = { PROT_READ, MAP_PRIVATE, FILE_READ_WRITE, FAR_OFFSET,
		       R | F },
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

static bool map_page(uintptr_t addr)
{
	return mmap((void *)addr, page_size(), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		    0) == (void *)addr;
}

/* The last page that a process can have. */
static uintptr_t last_page;

/* Find it by bisection, before the tests start. */
static void __attribute__((constructor)) find_last_page(void)
{
	uintptr_t good = SCENE_START / page_size();
	uintptr_t bad = UINTPTR_MAX / page_size();

	while (bad - good > 1) {
		const uintptr_t middle = good + (bad - good) / 2;
		const bool mapped = map_page(middle * page_size());

		if (mapped)
			munmap((void *)(middle * page_size()), page_size());
		if (mapped || errno == EEXIST)
			good = middle;
		else
			bad = middle;
	}
	last_page = good * page_size();
}

/* Make and open the file of the scene: its fd for each kind of backing. */
static bool open_files(int fds[3])
{
	char path[64];

	fds[NO_FILE] = -1;
	fds[FILE_READ_WRITE] = memfd_create("procmap-query", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[FILE_READ_WRITE]);
	fds[FILE_READ_ONLY] = open(path, O_RDONLY | O_CLOEXEC);
	return fds[FILE_READ_WRITE] >= 0 && fds[FILE_READ_ONLY] >= 0 &&
	       write_elf(fds[FILE_READ_WRITE], build_id);
}

static bool map_scene(void)
{
	unsigned int i;
	int fds[3];

	if (!open_files(fds) || (!map_page(last_page) && errno != EEXIST))
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
	uint8_t *pages;

	pages = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED ||
	    mprotect(pages + page_size(), page_size(), PROT_NONE) ||
	    mprotect(pages, page_size(), prot))
		abort();
	return pages + page_size() - size;
}

/* What a query that asks for everything writes to. */
struct buffers {
	char name[256];
	uint8_t build_id[20];
};

static struct procmap_query ask_all(uint64_t addr, struct buffers *buffers)
{
	return (struct procmap_query) {
		.size = sizeof(struct procmap_query),
		.query_addr = addr,
		.vma_name_addr = (uintptr_t)buffers->name,
		.vma_name_size = sizeof(buffers->name),
		.build_id_addr = (uintptr_t)buffers->build_id,
		.build_id_size = sizeof(buffers->build_id),
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

/* A process with known mappings, and one that reads them. */
FIXTURE(process)
{
	struct child target;
	int fd;			/* the target's maps file */
	struct maps maps;	/* what its text says */
	struct buffers buffers;
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
	ASSERT_EQ(0, read_maps(self->fd, &self->maps));
}

FIXTURE_TEARDOWN(process)
{
	stop_child(&self->target);
	free_maps(&self->maps);
	close(self->fd);
}

/* The scene itself: without it, the tests below would prove nothing. */

TEST_F(process, text_shows_the_scene)
{
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *line = line_at(&self->maps,
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

TEST_F(process, range_is_that_of_the_text)
{
	struct procmap_query query;
	size_t i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *line = line_at(&self->maps,
						       start_of(i));

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
		EXPECT_EQ(line_at(&self->maps, start_of(i))->flags,
			  query.vma_flags);
		EXPECT_EQ(scene[i].answer & ~(uint64_t)F, query.vma_flags);
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
		EXPECT_EQ(line_at(&self->maps, start_of(i))->offset,
			  query.vma_offset);
		EXPECT_EQ(scene[i].offset, query.vma_offset);
	}
}

TEST_F(process, offset_is_that_of_the_start_wherever_one_asks)
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
		const struct maps_line *line = line_at(&self->maps,
						       start_of(i));

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
		const struct maps_line *line = line_at(&self->maps,
						       start_of(i));

		self->buffers.name[0] = '\0';
		ASSERT_EQ(0, query_name(self->fd, start_of(i), 0, &query,
					self->buffers.name,
					sizeof(self->buffers.name)));
		EXPECT_STREQ(line->name, self->buffers.name);
		EXPECT_EQ(line->name[0] ? strlen(line->name) + 1 : 0,
			  query.vma_name_size);
	}
}

TEST_F(process, build_id_is_that_of_the_file)
{
	struct procmap_query query;

	ASSERT_EQ(0, query_build_id(self->fd, start_of(FILE_RX), &query,
				    self->buffers.build_id,
				    sizeof(self->buffers.build_id)));
	EXPECT_EQ(sizeof(build_id), query.build_id_size);
	EXPECT_EQ(0, memcmp(build_id, self->buffers.build_id,
			    sizeof(build_id)));
}

TEST_F(process, everything_can_be_asked_at_once)
{
	struct procmap_query query = ask_all(start_of(FILE_FAR),
					     &self->buffers);

	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_TRUE(same_fields(line_at(&self->maps, start_of(FILE_FAR)),
				&query));
	EXPECT_STREQ(FILE_NAME, self->buffers.name);
	EXPECT_EQ(sizeof(FILE_NAME), query.vma_name_size);
	EXPECT_EQ(sizeof(build_id), query.build_id_size);
	EXPECT_EQ(0, memcmp(build_id, self->buffers.build_id,
			    sizeof(build_id)));
}

TEST_F(process, fields_of_a_file_are_zero_without_one)
{
	struct procmap_query query = ask_all(start_of(PRIVATE_RW),
					     &self->buffers);

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
	struct procmap_query query = ask_all(start_of(PRIVATE_RW),
					     &self->buffers);

	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(0u, query.vma_name_size);
	EXPECT_EQ(0u, query.build_id_size);
}

TEST_F(process, build_id_size_is_zero_for_a_file_that_is_no_elf)
{
	struct procmap_query query = ask_all(start_of(SHARED_RW),
					     &self->buffers);

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
	struct procmap_query query = ask_all(start_of(FILE_RW) + 5,
					     &self->buffers);

	query.query_flags = NEXT | F | W;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(sizeof(query), query.size);
	EXPECT_EQ((uint64_t)(NEXT | F | W), query.query_flags);
	EXPECT_EQ(start_of(FILE_RW) + 5, query.query_addr);
	EXPECT_EQ((uintptr_t)self->buffers.name, query.vma_name_addr);
	EXPECT_EQ((uintptr_t)self->buffers.build_id, query.build_id_addr);
}

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

/* The filters, and what is next. */

TEST_F(process, each_filter_lets_through_what_has_it)
{
	static const uint64_t filters[] = { R, W, X, S, F };
	struct procmap_query query;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(filters); i++) {
		for (j = 0; j < NR_MAPPINGS; j++) {
			const int err = scene[j].answer & filters[i] ?
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
			const int err = flags & ~scene[i].answer ?
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
				if (!(flags & ~scene[next].answer))
					break;
			/* What lies beyond the scene is not known here. */
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

/* That is where a program of 32 bits would show it. */
TEST_F(process, address_is_not_cut_to_32_bits)
{
	const uint64_t addr = start_of(FILE_R) + (1ull << 32);
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, addr, 0, &query));
}

/* The size of the structure. */

TEST_F(process, every_size_writes_the_fields_that_fit_and_no_more)
{
	const size_t max = page_size();
	struct procmap_query full;
	uint8_t *bytes, *zeros, *guard;
	size_t size;

	bytes = calloc(4, max);
	ASSERT_NE(NULL, bytes);
	zeros = bytes + 2 * max;
	guard = bytes + 3 * max;
	memset(guard, 0xa5, max);
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

TEST_F(process, struct_without_build_id_field_can_have_a_name)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.size = offsetof(struct procmap_query, build_id_addr);
	query.build_id_size = 0;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_STREQ(FILE_NAME, self->buffers.name);
}

TEST_F(process, longer_struct_can_have_name_and_build_id)
{
	struct {
		struct procmap_query query;
		uint8_t zero[64];
	} longer = {
		.query = ask_all(start_of(FILE_R), &self->buffers),
	};

	longer.query.size = sizeof(longer);
	ASSERT_EQ(0, procmap_query(self->fd, &longer.query));
	EXPECT_STREQ(FILE_NAME, self->buffers.name);
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
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	memset(self->buffers.name, 0xa5, sizeof(self->buffers.name));
	query.vma_name_size = sizeof(FILE_NAME);
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(sizeof(FILE_NAME), query.vma_name_size);
	EXPECT_STREQ(FILE_NAME, self->buffers.name);
	EXPECT_EQ((char)0xa5, self->buffers.name[sizeof(FILE_NAME)]);
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

TEST_F(process, only_the_bytes_of_the_name_need_to_be_writable)
{
	char *name = map_to_page_end(sizeof(FILE_NAME),
				     PROT_READ | PROT_WRITE);
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

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
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.build_id_addr = (uintptr_t)id;
	query.build_id_size = 0xffffffff;
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_EQ(sizeof(build_id), query.build_id_size);
	EXPECT_EQ(0, memcmp(build_id, id, sizeof(build_id)));
}

TEST_F(process, buffers_are_not_looked_at_when_there_is_nothing_to_write)
{
	struct procmap_query query = ask_all(start_of(PRIVATE_RW),
					     &self->buffers);

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

	ASSERT_NE(NULL, bytes);
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

	ASSERT_NE(NULL, bytes);
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

TEST_F(process, name_address_without_size_is_einval)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(process, name_size_without_address_is_einval)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_addr = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(process, name_size_without_field_for_address_is_einval)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.size = offsetof(struct procmap_query, vma_name_addr);
	query.build_id_size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(process, build_id_address_without_size_is_einval)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.build_id_size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(process, build_id_size_without_address_is_einval)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.build_id_addr = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(process, address_that_nothing_covers_is_enoent)
{
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, end_of(FILE_R) + 1, 0,
					&query));
}

TEST_F(process, name_longer_than_its_buffer_is_enametoolong)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);
	uint32_t size;

	for (size = 1; size < sizeof(FILE_NAME); size++) {
		query.vma_name_size = size;
		EXPECT_EQ(-ENAMETOOLONG, procmap_query(self->fd, &query));
	}
}

TEST_F(process, build_id_longer_than_its_buffer_is_enametoolong)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);
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
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_addr = (uintptr_t)map_to_page_end(256, PROT_READ);
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.vma_name_addr = 1;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.vma_name_addr = ~0ull;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
}

TEST_F(process, build_id_buffer_that_cannot_be_written_is_efault)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.build_id_addr = (uintptr_t)map_to_page_end(20, PROT_READ);
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.build_id_addr = 1;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	query.build_id_addr = ~0ull;
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
}

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
	static const char *const names[] = { "smaps", "smaps_rollup", "stat" };
	struct procmap_query query = ask_fields(start_of(FILE_R), 0);
	char path[64];
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s",
			 variant->forked ? self->target.pid : getpid(),
			 names[i]);
		fd = open(path, O_RDONLY);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-ENOTTY, procmap_query(fd, &query));
		close(fd);
	}
}

/* Of two faults, the one that is checked first is told. */

TEST_F(process, size_is_checked_before_the_rest_is_read)
{
	uint64_t *size = map_to_page_end(sizeof(*size),
					 PROT_READ | PROT_WRITE);

	*size = page_size() + 1;
	EXPECT_EQ(-E2BIG, procmap_query(self->fd, (void *)size));
	*size = 23;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, (void *)size));
}

TEST_F(process, size_is_checked_before_flags)
{
	struct procmap_query query = ask_fields(start_of(FILE_R), 1 << 6);

	query.size = page_size() + 1;
	EXPECT_EQ(-E2BIG, procmap_query(self->fd, &query));
}

TEST_F(process, bytes_past_the_struct_are_checked_before_flags)
{
	struct procmap_query queries[2] = {
		ask_fields(start_of(FILE_R), 1 << 6),
		{ .size = 1 },
	};

	queries[0].size = sizeof(queries);
	EXPECT_EQ(-E2BIG, procmap_query(self->fd, &queries[0]));
	queries[1].size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &queries[0]));
}

TEST_F(process, bytes_past_the_struct_are_checked_before_buffers)
{
	struct procmap_query queries[2] = {
		ask_all(start_of(FILE_R), &self->buffers),
		{ .size = 1 },
	};

	queries[0].size = sizeof(queries);
	queries[0].vma_name_size = 0;
	EXPECT_EQ(-E2BIG, procmap_query(self->fd, &queries[0]));
	queries[1].size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &queries[0]));
}

TEST_F(process, flags_are_checked_before_the_mapping)
{
	struct procmap_query query;

	EXPECT_EQ(-EINVAL, query_fields(self->fd, end_of(FILE_R), 1 << 6,
					&query));
}

TEST_F(process, buffers_are_checked_before_the_mapping)
{
	struct procmap_query query = ask_all(end_of(FILE_R), &self->buffers);

	query.build_id_size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(process, mapping_is_checked_before_name_and_build_id)
{
	struct procmap_query query = ask_all(end_of(FILE_R), &self->buffers);

	query.vma_name_size = 1;
	query.build_id_size = 1;
	EXPECT_EQ(-ENOENT, procmap_query(self->fd, &query));
}

TEST_F(process, mapping_is_checked_before_buffers_are_written)
{
	struct procmap_query query = ask_all(end_of(FILE_R), &self->buffers);

	query.vma_name_addr = 1;
	query.build_id_addr = 1;
	EXPECT_EQ(-ENOENT, procmap_query(self->fd, &query));
}

TEST_F(process, name_is_checked_before_buffers_are_written)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_addr = 1;
	query.vma_name_size = 1;
	query.build_id_addr = 1;
	EXPECT_EQ(-ENAMETOOLONG, procmap_query(self->fd, &query));
}

TEST_F(process, build_id_is_checked_before_the_name_is_written)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_addr = 1;
	query.build_id_size = 1;
	EXPECT_EQ(-ENAMETOOLONG, procmap_query(self->fd, &query));
}

/* A process that has exited after its file was opened. */
FIXTURE(exited)
{
	int fd;
	struct buffers buffers;
};

FIXTURE_SETUP(exited)
{
	struct child target;

	ASSERT_TRUE(start_child(&target, be_target, NULL));
	self->fd = recv_fd(target.control);
	ASSERT_LE(0, self->fd);
	stop_child(&target);
}

FIXTURE_TEARDOWN(exited)
{
	close(self->fd);
}

TEST_F(exited, process_is_esrch)
{
	struct procmap_query query;

	EXPECT_EQ(-ESRCH, query_fields(self->fd, start_of(FILE_R), 0, &query));
	EXPECT_EQ(-ESRCH, query_fields(self->fd, 0, NEXT, &query));
}

TEST_F(exited, size_is_checked_before_the_process)
{
	struct procmap_query query = ask_fields(start_of(FILE_R), 0);

	query.size = page_size() + 1;
	EXPECT_EQ(-E2BIG, procmap_query(self->fd, &query));
	query.size = 23;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(exited, bytes_past_the_struct_are_checked_before_the_process)
{
	struct procmap_query queries[2] = {
		ask_fields(start_of(FILE_R), 0),
		{ .size = 1 },
	};

	queries[0].size = sizeof(queries);
	EXPECT_EQ(-E2BIG, procmap_query(self->fd, &queries[0]));
}

TEST_F(exited, flags_are_checked_before_the_process)
{
	struct procmap_query query;

	EXPECT_EQ(-EINVAL, query_fields(self->fd, start_of(FILE_R), 1 << 6,
					&query));
}

TEST_F(exited, buffers_are_checked_before_the_process)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_addr = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F(exited, struct_is_read_before_the_process_is_checked)
{
	EXPECT_EQ(-EFAULT, procmap_query(self->fd, NULL));
}

TEST_F(exited, process_is_checked_before_the_mapping)
{
	struct procmap_query query;

	EXPECT_EQ(-ESRCH, query_fields(self->fd, end_of(FILE_R), 0, &query));
}

TEST_F(exited, process_is_checked_before_name_and_build_id)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_size = 1;
	query.build_id_size = 1;
	EXPECT_EQ(-ESRCH, procmap_query(self->fd, &query));
}

TEST_F(exited, process_is_checked_before_buffers_are_written)
{
	struct procmap_query query = ask_all(start_of(FILE_R), &self->buffers);

	query.vma_name_addr = 1;
	query.build_id_addr = 1;
	EXPECT_EQ(-ESRCH, procmap_query(self->fd, &query));
}

TEST_HARNESS_MAIN
