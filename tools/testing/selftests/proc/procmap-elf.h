/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ELF files to find a build ID in: how they are made, how each field of their
 * headers is changed, and where they live.
 */
#ifndef PROCMAP_ELF_H
#define PROCMAP_ELF_H

#include <elf.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "../kselftest_harness.h"
#include "procmap-query.h"

#define ID_MAX		20

/* The largest file that a test makes, and pages that the kernel may have. */
#define IMAGE_MAX	(4 * 65536)

#define NOTES_MAX	8
#define SEGMENTS_MAX	3

static inline uint64_t pad(uint64_t size, uint64_t align)
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
	const char *name;
	struct field in_64, in_32;
} layouts[] = {
	[E_TYPE]	= { "e_type",		{ 16, 2 }, { 16, 2 } },
	[E_MACHINE]	= { "e_machine",	{ 18, 2 }, { 18, 2 } },
	[E_VERSION]	= { "e_version",	{ 20, 4 }, { 20, 4 } },
	[E_ENTRY]	= { "e_entry",		{ 24, 8 }, { 24, 4 } },
	[E_PHOFF]	= { "e_phoff",		{ 32, 8 }, { 28, 4 } },
	[E_SHOFF]	= { "e_shoff",		{ 40, 8 }, { 32, 4 } },
	[E_FLAGS]	= { "e_flags",		{ 48, 4 }, { 36, 4 } },
	[E_EHSIZE]	= { "e_ehsize",		{ 52, 2 }, { 40, 2 } },
	[E_PHENTSIZE]	= { "e_phentsize",	{ 54, 2 }, { 42, 2 } },
	[E_PHNUM]	= { "e_phnum",		{ 56, 2 }, { 44, 2 } },
	[E_SHENTSIZE]	= { "e_shentsize",	{ 58, 2 }, { 46, 2 } },
	[E_SHNUM]	= { "e_shnum",		{ 60, 2 }, { 48, 2 } },
	[E_SHSTRNDX]	= { "e_shstrndx",	{ 62, 2 }, { 50, 2 } },
	[P_TYPE]	= { "p_type",		{ 0, 4 }, { 0, 4 } },
	[P_FLAGS]	= { "p_flags",		{ 4, 4 }, { 24, 4 } },
	[P_OFFSET]	= { "p_offset",		{ 8, 8 }, { 4, 4 } },
	[P_VADDR]	= { "p_vaddr",		{ 16, 8 }, { 8, 4 } },
	[P_PADDR]	= { "p_paddr",		{ 24, 8 }, { 12, 4 } },
	[P_FILESZ]	= { "p_filesz",		{ 32, 8 }, { 16, 4 } },
	[P_MEMSZ]	= { "p_memsz",		{ 40, 8 }, { 20, 4 } },
	[P_ALIGN]	= { "p_align",		{ 48, 8 }, { 28, 4 } },
	[N_NAMESZ]	= { "n_namesz",		{ 0, 4 }, { 0, 4 } },
	[N_DESCSZ]	= { "n_descsz",		{ 4, 4 }, { 4, 4 } },
	[N_TYPE]	= { "n_type",		{ 8, 4 }, { 8, 4 } },
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

/* Where the byte of value 256 to the power of @i is in a field. */
static inline size_t place_of(const struct image *image, size_t header,
			      struct field field, size_t i)
{
	if (image->bytes[EI_DATA] == ELFDATA2MSB)
		i = field.size - 1 - i;
	return header + field.offset + i;
}

static inline void put_field(struct image *image, size_t header,
			     struct field field, uint64_t value)
{
	size_t i;

	for (i = 0; i < field.size; i++)
		image->bytes[place_of(image, header, field, i)] =
			value >> (8 * i);
}

static inline uint64_t get_field(const struct image *image, size_t header,
				 struct field field)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < field.size; i++)
		value |= (uint64_t)image->bytes[place_of(image, header, field,
							 i)] << (8 * i);
	return value;
}

static inline struct field field_of(const struct image *image,
				    enum field_name name)
{
	return is_32(image) ? layouts[name].in_32 : layouts[name].in_64;
}

static inline void put(struct image *image, size_t header,
		       enum field_name name, uint64_t value)
{
	put_field(image, header, field_of(image, name), value);
}

static inline uint64_t get(const struct image *image, size_t header,
			   enum field_name name)
{
	return get_field(image, header, field_of(image, name));
}

/*
 * The ELF maker.
 */

/* Its descriptor is an ID that follows from the seed. */
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
	bool is_foreign;	/* of the other byte order */
	uint16_t type;
	size_t phoff;		/* 0: right behind the ELF header */
	struct segment segments[SEGMENTS_MAX];
};

#define BUILD_ID(id_seed, id_size) \
	{ .owner = "GNU", .type = NT_GNU_BUILD_ID, .seed = (id_seed), \
	  .size = (id_size) }

/* What other notes look like: same owner, same type, an odd size. */
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

static inline void grow_to(struct image *image, size_t size)
{
	if (image->size < size)
		image->size = size;
}

/* Returns where the note ends, before padding. */
static inline size_t put_note(struct image *image, size_t pos, size_t align,
			      const struct note *note)
{
	const size_t owner_size = strlen(note->owner) + 1;
	const size_t desc = pos + pad(NHDR_SIZE + owner_size, align);
	size_t i;

	put(image, pos, N_NAMESZ, owner_size);
	put(image, pos, N_DESCSZ, note->size);
	put(image, pos, N_TYPE, note->type);
	memcpy(image->bytes + pos + NHDR_SIZE, note->owner,
	       owner_size);
	for (i = 0; i < note->size; i++)
		image->bytes[desc + i] = id_byte(note->seed, i);
	image->notes[image->nr_notes++] = pos;
	grow_to(image, desc + note->size);
	return desc + note->size;
}

static inline void put_phdr(struct image *image, size_t phdr, uint32_t type,
			    uint64_t start, uint64_t size, uint64_t align)
{
	put(image, phdr, P_TYPE, type);
	put(image, phdr, P_OFFSET, start);
	put(image, phdr, P_VADDR, start);
	put(image, phdr, P_PADDR, start);
	put(image, phdr, P_FILESZ, size);
	put(image, phdr, P_MEMSZ, size);
	put(image, phdr, P_FLAGS, PF_R);
	put(image, phdr, P_ALIGN, align);
}

static inline void put_segment(struct image *image, size_t phdr,
			       const struct segment *segment)
{
	const size_t align = segment->align ?: 4;
	const size_t start = segment->offset ?: pad(image->size, align);
	size_t end = start;
	size_t i;

	for (i = 0; i < NOTES_MAX && segment->notes[i].owner; i++)
		end = put_note(image, start + pad(end - start, align), align,
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
	if (elf->is_foreign)
		image->bytes[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
	image->bytes[EI_VERSION] = EV_CURRENT;

	phoff = elf->phoff ?: ehdr_size(image);
	for (nr = 0; nr < SEGMENTS_MAX && elf->segments[nr].type; nr++)
		;
	grow_to(image, phoff + nr * phdr_size(image));
	put(image, 0, E_TYPE, elf->type);
	put(image, 0, E_VERSION, EV_CURRENT);
	put(image, 0, E_PHOFF, phoff);
	put(image, 0, E_EHSIZE, ehdr_size(image));
	put(image, 0, E_PHENTSIZE, phdr_size(image));
	put(image, 0, E_PHNUM, nr);
	for (i = 0; i < nr; i++)
		put_segment(image, phoff + i * phdr_size(image),
			    &elf->segments[i]);
}

/*
 * The file under test, mapped by this process.
 */

struct subject {
	int fd;
	int maps;
	uint8_t *addr;
	struct image image;
};

static inline bool open_subject(struct subject *subject, int fd)
{
	subject->fd = fd;
	subject->maps = open_maps(0);
	subject->addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
	return fd >= 0 && subject->maps >= 0 && subject->addr != MAP_FAILED;
}

static inline bool store(struct subject *subject)
{
	const struct image *image = &subject->image;

	return !ftruncate(subject->fd, 0) &&
	       pwrite(subject->fd, image->bytes, image->size, 0) ==
		       (ssize_t)image->size;
}

/*
 * Where the file lives.
 */

enum place { DIRECTORY, TMPFS, MEMFD, EXT4 };

/*
 * An ext4 takes longer to make than the tests take: they share one, which is
 * made before the first of them runs. It is nowhere mounted any more, and goes
 * with this process.
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
	       !send_fd(control, open(SCRATCH_EXT4, O_RDONLY | O_DIRECTORY));
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

/* Returns NULL, or why the place cannot be had. */
static inline const char *go_to(enum place place)
{
	struct statfs fs;

	switch (place) {
	case DIRECTORY:
		return access(".", W_OK) ? "cannot write to this directory" :
					   NULL;
	case TMPFS:
		if (chdir("/dev/shm") || statfs(".", &fs) ||
		    fs.f_type != TMPFS_MAGIC)
			return "the shared memory directory is no tmpfs";
		return NULL;
	case EXT4:
		if (!ext4_missing && fchdir(ext4_directory))
			return "cannot enter the ext4";
		return ext4_missing;
	default:
		return NULL;
	}
}

static inline int open_new_file(enum place place, char *path, size_t size)
{
	if (place == MEMFD)
		return memfd_create("elf", MFD_CLOEXEC);
	snprintf(path, size, "procmap-query-%d", getpid());
	return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/*
 * Files that lie.
 */

struct corpus_field {
	const char *name;
	struct field field;
	size_t header;
};

struct corpus {
	struct corpus_field fields[256];
	size_t nr;
	unsigned int with_id;		/* files that must have one */
	unsigned int without_id;	/* files that must have none */
	const char *trying;		/* the field changed last */
	uintmax_t value;
};

static inline void add_field(struct corpus *corpus, const char *name,
			     size_t header, struct field field)
{
	const struct corpus_field new = { name, field, header };

	if (corpus->nr < ARRAY_SIZE(corpus->fields))
		corpus->fields[corpus->nr++] = new;
}

static inline void add_fields(struct corpus *corpus, const struct image *image,
			      size_t header, enum field_name first,
			      enum field_name last)
{
	enum field_name name;

	for (name = first; name <= last; name++)
		add_field(corpus, layouts[name].name, header,
			  field_of(image, name));
}

static inline void add_all(struct corpus *corpus, const struct image *image)
{
	struct field byte = { 0, 1 };
	size_t i;

	for (; byte.offset < EI_NIDENT; byte.offset++)
		add_field(corpus, "e_ident", 0, byte);
	add_fields(corpus, image, 0, E_TYPE, E_SHSTRNDX);
	for (i = 0; i < get(image, 0, E_PHNUM); i++)
		add_fields(corpus, image,
			   get(image, 0, E_PHOFF) + i * phdr_size(image),
			   P_TYPE, P_ALIGN);
	for (i = 0; i < image->nr_notes; i++)
		add_fields(corpus, image, image->notes[i], N_NAMESZ, N_TYPE);
}

#define VALUES	18

/* What is put in a field: the edges, and what makes a careless sum wrap. */
static inline uint64_t hostile_value(const struct image *image, uint64_t now,
				     size_t i)
{
	const uint64_t values[VALUES] = {
		0, 1, now - 1, now + 1, now - 4, now + 4, ~0ull, ~0ull - 1,
		~0ull >> 1, (~0ull >> 1) + 1, INT32_MAX, (uint64_t)INT32_MAX + 1,
		-12, -16, image->size, image->size - 1, image->size + 1,
		page_size(),
	};

	return values[i];
}

static inline bool store_field(struct subject *subject,
			       const struct corpus_field *field, uint64_t value)
{
	const size_t pos = field->header + field->field.offset;

	put_field(&subject->image, field->header, field->field, value);
	return pwrite(subject->fd, subject->image.bytes + pos,
		      field->field.size, pos) == (ssize_t)field->field.size;
}

#endif /* PROCMAP_ELF_H */
