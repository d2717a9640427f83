// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload into procfs_query: its ioctl() gives answers that no
 * kernel gives, or those of a kernel without the ioctls. $LIE selects which.
 */
#include <errno.h>
#include <linux/ioctl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* PROCMAP_SCAN, but for its size. */
#define IS_SCAN(request)	(((request) & 0xffff) == 0x66e0)

#define PAGE		4096ULL

/* The address in the argument of PROCMAP_QUERY, an array of 64-bit words. */
#define ADDR		2

static bool lie_is(const char *lie)
{
	return !strcmp(getenv("LIE"), lie);
}

int ioctl(int fd, unsigned long request, ...)
{
	static int calls;
	uint64_t *arg;
	va_list args;

	va_start(args, request);
	arg = va_arg(args, uint64_t *);
	va_end(args);

	if (IS_SCAN(request) || (lie_is("none") && _IOC_TYPE(request) == 'f')) {
		errno = ENOTTY;
		return -1;
	}
	if (lie_is("change") && !arg[ADDR])
		mmap(NULL, PAGE, calls++ % 2 ? PROT_READ : PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return syscall(SYS_ioctl, fd, request, arg);
}
