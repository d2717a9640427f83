// SPDX-License-Identifier: GPL-2.0
/*
 * libprocmap by the ioctls and by the text: all must return what sscanf(3) finds
 * in the text of the same process.
 *
 * The calls of the library to ioctl(2), pread(2), open(2), openat(2) and the
 * allocator come here first (the linker's --wrap), to be counted, or to fail on
 * demand.
 */
#include "procmap-query.h"

#include <linux/magic.h>
#include <linux/memfd.h>
#include <linux/procmap_scan.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <procmap.h>

#include "kselftest_harness.h"

#define PAGE	page_size()
#define SLOW	300	/* seconds, in an emulated guest with KASAN */
#define NOBODY	65534

/* Options with a method. */
#define BY(by)	(&(const struct procmap_options) {		\
			.size = sizeof(struct procmap_options), .method = (by) })

static _Thread_local struct {
	unsigned int queries;
	unsigned int scans;
	unsigned int preads;
	int query_errno;	/* let each query fail so */
	int scan_errno;		/* each scan */
	uint64_t answered_end;	/* let each answer, or its first record, end there */
	void *replaced;	/* replace this page once it has been in an answer: */
	int replacement;	/* by one of this file, or if 0 by an anonymous one */
	bool hide_ids;	/* let no record of a scan have its build ID */
	long allocations;	/* let all fail that come after so many */
	unsigned int failures;	/* let so many of 100 allocations fail, at random */
	unsigned int seed;	/* of that */
	long opens;		/* the same, with ENFILE */
	unsigned int allocated;	/* attempts to allocate */
	unsigned int interruptions;	/* let so many calls fail with EINTR */
} calls = { .allocations = -1, .opens = -1 };

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

static void replace_page(void)
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
	if (calls.failures) {
		calls.seed = calls.seed * 1103515245 + 12345;
		if ((calls.seed >> 16) % 100 < calls.failures)
			return false;
	}
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

static bool is_as_line(const struct procmap_mapping *mapping,
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

/* The descriptor of the file of a mapping, which the caller closes; or an error. */
static int open_file(struct procmap *procmap, const struct procmap_mapping *mapping)
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

static int elf_address(struct procmap *procmap, const struct procmap_mapping *mapping,
		       uint64_t offset, uint64_t *address)
{
	struct procmap_file *file;
	int err;

	err = procmap_open_file(procmap, mapping, NULL, &file);
	if (err)
		return err;
	err = procmap_file_address(file, offset, address);
	procmap_close_file(file);
	return err;
}

/* What a child is told to do; cat(1) then echoes what it gets. */
enum order {
	END,
	EXECUTE_CAT,
	EXIT_MAIN_THREAD,
	MAP,
	UNMAP,
	PROTECT,
	UNPROTECT,
};

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
	while (read(control, &order, 1) == 1 && order != END) {
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
		case PROTECT:
			mprotect(area + 3 * PAGE, PAGE, PROT_READ | PROT_EXEC);
			break;
		case UNPROTECT:
			mprotect(area + 3 * PAGE, PAGE, PROT_NONE);
			break;
		}
		notify(control);
	}
	return 0;
}

static bool tell(const struct child *child, enum order order)
{
	const char byte = order;

	return write(child->control, &byte, 1) == 1;
}

static bool execute(const struct child *child)
{
	return tell(child, EXECUTE_CAT) && notify(child->control) &&
	       await(child->control);
}

static bool read_maps_of(pid_t pid, struct maps *maps)
{
	const int fd = open_maps(pid);
	const int err = read_maps(fd, maps);

	close(fd);
	return !err;
}

/*
 * A process that does what it is told, a copy of this one, with mappings of every kind;
 * and its lines.
 */
FIXTURE(scene)
{
	char dir[32];
	char *area;
	struct child child;
	struct maps maps;
	struct procmap *procmap;
};

FIXTURE_VARIANT(scene)
{
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(scene, any) { .method = PROCMAP_ANY_METHOD };
FIXTURE_VARIANT_ADD(scene, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(scene, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(scene, text) { .method = PROCMAP_BY_TEXT };

static const uint8_t test_id[20] = "the build ID of it.";

static bool has_test_id(const struct procmap_mapping *mapping)
{
	return mapping->build_id_size == 20 && !memcmp(test_id, mapping->build_id, 20);
}

/* The path of a file. It stays while so many others are asked for. */
static const char *in(const char *dir, const char *name)
{
	static char paths[4][64];
	static unsigned int nr;
	char *const path = paths[nr++ % 4];

	snprintf(path, sizeof(*paths), "%s/%s", dir, name);
	return path;
}

/*
 * Make a directory with @dir for its name. Files on overlayfs, as /tmp is in the guests, are
 * not known by their numbers.
 */
static bool make_directory(char dir[32])
{
	struct statfs fs;

	strcpy(dir, statfs("/tmp", &fs) || fs.f_type == OVERLAYFS_SUPER_MAGIC ?
		    "/dev/shm/procmap-test-XXXXXX" : "/tmp/procmap-test-XXXXXX");
	return mkdtemp(dir);
}

static bool remove_directory(const char *dir)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return !system(command);
}

/* Map a page of a new file; the file is left open if @kept. */
static void *map_file(const char *dir, const char *name, int *kept)
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

static bool make_mappings(const char *dir)
{
	char *anon;
	int i;

	anon = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (anon == MAP_FAILED)
		return false;
	for (i = 0; i < 64; i += 2)
		if (mprotect(anon + i * PAGE, PAGE, PROT_NONE))
			return false;
	if (munmap(anon + 10 * PAGE, 3 * PAGE))
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

/* Return the reason to skip tests that need this method. */
static const char *without_method(enum procmap_method method)
{
	return method == PROCMAP_BY_SCAN ? "this kernel has no PROCMAP_SCAN" :
					"this kernel has no PROCMAP_QUERY";
}

/* Does the kernel have it? The ioctls return something else for nonsense then. */
static bool has_method(enum procmap_method method)
{
	const int fd = open_maps(0);
	char nothing[4096] = "";
	bool has = true;

	if (method == PROCMAP_BY_SCAN)
		has = __real_ioctl(fd, PROCMAP_SCAN, nothing) && errno != ENOTTY;
	if (method == PROCMAP_BY_QUERY)
		has = __real_ioctl(fd, PROCMAP_QUERY, nothing) && errno != ENOTTY;
	close(fd);
	return has;
}

FIXTURE_SETUP(scene)
{
	if (!has_method(variant->method))
		SKIP_SETUP(without_method(variant->method));
	ASSERT_TRUE(make_directory(self->dir));
	ASSERT_TRUE(make_mappings(self->dir));
	/* One page, and three, that no other mapping is next to. */
	self->area = mmap(NULL, 6 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	ASSERT_TRUE(self->area != MAP_FAILED);
	ASSERT_EQ(0, munmap(self->area + PAGE, PAGE));
	ASSERT_EQ(0, munmap(self->area + 5 * PAGE, PAGE));
	ASSERT_TRUE(start_child(&self->child, obey, self->area));
	ASSERT_TRUE(await(self->child.control));
	ASSERT_TRUE(read_maps_of(self->child.pid, &self->maps));
	ASSERT_LT(40u, self->maps.nr);
	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method),
				      &self->procmap));
}

FIXTURE_TEARDOWN(scene)
{
	calls.allocations = -1;
	calls.opens = -1;
	calls.query_errno = 0;
	procmap_close(self->procmap);
	stop_child(&self->child);
	free_maps(&self->maps);
	EXPECT_TRUE(remove_directory(self->dir));
}

static const struct maps_line *line_named(const struct maps *maps,
					  const char *end)
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

/* The method that a handle is to use. */
static int expected_method(enum procmap_method method)
{
	if (method != PROCMAP_ANY_METHOD)
		return method;
	return has_method(PROCMAP_BY_SCAN) ? PROCMAP_BY_SCAN :
	       has_method(PROCMAP_BY_QUERY) ? PROCMAP_BY_QUERY : PROCMAP_BY_TEXT;
}

/* By default, what no query is needed for is read from the text. */
TEST_F(scene, walk_is_by_the_method_of_the_handle)
{
	const bool is_any = variant->method == PROCMAP_ANY_METHOD;
	const int by = expected_method(variant->method);
	const int method = is_any && by == PROCMAP_BY_QUERY ? PROCMAP_BY_TEXT : by;
	static const unsigned int others[] = { PROCMAP_EXECUTABLE, PROCMAP_WANT_PAGE_SIZE };
	size_t i;
	const struct procmap_mapping *found;
	uint64_t cursor = 0;

	/* It may try whether there is a scan. */
	EXPECT_EQ(by, procmap_get_method(self->procmap));
	calls.queries = 0;
	calls.scans = 0;
	calls.preads = 0;
	while (!procmap_next(self->procmap, &cursor, 0, &found))
		;
	EXPECT_EQ(method == PROCMAP_BY_QUERY ? self->maps.nr + 1 : 0,
		  calls.queries);
	EXPECT_EQ(method == PROCMAP_BY_SCAN, !!calls.scans);
	EXPECT_EQ(method == PROCMAP_BY_TEXT, !!calls.preads);
	for (i = 0; i < 2; i++) {
		cursor = 0;
		calls.preads = 0;
		EXPECT_EQ(0, procmap_next(self->procmap, &cursor, others[i], &found));
		EXPECT_EQ(by == PROCMAP_BY_TEXT, !!calls.preads);
	}
}

TEST_F_TIMEOUT(scene, finds_what_the_text_says, SLOW)
{
	const struct procmap_mapping *found;
	unsigned int flags, where;
	size_t i;

	for (i = 0; i < self->maps.nr; i++) {
		const struct maps_line *const line = &self->maps.lines[i];
		const uint64_t addrs[] = { line->start - 1, line->start,
					   line->end - 1, line->end };

		for (flags = 0; flags < 0x40; flags++)
			for (where = 0; where < 4; where++) {
				const struct maps_line *const expected =
					expected_line(&self->maps, addrs[where],
						      flags);
				const int err = procmap_find(self->procmap,
							     addrs[where],
							     flags, &found);

				ASSERT_EQ(expected ? 0 : -ENOENT, err);
				if (expected)
					ASSERT_TRUE(is_as_line(found,
							       expected));
			}
	}
}

TEST_F_TIMEOUT(scene, walks_over_all_that_pass_the_filters, SLOW)
{
	const struct procmap_mapping *found;
	unsigned int flags;

	for (flags = 0; flags < 0x40; flags++) {
		const struct maps_line *expected;
		uint64_t cursor = 0;

		if (flags & PROCMAP_COVERING_OR_NEXT)
			continue;
		while ((expected = expected_line(&self->maps, cursor, flags |
						 PROCMAP_COVERING_OR_NEXT))) {
			ASSERT_EQ(0, procmap_next(self->procmap, &cursor, flags,
						  &found));
			ASSERT_TRUE(is_as_line(found, expected));
			ASSERT_EQ(expected->end, cursor);
		}
		ASSERT_EQ(-ENOENT, procmap_next(self->procmap, &cursor, flags,
						&found));
	}
}

TEST_F(scene, page_sizes)
{
	const int known = expected_method(variant->method) != PROCMAP_BY_TEXT;
	const struct procmap_mapping *found;
	uint64_t *page_sizes, cursor = 0;
	struct maps maps;
	size_t i;

	ASSERT_EQ(0, read_smaps(self->child.pid, &maps, &page_sizes));
	for (i = 0; i < maps.nr; i++) {
		ASSERT_EQ(0, procmap_find(self->procmap, maps.lines[i].start, 0,
					  &found));
		EXPECT_EQ(known ? page_sizes[i] : 0, found->page_size);
		ASSERT_EQ(0, procmap_find(self->procmap, maps.lines[i].start,
					  PROCMAP_WANT_PAGE_SIZE, &found));
		EXPECT_EQ(page_sizes[i], found->page_size);
		ASSERT_EQ(0, procmap_next(self->procmap, &cursor,
					  PROCMAP_WANT_PAGE_SIZE, &found));
		EXPECT_EQ(page_sizes[i], found->page_size);
		EXPECT_TRUE(is_as_line(found, &maps.lines[i]));
	}
	free_maps(&maps);
	free(page_sizes);
}

/* All but the last can be had by their names alone. */
static const char *const with_build_id[] = {
	"plain", "new\\012line", "literal\\012", "with blank ", "gone (deleted)",
};

/* Map a file, and let its path lead to another, for this process alone. */
static uint64_t map_hidden_file(const char *dir)
{
	void *map;

	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", "", MS_REC | MS_PRIVATE, ""))
		return 0;
	map = map_file(dir, "hidden", NULL);
	if (map == MAP_FAILED || mount(in(dir, "plain"), in(dir, "hidden"), "", MS_BIND, ""))
		return 0;
	return (uintptr_t)map;
}

/* The exit status of a child for which it is the value of @expression; or -1. */
#define IN_CHILD(expression)						\
	({								\
		const pid_t child = fork();				\
		int status;						\
									\
		if (!child)						\
			_exit(expression);				\
		waitpid(child, &status, 0) == child && WIFEXITED(status) ?	\
			WEXITSTATUS(status) : -1;			\
	})

/* Look at the own process without privileges from then on. */
static bool become_nobody(void)
{
	return !setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY) &&
	       !prctl(PR_SET_DUMPABLE, 1);
}

/* Find the build ID at @start, or of a hidden file if that is 0. */
static int find_id_as_nobody(const char *dir, enum procmap_method method,
			     uint64_t start)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	int size;

	/* One's own maps; it is the copy of a copy of the scene. */
	if (!start)
		start = map_hidden_file(dir);
	if (chmod(dir, 0755) || !become_nobody() ||
	    procmap_open_self(BY(method), &procmap) ||
	    procmap_find(procmap, start, PROCMAP_WANT_BUILD_ID, &found))
		return 255;
	size = found->build_id_size;
	procmap_close(procmap);
	return size < 0 ? 100 - size : size;
}

TEST_F(scene, build_ids_without_capabilities)
{
	const bool by_text = expected_method(variant->method) == PROCMAP_BY_TEXT;
	char path[64];
	size_t i;

	if (geteuid())
		SKIP(return, "only root can become nobody");
	for (i = 0; i < 5; i++) {
		const struct maps_line *const line =
			line_named(&self->maps, with_build_id[i]);
		const bool is_gone = i == 4;

		/* The names have a newline where the line has \012. */
		snprintf(path, sizeof(path), "%s/%s", self->dir,
			 i == 1 ? "new\nline" : with_build_id[i]);
		if (!is_gone)
			ASSERT_EQ(0, chmod(path, 0644));
		EXPECT_EQ(by_text && is_gone ? 100 + ENOENT : 20,
			  IN_CHILD(find_id_as_nobody(self->dir, variant->method,
						     line->start)));
	}
	/* There is another file where the one that is mapped was. */
	EXPECT_EQ(by_text ? 100 + ESTALE : 20,
		  IN_CHILD(find_id_as_nobody(self->dir, variant->method, 0)));
}

TEST_F(scene, opens_the_file_that_is_mapped)
{
	const struct procmap_mapping *found;
	uint8_t bytes[PAGE];
	uint64_t cursor = 0;
	size_t i;
	int fd;

	for (i = 0; i < 5; i++) {
		const struct maps_line *const line =
			line_named(&self->maps, with_build_id[i]);

		ASSERT_EQ(0, procmap_find(self->procmap, line->start, 0, &found));
		fd = open_file(self->procmap, found);
		if (geteuid() && i == 4) {
			EXPECT_EQ(-ENOENT, fd);
			continue;
		}
		ASSERT_LE(0, fd);
		EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
		EXPECT_EQ(O_RDONLY, fcntl(fd, F_GETFL) & O_ACCMODE);
		ASSERT_EQ((ssize_t)PAGE, read(fd, bytes, PAGE));
		EXPECT_EQ(0, memcmp(bytes + offsetof(struct tiny_elf, note.id),
				    test_id, 20));
		close(fd);
	}
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
	while (found->inode)
		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
	EXPECT_EQ(-ENODEV, open_file(self->procmap, found));
	EXPECT_EQ(-EINVAL, open_file(self->procmap, NULL));
	EXPECT_EQ(-EINVAL, procmap_open_file(self->procmap, found, NULL, NULL));
}

/* As many addresses as there are, in no order, some of them not mapped. */
static size_t make_addresses(const struct maps *maps, uint64_t *addrs)
{
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
	return nr;
}

TEST_F_TIMEOUT(scene, resolves_addresses_in_any_order, SLOW)
{
	const struct procmap_resolved *resolved;
	unsigned int flags, few;
	size_t nr_addrs, nr, i;
	uint64_t *addrs;

	addrs = calloc(4 * self->maps.nr + 2, sizeof(*addrs));
	nr_addrs = make_addresses(&self->maps, addrs);
	/* Few are sorted differently than many. */
	for (flags = few = 0; flags < 0x40; few = !few, flags += !few) {
		if (flags & PROCMAP_COVERING_OR_NEXT)
			continue;
		nr = few ? 20 : nr_addrs;
		ASSERT_EQ(0, procmap_resolve(self->procmap, addrs, nr, flags,
					     &resolved));
		ASSERT_EQ(nr, resolved->nr_addrs);
		for (i = 0; i < nr; i++) {
			const struct procmap_mapping *const found =
				resolved->mappings[i];
			const struct maps_line *const line =
				expected_line(&self->maps, addrs[i], flags);

			ASSERT_EQ(!line, !found);
			ASSERT_TRUE(!line || is_as_line(found, line));
		}
		procmap_free_resolved(resolved);
	}
	free(addrs);
}

TEST_F(scene, resolving_asks_for_each_mapping_once)
{
	const bool by_text = expected_method(variant->method) == PROCMAP_BY_TEXT;
	const struct procmap_resolved *resolved;
	uint64_t addrs[1000];
	size_t i;

	/* Ten mappings of the anonymous pages, a hundred addresses in each. */
	for (i = 0; i < 1000; i++)
		addrs[i] = self->maps.lines[i % 10].start + i;
	calls.queries = 0;
	calls.preads = 0;
	ASSERT_EQ(0, procmap_resolve(self->procmap, addrs, 1000, 0, &resolved));
	/* Addresses in one mapping have one pointer. */
	for (i = 10; i < 1000; i++)
		ASSERT_EQ(resolved->mappings[i % 10], resolved->mappings[i]);
	EXPECT_NE(resolved->mappings[0], resolved->mappings[1]);
	EXPECT_EQ(by_text ? 0 : 10, calls.queries);
	EXPECT_EQ(by_text, !!calls.preads);
	/* Nor is the text read twice. */
	EXPECT_GE(20, calls.preads);
	procmap_free_resolved(resolved);
}

TEST_F(scene, bad_arguments_are_refused)
{
	struct procmap *const procmap = self->procmap;
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	uint64_t cursor = 0;
	unsigned int bit;

	EXPECT_EQ(-EINVAL, procmap_find(NULL, 0, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_find(procmap, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_next(NULL, &cursor, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_next(procmap, NULL, 0, &found));
	EXPECT_EQ(-EINVAL, procmap_next(procmap, &cursor, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_resolve(NULL, &cursor, 1, 0, &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, NULL, 1, 0, &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 0, 0, &resolved));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 1, 0, NULL));
	EXPECT_EQ(-EINVAL, procmap_get_method(NULL));
	procmap_close(NULL);
	procmap_free_resolved(NULL);
	for (bit = 6; bit < 32; bit++) {
		if (bit >= 16 && bit <= 18)
			continue;
		EXPECT_EQ(-EINVAL, procmap_find(procmap, 0, 1u << bit, &found));
		EXPECT_EQ(-EINVAL, procmap_next(procmap, &cursor, 1u << bit,
						&found));
		EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 1,
						   1u << bit, &resolved));
	}
	EXPECT_EQ(-EINVAL, procmap_next(procmap, &cursor,
					PROCMAP_COVERING_OR_NEXT, &found));
	EXPECT_EQ(-EINVAL, procmap_resolve(procmap, &cursor, 1,
					   PROCMAP_COVERING_OR_NEXT, &resolved));
}

/* Do all there is to do with a handle. */
static int use_all(pid_t pid, enum procmap_method method, const uint64_t *addrs,
		   size_t nr)
{
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	struct procmap_snapshot *snapshot;
	struct procmap *procmap;
	uint64_t cursor = 0;
	int err;

	err = procmap_open_pid(pid, BY(method), &procmap);
	if (err)
		return err;
	err = procmap_find(procmap, addrs[0], PROCMAP_COVERING_OR_NEXT, &found);
	while (!err)
		err = procmap_next(procmap, &cursor, 0, &found);
	if (err == -ENOENT)
		err = procmap_resolve(procmap, addrs, nr, 0, &resolved);
	if (!err) {
		procmap_free_resolved(resolved);
		err = procmap_snapshot_take(procmap, 0, &snapshot);
	}
	if (!err)
		procmap_snapshot_free(snapshot);
	procmap_close(procmap);
	return err;
}

TEST_F_TIMEOUT(scene, each_allocation_can_fail, SLOW)
{
	int err, failures = 0;
	uint64_t *addrs;
	size_t nr;

	addrs = calloc(4 * self->maps.nr + 2, sizeof(*addrs));
	nr = make_addresses(&self->maps, addrs);
	do {
		calls.allocations = failures;
		err = use_all(self->child.pid, variant->method, addrs, nr);
		calls.allocations = -1;
		if (err)
			ASSERT_EQ(-ENOMEM, err);
	} while (err && ++failures < 100);
	EXPECT_EQ(0, err);
	EXPECT_LE(7, failures);
	free(addrs);
}

/*
 * A handle needs its directory and its maps file. Whichever cannot be opened, the error
 * is open(2)'s and nothing stays open.
 */
TEST_F(scene, opening_without_a_free_descriptor)
{
	const int needed = 2;
	const int before = count_fds();
	struct procmap *procmap;
	int nr, err;

	for (nr = 0; nr <= needed; nr++) {
		procmap = NULL;
		calls.opens = nr;
		err = procmap_open_pid(self->child.pid, BY(variant->method), &procmap);
		calls.opens = -1;
		EXPECT_EQ(nr < needed ? -ENFILE : 0, err);
		EXPECT_EQ(nr == needed, !!procmap);
		procmap_close(procmap);
		EXPECT_EQ(before, count_fds());
	}
}

/* Opened handles go on; the mapped file needs two descriptors more for a moment. */
TEST_F(scene, mapped_file_without_a_free_descriptor)
{
	const struct maps_line *const line = line_named(&self->maps, "plain");
	const bool by_text = expected_method(variant->method) == PROCMAP_BY_TEXT;
	const int before = count_fds();
	const struct procmap_mapping *found;
	int nr, fd;

	ASSERT_TRUE(!!line);
	for (nr = 0; nr < 2; nr++) {
		calls.opens = nr;
		ASSERT_EQ(0, procmap_find(self->procmap, line->start,
					  PROCMAP_WANT_BUILD_ID, &found));
		EXPECT_TRUE(is_as_line(found, line));
		EXPECT_EQ(by_text ? -ENFILE : 20, found->build_id_size);
		EXPECT_EQ(before, count_fds());
		calls.opens = nr;
		fd = open_file(self->procmap, found);
		calls.opens = -1;
		EXPECT_EQ(-ENFILE, fd);
		EXPECT_EQ(before, count_fds());
	}
	fd = open_file(self->procmap, found);
	EXPECT_LE(0, fd);
	close(fd);
}

/* An interrupted call is repeated, so that no function returns EINTR. */
TEST_F(scene, interrupted_calls_are_repeated)
{
	const struct maps_line *const line = &self->maps.lines[1];
	const uint64_t addr = line->start;
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	uint64_t cursor = addr;
	struct procmap *procmap;

	calls.interruptions = 3;
	ASSERT_EQ(0, procmap_find(self->procmap, addr, 0, &found));
	EXPECT_EQ(0, calls.interruptions);
	EXPECT_TRUE(is_as_line(found, line));

	calls.interruptions = 3;
	ASSERT_EQ(0, procmap_resolve(self->procmap, &addr, 1, 0, &resolved));
	EXPECT_EQ(0, calls.interruptions);
	EXPECT_TRUE(is_as_line(resolved->mappings[0], line));
	procmap_free_resolved(resolved);

	calls.interruptions = 1;
	ASSERT_EQ(0, procmap_open_pid(self->child.pid, BY(variant->method), &procmap));
	EXPECT_EQ(0, calls.interruptions);
	calls.interruptions = 3;
	ASSERT_EQ(0, procmap_next(procmap, &cursor, 0, &found));
	EXPECT_TRUE(is_as_line(found, line));
	EXPECT_EQ(line->end, cursor);
	/* Text that has been read already is not read again. */
	if (expected_method(variant->method) != PROCMAP_BY_TEXT)
		EXPECT_EQ(0, calls.interruptions);
	calls.interruptions = 0;
	procmap_close(procmap);
}

/*
 * Return whether a walk from the cursor on is over the lines from index @i on. All files
 * are still there, except shared memory, which the text shows as deleted.
 */
static bool walks_over(struct procmap *procmap, uint64_t cursor,
		       const struct maps *maps, size_t i, unsigned int flags)
{
	const struct procmap_mapping *found;

	for (; i < maps->nr; i++) {
		struct maps_line line = maps->lines[i];

		if (flags && strstr(line.name, " (deleted)"))
			line.flags |= PROCMAP_DELETED;
		if (procmap_next(procmap, &cursor, flags, &found) ||
		    !is_as_line(found, &line))
			return false;
	}
	return procmap_next(procmap, &cursor, flags, &found) == -ENOENT;
}

/*
 * Walks over a process that changes: this one.
 */
FIXTURE(change)
{
	struct procmap *procmap;
	char *area;
};

FIXTURE_VARIANT(change)
{
	enum procmap_method method;
};

FIXTURE_VARIANT_ADD(change, query) { .method = PROCMAP_BY_QUERY };
FIXTURE_VARIANT_ADD(change, scan) { .method = PROCMAP_BY_SCAN };
FIXTURE_VARIANT_ADD(change, text) { .method = PROCMAP_BY_TEXT };

#define AREA	(3000 * PAGE)

FIXTURE_SETUP(change)
{
	int fd;

	if (!has_method(variant->method))
		SKIP_SETUP(without_method(variant->method));
	ASSERT_EQ(0, procmap_open_self(BY(variant->method), &self->procmap));
	fd = memfd_create("area", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(fd, AREA));
	self->area = mmap(NULL, AREA, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_TRUE(self->area != MAP_FAILED);
	close(fd);
}

FIXTURE_TEARDOWN(change)
{
	procmap_close(self->procmap);
}

/* Make every second page of the area another mapping. */
static bool split(char *area, int nr_pages)
{
	int i;

	for (i = 0; i < nr_pages; i += 2)
		if (mprotect(area + i * PAGE, PAGE, PROT_NONE))
			return false;
	return true;
}

TEST_F_TIMEOUT(change, merged_below_the_cursor_is_cut_off_there, SLOW)
{
	const struct procmap_mapping *found;
	uint64_t cursor;
	int i;

	ASSERT_TRUE(split(self->area, 3000));
	cursor = (uintptr_t)self->area;
	for (i = 0; i < 2001; i++)
		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
	ASSERT_EQ((uintptr_t)self->area + 2001 * PAGE, cursor);
	ASSERT_EQ(0, mprotect(self->area, AREA, PROT_READ));

	/* By text and by scan, some mappings are older than the change. */
	do {
		const uint64_t at = cursor;

		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, 0, &found));
		EXPECT_EQ(at, found->start);
		EXPECT_EQ(at - (uintptr_t)self->area, found->offset);
		i++;
	} while (found->end != (uintptr_t)self->area + AREA && i < 3000);
	EXPECT_GT(variant->method == PROCMAP_BY_QUERY ? 2003 :
		  variant->method == PROCMAP_BY_TEXT ? 2200 : 2001 + 512, i);
}

/*
 * By scan, few ioctls are enough where most of the mappings are wanted; where
 * few are, a scan is tried only now and then. By query there is one for each
 * mapping, and by text none.
 */
TEST_F_TIMEOUT(change, resolving_takes_few_ioctls, SLOW)
{
	static const size_t strides[] = { 1, 30 };
	const struct procmap_resolved *resolved;
	uint64_t addrs[3000];
	size_t i, j;

	ASSERT_TRUE(split(self->area, 3000));
	for (i = 0; i < 2; i++) {
		const size_t nr = 3000 / strides[i];

		for (j = 0; j < nr; j++)
			addrs[j] = (uintptr_t)self->area + j * strides[i] * PAGE;
		calls.queries = 0;
		calls.scans = 0;
		ASSERT_EQ(0, procmap_resolve(self->procmap, addrs, nr, 0,
					     &resolved));
		ASSERT_EQ(nr, resolved->nr_addrs);
		for (j = 0; j < nr; j++)
			ASSERT_EQ(addrs[j], resolved->mappings[j]->start);
		if (variant->method == PROCMAP_BY_SCAN) {
			EXPECT_GT(i ? nr + 1 : 100, calls.queries);
			EXPECT_GT(i ? 3 : 20, calls.scans);
		} else {
			EXPECT_EQ(variant->method == PROCMAP_BY_QUERY ? nr : 0,
				  calls.queries);
			EXPECT_EQ(0, calls.scans);
		}
		procmap_free_resolved(resolved);
	}
}

struct long_path {
	size_t len;
	char name[2 * PATH_MAX];
	char dir[32];
};

/* Map three pages of a new file with a path of @len bytes, below a new directory. */
static char *map_long_path(struct long_path *path, size_t len, int flags)
{
	char component[201] = "";
	size_t at;
	void *map;
	int fd;

	memset(component, 'd', sizeof(component) - 1);
	if (!make_directory(path->dir) || chdir(path->dir))
		return MAP_FAILED;
	at = sprintf(path->name, "%s", path->dir);
	while (len - at > sizeof(component)) {
		at += sprintf(path->name + at, "/%s", component);
		if (mkdir(component, 0700) || chdir(component))
			return MAP_FAILED;
	}
	component[len - at - 1] = '\0';
	sprintf(path->name + at, "/%s", component);
	path->len = len;

	fd = open(component, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (!write_elf(fd, test_id) || ftruncate(fd, 3 * PAGE))
		return MAP_FAILED;
	map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, flags, fd, 0);
	close(fd);
	return chdir("/") ? MAP_FAILED : map;
}

static bool has_name(const struct procmap_mapping *found,
		     const struct long_path *path)
{
	return found->name_len == path->len && !strcmp(found->name, path->name);
}

TEST_F(change, name_that_is_longer_than_a_path)
{
	const struct procmap_resolved *resolved;
	const struct procmap_mapping *found;
	uint64_t cursor, addr;
	struct long_path path;
	char *map;

	map = map_long_path(&path, PATH_MAX, MAP_PRIVATE);
	ASSERT_TRUE(map != MAP_FAILED);
	addr = (uintptr_t)map + PAGE;
	ASSERT_EQ(0, procmap_find(self->procmap, addr, 0, &found));
	EXPECT_TRUE(has_name(found, &path));
	EXPECT_EQ((uintptr_t)map, found->start);

	ASSERT_EQ(0, procmap_resolve(self->procmap, &addr, 1, 0, &resolved));
	EXPECT_TRUE(has_name(resolved->mappings[0], &path));
	procmap_free_resolved(resolved);

	cursor = 0;
	do {
		ASSERT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_BUILD_ID,
					  &found));
	} while (found->start != (uintptr_t)map);
	EXPECT_TRUE(has_name(found, &path));
	EXPECT_EQ((uintptr_t)map + 3 * PAGE, cursor);
	if (variant->method != PROCMAP_BY_TEXT || !geteuid())
		EXPECT_TRUE(has_test_id(found));
	/* It does not end a walk. */
	EXPECT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_TRUE(remove_directory(path.dir));
}

/* The text that has the name may be newer than what an ioctl has returned. */
TEST_F(change, name_that_is_longer_than_a_path_and_too_late)
{
	const struct procmap_mapping *found;
	uint64_t cursor, at;
	struct long_path path;
	char *map;

	map = map_long_path(&path, PATH_MAX, MAP_PRIVATE);
	ASSERT_TRUE(map != MAP_FAILED);
	at = (uintptr_t)map + 2 * PAGE;

	calls.replaced = map + PAGE;
	if (variant->method == PROCMAP_BY_TEXT)
		replace_page();
	cursor = at;
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_BUILD_ID,
				  &found));
	EXPECT_EQ(NULL, calls.replaced);
	EXPECT_EQ(at, found->start);
	EXPECT_EQ(at + PAGE, found->end);
	EXPECT_EQ(at + PAGE, cursor);
	EXPECT_EQ(2 * PAGE, found->offset);
	EXPECT_TRUE(has_name(found, &path));
	if (variant->method != PROCMAP_BY_TEXT || !geteuid())
		EXPECT_EQ(20, found->build_id_size);

	calls.replaced = map + 2 * PAGE;
	if (variant->method == PROCMAP_BY_TEXT)
		replace_page();
	cursor = at;
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, PROCMAP_WANT_BUILD_ID,
				  &found));
	EXPECT_EQ(NULL, calls.replaced);
	EXPECT_EQ(at, found->start);
	EXPECT_EQ(0, found->inode);
	EXPECT_STREQ("", found->name);
	EXPECT_EQ(0, found->build_id_size);
	EXPECT_TRUE(remove_directory(path.dir));
}

/* The longest that the ioctls return. */
TEST_F(change, long_name_gets_the_room_that_it_needs)
{
	const unsigned int flags = PROCMAP_EXECUTABLE | PROCMAP_SHARED |
				   PROCMAP_FILE_BACKED;
	const struct procmap_mapping *found;
	uint64_t cursor = 0;
	struct long_path path;
	char *map;

	map = map_long_path(&path, PATH_MAX - 1, MAP_SHARED);
	ASSERT_TRUE(map != MAP_FAILED);
	calls.queries = 0;
	calls.scans = 0;
	ASSERT_EQ(0, procmap_next(self->procmap, &cursor, flags, &found));
	EXPECT_EQ((uintptr_t)map, found->start);
	EXPECT_TRUE(has_name(found, &path));
	EXPECT_EQ(variant->method == PROCMAP_BY_SCAN, calls.scans);
	EXPECT_EQ(variant->method == PROCMAP_BY_QUERY, calls.queries);
	EXPECT_EQ(-ENOENT, procmap_next(self->procmap, &cursor, flags, &found));
	EXPECT_TRUE(remove_directory(path.dir));
}

/*
 * Opening of handles.
 */
TEST(nonsense_is_not_opened)
{
	struct procmap *procmap;

	EXPECT_EQ(-EINVAL, procmap_open_pid(0, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_pid(-1, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_pid(1, BY(4), &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_pid(1, NULL, NULL));
	EXPECT_EQ(-ESRCH, procmap_open_pid(INT_MAX, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_self(BY(4), &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_self(NULL, NULL));
	EXPECT_EQ(-EINVAL, procmap_open_text(NULL, 1, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_text("", 0, NULL, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_text("x", 1, NULL, NULL));
}

/* A field of a later version is not used by an earlier one unless it is zero. */
TEST(options_of_other_versions)
{
	struct {
		struct procmap_options options;
		char later[64];
	} larger = { .options.size = sizeof(larger) };
	struct procmap_options options = { .size = sizeof(options.size), .method = 77 };
	struct procmap *procmap;

	ASSERT_EQ(0, procmap_open_self(&larger.options, &procmap));
	procmap_close(procmap);
	larger.later[63] = 1;
	EXPECT_EQ(-EINVAL, procmap_open_self(&larger.options, &procmap));
	ASSERT_EQ(0, procmap_open_self(&options, &procmap));
	procmap_close(procmap);
	options.size = 0;
	EXPECT_EQ(-EINVAL, procmap_open_self(&options, &procmap));
	EXPECT_EQ(-EINVAL, procmap_open_text("x\n", 2, BY(PROCMAP_BY_QUERY), &procmap));
}

TEST(kernel_thread_has_no_mappings)
{
	struct procmap *procmap;
	char comm[32] = "";
	int fd;

	fd = open("/proc/2/comm", O_RDONLY);
	if (fd < 0 || read(fd, comm, sizeof(comm)) < 0 ||
	    strcmp(comm, "kthreadd\n") || geteuid())
		SKIP(return, "no kernel thread can be looked at");
	EXPECT_EQ(-ESRCH, procmap_open_pid(2, NULL, &procmap));
	EXPECT_EQ(-ESRCH, procmap_open_pid(2, BY(PROCMAP_BY_TEXT), &procmap));
	close(fd);
}

TEST(refused_ioctl_means_the_text)
{
	static const int refusals[] = { ENOTTY, EACCES, EPERM, ENOSYS };
	const struct procmap_mapping *found;
	struct procmap *procmap;
	size_t i;

	for (i = 0; i < 4; i++) {
		calls.query_errno = refusals[i];
		calls.scan_errno = refusals[i];
		EXPECT_EQ(-refusals[i], procmap_open_self(BY(PROCMAP_BY_QUERY),
							  &procmap));
		calls.queries = 0;
		calls.scans = 0;
		ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
		EXPECT_EQ(PROCMAP_BY_TEXT, procmap_get_method(procmap));
		EXPECT_EQ(0, procmap_find(procmap, (uintptr_t)&calls, 0, &found));
		EXPECT_EQ(0, procmap_find(procmap, (uintptr_t)&calls, 0, &found));
		/* Each is tried once. */
		EXPECT_EQ(1, calls.queries);
		EXPECT_GE(1, calls.scans);
		procmap_close(procmap);
	}
	calls.query_errno = ENOMEM;
	EXPECT_EQ(-ENOMEM, procmap_open_self(BY(PROCMAP_BY_QUERY), &procmap));
	calls.scan_errno = ENOMEM;
	EXPECT_EQ(-ENOMEM, procmap_open_self(NULL, &procmap));
	calls.query_errno = 0;
	calls.scan_errno = 0;
}

TEST_F(change, answer_that_is_none_is_refused)
{
	const struct procmap_mapping *found;
	uint64_t cursor = 0;

	if (variant->method == PROCMAP_BY_TEXT)
		return;
	calls.answered_end = 4096;
	EXPECT_EQ(-EPROTO, procmap_find(self->procmap, (uintptr_t)&calls, 0, &found));
	EXPECT_EQ(-EPROTO, procmap_next(self->procmap, &cursor, 0, &found));
	EXPECT_EQ(0, cursor);
	calls.answered_end = 0;

	/* It does not need more room than it was given. */
	calls.scan_errno = ENOSPC;
	if (variant->method == PROCMAP_BY_SCAN)
		EXPECT_EQ(-EPROTO, procmap_next(self->procmap, &cursor, 0, &found));
	calls.scan_errno = 0;
}

TEST(refused_scan_means_queries)
{
	struct procmap *procmap;

	if (!has_method(PROCMAP_BY_SCAN))
		SKIP(return, "%s", without_method(PROCMAP_BY_SCAN));
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	EXPECT_EQ(PROCMAP_BY_SCAN, procmap_get_method(procmap));
	procmap_close(procmap);

	calls.scan_errno = EPERM;
	EXPECT_EQ(-EPERM, procmap_open_self(BY(PROCMAP_BY_SCAN), &procmap));
	ASSERT_EQ(0, procmap_open_self(NULL, &procmap));
	EXPECT_EQ(PROCMAP_BY_QUERY, procmap_get_method(procmap));
	procmap_close(procmap);
	calls.scan_errno = 0;
}

/*
 * Texts that were saved.
 */
static const char saved[] =
	"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/dbus-daemon\n"
	"00e03000-00e24000 rw-p 00000000 00:00 0           [heap]\n"
	"7f0000000000-7f0000001000 ---s 7fffffffff000 fd:100000 18446744073709551615 /x y\\012z\n"
	"7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n"
	"7f0000003000-7f0000004000 r-xp 00000000 00:00 0  [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n";

static int walk_text(const char *text, size_t size, int *nr)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	uint64_t cursor = 0;
	int err;

	*nr = 0;
	err = procmap_open_text(text, size, NULL, &procmap);
	if (err)
		return err;
	while (!err) {
		err = procmap_next(procmap, &cursor, 0, &found);
		*nr += !err;
	}
	procmap_close(procmap);
	return err;
}

/* Nobody else has mappings of parts of a page. */
TEST(saved_text_of_parts_of_pages)
{
	static const char text[] = "1000-1800 r--p 0 0:1 1 /a\n"
				   "1800-2000 r--p 0 0:1 2 /b\n";
	const struct procmap_resolved *resolved;
	struct procmap *procmap;
	uint64_t addrs[40];
	size_t i;

	for (i = 0; i < 40; i++)
		addrs[i] = i % 2 ? 0x1700 - i : 0x1900 + i;
	ASSERT_EQ(0, procmap_open_text(text, strlen(text), NULL, &procmap));
	ASSERT_EQ(0, procmap_resolve(procmap, addrs, 40, 0, &resolved));
	for (i = 0; i < 40; i++)
		EXPECT_EQ(i % 2 ? 0x1000 : 0x1800, resolved->mappings[i]->start);
	procmap_free_resolved(resolved);
	procmap_close(procmap);
}

TEST(saved_text)
{
	const struct procmap_mapping *found;
	struct procmap *procmap;

	ASSERT_EQ(0, procmap_open_text(saved, strlen(saved), NULL, &procmap));
	EXPECT_EQ(PROCMAP_BY_TEXT, procmap_get_method(procmap));
	ASSERT_EQ(0, procmap_find(procmap, 0x7f0000000fff,
				  PROCMAP_WANT_BUILD_ID, &found));
	EXPECT_EQ(0x7f0000000000, found->start);
	EXPECT_EQ(0x7f0000001000, found->end);
	EXPECT_EQ(PROCMAP_SHARED, found->flags);
	EXPECT_EQ(0x7fffffffff000, found->offset);
	EXPECT_EQ(0xfd, found->dev_major);
	EXPECT_EQ(0x100000, found->dev_minor);
	EXPECT_EQ(UINT64_MAX, found->inode);
	EXPECT_STREQ("/x y\\012z", found->name);
	EXPECT_EQ(-ENODEV, found->build_id_size);
	EXPECT_EQ(0, found->page_size);
	EXPECT_EQ(-ENODEV, open_file(procmap, found));
	ASSERT_EQ(0, procmap_find(procmap, 0x7f0000001000, 0, &found));
	EXPECT_EQ(0, found->name_len);
	EXPECT_STREQ("", found->name);
	EXPECT_EQ(-ENOENT, procmap_find(procmap, 0xffffffffff600000, 0, &found));
	/* It may be of another process, whose vdso is not looked for. */
	ASSERT_EQ(0, procmap_find(procmap, 0x7f0000003000, PROCMAP_WANT_BUILD_ID |
				  PROCMAP_WANT_DELETED, &found));
	EXPECT_EQ(-ENODEV, found->build_id_size);
	EXPECT_EQ(PROCMAP_READABLE | PROCMAP_EXECUTABLE, found->flags);
	procmap_close(procmap);
}

TEST(saved_smaps_has_page_sizes)
{
	static const char text[] =
		"1000-2000 r-xp 0 08:02 1 /a\nSize: 4 kB\nKernelPageSize: 2048 kB\n"
		"Rss: 4 kB\nVmFlags: rd\n"
		"2000-3000 r-xp 0 08:02 1 /a\nSize: 4 kB\n"
		"3000-4000 r-xp 0 08:02 1 /a\nKernelPageSize: 64 kB\n";
	static const uint64_t expected[] = { 2048 * 1024, 0, 64 * 1024 };
	const struct procmap_mapping *found;
	struct procmap *procmap;
	uint64_t cursor = 0;
	int i;

	ASSERT_EQ(0, procmap_open_text(text, strlen(text), NULL, &procmap));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, procmap_next(procmap, &cursor,
					  PROCMAP_WANT_PAGE_SIZE, &found));
		EXPECT_EQ(0x1000 * (i + 1), found->start);
		EXPECT_EQ(expected[i], found->page_size);
	}
	EXPECT_EQ(-ENOENT, procmap_next(procmap, &cursor, 0, &found));
	procmap_close(procmap);
}

TEST(cut_text_is_refused)
{
	const size_t size = strlen(saved);
	char *copy;
	size_t len;
	int err, nr;

	EXPECT_EQ(-ENOENT, walk_text(saved, size, &nr));
	EXPECT_EQ(5, nr);
	for (len = 1; len < size; len++) {
		/* A read past its end would be noticed. */
		copy = malloc(len);
		memcpy(copy, saved, len);
		err = walk_text(copy, len, &nr);
		EXPECT_EQ(saved[len - 1] == '\n' ? -ENOENT : -EBADMSG, err);
		free(copy);
	}
}

TEST(broken_lines_are_refused)
{
	static const char *const lines[] = {
		"\n", "x\n", "1000\n", "1000-\n", "1000-2000\n",
		"2000-1000 r-xp 0 0:0 0\n", "1000-1000 r-xp 0 0:0 0\n",
		"1000-2000 rwx 0 0:0 0\n", "1000-2000 r-xq 0 0:0 0\n",
		"1000-2000 r-xp  0:0 0\n", "1000-2000 r-xp 0 0 0\n",
		"1000-2000 r-xp 0 0:0 \n", "1000-2000 r-xp 0 0:0 0x\n",
		"1000-2000 r-xp 0 0:100000000 0\n",
		"1000-2000 r-xp 0 0:0 18446744073709551616\n",
		"10000000000000000-20000000000000000 r-xp 0 0:0 0\n",
		"Size: 4 kB\n",
		"2000-3000 r-xp 0 0:0 0\n1000-2000 r-xp 0 0:0 0\n",
		"1000-2000 r-xp 0 0:0 0\n1000-2000 r-xp 0 0:0 0\n",
	};
	size_t i;
	int nr;

	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		TH_LOG("%.*s", (int)strlen(lines[i]) - 1, lines[i]);
		EXPECT_EQ(-EBADMSG, walk_text(lines[i], strlen(lines[i]), &nr));
		EXPECT_EQ(0, nr);
	}
}

/* The other tests, a file for each subject. */
#include "process-test.h"
#include "file-test.h"
#include "mounted-test.h"
#include "snapshot-test.h"
#include "table-test.h"
#include "record-test.h"

TEST_HARNESS_MAIN
