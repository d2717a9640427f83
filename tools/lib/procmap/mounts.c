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

/* The tables of a handle. */
enum { OF_PROCESS, OURS };

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
 * @layers: the options of an overlay, which name its layers; or NULL. Owned.
 * @is_served: a server answers for it, or that is not known.
 */
struct mount {
	int id;
	unsigned int dev_major;
	unsigned int dev_minor;
	char *point;
	char *layers;
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

	while (*from) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*path++ = (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0');
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
	mount->layers = !strcmp(type, "overlay") && rest ? strdup(rest) : NULL;
	return true;
}

/* Return whether a layer of an overlay is at or below a path. */
static bool has_layer_at(const char *layers, const char *path)
{
	const size_t len = strlen(path);
	const char *at = layers;

	while ((at = strstr(at, path))) {
		if (at > layers && strchr("=:", at[-1]) && strchr("/:,\n", at[len]))
			return true;
		at++;
	}
	return false;
}

/* Who asks an overlay about a file of a layer asks that: it is served if one is. */
static void mark_overlays(struct mounts *mounts)
{
	size_t i, k;

	for (i = 0; i < mounts->nr; i++)
		for (k = 0; k < mounts->nr && mounts->all[i].layers; k++)
			if (mounts->all[k].is_served &&
			    has_layer_at(mounts->all[i].layers, mounts->all[k].point))
				mounts->all[i].is_served = true;
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
	while (mounts->nr) {
		free(mounts->all[--mounts->nr].layers);
		free(mounts->all[mounts->nr].point);
	}
	free(mounts->all);
	if (mounts->file)
		fclose(mounts->file);
	*mounts = (struct mounts) { .nr = 0 };
}

/* Returns 0 or -errno. */
static int read_mounts(struct mounts *mounts, int fd, bool has_our_users)
{
	struct mount mount;
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	free_mounts(mounts);
	mounts->file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!mounts->file) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && getline(&line, &size, mounts->file) > 0) {
		if (!parse_mount(line, has_our_users, &mount))
			continue;
		if (!mount.point || !add_mount(mounts, &mount)) {
			free(mount.layers);
			free(mount.point);
			err = -ENOMEM;
		}
	}
	free(line);
	mark_overlays(mounts);
	if (err)
		free_mounts(mounts);
	return err;
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

static int read_mounts_of_process(struct procmap *procmap)
{
	struct mounts *const mounts = &procmap->mounts[OF_PROCESS];

	return !have_changed(mounts) ? 0 :
	       read_mounts(mounts, openat(procmap->dir, "mountinfo", O_RDONLY | O_CLOEXEC),
			   has_our_namespace(procmap->dir, "ns/user"));
}

static int read_our_mounts(struct procmap *procmap)
{
	struct mounts *const mounts = &procmap->mounts[OURS];

	return !have_changed(mounts) ? 0 :
	       read_mounts(mounts, open_own(procmap->dir, "mountinfo", O_RDONLY), true);
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

/*
 * Look for a mount of the process, and then of the reader: the process may be in a chroot, or
 * have a file from elsewhere. Returns 0 or -errno.
 */
static int find_in_both(struct procmap *procmap,
			bool (*is_it)(const struct mount *mount, const void *what),
			const void *what, enum mount_kind *kind)
{
	int err;

	err = read_mounts_of_process(procmap);
	*kind = find_mount(&procmap->mounts[OF_PROCESS], is_it, what);
	if (*kind != MOUNT_UNKNOWN)
		return 0;
	/* Those of a process that has ended cannot be read. */
	if (is_limit_of_caller(err))
		return err;
	err = read_our_mounts(procmap);
	*kind = find_mount(&procmap->mounts[OURS], is_it, what);
	return err;
}

/**
 * struct walk - a walk along a path
 * @procmap: the handle.
 * @mounts: the mounts by their paths below the root where it began.
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

/* Returns 0, -EREMOTE, also for a mount that was made since it was read, or -errno. */
static int check_mount(struct procmap *procmap, int fd)
{
	char path[sizeof("fdinfo/") + 3 * sizeof(int)];
	enum mount_kind kind;
	int id, err;

	snprintf(path, sizeof(path), "fdinfo/%d", fd);
	err = read_number(open_own(procmap->dir, path, O_RDONLY), "\nmnt_id:\t", &id);
	if (err)
		return err;
	err = find_in_both(procmap, has_id, &id, &kind);
	if (err)
		return err;
	return kind == MOUNT_LOCAL ? 0 : -EREMOTE;
}

/* Close what was opened unless it is on a local mount. */
static int keep_if_local(struct procmap *procmap, int fd)
{
	const int err = fd < 0 ? fd : check_mount(procmap, fd);

	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Up to Linux 6.6, maps has the device of an overlay's layer: look at the mount instead. */
int mount_of(struct procmap *procmap, const struct procmap_mapping *mapping,
	     enum mount_kind *kind)
{
	char path[MAP_FILES_SIZE];
	int fd, err;

	err = find_in_both(procmap, has_device, mapping, kind);
	if (err || *kind != MOUNT_UNKNOWN)
		return err;
	fd = openat(procmap->dir, map_files_path(mapping, path), O_PATH | O_CLOEXEC);
	err = fd < 0 ? -errno : check_mount(procmap, fd);
	if (fd >= 0)
		close(fd);
	if (!err)
		*kind = MOUNT_LOCAL;
	return is_limit_of_caller(err) ? err : 0;
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

int may_read_file(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	enum mount_kind kind;
	int err;

	if (!(procmap->flags & PROCMAP_NO_SERVERS))
		return 0;
	err = mount_of(procmap, mapping, &kind);
	if (err)
		return err;
	if (kind == MOUNT_UNKNOWN && is_shared_memory(mapping))
		kind = MOUNT_LOCAL;
	return kind == MOUNT_LOCAL ? 0 : -EREMOTE;
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

/* Before Linux 5.6, by some seccomp filters, and under valgrind, there is no openat2(2). */
static bool is_refused(int err)
{
	return err == -ENOSYS || err == -EPERM;
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
	if (is_refused(fd)) {
		if (find_mount(walk->mounts, is_at, walk->path) == MOUNT_SERVED)
			return -EREMOTE;
		fd = openat(dir, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
		return keep_if_local(walk->procmap, fd < 0 ? -errno : fd);
	}
	if (fd != -EXDEV)
		return fd;
	if (find_mount(walk->mounts, is_at, walk->path) != MOUNT_LOCAL)
		return -EREMOTE;
	return keep_if_local(walk->procmap, open_resolved(dir, name, O_NOFOLLOW, 0));
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

/* The names below a root are those of its mounts, but in a chroot, where none is known. */
static int enter_root(struct walk *walk, const char *root)
{
	struct procmap *const procmap = walk->procmap;
	const int err = *root ? read_mounts_of_process(procmap) : read_our_mounts(procmap);

	walk->mounts = &procmap->mounts[*root ? OF_PROCESS : OURS];
	return err ? err : check_mount(procmap, walk->dirs[0]);
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
	walk.dirs[0] = *root ? openat(procmap->dir, root, O_PATH | O_CLOEXEC) :
			       open("/", O_PATH | O_CLOEXEC);
	if (walk.dirs[0] < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	/* What is in the cache of names needs no server; Linux 5.12 and later. */
	fd = open_resolved(walk.dirs[0], path, 0, RESOLVE_IN_ROOT | RESOLVE_CACHED);
	fd = keep_if_local(procmap, fd);
	if (fd == -EAGAIN || fd == -EINVAL || is_refused(fd)) {
		fd = enter_root(&walk, root);
		if (!fd)
			fd = walk_path(&walk);
	}
	while (walk.depth)
		go_up(&walk);
	close(walk.dirs[0]);
	return fd;
}
