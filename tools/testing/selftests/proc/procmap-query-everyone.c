// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY and the text of /proc/<pid>/maps agree on every mapping of every
 * process, at every edge and for every filter.
 */
#include <dirent.h>
#include <malloc.h>

#include "../kselftest_harness.h"
#include "procmap_util.h"

/* In a process with more mappings, not every set of filters is tried. */
#define MANY_MAPPINGS	500

/*
 * Processes that the test did not start may change while they are compared, and even back
 * again, so that their text is the same before and after. So they are compared up to so
 * many times.
 */
#define TRIES		100

/* Where a mapping of huge pages is. No huge page is needed to map one. */
#define HUGE_START	0x30000000
#define HUGE_PAGE_SIZE	(2u << 20)

/* The first difference, or "". */
static char wrong[128];

static bool differs(const char *what, uint64_t addr, uint64_t flags)
{
	snprintf(wrong, sizeof(wrong), "%s at %#jx, flags %#jx", what, (uintmax_t)addr,
		 (uintmax_t)flags);
	return false;
}

/* With all filters, or only with none and with each alone; covering or next. */
static bool agrees_at(int fd, const struct maps *maps, uint64_t addr)
{
	const struct maps_line *line;
	struct procmap_query query;
	uint64_t flags, filters;

	for (flags = 0; flags <= (QUERY_FILTERS | QUERY_NEXT); flags++) {
		filters = flags & QUERY_FILTERS;
		if (maps->nr > MANY_MAPPINGS && filters & (filters - 1))
			continue;
		line = expected_line(maps, addr, flags);
		if (query_fields(fd, addr, flags, &query) != (line ? 0 : -ENOENT))
			return differs("result", addr, flags);
		if (line && !same_fields(line, &query))
			return differs("fields", addr, flags);
	}
	return true;
}

/* The text has no limit, the ioctl has PATH_MAX. */
static bool agrees_on_name(int fd, const struct maps_line *line)
{
	struct procmap_query query;
	char name[PATH_MAX] = "";
	const int err = query_name(fd, line->start, &query, name, sizeof(name));

	if (err == -ENAMETOOLONG && strlen(line->name) >= PATH_MAX)
		return true;
	if (err || !is_name(line, name) ||
	    query.vma_name_size != (*name ? strlen(name) + 1 : 0))
		return differs("name", line->start, 0);
	return query.vma_page_size == line->page_size || differs("page size", line->start, 0);
}

/* At each edge, one byte before and after it, and at both ends of all addresses. */
static bool agrees(int fd, const struct maps *smaps)
{
	size_t i, j;

	for (i = 0; i < smaps->nr; i++) {
		const struct maps_line *const line = &smaps->lines[i];
		const uint64_t addrs[] = {
			line->start - 1, line->start, line->start + 1,
			line->end - 1, line->end, line->end + 1,
		};

		for (j = 0; j < ARRAY_SIZE(addrs); j++)
			if (!agrees_at(fd, smaps, addrs[j]))
				return false;
		if (!agrees_on_name(fd, line))
			return false;
	}
	return agrees_at(fd, smaps, 0) && agrees_at(fd, smaps, ~0ull);
}

/* A process is left out if it may not be inspected, has exited, or has no mappings. */
enum verdict { SAME, CHANGED, DIFFERENT, LEFT_OUT };

/* A difference counts only if the text is the same before and after. */
static enum verdict compare(pid_t pid)
{
	struct maps smaps = {}, after = {};
	enum verdict verdict = LEFT_OUT;
	const int fd = open_maps(pid);
	bool agreed;

	if (fd >= 0 && !read_smaps(pid, &smaps) && smaps.nr) {
		agreed = agrees(fd, &smaps);
		if (!read_maps(fd, &after))
			verdict = !same_maps(&smaps, &after) ? CHANGED :
				  agreed ? SAME : DIFFERENT;
	}
	free_maps(&smaps);
	free_maps(&after);
	close(fd);
	return verdict;
}

static int keep_scene_and_huge_pages(int control, void *arg)
{
	mmap((void *)HUGE_START, HUGE_PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
	     MAP_NORESERVE | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT | MAP_FIXED_NOREPLACE, -1, 0);
	return keep_scene(control, arg);
}

/* The test's own child does not change, so that has to be right at once. */
TEST(known_mappings_are_the_same_in_the_text)
{
	struct child child;

	ASSERT_TRUE(start_child(&child, keep_scene_and_huge_pages, NULL));
	ASSERT_TRUE(await(child.control));
	EXPECT_EQ(SAME, compare(child.pid)) {
		TH_LOG("%s", wrong);
	}
	stop_child(&child);
}

/* This process is compared as well: its heap must come to rest. */
TEST(mappings_of_all_processes_are_the_same_in_the_text)
{
	unsigned int processes = 0, tries;
	DIR *proc = opendir("/proc");
	enum verdict verdict;
	struct dirent *entry;

	ASSERT_TRUE(mallopt(M_MMAP_MAX, 0));
	ASSERT_TRUE(mallopt(M_TRIM_THRESHOLD, INT_MAX));
	while ((entry = readdir(proc))) {
		if (atoi(entry->d_name) <= 0)
			continue;
		for (tries = TRIES; tries; tries--) {
			verdict = compare(atoi(entry->d_name));
			if (verdict == SAME || verdict == LEFT_OUT)
				break;
		}
		EXPECT_LT(0u, tries) {
			TH_LOG("process %s: %s", entry->d_name, wrong);
		}
		processes += verdict == SAME;
	}
	closedir(proc);
	/* This process and its parent, the harness, at least. */
	EXPECT_LE(2u, processes);
}

TEST_HARNESS_MAIN
