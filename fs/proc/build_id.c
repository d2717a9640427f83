// SPDX-License-Identifier: GPL-2.0
/*
 * Read the build ID of a mapped ELF file.
 *
 * The file is untrusted: whoever can write to it chooses every byte read here,
 * and can change it at any time. So each header is copied first, and only the
 * copy is checked and used.
 */
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/magic.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "build_id.h"

/*
 * Limits on the pages of one file that are looked at, each of which may be a
 * read from a disk, and on its notes. The first bounds the program headers, too.
 * Linkers write the headers to the first page, and fewer than ten notes.
 */
#define PAGES_MAX	32
#define NOTES_MAX	1024

/* NT_GNU_BUILD_ID, which no kernel header defines, and its owner's name. */
#define NOTE_TYPE	3
#define NOTE_NAME	"GNU"

/**
 * struct elf_reader - a file, and the page of it that was looked at last
 * @file: the file. The caller of proc_build_id() owns the reference.
 * @may_block: pages that are not resident may be read.
 * @would_block: a page would have to be read, which @may_block does not allow.
 * @page: the page of the page cache, on which the reader owns a reference, or
 *	NULL.
 * @buffer: memory for pages that are not resident, or NULL. The reader owns it.
 * @data: the bytes: @page, which is mapped, or @buffer.
 * @start: file offset of @data, in bytes.
 * @valid: bytes of @data that are part of the file.
 * @pages_left: pages that may still be looked at, from PAGES_MAX down to 0.
 * @notes_left: notes that may still be looked at, from NOTES_MAX down to 0.
 * @is_64: true for ELFCLASS64, false for ELFCLASS32.
 */
struct elf_reader {
	struct file *file;
	bool may_block;
	bool would_block;
	struct page *page;
	void *buffer;
	void *data;
	u64 start;
	size_t valid;
	unsigned int pages_left;
	unsigned int notes_left;
	bool is_64;
};

/*
 * Accept only regular files with a page cache of their own. DAX files have no
 * pages, and hugetlbfs and secretmem, whose pages must not be looked at, have no
 * read_folio method. Files on a SB_I_NOEXEC file system (sysfs, procfs) are
 * never executables, whatever they contain.
 */
bool proc_file_has_pages(struct file *file)
{
	struct address_space *mapping = file->f_mapping;
	struct inode *inode = mapping->host;

	return S_ISREG(inode->i_mode) && !IS_DAX(inode) &&
	       !(inode->i_sb->s_iflags & SB_I_NOEXEC) &&
	       (mapping->a_ops->read_folio || shmem_mapping(mapping));
}

/*
 * What a FUSE server, or an untrusted mounter, does not answer is waited for in
 * a way that no signal ends.
 */
bool proc_file_may_hang(const struct file *file)
{
	return file_inode(file)->i_sb->s_iflags &
	       (SB_I_IMA_UNVERIFIABLE_SIGNATURE | SB_I_UNTRUSTED_MOUNTER);
}

/*
 * Is a read over soon, or ended by a signal, whatever other users do? These file systems
 * hold no lock that it takes while they copy to or from user space, where that may be
 * memory behind FUSE. Others do: f2fs, ntfs3 and hpfs in FIEMAP or getdents(2), NFS,
 * Ceph, OrangeFS and zonefs in write(2). A stacked one may have any of them below it.
 * No signal ends the wait for a range that btrfs clones, nor squashfs's or EROFS's for
 * the device.
 */
static bool is_read_without_waiting(const struct super_block *sb)
{
	switch (sb->s_magic) {
	case EXT4_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case XFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

/* May, and can, a page that is not resident be read? */
static bool may_read(struct elf_reader *reader)
{
	const struct file *file = reader->file;

	if (!(file->f_mode & FMODE_READ) || !file->f_op->read_iter ||
	    !is_read_without_waiting(file_inode(file)->i_sb))
		return false;
	if (!reader->may_block)
		reader->would_block = true;
	return reader->may_block;
}

/**
 * read_as_fault - read a page that is not resident into the page cache
 * @reader: the reader.
 * @page: the page, if it is in the page cache and not up to date, or NULL. The
 *	reference is dropped.
 * @index: index of the page.
 *
 * Reads it as a page fault does: under the invalidate_lock, and without the lock
 * for readers that XFS's read_iter takes. A writer holds that while it faults on
 * its source, on userfaultfd for ever, and no signal ends the wait.
 *
 * May block for as long as the device does, or until a fatal signal arrives. That
 * does not end a wait for the blocks where a file system keeps its own data, nor for
 * a page that somebody else begins to read meanwhile.
 *
 * Return: the page, with a reference that the caller owns, or NULL.
 */
static struct page *read_as_fault(struct elf_reader *reader, struct page *page,
				  pgoff_t index)
{
	struct address_space *mapping = reader->file->f_mapping;
	struct folio *folio = NULL;

	/* read_cache_folio() would not let a signal end a wait for this one. */
	if (page) {
		folio_wait_locked_killable(page_folio(page));
		put_page(page);
	}
	if (fatal_signal_pending(current))
		return NULL;

	/* Its writers may hold it for long: FICLONE, FALLOC_FL_COLLAPSE_RANGE. */
	if (down_read_killable(&mapping->invalidate_lock))
		return NULL;
	/* What is truncated now must not be filled again. */
	if (index < DIV_ROUND_UP(i_size_read(mapping->host), PAGE_SIZE))
		folio = read_cache_folio(mapping, index, NULL, reader->file);
	filemap_invalidate_unlock_shared(mapping);
	return IS_ERR_OR_NULL(folio) ? NULL : folio_file_page(folio, index);
}

/**
 * read_as_read - read a page that is not resident into the reader's buffer
 * @reader: the reader.
 * @start: file offset of the page.
 *
 * Reads it as read(2) does: buffered, with the locks of the file system, and
 * without allocating what is a hole. May block for as long as the device does,
 * or until a fatal signal arrives.
 *
 * Return: the bytes that are valid in @buffer; 0 if none could be read.
 */
static size_t read_as_read(struct elf_reader *reader, u64 start)
{
	struct kvec kvec = { .iov_len = PAGE_SIZE };
	struct kiocb kiocb;
	struct iov_iter iter;
	ssize_t len;

	if (!reader->buffer)
		reader->buffer = kmalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!reader->buffer || fatal_signal_pending(current))
		return 0;

	init_sync_kiocb(&kiocb, reader->file);
	/* The target's O_DIRECT is none of the reader's. */
	kiocb.ki_flags &= ~IOCB_DIRECT;
	kiocb.ki_pos = start;
	kvec.iov_base = reader->buffer;
	iov_iter_kvec(&iter, ITER_DEST, &kvec, 1, PAGE_SIZE);
	len = reader->file->f_op->read_iter(&kiocb, &iter);
	return max_t(ssize_t, len, 0);
}

/*
 * A file system that can read without waiting for its locks (ext4, XFS) needs none
 * of them for a page fault. Of others, that is not known, and shmem would fill
 * holes.
 */
static bool is_read_as_fault(const struct file *file)
{
	return file->f_mode & FMODE_NOWAIT && !shmem_mapping(file->f_mapping);
}

/* Drop the page of the page cache, if the reader owns one. */
static void put_reader_page(struct elf_reader *reader)
{
	if (reader->page) {
		kunmap_local(reader->data);
		put_page(reader->page);
		reader->page = NULL;
	}
	reader->valid = 0;
}

/* Is the page resident, and can be looked at? */
static bool is_usable(struct page *page)
{
	return page && PageUptodate(page) && !PageHWPoison(page);
}

/**
 * get_reader_page - make another page the current one
 * @reader: the reader.
 * @start: file offset of the page, a multiple of the page size.
 *
 * A resident page is taken straight from the page cache. May sleep otherwise, and
 * block, see read_as_fault() and read_as_read().
 *
 * Return: true, or false if none of its bytes can be read.
 */
static bool get_reader_page(struct elf_reader *reader, u64 start)
{
	struct address_space *mapping = reader->file->f_mapping;
	const pgoff_t index = start >> PAGE_SHIFT;
	u64 size = i_size_read(mapping->host);
	struct page *page;

	put_reader_page(reader);
	if (start >= size || !reader->pages_left)
		return false;
	reader->pages_left--;
	reader->start = start;

	page = find_get_page(mapping, index);
	/* A file system would copy from it, too, and be killed by that. */
	if (page && PageHWPoison(page)) {
		put_page(page);
		return false;
	}
	if (!is_usable(page) && may_read(reader)) {
		if (is_read_as_fault(reader->file)) {
			page = read_as_fault(reader, page, index);
		} else {
			if (page)
				put_page(page);
			page = NULL;
			reader->valid = read_as_read(reader, start);
			reader->data = reader->buffer;
		}
	}
	if (is_usable(page)) {
		reader->page = page;
		reader->data = kmap_local_page(page);
		/*
		 * As in filemap_read(): only a size read after the page was up
		 * to date says which of its bytes are part of the file.
		 */
		size = i_size_read(mapping->host);
		/* Pairs with what orders a write before the new size. */
		smp_rmb();
		if (start < size)
			reader->valid = min_t(u64, size - start, PAGE_SIZE);
	} else if (page) {
		put_page(page);
	}
	return reader->valid;
}

/* The slow path of read_at(): bytes that are not all on the current page. */
static noinline bool read_pages(struct elf_reader *reader, u64 pos, void *to,
				size_t len)
{
	while (len) {
		const size_t offset = offset_in_page(pos);
		const size_t chunk = min_t(size_t, len, PAGE_SIZE - offset);
		const u64 start = pos - offset;

		if (reader->start != start || !reader->valid)
			if (!get_reader_page(reader, start))
				return false;
		if (offset + chunk > reader->valid)
			return false;
		memcpy(to, reader->data + offset, chunk);
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
 * @len the copy is then a few moves. May sleep, see get_reader_page().
 *
 * Return: true, or false if not all of the bytes can be read.
 */
static __always_inline bool read_at(struct elf_reader *reader, u64 pos,
				    void *to, size_t len)
{
	const u64 offset = pos - reader->start;

	if (unlikely(offset > reader->valid || len > reader->valid - offset))
		return read_pages(reader, pos, to, len);
	memcpy(to, reader->data + offset, len);
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

int proc_build_id(struct file *file, u8 id[BUILD_ID_SIZE_MAX], bool may_block)
{
	struct elf_reader reader = {
		.file = file,
		.may_block = may_block,
		.pages_left = PAGES_MAX,
		.notes_left = NOTES_MAX,
	};
	int len;

	if (!proc_file_has_pages(file))
		return 0;
	len = build_id_in_file(&reader, id);
	put_reader_page(&reader);
	kfree(reader.buffer);
	return reader.would_block ? -EAGAIN : len;
}
