// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The mounts of a process, and paths that lead through none which a server answers for. A
 * server of FUSE or of a network may be dead, and a lookup would wait for it; mountinfo
 * asks no server.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "internal.h"

/* As the kernel's limit. */
#define LINKS_MAX	40

/* More directories than paths of real files have. */
#define DEPTH_MAX	128

/**
 * struct mount - a mount
 * @id: its ID in mountinfo and fdinfo.
 * @dev_major: the device of its files.
 * @dev_minor: the same.
 * @point: where it is mounted, below the root of the process. Owned.
 * @is_served: a server answers for it, or that is not known.
 */
struct mount {
	int id;
	unsigned int dev_major;
	unsigned int dev_minor;
	char *point;
	bool is_served;
};

/*
 * Return whether a file system is local by its type. One on a block device is, but for
 * FUSE's. Who mounted an overlay in another user namespace may have chosen layers on FUSE.
 */
static bool is_local_type(const char *type, unsigned int dev_major, bool has_our_users)
{
	static const char *const local[] = {
		"bcachefs", "btrfs", "devtmpfs", "hugetlbfs", "proc", "ramfs", "rootfs",
		"sysfs", "tmpfs", "ubifs", "virtiofs", "zfs",
	};
	size_t i;

	if (dev_major)
		return strcmp(type, "fuseblk");
	if (!strcmp(type, "overlay"))
		return has_our_users;
	for (i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (!strcmp(type, local[i]))
			return true;
	return false;
}

/* Replace each \ooo, as in mountinfo, by its byte. */
static void unescape_octal(char *path)
{
	const char *from = path;
	unsigned int byte;

	while (*from) {
		if (sscanf(from, "\\%3o", &byte) == 1) {
			*path++ = byte;
			from += 4;
		} else {
			*path++ = *from++;
		}
	}
	*path = '\0';
}

/* The fields of mountinfo are in proc_pid_mountinfo(5). */
static bool parse_mount(char *line, bool has_our_users, struct mount *mount)
{
	char *point, *rest, *type;
	int at = 0;

	if (sscanf(line, "%d %*d %u:%u %*s %n", &mount->id, &mount->dev_major,
		   &mount->dev_minor, &at) != 3 || !at)
		return false;
	rest = line + at;
	point = strsep(&rest, " ");
	type = rest ? strstr(rest, " - ") : NULL;
	if (!type)
		return false;
	rest = type + strlen(" - ");
	type = strsep(&rest, " ");
	unescape_octal(point);
	mount->is_served = !is_local_type(type, mount->dev_major, has_our_users);
	mount->point = strdup(point);
	return mount->point;
}

static bool add_mount(struct mounts *mounts, const struct mount *mount)
{
	struct mount *all;

	/* The number is a power of two, or there is room for one more. */
	if (!(mounts->nr & (mounts->nr - 1))) {
		all = realloc(mounts->all, (mounts->nr ? mounts->nr * 2 : 1) * sizeof(*all));
		if (!all)
			return false;
		mounts->all = all;
	}
	mounts->all[mounts->nr++] = *mount;
	return true;
}

void free_mounts(struct mounts *mounts)
{
	while (mounts->nr)
		free(mounts->all[--mounts->nr].point);
	free(mounts->all);
	if (mounts->file)
		fclose(mounts->file);
	*mounts = (struct mounts) { .nr = 0 };
}

/* A mount that cannot be read is not known, and so is taken for one with a server. */
static void read_mounts(struct mounts *mounts, int fd, bool has_our_users)
{
	struct mount mount;
	char *line = NULL;
	size_t size = 0;

	free_mounts(mounts);
	mounts->file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!mounts->file && fd >= 0)
		close(fd);
	while (mounts->file && getline(&line, &size, mounts->file) > 0) {
		if (!parse_mount(line, has_our_users, &mount))
			continue;
		if (!add_mount(mounts, &mount)) {
			free(mount.point);
			break;
		}
	}
	free(line);
}

/* The kernel says so on the open file, once. */
static bool have_changed(const struct mounts *mounts)
{
	struct pollfd fd = { .events = POLLPRI };

	if (!mounts->file)
		return true;
	fd.fd = fileno(mounts->file);
	return poll(&fd, 1, 0) == 1;
}

static const struct mounts *mounts_of_process(struct procmap *procmap)
{
	struct mounts *const mounts = &procmap->mounts[0];

	if (have_changed(mounts))
		read_mounts(mounts, openat(procmap->dir, "mountinfo", O_RDONLY | O_CLOEXEC),
			    has_our_namespace(procmap->dir, "ns/user"));
	return mounts;
}

/* The process may be in a chroot, or have a file from elsewhere. */
static const struct mounts *our_mounts(struct procmap *procmap)
{
	struct mounts *const mounts = &procmap->mounts[1];

	if (have_changed(mounts))
		read_mounts(mounts, open_own(procmap->dir, "mountinfo", O_RDONLY), true);
	return mounts;
}

/* The answer for the last one that @is_it finds. */
static enum mount_kind find_mount(const struct mounts *mounts,
				  bool (*is_it)(const struct mount *mount, const void *what),
				  const void *what)
{
	size_t i;

	for (i = mounts->nr; i--;)
		if (is_it(&mounts->all[i], what))
			return mounts->all[i].is_served ? MOUNT_SERVED : MOUNT_LOCAL;
	return MOUNT_UNKNOWN;
}

static bool has_device(const struct mount *mount, const void *mapping)
{
	const struct procmap_mapping *const file = mapping;

	return mount->dev_major == file->dev_major && mount->dev_minor == file->dev_minor;
}

static bool has_id(const struct mount *mount, const void *id)
{
	return mount->id == *(const int *)id;
}

static bool is_at(const struct mount *mount, const void *path)
{
	return !strcmp(mount->point, path);
}

enum mount_kind mount_of(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	const enum mount_kind kind = find_mount(mounts_of_process(procmap), has_device, mapping);

	return kind != MOUNT_UNKNOWN ? kind :
	       find_mount(our_mounts(procmap), has_device, mapping);
}

/* Return whether the mapping is of the kernel's own mount of tmpfs. */
static bool is_shared_memory(const struct procmap_mapping *mapping)
{
	const int fd = memfd_create("", MFD_CLOEXEC);
	struct stat stat;
	bool is_same;

	is_same = fd >= 0 && !fstat(fd, &stat) &&
		  major(stat.st_dev) == mapping->dev_major &&
		  minor(stat.st_dev) == mapping->dev_minor;
	if (fd >= 0)
		close(fd);
	return is_same;
}

bool can_be_read(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	if (!(procmap->flags & PROCMAP_NO_SERVERS))
		return true;
	switch (mount_of(procmap, mapping)) {
	case MOUNT_LOCAL:
		return true;
	case MOUNT_SERVED:
		return false;
	default:
		/* FUSE and networks have no device of their own. */
		return mapping->dev_major || is_shared_memory(mapping);
	}
}

/**
 * struct walk - a walk along a path
 * @procmap: the handle.
 * @mounts: the mounts below the root where it began.
 * @dirs: the directories on the way, from the root on. Owned.
 * @depth: the number of these, without the root.
 * @path: the path of the last one, without links.
 * @rest: the path from there on.
 * @links: the links that were followed.
 */
struct walk {
	struct procmap *procmap;
	const struct mounts *mounts;
	int dirs[DEPTH_MAX];
	size_t depth;
	char path[PATH_MAX];
	char rest[PATH_MAX];
	unsigned int links;
};

/* A mount that was made since is not in the table. */
static bool is_on_local_mount(const struct walk *walk, int fd)
{
	char path[sizeof("fdinfo/") + 3 * sizeof(int)];
	int own, id;

	snprintf(path, sizeof(path), "fdinfo/%d", fd);
	own = open_own(walk->procmap->dir, path, O_RDONLY);
	return !read_number(own, "\nmnt_id:\t", &id) &&
	       find_mount(walk->mounts, has_id, &id) == MOUNT_LOCAL;
}

static int open_resolved(int dir, const char *path, int flags, uint64_t resolve)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_NO_MAGICLINKS | resolve,
	};
	const int fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/*
 * Open @name in the last directory, whose path is in @walk->path already. It may be the
 * root of a mount, which is looked up there before it is entered: a server of NFS is asked
 * about it.
 */
static int open_component(const struct walk *walk, const char *name)
{
	const int dir = walk->dirs[walk->depth];
	int fd;

	fd = open_resolved(dir, name, O_NOFOLLOW, RESOLVE_NO_XDEV);
	if (fd != -EXDEV)
		return fd;
	if (find_mount(walk->mounts, is_at, walk->path) != MOUNT_LOCAL)
		return -EREMOTE;
	fd = open_resolved(dir, name, O_NOFOLLOW, 0);
	if (fd < 0 || is_on_local_mount(walk, fd))
		return fd;
	close(fd);
	return -EREMOTE;
}

/* Leave the last directory. */
static void go_up(struct walk *walk)
{
	if (walk->depth) {
		close(walk->dirs[walk->depth--]);
		*strrchr(walk->path, '/') = '\0';
	}
}

/* Go on with what the link says. Returns 0 or -errno. */
static int follow(struct walk *walk, int link)
{
	char target[PATH_MAX];
	const ssize_t len = readlinkat(link, "", target, sizeof(target) - 1);
	const size_t rest = strlen(walk->rest);

	if (len < 0)
		return -errno;
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if (len + 1 + rest >= sizeof(walk->rest))
		return -ENAMETOOLONG;
	memmove(walk->rest + len + 1, walk->rest, rest + 1);
	memcpy(walk->rest, target, len);
	walk->rest[len] = '/';
	while (*target == '/' && walk->depth)
		go_up(walk);
	return 0;
}

/* Take the next component from the rest; it is empty at the end. */
static void take_component(struct walk *walk, char name[NAME_MAX + 2])
{
	const char *const from = walk->rest + strspn(walk->rest, "/");
	const size_t len = strcspn(from, "/");

	snprintf(name, NAME_MAX + 2, "%.*s", (int)len, from);
	memmove(walk->rest, from + len, strlen(from + len) + 1);
}

/* Go to a component that is no link, or to where a link leads. Returns 0 or -errno. */
static int go_to(struct walk *walk, const char *name)
{
	const size_t len = strlen(walk->path);
	struct stat stat;
	int fd, err = 0;

	if (walk->depth + 1 == DEPTH_MAX ||
	    snprintf(walk->path + len, sizeof(walk->path) - len, "/%s", name) >=
	    (int)(sizeof(walk->path) - len))
		return -ENAMETOOLONG;
	fd = open_component(walk, name);
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat)) {
		err = -errno;
	} else if (S_ISLNK(stat.st_mode)) {
		walk->path[len] = '\0';
		err = follow(walk, fd);
	} else {
		walk->dirs[++walk->depth] = fd;
		return 0;
	}
	close(fd);
	return err;
}

/* Return whether the root, which was opened, may be entered. */
static int begin_walk(struct walk *walk, const char *root)
{
	/* The root of the process, or that of the reader. */
	walk->mounts = *root ? mounts_of_process(walk->procmap) : our_mounts(walk->procmap);
	walk->dirs[0] = *root ? openat(walk->procmap->dir, root, O_PATH | O_CLOEXEC) :
				open("/", O_PATH | O_CLOEXEC);
	if (walk->dirs[0] < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (is_on_local_mount(walk, walk->dirs[0]))
		return 0;
	/* In a chroot, the mount of the root is none that the process sees. */
	walk->mounts = our_mounts(walk->procmap);
	return is_on_local_mount(walk, walk->dirs[0]) ? 0 : -EREMOTE;
}

static int walk_path(struct walk *walk)
{
	char name[NAME_MAX + 2];
	int err = 0;

	while (!err) {
		take_component(walk, name);
		if (!*name)
			return fcntl(walk->dirs[walk->depth], F_DUPFD_CLOEXEC, 0);
		if (!strcmp(name, ".."))
			go_up(walk);
		else if (strcmp(name, "."))
			err = go_to(walk, name);
	}
	return err;
}

int open_without_server(struct procmap *procmap, const char *root, const char *path)
{
	struct walk walk = { .procmap = procmap };
	int fd;

	if (snprintf(walk.rest, sizeof(walk.rest), "%s", path) >= (int)sizeof(walk.rest))
		return -ENAMETOOLONG;
	fd = begin_walk(&walk, root);
	/* What is in the cache of names needs no server; Linux 5.12 and later. */
	if (!fd && find_mount(walk.mounts, is_at, path) != MOUNT_SERVED) {
		fd = open_resolved(walk.dirs[0], path, 0, RESOLVE_IN_ROOT | RESOLVE_CACHED);
		if (fd >= 0 && !is_on_local_mount(&walk, fd)) {
			close(fd);
			fd = -EREMOTE;
		}
	}
	if (fd == -EAGAIN || fd == -EINVAL)
		fd = walk_path(&walk);
	while (walk.depth)
		go_up(&walk);
	if (walk.dirs[0] >= 0)
		close(walk.dirs[0]);
	return fd;
}
