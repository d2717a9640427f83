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
 * Structures may get more fields at their end without a new SONAME. Do not allocate
 * those that are handed out by pointer. In those that are the caller's, set the size,
 * and all that is not used to zero.
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

/**
 * PROCMAP_VERSION - the version of this header: major << 16 | minor << 8 | patch
 *
 * See procmap_version() for that of the library.
 */
#define PROCMAP_VERSION		0x010000

/** struct procmap - a handle on the mappings of one address space */
struct procmap;

/**
 * enum procmap_method - the interface of the kernel to use
 * @PROCMAP_ANY_METHOD: the one that takes the fewest instructions, of those that this
 *	kernel has: PROCMAP_BY_SCAN, or else PROCMAP_BY_QUERY, or else PROCMAP_BY_TEXT. A
 *	walk over thousands of mappings by queries can take longer than by the text.
 * @PROCMAP_BY_QUERY: PROCMAP_QUERY only.
 * @PROCMAP_BY_TEXT: only the text of maps, or smaps for page sizes.
 * @PROCMAP_BY_SCAN: PROCMAP_SCAN for many mappings at a time, PROCMAP_QUERY for
 *	single ones.
 */
enum procmap_method {
	PROCMAP_ANY_METHOD,
	PROCMAP_BY_QUERY,
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
 * @PROCMAP_DELETED: never in a call; in &procmap_mapping.flags, if
 *	PROCMAP_WANT_DELETED was in the call: the file at the mapping's path is
 *	not the mapped one, or there is none: it was deleted or replaced.
 * @PROCMAP_WANT_BUILD_ID: return the build ID.
 * @PROCMAP_WANT_PAGE_SIZE: return the page size with the text, too. Without the
 *	ioctls, smaps is read for it instead of maps, which is much slower.
 * @PROCMAP_WANT_DELETED: find out whether the file was deleted, which takes a
 *	stat(2) of its path for each mapping of another file than the one before.
 */
enum procmap_flags {
	PROCMAP_READABLE		= 0x01,
	PROCMAP_WRITABLE		= 0x02,
	PROCMAP_EXECUTABLE		= 0x04,
	PROCMAP_SHARED			= 0x08,
	PROCMAP_COVERING_OR_NEXT	= 0x10,
	PROCMAP_FILE_BACKED		= 0x20,
	PROCMAP_DELETED			= 0x40,
	PROCMAP_WANT_BUILD_ID		= 0x10000,
	PROCMAP_WANT_PAGE_SIZE		= 0x20000,
	PROCMAP_WANT_DELETED		= 0x40000,
};

/** PROCMAP_BUILD_ID_MAX - largest size of a build ID, in bytes */
#define PROCMAP_BUILD_ID_MAX	20

/**
 * struct procmap_mapping - a mapping
 *
 * Functions hand it out by pointer. It belongs to the handle, and is valid until
 * the next call with that handle, other than procmap_open_file() and
 * procmap_get_method().
 *
 * @start: first address.
 * @end: first address past the mapping.
 * @offset: file offset of @start, in bytes; 0 without a file.
 * @inode: inode number of the file; 0 without a file.
 * @page_size: size of the mapping's pages, in bytes; 0 if unknown (see
 *	PROCMAP_WANT_PAGE_SIZE).
 * @name: the name that the text shows: the path of the file, followed by
 *	`` (deleted)`` if the file has been unlinked, or a name such as
 *	``[heap]``; a newline is escaped as ``\012``. It ends with a NUL, and is
 *	empty if there is none. It is valid as long as the mapping is.
 * @name_len: length of @name in bytes, without the NUL.
 * @flags: permissions: the first four flags of &enum procmap_flags; and
 *	PROCMAP_DELETED.
 * @dev_major: major number of the file's device; 0 without a file.
 * @dev_minor: minor number of the file's device; 0 without a file.
 * @build_id_size: size of @build_id in bytes; 0 if there is none of up to 20 bytes,
 *	which is what the kernel finds, or it is not wanted; a negative errno if
 *	the kernel does not return it and the file could not be opened.
 * @build_id: the build ID: that of the file, or of ``[vdso]``, which is read from
 *	the memory of the process, if that may be read.
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
 * procmap_version() - the version of the library
 *
 * Return: the version, as PROCMAP_VERSION.
 */
unsigned int procmap_version(void);

/**
 * struct procmap_options - how to open a handle
 *
 * This is the caller's. Fields of later versions are zero by default.
 *
 * @size: sizeof(struct procmap_options).
 * @method: the method to use. PROCMAP_ANY_METHOD tries PROCMAP_QUERY when the handle is
 *	opened and PROCMAP_SCAN in the first call that may use it, and goes on to the
 *	next method on ENOTTY, and also on EACCES, EPERM and ENOSYS: a security module
 *	or seccomp filter may return these for an ioctl although it allows reading.
 * @proc: where procfs is mounted, such as the host's in a container; NULL for /proc.
 *	Process IDs are those of its PID namespace.
 */
struct procmap_options {
	size_t size;
	enum procmap_method method;
	const char *proc;
};

/**
 * procmap_open_pid() - get a handle on the mappings of a process
 * @pid: the process, as in the PID namespace of /proc; or one of its threads: the
 *	handle is of use as long as that thread lives.
 * @options: see there; NULL for the defaults.
 * @procmap: set to the handle. Free it with procmap_close().
 *
 * The handle is on an address space. If another process has the same one, as after
 * vfork(2), the handle stays on it when this process executes a program.
 *
 * If the main thread has exited, the handle is on the mappings of another thread.
 *
 * Return: 0, or
 * * -EINVAL: @pid is not positive, an option is unknown, or @procmap is NULL.
 * * -ESRCH: there is no such process; or it has no mappings: it is a kernel thread, or
 *   is exiting.
 * * -ENOENT: no procfs is mounted at the options' proc.
 * * -EACCES: no permission to inspect the process: it is another user's, is not
 *   dumpable, or a security module forbids it. Root gets this, too, without
 *   CAP_SYS_PTRACE in the user namespace of the process.
 * * -EPERM: /proc is mounted with hidepid=1, and hides the process.
 * * -ENOTTY, -EACCES, -EPERM, -ENOSYS: with PROCMAP_BY_QUERY or
 *   PROCMAP_BY_SCAN, the error of the ioctl.
 * * -ENOMEM, -EMFILE, -ENFILE: see open(2).
 */
int procmap_open_pid(pid_t pid, const struct procmap_options *options,
		     struct procmap **procmap);

/**
 * procmap_open_self() - get a handle on the mappings of the calling process
 * @options: as in procmap_open_pid().
 * @procmap: set to the handle.
 *
 * After fork(2), the handle still refers to the parent's mappings.
 *
 * Return: as procmap_open_pid().
 */
int procmap_open_self(const struct procmap_options *options,
		      struct procmap **procmap);

/**
 * procmap_open_text() - get a handle on a saved text
 * @text: the content of a maps or smaps file. It is not changed. The caller
 *	keeps it valid as long as the handle is in use, and frees it.
 * @size: size of the text in bytes.
 * @options: as in procmap_open_pid(); the method is PROCMAP_BY_TEXT or
 *	PROCMAP_ANY_METHOD.
 * @procmap: set to the handle.
 *
 * Without a process, every build ID is -ENODEV, no mapping is PROCMAP_DELETED, and
 * page sizes are known only if the text is that of smaps.
 *
 * Return: 0, or
 * * -EINVAL: a pointer is NULL, @size is 0, or an option is unknown.
 * * -EBADMSG: this is not the text of a maps file: a line is cut or cannot be parsed, or
 *   their mappings do not rise.
 * * -ENOMEM
 */
int procmap_open_text(const char *text, size_t size,
		      const struct procmap_options *options,
		      struct procmap **procmap);

/**
 * procmap_reopen() - go on with the program that the process has executed
 * @procmap: a handle from procmap_open_pid() or procmap_open_self().
 *
 * After execve(2), a handle still refers to the old address space, which is gone.
 * The process is the one that the handle was opened for, even if its ID is that of
 * another process by now.
 *
 * Return: 0; or
 * * -EINVAL: @procmap is NULL, or of another function.
 * * -ESRCH: the process has exited.
 * * another error of procmap_open_pid(). The handle is as before then.
 */
int procmap_reopen(struct procmap *procmap);

/**
 * procmap_close() - free a handle and all that belongs to it
 * @procmap: the handle, or NULL.
 */
void procmap_close(struct procmap *procmap);

/**
 * procmap_get_method() - get the method that a handle uses
 * @procmap: the handle.
 *
 * Return: PROCMAP_BY_SCAN, PROCMAP_BY_QUERY or PROCMAP_BY_TEXT: the method of
 * procmap_find(); -EINVAL for NULL.
 */
int procmap_get_method(const struct procmap *procmap);

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
 * * -ESTALE: the process has executed another program, or the thread has exited
 *	whose mappings the handle is on; see procmap_reopen().
 * * -ESRCH: the process has exited.
 * * -EMFILE, -ENFILE: one of these two, but no descriptor is left to find out which.
 * * -EBADMSG: the kernel's text cannot be parsed.
 * * -EPROTO: the ioctl returned an invalid result, such as a mapping below
 *   @addr.
 * * -ENOMEM, -EIO: see read(2) and ioctl(2).
 */
int procmap_find(struct procmap *procmap, uint64_t addr, unsigned int flags,
		 const struct procmap_mapping **mapping);

/**
 * procmap_next() - walk over the mappings, in rising order
 * @procmap: the handle.
 * @cursor: the address to continue from: 0 for the first call. Set to the end of
 *	@mapping.
 * @flags: as for procmap_find(), without PROCMAP_COVERING_OR_NEXT.
 * @mapping: set to the next mapping.
 *
 * The process may change its mappings between two calls. Still, no address is
 * returned twice, and none is missed that is mapped, and passes the filters,
 * during the whole walk. A mapping that has grown down below the cursor is cut
 * there, and its offset adjusted.
 *
 * With the text, a mapping is as old as the read(2) that returned its line and
 * some ten others. With PROCMAP_SCAN, it is as old as the ioctl that returned it
 * and up to 255 others.
 *
 * The build ID of a file is read once in a run of its mappings.
 *
 * Return: 0, -ENOENT at the end, or another error of procmap_find().
 */
int procmap_next(struct procmap *procmap, uint64_t *cursor, unsigned int flags,
		 const struct procmap_mapping **mapping);

/**
 * enum procmap_match - how procmap_find_name() compares
 * @PROCMAP_EXACT: the name is equal to the pattern.
 * @PROCMAP_GLOB: the name matches the pattern as by fnmatch(3), in which ``*``
 *	matches slashes, too. ``[heap]`` is one of four letters there.
 */
enum procmap_match {
	PROCMAP_EXACT,
	PROCMAP_GLOB,
};

/**
 * procmap_find_name() - find the next mapping by its name
 * @procmap: the handle.
 * @pattern: what to look for.
 * @match: how to compare.
 * @cursor: as in procmap_next().
 * @flags: as for procmap_next().
 * @mapping: set to the next mapping whose name matches.
 *
 * A `` (deleted)`` at the end of a name is ignored. What a program has named is
 * found by its own name, too: ``X`` is that of ``[anon:X]``, ``[anon_shmem:X]``
 * (see PR_SET_VMA_ANON_NAME in prctl(2)) and ``/memfd:X`` (see memfd_create(2)).
 *
 * Return: as procmap_next().
 */
int procmap_find_name(struct procmap *procmap, const char *pattern,
		      enum procmap_match match, uint64_t *cursor,
		      unsigned int flags,
		      const struct procmap_mapping **mapping);

/**
 * struct procmap_resolved - where addresses are
 * @mappings: for each address, in the order of the addresses, its mapping, or NULL.
 *	Addresses in one mapping have one pointer. The mappings and their names
 *	belong to this structure, not to the handle.
 * @nr_addrs: the number of addresses.
 */
struct procmap_resolved {
	const struct procmap_mapping *const *mappings;
	size_t nr_addrs;
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
 * many of the addresses it has. The text is read once. The scan method fetches
 * many mappings at a time where most of them are needed.
 *
 * Return: 0, also if no address is mapped; or
 * * -EINVAL: a pointer is NULL, @nr_addrs is 0, or @flags has an unknown bit.
 * * another error of procmap_find(), except -ENOENT.
 */
int procmap_resolve(struct procmap *procmap, const uint64_t *addrs,
		    size_t nr_addrs, unsigned int flags,
		    const struct procmap_resolved **resolved);

/**
 * procmap_free_resolved() - free a result of procmap_resolve()
 * @resolved: the result, or NULL.
 */
void procmap_free_resolved(const struct procmap_resolved *resolved);

/** struct procmap_file - an opened file, for its ELF addresses and its build ID */
struct procmap_file;

/**
 * struct procmap_file_options - where to look for a file
 *
 * This is the caller's, as struct procmap_options is.
 *
 * @size: sizeof(struct procmap_file_options).
 * @root: the directory below which the name of the mapping is looked up when the process
 *	does not help: it has exited, or may not be inspected. NULL for the caller's root.
 */
struct procmap_file_options {
	size_t size;
	const char *root;
};

/**
 * procmap_open_file() - open the file of a mapping
 * @procmap: a handle on the process; or NULL, as for a process that has exited.
 * @mapping: a mapping of that handle, of a snapshot or of a table. The fields from
 *	@start to @dev_minor are used, and the build ID of one that has no inode.
 * @options: see there; NULL for the defaults.
 * @file: set to the file. Free it with procmap_close_file(). It does not need the handle.
 *
 * Return: 0, or
 * * -EINVAL: a pointer is NULL, or an option is unknown.
 * * -ENODEV: the mapping has no regular file, or the handle is on a saved text.
 * * -EWOULDBLOCK: a process has a lease on the file for writing, see fcntl(2).
 * * -ESTALE: another file is at the path.
 * * -ENOMEM, or another error of open(2).
 */
int procmap_open_file(struct procmap *procmap, const struct procmap_mapping *mapping,
		      const struct procmap_file_options *options,
		      struct procmap_file **file);

/**
 * procmap_open_file_fd() - use a file that is already open
 * @fd: the file, opened for reading. It is duplicated.
 * @file: set to the file, as in procmap_open_file().
 *
 * Return: 0, -EINVAL, -EBADF, -EMFILE or -ENOMEM.
 */
int procmap_open_file_fd(int fd, struct procmap_file **file);

/**
 * procmap_file_fd() - the descriptor of a file
 * @file: the file, which keeps it.
 *
 * Return: the descriptor, opened for reading with close-on-exec; -EINVAL for NULL.
 */
int procmap_file_fd(const struct procmap_file *file);

/**
 * procmap_file_address() - the address in an ELF file, as its symbols have it
 * @file: the file.
 * @offset: an offset in the file, in bytes.
 * @address: set to the virtual address by the program headers of the file.
 *
 * The first call reads the program headers, and later ones make no system call.
 *
 * Return: 0, or
 * * -ENOENT: no segment that is loaded has this offset.
 * * -ENOEXEC: the file is not an ELF file of this machine's byte order.
 * * -EINVAL or -ENOMEM.
 */
int procmap_file_address(struct procmap_file *file, uint64_t offset, uint64_t *address);

/**
 * procmap_file_build_id() - the build ID of a file
 * @file: the file, which is read by the first call.
 * @build_id: set to the build ID.
 *
 * Return: its size in bytes, 0 if there is none, or -EINVAL.
 */
int procmap_file_build_id(struct procmap_file *file,
			  uint8_t build_id[PROCMAP_BUILD_ID_MAX]);

/**
 * procmap_close_file() - close a file, and free all that belongs to it
 * @file: the file, or NULL.
 */
void procmap_close_file(struct procmap_file *file);

/** struct procmap_snapshot - all mappings of a process at one time */
struct procmap_snapshot;

/**
 * procmap_snapshot_take() - read all mappings, and keep them
 * @procmap: the handle.
 * @flags: as for procmap_next().
 * @snapshot: set to the snapshot. Free it with procmap_snapshot_free().
 *
 * The snapshot does not need the handle: it stays valid after procmap_close(), and
 * after the process has exited. Threads may search one snapshot at the same time.
 *
 * Return: 0, or
 * * -EINVAL: a pointer is NULL, or @flags has an unknown bit.
 * * another error of procmap_next(), except -ENOENT.
 */
int procmap_snapshot_take(struct procmap *procmap, unsigned int flags,
			  struct procmap_snapshot **snapshot);

/**
 * procmap_snapshot_refresh() - bring a snapshot up to date
 * @snapshot: the snapshot.
 * @procmap: the handle that it was taken from, with the same program.
 *
 * With PROCMAP_SCAN on a kernel that numbers the generations of an address space,
 * this is one system call as long as nothing has changed. Otherwise all mappings
 * are read again. Mappings that were returned before are invalid after a change.
 *
 * Return: 1 if the snapshot has changed, 0 if not, or
 * * -EINVAL: a pointer is NULL.
 * * another error of procmap_snapshot_take(). The snapshot is as before then.
 */
int procmap_snapshot_refresh(struct procmap_snapshot *snapshot,
			     struct procmap *procmap);

/**
 * procmap_snapshot_is_consistent() - are the mappings those of one moment?
 * @snapshot: the snapshot.
 *
 * Return: 1 if the kernel said that nothing changed while they were read; 0 if it
 * did not: something may have changed.
 */
int procmap_snapshot_is_consistent(const struct procmap_snapshot *snapshot);

/**
 * procmap_snapshot_count() - the number of mappings in a snapshot
 * @snapshot: the snapshot.
 *
 * Return: the number.
 */
size_t procmap_snapshot_count(const struct procmap_snapshot *snapshot);

/**
 * procmap_snapshot_at() - a mapping by its index
 * @snapshot: the snapshot.
 * @index: from 0, in rising order of the addresses.
 *
 * Return: the mapping, which is valid as long as the snapshot is and has not
 * changed; NULL if there are not so many.
 */
const struct procmap_mapping *
procmap_snapshot_at(const struct procmap_snapshot *snapshot, size_t index);

/**
 * procmap_snapshot_find() - find the mapping at an address
 * @snapshot: the snapshot.
 * @addr: the address.
 *
 * This is a binary search, without system calls.
 *
 * Return: the mapping, as of procmap_snapshot_at(); NULL if there is none.
 */
const struct procmap_mapping *
procmap_snapshot_find(const struct procmap_snapshot *snapshot, uint64_t addr);

/**
 * procmap_snapshot_compare() - what has changed between two snapshots
 * @before: the earlier snapshot.
 * @after: the later one.
 * @changed: called for each difference, in rising order of the addresses: @was
 *	is NULL for a mapping that has appeared, @is for one that has vanished;
 *	with neither, the mapping at this start has changed in another field.
 *	A result other than 0 ends the comparison.
 * @context: passed to @changed.
 *
 * All fields are compared, except those that only one of the snapshots was taken
 * with.
 *
 * Return: 0, or the result of @changed; -EINVAL if a pointer is NULL.
 */
int procmap_snapshot_compare(const struct procmap_snapshot *before,
			     const struct procmap_snapshot *after,
			     int (*changed)(void *context,
					    const struct procmap_mapping *was,
					    const struct procmap_mapping *is),
			     void *context);

/**
 * procmap_snapshot_free() - free a snapshot
 * @snapshot: the snapshot, or NULL.
 */
void procmap_snapshot_free(struct procmap_snapshot *snapshot);

#ifdef __cplusplus
}
#endif

#endif /* PROCMAP_H */
