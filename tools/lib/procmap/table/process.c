// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The processes of a table: how they are found, read, asked for and forgotten, and what
 * events do to them.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "table.h"

#define PROCESSES_MAX	16384
#define MAPPINGS_MAX	0x200000
#define BYTES_MAX	0x10000000

/* Processes */

static void unlink_used(struct procmap_table *table, struct process *process)
{
	*(process->newer ? &process->newer->older : &table->newest) = process->older;
	*(process->older ? &process->older->newer : &table->oldest) = process->newer;
}

static void link_used(struct procmap_table *table, struct process *process)
{
	process->newer = NULL;
	process->older = table->newest;
	*(table->newest ? &table->newest->newer : &table->oldest) = process;
	table->newest = process;
}

static size_t chain_of(pid_t pid)
{
	return (pid * 0x9e3779b97f4a7c15) >> CHAINS_SHIFT;
}

static struct process *find_process(const struct procmap_table *table, pid_t pid)
{
	struct process *process = table->processes[chain_of(pid)];

	while (process && process->pid != pid)
		process = process->next;
	return process;
}

static uint64_t *forgotten_of(struct procmap_table *table, pid_t pid)
{
	return &table->forgotten[pid % FORGOTTEN];
}

/* Events of this process before @time are incomplete from now on. */
static void note_forgotten(struct procmap_table *table, pid_t pid, uint64_t time)
{
	*forgotten_of(table, pid) = later(*forgotten_of(table, pid), time);
}

static void forget_process(struct procmap_table *table, struct process *process)
{
	struct process **link = &table->processes[chain_of(process->pid)];
	size_t i;

	note_forgotten(table, process->pid, process->entries[process->nr_entries - 1].time);
	while (process->children)
		settle_program(table, process->children, NULL);
	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	unlink_used(table, process);
	drop_view(table, process);
	for (i = 0; i < process->nr_entries; i++)
		put_entry(table, &process->entries[i]);
	release(table, process->entries, process->entries_size * sizeof(*process->entries));
	release(table, process, sizeof(*process));
	table->stats.processes--;
}

/* Get a process, of which nothing may be known yet. Returns NULL without memory. */
static struct process *get_process(struct procmap_table *table, pid_t pid)
{
	struct process *process = find_process(table, pid), **chain;

	if (process)
		return process;
	process = allocate(table, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->horizon = *forgotten_of(table, pid);
	if (begin(table, process, NULL, process->horizon)) {
		release(table, process, sizeof(*process));
		return NULL;
	}
	chain = &table->processes[chain_of(pid)];
	process->next = *chain;
	*chain = process;
	link_used(table, process);
	table->stats.processes++;
	return process;
}

static bool table_is_full(const struct procmap_table *table)
{
	return table->stats.processes > table->options.max_processes ||
	       table->stats.mappings > table->options.max_mappings ||
	       table->stats.bytes > table->options.max_bytes;
}

/* Forget those not used for longest. Returns -ENOSPC if @kept is one of them. */
static int make_room(struct procmap_table *table, const struct process *kept)
{
	struct process *victim;
	bool was_kept = false;

	while (table_is_full(table) && table->oldest) {
		victim = table->oldest;
		if (victim->newer && (victim->is_used || victim == kept)) {
			victim->is_used = false;
			unlink_used(table, victim);
			link_used(table, victim);
			continue;
		}
		was_kept |= victim == kept;
		forget_process(table, victim);
		table->stats.evicted++;
	}
	return was_kept ? -ENOSPC : 0;
}

/*
 * Forget the processes of the next chain that exited long ago and forked nothing since.
 * Their children keep what they have from them.
 */
static void sweep_chain(struct procmap_table *table, const struct process *kept)
{
	struct process *process = table->processes[table->sweep], *next;

	for (; process; process = next) {
		const uint64_t last = later(process->exited_at, process->last_child);

		next = process->next;
		if (process == kept || table->latest <= last ||
		    table->latest - last <= table->options.keep_exited)
			continue;
		settle_children(table, process, UINT64_MAX);
		forget_process(table, process);
	}
	table->sweep = (table->sweep + 1) % CHAINS;
}

/* Reading */

static uint64_t now_of(const struct procmap_table *table)
{
	struct timespec now;

	if (table->options.now)
		return table->options.now(table->options.context);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int open_process(const struct procmap_table *table, pid_t pid,
			struct procmap **procmap)
{
	const struct procmap_options options = {
		.size = sizeof(options),
		.method = table->options.method,
		.proc = table->options.proc,
	};

	return table->options.open ?
	       table->options.open(table->options.context, pid, procmap) :
	       procmap_open_pid(pid, &options, procmap);
}

/*
 * The size of a build ID that was neither read nor reported: unknown, unless the mapping
 * can have none. The vDSO is an ELF file in memory.
 */
static int32_t unread_build_id(const struct procmap_mapping *mapping)
{
	if (has_file(mapping) || !strcmp(mapping->name, "[vdso]"))
		return -EAGAIN;
	return *mapping->name && *mapping->name != '[' ? -EAGAIN : 0;
}

/* Read the mappings into a view, which has none. */
static int read_view(struct procmap_table *table, pid_t pid, struct view *view)
{
	const unsigned int flags =
		(view->extent == OF_EXECUTABLE ? PROCMAP_EXECUTABLE : 0) |
		(table->options.flags & PROCMAP_TABLE_BUILD_IDS ?
		 PROCMAP_WANT_BUILD_ID : 0);
	const struct procmap_table_stats before = table->stats;
	const struct procmap_mapping *found;
	struct procmap *procmap;
	uint64_t cursor = 0;
	int err;

	err = open_process(table, pid, &procmap);
	if (err)
		return err;
	while (!err && !(err = procmap_next(procmap, &cursor, flags, &found))) {
		struct piece piece = { .start = found->start, .end = found->end };
		struct procmap_mapping mapping = *found;

		if (!(flags & PROCMAP_WANT_BUILD_ID))
			mapping.build_id_size = unread_build_id(&mapping);
		piece.record = new_record(table, &mapping);
		err = piece.record ?
		      splice(table, view, view->nr, view->nr, &piece, 1) : -ENOMEM;
		put_record(table, piece.record);
		if (table->stats.mappings - before.mappings >
		    table->options.max_mappings ||
		    table->stats.bytes - before.bytes > table->options.max_bytes)
			err = -ENOSPC;
	}
	procmap_close(procmap);
	return err == -ENOENT ? 0 : err;
}

/* More than any process executes programs in a row. */
#define READ_TRIES	10

static int read_mappings(struct procmap_table *table, pid_t pid, enum extent extent,
			 struct view **view)
{
	int err = -ESTALE, tries;

	for (tries = 0; err == -ESTALE && tries < READ_TRIES; tries++) {
		*view = new_view(table, extent);
		err = *view ? read_view(table, pid, *view) : -ENOMEM;
		if (err)
			put_view(table, *view);
	}
	return err == -ESTALE ? -ESRCH : err;
}

/*
 * Read a process. Its time is taken before the reading: what happens meanwhile has later
 * events.
 */
static int read_process(struct procmap_table *table, struct process *process,
			enum extent extent)
{
	struct log_entry was_read = { .time = now_of(table), .kind = WAS_READ };

	/* What is read is this program, whatever the clock says. */
	was_read.time = later(was_read.time, later(process->begun, process->horizon));
	table->stats.readings++;
	process->has_been_read = true;
	process->read_at = was_read.time;
	process->error = read_mappings(table, process->pid, extent, &was_read.view);
	if (!process->error) {
		process->error = add_entry(table, process, &was_read);
		if (process->error)
			put_view(table, was_read.view);
	}
	if (process->error) {
		table->stats.failed++;
		return process->error;
	}
	process->was_read = extent;
	table->latest = later(table->latest, was_read.time);
	condense(table, process);
	return 0;
}

/* Return whether it was read, or that failed, too recently to be read again. */
static bool was_just_read(const struct procmap_table *table,
			  const struct process *process)
{
	return process->has_been_read &&
	       now_of(table) - process->read_at < table->options.reread;
}

static bool may_be_read(const struct procmap_table *table, const struct process *process)
{
	return !(table->options.flags & PROCMAP_TABLE_EVENTS_ONLY) &&
	       process->exited_at == UINT64_MAX;
}

/* Drop the reading of executable mappings when all were read after it. */
static void drop_reading(struct procmap_table *table, struct process *process)
{
	struct log_entry *const all = &process->entries[process->nr_entries - 1];
	struct log_entry *const part = all - 1;

	if (all->kind != WAS_READ || part->kind != WAS_READ ||
	    part->view->extent != OF_EXECUTABLE)
		return;
	drop_view(table, process);
	put_entry(table, part);
	*part = *all;
	process->nr_entries--;
}

/* Return whether it has to be read before a question is answered. */
static bool is_to_be_read(const struct procmap_table *table,
			  const struct process *process)
{
	if (!may_be_read(table, process))
		return false;
	if (process->was_read != OF_EVENTS && process->read_at >= table->lost_at)
		return false;
	return !process->error || !was_just_read(table, process);
}

/* Return whether to read all for an address that is not known to be mapped. */
static bool is_worth_reading(const struct procmap_table *table,
			     const struct process *process)
{
	if (!may_be_read(table, process))
		return false;
	return (process->was_read != OF_ALL && !process->error) ||
	       !was_just_read(table, process);
}

/* Answers */

static void put_answer(struct procmap_table *table, struct record *record, uint64_t start,
		       uint64_t end)
{
	struct procmap_mapping *const mapping = &table->mapping;

	*mapping = record->file->mapping;
	mapping->start = start;
	mapping->end = end;
	mapping->offset = record->offset;
	if (record->is_of_file)
		mapping->offset += start - record->start;
	mapping->page_size = record->page_size;
	mapping->flags = record->flags;
	table->found.mapping = mapping;
	table->found.user = &record->user;
}

/* Returns false if nothing was found. */
static bool find_in_log(struct procmap_table *table, const struct process *process,
			uint64_t time, uint64_t addr)
{
	struct walk walk = {
		.is_question = true,
		.addr = addr,
		.high = UINT64_MAX,
	};
	const size_t nr = entries_up_to(process, time);
	const struct log_entry *begun;

	walk_log(&walk, process, time, true);
	if (!walk.record)
		return false;
	put_answer(table, walk.record, walk.low, walk.high);
	table->found.until = known_until(process, nr, addr, walk.record);
	begun = last_begun(process, nr);
	/* The parent may have had it before. */
	table->found.from = later(walk.from, begun->time);
	table->found.process_user = &begun->program->user;
	return true;
}

/* Returns false if the view does not suffice for an answer. */
static inline bool find_in_view(struct procmap_table *table,
				const struct process *process, uint64_t time,
				uint64_t addr)
{
	const struct piece *piece;
	size_t at;

	if (!process->is_settled || process->of_changes != table->changes ||
	    time < process->begun)
		return false;
	at = pieces_below(process->view, addr);
	if (at == process->view->nr)
		return false;
	piece = &process->view->pieces[at];
	if (piece->start > addr || piece->from > time)
		return false;
	put_answer(table, piece->record, piece->start, piece->end);
	table->found.from = later(piece->from, process->begun);
	table->found.until = process->exited_at;
	table->found.process_user = &process->program->user;
	return true;
}

static int find_slowly(struct procmap_table *table, pid_t pid, uint64_t time,
		       uint64_t addr)
{
	struct process *process = find_process(table, pid);
	const uint64_t readings = table->stats.readings;
	bool found;

	if (!process && table->options.flags & PROCMAP_TABLE_EVENTS_ONLY)
		return -ENOENT;
	if (!process)
		process = get_process(table, pid);
	if (!process)
		return -ENOMEM;
	process->is_used = true;

	if (time >= process->begun && is_to_be_read(table, process))
		read_process(table, process, OF_EXECUTABLE);
	found = find_in_log(table, process, time, addr);
	if (!found && time >= process->begun && is_worth_reading(table, process)) {
		if (!read_process(table, process, OF_ALL) &&
		    table->stats.readings == readings + 2)
			drop_reading(table, process);
		found = find_in_log(table, process, time, addr);
	}
	process->is_settled = !is_to_be_read(table, process) &&
			      have_view(table, process);

	if (table_is_full(table)) {
		if (make_room(table, process))
			return -ENOSPC;
		/* It may have been that of a parent, which is forgotten now. */
		found = find_in_log(table, process, time, addr);
	}
	if (!found)
		return process->error ? process->error : -ENOENT;
	if (table->stats.readings == readings)
		table->stats.hits++;
	return 0;
}

int procmap_table_find(struct procmap_table *table, pid_t pid, uint64_t time,
		       uint64_t addr, const struct procmap_table_mapping **mapping)
{
	struct process *process;
	int err;

	if (!table || pid <= 0 || !mapping)
		return -EINVAL;
	process = find_process(table, pid);
	if (process && find_in_view(table, process, time, addr)) {
		process->is_used = true;
		table->stats.hits++;
	} else {
		err = find_slowly(table, pid, time, addr);
		if (err)
			return err;
	}
	*mapping = &table->found;
	return 0;
}

/* Events */

/* Get the process of an event; NULL if the event is dropped, or without memory. */
static struct process *process_of_event(struct procmap_table *table, pid_t pid,
					uint64_t time, int *err)
{
	struct process *process = find_process(table, pid);

	*err = 0;
	table->latest = later(table->latest, time);
	if (time < (process ? process->horizon : *forgotten_of(table, pid))) {
		table->stats.dropped++;
		return NULL;
	}
	process = get_process(table, pid);
	if (!process) {
		note_forgotten(table, pid, time);
		*err = -ENOMEM;
		return NULL;
	}
	sweep_chain(table, process);
	return process;
}

/* End an event that was added, or failed with @err: then, what is known may be wrong. */
static int end_event(struct procmap_table *table, struct process *process, uint64_t time,
		     int err)
{
	if (err) {
		note_forgotten(table, process->pid, time);
		forget_process(table, process);
		make_room(table, NULL);
		return err;
	}
	condense(table, process);
	if (make_room(table, process))
		table->stats.dropped++;
	else
		table->stats.events++;
	return 0;
}

/* Make a mapping of an event. Returns false if it makes no sense. */
static bool to_mapping(const struct procmap_mmap *event, struct procmap_mapping *mapping)
{
	const bool has_path = event->filename[0] == '/' && event->filename[1] != '/';

	*mapping = (struct procmap_mapping) {
		.start = event->addr,
		.end = event->addr + event->len,
		.name = event->filename,
		.flags = (event->prot & PROT_READ ? PROCMAP_READABLE : 0) |
			 (event->prot & PROT_WRITE ? PROCMAP_WRITABLE : 0) |
			 (event->prot & PROT_EXEC ? PROCMAP_EXECUTABLE : 0) |
			 (event->flags & MAP_SHARED ? PROCMAP_SHARED : 0),
		.build_id_size = event->build_id_size,
	};
	if (!event->len || event->addr + event->len < event->addr ||
	    event->pgoff + event->len < event->pgoff ||
	    event->build_id_size > PROCMAP_BUILD_ID_MAX)
		return false;
	memcpy(mapping->build_id, event->build_id, event->build_id_size);
	/* Without a file, the kernel's name is not that of the text. */
	if (!strncmp(event->filename, "//anon", 6))
		mapping->name = "";
	mapping->name_len = strlen(mapping->name);
	if (mapping->name_len > 4 * PATH_MAX)
		return false;
	if (has_path || event->ino || event->build_id_size) {
		mapping->offset = event->pgoff;
		mapping->inode = event->ino;
		mapping->dev_major = event->maj;
		mapping->dev_minor = event->min;
	}
	if (!event->build_id_size)
		mapping->build_id_size = unread_build_id(mapping);
	return true;
}

int procmap_table_mmap(struct procmap_table *table, pid_t pid, uint64_t time,
		       const struct procmap_mmap *given)
{
	struct log_entry mapped = { .time = time, .kind = MAPPED };
	struct procmap_mmap event;
	struct procmap_mapping mapping;
	struct process *process;
	int err;

	if (!table || pid <= 0 || !given ||
	    take_struct(&event, sizeof(event), given) || !event.filename ||
	    !to_mapping(&event, &mapping))
		return -EINVAL;
	process = process_of_event(table, pid, time, &err);
	if (!process)
		return err;
	mapped.record = new_record(table, &mapping);
	err = mapped.record ? add_entry(table, process, &mapped) : -ENOMEM;
	if (err)
		put_record(table, mapped.record);
	return end_event(table, process, time, err);
}

int procmap_table_fork(struct procmap_table *table, pid_t pid, pid_t tid, pid_t ppid,
		       uint64_t time)
{
	struct process *process, *parent;
	int err;

	if (!table || pid <= 0 || tid <= 0 || ppid <= 0)
		return -EINVAL;
	if (pid == ppid)
		return 0;
	process = process_of_event(table, pid, time, &err);
	if (!process)
		return err;
	parent = get_process(table, ppid);
	if (parent)
		parent->is_used = true;
	err = parent ? begin(table, process, parent, time) : -ENOMEM;
	if (!err && process->begun == time && parent->begun <= time &&
	    !process->has_been_read) {
		process->was_read = parent->was_read;
		process->has_been_read = parent->has_been_read;
		process->read_at = parent->read_at;
	}
	return end_event(table, process, time, err);
}

int procmap_table_exec(struct procmap_table *table, pid_t pid, uint64_t time)
{
	struct process *process;
	int err;

	if (!table || pid <= 0)
		return -EINVAL;
	process = process_of_event(table, pid, time, &err);
	if (!process)
		return err;
	return end_event(table, process, time, begin(table, process, NULL, time));
}

/* Add an event of the main thread. Those of other threads do not matter. */
static int add_event(struct procmap_table *table, pid_t pid, pid_t tid,
		     const struct log_entry *entry)
{
	struct process *process;
	int err;

	if (tid != pid)
		return 0;
	process = process_of_event(table, pid, entry->time, &err);
	if (!process)
		return err;
	return end_event(table, process, entry->time, add_entry(table, process, entry));
}

int procmap_table_comm(struct procmap_table *table, pid_t pid, pid_t tid, uint64_t time,
		       const char *comm)
{
	struct log_entry named = { .time = time, .kind = NAMED };

	if (!table || pid <= 0 || tid <= 0 || !comm)
		return -EINVAL;
	memcpy(named.comm, comm, strnlen(comm, sizeof(named.comm) - 1));
	return add_event(table, pid, tid, &named);
}

int procmap_table_exit(struct procmap_table *table, pid_t pid, pid_t tid, uint64_t time)
{
	const struct log_entry exited = { .time = time, .kind = EXITED };

	if (!table || pid <= 0 || tid <= 0)
		return -EINVAL;
	return add_event(table, pid, tid, &exited);
}

int procmap_table_lost(struct procmap_table *table, uint64_t time)
{
	struct process *process;

	if (!table)
		return -EINVAL;
	table->lost_at = later(table->lost_at, time);
	for (process = table->newest; process; process = process->older)
		process->is_settled = false;
	return 0;
}

int procmap_table_get_comm(struct procmap_table *table, pid_t pid, uint64_t time,
			   char comm[PROCMAP_COMM_SIZE])
{
	const struct process *process;
	const char *found;

	if (!table || pid <= 0 || !comm)
		return -EINVAL;
	process = find_process(table, pid);
	found = process ? find_comm(process, time) : NULL;
	if (!found)
		return -ENOENT;
	memcpy(comm, found, PROCMAP_COMM_SIZE);
	return 0;
}

const struct procmap_table_stats *
procmap_table_get_stats(const struct procmap_table *table)
{
	return table ? &table->stats : NULL;
}

/* The caller's options, with the defaults. Returns 0 or -EINVAL. */
static int take_options(struct procmap_table_options *options,
			const struct procmap_table_options *given)
{
	const int err = take_struct(options, sizeof(*options), given);

	if (err)
		return err;
	if (!options->max_processes)
		options->max_processes = PROCESSES_MAX;
	if (!options->max_mappings)
		options->max_mappings = MAPPINGS_MAX;
	if (!options->max_bytes)
		options->max_bytes = BYTES_MAX;
	if (options->keep_exited < options->window)
		options->keep_exited = options->window;
	return is_method(options->method) &&
	       !(options->flags &
		 ~(PROCMAP_TABLE_EVENTS_ONLY | PROCMAP_TABLE_BUILD_IDS)) ? 0 : -EINVAL;
}

int procmap_table_new(const struct procmap_table_options *given,
		      struct procmap_table **table)
{
	struct procmap_table_options options;
	struct procmap_table *new;
	size_t size;

	if (!table || take_options(&options, given))
		return -EINVAL;
	size = sizeof(*new) + (options.proc ? strlen(options.proc) + 1 : 0);
	new = calloc(1, size);
	if (!new)
		return -ENOMEM;
	new->options = options;
	if (options.proc)
		new->options.proc = strcpy(new->proc, options.proc);
	new->stats.bytes = size;
	*table = new;
	return 0;
}

void procmap_table_free(struct procmap_table *table)
{
	if (!table)
		return;
	while (table->oldest)
		forget_process(table, table->oldest);
	free(table);
}
