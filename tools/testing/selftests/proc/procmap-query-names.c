// SPDX-License-Identifier: GPL-2.0
/*
 * Test that PROCMAP_QUERY returns the name of every kind of mapping as the text of the same
 * file shows it.
 */
#include <linux/prctl.h>
#include <sys/auxv.h>

#include "../kselftest_harness.h"
#include "procmap_util.h"

#define DELETED		" (deleted)"

static void *map_file(int fd, int flags)
{
	return mmap(NULL, page_size(), PROT_READ, flags, fd, 0);
}

/* Create a file and map it, and let the mapping be all that holds it. */
static void *map_new_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *const addr = ftruncate(fd, page_size()) ? MAP_FAILED :
							map_file(fd, MAP_PRIVATE);

	close(fd);
	return addr;
}

/*
 * The mapping at @addr has one name, by the ioctl and in the text of @fd: @name, or any if
 * that is NULL. The buffer is not on the stack: it must not grow meanwhile.
 */
static void expect_name_in(struct __test_metadata *const _metadata, int fd,
			   const void *addr, const char *name)
{
	static char seen[PATH_MAX];
	const struct maps_line *line;
	struct procmap_query query;
	struct maps maps;

	seen[0] = '\0';
	ASSERT_NE(MAP_FAILED, addr);
	ASSERT_EQ(0, query_name(fd, (uintptr_t)addr, &query, seen, sizeof(seen)));
	if (name)
		EXPECT_STREQ(name, seen);
	EXPECT_EQ(*seen ? strlen(seen) + 1 : 0, query.vma_name_size);
	ASSERT_EQ(0, read_maps(fd, &maps));
	line = line_at(&maps, (uintptr_t)addr);
	ASSERT_TRUE(!!line);
	EXPECT_TRUE(is_name(line, seen)) {
		TH_LOG("%s instead of %s", seen, line->name);
	}
	/* The heap may have grown since. */
	EXPECT_EQ(line->start, query.vma_start);
	free_maps(&maps);
}

static void expect_name(struct __test_metadata *const _metadata, const void *addr,
			const char *name)
{
	const int fd = open_maps(0);

	expect_name_in(_metadata, fd, addr, name);
	close(fd);
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

/* Give memory a name. Returns 0 or -errno. */
static int set_name(void *addr, const char *name)
{
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, page_size(), name) ? -errno : 0;
}

TEST(name_of_anonymous_memory_is_shown_and_fits_its_buffer_to_the_byte)
{
	char longest[80] = "";		/* that prctl(PR_SET_VMA) takes */
	const char *const names[] = { "", "x", "a name", longest };
	void *const addr = map_pages(page_size());
	const int fd = open_maps(0);
	struct procmap_query query;
	char shown[100], name[100];
	unsigned int i;

	if (set_name(addr, "") == -EINVAL)
		SKIP(return, "memory has no names, CONFIG_ANON_VMA_NAME");
	memset(longest, 'n', sizeof(longest) - 1);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		const size_t size = sprintf(shown, "[anon:%s]", names[i]) + 1;

		ASSERT_EQ(0, set_name(addr, names[i]));
		expect_name(_metadata, addr, shown);
		ASSERT_EQ(0, query_name(fd, (uintptr_t)addr, &query, name, size));
		EXPECT_EQ(-ENAMETOOLONG,
			  query_name(fd, (uintptr_t)addr, &query, name, size - 1));
	}
}

/* Walk on from where @query has ended to the mapping that has this name. */
static bool find_name(int fd, struct procmap_query *query, const char *name)
{
	char seen[PATH_MAX];

	do {
		*seen = '\0';
		*query = QUERY(.query_addr = query->vma_end, .query_flags = QUERY_NEXT,
			       .vma_name_addr = (uintptr_t)seen, .vma_name_size = sizeof(seen));
		if (procmap_query(fd, query))
			return false;
	} while (strcmp(name, seen));
	return true;
}

/* Each page of the area is a mapping of its own, by its name, in parent and child. */
#define NR_NAMED	3000

FIXTURE(named)
{
	struct child child;
};

FIXTURE_SETUP(named)
{
	char name[32];
	unsigned int i;

	ASSERT_TRUE(map_area(0, NR_NAMED, PROT_READ, MAP_PRIVATE, -1));
	if (set_name(page_at(0), "") == -EINVAL)
		SKIP_SETUP("memory has no names, CONFIG_ANON_VMA_NAME");
	for (i = 0; i < NR_NAMED; i++) {
		sprintf(name, "page %u", i);
		ASSERT_EQ(0, set_name(page_at(i), name));
	}
	ASSERT_TRUE(start_child(&self->child, keep_still, NULL));
}

FIXTURE_TEARDOWN(named)
{
	stop_child(&self->child);
}

static void expect_named_area(struct __test_metadata *const _metadata, pid_t pid)
{
	const int fd = open_maps(pid);
	struct procmap_query query = {};
	char name[32];
	unsigned int i;

	for (i = 0; i < NR_NAMED; i++) {
		sprintf(name, "[anon:page %u]", i);
		ASSERT_TRUE(find_name(fd, &query, name));
		ASSERT_EQ(addr_of(i), query.vma_start);
	}
	close(fd);
}

/* The child keeps them when the parent has none any more. */
TEST_F_TIMEOUT(named, anonymous_memory_is_found_in_parent_and_child, LONG_TIMEOUT)
{
	expect_named_area(_metadata, 0);
	expect_named_area(_metadata, self->child.pid);
	ASSERT_EQ(0, munmap(page_at(0), NR_NAMED * page_size()));
	expect_named_area(_metadata, self->child.pid);
}

/* But for shared memory, since Linux 6.2. */
TEST(name_of_anonymous_memory_is_not_for_a_file)
{
	void *const addr = map_file(memfd_create("file", MFD_CLOEXEC), MAP_PRIVATE);
	int err;

	if (set_name(map_pages(page_size()), "") == -EINVAL)
		SKIP(return, "memory has no names, CONFIG_ANON_VMA_NAME");
	err = set_name(addr, "a name");
	if (err)
		EXPECT_EQ(-EBADF, err);
	expect_name(_metadata, addr, err ? "/memfd:file" DELETED : "[anon_shmem:a name]");
}

/* The text is the same for a newline and for a path with its escape. */
TEST(name_of_a_file_is_told_byte_for_byte)
{
	char directory[64], all[256] = " ", path[PATH_MAX];
	const char *const names[] = {
		"plain", "a\nb\n", "a\\b\\", "a\\012b", "a\nb", "file" DELETED, all,
	};
	unsigned int i;

	ASSERT_TRUE(make_directory(directory));
	for (i = 1; i < 255; i++)
		all[i] = i == '/' ? ' ' : (char)i;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		expect_name(_metadata, map_new_file(names[i]), path);
	}
	EXPECT_TRUE(remove_directory(directory));
}

/*
 * A path is shown as the reader sees it, from the root directory that the reader has at
 * that moment: neither the opener's nor the target's root counts. A file that is not below
 * it is shown from the root of all mounts, which may be another one than that of this test.
 */
TEST(file_is_seen_from_the_root_directory_of_the_reader)
{
	const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int fd = open_maps(0);
	char directory[64], path[PATH_MAX];
	void *outside, *inside;

	if (geteuid())
		SKIP(return, "only root can change its root directory");
	ASSERT_TRUE(make_directory(directory) && !mkdir("root", 0700));
	outside = map_new_file("outside");
	inside = map_new_file("root/inside");
	snprintf(path, sizeof(path), "%s/root/inside", directory);
	expect_name_in(_metadata, fd, inside, path);

	ASSERT_EQ(0, chroot("root"));
	expect_name_in(_metadata, fd, inside, "/inside");
	expect_name_in(_metadata, fd, outside, NULL);
	ASSERT_TRUE(!fchdir(root) && !chroot(".") && remove_directory(directory));
}

/* Map a file whose path is shown with so many bytes, below a new directory. */
static void *map_long_path(char directory[64], char *shown, size_t length, bool is_deleted)
{
	const size_t suffix = is_deleted ? strlen(DELETED) : 0;
	const int fd = make_long_path(directory, shown, length - suffix);

	if (is_deleted && (fd < 0 || unlink(strrchr(shown, '/') + 1)))
		return MAP_FAILED;
	if (is_deleted)
		strcat(shown, DELETED);
	return map_file(fd, MAP_PRIVATE);
}

/* The byte behind the buffer stays. */
TEST(path_up_to_path_max_is_told_and_fits_its_buffer_to_the_byte)
{
	static const size_t lengths[] = { 255, 256, 2000, PATH_MAX - 1 };
	char directory[64], shown[PATH_MAX], name[PATH_MAX + 1];
	struct procmap_query query;
	const int fd = open_maps(0);
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		const size_t size = lengths[i / 2] + 1;
		const void *const addr = map_long_path(directory, shown, size - 1, i % 2);

		expect_name(_metadata, addr, shown);
		ASSERT_EQ(size - 1, strlen(shown));
		name[size] = 'x';
		ASSERT_EQ(0, query_name(fd, (uintptr_t)addr, &query, name, size));
		EXPECT_EQ('x', name[size]);
		EXPECT_EQ(-ENAMETOOLONG,
			  query_name(fd, (uintptr_t)addr, &query, name, size - 1));
		EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)addr, &query, name, 1));
		EXPECT_TRUE(remove_directory(directory));
	}
}

TEST(path_over_path_max_is_enametoolong_in_a_buffer_of_any_size)
{
	static const size_t lengths[] = { PATH_MAX, 3 * PATH_MAX };
	static const size_t sizes[] = { 1, PATH_MAX, 2 * PATH_MAX };
	char directory[64], shown[3 * PATH_MAX + 1], name[2 * PATH_MAX];
	struct procmap_query query;
	const int fd = open_maps(0);
	unsigned int i, j;

	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		const void *const addr = map_long_path(directory, shown, lengths[i / 2], i % 2);

		ASSERT_NE(MAP_FAILED, addr);
		for (j = 0; j < ARRAY_SIZE(sizes); j++)
			EXPECT_EQ(-ENAMETOOLONG, query_name(fd, (uintptr_t)addr, &query, name,
							    sizes[j]));
		EXPECT_TRUE(remove_directory(directory));
	}
}

TEST_HARNESS_MAIN
