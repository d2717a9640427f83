/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: messages about processes that cannot be inspected. */
#ifndef PROCFS_QUERY_TROUBLE_H
#define PROCFS_QUERY_TROUBLE_H

#include "options.h"

void report_trouble(const struct options *options, int err);
bool report_if_gone(const struct options *options);
void report_skipped(size_t nr_denied, size_t nr_empty);

#endif /* PROCFS_QUERY_TROUBLE_H */
