// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Sample what a command and its children, or all processes, execute in user space, and
 * print the stack of each sample: folded, as tools for flame graphs read it. Only for
 * x86-64, and Linux 5.12 or later.
 *
 *	profile [-d DEBUG_FILES] [COMMAND [ARG...]]
 *
 * It samples 499 times per second of CPU time, and reads debug files only below a directory
 * that is given, such as /usr/lib/debug.
 *
 *	cc profile.c perf-map.c $(pkg-config --cflags --libs libprocmap) -ldw -lelf -lstdc++
 *
 * A table keeps what was mapped when. libdw (0.188 or later) reads a file once, for all
 * processes and addresses at which it is mapped: each frame is unwound by itself, with
 * the address in the file as program counter.
 */
#define _GNU_SOURCE	1

#include <ctype.h>
#include <elfutils/libdwfl.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <procmap_table.h>

#include "perf-map.h"

#define SECOND		1000000000l
#define ROUND		20000		/* us */

enum { DWARF_SP = 7, DWARF_PC = 16, NR_REGS };

/* AX, BX, CX, DX, SI, DI, BP, SP, IP, R8 to R15; and where those of DWARF are in a sample. */
#define REGS_MASK	0xff01ff
static const int dwarf_order[NR_REGS] = {
	0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 8
};

struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time, abi, regs[NR_REGS], stack_size;
	char stack[];
};

/* The beginning of records other than samples. */
struct task {
	struct perf_event_header header;
	uint32_t pid, ppid, tid;
};

/*
 * A file is known by its build ID; one without is kept with the mapping, since its inode may
 * be that of another file, too.
 */
struct file {
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
	int32_t build_id_size;
	struct procmap_file *opened;
	Dwfl *dwfl;
	Dwfl_Module *module;
	void *symbols;
};

static struct perf_event_attr attr = {
	.type = PERF_TYPE_SOFTWARE,
	.size = sizeof(attr),
	.config = PERF_COUNT_SW_CPU_CLOCK,
	.sample_period = SECOND / 499,
	.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
		       PERF_SAMPLE_STACK_USER,
	.sample_regs_user = REGS_MASK,
	.sample_stack_user = 8192,
	.sample_id_all = 1,
	.use_clockid = 1,
	.clockid = CLOCK_MONOTONIC,
	.exclude_kernel = 1,
	.mmap = 1,
	.mmap2 = 1,
	.build_id = 1,
	.comm = 1,
	.task = 1,
};

static char **command, *debug_path = "";
static size_t page_size, ring_size, nr_rings;
static struct perf_event_mmap_page **rings;
static struct procmap_table *table;
static unsigned int round_nr;
static uint64_t nr_lost;
static struct perf_event_header **queue;
static size_t nr_queued;
static void *files;

/*
 * The sample that is being unwound, and the registers of its next frame. libdw unwinds
 * code that is in no file by frame pointers, with the file that was last.
 */
static const struct sample *sample;
static Dwfl *dwfl;
static Dwarf_Word regs[NR_REGS];
static bool is_activation;

extern char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *status);

static int by_file(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct file, opened));
}

static void read_symbols(struct file *file)
{
	const int nr = dwfl_module_getsymtab(file->module);
	const char *name;
	GElf_Addr start;
	GElf_Sym symbol;
	int i;

	for (i = 1; i < nr; i++) {
		name = dwfl_module_getsym_info(file->module, i, &symbol, &start, NULL, NULL,
					       NULL);
		if (name && symbol.st_shndx != SHN_UNDEF &&
		    (GELF_ST_TYPE(symbol.st_info) == STT_FUNC ||
		     GELF_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC))
			add_symbol(&file->symbols, start, symbol.st_size, name);
	}
}

static pid_t next_thread(Dwfl *of, void *arg, void **thread)
{
	const bool is_first = !*thread;

	(void)of;
	*thread = arg;
	return is_first;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	(void)arg;
	return dwfl_thread_state_registers(thread, 0, NR_REGS, regs);
}

/* After the stack in a sample is the size of what could be copied. */
static bool read_stack(Dwfl *of, Dwarf_Addr addr, Dwarf_Word *word, void *arg)
{
	const uint64_t offset = addr - sample->regs[DWARF_SP];
	const uint64_t *const copied = (void *)(sample->stack + sample->stack_size);

	(void)of;
	(void)arg;
	if (!sample->stack_size || offset % sizeof(*word) || offset >= *copied)
		return false;
	memcpy(word, sample->stack + offset, sizeof(*word));
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_stack,
	.set_initial_registers = set_registers,
};

static void open_file(struct file *file, const struct procmap_mapping *mapping)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_build_id_find_debuginfo,
		.debuginfo_path = &debug_path,
	};
	struct procmap *procmap = NULL;
	int err, fd;

	procmap_open_pid(sample->pid, NULL, &procmap);
	err = procmap_open_file(procmap, mapping, NULL, &file->opened);
	procmap_close(procmap);
	if (err)
		return;
	file->dwfl = need(dwfl_begin(&callbacks));
	fd = dup(procmap_file_fd(file->opened));
	file->module = dwfl_report_elf(file->dwfl, "", "", fd, 0, false);
	dwfl_report_end(file->dwfl, NULL, NULL);
	if (file->module) {
		dwfl_attach_state(file->dwfl, NULL, getpid(), &thread_callbacks, NULL);
		read_symbols(file);
	} else {
		close(fd);
	}
}

static struct file *new_file(const struct file *from)
{
	return memcpy(need(malloc(sizeof(*from))), from, sizeof(*from));
}

/* A mapping of a file without a build ID has its own. */
static void free_file(void *context, void *own)
{
	struct file *const file = own;

	(void)context;
	if (dwfl == file->dwfl)
		dwfl = NULL;
	dwfl_end(file->dwfl);
	procmap_close_file(file->opened);
	free_symbols(&file->symbols);
	free(file);
}

static struct file *find_file(const struct procmap_table_mapping *found)
{
	const struct procmap_mapping *const mapping = found->mapping;
	struct file key = { .build_id_size = mapping->build_id_size };
	void **known = found->user;
	struct file *file;

	if (mapping->build_id_size > 0) {
		memcpy(key.build_id, mapping->build_id, mapping->build_id_size);
		known = need(tsearch(&key, &files, by_file));
	}
	if (!*known || *known == &key)
		*known = new_file(&key);
	file = *known;
	if (!file->opened)
		open_file(file, mapping);
	return file;
}

/* What was inherited is only there as long as the process has mapped nothing else. */
static const char *find_jit_symbol(uint64_t addr)
{
	const struct procmap_table_mapping *inherited;
	const char *name = find_in_perf_map(sample->pid, sample->tid, addr, round_nr);
	uint64_t forked_at;

	if (name)
		return name;
	name = find_inherited(sample->pid, addr, &forked_at);
	return name && !procmap_table_find(table, sample->pid, forked_at, addr, &inherited) &&
	       inherited->until > sample->time ? name : NULL;
}

/* Name what is at an address, if that is code. Set the program counter of libdw. */
static const char *find_name(uint64_t addr)
{
	static char text[LINE_SIZE];
	const struct procmap_table_mapping *found;
	const struct procmap_mapping *mapping;
	struct file *file;

	regs[DWARF_PC] = addr;
	if (procmap_table_find(table, sample->pid, sample->time, addr, &found) ||
	    ~found->mapping->flags & PROCMAP_EXECUTABLE)
		return NULL;
	mapping = found->mapping;
	if (*mapping->name != '/')
		return find_jit_symbol(addr) ?: "[unknown]";
	file = find_file(found);
	snprintf(text, sizeof(text), "%s+%#lx", basename(mapping->name),
		 addr - mapping->start + mapping->offset);
	if (!procmap_file_mapped_address(file->opened, mapping, addr, &regs[DWARF_PC])) {
		dwfl = file->dwfl;
		return find_symbol(&file->symbols, regs[DWARF_PC]) ?: text;
	}
	/* Memory may have the name of a file: memfd, /dev/zero, large pages. */
	if (!file->module && mapping->build_id_size <= 0)
		return find_jit_symbol(addr) ?: text;
	return text;
}

/* The first frame is the one whose registers are known. */
static int take_caller(Dwfl_Frame *frame, void *depth)
{
	int i;

	if (!(*(int *)depth)++)
		return DWARF_CB_OK;
	for (i = 0; i < DWARF_PC; i++)
		dwfl_frame_reg(frame, i, &regs[i]);
	return dwfl_frame_pc(frame, &regs[DWARF_PC], &is_activation) ? DWARF_CB_ABORT : -1;
}

static bool go_to_caller(void)
{
	const uint64_t sp = regs[DWARF_SP];
	int depth = 0;

	return dwfl && dwfl_getthread_frames(dwfl, 1, take_caller, &depth) == DWARF_CB_ABORT &&
	       regs[DWARF_SP] > sp;
}

/* Semicolons separate the names of a folded stack. A terminal obeys control characters. */
static void print_name(const char *name)
{
	char *const demangled = strncmp(name, "_Z", 2) ? NULL :
				__cxa_demangle(name, NULL, NULL, NULL);
	const char *at;

	for (at = demangled ?: name; *at; at++)
		putchar(*at == ';' || iscntrl((unsigned char)*at) ? ':' : *at);
	free(demangled);
}

/* The outermost function is the first. */
static void print_frames(void)
{
	/* The last instruction of a function may be a call. */
	const char *const found = find_name(regs[DWARF_PC] - !is_activation);
	char *const name = found ? need(strdup(found)) : NULL;

	if (!name)
		return;
	if (go_to_caller())
		print_frames();
	putchar(';');
	print_name(name);
	free(name);
}

/* If no event has said the name, it is the ID. */
static void print_sample(void)
{
	char comm[PROCMAP_COMM_SIZE];
	int i;

	if (procmap_table_get_comm(table, sample->pid, sample->time, comm))
		snprintf(comm, sizeof(comm), "%d", sample->pid);
	print_name(comm);
	for (i = 0; i < NR_REGS; i++)
		regs[i] = sample->regs[dwarf_order[i]];
	is_activation = true;
	print_frames();
	puts(" 1");
}

static size_t read_ring(struct perf_event_mmap_page *ring, char *records)
{
	const uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	const size_t size = head - ring->data_tail, begin = ring->data_tail % ring_size;
	const size_t first = size < ring_size - begin ? size : ring_size - begin;
	const char *const data = (char *)ring + page_size;

	memcpy(records, data + begin, first);
	memcpy(records + first, data, size - first);
	__atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
	return size;
}

/* That of a sample has another place. */
static uint64_t time_of(const struct perf_event_header *record)
{
	if (record->type == PERF_RECORD_SAMPLE)
		return ((const struct sample *)record)->time;
	return ((const uint64_t *)((const char *)record + record->size))[-1];
}

static int by_time(const void *a, const void *b)
{
	const uint64_t x = time_of(*(void *const *)a), y = time_of(*(void *const *)b);

	return x < y ? -1 : x > y;
}

static void take_record(const struct perf_event_header *record)
{
	const struct task *const task = (const void *)record;

	procmap_table_record(table, &attr, record);
	if (record->type == PERF_RECORD_LOST)
		nr_lost += ((const uint64_t *)(record + 1))[1];
	if ((pid_t)task->pid <= 0)
		return;
	switch (record->type) {
	case PERF_RECORD_FORK:
		if (task->pid != task->ppid && (pid_t)task->ppid > 0)
			fork_perf_map(task->pid, task->ppid, time_of(record), round_nr);
		break;
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			end_perf_map(task->pid);
		break;
	case PERF_RECORD_EXIT:
		if (task->pid == task->tid)
			end_perf_map(task->pid);
		break;
	case PERF_RECORD_SAMPLE:
		sample = (const void *)record;
		print_sample();
	}
}

static void queue_records(const char *at, const char *end)
{
	const size_t nr_max = nr_queued + (end - at) / sizeof(struct perf_event_header);
	const struct perf_event_header *record;

	queue = need(realloc(queue, (nr_max + 1) * sizeof(*queue)));
	for (; at < end; at += record->size) {
		record = (const void *)at;
		queue[nr_queued++] = memcpy(need(malloc(record->size)), record, record->size);
	}
	qsort(queue, nr_queued, sizeof(*queue), by_time);
}

/*
 * Records are taken in the order of their times. Those from before a round are in the rings
 * of all CPUs when it begins; others wait for the next one.
 */
static void read_rings(void)
{
	char *const records = need(malloc(nr_rings * ring_size)), *end = records;
	struct timespec now;
	size_t i;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (i = 0; i < nr_rings; i++)
		end += read_ring(rings[i], end);
	queue_records(records, end);
	free(records);
	for (i = 0; i < nr_queued; i++) {
		if (time_of(queue[i]) >= (uint64_t)now.tv_sec * SECOND + now.tv_nsec)
			break;
		take_record(queue[i]);
		free(queue[i]);
	}
	nr_queued -= i;
	memmove(queue, queue + i, nr_queued * sizeof(*queue));
	round_nr++;
	if (nr_lost)
		warnx("%lu samples or events were lost", nr_lost);
	nr_lost = 0;
}

static void open_ring(int cpu)
{
	const int fd = syscall(SYS_perf_event_open, &attr, command ? 0 : -1, cpu, -1,
			       PERF_FLAG_FD_CLOEXEC);
	void *ring;

	if (fd < 0 && errno == ENODEV)
		return;		/* the CPU is offline */
	if (fd < 0)
		err(2, "perf_event_open: run as root, or see kernel.perf_event_paranoid");
	ring = mmap(NULL, page_size + ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		err(2, "perf_event_open: see kernel.perf_event_mlock_kb");
	rings[nr_rings++] = ring;
}

/* It ends with this process, and its output does not get between the stacks. */
static pid_t start_command(void)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(*command, command);
	err(2, "%s", *command);
}

int main(int argc, char **argv)
{
	const struct procmap_table_options table_options = {
		.size = sizeof(table_options),
		.flags = PROCMAP_TABLE_BUILD_IDS,
		.window = 10 * SECOND,
		.keep_exited = 10 * SECOND,
		.reread = SECOND,
		.gone = free_file,
	};
	const int nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int status = 0, option, cpu;
	pid_t pid = 0;

	while ((option = getopt(argc, argv, "+d:")) != -1) {
		if (option == '?')
			errx(2, "usage: %s [-d DEBUG_FILES] [COMMAND [ARG...]]", *argv);
		debug_path = optarg;
	}
	command = argv[optind] ? argv + optind : NULL;
	setlinebuf(stdout);
	elf_version(EV_CURRENT);
	if (procmap_table_new(&table_options, &table))
		need(NULL);
	rings = need(calloc(nr_cpus, sizeof(*rings)));
	page_size = sysconf(_SC_PAGESIZE);
	ring_size = geteuid() ? 256ul << 10 : 4ul << 20;
	attr.inherit = !!command;
	attr.disabled = !!command;
	attr.enable_on_exec = !!command;
	for (cpu = 0; cpu < nr_cpus; cpu++)
		open_ring(cpu);
	if (command)
		pid = start_command();
	while (!pid || !waitpid(pid, &status, WNOHANG)) {
		usleep(ROUND);
		read_rings();
	}
	read_rings();
	read_rings();
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
