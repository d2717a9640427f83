// SPDX-License-Identifier: GPL-2.0
/*
 * Lookups, walks and resolved addresses by the ioctls and by the text: all must return what
 * sscanf(3) finds in the text of the same process, until that executes another program or
 * exits.
 */
#include <linux/sched.h>
#include <sched.h>
#include <sys/resource.h>

#include "kselftest_harness.h"
#include "scene.h"

/* By default, what no query is needed for is read from the text. */
TEST_F(scene, walk_is_by_the_method_of_the_handle)
{
	const bool is_any = variant->method == PROCMAP_ANY_METHOD;
	const int by = expected_method(variant->method);
	const int method = is_any && by == PROCMAP_BY_QUERY ? PROCMAP_BY_TEXT : by;
	static const unsigned int others[] = { PROCMAP_EXECUTABLE, PROCMAP_WANT_PAGE_SIZE };
	size_t i;
	const struct procmap_mapping *found;
	uint64_t cursor = 0;

	/* It may try whether there is a scan. */
	EXPECT_EQ(by, procmap_get_method(self->procmap));
	calls.queries = 0;
	calls.scans = 0;
	calls.preads = 0;
	while (!procmap_next(self->procmap, &cursor, 0, &found))
		;
	EXPECT_EQ(method == PROCMAP_BY_QUERY ? self->maps.nr + 1 : 0,
		  calls.queries);
	EXPECT_EQ(method == PROCMAP_BY_SCAN, !!calls.scans);
	EXPECT_EQ(method == PROCMAP_BY_TEXT, !!calls.preads);
	for (i = 0; i < 2; i++) {
		cursor = 0;
		calls.preads = 0;
		EXPECT_EQ(0, procmap_next(self->procmap, &cursor, others[i], &found));
		EXPECT_EQ(by == PROCMAP_BY_TEXT, !!calls.preads);
	}
}

TEST_F(scene, finds_and_resolves_what_the_text_says)
{
	const struct procmap_resolved *all, *few;
	const struct procmap_mapping *found;
	const struct maps_line *line;
	unsigned int flags;
	uint64_t *addrs;
	size_t nr, i;

	nr = make_addresses(&self->maps, &addrs);
	for (flags = 0; flags < 0x40; flags++) {
		for (i = 0; i < nr; i++) {
			line = expected_line(&self->maps, addrs[i], flags);
			ASSERT_EQ(line ? 0 : -ENOENT,
				  procmap_find(self->procmap, addrs[i], flags, &found));
			ASSERT_TRUE(!line || is_as_line(found, line));
		}
		if (flags & PROCMAP_COVERING_OR_NEXT)
			continue;
		ASSERT_EQ(0, procmap_resolve(self->procmap, addrs, nr, flags, &all));
		/* Few are sorted differently than many. */
		ASSERT_EQ(0, procmap_resolve(self->procmap, addrs, 20, flags, &few));
		ASSERT_EQ(nr, all->nr_addrs);
		ASSERT_EQ(20, few->nr_addrs);
		for (i = 0; i < nr; i++) {
			line = expected_line(&self->maps, addrs[i], flags);
			found = all->mappings[i];
			ASSERT_TRUE(line ? found && is_as_line(found, line) : !found);
			found = i < 20 ? few->mappings[i] : found;
			ASSERT_TRUE(line ? found && is_as_line(found, line) : !found);
		}
		procmap_free_resolved(all);
		procmap_free_resolved(few);
	}
	free(addrs);
}

TEST_F(scene, bad_arguments_are_refused)
{
	struct procmap *const procmap = self->procmap;
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	uint64_t cursor = 0;
	unsigned int bit;

	EXPECT_EQ(-EINVAL, procmap_find(NULL, 0, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find(procmap, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_next(NULL, &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_next(procmap, NULL, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_next(procmap, &cursor, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_resolve(NULL, &cursor, 1, 0, &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, NULL, 1, 0, &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 0, 0, &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 1, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_get_method(NULL));
	procmap_close(NULL);
	procmap_free_resolved(NULL);
	for (bit = 6; bit < 32; bit++) {
		if (bit >= 16 && bit <= 18)
			continue;
		EXPECT_EQ(-EINVAL, procmap_find(procmap, 0, 1u << bit, &found));
		EXPECT_EQ(-EINVAL, procmap_next(procmap, &cursor, 1u << bit,
						&found));
		EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 1,
						   1u << bit, &resolved));
	}
	EXPECT_EQ(-EINVAL, procmap_next(procmap, &cursor,
					PROCMAP_COVERING_OR_NEXT, &found));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 1,
					   PROCMAP_COVERING_OR_NEXT, &resolved));
}

/* Do all there is to do with a handle. */
static int use_all(pid_t pid, enum procmap_method method, const uint64_t *addrs,
		   size_t nr)
{
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	struct procmap_snapshot *snapshot;
	struct procmap *procmap = NULL;
	uint64_t cursor = 0;
	int err;

	err = procmap_open_pid(pid, BY(method), &procmap);
	if (err)
		return procmap ? 1 : err;
	err = procmap_find(procmap, addrs[0], PROCMAP_COVERING_OR_NEXT, &found);
	while (!err)
		err = procmap_next(procmap, &cursor, 0, &found);
	if (err == -ENOENT)
		err = procmap_resolve(procmap, addrs, nr, 0, &resolved);
	if (!err) {
		procmap_free_resolved(resolved);
		err = procmap_snapshot_take(procmap, 0, &snapshot);
	}
	if (!err)
		procmap_snapshot_free(snapshot);
	procmap_close(procmap);
	return err;
}

/* Without a descriptor, or memory, the error says so, and nothing stays open. */
TEST_F(scene, each_allocation_and_each_open_can_fail)
{
	const struct {
		long *left;
		int err;
		int nr_min;
	} limits[] = { { &calls.allocations, -ENOMEM, 7 }, { &calls.opens, -ENFILE, 2 } };
	const int before = count_fds();
	int err, failures;
	uint64_t *addrs;
	size_t nr, i;

	nr = make_addresses(&self->maps, &addrs);
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		failures = 0;
		do {
			*limits[i].left = failures;
			err = use_all(self->child.pid, variant->method, addrs, nr);
			*limits[i].left = -1;
			if (err)
				ASSERT_EQ(limits[i].err, err);
			ASSERT_EQ(before, count_fds());
		} while (err && ++failures < 100);
		EXPECT_EQ(0, err);
		EXPECT_LE(limits[i].nr_min, failures);
	}
	free(addrs);
}

/* Opened handles go on; the mapped file needs two descriptors more for a moment. */
TEST_F(scene, mapped_file_without_a_free_descriptor)
{
	const struct maps_line *const line = line_named(&self->maps, "plain");
	const bool by_file = !kernel_gives_ids(variant->method);
	const int before = count_fds();
	const struct procmap_mapping *found;
	int nr, fd;

	ASSERT_TRUE(!!line);
	for (nr = 0; nr < 2; nr++) {
		calls.opens = nr;
		ASSERT_EQ(0, procmap_find(self->procmap, line->start,
					  PROCMAP_WANT_BUILD_ID, &found));
		EXPECT_TRUE(is_as_line(found, line));
		EXPECT_EQ(by_file ? -ENFILE : 20, found->build_id_size);
		EXPECT_EQ(before, count_fds());
		calls.opens = nr;
		fd = open_file(self->procmap, found);
		calls.opens = -1;
		EXPECT_EQ(-ENFILE, fd);
		EXPECT_EQ(before, count_fds());
	}
	fd = open_file(self->procmap, found);
	EXPECT_LE(0, fd);
	close(fd);
}

/* An interrupted call is repeated, so that no function returns EINTR. */
TEST_F(scene, interrupted_calls_are_repeated)
{
	const struct maps_line *const line = &self->maps.lines[1];
	const struct procmap_mapping *found;
	uint64_t cursor = line->start;
	struct procmap *procmap;

	calls.interruptions = 3;
	ASSERT_EQ(0, procmap_find(self->procmap, line->start, 0, &found));
	EXPECT_EQ(0, calls.interruptions);
	EXPECT_TRUE(is_as_line(found, line));

	calls.interruptions = 1;
	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method), &procmap));
	EXPECT_EQ(0, calls.interruptions);
	calls.interruptions = 3;
	ASSERT_EQ(0, procmap_next(procmap, &cursor, 0, &found));
	EXPECT_EQ(line->end, cursor);
	calls.interruptions = 0;
	procmap_close(procmap);
}

/* The error of each function that looks a mapping up; 1 if they differ. */
static int error_of_all(struct procmap *procmap)
{
	const uint64_t addrs[] = { (uintptr_t)&calls, 4096, UINT64_MAX };
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	struct procmap_snapshot *snapshot;
	uint64_t cursor = 0;
	int err;

	err = procmap_find(procmap, addrs[0], 0, &found);
	if (procmap_find(procmap, UINT64_MAX, 0, &found) != err ||
	    procmap_next(procmap, &cursor, 0, &found) != err || cursor ||
	    procmap_next(procmap, &cursor, PROCMAP_READABLE, &found) != err ||
	    procmap_find(procmap, addrs[0], PROCMAP_WANT_PAGE_SIZE, &found) != err ||
	    procmap_next(procmap, &cursor, PROCMAP_WANT_PAGE_SIZE, &found) != err ||
	    procmap_next(procmap, &cursor, PROCMAP_WANT_BUILD_ID, &found) != err ||
	    procmap_find_name(procmap, "[heap]", PROCMAP_EXACT, &cursor, 0,
			      &found) != err ||
	    procmap_resolve(procmap, addrs, 3, 0, &resolved) != err ||
	    procmap_snapshot_take(procmap, 0, &snapshot) != err)
		return 1;
	return err;
}

/* Whatever a handle opens on first use is open by then, or is not. */
TEST_F(scene, another_program_is_not_mistaken_for_the_old_one)
{
	const struct procmap_mapping *found;
	struct procmap *unused;
	uint64_t cursor = 0;

	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method), &unused));
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
	EXPECT_TRUE(is_as_line(found, &self->maps.lines[0]));
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_PAGE_SIZE,
				  &found));
	EXPECT_TRUE(is_as_line(found, &self->maps.lines[1]));
	ASSERT_TRUE(tell(&self->child, EXECUTE_CAT));
	EXPECT_EQ(-ESTALE, error_of_all(self->procmap));
	EXPECT_EQ(-ESTALE, error_of_all(unused));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, error_of_all(self->procmap));
	EXPECT_EQ(-ESRCH, error_of_all(unused));
	procmap_close(unused);
}

/* Fork a child with this ID, which has nobody now, and waits to be killed. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};
	const pid_t child = syscall(SYS_clone3, &args, sizeof(args));

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return child;
}

/* The directory in /proc is that of the process, not of its ID. */
TEST_F(scene, another_process_with_the_same_id)
{
	const pid_t pid = self->child.pid;
	const struct procmap_mapping *found;

	stop_child(&self->child);
	self->child.pid = fork_as(pid);
	if (self->child.pid < 0)
		SKIP(return, "the ID of a process cannot be chosen");
	ASSERT_EQ(pid, self->child.pid);
	EXPECT_EQ(-ESRCH, procmap_find(self->procmap, (uintptr_t)&calls, 0, &found));
	EXPECT_EQ(-ESRCH, procmap_reopen(self->procmap));
}

static bool has_first_line(struct procmap *procmap, const struct maps *maps)
{
	const struct procmap_mapping *found;

	return !procmap_find(procmap, maps->lines[0].start, 0, &found) &&
	       is_as_line(found, &maps->lines[0]);
}

TEST_F(scene, that_cannot_be_reopened_stays_as_it_was)
{
	static const int expected[] = { -EMFILE, -ENFILE, -ENOMEM };
	struct rlimit limit, full;
	int i, err;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	full = limit;
	full.rlim_cur = 1;
	for (i = 0; i < 3; i++) {
		if (i == 0)
			ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &full));
		calls.opens = i == 1 ? 0 : -1;
		calls.allocations = i == 2 ? 0 : -1;
		err = procmap_reopen(self->procmap);
		calls.opens = -1;
		calls.allocations = -1;
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
		EXPECT_EQ(expected[i], err);
		EXPECT_TRUE(has_first_line(self->procmap, &self->maps));
	}
	EXPECT_EQ(-EINVAL, procmap_reopen(NULL));
}

/* Let the main thread exit, and read the text before; there is none after that. */
static bool end_main_thread(const struct child *child, struct maps *maps)
{
	struct maps none;

	if (!tell(child, EXIT_MAIN_THREAD) || !read_text(child->pid, maps) ||
	    !notify(child->control))
		return false;
	while (read_text(child->pid, &none) && none.nr)
		free_maps(&none);
	return true;
}

/*
 * Return whether a walk is over all lines. The files are still there, except those that the
 * text shows as deleted. Not all can be looked up: shared memory is mounted nowhere.
 */
static bool walks_over(struct procmap *procmap, const struct maps *maps)
{
	const struct procmap_mapping *found;
	struct procmap_mapping mapping;
	uint64_t cursor = 0;
	size_t i;

	for (i = 0; i < maps->nr; i++) {
		struct maps_line line = maps->lines[i];

		if (strstr(line.name, " (deleted)"))
			line.flags |= PROCMAP_DELETED;
		if (procmap_next(procmap, &cursor, PROCMAP_WANT_DELETED, &found))
			return false;
		mapping = *found;
		mapping.flags &= ~PROCMAP_UNVERIFIED;
		if (!is_as_line(&mapping, &line))
			return false;
	}
	return procmap_next(procmap, &cursor, PROCMAP_WANT_DELETED, &found) == -ENOENT;
}

/*
 * The first handle was opened before; the links in the directory of the main thread lead
 * nowhere by then. The others are on another thread from the beginning.
 */
TEST_F(scene, main_thread_has_exited)
{
	const int before = count_fds();
	const struct procmap_mapping *found;
	struct procmap *handles[3];
	struct maps maps;
	int i;

	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method), &handles[0]));
	ASSERT_TRUE(end_main_thread(&self->child, &maps));
	ASSERT_LT(3u, maps.nr);
	for (i = 1; i < 3; i++)
		ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method),
					      &handles[i]));
	EXPECT_EQ(0, procmap_reopen(handles[2]));
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(walks_over(handles[i], &maps));
	/* Only the process leads to it. */
	if (!geteuid()) {
		ASSERT_EQ(0, procmap_find(handles[1], line_named(&maps, "gone (deleted)")->start,
					  PROCMAP_WANT_BUILD_ID, &found));
		EXPECT_TRUE(has_test_id(found));
		i = open_file(handles[1], found);
		EXPECT_LE(0, i);
		close(i);
	}
	EXPECT_EQ(0, procmap_reopen(handles[0]));
	EXPECT_TRUE(walks_over(handles[0], &maps));
	stop_child(&self->child);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-ESRCH, error_of_all(handles[i]));
		EXPECT_EQ(-ESRCH, procmap_reopen(handles[i]));
		procmap_close(handles[i]);
	}
	EXPECT_EQ(before - 1, count_fds());
	free_maps(&maps);
}

/*
 * Walks over a process that changes: this one.
 */
FIXTURE(change)
{
	struct procmap *procmap;
	char *area;
};

FIXTURE_VARIANT(change)
{
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(change, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(change, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(change, text) { .method = PROCMAP_BY_TEXT };

#define AREA_SIZE	(3000 * PAGE)

FIXTURE_SETUP(change)
{
	int fd;

	if (missing_method(variant->method))
		SKIP_SETUP(missing_method(variant->method));
	ASSERT_EQ(0, procmap_open_self(BY(variant->method), &self->procmap));
	fd = memfd_create("area", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(fd, AREA_SIZE));
	self->area = mmap(NULL, AREA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_TRUE(self->area != MAP_FAILED);
	close(fd);
}

FIXTURE_TEARDOWN(change)
{
	procmap_close(self->procmap);
}

TEST_F(change, merged_below_the_cursor_is_cut_off_there)
{
	const struct procmap_mapping *found;
	uint64_t cursor;
	int i;

	ASSERT_TRUE(split(self->area, 3000));
	cursor = (uintptr_t)self->area;
	for (i = 0; i < 2001; i++)
		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
	ASSERT_EQ((uintptr_t)self->area + 2001 * PAGE, cursor);
	ASSERT_EQ(0, mprotect(self->area, AREA_SIZE, PROT_READ));

	/* By text and by scan, some mappings are older than the change. */
	do {
		const uint64_t at = cursor;

		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
		EXPECT_EQ(at, found->start);
		EXPECT_EQ(at - (uintptr_t)self->area, found->offset);
		i++;
	} while (found->end != (uintptr_t)self->area + AREA_SIZE && i < 3000);
	EXPECT_GT(variant->method == PROCMAP_BY_QUERY ? 2003 :
		  variant->method == PROCMAP_BY_TEXT ? 2200 : 2001 + 512, i);
}

/*
 * By scan, few ioctls are enough where most of the mappings are wanted; where few are, a scan
 * is tried only now and then. By query there is one for each mapping, however many addresses
 * it has, and by text none.
 */
TEST_F(change, resolving_takes_few_ioctls)
{
	static const size_t strides[] = { 1, 30 };
	const struct procmap_resolved *resolved;
	uint64_t addrs[6000];
	size_t i, j;

	ASSERT_TRUE(split(self->area, 3000));
	for (i = 0; i < 2; i++) {
		const size_t nr = 3000 / strides[i];

		for (j = 0; j < 2 * nr; j++)
			addrs[j] = (uintptr_t)self->area + j % nr * strides[i] * PAGE;
		calls.queries = 0;
		calls.scans = 0;
		ASSERT_EQ(0, procmap_resolve(self->procmap, addrs, 2 * nr, 0, &resolved));
		for (j = 0; j < nr; j++) {
			ASSERT_EQ(addrs[j], resolved->mappings[j]->start);
			ASSERT_EQ(resolved->mappings[j], resolved->mappings[nr + j]);
		}
		if (variant->method == PROCMAP_BY_SCAN) {
			EXPECT_GT(i ? nr + 1 : 100, calls.queries);
			EXPECT_GT(i ? 3 : 20, calls.scans);
		} else {
			EXPECT_EQ(variant->method == PROCMAP_BY_QUERY ? nr : 0, calls.queries);
			EXPECT_EQ(0, calls.scans);
		}
		procmap_free_resolved(resolved);
	}
}

struct long_path {
	char name[PATH_MAX + 1];
	char dir[64];
};

/* Map three pages of a new file with a path of @len bytes, below a new directory. */
static char *map_long_path(struct long_path *path, size_t len, int flags)
{
	char *map = MAP_FAILED;
	int fd;

	/* Root has a file system of its own there, as overlayfs has no build IDs. */
	mount_scratch();
	fd = make_long_path(path->dir, path->name, len);
	if (write_elf(fd, scene_id) && !ftruncate(fd, 3 * PAGE))
		map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, flags, fd, 0);
	close(fd);
	return map;
}

TEST_F(change, name_that_is_longer_than_a_path)
{
	const bool has_id = variant->method != PROCMAP_BY_TEXT || !geteuid();
	const struct procmap_mapping *found;
	struct long_path path;
	uint64_t cursor = 0;
	char *map;

	map = map_long_path(&path, PATH_MAX, MAP_PRIVATE);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map + PAGE, 0, &found));
	EXPECT_STREQ(path.name, found->name);
	EXPECT_EQ(PATH_MAX, found->name_len);
	EXPECT_EQ((uintptr_t)map, found->start);
	do {
		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_BUILD_ID,
					  &found));
	} while (found->start != (uintptr_t)map);
	EXPECT_STREQ(path.name, found->name);
	EXPECT_EQ(has_id, has_test_id(found));
	/* It does not end a walk. */
	EXPECT_EQ((uintptr_t)map + 3 * PAGE, cursor);
	EXPECT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
	EXPECT_TRUE(remove_directory(path.dir));
}

/* The text that has the name may be newer than what an ioctl has returned. */
TEST_F(change, name_that_is_longer_than_a_path_and_too_late)
{
	const struct procmap_mapping *found;
	struct long_path path;
	uint64_t cursor, at;
	char *map;
	int page;

	map = map_long_path(&path, PATH_MAX, MAP_PRIVATE);
	ASSERT_TRUE(map != MAP_FAILED);
	at = (uintptr_t)map + 2 * PAGE;
	/* First the page before is replaced, and then this one. */
	for (page = 1; page <= 2; page++) {
		calls.replaced = map + page * PAGE;
		if (variant->method == PROCMAP_BY_TEXT)
			replace_page();
		cursor = at;
		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_PAGE_SIZE |
					  PROCMAP_WANT_BUILD_ID, &found));
		EXPECT_EQ(NULL, calls.replaced);
		EXPECT_EQ(at, found->start);
		EXPECT_EQ(page == 1 ? PAGE : found->page_size, found->page_size);
		EXPECT_EQ(page == 1 ? 2 * PAGE : 0, found->offset);
		EXPECT_EQ(page == 1, !!found->inode);
		EXPECT_STREQ(page == 1 ? path.name : "", found->name);
	}
	EXPECT_EQ(0, found->build_id_size);
	EXPECT_TRUE(remove_directory(path.dir));
}

/* The longest that the ioctls return. */
TEST_F(change, long_name_gets_the_room_that_it_needs)
{
	const unsigned int flags = PROCMAP_EXECUTABLE | PROCMAP_SHARED |
				   PROCMAP_FILE_BACKED;
	const struct procmap_mapping *found;
	uint64_t cursor = 0;
	struct long_path path;
	char *map;

	map = map_long_path(&path, PATH_MAX - 1, MAP_SHARED);
	ASSERT_TRUE(map != MAP_FAILED);
	calls.queries = 0;
	calls.scans = 0;
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, flags, &found));
	EXPECT_EQ((uintptr_t)map, found->start);
	EXPECT_STREQ(path.name, found->name);
	EXPECT_EQ(variant->method == PROCMAP_BY_SCAN, calls.scans);
	EXPECT_EQ(variant->method == PROCMAP_BY_QUERY, calls.queries);
	EXPECT_EQ(-ENOENT, procmap_next(self->procmap, &cursor, flags, &found));
	EXPECT_TRUE(remove_directory(path.dir));
}

TEST_F(change, answer_that_is_none_is_refused)
{
	const struct procmap_mapping *found;
	uint64_t cursor = 0;

	if (variant->method == PROCMAP_BY_TEXT)
		return;
	calls.answered_end = 4096;
	EXPECT_EQ(-EPROTO, procmap_find(self->procmap, (uintptr_t)&calls, 0, &found));
	EXPECT_EQ(-EPROTO, procmap_next(self->procmap, &cursor, 0, &found));
	EXPECT_EQ(0, cursor);
	calls.answered_end = 0;

	/* It does not need more room than it was given. */
	calls.scan_errno = ENOSPC;
	if (variant->method == PROCMAP_BY_SCAN)
		EXPECT_EQ(-EPROTO, procmap_next(self->procmap, &cursor, 0, &found));
	calls.scan_errno = 0;
}

TEST_F(scene, opened_by_its_pidfd)
{
	const int pidfd = syscall(SYS_pidfd_open, self->child.pid, 0);
	const int before = count_fds();
	struct procmap *procmap;

	if (pidfd < 0)
		SKIP(return, "no pidfd");
	ASSERT_EQ(0, procmap_open_pidfd(pidfd, BY(variant->method), &procmap));
	EXPECT_TRUE(has_first_line(procmap, &self->maps));
	procmap_close(procmap);
	EXPECT_EQ(-EINVAL, procmap_open_pidfd(pidfd, NULL, NULL));
	EXPECT_EQ(-EBADF, procmap_open_pidfd(-1, NULL, &procmap));
	EXPECT_EQ(-EBADF, procmap_open_pidfd(self->child.control, NULL, &procmap));
	EXPECT_EQ(-ENOENT, procmap_open_pidfd(pidfd, &(const struct procmap_options) {
			.size = sizeof(struct procmap_options), .proc = "/none" }, &procmap));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_open_pidfd(pidfd, NULL, &procmap));
	EXPECT_EQ(before, count_fds() + 1);	/* that to control the child */
	close(pidfd);
}

static void *open_by_own_pidfd(void *pid)
{
	struct procmap *procmap;
	int pidfd, err;

	if (unshare(CLONE_FILES))
		return NULL;
	pidfd = syscall(SYS_pidfd_open, *(pid_t *)pid, 0);
	err = procmap_open_pidfd(pidfd, NULL, &procmap);
	close(pidfd);
	if (!err)
		procmap_close(procmap);
	return err ? NULL : pid;
}

TEST_F(scene, opened_by_a_pidfd_that_only_one_thread_has)
{
	const int pidfd = syscall(SYS_pidfd_open, self->child.pid, 0);
	pthread_t thread;
	void *result;

	if (pidfd < 0)
		SKIP(return, "no pidfd");
	close(pidfd);
	ASSERT_EQ(0, pthread_create(&thread, NULL, open_by_own_pidfd, &self->child.pid));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(&self->child.pid, result);
}

/* All that a handle by ID can. */
TEST_F(scene, opened_by_its_directory)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	char path[32];
	int dir, file;

	snprintf(path, sizeof(path), "/proc/%d", self->child.pid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT_EQ(0, procmap_open_fd(dir, BY(variant->method), &procmap));
	close(dir);
	EXPECT_TRUE(has_first_line(procmap, &self->maps));
	ASSERT_EQ(0, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT | PROCMAP_FILE_BACKED,
				  &found));
	file = open_file(procmap, found);
	EXPECT_LE(0, file);
	close(file);
	ASSERT_TRUE(tell(&self->child, EXECUTE_CAT));
	EXPECT_EQ(-ESTALE, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT, &found));
	EXPECT_EQ(0, procmap_reopen(procmap));
	procmap_close(procmap);
}

/* Mappings, and what the kernel says of their files. */
TEST_F(scene, opened_by_its_maps_file)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	char path[32];
	int maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", self->child.pid);
	maps = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, procmap_open_fd(maps, BY(variant->method), &procmap));
	close(maps);
	EXPECT_TRUE(has_first_line(procmap, &self->maps));
	ASSERT_EQ(0, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT | PROCMAP_FILE_BACKED |
				  PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_DELETED |
				  PROCMAP_WANT_PAGE_SIZE, &found));
	EXPECT_FALSE(found->flags & PROCMAP_DELETED);
	EXPECT_EQ(kernel_gives_ids(variant->method) ? 20 : -ENODEV, found->build_id_size);
	EXPECT_EQ(procmap_get_method(procmap) == PROCMAP_BY_TEXT ? 0 : PAGE, found->page_size);
	EXPECT_EQ(-ENODEV, open_file(procmap, found));
	EXPECT_EQ(-EINVAL, procmap_reopen(procmap));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT, &found));
	procmap_close(procmap);
}

TEST(what_is_no_maps_file_is_not_opened)
{
	const int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	const int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	const struct procmap_mapping *found;
	struct procmap *procmap;

	EXPECT_EQ(-EINVAL, procmap_open_fd(file, NULL, &procmap));
	EXPECT_EQ(-EBADF, procmap_open_fd(-1, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_fd(status, NULL, NULL));
	ASSERT_EQ(0, procmap_open_fd(status, BY(PROCMAP_BY_TEXT), &procmap));
	EXPECT_EQ(-EBADMSG, procmap_find(procmap, 0, PROCMAP_COVERING_OR_NEXT, &found));
	procmap_close(procmap);
	close(file);
	close(status);
}

TEST_HARNESS_MAIN
