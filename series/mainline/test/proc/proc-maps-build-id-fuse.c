// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a query for a build ID does not read from a FUSE server: one that never
 * answers would block it, and no signal would end it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kselftest_harness.h"

#define MOUNT		"/tmp"
#define NODE		2	/* of the one file */
#define SIZE		4096
#define WAIT_MS		3000

struct request {
	struct fuse_in_header header;
	char arg[FUSE_MIN_READ_BUFFER];
};

struct reply {
	struct fuse_out_header header;
	union {
		struct fuse_init_out init;
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
	} arg;
};

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr) {
		.ino = node,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755,
		.size = node == FUSE_ROOT_ID ? 0 : SIZE,
		.nlink = 1,
	};
}

/* Returns the size of the answer, or -errno. */
static int answer(const struct request *request, struct reply *reply)
{
	switch (request->header.opcode) {
	case FUSE_INIT:
		reply->arg.init.major = FUSE_KERNEL_VERSION;
		reply->arg.init.minor = FUSE_KERNEL_MINOR_VERSION;
		reply->arg.init.max_write = SIZE;
		return sizeof(reply->arg.init);
	case FUSE_LOOKUP:
		reply->arg.entry.nodeid = NODE;
		reply->arg.entry.attr = attr_of(NODE);
		return sizeof(reply->arg.entry);
	case FUSE_GETATTR:
		reply->arg.attr.attr = attr_of(request->header.nodeid);
		return sizeof(reply->arg.attr);
	case FUSE_OPEN:
		reply->arg.open.open_flags = FOPEN_DIRECT_IO;
		return sizeof(reply->arg.open);
	default:
		return -ENOSYS;
	}
}

/* Answer all requests but reads, which are only reported. */
static void serve(int device, int report)
{
	static struct request request;
	struct reply reply;
	int size;

	while (read(device, &request, sizeof(request)) > 0) {
		if (request.header.opcode == FUSE_READ) {
			if (write(report, "r", 1) != 1)
				break;
			continue;
		}
		memset(&reply, 0, sizeof(reply));
		size = answer(&request, &reply);
		reply.header.unique = request.header.unique;
		reply.header.error = size < 0 ? size : 0;
		reply.header.len = sizeof(reply.header) + (size < 0 ? 0 : size);
		if (write(device, &reply, reply.header.len) < 0 && errno != ENOENT)
			break;
	}
}

/* Returns 0 if a query succeeds, and finds no build ID. */
static int query_build_id(void *addr)
{
	char build_id[20];
	struct procmap_query query = {
		.size = sizeof(query),
		.query_addr = (unsigned long)addr,
		.build_id_addr = (unsigned long)build_id,
		.build_id_size = sizeof(build_id),
	};
	const int maps = open("/proc/self/maps", O_RDONLY);

	return ioctl(maps, PROCMAP_QUERY, &query) || query.build_id_size;
}

/* Does the descriptor have input or its end, within the time? */
static bool is_ready(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, WAIT_MS) == 1;
}

FIXTURE(fuse) {
	pid_t server;
	int reads;	/* a byte for each read that the server has got */
};

FIXTURE_SETUP(fuse)
{
	char options[64];
	int device, pipes[2];

	ASSERT_EQ(0, unshare(CLONE_NEWNS));
	ASSERT_EQ(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		SKIP(return, "no FUSE");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	ASSERT_EQ(0, mount("fuse", MOUNT, "fuse", 0, options));
	ASSERT_EQ(0, pipe(pipes));
	self->server = fork();
	ASSERT_LE(0, self->server);
	if (!self->server) {
		serve(device, pipes[1]);
		_exit(0);
	}
	close(device);
	close(pipes[1]);
	self->reads = pipes[0];
}

/* Without its server, the file system answers everything with an error. */
FIXTURE_TEARDOWN(fuse)
{
	kill(self->server, SIGKILL);
	waitpid(self->server, NULL, 0);
	umount2(MOUNT, MNT_DETACH);
}

TEST_F(fuse, query_does_not_wait_for_the_server)
{
	const int fd = open(MOUNT "/file", O_RDONLY);
	void *addr;
	int alive[2];
	pid_t pid;
	int status;

	ASSERT_LE(0, fd);
	addr = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, addr);
	ASSERT_EQ(0, pipe(alive));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(alive[0]);
		_exit(query_build_id(addr));
	}
	close(alive[1]);
	EXPECT_TRUE(is_ready(alive[0])) {
		TH_LOG("the query waits");
		kill(pid, SIGKILL);
		EXPECT_TRUE(is_ready(alive[0]))
			TH_LOG("SIGKILL does not end it");
		kill(self->server, SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	kill(self->server, SIGKILL);
	waitpid(self->server, NULL, 0);
	EXPECT_EQ(0, read(self->reads, &status, 1))
		TH_LOG("the server was asked for the file");
}

TEST_HARNESS_MAIN
