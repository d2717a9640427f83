// SPDX-License-Identifier: GPL-2.0
/*
 * Measure what a hit of a uprobe costs. Print a line for each probed instruction: its
 * name, and the nanoseconds of a hit. The uprobes are events of tracefs that count their
 * hits, and record nothing.
 *
 * In a guest of "scripts/vm -i", a nanosecond is an instruction.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <err.h>
#include <stdlib.h>
#include <sys/mount.h>

#include "../test/x86/uprobes.h"
#include "../../bench/cost.h"

#define TRACING		"/sys/kernel/tracing"
#define EVENT		TRACING "/events/bench/hit/enable"

/* A function, and where in it the probed instruction is. */
static const struct probed {
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

static void write_to(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	close(fd);
}

static void call(void *function)
{
	((void (*)(void))function)();
}

static void *map_function(const struct probed *probed, int *fd)
{
	void *function;

	*fd = make_code(probed->code, probed->size, 0);
	function = map_code(NULL, *fd);
	if (function == MAP_FAILED)
		err(1, "no code");
	return function;
}

static void probe(const struct probed *probed, int fd)
{
	char text[100];

	snprintf(text, sizeof(text), "p:bench/hit /proc/self/fd/%d:%#x", fd, probed->at);
	write_to(TRACING "/uprobe_events", text);
	write_to(EVENT, "1");
}

static void unprobe(void)
{
	write_to(EVENT, "0");
	write_to(TRACING "/uprobe_events", "-:bench/hit");
}

static void measure_cost(const struct probed *probed)
{
	double without, with;
	void *function;
	int fd;

	function = map_function(probed, &fd);
	without = cost_of_run(call, function);
	probe(probed, fd);
	with = cost_of_run(call, function);
	unprobe();
	munmap(function, TEXT_SIZE);
	close(fd);
	printf("%s %.0f\n", probed->name, with - without);
}

int main(void)
{
	size_t i;

	if (access(TRACING "/uprobe_events", F_OK) &&
	    mount("tracefs", TRACING, "tracefs", 0, NULL))
		err(1, "no tracefs");

	write_to(TRACING "/tracing_on", "0");
	/* It has the scheduler's code patched, which QEMU before 8.1 may not survive. */
	write_to(TRACING "/options/record-cmd", "0");
	for (i = 0; i < NR_FUNCTIONS; i++)
		measure_cost(&functions[i]);
	return 0;
}
