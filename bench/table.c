// SPDX-License-Identifier: GPL-2.0
/*
 * The part of "bench/bench library" that no kernel has a part in: measure a table of
 * libprocmap, which is given the events of 1,000 processes. It runs in a guest whose
 * clock counts instructions (scripts/vm -i), and prints a figure a line.
 */
#include <err.h>
#include <procmap_table.h>
#include <stdio.h>
#include <sys/mman.h>

#include "cost.h"

#define PAGE		4096

/* A table of so many processes, with TABLE_VMAS mappings each, of 20 programs. */
#define TABLE_PIDS	1000
#define TABLE_VMAS	200
#define TABLE_PROGRAMS	20

/* So many addresses are looked up. */
#define NR_ADDRS	10000

/* Four mappings in a row are of one file. */
#define TABLE_FILES	(TABLE_VMAS / 4)

/* Another process has so many mappings, and replaces as many; late events are that late. */
#define LARGE_PID	(TABLE_PIDS + 1)
#define LARGE_VMAS	100000
#define LATE		64

/* Those that live for a moment have these IDs, one after the other. */
#define SHORT_PID	(LARGE_PID + 1)
#define SHORT_PIDS	1000
#define SHORT_VMAS	5

/**
 * struct table_bench - what is measured of a table
 * @table: the table.
 * @time: the time of the last event.
 * @next: the number of the next event.
 * @lives: how many processes have lived for a moment.
 * @names: the names of the files of each program.
 * @questions: what the table is asked for.
 */
struct table_bench {
	struct procmap_table *table;
	uint64_t time;
	size_t next;
	size_t lives;
	char names[TABLE_PROGRAMS][TABLE_FILES][48];
	struct {
		pid_t pid;
		uint64_t addr;
	} questions[NR_ADDRS];
};

static uint64_t table_addr(size_t vma)
{
	return 0x7f0000000000 + vma * 2 * PAGE;
}

/* Something is mapped. */
static void report_mmap(struct table_bench *bench, pid_t pid, size_t vma, uint64_t time)
{
	const unsigned int program = pid % TABLE_PROGRAMS;
	const size_t file = vma / 4 % TABLE_FILES;
	const struct procmap_mmap event = {
		.size = sizeof(event),
		.addr = table_addr(vma),
		.len = PAGE,
		.pgoff = vma % 4 * PAGE,
		.ino = program * TABLE_FILES + file + 1,
		.filename = bench->names[program][file],
		.maj = 8,
		.prot = PROT_READ | PROT_EXEC,
	};

	if (procmap_table_mmap(bench->table, pid, time, &event))
		errx(2, "procmap_table_mmap");
}

/* In the end, each process has TABLE_VMAS. */
static void report_mmaps(void *context)
{
	struct table_bench *const bench = context;
	size_t i;

	for (i = 0; i < TABLE_VMAS; i++, bench->next++)
		report_mmap(bench, bench->next / TABLE_VMAS % TABLE_PIDS + 1, i,
			    ++bench->time);
}

static void fill_large(struct table_bench *bench)
{
	size_t vma;

	for (vma = 0; vma < LARGE_VMAS; vma++)
		report_mmap(bench, LARGE_PID, vma, ++bench->time);
}

/* The mappings of the large process are replaced, in an order that jumps. */
static void replace_large(struct table_bench *bench, size_t late)
{
	const struct procmap_table_mapping *found;
	size_t i, vma;

	for (i = 0; i < LARGE_VMAS; i++) {
		vma = i * 7919 % LARGE_VMAS;
		report_mmap(bench, LARGE_PID, vma, ++bench->time - i * 37 % late);
		if (i % LATE == 0 &&
		    procmap_table_find(bench->table, LARGE_PID, bench->time,
				       table_addr(vma), &found))
			errx(2, "a mapping is not in the table");
	}
}

static void replace_in_order(void *context)
{
	replace_large(context, 1);
}

static void replace_late(void *context)
{
	replace_large(context, LATE);
}

/* A process starts, executes a program, and exits, as those of a build do. */
static void live_for_a_moment(void *context)
{
	struct table_bench *const bench = context;
	const pid_t pid = SHORT_PID + bench->lives++ % SHORT_PIDS;
	size_t i;

	if (procmap_table_fork(bench->table, pid, pid, 1, ++bench->time) ||
	    procmap_table_exec(bench->table, pid, ++bench->time) ||
	    procmap_table_comm(bench->table, pid, pid, bench->time, "cc1"))
		errx(2, "a process does not start");
	for (i = 0; i < SHORT_VMAS; i++)
		report_mmap(bench, pid, i, ++bench->time);
	if (procmap_table_exit(bench->table, pid, pid, ++bench->time))
		errx(2, "a process does not exit");
}

/* Each process is asked for the next of its mappings, in an order that jumps. */
static void prepare_table(struct table_bench *bench)
{
	size_t i, j;

	for (i = 0; i < TABLE_PROGRAMS; i++)
		for (j = 0; j < TABLE_FILES; j++)
			snprintf(bench->names[i][j], sizeof(bench->names[i][j]),
				 "/usr/lib/x86_64-linux-gnu/lib%zu.so.%zu", j, i);
	for (i = 0; i < NR_ADDRS; i++) {
		bench->questions[i].pid = i * 337 % TABLE_PIDS + 1;
		bench->questions[i].addr = table_addr(i * 7 % TABLE_VMAS) + i % PAGE;
	}
}

static void find_in_table(void *context)
{
	const struct table_bench *const bench = context;
	const struct procmap_table_mapping *found;
	size_t i;

	for (i = 0; i < NR_ADDRS; i++)
		if (procmap_table_find(bench->table, bench->questions[i].pid, bench->time,
				       bench->questions[i].addr, &found))
			errx(2, "a mapping is not in the table");
}

static void find_after_loss(void *context)
{
	const struct table_bench *const bench = context;

	if (procmap_table_lost(bench->table, bench->time))
		errx(2, "procmap_table_lost");
	find_in_table(context);
}

int main(void)
{
	const struct procmap_table_options options = {
		.size = sizeof(options),
		.flags = PROCMAP_TABLE_EVENTS_ONLY,
		.window = TABLE_VMAS,
	};
	static struct table_bench bench;
	size_t i;

	prepare_table(&bench);
	if (procmap_table_new(&options, &bench.table))
		errx(2, "procmap_table_new");
	for (i = 0; i < TABLE_PIDS; i++)
		report_mmaps(&bench);
	find_in_table(&bench);
	printf("table: bytes per process   %10.1f\n",
	       (double)procmap_table_get_stats(bench.table)->bytes / TABLE_PIDS);
	printf("table: find                %10.1f\n",
	       cost_of_run(find_in_table, &bench) / NR_ADDRS);
	printf("table: find, after a loss  %10.1f\n",
	       cost_of_run(find_after_loss, &bench) / NR_ADDRS);
	printf("table: an mmap event       %10.1f\n",
	       cost_of_run(report_mmaps, &bench) / TABLE_VMAS);
	printf("table: a short process     %10.1f\n", cost_of_run(live_for_a_moment, &bench));
	fill_large(&bench);
	printf("table: one of 100,000      %10.1f\n",
	       cost_of_run(replace_in_order, &bench) / LARGE_VMAS);
	printf("table: the same, 64 late   %10.1f\n",
	       cost_of_run(replace_late, &bench) / LARGE_VMAS);
	procmap_table_free(bench.table);
	return 0;
}
