// SPDX-License-Identifier: GPL-2.0
/*
 * Print what a lookup and fork(2) cost in a process whose anonymous mappings have names:
 *
 *	names MAPPINGS none|same|own
 *
 * All have no name, the same name, or one of their own (PR_SET_VMA_ANON_NAME).
 */
#include <err.h>
#include <fcntl.h>
#include <linux/procmap_query.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cost.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA		0x53564d41
#define PR_SET_VMA_ANON_NAME	0
#endif

#define PAGE	4096

/* The mappings have a page each, and a hole behind them. */
static char *area;
static size_t nr;

static void map_area(const char *names)
{
	char name[32], *page;
	size_t i;

	area = mmap(NULL, nr * 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		err(2, "mmap");
	for (i = 0; i < nr; i++) {
		page = area + i * 2 * PAGE;
		if (munmap(page + PAGE, PAGE))
			err(2, "munmap: vm.max_map_count has to be more than %zu", nr);
		snprintf(name, sizeof(name), *names == 'o' ? "heap-%zu" : "heap", i);
		if (*names != 'n' && prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, page, PAGE, name))
			err(2, "PR_SET_VMA_ANON_NAME");
	}
}

static void look_up(void *maps)
{
	static size_t run;
	char name[128];
	struct procmap_query query = {
		.size = sizeof(query),
		.query_addr = (uintptr_t)area + run++ * 7919 % nr * 2 * PAGE,
		.vma_name_size = sizeof(name),
		.vma_name_addr = (uintptr_t)name,
	};

	if (ioctl(*(int *)maps, PROCMAP_QUERY, &query))
		err(2, "PROCMAP_QUERY");
}

static void fork_and_wait(void *unused)
{
	const pid_t child = fork();

	(void)unused;
	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		err(2, "fork");
}

int main(int argc, char **argv)
{
	int maps = open("/proc/self/maps", O_RDONLY);

	if (argc != 3 || !strtoul(argv[1], NULL, 10) || !strchr("nso", *argv[2]))
		errx(2, "usage: names MAPPINGS none|same|own");
	nr = strtoul(argv[1], NULL, 10);
	map_area(argv[2]);
	printf("%s\tlookup %.0f\t", argv[2], cost_of_run(look_up, &maps));
	fflush(stdout);
	printf("fork %.0f a mapping\n", cost_of_run(fork_and_wait, NULL) / nr);
	return 0;
}
