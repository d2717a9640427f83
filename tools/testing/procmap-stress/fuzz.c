// SPDX-License-Identifier: GPL-2.0
/*
 * Call PROCMAP_QUERY or PROCMAP_SCAN at random: from threads, with arguments near every
 * boundary, on files that another thread closes meanwhile, about a process that never
 * stays the same.
 *
 * Some rules hold all the time: an error is one that is documented, and the caller's inputs
 * stay as they are. The mappings that are returned meanwhile are tested by change-at-random.
 */
#include <stdatomic.h>

#include "kselftest_harness.h"
#include "stress_util.h"

#define NR_CALLERS	3
#define NR_FILES	8

/* Changes of the target until it exits. */
#define CHANGES_MAX	2000

/* It also forks, and moves mappings elsewhere. */
static void be_target(uint64_t seed)
{
	const int files[2] = { make_elf("a\nfile", scene_id), make_elf("b", scene_id) };
	const unsigned int changes = 1 + rand_below(CHANGES_MAX, &seed);
	unsigned int n;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!map_changing_area())
		_exit(1);
	for (n = 0; n < changes && change_area(n, files, &seed); n++) {
		mremap(page_at(rand_below(NR_PAGES, &seed)), page_size(),
		       (1 + rand_below(4, &seed)) * page_size(), MREMAP_MAYMOVE);
		pid = n % 32 ? -1 : fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		usleep(rand_below(200, &seed));
	}
	_exit(0);
}

#define BUFFER_SIZE	(8 * page_size())

/**
 * struct buffer - memory for one argument
 * @bytes: all of it; a page without access follows.
 * @addr: the address of the argument.
 * @at: where in @bytes that is.
 * @readable: bytes that can be read from @addr on: 0 if it is elsewhere.
 */
struct buffer {
	uint8_t *bytes;
	uint64_t addr;
	size_t at;
	size_t readable;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t wild_address(uint64_t *seed)
{
	static const uint64_t wild[] = {
		1, 8, AREA, 0x7fffffff, 0x80000000, 0xfffff000, 0xffffffff,
		(1ull << 47) - 4096, (1ull << 47) - 1, 1ull << 47, 1ull << 48,
		1ull << 63, 0xffff888000000000, 0xffffffff81000000,
		0xffffffffff600000, ~0ull - 4095, ~0ull - 103, ~0ull - 7, ~0ull,
	};

	return wild[rand_below(ARRAY_SIZE(wild), seed)];
}

/* It is at no known place. */
static void leave_buffer(struct buffer *buffer, uint64_t addr)
{
	buffer->addr = addr;
	buffer->readable = 0;
}

/* Place an argument of @size bytes, or of fewer, with FILL in it and around it. */
static void place_buffer(struct buffer *buffer, size_t size, size_t align, uint64_t *seed)
{
	size = min_u64(size, BUFFER_SIZE);
	switch (rand_below(32, seed)) {
	case 0:
		leave_buffer(buffer, wild_address(seed));
		return;
	case 1:
		buffer->at = BUFFER_SIZE - rand_below(size + 1, seed);
		break;
	case 2:
	case 3:
	case 4:
		buffer->at = BUFFER_SIZE - size;
		break;
	default:
		buffer->at = rand_below(BUFFER_SIZE - size + 1, seed);
		break;
	}
	buffer->at -= buffer->at % align;
	buffer->readable = BUFFER_SIZE - buffer->at;
	buffer->addr = (uintptr_t)buffer->bytes + buffer->at;
	memset(buffer->bytes, FILL, BUFFER_SIZE);
}

/* A size near a boundary, or most often @usual. */
static uint64_t some_size(uint64_t usual, uint64_t *seed)
{
	const uint64_t sizes[] = {
		0, 1, 7, 8, 16, 19, 20, 21, 23, 24, 25, 48, 56, 71, 72, 80, 88,
		95, 96, 97, 103, 104, 105, 112, 255, 256, 257, 4095, 4096, 4097,
		INT32_MAX, (uint64_t)INT32_MAX + 1, UINT32_MAX, 1ull << 32,
		~0ull - 7, ~0ull,
	};

	if (rand_below(8, seed))
		return usual;
	if (rand_below(2, seed))
		return usual + rand_below(9, seed) - 4;
	return sizes[rand_below(ARRAY_SIZE(sizes), seed)];
}

/* An address to look at. */
static uint64_t some_address(uint64_t *seed)
{
	switch (rand_below(8, seed)) {
	case 0:
		return wild_address(seed);
	case 1:
		return (uintptr_t)scene_id;
	case 2:
		return 0;
	case 3:
		return addr_of(rand_below(NR_PAGES, seed)) + rand_below(3, seed) - 1;
	default:
		return addr_of(rand_below(NR_PAGES, seed));
	}
}

/* Some of the known bits, or none, or all kinds of others. */
static uint64_t some_bits(uint64_t known, uint64_t *seed)
{
	switch (rand_below(32, seed)) {
	case 0:
		return next_random(seed);
	case 1:
		return 1ull << rand_below(64, seed);
	case 2:
	case 3:
	case 4:
	case 5:
		return next_random(seed) & known;
	case 6:
	case 7:
	case 8:
	case 9:
		return 1ull << rand_below(6, seed) & known;
	default:
		return 0;
	}
}

/* The structure of either ioctl. */
union argument {
	uint64_t size;
	struct procmap_query query;
	struct procmap_scan_arg scan;
};

/* Buffers: of the structure, and those that it points to. */
enum { ARGUMENT, NAME, ID, VEC = NAME, DATA = ID, NR_BUFFERS };

/**
 * struct caller - a thread that calls the ioctl
 * @thread: the thread.
 * @seed: the state of its random numbers.
 * @maps: its own maps file, which nobody else closes.
 * @buffers: its buffers.
 * @answers: calls that were no error.
 * @known: bytes of the structure that the kernel knows.
 * @in: the structure.
 * @out: the same after the call.
 * @ret: the value of the call, or -errno.
 * @wrong: the fault of the last call, or "".
 */
struct caller {
	pthread_t thread;
	uint64_t seed;
	int maps;
	struct buffer buffers[NR_BUFFERS];
	unsigned long answers;
	size_t known;
	union argument in;
	union argument out;
	int ret;
	char wrong[512];
};

/**
 * struct run - what the threads share
 * @soak: how long the run is.
 * @request: the ioctl.
 * @calls: calls so far.
 * @stop: set once it is over.
 * @fds: the files.
 * @target: the process that changes.
 * @callers: the callers.
 */
static struct run {
	struct soak soak;
	unsigned long request;
	atomic_ulong calls;
	atomic_bool stop;
	atomic_int fds[NR_FILES];
	pid_t target;
	struct caller callers[NR_CALLERS];
} run;

/* Put the structure somewhere. The kernel sees as much of it as its size says. */
static void put_argument(struct caller *caller)
{
	struct buffer *const buffer = &caller->buffers[ARGUMENT];
	uint64_t *const seed = &caller->seed;
	const size_t size = min_u64(caller->in.size, 4096 + 64);
	uint8_t argument[4096 + 64] = {};

	memcpy(argument, &caller->in, sizeof(caller->in));
	if (size > sizeof(caller->in) && !rand_below(4, seed))
		argument[sizeof(caller->in) + rand_below(size - sizeof(caller->in), seed)] = 1;
	caller->known = min_u64(sizeof(caller->in), size);
	memset((char *)&caller->in + caller->known, 0, sizeof(caller->in) - caller->known);

	place_buffer(buffer, size < 8 ? 8 : size, rand_below(2, seed) ? 8 : 1, seed);
	/* A pointer to it has no more bits. */
	buffer->addr = min_u64(buffer->addr, UINTPTR_MAX);
	memcpy(buffer->bytes + buffer->at, argument,
	       min_u64(size < 8 ? 8 : size, buffer->readable));
}

/*
 * The query.
 */

/* A buffer that is wanted has an address and a size, most often. */
static void make_output(struct buffer *buffer, uint32_t usual, __u64 *addr,
			uint32_t *size, uint64_t *seed)
{
	leave_buffer(buffer, 0);
	if (rand_below(2, seed)) {
		*size = some_size(usual, seed);
		place_buffer(buffer, *size, 1, seed);
		*addr = buffer->addr;
	}
	if (!rand_below(32, seed))
		*addr = 0;
	if (!rand_below(32, seed))
		*size = 0;
}

static void make_query(struct caller *caller)
{
	struct buffer *const name = &caller->buffers[NAME];
	struct buffer *const id = &caller->buffers[ID];
	struct procmap_query *const query = &caller->in.query;
	uint64_t *const seed = &caller->seed;

	query->size = some_size(sizeof(*query), seed);
	query->query_flags = some_bits(QUERY_FILTERS | QUERY_NEXT, seed);
	query->query_addr = some_address(seed);
	if (rand_below(2, seed))
		query->query_flags |= QUERY_NEXT;
	make_output(name, rand_below(4, seed) ? PATH_MAX : rand_below(64, seed),
		    &query->vma_name_addr, &query->vma_name_size, seed);
	make_output(id, BUILD_ID_SIZE, &query->build_id_addr, &query->build_id_size, seed);
	put_argument(caller);
}

static const char *wrong_query(const struct caller *caller)
{
	const struct procmap_query *const query = &caller->in.query;
	const struct procmap_query *const answer = &caller->out.query;

	/* A structure that ends before them has no fields to look at. */
	if (caller->ret || caller->known < sizeof(*answer))
		return "";
	if (memcmp(answer, query, offsetof(struct procmap_query, vma_start)) ||
	    answer->vma_name_addr != query->vma_name_addr ||
	    answer->build_id_addr != query->build_id_addr)
		return "an input has changed";
	if (answer->vma_name_size > query->vma_name_size ||
	    answer->build_id_size > query->build_id_size)
		return "more than the size of a buffer";
	return "";
}

/*
 * The scan.
 */

static uint64_t vec_size(const struct procmap_scan_arg *arg)
{
	return (uint64_t)arg->vec_len * arg->vma_size;
}

static void make_range(struct procmap_scan_arg *arg, uint64_t *seed)
{
	arg->start = rand_below(4, seed) ? some_address(seed) : 0;
	if (rand_below(32, seed))
		arg->start -= arg->start % page_size();
	switch (rand_below(8, seed)) {
	case 0:
		arg->end = some_address(seed);
		break;
	case 1:
	case 2:
		arg->end = arg->start + rand_below(32, seed) * page_size();
		break;
	default:
		arg->end = NO_END;
		break;
	}
}

static void make_scan(struct caller *caller)
{
	struct buffer *const vec = &caller->buffers[VEC];
	struct buffer *const data = &caller->buffers[DATA];
	struct procmap_scan_arg *const arg = &caller->in.scan;
	uint64_t *const seed = &caller->seed;

	arg->size = some_size(sizeof(*arg), seed);
	arg->filter = some_bits(SCAN_FILTERS, seed);
	arg->want = rand_below(4, seed) ? SCAN_ALL : some_bits(SCAN_ALL, seed);
	arg->known_generation = rand_below(2, seed) ? 0 : next_random(seed);
	make_range(arg, seed);
	arg->vma_size = some_size(sizeof(struct procmap_vma), seed);
	arg->vec_len = some_size(1 + rand_below(rand_below(4, seed) ? 8 : 200, seed), seed);
	place_buffer(vec, vec_size(arg), rand_below(32, seed) ? 8 : 1, seed);
	arg->vec = vec->addr;
	leave_buffer(data, 0);
	if (rand_below(4, seed)) {
		arg->data_size = some_size(rand_below(rand_below(2, seed) ? 64 : 8192, seed),
					   seed);
		place_buffer(data, arg->data_size, 1, seed);
	}
	if (!arg->data_size && rand_below(32, seed))
		leave_buffer(data, 0);
	arg->data = data->addr;
	/* The values of outputs do not matter. */
	arg->walk_end = next_random(seed);
	arg->generation = next_random(seed);
	arg->data_used = next_random(seed);
	arg->data_needed = next_random(seed);
	arg->flags = next_random(seed);
	put_argument(caller);
}

/* After other errors than these, the outputs are undefined. */
static const char *wrong_scan_of(const struct caller *caller)
{
	const struct procmap_scan_arg *const in = &caller->in.scan;
	const struct procmap_scan_arg *const out = &caller->out.scan;

	if (caller->ret < 0 && caller->ret != -ENOSPC && caller->ret != -EINTR)
		return "";
	if (memcmp(in, out, offsetof(struct procmap_scan_arg, walk_end)) ||
	    in->vec != out->vec || in->vec_len != out->vec_len ||
	    in->vma_size != out->vma_size || in->data != out->data ||
	    in->data_size != out->data_size)
		return "an input has changed";
	if (caller->ret > (int64_t)in->vec_len || out->data_used > in->data_size)
		return "more than the size of a buffer";
	return "";
}

/*
 * The run.
 */

/* Check the result of a call. Returns its fault, or "". */
static const char *wrong_call(const struct caller *caller)
{
	/* Each ioctl has two of its own; and the file may be of another kind. */
	static const int errors[] = { E2BIG, EFAULT, EINVAL, ESRCH, EBADF, ENOTTY };
	const bool is_query = run.request == PROCMAP_QUERY;
	bool is_known = caller->ret >= 0 ||
			caller->ret == -(is_query ? ENOENT : ENOSPC) ||
			caller->ret == -(is_query ? ENAMETOOLONG : EINTR);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		is_known = is_known || caller->ret == -errors[i];
	if (!is_known)
		return "the result";
	return is_query ? wrong_query(caller) : wrong_scan_of(caller);
}

static void log_wrong(struct caller *caller, const char *wrong)
{
	int i, used;

	used = sprintf(caller->wrong, "%s; %d;", wrong, caller->ret);
	for (i = 0; i < 13; i++)
		used += sprintf(caller->wrong + used, " %jx",
				((uintmax_t *)&caller->in)[i]);
}

/* It interrupts a scan. */
static void ignore_signal(int signal)
{
	(void)signal;
}

static void call_once(struct caller *caller)
{
	const struct buffer *const buffer = &caller->buffers[ARGUMENT];
	const char *wrong;
	int fd;

	fd = rand_below(4, &caller->seed) ? run.fds[rand_below(NR_FILES, &caller->seed)] :
					    caller->maps;
	caller->in = (union argument) {};
	caller->out = (union argument) {};
	if (run.request == PROCMAP_QUERY)
		make_query(caller);
	else
		make_scan(caller);
	caller->ret = ioctl(fd, run.request, (void *)(uintptr_t)buffer->addr);
	if (caller->ret < 0)
		caller->ret = -errno;
	else
		caller->answers++;
	memcpy(&caller->out, buffer->bytes + buffer->at,
	       min_u64(caller->known, buffer->readable));
	wrong = wrong_call(caller);
	if (*wrong)
		log_wrong(caller, wrong);
}

static void start_target(uint64_t *seed)
{
	run.target = fork();
	if (!run.target)
		be_target(next_random(seed));
	next_random(seed);
}

/* Another file for the callers, or a negative number. */
static int another_file(uint64_t *seed)
{
	char path[64];

	switch (rand_below(16, seed)) {
	case 0:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	case 1:
		return open_maps(2);
	case 2:
		return open_maps(getpid());
	case 3:
	case 4:
		return fcntl(run.fds[rand_below(NR_FILES, seed)], F_DUPFD_CLOEXEC, 0);
	case 5:
		sprintf(path, "/proc/%d/task/%d/maps", run.target, run.target);
		return open(path, O_RDONLY | O_CLOEXEC);
	default:
		return open_maps(run.target);
	}
}

/* Open and close files, and interrupt callers. */
static void change_files(void)
{
	uint64_t seed = soak_seed(&run.soak, NR_CALLERS);
	int fd;

	start_target(&seed);
	while (!run.stop) {
		fd = another_file(&seed);
		if (fd >= 0)
			close(atomic_exchange(&run.fds[rand_below(NR_FILES, &seed)], fd));
		if (waitpid(run.target, NULL, WNOHANG) == run.target)
			start_target(&seed);
		if (!rand_below(16, &seed))
			pthread_kill(run.callers[rand_below(NR_CALLERS, &seed)].thread,
				     SIGUSR1);
		usleep(rand_below(1000, &seed));
	}
	kill(run.target, SIGKILL);
	waitpid(run.target, NULL, 0);
}

static void *call_at_random(void *arg)
{
	struct caller *const caller = arg;

	while (!run.stop) {
		call_once(caller);
		if (*caller->wrong || soak_is_over(&run.soak, ++run.calls))
			run.stop = true;
	}
	return NULL;
}

FIXTURE(calls)
{
};

FIXTURE_VARIANT(calls)
{
	unsigned long request;
};

FIXTURE_VARIANT_ADD(calls, query) { PROCMAP_QUERY };
FIXTURE_VARIANT_ADD(calls, scan) { PROCMAP_SCAN };

FIXTURE_SETUP(calls)
{
	const struct sigaction action = { .sa_handler = ignore_signal };
	unsigned int i, j;

	if (variant->request == PROCMAP_SCAN)
		SKIP_WITHOUT_SCAN();
	run.soak = begin_soak();
	run.request = variant->request;
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	for (i = 0; i < NR_FILES; i++)
		run.fds[i] = open_maps(0);
	for (i = 0; i < NR_CALLERS; i++) {
		run.callers[i].seed = soak_seed(&run.soak, i);
		run.callers[i].maps = open_maps(0);
		for (j = 0; j < NR_BUFFERS; j++)
			run.callers[i].buffers[j].bytes = (uint8_t *)
				map_to_page_end(BUFFER_SIZE, PROT_READ | PROT_WRITE);
	}
}

FIXTURE_TEARDOWN(calls)
{
}

TEST_F_TIMEOUT(calls, with_random_arguments, SOAK_TIMEOUT)
{
	unsigned long answers = 0;
	unsigned int i;

	for (i = 0; i < NR_CALLERS; i++)
		ASSERT_EQ(0, pthread_create(&run.callers[i].thread, NULL, call_at_random,
					    &run.callers[i]));
	change_files();
	for (i = 0; i < NR_CALLERS; i++) {
		ASSERT_EQ(0, pthread_join(run.callers[i].thread, NULL));
		EXPECT_STREQ("", run.callers[i].wrong);
		answers += run.callers[i].answers;
	}
	TH_LOG("%lu calls, %lu answers", run.calls, answers);
	EXPECT_LT(0u, answers);
}

TEST_HARNESS_MAIN
