// SPDX-License-Identifier: GPL-2.0
/*
 * Test the slots in which threads execute instructions out of line that have uprobes:
 * that no thread executes another instruction than the one that it hit, that none waits
 * for ever for a slot, and what becomes of signals during a step.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "../kselftest_harness.h"
#include "uprobes.h"

/* More than the slots of a process, of which there are 31. */
#define NR_SLOTS	31
#define NR_THREADS	200

/*
 * A function of one argument, to which it adds a number: where its instruction is that
 * nobody emulates, and the number in it.
 */
#ifdef __x86_64__
#define ADD_AT		3
#define NUMBER_AT	6
#define ADD_FUNCTION	"\x48\x89\xf8"		/* mov %rdi,%rax */	\
			"\x48\x83\xc0\x00"	/* add $0,%rax */	\
			"\xc3"
#else
#define ADD_AT		4
#define NUMBER_AT	6
#define ADD_FUNCTION	"\x8b\x44\x24\x04"	/* mov 4(%esp),%eax */	\
			"\x83\xc0\x00"		/* add $0,%eax */	\
			"\xc3"
#endif

/* Such functions are next to each other in the code. */
#define FUNCTION_SIZE	16
#define NR_FUNCTIONS	40

/* A function that reads the word that its argument points to. */
#define READ_FUNCTION_AT (NR_FUNCTIONS * FUNCTION_SIZE)
#ifdef __x86_64__
#define READ_AT		READ_FUNCTION_AT
#define READ_SIZE	3
#define REG_IP		REG_RIP
#define READ_FUNCTION	"\x48\x8b\x07"		/* mov (%rdi),%rax */	\
			"\xc3"
#else
#define READ_AT		(READ_FUNCTION_AT + 4)
#define READ_SIZE	2
#define REG_IP		REG_EIP
#define READ_FUNCTION	"\x8b\x44\x24\x04"	/* mov 4(%esp),%eax */	\
			"\x8b\x00"		/* mov (%eax),%eax */	\
			"\xc3"
#endif

typedef long (*function)(long argument);

/* Of instructions to slots. */
static struct calls copies;

/* Code whose function i adds the number first + i. */
static int make_functions(int first)
{
	unsigned char code[READ_FUNCTION_AT + sizeof(READ_FUNCTION)];
	int i;

	memset(code, HLT, sizeof(code));
	for (i = 0; i < NR_FUNCTIONS; i++) {
		memcpy(code + i * FUNCTION_SIZE, ADD_FUNCTION, sizeof(ADD_FUNCTION) - 1);
		code[i * FUNCTION_SIZE + NUMBER_AT] = first + i;
	}
	memcpy(code + READ_FUNCTION_AT, READ_FUNCTION, sizeof(READ_FUNCTION) - 1);
	return make_code(code, sizeof(code), 0);
}

static function function_at(const void *text, int i)
{
	return (function)((uintptr_t)text + i * FUNCTION_SIZE);
}

static int probe_function(int fd, int i)
{
	return open_uprobe(0, fd, i * FUNCTION_SIZE + ADD_AT, 0);
}

static void __attribute__((constructor)) set_up(void)
{
	/* Tests end without flushing what they print. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (geteuid())
		ksft_exit_skip("only root has uprobes\n");
	if (probe_type("uprobe") < 0 || probe_type("kprobe") < 0)
		ksft_exit_skip("this kernel has no uprobes or no kprobes in perf\n");
	if (!open_calls(&copies, "arch_uprobe_copy_ixol"))
		ksft_exit_fail_msg("no kprobe\n");
}

FIXTURE(slots)
{
	int fd;
	void *text;
	int probes[NR_FUNCTIONS];
};

FIXTURE_SETUP(slots)
{
	int i;

	self->fd = make_functions(1);
	ASSERT_LE(0, self->fd);
	self->text = map_code(NULL, self->fd);
	ASSERT_TRUE(self->text != MAP_FAILED);
	for (i = 0; i < NR_FUNCTIONS; i++) {
		self->probes[i] = probe_function(self->fd, i);
		ASSERT_LE(0, self->probes[i]);
	}
	/* With the first hit comes the page of slots, and a copy to it. */
	ASSERT_EQ(NR_FUNCTIONS, function_at(self->text, NR_FUNCTIONS - 1)(0));
}

FIXTURE_TEARDOWN(slots)
{
	int i;

	for (i = 0; i < NR_FUNCTIONS; i++)
		close(self->probes[i]);
	close(self->fd);
}

TEST_F(slots, each_probe_has_its_instruction)
{
	int i, j;

	for (i = 0; i < 10; i++)
		for (j = 0; j < NR_FUNCTIONS; j++)
			EXPECT_EQ(i + j + 1, function_at(self->text, j)(i));
}

struct thread {
	pthread_t id;
	void *text;
	int first;	/* function that it calls */
	int nr;		/* of them, in turn */
	bool failed;
};

static atomic_int nr_done;

static void *be_caller(void *arg)
{
	struct thread *const thread = arg;
	long i;
	int j;

	for (i = 0; i < 20; i++)
		for (j = thread->first; j < thread->first + thread->nr; j++)
			if (function_at(thread->text, j)(i) != i + j + 1)
				thread->failed = true;
	nr_done++;
	return NULL;
}

static void start_threads(struct __test_metadata *_metadata, struct thread *threads,
			  int nr, void *text)
{
	pthread_attr_t attr;
	int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	nr_done = 0;
	for (i = 0; i < nr; i++) {
		threads[i] = (struct thread) {
			.text = text, .first = i % (NR_FUNCTIONS - 2), .nr = 1 + i % 3,
		};
		ASSERT_EQ(0, pthread_create(&threads[i].id, &attr, be_caller, &threads[i]));
	}
}

static void join_threads(struct __test_metadata *_metadata, struct thread *threads, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pthread_join(threads[i].id, NULL));
		EXPECT_FALSE(threads[i].failed);
	}
}

/* When all slots are in use, the end of a step wakes all that wait: each call is slow. */
TEST_F_TIMEOUT(slots, more_threads_than_slots, 300)
{
	struct thread threads[NR_THREADS];

	start_threads(_metadata, threads, NR_THREADS, self->text);
	join_threads(_metadata, threads, NR_THREADS);
}

static atomic_int nr_signals;

static void note_signal(int signal)
{
	nr_signals++;
}

/* A signal during a step has to wait for its end, no longer. */
TEST_F(slots, signals_come_during_steps)
{
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = {};
	const struct sigaction action = {
		.sa_handler = note_signal, .sa_flags = SA_RESTART,
	};
	long calls = 0;

	nr_signals = 0;
	ASSERT_EQ(0, sigaction(SIGVTALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_VIRTUAL, &often, NULL));
	for (; nr_signals < 100 && calls < 1000000; calls++)
		ASSERT_EQ(calls + 1, function_at(self->text, 0)(calls));
	ASSERT_EQ(0, setitimer(ITIMER_VIRTUAL, &never, NULL));
	EXPECT_LE(100, atomic_load(&nr_signals));
	EXPECT_EQ(calls, count(self->probes[0]));
}

/* Memory whose pages are there when this process says so. */
struct late_memory {
	int fd;
	char *start;
};

static bool make_late_memory(struct late_memory *late)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register registration = {
		.range.len = TEXT_SIZE, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	late->fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	late->start = mmap(NULL, TEXT_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	registration.range.start = (uintptr_t)late->start;
	return late->fd >= 0 && late->start != MAP_FAILED &&
	       !ioctl(late->fd, UFFDIO_API, &api) &&
	       !ioctl(late->fd, UFFDIO_REGISTER, &registration);
}

static bool fill_late_memory(const struct late_memory *late)
{
	static const long page[TEXT_SIZE / sizeof(long)] = { 1234567 };
	struct uffdio_copy copy = {
		.dst = (uintptr_t)late->start, .src = (uintptr_t)page, .len = sizeof(page),
	};

	return !ioctl(late->fd, UFFDIO_COPY, &copy);
}

struct reader {
	pthread_t id;
	function read;
	const char *from;
	long result;
};

static void *be_reader(void *arg)
{
	struct reader *const reader = arg;

	reader->result = reader->read((long)reader->from);
	return NULL;
}

static int read_as_child(void *reader)
{
	be_reader(reader);
	return 0;
}

/* Threads that are in a step for as long as the page that they read is not there. */
TEST_F_TIMEOUT(slots, all_are_in_use, 300)
{
	const int probe = open_uprobe(0, self->fd, READ_AT, 0);
	const int64_t copies_before = count_calls(&copies);
	struct reader readers[NR_SLOTS];
	struct late_memory late;
	struct thread waiting[5];
	int i;

	ASSERT_LE(0, probe);
	ASSERT_TRUE(make_late_memory(&late));
	for (i = 0; i < NR_SLOTS; i++) {
		readers[i] = (struct reader) {
			.read = (function)((uintptr_t)self->text + READ_FUNCTION_AT),
			.from = late.start,
		};
		ASSERT_EQ(0, pthread_create(&readers[i].id, NULL, be_reader, &readers[i]));
	}
	while (count_calls(&copies) - copies_before < NR_SLOTS)
		usleep(1000);

	start_threads(_metadata, waiting, 5, self->text);
	usleep(100000);
	EXPECT_EQ(0, atomic_load(&nr_done));

	ASSERT_TRUE(fill_late_memory(&late));
	for (i = 0; i < NR_SLOTS; i++) {
		ASSERT_EQ(0, pthread_join(readers[i].id, NULL));
		EXPECT_EQ(1234567, readers[i].result);
	}
	join_threads(_metadata, waiting, 5);
	close(probe);
	close(late.fd);
}

/* Start a child in the same memory that is in a step, as the page that it reads is late. */
static pid_t start_step(struct reader *reader)
{
	const int64_t before = count_calls(&copies);
	const pid_t pid = clone(read_as_child, malloc(64 << 10) + (64 << 10),
				CLONE_VM | SIGCHLD, reader);

	while (pid > 0 && count_calls(&copies) == before)
		usleep(1000);
	usleep(20000);
	return pid;
}

static uintptr_t signal_at;

static void note_place(int signal, siginfo_t *info, void *context)
{
	signal_at = ((ucontext_t *)context)->uc_mcontext.gregs[REG_IP];
	nr_signals++;
}

/* The signal has to wait for its end, and comes behind the instruction in the text. */
TEST_F(slots, signal_comes_in_a_step)
{
	const int probe = open_uprobe(0, self->fd, READ_AT, 0);
	const struct sigaction action = {
		.sa_sigaction = note_place, .sa_flags = SA_SIGINFO,
	};
	struct late_memory late;
	struct reader reader;
	pid_t pid;

	ASSERT_LE(0, probe);
	ASSERT_TRUE(make_late_memory(&late));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	reader = (struct reader) {
		.read = (function)((uintptr_t)self->text + READ_FUNCTION_AT),
		.from = late.start,
	};
	nr_signals = 0;
	pid = start_step(&reader);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, kill(pid, SIGUSR1));
	usleep(20000);
	EXPECT_EQ(0, atomic_load(&nr_signals));
	ASSERT_TRUE(fill_late_memory(&late));
	EXPECT_TRUE(ends_well(pid));
	EXPECT_EQ(1234567, reader.result);
	EXPECT_EQ(1, atomic_load(&nr_signals));
	EXPECT_EQ((uintptr_t)self->text + READ_AT + READ_SIZE, signal_at);
	close(probe);
	close(late.fd);
}

/* The step can take as long as it likes. */
TEST_F(slots, thread_is_killed_in_a_step)
{
	const int probe = open_uprobe(0, self->fd, READ_AT, 0);
	const struct sigaction action = { .sa_handler = note_signal };
	struct late_memory late;
	pid_t pid;
	int status;

	ASSERT_LE(0, probe);
	ASSERT_TRUE(make_late_memory(&late));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	nr_signals = 0;
	pid = start_step(&(struct reader) {
		.read = (function)((uintptr_t)self->text + READ_FUNCTION_AT),
		.from = late.start,
	});
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, kill(pid, SIGUSR1));
	usleep(20000);
	EXPECT_EQ(0, waitpid(pid, &status, WNOHANG));
	EXPECT_EQ(0, atomic_load(&nr_signals));
	EXPECT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(probe);
	close(late.fd);
}

TEST_HARNESS_MAIN
