// SPDX-License-Identifier: GPL-2.0
/*
 * Test PROCMAP_QUERY with random arguments, see procmap-caller.h.
 */
#include "../kselftest_harness.h"
#include "procmap-caller.h"
#include "procmap-query.h"

#define NEXT		PROCMAP_QUERY_COVERING_OR_NEXT_VMA
#define SIZE_MIN	offsetof(struct procmap_query, vma_start)
#define ID_MAX		20

/**
 * struct ask - one query
 * @fd: the file.
 * @steady: it is one of this process that nobody closes.
 * @argument: the structure.
 * @query: the same, without what lies behind its size.
 * @name: buffer of the name; @query has its address and size.
 * @id: buffer of the build ID.
 */
struct ask {
	int fd;
	bool steady;
	struct argument argument;
	struct procmap_query query;
	struct buffer name;
	struct buffer id;
};

enum { ARGUMENT, NAME, ID };

/* A buffer that is wanted has an address and a size, most often. */
static struct buffer some_output(const struct zone *zone, uint32_t usual,
				 uint64_t *addr, uint32_t *size, uint64_t *seed)
{
	struct buffer buffer = {};

	*addr = 0;
	*size = 0;
	if (below(2, seed)) {
		*size = some_size(usual, seed);
		buffer = some_buffer(zone, *size, 1, seed);
		*addr = buffer.addr;
		fill(zone, &buffer, *size);
	}
	if (!below(32, seed))
		*addr = 0;
	if (!below(32, seed))
		*size = 0;
	return buffer;
}

static void make_ask(struct ask *ask, struct caller *caller)
{
	uint64_t *const seed = &caller->seed;
	struct procmap_query query = {
		.size = some_size(sizeof(query), seed),
		.query_flags = some_bits(FILTERS | NEXT, seed),
		.query_addr = some_address(seed),
	};

	if (below(2, seed))
		query.query_flags |= NEXT;
	ask->fd = some_file(caller, &ask->steady);
	ask->name = some_output(&caller->zones[NAME],
				below(4, seed) ? PATH_MAX : below(64, seed),
				(uint64_t *)&query.vma_name_addr,
				&query.vma_name_size, seed);
	ask->id = some_output(&caller->zones[ID], ID_MAX,
			      (uint64_t *)&query.build_id_addr,
			      &query.build_id_size, seed);
	put_argument(&ask->argument, &caller->zones[ARGUMENT], &query,
		     sizeof(query), seed);
	memset(&ask->query, 0, sizeof(ask->query));
	memcpy(&ask->query, &query, ask->argument.known);
	/* An address of which the structure has only some bytes is another. */
	if (ask->query.vma_name_addr != ask->name.addr)
		memset(&ask->name, 0, sizeof(ask->name));
	if (ask->query.build_id_addr != ask->id.addr)
		memset(&ask->id, 0, sizeof(ask->id));
}

/* What the ABI says that the call may come to. */
static unsigned int outcomes_of(const struct ask *ask)
{
	const struct procmap_query *const query = &ask->query;
	const unsigned int unsteady = ask->steady ? 0 : SET(BAD_FD) |
							 SET(NO_IOCTL);
	unsigned int set;

	if (ask->argument.buffer.vanishes)
		return unsteady | SET(FINE) | SET(TOO_BIG) | SET(INVALID) |
		       SET(FAULT) | SET(GONE) | SET(NOTHING) | SET(NAME_LONG);
	set = outcomes_of_argument(&ask->argument, SIZE_MIN, sizeof(*query));
	if (set)
		return unsteady | set;
	if (query->query_flags & ~(uint64_t)(FILTERS | NEXT) ||
	    !query->vma_name_addr != !query->vma_name_size ||
	    !query->build_id_addr != !query->build_id_size)
		return unsteady | SET(INVALID);

	set = unsteady | SET(FINE) | SET(NOTHING);
	if (!ask->steady)
		set |= SET(GONE);
	if ((query->vma_name_size && query->vma_name_size < PATH_MAX) ||
	    (query->build_id_size && query->build_id_size < ID_MAX))
		set |= SET(NAME_LONG);
	if (ask->name.room < less(query->vma_name_size, PATH_MAX) ||
	    ask->id.room < less(query->build_id_size, ID_MAX))
		set |= SET(FAULT);
	if (ask->argument.buffer.room < ask->argument.known)
		set = (set | SET(FAULT)) & ~SET(FINE);
	return set;
}

/* What is wrong with an answer, or "". */
static const char *wrong_answer(const struct ask *ask,
				const struct procmap_query *answer,
				unsigned long *in_area)
{
	const struct procmap_query *const query = &ask->query;
	const uint64_t flags = query->query_flags;
	const struct found found = {
		.start = answer->vma_start,
		.end = answer->vma_end,
		.permissions = answer->vma_flags,
		.page_size = answer->vma_page_size,
		.offset = answer->vma_offset,
		.inode = answer->inode,
		.device = answer->dev_major | answer->dev_minor,
		.name = query->vma_name_size ? (char *)ask->name.bytes : NULL,
		.name_size = answer->vma_name_size,
		.id = query->build_id_size ? ask->id.bytes : NULL,
		.id_size = answer->build_id_size,
	};

	if (answer->size != query->size || answer->query_flags != flags ||
	    answer->query_addr != query->query_addr ||
	    answer->vma_name_addr != query->vma_name_addr ||
	    answer->build_id_addr != query->build_id_addr)
		return "an input has changed";
	if (answer->vma_name_size > query->vma_name_size ||
	    answer->build_id_size > query->build_id_size)
		return "more than the size of a buffer";
	if (found.end <= query->query_addr ||
	    (!(flags & NEXT) && found.start > query->query_addr))
		return "another address";
	if (flags & ~NEXT & ~PROCMAP_QUERY_FILE_BACKED_VMA & ~answer->vma_flags)
		return "a permission was asked for";
	if (flags & PROCMAP_QUERY_FILE_BACKED_VMA && !found.inode &&
	    !found.device)
		return "a file was asked for";
	return wrong_mapping(&found, in_area);
}

/* What is wrong with the outcome, or "". */
static const char *wrong_outcome(struct caller *caller, const struct ask *ask,
				 enum outcome outcome)
{
	const struct zone *const zones = caller->zones;
	const struct argument *const argument = &ask->argument;
	const struct procmap_query *const query = &ask->query;
	struct procmap_query answer = {};
	const bool fine = outcome == FINE;

	if (!(outcomes_of(ask) & SET(outcome)))
		return "the outcome";
	if (!is_argument_left_alone(argument, &zones[ARGUMENT],
				    fine ? argument->known : 0))
		return "what is around the structure";
	if (argument->buffer.vanishes || outcome == FAULT)
		return "";
	if (fine)
		memcpy(&answer, argument->buffer.bytes, argument->known);
	if (!is_left_alone(&zones[NAME], &ask->name, query->vma_name_size,
			   answer.vma_name_size))
		return "what is around the name";
	if (!is_left_alone(&zones[ID], &ask->id, query->build_id_size,
			   answer.build_id_size))
		return "what is around the build ID";
	/* A structure that ends before them has no fields to look at. */
	if (!fine || argument->known < sizeof(answer))
		return "";
	return wrong_answer(ask, &answer, &caller->in_area);
}

static void query_at_random(struct caller *caller)
{
	enum outcome outcome;
	const char *wrong;
	struct ask ask;

	make_ask(&ask, caller);
	outcome = outcome_of(ioctl(ask.fd, PROCMAP_QUERY,
				   (void *)(uintptr_t)ask.argument.buffer.addr) ?
			     errno : 0);
	caller->counts[outcome]++;
	wrong = wrong_outcome(caller, &ask, outcome);
	if (*wrong)
		snprintf(caller->wrong, sizeof(caller->wrong),
			 "%s; outcome %s of %#x; steady %d, at %#jx, %zu bytes, size %#jx, flags %#jx, address %#jx; name at %#jx, size %u, room %zu; ID at %#jx, size %u, room %zu",
			 wrong, outcomes[outcome].name, outcomes_of(&ask),
			 ask.steady, (uintmax_t)ask.argument.buffer.addr,
			 ask.argument.buffer.readable,
			 (uintmax_t)ask.argument.size,
			 (uintmax_t)ask.query.query_flags,
			 (uintmax_t)ask.query.query_addr,
			 (uintmax_t)ask.query.vma_name_addr,
			 ask.query.vma_name_size, ask.name.room,
			 (uintmax_t)ask.query.build_id_addr,
			 ask.query.build_id_size, ask.id.room);
}

FIXTURE(callers)
{
	struct chaos chaos;
};

FIXTURE_SETUP(callers)
{
}

FIXTURE_TEARDOWN(callers)
{
}

TEST_F_TIMEOUT(callers, queries_at_random, SOAK_TIMEOUT)
{
	run_chaos(_metadata, &self->chaos, query_at_random);
}

TEST_HARNESS_MAIN
