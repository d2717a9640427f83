// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY does not let io_uring close the maps file under it.
 */
#include "procmap-uring.h"

/* The name of this program. */
static void prepare_call(struct __test_metadata *const _metadata, void *arg,
			 void *answer)
{
	*(struct procmap_query *)arg = (struct procmap_query) {
		.size = sizeof(struct procmap_query),
		.query_addr = (uintptr_t)prepare_call,
		.vma_name_addr = (uintptr_t)answer,
		.vma_name_size = page_size(),
	};
}

static bool is_right(int maps, void *arg)
{
	struct procmap_query *const query = arg;
	char path[PATH_MAX] = "";

	return !procmap_query(maps, query) &&
	       readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 &&
	       !strcmp(path, (char *)(uintptr_t)query->vma_name_addr);
}

TEST_HARNESS_MAIN
