/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files whose bytes come from a process: from a FUSE server of one file, which
 * need not answer. No ioctl may read from it. From a file system on a device that
 * is slow, it may, but not in a way that no signal ends. Nor may it wait for a
 * lock that a writer holds, who need not end either.
 */
#ifndef PROCMAP_FUSE_H
#define PROCMAP_FUSE_H

/* The <linux/types.h> in tools/ lacks it, and the next needs it. */
#include <linux/posix_types.h>
#include <linux/fuse.h>
#include <pthread.h>

#include "procmap-race.h"
#include "procmap-uffd.h"

/* A test program defines these two. */

/* Skip the test, in its setup, if this kernel does not have the ioctl. */
static void skip_without_ioctl(struct __test_metadata *const _metadata);
/* Get the build ID at an address. Returns its size, or -errno. */
static int get_build_id(int maps, uint64_t addr, uint8_t id[20]);

#define FUSE_MOUNT	SCRATCH "/fuse"
#define FUSE_FILE	FUSE_MOUNT "/file"
#define FUSE_FILE_ID	2
#define FUSE_READ_MAX	(128u << 10)
#define RELEASES	2500

static const uint8_t build_id[20] = "a build ID on FUSE";

/* The pointers are to memory that is shared with the server. */
struct fuse {
	struct child server;
	int device;
	int content;		/* what it serves */
	atomic_uint *reads;	/* how many it got */
	atomic_uint *open;	/* files that were opened, and not released */
	atomic_bool *stalls;	/* it reports a read, and waits until it may answer */
};

struct fuse_request {
	struct fuse_in_header header;
	union {
		struct fuse_init_in init;
		struct fuse_read_in read;
		char bytes[FUSE_MIN_READ_BUFFER];
	} arg;
};

struct fuse_reply {
	struct fuse_out_header header;
	union {
		struct fuse_init_out init;
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		char bytes[FUSE_READ_MAX];
	} arg;
};

/* Every node but the root is the file. */
static struct fuse_attr attr_of(const struct fuse *fuse, uint64_t node)
{
	const bool is_root = node == FUSE_ROOT_ID;

	return (struct fuse_attr) {
		.ino = node,
		.mode = is_root ? S_IFDIR | 0700 : S_IFREG | 0700,
		.size = is_root ? 0 : lseek(fuse->content, 0, SEEK_END),
		.nlink = 1,
	};
}

static int read_content(const struct fuse *fuse, int control,
			const struct fuse_read_in *read, char *bytes)
{
	++*fuse->reads;
	if (*fuse->stalls && (!notify(control) || !await(control)))
		return -EIO;
	return pread(fuse->content, bytes,
		     read->size < FUSE_READ_MAX ? read->size : FUSE_READ_MAX,
		     read->offset);
}

/* Returns the size of the answer, or -errno. */
static int answer(const struct fuse *fuse, int control,
		  const struct fuse_request *request, struct fuse_reply *reply)
{
	memset(&reply->arg, 0, sizeof(struct fuse_entry_out));
	switch (request->header.opcode) {
	case FUSE_INIT:
		reply->arg.init.major = FUSE_KERNEL_VERSION;
		reply->arg.init.minor = FUSE_KERNEL_MINOR_VERSION;
		reply->arg.init.max_readahead = request->arg.init.max_readahead;
		reply->arg.init.max_write = page_size();
		return sizeof(reply->arg.init);
	case FUSE_LOOKUP:
		reply->arg.entry.nodeid = FUSE_FILE_ID;
		reply->arg.entry.entry_valid = PATIENCE;
		reply->arg.entry.attr_valid = PATIENCE;
		reply->arg.entry.attr = attr_of(fuse, FUSE_FILE_ID);
		return sizeof(reply->arg.entry);
	case FUSE_GETATTR:
		reply->arg.attr.attr_valid = PATIENCE;
		reply->arg.attr.attr = attr_of(fuse, request->header.nodeid);
		return sizeof(reply->arg.attr);
	case FUSE_OPEN:
		++*fuse->open;
		return sizeof(reply->arg.open);
	case FUSE_RELEASE:
		--*fuse->open;
		return 0;
	case FUSE_READ:
		return read_content(fuse, control, &request->arg.read,
				    reply->arg.bytes);
	default:
		return -ENOSYS;
	}
}

/* The kernel expects no reply to these. */
static bool is_one_way(const struct fuse_request *request)
{
	return request->header.opcode == FUSE_FORGET ||
	       request->header.opcode == FUSE_BATCH_FORGET ||
	       request->header.opcode == FUSE_INTERRUPT;
}

/* Serve until the file system is unmounted. */
static int be_fuse_server(int control, void *arg)
{
	static struct fuse_request request;
	static struct fuse_reply reply;
	const struct fuse *const fuse = arg;
	int size;

	while (read(fuse->device, &request, sizeof(request)) > 0) {
		if (is_one_way(&request))
			continue;
		size = answer(fuse, control, &request, &reply);
		reply.header.unique = request.header.unique;
		reply.header.error = size < 0 ? size : 0;
		reply.header.len = sizeof(reply.header) + (size < 0 ? 0 : size);
		/* Whoever asked may be dead. */
		if (write(fuse->device, &reply, reply.header.len) < 0 &&
		    errno != ENOENT)
			return 1;
	}
	return 0;
}

/*
 * Mount the file system in the scratch directory. Returns NULL, or why it cannot
 * be mounted.
 */
static const char *mount_fuse(struct fuse *fuse, int content)
{
	char options[64];

	fuse->device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse->device < 0)
		return "no FUSE device, CONFIG_FUSE_FS";
	fuse->content = content;
	fuse->reads = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fuse->open = fuse->reads + 1;
	fuse->stalls = (atomic_bool *)(fuse->reads + 2);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse->device);
	if (fuse->reads == MAP_FAILED || mkdir(FUSE_MOUNT, 0700) ||
	    mount("fuse", FUSE_MOUNT, "fuse", 0, options) ||
	    !start_child(&fuse->server, be_fuse_server, fuse))
		return "cannot mount a FUSE file system";
	/* The server's end has to be the last. */
	close(fuse->device);
	return NULL;
}

/* What a reader found: its own process may never come back. */
struct found {
	int size;		/* of the build ID, or -errno */
	uint8_t id[20];
};

/* The mapped file of the test, which a reader has to find. */
struct mapped {
	int maps;
	char *addr;
};

static bool map_file(struct mapped *mapped, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	mapped->maps = open_maps(0);
	mapped->addr = mmap(NULL, page_size(), PROT_READ, MAP_PRIVATE, fd, 0);
	/* Only this asks the server to flush, and never again. */
	close(fd);
	return mapped->maps >= 0 && mapped->addr != MAP_FAILED;
}

static int be_build_id_reader(int control, void *arg)
{
	const struct mapped *const mapped = arg;
	struct found found;

	found.size = get_build_id(mapped->maps, (uintptr_t)mapped->addr,
				  found.id);
	return write(control, &found, sizeof(found)) != sizeof(found);
}

/* Read until the process is killed: the address space of the test does not end before. */
static int be_tireless_reader(int control, void *arg)
{
	const struct mapped *const mapped = arg;
	uint8_t id[20];

	(void)control;
	while (get_build_id(mapped->maps, (uintptr_t)mapped->addr, id) != -ESRCH)
		;
	return 1;
}

/* Wait until the reader has found what it can, or the server is to be read. */
static bool is_server_read(const struct fuse *fuse, const struct child *reader)
{
	struct pollfd fds[2] = {
		{ .fd = fuse->server.control, .events = POLLIN },
		{ .fd = reader->control, .events = POLLIN },
	};

	return poll(fds, 2, -1) > 0 && fds[0].revents;
}

static bool has_found_id(const struct found *found)
{
	return found->size == sizeof(build_id) &&
	       !memcmp(found->id, build_id, sizeof(build_id));
}

/* A reader that waits for the server ends only after the server. */
static void stop_reader_and_fuse(struct child *reader, struct fuse *fuse)
{
	stop_child(&fuse->server);
	stop_child(reader);
}

FIXTURE(fuse)
{
	struct fuse fuse;
	struct mapped file;
	struct child reader;
};

FIXTURE_VARIANT(fuse)
{
	bool stalls;
};

FIXTURE_VARIANT_ADD(fuse, that_answers) {
};

FIXTURE_VARIANT_ADD(fuse, that_stalls) {
	.stalls = true,
};

FIXTURE_SETUP(fuse)
{
	const int content = memfd_create("content", MFD_CLOEXEC);
	const char *missing;

	skip_without_ioctl(_metadata);
	ASSERT_TRUE(write_elf(content, build_id));
	missing = mount_scratch() ?: mount_fuse(&self->fuse, content);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(map_file(&self->file, FUSE_FILE));
}

FIXTURE_TEARDOWN(fuse)
{
	stop_reader_and_fuse(&self->reader, &self->fuse);
}

/* Start a reader, and expect that it does not read. */
static void get_found(struct __test_metadata *const _metadata,
		      struct _test_data_fuse *self, bool stalls,
		      struct found *found)
{
	const unsigned int reads = *self->fuse.reads;

	*self->fuse.stalls = stalls;
	ASSERT_TRUE(start_child(&self->reader, be_build_id_reader,
				&self->file));
	ASSERT_FALSE(is_server_read(&self->fuse, &self->reader));
	ASSERT_EQ((ssize_t)sizeof(*found),
		  read(self->reader.control, found, sizeof(*found)));
	EXPECT_EQ(reads, atomic_load(self->fuse.reads));
}

TEST_F(fuse, is_not_read_for_what_is_not_in_memory)
{
	struct found found;

	get_found(_metadata, self, variant->stalls, &found);
	EXPECT_EQ(0, found.size);
}

TEST_F(fuse, has_the_id_that_is_in_memory)
{
	struct found found;

	ASSERT_EQ('E', atomic_load((_Atomic char *)(self->file.addr + 1)));
	get_found(_metadata, self, variant->stalls, &found);
	EXPECT_TRUE(has_found_id(&found));
}

/* The reader drops the last reference if the file is unmapped while it has one. */
TEST_F_TIMEOUT(fuse, is_released_if_unmapped_while_it_is_read, RACE_TIMEOUT)
{
	const unsigned int open_before = *self->fuse.open;
	struct mapped file = { .maps = self->file.maps };
	unsigned int i;
	int fd;

	file.addr = mmap(NULL, page_size(), PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)file.addr);
	*self->fuse.stalls = variant->stalls;
	ASSERT_TRUE(start_child(&self->reader, be_tireless_reader, &file));
	for (i = 0; i < RELEASES; i++) {
		fd = open(FUSE_FILE, O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, fd);
		/* It takes the place of the one before. */
		ASSERT_EQ(file.addr, mmap(file.addr, page_size(), PROT_READ,
					  MAP_PRIVATE | MAP_FIXED, fd, 0));
		ASSERT_EQ(0, close(fd));
	}
	stop_child(&self->reader);
	ASSERT_EQ(0, munmap(file.addr, page_size()));
	while (*self->fuse.open != open_before && !is_late())
		sched_yield();
	EXPECT_EQ(open_before, atomic_load(self->fuse.open));
}

/* An ext4 on a loop device whose sectors come from FUSE. */
FIXTURE(slow_device)
{
	struct fuse fuse;
	struct mapped file;
	struct child reader;
};

static bool make_file_on_ext4(void)
{
	const int fd = open(SCRATCH_EXT4 "/file", O_RDWR | O_CREAT, 0700);
	const bool made = write_elf(fd, build_id);

	close(fd);
	return made && !umount2(SCRATCH_EXT4, 0);
}

static bool mount_ext4_on_fuse(void)
{
	char device[32];
	const int loop = open_loop(FUSE_FILE, device, sizeof(device));
	const bool mounted = !mount(device, SCRATCH_EXT4, "ext4", MS_RDONLY,
				    NULL);

	close(loop);
	return mounted;
}

/* Make the kernel forget what it read of the image. */
static bool evict_image(void)
{
	const int image = open(FUSE_FILE, O_RDONLY | O_CLOEXEC);
	const bool evicted = !posix_fadvise(image, 0, 0, POSIX_FADV_DONTNEED);

	close(image);
	return evicted;
}

/* Mount it, with a file. Returns NULL, or why it cannot be mounted. */
static const char *mount_slow_device(struct __test_metadata *const _metadata,
				     struct fuse *fuse)
{
	const char *missing = mount_scratch_ext4();

	if (missing)
		return missing;
	EXPECT_TRUE(make_file_on_ext4());
	missing = mount_fuse(fuse, open(SCRATCH_IMAGE, O_RDONLY));
	if (missing)
		return missing;
	EXPECT_TRUE(mount_ext4_on_fuse());
	return NULL;
}

FIXTURE_SETUP(slow_device)
{
	const char *missing;

	skip_without_ioctl(_metadata);
	missing = mount_slow_device(_metadata, &self->fuse);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(map_file(&self->file, SCRATCH_EXT4 "/file"));
	ASSERT_TRUE(evict_image());
	*self->fuse.stalls = true;
	ASSERT_TRUE(start_child(&self->reader, be_build_id_reader,
				&self->file));
	ASSERT_TRUE(is_server_read(&self->fuse, &self->reader));
	ASSERT_TRUE(await(self->fuse.server.control));
}

FIXTURE_TEARDOWN(slow_device)
{
	*self->fuse.stalls = false;
	notify(self->fuse.server.control);
	stop_child(&self->reader);
	umount2(SCRATCH_EXT4, MNT_DETACH);
	stop_child(&self->fuse.server);
}

TEST_F_TIMEOUT(slow_device, is_read, RACE_TIMEOUT)
{
	struct found found;

	*self->fuse.stalls = false;
	ASSERT_TRUE(notify(self->fuse.server.control));
	ASSERT_EQ((ssize_t)sizeof(found),
		  read(self->reader.control, &found, sizeof(found)));
	EXPECT_TRUE(has_found_id(&found));
}

TEST_F_TIMEOUT(slow_device, does_not_keep_a_killed_reader, RACE_TIMEOUT)
{
	expect_death(_metadata, &self->reader);
}

/*
 * A file on XFS, which is locked while a writer waits for the page to write: it is
 * behind userfaultfd. read(2) waits for the lock, and no signal ends that.
 */
#define SCRATCH_XFS	SCRATCH "/xfs"
#define MAKE_XFS	"mkfs.xfs -q --unsupported -d file,size=16m,name=" SCRATCH_IMAGE

FIXTURE(locked_file)
{
	struct mapped file;
	struct child writer;
	struct child reader;
};

static void *write_page(void *page)
{
	const int fd = open(SCRATCH_XFS "/file", O_WRONLY);
	const ssize_t size = pwrite(fd, page, page_size(), 16 * page_size());

	close(fd);
	return size == (ssize_t)page_size() ? page : NULL;
}

/* Write until the test allows that to end. */
static int be_writer(int control, void *arg)
{
	static char content[1 << 16];
	void *written = NULL;
	pthread_t writer;
	void *page;
	int uffd;

	(void)arg;
	page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || open_userfaultfd(&uffd, 0) ||
	    !watch_pages(uffd, page, page_size(), UFFDIO_REGISTER_MODE_MISSING) ||
	    pthread_create(&writer, NULL, write_page, page) ||
	    !wait_for_touch(uffd) || !notify(control))
		return 1;
	await(control);
	return !give_page(uffd, page, content) ||
	       pthread_join(writer, &written) || !written || !notify(control);
}

/* Make a file of which nothing is in memory, and a write does not change its size. */
static bool make_file_on_xfs(void)
{
	const int fd = open(SCRATCH_XFS "/file", O_RDWR | O_CREAT, 0700);
	const bool made = write_elf(fd, build_id) &&
			  !ftruncate(fd, 17 * page_size()) && !fsync(fd) &&
			  !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);

	close(fd);
	return made;
}

FIXTURE_SETUP(locked_file)
{
	const char *missing;

	skip_without_ioctl(_metadata);
	missing = mount_scratch_image("xfs", MAKE_XFS, SCRATCH_XFS);
	if (missing)
		SKIP_SETUP(missing);
	ASSERT_TRUE(make_file_on_xfs());
	ASSERT_TRUE(map_file(&self->file, SCRATCH_XFS "/file"));
	ASSERT_TRUE(start_child(&self->writer, be_writer, NULL));
	ASSERT_TRUE(await(self->writer.control));
	ASSERT_TRUE(start_child(&self->reader, be_build_id_reader,
				&self->file));
}

FIXTURE_TEARDOWN(locked_file)
{
	stop_child(&self->writer);
	stop_child(&self->reader);
	umount2(SCRATCH_XFS, MNT_DETACH);
}

TEST_F(locked_file, is_read_while_the_writer_waits)
{
	struct found found;

	ASSERT_EQ((ssize_t)sizeof(found),
		  read(self->reader.control, &found, sizeof(found)));
	EXPECT_TRUE(has_found_id(&found));
	ASSERT_TRUE(notify(self->writer.control));
	ASSERT_TRUE(await(self->writer.control));
}

#endif /* PROCMAP_FUSE_H */
