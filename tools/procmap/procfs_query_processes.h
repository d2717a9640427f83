/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: which processes to inspect. */
#ifndef PROCFS_QUERY_PROCESSES_H
#define PROCFS_QUERY_PROCESSES_H

#include "options.h"

void find_processes(struct options *options);
void sort_processes(struct options *options);
size_t sort_pids(pid_t *pids, size_t nr);
void look_at_fd(struct options *options);
void read_maps_file(struct options *options);

#endif /* PROCFS_QUERY_PROCESSES_H */
