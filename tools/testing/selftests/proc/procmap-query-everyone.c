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

/* Others may change while they are compared, which is tried so often. */
#define TRIES		100

/* Where a mapping of huge pages is. No huge page is needed to map one. */
#define HUGE_START	0x30000000
#define HUGE_PAGE_SIZE	(2u << 20)

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
		if (query_fields(fd, addr, flags, &query) != (line ? 0 : -ENOENT) ||
		    (line && !same_fields(line, &query)))
			return false;
	}
	return true;
}

/* The text of a name has no limit, the ioctl has PATH_MAX. */
static bool agrees_on_line(int fd, const struct maps_line *line)
{
	struct procmap_query query;
	char name[PATH_MAX] = "";
	const int err = query_name(fd, line->start, &query, name, sizeof(name));

	if (err == -ENAMETOOLONG && strlen(line->name) >= PATH_MAX)
		return true;
	return !err && is_name(line, name) && query.vma_page_size == line->page_size &&
	       query.vma_name_size == (*name ? strlen(name) + 1 : 0);
}

/*
 * At each edge, and one byte before and after it. Returns a fault, or ""; or NULL if the
 * process has changed meanwhile, or cannot be looked at.
 */
static const char *compare(pid_t pid)
{
	struct maps smaps = {}, after = {};
	const char *wrong = NULL;
	const int fd = open_maps(pid);
	uint64_t addr = 0;
	size_t i;

	if (fd >= 0 && !read_smaps(pid, &smaps) && smaps.nr)
		wrong = agrees_at(fd, &smaps, 0) && agrees_at(fd, &smaps, ~0ull) ? "" : "ends";
	for (i = 0; i < smaps.nr && wrong && !*wrong; i++) {
		const struct maps_line *const line = &smaps.lines[i];

		for (addr = line->start - 1; addr != line->start + 2; addr++)
			if (!agrees_at(fd, &smaps, addr) ||
			    !agrees_at(fd, &smaps, addr + (line->end - line->start)))
				wrong = "fields";
		if (!agrees_on_line(fd, line))
			wrong = line->name;
	}
	if (wrong && *wrong)
		printf("# process %d, near %#jx: %s\n", pid, (uintmax_t)addr, wrong);
	if (wrong && (read_maps(fd, &after) || !same_maps(&smaps, &after)))
		wrong = NULL;
	wrong = wrong && *wrong ? "differs" : wrong;
	free_maps(&smaps);
	free_maps(&after);
	close(fd);
	return wrong;
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
	EXPECT_STREQ("", compare(child.pid));
	stop_child(&child);
}

/* This process is compared as well: its heap must come to rest. */
TEST(mappings_of_all_processes_are_the_same_in_the_text)
{
	unsigned int processes = 0, tries;
	DIR *proc = opendir("/proc");
	const char *wrong;
	struct dirent *entry;

	ASSERT_TRUE(mallopt(M_MMAP_MAX, 0));
	ASSERT_TRUE(mallopt(M_TRIM_THRESHOLD, INT_MAX));
	while ((entry = readdir(proc))) {
		wrong = NULL;
		for (tries = TRIES; tries && atoi(entry->d_name) > 0; tries--) {
			wrong = compare(atoi(entry->d_name));
			/* Who may not be looked at has no mappings for us. */
			if (wrong ? !*wrong : tries < TRIES - 10)
				break;
		}
		EXPECT_TRUE(tries || !wrong) {
			TH_LOG("process %s", entry->d_name);
		}
		processes += wrong && !*wrong;
	}
	closedir(proc);
	/* This process and its parent, the harness, at least. */
	EXPECT_LE(2u, processes);
}

TEST_HARNESS_MAIN
