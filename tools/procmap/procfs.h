/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: files about processes in /proc. */
#ifndef PROCFS_H
#define PROCFS_H

#include <sys/types.h>

/* Where procfs is mounted. */
extern const char *proc_dir;

char *path_of_process(pid_t pid, const char *name);
void fail_without_proc(int err);
pid_t own_pid(void);
char *program_of(pid_t pid);

#endif /* PROCFS_H */
