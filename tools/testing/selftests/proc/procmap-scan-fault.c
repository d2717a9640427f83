// SPDX-License-Identifier: GPL-2.0
/*
 * Let each allocation and each copy of a scan fail, and let the scan block at
 * each of its buffers: errors are clean ones, the next scan works, and nothing
 * of the target is held by a scan that blocks.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "procmap-scan.h"

#define DEBUGFS		"/sys/kernel/debug/"
#define ALL		(NAMES | BUILD_IDS)

/* No scan of these tests has as many places that can fail. */
#define FAULTS_MAX	400

/* Where the kernel places nothing by itself, in 32 bits as in 64. */
#define SCENE_START	0x20000000

static const uint8_t build_id[20] = "\x01\x23\x45\x67\x89 a build ID";

/* The settings of the kernel that say what is to fail. */
enum setting {
	SLAB_WAIT,
	SLAB_VERBOSE,
	SLAB_TASK,
	SLAB_PROBABILITY,
	SLAB_TIMES,
	PAGE_WAIT,
	PAGE_ORDER,
	PAGE_VERBOSE,
	PAGE_TASK,
	PAGE_PROBABILITY,
	PAGE_TIMES,
	USERCOPY_VERBOSE,
	NR_SETTINGS,
};

static const struct {
	const char *path;
	/* What lets faults hit a scan, by fail-nth alone. */
	const char *value;
} settings[NR_SETTINGS] = {
	[SLAB_WAIT] = { DEBUGFS "failslab/ignore-gfp-wait", "N" },
	[SLAB_VERBOSE] = { DEBUGFS "failslab/verbose", "0" },
	[SLAB_TASK] = { DEBUGFS "failslab/task-filter", "Y" },
	[SLAB_PROBABILITY] = { DEBUGFS "failslab/probability", "0" },
	[SLAB_TIMES] = { DEBUGFS "failslab/times", "-1" },
	[PAGE_WAIT] = { DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N" },
	[PAGE_ORDER] = { DEBUGFS "fail_page_alloc/min-order", "0" },
	[PAGE_VERBOSE] = { DEBUGFS "fail_page_alloc/verbose", "0" },
	[PAGE_TASK] = { DEBUGFS "fail_page_alloc/task-filter", "Y" },
	[PAGE_PROBABILITY] = { DEBUGFS "fail_page_alloc/probability", "0" },
	[PAGE_TIMES] = { DEBUGFS "fail_page_alloc/times", "-1" },
	[USERCOPY_VERBOSE] = { DEBUGFS "fail_usercopy/verbose", "0" },
};

static bool set(enum setting setting, const char *value)
{
	return write_file(settings[setting].path, value);
}

FIXTURE(fault)
{
	char saved[NR_SETTINGS][16];
	int fail_nth;
	int make_it_fail;
	int maps;
	int fds;
	int elf;
	struct truth truth;
	struct room room;
};

FIXTURE_VARIANT(fault)
{
	unsigned int nr_pages;	/* each is a mapping */
	uint64_t flags;
	uint32_t vma_size;
	/* Nobody has touched the buffers, which makes for more copies. */
	bool untouched;
	/* Nothing of the file is in memory. */
	bool evicted;
};

FIXTURE_VARIANT_ADD(fault, fields) {
	.nr_pages = 10,
	.vma_size = 72,
};

FIXTURE_VARIANT_ADD(fault, all) {
	.nr_pages = 10,
	.flags = ALL,
	.vma_size = 72,
};

FIXTURE_VARIANT_ADD(fault, all_of_many) {
	.nr_pages = 200,
	.flags = ALL,
	.vma_size = 72,
};

FIXTURE_VARIANT_ADD(fault, longer_records) {
	.nr_pages = 10,
	.flags = ALL,
	.vma_size = 80,
};

FIXTURE_VARIANT_ADD(fault, untouched) {
	.nr_pages = 10,
	.flags = ALL,
	.vma_size = 72,
	.untouched = true,
};

FIXTURE_VARIANT_ADD(fault, untouched_for_many) {
	.nr_pages = 200,
	.flags = ALL,
	.vma_size = 72,
	.untouched = true,
};

FIXTURE_VARIANT_ADD(fault, evicted) {
	.nr_pages = 10,
	.flags = ALL,
	.vma_size = 72,
	.evicted = true,
};

/* Neighbours differ, or they would be one mapping. */
static bool map_pages(int fd, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		void *const addr = (void *)(SCENE_START + i * page_size());
		const bool is_file = i % 3;

		if (mmap(addr, page_size(), i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE |
			 (is_file ? 0 : MAP_ANONYMOUS), is_file ? fd : -1,
			 0) != addr)
			return false;
	}
	return true;
}

FIXTURE_SETUP(fault)
{
	unsigned int i;

	skip_without_scan(_metadata);
	self->fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	self->make_it_fail = open("/proc/thread-self/make-it-fail", O_WRONLY);
	if (self->fail_nth < 0 || self->make_it_fail < 0)
		SKIP(_exit(255), "needs root and CONFIG_FAULT_INJECTION");
	for (i = 0; i < NR_SETTINGS; i++)
		if (!read_file(settings[i].path, self->saved[i],
			       sizeof(self->saved[i])))
			SKIP(_exit(255), "no %s", settings[i].path);

	self->elf = open("/bin/sh", O_RDONLY);
	ASSERT_LE(0, self->elf);
	ASSERT_TRUE(map_pages(self->elf, variant->nr_pages));
	self->maps = open_maps(0);
	ASSERT_LE(0, self->maps);
	ASSERT_TRUE(make_room(&self->room, 1000, 65536));
	ASSERT_EQ(0, read_truth(self->maps, &self->truth));
	self->fds = count_fds();
	for (i = 0; i < NR_SETTINGS; i++)
		ASSERT_TRUE(set(i, settings[i].value));
}

FIXTURE_TEARDOWN(fault)
{
	unsigned int i;

	for (i = 0; i < NR_SETTINGS; i++)
		EXPECT_TRUE(set(i, self->saved[i]));
}

/* Build IDs of a file that cannot be read are none: then they are not compared. */
static void forget_build_ids(struct truth *truth,
			     const struct procmap_scan_arg *arg, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		const size_t line = first_line(&truth->maps,
					       record_at(arg, i)->start);

		if (!record_at(arg, i)->build_id_size)
			truth->extras[line].build_id_size = 0;
	}
}

/* What became of the scans in which one place failed. */
struct outcomes {
	int good;
	int copies;
	int no_memory;
};

static struct procmap_scan_arg
ask_scene(const struct _test_data_fault *self,
	  const struct _fixture_variant_fault *variant)
{
	struct procmap_scan_arg arg =
		ask(&self->room, SCENE_START,
		    SCENE_START + variant->nr_pages * page_size(),
		    variant->flags);

	arg.vma_size = variant->vma_size;
	return arg;
}

/* Touch the buffers or let them be untouched, and the file in memory or not. */
static void prepare(const struct _test_data_fault *self,
		    const struct _fixture_variant_fault *variant)
{
	const size_t size = self->room.vec_len * sizeof(*self->room.vec);

	if (variant->untouched) {
		madvise(self->room.vec, size, MADV_DONTNEED);
		madvise(self->room.data, self->room.data_size, MADV_DONTNEED);
	} else {
		memset(self->room.vec, 0, size);
		memset(self->room.data, 0, self->room.data_size);
	}
	if (variant->evicted)
		posix_fadvise(self->elf, 0, 0, POSIX_FADV_DONTNEED);
}

/* Let the nth place fail. Returns false if there is none. */
static bool scan_failing_at(struct __test_metadata *const _metadata,
			    unsigned int nth, struct _test_data_fault *self,
			    const struct _fixture_variant_fault *variant,
			    struct outcomes *outcomes)
{
	struct procmap_scan_arg arg = ask_scene(self, variant);
	uint32_t data_used = 0;
	struct extra *before;
	size_t next = 0;
	bool failed;
	int nr;

	prepare(self, variant);
	if (!arm(self->fail_nth, nth))
		abort();
	nr = procmap_scan(self->maps, &arg);
	failed = disarm(self->fail_nth);

	if (nr < 0) {
		EXPECT_TRUE(nr == -EFAULT || nr == -ENOMEM) {
			TH_LOG("place %u: error %d", nth, -nr);
		}
		outcomes->copies += nr == -EFAULT;
		outcomes->no_memory += nr == -ENOMEM;
		return failed;
	}
	before = calloc(self->truth.maps.nr, sizeof(*before));
	memcpy(before, self->truth.extras,
	       self->truth.maps.nr * sizeof(*before));
	if (failed && variant->evicted)
		forget_build_ids(&self->truth, &arg, nr);
	EXPECT_STREQ("", wrong_records(&self->truth, &arg, nr, &next,
				       &data_used)) {
		TH_LOG("place %u", nth);
	}
	EXPECT_EQ(data_used, arg.data_used);
	EXPECT_EQ(next == self->truth.maps.nr, arg.walk_end == arg.end);
	if (arg.walk_end != arg.end && next < self->truth.maps.nr)
		EXPECT_GE(self->truth.maps.lines[next].start, arg.walk_end);
	memcpy(self->truth.extras, before,
	       self->truth.maps.nr * sizeof(*before));
	free(before);
	outcomes->good += nr == (int)variant->nr_pages;
	return failed;
}

/*
 * Let the first place fail, then the second, and so on; and see that all is well
 * after that.
 */
static void fail_each_place(struct __test_metadata *const _metadata,
			    struct _test_data_fault *self,
			    const struct _fixture_variant_fault *variant,
			    struct outcomes *outcomes)
{
	unsigned int nth;

	memset(outcomes, 0, sizeof(*outcomes));
	for (nth = 1; nth < FAULTS_MAX; nth++) {
		struct outcomes after = {};

		if (!scan_failing_at(_metadata, nth, self, variant, outcomes))
			break;
		scan_failing_at(_metadata, 0, self, variant, &after);
		ASSERT_EQ(1, after.good);
	}
	EXPECT_GT(FAULTS_MAX, nth);
	EXPECT_EQ(self->fds, count_fds());
}

TEST_F_TIMEOUT(fault, each_copy_can_fail, 120)
{
	struct outcomes outcomes;

	/* That a page has to be read makes no difference to what is copied. */
	if (variant->evicted)
		return;
	ASSERT_TRUE(set(SLAB_WAIT, "Y"));
	/* A slab that is used up takes its pages without waiting. */
	ASSERT_TRUE(set(PAGE_ORDER, "10"));
	fail_each_place(_metadata, self, variant, &outcomes);
	/* Where the structure cannot be read, nothing can be told. */
	EXPECT_LE(1, outcomes.copies);
	EXPECT_EQ(0, outcomes.no_memory);
	/* A copy that need not block is tried again. */
	if (!variant->untouched)
		EXPECT_LE(1, outcomes.good);
}

TEST_F_TIMEOUT(fault, each_allocation_can_fail, 120)
{
	struct outcomes outcomes;

	fail_each_place(_metadata, self, variant, &outcomes);
	EXPECT_LE(1, outcomes.copies);
	/* Something to try again with is there each time, but for the copies. */
	EXPECT_LE(1, outcomes.good);
}

TEST_F(fault, all_allocations_can_fail)
{
	struct procmap_scan_arg arg = ask_scene(self, variant);
	struct outcomes after = {};
	int nr;

	prepare(self, variant);
	ASSERT_TRUE(set(SLAB_PROBABILITY, "100"));
	ASSERT_TRUE(set(PAGE_PROBABILITY, "100"));
	ASSERT_EQ(1, pwrite(self->make_it_fail, "1", 1, 0));
	nr = procmap_scan(self->maps, &arg);
	ASSERT_EQ(1, pwrite(self->make_it_fail, "0", 1, 0));
	EXPECT_EQ(-ENOMEM, nr);
	EXPECT_EQ(self->fds, count_fds());
	scan_failing_at(_metadata, 0, self, variant, &after);
	EXPECT_EQ(1, after.good);
}

/*
 * A scan that blocks in the middle, since one of the pages that it was given is
 * behind userfaultfd. The target has mapped files of a file system that nobody
 * else uses.
 */
#define MAPPED_FILE	SCRATCH "/file"

/* More than are looked at in one go. */
#define NR_MAPPED	150

enum buffer_page { ARG_PAGE, VEC_PAGE, DATA_PAGE = VEC_PAGE + 4, NR_BUFFER_PAGES };

struct reader {
	int fd;			/* the target's maps file */
	int uffd;
	uint8_t *pages;
	uint8_t *copies;
	enum buffer_page page;
	bool write;		/* it blocks only on writing to the page */
	pthread_t thread;
	int nr;			/* what the scan ended with */
};

FIXTURE(blocked)
{
	struct child target;
	struct reader reader;
	struct truth truth;
};

FIXTURE_VARIANT(blocked)
{
	enum buffer_page page;
	bool write;
	/* Records that are there for certain, even if the target has gone. */
	int nr_min;
};

FIXTURE_VARIANT_ADD(blocked, at_reading_the_arg) {
	.page = ARG_PAGE,
	.nr_min = -ESRCH,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_arg) {
	.page = ARG_PAGE,
	.write = true,
	.nr_min = NR_MAPPED,
};

FIXTURE_VARIANT_ADD(blocked, at_the_first_record) {
	.page = VEC_PAGE,
	.nr_min = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_the_second_page_of_records) {
	.page = VEC_PAGE + 1,
	.nr_min = 1,
};

/* Files have been remembered by then. */
FIXTURE_VARIANT_ADD(blocked, at_the_third_page_of_records) {
	.page = VEC_PAGE + 2,
	.nr_min = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_third_page_of_records) {
	.page = VEC_PAGE + 2,
	.write = true,
	.nr_min = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_the_data) {
	.page = DATA_PAGE,
	.nr_min = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_data) {
	.page = DATA_PAGE,
	.write = true,
	.nr_min = 1,
};

/* Map files, and now and then something else for a moment. */
static int be_mapper(int control, void *arg)
{
	const int fd = open(MAPPED_FILE, O_RDONLY);
	void *other;

	(void)arg;
	if (!map_pages(fd, NR_MAPPED))
		return 1;
	close(fd);
	tell(control);
	while (hear(control)) {
		other = map_room(page_size());
		if (!other || munmap(other, page_size()))
			return 1;
		tell(control);
	}
	return 0;
}

static bool make_mapped_file(void)
{
	const int fd = open(MAPPED_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	const bool made = write_elf(fd, build_id);

	close(fd);
	return made;
}

/* Open userfaultfd. Returns why it cannot be used, or NULL. */
static const char *open_uffd(struct reader *reader)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = reader->write ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0,
	};

	reader->uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (reader->uffd < 0)
		return "no userfaultfd, CONFIG_USERFAULTFD";
	if (ioctl(reader->uffd, UFFDIO_API, &api))
		return "userfaultfd cannot protect memory from writing";
	return NULL;
}

static void *page_at(const struct reader *reader, enum buffer_page page)
{
	return reader->pages + page * page_size();
}

/* Write the question to its page, and keep a copy. */
static bool make_pages(struct reader *reader)
{
	const size_t size = NR_BUFFER_PAGES * page_size();
	struct room room;

	reader->pages = map_room(2 * size);
	if (!reader->pages)
		return false;
	reader->copies = reader->pages + size;
	memset(reader->pages, 0, size);
	room.vec = page_at(reader, VEC_PAGE);
	room.vec_len = (DATA_PAGE - VEC_PAGE) * page_size() / sizeof(*room.vec);
	room.data = page_at(reader, DATA_PAGE);
	room.data_size = page_size();
	*(struct procmap_scan_arg *)reader->pages =
		ask(&room, SCENE_START, SCENE_START + NR_MAPPED * page_size(),
		    ALL);
	memcpy(reader->copies, reader->pages, size);
	return true;
}

static bool protect_page(const struct reader *reader, bool protect)
{
	struct uffdio_writeprotect arg = {
		.range.start = (uintptr_t)page_at(reader, reader->page),
		.range.len = page_size(),
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(reader->uffd, UFFDIO_WRITEPROTECT, &arg);
}

/* Let the page be missing, or be protected from writing. */
static bool watch_page(const struct reader *reader)
{
	uint8_t *const page = page_at(reader, reader->page);
	struct uffdio_register arg = {
		.range.start = (uintptr_t)page,
		.range.len = page_size(),
		.mode = reader->write ? UFFDIO_REGISTER_MODE_WP :
					UFFDIO_REGISTER_MODE_MISSING,
	};

	if (ioctl(reader->uffd, UFFDIO_REGISTER, &arg))
		return false;
	if (reader->write)
		return protect_page(reader, true);
	return !madvise(page, page_size(), MADV_DONTNEED);
}

/* Let the page have the content that it had. */
static bool serve_page(const struct reader *reader)
{
	struct uffdio_copy arg = {
		.dst = (uintptr_t)page_at(reader, reader->page),
		.src = (uintptr_t)reader->copies + reader->page * page_size(),
		.len = page_size(),
	};

	if (reader->write)
		return protect_page(reader, false);
	return !ioctl(reader->uffd, UFFDIO_COPY, &arg);
}

/* Wait until somebody blocks at the page. */
static bool is_blocked(const struct reader *reader)
{
	struct uffd_msg message;

	return read(reader->uffd, &message, sizeof(message)) ==
		       sizeof(message) &&
	       message.event == UFFD_EVENT_PAGEFAULT &&
	       (message.arg.pagefault.address & -page_size()) ==
		       (uintptr_t)page_at(reader, reader->page);
}

static void *be_reader(void *arg)
{
	struct reader *reader = arg;

	reader->nr = procmap_scan(reader->fd, (void *)reader->pages);
	return NULL;
}

FIXTURE_SETUP(blocked)
{
	struct reader *reader = &self->reader;
	const char *missing;

	skip_without_scan(_metadata);
	reader->page = variant->page;
	reader->write = variant->write;
	missing = mount_scratch() ?: open_uffd(reader);
	if (missing)
		SKIP(_exit(255), "%s", missing);
	ASSERT_TRUE(make_mapped_file());
	ASSERT_TRUE(start_child(&self->target, be_mapper, NULL));
	ASSERT_TRUE(hear(self->target.control));
	reader->fd = open_maps(self->target.pid);
	ASSERT_LE(0, reader->fd);
	ASSERT_EQ(0, read_truth(reader->fd, &self->truth));

	ASSERT_TRUE(make_pages(reader));
	ASSERT_TRUE(watch_page(reader));
	ASSERT_EQ(0, pthread_create(&reader->thread, NULL, be_reader, reader));
	ASSERT_TRUE(is_blocked(reader));
}

FIXTURE_TEARDOWN(blocked)
{
	stop_child(&self->target);
	free_truth(&self->truth);
}

/* Let the reader go on, and see that what it got is right and not too little. */
static void unblock(struct __test_metadata *const _metadata,
		    struct _test_data_blocked *self, int nr_min)
{
	const struct procmap_scan_arg *const arg = (void *)self->reader.pages;
	uint32_t data_used = 0;
	size_t next = 0;

	ASSERT_TRUE(serve_page(&self->reader));
	ASSERT_EQ(0, pthread_join(self->reader.thread, NULL));
	if (nr_min < 0) {
		EXPECT_EQ(nr_min, self->reader.nr);
		return;
	}
	ASSERT_LE(nr_min, self->reader.nr);
	EXPECT_STREQ("", wrong_records(&self->truth, arg, self->reader.nr,
				       &next, &data_used));
	EXPECT_EQ(data_used, arg->data_used);
	EXPECT_EQ(self->reader.nr == NR_MAPPED, arg->walk_end == arg->end);
}

static bool is_gone(int fd)
{
	struct procmap_query query;

	return query_fields(fd, SCENE_START, 0, &query) == -ESRCH;
}

TEST_F(blocked, scan_lets_the_target_change_its_mappings)
{
	ASSERT_TRUE(tell(self->target.control));
	EXPECT_TRUE(hear(self->target.control));
	unblock(_metadata, self, NR_MAPPED);
}

TEST_F(blocked, scan_lets_the_address_space_go_at_exit)
{
	ASSERT_FALSE(is_gone(self->reader.fd));
	stop_child(&self->target);
	EXPECT_TRUE(is_gone(self->reader.fd));
	unblock(_metadata, self, variant->nr_min);
}

TEST_F(blocked, scan_lets_the_file_system_go_at_exit)
{
	ASSERT_EQ(-1, umount2(SCRATCH, 0));
	ASSERT_EQ(EBUSY, errno);
	stop_child(&self->target);
	EXPECT_EQ(0, umount2(SCRATCH, 0));
	unblock(_metadata, self, variant->nr_min);
}

TEST_HARNESS_MAIN
