// SPDX-License-Identifier: GPL-2.0
/*
 * Tables that get the records of perf_event_open(2).
 */
#include <linux/perf_event.h>
#include <time.h>

#include "kselftest_harness.h"
#include "procmap_table.h"
#include "util.h"

#define ADDR		0x11000

static const struct procmap_mmap library = {
	.size = sizeof(library), .addr = ADDR, .len = 0x1000, .pgoff = 0x1000, .ino = 5, .maj = 8,
	.prot = PROT_READ, .filename = "/some/library",
};

static const struct procmap_table_options events_only = {
	.size = sizeof(events_only),
	.flags = PROCMAP_TABLE_EVENTS_ONLY,
	.window = UINT64_MAX,
};

/* Return the inode of what is mapped there, or an error. */
static int inode_at(struct procmap_table *table, pid_t pid, uint64_t time)
{
	const struct procmap_table_mapping *found;
	int err;

	err = procmap_table_find(table, pid, time, ADDR, &found);
	return err ? err : (int)found->mapping->inode;
}

/* A table of events. */
FIXTURE(table) {
	struct procmap_table *table;
};

FIXTURE_SETUP(table)
{
	ASSERT_EQ(0, procmap_table_new(&events_only, &self->table));
}

FIXTURE_TEARDOWN(table)
{
	procmap_table_free(self->table);
}

/* The fields of a record are written to here. */
#define RECORD_MAX	512

/* Any that sample_id_all may add. */
#define ALL_IDS		(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | \
			 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/**
 * struct packed_record - a record that is being made
 * @header: its header.
 * @body: the rest.
 */
struct packed_record {
	struct perf_event_header header;
	char body[RECORD_MAX];
};

static void pack(struct packed_record *record, const void *bytes, size_t size)
{
	memcpy((char *)record + record->header.size, bytes, size);
	record->header.size += size;
}

static void pack_u32(struct packed_record *record, uint32_t value)
{
	pack(record, &value, sizeof(value));
}

static void pack_u64(struct packed_record *record, uint64_t value)
{
	pack(record, &value, sizeof(value));
}

static void pack_string(struct packed_record *record, const char *string)
{
	char padded[64] = "";

	strcpy(padded, string);
	pack(record, padded, (strlen(string) / 8 + 1) * 8);
}

static void begin_record(struct packed_record *record, unsigned int type,
			 unsigned int misc)
{
	*record = (struct packed_record) {
		.header = { .type = type, .misc = misc, .size = sizeof(record->header) },
	};
}

/* The fields of sample_id_all. All but the time have a value that is no time. */
static void end_record(struct packed_record *record, const struct perf_event_attr *attr,
		       uint64_t time)
{
	static const uint64_t fields[] = {
		PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
		PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (attr->sample_type & fields[i])
			pack_u64(record, fields[i] == PERF_SAMPLE_TIME ? time :
					 0xeeeeeeee00000000 + i);
}

static void pack_mmap2(struct packed_record *record, const struct procmap_mmap *mapped,
		       pid_t pid, unsigned int misc)
{
	const uint8_t build_id_size[4] = { mapped->build_id_size };

	begin_record(record, PERF_RECORD_MMAP2, misc);
	pack_u32(record, pid);
	pack_u32(record, pid);
	pack_u64(record, mapped->addr);
	pack_u64(record, mapped->len);
	pack_u64(record, mapped->pgoff);
	if (mapped->build_id_size) {
		pack(record, build_id_size, sizeof(build_id_size));
		pack(record, mapped->build_id, 20);
	} else {
		pack_u32(record, mapped->maj);
		pack_u32(record, mapped->min);
		pack_u64(record, mapped->ino);
		pack_u64(record, 77);
	}
	pack_u32(record, mapped->prot);
	pack_u32(record, mapped->flags);
	pack_string(record, mapped->filename);
}

static void pack_task(struct packed_record *record, unsigned int type, pid_t pid,
		      pid_t ppid, unsigned int misc)
{
	begin_record(record, type, misc);
	pack_u32(record, pid);
	pack_u32(record, ppid);
	pack_u32(record, pid);
	pack_u32(record, ppid);
	pack_u64(record, 0xdddddddddddddddd);
}

static void pack_comm(struct packed_record *record, pid_t pid, const char *comm,
		      unsigned int misc)
{
	begin_record(record, PERF_RECORD_COMM, misc);
	pack_u32(record, pid);
	pack_u32(record, pid);
	pack_string(record, comm);
}

static struct perf_event_attr attr_of(uint64_t sample_type)
{
	return (struct perf_event_attr) {
		.size = sizeof(struct perf_event_attr),
		.sample_type = sample_type,
		.sample_id_all = 1,
	};
}

/* In a buffer that ends where the record does, for valgrind and the sanitizers. */
static int pass_bytes(struct procmap_table *table, const struct perf_event_attr *attr,
		      const struct packed_record *record)
{
	const size_t size = record->header.size < sizeof(record->header) ?
			    sizeof(record->header) : record->header.size;
	void *const copy = memcpy(malloc(size), record, size);
	int err;

	err = procmap_table_record(table, attr, copy);
	free(copy);
	return err;
}

/* With the fields of sample_id_all at its end. */
static int pass_on(struct procmap_table *table, const struct perf_event_attr *attr,
		   struct packed_record *record, uint64_t time)
{
	end_record(record, attr, time);
	return pass_bytes(table, attr, record);
}

TEST_F(table, takes_what_is_special_in_records)
{
	struct perf_event_attr attr = attr_of(ALL_IDS);
	struct procmap_mmap mapped = library;
	const struct procmap_table_mapping *found;
	const struct procmap_table_stats *stats;
	struct packed_record record;
	struct procmap_table *const table = self->table;
	int i;

	mapped.build_id_size = 3;
	memcpy(mapped.build_id, "abc", 3);
	stats = procmap_table_get_stats(table);

	/* The kernel's, a guest's, those of other namespaces, and other types. */
	for (i = 0; i < 8; i++) {
		pack_mmap2(&record, &mapped, i == 0 ? -1 : i == 1 ? 0 : 1,
			   i == 2 ? PERF_RECORD_MISC_KERNEL :
			   i == 3 ? PERF_RECORD_MISC_GUEST_USER : PERF_RECORD_MISC_USER);
		if (i == 4)
			pack_task(&record, PERF_RECORD_EXIT, -1, -1, 0);
		if (i == 5)
			pack_comm(&record, 0, "x", PERF_RECORD_MISC_COMM_EXEC);
		if (i == 6)
			record.header.type = PERF_RECORD_SAMPLE;
		if (i == 7)
			record.header.type = 12345;
		EXPECT_EQ(0, pass_on(table, &attr, &record, 10)) TH_LOG("%d", i);
	}
	EXPECT_EQ(0u, stats->events);
	EXPECT_EQ(0u, stats->processes);

	/*
	 * A build ID only if the event has asked for it, whatever the record says. The path may
	 * have been too long.
	 */
	attr.build_id = 1;
	mapped.filename = "//toolong";
	pack_mmap2(&record, &mapped, 1, PERF_RECORD_MISC_USER |
		   PERF_RECORD_MISC_MMAP_BUILD_ID);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 10));
	ASSERT_EQ(0, procmap_table_find(table, 1, 11, ADDR, &found));
	EXPECT_EQ(3, found->mapping->build_id_size);
	EXPECT_EQ(0, memcmp("abc", found->mapping->build_id, 3));
	EXPECT_EQ(0u, found->mapping->inode);
	EXPECT_EQ(0x1000, found->mapping->offset);
	EXPECT_EQ(PROCMAP_READABLE, found->mapping->flags);
	mapped.build_id_size = 21;
	pack_mmap2(&record, &mapped, 1, PERF_RECORD_MISC_USER |
		   PERF_RECORD_MISC_MMAP_BUILD_ID);
	EXPECT_EQ(-EINVAL, pass_on(table, &attr, &record, 20));
	mapped.build_id_size = 0;
	attr.build_id = 0;
	pack_mmap2(&record, &mapped, 1, PERF_RECORD_MISC_USER |
		   PERF_RECORD_MISC_MMAP_BUILD_ID);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 30));
	EXPECT_EQ(5, inode_at(table, 1, 31));
	/* An event that has asked for it, when the kernel did not find it in memory. */
	attr.build_id = 1;
	pack_mmap2(&record, &mapped, 1, PERF_RECORD_MISC_USER);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 30));
	ASSERT_EQ(0, procmap_table_find(table, 1, 31, ADDR, &found));
	EXPECT_EQ(-EAGAIN, found->mapping->build_id_size);
	EXPECT_EQ(5u, found->mapping->inode);

	/* A child, which executes another program. */
	pack_task(&record, PERF_RECORD_FORK, 3, 1, 0);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 31));
	EXPECT_EQ(5, inode_at(table, 3, 32));
	pack_comm(&record, 3, "program", PERF_RECORD_MISC_COMM_EXEC);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 33));
	EXPECT_EQ(-ENOENT, inode_at(table, 3, 34));

	/* A process whose parent is elsewhere, and what perf synthesizes. */
	pack_task(&record, PERF_RECORD_FORK, 1, 0, 0);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 40));
	EXPECT_EQ(-ENOENT, inode_at(table, 1, 41));
	pack_task(&record, PERF_RECORD_FORK, 2, 1, PERF_RECORD_MISC_FORK_EXEC);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 35));
	EXPECT_EQ(-ENOENT, inode_at(table, 2, 41));
	pack_task(&record, PERF_RECORD_FORK, 1, 1, PERF_RECORD_MISC_FORK_EXEC);
	ASSERT_EQ(0, pass_on(table, &attr, &record, 31));
	EXPECT_EQ(5, inode_at(table, 1, 33));
}

TEST_F(table, refuses_records_that_make_no_sense)
{
	/* The bytes that each needs besides its header and the last fields. */
	const size_t needed[] = { 32 + 1, 64 + 1, 8 + 1, 24, 24, 0 };
	struct perf_event_attr attr = attr_of(ALL_IDS);
	struct packed_record records[6];
	struct procmap_table *const table = self->table;
	size_t i, j, full;

	pack_mmap2(&records[0], &library, 1, 0);
	records[0].header.type = PERF_RECORD_MMAP;
	pack_mmap2(&records[1], &library, 1, 0);
	pack_comm(&records[2], 1, "a", 0);
	pack_task(&records[3], PERF_RECORD_FORK, 1, 2, 0);
	pack_task(&records[4], PERF_RECORD_EXIT, 1, 2, 0);
	begin_record(&records[5], PERF_RECORD_LOST, 0);
	for (i = 0; i < 6; i++) {
		end_record(&records[i], &attr, 10);
		EXPECT_EQ(0, pass_bytes(table, &attr, &records[i])) TH_LOG("%zu", i);
		/* Without its end. */
		full = sizeof(records[i].header) + needed[i] + 48;
		for (j = 0; j < full; j++) {
			records[i].header.size = j;
			EXPECT_EQ(-EINVAL, pass_bytes(table, &attr, &records[i]))
				TH_LOG("%zu: %zu of %zu bytes", i, j, full);
		}
		/* Without the end of its name. */
		if (needed[i] % 2) {
			memset((char *)&records[i] + full - 49, 'x', 49);
			records[i].header.size = full;
			EXPECT_EQ(-EINVAL, pass_bytes(table, &attr, &records[i]));
		}
	}

	EXPECT_EQ(-EINVAL, procmap_table_record(NULL, &attr, &records[5].header));
	EXPECT_EQ(-EINVAL, procmap_table_record(table, NULL, &records[5].header));
	EXPECT_EQ(-EINVAL, procmap_table_record(table, &attr, NULL));
	records[5].header.size = 56;
	EXPECT_EQ(0, procmap_table_record(table, &attr, &records[5].header));
	attr.sample_id_all = 0;
	EXPECT_EQ(-EINVAL, procmap_table_record(table, &attr, &records[5].header));
	attr = attr_of(PERF_SAMPLE_TID);
	EXPECT_EQ(-EINVAL, procmap_table_record(table, &attr, &records[5].header));
}

#define RING_PAGES	64

/**
 * struct ring - the ring of a process
 * @page: the ring.
 * @attr: the attributes of the event.
 * @table: gets what is in the ring.
 * @child: the process, which has executed cat(1).
 */
FIXTURE(ring) {
	struct perf_event_mmap_page *page;
	struct perf_event_attr attr;
	struct procmap_table *table;
	struct child child;
};

FIXTURE_VARIANT(ring) {
	uint64_t sample_type;
	bool mmap2;
	bool build_id;
};

/* PERF_SAMPLE_IP is in no record but a sample. */
FIXTURE_VARIANT_ADD(ring, mmap) {
	.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_IP,
};

FIXTURE_VARIANT_ADD(ring, mmap2) {
	.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_CPU,
	.mmap2 = true,
};

FIXTURE_VARIANT_ADD(ring, build_id) {
	.sample_type = ALL_IDS,
	.mmap2 = true,
	.build_id = true,
};

FIXTURE_SETUP(ring)
{
	int fd;

	self->attr = attr_of(variant->sample_type);
	self->attr.type = PERF_TYPE_SOFTWARE;
	self->attr.config = PERF_COUNT_SW_DUMMY;
	self->attr.mmap = 1;
	self->attr.mmap_data = 1;
	self->attr.mmap2 = variant->mmap2;
	self->attr.build_id = variant->build_id;
	self->attr.comm = 1;
	self->attr.comm_exec = 1;
	self->attr.task = 1;
	self->attr.use_clockid = 1;
	self->attr.clockid = CLOCK_MONOTONIC;
	self->attr.exclude_kernel = 1;

	ASSERT_EQ(0, procmap_table_new(&events_only, &self->table));
	ASSERT_TRUE(start_child(&self->child, obey, NULL) && await(self->child.control));
	fd = syscall(SYS_perf_event_open, &self->attr, self->child.pid, -1, -1,
		     PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		SKIP_SETUP("no permission to open events");
	self->page = mmap(NULL, (1 + RING_PAGES) * getpagesize(), PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	close(fd);
	ASSERT_TRUE(tell(&self->child, EXECUTE_CAT));
}

FIXTURE_TEARDOWN(ring)
{
	stop_child(&self->child);
	procmap_table_free(self->table);
}

/* Pass on all records of a ring. Returns whether each was taken. */
static bool drain(struct procmap_table *table, const struct perf_event_attr *attr,
		  struct perf_event_mmap_page *page)
{
	const char *const data = (char *)page + getpagesize();
	const struct perf_event_header *record;
	const uint64_t head = page->data_head;
	bool taken = true;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* Less than all of the ring: no record goes beyond its end. */
	if (head > RING_PAGES * (uint64_t)getpagesize())
		return false;
	for (; page->data_tail < head; page->data_tail += record->size) {
		record = (const void *)(data + page->data_tail);
		taken &= !procmap_table_record(table, attr, record);
	}
	return taken;
}

TEST_F(ring, has_what_the_text_has)
{
	const pid_t pid = self->child.pid;
	const struct procmap_table_mapping *found;
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	char comm[PROCMAP_COMM_SIZE];
	int nr = 0, executable = 0, build_ids = 0;
	uint64_t cursor = 0, addr = 0;

	EXPECT_TRUE(drain(self->table, &self->attr, self->page));
	ASSERT_EQ(0, procmap_open_pid(pid, BY(PROCMAP_BY_TEXT), &procmap));
	while (!procmap_next(procmap, &cursor, PROCMAP_FILE_BACKED | PROCMAP_WANT_BUILD_ID,
			     &mapping)) {
		ASSERT_EQ(0, procmap_table_find(self->table, pid, UINT64_MAX,
						mapping->start, &found));
		EXPECT_EQ(mapping->offset - mapping->start,
			  found->mapping->offset - found->mapping->start);
		/* Of a stacked file system, an event has the file below. */
		EXPECT_STREQ(strrchr(mapping->name, '/'),
			     strrchr(found->mapping->name, '/'));
		EXPECT_EQ(mapping->flags & PROCMAP_EXECUTABLE,
			  found->mapping->flags & PROCMAP_EXECUTABLE);
		build_ids += found->mapping->build_id_size != -EAGAIN;
		/* On overlayfs, the file of pages that were all written to is not known. */
		if (found->mapping->build_id_size != -EAGAIN &&
		    mapping->build_id_size != -ESTALE) {
			EXPECT_EQ(mapping->build_id_size,
				  found->mapping->build_id_size);
			EXPECT_EQ(0, memcmp(mapping->build_id, found->mapping->build_id,
					    mapping->build_id_size));
		}
		EXPECT_EQ(variant->mmap2 && found->mapping->build_id_size < 0,
			  found->mapping->inode > 0);
		nr++;
		if (!(mapping->flags & PROCMAP_EXECUTABLE))
			continue;
		executable++;
		addr = mapping->start;
	}
	procmap_close(procmap);
	EXPECT_LT(2, nr);
	EXPECT_LT(0, executable);
	EXPECT_EQ(variant->build_id, build_ids > 0);
	EXPECT_EQ(0, procmap_table_get_comm(self->table, pid, UINT64_MAX, comm));
	EXPECT_STREQ("cat", comm);

	ASSERT_EQ(0, procmap_table_find(self->table, pid, UINT64_MAX, addr, &found));
	EXPECT_EQ(UINT64_MAX, found->until);
	stop_child(&self->child);
	EXPECT_TRUE(drain(self->table, &self->attr, self->page));
	ASSERT_EQ(0, procmap_table_find(self->table, pid, UINT64_MAX, addr, &found));
	EXPECT_GT(UINT64_MAX, found->until);
}

TEST_HARNESS_MAIN
