// SPDX-License-Identifier: GPL-2.0
/*
 * Test the slots in which threads execute instructions out of line that have uprobes:
 * that a thread keeps the slots of the instructions that it hit last, and that whatever
 * happens to threads, uprobes and text, no thread executes another instruction than the
 * one that it hit, and none waits for ever.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "../kselftest_harness.h"
#include "uprobes.h"

/* More than the slots of a process, of which there are 31. */
#define NR_SLOTS	31

/* Of one thread. */
#define NR_KEPT		4

#define NR_THREADS	200

/*
 * A function of one argument, to which it adds a number: where its instruction is that
 * nobody emulates, and the number in it.
 */
#define ADD_AT		3
#define NUMBER_AT	6
#define ADD_FUNCTION	"\x48\x89\xf8"		/* mov %rdi,%rax */	\
			"\x48\x83\xc0\x00"	/* add $0,%rax */	\
			"\xc3"

/* Such functions are next to each other in the code. */
#define FUNCTION_SIZE	16
#define NR_FUNCTIONS	40

/* A function that reads the word that its argument points to. */
#define READ_AT		(NR_FUNCTIONS * FUNCTION_SIZE)
#define READ_SIZE	3
#define READ_FUNCTION	"\x48\x8b\x07"		/* mov (%rdi),%rax */	\
			"\xc3"

typedef long (*function)(long argument);

/* Of instructions to slots. */
static struct calls copies;

/* Code whose function i adds the number first + i. */
static int make_functions(int first)
{
	unsigned char code[READ_AT + sizeof(READ_FUNCTION)];
	int i;

	memset(code, HLT, sizeof(code));
	for (i = 0; i < NR_FUNCTIONS; i++) {
		memcpy(code + i * FUNCTION_SIZE, ADD_FUNCTION, sizeof(ADD_FUNCTION) - 1);
		code[i * FUNCTION_SIZE + NUMBER_AT] = first + i;
	}
	memcpy(code + READ_AT, READ_FUNCTION, sizeof(READ_FUNCTION) - 1);
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
	const char *const why = why_no_uprobes();

	/* Tests end without flushing what they print. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (why)
		ksft_exit_skip("%s\n", why);
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

TEST_F_TIMEOUT(slots, instructions_are_copied_once, 300)
{
	int64_t before = count_calls(&copies);
	int i, j;

	for (i = 0; i < 100; i++)
		for (j = 0; j < NR_KEPT; j++)
			EXPECT_EQ(i + j + 1, function_at(self->text, j)(i));
	EXPECT_EQ(NR_KEPT, count_calls(&copies) - before);
	EXPECT_EQ(100, count(self->probes[0]));

	/* One more takes the place of the oldest. */
	EXPECT_EQ(100 + NR_KEPT + 1, function_at(self->text, NR_KEPT)(100));
	before = count_calls(&copies);
	EXPECT_EQ(102, function_at(self->text, 1)(100));
	EXPECT_EQ(0, count_calls(&copies) - before);
	EXPECT_EQ(101, function_at(self->text, 0)(100));
	EXPECT_EQ(1, count_calls(&copies) - before);
}

/*
 * The next uprobe may well be where this one was in the kernel's memory. There is no other
 * one on this page, so that without one the text is that of the file.
 */
TEST_F_TIMEOUT(slots, probe_goes_and_text_changes, 300)
{
	const int fd = make_functions(1);
	const function add = map_code(NULL, fd);
	unsigned char number;
	int probe;

	ASSERT_TRUE((void *)add != MAP_FAILED);
	for (number = 1; number < 100; number++) {
		ASSERT_EQ(1, pwrite(fd, &number, 1, NUMBER_AT));
		EXPECT_EQ(1000 + number, add(1000));
		probe = probe_function(fd, 0);
		ASSERT_LE(0, probe);
		EXPECT_EQ(1000 + number, add(1000));
		EXPECT_EQ(1, count(probe));
		close(probe);
	}
	close(fd);
}

struct thread {
	pthread_t id;
	void *text;
	int first;	/* that it calls */
	int nr;		/* of them, in turn */
	long calls;
	bool failed;
};

/* Threads sleep at the end until all of them, and the test, are there. */
static pthread_barrier_t end;
static atomic_int nr_ready;

static void *be_caller(void *arg)
{
	struct thread *const thread = arg;
	long i;
	int j;

	for (i = 0; i < thread->calls && !thread->failed; i++)
		for (j = thread->first; j < thread->first + thread->nr; j++)
			if (function_at(thread->text, j)(i) != i + j + 1)
				thread->failed = true;
	nr_ready++;
	pthread_barrier_wait(&end);
	return NULL;
}

static void start_threads(struct __test_metadata *_metadata, struct thread *threads,
			  int nr)
{
	int i;

	pthread_barrier_init(&end, NULL, nr + 1);
	nr_ready = 0;
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pthread_create(&threads[i].id, NULL, be_caller, &threads[i]));
}

static void join_threads(struct __test_metadata *_metadata, struct thread *threads, int nr)
{
	int i;

	pthread_barrier_wait(&end);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, pthread_join(threads[i].id, NULL));
		EXPECT_FALSE(threads[i].failed);
	}
}

static void wait_until_ready(int nr)
{
	while (nr_ready < nr)
		usleep(1000);
}

TEST_F_TIMEOUT(slots, two_threads_have_one_probe, 300)
{
	const int64_t before = count_calls(&copies);
	struct thread threads[2];
	int i;

	for (i = 0; i < 2; i++)
		threads[i] = (struct thread) { .text = self->text, .nr = 1, .calls = 1000 };
	start_threads(_metadata, threads, 2);
	wait_until_ready(2);
	join_threads(_metadata, threads, 2);
	EXPECT_EQ(2, count_calls(&copies) - before);
}

TEST_F_TIMEOUT(slots, more_threads_than_slots, 300)
{
	struct thread threads[NR_THREADS];
	int i;

	for (i = 0; i < NR_THREADS; i++)
		threads[i] = (struct thread) {
			.text = self->text, .first = i % (NR_FUNCTIONS - 2),
			.nr = 1 + i % 3, .calls = 20,
		};
	start_threads(_metadata, threads, NR_THREADS);
	wait_until_ready(NR_THREADS);

	/* All slots are kept by threads that sleep; there is one for this, too. */
	EXPECT_EQ(101, function_at(self->text, 0)(100));
	EXPECT_EQ(102, function_at(self->text, 1)(100));
	join_threads(_metadata, threads, NR_THREADS);
}

struct reader {
	pthread_t id;
	function read;
	const char *from;
	long result;
};

/* Readers do not exit, which would give up their slots. */
static atomic_bool readers_stay;

static void *be_reader(void *arg)
{
	struct reader *const reader = arg;

	reader->result = reader->read((long)reader->from);
	while (readers_stay)
		usleep(1000);
	return NULL;
}

/* Start a reader; return when its instruction is in a slot. */
static void start_reader(struct __test_metadata *_metadata, struct reader *reader)
{
	const int64_t before = count_calls(&copies);

	ASSERT_EQ(0, pthread_create(&reader->id, NULL, be_reader, reader));
	while (count_calls(&copies) == before)
		usleep(1000);
}

/*
 * The thread that takes a slot from this one exits, and this one gets the slot back for
 * another instruction: the one that it had there is not in it any more.
 */
TEST_F_TIMEOUT(slots, slot_that_was_lost_comes_back, 300)
{
	const int last = NR_FUNCTIONS - 1;
	struct thread threads[NR_SLOTS - 1];
	struct reader taker = {
		.read = function_at(self->text, 0), .from = (char *)100,
	};
	int i;

	for (i = 0; i < NR_SLOTS - 1; i++)
		threads[i] = (struct thread) {
			.text = self->text, .first = i, .nr = 1, .calls = 1,
		};
	start_threads(_metadata, threads, NR_SLOTS - 1);
	wait_until_ready(NR_SLOTS - 1);
	start_reader(_metadata, &taker);
	ASSERT_EQ(0, pthread_join(taker.id, NULL));
	EXPECT_EQ(101, taker.result);
	EXPECT_EQ(100 + last, function_at(self->text, last - 1)(100));
	EXPECT_EQ(101 + last, function_at(self->text, last)(100));
	join_threads(_metadata, threads, NR_SLOTS - 1);
}

TEST_F_TIMEOUT(slots, children_have_their_own, 300)
{
	pid_t pid;
	int i;

	for (i = 0; i < 50; i++) {
		EXPECT_EQ(101, function_at(self->text, 0)(100));
		pid = fork();
		if (!pid)
			_exit(function_at(self->text, 0)(i) != i + 1 ||
			      function_at(self->text, 1)(i) != i + 2);
		EXPECT_EQ(102, function_at(self->text, 1)(100));
		EXPECT_TRUE(ends_well(pid));
	}
}

static int call_as_child(void *text)
{
	return function_at(text, 0)(100) != 101 || function_at(text, 1)(100) != 102;
}

static int exec_as_child(void *text)
{
	return call_as_child(text) || execl("/bin/true", "true", NULL);
}

/* Each has its slots until it exits or executes a program: nobody takes the parent's. */
TEST_F_TIMEOUT(slots, children_in_the_same_memory, 300)
{
	char *const stack = malloc(64 << 10);
	int64_t before;
	int i;

	ASSERT_FALSE(!stack);
	EXPECT_EQ(103, function_at(self->text, 2)(100));
	before = count_calls(&copies);
	for (i = 0; i < 5 * NR_SLOTS; i++) {
		EXPECT_EQ(103, function_at(self->text, 2)(100));
		EXPECT_TRUE(ends_well(clone(i % 5 ? call_as_child : exec_as_child,
					    stack + (64 << 10),
					    CLONE_VM | CLONE_VFORK | SIGCHLD,
					    self->text)));
	}
	EXPECT_EQ(2 * 5 * NR_SLOTS, count_calls(&copies) - before);
	free(stack);
}

static atomic_int nr_signals;

/* Memory whose pages are there when this process says so. */
struct late_memory {
	int fd;
	char *start;
};

static bool make_late_memory(struct late_memory *late, int flags)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register registration = {
		.range.len = TEXT_SIZE, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	late->fd = syscall(SYS_userfaultfd, O_CLOEXEC | flags);
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

/* Threads that are in a step for as long as the page that they read is not there. */
TEST_F_TIMEOUT(slots, all_are_in_use, 300)
{
	const int probe = open_uprobe(0, self->fd, READ_AT, 0);
	struct reader readers[NR_SLOTS];
	struct late_memory late;
	struct thread waiting[5];
	int i;

	ASSERT_LE(0, probe);
	ASSERT_TRUE(make_late_memory(&late, 0));
	readers_stay = true;
	for (i = 0; i < NR_SLOTS; i++) {
		readers[i] = (struct reader) {
			.read = (function)((uintptr_t)self->text + READ_AT),
			.from = late.start,
		};
		start_reader(_metadata, &readers[i]);
	}
	for (i = 0; i < 5; i++)
		waiting[i] = (struct thread) {
			.text = self->text, .first = i, .nr = 1, .calls = 10,
		};
	start_threads(_metadata, waiting, 5);
	usleep(100000);
	EXPECT_EQ(0, atomic_load(&nr_ready));

	ASSERT_TRUE(fill_late_memory(&late));
	wait_until_ready(5);
	readers_stay = false;
	for (i = 0; i < NR_SLOTS; i++) {
		ASSERT_EQ(0, pthread_join(readers[i].id, NULL));
		EXPECT_EQ(1234567, readers[i].result);
	}
	join_threads(_metadata, waiting, 5);
	close(probe);
	close(late.fd);
}

static uintptr_t signal_at;

static void note_place(int signal, siginfo_t *info, void *context)
{
	signal_at = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	nr_signals++;
}

/* The signal has to wait for its end, and comes behind the instruction in the text. */
TEST_F_TIMEOUT(slots, signal_comes_in_a_step, 300)
{
	const int probe = open_uprobe(0, self->fd, READ_AT, 0);
	const struct sigaction action = {
		.sa_sigaction = note_place, .sa_flags = SA_SIGINFO,
	};
	struct late_memory late;
	struct reader reader;

	ASSERT_LE(0, probe);
	ASSERT_TRUE(make_late_memory(&late, 0));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	reader = (struct reader) {
		.read = (function)((uintptr_t)self->text + READ_AT),
		.from = late.start,
	};
	start_reader(_metadata, &reader);
	usleep(20000);
	EXPECT_EQ(0, pthread_kill(reader.id, SIGUSR1));
	usleep(20000);
	EXPECT_EQ(0, atomic_load(&nr_signals));
	ASSERT_TRUE(fill_late_memory(&late));
	ASSERT_EQ(0, pthread_join(reader.id, NULL));
	EXPECT_EQ(1234567, reader.result);
	EXPECT_EQ(1, atomic_load(&nr_signals));
	EXPECT_EQ((uintptr_t)self->text + READ_AT + READ_SIZE, signal_at);
	close(probe);
	close(late.fd);
}

#define NR_MANY		4000

/* Each function of a large file adds another number, up to 99. */
TEST_F_TIMEOUT(slots, thousands_of_probes, 2400)
{
	const struct rlimit limit = { 2 * NR_MANY, 2 * NR_MANY };
	const int fd = memfd_create("uprobes", MFD_CLOEXEC);
	unsigned char code[FUNCTION_SIZE] = ADD_FUNCTION;
	static int probes[NR_MANY];
	void *text;
	int i, j;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < NR_MANY; i++) {
		code[NUMBER_AT] = i % 100;
		ASSERT_EQ(FUNCTION_SIZE, write(fd, code, FUNCTION_SIZE));
		probes[i] = probe_function(fd, i);
		ASSERT_LE(0, probes[i]);
	}
	text = mmap(NULL, NR_MANY * FUNCTION_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ASSERT_TRUE(text != MAP_FAILED);
	for (i = 0; i < 3; i++)
		for (j = 0; j < NR_MANY; j++)
			EXPECT_EQ(i + j % 100, function_at(text, j)(i));
	for (i = 0; i < NR_MANY; i++) {
		EXPECT_EQ(3, count(probes[i]));
		close(probes[i]);
	}
	close(fd);
}

/* A function that pushes a word to where its argument points, with a uprobe on the push. */
#define PUSH_AT		6
static const unsigned char push_function[] =
	"\x48\x89\xe0"			/* mov %rsp,%rax */
	"\x48\x89\xfc"			/* mov %rdi,%rsp */
	"\x57"				/* push %rdi */
	"\x48\x89\xc4"			/* mov %rax,%rsp */
	"\xc3";

/*
 * The kernel cannot emulate a push to memory that is late for user mode only. It is
 * executed in a slot then, and has to be restarted.
 */
TEST_F_TIMEOUT(slots, push_to_late_memory, 300)
{
	const int fd = make_code(push_function, sizeof(push_function), 0);
	void *const text = map_code(NULL, fd);
	const int probe = open_uprobe(0, fd, PUSH_AT, 0);
	struct late_memory late;
	struct reader pusher;
	uintptr_t pushed;

	ASSERT_TRUE(text != MAP_FAILED);
	ASSERT_LE(0, probe);
	ASSERT_TRUE(make_late_memory(&late, UFFD_USER_MODE_ONLY));
	pusher = (struct reader) { .read = text, .from = late.start + TEXT_SIZE };
	start_reader(_metadata, &pusher);
	ASSERT_TRUE(fill_late_memory(&late));
	ASSERT_EQ(0, pthread_join(pusher.id, NULL));
	memcpy(&pushed, late.start + TEXT_SIZE - sizeof(pushed), sizeof(pushed));
	EXPECT_EQ((uintptr_t)late.start + TEXT_SIZE, pushed);
	close(probe);
	close(late.fd);
	close(fd);
}

TEST_HARNESS_MAIN
