// SPDX-License-Identifier: GPL-2.0
/*
 * Measure what a hit of a uprobe costs. Print a line for each probed instruction: its
 * name, and the nanoseconds of a hit. "-ret" has a return probe, too; "mov64" is of 64
 * threads in turn, on the slots of a process. The uprobes count their hits, and record
 * nothing.
 *
 * In a guest of "scripts/vm -i", a nanosecond is an instruction.
 *
 * With an argument, measure how long it takes to close that many uprobes.
 */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "../test/x86/uprobes.h"
#include "../../bench/cost.h"

#define NR_THREADS	64
#define NR_CALLS	500		/* of each thread */

/* Of arm64: push is stp x29, x30, [sp, #-16]!; mov is mov x0, x0. */
#define NOP	"\x1f\x20\x03\xd5"
#define BTI_C	"\x5f\x24\x03\xd5"
#define STP	"\xfd\x7b\xbf\xa9"
#define LDP	"\xfd\x7b\xc1\xa8"
#define MOV	"\xe0\x03\x00\xaa"
#define RET	"\xc0\x03\x5f\xd6"

/* Functions, and where in each the instruction is. */
static const struct function {
	const char *name;
	const char *code;
	int size;
	int at;
	int config;
} functions[] = {
#ifdef __aarch64__
	{ "nop", NOP RET, 8, 0, 0 },
	{ "bti", BTI_C RET, 8, 0, 0 },
	{ "push", STP LDP RET, 12, 0, 0 },
	{ "mov", MOV RET, 8, 0, 0 },
	{ "nop-ret", NOP RET, 8, 0, RETPROBE },
	{ "push-ret", STP LDP RET, 12, 0, RETPROBE },
	{ "mov-ret", MOV RET, 8, 0, RETPROBE },
#else
	{ "nop", "\x90\xc3", 2, 0, 0 },
	{ "push", "\x50\x59\xc3", 3, 0, 0 },
	{ "ret", "\x90\xc3", 2, 1, 0 },
	{ "mov", "\x89\xc0\xc3", 3, 0, 0 },
	{ "nop-ret", "\x90\xc3", 2, 0, RETPROBE },
	{ "push-ret", "\x50\x59\xc3", 3, 0, RETPROBE },
	{ "mov-ret", "\x89\xc0\xc3", 3, 0, RETPROBE },
#endif
};

static void *text;

static void call(void *unused)
{
	((void (*)(void))text)();
}

static int map_function(const struct function *function)
{
	const int fd = make_code(function->code, function->size, 0);

	text = map_code(NULL, fd);
	if (text == MAP_FAILED)
		err(1, "no code");
	return fd;
}

static int probe_function(const struct function *function, int fd)
{
	const int uprobe = open_uprobe(0, fd, function->at, function->config);

	if (uprobe < 0)
		err(1, "no uprobe");
	return uprobe;
}

static void measure_cost(const struct function *function)
{
	const int fd = map_function(function);
	double without, with;
	int uprobe;

	without = cost_of_run(call, NULL);
	uprobe = probe_function(function, fd);
	with = cost_of_run(call, NULL);
	close(uprobe);
	munmap(text, TEXT_SIZE);
	close(fd);
	printf("%s %.0f\n", function->name, with - without);
}

static void *be_thread(void *unused)
{
	int i;

	for (i = 0; i < NR_CALLS; i++) {
		call(NULL);
		sched_yield();
	}
	return NULL;
}

/* The nanoseconds that all threads take for a call. */
static double cost_of_threads(void)
{
	pthread_t threads[NR_THREADS];
	const uint64_t begin = now(CLOCK_PROCESS_CPUTIME_ID);
	int i;

	for (i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, be_thread, NULL))
			errx(1, "no thread");
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return (double)(now(CLOCK_PROCESS_CPUTIME_ID) - begin) / (NR_THREADS * NR_CALLS);
}

static void measure_threads(const struct function *function)
{
	const int fd = map_function(function);
	const double without = cost_of_threads();
	double with;

	probe_function(function, fd);
	with = cost_of_threads();
	printf("mov64 %.0f\n", with - without);
}

static void measure_close(int nr)
{
	const int fd = map_function(&functions[0]);
	int uprobes[1000], i;
	time_t begin;

	for (i = 0; i < nr && i < 1000; i++)
		uprobes[i] = probe_function(&functions[0], fd);
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
	for (i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		measure_cost(&functions[i]);
	measure_threads(&functions[3]);
	return 0;
}
