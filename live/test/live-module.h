/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Load and unload a live module. Before this is included, LIVE_MODULE is its
 * name, LIVE_KO the name of the environment variable that has its path, and
 * LIVE_PARAMETERS what it is loaded with.
 */
#ifndef _LIVE_TEST_LIVE_MODULE_H
#define _LIVE_TEST_LIVE_MODULE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULE		"/sys/module/" LIVE_MODULE

/* Seconds: more than a busy machine needs to emulate what takes a few. */
#define TRANSITION_MAX	300

static int live_ko = -1;

static inline int load_module(int fd, const char *parameters)
{
	return syscall(SYS_finit_module, fd, parameters, 0) ? -errno : 0;
}

static inline int live_load(void)
{
	return load_module(live_ko, LIVE_PARAMETERS);
}

static inline int unload_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

static inline int live_unload(void)
{
	return unload_module(LIVE_MODULE);
}

static inline int read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	int number;

	if (!file)
		return -errno;
	if (fscanf(file, "%d", &number) != 1)
		number = -EBADMSG;
	fclose(file);
	return number;
}

static inline bool live_is_loaded(void)
{
	return !access(MODULE, F_OK);
}

/*
 * Try again while the module is in use: a process may be about to close a file.
 */
static inline int live_unload_and_wait(void)
{
	const time_t end = time(NULL) + TRANSITION_MAX;
	int err;

	while ((err = live_unload()) == -EAGAIN && time(NULL) < end)
		sched_yield();
	if (err == -EAGAIN)
		ksft_print_msg("the module is still in use after %d seconds\n",
			       TRANSITION_MAX);
	return err;
}

static inline int live_references(void)
{
	return read_number(MODULE "/refcnt");
}

static void __attribute__((constructor)) live_need_module(void)
{
	const char *path = getenv(LIVE_KO);

	if (geteuid())
		ksft_exit_skip("only root can load a module\n");
	if (!path)
		ksft_exit_skip(LIVE_KO " is not set\n");
	live_ko = open(path, O_RDONLY | O_CLOEXEC);
	if (live_ko < 0)
		ksft_exit_skip(LIVE_KO " cannot be read\n");
}

#endif /* _LIVE_TEST_LIVE_MODULE_H */
