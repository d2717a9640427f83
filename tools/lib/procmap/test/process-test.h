/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: processes that execute another program, exit, or lose their
 * main thread.
 */
#include <linux/sched.h>

/* Execute cat(1), which then echoes what it gets from the parent. */
static int become_cat(int control, void *arg)
{
	(void)arg;
	notify(control);
	await(control);
	if (dup2(control, 0) < 0 || dup2(control, 1) < 0)
		return 1;
	execlp("cat", "cat", NULL);
	return 1;
}

static bool execute(const struct child *child)
{
	return notify(child->control) && notify(child->control) &&
	       await(child->control);
}

static bool read_maps_of(pid_t pid, struct maps *maps)
{
	const int fd = open_maps(pid);
	const int err = read_maps(fd, maps);

	close(fd);
	return !err;
}

/*
 * A process that executes another program when it is asked to.
 */
FIXTURE(process)
{
	struct child child;
	struct maps maps;
	struct procmap *procmap;
};

FIXTURE_VARIANT(process)
{
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(process, any) { .method = PROCMAP_ANY_METHOD };
FIXTURE_VARIANT_ADD(process, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(process, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(process, text) { .method = PROCMAP_BY_TEXT };

FIXTURE_SETUP(process)
{
	if (!has_method(variant->method))
		SKIP_SETUP(without_method(variant->method));
	ASSERT_TRUE(start_child(&self->child, become_cat, NULL));
	ASSERT_TRUE(await(self->child.control));
	ASSERT_TRUE(read_maps_of(self->child.pid, &self->maps));
	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method),
				      &self->procmap));
}

FIXTURE_TEARDOWN(process)
{
	procmap_close(self->procmap);
	stop_child(&self->child);
	free_maps(&self->maps);
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
TEST_F(process, another_program_is_not_mistaken_for_the_old_one)
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

TEST_F(process, reopened_after_exec)
{
	const int method = procmap_get_method(self->procmap);
	const int before = count_fds();
	struct maps maps;

	ASSERT_TRUE(execute(&self->child));
	ASSERT_TRUE(read_maps_of(self->child.pid, &maps));
	ASSERT_EQ(0, procmap_reopen(self->procmap));
	EXPECT_EQ(method, procmap_get_method(self->procmap));
	EXPECT_EQ(before, count_fds());
	EXPECT_TRUE(walks_over(self->procmap, 0, &maps, 0));
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
TEST_F(process, another_process_with_the_same_id)
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

TEST_F(process, that_cannot_be_reopened_stays_as_it_was)
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

static void *thread_that_stays(void *arg)
{
	const int control = (intptr_t)arg;

	notify(control);
	await(control);
	_exit(0);
}

/* Let the main thread exit when the parent says so; another one stays. */
static int lose_main_thread(int control, void *arg)
{
	pthread_t thread;

	(void)arg;
	await(control);
	if (pthread_create(&thread, NULL, thread_that_stays,
			   (void *)(intptr_t)control))
		return 1;
	syscall(SYS_exit, 0);
	return 1;
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

/*
 * A process whose main thread exits when it is asked to.
 */
FIXTURE(threads)
{
	struct child child;
};

FIXTURE_VARIANT(threads)
{
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(threads, any) { .method = PROCMAP_ANY_METHOD };
FIXTURE_VARIANT_ADD(threads, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(threads, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(threads, text) { .method = PROCMAP_BY_TEXT };

FIXTURE_SETUP(threads)
{
	if (!has_method(variant->method))
		SKIP_SETUP(without_method(variant->method));
	ASSERT_TRUE(start_child(&self->child, lose_main_thread, NULL));
}

FIXTURE_TEARDOWN(threads)
{
	stop_child(&self->child);
}

/* All files are still there, except shared memory, which the text shows as deleted. */
static bool is_as_line_and_there(const struct procmap_mapping *mapping,
				 const struct maps_line *line)
{
	struct maps_line copy = *line;

	if (strstr(line->name, " (deleted)"))
		copy.flags |= PROCMAP_DELETED;
	return is_as_line(mapping, &copy);
}

static bool let_main_thread_exit(const struct child *child)
{
	if (!notify(child->control) || !await(child->control))
		return false;
	while (!is_zombie(child->pid))
		usleep(1000);
	return true;
}

TEST_F(threads, handle_is_on_another_thread)
{
	const int before = count_fds();
	const struct procmap_mapping *found;
	struct procmap *handles[2];
	struct maps maps;
	size_t j;
	int i;

	ASSERT_TRUE(let_main_thread_exit(&self->child));
	ASSERT_TRUE(read_maps_of(other_thread(self->child.pid), &maps));
	ASSERT_LT(3u, maps.nr);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method),
					      &handles[i]));
	EXPECT_EQ(0, procmap_reopen(handles[1]));
	for (i = 0; i < 2; i++) {
		uint64_t cursor = 0;

		for (j = 0; j < maps.nr; j++) {
			ASSERT_EQ(0, procmap_next(handles[i], &cursor,
						  PROCMAP_WANT_DELETED, &found));
			EXPECT_TRUE(is_as_line_and_there(found, &maps.lines[j]));
		}
		EXPECT_EQ(-ENOENT, procmap_next(handles[i], &cursor, 0, &found));
	}
	stop_child(&self->child);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-ESRCH, error_of_all(handles[i]));
		EXPECT_EQ(-ESRCH, procmap_reopen(handles[i]));
		procmap_close(handles[i]);
	}
	EXPECT_EQ(before - 1, count_fds());
	free_maps(&maps);
}

/* The links in the directory of the main thread lead nowhere by then. */
TEST_F(threads, main_thread_exits_later)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	uint64_t cursor = 0;
	struct maps maps;
	size_t i;

	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method), &procmap));
	ASSERT_TRUE(let_main_thread_exit(&self->child));
	ASSERT_TRUE(read_maps_of(other_thread(self->child.pid), &maps));
	for (i = 0; i < maps.nr; i++) {
		ASSERT_EQ(0, procmap_next(procmap, &cursor, PROCMAP_WANT_DELETED,
					  &found));
		EXPECT_TRUE(is_as_line_and_there(found, &maps.lines[i]));
	}
	EXPECT_EQ(0, procmap_reopen(procmap));
	EXPECT_EQ(0, procmap_find(procmap, maps.lines[0].start, 0, &found));
	procmap_close(procmap);
	free_maps(&maps);
}
