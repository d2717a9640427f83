// SPDX-License-Identifier: GPL-2.0
/* procfs_query: look mappings up as the command line says, and collect them by file. */
#include "procfs_query_lookup.h"
#include "procfs_query_name.h"
#include "tool.h"

#include <search.h>

const char *method_name(enum procmap_method method)
{
	static const char *const names[] = {
		[PROCMAP_ANY_METHOD] = "default", [PROCMAP_BY_SCAN] = "scan",
		[PROCMAP_BY_QUERY] = "query", [PROCMAP_BY_TEXT] = "text",
	};

	return names[method];
}

/* Of several processes, or to compare paths, one dead server would block all. */
unsigned int open_flags(const struct options *options)
{
	const bool asks_kernel = given(options, OPT_QUERY) &&
				 options->flags & PROCMAP_WANT_BUILD_ID;
	unsigned int flags = asks_kernel ? PROCMAP_KERNEL_BUILD_IDS : 0;

	if (given(options, OPT_ASK_SERVERS))
		flags |= PROCMAP_ALL_SERVERS;
	else if (is_of_many(options) || given(options, OPT_NAME | OPT_DELETED))
		flags |= PROCMAP_NO_SERVERS;
	return flags;
}

int open_mappings(const struct options *options, struct procmap **procmap)
{
	if (given(options, OPT_FD))
		return procmap_open_fd(options->fd, BY(options->method, options), procmap);
	return options->maps_file ?
	       procmap_open_text(options->text, options->text_len, NULL, procmap) :
	       procmap_open_pid(options->pid, BY(options->method, options), procmap);
}

/* Unlike with visit(), the mappings are all of one program, or there is an error. */
int visit_snapshot(const struct options *options,
		   void (*visit)(const struct options *options,
				 const struct procmap_mapping *vma))
{
	struct procmap_snapshot *snapshot;
	struct procmap *procmap;
	size_t i;
	int err;

	err = open_mappings(options, &procmap);
	if (err)
		return err;
	err = procmap_snapshot_take(procmap, options->flags, &snapshot);
	procmap_close(procmap);
	if (err)
		return err;
	for (i = 0; i < procmap_snapshot_count(snapshot); i++)
		visit(options, procmap_snapshot_at(snapshot, i));
	procmap_snapshot_free(snapshot);
	return 0;
}

/*
 * Set the address that the symbols of the mapped file have at an address of the process.
 * Returns 1; 0 if there is none; or -errno if the file cannot be read. A maps file alone
 * opens no file: the one with the name is the mapped one, or the library refuses it.
 */
static int elf_address(const struct options *options, struct procmap *procmap,
		       const struct procmap_mapping *vma, uint64_t addr, uint64_t *address)
{
	const struct procmap_file_options by_name = { .size = sizeof(by_name), .proc = proc_dir };
	struct procmap_file *file;
	int err;

	err = procmap_open_file(options->is_only_maps ? NULL : procmap, vma, &by_name, &file);
	fail_without_files(err);
	if (err)
		return err == -ENODEV ? 0 : err;
	err = procmap_file_mapped_address(file, vma, addr, address);
	procmap_close_file(file);
	if (!err)
		return 1;
	return err == -ENOENT || err == -ENOEXEC ? 0 : err;
}

struct answer answer_of(const struct options *options, struct procmap *procmap,
			uint64_t addr, const struct procmap_mapping *vma)
{
	struct answer answer = { .addr = addr, .vma = vma };

	if (vma && given(options, OPT_ELF_ADDRESS))
		answer.elf = elf_address(options, procmap, vma, addr, &answer.elf_address);
	return answer;
}

static int visit_mappings(struct procmap *procmap, const struct options *options,
			  visit_fn visit, void *context)
{
	const struct procmap_mapping *vma;
	uint64_t cursor = 0;
	int err;

	while (!(err = procmap_next(procmap, &cursor, options->flags, &vma)))
		visit(context, &(struct answer) { .addr = vma->start, .vma = vma });
	return err == -ENOENT ? 0 : err;
}

static int visit_addresses(struct procmap *procmap,
			   const struct options *options, visit_fn visit,
			   void *context)
{
	const struct procmap_resolved *resolved;
	struct answer answer;
	size_t i;
	int err;

	err = procmap_resolve(procmap, options->addrs, options->nr_addrs,
			      options->flags, &resolved);
	if (err)
		return err;
	for (i = 0; i < options->nr_addrs; i++) {
		answer = answer_of(options, procmap, options->addrs[i],
				   resolved->mappings[i]);
		visit(context, &answer);
	}
	procmap_free_resolved(resolved);
	return 0;
}

/*
 * Visit each address with the mapping that covers it, or NULL; or, without addresses,
 * each mapping with its start.
 */
int visit(struct procmap *procmap, const struct options *options,
	  visit_fn visit_one, void *context)
{
	if (options->name)
		return visit_name(procmap, options, visit_one, context);
	return options->nr_addrs ?
	       visit_addresses(procmap, options, visit_one, context) :
	       visit_mappings(procmap, options, visit_one, context);
}

/*
 * Find the row of @size bytes that a mapping belongs to, or add one. What never had a path is
 * known by its name alone.
 */
void *row_of(struct rows *rows, const struct procmap_mapping *vma, size_t size)
{
	struct procmap_mapping *const new = need(calloc(1, size));
	void *found;

	*new = *vma;
	if (*vma->name != '/' || is_memory(vma->name)) {
		new->inode = 0;
		new->dev_major = 0;
		new->dev_minor = 0;
	}
	found = *(void **)need(tsearch(new, &rows->tree, by_file));
	if (found != new) {
		free(new);
		return found;
	}
	new->name = need(strdup(vma->name));
	rows->all = room_for_one(rows->all, rows->nr, &rows->room, sizeof(*rows->all));
	rows->all[rows->nr++] = new;
	return new;
}
