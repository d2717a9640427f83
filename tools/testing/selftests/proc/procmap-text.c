// SPDX-License-Identifier: GPL-2.0
/*
 * Test the text of /proc/<pid>/maps where it is made without mmap_lock: it is the same to the
 * byte as the first lines of smaps, however it is read; and behind a mapping that has been
 * read, each line is one of smaps, whatever has changed.
 */
#include <ctype.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include "../kselftest_harness.h"
#include "procmap_util.h"

#define MAPS		"/proc/self/maps"
#define TEXT_SIZE	1048576

static char text[TEXT_SIZE], expected[TEXT_SIZE];

/* Read on to the end of a file. Returns the number of bytes, or -errno. */
static ssize_t read_in_pieces(int fd, char *to, size_t piece)
{
	size_t size = 0;
	ssize_t nr;

	while (size < TEXT_SIZE) {
		nr = read(fd, to + size, piece < TEXT_SIZE - size ? piece : TEXT_SIZE - size);
		if (nr <= 0)
			return nr ? -errno : (ssize_t)size;
		size += nr;
	}
	return -EFBIG;
}

/* Put the first lines of smaps to @expected. Others begin with a capital letter. */
static ssize_t read_expected(pid_t pid)
{
	FILE *const file = fdopen(open_proc(pid, "smaps"), "r");
	size_t allocated = 0, size = 0;
	char *line = NULL;
	ssize_t nr;

	while (file && (nr = getline(&line, &allocated, file)) > 0) {
		if (isupper(*line) || size + nr >= TEXT_SIZE)
			continue;
		memcpy(expected + size, line, nr);
		size += nr;
	}
	expected[size] = '\0';
	free(line);
	fclose(file);
	return size;
}

/* Map what has names of all kinds, and hundreds of lines more. */
static int keep_names(int control, void *arg)
{
	const int file = memfd_create("a\nfile", MFD_CLOEXEC);
	const int shm = shmget(IPC_PRIVATE, page_size(), IPC_CREAT | 0600);
	char directory[64], path[5001];
	unsigned long aio = 0;
	unsigned int i;

	/* The kernel needs a larger buffer for a path that is longer than a page. */
	if (shmat(shm, NULL, 0) == (void *)-1 || shmctl(shm, IPC_RMID, NULL) ||
	    mmap(NULL, 1, PROT_READ, MAP_PRIVATE, make_long_path(directory, path, 5000), 0) ==
	    MAP_FAILED || !remove_directory(directory))
		return 1;
	syscall(SYS_io_setup, 1, &aio);
	for (i = 0; i < 600; i++)
		if (!map_area(i, 1, i % 8, i % 16 < 8 ? MAP_PRIVATE : MAP_SHARED,
			      i % 3 ? -1 : file))
			return 1;
	/* Fails without CONFIG_ANON_VMA_NAME. */
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, page_at(0), 100 * page_size(), "name");
	return notify(control) ? keep_still(control, arg) : 1;
}

/* A process that is still, whose text is in @expected. */
FIXTURE(text)
{
	struct child child;
	ssize_t size;
	int fd;
};

FIXTURE_SETUP(text)
{
	if (!text_has_positions(MAPS))
		SKIP_SETUP("the text is made under mmap_lock");
	ASSERT_TRUE(start_child(&self->child, keep_names, NULL));
	ASSERT_TRUE(await(self->child.control));
	self->size = read_expected(self->child.pid);
	self->fd = open_maps(self->child.pid);
}

FIXTURE_TEARDOWN(text)
{
	stop_child(&self->child);
}

TEST_F(text, is_the_same_in_pieces_of_each_size)
{
	static const size_t pieces[] = { 1, 10, 100, 4096, TEXT_SIZE };
	char task[64];
	size_t i;

	snprintf(task, sizeof(task), "task/%d/maps", self->child.pid);
	for (i = 0; i < 2 * ARRAY_SIZE(pieces); i++) {
		const int fd = open_proc(self->child.pid, i % 2 ? task : "maps");

		EXPECT_EQ(self->size, read_in_pieces(fd, text, pieces[i / 2]));
		EXPECT_EQ(0, memcmp(text, expected, self->size));
		close(fd);
	}
}

TEST_F(text, is_the_same_at_any_place)
{
	char part[5000];
	unsigned int i;
	ssize_t nr;

	for (i = 0; i < 300; i++) {
		const size_t at = i * 7919 % self->size;

		nr = pread(self->fd, part, 1 + i * 4099 % sizeof(part), at);
		ASSERT_LT(0, nr);
		ASSERT_GE(self->size, (ssize_t)at + nr);
		ASSERT_EQ(0, memcmp(part, expected + at, nr));
	}
	ASSERT_EQ(self->size - 5000, lseek(self->fd, self->size - 5000, SEEK_SET));
	ASSERT_EQ(5000, read_in_pieces(self->fd, text, 3000));
	EXPECT_EQ(0, memcmp(text, expected + self->size - 5000, 5000));
	EXPECT_EQ(self->size + 5, lseek(self->fd, self->size + 5, SEEK_SET));
	EXPECT_EQ(0, read(self->fd, text, 1));
}

/* Reads of both files, at a place, end in the same way, both without a line. */
static bool end_alike(const int fds[2], off_t at)
{
	const ssize_t nr = pread(fds[0], text, 100, at);
	const int error = nr < 0 ? errno : 0;
	const ssize_t nr_smaps = pread(fds[1], expected, 100, at);

	return nr <= 0 && nr == nr_smaps && (nr == 0 || error == errno);
}

/* As a zombie, or another program; and when it is reaped. */
TEST(text_of_a_process_that_is_gone_ends_as_smaps_does)
{
	siginfo_t info;
	struct child child;
	int fds[2], execs;

	for (execs = 0; execs < 2; execs++) {
		ASSERT_TRUE(start_child(&child, execs ? keep_scene_and_execute :
						keep_scene, NULL));
		ASSERT_TRUE(await(child.control));
		fds[0] = open_maps(child.pid);
		fds[1] = open_proc(child.pid, "smaps");
		ASSERT_LT(0, pread(fds[0], text, 200, 0));
		ASSERT_TRUE(notify(child.control));
		ASSERT_TRUE(execs ? notify(child.control) && await(child.control) :
			    !waitid(P_PID, child.pid, &info, WEXITED | WNOWAIT));
		EXPECT_TRUE(end_alike(fds, 0));
		EXPECT_EQ(0, pread(fds[0], text, 100, 0));
		EXPECT_TRUE(end_alike(fds, 100));
		if (execs)
			ASSERT_EQ(0, shutdown(child.control, SHUT_WR));
		ASSERT_EQ(0, end_of_child(&child));
		EXPECT_TRUE(end_alike(fds, 0));
		EXPECT_EQ(-1, pread(fds[0], text, 100, 0));
		EXPECT_EQ(ESRCH, errno);
	}
}

TEST(text_of_a_kernel_thread_is_empty)
{
	const int fd = open_maps(2);

	if (fd < 0)
		SKIP(return, "only root can open the maps of kthreadd");
	EXPECT_EQ(0, read(fd, text, 1));
}

/*
 * Mappings of a file change behind the line at AREA. Each page of the file is mapped at
 * its own place. What has been read is pages 0 and 1. Behind it are 2 to 5, and a fence.
 */

#define LAST_END	addr_of(2)
#define AREA_PAGES	20

enum call { UNMAP, PROTECT, RESIZE, MOVE, REPLACE };

/* A call for some pages; @to is a number of pages, or the page where they go. */
struct change {
	const char *what;
	enum call call;
	unsigned int page, nr, to;
};

static bool make_change(const struct change *change)
{
	const size_t page = page_size(), size = change->nr * page;
	char *const at = page_at(change->page);

	switch (change->call) {
	case UNMAP:
		return !munmap(at, size);
	case PROTECT:
		return !mprotect(at, size, PROT_READ);
	case RESIZE:
		if (change->to > change->nr)
			munmap(at + size, change->to * page - size);
		return mremap(at, size, change->to * page, 0) == at;
	case MOVE:
		return mremap(at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
			      page_at(change->to)) != MAP_FAILED;
	default:
		return map_area(change->page, change->nr, PROT_READ, MAP_PRIVATE, -1);
	}
}

/* Lines of the area that end behind the last line. */
static struct maps lines_behind(const struct maps *maps, uint64_t last_end)
{
	struct maps part = *maps;

	while (part.nr && part.lines->end <= last_end) {
		part.lines++;
		part.nr--;
	}
	while (part.nr && part.lines[part.nr - 1].start >= addr_of(AREA_PAGES))
		part.nr--;
	return part;
}

TEST(mapping_behind_the_last_line_is_shown_whole_after_a_change)
{
	static const struct change changes[] = {
		{ "merge", PROTECT, 2, 4, 0 },
		{ "grow", RESIZE, 0, 2, 5 },
		{ "split", PROTECT, 3, 3, 0 },
		{ "shrink", RESIZE, 2, 4, 1 },
		{ "shrink from the start", UNMAP, 1, 3, 0 },
		{ "move up", MOVE, 2, 4, 10 },
		{ "move down", MOVE, 2, 1, 0 },
		{ "replace", REPLACE, 2, 4, 0 },
		{ "replace over the last line", REPLACE, 0, 4, 0 },
		{ "unmap the last line", UNMAP, 0, 2, 0 },
		{ "unmap both", UNMAP, 0, 6, 0 },
	};
	struct maps maps, smaps, lines, expected_lines;
	const int file = memfd_create("file", MFD_CLOEXEC);
	FILE *stream;
	unsigned int i;

	if (!text_has_positions(MAPS))
		SKIP(return, "the text is made under mmap_lock");
	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		ASSERT_EQ(0, munmap(page_at(0), AREA_PAGES * page_size()));
		ASSERT_TRUE(map_area(0, 2, PROT_READ, MAP_PRIVATE, file) &&
			    map_area(2, 4, PROT_READ | PROT_EXEC, MAP_PRIVATE, file) &&
			    map_area(8, 1, PROT_READ, MAP_SHARED, -1));
		stream = open_text_behind_area(MAPS);
		ASSERT_TRUE(stream && make_change(&changes[i]));
		ASSERT_EQ(0, read_smaps(0, &smaps));
		ASSERT_EQ(0, read_lines(stream, &maps));
		fclose(stream);
		lines = lines_behind(&maps, 0);
		expected_lines = lines_behind(&smaps, LAST_END);
		ASSERT_LT(0u, lines.nr);
		EXPECT_TRUE(same_maps(&expected_lines, &lines)) {
			TH_LOG("%s: %zu lines, from %#jx", changes[i].what, lines.nr,
			       (uintmax_t)lines.lines->start);
		}
		free_maps(&maps);
		free_maps(&smaps);
	}
}

TEST_HARNESS_MAIN
