// SPDX-License-Identifier: GPL-2.0
/*
 * Test the build IDs of mapped files: of ELF files of every shape, sound and
 * hostile, resident or not, on each kind of file system.
 */
#include <asm/posix_types.h>
#include <glob.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/syscall.h>

#include "procmap-elf.h"
#include "procmap-race.h"
#include "procmap-uffd.h"

/* Look-ups in a file that changes, of which so many must meet a change. */
#define OVERLAPS	100

#ifndef __NR_memfd_secret
#define __NR_memfd_secret 447
#endif

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB	(21U << 26)
#endif
#define HUGE_PAGE_SIZE	(2u << 20)
#define HUGE_PAGES	"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

/* The plainest file that has a build ID. */
static const struct elf plain_elf = {
	.type = ET_DYN,
	.segments[0] = { .type = PT_NOTE, .notes = { BUILD_ID(1, 20) } },
};

static bool make_file(struct subject *subject, const struct elf *elf)
{
	make_image(&subject->image, elf);
	return write_subject(subject);
}

/* @size: as get_build_id() returns it. The bytes of the ID follow from @seed. */
static void expect_id_at(struct __test_metadata *const _metadata,
			 const struct subject *subject, const void *addr,
			 uint8_t seed, int size)
{
	uint8_t expected[ID_MAX + 1], id[ID_MAX + 1];
	int i;

	/* The bytes behind the ID in the buffer are left alone. */
	memset(expected, 0x5a, sizeof(expected));
	memset(id, 0x5a, sizeof(id));
	for (i = 0; i < size; i++)
		expected[i] = id_byte(seed, i);

	ASSERT_TRUE(addr != MAP_FAILED);
	ASSERT_EQ(size, get_build_id(subject->way, subject->maps, addr, id));
	ASSERT_EQ(0, memcmp(expected, id, sizeof(id)));
}

static void expect_id(struct __test_metadata *const _metadata,
		      const struct subject *subject, uint8_t seed, int size)
{
	expect_id_at(_metadata, subject, subject->addr, seed, size);
}

static void expect_none(struct __test_metadata *const _metadata,
			const struct subject *subject)
{
	expect_id(_metadata, subject, 0, 0);
}

/* The same, where a page has to be read for it: a scan does not. */
static void expect_id_if_read(struct __test_metadata *const _metadata,
			      const struct subject *subject, uint8_t seed, int size)
{
	expect_id(_metadata, subject, seed,
		  subject->way == QUERY ? size : NOT_READ);
}

/*
 * Files that can be mapped and have no build ID. The scan does not say
 * that it could be read, either.
 */

FIXTURE(no_build_id)
{
	struct subject subject;	/* it has one */
};

FIXTURE_VARIANT(no_build_id)
{
	enum way way;
};

FIXTURE_VARIANT_ADD(no_build_id, query) {
	.way = QUERY,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(no_build_id, scan) {
	.way = SCAN,
};
#endif

FIXTURE_SETUP(no_build_id)
{
	open_subject(_metadata, &self->subject, variant->way, TMPFS);
	make_image(&self->subject.image, &plain_elf);
}

FIXTURE_TEARDOWN(no_build_id)
{
}

/* Map a page of that kind, and write the file to it. */
static void expect_none_in(struct __test_metadata *const _metadata,
			   const struct subject *subject, int flags, int fd)
{
	void *const addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, flags,
				fd, 0);

	expect_id_at(_metadata, subject, addr, 0, 0);
	memcpy(addr, subject->image.bytes, subject->image.size);
	expect_id_at(_metadata, subject, addr, 0, 0);
}

/* A block device has a page cache of its own. */
TEST_F(no_build_id, device)
{
	const char *const missing = mount_scratch();
	char path[32];
	int image, loop;

	if (missing)
		SKIP(return, "%s", missing);
	image = open(SCRATCH_IMAGE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_EQ(0, ftruncate(image, 1 << 20));
	loop = open_loop(SCRATCH_IMAGE, path, sizeof(path));
	if (loop < 0)
		SKIP(return, "no loop device to be had, CONFIG_BLK_DEV_LOOP");
	expect_none_in(_metadata, &self->subject, MAP_SHARED, loop);
}

/* It is never touched: a read may have effects on the device. */
TEST_F(no_build_id, pseudo_file)
{
	void *addr = MAP_FAILED;
	glob_t found = {};
	size_t i;

	glob("/sys/bus/pci/devices/*/resource[0-9]", 0, NULL, &found);
	for (i = 0; i < found.gl_pathc && addr == MAP_FAILED; i++) {
		const int fd = open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);

		addr = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	globfree(&found);
	if (addr == MAP_FAILED)
		SKIP(return, "no PCI resource can be mapped");
	expect_id_at(_metadata, &self->subject, addr, 0, 0);
}

TEST_F(no_build_id, secret_memory)
{
	const int fd = syscall(__NR_memfd_secret, O_CLOEXEC);

	if (fd < 0)
		SKIP(return, "no memfd_secret, CONFIG_SECRETMEM and its boot option");
	ASSERT_EQ(0, ftruncate(fd, page_size()));
	expect_none_in(_metadata, &self->subject, MAP_SHARED, fd);
}

/*
 * Pages of a file, on a file system in memory and on one on a device.
 */

FIXTURE(place)
{
	struct subject subject;
	struct elf elf;
};

FIXTURE_VARIANT(place)
{
	enum way way;
	enum place place;
};

FIXTURE_VARIANT_ADD(place, query_tmpfs) {
	.way = QUERY,
	.place = TMPFS,
};

FIXTURE_VARIANT_ADD(place, query_ext4) {
	.way = QUERY,
	.place = EXT4,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(place, scan_tmpfs) {
	.way = SCAN,
	.place = TMPFS,
};

FIXTURE_VARIANT_ADD(place, scan_ext4) {
	.way = SCAN,
	.place = EXT4,
};
#endif

FIXTURE_SETUP(place)
{
	open_subject(_metadata, &self->subject, variant->way, variant->place);
	self->elf = plain_elf;
}

FIXTURE_TEARDOWN(place)
{
}

/* The ID is that of the file, also where a process has written to its memory. */
TEST_F(place, private_changes_do_not_count)
{
	uint8_t *addr;

	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE,
		    self->subject.fd, 0);
	ASSERT_TRUE(addr != MAP_FAILED);
	memset(addr, 0xff, page_size());
	expect_id_at(_metadata, &self->subject, addr, 1, 20);
}

/* Through a shared mapping, bytes can get behind the end of the file. */
TEST_F(place, bytes_past_the_end_of_the_file_do_not_count)
{
	uint8_t *addr;
	off_t end;

	ASSERT_TRUE(make_file(&self->subject, &self->elf));
	addr = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
		    self->subject.fd, 0);
	ASSERT_TRUE(addr != MAP_FAILED);
	for (end = self->subject.image.size - 1; end > 0; end -= 9) {
		ASSERT_EQ(0, ftruncate(self->subject.fd, end));
		memcpy(addr + end, self->subject.image.bytes + end,
		       self->subject.image.size - end);
		expect_none(_metadata, &self->subject);
	}
}

/* The segment that has it is the first, or a later one. */
TEST_F(place, note_past_the_end_of_the_file_hides_no_id_in_another_segment)
{
	struct image *const image = &self->subject.image;
	const struct segment notes = self->elf.segments[0];
	const struct segment cut = { .type = PT_NOTE, .notes = { ABI_TAG } };
	size_t i;

	for (i = 0; i < 2; i++) {
		self->elf.segments[i] = cut;
		self->elf.segments[!i] = notes;
		make_image(image, &self->elf);
		elf_put(image, image->notes[i], N_DESCSZ, 1u << 20);
		elf_put(image, ehdr_size(image) + i * phdr_size(image), P_FILESZ,
			1u << 21);
		ASSERT_TRUE(write_subject(&self->subject));
		expect_id(_metadata, &self->subject, 1, 20);
	}
}

/* Mainline ignores a note whose padding is not part of its segment: so do these. */
TEST_F(place, note_without_its_padding_is_ignored)
{
	struct image *const image = &self->subject.image;
	unsigned int size;

	for (size = 1; size <= ID_MAX; size++) {
		self->elf.segments[0].notes[0].size = size;
		ASSERT_TRUE(make_file(&self->subject, &self->elf));
		expect_id(_metadata, &self->subject, 1, size % 4 ? 0 : size);

		elf_put(image, ehdr_size(image), P_FILESZ,
			image->size - image->notes[0] + align_to(size, 4) - size);
		grow_image(image, align_to(image->size, 4));
		ASSERT_TRUE(write_subject(&self->subject));
		expect_id(_metadata, &self->subject, 1, size);
	}
}

/* The two files that one becomes in turn, in another thread. */
struct rewriter {
	int fd;
	struct image versions[2];
	atomic_uint rounds;
	atomic_bool stop;
	bool failed;
};

static const uint8_t seeds[2] = { 1, 77 };

static void *rewrite_until_stopped(void *arg)
{
	struct rewriter *rewriter = arg;

	while (!rewriter->stop) {
		if (!write_image(rewriter->fd,
				 &rewriter->versions[rewriter->rounds % 2]))
			rewriter->failed = true;
		rewriter->rounds++;
	}
	return NULL;
}

static bool is_of_a_version(const uint8_t *id, int size)
{
	int i;

	for (i = 0; i < size && id[i] == id_byte(id[0], i); i++)
		;
	return size == ID_MAX && i == size &&
	       (id[0] == id_byte(seeds[0], 0) || id[0] == id_byte(seeds[1], 0));
}

/* Each answer is one of the versions, or none; not always none. */
TEST_F_TIMEOUT(place, truncated_and_rewritten_meanwhile, RACE_TIMEOUT)
{
	const struct subject *const subject = &self->subject;
	struct rewriter rewriter = { .fd = subject->fd };
	unsigned int i, before, overlaps = 0, found = 0;
	uint8_t id[ID_MAX];
	pthread_t thread;
	int size;

	for (i = 0; i < 2; i++) {
		self->elf.segments[0].notes[0].seed = seeds[i];
		make_image(&rewriter.versions[i], &self->elf);
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, rewrite_until_stopped,
				    &rewriter));
	while ((overlaps < OVERLAPS || found < OVERLAPS) && !is_late()) {
		before = rewriter.rounds;
		size = get_build_id(subject->way, subject->maps, subject->addr, id);
		/* A rewrite has ended since: it was going on meanwhile. */
		overlaps += rewriter.rounds != before;
		if (size && size != NOT_READ) {
			ASSERT_TRUE(is_of_a_version(id, size));
			found++;
		}
	}
	rewriter.stop = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_FALSE(rewriter.failed);
	EXPECT_LE((unsigned int)OVERLAPS, overlaps);
	EXPECT_LE((unsigned int)OVERLAPS, found);
}

/*
 * Pages that are not resident.
 */

FIXTURE(page)
{
	struct subject subject;
	char swap[32];		/* the device, or "" */
	char huge_pages[32];	/* how many the system had, or "" */
};

FIXTURE_VARIANT(page)
{
	enum way way;
};

FIXTURE_VARIANT_ADD(page, query) {
	.way = QUERY,
};

#ifdef HAVE_PROCMAP_SCAN
FIXTURE_VARIANT_ADD(page, scan) {
	.way = SCAN,
};
#endif

FIXTURE_SETUP(page)
{
}

FIXTURE_TEARDOWN(page)
{
	if (self->swap[0])
		EXPECT_EQ(0, swapoff(self->swap));
	if (self->huge_pages[0])
		write_file(HUGE_PAGES, self->huge_pages);
}

/* Looking at a missing page of shared memory does not fill it in. */
TEST_F(page, missing_stays_missing)
{
	struct subject *const subject = &self->subject;
	const char *missing;
	int uffd;

	missing = open_userfaultfd(&uffd, UFFD_FEATURE_MISSING_SHMEM);
	if (missing)
		SKIP(return, "%s", missing);
	open_subject(_metadata, subject, variant->way, TMPFS);
	make_image(&subject->image, &plain_elf);
	ASSERT_EQ(0, ftruncate(subject->fd, page_size()));
	ASSERT_TRUE(watch_pages(uffd, subject->addr, page_size(),
				UFFDIO_REGISTER_MODE_MISSING));
	expect_id_if_read(_metadata, subject, 0, 0);
	EXPECT_EQ(0, resident_pages(subject->fd));

	/* A page that is there cannot be given. */
	EXPECT_TRUE(give_page(uffd, subject->addr, subject->image.bytes));
	expect_id(_metadata, subject, 1, 20);
}

/* Open and map the file again at the same address. */
static bool reopen_subject(struct subject *subject, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", subject->fd);
	subject->fd = open(path, flags | O_CLOEXEC);
	return subject->fd >= 0 &&
	       mmap(subject->addr, page_size(), PROT_READ, MAP_SHARED | MAP_FIXED,
		    subject->fd, 0) == subject->addr;
}

/* Page cache and direct I/O are apart, and such a file is mapped all the same. */
TEST_F(page, of_a_file_opened_for_direct_io)
{
	struct subject *const subject = &self->subject;

	open_subject(_metadata, subject, variant->way, EXT4);
	ASSERT_TRUE(make_file(subject, &plain_elf));
	ASSERT_TRUE(reopen_subject(subject, O_RDONLY | O_DIRECT));
	ASSERT_TRUE(evict_file(subject->fd));
	expect_id_if_read(_metadata, subject, 1, 20);
}

/* Swap to a loop device. Returns NULL, or why that cannot be. */
static const char *add_swap(char *device, size_t size)
{
	int loop;

	if (system("PATH=$PATH:/usr/sbin:/sbin; truncate -s 1M " SCRATCH_IMAGE
		   " && mkswap " SCRATCH_IMAGE " >/dev/null 2>&1"))
		return "mkswap cannot be run";
	loop = open_loop(SCRATCH_IMAGE, device, size);
	if (loop < 0 || swapon(device, 0)) {
		*device = '\0';
		return "no swap, CONFIG_SWAP and CONFIG_BLK_DEV_LOOP";
	}
	close(loop);
	return NULL;
}

static bool has_swapped_pages(void)
{
	FILE *const file = fopen("/proc/self/smaps_rollup", "re");
	unsigned int kilobytes = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Swap: %u kB", &kilobytes) == 1)
			break;
	if (file)
		fclose(file);
	return kilobytes;
}

/* A page of a CPU's own list of new pages can only be swapped out there. */
static bool stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

TEST_F(page, in_swap)
{
	struct subject *const subject = &self->subject;
	const char *missing;

	open_subject(_metadata, subject, variant->way, TMPFS);
	missing = mount_scratch() ?:
		  add_swap(self->swap, sizeof(self->swap));
	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_TRUE(stay_on_this_cpu());
	ASSERT_TRUE(make_file(subject, &plain_elf));
	ASSERT_EQ('E', atomic_load((_Atomic uint8_t *)(subject->addr + 1)));
	ASSERT_EQ(0, madvise(subject->addr, page_size(), MADV_PAGEOUT));
	ASSERT_TRUE(has_swapped_pages());
	expect_id_if_read(_metadata, subject, 1, 20);
}

static int be_byte_reader(int control, void *arg)
{
	const struct subject *subject = arg;
	char byte;

	(void)control;
	return pread(subject->fd, &byte, 1, 0) != 1;
}

/*
 * A daemon that does not give its permission could stop all readers. Here, the test
 * itself is the daemon: a look-up that makes an event never ends.
 */
TEST_F(page, makes_no_fanotify_permission_event)
{
	const int fanotify = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC,
					   O_RDONLY | O_LARGEFILE);
	struct fanotify_response response = { .response = FAN_ALLOW };
	struct subject *const subject = &self->subject;
	struct fanotify_event_metadata event;
	struct child child;

	open_subject(_metadata, subject, variant->way, EXT4);
	ASSERT_TRUE(make_file(subject, &plain_elf));
	if (fanotify < 0 ||
	    fanotify_mark(fanotify, FAN_MARK_ADD, FAN_ACCESS_PERM, subject->fd,
			  NULL))
		SKIP(return, "not root, or no CONFIG_FANOTIFY_ACCESS_PERMISSIONS");
	/* Later kernels make no event for files that were opened before. */
	ASSERT_TRUE(reopen_subject(subject, O_RDONLY));
	ASSERT_TRUE(evict_file(subject->fd));
	expect_id_if_read(_metadata, subject, 1, 20);

	/* The mark works: read(2) does make one. */
	ASSERT_TRUE(start_child(&child, be_byte_reader, subject));
	ASSERT_EQ((ssize_t)sizeof(event), read(fanotify, &event, sizeof(event)));
	response.fd = event.fd;
	ASSERT_EQ((ssize_t)sizeof(response),
		  write(fanotify, &response, sizeof(response)));
	EXPECT_EQ(0, end_of_child(&child));
}

/* Only hugetlbfs itself knows its pages. */
TEST_F(page, that_is_huge)
{
	struct subject *const subject = &self->subject;
	char pages[32];

	open_subject(_metadata, subject, variant->way, TMPFS);
	if (read_file(HUGE_PAGES, self->huge_pages, sizeof(self->huge_pages))) {
		snprintf(pages, sizeof(pages), "%ld", atol(self->huge_pages) + 1);
		write_file(HUGE_PAGES, pages);
	}
	subject->fd = memfd_create("huge",
				   MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	subject->addr = mmap(NULL, HUGE_PAGE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_SHARED, subject->fd, 0);
	if (subject->addr == MAP_FAILED)
		SKIP(return, "no huge page is available");
	make_image(&subject->image, &plain_elf);
	memcpy(subject->addr, subject->image.bytes, subject->image.size);
	expect_id_if_read(_metadata, subject, 1, 20);
}

/*
 * A file whose pages are not resident, on each kind of file system.
 */

#define OVERLAY		SCRATCH "/overlay"
#define TREE		SCRATCH "/tree"

FIXTURE(file_system)
{
	struct subject subject;
};

FIXTURE_VARIANT(file_system)
{
	const char *type;
	const char *make;	/* the command that makes it in SCRATCH_IMAGE */
	bool is_full;		/* it is made with the files in TREE */
	bool is_below_overlay;
};

FIXTURE_VARIANT_ADD(file_system, overlay) {
	.type = "ext4",
	.make = "mkfs.ext4 -q -O ^has_journal " SCRATCH_IMAGE " 2M",
	.is_below_overlay = true,
};

FIXTURE_VARIANT_ADD(file_system, xfs) {
	.type = "xfs",
	.make = "truncate -s 300M " SCRATCH_IMAGE " && mkfs.xfs -q " SCRATCH_IMAGE,
};

FIXTURE_VARIANT_ADD(file_system, btrfs) {
	.type = "btrfs",
	.make = "truncate -s 128M " SCRATCH_IMAGE " && mkfs.btrfs -q " SCRATCH_IMAGE,
};

FIXTURE_VARIANT_ADD(file_system, vfat) {
	.type = "vfat",
	.make = "mkfs.vfat -C " SCRATCH_IMAGE " 4096",
};

FIXTURE_VARIANT_ADD(file_system, squashfs) {
	.type = "squashfs",
	.make = "mksquashfs " TREE " " SCRATCH_IMAGE " -no-progress",
	.is_full = true,
};

static int open_elf_in(const char *directory, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/elf", directory);
	return open(path, flags | O_CLOEXEC, 0700);
}

static bool make_file_in(const char *directory, const struct image *image)
{
	const int fd = open_elf_in(directory, O_RDWR | O_CREAT);
	const bool made = write_image(fd, image);

	close(fd);
	return made;
}

/* Make a file system with the file. Returns NULL, or why there cannot be one. */
static const char *make_disk(const struct image *image,
			     const struct _fixture_variant_file_system *variant)
{
	const char *missing = mount_scratch();

	if (missing)
		return missing;
	if (mkdir(OVERLAY, 0700) || mkdir(TREE, 0700) || !make_file_in(TREE, image))
		return "cannot make a file in a tmpfs";
	missing = make_scratch_disk(variant->type, variant->make);
	if (missing)
		return missing;
	if (!variant->is_full && !make_file_in(SCRATCH_DISK, image))
		return "cannot make a file on its file system";
	return umount2(SCRATCH_DISK, 0) ? "its file system is in use" : NULL;
}

FIXTURE_SETUP(file_system)
{
	struct subject *const subject = &self->subject;
	const char *directory = SCRATCH_DISK, *missing;
	struct elf elf = plain_elf;

	elf.segments[0].offset = 2 * page_size() - 8;
	elf.phoff = page_size() - 8;
	make_image(&subject->image, &elf);
	missing = make_disk(&subject->image, variant) ?:
		  mount_scratch_disk(variant->type, MS_RDONLY);
	if (variant->is_below_overlay) {
		directory = OVERLAY;
		if (!missing && mount("overlay", OVERLAY, "overlay", MS_RDONLY,
				      "lowerdir=" SCRATCH_DISK ":" TREE))
			missing = "no overlay, CONFIG_OVERLAY_FS";
	}
	if (missing)
		SKIP_SETUP(missing);
	subject->maps = open_maps(0);
	subject->fd = open_elf_in(directory, O_RDONLY);
	subject->addr = mmap(NULL, 2 * page_size(), PROT_READ, MAP_PRIVATE,
			     subject->fd, 0);
	ASSERT_TRUE(subject->addr != MAP_FAILED);
	ASSERT_EQ(0, resident_pages(subject->fd));
}

FIXTURE_TEARDOWN(file_system)
{
}

TEST_F(file_system, is_read_by_a_query)
{
	self->subject.way = QUERY;
	expect_id(_metadata, &self->subject, 1, 20);
}

#ifdef HAVE_PROCMAP_SCAN
TEST_F(file_system, is_not_read_by_a_scan)
{
	skip_without_scan(_metadata);
	self->subject.way = SCAN;
	expect_id(_metadata, &self->subject, 1, NOT_READ);
	EXPECT_EQ(0, resident_pages(self->subject.fd));
}

/* So has the next mapping of the file, for which nobody looks at it again. */
TEST_F(file_system, has_a_flag_only_where_its_build_id_is_wanted_and_needs_no_data)
{
	static const uint64_t wanted[] = { 0, NAMES, BUILD_IDS, ALL };
	const uint64_t addr = (uintptr_t)self->subject.addr;
	struct room room;
	unsigned int i, n;

	skip_without_scan(_metadata);
	ASSERT_TRUE(make_room(&room, 2, PATH_MAX));
	ASSERT_EQ(0, mprotect(self->subject.addr + page_size(), page_size(),
			      PROT_NONE));
	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct procmap_scan_arg arg =
			scan_arg(&room, addr, addr + 2 * page_size(), wanted[i]);

		if (wanted[i] == BUILD_IDS) {
			arg.data = 0;
			arg.data_size = 0;
		}
		ASSERT_EQ(2, procmap_scan(self->subject.maps, &arg));
		for (n = 0; n < 2; n++) {
			EXPECT_EQ(!(wanted[i] & BUILD_IDS),
				  !(room.vec[n].flags &
				    PROCMAP_VMA_BUILD_ID_NOT_READ));
			EXPECT_EQ(0u, room.vec[n].build_id_size);
		}
	}
}
#endif

/* QEMU can serve files of the host by 9p: this program is one. */
TEST(pages_of_9p_are_read_by_a_query_and_not_by_a_scan)
{
	uint8_t id[ID_MAX], expected[ID_MAX];
	const int maps = open_maps(0);
	char path[PATH_MAX] = SCRATCH_DISK;
	const char *missing;
	int fd, size;
	void *addr;

	ASSERT_LT(0, readlink("/proc/self/exe", path + strlen(SCRATCH_DISK),
			      sizeof(path) - sizeof(SCRATCH_DISK)));
	missing = mount_scratch();
	if (!missing && (mkdir(SCRATCH_DISK, 0700) ||
			 mount("procmap", SCRATCH_DISK, "9p", MS_RDONLY,
			       "trans=virtio,version=9p2000.L,cache=loose")))
		missing = "no 9p with the tag procmap";
	size = get_build_id(QUERY, maps, &plain_elf, expected);
	if (missing || !size)
		SKIP(return, "%s", missing ?: "this program has no build ID");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	addr = mmap(NULL, page_size(), PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_TRUE(addr != MAP_FAILED);
	ASSERT_EQ(0, resident_pages(fd));
#ifdef HAVE_PROCMAP_SCAN
	EXPECT_EQ(NOT_READ, get_build_id(SCAN, maps, addr, id));
#endif
	ASSERT_EQ(size, get_build_id(QUERY, maps, addr, id));
	EXPECT_EQ(0, memcmp(expected, id, size));
}

TEST_HARNESS_MAIN
