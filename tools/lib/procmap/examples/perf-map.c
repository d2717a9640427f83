// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * A JIT compiler lists its functions in /tmp/perf-PID.map. A line has the address and the
 * size of one in hexadecimal digits, and its name. Later lines replace earlier ones.
 *
 * Root and PID are those of the process, which may be in a container. The reader may be
 * root, and the process hostile: only a regular file below that root is opened, which
 * belongs to the user of the process or to root, has no other name, and is not mounted
 * there. This never waits.
 *
 * A bad line is passed over; so is the last one as long as it has no newline, since its
 * name may go on.
 *
 * A process that was forked has the functions of its parent until it executes a program, and
 * those of its own map come first. They are as they were when the fork was reported: what
 * the parent adds later is not the child's. Of a process that was forked before that could be
 * seen, nothing tells what its parent had compiled by then: it has its own map alone.
 *
 * The file has no times: a sample from just before a function was replaced gets the later
 * name, and a child also has what its parent added until the fork was reported. Of a process
 * that has exited, only what was read before is known. A file that an earlier process with
 * this PID has left is taken for that of the process.
 */
#define _GNU_SOURCE	1

#include <err.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf-map.h"

/* A larger file is not read: some 1,000,000 functions. */
#define FILE_SIZE_MAX		(64l << 20)

/* After as many bytes, the file is not looked at for one more round. */
#define BYTES_PER_ROUND		(256u << 10)

/* A relative jump reaches no farther, so no function is larger. */
#define FUNCTION_SIZE_MAX	(2ul << 30)

struct symbol {
	uint64_t start, end;
	char name[];
};

/* What /proc/TID/status says of a process. */
struct status {
	pid_t pid;		/* as the process sees it */
	bool is_nested;		/* and is not as we see it */
	uid_t uid;		/* of files that it makes */
};

/* The functions of a process, and those that it has from its parent. Children share them. */
struct functions {
	size_t refs;
	void *symbols;
	struct functions *inherited;
};

/**
 * struct perf_map - the perf map of a process
 * @pid: the process
 * @own_pid: its PID as it sees that
 * @next_look: the round in which to look at the file again
 * @seen: the file as it was
 * @size_read: the size of the lines that have been read
 * @tail: the end of these lines; the file has only grown if they still end so
 * @tail_size: the size of @tail
 * @functions: the functions; they do not change while a child has them, too
 * @forked_at: when it was forked, if it has functions of its parent
 */
struct perf_map {
	pid_t pid, own_pid;
	unsigned int next_look;
	struct stat seen;
	off_t size_read;
	char tail[64];
	size_t tail_size;
	struct functions *functions;
	uint64_t forked_at;
};

static void *maps;

void *need(void *memory)
{
	if (!memory)
		errx(2, "out of memory");
	return memory;
}

/* Symbols that overlap are equal. */
static int by_range(const void *a, const void *b)
{
	const struct symbol *const x = a, *const y = b;

	return x->end <= y->start ? -1 : x->start >= y->end;
}

void add_symbol(void **symbols, uint64_t start, uint64_t size, const char *name)
{
	struct symbol *symbol, **known, *old;

	if (start + size <= start)
		return;
	symbol = need(malloc(sizeof(*symbol) + strlen(name) + 1));
	symbol->start = start;
	symbol->end = start + size;
	strcpy(symbol->name, name);
	while ((known = tfind(symbol, symbols, by_range))) {
		old = *known;
		tdelete(old, symbols, by_range);
		free(old);
	}
	need(tsearch(symbol, symbols, by_range));
}

const char *find_symbol(void **symbols, uint64_t addr)
{
	const struct symbol key = { .start = addr, .end = addr + 1 };
	struct symbol **const known = tfind(&key, symbols, by_range);

	return known ? (*known)->name : NULL;
}

void free_symbols(void **symbols)
{
	tdestroy(*symbols, free);
	*symbols = NULL;
}

static int open_in_proc(pid_t tid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	return open(path, flags | O_CLOEXEC);
}

static bool read_status(pid_t tid, struct status *status)
{
	const int fd = open_in_proc(tid, "status", O_RDONLY);
	FILE *const file = fd < 0 ? NULL : need(fdopen(fd, "r"));
	char line[256];
	int found = 0;

	while (file && fgets(line, sizeof(line), file)) {
		found += sscanf(line, "Uid: %*u %*u %*u %u", &status->uid) == 1;
		/* One for each PID namespace, the innermost last. */
		if (!strncmp(line, "NStgid:", 7)) {
			status->pid = atoi(strrchr(line, '\t'));
			found++;
			status->is_nested = strrchr(line, '\t') != strchr(line, '\t');
		}
	}
	if (file)
		fclose(file);
	return found == 2;
}

static struct functions *new_functions(struct functions *inherited)
{
	struct functions *const functions = need(calloc(1, sizeof(*functions)));

	functions->refs = 1;
	functions->inherited = inherited;
	if (inherited)
		inherited->refs++;
	return functions;
}

static void put_functions(struct functions *functions)
{
	struct functions *inherited;

	for (; functions && !--functions->refs; functions = inherited) {
		inherited = functions->inherited;
		free_symbols(&functions->symbols);
		free(functions);
	}
}

static void replace_functions(struct perf_map *map, struct functions *inherited)
{
	struct functions *const old = map->functions;

	map->functions = new_functions(inherited);
	put_functions(old);
}

static int by_pid(const void *a, const void *b)
{
	const struct perf_map *const x = a, *const y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static struct perf_map *get_map(pid_t pid)
{
	struct perf_map *map, **const known = tfind(&(struct perf_map){ .pid = pid }, &maps,
						    by_pid);
	struct status status = { .pid = 0 };

	if (known)
		return *known;
	read_status(pid, &status);
	map = need(calloc(1, sizeof(*map)));
	map->pid = pid;
	map->own_pid = status.pid;
	map->functions = new_functions(NULL);
	need(tsearch(map, &maps, by_pid));
	return map;
}

void end_perf_map(pid_t pid)
{
	struct perf_map *map, **const known = tfind(&(struct perf_map){ .pid = pid }, &maps,
						    by_pid);

	if (!known)
		return;
	map = *known;
	tdelete(map, &maps, by_pid);
	put_functions(map->functions);
	free(map);
}

/* A hexadecimal number and a space. */
static bool parse_number(char **at, uint64_t *number)
{
	*number = strtoull(*at, at, 16);
	return *(*at)++ == ' ';
}

static void parse_line(void **symbols, char *line, size_t length)
{
	uint64_t start, size;

	if (length && line[length - 1] == '\r')
		line[length - 1] = '\0';
	if (length < LINE_SIZE && parse_number(&line, &start) && parse_number(&line, &size) &&
	    size <= FUNCTION_SIZE_MAX && *line)
		add_symbol(symbols, start, size, line);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return is_same_file(a, b) && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool has_grown(const struct perf_map *map, int fd, const struct stat *stat)
{
	const off_t offset = map->size_read - map->tail_size;
	char tail[sizeof(map->tail)];

	return is_same_file(&map->seen, stat) && stat->st_size > map->seen.st_size &&
	       pread(fd, tail, map->tail_size, offset) == (ssize_t)map->tail_size &&
	       !memcmp(tail, map->tail, map->tail_size);
}

static void forget_lines(struct perf_map *map)
{
	replace_functions(map, map->functions->inherited);
	map->size_read = 0;
	map->tail_size = 0;
}

/* Read on; leave what is behind the last newline for the next time. */
static void read_lines(struct perf_map *map, int fd, size_t size)
{
	char *const text = need(malloc(size + 1));
	const ssize_t got = pread(fd, text, size, map->size_read);
	char *const last = got > 0 ? memrchr(text, '\n', got) : NULL, *line, *end;
	const size_t size_read = last ? last + 1 - text : 0;

	if (last) {
		map->size_read += size_read;
		map->tail_size = size_read < sizeof(map->tail) ? size_read : sizeof(map->tail);
		memcpy(map->tail, last + 1 - map->tail_size, map->tail_size);
	}
	for (line = text; line < text + size_read; line = end + 1) {
		end = memchr(line, '\n', last + 1 - line);
		*end = '\0';
		parse_line(&map->functions->symbols, line, end - line);
	}
	free(text);
}

static void read_file(struct perf_map *map, int fd, const struct stat *stat)
{
	const bool was_too_large = map->seen.st_size > FILE_SIZE_MAX;

	if (!has_grown(map, fd, stat) || stat->st_size > FILE_SIZE_MAX ||
	    map->functions->refs > 1)
		forget_lines(map);
	map->seen = *stat;
	if (stat->st_size <= FILE_SIZE_MAX) {
		map->next_look += (stat->st_size - map->size_read) / BYTES_PER_ROUND;
		read_lines(map, fd, stat->st_size - map->size_read);
	} else if (!was_too_large) {
		warnx("the perf map of process %d is too large", map->pid);
	}
}

static int open_below(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve };

	return syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Opening a FIFO or a device with O_PATH has no side effects. */
static int open_path(int root, pid_t pid, uint64_t resolve)
{
	const int tmp = open_below(root, "tmp", O_DIRECTORY, RESOLVE_IN_ROOT | resolve);
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "perf-%d.map", pid);
	fd = open_below(tmp, name, O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_XDEV | resolve);
	close(tmp);
	return fd;
}

static bool is_trusted(const struct stat *stat, uid_t uid)
{
	return S_ISREG(stat->st_mode) && stat->st_nlink == 1 &&
	       (!stat->st_uid || stat->st_uid == uid);
}

/* O_NONBLOCK does not wait for a process that has a lease on the file. */
static int reopen(int path_fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/* Returns false if there is no such thread, or none that has a root any more. */
static bool look_at_file(struct perf_map *map, pid_t tid, uint64_t resolve)
{
	const int root = open_in_proc(tid, "root", O_PATH);
	const int path_fd = open_path(root, map->own_pid, resolve);
	struct status status;
	struct stat stat;
	int fd = -1;

	if (!fstat(path_fd, &stat) && !is_unchanged(&stat, &map->seen) &&
	    read_status(tid, &status) && is_trusted(&stat, status.uid))
		fd = reopen(path_fd);
	if (fd >= 0)
		read_file(map, fd, &stat);
	close(fd);
	close(path_fd);
	close(root);
	return root >= 0;
}

/* @other is a thread that may have the root when the main one has exited before it. */
static void look(struct perf_map *map, pid_t other, unsigned int round, uint64_t resolve)
{
	if (round < map->next_look)
		return;
	map->next_look = round + 1;
	if (!look_at_file(map, map->pid, resolve))
		look_at_file(map, other, resolve);
}

/* Every process may fork: those without a perf map are not worth asking a file server. */
void fork_perf_map(pid_t pid, pid_t parent_pid, uint64_t time, unsigned int round)
{
	struct perf_map *const parent = get_map(parent_pid), *child;
	struct functions *inherited;
	struct status status;

	/* The parent may have exited: the child has its root, and also shows its PID. */
	if (!parent->own_pid && read_status(pid, &status) && !status.is_nested)
		parent->own_pid = parent_pid;
	look(parent, pid, round, RESOLVE_CACHED);
	end_perf_map(pid);
	inherited = parent->functions->symbols ? parent->functions :
						 parent->functions->inherited;
	if (!inherited)
		return;
	child = get_map(pid);
	child->forked_at = time;
	replace_functions(child, inherited);
}

const char *find_in_perf_map(pid_t pid, pid_t tid, uint64_t addr, unsigned int round)
{
	struct perf_map *const map = get_map(pid);

	look(map, tid, round, 0);
	return find_symbol(&map->functions->symbols, addr);
}

const char *find_inherited(pid_t pid, uint64_t addr, uint64_t *forked_at)
{
	const struct perf_map *const map = get_map(pid);
	struct functions *functions = map->functions->inherited;
	const char *name = NULL;

	*forked_at = map->forked_at;
	for (; functions && !name; functions = functions->inherited)
		name = find_symbol(&functions->symbols, addr);
	return name;
}
