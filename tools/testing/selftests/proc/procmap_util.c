// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers for the tests of /proc/<pid>/maps and its ioctls.
 */
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/socket.h>

#include "procmap_util.h"

size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

uint64_t addr_of(unsigned int page)
{
	return AREA + (uint64_t)page * page_size();
}

char *page_at(unsigned int page)
{
	return (char *)(uintptr_t)addr_of(page);
}

bool map_area(unsigned int page, unsigned int nr, int prot, int flags, int fd)
{
	return mmap(page_at(page), nr * page_size(), prot, flags | MAP_FIXED |
		    (fd < 0 ? MAP_ANONYMOUS : 0), fd, page * page_size()) == page_at(page);
}

int open_proc(pid_t pid, const char *name)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid ?: getpid(), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int open_maps(pid_t pid)
{
	return open_proc(pid, "maps");
}

static bool parse_line(char *text, struct maps_line *line)
{
	unsigned long long start, end, offset, inode;
	char perms[5];
	int name = 0;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perms,
		   &offset, &line->dev_major, &line->dev_minor, &inode, &name) < 7)
		return false;
	line->start = start;
	line->end = end;
	line->offset = offset;
	line->inode = inode;
	line->flags = (perms[0] == 'r' ? PROCMAP_QUERY_VMA_READABLE : 0) |
		      (perms[1] == 'w' ? PROCMAP_QUERY_VMA_WRITABLE : 0) |
		      (perms[2] == 'x' ? PROCMAP_QUERY_VMA_EXECUTABLE : 0) |
		      (perms[3] == 's' ? PROCMAP_QUERY_VMA_SHARED : 0);
	line->name = strdup(text + name);
	line->page_size = 0;
	line->build_id_size = 0;
	return line->name;
}

/* Lines of smaps that begin no mapping follow the one that they belong to. */
int read_lines(FILE *file, struct maps *maps)
{
	unsigned long long kilobytes;
	struct maps_line line, *lines;
	bool is_vma = false;
	char *text = NULL;
	size_t size = 0;

	*maps = (struct maps) {};
	while (getline(&text, &size, file) > 0) {
		if (is_vma && sscanf(text, "KernelPageSize: %llu kB", &kilobytes) == 1)
			maps->lines[maps->nr - 1].page_size = kilobytes * 1024;
		if (!parse_line(text, &line))
			continue;
		is_vma = strcmp(line.name, "[vsyscall]");
		lines = reallocarray(maps->lines, maps->nr + 1, sizeof(*lines));
		if (!lines)
			abort();
		maps->lines = lines;
		if (is_vma)
			lines[maps->nr++] = line;
		else
			free(line.name);
	}
	free(text);
	return ferror(file) ? -errno : 0;
}

int read_pieces(int fd, size_t piece, struct maps *maps)
{
	char *const buffer = malloc(piece);
	FILE *const file = fdopen(fd, "r");
	int err = -EBADF;

	*maps = (struct maps) {};
	if (file && !setvbuf(file, buffer, _IOFBF, piece))
		err = lseek(fd, 0, SEEK_SET) ? -errno : read_lines(file, maps);
	if (file)
		fclose(file);
	free(buffer);
	if (err)
		free_maps(maps);
	return err;
}

int read_maps(int fd, struct maps *maps)
{
	return read_pieces(dup(fd), BUFSIZ, maps);
}

int read_smaps(pid_t pid, struct maps *maps)
{
	return read_pieces(open_proc(pid, "smaps"), BUFSIZ, maps);
}

void free_maps(struct maps *maps)
{
	while (maps->nr)
		free(maps->lines[--maps->nr].name);
	free(maps->lines);
	maps->lines = NULL;
}

const struct maps_line *line_at(const struct maps *maps, uint64_t addr)
{
	size_t i;

	for (i = 0; i < maps->nr; i++)
		if (addr >= maps->lines[i].start && addr < maps->lines[i].end)
			return &maps->lines[i];
	return NULL;
}

static bool same_line(const struct maps_line *a, const struct maps_line *b)
{
	return a->start == b->start && a->end == b->end && a->flags == b->flags &&
	       a->offset == b->offset && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->inode == b->inode &&
	       !strcmp(a->name, b->name);
}

bool same_maps(const struct maps *a, const struct maps *b)
{
	size_t i;

	for (i = 0; i < a->nr && i < b->nr; i++)
		if (!same_line(&a->lines[i], &b->lines[i]))
			return false;
	return a->nr == b->nr;
}

bool is_file(const struct maps_line *line)
{
	return line->inode || line->dev_major || line->dev_minor;
}

bool is_name(const struct maps_line *line, const char *name)
{
	const char *shown = line->name;

	for (; *name; name++) {
		if (*name == '\n' && !strncmp(shown, "\\012", 4))
			shown += 4;
		else if (*name == '\n' || *name != *shown++)
			return false;
	}
	return !*shown;
}

/* The kernel makes the next line when one is read to its end, but not when it is sought. */
FILE *open_text_behind_area(const char *path)
{
	FILE *const file = fopen(path, "re");
	const bool has_values = strstr(path, "smaps");
	char line[PATH_MAX + 128];
	bool is_found = false;
	long end;

	setvbuf(file, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), file)) {
		is_found = is_found || strtoull(line, NULL, 16) == AREA;
		if (!is_found || (has_values && strncmp(line, "VmFlags:", 8)))
			continue;
		end = ftell(file);
		if (!lseek(fileno(file), 0, SEEK_SET) &&
		    lseek(fileno(file), end, SEEK_SET) == end)
			return file;
	}
	fclose(file);
	return NULL;
}

/* Then a mapping that is made right behind the last line is shown. */
bool text_has_positions(const char *path)
{
	char line[PATH_MAX + 128] = "";
	FILE *file;

	if (!map_area(0, 1, PROT_READ, MAP_PRIVATE, -1))
		return false;
	file = open_text_behind_area(path);
	if (!file || !map_area(1, 1, PROT_NONE, MAP_PRIVATE, -1) ||
	    !fgets(line, sizeof(line), file))
		return false;
	fclose(file);
	munmap(page_at(0), 2 * page_size());
	return strtoull(line, NULL, 16) == addr_of(1);
}

int call_ioctl(int fd, unsigned long command, const void *arg)
{
	const int ret = ioctl(fd, command, arg);

	return ret < 0 ? -errno : ret;
}

int procmap_query(int fd, struct procmap_query *query)
{
	return call_ioctl(fd, PROCMAP_QUERY, query);
}

int query_fields(int fd, uint64_t addr, uint64_t flags, struct procmap_query *query)
{
	*query = QUERY(.query_addr = addr, .query_flags = flags);
	return procmap_query(fd, query);
}

int query_name(int fd, uint64_t addr, struct procmap_query *query, char *name, size_t size)
{
	*query = QUERY(.query_addr = addr, .vma_name_addr = (uintptr_t)name,
		       .vma_name_size = size);
	return procmap_query(fd, query);
}

int query_build_id(int fd, uint64_t addr, struct procmap_query *query, void *id, size_t size)
{
	*query = QUERY(.query_addr = addr, .build_id_addr = (uintptr_t)id,
		       .build_id_size = size);
	return procmap_query(fd, query);
}

bool same_fields(const struct maps_line *line, const struct procmap_query *query)
{
	return query->vma_start == line->start && query->vma_end == line->end &&
	       query->vma_flags == line->flags && query->vma_offset == line->offset &&
	       query->inode == line->inode && query->dev_major == line->dev_major &&
	       query->dev_minor == line->dev_minor;
}

enum scene_file { NO_FILE, ELF_FILE, READONLY_ELF_FILE, EMPTY_FILE, NR_SCENE_FILES };

static const struct {
	int prot;
	int flags;		/* of mmap(2) */
	enum scene_file file;
	uint64_t offset;
} scene[NR_MAPPINGS] = {
	[PRIVATE_NONE] = { PROT_NONE, MAP_PRIVATE, NO_FILE, 0 },
	[PRIVATE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, NO_FILE, 0 },
	[PRIVATE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, NO_FILE, 0 },
	/* The kernel maps a file of its own, which is no ELF file. */
	[SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, NO_FILE, 0 },
	[FILE_NONE] = { PROT_NONE, MAP_PRIVATE, ELF_FILE, 0 },
	[FILE_R] = { PROT_READ, MAP_PRIVATE, ELF_FILE, 0 },
	/* The offset has more than 32 bits. */
	[FILE_RW] = { PROT_READ | PROT_WRITE, MAP_PRIVATE, ELF_FILE, 0x1fedcb0000ull },
	[PRIVATE_R] = { PROT_READ, MAP_PRIVATE, NO_FILE, 0 },
	[FILE_RX] = { PROT_READ | PROT_EXEC, MAP_PRIVATE, ELF_FILE, 0x20000 },
	[FILE_SHARED_RW] = { PROT_READ | PROT_WRITE, MAP_SHARED, ELF_FILE, 0x30000 },
	[FILE_SHARED_RX] = { PROT_READ | PROT_EXEC, MAP_SHARED, ELF_FILE, 0 },
	/* The kernel clears VM_SHARED here, but the text shows an s. */
	[FILE_READONLY_SHARED] = { PROT_READ, MAP_SHARED, READONLY_ELF_FILE, 0 },
	[OTHER_FILE] = { PROT_READ, MAP_PRIVATE, EMPTY_FILE, 0 },
};

const uint8_t scene_id[BUILD_ID_SIZE] = "\x01\x23\x45\x67\x89 a build ID";

uint64_t start_of(unsigned int mapping)
{
	return addr_of(mapping * 2 * SCENE_PAGES);
}

uint64_t end_of(unsigned int mapping)
{
	return start_of(mapping) + SCENE_PAGES * page_size();
}

bool has_scene_id(unsigned int mapping)
{
	return scene[mapping].file == ELF_FILE || scene[mapping].file == READONLY_ELF_FILE;
}

bool map_scene(void)
{
	const int elf = make_elf("scene", scene_id);
	int fds[NR_SCENE_FILES] = {
		[NO_FILE] = -1,
		[ELF_FILE] = elf,
		[EMPTY_FILE] = memfd_create("empty", MFD_CLOEXEC),
	};
	char path[64];
	unsigned int i;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", elf);
	fds[READONLY_ELF_FILE] = open(path, O_RDONLY | O_CLOEXEC);
	for (i = 0; i < NR_MAPPINGS; i++) {
		void *const addr = (void *)(uintptr_t)start_of(i);

		if (mmap64(addr, SCENE_PAGES * page_size(), scene[i].prot, scene[i].flags |
			   MAP_FIXED_NOREPLACE | (scene[i].file ? 0 : MAP_ANONYMOUS),
			   fds[scene[i].file], scene[i].offset) != addr)
			return false;
	}
	/* Where no page has been touched, one would have to be read for a build ID. */
	*(char *)(uintptr_t)start_of(SHARED_RW) = 0;
	return true;
}

void *map_pages(size_t size)
{
	void *const addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		abort();
	return addr;
}

void *map_to_page_end(size_t size, int prot)
{
	const size_t bytes = ((size ?: 1) + page_size() - 1) & -page_size();
	uint8_t *const pages = map_pages(bytes + page_size());

	if (mprotect(pages + bytes, page_size(), PROT_NONE) ||
	    mprotect(pages, bytes, prot))
		abort();
	return pages + bytes - size;
}

bool is_filled(const void *bytes, size_t size, uint8_t with)
{
	const uint8_t *const first = bytes;

	return !size || (*first == with && !memcmp(first, first + 1, size - 1));
}

void *map_twice(const void **read_only)
{
	const int fd = memfd_create("twice", MFD_CLOEXEC);
	void *addr;

	if (ftruncate(fd, page_size()))
		abort();
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*read_only = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
	return addr;
}

bool read_file(const char *path, char *value, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t len = read(fd, value, size - 1);

	close(fd);
	if (len >= 0)
		value[len] = '\0';
	return len >= 0;
}

bool write_file(const char *path, const char *value)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool written = write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	close(fd);
	return written;
}

/* Also if /tmp is a link. */
bool make_directory(char path[64])
{
	char name[] = "/tmp/procmap.XXXXXX";

	return mkdtemp(name) && !chdir(name) && getcwd(path, 64);
}

bool remove_directory(const char *path)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -r %s", path);
	return !chdir("/") && !system(command);
}

/* The process moves down with the path, which may become longer than what open(2) takes. */
int make_long_path(char directory[64], char *path, size_t length)
{
	char name[NAME_MAX + 1] = "";

	if (!make_directory(directory))
		return -1;
	strcpy(path, directory);
	memset(name, 'n', NAME_MAX - 55);
	while (length - strlen(path) > NAME_MAX + 1) {
		strcat(strcat(path, "/"), name);
		if (mkdir(name, 0700) || chdir(name))
			return -1;
	}
	snprintf(name, sizeof(name), "%0*d", (int)(length - strlen(path) - 1), 0);
	strcat(strcat(path, "/"), name);
	return open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
}

struct elf_file elf_with_id(const uint8_t id[BUILD_ID_SIZE])
{
	const uint16_t one = 1;
	struct elf_file elf = {
		.ehdr.e_ident = {
			ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			*(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT,
		},
		.ehdr.e_type = ET_DYN,
		.ehdr.e_version = EV_CURRENT,
		.ehdr.e_phoff = offsetof(struct elf_file, phdrs),
		.ehdr.e_ehsize = sizeof(Elf64_Ehdr),
		.ehdr.e_phentsize = sizeof(Elf64_Phdr),
		.ehdr.e_phnum = ARRAY_SIZE(elf.phdrs),
		.notes[0].nhdr.n_type = NT_GNU_ABI_TAG,
		.notes[1].nhdr.n_type = NT_GNU_BUILD_ID,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(elf.notes); i++) {
		elf.phdrs[i].p_type = PT_NOTE;
		elf.phdrs[i].p_offset = offsetof(struct elf_file, notes[i]);
		elf.phdrs[i].p_filesz = sizeof(elf.notes[i]);
		elf.phdrs[i].p_align = 4;
		elf.notes[i].nhdr.n_namesz = sizeof("GNU");
		elf.notes[i].nhdr.n_descsz = BUILD_ID_SIZE;
		memcpy(elf.notes[i].name, "GNU", sizeof("GNU"));
		memcpy(elf.notes[i].id, id, BUILD_ID_SIZE);
	}
	return elf;
}

/* A page of which only a part was written may not be up to date until a page fault. */
bool write_all(int fd, const void *bytes, size_t size)
{
	void *addr;

	if (ftruncate(fd, 0) || pwrite(fd, bytes, size, 0) != (ssize_t)size)
		return false;
	addr = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	return !size || (addr != MAP_FAILED && !munmap(addr, size));
}

bool write_elf(int fd, const uint8_t id[BUILD_ID_SIZE])
{
	const struct elf_file elf = elf_with_id(id);

	return write_all(fd, &elf, sizeof(elf));
}

int make_elf(const char *name, const uint8_t id[BUILD_ID_SIZE])
{
	const int fd = memfd_create(name, MFD_CLOEXEC);

	return write_elf(fd, id) ? fd : -1;
}

/* By a mapping that nobody has touched. */
int resident_pages(int fd)
{
	const size_t size = lseek(fd, 0, SEEK_END);
	const size_t pages = (size + page_size() - 1) / page_size();
	unsigned char resident[pages + 1];
	int sum = 0;
	void *addr;
	size_t i;

	if (!pages)
		return 0;
	addr = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (addr == MAP_FAILED || mincore(addr, size, resident))
		return -1;
	munmap(addr, size);
	for (i = 0; i < pages; i++)
		sum += resident[i] & 1;
	return sum;
}

bool evict_file(int fd)
{
	return !fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) &&
	       !resident_pages(fd);
}

const char *mount_scratch(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", SCRATCH, "tmpfs", 0, NULL))
		return errno == EPERM ? "only root can mount a file system" :
					"cannot mount a tmpfs, CONFIG_TMPFS";
	return NULL;
}

bool run_in_shell(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "PATH=$PATH:/usr/sbin:/sbin; (%s) >/dev/null 2>&1",
		 command);
	return !system(line);
}

const char *mount_scratch_ext4(void)
{
	const char *const missing = mount_scratch();

	if (missing)
		return missing;
	if (mkdir(SCRATCH_DISK, 0700) ||
	    !run_in_shell("mkfs.ext4 -q -O ^has_journal " SCRATCH_IMAGE " 8M"))
		return "mkfs cannot be run";
	return run_in_shell("mount -o loop " SCRATCH_IMAGE " " SCRATCH_DISK) ?
	       NULL : "cannot mount its file system";
}

bool start_child(struct child *child, int (*run)(int control, void *arg), void *arg)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return false;
	child->pid = fork();
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		_exit(run(ends[1], arg));
	}
	close(ends[1]);
	child->control = ends[0];
	return child->pid > 0;
}

int end_of_child(struct child *child)
{
	int status;

	if (waitpid(child->pid, &status, 0) != child->pid)
		return -1;
	close(child->control);
	child->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void stop_child(struct child *child)
{
	if (child->pid <= 0)
		return;
	kill(child->pid, SIGKILL);
	end_of_child(child);
}

bool notify(int control)
{
	return send(control, "", 1, MSG_NOSIGNAL) == 1;
}

bool await(int control)
{
	char byte;

	return read(control, &byte, 1) == 1;
}

int keep_still(int control, void *arg)
{
	(void)arg;
	await(control);
	return 0;
}

int keep_scene(int control, void *arg)
{
	return map_scene() && notify(control) ? keep_still(control, arg) : 1;
}

/* Only the new program echoes, so an echo shows that it has replaced the address space. */
int keep_scene_and_execute(int control, void *arg)
{
	if (keep_scene(control, arg) || dup2(control, STDIN_FILENO) < 0 ||
	    dup2(control, STDOUT_FILENO) < 0)
		return 1;
	execlp("cat", "cat", NULL);
	return 1;
}

int open_maps_of_exited(void)
{
	struct child child;
	int fd;

	if (!start_child(&child, keep_still, NULL))
		return -1;
	fd = open_maps(child.pid);
	stop_child(&child);
	return fd;
}

const char *open_userfaultfd(int *uffd, uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };

	*uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (*uffd < 0)
		return "no userfaultfd, CONFIG_USERFAULTFD";
	return ioctl(*uffd, UFFDIO_API, &api) ? "userfaultfd lacks a feature" : NULL;
}

static bool watch_page(int uffd, void *page, uint64_t mode)
{
	struct uffdio_register arg = {
		.range.start = (uintptr_t)page,
		.range.len = page_size(),
		.mode = mode,
	};

	return !ioctl(uffd, UFFDIO_REGISTER, &arg);
}

bool watch_missing_page(int uffd, void *page)
{
	return watch_page(uffd, page, UFFDIO_REGISTER_MODE_MISSING);
}

static bool protect_page(int uffd, void *page, bool protect)
{
	struct uffdio_writeprotect arg = {
		.range.start = (uintptr_t)page,
		.range.len = page_size(),
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &arg);
}

bool give_page(int uffd, void *page, const void *content)
{
	struct uffdio_copy arg = {
		.dst = (uintptr_t)page,
		.src = (uintptr_t)content,
		.len = page_size(),
	};

	return !ioctl(uffd, UFFDIO_COPY, &arg);
}

/* Neighbours differ, so they do not merge before it hears. */
static int keep_blocked_pages(int control, void *arg)
{
	const int fd = open(BLOCKED_FILE, O_RDONLY | O_CLOEXEC);
	unsigned int i;

	(void)arg;
	for (i = 0; i < BLOCKED_PAGES; i++)
		if (!map_area(i, 1, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE, fd))
			return 1;
	close(fd);
	while (notify(control) && await(control))
		if (mprotect(page_at(10), 150 * page_size(), PROT_READ))
			return 1;
	return 0;
}

const char *start_blocked_target(struct child *target, struct blocked_call *call,
				 unsigned int nr_pages)
{
	const char *const missing = mount_scratch() ?:
		open_userfaultfd(&call->uffd,
				 call->at_write ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0);
	int file;

	if (missing)
		return missing;
	file = open(BLOCKED_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	if (!write_elf(file, scene_id) || close(file) ||
	    !start_child(target, keep_blocked_pages, NULL) || !await(target->control))
		abort();
	call->fd = open_maps(target->pid);
	call->arg = map_pages(nr_pages * page_size());
	/* Only a page that is in memory can be protected from writing. */
	memset(call->arg, 0, nr_pages * page_size());
	return NULL;
}

static void *make_call(void *arg)
{
	struct blocked_call *const call = arg;

	call->ret = call_ioctl(call->fd, call->command, call->arg);
	return NULL;
}

bool start_blocked_call(struct blocked_call *call)
{
	void *const page = call->arg + call->page * page_size();
	struct uffd_msg message;

	call->content = map_pages(page_size());
	memcpy(call->content, page, page_size());
	if (call->at_write ?
	    !watch_page(call->uffd, page, UFFDIO_REGISTER_MODE_WP) ||
	    !protect_page(call->uffd, page, true) :
	    !watch_missing_page(call->uffd, page) ||
	    madvise(page, page_size(), MADV_DONTNEED))
		return false;
	return !pthread_create(&call->thread, NULL, make_call, call) &&
	       read(call->uffd, &message, sizeof(message)) == sizeof(message) &&
	       message.event == UFFD_EVENT_PAGEFAULT;
}

bool finish_blocked_call(struct blocked_call *call)
{
	void *const page = call->arg + call->page * page_size();

	return (call->at_write ? protect_page(call->uffd, page, false) :
				 give_page(call->uffd, page, call->content)) &&
	       !pthread_join(call->thread, NULL);
}
