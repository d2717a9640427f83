// SPDX-License-Identifier: GPL-2.0
/*
 * Test the ABI of PROCMAP_SCAN: the layout of its structures, each field, filter, range and
 * size, and each error.
 */
#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

#define SIZE		sizeof(struct procmap_scan_arg)
#define VMA_SIZE	sizeof(struct procmap_vma)

#define VEC_LEN		64
#define DATA_SIZE	4096

/* A process that looks at itself. */
FIXTURE(scene)
{
	int fd;
	struct maps text;
	struct scan_buffers buffers;
};

FIXTURE_SETUP(scene)
{
	SKIP_WITHOUT_SCAN();
	ASSERT_TRUE(map_scene());
	self->fd = open_maps(0);
	self->buffers = make_scan_buffers(VEC_LEN, DATA_SIZE);
	memset(self->buffers.vec, FILL, VEC_LEN * VMA_SIZE);
	memset(self->buffers.data, FILL, DATA_SIZE);
	ASSERT_EQ(0, read_smaps(0, &self->text));
	ASSERT_EQ(0, read_build_ids(self->fd, &self->text));
}

FIXTURE_TEARDOWN(scene)
{
}

/* Arguments for all of the scene, and for one mapping. */
static struct procmap_scan_arg scan_of_all(const struct _test_data_scene *self, uint64_t want)
{
	return scan_arg(&self->buffers, AREA, start_of(NR_MAPPINGS), want);
}

static struct procmap_scan_arg scan_of(const struct _test_data_scene *self,
				       unsigned int mapping, uint64_t want)
{
	return scan_arg(&self->buffers, start_of(mapping), end_of(mapping), want);
}

/* An array of records is aligned in 32 bits, too. */
TEST(structs_and_numbers_are_those_of_the_abi)
{
#define OFFSET(type, name, abi) \
	{ "offset of " #name, offsetof(struct type, name), abi }
#define SIZE_OF(type, name, abi) \
	{ "size of " #name, sizeof((*(struct type *)0).name), abi }
	static const struct {
		const char *what;
		size_t here, abi;
	} fields[] = {
		OFFSET(procmap_scan_arg, size, 0), SIZE_OF(procmap_scan_arg, size, 8),
		OFFSET(procmap_scan_arg, filter, 8), SIZE_OF(procmap_scan_arg, filter, 8),
		OFFSET(procmap_scan_arg, want, 16), SIZE_OF(procmap_scan_arg, want, 8),
		OFFSET(procmap_scan_arg, start, 24), SIZE_OF(procmap_scan_arg, start, 8),
		OFFSET(procmap_scan_arg, end, 32), SIZE_OF(procmap_scan_arg, end, 8),
		OFFSET(procmap_scan_arg, known_generation, 40),
		SIZE_OF(procmap_scan_arg, known_generation, 8),
		OFFSET(procmap_scan_arg, walk_end, 48), SIZE_OF(procmap_scan_arg, walk_end, 8),
		OFFSET(procmap_scan_arg, generation, 56),
		SIZE_OF(procmap_scan_arg, generation, 8),
		OFFSET(procmap_scan_arg, vec, 64), SIZE_OF(procmap_scan_arg, vec, 8),
		OFFSET(procmap_scan_arg, data, 72), SIZE_OF(procmap_scan_arg, data, 8),
		OFFSET(procmap_scan_arg, vec_len, 80), SIZE_OF(procmap_scan_arg, vec_len, 4),
		OFFSET(procmap_scan_arg, vma_size, 84), SIZE_OF(procmap_scan_arg, vma_size, 4),
		OFFSET(procmap_scan_arg, data_size, 88), SIZE_OF(procmap_scan_arg, data_size, 4),
		OFFSET(procmap_scan_arg, data_used, 92), SIZE_OF(procmap_scan_arg, data_used, 4),
		OFFSET(procmap_scan_arg, data_needed, 96),
		SIZE_OF(procmap_scan_arg, data_needed, 4),
		OFFSET(procmap_scan_arg, flags, 100), SIZE_OF(procmap_scan_arg, flags, 4),
		OFFSET(procmap_vma, start, 0), SIZE_OF(procmap_vma, start, 8),
		OFFSET(procmap_vma, end, 8), SIZE_OF(procmap_vma, end, 8),
		OFFSET(procmap_vma, flags, 16), SIZE_OF(procmap_vma, flags, 8),
		OFFSET(procmap_vma, page_size, 24), SIZE_OF(procmap_vma, page_size, 8),
		OFFSET(procmap_vma, offset, 32), SIZE_OF(procmap_vma, offset, 8),
		OFFSET(procmap_vma, inode, 40), SIZE_OF(procmap_vma, inode, 8),
		OFFSET(procmap_vma, dev_major, 48), SIZE_OF(procmap_vma, dev_major, 4),
		OFFSET(procmap_vma, dev_minor, 52), SIZE_OF(procmap_vma, dev_minor, 4),
		OFFSET(procmap_vma, name_offset, 56), SIZE_OF(procmap_vma, name_offset, 4),
		OFFSET(procmap_vma, name_size, 60), SIZE_OF(procmap_vma, name_size, 4),
		OFFSET(procmap_vma, build_id_offset, 64),
		SIZE_OF(procmap_vma, build_id_offset, 4),
		OFFSET(procmap_vma, build_id_size, 68), SIZE_OF(procmap_vma, build_id_size, 4),
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		EXPECT_EQ(fields[i].abi, fields[i].here) {
			TH_LOG("%s", fields[i].what);
		}
	}
	EXPECT_EQ(104u, SIZE);
	EXPECT_EQ(8u, _Alignof(struct procmap_scan_arg));
	EXPECT_EQ(72u, VMA_SIZE);
	EXPECT_EQ(8u, _Alignof(struct procmap_vma));
	EXPECT_EQ(0xc06866e0, PROCMAP_SCAN);
	EXPECT_EQ(0x01, PROCMAP_SCAN_NAMES);
	EXPECT_EQ(0x02, PROCMAP_SCAN_BUILD_IDS);
	EXPECT_EQ(0x01, PROCMAP_SCAN_CHANGED);
	EXPECT_EQ(0x01, PROCMAP_VMA_READABLE);
	EXPECT_EQ(0x02, PROCMAP_VMA_WRITABLE);
	EXPECT_EQ(0x04, PROCMAP_VMA_EXECUTABLE);
	EXPECT_EQ(0x08, PROCMAP_VMA_SHARED);
	EXPECT_EQ(0x10, PROCMAP_VMA_FILE_BACKED);
	EXPECT_EQ(0x20, PROCMAP_VMA_NAME_TOO_LONG);
	EXPECT_EQ(0x40, PROCMAP_VMA_BUILD_ID_NOT_READ);
}

/* All pages of the scene that can have a build ID are resident. */
TEST_F(scene, records_have_the_fields_of_the_text_and_what_is_wanted)
{
	uint64_t want;
	unsigned int i;

	for (want = 0; want <= SCAN_ALL; want++) {
		struct procmap_scan_arg arg = scan_of_all(self, want);

		ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
		EXPECT_STREQ("", wrong_scan(&arg, NR_MAPPINGS, &self->text));
		for (i = 0; i < NR_MAPPINGS; i++) {
			const bool has_id = want & PROCMAP_SCAN_BUILD_IDS && has_scene_id(i);
			const struct procmap_vma *const record = record_at(&arg, i);

			EXPECT_TRUE(has_build_id(&arg, record, scene_id,
						 has_id ? BUILD_ID_SIZE : 0));
			EXPECT_FALSE(record->flags & PROCMAP_VMA_BUILD_ID_NOT_READ);
		}
	}
}

TEST_F(scene, what_the_caller_left_in_outputs_does_not_matter)
{
	struct procmap_scan_arg zeros = scan_of(self, FILE_RW, SCAN_ALL), ones = zeros;

	ones.walk_end = ~0ull;
	ones.generation = ~0ull;
	ones.data_used = ~0u;
	ones.data_needed = ~0u;
	ones.flags = ~0u;
	ASSERT_EQ(1, procmap_scan(self->fd, &zeros));
	ASSERT_EQ(1, procmap_scan(self->fd, &ones));
	EXPECT_EQ(0, memcmp(&zeros, &ones, SIZE));
}

/* Filters and ranges. */

TEST_F(scene, all_filters_that_are_given_must_hold)
{
	struct procmap_scan_arg arg;
	uint64_t filter;
	int nr;

	for (filter = 0; filter <= SCAN_FILTERS; filter++) {
		arg = scan_of_all(self, SCAN_ALL);
		arg.filter = filter;
		nr = procmap_scan(self->fd, &arg);
		EXPECT_STREQ("", wrong_scan(&arg, nr, &self->text)) {
			TH_LOG("filter %#jx", (uintmax_t)filter);
		}
		EXPECT_EQ(arg.end, arg.walk_end);
	}
}

/*
 * A record has the whole mapping, wherever the range begins and ends. So the next scan
 * begins past it, and does not return it again.
 */
TEST_F(scene, records_of_every_range_are_those_of_the_text)
{
	const uint64_t page = page_size(), scene_end = start_of(NR_MAPPINGS);
	struct procmap_scan_arg arg;
	uint64_t start, end;
	int i, nr;

	for (start = AREA - page; start <= scene_end; start += page) {
		for (end = start + 1; end <= scene_end + 1; end += page) {
			for (i = -1; i <= 1; i++) {
				arg = scan_arg(&self->buffers, start, end + i, SCAN_ALL);
				nr = procmap_scan(self->fd, &arg);
				ASSERT_STREQ("", wrong_scan(&arg, nr, &self->text)) {
					TH_LOG("%#jx to %#jx", (uintmax_t)start,
					       (uintmax_t)end + i);
				}
				ASSERT_EQ(end + i, arg.walk_end);
			}
		}
	}
}

/* No process is needed to return nothing, but right arguments are. */
TEST_F(scene, scan_of_an_empty_range_is_complete_anywhere_for_any_process)
{
	const uint64_t addrs[] = {
		0, end_of(FILE_R), start_of(FILE_R), start_of(FILE_R) + page_size(),
		-(uint64_t)page_size(),
	};
	const int fds[] = { self->fd, open_maps_of_exited() };
	unsigned int i, j;

	ASSERT_LE(0, fds[1]);
	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		for (j = 0; j < ARRAY_SIZE(fds); j++) {
			struct procmap_scan_arg arg =
				scan_arg(&self->buffers, addrs[i], addrs[i], SCAN_ALL);

			EXPECT_EQ(0, procmap_scan(fds[j], &arg));
			EXPECT_EQ(addrs[i], arg.walk_end);
			EXPECT_EQ(0u, arg.data_used);
			arg.want |= 0x04;
			EXPECT_EQ(-EINVAL, procmap_scan(fds[j], &arg));
		}
	}
}

/* A kernel that cuts addresses to 32 bits would find mappings. */
TEST_F(scene, range_is_not_cut_to_32_bits)
{
	struct procmap_scan_arg arg = scan_of_all(self, 0);

	arg.start += 1ull << 32;
	arg.end += 1ull << 32;
	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
	EXPECT_EQ(arg.end, arg.walk_end);
}

/* The size of the structure, and of a record. */

/* A page without access follows: reading or writing more would be EFAULT. */
TEST_F_TIMEOUT(scene, longer_struct_with_zeros_is_taken, LONG_TIMEOUT)
{
	uint8_t *const end = map_to_page_end(0, PROT_READ | PROT_WRITE);
	struct procmap_scan_arg arg = scan_of(self, FILE_RW, 0);
	size_t size;

	for (size = SIZE; size <= page_size(); size += size < 4096 ? 1 : 61) {
		memset(end - size, 0, size);
		arg.size = size;
		memcpy(end - size, &arg, SIZE);
		ASSERT_EQ(1, ioctl(self->fd, PROCMAP_SCAN, end - size)) {
			TH_LOG("size %zu", size);
		}
		ASSERT_TRUE(is_filled(end - size + SIZE, size - SIZE, 0));
		EXPECT_EQ(start_of(FILE_RW), self->buffers.vec->start);
	}
}

TEST_F_TIMEOUT(scene, nonzero_byte_past_the_struct_is_e2big, LONG_TIMEOUT)
{
	struct procmap_scan_arg arg = scan_of(self, FILE_RW, 0);
	uint8_t *const bytes = calloc(1, page_size());
	size_t i;

	arg.size = page_size();
	memcpy(bytes, &arg, SIZE);
	for (i = SIZE; i < page_size(); i += i < 4096 ? 1 : 61) {
		bytes[i] = 1;
		ASSERT_EQ(-1, ioctl(self->fd, PROCMAP_SCAN, bytes)) {
			TH_LOG("byte %zu", i);
		}
		ASSERT_EQ(E2BIG, errno);
		bytes[i] = 0;
	}
	/* A byte past the size is not part of the structure. */
	((struct procmap_scan_arg *)bytes)->size = SIZE;
	bytes[SIZE] = 1;
	EXPECT_EQ(1, ioctl(self->fd, PROCMAP_SCAN, bytes));
}

TEST_F(scene, size_over_a_page_is_e2big_and_too_small_is_einval)
{
	const struct {
		uint64_t size;
		int err;
	} sizes[] = {
		{ 0, -EINVAL },
		{ SIZE - 1, -EINVAL },
		{ page_size() + 1, -E2BIG },
		{ 2 * page_size(), -E2BIG },
		{ (1ull << 32) + SIZE, -E2BIG },
		{ ~0ull, -E2BIG },
	};
	struct procmap_scan_arg *const arg = calloc(4, page_size());
	unsigned int i;

	*arg = scan_of(self, FILE_RW, 0);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		arg->size = sizes[i].size;
		EXPECT_EQ(sizes[i].err, procmap_scan(self->fd, arg)) {
			TH_LOG("size %#jx", (uintmax_t)sizes[i].size);
		}
	}
}

/* A caller may be built against another version of the record. */
TEST_F(scene, bytes_of_records_that_the_kernel_does_not_know_are_zeros)
{
	const uint32_t sizes[] = { 72, 80, 88, 128, 1024, page_size() - 8, page_size() };
	struct procmap_scan_arg plain = scan_of_all(self, SCAN_ALL), arg = plain;
	unsigned int i, n;

	ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &plain));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		const size_t all = NR_MAPPINGS * sizes[i];
		uint8_t *record = map_to_page_end(all, PROT_READ | PROT_WRITE);

		memset(record, FILL, all);
		arg.vec = (uintptr_t)record;
		arg.vma_size = sizes[i];
		ASSERT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
		for (n = 0; n < NR_MAPPINGS; n++, record += sizes[i]) {
			EXPECT_EQ(0, memcmp(record, &self->buffers.vec[n], VMA_SIZE));
			EXPECT_TRUE(is_filled(record + VMA_SIZE, sizes[i] - VMA_SIZE, 0));
		}
	}
}

TEST_F(scene, record_too_small_too_large_or_odd_is_einval)
{
	const uint32_t bad[] = {
		0, 8, 64, 71, 73, 76, 79, 84, page_size() - 1, page_size() + 1,
		page_size() + 8, 2 * page_size(), 0x80000048, 0xfffffff8,
	};
	struct procmap_scan_arg arg = scan_of_all(self, 0);
	unsigned int i;

	arg.vec = (uintptr_t)map_pages(NR_MAPPINGS * page_size());
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		arg.vma_size = bad[i];
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &arg)) {
			TH_LOG("vma_size %u", bad[i]);
		}
	}
	for (arg.vma_size = 72; arg.vma_size <= page_size(); arg.vma_size += 8)
		EXPECT_EQ(NR_MAPPINGS, procmap_scan(self->fd, &arg));
}

/* The buffers. */

/* The sizes are limits: the kernel must not check that all of the buffers is there. */
TEST_F(scene, only_what_is_returned_needs_memory)
{
	const uint32_t needed = sizeof(SCENE_NAME) + BUILD_ID_SIZE;
	struct procmap_scan_arg arg = scan_of(self, FILE_R, SCAN_ALL);

	arg.vec = (uintptr_t)map_to_page_end(VMA_SIZE, PROT_READ | PROT_WRITE);
	arg.data = (uintptr_t)map_to_page_end(needed, PROT_READ | PROT_WRITE);
	arg.vec_len = INT32_MAX;
	arg.data_size = UINT32_MAX;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&arg, 1, &self->text));
	EXPECT_EQ(needed, arg.data_used);
	arg.vec_len = 1;
	arg.data_size = needed;
	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&arg, 1, &self->text));
}

TEST_F(scene, only_what_is_returned_is_written)
{
	struct procmap_scan_arg arg = scan_of(self, FILE_R, SCAN_ALL);

	ASSERT_EQ(1, procmap_scan(self->fd, &arg));
	EXPECT_TRUE(is_filled(self->buffers.vec + 1, (VEC_LEN - 1) * VMA_SIZE, FILL));
	EXPECT_TRUE(is_filled(self->buffers.data + arg.data_used,
			      DATA_SIZE - arg.data_used, FILL));
}

/* An address is checked by writing to it, so a bad one is no error here. */
TEST_F(scene, buffers_are_not_looked_at_when_there_is_nothing_to_write)
{
	struct procmap_scan_arg arg = scan_of(self, PRIVATE_RW, SCAN_ALL);

	arg.data = 8;
	EXPECT_EQ(1, procmap_scan(self->fd, &arg));
	arg.start = end_of(PRIVATE_RW);
	arg.end = start_of(PRIVATE_RW + 1);
	arg.vec = 8;
	EXPECT_EQ(0, procmap_scan(self->fd, &arg));
}

TEST_F(scene, buffer_that_cannot_be_written_is_efault)
{
	const uint64_t addrs[] = {
		8, (uintptr_t)map_to_page_end(0, 0),
		(uintptr_t)map_to_page_end(page_size(), PROT_READ),
		1ull << 47, 1ull << 63, ~7ull,
	};
	struct procmap_scan_arg arg;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		arg = scan_of(self, FILE_R, SCAN_ALL);
		arg.vec = addrs[i];
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
		arg = scan_of(self, FILE_R, SCAN_ALL);
		arg.data = addrs[i];
		EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
	}
}

/* Filters, wants, commands and files. A flag that only records have is no filter. */

TEST_F(scene, unknown_filter_or_want_is_einval)
{
	struct procmap_scan_arg arg;
	uint64_t bit;

	for (bit = 1; bit; bit <<= 1) {
		arg = scan_of(self, FILE_SHARED_RX, 0);
		arg.filter = bit | PROCMAP_VMA_READABLE;
		EXPECT_EQ(!(bit & SCAN_FILTERS), procmap_scan(self->fd, &arg) == -EINVAL);
		arg = scan_of(self, FILE_SHARED_RX, bit | PROCMAP_SCAN_NAMES);
		EXPECT_EQ(!(bit & SCAN_ALL), procmap_scan(self->fd, &arg) == -EINVAL);
	}
}

/* The size and the direction are part of the command's number. */
TEST_F(scene, another_command_is_enotty)
{
	const unsigned int commands[] = {
		_IOC(_IOC_NONE, 'f', 0xe0, 0),
		_IOC(_IOC_READ, 'f', 0xe0, SIZE),
		_IOC(_IOC_WRITE, 'f', 0xe0, SIZE),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', 0xe0, 1),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', 0xdf, SIZE),
		_IOC(_IOC_READ | _IOC_WRITE, 'f', 0xe1, SIZE),
		_IOC(_IOC_READ | _IOC_WRITE, 'g', 0xe0, SIZE),
	};
	struct procmap_scan_arg arg = scan_of_all(self, 0);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-1, ioctl(self->fd, commands[i], &arg));
		EXPECT_EQ(ENOTTY, errno);
	}
}

TEST_F(scene, scan_of_another_file_is_enotty)
{
	static const char *const paths[] = {
		"/proc/self/smaps", "/proc/self/smaps_rollup", "/proc/self/stat",
	};
	struct procmap_scan_arg arg = scan_of_all(self, 0);
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-ENOTTY, procmap_scan(fd, &arg));
		close(fd);
	}
}

TEST_F(scene, range_or_buffer_that_cannot_be_is_einval)
{
	struct procmap_scan_arg bad[12];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = scan_of(self, FILE_R, SCAN_ALL);
	bad[0].start = 1;
	bad[1].start += page_size() / 2;
	bad[2].end = 0;
	bad[3].end = bad[3].start - 1;
	bad[4].vec = 0;
	bad[5].vec += 4;
	bad[6].vec_len = 0;
	bad[7].vec_len = 1u << 31;
	bad[8].data_size = 0;
	bad[9].data = 0;
	bad[10].data = 0;
	bad[10].want = 0;
	bad[11].want = 0;
	bad[11].data_size = 0;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, procmap_scan(self->fd, &bad[i])) {
			TH_LOG("scan %u", i);
		}
	}
}

/*
 * All faults at once, and then one less each time, in the order in which they are looked
 * for. Where the scan ended is written for an error, too: so that comes after all that is
 * wrong with the fields, and before the errors of a mapping. EINTR and ENOMEM cannot be
 * made here.
 */
TEST_F(scene, scan_with_many_faults_reports_the_first)
{
	const struct procmap_scan_arg good = scan_of(self, FILE_R, SCAN_ALL);
	uint64_t *const only_size = map_to_page_end(sizeof(*only_size), PROT_READ | PROT_WRITE);
	const int exited = open_maps_of_exited();
	const struct procmap_scan_arg *read_only;
	struct procmap_scan_arg *const arg = map_twice((const void **)&read_only);

	EXPECT_EQ(-ENOTTY, call_ioctl(exited, PROCMAP_SCAN + 1, NULL));
	EXPECT_EQ(-EFAULT, call_ioctl(exited, PROCMAP_SCAN, NULL));
	*only_size = page_size() + 1;
	EXPECT_EQ(-E2BIG, call_ioctl(exited, PROCMAP_SCAN, only_size));
	*only_size = SIZE - 1;
	EXPECT_EQ(-EINVAL, call_ioctl(exited, PROCMAP_SCAN, only_size));
	*only_size = SIZE;
	EXPECT_EQ(-EFAULT, call_ioctl(exited, PROCMAP_SCAN, only_size));

	arg[0] = good;
	arg[0].vma_size = 0;
	arg[0].size = SIZE + sizeof(arg->size);
	arg[1].size = 1;
	EXPECT_EQ(-E2BIG, call_ioctl(exited, PROCMAP_SCAN, read_only));
	arg->size = SIZE;
	EXPECT_EQ(-EINVAL, call_ioctl(exited, PROCMAP_SCAN, read_only));
	arg->vma_size = VMA_SIZE;
	EXPECT_EQ(-EFAULT, call_ioctl(exited, PROCMAP_SCAN, read_only));
	arg->vec = 8;
	arg->data = 1;
	arg->data_size = sizeof(SCENE_NAME) + BUILD_ID_SIZE - 1;
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, PROCMAP_SCAN, read_only));
	EXPECT_EQ(-ESRCH, call_ioctl(exited, PROCMAP_SCAN, arg));
	EXPECT_EQ(-ENOSPC, call_ioctl(self->fd, PROCMAP_SCAN, arg));
	arg->data_size++;
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, PROCMAP_SCAN, arg));
	arg->data = good.data;
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, PROCMAP_SCAN, arg));
	arg->vec = good.vec;
	EXPECT_EQ(1, call_ioctl(self->fd, PROCMAP_SCAN, arg));
}

TEST_HARNESS_MAIN
