// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_QUERY: the layout of its structure, each field, filter, size and
 * buffer, and each error.
 */
#include "../kselftest_harness.h"
#include "procmap_util.h"

#define SIZE		sizeof(struct procmap_query)
#define SIZE_MIN	24

#define HUGE_PAGE_SIZE	(2u << 20)

/* A process that looks at itself. */
FIXTURE(scene)
{
	int fd;
	struct maps text;
	char name[256];
	uint8_t id[BUILD_ID_SIZE];
};

FIXTURE_SETUP(scene)
{
	ASSERT_TRUE(map_scene());
	self->fd = open_maps(0);
	ASSERT_EQ(0, read_maps(self->fd, &self->text));
	memset(self->name, FILL, sizeof(self->name));
	memset(self->id, FILL, sizeof(self->id));
}

FIXTURE_TEARDOWN(scene)
{
}

/* A query for all that a mapping has. */
static struct procmap_query query_for_all(struct _test_data_scene *self, uint64_t addr)
{
	return QUERY(.query_addr = addr, .vma_name_addr = (uintptr_t)self->name,
		     .vma_name_size = sizeof(self->name),
		     .build_id_addr = (uintptr_t)self->id,
		     .build_id_size = sizeof(self->id));
}

TEST(struct_and_numbers_are_those_of_mainline)
{
#define OFFSET(name, abi) \
	{ "offset of " #name, offsetof(struct procmap_query, name), abi }
#define SIZE_OF(name, abi) \
	{ "size of " #name, sizeof((*(struct procmap_query *)0).name), abi }
	static const struct {
		const char *what;
		size_t here, abi;
	} fields[] = {
		OFFSET(size, 0), SIZE_OF(size, 8),
		OFFSET(query_flags, 8), SIZE_OF(query_flags, 8),
		OFFSET(query_addr, 16), SIZE_OF(query_addr, 8),
		OFFSET(vma_start, 24), SIZE_OF(vma_start, 8),
		OFFSET(vma_end, 32), SIZE_OF(vma_end, 8),
		OFFSET(vma_flags, 40), SIZE_OF(vma_flags, 8),
		OFFSET(vma_page_size, 48), SIZE_OF(vma_page_size, 8),
		OFFSET(vma_offset, 56), SIZE_OF(vma_offset, 8),
		OFFSET(inode, 64), SIZE_OF(inode, 8),
		OFFSET(dev_major, 72), SIZE_OF(dev_major, 4),
		OFFSET(dev_minor, 76), SIZE_OF(dev_minor, 4),
		OFFSET(vma_name_size, 80), SIZE_OF(vma_name_size, 4),
		OFFSET(build_id_size, 84), SIZE_OF(build_id_size, 4),
		OFFSET(vma_name_addr, 88), SIZE_OF(vma_name_addr, 8),
		OFFSET(build_id_addr, 96), SIZE_OF(build_id_addr, 8),
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		EXPECT_EQ(fields[i].abi, fields[i].here) {
			TH_LOG("%s", fields[i].what);
		}
	}
	EXPECT_EQ(104u, sizeof(struct procmap_query));
	EXPECT_EQ(0xc0686611, PROCMAP_QUERY);
	EXPECT_EQ(0x01, PROCMAP_QUERY_VMA_READABLE);
	EXPECT_EQ(0x02, PROCMAP_QUERY_VMA_WRITABLE);
	EXPECT_EQ(0x04, PROCMAP_QUERY_VMA_EXECUTABLE);
	EXPECT_EQ(0x08, PROCMAP_QUERY_VMA_SHARED);
	EXPECT_EQ(0x10, PROCMAP_QUERY_COVERING_OR_NEXT_VMA);
	EXPECT_EQ(0x20, PROCMAP_QUERY_FILE_BACKED_VMA);
}

/* Each field, and a name and a build ID only where they are wanted. */

TEST_F(scene, fields_are_those_of_the_text)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		ASSERT_EQ(0, query_fields(self->fd, end_of(i) - 1, 0, &query));
		EXPECT_TRUE(same_fields(line_at(&self->text, start_of(i)), &query)) {
			TH_LOG("mapping %u", i);
		}
		EXPECT_EQ(page_size(), query.vma_page_size);
		EXPECT_EQ(0u, query.vma_name_size);
		EXPECT_EQ(0u, query.build_id_size);
	}
}

/* No huge page is needed to map one. */
TEST_F(scene, page_size_is_that_of_smaps)
{
	const int flags = MAP_HUGETLB | 21 << MAP_HUGE_SHIFT | MAP_NORESERVE;
	void *const huge = mmap(NULL, HUGE_PAGE_SIZE, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	struct procmap_query query;
	struct maps smaps;

	if (huge == MAP_FAILED)
		SKIP(return, "no huge pages, CONFIG_HUGETLBFS");
	ASSERT_EQ(0, read_smaps(0, &smaps));
	EXPECT_EQ(HUGE_PAGE_SIZE, line_at(&smaps, (uintptr_t)huge)->page_size);
	ASSERT_EQ(0, query_fields(self->fd, (uintptr_t)huge, 0, &query));
	EXPECT_EQ(HUGE_PAGE_SIZE, query.vma_page_size);
	free_maps(&smaps);
}

TEST_F(scene, name_is_that_of_the_text)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const char *const name = line_at(&self->text, start_of(i))->name;

		ASSERT_EQ(0, query_name(self->fd, start_of(i), &query, self->name,
					sizeof(self->name)));
		EXPECT_EQ(*name ? strlen(name) + 1 : 0, query.vma_name_size);
		if (*name)
			EXPECT_STREQ(name, self->name);
		EXPECT_EQ(0u, query.build_id_size);
	}
}

TEST_F(scene, build_id_is_that_of_the_elf_file)
{
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		memset(self->id, FILL, sizeof(self->id));
		ASSERT_EQ(0, query_build_id(self->fd, start_of(i), &query, self->id,
					    sizeof(self->id)));
		EXPECT_EQ(has_scene_id(i) ? BUILD_ID_SIZE : 0, query.build_id_size);
		EXPECT_EQ(has_scene_id(i), !memcmp(self->id, scene_id, BUILD_ID_SIZE));
		EXPECT_EQ(0u, query.vma_name_size);
	}
}

/* Of memory, the fields that only a file has are zeros. */
TEST_F(scene, what_the_caller_left_in_outputs_does_not_matter)
{
	static const unsigned int mappings[] = { PRIVATE_RW, FILE_RW };
	const size_t start = offsetof(struct procmap_query, vma_start);
	const size_t end = offsetof(struct procmap_query, vma_name_size);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mappings); i++) {
		struct procmap_query zeros = QUERY(.query_addr = start_of(mappings[i]));
		struct procmap_query ones = zeros;

		memset((char *)&ones + start, 0xff, end - start);
		ASSERT_EQ(0, procmap_query(self->fd, &zeros));
		ASSERT_EQ(0, procmap_query(self->fd, &ones));
		EXPECT_EQ(0, memcmp(&zeros, &ones, SIZE));
	}
}

/* A reader may mix read(2) and the ioctl on one file. */
TEST_F(scene, file_position_stays)
{
	struct procmap_query query;
	char before[100], after[100];

	ASSERT_EQ(100, pread(self->fd, before, 100, 0));
	ASSERT_EQ(7, lseek(self->fd, 7, SEEK_SET));
	ASSERT_EQ(0, query_fields(self->fd, start_of(FILE_RW), 0, &query));
	EXPECT_EQ(7, lseek(self->fd, 0, SEEK_CUR));
	ASSERT_EQ(100, pread(self->fd, after, 100, 0));
	EXPECT_EQ(0, memcmp(before, after, 100));
}

/* The address and the filters. */

/* At the first and at the last byte of each page. */
TEST_F(scene, mapping_is_the_first_that_covers_or_follows_and_passes_all_filters)
{
	const struct maps_line *const end = self->text.lines + self->text.nr;
	struct procmap_query query;
	const struct maps_line *line;
	uint64_t page, addr, flags;
	unsigned int n;

	for (page = AREA; page <= end_of(NR_MAPPINGS); page += page_size()) {
		for (n = 0; n <= 2 * (QUERY_FILTERS | QUERY_NEXT) + 1; n++) {
			addr = page - n % 2;
			flags = n / 2;
			line = self->text.lines;
			while (line < end && (line->end <= addr ||
					      flags & QUERY_PERMISSIONS & ~line->flags ||
					      (flags & PROCMAP_QUERY_FILE_BACKED_VMA &&
					       !is_file(line))))
				line++;
			if (line < end && line->start > addr && !(flags & QUERY_NEXT))
				line = end;
			ASSERT_EQ(line < end ? 0 : -ENOENT,
				  query_fields(self->fd, addr, flags, &query)) {
				TH_LOG("%#jx, flags %#jx", (uintmax_t)addr,
				       (uintmax_t)flags);
			}
			if (line < end)
				ASSERT_EQ(line->start, query.vma_start);
		}
	}
}

/* A kernel that cuts the address to 32 bits would find a mapping. */
TEST_F(scene, address_is_not_cut_to_32_bits)
{
	struct procmap_query query;

	EXPECT_EQ(-ENOENT, query_fields(self->fd, start_of(FILE_R) + (1ull << 32), 0,
					&query));
	EXPECT_EQ(-ENOENT, query_fields(self->fd, ~0ull, 0, &query));
	EXPECT_EQ(-ENOENT, query_fields(self->fd, ~0ull, QUERY_NEXT, &query));
}

/* The size of the structure. */

/*
 * A caller built against another version of the structure gets the fields it knows; a
 * longer structure has zeros in those that the kernel does not know. A page without
 * access follows: reading or writing more would be EFAULT.
 */
TEST_F_TIMEOUT(scene, every_size_has_the_fields_that_fit_and_no_more, LONG_TIMEOUT)
{
	uint8_t *const end = map_to_page_end(0, PROT_READ | PROT_WRITE);
	const struct procmap_query asked = QUERY(.query_addr = start_of(FILE_RW));
	struct procmap_query full = asked;
	size_t size, fits;

	ASSERT_EQ(0, procmap_query(self->fd, &full));
	for (size = SIZE_MIN; size <= page_size(); size += size < 4096 ? 1 : 61) {
		fits = size < SIZE ? size : SIZE;
		full.size = size;
		memset(end - size, 0, size);
		memcpy(end - size, &asked, fits);
		memcpy(end - size, &full.size, sizeof(full.size));
		ASSERT_EQ(0, ioctl(self->fd, PROCMAP_QUERY, end - size)) {
			TH_LOG("size %zu", size);
		}
		ASSERT_EQ(0, memcmp(end - size, &full, fits));
		ASSERT_TRUE(is_filled(end - size + fits, size - fits, 0));
	}
}

/*
 * The kernel's structure would reach into addresses that no process has. The last page that
 * there can be ends at a power of two, or some pages below that.
 */
TEST_F(scene, struct_of_the_least_size_may_end_where_user_memory_does)
{
	const size_t size = page_size(), bits = 8 * sizeof(size_t);
	struct procmap_query full = QUERY(.query_addr = start_of(FILE_RW));
	uint8_t *page = MAP_FAILED, *end = NULL;
	unsigned int i;

	errno = 0;
	for (i = 0; page == MAP_FAILED && errno != EEXIST && i < 3 * (bits - 30); i++) {
		end = (uint8_t *)((size_t)2 << (bits - 1 - i / 3)) - i % 3 * size;
		page = mmap(end - size, size, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			    MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	}
	if (page == MAP_FAILED)
		SKIP(return, "the last page is in use");
	full.size = SIZE_MIN;
	memcpy(end - SIZE_MIN, &full, SIZE_MIN);
	EXPECT_EQ(0, ioctl(self->fd, PROCMAP_QUERY, end - SIZE_MIN));
	EXPECT_EQ(0, memcmp(end - SIZE_MIN, &full, SIZE_MIN));
}

TEST_F(scene, struct_without_build_id_field_can_have_a_name)
{
	struct procmap_query query = QUERY(.query_addr = start_of(FILE_R),
					   .vma_name_addr = (uintptr_t)self->name,
					   .vma_name_size = sizeof(self->name));

	query.size = offsetof(struct procmap_query, build_id_addr);
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_STREQ(SCENE_NAME, self->name);
}

/* An address beyond the size is 0, also if other bytes follow in memory. */
TEST_F(scene, buffer_size_without_a_field_for_its_address_is_einval)
{
	struct procmap_query query = query_for_all(self, start_of(FILE_R));

	query.size = offsetof(struct procmap_query, build_id_addr);
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
	query.size = offsetof(struct procmap_query, vma_name_addr);
	query.build_id_size = 0;
	EXPECT_EQ(-EINVAL, procmap_query(self->fd, &query));
}

TEST_F_TIMEOUT(scene, nonzero_byte_past_the_struct_is_e2big, LONG_TIMEOUT)
{
	struct procmap_query query = QUERY(.query_addr = start_of(FILE_R));
	uint8_t *const bytes = calloc(1, page_size());
	size_t i;

	query.size = page_size();
	memcpy(bytes, &query, SIZE);
	for (i = SIZE; i < page_size(); i += i < 4096 ? 1 : 61) {
		bytes[i] = 1;
		ASSERT_EQ(-1, ioctl(self->fd, PROCMAP_QUERY, bytes)) {
			TH_LOG("byte %zu", i);
		}
		ASSERT_EQ(E2BIG, errno);
		bytes[i] = 0;
	}
	/* A byte past the size is not part of the structure. */
	((struct procmap_query *)bytes)->size = SIZE;
	bytes[SIZE] = 1;
	EXPECT_EQ(0, ioctl(self->fd, PROCMAP_QUERY, bytes));
}

TEST_F(scene, size_over_a_page_is_e2big_and_too_small_is_einval)
{
	const struct {
		uint64_t size;
		int err;
	} sizes[] = {
		{ 0, -EINVAL },
		{ SIZE_MIN - 1, -EINVAL },
		{ page_size() + 1, -E2BIG },
		{ 2 * page_size(), -E2BIG },
		{ (1ull << 32) + SIZE, -E2BIG },
		{ ~0ull, -E2BIG },
	};
	struct procmap_query *const query = calloc(4, page_size());
	unsigned int i;

	*query = QUERY(.query_addr = start_of(FILE_R));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		query->size = sizes[i].size;
		EXPECT_EQ(sizes[i].err, procmap_query(self->fd, query)) {
			TH_LOG("size %#jx", (uintmax_t)sizes[i].size);
		}
	}
}

/* The buffers. */

/* The size is a limit: the kernel must not check that all of the buffer is there. */
TEST_F(scene, only_the_bytes_that_are_returned_need_room)
{
	static const uint32_t limits[] = { 0, INT32_MAX, UINT32_MAX };
	char *const name = map_to_page_end(sizeof(SCENE_NAME), PROT_READ | PROT_WRITE);
	uint8_t *const id = map_to_page_end(BUILD_ID_SIZE, PROT_READ | PROT_WRITE);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		struct procmap_query query = QUERY(.query_addr = start_of(FILE_R),
			.vma_name_addr = (uintptr_t)name,
			.vma_name_size = limits[i] ?: sizeof(SCENE_NAME),
			.build_id_addr = (uintptr_t)id,
			.build_id_size = limits[i] ?: BUILD_ID_SIZE);

		ASSERT_EQ(0, procmap_query(self->fd, &query));
		EXPECT_EQ(sizeof(SCENE_NAME), query.vma_name_size);
		EXPECT_STREQ(SCENE_NAME, name);
		EXPECT_EQ(BUILD_ID_SIZE, query.build_id_size);
		EXPECT_EQ(0, memcmp(scene_id, id, BUILD_ID_SIZE));
	}
}

TEST_F(scene, only_the_bytes_that_are_returned_are_written)
{
	struct procmap_query query = query_for_all(self, start_of(FILE_R));
	uint8_t id[2 * BUILD_ID_SIZE];

	memset(id, FILL, sizeof(id));
	query.build_id_addr = (uintptr_t)id;
	query.build_id_size = sizeof(id);
	ASSERT_EQ(0, procmap_query(self->fd, &query));
	EXPECT_TRUE(is_filled(self->name + sizeof(SCENE_NAME),
			      sizeof(self->name) - sizeof(SCENE_NAME), FILL));
	EXPECT_TRUE(is_filled(id + BUILD_ID_SIZE, BUILD_ID_SIZE, FILL));
}

/* An address is checked by writing to it, so a bad one is no error here. */
TEST_F(scene, buffers_are_not_looked_at_when_there_is_nothing_to_write)
{
	struct procmap_query query = query_for_all(self, end_of(FILE_R));

	query.vma_name_addr = 8;
	query.build_id_addr = 8;
	EXPECT_EQ(-ENOENT, procmap_query(self->fd, &query));
	query.query_addr = start_of(PRIVATE_RW);
	EXPECT_EQ(0, procmap_query(self->fd, &query));
}

TEST_F(scene, buffer_that_cannot_be_written_is_efault)
{
	const uint64_t addrs[] = {
		8, (uintptr_t)map_to_page_end(0, 0),
		(uintptr_t)map_to_page_end(page_size(), PROT_READ),
		1ull << 47, 1ull << 63, ~7ull,
	};
	struct procmap_query query;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		query = query_for_all(self, start_of(FILE_R));
		query.vma_name_addr = addrs[i];
		EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
		query = query_for_all(self, start_of(FILE_R));
		query.build_id_addr = addrs[i];
		EXPECT_EQ(-EFAULT, procmap_query(self->fd, &query));
	}
}

/* Flags, commands and files. */

TEST_F(scene, unknown_flag_is_einval)
{
	const uint64_t known = QUERY_FILTERS | QUERY_NEXT;
	struct procmap_query query;
	uint64_t flag;
	int err;

	for (flag = 1; flag; flag <<= 1) {
		err = query_fields(self->fd, start_of(FILE_SHARED_RX), flag, &query);
		EXPECT_EQ(!(known & flag), err == -EINVAL);
		err = query_fields(self->fd, start_of(FILE_SHARED_RX),
				   flag | PROCMAP_QUERY_VMA_READABLE, &query);
		EXPECT_EQ(!(known & flag), err == -EINVAL);
	}
}

/* The size and the direction are part of the command's number. */
TEST_F(scene, another_command_is_enotty)
{
	const unsigned int commands[] = {
		_IOC(_IOC_NONE, 'f', 17, 0),
		_IOC(_IOC_READ, 'f', 17, SIZE),
		_IOC(_IOC_WRITE, 'f', 17, SIZE),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 1),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', 16, SIZE),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', 18, SIZE),
		_IOC(_IOC_READ | _IOC_WRITE, 'g', 17, SIZE),
	};
	struct procmap_query query = QUERY(.query_addr = start_of(FILE_R));
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-1, ioctl(self->fd, commands[i], &query));
		EXPECT_EQ(ENOTTY, errno);
	}
}

TEST_F(scene, query_of_another_file_is_enotty)
{
	static const char *const paths[] = {
		"/proc/self/smaps", "/proc/self/smaps_rollup", "/proc/self/stat",
	};
	struct procmap_query query;
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-ENOTTY, query_fields(fd, start_of(FILE_R), 0, &query));
		close(fd);
	}
}

/* A buffer has an address and a size, or neither. */
TEST_F(scene, half_of_a_buffer_is_einval)
{
	struct procmap_query bad[] = {
		QUERY(.query_addr = start_of(FILE_R), .vma_name_addr = 8),
		QUERY(.query_addr = start_of(FILE_R), .vma_name_size = 8),
		QUERY(.query_addr = start_of(FILE_R), .build_id_addr = 8),
		QUERY(.query_addr = start_of(FILE_R), .build_id_size = 8),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, procmap_query(self->fd, &bad[i])) {
			TH_LOG("query %u", i);
		}
	}
}

/*
 * All faults at once, and then one less each time, in the order in which they are looked
 * for. The kernel cannot write the structure. EINTR and ENOMEM cannot be made here.
 */
TEST_F(scene, query_with_many_faults_reports_the_first)
{
	uint64_t *const only_size = map_to_page_end(sizeof(*only_size), PROT_READ | PROT_WRITE);
	const int exited = open_maps_of_exited();
	const struct procmap_query *read_only;
	struct procmap_query *const query = map_twice((const void **)&read_only);

	EXPECT_EQ(-ENOTTY, call_ioctl(exited, PROCMAP_QUERY + 1, NULL));
	EXPECT_EQ(-EFAULT, call_ioctl(exited, PROCMAP_QUERY, NULL));
	*only_size = page_size() + 1;
	EXPECT_EQ(-E2BIG, call_ioctl(exited, PROCMAP_QUERY, only_size));
	*only_size = SIZE_MIN - 1;
	EXPECT_EQ(-EINVAL, call_ioctl(exited, PROCMAP_QUERY, only_size));
	*only_size = SIZE;
	EXPECT_EQ(-EFAULT, call_ioctl(exited, PROCMAP_QUERY, only_size));

	query[0] = QUERY(.query_flags = 0x80, .vma_name_addr = 1, .build_id_addr = 1);
	query[1].size = 1;
	query->size = SIZE + sizeof(query->size);
	EXPECT_EQ(-E2BIG, call_ioctl(exited, PROCMAP_QUERY, read_only));
	query->size = SIZE;
	EXPECT_EQ(-EINVAL, call_ioctl(exited, PROCMAP_QUERY, read_only));
	query->query_flags = 0;
	query->vma_name_size = sizeof(SCENE_NAME) - 1;
	query->build_id_size = BUILD_ID_SIZE - 1;
	EXPECT_EQ(-ESRCH, call_ioctl(exited, PROCMAP_QUERY, read_only));
	EXPECT_EQ(-ENOENT, call_ioctl(self->fd, PROCMAP_QUERY, read_only));
	query->query_addr = start_of(FILE_R);
	EXPECT_EQ(-ENAMETOOLONG, call_ioctl(self->fd, PROCMAP_QUERY, read_only));
	query->vma_name_size++;
	EXPECT_EQ(-ENAMETOOLONG, call_ioctl(self->fd, PROCMAP_QUERY, read_only));
	query->build_id_size++;
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, PROCMAP_QUERY, read_only));
	query->vma_name_addr = (uintptr_t)self->name;
	query->build_id_addr = (uintptr_t)self->id;
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, PROCMAP_QUERY, read_only));
	EXPECT_EQ(0, call_ioctl(self->fd, PROCMAP_QUERY, query));
}

TEST_HARNESS_MAIN
