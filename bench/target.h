/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The process whose mappings the benchmarks read.
 */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <procmap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE		4096

/* The paths of the libraries have PATH_SHORT to PATH_LONG bytes. */
#define PATH_SHORT	30
#define PATH_LONG	200

/* Options with a method. */
#define BY(by)	(&(const struct procmap_options) {		\
			.size = sizeof(struct procmap_options), .method = (by) })

/**
 * struct target - a process that waits, and ends with the one that started it
 * @pid: its ID.
 * @lines: the lines of its text.
 * @nr_vmas: number of @lines, and so of its mappings.
 */
struct target {
	pid_t pid;
	struct procmap_mapping *lines;
	size_t nr_vmas;
};

/*
 * Start a process of @nr_vmas mappings: libraries, and anonymous mappings behind
 * each; and read its text. These functions exit on errors.
 */
void start_target(struct target *target, size_t nr_vmas);

/* The number of mappings that pass the filters. */
size_t count_vmas(struct procmap *procmap, unsigned int filters);

/* Return the number of the library at a path, or -1 if it is another file. */
long number_of(const char *path);

/* The line of the mapping at an address, or NULL. */
const struct procmap_mapping *line_at(const struct target *target, uint64_t addr);

bool is_file(const struct procmap_mapping *line);

/* For a symbolizer's pass: addresses in the code of @nr_vmas libraries at most. */
void spread_pass(const struct target *target, size_t nr_vmas, uint64_t *addrs,
		 size_t nr_addrs);

#endif /* BENCH_TARGET_H */
