// SPDX-License-Identifier: GPL-2.0
/*
 * Read the build ID of a mapped ELF file.
 *
 * The file is untrusted: a user who can write to it chooses every byte read here,
 * and can change it at any time. So each header is copied first, and only the
 * copy is checked and used.
 */
#include <linux/elf.h>
#include <linux/magic.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "build_id.h"
#include "procmap_base.h"

/*
 * Limits for one file: pages that are looked at, each of which may be read from a
 * disk, and notes. The first one bounds the program headers, too. Linkers write the
 * headers to the first page, and fewer than ten notes.
 */
#define PAGES_MAX	32
#define NOTES_MAX	1024

/* NT_GNU_BUILD_ID, which no kernel header defines, and its owner's name. */
#define NOTE_TYPE	3
#define NOTE_NAME	"GNU"

/**
 * struct build_id_reader - a file, and the page of it that was looked at last
 * @file: the file.
 * @may_read: pages that are not resident may be read.
 * @is_unread: a page would have to be read, which @may_read does not allow.
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
struct build_id_reader {
	struct file *file;
	bool may_read;
	bool is_unread;
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
 * Get a page that is resident, up to date and sound, or NULL. Pages of hugetlbfs and
 * secretmem, which have no read_folio method, must not be looked at.
 */
static struct page *build_id_get_resident(const struct file *file, u64 start)
{
	struct address_space *mapping = file->f_mapping;
	struct page *page;

	if (!mapping->a_ops->read_folio && !shmem_mapping(mapping))
		return NULL;
	page = find_get_page(mapping, start >> PAGE_SHIFT);
	if (page && (!PageUptodate(page) || PageHWPoison(page))) {
		put_page(page);
		return NULL;
	}
	return page;
}

/*
 * The policy is documented at proc_build_id(). hugetlbfs has a stack depth, so that
 * nothing is stacked on it. To read a file of sysfs or procfs may have effects.
 */
static bool build_id_may_read(struct build_id_reader *reader)
{
	const struct file *file = reader->file;
	const struct super_block *sb = file_inode(file)->i_sb;

	if (!(file->f_mode & FMODE_READ) || !file->f_op->read_iter ||
	    (sb->s_stack_depth > 0 && sb->s_magic != HUGETLBFS_MAGIC) ||
	    sb->s_iflags & (SB_I_NOEXEC | SB_I_IMA_UNVERIFIABLE_SIGNATURE |
			    SB_I_UNTRUSTED_MOUNTER))
		return false;
	reader->is_unread |= !reader->may_read;
	return reader->may_read && !fatal_signal_pending(current);
}

/*
 * A writer may hold the inode's lock during a page fault that a user's server never
 * answers, and no signal ends a wait for that lock. XFS takes it for reading, and so does
 * ext4 on DAX. Where a buffered read is filemap_read() and no lock more, read as page faults
 * do, without it. Elsewhere the file system may have to look for changes first, as NFS does.
 * On DAX, give up if the lock is taken; ext2 waits there.
 */
static ssize_t build_id_read_iter(struct kiocb *kiocb, struct iov_iter *iter)
{
	const struct file *file = kiocb->ki_filp;

	if (IS_DAX(file_inode(file)))
		kiocb->ki_flags |= IOCB_NOWAIT;
	else if (procmap_has_buf_rasync(file) && file->f_mapping->a_ops->read_folio)
		return filemap_read(kiocb, iter, 0);
	return file->f_op->read_iter(kiocb, iter);
}

/* Shared memory has an entry for a page that is in swap. To read a hole may allocate it. */
static bool build_id_is_hole(const struct build_id_reader *reader)
{
	struct address_space *mapping = reader->file->f_mapping;

	return shmem_mapping(mapping) &&
	       !xa_load(&mapping->i_pages, reader->start >> PAGE_SHIFT);
}

/*
 * Read a page, or the part of it that is in the file, into the reader's buffer; return
 * the bytes read. This is kernel_read() without its calls of LSMs and fanotify, which
 * may wait for a daemon.
 */
static size_t build_id_read(struct build_id_reader *reader)
{
	struct kvec kvec = { .iov_len = reader->valid };
	struct kiocb kiocb;
	struct iov_iter iter;
	ssize_t len;

	if (!build_id_may_read(reader))
		return 0;
	if (!reader->buffer)
		reader->buffer = kmalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!reader->buffer)
		return 0;
	if (build_id_is_hole(reader)) {
		memset(reader->buffer, 0, reader->valid);
		return reader->valid;
	}

	init_sync_kiocb(&kiocb, reader->file);
	/* Read through the page cache, also if the target opened the file with O_DIRECT. */
	kiocb.ki_flags &= ~IOCB_DIRECT;
	kiocb.ki_pos = reader->start;
	kvec.iov_base = reader->buffer;
	iov_iter_kvec(&iter, ITER_DEST, &kvec, 1, reader->valid);
	len = build_id_read_iter(&kiocb, &iter);
	return max_t(ssize_t, len, 0);
}

static void build_id_put_page(struct build_id_reader *reader)
{
	if (reader->page) {
		kunmap_local(reader->data);
		put_page(reader->page);
		reader->page = NULL;
	}
	reader->valid = 0;
}

/* Make the page at @start the current one, if any of its bytes can be read. */
static void build_id_get_page(struct build_id_reader *reader, u64 start)
{
	const u64 size = i_size_read(reader->file->f_mapping->host);

	build_id_put_page(reader);
	if (start >= size || !reader->pages_left)
		return;
	reader->pages_left--;
	reader->start = start;

	reader->valid = min_t(u64, size - start, PAGE_SIZE);
	reader->page = build_id_get_resident(reader->file, start);
	if (reader->page) {
		reader->data = kmap_local_page(reader->page);
	} else {
		reader->valid = build_id_read(reader);
		reader->data = reader->buffer;
	}
}

/* The slow path of build_id_copy(): bytes that are not all on the current page. */
static noinline bool build_id_copy_pages(struct build_id_reader *reader,
					 u64 pos, void *to, size_t len)
{
	while (len) {
		const size_t offset = offset_in_page(pos);
		const size_t chunk = min_t(size_t, len, PAGE_SIZE - offset);
		const u64 start = pos - offset;

		if (reader->start != start || !reader->valid)
			build_id_get_page(reader, start);
		if (offset + chunk > reader->valid)
			return false;
		memcpy(to, reader->data + offset, chunk);
		to += chunk;
		pos += chunk;
		len -= chunk;
	}
	return true;
}

/*
 * Copy bytes from the file; any @pos is safe. Return false if not all of them can be
 * read. Inlined because the bytes are usually on the current page: with a constant @len
 * the copy is then a few moves.
 */
static __always_inline bool build_id_copy(struct build_id_reader *reader,
					  u64 pos, void *to, size_t len)
{
	const u64 offset = pos - reader->start;

	if (unlikely(offset > reader->valid || len > reader->valid - offset))
		return build_id_copy_pages(reader, pos, to, len);
	memcpy(to, reader->data + offset, len);
	return true;
}

/*
 * Read the ELF header and accept executables and shared objects of this machine's byte
 * order. Set e_phoff and e_phnum.
 */
static bool build_id_read_ehdr(struct build_id_reader *reader,
			       struct elf64_hdr *ehdr)
{
	struct elf32_hdr ehdr32;

	/* A 64-bit header is longer, and the same up to e_type. */
	if (!build_id_copy(reader, 0, &ehdr32, sizeof(ehdr32)) ||
	    memcmp(ehdr32.e_ident, ELFMAG, SELFMAG) ||
	    ehdr32.e_ident[EI_DATA] != ELF_DATA ||
	    (ehdr32.e_type != ET_EXEC && ehdr32.e_type != ET_DYN))
		return false;

	reader->is_64 = ehdr32.e_ident[EI_CLASS] == ELFCLASS64;
	if (reader->is_64)
		return build_id_copy(reader, 0, ehdr, sizeof(*ehdr));
	ehdr->e_phoff = ehdr32.e_phoff;
	ehdr->e_phnum = ehdr32.e_phnum;
	return ehdr32.e_ident[EI_CLASS] == ELFCLASS32;
}

/* Read program header @i; convert a 32-bit one. Their size is that of the class. */
static bool build_id_read_phdr(struct build_id_reader *reader, u64 phoff,
			       unsigned int i, struct elf64_phdr *phdr)
{
	struct elf32_phdr phdr32;

	if (reader->is_64)
		return build_id_copy(reader, phoff + i * sizeof(*phdr), phdr,
				     sizeof(*phdr));

	if (!build_id_copy(reader, phoff + i * sizeof(phdr32), &phdr32,
			   sizeof(phdr32)))
		return false;
	phdr->p_type = phdr32.p_type;
	phdr->p_offset = phdr32.p_offset;
	phdr->p_filesz = phdr32.p_filesz;
	phdr->p_align = phdr32.p_align;
	return true;
}

/*
 * Find the build ID among the notes of one segment; return its length, or 0. Reads past
 * the end of the file fail, so @pos need not be compared with that.
 */
static int build_id_in_notes(struct build_id_reader *reader,
			     const struct elf64_phdr *phdr,
			     u8 id[BUILD_ID_SIZE_MAX])
{
	const u64 align = phdr->p_align == 8 ? 8 : 4;
	u64 pos = phdr->p_offset;
	u64 left = phdr->p_filesz;

	while (left >= sizeof(struct elf32_note) && reader->notes_left) {
		/* A note's header is the same in ELF32 and ELF64. */
		struct elf32_note note;
		char name[sizeof(NOTE_NAME)];
		u64 desc, next;

		reader->notes_left--;
		if (!build_id_copy(reader, pos, &note, sizeof(note)))
			return 0;
		/* Both sizes are 32-bit, so no 64-bit sum can overflow. */
		desc = ALIGN(sizeof(note) + (u64)note.n_namesz, align);
		next = ALIGN(desc + note.n_descsz, align);
		/* Mainline counts padding to 4 bytes as part of a note, whatever @align is. */
		if (desc + ALIGN((u64)note.n_descsz, 4) > left)
			return 0;

		if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof(name) &&
		    note.n_descsz >= 1 && note.n_descsz <= BUILD_ID_SIZE_MAX &&
		    build_id_copy(reader, pos + sizeof(note), name, sizeof(name)) &&
		    !memcmp(name, NOTE_NAME, sizeof(name)))
			return build_id_copy(reader, pos + desc, id, note.n_descsz) ?
			       note.n_descsz : 0;

		pos += next;
		left -= min(next, left);
	}
	return 0;
}

int proc_build_id(struct file *file, u8 id[BUILD_ID_SIZE_MAX], bool may_read)
{
	struct build_id_reader reader = {
		.file = file,
		.may_read = may_read,
		.pages_left = PAGES_MAX,
		.notes_left = NOTES_MAX,
	};
	struct elf64_hdr ehdr __uninitialized;
	struct elf64_phdr phdr __uninitialized;
	unsigned int i;
	int len = 0;

	might_sleep();
	if (!S_ISREG(file_inode(file)->i_mode) || !build_id_read_ehdr(&reader, &ehdr))
		goto out;
	for (i = 0; i < ehdr.e_phnum && !len; i++) {
		if (!build_id_read_phdr(&reader, ehdr.e_phoff, i, &phdr))
			break;
		if (phdr.p_type == PT_NOTE)
			len = build_id_in_notes(&reader, &phdr, id);
	}
out:
	build_id_put_page(&reader);
	kfree(reader.buffer);
	return reader.is_unread ? -EAGAIN : len;
}
