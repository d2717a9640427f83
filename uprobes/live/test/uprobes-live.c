// SPDX-License-Identifier: GPL-2.0
/*
 * Test that uprobes_emulate.ko has instructions emulated while it is loaded, whenever
 * their uprobes were registered, and that no hit goes wrong when it comes or goes.
 *
 * The module must not be loaded yet. UPROBES_EMULATE_KO is its path.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../kselftest_harness.h"
#include "uprobes.h"

#define LIVE_MODULE	"uprobes_emulate"
#define LIVE_KO		"UPROBES_EMULATE_KO"
#define LIVE_PARAMETERS	""
#include "live-module.h"

#define NR_WORKERS	3

static struct calls steps;

/*
 * The hits that take a second trap, of so many calls; or -1 if one is wrong. The module
 * emulates all instructions but the mov.
 */
static int64_t steps_of(const struct probed *probed, long calls)
{
	const int64_t steps_before = count_calls(&steps);

	if (!calls_are_right(probed, calls))
		return -1;
	return count_calls(&steps) - steps_before;
}

static void __attribute__((constructor)) need_steps(void)
{
	if (!open_steps(&steps))
		ksft_exit_skip("this kernel has no kprobes in perf\n");
}

FIXTURE(live)
{
	struct probed probed;
};

FIXTURE_SETUP(live)
{
	struct probed *const probed = &self->probed;

	ASSERT_FALSE(live_is_loaded());
	probed->fd = make_code(NEXT_FUNCTION, sizeof(NEXT_FUNCTION) - 1, 0);
	ASSERT_LE(0, probed->fd);
	probed->next = map_code(NULL, probed->fd);
	ASSERT_TRUE((void *)probed->next != MAP_FAILED);
	ASSERT_TRUE(open_probes(probed));
}

FIXTURE_TEARDOWN(live)
{
	close_probes(&self->probed);
	close(self->probed.fd);
	if (live_is_loaded())
		live_unload();
}

TEST_F(live, registered_uprobe_is_emulated_while_it_is_loaded)
{
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(NR_PROBES * 100, steps_of(&self->probed, 100));
		ASSERT_EQ(0, live_load());
		EXPECT_EQ(100, steps_of(&self->probed, 100));
		ASSERT_EQ(0, live_unload());
		EXPECT_FALSE(live_is_loaded());
	}
	EXPECT_EQ(NR_PROBES * 100, steps_of(&self->probed, 100));
}

TEST_F(live, uprobe_registered_under_it_outlives_it)
{
	close_probes(&self->probed);
	ASSERT_EQ(0, live_load());
	ASSERT_TRUE(open_probes(&self->probed));
	EXPECT_EQ(100, steps_of(&self->probed, 100));
	ASSERT_EQ(0, live_unload());
	EXPECT_EQ(NR_PROBES * 100, steps_of(&self->probed, 100));
}

/* What the workers share. */
static atomic_bool stop;

struct worker {
	pthread_t thread;
	struct probed probed;
	int64_t hits;
	bool failed;
};

/* Call the function without a pause. */
static void *be_worker(void *arg)
{
	struct worker *const worker = arg;

	worker->failed = !open_probes(&worker->probed);
	while (!stop && !worker->failed)
		worker->failed = !calls_are_right(&worker->probed, 10);
	worker->hits = hits(&worker->probed);
	close_probes(&worker->probed);
	return NULL;
}

static int nr_rounds(void)
{
	const char *rounds = getenv("UPROBES_EMULATE_ROUNDS");

	return rounds ? atoi(rounds) : 100;
}

TEST_F_TIMEOUT(live, comes_and_goes_under_load, 1200)
{
	const int64_t steps_before = count_calls(&steps);
	struct worker workers[NR_WORKERS] = {};
	int64_t nr_hits = 0, nr_steps;
	int i;

	for (i = 0; i < NR_WORKERS; i++) {
		workers[i].probed = self->probed;
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, be_worker,
					    &workers[i]));
	}

	for (i = 0; i < nr_rounds(); i++) {
		ASSERT_EQ(0, live_load());
		ASSERT_EQ(0, live_unload());
	}

	stop = true;
	for (i = 0; i < NR_WORKERS; i++) {
		ASSERT_EQ(0, pthread_join(workers[i].thread, NULL));
		EXPECT_FALSE(workers[i].failed);
		EXPECT_LT(0, workers[i].hits);
		nr_hits += workers[i].hits;
	}
	nr_steps = count_calls(&steps) - steps_before;
	EXPECT_LT(0, nr_steps);
	EXPECT_LT(nr_steps, nr_hits);
	TH_LOG("%d hits, %d of them out of line", (int)nr_hits, (int)nr_steps);
}

TEST_HARNESS_MAIN
