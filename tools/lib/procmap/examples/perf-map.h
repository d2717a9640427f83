/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Functions by their addresses, and those that the JIT compiler of a process has made.
 */
#ifndef PERF_MAP_H
#define PERF_MAP_H

#include <stdint.h>
#include <sys/types.h>

/* The longest line of a perf map, and the longest name, with a NUL. */
#define LINE_SIZE	65536

/* Exit if there is no memory. */
void *need(void *memory);

/* Add a function. It replaces those before it that have an address in common with it. */
void add_symbol(void **symbols, uint64_t start, uint64_t size, const char *name);

/* The name of the function at an address, or NULL. */
const char *find_symbol(void **symbols, uint64_t addr);

void free_symbols(void **symbols);

/*
 * The name of the function at an address, or NULL. The perf map of the process is looked at
 * once a round, and read if it has changed. @tid is a thread that was there a moment ago.
 */
const char *find_in_perf_map(pid_t pid, pid_t tid, uint64_t addr, unsigned int round);

/* The same in what it has from its parent, and when that was. */
const char *find_inherited(pid_t pid, uint64_t addr, uint64_t *forked_at);

/* A process was forked. These two are called in the order of the times. */
void fork_perf_map(pid_t pid, pid_t parent, uint64_t time, unsigned int round);

/* A process has executed a program, or exited. */
void end_perf_map(pid_t pid);

#endif /* PERF_MAP_H */
