// SPDX-License-Identifier: GPL-2.0
/*
 * Call PROCMAP_SCAN with random arguments, see fuzz.h, on a process that changes.
 */
#include "kselftest_harness.h"
#include "fuzz.h"

/* Sizes of the structures in the first version of the scan. */
#define ARG_SIZE_MIN	104
#define VMA_SIZE_MIN	72

/* The most that name and build ID of one mapping take. */
#define DATA_MAX	(PATH_MAX + BUILD_ID_SIZE)

/* Zones: of the structure, and of the buffers. */
enum { ARGUMENT, VEC, DATA };

/* One call. */
struct attempt {
	int fd;
	bool steady;		/* nobody closes it, and the process does not exit */
	struct argument argument;
	struct procmap_scan_arg in;
	struct procmap_scan_arg out;
	struct buffer buffers[3];	/* by zone */
	uint64_t sizes[3];		/* bytes that the call may use of each */
	bool interrupted;		/* a signal has arrived meanwhile */
	int ret;		/* its value, or -errno */
	enum outcome outcome;
};

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

static void make_vec(struct attempt *attempt, const struct zone *zone,
		     uint64_t *seed)
{
	struct procmap_scan_arg *const arg = &attempt->in;
	const size_t align = rand_below(32, seed) ? 8 : 1;

	arg->vma_size = some_size(sizeof(struct procmap_vma), seed);
	arg->vec_len = some_size(1 + rand_below(rand_below(4, seed) ? 8 : 200, seed),
				 seed);
	attempt->sizes[VEC] = vec_size(arg);
	attempt->buffers[VEC] = some_buffer(zone, vec_size(arg), align, seed);
	arg->vec = attempt->buffers[VEC].addr;
	fill_buffer(zone, &attempt->buffers[VEC], vec_size(arg));
}

static void make_data(struct attempt *attempt, const struct zone *zone,
		      uint64_t *seed)
{
	struct procmap_scan_arg *const arg = &attempt->in;
	struct buffer *const data = &attempt->buffers[DATA];

	if (rand_below(4, seed)) {
		arg->data_size = some_size(rand_below(rand_below(2, seed) ? 64 : 8192,
						      seed), seed);
		*data = some_buffer(zone, arg->data_size, 1, seed);
		arg->data = data->addr;
		fill_buffer(zone, data, arg->data_size);
	}
	if (!arg->data_size && rand_below(32, seed)) {
		arg->data = 0;
		memset(data, 0, sizeof(*data));
	}
	attempt->sizes[DATA] = arg->data_size;
}

static void make_scan(struct attempt *attempt, struct caller *caller)
{
	struct procmap_scan_arg *const arg = &attempt->in;
	uint64_t *const seed = &caller->seed;

	arg->size = some_size(sizeof(*arg), seed);
	arg->filter = some_bits(SCAN_FILTERS, seed);
	arg->want = rand_below(4, seed) ? SCAN_ALL : some_bits(SCAN_ALL, seed);
	arg->known_generation = rand_below(2, seed) ? 0 : next_random(seed);
	make_range(arg, seed);
	make_vec(attempt, &caller->zones[VEC], seed);
	make_data(attempt, &caller->zones[DATA], seed);
	/* The values of outputs do not matter. */
	arg->walk_end = next_random(seed);
	arg->generation = next_random(seed);
	arg->data_used = next_random(seed);
	arg->data_needed = next_random(seed);
	arg->flags = next_random(seed);
	put_argument(&attempt->argument, &caller->zones[ARGUMENT], arg,
		     sizeof(*arg), seed);
}

static bool is_invalid(const struct procmap_scan_arg *arg)
{
	return arg->filter & ~(uint64_t)SCAN_FILTERS ||
	       arg->want & ~(uint64_t)SCAN_ALL ||
	       arg->start % page_size() || arg->end < arg->start ||
	       !arg->vec || arg->vec % 8 ||
	       !arg->vec_len || arg->vec_len > INT32_MAX ||
	       arg->vma_size < VMA_SIZE_MIN || arg->vma_size > page_size() ||
	       arg->vma_size % 8 || !arg->data != !arg->data_size;
}

static unsigned int outcomes_of_scan(const struct attempt *attempt)
{
	const struct procmap_scan_arg *const arg = &attempt->in;
	const struct argument *const argument = &attempt->argument;
	unsigned int set;

	set = outcomes_of_argument(argument, ARG_SIZE_MIN, sizeof(*arg));
	if (set)
		return set;
	if (is_invalid(arg))
		return SET(INVALID);

	set = SET(FINE);
	if (!attempt->steady)
		set |= SET(GONE);
	if (attempt->interrupted)
		set |= SET(INTERRUPTED);
	if (arg->want && arg->data_size < DATA_MAX)
		set |= SET(NO_SPACE);
	if (attempt->buffers[VEC].room < vec_size(arg) ||
	    attempt->buffers[DATA].room < arg->data_size)
		set |= SET(FAULT);
	if (argument->buffer.room < argument->known)
		set = SET(FAULT) | (set & SET(GONE));
	return set;
}

/* After other errors, the outputs are undefined, within their sizes. */
static bool has_outputs(const struct attempt *attempt)
{
	return attempt->outcome == FINE || attempt->outcome == NO_SPACE ||
	       attempt->outcome == INTERRUPTED;
}

static void used_by_scan(const struct attempt *attempt, size_t used[3])
{
	used[VEC] = attempt->sizes[VEC];
	used[DATA] = attempt->sizes[DATA];
	if (has_outputs(attempt)) {
		used[VEC] = attempt->ret < 0 ? 0 : (uint64_t)attempt->ret *
						   attempt->in.vma_size;
		used[DATA] = attempt->out.data_used;
	}
}

static const char *wrong_found(const struct attempt *attempt,
			       const struct procmap_vma *record,
			       unsigned long *in_area)
{
	const struct procmap_scan_arg *const arg = &attempt->out;
	const uint64_t reported = PROCMAP_VMA_FILE_BACKED |
				  PROCMAP_VMA_BUILD_ID_NOT_READ;
	const bool not_read = record->flags & PROCMAP_VMA_BUILD_ID_NOT_READ;
	const char *const data = (char *)attempt->buffers[DATA].bytes;
	const struct found found = {
		.start = record->start,
		.end = record->end,
		.permissions = record->flags & ~reported,
		.page_size = record->page_size,
		.offset = record->offset,
		.inode = record->inode,
		.device = record->dev_major | record->dev_minor,
		.name = arg->want & PROCMAP_SCAN_NAMES && data ?
			data + record->name_offset : NULL,
		.name_size = record->name_size,
		.id = arg->want & PROCMAP_SCAN_BUILD_IDS && data && !not_read ?
		      (uint8_t *)data + record->build_id_offset : NULL,
		.id_size = record->build_id_size,
	};

	if (arg->filter & ~record->flags)
		return "a record that does not pass the filters";
	if ((record->name_size && (uint64_t)record->name_offset +
				  record->name_size > arg->data_used) ||
	    (record->build_id_size && (uint64_t)record->build_id_offset +
				      record->build_id_size > arg->data_used))
		return "data that is not used";
	return wrong_mapping(&found, in_area);
}

static const char *wrong_outputs(const struct attempt *attempt,
				 unsigned long *in_area)
{
	const struct procmap_scan_arg *const in = &attempt->in;
	const struct procmap_scan_arg *const out = &attempt->out;
	const uint8_t *bytes = attempt->buffers[VEC].bytes;
	const char *wrong = "";
	int i;

	if (!has_outputs(attempt))
		return "";
	if (memcmp(in, out, offsetof(struct procmap_scan_arg, walk_end)) ||
	    in->vec != out->vec || in->vec_len != out->vec_len ||
	    in->vma_size != out->vma_size || in->data != out->data ||
	    in->data_size != out->data_size)
		return "an input has changed";
	if (attempt->ret > (int64_t)in->vec_len ||
	    out->data_used > in->data_size)
		return "more than the size of a buffer";
	for (i = 0; bytes && i < attempt->ret; i++, bytes += in->vma_size) {
		struct procmap_vma record;

		memcpy(&record, bytes, sizeof(record));
		wrong = wrong_found(attempt, &record, in_area);
		if (*wrong)
			return wrong;
	}
	return "";
}

/* Check the outcome of a call. Returns its fault, or "". */
static const char *wrong_outcome(struct caller *caller,
				 const struct attempt *attempt)
{
	const unsigned int unsteady = attempt->steady ? 0 : SET(BAD_FD) |
							   SET(NO_IOCTL);
	const struct argument *const argument = &attempt->argument;
	size_t used[3] = { [ARGUMENT] = argument->known };

	if (!((unsteady | outcomes_of_scan(attempt)) &
	      SET(attempt->outcome)))
		return "the outcome";
	used_by_scan(attempt, used);
	if (!is_argument_left_alone(argument, &caller->zones[ARGUMENT],
				    used[ARGUMENT]))
		return "what is around the structure";
	if (!is_left_alone(&caller->zones[1], &attempt->buffers[1],
			   attempt->sizes[1], used[1]) ||
	    !is_left_alone(&caller->zones[2], &attempt->buffers[2],
			   attempt->sizes[2], used[2]))
		return "what is around a buffer";
	return wrong_outputs(attempt, &caller->in_area);
}

static void log_wrong(struct caller *caller, const struct attempt *attempt,
		      const char *wrong)
{
	int i, used;

	used = sprintf(caller->wrong, "%s; %d, %s; steady %d; readable %zu, room %zu, %zu;",
		       wrong, attempt->ret, name_of_outcome(attempt->outcome),
		       attempt->steady, attempt->argument.buffer.readable,
		       attempt->buffers[1].room, attempt->buffers[2].room);
	for (i = 0; i < 13; i++)
		used += sprintf(caller->wrong + used, " %jx",
				((uintmax_t *)attempt->argument.bytes)[i]);
}

static void call_once(struct caller *caller)
{
	const unsigned int before = __atomic_load_n(&interrupts,
						    __ATOMIC_RELAXED);
	struct attempt attempt = {};
	const char *wrong;
	void *arg;

	attempt.fd = some_file(caller, &attempt.steady);
	make_scan(&attempt, caller);
	arg = (void *)(uintptr_t)attempt.argument.buffer.addr;
	attempt.ret = ioctl(attempt.fd, PROCMAP_SCAN, arg);
	if (attempt.ret < 0)
		attempt.ret = -errno;
	attempt.outcome = outcome_of(attempt.ret < 0 ? -attempt.ret : 0);
	if (attempt.argument.buffer.bytes)
		memcpy(&attempt.out, attempt.argument.buffer.bytes,
		       min_u64(attempt.argument.known,
			       attempt.argument.buffer.readable));
	attempt.interrupted = __atomic_load_n(&interrupts, __ATOMIC_RELAXED) !=
			      before;
	caller->counts[attempt.outcome]++;
	wrong = wrong_outcome(caller, &attempt);
	if (*wrong)
		log_wrong(caller, &attempt, wrong);
}

FIXTURE(calls)
{
	struct chaos chaos;
};

FIXTURE_SETUP(calls)
{
	SKIP_WITHOUT_SCAN();
}

FIXTURE_TEARDOWN(calls)
{
}

TEST_F_TIMEOUT(calls, with_random_arguments, SOAK_TIMEOUT)
{
	EXPECT_STREQ("", run_chaos(&self->chaos, call_once));
}

TEST_HARNESS_MAIN
