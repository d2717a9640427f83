// SPDX-License-Identifier: GPL-2.0
/*
 * Test the names and build IDs that PROCMAP_SCAN puts to its data buffer: how a scan goes on
 * when a buffer is full, what records may share, and names that are too long.
 */
#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

#define VEC_LEN		1024
#define DATA_SIZE	(64 * 4096)

/* Mappings of one page each, from AREA on. Records may share what they have, or not. */
FIXTURE(pages)
{
	int fd;
	struct scan_buffers buffers;
};

FIXTURE_SETUP(pages)
{
	SKIP_WITHOUT_SCAN();
	self->fd = open_maps(0);
	self->buffers = make_scan_buffers(VEC_LEN, DATA_SIZE);
}

FIXTURE_TEARDOWN(pages)
{
}

/* Neighbours differ, or the kernel would merge them. */
static bool map_page_of(unsigned int page, int fd)
{
	return map_area(page, 1, page % 2 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, fd);
}

/* Scan them with data for all, also if none shares anything. */
static void expect_right_pages(struct __test_metadata *const _metadata,
			       const struct _test_data_pages *self, unsigned int nr)
{
	struct procmap_scan_arg arg = scan_arg(&self->buffers, AREA, addr_of(nr), SCAN_ALL);
	struct maps text;

	ASSERT_EQ(0, read_smaps(0, &text));
	ASSERT_EQ(0, read_build_ids(self->fd, &text));
	ASSERT_EQ((int)nr, procmap_scan(self->fd, &arg));
	EXPECT_STREQ("", wrong_scan(&arg, nr, &text));
	EXPECT_EQ(arg.end, arg.walk_end);
	free_maps(&text);
}

/* One file with two paths, by turns: records must not share by inode. */
TEST_F(pages, of_a_file_with_two_paths_keep_them)
{
	char first[] = "/tmp/procmap-scan-XXXXXX", second[64];
	unsigned int i;
	int fds[2];

	fds[0] = mkstemp(first);
	snprintf(second, sizeof(second), "%s-2", first);
	ASSERT_TRUE(write_elf(fds[0], scene_id));
	ASSERT_EQ(0, link(first, second));
	fds[1] = open(second, O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, fds[i % 3 == 2]));
	expect_right_pages(_metadata, self, 300);
	EXPECT_EQ(0, unlink(first));
	EXPECT_EQ(0, unlink(second));
}

/* Only the build IDs differ: records must not share by name. */
TEST_F(pages, of_files_with_one_name_keep_their_build_ids)
{
	uint8_t id[BUILD_ID_SIZE];
	unsigned int i;

	for (i = 0; i < 200; i++) {
		memset(id, i, sizeof(id));
		ASSERT_TRUE(map_page_of(i, make_elf("same", id)));
	}
	expect_right_pages(_metadata, self, 200);
}

/* More mappings in a row than a scan copies at once. */
TEST_F(pages, of_one_file_have_its_name_and_build_id)
{
	const int fd = make_elf("one", scene_id);
	unsigned int i;

	for (i = 0; i < 300; i++)
		ASSERT_TRUE(map_page_of(i, fd));
	expect_right_pages(_metadata, self, 300);
}

/* Paths of more bytes than a scan copies at once: none of them is too long. */
TEST_F(pages, of_many_long_paths_have_them)
{
	char name[250];
	unsigned int i;

	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%0249u", i);
		ASSERT_TRUE(map_page_of(i, make_elf(name, scene_id)));
	}
	expect_right_pages(_metadata, self, 100);
}

/* Even if records have been copied out before: a scan copies fewer than 40 at once. */
TEST_F(pages, that_have_no_memory_in_the_array_are_efault)
{
	struct procmap_scan_arg arg = scan_arg(&self->buffers, AREA, addr_of(100), 0);
	const int fd = make_elf("many", scene_id);
	unsigned int i;

	for (i = 0; i < 100; i++)
		ASSERT_TRUE(map_page_of(i, fd));
	arg.vec = (uintptr_t)map_to_page_end(40 * sizeof(struct procmap_vma),
					     PROT_READ | PROT_WRITE);
	EXPECT_EQ(-EFAULT, procmap_scan(self->fd, &arg));
	arg.vec_len = 40;
	EXPECT_EQ(40, procmap_scan(self->fd, &arg));
}

/* data_needed is set as soon as a record does not fit. */
TEST_F(pages, are_scanned_on_with_as_much_data_as_they_need)
{
	static const uint64_t filters[] = {
		0, PROCMAP_VMA_READABLE | PROCMAP_VMA_FILE_BACKED,
	};
	static const uint64_t wants[] = { SCAN_ALL, PROCMAP_SCAN_BUILD_IDS };
	struct procmap_scan_arg arg;
	struct maps text;
	unsigned int i;

	ASSERT_TRUE(map_scene());
	ASSERT_EQ(0, read_smaps(0, &text));
	ASSERT_EQ(0, read_build_ids(self->fd, &text));
	for (i = 0; i < 8 * 200; i++) {
		arg = scan_arg(&self->buffers, AREA, start_of(NR_MAPPINGS), wants[i % 2]);
		/* A range that begins in a mapping. */
		if (i / 2 % 2)
			arg.start = start_of(FILE_R) + page_size();
		arg.filter = filters[i / 4 % 2];
		arg.vec_len = i / 8 % 3 ? VEC_LEN : 1;
		arg.data_size = i / 8;
		ASSERT_STREQ("", wrong_walk(self->fd, &self->buffers, arg, &text)) {
			TH_LOG("run %u", i);
		}
	}
}

/* What does not fit ends the scan before it, and ENOSPC is the error of the first alone. */
TEST_F(pages, that_have_no_place_in_the_data_are_enospc_if_they_are_first)
{
	struct procmap_scan_arg arg;

	ASSERT_TRUE(map_scene());
	arg = scan_arg(&self->buffers, start_of(FILE_R), start_of(PRIVATE_R), SCAN_ALL);
	arg.data_size = sizeof(SCENE_NAME) + BUILD_ID_SIZE - 1;
	EXPECT_EQ(-ENOSPC, procmap_scan(self->fd, &arg));
	EXPECT_EQ(arg.data_size + 1, arg.data_needed);
	EXPECT_EQ(arg.start, arg.walk_end);
	arg.start = start_of(PRIVATE_RW);
	EXPECT_LT(0, procmap_scan(self->fd, &arg));
	EXPECT_LT(arg.start, arg.walk_end);
	arg.data_size = arg.data_needed;
	arg.start = start_of(FILE_R);
	EXPECT_LT(0, procmap_scan(self->fd, &arg));
}

/*
 * A path that is too long needs no data, but a build ID does. Two mappings in a row have it,
 * between shared memory.
 */
TEST_F_TIMEOUT(pages, of_long_paths_are_passed_with_data_for_what_is_returned, LONG_TIMEOUT)
{
	static const size_t lengths[] = { PATH_MAX - 1, PATH_MAX, 3 * PATH_MAX };
	char directory[64], path[3 * PATH_MAX + 1];
	struct procmap_scan_arg arg;
	struct maps text;
	unsigned int i, n;
	int fd;

	ASSERT_TRUE(map_area(0, 4, PROT_READ, MAP_SHARED | MAP_POPULATE, -1));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		fd = make_long_path(directory, path, lengths[i]);
		ASSERT_TRUE(write_elf(fd, scene_id) && map_page_of(1, fd) &&
			    map_page_of(2, fd) && !close(fd));
		ASSERT_EQ(0, read_smaps(0, &text));
		ASSERT_EQ(0, read_build_ids(self->fd, &text));
		for (n = 0; n < 4 * (SCAN_ALL + 1); n++) {
			arg = scan_arg(&self->buffers, AREA, addr_of(4), n / 4);
			arg.vec_len = n % 4 + 1;
			arg.data_size = 0;
			ASSERT_STREQ("", wrong_walk(self->fd, &self->buffers, arg, &text)) {
				TH_LOG("length %zu, run %u", lengths[i], n);
			}
		}
		EXPECT_TRUE(remove_directory(directory));
		free_maps(&text);
	}
}

TEST_HARNESS_MAIN
