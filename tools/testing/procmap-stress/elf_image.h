/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ELF files to find a build ID in, byte for byte.
 */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include "procmap_util.h"

/* The largest file that a test makes, and pages that the kernel may have. */
#define IMAGE_MAX	(64 * page_size())

#define NOTES_MAX	8
#define SEGMENTS_MAX	3

uint64_t align_to(uint64_t size, uint64_t align);

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

#define NHDR_SIZE	12

size_t ehdr_size(const struct image *image);
size_t phdr_size(const struct image *image);
uint8_t host_order(void);

struct field elf_field(const struct image *image, enum field_name name);
void elf_put_field(struct image *image, size_t header, struct field field, uint64_t value);
uint64_t elf_get_field(const struct image *image, size_t header, struct field field);
void elf_put(struct image *image, size_t header, enum field_name name, uint64_t value);
uint64_t elf_get(const struct image *image, size_t header, enum field_name name);

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

uint8_t id_byte(uint8_t seed, size_t i);
void grow_image(struct image *image, size_t size);
/* Returns where the note ends, before padding. */
size_t put_note(struct image *image, size_t pos, size_t align, const struct note *note);
void make_image(struct image *image, const struct elf *elf);

#endif /* ELF_IMAGE_H */
