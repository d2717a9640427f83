// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The records of perf_event_open(2) as events of a table.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "procmap_table.h"

/* Records begin with this, behind their header. */
struct head {
	uint32_t pid;
	uint32_t tid;
};

struct task {
	uint32_t pid;
	uint32_t ppid;
	uint32_t tid;
	uint32_t ptid;
	uint64_t time;
};

struct mmap_head {
	uint32_t pid;
	uint32_t tid;
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff;
};

/* The fields of PERF_RECORD_MMAP2 between that and the name. */
struct mmap2_file {
	union {
		struct {
			uint32_t maj;
			uint32_t min;
			uint64_t ino;
			uint64_t ino_generation;
		};
		struct {
			uint8_t build_id_size;
			uint8_t reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t prot;
	uint32_t flags;
};

/**
 * struct body - the part of a record that was not read yet
 * @at: its first byte.
 * @size: bytes up to the fields of sample_id_all.
 * @time: of those fields.
 */
struct body {
	const char *at;
	size_t size;
	uint64_t time;
};

/*
 * The fields that sample_id_all adds are the last of a record. Each has eight bytes, and
 * these are behind the time.
 */
static bool split_record(const struct perf_event_attr *attr,
			 const struct perf_event_header *header, struct body *body)
{
	const uint64_t behind = attr->sample_type &
				(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
				 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
	const size_t time = sizeof(body->time) * (1 + __builtin_popcountll(behind));
	const size_t added = time + (attr->sample_type & PERF_SAMPLE_TID ? 8 : 0);

	if (header->size < sizeof(*header) + added)
		return false;
	memcpy(&body->time, (const char *)header + header->size - time,
	       sizeof(body->time));
	body->at = (const char *)(header + 1);
	body->size = header->size - sizeof(*header) - added;
	return true;
}

/* Read the next fields. A record that is too short for them makes no sense. */
static bool read_fields(struct body *body, void *fields, size_t size)
{
	if (body->size < size)
		return false;
	memcpy(fields, body->at, size);
	body->at += size;
	body->size -= size;
	return true;
}

/* The string at the end, or NULL if it has none. */
static const char *read_string(const struct body *body)
{
	return memchr(body->at, 0, body->size) ? body->at : NULL;
}

/* The kernel has the ID -1, and a process of another PID namespace has 0. */
static bool is_process(uint32_t pid)
{
	return (pid_t)pid > 0;
}

/*
 * PERF_RECORD_MISC_MMAP_BUILD_ID is also set in records of an event that did not ask for
 * build IDs, and which have the inode, if another event did.
 */
static int mmap_record(struct procmap_table *table, const struct perf_event_attr *attr,
		       const struct perf_event_header *record)
{
	const unsigned int mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct mmap2_file file = {
		.prot = record->misc & PERF_RECORD_MISC_MMAP_DATA ? 0 : PROT_EXEC,
	};
	struct procmap_mmap event;
	struct mmap_head head;
	struct body body;

	if (!split_record(attr, record, &body) ||
	    !read_fields(&body, &head, sizeof(head)) ||
	    (record->type == PERF_RECORD_MMAP2 &&
	     !read_fields(&body, &file, sizeof(file))))
		return -EINVAL;
	event = (struct procmap_mmap) {
		.size = sizeof(event),
		.addr = head.addr,
		.len = head.len,
		.pgoff = head.pgoff,
		.filename = read_string(&body),
		.prot = file.prot,
		.flags = file.flags,
	};
	if (attr->build_id && record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		if (file.build_id_size > sizeof(file.build_id))
			return -EINVAL;
		event.build_id_size = file.build_id_size;
		memcpy(event.build_id, file.build_id, file.build_id_size);
	} else {
		event.ino = file.ino;
		event.maj = file.maj;
		event.min = file.min;
	}
	/* Others are of the kernel, or of a guest. */
	if (!is_process(head.pid) ||
	    (mode != PERF_RECORD_MISC_USER && mode != PERF_RECORD_MISC_CPUMODE_UNKNOWN))
		return 0;
	return procmap_table_mmap(table, head.pid, body.time, &event);
}

static int comm_record(struct procmap_table *table, const struct perf_event_attr *attr,
		       const struct perf_event_header *record)
{
	const char *comm;
	struct body body;
	struct head head;
	int err = 0;

	if (!split_record(attr, record, &body) || !read_fields(&body, &head, sizeof(head)))
		return -EINVAL;
	comm = read_string(&body);
	if (!comm)
		return -EINVAL;
	if (!is_process(head.pid) || !is_process(head.tid))
		return 0;
	if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
		err = procmap_table_exec(table, head.pid, body.time);
	return err ? err : procmap_table_comm(table, head.pid, head.tid, body.time, comm);
}

static int task_record(struct procmap_table *table, const struct perf_event_attr *attr,
		       const struct perf_event_header *record)
{
	struct task task;
	struct body body;

	if (!split_record(attr, record, &body) || !read_fields(&body, &task, sizeof(task)))
		return -EINVAL;
	if (!is_process(task.pid) || !is_process(task.tid))
		return 0;
	if (record->type == PERF_RECORD_EXIT)
		return procmap_table_exit(table, task.pid, task.tid, body.time);
	/* Nothing is inherited from another PID namespace, or if perf says so. */
	if (task.ppid != task.pid &&
	    (!is_process(task.ppid) || record->misc & PERF_RECORD_MISC_FORK_EXEC))
		return procmap_table_exec(table, task.pid, body.time);
	return procmap_table_fork(table, task.pid, task.tid, task.ppid, body.time);
}

static int lost_record(struct procmap_table *table, const struct perf_event_attr *attr,
		       const struct perf_event_header *record)
{
	struct body body;

	if (!split_record(attr, record, &body))
		return -EINVAL;
	return procmap_table_lost(table, body.time);
}

int procmap_table_record(struct procmap_table *table, const struct perf_event_attr *attr,
			 const struct perf_event_header *record)
{
	if (!table || !attr || !record || !attr->sample_id_all ||
	    !(attr->sample_type & PERF_SAMPLE_TIME))
		return -EINVAL;
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return mmap_record(table, attr, record);
	case PERF_RECORD_COMM:
		return comm_record(table, attr, record);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return task_record(table, attr, record);
	case PERF_RECORD_LOST:
		return lost_record(table, attr, record);
	default:
		return 0;
	}
}
