/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of procmap-test: mappings by their names, and what is found out of the files:
 * whether they were deleted, their build IDs, and their addresses.
 */
#include <fnmatch.h>
#include <link.h>
#include <sys/auxv.h>

static const uint8_t other_id[20] = "another build ID of.";

/*
 * This process, with a directory for files that it maps.
 */
FIXTURE(files)
{
	char dir[32];
	struct procmap *procmap;
};

FIXTURE_VARIANT(files)
{
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(files, any) { .method = PROCMAP_ANY_METHOD };
FIXTURE_VARIANT_ADD(files, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(files, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(files, text) { .method = PROCMAP_BY_TEXT };

FIXTURE_SETUP(files)
{
	if (!has_method(variant->method))
		SKIP_SETUP(without_method(variant->method));
	ASSERT_TRUE(make_directory(self->dir));
	ASSERT_EQ(0, procmap_open_self(BY(variant->method), &self->procmap));
}

FIXTURE_TEARDOWN(files)
{
	calls.opens = -1;
	procmap_close(self->procmap);
	EXPECT_EQ(0, chdir("/"));
	umount2(self->dir, MNT_DETACH);
	EXPECT_TRUE(remove_directory(self->dir));
}

/* Return whether the text has a mapping of this name at @start. */
static bool text_has_name(void *start, const char *name)
{
	const struct maps_line *line;
	struct maps maps;
	bool has;

	if (!read_maps_of(getpid(), &maps))
		return false;
	line = line_at(&maps, (uintptr_t)start);
	has = line && !strcmp(line->name, name);
	free_maps(&maps);
	return has;
}

/* Return the only mapping that procmap_find_name() finds, or NULL, also on an error. */
static void *only_one(struct procmap *procmap, const char *pattern,
		      enum procmap_match match)
{
	const struct procmap_mapping *found;
	uint64_t cursor = 0, start;

	if (procmap_find_name(procmap, pattern, match, &cursor, 0, &found))
		return NULL;
	start = found->start;
	if (found->end != cursor ||
	    procmap_find_name(procmap, pattern, match, &cursor, 0, &found) != -ENOENT)
		return NULL;
	return (void *)(uintptr_t)start;
}

#define EXPECT_FOUND(at, pattern)					\
	EXPECT_EQ((void *)(at), only_one(self->procmap, pattern, PROCMAP_EXACT))
#define EXPECT_GLOBBED(at, pattern)					\
	EXPECT_EQ((void *)(at), only_one(self->procmap, pattern, PROCMAP_GLOB))

TEST_F(files, by_path)
{
	char *const plain = map_file(self->dir, "plain", NULL);
	char *const gone = map_file(self->dir, "gone", NULL);
	char *const newline = map_file(self->dir, "new\nline", NULL);
	char *const literal = map_file(self->dir, "there (deleted)", NULL);
	const char *path = in(self->dir, "gone");

	ASSERT_EQ(0, unlink(path));
	EXPECT_FOUND(gone, path);
	EXPECT_FOUND(NULL, self->dir);
	path = in(self->dir, "gone (deleted)");
	ASSERT_TRUE(text_has_name(gone, path));
	EXPECT_FOUND(gone, path);
	EXPECT_FOUND(plain, in(self->dir, "plain"));
	EXPECT_FOUND(NULL, "plain");
	EXPECT_FOUND(NULL, in(self->dir, "plain*"));
	EXPECT_GLOBBED(plain, in(self->dir, "plain*"));
	EXPECT_GLOBBED(plain, "*procmap-test-*/pl[a-b]in");
	EXPECT_GLOBBED(plain, "/*plain");
	EXPECT_GLOBBED(NULL, "plain");
	EXPECT_GLOBBED(gone, "*/gone");
	EXPECT_GLOBBED(gone, "*/gone (deleted)");
	EXPECT_GLOBBED(NULL, "*/gone (deleted) (deleted)");
	EXPECT_FOUND(newline, in(self->dir, "new\\012line"));
	EXPECT_GLOBBED(newline, "*/new\\\\012line");
	EXPECT_FOUND(literal, in(self->dir, "there (deleted)"));
	EXPECT_FOUND(literal, in(self->dir, "there"));
}

/* In the order of the addresses, from the cursor on, and only those that pass. */
TEST_F(files, all_of_a_name)
{
	const struct procmap_mapping *found;
	const char *const path = in(self->dir, "plain");
	uint64_t cursor, pages;
	char *map;
	int fd, i;

	ASSERT_TRUE(map_file(self->dir, "plain", &fd) != MAP_FAILED);
	munmap(only_one(self->procmap, "*/plain", PROCMAP_GLOB), PAGE);
	map = mmap(NULL, 8 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_TRUE(split(map, 8));
	close(fd);
	pages = (uintptr_t)map;
	for (cursor = 0, i = 0; i < 8; i++) {
		ASSERT_EQ(0, procmap_find_name(self->procmap, path, PROCMAP_EXACT,
					       &cursor, 0, &found));
		EXPECT_EQ(pages + i * PAGE, found->start);
		EXPECT_EQ(found->end, cursor);
	}
	EXPECT_EQ(-ENOENT, procmap_find_name(self->procmap, path, PROCMAP_EXACT,
					     &cursor, 0, &found));
	for (cursor = pages + 2 * PAGE, i = 3; i < 8; i += 2) {
		ASSERT_EQ(0, procmap_find_name(self->procmap, "*/plain",
					       PROCMAP_GLOB, &cursor,
					       PROCMAP_READABLE, &found));
		EXPECT_EQ(pages + i * PAGE, found->start);
	}
	EXPECT_EQ(-ENOENT, procmap_find_name(self->procmap, path, PROCMAP_EXACT,
					     &cursor, PROCMAP_READABLE, &found));
}

static void *map_memfd(const char *name)
{
	const int fd = memfd_create(name, MFD_CLOEXEC);
	void *map;

	if (fd < 0 || ftruncate(fd, PAGE))
		return MAP_FAILED;
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map;
}

TEST_F(files, by_name_of_memfd)
{
	void *const map = map_memfd("frame buffer");
	void *const odd = map_memfd("[anon:odd]");

	ASSERT_TRUE(text_has_name(map, "/memfd:frame buffer (deleted)"));
	EXPECT_FOUND(map, "frame buffer");
	EXPECT_FOUND(map, "frame buffer (deleted)");
	EXPECT_FOUND(map, "/memfd:frame buffer");
	EXPECT_FOUND(map, "/memfd:frame buffer (deleted)");
	EXPECT_FOUND(NULL, "memfd:frame buffer");
	EXPECT_GLOBBED(map, "frame*");
	EXPECT_GLOBBED(map, "frame buff??");
	/* Its own name is not that of anonymous memory. */
	EXPECT_FOUND(odd, "[anon:odd]");
	EXPECT_FOUND(NULL, "odd");
}

static bool name_anon(void *map, const char *name)
{
	return !prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, map, PAGE, name);
}

TEST_F(files, by_name_of_anonymous_memory)
{
	void *const map = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
	void *const shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS,
				  -1, 0);

	if (!name_anon(map, "arena 1"))
		SKIP(return, "this kernel has no CONFIG_ANON_VMA_NAME");
	ASSERT_TRUE(text_has_name(map, "[anon:arena 1]"));
	EXPECT_FOUND(map, "arena 1");
	EXPECT_FOUND(map, "[anon:arena 1]");
	EXPECT_FOUND(NULL, "arena");
	EXPECT_FOUND(NULL, "arena 1]");
	EXPECT_GLOBBED(map, "arena*");
	EXPECT_GLOBBED(map, "*a 1");
	EXPECT_GLOBBED(map, "arena [0-9]");
	/* Since Linux 6.2. */
	if (name_anon(shared, "queue") &&
	    text_has_name(shared, "[anon_shmem:queue]")) {
		EXPECT_FOUND(shared, "queue");
		EXPECT_FOUND(shared, "[anon_shmem:queue]");
		EXPECT_GLOBBED(shared, "q*e");
	}
}

TEST_F(files, what_has_no_such_name)
{
	const struct procmap_mapping *found;
	uint64_t cursor = 0;

	EXPECT_EQ(-ENOENT, procmap_find_name(self->procmap, "no such name",
					     PROCMAP_EXACT, &cursor, 0, &found));
	EXPECT_NE(0, cursor);
	/* With large pages, a program may have no memory of that kind before. */
	ASSERT_NE(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	cursor = 0;
	ASSERT_EQ(0, procmap_find_name(self->procmap, "", PROCMAP_EXACT, &cursor, 0,
				       &found));
	EXPECT_STREQ("", found->name);
	EXPECT_EQ(-EINVAL, procmap_find_name(NULL, "", PROCMAP_EXACT, &cursor, 0,
					     &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(self->procmap, NULL, PROCMAP_EXACT,
					     &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(self->procmap, "", PROCMAP_EXACT, NULL,
					     0, &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(self->procmap, "", PROCMAP_EXACT,
					     &cursor, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_find_name(self->procmap, "", 2, &cursor, 0,
					     &found));
	EXPECT_EQ(-EINVAL, procmap_find_name(self->procmap, "", PROCMAP_EXACT,
					     &cursor, PROCMAP_COVERING_OR_NEXT,
					     &found));
}

/*
 * The test knows which files are deleted from its own actions.
 */
struct fate {
	void *map;
	bool is_deleted;
};

#define NR_FATES	7

static bool make_fates(const char *dir, struct fate *fates)
{
	size_t i;

	/* Names that the text does not show as deleted come first. */
	fates[0] = (struct fate) { map_file(dir, "untouched", NULL), false };
	fates[1] = (struct fate) { map_file(dir, "moved", NULL), false };
	fates[2] = (struct fate) { map_file(dir, "new\nline", NULL), false };
	fates[3] = (struct fate) { map_file(dir, "unlinked", NULL), true };
	fates[4] = (struct fate) { map_file(dir, "replaced", NULL), true };
	fates[5] = (struct fate) { map_file(dir, "confusing", NULL), true };
	fates[6] = (struct fate) { map_file(dir, "literal (deleted)", NULL), false };
	for (i = 0; i < NR_FATES; i++)
		if (fates[i].map == MAP_FAILED)
			return false;
	if (unlink(in(dir, "unlinked")) || rename(in(dir, "moved"), in(dir, "to here")) ||
	    map_file(dir, "another", NULL) == MAP_FAILED ||
	    rename(in(dir, "another"), in(dir, "replaced")))
		return false;
	/* The text shows the path of a file, but not of the mapped one. */
	return !unlink(in(dir, "confusing")) &&
	       map_file(dir, "confusing (deleted)", NULL) != MAP_FAILED;
}

/* The first file for which it is not so, or -1. */
static int first_wrong(struct procmap *procmap, const struct fate *fates, int nr)
{
	const unsigned int flags = PROCMAP_WANT_DELETED;
	const struct procmap_mapping *found;
	int i;

	for (i = 0; i < nr; i++) {
		const uint64_t start = (uintptr_t)fates[i].map;
		uint64_t cursor = start;

		if (procmap_find(procmap, start, flags, &found) ||
		    !(found->flags & PROCMAP_DELETED) == fates[i].is_deleted ||
		    procmap_next(procmap, &cursor, flags, &found) ||
		    !(found->flags & PROCMAP_DELETED) == fates[i].is_deleted ||
		    procmap_find(procmap, start, 0, &found) ||
		    (found->flags & PROCMAP_DELETED))
			return i;
	}
	return -1;
}

/* The same in one walk. */
static int first_wrong_in_walk(struct procmap *procmap, const struct fate *fates,
			       int nr)
{
	const struct procmap_mapping *found;
	uint64_t cursor = (uintptr_t)fates[0].map;
	int i;

	for (i = 0; i < nr; i++)
		if (procmap_next(procmap, &cursor, PROCMAP_WANT_DELETED, &found) ||
		    found->start != (uintptr_t)fates[i].map ||
		    !(found->flags & PROCMAP_DELETED) == fates[i].is_deleted)
			return i;
	return -1;
}

TEST_F(files, that_were_deleted_or_replaced)
{
	struct fate fates[NR_FATES];

	ASSERT_TRUE(make_fates(self->dir, fates));
	EXPECT_EQ(-1, first_wrong(self->procmap, fates, NR_FATES));
}

/* A file of two names, of which one is deleted, in a run of its mappings. */
TEST_F(files, that_have_two_names)
{
	char *const area = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
	const char *path[2];
	int i, deleted;

	for (deleted = 0; deleted < 2; deleted++) {
		struct fate fates[2];

		ASSERT_TRUE(map_file(self->dir, "one", NULL) != MAP_FAILED);
		path[0] = in(self->dir, "one");
		path[1] = in(self->dir, "two");
		ASSERT_EQ(0, link(path[0], path[1]));
		for (i = 0; i < 2; i++) {
			const int fd = open(path[i], O_RDONLY | O_CLOEXEC);

			fates[i].map = mmap(area + i * PAGE, PAGE, PROT_READ,
					    MAP_PRIVATE | MAP_FIXED, fd, 0);
			fates[i].is_deleted = i == deleted;
			ASSERT_TRUE(fates[i].map != MAP_FAILED);
			close(fd);
		}
		ASSERT_EQ(0, unlink(path[deleted]));
		EXPECT_EQ(-1, first_wrong_in_walk(self->procmap, fates, 2));
		ASSERT_EQ(0, unlink(path[!deleted]));
	}
}

/* Another file is mapped where the mapping was. */
/* The text shows both as one. */
TEST_F(files, of_names_that_look_alike)
{
	char *const newline = map_file(self->dir, "a\nb\\012", NULL);
	char *const literal = map_file(self->dir, "a\\012b\n", NULL);
	const struct procmap_mapping *found;

	ASSERT_TRUE(newline != MAP_FAILED && literal != MAP_FAILED);
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)newline, PROCMAP_WANT_DELETED,
				  &found));
	EXPECT_EQ(0, found->flags & PROCMAP_DELETED);
	ASSERT_EQ(0, unlink(in(self->dir, "a\\012b\n")));
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)literal, PROCMAP_WANT_DELETED,
				  &found));
	EXPECT_EQ(PROCMAP_DELETED, found->flags & PROCMAP_DELETED);
}

TEST_F(files, that_are_not_mapped_any_more)
{
	char *const map = map_file(self->dir, "one", NULL);
	const struct procmap_mapping *found;
	struct procmap_mapping old;
	char name[64];
	struct stat one, opened;
	int fd;

	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, 0, &found));
	old = *found;
	old.name = strcpy(name, found->name);
	ASSERT_TRUE(map_file(self->dir, "two", &fd) != MAP_FAILED);
	ASSERT_TRUE(mmap(map, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == map);
	close(fd);
	ASSERT_EQ(0, stat(in(self->dir, "one"), &one));
	fd = open_file(self->procmap, &old);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(fd, &opened));
	EXPECT_EQ(one.st_ino, opened.st_ino);
	close(fd);
	ASSERT_EQ(0, unlink(in(self->dir, "one")));
	EXPECT_EQ(-ENOENT, open_file(self->procmap, &old));
}

static int wait_in_chroot(int control, void *dir)
{
	if (chroot(dir))
		return 1;
	return obey(control, NULL);
}

/* Its names in maps are relative to the root of the reader. */
TEST_F(files, that_were_deleted_in_a_chroot)
{
	struct fate fates[NR_FATES];
	struct procmap *procmap;
	struct child child;

	if (geteuid())
		SKIP(return, "only root can chroot");
	ASSERT_TRUE(make_fates(self->dir, fates));
	ASSERT_TRUE(start_child(&child, wait_in_chroot, self->dir));
	ASSERT_TRUE(await(child.control));
	ASSERT_EQ(0, procmap_open_pid(child.pid, BY(variant->method), &procmap));
	EXPECT_EQ(-1, first_wrong(procmap, fates, NR_FATES));
	procmap_close(procmap);
	stop_child(&child);
}

static int first_wrong_of_nobody(const char *dir, enum procmap_method method)
{
	struct fate fates[NR_FATES];
	struct procmap *procmap;
	int wrong;

	if (!make_fates(dir, fates) || chmod(dir, 0700) || !become_nobody() ||
	    procmap_open_self(BY(method), &procmap))
		return 99;
	/* All that the last one has is its name. */
	wrong = first_wrong(procmap, fates, NR_FATES - 1);
	procmap_close(procmap);
	return wrong + 1;
}

TEST_F(files, that_were_deleted_where_one_may_not_look)
{
	if (geteuid())
		SKIP(return, "only root can become nobody");
	EXPECT_EQ(0, IN_CHILD(first_wrong_of_nobody(self->dir, variant->method)));
}

static int hidden_is_deleted(const char *dir, enum procmap_method method)
{
	const uint64_t start = map_hidden_file(dir);
	const struct procmap_mapping *found;
	struct procmap *procmap;

	if (!start || procmap_open_self(BY(method), &procmap) ||
	    procmap_find(procmap, start, PROCMAP_WANT_DELETED, &found))
		return 99;
	return !!(found->flags & PROCMAP_DELETED);
}

/* Another file was mounted at its path, which the kernel does not say. */
TEST_F(files, that_are_hidden)
{
	if (geteuid())
		SKIP(return, "only root can mount a file");
	ASSERT_TRUE(map_file(self->dir, "plain", NULL) != MAP_FAILED);
	EXPECT_EQ(1, IN_CHILD(hidden_is_deleted(self->dir, variant->method)));
}

/* Walk to the mapping at @start. Returns the size of its build ID, or an error. */
static int walk_to_build_id(struct procmap *procmap, const void *start, uint8_t id[20])
{
	const struct procmap_mapping *found;
	uint64_t cursor = 0;
	int err;

	do {
		err = procmap_next(procmap, &cursor, PROCMAP_WANT_BUILD_ID, &found);
	} while (!err && found->start != (uintptr_t)start);
	if (err)
		return err;
	memcpy(id, found->build_id, 20);
	return found->build_id_size;
}

/* Another file is mapped there by the time of the query. */
TEST(build_id_of_a_mapping_that_was_replaced)
{
	char dir[32];
	struct procmap *procmap;
	uint8_t id[20];
	void *map;
	int is_gone;

	if (!has_method(PROCMAP_BY_SCAN))
		SKIP(return, "%s", without_method(PROCMAP_BY_SCAN));
	ASSERT_TRUE(make_directory(dir));
	calls.replacement = open(in(dir, "other"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_TRUE(write_elf(calls.replacement, other_id));
	calls.hide_ids = true;
	for (is_gone = 0; is_gone < 2; is_gone++) {
		map = map_file(dir, "plain", NULL);
		ASSERT_TRUE(map != MAP_FAILED);
		if (is_gone)
			ASSERT_EQ(0, unlink(in(dir, "plain")));
		ASSERT_EQ(0, procmap_open_self(BY(PROCMAP_BY_SCAN), &procmap));
		calls.replaced = map;
		if (is_gone) {
			EXPECT_EQ(-ENOENT, walk_to_build_id(procmap, map, id));
		} else {
			/* It is found by its name. */
			EXPECT_EQ(20, walk_to_build_id(procmap, map, id));
			EXPECT_EQ(0, memcmp(test_id, id, 20));
		}
		EXPECT_EQ(NULL, calls.replaced);
		EXPECT_EQ(20, walk_to_build_id(procmap, map, id));
		EXPECT_EQ(0, memcmp(other_id, id, 20));
		procmap_close(procmap);
	}
	EXPECT_TRUE(remove_directory(dir));
}

/* A file that is damaged behind its build ID, and one whose header has a wrong size. */
TEST_F(files, build_id_of_a_damaged_file)
{
	static const uint64_t filesz = 1 << 20;
	static const uint16_t phentsize = 1;
	uint8_t id[20];
	void *map;
	int fd;

	map = map_file(self->dir, "plain", &fd);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_EQ(2, pwrite(fd, &phentsize, 2, offsetof(struct tiny_elf, phentsize)));
	EXPECT_EQ(20, walk_to_build_id(self->procmap, map, id));
	EXPECT_EQ(0, memcmp(test_id, id, 20));
	ASSERT_EQ(8, pwrite(fd, &filesz, 8, offsetof(struct tiny_elf, phdr.filesz)));
	EXPECT_EQ(20, walk_to_build_id(self->procmap, map, id));
	EXPECT_EQ(0, memcmp(test_id, id, 20));
	close(fd);
}

#define NR_HEADERS	300

/**
 * struct elf_form - where an ELF file has its build ID
 * @type: its type.
 * @in_section: by a section header, without program headers.
 * @at: the number of the program header, of NR_HEADERS.
 * @size: of the build ID, bytes.
 * @is_cut: the note's padding is left out of its size.
 * @is_found: there is a build ID by the rules of the kernel.
 * @align: of the notes, bytes; 0: 4.
 */
struct elf_form {
	uint16_t type;
	bool in_section;
	int at;
	uint32_t size;
	bool is_cut;
	bool is_found;
	uint8_t align;
};

static const struct elf_form elf_forms[] = {
	{ ET_DYN, false, 0, 20, false, true },
	{ ET_DYN, false, NR_HEADERS - 1, 20, false, true },
	{ ET_DYN, false, 0, 10, false, true },
	{ ET_DYN, false, 0, 10, true, false },
	{ ET_DYN, false, 0, 1, false, true },
	{ ET_DYN, false, 0, 21, false, false },
	{ ET_DYN, false, 0, 0, false, false },
	{ ET_DYN, true, 0, 20, false, true },
	{ ET_REL, true, 0, 8, false, true },
	{ ET_CORE, false, 0, 20, false, false },
	{ ET_DYN, false, 0, 20, false, true, 8 },
};

/* The header of an ELF file of this machine, in front of its program headers. */
static ElfW(Ehdr) elf_header(uint16_t type, uint16_t nr_phdrs)
{
	const uint16_t one = 1;

	return (ElfW(Ehdr)) {
		.e_ident = { 0x7f, 'E', 'L', 'F', sizeof(void *) / 4,
			     *(const uint8_t *)&one ? 1 : 2, 1 },
		.e_type = type, .e_phoff = sizeof(ElfW(Ehdr)), .e_phnum = nr_phdrs,
		.e_phentsize = sizeof(ElfW(Phdr)), .e_shentsize = sizeof(ElfW(Shdr)),
	};
}

static bool write_form(int fd, const struct elf_form *form)
{
	struct {
		ElfW(Ehdr) ehdr;
		ElfW(Phdr) phdrs[NR_HEADERS];
		ElfW(Shdr) shdrs[2];
		ElfW(Nhdr) note;
		char name[4];
		uint8_t id[24];
	} file = {
		.ehdr = elf_header(form->type, form->in_section ? 0 : NR_HEADERS),
		.note = { .n_namesz = 4, .n_descsz = form->size, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	const size_t size = 16 + (form->is_cut ? form->size : (form->size + 3) / 4 * 4);

	memcpy(file.id, test_id, 20);
	if (form->in_section) {
		file.ehdr.e_shoff = offsetof(typeof(file), shdrs);
		file.ehdr.e_shnum = 2;
		file.shdrs[1] = (ElfW(Shdr)) {
			.sh_type = SHT_NOTE, .sh_offset = offsetof(typeof(file), note),
			.sh_size = size, .sh_addralign = 4,
		};
	} else {
		file.phdrs[form->at] = (ElfW(Phdr)) {
			.p_type = PT_NOTE, .p_offset = offsetof(typeof(file), note),
			.p_filesz = size, .p_align = form->align ? form->align : 4,
		};
	}
	return pwrite(fd, &file, sizeof(file), 0) == sizeof(file);
}

/* A kernel with the scan is not mainline, and looks at no section header. */
TEST_F(files, build_id_in_every_form)
{
	const bool by_kernel = expected_method(variant->method) != PROCMAP_BY_TEXT &&
			       has_method(PROCMAP_BY_SCAN);
	uint8_t id[20];
	void *map;
	int fd;
	size_t i;

	for (i = 0; i < sizeof(elf_forms) / sizeof(*elf_forms); i++) {
		const struct elf_form *const form = &elf_forms[i];
		const int size = form->is_found ? form->size : 0;
		struct procmap_file *file;

		map = map_file(self->dir, "form", &fd);
		ASSERT_TRUE(write_form(fd, form));
		ASSERT_EQ(0, procmap_open_file_fd(fd, &file));
		EXPECT_EQ(size, procmap_file_build_id(file, id)) {
			TH_LOG("form %zu", i);
		}
		EXPECT_EQ(0, memcmp(test_id, id, size));
		procmap_close_file(file);
		if (!form->in_section || !by_kernel)
			EXPECT_EQ(size, walk_to_build_id(self->procmap, map, id)) {
				TH_LOG("form %zu", i);
			}
		munmap(map, PAGE);
		close(fd);
	}
}

/* The size of the build ID of a file in a form, with other bytes; or an error. */
static int id_size_with(int fd, int form, size_t offset, const void *bytes, size_t len)
{
	struct procmap_file *file;
	uint8_t id[20];
	int size;

	if (!write_form(fd, &elf_forms[form]) || pwrite(fd, bytes, len, offset) != (ssize_t)len ||
	    procmap_open_file_fd(fd, &file))
		return -EIO;
	size = procmap_file_build_id(file, id);
	procmap_close_file(file);
	return size;
}

/* More headers or notes than are read, another byte order, and files not to be read. */
TEST_F(files, build_id_that_is_unknown)
{
	const ElfW(Phdr) notes = {
		.p_type = PT_NOTE, .p_offset = 8 * PAGE, .p_filesz = 4 * PAGE,
	};
	const bool by_kernel = expected_method(variant->method) != PROCMAP_BY_TEXT &&
			       has_method(PROCMAP_BY_SCAN);
	const uint16_t none = 0;
	const uint8_t order = 3;
	struct procmap_file *directory;
	uint8_t id[20];
	void *map;
	int fd;

	map = map_file(self->dir, "form", &fd);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_EQ(0, ftruncate(fd, 12 * PAGE));
	EXPECT_EQ(-EFBIG, id_size_with(fd, 1, sizeof(ElfW(Ehdr)), &notes, sizeof(notes)));
	EXPECT_EQ(-EFBIG, id_size_with(fd, 7, offsetof(ElfW(Ehdr), e_shnum), &none, 2));
	EXPECT_EQ(-ENOEXEC, id_size_with(fd, 7, EI_DATA, &order, 1));
	EXPECT_EQ(20, id_size_with(fd, 7, 0, "\177", 1));
	calls.opens = 0;
	EXPECT_EQ(by_kernel ? 0 : -ENFILE, walk_to_build_id(self->procmap, map, id));
	calls.opens = -1;
	close(fd);
	fd = open(self->dir, O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, procmap_open_file_fd(fd, &directory));
	EXPECT_EQ(-EISDIR, procmap_file_build_id(directory, id));
	procmap_close_file(directory);
	close(fd);
}

/* The build ID behind the header of its note in the memory of the vdso, or NULL. */
static const uint8_t *id_of_vdso(const char *image)
{
	const struct {
		ElfW(Nhdr) header;
		char name[4];
	} note = { { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID }, "GNU" };
	const char *const found = memmem(image, PAGE, &note, sizeof(note));

	return found ? (const uint8_t *)found + sizeof(note) : NULL;
}

TEST_F(files, build_id_of_the_vdso)
{
	const char *const image = (const char *)getauxval(AT_SYSINFO_EHDR);
	const struct procmap_mapping *found;
	uint64_t cursor = (uintptr_t)image;
	const uint8_t *id;

	if (!image)
		SKIP(return, "there is no vdso");
	id = id_of_vdso(image);
	ASSERT_TRUE(!!id);
	ASSERT_EQ(0, procmap_find(self->procmap, cursor, PROCMAP_WANT_BUILD_ID,
				  &found));
	EXPECT_STREQ("[vdso]", found->name);
	ASSERT_EQ(20, found->build_id_size);
	EXPECT_EQ(0, memcmp(id, found->build_id, 20));
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_BUILD_ID,
				  &found));
	ASSERT_EQ(20, found->build_id_size);
	EXPECT_EQ(0, memcmp(id, found->build_id, 20));
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)image, 0, &found));
	EXPECT_EQ(0, found->build_id_size);

	/* Without a descriptor, it is unknown. */
	calls.opens = 0;
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)image,
				  PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_EQ(-ENFILE, found->build_id_size);
}

struct loads {
	ElfW(Ehdr) ehdr;
	ElfW(Phdr) phdrs[4];
};

/* Returns the descriptor of a new file with these segments. */
static int open_loads(const char *dir, uint16_t type, const ElfW(Phdr) phdrs[4])
{
	const int fd = open(in(dir, "loads"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct loads loads = { .ehdr = elf_header(type, 4) };

	memcpy(loads.phdrs, phdrs, sizeof(loads.phdrs));
	return write(fd, &loads, sizeof(loads)) == sizeof(loads) &&
	       !ftruncate(fd, 8 * PAGE) ? fd : -1;
}

/*
 * A file whose second segment is in the last page of the first one's .bss. The third one has
 * no bytes of the file, as in one of debug information.
 */
static void *map_loads(const char *dir, uint16_t type)
{
	static const ElfW(Phdr) phdrs[4] = {
		{ .p_type = PT_NOTE, .p_offset = 0x1000, .p_vaddr = 0x9000,
		  .p_filesz = 0x100, .p_memsz = 0x100 },
		{ .p_type = PT_LOAD, .p_offset = 0x1000, .p_vaddr = 0x401000,
		  .p_filesz = 0x800, .p_memsz = 0x2000 },
		{ .p_type = PT_LOAD, .p_offset = 0x1c00, .p_vaddr = 0x502c00,
		  .p_filesz = 0x100, .p_memsz = 0x100 },
		{ .p_type = PT_LOAD, .p_offset = 0x4100, .p_vaddr = 0x600100,
		  .p_filesz = 0, .p_memsz = 0x1000 },
	};
	const int fd = open_loads(dir, type, phdrs);
	void *const map = mmap(NULL, 8 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	return map;
}

TEST_F(files, address_by_the_segments)
{
	static const struct {
		uint64_t offset;
		uint64_t address;	/* 0: none */
	} expected[] = {
		{ 0, 0 }, { 0xfff, 0 }, { 0x1000, 0x401000 }, { 0x17ff, 0x4017ff },
		{ 0x1800, 0 }, { 0x1bff, 0 }, { 0x1c00, 0x502c00 }, { 0x1cff, 0x502cff },
		{ 0x1d00, 0 }, { 0x4100, 0 }, { UINT64_MAX, 0 },
	};
	const struct procmap_mapping *found;
	struct procmap_file *file;
	uint64_t address;
	void *map;
	size_t i;

	map = map_loads(self->dir, ET_DYN);
	ASSERT_TRUE(map != MAP_FAILED);
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, 0, &found));
	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		address = 0;
		EXPECT_EQ(expected[i].address ? 0 : -ENOENT,
			  elf_address(self->procmap, found,
				      expected[i].offset, &address));
		EXPECT_EQ(expected[i].address, address);
	}
	EXPECT_EQ(-EINVAL, elf_address(self->procmap, found, 0, NULL));
	ASSERT_EQ(0, procmap_open_file(self->procmap, found, NULL, &file));
	/* Of two segments, the mapping may be of either. */
	EXPECT_EQ(-ENOENT, procmap_file_mapped_address(file, found, found->start + 0x1e00,
						       &address));
	EXPECT_EQ(-ENOENT, procmap_file_mapped_address(file, found, found->start + 0x4100,
						       &address));
	procmap_close_file(file);
}

/*
 * A file as linkers make it: read-only data, code, read-only data, and data. Each shares a
 * page of the file with the next; the addresses are no, one, two and three pages higher
 * than the offsets.
 */
static int open_shared_pages(const char *dir, uint16_t type)
{
	ElfW(Phdr) phdrs[4];
	static const uint64_t ends[] = { 0, 1, 2, 3, 3 };
	static const uint32_t flags[] = { PF_R, PF_R | PF_X, PF_R, PF_R | PF_W };
	int i;

	for (i = 0; i < 4; i++) {
		const uint64_t begin = ends[i] * PAGE + i * 0x100;
		const uint64_t end = ends[i + 1] * PAGE + (i + 1) * 0x100;

		phdrs[i] = (ElfW(Phdr)) {
			.p_type = PT_LOAD, .p_flags = flags[i], .p_offset = begin,
			.p_vaddr = begin + i * PAGE, .p_memsz = end - begin,
			.p_filesz = end - begin,
		};
	}
	return open_loads(dir, type, phdrs);
}

/* Offsets, sizes and addresses are in pages, and bytes behind a page. */
TEST_F(files, address_by_the_mapping)
{
	static const unsigned int r = PROCMAP_READABLE, x = PROCMAP_EXECUTABLE,
				  w = PROCMAP_WRITABLE;
	const struct {
		unsigned int flags, page, nr, at, byte;
		int moved;	/* the address is so many pages higher; -1: there is none */
	} expected[] = {
		{ r, 0, 2, 0, 0, 0 }, { r, 0, 2, 1, 0xff, 0 },
		{ r | x, 1, 2, 1, 0x100, 1 }, { r | x, 1, 2, 2, 0x1ff, 1 },
		{ r, 2, 2, 2, 0x200, 2 }, { r, 2, 2, 3, 0x2ff, 2 },
		{ r | w, 3, 1, 3, 0x300, 3 },
		/* RELRO, the end of .bss, and permissions that were changed. */
		{ r, 3, 1, 3, 0x300, 3 }, { r | w, 3, 1, 3, 0x500, 3 },
		{ r | w | x, 3, 1, 3, 0x300, 3 }, { r | x, 3, 1, 3, 0x300, 3 },
		{ r | w, 1, 2, 1, 0x100, 1 }, { r | w, 1, 2, 2, 0x1ff, 1 },
		/* The byte is that of a segment which another mapping maps. */
		{ r, 0, 2, 1, 0x100, -1 }, { r | x, 1, 2, 2, 0x200, -1 },
		{ r, 2, 2, 2, 0x1ff, -1 }, { r, 2, 2, 3, 0x300, -1 },
		{ r | w, 3, 1, 3, 0x2ff, -1 }, { r | x, 1, 1, 1, 0xff, -1 },
		{ r, 4, 1, 4, 0, -1 },
	};
	const int fd = open_shared_pages(self->dir, ET_DYN);
	struct procmap_mapping mapping;
	struct procmap_file *file;
	uint64_t address, addr;
	size_t i;

	ASSERT_EQ(0, procmap_open_file_fd(fd, &file));
	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		mapping = (struct procmap_mapping) {
			.start = 0x7f000000, .offset = expected[i].page * PAGE,
			.end = 0x7f000000 + expected[i].nr * PAGE,
			.flags = expected[i].flags,
		};
		address = 0;
		addr = expected[i].at * PAGE + expected[i].byte;
		EXPECT_EQ(expected[i].moved < 0 ? -ENOENT : 0,
			  procmap_file_mapped_address(file, &mapping, mapping.start +
						      addr - mapping.offset, &address));
		EXPECT_EQ(expected[i].moved < 0 ? 0 : addr + expected[i].moved * PAGE,
			  address) {
			TH_LOG("row %zu", i);
		}
	}
	EXPECT_EQ(-EINVAL, procmap_file_mapped_address(file, &mapping, mapping.end,
						       &address));
	procmap_close_file(file);
	close(fd);
}

/* In a program that is not moved, the address in memory says which segment it is. */
TEST_F(files, address_of_a_fixed_program)
{
	const int fd = open_shared_pages(self->dir, ET_EXEC);
	struct procmap_mapping mapping = { .offset = 3 * PAGE };
	struct procmap_file *file;
	uint64_t address;
	int moved;

	ASSERT_EQ(0, procmap_open_file_fd(fd, &file));
	for (moved = 2; moved <= 3; moved++) {
		mapping.start = (3 + moved) * PAGE;
		mapping.end = mapping.start + PAGE;
		EXPECT_EQ(0, procmap_file_mapped_address(file, &mapping,
							 mapping.start + 0x500, &address));
		EXPECT_EQ(mapping.start + 0x500, address);
	}
	procmap_close_file(file);
	close(fd);
}

TEST_F(files, without_addresses)
{
	const struct procmap_mapping *found;
	uint64_t address;
	int fd, before;
	void *map;

	/* An object that is not linked. */
	map = map_loads(self->dir, ET_REL);
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, 0, &found));
	before = count_fds();
	EXPECT_EQ(-ENOEXEC, elf_address(self->procmap, found, 0x1000,
					&address));
	fd = open(in(self->dir, "loads"), O_RDWR | O_CLOEXEC);
	ASSERT_EQ(4, pwrite(fd, "\n#! ", 4, 0));
	EXPECT_EQ(-ENOEXEC, elf_address(self->procmap, found, 0x1000,
					&address));
	/* It ends before its program headers do. */
	ASSERT_EQ(4, pwrite(fd, "\177ELF", 4, 0));
	ASSERT_EQ(0, ftruncate(fd, sizeof(struct loads) - 1));
	EXPECT_EQ(-ENOEXEC, elf_address(self->procmap, found, 0x1000,
					&address));
	ASSERT_EQ(0, ftruncate(fd, 0));
	EXPECT_EQ(-ENOEXEC, elf_address(self->procmap, found, 0x1000,
					&address));
	close(fd);
	EXPECT_EQ(before, count_fds());

	/* It has no segment that is loaded. */
	map = map_file(self->dir, "plain", NULL);
	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, 0, &found));
	EXPECT_EQ(-ENOENT, elf_address(self->procmap, found, 0, &address));

	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)&map, 0, &found));
	EXPECT_EQ(-ENODEV, elf_address(self->procmap, found, 0, &address));
}

TEST_F(files, opened_file_is_read_once)
{
	void *const map = map_loads(self->dir, ET_DYN);
	const struct procmap_mapping *found;
	struct procmap_file *file, *of_fd;
	uint8_t id[PROCMAP_BUILD_ID_MAX];
	uint64_t address;
	unsigned int preads;

	ASSERT_EQ(0, procmap_find(self->procmap, (uintptr_t)map, 0, &found));
	ASSERT_EQ(0, procmap_open_file(self->procmap, found, NULL, &file));
	ASSERT_EQ(0, procmap_open_file_fd(procmap_file_fd(file), &of_fd));
	EXPECT_NE(procmap_file_fd(file), procmap_file_fd(of_fd));
	procmap_close_file(file);
	procmap_close(self->procmap);
	self->procmap = NULL;

	EXPECT_EQ(0, procmap_file_address(of_fd, 0x1c00, &address));
	EXPECT_EQ(0x502c00, address);
	EXPECT_EQ(0, procmap_file_build_id(of_fd, id));
	preads = calls.preads;
	EXPECT_EQ(0, procmap_file_address(of_fd, 0x1000, &address));
	EXPECT_EQ(0x401000, address);
	EXPECT_EQ(0, procmap_file_build_id(of_fd, id));
	EXPECT_EQ(preads, calls.preads);
	procmap_close_file(of_fd);

	EXPECT_EQ(-EBADF, procmap_open_file_fd(-1, &file));
	EXPECT_EQ(-EINVAL, procmap_open_file_fd(0, NULL));
	EXPECT_EQ(-EINVAL, procmap_file_fd(NULL));
	EXPECT_EQ(-EINVAL, procmap_file_address(NULL, 0, &address));
	EXPECT_EQ(-EINVAL, procmap_file_build_id(NULL, id));
	procmap_close_file(NULL);
}

/* The build ID of the file of a mapping, without its process; or an error. */
static int id_size_of(const struct procmap_mapping *mapping, const char *root)
{
	const struct procmap_file_options options = {
		.size = sizeof(options), .root = root,
	};
	uint8_t id[PROCMAP_BUILD_ID_MAX];
	struct procmap_file *file;
	int size;

	size = procmap_open_file(NULL, mapping, &options, &file);
	if (size)
		return size;
	size = procmap_file_build_id(file, id);
	procmap_close_file(file);
	return size == sizeof(id) && memcmp(id, test_id, size) ? -EIO : size;
}

/* Mappings of a snapshot or a table are looked up by their paths, and compared. */
TEST_F(files, without_a_process)
{
	void *const map = map_file(self->dir, "one", NULL);
	const struct procmap_file_options none = { .size = 0 };
	const struct procmap_mapping *found;
	struct procmap_mapping by_id = { .name = NULL };
	struct procmap_snapshot *snapshot;
	struct procmap_file *file;

	ASSERT_EQ(0, procmap_snapshot_take(self->procmap, 0, &snapshot));
	procmap_close(self->procmap);
	self->procmap = NULL;
	found = procmap_snapshot_find(snapshot, (uintptr_t)map);
	ASSERT_TRUE(!!found);
	EXPECT_EQ(20, id_size_of(found, NULL));
	EXPECT_EQ(20, id_size_of(found, "/proc/self/root"));
	EXPECT_EQ(-ENOENT, id_size_of(found, self->dir));
	EXPECT_EQ(-EINVAL, procmap_open_file(NULL, found, &none, &file));

	/* An event has the build ID instead of the inode. */
	by_id.name = found->name;
	by_id.name_len = found->name_len;
	EXPECT_EQ(-ENODEV, id_size_of(&by_id, NULL));
	by_id.build_id_size = sizeof(by_id.build_id);
	memcpy(by_id.build_id, test_id, sizeof(by_id.build_id));
	EXPECT_EQ(20, id_size_of(&by_id, NULL));
	by_id.build_id[19]++;
	EXPECT_EQ(-ESTALE, id_size_of(&by_id, NULL));
	/* The number of its inode may be used again. */
	by_id.inode = found->inode;
	by_id.dev_major = found->dev_major;
	by_id.dev_minor = found->dev_minor;
	EXPECT_EQ(-ESTALE, id_size_of(&by_id, NULL));
	by_id.build_id[19]--;
	EXPECT_EQ(20, id_size_of(&by_id, NULL));
	by_id.inode++;
	EXPECT_EQ(-ESTALE, id_size_of(&by_id, NULL));

	/* Below the root of a container, which has another file at the path. */
	ASSERT_EQ(0, rename(in(self->dir, "one"), in(self->dir, "two")));
	ASSERT_TRUE(map_file(self->dir, "one", NULL) != MAP_FAILED);
	EXPECT_EQ(-ESTALE, id_size_of(found, NULL));
	by_id = *found;
	by_id.name = "/two";
	EXPECT_EQ(20, id_size_of(&by_id, self->dir));
	procmap_snapshot_free(snapshot);
}
