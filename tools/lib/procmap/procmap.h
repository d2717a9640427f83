/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libprocmap: look up the mappings (VMAs) of a process. procmap(7) is the overview, and
 * each function has a page in section 3.
 *
 * Functions return 0 or a negative errno, unless documented otherwise. Structures may get
 * more fields at their end: do not allocate those that are handed out by pointer; in the
 * others, set the size, and to zero all that is not used.
 */
#ifndef PROCMAP_H
#define PROCMAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header: major << 16 | minor << 8 | patch. */
#define PROCMAP_VERSION		0x010000

/* Return the version of the library. */
unsigned int procmap_version(void);

/* A handle on the mappings of one address space. One thread at a time may use it. */
struct procmap;

/* The interface of the kernel to use: see procmap_open_pid(3). */
enum procmap_method {
	PROCMAP_ANY_METHOD,	/* the fastest for each operation */
	PROCMAP_BY_QUERY,	/* PROCMAP_QUERY */
	PROCMAP_BY_TEXT,	/* the text of maps, or smaps for page sizes */
	PROCMAP_BY_SCAN,	/* PROCMAP_SCAN, and PROCMAP_QUERY for single mappings */
};

/*
 * What a handle may do. Without these flags, lookups of build IDs and procmap_open_file()
 * may wait for the server of a mapped file, and PROCMAP_WANT_DELETED asks none.
 */
enum procmap_open_flags {
	/* Mainline's own answers, which crash some kernels: see procmap_open_pid(3). */
	PROCMAP_KERNEL_BUILD_IDS	= 0x01,
	PROCMAP_NO_SERVERS		= 0x02,	/* ask no server of FUSE or a network */
	PROCMAP_ALL_SERVERS		= 0x04,	/* ask all of them */
};

/* Options of opening a handle. */
struct procmap_options {
	size_t size;			/* of this structure */
	enum procmap_method method;
	const char *proc;		/* where procfs is mounted; NULL: /proc */
	unsigned int flags;		/* enum procmap_open_flags */
};

/* Open the mappings of a process; -ESRCH: none, or it has no mappings. */
int procmap_open_pid(pid_t pid, const struct procmap_options *options,
		     struct procmap **procmap);

/* Open those of the calling process, also after fork(2). */
int procmap_open_self(const struct procmap_options *options,
		      struct procmap **procmap);

/* Open those of a process by its pidfd; -ESRCH: it has exited. */
int procmap_open_pidfd(int pidfd, const struct procmap_options *options,
		       struct procmap **procmap);

/* Open those of an opened maps file, or of an opened directory of a process in procfs. */
int procmap_open_fd(int fd, const struct procmap_options *options,
		    struct procmap **procmap);

/* Open a saved text of maps or smaps, which the caller keeps; -EBADMSG: it is neither. */
int procmap_open_text(const char *text, size_t size,
		      const struct procmap_options *options,
		      struct procmap **procmap);

/* Go on with the program that the process has executed. */
int procmap_reopen(struct procmap *procmap);

/* Free a handle and all that belongs to it. */
void procmap_close(struct procmap *procmap);

/* Return the method of procmap_find(). */
int procmap_get_method(const struct procmap *procmap);

/* Ask the kernel for a method; -ENOTTY: it does not have it. */
int procmap_check_method(const struct procmap *procmap, enum procmap_method method);

/* Filters of mappings, and fields to return of them: see procmap_find(3). */
enum procmap_flags {
	/* Filters, and permissions in the flags of a mapping. */
	PROCMAP_READABLE		= 0x01,
	PROCMAP_WRITABLE		= 0x02,
	PROCMAP_EXECUTABLE		= 0x04,
	PROCMAP_SHARED			= 0x08,

	PROCMAP_COVERING_OR_NEXT	= 0x10,	/* procmap_find(): or the next above */
	PROCMAP_FILE_BACKED		= 0x20,	/* filter */

	/* Flags of a mapping, with PROCMAP_WANT_DELETED. */
	PROCMAP_DELETED			= 0x40,	/* its file is not at its path */
	PROCMAP_REPLACED		= 0x80,	/* and another one is */
	PROCMAP_UNVERIFIED		= 0x100, /* its name says so: it was not looked up */

	PROCMAP_WANT_BUILD_ID		= 0x10000,
	PROCMAP_WANT_PAGE_SIZE		= 0x20000,	/* with the text, too */
	PROCMAP_WANT_DELETED		= 0x40000,
};

/* The largest size of a build ID, in bytes. */
#define PROCMAP_BUILD_ID_MAX	20

/* A mapping. It is valid until the next call with the handle. */
struct procmap_mapping {
	uint64_t start;		/* first address */
	uint64_t end;		/* first address past it */
	uint64_t offset;	/* of start in the file, bytes */
	uint64_t inode;		/* of the file; 0: none */
	uint64_t page_size;	/* bytes; 0: unknown */
	const char *name;	/* as in the text; "" if there is none */
	size_t name_len;	/* without the NUL */
	uint32_t flags;		/* permissions; PROCMAP_DELETED and so on */
	uint32_t dev_major;	/* of the file's device */
	uint32_t dev_minor;
	int32_t build_id_size;	/* bytes; 0: none; or -errno */
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
};

/*
 * Find the mapping at an address; -ENOENT: none matches. -ESTALE: the process has executed
 * another program, see procmap_reopen(). -ESRCH: it has exited.
 */
int procmap_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 const struct procmap_mapping **mapping);

/* Walk over the mappings, in rising order, from *cursor, at first 0; -ENOENT: the end. */
int procmap_next(struct procmap *procmap, uint64_t *cursor, unsigned int flags,
		 const struct procmap_mapping **mapping);

/* The comparison of procmap_find_name(). */
enum procmap_match {
	PROCMAP_EXACT,
	PROCMAP_GLOB,	/* by fnmatch(3) */
};

/* Walk over the mappings whose name, or whose name within the program, matches. */
int procmap_find_name(struct procmap *procmap, const char *pattern,
		      enum procmap_match match, uint64_t *cursor,
		      unsigned int flags,
		      const struct procmap_mapping **mapping);

/* For each address, in their order, its mapping, or NULL. */
struct procmap_resolved {
	const struct procmap_mapping *const *mappings;
	size_t nr_addrs;
};

/* Find the mappings of many addresses, as symbolizers do. */
int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    const struct procmap_resolved **resolved);

/* Free a result of procmap_resolve(), and its mappings. */
void procmap_free_resolved(const struct procmap_resolved *resolved);

/* An opened file, for its ELF addresses and its build ID. */
struct procmap_file;

/* Places to look for a file. */
struct procmap_file_options {
	size_t size;		/* of this structure */
	const char *root;	/* where the name is, without the process; NULL: / */
	const char *proc;	/* where procfs is, without the process; NULL: /proc */
};

/* Open the file of a mapping; procmap is NULL if the process is gone. */
int procmap_open_file(struct procmap *procmap, const struct procmap_mapping *mapping,
		      const struct procmap_file_options *options,
		      struct procmap_file **file);

/* Open a file, such as one with debug information, in the root of the process. */
int procmap_open_path(struct procmap *procmap, const char *path,
		      struct procmap_file **file);

/* Duplicate a descriptor of an opened file. */
int procmap_open_file_fd(int fd, struct procmap_file **file);

/* Return the descriptor, which the file keeps. */
int procmap_file_fd(const struct procmap_file *file);

/*
 * Walk over the mappings of a file, as procmap_next() does; -EXDEV: this one has its device
 * and inode, but may be of another file.
 */
int procmap_find_file(struct procmap *procmap, struct procmap_file *file,
		      uint64_t *cursor, unsigned int flags,
		      const struct procmap_mapping **mapping);

/*
 * Take the ELF file that begins at an offset in the file, such as one that an archive
 * stores; -ENOEXEC: none does.
 */
int procmap_file_set_begin(struct procmap_file *file, uint64_t begin);

/*
 * Set the address that the symbols of an ELF file have for an address in a mapping of it;
 * -ENOENT: none.
 */
int procmap_file_mapped_address(struct procmap_file *file,
				const struct procmap_mapping *mapping, uint64_t addr,
				uint64_t *address);

/* The same for an offset in the file, which two mappings of a page may have in common. */
int procmap_file_address(struct procmap_file *file, uint64_t offset, uint64_t *address);

/* Set the build ID; return its size in bytes, 0 if there is none, or -errno. */
int procmap_file_build_id(struct procmap_file *file,
			  uint8_t build_id[PROCMAP_BUILD_ID_MAX]);

/* Close a file, and free all that belongs to it. */
void procmap_close_file(struct procmap_file *file);

/* All mappings of a process at one time. It does not need the handle. */
struct procmap_snapshot;

/* Read all mappings, and keep them. */
int procmap_snapshot_take(struct procmap *procmap, unsigned int flags,
			  struct procmap_snapshot **snapshot);

/* Bring a snapshot up to date; return 1 if it has changed, 0 if not. */
int procmap_snapshot_refresh(struct procmap_snapshot *snapshot,
			     struct procmap *procmap);

/* Return 1 if the kernel said that nothing changed while the mappings were read. */
int procmap_snapshot_is_consistent(const struct procmap_snapshot *snapshot);

/* Return the number of mappings. */
size_t procmap_snapshot_count(const struct procmap_snapshot *snapshot);

/* Return a mapping by its index, or NULL. */
const struct procmap_mapping *
procmap_snapshot_at(const struct procmap_snapshot *snapshot, size_t index);

/* Return the mapping at an address, or NULL. */
const struct procmap_mapping *
procmap_snapshot_find(const struct procmap_snapshot *snapshot, uint64_t addr);

/* Call @changed for each difference, with NULL for the mapping that is not there. */
int procmap_snapshot_compare(const struct procmap_snapshot *before,
			     const struct procmap_snapshot *after,
			     int (*changed)(void *context,
					    const struct procmap_mapping *was,
					    const struct procmap_mapping *is),
			     void *context);

/* Free a snapshot. */
void procmap_snapshot_free(struct procmap_snapshot *snapshot);

#ifdef __cplusplus
}
#endif

#endif /* PROCMAP_H */
