/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: processes that execute another program, exit, or lose their
 * main thread.
 */
#include <linux/sched.h>

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
	ASSERT_TRUE(execute(&self->child));
	EXPECT_EQ(-ESTALE, error_of_all(self->procmap));
	EXPECT_EQ(-ESTALE, error_of_all(unused));
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, error_of_all(self->procmap));
	EXPECT_EQ(-ESRCH, error_of_all(unused));
	procmap_close(unused);
}

TEST_F(scene, reopened_after_exec)
{
	const int method = procmap_get_method(self->procmap);
	const int before = count_fds();
	struct maps maps;

	ASSERT_TRUE(execute(&self->child));
	ASSERT_TRUE(read_maps_of(self->child.pid, &maps));
	ASSERT_EQ(0, procmap_reopen(self->procmap));
	EXPECT_EQ(method, procmap_get_method(self->procmap));
	EXPECT_EQ(before, count_fds());
	EXPECT_TRUE(walks_over(self->procmap, 0, &maps, 0, 0));
	free_maps(&maps);

	/* This closes the socket to it. */
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_reopen(self->procmap));
	EXPECT_EQ(before - 1, count_fds());
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

TEST_F(scene, that_cannot_be_reopened_stays_as_it_was)
{
	const struct maps_line *const line = &self->maps.lines[0];
	const struct procmap_mapping *found;
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
		ASSERT_EQ(0, procmap_find(self->procmap, line->start, 0, &found));
		EXPECT_TRUE(is_as_line(found, line));
	}
	EXPECT_EQ(-EINVAL, procmap_reopen(NULL));
}

static bool is_zombie(pid_t pid)
{
	char path[32], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return read_file(path, text, sizeof(text)) &&
	       strstr(text, "\nState:\tZ");
}

/* The first thread of a process besides its main thread; 0 if there is none. */
static pid_t other_thread(pid_t pid)
{
	struct dirent *entry;
	pid_t tid = 0;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !tid && (entry = readdir(dir)))
		if (atoi(entry->d_name) != pid)
			tid = atoi(entry->d_name);
	closedir(dir);
	return tid;
}

static bool let_main_thread_exit(const struct child *child)
{
	if (!tell(child, EXIT_MAIN_THREAD) || !await(child->control))
		return false;
	while (!is_zombie(child->pid))
		usleep(1000);
	return true;
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
	ASSERT_TRUE(let_main_thread_exit(&self->child));
	ASSERT_TRUE(read_maps_of(other_thread(self->child.pid), &maps));
	ASSERT_LT(3u, maps.nr);
	for (i = 1; i < 3; i++)
		ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method),
					      &handles[i]));
	EXPECT_EQ(0, procmap_reopen(handles[2]));
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(walks_over(handles[i], 0, &maps, 0, PROCMAP_WANT_DELETED));
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
	EXPECT_TRUE(walks_over(handles[0], 0, &maps, 0, PROCMAP_WANT_DELETED));
	stop_child(&self->child);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-ESRCH, error_of_all(handles[i]));
		EXPECT_EQ(-ESRCH, procmap_reopen(handles[i]));
		procmap_close(handles[i]);
	}
	EXPECT_EQ(before - 1, count_fds());
	free_maps(&maps);
}
