// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY and PROCMAP_SCAN return the name of every kind of mapping
 * as the text of the same file shows it.
 */
#include <linux/prctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "procmap-query.h"
#if __has_include("procmap-scan.h")
#include "procmap-scan.h"
#endif

#define DELETED		" (deleted)"

static const uint8_t build_id[20] = "that of each file";

/* The longest name that prctl(PR_SET_VMA) takes. */
#define ANON_NAME_MAX	79

/* Room for a path of escapes only, and for more. */
#define ESCAPED_MAX	(4 * PATH_MAX + 16)

static void *map_file(int fd, int flags)
{
	return mmap(NULL, page_size(), PROT_READ, flags, fd, 0);
}

static void *map_anonymous(int flags)
{
	return mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
		    flags | MAP_ANONYMOUS, -1, 0);
}

/* Create a file and map it, and let the mapping be all that holds it. */
static void *map_new_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *addr;

	if (!write_elf(fd, build_id))
		return MAP_FAILED;
	addr = map_file(fd, MAP_PRIVATE);
	close(fd);
	return addr;
}

/*
 * The record of the mapping at @addr has this start and this name, NULL for one that is
 * too long. Buffers are not on the stack: it must not grow meanwhile.
 */
static void expect_scanned(struct __test_metadata *const _metadata, int fd,
			   const void *addr, uint64_t start, const char *name)
{
#ifdef HAVE_PROCMAP_SCAN
	static char data[2 * PATH_MAX];
	const uint64_t page = (uintptr_t)addr & -page_size();
	struct procmap_vma vma;
	const struct room room = {
		.vec = &vma,
		.vec_len = 1,
		.data = data,
		.data_size = sizeof(data),
	};
	struct procmap_scan_arg arg = scan_arg(&room, page, page + page_size(),
					       NAMES);
	const int nr = procmap_scan(fd, &arg);

	if (nr == -ENOTTY)
		return;
	ASSERT_EQ(1, nr);
	EXPECT_EQ(start, vma.start);
	EXPECT_EQ(!name, !!(vma.flags & PROCMAP_VMA_NAME_TOO_LONG));
	ASSERT_EQ(name && *name ? strlen(name) + 1 : 0, vma.name_size);
	if (vma.name_size)
		EXPECT_STREQ(name, data_at(&arg, vma.name_offset));
#endif
}

/*
 * The mapping at @addr has one name, by the ioctls and in the text of @fd: @name, or any
 * if that is NULL.
 */
static void expect_name_in(struct __test_metadata *const _metadata, int fd,
			   const void *addr, const char *name)
{
	static char seen[PATH_MAX], escaped[ESCAPED_MAX];
	const struct maps_line *line;
	struct procmap_query query;
	struct maps maps;

	seen[0] = '\0';
	ASSERT_TRUE(addr != MAP_FAILED);
	ASSERT_EQ(0, query_name(fd, (uintptr_t)addr, 0, &query, seen,
				sizeof(seen)));
	if (name)
		EXPECT_STREQ(name, seen);
	EXPECT_EQ(*seen ? strlen(seen) + 1 : 0, query.vma_name_size);
	expect_scanned(_metadata, fd, addr, query.vma_start, seen);

	ASSERT_EQ(0, read_maps(fd, &maps));
	line = line_at(&maps, (uintptr_t)addr);
	ASSERT_TRUE(!!line);
	escape_name(seen, escaped, sizeof(escaped));
	EXPECT_STREQ(line->name, escaped);
	/* The heap may have grown since. */
	EXPECT_EQ(line->start, query.vma_start);
	free_maps(&maps);
}

static void expect_name(struct __test_metadata *const _metadata,
			const void *addr, const char *name)
{
	const int fd = open_maps(0);

	ASSERT_LE(0, fd);
	expect_name_in(_metadata, fd, addr, name);
	close(fd);
}

TEST(private_anonymous_memory_has_no_name)
{
	expect_name(_metadata, map_anonymous(MAP_PRIVATE), "");
}

TEST(heap)
{
	ASSERT_TRUE(sbrk(page_size()) != (void *)-1);
	expect_name(_metadata, (uint8_t *)sbrk(0) - 1, "[heap]");
}

TEST(stack)
{
	int local;

	expect_name(_metadata, &local, "[stack]");
}

TEST(vdso)
{
	const uintptr_t addr = getauxval(AT_SYSINFO_EHDR);

	if (!addr)
		SKIP(return, "this process has no [vdso]");
	expect_name(_metadata, (void *)addr, "[vdso]");
}

TEST(shared_anonymous_memory_is_a_file)
{
	expect_name(_metadata, map_anonymous(MAP_SHARED), "/dev/zero" DELETED);
}

TEST(memfd)
{
	char longest[250] = "", shown[300];
	const char *const names[] = { "x", "a\nb", longest };
	unsigned int i;
	int fd;

	memset(longest, 'n', sizeof(longest) - 1);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		fd = memfd_create(names[i], MFD_CLOEXEC);
		ASSERT_LE(0, fd);
		sprintf(shown, "/memfd:%s" DELETED, names[i]);
		expect_name(_metadata, map_file(fd, MAP_SHARED), shown);
		expect_name(_metadata, map_file(fd, MAP_PRIVATE), shown);
	}
}

TEST(sysv_shared_memory)
{
	const int id = shmget(IPC_PRIVATE, page_size(), IPC_CREAT | 0600);
	void *addr;

	if (id < 0)
		SKIP(return, "no System V shared memory, CONFIG_SYSVIPC");
	addr = shmat(id, NULL, 0);
	EXPECT_EQ(0, shmctl(id, IPC_RMID, NULL));
	expect_name(_metadata, addr, "/SYSV00000000" DELETED);
}

TEST(device)
{
	const int fd = open("/dev/zero", O_RDONLY);

	if (fd < 0)
		SKIP(return, "no zero device");
	expect_name(_metadata, map_file(fd, MAP_PRIVATE), "/dev/zero");
}

/* Memory with a name that the process gave it. */
FIXTURE(anon_name)
{
	void *addr;
	char name[ANON_NAME_MAX + 1];
	char shown[sizeof("[anon:]") + ANON_NAME_MAX];
};

FIXTURE_VARIANT(anon_name)
{
	size_t length;
};

FIXTURE_VARIANT_ADD(anon_name, empty) { .length = 0 };
FIXTURE_VARIANT_ADD(anon_name, one_byte) { .length = 1 };
FIXTURE_VARIANT_ADD(anon_name, longest) { .length = ANON_NAME_MAX };

/* Give memory a name. Returns 0 or -errno. */
static int set_name(void *addr, const char *name)
{
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, page_size(),
		     name) ? -errno : 0;
}

FIXTURE_SETUP(anon_name)
{
	size_t i;
	int err;

	for (i = 0; i < variant->length; i++)
		self->name[i] = "name and :"[i % 10];
	sprintf(self->shown, "[anon:%s]", self->name);
	self->addr = map_anonymous(MAP_PRIVATE);
	ASSERT_TRUE(self->addr != MAP_FAILED);
	err = set_name(self->addr, self->name);
	if (err == -EINVAL)
		SKIP_SETUP("memory has no names, CONFIG_ANON_VMA_NAME");
	ASSERT_EQ(0, err);
}

FIXTURE_TEARDOWN(anon_name)
{
}

TEST_F(anon_name, is_shown)
{
	expect_name(_metadata, self->addr, self->shown);
}

TEST_F(anon_name, fits_its_buffer_to_the_byte)
{
	const size_t length = strlen(self->shown);
	struct procmap_query query;
	const int fd = open_maps(0);
	char name[100];

	ASSERT_EQ(0, query_name(fd, (uintptr_t)self->addr, 0, &query, name,
				length + 1));
	EXPECT_STREQ(self->shown, name);
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, length));
}

/* But for shared memory, since Linux 6.2. */
TEST_F(anon_name, is_not_for_a_file)
{
	void *const addr = map_file(memfd_create("file", MFD_CLOEXEC),
				    MAP_PRIVATE);
	char shown[100];
	int err;

	ASSERT_TRUE(addr != MAP_FAILED);
	err = set_name(addr, self->name);
	if (err)
		EXPECT_EQ(-EBADF, err);
	snprintf(shown, sizeof(shown), "[anon_shmem:%s]", self->name);
	expect_name(_metadata, addr, err ? "/memfd:file" DELETED : shown);
}

/* A directory of its own, where the process works. */
static bool make_directory(char path[64])
{
	char name[] = "/tmp/procmap-names.XXXXXX";

	/* The path as the kernel shows it, also if /tmp is a link. */
	return mkdtemp(name) && !chdir(name) && getcwd(path, 64);
}

static bool remove_directory(const char *path)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -r %s", path);
	return !chdir("/") && !system(command);
}

/* Files by name. */
FIXTURE(file)
{
	char directory[64];
};

FIXTURE_SETUP(file)
{
	ASSERT_TRUE(make_directory(self->directory));
}

FIXTURE_TEARDOWN(file)
{
	EXPECT_TRUE(remove_directory(self->directory));
}

/* The text is the same for a newline and for a path with its escape. */
TEST_F(file, is_told_byte_for_byte)
{
	char all[256] = " ", path[PATH_MAX];
	const char *const names[] = {
		"plain", "a\nb\n", "a\\b\\", "a\\012b", "a\nb", "file" DELETED, all,
	};
	unsigned int i;

	for (i = 1; i < 255; i++)
		all[i] = i == '/' ? ' ' : (char)i;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", self->directory, names[i]);
		expect_name(_metadata, map_new_file(names[i]), path);
	}
}

/*
 * A path is shown as the reader sees it, from the root directory that the reader
 * has at that moment: neither the opener's nor the target's root counts. A file that
 * is not below it is shown from the root of all mounts, which may be another one than
 * that of this test.
 */
TEST_F(file, seen_from_another_root_directory)
{
	const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int fd = open_maps(0);
	char path[PATH_MAX];
	void *outside, *inside;

	ASSERT_LE(0, root);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, mkdir("root", 0700));
	outside = map_new_file("outside");
	inside = map_new_file("root/inside");
	snprintf(path, sizeof(path), "%s/root/inside", self->directory);
	expect_name_in(_metadata, fd, inside, path);

	if (chroot("root"))
		SKIP(return, "only root can change its root directory");
	expect_name_in(_metadata, fd, inside, "/inside");
	expect_name_in(_metadata, fd, outside, NULL);
	/* Back again: the teardown needs the whole path. */
	ASSERT_EQ(0, fchdir(root));
	ASSERT_EQ(0, chroot("."));
}

/* A path of a given length, made of directories with long names. */
FIXTURE(path)
{
	char directory[64];
	void *addr;
	char shown[3 * PATH_MAX + 16];
};

FIXTURE_VARIANT(path)
{
	size_t length;		/* of the name that is shown */
	bool deleted;
};

FIXTURE_VARIANT_ADD(path, of_255_bytes) { .length = 255 };
FIXTURE_VARIANT_ADD(path, of_256_bytes) { .length = 256 };
FIXTURE_VARIANT_ADD(path, of_2000_bytes) { .length = 2000 };
FIXTURE_VARIANT_ADD(path, of_path_max) { .length = PATH_MAX - 1 };
FIXTURE_VARIANT_ADD(path, over_path_max) { .length = PATH_MAX };
FIXTURE_VARIANT_ADD(path, far_over_path_max) { .length = 3 * PATH_MAX };
FIXTURE_VARIANT_ADD(path, deleted_of_path_max) {
	.length = PATH_MAX - 1,
	.deleted = true,
};

FIXTURE_VARIANT_ADD(path, deleted_over_path_max) {
	.length = PATH_MAX,
	.deleted = true,
};

/* Append a slash and a name of @length bytes, and return where that begins. */
static char *append_name(char *path, size_t length)
{
	char *const name = path + strlen(path) + 1;

	name[-1] = '/';
	memset(name, 'n', length);
	name[length] = '\0';
	return name;
}

/*
 * Map a file whose path has @length bytes. The process moves down with the
 * path, which may become longer than what open(2) takes.
 */
static void *map_long_path(char *path, size_t length)
{
	const char *name;
	size_t left;

	while ((left = length - strlen(path)) > NAME_MAX + 1) {
		/* Leave room for a slash and a byte. */
		name = append_name(path, left - 3 < NAME_MAX ? left - 3 :
							       NAME_MAX);
		if (mkdir(name, 0700) || chdir(name))
			return MAP_FAILED;
	}
	name = append_name(path, left - 1);
	return map_new_file(name);
}

FIXTURE_SETUP(path)
{
	const size_t suffix = variant->deleted ? strlen(DELETED) : 0;

	ASSERT_TRUE(make_directory(self->directory));
	strcpy(self->shown, self->directory);
	self->addr = map_long_path(self->shown, variant->length - suffix);
	ASSERT_TRUE(self->addr != MAP_FAILED);
	if (variant->deleted) {
		ASSERT_EQ(0, unlink(strrchr(self->shown, '/') + 1));
		strcat(self->shown, DELETED);
	}
	ASSERT_EQ(variant->length, strlen(self->shown));
}

FIXTURE_TEARDOWN(path)
{
	EXPECT_TRUE(remove_directory(self->directory));
}

TEST_F(path, is_told_up_to_path_max)
{
	const int fd = open_maps(0);
	struct procmap_query query;
	char name[2 * PATH_MAX];

	if (variant->length < PATH_MAX)
		return expect_name(_metadata, self->addr, self->shown);

	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, PATH_MAX));
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, sizeof(name)));
	expect_scanned(_metadata, fd, self->addr, (uintptr_t)self->addr, NULL);
}

TEST_F(path, fits_its_buffer_to_the_byte)
{
	const int fd = open_maps(0);
	const size_t size = variant->length + 1;
	struct procmap_query query;
	char name[3 * PATH_MAX + 1];

	if (variant->length < PATH_MAX) {
		name[size] = 'x';
		ASSERT_EQ(0, query_name(fd, (uintptr_t)self->addr, 0, &query,
					name, size));
		EXPECT_EQ(size, query.vma_name_size);
		EXPECT_STREQ(self->shown, name);
		EXPECT_EQ('x', name[size]);
	}
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, size - 1));
	EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)self->addr, 0,
					    &query, name, 1));
}

#ifdef HAVE_PROCMAP_SCAN
/*
 * For each set of wants. A call has no data at first, and then as much as the next mapping
 * needs by data_needed: none for a path that is too long, but some for the build ID.
 */
TEST_F(path, is_passed_by_a_scan_with_data_for_what_is_returned)
{
	const size_t size = 3 * page_size();
	/* Both neighbours of the file have a name, and no build ID. */
	uint8_t *const pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const uint64_t start = (uintptr_t)pages;
	const int fd = open_maps(0);
	struct truth truth;
	struct room room;
	size_t calls = 0;
	uint64_t want;
	uint32_t i;

	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&room, 4, 2 * PATH_MAX));
	memset(pages, 0, size);
	ASSERT_TRUE(mremap(self->addr, page_size(), page_size(),
			   MREMAP_MAYMOVE | MREMAP_FIXED,
			   pages + page_size()) != MAP_FAILED);
	ASSERT_EQ(0, read_truth(fd, &truth));
	truth.is_resident = true;
	for (want = 0; want <= ALL; want++) {
		for (i = 1; i <= room.vec_len; i++) {
			struct procmap_scan_arg arg =
				scan_arg(&room, start, start + size, want);

			arg.vec_len = i;
			arg.data_size = 0;
			ASSERT_STREQ("", wrong_walk(fd, &truth, &room, arg,
						    &calls));
		}
	}
	EXPECT_EQ(sizeof(build_id),
		  truth.extras[first_line(&truth.maps, start + page_size())]
			.build_id_size);
	free_truth(&truth);
}
#endif

TEST_HARNESS_MAIN
