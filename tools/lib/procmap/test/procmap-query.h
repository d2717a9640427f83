/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests of PROCMAP_QUERY: the call itself, and the text of the same file,
 * with which its answer is compared.
 */
#ifndef PROCMAP_QUERY_TEST_H
#define PROCMAP_QUERY_TEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define FILTERS	(PROCMAP_QUERY_VMA_READABLE | PROCMAP_QUERY_VMA_WRITABLE | \
		 PROCMAP_QUERY_VMA_EXECUTABLE | PROCMAP_QUERY_VMA_SHARED | \
		 PROCMAP_QUERY_FILE_BACKED_VMA)

/*
 * Skip a test in its setup. Older harnesses would go on with the test, so its
 * process exits, with the status that the harness knows as a skip: KSFT_SKIP
 * since there is XFAIL_ADD(), 255 before. The reason is a fixed string, by which
 * a runner can recognize the skip.
 */
#ifdef XFAIL_ADD
#define SKIP_STATUS	KSFT_SKIP
#else
#define SKIP_STATUS	255
#endif
#define SKIP_SETUP(reason)	SKIP(_exit(SKIP_STATUS), "%s", reason)

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

static inline size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* Run a query and return 0 or -errno. */
static inline int procmap_query(int fd, struct procmap_query *query)
{
	return ioctl(fd, PROCMAP_QUERY, query) ? -errno : 0;
}

/* Query the fields alone. */
static inline int query_fields(int fd, uint64_t addr, uint64_t flags,
			       struct procmap_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->query_flags = flags;
	query->query_addr = addr;
	return procmap_query(fd, query);
}

/* Query the fields and the name. */
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

/* Query the fields and the build ID. */
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

static inline bool append_line(struct maps *maps, const struct maps_line *line,
			       uint64_t **page_sizes)
{
	struct maps_line *lines;
	uint64_t *sizes;

	lines = reallocarray(maps->lines, maps->nr + 1, sizeof(*lines));
	if (!lines)
		return false;
	maps->lines = lines;
	if (page_sizes) {
		sizes = reallocarray(*page_sizes, maps->nr + 1, sizeof(*sizes));
		if (!sizes)
			return false;
		*page_sizes = sizes;
		sizes[maps->nr] = 0;
	}
	lines[maps->nr++] = *line;
	return true;
}

/* With an array of page sizes, it is the text of smaps. Returns 0 or -errno. */
static inline int read_lines(FILE *file, struct maps *maps,
			     uint64_t **page_sizes)
{
	unsigned long long kilobytes;
	struct maps_line line;
	bool is_vma = false;
	char *text = NULL;
	size_t size = 0;
	int err = 0;

	while (!err && getline(&text, &size, file) > 0) {
		if (is_vma && page_sizes &&
		    sscanf(text, "KernelPageSize: %llu kB", &kilobytes) == 1)
			(*page_sizes)[maps->nr - 1] = kilobytes * 1024;
		if (!parse_maps_line(text, &line)) {
			err = page_sizes ? 0 : -EBADMSG;
			continue;
		}
		is_vma = strcmp(line.name, "[vsyscall]");
		if (is_vma && append_line(maps, &line, page_sizes))
			continue;
		free(line.name);
		if (is_vma)
			err = -ENOMEM;
	}
	if (!err && ferror(file))
		err = -errno;
	free(text);
	return err;
}

/*
 * Read all of a maps file, without the vsyscall page, which is no VMA, by calls of
 * read(2) for @piece bytes each. The file position of @fd is moved. Returns 0 or -errno.
 */
static inline int read_maps_in_pieces(int fd, size_t piece, struct maps *maps)
{
	char *const buffer = malloc(piece);
	const int copy = dup(fd);
	FILE *const file = fdopen(copy, "r");
	int err;

	maps->lines = NULL;
	maps->nr = 0;
	if (!file || setvbuf(file, buffer, _IOFBF, piece) ||
	    lseek(copy, 0, SEEK_SET))
		err = -errno;
	else
		err = read_lines(file, maps, NULL);
	if (file)
		fclose(file);
	else if (copy >= 0)
		close(copy);
	free(buffer);
	if (err)
		free_maps(maps);
	return err;
}

static inline int read_maps(int fd, struct maps *maps)
{
	return read_maps_in_pieces(fd, BUFSIZ, maps);
}

/*
 * Read the first line of each mapping in a process' smaps file (0: this one),
 * and into an array of its own the page size that follows it, again without
 * the vsyscall page. Returns 0 or -errno.
 */
static inline int read_smaps(pid_t pid, struct maps *maps,
			     uint64_t **page_sizes)
{
	char path[64];
	FILE *file;
	int err;

	maps->lines = NULL;
	maps->nr = 0;
	*page_sizes = NULL;
	snprintf(path, sizeof(path), "/proc/%d/smaps", pid ?: getpid());
	file = fopen(path, "re");
	if (!file)
		return -errno;
	err = read_lines(file, maps, page_sizes);
	fclose(file);
	if (err) {
		free_maps(maps);
		free(*page_sizes);
		*page_sizes = NULL;
	}
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

static inline bool same_text(const struct maps *a, const struct maps *b)
{
	size_t i;

	if (a->nr != b->nr)
		return false;
	for (i = 0; i < a->nr; i++) {
		const struct maps_line *const x = &a->lines[i];
		const struct maps_line *const y = &b->lines[i];

		if (x->start != y->start || x->end != y->end ||
		    x->flags != y->flags || x->offset != y->offset ||
		    x->dev_major != y->dev_major ||
		    x->dev_minor != y->dev_minor || x->inode != y->inode ||
		    strcmp(x->name, y->name))
			return false;
	}
	return true;
}

/* Only a file has a device or an inode. */
static inline bool is_file(const struct maps_line *line)
{
	return line->inode || line->dev_major || line->dev_minor;
}

static inline bool line_passes(const struct maps_line *line, uint64_t flags)
{
	const uint64_t permissions = FILTERS & ~PROCMAP_QUERY_FILE_BACKED_VMA;

	if ((flags & PROCMAP_QUERY_FILE_BACKED_VMA) && !is_file(line))
		return false;
	return !(flags & permissions & ~line->flags);
}

/*
 * The line that the ABI says a query must return: the one that covers the address,
 * or with COVERING_OR_NEXT_VMA the first at or above it that passes every filter.
 */
static inline const struct maps_line *
expected_line(const struct maps *maps, uint64_t addr, uint64_t flags)
{
	size_t i;

	for (i = 0; i < maps->nr; i++) {
		const struct maps_line *line = &maps->lines[i];

		if (line->end <= addr)
			continue;
		if (!(flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA) &&
		    line->start > addr)
			return NULL;
		if (line_passes(line, flags))
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

/* Compare the fields of the answer, all but the page size, with the line. */
static inline bool same_fields(const struct maps_line *line,
			       const struct procmap_query *query)
{
	return query->vma_start == line->start && query->vma_end == line->end &&
	       query->vma_flags == line->flags &&
	       query->vma_offset == line->offset &&
	       query->inode == line->inode &&
	       query->dev_major == line->dev_major &&
	       query->dev_minor == line->dev_minor;
}

/* Random numbers, the same for the same seed, which is not 0. */
static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static inline bool read_file(const char *path, char *value, size_t size)
{
	const int fd = open(path, O_RDONLY);
	ssize_t len = -1;

	if (fd >= 0) {
		len = read(fd, value, size - 1);
		close(fd);
	}
	if (len < 0)
		return false;
	value[len] = '\0';
	return true;
}

static inline bool write_file(const char *path, const char *value)
{
	const int fd = open(path, O_WRONLY);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return written;
}

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/*
 * Let the nth place that can fail from now on do so. @fail_nth: the file of that
 * name in /proc, opened.
 */
static inline bool arm_fail_nth(int fail_nth, unsigned int nth)
{
	char text[16];
	const int len = sprintf(text, "%u", nth);

	return pwrite(fail_nth, text, len, 0) == len;
}

/*
 * Returns true if there was an nth place. The calls made here can be hit by the fault
 * as well, but only once.
 */
static inline bool disarm_fail_nth(int fail_nth)
{
	char text[16] = "";
	const bool failed = pread(fail_nth, text, sizeof(text) - 1, 0) > 0 &&
			    !strcmp(text, "0\n");

	if (!arm_fail_nth(fail_nth, 0) && !arm_fail_nth(fail_nth, 0)) {
		fprintf(stderr, "# fail-nth cannot be reset\n");
		abort();
	}
	return failed;
}

/* The number of mappings of a large process, which takes a debug kernel minutes. */
static inline unsigned int nr_many(void)
{
	const char *const nr = getenv("PROCMAP_TEST_MAPPINGS");

	return nr ? atoi(nr) : 60000;
}

/* A forked process, at the other end of a socket. */
struct child {
	pid_t pid;
	int control;
};

/* Start a child that ends when @run returns, or with its parent. */
static inline bool start_child(struct child *child,
			       int (*run)(int control, void *arg), void *arg)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return false;
	child->pid = fork();
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		_exit(run(ends[1], arg));
	}
	close(ends[1]);
	child->control = ends[0];
	return child->pid > 0;
}

/* Wait for a child to end by itself. Returns its exit status, or -1. */
static inline int end_of_child(struct child *child)
{
	int status;

	if (waitpid(child->pid, &status, 0) != child->pid)
		return -1;
	close(child->control);
	child->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void stop_child(struct child *child)
{
	if (child->pid <= 0)
		return;
	kill(child->pid, SIGKILL);
	end_of_child(child);
}

static inline bool is_child(const struct child *children, size_t nr, pid_t pid)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (children[i].pid == pid)
			return true;
	return false;
}

/* Let the other end of a socket go on. */
static inline bool notify(int control)
{
	return send(control, "", 1, MSG_NOSIGNAL) == 1;
}

/* Wait for notify() at the other end. Returns false if that end is closed. */
static inline bool await(int control)
{
	char byte;

	return read(control, &byte, 1) == 1;
}

union fd_message {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static inline bool send_fd(int control, int fd)
{
	union fd_message ancillary = {};
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &ancillary,
		.msg_controllen = sizeof(ancillary),
	};

	ancillary.header.cmsg_len = CMSG_LEN(sizeof(int));
	ancillary.header.cmsg_level = SOL_SOCKET;
	ancillary.header.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&ancillary.header), &fd, sizeof(fd));
	return sendmsg(control, &message, MSG_NOSIGNAL) == 1;
}

/* Returns the fd that was sent, or -1. */
static inline int recv_fd(int control)
{
	union fd_message ancillary = {};
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &ancillary,
		.msg_controllen = sizeof(ancillary),
	};
	int fd = -1;

	if (recvmsg(control, &message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    ancillary.header.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&ancillary.header), sizeof(fd));
	return fd;
}

/*
 * The least that makes a 64-bit ELF file with a build ID. Neither <elf.h> nor
 * <linux/elf.h> is used here, since a test may include one or the other.
 */
struct tiny_elf {
	uint8_t ident[16];
	uint16_t type;
	uint16_t machine;
	uint32_t version;
	uint64_t entry;
	uint64_t phoff;
	uint64_t shoff;
	uint32_t flags;
	uint16_t ehsize;
	uint16_t phentsize;
	uint16_t phnum;
	uint16_t sections[3];
	struct {
		uint32_t type;
		uint32_t flags;
		uint64_t offset;
		uint64_t addr[2];
		uint64_t filesz;
		uint64_t memsz;
		uint64_t align;
	} phdr;
	struct {
		uint32_t namesz;
		uint32_t descsz;
		uint32_t type;
		char name[4];
		uint8_t id[20];
	} note;
};

/* Fill an empty file with it. */
static inline bool write_elf(int fd, const uint8_t id[20])
{
	const uint16_t one = 1;
	struct tiny_elf elf = {
		.ident = { 0x7f, 'E', 'L', 'F', 2, 0, 1 },
		.type = 3,		/* ET_DYN */
		.version = 1,
		.phoff = offsetof(struct tiny_elf, phdr),
		.ehsize = offsetof(struct tiny_elf, phdr),
		.phentsize = sizeof(elf.phdr),
		.phnum = 1,
		.phdr.type = 4,		/* PT_NOTE */
		.phdr.offset = offsetof(struct tiny_elf, note),
		.phdr.filesz = sizeof(elf.note),
		.phdr.align = 4,
		.note.namesz = sizeof("GNU"),
		.note.descsz = sizeof(elf.note.id),
		.note.type = 3,		/* NT_GNU_BUILD_ID */
		.note.name = "GNU",
	};

	/* Little endian is 1, big endian 2. */
	elf.ident[5] = *(const uint8_t *)&one ? 1 : 2;
	memcpy(elf.note.id, id, sizeof(elf.note.id));
	return write(fd, &elf, sizeof(elf)) == sizeof(elf);
}

/* Attach a file to a loop device that goes when it is closed: its fd, or -1. */
static inline int open_loop(const char *image, char *path, size_t size)
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int tries, loop = -1;

	config.fd = open(image, O_RDWR | O_CLOEXEC);
	/* Somebody else may take the free one first. */
	for (tries = 0; tries < 100; tries++) {
		snprintf(path, size, "/dev/loop%d",
			 ioctl(control, LOOP_CTL_GET_FREE));
		loop = open(path, O_RDWR | O_CLOEXEC);
		if (loop < 0 || !ioctl(loop, LOOP_CONFIGURE, &config))
			break;
		close(loop);
		loop = -1;
		if (errno != EBUSY)
			break;
	}
	close(config.fd);
	close(control);
	return loop;
}

#define SCRATCH		"/tmp"
#define SCRATCH_IMAGE	SCRATCH "/image"
#define SCRATCH_DISK	SCRATCH "/disk"

/*
 * Mount a tmpfs in a mount namespace of this process alone: it is gone when the
 * process ends. Returns NULL, or why it cannot be mounted.
 */
static inline const char *mount_scratch(void)
{
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", SCRATCH, "tmpfs", 0, NULL))
		return errno == EPERM ? "only root can mount a file system" :
					"cannot mount a tmpfs, CONFIG_TMPFS";
	return NULL;
}

/* Mount the file system in SCRATCH_IMAGE. Returns NULL, or why it cannot be mounted. */
static inline const char *mount_scratch_disk(const char *type, unsigned long flags)
{
	char path[32];
	const int loop = open_loop(SCRATCH_IMAGE, path, sizeof(path));
	int err;

	if (loop < 0)
		return "no loop device to be had, CONFIG_BLK_DEV_LOOP";
	err = mount(path, SCRATCH_DISK, type, flags, NULL);
	close(loop);
	return err ? "cannot mount its file system" : NULL;
}

/* Run the command that makes a file system in SCRATCH_IMAGE, and mount that. */
static inline const char *make_scratch_disk(const char *type, const char *make)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin; (%s) >/dev/null 2>&1", make);
	if (mkdir(SCRATCH_DISK, 0700) || system(command))
		return "mkfs cannot be run";
	return mount_scratch_disk(type, 0);
}

/* Mount the scratch tmpfs, and an ext4 in it. */
static inline const char *mount_scratch_ext4(void)
{
	return mount_scratch() ?:
	       make_scratch_disk("ext4", "mkfs.ext4 -q -O ^has_journal "
				 SCRATCH_IMAGE " 8M");
}

#endif /* PROCMAP_QUERY_TEST_H */
