/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random callers of an ioctl: threads with arguments near every boundary, on files
 * that another one closes meanwhile, about a process that never stays the same.
 *
 * Some rules hold all the time: an error is one that the arguments can have; only the
 * bytes that are reported are written; and a mapping is one that the process can have
 * had.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdatomic.h>

#include "stress_util.h"

#define NR_CALLERS	3
#define NR_FILES	8

/* A mapping, as an ioctl returned it. */
struct found {
	uint64_t start;
	uint64_t end;
	uint64_t permissions;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint64_t device;
	const char *name;	/* NULL: not known */
	uint32_t name_size;
	const uint8_t *id;	/* NULL: not known */
	uint32_t id_size;
};

/* Check a mapping, and count it if it is in the area. Returns its fault, or "". */
const char *wrong_mapping(const struct found *found, unsigned long *in_area);

/*
 * Buffers.
 */

/*
 * A zone has the buffer of one argument: memory that ends where a page without
 * access begins, and the same to be read only.
 */
struct zone {
	char *rw;
	char *ro;
};

/**
 * struct buffer - memory for one argument
 * @addr: its address.
 * @bytes: the same bytes, or NULL if they are not known.
 * @readable: bytes that can be read from @addr on.
 * @room: bytes that can be written.
 */
struct buffer {
	uint64_t addr;
	uint8_t *bytes;
	size_t readable;
	size_t room;
};

/* A buffer for @size bytes, or for fewer; fill that, and bytes around it. */
struct buffer some_buffer(const struct zone *zone, size_t size, size_t align,
			  uint64_t *seed);
void fill_buffer(const struct zone *zone, const struct buffer *buffer, size_t size);
/* All that was filled is unchanged, but for the first @used bytes. */
bool is_left_alone(const struct zone *zone, const struct buffer *buffer, size_t size,
		   size_t used);

uint64_t min_u64(uint64_t a, uint64_t b);
/* A size near a boundary, or most often @usual; an address to look at; some bits. */
uint64_t some_size(uint64_t usual, uint64_t *seed);
uint64_t some_address(uint64_t *seed);
uint64_t some_bits(uint64_t known, uint64_t *seed);

/*
 * Errors, as a set.
 */

enum outcome {
	FINE, BAD_FD, NO_IOCTL, TOO_BIG, INVALID, FAULT, GONE, NOTHING,
	NAME_LONG, NO_SPACE, INTERRUPTED, OTHER, NR_OUTCOMES,
};

#define SET(outcome)	(1u << (outcome))

enum outcome outcome_of(int error);
const char *name_of_outcome(enum outcome outcome);

/**
 * struct argument - the caller's structure
 * @buffer: where it is.
 * @size: its first member, its size.
 * @extent: bytes that are put there: the size, but at least its first member.
 * @known: bytes of it that the kernel knows.
 * @bytes: its content before the call.
 */
struct argument {
	struct buffer buffer;
	uint64_t size;
	size_t extent;
	size_t known;
	uint8_t bytes[4096 + 64];
};

/*
 * Put a structure somewhere. @members: its @known bytes that the kernel may know,
 * beginning with the size that it is to have.
 */
void put_argument(struct argument *argument, const struct zone *zone, const void *members,
		  size_t known, uint64_t *seed);
/* The outcomes that the structure itself can have, or 0 if the kernel goes on with it. */
unsigned int outcomes_of_argument(const struct argument *argument, size_t size_min,
				  size_t known);
/* The bytes before and behind the part that the kernel knows are unchanged. */
bool is_argument_left_alone(const struct argument *argument, const struct zone *zone,
			    size_t known);

/**
 * struct caller - a thread that calls the ioctl
 * @chaos: the run, which it shares with the others.
 * @thread: the thread.
 * @seed: the state of its random numbers.
 * @maps: its own maps file, which nobody else closes.
 * @zones: its buffers.
 * @counts: how often a call came out so.
 * @in_area: mappings in the area that were returned.
 * @wrong: the fault of the last call, or "".
 */
struct caller {
	struct chaos *chaos;
	pthread_t thread;
	uint64_t seed;
	int maps;
	struct zone zones[3];
	unsigned long counts[NR_OUTCOMES];
	unsigned long in_area;
	char wrong[512];
};

/**
 * struct chaos - a run
 * @soak: how long it is.
 * @call: makes one call, and sets &caller.wrong if need be.
 * @calls: calls so far.
 * @stop: set once it is over.
 * @fds: the files that are shared.
 * @target: the process that changes.
 * @callers: the callers.
 * @closer: the thread that opens and closes files, and interrupts callers.
 */
struct chaos {
	struct soak soak;
	void (*call)(struct caller *caller);
	atomic_ulong calls;
	atomic_bool stop;
	atomic_int fds[NR_FILES];
	pid_t target;
	struct caller callers[NR_CALLERS];
	pthread_t closer;
};

/* A file to call the ioctl on. Sets @steady if nobody else closes it. */
int some_file(struct caller *caller, bool *steady);

/* Signals that this thread has got. */
extern __thread unsigned int interrupts;

/* Let the callers call, for as long as the run is. Returns a fault, or "". */
const char *run_chaos(struct chaos *chaos, void (*call)(struct caller *caller));

#endif /* FUZZ_H */
