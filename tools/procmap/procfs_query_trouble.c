// SPDX-License-Identifier: GPL-2.0
/* procfs_query: messages about processes that cannot be inspected. */
#include "procfs_query_trouble.h"
#include "procfs.h"
#include "tool.h"

#include <unistd.h>

/* For root in a container, or under a security module, too. */
static const char *what_root_needs(void)
{
	return geteuid() ? "run as root" :
	"root needs CAP_SYS_PTRACE in its user namespace, and no security module that forbids it";
}

static void report_number(size_t nr, const char *lack, const char *reason)
{
	if (nr)
		warnx("skipped %zu process%s without %s: %s", nr, nr == 1 ? "" : "es", lack,
		      reason);
}

void report_skipped(size_t nr_denied, size_t nr_empty)
{
	report_number(nr_denied, "permission", what_root_needs());
	report_number(nr_empty, "mappings", "zombies and kernel threads have none");
}

bool report_if_gone(const struct options *options)
{
	if (!access(path_of_process(options->pid, "comm"), F_OK))
		return false;
	warnx("there is no process %d%s: see ps(1)", options->pid,
	      given(options, OPT_PROC) ? " that you may see there" : "");
	return true;
}

/* Return whether the lines that are complete within @size bytes can be parsed. */
static bool can_be_parsed(const char *text, size_t size)
{
	const char *const newline = memrchr(text, '\n', size);
	struct procmap *procmap;

	size = newline ? newline + 1 - text : 0;
	if (strspn(text, " \t\r\n") >= size)
		return true;
	if (procmap_open_text(text, size, NULL, &procmap))
		return false;
	procmap_close(procmap);
	return true;
}

/* The number of the first line that cannot be parsed. */
static size_t find_bad_line(const struct options *options)
{
	size_t good = 0, bad = options->text_len + 1, line = 1, i;

	while (bad - good > 1) {
		const size_t middle = good + (bad - good) / 2;

		if (can_be_parsed(options->text, middle))
			good = middle;
		else
			bad = middle;
	}
	for (i = 0; i < good; i++)
		line += options->text[i] == '\n';
	return line;
}

/* The same for --fd; errors that are not of the descriptor are left to the caller. */
static void report_trouble_of_fd(int fd, int err)
{
	fail_without_files(err);
	switch (-err) {
	case EBADF:
		fail("descriptor %d is not open for reading: open it, as with %d</proc/PID/maps",
		     fd, fd);
	case EINVAL:
	case EBADMSG:
		fail("descriptor %d is not of a maps file: open /proc/PID/maps or /proc/PID", fd);
	case EACCES:
	case EPERM:
		fail("descriptor %d: no permission to inspect the process: pass its maps file", fd);
	case ESRCH:
		fail("descriptor %d has no mappings, or not any more: open it again", fd);
	case ESTALE:
		fail("descriptor %d: its process executes programs in a row: stop it first", fd);
	case EPROTO:
		fail("descriptor %d: the ioctl returned an invalid mapping: use -T", fd);
	case ENOTTY:
	case ENOMEM:
		return;
	default:
		fail("descriptor %d: %s", fd, strerror(-err));
	}
}

/* Exit with one line that names the error and what the user can do. */
void report_trouble(const struct options *options, int err)
{
	const pid_t pid = options->pid;

	if (err == -EINVAL && options->maps_file)
		fail("%s: the file is empty: give a copy of /proc/PID/maps",
		     options->maps_file);
	if (err == -EBADMSG && options->maps_file)
		fail("%s:%zu: cannot be parsed, or is out of order: give a copy of /proc/PID/maps",
		     options->maps_file, find_bad_line(options));
	if (given(options, OPT_FD))
		report_trouble_of_fd(options->fd, err);
	else
		fail_without_proc(err);
	switch (-err) {
	case EACCES:
	case EPERM:
		fail("no permission to inspect process %d: %s", pid, what_root_needs());
	case ESRCH:
		if (report_if_gone(options))
			exit(EXIT_TROUBLE);
		fail("process %d has no mappings: it exited, or is a kernel thread",
		     pid);
	case ESTALE:
		fail("process %d executes one program after the other: stop it first",
		     pid);
	case ENOTTY:
		fail("the kernel lacks the ioctl: leave out -Q, -S and --bench");
	case EBADMSG:
		fail("%s/%d/maps: the text cannot be parsed: use -Q", proc_dir, pid);
	case EPROTO:
		fail("%s/%d/maps: the ioctl returned an invalid mapping: use -T",
		     proc_dir, pid);
	case ENOMEM:
		fail("out of memory");
	default:
		fail("%s/%d/maps: %s", proc_dir, pid, strerror(-err));
	}
}
