// SPDX-License-Identifier: GPL-2.0
/*
 * ELF files to find a build ID in, byte for byte.
 */
#include "elf_image.h"

uint64_t align_to(uint64_t size, uint64_t align)
{
	return (size + align - 1) / align * align;
}

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

static bool is_32(const struct image *image)
{
	return image->bytes[EI_CLASS] == ELFCLASS32;
}

size_t ehdr_size(const struct image *image)
{
	return is_32(image) ? 52 : 64;
}

size_t phdr_size(const struct image *image)
{
	return is_32(image) ? 32 : 56;
}

uint8_t host_order(void)
{
	const uint16_t one = 1;

	return *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB;
}

/* Return the offset in @image of the byte of @field that counts 256 to the power of @i. */
static size_t byte_of_field(const struct image *image, size_t header,
			    struct field field, size_t i)
{
	if (image->bytes[EI_DATA] == ELFDATA2MSB)
		i = field.size - 1 - i;
	return header + field.offset + i;
}

void elf_put_field(struct image *image, size_t header,
		   struct field field, uint64_t value)
{
	size_t i;

	for (i = 0; i < field.size; i++)
		image->bytes[byte_of_field(image, header, field, i)] =
			value >> (8 * i);
}

uint64_t elf_get_field(const struct image *image, size_t header,
		       struct field field)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < field.size; i++)
		value |= (uint64_t)image->bytes[byte_of_field(image, header, field,
							      i)] << (8 * i);
	return value;
}

struct field elf_field(const struct image *image,
		       enum field_name name)
{
	return is_32(image) ? layouts[name].in_32 : layouts[name].in_64;
}

void elf_put(struct image *image, size_t header,
	     enum field_name name, uint64_t value)
{
	elf_put_field(image, header, elf_field(image, name), value);
}

uint64_t elf_get(const struct image *image, size_t header,
		 enum field_name name)
{
	return elf_get_field(image, header, elf_field(image, name));
}

uint8_t id_byte(uint8_t seed, size_t i)
{
	return seed + 7 * i;
}

void grow_image(struct image *image, size_t size)
{
	if (image->size < size)
		image->size = size;
}

size_t put_note(struct image *image, size_t pos, size_t align,
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

static void put_phdr(struct image *image, size_t phdr, uint32_t type,
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

static void put_segment(struct image *image, size_t phdr,
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

void make_image(struct image *image, const struct elf *elf)
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
