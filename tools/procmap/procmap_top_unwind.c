// SPDX-License-Identifier: GPL-2.0
/*
 * procmap-top: unwind stacks. A process table says what is mapped in each process at the
 * time of a sample; libdw unwinds by the files of that, and has their symbols.
 *
 * A Dwfl is kept for each program that a process runs, in the table, and has the modules
 * of the files that were in its stacks. All of them share one Elf for a file.
 */
#include "procmap_top.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Events may be as late as this, and processes are kept after their exit: ns. */
#define WINDOW			10000000000

/* A process is read again for an address at most this often: ns. */
#define REREAD			1000000000

/* A file that could not be opened is tried again at most this often: ns. */
#define RETRY			100000000

/* Programs whose Dwfl is kept. */
#define PROGRAMS_MAX		512

/* The clock of files is at most this late: ns. */
#define COARSE			20000000

/* Longer names of functions are cut, in bytes. */
#define NAME_MAX_SIZE		4096

/* A symbol is not looked for before so many others that end before the address. */
#define NESTED_MAX		16

/* DWARF's number of the program counter, which is that of the return address. */
#define DWARF_REG_RIP		16

/**
 * struct segment - what a program header has loaded
 * @offset: where it is in the file.
 * @size: the bytes there.
 * @address: where it is in memory, less the bias of the file.
 * @end: the end of it.
 * @align: its alignment.
 */
struct segment {
	uint64_t offset;
	uint64_t size;
	uint64_t address;
	uint64_t end;
	uint64_t align;
};

/**
 * struct binary - a file that is mapped
 *
 * As long as the file is open, its inode number is not used again.
 *
 * @name: its path, if it was deleted, too; or [vdso].
 * @inode: its inode number.
 * @dev_major: major number of its device.
 * @dev_minor: minor number of its device.
 * @tried_at: the time of the sample for which it was tried to open it.
 * @from: since when the mapping of that sample is known.
 * @is_untrusted: it is another user's, and libdw does not read it.
 * @build_id: its build ID, if the kernel or libprocmap has read that.
 * @build_id_size: the bytes of it, or 0.
 * @fd: the file, or -1.
 * @elf: what libelf knows of it, or NULL.
 * @segments: what is loaded of it.
 * @nr_segments: how many.
 * @symbols: its functions, by address, or NULL.
 * @nr_symbols: how many.
 * @places: a tsearch(3) tree of the addresses that were looked up.
 * @functions: a tsearch(3) tree of its functions.
 */
struct binary {
	char *name;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t tried_at;
	uint64_t from;
	bool is_untrusted;
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
	size_t build_id_size;
	int fd;
	Elf *elf;
	struct segment *segments;
	size_t nr_segments;
	struct symbol *symbols;
	size_t nr_symbols;
	void *places;
	void *functions;
};

/**
 * struct symbol - a function by the symbol table of a file
 * @start: its first address, as the file has it.
 * @end: the end of it; without a size, the start of the next one.
 * @index: its number in libdw's symbol table.
 * @is_global: of several of the same address, one that is global is taken.
 */
struct symbol {
	uint64_t start;
	uint64_t end;
	unsigned int index;
	bool is_global;
};

/**
 * struct place - an address in a file, which was looked up
 * @address: it, as the symbols of the file have it.
 * @function: the function that it is in.
 */
struct place {
	uint64_t address;
	struct function *function;
};

/**
 * struct program - what libdw knows of a program that a process runs
 * @dwfl: libdw's handle.
 * @unwinder: what is being unwound.
 * @newer: the program that was used next after this one.
 * @older: the program that was used before this one.
 * @at: where the table points to it; NULL if it no longer does.
 */
struct program {
	Dwfl *dwfl;
	struct unwinder *unwinder;
	struct program *newer;
	struct program *older;
	void **at;
};

/**
 * struct unwinder - what is kept for all samples
 * @table: what is mapped where.
 * @trusts_all: read files of all users.
 * @nr_untrusted: the files that were not read, because they are another user's.
 * @elf: the Elf of this program, from which libdw knows the machine.
 * @elf_fd: its file.
 * @binaries: a tsearch(3) tree of the files.
 * @unknown: stands for code without a file.
 * @programs: the head of the list of programs, of which ->older was used last.
 * @nr_programs: how many.
 * @event: the sample that is being unwound.
 * @program: its program.
 * @in_use: the program whose Dwfl is unwinding.
 * @frames: its frames so far.
 * @nr_frames: how many.
 * @is_begun: libdw has begun with them.
 * @conflicts: a file is where libdw has another one.
 */
struct unwinder {
	struct procmap_table *table;
	bool trusts_all;
	size_t nr_untrusted;
	Elf *elf;
	int elf_fd;
	void *binaries;
	struct function unknown;
	struct program programs;
	size_t nr_programs;
	const struct event *event;
	struct program *program;
	struct program *in_use;
	struct frame *frames;
	size_t nr_frames;
	bool is_begun;
	bool conflicts;
};

/* Modules have a pointer to their binary; libdw takes its Elf from here. */
static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	struct binary *const binary = *data;

	(void)module;
	(void)name;
	(void)base;
	(void)file_name;
	/* It counts the references. */
	*elf = elf_begin(-1, ELF_C_READ, binary->elf);
	return -1;
}

/*
 * Files with debug information are searched by their build ID only, below /usr/lib/debug:
 * the names that are in a file may be those of FIFOs, where libdw would hang.
 */
static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = dwfl_build_id_find_debuginfo,
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_file(const void *a, const void *b)
{
	const struct binary *const x = a, *const y = b;

	return compare_numbers(x->inode, y->inode) ?:
	       compare_numbers(x->dev_major, y->dev_major) ?:
	       compare_numbers(x->dev_minor, y->dev_minor) ?: strcmp(x->name, y->name);
}

static int by_address(const void *a, const void *b)
{
	return compare_numbers(((const struct place *)a)->address,
			       ((const struct place *)b)->address);
}

/* Symbols of the same address, of which libdw prefers one, are one function. */
static int by_start(const void *a, const void *b)
{
	const struct function *const x = a, *const y = b;

	return compare_numbers(!x->name, !y->name) ?: compare_numbers(x->start, y->start);
}

static bool is_vdso(const char *name)
{
	return !strcmp(name, "[vdso]");
}

/* The vDSO is a file in memory, of which this process has the same. */
static int open_vdso(void)
{
	const uint64_t addr = getauxval(AT_SYSINFO_EHDR);
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	int fd = -1;

	if (!addr || procmap_open_self(NULL, &procmap))
		return -1;
	if (!procmap_find(procmap, addr, 0, &mapping)) {
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (fd >= 0 && write(fd, (void *)mapping->start,
				     mapping->end - mapping->start) < 0) {
			close(fd);
			fd = -1;
		}
	}
	procmap_close(procmap);
	return fd;
}

/* Return the identity of the file of a mapping. The caller frees the name. */
static struct binary identity_of(const struct procmap_mapping *mapping)
{
	struct binary key = {
		.name = need(strdup(mapping->name)),
		.inode = mapping->inode,
		.dev_major = mapping->dev_major,
		.dev_minor = mapping->dev_minor,
		.fd = -1,
	};

	/* It is the same file before and after it was deleted. */
	cut_deleted(key.name);
	return key;
}

static bool is_of(const struct procmap_mapping *mapping, const struct binary *binary)
{
	struct binary key = identity_of(mapping);
	const bool is_same = !by_file(&key, binary);

	free(key.name);
	return is_same;
}

/*
 * Libdw is no match for a file that was made to harm it, so that another user's is not
 * read unless the caller says so. Nor does a file count that everybody may write to.
 */
static bool is_trusted(struct unwinder *unwinder, struct binary *binary, int fd)
{
	struct stat status;

	if (!fstat(fd, &status) && S_ISREG(status.st_mode) &&
	    (unwinder->trusts_all ||
	     ((!status.st_uid || status.st_uid == geteuid()) && ~status.st_mode & 0002)))
		return true;
	unwinder->nr_untrusted += !binary->is_untrusted;
	binary->is_untrusted = true;
	return false;
}

/* The time on CLOCK_MONOTONIC, which is below 0 for what was before the boot. */
static int64_t time_of(const struct statx_timestamp *file_time)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now_ns() - ((now.tv_sec - file_time->tv_sec) * 1000000000 +
				    now.tv_nsec - (int64_t)file_time->tv_nsec);
}

/*
 * Was the file there at a time, and is it not another one that has its inode number by
 * now? If @is_unchanged, it must not have been changed since, either. The clock of files
 * is coarse. A file system that does not know when an inode was made is believed not to
 * use its number again.
 */
static bool was_there(int fd, uint64_t inode, int64_t time, bool is_unchanged)
{
	struct statx status;

	return !statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_CTIME | STATX_BTIME,
		      &status) &&
	       status.stx_ino == inode &&
	       (~status.stx_mask & STATX_BTIME ||
		time_of(&status.stx_btime) + COARSE < time) &&
	       (!is_unchanged || time_of(&status.stx_ctime) + COARSE < time);
}

/*
 * Open the file that a process has mapped, if it still has. It may have been deleted, or
 * be in another root directory.
 */
static int open_mapped(const struct unwinder *unwinder, struct binary *binary,
		       const struct procmap_mapping *mapping)
{
	const struct procmap_mapping *now;
	struct procmap_file *file;
	struct procmap *procmap;
	int fd = -1;

	if (procmap_open_pid(unwinder->event->pid, NULL, &procmap))
		return -1;
	if (!procmap_find(procmap, mapping->start, PROCMAP_WANT_BUILD_ID, &now) &&
	    is_of(now, binary)) {
		if (now->build_id_size > 0) {
			memcpy(binary->build_id, now->build_id, now->build_id_size);
			binary->build_id_size = now->build_id_size;
		}
		if (!procmap_open_file(procmap, now, NULL, &file)) {
			fd = dup(procmap_file_fd(file));
			procmap_close_file(file);
		}
		if (fd >= 0 && !was_there(fd, binary->inode, unwinder->event->time,
					  false)) {
			close(fd);
			fd = -1;
		}
	}
	procmap_close(procmap);
	return fd;
}

/*
 * Open the file at the path, where another one may be by now. The kernel's paths have no
 * symbolic links; one that is there may lead anywhere. Nothing is opened before it is
 * known what it is.
 */
static int open_path(struct unwinder *unwinder, struct binary *binary)
{
	static const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	int at, fd = -1;

	at = syscall(SYS_openat2, AT_FDCWD, binary->name, &how, sizeof(how));
	if (at < 0)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	if (was_there(at, binary->inode, binary->from, true) &&
	    is_trusted(unwinder, binary, at))
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	close(at);
	return fd;
}

/* Is it one that this machine executes? Others, libdw has to be protected from. */
static bool is_executable(Elf *elf)
{
	GElf_Ehdr header;

	return gelf_getehdr(elf, &header) &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN) &&
	       (header.e_machine == EM_X86_64 || header.e_machine == EM_386) &&
	       header.e_phnum != PN_XNUM;
}

static void add_segments(struct binary *binary)
{
	size_t nr = 0, i;
	GElf_Phdr phdr;

	if (!is_executable(binary->elf) || elf_getphdrnum(binary->elf, &nr) || !nr)
		return;
	binary->segments = need(calloc(nr, sizeof(*binary->segments)));
	for (i = 0; i < nr && gelf_getphdr(binary->elf, i, &phdr); i++) {
		if (phdr.p_type != PT_LOAD || phdr.p_vaddr + phdr.p_memsz < phdr.p_vaddr)
			continue;
		binary->segments[binary->nr_segments++] = (struct segment) {
			.offset = phdr.p_offset,
			.size = phdr.p_filesz,
			.address = phdr.p_vaddr,
			.end = phdr.p_vaddr + phdr.p_memsz,
			.align = phdr.p_align,
		};
	}
}

static void close_binary(struct binary *binary)
{
	elf_end(binary->elf);
	if (binary->fd >= 0)
		close(binary->fd);
	free(binary->segments);
	binary->elf = NULL;
	binary->fd = -1;
	binary->segments = NULL;
	binary->nr_segments = 0;
}

/*
 * The file is read, and not mapped as libdw would: a file that becomes shorter must not
 * be the end of this program. Returns whether it is the one that is wanted.
 */
static bool read_binary(struct unwinder *unwinder, struct binary *binary, int fd)
{
	if (fd < 0)
		return false;
	if (!is_vdso(binary->name) && !is_trusted(unwinder, binary, fd)) {
		close(fd);
		return false;
	}
	binary->fd = fd;
	binary->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (binary->elf)
		add_segments(binary);
	if (binary->nr_segments)
		return true;
	close_binary(binary);
	return false;
}

static void open_binary(struct unwinder *unwinder, struct binary *binary,
			const struct procmap_table_mapping *found)
{
	const struct procmap_mapping *const mapping = found->mapping;

	const uint64_t time = unwinder->event->time;

	if (binary->elf || (binary->tried_at && binary->from == found->from &&
			    time - binary->tried_at < RETRY))
		return;
	binary->tried_at = time;
	binary->from = found->from;
	if (is_vdso(mapping->name))
		read_binary(unwinder, binary, open_vdso());
	else if (!read_binary(unwinder, binary, open_mapped(unwinder, binary, mapping)))
		read_binary(unwinder, binary, open_path(unwinder, binary));
}

static struct binary *find_binary(struct unwinder *unwinder,
				  const struct procmap_table_mapping *found)
{
	struct binary key = identity_of(found->mapping);
	struct binary *binary, **known;

	known = tfind(&key, &unwinder->binaries, by_file);
	if (known) {
		free(key.name);
		binary = *known;
	} else {
		binary = need(malloc(sizeof(*binary)));
		*binary = key;
		need(tsearch(binary, &unwinder->binaries, by_file));
	}
	open_binary(unwinder, binary, found);
	return binary;
}

/* Only the vDSO of 64-bit programs is known. */
static bool is_of_file(const struct unwinder *unwinder,
		       const struct procmap_mapping *mapping)
{
	return is_vdso(mapping->name) ? unwinder->event->sample.is_64 :
	       mapping->inode || mapping->dev_major || mapping->dev_minor;
}

/* Find the difference to addresses in a file, by one of its mappings. */
static bool find_bias(const struct binary *binary, const struct procmap_mapping *mapping,
		      uint64_t addr, uint64_t *bias)
{
	const uint64_t offset = addr - mapping->start + mapping->offset;
	size_t i;

	for (i = 0; i < binary->nr_segments; i++) {
		const struct segment *const segment = &binary->segments[i];

		if (offset < segment->offset || offset - segment->offset >= segment->size)
			continue;
		*bias = addr - (segment->address + (offset - segment->offset));
		return true;
	}
	return false;
}

static uint64_t file_offset(const struct binary *binary, uint64_t address)
{
	size_t i;

	for (i = 0; i < binary->nr_segments; i++) {
		const struct segment *const segment = &binary->segments[i];

		if (address >= segment->address && address < segment->end)
			return address - segment->address + segment->offset;
	}
	return 0;
}

/* The list has those that were used last first. */
static void unlink_program(struct program *program)
{
	program->newer->older = program->older;
	program->older->newer = program->newer;
}

static void link_program(struct unwinder *unwinder, struct program *program)
{
	program->newer = &unwinder->programs;
	program->older = unwinder->programs.older;
	program->newer->older = program;
	program->older->newer = program;
}

static void drop_program(struct unwinder *unwinder, struct program *program)
{
	if (program->at)
		*program->at = NULL;
	unlink_program(program);
	unwinder->nr_programs--;
	dwfl_end(program->dwfl);
	free(program);
}

/*
 * The table calls this when the process goes, which may be in the middle of a stack: libdw
 * has the Dwfl of that one in use.
 */
static void drop_user(void *context, void *user)
{
	struct unwinder *const unwinder = context;
	struct program *const program = user;

	program->at = NULL;
	if (program != unwinder->in_use)
		drop_program(unwinder, program);
}

/* Libdw wants this one, and uses the other. */
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	(void)arg;
	(void)thread;
	return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = arg;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	static const unsigned int order[] = {
		PERF_REG_X86_AX, PERF_REG_X86_DX, PERF_REG_X86_CX, PERF_REG_X86_BX,
		PERF_REG_X86_SI, PERF_REG_X86_DI, PERF_REG_X86_BP, PERF_REG_X86_SP,
		PERF_REG_X86_R8, PERF_REG_X86_R9, PERF_REG_X86_R10, PERF_REG_X86_R11,
		PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15,
		[DWARF_REG_RIP] = PERF_REG_X86_IP,
	};
	const struct program *const program = arg;
	const uint64_t *const regs = program->unwinder->event->sample.regs;
	Dwarf_Word in_order[DWARF_REG_RIP + 1];
	unsigned int i;

	for (i = 0; i <= DWARF_REG_RIP; i++)
		in_order[i] = regs[order[i]];
	return dwfl_thread_state_registers(thread, 0, i, in_order);
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	const struct program *const program = arg;
	const struct sample *const sample = &program->unwinder->event->sample;
	const uint64_t offset = addr - sample->regs[PERF_REG_X86_SP];

	(void)dwfl;
	if (sample->stack_size < sizeof(*result) ||
	    offset > sample->stack_size - sizeof(*result))
		return false;
	memcpy(result, sample->stack + offset, sizeof(*result));
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static struct program *new_program(struct unwinder *unwinder, void **at)
{
	struct program *const program = need(calloc(1, sizeof(*program)));

	if (unwinder->nr_programs == PROGRAMS_MAX)
		drop_program(unwinder, unwinder->programs.newer);
	program->unwinder = unwinder;
	program->at = at;
	program->dwfl = need(dwfl_begin(&callbacks));
	if (!dwfl_attach_state(program->dwfl, unwinder->elf, unwinder->event->pid,
			       &thread_callbacks, program))
		fail("libdw: %s", dwfl_errmsg(-1));
	link_program(unwinder, program);
	unwinder->nr_programs++;
	*at = program;
	return program;
}

/* Find the mapping of an address, and with it the program of the process. */
static const struct procmap_table_mapping *find_mapping(struct unwinder *unwinder,
							uint64_t addr)
{
	const struct procmap_table_mapping *found;

	if (procmap_table_find(unwinder->table, unwinder->event->pid,
			       unwinder->event->time, addr, &found) ||
	    ~found->mapping->flags & PROCMAP_EXECUTABLE)
		return NULL;
	unwinder->program = *found->process_user ?:
			    new_program(unwinder, found->process_user);
	unlink_program(unwinder->program);
	link_program(unwinder, unwinder->program);
	return found;
}

/* Libdw's module of a file that is mapped with this bias; NULL if it has none. */
static Dwfl_Module *find_module(struct unwinder *unwinder, struct binary *binary,
				uint64_t addr, uint64_t bias)
{
	const struct segment *const first = binary->segments;
	const struct segment *const last = first + binary->nr_segments - 1;
	/* Libdw takes this for the address of what the first segment has. */
	const uint64_t start = (first->address & -first->align) + bias;
	Dwfl *const dwfl = unwinder->program->dwfl;
	Dwfl_Module *module;
	Dwarf_Addr low;
	void **data;

	module = dwfl_addrmodule(dwfl, addr);
	if (!module) {
		module = dwfl_report_module(dwfl, binary->name, start, last->end + bias);
		if (!module)
			return NULL;
		dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = binary;
		return module;
	}
	dwfl_module_info(module, &data, &low, NULL, NULL, NULL, NULL, NULL);
	if (*data == binary && low == start)
		return module;
	unwinder->conflicts = true;
	return NULL;
}

/* Find a function that is known, or add it. */
static struct function *function_at(struct binary *binary, const char *name, uint64_t start)
{
	const struct function key = {
		.binary = binary,
		.name = (char *)name,
		.start = start,
	};
	struct function *function, **found;

	found = tfind(&key, &binary->functions, by_start);
	if (found)
		return *found;
	function = need(malloc(sizeof(*function)));
	*function = key;
	if (name) {
		function->name = need(strndup(name, NAME_MAX_SIZE));
		function->offset = file_offset(binary, start);
	}
	need(tsearch(function, &binary->functions, by_start));
	return function;
}

static int by_symbol(const void *a, const void *b)
{
	const struct symbol *const x = a, *const y = b;

	return compare_numbers(x->start, y->start) ?:
	       compare_numbers(x->is_global, y->is_global) ?:
	       compare_numbers(y->index, x->index);
}

/* Libdw's own search goes through all symbols for each address. */
static void read_symbols(struct binary *binary, Dwfl_Module *module, uint64_t bias)
{
	const int nr = dwfl_module_getsymtab(module);
	GElf_Word section;
	GElf_Addr start;
	GElf_Sym symbol;
	size_t i;
	int at;

	if (binary->symbols || nr <= 0)
		return;
	binary->symbols = need(calloc(nr, sizeof(*binary->symbols)));
	for (at = 0; at < nr; at++) {
		if (!dwfl_module_getsym_info(module, at, &symbol, &start, &section, NULL,
					     NULL) ||
		    section == SHN_UNDEF ||
		    (GELF_ST_TYPE(symbol.st_info) != STT_FUNC &&
		     GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC))
			continue;
		binary->symbols[binary->nr_symbols++] = (struct symbol) {
			.start = start - bias,
			.end = start - bias + symbol.st_size,
			.index = at,
			.is_global = GELF_ST_BIND(symbol.st_info) == STB_GLOBAL,
		};
	}
	qsort(binary->symbols, binary->nr_symbols, sizeof(*binary->symbols), by_symbol);
	for (i = 0; i + 1 < binary->nr_symbols; i++)
		if (binary->symbols[i].end == binary->symbols[i].start)
			binary->symbols[i].end = binary->symbols[i + 1].start;
}

/* The last symbol that begins at or before an address; a few may be inside of it. */
static const struct symbol *find_symbol(const struct binary *binary, uint64_t address)
{
	size_t low = 0, high = binary->nr_symbols, i;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (binary->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = low; i && low - i < NESTED_MAX; i--)
		if (address < binary->symbols[i - 1].end)
			return &binary->symbols[i - 1];
	return NULL;
}

static struct function *look_up_symbol(struct binary *binary, Dwfl_Module *module,
				       uint64_t addr, uint64_t bias)
{
	const struct symbol *symbol;
	const char *name = NULL;
	GElf_Sym ignored;

	read_symbols(binary, module, bias);
	symbol = find_symbol(binary, addr - bias);
	/* This may be the module of another process: libdw has to have read it, too. */
	if (symbol && dwfl_module_getsymtab(module) > (int)symbol->index)
		name = dwfl_module_getsym(module, symbol->index, &ignored, NULL);
	return name ? function_at(binary, name, symbol->start) :
		      function_at(binary, NULL, 0);
}

static struct function *find_function(struct binary *binary, Dwfl_Module *module,
				      uint64_t addr, uint64_t bias)
{
	const struct place key = { .address = addr - bias };
	struct place *place, **found;

	found = tfind(&key, &binary->places, by_address);
	if (found)
		return (*found)->function;
	place = need(malloc(sizeof(*place)));
	place->address = key.address;
	place->function = look_up_symbol(binary, module, addr, bias);
	need(tsearch(place, &binary->places, by_address));
	return place->function;
}

/*
 * Get the frame with a program counter. @before is 1 if that is what a call returns to:
 * the call is before it, and may be the last instruction of its function. Libdw has the
 * module of the file afterwards. Returns whether there is code.
 */
static bool get_frame(struct unwinder *unwinder, uint64_t pc, unsigned int before,
		      struct frame *frame)
{
	const struct procmap_table_mapping *const found = find_mapping(unwinder,
								       pc - before);
	const struct procmap_mapping *const mapping = found ? found->mapping : NULL;
	Dwfl_Module *module = NULL;
	struct binary *binary;
	uint64_t bias;

	*frame = (struct frame) { .address = pc, .function = &unwinder->unknown };
	if (!mapping || !is_of_file(unwinder, mapping))
		return mapping;
	binary = find_binary(unwinder, found);
	frame->offset = pc - mapping->start + mapping->offset;
	if (find_bias(binary, mapping, pc - before, &bias))
		module = find_module(unwinder, binary, pc - before, bias);
	frame->function = module ? find_function(binary, module, pc - before, bias) :
				   function_at(binary, NULL, 0);
	return true;
}

/*
 * Libdw calls this for a frame before it unwinds that. The first one is there. Where no
 * code is, the stack was not unwound correctly.
 */
static int next_frame(Dwfl_Frame *state, void *arg)
{
	struct unwinder *const unwinder = arg;
	struct frame *const frame = unwinder->frames + unwinder->nr_frames;
	bool is_activation;
	Dwarf_Addr pc;

	if (!unwinder->is_begun) {
		unwinder->is_begun = true;
		return DWARF_CB_OK;
	}
	/*
	 * Only the next frame tells whether it is an activation: libdw unwinds for that,
	 * and needs the module before.
	 */
	if (unwinder->nr_frames == FRAMES_MAX || !dwfl_frame_pc(state, &pc, NULL) ||
	    !get_frame(unwinder, pc, 1, frame) ||
	    !dwfl_frame_pc(state, &pc, &is_activation) ||
	    (is_activation && !get_frame(unwinder, pc, 0, frame)))
		return DWARF_CB_ABORT;
	unwinder->nr_frames++;
	return unwinder->conflicts || unwinder->program != unwinder->in_use ?
	       DWARF_CB_ABORT : DWARF_CB_OK;
}

/* Returns false if libdw had another file where this stack has one. */
static bool try_to_unwind(struct unwinder *unwinder)
{
	const struct sample *const sample = &unwinder->event->sample;
	struct program *program;

	unwinder->nr_frames = 1;
	unwinder->conflicts = false;
	unwinder->is_begun = false;
	unwinder->program = NULL;
	get_frame(unwinder, sample->regs[PERF_REG_X86_IP], 0, unwinder->frames);
	program = unwinder->program;
	if (program && sample->is_64 && !unwinder->conflicts) {
		unwinder->in_use = program;
		dwfl_getthread_frames(program->dwfl, unwinder->event->tid, next_frame,
				      unwinder);
		unwinder->in_use = NULL;
	}
	if (program && (unwinder->conflicts || !program->at))
		drop_program(unwinder, program);
	return !unwinder->conflicts;
}

/*
 * Get the frames of a sample, that which was executing first. Returns how many, at least
 * one.
 */
size_t unwind(struct unwinder *unwinder, const struct event *event,
	      struct frame frames[FRAMES_MAX])
{
	unwinder->event = event;
	unwinder->frames = frames;
	/* After dlclose(3) and dlopen(3), libdw has to learn anew what is where. */
	if (!try_to_unwind(unwinder))
		try_to_unwind(unwinder);
	return unwinder->nr_frames;
}

struct unwinder *new_unwinder(bool trusts_all)
{
	struct unwinder *const unwinder = need(calloc(1, sizeof(*unwinder)));
	const struct procmap_table_options options = {
		.size = sizeof(options),
		.window = WINDOW,
		.keep_exited = WINDOW,
		.reread = REREAD,
		.gone = drop_user,
		.context = unwinder,
	};

	unwinder->trusts_all = trusts_all;
	elf_version(EV_CURRENT);
	unwinder->programs.newer = &unwinder->programs;
	unwinder->programs.older = &unwinder->programs;
	unwinder->elf_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unwinder->elf = elf_begin(unwinder->elf_fd, ELF_C_READ, NULL);
	if (!unwinder->elf)
		fail("/proc/self/exe: it cannot be read: mount /proc");
	if (procmap_table_new(&options, &unwinder->table))
		need(NULL);
	return unwinder;
}

/* The number of files that were not read because they are another user's. */
size_t nr_untrusted(const struct unwinder *unwinder)
{
	return unwinder->nr_untrusted;
}

struct procmap_table *table_of(struct unwinder *unwinder)
{
	return unwinder->table;
}

const char *binary_name(const struct binary *binary)
{
	return binary->name;
}

size_t binary_build_id(const struct binary *binary, const uint8_t **id)
{
	const void *in_file;
	ssize_t size;

	*id = binary->build_id;
	if (binary->build_id_size || !binary->elf)
		return binary->build_id_size;
	size = dwelf_elf_gnu_build_id(binary->elf, &in_file);
	*id = in_file;
	return size > 0 ? size : 0;
}

/**
 * struct visitor - what to do with each function
 * @visit: called for it.
 * @context: passed to that.
 */
struct visitor {
	void (*visit)(void *context, struct function *function);
	void *context;
};

static void visit_function(const void *node, VISIT order, void *visitor)
{
	const struct visitor *const to = visitor;

	if (order == postorder || order == leaf)
		to->visit(to->context, *(struct function *const *)node);
}

static void visit_binary(const void *node, VISIT order, void *visitor)
{
	if (order == postorder || order == leaf)
		twalk_r((*(struct binary *const *)node)->functions, visit_function,
			visitor);
}

void visit_functions(struct unwinder *unwinder,
		     void (*visit)(void *context, struct function *function),
		     void *context)
{
	struct visitor visitor = { .visit = visit, .context = context };

	visit(context, &unwinder->unknown);
	twalk_r(unwinder->binaries, visit_binary, &visitor);
}

static void free_function(void *node)
{
	struct function *const function = node;

	free(function->name);
	free(function);
}

static void free_binary(void *node)
{
	struct binary *const binary = node;

	tdestroy(binary->places, free);
	tdestroy(binary->functions, free_function);
	close_binary(binary);
	free(binary->symbols);
	free(binary->name);
	free(binary);
}

void free_unwinder(struct unwinder *unwinder)
{
	/* The programs go with it. */
	procmap_table_free(unwinder->table);
	tdestroy(unwinder->binaries, free_binary);
	elf_end(unwinder->elf);
	close(unwinder->elf_fd);
	free(unwinder);
}
