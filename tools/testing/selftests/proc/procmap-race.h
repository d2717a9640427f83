/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests whose target changes while it is looked at: where it changes, and
 * how long they wait.
 */
#ifndef PROCMAP_RACE_TEST_H
#define PROCMAP_RACE_TEST_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "procmap-query.h"

/* The kernel places nothing there by itself, in 32 bits as in 64. */
#define AREA		0x20000000

/* Seconds: the limit of the harness, and one below it for loops that wait. */
#define RACE_TIMEOUT	900
#define PATIENCE	600

/* Seconds until a killed process must be gone. */
#define DEATH_PATIENCE	60

static inline uint64_t addr_of(unsigned int page)
{
	return AREA + (uint64_t)page * page_size();
}

static inline char *page_at(unsigned int page)
{
	return (char *)(uintptr_t)addr_of(page);
}

static inline long seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/*
 * Loops that wait for something to happen end when this returns true, and then
 * the test fails. It counts from the first call in a test, which is a process.
 */
static inline bool is_late(void)
{
	static atomic_long first;
	const long now = seconds_now();
	long unset = 0;

	atomic_compare_exchange_strong(&first, &unset, now);
	return now - first > PATIENCE;
}

/* Wait for a child to end, so long and no longer. */
static inline bool ends_in_time(const struct child *child)
{
	struct pollfd end = {
		.fd = syscall(SYS_pidfd_open, child->pid, 0),
		.events = POLLIN,
	};
	const bool ended = end.fd >= 0 &&
			   poll(&end, 1, DEATH_PATIENCE * 1000) == 1;

	close(end.fd);
	return ended;
}

/*
 * Open maps or smaps of this process at the end of the mapping at AREA. The kernel has not
 * made the next one yet: it does when one is read to its end, but not when it is sought.
 */
static inline FILE *open_text_behind_area(const char *path)
{
	FILE *const file = fopen(path, "re");
	const bool has_values = strstr(path, "smaps");
	char line[PATH_MAX + 128];
	bool is_found = false;
	long end;

	setvbuf(file, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), file)) {
		is_found = is_found || strtoull(line, NULL, 16) == AREA;
		if (!is_found || (has_values && strncmp(line, "VmFlags:", 8)))
			continue;
		end = ftell(file);
		if (!lseek(fileno(file), 0, SEEK_SET) &&
		    lseek(fileno(file), end, SEEK_SET) == end)
			return file;
	}
	fclose(file);
	return NULL;
}

/*
 * Is maps or smaps made without mmap_lock? Then a mapping that is merged with that of the
 * last line is shown from the end of that line on. Maps and unmaps two pages.
 */
static inline bool text_has_positions(const char *path)
{
	char line[PATH_MAX + 128] = "";
	FILE *file;

	if (mmap(page_at(0), 2 * page_size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
		 MAP_FIXED, -1, 0) != page_at(0) ||
	    mprotect(page_at(1), page_size(), PROT_NONE))
		return false;
	file = open_text_behind_area(path);
	if (!file || mprotect(page_at(1), page_size(), PROT_READ) ||
	    !fgets(line, sizeof(line), file))
		return false;
	fclose(file);
	munmap(page_at(0), 2 * page_size());
	return strtoull(line, NULL, 16) == addr_of(1);
}

/* The wait of the reader must be killable. */
static inline void expect_death(struct __test_metadata *const _metadata,
				struct child *reader)
{
	int status;

	ASSERT_EQ(0, kill(reader->pid, SIGKILL));
	ASSERT_TRUE(ends_in_time(reader)) {
		TH_LOG("a killed reader waits on");
	}
	ASSERT_EQ(reader->pid, waitpid(reader->pid, &status, 0));
	reader->pid = 0;
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGKILL, WTERMSIG(status));
}

#endif /* PROCMAP_RACE_TEST_H */
