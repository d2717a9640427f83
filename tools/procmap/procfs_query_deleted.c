// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: list processes that still map files that were deleted or replaced,
 * as after an upgrade of a library.
 */
#include "procfs_query.h"

#include <ctype.h>
#include <fcntl.h>
#include <pwd.h>
#include <search.h>
#include <sys/stat.h>

/* Containers are named by so many hexadecimal digits, and shown by the first. */
#define CONTAINER_ID_LEN	64
#define CONTAINER_ID_SHOWN	12

/* The hexadecimal digits in the name of a System V shared memory segment. */
#define SYSV_KEY_LEN		8

/* Columns of the table. */
#define USER_WIDTH		8
#define GROUP_WIDTH		20

/**
 * struct root - the root directory of a process, below which names are looked up
 * @mount: the ID of its mount, which is in one mount namespace only.
 * @inode: its inode.
 */
struct root {
	uint64_t mount;
	uint64_t inode;
};

/**
 * struct file - a mapped file, by its name in processes with the same root
 * @root: the root directory of these processes.
 * @first: the first mapping; its name is a copy that the file owns.
 * @last_walk: the last walk that has come across it.
 * @is_known: @is_deleted is known.
 * @is_deleted: the file was deleted or replaced.
 */
struct file {
	struct root root;
	struct procmap_mapping first;
	size_t last_walk;
	bool is_known;
	bool is_deleted;
};

/**
 * struct deleted - the mapped files of all processes so far
 * @files: a tsearch(3) tree.
 * @walks: the number of walks over the mappings of a process.
 * @has_headings: the line above the first process has been printed.
 */
static struct deleted {
	void *files;
	size_t walks;
	bool has_headings;
} deleted;

/**
 * struct process - a process that is being looked at
 * @root: its root directory.
 * @files: its files that are not known to be there, each once.
 * @nr: the number of these.
 * @room: the number that @files has room for.
 */
struct process {
	struct root root;
	struct file **files;
	size_t nr;
	size_t room;
};

static int by_file(const void *a, const void *b)
{
	const struct file *const x = a;
	const struct file *const y = b;
	const int order = by_inode(&x->first, &y->first);

	if (order)
		return order;
	if (x->root.mount != y->root.mount)
		return x->root.mount < y->root.mount ? -1 : 1;
	if (x->root.inode != y->root.inode)
		return x->root.inode < y->root.inode ? -1 : 1;
	return strcmp(x->first.name, y->first.name);
}

static struct file *file_of(struct process *process,
			    const struct procmap_mapping *vma)
{
	struct file key = { .root = process->root, .first = *vma };
	struct file **found, *new;

	found = tfind(&key, &deleted.files, by_file);
	if (found)
		return *found;
	new = need(malloc(sizeof(*new)));
	*new = key;
	new->first.name = need(strdup(vma->name));
	need(tsearch(new, &deleted.files, by_file));
	return new;
}

static bool begins_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/*
 * The kernel keeps some memory in files which never were in a directory. They look
 * deleted, but no restart brings them back.
 */
static bool never_had_path(const char *name)
{
	static const char *const names[] = {
		"/[aio]", "/anon_hugepage", "/dev/zero", "/drm mm object",
		"/i915", "/secretmem",
	};
	static const char sysv[] = "/SYSV";
	size_t i;

	if (begins_with(name, "/memfd:") || begins_with(name, "/dmabuf:"))
		return true;
	if (begins_with(name, sysv)) {
		name += strlen(sysv);
		return strspn(name, "0123456789abcdef") == SYSV_KEY_LEN &&
		       !strcmp(name + SYSV_KEY_LEN, DELETED);
	}
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (begins_with(name, names[i]))
			return !strcmp(name + strlen(names[i]), DELETED);
	}
	return false;
}

static void begin(void *context)
{
	struct process *const process = context;

	deleted.walks++;
	process->nr = 0;
}

static bool visit_file(void *context, const struct procmap_mapping *vma)
{
	struct process *const process = context;
	struct file *const file = file_of(process, vma);

	if (file->last_walk == deleted.walks)
		return false;
	file->last_walk = deleted.walks;
	if (!file->is_known && never_had_path(vma->name))
		file->is_known = true;
	if (file->is_known && !file->is_deleted)
		return false;
	process->files = room_for_one(process->files, process->nr, &process->room,
				      sizeof(*process->files));
	process->files[process->nr++] = file;
	return !file->is_known;
}

static void learn_file(void *context, const struct procmap_mapping *vma)
{
	struct file *const file = file_of(context, vma);

	file->is_known = true;
	file->is_deleted = vma->flags & PROCMAP_DELETED;
}

/* If the root is unknown, nothing is known from other processes. */
static struct root root_of(pid_t pid)
{
	char path[sizeof("/proc//root") + 3 * sizeof(pid)];
	struct statx root;

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_MNT_ID, &root) ||
	    ~root.stx_mask & (STATX_INO | STATX_MNT_ID))
		return (struct root) { .inode = pid };
	return (struct root) { .mount = root.stx_mnt_id, .inode = root.stx_ino };
}

/**
 * struct owner - whom a process belongs to
 * @uid: the user.
 * @user: the name of the user, or NULL.
 * @unit: the systemd unit, or NULL.
 * @container: the container, or NULL.
 * @program: the program that it runs, or NULL.
 */
struct owner {
	uid_t uid;
	char *user;
	char *unit;
	char *container;
	char *program;
};

/* Returns whether the process is still there. */
static bool find_user(struct owner *owner, pid_t pid)
{
	const struct passwd *entry;

	if (!find_uid(pid, &owner->uid))
		return false;
	errno = 0;
	entry = getpwuid(owner->uid);
	if (entry)
		owner->user = need(strdup(entry->pw_name));
	else
		fail_without_files(-errno);
	return true;
}

/* Units of these types have processes of their own; slices have not. */
static bool is_unit(const char *name)
{
	static const char *const types[] = {
		".service", ".scope", ".mount", ".socket", ".swap",
	};
	const char *const type = strrchr(name, '.');
	size_t i;

	for (i = 0; type && i < sizeof(types) / sizeof(*types); i++) {
		if (!strcmp(type, types[i]))
			return true;
	}
	return false;
}

/*
 * Find the container in the name of a cgroup, whose parent is given: ID,
 * docker-ID.scope, libpod-payload-ID, kubepods-podUID.slice:cri-containerd:ID,
 * lxc/NAME, lxc.payload.NAME or machine-NAME.scope. The monitor of a container
 * (conmon) is not in it. Returns NULL if there is none; the caller frees it.
 */
static char *container_of_cgroup(const char *name, const char *parent)
{
	static const char payload[] = "lxc.payload.", machine[] = "machine-";
	const char *const scope = strstr(name, ".scope");
	const size_t len = scope ? (size_t)(scope - name) : strlen(name);
	const char *id;

	if (!strcmp(parent, "lxc") || !strcmp(parent, "lxc.payload"))
		return need(strdup(name));
	if (begins_with(name, payload))
		return need(strdup(name + strlen(payload)));
	if (scope && begins_with(name, machine) &&
	    !begins_with(name, "machine-qemu"))
		return need(strndup(name + strlen(machine), len - strlen(machine)));
	if (len < CONTAINER_ID_LEN || strstr(name, "conmon"))
		return NULL;
	id = name + len - CONTAINER_ID_LEN;
	if (strspn(id, "0123456789abcdef") < CONTAINER_ID_LEN ||
	    (id > name && isalnum((unsigned char)id[-1])))
		return NULL;
	return need(strndup(id, CONTAINER_ID_LEN));
}

/* Find the innermost unit and container in the path of a cgroup. */
static void find_in_cgroup(struct owner *owner, char *path)
{
	const char *parent = "";
	char *name, *end;

	for (name = strtok_r(path, "/", &end); name;
	     name = strtok_r(NULL, "/", &end)) {
		char *const container = container_of_cgroup(name, parent);

		if (container) {
			free(owner->container);
			owner->container = container;
		}
		if (is_unit(name)) {
			free(owner->unit);
			owner->unit = need(strdup(name));
		}
		parent = name;
	}
}

/* Each line is ID:CONTROLLERS:PATH; with cgroup v2, there is only one. */
static void find_cgroup(struct owner *owner, pid_t pid)
{
	char *const text = read_proc(pid, "cgroup");
	char *line, *end;

	for (line = text ? strtok_r(text, "\n", &end) : NULL;
	     line && !owner->unit && !owner->container;
	     line = strtok_r(NULL, "\n", &end)) {
		char *const path = strstr(line, ":/");

		if (path)
			find_in_cgroup(owner, path + 1);
	}
	free(text);
}

static bool find_owner(struct owner *owner, pid_t pid)
{
	if (!find_user(owner, pid))
		return false;
	find_cgroup(owner, pid);
	owner->program = program_of(pid);
	return true;
}

static void free_owner(struct owner *owner)
{
	free(owner->user);
	free(owner->unit);
	free(owner->container);
	free(owner->program);
}

/* The name without what the kernel has appended; the caller frees it. */
static char *path_of(const struct file *file)
{
	char *const path = need(strdup(file->first.name));

	cut_deleted(path);
	return path;
}

static void json_string_or_null(struct json *json, const char *key,
				const char *string)
{
	if (string)
		json_string(json, key, string);
	else
		json_null(json, key);
}

static void json_row(FILE *out, pid_t pid, const struct owner *owner,
		     const struct file *file)
{
	struct json json = { .out = out, .first = true };
	char *const path = path_of(file);

	fputc('{', out);
	json_number(&json, "pid", pid);
	json_string_or_null(&json, "user", owner->user);
	json_number(&json, "uid", owner->uid);
	json_string_or_null(&json, "unit", owner->unit);
	json_string_or_null(&json, "container", owner->container);
	json_program(&json, owner->program);
	json_exact(&json, "file", "file_hex", path, strlen(path));
	json_inode(&json, &file->first);
	json_end(&json);
	free(path);
}

static void print_headings(FILE *out)
{
	char line[80];

	snprintf(line, sizeof(line), "%7s %-*s %-*s program  file", "pid",
		 USER_WIDTH, "user", GROUP_WIDTH, "unit or container");
	print_coloured(out, BOLD, line);
	fputc('\n', out);
}

/* Returns the columns. A cgroup may have any name. */
static int print_group(FILE *out, const struct owner *owner)
{
	const char *const group = owner->container ? owner->container :
				  owner->unit ? owner->unit : "-";
	char *const shown = need(strdup(group));
	int width;

	if (group == owner->container && strlen(group) == CONTAINER_ID_LEN)
		shown[CONTAINER_ID_SHOWN] = '\0';
	width = strlen(shown);
	print_whole_name(out, shown);
	free(shown);
	return width + fprintf(out, "%*s ",
			       width < GROUP_WIDTH ? GROUP_WIDTH - width : 0, "");
}

static void print_row(FILE *out, pid_t pid, const struct owner *owner,
		      const struct file *file)
{
	char *const program = escape(owner->program ? owner->program : "?");
	char *const path = path_of(file);
	size_t column = fprintf(out, "%7d ", pid);
	size_t width;

	width = owner->user ? print_name(out, owner->user, column) :
			      (size_t)fprintf(out, "%u", owner->uid);
	column += width;
	column += fprintf(out, "%*s ",
			  width < USER_WIDTH ? (int)(USER_WIDTH - width) : 0, "");
	column += print_group(out, owner);
	/* Leave room for the path. */
	column += print_name(out, program, column + NAME_WIDTH_MIN + 2);
	column += fprintf(out, "  ");
	print_name(out, path, column);
	fputc('\n', out);
	free(path);
	free(program);
}

/* Print the deleted ones of the files. */
static int print_files(const struct options *options,
		       const struct process *process, FILE *out)
{
	struct owner owner = {};
	size_t i;

	if (!find_owner(&owner, options->pid))
		return -ESRCH;
	if (!given(options, OPT_JSON) && !deleted.has_headings) {
		print_headings(out);
		deleted.has_headings = true;
	}
	for (i = 0; i < process->nr; i++) {
		if (!process->files[i]->is_deleted)
			continue;
		if (given(options, OPT_JSON))
			json_row(out, options->pid, &owner, process->files[i]);
		else
			print_row(out, options->pid, &owner, process->files[i]);
	}
	free_owner(&owner);
	return 0;
}

static bool has_deleted(const struct process *process)
{
	size_t i;

	for (i = 0; i < process->nr; i++) {
		if (process->files[i]->is_deleted)
			return true;
	}
	return false;
}

static int print_deleted(const struct options *options, FILE *out)
{
	struct process process = { .root = root_of(options->pid) };
	const struct file_visitor visitor = {
		.want = PROCMAP_WANT_DELETED,
		.begin = begin,
		.visit = visit_file,
		.learn = learn_file,
		.context = &process,
	};
	int ret = visit_files(options, &visitor);

	if (!ret && !has_deleted(&process))
		ret = EXIT_FAILURE;
	else if (!ret)
		ret = print_files(options, &process, out);
	free(process.files);
	return ret;
}

const struct tool_option deleted_options[] = {
	{ .argp = { .name = "deleted", .group = GROUP_WORK,
		    .doc = "List the mapped files that were deleted or replaced" },
	  .bit = OPT_DELETED, .takes = OPT_PID | OPT_MANY | OPT_METHODS,
	  .flags = PROCMAP_FILE_BACKED, .work = print_deleted },
	{}
};
