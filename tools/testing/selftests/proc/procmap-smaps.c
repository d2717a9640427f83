// SPDX-License-Identifier: GPL-2.0
/*
 * Test smaps and smaps_rollup: the sums over a process that is still, against pagemap and
 * against each other; and while its mappings and page tables change, that memory which
 * stays is counted.
 */
#include <stdatomic.h>
#include <sys/socket.h>

#include "../kselftest_harness.h"
#include "procmap_util.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

#define HUGE_SIZE	0x200000UL

/* Pages that stay, with neighbours that become one mapping with them, and do not. */
#define STAY_PAGE	8
#define STAY_PAGES	8
#define AREA_PAGES	(STAY_PAGE + STAY_PAGES + 8)
#define MOVED_PAGE	64

/* Where a page table is replaced by a huge page and back: of memory and of a file. */
#define HUGE_MEMORY	((char *)AREA + 4 * HUGE_SIZE)
#define HUGE_FILE	((char *)AREA + 6 * HUGE_SIZE)
#define HUGETLB		((char *)AREA + 8 * HUGE_SIZE)

static int file;

/* What smaps has in both files, except for sums of fractions of a kB. */
static const char *const names[] = {
	"Rss:", "Anonymous:", "LazyFree:", "AnonHugePages:", "ShmemPmdMapped:",
	"Shared_Hugetlb:", "Private_Hugetlb:", "Swap:",
};

enum { RSS, ANONYMOUS, SHARED_HUGETLB = 5, PRIVATE_HUGETLB };

/* Sums over the mappings in a range, in bytes. */
struct usage {
	uint64_t values[ARRAY_SIZE(names)];
	uint64_t size;		/* of the mappings */
	uint64_t covered;	/* by them, of the range */
};

static struct usage read_usage(pid_t pid, const char *name, uint64_t start, uint64_t end)
{
	unsigned long long line_start, line_end, kilobytes;
	struct usage usage = {};
	FILE *const file = fdopen(open_proc(pid, name), "r");
	char text[PATH_MAX + 128], word[32];
	bool is_in_range = false;
	size_t i;

	if (!file)
		return usage;
	while (fgets(text, sizeof(text), file)) {
		if (sscanf(text, "%llx-%llx ", &line_start, &line_end) == 2) {
			is_in_range = line_start < end && line_end > start;
			if (!is_in_range)
				continue;
			usage.size += line_end - line_start;
			usage.covered += (line_end < end ? line_end : end) -
					 (line_start > start ? line_start : start);
		} else if (is_in_range &&
			   sscanf(text, "%31s %llu kB", word, &kilobytes) == 2) {
			for (i = 0; i < ARRAY_SIZE(names); i++)
				if (!strcmp(word, names[i]))
					usage.values[i] += kilobytes * 1024;
		}
	}
	fclose(file);
	return usage;
}

static bool map(char *at, size_t size, int flags)
{
	return mmap(at, size, PROT_READ | PROT_WRITE, MAP_FIXED | flags,
		    flags & MAP_ANONYMOUS ? -1 : file, 0) == at;
}

static bool move(char *from, size_t size, char *to)
{
	return mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

static void touch(char *at, size_t size, size_t step)
{
	size_t i;

	for (i = 0; i < size; i += step)
		atomic_store((atomic_char *)(at + i), 1);
}

/* A huge page and HUGETLB need not be there: then less is tested. */
static bool set_up(void)
{
	const size_t page = page_size();

	file = memfd_create("file", MFD_CLOEXEC);
	if (ftruncate(file, HUGE_SIZE) ||
	    !map(page_at(0), AREA_PAGES * page, MAP_PRIVATE | MAP_ANONYMOUS) ||
	    !map(HUGE_MEMORY, HUGE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS) ||
	    !map(HUGE_FILE, HUGE_SIZE, MAP_SHARED))
		return false;
	touch(page_at(0), STAY_PAGE * page, 3 * page);
	touch(page_at(STAY_PAGE), STAY_PAGES * page, page);
	touch(HUGE_MEMORY, HUGE_SIZE / 2, page);
	touch(HUGE_FILE, HUGE_SIZE, 5 * page);
	if (write_file("/proc/sys/vm/nr_hugepages", "2") &&
	    map(HUGETLB, HUGE_SIZE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB))
		touch(HUGETLB, 1, 1);
	return true;
}

/* Each kind of change of mappings and of page tables, beside the pages that stay. */
static bool change(void)
{
	const size_t page = page_size(), below = STAY_PAGE * page;
	char *const above = page_at(STAY_PAGE + STAY_PAGES);
	const pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (mprotect(page_at(0), below, PROT_READ) ||
	    mprotect(page_at(0), below, PROT_READ | PROT_WRITE) ||
	    !move(above, 8 * page, page_at(MOVED_PAGE)) ||
	    !move(page_at(MOVED_PAGE), 8 * page, above) || munmap(page_at(0), below) ||
	    !map(page_at(0), below, MAP_PRIVATE | MAP_ANONYMOUS))
		return false;
	touch(page_at(0), below, page);
	touch(above, 8 * page, page);
	madvise(above, 8 * page, MADV_DONTNEED);

	/* The whole page table moves. */
	if (!move(HUGE_MEMORY, HUGE_SIZE, HUGE_MEMORY + HUGE_SIZE) ||
	    !move(HUGE_MEMORY + HUGE_SIZE, HUGE_SIZE, HUGE_MEMORY))
		return false;
	madvise(HUGE_MEMORY, HUGE_SIZE, MADV_COLLAPSE);
	mprotect(HUGE_MEMORY, page, PROT_READ);
	mprotect(HUGE_MEMORY, page, PROT_READ | PROT_WRITE);
	madvise(HUGE_MEMORY, HUGE_SIZE, MADV_DONTNEED);
	touch(HUGE_MEMORY, HUGE_SIZE / 4, page);
	madvise(HUGE_FILE, HUGE_SIZE, MADV_COLLAPSE);
	if (ftruncate(file, page) || ftruncate(file, HUGE_SIZE))
		return false;
	touch(HUGE_FILE, HUGE_SIZE, 5 * page);
	if (!munmap(HUGETLB, HUGE_SIZE) &&
	    map(HUGETLB, HUGE_SIZE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB))
		touch(HUGETLB, 1, 1);
	return waitpid(pid, NULL, 0) == pid;
}

/* Change until a byte comes, then be still. */
static int be_target(int control, void *arg)
{
	char byte;

	(void)arg;
	if (!set_up() || !notify(control) || !await(control))
		return 1;
	do {
		if (!change())
			return 1;
	} while (recv(control, &byte, 1, MSG_DONTWAIT) < 0);
	notify(control);
	await(control);
	return 0;
}

FIXTURE(target)
{
	struct child child;
};

FIXTURE_SETUP(target)
{
	ASSERT_TRUE(start_child(&self->child, be_target, NULL));
	ASSERT_TRUE(await(self->child.control));
}

FIXTURE_TEARDOWN(target)
{
	stop_child(&self->child);
}

TEST_F_TIMEOUT(target, what_stays_is_counted_while_it_changes, LONG_TIMEOUT)
{
	const pid_t pid = self->child.pid;
	const uint64_t start = addr_of(STAY_PAGE), size = STAY_PAGES * page_size();
	struct usage usage, rollup;
	unsigned int i;

	if (!text_has_positions("/proc/self/smaps"))
		SKIP(return, "smaps is made under mmap_lock");
	ASSERT_TRUE(notify(self->child.control));
	for (i = 0; i < 100; i++) {
		usage = read_usage(pid, "smaps", start, start + size);
		EXPECT_LE(size, usage.covered);
		EXPECT_LE(size, usage.values[ANONYMOUS]);
		EXPECT_GE(usage.size, usage.values[RSS]);
		rollup = read_usage(pid, "smaps_rollup", 0, UINT64_MAX);
		EXPECT_LE(size, rollup.values[ANONYMOUS]);
	}
}

/* Of each huge page of the area, and in all. */
TEST_F(target, sums_are_true_after_changes)
{
	const pid_t pid = self->child.pid;
	const int pagemap = open_proc(pid, "pagemap");
	uint64_t entry, addr, present = 0;
	struct usage usage, rollup;
	size_t i;

	ASSERT_TRUE(notify(self->child.control) && notify(self->child.control) &&
		    await(self->child.control));
	usage = read_usage(pid, "smaps", 0, UINT64_MAX);
	rollup = read_usage(pid, "smaps_rollup", 0, UINT64_MAX);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_EQ(usage.values[i], rollup.values[i]);
	for (addr = AREA; addr < AREA + 10 * HUGE_SIZE; addr += page_size()) {
		ASSERT_EQ((ssize_t)sizeof(entry), pread(pagemap, &entry, sizeof(entry), addr /
							page_size() * sizeof(entry)));
		present += entry >> 63 ? page_size() : 0;
		if ((addr + page_size()) % HUGE_SIZE)
			continue;
		usage = read_usage(pid, "smaps", addr & -HUGE_SIZE, addr + page_size());
		EXPECT_EQ(present, usage.values[RSS] + usage.values[SHARED_HUGETLB] +
				   usage.values[PRIVATE_HUGETLB]);
		present = 0;
	}
}

TEST_HARNESS_MAIN
