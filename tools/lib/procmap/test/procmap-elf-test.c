// SPDX-License-Identifier: GPL-2.0
/*
 * ELF files: their build IDs in every form, and the addresses of their segments.
 */
#include <link.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>

#include "kselftest_harness.h"
#include "util.h"

/* Another file is mapped there by the time of the query. */
TEST(build_id_of_a_mapping_that_was_replaced)
{
	char dir[32];
	struct procmap *procmap;
	uint8_t id[20];
	void *map;
	int is_gone;

	if (missing_method(PROCMAP_BY_SCAN))
		SKIP(return, "%s", missing_method(PROCMAP_BY_SCAN));
	ASSERT_TRUE(make_test_directory(dir));
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
		/* A file of its name need not be the one that was mapped. */
		EXPECT_EQ(is_gone ? -ENOENT : -ESTALE, walk_to_build_id(procmap, map, id));
		EXPECT_EQ(NULL, calls.replaced);
		EXPECT_EQ(20, walk_to_build_id(procmap, map, id));
		EXPECT_EQ(0, memcmp(other_id, id, 20));
		procmap_close(procmap);
	}
	EXPECT_TRUE(remove_directory(dir));
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
 * @align_8: another note is before it, and is aligned to 8 bytes.
 */
struct elf_form {
	uint16_t type;
	bool in_section;
	int at;
	uint32_t size;
	bool is_cut;
	bool is_found;
	bool align_8;
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
	{ ET_DYN, false, 0, 20, false, true, true },
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

struct form_file {
	ElfW(Ehdr) ehdr;
	ElfW(Phdr) phdrs[NR_HEADERS];
	ElfW(Shdr) shdrs[2];
	struct {
		ElfW(Nhdr) note;
		char name_desc_and_padding[12];
	} before;
	ElfW(Nhdr) note;
	char name[4];
	uint8_t id[24];
};

static bool write_form(int fd, const struct elf_form *form)
{
	struct form_file file = {
		.ehdr = elf_header(form->type, form->in_section ? 0 : NR_HEADERS),
		.before.note = { .n_namesz = 4, .n_descsz = 4, .n_type = NT_GNU_ABI_TAG },
		.note = { .n_namesz = 4, .n_descsz = form->size, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	const size_t before = form->align_8 ? sizeof(file.before) : 0;
	const size_t size = 16 + (form->is_cut ? form->size : (form->size + 3) / 4 * 4);

	memcpy(file.id, scene_id, 20);
	if (form->in_section) {
		file.ehdr.e_shoff = offsetof(struct form_file, shdrs);
		file.ehdr.e_shnum = 2;
		file.shdrs[1] = (ElfW(Shdr)) {
			.sh_type = SHT_NOTE, .sh_offset = offsetof(struct form_file, note),
			.sh_size = size, .sh_addralign = 4,
		};
	} else {
		file.phdrs[form->at] = (ElfW(Phdr)) {
			.p_type = PT_NOTE, .p_filesz = before + size,
			.p_offset = offsetof(struct form_file, note) - before,
			.p_align = form->align_8 ? 8 : 4,
		};
	}
	return pwrite(fd, &file, sizeof(file), 0) == sizeof(file);
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
	return size > 0 && memcmp(scene_id, id, size) ? -EIO : size;
}

TEST(build_id_in_every_form)
{
	const int fd = memfd_create("form", MFD_CLOEXEC);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(elf_forms); i++)
		EXPECT_EQ(elf_forms[i].is_found ? elf_forms[i].size : 0,
			  id_size_with(fd, i, 0, "\177", 1)) TH_LOG("form %zu", i);
	close(fd);
}

/* Some are unknown: more headers or notes than are read, another byte order, and a directory. */
TEST(build_id_of_an_odd_file)
{
	const ElfW(Phdr) cut_off = {
		.p_type = PT_NOTE, .p_filesz = 1 << 20, .p_align = 4,
		.p_offset = offsetof(struct form_file, note),
	};
	const ElfW(Phdr) notes = {
		.p_type = PT_NOTE, .p_offset = 8 * PAGE, .p_filesz = 4 * PAGE,
	};
	const uint16_t none = 0, phentsize = 1;
	const uint8_t order = 3;
	struct procmap_file *directory;
	uint8_t id[20];
	int fd;

	fd = memfd_create("form", MFD_CLOEXEC);
	EXPECT_EQ(20, id_size_with(fd, 0, offsetof(ElfW(Ehdr), e_phentsize), &phentsize, 2));
	EXPECT_EQ(20, id_size_with(fd, 0, sizeof(ElfW(Ehdr)), &cut_off, sizeof(cut_off)));
	ASSERT_EQ(0, ftruncate(fd, 12 * PAGE));
	EXPECT_EQ(-EFBIG, id_size_with(fd, 1, sizeof(ElfW(Ehdr)), &notes, sizeof(notes)));
	EXPECT_EQ(-EFBIG, id_size_with(fd, 7, offsetof(ElfW(Ehdr), e_shnum), &none, 2));
	EXPECT_EQ(-ENOEXEC, id_size_with(fd, 7, EI_DATA, &order, 1));
	close(fd);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, procmap_open_file_fd(fd, &directory));
	EXPECT_EQ(-EISDIR, procmap_file_build_id(directory, id));
	procmap_close_file(directory);
	close(fd);
}

/* Where the query is not mainline's, what the ioctls do not find is not looked for. */
TEST(build_id_that_mainline_does_not_find)
{
	const bool by_kernel = kernel_gives_ids(PROCMAP_ANY_METHOD);
	struct procmap *procmap;
	char dir[32];
	uint8_t id[20];
	void *map;
	int fd;

	ASSERT_TRUE(make_test_directory(dir));
	map = map_file(dir, "form", &fd);
	ASSERT_TRUE(write_form(fd, &elf_forms[7]));
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	EXPECT_EQ(by_kernel ? 0 : 20, walk_to_build_id(procmap, map, id));
	calls.opens = 0;
	EXPECT_EQ(by_kernel ? 0 : -ENFILE, walk_to_build_id(procmap, map, id));
	calls.opens = -1;
	procmap_close(procmap);
	close(fd);
	EXPECT_TRUE(remove_directory(dir));
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

TEST(build_id_of_the_vdso)
{
	const char *const image = (const char *)getauxval(AT_SYSINFO_EHDR);
	const struct procmap_mapping *found;
	uint64_t cursor = (uintptr_t)image;
	struct procmap *procmap;
	const uint8_t *id;

	if (!image)
		SKIP(return, "there is no vdso");
	id = id_of_vdso(image);
	ASSERT_TRUE(!!id);
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	ASSERT_EQ(0, procmap_find(procmap, cursor, PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_STREQ("[vdso]", found->name);
	ASSERT_EQ(20, found->build_id_size);
	EXPECT_EQ(0, memcmp(id, found->build_id, 20));
	ASSERT_EQ(0, procmap_next(procmap, &cursor, PROCMAP_WANT_BUILD_ID, &found));
	ASSERT_EQ(20, found->build_id_size);
	EXPECT_EQ(0, memcmp(id, found->build_id, 20));
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)image, 0, &found));
	EXPECT_EQ(0, found->build_id_size);

	/* Without a descriptor, it is unknown. */
	calls.opens = 0;
	ASSERT_EQ(0, procmap_find(procmap, (uintptr_t)image,
				  PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_EQ(-ENFILE, found->build_id_size);
	calls.opens = -1;
	procmap_close(procmap);
}

struct loads {
	ElfW(Ehdr) ehdr;
	ElfW(Phdr) phdrs[4];
};

static bool write_loads(int fd, off_t begin, uint16_t type, const ElfW(Phdr) phdrs[4])
{
	struct loads loads = { .ehdr = elf_header(type, 4) };

	memcpy(loads.phdrs, phdrs, sizeof(loads.phdrs));
	return pwrite(fd, &loads, sizeof(loads), begin) == sizeof(loads) &&
	       !ftruncate(fd, begin + 8 * PAGE);
}

/* Returns the descriptor of a new file with these segments. */
static int open_loads(uint16_t type, const ElfW(Phdr) phdrs[4])
{
	const int fd = memfd_create("loads", MFD_CLOEXEC);

	return write_loads(fd, 0, type, phdrs) ? fd : -1;
}

/*
 * A file whose second segment is in the last page of the first one's .bss. The third one has
 * no bytes of the file, as in one of debug information.
 */
static int open_bss(uint16_t type)
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

	return open_loads(type, phdrs);
}

TEST(address_by_the_segments)
{
	static const struct {
		uint64_t offset;
		uint64_t address;	/* 0: none */
	} expected[] = {
		{ 0, 0 }, { 0xfff, 0 }, { 0x1000, 0x401000 }, { 0x17ff, 0x4017ff },
		{ 0x1800, 0 }, { 0x1bff, 0 }, { 0x1c00, 0x502c00 }, { 0x1cff, 0x502cff },
		{ 0x1d00, 0 }, { 0x4100, 0 }, { UINT64_MAX, 0 },
	};
	const struct procmap_mapping all = { .flags = PROCMAP_READABLE, .end = 8 * PAGE };
	const int fd = open_bss(ET_DYN);
	struct procmap_file *file;
	uint64_t address;
	size_t i;

	ASSERT_EQ(0, procmap_open_file_fd(fd, &file));
	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		address = 0;
		EXPECT_EQ(expected[i].address ? 0 : -ENOENT,
			  procmap_file_address(file, expected[i].offset, &address));
		EXPECT_EQ(expected[i].address, address);
	}
	/* Of two segments, the mapping may be of either. */
	EXPECT_EQ(-ENOENT, procmap_file_mapped_address(file, &all, 0x1e00, &address));
	EXPECT_EQ(-ENOENT, procmap_file_mapped_address(file, &all, 0x4100, &address));
	procmap_close_file(file);
	close(fd);
}

/*
 * A file as linkers make it: read-only data, code, read-only data, and data. Each shares a
 * page of the file with the next; the addresses are no, one, two and three pages higher
 * than the offsets.
 */
static int open_shared_pages(uint16_t type)
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
	return open_loads(type, phdrs);
}

/* Offsets, sizes and addresses are in pages, and bytes behind a page. */
TEST(address_by_the_mapping)
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
		{ r, 4, 1, 4, 0, -1 }, { 0, 3, 1, 3, 0x300, -1 },
	};
	const int fd = open_shared_pages(ET_DYN);
	struct procmap_mapping mapping;
	struct procmap_file *file;
	uint64_t address, addr;
	size_t i;

	ASSERT_EQ(0, procmap_open_file_fd(fd, &file));
	for (i = 0; i < ARRAY_SIZE(expected); i++) {
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
TEST(address_of_a_fixed_program)
{
	const int fd = open_shared_pages(ET_EXEC);
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

/**
 * struct way - how a file with two segments of the same bytes is loaded, and read
 * @holes: permissions of the holes between segments: none with glibc, those of the first
 *	segment with musl.
 * @begin: where it begins in an archive, in pages.
 * @query_errno: as in struct calls.
 */
static const struct way {
	int holes;
	int begin;
	int query_errno;
} ways[] = { { PROT_NONE }, { PROT_READ }, { PROT_NONE, 1 }, { PROT_READ, 0, ENOTTY } };

/*
 * In pages, the segments are at 0, 4, 8, and from 12 to 19, of which the last one is not in
 * the file. The second one and the third one have the same bytes, and .bss behind them where
 * the file has the last one.
 */
static int open_same_bytes(const char *path, const struct way *way)
{
	ElfW(Phdr) phdrs[4] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = PAGE, .p_memsz = PAGE },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W,
		  .p_offset = PAGE, .p_vaddr = 4 * PAGE,
		  .p_filesz = PAGE + 0x100, .p_memsz = PAGE + 0x300 },
		{ 0 },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W,
		  .p_offset = 2 * PAGE + 0x100, .p_vaddr = 12 * PAGE + 0x100,
		  .p_filesz = 6 * PAGE - 0x200, .p_memsz = 7 * PAGE - 0x100 },
	};
	int fd;

	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	phdrs[2] = phdrs[1];
	phdrs[2].p_vaddr = 8 * PAGE;
	return write_loads(fd, way->begin * PAGE, ET_DYN, phdrs) ? fd : -1;
}

static bool load_same_bytes(char *base, int fd, const struct way *way)
{
	const int flags = MAP_PRIVATE | MAP_FIXED, rw = PROT_READ | PROT_WRITE;
	const off_t begin = way->begin * PAGE;

	return mmap(base, 18 * PAGE, way->holes, flags, fd, begin) == base &&
	       !mprotect(base, PAGE, PROT_READ) &&
	       mmap(base + 4 * PAGE, 2 * PAGE, rw, flags, fd, begin + PAGE) != MAP_FAILED &&
	       mmap(base + 8 * PAGE, 2 * PAGE, rw, flags, fd, begin + PAGE) != MAP_FAILED &&
	       mmap(base + 12 * PAGE, 6 * PAGE, rw, flags, fd, begin + 2 * PAGE) !=
	       MAP_FAILED && !mprotect(base + 8 * PAGE, PAGE, PROT_READ);
}

/* The address in the ELF file of an address in this process, or an error. */
static int64_t address_of(struct procmap *procmap, const char *at, const struct way *way)
{
	const struct procmap_mapping *found;
	struct procmap_file *file;
	uint64_t address = 0;
	int err;

	if (procmap_find(procmap, (uintptr_t)at, 0, &found) ||
	    procmap_open_file(procmap, found, NULL, &file))
		return -EIO;
	calls.query_errno = way->query_errno;
	err = procmap_file_set_begin(file, way->begin * PAGE);
	if (!err)
		err = procmap_file_mapped_address(file, found, (uintptr_t)at, &address);
	calls.query_errno = 0;
	procmap_close_file(file);
	return err ? err : (int64_t)address;
}

/* Two loads are side by side, and a mapping of the whole file is behind them. */
TEST(address_by_the_load_bias)
{
	static const struct {
		unsigned int page, byte;
		bool is_none;
	} expected[] = {
		{ 0, 0x10 }, { 4, 0x10 }, { 5, 0x10 }, { 9, 0x10 }, { 12, 0x100 }, { 17, 0x10 },
		/* RELRO, .bss, and holes. */
		{ 8, 0x10 }, { 5, 0x200 }, { 9, 0x200 },
		{ 1, 0x10, true }, { 3, 0x10, true }, { 6, 0x10, true }, { 10, 0x10, true },
		/* The byte is that of a segment which another mapping maps. */
		{ 5, 0x400, true }, { 12, 0x10, true },
	};
	char *const loads = mmap(NULL, 46 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *const whole = loads + 38 * PAGE;
	struct procmap *procmap;
	const struct way *way;
	char dir[32];
	size_t i;
	int fd;

	ASSERT_TRUE(make_test_directory(dir));
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	for (way = ways; way < ways + ARRAY_SIZE(ways); way++) {
		fd = open_same_bytes(in(dir, "same"), way);
		ASSERT_TRUE(load_same_bytes(loads, fd, way));
		ASSERT_TRUE(load_same_bytes(loads + 19 * PAGE, fd, way));
		ASSERT_EQ(whole, mmap(whole, 8 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
				      way->begin * PAGE));
		close(fd);
		for (i = 0; i < 2 * ARRAY_SIZE(expected); i++) {
			const size_t row = i / 2, at = expected[row].page * PAGE +
						       expected[row].byte;

			EXPECT_EQ(expected[row].is_none ? -ENOENT : (int64_t)at,
				  address_of(procmap, loads + i % 2 * 19 * PAGE + at, way))
				TH_LOG("way %zu, row %zu", way - ways, row);
		}
		EXPECT_EQ(0x10, address_of(procmap, whole + 0x10, way));
		EXPECT_EQ(-ENOENT, address_of(procmap, whole + PAGE, way));
		EXPECT_EQ(-ENOENT, address_of(procmap, whole + 2 * PAGE + 0x100, way));
		EXPECT_EQ(13 * PAGE, address_of(procmap, whole + 3 * PAGE, way));
	}
	procmap_close(procmap);
	EXPECT_TRUE(remove_directory(dir));
}

/* A mapping may look like one of another load, of which the same bytes are another segment. */
TEST(address_without_a_known_load_bias)
{
	char *const area = mmap(NULL, 24 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *const load = area + 4 * PAGE;
	const int flags = MAP_PRIVATE | MAP_FIXED;
	struct procmap *procmap;
	int fd, other;
	char dir[32];

	ASSERT_TRUE(make_test_directory(dir));
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	fd = open_same_bytes(in(dir, "same"), ways);
	other = open_same_bytes(in(dir, "other"), ways);
	ASSERT_TRUE(load_same_bytes(load, fd, ways));
	ASSERT_EQ(area, mmap(area, PAGE, PROT_READ, flags, other, 0));
	EXPECT_EQ(4 * PAGE, address_of(procmap, load + 4 * PAGE, ways));
	ASSERT_EQ(area, mmap(area, PAGE, PROT_READ, flags, fd, 0));
	EXPECT_EQ(-ENOENT, address_of(procmap, load + 4 * PAGE, ways));
	EXPECT_EQ(13 * PAGE, address_of(procmap, load + 13 * PAGE, ways));
	ASSERT_EQ(0, munmap(area, 5 * PAGE));
	EXPECT_EQ(4 * PAGE, address_of(procmap, load + 4 * PAGE, ways));
	ASSERT_EQ(0, munmap(load + 12 * PAGE, 6 * PAGE));
	EXPECT_EQ(-ENOENT, address_of(procmap, load + 4 * PAGE, ways));
	close(fd);
	close(other);
	procmap_close(procmap);
	EXPECT_TRUE(remove_directory(dir));
}

/* The error of an address in a file that has these bytes at its begin, and this size. */
static int error_with(uint16_t type, const char *bytes, size_t size)
{
	const int fd = open_bss(type);
	struct procmap_file *file;
	uint64_t address;
	int err;

	if (pwrite(fd, bytes, 4, 0) != 4 || ftruncate(fd, size) ||
	    procmap_open_file_fd(fd, &file))
		return -EIO;
	err = procmap_file_address(file, 0x1000, &address);
	procmap_close_file(file);
	close(fd);
	return err;
}

/* An object that is not linked, a script, and a file that ends before its program headers. */
TEST(without_addresses)
{
	EXPECT_EQ(0, error_with(ET_DYN, "\177ELF", 8 * PAGE));
	EXPECT_EQ(-ENOEXEC, error_with(ET_REL, "\177ELF", 8 * PAGE));
	EXPECT_EQ(-ENOEXEC, error_with(ET_DYN, "\n#! ", 8 * PAGE));
	EXPECT_EQ(-ENOEXEC, error_with(ET_DYN, "\177ELF", sizeof(struct loads) - 1));
	EXPECT_EQ(-ENOEXEC, error_with(ET_DYN, "\177ELF", 0));
}

TEST(opened_file_is_read_once)
{
	const int fd = open_bss(ET_DYN);
	uint8_t id[PROCMAP_BUILD_ID_MAX];
	struct procmap_file *file;
	unsigned int preads;
	uint64_t address;

	ASSERT_EQ(0, procmap_open_file_fd(fd, &file));
	EXPECT_NE(fd, procmap_file_fd(file));
	EXPECT_EQ(FD_CLOEXEC, fcntl(procmap_file_fd(file), F_GETFD));
	close(fd);
	EXPECT_EQ(0, procmap_file_address(file, 0x1c00, &address));
	EXPECT_EQ(0, procmap_file_build_id(file, id));
	preads = calls.preads;
	EXPECT_EQ(0, procmap_file_address(file, 0x1000, &address));
	EXPECT_EQ(0x401000, address);
	EXPECT_EQ(0, procmap_file_build_id(file, id));
	EXPECT_EQ(preads, calls.preads);

	EXPECT_EQ(-EBADF, procmap_open_file_fd(-1, &file));
	EXPECT_EQ(-EINVAL, procmap_open_file_fd(0, NULL));
	EXPECT_EQ(-EINVAL, procmap_file_fd(NULL));
	EXPECT_EQ(-EINVAL, procmap_file_address(NULL, 0, &address));
	EXPECT_EQ(-EINVAL, procmap_file_address(file, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_file_build_id(NULL, id));
	procmap_close_file(file);
	procmap_close_file(NULL);
}

/* A library that is stored in an archive, with a page in front of it. */
TEST(elf_file_in_an_archive)
{
	const struct {
		ElfW(Nhdr) header;
		char name[4];
		uint8_t id[20];
	} note = { { 4, 20, NT_GNU_BUILD_ID }, "GNU", "of a library stored" };
	struct procmap_mapping mapping = { .flags = PROCMAP_READABLE };
	uint8_t id[PROCMAP_BUILD_ID_MAX];
	struct procmap_file *alone, *archive;
	const int bss = open_bss(ET_DYN);
	const int fd = memfd_create("archive", MFD_CLOEXEC);
	uint64_t address, expected;

	ASSERT_EQ(sizeof(note), pwrite(bss, &note, sizeof(note), 0x1000));
	ASSERT_EQ(0, procmap_open_file_fd(bss, &alone));
	close(bss);
	ASSERT_EQ(PAGE, lseek(fd, PAGE, SEEK_SET));
	ASSERT_LT(0, sendfile(fd, procmap_file_fd(alone), &(off_t) { 0 }, 1 << 20));
	ASSERT_EQ(0, procmap_open_file_fd(fd, &archive));
	close(fd);

	EXPECT_EQ(0, procmap_file_build_id(archive, id));
	EXPECT_EQ(-ENOEXEC, procmap_file_address(archive, PAGE, &address));
	EXPECT_EQ(-ENOEXEC, procmap_file_set_begin(archive, 0));
	EXPECT_EQ(-ENOEXEC, procmap_file_set_begin(archive, PAGE + 8));
	EXPECT_EQ(-ENOEXEC, procmap_file_set_begin(archive, UINT64_MAX));
	EXPECT_EQ(-EINVAL, procmap_file_set_begin(NULL, 0));
	EXPECT_EQ(0, procmap_file_set_begin(alone, 0));
	ASSERT_EQ(0, procmap_file_set_begin(archive, PAGE));

	EXPECT_EQ(20, procmap_file_build_id(archive, id));
	EXPECT_EQ(0, memcmp(note.id, id, 20));
	ASSERT_EQ(0, procmap_file_address(alone, 0x1c00, &expected));
	ASSERT_EQ(0, procmap_file_address(archive, PAGE + 0x1c00, &address));
	EXPECT_EQ(expected, address);
	EXPECT_EQ(-ENOENT, procmap_file_address(archive, 0x10, &address));
	mapping.end = 0x2000;
	mapping.offset = PAGE + 0x1000;
	ASSERT_EQ(0, procmap_file_mapped_address(archive, &mapping, 0x10, &address));
	mapping.offset = 0x1000;
	ASSERT_EQ(0, procmap_file_mapped_address(alone, &mapping, 0x10, &expected));
	EXPECT_EQ(expected, address);
	mapping.offset = 0;
	EXPECT_EQ(-ENOENT, procmap_file_mapped_address(archive, &mapping, 0x10, &address));
	procmap_close_file(alone);
	procmap_close_file(archive);
}

TEST_HARNESS_MAIN
