// SPDX-License-Identifier: GPL-2.0
#include "util.h"

#include <dirent.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/vfs.h>

_Thread_local struct calls calls = { .allocations = -1, .opens = -1 };

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
ssize_t __real_pread64(int fd, void *to, size_t size, off64_t pos);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off64_t pos);
long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

/* Fails with EINTR if that is still to happen. */
static bool is_interrupted(void)
{
	if (!calls.interruptions)
		return false;
	calls.interruptions--;
	errno = EINTR;
	return true;
}

void replace_page(void)
{
	const int fd = calls.replacement;

	if (calls.replaced)
		mmap(calls.replaced, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED |
		     (fd ? 0 : MAP_ANONYMOUS), fd ? fd : -1, 0);
	calls.replaced = NULL;
}

/* Replace the page if an answer had it. Others may come first. */
static void replace_page_in(uint64_t start, uint64_t end)
{
	const uint64_t page = (uintptr_t)calls.replaced;

	if (page >= start && page < end)
		replace_page();
}

static int wrapped_query(int fd, struct procmap_query *query)
{
	int ret;

	calls.queries++;
	calls.ids_asked += !!query->build_id_addr;
	if (is_interrupted())
		return -1;
	if (calls.query_errno) {
		errno = calls.query_errno;
		return -1;
	}
	ret = __real_ioctl(fd, PROCMAP_QUERY, query);
	if (!ret) {
		replace_page_in(query->vma_start, query->vma_end);
		if (calls.answered_end)
			query->vma_end = calls.answered_end;
	}
	return ret;
}

/* As the kernel does for pages that are not resident. */
static void hide_id(struct procmap_vma *vma)
{
	if (calls.hide_ids && vma->build_id_size) {
		vma->build_id_size = 0;
		vma->flags |= PROCMAP_VMA_BUILD_ID_NOT_READ;
	}
}

static int wrapped_scan(int fd, struct procmap_scan_arg *arg)
{
	struct procmap_vma *const vmas = (void *)(uintptr_t)arg->vec;
	int nr, i;

	calls.scans++;
	if (is_interrupted()) {
		/* As the kernel does before the first record. */
		arg->walk_end = arg->start;
		arg->data_used = 0;
		return -1;
	}
	if (calls.scan_errno) {
		errno = calls.scan_errno;
		return -1;
	}
	nr = __real_ioctl(fd, PROCMAP_SCAN, arg);
	if (nr >= 0 && calls.hide_bound)
		arg->flags &= ~PROCMAP_SCAN_QUERY_IS_BOUNDED;
	for (i = 0; i < nr; i++)
		hide_id(&vmas[i]);
	if (nr > 0) {
		if (calls.answered_end)
			vmas[0].end = calls.answered_end;
		replace_page_in(arg->start, arg->walk_end);
	}
	return nr;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	switch (request) {
	case PROCMAP_QUERY:
		return wrapped_query(fd, arg);
	case PROCMAP_SCAN:
		return wrapped_scan(fd, arg);
	default:
		return __real_ioctl(fd, request, arg);
	}
}

ssize_t __wrap_pread64(int fd, void *to, size_t size, off64_t pos)
{
	calls.preads++;
	if (is_interrupted())
		return -1;
	return __real_pread64(fd, to, size, pos);
}

static bool may_allocate(void)
{
	calls.allocated++;
	if (!calls.allocations)
		return false;
	if (calls.allocations > 0)
		calls.allocations--;
	return true;
}

static bool leads_to_maps(const char *path)
{
	const char *const name = strrchr(path, '/');

	return name && !strcmp(name, "/maps");
}

int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
	if (calls.emulated_maps && leads_to_maps(path))
		path = calls.emulated_maps;
	if (!calls.opens) {
		errno = ENFILE;
		return -1;
	}
	if (calls.opens > 0)
		calls.opens--;
	return __real_openat64(dir, path, flags, mode);
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	return __wrap_openat64(AT_FDCWD, path, flags, mode);
}

/* The caller has passed fewer arguments than may be there. */
__attribute__((no_sanitize("address")))
long __wrap_syscall(long nr, ...)
{
	const struct open_how *how;
	long args[6];
	va_list all;
	size_t i;

	va_start(all, nr);
	for (i = 0; i < ARRAY_SIZE(args); i++)
		args[i] = va_arg(all, long);
	va_end(all);
	how = (const struct open_how *)args[2];
	if (nr == SYS_openat2 && calls.openat2_errno &&
	    (how->resolve & RESOLVE_CACHED || calls.openat2_errno == ENOSYS)) {
		errno = calls.openat2_errno;
		return -1;
	}
	return __real_syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return may_allocate() ? __real_calloc(nr, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
	return may_allocate() ? __real_realloc(old, size) : NULL;
}

bool read_text(pid_t pid, struct maps *maps)
{
	return !read_pieces(open_maps(pid), BUFSIZ, maps);
}

const struct maps_line *line_named(const struct maps *maps, const char *end)
{
	size_t i;

	for (i = 0; i < maps->nr; i++) {
		const char *const name = maps->lines[i].name;
		const size_t len = strlen(name);

		if (len >= strlen(end) && !strcmp(name + len - strlen(end), end))
			return &maps->lines[i];
	}
	return NULL;
}

bool line_passes(const struct maps_line *line, unsigned int flags)
{
	if ((flags & PROCMAP_FILE_BACKED) && !is_file(line))
		return false;
	return !(flags & QUERY_PERMISSIONS & ~line->flags);
}

const struct maps_line *expected_line(const struct maps *maps, uint64_t addr, unsigned int flags)
{
	const struct maps_line *line = maps->lines;

	for (; line < maps->lines + maps->nr; line++) {
		if (line->end <= addr)
			continue;
		if (!(flags & PROCMAP_COVERING_OR_NEXT) && line->start > addr)
			return NULL;
		if (line_passes(line, flags))
			return line;
	}
	return NULL;
}

bool is_as_line(const struct procmap_mapping *mapping,
		const struct maps_line *line)
{
	return mapping->start == line->start && mapping->end == line->end &&
	       mapping->flags == line->flags &&
	       mapping->offset == line->offset &&
	       mapping->inode == line->inode &&
	       mapping->dev_major == line->dev_major &&
	       mapping->dev_minor == line->dev_minor &&
	       !strcmp(mapping->name, line->name) &&
	       mapping->name_len == strlen(line->name);
}

int walk_to_build_id(struct procmap *procmap, const void *start, uint8_t id[20])
{
	const struct procmap_mapping *found;
	uint64_t cursor = 0;
	int err;

	do {
		err = procmap_next(procmap, &cursor, PROCMAP_WANT_BUILD_ID, &found);
	} while (!err && found->start != (uintptr_t)start);
	if (err)
		return err;
	memcpy(id, found->build_id, 20);
	return found->build_id_size;
}

size_t make_addresses(const struct maps *maps, uint64_t **all)
{
	const size_t nr = 5 * maps->nr + 2, step = 7919;	/* a prime number, larger than nr */
	uint64_t *const addrs = calloc(nr, sizeof(*addrs));
	size_t at = 0, i;

	for (i = 0; i < maps->nr; i++) {
		const struct maps_line *const line = &maps->lines[i];

		addrs[step * at++ % nr] = line->start - 1;
		addrs[step * at++ % nr] = line->start;
		addrs[step * at++ % nr] = line->start + (line->end - line->start) / 2;
		addrs[step * at++ % nr] = line->end - 1;
		addrs[step * at++ % nr] = line->end;
	}
	addrs[step * at++ % nr] = 0;
	addrs[step * at++ % nr] = UINT64_MAX;
	*all = addrs;
	return nr;
}

/* For nonsense, an ioctl that there is returns another error. */
const char *missing_method(enum procmap_method method)
{
	const int fd = open_maps(0);
	const char *missing = NULL;
	char none[4096] = "";

	if (method == PROCMAP_BY_SCAN && __real_ioctl(fd, PROCMAP_SCAN, none) && errno == ENOTTY)
		missing = "this kernel has no PROCMAP_SCAN";
	if (method == PROCMAP_BY_QUERY && __real_ioctl(fd, PROCMAP_QUERY, none) && errno == ENOTTY)
		missing = "this kernel has no PROCMAP_QUERY";
	close(fd);
	return missing;
}

int expected_method(enum procmap_method method)
{
	if (method != PROCMAP_ANY_METHOD)
		return method;
	return !missing_method(PROCMAP_BY_SCAN) ? PROCMAP_BY_SCAN :
	       !missing_method(PROCMAP_BY_QUERY) ? PROCMAP_BY_QUERY : PROCMAP_BY_TEXT;
}

bool kernel_gives_ids(enum procmap_method method)
{
	struct procmap_vma vma;
	struct procmap_scan_arg arg = {
		.size = sizeof(arg), .end = 1, .vec = (uintptr_t)&vma, .vec_len = 1,
		.vma_size = sizeof(vma),
	};
	const int fd = open("/proc/self/maps", O_RDONLY);
	const int nr = __real_ioctl(fd, PROCMAP_SCAN, &arg);

	close(fd);
	return method != PROCMAP_BY_TEXT && nr >= 0 &&
	       arg.flags & PROCMAP_SCAN_QUERY_IS_BOUNDED;
}

int open_file(struct procmap *procmap, const struct procmap_mapping *mapping)
{
	struct procmap_file *file;
	int fd;

	fd = procmap_open_file(procmap, mapping, NULL, &file);
	if (fd)
		return fd;
	fd = fcntl(procmap_file_fd(file), F_DUPFD_CLOEXEC, 0);
	procmap_close_file(file);
	return fd;
}

static void *thread_that_stays(void *arg)
{
	notify((intptr_t)arg);
	pause();
	return NULL;
}

int obey(int control, void *arg)
{
	pthread_t thread;
	char order;

	(void)arg;
	if (!notify(control) || read(control, &order, 1) != 1)
		return 1;
	if (order == EXECUTE_CAT && dup2(control, 0) == 0 && dup2(control, 1) == 1)
		execlp("cat", "cat", NULL);
	if (order == EXIT_MAIN_THREAD && await(control) &&
	    !pthread_create(&thread, NULL, thread_that_stays, (void *)(intptr_t)control) &&
	    await(control))
		syscall(SYS_exit, 0);
	return 1;
}

bool tell(const struct child *child, enum order order)
{
	const char byte = order;

	return write(child->control, &byte, 1) == 1 && notify(child->control) &&
	       await(child->control);
}

int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	closedir(dir);
	return count;
}

const uint8_t other_id[20] = "another build ID of.";

bool has_test_id(const struct procmap_mapping *mapping)
{
	return mapping->build_id_size == 20 && !memcmp(scene_id, mapping->build_id, 20);
}

bool make_test_directory(char dir[32])
{
	struct statfs fs;

	strcpy(dir, statfs("/tmp", &fs) || fs.f_type == OVERLAYFS_SUPER_MAGIC ?
		    "/dev/shm/procmap-test-XXXXXX" : "/tmp/procmap-test-XXXXXX");
	return mkdtemp(dir);
}

const char *in(const char *dir, const char *name)
{
	static char paths[4][64];
	static unsigned int nr;
	char *const path = paths[nr++ % 4];

	snprintf(path, sizeof(*paths), "%s/%s", dir, name);
	return path;
}

void *map_file(const char *dir, const char *name, int *kept)
{
	void *map;
	int fd;

	fd = open(in(dir, name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (!write_elf(fd, scene_id) || ftruncate(fd, 8 * PAGE))
		return MAP_FAILED;
	map = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 3 * PAGE);
	if (kept)
		*kept = fd;
	else
		close(fd);
	return map;
}

bool split(char *area, int nr_pages)
{
	int i;

	for (i = 0; i < nr_pages; i += 2)
		if (mprotect(area + i * PAGE, PAGE, PROT_NONE))
			return false;
	return true;
}

bool make_mappings(const char *dir)
{
	char *const anon = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (anon == MAP_FAILED || !split(anon, 64) || munmap(anon + 10 * PAGE, 3 * PAGE))
		return false;
	if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED ||
	    map_file(dir, "plain", NULL) == MAP_FAILED ||
	    map_file(dir, "new\nline", NULL) == MAP_FAILED ||
	    map_file(dir, "literal\\012", NULL) == MAP_FAILED ||
	    map_file(dir, "with blank ", NULL) == MAP_FAILED ||
	    map_file(dir, "gone", NULL) == MAP_FAILED)
		return false;
	return !unlink(in(dir, "gone"));
}
