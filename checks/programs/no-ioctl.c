// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload: a kernel without PROCMAP_QUERY and PROCMAP_SCAN. See
 * perf-test.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/ioctl.h>

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (_IOC_TYPE(request) == 'f' &&
	    (_IOC_NR(request) == 17 || _IOC_NR(request) == 0xe0)) {
		errno = ENOTTY;
		return -1;
	}
	return syscall(SYS_ioctl, fd, request, arg);
}
