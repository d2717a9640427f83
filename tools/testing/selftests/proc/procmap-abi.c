// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_QUERY and PROCMAP_SCAN: the layout of their structures, and
 * each of their fields, filters and errors.
 */
#include <assert.h>
#include <sys/mman.h>

#include "procmap-query.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

#define ASSERT_OFFSET(type, field, bytes) \
	static_assert(offsetof(struct type, field) == (bytes), "")

#define ASSERT_SIZE(type, field, bytes) \
	static_assert(sizeof((*(struct type *)0).field) == (bytes), "")

ASSERT_OFFSET(procmap_query, size, 0);
ASSERT_OFFSET(procmap_query, query_flags, 8);
ASSERT_OFFSET(procmap_query, query_addr, 16);
ASSERT_OFFSET(procmap_query, vma_start, 24);
ASSERT_OFFSET(procmap_query, vma_end, 32);
ASSERT_OFFSET(procmap_query, vma_flags, 40);
ASSERT_OFFSET(procmap_query, vma_page_size, 48);
ASSERT_OFFSET(procmap_query, vma_offset, 56);
ASSERT_OFFSET(procmap_query, inode, 64);
ASSERT_OFFSET(procmap_query, dev_major, 72);
ASSERT_OFFSET(procmap_query, dev_minor, 76);
ASSERT_OFFSET(procmap_query, vma_name_size, 80);
ASSERT_OFFSET(procmap_query, build_id_size, 84);
ASSERT_OFFSET(procmap_query, vma_name_addr, 88);
ASSERT_OFFSET(procmap_query, build_id_addr, 96);

ASSERT_SIZE(procmap_query, size, 8);
ASSERT_SIZE(procmap_query, query_flags, 8);
ASSERT_SIZE(procmap_query, query_addr, 8);
ASSERT_SIZE(procmap_query, vma_start, 8);
ASSERT_SIZE(procmap_query, vma_end, 8);
ASSERT_SIZE(procmap_query, vma_flags, 8);
ASSERT_SIZE(procmap_query, vma_page_size, 8);
ASSERT_SIZE(procmap_query, vma_offset, 8);
ASSERT_SIZE(procmap_query, inode, 8);
ASSERT_SIZE(procmap_query, dev_major, 4);
ASSERT_SIZE(procmap_query, dev_minor, 4);
ASSERT_SIZE(procmap_query, vma_name_size, 4);
ASSERT_SIZE(procmap_query, build_id_size, 4);
ASSERT_SIZE(procmap_query, vma_name_addr, 8);
ASSERT_SIZE(procmap_query, build_id_addr, 8);
static_assert(sizeof(struct procmap_query) == 104, "");

static_assert(PROCMAP_QUERY == 0xc0686611, "");
static_assert(PROCMAP_QUERY_VMA_READABLE == 0x01, "");
static_assert(PROCMAP_QUERY_VMA_WRITABLE == 0x02, "");
static_assert(PROCMAP_QUERY_VMA_EXECUTABLE == 0x04, "");
static_assert(PROCMAP_QUERY_VMA_SHARED == 0x08, "");
static_assert(PROCMAP_QUERY_COVERING_OR_NEXT_VMA == 0x10, "");
static_assert(PROCMAP_QUERY_FILE_BACKED_VMA == 0x20, "");

#ifdef HAVE_PROCMAP_SCAN
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
static_assert(PROCMAP_VMA_BUILD_ID_NOT_READ == 0x40, "");
static_assert(PROCMAP_SCAN_NAMES == 0x01, "");
static_assert(PROCMAP_SCAN_BUILD_IDS == 0x02, "");
static_assert(PROCMAP_SCAN_CHANGED == 0x01, "");
#endif /* HAVE_PROCMAP_SCAN */

/*
 * The scene: known mappings of the process that looks at them.
 */

#define R	PROCMAP_QUERY_VMA_READABLE
#define W	PROCMAP_QUERY_VMA_WRITABLE
#define X	PROCMAP_QUERY_VMA_EXECUTABLE
#define S	PROCMAP_QUERY_VMA_SHARED
#define F	PROCMAP_QUERY_FILE_BACKED_VMA
#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA

/* The kernel places nothing here by itself, neither in 32 bits nor in 64. */
#define SCENE_START	0x20000000

/* Each mapping has this many pages, and a gap of as many pages follows. */
#define MAPPING_PAGES	2

#define FILE_NAME	"/memfd:procmap (deleted)"

/*
 * Tests of the scan rely on this order: names begin at SHARED_RW, build IDs at
 * FILE_NONE, and OTHER_FILE follows all but one of the mappings of the ELF file.
 */
enum mapping {
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
	FILE_SHARED_RX,
	READONLY_FILE_SHARED_R,
	OTHER_FILE,
	NR_MAPPINGS,
};

enum backing { NO_FILE, ELF_FILE, READONLY_ELF_FILE, EMPTY_FILE, NR_BACKINGS };

/* The mappings, and the filters that each of them passes. */
static const struct {
	int prot;
	int flags;
	enum backing backing;
	uint64_t offset;
	uint64_t passes;
} scene[NR_MAPPINGS] = {
	[PRIVATE_NONE] = { PROT_NONE, MAP_PRIVATE, NO_FILE, 0, 0 },
	[PRIVATE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, NO_FILE, 0,
			 R | W },
	[PRIVATE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, NO_FILE, 0,
			 R | X },
	/* The kernel maps a file of its own, which is no ELF file. */
	[SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, NO_FILE, 0,
			R | W | S | F },
	[FILE_NONE] = { PROT_NONE, MAP_PRIVATE, ELF_FILE, 0, F },
	[FILE_R] = { PROT_READ, MAP_PRIVATE, ELF_FILE, 0, R | F },
	[FILE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, ELF_FILE, 0x10000,
		      R | W | F },
	[PRIVATE_R] = { PROT_READ, MAP_PRIVATE, NO_FILE, 0, R },
	[FILE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, ELF_FILE, 0x20000,
		      R | X | F },
	[FILE_SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, ELF_FILE,
			     0x30000, R | W | S | F },
	[FILE_SHARED_RX] = { PROT_READ | PROT_EXEC, MAP_SHARED, ELF_FILE, 0,
			     R | X | S | F },
	/* The kernel clears VM_SHARED here, but the text shows an s. */
	[READONLY_FILE_SHARED_R] = { PROT_READ, MAP_SHARED, READONLY_ELF_FILE,
				     0, R | S | F },
	[OTHER_FILE] = { PROT_READ, MAP_PRIVATE, EMPTY_FILE, 0, R | F },
};

static const uint8_t build_id[20] = "\x01\x23\x45\x67\x89 a build ID";

static bool is_elf(enum mapping mapping)
{
	return scene[mapping].backing == ELF_FILE ||
	       scene[mapping].backing == READONLY_ELF_FILE;
}

static uint64_t start_of(enum mapping mapping)
{
	return SCENE_START + (uint64_t)mapping * 2 * MAPPING_PAGES *
			     page_size();
}

static uint64_t end_of(enum mapping mapping)
{
	return start_of(mapping) + MAPPING_PAGES * page_size();
}

/* Make and open the files of the scene. */
static bool open_files(int fds[NR_BACKINGS])
{
	char path[64];

	fds[NO_FILE] = -1;
	fds[ELF_FILE] = memfd_create("procmap", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[ELF_FILE]);
	fds[READONLY_ELF_FILE] = open(path, O_RDONLY | O_CLOEXEC);
	fds[EMPTY_FILE] = memfd_create("empty", MFD_CLOEXEC);
	return fds[ELF_FILE] >= 0 && fds[READONLY_ELF_FILE] >= 0 &&
	       fds[EMPTY_FILE] >= 0 && write_elf(fds[ELF_FILE], build_id);
}

static bool map_scene(void)
{
	int fds[NR_BACKINGS];
	unsigned int i;

	if (!open_files(fds))
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
	/* Where no page has been touched, one would have to be read for a build ID. */
	memset((void *)(uintptr_t)start_of(SHARED_RW), 0, 1);
	return true;
}

static int send_maps(int control, void *arg)
{
	const int fd = open_maps(0);

	(void)arg;
	return fd >= 0 && send_fd(control, fd) ? 0 : 1;
}

/* Open the maps file of a process that exits then. Returns the fd, or -1. */
static int open_maps_of_exited(void)
{
	struct child child;
	int fd;

	if (!start_child(&child, send_maps, NULL))
		return -1;
	fd = recv_fd(child.control);
	/* The status is that of send_maps(): it has not executed. */
	return end_of_child(&child) ? -1 : fd;
}

/*
 * A buffer of @size bytes that ends where a page without access begins. The rest
 * of its first page is accessible, too.
 */
static void *map_to_page_end(size_t size, int prot)
{
	const size_t bytes = ((size ?: 1) + page_size() - 1) & -page_size();
	uint8_t *const pages = mmap(NULL, bytes + page_size(),
				    PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED ||
	    mprotect(pages + bytes, page_size(), PROT_NONE) ||
	    mprotect(pages, bytes, prot))
		abort();
	return pages + bytes - size;
}

static bool is_filled(const void *bytes, size_t size, uint8_t with)
{
	const uint8_t *byte = bytes;

	while (size && *byte == with) {
		byte++;
		size--;
	}
	return !size;
}

/*
 * One way to call both ioctls.
 */

/* Wanted besides the fields, for both ioctls: the bits of PROCMAP_SCAN. */
#define NAME		0x01
#define BUILD_ID	0x02

/* The content of buffers before a call. */
#define FILL		0xa5

#define DATA_SIZE	4096

/* Each test is a process of its own, and so are these. */
static struct {
	struct child child;	/* no pid: the target is the test itself */
	int fd;			/* the target's maps file */
	struct maps text;	/* its text */
} target;

static struct {
	char name[256];
	uint8_t build_id[20];
} buffers;

/* Both structures begin with their size, and their filters. */
union argument {
	struct {
		uint64_t size;
		uint64_t filter;
	};
	struct procmap_query query;
#ifdef HAVE_PROCMAP_SCAN
	struct procmap_scan_arg scan;
#endif
	uint8_t bytes[256];
};

/**
 * struct buffer - a buffer of a call, by its fields in the structure
 * @addr: offset of its address.
 * @size: offset of its size, of 32 bits.
 * @needed: the least size for FILE_R.
 * @unit: bytes that 1 of that is.
 * @limit: the largest size.
 * @is_data: it has the name or the build ID.
 */
struct buffer {
	size_t addr;
	size_t size;
	uint32_t needed;
	uint32_t unit;
	uint32_t limit;
	bool is_data;
};

struct span {
	size_t start;
	size_t end;
};

/**
 * struct abi - an ioctl
 * @command: its number.
 * @size: size of its structure.
 * @size_min: the smallest size that the kernel takes.
 * @filters: the filters that it knows, and the other flags of that field.
 * @found: its return value if it finds one mapping.
 * @outputs: bytes of the structure that are outputs.
 * @buffers: its buffers.
 * @ask: make an argument for the mapping at @addr that passes filters of
 *	PROCMAP_QUERY.
 * @answer: convert such an argument, after the call, to the answer of a query: the
 *	range, the name and the build ID.
 */
struct abi {
	unsigned int command;
	size_t size;
	size_t size_min;
	uint64_t filters;
	int found;
	struct span outputs[2];
	struct buffer buffers[2];
	union argument (*ask)(uint64_t addr, uint64_t filters, uint64_t want);
	struct procmap_query (*answer)(const union argument *arg);
};

static union argument query_argument(uint64_t addr, uint64_t filters, uint64_t want)
{
	union argument arg = {
		.query.size = sizeof(arg.query),
		.query.query_flags = filters,
		.query.query_addr = addr,
	};

	if (want & NAME) {
		arg.query.vma_name_addr = (uintptr_t)buffers.name;
		arg.query.vma_name_size = sizeof(buffers.name);
	}
	if (want & BUILD_ID) {
		arg.query.build_id_addr = (uintptr_t)buffers.build_id;
		arg.query.build_id_size = sizeof(buffers.build_id);
	}
	return arg;
}

static struct procmap_query answer_by_query(const union argument *arg)
{
	return arg->query;
}

static const struct abi query_abi = {
	.command = PROCMAP_QUERY,
	.size = sizeof(struct procmap_query),
	.size_min = 24,
	.filters = FILTERS | NEXT,
	.found = 0,
	.outputs = { { 24, 80 } },
	.buffers = {
		{ 88, 80, sizeof(FILE_NAME), 1, UINT32_MAX, true },
		{ 96, 84, sizeof(build_id), 1, UINT32_MAX, true },
	},
	.ask = query_argument,
	.answer = answer_by_query,
};

#ifdef HAVE_PROCMAP_SCAN
#define FILE_BACKED	PROCMAP_VMA_FILE_BACKED

static struct room room;
static struct truth truth;

static union argument scan_argument(uint64_t addr, uint64_t filters, uint64_t want)
{
	union argument arg = {
		.scan = scan_arg(&room, addr & -(uint64_t)page_size(), addr + 1,
				 want),
	};

	/* R, W, X and S are the same here. */
	arg.scan.filter = filters & (R | W | X | S);
	if (filters & F)
		arg.scan.filter |= FILE_BACKED;
	arg.scan.vec_len = 1;
	return arg;
}

static struct procmap_query answer_by_scan(const union argument *arg)
{
	const struct procmap_scan_arg *const scan = &arg->scan;
	const struct procmap_vma *const vma = record_at(scan, 0);

	return (struct procmap_query) {
		.vma_start = vma->start,
		.vma_end = vma->end,
		.vma_name_size = vma->name_size,
		.build_id_size = vma->build_id_size,
		.vma_name_addr = scan->data + vma->name_offset,
		.build_id_addr = scan->data + vma->build_id_offset,
	};
}

static const struct abi scan_abi = {
	.command = PROCMAP_SCAN,
	.size = sizeof(struct procmap_scan_arg),
	.size_min = 104,
	.filters = SCAN_FILTERS,
	.found = 1,
	.outputs = { { 48, 64 }, { 92, 104 } },
	.buffers = {
		{ 64, 80, 1, sizeof(struct procmap_vma), INT32_MAX, false },
		{ 72, 88, sizeof(FILE_NAME) + sizeof(build_id), 1, UINT32_MAX,
		  true },
	},
	.ask = scan_argument,
	.answer = answer_by_scan,
};

static void make_scan_buffers(struct __test_metadata *const _metadata,
			      uint32_t vec_len, uint32_t data_size)
{
	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&room, vec_len, data_size));
	memset(room.vec, FILL, vec_len * sizeof(*room.vec));
	memset(room.data, FILL, data_size);
}
#endif /* HAVE_PROCMAP_SCAN */

static void make_buffers(struct __test_metadata *const _metadata,
			 const struct abi *abi)
{
	memset(&buffers, FILL, sizeof(buffers));
#ifdef HAVE_PROCMAP_SCAN
	if (abi == &scan_abi)
		make_scan_buffers(_metadata, 64, DATA_SIZE);
#endif
}

/* Returns 0 if one mapping is found, -ENOENT if none is, or another -errno. */
static int call_abi(const struct abi *abi, void *arg)
{
	const int ret = ioctl(target.fd, abi->command, arg);

	if (ret < 0)
		return -errno;
	if (ret == abi->found)
		return 0;
	return ret ? -EBADMSG : -ENOENT;
}

/* Returns what call_abi() does. */
static int find_by_abi(const struct abi *abi, uint64_t addr, uint64_t filters,
		       uint64_t want, struct procmap_query *answer)
{
	union argument arg = abi->ask(addr, filters, want);
	const int err = call_abi(abi, &arg);

	if (!err)
		*answer = abi->answer(&arg);
	return err;
}

/* Return the start of the mapping found by address and filters, or -errno. */
static int64_t find_start(const struct abi *abi, uint64_t addr, uint64_t filters)
{
	struct procmap_query answer;
	const int err = find_by_abi(abi, addr, filters, 0, &answer);

	return err ?: (int64_t)answer.vma_start;
}

static const char *name_of_answer(const struct procmap_query *answer)
{
	return (const char *)(uintptr_t)answer->vma_name_addr;
}

static bool has_build_id(const struct procmap_query *answer)
{
	return answer->build_id_size == sizeof(build_id) &&
	       !memcmp((void *)(uintptr_t)answer->build_id_addr, build_id,
		       sizeof(build_id));
}

static const struct maps_line *text_line_of(enum mapping mapping)
{
	return line_at(&target.text, start_of(mapping));
}

static void set_scene(struct __test_metadata *const _metadata,
		      const struct abi *abi)
{
	make_buffers(_metadata, abi);
	ASSERT_TRUE(map_scene());
	target.fd = open_maps(0);
	ASSERT_LE(0, target.fd);
	ASSERT_EQ(0, read_maps(target.fd, &target.text));
}

static void leave_scene(void)
{
	free_maps(&target.text);
	close(target.fd);
}

/*
 * The rules that both ioctls have.
 */

FIXTURE(process)
{
};

FIXTURE_VARIANT(process)
{
	const struct abi *abi;
};

FIXTURE_VARIANT_ADD(process, query) { &query_abi };
#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(process, scan) { &scan_abi };
#endif

FIXTURE_SETUP(process)
{
	set_scene(_metadata, variant->abi);
}

FIXTURE_TEARDOWN(process)
{
	leave_scene();
}

/* The other tests hold the ioctls against the text: so it has to be right. */
TEST_F(process, text_shows_the_scene)
{
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *const line = text_line_of(i);

		ASSERT_TRUE(!!line);
		EXPECT_EQ(start_of(i), line->start);
		EXPECT_EQ(end_of(i), line->end);
		EXPECT_EQ(scene[i].passes & ~(uint64_t)F, line->flags);
		EXPECT_EQ(scene[i].offset, line->offset);
		EXPECT_EQ(!(scene[i].passes & F), !line->inode);
		if (is_elf(i))
			EXPECT_STREQ(FILE_NAME, line->name);
	}
}

/* Each field of the answer. */

TEST_F(process, name_and_build_id_are_those_of_the_file_if_wanted)
{
	struct procmap_query answer;
	uint64_t want;
	unsigned int i;

	for (want = 0; want <= (NAME | BUILD_ID); want++) {
		for (i = 0; i < NR_MAPPINGS; i++) {
			const char *const name = want & NAME ? text_line_of(i)->name :
							       "";
			const bool has_id = want & BUILD_ID && is_elf(i);

			ASSERT_EQ(0, find_by_abi(variant->abi, start_of(i), 0, want,
						 &answer));
			ASSERT_EQ(*name ? strlen(name) + 1 : 0,
				  answer.vma_name_size);
			if (*name)
				EXPECT_STREQ(name, name_of_answer(&answer));
			EXPECT_EQ(has_id, has_build_id(&answer));
			EXPECT_EQ(!has_id, !answer.build_id_size);
		}
	}
}

static void fill_outputs(const struct abi *abi, union argument *arg, int byte)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(abi->outputs); i++)
		memset(arg->bytes + abi->outputs[i].start, byte,
		       abi->outputs[i].end - abi->outputs[i].start);
}

/* Of memory, the fields that only a file has are zeros. */
TEST_F(process, what_the_caller_left_in_outputs_does_not_matter)
{
	static const enum mapping mappings[] = { PRIVATE_RW, FILE_RW };
	const struct abi *const abi = variant->abi;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mappings); i++) {
		union argument zeros = abi->ask(start_of(mappings[i]), 0, 0);
		union argument ones = zeros;

		fill_outputs(abi, &ones, 0xff);
		ASSERT_EQ(0, call_abi(abi, &zeros));
		ASSERT_EQ(0, call_abi(abi, &ones));
		EXPECT_EQ(0, memcmp(&zeros, &ones, abi->size));
	}
}

/* A reader may mix read() and the ioctls on one file. */
TEST_F(process, file_position_stays)
{
	char before[100], after[100];

	ASSERT_EQ(sizeof(before), (size_t)pread(target.fd, before,
						sizeof(before), 0));
	ASSERT_EQ(7, lseek(target.fd, 7, SEEK_SET));
	ASSERT_LT(0, find_start(variant->abi, start_of(FILE_RW), 0));
	EXPECT_EQ(7, lseek(target.fd, 0, SEEK_CUR));
	ASSERT_EQ(sizeof(after), (size_t)pread(target.fd, after,
					       sizeof(after), 0));
	EXPECT_EQ(0, memcmp(before, after, sizeof(before)));
}

/* The address, and filters. */

TEST_F(process, all_filters_that_are_given_must_hold)
{
	uint64_t filters;
	unsigned int i;

	for (filters = 0; filters <= FILTERS; filters++) {
		if (filters & ~(uint64_t)FILTERS)
			continue;
		for (i = 0; i < NR_MAPPINGS; i++) {
			const int64_t place = filters & ~scene[i].passes ?
					      -ENOENT : (int64_t)start_of(i);

			ASSERT_EQ(place, find_start(variant->abi, start_of(i),
						    filters)) {
				TH_LOG("mapping %u, filters %#jx", i,
				       (uintmax_t)filters);
			}
		}
	}
}

/* A kernel that cuts the address to 32 bits would find FILE_R. */
TEST_F(process, address_is_not_cut_to_32_bits)
{
	EXPECT_EQ(-ENOENT, find_start(variant->abi,
				      start_of(FILE_R) + (1ull << 32), 0));
}

/* The size of the structure. */

/*
 * The size or the place to try after this one: each multiple of @step in the first 4 KiB,
 * and at the end of a page that is larger.
 */
static size_t next_place(size_t place, size_t step)
{
	const bool each = place < 4096 || place + 64 * step > page_size();

	return place + step * (each ? 1 : 61);
}

/*
 * A caller built against another version of the structure gets the fields it knows; a
 * longer structure has zeros in those that the kernel does not know. A page without
 * access follows: reading or writing more would be EFAULT.
 */
TEST_F_TIMEOUT(process, every_size_has_the_fields_that_fit_and_no_more, 300)
{
	const struct abi *const abi = variant->abi;
	uint8_t *const end = map_to_page_end(0, PROT_READ | PROT_WRITE);
	const union argument asked = abi->ask(start_of(FILE_RW), 0, 0);
	union argument full = asked;
	size_t size;

	ASSERT_EQ(0, call_abi(abi, &full));
	for (size = abi->size_min; size <= page_size(); size = next_place(size, 1)) {
		const size_t fits = size < abi->size ? size : abi->size;

		full.size = size;
		memset(end - size, 0, size);
		memcpy(end - size, &asked, fits);
		memcpy(end - size, &full.size, sizeof(full.size));
		ASSERT_EQ(0, call_abi(abi, end - size)) {
			TH_LOG("size %zu", size);
		}
		ASSERT_EQ(0, memcmp(end - size, &full, fits));
		ASSERT_TRUE(is_filled(end - size + fits, size - fits, 0));
	}
}

/* Map the last page that a process can have. Returns where it ends, or NULL. */
static uint8_t *map_last_page(void)
{
	const size_t size = page_size();
	unsigned int bits, pages;
	uint8_t *page;

	/* It ends at a power of two, or some pages below that. */
	for (bits = 8 * sizeof(size_t) - 1; bits > 29; bits--) {
		for (pages = 1; pages <= 3; pages++) {
			page = (uint8_t *)((size_t)2 << bits) - pages * size;
			if (mmap(page, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				 -1, 0) == page)
				return page + size;
			if (errno == EEXIST)
				return NULL;
		}
	}
	return NULL;
}

/* The kernel's structure would reach into addresses that no process has. */
TEST_F(process, struct_of_the_least_size_may_end_where_user_memory_does)
{
	const size_t size = variant->abi->size_min;
	union argument full = variant->abi->ask(start_of(FILE_RW), 0, 0);
	uint8_t *const end = map_last_page();

	if (!end)
		SKIP(return, "the last page is in use");
	full.size = size;
	memcpy(end - size, &full, size);
	ASSERT_EQ(0, call_abi(variant->abi, &full));
	ASSERT_EQ(0, call_abi(variant->abi, end - size));
	EXPECT_EQ(0, memcmp(end - size, &full, size));
}

/* The buffers. */

static void set_buffer(union argument *arg, const struct buffer *buffer,
		       uint64_t addr, uint32_t size)
{
	memcpy(arg->bytes + buffer->addr, &addr, sizeof(addr));
	memcpy(arg->bytes + buffer->size, &size, sizeof(size));
}

/* The size is a limit: the kernel must not check that all of the buffer is there. */
TEST_F(process, only_the_bytes_that_are_returned_need_room)
{
	const struct abi *const abi = variant->abi;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(abi->buffers); i++) {
		const struct buffer *const buffer = &abi->buffers[i];
		const uint32_t sizes[] = { buffer->needed, buffer->limit };
		const uintptr_t addr = (uintptr_t)
			map_to_page_end((size_t)buffer->needed * buffer->unit,
					PROT_READ | PROT_WRITE);

		for (j = 0; j < ARRAY_SIZE(sizes); j++) {
			union argument arg = abi->ask(start_of(FILE_R), 0,
						      NAME | BUILD_ID);
			struct procmap_query answer;

			arg.size = j ? sizeof(arg) : abi->size;
			set_buffer(&arg, buffer, addr, sizes[j]);
			ASSERT_EQ(0, call_abi(abi, &arg));
			answer = abi->answer(&arg);
			EXPECT_EQ(start_of(FILE_R), answer.vma_start);
			EXPECT_EQ(sizeof(FILE_NAME), answer.vma_name_size);
			EXPECT_STREQ(FILE_NAME, name_of_answer(&answer));
			EXPECT_TRUE(has_build_id(&answer));
		}
	}
}

/* An address is checked by writing to it, so a bad one is no error here. */
TEST_F(process, buffers_are_not_looked_at_when_there_is_nothing_to_write)
{
	const struct abi *const abi = variant->abi;
	union argument gap = abi->ask(end_of(FILE_R), 0, NAME | BUILD_ID);
	union argument memory = abi->ask(start_of(PRIVATE_RW), 0,
					 NAME | BUILD_ID);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(abi->buffers); i++) {
		set_buffer(&gap, &abi->buffers[i], 8, 256);
		if (abi->buffers[i].is_data)
			set_buffer(&memory, &abi->buffers[i], 8, 256);
	}
	EXPECT_EQ(-ENOENT, call_abi(abi, &gap));
	EXPECT_EQ(0, call_abi(abi, &memory));
}

TEST_F(process, buffer_that_cannot_be_written_is_efault)
{
	const struct abi *const abi = variant->abi;
	const uint64_t addrs[] = {
		8, (uintptr_t)map_to_page_end(0, 0),
		(uintptr_t)map_to_page_end(page_size(), PROT_READ),
		1ull << 47, 1ull << 63, ~7ull,
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(abi->buffers); i++) {
		for (j = 0; j < ARRAY_SIZE(addrs); j++) {
			union argument arg = abi->ask(start_of(FILE_R), 0,
						      NAME | BUILD_ID);

			set_buffer(&arg, &abi->buffers[i], addrs[j], 256);
			EXPECT_EQ(-EFAULT, call_abi(abi, &arg)) {
				TH_LOG("buffer %u at %#jx", i,
				       (uintmax_t)addrs[j]);
			}
		}
	}
}

/* Each error. */

TEST_F(process, size_over_a_page_is_e2big)
{
	const uint64_t sizes[] = {
		page_size() + 1, 2 * page_size(), (1ull << 32) + 104, ~0ull,
	};
	uint8_t *const bytes = calloc(4, page_size());
	union argument arg = variant->abi->ask(start_of(FILE_R), 0, 0);
	unsigned int i;

	ASSERT_TRUE(!!bytes);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		arg.size = sizes[i];
		memcpy(bytes, &arg, sizeof(arg));
		EXPECT_EQ(-E2BIG, call_abi(variant->abi, bytes));
	}
}

TEST_F_TIMEOUT(process, nonzero_byte_past_the_struct_is_e2big, 300)
{
	const struct abi *const abi = variant->abi;
	union argument arg = abi->ask(start_of(FILE_R), 0, 0);
	uint8_t *const bytes = calloc(1, page_size());
	size_t i;

	ASSERT_TRUE(!!bytes);
	arg.size = page_size();
	memcpy(bytes, &arg, sizeof(arg));
	for (i = abi->size; i < page_size(); i = next_place(i, 1)) {
		bytes[i] = 1;
		ASSERT_EQ(-E2BIG, call_abi(abi, bytes)) {
			TH_LOG("byte %zu", i);
		}
		bytes[i] = 0;
	}
	/* A byte past the size is not part of the structure. */
	arg.size = abi->size;
	arg.bytes[abi->size] = 1;
	EXPECT_EQ(0, call_abi(abi, &arg));
}

/* A flag that only records have is no filter either. */
TEST_F(process, unknown_filter_is_einval)
{
	const struct abi *const abi = variant->abi;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		union argument arg = abi->ask(start_of(FILE_SHARED_RX), 0, 0);
		const uint64_t filter = 1ull << bit;

		arg.filter = filter;
		EXPECT_EQ(!(filter & abi->filters), call_abi(abi, &arg) == -EINVAL);
		arg.filter = filter | R;
		EXPECT_EQ(!(filter & abi->filters), call_abi(abi, &arg) == -EINVAL);
	}
}

/* The size and the direction are part of the command's number. */
TEST_F(process, another_command_is_enotty)
{
	const unsigned int nr = _IOC_NR(variant->abi->command);
	const size_t size = variant->abi->size;
	const unsigned int commands[] = {
		_IOC(_IOC_NONE, 'f', nr, 0),
		_IOC(_IOC_READ, 'f', nr, size),
		_IOC(_IOC_WRITE, 'f', nr, size),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', nr, 1),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', nr - 1, size),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', nr + 1, size),
		_IOC(_IOC_READ | _IOC_WRITE, 'g', nr, size),
	};
	union argument arg = variant->abi->ask(start_of(FILE_R), 0, 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-1, ioctl(target.fd, commands[i], &arg));
		EXPECT_EQ(ENOTTY, errno);
	}
}

TEST_F(process, call_on_another_file_is_enotty)
{
	static const char *const names[] = { "smaps", "smaps_rollup", "stat" };
	union argument arg = variant->abi->ask(start_of(FILE_R), 0, 0);
	char path[64];
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/proc/self/%s", names[i]);
		fd = open(path, O_RDONLY);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-1, ioctl(fd, variant->abi->command, &arg));
		EXPECT_EQ(ENOTTY, errno);
		close(fd);
	}
}

/*
 * The order of the errors: of two faults in one call, the ABI says which one is
 * reported. Each ioctl has a table of faults in that order.
 */

/* Memory that holds the structure of the call. */
enum place { WRITABLE, READ_ONLY, ONLY_SIZE_READABLE, NOWHERE };

/* A new value of some field of the structure, unless @size is 0. */
struct poke {
	size_t offset;
	size_t size;
	uint64_t value;
};

#define POKE8(field, value)	{ offsetof(union argument, field), 1, value }
#define POKE32(field, value)	{ offsetof(union argument, field), 4, value }
#define POKE64(field, value)	{ offsetof(union argument, field), 8, value }

struct fault {
	const char *name;
	int err;
	unsigned int nr;	/* added to the number of the command */
	enum place place;
	bool exited;		/* the process is gone */
	struct poke pokes[2];
};

/*
 * An address of 8 is none, and no bad one as long as nothing is written to it. EINTR and
 * ENOMEM cannot be made here.
 */
static const struct fault query_faults[] = {
	{ "another command", -ENOTTY, .nr = 1 },
	{ "no structure", -EFAULT, .place = NOWHERE },
	{ "size over a page", -E2BIG, .pokes = { POKE64(size, 1 << 20) } },
	{ "size too small", -EINVAL, .pokes = { POKE64(size, 23) } },
	{ "half a structure", -EFAULT, .place = ONLY_SIZE_READABLE },
	{ "byte past the structure", -E2BIG,
	  .pokes = { POKE64(size, 112), POKE8(bytes[104], 1) } },
	{ "unknown flag", -EINVAL, .pokes = { POKE64(filter, 0x80) } },
	{ "name without size", -EINVAL,
	  .pokes = { POKE64(query.vma_name_addr, 8), POKE32(query.vma_name_size, 0) } },
	{ "name size without name", -EINVAL,
	  .pokes = { POKE64(query.vma_name_addr, 0), POKE32(query.vma_name_size, 8) } },
	{ "build ID without size", -EINVAL,
	  .pokes = { POKE64(query.build_id_addr, 8), POKE32(query.build_id_size, 0) } },
	{ "build ID size without build ID", -EINVAL,
	  .pokes = { POKE64(query.build_id_addr, 0), POKE32(query.build_id_size, 8) } },
	{ "exited process", -ESRCH, .exited = true },
	{ "address without a mapping", -ENOENT, .pokes = { POKE64(query.query_addr, 0) } },
	{ "name too long", -ENAMETOOLONG,
	  .pokes = { POKE32(query.vma_name_size, sizeof(FILE_NAME) - 1) } },
	{ "build ID too long", -ENAMETOOLONG,
	  .pokes = { POKE32(query.build_id_size, sizeof(build_id) - 1) } },
	{ "bad name address", -EFAULT, .pokes = { POKE64(query.vma_name_addr, 1) } },
	{ "bad build ID address", -EFAULT, .pokes = { POKE64(query.build_id_addr, 1) } },
	{ "read-only structure", -EFAULT, .place = READ_ONLY },
};

#ifdef HAVE_PROCMAP_SCAN
/*
 * Where the scan ended is written for an error, too: so it comes after all that is wrong
 * with the fields, and before the errors of a mapping.
 */
static const struct fault scan_faults[] = {
	{ "another command", -ENOTTY, .nr = 1 },
	{ "no structure", -EFAULT, .place = NOWHERE },
	{ "size over a page", -E2BIG, .pokes = { POKE64(size, 1 << 20) } },
	{ "size too small", -EINVAL, .pokes = { POKE64(size, 103) } },
	{ "half a structure", -EFAULT, .place = ONLY_SIZE_READABLE },
	{ "byte past the structure", -E2BIG,
	  .pokes = { POKE64(size, 112), POKE8(bytes[104], 1) } },
	{ "unknown filter", -EINVAL, .pokes = { POKE64(filter, 0x80) } },
	{ "flag of records as a filter", -EINVAL, .pokes = { POKE64(filter, 0x20) } },
	{ "unknown want", -EINVAL, .pokes = { POKE64(scan.want, 0x04) } },
	{ "unknown want of 64 bits", -EINVAL, .pokes = { POKE64(scan.want, 1ull << 63) } },
	{ "start not aligned", -EINVAL, .pokes = { POKE64(scan.start, 1) } },
	{ "start half a page off", -EINVAL, .pokes = { POKE64(scan.start, 0x20000800) } },
	{ "end below the start", -EINVAL, .pokes = { POKE64(scan.end, 0) } },
	{ "end 1 below the start", -EINVAL,
	  .pokes = { POKE64(scan.start, SCENE_START), POKE64(scan.end, SCENE_START - 1) } },
	{ "no array", -EINVAL, .pokes = { POKE64(scan.vec, 0) } },
	{ "array not aligned", -EINVAL, .pokes = { POKE64(scan.vec, 4) } },
	{ "array of no records", -EINVAL, .pokes = { POKE32(scan.vec_len, 0) } },
	{ "array of too many records", -EINVAL, .pokes = { POKE32(scan.vec_len, 1u << 31) } },
	{ "record too small", -EINVAL, .pokes = { POKE32(scan.vma_size, 64) } },
	{ "data without size", -EINVAL,
	  .pokes = { POKE64(scan.data, 8), POKE32(scan.data_size, 0) } },
	{ "data size without data", -EINVAL,
	  .pokes = { POKE64(scan.data, 0), POKE32(scan.data_size, 8) } },
	{ "no data, and none is wanted", -EINVAL,
	  .pokes = { POKE64(scan.data, 0), POKE64(scan.want, 0) } },
	{ "read-only structure", -EFAULT, .place = READ_ONLY },
	{ "exited process", -ESRCH, .exited = true },
	{ "data too small", -ENOSPC,
	  .pokes = { POKE32(scan.data_size, sizeof(FILE_NAME) - 1) } },
	{ "bad data address", -EFAULT, .pokes = { POKE64(scan.data, 1) } },
	{ "bad array address", -EFAULT, .pokes = { POKE64(scan.vec, 8) } },
};
#endif /* HAVE_PROCMAP_SCAN */

struct attempt {
	int fd;
	unsigned int command;
	enum place place;
	union argument arg;
};

static void add_fault(struct attempt *attempt, const struct fault *fault,
		      int fd_of_exited)
{
	unsigned int i;

	attempt->command += fault->nr;
	if (fault->place != WRITABLE)
		attempt->place = fault->place;
	if (fault->exited)
		attempt->fd = fd_of_exited;
	for (i = 0; i < ARRAY_SIZE(fault->pokes); i++) {
		const struct poke *const poke = &fault->pokes[i];
		uint8_t *const at = attempt->arg.bytes + poke->offset;

		if (poke->size == sizeof(uint64_t))
			*(uint64_t *)at = poke->value;
		else if (poke->size == sizeof(uint32_t))
			*(uint32_t *)at = poke->value;
		else if (poke->size)
			*at = poke->value;
	}
}

/* Returns the value of the call, or -errno. */
static int make_attempt(const struct attempt *attempt)
{
	const int prot = attempt->place == READ_ONLY ? PROT_READ :
						       PROT_READ | PROT_WRITE;
	size_t size = sizeof(attempt->arg);
	uint8_t *arg = NULL;
	int ret;

	if (attempt->place == ONLY_SIZE_READABLE)
		size = sizeof(uint64_t);
	if (attempt->place != NOWHERE) {
		arg = map_to_page_end(size, PROT_READ | PROT_WRITE);
		memcpy(arg, &attempt->arg, size);
		mprotect(arg + size - page_size(), page_size(), prot);
	}
	ret = ioctl(attempt->fd, attempt->command, arg);
	ret = ret < 0 ? -errno : ret;
	if (arg)
		munmap(arg + size - page_size(), 2 * page_size());
	return ret;
}

FIXTURE(call)
{
};

FIXTURE_VARIANT(call)
{
	const struct abi *abi;
	const struct fault *faults;
	size_t nr_faults;
};

FIXTURE_VARIANT_ADD(call, query) {
	.abi = &query_abi,
	.faults = query_faults,
	.nr_faults = ARRAY_SIZE(query_faults),
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(call, scan) {
	.abi = &scan_abi,
	.faults = scan_faults,
	.nr_faults = ARRAY_SIZE(scan_faults),
};
#endif

FIXTURE_SETUP(call)
{
	set_scene(_metadata, variant->abi);
}

FIXTURE_TEARDOWN(call)
{
	leave_scene();
}

/*
 * Try each fault by itself, and every pair of faults: the earlier one must be
 * reported. It is made last, so where both set the same field, it counts.
 */
TEST_F(call, with_two_faults_reports_the_earlier_one)
{
	const struct fault *const faults = variant->faults;
	const int fd_of_exited = open_maps_of_exited();
	const struct attempt good = {
		.fd = target.fd,
		.command = variant->abi->command,
		.arg = variant->abi->ask(start_of(FILE_R), 0, NAME | BUILD_ID),
	};
	size_t i, j;

	ASSERT_LE(0, fd_of_exited);
	ASSERT_EQ(variant->abi->found, make_attempt(&good));
	for (i = 0; i < variant->nr_faults; i++) {
		for (j = i; j < variant->nr_faults; j++) {
			struct attempt bad = good;

			add_fault(&bad, &faults[j], fd_of_exited);
			add_fault(&bad, &faults[i], fd_of_exited);
			EXPECT_EQ(faults[i].err, make_attempt(&bad)) {
				TH_LOG("%s, with %s", faults[i].name,
				       faults[j].name);
			}
		}
	}
}

/*
 * PROCMAP_QUERY alone: the size of its structure may leave out the last
 * fields, and a buffer that is too small is an error.
 */
FIXTURE(query)
{
};

FIXTURE_SETUP(query)
{
	set_scene(_metadata, &query_abi);
}

FIXTURE_TEARDOWN(query)
{
	leave_scene();
}

TEST_F(query, without_build_id_field_can_have_a_name)
{
	union argument arg = query_argument(start_of(FILE_R), 0, NAME);

	arg.size = offsetof(struct procmap_query, build_id_addr);
	ASSERT_EQ(0, call_abi(&query_abi, &arg));
	EXPECT_STREQ(FILE_NAME, buffers.name);
}

/* An address beyond the size is 0, also if other bytes follow in memory. */
TEST_F(query, with_a_buffer_size_and_no_field_for_its_address_is_einval)
{
	union argument arg = query_argument(start_of(FILE_R), 0, NAME | BUILD_ID);

	arg.size = offsetof(struct procmap_query, build_id_addr);
	EXPECT_EQ(-EINVAL, call_abi(&query_abi, &arg));
	arg.size = offsetof(struct procmap_query, vma_name_addr);
	arg.query.build_id_size = 0;
	EXPECT_EQ(-EINVAL, call_abi(&query_abi, &arg));
}

#ifdef HAVE_PROCMAP_SCAN
/*
 * PROCMAP_SCAN alone: ranges, an array of records, and data that they share.
 */

FIXTURE(scan)
{
};

FIXTURE_SETUP(scan)
{
	set_scene(_metadata, &scan_abi);
	ASSERT_EQ(0, read_truth(target.fd, &truth));
	truth.is_resident = true;
}

FIXTURE_TEARDOWN(scan)
{
	free_truth(&truth);
	leave_scene();
}

static uint64_t scene_end(void)
{
	return start_of(NR_MAPPINGS);
}

static struct procmap_scan_arg scan_arg_of_scene(uint64_t want)
{
	return scan_arg(&room, SCENE_START, scene_end(), want);
}

/* Ranges and filters. */

/*
 * A record has the whole mapping, wherever the range begins and ends. So the next scan
 * begins past it, and does not return it again.
 */
TEST_F(scan, of_every_range_is_that_of_the_text)
{
	const uint64_t page = page_size();
	uint64_t start, end;
	int i;

	for (start = SCENE_START - page; start <= scene_end(); start += page) {
		for (end = start + 1; end <= scene_end() + 1; end += page) {
			for (i = -1; i <= 1; i++) {
				struct procmap_scan_arg arg =
					scan_arg(&room, start, end + i, ALL);
				const int nr = procmap_scan(target.fd, &arg);

				ASSERT_STREQ("", wrong_scan(&truth, &arg, nr)) {
					TH_LOG("%#jx to %#jx", (uintmax_t)start,
					       (uintmax_t)end + i);
				}
				ASSERT_EQ(end + i, arg.walk_end);
			}
		}
	}
}

/* No process is needed to return nothing, but right arguments are. */
TEST_F(scan, of_an_empty_range_is_complete_anywhere_for_any_process)
{
	const uint64_t addrs[] = {
		0, end_of(FILE_R), start_of(FILE_R),
		start_of(FILE_R) + page_size(), -(uint64_t)page_size(),
	};
	const int fds[] = { target.fd, open_maps_of_exited() };
	unsigned int i, j;

	ASSERT_LE(0, fds[1]);
	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		for (j = 0; j < ARRAY_SIZE(fds); j++) {
			struct procmap_scan_arg arg =
				scan_arg(&room, addrs[i], addrs[i], ALL);

			EXPECT_EQ(0, procmap_scan(fds[j], &arg));
			EXPECT_EQ(addrs[i], arg.walk_end);
			EXPECT_EQ(0u, arg.data_used);
			arg.want |= 0x04;
			EXPECT_EQ(-EINVAL, procmap_scan(fds[j], &arg));
		}
	}
}

/* The array of records, and the data. */

/* A caller may be built against another version of the record. */
TEST_F(scan, sets_bytes_of_records_that_the_kernel_does_not_know_to_zero)
{
	const uint32_t sizes[] = { 72, 80, 88, 128, 1024, page_size() - 8,
				   page_size() };
	struct procmap_scan_arg plain = scan_arg_of_scene(ALL);
	const size_t known = sizeof(*room.vec);
	unsigned int i, n;

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(target.fd, &plain));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		const size_t all = NR_MAPPINGS * sizes[i];
		uint8_t *const longer = map_to_page_end(all, PROT_READ |
							     PROT_WRITE);
		struct procmap_scan_arg arg = plain;

		memset(longer, FILL, all);
		arg.vec = (uintptr_t)longer;
		arg.vma_size = sizes[i];
		ASSERT_EQ(NR_MAPPINGS, procmap_scan(target.fd, &arg));
		for (n = 0; n < NR_MAPPINGS; n++) {
			const uint8_t *const record = longer + n * sizes[i];

			EXPECT_EQ(0, memcmp(record, &room.vec[n], known));
			EXPECT_TRUE(is_filled(record + known, sizes[i] - known,
					      0));
		}
	}
}

TEST_F(scan, with_a_record_too_small_too_large_or_odd_is_einval)
{
	const uint32_t bad[] = {
		0, 8, 64, 71, 73, 76, 79, 84, page_size() - 1, page_size() + 1,
		page_size() + 8, 2 * page_size(), 0x80000048, 0xfffffff8,
	};
	struct procmap_scan_arg arg = scan_arg_of_scene(0);
	unsigned int i;

	arg.vec = (uintptr_t)map_room(NR_MAPPINGS * page_size());
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		arg.vma_size = bad[i];
		EXPECT_EQ(-EINVAL, procmap_scan(target.fd, &arg)) {
			TH_LOG("vma_size %u", bad[i]);
		}
	}
	for (arg.vma_size = 72; arg.vma_size <= page_size();
	     arg.vma_size = next_place(arg.vma_size, 8))
		EXPECT_EQ(NR_MAPPINGS, procmap_scan(target.fd, &arg));
}

/*
 * data_needed is set as soon as a record does not fit. If the array is full as well, it
 * may be set or not.
 */
TEST_F(scan, goes_on_with_as_much_data_as_it_needs)
{
	const uint64_t filters[] = { 0, R | FILE_BACKED };
	const uint64_t wants[] = { ALL, BUILD_IDS };
	const uint32_t vec_lens[] = { 64, 1 };
	size_t calls = 0;
	unsigned int i, j;
	uint32_t size;

	for (i = 0; i < ARRAY_SIZE(filters); i++) {
		for (j = 0; j < ARRAY_SIZE(vec_lens); j++) {
			for (size = 0; size <= 200; size++) {
				struct procmap_scan_arg arg =
					scan_arg_of_scene(wants[i]);

				/* A range that begins in a mapping. */
				if (j)
					arg.start = start_of(FILE_R) + page_size();
				arg.filter = filters[i];
				arg.vec_len = vec_lens[j];
				arg.data_size = size;
				ASSERT_STREQ("", wrong_walk(target.fd, &truth,
							    &room, arg,
							    &calls)) {
					TH_LOG("data_size %u", size);
				}
			}
		}
	}
	EXPECT_LT(8 * 200u, calls);
}

/*
 * Mappings of one page each, of one file or of many. Records may share names and
 * build IDs, or not, but each must have those of its own mapping.
 */

static uint64_t page_addr(unsigned int page)
{
	return SCENE_START + page * page_size();
}

static bool map_page_of(unsigned int page, int fd)
{
	/* Neighbours differ, or the kernel would merge them. */
	const int prot = page % 2 ? PROT_READ : PROT_READ | PROT_EXEC;
	void *const addr = (void *)(uintptr_t)page_addr(page);

	return mmap(addr, page_size(), prot,
		    MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == addr;
}

static int make_named_elf(void)
{
	const int fd = memfd_create("name", MFD_CLOEXEC);

	return write_elf(fd, build_id) ? fd : -1;
}

#define NR_ROOM		1024
#define ROOM_DATA_SIZE	(64 * 4096)

/* The room is enough for all of them, also if none shares anything. */
static void set_pages(struct __test_metadata *const _metadata)
{
	make_scan_buffers(_metadata, NR_ROOM, ROOM_DATA_SIZE);
	target.fd = open_maps(0);
	ASSERT_LE(0, target.fd);
}

static void scan_pages(struct __test_metadata *const _metadata, unsigned int nr)
{
	struct procmap_scan_arg arg = scan_arg(&room, SCENE_START, page_addr(nr), ALL);

	ASSERT_EQ(0, read_truth(target.fd, &truth));
	truth.is_resident = true;
	ASSERT_EQ((int)nr, procmap_scan(target.fd, &arg));
	EXPECT_STREQ("", wrong_scan(&truth, &arg, nr));
	EXPECT_EQ(arg.end, arg.walk_end);
	free_truth(&truth);
}

FIXTURE(files)
{
};

FIXTURE_SETUP(files)
{
	set_pages(_metadata);
}

FIXTURE_TEARDOWN(files)
{
	close(target.fd);
}

/* One file with two paths, by turns: records must not share by inode. */
TEST_F(files, that_have_two_paths_keep_them)
{
	char first[] = "/tmp/procmap-abi-XXXXXX", second[64];
	int fds[2];
	unsigned int i;

	fds[0] = mkstemp(first);
	snprintf(second, sizeof(second), "%.24s-2", first);
	ASSERT_TRUE(write_elf(fds[0], build_id));
	ASSERT_EQ(0, link(first, second));
	fds[1] = open(second, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fds[1]);
	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, fds[i % 3 == 2]));
	scan_pages(_metadata, 300);
	EXPECT_EQ(0, unlink(first));
	EXPECT_EQ(0, unlink(second));
}

/* Only the build IDs differ: records must not share by name. */
TEST_F(files, of_one_name_keep_their_build_ids)
{
	uint8_t id[20];
	unsigned int i;
	int fd;

	for (i = 0; i < 200; i++) {
		memset(id, i, sizeof(id));
		fd = memfd_create("same", MFD_CLOEXEC);
		ASSERT_TRUE(write_elf(fd, id));
		ASSERT_TRUE(map_page_of(i, fd));
	}
	scan_pages(_metadata, 200);
}

/* More mappings in a row than a scan copies at once. */
TEST_F(files, that_are_one_have_name_and_build_id)
{
	const int fd = make_named_elf();
	unsigned int i;

	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, fd));
	scan_pages(_metadata, 300);
}

/*
 * The generation of an address space: calls that change mappings move it, and others do
 * not. A kernel that does not count changes returns 0, and does not compare the known
 * generation. Other kernels return no records as long as it is the same.
 */

#define AREA_PAGES	8
#define STACK_GROWTH	0x100000

/* Calls of the target that change its mappings, on private memory. */

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

/* Those that change none. */

static bool do_nothing(char *area)
{
	return area;
}

static bool do_write_to_a_page(char *area)
{
	area[0] = 1;
	return true;
}

struct change {
	bool (*make)(char *area);
};

/* Make the change whenever it hears, and send 0 or -errno. */
static int be_changing(int control, void *arg)
{
	const struct change *const change = arg;
	char *const area = map_room(AREA_PAGES * page_size());
	int err = 0;

	if (!area || !map_page_of(0, make_named_elf()))
		return 1;
	while (write(control, &err, sizeof(err)) == sizeof(err) && await(control))
		err = change->make(area) ? 0 : -errno;
	return 1;
}

/* Returns 0, or -errno if the change could not be made. */
static int wait_for_change(void)
{
	int err;

	if (read(target.child.control, &err, sizeof(err)) != sizeof(err))
		return -EPIPE;
	return err;
}

static void start_changing(struct __test_metadata *const _metadata,
			   bool (*make)(char *area))
{
	struct change change = { .make = make };

	make_scan_buffers(_metadata, NR_ROOM, ROOM_DATA_SIZE);
	ASSERT_TRUE(start_child(&target.child, be_changing, &change));
	ASSERT_EQ(0, wait_for_change());
	target.fd = open_maps(target.child.pid);
	ASSERT_LE(0, target.fd);
	ASSERT_EQ(0, read_truth(target.fd, &truth));
}

static void stop_changing(void)
{
	stop_child(&target.child);
	free_truth(&truth);
	close(target.fd);
}

static struct procmap_scan_arg scan_arg_since(uint64_t generation)
{
	struct procmap_scan_arg arg = scan_arg(&room, 0, NO_END, ALL);

	arg.known_generation = generation;
	return arg;
}

/* Returns the generation, of a scan that has to be complete. */
static uint64_t scan_since(struct __test_metadata *const _metadata,
			   uint64_t generation)
{
	struct procmap_scan_arg arg = scan_arg_since(generation);
	const int nr = procmap_scan(target.fd, &arg);

	EXPECT_EQ((int)truth.maps.nr, nr);
	EXPECT_STREQ("", wrong_scan(&truth, &arg, nr));
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(0u, arg.flags);
	return arg.generation;
}

/* The kernel knows that nothing has changed since, if it knows the generation. */
static void expect_nothing_since(struct __test_metadata *const _metadata,
				 uint64_t generation)
{
	struct procmap_scan_arg arg = scan_arg_since(generation);

	if (!generation) {
		EXPECT_EQ(0u, scan_since(_metadata, 0));
		return;
	}
	memset(room.vec, FILL, sizeof(*room.vec));
	memset(room.data, FILL, page_size());
	EXPECT_EQ(0, procmap_scan(target.fd, &arg));
	EXPECT_EQ(NO_END, arg.walk_end);
	EXPECT_EQ(generation, arg.generation);
	EXPECT_EQ(0u, arg.data_used);
	EXPECT_EQ(0u, arg.data_needed);
	EXPECT_EQ(0u, arg.flags);
	EXPECT_TRUE(is_filled(room.vec, sizeof(*room.vec), FILL));
	EXPECT_TRUE(is_filled(room.data, page_size(), FILL));
}

FIXTURE(generation)
{
};

FIXTURE_VARIANT(generation)
{
	bool (*make)(char *area);
	bool changes;
};

FIXTURE_VARIANT_ADD(generation, mmap) { do_mmap, true };
FIXTURE_VARIANT_ADD(generation, munmap) { do_munmap, true };
FIXTURE_VARIANT_ADD(generation, mprotect) { do_mprotect, true };
FIXTURE_VARIANT_ADD(generation, mremap) { do_mremap, true };
FIXTURE_VARIANT_ADD(generation, brk) { do_brk, true };
FIXTURE_VARIANT_ADD(generation, name) { do_name, true };
FIXTURE_VARIANT_ADD(generation, grow_stack) { do_grow_stack, true };
FIXTURE_VARIANT_ADD(generation, nothing) { do_nothing, false };
FIXTURE_VARIANT_ADD(generation, write_to_a_page) { do_write_to_a_page, false };

FIXTURE_SETUP(generation)
{
	start_changing(_metadata, variant->make);
}

FIXTURE_TEARDOWN(generation)
{
	stop_changing();
}

TEST_F(generation, moves_with_mappings_only)
{
	const uint64_t generation = scan_since(_metadata, 0);
	int err;

	expect_nothing_since(_metadata, generation);
	ASSERT_TRUE(notify(target.child.control));
	err = wait_for_change();
	if (err)
		SKIP(return, "this kernel cannot do that: %s", strerror(-err));
	free_truth(&truth);
	ASSERT_EQ(0, read_truth(target.fd, &truth));
	if (!generation || !variant->changes) {
		expect_nothing_since(_metadata, generation);
		return;
	}
	EXPECT_NE(generation, scan_since(_metadata, generation));
	EXPECT_NE(0u, scan_since(_metadata, generation));
}

FIXTURE(same_generation)
{
};

FIXTURE_SETUP(same_generation)
{
	start_changing(_metadata, do_nothing);
}

FIXTURE_TEARDOWN(same_generation)
{
	stop_changing();
}

TEST_F(same_generation, is_known)
{
	if (!scan_since(_metadata, 0))
		SKIP(return, "this kernel does not count changes of mappings");
}

TEST_F(same_generation, is_not_that_of_another_time)
{
	static const uint64_t others[] = {
		1, 2, 3, INT_MAX, UINT_MAX, 1ull << 32, 1ull << 63, ~0ull,
	};
	const uint64_t generation = scan_since(_metadata, 0);
	unsigned int i;

	EXPECT_EQ(generation, scan_since(_metadata, generation + 2));
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i] != generation)
			EXPECT_EQ(generation, scan_since(_metadata, others[i]));
}

/* All calls of a scan have that of the first as long as nothing changes. */
TEST_F(same_generation, is_returned_throughout_a_scan)
{
	const uint64_t generation = scan_since(_metadata, 0);
	struct procmap_scan_arg arg = scan_arg(&room, 0, NO_END, ALL);
	unsigned int calls;

	arg.vec_len = 2;
	for (calls = 0; arg.walk_end != arg.end; calls++) {
		ASSERT_LE(0, procmap_scan(target.fd, &arg));
		ASSERT_EQ(generation, arg.generation);
		ASSERT_EQ(0u, arg.flags);
		continue_scan(&arg);
	}
	EXPECT_LT(1u, calls);
}

/* Wrong arguments and a process that is gone are errors, changed or not. */
TEST_F(same_generation, is_looked_at_after_errors)
{
	const uint64_t generation = scan_since(_metadata, 0);
	struct procmap_scan_arg arg;

	arg = scan_arg_since(generation);
	arg.want |= 0x04;
	EXPECT_EQ(-EINVAL, procmap_scan(target.fd, &arg));
	arg = scan_arg_since(generation);
	arg.vec = 0;
	EXPECT_EQ(-EINVAL, procmap_scan(target.fd, &arg));
	stop_child(&target.child);
	arg = scan_arg_since(generation);
	EXPECT_EQ(-ESRCH, procmap_scan(target.fd, &arg));
}
#endif /* HAVE_PROCMAP_SCAN */

TEST_HARNESS_MAIN
