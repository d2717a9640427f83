// SPDX-License-Identifier: GPL-2.0
/*
 * Test PROCMAP_QUERY and PROCMAP_SCAN with random arguments, see procmap-fuzz.h, on
 * a process that changes.
 */
#include "procmap-fuzz.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

#define NEXT		PROCMAP_QUERY_COVERING_OR_NEXT_VMA
#define QUERY_SIZE_MIN	offsetof(struct procmap_query, vma_start)
#define ID_MAX		20

/* Sizes of the structures in the first version of the scan. */
#define ARG_SIZE_MIN	104
#define VMA_SIZE_MIN	72

/* The most that name and build ID of one mapping take. */
#define DATA_MAX	(PATH_MAX + ID_MAX)

/* Zones: of the structure, and of the buffers. */
enum { ARGUMENT, NAME, ID, VEC = NAME, DATA = ID };

/* The structure of a call. */
union structure {
	struct procmap_query query;
#ifdef HAVE_PROCMAP_SCAN
	struct procmap_scan_arg arg;
#endif
};

/* One call. */
struct attempt {
	int fd;
	bool steady;		/* nobody closes it, and the process does not exit */
	struct argument argument;
	union structure in;
	union structure out;
	struct buffer buffers[3];	/* by zone */
	uint64_t sizes[3];		/* bytes that the call may use of each */
	bool interrupted;		/* a signal has arrived meanwhile */
	int ret;		/* the number of records, or -errno */
	enum outcome outcome;
};

/**
 * struct command - an ioctl
 * @number: its number.
 * @make: makes random arguments.
 * @outcomes_of: the outcomes that the ABI allows.
 * @used: the bytes that may have been written, by zone.
 * @wrong: check the answer, and count its mappings in the area. Returns a fault, or "".
 */
struct command {
	unsigned long number;
	void (*make)(struct attempt *attempt, struct caller *caller);
	unsigned int (*outcomes_of)(const struct attempt *attempt);
	void (*used)(const struct attempt *attempt, size_t used[3]);
	const char *(*wrong)(const struct attempt *attempt,
			     unsigned long *in_area);
};

/* The one that is tested. */
static const struct command *command;

/*
 * PROCMAP_QUERY.
 */

/* A buffer that is wanted has an address and a size, most often. */
static void make_output(struct attempt *attempt, const struct zone *zones,
			unsigned int i, uint32_t usual, uint64_t *addr,
			uint32_t *size, uint64_t *seed)
{
	struct buffer *const buffer = &attempt->buffers[i];

	if (rand_below(2, seed)) {
		*size = some_size(usual, seed);
		*buffer = some_buffer(&zones[i], *size, 1, seed);
		*addr = buffer->addr;
		fill_buffer(&zones[i], buffer, *size);
	}
	if (!rand_below(32, seed))
		*addr = 0;
	if (!rand_below(32, seed))
		*size = 0;
}

static void make_query(struct attempt *attempt, struct caller *caller)
{
	uint64_t *const seed = &caller->seed;
	struct procmap_query query = {
		.size = some_size(sizeof(query), seed),
		.query_flags = some_bits(FILTERS | NEXT, seed),
		.query_addr = some_address(seed),
	};

	if (rand_below(2, seed))
		query.query_flags |= NEXT;
	make_output(attempt, caller->zones, NAME,
		    rand_below(4, seed) ? PATH_MAX : rand_below(64, seed),
		    (uint64_t *)&query.vma_name_addr, &query.vma_name_size, seed);
	make_output(attempt, caller->zones, ID, ID_MAX,
		    (uint64_t *)&query.build_id_addr, &query.build_id_size, seed);
	put_argument(&attempt->argument, &caller->zones[ARGUMENT], &query,
		     sizeof(query), seed);
	memcpy(&attempt->in.query, &query, attempt->argument.known);
	/* An address of which the structure has only some bytes is another. */
	if (attempt->in.query.vma_name_addr != attempt->buffers[NAME].addr)
		memset(&attempt->buffers[NAME], 0, sizeof(struct buffer));
	if (attempt->in.query.build_id_addr != attempt->buffers[ID].addr)
		memset(&attempt->buffers[ID], 0, sizeof(struct buffer));
	attempt->sizes[NAME] = attempt->in.query.vma_name_size;
	attempt->sizes[ID] = attempt->in.query.build_id_size;
}

static unsigned int outcomes_of_query(const struct attempt *attempt)
{
	const struct procmap_query *const query = &attempt->in.query;
	const struct argument *const argument = &attempt->argument;
	unsigned int set;

	set = outcomes_of_argument(argument, QUERY_SIZE_MIN, sizeof(*query));
	if (set)
		return set;
	if (query->query_flags & ~(uint64_t)(FILTERS | NEXT) ||
	    !query->vma_name_addr != !query->vma_name_size ||
	    !query->build_id_addr != !query->build_id_size)
		return SET(INVALID);

	set = SET(FINE) | SET(NOTHING);
	if (!attempt->steady)
		set |= SET(GONE);
	if ((query->vma_name_size && query->vma_name_size < PATH_MAX) ||
	    (query->build_id_size && query->build_id_size < ID_MAX))
		set |= SET(NAME_LONG);
	if (attempt->buffers[NAME].room < min_u64(query->vma_name_size, PATH_MAX) ||
	    attempt->buffers[ID].room < min_u64(query->build_id_size, ID_MAX))
		set |= SET(FAULT);
	if (argument->buffer.room < argument->known)
		set = (set | SET(FAULT)) & ~SET(FINE);
	return set;
}

/* After an error, nothing is written, but for a fault at one of the buffers. */
static void used_by_query(const struct attempt *attempt, size_t used[3])
{
	if (attempt->outcome == FINE) {
		used[NAME] = attempt->out.query.vma_name_size;
		used[ID] = attempt->out.query.build_id_size;
	} else {
		used[ARGUMENT] = 0;
		used[NAME] = attempt->outcome == FAULT ? attempt->sizes[NAME] : 0;
		used[ID] = attempt->outcome == FAULT ? attempt->sizes[ID] : 0;
	}
}

static const char *wrong_answer(const struct attempt *attempt,
				unsigned long *in_area)
{
	const struct procmap_query *const query = &attempt->in.query;
	const struct procmap_query *const answer = &attempt->out.query;
	const struct found found = {
		.start = answer->vma_start,
		.end = answer->vma_end,
		.permissions = answer->vma_flags,
		.page_size = answer->vma_page_size,
		.offset = answer->vma_offset,
		.inode = answer->inode,
		.device = answer->dev_major | answer->dev_minor,
		.name = query->vma_name_size ?
			(char *)attempt->buffers[NAME].bytes : NULL,
		.name_size = answer->vma_name_size,
		.id = query->build_id_size ? attempt->buffers[ID].bytes : NULL,
		.id_size = answer->build_id_size,
	};

	/* A structure that ends before them has no fields to look at. */
	if (attempt->outcome != FINE ||
	    attempt->argument.known < sizeof(*answer))
		return "";
	if (memcmp(answer, query, QUERY_SIZE_MIN) ||
	    answer->vma_name_addr != query->vma_name_addr ||
	    answer->build_id_addr != query->build_id_addr)
		return "an input has changed";
	if (answer->vma_name_size > query->vma_name_size ||
	    answer->build_id_size > query->build_id_size)
		return "more than the size of a buffer";
	return wrong_mapping(&found, in_area);
}

static const struct command query = {
	PROCMAP_QUERY, make_query, outcomes_of_query, used_by_query,
	wrong_answer,
};

/*
 * PROCMAP_SCAN.
 */

#ifdef HAVE_PROCMAP_SCAN

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
	struct procmap_scan_arg *const arg = &attempt->in.arg;
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
	struct procmap_scan_arg *const arg = &attempt->in.arg;
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
	struct procmap_scan_arg *const arg = &attempt->in.arg;
	uint64_t *const seed = &caller->seed;

	arg->size = some_size(sizeof(*arg), seed);
	arg->filter = some_bits(SCAN_FILTERS, seed);
	arg->want = rand_below(4, seed) ? ALL : some_bits(ALL, seed);
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
	       arg->want & ~(uint64_t)ALL ||
	       arg->start % page_size() || arg->end < arg->start ||
	       !arg->vec || arg->vec % 8 ||
	       !arg->vec_len || arg->vec_len > INT32_MAX ||
	       arg->vma_size < VMA_SIZE_MIN || arg->vma_size > page_size() ||
	       arg->vma_size % 8 || !arg->data != !arg->data_size;
}

static unsigned int outcomes_of_scan(const struct attempt *attempt)
{
	const struct procmap_scan_arg *const arg = &attempt->in.arg;
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
						   attempt->in.arg.vma_size;
		used[DATA] = attempt->out.arg.data_used;
	}
}

static const char *wrong_found(const struct attempt *attempt,
			       const struct procmap_vma *record,
			       unsigned long *in_area)
{
	const struct procmap_scan_arg *const arg = &attempt->out.arg;
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
		.name = arg->want & NAMES && data ?
			data + record->name_offset : NULL,
		.name_size = record->name_size,
		.id = arg->want & BUILD_IDS && data && !not_read ?
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
	const struct procmap_scan_arg *const in = &attempt->in.arg;
	const struct procmap_scan_arg *const out = &attempt->out.arg;
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

static const struct command scan = {
	PROCMAP_SCAN, make_scan, outcomes_of_scan, used_by_scan,
	wrong_outputs,
};

#endif

/*
 * Any of them.
 */

/* Check the outcome of a call. Returns its fault, or "". */
static const char *wrong_outcome(struct caller *caller,
				 const struct attempt *attempt)
{
	const unsigned int unsteady = attempt->steady ? 0 : SET(BAD_FD) |
							   SET(NO_IOCTL);
	const struct argument *const argument = &attempt->argument;
	size_t used[3] = { [ARGUMENT] = argument->known };

	if (!((unsteady | command->outcomes_of(attempt)) &
	      SET(attempt->outcome)))
		return "the outcome";
	command->used(attempt, used);
	if (!is_argument_left_alone(argument, &caller->zones[ARGUMENT],
				    used[ARGUMENT]))
		return "what is around the structure";
	if (!is_left_alone(&caller->zones[1], &attempt->buffers[1],
			   attempt->sizes[1], used[1]) ||
	    !is_left_alone(&caller->zones[2], &attempt->buffers[2],
			   attempt->sizes[2], used[2]))
		return "what is around a buffer";
	return command->wrong(attempt, &caller->in_area);
}

static void log_wrong(struct caller *caller, const struct attempt *attempt,
		      const char *wrong)
{
	int i, used;

	used = sprintf(caller->wrong, "%s; %d, %s; steady %d; readable %zu, room %zu, %zu;",
		       wrong, attempt->ret, outcomes[attempt->outcome].name,
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
	command->make(&attempt, caller);
	arg = (void *)(uintptr_t)attempt.argument.buffer.addr;
	attempt.ret = ioctl(attempt.fd, command->number, arg);
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

FIXTURE_VARIANT(calls)
{
	const struct command *command;
};

FIXTURE_VARIANT_ADD(calls, query) {
	.command = &query,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(calls, scan) {
	.command = &scan,
};
#endif

FIXTURE_SETUP(calls)
{
	command = variant->command;
#ifdef HAVE_PROCMAP_SCAN
	if (command == &scan)
		skip_without_scan(_metadata);
#endif
}

FIXTURE_TEARDOWN(calls)
{
}

TEST_F_TIMEOUT(calls, with_random_arguments, SOAK_TIMEOUT)
{
	run_chaos(_metadata, &self->chaos, call_once);
}

TEST_HARNESS_MAIN
