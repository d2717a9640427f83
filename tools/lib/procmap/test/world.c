// SPDX-License-Identifier: GPL-2.0
#include "world.h"

#include <time.h>

unsigned int world_random(unsigned int *seed, unsigned int below)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % below;
}

void world_apply(struct world_page pages[WORLD_PIDS][WORLD_PAGES],
		 const struct world_event *event)
{
	struct world_page *const own = pages[event->pid];
	int i;

	switch (event->kind) {
	case W_FORK:
		memcpy(own, pages[event->from], sizeof(*pages));
		break;
	case W_EXEC:
		memset(own, 0, sizeof(*pages));
		break;
	case W_EXIT:
		break;
	default:
		for (i = 0; i < event->nr; i++)
			own[event->first + i] = event->kind == W_UNMAP ?
				(struct world_page) { .id = 0 } :
				(struct world_page) { event->id, event->first,
						      event->kind == W_SECRET };
	}
}

struct world_page world_at(const struct world *world, int pid, int page,
			   uint64_t time, bool reported)
{
	struct world_page pages[WORLD_PIDS][WORLD_PAGES] = {};
	int i;

	for (i = 0; i < world->nr && world->events[i].time <= time; i++)
		if (!reported || world->events[i].kind < W_UNMAP)
			world_apply(pages, &world->events[i]);
	return pages[pid][page];
}

void world_make(struct world *world, unsigned int seed, int nr, bool secrets)
{
	int i;

	*world = (struct world) { .nr = nr };
	for (i = 0; i < nr; i++) {
		struct world_event *const event = &world->events[i];
		const unsigned int dice = world_random(&seed, 20);

		event->time = 100 + 10 * i;
		event->kind = dice < 12 ? W_MMAP : dice < 14 ? W_FORK :
			      dice < 15 ? W_EXEC : dice < 16 ? W_EXIT :
			      !secrets ? W_MMAP : dice < 18 ? W_UNMAP : W_SECRET;
		event->pid = world_random(&seed, WORLD_PIDS);
		event->from = (event->pid + 1 + world_random(&seed, WORLD_PIDS - 1)) %
			      WORLD_PIDS;
		event->first = world_random(&seed, WORLD_PAGES);
		event->nr = 1 + world_random(&seed, WORLD_PAGES - event->first);
		event->id = i + 1;
	}
}

uint64_t world_addr(int page)
{
	return WORLD_BASE + (uint64_t)page * 0x1000;
}

static uint64_t world_offset(int id, int page)
{
	return (uint64_t)id * 0x100000 + (uint64_t)page * 0x1000;
}

struct procmap_mmap world_mmap(const struct world_event *event)
{
	return (struct procmap_mmap) {
		.size = sizeof(struct procmap_mmap),
		.addr = world_addr(event->first),
		.len = (uint64_t)event->nr * 0x1000,
		.pgoff = world_offset(event->id, event->first),
		.ino = event->id,
		.maj = 8,
		.min = 1,
		.prot = PROT_READ | PROT_EXEC,
		.filename = "/some/library",
	};
}

int world_report(struct procmap_table *table, const struct world_event *event)
{
	const struct procmap_mmap mapped = world_mmap(event);
	const pid_t pid = event->pid + 1;

	switch (event->kind) {
	case W_MMAP:
		return procmap_table_mmap(table, pid, event->time, &mapped);
	case W_FORK:
		return procmap_table_fork(table, pid, pid, event->from + 1,
					  event->time);
	case W_EXEC:
		return procmap_table_exec(table, pid, event->time);
	case W_EXIT:
		return procmap_table_exit(table, pid, pid, event->time);
	default:
		return 0;
	}
}

int world_ask(const struct world *world, struct procmap_table *table, int pid,
	      int page, uint64_t time, bool reported)
{
	const struct procmap_table_mapping *found;
	const uint64_t addr = world_addr(page) + 0x123;
	uint64_t at;
	int err, id;

	err = procmap_table_find(table, pid + 1, time, addr, &found);
	if (err)
		return err == -ENOENT || err == -ESRCH || err == -ENOSPC ? 0 : -1;
	id = found->mapping->inode;
	if (addr < found->mapping->start || addr >= found->mapping->end ||
	    found->mapping->offset + addr - found->mapping->start !=
	    world_offset(id, page) + 0x123 ||
	    found->from > time ||
	    strcmp(found->mapping->name, "/some/library"))
		return -1;
	if (!reported)
		return id;
	/* All that it claims is so. */
	for (at = found->mapping->start; at < found->mapping->end; at += 0x1000)
		if (world_at(world, pid, (at - WORLD_BASE) / 0x1000, time, true).id != id)
			return -1;
	if (world_at(world, pid, page, found->from, true).id != id)
		return -1;
	return id;
}

struct procmap_table_options world_options(struct world *world)
{
	return (struct procmap_table_options) {
		.size = sizeof(struct procmap_table_options),
		.flags = PROCMAP_TABLE_EVENTS_ONLY,
		.window = UINT64_MAX,
		.context = world,
	};
}

bool knows_world(const struct world *world, struct procmap_table *table,
		 uint64_t from)
{
	uint64_t time;
	int pid, page;

	for (time = from; time < world->events[world->nr - 1].time + 20; time += 5)
		for (pid = 0; pid < WORLD_PIDS; pid++)
			for (page = 0; page < WORLD_PAGES; page++)
				if (world_ask(world, table, pid, page, time, true) !=
				    world_at(world, pid, page, time, true).id)
					return false;
	return true;
}

void world_shuffle(const struct world *world, unsigned int *seed, uint64_t late,
		   int *order)
{
	uint64_t due[WORLD_EVENTS];
	int i, j, k;

	for (i = 0; i < world->nr; i++) {
		due[i] = world->events[i].time + (late ? world_random(seed, late) : 0);
		for (j = 0; j < i && due[order[j]] <= due[i]; j++)
			;
		for (k = i; k > j; k--)
			order[k] = order[k - 1];
		order[j] = i;
	}
}

uint64_t world_now(void *context)
{
	const struct world *const world = context;

	return world->now;
}

int world_open(void *context, pid_t pid, struct procmap **procmap)
{
	struct world *const world = context;
	struct world_page *const pages = world->pages[pid - 1];
	size_t len = 0;
	int page, end;

	for (page = 0; page < WORLD_PAGES; page = end) {
		for (end = page + 1; end < WORLD_PAGES &&
		     pages[end].id == pages[page].id; end++)
			;
		if (pages[page].id)
			len += sprintf(world->text + len,
				       "%x-%x r-%cp %08x 08:01 %d /some/library\n",
				       (unsigned int)world_addr(page),
				       (unsigned int)world_addr(end),
				       pages[page].is_secret ? '-' : 'x',
				       (unsigned int)world_offset(pages[page].id, page),
				       pages[page].id);
	}
	return len ? procmap_open_text(world->text, len, NULL, procmap) : -ESRCH;
}

void read_world(struct procmap_table_options *options)
{
	options->flags = 0;
	options->now = world_now;
	options->open = world_open;
}

int report_mapped(struct procmap_table *table, uint64_t time, int pid, int page,
		  int id)
{
	const struct world_event event = {
		.time = time,
		.kind = W_MMAP,
		.pid = pid,
		.first = page,
		.nr = 1,
		.id = id,
	};

	return world_report(table, &event);
}

int inode_at(struct procmap_table *table, pid_t pid, uint64_t time, int page)
{
	const struct procmap_table_mapping *found;
	int err;

	err = procmap_table_find(table, pid, time, world_addr(page), &found);
	return err ? err : (int)found->mapping->inode;
}
