/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The order of errors: of two faults in one call, the ABI says which one is
 * reported. Each ioctl has a table of faults in that order.
 */
#ifndef PROCMAP_ORDER_H
#define PROCMAP_ORDER_H

#include "procmap-scene.h"

/* Where the structure of the call is. */
enum place { WRITABLE, READ_ONLY, ONLY_SIZE_READABLE, NOWHERE };

#define ATTEMPT_SIZE	256

struct attempt {
	int fd;
	int fd_of_exited;
	unsigned int command;
	enum place place;
	size_t known_size;	/* of the structure */
	size_t least_size;	/* that the kernel takes */
	union {
		uint64_t size;	/* both structures begin with it */
		uint8_t bytes[ATTEMPT_SIZE];
	} arg;
};

struct fault {
	const char *name;
	void (*make)(struct attempt *attempt);
	int err;
};

#define FAULT(function, err)	{ #function, function, err }

static void another_command(struct attempt *attempt)
{
	attempt->command++;
}

static void no_struct(struct attempt *attempt)
{
	attempt->place = NOWHERE;
}

static void size_over_a_page(struct attempt *attempt)
{
	attempt->arg.size = page_size() + 1;
}

static void size_too_small(struct attempt *attempt)
{
	attempt->arg.size = attempt->least_size - 1;
}

static void half_a_struct(struct attempt *attempt)
{
	attempt->place = ONLY_SIZE_READABLE;
}

static void byte_past_the_struct(struct attempt *attempt)
{
	attempt->arg.bytes[attempt->known_size] = 1;
	if (attempt->arg.size == attempt->known_size)
		attempt->arg.size += 8;
}

static void exited_process(struct attempt *attempt)
{
	attempt->fd = attempt->fd_of_exited;
}

static void read_only_struct(struct attempt *attempt)
{
	attempt->place = READ_ONLY;
}

static struct attempt make_attempt(int fd, unsigned int command,
				   size_t least_size, const void *arg)
{
	struct attempt attempt = {
		.fd = fd,
		.fd_of_exited = open_maps_of_exited(),
		.command = command,
		.known_size = *(const uint64_t *)arg,
		.least_size = least_size,
	};

	memcpy(&attempt.arg, arg, attempt.known_size);
	return attempt;
}

/* Returns what the call returns, or -errno. */
static int try(const struct attempt *attempt)
{
	const int prot = attempt->place == READ_ONLY ? PROT_READ :
						       PROT_READ | PROT_WRITE;
	size_t size = ATTEMPT_SIZE;
	uint8_t *arg = NULL;
	int ret;

	if (attempt->place == ONLY_SIZE_READABLE)
		size = sizeof(uint64_t);
	if (attempt->place != NOWHERE) {
		arg = map_to_page_end(size, PROT_READ | PROT_WRITE);
		memcpy(arg, &attempt->arg, size);
		mprotect(arg + size - page_size(), page_size(), prot);
	}
	ret = ioctl(attempt->fd, attempt->command, arg);
	ret = ret < 0 ? -errno : ret;
	if (arg)
		munmap(arg + size - page_size(), 2 * page_size());
	return ret;
}

/*
 * Try each fault by itself, and every pair of faults: the earlier one must be
 * reported. It is made last, so where both set the same field, it counts.
 */
static void check_order(struct __test_metadata *const _metadata,
			const struct attempt *good, const struct fault *faults,
			size_t nr)
{
	size_t i, j;

	ASSERT_LE(0, good->fd_of_exited);
	ASSERT_LE(0, try(good));
	for (i = 0; i < nr; i++) {
		TH_LOG("%s comes before %zu more", faults[i].name,
		       nr - i - 1);
		for (j = i; j < nr; j++) {
			struct attempt bad = *good;

			faults[j].make(&bad);
			faults[i].make(&bad);
			EXPECT_EQ(faults[i].err, try(&bad)) {
				TH_LOG("%s, with %s", faults[i].name,
				       faults[j].name);
			}
		}
	}
}

#endif /* PROCMAP_ORDER_H */
