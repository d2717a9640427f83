// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload: for the program, the kernel has no ioctl of files in /proc. With
 * QUERIES in the environment it has them, but a query for a build ID ends the program.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../include/uapi/linux/procmap_query.h"

int ioctl(int fd, unsigned long request, void *arg)
{
	const struct procmap_query *const query = arg;

	if (_IOC_TYPE(request) == 'f' && !getenv("QUERIES")) {
		errno = ENOTTY;
		return -1;
	}
	if (request == PROCMAP_QUERY && query->build_id_size)
		abort();
	return syscall(SYS_ioctl, fd, request, arg);
}
