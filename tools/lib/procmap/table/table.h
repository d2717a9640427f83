/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Definitions shared by the files of a table. view.c has views and what they have: pieces,
 * records, files. log.c has the entries of a process, and alone interprets them. process.c
 * has the processes, which it reads, and the public functions.
 */
#ifndef PROCMAP_TABLE_INTERNAL_H
#define PROCMAP_TABLE_INTERNAL_H

#include <stdlib.h>

#include "internal.h"
#include "procmap_table.h"

/* Chains of the hash table of processes. */
#define CHAINS		0x4000
#define CHAINS_SHIFT	(64 - 14)

/* Process IDs are in so many groups: each has the time of the process forgotten last. */
#define FORGOTTEN	1024

/**
 * struct file - what was mapped: a name, an inode, a build ID; shared by mappings that
 * are equal in all of them, which may be of different files
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
 * @refs: number of entries and pieces that have it.
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

/* The meaning of a view for addresses that are in none of its pieces. */
enum extent {
	OF_EVENTS,	/* nothing */
	OF_EXECUTABLE,	/* that nothing executable is mapped there */
	OF_ALL,		/* that nothing is */
};

/**
 * struct view - mappings at one time
 * @refs: number of entries and processes that have it. With more than one it is not
 *	changed.
 * @extent: the meaning of addresses that are in none of its pieces.
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

/* The kinds of entries. BEGUN makes the entries before it void. */
enum kind {
	MAPPED,		/* something was mapped */
	WAS_READ,	/* the mappings were read */
	CONDENSED,	/* what is left of older entries */
	BEGUN,		/* a program, or a process with the mappings of its parent */
	NAMED,		/* the process has a name */
	EXITED,		/* it has exited */
};

/**
 * struct log_entry - an entry of the log of a process
 * @time: when.
 * @kind: what.
 * @record: of MAPPED. Owned.
 * @view: of WAS_READ and CONDENSED. Owned.
 * @program: of BEGUN. Owned.
 * @comm: of NAMED.
 */
struct log_entry {
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
 * @is_used: it was used since it was put at its place in the list.
 * @nr_entries: number of entries.
 * @entries_size: entries that there is room for.
 * @entries: the log. Owned. The first entry is BEGUN.
 * @condense_at: number of entries up to which the log is not condensed.
 * @horizon: entries before this time have been condensed, or were forgotten.
 * @children: the programs of which this process is the parent.
 * @last_child: the latest time at which such a program began.
 * @nr_parents: number of programs in the log that have a parent.
 * @view: the view at the end of the log, or NULL if it has to be made. Owned.
 * @of_changes: &procmap_table.changes when the view was made.
 * @is_settled: @view can be used without reading the process first.
 * @begun: the time of the last BEGUN.
 * @program: the program of the last BEGUN.
 * @was_read: what was read for this program, by this process or its parent.
 * @has_been_read: @read_at is valid.
 * @read_at: when it was read, or that failed.
 * @error: the error of the last reading, or 0.
 * @exited_at: when it exited; UINT64_MAX if it has not.
 */
struct process {
	pid_t pid;
	struct process *next;
	struct process *newer;
	struct process *older;
	bool is_used;
	size_t nr_entries;
	size_t entries_size;
	struct log_entry *entries;
	size_t condense_at;
	uint64_t horizon;
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
	uint64_t exited_at;
};

/**
 * struct procmap_table - see procmap_table.h
 * @options: the caller's options, with the defaults. Its string is @proc.
 * @stats: see there.
 * @latest: the latest time of an event or a reading.
 * @lost_at: what was read before this time has to be read again.
 * @changes: how often the past of a process with children was changed: views of
 *	processes that were forked may be void.
 * @nr_programs: number of programs that there were.
 * @forgotten: for each group of IDs, the time of the last entry of a process that was
 *	forgotten: events before that time are incomplete.
 * @sweep: the chain in which to look next for processes that exited long ago.
 * @processes: the processes, in chains by their ID. Owned.
 * @files: the files, for tsearch(3). Owned.
 * @newest: the newest process in the list of all.
 * @oldest: the oldest one. If it was used, it is the newest when room is needed.
 * @found: what procmap_table_find() returned.
 * @mapping: the mapping of @found.
 * @proc: where procfs is, if the caller has said it.
 */
struct procmap_table {
	struct procmap_table_options options;
	struct procmap_table_stats stats;
	uint64_t latest;
	uint64_t lost_at;
	uint64_t changes;
	uint64_t nr_programs;
	uint64_t forgotten[FORGOTTEN];
	size_t sweep;
	struct process *processes[CHAINS];
	void *files;
	struct process *newest;
	struct process *oldest;
	struct procmap_table_mapping found;
	struct procmap_mapping mapping;
	char proc[];
};

/**
 * struct walk - a walk through what is known of a process
 *
 * It passes what was mapped in the order of precedence: what is seen first covers the rest.
 * A question ends at the first that is found at the address; a new view takes all.
 *
 * @is_question: only the address matters.
 * @addr: the address.
 * @low: what is found begins here,
 * @high: and ends here, as other mappings are beside it.
 * @record: what was found, or NULL.
 * @from: the time since which it is known to be there.
 * @is_void: executable mappings of older entries are void, since a later reading does not
 *	have them.
 * @nr: number of pieces.
 * @size: pieces that there is room for.
 * @pieces: the pieces. They own no references. One without a record covers those after it,
 *	too: they are void.
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

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline struct record *get_record(struct record *record)
{
	if (record)
		record->refs++;
	return record;
}

static inline bool is_executable(const struct record *record)
{
	return record->flags & PROCMAP_EXECUTABLE;
}

static inline struct view *get_view(struct view *view)
{
	view->refs++;
	return view;
}

/* The number of pieces that end at or below an address. */
static inline size_t pieces_below(const struct view *view, uint64_t addr)
{
	return slots_below(&view->slots, view->pieces, sizeof(*view->pieces), view->nr,
			   addr);
}

/* view.c */
hidden void *allocate(struct procmap_table *table, size_t size);
hidden void release(struct procmap_table *table, void *bytes, size_t size);
hidden void *grow(struct procmap_table *table, void *array, size_t nr, size_t *size,
		  size_t entry);
hidden void user_is_gone(const struct procmap_table *table, void *user);
hidden int compare_build_ids(const struct procmap_mapping *a,
			     const struct procmap_mapping *b);
hidden struct record *new_record(struct procmap_table *table,
				 const struct procmap_mapping *mapping);
hidden void put_record(struct procmap_table *table, struct record *record);
hidden struct view *new_view(struct procmap_table *table, enum extent extent);
hidden void make_slots(struct procmap_table *table, struct view *view);
hidden void put_view(struct procmap_table *table, struct view *view);
hidden int splice(struct procmap_table *table, struct view *view, size_t first,
		  size_t last, const struct piece *with, size_t nr);
hidden struct view *copy_view(struct procmap_table *table, const struct view *view);
hidden size_t flatten(struct piece *pieces, size_t nr, struct piece *spare);
hidden int put_in_view(struct procmap_table *table, struct view *view, uint64_t from,
		       struct record *record);

/* log.c */
hidden size_t entries_up_to(const struct process *process, uint64_t time);
hidden const struct log_entry *last_begun(const struct process *process, size_t nr);
hidden int walk_log(struct walk *walk, const struct process *process, uint64_t time,
		    bool is_final);
hidden void drop_view(struct procmap_table *table, struct process *process);
hidden bool have_view(struct procmap_table *table, struct process *process);
hidden void put_entry(struct procmap_table *table, const struct log_entry *entry);
hidden int begin(struct procmap_table *table, struct process *process, struct process *parent,
		 uint64_t time);
hidden int add_entry(struct procmap_table *table, struct process *process,
		     const struct log_entry *entry);
hidden const char *find_comm(const struct process *process, uint64_t time);
hidden void settle_program(struct procmap_table *table, struct program *program,
			   struct view *view);
hidden void settle_children(struct procmap_table *table, struct process *process,
			    uint64_t time);
hidden void condense(struct procmap_table *table, struct process *process);
hidden uint64_t known_until(const struct process *process, size_t nr, uint64_t addr,
			    const struct record *record);

#endif /* PROCMAP_TABLE_INTERNAL_H */
