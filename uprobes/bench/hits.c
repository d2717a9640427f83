// SPDX-License-Identifier: GPL-2.0
/*
 * Measure what a hit of a uprobe costs. Print a line for each probed instruction: its
 * name, and the nanoseconds of a hit. The uprobes count their hits, and record nothing.
 *
 * In a guest of "scripts/vm -i", a nanosecond is an instruction.
 *
 * With an argument, measure how long it takes to close that many uprobes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <err.h>
#include <time.h>

#include "../test/x86/uprobes.h"
#include "../../bench/cost.h"

/* A function, and where in it the probed instruction is. */
static const struct insn {
	const char *name;
	const char *code;
	size_t size;
	unsigned int at;
} functions[] = {
	{ "nop", "\x90\xc3", 2, 0 },
	{ "push", "\x50\x59\xc3", 3, 0 },
	{ "nop5", "\x0f\x1f\x44\x00\x00\xc3", 6, 0 },
	{ "endbr64", "\xf3\x0f\x1e\xfa\xc3", 5, 0 },
	{ "ret", "\x90\xc3", 2, 1 },
	{ "mov", "\x89\xc0\xc3", 3, 0 },	/* out of line */
};

#define NR_FUNCTIONS	(sizeof(functions) / sizeof(*functions))

static void call(void *function)
{
	((void (*)(void))function)();
}

static void measure_cost(const struct insn *insn)
{
	const int fd = make_code(insn->code, insn->size, 0);
	void *function = map_code(NULL, fd);
	double without, with;
	int uprobe;

	if (function == MAP_FAILED)
		err(1, "no code");
	without = cost_of_run(call, function);
	uprobe = open_uprobe(0, fd, insn->at, 0);
	if (uprobe < 0)
		err(1, "no uprobe");
	with = cost_of_run(call, function);
	close(uprobe);
	munmap(function, TEXT_SIZE);
	close(fd);
	printf("%s %.0f\n", insn->name, with - without);
}

static void measure_close(int nr)
{
	const int fd = make_code("\x90", 1, 0);
	int uprobes[1000], i;
	time_t begin;

	for (i = 0; i < nr && i < 1000; i++) {
		uprobes[i] = open_uprobe(0, fd, 0, 0);
		if (uprobes[i] < 0)
			err(1, "no uprobe");
	}
	begin = time(NULL);
	while (i--)
		close(uprobes[i]);
	printf("%ld s\n", (long)(time(NULL) - begin));
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 1) {
		measure_close(atoi(argv[1]));
		return 0;
	}
	for (i = 0; i < NR_FUNCTIONS; i++)
		measure_cost(&functions[i]);
	return 0;
}
