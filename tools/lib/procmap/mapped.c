// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Open the file that is mapped. It is the one that the kernel has mapped, not the one that
 * has its name now: what is opened is compared with the mapping.
 *
 * All paths in procfs begin at the directory of a process in it, since procfs may be
 * mounted elsewhere than at /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "internal.h"

/* Opening a device or a FIFO with O_PATH has no side effects. */
#define ONLY_PATH	(O_PATH | O_CLOEXEC)

/* Pages of a mapping that are compared with those of a file. */
#define COMPARED_PAGES	16

/* Entries of pagemap: Documentation/admin-guide/mm/pagemap.rst. */
#define PAGE_PRESENT	(UINT64_C(1) << 63)
#define PAGE_OF_FILE	(UINT64_C(1) << 61)
#define PAGE_FRAME	((UINT64_C(1) << 55) - 1)

/* How a file was opened, and so what is known of it. */
enum opened_by {
	BY_NAME,
	BY_MAP_FILES,
	BY_NUMBERS,	/* by name, and device and inode in maps suffice */
};

int open_own(int dir, const char *name, int flags)
{
	char path[sizeof("/proc/self/") + MAP_FILES_SIZE];
	int fd;

	snprintf(path, sizeof(path), "../self/%s", name);
	fd = openat(dir, path, flags | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/%s", name);
	return open(path, flags | O_CLOEXEC);
}

/* Read from a file, and close it. */
static bool read_from(int fd, uint64_t offset, void *to, size_t len)
{
	ssize_t got;

	if (fd < 0)
		return false;
	got = pread(fd, to, len, offset);
	close(fd);
	return got == (ssize_t)len;
}

/*
 * Return the page frame of an unchanged page of a file from the pagemap of a process, and
 * close that; 0 if there is none, or without permission.
 */
static uint64_t frame_at(int pagemap, uint64_t addr)
{
	const uint64_t nr = addr / sysconf(_SC_PAGESIZE);
	uint64_t entry;

	return read_from(pagemap, nr * sizeof(entry), &entry, sizeof(entry)) &&
	       entry & PAGE_PRESENT && entry & PAGE_OF_FILE ? entry & PAGE_FRAME : 0;
}

/*
 * Return whether a mapping of the process and one of ours, at @own, have a page in common:
 * then they map the same file. It takes CAP_SYS_ADMIN to see page frames.
 */
static bool has_common_page(int dir, const struct procmap_mapping *mapping, uint64_t own,
			    size_t len)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const int flags = O_RDONLY | O_CLOEXEC;
	uint64_t frame;
	size_t at;
	char byte;

	for (at = 0; at < len; at += page) {
		/* Bring the page into memory. Unlike an access, this raises no signal. */
		if (!read_from(open_own(dir, "mem", flags), own + at, &byte, 1))
			continue;
		frame = frame_at(open_own(dir, "pagemap", flags), own + at);
		if (frame &&
		    read_from(openat(dir, "mem", flags), mapping->start + at, &byte, 1) &&
		    frame_at(openat(dir, "pagemap", flags), mapping->start + at) == frame)
			return true;
	}
	return false;
}

/* Find a mapping of this process, as the maps file shows it. The caller closes @self. */
static int find_own(int dir, uint64_t addr, struct procmap **self,
		    struct procmap_mapping *own)
{
	const int own_dir = open_own(dir, "", ONLY_PATH | O_DIRECTORY);
	const int err = own_dir < 0 ? -errno :
			open_in(own_dir, PROCMAP_ANY_METHOD, 0, self);

	return err ? err : find_at(*self, addr, 0, own);
}

/*
 * Compare a mapping of this process, at @addr, with @mapping, as the maps file shows both:
 * on btrfs and overlayfs, stat(2) returns another device or inode. Returns 0 or -errno;
 * -ESTALE if they differ.
 */
static int compare_own(int dir, uint64_t addr, const struct procmap_mapping *mapping,
		       bool *has_name)
{
	struct procmap *self = NULL;
	struct procmap_mapping own;
	const int err = find_own(dir, addr, &self, &own);

	*has_name = !err && same_name(&own, mapping);
	procmap_close(self);
	return err || same_file(&own, mapping) ? err : -ESTALE;
}

int build_id_of(int fd, uint64_t begin, uint8_t id[PROCMAP_BUILD_ID_MAX])
{
	struct statfs fs;

	return fstatfs(fd, &fs) || fs.f_type == PROC_SUPER_MAGIC ||
	       fs.f_type == SYSFS_MAGIC ? 0 : read_build_id(fd, begin, id);
}

static bool has_id_of(int fd, const struct procmap_mapping *mapping)
{
	uint8_t id[PROCMAP_BUILD_ID_MAX];

	return build_id_of(fd, 0, id) == mapping->build_id_size &&
	       !memcmp(id, mapping->build_id, mapping->build_id_size);
}

const char *map_files_path(const struct procmap_mapping *mapping,
			   char path[MAP_FILES_SIZE])
{
	snprintf(path, MAP_FILES_SIZE, "map_files/%llx-%llx",
		 (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	return path;
}

/* Return whether a path is a name of maps, with \012 for newlines; both may be deleted. */
static bool is_name_of(const char *path, const char *name)
{
	for (; *path && *path == *name; path++, name++)
		;
	if (*path == '\n' && !strncmp(name, "\\012", 4))
		return is_name_of(path + 1, name + 4);
	return (!*path || !strcmp(path, " (deleted)")) &&
	       (!*name || !strcmp(name, " (deleted)"));
}

/*
 * Return whether a file of the same name is mapped there, and may be deleted. Anybody may
 * read the link.
 */
static bool is_still_there(int dir, const struct procmap_mapping *mapping,
			   bool may_be_deleted)
{
	char path[MAP_FILES_SIZE], link[PATH_MAX + sizeof(" (deleted)")];
	const ssize_t len = readlinkat(dir, map_files_path(mapping, path), link,
				       sizeof(link) - 1);

	if (len < 0)
		return false;
	link[len] = '\0';
	if (!may_be_deleted && strstr(link, " (deleted)"))
		return false;
	return mapping->name && is_name_of(link, mapping->name);
}

/* Ask the kernel for the build ID of a mapping that is not known to have one. */
static bool has_id_by_query(struct procmap *procmap, int fd,
			    const struct procmap_mapping *mapping)
{
	struct procmap_mapping asked = *mapping;

	return takes_kernel_ids(procmap) && !query_build_id(procmap, &asked) &&
	       asked.build_id_size > 0 && has_id_of(fd, &asked);
}

/*
 * Compare a file by mapping it, where stat(2) returns another device or inode than maps
 * shows, or where these two do not identify a file.
 *
 * On btrfs, files of two subvolumes have both in common in maps: so only map_files is known
 * to be the mapped file, if the name is still the same. On overlayfs, map_files leads to
 * the file that has the name now, which may have been copied up since. There, maps shows
 * device and inode of a layer, up to Linux 6.6, or those of the overlay, which stay the
 * same. The device of a layer is known by its major number, since that of an overlay, and
 * of btrfs, is 0.
 */
static int compare_by_mapping(struct procmap *procmap, int dir, int fd,
			      const struct procmap_mapping *mapping, bool is_overlay,
			      enum opened_by by)
{
	const uint64_t limit = COMPARED_PAGES * sysconf(_SC_PAGESIZE);
	const uint64_t size = mapping->end - mapping->start;
	const size_t len = size && size < limit ? size : limit;
	bool has_name = false, is_known;
	void *map;
	int err;

	map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, mapping->offset);
	if (map == MAP_FAILED)
		return -errno;
	err = compare_own(dir, (uintptr_t)map, mapping, &has_name);
	is_known = by == BY_NUMBERS ||
		   (is_overlay ? mapping->dev_major : by == BY_MAP_FILES && has_name);
	if (!err && !is_known && mapping->build_id_size <= 0 &&
	    !(procmap && has_name && is_still_there(dir, mapping, true) &&
	      (has_id_by_query(procmap, fd, mapping) ||
	       has_common_page(dir, mapping, (uintptr_t)map, len))))
		err = -ESTALE;
	munmap(map, len);
	return err;
}

static bool is_stat_of(const struct stat *stat, const struct procmap_mapping *mapping)
{
	return stat->st_ino == mapping->inode &&
	       major(stat->st_dev) == mapping->dev_major &&
	       minor(stat->st_dev) == mapping->dev_minor;
}

/*
 * Returns 0, or -ESTALE if it is another file, or is not known to be the mapped one. The
 * inode number may be that of another file by now, and an event may have reported the
 * build ID instead.
 */
static int check_file(struct procmap *procmap, int dir, int fd,
		      const struct procmap_mapping *mapping, enum opened_by by)
{
	bool is_overlay;
	struct stat stat;
	struct statfs fs;
	int err = 0;

	if (has_file(mapping)) {
		if (fstat(fd, &stat) || fstatfs(fd, &fs))
			return -errno;
		is_overlay = fs.f_type == OVERLAYFS_SUPER_MAGIC;
		if (!is_overlay && is_stat_of(&stat, mapping))
			err = 0;
		else if ((unsigned int)fs.f_type == HUGETLBFS_MAGIC)
			/* The kernel would map a huge page, which munmap(2) would not free. */
			err = -ESTALE;
		else
			err = compare_by_mapping(procmap, dir, fd, mapping, is_overlay, by);
	}
	if (!err && mapping->build_id_size > 0 && !has_id_of(fd, mapping))
		return -ESTALE;
	return err;
}

int identify(int dir, int fd, struct identity *identity)
{
	struct procmap *self = NULL;
	struct stat stat;
	struct statfs fs;
	void *page;
	int err;

	if (fstat(fd, &stat) || fstatfs(fd, &fs))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -ENODEV;
	if ((unsigned int)fs.f_type == HUGETLBFS_MAGIC) {
		/* The kernel would map a huge page. */
		identity->numbers = (struct procmap_mapping) {
			.inode = stat.st_ino,
			.dev_major = major(stat.st_dev), .dev_minor = minor(stat.st_dev),
		};
		identity->are_unique = true;
		return 0;
	}
	page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	err = find_own(dir, (uintptr_t)page, &self, &identity->numbers);
	identity->are_unique = fs.f_type != OVERLAYFS_SUPER_MAGIC &&
			       is_stat_of(&stat, &identity->numbers);
	procmap_close(self);
	munmap(page, 1);
	return err;
}

int is_mapping_of(struct procmap *procmap, const struct procmap_mapping *mapping, int fd,
		  const struct identity *identity)
{
	char path[MAP_FILES_SIZE];
	struct stat mapped, stat;
	int err;

	if (!same_file(mapping, &identity->numbers))
		return 0;
	if (identity->are_unique)
		return 1;
	if (!fstatat(procmap->dir, map_files_path(mapping, path), &mapped, 0) &&
	    !fstat(fd, &stat))
		return mapped.st_dev == stat.st_dev && mapped.st_ino == stat.st_ino;
	err = check_file(procmap, procmap->dir, fd, mapping, BY_NAME);
	if (err)
		return err == -ESTALE ? -EXDEV : err;
	return 1;
}

/* Open the file of an O_PATH descriptor for reading, if it is regular. */
static int open_regular(int dir, int path_fd)
{
	char name[sizeof("fd/") + 3 * sizeof(int)];
	struct stat stat;
	int fd;

	if (fstat(path_fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -ENODEV;
	snprintf(name, sizeof(name), "fd/%d", path_fd);
	/* Its owner may have a lease on it, for whose end open(2) would wait. */
	fd = open_own(dir, name, O_RDONLY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Open what @path_fd leads to, which is closed, or an error, if it is the mapped file. */
static int open_checked(struct procmap *procmap, int dir, int path_fd,
			const struct procmap_mapping *mapping, enum opened_by by)
{
	int fd, err;

	if (path_fd < 0)
		return path_fd;
	fd = open_regular(dir, path_fd);
	close(path_fd);
	if (fd < 0)
		return fd;
	err = check_file(procmap, dir, fd, mapping, by);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int open_by_map_files(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	char path[MAP_FILES_SIZE];
	const int path_fd = openat(procmap->dir, map_files_path(mapping, path), ONLY_PATH);

	return open_checked(procmap, procmap->dir, path_fd < 0 ? -errno : path_fd, mapping,
			    BY_MAP_FILES);
}

/* Return whether @part is mapped where @mapping was, of the same file by its fields. */
static bool is_part_of(const struct procmap_mapping *part,
		       const struct procmap_mapping *mapping)
{
	return (same_file(part, mapping) || !has_file(mapping)) &&
	       same_name(part, mapping) &&
	       part->offset - part->start == mapping->offset - mapping->start;
}

int dup_process(const struct procmap *procmap)
{
	const int dir = procmap->process < 0 ? procmap->dir : procmap->process;
	const int own = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	return own < 0 ? -errno : own;
}

/* Open another handle, for lookups: the caller may have a name that the first one keeps. */
static int open_again(const struct procmap *procmap, struct procmap **again)
{
	const int dir = dup_process(procmap);

	return dir < 0 ? dir : open_in(dir, PROCMAP_ANY_METHOD, procmap->flags, again);
}

/* Find the next part of a mapping that is still mapped behind @part. */
static bool find_part(struct procmap *again, const struct procmap_mapping *mapping,
		      struct procmap_mapping *part)
{
	while (part->end < mapping->end &&
	       !find_at(again, part->end, PROCMAP_COVERING_OR_NEXT, part) &&
	       part->start < mapping->end) {
		if (is_part_of(part, mapping))
			return true;
	}
	return false;
}

/*
 * The mapping was split, or has grown, since it was found, or the thread has exited by
 * which the process was opened: look for what is left of it.
 */
static int open_part(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	struct procmap_mapping part = { .end = mapping->start };
	struct procmap *again;
	int fd = -ENOENT;

	if (open_again(procmap, &again))
		return fd;
	while (fd < 0 && find_part(again, mapping, &part)) {
		memcpy(part.build_id, mapping->build_id, sizeof(part.build_id));
		part.build_id_size = mapping->build_id_size;
		fd = open_by_map_files(again, &part);
	}
	procmap_close(again);
	return fd;
}

/*
 * Return whether a part of the mapping is still there, after its file was opened by name. Once
 * it has gone, another file may have its inode number and its name. While both exist, their
 * numbers differ. A name that is not deleted is that of the file that was opened; otherwise,
 * compare the numbers.
 */
static bool is_mapped(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	struct procmap_mapping part = { .end = mapping->start };
	struct procmap *again;
	bool is_found;

	if (is_still_there(procmap->dir, mapping, false))
		return true;
	if (open_again(procmap, &again))
		return false;
	is_found = find_part(again, mapping, &part);
	procmap_close(again);
	return is_found;
}

static int open_map_file(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	const int fd = open_by_map_files(procmap, mapping);

	return fd == -ENOENT || fd == -ESRCH ? open_part(procmap, mapping) : fd;
}

/* Replace each \012 by a newline. Returns whether there was any. */
static bool unescape(char *path)
{
	const char *from = path;
	bool any = false;
	char *to = path;

	while (*from) {
		if (!strncmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 4;
			any = true;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return any;
}

/* As open_own(), without a file, of which there may be too many. */
static bool stat_own(int dir, const char *name, struct stat *stat)
{
	char path[sizeof("/proc/self/") + MAP_FILES_SIZE];

	snprintf(path, sizeof(path), "../self/%s", name);
	if (!fstatat(dir, path, stat, 0))
		return true;
	snprintf(path, sizeof(path), "/proc/self/%s", name);
	return errno == ENOENT && !fstatat(AT_FDCWD, path, stat, 0);
}

bool has_our_namespace(int dir, const char *name)
{
	struct stat theirs, ours;

	return !fstatat(dir, name, &theirs, 0) && stat_own(dir, name, &ours) &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/*
 * Names are looked up below the root of the process, and then below that of the reader: the
 * kernel shows a name relative to the reader's root if the file is below it, and the
 * process may be in a chroot. In another mount namespace, the reader's root has other
 * files. Returns the root to try after @root, which is NULL at first; NULL after the last.
 */
static const char *next_root(int dir, const char *root)
{
	if (!root)
		return "root";
	return *root && has_our_namespace(dir, "ns/mnt") ? "" : NULL;
}

/* Open a path below a root with O_PATH. @procmap is NULL if the process is gone. */
static int open_below(struct procmap *procmap, int dir, const char *root, const char *path,
		      bool may_ask)
{
	char *whole;
	int fd;

	if (!may_ask)
		return open_without_server(procmap, root, path);
	if (asprintf(&whole, "%s%s", root, path) < 0)
		return -ENOMEM;
	fd = openat(dir, whole, ONLY_PATH);
	fd = fd < 0 ? -errno : fd;
	free(whole);
	return fd;
}

/*
 * Open the file by its name below one of the roots. "\012" in the name may be these
 * four characters or an escaped newline, so try both.
 */
static int open_below_root(struct procmap *procmap, int dir, const char *root,
			   const struct procmap_mapping *mapping, enum opened_by by)
{
	const bool may_ask = !procmap || !(procmap->flags & PROCMAP_NO_SERVERS);
	char *const path = strdup(mapping->name);
	int fd = -ENOMEM;

	if (!path)
		return fd;
	do {
		fd = open_checked(procmap, dir,
				  open_below(procmap, dir, root, path, may_ask), mapping, by);
	} while (fd < 0 && unescape(path));
	free(path);
	return fd;
}

/* The error is that below the root of the process. */
static int open_by_name(struct procmap *procmap, const struct procmap_mapping *mapping,
			enum opened_by by)
{
	const char *root = NULL;
	int fd, err = 0;

	while ((root = next_root(procmap->dir, root))) {
		fd = open_below_root(procmap, procmap->dir, root, mapping, by);
		if (fd >= 0)
			return fd;
		if (!err)
			err = fd;
	}
	return err;
}

/* Return whether the mapping has a file with a path, by its fields. */
static bool may_have_file(const struct procmap_mapping *mapping)
{
	return (has_file(mapping) || mapping->build_id_size > 0) && mapping->name &&
	       *mapping->name == '/';
}

int open_mapped(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	int fd;

	if (procmap->dir < 0 || !may_have_file(mapping))
		return -ENODEV;
	fd = may_read_file(procmap, mapping);
	if (fd)
		return fd;
	fd = open_map_file(procmap, mapping);
	if (fd >= 0 || fd == -ENODEV)
		return fd;
	fd = open_by_name(procmap, mapping, BY_NAME);
	if (fd < 0 || mapping->build_id_size > 0 || is_mapped(procmap, mapping))
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_linked_path(int dir, const char *path)
{
	struct open_how how = {
		.flags = ONLY_PATH,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	const int root = openat(dir, "root", ONLY_PATH | O_DIRECTORY);
	int fd;

	if (root < 0)
		return -errno;
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	fd = fd < 0 ? -errno : fd;
	close(root);
	return fd;
}

int open_in_root(struct procmap *procmap, const char *path)
{
	int path_fd, fd;

	if (procmap->dir < 0)
		return -ENODEV;
	path_fd = procmap->flags & PROCMAP_NO_SERVERS ?
		  open_without_server(procmap, "root", path) :
		  open_linked_path(procmap->dir, path);
	if (path_fd < 0)
		return path_fd;
	fd = open_regular(procmap->dir, path_fd);
	close(path_fd);
	return fd;
}

int open_elsewhere(int dir, const struct procmap_mapping *mapping, const char *root)
{
	return may_have_file(mapping) ?
	       open_below_root(NULL, dir, root, mapping, BY_NAME) : -ENODEV;
}

/* A file in memory may be a large hole, which has no header. */
static bool begins_with_hole(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC && lseek(fd, 0, SEEK_DATA);
}

static void read_build_id_of_file(struct procmap *procmap, struct procmap_mapping *mapping)
{
	const int fd = open_mapped(procmap, mapping);

	if (fd == -ENODEV && procmap->dir >= 0) {
		mapping->build_id_size = 0;	/* not a regular file */
	} else if (fd < 0) {
		mapping->build_id_size = fd;
	} else {
		mapping->build_id_size = begins_with_hole(fd) ? 0 :
					 build_id_of(fd, 0, mapping->build_id);
		close(fd);
	}
}

/*
 * All programs of 64 bits have one vdso, and addresses of 32 bits are not theirs. The memory of
 * another process is not read for it: a file may be mapped there by now whose server is dead.
 */
static void read_build_id_of_vdso(struct procmap *procmap, struct procmap_mapping *mapping)
{
	const uint64_t own = getauxval(AT_SYSINFO_EHDR);
	const bool is_own = own > UINT32_MAX && mapping->start > UINT32_MAX;
	int fd;

	if (procmap->dir < 0)
		mapping->build_id_size = -ENODEV;
	else if (!is_own && procmap->flags & PROCMAP_NO_SERVERS)
		mapping->build_id_size = -EREMOTE;
	if (mapping->build_id_size)
		return;
	fd = is_own ? open_own(procmap->dir, "mem", O_RDONLY) :
		      openat(procmap->dir, "mem", O_RDONLY | O_CLOEXEC);
	mapping->build_id_size = fd < 0 ? -errno :
				 read_build_id(fd, is_own ? own : mapping->start,
					       mapping->build_id);
	if (fd >= 0)
		close(fd);
}

void find_build_id(struct procmap *procmap, struct procmap_mapping *mapping)
{
	mapping->build_id_size = 0;
	if (!has_file(mapping)) {
		if (!strcmp(mapping->name, "[vdso]"))
			read_build_id_of_vdso(procmap, mapping);
		return;
	}
	/*
	 * Mainline reads whatever is mapped: it waits for a packet socket, and takes bytes
	 * from a TCP socket. Their names have no slash.
	 */
	if (*mapping->name != '/')
		return;
	/* If a query does not return it, the mapping is another one by now. */
	if (!takes_kernel_ids(procmap) || query_build_id(procmap, mapping)) {
		read_build_id_of_file(procmap, mapping);
	} else if (!mapping->build_id_size && !procmap->is_bounded) {
		/* Mainline looks at no section header, and at 256 program headers. */
		read_build_id_of_file(procmap, mapping);
	}
}

/* NFS and FUSE rename a file that is deleted while it is in use. */
static bool is_renamed_by_server(const struct procmap_mapping *mapping)
{
	static const char *const prefixes[] = { ".nfs", ".fuse_hidden" };
	static const size_t digits[] = { 24, 16 };
	const char *const slash = strrchr(mapping->name, '/');
	size_t i;

	for (i = 0; i < sizeof(digits) / sizeof(*digits); i++) {
		const size_t len = strlen(prefixes[i]);

		if (!strncmp(slash + 1, prefixes[i], len) &&
		    strspn(slash + 1 + len, "0123456789abcdef") == digits[i])
			return true;
	}
	return false;
}

/*
 * The kernel appends a suffix to the path of a file that was deleted. If it is a limit of the
 * caller's for which the path was not looked up, return that error instead.
 */
static int judge_by_name(const struct procmap_mapping *mapping, int err)
{
	if (is_limit_of_caller(err))
		return err;
	return PROCMAP_UNVERIFIED | (mapping->name_len != name_len_of_file(mapping) ?
				     PROCMAP_DELETED : 0);
}

/* Larger files are not compared. */
#define COMPARED_BYTES	(UINT64_C(256) << 20)

/* Returns 1 if two files have the same bytes, 0 if not, or -errno. */
static int compare_bytes(int a, int b)
{
	char bytes[2][16384];
	struct stat stats[2];
	uint64_t pos;
	ssize_t len;

	if (fstat(a, &stats[0]) || fstat(b, &stats[1]))
		return -errno;
	if (stats[0].st_size != stats[1].st_size)
		return 0;
	for (pos = 0; pos < COMPARED_BYTES; pos += len) {
		len = pread(a, bytes[0], sizeof(bytes[0]), pos);
		if (len < 0 || pread(b, bytes[1], sizeof(bytes[1]), pos) != len)
			return -EIO;
		if (memcmp(bytes[0], bytes[1], len))
			return 0;
		if (!len)
			return 1;
	}
	return -EFBIG;
}

/* The same by their build IDs, if they have some. */
static int compare_contents(int a, int b)
{
	uint8_t ids[2][PROCMAP_BUILD_ID_MAX];
	const int sizes[] = { build_id_of(a, 0, ids[0]), build_id_of(b, 0, ids[1]) };

	return sizes[0] > 0 && sizes[1] > 0 ?
	       sizes[0] == sizes[1] && !memcmp(ids[0], ids[1], sizes[0]) :
	       compare_bytes(a, b);
}

static bool is_on_overlay(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/*
 * An overlay has other numbers than its layers, and may have been mounted over one of them
 * with the same files, as systemd-sysext does. Their contents decide.
 */
static int compare_with_overlay(struct procmap *procmap, int mapped, int path_fd,
				const struct procmap_mapping *mapping)
{
	const int dir = procmap->dir;
	const int a = open_regular(dir, mapped), b = open_regular(dir, path_fd);
	const int same = a < 0 ? a : b < 0 ? b : compare_contents(a, b);

	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	if (same < 0)
		return judge_by_name(mapping, same);
	return same ? 0 : PROCMAP_DELETED | PROCMAP_REPLACED;
}

/*
 * Without permission for map_files, files are compared as they are when they are opened. One
 * without a major number may be on an overlay.
 */
static int compare_by_numbers(struct procmap *procmap, int path_fd,
			      const struct procmap_mapping *mapping)
{
	struct procmap_mapping without_id = *mapping;
	int fd, by_name;
	bool is_other;

	if (is_on_overlay(path_fd))
		return judge_by_name(mapping, 0);
	/* The answer is the same if the caller wants the build ID. */
	without_id.build_id_size = 0;
	fd = open_checked(procmap, procmap->dir, fcntl(path_fd, F_DUPFD_CLOEXEC, 0),
			  &without_id, BY_NUMBERS);
	if (fd >= 0) {
		/* On btrfs, a file of another subvolume may have these numbers. */
		is_other = takes_kernel_ids(procmap) && !query_build_id(procmap, &without_id) &&
			   without_id.build_id_size > 0 && !has_id_of(fd, &without_id);
		close(fd);
		return is_other ? PROCMAP_DELETED | PROCMAP_REPLACED : 0;
	}
	by_name = judge_by_name(mapping, fd);
	return (fd == -ESTALE || fd == -ENODEV) &&
	       (mapping->dev_major || by_name & PROCMAP_DELETED) ?
	       PROCMAP_DELETED | PROCMAP_REPLACED : by_name;
}

/* Compare the file at the path of a mapping with the mapped one. */
static int compare_at_path(struct procmap *procmap, int path_fd,
			   const struct procmap_mapping *mapping)
{
	char path[MAP_FILES_SIZE];
	struct stat found, file;
	int mapped, flags;

	if (fstat(path_fd, &found))
		return judge_by_name(mapping, -errno);
	if (is_stat_of(&found, mapping))
		return 0;
	mapped = openat(procmap->dir, map_files_path(mapping, path), ONLY_PATH);
	if (mapped < 0)
		return compare_by_numbers(procmap, path_fd, mapping);
	if (fstat(mapped, &file))
		flags = judge_by_name(mapping, -errno);
	else if (file.st_dev == found.st_dev && file.st_ino == found.st_ino)
		flags = 0;
	else if (file.st_dev != found.st_dev &&
		 (is_on_overlay(path_fd) || is_on_overlay(mapped)))
		flags = compare_with_overlay(procmap, mapped, path_fd, mapping);
	else
		flags = PROCMAP_DELETED | PROCMAP_REPLACED;
	close(mapped);
	return flags;
}

/* Look at @path, literally and with newlines for \012, below both roots. */
static int look_at_path(struct procmap *procmap, char *path,
			const struct procmap_mapping *mapping)
{
	const bool may_ask = procmap->flags & PROCMAP_ALL_SERVERS;
	int flags = PROCMAP_DELETED, at_path, fd;
	const char *root = NULL;

	do {
		while ((root = next_root(procmap->dir, root))) {
			fd = open_below(procmap, procmap->dir, root, path, may_ask);
			if (fd == -ENOENT || fd == -ENOTDIR)
				continue;
			at_path = fd < 0 ? judge_by_name(mapping, fd) :
				  compare_at_path(procmap, fd, mapping);
			if (fd >= 0)
				close(fd);
			if (at_path <= 0)
				return at_path;
			flags = flags & PROCMAP_UNVERIFIED ? flags : at_path;
		}
	} while (unescape(path));
	return flags;
}

/* A name may end in the suffix itself. */
static int look_at_name(struct procmap *procmap, char *path,
			const struct procmap_mapping *mapping)
{
	const size_t len = name_len_of_file(mapping);
	const int flags = look_at_path(procmap, path, mapping);

	if (flags <= 0 || len == mapping->name_len)
		return flags;
	snprintf(path, len + 1, "%s", mapping->name);
	return look_at_path(procmap, path, mapping);
}

/*
 * A name with \012, which may be a newline or not, leads to the file if one of the two does.
 */
int look_for_file(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	enum mount_kind kind;
	char *path, byte;
	int flags;

	if (!may_have_file(mapping))
		return 0;
	if (is_renamed_by_server(mapping))
		return PROCMAP_DELETED | PROCMAP_UNVERIFIED;
	/* The main thread, whose directory it may be, may have exited. */
	if (procmap->dir < 0 || readlinkat(procmap->dir, "root", &byte, 1) < 0)
		return judge_by_name(mapping, 0);
	flags = procmap->flags & PROCMAP_ALL_SERVERS ? 0 : mount_of(procmap, mapping, &kind);
	if (flags || (!(procmap->flags & PROCMAP_ALL_SERVERS) && kind != MOUNT_LOCAL))
		return judge_by_name(mapping, flags);
	path = strdup(mapping->name);
	if (!path)
		return -ENOMEM;
	flags = look_at_name(procmap, path, mapping);
	free(path);
	return flags == PROCMAP_DELETED && strstr(mapping->name, "\\012") ?
	       judge_by_name(mapping, 0) : flags;
}
