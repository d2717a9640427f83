// SPDX-License-Identifier: GPL-2.0
/*
 * Test that the mappings of a process can be read while it unmaps all of them.
 *
 * The kernel kills a reader that it has an oops in. Each reader here is the process of
 * a test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "kselftest_harness.h"

#define SECONDS		15

/*
 * It ends by a signal, as there is no code to return to; but if the vdso is sealed, no
 * range with it can be unmapped.
 */
static void unmap_everything(void)
{
	const unsigned long page = sysconf(_SC_PAGESIZE);
	const struct rlimit no_core = {};
	int bits;

	setrlimit(RLIMIT_CORE, &no_core);
	usleep(rand() % 2000);
	for (bits = __LONG_WIDTH__ - 1; bits > 20; bits--) {
		if (syscall(SYS_munmap, 0, 1UL << bits) && errno == EPERM)
			_exit(KSFT_SKIP);
		syscall(SYS_munmap, 0, (1UL << bits) - page);
	}
	_exit(0);
}

/* The reader is preempted in the middle of a walk then. */
static void keep_cpus_busy(void)
{
	long nr;

	for (nr = sysconf(_SC_NPROCESSORS_ONLN); nr > 0; nr--) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
}

static bool read_text(int maps)
{
	static char text[1 << 16];

	return pread(maps, text, sizeof(text), 0) > 0;
}

/* Query each mapping. Returns whether there was one. */
static bool query(int maps)
{
	struct procmap_query query = {
		.size = sizeof(query),
		.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
	};
	bool any = false;

	while (!ioctl(maps, PROCMAP_QUERY, &query)) {
		query.query_addr = query.vma_end;
		any = true;
	}
	return any;
}

FIXTURE(target) {};

FIXTURE_VARIANT(target) {
	bool (*read)(int maps);
};

FIXTURE_VARIANT_ADD(target, text) { .read = read_text };
FIXTURE_VARIANT_ADD(target, query) { .read = query };

FIXTURE_SETUP(target) {}
FIXTURE_TEARDOWN(target) {}

TEST_F_TIMEOUT(target, unmaps_everything, 4 * SECONDS)
{
	const time_t end = time(NULL) + SECONDS;
	unsigned long nr_targets = 0, nr_reads = 0;
	char path[32];
	int maps, status;
	pid_t pid;

	keep_cpus_busy();
	while (time(NULL) < end) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			srand(nr_targets);
			unmap_everything();
		}
		snprintf(path, sizeof(path), "/proc/%d/maps", pid);
		maps = open(path, O_RDONLY);
		ASSERT_LE(0, maps);
		while (variant->read(maps))
			nr_reads++;
		close(maps);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		if (WIFEXITED(status) && WEXITSTATUS(status) == KSFT_SKIP)
			SKIP(return, "the vdso is sealed");
		ASSERT_TRUE(WIFSIGNALED(status));
		ASSERT_EQ(SIGSEGV, WTERMSIG(status));
		nr_targets++;
	}
	TH_LOG("%lu targets, %lu reads", nr_targets, nr_reads);
	EXPECT_LT(nr_targets, nr_reads);
}

TEST_HARNESS_MAIN
