// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_SCAN does not let io_uring close the maps file under it.
 */
#include "procmap-scan.h"
#include "procmap-uring.h"

static void prepare_call(struct __test_metadata *const _metadata, void *arg,
			 void *answer)
{
	const struct room room = {
		.vec = answer,
		.vec_len = page_size() / sizeof(struct procmap_vma),
	};

	skip_without_scan(_metadata);
	*(struct procmap_scan_arg *)arg = ask(&room, 0, NO_END, 0);
}

static bool is_right(int maps, void *arg)
{
	const int nr = procmap_scan(maps, arg);
	const int other = open_maps(getppid());
	struct maps text = {};
	bool right;
	int i;

	right = nr > 0 && !read_maps(other, &text) && (size_t)nr <= text.nr;
	for (i = 0; right && i < nr; i++)
		right = record_at(arg, i)->start == text.lines[i].start &&
			record_at(arg, i)->end == text.lines[i].end;
	/* It may have the number of the file that has been closed. */
	close(other);
	return right;
}

TEST_HARNESS_MAIN
