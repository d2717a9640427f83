// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: visit the mapped files of processes. Build IDs and deletion take a
 * system call for each file, so they are looked up only for files that are new.
 */
#include "procfs_query.h"

/**
 * struct file_walk - a walk over the mappings of a process
 * @visitor: the functions to call.
 * @starts: the first addresses of mappings whose file is not known yet, rising.
 * @nr: the number of these.
 * @room: the number that @starts has room for.
 */
struct file_walk {
	const struct file_visitor *visitor;
	uint64_t *starts;
	size_t nr;
	size_t room;
};

int by_inode(const struct procmap_mapping *x, const struct procmap_mapping *y)
{
	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->dev_major != y->dev_major)
		return x->dev_major < y->dev_major ? -1 : 1;
	if (x->dev_minor != y->dev_minor)
		return x->dev_minor < y->dev_minor ? -1 : 1;
	return 0;
}

static void visit_mapping(void *context, uint64_t addr,
			  const struct procmap_mapping *vma)
{
	struct file_walk *const walk = context;

	if (!walk->visitor->visit(walk->visitor->context, vma))
		return;
	walk->starts = room_for_one(walk->starts, walk->nr, &walk->room,
				    sizeof(addr));
	walk->starts[walk->nr++] = addr;
}

/*
 * Go back to the mappings whose file is not known. Rising addresses are a walk, too,
 * so the text is not read again for each of them.
 */
static int learn(struct procmap *procmap, const struct options *options,
		 const struct file_walk *walk)
{
	const unsigned int flags = options->flags | walk->visitor->want;
	const struct procmap_mapping *vma;
	size_t i;

	for (i = 0; i < walk->nr; i++) {
		uint64_t cursor = walk->starts[i];
		const int err = procmap_next(procmap, &cursor, flags, &vma);

		if (err)
			return err == -ENOENT ? 0 : err;
		walk->visitor->learn(walk->visitor->context, vma);
	}
	return 0;
}

/* Start again if the process executes another program. */
int visit_files(const struct options *options, const struct file_visitor *visitor)
{
	struct file_walk walk = { .visitor = visitor };
	struct procmap *procmap;
	int err;

	err = procmap_open_pid(options->pid, options->method, &procmap);
	if (err)
		return err;
	do {
		walk.nr = 0;
		visitor->begin(visitor->context);
		err = visit(procmap, options, visit_mapping, &walk);
		if (!err)
			err = learn(procmap, options, &walk);
	} while (err == -ESTALE && !(err = procmap_reopen(procmap)));
	procmap_close(procmap);
	free(walk.starts);
	return err;
}
