// SPDX-License-Identifier: GPL-2.0
/*
 * A load for a sampling profiler: it forks, starts threads, and loads, replaces and
 * unloads libraries, and logs by itself what ran where, and for how long.
 *
 * Usage: profile-load LOG DIRECTORY ROUNDS MICROSECONDS [KIND [LINES]]
 *
 * It plays so many rounds. In each, it spins for so long, at least once. KIND is one of
 * those below; without it, the first of them take turns. LINES stand in the perf map before
 * and after each line of its own.
 *
 * This file is also the source of the libraries, DIRECTORY/libspin1.so to libspin4.so,
 * with NUMBER defined. The flags -O1 -fno-inline -fno-optimize-sibling-calls make the
 * stacks what the log says.
 *
 * A line of the log has, separated by tabs: for how long it spun, in ns of the thread's
 * CPU time, and the innermost functions. Code that is in no file is in
 * /tmp/perf-PID.map, and no function calls it.
 */
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
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

#define LIBRARIES	4
#define NR_TURNS	5

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

/* Spin in the library at a path; it may be loaded already. */
static void enter(const char *path, int round, const char *caller)
{
	void *const library = load(path);
	char *const leaf = format("spin_%d", number_of(round));
	char *const name = format("entry_%d", number_of(round));
	spin_t *const spin = checked(dlsym(library, leaf));
	entry_t *const entry = checked(dlsym(library, name));

	log_spell(entry(spin, spell_ns), format("%s;%s;%s;%s", caller, __func__, name, leaf));
	dlclose(library);
}

static void in_place(int round)
{
	enter(path_of(round), round, __func__);
}

/* A child has the mappings of its parent, and one more. */
static void forked(int round)
{
	void *const library = load(path_of(round));
	const pid_t pid = fork();
	int status;

	if (!pid) {
		enter(path_of(round), round, __func__);
		enter(path_of(round + 1), round + 1, __func__);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "child %d failed", pid);
	dlclose(library);
}

static void *in_thread(void *round)
{
	enter(path_of((intptr_t)round), (intptr_t)round, __func__);
	return NULL;
}

static void threaded(int round)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, in_thread, (void *)(intptr_t)round))
		errx(1, "pthread_create");
	pthread_join(thread, NULL);
}

/* A new file takes the path. */
static void replace(const char *path, int round)
{
	if (system(format("cp %s %s.new && mv %s.new %s", path_of(round), path, path, path)))
		errx(1, "%s is not replaced", path);
}

/* By the time that a library spins, another one has its path, and later a third one. */
static void replaced(int round)
{
	char *const path = format("%s/swapped%d.so", arguments[2], getpid());
	void *library;

	replace(path, round);
	library = load(path);
	replace(path, round + 1);
	enter(path, round, __func__);
	dlclose(library);
	replace(path, round + 2);
}

/* A library that has no path. */
static void library_in_memfd(int round)
{
	const int from = open(path_of(round), O_RDONLY | O_CLOEXEC);
	const int fd = memfd_create("library", MFD_CLOEXEC);

	while (sendfile(fd, from, NULL, 1 << 20) > 0)
		;
	close(from);
	enter(format("/proc/self/fd/%d", fd), round, __func__);
	close(fd);
}

static const char *map_path(void)
{
	return format("/tmp/perf-%d.map", getpid());
}

/* Memory for code. It stays where it is. */
static void *code_memory(int flags, int fd, size_t size)
{
	void *const code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);

	if (code == MAP_FAILED)
		err(1, "memory for code");
	return code;
}

static const char *line_end = "\n";

/*
 * Write a function, as a JIT compiler does, some of which end a line with CR LF. Returns the
 * name that it has in a stack.
 */
static const char *compile(void *code, int round, const char *mode)
{
	FILE *const map = fopen(map_path(), mode);
	const char *const lines = arguments[5] && arguments[6] ? arguments[6] : "";
	const bool is_mangled = round % 2;

	if (!map)
		err(1, "the perf map");
	fprintf(map, "%s%lx %x %s%s%s", lines, (unsigned long)code, CODE_SIZE,
		is_mangled ? "_ZN7spinjit3runEi\r" : "spinjit;\033run", line_end, lines);
	fclose(map);
	memcpy(code, (void *)SPIN, CODE_SIZE);
	__builtin___clear_cache(code, (char *)code + CODE_SIZE);
	return is_mangled ? "spinjit::run(int)" : "spinjit::run";
}

static void execute(void *code, const char *name)
{
	log_spell(ENTRY((spin_t *)code, spell_ns), name);
}

static void compile_and_execute(void *code, int round)
{
	execute(code, compile(code, round, "ae"));
}

static void anonymous(int round)
{
	void *const code = code_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1, CODE_SIZE);

	compile_and_execute(code, round);
}

/* The name may go on. */
static void line_unfinished(int round)
{
	line_end = "";
	anonymous(round);
}

static void in_memfd(int round)
{
	const int fd = memfd_create("code", MFD_CLOEXEC);
	void *code;

	if (ftruncate(fd, CODE_SIZE))
		err(1, "memfd");
	code = code_memory(MAP_SHARED, fd, CODE_SIZE);
	compile_and_execute(code, round);
}

/* It is named /dev/zero. */
static void in_shared_memory(int round)
{
	void *const code = code_memory(MAP_SHARED | MAP_ANONYMOUS, -1, CODE_SIZE);

	compile_and_execute(code, round);
}

/* The perf map has the last function only. Its size stays. */
static void map_replaced(int round)
{
	void *const code = code_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1, CODE_SIZE);

	(void)round;
	execute(code, compile(code, 0, "we"));
}

/* Each function takes the place of the one before. */
static void code_replaced(int round)
{
	static void *code;

	if (!code)
		code = code_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1, CODE_SIZE);
	compile_and_execute(code, round);
}

/*
 * Code that the perf map does not have: no-operations. They are not logged. The map grows
 * for half of the time.
 */
static void unlisted(int round)
{
	const size_t size = 60000;
	char *const code = code_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1, size);

	if (round < atoi(arguments[3]) / 2)
		compile(code_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1, CODE_SIZE), round, "ae");
	memset(code, 0x90, size - 1);
	code[size - 1] = 0xc3;
	ENTRY((spin_t *)code, spell_ns);
	munmap(code, size);
}

static void *after_main(void *main)
{
	pthread_join(*(pthread_t *)main, NULL);
	for (int round = 0; round < atoi(arguments[3]); round++)
		anonymous(round);
	exit(0);
}

static void main_exits(int round)
{
	static pthread_t main;
	pthread_t thread;

	(void)round;
	main = pthread_self();
	if (pthread_create(&thread, NULL, after_main, &main))
		errx(1, "pthread_create");
	pthread_exit(NULL);
}

static const struct kind {
	const char *name;
	void (*play)(int round);
} kinds[] = {
	{ "in_place", in_place },
	{ "forked", forked },
	{ "threaded", threaded },
	{ "replaced", replaced },
	{ "anonymous", anonymous },
	/* Those above take turns. */
	{ "library_in_memfd", library_in_memfd },
	{ "line_unfinished", line_unfinished },
	{ "in_memfd", in_memfd },
	{ "in_shared_memory", in_shared_memory },
	{ "map_replaced", map_replaced },
	{ "code_replaced", code_replaced },
	{ "unlisted", unlisted },
	{ "main_exits", main_exits },
};

int main(int argc, char **argv)
{
	const struct kind *kind = NULL;

	if (argc < 5)
		errx(2, "usage: LOG DIRECTORY ROUNDS MICROSECONDS [KIND [LINES]]");
	arguments = argv;
	spell_ns = strtoull(argv[4], NULL, 10) * 1000;
	for (size_t i = 0; argc > 5 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[5]))
			kind = kinds + i;
	if (argc > 5 && !kind)
		errx(2, "there is no kind %s", argv[5]);

	log_fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (log_fd < 0)
		err(1, "%s", argv[1]);
	for (int round = 0; round < atoi(argv[3]); round++)
		(kind ? kind : kinds + round % NR_TURNS)->play(round);
	return 0;
}

#endif
