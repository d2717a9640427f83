// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a FUSE server that never answers does not block a lookup of a build ID: the
 * ioctls read neither from it nor from a file system above it, and wait for no lock of a
 * process that reads from it.
 */
/* The <linux/types.h> in tools/ lacks it, and <linux/fuse.h> needs it. */
#include <linux/posix_types.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "kselftest_harness.h"
#include "stress_util.h"

#define FUSE_MOUNT	SCRATCH "/fuse"
#define FUSE_FILE_ID	2
#define FUSE_READ_MAX	(128u << 10)
#define FUSE_WRITE_MAX	4096	/* the least that there is; the buffer has to hold it */
#define UPPER_MOUNT	SCRATCH "/upper"
#define EMPTY		SCRATCH "/empty"

#define VALID		900	/* seconds: longer than a test takes */

struct fuse {
	struct child server;
	int device;
	int content;		/* of the one file that it serves */
	uint32_t open_flags;
	/* It reports a read, and never answers it. In memory that is shared with it. */
	atomic_bool *stalls;
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
		struct fuse_statfs_out statfs;
		char bytes[FUSE_READ_MAX];
	} arg;
};

/* Every node but the root is the file. */
static struct fuse_attr fuse_attr(const struct fuse *fuse, uint64_t node)
{
	const bool is_root = node == FUSE_ROOT_ID;

	return (struct fuse_attr) {
		.ino = node,
		.mode = is_root ? S_IFDIR | 0700 : S_IFREG | 0700,
		.size = is_root ? 0 : lseek(fuse->content, 0, SEEK_END),
		.nlink = 1,
	};
}

static int fuse_read(const struct fuse *fuse, int control,
		     const struct fuse_read_in *read, char *bytes)
{
	if (*fuse->stalls && (!notify(control) || !await(control)))
		return -EIO;
	return pread(fuse->content, bytes,
		     read->size < FUSE_READ_MAX ? read->size : FUSE_READ_MAX,
		     read->offset);
}

/* Returns the size of the answer, or -errno. */
static int fuse_answer(const struct fuse *fuse, int control,
		       const struct fuse_request *request, struct fuse_reply *reply)
{
	memset(&reply->arg, 0, sizeof(struct fuse_entry_out));
	switch (request->header.opcode) {
	case FUSE_INIT:
		reply->arg.init.major = FUSE_KERNEL_VERSION;
		reply->arg.init.minor = FUSE_KERNEL_MINOR_VERSION;
		reply->arg.init.max_readahead = request->arg.init.max_readahead;
		reply->arg.init.max_write = FUSE_WRITE_MAX;
		return sizeof(reply->arg.init);
	case FUSE_LOOKUP:
		reply->arg.entry.nodeid = FUSE_FILE_ID;
		reply->arg.entry.entry_valid = VALID;
		reply->arg.entry.attr_valid = VALID;
		reply->arg.entry.attr = fuse_attr(fuse, FUSE_FILE_ID);
		return sizeof(reply->arg.entry);
	case FUSE_GETATTR:
		reply->arg.attr.attr_valid = VALID;
		reply->arg.attr.attr = fuse_attr(fuse, request->header.nodeid);
		return sizeof(reply->arg.attr);
	case FUSE_OPEN:
		reply->arg.open.open_flags = fuse->open_flags;
		return sizeof(reply->arg.open);
	case FUSE_STATFS:
		reply->arg.statfs.st.namelen = NAME_MAX;
		return sizeof(reply->arg.statfs);
	case FUSE_READ:
		return fuse_read(fuse, control, &request->arg.read,
				 reply->arg.bytes);
	default:
		return -ENOSYS;
	}
}

/* Serve until the file system is unmounted. */
static int be_fuse_server(int control, void *arg)
{
	static struct fuse_request request;
	static struct fuse_reply reply;
	const struct fuse *const fuse = arg;
	int size;

	while (read(fuse->device, &request, sizeof(request)) > 0) {
		size = fuse_answer(fuse, control, &request, &reply);
		reply.header.unique = request.header.unique;
		reply.header.error = size < 0 ? size : 0;
		reply.header.len = sizeof(reply.header) + (size < 0 ? 0 : size);
		/* The process that asked may be dead, or expect no answer. */
		if (write(fuse->device, &reply, reply.header.len) < 0 &&
		    errno != ENOENT)
			return 1;
	}
	return 0;
}

/* Mount it in the scratch directory. Returns NULL, or why it cannot be mounted. */
static const char *mount_fuse(struct fuse *fuse)
{
	char options[64];

	fuse->device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse->device < 0)
		return "no FUSE device, CONFIG_FUSE_FS";
	fuse->stalls = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse->device);
	if (fuse->stalls == MAP_FAILED || mkdir(FUSE_MOUNT, 0700) ||
	    mkdir(UPPER_MOUNT, 0700) ||
	    mount("fuse", FUSE_MOUNT, "fuse", 0, options) ||
	    !start_child(&fuse->server, be_fuse_server, fuse))
		return "cannot mount a FUSE file system";
	/* The server's end has to be the last. */
	close(fuse->device);
	return NULL;
}

static const char *mount_overlay(void)
{
	return mkdir(EMPTY, 0700) ||
	       mount("overlay", UPPER_MOUNT, "overlay", MS_RDONLY,
		     "lowerdir=" FUSE_MOUNT ":" EMPTY) ?
	       "no overlay, CONFIG_OVERLAY_FS" : NULL;
}

/* The result of a reader, which is a process of its own: it may never return. */
struct found {
	int err;
	uint32_t query_size;
	uint8_t query_id[BUILD_ID_SIZE];
	struct procmap_vma vma;
	uint8_t scan_id[BUILD_ID_SIZE];
};

FIXTURE(fuse)
{
	struct fuse fuse;
	struct child reader;
	int maps;
	char *addr;
};

FIXTURE_VARIANT(fuse)
{
	uint32_t open_flags;
	const char *(*mount_upper)(void);
};

FIXTURE_VARIANT_ADD(fuse, plain) { .open_flags = 0 };
FIXTURE_VARIANT_ADD(fuse, direct_io) { .open_flags = FOPEN_DIRECT_IO };
FIXTURE_VARIANT_ADD(fuse, below_overlay) { .mount_upper = mount_overlay };

FIXTURE_SETUP(fuse)
{
	const char *missing;
	int fd;

	SKIP_WITHOUT_SCAN();
	self->fuse.content = memfd_create("content", MFD_CLOEXEC);
	self->fuse.open_flags = variant->open_flags;
	ASSERT_TRUE(write_elf(self->fuse.content, scene_id));
	missing = find_build_id_reader() ?: mount_scratch() ?: mount_fuse(&self->fuse);
	if (!missing && variant->mount_upper)
		missing = variant->mount_upper();
	if (missing) {
		stop_child(&self->fuse.server);
		SKIP_SETUP(missing);
	}
	fd = open(variant->mount_upper ? UPPER_MOUNT "/file" : FUSE_MOUNT "/file",
		  O_RDONLY | O_CLOEXEC);
	self->maps = open_maps(0);
	self->addr = mmap(NULL, page_size(), PROT_READ, MAP_PRIVATE, fd, 0);
	/* Only this asks the server to flush, and never again. */
	close(fd);
	ASSERT_LE(0, self->maps);
	ASSERT_TRUE(self->addr != MAP_FAILED);
}

/* A reader that waits for the server ends only after the server. */
FIXTURE_TEARDOWN(fuse)
{
	stop_child(&self->fuse.server);
	stop_child(&self->reader);
}

/* Look by both ioctls. */
static int be_reader(int control, void *arg)
{
	const struct _test_data_fuse *const self = arg;
	const uint64_t addr = (uintptr_t)self->addr;
	struct procmap_query query;
	struct found found = {};
	const struct scan_buffers buffers = {
		&found.vma, (char *)found.scan_id, 1, BUILD_ID_SIZE,
	};
	struct procmap_scan_arg scan = scan_arg(&buffers, addr, addr + 1,
						PROCMAP_SCAN_BUILD_IDS);

	found.err = query_build_id(self->maps, addr, &query, found.query_id, BUILD_ID_SIZE) ?:
		    procmap_scan(self->maps, &scan) - 1;
	found.query_size = query.build_id_size;
	return write(control, &found, sizeof(found)) != sizeof(found);
}

/* Look the build ID up in another process, which the server must not notice. */
static void look_up_in_reader(struct __test_metadata *const _metadata,
			      struct _test_data_fuse *self, struct found *found)
{
	struct pollfd fds[2] = {
		{ .fd = self->fuse.server.control, .events = POLLIN },
		{ .events = POLLIN },
	};

	*self->fuse.stalls = true;
	ASSERT_TRUE(start_child(&self->reader, be_reader, self));
	fds[1].fd = self->reader.control;
	ASSERT_LT(0, poll(fds, 2, -1));
	ASSERT_EQ(0, fds[0].revents) {
		TH_LOG("the server is read");
	}
	ASSERT_EQ((ssize_t)sizeof(*found),
		  read(self->reader.control, found, sizeof(*found)));
}

TEST_F(fuse, is_not_read_for_what_is_not_resident)
{
	struct found found;

	look_up_in_reader(_metadata, self, &found);
	EXPECT_EQ(0, found.err);
	EXPECT_EQ(0u, found.query_size);
	EXPECT_EQ(0u, found.vma.build_id_size);
	/* A query would not read it either. */
	EXPECT_FALSE(found.vma.flags & PROCMAP_VMA_BUILD_ID_NOT_READ);
}

TEST_F(fuse, has_the_id_that_is_resident)
{
	struct found found;

	ASSERT_EQ('E', atomic_load((_Atomic char *)(self->addr + 1)));
	look_up_in_reader(_metadata, self, &found);
	EXPECT_EQ(0, found.err);
	ASSERT_EQ(BUILD_ID_SIZE, found.query_size);
	EXPECT_EQ(0, memcmp(found.query_id, scene_id, BUILD_ID_SIZE));
	ASSERT_EQ(BUILD_ID_SIZE, found.vma.build_id_size);
	EXPECT_EQ(0, memcmp(found.scan_id, scene_id, BUILD_ID_SIZE));
}

/*
 * A process writes to a file on a disk, from memory that the server never fills in. XFS
 * holds a lock of the file meanwhile, and read(2) of it waits for that.
 */

FIXTURE(disk)
{
	struct fuse fuse;
	struct child writer;
	const char *source;	/* in a file of the server */
	int file;
};

static const char *mount_xfs(void)
{
	return mkdir(SCRATCH_DISK, 0700) ||
	       !run_in_shell("truncate -s 300M " SCRATCH_IMAGE " && mkfs.xfs -q " SCRATCH_IMAGE
			     " && mount -o loop " SCRATCH_IMAGE " " SCRATCH_DISK) ?
	       "cannot mount an XFS" : NULL;
}

static const char *map_file_on_fuse(void)
{
	const int fd = open(FUSE_MOUNT "/file", O_RDONLY | O_CLOEXEC);

	return mmap(NULL, page_size(), PROT_READ, MAP_PRIVATE, fd, 0);
}

FIXTURE_SETUP(disk)
{
	const char *missing;

	self->fuse.content = memfd_create("content", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(self->fuse.content, page_size()));
	missing = find_build_id_reader() ?: mount_scratch() ?: mount_xfs() ?:
		  mount_fuse(&self->fuse);
	if (missing) {
		stop_child(&self->fuse.server);
		SKIP_SETUP(missing);
	}
	self->source = map_file_on_fuse();
	ASSERT_TRUE(self->source != MAP_FAILED);
	self->file = open(SCRATCH_DISK "/elf", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	ASSERT_TRUE(write_elf(self->file, scene_id));
	/* A write behind the end would read the first page. */
	ASSERT_EQ(0, ftruncate(self->file, 2 * page_size()));
	ASSERT_TRUE(evict_file(self->file));
}

FIXTURE_TEARDOWN(disk)
{
	stop_child(&self->fuse.server);
	stop_child(&self->writer);
}

static int be_writer(int control, void *arg)
{
	const struct _test_data_disk *const self = arg;

	(void)control;
	return pwrite(self->file, self->source, 1, page_size()) != 1;
}

TEST_F(disk, is_read_while_a_writer_waits_for_the_server)
{
	void *const addr = mmap(NULL, page_size(), PROT_READ, MAP_PRIVATE,
				self->file, 0);
	struct procmap_query query;
	uint8_t id[BUILD_ID_SIZE];

	ASSERT_TRUE(addr != MAP_FAILED);
	*self->fuse.stalls = true;
	ASSERT_TRUE(start_child(&self->writer, be_writer, self));
	ASSERT_TRUE(await(self->fuse.server.control));
	ASSERT_EQ(0, query_build_id(open_maps(0), (uintptr_t)addr, &query, id, sizeof(id)));
	ASSERT_EQ(BUILD_ID_SIZE, query.build_id_size);
	EXPECT_EQ(0, memcmp(id, scene_id, BUILD_ID_SIZE));
}

TEST_HARNESS_MAIN
