// SPDX-License-Identifier: GPL-2.0
/*
 * Test PROCMAP_SCAN on other processes: all of their mappings are those of the text, and a
 * process that has none is an error.
 */
#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

#define DATA_SIZE	(1024 * 1024)

FIXTURE(process)
{
	struct child child;
	struct scan_buffers buffers;
};

FIXTURE_SETUP(process)
{
	SKIP_WITHOUT_SCAN();
	self->buffers = make_scan_buffers(1024, DATA_SIZE);
	ASSERT_TRUE(start_child(&self->child, keep_scene, NULL));
	ASSERT_TRUE(await(self->child.control));
}

FIXTURE_TEARDOWN(process)
{
	stop_child(&self->child);
}

/* All in one call, and in many that have memory for few mappings. */
TEST_F(process, has_the_mappings_of_its_text)
{
	static const uint32_t vec_lens[] = { 1000, 7 }, data_sizes[] = { DATA_SIZE, 3000 };
	const int fd = open_maps(self->child.pid);
	struct maps smaps;
	unsigned int i;

	ASSERT_EQ(0, read_smaps(self->child.pid, &smaps));
	ASSERT_EQ(0, read_build_ids(fd, &smaps));
	for (i = 0; i < ARRAY_SIZE(vec_lens); i++) {
		struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, SCAN_ALL);

		arg.vec_len = vec_lens[i];
		arg.data_size = data_sizes[i];
		EXPECT_STREQ("", wrong_walk(fd, &self->buffers, arg, &smaps));
	}
}

TEST_F(process, that_has_exited_is_esrch_from_any_address)
{
	struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, 0);
	const int fd = open_maps(self->child.pid);

	EXPECT_LT(NR_MAPPINGS, procmap_scan(fd, &arg));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_scan(fd, &arg));
	EXPECT_EQ(0u, arg.generation);
	arg.start = start_of(FILE_R);
	EXPECT_EQ(-ESRCH, procmap_scan(fd, &arg));
}

/* It has no address space, and never had one. kthreadd has pid 2. */
TEST_F(process, that_is_a_kernel_thread_is_esrch)
{
	struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, 0);
	const int fd = open_maps(2);
	char name[16];

	if (!read_file("/proc/2/comm", name, sizeof(name)) || strcmp(name, "kthreadd\n"))
		SKIP(return, "kthreadd is not visible here");
	if (fd == -EACCES)
		SKIP(return, "only root can open the maps of kthreadd");
	EXPECT_EQ(-ESRCH, procmap_scan(fd, &arg));
}

TEST_HARNESS_MAIN
