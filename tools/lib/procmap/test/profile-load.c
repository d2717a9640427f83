// SPDX-License-Identifier: GPL-2.0
/*
 * A load for a sampling profiler: it forks, executes itself, starts threads, and loads,
 * replaces and unloads libraries, and logs by itself what ran where, and when.
 *
 * Usage: profile-load LOG DIRECTORY ROUNDS MICROSECONDS [KIND [FIRST]]
 *
 * It waits for the end of its standard input, then plays so many rounds. In each, it
 * spins for so long, at least once. KIND is one of those below; without it, they take
 * turns. FIRST is the number of the first round.
 *
 * This file is also the source of the libraries, DIRECTORY/libspin1.so to libspin5.so,
 * with NUMBER defined. The flags -O1 -fno-inline -fno-optimize-sibling-calls make the
 * stacks what the log says.
 *
 * A line of the log has, separated by tabs: for how long it spun, in ns of the thread's
 * CPU time, and the functions, from main() or the first of the thread on. Code that is in
 * no file is in /tmp/perf-PID.map, and no function calls it.
 */
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* That of the program, which has these functions, too. */
#ifndef NUMBER
#define NUMBER		0
#endif

#define JOIN_(a, b)	a ## _ ## b
#define JOIN(a, b)	JOIN_(a, b)
#define STRING_(a)	#a
#define STRING(a)	STRING_(a)

#define FILL		JOIN(fill, NUMBER)
#define SPIN		JOIN(spin, NUMBER)
#define ENTRY		JOIN(entry, NUMBER)

typedef unsigned long spin_t(unsigned long x);
typedef uint64_t entry_t(spin_t *spin, uint64_t ns);

/* Other functions are at the same place in each library, and its size is another one. */
void FILL(void)
{
	__asm__ volatile(".skip 5000 * (1 + " STRING(NUMBER) ")");
}

/* Nothing but computation: some 100 us of it. */
unsigned long SPIN(unsigned long x)
{
	for (long i = 0; i < 100000; i++) {
		x = x * 1664525 + 1013904223;
		__asm__ volatile("" : "+r" (x));
	}
	return x;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

/* Returns for how long it spun. */
uint64_t ENTRY(spin_t *spin, uint64_t ns)
{
	const uint64_t start = now();
	unsigned long x = ns;
	uint64_t end;

	do {
		x = spin(x);
		end = now();
	} while (end - start < ns);
	return end - start;
}

#if !NUMBER

#define LIBRARIES	5
#define NR_KINDS	6
#define THREADS		2

/* More than the size of a function that spins. */
#define CODE_SIZE	256

/*
 * Strings are on the heap, as a sample has a part of the stack only. They stay there
 * until the process ends.
 */
#define format(...)							\
	({								\
		char *string;						\
									\
		if (asprintf(&string, __VA_ARGS__) < 0)			\
			err(1, "asprintf");				\
		string;							\
	})

static char **arguments;
static uint64_t spell_ns;
static int log_fd;

/* Write a whole line at once: others write to the file, too. */
static void log_spell(uint64_t ns, const char *chain)
{
	char *const line = format("%llu\t%s\n", (unsigned long long)ns, chain);

	if (write(log_fd, line, strlen(line)) != (ssize_t)strlen(line))
		err(1, "the log");
}

static int number_of(int round)
{
	return round % LIBRARIES + 1;
}

static char *path_of(int round)
{
	return format("%s/libspin%d.so", arguments[2], number_of(round));
}

/* The handle of a library, or one of its functions. */
static void *checked(void *found)
{
	if (!found)
		errx(1, "%s", dlerror());
	return found;
}

static void *load(const char *path)
{
	return checked(dlopen(path, RTLD_NOW | RTLD_LOCAL));
}

static void enter(void *library, int round, const char *caller)
{
	char *const leaf = format("spin_%d", number_of(round));
	char *const name = format("entry_%d", number_of(round));
	char *const chain = format("%s%s;%s;%s;%s", gettid() == getpid() ? "main;" : "",
				   caller, __func__, name, leaf);
	spin_t *const spin = checked(dlsym(library, leaf));
	entry_t *const entry = checked(dlsym(library, name));

	log_spell(entry(spin, spell_ns), chain);
}

/* A child that does not survive its parent. */
static pid_t start_child(void)
{
	const pid_t parent = getpid();
	const pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (!pid && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(1);
	return pid;
}

static void await(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "child %d failed", pid);
}

static void in_place(int round)
{
	char *const path = path_of(round);
	void *const library = load(path);

	enter(library, round, __func__);
	dlclose(library);
}

/* A child has the mappings of its parent, and one more. */
static void forked(int round)
{
	char *const path = path_of(round);
	void *const library = load(path);
	const pid_t pid = start_child();

	if (!pid) {
		enter(library, round, __func__);
		enter(load(path_of(round + 1)), round + 1, __func__);
		_exit(0);
	}
	await(pid);
	dlclose(library);
}

static void executed(int round)
{
	const pid_t pid = start_child();

	if (!pid) {
		execl("/proc/self/exe", arguments[0], arguments[1], arguments[2], "1",
		      arguments[4], "in_place", format("%d", round), NULL);
		err(1, "execl");
	}
	await(pid);
}

static void *in_thread(void *round)
{
	char *const path = path_of((intptr_t)round);
	void *const library = load(path);

	enter(library, (intptr_t)round, __func__);
	dlclose(library);
	return NULL;
}

static void threaded(int round)
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(threads + i, NULL, in_thread, (void *)(round + i)))
			errx(1, "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A new file takes the path. */
static void replace(const char *path, int round)
{
	char *const source = path_of(round);
	char *const draft = format("%s.new", path);
	const int in = open(source, O_RDONLY | O_CLOEXEC);
	const int out = open(draft, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	struct stat stat;

	if (in < 0 || out < 0 || fstat(in, &stat) ||
	    sendfile(out, in, NULL, stat.st_size) != stat.st_size || rename(draft, path))
		err(1, "%s", path);
	close(in);
	close(out);
}

/*
 * By the time that a library spins, another one has its path. What takes that in the end
 * may have the inode number of the first, which is free by then.
 */
static void replaced(int round)
{
	char *const path = format("%s/swapped%d.so", arguments[2], getpid());
	void *library;

	replace(path, round);
	library = load(path);
	replace(path, round + 1);
	enter(library, round, __func__);
	dlclose(library);
	replace(path, round + 2);
}

/* Code that is in no file, as a JIT compiler writes it. It stays where it is. */
static void anonymous(int round)
{
	void *const code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *const map = fopen(format("/tmp/perf-%d.map", getpid()), "ae");
	const bool is_mangled = round / NR_KINDS % 2;

	if (code == MAP_FAILED || !map)
		err(1, "code");
	fprintf(map, "%lx %x %s\n", (unsigned long)code, CODE_SIZE,
		is_mangled ? "_ZN7spinjit3runEi" : "spinjit;run");
	fclose(map);
	memcpy(code, (void *)SPIN, CODE_SIZE);
	__builtin___clear_cache(code, (char *)code + CODE_SIZE);
	log_spell(ENTRY((spin_t *)code, spell_ns),
		  is_mangled ? "spinjit::run(int)" : "spinjit:run");
}

static const struct kind {
	const char *name;
	void (*play)(int round);
} kinds[NR_KINDS] = {
	{ "in_place", in_place },
	{ "forked", forked },
	{ "executed", executed },
	{ "threaded", threaded },
	{ "replaced", replaced },
	{ "anonymous", anonymous },
};

int main(int argc, char **argv)
{
	const struct kind *kind = NULL;
	int round, end;
	char byte;

	if (argc < 5)
		errx(2, "usage: LOG DIRECTORY ROUNDS MICROSECONDS [KIND [FIRST]]");
	arguments = argv;
	spell_ns = strtoull(argv[4], NULL, 10) * 1000;
	round = argc > 6 ? atoi(argv[6]) : 0;
	end = round + atoi(argv[3]);
	for (int i = 0; argc > 5 && i < NR_KINDS; i++)
		if (!strcmp(kinds[i].name, argv[5]))
			kind = kinds + i;
	if (argc > 5 && !kind)
		errx(2, "%s is not a kind of round", argv[5]);

	log_fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (log_fd < 0)
		err(1, "%s", argv[1]);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;

	for (; round < end; round++)
		(kind ? kind : kinds + round % NR_KINDS)->play(round);
	return 0;
}

#endif
