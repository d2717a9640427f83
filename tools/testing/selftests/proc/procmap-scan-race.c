// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_SCAN misses nothing that stays, and returns nothing that never
 * was, while the mappings of the target change, its files are renamed, signals
 * arrive, and the target forks, exits and executes another program.
 */
#include <sys/syscall.h>
#include <sys/time.h>

#include "procmap-race.h"
#include "procmap-scan.h"

#define R	PROCMAP_VMA_READABLE
#define S	PROCMAP_VMA_SHARED

/*
 * The area, where all changes happen. Every PILLAR_STEP-th page of it is mapped
 * and readable at all times, although the mapping that covers it changes: no
 * scan may miss one.
 */
#define NR_PAGES	400
#define PILLAR_STEP	8

/* A mapping of one page, which grows and shrinks again. */
#define GROWING_PAGE	NR_PAGES
#define GROWING_PAGES	20

/* A stack, with no neighbour below that would keep it from growing. */
#define STACK_PAGE	800
#define STACK_PAGES	20

#define END_PAGE	(STACK_PAGE + 1)

/* What each side does at least, and how many scans must have met a change. */
#define CHANGES		4000
#define SCANS		192
#define DISTURBED	30

/* How many records must have begun below the point up to which a scan was done. */
#define STRADDLING	10

/* Mappings of the process whose scan is interrupted, and how often. */
#define NR_MAPPINGS	6000
#define INTERRUPTIONS	50

#define RENAMES		2000
#define RENAMED_PAGES	300

#define EXITS		60

/* A debug kernel takes seconds for each. */
#define EXECS		15
#define FORKS		300

/* In memory that a forked changer shares. */
struct race {
	struct worker changer;
	int fd;			/* the target's maps file */
	uint64_t seed;
	int file;
	atomic_uint changes;
	atomic_bool stop;
};

/* Each page of the area is the same page of the file: so neighbours can merge. */
static bool map_pages(const struct race *race, unsigned int page,
		      unsigned int nr, int prot, int flags)
{
	const int fd = flags & MAP_ANONYMOUS ? -1 : race->file;

	return mmap(page_at(page), nr * page_size(), prot,
		    MAP_PRIVATE | MAP_FIXED | flags, fd,
		    page * page_size()) == page_at(page);
}

static bool set_scene(struct race *race)
{
	race->file = memfd_create("file", MFD_CLOEXEC);
	return write_elf(race->file, (const uint8_t *)"the ID of a program.") &&
	       map_pages(race, 0, NR_PAGES + 1, PROT_READ, MAP_ANONYMOUS) &&
	       map_pages(race, STACK_PAGE, 1, PROT_READ | PROT_WRITE,
			 MAP_ANONYMOUS | MAP_GROWSDOWN);
}

/* Anything, in the middle of what is between two pillars. */
static bool change_between(struct race *race, uint64_t random)
{
	static const int prots[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_EXEC,
	};
	const unsigned int pillar = random % (NR_PAGES / PILLAR_STEP) *
				    PILLAR_STEP;
	const unsigned int first = 1 + (random >> 16) % (PILLAR_STEP - 1);
	const unsigned int nr = 1 + (random >> 24) % (PILLAR_STEP - first);
	const int prot = prots[(random >> 32) % ARRAY_SIZE(prots)];
	const size_t size = nr * page_size();

	switch ((random >> 40) % 4) {
	case 0:
		return !munmap(page_at(pillar + first), size);
	case 1:
		return map_pages(race, pillar + first, nr, prot, MAP_ANONYMOUS);
	case 2:
		return map_pages(race, pillar + first, nr, prot, 0);
	default:
		/* There may be none. */
		mprotect(page_at(pillar + first), size, prot);
		return true;
	}
}

/* What splits and merges mappings across pillars, and replaces these. */
static bool change_pillars(struct race *race, uint64_t random)
{
	const int prot = random & 1 ? PROT_READ : PROT_READ | PROT_EXEC;
	const unsigned int pillar = (random >> 8) % (NR_PAGES / PILLAR_STEP) *
				    PILLAR_STEP;
	unsigned int nr = 1 + (random >> 24) % (10 * PILLAR_STEP);

	if (nr > NR_PAGES - pillar)
		nr = NR_PAGES - pillar;
	switch ((random >> 40) % 4) {
	case 0:
		return map_pages(race, pillar, nr, prot, MAP_ANONYMOUS);
	case 1:
		return map_pages(race, pillar, nr, prot, 0);
	default:
		/* It ends at a page that is not mapped. */
		mprotect(page_at(pillar), nr * page_size(), prot);
		return true;
	}
}

static bool grow_and_shrink(unsigned int n)
{
	const size_t small = page_size(), large = GROWING_PAGES * page_size();
	char *const page = page_at(GROWING_PAGE);

	return n % 2 ? mremap(page, large, small, 0) == page :
		       mremap(page, small, large, 0) == page;
}

/* A page further each time, until the stack is cut off. */
static bool grow_stack(unsigned int n)
{
	const unsigned int pages = n % (STACK_PAGES + 1);

	if (!pages)
		return !munmap(page_at(STACK_PAGE - STACK_PAGES),
			       STACK_PAGES * page_size());
	atomic_store((atomic_char *)page_at(STACK_PAGE - pages), 1);
	return true;
}

static bool change(struct race *race, unsigned int n)
{
	const uint64_t random = next_random(&race->seed);

	switch (n % 8) {
	case 0:
		return grow_and_shrink(n / 8);
	case 1:
		return grow_stack(n / 8);
	case 2:
		return change_pillars(race, random);
	default:
		return change_between(race, random);
	}
}

static int be_changer(int control, void *arg)
{
	struct race *const race = arg;
	unsigned int n;
	bool ok;

	ok = set_scene(race) && notify(control) && await(control);
	for (n = 0; ok && !race->stop; n++) {
		ok = change(race, n);
		race->changes++;
	}
	race->stop = true;
	return ok ? 0 : 1;
}

/* What one scan of the area has returned. */
struct covered {
	uint64_t pos;		/* what is below this is done */
	bool pages[END_PAGE];
	unsigned int calls;
	unsigned int straddling;	/* records that begin below @pos */
};

static const char *wrong_record_of_area(const struct procmap_scan_arg *arg,
					const struct procmap_vma *record,
					struct covered *covered)
{
	static const char name[] = "/memfd:file (deleted)";
	uint64_t addr;

	if (record->start >= record->end || record->end <= covered->pos ||
	    record->start % page_size() || record->end % page_size())
		return "range";
	covered->straddling += record->start < covered->pos;
	covered->pos = record->end;
	for (addr = record->start; addr < record->end; addr += page_size())
		if (addr >= AREA && addr < addr_of(END_PAGE))
			covered->pages[(addr - AREA) / page_size()] = true;

	if (arg->filter & ~record->flags)
		return "filter";
	if (record->offset != (record->inode ? record->start - AREA : 0))
		return "offset";
	if (!arg->want)
		return record->name_size || record->build_id_size ? "data" : "";
	if (!record->inode)
		return record->build_id_size ? "build ID of memory" : "";
	if (record->name_size != sizeof(name) ||
	    !is_data(arg, record->name_offset, name, sizeof(name)))
		return "name";
	return record->build_id_size == 20 ? "" : "build ID";
}

/* Returns which part of the area stays and was not returned, or "". */
static const char *wrong_whole(const struct covered *covered)
{
	unsigned int page;

	for (page = 0; page <= NR_PAGES; page += PILLAR_STEP)
		if (!covered->pages[page])
			return "a page that stays is missed";
	return covered->pages[STACK_PAGE] ? "" : "the stack is missed";
}

/* Scan the area once. Returns what is wrong with the records, or "". */
static const char *wrong_scan_of_area(int fd, struct procmap_scan_arg arg,
				      struct covered *covered)
{
	const char *wrong;
	int i, nr;

	memset(covered, 0, sizeof(*covered));
	covered->pos = arg.start;
	for (;; go_on(&arg)) {
		nr = procmap_scan(fd, &arg);
		covered->calls++;
		if (nr < 0)
			return strerror(-nr);
		for (i = 0; i < nr; i++) {
			wrong = wrong_record_of_area(&arg, record_at(&arg, i),
						     covered);
			if (*wrong)
				return wrong;
		}
		if (arg.walk_end == arg.end)
			return wrong_whole(covered);
		if (!nr || arg.walk_end < covered->pos || arg.walk_end > arg.end)
			return "walk_end";
		covered->pos = arg.walk_end;
	}
}

FIXTURE(race)
{
	struct race *race;
	struct room room;
};

FIXTURE_VARIANT(race)
{
	bool process;	/* it is another process that changes, not a thread */
};

FIXTURE_VARIANT_ADD(race, with_a_thread) {
};

FIXTURE_VARIANT_ADD(race, with_another_process) {
	.process = true,
};

FIXTURE_SETUP(race)
{
	skip_without_scan(_metadata);
	self->race = mmap(NULL, sizeof(*self->race), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(self->race != MAP_FAILED);
	self->race->seed = 0x9e3779b97f4a7c15;
	ASSERT_TRUE(make_room(&self->room, 1000, 65536));
}

FIXTURE_TEARDOWN(race)
{
	stop_child(&self->race->changer.child);
}

TEST_F_TIMEOUT(race, mappings_that_stay_are_returned, RACE_TIMEOUT)
{
	static const uint32_t vec_lens[] = { 1, 2, 7, 63, 64, 65, 200, 1000 };
	static const uint32_t data_sizes[] = { 65536, 42 };
	static const uint64_t filters[] = { 0, R, 0, R };
	static const uint64_t wanted[] = { 0, 0, ALL, ALL };
	struct race *const race = self->race;
	unsigned int n, before, disturbed = 0, straddling = 0, calls = 0;
	struct covered covered;
	const char *wrong = "";

	race->fd = start_changer(&race->changer, be_changer, race,
				 variant->process);
	ASSERT_LE(0, race->fd);
	ASSERT_TRUE(notify(race->changer.child.control));

	for (n = 0; n < SCANS || race->changes < CHANGES ||
	     disturbed < DISTURBED || straddling < STRADDLING; n++) {
		struct procmap_scan_arg arg =
			ask(&self->room, AREA, addr_of(END_PAGE),
			    wanted[n % ARRAY_SIZE(wanted)]);

		arg.filter = filters[n % ARRAY_SIZE(filters)];
		arg.vec_len = vec_lens[n / 4 % ARRAY_SIZE(vec_lens)];
		/* The second is what one record of the file needs. */
		arg.data_size = data_sizes[n / 32 % ARRAY_SIZE(data_sizes)];
		before = race->changes;
		wrong = wrong_scan_of_area(race->fd, arg, &covered);
		disturbed += race->changes != before;
		straddling += covered.straddling;
		calls += covered.calls;
		if (*wrong || race->stop || is_late())
			break;
	}
	EXPECT_STREQ("", wrong) {
		TH_LOG("scan %u, above %#llx", n, (long long)covered.pos);
	}
	race->stop = true;
	EXPECT_EQ(0, end_of_worker(&race->changer));
	EXPECT_LE((unsigned int)CHANGES, atomic_load(&race->changes));
	EXPECT_LE((unsigned int)DISTURBED, disturbed) {
		TH_LOG("too few changes during a scan in %d seconds", PATIENCE);
	}
	EXPECT_LE((unsigned int)STRADDLING, straddling);
	/* Most take more than one call. */
	EXPECT_LT((unsigned int)SCANS, calls);
}

/* A heap of which the first page stays, in memory that the changer shares. */
struct heap {
	struct worker changer;
	int fd;			/* the target's maps file */
	uint64_t start;
	atomic_uint changes;
	atomic_bool stop;
};

#define HEAP_PAGES	16

#ifndef SYS_mseal
#define SYS_mseal	462	/* since Linux 6.10 */
#endif

static bool set_brk(uint64_t end)
{
	return (unsigned long)syscall(SYS_brk, (unsigned long)end) == end;
}

/*
 * If the first page can be sealed, brk(2) cannot unmap it: it fails when it has moved
 * the end already, and moves it back.
 */
static int be_heap_changer(int control, void *arg)
{
	struct heap *const heap = arg;
	const uint64_t page = page_size();
	const uint64_t now = (unsigned long)syscall(SYS_brk, 0);
	const uint64_t start = (now + page - 1) / page * page;
	const uint64_t high = start + HEAP_PAGES * page;
	bool sealed, ok;
	unsigned int n;

	ok = set_brk(high);
	sealed = ok && !syscall(SYS_mseal, (unsigned long)start, page, 0);
	heap->start = start;
	ok = ok && notify(control) && await(control);
	for (n = 0; ok && !heap->stop; n++) {
		ok = set_brk(high - n % 2 * page) &&
		     set_brk(sealed ? start : start + page) == !sealed;
		heap->changes++;
	}
	heap->stop = true;
	return ok ? 0 : 1;
}

FIXTURE(heap)
{
	struct heap *heap;
	struct room room;
};

FIXTURE_SETUP(heap)
{
	skip_without_scan(_metadata);
	self->heap = mmap(NULL, sizeof(*self->heap), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(self->heap != MAP_FAILED);
	ASSERT_TRUE(make_room(&self->room, 2, 100));
}

FIXTURE_TEARDOWN(heap)
{
	stop_child(&self->heap->changer.child);
}

TEST_F_TIMEOUT(heap, keeps_its_name, RACE_TIMEOUT)
{
	static const char name[] = "[heap]";
	const struct procmap_vma *const record = self->room.vec;
	struct heap *const heap = self->heap;
	struct procmap_scan_arg arg;
	unsigned int before, n, disturbed = 0;

	heap->fd = start_changer(&heap->changer, be_heap_changer, heap, true);
	ASSERT_LE(0, heap->fd);
	ASSERT_TRUE(notify(heap->changer.child.control));

	/* The name is another one for a microsecond of each change. */
	for (n = 0; heap->changes < 50 * CHANGES || disturbed < DISTURBED; n++) {
		arg = ask(&self->room, heap->start, heap->start + page_size(),
			  PROCMAP_SCAN_NAMES);
		before = heap->changes;
		ASSERT_EQ(1, procmap_scan(heap->fd, &arg));
		disturbed += heap->changes != before;
		ASSERT_EQ(sizeof(name), record->name_size);
		ASSERT_TRUE(is_data(&arg, record->name_offset, name, sizeof(name)));
		ASSERT_FALSE(heap->stop || is_late());
	}
	heap->stop = true;
	EXPECT_EQ(0, end_of_worker(&heap->changer));
}

/*
 * Two files whose names change, to names of one length. Those of the first one are
 * 0, 1, 2 and so on. The second one takes each odd one as soon as the first one
 * does not have it any more, and never has an even one.
 */
struct renamer {
	pthread_t thread;
	char dir[PATH_MAX / 2];
	uint64_t inodes[2];
	atomic_uint renames;	/* of the first file, which has this name */
	atomic_bool stop;
};

#define NAME_FORMAT	"%s/%09u"
#define SECOND_NAME	999999999

static bool rename_file(const struct renamer *renamer, unsigned int from,
			unsigned int to)
{
	char old[PATH_MAX], new[PATH_MAX];

	sprintf(old, NAME_FORMAT, renamer->dir, from);
	sprintf(new, NAME_FORMAT, renamer->dir, to);
	return !rename(old, new);
}

/* The name of the second file once the first one has the @n-th. */
static unsigned int second_name(unsigned int n)
{
	return n < 2 ? SECOND_NAME : (n - 2) | 1;
}

/* Give both files the names that they have once the first one has the next. */
static bool rename_both(struct renamer *renamer)
{
	const unsigned int n = renamer->renames, second = second_name(n);

	if (!rename_file(renamer, n, n + 1))
		return false;
	renamer->renames++;
	return second == second_name(n + 1) ||
	       rename_file(renamer, second, second_name(n + 1));
}

static void *be_renamer(void *arg)
{
	struct renamer *const renamer = arg;

	while (!renamer->stop && rename_both(renamer))
		;
	renamer->stop = true;
	return NULL;
}

/* Make a file, and map it as every other three pages from the first one on. */
static bool map_file(const struct renamer *renamer, unsigned int name,
		     unsigned int first, unsigned int nr_pages)
{
	char path[PATH_MAX];
	unsigned int i;
	int fd;

	sprintf(path, NAME_FORMAT, renamer->dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	for (i = first; i < nr_pages; i += i % 3 == 2 ? 4 : 1)
		if (mmap(page_at(i), page_size(), i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) != page_at(i))
			return false;
	return !close(fd);
}

/* @fd: the maps file, by which records know their files. */
static bool map_files(struct renamer *renamer, int fd, unsigned int nr_pages)
{
	char dir[] = "/tmp/procmap-scan-XXXXXX";
	struct maps maps;

	/* The path as the kernel shows it, whatever /tmp is. */
	if (!mkdtemp(dir) || chdir(dir) ||
	    !getcwd(renamer->dir, sizeof(renamer->dir)) ||
	    !map_file(renamer, 0, 0, nr_pages) ||
	    !map_file(renamer, SECOND_NAME, 3, nr_pages) ||
	    read_maps(fd, &maps))
		return false;
	renamer->inodes[0] = line_at(&maps, addr_of(0))->inode;
	renamer->inodes[1] = line_at(&maps, addr_of(3))->inode;
	free_maps(&maps);
	return renamer->inodes[0] != renamer->inodes[1];
}

static void remove_files(const struct renamer *renamer)
{
	char path[PATH_MAX];

	sprintf(path, NAME_FORMAT, renamer->dir, renamer->renames);
	unlink(path);
	sprintf(path, NAME_FORMAT, renamer->dir, second_name(renamer->renames));
	unlink(path);
	rmdir(renamer->dir);
}

/* What the file of a record is called, or UINT_MAX. */
static unsigned int name_of(const struct renamer *renamer,
			    const struct procmap_scan_arg *arg,
			    const struct procmap_vma *record)
{
	const size_t length = strlen(renamer->dir);
	const char *const path = data_at(arg, record->name_offset);

	if (record->name_size != length + sizeof("/012345678") ||
	    !is_data(arg, record->name_offset, path, record->name_size) ||
	    memcmp(path, renamer->dir, length))
		return UINT_MAX;
	return atol(path + length + 1);
}

/*
 * Has the file a name that it had while the first file went from its name @before
 * the scan to that @after? A rename is counted when it is done.
 */
static bool had_name(const struct renamer *renamer, uint64_t inode,
		     unsigned int name, unsigned int before, unsigned int after)
{
	if (inode == renamer->inodes[0])
		return name >= before && name <= after + 1;
	if (name == SECOND_NAME)
		return before < 3;
	return name % 2 && name + 3 >= before && name < after;
}

FIXTURE(renamed)
{
	struct renamer renamer;
	struct room room;
	int fd;
};

FIXTURE_VARIANT(renamed)
{
	/* So copies fault, and take more time between two chunks. */
	bool untouched;
};

FIXTURE_VARIANT_ADD(renamed, in_touched_pages) {
};

FIXTURE_VARIANT_ADD(renamed, in_pages_that_nobody_has_touched) {
	.untouched = true,
};

FIXTURE_SETUP(renamed)
{
	skip_without_scan(_metadata);
	self->fd = open_maps(0);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(make_room(&self->room, 1000, 65536));
	ASSERT_TRUE(map_files(&self->renamer, self->fd, RENAMED_PAGES));
}

FIXTURE_TEARDOWN(renamed)
{
	remove_files(&self->renamer);
	close(self->fd);
}

TEST_F_TIMEOUT(renamed, file_has_a_name_that_it_had, RACE_TIMEOUT)
{
	const size_t size = self->room.vec_len * sizeof(struct procmap_vma);
	struct renamer *const renamer = &self->renamer;
	unsigned int i, before, after, disturbed = 0, others = 0;

	ASSERT_EQ(0, pthread_create(&renamer->thread, NULL, be_renamer,
				    renamer));
	while ((renamer->renames < RENAMES || disturbed < DISTURBED) &&
	       !renamer->stop && !others && !is_late()) {
		struct procmap_scan_arg arg =
			ask(&self->room, AREA, addr_of(RENAMED_PAGES), ALL);

		if (variant->untouched) {
			madvise(self->room.vec, size, MADV_DONTNEED);
			madvise(self->room.data, 65536, MADV_DONTNEED);
		}
		before = renamer->renames;
		ASSERT_EQ(RENAMED_PAGES, procmap_scan(self->fd, &arg));
		after = renamer->renames;
		disturbed += before != after;
		for (i = 0; i < RENAMED_PAGES; i++) {
			const struct procmap_vma *const record =
				record_at(&arg, i);
			const unsigned int name = name_of(renamer, &arg, record);

			if (had_name(renamer, record->inode, name, before,
				     after))
				continue;
			TH_LOG("file %d has name %u, between %u and %u",
			       record->inode == renamer->inodes[1], name,
			       before, after);
			others++;
		}
	}
	renamer->stop = true;
	ASSERT_EQ(0, pthread_join(renamer->thread, NULL));
	EXPECT_EQ(0u, others);
	EXPECT_LE((unsigned int)RENAMES, atomic_load(&renamer->renames));
	EXPECT_LE((unsigned int)DISTURBED, disturbed);
}

/*
 * What changes between two calls of one scan. The target is this process, and each
 * call is compared with the text of its own time.
 */
#define NR_BETWEEN	8
#define NR_RENAMED	12

FIXTURE(between_calls)
{
	int file;
	int fd;
	struct truth truth;
	struct room room;
};

FIXTURE_SETUP(between_calls)
{
	skip_without_scan(_metadata);
	self->file = memfd_create("file", MFD_CLOEXEC);
	self->fd = open_maps(0);
	ASSERT_LE(0, self->file);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(make_room(&self->room, 1000, 65536));
}

FIXTURE_TEARDOWN(between_calls)
{
	close(self->fd);
}

/* Map pages of the file, each at the offset that is its place. */
static bool map_in_a_row(int file, unsigned int nr_each)
{
	unsigned int i;

	for (i = 0; i < NR_BETWEEN; i += nr_each)
		if (mmap(page_at(i), nr_each * page_size(),
			 i % 2 ? PROT_NONE : PROT_READ,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE, file,
			 i * page_size()) != page_at(i))
			return false;
	return true;
}

/* Scan, and compare with the text. Returns the number of records. */
static int scan_between(struct __test_metadata *const _metadata,
			struct _test_data_between_calls *self,
			struct procmap_scan_arg *arg)
{
	int nr;

	free_truth(&self->truth);
	EXPECT_EQ(0, read_truth(self->fd, &self->truth));
	nr = procmap_scan(self->fd, arg);
	EXPECT_STREQ("", wrong_scan(&self->truth, arg, nr));
	return nr;
}

TEST_F(between_calls, mappings_merge)
{
	struct procmap_scan_arg arg =
		ask(&self->room, AREA, addr_of(NR_BETWEEN), ALL);

	ASSERT_TRUE(map_in_a_row(self->file, 1));
	arg.vec_len = 3;
	ASSERT_EQ(3, scan_between(_metadata, self, &arg));
	ASSERT_EQ(addr_of(3), arg.walk_end);

	/* What has been returned merges with what has not. */
	ASSERT_EQ(0, mprotect(page_at(1), 5 * page_size(), PROT_READ));
	go_on(&arg);
	ASSERT_EQ(2, scan_between(_metadata, self, &arg));
	EXPECT_EQ(addr_of(0), self->room.vec[0].start);
	EXPECT_EQ(addr_of(7), self->room.vec[0].end);
	EXPECT_EQ(0u, self->room.vec[0].offset);
	EXPECT_EQ(addr_of(7), self->room.vec[1].start);
	EXPECT_EQ(arg.end, arg.walk_end);
}

TEST_F(between_calls, mapping_splits)
{
	struct procmap_scan_arg arg =
		ask(&self->room, AREA, addr_of(3), ALL);

	ASSERT_TRUE(map_in_a_row(self->file, NR_BETWEEN));
	ASSERT_EQ(1, scan_between(_metadata, self, &arg));
	ASSERT_EQ(addr_of(3), arg.walk_end);

	/* One part covers the address where the next call begins. */
	ASSERT_EQ(0, mprotect(page_at(2), 3 * page_size(), PROT_NONE));
	go_on(&arg);
	arg.end = addr_of(NR_BETWEEN);
	ASSERT_EQ(2, scan_between(_metadata, self, &arg));
	EXPECT_EQ(addr_of(2), self->room.vec[0].start);
	EXPECT_EQ(addr_of(5), self->room.vec[0].end);
	EXPECT_EQ(2 * page_size(), self->room.vec[0].offset);
	EXPECT_EQ(addr_of(5), self->room.vec[1].start);
	EXPECT_EQ(5 * page_size(), self->room.vec[1].offset);
}

/* A stack grows down past the address where the next call begins. */
TEST_F(between_calls, stack_grows)
{
	struct procmap_scan_arg arg =
		ask(&self->room, AREA, addr_of(STACK_PAGE), ALL);

	ASSERT_TRUE(mmap(page_at(STACK_PAGE), page_size(),
			 PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE |
			 MAP_GROWSDOWN, -1, 0) == page_at(STACK_PAGE));
	ASSERT_EQ(0, scan_between(_metadata, self, &arg));
	ASSERT_EQ(addr_of(STACK_PAGE), arg.walk_end);

	atomic_store((atomic_char *)page_at(STACK_PAGE - 2), 1);
	go_on(&arg);
	arg.end = addr_of(END_PAGE);
	ASSERT_EQ(1, scan_between(_metadata, self, &arg));
	EXPECT_GE(addr_of(STACK_PAGE - 2), self->room.vec->start);
	EXPECT_EQ(addr_of(END_PAGE), self->room.vec->end);
}

/* Where the next call would begin, nothing is left. */
TEST_F(between_calls, mappings_go)
{
	struct procmap_scan_arg arg =
		ask(&self->room, AREA, addr_of(NR_BETWEEN), ALL);

	ASSERT_TRUE(map_in_a_row(self->file, 1));
	arg.vec_len = 3;
	ASSERT_EQ(3, scan_between(_metadata, self, &arg));
	ASSERT_EQ(0, munmap(page_at(2), 4 * page_size()));
	go_on(&arg);
	ASSERT_EQ(2, scan_between(_metadata, self, &arg));
	EXPECT_EQ(addr_of(6), self->room.vec[0].start);
	EXPECT_EQ(arg.end, arg.walk_end);
}

/*
 * Two files, three pages each by turns. Between two calls the first one gets a new
 * name, and the second one the name that the first one had. Without a size, the
 * data has room for one name.
 */
static void rename_between(struct __test_metadata *const _metadata,
			   struct _test_data_between_calls *self,
			   struct procmap_scan_arg arg)
{
	const struct procmap_vma *const vma = self->room.vec;
	struct renamer renamer = {};
	char names[2][PATH_MAX];
	int i, nr;

	ASSERT_TRUE(map_files(&renamer, self->fd, NR_RENAMED));
	if (!arg.data_size)
		arg.data_size = strlen(renamer.dir) + sizeof("/012345678");
	ASSERT_LE(1, scan_between(_metadata, self, &arg));
	ASSERT_GE(addr_of(5), arg.walk_end);

	sprintf(names[0], NAME_FORMAT, renamer.dir, 1);
	sprintf(names[1], NAME_FORMAT, renamer.dir, 0);
	ASSERT_TRUE(rename_file(&renamer, 0, 1));
	ASSERT_TRUE(rename_file(&renamer, SECOND_NAME, 0));
	while (arg.walk_end != arg.end) {
		go_on(&arg);
		nr = scan_between(_metadata, self, &arg);
		ASSERT_LE(1, nr);
		for (i = 0; i < nr; i++)
			EXPECT_STREQ(names[vma[i].inode == renamer.inodes[1]],
				     data_at(&arg, vma[i].name_offset));
	}
	unlink(names[0]);
	unlink(names[1]);
	rmdir(renamer.dir);
}

TEST_F(between_calls, files_are_renamed_with_the_array_full)
{
	unsigned int vec_len;

	for (vec_len = 1; vec_len <= 5; vec_len++) {
		struct procmap_scan_arg arg =
			ask(&self->room, AREA, addr_of(NR_RENAMED), ALL);

		arg.vec_len = vec_len;
		rename_between(_metadata, self, arg);
		ASSERT_EQ(0, munmap(page_at(0), NR_RENAMED * page_size()));
	}
}

TEST_F(between_calls, files_are_renamed_with_the_data_full)
{
	struct procmap_scan_arg arg =
		ask(&self->room, AREA, addr_of(NR_RENAMED), ALL);

	arg.data_size = 0;
	rename_between(_metadata, self, arg);
}

/* A process with many mappings, none of which changes, and how it ends. */
struct plan {
	unsigned int nr;
	bool executes;		/* another program; else it exits */
	bool unmaps;		/* all that it has, before */
};

/* The end of the addresses of a process. */
#ifdef __LP64__
#define ADDRESSES	((1UL << 47) - 4096)
#else
#define ADDRESSES	0xffffe000UL
#endif

/* The exit status of a target that exits as planned. */
#define EXITED	42

/*
 * Become a program that sends back what it hears: nothing but the new program
 * can do that, so the test knows that this is what ended the address space.
 */
static int execute_echo(int control)
{
	if (dup2(control, STDIN_FILENO) < 0 || dup2(control, STDOUT_FILENO) < 0)
		return 1;
	execlp("cat", "cat", NULL);
	return 1;
}

static int be_target(int control, void *arg)
{
	const struct plan *const plan = arg;
	const int fd = memfd_create("file", MFD_CLOEXEC);
	unsigned int i;

	for (i = 0; i < plan->nr; i++) {
		const bool is_file = i % 100 == 0;

		if (mmap(page_at(i), page_size(), i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE |
			 (is_file ? 0 : MAP_ANONYMOUS), is_file ? fd : -1,
			 0) != page_at(i))
			return 1;
	}
	if (!notify(control) || !await(control))
		return 1;
	/* It does not return: there is nothing to return to. */
	if (plan->unmaps)
		syscall(SYS_munmap, 0, ADDRESSES);
	return plan->executes ? execute_echo(control) : EXITED;
}

FIXTURE(target)
{
	struct child child;
	int fd;
	struct truth truth;
	struct room room;
};

FIXTURE_SETUP(target)
{
	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&self->room, NR_MAPPINGS + 1000, 65536));
}

FIXTURE_TEARDOWN(target)
{
	stop_child(&self->child);
	free_truth(&self->truth);
	close(self->fd);
}

static const struct plan many = { .nr = NR_MAPPINGS };

static void start_target(struct __test_metadata *const _metadata,
			 struct _test_data_target *self, struct plan plan)
{
	ASSERT_TRUE(start_child(&self->child, be_target, &plan));
	ASSERT_TRUE(await(self->child.control));
	self->fd = open_maps(self->child.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
}

/* What signals have done to scans. */
struct interrupted {
	unsigned int errors;
	unsigned int parts;
};

/* Scan all, going on after each interruption. Returns what is wrong, or "". */
static const char *wrong_interrupted_scan(const struct _test_data_target *self,
					  uint64_t filter, uint64_t want,
					  struct interrupted *interrupted)
{
	struct procmap_scan_arg arg = ask(&self->room, 0, NO_END, want);
	const char *wrong;
	size_t next = 0;
	int nr;

	arg.filter = filter;
	for (;; go_on(&arg)) {
		/* After EINTR, too, all outputs have been set. */
		arg.data_used = ~0u;
		arg.data_needed = ~0u;
		arg.flags = ~0u;
		nr = procmap_scan(self->fd, &arg);
		if (nr < 0 && nr != -EINTR)
			return strerror(-nr);
		if (is_late())
			return "still interrupted when time was up";
		wrong = wrong_part(&self->truth, &arg, nr < 0 ? 0 : nr, &next);
		if (*wrong)
			return wrong;
		if (arg.data_needed)
			return "data_needed";
		if (arg.walk_end == arg.end)
			return nr < 0 ? "an error at the end" : "";
		if (!nr)
			return "no record and no error";
		interrupted->errors += nr < 0;
		interrupted->parts += nr > 0;
	}
}

static void ignore(int signal)
{
	(void)signal;
}

/* Let a signal do nothing but interrupt. */
static bool catch_signal(int signal)
{
	const struct sigaction action = { .sa_handler = ignore };

	return !sigaction(signal, &action, NULL);
}

static bool is_enough(const struct interrupted *interrupted)
{
	return interrupted->errors >= INTERRUPTIONS &&
	       interrupted->parts >= INTERRUPTIONS;
}

/* Scan with signals arriving until there have been enough interruptions. */
static void scan_interrupted(struct __test_metadata *const _metadata,
			     const struct _test_data_target *self)
{
	/* Nothing that is mapped is shared. */
	static const uint64_t filters[] = { S, 0, 0, S };
	static const uint64_t wanted[] = { 0, 0, ALL, ALL };
	struct interrupted interrupted = {};
	const char *wrong;
	unsigned int i;

	for (i = 0; !is_enough(&interrupted) && !is_late(); i++) {
		wrong = wrong_interrupted_scan(self, filters[i % 4],
					       wanted[i % 4], &interrupted);
		ASSERT_STREQ("", wrong);
	}
	EXPECT_TRUE(is_enough(&interrupted)) {
		TH_LOG("only %u errors and %u parts in %d seconds",
		       interrupted.errors, interrupted.parts, PATIENCE);
	}
}

TEST_F_TIMEOUT(target, scan_is_interrupted_by_a_timer, RACE_TIMEOUT)
{
	const struct itimerval interval = { { 0, 100 }, { 0, 100 } };
	const struct itimerval never = {};

	start_target(_metadata, self, many);
	ASSERT_TRUE(catch_signal(SIGALRM));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &interval, NULL));
	scan_interrupted(_metadata, self);
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
}

/* A thread that sends signals to another. */
struct sender {
	pthread_t thread;
	pid_t tid;
	atomic_bool stop;
};

static void *be_sender(void *arg)
{
	struct sender *const sender = arg;

	while (!sender->stop)
		syscall(SYS_tgkill, getpid(), sender->tid, SIGUSR1);
	return NULL;
}

TEST_F_TIMEOUT(target, scan_is_interrupted_by_a_thread, RACE_TIMEOUT)
{
	struct sender sender = { .tid = syscall(SYS_gettid) };

	start_target(_metadata, self, many);
	ASSERT_TRUE(catch_signal(SIGUSR1));
	ASSERT_EQ(0, pthread_create(&sender.thread, NULL, be_sender, &sender));
	scan_interrupted(_metadata, self);
	sender.stop = true;
	ASSERT_EQ(0, pthread_join(sender.thread, NULL));
}

TEST_F_TIMEOUT(target, scan_is_not_interrupted_by_what_is_blocked, RACE_TIMEOUT)
{
	struct interrupted interrupted = {};
	sigset_t set;

	start_target(_metadata, self, many);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	ASSERT_EQ(0, raise(SIGUSR1));
	EXPECT_STREQ("", wrong_interrupted_scan(self, 0, 0, &interrupted));
	EXPECT_STREQ("", wrong_interrupted_scan(self, S, 0, &interrupted));
	EXPECT_EQ(0u, interrupted.parts + interrupted.errors);
}

/*
 * Scan a target again and again whose address space is about to go. All results
 * are right until the first ESRCH, and then it is ESRCH for ever. Counts the
 * calls before that.
 */
static const char *wrong_until_gone(const struct _test_data_target *self,
				    unsigned int *calls)
{
	struct procmap_scan_arg arg = ask(&self->room, 0, NO_END, ALL);
	const char *wrong;
	size_t next = 0;
	int nr;

	for (;; ++*calls) {
		arg.vec_len = 1 + *calls % 200;
		nr = procmap_scan(self->fd, &arg);
		if (nr == -ESRCH)
			break;
		if (is_late())
			return "still no ESRCH when time was up";
		if (nr < 0)
			return strerror(-nr);
		wrong = wrong_part(&self->truth, &arg, nr, &next);
		if (*wrong)
			return wrong;
		arg.start = arg.walk_end == arg.end ? 0 : arg.walk_end;
	}
	return procmap_scan(self->fd, &arg) == -ESRCH ? "" : "back from ESRCH";
}

/* The target has gone: get ready for the next one. */
static void forget_target(struct _test_data_target *self)
{
	stop_child(&self->child);
	free_truth(&self->truth);
	close(self->fd);
}

TEST_F_TIMEOUT(target, process_exits_while_scanned, RACE_TIMEOUT)
{
	static const struct plan plan = { .nr = 300 };
	unsigned int i, calls = 0;

	for (i = 0; i < EXITS; i++) {
		start_target(_metadata, self, plan);
		ASSERT_TRUE(notify(self->child.control));
		ASSERT_STREQ("", wrong_until_gone(self, &calls));
		ASSERT_EQ(EXITED, end_of_child(&self->child));
		forget_target(self);
	}
	EXPECT_LT(0u, calls);
}

/* The address space is empty from then on, until SIGSEGV has ended the process. */
TEST_F_TIMEOUT(target, process_unmaps_everything_while_scanned, RACE_TIMEOUT)
{
	static const struct plan plan = { .nr = 10, .unmaps = true };
	struct procmap_scan_arg arg;
	unsigned int i;
	int nr;

	for (i = 0; i < EXITS; i++) {
		start_target(_metadata, self, plan);
		arg = ask(&self->room, 0, NO_END, ALL);
		ASSERT_TRUE(notify(self->child.control));
		do {
			nr = procmap_scan(self->fd, &arg);
			ASSERT_FALSE(is_late());
		} while (nr >= 0);
		ASSERT_EQ(-ESRCH, nr);
		/* By a signal. */
		ASSERT_EQ(-1, end_of_child(&self->child));
		forget_target(self);
	}
}

TEST_F_TIMEOUT(target, process_executes_another_program_while_scanned,
	       RACE_TIMEOUT)
{
	static const struct plan plan = { .nr = 300, .executes = true };
	unsigned int i, calls = 0;

	for (i = 0; i < EXECS; i++) {
		start_target(_metadata, self, plan);
		ASSERT_TRUE(notify(self->child.control));
		ASSERT_STREQ("", wrong_until_gone(self, &calls));
		/* The process goes on: the new program sends this back. */
		ASSERT_TRUE(notify(self->child.control));
		ASSERT_TRUE(await(self->child.control));
		forget_target(self);
	}
	EXPECT_LT(0u, calls);
}

/* Of the process that forks and its youngest child. */
struct forks {
	atomic_int newborn;
	atomic_uint nr;
};

/* Fork children that exit at once. */
static int be_parent(int control, void *arg)
{
	struct forks *const forks = arg;
	pid_t pid;

	notify(control);
	await(control);
	for (;;) {
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid < 0)
			return 1;
		forks->newborn = pid;
		if (waitpid(pid, NULL, 0) != pid)
			return 1;
		forks->nr++;
	}
}

/* A child has what its parent has, as long as it is there. */
static const char *wrong_newborn(pid_t pid, struct _test_data_target *self,
				 unsigned int *calls)
{
	const int parent = self->fd;
	const char *wrong = "";

	self->fd = open_maps(pid);
	if (self->fd >= 0) {
		wrong = wrong_until_gone(self, calls);
		close(self->fd);
	}
	self->fd = parent;
	return wrong;
}

TEST_F_TIMEOUT(target, process_forks_while_scanned, RACE_TIMEOUT)
{
	struct forks *const forks = mmap(NULL, sizeof(*forks),
					 PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct interrupted interrupted = {};
	unsigned int calls = 0;

	ASSERT_TRUE(forks != MAP_FAILED);
	ASSERT_TRUE(start_child(&self->child, be_parent, forks));
	ASSERT_TRUE(await(self->child.control));
	self->fd = open_maps(self->child.pid);
	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
	ASSERT_TRUE(notify(self->child.control));
	while ((forks->nr < FORKS || !calls) && !is_late()) {
		ASSERT_STREQ("", wrong_interrupted_scan(self, 0, ALL,
							&interrupted));
		if (forks->newborn)
			ASSERT_STREQ("", wrong_newborn(forks->newborn, self,
						       &calls));
	}
	EXPECT_LE((unsigned int)FORKS, atomic_load(&forks->nr));
	EXPECT_LT(0u, calls);
	EXPECT_EQ(0u, interrupted.errors + interrupted.parts);
}

TEST_HARNESS_MAIN
