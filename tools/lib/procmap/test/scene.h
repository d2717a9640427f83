/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture of the tests that look into another process.
 */
#ifndef PROCMAP_TEST_SCENE_H
#define PROCMAP_TEST_SCENE_H

#include "util.h"

/**
 * struct scene - a process that does as told, a copy of this one, with mappings of every kind
 * @dir: the directory of its files.
 * @child: the process.
 * @maps: its text.
 * @procmap: a handle, by the method of the variant.
 */
FIXTURE(scene) {
	char dir[32];
	struct child child;
	struct maps maps;
	struct procmap *procmap;
};

FIXTURE_VARIANT(scene) {
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(scene, any) { .method = PROCMAP_ANY_METHOD };
FIXTURE_VARIANT_ADD(scene, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(scene, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(scene, text) { .method = PROCMAP_BY_TEXT };

FIXTURE_SETUP(scene)
{
	if (missing_method(variant->method))
		SKIP_SETUP(missing_method(variant->method));
	ASSERT_TRUE(make_test_directory(self->dir));
	ASSERT_TRUE(make_mappings(self->dir));
	ASSERT_TRUE(start_child(&self->child, obey, NULL) && await(self->child.control));
	ASSERT_TRUE(read_text(self->child.pid, &self->maps));
	ASSERT_LT(40, self->maps.nr);
	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method), &self->procmap));
}

FIXTURE_TEARDOWN(scene)
{
	calls.allocations = -1;
	calls.opens = -1;
	procmap_close(self->procmap);
	stop_child(&self->child);
	free_maps(&self->maps);
	EXPECT_TRUE(remove_directory(self->dir));
}

#endif /* PROCMAP_TEST_SCENE_H */
