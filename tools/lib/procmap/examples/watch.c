// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Watch the executable mappings of processes, as the agent of a profiler does: each
 * second, print those that have appeared (+), vanished (-) or changed (!). Where the
 * kernel has PROCMAP_SCAN and numbers generations, a process that mapped nothing takes
 * one system call.
 *
 *	cc watch.c $(pkg-config --cflags --libs libprocmap)
 */
#include <errno.h>
#include <inttypes.h>
#include <procmap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX	200

/*
 * @older is brought up to date and compared with @newer; then they change places. They
 * differ only if something was mapped.
 */
struct watched {
	pid_t pid;
	struct procmap *procmap;
	struct procmap_snapshot *older, *newer;
};

static void forget(struct watched *watched)
{
	procmap_snapshot_free(watched->older);
	procmap_snapshot_free(watched->newer);
	procmap_close(watched->procmap);
	*watched = (struct watched) { .pid = watched->pid };
}

static int print(void *context, const struct procmap_mapping *was,
		 const struct procmap_mapping *is)
{
	const struct procmap_mapping *const mapping = is ? is : was;
	const struct watched *const watched = context;

	printf("%d %c %" PRIx64 "-%" PRIx64 " %s\n", (int)watched->pid,
	       !was ? '+' : !is ? '-' : '!', mapping->start, mapping->end, mapping->name);
	return 0;
}

/* Take what the process has now for the state to compare with. */
static int begin(struct watched *watched)
{
	int err;

	err = procmap_snapshot_take(watched->procmap, PROCMAP_EXECUTABLE,
				    &watched->older);
	if (err)
		return err;
	err = procmap_snapshot_take(watched->procmap, PROCMAP_EXECUTABLE,
				    &watched->newer);
	if (!err)
		printf("%d: %zu executable mappings\n", (int)watched->pid,
		       procmap_snapshot_count(watched->newer));
	return err;
}

static int look(struct watched *watched)
{
	struct procmap_snapshot *const latest = watched->older;
	int ret;

	ret = procmap_snapshot_refresh(latest, watched->procmap);
	if (ret == -ESTALE) {
		/* It has executed another program. */
		procmap_snapshot_free(watched->older);
		procmap_snapshot_free(watched->newer);
		watched->older = NULL;
		watched->newer = NULL;
		ret = procmap_reopen(watched->procmap);
		return ret ? ret : begin(watched);
	}
	if (ret <= 0)
		return ret;
	procmap_snapshot_compare(watched->newer, latest, print, watched);
	watched->older = watched->newer;
	watched->newer = latest;
	return 0;
}

/* Returns whether the process is watched further. */
static bool goes_on(struct watched *watched, int err)
{
	if (!err)
		return true;
	if (err == -ESRCH)
		printf("%d: exited\n", (int)watched->pid);
	else
		fprintf(stderr, "%d: %s\n", (int)watched->pid, strerror(-err));
	forget(watched);
	return false;
}

int main(int argc, char **argv)
{
	static struct watched processes[PROCESSES_MAX];
	const int nr = argc - 1;
	int i, err, left = 0;

	if (nr < 1 || nr > PROCESSES_MAX) {
		fprintf(stderr, "usage: watch PID... (at most %d)\n", PROCESSES_MAX);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < nr; i++) {
		struct watched *const watched = &processes[i];

		watched->pid = atoi(argv[i + 1]);
		err = procmap_open_pid(watched->pid, NULL, &watched->procmap);
		if (!err)
			err = begin(watched);
		left += goes_on(watched, err);
	}
	while (left) {
		sleep(1);
		for (i = 0; i < nr; i++)
			if (processes[i].procmap &&
			    !goes_on(&processes[i], look(&processes[i])))
				left--;
	}
	return 0;
}
