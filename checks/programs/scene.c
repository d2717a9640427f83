// SPDX-License-Identifier: GPL-2.0
/*
 * A process with every kind of mapping that the text names in its own way.
 *
 *	scene			print its maps and the first lines of its smaps, for two
 *				kernels to be compared by; with fixed addresses, run it by
 *				setarch -R
 *	scene NR FILE...	make so many mappings more, a tenth of them of the files,
 *				say so in a line, and wait: for perf to record it
 */
#include <ctype.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

static char *next_address = (char *)0x200000000000;

/* Map at the next fixed address, with a hole after it so that nothing merges. */
static void *map(size_t size, int prot, int flags, int fd, off_t offset)
{
	void *at = mmap(next_address, size, prot, flags | MAP_FIXED, fd, offset);

	if (at == MAP_FAILED)
		err(2, "mmap at %p", next_address);
	next_address += 4UL << 20;
	return at;
}

static int make_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || ftruncate(fd, 1 << 16))
		err(2, "%s", path);
	return fd;
}

static void map_files(void)
{
	static const int protections[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC,
	};
	static const char *const paths[] = {
		"/dev/shm/plain", "/dev/shm/with space", "/dev/shm/new\nline",
		"/dev/shm/back\\slash", "/dev/shm/gone", "/tmp/on-the-overlay",
		"/dev/shm/(deleted)", "/dev/shm/\xfd\xfe",
	};
	size_t i, j;

	for (i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		const int fd = make_file(paths[i]);

		for (j = 0; j < sizeof(protections) / sizeof(*protections); j++) {
			map(8192, protections[j], MAP_PRIVATE, fd, 4096 * j);
			map(8192, protections[j], MAP_SHARED, fd, 4096 * j);
		}
		if (strstr(paths[i], "gone"))
			unlink(paths[i]);
		close(fd);
	}
}

static void map_memory(void)
{
	const int rwx = PROT_READ | PROT_WRITE | PROT_EXEC;
	char *at;
	int fd, id;

	map(4096, rwx, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	map(4096, rwx, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	map(4096, rwx, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	map(2 << 20, rwx, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	map(2 << 20, rwx, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	at = map(4096, rwx, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, 4096, "a name");
	at = map(4096, rwx, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, 4096, "shared");

	fd = memfd_create("memfd", 0);
	if (fd < 0 || ftruncate(fd, 4096))
		err(2, "memfd");
	map(4096, rwx, MAP_SHARED, fd, 0);

	id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	if (id < 0 || shmat(id, next_address, 0) == (void *)-1)
		err(2, "shm");
	shmctl(id, IPC_RMID, NULL);
}

static void print(const char *path)
{
	char line[8192];
	FILE *file = fopen(path, "r");

	if (!file)
		err(2, "%s", path);
	/* In smaps, the first line of a mapping is the one with an address. */
	while (fgets(line, sizeof(line), file))
		if (isdigit(*line) || islower(*line))
			fputs(line, stdout);
	fclose(file);
}

static void *print_from_thread(void *unused)
{
	print("/proc/thread-self/maps");
	return unused;
}

/* As it is in large programs: a tenth of files, half of those code. */
static void map_many(int nr, char *const paths[], int nr_paths)
{
	int i;

	for (i = 0; i < nr; i++) {
		const int anonymous = i % 10;
		const int fd = anonymous ? -1 :
			       open(paths[i / 10 % nr_paths], O_RDONLY | O_CLOEXEC);
		const int prot = anonymous ? (i % 2 ? PROT_READ : PROT_NONE) :
				 PROT_READ | (i / 10 % 2 ? 0 : PROT_EXEC);

		if (mmap(NULL, 4096, prot, MAP_PRIVATE | (anonymous ? MAP_ANONYMOUS : 0),
			 fd, 0) == MAP_FAILED)
			err(2, "mmap");
		close(fd);
	}
}

static void map_huge_file(void)
{
	const size_t size = 2 << 20;
	const int fd = open("/dev/hugepages/huge", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, size))
		err(2, "/dev/hugepages/huge");
	map(size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

int main(int argc, char *argv[])
{
	static char buffer[1 << 16];
	pthread_t thread;

	/* The heap is not to grow between one file and the next. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	map_files();
	map_memory();
	if (argc > 2) {
		map_huge_file();
		map_many(atoi(argv[1]), argv + 2, argc - 2);
		puts("ready");
		fflush(stdout);
		pause();
	}
	print("/proc/self/maps");
	print("/proc/self/smaps");
	if (pthread_create(&thread, NULL, print_from_thread, NULL))
		err(2, "pthread_create");
	pthread_join(thread, NULL);
	return 0;
}
