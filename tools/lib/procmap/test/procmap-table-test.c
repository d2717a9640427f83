// SPDX-License-Identifier: GPL-2.0
/*
 * Tables, against a model of processes that knows what was mapped when.
 */
#include <linux/perf_event.h>

#include "kselftest_harness.h"
#include "procmap_table.h"
#include "util.h"

#define MODEL_PIDS	5
#define MODEL_PAGES	12
#define MODEL_EVENTS	400
#define MODEL_BASE	0x10000u

enum model_kind { M_MMAP, M_FORK, M_EXEC, M_EXIT };

/**
 * struct model_event - what happens in the model at a time
 * @time: when.
 * @kind: what.
 * @pid: the index of the process.
 * @from: of M_FORK, the index of the parent.
 * @first: the first page.
 * @nr: number of pages.
 * @id: what is mapped.
 */
struct model_event {
	uint64_t time;
	enum model_kind kind;
	int pid;
	int from;
	int first;
	int nr;
	int id;
};

/* The state of a page of a process: @id is 0 for nothing. */
struct model_page {
	int id;
	bool is_secret;
};

/**
 * struct model - processes and their history
 * @nr: number of events.
 * @events: the events in the order of their time.
 * @now: the time of the present.
 * @pages: what the processes have at the present.
 * @text: of a process that is read.
 * @gone: how many user pointers went.
 */
struct model {
	int nr;
	struct model_event events[MODEL_EVENTS];
	uint64_t now;
	struct model_page pages[MODEL_PIDS][MODEL_PAGES];
	char text[MODEL_PAGES * 128];
	int gone;
};

/* A test is a process of its own. */
static struct model model;
static struct procmap_table_options options;
static struct procmap_table *table;

static unsigned int model_random(unsigned int *seed, unsigned int below)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % below;
}

static void model_apply(struct model_page pages[MODEL_PIDS][MODEL_PAGES],
			const struct model_event *event)
{
	struct model_page *const own = pages[event->pid];
	int i;

	switch (event->kind) {
	case M_FORK:
		memcpy(own, pages[event->from], sizeof(*pages));
		break;
	case M_EXEC:
		memset(own, 0, sizeof(*pages));
		break;
	case M_EXIT:
		break;
	case M_MMAP:
		for (i = 0; i < event->nr; i++)
			own[event->first + i].id = event->id;
	}
}

/* Return what is mapped at a page at a time, or 0. */
static int model_at(int pid, int page, uint64_t time)
{
	struct model_page pages[MODEL_PIDS][MODEL_PAGES] = {};
	int i;

	for (i = 0; i < model.nr && model.events[i].time <= time; i++)
		model_apply(pages, &model.events[i]);
	return pages[pid][page].id;
}

static void model_make(unsigned int seed, int nr)
{
	int i;

	model = (struct model) { .nr = nr };
	for (i = 0; i < nr; i++) {
		struct model_event *const event = &model.events[i];
		const unsigned int dice = model_random(&seed, 20);

		event->time = 100 + 10 * i;
		event->kind = dice < 12 ? M_MMAP : dice < 14 ? M_FORK :
			      dice < 15 ? M_EXEC : dice < 16 ? M_EXIT : M_MMAP;
		event->pid = model_random(&seed, MODEL_PIDS);
		event->from = (event->pid + 1 + model_random(&seed, MODEL_PIDS - 1)) %
			      MODEL_PIDS;
		event->first = model_random(&seed, MODEL_PAGES);
		event->nr = 1 + model_random(&seed, MODEL_PAGES - event->first);
		event->id = i + 1;
	}
}

static uint64_t model_addr(int page)
{
	return MODEL_BASE + (uint64_t)page * 0x1000;
}

static uint64_t model_offset(int id, int page)
{
	return (uint64_t)id * 0x100000 + (uint64_t)page * 0x1000;
}

/* Report an event to a table. */
static int model_report(const struct model_event *event)
{
	const struct procmap_mmap mapped = {
		.size = sizeof(mapped),
		.addr = model_addr(event->first),
		.len = (uint64_t)event->nr * 0x1000,
		.pgoff = model_offset(event->id, event->first),
		.ino = event->id,
		.maj = 8,
		.min = 1,
		.prot = PROT_READ | PROT_EXEC,
		.filename = "/some/library",
	};
	const pid_t pid = event->pid + 1;

	switch (event->kind) {
	case M_MMAP:
		return procmap_table_mmap(table, pid, event->time, &mapped);
	case M_FORK:
		return procmap_table_fork(table, pid, pid, event->from + 1,
					  event->time);
	case M_EXEC:
		return procmap_table_exec(table, pid, event->time);
	default:
		return procmap_table_exit(table, pid, pid, event->time);
	}
}

/*
 * Returns what the table has at a page, or 0; or -1 if that makes no sense, or if not all that
 * it claims is so, unless it has @missed events.
 */
static int model_ask(int pid, int page, uint64_t time, bool missed)
{
	const struct procmap_table_mapping *found;
	const uint64_t addr = model_addr(page) + 0x123;
	uint64_t at;
	int err, id;

	err = procmap_table_find(table, pid + 1, time, addr, &found);
	if (err)
		return err == -ENOENT || err == -ESRCH || err == -ENOSPC ? 0 : -1;
	id = found->mapping->inode;
	if (addr < found->mapping->start || addr >= found->mapping->end ||
	    found->mapping->offset + addr - found->mapping->start !=
	    model_offset(id, page) + 0x123 ||
	    found->from > time ||
	    strcmp(found->mapping->name, "/some/library"))
		return -1;
	if (missed)
		return id;
	for (at = found->mapping->start; at < found->mapping->end; at += 0x1000)
		if (model_at(pid, (at - MODEL_BASE) / 0x1000, time) != id)
			return -1;
	return model_at(pid, page, found->from) == id ? id : -1;
}

/* Report in an order in which no event is more than @late behind another one. */
static void model_shuffle(unsigned int *seed, uint64_t late, int *order)
{
	uint64_t due[MODEL_EVENTS];
	int i, j, k;

	for (i = 0; i < model.nr; i++) {
		due[i] = model.events[i].time + (late ? model_random(seed, late) : 0);
		for (j = 0; j < i && due[order[j]] <= due[i]; j++)
			;
		for (k = i; k > j; k--)
			order[k] = order[k - 1];
		order[j] = i;
	}
}

static uint64_t model_now(void *context)
{
	return context == &model ? model.now : 0;
}

/* The text of maps of a process of the model, at its present. */
static int model_open(void *context, pid_t pid, struct procmap **procmap)
{
	struct model_page *const pages = model.pages[pid - 1];
	size_t len = 0;
	int page, end;

	if (context != &model)
		return -EINVAL;
	for (page = 0; page < MODEL_PAGES; page = end) {
		for (end = page + 1; end < MODEL_PAGES &&
		     pages[end].id == pages[page].id; end++)
			;
		if (pages[page].id)
			len += sprintf(model.text + len,
				       "%x-%x r-%cp %08x 08:01 %d /some/library\n",
				       (unsigned int)model_addr(page),
				       (unsigned int)model_addr(end),
				       pages[page].is_secret ? '-' : 'x',
				       (unsigned int)model_offset(pages[page].id, page),
				       pages[page].id);
	}
	return len ? procmap_open_text(model.text, len, NULL, procmap) : -ESRCH;
}

/* The processes of the model are read, too. */
static void read_model(void)
{
	options.flags = 0;
	options.now = model_now;
	options.open = model_open;
}

/* Report that something executable was mapped at a page. */
static int report_mapped(uint64_t time, int pid, int page, int id)
{
	const struct model_event event = {
		.time = time,
		.kind = M_MMAP,
		.pid = pid,
		.first = page,
		.nr = 1,
		.id = id,
	};

	return model_report(&event);
}

/* Return the inode of what is mapped at a page, or an error. */
static int inode_at(pid_t pid, uint64_t time, int page)
{
	const struct procmap_table_mapping *found;
	int err;

	err = procmap_table_find(table, pid, time, model_addr(page), &found);
	return err ? err : (int)found->mapping->inode;
}

static void free_table(void)
{
	procmap_table_free(table);
	table = NULL;
}

FIXTURE(table) {
};

FIXTURE_SETUP(table)
{
	options = (struct procmap_table_options) {
		.size = sizeof(options),
		.flags = PROCMAP_TABLE_EVENTS_ONLY,
		.window = UINT64_MAX,
		.context = &model,
	};
}

FIXTURE_TEARDOWN(table)
{
	free_table();
}

static void model_gone(void *context, void *user)
{
	model.gone += context == &model && user == &model;
}

TEST_F(table, keeps_pointers_of_the_caller)
{
	const struct procmap_table_mapping *found;

	options.gone = model_gone;
	options.window = 10;
	options.keep_exited = 50;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	ASSERT_EQ(0, report_mapped(100, 0, 1, 7));
	ASSERT_EQ(0, report_mapped(100, 0, 2, 8));
	ASSERT_EQ(0, procmap_table_find(table, 1, 101, model_addr(1), &found));
	EXPECT_EQ(NULL, *found->user);
	EXPECT_EQ(NULL, *found->process_user);
	*found->user = &model;
	*found->process_user = &model;

	/* The child shares what is mapped, but not what the process is. */
	ASSERT_EQ(0, procmap_table_fork(table, 2, 2, 1, 110));
	ASSERT_EQ(0, procmap_table_find(table, 2, 111, model_addr(1), &found));
	EXPECT_EQ(&model, *found->user);
	EXPECT_EQ(NULL, *found->process_user);
	ASSERT_EQ(0, procmap_table_find(table, 2, 111, model_addr(2), &found));
	EXPECT_EQ(NULL, *found->user);

	/* Another program is another one, and the old one is still known. */
	ASSERT_EQ(0, procmap_table_exec(table, 1, 120));
	ASSERT_EQ(0, report_mapped(120, 0, 1, 9));
	ASSERT_EQ(0, procmap_table_find(table, 1, 121, model_addr(1), &found));
	EXPECT_EQ(NULL, *found->process_user);
	EXPECT_EQ(NULL, *found->user);
	ASSERT_EQ(0, procmap_table_find(table, 1, 119, model_addr(1), &found));
	EXPECT_EQ(&model, *found->process_user);
	EXPECT_EQ(120u, found->until);
	EXPECT_EQ(0, model.gone);

	/* Both exit, and time goes on. */
	ASSERT_EQ(0, procmap_table_exit(table, 1, 1, 130));
	ASSERT_EQ(0, procmap_table_exit(table, 2, 2, 130));
	ASSERT_EQ(0, procmap_table_find(table, 1, 140, model_addr(1), &found));
	for (int i = 0; i < 70000 && procmap_table_get_stats(table)->processes > 1; i++)
		ASSERT_EQ(0, procmap_table_comm(table, 3, 3, 500, "x"));
	EXPECT_EQ(1u, procmap_table_get_stats(table)->processes);
	EXPECT_EQ(0u, procmap_table_get_stats(table)->mappings);
	EXPECT_EQ(2, model.gone);

	/* So do those of what is there until the end. */
	ASSERT_EQ(0, report_mapped(500, 3, 1, 7));
	ASSERT_EQ(0, procmap_table_find(table, 4, 501, model_addr(1), &found));
	*found->user = &model;
	*found->process_user = &model;
	free_table();
	EXPECT_EQ(4, model.gone);
}

/* The table describes the new process of an ID that was used again. */
TEST_F(table, knows_a_process_id_that_is_used_again)
{
	const struct procmap_table_mapping *found;
	char comm[PROCMAP_COMM_SIZE];

	ASSERT_EQ(0, procmap_table_new(&options, &table));
	ASSERT_EQ(0, report_mapped(100, 0, 1, 7));
	ASSERT_EQ(0, procmap_table_comm(table, 1, 1, 100, "a long name of 30 characters!!"));
	ASSERT_EQ(0, procmap_table_exit(table, 1, 1, 110));
	ASSERT_EQ(0, procmap_table_fork(table, 1, 1, 2, 120));
	EXPECT_EQ(-ENOENT, inode_at(1, 121, 1));
	EXPECT_EQ(-ENOENT, procmap_table_get_comm(table, 1, 121, comm));
	/* A sample may be later than the exit. */
	ASSERT_EQ(0, procmap_table_find(table, 1, 115, model_addr(1), &found));
	EXPECT_EQ(7u, found->mapping->inode);
	EXPECT_EQ(110u, found->until);
	ASSERT_EQ(0, procmap_table_find(table, 1, 105, model_addr(1), &found));
	EXPECT_EQ(110u, found->until);
	ASSERT_EQ(0, procmap_table_get_comm(table, 1, 115, comm));
	EXPECT_STREQ("a long name of ", comm);
	/* The name of a process is that of its parent, until it has its own. */
	ASSERT_EQ(0, procmap_table_fork(table, 3, 3, 1, 115));
	ASSERT_EQ(0, procmap_table_get_comm(table, 3, 130, comm));
	EXPECT_STREQ("a long name of ", comm);
	EXPECT_EQ(-ENOENT, procmap_table_get_comm(table, 3, 114, comm));
	/* A name, or a thread, has nothing to do with mappings. */
	ASSERT_EQ(0, procmap_table_comm(table, 3, 3, 131, "new"));
	ASSERT_EQ(0, procmap_table_comm(table, 3, 4, 132, "thread"));
	ASSERT_EQ(0, procmap_table_fork(table, 3, 4, 3, 132));
	ASSERT_EQ(0, procmap_table_exit(table, 3, 4, 133));
	ASSERT_EQ(0, procmap_table_find(table, 3, 140, model_addr(1), &found));
	EXPECT_EQ(UINT64_MAX, found->until);
	/* The main thread exits, and another one maps something. */
	ASSERT_EQ(0, procmap_table_exit(table, 3, 3, 150));
	ASSERT_EQ(0, procmap_table_find(table, 3, 140, model_addr(1), &found));
	EXPECT_EQ(150u, found->until);
	ASSERT_EQ(0, procmap_table_find(table, 3, 151, model_addr(1), &found));
	EXPECT_EQ(150u, found->until);
	ASSERT_EQ(0, report_mapped(160, 2, 7, 77));
	ASSERT_EQ(0, procmap_table_find(table, 3, 140, model_addr(1), &found));
	EXPECT_EQ(UINT64_MAX, found->until);
	ASSERT_EQ(0, procmap_table_find(table, 3, 161, model_addr(1), &found));
	EXPECT_EQ(UINT64_MAX, found->until);
	EXPECT_EQ(115u, found->from);
	ASSERT_EQ(0, procmap_table_get_comm(table, 3, 140, comm));
	EXPECT_STREQ("new", comm);
	/* Events synthesized for the beginning of time do no harm. */
	ASSERT_EQ(0, procmap_table_fork(table, 3, 3, 2, 0));
	ASSERT_EQ(0, procmap_table_find(table, 3, 140, model_addr(1), &found));
	/* What begins without a parent has no name of before. */
	ASSERT_EQ(0, procmap_table_exec(table, 3, 170));
	EXPECT_EQ(-ENOENT, procmap_table_get_comm(table, 3, 171, comm));
	EXPECT_EQ(0, procmap_table_get_comm(table, 3, 169, comm));
}

TEST_F(table, shares_what_children_inherit)
{
	const struct procmap_table_mapping *found;
	size_t bytes_before, mappings_before;
	int i;

	ASSERT_EQ(0, procmap_table_new(&options, &table));
	for (i = 0; i < 10000; i++)
		ASSERT_EQ(0, report_mapped(100 + i, 0, i, i + 1));
	ASSERT_EQ(0, procmap_table_find(table, 1, 20000, model_addr(5), &found));
	bytes_before = procmap_table_get_stats(table)->bytes;
	mappings_before = procmap_table_get_stats(table)->mappings;
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, procmap_table_fork(table, i + 2, i + 2, 1, 20000 + i));
		ASSERT_EQ(i + 1, inode_at(i + 2, 30000, i));
	}
	EXPECT_EQ(mappings_before, procmap_table_get_stats(table)->mappings);
	EXPECT_GT(1000u * 1000, procmap_table_get_stats(table)->bytes - bytes_before);

	/* Mappings that the parent and one child then make are their own. */
	ASSERT_EQ(0, report_mapped(40000, 0, 5, 20000));
	ASSERT_EQ(0, report_mapped(40000, 7, 5, 20001));
	EXPECT_EQ(20000, inode_at(1, 40001, 5));
	EXPECT_EQ(20001, inode_at(8, 40001, 5));
	EXPECT_EQ(6, inode_at(9, 40001, 5));
}

/* The earliest time of an event that is still to come, of those in @order from @i on. */
static uint64_t model_first(const int *order, int i)
{
	uint64_t first = model.events[model.nr - 1].time + 20;

	for (; i < model.nr; i++)
		if (first > model.events[order[i]].time)
			first = model.events[order[i]].time;
	return first;
}

/*
 * Report the events of a model, and ask for pages at random. With what is forgotten, or finds
 * no memory, the table says less, and nothing else: of a time of which all events have come,
 * it knows what was mapped, or nothing. Returns how many answers are a mapping, or -1 if one
 * is another mapping, a limit is not kept, or an event has another error than that there is
 * no memory.
 */
static long ask_at_random(unsigned int seed, bool fails)
{
	const struct procmap_table_stats *stats;
	unsigned int random = seed * 77;
	int order[MODEL_EVENTS], i, j, id, err;
	const bool forgets = options.keep_exited != UINT64_MAX || options.max_processes ||
			     options.max_mappings || options.max_bytes;
	uint64_t latest = 0;
	long known = 0;

	model_make(seed, MODEL_EVENTS);
	/* No event comes later than the window. */
	model_shuffle(&random, options.window < 300 ? options.window : seed % 4 * 100, order);
	if (procmap_table_new(&options, &table))
		return -1;
	stats = procmap_table_get_stats(table);
	for (i = 0; i < model.nr && known >= 0; i++) {
		const struct model_event *const event = &model.events[order[i]];
		const uint64_t before = model_first(order, i + 1);

		if (latest < event->time)
			latest = event->time;
		/* All allocations of some events but the first. */
		calls.allocations = fails && (seed + i) % 37 == 0 ? i % 4 : -1;
		err = model_report(event);
		for (j = 0; j < 4 && known >= 0; j++) {
			const int pid = model_random(&random, MODEL_PIDS);
			const int page = model_random(&random, MODEL_PAGES);
			const uint64_t age = model_random(&random, j % 2 ? 40 : 800);
			const uint64_t time = before > age + 1 ? before - 1 - age : 1;

			id = model_ask(pid, page, time, fails);
			if ((id || (!fails && !forgets &&
				    (time > latest || latest - time <= options.window))) &&
			    id != model_at(pid, page, time))
				known = -1;
			else
				known += !!id;
		}
		calls.allocations = -1;
		if ((err && (!fails || err != -ENOMEM)) ||
		    stats->processes > (options.max_processes ?: MODEL_PIDS) ||
		    stats->mappings > (options.max_mappings ?: UINT_MAX) ||
		    stats->bytes > (options.max_bytes ?: UINT_MAX))
			known = -1;
	}
	free_table();
	return known;
}

TEST_F(table, never_says_another_mapping)
{
	static const uint64_t windows[] = { UINT64_MAX, 1000, 300, 20 };
	long known[4] = {}, more;
	unsigned int seed;
	size_t empty;
	int i;

	calls.allocations = 0;
	EXPECT_EQ(-ENOMEM, procmap_table_new(&options, &table));
	calls.allocations = -1;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	empty = procmap_table_get_stats(table)->bytes;
	free_table();
	for (seed = 1; seed <= 400; seed++) {
		options.window = windows[seed / 4 % 4];
		options.keep_exited = seed % 5 ? UINT64_MAX : options.window;
		for (i = 0; i < 4; i++) {
			options.max_processes = i == 0 ? 2 + seed % 3 : 0;
			options.max_mappings = i == 1 ? 4 + seed % 24 : 0;
			options.max_bytes = i == 2 ? empty + 1500 + seed * 20 : 0;
			more = ask_at_random(seed, seed % 2);
			ASSERT_LE(0, more) TH_LOG("seed %u, limit %d", seed, i);
			known[i] += more;
		}
	}
	for (i = 0; i < 4; i++)
		EXPECT_LT(1000, known[i]) TH_LOG("limit %d", i);
}

/* A miss, or a process that is gone, is read again, but not at once. */
TEST_F(table, does_not_read_again_and_again)
{
	const struct procmap_table_mapping *found;
	const struct procmap_table_stats *stats;
	int i;

	model.now = 1000;
	read_model();
	options.reread = 50;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	stats = procmap_table_get_stats(table);
	model.pages[0][3] = (struct model_page) { .id = 4 };
	/* The executable ones first. */
	ASSERT_EQ(0, procmap_table_find(table, 1, 900, model_addr(3), &found));
	EXPECT_EQ(0u, found->from);
	EXPECT_EQ(1u, stats->readings);
	for (i = 0; i < 50; i++, model.now++)
		EXPECT_EQ(-ENOENT, inode_at(1, model.now, 5));
	EXPECT_EQ(2u, stats->readings);
	EXPECT_EQ(-ENOENT, inode_at(1, model.now, 5));
	EXPECT_EQ(3u, stats->readings);
	EXPECT_EQ(0u, stats->failed);
	/* The addresses asked for are known without it, and the answer is the same. */
	ASSERT_EQ(0, procmap_table_find(table, 1, 900, model_addr(3), &found));
	EXPECT_EQ(0u, found->from);
	ASSERT_EQ(0, procmap_table_find(table, 1, model.now, model_addr(3), &found));
	EXPECT_EQ(3u, stats->readings);
	EXPECT_EQ(2u, stats->hits);

	for (i = 0; i < 50; i++, model.now++)
		EXPECT_EQ(-ESRCH, inode_at(2, model.now, 5));
	EXPECT_EQ(4u, stats->readings);
	EXPECT_EQ(1u, stats->failed);
	model.pages[1][5] = (struct model_page) { .id = 6 };
	ASSERT_EQ(0, procmap_table_find(table, 2, model.now, model_addr(5), &found));
	EXPECT_EQ(5u, stats->readings);

	/* One that has exited is not read, nor another program than that of the time. */
	ASSERT_EQ(0, procmap_table_exit(table, 3, 3, model.now));
	EXPECT_EQ(-ENOENT, inode_at(3, model.now, 5));
	ASSERT_EQ(0, procmap_table_exec(table, 4, model.now));
	EXPECT_EQ(-ENOENT, inode_at(4, model.now - 1, 5));
	EXPECT_EQ(5u, stats->readings);

	/* A new program is read at once, whether the last one was read or was gone. */
	EXPECT_EQ(-ENOENT, inode_at(2, model.now, 6));
	EXPECT_EQ(-ESRCH, inode_at(5, model.now, 6));
	model.pages[1][5].id = 7;
	model.pages[4][5] = model.pages[1][5];
	for (i = 2; i < 6; i += 3) {
		ASSERT_EQ(0, procmap_table_exec(table, i, model.now));
		EXPECT_EQ(7, inode_at(i, model.now, 5));
	}
	EXPECT_EQ(9u, stats->readings);
}

TEST_F(table, reads_again_when_events_were_lost)
{
	const struct perf_event_attr attr = {
		.sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1,
	};
	const struct {
		struct perf_event_header header;
		uint64_t id, nr, time;
	} lost = { { PERF_RECORD_LOST, 0, sizeof(lost) }, 1, 12, 1009 };
	const struct procmap_table_mapping *found;
	const struct procmap_table_stats *stats;

	model.now = 1000;
	read_model();
	options.reread = 50;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	stats = procmap_table_get_stats(table);
	model.pages[0][3] = (struct model_page) { .id = 4 };
	ASSERT_EQ(0, procmap_table_find(table, 1, 1000, model_addr(3), &found));
	model.pages[0][3].id = 5;
	model.now = 1010;
	EXPECT_EQ(4, inode_at(1, 1010, 3));
	ASSERT_EQ(0, procmap_table_record(table, &attr, &lost.header));
	EXPECT_EQ(5, inode_at(1, 1010, 3));
	EXPECT_EQ(2u, stats->readings);
	ASSERT_EQ(0, procmap_table_find(table, 1, 1011, model_addr(3), &found));
	EXPECT_EQ(2u, stats->readings);
	/* Before that, it was the old one. */
	ASSERT_EQ(0, procmap_table_find(table, 1, 1005, model_addr(3), &found));
	EXPECT_EQ(4u, found->mapping->inode);
	EXPECT_EQ(1010u, found->until);
}

/* A reading voids the events before it, and not those after it. */
TEST_F(table, believes_what_was_read)
{
	const struct procmap_table_mapping *found;

	model.now = 200;
	read_model();
	options.window = 10;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	ASSERT_EQ(0, report_mapped(100, 0, 3, 7));
	model.pages[0][5] = (struct model_page) { .id = 8 };
	ASSERT_EQ(0, procmap_table_find(table, 1, 150, model_addr(5), &found));
	ASSERT_EQ(0, procmap_table_find(table, 1, 150, model_addr(3), &found));
	EXPECT_EQ(200u, found->until);
	EXPECT_EQ(1u, procmap_table_get_stats(table)->readings);
	ASSERT_EQ(0, report_mapped(100, 4, 3, 7));
	model.pages[4][5] = model.pages[0][5];
	ASSERT_EQ(0, procmap_table_find(table, 5, 150, model_addr(5), &found));
	EXPECT_EQ(-ENOENT, inode_at(5, 200, 3));
	EXPECT_EQ(3u, procmap_table_get_stats(table)->readings);

	/* A child of that time, which nobody has read, and what was found only later. */
	ASSERT_EQ(0, procmap_table_fork(table, 2, 2, 1, 300));
	model.pages[0][3] = (struct model_page) { .id = 9 };
	model.now = 400;
	EXPECT_EQ(-ENOENT, inode_at(1, 400, 6));
	EXPECT_EQ(9, inode_at(2, 350, 3));
}

/* An event of the parent comes late, and the birth is settled before the next question. */
TEST_F(table, does_not_keep_a_view_that_is_void)
{
	int i;

	model.now = 200;
	/* The parent has exited, and is forgotten. Each child keeps what was there. */
	options.window = 1000;
	options.keep_exited = 1000;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	ASSERT_EQ(0, report_mapped(100, 0, 1, 7));
	ASSERT_EQ(0, procmap_table_fork(table, 2, 2, 1, 200));
	ASSERT_EQ(0, procmap_table_fork(table, 4, 4, 1, 120));
	EXPECT_EQ(7, inode_at(2, 250, 1));
	ASSERT_EQ(0, report_mapped(150, 0, 1, 8));
	ASSERT_EQ(0, procmap_table_exit(table, 1, 1, 210));
	ASSERT_EQ(0, procmap_table_comm(table, 3, 3, 1300, "x"));
	EXPECT_EQ(4u, procmap_table_get_stats(table)->processes);
	for (i = 0; i < 70000 && procmap_table_get_stats(table)->processes > 3; i++)
		ASSERT_EQ(0, procmap_table_comm(table, 3, 3, 1300, "x"));
	EXPECT_EQ(3u, procmap_table_get_stats(table)->processes);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(8, inode_at(2, 250, 1));
		EXPECT_EQ(7, inode_at(4, 250, 1));
	}
	free_table();

	/* Another thread forks after that: late events of the parent may still come. */
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	ASSERT_EQ(0, report_mapped(100, 0, 1, 7));
	ASSERT_EQ(0, procmap_table_exit(table, 1, 1, 210));
	ASSERT_EQ(0, procmap_table_fork(table, 2, 2, 1, 1200));
	for (i = 0; i < 20000; i++)
		ASSERT_EQ(0, procmap_table_comm(table, 3, 3, 1300, "x"));
	ASSERT_EQ(0, report_mapped(1100, 0, 1, 8));
	EXPECT_EQ(8, inode_at(2, 1300, 1));
	free_table();

	/* A grandchild has what the program before that of its parent had. */
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, report_mapped(100 + 10 * i, 0, i, 7));
	ASSERT_EQ(0, procmap_table_fork(table, 2, 2, 1, 115));
	ASSERT_EQ(0, procmap_table_fork(table, 3, 3, 2, 210));
	ASSERT_EQ(0, procmap_table_exec(table, 2, 220));
	for (i = 0; i < 90; i++)
		ASSERT_EQ(0, procmap_table_comm(table, 1, 1, 2310 + i, "x"));
	EXPECT_EQ(7, inode_at(3, 2400, 1));
}

TEST_F(table, condenses_what_is_certain)
{
	char comm[PROCMAP_COMM_SIZE];
	int i;

	model.now = 1000;
	read_model();
	options.reread = UINT64_MAX;
	model.pages[0][1] = (struct model_page) { .id = 7 };

	/* A clock that is behind that of the events does no harm. */
	options.window = 100;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	ASSERT_EQ(0, procmap_table_exec(table, 1, 2000));
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, report_mapped(2001 + i * 10, 0, 5, 9));
	EXPECT_EQ(7, inode_at(1, 4000, 1));
	EXPECT_EQ(-ENOENT, inode_at(1, 1500, 1));
	free_table();

	/* Names are those of this process, or of its parent, and do not add up. */
	options.flags = PROCMAP_TABLE_EVENTS_ONLY;
	options.window = 1000;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	ASSERT_EQ(0, procmap_table_comm(table, 2, 2, 50, "old"));
	ASSERT_EQ(0, procmap_table_exit(table, 2, 2, 60));
	ASSERT_EQ(0, procmap_table_comm(table, 1, 1, 100, "bash"));
	ASSERT_EQ(0, procmap_table_fork(table, 2, 2, 1, 200));
	ASSERT_EQ(0, procmap_table_fork(table, 3, 3, 1, 200));
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, report_mapped(300 + i * 20, 2, 5, 9));
	ASSERT_EQ(0, procmap_table_get_comm(table, 3, 4000, comm));
	EXPECT_STREQ("bash", comm);
	ASSERT_EQ(0, procmap_table_exit(table, 1, 1, 300));
	for (i = 0; i < 70000; i++)
		ASSERT_EQ(0, procmap_table_comm(table, 9, 9, 5000 + i, "z"));
	EXPECT_EQ(3u, procmap_table_get_stats(table)->processes);
	EXPECT_GT(1000000u, procmap_table_get_stats(table)->bytes);
	ASSERT_EQ(0, procmap_table_get_comm(table, 2, 5000, comm));
	EXPECT_STREQ("bash", comm);
}

/* A process that is too large alone. */
TEST_F(table, finds_what_it_still_has)
{
	int i;

	model.now = 1000;
	read_model();
	options.max_mappings = 6;
	for (i = 0; i < 7; i++)
		model.pages[0][i] = (struct model_page) {
			.id = i + 1, .is_secret = i > 1,
		};
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	EXPECT_EQ(1, inode_at(1, 1000, 0));
	/* All of them are too many, and what is read first is still there. */
	EXPECT_EQ(-ENOSPC, inode_at(1, 1000, 2));
	EXPECT_EQ(1, inode_at(1, 1000, 0));
	EXPECT_GE(1u, procmap_table_get_stats(table)->processes);
	EXPECT_GE(6u, procmap_table_get_stats(table)->mappings);
	EXPECT_EQ(-ESRCH, inode_at(2, 1000, 0));
	free_table();

	/* What a child has from a parent that was forgotten is read again. */
	options.max_mappings = 0;
	options.max_processes = 2;
	options.reread = UINT64_MAX;
	model.pages[1][1] = (struct model_page) { .id = 2 };
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	EXPECT_EQ(-ENOENT, inode_at(1, 1000, 8));
	ASSERT_EQ(0, procmap_table_fork(table, 2, 2, 1, 1000));
	EXPECT_EQ(2, inode_at(2, 1000, 1));
	EXPECT_EQ(2u, procmap_table_get_stats(table)->readings);
	ASSERT_EQ(0, report_mapped(1000, 2, 1, 7));
	EXPECT_EQ(1u, procmap_table_get_stats(table)->evicted);
	EXPECT_EQ(2, inode_at(2, 1000, 1));
	EXPECT_EQ(3u, procmap_table_get_stats(table)->readings);
	/* And what is read of the parent was not there before. */
	EXPECT_EQ(2, inode_at(1, 1000, 1));
	EXPECT_EQ(-ENOENT, inode_at(1, 999, 1));
	free_table();

	/* An event that is forgotten at once does not count. */
	options.max_processes = 0;
	options.flags = PROCMAP_TABLE_EVENTS_ONLY;
	options.max_mappings = 6;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	for (i = 0; i < 7; i++)
		ASSERT_EQ(0, report_mapped(100 + i, 0, i, i + 1));
	EXPECT_EQ(6u, procmap_table_get_stats(table)->events);
	EXPECT_EQ(1u, procmap_table_get_stats(table)->dropped);
}

TEST_F(table, refuses_nonsense)
{
	const struct procmap_table_mapping *found;
	const struct procmap_mmap good = {
		.size = sizeof(good), .addr = 0x1000, .len = 0x1000, .filename = "//anon",
	};
	struct procmap_mmap bad[6];
	char comm[PROCMAP_COMM_SIZE];
	int i;

	ASSERT_EQ(0, procmap_table_new(NULL, &table));
	free_table();
	EXPECT_EQ(-EINVAL, procmap_table_new(&options, NULL));
	/* An older program has fewer fields. */
	options.size = offsetof(struct procmap_table_options, keep_exited);
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	free_table();
	options.size = sizeof(options.size) - 1;
	EXPECT_EQ(-EINVAL, procmap_table_new(&options, &table));
	options.size = sizeof(options);
	options.flags = 0x80;
	EXPECT_EQ(-EINVAL, procmap_table_new(&options, &table));
	options.flags = PROCMAP_TABLE_EVENTS_ONLY;
	options.method = 77;
	EXPECT_EQ(-EINVAL, procmap_table_new(&options, &table));
	options.method = PROCMAP_ANY_METHOD;
	ASSERT_EQ(0, procmap_table_new(&options, &table));

	EXPECT_EQ(-EINVAL, procmap_table_mmap(NULL, 1, 1, &good));
	EXPECT_EQ(-EINVAL, procmap_table_mmap(table, 0, 1, &good));
	EXPECT_EQ(-EINVAL, procmap_table_mmap(table, -1, 1, &good));
	EXPECT_EQ(-EINVAL, procmap_table_mmap(table, 1, 1, NULL));
	for (i = 0; i < 6; i++)
		bad[i] = good;
	bad[0].size = 0;
	bad[1].filename = NULL;
	bad[2].len = 0;
	bad[3].len = UINT64_MAX;
	bad[4].pgoff = UINT64_MAX;
	bad[5].build_id_size = PROCMAP_BUILD_ID_MAX + 1;
	for (i = 0; i < 6; i++)
		EXPECT_EQ(-EINVAL, procmap_table_mmap(table, 1, 1, &bad[i])) TH_LOG("%d", i);
	EXPECT_EQ(-EINVAL, procmap_table_fork(table, 1, 1, 0, 1));
	EXPECT_EQ(-EINVAL, procmap_table_fork(table, 0, 1, 1, 1));
	EXPECT_EQ(-EINVAL, procmap_table_exec(NULL, 1, 1));
	EXPECT_EQ(-EINVAL, procmap_table_exec(table, -5, 1));
	EXPECT_EQ(-EINVAL, procmap_table_exit(table, 1, 0, 1));
	EXPECT_EQ(-EINVAL, procmap_table_comm(table, 1, 1, 1, NULL));
	EXPECT_EQ(-EINVAL, procmap_table_lost(NULL, 1));
	EXPECT_EQ(-EINVAL, procmap_table_get_comm(table, 1, 1, NULL));
	EXPECT_EQ(-EINVAL, procmap_table_get_comm(table, 0, 1, comm));
	EXPECT_EQ(-EINVAL, procmap_table_find(table, 0, 1, 1, &found));
	EXPECT_EQ(-EINVAL, procmap_table_find(table, 1, 1, 1, NULL));
	EXPECT_EQ(NULL, procmap_table_get_stats(NULL));
	EXPECT_EQ(0u, procmap_table_get_stats(table)->processes);
	procmap_table_free(NULL);

	/* Memory without a file is as in the text. */
	ASSERT_EQ(0, procmap_table_mmap(table, 1, 1, &good));
	ASSERT_EQ(0, procmap_table_find(table, 1, 2, 0x1800, &found));
	EXPECT_EQ(0x1000u, found->mapping->start);
	EXPECT_EQ(0u, found->mapping->offset);
	EXPECT_STREQ("", found->mapping->name);
	EXPECT_EQ(-ENOENT, procmap_table_find(table, 1, 2, 0x2000, &found));
	EXPECT_EQ(-ENOENT, procmap_table_find(table, 9, 2, 0x1000, &found));
	/* A child of itself, in a circle. */
	ASSERT_EQ(0, procmap_table_fork(table, 5, 5, 6, 10));
	ASSERT_EQ(0, procmap_table_fork(table, 6, 6, 5, 10));
	EXPECT_EQ(-ENOENT, procmap_table_find(table, 5, 10, 0x1000, &found));
	EXPECT_EQ(-ENOENT, procmap_table_find(table, 6, UINT64_MAX, 0x1000, &found));
	ASSERT_EQ(0, procmap_table_fork(table, 6, 6, 5, 10));
	EXPECT_EQ(-ENOENT, procmap_table_find(table, 5, 20, 0x1000, &found));
	EXPECT_EQ(-ENOENT, procmap_table_find(table, 6, 20, 0x1000, &found));
	/* Each in this circle has an ancestor that is younger than itself. */
	ASSERT_EQ(0, procmap_table_fork(table, 11, 11, 12, 10));
	ASSERT_EQ(0, procmap_table_fork(table, 13, 13, 14, 10));
	ASSERT_EQ(0, procmap_table_fork(table, 12, 12, 13, 10));
	ASSERT_EQ(0, procmap_table_fork(table, 14, 14, 11, 10));
	for (i = 11; i < 15; i++)
		EXPECT_EQ(-ENOENT, procmap_table_find(table, i, 20, 0x1000, &found));
	/* The first question is answered by the log, the second by the view. */
	ASSERT_EQ(0, procmap_table_mmap(table, 22, 5, &good));
	ASSERT_EQ(0, procmap_table_fork(table, 21, 21, 27, 10));
	ASSERT_EQ(0, procmap_table_fork(table, 27, 27, 22, 10));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-ENOENT, procmap_table_find(table, 21, 20, 0x1800, &found));
}

static int open_given_text(void *text, pid_t pid, struct procmap **procmap)
{
	(void)pid;
	return procmap_open_text(text, strlen(text), NULL, procmap);
}

/*
 * Without a file, only the vDSO has a build ID. Two mappings with one name, device and inode
 * may be of different files. A saved text has neither files nor memory, which is an error.
 */
TEST_F(table, tells_an_unknown_build_id_from_none)
{
	static const struct {
		const char *name;
		int inode;
		int reported;
		int expected;
	} mappings[] = {
		{ "/some/library", 5, 3, 3 },
		{ "/some/library", 5, 0, -EAGAIN },
		{ "//toolong", 0, 0, -EAGAIN },
		{ "anon_inode:[x]", 0, 0, -EAGAIN },
		{ "[vdso]", 0, 0, -EAGAIN },
		{ "[heap]", 0, 0, 0 },
		{ "//anon", 0, 0, 0 },
	};
	char text[] = "10000-11000 r-xp 00000000 00:00 0\n"
		      "11000-12000 r-xp 00000000 00:00 0 [vdso]\n"
		      "12000-13000 r-xp 00000000 08:01 5 /some/library\n";
	const int expected[2][3] = { { 0, -EAGAIN, -EAGAIN }, { 0, -ENODEV, -ENODEV } };
	const struct procmap_table_mapping *found;
	size_t i, j;

	options.open = open_given_text;
	options.context = text;
	for (i = 0; i < 2; i++) {
		options.flags = i ? PROCMAP_TABLE_BUILD_IDS : 0;
		ASSERT_EQ(0, procmap_table_new(&options, &table));
		for (j = 0; j < 3; j++) {
			ASSERT_EQ(0, procmap_table_find(table, 1, 1, 0x10000 + j * PAGE,
							&found));
			EXPECT_EQ(expected[i][j], found->mapping->build_id_size)
				TH_LOG("%zu, %zu", i, j);
		}
		free_table();
	}

	options.flags = PROCMAP_TABLE_EVENTS_ONLY;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	for (i = 0; i < ARRAY_SIZE(mappings); i++) {
		const struct procmap_mmap event = {
			.size = sizeof(event), .addr = model_addr(i), .len = PAGE,
			.filename = mappings[i].name, .ino = mappings[i].inode,
			.build_id_size = mappings[i].reported, .build_id = "abc",
		};

		ASSERT_EQ(0, procmap_table_mmap(table, 1, 1, &event));
		ASSERT_EQ(0, procmap_table_find(table, 1, 1, model_addr(i), &found));
		EXPECT_EQ(mappings[i].expected, found->mapping->build_id_size)
			TH_LOG("%s", mappings[i].name);
	}
}

/* An event, and then a reading of the same mapping: its file is the same if it may be. */
TEST_F(table, compares_what_both_events_and_readings_have)
{
	const uint64_t addr = (uintptr_t)model_now;
	const struct procmap_table_mapping *found;
	struct procmap_mmap event;
	uint8_t id[20] = {};
	struct maps maps;
	int i;

	model.now = 20;
	options.flags = PROCMAP_TABLE_BUILD_IDS;
	options.now = model_now;
	ASSERT_TRUE(read_text(getpid(), &maps));
	for (i = 0; i < 5; i++) {
		const struct maps_line *const line = line_at(&maps, addr);

		event = (struct procmap_mmap) {
			.size = sizeof(event),
			.addr = line->start, .len = line->end - line->start,
			.pgoff = line->offset, .filename = line->name,
			.prot = PROT_READ | PROT_EXEC,
		};
		if (i < 2) {
			event.maj = line->dev_major;
			event.min = line->dev_minor;
			event.ino = line->inode + i;
		} else if (i < 4) {
			event.build_id_size = 20;
			memcpy(event.build_id, id, 20);
			event.build_id[19] += i == 3;
		}
		ASSERT_EQ(0, procmap_table_new(&options, &table));
		ASSERT_EQ(0, procmap_table_mmap(table, getpid(), 10, &event));
		ASSERT_EQ(0, procmap_table_find(table, getpid(), 15, addr, &found));
		EXPECT_EQ(i % 2 ? 20u : UINT64_MAX, found->until) TH_LOG("%d", i);
		EXPECT_EQ(event.build_id_size ? 20 : -EAGAIN,
			  found->mapping->build_id_size);
		/* Later, it is as it was read. */
		ASSERT_EQ(0, procmap_table_find(table, getpid(), 20, addr, &found));
		EXPECT_TRUE(is_as_line(found->mapping, line));
		ASSERT_EQ(20, found->mapping->build_id_size);
		memcpy(id, found->mapping->build_id, 20);
		free_table();
	}
	free_maps(&maps);
}

TEST_F(table, reads_procfs_that_is_elsewhere)
{
	char proc[] = "/proc/self/root/proc";
	const uint64_t addr = (uintptr_t)model_now;
	const struct procmap_table_mapping *found;

	options.flags = 0;
	options.proc = proc;
	options.reread = UINT64_MAX;
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	memset(proc, 'x', strlen(proc));	/* the table has a copy */
	EXPECT_EQ(0, procmap_table_find(table, getpid(), UINT64_MAX, addr, &found));
	EXPECT_EQ(1u, procmap_table_get_stats(table)->readings);
	free_table();

	options.proc = "/nonexistent";
	ASSERT_EQ(0, procmap_table_new(&options, &table));
	EXPECT_EQ(-ENOENT, procmap_table_find(table, getpid(), UINT64_MAX, addr, &found));
	EXPECT_EQ(1u, procmap_table_get_stats(table)->failed);
}

TEST_HARNESS_MAIN
