// SPDX-License-Identifier: GPL-2.0
/*
 * Let each allocation and each copy of a scan fail, and let the scan block at
 * each of its buffers: errors are clean ones, the next scan works, nothing of the
 * target is held by a scan that blocks, and it goes on with what is there then.
 */
/* The <linux/types.h> in tools/ lacks it, and the next needs it. */
#include <linux/posix_types.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "procmap-blocked.h"
#include "procmap-fail.h"
#include "procmap-scan.h"

/* No scan of these tests has as many places that can fail. */
#define FAULTS_MAX	400

/* The kernel places nothing here by itself, neither in 32 bits nor in 64. */
#define SCENE_START	0x20000000

FIXTURE(fault)
{
	struct injection injection;
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
	uint64_t want;
	uint32_t vma_size;
	/* The buffers are not in memory, so copies fault. */
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
	.want = ALL,
	.vma_size = 72,
};

FIXTURE_VARIANT_ADD(fault, all_of_many) {
	.nr_pages = 200,
	.want = ALL,
	.vma_size = 72,
};

FIXTURE_VARIANT_ADD(fault, longer_records) {
	.nr_pages = 10,
	.want = ALL,
	.vma_size = 80,
};

FIXTURE_VARIANT_ADD(fault, untouched) {
	.nr_pages = 10,
	.want = ALL,
	.vma_size = 72,
	.untouched = true,
};

FIXTURE_VARIANT_ADD(fault, untouched_for_many) {
	.nr_pages = 200,
	.want = ALL,
	.vma_size = 72,
	.untouched = true,
};

FIXTURE_VARIANT_ADD(fault, evicted) {
	.nr_pages = 10,
	.want = ALL,
	.vma_size = 72,
	.evicted = true,
};

/* Neighbours differ, or the kernel would merge them. */
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
	const char *missing;

	skip_without_scan(_metadata);
	missing = open_injection(&self->injection);
	if (!missing && variant->evicted)
		missing = open_evictable(&self->elf);
	if (missing)
		SKIP_SETUP(missing);
	self->make_it_fail = open("/proc/thread-self/make-it-fail", O_WRONLY);
	ASSERT_LE(0, self->make_it_fail);

	if (!variant->evicted)
		self->elf = open("/bin/sh", O_RDONLY);
	ASSERT_LE(0, self->elf);
	ASSERT_TRUE(map_pages(self->elf, variant->nr_pages));
	self->maps = open_maps(0);
	ASSERT_LE(0, self->maps);
	ASSERT_TRUE(make_room(&self->room, 1000, 65536));
	ASSERT_EQ(0, read_truth(self->maps, &self->truth));
	self->fds = count_fds();
	ASSERT_TRUE(let_everything_fail());
}

FIXTURE_TEARDOWN(fault)
{
	EXPECT_TRUE(restore_settings(&self->injection));
}

/* A file that cannot be read has no build ID: then do not expect one. */
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

/* How many scans were complete, and how many ended in EFAULT and in ENOMEM. */
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
		    variant->want);

	arg.vma_size = variant->vma_size;
	return arg;
}

/* Bring the buffers and the file into memory, or remove them from there. */
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
	struct extra *before;
	size_t next = 0;
	bool failed;
	int nr;

	prepare(self, variant);
	if (!arm(self->injection.fail_nth, nth))
		abort();
	nr = procmap_scan(self->maps, &arg);
	failed = disarm(self->injection.fail_nth);

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
	EXPECT_STREQ("", wrong_part(&self->truth, &arg, nr, &next)) {
		TH_LOG("place %u", nth);
	}
	EXPECT_EQ(next == self->truth.maps.nr, arg.walk_end == arg.end);
	memcpy(self->truth.extras, before,
	       self->truth.maps.nr * sizeof(*before));
	free(before);
	outcomes->good += nr == (int)variant->nr_pages;
	return failed;
}

/*
 * Let the first place fail, then the second, and so on; each time, the next scan
 * has to be right. Returns how many places failed.
 */
static unsigned int fail_each_place(struct __test_metadata *const _metadata,
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
	return nth - 1;
}

/* How many places can fail in a scan: fail-nth counts down at each of them. */
static unsigned int count_places(struct __test_metadata *const _metadata,
				 const struct _test_data_fault *self,
				 const struct _fixture_variant_fault *variant)
{
	struct procmap_scan_arg arg = ask_scene(self, variant);
	char text[16] = "";

	prepare(self, variant);
	ASSERT_TRUE(arm(self->injection.fail_nth, 10 * FAULTS_MAX));
	ASSERT_EQ((int)variant->nr_pages, procmap_scan(self->maps, &arg));
	ASSERT_LT(0, pread(self->injection.fail_nth, text, sizeof(text) - 1, 0));
	disarm(self->injection.fail_nth);
	return 10 * FAULTS_MAX - atoi(text);
}

/*
 * A copy that fails is EFAULT, however many records there are already, unless it
 * is tried again. The last scan is the one in which no place is left to fail.
 */
TEST_F_TIMEOUT(fault, each_copy_can_fail, 120)
{
	struct outcomes outcomes;
	int places;

	ASSERT_TRUE(let_only_copies_fail());
	places = fail_each_place(_metadata, self, variant, &outcomes);
	EXPECT_LE(1, outcomes.copies);
	EXPECT_EQ(0, outcomes.no_memory);
	EXPECT_EQ(places + 1, outcomes.copies + outcomes.good);
}

/* An allocation that fails is ENOMEM, or the scan does without it. */
TEST_F_TIMEOUT(fault, each_allocation_can_fail, 120)
{
	struct outcomes outcomes;
	unsigned int copies;

	ASSERT_TRUE(let_only_copies_fail());
	copies = count_places(_metadata, self, variant);
	ASSERT_TRUE(let_everything_fail());
	/* The scan has more places than copies, and each of them failed. */
	EXPECT_LT(copies, fail_each_place(_metadata, self, variant, &outcomes));
	EXPECT_LE(1, outcomes.copies);
	/* An allocation that fails is tried in another way. */
	EXPECT_LE(2, outcomes.good);
}

/* Here no allocation succeeds, however it is tried. */
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

/* What a scan that blocks passes to its call: see procmap-blocked.h. */
enum buffer_page { ARG_PAGE, VEC_PAGE, DATA_PAGE = VEC_PAGE + 4 };

/* More mappings than a scan looks at under one hold of mmap_lock. */
#define NR_MAPPED	150

FIXTURE_VARIANT_ADD(blocked, at_reading_the_arg) {
	.page = ARG_PAGE,
	.least = -ESRCH,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_arg) {
	.page = ARG_PAGE,
	.write = true,
	.least = NR_MAPPED,
};

FIXTURE_VARIANT_ADD(blocked, at_the_first_record) {
	.page = VEC_PAGE,
	.least = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_the_second_page_of_records) {
	.page = VEC_PAGE + 1,
	.least = 1,
};

/* By then the scan has met files under more than one hold. */
FIXTURE_VARIANT_ADD(blocked, at_the_third_page_of_records) {
	.page = VEC_PAGE + 2,
	.least = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_third_page_of_records) {
	.page = VEC_PAGE + 2,
	.write = true,
	.least = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_the_data) {
	.page = DATA_PAGE,
	.least = 1,
};

FIXTURE_VARIANT_ADD(blocked, at_writing_the_data) {
	.page = DATA_PAGE,
	.write = true,
	.least = 1,
};

/* What the target mapped before the scan. Each test is a process of its own. */
static struct truth truth;

static bool map_file(int fd)
{
	return map_pages(fd, NR_MAPPED);
}

static void prepare_call(struct __test_metadata *const _metadata,
			 struct blocked_call *call)
{
	const struct room room = {
		.vec = page_at(call, VEC_PAGE),
		.vec_len = (DATA_PAGE - VEC_PAGE) * page_size() /
			   sizeof(struct procmap_vma),
		.data = page_at(call, DATA_PAGE),
		.data_size = page_size(),
	};
	struct procmap_scan_arg *const arg = page_at(call, ARG_PAGE);

	skip_without_scan(_metadata);
	*arg = ask(&room, SCENE_START, SCENE_START + NR_MAPPED * page_size(),
		   ALL);
	call->command = PROCMAP_SCAN;
	call->full = NR_MAPPED;
	ASSERT_EQ(0, read_truth(call->fd, &truth));
}

/* If the target has exited, some records are missing at the end. */
static void check_answer(struct __test_metadata *const _metadata,
			 const struct blocked_call *call)
{
	const struct procmap_scan_arg *const arg = page_at(call, ARG_PAGE);
	size_t next = 0;

	EXPECT_STREQ("", wrong_part(&truth, arg, call->ret, &next));
	EXPECT_EQ(0u, arg->data_needed);
	EXPECT_EQ(call->ret == NR_MAPPED, arg->walk_end == arg->end);
}

/* The structure is read before the address space is looked at, and written last. */
TEST_F(blocked, scan_reports_a_change_if_the_kernel_knows)
{
	const struct procmap_scan_arg *const arg =
		page_at(&self->call, ARG_PAGE);

	ASSERT_TRUE(notify(self->target.control));
	ASSERT_TRUE(await(self->target.control));
	unblock(_metadata, &self->call, self->call.full);
	if (!arg->generation || variant->page != ARG_PAGE)
		EXPECT_EQ(arg->generation ? PROCMAP_SCAN_CHANGED : 0,
			  arg->flags);
}

/*
 * A scan that blocks when it has copied out less than it is going to return. What
 * happens meanwhile is seen by the rest of it. The target is this process.
 */
#define NR_MIDWAY	200
#define FIRST		SCRATCH "/first"
#define SECOND		SCRATCH "/other"
#define THIRD		SCRATCH "/third"

FIXTURE(midway)
{
	struct blocked_call call;
	struct truth before;
	struct truth after;
};

FIXTURE_VARIANT(midway)
{
	unsigned int size;	/* pages of each mapping */
	unsigned int second;	/* one in so many is of the second file */
	bool (*change)(void);
	bool names;		/* nothing but names changes */
};

static void *midway_page(unsigned int page)
{
	return (void *)(SCENE_START + page * page_size());
}

static bool merge(void)
{
	return !mprotect(midway_page(10), 150 * page_size(), PROT_READ);
}

static bool split(void)
{
	return !mprotect(midway_page(NR_MIDWAY - 1), page_size(), PROT_WRITE);
}

static bool unmap(void)
{
	return !munmap(midway_page(10), 150 * page_size());
}

/* All names have one length, and the second file gets that of the first. */
static bool rename_both(void)
{
	return !rename(FIRST, THIRD) && !rename(SECOND, FIRST);
}

FIXTURE_VARIANT_ADD(midway, mappings_merge) {
	.size = 1,
	.second = UINT_MAX,
	.change = merge,
};

FIXTURE_VARIANT_ADD(midway, mapping_splits) {
	.size = 2,
	.second = UINT_MAX,
	.change = split,
};

FIXTURE_VARIANT_ADD(midway, mappings_go) {
	.size = 1,
	.second = 2,
	.change = unmap,
};

FIXTURE_VARIANT_ADD(midway, files_are_renamed) {
	.size = 1,
	.second = 2,
	.change = rename_both,
	.names = true,
};

FIXTURE_VARIANT_ADD(midway, file_in_a_row_is_renamed) {
	.size = 1,
	.second = 5,
	.change = rename_both,
	.names = true,
};

/* Each page is that of its file, so mappings can merge. */
static bool map_midway(unsigned int size, unsigned int second)
{
	const int fds[] = {
		open(FIRST, O_RDWR | O_CREAT | O_CLOEXEC, 0700),
		open(SECOND, O_RDWR | O_CREAT | O_CLOEXEC, 0700),
	};
	unsigned int page, i = 0;

	if (!write_elf(fds[0], build_id) ||
	    !write_elf(fds[1], (const uint8_t *)"the ID of the other"))
		return false;
	for (page = 0; page < NR_MIDWAY; page += size, i++)
		if (mmap(midway_page(page), size * page_size(),
			 i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE,
			 fds[i % second == second - 1],
			 page * page_size()) != midway_page(page))
			return false;
	return true;
}

FIXTURE_SETUP(midway)
{
	const char *missing;

	skip_without_scan(_metadata);
	missing = mount_scratch() ?: open_uffd(&self->call);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(map_midway(variant->size, variant->second));
	self->call.fd = open_maps(0);
	ASSERT_LE(0, self->call.fd);
	ASSERT_TRUE(map_pages_of_call(&self->call));
	ASSERT_EQ(0, read_truth(self->call.fd, &self->before));
}

FIXTURE_TEARDOWN(midway)
{
	close(self->call.fd);
}

/* Returns the arguments, once the scan of another thread blocks at the page. */
static struct procmap_scan_arg *block_midway(struct __test_metadata *const _metadata,
					     struct blocked_call *call,
					     unsigned int page, uint64_t filter,
					     void *(*run)(void *call))
{
	const struct room room = {
		.vec = page_at(call, VEC_PAGE),
		.vec_len = (DATA_PAGE - VEC_PAGE) * page_size() /
			   sizeof(struct procmap_vma),
		.data = page_at(call, DATA_PAGE),
		.data_size = (NR_PAGES - DATA_PAGE) * page_size(),
	};
	struct procmap_scan_arg *const arg = page_at(call, ARG_PAGE);

	*arg = ask(&room, SCENE_START, (uintptr_t)midway_page(NR_MIDWAY), ALL);
	arg->filter = filter;
	call->command = PROCMAP_SCAN;
	call->page = page;
	EXPECT_TRUE(watch_page(call));
	EXPECT_EQ(0, pthread_create(&call->thread, NULL, run, call));
	EXPECT_TRUE(is_blocked(call));
	return arg;
}

/*
 * How many of the records are those of the truth, from one on, which follows on the
 * one before it. Sets @next to the line that has to come next.
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
 * A file may have its old name to the end, since records may share it. But none has
 * a name that it never had. Returns how many have the new one, or -1.
 */
static int count_new_names(const struct _test_data_midway *self,
			   const struct procmap_scan_arg *arg, int nr)
{
	size_t next;
	int n, new = 0;

	for (n = 0; n < nr; n++) {
		if (count_right(&self->before, arg, n, n + 1, &next))
			continue;
		if (!count_right(&self->after, arg, n, n + 1, &next))
			return -1;
		new++;
	}
	return new;
}

static void change_midway(struct __test_metadata *const _metadata,
			  struct _test_data_midway *self,
			  const struct _fixture_variant_midway *variant,
			  unsigned int page)
{
	struct blocked_call *const call = &self->call;
	const struct procmap_scan_arg *const arg =
		block_midway(_metadata, call, page, 0, make_call);
	int old, new;
	size_t next;

	ASSERT_TRUE(variant->change());
	ASSERT_EQ(0, read_truth(call->fd, &self->after));
	ASSERT_TRUE(serve_page(call));
	ASSERT_EQ(0, pthread_join(call->thread, NULL));

	ASSERT_LT(0, call->ret);
	EXPECT_EQ(arg->end, arg->walk_end);
	if (variant->names) {
		EXPECT_EQ(NR_MIDWAY, call->ret);
		new = count_new_names(self, arg, call->ret);
		EXPECT_LT(0, new);
		EXPECT_GT(NR_MIDWAY, new);
		return;
	}
	old = count_right(&self->before, arg, 0, call->ret, &next);
	new = count_right(&self->after, arg, old, call->ret, &next);
	EXPECT_EQ(call->ret, old + new) {
		TH_LOG("of %d records, %d are old and %d new", call->ret, old,
		       new);
	}
	EXPECT_EQ(self->after.maps.nr, next);
	/* Or nothing was to be seen of the change. */
	EXPECT_LT(0, old);
	EXPECT_LT(0, new);
	/* The first one that is new begins among the old ones, and is whole. */
	if (variant->change == merge)
		EXPECT_GT(record_at(arg, old - 1)->end,
			  record_at(arg, old)->start);
}

TEST_F(midway, of_the_records)
{
	change_midway(_metadata, self, variant, VEC_PAGE);
}

TEST_F(midway, of_the_data)
{
	change_midway(_metadata, self, variant, DATA_PAGE);
}

/*
 * A scan that is interrupted before it is done, by a signal or by what counts as
 * one. No time has to be met: the scan blocks meanwhile.
 */
FIXTURE(interrupted)
{
	struct blocked_call call;
	struct truth truth;
};

FIXTURE_VARIANT(interrupted)
{
	/* Make the call, after what has to be done by the same thread. */
	void *(*run)(void *call);
	bool (*interrupt)(const struct blocked_call *call);
};

static void ignore(int signal)
{
	(void)signal;
}

static bool send_signal(const struct blocked_call *call)
{
	const struct sigaction action = { .sa_handler = ignore };

	return !sigaction(SIGUSR1, &action, NULL) &&
	       !pthread_kill(call->thread, SIGUSR1);
}

FIXTURE_VARIANT_ADD(interrupted, by_a_signal) {
	.run = make_call,
	.interrupt = send_signal,
};

/* io_uring has work for the thread whose request is complete: TIF_NOTIFY_SIGNAL. */
static int event;

static bool poll_event(void)
{
	struct io_uring_params params = {};
	const int ring = syscall(SYS_io_uring_setup, 1, &params);
	struct io_uring_sqe *sqe;
	uint8_t *queue;

	queue = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
		     ring, IORING_OFF_SQ_RING);
	sqe = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		   IORING_OFF_SQES);
	if (queue == MAP_FAILED || sqe == MAP_FAILED)
		return false;
	*sqe = (struct io_uring_sqe) {
		.opcode = IORING_OP_POLL_ADD,
		.fd = event,
		.poll32_events = POLLIN,
	};
	*(uint32_t *)(queue + params.sq_off.array) = 0;
	*(uint32_t *)(queue + params.sq_off.tail) = 1;
	return syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1;
}

static void *make_call_with_ring(void *arg)
{
	struct blocked_call *const call = arg;

	call->ret = -ENOTSUP;
	return poll_event() ? make_call(call) : NULL;
}

static bool complete_request(const struct blocked_call *call)
{
	const uint64_t one = 1;

	return write(event, &one, sizeof(one)) == sizeof(one);
}

FIXTURE_VARIANT_ADD(interrupted, by_io_uring) {
	.run = make_call_with_ring,
	.interrupt = complete_request,
};

FIXTURE_SETUP(interrupted)
{
	struct io_uring_params params = {};
	const char *missing;

	skip_without_scan(_metadata);
	missing = mount_scratch() ?: open_uffd(&self->call);
	if (missing)
		SKIP_SETUP(missing);
	if (variant->run == make_call_with_ring &&
	    syscall(SYS_io_uring_setup, 1, &params) < 0)
		SKIP_SETUP("no io_uring, CONFIG_IO_URING");
	event = eventfd(0, EFD_CLOEXEC);
	ASSERT_LE(0, event);
	ASSERT_TRUE(map_midway(1, 2));
	self->call.fd = open_maps(0);
	ASSERT_LE(0, self->call.fd);
	ASSERT_TRUE(map_pages_of_call(&self->call));
	ASSERT_EQ(0, read_truth(self->call.fd, &self->truth));
}

FIXTURE_TEARDOWN(interrupted)
{
	close(self->call.fd);
}

TEST_F(interrupted, scan_goes_on_from_walk_end)
{
	struct blocked_call *const call = &self->call;
	struct procmap_scan_arg *const arg =
		block_midway(_metadata, call, VEC_PAGE, 0, variant->run);
	size_t next = 0;
	int nr;

	ASSERT_TRUE(variant->interrupt(call));
	ASSERT_TRUE(serve_page(call));
	ASSERT_EQ(0, pthread_join(call->thread, NULL));

	/* What was copied out already is returned. */
	ASSERT_LT(0, call->ret);
	ASSERT_GT(NR_MIDWAY, call->ret);
	EXPECT_STREQ("", wrong_part(&self->truth, arg, call->ret, &next));
	EXPECT_EQ(0u, arg->data_needed);

	go_on(arg);
	nr = procmap_scan(call->fd, arg);
	EXPECT_EQ(NR_MIDWAY, call->ret + nr);
	EXPECT_STREQ("", wrong_scan(&self->truth, arg, nr));
	EXPECT_EQ(arg->end, arg->walk_end);
}

/* Nothing is shared, so there is nothing to return but the error. */
TEST_F(interrupted, scan_without_a_record_is_eintr)
{
	struct blocked_call *const call = &self->call;
	struct procmap_scan_arg *const arg =
		block_midway(_metadata, call, ARG_PAGE, PROCMAP_VMA_SHARED,
			     variant->run);
	size_t next = 0;

	ASSERT_TRUE(variant->interrupt(call));
	ASSERT_TRUE(serve_page(call));
	ASSERT_EQ(0, pthread_join(call->thread, NULL));

	ASSERT_EQ(-EINTR, call->ret);
	EXPECT_STREQ("", wrong_part(&self->truth, arg, 0, &next));
	EXPECT_EQ(0u, arg->data_needed);
	/* A caller that is interrupted often gets on all the same. */
	EXPECT_LT(arg->start, arg->walk_end);

	go_on(arg);
	EXPECT_EQ(0, procmap_scan(call->fd, arg));
	EXPECT_EQ(arg->end, arg->walk_end);
}

TEST_HARNESS_MAIN
