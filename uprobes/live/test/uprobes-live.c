// SPDX-License-Identifier: GPL-2.0
/*
 * Test that uprobes_fix.ko mends uprobes that are registered while it is loaded, for as
 * long as they are there; that it says so if there are earlier ones, which it leaves
 * alone; and that no hit goes wrong when it comes or goes.
 *
 * The module must not be loaded yet. UPROBES_FIX_KO is its path.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../kselftest_harness.h"
#include "uprobes.h"

#define LIVE_MODULE	"uprobes_fix"
#define LIVE_KO		"UPROBES_FIX_KO"
#define LIVE_PARAMETERS	""
#include "live-module.h"

/* A function that returns the flags. Under a uprobe, the kernel has it push TF, too. */
#define FLAGS_FUNCTION	"\x9c"		/* pushf */	\
			"\x58"		/* pop %rax */	\
			"\xc3"
#define TF		0x100

#define NR_WORKERS	3
#define NR_ROUNDS	5

FIXTURE(live)
{
	int fd;
	long (*flags)(void);
};

FIXTURE_SETUP(live)
{
	ASSERT_FALSE(live_is_loaded());
	self->fd = make_code(FLAGS_FUNCTION, sizeof(FLAGS_FUNCTION) - 1, 0);
	ASSERT_LE(0, self->fd);
	self->flags = map_code(NULL, self->fd);
	ASSERT_TRUE((void *)self->flags != MAP_FAILED);
}

FIXTURE_TEARDOWN(live)
{
	close(self->fd);
	if (live_is_loaded())
		live_unload();
}

TEST_F(live, uprobe_registered_under_it_outlives_it)
{
	int probe;

	EXPECT_EQ(0, self->flags() & TF);
	ASSERT_EQ(0, live_load());
	probe = open_uprobe(0, self->fd, 0, 0);
	ASSERT_LE(0, probe);
	EXPECT_EQ(0, self->flags() & TF);
	ASSERT_EQ(0, live_unload());
	EXPECT_EQ(0, self->flags() & TF);
	EXPECT_EQ(2, count(probe));
	close(probe);
}

/* How often has the module told of earlier uprobes? */
static int count_told(void)
{
	FILE *const log = popen("dmesg | grep -c 'uprobes_fix: earlier uprobes stay'", "r");
	int nr = -1;

	if (!log || fscanf(log, "%d", &nr) != 1)
		ksft_exit_fail_msg("dmesg cannot be read\n");
	pclose(log);
	return nr;
}

TEST_F(live, earlier_uprobe_is_told_and_stays)
{
	const int nr = count_told();
	int probe;

	ASSERT_EQ(0, live_load());
	EXPECT_EQ(nr, count_told());
	ASSERT_EQ(0, live_unload());

	probe = open_uprobe(0, self->fd, 0, 0);
	ASSERT_LE(0, probe);
	EXPECT_EQ(TF, self->flags() & TF);
	ASSERT_EQ(0, live_load());
	EXPECT_EQ(nr + 1, count_told());
	EXPECT_EQ(TF, self->flags() & TF);
	close(probe);
	probe = open_uprobe(0, self->fd, 0, 0);
	ASSERT_LE(0, probe);
	EXPECT_EQ(0, self->flags() & TF);
	close(probe);
}

/* What the workers share. */
static atomic_bool stop;

struct worker {
	pthread_t thread;
	long hits;
	bool failed;
};

/* Register uprobes on a function of its own, and call it without a pause. */
static void *be_worker(void *arg)
{
	struct worker *const worker = arg;
	/* push %di; pop %ax; ret */
	const int fd = make_code("\x57\x58\xc3", 3, 0);
	long (*const same)(long) = map_code(NULL, fd);
	int probe, i;

	while (!stop && !worker->failed) {
		probe = open_uprobe(0, fd, 0, 0);
		for (i = 0; i < 100; i++)
			worker->failed |= same(i) != i;
		worker->failed |= count(probe) != 100;
		worker->hits += 100;
		close(probe);
	}
	return NULL;
}

TEST_F_TIMEOUT(live, comes_and_goes_under_load, 1200)
{
	struct worker workers[NR_WORKERS] = {};
	int i;

	for (i = 0; i < NR_WORKERS; i++)
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, be_worker,
					    &workers[i]));
	for (i = 0; i < NR_ROUNDS; i++) {
		ASSERT_EQ(0, live_load());
		ASSERT_EQ(0, live_unload());
	}
	stop = true;
	for (i = 0; i < NR_WORKERS; i++) {
		ASSERT_EQ(0, pthread_join(workers[i].thread, NULL));
		EXPECT_FALSE(workers[i].failed);
		EXPECT_LT(0, workers[i].hits);
	}
}

TEST_HARNESS_MAIN
