/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection: which kinds of places can fail in a call. Which place of them
 * does is up to fail-nth, see arm() and disarm().
 */
#ifndef PROCMAP_FAIL_H
#define PROCMAP_FAIL_H

#include "procmap-query.h"

#define DEBUGFS	"/sys/kernel/debug/"

enum setting {
	SLAB_WAIT,
	SLAB_VERBOSE,
	SLAB_TASK,
	SLAB_PROBABILITY,
	SLAB_TIMES,
	PAGE_WAIT,
	PAGE_ORDER,
	PAGE_VERBOSE,
	PAGE_TASK,
	PAGE_PROBABILITY,
	PAGE_TIMES,
	USERCOPY_VERBOSE,
	NR_SETTINGS,
};

static const struct {
	const char *path;
	/* Lets every allocation and every copy fail, by fail-nth alone. */
	const char *value;
} settings[NR_SETTINGS] = {
	[SLAB_WAIT] = { DEBUGFS "failslab/ignore-gfp-wait", "N" },
	[SLAB_VERBOSE] = { DEBUGFS "failslab/verbose", "0" },
	[SLAB_TASK] = { DEBUGFS "failslab/task-filter", "Y" },
	[SLAB_PROBABILITY] = { DEBUGFS "failslab/probability", "0" },
	[SLAB_TIMES] = { DEBUGFS "failslab/times", "-1" },
	[PAGE_WAIT] = { DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N" },
	[PAGE_ORDER] = { DEBUGFS "fail_page_alloc/min-order", "0" },
	[PAGE_VERBOSE] = { DEBUGFS "fail_page_alloc/verbose", "0" },
	[PAGE_TASK] = { DEBUGFS "fail_page_alloc/task-filter", "Y" },
	[PAGE_PROBABILITY] = { DEBUGFS "fail_page_alloc/probability", "0" },
	[PAGE_TIMES] = { DEBUGFS "fail_page_alloc/times", "-1" },
	[USERCOPY_VERBOSE] = { DEBUGFS "fail_usercopy/verbose", "0" },
};

/*
 * Open a program whose pages can be evicted, and are read again. Returns NULL, or why
 * there is none.
 */
static inline const char *open_evictable(int *fd)
{
	static const char path[] = SCRATCH_EXT4 "/sh";
	const char *const missing = mount_scratch_ext4();

	if (missing)
		return missing;
	if (system("cp -L /bin/sh " SCRATCH_EXT4))
		return "cannot copy a program to the ext4";
	*fd = open(path, O_RDONLY);
	return fsync(*fd) ? "cannot write to the ext4" : NULL;
}

struct injection {
	int fail_nth;
	char saved[NR_SETTINGS][16];
};

static bool set(enum setting setting, const char *value)
{
	return write_file(settings[setting].path, value);
}

/* Returns NULL, or why no faults can be injected. */
static const char *open_injection(struct injection *injection)
{
	unsigned int i;

	injection->fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (injection->fail_nth < 0)
		return "needs root and CONFIG_FAULT_INJECTION";
	for (i = 0; i < NR_SETTINGS; i++)
		if (!read_file(settings[i].path, injection->saved[i],
			       sizeof(injection->saved[i])))
			return "needs debugfs with failslab, fail_page_alloc and fail_usercopy";
	return NULL;
}

static bool let_everything_fail(void)
{
	unsigned int i;

	for (i = 0; i < NR_SETTINGS; i++)
		if (!set(i, settings[i].value))
			return false;
	return true;
}

/* A slab that is used up takes its pages without waiting: hence the order. */
static bool let_only_copies_fail(void)
{
	return set(SLAB_WAIT, "Y") && set(PAGE_ORDER, "10");
}

static bool restore_settings(const struct injection *injection)
{
	bool restored = true;
	unsigned int i;

	for (i = 0; i < NR_SETTINGS; i++)
		restored &= set(i, injection->saved[i]);
	return restored;
}

#endif /* PROCMAP_FAIL_H */
