// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: tell which mappings of a process cover given addresses, or list
 * them, with the PROCMAP_QUERY ioctl and with the text of /proc/PID/maps.
 *
 * Both are a "way" to find one mapping at a time, in rising order. All that is
 * printed, compared or timed stands on that alone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __SANE_USERSPACE_TYPES__	/* __u64 is %llu everywhere */

#include <argp.h>
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/procmap_query.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define EXIT_TROUBLE		2

#define fail(...)		errx(EXIT_TROUBLE, __VA_ARGS__)

#define BUILD_ID_SIZE_MAX	20

/* How often a process that changes meanwhile is compared anew. */
#define COMPARE_ATTEMPTS	10

#define BENCH_RUNS_MAX		1000000

#define TEXT_SIZE_MIN		(64 * 1024)

/* Longest piece of bad input that is repeated in a message. */
#define QUOTE_LEN_MAX		60

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_ELFDATA	ELFDATA2LSB
#else
#define HOST_ELFDATA	ELFDATA2MSB
#endif

static unsigned long nr_syscalls;

#define COUNTED(syscall)	(nr_syscalls++, (syscall))

/**
 * struct build_id - the build ID of a mapped file
 * @size: its bytes, 0 if there is none.
 * @unreadable: the file could not be read, so there may be one.
 * @bytes: the ID.
 */
struct build_id {
	unsigned int size;
	bool unreadable;
	__u8 bytes[BUILD_ID_SIZE_MAX];
};

/**
 * struct vma - a mapping, as either way tells of it
 * @start: first address.
 * @end: first address past it.
 * @flags: the four PROCMAP_QUERY_VMA_* permissions.
 * @page_size: bytes, 0 if the way does not tell.
 * @offset: offset of @start in the file.
 * @inode: inode number of the file, 0 without one.
 * @dev_major: device of the file, 0 without one.
 * @dev_minor: the same.
 * @name: @name_len bytes without a NUL, good until the next one is found.
 * @name_len: 0 if there is no name.
 * @name_is_text: a newline in @name is written as \012. A file that has these
 *	four characters in its name cannot be told from one with a newline.
 * @name_too_long: there is a name, but it is longer than the ABI can tell.
 * @build_id: set if it was asked for.
 */
struct vma {
	__u64 start;
	__u64 end;
	__u64 flags;
	__u64 page_size;
	__u64 offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	const char *name;
	size_t name_len;
	bool name_is_text;
	bool name_too_long;
	struct build_id build_id;
};

/**
 * struct target - the process that is asked about
 * @pid: its ID.
 * @dir: its directory in /proc.
 */
struct target {
	int pid;
	char dir[sizeof("/proc/") + 3 * sizeof(int)];
};

struct source;

/**
 * struct way - one of the two ways to find mappings
 * @name: what it is called in the output.
 * @start: open what @next reads. Returns 0 or -errno.
 * @next: find the first mapping that ends above an address and passes the
 *	filters. The address does not fall from call to call. Returns 0,
 *	-ENOENT if there is none, or another -errno.
 * @stop: close what @start opened. The buffers stay, for another @start.
 */
struct way {
	const char *name;
	int (*start)(struct source *source);
	int (*next)(struct source *source, __u64 addr, struct vma *vma);
	void (*stop)(struct source *source);
};

/**
 * struct source - the mappings of a process, found in one way
 * @way: the way.
 * @target: the process.
 * @filters: flags that a mapping must have, as in a query.
 * @want_build_id: look for build IDs.
 * @vma: the mapping that was found last.
 * @found: @vma is set.
 * @at_end: no mapping is left.
 * @fd: the opened file, for the ioctl.
 * @name: the name of @vma, for the ioctl.
 * @text: all of the text; it is never changed, and so can be compared.
 * @text_size: bytes allocated for it.
 * @text_len: bytes read of it.
 * @line: where the line of @vma begins in it.
 * @next_line: where the first line begins that was not looked at yet.
 * @build_id: of the file of @build_id_inode, whose mappings mostly stand side
 *	by side in the text.
 * @build_id_inode: 0 if there is none yet.
 * @build_id_major: device of that file.
 * @build_id_minor: the same.
 */
struct source {
	const struct way *way;
	const struct target *target;
	__u64 filters;
	bool want_build_id;

	struct vma vma;
	bool found;
	bool at_end;

	int fd;
	char name[PATH_MAX];

	char *text;
	size_t text_size;
	size_t text_len;
	size_t line;
	size_t next_line;
	struct build_id build_id;
	__u64 build_id_inode;
	__u32 build_id_major;
	__u32 build_id_minor;
};

/**
 * struct options - what the user asked for
 * @target: the process; its pid is 0 if none was given.
 * @way: the way asked for, or NULL.
 * @file: the file with addresses, or NULL.
 * @addrs: the addresses, sorted before they are used.
 * @nr_addrs: how many there are.
 * @size_addrs: how many there is room for.
 * @filters: the flags that a mapping must have.
 * @runs: runs of the benchmark, 0 for none.
 * @list: all mappings, and not those of addresses.
 * @compare: compare both ways.
 * @build_id: print build IDs.
 * @verbose: print the line of the mapping.
 * @json: print JSON.
 */
struct options {
	struct target target;
	const struct way *way;
	const char *file;
	__u64 *addrs;
	size_t nr_addrs;
	size_t size_addrs;
	__u64 filters;
	unsigned long runs;
	bool list;
	bool compare;
	bool build_id;
	bool verbose;
	bool json;
};

static void *need(void *memory)
{
	if (!memory)
		fail("out of memory");
	return memory;
}

static bool has_file(const struct vma *vma)
{
	return vma->inode || vma->dev_major || vma->dev_minor;
}

static bool covers(const struct vma *vma, __u64 addr)
{
	return vma->start <= addr && addr < vma->end;
}

static __u64 file_offset(const struct vma *vma, __u64 addr)
{
	return addr - vma->start + vma->offset;
}

/* The name with its newlines, NUL-terminated, to be freed. */
static char *raw_name(const struct vma *vma, size_t *len)
{
	static const char newline[] = "\\012";
	const size_t newline_len = sizeof(newline) - 1;
	char *name = need(malloc(vma->name_len + 1));
	char *to = name;
	size_t i = 0;

	while (i < vma->name_len) {
		if (vma->name_is_text && vma->name_len - i >= newline_len &&
		    !memcmp(vma->name + i, newline, newline_len)) {
			*to++ = '\n';
			i += newline_len;
		} else {
			*to++ = vma->name[i++];
		}
	}
	*to = '\0';
	*len = to - name;
	return name;
}

/* Print a name as the text does. */
static void print_name(FILE *out, const char *name, size_t len)
{
	const char *newline;

	while ((newline = memchr(name, '\n', len))) {
		fwrite(name, 1, newline - name, out);
		fputs("\\012", out);
		len -= newline + 1 - name;
		name = newline + 1;
	}
	fwrite(name, 1, len, out);
}

static int open_maps(const struct target *target)
{
	char path[sizeof(target->dir) + sizeof("/maps")];
	int fd;

	snprintf(path, sizeof(path), "%s/maps", target->dir);
	fd = COUNTED(open(path, O_RDONLY | O_CLOEXEC));
	return fd < 0 ? -errno : fd;
}

/*
 * The way of the text: all of the file is read first, and its lines are then
 * parsed as they are asked for, each once and in place.
 */

static int read_text(struct source *source, int fd)
{
	ssize_t len;

	source->text_len = 0;
	do {
		if (source->text_len == source->text_size) {
			source->text_size = source->text_size ?
					    source->text_size * 2 :
					    TEXT_SIZE_MIN;
			source->text = need(realloc(source->text,
						    source->text_size));
		}
		len = COUNTED(read(fd, source->text + source->text_len,
				   source->text_size - source->text_len));
		if (len < 0)
			return -errno;
		source->text_len += len;
	} while (len);

	/* Without an address space there is not even a line for vsyscall. */
	return source->text_len ? 0 : -ESRCH;
}

static int text_start(struct source *source)
{
	int fd, err;

	fd = open_maps(source->target);
	if (fd < 0)
		return fd;
	err = read_text(source, fd);
	COUNTED(close(fd));

	source->next_line = 0;
	source->build_id_inode = 0;
	return err;
}

static void text_stop(struct source *source)
{
	/* The file was closed as soon as it was read. */
	(void)source;
}

/* What is left of a line. */
struct cursor {
	const char *at;
	const char *end;
};

static bool take_char(struct cursor *cursor, char wanted)
{
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

static bool take_hex(struct cursor *cursor, __u64 *value)
{
	const char *const from = cursor->at;
	__u64 number = 0;

	for (; cursor->at < cursor->end; cursor->at++) {
		const char c = *cursor->at;

		if (c >= '0' && c <= '9')
			number = number << 4 | (__u64)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (__u64)(c - 'a' + 10);
		else
			break;
	}
	*value = number;
	return cursor->at > from;
}

static bool take_decimal(struct cursor *cursor, __u64 *value)
{
	const char *const from = cursor->at;
	__u64 number = 0;

	while (cursor->at < cursor->end &&
	       *cursor->at >= '0' && *cursor->at <= '9')
		number = number * 10 + (__u64)(*cursor->at++ - '0');
	*value = number;
	return cursor->at > from;
}

static bool take_permissions(struct cursor *cursor, __u64 *flags)
{
	const char *const at = cursor->at;

	if (cursor->end - at < 4)
		return false;
	cursor->at += 4;
	*flags = (at[0] == 'r' ? PROCMAP_QUERY_VMA_READABLE : 0) |
		 (at[1] == 'w' ? PROCMAP_QUERY_VMA_WRITABLE : 0) |
		 (at[2] == 'x' ? PROCMAP_QUERY_VMA_EXECUTABLE : 0) |
		 (at[3] == 's' ? PROCMAP_QUERY_VMA_SHARED : 0);
	return true;
}

/* Parse what follows the addresses. */
static bool take_rest(struct cursor *cursor, struct vma *vma)
{
	__u64 dev_major, dev_minor;

	if (!take_char(cursor, ' ') || !take_permissions(cursor, &vma->flags) ||
	    !take_char(cursor, ' ') || !take_hex(cursor, &vma->offset) ||
	    !take_char(cursor, ' ') || !take_hex(cursor, &dev_major) ||
	    !take_char(cursor, ':') || !take_hex(cursor, &dev_minor) ||
	    !take_char(cursor, ' ') || !take_decimal(cursor, &vma->inode))
		return false;
	while (take_char(cursor, ' '))
		;

	vma->dev_major = dev_major;
	vma->dev_minor = dev_minor;
	vma->page_size = 0;
	vma->name = cursor->at;
	vma->name_len = cursor->end - cursor->at;
	vma->name_is_text = true;
	vma->name_too_long = false;
	return true;
}

/* The page of vsyscall has a line, but is no mapping of the process. */
static bool is_vsyscall(const struct vma *vma)
{
	static const char name[] = "[vsyscall]";

	return vma->name_len == sizeof(name) - 1 &&
	       !memcmp(vma->name, name, sizeof(name) - 1);
}

static bool passes_filters(const struct vma *vma, __u64 filters)
{
	if ((filters & PROCMAP_QUERY_FILE_BACKED_VMA) && !has_file(vma))
		return false;
	return !(filters & ~PROCMAP_QUERY_FILE_BACKED_VMA & ~vma->flags);
}

static int next_text_line(struct source *source, __u64 addr, struct vma *vma)
{
	while (source->next_line < source->text_len) {
		const char *const line = source->text + source->next_line;
		struct cursor cursor = {
			.at = line,
			.end = memchr(line, '\n',
				      source->text_len - source->next_line),
		};

		if (!cursor.end || !take_hex(&cursor, &vma->start) ||
		    !take_char(&cursor, '-') || !take_hex(&cursor, &vma->end))
			return -EBADMSG;
		source->line = source->next_line;
		source->next_line = cursor.end + 1 - source->text;
		if (vma->end <= addr)
			continue;
		if (!take_rest(&cursor, vma))
			return -EBADMSG;
		if (passes_filters(vma, source->filters) && !is_vsyscall(vma))
			return 0;
	}
	return -ENOENT;
}

/*
 * Build IDs for the text: of the file that is mapped, as libelf reads them, as
 * far as the ABI has them.
 */

static void build_id_in_notes(Elf_Data *notes, struct build_id *id)
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (!id->size && (at = gelf_getnote(notes, at, &note, &name, &desc))) {
		const char *const bytes = notes->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID ||
		    note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp(bytes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) ||
		    note.n_descsz < 1 || note.n_descsz > BUILD_ID_SIZE_MAX)
			continue;
		id->size = note.n_descsz;
		memcpy(id->bytes, bytes + desc, id->size);
	}
}

static bool may_have_build_id(Elf *elf, GElf_Ehdr *ehdr)
{
	return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, ehdr) &&
	       ehdr->e_ident[EI_DATA] == HOST_ELFDATA &&
	       (ehdr->e_type == ET_EXEC || ehdr->e_type == ET_DYN) &&
	       ehdr->e_phentsize == gelf_fsize(elf, ELF_T_PHDR, 1, EV_CURRENT);
}

static void build_id_in_elf(int fd, struct build_id *id)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	GElf_Ehdr ehdr;
	GElf_Phdr phdr;
	int i;

	if (!elf)
		return;
	if (!may_have_build_id(elf, &ehdr))
		goto end;

	for (i = 0; i < ehdr.e_phnum && !id->size; i++) {
		Elf_Data *notes;

		if (!gelf_getphdr(elf, i, &phdr))
			break;
		if (phdr.p_type != PT_NOTE)
			continue;
		notes = elf_getdata_rawchunk(elf, phdr.p_offset, phdr.p_filesz,
					     phdr.p_align == 8 ? ELF_T_NHDR8 :
								 ELF_T_NHDR);
		if (notes)
			build_id_in_notes(notes, id);
	}
end:
	elf_end(elf);
}

/* Only files that the page cache holds have one: no device, hugetlbfs, DAX. */
static bool is_in_page_cache(int fd)
{
	struct statfs fs;
	struct statx stat;

	if (COUNTED(statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &stat)) ||
	    COUNTED(fstatfs(fd, &fs)))
		return false;
	return S_ISREG(stat.stx_mode) &&
	       !(stat.stx_attributes & STATX_ATTR_DAX) &&
	       (unsigned int)fs.f_type != HUGETLBFS_MAGIC;
}

/*
 * Is this the file that @vma maps? stat(2) cannot tell: on btrfs and overlayfs
 * it shows another device, or inode, than the maps file. So map it and look.
 */
static bool is_file_of(int fd, const struct vma *vma)
{
	const struct target self = { .dir = "/proc/self" };
	struct source source = { .target = &self };
	struct vma mapped;
	void *map;
	bool same;

	map = COUNTED(mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0));
	if (map == MAP_FAILED)
		return false;
	same = !text_start(&source) &&
	       !next_text_line(&source, (uintptr_t)map, &mapped) &&
	       mapped.inode == vma->inode &&
	       mapped.dev_major == vma->dev_major &&
	       mapped.dev_minor == vma->dev_minor;
	COUNTED(munmap(map, 1));
	free(source.text);
	return same;
}

/* The very file of the mapping, even if it was deleted. Needs a capability. */
static int open_map_file(const struct target *target, const struct vma *vma)
{
	char path[sizeof(target->dir) + sizeof("/map_files/-") + 2 * 16];

	snprintf(path, sizeof(path), "%s/map_files/%llx-%llx",
		 target->dir, vma->start, vma->end);
	return COUNTED(open(path, O_PATH | O_CLOEXEC));
}

static int open_by_name(const struct target *target, const struct vma *vma)
{
	size_t name_len;
	char *name, *path;
	int fd;

	if (!vma->name_len || *vma->name != '/')
		return -1;
	name = raw_name(vma, &name_len);
	if (asprintf(&path, "%s/root%s", target->dir, name) < 0)
		fail("out of memory");
	fd = COUNTED(open(path, O_PATH | O_CLOEXEC));
	free(path);
	free(name);
	return fd;
}

/* Open for reading what is open as a path: then no device was opened for it. */
static int reopen(int path_fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return COUNTED(open(path, O_RDONLY | O_CLOEXEC));
}

static void read_build_id(const struct target *target, const struct vma *vma,
			  struct build_id *id)
{
	bool by_name = false;
	int path_fd, fd;

	*id = (struct build_id) {};
	path_fd = open_map_file(target, vma);
	if (path_fd < 0) {
		by_name = true;
		path_fd = open_by_name(target, vma);
	}
	if (path_fd < 0) {
		id->unreadable = true;
		return;
	}

	if (!is_in_page_cache(path_fd)) {
		id->unreadable = by_name;
		goto close_path;
	}
	fd = reopen(path_fd);
	if (fd < 0) {
		id->unreadable = true;
		goto close_path;
	}
	if (by_name && !is_file_of(fd, vma))
		id->unreadable = true;
	else
		build_id_in_elf(fd, id);
	COUNTED(close(fd));
close_path:
	COUNTED(close(path_fd));
}

static void find_build_id(struct source *source, struct vma *vma)
{
	if (!has_file(vma)) {
		vma->build_id = (struct build_id) {};
		return;
	}
	if (!source->build_id_inode || source->build_id_inode != vma->inode ||
	    source->build_id_major != vma->dev_major ||
	    source->build_id_minor != vma->dev_minor) {
		read_build_id(source->target, vma, &source->build_id);
		source->build_id_inode = vma->inode;
		source->build_id_major = vma->dev_major;
		source->build_id_minor = vma->dev_minor;
	}
	vma->build_id = source->build_id;
}

static int text_next(struct source *source, __u64 addr, struct vma *vma)
{
	int err = next_text_line(source, addr, vma);

	if (!err && source->want_build_id)
		find_build_id(source, vma);
	return err;
}

static const struct way text_way = {
	.name = "text",
	.start = text_start,
	.next = text_next,
	.stop = text_stop,
};

/* The way of the ioctl: the file is held open, each mapping is one query. */

static int ioctl_start(struct source *source)
{
	source->fd = open_maps(source->target);
	return source->fd < 0 ? source->fd : 0;
}

static void ioctl_stop(struct source *source)
{
	if (source->fd >= 0)
		COUNTED(close(source->fd));
}

static int query(struct source *source, __u64 addr, bool want_name,
		 struct vma *vma)
{
	struct procmap_query query = {
		.size = sizeof(query),
		.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA |
			       source->filters,
		.query_addr = addr,
	};

	if (want_name) {
		query.vma_name_addr = (uintptr_t)source->name;
		query.vma_name_size = sizeof(source->name);
	}
	if (source->want_build_id) {
		query.build_id_addr = (uintptr_t)vma->build_id.bytes;
		query.build_id_size = sizeof(vma->build_id.bytes);
	}
	if (COUNTED(ioctl(source->fd, PROCMAP_QUERY, &query)))
		return -errno;

	vma->start = query.vma_start;
	vma->end = query.vma_end;
	vma->flags = query.vma_flags;
	vma->page_size = query.vma_page_size;
	vma->offset = query.vma_offset;
	vma->inode = query.inode;
	vma->dev_major = query.dev_major;
	vma->dev_minor = query.dev_minor;
	vma->name = source->name;
	vma->name_len = query.vma_name_size ? query.vma_name_size - 1 : 0;
	vma->name_is_text = false;
	vma->name_too_long = false;
	vma->build_id.size = query.build_id_size;
	vma->build_id.unreadable = false;
	return 0;
}

static int ioctl_next(struct source *source, __u64 addr, struct vma *vma)
{
	int err = query(source, addr, true, vma);

	/* The build ID fits always: only the name can be too long. */
	if (err == -ENAMETOOLONG) {
		err = query(source, addr, false, vma);
		vma->name_too_long = true;
	}
	return err;
}

static const struct way ioctl_way = {
	.name = "ioctl",
	.start = ioctl_start,
	.next = ioctl_next,
	.stop = ioctl_stop,
};

static int start_source(struct source *source)
{
	source->found = false;
	source->at_end = false;
	return source->way->start(source);
}

static void stop_source(struct source *source)
{
	source->way->stop(source);
}

static struct source *new_source(const struct options *options,
				 const struct way *way)
{
	struct source *source = need(calloc(1, sizeof(*source)));

	source->way = way;
	source->target = &options->target;
	source->filters = options->filters;
	source->want_build_id = options->build_id || options->compare;
	source->fd = -1;
	return source;
}

static void free_source(struct source *source)
{
	free(source->text);
	free(source);
}

/*
 * Make source->vma the first mapping that ends above @addr, which must not fall
 * from call to call. As long as it is the one found last, that costs nothing.
 */
static int find_vma(struct source *source, __u64 addr)
{
	int err;

	if (source->at_end)
		return -ENOENT;
	if (source->found && addr < source->vma.end)
		return 0;
	err = source->way->next(source, addr, &source->vma);
	/* Whatever the kernel answers, a walk comes to its end. */
	if (!err && source->vma.end <= addr)
		err = -EPROTO;
	source->found = !err;
	source->at_end = err == -ENOENT;
	return err;
}

/* The way asked for; else the ioctl if a trial of it does not fail. */
static const struct way *choose_way(const struct options *options)
{
	struct source *source;
	int err;

	if (options->way)
		return options->way;

	source = new_source(options, &ioctl_way);
	source->want_build_id = false;
	err = start_source(source);
	if (!err)
		err = find_vma(source, 0);
	stop_source(source);
	free_source(source);
	return err && err != -ENOENT ? &text_way : &ioctl_way;
}

typedef void (*visit_fn)(void *context, __u64 addr, const struct vma *vma);

/*
 * Do the work that was asked for, in one pass: visit each address with the
 * mapping that covers it, or NULL; or each mapping with its first address.
 */
static int walk(const struct options *options, struct source *source,
		visit_fn visit, void *context)
{
	__u64 addr = 0;
	size_t i;
	int err;

	if (options->list) {
		while (!(err = find_vma(source, addr))) {
			visit(context, source->vma.start, &source->vma);
			addr = source->vma.end;
		}
		return err == -ENOENT ? 0 : err;
	}

	for (i = 0; i < options->nr_addrs; i++) {
		addr = options->addrs[i];
		err = find_vma(source, addr);
		if (err && err != -ENOENT)
			return err;
		visit(context, addr, !err && covers(&source->vma, addr) ?
				     &source->vma : NULL);
	}
	return 0;
}

static void print_hex(FILE *out, const void *bytes, size_t len)
{
	const unsigned char *const from = bytes;
	size_t i;

	for (i = 0; i < len; i++)
		fprintf(out, "%02x", from[i]);
}

static void permissions(const struct vma *vma, char text[5])
{
	text[0] = vma->flags & PROCMAP_QUERY_VMA_READABLE ? 'r' : '-';
	text[1] = vma->flags & PROCMAP_QUERY_VMA_WRITABLE ? 'w' : '-';
	text[2] = vma->flags & PROCMAP_QUERY_VMA_EXECUTABLE ? 'x' : '-';
	text[3] = vma->flags & PROCMAP_QUERY_VMA_SHARED ? 's' : 'p';
	text[4] = '\0';
}

/*
 * JSON. A name is any bytes but NUL: what is valid UTF-8 in it goes out as it
 * is, any other byte as \u00XX.
 */

struct json {
	FILE *out;
	bool first;	/* the next member or element needs no comma */
};

static bool is_continuation(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Length of the valid UTF-8 sequence of several bytes at @s, 0 if none. */
static size_t utf8_len(const unsigned char *s, size_t left)
{
	if (left >= 2 && s[0] >= 0xc2 && s[0] <= 0xdf && is_continuation(s[1]))
		return 2;
	if (left < 3 || !is_continuation(s[1]) || !is_continuation(s[2]))
		return 0;
	/* Neither overlong nor a surrogate. */
	if ((s[0] & 0xf0) == 0xe0)
		return (s[0] == 0xe0 && s[1] < 0xa0) ||
		       (s[0] == 0xed && s[1] >= 0xa0) ? 0 : 3;
	/* Neither overlong nor above U+10FFFF. */
	if (left < 4 || !is_continuation(s[3]) || s[0] < 0xf0 || s[0] > 0xf4 ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return 4;
}

/* The key of a member; NULL for an element, which has a line of its own. */
static void json_key(struct json *json, const char *key)
{
	if (!json->first)
		fputs(key ? ", " : ",", json->out);
	json->first = false;
	if (key)
		fprintf(json->out, "\"%s\": ", key);
	else
		fputc('\n', json->out);
}

static void json_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	fputc(bracket, json->out);
	json->first = true;
}

static void json_close(struct json *json, char bracket)
{
	fputc(bracket, json->out);
	json->first = false;
}

static void json_word(struct json *json, const char *key, const char *word)
{
	json_key(json, key);
	fputs(word, json->out);
}

static void json_bool(struct json *json, const char *key, bool value)
{
	json_word(json, key, value ? "true" : "false");
}

static void json_number(struct json *json, const char *key, __u64 value)
{
	json_key(json, key);
	fprintf(json->out, "%llu", value);
}

static void json_real(struct json *json, const char *key, double value)
{
	json_key(json, key);
	fprintf(json->out, "%.3f", value);
}

static void json_address(struct json *json, const char *key, __u64 addr)
{
	json_key(json, key);
	fprintf(json->out, "\"0x%llx\"", addr);
}

/* Returns whether it was valid UTF-8, so that nothing is lost. */
static bool json_bytes(struct json *json, const char *key, const char *bytes,
		       size_t len)
{
	const unsigned char *s = (const unsigned char *)bytes;
	bool valid = true;

	json_key(json, key);
	fputc('"', json->out);
	while (len) {
		size_t n = *s < 0x80 ? 1 : utf8_len(s, len);

		if (!n || *s < ' ') {
			valid = valid && n;
			fprintf(json->out, "\\u%04x", *s);
			n = 1;
		} else {
			if (*s == '"' || *s == '\\')
				fputc('\\', json->out);
			fwrite(s, 1, n, json->out);
		}
		s += n;
		len -= n;
	}
	fputc('"', json->out);
	return valid;
}

static void json_string(struct json *json, const char *key, const char *string)
{
	json_bytes(json, key, string, strlen(string));
}

static void json_hex(struct json *json, const char *key, const void *bytes,
		     size_t len)
{
	json_key(json, key);
	fputc('"', json->out);
	print_hex(json->out, bytes, len);
	fputc('"', json->out);
}

static void json_name(struct json *json, const struct vma *vma)
{
	size_t len;
	char *name;

	if (!vma->name_len) {
		json_word(json, "name", "null");
		if (vma->name_too_long)
			json_bool(json, "name_too_long", true);
		return;
	}
	name = raw_name(vma, &len);
	if (!json_bytes(json, "name", name, len))
		json_hex(json, "name_hex", name, len);
	free(name);
}

static void json_build_id(struct json *json, const struct build_id *id)
{
	if (id->size)
		json_hex(json, "build_id", id->bytes, id->size);
	else
		json_word(json, "build_id", "null");
	if (id->unreadable)
		json_bool(json, "build_id_unreadable", true);
}

static void json_vma(struct json *json, const char *key, const struct vma *vma,
		     bool build_id)
{
	char perms[5], inode[3 * sizeof(vma->inode)];

	permissions(vma, perms);
	snprintf(inode, sizeof(inode), "%llu", vma->inode);

	json_open(json, key, '{');
	json_address(json, "start", vma->start);
	json_address(json, "end", vma->end);
	json_string(json, "permissions", perms);
	json_address(json, "offset", vma->offset);
	json_number(json, "dev_major", vma->dev_major);
	json_number(json, "dev_minor", vma->dev_minor);
	json_string(json, "inode", inode);
	if (vma->page_size)
		json_number(json, "page_size", vma->page_size);
	else
		json_word(json, "page_size", "null");
	json_name(json, vma);
	if (build_id)
		json_build_id(json, &vma->build_id);
	json_close(json, '}');
}

static void json_lookup(struct json *json, const struct options *options,
			__u64 addr, const struct vma *vma)
{
	json_open(json, NULL, '{');
	json_address(json, "address", addr);
	json_bool(json, "mapped", vma);
	if (vma) {
		if (has_file(vma))
			json_address(json, "offset", file_offset(vma, addr));
		else
			json_word(json, "offset", "null");
		json_name(json, vma);
		if (options->build_id)
			json_build_id(json, &vma->build_id);
		if (options->verbose)
			json_vma(json, "vma", vma, options->build_id);
	}
	json_close(json, '}');
}

static void json_begin(struct json *json, const struct options *options)
{
	fputc('{', json->out);
	json->first = true;
	json_number(json, "pid", options->target.pid);
}

static void json_end(struct json *json)
{
	fputs("}\n", json->out);
}

/*
 * Where names begin in a line of the text. That depends on the size of a
 * pointer in the kernel, which a 32-bit program cannot know otherwise.
 */
static size_t name_column(void)
{
	const struct target self = { .dir = "/proc/self" };
	struct source source = { .target = &self };
	size_t column = 0;
	struct vma vma;

	if (!text_start(&source))
		while (!column && !next_text_line(&source, 0, &vma))
			if (vma.name_len)
				column = vma.name - source.text - source.line;
	free(source.text);
	return column;
}

/**
 * struct printer - where found mappings go
 * @out: the stream.
 * @options: what is to be printed of them.
 * @column: where names begin in a line.
 * @json: the state of JSON.
 * @nr_found: how many mappings, or addresses in one, were printed.
 */
struct printer {
	FILE *out;
	const struct options *options;
	size_t column;
	struct json json;
	size_t nr_found;
};

static void print_name_or(FILE *out, const struct vma *vma, const char *none)
{
	if (vma->name_too_long)
		fputs("(longer than PATH_MAX)", out);
	else if (vma->name_len)
		print_name(out, vma->name, vma->name_len);
	else
		fputs(none, out);
}

/* The line of a mapping, byte for byte as in the text. */
static void print_line(const struct printer *printer, const struct vma *vma)
{
	const int column = printer->column;
	char perms[5];
	int len;

	permissions(vma, perms);
	len = fprintf(printer->out,
		      "%08llx-%08llx %s %08llx %02x:%02x %llu ",
		      vma->start, vma->end, perms, vma->offset, vma->dev_major,
		      vma->dev_minor, vma->inode);
	if (vma->name_len || vma->name_too_long)
		fprintf(printer->out, "%*s",
			len < column ? column - len : 1, "");
	print_name_or(printer->out, vma, "");
	fputc('\n', printer->out);
}

static void print_build_id_column(FILE *out, const struct build_id *id)
{
	const int none_width = 2 * BUILD_ID_SIZE_MAX;

	if (id->size)
		print_hex(out, id->bytes, id->size);
	else
		fprintf(out, "%-*s", none_width, id->unreadable ? "?" : "-");
	fputc(' ', out);
}

static void print_address(const struct printer *printer, __u64 addr,
			  const struct vma *vma)
{
	FILE *const out = printer->out;

	fprintf(out, "0x%016llx ", addr);
	if (!vma) {
		fputs("not mapped\n", out);
		return;
	}

	if (has_file(vma))
		fprintf(out, "0x%016llx ", file_offset(vma, addr));
	else
		fprintf(out, "%-18s ", "-");
	if (printer->options->build_id)
		print_build_id_column(out, &vma->build_id);
	print_name_or(out, vma, "-");
	fputc('\n', out);
	if (printer->options->verbose) {
		fputs("  ", out);
		print_line(printer, vma);
	}
}

static void print_listed(const struct printer *printer, const struct vma *vma)
{
	print_line(printer, vma);
	if (!printer->options->build_id)
		return;
	if (vma->build_id.size) {
		fputs("  build ID ", printer->out);
		print_hex(printer->out, vma->build_id.bytes,
			  vma->build_id.size);
		fputc('\n', printer->out);
	} else if (vma->build_id.unreadable) {
		fputs("  build ID ?\n", printer->out);
	}
}

static void print_found(void *context, __u64 addr, const struct vma *vma)
{
	struct printer *printer = context;

	if (vma)
		printer->nr_found++;
	if (printer->options->json) {
		if (printer->options->list)
			json_vma(&printer->json, NULL, vma,
				 printer->options->build_id);
		else
			json_lookup(&printer->json, printer->options, addr,
				    vma);
	} else if (printer->options->list) {
		print_listed(printer, vma);
	} else {
		print_address(printer, addr, vma);
	}
}

static int show(const struct options *options, FILE *out)
{
	struct printer printer = {
		.out = out,
		.options = options,
		.json = { .out = out },
	};
	struct source *source;
	int err;

	source = new_source(options, choose_way(options));
	if (options->json) {
		json_begin(&printer.json, options);
		json_string(&printer.json, "way", source->way->name);
		json_open(&printer.json, options->list ? "vmas" : "addresses",
			  '[');
	} else if (options->list || options->verbose) {
		printer.column = name_column();
	}

	err = start_source(source);
	if (!err)
		err = walk(options, source, print_found, &printer);
	stop_source(source);
	free_source(source);

	if (err)
		return err;
	if (options->json) {
		json_close(&printer.json, ']');
		json_end(&printer.json);
	}
	return printer.nr_found ? EXIT_SUCCESS : EXIT_FAILURE;
}

/**
 * struct comparison - what a comparison found
 * @changed: the process did not hold still meanwhile.
 * @as_json: differences are written as JSON objects, and not as lines.
 * @json: where they are written to.
 * @lines: what was written.
 * @lines_size: their bytes.
 * @addresses: addresses looked up.
 * @mappings: mappings that both ways found and whose fields were compared.
 * @names: those that have a name.
 * @build_ids: those that have a build ID.
 * @unreadable: those whose file could not be read for the text.
 * @left_out: names that are longer than the ABI has.
 * @differences: how many there are.
 */
struct comparison {
	bool changed;
	bool as_json;
	struct json json;
	char *lines;
	size_t lines_size;
	size_t addresses;
	size_t mappings;
	size_t names;
	size_t build_ids;
	size_t unreadable;
	size_t left_out;
	size_t differences;
};

static void report_difference(struct comparison *comparison, __u64 addr,
			      const char *field, const char *by_ioctl,
			      size_t ioctl_len, const char *by_text,
			      size_t text_len)
{
	struct json *const json = &comparison->json;
	FILE *const out = json->out;

	if (comparison->as_json) {
		json_open(json, NULL, '{');
		json_address(json, "address", addr);
		json_string(json, "field", field);
		json_bytes(json, "ioctl", by_ioctl, ioctl_len);
		json_bytes(json, "text", by_text, text_len);
		json_close(json, '}');
	} else {
		fprintf(out, "0x%016llx: %s: ioctl ", addr, field);
		print_name(out, by_ioctl, ioctl_len);
		fputs(", text ", out);
		print_name(out, by_text, text_len);
		fputc('\n', out);
	}
	comparison->differences++;
}

static void compare_strings(struct comparison *comparison, __u64 addr,
			    const char *field, const char *by_ioctl,
			    const char *by_text)
{
	if (strcmp(by_ioctl, by_text))
		report_difference(comparison, addr, field, by_ioctl,
				  strlen(by_ioctl), by_text, strlen(by_text));
}

static void compare_numbers(struct comparison *comparison, __u64 addr,
			    const char *field, __u64 by_ioctl,
			    __u64 by_text)
{
	char a[sizeof("0x") + 16], b[sizeof("0x") + 16];

	if (by_ioctl == by_text)
		return;
	snprintf(a, sizeof(a), "0x%llx", by_ioctl);
	snprintf(b, sizeof(b), "0x%llx", by_text);
	compare_strings(comparison, addr, field, a, b);
}

/* A newline is \012 in the text, and so may be \012 in the raw name. */
static bool is_same_name(const struct vma *raw, const struct vma *text)
{
	const char *at = text->name, *const end = at + text->name_len;
	size_t i;

	for (i = 0; i < raw->name_len; i++) {
		if (raw->name[i] == '\n') {
			if (end - at < 4 || memcmp(at, "\\012", 4))
				return false;
			at += 4;
		} else if (at == end || *at++ != raw->name[i]) {
			return false;
		}
	}
	return at == end;
}

static void compare_names(struct comparison *comparison,
			  const struct vma *by_ioctl, const struct vma *by_text)
{
	static const char too_long[] = "(longer than PATH_MAX)";

	if (!by_ioctl->name_too_long) {
		comparison->names += by_ioctl->name_len || by_text->name_len;
		if (!is_same_name(by_ioctl, by_text))
			report_difference(comparison, by_text->start, "name",
					  by_ioctl->name, by_ioctl->name_len,
					  by_text->name, by_text->name_len);
	} else if (by_text->name_len < PATH_MAX) {
		report_difference(comparison, by_text->start, "name",
				  too_long, sizeof(too_long) - 1,
				  by_text->name, by_text->name_len);
	} else {
		comparison->left_out++;
	}
}

static void format_build_id(const struct build_id *id,
			    char text[2 * BUILD_ID_SIZE_MAX + 1])
{
	unsigned int i;

	strcpy(text, "none");
	for (i = 0; i < id->size; i++)
		sprintf(text + 2 * i, "%02x", id->bytes[i]);
}

static void compare_build_ids(struct comparison *comparison, __u64 addr,
			      const struct build_id *by_ioctl,
			      const struct build_id *by_text)
{
	char a[2 * BUILD_ID_SIZE_MAX + 1], b[2 * BUILD_ID_SIZE_MAX + 1];

	if (by_text->unreadable) {
		comparison->unreadable++;
		return;
	}
	comparison->build_ids += by_ioctl->size || by_text->size;
	format_build_id(by_ioctl, a);
	format_build_id(by_text, b);
	compare_strings(comparison, addr, "build ID", a, b);
}

/* All that the text tells; the page size is not in it. */
static void compare_vmas(struct comparison *comparison,
			 const struct vma *by_ioctl, const struct vma *by_text)
{
	const __u64 addr = by_text->start;
	char a[5], b[5];

	comparison->mappings++;
	compare_numbers(comparison, addr, "start", by_ioctl->start,
			by_text->start);
	compare_numbers(comparison, addr, "end", by_ioctl->end, by_text->end);
	permissions(by_ioctl, a);
	permissions(by_text, b);
	compare_strings(comparison, addr, "permissions", a, b);
	compare_numbers(comparison, addr, "offset", by_ioctl->offset,
			by_text->offset);
	compare_numbers(comparison, addr, "device major", by_ioctl->dev_major,
			by_text->dev_major);
	compare_numbers(comparison, addr, "device minor", by_ioctl->dev_minor,
			by_text->dev_minor);
	compare_numbers(comparison, addr, "inode", by_ioctl->inode,
			by_text->inode);
	compare_names(comparison, by_ioctl, by_text);
	compare_build_ids(comparison, addr, &by_ioctl->build_id,
			  &by_text->build_id);
}

static void compare_existence(struct comparison *comparison, __u64 addr,
			      bool by_ioctl, bool by_text)
{
	compare_strings(comparison, addr, "mapping",
			by_ioctl ? "mapped" : "not mapped",
			by_text ? "mapped" : "not mapped");
}

static int compare_lists(struct comparison *comparison,
			 struct source *by_ioctl, struct source *by_text)
{
	__u64 addr = 0;

	for (;;) {
		const struct vma *const a = &by_ioctl->vma;
		const struct vma *const b = &by_text->vma;
		const int err_a = find_vma(by_ioctl, addr);
		const int err_b = find_vma(by_text, addr);

		if (err_a && err_a != -ENOENT)
			return err_a;
		if (err_b && err_b != -ENOENT)
			return err_b;
		if (err_a && err_b)
			return 0;

		if (err_a || (!err_b && b->end <= a->start)) {
			compare_existence(comparison, b->start, false, true);
			addr = b->end;
		} else if (err_b || a->end <= b->start) {
			compare_existence(comparison, a->start, true, false);
			addr = a->end;
		} else {
			compare_vmas(comparison, a, b);
			addr = a->end > b->end ? a->end : b->end;
		}
	}
}

static int compare_addresses(struct comparison *comparison,
			     const struct options *options,
			     struct source *by_ioctl, struct source *by_text)
{
	__u64 compared_to = 0;
	size_t i;

	for (i = 0; i < options->nr_addrs; i++) {
		const __u64 addr = options->addrs[i];
		const struct vma *const a = &by_ioctl->vma;
		const struct vma *const b = &by_text->vma;
		const int err_a = find_vma(by_ioctl, addr);
		const int err_b = find_vma(by_text, addr);
		const bool in_a = !err_a && covers(a, addr);
		const bool in_b = !err_b && covers(b, addr);

		if (err_a && err_a != -ENOENT)
			return err_a;
		if (err_b && err_b != -ENOENT)
			return err_b;

		comparison->addresses++;
		compare_existence(comparison, addr, in_a, in_b);
		if (in_a && in_b && addr >= compared_to) {
			compare_vmas(comparison, a, b);
			compared_to = a->end < b->end ? a->end : b->end;
		}
	}
	return 0;
}

static bool is_same_text(const struct source *a, const struct source *b)
{
	return a->text_len == b->text_len &&
	       !memcmp(a->text, b->text, a->text_len);
}

/*
 * One attempt. The text is read before and after, to see whether the process
 * held still.
 */
static int compare_once(struct comparison *comparison,
			const struct options *options, struct source *by_ioctl,
			struct source *by_text, struct source *text_after)
{
	int err;

	err = start_source(by_text);
	if (err)
		return err;
	err = start_source(by_ioctl);
	if (err)
		goto stop_text;

	comparison->json.first = true;
	comparison->json.out = need(open_memstream(&comparison->lines,
						   &comparison->lines_size));
	err = options->list ?
	      compare_lists(comparison, by_ioctl, by_text) :
	      compare_addresses(comparison, options, by_ioctl, by_text);
	fclose(comparison->json.out);
	if (err)
		goto stop_ioctl;

	err = start_source(text_after);
	if (err)
		goto stop_ioctl;
	comparison->changed = !is_same_text(by_text, text_after);
	stop_source(text_after);

stop_ioctl:
	stop_source(by_ioctl);
stop_text:
	stop_source(by_text);
	return err;
}

/*
 * A process that maps and unmaps at the same place can show the ioctl what no
 * text has, while the text before and after is the same. So there is only a
 * difference if each attempt found one, in a process that held still each time.
 */
static int compare_until_same(struct comparison *comparison,
			      const struct options *options,
			      struct source *by_ioctl, struct source *by_text,
			      struct source *text_after)
{
	bool changed = false;
	int attempt, err;

	for (attempt = 0; attempt < COMPARE_ATTEMPTS; attempt++) {
		/* A process that starts up gets 1 s in all to come to rest. */
		if (attempt)
			usleep(1000 << attempt);
		free(comparison->lines);
		*comparison = (struct comparison) { .as_json = options->json };
		err = compare_once(comparison, options, by_ioctl, by_text,
				   text_after);
		if (err)
			return err;
		if (!comparison->changed && !comparison->differences)
			return 0;
		changed |= comparison->changed;
	}
	comparison->changed = changed;
	return 0;
}

static void json_comparison(FILE *out, const struct options *options,
			    const struct comparison *comparison)
{
	struct json json = { .out = out };

	json_begin(&json, options);
	json_open(&json, "compare", '{');
	json_bool(&json, "changed", comparison->changed);
	json_number(&json, "addresses", comparison->addresses);
	json_number(&json, "mappings", comparison->mappings);
	json_number(&json, "names", comparison->names);
	json_number(&json, "names_left_out", comparison->left_out);
	json_number(&json, "build_ids", comparison->build_ids);
	json_number(&json, "build_ids_unreadable", comparison->unreadable);
	json_open(&json, "differences", '[');
	if (!comparison->changed)
		fputs(comparison->lines, out);
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}

static void print_comparison(FILE *out, const struct options *options,
			     const struct comparison *comparison)
{
	fputs(comparison->lines, out);
	fputs("compared by ioctl and text\n", out);
	if (!options->list)
		fprintf(out, "  addresses           %8zu\n",
			comparison->addresses);
	fprintf(out,
		"  mappings            %8zu\n"
		"  names               %8zu\n"
		"  build IDs           %8zu\n",
		comparison->mappings, comparison->names, comparison->build_ids);
	if (comparison->left_out || comparison->unreadable)
		fputs("not compared\n", out);
	if (comparison->left_out)
		fprintf(out, "  names over PATH_MAX %8zu\n",
			comparison->left_out);
	if (comparison->unreadable)
		fprintf(out, "  unreadable files    %8zu\n",
			comparison->unreadable);
	fprintf(out, "differences           %8zu\n", comparison->differences);
}

static int compare(const struct options *options, FILE *out)
{
	struct source *by_ioctl = new_source(options, &ioctl_way);
	struct source *by_text = new_source(options, &text_way);
	struct source *text_after = new_source(options, &text_way);
	struct comparison comparison = {};
	int err;

	err = compare_until_same(&comparison, options, by_ioctl, by_text,
				 text_after);
	if (err)
		goto free;

	if (options->json)
		json_comparison(out, options, &comparison);
	else if (!comparison.changed)
		print_comparison(out, options, &comparison);
	if (comparison.changed)
		warnx("the mappings of process %d changed each time, %d times: stop it first",
		      options->target.pid, COMPARE_ATTEMPTS);
	err = !comparison.changed && !comparison.differences &&
	      comparison.mappings ? EXIT_SUCCESS : EXIT_FAILURE;
free:
	free(comparison.lines);
	free_source(by_ioctl);
	free_source(by_text);
	free_source(text_after);
	return err;
}

/**
 * struct timing - what the runs of one way cost
 * @source: the way.
 * @ns: the time of each run.
 * @syscalls: of all runs.
 * @nr_found: mappings, or addresses in one, that the last run found.
 */
struct timing {
	struct source *source;
	__u64 *ns;
	unsigned long syscalls;
	size_t nr_found;
};

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
}

static void count_found(void *context, __u64 addr, const struct vma *vma)
{
	size_t *nr_found = context;

	(void)addr;
	if (vma)
		(*nr_found)++;
}

static int time_run(const struct options *options, struct timing *timing,
		    unsigned long run)
{
	const unsigned long syscalls = nr_syscalls;
	const __u64 begin = now_ns();
	int err;

	timing->nr_found = 0;
	err = start_source(timing->source);
	if (!err)
		err = walk(options, timing->source, count_found,
			   &timing->nr_found);
	stop_source(timing->source);

	timing->ns[run] = now_ns() - begin;
	timing->syscalls += nr_syscalls - syscalls;
	return err;
}

static int by_number(const void *a, const void *b)
{
	const __u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

static double median_us(const struct timing *timing, unsigned long runs)
{
	return (timing->ns[(runs - 1) / 2] + timing->ns[runs / 2]) / 2000.0;
}

static void json_timings(FILE *out, const struct options *options,
			 const struct timing timings[2], double ratio)
{
	const unsigned long runs = options->runs;
	struct json json = { .out = out };
	int i;

	json_begin(&json, options);
	json_open(&json, "bench", '{');
	json_number(&json, "runs", runs);
	for (i = 0; i < 2; i++) {
		const struct timing *const timing = &timings[i];

		json_open(&json, timing->source->way->name, '{');
		json_real(&json, "min_us", timing->ns[0] / 1000.0);
		json_real(&json, "median_us", median_us(timing, runs));
		json_real(&json, "max_us", timing->ns[runs - 1] / 1000.0);
		json_real(&json, "syscalls_per_run",
			  (double)timing->syscalls / runs);
		json_number(&json, "found", timing->nr_found);
		json_close(&json, '}');
	}
	json_real(&json, "text_to_ioctl", ratio);
	json_close(&json, '}');
	json_end(&json);
}

static void print_timings(FILE *out, const struct options *options,
			  const struct timing timings[2], double ratio)
{
	const unsigned long runs = options->runs;
	int i;

	fprintf(out, "%lu runs each, times in us\n", runs);
	fprintf(out, "%-5s %12s %12s %12s %12s %9s\n", "", "min", "median",
		"max", "syscalls/run", "found");
	for (i = 0; i < 2; i++) {
		const struct timing *const timing = &timings[i];

		fprintf(out, "%-5s %12.1f %12.1f %12.1f %12.1f %9zu\n",
			timing->source->way->name, timing->ns[0] / 1000.0,
			median_us(timing, runs), timing->ns[runs - 1] / 1000.0,
			(double)timing->syscalls / runs, timing->nr_found);
	}
	fprintf(out, "ratio of the medians, text to ioctl: %.2f\n", ratio);
}

static int bench(const struct options *options, FILE *out)
{
	struct timing timings[2] = {
		{ .source = new_source(options, &ioctl_way) },
		{ .source = new_source(options, &text_way) },
	};
	unsigned long run;
	double ratio;
	int i, err = 0;

	for (i = 0; i < 2; i++)
		timings[i].ns = need(calloc(options->runs, sizeof(__u64)));

	/* The two take turns, and take turns at being first. */
	for (run = 0; run < options->runs && !err; run++)
		for (i = 0; i < 2 && !err; i++)
			err = time_run(options, &timings[(run + i) % 2], run);
	if (!err) {
		for (i = 0; i < 2; i++)
			qsort(timings[i].ns, options->runs, sizeof(__u64),
			      by_number);
		ratio = median_us(&timings[1], options->runs) /
			median_us(&timings[0], options->runs);
		if (options->json)
			json_timings(out, options, timings, ratio);
		else
			print_timings(out, options, timings, ratio);
		err = timings[0].nr_found || timings[1].nr_found ?
		      EXIT_SUCCESS : EXIT_FAILURE;
	}

	for (i = 0; i < 2; i++) {
		free(timings[i].ns);
		free_source(timings[i].source);
	}
	return err;
}

/* Bad input as it can stand in a message of one line. */
static const char *quote(const char *text, size_t len)
{
	static char quoted[QUOTE_LEN_MAX + sizeof("...")];
	size_t i;

	for (i = 0; i < len && i < QUOTE_LEN_MAX; i++)
		quoted[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	strcpy(quoted + i, i < len ? "..." : "");
	return quoted;
}

/* Parse an address and say what is wrong with it, or return NULL. */
static const char *parse_address(const char *text, size_t len, __u64 *addr)
{
	size_t i = 0;

	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		i = 2;
	for (*addr = 0; i < len; i++) {
		const unsigned char c = text[i];

		if (!isxdigit(c))
			return "is not a hexadecimal address";
		if (*addr >> 60)
			return "is too large: an address has 64 bits at most";
		*addr = *addr << 4 | (isdigit(c) ? c - '0' :
						   tolower(c) - 'a' + 10);
	}
	return NULL;
}

static void add_address(struct options *options, __u64 addr)
{
	if (options->nr_addrs == options->size_addrs) {
		options->size_addrs = options->size_addrs * 2 + 64;
		options->addrs = need(reallocarray(options->addrs,
						   options->size_addrs,
						   sizeof(addr)));
	}
	options->addrs[options->nr_addrs++] = addr;
}

static void read_address_line(struct options *options, const char *name,
			      size_t line, const char *text, size_t len)
{
	const char *const comment = memchr(text, '#', len);
	const char *problem;
	__u64 addr;

	if (comment)
		len = comment - text;
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (!len)
		return;
	problem = parse_address(text, len, &addr);
	if (problem)
		fail("%s:%zu: '%s' %s", name, line, quote(text, len), problem);
	add_address(options, addr);
}

static void read_addresses(struct options *options)
{
	const bool is_stdin = !strcmp(options->file, "-");
	const char *const name = is_stdin ? "standard input" : options->file;
	FILE *const file = is_stdin ? stdin : fopen(options->file, "re");
	size_t size = 0, line = 0;
	char *text = NULL;
	ssize_t len;

	if (!file)
		fail("%s: %s: give a file with one address a line", name,
		     strerror(errno));
	while ((len = getline(&text, &size, file)) >= 0)
		read_address_line(options, name, ++line, text, len);
	if (!feof(file))
		fail("%s:%zu: %s: give a file with one address a line", name,
		     line + 1, strerror(errno));
	if (!options->nr_addrs)
		fail("%s:%zu: the file ends without an address: give one a line",
		     name, line);
	free(text);
	if (!is_stdin)
		fclose(file);
}

/* Say in one line what went wrong and what to do about it. */
static void report_trouble(const struct target *target, int err)
{
	switch (-err) {
	case ENOENT:
		fail("there is no process %d: see ps(1) for those there are",
		     target->pid);
	case EACCES:
	case EPERM:
		fail("no permission to look into process %d: become its user or root",
		     target->pid);
	case ESRCH:
		fail("process %d has no mappings (a kernel thread, or exited): give another",
		     target->pid);
	case ENOTTY:
		fail("this kernel has no PROCMAP_QUERY: only the text (-T) can be used");
	case EBADMSG:
		fail("%s/maps is not in the format of this kernel's text: use -Q",
		     target->dir);
	case EPROTO:
		fail("%s/maps: the kernel answered with a mapping below the address: use -T",
		     target->dir);
	default:
		fail("%s/maps: %s", target->dir, strerror(-err));
	}
}

/* A full disk or a reader that has gone is told, and not ignored. */
static void write_output(const char *bytes, size_t len)
{
	while (len) {
		const ssize_t written = write(STDOUT_FILENO, bytes, len);

		if (written < 0)
			fail("standard output: %s: not all of the result was written",
			     strerror(errno));
		bytes += written;
		len -= written;
	}
}

enum {
	KEY_EXECUTABLE = 0x100,
	KEY_READABLE,
	KEY_WRITABLE,
	KEY_SHARED,
	KEY_FILE_BACKED,
};

static const struct argp_option argp_options[] = {
	{ .doc = "What to look at:" },
	{ .name = "pid", .key = 'p', .arg = "PID",
	  .doc = "The process to look into, or self; required" },
	{ .name = "file", .key = 'f', .arg = "FILE",
	  .doc = "Read addresses from FILE, one a line; - is standard input, # begins a comment" },
	{ .name = "list", .key = 'l',
	  .doc = "List all mappings, each as its line in /proc/PID/maps" },

	{ .doc = "Filters, of which a mapping has to pass all:" },
	{ .name = "executable", .key = KEY_EXECUTABLE, .doc = "Executable" },
	{ .name = "readable", .key = KEY_READABLE, .doc = "Readable" },
	{ .name = "writable", .key = KEY_WRITABLE, .doc = "Writable" },
	{ .name = "shared", .key = KEY_SHARED,
	  .doc = "Shared (s in the text)" },
	{ .name = "file-backed", .key = KEY_FILE_BACKED,
	  .doc = "Of a file" },

	{ .doc = "How to look:" },
	{ .name = "query", .key = 'Q',
	  .doc = "By the ioctl; fail if the kernel has none" },
	{ .name = "text", .key = 'T', .doc = "By the text" },

	{ .doc = "What to print:" },
	{ .name = "verbose", .key = 'v',
	  .doc = "With an address, the line of its mapping too" },
	{ .name = "build-id", .key = 'B',
	  .doc = "Build IDs; with -T they are read from the files" },
	{ .name = "json", .key = 'j', .doc = "JSON" },

	{ .doc = "Both ways, instead of printing what was found:" },
	{ .name = "compare", .key = 'c',
	  .doc = "Print what differs, build IDs included" },
	{ .name = "bench", .key = 'b', .arg = "N",
	  .doc = "Print what N runs of each cost, in turns" },
	{}
};

static const char argp_args_doc[] = "ADDR...\n-f FILE\n--list";

static const char argp_doc[] =
	"Tell which mappings of a process cover addresses, or list its mappings: by the PROCMAP_QUERY ioctl on /proc/PID/maps where the kernel has it, else by the text of that file.\n"
	"\n"
	"Addresses are hexadecimal, with or without 0x. They are looked up and printed in rising order: address, offset in the file, with -B build ID, name. A - stands for what there is none of, a ? for the build ID of a file that cannot be read.\n"
	"\vExamples:\n"
	"  procfs_query -p 1 7f5e12345678          what is mapped there\n"
	"  procfs_query -p 1 -B -f addresses.txt   for a symbolizer\n"
	"  procfs_query -p 1 --list --executable   the code of a process\n"
	"  procfs_query -p 1 --list --compare      do both ways agree?\n"
	"  procfs_query -p 1 --list --bench 100    which one is faster?\n"
	"\n"
	"By the text, a build ID is read from /proc/PID/map_files, for which CAP_CHECKPOINT_RESTORE is needed, else from the path if the mapped file is still there. --bench counts the system calls of this program, not those of libelf.\n"
	"\n"
	"In JSON, addresses and offsets are strings in hexadecimal, inode numbers strings in decimal. A name is a string in which each byte that is not part of valid UTF-8 is \\u0080 to \\u00ff; there is a name_hex with all bytes of such a name.\n"
	"\n"
	"Exit status:\n"
	"  0  something was found, and with --compare nothing differs\n"
	"  1  nothing was found, or something differs\n"
	"  2  bad usage, or the process cannot be looked into";

static bool parse_number(const char *text, unsigned long max,
			 unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return !errno && !*end && *number && *number <= max;
}

static void set_target(struct target *target, const char *text)
{
	unsigned long pid = getpid();

	if (strcmp(text, "self") && !parse_number(text, INT_MAX, &pid))
		fail("'%s' is not a process ID: give a positive number, or self",
		     quote(text, strlen(text)));
	target->pid = pid;
	snprintf(target->dir, sizeof(target->dir), "/proc/%d", target->pid);
}

static void set_way(struct options *options, const struct way *way)
{
	if (options->way && options->way != way)
		fail("-Q and -T exclude each other: leave out one");
	options->way = way;
}

static void add_argument(struct options *options, const char *text)
{
	const char *problem;
	__u64 addr;

	problem = parse_address(text, strlen(text), &addr);
	if (!*text)
		problem = "is not a hexadecimal address";
	if (problem)
		fail("argument '%s' %s", quote(text, strlen(text)), problem);
	add_address(options, addr);
}

static void check_options(const struct options *options)
{
	if (!options->target.pid)
		fail("no process given: use -p PID");
	if (options->list + !!options->file + !!options->nr_addrs != 1)
		fail("give either addresses, or -f FILE, or --list");
	if (options->compare && options->runs)
		fail("--compare and --bench exclude each other: run one after the other");
	if (options->way && (options->compare || options->runs))
		fail("--compare and --bench use both ways: leave out -Q and -T");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
		set_target(&options->target, arg);
		break;
	case 'f':
		options->file = arg;
		break;
	case 'l':
		options->list = true;
		break;
	case KEY_EXECUTABLE:
		options->filters |= PROCMAP_QUERY_VMA_EXECUTABLE;
		break;
	case KEY_READABLE:
		options->filters |= PROCMAP_QUERY_VMA_READABLE;
		break;
	case KEY_WRITABLE:
		options->filters |= PROCMAP_QUERY_VMA_WRITABLE;
		break;
	case KEY_SHARED:
		options->filters |= PROCMAP_QUERY_VMA_SHARED;
		break;
	case KEY_FILE_BACKED:
		options->filters |= PROCMAP_QUERY_FILE_BACKED_VMA;
		break;
	case 'Q':
		set_way(options, &ioctl_way);
		break;
	case 'T':
		set_way(options, &text_way);
		break;
	case 'v':
		options->verbose = true;
		break;
	case 'B':
		options->build_id = true;
		break;
	case 'j':
		options->json = true;
		break;
	case 'c':
		options->compare = true;
		break;
	case 'b':
		if (!parse_number(arg, BENCH_RUNS_MAX, &options->runs))
			fail("'%s' is not a number of runs: give one from 1 to %d",
			     quote(arg, strlen(arg)), BENCH_RUNS_MAX);
		break;
	case ARGP_KEY_ARG:
		add_argument(options, arg);
		break;
	case ARGP_KEY_END:
		check_options(options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse_option,
		.args_doc = argp_args_doc,
		.doc = argp_doc,
	};
	struct options options = {};
	size_t output_len;
	char *output;
	FILE *out;
	int status;

	argp_err_exit_status = EXIT_TROUBLE;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (options.file)
		read_addresses(&options);
	if (options.nr_addrs)
		qsort(options.addrs, options.nr_addrs, sizeof(*options.addrs),
		      by_number);
	elf_version(EV_CURRENT);
	signal(SIGPIPE, SIG_IGN);

	/* It goes out as a whole or, after an error, not at all. */
	out = need(open_memstream(&output, &output_len));
	if (options.compare)
		status = compare(&options, out);
	else if (options.runs)
		status = bench(&options, out);
	else
		status = show(&options, out);
	if (fclose(out))
		fail("out of memory");
	if (status >= 0)
		write_output(output, output_len);
	free(output);
	free(options.addrs);
	if (status < 0)
		report_trouble(&options.target, status);
	return status;
}
