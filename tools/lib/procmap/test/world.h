/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A world of processes that knows what was mapped when, for the tests of tables.
 */
#ifndef PROCMAP_TEST_WORLD_H
#define PROCMAP_TEST_WORLD_H

#include "procmap_table.h"
#include "util.h"

#define WORLD_PIDS	5
#define WORLD_PAGES	12
#define WORLD_EVENTS	400
#define ROUND_EVENTS	48
#define WORLD_BASE	0x10000u

enum world_kind { W_MMAP, W_FORK, W_EXEC, W_EXIT, W_UNMAP, W_SECRET };

/**
 * struct world_event - what happens in the world at a time
 * @time: when.
 * @kind: what. There are no events for the last two: some pages are unmapped, and
 *	something that is not executable is mapped.
 * @pid: the index of the process.
 * @from: of W_FORK, the index of the parent.
 * @first: the first page.
 * @nr: number of pages.
 * @id: what is mapped.
 */
struct world_event {
	uint64_t time;
	enum world_kind kind;
	int pid;
	int from;
	int first;
	int nr;
	int id;
};

/* The state of a page of a process: @id is 0 for nothing; it began at page @first. */
struct world_page {
	int id;
	int first;
	bool is_secret;
};

/**
 * struct world - processes and their history
 * @nr: number of events.
 * @events: the events in the order of their time.
 * @now: the time of the present.
 * @pages: what the processes have at the present.
 * @text: of a process that is read.
 * @gone: how many user pointers went.
 */
struct world {
	int nr;
	struct world_event events[WORLD_EVENTS];
	uint64_t now;
	struct world_page pages[WORLD_PIDS][WORLD_PAGES];
	char text[WORLD_PAGES * 128];
	int gone;
};

unsigned int world_random(unsigned int *seed, unsigned int below);

void world_apply(struct world_page pages[WORLD_PIDS][WORLD_PAGES],
		 const struct world_event *event);

/* Return the state of a page at a time, as far as events report it if @reported. */
struct world_page world_at(const struct world *world, int pid, int page,
			   uint64_t time, bool reported);

void world_make(struct world *world, unsigned int seed, int nr, bool secrets);

uint64_t world_addr(int page);

struct procmap_mmap world_mmap(const struct world_event *event);

/* Report an event to a table. */
int world_report(struct procmap_table *table, const struct world_event *event);

/* Returns what the table has at a page, or 0; or -1 if that makes no sense. */
int world_ask(const struct world *world, struct procmap_table *table, int pid,
	      int page, uint64_t time, bool reported);

struct procmap_table_options world_options(struct world *world);

/* Return whether the table agrees with the events, at all times from @from on. */
bool knows_world(const struct world *world, struct procmap_table *table,
		 uint64_t from);

/* Report in an order in which no event is more than @late behind another one. */
void world_shuffle(const struct world *world, unsigned int *seed, uint64_t late,
		   int *order);

uint64_t world_now(void *context);

/* The text of maps of a process of the world, at its present. */
int world_open(void *context, pid_t pid, struct procmap **procmap);

/* The processes of the world are read, too. */
void read_world(struct procmap_table_options *options);

/* Report that something executable was mapped at a page. */
int report_mapped(struct procmap_table *table, uint64_t time, int pid, int page,
		  int id);

/* Return the inode of what is mapped at a page, or an error. */
int inode_at(struct procmap_table *table, pid_t pid, uint64_t time, int page);

#endif /* PROCMAP_TEST_WORLD_H */
