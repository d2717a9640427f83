// SPDX-License-Identifier: GPL-2.0
/*
 * Let each allocation and each copy of a scan fail, and let the scan block at
 * each of its buffers: errors are clean ones, the next scan works, and nothing
 * of the target is held by a scan that blocks.
 */
#include "procmap-blocked.h"
#include "procmap-fail.h"
#include "procmap-scan.h"

#define ALL		(NAMES | BUILD_IDS)

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
	uint64_t flags;
	uint32_t vma_size;
	/* The buffers are not in memory, so more copies are tried twice. */
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
	if (missing)
		SKIP_SETUP(missing);
	self->make_it_fail = open("/proc/thread-self/make-it-fail", O_WRONLY);
	ASSERT_LE(0, self->make_it_fail);

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
		    variant->flags);

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
	uint32_t data_used = 0;
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

/* A copy that fails is EFAULT, unless it is tried again without a fault. */
TEST_F_TIMEOUT(fault, each_copy_can_fail, 120)
{
	struct outcomes outcomes;

	ASSERT_TRUE(let_only_copies_fail());
	fail_each_place(_metadata, self, variant, &outcomes);
	/* If the structure cannot be read, the scan cannot go on. */
	EXPECT_LE(1, outcomes.copies);
	EXPECT_EQ(0, outcomes.no_memory);
	/* A copy that must not block is tried again in a way that may. */
	if (!variant->untouched)
		EXPECT_LE(1, outcomes.good);
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
	/* An allocation that fails is tried in another way, a copy is not. */
	EXPECT_LE(1, outcomes.good);
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

/* By then the scan remembers files of the hold before. */
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
	uint32_t data_used = 0;
	size_t next = 0;

	EXPECT_STREQ("", wrong_records(&truth, arg, call->ret, &next,
				       &data_used));
	EXPECT_EQ(data_used, arg->data_used);
	EXPECT_EQ(call->ret == NR_MAPPED, arg->walk_end == arg->end);
}

TEST_HARNESS_MAIN
