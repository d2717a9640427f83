// SPDX-License-Identifier: GPL-2.0
/*
 * Test that nobody can hold up a reader of build IDs by PROCMAP_QUERY: neither a
 * FUSE server, nor a slow device.
 */
#include "procmap-fuse.h"

/* Where the tests run without the query, they are to fail. */
static void skip_without_ioctl(struct __test_metadata *const _metadata)
{
}

static int get_build_id(int maps, uint64_t addr, uint8_t id[20])
{
	struct procmap_query query;
	const int err = query_build_id(maps, addr, &query, id, 20);

	return err ?: (int)query.build_id_size;
}

TEST_HARNESS_MAIN
