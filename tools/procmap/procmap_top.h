/* SPDX-License-Identifier: GPL-2.0 */
/* procmap-top: the interfaces between its source files. */
#ifndef PROCMAP_TOP_H
#define PROCMAP_TOP_H

#include <asm/perf_regs.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <procmap_table.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tool.h"

/**
 * struct options - the command line
 * @pid: the process that is sampled; 0 for the whole machine.
 * @all: sample the whole machine.
 * @force: read files of all users.
 * @command: the program to run and to sample, with its arguments; or NULL.
 * @output: the file to write to, or NULL.
 * @frequency: samples per second of CPU time.
 * @seconds: how long to sample; 0 means until it ends, or until a signal.
 * @rows: the number of functions in the table.
 * @stack_size: the bytes of the stack that a sample has.
 * @format: what is printed.
 */
struct options {
	pid_t pid;
	bool all;
	bool force;
	char **command;
	const char *output;
	unsigned long frequency;
	double seconds;
	unsigned long rows;
	unsigned long stack_size;
	enum { TABLE, FOLDED, JSON, SAMPLES } format;
};

/* procmap_top_events.c */

/* The registers in a sample. */
#define NR_REGS			PERF_REG_X86_64_MAX

/**
 * struct sample - where a thread was
 * @is_64: the registers are those of a 64-bit program.
 * @regs: its registers, by enum perf_event_x86_regs.
 * @stack: a copy of its stack from the stack pointer on.
 * @stack_size: the bytes of it.
 */
struct sample {
	bool is_64;
	uint64_t regs[NR_REGS];
	const uint8_t *stack;
	size_t stack_size;
};

/**
 * struct event - a record of perf_event_open(2)
 * @type: its enum perf_event_type.
 * @of_samples: it was in a buffer for samples.
 * @pid: the process.
 * @tid: the thread.
 * @time: when, on CLOCK_MONOTONIC.
 * @ppid: the parent, for PERF_RECORD_FORK.
 * @is_exec: for PERF_RECORD_COMM: it executed a program.
 * @comm: the name of the thread, for PERF_RECORD_COMM.
 * @lost: how many records, for PERF_RECORD_LOST.
 * @mmap: for PERF_RECORD_MMAP2.
 * @sample: for PERF_RECORD_SAMPLE.
 */
struct event {
	uint32_t type;
	bool of_samples;
	pid_t pid;
	pid_t tid;
	uint64_t time;
	union {
		pid_t ppid;
		struct {
			bool is_exec;
			const char *comm;
		};
		uint64_t lost;
		struct procmap_mmap mmap;
		struct sample sample;
	};
};

/**
 * struct events - what perf_event_open(2) reports
 * @rings: the buffers, two a CPU.
 * @nr_rings: how many.
 * @fds: the events of all threads and CPUs.
 * @nr_fds: how many.
 * @size_fds: room in @fds.
 * @records: what was read from the buffers, by time.
 * @nr_records: how many.
 * @size_records: room in @records.
 * @bytes: how large they are.
 * @next: the first that was not returned yet.
 * @nr_read: the records that were ever read.
 */
struct events {
	struct ring *rings;
	size_t nr_rings;
	int *fds;
	size_t nr_fds;
	size_t size_fds;
	struct record *records;
	size_t nr_records;
	size_t size_records;
	size_t bytes;
	size_t next;
	uint64_t nr_read;
};

void open_events(struct events *events, const struct options *options);
void wait_for_events(struct events *events, int signals, int process,
		     int milliseconds);
void read_events(struct events *events);
bool next_event(struct events *events, uint64_t until, struct event *event);
void stop_events(struct events *events);
void close_events(struct events *events);

/* procmap_top_unwind.c */

struct binary;

/**
 * struct function - a function, or all code of a file that has no symbol
 * @binary: the file; NULL: none.
 * @name: its symbol, or NULL.
 * @start: its first address, as the symbols of the file have it.
 * @offset: where it is in the file, if it has a name.
 * @self: samples in it.
 * @total: samples with it in the stack.
 * @counted: the last sample that @total has.
 */
struct function {
	const struct binary *binary;
	char *name;
	uint64_t start;
	uint64_t offset;
	uint64_t self;
	uint64_t total;
	uint64_t counted;
};

/* A stack is cut after so many frames. */
#define FRAMES_MAX		256

/**
 * struct frame - a frame of a stack
 * @address: the next instruction that it executes.
 * @offset: the file offset of that, if the function has a file.
 * @function: the function.
 */
struct frame {
	uint64_t address;
	uint64_t offset;
	struct function *function;
};

struct unwinder *new_unwinder(bool trusts_all);
size_t nr_untrusted(const struct unwinder *unwinder);
void free_unwinder(struct unwinder *unwinder);
struct procmap_table *table_of(struct unwinder *unwinder);
size_t unwind(struct unwinder *unwinder, const struct event *event,
	      struct frame frames[FRAMES_MAX]);
void visit_functions(struct unwinder *unwinder,
		     void (*visit)(void *context, struct function *function),
		     void *context);
const char *binary_name(const struct binary *binary);
size_t binary_build_id(const struct binary *binary, const uint8_t **id);

/* procmap_top_report.c */

/**
 * struct report - what the samples have in common
 * @stacks: a tsearch(3) tree of the stacks.
 * @samples: the number of samples.
 * @lost: the number of records that the kernel had to drop.
 * @seconds: how long.
 */
struct report {
	void *stacks;
	uint64_t samples;
	uint64_t lost;
	double seconds;
};

void print_sample(FILE *out, const struct event *event, const char *comm,
		  const struct frame *frames, size_t nr_frames);
void add_sample(struct report *report, const char *comm,
		const struct frame *frames, size_t nr_frames);
void print_report(const struct report *report, const struct options *options,
		  struct unwinder *unwinder);
void free_report(struct report *report);

#endif /* PROCMAP_TOP_H */
