// SPDX-License-Identifier: GPL-2.0
/*
 * Call PROCMAP_QUERY with random arguments, see fuzz.h, on a process that changes.
 */
#include "kselftest_harness.h"
#include "fuzz.h"

#define QUERY_SIZE_MIN	offsetof(struct procmap_query, vma_start)

/* Zones: of the structure, and of the buffers. */
enum { ARGUMENT, NAME, ID };

/* One call. */
struct attempt {
	int fd;
	bool steady;		/* nobody closes it, and the process does not exit */
	struct argument argument;
	struct procmap_query in;
	struct procmap_query out;
	struct buffer buffers[3];	/* by zone */
	uint64_t sizes[3];		/* bytes that the call may use of each */
	bool interrupted;		/* a signal has arrived meanwhile */
	int ret;		/* its value, or -errno */
	enum outcome outcome;
};

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
		.query_flags = some_bits(QUERY_FILTERS | QUERY_NEXT, seed),
		.query_addr = some_address(seed),
	};

	if (rand_below(2, seed))
		query.query_flags |= QUERY_NEXT;
	make_output(attempt, caller->zones, NAME,
		    rand_below(4, seed) ? PATH_MAX : rand_below(64, seed),
		    (uint64_t *)&query.vma_name_addr, &query.vma_name_size, seed);
	make_output(attempt, caller->zones, ID, BUILD_ID_SIZE,
		    (uint64_t *)&query.build_id_addr, &query.build_id_size, seed);
	put_argument(&attempt->argument, &caller->zones[ARGUMENT], &query,
		     sizeof(query), seed);
	memcpy(&attempt->in, &query, attempt->argument.known);
	/* An address of which the structure has only some bytes is another. */
	if (attempt->in.vma_name_addr != attempt->buffers[NAME].addr)
		memset(&attempt->buffers[NAME], 0, sizeof(struct buffer));
	if (attempt->in.build_id_addr != attempt->buffers[ID].addr)
		memset(&attempt->buffers[ID], 0, sizeof(struct buffer));
	attempt->sizes[NAME] = attempt->in.vma_name_size;
	attempt->sizes[ID] = attempt->in.build_id_size;
}

static unsigned int outcomes_of_query(const struct attempt *attempt)
{
	const struct procmap_query *const query = &attempt->in;
	const struct argument *const argument = &attempt->argument;
	unsigned int set;

	set = outcomes_of_argument(argument, QUERY_SIZE_MIN, sizeof(*query));
	if (set)
		return set;
	if (query->query_flags & ~(uint64_t)(QUERY_FILTERS | QUERY_NEXT) ||
	    !query->vma_name_addr != !query->vma_name_size ||
	    !query->build_id_addr != !query->build_id_size)
		return SET(INVALID);

	set = SET(FINE) | SET(NOTHING);
	if (!attempt->steady)
		set |= SET(GONE);
	if ((query->vma_name_size && query->vma_name_size < PATH_MAX) ||
	    (query->build_id_size && query->build_id_size < BUILD_ID_SIZE))
		set |= SET(NAME_LONG);
	if (attempt->buffers[NAME].room < min_u64(query->vma_name_size, PATH_MAX) ||
	    attempt->buffers[ID].room < min_u64(query->build_id_size, BUILD_ID_SIZE))
		set |= SET(FAULT);
	if (argument->buffer.room < argument->known)
		set = (set | SET(FAULT)) & ~SET(FINE);
	return set;
}

/* After an error, nothing is written, but for a fault at one of the buffers. */
static void used_by_query(const struct attempt *attempt, size_t used[3])
{
	if (attempt->outcome == FINE) {
		used[NAME] = attempt->out.vma_name_size;
		used[ID] = attempt->out.build_id_size;
	} else {
		used[ARGUMENT] = 0;
		used[NAME] = attempt->outcome == FAULT ? attempt->sizes[NAME] : 0;
		used[ID] = attempt->outcome == FAULT ? attempt->sizes[ID] : 0;
	}
}

static const char *wrong_answer(const struct attempt *attempt,
				unsigned long *in_area)
{
	const struct procmap_query *const query = &attempt->in;
	const struct procmap_query *const answer = &attempt->out;
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

/* Check the outcome of a call. Returns its fault, or "". */
static const char *wrong_outcome(struct caller *caller,
				 const struct attempt *attempt)
{
	const unsigned int unsteady = attempt->steady ? 0 : SET(BAD_FD) |
							   SET(NO_IOCTL);
	const struct argument *const argument = &attempt->argument;
	size_t used[3] = { [ARGUMENT] = argument->known };

	if (!((unsteady | outcomes_of_query(attempt)) &
	      SET(attempt->outcome)))
		return "the outcome";
	used_by_query(attempt, used);
	if (!is_argument_left_alone(argument, &caller->zones[ARGUMENT],
				    used[ARGUMENT]))
		return "what is around the structure";
	if (!is_left_alone(&caller->zones[1], &attempt->buffers[1],
			   attempt->sizes[1], used[1]) ||
	    !is_left_alone(&caller->zones[2], &attempt->buffers[2],
			   attempt->sizes[2], used[2]))
		return "what is around a buffer";
	return wrong_answer(attempt, &caller->in_area);
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
	make_query(&attempt, caller);
	arg = (void *)(uintptr_t)attempt.argument.buffer.addr;
	attempt.ret = ioctl(attempt.fd, PROCMAP_QUERY, arg);
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
}

FIXTURE_TEARDOWN(calls)
{
}

TEST_F_TIMEOUT(calls, with_random_arguments, SOAK_TIMEOUT)
{
	EXPECT_STREQ("", run_chaos(&self->chaos, call_once));
}

TEST_HARNESS_MAIN
