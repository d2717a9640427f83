/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reader whose maps file io_uring closes while an ioctl on it runs. The reader
 * shares its files with nobody, so the ioctl has no reference of its own on the
 * file. io_uring closes it in task work, which must not run before the ioctl has
 * returned.
 */
#ifndef PROCMAP_URING_H
#define PROCMAP_URING_H

/* The <linux/types.h> in tools/ lacks it, and the next needs it. */
#include <linux/posix_types.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/mman.h>

#include "procmap-query.h"
#include "procmap-uffd.h"

/* A test program defines these two. */

/* Fill in the structure of a call on this process, which writes to @answer. */
static void prepare_call(struct __test_metadata *const _metadata, void *arg,
			 void *answer);
/* Make the call, and compare its answer with the truth. */
static bool is_right(int maps, void *arg);

/* The reader's memory has the same addresses. */
struct closing {
	struct child reader;
	int maps;		/* a file of the reader alone */
	int uffd;
	uint8_t *arg;		/* two pages that the reader lacks at first */
	uint8_t *answer;
};

struct ring {
	int fd;
	struct io_uring_params params;
	uint8_t *queues;
	struct io_uring_sqe *sqes;
};

/* Returns why there is no io_uring, or NULL. */
static const char *open_ring(struct ring *ring)
{
	const int prot = PROT_READ | PROT_WRITE;

	memset(&ring->params, 0, sizeof(ring->params));
	ring->fd = syscall(SYS_io_uring_setup, 2, &ring->params);
	if (ring->fd < 0)
		return "no io_uring, CONFIG_IO_URING";
	/* Both queues, of two and four entries, are in the first page. */
	ring->queues = mmap(NULL, page_size(), prot, MAP_SHARED, ring->fd,
			    IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, page_size(), prot, MAP_SHARED, ring->fd,
			  IORING_OFF_SQES);
	if (!(ring->params.features & IORING_FEAT_SINGLE_MMAP) ||
	    ring->queues == MAP_FAILED || ring->sqes == MAP_FAILED)
		return "io_uring has no queues in common";
	return NULL;
}

/* Let io_uring close a file as soon as @control can be read. */
static bool close_after_byte(const struct ring *ring, int control, int fd)
{
	const struct io_sqring_offsets *const off = &ring->params.sq_off;
	uint32_t *const array = (uint32_t *)(ring->queues + off->array);
	uint32_t *const tail = (uint32_t *)(ring->queues + off->tail);

	ring->sqes[0] = (struct io_uring_sqe) {
		.opcode = IORING_OP_POLL_ADD,
		.flags = IOSQE_IO_LINK,
		.fd = control,
		.poll32_events = POLLIN,
	};
	ring->sqes[1] = (struct io_uring_sqe) {
		.opcode = IORING_OP_CLOSE,
		.fd = fd,
	};
	array[0] = 0;
	array[1] = 1;
	*tail = 2;
	return syscall(SYS_io_uring_enter, ring->fd, 2, 0, 0, NULL, 0) == 2;
}

/* Were both done, the second without an error? */
static bool is_done(const struct ring *ring)
{
	const struct io_cqring_offsets *const off = &ring->params.cq_off;
	const struct io_uring_cqe *const cqes = (void *)(ring->queues +
							  off->cqes);

	return *(uint32_t *)(ring->queues + off->tail) == 2 &&
	       cqes[0].res == POLLIN && !cqes[1].res;
}

static int be_closing_reader(int control, void *arg)
{
	const struct closing *const closing = arg;
	const char *missing;
	struct ring ring;
	int uffd;

	missing = open_userfaultfd(&uffd, 0) ?: open_ring(&ring);
	if (write(control, &missing, sizeof(missing)) != sizeof(missing) ||
	    missing)
		return 1;
	if (madvise(closing->arg, 2 * page_size(), MADV_DONTNEED) ||
	    !watch_pages(uffd, closing->arg, 2 * page_size(),
			 UFFDIO_REGISTER_MODE_MISSING) ||
	    !close_after_byte(&ring, control, closing->maps) ||
	    !send_fd(control, uffd))
		return 2;
	if (!is_right(closing->maps, closing->arg))
		return 3;
	if (fcntl(closing->maps, F_GETFD) != -1 || !is_done(&ring))
		return 4;
	return 0;
}

/* Has the reader the maps file open? */
static bool is_open(const struct closing *closing)
{
	char path[64], name[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", closing->reader.pid,
		 closing->maps);
	return readlink(path, name, sizeof(name)) > 0;
}

FIXTURE(closing)
{
	struct closing closing;
};

FIXTURE_SETUP(closing)
{
	struct closing *const closing = &self->closing;
	const char *missing;

	closing->arg = mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(closing->arg != MAP_FAILED);
	closing->answer = closing->arg + page_size();
	prepare_call(_metadata, closing->arg, closing->answer);
	closing->maps = open_maps(0);
	ASSERT_LE(0, closing->maps);
	ASSERT_TRUE(start_child(&closing->reader, be_closing_reader, closing));
	close(closing->maps);

	ASSERT_EQ((ssize_t)sizeof(missing),
		  read(closing->reader.control, &missing, sizeof(missing)));
	if (missing)
		SKIP_SETUP(missing);
	closing->uffd = recv_fd(closing->reader.control);
	ASSERT_LE(0, closing->uffd);
}

FIXTURE_TEARDOWN(closing)
{
	stop_child(&self->closing.reader);
}

/*
 * The file is to be closed while the kernel waits for the structure; whether it
 * has been is seen while the kernel waits to write the answer.
 */
TEST_F(closing, file_is_open_until_the_ioctl_has_returned)
{
	const struct closing *const closing = &self->closing;
	const uintptr_t arg = (uintptr_t)closing->arg;
	uint64_t touched;

	ASSERT_EQ(arg, wait_for_touch(closing->uffd));
	/* The poll completes before this returns. */
	ASSERT_TRUE(notify(closing->reader.control));
	ASSERT_TRUE(give_page(closing->uffd, closing->arg, closing->arg));

	/* Task work wakes the reader, so it may have waited for both twice. */
	do {
		touched = wait_for_touch(closing->uffd);
	} while (touched == arg);
	ASSERT_EQ((uintptr_t)closing->answer, touched);
	EXPECT_TRUE(is_open(closing));

	ASSERT_TRUE(give_page(closing->uffd, closing->answer, closing->answer));
	EXPECT_EQ(0, end_of_child(&self->closing.reader));
}

#endif /* PROCMAP_URING_H */
