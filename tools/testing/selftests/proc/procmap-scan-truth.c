// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_SCAN tells the same as the text of /proc/<pid>/maps and as
 * PROCMAP_QUERY: of every process, of very many mappings, with every size of the
 * buffers, and for whatever arguments.
 */
#include <dirent.h>
#include <malloc.h>
#include <sys/random.h>

#include "procmap-scan.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA		0x53564d41
#define PR_SET_VMA_ANON_NAME	0
#endif

/* So that there is something to see even on an empty system. */
#define NR_CHILDREN	3
#define NR_MAPPINGS	250

/* Where the kernel places nothing by itself, in 32 bits as in 64. */
#define SCENE_START	0x20000000

/*
 * A process may change while it is compared, and even back again: how often it
 * is tried anew, and how often it may differ although it seems not to change.
 */
#define TRIES			1000
#define TRIES_THAT_DIFFER	20

/* Of very many mappings, so many are told one by one. */
#define NR_ONE_BY_ONE	2000

#define ROUNDS		30000

/* For all that a scan in this test can tell, in records of any size. */
#define VEC_SIZE	(1024 * 4096)
#define DATA_SIZE	(1024 * 1024)

enum verdict { SAME, CHANGED, DIFFERENT, NO_MAPPINGS, REFUSED, VANISHED };

/* What has been compared. */
struct work {
	size_t processes;
	size_t mappings;
	size_t calls;
};

/* All filters, one at a time and some at once, with all that can be wanted. */
static const char *wrong_walks(int fd, const struct truth *truth,
			       const struct room *room, size_t *calls)
{
	static const uint64_t filters[] = {
		0, PROCMAP_QUERY_VMA_READABLE, PROCMAP_QUERY_VMA_WRITABLE,
		PROCMAP_QUERY_VMA_EXECUTABLE, PROCMAP_QUERY_VMA_SHARED,
		PROCMAP_QUERY_FILE_BACKED_VMA,
		PROCMAP_QUERY_VMA_READABLE | PROCMAP_QUERY_FILE_BACKED_VMA,
		FILTERS,
	};
	static const uint64_t wanted[] = {
		0, NAMES, BUILD_IDS, NAMES | BUILD_IDS,
	};
	static const uint32_t vec_lens[] = { 1, 7, 64, 1000 };
	unsigned int i, j, k;
	const char *wrong;

	for (i = 0; i < ARRAY_SIZE(filters); i++) {
		for (j = 0; j < ARRAY_SIZE(wanted); j++) {
			for (k = 0; k < ARRAY_SIZE(vec_lens); k++) {
				struct procmap_scan_arg arg =
					ask(room, 0, NO_END,
					    filters[i] | wanted[j]);

				arg.vec_len = vec_lens[k];
				wrong = wrong_walk(fd, truth, room, arg, calls);
				if (*wrong)
					return wrong;
			}
		}
	}
	return "";
}

/* The page size is held against smaps, and not against a query alone. */
static const char *wrong_page_size(const struct truth *truth,
				   const uint64_t *page_sizes)
{
	size_t i;

	for (i = 0; i < truth->maps.nr; i++)
		if (truth->extras[i].page_size != page_sizes[i])
			return "page size of smaps";
	return "";
}

/* Compare what a scan tells with the truth, if that stays as it is. */
static enum verdict compare_with(pid_t pid, int fd, const struct truth *truth,
				 const struct room *room, struct work *work,
				 const char **wrong)
{
	struct maps smaps, after;
	uint64_t *page_sizes;
	enum verdict verdict;
	size_t calls = 0;

	if (!truth->maps.nr)
		return NO_MAPPINGS;
	if (read_smaps(pid, &smaps, &page_sizes))
		return VANISHED;
	verdict = same_text(&truth->maps, &smaps) ? SAME : CHANGED;
	*wrong = verdict == SAME ? wrong_page_size(truth, page_sizes) : "";
	free_maps(&smaps);
	free(page_sizes);
	if (verdict != SAME)
		return verdict;

	if (!**wrong)
		*wrong = wrong_walks(fd, truth, room, &calls);
	if (read_maps(fd, &after))
		return VANISHED;
	verdict = !same_text(&truth->maps, &after) ? CHANGED :
		  **wrong ? DIFFERENT : SAME;
	free_maps(&after);
	if (verdict == SAME) {
		work->processes++;
		work->mappings += truth->maps.nr;
		work->calls += calls;
	}
	return verdict;
}

static enum verdict compare_once(pid_t pid, const struct room *room,
				 struct work *work, const char **wrong)
{
	const int fd = open_maps(pid);
	enum verdict verdict;
	struct truth truth;
	int err;

	if (fd == -EACCES || fd == -EPERM)
		return REFUSED;
	if (fd < 0)
		return VANISHED;

	err = read_truth(fd, &truth);
	if (err) {
		*wrong = strerror(-err);
		verdict = err == -EAGAIN ? CHANGED :
			  err == -ESRCH ? VANISHED : DIFFERENT;
	} else {
		verdict = compare_with(pid, fd, &truth, room, work, wrong);
		free_truth(&truth);
	}
	close(fd);
	return verdict;
}

static enum verdict compare(pid_t pid, const struct room *room,
			    struct work *work, const char **wrong)
{
	unsigned int i, differed = 0;
	enum verdict verdict = CHANGED;

	for (i = 0; i < TRIES && differed < TRIES_THAT_DIFFER; i++) {
		verdict = compare_once(pid, room, work, wrong);
		if (verdict == DIFFERENT)
			differed++;
		else if (verdict != CHANGED)
			break;
	}
	return verdict;
}

/* Map files and memory, in all ways, with and without gaps between them. */
static bool map_scene(void)
{
	const int plain = memfd_create("a\nfile", MFD_CLOEXEC);
	const int elf = memfd_create("program", MFD_CLOEXEC);
	uintptr_t addr = SCENE_START;
	unsigned int i;

	if (!write_elf(elf, (const uint8_t *)"the ID of a program."))
		return false;
	for (i = 0; i < NR_MAPPINGS; i++) {
		/* Odd factors, so that neighbours are of all kinds. */
		const unsigned int kind = i * 11;
		const int prot = (kind & 1 ? PROT_READ : 0) |
				 (kind & 2 ? PROT_WRITE : 0) |
				 (kind & 4 ? PROT_EXEC : 0);
		const int flags = (kind & 8 ? MAP_SHARED : MAP_PRIVATE) |
				  (kind & 16 ? MAP_ANONYMOUS : 0);
		const int fd = kind & 32 ? elf : plain;
		const size_t size = (1 + i % 3) * page_size();

		if (mmap((void *)addr, size, prot, flags | MAP_FIXED_NOREPLACE,
			 flags & MAP_ANONYMOUS ? -1 : fd,
			 flags & MAP_ANONYMOUS ? 0 : i % 7 * page_size()) !=
		    (void *)addr)
			return false;
		/* A kernel without CONFIG_ANON_VMA_NAME has no such name. */
		if (i % 9 == 0)
			prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, size,
			      "a name of its own");
		addr += size + (i % 4 ? 0 : page_size());
	}
	return true;
}

static int be_child(int control, void *arg)
{
	(void)arg;
	if (!map_scene())
		return 1;
	tell(control);
	hear(control);
	return 0;
}

FIXTURE(everyone)
{
	struct child children[NR_CHILDREN];
	struct room room;
};

FIXTURE_SETUP(everyone)
{
	unsigned int i;

	skip_without_scan(_metadata);
	/* So that the heap of this process comes to rest, too. */
	ASSERT_TRUE(mallopt(M_MMAP_MAX, 0));
	ASSERT_TRUE(mallopt(M_TRIM_THRESHOLD, INT_MAX));
	ASSERT_TRUE(make_room(&self->room, 1024, DATA_SIZE));
	for (i = 0; i < NR_CHILDREN; i++) {
		ASSERT_TRUE(start_child(&self->children[i], be_child, NULL));
		ASSERT_TRUE(hear(self->children[i].control));
	}
}

FIXTURE_TEARDOWN(everyone)
{
	unsigned int i;

	for (i = 0; i < NR_CHILDREN; i++)
		stop_child(&self->children[i]);
}

TEST_F_TIMEOUT(everyone, is_told_alike_by_text_query_and_scan, 300)
{
	struct work work = {};
	const char *wrong = "";
	struct dirent *entry;
	size_t children = 0;
	DIR *proc = opendir("/proc");

	ASSERT_TRUE(!!proc);
	while ((entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);
		const size_t before = work.mappings;
		enum verdict verdict;

		if (pid <= 0)
			continue;
		verdict = compare(pid, &self->room, &work, &wrong);
		EXPECT_NE(CHANGED, verdict) {
			TH_LOG("process %d does not hold still", pid);
		}
		ASSERT_NE(DIFFERENT, verdict) {
			TH_LOG("process %d: %s", pid, wrong);
		}
		if (is_child(self->children, NR_CHILDREN, pid)) {
			EXPECT_EQ(SAME, verdict);
			EXPECT_LE((size_t)NR_MAPPINGS, work.mappings - before);
			children++;
		}
	}
	closedir(proc);
	EXPECT_EQ((size_t)NR_CHILDREN, children);
	TH_LOG("%zu processes, %zu mappings, %zu calls", work.processes,
	       work.mappings, work.calls);
}

/* Debug aids of a kernel take minutes for as many. */
static unsigned int nr_many(void)
{
	const char *const nr = getenv("PROCMAP_TEST_MAPPINGS");

	return nr ? atoi(nr) : 60000;
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
	tell(control);
	hear(control);
	return 0;
}

/* One process, and all that is to be known of it. */
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
	ASSERT_TRUE(hear(self->target.control));
	self->fd = open_maps(self->target.pid);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, read_truth(self->fd, &self->truth));
	ASSERT_TRUE(make_room(&self->room, VEC_SIZE / sizeof(*self->room.vec),
			      DATA_SIZE));
}

TEST_F_TIMEOUT(one, process_with_very_many_mappings, 300)
{
	static const uint32_t vec_lens[] = { 65, 128, 1000, 4096, 58000 };
	const uint64_t wanted[] = { 0, NAMES | BUILD_IDS };
	size_t calls = 0;
	unsigned int i;

	start_target(_metadata, self, be_large);
	ASSERT_LT(nr_many(), self->truth.maps.nr);
	for (i = 0; i < 2 * ARRAY_SIZE(vec_lens); i++) {
		struct procmap_scan_arg arg =
			ask(&self->room, 0, NO_END, wanted[i % 2]);

		arg.vec_len = vec_lens[i / 2];
		ASSERT_STREQ("", wrong_walk(self->fd, &self->truth, &self->room,
					    arg, &calls)) {
			TH_LOG("vec_len %u", arg.vec_len);
		}
	}
	/* The last of them took two calls at most. */
	EXPECT_LT(nr_many() / 64, calls);
}

TEST_F_TIMEOUT(one, process_with_very_many_mappings_in_small_steps, 300)
{
	const uint64_t wanted[] = { 0, NAMES | BUILD_IDS };
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
	const uint64_t wanted[] = { NAMES, BUILD_IDS, NAMES | BUILD_IDS };
	size_t calls = 0;
	unsigned int i;

	start_target(_metadata, self, be_child);
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

/* Random numbers, the same for the same seed. */
static uint64_t seed;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
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
		0, 1, 71, 73, 80, 2048, 4096, 4097, (1ull << 32) + 72, ~0ull,
	};
	struct procmap_scan_arg *const arg = &hostile->call->arg;

	memset(hostile->call, 0, sizeof(*hostile->call));
	if (one_in(4))
		hostile->call->past[any() % 4096] = any();
	arg->size = one_in(8) ? one_of(sizes, ARRAY_SIZE(sizes)) : sizeof(*arg);
	arg->flags = (any() & any() & FILTERS) |
		     (any() & (NAMES | BUILD_IDS));
	if (one_in(20))
		arg->flags |= 1ull << any() % 64;
	make_range(arg, &truth->maps);
	make_vec(hostile, arg, room);
	make_data(hostile, arg, room);
	arg->walk_end = any();
	arg->data_used = any();
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
	if (arg->size < 72)
		return -EINVAL;
	if (has_unknown_bytes(hostile))
		return -E2BIG;
	if (arg->flags & ~(uint64_t)(FILTERS | NAMES | BUILD_IDS) ||
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
		needed = data_of(&truth->extras[i], arg->flags);
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

static void set_seed(void)
{
	const char *const wanted = getenv("PROCMAP_TEST_SEED");

	if (wanted)
		seed = strtoull(wanted, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = getpid();
	if (!seed)
		seed = 1;
}

static void log_hostile(struct __test_metadata *const _metadata,
			const struct hostile *hostile, int nr)
{
	const struct procmap_scan_arg *const arg = &hostile->call->arg;

	TH_LOG("size %#llx, flags %#llx, %#llx to %#llx, vec %#llx %#x * %u",
	       arg->size, arg->flags, arg->start, arg->end, arg->vec,
	       arg->vec_len, arg->vma_size);
	TH_LOG("data %#llx %#x: %d, walk_end %#llx, data_used %#x", arg->data,
	       arg->data_size, nr, arg->walk_end, arg->data_used);
}

TEST_F_TIMEOUT(one, process_with_hostile_arguments, 300)
{
	struct hostile hostile = {
		.call = map_room(sizeof(*hostile.call)),
		.read_only = mmap(NULL, VEC_SIZE, PROT_READ,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};
	unsigned int i, told = 0, errors = 0;

	start_target(_metadata, self, be_child);
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
		told += nr > 0;
		errors += nr < 0;
	}
	/* Neither must be rare, or nothing has been tested. */
	EXPECT_LT(ROUNDS / 10u, told);
	EXPECT_LT(ROUNDS / 10u, errors);
}

TEST_HARNESS_MAIN
