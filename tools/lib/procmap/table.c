// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The mappings of many processes over time.
 *
 * What is known of a process is a log of facts in the order of their time: something
 * was mapped, its mappings were read, it was forked, it executed a program. The log
 * alone decides what was mapped at an address at a time: see walk_log(). A fact that
 * comes late is sorted in, and needs nothing else.
 *
 * Most questions are about the present. The mappings of each process as of the end of
 * its log are kept as an array, the view, which is searched by halves. It follows from
 * the log, and is dropped and made again whenever the log changes but at its end.
 *
 * What has not been valid for longer than the window is condensed: the facts up to then
 * become one, a view.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "internal.h"
#include "procmap_table.h"

#define PROCESSES_MAX	16384
#define MAPPINGS_MAX	0x200000
#define BYTES_MAX	0x10000000

/* Chains of the hash table of processes. */
#define CHAINS		0x4000
#define CHAINS_SHIFT	(64 - 14)

/* A log is condensed when it has this many facts, and that many more than after that. */
#define FACTS_MIN	64

/* For so many groups of process IDs, it is known when one was forgotten. */
#define FORGOTTEN	1024

/**
 * struct file - what was mapped: a name, an inode, a build ID; shared by mappings
 * @refs: number of records that have it.
 * @mapping: a mapping of it, without addresses.
 * @name: its name.
 */
struct file {
	size_t refs;
	struct procmap_mapping mapping;
	char name[];
};

/**
 * struct record - a mapping as it was reported or read
 * @refs: number of facts and pieces that have it.
 * @file: what is mapped. Owned.
 * @start: first address.
 * @end: first address past it.
 * @offset: file offset of @start.
 * @page_size: size of its pages, or 0.
 * @flags: permissions.
 * @is_of_file: it has file offsets.
 * @user: the caller's pointer.
 */
struct record {
	size_t refs;
	struct file *file;
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t page_size;
	uint32_t flags;
	bool is_of_file;
	void *user;
};

/**
 * struct piece - a part of a record that is valid
 * @start: first address.
 * @end: first address past it.
 * @from: it is valid at this time and later.
 * @record: the record. Owned.
 */
struct piece {
	uint64_t start;
	uint64_t end;
	uint64_t from;
	struct record *record;
};

_Static_assert(offsetof(struct piece, end) == offsetof(struct range, end), "range");

/* What a view says of addresses that are in none of its pieces. */
enum extent {
	OF_EVENTS,	/* nothing */
	OF_EXECUTABLE,	/* that nothing executable is mapped there */
	OF_ALL,		/* that nothing is */
};

/**
 * struct view - mappings at one time
 * @refs: number of facts and processes that have it. With more than one it is not
 *	changed.
 * @extent: what it does not say.
 * @nr: number of pieces.
 * @size: pieces that there is room for.
 * @pieces: the pieces, in rising order. Owned.
 * @slots: where to search them, if the view was not changed since it was made.
 */
struct view {
	size_t refs;
	enum extent extent;
	size_t nr;
	size_t size;
	struct piece *pieces;
	struct slots slots;
};

/**
 * struct program - a program that a process runs, or ran
 * @user: the caller's pointer.
 * @process: the process.
 * @time: when it began.
 * @parent: the process whose mappings it had then; NULL if nothing was mapped.
 * @number: of two of the same time, the later one has a higher number.
 * @next: the next one that began with the mappings of @parent.
 * @link: what points to this one.
 * @below: in walk_log(), the program from which the walk came,
 * @was_void: &walk.is_void for this one,
 * @begin: and &walk.nr, when it came here.
 */
struct program {
	void *user;
	struct process *process;
	uint64_t time;
	struct process *parent;
	uint64_t number;
	struct program *next;
	struct program **link;
	struct program *below;
	bool was_void;
	size_t begin;
};

/* The kinds of facts. BEGUN ends what facts before it say. */
enum kind {
	MAPPED,		/* something was mapped */
	WAS_READ,	/* the mappings were read */
	CONDENSED,	/* what is left of older facts */
	BEGUN,		/* a program, or a process with the mappings of its parent */
	NAMED,		/* the process has a name */
	EXITED,		/* it has exited */
};

/**
 * struct fact - an entry of the log of a process
 * @time: when.
 * @kind: what.
 * @record: of MAPPED. Owned.
 * @view: of WAS_READ and CONDENSED. Owned.
 * @program: of BEGUN. Owned.
 * @comm: of NAMED.
 */
struct fact {
	uint64_t time;
	enum kind kind;
	union {
		struct record *record;
		struct view *view;
		struct program *program;
		char comm[PROCMAP_COMM_SIZE];
	};
};

/**
 * struct process - what is known of a process ID
 * @pid: the ID.
 * @next: the next one in its chain of the hash table.
 * @newer: the next newer one in the list, or NULL.
 * @older: the next older one, or NULL.
 * @is_used: it was used since it came to its place in the list.
 * @nr_facts: number of facts.
 * @facts_size: facts that there is room for.
 * @facts: the log. Owned. The first fact is BEGUN.
 * @condense_at: number of facts with which the log is condensed.
 * @horizon: facts before this time have been condensed.
 * @lost_from: at this time and later,
 * @lost_to: facts up to this time are void, as others of the time between were lost, for
 *	want of memory or with all that was known. None was lost if the first is
 *	UINT64_MAX.
 * @settled_at: the time of the last program for which it has a copy of what a parent
 *	had that was then forgotten, or 0. Late events may void it.
 * @children: the programs of which this process is the parent.
 * @last_child: the latest time of one that there was.
 * @nr_parents: number of programs in the log that have a parent.
 * @view: the view at the end of the log, or NULL if it has to be made. Owned.
 * @of_changes: &procmap_table.changes when the view was made.
 * @is_settled: there is a view, and nothing to be read before it is used.
 * @begun: the time of the last BEGUN.
 * @program: the program of that.
 * @was_read: what was read for this program, by this process or its parent.
 * @has_been_read: @read_at is valid.
 * @read_at: when it was read, or that failed.
 * @error: the error of the last reading, or 0.
 * @has_exited: it has.
 * @exited_at: when.
 */
struct process {
	pid_t pid;
	struct process *next;
	struct process *newer;
	struct process *older;
	bool is_used;
	size_t nr_facts;
	size_t facts_size;
	struct fact *facts;
	size_t condense_at;
	uint64_t horizon;
	uint64_t lost_from;
	uint64_t lost_to;
	uint64_t settled_at;
	struct program *children;
	uint64_t last_child;
	size_t nr_parents;
	struct view *view;
	uint64_t of_changes;
	bool is_settled;
	uint64_t begun;
	struct program *program;
	enum extent was_read;
	bool has_been_read;
	uint64_t read_at;
	int error;
	bool has_exited;
	uint64_t exited_at;
};

/**
 * struct procmap_table - see procmap_table.h
 * @options: the caller's options, with the defaults.
 * @stats: see there.
 * @latest: the latest time of an event or a reading.
 * @lost_at: what was read before this time has to be read again.
 * @changes: how often the past of a process with children was changed: views of
 *	processes that were forked may be void.
 * @nr_programs: number of programs that there were.
 * @settled_at: the latest one of all processes.
 * @forgotten: the latest time of what was known of processes that were forgotten, by
 *	their ID: what comes for that time is not all.
 * @sweep: the chain in which processes are looked for next that exited long ago.
 * @processes: the processes, in chains by their ID. Owned.
 * @files: the files, for tsearch(3). Owned.
 * @newest: the newest process in the list of all.
 * @oldest: the oldest one. If it was used, it is the newest when room is needed.
 * @is_going: the table is being freed.
 * @found: what procmap_table_find() returned.
 * @mapping: the mapping of @found.
 * @found_record: the record of that, or NULL. Owned.
 */
struct procmap_table {
	struct procmap_table_options options;
	struct procmap_table_stats stats;
	uint64_t latest;
	uint64_t lost_at;
	uint64_t changes;
	uint64_t nr_programs;
	uint64_t settled_at;
	uint64_t forgotten[FORGOTTEN];
	size_t sweep;
	struct process *processes[CHAINS];
	void *files;
	struct process *newest;
	struct process *oldest;
	bool is_going;
	struct procmap_table_mapping found;
	struct procmap_mapping mapping;
	struct record *found_record;
};

static void *allocate(struct procmap_table *table, size_t size)
{
	void *const bytes = calloc(1, size);

	if (bytes)
		table->stats.bytes += size;
	return bytes;
}

static void release(struct procmap_table *table, void *bytes, size_t size)
{
	if (bytes)
		table->stats.bytes -= size;
	free(bytes);
}

/* Make room for @nr entries of an array. Returns the array, or NULL. */
static void *grow(struct procmap_table *table, void *array, size_t nr, size_t *size,
		  size_t entry)
{
	size_t more = *size + *size / 2 + 4;

	if (nr <= *size)
		return array;
	if (more < nr)
		more = nr;
	array = realloc(array, more * entry);
	if (!array)
		return NULL;
	table->stats.bytes += (more - *size) * entry;
	*size = more;
	return array;
}

static uint64_t now_of(const struct procmap_table *table)
{
	struct timespec now;

	if (table->options.now)
		return table->options.now(table->options.context);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void user_is_gone(const struct procmap_table *table, void *user)
{
	if (user && table->options.gone)
		table->options.gone(table->options.context, user);
}

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Files */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Names are chosen by whoever is observed: a tree is balanced whatever they are. */
static int compare_files(const void *one, const void *other)
{
	const struct procmap_mapping *const a = &((const struct file *)one)->mapping;
	const struct procmap_mapping *const b = &((const struct file *)other)->mapping;
	int order = compare(a->inode, b->inode);

	order = order ? order : compare(a->dev_major, b->dev_major);
	order = order ? order : compare(a->dev_minor, b->dev_minor);
	order = order ? order : compare(a->name_len, b->name_len);
	order = order ? order : compare(a->build_id_size, b->build_id_size);
	order = order ? order : memcmp(a->name, b->name, a->name_len);
	return order ? order : memcmp(a->build_id, b->build_id, a->build_id_size);
}

/* Get the file of a mapping, whose build ID is there or has the size 0. */
static struct file *get_file(struct procmap_table *table,
			     const struct procmap_mapping *mapping)
{
	const struct file wanted = { .mapping = *mapping };
	struct file **const known = tfind(&wanted, &table->files, compare_files);
	struct file *file;

	if (known) {
		(*known)->refs++;
		return *known;
	}
	file = allocate(table, sizeof(*file) + mapping->name_len + 1);
	if (!file)
		return NULL;
	file->refs = 1;
	memcpy(file->name, mapping->name, mapping->name_len);
	file->mapping = *mapping;
	file->mapping.name = file->name;
	if (tsearch(file, &table->files, compare_files))
		return file;
	release(table, file, sizeof(*file) + mapping->name_len + 1);
	return NULL;
}

static void put_file(struct procmap_table *table, struct file *file)
{
	if (--file->refs)
		return;
	tdelete(file, &table->files, compare_files);
	release(table, file, sizeof(*file) + file->mapping.name_len + 1);
}

/* Records */

/* An event may have a build ID instead of the inode. */
static bool is_of_file(const struct procmap_mapping *mapping)
{
	return has_file(mapping) || mapping->name[0] == '/';
}

static struct record *new_record(struct procmap_table *table,
				 const struct procmap_mapping *mapping)
{
	struct record *const record = allocate(table, sizeof(*record));

	if (!record)
		return NULL;
	record->file = get_file(table, mapping);
	if (!record->file) {
		release(table, record, sizeof(*record));
		return NULL;
	}
	record->refs = 1;
	record->start = mapping->start;
	record->end = mapping->end;
	record->offset = mapping->offset;
	record->page_size = mapping->page_size;
	record->flags = mapping->flags;
	record->is_of_file = is_of_file(mapping);
	table->stats.mappings++;
	return record;
}

static void put_record(struct procmap_table *table, struct record *record)
{
	if (!record || --record->refs)
		return;
	user_is_gone(table, record->user);
	put_file(table, record->file);
	table->stats.mappings--;
	release(table, record, sizeof(*record));
}

static struct record *get_record(struct record *record)
{
	if (record)
		record->refs++;
	return record;
}

static bool is_executable(const struct record *record)
{
	return record->flags & PROCMAP_EXECUTABLE;
}

/* Views */

static struct view *new_view(struct procmap_table *table, enum extent extent)
{
	struct view *const view = allocate(table, sizeof(*view));

	if (!view)
		return NULL;
	view->refs = 1;
	view->extent = extent;
	return view;
}

static struct view *get_view(struct view *view)
{
	view->refs++;
	return view;
}

static void drop_slots(struct procmap_table *table, struct view *view)
{
	if (!view->slots.nr)
		return;
	release(table, view->slots.below,
		(view->slots.nr + 1) * sizeof(*view->slots.below));
	view->slots = (struct slots) { .nr = 0 };
}

/* Without memory, the view is searched without. */
static void make_slots(struct procmap_table *table, struct view *view)
{
	if (!view->slots.nr &&
	    !slots_make(&view->slots, view->pieces, sizeof(*view->pieces), view->nr) &&
	    view->slots.nr)
		table->stats.bytes += (view->slots.nr + 1) *
				      sizeof(*view->slots.below);
}

static void put_view(struct procmap_table *table, struct view *view)
{
	size_t i;

	if (!view || --view->refs)
		return;
	for (i = 0; i < view->nr; i++)
		put_record(table, view->pieces[i].record);
	drop_slots(table, view);
	release(table, view->pieces, view->size * sizeof(*view->pieces));
	release(table, view, sizeof(*view));
}

/* The number of pieces that end at or below an address. */
static inline size_t pieces_below(const struct view *view, uint64_t addr)
{
	return slots_below(&view->slots, view->pieces, sizeof(*view->pieces), view->nr,
			   addr);
}

/* Replace pieces from index @first up to @last. Only a view of ours is changed. */
static int splice(struct procmap_table *table, struct view *view, size_t first, size_t last,
		  const struct piece *with, size_t nr)
{
	const size_t after = view->nr - last;
	struct piece *pieces;
	size_t i;

	if (!nr && first == last)
		return 0;
	pieces = grow(table, view->pieces, first + nr + after, &view->size,
		      sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	view->pieces = pieces;
	for (i = 0; i < nr; i++)
		get_record(with[i].record);
	for (i = first; i < last; i++)
		put_record(table, pieces[i].record);
	if (first + nr != last)
		memmove(pieces + first + nr, pieces + last, after * sizeof(*pieces));
	memcpy(pieces + first, with, nr * sizeof(*pieces));
	view->nr = first + nr + after;
	return 0;
}

static struct view *copy_view(struct procmap_table *table, const struct view *view)
{
	struct view *const copy = new_view(table, view->extent);

	if (!copy || !splice(table, copy, 0, 0, view->pieces, view->nr))
		return copy;
	put_view(table, copy);
	return NULL;
}

static bool is_flat(const struct piece *pieces, size_t nr)
{
	size_t i;

	for (i = 1; i < nr; i++)
		if (pieces[i].start < pieces[i - 1].end)
			return false;
	return true;
}

/*
 * Write what is seen of two lists, of which the first covers the second, to @to. Each is
 * in rising order. Returns the number of pieces: each of the first list can divide one of
 * the second.
 */
static size_t merge(const struct piece *above, size_t nr_above,
		    const struct piece *below, size_t nr_below, struct piece *to)
{
	struct piece *const begin = to;

	for (; nr_below; below++, nr_below--) {
		struct piece rest = *below;

		while (nr_above && above->end <= rest.start) {
			*to++ = *above++;
			nr_above--;
		}
		while (nr_above && above->start < rest.end) {
			if (rest.start < above->start) {
				*to = rest;
				to++->end = above->start;
			}
			rest.start = above->end;
			if (above->end > rest.end)
				break;
			*to++ = *above++;
			nr_above--;
		}
		if (rest.start < rest.end)
			*to++ = rest;
	}
	memcpy(to, above, nr_above * sizeof(*to));
	return to + nr_above - begin;
}

/*
 * Replace pieces, of which each covers those behind it, by what is seen of them, in
 * rising order. @pieces has room for twice as many, and so has @spare. Returns how many.
 */
static size_t flatten(struct piece *pieces, size_t nr, struct piece *spare)
{
	const size_t half = nr / 2;
	size_t nr_above, nr_below;

	if (is_flat(pieces, nr))
		return nr;
	memcpy(spare, pieces, half * sizeof(*pieces));
	memcpy(spare + 2 * half, pieces + half, (nr - half) * sizeof(*pieces));
	nr_above = flatten(spare, half, pieces);
	nr_below = flatten(spare + 2 * half, nr - half, pieces);
	return merge(spare, nr_above, spare + 2 * half, nr_below, pieces);
}

/*
 * Put a record in the place of what the view has there from before, and leave what is
 * later. The slots stay if no range changes.
 */
static int put_in_view(struct procmap_table *table, struct view *view, uint64_t from,
		       struct record *record)
{
	const struct piece piece = { record->start, record->end, from, record };
	const size_t first = pieces_below(view, record->start);
	size_t i, last = first, nr = 0;
	struct piece *pieces;
	int err;

	while (last < view->nr && view->pieces[last].start < piece.end)
		last++;
	if (last == first + 1 && view->pieces[first].start == piece.start &&
	    view->pieces[first].end == piece.end)
		return view->pieces[first].from > from ? 0 :
		       splice(table, view, first, last, &piece, 1);

	pieces = malloc((last - first + 1) * 4 * sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (i = first; i < last; i++)
		if (view->pieces[i].from > from)
			pieces[nr++] = view->pieces[i];
	pieces[nr++] = piece;
	for (i = first; i < last; i++)
		if (view->pieces[i].from <= from)
			pieces[nr++] = view->pieces[i];
	nr = flatten(pieces, nr, pieces + 2 * nr);
	drop_slots(table, view);
	err = splice(table, view, first, last, pieces, nr);
	free(pieces);
	return err;
}

/* The log */

/* The number of facts up to a time. */
static size_t facts_up_to(const struct process *process, uint64_t time)
{
	size_t from = 0, to = process->nr_facts;

	if (to && process->facts[to - 1].time <= time)
		return to;
	while (from < to) {
		const size_t middle = (from + to) / 2;

		if (process->facts[middle].time <= time)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Are all facts before those that were lost void at a time? */
static bool is_void(const struct process *process, uint64_t time)
{
	return process->lost_from != UINT64_MAX && time >= process->lost_from;
}

/* The number of facts that are void at a time. */
static size_t void_facts(const struct process *process, uint64_t time)
{
	return is_void(process, time) ? facts_up_to(process, process->lost_to) : 0;
}

/* The last of the first @nr facts that says something of mappings. */
static const struct fact *last_change(const struct process *process, size_t nr)
{
	while (process->facts[nr - 1].kind >= NAMED)
		nr--;
	return &process->facts[nr - 1];
}

/* The last of the first @nr facts that begins a program. */
static const struct fact *last_begun(const struct process *process, size_t nr)
{
	while (process->facts[nr - 1].kind != BEGUN)
		nr--;
	return &process->facts[nr - 1];
}

/* The index of the fact that has a program. */
static size_t index_of(const struct program *program)
{
	const struct fact *const facts = program->process->facts;
	size_t at = 0;

	while (facts[at].kind != BEGUN || facts[at].program != program)
		at++;
	return at;
}

/*
 * From when on is that known which was read? Of what events had said before, it is known
 * only at that time; but if they had said nothing, it is taken to have been there.
 */
static uint64_t known_from(const struct process *process, size_t reading)
{
	const struct fact *const before = last_change(process, reading);
	const uint64_t time = process->facts[reading].time;

	if (before->kind != BEGUN || before->program->parent ||
	    (is_void(process, time) && before->time <= process->lost_to))
		return time;
	return before->time;
}

/* When mappings changed last, or may have changed, of the first @nr facts. */
static uint64_t changed_at(const struct process *process, size_t nr, uint64_t time)
{
	const uint64_t changed = last_change(process, nr)->time;

	return is_void(process, time) && changed <= process->lost_to ?
	       process->lost_to + 1 : changed;
}

/* May what was read later have been there? Not if what was lost is in between. */
static bool may_look_forward(const struct process *process, uint64_t time)
{
	return process->lost_from == UINT64_MAX || time > process->lost_to;
}

/**
 * struct walk - a walk through what is known of a process
 *
 * It passes what was mapped in the order in which that decides: what is seen first covers
 * the rest. A question ends it with what it finds at the address; a view that is painted
 * takes all.
 *
 * @is_question: only the address matters.
 * @addr: the address.
 * @low: what is found begins here,
 * @high: and ends here, as other mappings are beside it.
 * @record: what was found, or NULL.
 * @from: the time from which on it is known to be there.
 * @is_void: of older facts, what is executable is void, since it was not read later.
 * @nr: number of pieces that were painted.
 * @size: pieces that there is room for.
 * @pieces: the pieces. They own no references. One without a record covers, too: what is
 *	behind it is void, or later than something else.
 */
struct walk {
	bool is_question;
	uint64_t addr;
	uint64_t low;
	uint64_t high;
	struct record *record;
	uint64_t from;
	bool is_void;
	size_t nr;
	size_t size;
	struct piece *pieces;
};

static int paint(struct walk *walk, const struct piece *piece)
{
	if (walk->nr == walk->size) {
		const size_t more = walk->size * 2 + 64;
		struct piece *const pieces = realloc(walk->pieces,
						     more * sizeof(*pieces));

		if (!pieces)
			return -ENOMEM;
		walk->pieces = pieces;
		walk->size = more;
	}
	walk->pieces[walk->nr++] = *piece;
	return 0;
}

/* Something is mapped. Returns 0; 1 if that is at the address; or -ENOMEM. */
static int see(struct walk *walk, uint64_t start, uint64_t end, uint64_t from,
	       struct record *record)
{
	if (record && walk->is_void && is_executable(record))
		record = NULL;
	if (!walk->is_question)
		return paint(walk, &(struct piece) { start, end, from, record });
	if (walk->addr < start) {
		walk->high = earlier(walk->high, start);
		return 0;
	}
	walk->low = later(walk->low, walk->addr < end ? start : end);
	if (walk->addr >= end)
		return 0;
	walk->high = earlier(walk->high, end);
	walk->record = record;
	walk->from = from;
	return 1;
}

/*
 * The pieces of a view, as far as they are not later than a time. Those of what was read
 * have no times. At an address, the next ones on both sides are enough.
 */
static int see_view(struct walk *walk, const struct view *view, uint64_t from,
		    uint64_t time)
{
	size_t i = 0, end = view->nr;
	int err = 0;

	if (walk->is_question) {
		i = pieces_below(view, walk->addr);
		end = i + (i < end);
		i -= !!i;
	}
	for (; i < end && !err; i++) {
		const struct piece *const piece = &view->pieces[i];

		err = see(walk, piece->start, piece->end, later(from, piece->from),
			  piece->from <= time ? piece->record : NULL);
	}
	return err;
}

/*
 * The program, if it began with the mappings of a parent. That led to @next, if any, which
 * is later: no process is its own ancestor.
 */
static struct program *inherited(const struct fact *begun, const struct program *next)
{
	struct program *const program = begun->program;

	if (!program->parent || (next && program->time == next->time &&
				 program->number >= next->number))
		return NULL;
	return program;
}

/*
 * What the facts up to a time say, the last ones first. @program is set to the one whose
 * parent has the rest, or to NULL.
 */
static int walk_back(struct walk *walk, const struct process *process, uint64_t time,
		     struct program **program)
{
	const size_t first = void_facts(process, time);
	const struct program *const next = *program;
	size_t nr = facts_up_to(process, time);
	int err = 0;

	*program = NULL;
	while (nr-- > first && !err) {
		const struct fact *const fact = &process->facts[nr];

		switch (fact->kind) {
		case MAPPED:
			err = see(walk, fact->record->start, fact->record->end,
				  fact->time, fact->record);
			break;
		case WAS_READ:
		case CONDENSED:
			err = see_view(walk, fact->view, fact->kind == WAS_READ ?
				       known_from(process, nr) : 0, time);
			if (fact->view->extent == OF_ALL)
				return err;
			walk->is_void |= fact->view->extent == OF_EXECUTABLE;
			break;
		case BEGUN:
			*program = inherited(fact, next);
			return 0;
		case NAMED:
		case EXITED:
			break;
		}
	}
	return err;
}

/* What was read later, and was not mapped in between, was there before. */
static int walk_forward(struct walk *walk, const struct process *process, uint64_t time)
{
	size_t nr = facts_up_to(process, time);
	const uint64_t from = nr ? changed_at(process, nr, time) : 0;
	int err = 0;

	if (!nr || !may_look_forward(process, time))
		return 0;
	for (; nr < process->nr_facts && !err; nr++) {
		const struct fact *const fact = &process->facts[nr];

		switch (fact->kind) {
		case MAPPED:
			err = see(walk, fact->record->start, fact->record->end, 0, NULL);
			break;
		case WAS_READ:
			err = see_view(walk, fact->view, from, time);
			if (fact->view->extent == OF_ALL)
				return err;
			break;
		case CONDENSED:
			return see_view(walk, fact->view, 0, time);
		case BEGUN:
			return 0;
		case NAMED:
		case EXITED:
			break;
		}
	}
	return err;
}

/* Flatten what was painted from index @begin on, and drop what has no record. */
static int flatten_from(struct walk *walk, size_t begin)
{
	const size_t nr = walk->nr - begin;
	struct piece *pieces, *spare;
	size_t i, nr_flat;

	if (!nr)
		return 0;
	pieces = realloc(walk->pieces, (begin + 2 * nr) * sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	walk->pieces = pieces;
	walk->size = begin + 2 * nr;
	spare = malloc(2 * nr * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	nr_flat = flatten(pieces + begin, nr, spare);
	free(spare);
	walk->nr = begin;
	for (i = begin; i < begin + nr_flat; i++)
		if (pieces[i].record)
			pieces[walk->nr++] = pieces[i];
	return 0;
}

/*
 * Find what was mapped at a time: this is what a table says. Back through the log, and
 * through those of the ancestors; and what that has not found may have been read later,
 * of the first ancestor or of the next ones. What was read of the process itself is only
 * seen if @is_final: while the log has that, it may turn out to be of another program.
 */
static int walk_log(struct walk *walk, const struct process *process, uint64_t time,
		    bool is_final)
{
	struct program *program = NULL, *last = NULL;
	bool was_void = false;
	size_t begin = 0;
	int err;

	for (;;) {
		err = walk_back(walk, process, last ? last->time : time, &program);
		if (err || !program)
			break;
		program->below = last;
		program->was_void = was_void;
		program->begin = begin;
		last = program;
		was_void = walk->is_void;
		begin = walk->nr;
		process = program->parent;
	}
	while (err >= 0 && !walk->record) {
		err = flatten_from(walk, begin);
		walk->is_void = was_void;
		if (!err && (last || is_final))
			err = walk_forward(walk, process, last ? last->time : time);
		if (err >= 0)
			err = flatten_from(walk, begin);
		if (!last)
			break;
		was_void = last->was_void;
		begin = last->begin;
		process = last->process;
		last = last->below;
	}
	return err;
}

/*
 * Make the view at a time; for @is_final, see walk_log(). Returns NULL without memory. The
 * caller puts it.
 */
static struct view *make_view(struct procmap_table *table,
			      const struct process *process, uint64_t time,
			      bool is_final)
{
	struct view *const view = new_view(table, OF_EVENTS);
	struct walk walk = { .nr = 0 };

	if (view && !walk_log(&walk, process, time, is_final) &&
	    !splice(table, view, 0, 0, walk.pieces, walk.nr)) {
		free(walk.pieces);
		return view;
	}
	free(walk.pieces);
	put_view(table, view);
	return NULL;
}

static void drop_view(struct procmap_table *table, struct process *process)
{
	put_view(table, process->view);
	process->view = NULL;
	process->is_settled = false;
}

/* Is there a view, which is not void? Without parents, no other process makes it so. */
static bool has_view(const struct procmap_table *table, const struct process *process)
{
	return process->view &&
	       (process->of_changes == table->changes || !process->nr_parents);
}

/*
 * The ancestor that has at the end of its log what the process has at a time: of a child
 * of which nothing else is known, that is the parent. Returns NULL if there is none.
 */
static struct process *origin_of(struct process *process, uint64_t time)
{
	const struct fact *last;
	struct program *program = NULL;

	do {
		last = last_change(process, process->nr_facts);
		if (last->time > time || process->lost_from != UINT64_MAX)
			return NULL;
		program = last->kind == BEGUN ? inherited(last, program) : NULL;
		if (program) {
			process = program->parent;
			time = program->time;
		}
	} while (program);
	return process;
}

/*
 * Have the view at the end of the log. If all that is known was read at once, that is the
 * view: its pieces have no times, and are known from when the program began.
 */
static bool have_view(struct procmap_table *table, struct process *process)
{
	const struct fact *const last = last_change(process, process->nr_facts);
	struct process *origin;

	if (has_view(table, process)) {
		process->of_changes = table->changes;
		return true;
	}
	drop_view(table, process);
	origin = origin_of(process, UINT64_MAX);
	process->of_changes = table->changes;
	if (last->kind == WAS_READ &&
	    known_from(process, last - process->facts) < last->time)
		process->view = get_view(last->view);
	else if (!origin || origin == process)
		process->view = make_view(table, process, UINT64_MAX, true);
	else if (have_view(table, origin))
		process->view = get_view(origin->view);
	if (process->view)
		make_slots(table, process->view);
	return process->view;
}

/* Get the view at a time, which the caller puts. Returns NULL without memory. */
static struct view *view_at(struct procmap_table *table, struct process *process,
			    uint64_t time)
{
	struct process *const origin = origin_of(process, time);

	if (!origin)
		return make_view(table, process, time, true);
	return have_view(table, origin) ? get_view(origin->view) : NULL;
}

/* May a mapping be put into the view? Only if those that are later are mappings, too. */
static bool fits_view(const struct process *process, size_t at)
{
	const uint64_t time = process->facts[at].time;

	if (is_void(process, UINT64_MAX) && time <= process->lost_to)
		return false;
	for (; at < process->nr_facts; at++)
		if (process->facts[at].kind > MAPPED && process->facts[at].kind < NAMED)
			return false;
	return true;
}

/* Put a mapping into the view, if there is one. */
static void extend_view(struct procmap_table *table, struct process *process,
			const struct fact *fact)
{
	struct view *view = process->view;

	if (view && view->refs > 1) {
		view = copy_view(table, view);
		put_view(table, process->view);
		process->view = view;
	}
	if (!view || put_in_view(table, view, fact->time, fact->record))
		drop_view(table, process);
	process->of_changes = table->changes;
}

static void leave_parent(struct procmap_table *table, struct program *program)
{
	if (!program->parent)
		return;
	*program->link = program->next;
	if (program->next)
		program->next->link = program->link;
	program->parent = NULL;
	/* A view that is void would not be found to be, without parents. */
	if (program->process->of_changes != table->changes)
		drop_view(table, program->process);
	program->process->nr_parents--;
}

static void put_program(struct procmap_table *table, struct program *program)
{
	leave_parent(table, program);
	user_is_gone(table, program->user);
	release(table, program, sizeof(*program));
}

/* Drop what a fact owns. */
static void put_fact(struct procmap_table *table, const struct fact *fact)
{
	switch (fact->kind) {
	case MAPPED:
		put_record(table, fact->record);
		break;
	case WAS_READ:
	case CONDENSED:
		put_view(table, fact->view);
		break;
	case BEGUN:
		put_program(table, fact->program);
		break;
	case NAMED:
	case EXITED:
		break;
	}
}

static int insert_fact(struct procmap_table *table, struct process *process, size_t at,
		       const struct fact *fact)
{
	struct fact *const facts = grow(table, process->facts, process->nr_facts + 1,
					&process->facts_size, sizeof(*facts));

	if (!facts)
		return -ENOMEM;
	process->facts = facts;
	memmove(facts + at + 1, facts + at, (process->nr_facts - at) * sizeof(*facts));
	facts[at] = *fact;
	process->nr_facts++;
	return 0;
}

/* What the process is now follows from the end of its log. */
static void update_process(struct process *process)
{
	const struct program *const program = process->program;
	enum extent was_read = OF_EVENTS;
	bool is_mapped = false;
	size_t i = process->nr_facts;

	process->has_exited = false;
	process->is_settled = false;
	while (process->facts[--i].kind != BEGUN) {
		const struct fact *const fact = &process->facts[i];

		if (fact->kind == EXITED && !is_mapped) {
			process->has_exited = true;
			process->exited_at = fact->time;
		}
		if (fact->kind == WAS_READ && was_read == OF_EVENTS)
			was_read = fact->view->extent;
		is_mapped |= fact->kind < BEGUN;
	}
	process->begun = process->facts[i].time;
	process->program = process->facts[i].program;
	if (process->program == program)
		return;
	process->was_read = was_read;
	process->has_been_read = was_read != OF_EVENTS;
	process->error = 0;
}

/* Add a fact to the log, which owns what is in it if that works. */
static int add_fact(struct procmap_table *table, struct process *process,
		    const struct fact *fact)
{
	const size_t at = facts_up_to(process, fact->time);
	bool fits;
	int err;

	err = insert_fact(table, process, at, fact);
	if (err)
		return err;
	if (fact->kind == BEGUN || fact->kind == EXITED)
		update_process(process);
	if (fact->kind >= NAMED)
		return 0;
	if (!has_view(table, process))
		drop_view(table, process);
	fits = fact->kind == MAPPED && fits_view(process, at);
	if (process->children &&
	    (fact->kind == WAS_READ || fact->time <= process->last_child ||
	     (!fits && at < process->nr_facts - 1)))
		table->changes++;
	if (fits)
		extend_view(table, process, fact);
	else
		drop_view(table, process);
	if (fact->kind == MAPPED && process->has_exited &&
	    fact->time >= process->exited_at)
		process->has_exited = false;
	return 0;
}

/* The latest time that is older than the window: what is not valid later is void. */
static uint64_t oldest_time(const struct procmap_table *table)
{
	const uint64_t window = table->options.window;

	return table->latest > window ? table->latest - window : 0;
}

/*
 * Has the child begun another program before the window, and has no child itself that
 * has what it had until then?
 */
static bool is_over(const struct procmap_table *table, const struct program *program)
{
	const struct process *const process = program->process;
	const uint64_t oldest = oldest_time(table);
	const struct program *child = process->children;
	size_t at = index_of(program);

	do {
		at++;
		if (at == process->nr_facts || process->facts[at].time > oldest)
			return false;
	} while (process->facts[at].kind != BEGUN);
	while (child && child->time >= process->facts[at].time)
		child = child->next;
	return !child;
}

/* The name of a process at a time, which may be that of a parent; NULL if unknown. */
static const char *find_comm(const struct process *process, uint64_t time)
{
	size_t nr = facts_up_to(process, time), first = void_facts(process, time);
	const struct program *program = NULL;

	while (nr-- > first) {
		const struct fact *const fact = &process->facts[nr];

		if (fact->kind == NAMED)
			return fact->comm;
		if (fact->kind == BEGUN && inherited(fact, program)) {
			program = fact->program;
			time = program->time;
			process = program->parent;
			nr = facts_up_to(process, time);
			first = void_facts(process, time);
		}
	}
	return NULL;
}

/*
 * Keep what a child has from its parent, the @view, as facts of its own. Without a view,
 * nothing is known of that any more.
 */
static void settle(struct procmap_table *table, struct program *program, struct view *view)
{
	struct fact condensed = { .time = program->time, .kind = CONDENSED, .view = view };
	const char *const comm = find_comm(program->parent, program->time);
	struct fact named = { .time = program->time, .kind = NAMED };
	struct process *const child = program->process;
	const size_t at = index_of(program);

	/* It is in a log, which may be the one that is about to be moved. */
	if (comm)
		memcpy(named.comm, comm, sizeof(named.comm));
	leave_parent(table, program);
	if (view && !insert_fact(table, child, at + 1, &condensed)) {
		view->refs++;
		child->settled_at = later(child->settled_at, condensed.time);
		table->settled_at = later(table->settled_at, condensed.time);
	} else if (child->program == program) {
		drop_view(table, child);
		child->was_read = OF_EVENTS;
	}
	if (comm)
		insert_fact(table, child, at + 1, &named);
}

/*
 * Settle what began up to a time with the mappings of a process. Those between which
 * nothing has happened share the view, as they did. If there is no room, they are to be
 * read.
 */
static void settle_children(struct procmap_table *table, struct process *process,
			    uint64_t time)
{
	struct program *program, *next;
	struct view *view = NULL;
	size_t nr, nr_of_view = 0;

	for (program = process->children; program; program = next) {
		next = program->next;
		if (program->time > time)
			continue;
		nr = facts_up_to(process, program->time);
		if (nr != nr_of_view) {
			put_view(table, view);
			view = NULL;
		}
		if (!view && !table->is_going && !is_over(table, program) &&
		    table->stats.bytes <= table->options.max_bytes) {
			view = view_at(table, process, program->time);
			nr_of_view = nr;
		}
		settle(table, program, view);
	}
	put_view(table, view);
}

/* Something of a time was lost: what was known before is void from then on. */
static void lose(struct procmap_table *table, struct process *process, uint64_t time)
{
	if (process->lost_from == UINT64_MAX)
		process->lost_to = 0;
	if (process->lost_from > time)
		process->lost_from = time;
	if (process->lost_to < time)
		process->lost_to = time;
	if (process->children)
		table->changes++;
	drop_view(table, process);
	process->was_read = OF_EVENTS;
}

/*
 * An event of a time has come late. It may be about what processes inherited from others
 * that were forgotten since: that is void, as nobody knows.
 */
static void lose_settled(struct procmap_table *table, uint64_t time)
{
	struct process *process;

	if (time > table->settled_at)
		return;
	table->settled_at = 0;
	for (process = table->newest; process; process = process->older) {
		if (process->settled_at && process->settled_at >= time) {
			lose(table, process, process->settled_at);
			process->settled_at = 0;
		}
		if (table->settled_at < process->settled_at)
			table->settled_at = process->settled_at;
	}
}

static uint64_t *forgotten_of(struct procmap_table *table, pid_t pid)
{
	return &table->forgotten[pid % FORGOTTEN];
}

/* What comes for this process, of this time or before, is not all that there was. */
static void note_forgotten(struct procmap_table *table, pid_t pid, uint64_t time)
{
	uint64_t *const forgotten = forgotten_of(table, pid);

	if (*forgotten < time)
		*forgotten = time;
}

/* Returns NULL without memory. */
static struct program *new_program(struct procmap_table *table, struct process *process,
				   struct process *parent, uint64_t time)
{
	struct program *const program = allocate(table, sizeof(*program));

	if (!program)
		return NULL;
	program->process = process;
	program->time = time;
	program->number = ++table->nr_programs;
	if (!parent)
		return program;
	program->parent = parent;
	program->next = parent->children;
	program->link = &parent->children;
	if (parent->children)
		parent->children->link = &program->next;
	parent->children = program;
	parent->last_child = later(parent->last_child, time);
	process->nr_parents++;
	return program;
}

/*
 * What is left of a log of which the first @nr facts are condensed: the last program, the
 * last name, @view as of @time, and an exit after that.
 */
static void keep_facts(struct procmap_table *table, struct process *process, size_t nr,
		       struct view *view, uint64_t time)
{
	const struct fact condensed = { .time = time, .kind = CONDENSED, .view = view };
	struct fact begun, named = { .kind = NAMED }, exited = { .kind = MAPPED };
	const char *const comm = find_comm(process, process->facts[nr - 1].time);
	struct fact *const facts = process->facts;
	size_t i, last = 0, kept = 0;

	if (comm)
		memcpy(named.comm, comm, sizeof(named.comm));
	for (i = 0; i < nr; i++) {
		if (facts[i].kind == BEGUN)
			last = i;
		else if (facts[i].kind == EXITED)
			exited = facts[i];
	}
	begun = facts[last];
	for (i = 0; i < nr; i++)
		if (i != last)
			put_fact(table, &facts[i]);
	leave_parent(table, begun.program);
	facts[kept++] = begun;
	if (comm) {
		named.time = begun.time;
		facts[kept++] = named;
	}
	facts[kept++] = condensed;
	if (exited.kind == EXITED && exited.time >= time)
		facts[kept++] = exited;
	memmove(facts + kept, facts + nr, (process->nr_facts - nr) * sizeof(*facts));
	process->nr_facts -= nr - kept;
	process->horizon = time;
	if (time > process->lost_to)
		process->lost_from = UINT64_MAX;
}

/* Condense what is older than the window, when as many facts came as that has pieces. */
static void condense(struct procmap_table *table, struct process *process)
{
	struct view *view;
	uint64_t time;
	size_t nr;

	if (process->nr_facts < process->condense_at)
		return;
	process->condense_at = process->nr_facts * 2;
	nr = facts_up_to(process, oldest_time(table));
	/* As many may be left. */
	if (nr <= 4)
		return;
	time = last_change(process, nr)->time;
	settle_children(table, process, time);
	view = make_view(table, process, time, false);
	if (!view)
		return;
	process->condense_at = (process->nr_facts - nr) * 2 + view->nr + FACTS_MIN;
	keep_facts(table, process, nr, view, time);
}

/* Processes */

static void unlink_used(struct procmap_table *table, struct process *process)
{
	*(process->newer ? &process->newer->older : &table->newest) = process->older;
	*(process->older ? &process->older->newer : &table->oldest) = process->newer;
}

static void link_used(struct procmap_table *table, struct process *process)
{
	process->newer = NULL;
	process->older = table->newest;
	*(table->newest ? &table->newest->newer : &table->oldest) = process;
	table->newest = process;
}

static size_t chain_of(pid_t pid)
{
	return (pid * 0x9e3779b97f4a7c15) >> CHAINS_SHIFT;
}

static struct process *find_process(const struct procmap_table *table, pid_t pid)
{
	struct process *process = table->processes[chain_of(pid)];

	while (process && process->pid != pid)
		process = process->next;
	return process;
}

static void forget(struct procmap_table *table, struct process *process)
{
	struct process **link = &table->processes[chain_of(process->pid)];
	size_t i;

	note_forgotten(table, process->pid, process->facts[process->nr_facts - 1].time);
	if (process->lost_from != UINT64_MAX)
		note_forgotten(table, process->pid, process->lost_to);
	settle_children(table, process, UINT64_MAX);
	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	unlink_used(table, process);
	drop_view(table, process);
	for (i = 0; i < process->nr_facts; i++)
		put_fact(table, &process->facts[i]);
	release(table, process->facts, process->facts_size * sizeof(*process->facts));
	release(table, process, sizeof(*process));
	table->stats.processes--;
}

/* Get a process, of which nothing may be known yet. Returns NULL without memory. */
static struct process *get_process(struct procmap_table *table, pid_t pid)
{
	struct process *process = find_process(table, pid), **chain;
	struct fact begun = { .kind = BEGUN };

	if (process)
		return process;
	process = allocate(table, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->condense_at = FACTS_MIN;
	process->lost_to = *forgotten_of(table, pid);
	process->lost_from = process->lost_to ? 0 : UINT64_MAX;
	begun.program = new_program(table, process, NULL, 0);
	if (!begun.program || insert_fact(table, process, 0, &begun)) {
		if (begun.program)
			put_program(table, begun.program);
		release(table, process, sizeof(*process));
		return NULL;
	}
	update_process(process);
	chain = &table->processes[chain_of(pid)];
	process->next = *chain;
	*chain = process;
	link_used(table, process);
	table->stats.processes++;
	return process;
}

static bool is_full(const struct procmap_table *table)
{
	return table->stats.processes > table->options.max_processes ||
	       table->stats.mappings > table->options.max_mappings ||
	       table->stats.bytes > table->options.max_bytes;
}

/* Forget those not used for longest. Returns -ENOSPC if that is the one to be kept. */
static int make_room(struct procmap_table *table, const struct process *kept)
{
	struct process *victim;
	bool was_kept = false;

	while (is_full(table) && table->oldest) {
		victim = table->oldest;
		if (victim->newer && (victim->is_used || victim == kept)) {
			victim->is_used = false;
			unlink_used(table, victim);
			link_used(table, victim);
			continue;
		}
		was_kept |= victim == kept;
		forget(table, victim);
		table->stats.evicted++;
	}
	return was_kept ? -ENOSPC : 0;
}

/* Forget those of one chain that exited long ago; of all, after as many calls. */
static void sweep(struct procmap_table *table, const struct process *kept)
{
	struct process *process = table->processes[table->sweep], *next;

	for (; process; process = next) {
		next = process->next;
		if (process != kept && process->has_exited &&
		    table->latest > process->exited_at &&
		    table->latest - process->exited_at > table->options.keep_exited)
			forget(table, process);
	}
	table->sweep = (table->sweep + 1) % CHAINS;
}

/* Reading */

static int open_process(const struct procmap_table *table, pid_t pid,
			struct procmap **procmap)
{
	const struct procmap_options options = {
		.size = sizeof(options),
		.method = table->options.method,
	};

	return table->options.open ?
	       table->options.open(table->options.context, pid, procmap) :
	       procmap_open_pid(pid, &options, procmap);
}

/* Read the mappings into a new view. */
static int read_view(struct procmap_table *table, struct procmap *procmap,
		     struct view *view)
{
	const unsigned int flags =
		(view->extent == OF_EXECUTABLE ? PROCMAP_EXECUTABLE : 0) |
		(table->options.flags & PROCMAP_TABLE_BUILD_IDS ?
		 PROCMAP_WANT_BUILD_ID : 0);
	const struct procmap_table_stats before = table->stats;
	const struct procmap_mapping *found;
	struct procmap_mapping mapping;
	uint64_t cursor = 0;
	int err;

	while (!(err = procmap_next(procmap, &cursor, flags, &found))) {
		struct piece piece = { .start = found->start, .end = found->end };

		mapping = *found;
		if (mapping.build_id_size < 0)
			mapping.build_id_size = 0;
		piece.record = new_record(table, &mapping);
		if (!piece.record)
			return -ENOMEM;
		err = splice(table, view, view->nr, view->nr, &piece, 1);
		put_record(table, piece.record);
		if (err)
			return err;
		if (table->stats.mappings - before.mappings >
		    table->options.max_mappings ||
		    table->stats.bytes - before.bytes > table->options.max_bytes)
			return -ENOSPC;
	}
	return err == -ENOENT ? 0 : err;
}

/* More than any process executes programs in a row. */
#define READ_TRIES	10

static int read_mappings(struct procmap_table *table, pid_t pid, enum extent extent,
			 struct view **view)
{
	struct procmap *procmap;
	int err = -ESTALE, tries;

	for (tries = 0; err == -ESTALE && tries < READ_TRIES; tries++) {
		*view = new_view(table, extent);
		if (!*view)
			return -ENOMEM;
		err = open_process(table, pid, &procmap);
		if (!err) {
			err = read_view(table, procmap, *view);
			procmap_close(procmap);
		}
		if (err)
			put_view(table, *view);
	}
	return err == -ESTALE ? -ESRCH : err;
}

/*
 * Read a process. The time is that from before: of what happens meanwhile, there are
 * events that are later.
 */
static int read_process(struct procmap_table *table, struct process *process,
			enum extent extent)
{
	struct fact was_read = { .time = now_of(table), .kind = WAS_READ };

	/* What is read is this program, whatever the clock says. */
	if (was_read.time < process->begun)
		was_read.time = process->begun;
	if (was_read.time < process->horizon)
		was_read.time = process->horizon;
	if (process->lost_from != UINT64_MAX && was_read.time <= process->lost_to)
		was_read.time = process->lost_to + (process->lost_to < UINT64_MAX);
	table->stats.readings++;
	process->has_been_read = true;
	process->read_at = was_read.time;
	process->error = read_mappings(table, process->pid, extent, &was_read.view);
	if (!process->error) {
		process->error = add_fact(table, process, &was_read);
		if (process->error)
			put_view(table, was_read.view);
	}
	if (process->error) {
		table->stats.failed++;
		return process->error;
	}
	process->was_read = extent;
	if (table->latest < was_read.time)
		table->latest = was_read.time;
	condense(table, process);
	return 0;
}

/* Was it read, or did that fail, not long enough ago to read it again? */
static bool was_just_read(const struct procmap_table *table,
			  const struct process *process)
{
	return process->has_been_read &&
	       now_of(table) - process->read_at < table->options.reread;
}

static bool may_be_read(const struct procmap_table *table, const struct process *process)
{
	return !(table->options.flags & PROCMAP_TABLE_EVENTS_ONLY) &&
	       !process->has_exited;
}

/* The executable mappings were read, and then all: the first of the two says no more. */
static void drop_reading(struct procmap_table *table, struct process *process)
{
	struct fact *const all = &process->facts[process->nr_facts - 1];
	struct fact *const part = all - 1;

	if (all->kind != WAS_READ || part->kind != WAS_READ ||
	    part->view->extent != OF_EXECUTABLE)
		return;
	drop_view(table, process);
	put_fact(table, part);
	*part = *all;
	process->nr_facts--;
}

/* Has it to be read before a question is answered? */
static bool is_to_be_read(const struct procmap_table *table,
			  const struct process *process)
{
	if (!may_be_read(table, process))
		return false;
	if (process->was_read != OF_EVENTS && process->read_at >= table->lost_at)
		return false;
	return !process->error || !was_just_read(table, process);
}

/* Is it worth to read all for an address that is not known to be mapped? */
static bool is_worth_reading(const struct procmap_table *table,
			     const struct process *process)
{
	if (!may_be_read(table, process))
		return false;
	return (process->was_read != OF_ALL && !process->error) ||
	       !was_just_read(table, process);
}

/* Answers */

/* What was returned is valid until the next call. */
static void drop_found(struct procmap_table *table)
{
	put_record(table, table->found_record);
	table->found_record = NULL;
}

static void answer(struct procmap_table *table, struct record *record, uint64_t start,
		   uint64_t end)
{
	struct procmap_mapping *const mapping = &table->mapping;

	*mapping = record->file->mapping;
	mapping->start = start;
	mapping->end = end;
	mapping->offset = record->offset;
	if (record->is_of_file)
		mapping->offset += start - record->start;
	mapping->page_size = record->page_size;
	mapping->flags = record->flags;
	table->found.mapping = mapping;
	table->found.user = &record->user;
}

/*
 * Until when was what was found at an address there? A process of which something is
 * mapped after its exit has other threads.
 */
static uint64_t known_until(const struct process *process, size_t nr, uint64_t addr,
			    const struct record *record)
{
	const struct piece *piece;
	uint64_t exit = UINT64_MAX;
	size_t i, at;

	for (i = nr; i && (process->facts[i - 1].kind >= NAMED ||
			   process->facts[i - 1].kind == WAS_READ); i--)
		if (process->facts[i - 1].kind == EXITED)
			exit = process->facts[i - 1].time;
	for (i = nr; i < process->nr_facts; i++) {
		const struct fact *const fact = &process->facts[i];

		switch (fact->kind) {
		case MAPPED:
			if (addr >= fact->record->start && addr < fact->record->end)
				return fact->time;
			exit = UINT64_MAX;
			break;
		case WAS_READ:
			at = pieces_below(fact->view, addr);
			piece = at < fact->view->nr ? &fact->view->pieces[at] : NULL;
			if (!piece || piece->start > addr ?
			    fact->view->extent == OF_ALL || is_executable(record) :
			    piece->record->file != record->file ||
			    piece->record->offset - piece->record->start !=
			    record->offset - record->start)
				return earlier(exit, fact->time);
			break;
		case CONDENSED:
		case BEGUN:
			return earlier(exit, fact->time);
		case EXITED:
			exit = earlier(exit, fact->time);
			break;
		case NAMED:
			break;
		}
	}
	return exit;
}

/* Returns the record that was found, or NULL. */
static struct record *find_in_log(struct procmap_table *table,
				  const struct process *process, uint64_t time,
				  uint64_t addr)
{
	struct walk walk = {
		.is_question = true,
		.addr = addr,
		.high = UINT64_MAX,
	};
	const size_t nr = facts_up_to(process, time);
	const struct fact *begun;

	walk_log(&walk, process, time, true);
	if (!walk.record)
		return NULL;
	answer(table, walk.record, walk.low, walk.high);
	table->found.until = known_until(process, nr, addr, walk.record);
	begun = last_begun(process, nr);
	/* The parent may have had it before. */
	table->found.from = later(walk.from, begun->time);
	table->found.process_user = &begun->program->user;
	return walk.record;
}

/* Returns false if the view does not suffice for an answer. */
static inline bool find_in_view(struct procmap_table *table,
				const struct process *process, uint64_t time,
				uint64_t addr)
{
	const struct piece *piece;
	size_t at;

	if (!process->is_settled || process->of_changes != table->changes ||
	    time < process->begun)
		return false;
	at = pieces_below(process->view, addr);
	if (at == process->view->nr)
		return false;
	piece = &process->view->pieces[at];
	if (piece->start > addr || piece->from > time)
		return false;
	answer(table, piece->record, piece->start, piece->end);
	table->found.from = piece->from > process->begun ? piece->from : process->begun;
	table->found.until = process->has_exited ? process->exited_at : UINT64_MAX;
	table->found.process_user = &process->program->user;
	return true;
}

static int find_slowly(struct procmap_table *table, pid_t pid, uint64_t time,
		       uint64_t addr)
{
	struct process *process = find_process(table, pid);
	const uint64_t readings = table->stats.readings;
	struct record *found;
	int err;

	if (!process && table->options.flags & PROCMAP_TABLE_EVENTS_ONLY)
		return -ENOENT;
	if (!process)
		process = get_process(table, pid);
	if (!process)
		return -ENOMEM;
	process->is_used = true;

	if (time >= process->begun && is_to_be_read(table, process))
		read_process(table, process, OF_EXECUTABLE);
	found = find_in_log(table, process, time, addr);
	if (!found && time >= process->begun && is_worth_reading(table, process)) {
		if (!read_process(table, process, OF_ALL) &&
		    table->stats.readings == readings + 2)
			drop_reading(table, process);
		found = find_in_log(table, process, time, addr);
	}
	process->is_settled = !is_to_be_read(table, process) &&
			      have_view(table, process);

	err = found ? 0 : process->error ? process->error : -ENOENT;
	/* It may be that of a parent, which is forgotten now. */
	drop_found(table);
	table->found_record = get_record(found);
	if (make_room(table, process)) {
		drop_found(table);
		return -ENOSPC;
	}
	if (found && table->stats.readings == readings)
		table->stats.hits++;
	return err;
}

int procmap_table_find(struct procmap_table *table, pid_t pid, uint64_t time,
		       uint64_t addr, const struct procmap_table_mapping **mapping)
{
	struct process *process;
	int err;

	if (!table || pid <= 0 || !mapping)
		return -EINVAL;
	table->stats.questions++;
	process = find_process(table, pid);
	if (process && find_in_view(table, process, time, addr)) {
		process->is_used = true;
		table->stats.hits++;
	} else {
		err = find_slowly(table, pid, time, addr);
		if (err) {
			table->stats.misses++;
			return err;
		}
	}
	*mapping = &table->found;
	return 0;
}

/* Events */

/* Get the process of an event; NULL if the event is dropped, or without memory. */
static struct process *process_of_event(struct procmap_table *table, pid_t pid,
					uint64_t time, int *err)
{
	struct process *process;

	*err = 0;
	drop_found(table);
	if (table->latest < time)
		table->latest = time;
	lose_settled(table, time);
	process = get_process(table, pid);
	if (!process) {
		note_forgotten(table, pid, time);
		*err = -ENOMEM;
		return NULL;
	}
	sweep(table, process);
	if (time >= process->horizon)
		return process;
	table->stats.dropped++;
	return NULL;
}

/* The event has been added, or that failed. */
static int end_event(struct procmap_table *table, struct process *process, uint64_t time,
		     int err)
{
	if (err) {
		lose(table, process, time);
		make_room(table, process);
		return err;
	}
	condense(table, process);
	if (make_room(table, process))
		table->stats.dropped++;
	else
		table->stats.events++;
	return 0;
}

/* Make a mapping of an event. Returns false if it makes no sense. */
static bool to_mapping(const struct procmap_mmap *event, struct procmap_mapping *mapping)
{
	const bool has_path = event->filename[0] == '/' && event->filename[1] != '/';

	*mapping = (struct procmap_mapping) {
		.start = event->addr,
		.end = event->addr + event->len,
		.name = event->filename,
		.flags = (event->prot & PROT_READ ? PROCMAP_READABLE : 0) |
			 (event->prot & PROT_WRITE ? PROCMAP_WRITABLE : 0) |
			 (event->prot & PROT_EXEC ? PROCMAP_EXECUTABLE : 0) |
			 (event->flags & MAP_SHARED ? PROCMAP_SHARED : 0),
		.build_id_size = event->build_id_size,
	};
	if (!event->len || event->addr + event->len < event->addr ||
	    event->pgoff + event->len < event->pgoff ||
	    event->build_id_size > PROCMAP_BUILD_ID_MAX)
		return false;
	memcpy(mapping->build_id, event->build_id, event->build_id_size);
	/* Without a file, the kernel's name is not that of the text. */
	if (!strncmp(event->filename, "//anon", 6))
		mapping->name = "";
	mapping->name_len = strlen(mapping->name);
	if (mapping->name_len > 4 * PATH_MAX)
		return false;
	if (has_path || event->ino) {
		mapping->offset = event->pgoff;
		mapping->inode = event->ino;
		mapping->dev_major = event->maj;
		mapping->dev_minor = event->min;
	}
	return true;
}

int procmap_table_mmap(struct procmap_table *table, pid_t pid, uint64_t time,
		       const struct procmap_mmap *given)
{
	struct fact mapped = { .time = time, .kind = MAPPED };
	struct procmap_mmap event;
	struct procmap_mapping mapping;
	struct process *process;
	int err;

	if (!table || pid <= 0 || !given ||
	    take_struct(&event, sizeof(event), given) || !event.filename ||
	    !to_mapping(&event, &mapping))
		return -EINVAL;
	process = process_of_event(table, pid, time, &err);
	if (!process)
		return err;
	mapped.record = new_record(table, &mapping);
	err = mapped.record ? add_fact(table, process, &mapped) : -ENOMEM;
	if (err)
		put_record(table, mapped.record);
	return end_event(table, process, time, err);
}

/* The program that a process runs, or the process itself, is another one from then on. */
static int begin(struct procmap_table *table, struct process *process,
		 struct process *parent, uint64_t time)
{
	const struct fact begun = {
		.time = time,
		.kind = BEGUN,
		.program = new_program(table, process, parent, time),
	};
	const int err = begun.program ? add_fact(table, process, &begun) : -ENOMEM;

	if (err && begun.program)
		put_program(table, begun.program);
	return err;
}

int procmap_table_fork(struct procmap_table *table, pid_t pid, pid_t tid, pid_t ppid,
		       uint64_t time)
{
	struct process *process, *parent;
	int err;

	if (!table || pid <= 0 || tid <= 0 || ppid <= 0)
		return -EINVAL;
	if (pid == ppid)
		return 0;
	process = process_of_event(table, pid, time, &err);
	if (!process)
		return err;
	parent = get_process(table, ppid);
	if (parent)
		parent->is_used = true;
	err = parent ? begin(table, process, parent, time) : -ENOMEM;
	if (!err && process->begun == time && parent->begun <= time &&
	    !process->has_been_read) {
		process->was_read = parent->was_read;
		process->has_been_read = parent->has_been_read;
		process->read_at = parent->read_at;
	}
	return end_event(table, process, time, err);
}

int procmap_table_exec(struct procmap_table *table, pid_t pid, uint64_t time)
{
	struct process *process;
	int err;

	if (!table || pid <= 0)
		return -EINVAL;
	process = process_of_event(table, pid, time, &err);
	if (!process)
		return err;
	return end_event(table, process, time, begin(table, process, NULL, time));
}

/* An event of the main thread. Others are not of interest. */
static int add_event(struct procmap_table *table, pid_t pid, pid_t tid,
		     const struct fact *fact)
{
	struct process *process;
	int err;

	if (tid != pid)
		return 0;
	process = process_of_event(table, pid, fact->time, &err);
	if (!process)
		return err;
	return end_event(table, process, fact->time, add_fact(table, process, fact));
}

int procmap_table_comm(struct procmap_table *table, pid_t pid, pid_t tid, uint64_t time,
		       const char *comm)
{
	struct fact named = { .time = time, .kind = NAMED };

	if (!table || pid <= 0 || tid <= 0 || !comm)
		return -EINVAL;
	memcpy(named.comm, comm, strnlen(comm, sizeof(named.comm) - 1));
	return add_event(table, pid, tid, &named);
}

int procmap_table_exit(struct procmap_table *table, pid_t pid, pid_t tid, uint64_t time)
{
	const struct fact exited = { .time = time, .kind = EXITED };

	if (!table || pid <= 0 || tid <= 0)
		return -EINVAL;
	return add_event(table, pid, tid, &exited);
}

int procmap_table_lost(struct procmap_table *table, uint64_t time)
{
	struct process *process;

	if (!table)
		return -EINVAL;
	if (table->lost_at < time)
		table->lost_at = time;
	for (process = table->newest; process; process = process->older)
		process->is_settled = false;
	return 0;
}

int procmap_table_get_comm(struct procmap_table *table, pid_t pid, uint64_t time,
			   char comm[PROCMAP_COMM_SIZE])
{
	const struct process *process;
	const char *found;

	if (!table || pid <= 0 || !comm)
		return -EINVAL;
	process = find_process(table, pid);
	found = process ? find_comm(process, time) : NULL;
	if (!found)
		return -ENOENT;
	memcpy(comm, found, PROCMAP_COMM_SIZE);
	return 0;
}

const struct procmap_table_stats *
procmap_table_get_stats(const struct procmap_table *table)
{
	return table ? &table->stats : NULL;
}

/* The caller's options, with the defaults. Returns 0 or -EINVAL. */
static int take_options(struct procmap_table_options *options,
			const struct procmap_table_options *given)
{
	const int err = take_struct(options, sizeof(*options), given);

	if (err)
		return err;
	if (!options->max_processes)
		options->max_processes = PROCESSES_MAX;
	if (!options->max_mappings)
		options->max_mappings = MAPPINGS_MAX;
	if (!options->max_bytes)
		options->max_bytes = BYTES_MAX;
	if (options->keep_exited < options->window)
		options->keep_exited = options->window;
	return is_method(options->method) &&
	       !(options->flags &
		 ~(PROCMAP_TABLE_EVENTS_ONLY | PROCMAP_TABLE_BUILD_IDS)) ? 0 : -EINVAL;
}

int procmap_table_new(const struct procmap_table_options *given,
		      struct procmap_table **table)
{
	struct procmap_table_options options;
	struct procmap_table *new;

	if (!table || take_options(&options, given))
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->options = options;
	new->stats.bytes = sizeof(*new);
	*table = new;
	return 0;
}

void procmap_table_free(struct procmap_table *table)
{
	if (!table)
		return;
	table->is_going = true;
	drop_found(table);
	while (table->oldest)
		forget(table, table->oldest);
	free(table);
}
