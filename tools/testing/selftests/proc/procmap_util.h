/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for the tests of /proc/<pid>/maps and its ioctls: open a file, query it, read its
 * text, and compare both.
 */
#ifndef PROCMAP_UTIL_H
#define PROCMAP_UTIL_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif

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

/* Seconds: the limit of a test that takes long on a slow machine. */
#define LONG_TIMEOUT	900

size_t page_size(void);

/* The kernel places nothing from here on by itself, in 32 bits as in 64. */
#define AREA		0x20000000

uint64_t addr_of(unsigned int page);
char *page_at(unsigned int page);
/* Map pages there: memory if @fd is -1, else those of a file, each at its own place. */
bool map_area(unsigned int page, unsigned int nr, int prot, int flags, int fd);

/*
 * The text.
 */

/* A line of maps. The name is as printed, a newline in it as \012. */
struct maps_line {
	uint64_t start;
	uint64_t end;
	uint64_t flags;		/* the four permission flags of PROCMAP_QUERY */
	uint64_t offset;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t inode;
	char *name;		/* "" if there is none */
	uint64_t page_size;	/* by smaps only */
	uint32_t build_id_size;	/* by read_build_ids() only */
	uint8_t build_id[20];
};

struct maps {
	struct maps_line *lines;
	size_t nr;
};

/* Open a file of a process (0: this one). All of these return -errno on failure. */
int open_proc(pid_t pid, const char *name);
int open_maps(pid_t pid);
/* Read all of it, without the vsyscall page, which is no VMA. It moves the file position. */
int read_maps(int fd, struct maps *maps);
/* The same, by read(2) of so many bytes each. It closes the file. */
int read_pieces(int fd, size_t piece, struct maps *maps);
/* Read what is left of an opened text. */
int read_lines(FILE *file, struct maps *maps);
/* Read the first line of each mapping in smaps, and its page size. */
int read_smaps(pid_t pid, struct maps *maps);
void free_maps(struct maps *maps);

/* Returns the line that covers the address, or NULL. */
const struct maps_line *line_at(const struct maps *maps, uint64_t addr);
bool same_maps(const struct maps *a, const struct maps *b);
/* Only a file has a device or an inode. */
bool is_file(const struct maps_line *line);
/* A name as the text has it. */
bool is_name(const struct maps_line *line, const char *name);
/* Is maps or smaps made without mmap_lock? */
bool text_has_positions(const char *path);
/* Open it, and read it up to the end of the mapping at AREA. */
FILE *open_text_behind_area(const char *path);

/*
 * PROCMAP_QUERY.
 */

#define QUERY_PERMISSIONS	(PROCMAP_QUERY_VMA_READABLE | \
				 PROCMAP_QUERY_VMA_WRITABLE | \
				 PROCMAP_QUERY_VMA_EXECUTABLE | \
				 PROCMAP_QUERY_VMA_SHARED)
#define QUERY_FILTERS		(QUERY_PERMISSIONS | PROCMAP_QUERY_FILE_BACKED_VMA)
#define QUERY_NEXT		PROCMAP_QUERY_COVERING_OR_NEXT_VMA

/* A struct procmap_query with these inputs. */
#define QUERY(...) \
	((struct procmap_query) { .size = sizeof(struct procmap_query), __VA_ARGS__ })

/* Call an ioctl. Returns its value or -errno. */
int call_ioctl(int fd, unsigned long command, const void *arg);
int procmap_query(int fd, struct procmap_query *query);
int query_fields(int fd, uint64_t addr, uint64_t flags, struct procmap_query *query);
int query_name(int fd, uint64_t addr, struct procmap_query *query, char *name, size_t size);
int query_build_id(int fd, uint64_t addr, struct procmap_query *query, void *id, size_t size);

/* The answer has the fields of the line, all but the page size. */
bool same_fields(const struct maps_line *line, const struct procmap_query *query);

/*
 * The scene: mappings of every kind, each of SCENE_PAGES pages, with a gap of as many pages
 * behind it.
 */

#define SCENE_PAGES	2
#define SCENE_NAME	"/memfd:scene (deleted)"
#define BUILD_ID_SIZE	20

enum {
	PRIVATE_NONE, PRIVATE_RW, PRIVATE_RX, SHARED_RW, FILE_NONE, FILE_R, FILE_RW,
	PRIVATE_R, FILE_RX, FILE_SHARED_RW, FILE_SHARED_RX, FILE_READONLY_SHARED, OTHER_FILE,
	NR_MAPPINGS,
};

extern const uint8_t scene_id[BUILD_ID_SIZE];

bool map_scene(void);
uint64_t start_of(unsigned int mapping);
uint64_t end_of(unsigned int mapping);
bool has_scene_id(unsigned int mapping);

/*
 * Memory and files.
 */

/* Map pages, which are not in memory until they are written to. */
void *map_pages(size_t size);
/* A buffer that ends where a page without access begins. */
void *map_to_page_end(size_t size, int prot);
/* Map a page twice, once to be read only. */
void *map_twice(const void **read_only);
/* The content of a buffer before a call. */
#define FILL		0xa5
bool is_filled(const void *bytes, size_t size, uint8_t with);

bool read_file(const char *path, char *value, size_t size);
bool write_file(const char *path, const char *value);

/* Make a directory, and work there. Its path is as the kernel shows it. */
bool make_directory(char path[64]);
bool remove_directory(const char *path);
/* Create a file with a path of so many bytes below a new directory: its fd, or -1. */
int make_long_path(char directory[64], char *path, size_t length);

/* An ELF file of this machine's byte order with two PT_NOTE segments, one note in each. */
struct elf_file {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[2];
	struct elf_note {
		Elf64_Nhdr nhdr;
		char name[4];
		uint8_t id[BUILD_ID_SIZE];
	} notes[2];
};

/* The first note is an ABI tag, the second is the build ID. */
struct elf_file elf_with_id(const uint8_t id[BUILD_ID_SIZE]);
/* Make bytes all of the file, in pages that are up to date. */
bool write_all(int fd, const void *bytes, size_t size);
bool write_elf(int fd, const uint8_t id[BUILD_ID_SIZE]);
/* Make a memfd of such a file. */
int make_elf(const char *name, const uint8_t id[BUILD_ID_SIZE]);

/* Drop the pages of the file from memory. */
bool evict_file(int fd);
/* Returns how many of them are resident, or -1. */
int resident_pages(int fd);

#define SCRATCH		"/tmp"
#define SCRATCH_IMAGE	SCRATCH "/image"
#define SCRATCH_DISK	SCRATCH "/disk"

/* Run a command without its output. Returns true if it succeeds. */
bool run_in_shell(const char *command);
/*
 * Mount a tmpfs in a mount namespace of this process alone, and in it a new ext4 at
 * SCRATCH_DISK. Both return NULL, or why it cannot be mounted.
 */
const char *mount_scratch(void);
const char *mount_scratch_ext4(void);

/*
 * Other processes.
 */

/* A forked process, at the other end of a socket. */
struct child {
	pid_t pid;
	int control;
};

/* Start a child that ends when @run returns, or with its parent. */
bool start_child(struct child *child, int (*run)(int control, void *arg), void *arg);
/* Wait for it to end by itself. Returns its exit status, or -1. */
int end_of_child(struct child *child);
void stop_child(struct child *child);
/* Let the other end of a socket go on; wait for that. */
bool notify(int control);
bool await(int control);
/* For start_child(): wait to be stopped. With the scene: map that first, and notify. */
int keep_still(int control, void *arg);
int keep_scene(int control, void *arg);
/* Then become a program that echoes its input. */
int keep_scene_and_execute(int control, void *arg);
/* Open the maps file of a process that has exited since. */
int open_maps_of_exited(void);

/*
 * Pages behind userfaultfd: a thread that touches a missing or a protected one waits
 * until the test lets it go on.
 */

/* Returns why it cannot be used, or NULL. */
const char *open_userfaultfd(int *uffd, uint64_t features);
bool watch_missing_page(int uffd, void *page);
bool give_page(int uffd, void *page, const void *content);

/* A call of an ioctl by another thread that blocks at a page of its memory. */
struct blocked_call {
	int fd;			/* the target's maps file */
	unsigned long command;
	char *arg;		/* the structure, and other pages */
	unsigned int page;	/* of these */
	bool at_write;		/* and not at the first read of the page */
	int uffd;
	void *content;
	pthread_t thread;
	int ret;		/* or -errno */
};

/*
 * Start a target, which has mapped pages of a file in SCRATCH one by one. Each time it
 * hears, it lets 150 of them merge, which takes mmap_lock. Map as many pages for the call,
 * of which the caller sets command and page, and what the structure is. Returns why that
 * cannot be, or NULL.
 */
#define BLOCKED_FILE	SCRATCH "/a file"
#define BLOCKED_PAGES	200

const char *start_blocked_target(struct child *target, struct blocked_call *call,
				 unsigned int nr_pages);
/* Returns once it blocks. */
bool start_blocked_call(struct blocked_call *call);
bool finish_blocked_call(struct blocked_call *call);

#endif /* PROCMAP_UTIL_H */
