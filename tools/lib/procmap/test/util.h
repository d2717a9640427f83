/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the tests: the text of maps and smaps, child processes, ELF files, and the
 * calls of the library, which come here first (the linker's --wrap), to be counted, or to
 * fail on demand.
 */
#ifndef PROCMAP_TEST_UTIL_H
#define PROCMAP_TEST_UTIL_H

#include <linux/procmap_scan.h>
#include <procmap.h>
#include <procmap_util.h>

#define PAGE	((size_t)sysconf(_SC_PAGESIZE))

/* Seconds, in an emulated guest with KASAN or under valgrind. The harness has 30. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

/* Options with a method. */
#define BY(by)	(&(const struct procmap_options) {		\
			.size = sizeof(struct procmap_options), .method = (by) })

/**
 * struct calls - the library's calls
 * @queries, @scans, @preads, @allocated: how many there were.
 * @ids_asked: queries for a build ID.
 * @openat2_errno: let openat2(2) fail so: with EINVAL for RESOLVE_CACHED, as before Linux
 *	5.12, or always with ENOSYS, as before 5.6.
 * @query_errno, @scan_errno: let each query or scan fail with it.
 * @answered_end: let each answer, or its first record, end there.
 * @replaced: replace this page once it has been in an answer.
 * @replacement: by one of this file, or if 0 by an anonymous one.
 * @hide_ids: let no record of a scan have its build ID.
 * @hide_bound: let no scan say that the query is bounded.
 * @allocations: let all fail that come after so many; -1: none.
 * @opens: as @allocations, with ENFILE.
 * @interruptions: let so many calls fail with EINTR.
 * @emulated_maps: open this file where a path leads to a maps file.
 */
extern _Thread_local struct calls {
	unsigned int queries;
	unsigned int scans;
	unsigned int preads;
	unsigned int allocated;
	unsigned int ids_asked;
	int openat2_errno;
	int query_errno;
	int scan_errno;
	uint64_t answered_end;
	void *replaced;
	int replacement;
	bool hide_ids;
	bool hide_bound;
	long allocations;
	long opens;
	unsigned int interruptions;
	const char *emulated_maps;
} calls;

void replace_page(void);

/* Read the text of a process. */
bool read_text(pid_t pid, struct maps *maps);

/* The first line whose name ends so, or NULL. */
const struct maps_line *line_named(const struct maps *maps, const char *end);

bool line_passes(const struct maps_line *line, unsigned int flags);

/* The line that procmap_find() has to return for the address and flags, or NULL. */
const struct maps_line *expected_line(const struct maps *maps, uint64_t addr, unsigned int flags);

bool is_as_line(const struct procmap_mapping *mapping, const struct maps_line *line);

/* Walk to the mapping at @start. Returns the size of its build ID, or an error. */
int walk_to_build_id(struct procmap *procmap, const void *start, uint8_t id[20]);

/*
 * As many addresses as there are, in no order, some of them not mapped: 5 for each line,
 * and 2. Returns their number; the caller frees them.
 */
size_t make_addresses(const struct maps *maps, uint64_t **addrs);

/* The reason to skip tests of a method that the kernel does not have, or NULL. */
const char *missing_method(enum procmap_method method);

/* The method that a handle is to use. */
int expected_method(enum procmap_method method);

/* Return whether the library asks the kernel for build IDs: mainline's query is not asked. */
bool kernel_gives_ids(enum procmap_method method);

/* The descriptor of the file of a mapping, which the caller closes; or an error. */
int open_file(struct procmap *procmap, const struct procmap_mapping *mapping);

/*
 * For start_child(): notify, and do as told. cat(1) then echoes what it gets; the main thread
 * exits when it is notified once more, and another one stays.
 */
int obey(int control, void *arg);

enum order {
	EXECUTE_CAT,
	EXIT_MAIN_THREAD,
};

bool tell(const struct child *child, enum order order);

int count_fds(void);

/* Files that tests make have the build ID scene_id, or this one. */
extern const uint8_t other_id[20];

bool has_test_id(const struct procmap_mapping *mapping);

/*
 * Make a directory with @dir for its name. Files on overlayfs, as /tmp is in the guests, are
 * not known by their numbers.
 */
bool make_test_directory(char dir[32]);

/* The path of a file. It stays while three others are asked for. */
const char *in(const char *dir, const char *name);

/* Map a page of a new file; the file is left open if @kept. */
void *map_file(const char *dir, const char *name, int *kept);

/* Make every second page of the area another mapping. */
bool split(char *area, int nr_pages);

/* Map memory, and the files plain, "new\nline", literal\012, "with blank " and gone. */
bool make_mappings(const char *dir);

#endif /* PROCMAP_TEST_UTIL_H */
