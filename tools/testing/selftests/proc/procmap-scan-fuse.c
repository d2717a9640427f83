// SPDX-License-Identifier: GPL-2.0
/*
 * Test that nobody can hold up a reader of build IDs by PROCMAP_SCAN: neither a
 * FUSE server, nor a slow device.
 */
#include "procmap-fuse.h"
#include "procmap-scan.h"

static void skip_without_ioctl(struct __test_metadata *const _metadata)
{
	skip_without_scan(_metadata);
}

static int get_build_id(int maps, uint64_t addr, uint8_t id[20])
{
	struct procmap_vma vma;
	const struct room room = {
		.vec = &vma,
		.vec_len = 1,
		.data = (char *)id,
		.data_size = 20,
	};
	struct procmap_scan_arg arg = ask(&room, addr, addr + 1, BUILD_IDS);
	const int nr = procmap_scan(maps, &arg);

	return nr == 1 ? (int)vma.build_id_size : -EBADMSG;
}

/*
 * A scan over several files that blocks while it reads one of them. It may never
 * come back, so it holds none of the others, and nothing else of the target.
 */
#define OTHER_DIR	SCRATCH "/other"
#define NR_FILE_PAGES	9
#define SLOW_PAGE	5

/* In memory that the reader shares. */
struct several {
	struct procmap_scan_arg arg;
	int maps;
	int nr;
	struct procmap_vma vec[NR_FILE_PAGES];
	char data[1024];
};

FIXTURE(several_files)
{
	struct fuse fuse;
	struct child target;
	struct child reader;
	struct several *several;
	struct truth truth;
};

/* One page is of the slow file, the others are of one that is in memory. */
static int be_target(int control, void *arg)
{
	const int other = open(OTHER_DIR "/file", O_RDONLY);
	const int slow = open(SCRATCH_EXT4 "/file", O_RDONLY);
	unsigned int i;

	for (i = 0; i < NR_FILE_PAGES; i++)
		if (mmap(page_at(i), page_size(),
			 i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE,
			 i == SLOW_PAGE ? slow : other, 0) != page_at(i))
			return 1;
	close(other);
	close(slow);
	notify(control);
	await(control);
	return 0;
}

static int be_scanner(int control, void *arg)
{
	struct several *const several = arg;

	several->nr = procmap_scan(several->maps, &several->arg);
	notify(control);
	return 0;
}

static bool make_other_file(void)
{
	bool made;
	int fd;

	if (mkdir(OTHER_DIR, 0700) || mount("tmpfs", OTHER_DIR, "tmpfs", 0, NULL))
		return false;
	fd = open(OTHER_DIR "/file", O_RDWR | O_CREAT, 0700);
	made = write_elf(fd, build_id);
	close(fd);
	return made;
}

static bool evict_slow_file(void)
{
	const int fd = open(SCRATCH_EXT4 "/file", O_RDONLY);
	const bool evicted = !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);

	close(fd);
	return evicted && evict_image();
}

FIXTURE_SETUP(several_files)
{
	struct several *several;
	const char *missing;

	skip_without_scan(_metadata);
	missing = mount_slow_device(_metadata, &self->fuse);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(make_other_file());
	several = mmap(NULL, sizeof(*several), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(several != MAP_FAILED);
	self->several = several;
	ASSERT_TRUE(start_child(&self->target, be_target, NULL));
	ASSERT_TRUE(await(self->target.control));
	several->maps = open_maps(self->target.pid);
	ASSERT_LE(0, several->maps);
	several->arg = ask(&(struct room) {
			.vec = several->vec,
			.vec_len = NR_FILE_PAGES,
			.data = several->data,
			.data_size = sizeof(several->data),
		}, AREA, addr_of(NR_FILE_PAGES), ALL);

	/* The truth has the ID of the slow file, which is forgotten again. */
	ASSERT_EQ(0, read_truth(several->maps, &self->truth));
	ASSERT_TRUE(evict_slow_file());
	*self->fuse.stalls = true;
	ASSERT_TRUE(start_child(&self->reader, be_scanner, several));
	ASSERT_TRUE(is_server_read(&self->fuse, &self->reader));
	ASSERT_TRUE(await(self->fuse.server.control));
}

FIXTURE_TEARDOWN(several_files)
{
	*self->fuse.stalls = false;
	notify(self->fuse.server.control);
	stop_child(&self->reader);
	stop_child(&self->target);
	umount2(SCRATCH_EXT4, MNT_DETACH);
	stop_child(&self->fuse.server);
}

static void let_server_answer(struct __test_metadata *const _metadata,
			      struct _test_data_several_files *self)
{
	*self->fuse.stalls = false;
	ASSERT_TRUE(notify(self->fuse.server.control));
	ASSERT_TRUE(await(self->reader.control));
}

TEST_F(several_files, are_scanned_once_the_slow_one_is_read)
{
	let_server_answer(_metadata, self);
	EXPECT_EQ(NR_FILE_PAGES, self->several->nr);
	EXPECT_STREQ("", wrong_scan(&self->truth, &self->several->arg,
				    self->several->nr));
}

/* A file system can be unmounted only if no file of it is held. */
TEST_F(several_files, are_not_held_while_the_slow_one_is_read)
{
	size_t next;

	ASSERT_EQ(-1, umount2(OTHER_DIR, 0));
	ASSERT_EQ(EBUSY, errno);
	stop_child(&self->target);
	EXPECT_EQ(0, umount2(OTHER_DIR, 0));
	EXPECT_EQ(-1, umount2(SCRATCH_EXT4, 0));
	EXPECT_EQ(EBUSY, errno);

	/* The address space is gone, but what was found of it is right. */
	let_server_answer(_metadata, self);
	EXPECT_LE(SLOW_PAGE, self->several->nr);
	EXPECT_STREQ("", wrong_part(&self->truth, &self->several->arg,
				    self->several->nr, &next));
}

TEST_HARNESS_MAIN
