// SPDX-License-Identifier: GPL-2.0
/*
 * <procmap_self.h>: its answers are those of the text of this process, by the query and by the
 * text, whatever changes meanwhile, and in a signal handler with little stack.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "kselftest_harness.h"
#include "procmap_self.h"
#include "util.h"

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE	1
#endif

#define LOAD_NR		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(action)	BPF_STMT(BPF_RET | BPF_K, (action))
#define SKIP_UNLESS(nr)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1)

/* Let a system call of this thread fail from now on. The filter that came last decides. */
static bool refuse(int nr, int error)
{
	struct sock_filter filter[] = {
		LOAD_NR,
		SKIP_UNLESS(nr), RETURN(SECCOMP_RET_ERRNO | error),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Each variant refuses the system call of the other one. */
FIXTURE(method) {
};

FIXTURE_VARIANT(method) {
	enum procmap_method method;
	int refused, error;
};

FIXTURE_VARIANT_ADD(method, query) {
	.method = PROCMAP_BY_QUERY, .refused = SYS_read, .error = EIO,
};

FIXTURE_VARIANT_ADD(method, text) {
	.method = PROCMAP_BY_TEXT, .refused = SYS_ioctl, .error = ENOTTY,
};

FIXTURE_SETUP(method)
{
	const char *const missing = missing_method(variant->method);

	if (missing)
		SKIP_SETUP(missing);
}

FIXTURE_TEARDOWN(method)
{
}

static bool is_as_text(int err, const struct procmap_self_mapping *found,
		       const struct maps_line *line)
{
	if (!line)
		return err == -ENOENT;
	return !err && found->start == line->start && found->end == line->end &&
	       found->flags == line->flags && found->offset == line->offset &&
	       found->inode == line->inode && found->dev_major == line->dev_major &&
	       found->dev_minor == line->dev_minor;
}

TEST_F(method, every_address_has_what_the_text_says)
{
	static char path[PATH_MAX];
	struct procmap_self_mapping found;
	char dir[32], long_dir[64];
	struct maps maps;
	uint64_t *addrs;
	size_t nr, i;
	void *map;
	int fd;

	ASSERT_TRUE(make_test_directory(dir));
	ASSERT_TRUE(make_mappings(dir));
	fd = make_long_path(long_dir, path, PATH_MAX - 1);
	ASSERT_EQ(0, ftruncate(fd, PAGE));
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	close(fd);
	ASSERT_TRUE(remove_directory(long_dir));
	ASSERT_TRUE(remove_directory(dir));
	/* The first time, memory is allocated. */
	ASSERT_TRUE(read_text(0, &maps));
	free_maps(&maps);
	ASSERT_TRUE(read_text(0, &maps));
	ASSERT_LT(PATH_MAX, strlen(line_at(&maps, (uintptr_t)map)->name));
	nr = make_addresses(&maps, &addrs);
	ASSERT_TRUE(refuse(variant->refused, variant->error));
	for (i = 0; i < nr; i++) {
		const uintptr_t addr = addrs[i];
		const int err = procmap_self(addr, &found);

		EXPECT_TRUE(is_as_text(err, &found, line_at(&maps, addr)))
			TH_LOG("%#lx: %d", (unsigned long)addr, err);
	}
	free(addrs);
	free_maps(&maps);
	/* The vsyscall page. */
	EXPECT_EQ(-ENOENT, procmap_self((uintptr_t)0xffffffffff600000, &found));
}

static struct procmap_self_mapping in_handler;
static int result_in_handler;

static void look_up(int signal)
{
	(void)signal;
	result_in_handler = procmap_self((uintptr_t)look_up, &in_handler);
}

/* The kernel's frame, 512 bytes for the header, and as many for the handler. */
#ifndef __clang__
#define SMALL_STACK	(MINSIGSTKSZ + 2 * 512)
#else
#define SMALL_STACK	(MINSIGSTKSZ + 4096)	/* with sanitizers */
#endif

TEST_F(method, works_in_a_handler_with_a_small_stack)
{
	const struct sigaction action = { .sa_handler = look_up, .sa_flags = SA_ONSTACK };
	char *const guard = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t stack = { .ss_sp = guard + PAGE, .ss_size = SMALL_STACK };
	const int before = count_fds();
	struct maps maps;

	ASSERT_EQ(0, mprotect(guard, PAGE, PROT_NONE));
	ASSERT_EQ(0, sigaltstack(&stack, NULL));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_TRUE(read_text(0, &maps));
	ASSERT_TRUE(refuse(variant->refused, variant->error));
	calls.allocations = 0;
	calls.allocated = 0;
	errno = 77;
	raise(SIGUSR1);
	EXPECT_EQ(77, errno);
	EXPECT_EQ(0, calls.allocated);
	calls.allocations = -1;
	EXPECT_TRUE(is_as_text(result_in_handler, &in_handler,
			       line_at(&maps, (uintptr_t)look_up)));
	EXPECT_EQ(before, count_fds());
	free_maps(&maps);
}

/* Once the main thread has no text. By pread(2): read(2) may be refused. */
static void *find_without_main_thread(void *unused)
{
	struct procmap_self_mapping found;
	char byte;
	int fd, err;

	(void)unused;
	do {
		fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
		err = pread(fd, &byte, 1, 0) == 1;
		close(fd);
	} while (err);
	err = procmap_self((uintptr_t)look_up, &found);
	_exit(err || found.start > (uintptr_t)look_up || found.end <= (uintptr_t)look_up);
}

TEST_F(method, works_after_the_main_thread_has_exited)
{
	pthread_t thread;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (refuse(variant->refused, variant->error) &&
		    !pthread_create(&thread, NULL, find_without_main_thread, NULL))
			syscall(SYS_exit, 0);
		_exit(2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* Pages that are one mapping, or one each. */
#define NR_PAGES	64

struct supervisor {
	int ready[2];		/* a pipe with the listener */
	char *area;
	size_t nr_changes;
	bool is_split;
};

/*
 * For each call of the other thread: let it fail with EINTR; the next time, let it go on, but
 * first split the mapping, or merge it.
 */
static void *interfere(void *arg)
{
	struct supervisor *const this = arg;
	struct seccomp_notif call = { 0 };
	bool interrupts = false;
	int listener;

	if (read(this->ready[0], &listener, sizeof(listener)) != sizeof(listener))
		return NULL;
	while (!ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
		struct seccomp_notif_resp answer = { .id = call.id };

		interrupts = !interrupts;
		if (interrupts) {
			answer.error = -EINTR;
		} else {
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
			this->is_split = !this->is_split;
			this->nr_changes++;
			if (!this->is_split)
				mprotect(this->area, NR_PAGES * PAGE, PROT_READ);
			else if (!split(this->area, NR_PAGES))
				return NULL;
		}
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer))
			return NULL;
		memset(&call, 0, sizeof(call));
	}
	return NULL;
}

static int supervise_calls(void)
{
	struct sock_filter filter[] = {
		LOAD_NR,
		SKIP_UNLESS(SYS_openat), RETURN(SECCOMP_RET_USER_NOTIF),
		SKIP_UNLESS(SYS_ioctl), RETURN(SECCOMP_RET_USER_NOTIF),
		SKIP_UNLESS(SYS_read), RETURN(SECCOMP_RET_USER_NOTIF),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       &program);
}

TEST_F(method, interrupted_while_mappings_change)
{
	struct supervisor supervisor = { 0 };
	struct procmap_self_mapping found;
	pthread_t thread;
	int listener;
	size_t i;

	supervisor.area = mmap(NULL, (NR_PAGES + 2) * PAGE, PROT_READ,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)supervisor.area);
	supervisor.area += PAGE;
	ASSERT_EQ(0, pipe(supervisor.ready));
	ASSERT_EQ(0, pthread_create(&thread, NULL, interfere, &supervisor));
	/* A gap on either side, where no stack is meanwhile. */
	ASSERT_EQ(0, munmap(supervisor.area - PAGE, PAGE));
	ASSERT_EQ(0, munmap(supervisor.area + NR_PAGES * PAGE, PAGE));
	ASSERT_TRUE(refuse(variant->refused, variant->error));
	listener = supervise_calls();
	ASSERT_LE(0, listener);
	ASSERT_EQ(sizeof(listener), write(supervisor.ready[1], &listener, sizeof(listener)));
	for (i = 0; i < NR_PAGES; i++) {
		const uintptr_t addr = (uintptr_t)supervisor.area + i * PAGE;

		EXPECT_EQ(0, procmap_self(addr, &found));
		EXPECT_LE(found.start, addr);
		EXPECT_GT(found.end, addr);
	}
	EXPECT_EQ(-ENOENT, procmap_self((uintptr_t)supervisor.area - 1, &found));
	EXPECT_EQ(-ENOENT, procmap_self((uintptr_t)supervisor.area + NR_PAGES * PAGE, &found));
	EXPECT_LE(2 * NR_PAGES, supervisor.nr_changes);
}

TEST(errors_are_those_of_open_and_read)
{
	const int before = count_fds();
	struct procmap_self_mapping found;

	ASSERT_TRUE(refuse(SYS_ioctl, EPERM));
	EXPECT_EQ(0, procmap_self((uintptr_t)look_up, &found));
	EXPECT_EQ(before, count_fds());
	ASSERT_TRUE(refuse(SYS_read, EIO));
	EXPECT_EQ(-EIO, procmap_self((uintptr_t)look_up, &found));
	ASSERT_TRUE(refuse(SYS_openat, EMFILE));
	EXPECT_EQ(-EMFILE, procmap_self((uintptr_t)look_up, &found));
	ASSERT_TRUE(refuse(SYS_openat, ENOENT));
	EXPECT_EQ(-ESRCH, procmap_self((uintptr_t)look_up, &found));
}

/* It is where this program is. */
TEST(program_without_libc)
{
	char path[PATH_MAX];
	ssize_t len;
	int status;
	pid_t pid;

	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	ASSERT_LT(0, len);
	path[len] = '\0';
	strcpy(strrchr(path, '/'), "/self-without-libc");
	pid = fork();
	if (!pid) {
		execl(path, path, NULL);
		_exit(100);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
