// SPDX-License-Identifier: GPL-2.0
/*
 * The part of "bench/bench library" that needs elfutils: measure what libdwfl takes to
 * find the file at an address, as a table of libprocmap does. It runs in a guest as
 * bench/library.c does, and prints figures in the same form. Its works have the name of
 * the table's.
 *
 * Libdwfl takes no events: either the modules of the process are reported for each
 * address, or they are kept, and nobody knows what was mapped since.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <elfutils/libdwfl.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cost.h"
#include "target.h"

#define NR_ADDRS	10000

/**
 * struct bench - what is measured
 * @target: the process.
 * @addrs: addresses in its files.
 * @next: the index of the next address that is looked up in modules reported for it.
 * @kept: the modules as they were at first.
 */
struct bench {
	struct target target;
	uint64_t addrs[NR_ADDRS];
	size_t next;
	Dwfl *kept;
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
};

static Dwfl *report_modules(const struct bench *bench)
{
	Dwfl *const dwfl = dwfl_begin(&callbacks);

	if (!dwfl || dwfl_linux_proc_report(dwfl, bench->target.pid) ||
	    dwfl_report_end(dwfl, NULL, NULL))
		errx(2, "libdwfl does not report the modules: %s", dwfl_errmsg(-1));
	return dwfl;
}

static Dwfl_Module *module_at(Dwfl *dwfl, uint64_t addr)
{
	Dwfl_Module *const module = dwfl_addrmodule(dwfl, addr);

	if (!module)
		errx(2, "libdwfl has no module at %#llx", (unsigned long long)addr);
	return module;
}

static void report_and_find(void *context)
{
	struct bench *const bench = context;
	Dwfl *const dwfl = report_modules(bench);

	module_at(dwfl, bench->addrs[bench->next++ % NR_ADDRS]);
	dwfl_end(dwfl);
}

static void find_in_kept(void *context)
{
	struct bench *const bench = context;
	size_t i;

	for (i = 0; i < NR_ADDRS; i++)
		module_at(bench->kept, bench->addrs[i]);
}

/* Random, but the same in each run. */
static void choose_addrs(struct bench *bench)
{
	const struct target *const target = &bench->target;
	size_t nr = 0;

	srand48(1);
	while (nr < NR_ADDRS) {
		const struct procmap_mapping *const line =
			&target->lines[lrand48() % target->nr_vmas];

		if (is_file(line))
			bench->addrs[nr++] = line->start + lrand48() % PAGE;
	}
}

/* Are the names of the modules those of the text? */
static void check_names(const struct bench *bench)
{
	const char *name;
	size_t i;

	for (i = 0; i < NR_ADDRS; i++) {
		name = dwfl_module_info(module_at(bench->kept, bench->addrs[i]), NULL,
					NULL, NULL, NULL, NULL, NULL, NULL);
		if (strcmp(name, line_at(&bench->target, bench->addrs[i])->name))
			errx(2, "libdwfl does not agree with the text: %s", name);
	}
}

static void report(const char *kernel, const char *method, double cost)
{
	printf("{\"kernel\": \"%s\", \"method\": \"%s\", \"work\": \"find in a table\", \"vmas\": %d, \"instructions\": %.1f}\n",
	       kernel, method, TABLE_VMAS, cost);
}

int main(void)
{
	static struct bench bench;
	static struct utsname host;

	uname(&host);
	start_target(&bench.target, TABLE_VMAS);
	choose_addrs(&bench);
	bench.kept = report_modules(&bench);
	check_names(&bench);
	report(host.release, "libdwfl", cost_of_run(report_and_find, &bench));
	report(host.release, "kept", cost_of_run(find_in_kept, &bench) / NR_ADDRS);
	dwfl_end(bench.kept);
	stop_target(&bench.target);
	return 0;
}
