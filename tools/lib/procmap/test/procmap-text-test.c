// SPDX-License-Identifier: GPL-2.0
/*
 * How handles are opened, and texts that were saved.
 */
#include "kselftest_harness.h"
#include "util.h"

/*
 * Opening of handles.
 */
TEST(nonsense_is_not_opened)
{
	struct procmap *procmap;

	EXPECT_EQ(-EINVAL, procmap_open_pid(0, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_pid(-1, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_pid(1, BY(4), &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_pid(1, NULL, NULL));
	EXPECT_EQ(-ESRCH, procmap_open_pid(INT_MAX, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_self(BY(4), &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_self(NULL, NULL));
	EXPECT_EQ(-EINVAL, procmap_open_text(NULL, 1, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_text("", 0, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_text("x", 1, NULL, NULL));
}

/* A field of a later version is not used by an earlier one unless it is zero. */
TEST(options_of_other_versions)
{
	struct {
		struct procmap_options options;
		char later[64];
	} larger = { .options.size = sizeof(larger) };
	struct procmap_options options = { .size = sizeof(options.size), .method = 77 };
	struct procmap *procmap;

	ASSERT_EQ(0, procmap_open_self(&larger.options, &procmap));
	procmap_close(procmap);
	larger.later[63] = 1;
	EXPECT_EQ(-EINVAL, procmap_open_self(&larger.options, &procmap));
	ASSERT_EQ(0, procmap_open_self(&options, &procmap));
	procmap_close(procmap);
	options.size = 0;
	EXPECT_EQ(-EINVAL, procmap_open_self(&options, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_text("x\n", 2, BY(PROCMAP_BY_QUERY), &procmap));
}

TEST(kernel_thread_has_no_mappings)
{
	struct procmap *procmap;
	char comm[32];

	if (!read_file("/proc/2/comm", comm, sizeof(comm)) || strcmp(comm, "kthreadd\n") ||
	    geteuid())
		SKIP(return, "no kernel thread can be looked at");
	EXPECT_EQ(-ESRCH, procmap_open_pid(2, NULL, &procmap));
	EXPECT_EQ(-ESRCH, procmap_open_pid(2, BY(PROCMAP_BY_TEXT), &procmap));
}

TEST(refused_ioctl_means_the_text)
{
	static const int refusals[] = { ENOTTY, EACCES, EPERM, ENOSYS };
	const struct procmap_mapping *found;
	struct procmap *procmap;
	size_t i;

	for (i = 0; i < 4; i++) {
		calls.query_errno = refusals[i];
		calls.scan_errno = refusals[i];
		EXPECT_EQ(-refusals[i], procmap_open_self(BY(PROCMAP_BY_QUERY),
							  &procmap));
		calls.queries = 0;
		calls.scans = 0;
		ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
		EXPECT_EQ(PROCMAP_BY_TEXT, procmap_get_method(procmap));
		EXPECT_EQ(0, procmap_find(procmap, (uintptr_t)&calls, 0, &found));
		EXPECT_EQ(0, procmap_find(procmap, (uintptr_t)&calls, 0, &found));
		/* Each is tried once. */
		EXPECT_EQ(1, calls.queries);
		EXPECT_GE(1, calls.scans);
		EXPECT_EQ(-refusals[i], procmap_check_method(procmap, PROCMAP_BY_QUERY));
		EXPECT_EQ(-refusals[i], procmap_check_method(procmap, PROCMAP_BY_SCAN));
		EXPECT_EQ(0, procmap_check_method(procmap, PROCMAP_BY_TEXT));
		procmap_close(procmap);
	}
	calls.query_errno = ENOMEM;
	EXPECT_EQ(-ENOMEM, procmap_open_self(BY(PROCMAP_BY_QUERY), &procmap));
	calls.scan_errno = ENOMEM;
	EXPECT_EQ(-ENOMEM, procmap_open_self(NULL, &procmap));
	calls.query_errno = 0;
	calls.scan_errno = 0;
}

/* What an emulator gives by the path has the addresses that its program sees. */
TEST(emulated_maps_are_the_only_source)
{
	static const char text[] = "1000-2000 r-xp 00000000 08:01 7 /a\n";
	const struct procmap_mapping *found;
	const int before = count_fds();
	struct procmap *procmap;
	char dir[32];
	int fd, by_pid;

	ASSERT_TRUE(make_test_directory(dir));
	fd = open(in(dir, "maps"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_EQ(strlen(text), write(fd, text, strlen(text)));
	close(fd);
	calls.emulated_maps = in(dir, "maps");
	for (by_pid = 0; by_pid < 2; by_pid++) {
		ASSERT_EQ(0, by_pid ? procmap_open_pid(getpid(), NULL, &procmap) :
				      procmap_open_self(NULL, &procmap));
		EXPECT_EQ(PROCMAP_BY_TEXT, procmap_get_method(procmap));
		ASSERT_EQ(0, procmap_find(procmap, 0x1000, PROCMAP_WANT_BUILD_ID, &found));
		EXPECT_STREQ("/a", found->name);
		EXPECT_EQ(-ENODEV, found->build_id_size);
		EXPECT_EQ(-ENOENT, procmap_find(procmap, (uintptr_t)&calls, 0, &found));
		EXPECT_EQ(-EINVAL, procmap_reopen(procmap));
		procmap_close(procmap);
	}
	EXPECT_EQ(-ENOTTY, procmap_open_self(BY(PROCMAP_BY_QUERY), &procmap));
	EXPECT_EQ(0, calls.queries + calls.scans);
	calls.emulated_maps = NULL;
	EXPECT_EQ(before, count_fds());
	EXPECT_TRUE(remove_directory(dir));
}

TEST(refused_scan_means_queries)
{
	struct procmap *procmap;

	if (missing_method(PROCMAP_BY_SCAN))
		SKIP(return, "%s", missing_method(PROCMAP_BY_SCAN));
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	EXPECT_EQ(PROCMAP_BY_SCAN, procmap_get_method(procmap));
	procmap_close(procmap);

	calls.scan_errno = EPERM;
	EXPECT_EQ(-EPERM, procmap_open_self(BY(PROCMAP_BY_SCAN), &procmap));
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	EXPECT_EQ(PROCMAP_BY_QUERY, procmap_get_method(procmap));
	procmap_close(procmap);
	calls.scan_errno = 0;
}

/*
 * Texts that were saved.
 */
static const char saved[] =
	"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/dbus-daemon\n"
	"Size: 328 kB\n"
	"00e03000-00e24000 rw-p 00000000 00:00 0           [heap]\n"
	"Size: 132 kB\n"
	"KernelPageSize: 2048 kB\n"
	"VmFlags: rd wr\n"
	"7f0000000000-7f0000001000 ---s 7fffffffff000 fd:100000 18446744073709551615 /x y\\012z\n"
	"7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n"
	"7f0000003000-7f0000004000 r-xp 00000000 00:00 0  [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n";

static int walk_text(const char *text, size_t size, int *nr)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	uint64_t cursor = 0;
	int err;

	*nr = 0;
	err = procmap_open_text(text, size, NULL, &procmap);
	if (err)
		return err;
	while (!err) {
		err = procmap_next(procmap, &cursor, 0, &found);
		*nr += !err;
	}
	procmap_close(procmap);
	return err;
}

/* Nobody else has mappings of parts of a page. */
TEST(saved_text_of_parts_of_pages)
{
	static const char text[] = "1000-1800 r--p 0 0:1 1 /a\n"
				   "1800-2000 r--p 0 0:1 2 /b\n";
	const struct procmap_resolved *resolved;
	struct procmap *procmap;
	uint64_t addrs[40];
	size_t i;

	for (i = 0; i < 40; i++)
		addrs[i] = i % 2 ? 0x1700 - i : 0x1900 + i;
	ASSERT_EQ(0, procmap_open_text(text, strlen(text), NULL, &procmap));
	ASSERT_EQ(0, procmap_resolve(procmap, addrs, 40, 0, &resolved));
	for (i = 0; i < 40; i++)
		EXPECT_EQ(i % 2 ? 0x1000 : 0x1800, resolved->mappings[i]->start);
	procmap_free_resolved(resolved);
	procmap_close(procmap);
}

TEST(saved_text)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;

	ASSERT_EQ(0, procmap_open_text(saved, strlen(saved), NULL, &procmap));
	EXPECT_EQ(PROCMAP_BY_TEXT, procmap_get_method(procmap));
	EXPECT_EQ(0, procmap_check_method(procmap, PROCMAP_BY_TEXT));
	EXPECT_EQ(-ENODEV, procmap_check_method(procmap, PROCMAP_BY_QUERY));
	EXPECT_EQ(-EINVAL, procmap_check_method(procmap, 4));
	EXPECT_EQ(-EINVAL, procmap_check_method(NULL, PROCMAP_BY_TEXT));
	ASSERT_EQ(0, procmap_find(procmap, 0x7f0000000fff,
				  PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_EQ(0x7f0000000000, found->start);
	EXPECT_EQ(0x7f0000001000, found->end);
	EXPECT_EQ(PROCMAP_SHARED, found->flags);
	EXPECT_EQ(0x7fffffffff000, found->offset);
	EXPECT_EQ(0xfd, found->dev_major);
	EXPECT_EQ(0x100000, found->dev_minor);
	EXPECT_EQ(UINT64_MAX, found->inode);
	EXPECT_STREQ("/x y\\012z", found->name);
	EXPECT_EQ(-ENODEV, found->build_id_size);
	EXPECT_EQ(-ENODEV, open_file(procmap, found));
	/* As of smaps. Where it is not told, it is not that of the next mapping. */
	ASSERT_EQ(0, procmap_find(procmap, 0x400000, PROCMAP_WANT_PAGE_SIZE, &found));
	EXPECT_EQ(0, found->page_size);
	ASSERT_EQ(0, procmap_find(procmap, 0xe03000, PROCMAP_WANT_PAGE_SIZE, &found));
	EXPECT_EQ(2048 * 1024, found->page_size);
	ASSERT_EQ(0, procmap_find(procmap, 0x7f0000001000, 0, &found));
	EXPECT_EQ(0, found->name_len);
	EXPECT_STREQ("", found->name);
	EXPECT_EQ(-ENOENT, procmap_find(procmap, 0xffffffffff600000, 0, &found));
	/* It may be of another process, whose vdso is not looked for. */
	ASSERT_EQ(0, procmap_find(procmap, 0x7f0000003000, PROCMAP_WANT_BUILD_ID |
				  PROCMAP_WANT_DELETED, &found));
	EXPECT_EQ(-ENODEV, found->build_id_size);
	EXPECT_EQ(PROCMAP_READABLE | PROCMAP_EXECUTABLE, found->flags);
	procmap_close(procmap);
}

TEST(cut_text_is_refused)
{
	const size_t size = strlen(saved);
	char *copy;
	size_t len;
	int err, nr;

	EXPECT_EQ(-ENOENT, walk_text(saved, size, &nr));
	EXPECT_EQ(5, nr);
	for (len = 1; len < size; len++) {
		/* A read past its end would be noticed. */
		copy = malloc(len);
		memcpy(copy, saved, len);
		err = walk_text(copy, len, &nr);
		EXPECT_EQ(saved[len - 1] == '\n' ? -ENOENT : -EBADMSG, err);
		free(copy);
	}
}

TEST(broken_lines_are_refused)
{
	static const char *const lines[] = {
		"\n", "x\n", "1000\n", "1000-\n", "1000-2000\n",
		"2000-1000 r-xp 0 0:0 0\n", "1000-1000 r-xp 0 0:0 0\n",
		"1000-2000 rwx 0 0:0 0\n", "1000-2000 r-xq 0 0:0 0\n",
		"1000-2000 r-xp  0:0 0\n", "1000-2000 r-xp 0 0 0\n",
		"1000-2000 r-xp 0 0:0 \n", "1000-2000 r-xp 0 0:0 0x\n",
		"1000-2000 r-xp 0 0:100000000 0\n",
		"1000-2000 r-xp 0 0:0 18446744073709551616\n",
		"10000000000000000-20000000000000000 r-xp 0 0:0 0\n",
		"Size: 4 kB\n",
		"2000-3000 r-xp 0 0:0 0\n1000-2000 r-xp 0 0:0 0\n",
		"1000-2000 r-xp 0 0:0 0\n1000-2000 r-xp 0 0:0 0\n",
	};
	size_t i;
	int nr;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		TH_LOG("%.*s", (int)strlen(lines[i]) - 1, lines[i]);
		EXPECT_EQ(-EBADMSG, walk_text(lines[i], strlen(lines[i]), &nr));
		EXPECT_EQ(0, nr);
	}
}

TEST_HARNESS_MAIN
