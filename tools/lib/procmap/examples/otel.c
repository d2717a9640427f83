// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Print where each process publishes its OpenTelemetry context, which is memory with the
 * name OTEL_CTX: anonymous ([anon:OTEL_CTX]), shared ([anon_shmem:OTEL_CTX]), or, on
 * kernels without such names, a memfd (/memfd:OTEL_CTX). One call finds all three.
 *
 *	cc otel.c $(pkg-config --cflags --libs libprocmap)
 */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <procmap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_context(pid_t pid)
{
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	uint64_t cursor = 0;
	int err;

	err = procmap_open_pid(pid, NULL, &procmap);
	if (err)
		return err;
	/* Names are not a filter of the kernel's: those that are left out are faster. */
	while (!(err = procmap_find_name(procmap, "OTEL_CTX", PROCMAP_EXACT, &cursor,
					 PROCMAP_READABLE, &mapping)))
		printf("%d %" PRIx64 "-%" PRIx64 " %s\n", (int)pid, mapping->start,
		       mapping->end, mapping->name);
	procmap_close(procmap);
	return err == -ENOENT ? 0 : err;
}

int main(void)
{
	glob_t processes;
	int unseen = 0, status = 0;
	size_t i;

	if (glob("/proc/[0-9]*", GLOB_NOSORT, NULL, &processes)) {
		fprintf(stderr, "/proc has no processes\n");
		return 1;
	}
	for (i = 0; i < processes.gl_pathc; i++) {
		const pid_t pid = atoi(processes.gl_pathv[i] + strlen("/proc/"));
		const int err = print_context(pid);

		if (err == -EACCES || err == -EPERM) {
			unseen++;
		} else if (err && err != -ESRCH && err != -ESTALE) {
			/* Not one that exits, executes a program, or is the kernel's. */
			fprintf(stderr, "%d: %s\n", (int)pid, strerror(-err));
			status = 1;
		}
	}
	if (unseen)
		fprintf(stderr, "no permission to see %d of the processes\n", unseen);
	globfree(&processes);
	return status;
}
