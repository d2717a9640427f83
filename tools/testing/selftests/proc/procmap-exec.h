/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A target that executes another program: the test program itself, which then
 * reports that it runs, and as whom, and waits.
 */
#ifndef PROCMAP_EXEC_H
#define PROCMAP_EXEC_H

#include "procmap-query.h"

/* The argument by which an executed program knows itself. */
#define BE_EXECUTED	"procmap-executed"

/*
 * This runs before main(). The executed program writes its user to its standard
 * output, and exits when its standard input ends.
 */
static void __attribute__((constructor)) be_executed(int argc, char **argv)
{
	const uid_t uid = geteuid();

	if (argc != 2 || strcmp(argv[1], BE_EXECUTED))
		return;
	if (write(STDOUT_FILENO, &uid, sizeof(uid)) == sizeof(uid))
		await(STDIN_FILENO);
	_exit(0);
}

/* Become another program, at the other end of @control. */
static int execute(const char *path, int control)
{
	dup2(control, STDIN_FILENO);
	dup2(control, STDOUT_FILENO);
	execl(path, "procmap", BE_EXECUTED, NULL);
	return 1;
}

/* Wait until the new program runs. Returns its effective uid, or -1. */
static uid_t hear_executed(int control)
{
	uid_t uid;

	if (read(control, &uid, sizeof(uid)) != sizeof(uid))
		return -1;
	return uid;
}

/* Is there a kernel thread that this process can see? kthreadd has pid 2. */
static inline bool sees_kthreadd(void)
{
	char name[16];

	return read_file("/proc/2/comm", name, sizeof(name)) &&
	       !strcmp(name, "kthreadd\n");
}

#endif /* PROCMAP_EXEC_H */
