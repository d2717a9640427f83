/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libprocmap: the mappings of many processes over time, for profilers and unwinders. The
 * caller passes on the events of perf_event_open(2), and asks which mapping an address
 * belonged to when a sample was taken. See procmap_table_new(3); the conventions are
 * those of procmap.h.
 */
#ifndef PROCMAP_TABLE_H
#define PROCMAP_TABLE_H

#include "procmap.h"

struct perf_event_attr;
struct perf_event_header;

#ifdef __cplusplus
extern "C" {
#endif

/* The mappings of many processes over time. One thread at a time may use it. */
struct procmap_table;

/* The ways in which a table works. */
enum procmap_table_flags {
	PROCMAP_TABLE_EVENTS_ONLY	= 0x1,	/* never read a process */
	PROCMAP_TABLE_BUILD_IDS		= 0x2,	/* read build IDs, too */
};

/* Limits of a table, and the procfs that it reads. Times are on the caller's clock. */
struct procmap_table_options {
	size_t size;			/* of this structure */
	unsigned int flags;		/* of enum procmap_table_flags */
	enum procmap_method method;	/* how processes are read, without open */
	uint64_t window;		/* how late events and questions may be */
	uint64_t keep_exited;		/* at least the window */
	uint64_t reread;		/* at most one reading for a miss in this time */
	size_t max_processes;		/* 0: 16384 */
	size_t max_mappings;		/* those of the past included; 0: 2097152 */
	size_t max_bytes;		/* 0: 268435456 */
	uint64_t (*now)(void *context);	/* the time; NULL: CLOCK_MONOTONIC, in ns */
	int (*open)(void *context, pid_t pid,
		    struct procmap **procmap);	/* NULL: procmap_open_pid() */
	void (*gone)(void *context, void *user);	/* a user pointer is dropped */
	void *context;			/* passed to these functions */
	const char *proc;		/* where procfs is, without open; NULL: /proc */
};

/* An event: something was mapped. The fields are those of PERF_RECORD_MMAP2. */
struct procmap_mmap {
	size_t size;		/* of this structure */
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff;		/* bytes */
	uint64_t ino;		/* 0 with a build ID instead */
	const char *filename;	/* the path; //anon or [a name] without one */
	uint32_t maj;
	uint32_t min;
	uint32_t prot;		/* of mmap(2) */
	uint32_t flags;		/* MAP_SHARED */
	uint32_t build_id_size;	/* bytes; 0: unknown */
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
};

/*
 * The mapping of an address. It is valid until the next call with the table. Its
 * build_id_size is -EAGAIN if the build ID was neither read nor reported.
 */
struct procmap_table_mapping {
	const struct procmap_mapping *mapping;	/* as of that time */
	uint64_t from;		/* nothing contradicts it from then on */
	uint64_t until;		/* first known not to be there; UINT64_MAX: never */
	void **user;		/* the caller's, kept with the mapping; at first NULL */
	void **process_user;	/* the same, kept with the program of the process */
};

/* The work that a table has done, and its contents. */
struct procmap_table_stats {
	uint64_t hits;		/* questions that were answered without reading */
	uint64_t readings;	/* of processes */
	uint64_t failed;	/* readings, as of a process that has exited */
	uint64_t events;	/* that were used */
	uint64_t dropped;	/* events: too late, or without room */
	uint64_t evicted;	/* processes forgotten for a limit */
	size_t processes;	/* that are known */
	size_t mappings;	/* that are kept */
	size_t bytes;		/* in use, without those of malloc(3) itself */
};

/* Get a table; options may be NULL. */
int procmap_table_new(const struct procmap_table_options *options,
		      struct procmap_table **table);

/* Free a table and all that it has. */
void procmap_table_free(struct procmap_table *table);

/* Something was mapped. Events return 0, also if they are dropped. */
int procmap_table_mmap(struct procmap_table *table, pid_t pid, uint64_t time,
		       const struct procmap_mmap *event);

/* A process or a thread (pid is ppid) was created. */
int procmap_table_fork(struct procmap_table *table, pid_t pid, pid_t tid,
		       pid_t ppid, uint64_t time);

/* A process has executed a program. */
int procmap_table_exec(struct procmap_table *table, pid_t pid, uint64_t time);

/* A thread has another name. */
int procmap_table_comm(struct procmap_table *table, pid_t pid, pid_t tid,
		       uint64_t time, const char *comm);

/* A thread has exited. */
int procmap_table_exit(struct procmap_table *table, pid_t pid, pid_t tid,
		       uint64_t time);

/* Events were lost. */
int procmap_table_lost(struct procmap_table *table, uint64_t time);

/* Pass on a record of perf_event_open(2), as it is in the ring. */
int procmap_table_record(struct procmap_table *table, const struct perf_event_attr *attr,
			 const struct perf_event_header *record);

/* Find the mapping that an address belonged to; -ENOENT: none is known. */
int procmap_table_find(struct procmap_table *table, pid_t pid, uint64_t time,
		       uint64_t addr,
		       const struct procmap_table_mapping **mapping);

/* The size of the name of a thread, with its NUL, in bytes. */
#define PROCMAP_COMM_SIZE	16

/* Set the name that a process had; -ENOENT: no event named it. */
int procmap_table_get_comm(struct procmap_table *table, pid_t pid, uint64_t time,
			   char comm[PROCMAP_COMM_SIZE]);

/* Return the numbers, which change with the table and are valid as long as it is. */
const struct procmap_table_stats *
procmap_table_get_stats(const struct procmap_table *table);

#ifdef __cplusplus
}
#endif

#endif /* PROCMAP_TABLE_H */
