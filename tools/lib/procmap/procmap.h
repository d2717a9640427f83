/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libprocmap: which mappings (VMAs) a process has, by the ioctls PROCMAP_SCAN and
 * PROCMAP_QUERY where the kernel has them and by the text of /proc/<pid>/maps
 * where it has not, with the same answers.
 *
 * Functions that can fail return 0 (or what they say) or a negative errno; they
 * leave errno itself undefined, print nothing, and never exit. There is no state
 * but in the handles: different threads may use different handles at the same
 * time, and one handle after another.
 *
 * procmap(7) is the overview.
 */
#ifndef PROCMAP_H
#define PROCMAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct procmap - a handle: the mappings of one address space */
struct procmap;

/** enum procmap_way - by which way the kernel is asked */
enum procmap_way {
	PROCMAP_ANY_WAY,	/* the best that can be used: scan, ioctl, text */
	PROCMAP_BY_IOCTL,	/* by PROCMAP_QUERY */
	PROCMAP_BY_TEXT,
	PROCMAP_BY_SCAN,	/* many at a time by PROCMAP_SCAN, else by ioctl */
};

/**
 * enum procmap_flags - which mapping is meant, and what to tell of it
 * @PROCMAP_READABLE: in a call: only a mapping that can be read; in
 *	&procmap_mapping.flags: this one can. So the three that follow.
 * @PROCMAP_WRITABLE: one that can be written.
 * @PROCMAP_EXECUTABLE: one that can be executed.
 * @PROCMAP_SHARED: one that the text shows as ``s``.
 * @PROCMAP_COVERING_OR_NEXT: procmap_find() only: if no mapping that passes the
 *	filters covers the address, take the first one above it.
 * @PROCMAP_FILE_BACKED: only a mapping of a file. A mapping has to pass all the
 *	filters that are given.
 * @PROCMAP_WANT_BUILD_ID: tell the build ID.
 * @PROCMAP_WANT_PAGE_SIZE: tell the page size also by text, for which the much
 *	slower smaps is read in the place of maps.
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

/** PROCMAP_BUILD_ID_MAX - no build ID has more bytes */
#define PROCMAP_BUILD_ID_MAX	20

/**
 * struct procmap_mapping - a mapping
 * @start: first address.
 * @end: first address past it.
 * @offset: offset of @start in the file, in bytes; 0 without a file.
 * @inode: number of the file's inode; 0 without a file.
 * @page_size: bytes of the pages that back it; 0 if unknown (see
 *	PROCMAP_WANT_PAGE_SIZE).
 * @name: what the text shows: the path of the file, followed by `` (deleted)``
 *	once it has no link left, or a name such as ``[heap]``; a newline is
 *	written ``\012``. Ends with a NUL; empty if there is none. It belongs to
 *	the handle, and is good until the next call with that.
 * @name_len: its bytes, without the NUL.
 * @flags: its permissions: the first four of &enum procmap_flags.
 * @dev_major: device of the file; 0 without a file.
 * @dev_minor: the same.
 * @build_id_size: bytes of @build_id; 0 if there is none or it was not asked
 *	for; a negative errno if the file could not be looked at, by text.
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
 * @way: which way to use. PROCMAP_ANY_WAY tries the ioctls once, here: not only
 *	ENOTTY means the text, but also EACCES, EPERM and ENOSYS, which a security
 *	module or seccomp filter may answer where reading is allowed.
 * @procmap: where to put the handle.
 *
 * Return: 0, or
 * * -EINVAL: @pid is not positive, @way is none of the four, or @procmap NULL.
 * * -ENOENT: there is no such process.
 * * -EACCES: no permission to look into it.
 * * -ESRCH: it has no mappings: a kernel thread, or it is about to be gone.
 * * -ENOTTY, -EACCES, -EPERM, -ENOSYS: with PROCMAP_BY_IOCTL or
 *   PROCMAP_BY_SCAN, what the ioctl answered.
 * * -ENOMEM, -EMFILE, -ENFILE: as of open(2).
 */
int procmap_open_pid(pid_t pid, enum procmap_way way, struct procmap **procmap);

/**
 * procmap_open_self() - get a handle on the mappings of the calling process
 * @way: as in procmap_open_pid().
 * @procmap: where to put the handle.
 *
 * After fork(2), it still tells of the parent.
 *
 * Return: as procmap_open_pid().
 */
int procmap_open_self(enum procmap_way way, struct procmap **procmap);

/**
 * procmap_open_fd() - get a handle on a maps file that somebody opened
 * @fd: the file, opened for reading. It stays the caller's, has to be open as
 *	long as the handle is used, and its file offset is not changed.
 * @way: as in procmap_open_pid().
 * @procmap: where to put the handle.
 *
 * Return: as procmap_open_pid(), and
 * * -EBADF: @fd is not open, or not for reading.
 * * -EINVAL: it is no maps file.
 */
int procmap_open_fd(int fd, enum procmap_way way, struct procmap **procmap);

/**
 * procmap_open_text() - get a handle on a text that was saved
 * @text: all of a maps (or smaps) file. It stays the caller's, is not changed,
 *	and has to be there as long as the handle is used.
 * @size: its bytes.
 * @procmap: where to put the handle.
 *
 * There is no process to ask: build IDs are -ENODEV, and page sizes are known
 * only if it is the text of smaps.
 *
 * Return: 0, -EINVAL (a pointer is NULL or @size is 0), or -ENOMEM.
 */
int procmap_open_text(const char *text, size_t size, struct procmap **procmap);

/**
 * procmap_close() - give a handle back, and all that it holds
 * @procmap: the handle, or NULL.
 */
void procmap_close(struct procmap *procmap);

/**
 * procmap_get_way() - which way is used
 * @procmap: the handle.
 *
 * Return: PROCMAP_BY_SCAN, PROCMAP_BY_IOCTL or PROCMAP_BY_TEXT; -EINVAL for NULL.
 */
int procmap_get_way(const struct procmap *procmap);

/**
 * procmap_find() - find the mapping at an address
 * @procmap: the handle.
 * @addr: the address.
 * @flags: any of &enum procmap_flags.
 * @mapping: where to put what is found.
 *
 * Return: 0, or
 * * -ENOENT: no mapping answers.
 * * -EINVAL: a pointer is NULL, or @flags has an unknown bit.
 * * -ESRCH: the address space is gone: its process has exited or executed
 *   another program.
 * * -EBADMSG: the text is not that of a maps file, or cut in the middle of a
 *   line.
 * * -EPROTO: the ioctl's answer is none, as a mapping below @addr.
 * * -ENOMEM, -EIO: as of read(2) and ioctl(2).
 */
int procmap_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 struct procmap_mapping *mapping);

/**
 * procmap_next() - walk over the mappings, in rising order
 * @procmap: the handle.
 * @cursor: where to go on: 0 at first, and then as the last call left it.
 * @flags: as for procmap_find(), without PROCMAP_COVERING_OR_NEXT.
 * @mapping: where to put what is found.
 *
 * The process may change its mappings between two calls. Still no address is
 * told twice, and none is missed that was mapped (and passed the filters)
 * throughout: a mapping that has grown downwards, below the cursor, is cut off
 * there, and its offset moved.
 *
 * By text, what is told of a mapping is as old as the read(2) that brought its
 * line, which brings some ten others; by scan, as the ioctl that brought it, with
 * up to 511 others.
 *
 * Return: 0, -ENOENT at the end, or another as procmap_find().
 */
int procmap_next(struct procmap *procmap, uint64_t *cursor, unsigned int flags,
		 struct procmap_mapping *mapping);

/** PROCMAP_NOT_MAPPED - &procmap_place.mapping of an address in no mapping */
#define PROCMAP_NOT_MAPPED	UINT32_MAX

/**
 * struct procmap_place - where an address is
 * @offset: of the address in the file; without a file, 0.
 * @mapping: index of its mapping, or PROCMAP_NOT_MAPPED.
 */
struct procmap_place {
	uint64_t offset;
	uint32_t mapping;
};

/**
 * struct procmap_resolved - where addresses are
 * @places: for each address, in the order in which they were given.
 * @nr_places: as many as addresses.
 * @mappings: those that at least one address is in, in rising order; with the
 *	names, it all belongs to this structure and not to the handle.
 * @nr_mappings: their number.
 */
struct procmap_resolved {
	struct procmap_place *places;
	size_t nr_places;
	struct procmap_mapping *mappings;
	size_t nr_mappings;
};

/**
 * procmap_resolve() - find the mappings of many addresses: a symbolizer's pass
 * @procmap: the handle.
 * @addrs: the addresses, in any order.
 * @nr_addrs: their number.
 * @flags: as for procmap_next().
 * @resolved: where to put the answer; procmap_free_resolved() gives it back.
 *
 * Each mapping, and each gap between mappings, is asked for once, however many
 * of the addresses are in it; by text, the file is read once; by scan, many are
 * asked for at a time where most of them are wanted.
 *
 * Return: 0, also if no address is mapped; or
 * * -EINVAL: a pointer is NULL, @nr_addrs is 0, or @flags has an unknown bit.
 * * another as procmap_find(), but for -ENOENT.
 */
int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    struct procmap_resolved **resolved);

/**
 * procmap_free_resolved() - give back what procmap_resolve() made
 * @resolved: it, or NULL.
 */
void procmap_free_resolved(struct procmap_resolved *resolved);

/**
 * procmap_open_file() - open the file that is mapped
 * @procmap: the handle that @mapping is from.
 * @mapping: a mapping; only the fields from @start to @dev_minor matter.
 *
 * /proc/<pid>/map_files has it, also if it was deleted, for those with the
 * capability CAP_CHECKPOINT_RESTORE. For others it is looked for by its name, in
 * the process' own root directory, and held against the mapping. Only regular
 * files are opened.
 *
 * Return: a file descriptor, for reading and closed on exec; or
 * * -EINVAL: a pointer is NULL.
 * * -ENODEV: the mapping has no regular file, or the handle is on a saved text.
 * * -ESTALE: at its path, there is another file.
 * * another as of open(2).
 */
int procmap_open_file(struct procmap *procmap,
		      const struct procmap_mapping *mapping);

#ifdef __cplusplus
}
#endif

#endif /* PROCMAP_H */
