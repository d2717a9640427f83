/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: files whose device and inode are no identity, and procfs that is
 * mounted elsewhere. All is mounted for this process alone.
 */
#include <sys/socket.h>
#include <netinet/in.h>

/* Give the directory of the fixture a file system of its own, and go there. */
static bool mount_tmpfs(const char *dir)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", "", MS_REC | MS_PRIVATE, "") &&
	       !mount("none", dir, "tmpfs", 0, "mode=755") && !chdir(dir);
}

/* Write an ELF file, below the directory of the fixture. */
static bool write_object(const char *path, const uint8_t id[20])
{
	const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	const bool is_written = fd >= 0 && write_elf(fd, id) && !ftruncate(fd, 4 * PAGE);

	close(fd);
	return is_written;
}

static bool mount_image(const char *type, const char *size, const char *dir)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "truncate -s %s image && mkfs.%s -q image >/dev/null && mkdir %s", size, type,
		 dir);
	if (system(command))
		return false;
	snprintf(command, sizeof(command), "mount -o loop image %s", dir);
	return !system(command);
}

static void *map_path(const char *path, int nr_pages)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *const map = mmap(NULL, nr_pages * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	return map;
}

/*
 * Compare the answers on the mapping at @map of a file that had @id when it was mapped, and
 * is @file, or has changed since (NULL): found, found in a walk, opened after a lookup
 * with and without the build ID, and not deleted, unless it has changed. Returns the number
 * of those that are wrong; the errors among the answers are counted.
 */
static int count_wrong(struct procmap *procmap, const void *map, const uint8_t id[20],
		       const struct stat *file, int *errors)
{
	const struct procmap_mapping *found;
	struct stat opened;
	uint8_t got[20];
	int wrong = 0, size, i;

	size = walk_to_build_id(procmap, map, got);
	*errors = size < 0;
	wrong += size >= 0 && (size != 20 || memcmp(got, id, 20));
	for (i = 0; i < 2; i++) {
		if (procmap_find(procmap, (uintptr_t)map,
				 i ? PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_DELETED : 0,
				 &found))
			return 99;
		wrong += file && found->flags & PROCMAP_DELETED;
		*errors += found->build_id_size < 0;
		wrong += found->build_id_size > 0 && memcmp(found->build_id, id, 20);
		size = open_file(procmap, found);
		*errors += size < 0;
		if (size < 0)
			continue;
		wrong += !file || fstat(size, &opened) || opened.st_dev != file->st_dev ||
			 opened.st_ino != file->st_ino;
		close(size);
	}
	return wrong;
}

/* The same without capabilities. Returns 16 times that number, and the errors. */
static int count_wrong_as_nobody(enum procmap_method method, const void *map,
				 const uint8_t id[20], const struct stat *file)
{
	struct procmap *procmap;
	int wrong, errors;

	if (!become_nobody() || procmap_open_self(BY(method), &procmap))
		return 255;
	wrong = count_wrong(procmap, map, id, file, &errors);
	procmap_close(procmap);
	return wrong * 16 + errors;
}

/* Two files have the same device and inode in maps. */
TEST_F(files, files_of_two_subvolumes)
{
	const bool by_text = expected_method(variant->method) == PROCMAP_BY_TEXT;
	static const char *const paths[] = { "m/a/file", "m/b/file" };
	const uint8_t *const ids[] = { test_id, other_id };
	const struct procmap_mapping *found;
	struct procmap_snapshot *snapshot;
	const struct maps_line *lines[2];
	int i, errors, as_nobody;
	struct stat files[2];
	struct maps maps;
	void *map[2];

	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	if (!mount_image("btrfs", "128M", "m") || system("btrfs -q subvolume create m/a") ||
	    system("btrfs -q subvolume create m/b"))
		SKIP(return, "cannot mount btrfs");
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(write_object(paths[i], ids[i]));
		map[i] = map_path(paths[i], 1);
		ASSERT_TRUE(map[i] != MAP_FAILED);
		ASSERT_EQ(0, stat(paths[i], &files[i]));
	}
	ASSERT_TRUE(read_maps_of(getpid(), &maps));
	for (i = 0; i < 2; i++)
		lines[i] = line_at(&maps, (uintptr_t)map[i]);
	EXPECT_EQ(lines[0]->inode, lines[1]->inode);
	EXPECT_EQ(lines[0]->dev_minor, lines[1]->dev_minor);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, count_wrong(self->procmap, map[i], ids[i], &files[i], &errors));
		EXPECT_EQ(0, errors);
		as_nobody = IN_CHILD(count_wrong_as_nobody(variant->method, map[i], ids[i],
							   &files[i]));
		EXPECT_EQ(0, by_text ? as_nobody / 16 : as_nobody);
	}
	/* The other one is where the mapped one was, which is as if that were deleted. */
	ASSERT_EQ(0, mount(paths[1], paths[0], "", MS_BIND, ""));
	EXPECT_EQ(1, count_wrong(self->procmap, map[0], ids[0], &files[0], &errors));
	EXPECT_EQ(0, errors);
	/* By the text, nobody knows. */
	EXPECT_EQ(!by_text, IN_CHILD(count_wrong_as_nobody(variant->method, map[0], ids[0],
							   &files[0])) / 16);
	EXPECT_EQ(0, umount2(paths[0], MNT_DETACH));
	/* The other one is mapped where the first one was. */
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	found = procmap_snapshot_find(snapshot, (uintptr_t)map[0]);
	ASSERT_EQ(map[0], mremap(map[1], PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, map[0]));
	EXPECT_EQ(-ESTALE, open_file(self->procmap, found));
	procmap_snapshot_free(snapshot);
	free_maps(&maps);
	munmap(map[0], PAGE);
}

/* It was mapped as a file of the lower layer, and is copied to the upper one. */
static void write_on_overlay(struct __test_metadata *_metadata, struct procmap *procmap,
			     enum procmap_method method)
{
	const bool by_text = expected_method(method) == PROCMAP_BY_TEXT;
	const struct procmap_mapping *found;
	struct stat file;
	int errors;
	void *map;

	ASSERT_EQ(0, system("mkdir lower upper work m"));
	ASSERT_TRUE(write_object("lower/file", test_id));
	ASSERT_EQ(0, mount("none", "m", "overlay", 0,
			   "lowerdir=lower,upperdir=upper,workdir=work"));
	map = map_path("m/file", 1);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_EQ(0, stat("m/file", &file));
	EXPECT_EQ(0, count_wrong(procmap, map, test_id, &file, &errors));
	EXPECT_EQ(0, errors);
	errors = IN_CHILD(count_wrong_as_nobody(method, map, test_id, &file));
	EXPECT_EQ(0, by_text ? errors / 16 : errors);

	ASSERT_TRUE(write_object("m/file", other_id));
	EXPECT_EQ(0, count_wrong(procmap, map, test_id, NULL, &errors));
	EXPECT_EQ(0, IN_CHILD(count_wrong_as_nobody(method, map, test_id, NULL)) / 16);
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_EQ(by_text ? -ESTALE : 20, found->build_id_size);
	EXPECT_EQ(-ESTALE, open_file(procmap, found));
	munmap(map, PAGE);
	EXPECT_EQ(0, umount2("m", MNT_DETACH));
}

/* A device of tmpfs has no major number, as that of the overlay has none. */
TEST_F(files, file_on_overlayfs_on_tmpfs_is_written)
{
	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	write_on_overlay(_metadata, self->procmap, variant->method);
}

TEST_F(files, file_on_overlayfs_on_a_disk_is_written)
{
	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	if (!mount_image("ext4", "16M", "disk"))
		SKIP(return, "cannot mount ext4");
	ASSERT_EQ(0, chdir("disk"));
	write_on_overlay(_metadata, self->procmap, variant->method);
	ASSERT_EQ(0, chdir(self->dir));
	EXPECT_EQ(0, umount2("disk", MNT_DETACH));
}

/* It is deleted, so that only the process leads to it. */
TEST_F(files, file_whose_mapping_was_split_since)
{
	const struct procmap_mapping *found;
	struct procmap_snapshot *snapshot;
	char *map;
	int i;

	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	ASSERT_TRUE(write_object("file", test_id));
	map = map_path("file", 3);
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	ASSERT_EQ(0, mprotect(map + PAGE, PAGE, PROT_NONE));
	ASSERT_EQ(0, unlink("file"));
	found = procmap_snapshot_find(snapshot, (uintptr_t)map);
	for (i = 0; i < 3; i++) {
		const int fd = open_file(self->procmap, found);

		EXPECT_LE(0, fd);
		close(fd);
		munmap(map + i * PAGE, PAGE);
	}
	EXPECT_EQ(-ENOENT, open_file(self->procmap, found));
	procmap_snapshot_free(snapshot);
}

TEST_F(files, procfs_that_is_elsewhere)
{
	struct procmap_options options = {
		.size = sizeof(options), .method = variant->method, .proc = "elsewhere",
	};
	static char long_path[PATH_MAX];
	const struct procmap_file_options file_options = {
		.size = sizeof(file_options), .proc = "elsewhere",
	};
	struct procmap_mapping mapping;
	const struct procmap_mapping *found;
	struct procmap_file *file;
	struct procmap *procmap;
	char name[64];
	void *map;

	if (!mount_tmpfs(self->dir))
		SKIP(return, "only root can mount a file system");
	ASSERT_TRUE(write_object("file", test_id));
	map = map_path("file", 1);
	ASSERT_EQ(0, mkdir("elsewhere", 0755));
	ASSERT_EQ(0, mount("/proc", "elsewhere", "", MS_BIND, ""));
	ASSERT_EQ(0, mount("none", "/proc", "tmpfs", 0, ""));
	EXPECT_EQ(-ENOENT, procmap_open_self(BY(variant->method), &procmap));
	ASSERT_EQ(0, procmap_open_self(&options, &procmap));
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID |
				  PROCMAP_WANT_DELETED, &found));
	EXPECT_TRUE(has_test_id(found));
	EXPECT_EQ(PROCMAP_READABLE, found->flags);
	EXPECT_EQ(0, procmap_open_file(procmap, found, NULL, &file));
	procmap_close_file(file);
	mapping = *found;
	strcpy(name, found->name);
	mapping.name = name;
	EXPECT_EQ(-ENOENT, procmap_open_file(NULL, &mapping, NULL, &file));
	EXPECT_EQ(0, procmap_open_file(NULL, &mapping, &file_options, &file));
	procmap_close_file(file);
	ASSERT_EQ(0, unlink("file"));
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID |
				  PROCMAP_WANT_DELETED, &found));
	EXPECT_TRUE(has_test_id(found));
	EXPECT_EQ(PROCMAP_READABLE | PROCMAP_DELETED, found->flags);
	procmap_close(procmap);
	ASSERT_EQ(0, procmap_open_pid(getpid(), &options, &procmap));
	procmap_close(procmap);
	memset(long_path, '/', sizeof(long_path) - 1);
	options.proc = long_path;
	EXPECT_EQ(-ENAMETOOLONG, procmap_open_pid(getpid(), &options, &procmap));
	EXPECT_EQ(0, umount2("/proc", MNT_DETACH));
	EXPECT_EQ(0, umount2("elsewhere", MNT_DETACH));
}

/* A socket that receives from this process over the loopback device, or -1. */
static int connected_socket(int *sender)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(0x7f000001) } };
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);
	int receiver = -1;

	*sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!bind(listener, (struct sockaddr *)&at, len) && !listen(listener, 1) &&
	    !getsockname(listener, (struct sockaddr *)&at, &len) &&
	    !connect(*sender, (struct sockaddr *)&at, len))
		receiver = accept(listener, NULL, NULL);
	close(listener);
	return receiver;
}

/* Mainline would take the first bytes of what the socket has received. */
TEST_F(files, that_are_a_socket)
{
	char bytes[64] = "\177ELF";
	const struct procmap_mapping *found;
	int sender, receiver;
	uint8_t id[20];
	void *map;

	receiver = connected_socket(&sender);
	ASSERT_LE(0, receiver);
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, receiver, 0);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_EQ(sizeof(bytes), send(sender, bytes, sizeof(bytes), 0));
	ASSERT_EQ(sizeof(bytes), recv(receiver, bytes, sizeof(bytes), MSG_PEEK | MSG_WAITALL));
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, PROCMAP_WANT_BUILD_ID,
				  &found));
	EXPECT_EQ(0, strncmp(found->name, "socket:[", 8));
	EXPECT_EQ(0, found->build_id_size);
	EXPECT_EQ(-ENODEV, open_file(self->procmap, found));
	EXPECT_EQ(0, walk_to_build_id(self->procmap, map, id));
	EXPECT_EQ(sizeof(bytes), recv(receiver, bytes, sizeof(bytes), MSG_DONTWAIT));
	munmap(map, PAGE);
	close(sender);
	close(receiver);
}
