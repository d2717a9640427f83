// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The mappings of many processes over time.
 *
 * A process is known by a log of entries in the order of their time: something was mapped,
 * its mappings were read, it was forked, it executed a program. The log
 * alone decides what was mapped at an address at a time: see walk_log(). A entry that
 * comes late is sorted in, and needs nothing else.
 *
 * Most questions are about the present. The mappings of each process as of the end of
 * its log are kept as an array, the view, which is searched by halves. It follows from
 * the log. Something that was mapped is put into the view by its time; other entries, and
 * a mapping that came later than one of those, make the view void.
 *
 * Entries that have not been valid for longer than the window are condensed: those up to
 * then become one, a view.
 */
#include <errno.h>
#include <string.h>

#include "table.h"

/* A log is condensed when it has this many entries more than &process.condense_at. */
#define ENTRIES_MIN	64

/* The number of entries up to a time. */
size_t entries_up_to(const struct process *process, uint64_t time)
{
	size_t from = 0, to = process->nr_entries;

	if (to && process->entries[to - 1].time <= time)
		return to;
	while (from < to) {
		const size_t middle = (from + to) / 2;

		if (process->entries[middle].time <= time)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* The last of the first @nr entries that is about mappings. */
static const struct log_entry *last_change(const struct process *process, size_t nr)
{
	while (process->entries[nr - 1].kind >= NAMED)
		nr--;
	return &process->entries[nr - 1];
}

/* The last of the first @nr entries that begins a program. */
const struct log_entry *last_begun(const struct process *process, size_t nr)
{
	while (process->entries[nr - 1].kind != BEGUN)
		nr--;
	return &process->entries[nr - 1];
}

/* The index of the entry that has a program. */
static size_t index_of(const struct program *program)
{
	const struct log_entry *const entries = program->process->entries;
	size_t at = 0;

	while (entries[at].kind != BEGUN || entries[at].program != program)
		at++;
	return at;
}

/*
 * Return the time from which a reading is valid: its own if events had reported mappings
 * before; otherwise, that of the beginning of the program.
 */
static uint64_t known_from(const struct process *process, size_t reading)
{
	const struct log_entry *const before = last_change(process, reading);

	if (before->kind != BEGUN || before->program->parent)
		return process->entries[reading].time;
	return before->time;
}

static int walk_paint(struct walk *walk, const struct piece *piece)
{
	if (walk->nr == walk->size) {
		const size_t more = walk->size * 2 + 64;
		struct piece *const pieces = realloc(walk->pieces,
						     more * sizeof(*pieces));

		if (!pieces)
			return -ENOMEM;
		walk->pieces = pieces;
		walk->size = more;
	}
	walk->pieces[walk->nr++] = *piece;
	return 0;
}

/* Something is mapped. Returns 0; 1 if that is at the address; or -ENOMEM. */
static int walk_see(struct walk *walk, uint64_t start, uint64_t end, uint64_t from,
		    struct record *record)
{
	if (record && walk->is_void && is_executable(record))
		record = NULL;
	if (!walk->is_question)
		return walk_paint(walk, &(struct piece) { start, end, from, record });
	if (walk->addr < start) {
		walk->high = earlier(walk->high, start);
		return 0;
	}
	walk->low = later(walk->low, walk->addr < end ? start : end);
	if (walk->addr >= end)
		return 0;
	walk->high = earlier(walk->high, end);
	walk->record = record;
	walk->from = from;
	return 1;
}

/*
 * See the pieces of a view that are not later than a time. Those of a reading have no
 * times. For a question, the address's neighbours on both sides are enough.
 */
static int see_view(struct walk *walk, const struct view *view, uint64_t from,
		    uint64_t time)
{
	size_t i = 0, end = view->nr;
	int err = 0;

	if (walk->is_question) {
		i = pieces_below(view, walk->addr);
		end = i + (i < end);
		i -= !!i;
	}
	for (; i < end && !err; i++) {
		const struct piece *const piece = &view->pieces[i];

		err = walk_see(walk, piece->start, piece->end, later(from, piece->from),
			       piece->from <= time ? piece->record : NULL);
	}
	return err;
}

/*
 * Return the program if it began with the mappings of a parent, or NULL. @next, unless
 * NULL, is the program that the walk came from; it has to be later, as no process is its
 * own ancestor.
 */
static struct program *inherited(const struct log_entry *begun, const struct program *next)
{
	struct program *const program = begun->program;

	if (!program->parent || (next && program->time == next->time &&
				 program->number >= next->number))
		return NULL;
	return program;
}

/*
 * See what the entries up to a time report, the last ones first. Set @program to the one
 * whose parent has the rest, or to NULL.
 */
static int walk_back(struct walk *walk, const struct process *process, uint64_t time,
		     struct program **program)
{
	const struct program *const next = *program;
	size_t nr = entries_up_to(process, time);
	int err = 0;

	*program = NULL;
	while (nr-- && !err) {
		const struct log_entry *const entry = &process->entries[nr];

		switch (entry->kind) {
		case MAPPED:
			err = walk_see(walk, entry->record->start, entry->record->end,
				       entry->time, entry->record);
			break;
		case WAS_READ:
		case CONDENSED:
			err = see_view(walk, entry->view, entry->kind == WAS_READ ?
				       known_from(process, nr) : 0, time);
			if (entry->view->extent == OF_ALL)
				return err;
			walk->is_void |= entry->view->extent == OF_EXECUTABLE;
			break;
		case BEGUN:
			*program = inherited(entry, next);
			return 0;
		case NAMED:
		case EXITED:
			break;
		}
	}
	return err;
}

/* Mappings that were read later, and not made in between, were there before. */
static int walk_forward(struct walk *walk, const struct process *process, uint64_t time)
{
	size_t nr = entries_up_to(process, time);
	const uint64_t from = nr ? last_change(process, nr)->time : 0;
	int err = 0;

	if (!nr)
		return 0;
	for (; nr < process->nr_entries && !err; nr++) {
		const struct log_entry *const entry = &process->entries[nr];

		switch (entry->kind) {
		case MAPPED:
			err = walk_see(walk, entry->record->start, entry->record->end, 0, NULL);
			break;
		case WAS_READ:
			err = see_view(walk, entry->view, from, time);
			if (entry->view->extent == OF_ALL)
				return err;
			break;
		case CONDENSED:
			return see_view(walk, entry->view, 0, time);
		case BEGUN:
			return 0;
		case NAMED:
		case EXITED:
			break;
		}
	}
	return err;
}

/* Flatten the pieces from index @begin on, and drop those without a record. */
static int flatten_from(struct walk *walk, size_t begin)
{
	const size_t nr = walk->nr - begin;
	struct piece *pieces, *spare;
	size_t i, nr_flat;

	if (!nr)
		return 0;
	pieces = realloc(walk->pieces, (begin + 2 * nr) * sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	walk->pieces = pieces;
	walk->size = begin + 2 * nr;
	spare = malloc(2 * nr * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	nr_flat = flatten(pieces + begin, nr, spare);
	free(spare);
	walk->nr = begin;
	for (i = begin; i < begin + nr_flat; i++)
		if (pieces[i].record)
			pieces[walk->nr++] = pieces[i];
	return 0;
}

/*
 * Find what was mapped at a time. Walk back through the log, and through those of the
 * ancestors. What they do not have may have been read later, from the first ancestor or the
 * next ones. Later readings of the process itself count only if @is_final: while the log
 * has them, they may turn out to be of another program.
 */
int walk_log(struct walk *walk, const struct process *process, uint64_t time,
	     bool is_final)
{
	struct program *program = NULL, *last = NULL;
	bool was_void = false;
	size_t begin = 0;
	int err;

	for (;;) {
		err = walk_back(walk, process, last ? last->time : time, &program);
		if (err || !program)
			break;
		program->below = last;
		program->was_void = was_void;
		program->begin = begin;
		last = program;
		was_void = walk->is_void;
		begin = walk->nr;
		process = program->parent;
	}
	while (err >= 0 && !walk->record) {
		err = flatten_from(walk, begin);
		walk->is_void = was_void;
		if (!err && (last || is_final))
			err = walk_forward(walk, process, last ? last->time : time);
		if (err >= 0)
			err = flatten_from(walk, begin);
		if (!last)
			break;
		was_void = last->was_void;
		begin = last->begin;
		process = last->process;
		last = last->below;
	}
	return err;
}

/*
 * Make the view at a time; for @is_final, see walk_log(). Returns NULL without memory. The
 * caller puts it.
 */
static struct view *make_view(struct procmap_table *table,
			      const struct process *process, uint64_t time,
			      bool is_final)
{
	struct view *const view = new_view(table, OF_EVENTS);
	struct walk walk = { .nr = 0 };

	if (view && !walk_log(&walk, process, time, is_final) &&
	    !splice(table, view, 0, 0, walk.pieces, walk.nr)) {
		free(walk.pieces);
		return view;
	}
	free(walk.pieces);
	put_view(table, view);
	return NULL;
}

void drop_view(struct procmap_table *table, struct process *process)
{
	put_view(table, process->view);
	process->view = NULL;
	process->is_settled = false;
}

/* Return whether the view is valid. Without parents, no other process makes it void. */
static bool has_view(const struct procmap_table *table, const struct process *process)
{
	return process->view &&
	       (process->of_changes == table->changes || !process->nr_parents);
}

/*
 * The ancestor that has at the end of its log what the process has at the end of its own:
 * of a child of which nothing else is known, that is the parent. Returns NULL if there is
 * none: the ancestor has changed since, or would be its own.
 */
static struct process *origin_of(struct process *process)
{
	uint64_t time = UINT64_MAX;
	struct program *program = NULL;
	const struct log_entry *last;

	for (;;) {
		last = last_change(process, process->nr_entries);
		if (last->time > time)
			return NULL;
		if (last->kind != BEGUN || !last->program->parent)
			return process;
		program = inherited(last, program);
		if (!program)
			return NULL;
		process = program->parent;
		time = program->time;
	}
}

/*
 * Make the view at the end of the log, unless there is one. If all that is known was read
 * at once, that is the view: its pieces have no times, and are valid since the program
 * began.
 */
bool have_view(struct procmap_table *table, struct process *process)
{
	const struct log_entry *const last = last_change(process, process->nr_entries);
	struct process *origin;

	if (has_view(table, process)) {
		process->of_changes = table->changes;
		return true;
	}
	drop_view(table, process);
	origin = origin_of(process);
	process->of_changes = table->changes;
	if (last->kind == WAS_READ &&
	    known_from(process, last - process->entries) < last->time)
		process->view = get_view(last->view);
	else if (!origin || origin == process)
		process->view = make_view(table, process, UINT64_MAX, true);
	else if (have_view(table, origin))
		process->view = get_view(origin->view);
	if (process->view)
		make_slots(table, process->view);
	return process->view;
}

/* Return whether the view can take a mapping: only if later entries are mappings, too. */
static bool fits_view(const struct process *process, size_t at)
{
	for (; at < process->nr_entries; at++)
		if (process->entries[at].kind > MAPPED && process->entries[at].kind < NAMED)
			return false;
	return true;
}

/* Put a mapping into the view, if there is one. */
static void extend_view(struct procmap_table *table, struct process *process,
			const struct log_entry *entry)
{
	struct view *view = process->view;

	if (view && view->refs > 1) {
		view = copy_view(table, view);
		put_view(table, process->view);
		process->view = view;
	}
	if (!view || put_in_view(table, view, entry->time, entry->record))
		drop_view(table, process);
	process->of_changes = table->changes;
}

static void leave_parent(struct procmap_table *table, struct program *program)
{
	if (!program->parent)
		return;
	*program->link = program->next;
	if (program->next)
		program->next->link = program->link;
	program->parent = NULL;
	/* Without parents, has_view() would take a void view for a valid one. */
	if (program->process->of_changes != table->changes)
		drop_view(table, program->process);
	program->process->nr_parents--;
}

static void put_program(struct procmap_table *table, struct program *program)
{
	leave_parent(table, program);
	user_is_gone(table, program->user);
	release(table, program, sizeof(*program));
}

/* Drop what a entry owns. */
void put_entry(struct procmap_table *table, const struct log_entry *entry)
{
	switch (entry->kind) {
	case MAPPED:
		put_record(table, entry->record);
		break;
	case WAS_READ:
	case CONDENSED:
		put_view(table, entry->view);
		break;
	case BEGUN:
		put_program(table, entry->program);
		break;
	case NAMED:
	case EXITED:
		break;
	}
}

static int insert_entry(struct procmap_table *table, struct process *process, size_t at,
			const struct log_entry *entry)
{
	struct log_entry *const entries = grow(table, process->entries, process->nr_entries + 1,
					       &process->entries_size, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	process->entries = entries;
	memmove(entries + at + 1, entries + at, (process->nr_entries - at) * sizeof(*entries));
	entries[at] = *entry;
	process->nr_entries++;
	return 0;
}

/* Derive the present state of the process from the end of its log. */
static void update_process(struct process *process)
{
	const struct program *const program = process->program;
	enum extent was_read = OF_EVENTS;
	bool is_mapped = false;
	size_t i = process->nr_entries;

	process->exited_at = UINT64_MAX;
	process->is_settled = false;
	while (process->entries[--i].kind != BEGUN) {
		const struct log_entry *const entry = &process->entries[i];

		if (entry->kind == EXITED && !is_mapped)
			process->exited_at = entry->time;
		if (entry->kind == WAS_READ && was_read == OF_EVENTS)
			was_read = entry->view->extent;
		is_mapped |= entry->kind < BEGUN;
	}
	process->begun = process->entries[i].time;
	process->program = process->entries[i].program;
	if (process->program == program)
		return;
	process->was_read = was_read;
	process->has_been_read = was_read != OF_EVENTS;
}

/* Add an entry to the log, which owns what is in it if that works. */
int add_entry(struct procmap_table *table, struct process *process,
	      const struct log_entry *entry)
{
	const size_t at = entries_up_to(process, entry->time);
	bool fits;
	int err;

	err = insert_entry(table, process, at, entry);
	if (err)
		return err;
	if (entry->kind == BEGUN || entry->kind == EXITED)
		update_process(process);
	if (entry->kind >= NAMED)
		return 0;
	if (!has_view(table, process))
		drop_view(table, process);
	fits = entry->kind == MAPPED && fits_view(process, at);
	if (process->children &&
	    (entry->kind == WAS_READ || entry->time <= process->last_child ||
	     (!fits && at < process->nr_entries - 1)))
		table->changes++;
	if (fits)
		extend_view(table, process, entry);
	else
		drop_view(table, process);
	if (entry->kind == MAPPED && entry->time >= process->exited_at)
		process->exited_at = UINT64_MAX;
	return 0;
}

/* The latest time that is older than the window: what is not valid later is void. */
static uint64_t oldest_time(const struct procmap_table *table)
{
	const uint64_t window = table->options.window;

	return table->latest > window ? table->latest - window : 0;
}

/*
 * Return whether the child has begun another program before the window, and has no child
 * itself that may have the mappings of before.
 */
static bool is_over(const struct procmap_table *table, const struct program *program)
{
	const struct process *const child = program->process;

	return child->program != program && child->begun <= oldest_time(table) &&
	       !child->children;
}

/*
 * The name of a process at a time; NULL if unknown. A child has its parent's. What begins
 * without a parent has none: before that, the ID was that of another process or program.
 */
const char *find_comm(const struct process *process, uint64_t time)
{
	size_t nr = entries_up_to(process, time);
	const struct program *program = NULL;

	while (nr--) {
		const struct log_entry *const entry = &process->entries[nr];

		if (entry->kind == NAMED)
			return entry->comm;
		if (entry->kind != BEGUN)
			continue;
		program = inherited(entry, program);
		if (!program)
			break;
		process = program->parent;
		nr = entries_up_to(process, program->time);
	}
	return NULL;
}

/*
 * Keep what a child has from its parent, the @view, as entries of its own. Without a view,
 * nothing is known of that any more.
 */
void settle_program(struct procmap_table *table, struct program *program,
		    struct view *view)
{
	struct log_entry condensed = { .time = program->time, .kind = CONDENSED, .view = view };
	const char *const comm = view ? find_comm(program->parent, program->time) : NULL;
	struct log_entry named = { .time = program->time, .kind = NAMED };
	struct process *const child = program->process;
	const size_t at = index_of(program);

	/* @comm points into a log, which may be moved below. */
	if (comm)
		memcpy(named.comm, comm, sizeof(named.comm));
	leave_parent(table, program);
	if (view && !insert_entry(table, child, at + 1, &condensed)) {
		view->refs++;
	} else {
		if (child->program == program) {
			drop_view(table, child);
			child->was_read = OF_EVENTS;
		}
		if (child->children)
			table->changes++;
	}
	if (comm)
		insert_entry(table, child, at + 1, &named);
}

/*
 * Settle the programs that began up to a time with the mappings of a process. Those with no
 * entry in between share the view, as before. Without room for it, they have to be read.
 */
void settle_children(struct procmap_table *table, struct process *process,
		     uint64_t time)
{
	struct program *program, *next;
	struct view *view = NULL;
	size_t nr, nr_of_view = 0;

	for (program = process->children; program; program = next) {
		next = program->next;
		if (program->time > time)
			continue;
		nr = entries_up_to(process, program->time);
		if (nr != nr_of_view) {
			put_view(table, view);
			view = NULL;
		}
		if (!view && !is_over(table, program) &&
		    table->stats.bytes <= table->options.max_bytes) {
			view = make_view(table, process, program->time, true);
			nr_of_view = nr;
		}
		settle_program(table, program, view);
	}
	put_view(table, view);
}

/* Returns NULL without memory. */
static struct program *new_program(struct procmap_table *table, struct process *process,
				   struct process *parent, uint64_t time)
{
	struct program *const program = allocate(table, sizeof(*program));

	if (!program)
		return NULL;
	program->process = process;
	program->time = time;
	program->number = ++table->nr_programs;
	if (!parent)
		return program;
	program->parent = parent;
	program->next = parent->children;
	program->link = &parent->children;
	if (parent->children)
		parent->children->link = &program->next;
	parent->children = program;
	parent->last_child = later(parent->last_child, time);
	process->nr_parents++;
	return program;
}

/* Begin another program of a process, or another process with its ID. */
int begin(struct procmap_table *table, struct process *process, struct process *parent,
	  uint64_t time)
{
	const struct log_entry begun = {
		.time = time,
		.kind = BEGUN,
		.program = new_program(table, process, parent, time),
	};
	const int err = begun.program ? add_entry(table, process, &begun) : -ENOMEM;

	if (err && begun.program)
		put_program(table, begun.program);
	return err;
}

/*
 * Keep these of a log whose first @nr entries are condensed: the last program, the
 * last name, @view as of @time, and an exit after that.
 */
static void keep_entries(struct procmap_table *table, struct process *process, size_t nr,
			 struct view *view, uint64_t time)
{
	const struct log_entry condensed = { .time = time, .kind = CONDENSED, .view = view };
	struct log_entry begun, named = { .kind = NAMED }, exited = { .kind = MAPPED };
	const char *const comm = find_comm(process, process->entries[nr - 1].time);
	struct log_entry *const entries = process->entries;
	size_t i, last = 0, kept = 0;

	if (comm)
		memcpy(named.comm, comm, sizeof(named.comm));
	for (i = 0; i < nr; i++) {
		if (entries[i].kind == BEGUN)
			last = i;
		else if (entries[i].kind == EXITED)
			exited = entries[i];
	}
	begun = entries[last];
	for (i = 0; i < nr; i++)
		if (i != last)
			put_entry(table, &entries[i]);
	leave_parent(table, begun.program);
	entries[kept++] = begun;
	if (comm) {
		named.time = begun.time;
		entries[kept++] = named;
	}
	entries[kept++] = condensed;
	if (exited.kind == EXITED && exited.time >= time)
		entries[kept++] = exited;
	memmove(entries + kept, entries + nr, (process->nr_entries - nr) * sizeof(*entries));
	process->nr_entries -= nr - kept;
	process->horizon = time;
}

/* Condense entries older than the window, once as many came as the result has pieces. */
void condense(struct procmap_table *table, struct process *process)
{
	struct view *view;
	uint64_t time;
	size_t nr;

	if (process->nr_entries < process->condense_at + ENTRIES_MIN)
		return;
	process->condense_at = process->nr_entries * 2;
	nr = entries_up_to(process, oldest_time(table));
	/* Condensing may leave as many. */
	if (nr <= 4)
		return;
	time = last_change(process, nr)->time;
	settle_children(table, process, time);
	view = make_view(table, process, time, false);
	if (!view)
		return;
	process->condense_at = (process->nr_entries - nr) * 2 + view->nr;
	keep_entries(table, process, nr, view, time);
}

/*
 * Return whether a mapping that was read differs from @record. Fields that only one of them
 * has, as the inode in an event with a build ID, are not compared.
 */
static bool is_other_mapping(const struct record *read, const struct record *record)
{
	const struct procmap_mapping *const a = &read->file->mapping;
	const struct procmap_mapping *const b = &record->file->mapping;

	return read->is_of_file != record->is_of_file ||
	       read->offset - read->start != record->offset - record->start ||
	       strcmp(a->name, b->name) ||
	       (has_file(a) && has_file(b) && !same_file(a, b)) ||
	       (a->build_id_size >= 0 && b->build_id_size >= 0 && compare_build_ids(a, b));
}

/*
 * Return the time until which a mapping that was found is known to be there. A process that
 * maps something after its exit has other threads.
 */
uint64_t known_until(const struct process *process, size_t nr, uint64_t addr,
		     const struct record *record)
{
	const struct piece *piece;
	uint64_t exit = UINT64_MAX;
	size_t i, at;

	for (i = nr; i && (process->entries[i - 1].kind >= NAMED ||
			   process->entries[i - 1].kind == WAS_READ); i--)
		if (process->entries[i - 1].kind == EXITED)
			exit = process->entries[i - 1].time;
	for (i = nr; i < process->nr_entries; i++) {
		const struct log_entry *const entry = &process->entries[i];

		switch (entry->kind) {
		case MAPPED:
			if (addr >= entry->record->start && addr < entry->record->end)
				return entry->time;
			exit = UINT64_MAX;
			break;
		case WAS_READ:
			at = pieces_below(entry->view, addr);
			piece = at < entry->view->nr ? &entry->view->pieces[at] : NULL;
			if (!piece || piece->start > addr ?
			    entry->view->extent == OF_ALL || is_executable(record) :
			    is_other_mapping(piece->record, record))
				return earlier(exit, entry->time);
			break;
		case CONDENSED:
		case BEGUN:
			return earlier(exit, entry->time);
		case EXITED:
			exit = earlier(exit, entry->time);
			break;
		case NAMED:
			break;
		}
	}
	return exit;
}
