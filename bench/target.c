// SPDX-License-Identifier: GPL-2.0
/*
 * Make the process whose mappings the benchmarks read, and read its text.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

/*
 * The libraries of the target: one for so many VMAs. Every fourth of them has a
 * .bss. Their paths have PATH_SHORT to PATH_LONG bytes, in PATH_LENGTHS steps.
 */
#define VMAS_PER_LIBRARY	50
#define LIBRARY_PAGES		4
#define HAS_BSS(nr)		((nr) % 4 == 3)
#define PATH_LENGTHS		10

/* Each library is the beginning of this program, and has its build ID. */
static unsigned char program[LIBRARY_PAGES * PAGE];

static void read_program(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, program, sizeof(program)) != sizeof(program))
		err(2, "/proc/self/exe");
	close(fd);
}

static size_t path_length(size_t nr)
{
	return PATH_SHORT + nr % PATH_LENGTHS * (PATH_LONG - PATH_SHORT) /
	       (PATH_LENGTHS - 1);
}

/*
 * Make the path of a library below /opt. Its directories have 15-byte names, and the number
 * of the library is at its end.
 */
static void make_path(char path[PATH_LONG + 1], size_t nr)
{
	const size_t len = path_length(nr);
	size_t at;

	memcpy(path, "/opt", 4);
	for (at = 4; at < len; at++)
		path[at] = at % 16 == 4 ? '/' : 'a' + at % 16;
	snprintf(path + len - 3, 4, "%03zu", nr % 1000);
}

bool is_library(const char *path)
{
	return !strncmp(path, "/opt/", 5);
}

static void make_directories(char *path)
{
	char *slash = path;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			err(2, "%s", path);
		*slash = '/';
	}
}

/* Make the file of a library, and return it opened as the dynamic linker does. */
static int make_library(size_t nr)
{
	char path[PATH_LONG + 1];
	int fd;

	make_path(path, nr);
	make_directories(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, program, sizeof(program)) != sizeof(program))
		err(2, "%s", path);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(2, "%s", path);
	return fd;
}

static char *map(void *at, size_t pages, int prot, int flags, int fd,
		 size_t page)
{
	char *const mapped = mmap(at, pages * PAGE, prot, MAP_PRIVATE | flags,
				  fd, page * PAGE);

	if (mapped == MAP_FAILED)
		err(2, "mmap: raise vm.max_map_count");
	return mapped;
}

/*
 * Map a library as the dynamic linker does: the whole at an address that the
 * kernel chooses, and over it one segment after the other. Returns the number of
 * VMAs.
 */
static size_t map_library(size_t nr)
{
	const bool has_bss = HAS_BSS(nr);
	const int fd = make_library(nr);
	char *const at = map(NULL, LIBRARY_PAGES + has_bss, PROT_READ, 0, fd, 0);

	map(at + PAGE, 1, PROT_READ | PROT_EXEC, MAP_FIXED, fd, 1);
	map(at + 2 * PAGE, 1, PROT_READ, MAP_FIXED, fd, 2);
	map(at + 3 * PAGE, 1, PROT_READ | PROT_WRITE, MAP_FIXED, fd, 3);
	if (has_bss)
		map(at + 4 * PAGE, 1, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_ANONYMOUS, -1, 0);
	close(fd);
	return LIBRARY_PAGES + has_bss;
}

size_t count_vmas(struct procmap *procmap, unsigned int filters)
{
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	size_t nr = 0;
	int error;

	while (!(error = procmap_next(procmap, &cursor, filters, &vma)))
		nr++;
	if (error != -ENOENT)
		errx(2, "cannot count mappings: %s", strerror(-error));
	return nr;
}

static size_t count_own_vmas(void)
{
	struct procmap *procmap;
	size_t nr;

	if (procmap_open_self(BY(PROCMAP_BY_TEXT), &procmap))
		errx(2, "no /proc/self/maps");
	nr = count_vmas(procmap, 0);
	procmap_close(procmap);
	return nr;
}

/*
 * Become a process of @nr mappings: libraries, and as many anonymous mappings
 * behind each. Every second of those is readable: neighbours with the same
 * permissions would be merged.
 */
static void become_target(size_t nr)
{
	const size_t nr_libraries = (nr - 1) / VMAS_PER_LIBRARY + 1;
	size_t used = count_own_vmas(), made = 0, i;

	for (i = 0; i < nr_libraries; i++)
		used += LIBRARY_PAGES + HAS_BSS(i);
	if (used > nr)
		errx(2, "program and libraries alone have %zu mappings", used);
	for (i = 0; i < nr_libraries; i++) {
		map_library(i);
		for (; made < (i + 1) * (nr - used) / nr_libraries; made++)
			map(NULL, 1, made % 2 ? PROT_READ : PROT_NONE,
			    MAP_ANONYMOUS, -1, 0);
	}
}

/* Start a process of @nr mappings, which stops when it has them. */
static pid_t start_process(size_t nr)
{
	const pid_t pid = fork();
	int status;

	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become_target(nr);
		for (;;)
			raise(SIGSTOP);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		errx(2, "cannot make a process with %zu mappings", nr);
	return pid;
}

static void read_text(struct target *target, size_t nr)
{
	struct procmap *procmap;

	if (procmap_open_pid(target->pid, BY(PROCMAP_BY_TEXT), &procmap) ||
	    procmap_snapshot_take(procmap, 0, &target->text))
		errx(2, "cannot read the text of %d", target->pid);
	if (procmap_snapshot_count(target->text) != nr)
		errx(2, "process %d does not have %zu mappings", target->pid, nr);
	procmap_close(procmap);
}

void start_target(struct target *target, size_t nr_vmas)
{
	read_program();
	target->pid = start_process(nr_vmas);
	read_text(target, nr_vmas);
}
