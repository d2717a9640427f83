// SPDX-License-Identifier: GPL-2.0
/*
 * Let mappings change at random: no walk by PROCMAP_QUERY, by PROCMAP_SCAN or over the text
 * misses a mapping that stays, or mixes what two mappings have. And let a process unmap
 * everything while others walk it.
 */
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "kselftest_harness.h"
#include "stress_util.h"

/* At the least; and mappings that begin below the end of the one before. */
#define CHANGES		4000
#define WALKS		192
#define STRADDLING	10

/* Threads that walk a process which unmaps everything. */
#define NR_WALKERS	2

/* One walk over the mappings from an address on: 0 or -errno. */
typedef int walk_fn(int fd, uint64_t pos, uint64_t end, unsigned int n, struct maps *found);

static void add_line(struct maps *found, const struct maps_line *line)
{
	found->lines = reallocarray(found->lines, found->nr + 1, sizeof(*line));
	found->lines[found->nr++] = *line;
}

static int walk_by_query(int fd, uint64_t pos, uint64_t end, unsigned int n,
			 struct maps *found)
{
	char name[PATH_MAX];
	int err;

	(void)n;
	*found = (struct maps) {};
	while (pos < end) {
		struct maps_line line = {};
		struct procmap_query query = QUERY(.query_addr = pos, .query_flags = QUERY_NEXT,
			.vma_name_addr = (uintptr_t)name, .vma_name_size = sizeof(name),
			.build_id_addr = (uintptr_t)line.build_id,
			.build_id_size = sizeof(line.build_id));

		err = procmap_query(fd, &query);
		if (err)
			return err == -ENOENT ? 0 : err;
		if (query.vma_start >= end)
			return 0;
		line.start = query.vma_start;
		line.end = query.vma_end;
		line.offset = query.vma_offset;
		line.inode = query.inode;
		line.name = strdup(query.vma_name_size ? name : "");
		line.build_id_size = query.build_id_size;
		add_line(found, &line);
		pos = query.vma_end;
	}
	return 0;
}

static void add_record(struct maps *found, const struct procmap_scan_arg *arg,
		       const struct procmap_vma *record)
{
	struct maps_line line = {
		.start = record->start, .end = record->end, .offset = record->offset,
		.inode = record->inode, .name = strdup(name_of(arg, record)),
		.build_id_size = record->build_id_size,
	};

	if (record->build_id_size <= sizeof(line.build_id))
		memcpy(line.build_id, (char *)(uintptr_t)arg->data + record->build_id_offset,
		       record->build_id_size);
	add_line(found, &line);
}

static int walk_by_scan(int fd, uint64_t pos, uint64_t end, unsigned int n,
			struct maps *found)
{
	static __thread struct scan_buffers buffers;
	static const uint32_t vec_lens[] = { 1000, 1, 2, 7, 31, 32, 33, 64, 200 };
	struct procmap_scan_arg arg;
	int i, nr;

	if (!buffers.vec)
		buffers = make_scan_buffers(1000, 65536);
	arg = scan_arg(&buffers, pos, end, SCAN_ALL);
	arg.vec_len = vec_lens[n % ARRAY_SIZE(vec_lens)];
	*found = (struct maps) {};
	for (; arg.walk_end != end; arg.start = arg.walk_end) {
		nr = procmap_scan(fd, &arg);
		if (nr < 0 || arg.walk_end < arg.start)
			return nr < 0 ? nr : -EBADMSG;
		for (i = 0; i < nr; i++)
			add_record(found, &arg, record_at(&arg, i));
	}
	return 0;
}

/* The text of a process that is gone is empty before the process is reaped. */
static int walk_by_text(int fd, uint64_t pos, uint64_t end, unsigned int n,
			struct maps *found)
{
	static const size_t pieces[] = { 1, 10, 100, 4096, 1048576 };
	const int err = read_pieces(dup(fd), pieces[n % ARRAY_SIZE(pieces)], found);

	(void)pos;
	(void)end;
	return err ?: found->nr ? 0 : -ESRCH;
}

/* Of their names and build IDs, each byte is their number. */
static int files[2];
static uint64_t inodes[2];

static bool make_files(void)
{
	uint8_t id[BUILD_ID_SIZE];
	struct stat stat;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		memset(id, i, sizeof(id));
		files[i] = make_elf(i ? "1" : "0", id);
		if (fstat(files[i], &stat))
			return false;
		inodes[i] = stat.st_ino;
	}
	return true;
}

static int keep_changing(int control, void *arg)
{
	atomic_uint *changes = arg;
	uint64_t seed = 0x9e3779b97f4a7c15;
	unsigned int n;

	if (!map_changing_area() || !notify(control))
		return 1;
	for (n = 0; change_area(n, files, &seed); n++)
		++*changes;
	return 1;
}

FIXTURE(walk)
{
	struct child child;
};

FIXTURE_VARIANT(walk)
{
	walk_fn *by;
};

FIXTURE_VARIANT_ADD(walk, query) { walk_by_query };
FIXTURE_VARIANT_ADD(walk, text) { walk_by_text };
FIXTURE_VARIANT_ADD(walk, scan) { walk_by_scan };

FIXTURE_SETUP(walk)
{
	SKIP_WITHOUT_SCAN();
}

FIXTURE_TEARDOWN(walk)
{
	stop_child(&self->child);
}

/* Is what the walk returned of a mapping that of one file, or of memory? */
static bool is_of_one_file(const struct maps_line *line, bool has_build_ids)
{
	const unsigned int file = line->inode == inodes[1];

	if (!line->inode)
		return !line->offset && !*line->name && !line->build_id_size;
	return line->inode == inodes[file] &&
	       line->offset == line->start - AREA &&
	       !strcmp(line->name, file ? "/memfd:1 (deleted)" : "/memfd:0 (deleted)") &&
	       (!has_build_ids || (line->build_id_size == BUILD_ID_SIZE &&
				   is_filled(line->build_id, BUILD_ID_SIZE, file)));
}

/* Returns a fault of the mappings of one walk, or "". Counts those that straddle. */
static const char *wrong_walk_of_area(const struct maps *found, bool has_build_ids,
				      unsigned int *straddling)
{
	const struct maps_line *line;
	uint64_t last_end = 0;
	unsigned int page;

	for (line = found->lines; line < found->lines + found->nr; line++) {
		if (line->end <= last_end && line->end > AREA && line->start < addr_of(END_PAGE))
			return "ends do not rise";
		*straddling += line->start < last_end;
		last_end = line->end;
		if (line->start >= AREA && line->end <= addr_of(END_PAGE) &&
		    !is_of_one_file(line, has_build_ids))
			return "what two mappings have";
	}
	for (page = 0; page < NR_PAGES; page += PILLAR_STEP)
		if (!line_at(found, addr_of(page)))
			return "a page that stays is missing";
	return line_at(found, addr_of(STACK_PAGE)) ? "" : "the stack is missing";
}

/* In the text, mappings straddle only where it is too long for one read. */
TEST_F_TIMEOUT(walk, shows_all_that_stays_while_the_rest_changes, LONG_TIMEOUT)
{
	atomic_uint *changes = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const bool is_text = variant->by == walk_by_text;
	unsigned int n, straddling = 0;
	struct maps found;
	int fd;

	ASSERT_TRUE(make_files());
	ASSERT_TRUE(start_child(&self->child, keep_changing, changes));
	ASSERT_TRUE(await(self->child.control));
	fd = open_maps(self->child.pid);
	for (n = 0; n < WALKS || *changes < CHANGES ||
	     (!is_text && straddling < STRADDLING); n++) {
		ASSERT_EQ(0, variant->by(fd, AREA, addr_of(END_PAGE), n, &found));
		ASSERT_STREQ("", wrong_walk_of_area(&found, !is_text, &straddling));
		free_maps(&found);
	}
}

static bool live_module_makes_text(void)
{
	FILE *file = fopen("/sys/module/procmap_query/parameters/text", "r");
	const bool makes_text = file && fgetc(file) == 'Y';

	if (file)
		fclose(file);
	return makes_text;
}

/*
 * An address space without a mapping has been a crash of kernels whose readers lock single
 * VMAs: of mainline since 6.17. The live module takes over the query, and mostly the text. No
 * mainline kernel has PROCMAP_SCAN, and before 6.17 the text takes mmap_lock.
 */
static bool may_be_emptied(walk_fn *by)
{
	unsigned int major, minor;
	struct utsname name;

	if (by == walk_by_scan || (by == walk_by_text ? live_module_makes_text() :
				   !access("/sys/module/procmap_query", F_OK)))
		return true;
	return !uname(&name) && sscanf(name.release, "%u.%u.", &major, &minor) == 2 &&
	       (major < 6 || (major == 6 && minor < 17));
}

/* It does not return: there is nothing to return to. So the kernel sends SIGSEGV. */
static int unmap_everything(int control, void *arg)
{
	const struct rlimit no_core = {};
	struct maps maps;

	(void)arg;
	if (!map_area(0, 10, PROT_READ, MAP_PRIVATE, -1) || setrlimit(RLIMIT_CORE, &no_core) ||
	    read_maps(open_maps(0), &maps) || !notify(control) || !await(control))
		return 1;
	syscall(SYS_munmap, 0, (unsigned long)maps.lines[maps.nr - 1].end);
	return 1;
}

struct walker {
	walk_fn *walk;
	int fd;
	pthread_t thread;
	atomic_bool *stop;
	unsigned int empty;	/* walks that found nothing */
	int err;
};

/* Walk a process until it is reaped, and no other thread walks it any more. */
static void *walk_on(void *arg)
{
	struct walker *const walker = arg;
	struct maps found;
	unsigned int n = 0;

	do {
		walker->err = walker->walk(walker->fd, 0, ~0ull, n++, &found);
		walker->empty += !walker->err && !found.nr;
		free_maps(&found);
	} while (!walker->err || (walker->err == -ESRCH && !*walker->stop));
	return NULL;
}

TEST_F_TIMEOUT(walk, gets_esrch_of_a_process_that_unmaps_everything, SOAK_TIMEOUT)
{
	const struct soak soak = begin_soak();
	struct walker walkers[NR_WALKERS] = {};
	unsigned int i, empty = 0;
	atomic_bool stop;
	unsigned long n;

	if (!may_be_emptied(variant->by))
		SKIP(return, "this kernel may crash of an empty address space");
	for (n = 0; !soak_is_over(&soak, n); n++) {
		stop = false;
		ASSERT_TRUE(start_child(&self->child, unmap_everything, NULL));
		ASSERT_TRUE(await(self->child.control));
		for (i = 0; i < NR_WALKERS; i++) {
			struct walker *const walker = &walkers[i];

			walker->walk = variant->by;
			walker->fd = open_maps(self->child.pid);
			walker->stop = &stop;
			ASSERT_EQ(0, pthread_create(&walker->thread, NULL, walk_on, walker));
		}
		ASSERT_TRUE(notify(self->child.control));
		/* By a signal. */
		EXPECT_EQ(-1, end_of_child(&self->child));
		stop = true;
		for (i = 0; i < NR_WALKERS; i++) {
			ASSERT_EQ(0, pthread_join(walkers[i].thread, NULL));
			ASSERT_EQ(-ESRCH, walkers[i].err);
			close(walkers[i].fd);
		}
	}
	for (i = 0; i < NR_WALKERS; i++)
		empty += walkers[i].empty;
	TH_LOG("%lu processes, %u empty walks%s", n, empty,
	       empty ? "" : ": no walk met an empty address space");
}

TEST_HARNESS_MAIN
