/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: look mappings up as the command line says. */
#ifndef PROCFS_QUERY_LOOKUP_H
#define PROCFS_QUERY_LOOKUP_H

#include "mapping.h"
#include "options.h"
#include "procfs.h"

/* Options of a handle, with a method. */
#define BY(by, options)	(&(const struct procmap_options) {			\
				.size = sizeof(struct procmap_options), .method = (by),	\
				.proc = proc_dir, .flags = open_flags(options) })

const char *method_name(enum procmap_method method);
unsigned int open_flags(const struct options *options);
int open_mappings(const struct options *options, struct procmap **procmap);
int visit_snapshot(const struct options *options,
		   void (*visit)(const struct options *options,
				 const struct procmap_mapping *vma));
struct answer answer_of(const struct options *options, struct procmap *procmap,
			uint64_t addr, const struct procmap_mapping *vma);
int visit(struct procmap *procmap, const struct options *options,
	  visit_fn visit_one, void *context);

/**
 * struct rows - what is printed of each file, or other name
 * @all: the rows: structures whose first member is the first mapping of the file; its
 *	name is a copy.
 * @nr: the number of rows.
 * @room: the number that @all has room for.
 * @tree: the same rows as a tsearch(3) tree.
 */
struct rows {
	void **all;
	size_t nr;
	size_t room;
	void *tree;
};

void *row_of(struct rows *rows, const struct procmap_mapping *vma, size_t size);

#endif /* PROCFS_QUERY_LOOKUP_H */
