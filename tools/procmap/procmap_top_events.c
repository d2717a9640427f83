// SPDX-License-Identifier: GPL-2.0
/*
 * procmap-top: read the buffers of perf_event_open(2) in the order of time.
 *
 * Each CPU has two: samples are large, and where there is no room for one, it is only one
 * sample that is missing; but what is mapped must not be lost with it.
 */
#include "procmap_top.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error "only the registers of x86-64 are known"
#endif

/*
 * The sizes of the buffers of a CPU. With the page before each, that is less than what
 * kernel.perf_event_mlock_kb permits by default.
 */
#define SAMPLES_SIZE		(256 * 1024)
#define MAPPINGS_SIZE		(128 * 1024)

/* No more samples are read while records of so many bytes wait to be unwound. */
#define WAITING_MAX		(64 * 1024 * 1024)

/* A thread may create others while those of its process are being opened. */
#define ATTEMPTS_MAX		10

/* Those that are in a sample; a 64-bit program has no others worth it. */
#define REGS_MASK		(0xffull << PERF_REG_X86_R8 | \
				 ((1ull << (PERF_REG_X86_IP + 1)) - 1))

/**
 * struct ring - a buffer of a CPU
 * @fd: the event that it belongs to; -1 once the thread of that has exited.
 * @cpu: the CPU.
 * @of_samples: it has the samples.
 * @size: its bytes.
 * @page: the page with its head and tail.
 */
struct ring {
	int fd;
	int cpu;
	bool of_samples;
	size_t size;
	struct perf_event_mmap_page *page;
};

/**
 * struct record - a copy of a record
 * @of_samples: it was with the samples.
 * @time: when.
 * @nr: records of the same time have the order in which they were read.
 * @header: the record.
 */
struct record {
	bool of_samples;
	uint64_t time;
	uint64_t nr;
	struct perf_event_header *header;
};

/* The end of each record that is not a sample: sample_id_all. */
struct sample_id {
	uint32_t pid;
	uint32_t tid;
	uint64_t time;
};

/* The beginning of a sample. */
struct sample_head {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid;
	uint32_t tid;
	uint64_t time;
	uint64_t abi;
	uint64_t regs[];
};

struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t tid;
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff;
	uint32_t maj;
	uint32_t min;
	uint64_t ino;
	uint64_t ino_generation;
	uint32_t prot;
	uint32_t flags;
	char filename[];
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t tid;
	char comm[];
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t ppid;
	uint32_t tid;
	uint32_t ptid;
	uint64_t time;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id;
	uint64_t lost;
};

static size_t ring_size(bool of_samples)
{
	return of_samples ? SAMPLES_SIZE : MAPPINGS_SIZE;
}

static int open_event(const struct options *options, pid_t tid, int cpu, bool of_samples)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
		.inherit = !options->all,
		.enable_on_exec = !!options->command,
		.watermark = 1,
		.wakeup_watermark = ring_size(of_samples) / 4,
	};

	if (of_samples) {
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.freq = 1;
		attr.sample_freq = options->frequency;
		attr.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER |
				    PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = REGS_MASK;
		attr.sample_stack_user = options->stack_size;
	} else {
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.mmap = 1;
		attr.mmap2 = 1;
		attr.comm = 1;
		attr.comm_exec = 1;
		attr.task = 1;
	}
	return syscall(SYS_perf_event_open, &attr, tid, cpu, -1,
		       PERF_FLAG_FD_CLOEXEC);
}

static void report_trouble(const struct options *options)
{
	switch (errno) {
	case EACCES:
	case EPERM:
		if (options->all)
			fail("no permission to sample all processes: run as root, or use -p PID");
		fail("no permission to sample process %d: run as root, or see perf_event_paranoid",
		     options->pid);
	case EINVAL:
		fail("%lu samples a second are too many: see kernel.perf_event_max_sample_rate",
		     options->frequency);
	case EMFILE:
		fail("too many open files for the threads of process %d: use -a",
		     options->pid);
	case ESRCH:
		fail("there is no process %d: see ps(1)", options->pid);
	default:
		fail("perf_event_open: %s", strerror(errno));
	}
}

static struct ring *find_ring(const struct events *events, int cpu, bool of_samples)
{
	size_t i;

	for (i = 0; i < events->nr_rings; i++)
		if (events->rings[i].cpu == cpu &&
		    events->rings[i].of_samples == of_samples)
			return &events->rings[i];
	return NULL;
}

static size_t mapped_size(const struct ring *ring)
{
	return sysconf(_SC_PAGESIZE) + ring->size;
}

/* The first event of a CPU has the buffer, and the others write to it, too. */
static void add_event(struct events *events, const struct options *options, int fd,
		      int cpu, bool of_samples)
{
	struct ring *ring = find_ring(events, cpu, of_samples);

	events->fds = room_for_one(events->fds, events->nr_fds, &events->size_fds,
				   sizeof(*events->fds));
	events->fds[events->nr_fds++] = fd;
	if (ring) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
			report_trouble(options);
		return;
	}
	events->rings = need(reallocarray(events->rings, events->nr_rings + 1,
					  sizeof(*events->rings)));
	ring = &events->rings[events->nr_rings++];
	*ring = (struct ring) {
		.fd = fd,
		.cpu = cpu,
		.of_samples = of_samples,
		.size = ring_size(of_samples),
	};
	ring->page = mmap(NULL, mapped_size(ring), PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);
	if (ring->page == MAP_FAILED)
		fail("no memory for buffers: run as root, or raise kernel.perf_event_mlock_kb");
}

/* Returns whether there is such a thread. */
static bool open_thread(struct events *events, const struct options *options, pid_t tid)
{
	const int nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int i, fd;

	for (i = 0; i < 2 * nr_cpus; i++) {
		fd = open_event(options, tid, i / 2, i % 2);
		if (fd >= 0)
			add_event(events, options, fd, i / 2, i % 2);
		else if (errno == ESRCH)
			return false;
		/* A CPU that is offline. */
		else if (errno != ENODEV)
			report_trouble(options);
	}
	return true;
}

static bool is_open(const pid_t *tids, size_t nr, pid_t tid)
{
	while (nr--)
		if (tids[nr] == tid)
			return true;
	return false;
}

/* Threads that are created later inherit the event of the one that creates them. */
static void open_process(struct events *events, const struct options *options)
{
	size_t nr = 0, size = 0, before, attempt;
	char path[sizeof("/proc//task") + 3 * sizeof(pid_t)];
	const struct dirent *entry;
	pid_t *tids = NULL, tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", options->pid);
	for (attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
		before = nr;
		dir = opendir(path);
		while (dir && (entry = readdir(dir))) {
			tid = atoi(entry->d_name);
			if (tid <= 0 || is_open(tids, nr, tid) ||
			    !open_thread(events, options, tid))
				continue;
			tids = room_for_one(tids, nr, &size, sizeof(*tids));
			tids[nr++] = tid;
		}
		if (dir)
			closedir(dir);
		if (nr == before)
			break;
	}
	free(tids);
	errno = ESRCH;
	if (!nr)
		report_trouble(options);
}

void open_events(struct events *events, const struct options *options)
{
	struct rlimit limit;
	size_t i;

	/* Each thread has one event a CPU, and files are kept open. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (options->all)
		open_thread(events, options, -1);
	else
		open_process(events, options);
	for (i = 0; !options->command && i < events->nr_fds; i++)
		ioctl(events->fds[i], PERF_EVENT_IOC_ENABLE, 0);
}

/* Wait until there are many records, a signal comes, or the process ends. */
void wait_for_events(struct events *events, int signals, int process,
		     int milliseconds)
{
	struct pollfd *const fds = need(calloc(events->nr_rings + 2, sizeof(*fds)));
	size_t i;

	for (i = 0; i < events->nr_rings; i++)
		fds[i] = (struct pollfd) { .fd = events->rings[i].fd, .events = POLLIN };
	fds[i++] = (struct pollfd) { .fd = signals, .events = POLLIN };
	fds[i++] = (struct pollfd) { .fd = process, .events = POLLIN };
	poll(fds, i, milliseconds);
	/* When its thread has exited, an event is always ready, but others use its buffer. */
	for (i = 0; i < events->nr_rings; i++)
		if (fds[i].revents & POLLHUP)
			events->rings[i].fd = -1;
	free(fds);
}

static uint64_t time_of(const struct perf_event_header *header)
{
	const char *const end = (const char *)header + header->size;

	return header->type == PERF_RECORD_SAMPLE ?
	       ((const struct sample_head *)header)->time :
	       ((const struct sample_id *)(end - sizeof(struct sample_id)))->time;
}

/* Copy from a position that may be beyond the end of the buffer. */
static void copy_from_ring(const struct ring *ring, uint64_t at, void *to, size_t len)
{
	const char *const data = (char *)ring->page + sysconf(_SC_PAGESIZE);
	const size_t begin = at % ring->size;
	const size_t first = len < ring->size - begin ? len : ring->size - begin;

	memcpy(to, data + begin, first);
	memcpy((char *)to + first, data, len - first);
}

static void add_record(struct events *events, const struct ring *ring,
		       struct perf_event_header *header)
{
	events->bytes += header->size;
	events->records = room_for_one(events->records, events->nr_records,
				       &events->size_records,
				       sizeof(*events->records));
	events->records[events->nr_records++] = (struct record) {
		.of_samples = ring->of_samples,
		.time = time_of(header),
		.nr = events->nr_read++,
		.header = header,
	};
}

static void read_ring(struct events *events, const struct ring *ring)
{
	const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	struct perf_event_header header, *record;

	while (tail < head) {
		copy_from_ring(ring, tail, &header, sizeof(header));
		record = need(malloc(header.size));
		copy_from_ring(ring, tail, record, header.size);
		add_record(events, ring, record);
		tail += header.size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct record *const x = a, *const y = b;

	return x->time != y->time ? (x->time > y->time) - (x->time < y->time) :
	       (x->nr > y->nr) - (x->nr < y->nr);
}

/* Forget what was returned, and read what is new. */
void read_events(struct events *events)
{
	size_t i;

	for (i = 0; i < events->next; i++) {
		events->bytes -= events->records[i].header->size;
		free(events->records[i].header);
	}
	events->nr_records -= events->next;
	if (events->next)
		memmove(events->records, events->records + events->next,
			events->nr_records * sizeof(*events->records));
	events->next = 0;
	for (i = 0; i < events->nr_rings; i++)
		if (!events->rings[i].of_samples || events->bytes < WAITING_MAX)
			read_ring(events, &events->rings[i]);
	if (events->nr_records)
		qsort(events->records, events->nr_records, sizeof(*events->records),
		      by_time);
}

static void parse_sample(const struct sample_head *head, struct event *event)
{
	const uint64_t *at = head->regs;
	struct sample *const sample = &event->sample;
	unsigned int i;

	event->pid = head->pid;
	event->tid = head->tid;
	sample->is_64 = head->abi == PERF_SAMPLE_REGS_ABI_64;
	for (i = 0; head->abi && i < NR_REGS; i++)
		if (REGS_MASK >> i & 1)
			sample->regs[i] = *at++;
	sample->regs[PERF_REG_X86_IP] = head->ip;
	sample->stack_size = *at++;
	if (!sample->stack_size)
		return;
	sample->stack = (const uint8_t *)at;
	/* After the stack is the size of what could be copied. */
	sample->stack_size = at[sample->stack_size / sizeof(*at)];
}

/*
 * Build IDs were not requested: with them, the kernel sets PERF_RECORD_MISC_MMAP_BUILD_ID
 * in the records of all other events, too, which have the inode, and other profilers take
 * that for a build ID. By the same fault, the bit says nothing here.
 */
static void parse_mmap(const struct mmap2_record *record, struct event *event)
{
	event->mmap = (struct procmap_mmap) {
		.size = sizeof(event->mmap),
		.addr = record->addr,
		.len = record->len,
		.pgoff = record->pgoff,
		.ino = record->ino,
		.filename = record->filename,
		.maj = record->maj,
		.min = record->min,
		.prot = record->prot,
		.flags = record->flags,
	};
	event->pid = record->pid;
	event->tid = record->tid;
}

static void parse_record(const struct perf_event_header *header, struct event *event)
{
	const struct task_record *const task = (const void *)header;
	const struct comm_record *const comm = (const void *)header;

	event->type = header->type;
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		parse_sample((const void *)header, event);
		break;
	case PERF_RECORD_MMAP2:
		parse_mmap((const void *)header, event);
		break;
	case PERF_RECORD_COMM:
		event->pid = comm->pid;
		event->tid = comm->tid;
		event->comm = comm->comm;
		event->is_exec = header->misc & PERF_RECORD_MISC_COMM_EXEC;
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		event->pid = task->pid;
		event->tid = task->tid;
		event->ppid = task->ppid;
		break;
	case PERF_RECORD_LOST:
		event->lost = ((const struct lost_record *)header)->lost;
		break;
	}
}

/*
 * Get the next event that is not later than @until, with pointers into the record. It is
 * valid until read_events().
 */
bool next_event(struct events *events, uint64_t until, struct event *event)
{
	const struct record *const record = events->records + events->next;

	if (events->next == events->nr_records || record->time > until)
		return false;
	events->next++;
	memset(event, 0, sizeof(*event));
	event->time = record->time;
	event->of_samples = record->of_samples;
	parse_record(record->header, event);
	return true;
}

void stop_events(struct events *events)
{
	size_t i;

	for (i = 0; i < events->nr_fds; i++)
		ioctl(events->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

void close_events(struct events *events)
{
	size_t i;

	for (i = 0; i < events->nr_records; i++)
		free(events->records[i].header);
	for (i = 0; i < events->nr_rings; i++)
		munmap(events->rings[i].page, mapped_size(&events->rings[i]));
	for (i = 0; i < events->nr_fds; i++)
		close(events->fds[i]);
	free(events->records);
	free(events->rings);
	free(events->fds);
}
