// SPDX-License-Identifier: GPL-2.0
/*
 * Let each allocation and each copy of PROCMAP_QUERY and PROCMAP_SCAN fail, and let
 * them block at each copy: errors are clean ones, the next call works, a call that
 * blocks holds nothing of its target, and a scan goes on with the mappings of that time.
 */
#include <sys/mman.h>

#include "procmap-uffd.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

/* The kernel places nothing here by itself, neither in 32 bits nor in 64. */
#define SCENE_START	0x20000000

static const uint8_t build_id[20] = "the mapped file's";

/* Wanted besides the fields. */
#define WANT_NAME	1
#define WANT_BUILD_ID	2

/* Pages that a call reads and writes. A scan has some for records and for data. */
enum call_page {
	ARG_PAGE,
	NAME_PAGE,
	BUILD_ID_PAGE,
	VEC_PAGE = NAME_PAGE,
	DATA_PAGE = VEC_PAGE + 5,
	NR_PAGES = DATA_PAGE + 10,
};

/* Bytes of records before the second page of them, however large a page is. */
#define FIRST_RECORDS	4096

struct call;

/**
 * struct kind - one of the ioctls
 * @command: its number.
 * @fill: fill in the structure of a call.
 * @remember: remember the truth about the target before a call, or NULL.
 * @expect: compare the answer of a call that did not fail with the truth.
 */
struct kind {
	unsigned long command;
	void (*fill)(const struct call *call);
	void (*remember)(struct __test_metadata *const _metadata,
			 const struct call *call);
	void (*expect)(struct __test_metadata *const _metadata,
		       const struct call *call);
};

/**
 * struct call - an ioctl on the scene, or on one page of it
 * @kind: which one.
 * @fd: the maps file of the target.
 * @want: the name, the build ID, both or none.
 * @nr: number of pages of the scene.
 * @vma_size: size of a record.
 * @path: that of the mapped file.
 * @pages: NR_PAGES, the structure in the first.
 * @copies: the content of @pages when the call begins, if it is to block.
 * @page: number of the page where it blocks.
 * @write: block only at writing to that.
 * @uffd: the userfaultfd.
 * @thread: the thread that makes the call.
 * @ret: its return value, or -errno.
 */
struct call {
	const struct kind *kind;
	int fd;
	uint64_t want;
	unsigned int nr;
	uint32_t vma_size;
	char path[PATH_MAX];
	uint8_t *pages;
	uint8_t *copies;
	enum call_page page;
	bool write;
	int uffd;
	pthread_t thread;
	int ret;
};

static void *scene_page(unsigned int page)
{
	return (void *)(SCENE_START + page * page_size());
}

static void *call_page(const struct call *call, enum call_page page)
{
	return call->pages + page * page_size();
}

/* A file in a directory. If the path is long, it needs a buffer of its own. */
static int make_file(char path[PATH_MAX], const char *where, bool is_long)
{
	int fd;

	sprintf(path, "%s/%0*d", where, is_long ? 250 : 10, 0);
	if (mkdir(path, 0700))
		return -1;
	strcat(path, "/a file");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	return write_elf(fd, build_id) && !fsync(fd) ? fd : -1;
}

/* Each page is a mapping, so neighbours differ. The second page is of the file. */
static bool map_scene(int fd, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (mmap(scene_page(i), page_size(),
			 i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE |
			 (i % 3 ? 0 : MAP_ANONYMOUS), i % 3 ? fd : -1,
			 0) != scene_page(i))
			return false;
	return true;
}

static bool map_call_pages(struct call *call)
{
	const size_t size = NR_PAGES * page_size();

	call->pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	call->copies = call->pages + size;
	return call->pages != MAP_FAILED;
}

static void fill_query(const struct call *call)
{
	struct procmap_query *const query = call_page(call, ARG_PAGE);

	query->size = sizeof(*query);
	query->query_addr = (uintptr_t)scene_page(1);
	if (call->want & WANT_NAME) {
		query->vma_name_addr = (uintptr_t)call_page(call, NAME_PAGE);
		query->vma_name_size = page_size();
	}
	if (call->want & WANT_BUILD_ID) {
		query->build_id_addr = (uintptr_t)call_page(call, BUILD_ID_PAGE);
		query->build_id_size = page_size();
	}
}

static void expect_query(struct __test_metadata *const _metadata,
			 const struct call *call)
{
	const struct procmap_query *const query = call_page(call, ARG_PAGE);
	const char *const name = call_page(call, NAME_PAGE);

	EXPECT_EQ(0, call->ret);
	EXPECT_EQ((uintptr_t)scene_page(1), query->vma_start);
	EXPECT_EQ((uintptr_t)scene_page(2), query->vma_end);
	if (call->want & WANT_NAME)
		EXPECT_STREQ(call->path, name);
	if (!(call->want & WANT_BUILD_ID))
		return;
	ASSERT_EQ(sizeof(build_id), query->build_id_size);
	EXPECT_EQ(0, memcmp(build_id, call_page(call, BUILD_ID_PAGE),
			    sizeof(build_id)));
}

static const struct kind query_kind = {
	.command = PROCMAP_QUERY,
	.fill = fill_query,
	.expect = expect_query,
};

#ifdef HAVE_PROCMAP_SCAN
/* The mappings before the call. Each test is a process of its own. */
static struct truth truth;

static void fill_scan(const struct call *call)
{
	const struct room room = {
		.vec = call_page(call, VEC_PAGE + 1) - FIRST_RECORDS,
		.vec_len = ((DATA_PAGE - VEC_PAGE - 1) * page_size() + FIRST_RECORDS) /
			   call->vma_size,
		.data = call_page(call, DATA_PAGE),
		.data_size = (NR_PAGES - DATA_PAGE) * page_size(),
	};
	struct procmap_scan_arg *const arg = call_page(call, ARG_PAGE);

	*arg = scan_arg(&room, SCENE_START, (uintptr_t)scene_page(call->nr),
			(call->want & WANT_NAME ? NAMES : 0) |
			(call->want & WANT_BUILD_ID ? BUILD_IDS : 0));
	arg->vma_size = call->vma_size;
}

static void remember_truth(struct __test_metadata *const _metadata,
			   const struct call *call)
{
	skip_without_scan(_metadata);
	ASSERT_EQ(0, read_truth(call->fd, &truth));
	truth.is_resident = true;
}

/* If the target has exited meanwhile, some records are missing at the end. */
static void expect_scan(struct __test_metadata *const _metadata,
			const struct call *call)
{
	const struct procmap_scan_arg *const arg = call_page(call, ARG_PAGE);
	size_t next = 0;

	EXPECT_STREQ("", wrong_part(&truth, arg, call->ret, &next));
	EXPECT_EQ(0u, arg->data_needed);
	EXPECT_EQ(next == truth.maps.nr, arg->walk_end == arg->end);
}

static const struct kind scan_kind = {
	.command = PROCMAP_SCAN,
	.fill = fill_scan,
	.remember = remember_truth,
	.expect = expect_scan,
};
#endif

static void fill_pages(const struct call *call)
{
	/* Only a page that is in memory can be protected from writing. */
	memset(call->pages, 0, NR_PAGES * page_size());
	call->kind->fill(call);
}

static void *make_call(void *arg)
{
	struct call *const call = arg;

	call->ret = ioctl(call->fd, call->kind->command, call->pages);
	if (call->ret < 0)
		call->ret = -errno;
	return NULL;
}

/*
 * Fault injection: fail-nth selects the place that fails.
 */

#define DEBUGFS		"/sys/kernel/debug/"
#define SLAB_WAIT	DEBUGFS "failslab/ignore-gfp-wait"
#define PAGE_WAIT	DEBUGFS "fail_page_alloc/ignore-gfp-wait"
#define PAGE_ORDER	DEBUGFS "fail_page_alloc/min-order"

/* Let every allocation and every copy fail, by fail-nth alone. */
static const struct {
	const char *path;
	const char *value;
} settings[] = {
	{ SLAB_WAIT, "N" },
	{ PAGE_WAIT, "N" },
	{ PAGE_ORDER, "0" },
	{ DEBUGFS "failslab/verbose", "0" },
	{ DEBUGFS "failslab/task-filter", "Y" },
	{ DEBUGFS "failslab/probability", "0" },
	{ DEBUGFS "failslab/times", "-1" },
	{ DEBUGFS "fail_page_alloc/verbose", "0" },
	{ DEBUGFS "fail_page_alloc/task-filter", "Y" },
	{ DEBUGFS "fail_page_alloc/probability", "0" },
	{ DEBUGFS "fail_page_alloc/times", "-1" },
	{ DEBUGFS "fail_usercopy/verbose", "0" },
};

/* No call has as many places that can fail. */
#define FAULTS_MAX	200u

FIXTURE(fault)
{
	char saved[ARRAY_SIZE(settings)][16];
	int fail_nth;
	int file;
	struct call call;
	int full;		/* the return value of a call that does not fail */
	uint8_t *good;		/* and the content of its pages */
};

FIXTURE_VARIANT(fault)
{
	const struct kind *kind;
	uint64_t want;
	unsigned int nr;
	uint32_t vma_size;
	bool is_long;		/* the path */
	bool evicted;		/* nothing of the file is in memory */
	bool allocates;		/* without that memory, there is no answer */
	int copies;		/* at the least; faults are not injected into single words */
};

FIXTURE_VARIANT_ADD(fault, query_of_fields) {
	.kind = &query_kind,
	.nr = 2,
	.copies = 0,
};

FIXTURE_VARIANT_ADD(fault, query_of_short_path_and_build_id) {
	.kind = &query_kind,
	.nr = 2,
	.want = WANT_NAME | WANT_BUILD_ID,
	.copies = 2,
};

FIXTURE_VARIANT_ADD(fault, query_of_long_path) {
	.kind = &query_kind,
	.nr = 2,
	.want = WANT_NAME,
	.is_long = true,
	.allocates = true,
	.copies = 1,
};

FIXTURE_VARIANT_ADD(fault, query_of_evicted_build_id) {
	.kind = &query_kind,
	.nr = 2,
	.want = WANT_BUILD_ID,
	.evicted = true,
	.copies = 1,
};

#ifdef HAVE_PROCMAP_SCAN
/* More than a scan copies at once. */
FIXTURE_VARIANT_ADD(fault, scan_of_all) {
	.kind = &scan_kind,
	.nr = 100,
	.vma_size = 72,
	.want = WANT_NAME | WANT_BUILD_ID,
	.allocates = true,
	.copies = 4,
};

FIXTURE_VARIANT_ADD(fault, scan_of_longer_records) {
	.kind = &scan_kind,
	.nr = 10,
	.vma_size = 80,
	.want = WANT_NAME | WANT_BUILD_ID,
	.allocates = true,
	.copies = 4,
};
#endif

/* Returns NULL, or why no faults can be injected. */
static const char *open_injection(struct _test_data_fault *self)
{
	unsigned int i;

	self->fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (self->fail_nth < 0)
		return "needs root and CONFIG_FAULT_INJECTION";
	for (i = 0; i < ARRAY_SIZE(settings); i++)
		if (!read_file(settings[i].path, self->saved[i],
			       sizeof(self->saved[i])))
			return "needs debugfs with failslab, fail_page_alloc and fail_usercopy";
	return NULL;
}

/* Make a call whose nth place fails. Returns false if there is none. */
static bool call_with_fault(struct _test_data_fault *self, unsigned int nth)
{
	bool failed;

	fill_pages(&self->call);
	if (self->file >= 0)
		posix_fadvise(self->file, 0, 0, POSIX_FADV_DONTNEED);
	if (!arm_fail_nth(self->fail_nth, nth))
		abort();
	make_call(&self->call);
	failed = disarm_fail_nth(self->fail_nth);
	return failed;
}

FIXTURE_SETUP(fault)
{
	struct call *const call = &self->call;
	const char *missing;
	unsigned int i;

	missing = open_injection(self) ?:
		  variant->evicted ? mount_scratch_ext4() : mount_scratch();
	if (missing)
		SKIP_SETUP(missing);
	self->file = make_file(call->path,
			       variant->evicted ? SCRATCH_DISK : SCRATCH,
			       variant->is_long);
	ASSERT_LE(0, self->file);
	ASSERT_TRUE(map_scene(self->file, variant->nr));
	if (!variant->evicted) {
		close(self->file);
		self->file = -1;
	}
	call->kind = variant->kind;
	call->fd = open_maps(0);
	call->want = variant->want;
	call->nr = variant->nr;
	call->vma_size = variant->vma_size;
	ASSERT_TRUE(map_call_pages(call));
	self->good = call->copies;
	if (call->kind->remember)
		call->kind->remember(_metadata, call);

	for (i = 0; i < ARRAY_SIZE(settings); i++)
		ASSERT_TRUE(write_file(settings[i].path, settings[i].value));
	/* Slabs take pages when they need some, which the tests cannot foresee. */
	if (!variant->evicted)
		ASSERT_TRUE(write_file(PAGE_WAIT, "Y"));

	call_with_fault(self, 0);
	call->kind->expect(_metadata, call);
	ASSERT_LE(0, call->ret);
	self->full = call->ret;
	memcpy(self->good, call->pages, NR_PAGES * page_size());
}

/* The file system can be unmounted: no call has left a reference on its file. */
FIXTURE_TEARDOWN(fault)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(settings); i++)
		EXPECT_TRUE(write_file(settings[i].path, self->saved[i]));
	EXPECT_EQ(0, munmap(scene_page(0), variant->nr * page_size()));
	close(self->file);
	EXPECT_EQ(0, umount2(variant->evicted ? SCRATCH_DISK : SCRATCH, 0));
}

/* Calls that failed, by error, and calls that did without a build ID. */
struct outcomes {
	int copies;
	int no_memory;
	int no_build_id;
};

/* The answer is that of a call that does not fail. */
static bool has_good_answer(const struct _test_data_fault *self)
{
	return self->call.ret == self->full &&
	       !memcmp(self->good, self->call.pages, NR_PAGES * page_size());
}

/*
 * Let the first place fail, then the second, and so on; each time, the next call
 * is right. An allocation that only some calls make shifts the places after it, so
 * a place can be hit twice or not at all.
 */
static struct outcomes fail_each_place(struct __test_metadata *const _metadata,
				       struct _test_data_fault *self)
{
	const struct procmap_query *const query =
		call_page(&self->call, ARG_PAGE);
	struct outcomes outcomes = {};
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX && call_with_fault(self, nth); nth++) {
		if (self->call.ret == -EFAULT)
			outcomes.copies++;
		else if (self->call.ret == -ENOMEM)
			outcomes.no_memory++;
		else if (self->file >= 0 && !self->call.ret &&
			 !query->build_id_size)
			outcomes.no_build_id++;
		else
			EXPECT_TRUE(has_good_answer(self)) {
				TH_LOG("place %u: %d", nth, self->call.ret);
			}
		call_with_fault(self, 0);
		EXPECT_TRUE(has_good_answer(self)) {
			TH_LOG("after place %u: %d", nth, self->call.ret);
		}
	}
	EXPECT_NE(FAULTS_MAX, nth);
	EXPECT_TRUE(has_good_answer(self));
	return outcomes;
}

/* A copy that fails is EFAULT, however many records there are already. */
TEST_F_TIMEOUT(fault, each_copy_can_fail, 120)
{
	struct outcomes outcomes;

	ASSERT_TRUE(write_file(SLAB_WAIT, "Y"));
	ASSERT_TRUE(write_file(PAGE_ORDER, "10"));
	outcomes = fail_each_place(_metadata, self);
	EXPECT_LE(variant->copies, outcomes.copies);
	EXPECT_EQ(0, outcomes.no_memory);
}

/* An allocation that fails is ENOMEM, but for a build ID, which is then none. */
TEST_F_TIMEOUT(fault, each_allocation_can_fail, 120)
{
	const struct outcomes outcomes = fail_each_place(_metadata, self);

	EXPECT_EQ(variant->allocates, outcomes.no_memory > 0);
	EXPECT_EQ(variant->evicted, outcomes.no_build_id > 0);
}

/*
 * A call that blocks at one of its pages, since that is behind userfaultfd. It may
 * block forever, so it must hold nothing of its target: neither a lock, nor the
 * address space, nor a file.
 */

static bool protect_page(const struct call *call, bool protect)
{
	struct uffdio_writeprotect arg = {
		.range.start = (uintptr_t)call_page(call, call->page),
		.range.len = page_size(),
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(call->uffd, UFFDIO_WRITEPROTECT, &arg);
}

/* Remove the page, or protect it from writing; and wait until the call blocks. */
static void start_call(struct __test_metadata *const _metadata,
		       struct call *call)
{
	void *const page = call_page(call, call->page);

	memcpy(call->copies, call->pages, NR_PAGES * page_size());
	ASSERT_TRUE(watch_pages(call->uffd, page, page_size(),
				call->write ? UFFDIO_REGISTER_MODE_WP :
					      UFFDIO_REGISTER_MODE_MISSING));
	ASSERT_TRUE(call->write ? protect_page(call, true) :
				  !madvise(page, page_size(), MADV_DONTNEED));
	ASSERT_EQ(0, pthread_create(&call->thread, NULL, make_call, call));
	ASSERT_EQ((uintptr_t)page, wait_for_touch(call->uffd));
}

/* Let the call go on to its end: give the page its content, or let it be written. */
static void finish_call(struct __test_metadata *const _metadata,
			struct call *call)
{
	ASSERT_TRUE(call->write ? protect_page(call, false) :
		    give_page(call->uffd, call_page(call, call->page),
			      call->copies + call->page * page_size()));
	ASSERT_EQ(0, pthread_join(call->thread, NULL));
}

/* More mappings than a scan copies at once. */
#define NR_BLOCKED	100

FIXTURE(blocked)
{
	struct child target;
	struct call call;
};

FIXTURE_VARIANT(blocked)
{
	const struct kind *kind;
	enum call_page page;
	bool write;
	/* The least that the call returns if the target exits meanwhile. */
	int least;
};

FIXTURE_VARIANT_ADD(blocked, query_at_reading_the_struct) {
	.kind = &query_kind, .page = ARG_PAGE, .least = -ESRCH,
};

FIXTURE_VARIANT_ADD(blocked, query_at_the_name) {
	.kind = &query_kind, .page = NAME_PAGE,
};

FIXTURE_VARIANT_ADD(blocked, query_at_the_build_id) {
	.kind = &query_kind, .page = BUILD_ID_PAGE,
};

FIXTURE_VARIANT_ADD(blocked, query_at_writing_the_struct) {
	.kind = &query_kind, .page = ARG_PAGE, .write = true,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(blocked, scan_at_reading_the_arg) {
	.kind = &scan_kind, .page = ARG_PAGE, .least = -ESRCH,
};

FIXTURE_VARIANT_ADD(blocked, scan_at_the_first_record) {
	.kind = &scan_kind, .page = VEC_PAGE, .least = 1,
};

FIXTURE_VARIANT_ADD(blocked, scan_at_the_second_page_of_records) {
	.kind = &scan_kind, .page = VEC_PAGE + 1, .least = 1,
};

FIXTURE_VARIANT_ADD(blocked, scan_at_the_data) {
	.kind = &scan_kind, .page = DATA_PAGE, .least = 1,
};

FIXTURE_VARIANT_ADD(blocked, scan_at_writing_the_arg) {
	.kind = &scan_kind, .page = ARG_PAGE, .write = true, .least = NR_BLOCKED,
};
#endif

/* Map the scene. Each time it hears, map and unmap a page: this takes mmap_lock. */
static int be_mapper(int control, void *arg)
{
	const int fd = open(arg, O_RDONLY);
	void *other;

	if (fd < 0 || !map_scene(fd, NR_BLOCKED))
		return 1;
	close(fd);
	notify(control);
	while (await(control)) {
		other = mmap(NULL, page_size(), PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (other == MAP_FAILED || munmap(other, page_size()))
			return 1;
		notify(control);
	}
	return 0;
}

FIXTURE_SETUP(blocked)
{
	struct call *const call = &self->call;
	const char *const missing = mount_scratch() ?:
		open_userfaultfd(&call->uffd, variant->write ?
				 UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0);

	if (missing)
		SKIP_SETUP(missing);
	ASSERT_EQ(0, close(make_file(call->path, SCRATCH, false)));
	ASSERT_TRUE(start_child(&self->target, be_mapper, call->path));
	ASSERT_TRUE(await(self->target.control));
	call->kind = variant->kind;
	call->fd = open_maps(self->target.pid);
	call->want = WANT_NAME | WANT_BUILD_ID;
	call->nr = NR_BLOCKED;
	call->vma_size = 72;
	call->page = variant->page;
	call->write = variant->write;
	ASSERT_TRUE(map_call_pages(call));
	if (call->kind->remember)
		call->kind->remember(_metadata, call);
	fill_pages(call);
	start_call(_metadata, call);
}

FIXTURE_TEARDOWN(blocked)
{
	stop_child(&self->target);
}

/* mmap() in the target waits for mmap_lock. */
TEST_F(blocked, call_lets_the_target_change_its_mappings)
{
	ASSERT_TRUE(notify(self->target.control));
	EXPECT_TRUE(await(self->target.control));
	finish_call(_metadata, &self->call);
	EXPECT_EQ(self->call.kind == &query_kind ? 0 : NR_BLOCKED,
		  self->call.ret);
	self->call.kind->expect(_metadata, &self->call);
}

/* A file system can be unmounted only if no file of it is held. */
TEST_F(blocked, call_lets_the_address_space_and_its_files_go_at_exit)
{
	const int fd = self->call.fd;
	struct procmap_query query;

	ASSERT_EQ(-1, umount2(SCRATCH, 0));
	ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, query_fields(fd, SCENE_START, 0, &query));
	stop_child(&self->target);
	EXPECT_EQ(-ESRCH, query_fields(fd, SCENE_START, 0, &query));
	EXPECT_EQ(0, umount2(SCRATCH, 0));
	finish_call(_metadata, &self->call);
	if (variant->least < 0) {
		EXPECT_EQ(variant->least, self->call.ret);
		return;
	}
	ASSERT_LE(variant->least, self->call.ret);
	self->call.kind->expect(_metadata, &self->call);
}

#ifdef HAVE_PROCMAP_SCAN
/*
 * A scan that blocks when it has copied out less than it is going to return. The
 * target is this process. Each page is that of the file, so mappings can merge.
 */
#define NR_MIDWAY	200

FIXTURE(midway)
{
	struct call call;
};

FIXTURE_SETUP(midway)
{
	struct call *const call = &self->call;
	const char *const missing = mount_scratch() ?:
				    open_userfaultfd(&call->uffd, 0);
	unsigned int i;
	int fd;

	if (missing)
		SKIP_SETUP(missing);
	fd = make_file(call->path, SCRATCH, false);
	for (i = 0; i < NR_MIDWAY; i++)
		ASSERT_TRUE(mmap(scene_page(i), page_size(),
				 i % 2 ? PROT_READ : PROT_NONE,
				 MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd,
				 i * page_size()) == scene_page(i));
	call->kind = &scan_kind;
	call->fd = open_maps(0);
	call->want = WANT_NAME | WANT_BUILD_ID;
	call->nr = NR_MIDWAY;
	call->vma_size = 72;
	ASSERT_TRUE(map_call_pages(call));
	remember_truth(_metadata, call);
}

FIXTURE_TEARDOWN(midway)
{
	close(self->call.fd);
}

/* Returns the arguments, once the scan of another thread blocks at the page. */
static struct procmap_scan_arg *block_midway(struct __test_metadata *const _metadata,
					     struct call *call,
					     enum call_page page, uint64_t filter)
{
	struct procmap_scan_arg *const arg = call_page(call, ARG_PAGE);

	fill_pages(call);
	arg->filter = filter;
	call->page = page;
	start_call(_metadata, call);
	return arg;
}

/*
 * Count the records from @first on that are lines of the truth in a row, beginning with
 * the line behind the record before. Sets @next to the line that has to come next.
 */
static int count_right(const struct truth *truth,
		       const struct procmap_scan_arg *arg, int first, int nr,
		       size_t *next)
{
	const uint64_t pos = first ? record_at(arg, first - 1)->end :
				     arg->start;
	size_t i = next_line(&truth->maps, first_line(&truth->maps, pos), arg);
	int n;

	for (n = first; n < nr && i < truth->maps.nr &&
	     !*wrong_record(truth, i, arg, record_at(arg, n)); n++)
		i = next_line(&truth->maps, i + 1, arg);
	*next = i;
	return n - first;
}

/*
 * The first records are those from before the change, all others from after it. The first
 * of these begins among the old ones, and is whole.
 */
TEST_F(midway, mappings_merge)
{
	struct call *const call = &self->call;
	const struct procmap_scan_arg *const arg =
		block_midway(_metadata, call, VEC_PAGE, 0);
	const struct truth before = truth;
	int old, new;
	size_t next;

	ASSERT_EQ(0, mprotect(scene_page(10), 150 * page_size(), PROT_READ));
	remember_truth(_metadata, call);
	finish_call(_metadata, call);
	EXPECT_EQ(arg->end, arg->walk_end);
	EXPECT_EQ(arg->generation ? PROCMAP_SCAN_CHANGED : 0u, arg->flags);

	old = count_right(&before, arg, 0, call->ret, &next);
	new = count_right(&truth, arg, old, call->ret, &next);
	EXPECT_EQ(call->ret, old + new) {
		TH_LOG("of %d records, %d are old and %d new", call->ret, old,
		       new);
	}
	EXPECT_EQ(truth.maps.nr, next);
	ASSERT_LT(0, old);
	ASSERT_LT(0, new);
	EXPECT_GT(record_at(arg, old - 1)->end, record_at(arg, old)->start);
}

static void ignore_signal(int signal)
{
	(void)signal;
}

/* No time has to be met: the scan blocks meanwhile. */
static void interrupt_call(struct __test_metadata *const _metadata, struct call *call)
{
	const struct sigaction action = { .sa_handler = ignore_signal };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_kill(call->thread, SIGUSR1));
	finish_call(_metadata, call);
}

TEST_F(midway, interrupted_scan_goes_on_from_walk_end)
{
	struct call *const call = &self->call;
	struct procmap_scan_arg *const arg =
		block_midway(_metadata, call, VEC_PAGE, 0);
	int nr;

	/* The records that were copied out before it are returned. */
	interrupt_call(_metadata, call);
	ASSERT_LT(0, call->ret);
	EXPECT_NE(arg->end, arg->walk_end);
	expect_scan(_metadata, call);

	continue_scan(arg);
	nr = procmap_scan(call->fd, arg);
	EXPECT_STREQ("", wrong_scan(&truth, arg, nr));
	EXPECT_EQ(NR_MIDWAY, call->ret + nr);
}

/* Nothing is shared, so there is nothing to return but the error. */
TEST_F(midway, interrupted_scan_without_a_record_is_eintr)
{
	struct call *const call = &self->call;
	struct procmap_scan_arg *const arg =
		block_midway(_metadata, call, ARG_PAGE, PROCMAP_VMA_SHARED);

	interrupt_call(_metadata, call);
	EXPECT_EQ(-EINTR, call->ret);
	EXPECT_EQ(0u, arg->data_needed);
	/* A caller that is interrupted often gets on all the same. */
	EXPECT_LT(arg->start, arg->walk_end);
	EXPECT_GT(arg->end, arg->walk_end);

	continue_scan(arg);
	EXPECT_EQ(0, procmap_scan(call->fd, arg));
	EXPECT_EQ(arg->end, arg->walk_end);
}
#endif /* HAVE_PROCMAP_SCAN */

TEST_HARNESS_MAIN
