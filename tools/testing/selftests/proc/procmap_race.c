// SPDX-License-Identifier: GPL-2.0
/*
 * A process whose mappings change from one known state to another, and how one ends.
 */
#include "procmap_race.h"

/* Changes at the least: each has to wait for the reader. */
#define CHANGES		150

/* Mappings of a process that ends. */
#define NR_STILL	300

#define R	PROT_READ
#define W	PROT_WRITE
#define X	PROT_EXEC

/*
 * A race goes through its states in turn, with one system call or page fault from each to
 * the next and from the last to the first, so nothing else is ever to be seen. A page of
 * the file is mapped at its own place only, so that neighbours can merge. They are not
 * writable: that would be accounted for ever, and keep the parts apart.
 */
struct step {
	enum { NONE, UNMAP, FILE_AT, MEMORY_AT, PROTECT, REMAP, STACK_AT, TOUCH, RENAME_TO } what;
	unsigned int page, nr;
	unsigned int prot;	/* or the page to move to, or the new name */
	unsigned int new_nr;
};

static const struct step races[NR_RACES][MAX_STATES] = {
	[MMAP] = {
		{ UNMAP, 0, 10, 0, 0 },
		{ FILE_AT, 0, 4, R, 0 },
		{ MEMORY_AT, 0, 10, R | W, 0 },
		{ UNMAP, 2, 3, 0, 0 },
	},
	[MPROTECT] = {
		{ PROTECT, 0, 4, R, 0 },
		{ PROTECT, 2, 2, R | X, 0 },
		{ PROTECT, 1, 2, 0, 0 },
	},
	[MREMAP] = {
		{ REMAP, 0, 4, 5, 4 },
		{ REMAP, 5, 4, 5, 5 },
		{ REMAP, 5, 5, 0, 4 },
	},
	[STACK] = {
		{ UNMAP, 0, 10, 0, 0 },
		{ STACK_AT, 8, 2, R | W, 0 },
		{ TOUCH, 7, 1, 0, 0 },
		{ TOUCH, 3, 1, 0, 0 },
	},
	[RENAME] = {
		{ RENAME_TO, 0, 0, 0, 0 },
		{ RENAME_TO, 0, 0, 1, 0 },
	},
};

static int file;
static char names[2][64];

static bool map_at(const struct step *step, int flags)
{
	return mmap(page_at(step->page), step->nr * page_size(), step->prot,
		    MAP_FIXED | MAP_PRIVATE | flags, flags & MAP_ANONYMOUS ? -1 : file,
		    step->page * page_size()) == page_at(step->page);
}

static bool make_step(const struct step *step)
{
	char *const at = page_at(step->page);
	const size_t size = step->nr * page_size();
	void *to;

	switch (step->what) {
	case UNMAP:
		return !munmap(at, size);
	case FILE_AT:
		return map_at(step, 0);
	case MEMORY_AT:
		return map_at(step, MAP_ANONYMOUS);
	case STACK_AT:
		return map_at(step, MAP_ANONYMOUS | MAP_GROWSDOWN);
	case PROTECT:
		return !mprotect(at, size, step->prot);
	case REMAP:
		to = page_at(step->prot);
		return mremap(at, size, step->new_nr * page_size(), to == at ? 0 :
			      MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
	case TOUCH:
		atomic_store((atomic_char *)at, 1);
		return true;
	case RENAME_TO:
		return !rename(names[!step->prot], names[step->prot]);
	default:
		return false;
	}
}

/* A file in memory: on other file systems, VMAs that were split may not merge again. */
static bool make_file(enum race_kind kind)
{
	if (kind != RENAME) {
		file = make_elf("file", scene_id);
		return file >= 0;
	}
	sprintf(names[0], "/tmp/procmap-race-%d", getpid());
	sprintf(names[1], "/tmp/procmap-race-%d.renamed", getpid());
	file = open(names[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	return write_elf(file, scene_id);
}

struct changer {
	const struct step *steps;
	unsigned int nr;
	struct race_shared *shared;
};

/* Go through all states, one step for each byte heard; then without pause. */
static int be_changer(int control, void *arg)
{
	static const struct step first = { FILE_AT, 0, 4, R, 0 };
	const struct changer *const changer = arg;
	bool ok = map_at(&first, 0) &&
		  mmap(page_at(FENCE_PAGE), page_size(), R | W, MAP_FIXED | MAP_SHARED |
		       MAP_ANONYMOUS, -1, 0) != MAP_FAILED && notify(control);
	unsigned int n;

	for (n = 0; ok && n < changer->nr; n++)
		ok = await(control) && make_step(&changer->steps[n]) && notify(control);
	ok = ok && await(control);
	for (n = 0; ok && !changer->shared->stop; n++) {
		ok = make_step(&changer->steps[n % changer->nr]);
		changer->shared->changes++;
	}
	unlink(names[0]);
	unlink(names[1]);
	return !ok;
}

bool start_race(struct race *race, enum race_kind kind)
{
	struct changer changer = { .steps = races[kind] };
	unsigned int i;

	while (changer.nr < MAX_STATES && changer.steps[changer.nr].what)
		changer.nr++;
	changer.shared = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED |
			      MAP_ANONYMOUS, -1, 0);
	race->shared = changer.shared;
	race->nr_states = changer.nr;
	if (!make_file(kind) || !start_child(&race->changer, be_changer, &changer) ||
	    !await(race->changer.control))
		return false;
	race->fd = open_maps(race->changer.pid);
	for (i = 0; i < race->nr_states; i++)
		if (!notify(race->changer.control) || !await(race->changer.control) ||
		    read_maps(race->fd, &race->states[i]))
			return false;
	return notify(race->changer.control);
}

bool end_race(struct race *race)
{
	race->shared->stop = true;
	return !end_of_child(&race->changer);
}

bool race_is_over(const struct race *race)
{
	return race->shared->changes >= CHANGES;
}

static bool is_known(const struct race *race, const struct maps_line *line,
		     uint64_t last_end)
{
	const struct maps_line *known;
	struct maps_line shown;
	unsigned int i;

	for (i = 0; i < race->nr_states; i++) {
		known = line_at(&race->states[i], line->start);
		if (!known)
			continue;
		shown = *known;
		if (shown.start < last_end) {
			shown.offset += is_file(known) ? last_end - shown.start : 0;
			shown.start = last_end;
		}
		if (same_line(&shown, line))
			return true;
	}
	return false;
}

const char *wrong_in_race(const struct race *race, const struct maps *found, bool is_cut)
{
	const struct maps_line *line;
	uint64_t last_end = 0;

	for (line = found->lines; line < found->lines + found->nr; line++) {
		if (line->end <= last_end)
			return "ends do not rise";
		if (!is_known(race, line, is_cut ? last_end : 0))
			return "a mapping that never was";
		last_end = line->end;
	}
	return last_end == addr_of(RACE_END) ? "" : "the mapping that stays is missing";
}

static bool map_still(int control)
{
	unsigned int i;

	file = make_elf("file", scene_id);
	for (i = 0; i < NR_STILL; i++)
		if (mmap(page_at(i), page_size(), i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE |
			 MAP_FIXED | (i % 100 ? MAP_ANONYMOUS : 0), i % 100 ? -1 : file, 0) !=
		    page_at(i))
			return false;
	return notify(control) && await(control);
}

int exit_when_it_hears(int control, void *arg)
{
	(void)arg;
	return !map_still(control);
}

int execute_when_it_hears(int control, void *arg)
{
	(void)arg;
	return map_still(control) ? execute_echo(control) : 1;
}

/* Children exit at once; now and then there is one that a slow kernel can walk. */
int fork_when_it_hears(int control, void *arg)
{
	struct forks *const forks = arg;
	bool ok = map_still(control);
	pid_t pid;

	while (ok) {
		pid = fork();
		if (!pid) {
			usleep(forks->nr % 32 ? 0 : 200000);
			_exit(0);
		}
		forks->newborn = pid;
		ok = waitpid(pid, NULL, 0) == pid;
		forks->nr++;
	}
	return 1;
}
