// SPDX-License-Identifier: GPL-2.0
/*
 * Test the build IDs that PROCMAP_QUERY returns: of ELF files of every shape, sound and
 * hostile, resident or not.
 */
#include <asm/posix_types.h>
#include <glob.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/fanotify.h>

#include "../kselftest_harness.h"
#include "procmap_util.h"

#ifndef __NR_memfd_secret
#define __NR_memfd_secret 447
#endif

#define HUGE_PAGE_SIZE	(2u << 20)
#define HUGE_PAGES	"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

#define LOOP_DEVICE	SCRATCH "/loop"
#define ATTACH_IMAGE	"ln -s \"$(losetup -f --show " SCRATCH_IMAGE ")\" " LOOP_DEVICE
#define DETACH_IMAGE	"losetup -d $(readlink " LOOP_DEVICE ")"

/* The mapping has scene_id, or its beginning, or with a size of 0 no build ID. */
static bool has_id(int maps, const void *addr, unsigned int size)
{
	uint8_t id[BUILD_ID_SIZE];
	struct procmap_query query;

	return !query_build_id(maps, (uintptr_t)addr, &query, id, sizeof(id)) &&
	       query.build_id_size == size && !memcmp(id, scene_id, size);
}

/* A file that the process has mapped. */
FIXTURE(file)
{
	int maps;
	int fd;
	char *addr;
	struct elf_file elf;	/* not written yet */
};

FIXTURE_VARIANT(file)
{
	bool on_ext4;
};

FIXTURE_VARIANT_ADD(file, tmpfs) { .on_ext4 = false };
FIXTURE_VARIANT_ADD(file, ext4) { .on_ext4 = true };

FIXTURE_SETUP(file)
{
	const char *const missing = variant->on_ext4 ? mount_scratch_ext4() : NULL;

	if (missing)
		SKIP_SETUP(missing);
	self->maps = open_maps(0);
	self->fd = variant->on_ext4 ?
		   open(SCRATCH_DISK "/elf", O_RDWR | O_CREAT | O_CLOEXEC, 0700) :
		   memfd_create("elf", MFD_CLOEXEC);
	self->addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, self->fd,
			  0);
	ASSERT_NE(MAP_FAILED, self->addr);
	self->elf = elf_with_id(scene_id);
}

FIXTURE_TEARDOWN(file)
{
}

#define AT(member)	offsetof(struct elf_file, member)

TEST_F(file, has_an_id_or_none_by_each_field_of_its_headers)
{
	static const struct {
		const char *change;
		size_t offset;
		size_t size;
		uint64_t value;
		int id_size;
	} edits[] = {
		{ "no magic", AT(ehdr.e_ident[0]), 1, 0, 0 },
		{ "no class", AT(ehdr.e_ident[EI_CLASS]), 1, 0, 0 },
		{ "class of 32 bits", AT(ehdr.e_ident[EI_CLASS]), 1, ELFCLASS32, 0 },
		{ "no byte order", AT(ehdr.e_ident[EI_DATA]), 1, 0, 0 },
		{ "no version", AT(ehdr.e_ident[EI_VERSION]), 1, 0, 20 },
		{ "relocatable", AT(ehdr.e_type), 2, ET_REL, 0 },
		{ "executable", AT(ehdr.e_type), 2, ET_EXEC, 20 },
		{ "core", AT(ehdr.e_type), 2, ET_CORE, 0 },
		{ "headers at the end of addresses", AT(ehdr.e_phoff), 8, -56, 0 },
		{ "headers behind the file", AT(ehdr.e_phoff), 8, 1 << 20, 0 },
		{ "odd size of headers", AT(ehdr.e_phentsize), 2, 55, 20 },
		{ "no headers", AT(ehdr.e_phnum), 2, 0, 0 },
		{ "the first header alone", AT(ehdr.e_phnum), 2, 1, 0 },
		{ "more headers than there are", AT(ehdr.e_phnum), 2, 0xffff, 20 },
		{ "another first segment", AT(phdrs[0].p_type), 4, PT_NULL, 20 },
		{ "another second segment", AT(phdrs[1].p_type), 4, PT_LOAD, 0 },
		{ "segment at the end of addresses", AT(phdrs[1].p_offset), 8, -16, 0 },
		{ "segment behind the file", AT(phdrs[1].p_offset), 8, 1 << 20, 0 },
		{ "segment a byte short", AT(phdrs[1].p_filesz), 8, 35, 0 },
		{ "segment of a header", AT(phdrs[1].p_filesz), 8, 12, 0 },
		{ "segment of less than that", AT(phdrs[1].p_filesz), 8, 11, 0 },
		{ "empty segment", AT(phdrs[1].p_filesz), 8, 0, 0 },
		{ "endless segment", AT(phdrs[1].p_filesz), 8, -1, 20 },
		{ "endless first segment", AT(phdrs[0].p_filesz), 8, -1, 20 },
		{ "alignment 8", AT(phdrs[1].p_align), 8, 8, 20 },
		{ "odd alignment", AT(phdrs[1].p_align), 8, 3, 20 },
		{ "note of another type", AT(notes[1].nhdr.n_type), 4, NT_GNU_ABI_TAG, 0 },
		{ "note of another owner", AT(notes[1].name[2]), 1, 'X', 0 },
		{ "owner that goes on", AT(notes[1].name[3]), 1, 'X', 0 },
		{ "owner a byte short", AT(notes[1].nhdr.n_namesz), 4, 3, 0 },
		{ "no owner", AT(notes[1].nhdr.n_namesz), 4, 0, 0 },
		{ "endless owner", AT(notes[1].nhdr.n_namesz), 4, -1, 0 },
		{ "empty build ID", AT(notes[1].nhdr.n_descsz), 4, 0, 0 },
		{ "build ID of a byte", AT(notes[1].nhdr.n_descsz), 4, 1, 1 },
		{ "build ID of 16 bytes", AT(notes[1].nhdr.n_descsz), 4, 16, 16 },
		{ "build ID longer than its segment", AT(notes[1].nhdr.n_descsz), 4, 21, 0 },
		{ "endless build ID", AT(notes[1].nhdr.n_descsz), 4, -1, 0 },
		{ "endless first note", AT(notes[0].nhdr.n_descsz), 4, -1, 20 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(edits); i++) {
		struct elf_file elf = self->elf;
		uint64_t value = edits[i].value;

		/* Of a big-endian number, the last bytes are the low ones. */
		if (elf.ehdr.e_ident[EI_DATA] == ELFDATA2MSB)
			value <<= 8 * (sizeof(value) - edits[i].size);
		memcpy((char *)&elf + edits[i].offset, &value, edits[i].size);
		ASSERT_TRUE(write_all(self->fd, &elf, sizeof(elf)));
		EXPECT_TRUE(has_id(self->maps, self->addr, edits[i].id_size)) {
			TH_LOG("%s", edits[i].change);
		}
	}
}

/* One of up to 20 bytes, however much room there is for it. */
TEST_F(file, id_of_more_than_20_bytes_is_none)
{
	struct {
		struct elf_file elf;
		uint8_t more[32];
	} longer = { .elf = self->elf };
	uint8_t id[64];
	struct procmap_query query;
	uint32_t size;

	longer.elf.phdrs[1].p_filesz += sizeof(longer.more);
	for (size = 20; size <= 52; size++) {
		longer.elf.notes[1].nhdr.n_descsz = size;
		ASSERT_TRUE(write_all(self->fd, &longer, sizeof(longer)));
		ASSERT_EQ(0, query_build_id(self->maps, (uintptr_t)self->addr, &query, id,
					    sizeof(id)));
		EXPECT_EQ(size == 20 ? 20u : 0u, query.build_id_size);
	}
}

TEST_F(file, of_32_bits_has_an_id)
{
	struct {
		Elf32_Ehdr ehdr;
		Elf32_Phdr phdr;
		struct elf_note note;
	} elf = { .note = self->elf.notes[1] };

	memcpy(elf.ehdr.e_ident, self->elf.ehdr.e_ident, EI_NIDENT);
	elf.ehdr.e_ident[EI_CLASS] = ELFCLASS32;
	elf.ehdr.e_type = ET_DYN;
	elf.ehdr.e_phoff = sizeof(elf.ehdr);
	elf.ehdr.e_phnum = 1;
	elf.phdr.p_type = PT_NOTE;
	elf.phdr.p_offset = sizeof(elf.ehdr) + sizeof(elf.phdr);
	elf.phdr.p_filesz = sizeof(elf.note);
	ASSERT_TRUE(write_all(self->fd, &elf, sizeof(elf)));
	EXPECT_TRUE(has_id(self->maps, self->addr, 20));
	elf.ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	ASSERT_TRUE(write_all(self->fd, &elf, sizeof(elf)));
	EXPECT_TRUE(has_id(self->maps, self->addr, 0));
}

/* Mainline ignores a note whose padding is not part of its segment: so does this. */
TEST_F(file, note_without_its_padding_is_ignored)
{
	unsigned int size;

	for (size = 1; size <= BUILD_ID_SIZE; size++) {
		self->elf.notes[1].nhdr.n_descsz = size;
		self->elf.phdrs[1].p_filesz = 16 + size;
		ASSERT_TRUE(write_all(self->fd, &self->elf, sizeof(self->elf)));
		EXPECT_TRUE(has_id(self->maps, self->addr, size % 4 ? 0 : size));
		self->elf.phdrs[1].p_filesz = 16 + (size + 3) / 4 * 4;
		ASSERT_TRUE(write_all(self->fd, &self->elf, sizeof(self->elf)));
		EXPECT_TRUE(has_id(self->maps, self->addr, size));
	}
}

/* With 8, a description and the next note begin at multiples of that in the segment. */
TEST_F(file, notes_are_aligned_to_8_if_their_segment_is)
{
	struct {
		Elf64_Nhdr nhdr;
		char name[12];		/* padded to 24 */
		uint8_t desc[8];	/* and to 32 */
		struct elf_note note;
	} notes = {
		.nhdr = { .n_namesz = 9, .n_descsz = 5 },
		.note = self->elf.notes[1],
	};
	uint8_t bytes[sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + sizeof(notes)];

	self->elf.phdrs[0].p_type = PT_NULL;
	self->elf.phdrs[1].p_offset = sizeof(bytes) - sizeof(notes);
	self->elf.phdrs[1].p_filesz = sizeof(notes);
	self->elf.phdrs[1].p_align = 8;
	memcpy(bytes, &self->elf, sizeof(bytes) - sizeof(notes));
	memcpy(bytes + sizeof(bytes) - sizeof(notes), &notes, sizeof(notes));
	ASSERT_TRUE(write_all(self->fd, bytes, sizeof(bytes)));
	EXPECT_TRUE(has_id(self->maps, self->addr, 20));
}

/* The kernel must not look at notes without an end. */
TEST_F(file, only_1024_notes_are_looked_at)
{
	struct {
		struct elf_file elf;
		Elf64_Nhdr empty[1024];
		struct elf_note note;
	} *const file = calloc(1, sizeof(*file));
	const size_t end = sizeof(*file);

	file->elf = self->elf;
	file->elf.ehdr.e_phnum = 1;
	file->note = self->elf.notes[1];
	file->elf.phdrs[0].p_offset = offsetof(typeof(*file), empty[1]);
	file->elf.phdrs[0].p_filesz = end - file->elf.phdrs[0].p_offset;
	ASSERT_TRUE(write_all(self->fd, file, end));
	EXPECT_TRUE(has_id(self->maps, self->addr, 20));
	file->elf.phdrs[0].p_offset = offsetof(typeof(*file), empty[0]);
	file->elf.phdrs[0].p_filesz = end - file->elf.phdrs[0].p_offset;
	ASSERT_TRUE(write_all(self->fd, file, end));
	EXPECT_TRUE(has_id(self->maps, self->addr, 0));
}

/* Those of a table from the second page on, and the first one before and behind them. */
TEST_F(file, only_32_pages_are_looked_at)
{
	const size_t phdr = sizeof(Elf64_Phdr);
	unsigned int pages, nr;
	uint8_t *bytes;

	for (pages = 30; pages <= 31; pages++) {
		bytes = calloc(pages + 1, page_size());
		nr = pages * page_size() / phdr;
		self->elf.ehdr.e_phoff = page_size();
		self->elf.ehdr.e_phnum = nr;
		memcpy(bytes, &self->elf, sizeof(self->elf));
		memcpy(bytes + page_size() + (nr - 1) * phdr, &self->elf.phdrs[1], phdr);
		ASSERT_TRUE(write_all(self->fd, bytes, (pages + 1) * page_size()));
		EXPECT_TRUE(has_id(self->maps, self->addr, pages == 30 ? 20 : 0));
		free(bytes);
	}
}

/* The ID is that of the file, also where a process has written to its memory. */
TEST_F(file, private_changes_do_not_count)
{
	uint8_t *addr;

	ASSERT_TRUE(write_all(self->fd, &self->elf, sizeof(self->elf)));
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, addr);
	memset(addr, 0xff, page_size());
	EXPECT_TRUE(has_id(self->maps, addr, 20));
}

/* Through a shared mapping, bytes can get behind the end of the file. */
TEST_F(file, bytes_past_the_end_of_the_file_do_not_count)
{
	const char *const bytes = (char *)&self->elf;
	off_t end;

	ASSERT_TRUE(write_all(self->fd, bytes, sizeof(self->elf)));
	EXPECT_TRUE(has_id(self->maps, self->addr, 20));
	for (end = sizeof(self->elf) - 1; end > 0; end -= 9) {
		ASSERT_EQ(0, ftruncate(self->fd, end));
		memcpy(self->addr + end, bytes + end, sizeof(self->elf) - end);
		EXPECT_TRUE(has_id(self->maps, self->addr, 0));
	}
}

/*
 * Files that can be mapped and have no build ID.
 */

/* It is never touched: a read may have effects on the device. */
TEST(pseudo_file_has_none)
{
	void *addr = MAP_FAILED;
	glob_t found = {};
	size_t i;

	glob("/sys/bus/pci/devices/*/resource[0-9]", 0, NULL, &found);
	for (i = 0; i < found.gl_pathc && addr == MAP_FAILED; i++) {
		const int fd = open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);

		addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	globfree(&found);
	if (addr == MAP_FAILED)
		SKIP(return, "no PCI resource can be mapped");
	EXPECT_TRUE(has_id(open_maps(0), addr, 0));
}

/* It has a page cache of its own, and an ELF file in it. */
TEST(block_device_has_none)
{
	const char *const missing = mount_scratch();
	void *addr;

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(write_elf(open(SCRATCH_IMAGE, O_RDWR | O_CREAT, 0700), scene_id) &&
		    run_in_shell("truncate -s 1M " SCRATCH_IMAGE));
	if (!run_in_shell(ATTACH_IMAGE))
		SKIP(return, "no loop device to be had, CONFIG_BLK_DEV_LOOP");
	addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED,
		    open(LOOP_DEVICE, O_RDONLY | O_CLOEXEC), 0);
	EXPECT_TRUE(run_in_shell(DETACH_IMAGE));
	ASSERT_NE(MAP_FAILED, addr);
	ASSERT_EQ(ELFMAG0, atomic_load((_Atomic uint8_t *)addr));
	EXPECT_TRUE(has_id(open_maps(0), addr, 0));
}

TEST(secret_memory_has_none)
{
	const int fd = syscall(__NR_memfd_secret, O_CLOEXEC), maps = open_maps(0);
	const struct elf_file elf = elf_with_id(scene_id);
	void *addr;

	if (fd < 0)
		SKIP(return, "no memfd_secret, CONFIG_SECRETMEM and its boot option");
	ASSERT_EQ(0, ftruncate(fd, page_size()));
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, addr);
	EXPECT_TRUE(has_id(maps, addr, 0));
	memcpy(addr, &elf, sizeof(elf));
	EXPECT_TRUE(has_id(maps, addr, 0));
}

/*
 * Pages that are not resident.
 */

/* Looking at a missing page of shared memory does not fill it in. */
TEST(missing_page_of_shared_memory_stays_missing)
{
	const struct elf_file elf = elf_with_id(scene_id);
	const int fd = memfd_create("missing", MFD_CLOEXEC), maps = open_maps(0);
	char *const content = map_pages(page_size());
	const char *missing;
	void *addr;
	int uffd;

	missing = open_userfaultfd(&uffd, UFFD_FEATURE_MISSING_SHMEM);
	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, ftruncate(fd, page_size()));
	addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_TRUE(watch_missing_page(uffd, addr));
	EXPECT_TRUE(has_id(maps, addr, 0));
	EXPECT_EQ(0, resident_pages(fd));

	/* A page that is there cannot be given. */
	memcpy(content, &elf, sizeof(elf));
	EXPECT_TRUE(give_page(uffd, addr, content));
	EXPECT_TRUE(has_id(maps, addr, 20));
}

/* Map a file on an ext4 that is not resident. Returns NULL, or why that cannot be. */
static const char *map_evicted_file(int flags, void **addr)
{
	const char *const missing = mount_scratch_ext4();
	int fd = open(SCRATCH_DISK "/elf", O_RDWR | O_CREAT | O_CLOEXEC, 0700);

	if (!missing && (!write_elf(fd, scene_id) || !evict_file(fd)))
		abort();
	close(fd);
	fd = open(SCRATCH_DISK "/elf", O_CLOEXEC | flags);
	*addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
	return missing;
}

/* Page cache and direct I/O are apart, and such a file is mapped all the same. */
TEST(file_opened_for_direct_io_is_read)
{
	void *addr;
	const char *const missing = map_evicted_file(O_RDONLY | O_DIRECT, &addr);

	if (missing)
		SKIP(return, "%s", missing);
	EXPECT_TRUE(has_id(open_maps(0), addr, 20));
}

/*
 * A daemon that does not give its permission could stop all readers. Here, the test
 * itself is the daemon: a look-up that makes an event never ends.
 */
TEST(reading_makes_no_fanotify_permission_event)
{
	const int fanotify = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC,
					   O_RDONLY | O_LARGEFILE);
	struct fanotify_response response = { .response = FAN_ALLOW };
	struct fanotify_event_metadata event;
	const char *missing;
	void *addr;
	pid_t pid;

	missing = map_evicted_file(O_RDONLY, &addr);
	if (missing)
		SKIP(return, "%s", missing);
	if (fanotify < 0 || fanotify_mark(fanotify, FAN_MARK_ADD, FAN_ACCESS_PERM, AT_FDCWD,
					  SCRATCH_DISK "/elf"))
		SKIP(return, "not root, or no CONFIG_FANOTIFY_ACCESS_PERMISSIONS");
	EXPECT_TRUE(has_id(open_maps(0), addr, 20));

	/* The mark works: read(2) does make one. */
	pid = fork();
	if (!pid)
		_exit(pread(open(SCRATCH_DISK "/elf", O_RDONLY), &event, 1, 0) != 1);
	ASSERT_EQ((ssize_t)sizeof(event), read(fanotify, &event, sizeof(event)));
	response.fd = event.fd;
	ASSERT_EQ((ssize_t)sizeof(response), write(fanotify, &response, sizeof(response)));
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
}

/* A page of a CPU's own list of new pages can only be swapped out there. */
TEST(swapped_page_is_read)
{
	const char *const missing = mount_scratch();
	const int fd = memfd_create("swapped", MFD_CLOEXEC);
	char text[2048] = "";
	cpu_set_t cpu;
	void *addr;

	if (missing)
		SKIP(return, "%s", missing);
	if (!run_in_shell("truncate -s 1M " SCRATCH_IMAGE " && mkswap " SCRATCH_IMAGE " && "
			  ATTACH_IMAGE " && swapon " LOOP_DEVICE))
		SKIP(return, "no swap, CONFIG_SWAP and CONFIG_BLK_DEV_LOOP");
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	ASSERT_TRUE(write_elf(fd, scene_id));
	addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
	EXPECT_EQ(ELFMAG0, atomic_load((_Atomic uint8_t *)addr));
	EXPECT_EQ(0, madvise(addr, page_size(), MADV_PAGEOUT));
	read_file("/proc/self/smaps_rollup", text, sizeof(text));
	EXPECT_TRUE(strstr(text, "\nSwap:") && atoi(strstr(text, "\nSwap:") + 6));
	EXPECT_TRUE(has_id(open_maps(0), addr, 20));
	EXPECT_TRUE(run_in_shell("swapoff " LOOP_DEVICE "; " DETACH_IMAGE));
}

/* Only hugetlbfs itself knows its pages. */
TEST(huge_page_is_read)
{
	const struct elf_file elf = elf_with_id(scene_id);
	const int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | 21 << MAP_HUGE_SHIFT);
	char before[32] = "0", more[32];
	void *addr;

	if (read_file(HUGE_PAGES, before, sizeof(before))) {
		snprintf(more, sizeof(more), "%ld", atol(before) + 1);
		write_file(HUGE_PAGES, more);
	}
	addr = mmap(NULL, HUGE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	write_file(HUGE_PAGES, before);
	if (addr == MAP_FAILED)
		SKIP(return, "no huge page is available");
	memcpy(addr, &elf, sizeof(elf));
	EXPECT_TRUE(has_id(open_maps(0), addr, 20));
}

TEST_HARNESS_MAIN
