// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Print the stacks of another process's threads: file, offset and build ID of each frame,
 * where - means that there is no build ID, and ? that it could not be read.
 * A symbol server, such as debuginfod, needs no more. libdw of elfutils unwinds the
 * stacks, while each thread is stopped for it.
 *
 *	cc backtrace.c $(pkg-config --cflags --libs libprocmap) -ldw
 */
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <procmap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX	256

struct stack {
	struct procmap *procmap;
	uint64_t addrs[FRAMES_MAX];
	size_t nr;
};

static int add_frame(Dwfl_Frame *frame, void *context)
{
	struct stack *const stack = context;
	bool is_interrupted;
	Dwarf_Addr pc;

	if (stack->nr == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &is_interrupted))
		return DWARF_CB_ABORT;
	/* A return address may be that of the next function; the call is before it. */
	stack->addrs[stack->nr++] = is_interrupted ? pc : pc - 1;
	return DWARF_CB_OK;
}

static void print_frame(const struct procmap_mapping *mapping, uint64_t addr)
{
	int i;

	if (!mapping) {
		printf("\t%#" PRIx64 "\n", addr);
		return;
	}
	printf("\t%s+%#" PRIx64 " ", mapping->name[0] ? mapping->name : "(no name)",
	       mapping->offset + (addr - mapping->start));
	for (i = 0; i < mapping->build_id_size; i++)
		printf("%02x", mapping->build_id[i]);
	if (mapping->build_id_size <= 0)
		putchar(mapping->build_id_size ? '?' : '-');
	putchar('\n');
}

static int print_thread(Dwfl_Thread *thread, void *context)
{
	const struct procmap_resolved *resolved;
	struct stack *const stack = context;
	size_t i;
	int err;

	stack->nr = 0;
	printf("thread %d\n", (int)dwfl_thread_tid(thread));
	/* An incomplete stack is better than none. */
	dwfl_thread_getframes(thread, add_frame, stack);
	if (!stack->nr) {
		fprintf(stderr, "unwinding: %s\n", dwfl_errmsg(-1));
		return DWARF_CB_OK;
	}
	err = procmap_resolve(stack->procmap, stack->addrs, stack->nr,
			      PROCMAP_WANT_BUILD_ID, &resolved);
	if (err) {
		fprintf(stderr, "mappings: %s\n", strerror(-err));
		return DWARF_CB_ABORT;
	}
	for (i = 0; i < stack->nr; i++)
		print_frame(resolved->mappings[i], stack->addrs[i]);
	procmap_free_resolved(resolved);
	return DWARF_CB_OK;
}

/* Prepare libdw for a process. The debug information is not needed for unwinding. */
static Dwfl *attach(pid_t pid)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	Dwfl *const dwfl = dwfl_begin(&callbacks);
	int err;

	err = dwfl_linux_proc_report(dwfl, pid);
	if (!err && dwfl_report_end(dwfl, NULL, NULL))
		err = -1;
	if (!err)
		err = dwfl_linux_proc_attach(dwfl, pid, false);
	if (!err)
		return dwfl;
	fprintf(stderr, "%d: %s\n", (int)pid,
		err > 0 ? strerror(err) : dwfl_errmsg(-1));
	dwfl_end(dwfl);
	return NULL;
}

int main(int argc, char **argv)
{
	const pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	struct stack stack;
	Dwfl *dwfl;
	int err;

	if (pid <= 0) {
		fprintf(stderr, "usage: backtrace PID\n");
		return 2;
	}
	err = procmap_open_pid(pid, NULL, &stack.procmap);
	if (err) {
		fprintf(stderr, "%d: %s\n", (int)pid, strerror(-err));
		return 1;
	}
	dwfl = attach(pid);
	err = !dwfl || dwfl_getthreads(dwfl, print_thread, &stack);
	dwfl_end(dwfl);
	procmap_close(stack.procmap);
	return err;
}
