// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a query for a build ID takes nothing out of a mapped socket.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "kselftest_harness.h"

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
	char received[sizeof(message)] = "", build_id[20];
	struct procmap_query query = {
		.size = sizeof(query),
		.build_id_addr = (unsigned long)build_id,
		.build_id_size = sizeof(build_id),
	};
	const int maps = open("/proc/self/maps", O_RDONLY);
	void *addr;

	ASSERT_EQ(sizeof(message), write(self->ends[0], message, sizeof(message)));
	addr = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, self->ends[1], 0);
	if (addr == MAP_FAILED)
		SKIP(return, "TCP sockets cannot be mapped");
	query.query_addr = (unsigned long)addr;
	ASSERT_EQ(0, ioctl(maps, PROCMAP_QUERY, &query));
	EXPECT_EQ(0, query.build_id_size);

	EXPECT_EQ(sizeof(message), recv(self->ends[1], received, sizeof(received), 0));
	EXPECT_STREQ(message, received);
}

TEST_HARNESS_MAIN
