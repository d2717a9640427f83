// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots: they are as the text, and notice what has changed.
 */
#include "kselftest_harness.h"
#include "scene.h"

/* Return whether all ways to look into the snapshot agree with the lines. */
static bool is_as_lines(const struct procmap_snapshot *snapshot,
			const struct maps *maps, unsigned int flags)
{
	uint64_t *addrs;
	const size_t nr_addrs = make_addresses(maps, &addrs);
	size_t nr = 0, i;

	for (i = 0; i < nr_addrs; i++) {
		const struct maps_line *const line = expected_line(maps, addrs[i], flags);
		const struct procmap_mapping *const found =
			procmap_snapshot_find(snapshot, addrs[i]);

		if (!line != !found || (found && !is_as_line(found, line)))
			return false;
	}
	free(addrs);
	for (i = 0; i < maps->nr; i++) {
		const struct maps_line *const line = &maps->lines[i];

		if (!line_passes(line, flags))
			continue;
		if (!procmap_snapshot_at(snapshot, nr) ||
		    !is_as_line(procmap_snapshot_at(snapshot, nr), line))
			return false;
		nr++;
	}
	return procmap_snapshot_count(snapshot) == nr &&
	       !procmap_snapshot_at(snapshot, nr) &&
	       !procmap_snapshot_at(snapshot, SIZE_MAX);
}

TEST_F(scene, snapshot_is_as_the_text)
{
	struct procmap_snapshot *snapshot;
	unsigned int flags;

	for (flags = 0; flags < 0x40; flags++) {
		if (flags & PROCMAP_COVERING_OR_NEXT)
			continue;
		ASSERT_EQ(0, procmap_snapshot_take(self->procmap, flags, &snapshot));
		EXPECT_TRUE(is_as_lines(snapshot, &self->maps, flags));
		procmap_snapshot_free(snapshot);
	}
}

TEST_F(scene, snapshot_has_what_is_wanted)
{
	const unsigned int flags = PROCMAP_WANT_BUILD_ID | PROCMAP_WANT_PAGE_SIZE |
				   PROCMAP_WANT_DELETED;
	const struct procmap_mapping *mapping;
	struct procmap_snapshot *snapshot;
	struct maps smaps;
	size_t i, nr = 0;

	if (geteuid())
		SKIP(return, "only root can look at a deleted file");
	ASSERT_EQ(0, read_smaps(self->child.pid, &smaps));
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, flags, &snapshot));
	ASSERT_EQ(smaps.nr, procmap_snapshot_count(snapshot));
	for (i = 0; i < smaps.nr; i++) {
		mapping = procmap_snapshot_at(snapshot, i);
		EXPECT_EQ(smaps.lines[i].page_size, mapping->page_size);
		if (strncmp(mapping->name, self->dir, strlen(self->dir)))
			continue;
		nr++;
		EXPECT_TRUE(has_test_id(mapping));
		EXPECT_EQ(!!strstr(mapping->name, "/gone"),
			  !!(mapping->flags & PROCMAP_DELETED));
	}
	EXPECT_EQ(5, nr);
	procmap_snapshot_free(snapshot);
	free_maps(&smaps);
}

/* The mappings that a call has returned as changed, by the pages where they start. */
struct changes {
	int nr;
	int nr_max;
	int result;	/* what to return for the last of @nr_max */
	char starts[64];
};

static int note(void *context, const struct procmap_mapping *was,
		const struct procmap_mapping *is)
{
	struct changes *const changes = context;

	sprintf(changes->starts + strlen(changes->starts), "%x>%x ",
		was ? (int)was->start >> 12 : 0, is ? (int)is->start >> 12 : 0);
	return ++changes->nr == changes->nr_max ? changes->result : 0;
}

static struct procmap_snapshot *snapshot_of_text(const char *text, unsigned int flags)
{
	struct procmap_snapshot *snapshot = NULL;
	struct procmap *procmap;

	if (procmap_open_text(text, strlen(text), NULL, &procmap))
		return NULL;
	procmap_snapshot_take(procmap, flags, &snapshot);
	procmap_close(procmap);
	return snapshot;
}

TEST(snapshots_are_compared_in_each_field)
{
	static const char before[] =
		"1000-2000 r--p 0 08:01 1 /a\n"		/* vanishes */
		"2000-3000 r--p 0 08:01 2 /b\n"		/* stays */
		"3000-4000 r--p 0 08:01 3 /c\n"		/* its end */
		"5000-6000 r--p 0 08:01 4 /d\n"		/* its permissions */
		"6000-7000 r--p 0 08:01 5 /e\n"		/* its offset */
		"7000-8000 r--p 0 08:01 6 /f\n"		/* its inode */
		"8000-9000 r--p 0 08:01 7 /g\n"		/* its device */
		"9000-a000 r--p 0 08:01 8 /h\n"		/* its name */
		"b000-c000 r--p 0 08:01 9 /i\n";	/* its start */
	static const char after[] =
		"2000-3000 r--p 0 08:01 2 /b\n"
		"3000-5000 r--p 0 08:01 3 /c\n"
		"5000-6000 r-xp 0 08:01 4 /d\n"
		"6000-7000 r--p 1000 08:01 5 /e\n"
		"7000-8000 r--p 0 08:01 7 /f\n"
		"8000-9000 r--p 0 08:02 7 /g\n"
		"9000-a000 r--p 0 08:01 8 /H\n"
		"bfff-c000 r--p 0 08:01 9 /i\n"
		"d000-e000 r--p 0 08:01 9 /j\n";	/* appears */
	static const char expected[] = "1>0 3>3 5>5 6>6 7>7 8>8 9>9 b>0 0>b 0>d ";
	struct procmap_snapshot *const was = snapshot_of_text(before, 0);
	struct procmap_snapshot *const is = snapshot_of_text(after, 0);
	struct changes changes = { .nr_max = -1 };
	int i;

	ASSERT_EQ(0, procmap_snapshot_compare(was, is, note, &changes));
	EXPECT_STREQ(expected, changes.starts);
	/* The other direction, and the end by the caller. */
	for (i = 1; i <= 10; i++) {
		changes = (struct changes) { .nr_max = i, .result = -i };
		EXPECT_EQ(-i, procmap_snapshot_compare(is, was, note, &changes));
		EXPECT_EQ(i, changes.nr);
	}
	EXPECT_STREQ("d>0 ", strchr(changes.starts, 'd'));
	changes.nr = 0;
	EXPECT_EQ(0, procmap_snapshot_compare(was, was, note, &changes));
	EXPECT_EQ(0, procmap_snapshot_compare(is, is, note, &changes));
	EXPECT_EQ(0, changes.nr);
	procmap_snapshot_free(was);
	procmap_snapshot_free(is);
}

/* Fields that only one of them has do not count as a change. */
TEST(snapshots_with_other_fields)
{
	static const char text[] = "1000-2000 r--p 0 08:01 1 /a\n"
				   "KernelPageSize: 4 kB\n";
	static const char huge[] = "1000-2000 r--p 0 08:01 1 /a\n"
				   "KernelPageSize: 2048 kB\n";
	struct procmap_snapshot *const plain = snapshot_of_text(text, 0);
	struct procmap_snapshot *const sized =
		snapshot_of_text(text, PROCMAP_WANT_PAGE_SIZE | PROCMAP_WANT_BUILD_ID);
	struct procmap_snapshot *const other =
		snapshot_of_text(huge, PROCMAP_WANT_PAGE_SIZE);
	struct changes changes = { .nr_max = -1 };

	EXPECT_EQ(0, procmap_snapshot_compare(plain, sized, note, &changes));
	EXPECT_EQ(0, procmap_snapshot_compare(sized, plain, note, &changes));
	EXPECT_EQ(0, changes.nr);
	EXPECT_EQ(0, procmap_snapshot_compare(sized, other, note, &changes));
	EXPECT_EQ(1, changes.nr);
	procmap_snapshot_free(plain);
	procmap_snapshot_free(sized);
	procmap_snapshot_free(other);
}

TEST(snapshot_of_all_addresses)
{
	static const char *const texts[] = {
		"0-ffffffffffffffff rw-p 0 0:0 0\n",
		"0-8000000000000002 rw-p 0 0:0 0\n",
		"0-1000 rw-p 0 0:0 0\n1000-ffffffffffffffff rw-p 0 0:0 0\n",
		"0-1000 rw-p 0 0:0 0\nfffffffffffff000-ffffffffffffffff rw-p 0 0:0 0\n",
		"0-1000 rw-p 0 0:0 0\nfffefffffff00000-ffffffffffff0000 rw-p 0 0:0 0\n",
	};
	struct procmap_snapshot *snapshot;
	const struct procmap_mapping *last;
	size_t i, nr;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		snapshot = snapshot_of_text(texts[i], 0);
		nr = procmap_snapshot_count(snapshot);
		last = procmap_snapshot_at(snapshot, nr - 1);
		EXPECT_EQ(last, procmap_snapshot_find(snapshot, last->start));
		EXPECT_EQ(last, procmap_snapshot_find(snapshot, last->end - 1));
		EXPECT_EQ(procmap_snapshot_at(snapshot, 0),
			  procmap_snapshot_find(snapshot, 0xfff));
		EXPECT_EQ(NULL, procmap_snapshot_find(snapshot, UINT64_MAX));
		procmap_snapshot_free(snapshot);
	}
}

/* Does the kernel give the state of an address space a number? */
static bool has_generation(void)
{
	struct procmap_vma vma;
	struct procmap_scan_arg arg = {
		.size = sizeof(arg), .end = UINT64_MAX, .vec = (uintptr_t)&vma, .vec_len = 1,
		.vma_size = sizeof(vma),
	};
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	const bool has = ioctl(fd, PROCMAP_SCAN, &arg) == 1 && arg.generation;

	close(fd);
	return has;
}

TEST_F(scene, unchanged_snapshot_stays_in_place)
{
	const bool by_generation = expected_method(variant->method) == PROCMAP_BY_SCAN &&
				   has_generation();
	const struct procmap_mapping *last;
	struct procmap_snapshot *snapshot;
	size_t nr;

	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	nr = procmap_snapshot_count(snapshot);
	last = procmap_snapshot_at(snapshot, nr - 1);
	EXPECT_EQ(by_generation, procmap_snapshot_is_consistent(snapshot));
	calls.scans = 0;
	calls.allocated = 0;
	ASSERT_EQ(0, procmap_snapshot_refresh(snapshot, self->procmap));
	EXPECT_EQ(last, procmap_snapshot_at(snapshot, nr - 1));
	if (by_generation) {
		EXPECT_EQ(1, calls.scans);
		EXPECT_EQ(0, calls.allocated);
	}
	EXPECT_TRUE(is_as_lines(snapshot, &self->maps, 0));
	procmap_snapshot_free(snapshot);
}

/* In this process, in which other memory changes, too. */
TEST_F(scene, changes_are_noticed)
{
	struct procmap_snapshot *snapshot;
	struct procmap *own;
	void *page;

	ASSERT_EQ(0, procmap_open_self(BY(variant->method), &own));
	ASSERT_EQ(0, procmap_snapshot_take(own, PROCMAP_SHARED, &snapshot));
	page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(1, procmap_snapshot_refresh(snapshot, own));
	EXPECT_EQ(0, procmap_snapshot_refresh(snapshot, own));
	EXPECT_TRUE(!!procmap_snapshot_find(snapshot, (uintptr_t)page));
	munmap(page, PAGE);
	EXPECT_EQ(1, procmap_snapshot_refresh(snapshot, own));
	EXPECT_FALSE(!!procmap_snapshot_find(snapshot, (uintptr_t)page));
	procmap_snapshot_free(snapshot);
	procmap_close(own);
}

/* No mapping changes, so no generation. */
TEST_F(scene, unlinked_file_is_noticed)
{
	const struct maps_line *const line = line_named(&self->maps, "plain");
	const struct procmap_mapping *mapping;
	struct procmap_snapshot *snapshot;

	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, PROCMAP_WANT_DELETED,
					   &snapshot));
	EXPECT_EQ(0, procmap_snapshot_refresh(snapshot, self->procmap));
	ASSERT_EQ(0, unlink(in(self->dir, "plain")));
	EXPECT_EQ(1, procmap_snapshot_refresh(snapshot, self->procmap));
	mapping = procmap_snapshot_find(snapshot, line->start);
	ASSERT_TRUE(!!mapping);
	EXPECT_TRUE(mapping->flags & PROCMAP_DELETED);
	procmap_snapshot_free(snapshot);
}

TEST_F(scene, snapshot_bad_arguments_are_refused)
{
	struct procmap *const procmap = self->procmap;
	struct procmap_snapshot *snapshot, *other;

	ASSERT_EQ(0, procmap_snapshot_take(procmap, 0, &snapshot));
	EXPECT_EQ(-EINVAL, procmap_snapshot_take(NULL, 0, &other));
	EXPECT_EQ(-EINVAL, procmap_snapshot_take(procmap, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_snapshot_take(procmap, PROCMAP_COVERING_OR_NEXT, &other));
	EXPECT_EQ(-EINVAL, procmap_snapshot_refresh(NULL, procmap));
	EXPECT_EQ(-EINVAL, procmap_snapshot_refresh(snapshot, NULL));
	EXPECT_EQ(-EINVAL, procmap_snapshot_compare(NULL, snapshot, note, NULL));
	EXPECT_EQ(-EINVAL, procmap_snapshot_compare(snapshot, NULL, note, NULL));
	EXPECT_EQ(-EINVAL, procmap_snapshot_compare(snapshot, snapshot, NULL, NULL));
	EXPECT_EQ(0, procmap_snapshot_is_consistent(NULL));
	EXPECT_EQ(0, procmap_snapshot_count(NULL));
	EXPECT_EQ(NULL, procmap_snapshot_at(NULL, 0));
	EXPECT_EQ(NULL, procmap_snapshot_find(NULL, 0));
	procmap_snapshot_free(NULL);
	procmap_snapshot_free(snapshot);
}

/* An exec is an error until the handle is reopened, and a change then. */
TEST_F(scene, snapshot_of_another_program)
{
	struct procmap_snapshot *snapshot;
	struct maps maps;

	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	ASSERT_EQ(0, procmap_reopen(self->procmap));
	EXPECT_EQ(0, procmap_snapshot_refresh(snapshot, self->procmap));
	ASSERT_TRUE(tell(&self->child, EXECUTE_CAT));
	EXPECT_EQ(-ESTALE, procmap_snapshot_refresh(snapshot, self->procmap));
	EXPECT_TRUE(is_as_lines(snapshot, &self->maps, 0));
	ASSERT_EQ(0, procmap_reopen(self->procmap));
	EXPECT_EQ(expected_method(variant->method), procmap_get_method(self->procmap));
	EXPECT_EQ(1, procmap_snapshot_refresh(snapshot, self->procmap));
	ASSERT_TRUE(read_text(self->child.pid, &maps));
	EXPECT_TRUE(is_as_lines(snapshot, &maps, 0));
	EXPECT_EQ(0, procmap_snapshot_refresh(snapshot, self->procmap));

	/* It stays when all else is gone. */
	stop_child(&self->child);
	EXPECT_EQ(-ESRCH, procmap_snapshot_refresh(snapshot, self->procmap));
	procmap_close(self->procmap);
	self->procmap = NULL;
	EXPECT_TRUE(is_as_lines(snapshot, &maps, 0));
	free_maps(&maps);
	procmap_snapshot_free(snapshot);
}

/*
 * These work in a signal handler, while malloc(3) holds its locks. Only the first walk, and
 * the first text, need more than the handle has.
 */
TEST_F(scene, nothing_is_allocated)
{
	const bool by_text = expected_method(variant->method) == PROCMAP_BY_TEXT;
	const unsigned int flags = by_text ? 0 : PROCMAP_WANT_BUILD_ID;
	struct changes changes = { .nr_max = 16, .result = 1 };
	const struct procmap_mapping *found;
	struct procmap_snapshot *snapshot;
	uint64_t *addrs, cursor;
	size_t nr_addrs, i;
	int walks;

	nr_addrs = make_addresses(&self->maps, &addrs);
	calls.allocated = 0;
	for (i = 0; i < nr_addrs && !by_text; i++)
		procmap_find(self->procmap, addrs[i], flags, &found);
	EXPECT_EQ(0, calls.allocated);
	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	for (walks = 0; walks < 2; walks++) {
		calls.allocated = 0;
		cursor = 0;
		while (!procmap_next(self->procmap, &cursor, flags, &found))
			;
		for (i = 0; i < nr_addrs; i++) {
			procmap_find(self->procmap, addrs[i], flags, &found);
			procmap_snapshot_find(snapshot, addrs[i]);
		}
	}
	EXPECT_EQ(0, procmap_snapshot_compare(snapshot, snapshot, note, &changes));
	EXPECT_EQ(0, calls.allocated);
	procmap_snapshot_free(snapshot);
	free(addrs);
}

TEST_HARNESS_MAIN
