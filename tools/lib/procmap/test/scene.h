/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A handle on the scene, by each method.
 */
#ifndef PROCMAP_TEST_SCENE_H
#define PROCMAP_TEST_SCENE_H

#include "util.h"

FIXTURE(scene) {
	struct scene scene;
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
	if (!has_method(variant->method))
		SKIP_SETUP(without_method(variant->method));
	ASSERT_TRUE(make_scene(&self->scene, variant->method));
}

FIXTURE_TEARDOWN(scene)
{
	EXPECT_TRUE(end_scene(&self->scene));
}

#endif /* PROCMAP_TEST_SCENE_H */
