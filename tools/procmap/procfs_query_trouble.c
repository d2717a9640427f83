// SPDX-License-Identifier: GPL-2.0
/* procfs_query: messages about processes that cannot be inspected. */
#include "procfs_query.h"

#include <linux/capability.h>
#include <unistd.h>

static bool has_capability(unsigned int nr)
{
	char *const status = read_proc(own_pid(), "status");
	const char *const line = status ? strstr(status, "\nCapEff:\t") : NULL;
	uint64_t effective = 0;

	if (line)
		sscanf(line, "\nCapEff:\t%" SCNx64, &effective);
	free(status);
	return effective >> nr & 1;
}

static bool is_in_user_namespace(void)
{
	char *const map = read_proc(own_pid(), "uid_map");
	unsigned int inside, outside, nr;
	bool is_initial;

	is_initial = map && sscanf(map, "%u %u %u", &inside, &outside, &nr) == 3 &&
		     !inside && !outside && nr == UINT32_MAX;
	free(map);
	return !is_initial;
}

/* Return the reason why root may not inspect a process, and the way out. */
static const char *why_denied(void)
{
	if (!has_capability(CAP_SYS_PTRACE))
		return "root needs CAP_SYS_PTRACE for it: add that";
	if (is_in_user_namespace())
		return "it is not in this user namespace: run outside of it";
	return "a security module forbids it: see /sys/kernel/security/lsm";
}

void report_skipped(size_t nr)
{
	if (nr)
		warnx("skipped %zu process%s without permission: %s", nr,
		      nr == 1 ? "" : "es",
		      geteuid() ? "run as root" : why_denied());
}

/* Exit with one line that names the error and what the user can do. */
void report_trouble(const struct options *options, int err)
{
	const pid_t pid = options->pid;
	char *comm;

	if (options->maps_file && (err == -EBADMSG || err == -EINVAL))
		fail("%s: the text cannot be parsed: give a copy of /proc/PID/maps",
		     options->maps_file);
	fail_without_proc(err);
	switch (-err) {
	case EACCES:
	case EPERM:
		fail("no permission to inspect process %d: %s", pid,
		     geteuid() ? "run as its user, or as root" : why_denied());
	case ESRCH:
		comm = read_proc(pid, "comm");
		if (!comm)
			fail("there is no process %d: see ps(1)", pid);
		fail("process %d has no mappings: it exited, or is a kernel thread",
		     pid);
	case ESTALE:
		fail("process %d executes one program after the other: stop it first",
		     pid);
	case ENOTTY:
		fail("the kernel lacks the ioctl: leave out -Q, -S and --bench");
	case EBADMSG:
		fail("/proc/%d/maps: the text cannot be parsed: use -Q", pid);
	case EPROTO:
		fail("/proc/%d/maps: the ioctl returned an invalid mapping: use -T",
		     pid);
	case ENOMEM:
		fail("out of memory");
	default:
		fail("/proc/%d/maps: %s", pid, strerror(-err));
	}
}
