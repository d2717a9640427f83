// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY and the text of /proc/<pid>/maps tell the same, for
 * every mapping of every process, every filter and every edge.
 */
#include <dirent.h>
#include <malloc.h>
#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "procmap-query.h"

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA

/* So that there is something to see even on an empty system. */
#define NR_CHILDREN	3
#define NR_MAPPINGS	250

/* Where the kernel places nothing by itself, in 32 bits as in 64. */
#define SCENE_START	0x20000000

/*
 * A process may change while it is compared, and even back again: how often it
 * is tried anew, and how often it may differ although it seems not to change.
 */
#define TRIES			1000
#define TRIES_THAT_DIFFER	20

/* A process with more mappings is not asked for every set of filters. */
#define MANY_MAPPINGS	500

/* All sets of filters, and one at a time. */
static uint64_t every_filter[64], few_filters[12];

enum verdict { SAME, CHANGED, DIFFERENT, NO_MAPPINGS, REFUSED, VANISHED };

/* What has been compared. */
struct work {
	size_t processes;
	size_t mappings;
	size_t queries;
};

/* The first difference of a process. */
struct difference {
	const char *what;
	uint64_t addr;
	uint64_t flags;
};

/* A process' file, what is told of it, and what is asked. */
struct subject {
	int fd;
	struct maps maps;
	struct maps smaps;
	uint64_t *page_sizes;
	const uint64_t *filters;
	size_t nr_filters;
	size_t queries;
	struct difference difference;
};

static void fill_filters(void)
{
	static const uint64_t single[] = {
		0, PROCMAP_QUERY_VMA_READABLE, PROCMAP_QUERY_VMA_WRITABLE,
		PROCMAP_QUERY_VMA_EXECUTABLE, PROCMAP_QUERY_VMA_SHARED,
		PROCMAP_QUERY_FILE_BACKED_VMA,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(every_filter); i++)
		every_filter[i] = i;
	for (i = 0; i < ARRAY_SIZE(single); i++) {
		few_filters[2 * i] = single[i];
		few_filters[2 * i + 1] = single[i] | NEXT;
	}
}

static bool differ(struct subject *subject, const char *what, uint64_t addr,
		   uint64_t flags)
{
	subject->difference.what = what;
	subject->difference.addr = addr;
	subject->difference.flags = flags;
	return false;
}

/* Ask for an address with all filters. What is below @maps cannot answer. */
static bool agrees_at(struct subject *subject, const struct maps *maps,
		      uint64_t addr)
{
	struct procmap_query query;
	size_t i;

	for (i = 0; i < subject->nr_filters; i++) {
		const uint64_t flags = subject->filters[i];
		const struct maps_line *const line =
			expected_line(maps, addr, flags);
		const int err = query_fields(subject->fd, addr, flags, &query);

		subject->queries++;
		if (err != (line ? 0 : -ENOENT))
			return differ(subject, "result", addr, flags);
		if (line && !same_fields(line, &query))
			return differ(subject, "fields", addr, flags);
	}
	return true;
}

/* Ask at each edge, one before it and one after it, and at both ends. */
static bool agrees_at_edges(struct subject *subject)
{
	const struct maps *const maps = &subject->maps;
	uint64_t next = 0;
	size_t i, j;

	for (i = 0; i < maps->nr; i++) {
		const struct maps_line *const line = &maps->lines[i];
		const size_t below = i ? i - 1 : 0;
		const struct maps rest = {
			.lines = maps->lines + below,
			.nr = maps->nr - below,
		};
		const uint64_t addrs[] = {
			0, line->start - 1, line->start, line->start + 1,
			line->end - 1, line->end, line->end + 1,
		};

		/* In ascending order, and each but once. */
		for (j = 0; j < ARRAY_SIZE(addrs); j++) {
			if (addrs[j] < next || addrs[j] > line->end + 1)
				continue;
			if (!agrees_at(subject, &rest, addrs[j]))
				return false;
			next = addrs[j] + 1;
		}
	}
	return agrees_at(subject, maps, ~0ull);
}

static bool agrees_on_names(struct subject *subject)
{
	char name[PATH_MAX], escaped[4 * PATH_MAX + 16];
	struct procmap_query query;
	size_t i;
	int err;

	for (i = 0; i < subject->maps.nr; i++) {
		const struct maps_line *const line = &subject->maps.lines[i];

		name[0] = '\0';
		err = query_name(subject->fd, line->start, 0, &query, name,
				 sizeof(name));
		subject->queries++;
		/* The text has no limit. */
		if (err == -ENAMETOOLONG && strlen(line->name) >= PATH_MAX)
			continue;
		if (err)
			return differ(subject, "name", line->start, 0);
		escape_name(name, escaped, sizeof(escaped));
		if (strcmp(line->name, escaped) ||
		    query.vma_name_size != (*name ? strlen(name) + 1 : 0))
			return differ(subject, "name", line->start, 0);
		if (query.vma_page_size != subject->page_sizes[i])
			return differ(subject, "page size", line->start, 0);
	}
	return true;
}

/* Read the texts, and say whether that alone decides: SAME if not. */
static enum verdict read_texts(pid_t pid, struct subject *subject)
{
	int err;

	err = read_maps(subject->fd, &subject->maps);
	if (!err && !subject->maps.nr)
		return NO_MAPPINGS;
	if (!err)
		err = read_smaps(pid, &subject->smaps, &subject->page_sizes);
	if (err == -ESRCH || err == -ENOENT)
		return VANISHED;
	if (err) {
		differ(subject, strerror(-err), 0, 0);
		return DIFFERENT;
	}
	return same_text(&subject->maps, &subject->smaps) ? SAME : CHANGED;
}

/* Compare what the ioctl tells with the text, if that stays as it is. */
static enum verdict compare_texts(pid_t pid, struct subject *subject)
{
	enum verdict verdict = read_texts(pid, subject);
	struct maps after;
	bool agrees;

	if (verdict != SAME)
		return verdict;

	subject->filters = every_filter;
	subject->nr_filters = ARRAY_SIZE(every_filter);
	if (subject->maps.nr > MANY_MAPPINGS) {
		subject->filters = few_filters;
		subject->nr_filters = ARRAY_SIZE(few_filters);
	}
	agrees = agrees_at_edges(subject) && agrees_on_names(subject);

	if (read_maps(subject->fd, &after))
		return VANISHED;
	verdict = !same_text(&subject->maps, &after) ? CHANGED :
		  agrees ? SAME : DIFFERENT;
	free_maps(&after);
	return verdict;
}

static enum verdict compare_once(pid_t pid, struct work *work,
				 struct difference *difference)
{
	struct subject subject = { .fd = open_maps(pid) };
	enum verdict verdict;

	if (subject.fd == -EACCES || subject.fd == -EPERM)
		return REFUSED;
	if (subject.fd < 0)
		return VANISHED;

	verdict = compare_texts(pid, &subject);
	if (verdict == SAME) {
		work->processes++;
		work->mappings += subject.maps.nr;
		work->queries += subject.queries;
	}
	*difference = subject.difference;
	free_maps(&subject.maps);
	free_maps(&subject.smaps);
	free(subject.page_sizes);
	close(subject.fd);
	return verdict;
}

static enum verdict compare(pid_t pid, struct work *work,
			    struct difference *difference)
{
	unsigned int i, differed = 0;
	enum verdict verdict = CHANGED;

	for (i = 0; i < TRIES && differed < TRIES_THAT_DIFFER; i++) {
		verdict = compare_once(pid, work, difference);
		if (verdict == DIFFERENT)
			differed++;
		else if (verdict != CHANGED)
			break;
	}
	return verdict;
}

/* Map files and memory, in all ways, with and without gaps between them. */
static int be_child(int control, void *arg)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const int fd = memfd_create("a\nfile", MFD_CLOEXEC);
	uintptr_t addr = SCENE_START;
	unsigned int i;

	(void)arg;
	for (i = 0; i < NR_MAPPINGS; i++) {
		/* Odd factors, so that neighbours are of all kinds. */
		const unsigned int kind = i * 11;
		const int prot = (kind & 1 ? PROT_READ : 0) |
				 (kind & 2 ? PROT_WRITE : 0) |
				 (kind & 4 ? PROT_EXEC : 0);
		const int flags = (kind & 8 ? MAP_SHARED : MAP_PRIVATE) |
				  (kind & 16 ? MAP_ANONYMOUS : 0);
		const size_t size = (1 + i % 3) * page;

		if (mmap((void *)addr, size, prot,
			 flags | MAP_FIXED_NOREPLACE,
			 flags & MAP_ANONYMOUS ? -1 : fd,
			 flags & MAP_ANONYMOUS ? 0 : i % 7 * page) !=
		    (void *)addr)
			return 1;
		addr += size + (i % 4 ? 0 : page);
	}
	tell(control);
	hear(control);
	return 0;
}

FIXTURE(everyone)
{
	struct child children[NR_CHILDREN];
};

FIXTURE_SETUP(everyone)
{
	unsigned int i;

	fill_filters();
	/* So that the heap of this process comes to rest, too. */
	ASSERT_TRUE(mallopt(M_MMAP_MAX, 0));
	ASSERT_TRUE(mallopt(M_TRIM_THRESHOLD, INT_MAX));
	for (i = 0; i < NR_CHILDREN; i++) {
		ASSERT_TRUE(start_child(&self->children[i], be_child, NULL));
		ASSERT_TRUE(hear(self->children[i].control));
	}
}

FIXTURE_TEARDOWN(everyone)
{
	unsigned int i;

	for (i = 0; i < NR_CHILDREN; i++)
		stop_child(&self->children[i]);
}

TEST_F_TIMEOUT(everyone, is_told_alike_by_text_and_ioctl, 300)
{
	struct difference difference;
	struct work work = {};
	struct dirent *entry;
	size_t children = 0;
	DIR *proc = opendir("/proc");

	ASSERT_NE(NULL, proc);
	while ((entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);
		const size_t before = work.mappings;
		enum verdict verdict;

		if (pid <= 0)
			continue;
		verdict = compare(pid, &work, &difference);
		EXPECT_NE(CHANGED, verdict) {
			TH_LOG("process %d does not hold still", pid);
		}
		ASSERT_NE(DIFFERENT, verdict) {
			TH_LOG("process %d: %s at %#llx with flags %#llx", pid,
			       difference.what,
			       (unsigned long long)difference.addr,
			       (unsigned long long)difference.flags);
		}
		if (is_child(self->children, NR_CHILDREN, pid)) {
			EXPECT_EQ(SAME, verdict);
			EXPECT_LE((size_t)NR_MAPPINGS, work.mappings - before);
			children++;
		}
	}
	closedir(proc);
	EXPECT_EQ((size_t)NR_CHILDREN, children);
	TH_LOG("%zu processes, %zu mappings, %zu queries", work.processes,
	       work.mappings, work.queries);
}

TEST_HARNESS_MAIN
