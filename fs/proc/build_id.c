// SPDX-License-Identifier: GPL-2.0
/*
 * Read the build ID of a mapped ELF file through its page cache.
 *
 * The file is untrusted: whoever can write to it chooses every byte read here,
 * and can change it at any time. So each header is copied out of the page cache
 * first, and only the copy is checked and used.
 */
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>

#include "build_id.h"

/* Limit on the program headers of one file, in bytes. */
#define PHDRS_SIZE_MAX	SZ_64K

/* Limit on the notes read from one file. Linkers write fewer than ten. */
#define NOTES_MAX	1024

/* NT_GNU_BUILD_ID, which no kernel header defines, and its owner's name. */
#define NOTE_TYPE	3
#define NOTE_NAME	"GNU"

/**
 * struct elf_reader - a file, and the page of it that was read last
 * @file: the file. The caller of proc_build_id() holds the reference.
 * @page: the page, or NULL. The reader owns one reference on it.
 * @start: file offset of @page, in bytes.
 * @valid: bytes of @page that lie below the end of the file; 0 without a page.
 * @notes_left: notes that may still be read, from NOTES_MAX down to 0.
 * @is_64: true for ELFCLASS64, false for ELFCLASS32.
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
 * Accept only regular files that the page cache itself can serve. DAX files
 * have no pages to read, and hugetlbfs and secretmem have no read_folio method.
 * Files on a SB_I_NOEXEC file system (sysfs, procfs) are never executables,
 * whatever they contain.
 */
static bool is_readable(struct file *file)
{
	struct address_space *mapping = file->f_mapping;
	struct inode *inode = mapping->host;

	return S_ISREG(inode->i_mode) && !IS_DAX(inode) &&
	       !(inode->i_sb->s_iflags & SB_I_NOEXEC) &&
	       (mapping->a_ops->read_folio || shmem_mapping(mapping));
}

/**
 * get_page_at - make another page the current one
 * @reader: its reference on the old page is dropped; on success, it owns one on
 *	the new page.
 * @start: file offset of the page, a multiple of the page size.
 *
 * Takes the invalidate lock of the file's mapping for reading, so that the file
 * cannot be truncated or punched while the page is filled, as read(2) does. May
 * sleep: a page that is not resident is read in.
 *
 * Return: true, or false if @start is past the end of the file, the read failed
 * or there was no memory.
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

/* The slow path of read_at(): bytes that are not all on the current page. */
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

/**
 * read_at - copy bytes from the file
 * @reader: the reader.
 * @pos: file offset of the first byte. Any value is safe.
 * @to: destination.
 * @len: number of bytes.
 *
 * Inlined because the bytes are usually on the current page: with a constant
 * @len the copy is then a few moves. May sleep, see get_page_at().
 *
 * Return: true, or false if not all of the bytes can be read.
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

/*
 * Read the ELF header and accept executables and shared objects of this
 * machine's byte order. Of a 32-bit header, the fields that are used are
 * converted. May sleep.
 */
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

/* Read one program header; convert a 32-bit one. May sleep. */
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

/* Is the note at @pos, whose header is @note, a build ID? May sleep. */
static bool is_build_id(struct elf_reader *reader, u64 pos,
			const struct elf32_note *note)
{
	char name[sizeof(NOTE_NAME)];

	return note->n_type == NOTE_TYPE && note->n_namesz == sizeof(name) &&
	       note->n_descsz >= 1 && note->n_descsz <= BUILD_ID_SIZE_MAX &&
	       read_at(reader, pos + sizeof(*note), name, sizeof(name)) &&
	       !memcmp(name, NOTE_NAME, sizeof(name));
}

/**
 * build_id_in_notes - find the build ID among the notes of one segment
 * @reader: the reader. Each note that is read counts against @notes_left.
 * @phdr: the segment's program header. Its offset and size are not checked yet.
 * @id: set to the build ID.
 *
 * May sleep.
 *
 * Return: length of the build ID, or 0 if there is none.
 */
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
		/* A note's header is the same in ELF32 and ELF64. */
		struct elf32_note note;
		u64 desc, next;

		reader->notes_left--;
		if (!read_at(reader, pos, &note, sizeof(note)))
			return 0;
		/* Both sizes are 32-bit, so no 64-bit sum can overflow. */
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

/* Find the build ID: its length, or 0 if there is none. May sleep. */
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
