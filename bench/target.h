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
 * struct target - a process that has stopped, and ends with the one that started it
 * @pid: its ID.
 * @text: its mappings, from its text.
 */
struct target {
	pid_t pid;
	struct procmap_snapshot *text;
};

/*
 * Start a process of @nr_vmas mappings: libraries, and anonymous mappings behind
 * each; and read its text. These functions exit on errors.
 */
void start_target(struct target *target, size_t nr_vmas);

/* The number of mappings that pass the filters. */
size_t count_vmas(struct procmap *procmap, unsigned int filters);

/* Whether a path is that of one of the libraries. */
bool is_library(const char *path);

#endif /* BENCH_TARGET_H */
