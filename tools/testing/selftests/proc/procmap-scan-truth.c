// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_SCAN, PROCMAP_QUERY and the text of /proc/<pid>/maps agree:
 * on every process, on very many mappings, with every size of the buffers, and
 * for arbitrary arguments.
 */
#include "procmap-scan.h"
#include "procmap-truth.h"

/* Of very many mappings, how many are scanned one by one. */
#define NR_ONE_BY_ONE	2000

#define ROUNDS		30000

/* For PROCMAP_TEST_SEED, which must not be 0. */
#define DEFAULT_SEED	0x9e3779b97f4a7c15

/* Room for all records of this test, of any size, and for their data. */
#define VEC_SIZE	(1024 * 4096)
#define DATA_SIZE	(1024 * 1024)

/* No filter, each alone and some together, with and without names and IDs. */
static const char *wrong_walks(int fd, const struct truth *truth,
			       const struct room *room, size_t *calls)
{
	static const uint64_t filters[] = {
		0, PROCMAP_VMA_READABLE, PROCMAP_VMA_WRITABLE,
		PROCMAP_VMA_EXECUTABLE, PROCMAP_VMA_SHARED,
		PROCMAP_VMA_FILE_BACKED,
		PROCMAP_VMA_READABLE | PROCMAP_VMA_FILE_BACKED, SCAN_FILTERS,
	};
	static const uint64_t wanted[] = { 0, NAMES, BUILD_IDS, ALL };
	static const uint32_t vec_lens[] = { 1, 7, 64, 1000 };
	unsigned int i, j, k;
	const char *wrong;

	for (i = 0; i < ARRAY_SIZE(filters); i++) {
		for (j = 0; j < ARRAY_SIZE(wanted); j++) {
			for (k = 0; k < ARRAY_SIZE(vec_lens); k++) {
				struct procmap_scan_arg arg =
					ask(room, 0, NO_END, wanted[j]);

				arg.filter = filters[i];
				arg.vec_len = vec_lens[k];
				wrong = wrong_walk(fd, truth, room, arg, calls);
				if (*wrong)
					return wrong;
			}
		}
	}
	return "";
}

/* The page size is compared with smaps, not only with that of a query. */
static const char *wrong_page_size(const struct truth *truth,
				   const uint64_t *page_sizes)
{
	size_t i;

	for (i = 0; i < truth->maps.nr; i++)
		if (truth->extras[i].page_size != page_sizes[i])
			return "page size of smaps";
	return "";
}

static bool agrees(struct subject *subject, const void *arg)
{
	const struct room *const room = arg;
	const char *wrong;
	struct truth truth;
	int err;

	err = read_truth(subject->fd, &truth);
	if (err)
		return differ(subject, strerror(-err), 0, 0);
	wrong = same_text(&subject->maps, &truth.maps) ?
		wrong_page_size(&truth, subject->page_sizes) : "text";
	if (!*wrong)
		wrong = wrong_walks(subject->fd, &truth, room, &subject->calls);
	free_truth(&truth);
	return !*wrong || differ(subject, wrong, 0, 0);
}

FIXTURE(everyone)
{
	struct child children[NR_CHILDREN];
	struct room room;
};

FIXTURE_SETUP(everyone)
{
	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&self->room, 1024, DATA_SIZE));
	start_still_children(_metadata, self->children);
}

FIXTURE_TEARDOWN(everyone)
{
	unsigned int i;

	for (i = 0; i < NR_CHILDREN; i++)
		stop_child(&self->children[i]);
}

TEST_F_TIMEOUT(everyone, is_the_same_in_text_query_and_scan, 300)
{
	compare_all_processes(_metadata, self->children, agrees, &self->room);
}

static uint64_t page_of(unsigned int page)
{
	return SCENE_START + (uint64_t)page * page_size();
}

/* Each page is a mapping of its own, and now and then it is of a file. */
static int be_large(int control, void *arg)
{
	const int fd = memfd_create("file", MFD_CLOEXEC);
	unsigned int i;

	(void)arg;
	for (i = 0; i < nr_many(); i++) {
		const int backing = i % 50 ? -1 : fd;
		void *const addr = (void *)(uintptr_t)page_of(i);

		if (mmap(addr, page_size(), i % 2 ? PROT_READ : PROT_NONE,
			 MAP_PRIVATE | MAP_FIXED_NOREPLACE | MAP_NORESERVE |
			 (i % 50 ? MAP_ANONYMOUS : 0), backing, 0) != addr)
			return 1;
	}
	notify(control);
	await(control);
	return 0;
}

/* One process, its truth, and room for a scan of it. */
FIXTURE(one)
{
	struct child target;
	int fd;
	struct truth truth;
	struct room room;
};

FIXTURE_SETUP(one)
{
	skip_without_scan(_metadata);
}

FIXTURE_TEARDOWN(one)
{
	stop_child(&self->target);
	free_truth(&self->truth);
	close(self->fd);
}

static void start_target(struct __test_metadata *const _metadata,
			 struct _test_data_one *self,
			 int (*run)(int control, void *arg))
{
	ASSERT_TRUE(start_child(&self->target, run, NULL));
	ASSERT_TRUE(await(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
	ASSERT_TRUE(make_room(&self->room, VEC_SIZE / sizeof(*self->room.vec),
			      DATA_SIZE));
}

TEST_F_TIMEOUT(one, process_with_very_many_mappings, 300)
{
	static const uint32_t vec_lens[] = { 65, 128, 1000, 4096, 58000 };
	const uint64_t wanted[] = { 0, ALL };
	size_t full, calls;
	unsigned int i;

	start_target(_metadata, self, be_large);
	ASSERT_LT(nr_many(), self->truth.maps.nr);
	for (i = 0; i < 2 * ARRAY_SIZE(vec_lens); i++) {
		struct procmap_scan_arg arg =
			ask(&self->room, 0, NO_END, wanted[i % 2]);

		calls = 0;
		arg.vec_len = vec_lens[i / 2];
		ASSERT_STREQ("", wrong_walk(self->fd, &self->truth, &self->room,
					    arg, &calls)) {
			TH_LOG("vec_len %u", arg.vec_len);
		}
		/* Only a full array ends a call: one rest, one empty call. */
		full = self->truth.maps.nr / arg.vec_len;
		EXPECT_LE(full, calls);
		EXPECT_GE(full + 2, calls);
	}
}

TEST_F_TIMEOUT(one, process_with_very_many_mappings_in_small_steps, 300)
{
	const uint64_t wanted[] = { 0, ALL };
	size_t calls = 0;
	unsigned int i;

	start_target(_metadata, self, be_large);
	for (i = 2; i < 2 * 65; i++) {
		struct procmap_scan_arg arg =
			ask(&self->room, page_of(i), page_of(i + NR_ONE_BY_ONE),
			    wanted[i % 2]);

		arg.vec_len = i / 2;
		ASSERT_STREQ("", wrong_walk(self->fd, &self->truth, &self->room,
					    arg, &calls)) {
			TH_LOG("vec_len %u", arg.vec_len);
		}
	}
	EXPECT_LT((size_t)NR_ONE_BY_ONE, calls);
}

TEST_F_TIMEOUT(one, process_with_every_size_of_data, 300)
{
	static const uint32_t vec_lens[] = { 1, 5, 64, 1000 };
	const uint64_t wanted[] = { NAMES, BUILD_IDS, ALL };
	size_t calls = 0;
	unsigned int i;

	start_target(_metadata, self, be_still);
	for (i = 0; i < 3 * 400; i++) {
		struct procmap_scan_arg arg =
			ask(&self->room, 0, NO_END, wanted[i % 3]);

		arg.data_size = i / 3;
		arg.vec_len = vec_lens[i % ARRAY_SIZE(vec_lens)];
		ASSERT_STREQ("", wrong_walk(self->fd, &self->truth, &self->room,
					    arg, &calls)) {
			TH_LOG("data_size %u", i / 3);
		}
	}
	EXPECT_LT(3 * 400u, calls);
}

static uint64_t seed;

static uint64_t any(void)
{
	return next_random(&seed);
}

static bool one_in(unsigned int nr)
{
	return any() % nr == 0;
}

static uint64_t one_of(const uint64_t *numbers, size_t nr)
{
	return numbers[any() % nr];
}

/* Arguments of a call, and what stands for buffers that cannot be written. */
struct hostile {
	struct {
		struct procmap_scan_arg arg;
		uint8_t past[4096];	/* what follows the structure */
	} *call;
	bool bad_vec;
	bool bad_data;
	void *read_only;
};

static uint64_t any_address(const struct maps *maps)
{
	const struct maps_line *const line = &maps->lines[any() % maps->nr];
	const uint64_t addrs[] = {
		0, line->start, line->start, line->start + page_size(),
		line->end, line->end - page_size(), line->end + page_size(),
		-(uint64_t)page_size(), any() & -(uint64_t)page_size(),
		any() >> any() % 64,
	};

	return one_of(addrs, ARRAY_SIZE(addrs));
}

static void make_range(struct procmap_scan_arg *arg, const struct maps *maps)
{
	arg->start = any_address(maps);
	arg->end = one_in(3) ? NO_END : any_address(maps);
	if (!one_in(10))
		arg->start &= -(uint64_t)page_size();
	if (arg->end < arg->start && !one_in(10)) {
		const uint64_t end = arg->end;

		arg->end = arg->start;
		arg->start = end & -(uint64_t)page_size();
	}
}

static void make_vec(struct hostile *hostile, struct procmap_scan_arg *arg,
		     const struct room *room)
{
	const uint64_t bad[] = {
		8, (uintptr_t)hostile->read_only, 1ull << 63, ~7ull,
	};
	static const uint64_t vec_lens[] = {
		0, 1, 2, 3, 63, 64, 65, 128, 1024, 0x7fffffff, 0x80000000, ~0u,
	};
	static const uint64_t sizes[] = {
		0, 64, 71, 72, 73, 76, 80, 128, 4088, 4096, 4097, 4104, ~0u, ~7u,
	};

	hostile->bad_vec = one_in(20);
	arg->vec = hostile->bad_vec ? one_of(bad, ARRAY_SIZE(bad)) :
				      (uintptr_t)room->vec;
	if (one_in(30))
		arg->vec = any() % 8;
	else if (one_in(30))
		arg->vec += any() % 8;
	arg->vec_len = one_in(2) ? one_of(vec_lens, ARRAY_SIZE(vec_lens)) :
				   1 + any() % 300;
	arg->vma_size = one_in(4) ? one_of(sizes, ARRAY_SIZE(sizes)) :
			one_in(2) ? 72 : 72 + any() % 504 * 8;
}

static void make_data(struct hostile *hostile, struct procmap_scan_arg *arg,
		      const struct room *room)
{
	const uint64_t bad[] = {
		1, (uintptr_t)hostile->read_only, 1ull << 63, ~0ull,
	};
	static const uint64_t sizes[] = {
		0, 1, 19, 20, 21, 40, 1000, DATA_SIZE, 0x80000000, ~0u,
	};

	hostile->bad_data = one_in(10);
	arg->data = hostile->bad_data ? one_of(bad, ARRAY_SIZE(bad)) :
					(uintptr_t)room->data;
	arg->data_size = one_in(2) ? one_of(sizes, ARRAY_SIZE(sizes)) :
				     any() % 500;
	if (!one_in(10) && !arg->data_size)
		arg->data = 0;
	else if (one_in(20))
		arg->data = 0;
}

static void make_hostile(struct hostile *hostile, const struct truth *truth,
			 const struct room *room)
{
	static const uint64_t sizes[] = {
		0, 1, 24, 72, 96, 103, 105, 2048, 4096, 4097,
		(1ull << 32) + 104, ~0ull,
	};
	struct procmap_scan_arg *const arg = &hostile->call->arg;

	memset(hostile->call, 0, sizeof(*hostile->call));
	if (one_in(4))
		hostile->call->past[any() % 4096] = any();
	arg->size = one_in(8) ? one_of(sizes, ARRAY_SIZE(sizes)) : sizeof(*arg);
	arg->filter = any() & any() & SCAN_FILTERS;
	if (one_in(30))
		arg->filter |= 1ull << any() % 64;
	arg->want = any() & ALL;
	if (one_in(30))
		arg->want |= 1ull << any() % 64;
	make_range(arg, &truth->maps);
	make_vec(hostile, arg, room);
	make_data(hostile, arg, room);
	/* None of these is the generation of the target. */
	arg->known_generation = one_in(2) ? 0 : any() | 1ull << 63;
	arg->walk_end = any();
	arg->generation = any();
	arg->data_used = any();
	arg->data_needed = any();
	arg->flags = any();
	/* Also where nobody has touched the buffers. */
	if (one_in(4))
		madvise(room->vec, VEC_SIZE, MADV_DONTNEED);
	if (one_in(4))
		madvise(room->data, DATA_SIZE, MADV_DONTNEED);
}

static bool has_unknown_bytes(const struct hostile *hostile)
{
	uint64_t i;

	for (i = 0; i + sizeof(hostile->call->arg) < hostile->call->arg.size; i++)
		if (hostile->call->past[i])
			return true;
	return false;
}

/* The error of the arguments by themselves, or 0. */
static int expected_error(const struct hostile *hostile)
{
	const struct procmap_scan_arg *const arg = &hostile->call->arg;

	if (arg->size > page_size())
		return -E2BIG;
	if (arg->size < sizeof(*arg))
		return -EINVAL;
	if (has_unknown_bytes(hostile))
		return -E2BIG;
	if (arg->filter & ~(uint64_t)SCAN_FILTERS ||
	    arg->want & ~(uint64_t)ALL ||
	    arg->start % page_size() || arg->end < arg->start ||
	    !arg->vec || arg->vec % 8 ||
	    !arg->vec_len || arg->vec_len > 0x7fffffff ||
	    arg->vma_size < 72 || arg->vma_size > page_size() ||
	    arg->vma_size % 8 || !arg->data != !arg->data_size)
		return -EINVAL;
	return 0;
}

/* Is there anything to be written to the data, if all goes well? */
static bool uses_data(const struct truth *truth,
		      const struct procmap_scan_arg *arg)
{
	size_t i = first_line(&truth->maps, arg->start);
	uint32_t needed, n;

	for (n = 0; n < arg->vec_len; n++, i++) {
		i = next_line(&truth->maps, i, arg);
		if (i == truth->maps.nr)
			return false;
		needed = data_of(&truth->extras[i], arg->want);
		if (needed)
			return needed <= arg->data_size;
	}
	return false;
}

/* What is wrong with the result of a hostile call, or "". */
static const char *wrong_result(const struct truth *truth,
				const struct hostile *hostile, int nr)
{
	const struct procmap_scan_arg *const arg = &hostile->call->arg;
	const int err = expected_error(hostile);
	size_t first;

	if (err)
		return nr == err ? "" : "error of the arguments";
	first = next_line(&truth->maps, first_line(&truth->maps, arg->start),
			  arg);
	if (first == truth->maps.nr)
		return wrong_scan(truth, arg, nr);
	/* Without room for the first, there is no use in writing. */
	if (hostile->bad_vec && nr == -EFAULT)
		return "";
	if (hostile->bad_vec && nr != -ENOSPC)
		return "no EFAULT of the array";
	if (hostile->bad_data && uses_data(truth, arg))
		return nr == -EFAULT ? "" : "no EFAULT of the data";
	return wrong_scan(truth, arg, nr);
}

/* The same arguments in each run, unless others are asked for. */
static void set_seed(void)
{
	const char *const wanted = getenv("PROCMAP_TEST_SEED");

	if (wanted)
		seed = strtoull(wanted, NULL, 0);
	if (!seed)
		seed = DEFAULT_SEED;
}

static void log_hostile(struct __test_metadata *const _metadata,
			const struct hostile *hostile, int nr)
{
	const struct procmap_scan_arg *const arg = &hostile->call->arg;

	TH_LOG("size %#llx, filter %#llx, want %#llx, %#llx to %#llx",
	       arg->size, arg->filter, arg->want, arg->start, arg->end);
	TH_LOG("vec %#llx %#x * %u, data %#llx %#x", arg->vec, arg->vec_len,
	       arg->vma_size, arg->data, arg->data_size);
	TH_LOG("%d, walk_end %#llx, data_used %#x, data_needed %#x", nr,
	       arg->walk_end, arg->data_used, arg->data_needed);
}

TEST_F_TIMEOUT(one, process_with_hostile_arguments, 300)
{
	struct hostile hostile = {
		.call = map_room(sizeof(*hostile.call)),
		.read_only = mmap(NULL, VEC_SIZE, PROT_READ,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};
	unsigned int i, scanned = 0, errors = 0;

	start_target(_metadata, self, be_still);
	set_seed();
	TH_LOG("PROCMAP_TEST_SEED=%#llx", (long long)seed);
	for (i = 0; i < ROUNDS; i++) {
		int nr;

		make_hostile(&hostile, &self->truth, &self->room);
		nr = procmap_scan(self->fd, &hostile.call->arg);
		ASSERT_STREQ("", wrong_result(&self->truth, &hostile, nr)) {
			TH_LOG("round %u", i);
			log_hostile(_metadata, &hostile, nr);
		}
		scanned += nr > 0;
		errors += nr < 0;
	}
	/* Neither must be rare, or nothing has been tested. */
	EXPECT_LT(ROUNDS / 10u, scanned);
	EXPECT_LT(ROUNDS / 10u, errors);
}

TEST_HARNESS_MAIN
