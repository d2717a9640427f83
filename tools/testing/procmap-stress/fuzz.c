// SPDX-License-Identifier: GPL-2.0
/*
 * Random callers of an ioctl, and a process that never stays the same.
 */
#include "fuzz.h"

/*
 * The target maps and unmaps in this area: memory, a program and a shared file. A
 * page of a file is mapped at its own place only, also when mappings split and merge.
 */
#define AREA_PAGES	64
#define CHANGED_PAGES	8
#define AREA_END	(AREA_PAGES + 2 * CHANGED_PAGES)

#define PROGRAM		"soak program"
#define SHARED_FILE	"soak\nshared"
#define MEMORY		"soak memory"
#define NAME_OF(file)	("/memfd:" file " (deleted)")

static const uint8_t program_id[20] = "procmap soak program";

/* Changes of the target until it executes itself, or exits. */
#define CHANGES_MAX	2000

/* The argument by which an executed target knows itself. */
#define BE_TARGET	"procmap-soak-target"

static void fork_once(uint64_t *seed)
{
	const pid_t pid = fork();

	if (!pid) {
		munmap(page_at(0), rand_below(AREA_PAGES, seed) * page_size());
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void map_in_area(char *at, size_t size, int prot, int flags, int fd)
{
	mmap(at, size, prot, flags | MAP_FIXED, fd,
	     fd < 0 ? 0 : (uintptr_t)at - AREA);
}

/* A change that fails leaves the area as it is. */
static void change_once(int program, int shared, uint64_t *seed)
{
	char *const at = page_at(rand_below(AREA_PAGES, seed));
	const size_t size = (1 + rand_below(CHANGED_PAGES, seed)) * page_size();
	const int prot = rand_below(8, seed);

	switch (rand_below(64, seed) / 7) {
	case 0:
		map_in_area(at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		break;
	case 1:
	case 2:
		map_in_area(at, size, prot, MAP_PRIVATE, program);
		break;
	case 3:
		map_in_area(at, size, prot, MAP_SHARED, shared);
		break;
	case 4:
		munmap(at, size);
		break;
	case 5:
	case 6:
		mprotect(at, size, prot);
		break;
	case 7:
		mremap(at, size, (1 + rand_below(CHANGED_PAGES, seed)) * page_size(),
		       0);
		break;
	case 8:
		/* Fails without CONFIG_ANON_VMA_NAME. */
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, size, MEMORY);
		break;
	default:
		fork_once(seed);
		break;
	}
}

static void be_target(uint64_t seed)
{
	const int program = memfd_create(PROGRAM, MFD_CLOEXEC);
	const int shared = memfd_create(SHARED_FILE, MFD_CLOEXEC);
	unsigned int changes = 1 + rand_below(CHANGES_MAX, &seed);
	char text[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!write_elf(program, program_id))
		_exit(1);
	while (changes--) {
		change_once(program, shared, &seed);
		usleep(rand_below(200, &seed));
	}
	snprintf(text, sizeof(text), "%#jx", (uintmax_t)seed);
	if (rand_below(4, &seed))
		execl("/proc/self/exe", "procmap", BE_TARGET, text, NULL);
	_exit(0);
}

/* This runs before main(). */
static void __attribute__((constructor)) be_executed_target(int argc,
			  char **argv)
{
	if (argc == 3 && !strcmp(argv[1], BE_TARGET))
		be_target(strtoull(argv[2], NULL, 0) ?: 1);
}

static bool is_named(const struct found *found, const char *name)
{
	return !found->name ||
	       (found->name_size == strlen(name) + 1 &&
		!memcmp(found->name, name, found->name_size));
}

static bool is_identified(const struct found *found, const uint8_t *id,
			  size_t size)
{
	return !found->id || (found->id_size == size &&
			      !memcmp(found->id, id, size));
}

/* Check a mapping in the area. Returns its fault, or "". */
static const char *wrong_in_area(const struct found *found)
{
	const bool shared = found->permissions & PROCMAP_QUERY_VMA_SHARED;
	const bool has_file = found->inode || found->device;

	if (found->start < AREA || found->end > addr_of(AREA_END))
		return "a mapping across the end of the area";
	if (!has_file) {
		if (shared)
			return "shared memory";
		if (found->name_size && !is_named(found, "[anon:" MEMORY "]"))
			return "the name of memory";
		return is_identified(found, NULL, 0) ? "" : "the ID of memory";
	}
	if (found->offset != found->start - AREA)
		return "an offset that is none of this place";
	/* A file of shared memory that has no link can be given a name, since 6.2. */
	if (!is_named(found, shared ? NAME_OF(SHARED_FILE) : NAME_OF(PROGRAM)) &&
	    !is_named(found, "[anon_shmem:" MEMORY "]"))
		return "the name of another file";
	if (!is_identified(found, program_id, shared ? 0 : sizeof(program_id)))
		return "the ID of another file";
	return "";
}

/* Check a mapping, and count it if it is in the area. Returns its fault, or "". */
const char *wrong_mapping(const struct found *found,
			  unsigned long *in_area)
{
	const uint64_t page = page_size();
	const bool has_file = found->inode || found->device;

	if (found->start >= found->end || (found->start | found->end) % page)
		return "the range";
	if (found->permissions & ~(QUERY_FILTERS & ~PROCMAP_QUERY_FILE_BACKED_VMA))
		return "the permissions";
	if (found->page_size != page)
		return "the page size";
	if (has_file ? found->offset % page : found->offset)
		return "the offset";
	if (found->name && found->name_size &&
	    (found->name_size < 2 ||
	     strnlen(found->name, found->name_size) != found->name_size - 1))
		return "the end of the name";
	if (found->id_size > 20 || (!has_file && found->id_size))
		return "the size of the build ID";
	if (found->end <= AREA || found->start >= addr_of(AREA_END))
		return "";
	++*in_area;
	return wrong_in_area(found);
}

/* The content of buffers before a call. */
#define FILL		0xa5

/* Bytes before and behind a buffer that a call must leave alone. */
#define MARGIN		64

#define ZONE_SIZE	(16 * page_size())

static bool make_zone(struct zone *zone)
{
	const int fd = memfd_create("zone", MFD_CLOEXEC);
	const size_t size = ZONE_SIZE + page_size();
	bool made;

	zone->rw = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	zone->ro = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	made = zone->rw != MAP_FAILED && zone->ro != MAP_FAILED &&
	       !ftruncate(fd, ZONE_SIZE) &&
	       !mprotect(zone->rw + ZONE_SIZE, page_size(), PROT_NONE) &&
	       !mprotect(zone->ro + ZONE_SIZE, page_size(), PROT_NONE);
	close(fd);
	return made;
}

static uint64_t wild_address(uint64_t *seed)
{
	static const uint64_t wild[] = {
		1, 8, AREA, 0x7fffffff, 0x80000000, 0xfffff000, 0xffffffff,
		(1ull << 47) - 4096, (1ull << 47) - 1, 1ull << 47, 1ull << 48,
		1ull << 63, 0xffff888000000000, 0xffffffff81000000,
		0xffffffffff600000, ~0ull - 4095, ~0ull - 103, ~0ull - 7, ~0ull,
	};

	return wild[rand_below(ARRAY_SIZE(wild), seed)];
}

/* A buffer for @size bytes, or for fewer. */
struct buffer some_buffer(const struct zone *zone, size_t size,
			  size_t align, uint64_t *seed)
{
	struct buffer buffer = {};
	size_t at;

	if (size > ZONE_SIZE)
		size = ZONE_SIZE;
	switch (rand_below(32, seed)) {
	case 0:
		buffer.addr = wild_address(seed);
		return buffer;
	case 1:
		at = ZONE_SIZE - rand_below(size + 1, seed);
		break;
	case 2:
	case 3:
	case 4:
		at = ZONE_SIZE - size;
		break;
	default:
		at = rand_below(ZONE_SIZE - size + 1, seed);
		break;
	}
	at -= at % align;
	buffer.bytes = (uint8_t *)zone->rw + at;
	buffer.readable = ZONE_SIZE - at;
	if (rand_below(32, seed)) {
		buffer.addr = (uintptr_t)buffer.bytes;
		buffer.room = buffer.readable;
	} else {
		buffer.addr = (uintptr_t)zone->ro + at;
	}
	return buffer;
}

uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Bytes of the margin before a buffer. */
static size_t margin_of(const struct zone *zone,
			const struct buffer *buffer)
{
	return min_u64(MARGIN, buffer->bytes - (uint8_t *)zone->rw);
}

/* Fill @size bytes of a buffer, and the margins. */
void fill_buffer(const struct zone *zone, const struct buffer *buffer,
		 size_t size)
{
	size_t margin;

	if (!buffer->bytes)
		return;
	margin = margin_of(zone, buffer);
	memset(buffer->bytes - margin, FILL,
	       margin + min_u64(size, buffer->readable) +
	       min_u64(MARGIN, buffer->readable - min_u64(size, buffer->readable)));
}

static bool is_all_fill(const uint8_t *bytes, size_t size)
{
	return !size || (*bytes == FILL && !memcmp(bytes, bytes + 1, size - 1));
}

/* All that was filled is unchanged, but for the first @used bytes. */
bool is_left_alone(const struct zone *zone,
		   const struct buffer *buffer, size_t size,
		   size_t used)
{
	size_t margin;

	if (!buffer->bytes)
		return true;
	margin = margin_of(zone, buffer);
	size = min_u64(size, buffer->readable);
	size += min_u64(MARGIN, buffer->readable - size);
	return is_all_fill(buffer->bytes - margin, margin) &&
	       (used >= size || is_all_fill(buffer->bytes + used, size - used));
}

/* A size near a boundary, or most often @usual. */
uint64_t some_size(uint64_t usual, uint64_t *seed)
{
	const uint64_t sizes[] = {
		0, 1, 7, 8, 16, 19, 20, 21, 23, 24, 25, 48, 56, 71, 72, 80, 88,
		95, 96, 97, 103, 104, 105, 112, 255, 256, 257, 4095, 4096, 4097,
		INT32_MAX, (uint64_t)INT32_MAX + 1, UINT32_MAX, 1ull << 32,
		~0ull - 7, ~0ull,
	};

	if (rand_below(8, seed))
		return usual;
	if (rand_below(2, seed))
		return usual + rand_below(9, seed) - 4;
	return sizes[rand_below(ARRAY_SIZE(sizes), seed)];
}

/* An address to look at. */
uint64_t some_address(uint64_t *seed)
{
	switch (rand_below(8, seed)) {
	case 0:
		return wild_address(seed);
	case 1:
		return (uintptr_t)program_id;
	case 2:
		return 0;
	case 3:
		return addr_of(rand_below(AREA_END, seed)) + rand_below(3, seed) - 1;
	default:
		return addr_of(rand_below(AREA_END, seed));
	}
}

/* Some of the known bits, or none, or all kinds of others. */
uint64_t some_bits(uint64_t known, uint64_t *seed)
{
	switch (rand_below(32, seed)) {
	case 0:
		return next_random(seed);
	case 1:
		return 1ull << rand_below(64, seed);
	case 2:
	case 3:
	case 4:
	case 5:
		return next_random(seed) & known;
	case 6:
	case 7:
	case 8:
	case 9:
		return 1ull << rand_below(6, seed) & known;
	default:
		return 0;
	}
}

static const struct {
	int error;
	const char *name;
} outcomes[NR_OUTCOMES] = {
	[FINE] = { 0, "fine" },
	[BAD_FD] = { EBADF, "EBADF" },
	[NO_IOCTL] = { ENOTTY, "ENOTTY" },
	[TOO_BIG] = { E2BIG, "E2BIG" },
	[INVALID] = { EINVAL, "EINVAL" },
	[FAULT] = { EFAULT, "EFAULT" },
	[GONE] = { ESRCH, "ESRCH" },
	[NOTHING] = { ENOENT, "ENOENT" },
	[NAME_LONG] = { ENAMETOOLONG, "ENAMETOOLONG" },
	[NO_SPACE] = { ENOSPC, "ENOSPC" },
	[INTERRUPTED] = { EINTR, "EINTR" },
	[OTHER] = { -1, "other" },
};

const char *name_of_outcome(enum outcome outcome)
{
	return outcomes[outcome].name;
}

enum outcome outcome_of(int error)
{
	unsigned int i;

	for (i = 0; i < OTHER && outcomes[i].error != error; i++)
		;
	return i;
}

/*
 * Put a structure somewhere. @members: its @known bytes that the kernel may know,
 * beginning with the size that it is to have.
 */
void put_argument(struct argument *argument,
		  const struct zone *zone, const void *members,
		  size_t known, uint64_t *seed)
{
	struct buffer *const buffer = &argument->buffer;
	size_t size;

	memset(argument->bytes, 0, sizeof(argument->bytes));
	memcpy(argument->bytes, members, known);
	memcpy(&argument->size, members, sizeof(argument->size));
	size = min_u64(argument->size, sizeof(argument->bytes));
	if (size > known && !rand_below(4, seed))
		argument->bytes[known + rand_below(size - known, seed)] = 1;
	argument->known = min_u64(known, size);
	if (size < sizeof(argument->size))
		size = sizeof(argument->size);
	argument->extent = size;

	*buffer = some_buffer(zone, size, rand_below(2, seed) ? 8 : 1, seed);
	/* A pointer to it has no more bits. */
	buffer->addr = min_u64(buffer->addr, UINTPTR_MAX);
	fill_buffer(zone, buffer, size);
	if (buffer->bytes)
		memcpy(buffer->bytes, argument->bytes,
		       min_u64(size, buffer->readable));
}

/*
 * The outcomes that the structure itself can have, or 0 if the kernel goes on with it.
 * @size_min: the least size. @known: bytes that the kernel knows.
 */
unsigned int outcomes_of_argument(const struct argument *argument,
				  size_t size_min, size_t known)
{
	const size_t readable = argument->buffer.readable;
	unsigned int set = 0;
	size_t i;

	if (readable < sizeof(argument->size))
		return SET(FAULT);
	if (argument->size > page_size())
		return SET(TOO_BIG);
	if (argument->size < size_min)
		return SET(INVALID);
	for (i = known; i < min_u64(argument->size, readable); i++)
		if (argument->bytes[i])
			set = SET(TOO_BIG);
	if (readable < argument->size)
		set |= SET(FAULT);
	return set;
}

/* The bytes before and behind the part that the kernel knows are unchanged. */
bool is_argument_left_alone(const struct argument *argument,
			    const struct zone *zone, size_t known)
{
	const struct buffer *const buffer = &argument->buffer;
	const size_t size = min_u64(argument->extent, buffer->readable);

	if (!buffer->bytes)
		return true;
	return is_left_alone(zone, buffer, size, size) &&
	       (known >= size || !memcmp(buffer->bytes + known,
					 argument->bytes + known, size - known));
}

/* A file to call the ioctl on. Sets @steady if nobody else closes it. */
int some_file(struct caller *caller, bool *steady)
{
	*steady = !rand_below(4, &caller->seed);
	if (*steady)
		return caller->maps;
	return caller->chaos->fds[rand_below(NR_FILES, &caller->seed)];
}

static void start_target(struct chaos *chaos, uint64_t *seed)
{
	const pid_t pid = fork();

	if (!pid)
		be_target(next_random(seed));
	next_random(seed);
	chaos->target = pid;
}

static int open_proc_path(const char *format, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), format, pid, pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Another file for the callers, or a negative number. */
static int another_file(const struct chaos *chaos, uint64_t *seed)
{
	const int fd = chaos->fds[rand_below(NR_FILES, seed)];

	switch (rand_below(16, seed)) {
	case 0:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	case 1:
		return open_proc_path("/proc/%d/maps", 2);
	case 2:
		return open_proc_path("/proc/%d/maps", getpid());
	case 3:
	case 4:
		return fcntl(fd, F_DUPFD_CLOEXEC, 0);
	case 5:
		return open_proc_path("/proc/%d/task/%d/maps", chaos->target);
	default:
		return open_proc_path("/proc/%d/maps", chaos->target);
	}
}

static void *close_files(void *arg)
{
	struct chaos *const chaos = arg;
	uint64_t seed = soak_seed(&chaos->soak, NR_CALLERS);
	int fd;

	start_target(chaos, &seed);
	while (!chaos->stop) {
		fd = another_file(chaos, &seed);
		if (fd >= 0)
			close(atomic_exchange(&chaos->fds[rand_below(NR_FILES, &seed)],
					      fd));
		if (waitpid(chaos->target, NULL, WNOHANG) == chaos->target)
			start_target(chaos, &seed);
		if (!rand_below(16, &seed))
			pthread_kill(chaos->callers[rand_below(NR_CALLERS,
							       &seed)].thread,
				     SIGUSR1);
		usleep(rand_below(1000, &seed));
	}
	kill(chaos->target, SIGKILL);
	waitpid(chaos->target, NULL, 0);
	return NULL;
}

/* Signals that this thread has got. */
__thread unsigned int interrupts;

static void count_interrupt(int signal)
{
	(void)signal;
	__atomic_add_fetch(&interrupts, 1, __ATOMIC_RELAXED);
}

static void *call_at_random(void *arg)
{
	struct caller *const caller = arg;
	struct chaos *const chaos = caller->chaos;

	while (!chaos->stop) {
		chaos->call(caller);
		if (*caller->wrong || soak_is_over(&chaos->soak, ++chaos->calls))
			chaos->stop = true;
	}
	return NULL;
}

static bool start_callers(struct chaos *chaos)
{
	unsigned int i, j;

	for (i = 0; i < NR_CALLERS; i++) {
		struct caller *const caller = &chaos->callers[i];

		caller->chaos = chaos;
		caller->seed = soak_seed(&chaos->soak, i);
		caller->maps = open_maps(0);
		for (j = 0; j < ARRAY_SIZE(caller->zones); j++)
			if (!make_zone(&caller->zones[j]))
				return false;
		if (pthread_create(&caller->thread, NULL, call_at_random, caller))
			return false;
	}
	return true;
}

/* Wait for the end, and report outcomes. */
static const char *join_callers(struct chaos *chaos)
{
	unsigned long counts[NR_OUTCOMES] = {}, in_area = 0;
	const char *wrong = "";
	unsigned int i, j;

	for (i = 0; i < NR_CALLERS; i++) {
		const struct caller *const caller = &chaos->callers[i];

		if (pthread_join(caller->thread, NULL))
			return "a caller that cannot be joined";
		if (*caller->wrong)
			wrong = caller->wrong;
		for (j = 0; j < NR_OUTCOMES; j++)
			counts[j] += caller->counts[j];
		in_area += caller->in_area;
	}
	printf("# %lu calls", (unsigned long)chaos->calls);
	for (j = 0; j < NR_OUTCOMES; j++)
		if (counts[j])
			printf(", %lu %s", counts[j], outcomes[j].name);
	printf("; %lu mappings of the target\n", in_area);
	return *wrong || in_area ? wrong : "no mapping of the target";
}

const char *run_chaos(struct chaos *chaos, void (*call)(struct caller *caller))
{
	const struct sigaction action = { .sa_handler = count_interrupt };
	unsigned int i;

	chaos->soak = begin_soak();
	chaos->call = call;
	for (i = 0; i < NR_FILES; i++)
		chaos->fds[i] = open_maps(0);
	/* The callers have to be there before they can be interrupted. */
	if (sigaction(SIGUSR1, &action, NULL) || !start_callers(chaos) ||
	    pthread_create(&chaos->closer, NULL, close_files, chaos) ||
	    pthread_join(chaos->closer, NULL))
		return "a run that cannot be started";
	return join_callers(chaos);
}
