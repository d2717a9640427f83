/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reader that blocks in the middle of its call, since one of the pages that it
 * passed is behind userfaultfd. It may block forever, so it must hold nothing of
 * its target: neither a lock, nor the address space, nor a file.
 */
#ifndef PROCMAP_BLOCKED_H
#define PROCMAP_BLOCKED_H

#include <pthread.h>
#include <sys/mman.h>

#include "procmap-query.h"
#include "procmap-uffd.h"

/* A file of a file system that only the target uses. */
#define MAPPED_FILE	SCRATCH "/file"

struct blocked_call {
	int fd;			/* the target's maps file */
	unsigned int command;
	int full;		/* what the call returns if the target lives */
	uint8_t *pages;		/* the structure is in the first */
	uint8_t *copies;	/* of the pages, before the call */
	unsigned int page;	/* to block at */
	bool write;		/* block only on writing to it */
	int uffd;
	pthread_t thread;
	int ret;		/* what the call returned, or -errno */
};

/* More than any call needs. */
#define NR_PAGES	16

static const uint8_t build_id[20] = "the target's file";

/* A test program defines these three. */

/* Map the file in the target. */
static bool map_file(int fd);
/* Fill the pages with the structure, and set the command and the full result. */
static void prepare_call(struct __test_metadata *const _metadata,
			 struct blocked_call *call);
/* Check what the call wrote to the pages. */
static void check_answer(struct __test_metadata *const _metadata,
			 const struct blocked_call *call);

static void *page_at(const struct blocked_call *call, unsigned int page)
{
	return call->pages + page * page_size();
}

/* Whatever the query, the address space is gone. */
static bool is_gone(int fd)
{
	struct procmap_query query;

	return query_fields(fd, 0, 0, &query) == -ESRCH &&
	       query_fields(fd, 0, PROCMAP_QUERY_COVERING_OR_NEXT_VMA,
			    &query) == -ESRCH;
}

/* Map the file. Each time it hears, map and unmap a page: this takes mmap_lock. */
static int be_mapper(int control, void *arg)
{
	const int fd = open(MAPPED_FILE, O_RDONLY);
	void *other;

	(void)arg;
	if (fd < 0 || !map_file(fd))
		return 1;
	close(fd);
	notify(control);
	while (await(control)) {
		other = mmap(NULL, page_size(), PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (other == MAP_FAILED || munmap(other, page_size()))
			return 1;
		notify(control);
	}
	return 0;
}

static bool make_mapped_file(void)
{
	const int fd = open(MAPPED_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	const bool made = write_elf(fd, build_id);

	close(fd);
	return made;
}

static const char *open_uffd(struct blocked_call *call)
{
	return open_userfaultfd(&call->uffd, call->write ?
				UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0);
}

static bool map_pages_of_call(struct blocked_call *call)
{
	const size_t size = NR_PAGES * page_size();

	call->pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (call->pages == MAP_FAILED)
		return false;
	/* Only a page that is in memory can be protected from writing. */
	memset(call->pages, 0, size);
	call->copies = call->pages + size;
	return true;
}

static bool protect_page(const struct blocked_call *call, bool protect)
{
	struct uffdio_writeprotect arg = {
		.range.start = (uintptr_t)page_at(call, call->page),
		.range.len = page_size(),
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(call->uffd, UFFDIO_WRITEPROTECT, &arg);
}

/* Remove the page, or protect it from writing. */
static bool watch_page(const struct blocked_call *call)
{
	void *const page = page_at(call, call->page);

	memcpy(call->copies, call->pages, NR_PAGES * page_size());
	if (!watch_pages(call->uffd, page, page_size(),
			 call->write ? UFFDIO_REGISTER_MODE_WP :
				       UFFDIO_REGISTER_MODE_MISSING))
		return false;
	if (call->write)
		return protect_page(call, true);
	return !madvise(page, page_size(), MADV_DONTNEED);
}

/* Give the page back its content, or let it be written to. */
static bool serve_page(const struct blocked_call *call)
{
	if (call->write)
		return protect_page(call, false);
	return give_page(call->uffd, page_at(call, call->page),
			 call->copies + call->page * page_size());
}

/* Wait until the call blocks at the page. */
static bool is_blocked(const struct blocked_call *call)
{
	return wait_for_touch(call->uffd) ==
	       (uintptr_t)page_at(call, call->page);
}

static void *make_call(void *arg)
{
	struct blocked_call *const call = arg;

	call->ret = ioctl(call->fd, call->command, call->pages);
	if (call->ret < 0)
		call->ret = -errno;
	return NULL;
}

FIXTURE(blocked)
{
	struct child target;
	struct blocked_call call;
};

FIXTURE_VARIANT(blocked)
{
	unsigned int page;
	bool write;
	/* What the call returns if the target exits meanwhile, at the least. */
	int least;
};

FIXTURE_SETUP(blocked)
{
	struct blocked_call *const call = &self->call;
	const char *missing;

	call->page = variant->page;
	call->write = variant->write;
	missing = mount_scratch() ?: open_uffd(call);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(make_mapped_file());
	ASSERT_TRUE(start_child(&self->target, be_mapper, NULL));
	ASSERT_TRUE(await(self->target.control));
	call->fd = open_maps(self->target.pid);
	ASSERT_LE(0, call->fd);

	ASSERT_TRUE(map_pages_of_call(call));
	prepare_call(_metadata, call);
	ASSERT_TRUE(watch_page(call));
	ASSERT_EQ(0, pthread_create(&call->thread, NULL, make_call, call));
	ASSERT_TRUE(is_blocked(call));
}

FIXTURE_TEARDOWN(blocked)
{
	stop_child(&self->target);
}

/* Let the call go on. @least: an error, or the least that it returns. */
static void unblock(struct __test_metadata *const _metadata,
		    struct blocked_call *call, int least)
{
	ASSERT_TRUE(serve_page(call));
	ASSERT_EQ(0, pthread_join(call->thread, NULL));
	if (least < 0) {
		EXPECT_EQ(least, call->ret);
		return;
	}
	ASSERT_LE(least, call->ret);
	check_answer(_metadata, call);
}

/* mmap() in the target waits for mmap_lock. */
TEST_F(blocked, reader_lets_the_target_change_its_mappings)
{
	ASSERT_TRUE(notify(self->target.control));
	EXPECT_TRUE(await(self->target.control));
	unblock(_metadata, &self->call, self->call.full);
}

TEST_F(blocked, reader_lets_the_address_space_go_at_exit)
{
	ASSERT_FALSE(is_gone(self->call.fd));
	stop_child(&self->target);
	EXPECT_TRUE(is_gone(self->call.fd));
	unblock(_metadata, &self->call, variant->least);
}

/* A file system can be unmounted only if no file of it is held. */
TEST_F(blocked, reader_lets_the_file_system_go_at_exit)
{
	ASSERT_EQ(-1, umount2(SCRATCH, 0));
	ASSERT_EQ(EBUSY, errno);
	stop_child(&self->target);
	EXPECT_EQ(0, umount2(SCRATCH, 0));
	unblock(_metadata, &self->call, variant->least);
}

#endif /* PROCMAP_BLOCKED_H */
