// SPDX-License-Identifier: GPL-2.0
/*
 * A program without libc that finds its code, its stack, and no mapping at 0, and exits with 0.
 */
#include "procmap_self.h"

#if defined(__x86_64__)
#define EXIT	60
#elif defined(__aarch64__)
#define EXIT	93
#else
#define EXIT	1
#endif

static int is_at(uintptr_t addr, uint32_t flags, int is_file)
{
	struct procmap_self_mapping found;

	return !procmap_self(addr, &found) && found.start <= addr && found.end > addr &&
	       found.flags == flags && !found.inode == !is_file;
}

#if defined(__x86_64__) || defined(__i386__)
__attribute__((force_align_arg_pointer))
#endif
void _start(void);

void _start(void)
{
	struct procmap_self_mapping found;
	int failed = 0;

	if (!is_at((uintptr_t)_start, PROCMAP_SELF_READABLE | PROCMAP_SELF_EXECUTABLE, 1))
		failed = 1;
	if (!is_at((uintptr_t)&failed, PROCMAP_SELF_READABLE | PROCMAP_SELF_WRITABLE, 0))
		failed = 2;
	if (procmap_self(0, &found) != -2)
		failed = 3;
	procmap_self_raw_call(EXIT, failed, 0, 0);
}
