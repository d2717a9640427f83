// SPDX-License-Identifier: GPL-2.0
/*
 * Test the build IDs that PROCMAP_QUERY returns: for ELF files of every shape,
 * sound and hostile, on each kind of file system. They are compared with what
 * the specification of ELF says of the bytes of the file.
 */
#include <asm/posix_types.h>
#include <glob.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/syscall.h>

#include "../kselftest_harness.h"
#include "procmap-elf.h"
#include "procmap-huge.h"
#include "procmap-query.h"
#include "procmap-race.h"
#include "procmap-uffd.h"

/* More notes, or bytes of program headers, than the kernel may care to read. */
#define MANY_NOTES	1000
#define MANY_PHDRS_SIZE	(64u << 10)

/* Queries of a file that changes, and how many must meet a change. */
#define ROUNDS		200
#define OVERLAPS	20

#ifndef __NR_memfd_secret
#define __NR_memfd_secret 447
#endif

/*
 * The independent reader: what the specification says of a file's bytes.
 */

struct reading {
	bool sound;	/* nothing that leads to the notes breaks a rule */
	size_t size;	/* of the build ID, 0 if there is none */
	const uint8_t *id;
};

static bool is_inside(const struct image *image, uint64_t pos, uint64_t size)
{
	return pos <= image->size && size <= image->size - pos;
}

/* The file is an executable or a shared object for this machine. */
static bool is_program(const struct image *image)
{
	uint64_t type;

	if (!is_inside(image, 0, EI_NIDENT) ||
	    memcmp(image->bytes, ELFMAG, SELFMAG) ||
	    image->bytes[EI_DATA] != host_order())
		return false;
	if (image->bytes[EI_CLASS] != ELFCLASS32 &&
	    image->bytes[EI_CLASS] != ELFCLASS64)
		return false;
	if (!is_inside(image, 0, ehdr_size(image)))
		return false;
	type = get(image, 0, E_TYPE);
	return type == ET_EXEC || type == ET_DYN;
}

static void read_notes(const struct image *image, uint64_t start, uint64_t size,
		       uint64_t align, struct reading *reading)
{
	uint64_t pos = 0;
	unsigned int nr;

	for (nr = 0; pos < size && size - pos >= NHDR_SIZE; nr++) {
		const size_t note = start + pos;
		const uint64_t owner_size =
			get(image, note, N_NAMESZ);
		const uint64_t desc_size =
			get(image, note, N_DESCSZ);
		const uint64_t desc =
			pad(pos + NHDR_SIZE + owner_size, align);

		if (desc + desc_size > size || nr > MANY_NOTES) {
			reading->sound = false;
			return;
		}
		if (get(image, note, N_TYPE) ==
			    NT_GNU_BUILD_ID &&
		    owner_size == sizeof("GNU") &&
		    !memcmp(image->bytes + note + NHDR_SIZE, "GNU",
			    sizeof("GNU")) &&
		    desc_size >= 1 && desc_size <= ID_MAX) {
			reading->id = image->bytes + start + desc;
			reading->size = desc_size;
			return;
		}
		pos = pad(desc + desc_size, align);
	}
}

static void read_segment(const struct image *image, size_t phdr,
			 struct reading *reading)
{
	const uint64_t start = get(image, phdr, P_OFFSET);
	const uint64_t align = get(image, phdr, P_ALIGN);
	uint64_t size = get(image, phdr, P_FILESZ);

	if (get(image, phdr, P_TYPE) != PT_NOTE)
		return;
	if (!is_inside(image, start, size)) {
		reading->sound = false;
		if (!is_inside(image, start, 0))
			return;
		size = image->size - start;
	}
	if (start % 4 || (align > 1 && align != 4 && align != 8))
		reading->sound = false;
	read_notes(image, start, size, align == 8 ? 8 : 4, reading);
}

static struct reading read_image(const struct image *image)
{
	struct reading reading = { .sound = true };
	uint64_t phoff, entry, nr, i;

	if (!is_program(image))
		return reading;
	phoff = get(image, 0, E_PHOFF);
	entry = get(image, 0, E_PHENTSIZE);
	nr = get(image, 0, E_PHNUM);
	if (image->bytes[EI_VERSION] != EV_CURRENT ||
	    get(image, 0, E_VERSION) != EV_CURRENT ||
	    get(image, 0, E_EHSIZE) != ehdr_size(image) ||
	    entry != phdr_size(image) || nr * entry > MANY_PHDRS_SIZE ||
	    !is_inside(image, phoff, nr * entry))
		reading.sound = false;

	for (i = 0; i < nr && !reading.size; i++) {
		if (!is_inside(image, phoff, i * entry + phdr_size(image)))
			break;
		read_segment(image, phoff + i * entry, &reading);
	}
	return reading;
}

static bool make_file(struct subject *subject, const struct elf *elf)
{
	make_image(&subject->image, elf);
	return store(subject);
}

static void expect_id_at(struct __test_metadata *const _metadata, int maps,
			 const void *addr, uint8_t seed, size_t size)
{
	uint8_t expected[ID_MAX + 1], id[ID_MAX + 1];
	struct procmap_query query;
	size_t i;

	/* What lies behind the ID in the buffer is left alone. */
	memset(expected, 0x5a, sizeof(expected));
	memset(id, 0x5a, sizeof(id));
	for (i = 0; i < size; i++)
		expected[i] = id_byte(seed, i);

	ASSERT_TRUE(addr != MAP_FAILED);
	ASSERT_EQ(0, query_build_id(maps, (uintptr_t)addr, &query, id, ID_MAX));
	ASSERT_EQ(size, query.build_id_size);
	ASSERT_EQ(0, memcmp(expected, id, sizeof(id)));
}

static void expect_id(struct __test_metadata *const _metadata,
		      const struct subject *subject, uint8_t seed, size_t size)
{
	expect_id_at(_metadata, subject->maps, subject->addr, seed, size);
}

static void expect_none_at(struct __test_metadata *const _metadata, int maps,
			   const void *addr)
{
	expect_id_at(_metadata, maps, addr, 0, 0);
}

static void expect_none(struct __test_metadata *const _metadata,
			const struct subject *subject)
{
	expect_none_at(_metadata, subject->maps, subject->addr);
}

/*
 * The shape of the file. Where it lives does not matter here.
 */

FIXTURE(shape)
{
	struct subject subject;
	struct elf elf;		/* the plainest with a build ID */
};

FIXTURE_VARIANT(shape)
{
	bool is_32;
};

FIXTURE_VARIANT_ADD(shape, class_64) {
};

FIXTURE_VARIANT_ADD(shape, class_32) {
	.is_32 = true,
};

FIXTURE_SETUP(shape)
{
	const struct elf elf = {
		.is_32 = variant->is_32,
		.type = ET_DYN,
		.segments[0] = {
			.type = PT_NOTE,
			.notes = { BUILD_ID(1, 20) },
		},
	};

	self->elf = elf;
	ASSERT_TRUE(open_subject(&self->subject,
				 memfd_create("elf", MFD_CLOEXEC)));
}

FIXTURE_TEARDOWN(shape)
{
}

TEST_F(shape, every_size_from_1_to_20_is_told)
{
	uint8_t size;

	for (size = 1; size <= ID_MAX; size++) {
		self->elf.segments[0].notes[0].size = size;
		self->elf.segments[0].notes[0].seed = size;
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		expect_id(_metadata, &self->subject, size, size);
	}
}

TEST_F(shape, every_size_needs_a_buffer_as_long)
{
	struct procmap_query query;
	uint8_t id[ID_MAX];
	uint8_t size;

	for (size = 2; size <= ID_MAX; size++) {
		self->elf.segments[0].notes[0].size = size;
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		EXPECT_EQ(0, query_build_id(self->subject.maps,
					    (uintptr_t)self->subject.addr,
					    &query, id, size));
		EXPECT_EQ(-ENAMETOOLONG,
			  query_build_id(self->subject.maps,
					 (uintptr_t)self->subject.addr, &query,
					 id, size - 1));
	}
}

TEST_F(shape, no_other_size_is_told)
{
	static const uint32_t sizes[] = { 0, 21, 22, 24, 32, 64, 255, 4096 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		self->elf.segments[0].notes[0].size = sizes[i];
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		expect_none(_metadata, &self->subject);
	}
}

TEST_F(shape, only_executables_and_shared_objects_have_one)
{
	static const uint16_t types[] = {
		ET_NONE, ET_REL, ET_EXEC, ET_DYN, ET_CORE, 5, 0x100,
		ET_LOOS, ET_HIPROC, ET_EXEC << 8, ET_DYN << 8,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		self->elf.type = types[i];
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		if (types[i] == ET_EXEC || types[i] == ET_DYN)
			expect_id(_metadata, &self->subject, 1, 20);
		else
			expect_none(_metadata, &self->subject);
	}
}

TEST_F(shape, foreign_byte_order_has_none)
{
	self->elf.is_foreign = true;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_none(_metadata, &self->subject);
}

TEST_F(shape, notes_before_it_are_passed_over)
{
	const struct segment segment = {
		.type = PT_NOTE,
		.notes = { ABI_TAG, ODD_STRANGER, ABI_TAG, BUILD_ID(5, 20),
			   ABI_TAG },
	};

	self->elf.segments[0] = segment;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 5, 20);
}

/* The first note is no build ID; one behind it is found all the same. */
static void expect_passed_over(struct __test_metadata *const _metadata,
			       struct _test_data_shape *self)
{
	struct note *const second = &self->elf.segments[0].notes[1];

	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_none(_metadata, &self->subject);
	*second = (struct note)BUILD_ID(3, 8);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 3, 8);
	second->owner = NULL;
}

TEST_F(shape, wrong_owner_is_passed_over)
{
	static const char *const owners[] = {
		"", "G", "GN", "GNX", "gnu", "GNUx", "XGNU", "GNU\n", "Go",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(owners); i++) {
		self->elf.segments[0].notes[0].owner = owners[i];
		expect_passed_over(_metadata, self);
	}
}

TEST_F(shape, wrong_type_is_passed_over)
{
	static const uint32_t types[] = {
		0, 1, 2, 4, 5, 0x103, 0x03000000, 0x80000003, 0xffffffff,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		self->elf.segments[0].notes[0].type = types[i];
		expect_passed_over(_metadata, self);
	}
}

TEST_F(shape, later_note_segment_has_it)
{
	const struct segment segments[SEGMENTS_MAX] = {
		{ .type = PT_LOAD },
		{ .type = PT_NOTE, .notes = { ABI_TAG, STRANGER } },
		{ .type = PT_NOTE, .notes = { BUILD_ID(9, 16) } },
	};

	memcpy(self->elf.segments, segments, sizeof(segments));
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 9, 16);
}

TEST_F(shape, only_a_note_segment_has_it)
{
	self->elf.segments[0].type = PT_LOAD;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_none(_metadata, &self->subject);
}

TEST_F(shape, notes_aligned_to_8_are_found_behind_odd_ones)
{
	const struct segment segment = {
		.type = PT_NOTE,
		.align = 8,
		.notes = { ODD_STRANGER, STRANGER, ODD_STRANGER,
			   BUILD_ID(6, 20) },
	};

	self->elf.segments[0] = segment;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 6, 20);
}

TEST_F(shape, notes_aligned_to_4_are_found_behind_odd_ones)
{
	const struct segment segment = {
		.type = PT_NOTE,
		.notes = { ODD_STRANGER, STRANGER, ODD_STRANGER,
			   BUILD_ID(6, 20) },
	};
	static const uint8_t aligns[] = { 0, 1, 4 };
	size_t phdr, i;

	self->elf.segments[0] = segment;
	make_image(&self->subject.image, &self->elf);
	phdr = ehdr_size(&self->subject.image);
	for (i = 0; i < ARRAY_SIZE(aligns); i++) {
		put(&self->subject.image, phdr,
		    P_ALIGN, aligns[i]);
		ASSERT_TRUE(store(&self->subject));
		expect_id(_metadata, &self->subject, 6, 20);
	}
}

/*
 * Files and memory that can be mapped and have no build ID.
 */

FIXTURE(no_build_id)
{
	int maps;
	struct image image;	/* an ELF file that has one */
};

FIXTURE_SETUP(no_build_id)
{
	const struct elf elf = {
		.type = ET_DYN,
		.segments[0] = {
			.type = PT_NOTE,
			.notes = { BUILD_ID(1, 20) },
		},
	};

	make_image(&self->image, &elf);
	self->maps = open_maps(0);
	ASSERT_LE(0, self->maps);
}

FIXTURE_TEARDOWN(no_build_id)
{
}

TEST_F(no_build_id, anonymous_memory)
{
	static const int flags[] = { MAP_PRIVATE, MAP_SHARED };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		void *const addr = mmap(NULL, page_size(),
					PROT_READ | PROT_WRITE,
					flags[i] | MAP_ANONYMOUS, -1, 0);

		expect_none_at(_metadata, self->maps, addr);
	}
}

TEST_F(no_build_id, anonymous_memory_that_holds_an_elf)
{
	void *const addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_TRUE(addr != MAP_FAILED);
	memcpy(addr, self->image.bytes, self->image.size);
	expect_none_at(_metadata, self->maps, addr);
}

TEST_F(no_build_id, vdso)
{
	const unsigned long addr = getauxval(AT_SYSINFO_EHDR);

	if (!addr)
		SKIP(return, "this process has no [vdso]");
	ASSERT_EQ(0, memcmp((void *)addr, ELFMAG, SELFMAG));
	expect_none_at(_metadata, self->maps, (void *)addr);
}

TEST_F(no_build_id, device)
{
	const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	void *addr;

	if (fd < 0)
		SKIP(return, "no zero device");
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
		    0);
	ASSERT_TRUE(addr != MAP_FAILED);
	memcpy(addr, self->image.bytes, self->image.size);
	expect_none_at(_metadata, self->maps, addr);
}

/* It is mapped, and never touched: a read may have effects on the device. */
TEST_F(no_build_id, pseudo_file)
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
	expect_none_at(_metadata, self->maps, addr);
}

TEST_F(no_build_id, secret_memory)
{
	const int fd = syscall(__NR_memfd_secret, O_CLOEXEC);
	void *addr;

	if (fd < 0)
		SKIP(return, "no memfd_secret, CONFIG_SECRETMEM and its boot option");
	ASSERT_EQ(0, ftruncate(fd, page_size()));
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	ASSERT_TRUE(addr != MAP_FAILED);
	memcpy(addr, self->image.bytes, self->image.size);
	expect_none_at(_metadata, self->maps, addr);
}

FIXTURE(huge_page)
{
	struct huge_pool pool;
	uint8_t *addr;
	int maps;
};

FIXTURE_SETUP(huge_page)
{
	int fd;

	self->addr = MAP_FAILED;
	self->maps = open_maps(0);
	if (!add_huge_page(&self->pool))
		return;
	fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | HUGE_PAGE_FLAG);
	self->addr = mmap(NULL, HUGE_PAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	close(fd);
}

FIXTURE_TEARDOWN(huge_page)
{
	if (self->addr != MAP_FAILED)
		munmap(self->addr, HUGE_PAGE_SIZE);
	EXPECT_TRUE(remove_huge_page(&self->pool));
}

TEST_F(huge_page, has_none)
{
	struct image image = {};
	const struct elf elf = {
		.type = ET_DYN,
		.segments[0] = {
			.type = PT_NOTE,
			.notes = { BUILD_ID(1, 20) },
		},
	};

	if (self->addr == MAP_FAILED)
		SKIP(return, "no huge page is available");
	make_image(&image, &elf);
	memcpy(self->addr, image.bytes, image.size);
	expect_none_at(_metadata, self->maps, self->addr);
}

/*
 * Where the file lives.
 */

FIXTURE(place)
{
	const char *missing;	/* why there is no such place, or NULL */
	char path[64];		/* "" for a memfd */
	struct subject subject;
	struct elf elf;		/* the plainest with a build ID */
};

FIXTURE_VARIANT(place)
{
	enum place place;
};

/* On whatever file system the test runs. */
FIXTURE_VARIANT_ADD(place, directory) {
	.place = DIRECTORY,
};

FIXTURE_VARIANT_ADD(place, tmpfs) {
	.place = TMPFS,
};

FIXTURE_VARIANT_ADD(place, memfd) {
	.place = MEMFD,
};

FIXTURE_VARIANT_ADD(place, ext4) {
	.place = EXT4,
};

FIXTURE_SETUP(place)
{
	const struct elf elf = {
		.type = ET_DYN,
		.segments[0] = {
			.type = PT_NOTE,
			.notes = { BUILD_ID(1, 20) },
		},
	};

	self->elf = elf;
	self->missing = go_to(variant->place);
	if (self->missing)
		return;
	ASSERT_TRUE(open_subject(&self->subject,
				 open_new_file(variant->place, self->path,
					       sizeof(self->path))));
}

FIXTURE_TEARDOWN(place)
{
	if (self->path[0])
		unlink(self->path);
}

TEST_F(place, note_in_first_page)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 1, 20);
}

TEST_F(place, note_beyond_first_page)
{
	size_t page;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	for (page = 1; page < 4; page++) {
		self->elf.segments[0].offset = page * page_size();
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		expect_id(_metadata, &self->subject, 1, 20);
	}
}

/* In its header, its owner and its descriptor. */
TEST_F(place, note_straddles_pages)
{
	size_t before;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	for (before = 4; before < 12 + 4 + 20; before += 4) {
		self->elf.segments[0].offset = 2 * page_size() - before;
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		expect_id(_metadata, &self->subject, 1, 20);
	}
}

TEST_F(place, program_headers_in_a_later_page)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	self->elf.segments[0].offset = page_size() / 2;
	self->elf.phoff = 2 * page_size() + 8;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 1, 20);
}

TEST_F(place, program_headers_straddle_pages)
{
	const struct segment notes = self->elf.segments[0];
	size_t before, size;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	self->elf.segments[0].type = PT_LOAD;
	self->elf.segments[0].notes[0].owner = NULL;
	self->elf.segments[1] = notes;
	make_image(&self->subject.image, &self->elf);
	size = 2 * phdr_size(&self->subject.image);
	for (before = 8; before < size; before += 8) {
		self->elf.phoff = page_size() - before;
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		expect_id(_metadata, &self->subject, 1, 20);
	}
}

/* How many pages of the file are in memory, from a mapping never touched. */
static int resident_pages(const struct subject *subject)
{
	const size_t pages = (subject->image.size - 1) / page_size() + 1;
	void *const addr = mmap(NULL, pages * page_size(), PROT_READ,
				MAP_SHARED, subject->fd, 0);
	unsigned char resident[pages];
	int sum = 0;
	size_t i;

	if (addr == MAP_FAILED ||
	    mincore(addr, pages * page_size(), resident))
		return -1;
	munmap(addr, pages * page_size());
	for (i = 0; i < pages; i++)
		sum += resident[i] & 1;
	return sum;
}

TEST_F(place, pages_not_resident)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	self->elf.segments[0].offset = 2 * page_size() - 8;
	self->elf.phoff = page_size() - 8;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	ASSERT_EQ(0, fsync(self->subject.fd));
	ASSERT_EQ(0, posix_fadvise(self->subject.fd, 0, 0,
				   POSIX_FADV_DONTNEED));
	if (variant->place != EXT4 && resident_pages(&self->subject))
		SKIP(return, "this file system keeps its pages in memory");
	ASSERT_EQ(0, resident_pages(&self->subject));
	expect_id(_metadata, &self->subject, 1, 20);
	EXPECT_LT(0, resident_pages(&self->subject));
}

/* Blocks of 512 bytes that the file takes. */
static long blocks_of(int fd)
{
	struct stat status;

	return fsync(fd) || fstat(fd, &status) ? -1 : status.st_blocks;
}

TEST_F(place, hole_stays_a_hole)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_EQ(0, ftruncate(self->subject.fd, 1 << 20));
	ASSERT_EQ(0, blocks_of(self->subject.fd));
	expect_none(_metadata, &self->subject);
	EXPECT_EQ(0, blocks_of(self->subject.fd));
}

TEST_F(place, notes_in_a_hole_stay_a_hole)
{
	const struct image *const image = &self->subject.image;
	long blocks;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	self->elf.segments[0].offset = 2 * page_size();
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 1, 20);
	ASSERT_EQ(0, ftruncate(self->subject.fd, page_size()));
	ASSERT_EQ(0, ftruncate(self->subject.fd, image->size));
	blocks = blocks_of(self->subject.fd);
	ASSERT_LT(0, blocks);
	expect_none(_metadata, &self->subject);
	EXPECT_EQ(blocks, blocks_of(self->subject.fd));
}

TEST_F(place, mapping_of_a_later_part)
{
	static const size_t pages[] = { 1, 3, 4, 1000 };
	size_t i;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	ASSERT_EQ(0, ftruncate(self->subject.fd, 4 * page_size()));
	/* The last two start past the end of the file. */
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		expect_id_at(_metadata, self->subject.maps,
			     mmap(NULL, page_size(), PROT_READ, MAP_PRIVATE,
				  self->subject.fd, pages[i] * page_size()),
			     1, 20);
}

TEST_F(place, mapping_of_any_kind)
{
	static const int prots[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_EXEC,
	};
	size_t i;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	for (i = 0; i < ARRAY_SIZE(prots); i++) {
		expect_id_at(_metadata, self->subject.maps,
			     mmap(NULL, page_size(), prots[i], MAP_PRIVATE,
				  self->subject.fd, 0), 1, 20);
		expect_id_at(_metadata, self->subject.maps,
			     mmap(NULL, page_size(), prots[i], MAP_SHARED,
				  self->subject.fd, 0), 1, 20);
	}
}

/* The ID is the file's, not that of what a process makes of its memory. */
TEST_F(place, private_changes_do_not_count)
{
	uint8_t *addr;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE,
		    self->subject.fd, 0);
	ASSERT_TRUE(addr != MAP_FAILED);
	memset(addr, 0xff, page_size());
	expect_id_at(_metadata, self->subject.maps, addr, 1, 20);
}

TEST_F(place, deleted_file)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	if (!self->path[0])
		SKIP(return, "a memfd has no link to delete");
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	ASSERT_EQ(0, unlink(self->path));
	expect_id(_metadata, &self->subject, 1, 20);
}

TEST_F(place, changed_file_tells_its_new_one)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 1, 20);
	self->elf.segments[0].notes[0].seed = 77;
	self->elf.segments[0].notes[0].size = 12;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 77, 12);
}

TEST_F(place, file_that_is_no_elf_has_none)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	make_image(&self->subject.image, &self->elf);
	memcpy(self->subject.image.bytes, "#!/bin/true\n", 12);
	ASSERT_TRUE(store(&self->subject));
	expect_none(_metadata, &self->subject);
	memset(self->subject.image.bytes, 0xff, self->subject.image.size);
	ASSERT_TRUE(store(&self->subject));
	expect_none(_metadata, &self->subject);
}

TEST_F(place, empty_file_has_none)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	expect_none(_metadata, &self->subject);
}

TEST_F(place, sparse_file_has_none)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_EQ(0, ftruncate(self->subject.fd, 3 * page_size()));
	expect_none(_metadata, &self->subject);
}

/* The ID is the last in the file, so that each byte that is missing counts. */
TEST_F(place, truncated_file_has_none)
{
	off_t size;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 1, 20);
	for (size = self->subject.image.size - 1; size >= 0; size--) {
		ASSERT_EQ(0, ftruncate(self->subject.fd, size));
		expect_none(_metadata, &self->subject);
	}
}

TEST_F(place, file_truncated_around_a_page_has_none)
{
	off_t size;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	self->elf.segments[0].offset = page_size() - 16;
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	expect_id(_metadata, &self->subject, 1, 20);
	for (size = page_size() + 19; size > (off_t)page_size() - 17; size--) {
		ASSERT_EQ(0, ftruncate(self->subject.fd, size));
		expect_none(_metadata, &self->subject);
	}
}

/* Through a shared mapping, bytes can get behind the end of the file. */
TEST_F(place, bytes_past_the_end_of_the_file_do_not_count)
{
	uint8_t *addr;
	off_t end;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
		    self->subject.fd, 0);
	ASSERT_TRUE(addr != MAP_FAILED);
	for (end = self->subject.image.size - 1; end > 0; end -= 9) {
		ASSERT_EQ(0, ftruncate(self->subject.fd, end));
		memcpy(addr + end, self->subject.image.bytes + end,
		       self->subject.image.size - end);
		expect_none(_metadata, &self->subject);
	}
}

/*
 * Pages that are not there.
 */

FIXTURE(page)
{
	struct subject subject;
	char swap[32];		/* the device, or "" */
};

FIXTURE_SETUP(page)
{
	const struct elf elf = {
		.type = ET_DYN,
		.segments[0] = {
			.type = PT_NOTE,
			.notes = { BUILD_ID(1, 20) },
		},
	};

	make_image(&self->subject.image, &elf);
}

FIXTURE_TEARDOWN(page)
{
	if (self->swap[0])
		EXPECT_EQ(0, swapoff(self->swap));
}

/* Whoever watches the page would not see that it is there. */
TEST_F(page, missing_stays_missing)
{
	struct subject *const subject = &self->subject;
	const char *missing;
	int uffd;

	missing = open_userfaultfd(&uffd, UFFD_FEATURE_MISSING_SHMEM);
	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(open_subject(subject, memfd_create("elf", MFD_CLOEXEC)));
	ASSERT_EQ(0, ftruncate(subject->fd, page_size()));
	ASSERT_TRUE(watch_pages(uffd, subject->addr, page_size(),
				UFFDIO_REGISTER_MODE_MISSING));
	expect_none(_metadata, subject);
	EXPECT_EQ(0, resident_pages(subject));
	EXPECT_EQ(0, blocks_of(subject->fd));

	/* A page that is there cannot be given. */
	EXPECT_TRUE(give_page(uffd, subject->addr, subject->image.bytes));
	expect_id(_metadata, subject, 1, 20);
}

/* Page cache and direct I/O are apart, and such a file is mapped all the same. */
TEST_F(page, not_resident_of_a_file_opened_for_direct_io)
{
	struct subject *const subject = &self->subject;
	const char *const missing = go_to(EXT4);
	char path[64];
	void *addr;

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(open_subject(subject, open_new_file(EXT4, path,
							sizeof(path))));
	ASSERT_TRUE(store(subject));
	addr = mmap(NULL, page_size(), PROT_READ, MAP_PRIVATE,
		    open(path, O_RDONLY | O_DIRECT | O_CLOEXEC), 0);
	ASSERT_EQ(0, unlink(path));
	ASSERT_EQ(0, fsync(subject->fd));
	ASSERT_EQ(0, posix_fadvise(subject->fd, 0, 0, POSIX_FADV_DONTNEED));
	ASSERT_EQ(0, resident_pages(subject));
	expect_id_at(_metadata, subject->maps, addr, 1, 20);
}

/*
 * Of most file systems nobody knows that a read never waits for another user. Minix
 * stands for them.
 */
TEST_F(page, not_resident_is_not_read_on_any_file_system)
{
	struct subject *const subject = &self->subject;
	const char *const missing =
		mount_scratch_image("minix", "truncate -s 1M " SCRATCH_IMAGE
				    " && mkfs.minix " SCRATCH_IMAGE, SCRATCH_MINIX);
	char byte;

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(open_subject(subject, open(SCRATCH_MINIX "/elf",
					       O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
	ASSERT_TRUE(store(subject));
	/* A page of which not all was written is not up to date until it is read. */
	ASSERT_EQ(1, pread(subject->fd, &byte, 1, 0));
	expect_id(_metadata, subject, 1, 20);
	ASSERT_EQ(0, fsync(subject->fd));
	ASSERT_EQ(0, madvise(subject->addr, page_size(), MADV_DONTNEED));
	ASSERT_EQ(0, posix_fadvise(subject->fd, 0, 0, POSIX_FADV_DONTNEED));
	ASSERT_EQ(0, resident_pages(subject));
	expect_none(_metadata, subject);
	EXPECT_EQ(0, resident_pages(subject));
}

/* Swap to a loop device. Returns NULL, or why that cannot be. */
static const char *add_swap(char *device, size_t size)
{
	const size_t end = page_size();
	const uint32_t info[] = { 1, 255 };	/* version, last page */
	uint8_t header[end];
	int fd, loop;

	memset(header, 0, end);
	memcpy(header + 1024, info, sizeof(info));
	memcpy(header + end - 10, "SWAPSPACE2", 10);
	fd = open(SCRATCH_IMAGE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (write(fd, header, end) != (ssize_t)end ||
	    ftruncate(fd, 256 * end))
		return "no room for swap";
	close(fd);
	loop = open_loop(SCRATCH_IMAGE, device, size);
	if (loop < 0 || swapon(device, 0)) {
		*device = '\0';
		return "no swap, CONFIG_SWAP and CONFIG_BLK_DEV_LOOP";
	}
	close(loop);
	return NULL;
}

static bool has_swapped_pages(void)
{
	FILE *const file = fopen("/proc/self/smaps_rollup", "re");
	unsigned int kilobytes = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Swap: %u kB", &kilobytes) == 1)
			break;
	if (file)
		fclose(file);
	return kilobytes;
}

/* A page of a CPU's own list of new pages can only be swapped out there. */
static bool stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

TEST_F(page, in_swap_is_read)
{
	struct subject *const subject = &self->subject;
	const char *missing;

	missing = mount_scratch() ?:
		  add_swap(self->swap, sizeof(self->swap));
	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(stay_on_this_cpu());
	ASSERT_TRUE(open_subject(subject, memfd_create("elf", MFD_CLOEXEC)));
	ASSERT_TRUE(store(subject));
	ASSERT_EQ('E', atomic_load((_Atomic uint8_t *)(subject->addr + 1)));
	ASSERT_EQ(0, madvise(subject->addr, page_size(), MADV_PAGEOUT));
	ASSERT_TRUE(has_swapped_pages());
	expect_id(_metadata, subject, 1, 20);
}

/*
 * Nobody can be asked for permission on behalf of a query.
 */

static int query_then_read(int control, void *arg)
{
	const struct subject *subject = arg;
	struct procmap_query query;
	uint8_t id[ID_MAX];

	if (query_build_id(subject->maps, (uintptr_t)subject->addr, &query, id,
			   sizeof(id)) || query.build_id_size != 20)
		return 1;
	notify(control);
	await(control);
	return pread(subject->fd, id, 1, 0) == 1 ? 0 : 2;
}

/* Map the file by another open file at the same address. */
static bool open_and_map_again(struct subject *subject)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", subject->fd);
	subject->fd = open(path, O_RDONLY | O_CLOEXEC);
	return subject->fd >= 0 &&
	       mmap(subject->addr, page_size(), PROT_READ, MAP_SHARED | MAP_FIXED,
		    subject->fd, 0) == subject->addr;
}

enum first { NOBODY, CHILD, EVENT };

/* Who comes first: a permission event, or the child; NOBODY if time is up. */
static enum first who_comes_first(int fanotify, int control)
{
	struct pollfd fds[2] = {
		{ .fd = fanotify, .events = POLLIN },
		{ .fd = control, .events = POLLIN },
	};

	if (poll(fds, 2, PATIENCE * 1000) <= 0)
		return NOBODY;
	return fds[0].revents ? EVENT : CHILD;
}

static bool allow(int fanotify)
{
	struct fanotify_event_metadata event;
	struct fanotify_response response = { .response = FAN_ALLOW };

	if (read(fanotify, &event, sizeof(event)) != sizeof(event))
		return false;
	response.fd = event.fd;
	return write(fanotify, &response, sizeof(response)) ==
		       sizeof(response) && !close(event.fd);
}

TEST_F_TIMEOUT(place, query_makes_no_fanotify_permission_event, RACE_TIMEOUT)
{
	struct child child;
	enum first first;
	int fanotify;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	fanotify = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC,
				 O_RDONLY | O_LARGEFILE);
	if (fanotify < 0 ||
	    fanotify_mark(fanotify, FAN_MARK_ADD, FAN_ACCESS_PERM,
			  self->subject.fd, NULL))
		SKIP(return, "not root, or no CONFIG_FANOTIFY_ACCESS_PERMISSIONS");
	/* Later kernels make none for files that were opened before. */
	ASSERT_TRUE(open_and_map_again(&self->subject));
	ASSERT_EQ(0, fanotify_mark(fanotify, FAN_MARK_ADD, FAN_OPEN_PERM,
				   self->subject.fd, NULL));

	ASSERT_TRUE(start_child(&child, query_then_read, &self->subject));
	first = who_comes_first(fanotify, child.control);
	if (first != CHILD)
		stop_child(&child);
	ASSERT_EQ(CHILD, first);
	/* The mark works: reading the file itself does make one. */
	await(child.control);
	notify(child.control);
	ASSERT_EQ(EVENT, who_comes_first(fanotify, child.control));
	EXPECT_TRUE(allow(fanotify));
	EXPECT_EQ(0, end_of_child(&child));
}

/*
 * Files that lie.
 */

/* The answer is what the specification says; of a file that lies, or none. */
static void expect_as_specified(struct __test_metadata *const _metadata,
				const struct subject *subject,
				struct corpus *corpus)
{
	const struct reading reading = read_image(&subject->image);
	struct procmap_query query;
	uint8_t id[ID_MAX];

	ASSERT_EQ(0, query_build_id(subject->maps, (uintptr_t)subject->addr,
				    &query, id, sizeof(id))) {
		TH_LOG("with %s at %#jx", corpus->trying, corpus->value);
	}
	if (!reading.sound && !query.build_id_size)
		return;
	if (reading.sound && reading.size)
		corpus->with_id++;
	else if (reading.sound)
		corpus->without_id++;
	ASSERT_TRUE(reading.size == query.build_id_size &&
		    !memcmp(reading.id, id, reading.size)) {
		TH_LOG("%u bytes instead of %zu, with %s at %#jx",
		       query.build_id_size, reading.size, corpus->trying,
		       corpus->value);
	}
}

/*
 * Try every value in the first of @nr fields, with each every value in the
 * next, and so on.
 */
static void try_fields(struct __test_metadata *const _metadata,
		       struct subject *subject, struct corpus *corpus,
		       const struct corpus_field *field, size_t nr)
{
	const size_t pos = field->header + field->field.offset;
	uint8_t before[sizeof(uint64_t)];
	uint64_t now;
	size_t i;

	if (!nr) {
		expect_as_specified(_metadata, subject, corpus);
		return;
	}

	/* Another byte order may be what is put: keep the bytes themselves. */
	memcpy(before, subject->image.bytes + pos, field->field.size);
	now = get_field(&subject->image, field->header, field->field);
	for (i = 0; i < VALUES; i++) {
		corpus->trying = field->name;
		corpus->value = hostile_value(&subject->image, now, i);
		ASSERT_TRUE(store_field(subject, field, corpus->value));
		try_fields(_metadata, subject, corpus, field + 1, nr - 1);
		memcpy(subject->image.bytes + pos, before, field->field.size);
	}
	ASSERT_EQ((ssize_t)field->field.size,
		  pwrite(subject->fd, before, field->field.size, pos));
}

static void try_pair(struct __test_metadata *const _metadata,
		     struct subject *subject, struct corpus *corpus,
		     size_t header, enum field_name first,
		     enum field_name second)
{
	const struct corpus_field pair[] = {
		{ layouts[first].name, field_of(&subject->image, first),
		  header },
		{ layouts[second].name, field_of(&subject->image, second),
		  header },
	};

	try_fields(_metadata, subject, corpus, pair, ARRAY_SIZE(pair));
}

static const struct elf hostile_elf = {
	.type = ET_DYN,
	.segments = {
		{ .type = PT_LOAD },
		{ .type = PT_NOTE, .notes = { ABI_TAG, ODD_STRANGER } },
		{ .type = PT_NOTE, .notes = { STRANGER, BUILD_ID(1, 20) } },
	},
};

/* The file, and behind its last segment an ID that is none of its. */
static bool make_hostile_file(struct subject *subject, bool with_32)
{
	const struct note bait = BUILD_ID(0x40, 20);
	struct elf elf = hostile_elf;

	elf.is_32 = with_32;
	make_image(&subject->image, &elf);
	put_note(&subject->image, pad(subject->image.size, 4), 4, &bait);
	return store(subject);
}

static void try_each_field(struct __test_metadata *const _metadata,
			   struct subject *subject, struct corpus *corpus)
{
	size_t i;

	add_all(corpus, &subject->image);
	for (i = 0; i < corpus->nr; i++)
		try_fields(_metadata, subject, corpus, &corpus->fields[i], 1);
}

/* Sizes and offsets that are added or multiplied. */
static void try_pairs(struct __test_metadata *const _metadata,
		      struct subject *subject, struct corpus *corpus)
{
	const struct image *image = &subject->image;
	size_t i;

	try_pair(_metadata, subject, corpus, 0, E_PHOFF, E_PHNUM);
	try_pair(_metadata, subject, corpus, 0, E_PHENTSIZE, E_PHNUM);
	for (i = 0; i < SEGMENTS_MAX; i++)
		try_pair(_metadata, subject, corpus,
			 ehdr_size(image) + i * phdr_size(image), P_OFFSET,
			 P_FILESZ);
	for (i = 0; i < image->nr_notes; i++)
		try_pair(_metadata, subject, corpus, image->notes[i], N_NAMESZ,
			 N_DESCSZ);
}

static void try_hostile_files(struct __test_metadata *const _metadata,
			      struct subject *subject, bool with_32)
{
	struct corpus corpus = {};

	ASSERT_TRUE(make_hostile_file(subject, with_32));
	expect_id(_metadata, subject, 1, 20);
	try_each_field(_metadata, subject, &corpus);
	try_pairs(_metadata, subject, &corpus);
	expect_id(_metadata, subject, 1, 20);
	/* Most fields have nothing to do with notes; some rule them out. */
	EXPECT_LT(500u, corpus.with_id);
	EXPECT_LT(200u, corpus.without_id);
}

TEST_F(place, hostile_fields_of_class_64)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	try_hostile_files(_metadata, &self->subject, false);
}

TEST_F(place, hostile_fields_of_class_32)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	try_hostile_files(_metadata, &self->subject, true);
}

static void expect_id_or_none(struct __test_metadata *const _metadata,
			      const struct subject *subject, uint8_t seed,
			      size_t size)
{
	struct procmap_query query;
	uint8_t id[ID_MAX];

	ASSERT_EQ(0, query_build_id(subject->maps, (uintptr_t)subject->addr,
				    &query, id, sizeof(id)));
	if (query.build_id_size)
		expect_id(_metadata, subject, seed, size);
}

/* Make a file with @nr segments, each of which is the same zeroes. */
static bool make_sparse_file(struct subject *subject, size_t nr, off_t start,
			     off_t size)
{
	const struct elf elf = { .type = ET_DYN };
	struct image *image = &subject->image;
	size_t i;

	make_image(image, &elf);
	put(image, 0, E_PHNUM, nr);
	image->size += nr * phdr_size(image);
	for (i = 0; i < nr; i++)
		put_phdr(image, ehdr_size(image) + i * phdr_size(image),
			 PT_NOTE, start, size, 4);
	return store(subject) && !ftruncate(subject->fd, start + size);
}

/* A zero is a note without owner and descriptor, and takes its header alone. */
#define EMPTY_NOTES_SIZE	(1000000 * NHDR_SIZE)

TEST_F(place, a_million_notes_come_to_an_end)
{
	const struct elf elf = { .type = ET_DYN };
	const struct note note = BUILD_ID(1, 20);
	struct image last = {};
	const off_t start = 4096, end = start + EMPTY_NOTES_SIZE;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	make_image(&last, &elf);
	last.size = 0;
	put_note(&last, 0, 4, &note);
	ASSERT_TRUE(make_sparse_file(&self->subject, 1, start,
				     EMPTY_NOTES_SIZE + last.size));
	ASSERT_EQ((ssize_t)last.size,
		  pwrite(self->subject.fd, last.bytes, last.size, end));
	ASSERT_EQ(0, ftruncate(self->subject.fd, 1 << 30));
	expect_id_or_none(_metadata, &self->subject, 1, 20);
}

TEST_F(place, a_million_notes_a_hundred_times_come_to_an_end)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	ASSERT_TRUE(make_sparse_file(&self->subject, 100, 16 << 10,
				     EMPTY_NOTES_SIZE));
	expect_none(_metadata, &self->subject);
}

TEST_F(place, as_many_program_headers_as_can_be_come_to_an_end)
{
	if (self->missing)
		SKIP(return, "%s", self->missing);
	make_image(&self->subject.image, &self->elf);
	put(&self->subject.image, 0, E_PHOFF, page_size());
	put(&self->subject.image, 0, E_PHNUM, 0xffff);
	ASSERT_TRUE(store(&self->subject));
	ASSERT_EQ(0, ftruncate(self->subject.fd, page_size() + 0xffff * 56));
	expect_none(_metadata, &self->subject);
}

/*
 * Files that change.
 */

/* What another thread does, again and again, while the file is queried. */
struct rewriter {
	int fd;
	bool (*rewrite)(const struct rewriter *rewriter, unsigned int round);
	struct image versions[2];
	size_t pos;		/* of the one byte that changes, if it is one */
	unsigned int rounds;
	bool stop;
	bool failed;
};

static void *rewrite_until_stopped(void *arg)
{
	struct rewriter *rewriter = arg;

	while (!__atomic_load_n(&rewriter->stop, __ATOMIC_RELAXED)) {
		if (!rewriter->rewrite(rewriter, rewriter->rounds))
			rewriter->failed = true;
		__atomic_add_fetch(&rewriter->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static bool rewrite_all(const struct rewriter *rewriter, unsigned int round)
{
	const struct image *image = &rewriter->versions[round % 2];

	return !ftruncate(rewriter->fd, 0) &&
	       pwrite(rewriter->fd, image->bytes, image->size, 0) ==
		       (ssize_t)image->size;
}

static bool rewrite_byte(const struct rewriter *rewriter, unsigned int round)
{
	const uint8_t *byte = rewriter->versions[round % 2].bytes +
			      rewriter->pos;

	return pwrite(rewriter->fd, byte, 1, rewriter->pos) == 1;
}

static bool is_id_of(const struct image *image, const uint8_t *id, size_t size)
{
	const struct reading reading = read_image(image);

	return size == reading.size && !memcmp(id, reading.id, size);
}

static unsigned int rounds_of(const struct rewriter *rewriter)
{
	return __atomic_load_n(&rewriter->rounds, __ATOMIC_RELAXED);
}

static bool has_two_cpus(void)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

/*
 * Each answer is one of the versions, or none where there may be none, but not always.
 * Queries and rewrites must overlap, or nothing has been tested.
 */
static void query_meanwhile(struct __test_metadata *const _metadata,
			    const struct subject *subject,
			    struct rewriter *rewriter, bool may_have_none)
{
	unsigned int round, before, overlaps = 0, ids = 0;
	struct procmap_query query;
	uint8_t id[ID_MAX];
	pthread_t thread;

	rewriter->fd = subject->fd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, rewrite_until_stopped,
				    rewriter));
	for (round = 0; (round < ROUNDS || overlaps < OVERLAPS) && !is_late();
	     round++) {
		before = rounds_of(rewriter);
		ASSERT_EQ(0, query_build_id(subject->maps,
					    (uintptr_t)subject->addr, &query,
					    id, sizeof(id)));
		/* A rewrite has ended since: it was going on meanwhile. */
		overlaps += rounds_of(rewriter) != before;
		if (may_have_none && !query.build_id_size)
			continue;
		ids++;
		ASSERT_TRUE(is_id_of(&rewriter->versions[0], id,
				     query.build_id_size) ||
			    is_id_of(&rewriter->versions[1], id,
				     query.build_id_size));
	}
	__atomic_store_n(&rewriter->stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_FALSE(rewriter->failed);
	EXPECT_LT(0U, ids);
	EXPECT_LE((unsigned int)OVERLAPS, overlaps) {
		TH_LOG("too few rewrites during a query in %d seconds",
		       PATIENCE);
	}
}

TEST_F_TIMEOUT(place, truncated_and_rewritten_meanwhile, RACE_TIMEOUT)
{
	struct rewriter rewriter = { .rewrite = rewrite_all };

	if (self->missing)
		SKIP(return, "%s", self->missing);
	if (!has_two_cpus())
		SKIP(return, "two CPUs are needed");
	make_image(&rewriter.versions[0], &self->elf);
	self->elf.segments[0].notes[0].seed = 77;
	self->elf.segments[0].notes[0].size = 12;
	make_image(&rewriter.versions[1], &self->elf);
	query_meanwhile(_metadata, &self->subject, &rewriter, true);
}

/* Which of two program headers there is follows from one byte. */
TEST_F_TIMEOUT(place, changed_in_one_byte_meanwhile, RACE_TIMEOUT)
{
	struct rewriter rewriter = { .rewrite = rewrite_byte };
	const struct segment other = {
		.type = PT_NOTE,
		.notes = { BUILD_ID(77, 20) },
	};
	struct image *image;
	size_t phoff, i;

	if (self->missing)
		SKIP(return, "%s", self->missing);
	if (!has_two_cpus())
		SKIP(return, "two CPUs are needed");
	self->elf.segments[1] = other;
	for (i = 0; i < 2; i++) {
		image = &rewriter.versions[i];
		make_image(image, &self->elf);
		phoff = ehdr_size(image) + i * phdr_size(image);
		put(image, 0, E_PHOFF, phoff);
		put(image, 0, E_PHNUM, 1);
	}
	rewriter.pos = place_of(image, 0, field_of(image, E_PHOFF), 0);
	self->subject.image = rewriter.versions[0];
	ASSERT_TRUE(store(&self->subject));
	query_meanwhile(_metadata, &self->subject, &rewriter, false);
}

/*
 * Files that others have made.
 */

TEST(programs_and_libraries_have_the_ids_that_their_files_say)
{
	const uint64_t executable = PROCMAP_QUERY_VMA_EXECUTABLE;
	const int fd = open_maps(0);
	struct corpus corpus = {};
	struct maps maps;
	size_t i;

	ASSERT_EQ(0, read_maps(fd, &maps));
	for (i = 0; i < maps.nr; i++) {
		const struct maps_line *line = &maps.lines[i];
		struct subject subject = { .maps = fd };

		if (!(line->flags & executable) || line->name[0] != '/')
			continue;
		subject.fd = open(line->name, O_RDONLY | O_CLOEXEC);
		subject.addr = (uint8_t *)(uintptr_t)line->start;
		subject.image.size = lseek(subject.fd, 0, SEEK_END);
		subject.image.bytes = mmap(NULL, subject.image.size, PROT_READ,
					   MAP_PRIVATE, subject.fd, 0);
		ASSERT_TRUE(subject.image.bytes != MAP_FAILED);
		expect_as_specified(_metadata, &subject, &corpus);
		munmap(subject.image.bytes, subject.image.size);
		close(subject.fd);
	}
	if (!corpus.with_id)
		SKIP(return, "no program or library here has a build ID");
}

TEST_HARNESS_MAIN
