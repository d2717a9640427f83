// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Handles, and the lookup of one mapping by PROCMAP_QUERY or in the text.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "internal.h"

/* A name of PROCMAP_QUERY that has a newline for each byte fits, and a NUL. */
#define NAME_SIZE	(PATH_MAX * NEWLINE_LEN)

SAME(PROCMAP_READABLE, PROCMAP_QUERY_VMA_READABLE);
SAME(PROCMAP_WRITABLE, PROCMAP_QUERY_VMA_WRITABLE);
SAME(PROCMAP_EXECUTABLE, PROCMAP_QUERY_VMA_EXECUTABLE);
SAME(PROCMAP_SHARED, PROCMAP_QUERY_VMA_SHARED);
SAME(PROCMAP_FILE_BACKED, PROCMAP_QUERY_FILE_BACKED_VMA);

/* As in the text, so that all methods return the same names. */
static const char newline[] = "\\012";
#define NEWLINE_LEN	(sizeof(newline) - 1)

/* The first time, which is when a handle is opened, for all names but a few. */
int name_reserve(struct name_buffer *name, size_t size)
{
	char *bytes;

	if (size <= name->size)
		return 0;
	size = size < NAME_SIZE ? NAME_SIZE : size * 2;
	bytes = realloc(name->bytes, size);
	if (!bytes)
		return -ENOMEM;
	/* Checkers of memory do not know that an ioctl will write it. */
	if (!name->bytes)
		memset(bytes, 0, PATH_MAX);
	name->bytes = bytes;
	name->size = size;
	return 0;
}

int take_struct(void *to, size_t size, const void *from)
{
	const unsigned char *const bytes = from;
	size_t given = 0, i;

	memset(to, 0, size);
	if (!from)
		return 0;
	memcpy(&given, from, sizeof(given));
	if (given < sizeof(given))
		return -EINVAL;
	for (i = size; i < given; i++)
		if (bytes[i])
			return -EINVAL;
	memcpy(to, from, given < size ? given : size);
	return 0;
}

int reopen(int fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	int new;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* Its owner may have a lease on it, for whose end open(2) would wait. */
	new = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return new < 0 ? -errno : new;
}

static int call_query(int fd, struct procmap_query *query)
{
	const unsigned int command = PROCMAP_QUERY;	/* an int in musl */
	int ret;

	query->size = sizeof(*query);
	do {
		ret = ioctl(fd, command, query);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

/* Returns 0 if PROCMAP_QUERY works, or its error. */
static int probe_query(int fd)
{
	struct procmap_query any = {
		.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
	};
	const int err = call_query(fd, &any);

	return err == -ENOENT ? 0 : err;
}

/* Return whether the next method should be tried after this error of an ioctl. */
static bool is_unavailable(int err)
{
	return err == -ENOTTY || err == -EACCES || err == -EPERM ||
	       err == -ENOSYS;
}

/* Free the text of maps, whose file is that of the handle. */
static void end_text(struct procmap *procmap)
{
	procmap->maps.fd = -1;
	text_close(&procmap->maps);
	procmap->maps = (struct text) { .fd = -1 };
}

/*
 * Every kernel that has the scan has the query, too, which also finds a process gone, and
 * is all that procmap_find() needs.
 */
static int choose_ioctl(struct procmap *procmap, enum procmap_method method)
{
	const int err = probe_query(procmap->fd);

	procmap->method = method;
	return err || method != PROCMAP_BY_SCAN ? err : scan_probe(procmap->fd);
}

enum procmap_method method_of(struct procmap *procmap)
{
	if (procmap->method == PROCMAP_ANY_METHOD)
		procmap->method = scan_probe(procmap->fd) ? PROCMAP_BY_QUERY :
							    PROCMAP_BY_SCAN;
	return procmap->method;
}

static int choose_method(struct procmap *procmap, enum procmap_method method)
{
	int err;

	procmap->any = method == PROCMAP_ANY_METHOD;
	if (method != PROCMAP_BY_TEXT) {
		err = choose_ioctl(procmap, method);
		if (!is_unavailable(err) || !procmap->any)
			return err;
	}
	procmap->method = PROCMAP_BY_TEXT;
	return text_is_there(procmap->fd);
}

static struct procmap *new_handle(void)
{
	struct procmap *const procmap = calloc(1, sizeof(*procmap));

	if (!procmap)
		return NULL;
	procmap->fd = -1;
	procmap->process = -1;
	procmap->dir = -1;
	procmap->maps.fd = -1;
	procmap->smaps.fd = -1;
	if (name_reserve(&procmap->name, NAME_SIZE)) {
		free(procmap);
		return NULL;
	}
	return procmap;
}

bool is_method(enum procmap_method method)
{
	return method == PROCMAP_ANY_METHOD || method == PROCMAP_BY_QUERY ||
	       method == PROCMAP_BY_TEXT || method == PROCMAP_BY_SCAN;
}

/* Open the maps file below the directory of a process or thread. */
static int open_maps_of(struct procmap *procmap, enum procmap_method method)
{
	end_text(procmap);
	if (procmap->fd >= 0)
		close(procmap->fd);
	procmap->fd = openat(procmap->dir, "maps", O_RDONLY | O_CLOEXEC);
	if (procmap->fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	procmap->maps.fd = procmap->fd;
	return choose_method(procmap, method);
}

/*
 * Open the maps file of a thread that has not exited, since the main thread has: its
 * mappings are those of the process.
 */
static int open_thread(struct procmap *procmap, enum procmap_method method)
{
	const int tasks = openat(procmap->dir, "task",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list;
	bool is_main = true;
	struct dirent *task;
	int err = -ESRCH;

	list = tasks < 0 ? NULL : fdopendir(tasks);
	if (!list) {
		err = -errno;
		if (tasks >= 0)
			close(tasks);
		return err == -ENOENT ? -ESRCH : err;
	}
	procmap->process = procmap->dir;
	procmap->dir = -1;
	while (err == -ESRCH && (task = readdir(list))) {
		if (*task->d_name == '.')
			continue;
		/* The first one of the list is the main thread. */
		if (is_main) {
			is_main = false;
			continue;
		}
		if (procmap->dir >= 0)
			close(procmap->dir);
		procmap->dir = openat(tasks, task->d_name,
				      O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (procmap->dir >= 0)
			err = open_maps_of(procmap, method);
	}
	closedir(list);
	return err;
}

/*
 * Read the number behind @label, which begins a line of a file in /proc. Returns 0,
 * -ENOENT if there is no such line, or another error of open(2).
 */
static int read_number(int dir, const char *path, const char *label, int *number)
{
	char text[4096];
	const char *line;
	ssize_t len;
	int fd;

	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	line = strstr(text, label);
	if (!line)
		return -ENOENT;
	*number = atoi(line + strlen(label));
	return 0;
}

/* Return whether the process with this directory in /proc has an address space. */
static bool has_memory(int dir)
{
	int kilobytes;

	return !read_number(dir, "status", "\nVmSize:\t", &kilobytes);
}

/* More than any process executes programs in a row. */
#define OPEN_TRIES	10

/* Open the mappings of the process whose directory in /proc the handle has. */
static int open_maps(struct procmap *procmap, enum procmap_method method)
{
	unsigned int tries;
	int err = -ESRCH;

	/* Between the opening and the first call, it may execute a program. */
	for (tries = 0; tries < OPEN_TRIES && err == -ESRCH; tries++) {
		err = open_maps_of(procmap, method);
		if (err == -ESRCH && !has_memory(procmap->dir))
			return open_thread(procmap, method);
	}
	return err;
}

/* Open a handle by the process's directory in /proc, which the handle keeps. */
static int open_in(int dir, enum procmap_method method, struct procmap **procmap)
{
	struct procmap *new;
	int err;

	new = new_handle();
	if (!new) {
		close(dir);
		return -ENOMEM;
	}
	new->dir = dir;
	err = open_maps(new, method);
	if (err) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

static int take_options(struct procmap_options *options,
			const struct procmap_options *given)
{
	const int err = take_struct(options, sizeof(*options), given);

	if (!options->proc)
		options->proc = "/proc";
	return !err && is_method(options->method) ? 0 : -EINVAL;
}

/* A file below @proc is missing: tell a missing process from a missing procfs. */
static int missing_process_error(const char *proc)
{
	struct statfs fs;

	return !statfs(proc, &fs) && fs.f_type == PROC_SUPER_MAGIC ? -ESRCH : -ENOENT;
}

/* @name: the process's directory in procfs. */
static int open_named(const char *name, const struct procmap_options *given,
		      struct procmap **procmap)
{
	struct procmap_options options;
	char path[PATH_MAX];
	int dir;

	if (!procmap || take_options(&options, given))
		return -EINVAL;
	if (snprintf(path, sizeof(path), "%s/%s", options.proc, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? missing_process_error(options.proc) : -errno;
	return open_in(dir, options.method, procmap);
}

int procmap_open_pid(pid_t pid, const struct procmap_options *options,
		     struct procmap **procmap)
{
	char name[3 * sizeof(pid)];

	if (pid <= 0)
		return -EINVAL;
	snprintf(name, sizeof(name), "%d", (int)pid);
	return open_named(name, options, procmap);
}

int procmap_open_self(const struct procmap_options *options, struct procmap **procmap)
{
	return open_named("self", options, procmap);
}

int procmap_open_text(const char *text, size_t size,
		      const struct procmap_options *given, struct procmap **procmap)
{
	struct procmap_options options;
	struct procmap *new;
	int err;

	if (!text || !size || !procmap || take_options(&options, given) ||
	    (options.method != PROCMAP_ANY_METHOD &&
	     options.method != PROCMAP_BY_TEXT))
		return -EINVAL;
	new = new_handle();
	if (!new)
		return -ENOMEM;
	new->method = PROCMAP_BY_TEXT;
	new->maps.bytes = (char *)text;	/* never written to */
	new->maps.end = size;
	do {
		err = text_next(&new->maps, 0, 0, &new->found, &new->name);
	} while (!err);
	text_restart(&new->maps);
	if (err != -ENOENT) {
		procmap_close(new);
		return err;
	}
	*procmap = new;
	return 0;
}

int procmap_reopen(struct procmap *procmap)
{
	struct procmap *new;
	struct procmap old;
	int dir, err;

	if (!procmap || procmap->fd < 0)
		return -EINVAL;
	dir = fcntl(procmap->process < 0 ? procmap->dir : procmap->process,
		    F_DUPFD_CLOEXEC, 0);
	if (dir < 0)
		return -errno;
	err = open_in(dir, procmap->any ? PROCMAP_ANY_METHOD : procmap->method, &new);
	if (err)
		return err;
	old = *procmap;
	new->programs = old.programs + 1;
	*procmap = *new;
	*new = old;
	procmap_close(new);
	return 0;
}

void procmap_close(struct procmap *procmap)
{
	if (!procmap)
		return;
	end_text(procmap);
	text_close(&procmap->smaps);
	scan_free(&procmap->scan);
	free(procmap->name.bytes);
	free(procmap->part.bytes);
	if (procmap->fd >= 0)
		close(procmap->fd);
	if (procmap->dir >= 0)
		close(procmap->dir);
	if (procmap->process >= 0)
		close(procmap->process);
	free(procmap);
}

/* Facts found out about the kernel change no handle for its caller. */
int procmap_get_method(const struct procmap *procmap)
{
	return procmap ? (int)method_of((struct procmap *)procmap) : -EINVAL;
}

/* Open smaps, unless it is that of another program by now. */
static void start_smaps(struct procmap *procmap)
{
	struct text *const smaps = &procmap->smaps;

	smaps->fd = openat(procmap->dir, "smaps", O_RDONLY | O_CLOEXEC);
	if (smaps->fd < 0 || !text_is_there(procmap->fd))
		return;
	close(smaps->fd);
	smaps->fd = -1;
}

/* The text to read: smaps for page sizes if it can be opened, or else maps. */
static struct text *text_with_fields(struct procmap *procmap, unsigned int flags)
{
	struct text *const smaps = &procmap->smaps;

	if (!(flags & PROCMAP_WANT_PAGE_SIZE) || procmap->dir < 0)
		return &procmap->maps;
	if (smaps->fd < 0)
		start_smaps(procmap);
	return smaps->fd < 0 ? &procmap->maps : smaps;
}

void add_wanted(struct procmap *procmap, unsigned int flags, bool has_build_id,
		struct procmap_mapping *mapping)
{
	const bool is_file = has_file(mapping);

	if ((flags & PROCMAP_WANT_BUILD_ID) && (!has_build_id || !is_file))
		find_build_id(procmap, mapping);
	if ((flags & PROCMAP_WANT_DELETED) && is_file && is_deleted(procmap, mapping))
		mapping->flags |= PROCMAP_DELETED;
}

static int find_in_text(struct procmap *procmap, uint64_t addr,
			unsigned int flags, struct procmap_mapping *mapping)
{
	struct text *const text = text_with_fields(procmap, flags);
	int err;

	/* Positions in maps and smaps are unrelated, so a switch restarts. */
	if (procmap->walk != text || addr < text->passed)
		text_restart(text);
	procmap->walk = text;
	err = text_next(text, addr, flags, mapping, &procmap->name);
	if (!err)
		add_wanted(procmap, flags, false, mapping);
	else
		procmap->walk = NULL;	/* the end was found out by reading the start */
	return err;
}

/* In place, from the last byte to the first. */
int escape_name(struct name_buffer *name, size_t *len)
{
	size_t nr_newlines = 0, i;
	char *to;
	int err;

	if (!memchr(name->bytes, '\n', *len))
		return 0;
	for (i = 0; i < *len; i++)
		nr_newlines += name->bytes[i] == '\n';
	err = name_reserve(name, *len + nr_newlines * (NEWLINE_LEN - 1) + 1);
	if (err)
		return err;

	i = *len;
	*len += nr_newlines * (NEWLINE_LEN - 1);
	to = name->bytes + *len;
	*to = '\0';
	while (i--) {
		if (name->bytes[i] != '\n') {
			*--to = name->bytes[i];
		} else {
			to -= NEWLINE_LEN;
			memcpy(to, newline, NEWLINE_LEN);
		}
	}
	return 0;
}

int take_from_text(struct procmap *procmap, uint64_t addr, unsigned int flags,
		   struct procmap_mapping *mapping)
{
	const struct procmap_mapping by_ioctl = *mapping;
	int err;

	text_restart(&procmap->maps);
	err = text_next(&procmap->maps, addr, flags & FILTERS, mapping,
			&procmap->name);
	if (!err && same_file(mapping, &by_ioctl)) {
		mapping->page_size = by_ioctl.page_size;
		mapping->build_id_size = by_ioctl.build_id_size;
	}
	return err;
}

int query_build_id(struct procmap *procmap, struct procmap_mapping *mapping)
{
	struct procmap_query answer = {
		.query_addr = mapping->start,
		.build_id_addr = (uintptr_t)mapping->build_id,
		.build_id_size = sizeof(mapping->build_id),
	};
	const int err = call_query(procmap->fd, &answer);

	if (err)
		return err;
	/* The mapping may be another one by now. */
	if (answer.vma_start != mapping->start || answer.vma_end != mapping->end ||
	    answer.vma_offset != mapping->offset ||
	    answer.inode != mapping->inode ||
	    answer.dev_major != mapping->dev_major ||
	    answer.dev_minor != mapping->dev_minor)
		return -ESTALE;
	if (answer.build_id_size > sizeof(mapping->build_id))
		return -EPROTO;
	mapping->build_id_size = answer.build_id_size;
	return 0;
}

/* A walk has to end, whatever the kernel returns. */
static bool is_valid_answer(const struct procmap_query *answer, uint64_t addr)
{
	return answer->vma_end > addr && answer->vma_end > answer->vma_start &&
	       answer->vma_name_size <= PATH_MAX &&
	       answer->build_id_size <= PROCMAP_BUILD_ID_MAX;
}

int find_by_query(struct procmap *procmap, uint64_t addr, unsigned int flags,
		  struct procmap_mapping *mapping)
{
	const bool ask_build_id = flags & PROCMAP_WANT_BUILD_ID;
	struct procmap_query answer = {
		.query_addr = addr,
		.query_flags = flags & (FILTERS | PROCMAP_COVERING_OR_NEXT),
		.vma_name_addr = (uintptr_t)procmap->name.bytes,
		.vma_name_size = PATH_MAX,
	};
	bool without_name = false;
	size_t name_len;
	int err;

	if (ask_build_id) {
		answer.build_id_addr = (uintptr_t)mapping->build_id;
		answer.build_id_size = sizeof(mapping->build_id);
	}
	err = call_query(procmap->fd, &answer);
	if (err == -ENAMETOOLONG) {
		without_name = true;
		answer.vma_name_addr = 0;
		answer.vma_name_size = 0;
		answer.build_id_size = ask_build_id ?
				       sizeof(mapping->build_id) : 0;
		err = call_query(procmap->fd, &answer);
	}
	if (err)
		return err;
	if (!is_valid_answer(&answer, addr))
		return -EPROTO;

	mapping->start = answer.vma_start;
	mapping->end = answer.vma_end;
	mapping->offset = answer.vma_offset;
	mapping->inode = answer.inode;
	mapping->page_size = answer.vma_page_size;
	mapping->flags = answer.vma_flags & PERMISSIONS;
	mapping->dev_major = answer.dev_major;
	mapping->dev_minor = answer.dev_minor;
	mapping->build_id_size = answer.build_id_size;
	if (without_name) {
		err = take_from_text(procmap, addr, flags, mapping);
	} else {
		name_len = answer.vma_name_size ? answer.vma_name_size - 1 : 0;
		procmap->name.bytes[name_len] = '\0';
		err = escape_name(&procmap->name, &name_len);
		mapping->name = procmap->name.bytes;
		mapping->name_len = name_len;
	}
	if (!err)
		add_wanted(procmap, flags, ask_build_id, mapping);
	return err;
}

void start_over(struct procmap *procmap)
{
	procmap->walk = NULL;
	scan_start_over(&procmap->scan);
}

/* By query, the kernel would pass many mappings for one that is not needed. */
int find_next_by_query(struct procmap *procmap, uint64_t addr, unsigned int flags,
		       struct procmap_mapping *mapping)
{
	if (flags & PROCMAP_UNFILTERED)
		flags &= ~FILTERS;
	return find_by_query(procmap, addr, flags | PROCMAP_COVERING_OR_NEXT,
			     mapping);
}

/*
 * A walk over all mappings takes a query for each, which costs more than its line in the
 * text. The text has neither build IDs nor, in maps, page sizes.
 */
static bool is_faster_by_text(const struct procmap *procmap, unsigned int flags)
{
	return procmap->any && !(flags & (FILTERS | PROCMAP_UNFILTERED |
					  PROCMAP_WANT_BUILD_ID |
					  PROCMAP_WANT_PAGE_SIZE));
}

int find_from(struct procmap *procmap, uint64_t addr, unsigned int flags,
	      struct procmap_mapping *mapping)
{
	switch (method_of(procmap)) {
	case PROCMAP_BY_SCAN:
		return scan_find(procmap, addr, flags, mapping);
	case PROCMAP_BY_QUERY:
		return is_faster_by_text(procmap, flags) ?
		       find_in_text(procmap, addr, flags, mapping) :
		       find_next_by_query(procmap, addr, flags, mapping);
	default:
		return find_in_text(procmap, addr, flags, mapping);
	}
}

/* The address space is gone: tell an exit from an execve(2). */
static int exit_or_exec_error(const struct procmap *procmap)
{
	const int dir = procmap->process < 0 ? procmap->dir : procmap->process;
	int fd, is_gone, nr_threads = 0;

	if (dir < 0)
		return -ESRCH;
	fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		switch (errno) {
		case EACCES:
		case EPERM:
			return -ESTALE;
		case EMFILE:
		case ENFILE:
		case ENOMEM:
			return -errno;
		default:
			return -ESRCH;
		}
	}
	is_gone = text_is_there(fd);
	close(fd);
	/* It may execute another program at this moment. */
	if (!is_gone || has_memory(dir))
		return -ESTALE;
	/* If the main thread has exited, there may be others. */
	return !read_number(dir, "status", "\nThreads:\t", &nr_threads) &&
	       nr_threads > 1 ? -ESTALE : -ESRCH;
}

int lookup_error(const struct procmap *procmap, int err)
{
	return err == -ESRCH ? exit_or_exec_error(procmap) : err;
}

int procmap_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 const struct procmap_mapping **mapping)
{
	struct procmap_mapping *found;
	int err;

	if (!procmap || !mapping ||
	    (flags & ~(WALK_FLAGS | PROCMAP_COVERING_OR_NEXT)))
		return -EINVAL;
	found = &procmap->found;
	start_over(procmap);
	err = procmap->method == PROCMAP_BY_TEXT ?
	      find_in_text(procmap, addr, flags, found) :
	      find_by_query(procmap, addr, flags, found);
	if (err)
		return lookup_error(procmap, err);
	if (found->start > addr && !(flags & PROCMAP_COVERING_OR_NEXT))
		return -ENOENT;
	*mapping = found;
	return 0;
}

int procmap_next(struct procmap *procmap, uint64_t *cursor, unsigned int flags,
		 const struct procmap_mapping **mapping)
{
	struct procmap_mapping *found;
	int err;

	if (!procmap || !cursor || !mapping || (flags & ~WALK_FLAGS))
		return -EINVAL;
	found = &procmap->found;
	err = find_from(procmap, *cursor, flags, found);
	if (err)
		return lookup_error(procmap, err);
	if (found->start < *cursor) {
		if (has_file(found))
			found->offset += *cursor - found->start;
		found->start = *cursor;
	}
	*cursor = found->end;
	*mapping = found;
	return 0;
}

unsigned int procmap_version(void)
{
	return PROCMAP_VERSION;
}
