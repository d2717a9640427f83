// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload into procfs_query: its ioctl() gives answers that no
 * kernel gives. $LIE selects which.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* PROCMAP_SCAN, but for its size, and where its argument points to records. */
#define IS_SCAN(request)	(((request) & 0xffff) == 0x66e0)
#define SCAN_RECORDS		8

#define PAGE		4096ULL

/* The argument of PROCMAP_QUERY as an array of 64-bit words. */
enum {
	ADDR = 2,
	START,
	END,
	FLAGS,
	OFFSET = 7,
	INODE,
	DEV,
	SIZES,
	NAME,
	BUILD_ID
};

static bool lie_is(const char *lie)
{
	return !strcmp(getenv("LIE"), lie);
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* The first record of each call ends one page too late. */
static int scan(int fd, unsigned long request, uint64_t *arg)
{
	const int nr = syscall(SYS_ioctl, fd, request, arg);

	if (nr > 0)
		((uint64_t *)(uintptr_t)arg[SCAN_RECORDS])[1] += PAGE;
	return nr;
}

/* Every field differs from the truth. */
static void falsify(uint64_t *query)
{
	query[END] += PAGE;
	query[FLAGS] ^= 2;
	query[OFFSET] += PAGE;
	query[INODE]++;
	query[DEV] += 0x100000001;
	if (query[NAME])
		*(char *)(uintptr_t)query[NAME] = '?';
	if (query[BUILD_ID])
		*(char *)(uintptr_t)query[BUILD_ID] ^= 1;
}

/* A mapping at the end of the address space, where there is none. */
static int invent(uint64_t *query)
{
	if (query[ADDR] >= -PAGE)
		return fail(ENOENT);
	memset(query + START, 0, 8 * (SIZES + 1 - START));
	query[START] = -16 * PAGE;
	query[END] = -PAGE;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	static int calls;
	uint64_t *arg;
	va_list args;

	va_start(args, request);
	arg = va_arg(args, uint64_t *);
	va_end(args);

	if (lie_is("none"))
		return fail(ENOTTY);
	if (lie_is("refused"))
		return fail(EPERM);
	if (IS_SCAN(request))
		return lie_is("scan") ? scan(fd, request, arg) : fail(ENOTTY);
	if (lie_is("hole"))
		return fail(ENOENT);
	if (lie_is("gone") && calls++ > 3)
		return fail(ESRCH);
	if (lie_is("change") && !arg[ADDR])
		mmap(NULL, PAGE, calls++ % 2 ? PROT_READ : PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (syscall(SYS_ioctl, fd, request, arg))
		return errno == ENOENT && lie_is("extra") ? invent(arg) : -1;
	if (lie_is("fields"))
		falsify(arg);
	return 0;
}
