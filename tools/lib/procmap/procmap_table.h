/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libprocmap: the mappings of many processes over time, for profilers and
 * unwinders. The caller passes on the events that perf_event_open(2) reports, and
 * asks which mapping an address belonged to when a sample was taken. Processes that
 * are looked up are read by procmap.h.
 *
 * The conventions are those of procmap.h. A table has no lock: one thread at a time
 * may use it. Only a question may block, where it reads a process.
 *
 * See procmap_table_new(3).
 */
#ifndef PROCMAP_TABLE_H
#define PROCMAP_TABLE_H

#include "procmap.h"

struct perf_event_attr;
struct perf_event_header;

#ifdef __cplusplus
extern "C" {
#endif

/** struct procmap_table - the mappings of many processes over time */
struct procmap_table;

/**
 * enum procmap_table_flags - how a table works
 * @PROCMAP_TABLE_EVENTS_ONLY: never read a process: know what events have said, and
 *	nothing else. For recorded events, and for callers that may not block. They
 *	synthesize events for what was mapped before.
 * @PROCMAP_TABLE_BUILD_IDS: read build IDs, too.
 */
enum procmap_table_flags {
	PROCMAP_TABLE_EVENTS_ONLY	= 0x1,
	PROCMAP_TABLE_BUILD_IDS		= 0x2,
};

/**
 * struct procmap_table_options - what a table may keep, and where it reads
 * @size: sizeof(struct procmap_table_options).
 * @flags: any of &enum procmap_table_flags.
 * @method: how processes are read, without @open.
 * @window: how much older than the latest event another one may be, on the caller's
 *	clock. What was mapped this long ago is still known. Events that
 *	are older are dropped where it is no longer possible to sort them in.
 * @keep_exited: how long a process is kept after it has exited; at least @window is
 *	used.
 * @reread: a process is not read for an address that is not mapped if it was read
 *	this short a time before.
 * @max_processes: most processes to keep; 0 means 16384.
 * @max_mappings: most mappings to keep, those of the past included, and besides the
 *	one that was returned last; 0 means 2097152.
 * @max_bytes: most memory to use, in bytes; 0 means 268435456.
 * @now: returns the time on the caller's clock. NULL means CLOCK_MONOTONIC, in ns,
 *	which perf_event_open(2) has as clockid.
 * @open: opens a handle on a process that is to be read, as procmap_open_pid(), which
 *	NULL means. The table closes it.
 * @gone: called when a user pointer that is not NULL is about to go: see
 *	&procmap_table_mapping. It must not use the table.
 * @context: passed to these functions.
 */
struct procmap_table_options {
	size_t size;
	unsigned int flags;
	enum procmap_method method;
	uint64_t window;
	uint64_t keep_exited;
	uint64_t reread;
	size_t max_processes;
	size_t max_mappings;
	size_t max_bytes;
	uint64_t (*now)(void *context);
	int (*open)(void *context, pid_t pid, struct procmap **procmap);
	void (*gone)(void *context, void *user);
	void *context;
};

/**
 * struct procmap_mmap - an event: something was mapped
 *
 * The fields are those of PERF_RECORD_MMAP2. What was mapped there before no longer
 * is, as far as the new mapping overlaps it.
 *
 * @size: sizeof(struct procmap_mmap).
 * @addr: first address.
 * @len: size in bytes.
 * @pgoff: file offset of @addr, in bytes.
 * @ino: inode number of the file; 0 if the event has a build ID instead.
 * @filename: the path of the file; ``//anon`` or a name in brackets without one.
 * @maj: major number of the file's device.
 * @min: minor number of the file's device.
 * @prot: PROT_READ, PROT_WRITE, PROT_EXEC of mmap(2).
 * @flags: MAP_SHARED, if it is.
 * @build_id_size: size of @build_id in bytes, or 0.
 * @build_id: the build ID, if the event has it.
 */
struct procmap_mmap {
	size_t size;
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff;
	uint64_t ino;
	const char *filename;
	uint32_t maj;
	uint32_t min;
	uint32_t prot;
	uint32_t flags;
	uint32_t build_id_size;
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
};

/**
 * struct procmap_table_mapping - what an address belonged to
 *
 * It belongs to the table, and is valid until the next call with that table, other
 * than procmap_table_get_stats().
 *
 * @mapping: the mapping, as of that time: what other mappings took of it before is
 *	left out.
 * @from: from this time on, nothing contradicts that the mapping was there.
 * @until: the first time that it is known not to be there, or is another program's;
 *	UINT64_MAX if none is known. It is not after the question only if that is later
 *	than the exit of the process.
 * @user: a pointer of the caller, NULL at first, that is kept with the mapping. Processes
 *	that inherited the mapping by fork(2) share it. &procmap_table_options.gone is
 *	called when the mapping is forgotten.
 * @process_user: the same for the program that the process runs: it is another one
 *	after execve(2), and in another process.
 */
struct procmap_table_mapping {
	const struct procmap_mapping *mapping;
	uint64_t from;
	uint64_t until;
	void **user;
	void **process_user;
};

/**
 * struct procmap_table_stats - what a table has done, and what it has
 * @questions: addresses that were looked up.
 * @hits: those that were answered from what was known.
 * @misses: those that were not mapped.
 * @readings: how often a process was read.
 * @failed: readings that failed, as of a process that has exited by then.
 * @events: events that were used.
 * @dropped: events that came too late to be sorted in, or that there was no room for.
 * @evicted: processes that were forgotten for want of room.
 * @processes: processes that are known.
 * @mappings: mappings that are kept.
 * @bytes: memory that is used, in bytes, without that of malloc(3) itself.
 */
struct procmap_table_stats {
	uint64_t questions;
	uint64_t hits;
	uint64_t misses;
	uint64_t readings;
	uint64_t failed;
	uint64_t events;
	uint64_t dropped;
	uint64_t evicted;
	size_t processes;
	size_t mappings;
	size_t bytes;
};

/**
 * procmap_table_new() - get a table
 * @options: what it may keep, and where it reads, which is copied; NULL for the defaults.
 * @table: set to the table. Free it with procmap_table_free().
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int procmap_table_new(const struct procmap_table_options *options,
		      struct procmap_table **table);

/**
 * procmap_table_free() - free a table and all that it has
 * @table: the table, or NULL.
 */
void procmap_table_free(struct procmap_table *table);

/**
 * procmap_table_mmap() - something was mapped
 * @table: the table.
 * @pid: the process, of which every thread has the mapping.
 * @time: when.
 * @event: what. It is copied.
 *
 * Events may come out of order, see &procmap_table_options.window. Of two with the same
 * time, the one that comes later is later.
 *
 * Return: 0, also if the event was dropped; -EINVAL if a pointer is NULL, @pid is
 * not positive, or the event makes no sense; -ENOMEM.
 */
int procmap_table_mmap(struct procmap_table *table, pid_t pid, uint64_t time,
		       const struct procmap_mmap *event);

/**
 * procmap_table_fork() - a process or thread was created
 * @table: the table.
 * @pid: the process of the new thread.
 * @tid: the new thread.
 * @ppid: the process of the thread that created it.
 * @time: when.
 *
 * A new process has the mappings that its parent has at that time, and shares the
 * memory of the table for them. What was known of another process with this ID is
 * that of the time before. What is known of a later time is not touched.
 *
 * A new thread (@pid is @ppid) has the mappings of its process.
 *
 * Return: as procmap_table_mmap().
 */
int procmap_table_fork(struct procmap_table *table, pid_t pid, pid_t tid,
		       pid_t ppid, uint64_t time);

/**
 * procmap_table_exec() - a process has executed a program
 * @table: the table.
 * @pid: the process.
 * @time: when. Nothing is mapped then.
 *
 * perf_event_open(2) reports this as PERF_RECORD_COMM with
 * PERF_RECORD_MISC_COMM_EXEC.
 *
 * Return: as procmap_table_mmap().
 */
int procmap_table_exec(struct procmap_table *table, pid_t pid, uint64_t time);

/**
 * procmap_table_comm() - a thread has another name
 * @table: the table.
 * @pid: the process.
 * @tid: the thread. Only the name of the main thread (@tid is @pid) is kept.
 * @time: when.
 * @comm: the name, of which 15 bytes count. This has nothing to do with mappings.
 *
 * Return: as procmap_table_mmap().
 */
int procmap_table_comm(struct procmap_table *table, pid_t pid, pid_t tid,
		       uint64_t time, const char *comm);

/**
 * procmap_table_exit() - a thread has exited
 * @table: the table.
 * @pid: the process.
 * @tid: the thread. That of the main thread (@tid is @pid) is that of the process,
 *	unless it maps something later.
 * @time: when.
 *
 * The process can be looked up as long as &procmap_table_options.keep_exited says, but
 * is not read any more.
 *
 * Return: as procmap_table_mmap().
 */
int procmap_table_exit(struct procmap_table *table, pid_t pid, pid_t tid,
		       uint64_t time);

/**
 * procmap_table_lost() - events were lost
 * @table: the table.
 * @time: when.
 *
 * Every process is read again when it is looked up next.
 *
 * Return: 0, or -EINVAL if @table is NULL.
 */
int procmap_table_lost(struct procmap_table *table, uint64_t time);

/**
 * procmap_table_record() - pass on a record of perf_event_open(2)
 * @table: the table.
 * @attr: the attributes of the event whose ring the record is from: sample_id_all is set,
 *	and sample_type has PERF_SAMPLE_TIME. See <linux/perf_event.h>.
 * @record: the record, all of its @record->size bytes in one piece, as it is in the
 *	ring. It is copied.
 *
 * It does what the functions above do, by the time in the fields of sample_id_all, for
 * PERF_RECORD_MMAP, PERF_RECORD_MMAP2, PERF_RECORD_COMM, PERF_RECORD_FORK,
 * PERF_RECORD_EXIT and PERF_RECORD_LOST. Records of another type, of the kernel, and of
 * processes in other PID namespaces are ignored. Of the permissions, PERF_RECORD_MMAP
 * only has whether the mapping is executable. It suits programs that read rings of
 * perf_event_open(2), or the file of perf-record(1).
 *
 * Return: as procmap_table_mmap(); -EINVAL also if @attr has no time, or the record is
 * shorter than its fields, or has a name that does not end.
 */
int procmap_table_record(struct procmap_table *table, const struct perf_event_attr *attr,
			 const struct perf_event_header *record);

/**
 * procmap_table_find() - find the mapping that an address belonged to
 * @table: the table.
 * @pid: the process.
 * @time: when.
 * @addr: the address.
 * @mapping: set to the mapping.
 *
 * The first question about a program reads its executable mappings, and one about
 * an address in none of them reads all. For an address that is not mapped then, it is
 * read again at most every &procmap_table_options.reread. Processes that have exited, or have
 * executed another program since @time, are not read.
 *
 * A mapping that was read, and that no event reports, is taken to have been there
 * before.
 *
 * Return: 0, or
 * * -ENOENT: nothing is known to have been mapped there.
 * * -EINVAL: a pointer is NULL, or @pid is not positive.
 * * -ENOSPC: the process has more mappings than the table may keep.
 * * another error of procmap_open_pid() or procmap_next(), if the process had to be
 *   read for this; -ESRCH if there is no such process.
 */
int procmap_table_find(struct procmap_table *table, pid_t pid, uint64_t time,
		       uint64_t addr,
		       const struct procmap_table_mapping **mapping);

/**
 * procmap_table_resolve() - find the mappings of a stack
 * @table: the table.
 * @pid: the process.
 * @time: when.
 * @addrs: the addresses.
 * @nr_addrs: number of addresses.
 * @mappings: set to an array of as many pointers, each to what procmap_table_find()
 *	returns for that address, or NULL. The array belongs to the table, and is valid
 *	as long as what is in it.
 *
 * Return: 0, also if no address is mapped; or another error of procmap_table_find()
 * if that is returned for all of them.
 */
int procmap_table_resolve(struct procmap_table *table, pid_t pid, uint64_t time,
			  const uint64_t *addrs, size_t nr_addrs,
			  const struct procmap_table_mapping *const **mappings);

/**
 * procmap_table_verify() - compare an answer with the process
 * @table: the table.
 * @pid: the process.
 * @addr: the address.
 *
 * There is no event for munmap(2). If the process has another mapping at the address
 * than the table says it has now, or none, the process is read again.
 *
 * Return: 1 if the table was right; 0 if it was not, and has read the process; or an
 * error of procmap_table_find(): with PROCMAP_TABLE_EVENTS_ONLY, -EPERM.
 */
int procmap_table_verify(struct procmap_table *table, pid_t pid, uint64_t addr);

/** PROCMAP_COMM_SIZE - size of the name of a thread, with its NUL, in bytes */
#define PROCMAP_COMM_SIZE	16

/**
 * procmap_table_get_comm() - the name of a process at a time
 * @table: the table.
 * @pid: the process.
 * @time: when.
 * @comm: set to the name. Without events it is not known: nothing is read.
 *
 * Return: 0, -ENOENT, or -EINVAL.
 */
int procmap_table_get_comm(struct procmap_table *table, pid_t pid, uint64_t time,
			   char comm[PROCMAP_COMM_SIZE]);

/**
 * procmap_table_get_stats() - what a table has done, and what it has
 * @table: the table.
 *
 * Return: the numbers, which change with the table and are valid as long as it is;
 * NULL if @table is.
 */
const struct procmap_table_stats *
procmap_table_get_stats(const struct procmap_table *table);

#ifdef __cplusplus
}
#endif

#endif /* PROCMAP_TABLE_H */
