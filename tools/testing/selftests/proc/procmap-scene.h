/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scene of the ABI tests: a process with known mappings, and the readers
 * that are allowed to look at them. Query and scan are tested in the same scene.
 */
#ifndef PROCMAP_SCENE_H
#define PROCMAP_SCENE_H

#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "procmap-query.h"

#define R	PROCMAP_QUERY_VMA_READABLE
#define W	PROCMAP_QUERY_VMA_WRITABLE
#define X	PROCMAP_QUERY_VMA_EXECUTABLE
#define S	PROCMAP_QUERY_VMA_SHARED
#define F	PROCMAP_QUERY_FILE_BACKED_VMA

/* The kernel places nothing here by itself, neither in 32 bits nor in 64. */
#define SCENE_START	0x20000000

/* Each mapping has this many pages, and a gap of as many pages follows. */
#define MAPPING_PAGES	2

/* An offset of more than 32 bits. */
#define FAR_OFFSET	0x10fedcba000

/* What buffers hold before a call. */
#define FILL		0xa5

#define FILE_NAME	"/memfd:procmap (deleted)"

/*
 * Tests of the scan rely on this order: names begin at SHARED_RW, build IDs at
 * FILE_NONE, and OTHER_FILE follows all but one of the mappings of the ELF file.
 */
enum mapping {
	PRIVATE_NONE,
	PRIVATE_RW,
	PRIVATE_RX,
	SHARED_RW,
	FILE_NONE,
	FILE_R,
	FILE_RW,
	PRIVATE_R,
	FILE_RX,
	FILE_SHARED_RW,
	FILE_SHARED_RX,
	READONLY_FILE_SHARED_R,
	OTHER_FILE,
	FILE_FAR,
	NR_MAPPINGS,
};

enum backing { NO_FILE, ELF_FILE, READONLY_ELF_FILE, EMPTY_FILE, NR_BACKINGS };

/* What is mapped, and the filters that each mapping passes. */
static const struct {
	int prot;
	int flags;
	enum backing backing;
	uint64_t offset;
	uint64_t passes;
} scene[NR_MAPPINGS] = {
	[PRIVATE_NONE] = { PROT_NONE, MAP_PRIVATE, NO_FILE, 0, 0 },
	[PRIVATE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, NO_FILE, 0,
			 R | W },
	[PRIVATE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, NO_FILE, 0,
			 R | X },
	/* The kernel maps a file of its own, which is no ELF file. */
	[SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, NO_FILE, 0,
			R | W | S | F },
	[FILE_NONE] = { PROT_NONE, MAP_PRIVATE, ELF_FILE, 0, F },
	[FILE_R] = { PROT_READ, MAP_PRIVATE, ELF_FILE, 0, R | F },
	[FILE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, ELF_FILE, 0x1000,
		      R | W | F },
	[PRIVATE_R] = { PROT_READ, MAP_PRIVATE, NO_FILE, 0, R },
	[FILE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, ELF_FILE, 0x2000,
		      R | X | F },
	[FILE_SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, ELF_FILE,
			     0x3000, R | W | S | F },
	[FILE_SHARED_RX] = { PROT_READ | PROT_EXEC, MAP_SHARED, ELF_FILE, 0,
			     R | X | S | F },
	/* The kernel clears VM_SHARED here, but the text shows an s. */
	[READONLY_FILE_SHARED_R] = { PROT_READ, MAP_SHARED, READONLY_ELF_FILE,
				     0, R | S | F },
	[OTHER_FILE] = { PROT_READ, MAP_PRIVATE, EMPTY_FILE, 0, R | F },
	[FILE_FAR] = { PROT_READ, MAP_PRIVATE, ELF_FILE, FAR_OFFSET, R | F },
};

static const uint8_t build_id[20] = "\x01\x23\x45\x67\x89 a build ID";

static bool is_elf(enum mapping mapping)
{
	return scene[mapping].backing == ELF_FILE ||
	       scene[mapping].backing == READONLY_ELF_FILE;
}

static uint64_t start_of(enum mapping mapping)
{
	return SCENE_START + (uint64_t)mapping * 2 * MAPPING_PAGES *
			     page_size();
}

static uint64_t end_of(enum mapping mapping)
{
	return start_of(mapping) + MAPPING_PAGES * page_size();
}

static inline uint64_t scene_end(void)
{
	return start_of(NR_MAPPINGS);
}

static bool map_page(uintptr_t addr)
{
	return mmap((void *)addr, page_size(), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		    0) == (void *)addr;
}

/* The last page that a process can map. */
static uintptr_t last_page;

/* Find it by bisection, before the tests start. */
static void __attribute__((constructor)) find_last_page(void)
{
	uintptr_t good = SCENE_START / page_size();
	uintptr_t bad = UINTPTR_MAX / page_size();

	while (bad - good > 1) {
		const uintptr_t middle = good + (bad - good) / 2;
		const bool mapped = map_page(middle * page_size());

		if (mapped)
			munmap((void *)(middle * page_size()), page_size());
		if (mapped || errno == EEXIST)
			good = middle;
		else
			bad = middle;
	}
	last_page = good * page_size();
}

/* Make and open the files of the scene. */
static bool open_files(int fds[NR_BACKINGS])
{
	char path[64];

	fds[NO_FILE] = -1;
	fds[ELF_FILE] = memfd_create("procmap", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[ELF_FILE]);
	fds[READONLY_ELF_FILE] = open(path, O_RDONLY | O_CLOEXEC);
	fds[EMPTY_FILE] = memfd_create("empty", MFD_CLOEXEC);
	return fds[ELF_FILE] >= 0 && fds[READONLY_ELF_FILE] >= 0 &&
	       fds[EMPTY_FILE] >= 0 && write_elf(fds[ELF_FILE], build_id);
}

static bool map_scene(void)
{
	int fds[NR_BACKINGS];
	unsigned int i;

	if (!open_files(fds) || (!map_page(last_page) && errno != EEXIST))
		return false;
	for (i = 0; i < NR_MAPPINGS; i++) {
		void *const addr = (void *)(uintptr_t)start_of(i);
		int flags = scene[i].flags | MAP_FIXED_NOREPLACE;

		if (scene[i].backing == NO_FILE)
			flags |= MAP_ANONYMOUS;
		if (mmap64(addr, MAPPING_PAGES * page_size(), scene[i].prot,
			   flags, fds[scene[i].backing],
			   scene[i].offset) != addr)
			return false;
	}
	return true;
}

/* Map the scene and send the maps file, opened by the target itself. */
static int be_target(int control, void *arg)
{
	const int fd = open_maps(0);

	(void)arg;
	if (!map_scene() || fd < 0 || !send_fd(control, fd))
		return 1;
	await(control);
	return 0;
}

static int send_maps(int control, void *arg)
{
	const int fd = open_maps(0);

	(void)arg;
	return fd >= 0 && send_fd(control, fd) ? 0 : 1;
}

/* Open the maps file of a process that exits then. Returns the fd, or -1. */
static int open_maps_of_exited(void)
{
	struct child child;
	int fd;

	if (!start_child(&child, send_maps, NULL))
		return -1;
	fd = recv_fd(child.control);
	stop_child(&child);
	return fd;
}

/*
 * A buffer of @size bytes that ends where a page without access begins. The rest
 * of its first page is accessible, too.
 */
static void *map_to_page_end(size_t size, int prot)
{
	const size_t bytes = ((size ?: 1) + page_size() - 1) & -page_size();
	uint8_t *const pages = mmap(NULL, bytes + page_size(),
				    PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED ||
	    mprotect(pages + bytes, page_size(), PROT_NONE) ||
	    mprotect(pages, bytes, prot))
		abort();
	return pages + bytes - size;
}

/* A test program makes here what its calls write to. @fd: the maps file. */
static void make_buffers(struct __test_metadata *const _metadata, int fd);

FIXTURE(process)
{
	struct child target;
	int fd;			/* the target's maps file */
	struct maps maps;	/* its text */
};

FIXTURE_VARIANT(process)
{
	bool forked;		/* the target is another process */
	bool passed;		/* which opens its file and sends it */
};

FIXTURE_VARIANT_ADD(process, self) {
};

FIXTURE_VARIANT_ADD(process, other_process) {
	.forked = true,
};

FIXTURE_VARIANT_ADD(process, passed_fd) {
	.forked = true,
	.passed = true,
};

FIXTURE_SETUP(process)
{
	if (variant->forked) {
		ASSERT_TRUE(start_child(&self->target, be_target, NULL));
		self->fd = recv_fd(self->target.control);
		ASSERT_LE(0, self->fd);
	} else {
		ASSERT_TRUE(map_scene());
	}
	if (!variant->passed)
		self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	make_buffers(_metadata, self->fd);
	ASSERT_EQ(0, read_maps(self->fd, &self->maps));
}

FIXTURE_TEARDOWN(process)
{
	stop_child(&self->target);
	free_maps(&self->maps);
	close(self->fd);
}

static const struct maps_line *line_of(const struct maps *maps,
				       enum mapping mapping)
{
	return line_at(maps, start_of(mapping));
}

/* The other tests hold the ioctls against the text: so it has to be right. */
TEST_F(process, text_shows_the_scene)
{
	unsigned int i;

	for (i = 0; i < NR_MAPPINGS; i++) {
		const struct maps_line *const line = line_of(&self->maps, i);

		ASSERT_TRUE(!!line);
		EXPECT_EQ(start_of(i), line->start);
		EXPECT_EQ(end_of(i), line->end);
		EXPECT_EQ(scene[i].passes & ~(uint64_t)F, line->flags);
		EXPECT_EQ(scene[i].offset, line->offset);
		EXPECT_EQ(!(scene[i].passes & F), !line->inode);
		if (is_elf(i))
			EXPECT_STREQ(FILE_NAME, line->name);
	}
}

/* Other files of the target know neither ioctl. */
static void expect_enotty(struct __test_metadata *const _metadata,
			  const struct child *target, unsigned int command,
			  void *arg)
{
	static const char *const names[] = { "smaps", "smaps_rollup", "stat" };
	char path[64];
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s",
			 target->pid ?: getpid(), names[i]);
		fd = open(path, O_RDONLY);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-1, ioctl(fd, command, arg));
		EXPECT_EQ(ENOTTY, errno);
		close(fd);
	}
}

#endif /* PROCMAP_SCENE_H */
