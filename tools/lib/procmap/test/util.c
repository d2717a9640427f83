// SPDX-License-Identifier: GPL-2.0
#include "util.h"

#include <dirent.h>
#include <elf.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef PROCMAP_QUERY
#include <linux/procmap_query.h>
#endif

_Thread_local struct calls calls = { .allocations = -1, .opens = -1 };

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
ssize_t __real_pread64(int fd, void *to, size_t size, off64_t pos);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off64_t pos);
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

static int wrapped_query(int fd, struct procmap_query *query)
{
	int ret;

	calls.queries++;
	if (is_interrupted())
		return -1;
	if (calls.query_errno) {
		errno = calls.query_errno;
		return -1;
	}
	ret = __real_ioctl(fd, PROCMAP_QUERY, query);
	if (!ret) {
		if (calls.answered_end)
			query->vma_end = calls.answered_end;
		replace_page();
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
	for (i = 0; i < nr; i++)
		hide_id(&vmas[i]);
	if (nr > 0) {
		if (calls.answered_end)
			vmas[0].end = calls.answered_end;
		if (arg->walk_end > (uintptr_t)calls.replaced)
			replace_page();
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

int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
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

/*
 * Read the lines of a text. In smaps, those that are not of a mapping are passed over, but
 * for the page size.
 */
static bool read_lines(FILE *file, struct maps *maps)
{
	unsigned long long start, end, offset, inode, kilobytes;
	char perms[5], *text = NULL;
	struct line line;
	size_t size = 0;
	int name;

	while (getline(&text, &size, file) > 0) {
		text[strcspn(text, "\n")] = '\0';
		if (maps->nr && sscanf(text, "KernelPageSize: %llu kB", &kilobytes) == 1)
			maps->lines[maps->nr - 1].page_size = kilobytes * 1024;
		name = 0;
		if (sscanf(text, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perms,
			   &offset, &line.dev_major, &line.dev_minor, &inode, &name) < 7 ||
		    !name || !strcmp(text + name, "[vsyscall]"))
			continue;
		line.start = start;
		line.end = end;
		line.offset = offset;
		line.inode = inode;
		line.flags = (perms[0] == 'r' ? PROCMAP_READABLE : 0) |
			     (perms[1] == 'w' ? PROCMAP_WRITABLE : 0) |
			     (perms[2] == 'x' ? PROCMAP_EXECUTABLE : 0) |
			     (perms[3] == 's' ? PROCMAP_SHARED : 0);
		line.page_size = 0;
		line.name = strdup(text + name);
		maps->lines = reallocarray(maps->lines, maps->nr + 1, sizeof(line));
		if (!maps->lines || !line.name)
			return false;
		maps->lines[maps->nr++] = line;
	}
	free(text);
	return maps->nr && !ferror(file);
}

bool read_maps(pid_t pid, const char *name, struct maps *maps)
{
	char path[32];
	FILE *file;
	bool is_read;

	*maps = (struct maps) { .nr = 0 };
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	is_read = read_lines(file, maps);
	fclose(file);
	return is_read;
}

void free_maps(struct maps *maps)
{
	while (maps->nr)
		free(maps->lines[--maps->nr].name);
	free(maps->lines);
}

const struct line *line_at(const struct maps *maps, uint64_t addr)
{
	size_t i;

	for (i = 0; i < maps->nr; i++)
		if (addr >= maps->lines[i].start && addr < maps->lines[i].end)
			return &maps->lines[i];
	return NULL;
}

const struct line *line_named(const struct maps *maps, const char *end)
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

bool line_passes(const struct line *line, unsigned int flags)
{
	const unsigned int permissions = PROCMAP_READABLE | PROCMAP_WRITABLE |
					 PROCMAP_EXECUTABLE | PROCMAP_SHARED;

	/* Only a file has a device or an inode. */
	if ((flags & PROCMAP_FILE_BACKED) && !line->inode && !line->dev_major &&
	    !line->dev_minor)
		return false;
	return !(flags & permissions & ~line->flags);
}

const struct line *expected_line(const struct maps *maps, uint64_t addr, unsigned int flags)
{
	const struct line *line = maps->lines;

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
		const struct line *line)
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
	uint64_t *const addrs = calloc(4 * maps->nr + 2, sizeof(*addrs));
	unsigned int random = 1;
	size_t nr = 0, i;

	for (i = 0; i < maps->nr; i++) {
		addrs[nr++] = maps->lines[i].start;
		addrs[nr++] = maps->lines[i].end - 1;
		addrs[nr++] = maps->lines[i].start + 123;
		addrs[nr++] = maps->lines[i].end + 5;
	}
	addrs[nr++] = 0;
	addrs[nr++] = UINT64_MAX;
	for (i = nr - 1; i > 0; i--) {
		const size_t other = (random = random * 1103515245 + 12345) %
				     (i + 1);
		const uint64_t addr = addrs[i];

		addrs[i] = addrs[other];
		addrs[other] = addr;
	}
	*all = addrs;
	return nr;
}

const char *without_method(enum procmap_method method)
{
	return method == PROCMAP_BY_SCAN ? "this kernel has no PROCMAP_SCAN" :
					"this kernel has no PROCMAP_QUERY";
}

/* The ioctls return something else for nonsense then. */
bool has_method(enum procmap_method method)
{
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char nothing[4096] = "";
	bool has = true;

	if (method == PROCMAP_BY_SCAN)
		has = __real_ioctl(fd, PROCMAP_SCAN, nothing) && errno != ENOTTY;
	if (method == PROCMAP_BY_QUERY)
		has = __real_ioctl(fd, PROCMAP_QUERY, nothing) && errno != ENOTTY;
	close(fd);
	return has;
}

int expected_method(enum procmap_method method)
{
	if (method != PROCMAP_ANY_METHOD)
		return method;
	return has_method(PROCMAP_BY_SCAN) ? PROCMAP_BY_SCAN :
	       has_method(PROCMAP_BY_QUERY) ? PROCMAP_BY_QUERY : PROCMAP_BY_TEXT;
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

static bool notify(int control)
{
	return send(control, "", 1, MSG_NOSIGNAL) == 1;
}

/* Wait for notify() at the other end. */
static bool await(int control)
{
	char byte;

	return read(control, &byte, 1) == 1;
}

static void *thread_that_stays(void *arg)
{
	const int control = (intptr_t)arg;

	notify(control);
	await(control);
	_exit(0);
}

/* @area: pages to change, or NULL. */
static int obey(int control, void *area)
{
	pthread_t thread;
	char order;

	notify(control);
	while (read(control, &order, 1) == 1) {
		switch (order) {
		case EXECUTE_CAT:
			if (dup2(control, 0) < 0 || dup2(control, 1) < 0)
				return 1;
			execlp("cat", "cat", NULL);
			return 1;
		case EXIT_MAIN_THREAD:
			if (pthread_create(&thread, NULL, thread_that_stays,
					   (void *)(intptr_t)control))
				return 1;
			syscall(SYS_exit, 0);
			return 1;
		case MAP:
			mmap(area + PAGE, PAGE, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case UNMAP:
			munmap(area + PAGE, PAGE);
			break;
		}
		notify(control);
	}
	return 0;
}

bool start_child(struct child *child, void *area, const char *root)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return false;
	child->pid = fork();
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		_exit(root && chroot(root) ? 1 : obey(ends[1], area));
	}
	close(ends[1]);
	child->control = ends[0];
	return child->pid > 0 && await(child->control);
}

bool tell(const struct child *child, enum order order)
{
	const char byte = order;

	return write(child->control, &byte, 1) == 1 && await(child->control);
}

bool execute(const struct child *child)
{
	const char order = EXECUTE_CAT;

	return write(child->control, &order, 1) == 1 && notify(child->control) &&
	       await(child->control);
}

void stop_child(struct child *child)
{
	if (child->pid <= 0)
		return;
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->control);
	child->pid = 0;
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

const uint8_t test_id[20] = "the build ID of it.";
const uint8_t other_id[20] = "another build ID of.";

bool write_elf(int fd, const uint8_t id[20])
{
	const uint16_t one = 1;
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr;
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[20];
	} elf = {
		.ehdr = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
				     *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB,
				     EV_CURRENT },
			.e_type = ET_DYN, .e_version = EV_CURRENT, .e_phnum = 1,
			.e_phoff = offsetof(typeof(elf), phdr),
			.e_ehsize = sizeof(elf.ehdr), .e_phentsize = sizeof(elf.phdr),
		},
		.phdr = {
			.p_type = PT_NOTE, .p_align = 4,
			.p_offset = offsetof(typeof(elf), note),
			.p_filesz = sizeof(elf) - offsetof(typeof(elf), note),
		},
		.note = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};

	memcpy(elf.id, id, sizeof(elf.id));
	return write(fd, &elf, sizeof(elf)) == sizeof(elf);
}

bool has_test_id(const struct procmap_mapping *mapping)
{
	return mapping->build_id_size == 20 && !memcmp(test_id, mapping->build_id, 20);
}

bool make_directory(char dir[32])
{
	struct statfs fs;

	strcpy(dir, statfs("/tmp", &fs) || fs.f_type == OVERLAYFS_SUPER_MAGIC ?
		    "/dev/shm/procmap-test-XXXXXX" : "/tmp/procmap-test-XXXXXX");
	return mkdtemp(dir);
}

bool remove_directory(const char *dir)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return !system(command);
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
	if (!write_elf(fd, test_id) || ftruncate(fd, 8 * PAGE))
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

static bool make_mappings(const char *dir)
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

bool make_scene(struct scene *scene, enum procmap_method method)
{
	if (!make_directory(scene->dir) || !make_mappings(scene->dir))
		return false;
	scene->area = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return scene->area != MAP_FAILED && !munmap(scene->area + PAGE, PAGE) &&
	       start_child(&scene->child, scene->area, NULL) &&
	       read_maps(scene->child.pid, "maps", &scene->maps) && scene->maps.nr > 40 &&
	       !procmap_open_pid(scene->child.pid, BY(method), &scene->procmap);
}

bool end_scene(struct scene *scene)
{
	calls.allocations = -1;
	calls.opens = -1;
	calls.query_errno = 0;
	procmap_close(scene->procmap);
	stop_child(&scene->child);
	free_maps(&scene->maps);
	return remove_directory(scene->dir);
}
