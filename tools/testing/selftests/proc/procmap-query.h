/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of PROCMAP_QUERY share: the call itself, and the truth it is
 * held against, which is the text of the same file.
 */
#ifndef PROCMAP_QUERY_TEST_H
#define PROCMAP_QUERY_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/procmap_query.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#define FILTERS	(PROCMAP_QUERY_VMA_READABLE | PROCMAP_QUERY_VMA_WRITABLE | \
		 PROCMAP_QUERY_VMA_EXECUTABLE | PROCMAP_QUERY_VMA_SHARED | \
		 PROCMAP_QUERY_FILE_BACKED_VMA)

/* One line of the text. The name is as printed, a newline in it as \012. */
struct maps_line {
	uint64_t start;
	uint64_t end;
	uint64_t flags;		/* the four permission flags */
	uint64_t offset;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t inode;
	char *name;		/* "" if there is none */
};

struct maps {
	struct maps_line *lines;
	size_t nr;
};

/* Run a query and return 0 or -errno. */
static inline int procmap_query(int fd, struct procmap_query *query)
{
	return ioctl(fd, PROCMAP_QUERY, query) ? -errno : 0;
}

/* Ask for the fields alone. */
static inline int query_fields(int fd, uint64_t addr, uint64_t flags,
			       struct procmap_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->query_flags = flags;
	query->query_addr = addr;
	return procmap_query(fd, query);
}

/* Ask for the fields and the name. */
static inline int query_name(int fd, uint64_t addr, uint64_t flags,
			     struct procmap_query *query, char *name,
			     size_t size)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->query_flags = flags;
	query->query_addr = addr;
	query->vma_name_addr = (uintptr_t)name;
	query->vma_name_size = size;
	return procmap_query(fd, query);
}

/* Ask for the fields and the build ID. */
static inline int query_build_id(int fd, uint64_t addr,
				 struct procmap_query *query, void *id,
				 size_t size)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->query_addr = addr;
	query->build_id_addr = (uintptr_t)id;
	query->build_id_size = size;
	return procmap_query(fd, query);
}

/* Open the maps file of a process (0: this one); -errno if that fails. */
static inline int open_maps(pid_t pid)
{
	char path[64];
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/maps");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static inline void free_maps(struct maps *maps)
{
	while (maps->nr)
		free(maps->lines[--maps->nr].name);
	free(maps->lines);
	maps->lines = NULL;
}

static inline bool parse_maps_line(char *text, struct maps_line *line)
{
	unsigned long long start, end, offset, inode;
	char perms[5];
	int name = 0;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end,
		   perms, &offset, &line->dev_major, &line->dev_minor, &inode,
		   &name) < 7 || !name)
		return false;

	line->start = start;
	line->end = end;
	line->offset = offset;
	line->inode = inode;
	line->flags = (perms[0] == 'r' ? PROCMAP_QUERY_VMA_READABLE : 0) |
		      (perms[1] == 'w' ? PROCMAP_QUERY_VMA_WRITABLE : 0) |
		      (perms[2] == 'x' ? PROCMAP_QUERY_VMA_EXECUTABLE : 0) |
		      (perms[3] == 's' ? PROCMAP_QUERY_VMA_SHARED : 0);
	line->name = strdup(text + name);
	return line->name;
}

/*
 * Read all of a maps file, without the vsyscall page, which is no VMA. The
 * file position of @fd is moved. Returns 0 or -errno.
 */
static inline int read_maps(int fd, struct maps *maps)
{
	FILE *file = NULL;
	char *text = NULL;
	size_t size = 0;
	int copy, err = 0;

	maps->lines = NULL;
	maps->nr = 0;

	copy = dup(fd);
	if (copy >= 0)
		file = fdopen(copy, "r");
	if (!file || lseek(copy, 0, SEEK_SET))
		err = -errno;

	while (!err && getline(&text, &size, file) > 0) {
		struct maps_line line, *lines;

		if (!parse_maps_line(text, &line)) {
			err = -EBADMSG;
			break;
		}
		if (!strcmp(line.name, "[vsyscall]")) {
			free(line.name);
			continue;
		}
		lines = reallocarray(maps->lines, maps->nr + 1, sizeof(line));
		if (!lines) {
			free(line.name);
			err = -ENOMEM;
			break;
		}
		maps->lines = lines;
		maps->lines[maps->nr++] = line;
	}
	if (!err && ferror(file))
		err = -errno;

	free(text);
	if (file)
		fclose(file);
	else if (copy >= 0)
		close(copy);
	if (err)
		free_maps(maps);
	return err;
}

/* The line that covers the address, or NULL. */
static inline const struct maps_line *line_at(const struct maps *maps,
					      uint64_t addr)
{
	size_t i;

	for (i = 0; i < maps->nr; i++)
		if (addr >= maps->lines[i].start && addr < maps->lines[i].end)
			return &maps->lines[i];
	return NULL;
}

/*
 * What the ABI says must answer: the line that covers the address, or with
 * COVERING_OR_NEXT_VMA the first at or above it, that passes every filter.
 */
static inline const struct maps_line *
expected_line(const struct maps *maps, uint64_t addr, uint64_t flags)
{
	const uint64_t permissions = FILTERS & ~PROCMAP_QUERY_FILE_BACKED_VMA;
	size_t i;

	for (i = 0; i < maps->nr; i++) {
		const struct maps_line *line = &maps->lines[i];

		if (line->end <= addr)
			continue;
		if (!(flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA) &&
		    line->start > addr)
			return NULL;
		/* Only a file has a device or an inode. */
		if ((flags & PROCMAP_QUERY_FILE_BACKED_VMA) && !line->inode &&
		    !line->dev_major && !line->dev_minor)
			continue;
		if (!(flags & permissions & ~line->flags))
			return line;
	}
	return NULL;
}

/* Write a name as the text does, a newline as \012. */
static inline void escape_name(const char *name, char *text, size_t size)
{
	size_t used = 0;

	for (; *name && used + 5 <= size; name++) {
		if (*name == '\n')
			used += sprintf(text + used, "\\012");
		else
			text[used++] = *name;
	}
	text[used] = '\0';
}

#endif /* PROCMAP_QUERY_TEST_H */
