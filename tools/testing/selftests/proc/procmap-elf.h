/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ELF files to find a build ID in: how they are made, and where they live.
 */
#ifndef PROCMAP_ELF_H
#define PROCMAP_ELF_H

#include <elf.h>
#include <sys/mman.h>

#include "procmap-build-id.h"

/* The largest file that a test makes, and pages that the kernel may have. */
#define IMAGE_MAX	(64 * page_size())

#define NOTES_MAX	8
#define SEGMENTS_MAX	3

static inline uint64_t align_to(uint64_t size, uint64_t align)
{
	return (size + align - 1) / align * align;
}

/* An ELF file, byte for byte. */
struct image {
	uint8_t *bytes;
	size_t size;
	size_t notes[NOTES_MAX];	/* where each of them is */
	size_t nr_notes;
};

/* A field of a header: where in it, and of how many bytes. */
struct field {
	size_t offset;
	size_t size;
};

enum field_name {
	E_TYPE, E_MACHINE, E_VERSION, E_ENTRY, E_PHOFF, E_SHOFF, E_FLAGS,
	E_EHSIZE, E_PHENTSIZE, E_PHNUM, E_SHENTSIZE, E_SHNUM, E_SHSTRNDX,
	P_TYPE, P_FLAGS, P_OFFSET, P_VADDR, P_PADDR, P_FILESZ, P_MEMSZ,
	P_ALIGN,
	N_NAMESZ, N_DESCSZ, N_TYPE,
};

/* As the specification has it, not as the headers that the kernel shares. */
static const struct layout {
	struct field in_64, in_32;
} layouts[] = {
	[E_TYPE]	= { { 16, 2 }, { 16, 2 } },
	[E_MACHINE]	= { { 18, 2 }, { 18, 2 } },
	[E_VERSION]	= { { 20, 4 }, { 20, 4 } },
	[E_ENTRY]	= { { 24, 8 }, { 24, 4 } },
	[E_PHOFF]	= { { 32, 8 }, { 28, 4 } },
	[E_SHOFF]	= { { 40, 8 }, { 32, 4 } },
	[E_FLAGS]	= { { 48, 4 }, { 36, 4 } },
	[E_EHSIZE]	= { { 52, 2 }, { 40, 2 } },
	[E_PHENTSIZE]	= { { 54, 2 }, { 42, 2 } },
	[E_PHNUM]	= { { 56, 2 }, { 44, 2 } },
	[E_SHENTSIZE]	= { { 58, 2 }, { 46, 2 } },
	[E_SHNUM]	= { { 60, 2 }, { 48, 2 } },
	[E_SHSTRNDX]	= { { 62, 2 }, { 50, 2 } },
	[P_TYPE]	= { { 0, 4 }, { 0, 4 } },
	[P_FLAGS]	= { { 4, 4 }, { 24, 4 } },
	[P_OFFSET]	= { { 8, 8 }, { 4, 4 } },
	[P_VADDR]	= { { 16, 8 }, { 8, 4 } },
	[P_PADDR]	= { { 24, 8 }, { 12, 4 } },
	[P_FILESZ]	= { { 32, 8 }, { 16, 4 } },
	[P_MEMSZ]	= { { 40, 8 }, { 20, 4 } },
	[P_ALIGN]	= { { 48, 8 }, { 28, 4 } },
	[N_NAMESZ]	= { { 0, 4 }, { 0, 4 } },
	[N_DESCSZ]	= { { 4, 4 }, { 4, 4 } },
	[N_TYPE]	= { { 8, 4 }, { 8, 4 } },
};

#define NHDR_SIZE	12

static inline bool is_32(const struct image *image)
{
	return image->bytes[EI_CLASS] == ELFCLASS32;
}

static inline size_t ehdr_size(const struct image *image)
{
	return is_32(image) ? 52 : 64;
}

static inline size_t phdr_size(const struct image *image)
{
	return is_32(image) ? 32 : 56;
}

static inline uint8_t host_order(void)
{
	const uint16_t one = 1;

	return *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB;
}

/* Return the offset in @image of the byte of @field that counts 256 to the power of @i. */
static inline size_t byte_of_field(const struct image *image, size_t header,
				   struct field field, size_t i)
{
	if (image->bytes[EI_DATA] == ELFDATA2MSB)
		i = field.size - 1 - i;
	return header + field.offset + i;
}

static inline void elf_put_field(struct image *image, size_t header,
				 struct field field, uint64_t value)
{
	size_t i;

	for (i = 0; i < field.size; i++)
		image->bytes[byte_of_field(image, header, field, i)] =
			value >> (8 * i);
}

static inline uint64_t elf_get_field(const struct image *image, size_t header,
				     struct field field)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < field.size; i++)
		value |= (uint64_t)image->bytes[byte_of_field(image, header, field,
							      i)] << (8 * i);
	return value;
}

static inline struct field elf_field(const struct image *image,
				     enum field_name name)
{
	return is_32(image) ? layouts[name].in_32 : layouts[name].in_64;
}

static inline void elf_put(struct image *image, size_t header,
			   enum field_name name, uint64_t value)
{
	elf_put_field(image, header, elf_field(image, name), value);
}

static inline uint64_t elf_get(const struct image *image, size_t header,
			       enum field_name name)
{
	return elf_get_field(image, header, elf_field(image, name));
}

/* The bytes of its descriptor follow from the seed. */
struct note {
	const char *owner;	/* NULL: none follows */
	uint32_t type;
	uint32_t size;
	uint8_t seed;
};

struct segment {
	uint32_t type;		/* PT_NULL: none follows */
	uint64_t offset;	/* 0: behind all that comes before */
	uint64_t align;		/* 0: 4 */
	struct note notes[NOTES_MAX];
};

struct elf {
	bool is_32;
	uint16_t type;
	size_t phoff;		/* 0: right behind the ELF header */
	struct segment segments[SEGMENTS_MAX];
};

#define BUILD_ID(id_seed, id_size) \
	{ .owner = "GNU", .type = NT_GNU_BUILD_ID, .seed = (id_seed), \
	  .size = (id_size) }

/* Notes that are no build IDs: of its owner, of its type, of an odd size. */
#define ABI_TAG \
	{ .owner = "GNU", .type = NT_GNU_ABI_TAG, .seed = 0x80, .size = 16 }
#define STRANGER \
	{ .owner = "GNX", .type = NT_GNU_BUILD_ID, .seed = 0x90, .size = 20 }
#define ODD_STRANGER \
	{ .owner = "stranger", .type = NT_GNU_BUILD_ID, .seed = 0xa0, \
	  .size = 13 }

static inline uint8_t id_byte(uint8_t seed, size_t i)
{
	return seed + 7 * i;
}

static inline void grow_image(struct image *image, size_t size)
{
	if (image->size < size)
		image->size = size;
}

/* Returns where the note ends, before padding. */
static inline size_t put_note(struct image *image, size_t pos, size_t align,
			      const struct note *note)
{
	const size_t owner_size = strlen(note->owner) + 1;
	const size_t desc = pos + align_to(NHDR_SIZE + owner_size, align);
	size_t i;

	elf_put(image, pos, N_NAMESZ, owner_size);
	elf_put(image, pos, N_DESCSZ, note->size);
	elf_put(image, pos, N_TYPE, note->type);
	memcpy(image->bytes + pos + NHDR_SIZE, note->owner,
	       owner_size);
	for (i = 0; i < note->size; i++)
		image->bytes[desc + i] = id_byte(note->seed, i);
	image->notes[image->nr_notes++] = pos;
	grow_image(image, desc + note->size);
	return desc + note->size;
}

static inline void put_phdr(struct image *image, size_t phdr, uint32_t type,
			    uint64_t start, uint64_t size, uint64_t align)
{
	elf_put(image, phdr, P_TYPE, type);
	elf_put(image, phdr, P_OFFSET, start);
	elf_put(image, phdr, P_VADDR, start);
	elf_put(image, phdr, P_PADDR, start);
	elf_put(image, phdr, P_FILESZ, size);
	elf_put(image, phdr, P_MEMSZ, size);
	elf_put(image, phdr, P_FLAGS, PF_R);
	elf_put(image, phdr, P_ALIGN, align);
}

static inline void put_segment(struct image *image, size_t phdr,
			       const struct segment *segment)
{
	const size_t align = segment->align ?: 4;
	const size_t start = segment->offset ?: align_to(image->size, align);
	size_t end = start;
	size_t i;

	for (i = 0; i < NOTES_MAX && segment->notes[i].owner; i++)
		end = put_note(image, start + align_to(end - start, align), align,
			       &segment->notes[i]);

	put_phdr(image, phdr, segment->type, start, end - start, align);
}

static inline void make_image(struct image *image, const struct elf *elf)
{
	size_t phoff, nr, i;

	if (!image->bytes)
		image->bytes = malloc(IMAGE_MAX);
	memset(image->bytes, 0, IMAGE_MAX);
	image->size = 0;
	image->nr_notes = 0;

	memcpy(image->bytes, ELFMAG, SELFMAG);
	image->bytes[EI_CLASS] = elf->is_32 ? ELFCLASS32 : ELFCLASS64;
	image->bytes[EI_DATA] = host_order();
	image->bytes[EI_VERSION] = EV_CURRENT;

	phoff = elf->phoff ?: ehdr_size(image);
	for (nr = 0; nr < SEGMENTS_MAX && elf->segments[nr].type; nr++)
		;
	grow_image(image, phoff + nr * phdr_size(image));
	elf_put(image, 0, E_TYPE, elf->type);
	elf_put(image, 0, E_VERSION, EV_CURRENT);
	elf_put(image, 0, E_PHOFF, phoff);
	elf_put(image, 0, E_EHSIZE, ehdr_size(image));
	elf_put(image, 0, E_PHENTSIZE, phdr_size(image));
	elf_put(image, 0, E_PHNUM, nr);
	for (i = 0; i < nr; i++)
		put_segment(image, phoff + i * phdr_size(image),
			    &elf->segments[i]);
}

/*
 * The file under test, mapped by this process. It has no name.
 */

enum place { TMPFS, EXT4 };

struct subject {
	enum way way;		/* how its build ID is looked up */
	int fd;
	int maps;
	uint8_t *addr;
	struct image image;
};

/*
 * To make an ext4 takes longer than a test takes, so the tests share one, which is
 * made before the first of them runs. It is mounted in no namespace any more, and
 * disappears with this process.
 */
static const char *ext4_missing = "no child to mount an ext4";
static int ext4_directory = -1;

static inline int lend_ext4(int control, void *arg)
{
	const char *missing = mount_scratch_ext4();

	(void)arg;
	if (write(control, &missing, sizeof(missing)) != sizeof(missing))
		return 1;
	return missing ||
	       !send_fd(control, open(SCRATCH_DISK, O_RDONLY | O_DIRECTORY));
}

static void __attribute__((constructor)) borrow_ext4(void)
{
	const char *missing;
	struct child child;

	if (!start_child(&child, lend_ext4, NULL))
		return;
	if (read(child.control, &missing, sizeof(missing)) == sizeof(missing)) {
		ext4_missing = missing;
		ext4_directory = recv_fd(child.control);
	}
	end_of_child(&child);
}

static inline int open_new_file(enum place place)
{
	if (place == TMPFS)
		return memfd_create("elf", MFD_CLOEXEC);
	return openat(ext4_directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

/* Open an empty file and map its first page. Skips the test, in its setup. */
static inline void open_subject(struct __test_metadata *const _metadata,
				struct subject *subject, enum way way,
				enum place place)
{
	skip_without_way(_metadata, way);
	if (place == EXT4 && ext4_missing)
		SKIP_SETUP(ext4_missing);
	subject->way = way;
	subject->fd = open_new_file(place);
	ASSERT_LE(0, subject->fd);
	subject->maps = open_maps(0);
	ASSERT_LE(0, subject->maps);
	subject->addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED,
			     subject->fd, 0);
	ASSERT_TRUE(subject->addr != MAP_FAILED);
}

/*
 * Make it all of the file. A page of which only a part was written may not be up to
 * date until there is a page fault.
 */
static inline bool write_image(int fd, const struct image *image)
{
	const ssize_t size = image->size;
	void *addr;

	if (ftruncate(fd, 0) || pwrite(fd, image->bytes, size, 0) != size)
		return false;
	addr = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	return !size || (!madvise(addr, size, MADV_POPULATE_READ) &&
			 !munmap(addr, size));
}

static inline bool write_subject(const struct subject *subject)
{
	return write_image(subject->fd, &subject->image);
}

#endif /* PROCMAP_ELF_H */
