// SPDX-License-Identifier: GPL-2.0
/*
 * Tables and libdwfl of elfutils, which finds out by itself which files a process has
 * mapped: dwfl_linux_proc_report(3). Both must say the same of every process that can
 * be read: which file is at an address, and how far it was moved in memory.
 *
 * If libdwfl says less, or something else, the text and the program headers decide,
 * and the comments below explain why: see &struct tally.
 */
#include "proc/procmap-query.h"

#include <elfutils/libdwfl.h>
#include <sys/mman.h>
#include <time.h>

#include <procmap_table.h>

#include "kselftest_harness.h"

#define PAGE	((uint64_t)4096)
#define SLOW	300	/* seconds, in an emulated guest */

/* No process has this ID, which is above PID_MAX_LIMIT: nothing can be read of it. */
#define NOBODY	(4 * 1024 * 1024 + 1)

/* Of a process that maps files all the time, nothing can be said. */
#define MAX_TRIES	20

#define DIFFERENCE_SIZE	512

/* The range in which the processes of the scene have their mappings. */
#define SCENE_PAGES	32

/**
 * struct tally - how much was compared, and how often libdwfl was no help
 * @processes: processes that were compared.
 * @modules: modules of libdwfl, which were found in the table.
 * @pages: executable pages of files, of which both named the same file.
 * @biases: those of which both said how far they are from the addresses in the file.
 * @unreadable: processes whose text cannot be read or is empty: others' processes, those
 *	that have exited, and kernel threads.
 * @unsettled: processes that have mapped files in each of MAX_TRIES tries.
 * @two_names: processes that libdwfl reports no module of: two mappings in a row have
 *	the same device and inode, but another name, as by hard links.
 * @without_elf: pages of modules whose file libdwfl does not open: it does so by the
 *	name of the text alone, and the file may be deleted, in another mount
 *	namespace, no regular file, have a newline in its name, or not be ELF. It
 *	keeps every file open, as long as there are descriptors.
 * @of_others: pages of modules for which libdwfl has opened another file, that has the
 *	name by now, or in the root directory of this process.
 * @elsewhere: pages that are not where they would be if the file was loaded where the
 *	module begins, as libdwfl presumes. Mappings of one file in a row are one
 *	module, even if the file was mapped twice.
 * @swallowed: executable mappings without a file that are in a module, as they are
 *	between two mappings of its file.
 */
struct tally {
	unsigned int processes;
	unsigned int modules;
	unsigned int pages;
	unsigned int biases;
	unsigned int unreadable;
	unsigned int unsettled;
	unsigned int two_names;
	unsigned int without_elf;
	unsigned int of_others;
	unsigned int elsewhere;
	unsigned int swallowed;
};

enum source { READ, FORKED, EVENTS };

/**
 * struct comparison - of one process
 * @pid: the process.
 * @asked: the process that the table is asked for.
 * @source: where the table has its mappings from.
 * @maps: the text.
 * @procmap: a handle on its mappings, with which files are opened.
 * @dwfl: what libdwfl reports.
 * @table: the table.
 * @time: the time of the questions.
 * @tally: what was compared.
 * @difference: the first difference, or empty.
 */
struct comparison {
	pid_t pid;
	pid_t asked;
	enum source source;
	struct maps maps;
	struct procmap *procmap;
	Dwfl *dwfl;
	struct procmap_table *table;
	uint64_t time;
	struct tally tally;
	char difference[DIFFERENCE_SIZE];
};

#define differ(comparison, ...) do {					\
	char *const to = (comparison)->difference;			\
									\
	if (!*to)							\
		snprintf(to, DIFFERENCE_SIZE, __VA_ARGS__);		\
} while (0)

static uint64_t now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int read_maps_of(pid_t pid, struct maps *maps)
{
	const int fd = open_maps(pid);
	int err;

	if (fd < 0)
		return fd;
	err = read_maps(fd, maps);
	close(fd);
	return err;
}

/* libdwfl takes what is mapped for a file by its name. */
static bool has_path(const struct maps_line *line)
{
	return line->name[0] == '/' && is_file(line);
}

static bool is_executable(const struct maps_line *line)
{
	return line->flags & PROCMAP_QUERY_VMA_EXECUTABLE;
}

/* Neither heaps and stacks nor the memory of other threads matter. */
static void keep_files_and_code(struct maps *maps)
{
	size_t i, nr = 0;

	for (i = 0; i < maps->nr; i++) {
		if (has_path(&maps->lines[i]) || is_executable(&maps->lines[i]))
			maps->lines[nr++] = maps->lines[i];
		else
			free(maps->lines[i].name);
	}
	maps->nr = nr;
}

static bool has_two_names(const struct maps *maps)
{
	const struct maps_line *last = NULL, *line;

	for (line = maps->lines; line < maps->lines + maps->nr; line++) {
		if (!has_path(line))
			continue;
		if (last && last->inode == line->inode &&
		    last->dev_major == line->dev_major &&
		    last->dev_minor == line->dev_minor && strcmp(last->name, line->name))
			return true;
		last = line;
	}
	return false;
}

/* Its own object of the kernel is one module, which libdwfl gives a name of its own. */
static bool is_vdso(const char *module)
{
	return !strncmp(module, "[vdso: ", 7);
}

static const char *name_of(Dwfl_Module *module)
{
	return dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}

/* Return the mapping of an address in the table, or NULL. */
static const struct procmap_mapping *find(struct comparison *comparison, uint64_t addr)
{
	const struct procmap_table_mapping *found;
	int err;

	err = procmap_table_find(comparison->table, comparison->asked, comparison->time,
				 addr, &found);
	if (err)
		differ(comparison, "%#llx: the table has nothing: %s",
		       (unsigned long long)addr, strerror(-err));
	return err ? NULL : found->mapping;
}

static const struct procmap_mapping *find_named(struct comparison *comparison,
						uint64_t addr, const char *name)
{
	const struct procmap_mapping *const found = find(comparison, addr);

	if (found && strcmp(found->name, name))
		differ(comparison, "%#llx: \"%s\" in the table, and not \"%s\"",
		       (unsigned long long)addr, found->name, name);
	return found;
}

/* A module begins with a mapping of its file, and ends with one. */
static int compare_module(Dwfl_Module *module, void **userdata, const char *name,
			  Dwarf_Addr start, void *context)
{
	struct comparison *const comparison = context;
	const struct procmap_mapping *found;
	Dwarf_Addr end;

	(void)userdata;
	dwfl_module_info(module, NULL, NULL, &end, NULL, NULL, NULL, NULL);
	if (is_vdso(name))
		name = "[vdso]";
	found = find_named(comparison, start, name);
	if (found && found->start != start)
		differ(comparison, "%s begins at %#llx in the table, and not at %#llx",
		       name, (unsigned long long)found->start, (unsigned long long)start);
	found = find_named(comparison, end - 1, name);
	if (found && found->end != end)
		differ(comparison, "%s ends at %#llx in the table, and not at %#llx",
		       name, (unsigned long long)found->end, (unsigned long long)end);
	comparison->tally.modules++;
	return DWARF_CB_OK;
}

/* Return whether libdwfl has opened the file that is mapped. */
static bool has_opened_it(const struct comparison *comparison, Dwfl_Module *module,
			  const struct procmap_mapping *mapping)
{
	struct stat opened, mapped;
	struct procmap_file *file;
	const char *path;
	int err;

	dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &path, NULL);
	if (procmap_open_file(comparison->procmap, mapping, NULL, &file))
		return false;
	err = fstat(procmap_file_fd(file), &mapped);
	procmap_close_file(file);
	return !err && path && !stat(path, &opened) &&
	       opened.st_dev == mapped.st_dev && opened.st_ino == mapped.st_ino;
}

/*
 * The first address of a page that is in a segment of the file, if that is what the line
 * has there with this bias; else 0. A page can begin with what precedes the segment in
 * the file, which has another bias there.
 */
static uint64_t in_segment(Elf *elf, uint64_t bias, const struct maps_line *line,
			   uint64_t page)
{
	size_t i, nr;

	if (elf_getphdrnum(elf, &nr))
		return 0;
	for (i = 0; i < nr; i++) {
		uint64_t start, addr;
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		start = bias + phdr.p_vaddr;
		addr = start > page ? start : page;
		if (addr - page < PAGE && addr - start < phdr.p_filesz &&
		    line->offset + (addr - line->start) == phdr.p_offset + (addr - start))
			return addr;
	}
	return 0;
}

/* Compare the bias of the module with that of an address of it. */
static void compare_bias(struct comparison *comparison, uint64_t bias, uint64_t addr,
			 const struct procmap_mapping *mapping)
{
	struct procmap_file *file = NULL;
	uint64_t address;
	int err;

	err = procmap_open_file(comparison->procmap, mapping, NULL, &file);
	if (!err)
		err = procmap_file_address(file, mapping->offset +
					   (addr - mapping->start), &address);
	procmap_close_file(file);
	if (err)
		differ(comparison, "%#llx in %s has no address: %s",
		       (unsigned long long)addr, mapping->name, strerror(-err));
	else if (addr - address != bias)
		differ(comparison, "%#llx in %s: bias %#llx by the table, and not %#llx",
		       (unsigned long long)addr, mapping->name,
		       (unsigned long long)(addr - address), (unsigned long long)bias);
	comparison->tally.biases++;
}

static void compare_pages(struct comparison *comparison, const struct maps_line *line,
			  Dwfl_Module *module)
{
	const char *const name = name_of(module);
	const struct procmap_mapping *found;
	uint64_t page, addr;
	bool is_it = false;
	GElf_Addr bias;
	Elf *elf;

	elf = dwfl_module_getelf(module, &bias);
	for (page = line->start; page < line->end; page += PAGE) {
		if (dwfl_addrmodule(comparison->dwfl, page) != module)
			differ(comparison, "%#llx: in another module than the page before",
			       (unsigned long long)page);
		found = find_named(comparison, page, name);
		if (!found)
			return;
		comparison->tally.pages++;
		if (page == line->start)
			is_it = elf && has_opened_it(comparison, module, found);
		addr = is_it ? in_segment(elf, bias, line, page) : 0;
		if (!elf)
			comparison->tally.without_elf++;
		else if (!is_it)
			comparison->tally.of_others++;
		else if (!addr)
			comparison->tally.elsewhere++;
		else
			compare_bias(comparison, bias, addr, found);
	}
}

static void compare_code(struct comparison *comparison, const struct maps_line *line)
{
	Dwfl_Module *const module = dwfl_addrmodule(comparison->dwfl, line->start);

	if (!has_path(line)) {
		find_named(comparison, line->start, line->name);
		comparison->tally.swallowed += module && !is_vdso(name_of(module));
	} else if (!module) {
		differ(comparison, "%#llx: %s is in no module",
		       (unsigned long long)line->start, line->name);
	} else if (strcmp(name_of(module), line->name)) {
		differ(comparison, "%#llx: %s is in the module %s",
		       (unsigned long long)line->start, line->name, name_of(module));
	} else {
		compare_pages(comparison, line, module);
	}
}

static void compare(struct comparison *comparison)
{
	const struct maps *const maps = &comparison->maps;
	size_t i;

	for (i = 0; i < maps->nr; i++)
		if (is_executable(&maps->lines[i]))
			compare_code(comparison, &maps->lines[i]);
	if (dwfl_getmodules(comparison->dwfl, compare_module, comparison, 0))
		differ(comparison, "dwfl_getmodules: %s", dwfl_errmsg(-1));
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
};

/* Let libdwfl report the modules. */
static void report_modules(struct comparison *comparison)
{
	int err;

	comparison->dwfl = dwfl_begin(&callbacks);
	err = dwfl_linux_proc_report(comparison->dwfl, comparison->pid);
	if (err)
		differ(comparison, "dwfl_linux_proc_report: %s",
		       err < 0 ? dwfl_errmsg(-1) : strerror(err));
	else if (dwfl_report_end(comparison->dwfl, NULL, NULL))
		differ(comparison, "dwfl_report_end: %s", dwfl_errmsg(-1));
}

static int report_event(struct comparison *comparison, const struct maps_line *line)
{
	const struct procmap_mmap event = {
		.size = sizeof(event),
		.addr = line->start,
		.len = line->end - line->start,
		.pgoff = line->offset,
		.ino = line->inode,
		.filename = *line->name ? line->name : "//anon",
		.maj = line->dev_major,
		.min = line->dev_minor,
		.prot = PROT_READ | (is_executable(line) ? PROT_EXEC : 0),
	};

	return procmap_table_mmap(comparison->table, comparison->pid, 1, &event);
}

/*
 * Make a table that reads the process when it is asked, or that has its lines as events;
 * or ask for a process that cannot be read, and that was forked from one that was.
 */
static void make_table(struct comparison *comparison)
{
	const struct procmap_table_options options = {
		.size = sizeof(options),
		.flags = comparison->source == EVENTS ? PROCMAP_TABLE_EVENTS_ONLY : 0,
		.reread = UINT64_MAX,
	};
	const struct procmap_table_mapping *found;
	const pid_t pid = comparison->pid;
	size_t i;
	int err;

	comparison->asked = pid;
	err = procmap_table_new(&options, &comparison->table);
	switch (comparison->source) {
	case READ:
		break;
	case FORKED:
		comparison->asked = NOBODY;
		/* Nothing is mapped at the address 0: all is read. */
		if (!err)
			err = procmap_table_find(comparison->table, pid, now(), 0, &found);
		if (err == -ENOENT)
			err = procmap_table_fork(comparison->table, NOBODY, NOBODY, pid,
						 now());
		break;
	case EVENTS:
		for (i = 0; i < comparison->maps.nr && !err; i++)
			err = report_event(comparison, &comparison->maps.lines[i]);
		break;
	}
	if (err)
		differ(comparison, "the table is not made: %s", strerror(-err));
	comparison->time = now();
}

static void compare_once(struct comparison *comparison)
{
	int err;

	if (has_two_names(&comparison->maps)) {
		comparison->tally.two_names++;
		return;
	}
	err = procmap_open_pid(comparison->pid, NULL, &comparison->procmap);
	if (err)
		differ(comparison, "procmap_open_pid: %s", strerror(-err));
	make_table(comparison);
	report_modules(comparison);
	if (!*comparison->difference) {
		compare(comparison);
		/* Executable mappings are read, and then all. */
		if (procmap_table_get_stats(comparison->table)->readings > 2)
			differ(comparison, "more was read than all");
		comparison->tally.processes++;
	}
	dwfl_end(comparison->dwfl);
	procmap_table_free(comparison->table);
	procmap_close(comparison->procmap);
}

static bool has_changed(const struct comparison *comparison)
{
	struct maps after;
	bool is_same;

	if (read_maps_of(comparison->pid, &after))
		return true;
	keep_files_and_code(&after);
	is_same = same_text(&comparison->maps, &after);
	free_maps(&after);
	return !is_same;
}

/* Compare what both say of a process, until it does not change meanwhile. */
static void compare_process(struct comparison *comparison, pid_t pid)
{
	const enum source source = comparison->source;
	bool is_settled = false;
	int tries;

	for (tries = 0; tries < MAX_TRIES && !is_settled; tries++) {
		*comparison = (struct comparison) { .pid = pid, .source = source };
		if (read_maps_of(pid, &comparison->maps) || !comparison->maps.nr) {
			comparison->tally.unreadable++;
			return;
		}
		keep_files_and_code(&comparison->maps);
		compare_once(comparison);
		is_settled = !has_changed(comparison);
		free_maps(&comparison->maps);
	}
	if (!is_settled)
		*comparison = (struct comparison) { .source = source,
						    .tally.unsettled = 1 };
}

static void add_tally(struct tally *sum, const struct tally *tally)
{
	unsigned int *const to = (unsigned int *)sum;
	const unsigned int *const from = (const unsigned int *)tally;
	size_t i;

	for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

/* Copy this program. */
static bool copy_program(const char *to)
{
	char command[256];

	snprintf(command, sizeof(command), "cp /proc/%d/exe '%s'", getpid(), to);
	return !system(command);
}

/* Map the first pages of a file as code. */
static bool map_code(const char *path, char *at, size_t nr)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const void *map;

	map = mmap(at, nr * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
	close(fd);
	return map == at;
}

static char *reserve(void)
{
	char *const at = mmap(NULL, SCENE_PAGES * PAGE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Map files that libdwfl does not know, or takes for something else. */
static int map_odd_files(int control, void *arg)
{
	char *const at = reserve();
	const char *const dir = arg;
	char path[64], other[80];
	FILE *file;

	/* One file, twice, and in between code that is of no file. */
	snprintf(path, sizeof(path), "%s/twice", dir);
	if (!at || !copy_program(path) || !map_code(path, at, 2) ||
	    mprotect(at + 3 * PAGE, PAGE, PROT_READ | PROT_EXEC) ||
	    !map_code(path, at + 5 * PAGE, 2))
		return 1;

	/* A deleted one, and one whose name is that of another file by now. */
	snprintf(path, sizeof(path), "%s/gone", dir);
	if (!copy_program(path) || !map_code(path, at + 8 * PAGE, 2) || unlink(path))
		return 1;
	snprintf(path, sizeof(path), "%s/replaced", dir);
	snprintf(other, sizeof(other), "%s (deleted)", path);
	if (!copy_program(path) || !map_code(path, at + 11 * PAGE, 2) || unlink(path) ||
	    !copy_program(other))
		return 1;

	/* One that is no ELF file, and one whose name is not that of the text. */
	snprintf(path, sizeof(path), "%s/text", dir);
	file = fopen(path, "w");
	if (!file || fputs("text\n", file) < 0 || fclose(file) ||
	    !map_code(path, at + 14 * PAGE, 1))
		return 1;
	snprintf(path, sizeof(path), "%s/new\nline", dir);
	if (!copy_program(path) || !map_code(path, at + 17 * PAGE, 2))
		return 1;
	return !notify(control) || await(control);
}

/* The same file by two names. */
static int map_links(int control, void *arg)
{
	char *const at = reserve();
	const char *const dir = arg;
	char path[64], other[64];

	snprintf(path, sizeof(path), "%s/one", dir);
	snprintf(other, sizeof(other), "%s/two", dir);
	if (!at || !copy_program(path) || link(path, other) || !map_code(path, at, 2) ||
	    !map_code(other, at + 3 * PAGE, 2))
		return 1;
	return !notify(control) || await(control);
}

/*
 * All processes of the machine, and two of our own.
 */
FIXTURE(machine)
{
	char dir[32];
	struct child odd;
	struct child links;
};

FIXTURE_VARIANT(machine)
{
	enum source source;
};

FIXTURE_VARIANT_ADD(machine, read) { .source = READ };
FIXTURE_VARIANT_ADD(machine, forked) { .source = FORKED };
FIXTURE_VARIANT_ADD(machine, events) { .source = EVENTS };

FIXTURE_SETUP(machine)
{
	strcpy(self->dir, "/tmp/dwfl-test-XXXXXX");
	ASSERT_TRUE(!!mkdtemp(self->dir));
	ASSERT_TRUE(start_child(&self->odd, map_odd_files, self->dir));
	ASSERT_TRUE(start_child(&self->links, map_links, self->dir));
	ASSERT_TRUE(await(self->odd.control));
	ASSERT_TRUE(await(self->links.control));
}

FIXTURE_TEARDOWN(machine)
{
	char command[64];

	stop_child(&self->odd);
	stop_child(&self->links);
	snprintf(command, sizeof(command), "rm -r %s", self->dir);
	EXPECT_EQ(0, system(command));
}

TEST_F_TIMEOUT(machine, has_the_modules_of_libdwfl, SLOW)
{
	struct comparison comparison = { .source = variant->source };
	struct tally all = { .processes = 0 };
	const struct dirent *entry;
	DIR *proc;

	proc = opendir("/proc");
	ASSERT_TRUE(!!proc);
	while ((entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);

		/* This process maps what libdwfl opens. */
		if (pid <= 0 || pid == getpid())
			continue;
		compare_process(&comparison, pid);
		EXPECT_STREQ("", comparison.difference)
			TH_LOG("process %d", pid);
		add_tally(&all, &comparison.tally);
	}
	closedir(proc);
	TH_LOG("%u processes compared, %u modules, %u pages of code, %u with a bias",
	       all.processes, all.modules, all.pages, all.biases);
	TH_LOG("processes not compared: %u not readable, %u not settled, %u with two names",
	       all.unreadable, all.unsettled, all.two_names);
	TH_LOG("pages without a bias: %u without ELF, %u of other files, %u elsewhere",
	       all.without_elf, all.of_others, all.elsewhere);
	TH_LOG("mappings swallowed by modules: %u", all.swallowed);
	EXPECT_LT(0, all.processes);
	EXPECT_LT(0, all.modules);
	EXPECT_LT(0, all.pages);
	EXPECT_LT(0, all.biases);
}

/* The files of map_odd_files() and map_links() are counted as such. */
TEST_F(machine, has_files_that_libdwfl_does_not_know)
{
	struct comparison comparison = { .source = variant->source };
	const struct tally *const tally = &comparison.tally;

	compare_process(&comparison, self->odd.pid);
	EXPECT_STREQ("", comparison.difference);
	EXPECT_EQ(1, tally->processes);
	EXPECT_LE(1, tally->swallowed);
	EXPECT_EQ(2, tally->elsewhere);
	EXPECT_EQ(2, tally->of_others);
	EXPECT_EQ(2 + 1 + 2, tally->without_elf);
	EXPECT_EQ(tally->pages,
		  tally->biases + tally->elsewhere + tally->of_others + tally->without_elf);

	compare_process(&comparison, self->links.pid);
	EXPECT_EQ(0, tally->processes);
	EXPECT_EQ(1, tally->two_names);
}

TEST_HARNESS_MAIN
