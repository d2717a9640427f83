// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_SCAN takes build IDs from resident pages only, and says where pages would
 * have to be read.
 */
#include <linux/userfaultfd.h>
#include <stdatomic.h>

#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

#define NOT_READ	PROCMAP_VMA_BUILD_ID_NOT_READ

/* A file on an ext4, which nothing of is resident. */
FIXTURE(evicted)
{
	int maps;
	int fd;
	char *addr;		/* two mappings of a page each */
	struct scan_buffers buffers;
};

FIXTURE_SETUP(evicted)
{
	const char *missing;

	SKIP_WITHOUT_SCAN();
	missing = mount_scratch_ext4();
	if (missing)
		SKIP_SETUP(missing);
	self->maps = open_maps(0);
	self->fd = open(SCRATCH_DISK "/elf", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	ASSERT_TRUE(write_elf(self->fd, scene_id));
	ASSERT_TRUE(evict_file(self->fd));
	self->addr = mmap(NULL, 2 * page_size(), PROT_READ, MAP_PRIVATE, self->fd, 0);
	ASSERT_EQ(0, mprotect(self->addr + page_size(), page_size(), PROT_NONE));
	self->buffers = make_scan_buffers(2, PATH_MAX);
}

FIXTURE_TEARDOWN(evicted)
{
}

/* The second mapping of the file has what the first one has, also its flag. */
TEST_F(evicted, is_not_read_and_has_a_flag_if_its_build_id_is_wanted)
{
	const uint64_t start = (uintptr_t)self->addr;
	struct procmap_scan_arg arg;
	uint64_t want;
	unsigned int n;

	for (want = 0; want <= SCAN_ALL; want++) {
		arg = scan_arg(&self->buffers, start, start + 2 * page_size(), want);
		ASSERT_EQ(2, procmap_scan(self->maps, &arg));
		for (n = 0; n < 2; n++) {
			EXPECT_EQ(want & PROCMAP_SCAN_BUILD_IDS ? NOT_READ : 0u,
				  self->buffers.vec[n].flags & NOT_READ);
			EXPECT_EQ(0u, self->buffers.vec[n].build_id_size);
		}
		EXPECT_EQ(0, resident_pages(self->fd));
	}
}

TEST_F(evicted, needs_no_data)
{
	const uint64_t start = (uintptr_t)self->addr;
	struct procmap_scan_arg arg = scan_arg(&self->buffers, start, start + page_size(),
					       PROCMAP_SCAN_BUILD_IDS);

	arg.data = 0;
	arg.data_size = 0;
	EXPECT_EQ(1, procmap_scan(self->maps, &arg));
	EXPECT_EQ(arg.end, arg.walk_end);
}

TEST_F(evicted, has_its_build_id_once_it_is_resident)
{
	const uint64_t start = (uintptr_t)self->addr;
	struct procmap_scan_arg arg = scan_arg(&self->buffers, start,
					       start + 2 * page_size(), SCAN_ALL);
	unsigned int n;

	ASSERT_EQ(ELFMAG0, atomic_load((_Atomic uint8_t *)self->addr));
	ASSERT_EQ(2, procmap_scan(self->maps, &arg));
	for (n = 0; n < 2; n++) {
		EXPECT_TRUE(has_build_id(&arg, &self->buffers.vec[n], scene_id,
					 BUILD_ID_SIZE));
		EXPECT_EQ(0u, self->buffers.vec[n].flags & NOT_READ);
	}
}

/* A file without a build ID has neither that nor the flag. */
TEST_F(evicted, that_is_no_elf_file_has_no_flag_once_it_is_resident)
{
	const uint64_t start = (uintptr_t)self->addr;
	struct procmap_scan_arg arg = scan_arg(&self->buffers, start, start + page_size(),
					       SCAN_ALL);

	ASSERT_TRUE(write_all(self->fd, "none", 4));
	ASSERT_EQ(1, procmap_scan(self->maps, &arg));
	EXPECT_EQ(0u, self->buffers.vec->flags & NOT_READ);
	EXPECT_EQ(0u, self->buffers.vec->build_id_size);
	/* Of an empty file, there is nothing to be read. */
	ASSERT_EQ(0, ftruncate(self->fd, 0));
	ASSERT_EQ(1, procmap_scan(self->maps, &arg));
	EXPECT_EQ(0u, self->buffers.vec->flags & NOT_READ);
}

/* Looking at a missing page of shared memory does not fill it in. */
TEST(missing_page_of_shared_memory_stays_missing)
{
	const int fd = memfd_create("missing", MFD_CLOEXEC);
	const struct scan_buffers buffers = make_scan_buffers(1, PATH_MAX);
	struct procmap_scan_arg arg;
	const char *missing;
	uint64_t start;
	int uffd;

	SKIP_WITHOUT_SCAN();
	missing = open_userfaultfd(&uffd, UFFD_FEATURE_MISSING_SHMEM);
	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, ftruncate(fd, page_size()));
	start = (uintptr_t)mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_TRUE(watch_missing_page(uffd, (void *)(uintptr_t)start));
	arg = scan_arg(&buffers, start, start + page_size(), SCAN_ALL);
	ASSERT_EQ(1, procmap_scan(open_maps(0), &arg));
	EXPECT_EQ(NOT_READ, buffers.vec->flags & NOT_READ);
	EXPECT_EQ(0, resident_pages(fd));
}

TEST_HARNESS_MAIN
