/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the tests: the text of maps and smaps, child processes, ELF files, and the
 * calls of the library, which come here first (the linker's --wrap), to be counted, or to
 * fail on demand.
 */
#ifndef PROCMAP_TEST_UTIL_H
#define PROCMAP_TEST_UTIL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/procmap_scan.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <procmap.h>

#define PAGE	((size_t)sysconf(_SC_PAGESIZE))
#define SLOW	300	/* seconds, in an emulated guest with KASAN */

#define NR_OF(array)	(sizeof(array) / sizeof(*(array)))

/* Options with a method. */
#define BY(by)	(&(const struct procmap_options) {		\
			.size = sizeof(struct procmap_options), .method = (by) })

/*
 * Skip a test in its setup. Older harnesses would go on with the test, so its process
 * exits, with the status that the harness knows as a skip: KSFT_SKIP since there is
 * XFAIL_ADD(), 255 before.
 */
#ifdef XFAIL_ADD
#define SKIP_STATUS	KSFT_SKIP
#else
#define SKIP_STATUS	255
#endif
#define SKIP_SETUP(reason)	SKIP(_exit(SKIP_STATUS), "%s", reason)

/* The exit status of a child for which it is the value of @expression; or -1. */
#define IN_CHILD(expression)						\
	({								\
		const pid_t child = fork();				\
		int status;						\
									\
		if (!child)						\
			_exit(expression);				\
		waitpid(child, &status, 0) == child && WIFEXITED(status) ?	\
			WEXITSTATUS(status) : -1;			\
	})

/**
 * struct calls - the library's calls
 * @queries, @scans, @preads, @allocated: how many there were.
 * @query_errno, @scan_errno: let each query or scan fail with it.
 * @answered_end: let each answer, or its first record, end there.
 * @replaced: replace this page once it has been in an answer.
 * @replacement: by one of this file, or if 0 by an anonymous one.
 * @hide_ids: let no record of a scan have its build ID.
 * @allocations: let all fail that come after so many; -1: none.
 * @opens: as @allocations, with ENFILE.
 * @interruptions: let so many calls fail with EINTR.
 */
extern _Thread_local struct calls {
	unsigned int queries;
	unsigned int scans;
	unsigned int preads;
	unsigned int allocated;
	int query_errno;
	int scan_errno;
	uint64_t answered_end;
	void *replaced;
	int replacement;
	bool hide_ids;
	long allocations;
	long opens;
	unsigned int interruptions;
} calls;

void replace_page(void);

/**
 * struct line - one line of the text
 * @start, @end, @offset, @inode, @dev_major, @dev_minor: its fields.
 * @flags: the permissions, PROCMAP_READABLE and so on.
 * @page_size: of smaps; 0 in maps.
 * @name: as printed; "" if there is none.
 */
struct line {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	unsigned int flags;
	uint64_t page_size;
	char *name;
};

/* All lines of a text but that of the vsyscall page, which is no mapping. */
struct maps {
	struct line *lines;
	size_t nr;
};

/* Read a file of the process, maps or smaps. */
bool read_maps(pid_t pid, const char *file, struct maps *maps);
void free_maps(struct maps *maps);

/* The line that covers an address, the first one whose name ends so, or NULL. */
const struct line *line_at(const struct maps *maps, uint64_t addr);
const struct line *line_named(const struct maps *maps, const char *end);

bool line_passes(const struct line *line, unsigned int flags);

/* The line that procmap_find() has to return for the address and flags, or NULL. */
const struct line *expected_line(const struct maps *maps, uint64_t addr, unsigned int flags);

bool is_as_line(const struct procmap_mapping *mapping, const struct line *line);

/* Walk to the mapping at @start. Returns the size of its build ID, or an error. */
int walk_to_build_id(struct procmap *procmap, const void *start, uint8_t id[20]);

/*
 * As many addresses as there are, in no order, some of them not mapped: 4 for each line,
 * and 2. Returns their number; the caller frees them.
 */
size_t make_addresses(const struct maps *maps, uint64_t **addrs);

/* Does the kernel have it? */
bool has_method(enum procmap_method method);

/* The reason to skip tests of a method. */
const char *without_method(enum procmap_method method);

/* The method that a handle is to use. */
int expected_method(enum procmap_method method);

/* The descriptor of the file of a mapping, which the caller closes; or an error. */
int open_file(struct procmap *procmap, const struct procmap_mapping *mapping);

/* A forked process, at the other end of a socket. */
struct child {
	pid_t pid;
	int control;
};

/* What a child is told to do; cat(1) then echoes what it gets. */
enum order {
	EXECUTE_CAT,
	EXIT_MAIN_THREAD,
	MAP,
	UNMAP,
};

/*
 * Start a child that obeys orders, with @root for its root if that is not NULL. Of the
 * pages at @area, or NULL, it maps and unmaps the second.
 */
bool start_child(struct child *child, void *area, const char *root);
bool tell(const struct child *child, enum order order);
bool execute(const struct child *child);
void stop_child(struct child *child);

int count_fds(void);

/* The build IDs of files that tests make. */
extern const uint8_t test_id[20];
extern const uint8_t other_id[20];

/* Fill an empty file with a 64-bit ELF file that has a build ID. */
bool write_elf(int fd, const uint8_t id[20]);

bool has_test_id(const struct procmap_mapping *mapping);

/*
 * Make a directory with @dir for its name. Files on overlayfs, as /tmp is in the guests, are
 * not known by their numbers.
 */
bool make_directory(char dir[32]);
bool remove_directory(const char *dir);

/* The path of a file. It stays while three others are asked for. */
const char *in(const char *dir, const char *name);

/* Map a page of a new file; the file is left open if @kept. */
void *map_file(const char *dir, const char *name, int *kept);

/* Make every second page of the area another mapping. */
bool split(char *area, int nr_pages);

/**
 * struct scene - a process that does what it is told, a copy of this one, with mappings of
 *	every kind
 * @dir: the directory of its files: plain, "new\nline", literal\012, "with blank " and gone.
 * @area: its area, as of start_child().
 * @child: the process.
 * @maps: its text.
 * @procmap: a handle.
 */
struct scene {
	char dir[32];
	char *area;
	struct child child;
	struct maps maps;
	struct procmap *procmap;
};

bool make_scene(struct scene *scene, enum procmap_method method);
bool end_scene(struct scene *scene);

#endif /* PROCMAP_TEST_UTIL_H */
