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

/* The perf map of a process. */
struct perf_map;

struct perf_map *new_perf_map(pid_t pid);

void free_perf_map(struct perf_map *map);

/*
 * The name of the function at an address, or NULL. The file is looked at once a round, and
 * read if it has changed. @tid is a thread that was there a moment ago.
 */
const char *find_in_perf_map(struct perf_map *map, pid_t tid, uint64_t addr,
			     unsigned int round);

#endif /* PERF_MAP_H */
