// SPDX-License-Identifier: GPL-2.0
/*
 * Read the build ID of a mapped ELF file through its page cache.
 *
 * Whoever can write the file decides on every byte that is read here, and may
 * change it in the meantime. So nothing is looked at in place: each header is
 * copied out of the page cache first, then checked, and the copy is used.
 */
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>

#include "build_id.h"

/* As many bytes of program headers as the kernel's own ELF loader takes. */
#define PHDRS_SIZE_MAX	SZ_64K

/* Notes looked at in one file. Linkers write fewer than ten. */
#define NOTES_MAX	1024

/* The note that GNU ld, gold and lld call NT_GNU_BUILD_ID. */
#define NOTE_TYPE	3
#define NOTE_NAME	"GNU"

/**
 * struct elf_reader - a file, and the page of it that was read last
 * @file: the file.
 * @page: the page, referenced, or NULL.
 * @start: where it begins in the file.
 * @valid: how many of its bytes are the file's; 0 without a page.
 * @notes_left: how many notes may still be looked at.
 * @is_64: the file is of ELFCLASS64.
 */
struct elf_reader {
	struct file *file;
	struct page *page;
	u64 start;
	size_t valid;
	unsigned int notes_left;
	bool is_64;
};

/*
 * Only what the page cache itself serves. DAX has no pages to read, hugetlbfs
 * and secretmem have no read_folio, and a file of sysfs or procfs is no
 * executable, whatever its pages hold.
 */
static bool is_readable(struct file *file)
{
	struct address_space *mapping = file->f_mapping;
	struct inode *inode = mapping->host;

	return S_ISREG(inode->i_mode) && !IS_DAX(inode) &&
	       !(inode->i_sb->s_iflags & SB_I_NOEXEC) &&
	       (mapping->a_ops->read_folio || shmem_mapping(mapping));
}

/*
 * Make reader->page the one that begins at @start in the file. The invalidate
 * lock keeps truncation and hole punching off while the page is filled, as it
 * does for read(2).
 */
static bool get_page_at(struct elf_reader *reader, u64 start)
{
	struct address_space *mapping = reader->file->f_mapping;
	const pgoff_t index = start >> PAGE_SHIFT;
	struct folio *folio;
	struct page *page;
	u64 size;

	if (reader->page) {
		if (reader->start == start)
			return true;
		put_page(reader->page);
		reader->page = NULL;
		reader->valid = 0;
	}

	filemap_invalidate_lock_shared(mapping);
	size = i_size_read(mapping->host);
	if (start >= size) {
		page = ERR_PTR(-ENODATA);
	} else if (shmem_mapping(mapping)) {
		page = shmem_read_mapping_page_gfp(mapping, index,
						   mapping_gfp_mask(mapping));
	} else {
		folio = read_mapping_folio(mapping, index, reader->file);
		page = IS_ERR(folio) ? ERR_CAST(folio) :
				       folio_file_page(folio, index);
	}
	filemap_invalidate_unlock_shared(mapping);
	if (IS_ERR(page))
		return false;

	reader->page = page;
	reader->start = start;
	reader->valid = min_t(u64, size - start, PAGE_SIZE);
	return true;
}

static noinline bool read_pages(struct elf_reader *reader, u64 pos, void *to,
				size_t len)
{
	while (len) {
		const size_t offset = offset_in_page(pos);
		const size_t chunk = min_t(size_t, len, PAGE_SIZE - offset);

		if (!get_page_at(reader, pos - offset) ||
		    offset + chunk > reader->valid)
			return false;
		memcpy_from_page(to, reader->page, offset, chunk);
		to += chunk;
		pos += chunk;
		len -= chunk;
	}
	return true;
}

/*
 * Copy @len bytes at @pos of the file, or fail. Mostly they are in the page that
 * was read last, and where @len is constant a few moves are the whole copy.
 */
static __always_inline bool read_at(struct elf_reader *reader, u64 pos,
				    void *to, size_t len)
{
	const u64 offset = pos - reader->start;

	if (unlikely(offset > reader->valid || len > reader->valid - offset))
		return read_pages(reader, pos, to, len);
	memcpy_from_page(to, reader->page, offset, len);
	return true;
}

/* Read and check the ELF header; a 32-bit one becomes a 64-bit one. */
static bool read_ehdr(struct elf_reader *reader, struct elf64_hdr *ehdr)
{
	struct elf32_hdr ehdr32;

	if (!read_at(reader, 0, ehdr->e_ident, EI_NIDENT))
		return false;
	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) ||
	    ehdr->e_ident[EI_DATA] != ELF_DATA)
		return false;

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
		ehdr->e_phentsize = ehdr32.e_phentsize;
		ehdr->e_phnum = ehdr32.e_phnum;
		break;
	default:
		return false;
	}

	return ehdr->e_type == ET_EXEC || ehdr->e_type == ET_DYN;
}

/* Read the program header at @pos; a 32-bit one becomes a 64-bit one. */
static bool read_phdr(struct elf_reader *reader, u64 pos,
		      struct elf64_phdr *phdr)
{
	struct elf32_phdr phdr32;

	if (reader->is_64)
		return read_at(reader, pos, phdr, sizeof(*phdr));

	if (!read_at(reader, pos, &phdr32, sizeof(phdr32)))
		return false;
	phdr->p_type = phdr32.p_type;
	phdr->p_offset = phdr32.p_offset;
	phdr->p_filesz = phdr32.p_filesz;
	phdr->p_align = phdr32.p_align;
	return true;
}

static bool is_build_id(struct elf_reader *reader, u64 pos,
			const struct elf32_note *note)
{
	char name[sizeof(NOTE_NAME)];

	return note->n_type == NOTE_TYPE && note->n_namesz == sizeof(name) &&
	       note->n_descsz >= 1 && note->n_descsz <= BUILD_ID_SIZE_MAX &&
	       read_at(reader, pos + sizeof(*note), name, sizeof(name)) &&
	       !memcmp(name, NOTE_NAME, sizeof(name));
}

/* Find the build ID among the notes of one segment. */
static size_t build_id_in_notes(struct elf_reader *reader,
				const struct elf64_phdr *phdr,
				u8 id[BUILD_ID_SIZE_MAX])
{
	const u64 size = i_size_read(reader->file->f_mapping->host);
	const u64 align = phdr->p_align == 8 ? 8 : 4;
	u64 pos = phdr->p_offset;
	u64 left = phdr->p_filesz;

	if (pos > size || left > size - pos)
		return 0;

	while (left >= sizeof(struct elf32_note) && reader->notes_left) {
		/* The header of a note is the same for both classes. */
		struct elf32_note note;
		u64 desc, next;

		reader->notes_left--;
		if (!read_at(reader, pos, &note, sizeof(note)))
			return 0;
		/* The sizes have 32 bits: no sum can overflow 64. */
		desc = ALIGN(sizeof(note) + (u64)note.n_namesz, align);
		next = ALIGN(desc + note.n_descsz, align);
		if (desc + note.n_descsz > left)
			return 0;

		if (is_build_id(reader, pos, &note))
			return read_at(reader, pos + desc, id, note.n_descsz) ?
			       note.n_descsz : 0;

		if (next >= left)
			return 0;
		pos += next;
		left -= next;
	}
	return 0;
}

static size_t build_id_in_file(struct elf_reader *reader,
			       u8 id[BUILD_ID_SIZE_MAX])
{
	struct elf64_hdr ehdr;
	struct elf64_phdr phdr;
	unsigned int i;

	if (!read_ehdr(reader, &ehdr))
		return 0;
	if (ehdr.e_phentsize != (reader->is_64 ? sizeof(struct elf64_phdr) :
						 sizeof(struct elf32_phdr)))
		return 0;
	if (ehdr.e_phnum * ehdr.e_phentsize > PHDRS_SIZE_MAX)
		return 0;
	if (ehdr.e_phoff > i_size_read(reader->file->f_mapping->host))
		return 0;

	for (i = 0; i < ehdr.e_phnum; i++) {
		const u64 pos = ehdr.e_phoff + i * ehdr.e_phentsize;
		size_t len;

		if (!read_phdr(reader, pos, &phdr))
			return 0;
		if (phdr.p_type != PT_NOTE)
			continue;
		len = build_id_in_notes(reader, &phdr, id);
		if (len)
			return len;
	}
	return 0;
}

size_t proc_build_id(struct file *file, u8 id[BUILD_ID_SIZE_MAX])
{
	struct elf_reader reader = {
		.file = file,
		.notes_left = NOTES_MAX,
	};
	size_t len;

	if (!is_readable(file))
		return 0;
	len = build_id_in_file(&reader, id);
	if (reader.page)
		put_page(reader.page);
	return len;
}
