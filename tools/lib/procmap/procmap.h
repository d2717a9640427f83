/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libprocmap: look up the mappings (VMAs) of a process. It uses the ioctls
 * PROCMAP_SCAN and PROCMAP_QUERY if the kernel has them, and otherwise the text
 * of /proc/<pid>/maps, with the same results.
 *
 * Functions that can fail return 0, unless documented otherwise, or a negative
 * errno. They leave errno itself undefined, print nothing, and never exit. All
 * state is in the handles. Threads may use different handles at the same time;
 * one handle may be used by one thread at a time.
 *
 * See procmap(7) for an overview.
 */
#ifndef PROCMAP_H
#define PROCMAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct procmap - a handle on the mappings of one address space */
struct procmap;

/**
 * enum procmap_way - the interface of the kernel to use
 * @PROCMAP_ANY_WAY: the first one available of PROCMAP_SCAN, PROCMAP_QUERY and
 *	the text.
 * @PROCMAP_BY_IOCTL: PROCMAP_QUERY.
 * @PROCMAP_BY_TEXT: the text of maps, or smaps for page sizes.
 * @PROCMAP_BY_SCAN: PROCMAP_SCAN for many mappings at a time, PROCMAP_QUERY for
 *	single ones.
 */
enum procmap_way {
	PROCMAP_ANY_WAY,
	PROCMAP_BY_IOCTL,
	PROCMAP_BY_TEXT,
	PROCMAP_BY_SCAN,
};

/**
 * enum procmap_flags - which mappings match, and what to return of them
 * @PROCMAP_READABLE: in a call: match only readable mappings; in
 *	&procmap_mapping.flags: the mapping is readable. The next three flags
 *	are used in both, too.
 * @PROCMAP_WRITABLE: writable mappings.
 * @PROCMAP_EXECUTABLE: executable mappings.
 * @PROCMAP_SHARED: shared mappings: those that the text shows with ``s``.
 * @PROCMAP_COVERING_OR_NEXT: procmap_find() only: if no mapping that passes the
 *	filters covers the address, return the next one above it.
 * @PROCMAP_FILE_BACKED: match only mappings of files. A mapping has to pass all
 *	filters that are given.
 * @PROCMAP_WANT_BUILD_ID: return the build ID.
 * @PROCMAP_WANT_PAGE_SIZE: return the page size with the text method, too,
 *	which then reads smaps instead of maps. That is much slower.
 */
enum procmap_flags {
	PROCMAP_READABLE		= 0x01,
	PROCMAP_WRITABLE		= 0x02,
	PROCMAP_EXECUTABLE		= 0x04,
	PROCMAP_SHARED			= 0x08,
	PROCMAP_COVERING_OR_NEXT	= 0x10,
	PROCMAP_FILE_BACKED		= 0x20,
	PROCMAP_WANT_BUILD_ID		= 0x10000,
	PROCMAP_WANT_PAGE_SIZE		= 0x20000,
};

/** PROCMAP_BUILD_ID_MAX - largest size of a build ID, in bytes */
#define PROCMAP_BUILD_ID_MAX	20

/**
 * struct procmap_mapping - a mapping
 * @start: first address.
 * @end: first address past the mapping.
 * @offset: file offset of @start, in bytes; 0 without a file.
 * @inode: inode number of the file; 0 without a file.
 * @page_size: size of the mapping's pages, in bytes; 0 if unknown (see
 *	PROCMAP_WANT_PAGE_SIZE).
 * @name: the name that the text shows: the path of the file, followed by
 *	`` (deleted)`` if the file has been unlinked, or a name such as
 *	``[heap]``; a newline is escaped as ``\012``. It ends with a NUL, and is
 *	empty if there is none. It belongs to the handle, and is valid until the
 *	next call with that handle.
 * @name_len: length of @name in bytes, without the NUL.
 * @flags: permissions: the first four flags of &enum procmap_flags.
 * @dev_major: major number of the file's device; 0 without a file.
 * @dev_minor: minor number of the file's device; 0 without a file.
 * @build_id_size: size of @build_id in bytes; 0 if there is none or it is not
 *	wanted; with the text method, a negative errno if the file could not be
 *	opened.
 * @build_id: the build ID.
 */
struct procmap_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;
	uint64_t page_size;
	const char *name;
	size_t name_len;
	uint32_t flags;
	uint32_t dev_major;
	uint32_t dev_minor;
	int32_t build_id_size;
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
};

/**
 * procmap_open_pid() - get a handle on the mappings of a process
 * @pid: the process.
 * @way: the method to use. PROCMAP_ANY_WAY tries each ioctl once, in this call,
 *	and goes on to the next method on ENOTTY, and also on EACCES, EPERM and
 *	ENOSYS: a security module or seccomp filter may return these for an
 *	ioctl although it allows reading.
 * @procmap: set to the handle. Free it with procmap_close().
 *
 * Return: 0, or
 * * -EINVAL: @pid is not positive, @way is unknown, or @procmap is NULL.
 * * -ENOENT: there is no such process.
 * * -EACCES: no permission to inspect the process.
 * * -ESRCH: it has no mappings: it is a kernel thread, or is exiting.
 * * -ENOTTY, -EACCES, -EPERM, -ENOSYS: with PROCMAP_BY_IOCTL or
 *   PROCMAP_BY_SCAN, the error of the ioctl.
 * * -ENOMEM, -EMFILE, -ENFILE: see open(2).
 */
int procmap_open_pid(pid_t pid, enum procmap_way way, struct procmap **procmap);

/**
 * procmap_open_self() - get a handle on the mappings of the calling process
 * @way: as in procmap_open_pid().
 * @procmap: set to the handle.
 *
 * After fork(2), the handle still refers to the parent's mappings.
 *
 * Return: as procmap_open_pid().
 */
int procmap_open_self(enum procmap_way way, struct procmap **procmap);

/**
 * procmap_open_fd() - get a handle on a maps file that is already open
 * @fd: the file, opened for reading. The caller keeps it open as long as the
 *	handle is in use, and closes it. Its file offset is not changed.
 * @way: as in procmap_open_pid().
 * @procmap: set to the handle.
 *
 * Return: as procmap_open_pid(), and
 * * -EBADF: @fd is not open for reading.
 * * -EINVAL: @fd is not a maps file.
 */
int procmap_open_fd(int fd, enum procmap_way way, struct procmap **procmap);

/**
 * procmap_open_text() - get a handle on a saved text
 * @text: the content of a maps or smaps file. It is not changed. The caller
 *	keeps it valid as long as the handle is in use, and frees it.
 * @size: size of the text in bytes.
 * @procmap: set to the handle.
 *
 * Without a process, every build ID is -ENODEV, and page sizes are known only
 * if the text is that of smaps.
 *
 * Return: 0, -EINVAL (a pointer is NULL or @size is 0), or -ENOMEM.
 */
int procmap_open_text(const char *text, size_t size, struct procmap **procmap);

/**
 * procmap_close() - free a handle and all that belongs to it
 * @procmap: the handle, or NULL.
 */
void procmap_close(struct procmap *procmap);

/**
 * procmap_get_way() - get the method that a handle uses
 * @procmap: the handle.
 *
 * Return: PROCMAP_BY_SCAN, PROCMAP_BY_IOCTL or PROCMAP_BY_TEXT; -EINVAL for
 * NULL.
 */
int procmap_get_way(const struct procmap *procmap);

/**
 * procmap_find() - find the mapping at an address
 * @procmap: the handle.
 * @addr: the address.
 * @flags: any of &enum procmap_flags.
 * @mapping: set to the mapping.
 *
 * Return: 0, or
 * * -ENOENT: no mapping matches.
 * * -EINVAL: a pointer is NULL, or @flags has an unknown bit.
 * * -ESRCH: the address space is gone: its process has exited or executed
 *   another program.
 * * -EBADMSG: the text is not that of a maps file, or is cut in the middle of a
 *   line.
 * * -EPROTO: the ioctl returned an invalid result, such as a mapping below
 *   @addr.
 * * -ENOMEM, -EIO: see read(2) and ioctl(2).
 */
int procmap_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 struct procmap_mapping *mapping);

/**
 * procmap_next() - walk over the mappings, in rising order
 * @procmap: the handle.
 * @cursor: the address to continue from: 0 for the first call. Set to the end
 *	of
 *	@mapping.
 * @flags: as for procmap_find(), without PROCMAP_COVERING_OR_NEXT.
 * @mapping: set to the next mapping.
 *
 * The process may change its mappings between two calls. Still, no address is
 * returned twice, and none is missed that is mapped, and passes the filters,
 * during the whole walk. A mapping that has grown down below the cursor is cut
 * there, and its offset adjusted.
 *
 * With the text method, a mapping is as old as the read(2) that returned its
 * line and some ten others. With the scan method, it is as old as the ioctl
 * that returned it and up to 511 others.
 *
 * Return: 0, -ENOENT at the end, or another error of procmap_find().
 */
int procmap_next(struct procmap *procmap, uint64_t *cursor, unsigned int flags,
		 struct procmap_mapping *mapping);

/** PROCMAP_NOT_MAPPED - &procmap_place.mapping if no mapping has the address */
#define PROCMAP_NOT_MAPPED	UINT32_MAX

/**
 * struct procmap_place - where an address is
 * @offset: file offset of the address, in bytes; 0 without a file.
 * @mapping: index of the mapping, or PROCMAP_NOT_MAPPED.
 */
struct procmap_place {
	uint64_t offset;
	uint32_t mapping;
};

/**
 * struct procmap_resolved - where addresses are
 * @places: one for each address, in the order of the addresses.
 * @nr_places: number of places, which is the number of addresses.
 * @mappings: the mappings that have at least one of the addresses, in rising
 *	order. They and their names belong to this structure, not to the handle.
 * @nr_mappings: number of mappings.
 */
struct procmap_resolved {
	struct procmap_place *places;
	size_t nr_places;
	struct procmap_mapping *mappings;
	size_t nr_mappings;
};

/**
 * procmap_resolve() - find the mappings of many addresses, as symbolizers do
 * @procmap: the handle.
 * @addrs: the addresses, in any order.
 * @nr_addrs: number of addresses.
 * @flags: as for procmap_next().
 * @resolved: set to the result. Free it with procmap_free_resolved().
 *
 * Each mapping, and each gap between mappings, is looked up once, no matter how
 * many of the addresses it has. The text method reads the file once. The scan
 * method fetches many mappings at a time where most of them are needed.
 *
 * Return: 0, also if no address is mapped; or
 * * -EINVAL: a pointer is NULL, @nr_addrs is 0, or @flags has an unknown bit.
 * * another error of procmap_find(), except -ENOENT.
 */
int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    struct procmap_resolved **resolved);

/**
 * procmap_free_resolved() - free a result of procmap_resolve()
 * @resolved: the result, or NULL.
 */
void procmap_free_resolved(struct procmap_resolved *resolved);

/**
 * procmap_open_file() - open the mapped file
 * @procmap: the handle that returned @mapping.
 * @mapping: a mapping; only the fields from @start to @dev_minor are used.
 *
 * Callers with CAP_CHECKPOINT_RESTORE get the file from /proc/<pid>/map_files,
 * even if it has been deleted. For others, the file is opened by its name in
 * the root directory of the process, and compared with the mapping. Only
 * regular files are opened.
 *
 * Return: a file descriptor, opened for reading with close-on-exec; or
 * * -EINVAL: a pointer is NULL.
 * * -ENODEV: the mapping has no regular file, or the handle is on a saved text.
 * * -ESTALE: another file is at the path.
 * * another error of open(2).
 */
int procmap_open_file(struct procmap *procmap,
		      const struct procmap_mapping *mapping);

#ifdef __cplusplus
}
#endif

#endif /* PROCMAP_H */
