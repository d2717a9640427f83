/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: print mappings. */
#ifndef PROCFS_QUERY_PRINT_H
#define PROCFS_QUERY_PRINT_H

#include "options.h"

struct input;

/* Returns an exit status or -errno. */
int answer_input(const struct options *options, struct input *input);

/* The columns of a build ID, without the blank after it. */
#define BUILD_ID_WIDTH		(2 * PROCMAP_BUILD_ID_MAX)

size_t print_program(FILE *out, const char *program, size_t column);
void print_headings(FILE *out, const struct options *options, const char *columns,
		    const char *last);
void print_process(FILE *out, const struct options *options);
void print_line(FILE *out, const struct options *options,
		const struct procmap_mapping *vma, int indent);
void print_build_id_column(FILE *out, const struct procmap_mapping *vma);

#endif /* PROCFS_QUERY_PRINT_H */
