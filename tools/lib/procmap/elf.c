// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Read the build ID of an ELF file, and its addresses. In the program headers, the rules
 * are those of fs/proc/build_id.c; here, the section headers are read, too. The number of
 * reads is bounded for any file, and no offset or size in it is trusted.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* More than the 65,535 headers that a file may have. */
#define PAGES_MAX	2048
#define NOTES_MAX	1024

#define PAGE_BYTES	4096

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_ELFDATA	ELFDATA2LSB
#else
#define HOST_ELFDATA	ELFDATA2MSB
#endif

/**
 * struct elf_reader - a file, and the part of it that was read last
 * @fd: the file.
 * @begin: where the image begins in it, in bytes.
 * @pos: offset of @page in the image, in bytes.
 * @len: bytes in @page.
 * @pages_left: pages that may still be read.
 * @notes_left: notes that may still be read.
 * @err: the error if something was not read that the file may have; or 0.
 * @is_64: true for ELFCLASS64, false for ELFCLASS32.
 * @page: the bytes of that part.
 */
struct elf_reader {
	int fd;
	uint64_t begin;
	uint64_t pos;
	size_t len;
	unsigned int pages_left;
	unsigned int notes_left;
	int err;
	bool is_64;
	uint8_t page[PAGE_BYTES];
};

static uint64_t align_up(uint64_t size, uint64_t align)
{
	return (size + align - 1) & ~(align - 1);
}

/* Read the page at @pos, a multiple of its size. */
static bool read_page(struct elf_reader *reader, uint64_t pos)
{
	ssize_t got;

	reader->len = 0;
	if (pos > INT64_MAX - PAGE_BYTES - reader->begin)
		return false;
	got = -1;
	errno = EFBIG;
	if (reader->pages_left)
		got = pread(reader->fd, reader->page, PAGE_BYTES, reader->begin + pos);
	if (got < 0)
		reader->err = -errno;
	if (got <= 0)
		return false;
	reader->pages_left--;
	reader->pos = pos;
	reader->len = got;
	return true;
}

/* Copy @len bytes at offset @pos, if all of them can be read. */
static bool read_at(struct elf_reader *reader, uint64_t pos, void *to, size_t len)
{
	uint8_t *bytes = to;

	while (len) {
		const size_t at = pos % PAGE_BYTES;
		const size_t chunk = len < PAGE_BYTES - at ? len : PAGE_BYTES - at;

		if ((!reader->len || pos - at != reader->pos) &&
		    !read_page(reader, pos - at))
			return false;
		if (at + chunk > reader->len)
			return false;
		memcpy(bytes, reader->page + at, chunk);
		bytes += chunk;
		pos += chunk;
		len -= chunk;
	}
	return true;
}

/* Read and check the ELF header; convert a 32-bit one. */
static bool read_ehdr(struct elf_reader *reader, Elf64_Ehdr *ehdr)
{
	Elf32_Ehdr ehdr32;

	if (!read_at(reader, 0, ehdr->e_ident, EI_NIDENT) ||
	    memcmp(ehdr->e_ident, ELFMAG, SELFMAG))
		return false;
	if (ehdr->e_ident[EI_DATA] != HOST_ELFDATA) {
		reader->err = -ENOEXEC;
		return false;
	}

	switch (ehdr->e_ident[EI_CLASS]) {
	case ELFCLASS64:
		reader->is_64 = true;
		if (!read_at(reader, 0, ehdr, sizeof(*ehdr)))
			return false;
		break;
	case ELFCLASS32:
		reader->is_64 = false;
		if (!read_at(reader, 0, &ehdr32, sizeof(ehdr32)))
			return false;
		ehdr->e_type = ehdr32.e_type;
		ehdr->e_phoff = ehdr32.e_phoff;
		ehdr->e_phnum = ehdr32.e_phnum;
		ehdr->e_shoff = ehdr32.e_shoff;
		ehdr->e_shnum = ehdr32.e_shnum;
		break;
	default:
		return false;
	}
	return ehdr->e_type == ET_EXEC || ehdr->e_type == ET_DYN ||
	       ehdr->e_type == ET_REL;
}

/* Read program header @i; convert a 32-bit one. Their size is that of the class. */
static bool read_phdr(struct elf_reader *reader, const Elf64_Ehdr *ehdr,
		      unsigned int i, Elf64_Phdr *phdr)
{
	Elf32_Phdr phdr32;

	if (reader->is_64)
		return read_at(reader, ehdr->e_phoff + i * sizeof(*phdr), phdr,
			       sizeof(*phdr));
	if (!read_at(reader, ehdr->e_phoff + i * sizeof(phdr32), &phdr32,
		     sizeof(phdr32)))
		return false;
	phdr->p_type = phdr32.p_type;
	phdr->p_flags = phdr32.p_flags;
	phdr->p_offset = phdr32.p_offset;
	phdr->p_vaddr = phdr32.p_vaddr;
	phdr->p_filesz = phdr32.p_filesz;
	phdr->p_memsz = phdr32.p_memsz;
	phdr->p_align = phdr32.p_align;
	return true;
}

static bool is_build_id(struct elf_reader *reader, uint64_t pos,
			const Elf32_Nhdr *note)
{
	char name[sizeof(ELF_NOTE_GNU)];

	return note->n_type == NT_GNU_BUILD_ID &&
	       note->n_namesz == sizeof(name) &&
	       note->n_descsz >= 1 && note->n_descsz <= PROCMAP_BUILD_ID_MAX &&
	       read_at(reader, pos + sizeof(*note), name, sizeof(name)) &&
	       !memcmp(name, ELF_NOTE_GNU, sizeof(name));
}

/* Read section header @i as the program header of its notes, or as one of another type. */
static bool read_shdr(struct elf_reader *reader, const Elf64_Ehdr *ehdr, unsigned int i,
		      Elf64_Phdr *phdr)
{
	const size_t size = reader->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	union {
		Elf32_Shdr of_32;
		Elf64_Shdr of_64;
	} shdr;

	if (!read_at(reader, ehdr->e_shoff + i * size, &shdr, size))
		return false;
	/* The type is at the same place in both. */
	phdr->p_type = shdr.of_32.sh_type == SHT_NOTE ? PT_NOTE : PT_NULL;
	phdr->p_offset = reader->is_64 ? shdr.of_64.sh_offset : shdr.of_32.sh_offset;
	phdr->p_filesz = reader->is_64 ? shdr.of_64.sh_size : shdr.of_32.sh_size;
	phdr->p_align = reader->is_64 ? shdr.of_64.sh_addralign : shdr.of_32.sh_addralign;
	return true;
}

/* As for the kernel, padding to 4 bytes is part of a note, whatever the alignment. */
static int build_id_in_notes(struct elf_reader *reader, const Elf64_Phdr *phdr,
			     uint8_t id[PROCMAP_BUILD_ID_MAX])
{
	const uint64_t align = phdr->p_align == 8 ? 8 : 4;
	uint64_t pos = phdr->p_offset;
	uint64_t left = phdr->p_filesz;

	while (left >= sizeof(Elf32_Nhdr)) {
		/* A note's header is the same in ELF32 and ELF64. */
		Elf32_Nhdr note;
		uint64_t desc, next;

		if (!reader->notes_left) {
			reader->err = -EFBIG;
			return 0;
		}
		reader->notes_left--;
		if (!read_at(reader, pos, &note, sizeof(note)))
			return 0;
		/* Both sizes are 32-bit, so no 64-bit sum can overflow. */
		desc = align_up(sizeof(note) + (uint64_t)note.n_namesz, align);
		next = align_up(desc + note.n_descsz, align);
		if (desc + align_up(note.n_descsz, 4) > left)
			return 0;

		if (is_build_id(reader, pos, &note))
			return read_at(reader, pos + desc, id, note.n_descsz) ?
			       (int)note.n_descsz : 0;

		if (next >= left)
			return 0;
		pos += next;
		left -= next;
	}
	return 0;
}

int read_build_id(int fd, uint64_t begin, uint8_t id[PROCMAP_BUILD_ID_MAX])
{
	struct elf_reader reader = {
		.fd = fd,
		.begin = begin,
		.pages_left = PAGES_MAX,
		.notes_left = NOTES_MAX,
	};
	unsigned int i;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	int len = 0;

	if (!read_ehdr(&reader, &ehdr))
		return reader.err;
	for (i = 0; i < ehdr.e_phnum && !len && read_phdr(&reader, &ehdr, i, &phdr); i++)
		if (phdr.p_type == PT_NOTE)
			len = build_id_in_notes(&reader, &phdr, id);
	/* Objects that are not linked, and some debug files, have section headers only. */
	/* The number is elsewhere if it does not fit, and so are headers. */
	if (ehdr.e_phnum == PN_XNUM || (!ehdr.e_shnum && ehdr.e_shoff))
		reader.err = -EFBIG;
	for (i = 0; i < ehdr.e_shnum && !len && read_shdr(&reader, &ehdr, i, &phdr); i++)
		if (phdr.p_type == PT_NOTE)
			len = build_id_in_notes(&reader, &phdr, id);
	return len ? len : reader.err;
}

bool is_elf(int fd, uint64_t begin)
{
	struct elf_reader reader = { .fd = fd, .begin = begin, .pages_left = PAGES_MAX };
	Elf64_Ehdr ehdr;

	return read_ehdr(&reader, &ehdr);
}

static void add_segment(struct segments *segments, const Elf64_Phdr *phdr)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uint64_t low = phdr->p_vaddr & -page;
	const uint64_t high = align_up(phdr->p_vaddr + phdr->p_memsz, page);

	if (!segments->nr || low < segments->low)
		segments->low = low;
	if (high > segments->high)
		segments->high = high;
	segments->all[segments->nr++] = (struct segment) {
		.offset = phdr->p_offset,
		.file_size = phdr->p_filesz,
		.size = phdr->p_memsz,
		.address = phdr->p_vaddr,
		.flags = (phdr->p_flags & PF_R ? PROCMAP_READABLE : 0) |
			 (phdr->p_flags & PF_W ? PROCMAP_WRITABLE : 0) |
			 (phdr->p_flags & PF_X ? PROCMAP_EXECUTABLE : 0),
	};
}

int read_segments(int fd, uint64_t begin, struct segments *segments)
{
	struct elf_reader reader = { .fd = fd, .begin = begin, .pages_left = PAGES_MAX };
	unsigned int i;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;

	*segments = (struct segments) { .nr = 0 };
	if (!read_ehdr(&reader, &ehdr) || ehdr.e_type == ET_REL)
		return -ENOEXEC;
	segments->all = calloc(ehdr.e_phnum + 1, sizeof(*segments->all));
	if (!segments->all)
		return -ENOMEM;
	segments->are_fixed = ehdr.e_type == ET_EXEC;
	for (i = 0; i < ehdr.e_phnum && read_phdr(&reader, &ehdr, i, &phdr); i++)
		if (phdr.p_type == PT_LOAD)
			add_segment(segments, &phdr);
	if (i == ehdr.e_phnum)
		return 0;
	free(segments->all);
	*segments = (struct segments) { .nr = 0 };
	return -ENOEXEC;
}

/* @size: that in the file; or that in memory, where .bss is behind the bytes of the file. */
static bool has_byte(const struct segment *segment, uint64_t size, uint64_t offset)
{
	return offset >= segment->offset && offset - segment->offset < size;
}

int address_in(const struct segments *segments, uint64_t offset, uint64_t *address)
{
	size_t i;

	for (i = 0; i < segments->nr; i++) {
		const struct segment *const segment = &segments->all[i];

		if (!has_byte(segment, segment->file_size, offset))
			continue;
		*address = segment->address + (offset - segment->offset);
		return 0;
	}
	return -ENOENT;
}

/* What a segment and a mapping have in common, the surest first. */
enum in_common {
	PAGE_OF_FILE	= 0x20,	/* the page of the address, in the file */
	LOAD_BIAS	= 0x10,
	ACCESS		= 0x08,	/* RELRO makes a writable segment read-only */
	BEGIN		= 0x04,
	RANGE		= 0x02,	/* the segment has all pages of the mapping */
	BYTE		= 0x01,	/* of the file; or of memory, if the bias is known */
};

/* The load bias, that is, address in memory less address in the file, if it is this one. */
static uint64_t bias_of(const struct segment *segment, const struct procmap_mapping *mapping)
{
	return (mapping->start - mapping->offset) - (segment->address - segment->offset);
}

/*
 * Rank a segment for an offset in the mapping: two that share a page of the file are mapped
 * by two mappings of it. Returns a mask of enum in_common; 0 if the page is not the segment's.
 */
static unsigned int rank_segment(const struct segment *segment,
				 const struct procmap_mapping *mapping, uint64_t offset,
				 const uint64_t *bias)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uint64_t begin = segment->offset & -page;
	const uint64_t end = align_up(segment->offset + segment->file_size, page);
	const uint32_t changed = segment->flags ^ mapping->flags;
	const bool is_writable = mapping->flags & PROCMAP_WRITABLE;
	const bool is_at_bias = bias && bias_of(segment, mapping) == *bias;

	if (!segment->file_size || offset < begin || offset >= end)
		return 0;
	return PAGE_OF_FILE |
	       (is_at_bias ? LOAD_BIAS : 0) |
	       (changed & PROCMAP_EXECUTABLE ||
		(is_writable && changed & PROCMAP_WRITABLE) ? 0 : ACCESS) |
	       (mapping->offset == begin ? BEGIN : 0) |
	       (mapping->offset >= begin &&
		mapping->offset + (mapping->end - mapping->start) <= end ? RANGE : 0) |
	       (has_byte(segment, is_at_bias ? segment->size : segment->file_size,
			 offset) ? BYTE : 0);
}

bool find_bias(const struct segments *segments, const struct procmap_mapping *mapping,
	       uint64_t *bias)
{
	bool is_found = false, is_exact = false, is_ambiguous = false;
	size_t i;

	for (i = 0; i < segments->nr; i++) {
		const struct segment *const segment = &segments->all[i];
		const uint64_t found = bias_of(segment, mapping);

		if (segments->are_fixed && !found) {
			*bias = 0;
			return true;
		}
		if (~rank_segment(segment, mapping, mapping->offset, NULL) & (ACCESS | RANGE))
			continue;
		is_ambiguous |= is_found && found != *bias;
		is_exact |= segment->flags == (mapping->flags & PERMISSIONS);
		is_found = true;
		*bias = found;
	}
	return is_exact && !is_ambiguous;
}

int mapped_address_in(const struct segments *segments,
		      const struct procmap_mapping *mapping, uint64_t addr,
		      const uint64_t *bias, bool is_alone, uint64_t *address)
{
	const unsigned int known = bias || is_alone ? ~0 : PAGE_OF_FILE;
	const uint64_t offset = mapping->offset + (addr - mapping->start);
	unsigned int rank, highest = 0, all = 0;
	bool is_ambiguous = false;
	uint64_t at, best = 0;
	size_t i;

	for (i = 0; i < segments->nr; i++) {
		const struct segment *const segment = &segments->all[i];

		rank = rank_segment(segment, mapping, offset, bias) & known;
		at = segment->address + (offset - segment->offset);
		all |= rank;
		if (rank > highest) {
			highest = rank;
			best = at;
			is_ambiguous = false;
		} else if (rank && rank == highest && at != best) {
			is_ambiguous = true;
		}
	}
	/* Loaders leave holes without permissions between segments. */
	if (!highest || is_ambiguous || (all & ~highest & BYTE) ||
	    (bias ? !(highest & LOAD_BIAS) : !(mapping->flags & PERMISSIONS)))
		return -ENOENT;
	*address = best;
	return 0;
}
