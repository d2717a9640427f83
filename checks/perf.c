// SPDX-License-Identifier: GPL-2.0
/*
 * The process that scripts/perf records: it gets so many mappings, a tenth of
 * them of the files given, says so in a line, and waits.
 *
 *	target NR FILE...
 *
 * The others include each kind that perf or the text names specially.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096
#define HUGE	(2UL << 20)

static void map(size_t size, int prot, int flags, int fd)
{
	if (mmap(NULL, size, prot, flags, fd, 0) == MAP_FAILED)
		err(2, "mmap");
}

/* None of them has a build ID: not by every name could perf open the file. */
static void map_special(void)
{
	static const char *const paths[] = {
		"/dev/shm/with space", "/dev/shm/new\nline\n", "/dev/shm/gone",
		"/dev/hugepages/huge",
	};
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		const int fd = open(paths[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0 || ftruncate(fd, HUGE))
			err(2, "%s", paths[i]);
		map(HUGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd);
		map(HUGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd);
		map(HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
		close(fd);
	}
	unlink("/dev/shm/gone");
	map(PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map(PAGE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1);
	map(PAGE, PROT_EXEC, MAP_SHARED, memfd_create("a memfd", MFD_CLOEXEC));
}

/* As it is in large programs: a tenth of files, half of those code. */
static void map_many(int nr, char *const paths[], int nr_paths)
{
	int i;

	for (i = 0; i < nr; i++) {
		const char *const path = paths[i / 10 % nr_paths];
		int fd;

		if (i % 10) {
			map(PAGE, i % 2 ? PROT_READ : PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1);
			continue;
		}
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			err(2, "%s", path);
		map(PAGE, i / 10 % 2 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, fd);
		close(fd);
	}
}

int main(int argc, char *argv[])
{
	if (argc < 3)
		errx(2, "usage: target NR FILE...");
	map_special();
	map_many(atoi(argv[1]), argv + 2, argc - 2);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
