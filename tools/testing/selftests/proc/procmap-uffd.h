/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages behind userfaultfd: a thread that touches a missing one waits until the test
 * gives it.
 */
#ifndef PROCMAP_UFFD_H
#define PROCMAP_UFFD_H

#include <linux/userfaultfd.h>
#include <sys/syscall.h>

#include "procmap-query.h"

/* Open userfaultfd. Returns why it cannot be used, or NULL. */
static inline const char *open_userfaultfd(int *uffd, uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };

	*uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (*uffd < 0)
		return "no userfaultfd, CONFIG_USERFAULTFD";
	if (ioctl(*uffd, UFFDIO_API, &api))
		return "userfaultfd lacks a feature";
	return NULL;
}

/* Watch pages. @mode: UFFDIO_REGISTER_MODE_*. */
static inline bool watch_pages(int uffd, void *pages, size_t size, uint64_t mode)
{
	struct uffdio_register arg = {
		.range.start = (uintptr_t)pages,
		.range.len = size,
		.mode = mode,
	};

	return !ioctl(uffd, UFFDIO_REGISTER, &arg);
}

/* Wait until a watched page is touched. Returns its address, or 0. */
static inline uint64_t wait_for_touch(int uffd)
{
	struct uffd_msg message;

	if (read(uffd, &message, sizeof(message)) != sizeof(message) ||
	    message.event != UFFD_EVENT_PAGEFAULT)
		return 0;
	return message.arg.pagefault.address & -page_size();
}

/* Give a missing page, with this content. */
static inline bool give_page(int uffd, void *page, const void *content)
{
	struct uffdio_copy arg = {
		.dst = (uintptr_t)page,
		.src = (uintptr_t)content,
		.len = page_size(),
	};

	return !ioctl(uffd, UFFDIO_COPY, &arg);
}

#endif /* PROCMAP_UFFD_H */
