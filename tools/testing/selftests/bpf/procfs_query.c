// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: tell which mappings of a process cover given addresses, or list
 * them, with the PROCMAP_QUERY ioctl and with the text of /proc/PID/maps.
 *
 * Both are a "way" to find one mapping at a time, in rising order. All that is
 * printed, compared or timed stands on that alone.
 */
#include <argp.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/procmap_query.h>
#include <signal.h>
#include <stdarg.h>
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

#define BUILD_ID_SIZE_MAX	20

/* How often a process that changes meanwhile is compared anew. */
#define COMPARE_ATTEMPTS	10

#define BENCH_RUNS_MAX		1000000

#define TEXT_SIZE_MIN		(64 * 1024)

/* Longest piece of bad input that is repeated in a message. */
#define QUOTE_LEN_MAX		60

#define HOST_ELFDATA	(__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : \
							   ELFDATA2MSB)

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
	uint8_t bytes[BUILD_ID_SIZE_MAX];
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
	uint64_t start;
	uint64_t end;
	uint64_t flags;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
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
	int (*next)(struct source *source, uint64_t addr, struct vma *vma);
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
	uint64_t filters;
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
	uint64_t build_id_inode;
	uint32_t build_id_major;
	uint32_t build_id_minor;
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
	uint64_t *addrs;
	size_t nr_addrs;
	size_t size_addrs;
	uint64_t filters;
	unsigned long runs;
	bool list;
	bool compare;
	bool build_id;
	bool verbose;
	bool json;
};

__attribute__((format(printf, 1, 2), noreturn))
static void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_TROUBLE);
}

static void *need(void *memory)
{
	if (!memory)
		die("out of memory");
	return memory;
}

static bool has_file(const struct vma *vma)
{
	return vma->inode || vma->dev_major || vma->dev_minor;
}

static bool covers(const struct vma *vma, uint64_t addr)
{
	return vma->start <= addr && addr < vma->end;
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

static bool take_hex(struct cursor *cursor, uint64_t *value)
{
	const char *const from = cursor->at;
	uint64_t number = 0;

	for (; cursor->at < cursor->end; cursor->at++) {
		const char c = *cursor->at;

		if (c >= '0' && c <= '9')
			number = number << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	*value = number;
	return cursor->at > from;
}

static bool take_decimal(struct cursor *cursor, uint64_t *value)
{
	const char *const from = cursor->at;
	uint64_t number = 0;

	while (cursor->at < cursor->end &&
	       *cursor->at >= '0' && *cursor->at <= '9')
		number = number * 10 + (uint64_t)(*cursor->at++ - '0');
	*value = number;
	return cursor->at > from;
}

static bool take_permissions(struct cursor *cursor, uint64_t *flags)
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
	uint64_t dev_major, dev_minor;

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

static bool passes_filters(const struct vma *vma, uint64_t filters)
{
	if ((filters & PROCMAP_QUERY_FILE_BACKED_VMA) && !has_file(vma))
		return false;
	return !(filters & ~PROCMAP_QUERY_FILE_BACKED_VMA & ~vma->flags);
}

static int next_text_line(struct source *source, uint64_t addr, struct vma *vma)
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
	       fs.f_type != HUGETLBFS_MAGIC;
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

	snprintf(path, sizeof(path), "%s/map_files/%" PRIx64 "-%" PRIx64,
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
		path = need(NULL);
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

static int text_next(struct source *source, uint64_t addr, struct vma *vma)
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

static int query(struct source *source, uint64_t addr, bool want_name,
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

static int ioctl_next(struct source *source, uint64_t addr, struct vma *vma)
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
static int find_vma(struct source *source, uint64_t addr)
{
	int err;

	if (source->at_end)
		return -ENOENT;
	if (source->found && addr < source->vma.end)
		return 0;
	err = source->way->next(source, addr, &source->vma);
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

typedef void (*visit_fn)(void *context, uint64_t addr, const struct vma *vma);

/*
 * Do the work that was asked for, in one pass: visit each address with the
 * mapping that covers it, or NULL; or each mapping with its first address.
 */
static int walk(const struct options *options, struct source *source,
		visit_fn visit, void *context)
{
	uint64_t addr = 0;
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

static void print_build_id(FILE *out, const struct build_id *id)
{
	unsigned int i;

	for (i = 0; i < id->size; i++)
		fprintf(out, "%02x", id->bytes[i]);
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

/* Returns whether it was valid UTF-8, so that nothing is lost. */
static bool json_string(FILE *out, const char *bytes, size_t len)
{
	const unsigned char *s = (const unsigned char *)bytes;
	bool valid = true;

	fputc('"', out);
	while (len) {
		size_t n = 1;

		if (*s >= 0x80)
			n = utf8_len(s, len);
		if (!n || *s < ' ') {
			valid = valid && n;
			fprintf(out, "\\u%04x", *s);
			n = 1;
		} else {
			if (*s == '"' || *s == '\\')
				fputc('\\', out);
			fwrite(s, 1, n, out);
		}
		s += n;
		len -= n;
	}
	fputc('"', out);
	return valid;
}

static void json_name(FILE *out, const struct vma *vma)
{
	size_t len, i;
	char *name;

	if (!vma->name_len) {
		fputs("\"name\": null", out);
		if (vma->name_too_long)
			fputs(", \"name_too_long\": true", out);
		return;
	}

	name = raw_name(vma, &len);
	fputs("\"name\": ", out);
	if (!json_string(out, name, len)) {
		fputs(", \"name_hex\": \"", out);
		for (i = 0; i < len; i++)
			fprintf(out, "%02x", (unsigned char)name[i]);
		fputc('"', out);
	}
	free(name);
}

static void json_build_id(FILE *out, const struct build_id *id)
{
	fputs(", \"build_id\": ", out);
	if (id->size) {
		fputc('"', out);
		print_build_id(out, id);
		fputc('"', out);
	} else {
		fputs("null", out);
	}
	if (id->unreadable)
		fputs(", \"build_id_unreadable\": true", out);
}

static void json_vma(FILE *out, const struct vma *vma, bool build_id)
{
	char perms[5];

	permissions(vma, perms);
	fprintf(out,
		"{\"start\": \"0x%" PRIx64 "\", \"end\": \"0x%" PRIx64 "\", "
		"\"permissions\": \"%s\", \"offset\": \"0x%" PRIx64 "\", "
		"\"dev_major\": %u, \"dev_minor\": %u, "
		"\"inode\": \"%" PRIu64 "\", \"page_size\": ",
		vma->start, vma->end, perms, vma->offset, vma->dev_major,
		vma->dev_minor, vma->inode);
	if (vma->page_size)
		fprintf(out, "%" PRIu64 ", ", vma->page_size);
	else
		fputs("null, ", out);
	json_name(out, vma);
	if (build_id)
		json_build_id(out, &vma->build_id);
	fputc('}', out);
}

static void json_address(FILE *out, const struct options *options,
			 uint64_t addr, const struct vma *vma)
{
	fprintf(out, "{\"address\": \"0x%" PRIx64 "\", \"mapped\": %s", addr,
		vma ? "true" : "false");
	if (vma) {
		if (has_file(vma))
			fprintf(out, ", \"offset\": \"0x%" PRIx64 "\", ",
				addr - vma->start + vma->offset);
		else
			fputs(", \"offset\": null, ", out);
		json_name(out, vma);
		if (options->build_id)
			json_build_id(out, &vma->build_id);
		if (options->verbose) {
			fputs(", \"vma\": ", out);
			json_vma(out, vma, options->build_id);
		}
	}
	fputc('}', out);
}

static void json_begin(FILE *out, const struct options *options)
{
	fprintf(out, "{\"pid\": %d, ", options->target.pid);
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
 * @separator: what stands before the next element in JSON.
 * @nr_found: how many mappings, or addresses in one, were printed.
 */
struct printer {
	FILE *out;
	const struct options *options;
	size_t column;
	const char *separator;
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
		      "%08" PRIx64 "-%08" PRIx64 " %s %08" PRIx64
		      " %02x:%02x %" PRIu64 " ",
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
		print_build_id(out, id);
	else
		fprintf(out, "%-*s", none_width, id->unreadable ? "?" : "-");
	fputc(' ', out);
}

static void print_address(const struct printer *printer, uint64_t addr,
			  const struct vma *vma)
{
	FILE *const out = printer->out;

	fprintf(out, "0x%016" PRIx64 " ", addr);
	if (!vma) {
		fputs("not mapped\n", out);
		return;
	}

	if (has_file(vma))
		fprintf(out, "0x%016" PRIx64 " ",
			addr - vma->start + vma->offset);
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
	if (printer->options->build_id && vma->build_id.size) {
		fputs("  build ID ", printer->out);
		print_build_id(printer->out, &vma->build_id);
		fputc('\n', printer->out);
	}
}

static void print_found(void *context, uint64_t addr, const struct vma *vma)
{
	struct printer *printer = context;

	if (vma)
		printer->nr_found++;
	if (printer->options->json) {
		fputs(printer->separator, printer->out);
		printer->separator = ",\n";
		if (printer->options->list)
			json_vma(printer->out, vma, printer->options->build_id);
		else
			json_address(printer->out, printer->options, addr, vma);
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
		.separator = "\n",
	};
	struct source *source;
	int err;

	source = new_source(options, choose_way(options));
	if (options->json) {
		json_begin(out, options);
		fprintf(out, "\"way\": \"%s\", \"%s\": [", source->way->name,
			options->list ? "vmas" : "addresses");
	} else if (options->list || options->verbose) {
		printer.column = name_column();
	}

	err = start_source(source);
	if (!err)
		err = walk(options, source, print_found, &printer);
	stop_source(source);
	free_source(source);

	if (options->json)
		fputs("\n]}\n", out);
	if (err)
		return err;
	return printer.nr_found ? EXIT_SUCCESS : EXIT_FAILURE;
}

/**
 * struct comparison - what a comparison found
 * @json: differences are JSON objects, and not lines.
 * @lines: the differences.
 * @addresses: addresses looked up.
 * @mappings: mappings that both ways found and whose fields were compared.
 * @names: those that have a name.
 * @build_ids: those that have a build ID.
 * @unreadable: those whose file could not be read for the text.
 * @left_out: names that are longer than the ABI has.
 * @differences: how many there are.
 */
struct comparison {
	bool json;
	FILE *lines;
	size_t addresses;
	size_t mappings;
	size_t names;
	size_t build_ids;
	size_t unreadable;
	size_t left_out;
	size_t differences;
};

static void report_difference(struct comparison *comparison, uint64_t addr,
			      const char *field, const char *by_ioctl,
			      size_t ioctl_len, const char *by_text,
			      size_t text_len)
{
	FILE *const out = comparison->lines;

	if (comparison->json) {
		fprintf(out,
			"%s{\"address\": \"0x%" PRIx64 "\", "
			"\"field\": \"%s\", \"ioctl\": ",
			comparison->differences ? ",\n" : "\n", addr, field);
		json_string(out, by_ioctl, ioctl_len);
		fputs(", \"text\": ", out);
		json_string(out, by_text, text_len);
		fputc('}', out);
	} else {
		fprintf(out, "0x%016" PRIx64 ": %s: ioctl ", addr, field);
		print_name(out, by_ioctl, ioctl_len);
		fputs(", text ", out);
		print_name(out, by_text, text_len);
		fputc('\n', out);
	}
	comparison->differences++;
}

static void compare_strings(struct comparison *comparison, uint64_t addr,
			    const char *field, const char *by_ioctl,
			    const char *by_text)
{
	if (strcmp(by_ioctl, by_text))
		report_difference(comparison, addr, field, by_ioctl,
				  strlen(by_ioctl), by_text, strlen(by_text));
}

static void compare_numbers(struct comparison *comparison, uint64_t addr,
			    const char *field, uint64_t by_ioctl,
			    uint64_t by_text)
{
	char a[sizeof("0x") + 16], b[sizeof("0x") + 16];

	snprintf(a, sizeof(a), "0x%" PRIx64, by_ioctl);
	snprintf(b, sizeof(b), "0x%" PRIx64, by_text);
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

static void compare_build_ids(struct comparison *comparison, uint64_t addr,
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
	const uint64_t addr = by_text->start;
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

static void compare_existence(struct comparison *comparison, uint64_t addr,
			      bool by_ioctl, bool by_text)
{
	compare_strings(comparison, addr, "mapping",
			by_ioctl ? "mapped" : "not mapped",
			by_text ? "mapped" : "not mapped");
}

static int compare_lists(struct comparison *comparison,
			 struct source *by_ioctl, struct source *by_text)
{
	uint64_t addr = 0;

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
	uint64_t compared_to = 0;
	size_t i;

	for (i = 0; i < options->nr_addrs; i++) {
		const uint64_t addr = options->addrs[i];
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

/* One attempt. The text is read before and after, to see if it held still. */
static int compare_once(struct comparison *comparison,
			const struct options *options, struct source *by_ioctl,
			struct source *by_text, struct source *text_after,
			bool *changed)
{
	int err;

	err = start_source(by_text);
	if (err)
		return err;
	err = start_source(by_ioctl);
	if (!err)
		err = options->list ?
		      compare_lists(comparison, by_ioctl, by_text) :
		      compare_addresses(comparison, options, by_ioctl, by_text);
	stop_source(by_ioctl);
	stop_source(by_text);
	if (err)
		return err;

	err = start_source(text_after);
	stop_source(text_after);
	*changed = !err && !is_same_text(by_text, text_after);
	return err;
}

static void print_comparison(FILE *out, const struct options *options,
			     const struct comparison *comparison,
			     const char *lines, bool changed)
{
	if (options->json) {
		json_begin(out, options);
		fprintf(out,
			"\"compare\": {\"changed\": %s, \"addresses\": %zu, "
			"\"mappings\": %zu, \"names\": %zu, "
			"\"names_left_out\": %zu, \"build_ids\": %zu, "
			"\"build_ids_unreadable\": %zu, \"differences\": [%s]}}\n",
			changed ? "true" : "false", comparison->addresses,
			comparison->mappings, comparison->names,
			comparison->left_out, comparison->build_ids,
			comparison->unreadable, lines);
		return;
	}

	fputs(lines, out);
	fputs("ioctl and text compared\n", out);
	if (!options->list)
		fprintf(out, "  addresses                %9zu\n",
			comparison->addresses);
	fprintf(out,
		"  mappings                 %9zu\n"
		"  names                    %9zu\n"
		"  build IDs                %9zu\n",
		comparison->mappings, comparison->names, comparison->build_ids);
	if (comparison->left_out)
		fprintf(out, "  names over PATH_MAX      %9zu\n",
			comparison->left_out);
	if (comparison->unreadable)
		fprintf(out, "  build IDs not readable   %9zu\n",
			comparison->unreadable);
	fprintf(out, "differences                %9zu\n",
		comparison->differences);
}

/*
 * A process that maps and unmaps at the same place can show the ioctl what no
 * text has, and the text before and after still be the same. So a difference
 * is one only if each attempt found some, with a text that held still.
 */
static int compare(const struct options *options, FILE *out)
{
	struct source *by_ioctl = new_source(options, &ioctl_way);
	struct source *by_text = new_source(options, &text_way);
	struct source *text_after = new_source(options, &text_way);
	bool changed = false, ever_changed = false;
	struct comparison comparison;
	int attempt, err;

	for (attempt = 0; attempt < COMPARE_ATTEMPTS; attempt++) {
		size_t size;
		char *lines;

		comparison = (struct comparison) { .json = options->json };
		comparison.lines = need(open_memstream(&lines, &size));
		/* Give a process that starts up some time: 1 s in all. */
		if (attempt)
			usleep(1000 << attempt);
		err = compare_once(&comparison, options, by_ioctl, by_text,
				   text_after, &changed);
		fclose(comparison.lines);
		ever_changed |= changed;
		(void)size;
		free(lines);
		if (err || (!changed && !comparison.differences))
			break;
	}
	(void)print_comparison;
	(void)out;
	(void)ever_changed;
	free_source(by_ioctl);
	free_source(by_text);
	free_source(text_after);
	return err;
}
