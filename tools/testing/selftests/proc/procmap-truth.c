// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY, PROCMAP_SCAN and the text of /proc/<pid>/maps agree: on every
 * mapping of every process, at every edge and for every filter.
 */
#include <malloc.h>

#include "procmap-query.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA

/* Children of the test: known mappings, also on an empty system. */
#define NR_CHILDREN	3
#define NR_MAPPINGS	250

/* The kernel places nothing there by itself, in 32 bits as in 64. */
#define SCENE_START	0x20000000

/* Offsets in files are multiples of this, most of them of more than 32 bits. */
#define OFFSET		0x1fedcb0000ull

/* Above the scene, and aligned. */
#define HUGE_START	0x30000000
#define HUGE_PAGE_SIZE	(2u << 20)

/* In a process with more mappings, not every set of filters is tried. */
#define MANY_MAPPINGS	500

/*
 * Processes that the test did not start may change while they are compared, and
 * even back again, so that their text is the same before and after. So they are
 * compared up to so many times, or until so many differences were found.
 */
#define TRIES			1000
#define TRIES_THAT_DIFFER	20

/* Room for the data of a scan. */
#define DATA_SIZE	(1024 * 1024)

static void *page_of(unsigned int page)
{
	return (void *)(SCENE_START + page * page_size());
}

/*
 * Map files and memory with all permissions, with and without gaps, so that
 * neighbours are of different kinds.
 */
static bool map_scene(void)
{
	const int fds[] = {
		memfd_create("a\nfile", MFD_CLOEXEC),
		memfd_create("program", MFD_CLOEXEC),
	};
	unsigned int i, page = 0, nr;

	if (!write_elf(fds[1], (const uint8_t *)"the ID of a program."))
		return false;
	for (i = 0; i < NR_MAPPINGS; i++, page += nr + !(i % 4)) {
		/* An odd factor, so that each bit changes often. */
		const unsigned int kind = i * 11;
		const int flags = (kind & 8 ? MAP_SHARED : MAP_PRIVATE) |
				  (kind & 16 ? MAP_ANONYMOUS : 0);

		nr = 1 + i % 3;
		/* The bits of PROT_READ, PROT_WRITE and PROT_EXEC. */
		if (mmap64(page_of(page), nr * page_size(), kind & 7,
			   flags | MAP_FIXED_NOREPLACE,
			   kind & 16 ? -1 : fds[!!(kind & 32)],
			   kind & 16 ? 0 : i % 7 * OFFSET) != page_of(page))
			return false;
		/* Fails without CONFIG_ANON_VMA_NAME: no name, then. */
		if (i % 9 == 0)
			prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, page_of(page),
			      nr * page_size(), "a name of its own");
	}
	/* No huge page is needed to map one. Without hugetlbfs, it is left out. */
	mmap((void *)HUGE_START, HUGE_PAGE_SIZE, PROT_READ,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HUGETLB |
	     21 << MAP_HUGE_SHIFT | MAP_FIXED_NOREPLACE, -1, 0);
	return true;
}

/* A process with that scene, which does not change any more. */
static int be_still(int control, void *arg)
{
	(void)arg;
	return map_scene() && notify(control) && await(control) ? 0 : 1;
}

/* One process that is compared. */
struct subject {
	pid_t pid;
	int fd;			/* its maps file */
	struct maps maps;	/* its text */
	uint64_t *page_sizes;	/* of each line, from smaps */
	size_t nr;		/* mappings that were compared */
	size_t calls;		/* ioctls that were compared */
	char wrong[128];	/* the first difference, or "" */
};

/* Record the first difference. Returns false, for the caller to return. */
static bool note_difference(struct subject *subject, const char *what, uint64_t addr,
			    uint64_t flags)
{
	snprintf(subject->wrong, sizeof(subject->wrong),
		 "%s at %#jx, flags %#jx", what, (uintmax_t)addr,
		 (uintmax_t)flags);
	return false;
}

/*
 * Query one address with all filters, or only with none and with each alone, with and
 * without NEXT. No line before @maps can be the answer.
 */
static bool agrees_at(struct subject *subject, const struct maps *maps,
		      uint64_t addr)
{
	const bool every = subject->maps.nr <= MANY_MAPPINGS;
	struct procmap_query query;
	uint64_t flags;

	for (flags = 0; flags <= (FILTERS | NEXT); flags++) {
		const uint64_t filters = flags & FILTERS;
		const struct maps_line *line;
		int err;

		if (!every && filters & (filters - 1))
			continue;
		line = expected_line(maps, addr, flags);
		err = query_fields(subject->fd, addr, flags, &query);
		subject->calls++;
		if (err != (line ? 0 : -ENOENT))
			return note_difference(subject, "result", addr, flags);
		if (line && !same_fields(line, &query))
			return note_difference(subject, "fields", addr, flags);
	}
	return true;
}

/* Query at each edge, one byte before and after it, and at both ends. */
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

		/* In rising order, each address once. */
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

static bool agrees_on_name(struct subject *subject, size_t i)
{
	const struct maps_line *const line = &subject->maps.lines[i];
	char name[PATH_MAX] = "", escaped[4 * PATH_MAX + 16];
	struct procmap_query query;
	const int err = query_name(subject->fd, line->start, 0, &query, name,
				   sizeof(name));

	subject->calls++;
	/* The text has no limit, the ioctl has PATH_MAX. */
	if (err == -ENAMETOOLONG && strlen(line->name) >= PATH_MAX)
		return true;
	if (err)
		return note_difference(subject, strerror(-err), line->start, 0);
	escape_name(name, escaped, sizeof(escaped));
	if (strcmp(line->name, escaped) ||
	    query.vma_name_size != (*name ? strlen(name) + 1 : 0))
		return note_difference(subject, "name", line->start, 0);
	if (query.vma_page_size != subject->page_sizes[i])
		return note_difference(subject, "page size", line->start, 0);
	return true;
}

static bool query_agrees(struct subject *subject)
{
	size_t i;

	if (!agrees_at_edges(subject))
		return false;
	for (i = 0; i < subject->maps.nr; i++)
		if (!agrees_on_name(subject, i))
			return false;
	return true;
}

#ifdef HAVE_PROCMAP_SCAN

static struct room room;

/*
 * No filter, each alone and some together, with and without names and IDs, which the
 * data of a call has room for, or not.
 */
static const char *wrong_walks(int fd, const struct truth *truth, size_t *calls)
{
	static const uint64_t filters[] = {
		0, PROCMAP_VMA_READABLE, PROCMAP_VMA_WRITABLE,
		PROCMAP_VMA_EXECUTABLE, PROCMAP_VMA_SHARED,
		PROCMAP_VMA_FILE_BACKED,
		PROCMAP_VMA_READABLE | PROCMAP_VMA_FILE_BACKED, SCAN_FILTERS,
	};
	static const uint64_t wanted[] = { 0, NAMES, BUILD_IDS, ALL };
	static const uint32_t vec_lens[] = { 1, 7, 64, 1000 };
	static const uint32_t data_sizes[] = { DATA_SIZE, 3000, 100 };
	const char *wrong = "";
	unsigned int i;

	for (i = 0; i < 8 * 4 * 4 && !*wrong; i++) {
		struct procmap_scan_arg arg =
			scan_arg(&room, 0, NO_END, wanted[i / 8 % 4]);

		arg.filter = filters[i % 8];
		arg.vec_len = vec_lens[i / 32];
		arg.data_size = data_sizes[i % 3];
		wrong = wrong_walk(fd, truth, &room, arg, calls);
	}
	return wrong;
}

static bool scan_agrees(struct subject *subject)
{
	const char *wrong = "text";
	struct truth truth;
	int err;

	err = read_truth(subject->fd, &truth);
	if (err)
		return note_difference(subject, strerror(-err), 0, 0);
	if (same_text(&subject->maps, &truth.maps))
		wrong = wrong_walks(subject->fd, &truth, &subject->calls);
	free_truth(&truth);
	return !*wrong || note_difference(subject, wrong, 0, 0);
}

#endif

/* A process is left out if it may not be inspected, has exited, or has no mappings. */
enum verdict { SAME, CHANGED, DIFFERENT, LEFT_OUT };

/* A difference counts only if the text is the same before and after. */
static enum verdict compare_once(struct subject *subject,
				 bool (*agrees)(struct subject *subject))
{
	struct maps smaps = {}, after = {};
	enum verdict verdict = LEFT_OUT;

	subject->fd = open_maps(subject->pid);
	if (subject->fd < 0 || read_maps(subject->fd, &subject->maps) ||
	    !subject->maps.nr ||
	    read_smaps(subject->pid, &smaps, &subject->page_sizes))
		goto out;
	subject->nr = subject->maps.nr;
	verdict = CHANGED;
	if (same_text(&subject->maps, &smaps)) {
		const bool agreed = agrees(subject);

		if (read_maps(subject->fd, &after))
			verdict = LEFT_OUT;
		else if (same_text(&subject->maps, &after))
			verdict = agreed ? SAME : DIFFERENT;
	}
	free(subject->page_sizes);
out:
	free_maps(&subject->maps);
	free_maps(&smaps);
	free_maps(&after);
	close(subject->fd);
	return verdict;
}

/* Compare a process that may change, until it does not. */
static enum verdict compare_until_same(struct subject *subject, unsigned int tries,
				       bool (*agrees)(struct subject *subject))
{
	enum verdict verdict = CHANGED;
	unsigned int differed = 0;

	while (tries-- && differed < TRIES_THAT_DIFFER &&
	       (verdict == CHANGED || verdict == DIFFERENT)) {
		verdict = compare_once(subject, agrees);
		differed += verdict == DIFFERENT;
	}
	return verdict;
}

FIXTURE(everyone)
{
	struct child children[NR_CHILDREN];
};

FIXTURE_VARIANT(everyone)
{
	bool (*agrees)(struct subject *subject);
};

FIXTURE_VARIANT_ADD(everyone, query) {
	.agrees = query_agrees,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(everyone, scan) {
	.agrees = scan_agrees,
};
#endif

FIXTURE_SETUP(everyone)
{
	unsigned int i;

#ifdef HAVE_PROCMAP_SCAN
	if (variant->agrees == scan_agrees)
		skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&room, 1024, DATA_SIZE));
#endif
	/* This process is compared as well: its heap must come to rest. */
	ASSERT_TRUE(mallopt(M_MMAP_MAX, 0));
	ASSERT_TRUE(mallopt(M_TRIM_THRESHOLD, INT_MAX));
	for (i = 0; i < NR_CHILDREN; i++) {
		ASSERT_TRUE(start_child(&self->children[i], be_still, NULL));
		ASSERT_TRUE(await(self->children[i].control));
	}
}

FIXTURE_TEARDOWN(everyone)
{
	unsigned int i;

	for (i = 0; i < NR_CHILDREN; i++)
		stop_child(&self->children[i]);
}

/*
 * The test's own children do not change, so the first comparison must find no
 * difference. Only processes that others run are tried again.
 */
TEST_F_TIMEOUT(everyone, is_the_same_in_the_text, 300)
{
	size_t own = 0, processes = 0, mappings = 0, calls = 0;
	DIR *const proc = opendir("/proc");
	enum verdict verdict;
	struct dirent *entry;

	while ((entry = readdir(proc))) {
		struct subject subject = { .pid = atoi(entry->d_name) };
		const bool is_own = is_child(self->children, NR_CHILDREN,
					     subject.pid);

		if (subject.pid <= 0)
			continue;
		verdict = compare_until_same(&subject, is_own ? 1 : TRIES,
					     variant->agrees);
		EXPECT_TRUE(verdict == SAME || (verdict == LEFT_OUT && !is_own)) {
			TH_LOG("process %d, %s: %s", subject.pid,
			       verdict == CHANGED ? "it changes" : "it differs",
			       subject.wrong);
		}
		if (verdict != SAME)
			continue;
		own += is_own && subject.nr >= NR_MAPPINGS;
		processes++;
		mappings += subject.nr;
		calls += subject.calls;
	}
	closedir(proc);
	EXPECT_EQ((size_t)NR_CHILDREN, own);
	/* This process and its parent, the harness, at least. */
	EXPECT_LE((size_t)NR_CHILDREN + 2, processes);
	TH_LOG("%zu processes, %zu mappings, %zu calls", processes, mappings,
	       calls);
}

TEST_HARNESS_MAIN
