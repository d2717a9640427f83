// SPDX-License-Identifier: GPL-2.0
/*
 * Test PROCMAP_SCAN with random arguments, see procmap-caller.h.
 */
#include "../kselftest_harness.h"
#include "procmap-caller.h"
#include "procmap-scan.h"

#define PERMISSIONS_OF_ALL	(PROCMAP_VMA_READABLE | PROCMAP_VMA_WRITABLE | \
				 PROCMAP_VMA_EXECUTABLE | PROCMAP_VMA_SHARED)
#define FILTERS_OF_ALL		(PERMISSIONS_OF_ALL | PROCMAP_VMA_FILE_BACKED)
#define WANTS			(NAMES | BUILD_IDS)

/* Sizes of the structures in the first version of the ABI. */
#define ARG_SIZE_MIN		104
#define VMA_SIZE_MIN		72

/* The most that name and build ID of one mapping take. */
#define DATA_MAX		(PATH_MAX + 20)

/**
 * struct ask - one scan
 * @fd: the file.
 * @steady: it is one of this process that nobody closes.
 * @argument: the structure.
 * @arg: the same, without what lies behind its size.
 * @vec: the buffer of the records.
 * @data: the buffer of names and build IDs.
 */
struct ask {
	int fd;
	bool steady;
	struct argument argument;
	struct procmap_scan_arg arg;
	struct buffer vec;
	struct buffer data;
};

enum { ARGUMENT, VEC, DATA };

static uint64_t vec_size(const struct procmap_scan_arg *arg)
{
	return (uint64_t)arg->vec_len * arg->vma_size;
}

static void make_range(struct procmap_scan_arg *arg, uint64_t *seed)
{
	arg->start = below(4, seed) ? some_address(seed) : 0;
	if (below(32, seed))
		arg->start -= arg->start % page_size();
	switch (below(8, seed)) {
	case 0:
		arg->end = some_address(seed);
		break;
	case 1:
	case 2:
		arg->end = arg->start + below(32, seed) * page_size();
		break;
	default:
		arg->end = NO_END;
		break;
	}
}

static void make_vec(struct ask *ask, const struct zone *zone, uint64_t *seed)
{
	struct procmap_scan_arg *const arg = &ask->arg;
	const size_t align = below(32, seed) ? 8 : 1;

	arg->vma_size = some_size(sizeof(struct procmap_vma), seed);
	arg->vec_len = some_size(1 + below(below(4, seed) ? 8 : 200, seed),
				 seed);
	ask->vec = some_buffer(zone, vec_size(arg), align, seed);
	arg->vec = ask->vec.addr;
	fill(zone, &ask->vec, vec_size(arg));
}

static void make_data(struct ask *ask, const struct zone *zone, uint64_t *seed)
{
	struct procmap_scan_arg *const arg = &ask->arg;

	if (below(4, seed)) {
		arg->data_size = some_size(below(below(2, seed) ? 64 : 8192,
						 seed), seed);
		ask->data = some_buffer(zone, arg->data_size, 1, seed);
		arg->data = ask->data.addr;
		fill(zone, &ask->data, arg->data_size);
	}
	if (!arg->data_size && below(32, seed)) {
		arg->data = 0;
		memset(&ask->data, 0, sizeof(ask->data));
	}
}

static void make_ask(struct ask *ask, struct caller *caller)
{
	uint64_t *const seed = &caller->seed;
	struct procmap_scan_arg *const arg = &ask->arg;

	memset(ask, 0, sizeof(*ask));
	ask->fd = some_file(caller, &ask->steady);
	arg->size = some_size(sizeof(*arg), seed);
	arg->filter = some_bits(FILTERS_OF_ALL, seed);
	arg->want = below(4, seed) ? WANTS :
				     some_bits(WANTS, seed);
	arg->known_generation = below(2, seed) ? 0 : next_random(seed);
	make_range(arg, seed);
	make_vec(ask, &caller->zones[VEC], seed);
	make_data(ask, &caller->zones[DATA], seed);
	/* What is only returned does not matter. */
	arg->walk_end = next_random(seed);
	arg->generation = next_random(seed);
	arg->data_used = next_random(seed);
	arg->data_needed = next_random(seed);
	arg->flags = next_random(seed);
	put_argument(&ask->argument, &caller->zones[ARGUMENT], arg,
		     sizeof(*arg), seed);
}

static bool is_invalid(const struct procmap_scan_arg *arg)
{
	return arg->filter & ~(uint64_t)FILTERS_OF_ALL ||
	       arg->want & ~(uint64_t)WANTS ||
	       arg->start % page_size() || arg->end < arg->start ||
	       !arg->vec || arg->vec % 8 ||
	       !arg->vec_len || arg->vec_len > INT32_MAX ||
	       arg->vma_size < VMA_SIZE_MIN || arg->vma_size > page_size() ||
	       arg->vma_size % 8 || !arg->data != !arg->data_size;
}

/* What the ABI says that the call may come to. */
static unsigned int outcomes_of(const struct ask *ask, bool interrupted)
{
	const struct procmap_scan_arg *const arg = &ask->arg;
	const unsigned int unsteady = ask->steady ? 0 : SET(BAD_FD) |
							 SET(NO_IOCTL);
	unsigned int set;

	if (ask->argument.buffer.vanishes)
		return unsteady | SET(FINE) | SET(TOO_BIG) | SET(INVALID) |
		       SET(FAULT) | SET(GONE) | SET(NO_SPACE) |
		       SET(INTERRUPTED);
	set = outcomes_of_argument(&ask->argument, ARG_SIZE_MIN, sizeof(*arg));
	if (set)
		return unsteady | set;
	if (is_invalid(arg))
		return unsteady | SET(INVALID);

	set = unsteady | SET(FINE);
	if (!ask->steady)
		set |= SET(GONE);
	if (interrupted)
		set |= SET(INTERRUPTED);
	if (arg->want && arg->data_size < DATA_MAX)
		set |= SET(NO_SPACE);
	if (ask->vec.room < vec_size(arg) || ask->data.room < arg->data_size)
		set |= SET(FAULT);
	if (ask->argument.buffer.room < ask->argument.known)
		set = SET(FAULT) | unsteady;
	return set;
}

static const char *wrong_found(const struct ask *ask,
			       const struct procmap_scan_arg *arg,
			       const struct procmap_vma *record,
			       unsigned long *in_area)
{
	const uint64_t want = arg->want;
	const char *const data = (char *)ask->data.bytes;
	const struct found found = {
		.start = record->start,
		.end = record->end,
		.permissions = record->flags & ~(uint64_t)PROCMAP_VMA_FILE_BACKED,
		.page_size = record->page_size,
		.offset = record->offset,
		.inode = record->inode,
		.device = record->dev_major | record->dev_minor,
		.name = want & NAMES && data ?
			data + record->name_offset : NULL,
		.name_size = record->name_size,
		.id = want & BUILD_IDS && data ?
		      (uint8_t *)data + record->build_id_offset : NULL,
		.id_size = record->build_id_size,
	};

	if (record->start >= arg->end || record->end <= arg->start)
		return "a record out of the range";
	if (arg->filter & ~record->flags)
		return "a record that does not pass the filters";
	if (!(record->flags & PROCMAP_VMA_FILE_BACKED) !=
	    !(found.inode || found.device))
		return "the flag of a file";
	if ((record->name_size && !(want & NAMES)) ||
	    (record->build_id_size && !(want & BUILD_IDS)))
		return "what is not wanted";
	if ((record->name_size &&
	     (uint64_t)record->name_offset + record->name_size > arg->data_used) ||
	    (record->build_id_size &&
	     (uint64_t)record->build_id_offset + record->build_id_size >
	     arg->data_used))
		return "data that is not used";
	return wrong_mapping(&found, in_area);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return !size || (!*bytes && !memcmp(bytes, bytes + 1, size - 1));
}

/* What is wrong with the records, or "". */
static const char *wrong_all_found(const struct ask *ask,
				   const struct procmap_scan_arg *arg, int nr,
				   unsigned long *in_area)
{
	uint64_t end = arg->start;
	int i;

	for (i = 0; i < nr; i++) {
		const uint8_t *const bytes = ask->vec.bytes + i * arg->vma_size;
		struct procmap_vma record = {};
		const char *wrong;

		memcpy(&record, bytes, less(sizeof(record), arg->vma_size));
		if (!is_zero(bytes + sizeof(record),
			     arg->vma_size - sizeof(record)))
			return "what is unknown of a record is not 0";
		if (record.end <= end)
			return "records do not rise by their ends";
		end = record.end;
		wrong = wrong_found(ask, arg, &record, in_area);
		if (*wrong)
			return wrong;
	}
	if (nr && arg->walk_end < less(end, arg->end))
		return "walk_end is below the end of the last record";
	return "";
}

/* What is wrong with the outputs after a scan that returned @nr, or "". */
static const char *wrong_outputs(const struct ask *ask,
				 const struct procmap_scan_arg *arg, int nr,
				 bool interrupted)
{
	const struct procmap_scan_arg *const before = &ask->arg;

	if (arg->size != before->size || arg->filter != before->filter ||
	    arg->want != before->want || arg->start != before->start ||
	    arg->end != before->end || arg->vec != before->vec ||
	    arg->vec_len != before->vec_len ||
	    arg->vma_size != before->vma_size || arg->data != before->data ||
	    arg->data_size != before->data_size)
		return "an input has changed";
	if (arg->walk_end < arg->start || arg->walk_end > arg->end)
		return "walk_end is out of the range";
	if (arg->data_used > arg->data_size)
		return "data_used is larger than data_size";
	if (arg->flags & ~(uint32_t)PROCMAP_SCAN_CHANGED ||
	    (arg->flags && !arg->generation))
		return "the flags";
	if (arg->data_needed && (arg->data_needed > DATA_MAX ||
				 arg->data_needed <= arg->data_size -
						     arg->data_used))
		return "data_needed is not needed";
	if (nr > 0 && (uint32_t)nr > before->vec_len)
		return "more records than vec_len";
	if (!nr && arg->walk_end != arg->end)
		return "no record, and not complete";
	if (nr < 0 && arg->walk_end == arg->end && arg->start != arg->end)
		return "an error, and complete";
	if (ask->steady && nr > 0 && arg->walk_end < arg->end &&
	    (uint32_t)nr < arg->vec_len && !arg->data_needed && !interrupted)
		return "an early end without a reason";
	return "";
}

/* What is wrong with the outcome, or "". @nr: records, or a negative number. */
static const char *wrong_outcome(struct caller *caller, const struct ask *ask,
				 enum outcome outcome, int nr, bool interrupted)
{
	const struct argument *const argument = &ask->argument;
	const struct zone *const zones = caller->zones;
	struct procmap_scan_arg arg;
	const size_t records = nr > 0 ? (size_t)nr : 0;
	const char *wrong;

	if (!(outcomes_of(ask, interrupted) & SET(outcome)))
		return "the outcome";
	if (!is_argument_left_alone(argument, &zones[ARGUMENT],
				    argument->known))
		return "what is around the structure";
	if (argument->buffer.vanishes)
		return "";
	/* After other errors, the outputs are undefined, within their sizes. */
	if (outcome != FINE && outcome != NO_SPACE && outcome != INTERRUPTED) {
		if (!is_left_alone(&zones[VEC], &ask->vec, vec_size(&ask->arg),
				   vec_size(&ask->arg)) ||
		    !is_left_alone(&zones[DATA], &ask->data,
				   ask->arg.data_size, ask->arg.data_size))
			return "what is around a buffer";
		return "";
	}

	memcpy(&arg, argument->buffer.bytes, sizeof(arg));
	wrong = wrong_outputs(ask, &arg, nr, interrupted);
	if (*wrong)
		return wrong;
	if (!is_left_alone(&zones[VEC], &ask->vec, vec_size(&arg),
			   records * arg.vma_size))
		return "what is around the records";
	if (!is_left_alone(&zones[DATA], &ask->data, arg.data_size,
			   arg.data_used))
		return "what is around the data";
	if (!ask->vec.bytes)
		return "";
	return wrong_all_found(ask, &arg, records, &caller->in_area);
}

static void scan_at_random(struct caller *caller)
{
	const unsigned int interrupts_before =
		__atomic_load_n(&interrupts, __ATOMIC_RELAXED);
	enum outcome outcome;
	const char *wrong;
	bool interrupted;
	struct ask ask;
	int nr;

	make_ask(&ask, caller);
	nr = ioctl(ask.fd, PROCMAP_SCAN,
		   (void *)(uintptr_t)ask.argument.buffer.addr);
	outcome = outcome_of(nr < 0 ? errno : 0);
	interrupted = __atomic_load_n(&interrupts, __ATOMIC_RELAXED) !=
		      interrupts_before;
	caller->counts[outcome]++;
	wrong = wrong_outcome(caller, &ask, outcome, nr, interrupted);
	if (*wrong)
		snprintf(caller->wrong, sizeof(caller->wrong),
			 "%s; outcome %s of %#x, %d records; steady %d, at %#jx, %zu bytes, size %#jx; filter %#jx, want %#jx, %#jx-%#jx; vec at %#jx, %u of %u, room %zu; data at %#jx, size %u, room %zu",
			 wrong, outcomes[outcome].name,
			 outcomes_of(&ask, interrupted), nr, ask.steady,
			 (uintmax_t)ask.argument.buffer.addr,
			 ask.argument.buffer.readable,
			 (uintmax_t)ask.argument.size, (uintmax_t)ask.arg.filter,
			 (uintmax_t)ask.arg.want, (uintmax_t)ask.arg.start,
			 (uintmax_t)ask.arg.end, (uintmax_t)ask.arg.vec,
			 ask.arg.vec_len, ask.arg.vma_size, ask.vec.room,
			 (uintmax_t)ask.arg.data, ask.arg.data_size,
			 ask.data.room);
}

FIXTURE(callers)
{
	struct chaos chaos;
};

FIXTURE_SETUP(callers)
{
	skip_without_scan(_metadata);
}

FIXTURE_TEARDOWN(callers)
{
}

TEST_F_TIMEOUT(callers, scans_at_random, SOAK_TIMEOUT)
{
	run_chaos(_metadata, &self->chaos, scan_at_random);
}

TEST_HARNESS_MAIN
