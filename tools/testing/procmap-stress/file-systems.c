// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY reads build IDs from each kind of file system, and from swap, and
 * none of a block device. In a file, the table and the note cross the ends of pages.
 */
#include <sched.h>
#include <stdatomic.h>

#include "kselftest_harness.h"
#include "stress_util.h"

#define LOOP	"losetup -f --show " SCRATCH_IMAGE " >" SCRATCH "/loop"

static bool has_id(const void *addr)
{
	uint8_t id[BUILD_ID_SIZE];
	struct procmap_query query;

	return !query_build_id(open_maps(0), (uintptr_t)addr, &query, id, sizeof(id)) &&
	       query.build_id_size == sizeof(id) && !memcmp(id, scene_id, sizeof(id));
}

/* Map the first page. */
static void *map_file(int fd)
{
	return mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
}

static bool make_file(const char *path)
{
	const size_t table = page_size() - 8, note = 2 * page_size() - 8;
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	struct elf_file elf = elf_with_id(scene_id);
	char *const bytes = calloc(3, page_size());

	elf.ehdr.e_phoff = table;
	elf.phdrs[1].p_offset = note;
	memcpy(bytes, &elf, sizeof(elf));
	memcpy(bytes + table, elf.phdrs, sizeof(elf.phdrs));
	memcpy(bytes + note, &elf.notes[1], sizeof(elf.notes[1]));
	return write_all(fd, bytes, note + sizeof(elf.notes[1])) && !close(fd);
}

FIXTURE(file_system)
{
	int fd;
};

FIXTURE_VARIANT(file_system)
{
	const char *make;	/* in the directory, where tree/elf is the file */
	const char *mount;	/* to disk */
};

FIXTURE_VARIANT_ADD(file_system, overlay) {
	"mkdir empty", "-t overlay -o lowerdir=tree:empty none",
};

FIXTURE_VARIANT_ADD(file_system, ext4) { "mkfs.ext4 -q -d tree image 2M", "-o loop,ro image" };
FIXTURE_VARIANT_ADD(file_system, vfat) {
	"mkfs.vfat -C image 4096 && mount -o loop image disk && cp tree/elf disk && umount disk",
	"-o loop,ro image",
};

FIXTURE_VARIANT_ADD(file_system, squashfs) {
	"mksquashfs tree image -no-progress", "-o loop,ro image",
};

FIXTURE_SETUP(file_system)
{
	const char *const missing = mount_scratch();
	char command[256];

	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(!chdir(SCRATCH) && !mkdir("tree", 0700) && !mkdir("disk", 0700));
	ASSERT_TRUE(make_file("tree/elf"));
	snprintf(command, sizeof(command), "%s && mount %s disk", variant->make,
		 variant->mount);
	if (!run_in_shell(command))
		SKIP_SETUP("cannot mount its file system");
	self->fd = open("disk/elf", O_RDONLY | O_CLOEXEC);
}

FIXTURE_TEARDOWN(file_system)
{
}

/* But an overlay of a tmpfs. */
TEST_F_TIMEOUT(file_system, is_read_where_it_is_not_resident, LONG_TIMEOUT)
{
	void *const addr = map_file(self->fd);

	ASSERT_NE(MAP_FAILED, addr);
	EXPECT_TRUE(has_id(addr));
}

FIXTURE(loop)
{
};

FIXTURE_SETUP(loop)
{
	const char *const missing = mount_scratch();

	if (missing)
		SKIP_SETUP(missing);
}

FIXTURE_TEARDOWN(loop)
{
}

/* It has a page cache of its own, and an ELF file in it. */
TEST_F_TIMEOUT(loop, block_device_has_none, LONG_TIMEOUT)
{
	char path[32] = "";
	void *addr;

	ASSERT_TRUE(make_file(SCRATCH_IMAGE));
	if (!run_in_shell(LOOP))
		SKIP(return, "no loop device to be had, CONFIG_BLK_DEV_LOOP");
	read_file(SCRATCH "/loop", path, sizeof(path));
	path[strcspn(path, "\n")] = '\0';
	addr = map_file(open(path, O_RDONLY | O_CLOEXEC));
	EXPECT_TRUE(run_in_shell("losetup -d $(cat " SCRATCH "/loop)"));
	ASSERT_NE(MAP_FAILED, addr);
	ASSERT_EQ('E', atomic_load((_Atomic char *)addr + 1));
	EXPECT_FALSE(has_id(addr));
}

/* A page of a CPU's own list of new pages can only be swapped out there. */
static bool stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

TEST_F_TIMEOUT(loop, swapped_page_is_read, LONG_TIMEOUT)
{
	const int fd = make_elf("swapped", scene_id);
	char *const addr = map_file(fd);
	char text[2048] = "";

	if (!run_in_shell("truncate -s 1M " SCRATCH_IMAGE " && mkswap " SCRATCH_IMAGE " && "
			  LOOP " && swapon $(cat " SCRATCH "/loop)"))
		SKIP(return, "no swap, CONFIG_SWAP and CONFIG_BLK_DEV_LOOP");
	ASSERT_TRUE(stay_on_this_cpu() && write_elf(fd, scene_id));
	EXPECT_EQ(ELFMAG0, atomic_load((_Atomic char *)addr));
	EXPECT_EQ(0, madvise(addr, page_size(), MADV_PAGEOUT));
	read_file("/proc/self/smaps_rollup", text, sizeof(text));
	EXPECT_TRUE(strstr(text, "\nSwap:") && atoi(strstr(text, "\nSwap:") + 6));
	EXPECT_TRUE(has_id(addr));
	EXPECT_TRUE(run_in_shell("swapoff $(cat " SCRATCH "/loop); "
				 "losetup -d $(cat " SCRATCH "/loop)"));
}

TEST_HARNESS_MAIN
