/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: find mappings by name. */
#ifndef PROCFS_QUERY_NAME_H
#define PROCFS_QUERY_NAME_H

#include "mapping.h"
#include "options.h"

void parse_name(struct options *options, const char *text);
int visit_name(struct procmap *procmap, const struct options *options,
	       visit_fn visit_one, void *context);
int finish_name(const struct options *options, FILE *out);

#endif /* PROCFS_QUERY_NAME_H */
