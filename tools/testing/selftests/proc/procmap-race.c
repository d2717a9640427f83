// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY, PROCMAP_SCAN and the text of /proc/<pid>/maps show all
 * mappings that stay, and nothing that never was, while mappings change, and while the
 * process forks, exits, executes another program or unmaps everything.
 */
#include <sys/resource.h>
#include <sys/utsname.h>

#include "procmap-soak.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA
#define R	PROCMAP_QUERY_VMA_READABLE
#define X	PROCMAP_QUERY_VMA_EXECUTABLE
#define S	PROCMAP_QUERY_VMA_SHARED

/* The slot: the pages where mappings change from one known state to another. */
#define SLOT_PAGES	10

/* The pages of the slot that are mapped before the first change. */
#define FIRST_PAGES	4

/* A mapping that stays, and ends each search. */
#define FENCE_PAGE	(SLOT_PAGES + 1)

#define MAX_STATES	4

/*
 * The area, where mappings change at random. Every PILLAR_STEP-th page of it is
 * mapped and readable at all times, although the mapping that covers it changes.
 */
#define NR_PAGES	400
#define PILLAR_STEP	8

/* A stack, with no neighbour below that would keep it from growing. */
#define STACK_PAGE	800
#define STACK_PAGES	20

#define END_PAGE	(STACK_PAGE + 1)

/* At the least. Each change of the slot has to wait for the reader. */
#define SLOT_CHANGES	150
#define AREA_CHANGES	4000
#define WALKS		192

/* Walks that must have met a change. */
#define DISTURBED	30

/* Mappings that must have begun below the point up to which a walk was done. */
#define STRADDLING	10

/* Targets that exit or execute another program, and forks of one. */
#define EXITS		60
#define FORKS		300

/* Threads that walk a target which unmaps everything. */
#define NR_WALKERS	2

/* The file that the tests map. */
#define FILE_NAME	"/memfd:file (deleted)"

static int file;
static const uint8_t file_id[20] = "procmap-race";

/* Make it, in memory: on other file systems, VMAs that were split may not merge again. */
static bool make_file(void)
{
	file = memfd_create("file", MFD_CLOEXEC);
	return write_elf(file, file_id);
}

/* A page is the same page of the file wherever it is mapped: so neighbours can merge. */
static uint64_t offset_of(uint64_t addr)
{
	return addr - AREA + page_size();
}

static bool map_pages(unsigned int page, unsigned int nr, int prot, int flags)
{
	return mmap(page_at(page), nr * page_size(), prot, MAP_FIXED | flags,
		    flags & MAP_ANONYMOUS ? -1 : file,
		    offset_of(addr_of(page))) == page_at(page);
}

static bool unmap_pages(unsigned int page, unsigned int nr)
{
	return !munmap(page_at(page), nr * page_size());
}

static bool protect_pages(unsigned int page, unsigned int nr, int prot)
{
	return !mprotect(page_at(page), nr * page_size(), prot);
}

static bool touch_page(unsigned int page)
{
	atomic_store((atomic_char *)page_at(page), 1);
	return true;
}

/*
 * A kind of change. The slot goes through its states in turn, with one system call or
 * page fault from each to the next and from the last to the first, so nothing else is
 * ever to be seen. Without states, the area changes at random.
 */
struct kind {
	bool (*step)(unsigned int n);	/* to a state, or the nth change */
	unsigned int nr_states;
};

/* In memory that a forked changer shares. */
struct race {
	const struct kind *kind;
	struct child changer;
	int fd;			/* the target's maps file */
	atomic_uint changes;
	atomic_bool stop;
	struct maps states[MAX_STATES];		/* the text of each */
	unsigned int seen[MAX_STATES];		/* answers of this state alone */
};

static bool set_slot(void)
{
	return map_pages(0, FIRST_PAGES, PROT_READ, MAP_PRIVATE) &&
	       map_pages(FENCE_PAGE, 1, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS);
}

static bool set_area(void)
{
	return map_pages(0, NR_PAGES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS) &&
	       map_pages(STACK_PAGE, 1, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN);
}

/* Go through all states, one step for each byte heard; then without pause. */
static int be_changer(int control, void *arg)
{
	struct race *const race = arg;
	const struct kind *const kind = race->kind;
	unsigned int n;
	bool ok;

	ok = (kind->nr_states ? set_slot() : set_area()) && notify(control);
	for (n = 0; ok && n < kind->nr_states; n++)
		ok = await(control) && kind->step(n) && notify(control);
	ok = ok && await(control);
	for (n = 0; ok && !race->stop; n++) {
		ok = kind->step(kind->nr_states ? n % kind->nr_states : n);
		race->changes++;
	}
	return ok ? 0 : 1;
}

/* Start the changer, and record the text of each state. */
static void start_race(struct __test_metadata *const _metadata,
		       struct race *race, const struct kind *kind)
{
	struct child changer;
	unsigned int i;

	race->kind = kind;
	/* Not in @race, which they share: start_child() sets the PID in both. */
	ASSERT_TRUE(start_child(&changer, be_changer, race));
	race->changer = changer;
	ASSERT_TRUE(await(changer.control));
	race->fd = open_maps(changer.pid);
	ASSERT_LE(0, race->fd);
	for (i = 0; i < kind->nr_states; i++) {
		ASSERT_TRUE(notify(changer.control));
		ASSERT_TRUE(await(changer.control));
		ASSERT_EQ(0, read_maps(race->fd, &race->states[i]));
	}
	ASSERT_TRUE(notify(changer.control));
}

static bool same_line(const struct maps_line *a, const struct maps_line *b)
{
	struct maps_line x = *a, y = *b;

	return same_text(&(struct maps){ &x, 1 }, &(struct maps){ &y, 1 });
}

/* Only the file of this test has a build ID, as far as its mappings go. */
static bool is_right_id(const struct maps_line *line, const uint8_t *id,
			uint32_t size)
{
	const bool has_id = line->inode && !(line->flags & S);

	return line->start < AREA || line->start >= addr_of(END_PAGE) ||
	       (has_id ? size == sizeof(file_id) && !memcmp(id, file_id, size) :
			 !size);
}

/* The answer of PROCMAP_QUERY. */
struct answer {
	struct maps_line line;
	char name[PATH_MAX];
};

/* Query an address. Returns 0 or -errno; -EBADMSG for a wrong page size or build ID. */
static int query_answer(int fd, uint64_t addr, uint64_t flags, struct answer *answer)
{
	uint8_t id[20];
	struct procmap_query query = {
		.size = sizeof(query),
		.query_flags = flags,
		.query_addr = addr,
		.vma_name_addr = (uintptr_t)answer->name,
		.vma_name_size = sizeof(answer->name),
		.build_id_addr = (uintptr_t)id,
		.build_id_size = sizeof(id),
	};
	int err;

	answer->name[0] = '\0';
	err = procmap_query(fd, &query);
	answer->line = (struct maps_line) {
		query.vma_start, query.vma_end, query.vma_flags,
		query.vma_offset, query.dev_major, query.dev_minor, query.inode,
		answer->name,
	};
	if (!err && (query.vma_page_size != page_size() ||
		     !is_right_id(&answer->line, id, query.build_id_size)))
		return -EBADMSG;
	return err;
}

/*
 * Known states: each answer to a query is that of one state.
 */

static bool mmap_or_munmap(unsigned int to)
{
	switch (to) {
	case 0:
		return unmap_pages(0, SLOT_PAGES);
	case 1:
		return map_pages(0, FIRST_PAGES, PROT_READ, MAP_PRIVATE);
	case 2:
		return map_pages(0, SLOT_PAGES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS);
	default:
		return unmap_pages(2, 3);
	}
}

/* Not writable: that would be accounted for ever, and keep the parts apart. */
static bool mprotect_parts(unsigned int to)
{
	switch (to) {
	case 0:
		return protect_pages(0, FIRST_PAGES, PROT_READ);
	case 1:
		return protect_pages(2, 2, PROT_READ | PROT_EXEC);
	default:
		return protect_pages(1, 2, PROT_NONE);
	}
}

/* The mapping moves up, grows, and moves back as it was. */
static bool mremap_all(unsigned int to)
{
	const size_t size = FIRST_PAGES * page_size();
	char *const low = page_at(0), *const high = page_at(5);

	switch (to) {
	case 0:
		return mremap(low, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
			      high) == high;
	case 1:
		return mremap(high, size, size + page_size(), 0) == high;
	default:
		return mremap(high, size + page_size(), size,
			      MREMAP_MAYMOVE | MREMAP_FIXED, low) == low;
	}
}

static bool grow_stack(unsigned int to)
{
	switch (to) {
	case 0:
		return unmap_pages(0, SLOT_PAGES);
	case 1:
		return map_pages(8, 2, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN);
	case 2:
		return touch_page(7);
	default:
		return touch_page(3);
	}
}

/* The names of a file on a file system. */
static char names[2][64];

static bool rename_file(unsigned int to)
{
	return !rename(names[!to], names[to]);
}

static bool has_seen_all(const struct race *race)
{
	unsigned int i;

	for (i = 0; i < race->kind->nr_states; i++)
		if (!race->seen[i])
			return false;
	return true;
}

/*
 * Ways to walk.
 */

/* A walk over the mappings in a range. */
struct walk {
	int (*by)(struct walk *walk);	/* 0 or -errno; -EBADMSG with @wrong */
	int fd;				/* the maps file */
	uint64_t start;
	uint64_t end;
	uint64_t filter;		/* permissions that they must have */
	struct race *race;		/* who changes them, or NULL */
	const struct maps *still;	/* otherwise, all of them in turn */
	uint64_t pos;			/* the walk is done up to here */
	size_t nr;			/* mappings that were met */
	bool strict;			/* a text that shows nothing twice */
	uint64_t last_end;		/* there, the end of the line before */
	bool pages[END_PAGE];		/* pages of the area that were met */
	const char *wrong;		/* or "" */
	unsigned int n;			/* walks so far */
	unsigned int empty;		/* those that met nothing */
	unsigned int straddling;	/* mappings so far that began below @pos */
	pthread_t thread;
	const atomic_bool *stop;
	int err;
};

static int walk_once(struct walk *walk)
{
	walk->pos = walk->start;
	walk->nr = 0;
	memset(walk->pages, 0, sizeof(walk->pages));
	walk->n++;
	walk->wrong = "";
	walk->err = walk->by(walk);
	walk->empty += !walk->err && !walk->nr;
	return walk->err;
}

/* A mapping that begins before the end of the line before is shown from there on. */
static struct maps_line cut_line(const struct walk *walk, const struct maps_line *line)
{
	struct maps_line cut = *line;

	if (cut.start < walk->last_end) {
		cut.start = walk->last_end;
		cut.offset += is_file(line) ? cut.start - line->start : 0;
	}
	return cut;
}

/* Check a mapping while others change. Returns its fault, or "". */
static const char *wrong_in_race(struct walk *walk, const struct maps_line *line)
{
	struct race *const race = walk->race;
	const struct maps_line *known;
	struct maps_line cut;
	uint64_t addr;
	unsigned int i;

	for (addr = line->start; addr < line->end; addr += page_size())
		if (addr >= AREA && addr < addr_of(END_PAGE))
			walk->pages[(addr - AREA) / page_size()] = true;
	for (i = 0; i < race->kind->nr_states; i++) {
		known = line_at(&race->states[i], line->start);
		if (!known)
			continue;
		cut = cut_line(walk, known);
		if (same_line(&cut, line))
			return "";
	}
	if (race->kind->nr_states)
		return "it never was";
	if (line->offset != (is_file(line) ? offset_of(line->start) : 0))
		return "offset";
	return strcmp(line->name, is_file(line) ? FILE_NAME : "") ? "name" : "";
}

/* The walk comes to a mapping. Returns false, with &walk.wrong, if it is wrong. */
static bool walk_meet(struct walk *walk, const struct maps_line *line)
{
	if (line->start >= line->end || line->end <= walk->pos ||
	    (line->start | line->end) % page_size())
		walk->wrong = "range";
	else if (line->start < walk->last_end)
		walk->wrong = "it begins in the line before";
	else if (!line_passes(line, walk->filter))
		walk->wrong = "filter";
	else if (walk->race)
		walk->wrong = wrong_in_race(walk, line);
	else if (walk->nr == walk->still->nr ||
		 !same_line(&walk->still->lines[walk->nr], line))
		walk->wrong = "not the next line of the text";
	walk->straddling += line->start < walk->pos;
	walk->pos = line->end;
	walk->nr++;
	return !*walk->wrong;
}

static int walk_by_query(struct walk *walk)
{
	struct answer answer;
	int err;

	while (walk->pos < walk->end) {
		err = query_answer(walk->fd, walk->pos, NEXT | walk->filter, &answer);
		if (err || answer.line.start >= walk->end)
			return err == -ENOENT ? 0 : err;
		if (!walk_meet(walk, &answer.line))
			return -EBADMSG;
	}
	return 0;
}

/* Find the states with that answer; count it if there is only one. */
static bool is_of_a_state(struct race *race, uint64_t addr, uint64_t flags,
			  int err, const struct answer *answer)
{
	const struct maps_line *line;
	unsigned int i, state = 0, nr = 0;

	for (i = 0; i < race->kind->nr_states; i++) {
		line = expected_line(&race->states[i], addr, flags);
		if (line ? !err && same_line(line, &answer->line) :
			   err == -ENOENT) {
			state = i;
			nr++;
		}
	}
	if (nr == 1)
		race->seen[state]++;
	return nr;
}

/* Query each page of the slot, and walk. */
static int walk_slot_by_query(struct walk *walk)
{
	static const uint64_t flags[] = { 0, X, NEXT };
	struct answer answer;
	unsigned int i;
	uint64_t addr;
	int err;

	for (i = 0; i < SLOT_PAGES * ARRAY_SIZE(flags); i++) {
		addr = addr_of(i % SLOT_PAGES) + i;
		err = query_answer(walk->fd, addr, flags[i / SLOT_PAGES], &answer);
		if (!is_of_a_state(walk->race, addr, flags[i / SLOT_PAGES], err,
				   &answer)) {
			walk->wrong = "an answer that is of no state";
			return -EBADMSG;
		}
	}
	return walk_by_query(walk);
}

/* The text of a process that is gone is empty before the process is reaped. */
static int walk_by_text(struct walk *walk)
{
	static const size_t pieces[] = { 1, 10, 100, 4096, 1048576 };
	struct maps maps;
	int err = read_maps_in_pieces(walk->fd, pieces[walk->n % ARRAY_SIZE(pieces)],
				      &maps);
	size_t i;

	if (!err && !maps.nr)
		err = -ESRCH;
	for (i = 0; !err && i < maps.nr; i++) {
		const struct maps_line *const line = &maps.lines[i];

		walk->last_end = walk->strict && i ? line[-1].end : 0;
		if (line->end > walk->start && line->start < walk->end &&
		    line_passes(line, walk->filter) && !walk_meet(walk, line))
			err = -EBADMSG;
	}
	free_maps(&maps);
	return err;
}

#ifdef HAVE_PROCMAP_SCAN

static bool walk_meet_record(struct walk *walk, const struct procmap_scan_arg *arg,
			     const struct procmap_vma *record)
{
	const void *const id = data_at(arg, record->build_id_offset);
	const struct maps_line line = {
		record->start, record->end, record->flags & PERMISSIONS,
		record->offset, record->dev_major, record->dev_minor,
		record->inode, record->name_size ?
		(char *)data_at(arg, record->name_offset) : "",
	};

	if (!is_right_id(&line, id, record->build_id_size))
		walk->wrong = "build ID";
	return !*walk->wrong && walk_meet(walk, &line);
}

static __thread struct room room;

static int walk_by_scan(struct walk *walk)
{
	static const uint32_t vec_lens[] = { 1000, 1, 2, 7, 31, 32, 33, 64, 200 };
	/* The second is enough for one record of the file. */
	static const uint32_t data_sizes[] = { 65536, 42 };
	struct procmap_scan_arg arg;
	int i, nr;

	if (!room.vec && !make_room(&room, 1000, 65536))
		return -ENOMEM;
	arg = scan_arg(&room, walk->start, walk->end, ALL);
	arg.filter = walk->filter;
	arg.vec_len = vec_lens[walk->n % ARRAY_SIZE(vec_lens)];
	for (;; continue_scan(&arg)) {
		walk->pos = arg.start;
		arg.data_size = data_sizes[walk->n / 9 % 2];
		nr = procmap_scan(walk->fd, &arg);
		while (nr == -ENOSPC && arg.data_needed > arg.data_size) {
			arg.data_size = arg.data_needed;
			nr = procmap_scan(walk->fd, &arg);
		}
		if (nr < 0)
			return nr;
		for (i = 0; i < nr; i++)
			if (!walk_meet_record(walk, &arg, record_at(&arg, i)))
				return -EBADMSG;
		if (arg.walk_end == arg.end)
			return 0;
		if (arg.walk_end < walk->pos || arg.walk_end > arg.end || !nr) {
			walk->wrong = "walk_end";
			return -EBADMSG;
		}
	}
}

#endif

/* Skip a test, in its setup, if this kernel has no PROCMAP_SCAN, and it needs that. */
static void skip_without_ioctl(struct __test_metadata *const _metadata,
			       int (*by)(struct walk *walk))
{
#ifdef HAVE_PROCMAP_SCAN
	if (by == walk_by_scan)
		skip_without_scan(_metadata);
#endif
}

/*
 * Random changes: no walk misses a mapping that stays.
 */

static bool is_pillar(unsigned int page)
{
	return page == STACK_PAGE || (page < NR_PAGES && page % PILLAR_STEP == 0);
}

/* A page further each time, until the stack is cut off. */
static bool grow_stack_on(unsigned int n)
{
	const unsigned int pages = n % (STACK_PAGES + 1);

	return pages ? touch_page(STACK_PAGE - pages) :
		       unmap_pages(STACK_PAGE - STACK_PAGES, STACK_PAGES);
}

/* Replace, split and merge mappings: of many pages, or of some between two pillars. */
static bool change_area(unsigned int n)
{
	static uint64_t seed = 0x9e3779b97f4a7c15;
	const uint64_t random = next_random(&seed);
	const unsigned int first = 1 + (random >> 8) % (PILLAR_STEP - 1);
	const bool is_between = n % 8 > 1;
	unsigned int page = (random >> 16) % (NR_PAGES / PILLAR_STEP) * PILLAR_STEP;
	unsigned int nr = 1 + (random >> 24) % (10 * PILLAR_STEP);
	int prot = (random >> 32) % 8;

	if (n % 8 == 0)
		return grow_stack_on(n / 8);
	if (is_between) {
		page += first;
		nr = 1 + nr % (PILLAR_STEP - first);
	} else {
		prot = PROT_READ | (prot & PROT_EXEC);
		if (nr > NR_PAGES - page)
			nr = NR_PAGES - page;
	}
	switch ((random >> 40) % 4) {
	case 0:
		return map_pages(page, nr, prot, MAP_PRIVATE | MAP_ANONYMOUS);
	case 1:
		return map_pages(page, nr, prot, MAP_PRIVATE);
	}
	if (is_between && (random >> 42) % 2)
		return unmap_pages(page, nr);
	/* It ends at a page that is not mapped. */
	protect_pages(page, nr, prot);
	return true;
}

FIXTURE(race)
{
	struct race *race;
};

FIXTURE_VARIANT(race)
{
	int (*by)(struct walk *walk);
};

FIXTURE_VARIANT_ADD(race, query) {
	.by = walk_by_query,
};

FIXTURE_VARIANT_ADD(race, text) {
	.by = walk_by_text,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(race, scan) {
	.by = walk_by_scan,
};
#endif

FIXTURE_SETUP(race)
{
	skip_without_ioctl(_metadata, variant->by);
	self->race = mmap(NULL, sizeof(*self->race), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(self->race != MAP_FAILED);
	ASSERT_TRUE(make_file());
}

FIXTURE_TEARDOWN(race)
{
	stop_child(&self->race->changer);
}

/* In the text, mappings straddle only where it is too long for one read. */
static bool race_is_done(const struct race *race, const struct walk *walk,
			 unsigned int disturbed)
{
	if (walk->n < WALKS || disturbed < DISTURBED)
		return false;
	if (race->kind->nr_states)
		return race->changes >= SLOT_CHANGES &&
		       (walk->by != walk_slot_by_query || has_seen_all(race));
	return race->changes >= AREA_CHANGES &&
	       (walk->by == walk_by_text || walk->straddling >= STRADDLING);
}

/* Walk, filtered or not. No walk misses a mapping that stays. */
static void run_race(struct __test_metadata *const _metadata, struct race *race,
		     const struct _fixture_variant_race *variant,
		     const struct kind *kind)
{
	const bool is_area = !kind->nr_states;
	struct walk walk = {
		.by = !is_area && variant->by == walk_by_query ?
		      walk_slot_by_query : variant->by,
		.start = AREA,
		.end = addr_of(END_PAGE),
		.race = race,
	};
	unsigned int page, before, disturbed = 0;

	walk.strict = walk.by == walk_by_text &&
		      text_has_positions("/proc/self/maps");
	start_race(_metadata, race, kind);
	walk.fd = race->fd;
	while (!race_is_done(race, &walk, disturbed)) {
		walk.filter = walk.n % 2 ? R : 0;
		before = race->changes;
		ASSERT_EQ(0, walk_once(&walk)) {
			TH_LOG("walk %u, at %#jx: %s", walk.n,
			       (uintmax_t)walk.pos, walk.wrong);
		}
		disturbed += race->changes != before;
		for (page = 0; page < END_PAGE; page++)
			ASSERT_TRUE(walk.pages[page] ||
				    !(is_area ? is_pillar(page) :
						page == FENCE_PAGE)) {
				TH_LOG("walk %u misses page %u", walk.n, page);
			}
		ASSERT_FALSE(is_late()) {
			TH_LOG("%u changes, %u walks with some, %u straddling",
			       atomic_load(&race->changes), disturbed,
			       walk.straddling);
		}
	}
	race->stop = true;
	EXPECT_EQ(0, end_of_child(&race->changer));
}

TEST_F_TIMEOUT(race, mmap_munmap, RACE_TIMEOUT)
{
	const struct kind kind = { mmap_or_munmap, 4 };

	run_race(_metadata, self->race, variant, &kind);
}

TEST_F_TIMEOUT(race, mprotect_splits, RACE_TIMEOUT)
{
	const struct kind kind = { mprotect_parts, 3 };

	run_race(_metadata, self->race, variant, &kind);
}

TEST_F_TIMEOUT(race, mremap_moves, RACE_TIMEOUT)
{
	const struct kind kind = { mremap_all, 3 };

	run_race(_metadata, self->race, variant, &kind);
}

TEST_F_TIMEOUT(race, stack_grows, RACE_TIMEOUT)
{
	const struct kind kind = { grow_stack, 4 };

	run_race(_metadata, self->race, variant, &kind);
}

TEST_F_TIMEOUT(race, file_is_renamed, RACE_TIMEOUT)
{
	const struct kind kind = { rename_file, ARRAY_SIZE(names) };

	sprintf(names[0], "/tmp/procmap-race-%d", getpid());
	sprintf(names[1], "/tmp/procmap-race-%d.renamed", getpid());
	file = open(names[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ASSERT_TRUE(write_elf(file, file_id));
	run_race(_metadata, self->race, variant, &kind);
	unlink(names[0]);
	unlink(names[1]);
}

TEST_F_TIMEOUT(race, mappings_that_stay_are_returned, RACE_TIMEOUT)
{
	const struct kind kind = { change_area, 0 };

	run_race(_metadata, self->race, variant, &kind);
}

/*
 * A process whose mappings do not change, and how it ends: it exits, executes another
 * program, or unmaps everything; or it forks on and on.
 */
struct plan {
	unsigned int nr_mappings;
	int (*end)(int control);
};

/* The exit status of a target that exits as planned. */
#define EXIT_AS_PLANNED	42

static int exit_now(int control)
{
	(void)control;
	return EXIT_AS_PLANNED;
}

/*
 * Become a program that echoes its input. Only the new program does, so an echo shows
 * that it has replaced the address space.
 */
static int execute_echo(int control)
{
	if (dup2(control, STDIN_FILENO) < 0 || dup2(control, STDOUT_FILENO) < 0)
		return 1;
	execlp("cat", "cat", NULL);
	return 1;
}

/* Of a process that forks: its youngest child, and how many there have been. */
static struct forks {
	atomic_int newborn;
	atomic_uint nr;
} *forks;

/* Fork children that exit at once; now and then one that a slow kernel can walk. */
static int fork_on(int control)
{
	pid_t pid;

	(void)control;
	for (;;) {
		pid = fork();
		if (!pid) {
			usleep(forks->nr % 32 ? 0 : 200000);
			_exit(0);
		}
		if (pid < 0)
			return 1;
		forks->newborn = pid;
		if (waitpid(pid, NULL, 0) != pid)
			return 1;
		forks->nr++;
	}
}

static int be_target(int control, void *arg)
{
	const struct plan *const plan = arg;
	unsigned int i;

	for (i = 0; i < plan->nr_mappings; i++)
		if (!map_pages(i, 1, i % 2 ? PROT_READ : PROT_NONE,
			       MAP_PRIVATE | (i % 100 ? MAP_ANONYMOUS : 0)))
			return 1;
	return notify(control) && await(control) ? plan->end(control) : 1;
}

FIXTURE(target)
{
	struct child child;
	struct maps maps;	/* its text, as long as it stays */
	struct walk walks[NR_WALKERS];
};

FIXTURE_VARIANT(target)
{
	int (*by)(struct walk *walk);
};

FIXTURE_VARIANT_ADD(target, query) {
	.by = walk_by_query,
};

FIXTURE_VARIANT_ADD(target, text) {
	.by = walk_by_text,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(target, scan) {
	.by = walk_by_scan,
};
#endif

FIXTURE_SETUP(target)
{
	skip_without_ioctl(_metadata, variant->by);
	ASSERT_TRUE(make_file());
}

FIXTURE_TEARDOWN(target)
{
	stop_child(&self->child);
}

static void start_target(struct __test_metadata *const _metadata,
			 struct _test_data_target *self,
			 const struct _fixture_variant_target *variant,
			 struct plan plan)
{
	struct walk *walk;

	ASSERT_TRUE(start_child(&self->child, be_target, &plan));
	ASSERT_TRUE(await(self->child.control));
	for (walk = self->walks; walk < self->walks + NR_WALKERS; walk++) {
		walk->by = variant->by;
		walk->fd = open_maps(self->child.pid);
		walk->end = ~0ull;
		walk->still = &self->maps;
	}
	ASSERT_EQ(0, read_maps(self->walks->fd, &self->maps));
}

/* It has gone: get ready for the next one. */
static void forget_target(struct _test_data_target *self)
{
	unsigned int i;

	stop_child(&self->child);
	free_maps(&self->maps);
	for (i = 0; i < NR_WALKERS; i++)
		close(self->walks[i].fd);
}

/* Walk a target that stays. Returns a fault or "", or NULL after ESRCH. */
static const char *wrong_still(struct walk *walk)
{
	if (walk_once(walk) == -ESRCH)
		return NULL;
	if (walk->err)
		return *walk->wrong ? walk->wrong : strerror(-walk->err);
	if (walk->nr == walk->still->nr)
		return "";
	/* A text can end early if the process exits. */
	if (walk->by == walk_by_text && walk_once(walk) == -ESRCH)
		return NULL;
	return "too few lines of the text";
}

/*
 * Walk a target again and again whose address space is about to go. All is right until
 * the first ESRCH, and then it is ESRCH for ever. Counts the walks before that.
 */
static const char *wrong_until_gone(struct walk *walk, unsigned int *walks)
{
	const char *wrong;

	for (;; ++*walks) {
		wrong = wrong_still(walk);
		if (!wrong)
			return wrong_still(walk) ? "back from ESRCH" : "";
		if (*wrong)
			return wrong;
		if (is_late())
			return "still no ESRCH when time was up";
	}
}

TEST_F_TIMEOUT(target, exits_or_executes_a_program_meanwhile, RACE_TIMEOUT)
{
	static const struct plan exits = { 300, exit_now };
	static const struct plan executes = { 300, execute_echo };
	unsigned int i, walks = 0;

	for (i = 0; i < EXITS; i++) {
		/* Debug kernels take long to execute one. */
		const bool is_exit = i % 4;

		start_target(_metadata, self, variant,
			     is_exit ? exits : executes);
		ASSERT_TRUE(notify(self->child.control));
		ASSERT_STREQ("", wrong_until_gone(self->walks, &walks));
		if (is_exit) {
			ASSERT_EQ(EXIT_AS_PLANNED, end_of_child(&self->child));
		} else {
			/* The new program sends this back. */
			ASSERT_TRUE(notify(self->child.control));
			ASSERT_TRUE(await(self->child.control));
		}
		forget_target(self);
	}
	EXPECT_LT(0u, walks);
}

/* A child has the mappings of its parent, as long as it is there. */
TEST_F_TIMEOUT(target, forks_meanwhile, RACE_TIMEOUT)
{
	const struct plan plan = { 300, fork_on };
	unsigned int walks = 0;
	struct walk newborn;

	forks = mmap(NULL, sizeof(*forks), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(forks != MAP_FAILED);
	start_target(_metadata, self, variant, plan);
	ASSERT_TRUE(notify(self->child.control));
	while ((forks->nr < FORKS || !walks) && !is_late()) {
		ASSERT_STREQ("", wrong_still(self->walks));
		newborn = *self->walks;
		newborn.fd = open_maps(forks->newborn ?: INT_MAX);
		if (newborn.fd >= 0)
			ASSERT_STREQ("", wrong_until_gone(&newborn, &walks));
		close(newborn.fd);
	}
	EXPECT_LE((unsigned int)FORKS, atomic_load(&forks->nr));
	EXPECT_LT(0u, walks);
}

#ifdef HAVE_PROCMAP_SCAN

/*
 * An address space without a mapping has been a crash of kernels whose readers lock
 * single VMAs: of mainline since 6.17. No mainline kernel has PROCMAP_SCAN: where that
 * is, the query is not mainline's either, and before 6.17 the text takes mmap_lock.
 */
static bool may_be_emptied(void)
{
	struct procmap_scan_arg arg = {};
	const int fd = open_maps(0);
	const int err = procmap_scan(fd, &arg);
	unsigned int minor;
	struct utsname name;

	close(fd);
	return err == -EINVAL && !uname(&name) &&
	       sscanf(name.release, "6.%u.", &minor) == 1 && minor < 17;
}

/* It does not return: there is nothing to return to. So the kernel sends SIGSEGV. */
static int unmap_everything(int control)
{
	const struct rlimit no_core = {};
	struct maps maps;

	(void)control;
	if (!setrlimit(RLIMIT_CORE, &no_core) && !read_maps(open_maps(0), &maps))
		syscall(SYS_munmap, 0,
			(unsigned long)maps.lines[maps.nr - 1].end);
	return 1;
}

/* Walk a target until it is reaped, and no other thread walks it any more. */
static void *be_walker(void *arg)
{
	struct walk *const walk = arg;

	do {
		walk_once(walk);
	} while ((!walk->err && !is_late()) ||
		 (walk->err == -ESRCH && !*walk->stop));
	return NULL;
}

static void empty_target(struct __test_metadata *const _metadata,
			 struct _test_data_target *self)
{
	atomic_bool stop = false;
	struct walk *walk;

	for (walk = self->walks; walk < self->walks + NR_WALKERS; walk++) {
		walk->stop = &stop;
		ASSERT_EQ(0, pthread_create(&walk->thread, NULL, be_walker, walk));
	}
	ASSERT_TRUE(notify(self->child.control));
	/* By a signal. */
	EXPECT_EQ(-1, end_of_child(&self->child));
	stop = true;
	for (walk = self->walks; walk < self->walks + NR_WALKERS; walk++) {
		ASSERT_EQ(0, pthread_join(walk->thread, NULL));
		ASSERT_EQ(-ESRCH, walk->err) {
			TH_LOG("%s", walk->wrong);
		}
	}
}

TEST_F_TIMEOUT(target, unmaps_everything_meanwhile, SOAK_TIMEOUT)
{
	static const struct plan plan = { 10, unmap_everything };
	const struct walk *const walks = self->walks;
	struct soak soak;
	unsigned long n;

	if (!may_be_emptied())
		SKIP(return, "this kernel may crash of an empty address space");
	soak = begin_soak(_metadata);
	for (n = 0; !soak_is_over(&soak, n); n++) {
		start_target(_metadata, self, variant, plan);
		empty_target(_metadata, self);
		forget_target(self);
	}
	TH_LOG("%lu targets, %u walks, %u of them empty", n,
	       walks[0].n + walks[1].n, walks[0].empty + walks[1].empty);
	/* The text does not tell an empty address space from none. */
	if (variant->by != walk_by_text)
		EXPECT_LT(0u, walks[0].empty + walks[1].empty);
}

#endif

TEST_HARNESS_MAIN
