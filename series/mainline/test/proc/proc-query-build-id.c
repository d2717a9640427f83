// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a query for a build ID does not read from sockets, nor from a FUSE server:
 * one that never answers would block it, and no signal would end it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kselftest_harness.h"

#define MOUNT		"/tmp"
#define NODE		2	/* of the one file */
#define SIZE		4096
#define WAIT_MS		3000

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

/* Query in a child. Returns its status, or -1 if the query waited. */
static int query_in_child(struct __test_metadata *_metadata, void *addr, pid_t server)
{
	int alive[2], status;
	bool returned;
	pid_t pid;

	ASSERT_EQ(0, pipe(alive));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(alive[0]);
		_exit(query_build_id(addr));
	}
	close(alive[1]);
	returned = is_ready(alive[0]);
	if (!returned) {
		TH_LOG("the query waits");
		kill(pid, SIGKILL);
		if (!is_ready(alive[0]))
			TH_LOG("SIGKILL does not end it");
		if (server)
			kill(server, SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	close(alive[0]);
	return returned ? status : -1;
}

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

/* Answer all requests but reads. */
static void serve(int device)
{
	static struct request request;
	struct reply reply;
	int size;

	while (read(device, &request, sizeof(request)) > 0) {
		if (request.header.opcode == FUSE_READ)
			continue;
		memset(&reply, 0, sizeof(reply));
		size = answer(&request, &reply);
		reply.header.unique = request.header.unique;
		reply.header.error = size < 0 ? size : 0;
		reply.header.len = sizeof(reply.header) + (size < 0 ? 0 : size);
		if (write(device, &reply, reply.header.len) < 0 && errno != ENOENT)
			break;
	}
}

FIXTURE(fuse) {
	pid_t server;
};

FIXTURE_SETUP(fuse)
{
	char options[64];
	int device;

	if (unshare(CLONE_NEWNS))
		SKIP(return, "not root");
	ASSERT_EQ(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		SKIP(return, "no FUSE");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("fuse", MOUNT, "fuse", 0, options))
		SKIP(return, "FUSE cannot be mounted");
	self->server = fork();
	ASSERT_LE(0, self->server);
	if (!self->server) {
		serve(device);
		_exit(0);
	}
	close(device);
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

	ASSERT_LE(0, fd);
	addr = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, addr);
	EXPECT_EQ(0, query_in_child(_metadata, addr, self->server));
}

static const char message[] = "what one end of a connection sends, the other one receives";

FIXTURE(connection) {
	int ends[2];
};

FIXTURE_SETUP(connection)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM, 0);

	ASSERT_LE(0, listener);
	ASSERT_EQ(0, bind(listener, (struct sockaddr *)&address, size));
	ASSERT_EQ(0, getsockname(listener, (struct sockaddr *)&address, &size));
	ASSERT_EQ(0, listen(listener, 1));
	self->ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	ASSERT_EQ(0, connect(self->ends[0], (struct sockaddr *)&address, size));
	self->ends[1] = accept(listener, NULL, NULL);
	ASSERT_LE(0, self->ends[1]);
	close(listener);
}

FIXTURE_TEARDOWN(connection)
{
	close(self->ends[0]);
	close(self->ends[1]);
}

TEST_F(connection, query_takes_no_data)
{
	char received[sizeof(message)] = "";
	void *addr;

	ASSERT_EQ(sizeof(message), write(self->ends[0], message, sizeof(message)));
	addr = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, self->ends[1], 0);
	if (addr == MAP_FAILED)
		SKIP(return, "TCP sockets cannot be mapped");
	EXPECT_EQ(0, query_build_id(addr));
	EXPECT_EQ(sizeof(message), recv(self->ends[1], received, sizeof(received), 0));
	EXPECT_STREQ(message, received);
}

TEST(query_does_not_wait_for_a_packet)
{
	const struct tpacket_req ring = {
		.tp_block_size = getpagesize(),
		.tp_block_nr = 1,
		.tp_frame_size = getpagesize(),
		.tp_frame_nr = 1,
	};
	const int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_LOOPBACK));
	void *addr;

	if (fd < 0)
		SKIP(return, "not root, or no packet sockets");
	ASSERT_EQ(0, setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)));
	addr = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, addr);
	EXPECT_EQ(0, query_in_child(_metadata, addr, 0));
}

TEST_HARNESS_MAIN
