// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY returns only what was mapped before or after a change
 * while the mappings of the target change.
 */
#include "procmap-race.h"

#define NEXT	PROCMAP_QUERY_COVERING_OR_NEXT_VMA
#define W	PROCMAP_QUERY_VMA_WRITABLE
#define X	PROCMAP_QUERY_VMA_EXECUTABLE
#define S	PROCMAP_QUERY_VMA_SHARED
#define F	PROCMAP_QUERY_FILE_BACKED_VMA

/* The slot: the pages where all changes happen and all queries look. */
#define SLOT_PAGES	10

/* A mapping that stays, and passes the filters of a search, which ends here. */
#define FENCE_PAGE	(SLOT_PAGES + 1)

/* What is mapped in the slot before the first change. */
#define FIRST_PAGES	4

#define MAX_STATES	4

/* What each querier asks at least. */
#define QUESTIONS	2000
#define NR_QUERIERS	2

#define EXITS		60

/*
 * A kind of change: the slot goes through its states in turn, with one system
 * call or page fault from each to the next and from the last to the first, so
 * nothing else is ever to be seen. All else that happens in a step leaves the
 * slot alone.
 */
struct kind {
	bool (*step)(unsigned int to);
	unsigned int nr_states;
	unsigned int changes;	/* at least; each has to wait for the queriers */
	unsigned int texts;	/* and the text is read so often meanwhile */
};

/* In memory that a forked changer shares. */
struct race {
	const struct kind *kind;
	struct worker changer;
	int fd;			/* the target's maps file */
	atomic_uint changes;
	atomic_uint texts;
	atomic_bool stop;
	struct maps states[MAX_STATES];		/* the text of each */
	uint8_t build_id[20];
	uint32_t build_id_size;
};

/* A question and its answer. */
struct exchange {
	enum { FIELDS, NAME, BUILD_ID } what;
	uint64_t addr;
	uint64_t flags;
	int err;
	struct procmap_query query;
	char name[PATH_MAX];
	uint8_t build_id[20];
};

struct querier {
	pthread_t thread;
	struct race *race;
	unsigned int seen[MAX_STATES];	/* answers of this state alone */
	bool failed;	/* by the answer in @last */
	struct exchange last;
};

static int program = -1;

static bool map_anon(unsigned int page, unsigned int nr, int flags)
{
	return mmap(page_at(page), nr * page_size(), PROT_READ | PROT_WRITE,
		    MAP_ANONYMOUS | flags, -1, 0) == page_at(page);
}

static bool map_program(int flags)
{
	return mmap(page_at(0), FIRST_PAGES * page_size(), PROT_READ,
		    MAP_PRIVATE | flags, program, page_size()) == page_at(0);
}

static bool unmap(unsigned int page, unsigned int nr)
{
	return !munmap(page_at(page), nr * page_size());
}

static bool protect(unsigned int page, unsigned int nr, int prot)
{
	return !mprotect(page_at(page), nr * page_size(), prot);
}

static bool set_scene(void)
{
	return map_program(MAP_FIXED_NOREPLACE) &&
	       map_anon(FENCE_PAGE, 1, MAP_SHARED | MAP_FIXED_NOREPLACE);
}

static bool mmap_or_munmap(unsigned int to)
{
	switch (to) {
	case 0:
		return unmap(0, SLOT_PAGES);
	case 1:
		return map_program(MAP_FIXED);
	case 2:
		return map_anon(0, SLOT_PAGES, MAP_PRIVATE | MAP_FIXED);
	default:
		return unmap(2, 3);
	}
}

/* Not writable: that would be accounted for ever, and keep the parts apart. */
static bool mprotect_parts(unsigned int to)
{
	switch (to) {
	case 0:
		return protect(0, FIRST_PAGES, PROT_READ);
	case 1:
		return protect(2, 2, PROT_READ | PROT_EXEC);
	default:
		return protect(1, 2, PROT_NONE);
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

static bool touch(unsigned int page)
{
	atomic_store((atomic_char *)page_at(page), 1);
	return true;
}

static bool grow_stack(unsigned int to)
{
	switch (to) {
	case 0:
		return unmap(0, SLOT_PAGES);
	case 1:
		return map_anon(8, 2, MAP_PRIVATE | MAP_FIXED | MAP_GROWSDOWN);
	case 2:
		return touch(7);
	default:
		return touch(3);
	}
}

/* Query the start of the slot through a file that is opened only now. */
static void query_self(struct exchange *self)
{
	const int fd = open_maps(0);

	self->err = query_fields(fd, AREA, NEXT, &self->query);
	close(fd);
}

/* Fork, and let the child see that it has the mapping of its parent. */
static bool fork_once(void)
{
	struct exchange parent, child;
	int status;
	pid_t pid;

	query_self(&parent);
	pid = fork();
	if (!pid) {
		query_self(&child);
		_exit(parent.err || child.err ||
		      memcmp(&parent.query, &child.query,
			     sizeof(parent.query)));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static bool change_and_fork(unsigned int to)
{
	return mmap_or_munmap(to) && fork_once();
}

/*
 * A program with a build ID, in memory: the VMAs of a file on FUSE never merge,
 * and a slot that is split there does not come back to how it was.
 */
static bool make_program(void)
{
	static const uint8_t id[20] = "procmap-query-race";

	program = memfd_create("program", MFD_CLOEXEC);
	return program >= 0 && write_elf(program, id) &&
	       !ftruncate(program, (1 + FIRST_PAGES) * page_size());
}

static struct race *make_race(void)
{
	struct race *const race = mmap(NULL, sizeof(*race),
				       PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return !make_program() || race == MAP_FAILED ? NULL : race;
}

/* Go through all states: one step for each byte heard, then without pause. */
static int be_changer(int control, void *arg)
{
	struct race *const race = arg;
	const struct kind *const kind = race->kind;
	unsigned int to;
	bool ok;

	ok = set_scene() && notify(control);
	for (to = 0; ok && to < kind->nr_states; to++)
		ok = await(control) && kind->step(to) && notify(control);
	ok = ok && await(control);
	while (ok && !race->stop) {
		ok = kind->step(race->changes % kind->nr_states);
		race->changes++;
	}
	race->stop = true;
	return ok ? 0 : 1;
}

/* Send one of many queries, which take turns as @n counts. */
static void ask(int fd, unsigned int n, struct exchange *x)
{
	const uint64_t flags[] = { 0, X, NEXT, NEXT | W, NEXT | F };

	x->addr = (uintptr_t)page_at(n % SLOT_PAGES) + n % page_size();
	x->flags = flags[n / SLOT_PAGES % ARRAY_SIZE(flags)];
	x->name[0] = '\0';
	x->what = n % 3;
	switch (x->what) {
	case FIELDS:
		x->err = query_fields(fd, x->addr, x->flags, &x->query);
		break;
	case NAME:
		x->err = query_name(fd, x->addr, x->flags, &x->query, x->name,
				    sizeof(x->name));
		break;
	case BUILD_ID:
		x->flags = 0;
		x->err = query_build_id(fd, x->addr, &x->query, x->build_id,
					sizeof(x->build_id));
		break;
	}
}

static bool same_name(const struct maps_line *line, const struct exchange *x)
{
	char text[4 * PATH_MAX];

	escape_name(x->name, text, sizeof(text));
	return !strcmp(line->name, text) &&
	       x->query.vma_name_size == (*x->name ? strlen(x->name) + 1 : 0);
}

/* Of the files that are mapped, only the fence's is not the program. */
static bool same_build_id(const struct race *race,
			  const struct maps_line *line,
			  const struct exchange *x)
{
	if (!line->inode || (line->flags & S))
		return !x->query.build_id_size;
	return x->query.build_id_size == race->build_id_size &&
	       !memcmp(x->build_id, race->build_id, race->build_id_size);
}

/* Is this the right answer as long as the state lasts? */
static bool is_answer(const struct race *race, unsigned int state,
		      const struct exchange *x)
{
	const struct maps_line *line;

	line = expected_line(&race->states[state], x->addr, x->flags);
	if (!line || x->err)
		return !line && x->err == -ENOENT;
	if (!same_fields(line, &x->query) ||
	    x->query.vma_page_size != page_size())
		return false;
	if (x->what == NAME)
		return same_name(line, x);
	return x->what != BUILD_ID || same_build_id(race, line, x);
}

/* Find the states with that answer; count it if there is only one. */
static bool check(struct querier *querier)
{
	unsigned int i, state = 0, nr = 0;

	for (i = 0; i < querier->race->kind->nr_states; i++) {
		if (is_answer(querier->race, i, &querier->last)) {
			state = i;
			nr++;
		}
	}
	if (nr == 1)
		querier->seen[state]++;
	return nr;
}

static bool has_seen_all(const struct querier *querier)
{
	unsigned int i;

	for (i = 0; i < querier->race->kind->nr_states; i++)
		if (!querier->seen[i])
			return false;
	return true;
}

/* Query until all have done their part, and each state has been met. */
static void *be_querier(void *arg)
{
	struct querier *const querier = arg;
	struct race *const race = querier->race;
	unsigned int n;

	for (n = 0; n < QUESTIONS || !has_seen_all(querier) ||
	     race->changes < race->kind->changes ||
	     race->texts < race->kind->texts; n++) {
		ask(race->fd, n, &querier->last);
		querier->failed = !check(querier);
		if (querier->failed || is_late())
			race->stop = true;
		if (race->stop)
			break;
	}
	return NULL;
}

/* Is this line of the text one that a state has? */
static bool is_line(const struct race *race, const struct maps_line *line)
{
	const struct maps_line *known;
	unsigned int i;

	for (i = 0; i < race->kind->nr_states; i++) {
		known = line_at(&race->states[i], line->start);
		if (known && known->start == line->start &&
		    known->end == line->end && known->flags == line->flags &&
		    known->offset == line->offset &&
		    known->inode == line->inode &&
		    !strcmp(known->name, line->name))
			return true;
	}
	return false;
}

/* Returns false if the text shows a mapping that never was. */
static bool read_text(const struct race *race)
{
	const uint64_t end = (uintptr_t)page_at(SLOT_PAGES);
	struct maps maps;
	bool ok = true;
	size_t i;

	if (read_maps(race->fd, &maps))
		return false;
	for (i = 0; ok && i < maps.nr; i++)
		if (maps.lines[i].end > AREA && maps.lines[i].start < end)
			ok = is_line(race, &maps.lines[i]);
	free_maps(&maps);
	return ok;
}

/* Read the text as often as is wanted, or until it is wrong. */
static void read_texts(struct race *race)
{
	while (race->texts < race->kind->texts && !race->stop) {
		if (read_text(race))
			race->texts++;
		else
			race->stop = true;
	}
}

/* Start the changer, and record what the text and the build ID are. */
static void prepare(struct __test_metadata *const _metadata, struct race *race,
		    const struct kind *kind, bool process)
{
	struct procmap_query query;
	unsigned int i;

	race->kind = kind;
	race->fd = start_changer(&race->changer, be_changer, race, process);
	ASSERT_LE(0, race->fd);
	ASSERT_EQ(0, query_build_id(race->fd, AREA, &query, race->build_id,
				    sizeof(race->build_id)));
	race->build_id_size = query.build_id_size;
	ASSERT_NE(0u, race->build_id_size);

	for (i = 0; i < kind->nr_states; i++) {
		ASSERT_TRUE(notify(race->changer.child.control));
		ASSERT_TRUE(await(race->changer.child.control));
		ASSERT_EQ(0, read_maps(race->fd, &race->states[i]));
	}
}

static void log_wrong(struct __test_metadata *const _metadata,
		      const struct exchange *x)
{
	TH_LOG("%d at %#llx, flags %#llx: error %d, %#llx-%#llx %#llx %#llx %s",
	       x->what, (unsigned long long)x->addr,
	       (unsigned long long)x->flags, -x->err, x->query.vma_start,
	       x->query.vma_end, x->query.vma_flags, x->query.vma_offset,
	       x->name);
}

static void run_race(struct __test_metadata *const _metadata, struct race *race,
		     const struct kind *kind, bool process)
{
	struct querier queriers[NR_QUERIERS] = {};
	unsigned int i;

	prepare(_metadata, race, kind, process);
	ASSERT_TRUE(notify(race->changer.child.control));
	for (i = 0; i < NR_QUERIERS; i++) {
		queriers[i].race = race;
		ASSERT_EQ(0, pthread_create(&queriers[i].thread, NULL,
					    be_querier, &queriers[i]));
	}
	read_texts(race);
	for (i = 0; i < NR_QUERIERS; i++)
		ASSERT_EQ(0, pthread_join(queriers[i].thread, NULL));
	race->stop = true;
	EXPECT_EQ(0, end_of_worker(&race->changer));

	for (i = 0; i < NR_QUERIERS; i++) {
		EXPECT_TRUE(has_seen_all(&queriers[i])) {
			TH_LOG("a state was not seen in %d seconds", PATIENCE);
		}
		EXPECT_FALSE(queriers[i].failed)
			log_wrong(_metadata, &queriers[i].last);
	}
	EXPECT_LE(kind->changes, atomic_load(&race->changes));
	EXPECT_EQ(kind->texts, atomic_load(&race->texts));
}

FIXTURE(race)
{
	struct race *race;
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
	self->race = make_race();
	ASSERT_TRUE(!!self->race);
}

FIXTURE_TEARDOWN(race)
{
	stop_child(&self->race->changer.child);
}

TEST_F_TIMEOUT(race, mmap_munmap, RACE_TIMEOUT)
{
	const struct kind kind = { mmap_or_munmap, .nr_states = 4, .changes = 150 };

	run_race(_metadata, self->race, &kind, variant->process);
}

TEST_F_TIMEOUT(race, mprotect_splits, RACE_TIMEOUT)
{
	const struct kind kind = { mprotect_parts, .nr_states = 3, .changes = 150 };

	run_race(_metadata, self->race, &kind, variant->process);
}

TEST_F_TIMEOUT(race, mremap_moves, RACE_TIMEOUT)
{
	const struct kind kind = { mremap_all, .nr_states = 3, .changes = 150 };

	run_race(_metadata, self->race, &kind, variant->process);
}

TEST_F_TIMEOUT(race, stack_grows, RACE_TIMEOUT)
{
	const struct kind kind = { grow_stack, .nr_states = 4, .changes = 150 };

	run_race(_metadata, self->race, &kind, variant->process);
}

TEST_F_TIMEOUT(race, fork_while_queried, RACE_TIMEOUT)
{
	const struct kind kind = { change_and_fork, .nr_states = 4, .changes = 30 };

	run_race(_metadata, self->race, &kind, variant->process);
}

TEST_F_TIMEOUT(race, reader_of_the_text_meanwhile, RACE_TIMEOUT)
{
	const struct kind kind = { mmap_or_munmap, .nr_states = 4,
				   .changes = 150, .texts = 100 };

	run_race(_metadata, self->race, &kind, variant->process);
}

/* Change nothing: the target is to end instead. */
static bool keep(unsigned int to)
{
	return !to;
}

/* Kill the target. Returns how many queries succeeded after that. */
static unsigned int kill_and_query(struct __test_metadata *const _metadata,
				   const struct race *race)
{
	struct exchange x;
	unsigned int n;

	EXPECT_EQ(0, kill(race->changer.child.pid, SIGKILL));
	ask(race->fd, 0, &x);
	for (n = 0; is_answer(race, 0, &x) && !is_late(); n++)
		ask(race->fd, n + 1, &x);
	EXPECT_EQ(-ESRCH, x.err)
		log_wrong(_metadata, &x);
	ask(race->fd, 0, &x);
	EXPECT_EQ(-ESRCH, x.err);
	return n;
}

FIXTURE(target)
{
	struct race *race;
};

FIXTURE_SETUP(target)
{
	self->race = make_race();
	ASSERT_TRUE(!!self->race);
}

FIXTURE_TEARDOWN(target)
{
	stop_child(&self->race->changer.child);
}

TEST_F_TIMEOUT(target, exits_while_queried, RACE_TIMEOUT)
{
	const struct kind kind = { keep, .nr_states = 1 };
	struct race *const race = self->race;
	unsigned int i, answers = 0;

	for (i = 0; i < EXITS; i++) {
		prepare(_metadata, race, &kind, true);
		answers += kill_and_query(_metadata, race);
		stop_child(&race->changer.child);
		close(race->fd);
		free_maps(&race->states[0]);
	}
	EXPECT_LT(0u, answers);
}

TEST_HARNESS_MAIN
