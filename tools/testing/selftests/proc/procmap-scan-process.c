// SPDX-License-Identifier: GPL-2.0
/*
 * Test PROCMAP_SCAN on other processes: all of their mappings are those of the text, and a
 * process that has none is an error.
 */
#include <dirent.h>
#include <malloc.h>

#include "../kselftest_harness.h"
#include "procmap_scan_util.h"

#define DATA_SIZE	(1024 * 1024)

/* Others may change while they are compared, which is tried so often. */
#define TRIES		100

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

/*
 * Filters, names and IDs, which one call has memory for, or not. Returns a fault, or "";
 * or NULL if the process has changed meanwhile, or cannot be looked at.
 */
static const char *compare(const struct _test_data_process *self, pid_t pid)
{
	static const uint64_t filters[] = {
		0, PROCMAP_VMA_READABLE, PROCMAP_VMA_WRITABLE, PROCMAP_VMA_EXECUTABLE,
		PROCMAP_VMA_SHARED, PROCMAP_VMA_FILE_BACKED,
		PROCMAP_VMA_READABLE | PROCMAP_VMA_FILE_BACKED, SCAN_FILTERS,
	};
	static const uint32_t vec_lens[] = { 1, 7, 64, 1000 };
	static const uint32_t data_sizes[] = { DATA_SIZE, 3000, 100 };
	struct maps smaps = {}, after = {};
	const int fd = open_maps(pid);
	const char *wrong = "";
	unsigned int i;

	if (fd < 0 || read_smaps(pid, &smaps) || !smaps.nr || read_build_ids(fd, &smaps))
		wrong = NULL;
	for (i = 0; i < 8 * 4 * 4 && wrong && !*wrong; i++) {
		struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, i / 8 % 4);

		arg.filter = filters[i % 8];
		arg.vec_len = vec_lens[i / 32];
		arg.data_size = data_sizes[i % 3];
		wrong = wrong_walk(fd, &self->buffers, arg, &smaps);
	}
	if (wrong && (read_maps(fd, &after) || !same_maps(&smaps, &after)))
		wrong = NULL;
	free_maps(&smaps);
	free_maps(&after);
	close(fd);
	return wrong;
}

/* The test's own child does not change, so that has to be right at once. */
TEST_F(process, with_known_mappings_has_those_of_the_text)
{
	EXPECT_STREQ("", compare(self, self->child.pid));
}

/* This process is compared as well: its heap must come to rest. */
TEST_F_TIMEOUT(process, of_any_kind_has_the_mappings_of_its_text, LONG_TIMEOUT)
{
	unsigned int processes = 0, tries;
	DIR *proc = opendir("/proc");
	const char *wrong = NULL;
	struct dirent *entry;

	ASSERT_TRUE(mallopt(M_MMAP_MAX, 0));
	ASSERT_TRUE(mallopt(M_TRIM_THRESHOLD, INT_MAX));
	while ((entry = readdir(proc))) {
		for (tries = TRIES; tries && atoi(entry->d_name) > 0; tries--) {
			wrong = compare(self, atoi(entry->d_name));
			if (wrong && !*wrong)
				break;
			/* Who may not be looked at has no mappings for us. */
			if (!wrong && tries < TRIES - 10)
				break;
		}
		EXPECT_TRUE(tries || !wrong) {
			TH_LOG("process %s: %s", entry->d_name, wrong);
		}
		processes += wrong && !*wrong;
	}
	closedir(proc);
	/* The child, this process and the harness, at least. */
	EXPECT_LE(3u, processes);
}

TEST_F(process, that_has_exited_is_esrch_from_any_address)
{
	struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, 0);
	const int fd = open_maps(self->child.pid);

	EXPECT_LT(NR_MAPPINGS, procmap_scan(fd, &arg));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_scan(fd, &arg));
	arg.start = start_of(FILE_R);
	EXPECT_EQ(-ESRCH, procmap_scan(fd, &arg));
}

TEST_F(process, that_has_executed_another_program_is_esrch)
{
	struct procmap_scan_arg arg = scan_arg(&self->buffers, 0, NO_END, 0);
	struct child child;
	int fd;

	ASSERT_TRUE(start_child(&child, keep_scene_and_execute, NULL));
	ASSERT_TRUE(await(child.control));
	fd = open_maps(child.pid);
	EXPECT_LT(NR_MAPPINGS, procmap_scan(fd, &arg));
	ASSERT_TRUE(notify(child.control) && notify(child.control) && await(child.control));
	EXPECT_EQ(-ESRCH, procmap_scan(fd, &arg));
	stop_child(&child);
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
