// SPDX-License-Identifier: GPL-2.0
/* A library to preload: for the program, the kernel has no ioctl of files in /proc. */
#include <errno.h>
#include <linux/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int ioctl(int fd, unsigned long request, void *arg)
{
	if (_IOC_TYPE(request) == 'f') {
		errno = ENOTTY;
		return -1;
	}
	return syscall(SYS_ioctl, fd, request, arg);
}
