// SPDX-License-Identifier: GPL-2.0
/*
 * Test that the text of /proc/<pid>/maps is the same to the byte as the first lines of
 * smaps, which stock kernels make under mmap_lock, however it is read; and where it is
 * made without that lock, each kind of change between two lines. procmap-race has changes
 * at random.
 */
#include <ctype.h>
#include <sys/shm.h>

#include "procmap-race.h"
#include "procmap-soak.h"

#define TEXT_SIZE	1048576

/* The area where mappings change. */
#define AREA_PAGES	20

static char text[TEXT_SIZE], truth[TEXT_SIZE];

/* How many bytes are read at a time. */
static const size_t pieces[] = { 1, 10, 100, 4096, TEXT_SIZE };

/* Read on to the end of a file. Returns the number of bytes, or -errno. */
static ssize_t read_in_pieces(int fd, char *to, size_t piece)
{
	size_t size = 0;
	ssize_t nr;

	while (size < TEXT_SIZE) {
		nr = read(fd, to + size,
			  piece < TEXT_SIZE - size ? piece : TEXT_SIZE - size);
		if (nr <= 0)
			return nr ? -errno : (ssize_t)size;
		size += nr;
	}
	return -EFBIG;
}

static int open_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Put the first lines of smaps to @truth. Returns its size. */
static ssize_t read_truth(pid_t pid)
{
	const int fd = open_of(pid, "smaps");
	FILE *const file = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0, size = 0;
	ssize_t nr;

	if (!file)
		return -errno;
	while ((nr = getline(&line, &room, file)) > 0) {
		/* Other lines begin with a capital letter. */
		if (isupper(*line) || size + nr > TEXT_SIZE)
			continue;
		memcpy(truth + size, line, nr);
		size += nr;
	}
	free(line);
	fclose(file);
	return size;
}

/* Is a maps file the same as the truth, in pieces of a size? */
static bool is_true(pid_t pid, const char *name, size_t piece)
{
	const int fd = open_of(pid, name);
	const ssize_t size = read_in_pieces(fd, text, piece);

	close(fd);
	return size >= 0 && size == read_truth(pid) && !memcmp(text, truth, size);
}

/* Map a file whose path is longer than a page: the kernel needs a larger buffer. */
static bool map_long_path(void)
{
	char name[251] = "";
	bool ok = !chdir("/tmp");
	int file, i;

	memset(name, '\n', sizeof(name) - 1);
	for (i = 0; i < 5; i++)
		ok = ok && !mkdir(name, 0700) && !chdir(name);
	file = open("file", O_RDWR | O_CREAT, 0600);
	ok = ok && mmap(NULL, 1, PROT_READ, MAP_PRIVATE, file, 0) != MAP_FAILED &&
	     !unlink("file");
	while (i--)
		ok = ok && !chdir("..") && !rmdir(name);
	return ok;
}

/* Map what has names of all kinds, and hundreds of lines more. */
static int be_named(int control, void *arg)
{
	const int file = memfd_create("a\nfile", MFD_CLOEXEC);
	const int shm = shmget(IPC_PRIVATE, page_size(), IPC_CREAT | 0600);
	unsigned long aio = 0;
	unsigned int i;

	(void)arg;
	if (shmat(shm, NULL, 0) == (void *)-1 || shmctl(shm, IPC_RMID, NULL) ||
	    !map_long_path())
		return 1;
	syscall(SYS_io_setup, 1, &aio);
	for (i = 0; i < 600; i++)
		if (mmap(page_at(i), page_size(), i % 8, MAP_FIXED |
			 (i % 16 < 8 ? MAP_PRIVATE : MAP_SHARED) |
			 (i % 3 ? MAP_ANONYMOUS : 0), i % 3 ? -1 : file,
			 i * page_size()) == MAP_FAILED)
			return 1;
	/* Fails without CONFIG_ANON_VMA_NAME. */
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, page_at(0), 100 * page_size(), "name");
	notify(control);
	await(control);
	return 0;
}

/* Returns the child, whose text is also put to @truth. */
static struct child start_named(struct __test_metadata *const _metadata)
{
	struct child child;
	ssize_t size;

	ASSERT_TRUE(start_child(&child, be_named, NULL));
	ASSERT_TRUE(await(child.control));
	size = read_truth(child.pid);
	ASSERT_LT(0, size);
	truth[size] = '\0';
	return child;
}

TEST(text_is_the_same_in_pieces_of_each_size)
{
	struct child child = start_named(_metadata);
	char task[64];
	size_t i;

	snprintf(task, sizeof(task), "task/%d/maps", child.pid);
	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		EXPECT_TRUE(is_true(child.pid, "maps", pieces[i]));
		EXPECT_TRUE(is_true(child.pid, task, pieces[i]));
	}
	stop_child(&child);
}

/* Read a file at random places; NULL if all of it was right. */
static void *read_anywhere(void *arg)
{
	const int *const fd = arg;
	const size_t size = strlen(truth);
	uint64_t seed = (uintptr_t)&seed;
	char part[5000];
	unsigned int i;

	for (i = 0; i < 300; i++) {
		const size_t at = rand_below(size, &seed);
		const ssize_t nr = pread(*fd, part, 1 + rand_below(sizeof(part), &seed), at);

		if (nr <= 0 || at + nr > size || memcmp(part, truth + at, nr))
			return arg;
	}
	return NULL;
}

TEST(readers_of_one_file_seek_in_it)
{
	struct child child = start_named(_metadata);
	int fd = open_maps(child.pid);
	const off_t end = strlen(truth);
	pthread_t threads[3];
	void *wrong;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, read_anywhere, &fd));
	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &wrong));
		EXPECT_TRUE(!wrong);
	}
	ASSERT_EQ(end - 5000, lseek(fd, end - 5000, SEEK_SET));
	ASSERT_EQ(5000, read_in_pieces(fd, text, 3000));
	EXPECT_EQ(0, memcmp(text, truth + end - 5000, 5000));
	EXPECT_EQ(end + 5, lseek(fd, end + 5, SEEK_SET));
	EXPECT_EQ(0, read(fd, text, 1));
	stop_child(&child);
}

/* Does a read of both files, at a place, end in the same way? Both without a line. */
static bool end_alike(const int fds[2], off_t at)
{
	const ssize_t nr = pread(fds[0], text, 100, at);
	const int error = nr < 0 ? errno : 0;
	const ssize_t nr_truth = pread(fds[1], truth, 100, at);

	return nr <= 0 && nr == nr_truth && (nr == 0 || error == errno);
}

static int exit_or_execute(int control, void *arg)
{
	notify(control);
	await(control);
	if (!arg)
		return 0;
	dup2(control, STDIN_FILENO);
	dup2(control, STDOUT_FILENO);
	execlp("cat", "cat", NULL);
	return 1;
}

TEST(text_of_a_process_that_is_gone_ends_as_smaps_does)
{
	siginfo_t info;
	struct child child;
	int fds[2], execs;

	for (execs = 0; execs < 2; execs++) {
		ASSERT_TRUE(start_child(&child, exit_or_execute,
					execs ? &child : NULL));
		ASSERT_TRUE(await(child.control));
		fds[0] = open_of(child.pid, "maps");
		fds[1] = open_of(child.pid, "smaps");
		ASSERT_LT(0, pread(fds[0], text, 200, 0));
		ASSERT_TRUE(notify(child.control));
		if (execs) {
			ASSERT_TRUE(notify(child.control));
			ASSERT_TRUE(await(child.control));
		} else {
			ASSERT_EQ(0, waitid(P_PID, child.pid, &info, WEXITED | WNOWAIT));
		}
		/* As a zombie, or another program. */
		EXPECT_TRUE(end_alike(fds, 0));
		EXPECT_EQ(0, pread(fds[0], text, 100, 0));
		EXPECT_TRUE(end_alike(fds, 100));
		if (execs)
			ASSERT_EQ(0, shutdown(child.control, SHUT_WR));
		ASSERT_EQ(0, end_of_child(&child));
		EXPECT_TRUE(end_alike(fds, 0));
		EXPECT_EQ(-1, pread(fds[0], text, 100, 0));
		EXPECT_EQ(ESRCH, errno);
		close(fds[0]);
		close(fds[1]);
	}
	/* A kernel thread. */
	fds[0] = open_of(2, "maps");
	EXPECT_GE(0, read(fds[0], text, 1));
}

/*
 * Mappings of a file change behind the line at AREA. Each page of the file is mapped at
 * its own place.
 */

static bool map(unsigned int page, unsigned int nr, int prot)
{
	static int file;

	file = file ?: memfd_create("file", MFD_CLOEXEC);
	return mmap(page_at(page), nr * page_size(), prot, MAP_FIXED | MAP_PRIVATE,
		    file, page * page_size()) != MAP_FAILED;
}

static bool map_memory(unsigned int page, unsigned int nr, int flags)
{
	return mmap(page_at(page), nr * page_size(), PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_ANONYMOUS | flags, -1, 0) != MAP_FAILED;
}

static bool unmap(unsigned int page, unsigned int nr)
{
	return !munmap(page_at(page), nr * page_size());
}

static bool protect(unsigned int page, unsigned int nr, int prot)
{
	return !mprotect(page_at(page), nr * page_size(), prot);
}

static bool resize(unsigned int page, unsigned int from, unsigned int to)
{
	return mremap(page_at(page), from * page_size(), to * page_size(), 0) !=
	       MAP_FAILED;
}

static bool move(unsigned int from, unsigned int nr, unsigned int to)
{
	return mremap(page_at(from), nr * page_size(), nr * page_size(),
		      MREMAP_MAYMOVE | MREMAP_FIXED, page_at(to)) != MAP_FAILED;
}

static bool merge(void) { return protect(2, 4, PROT_READ); }
static bool grow(void) { return unmap(2, 4) && resize(0, 2, 5); }
static bool split(void) { return protect(3, 3, PROT_READ); }
static bool shrink(void) { return resize(2, 4, 1); }
static bool shrink_start(void) { return unmap(1, 3); }
static bool move_up(void) { return move(2, 4, 10); }
static bool move_down(void) { return move(2, 1, 0); }
static bool replace(void) { return map_memory(2, 4, MAP_PRIVATE); }
static bool replace_over(void) { return map_memory(0, 4, MAP_PRIVATE); }
static bool unmap_last(void) { return unmap(0, 2); }
static bool unmap_both(void) { return unmap(0, 6); }

static bool (*const changes[])(void) = {
	merge, grow, split, shrink, shrink_start, move_up, move_down, replace,
	replace_over, unmap_last, unmap_both,
};

/* Lines of the area from the end of the last line on: a mapping that covers it is cut. */
static struct maps lines_behind(const struct maps *maps, uint64_t last_end)
{
	struct maps part = *maps;

	while (part.nr && part.lines->end <= last_end) {
		part.lines++;
		part.nr--;
	}
	while (part.nr && part.lines[part.nr - 1].start >= addr_of(AREA_PAGES))
		part.nr--;
	if (part.nr && part.lines->start < last_end) {
		if (is_file(part.lines))
			part.lines->offset += last_end - part.lines->start;
		part.lines->start = last_end;
	}
	return part;
}

/* What has been read is pages 0 and 1. Behind it are 2 to 5, and a fence. */
TEST(line_behind_a_change_begins_where_the_last_one_ended)
{
	const uint64_t last_end = addr_of(2);
	struct maps maps = {}, smaps, lines, truth_lines;
	uint64_t *page_sizes;
	unsigned int i;
	FILE *file;

	if (!text_has_positions("/proc/self/maps"))
		SKIP(return, "the text is made under mmap_lock");
	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		ASSERT_TRUE(unmap(0, AREA_PAGES) && map(0, 2, PROT_READ) &&
			    map(2, 4, PROT_READ | PROT_EXEC) &&
			    map_memory(8, 1, MAP_SHARED));
		file = open_text_behind_area("/proc/self/maps");
		ASSERT_TRUE(file && changes[i]());
		ASSERT_EQ(0, read_smaps(0, &smaps, &page_sizes));
		ASSERT_EQ(0, read_lines(file, &maps, NULL));
		fclose(file);
		lines = lines_behind(&maps, 0);
		truth_lines = lines_behind(&smaps, last_end);
		ASSERT_LT(0u, lines.nr);
		EXPECT_TRUE(same_text(&truth_lines, &lines)) {
			TH_LOG("change %u: %zu lines, from %#jx", i, lines.nr,
			       (uintmax_t)lines.lines->start);
		}
		free_maps(&maps);
		free_maps(&smaps);
		free(page_sizes);
	}
}

TEST_HARNESS_MAIN
