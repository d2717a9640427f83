// SPDX-License-Identifier: GPL-2.0
/*
 * Give the scanner, snapshots, tables and the readers of ELF files whatever libFuzzer
 * thinks of. What begins like an ELF file is one, and what begins with a byte of 0 are
 * events, and of 1, records of them; all else is a text.
 */
#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "procmap_table.h"

#define NR_ADDRS	64
#define IMAGE		0x100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_thing)
{
	if (!true_thing)
		abort();
}

static void find_addresses(int fd, size_t size)
{
	const struct procmap_mapping mapping = { .end = size };
	struct procmap_file *file;
	uint64_t address;
	size_t offset;
	int err;

	require(!procmap_open_file_fd(fd, &file));
	for (offset = 0; offset < size; offset = offset * 4 + 1) {
		err = procmap_file_address(file, offset, &address);
		require(!err || err == -ENOENT || err == -ENOEXEC);
		err = procmap_file_mapped_address(file, &mapping, offset, &address);
		require(!err || err == -ENOENT || err == -ENOEXEC);
	}
	procmap_close_file(file);
}

/* Abort unless each mapping is found, and nothing where there is none. */
static void take_snapshot(struct procmap *procmap)
{
	const struct procmap_mapping *mapping, *found;
	struct procmap_snapshot *snapshot;
	size_t i;

	if (procmap_snapshot_take(procmap, 0, &snapshot))
		return;
	for (i = 0; (mapping = procmap_snapshot_at(snapshot, i)); i++) {
		require(procmap_snapshot_find(snapshot, mapping->start) == mapping);
		require(procmap_snapshot_find(snapshot, mapping->end - 1) == mapping);
		found = procmap_snapshot_find(snapshot, mapping->end);
		require(!found || found == mapping + 1);
	}
	require(i == procmap_snapshot_count(snapshot));
	require(!procmap_snapshot_refresh(snapshot, procmap));
	procmap_snapshot_free(snapshot);
}

static void read_elf(const uint8_t *data, size_t size)
{
	uint8_t id[PROCMAP_BUILD_ID_MAX], in_image[PROCMAP_BUILD_ID_MAX];
	const int fd = memfd_create("elf", 0);
	int len;

	require(write(fd, data, size) == (ssize_t)size);
	len = read_build_id(fd, 0, id);
	require(len <= PROCMAP_BUILD_ID_MAX);
	require(len >= 0 || len == -EFBIG || len == -ENOEXEC);
	find_addresses(fd, size);

	/* As an image in the memory of a process. */
	require(pwrite(fd, data, size, IMAGE) == (ssize_t)size);
	require(read_build_id(fd, IMAGE, in_image) == len);
	require(len <= 0 || !memcmp(id, in_image, len));
	close(fd);
}

static void read_text(const uint8_t *data, size_t size)
{
	const unsigned int flags = PROCMAP_WANT_PAGE_SIZE;
	const struct procmap_mapping *mapping;
	const struct procmap_resolved *resolved;
	uint64_t addrs[NR_ADDRS];
	uint64_t cursor = 0, last = 0;
	struct procmap *procmap;
	size_t nr = 0, i;
	int err;

	err = procmap_open_text((const char *)data, size, NULL, &procmap);
	if (err) {
		require(err == -EBADMSG);
		return;
	}
	while (!(err = procmap_next(procmap, &cursor, flags, &mapping))) {
		require(mapping->start >= last && mapping->start < mapping->end);
		require(cursor == mapping->end);
		require(strlen(mapping->name) <= mapping->name_len);
		require(!memchr(mapping->name, '\n', mapping->name_len));
		if (nr < NR_ADDRS)
			addrs[nr++] = mapping->start;
		last = mapping->end;
	}
	require(err == -ENOENT);
	for (i = 0; i < nr; i++) {
		require(!procmap_find(procmap, addrs[i], 0, &mapping));
		require(mapping->start <= addrs[i] && addrs[i] < mapping->end);
	}
	if (nr && !procmap_resolve(procmap, addrs, nr, 0, &resolved)) {
		require(resolved->nr_addrs == nr);
		for (i = 0; i < nr; i++)
			require(resolved->mappings[i] &&
				resolved->mappings[i]->start <= addrs[i] &&
				addrs[i] < resolved->mappings[i]->end);
		procmap_free_resolved(resolved);
	}
	take_snapshot(procmap);
	procmap_close(procmap);
}

/* Events and questions of eight bytes each. Their numbers are small, so that they meet. */
static void read_events(const uint8_t *data, size_t size)
{
	const struct procmap_table_options options = {
		.size = sizeof(options),
		.flags = PROCMAP_TABLE_EVENTS_ONLY,
		.window = data[1],
		.keep_exited = data[2],
		.max_processes = data[3],
		.max_mappings = data[4],
		.max_bytes = data[5] ? data[5] * 8192 : 0,
	};
	const struct procmap_table_stats *stats;
	const struct procmap_table_mapping *found;
	char comm[PROCMAP_COMM_SIZE];
	struct procmap_table *table;
	int err = 0;

	require(!procmap_table_new(&options, &table));
	stats = procmap_table_get_stats(table);
	for (data += 8, size -= 8; size >= 8; data += 8, size -= 8) {
		const pid_t pid = (data[0] >> 4) - 1, tid = data[1] >> 4;
		const uint64_t time = data[2] | (uint64_t)data[3] << (data[0] & 8 ? 56 : 3);
		const struct procmap_mmap event = {
			.size = sizeof(event),
			.addr = (uint64_t)data[4] << (data[1] & 8 ? 56 : 12),
			.len = (uint64_t)data[5] << (data[1] & 4 ? 56 : 12),
			.pgoff = (uint64_t)data[6] << (data[1] & 2 ? 56 : 12),
			.ino = data[7] & 3,
			.build_id_size = data[7] >> 3,
			.prot = data[7],
			.filename = data[1] & 1 ? "//anon" : "/some/file",
		};

		switch (data[0] & 7) {
		case 0:
		case 1:
			err = procmap_table_mmap(table, pid, time, &event);
			break;
		case 2:
			err = procmap_table_fork(table, pid, pid, tid, time);
			break;
		case 3:
			err = procmap_table_exec(table, pid, time);
			break;
		case 4:
			err = procmap_table_comm(table, pid, tid, time, "name");
			break;
		case 5:
			err = procmap_table_exit(table, pid, pid, time);
			break;
		case 6:
			err = procmap_table_lost(table, time);
			break;
		default:
			err = procmap_table_find(table, pid, time, event.addr, &found);
			require(err || (found->mapping->start <= event.addr &&
					event.addr < found->mapping->end &&
					found->from <= time));
			require(!procmap_table_get_comm(table, pid, time, comm) ||
				pid <= 0 || err != -EINVAL);
		}
		require(!err || err == -EINVAL || err == -ENOENT || err == -ENOSPC);
		require(!options.max_processes || stats->processes <= options.max_processes);
		require(!options.max_mappings ||
			stats->mappings <= options.max_mappings);
	}
	procmap_table_free(table);
}

/* Each record in memory of its own, as long as it says, or up to the end of the input. */
static void read_records(const uint8_t *data, size_t size)
{
	const struct procmap_table_options options = {
		.size = sizeof(options),
		.flags = PROCMAP_TABLE_EVENTS_ONLY,
		.window = data[1],
		.max_mappings = data[2],
	};
	const struct perf_event_attr attr = {
		.sample_type = PERF_SAMPLE_TIME | data[3] | (uint64_t)data[4] << 8 |
			       (uint64_t)data[5] << 16,
		.sample_id_all = 1,
		.build_id = data[6] & 1,
	};
	struct perf_event_header header, *record;
	struct procmap_table *table;
	int err;

	require(!procmap_table_new(&options, &table));
	for (data += 8, size -= 8; size >= sizeof(header);
	     data += header.size, size -= header.size) {
		memcpy(&header, data, sizeof(header));
		if (header.size > size)
			header.size = size;
		if (header.size < sizeof(header))
			header.size = sizeof(header);
		record = malloc(header.size);
		memcpy(record, data, header.size);
		*record = header;
		err = procmap_table_record(table, &attr, record);
		require(!err || err == -EINVAL);
		free(record);
	}
	procmap_table_free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= SELFMAG && !memcmp(data, ELFMAG, SELFMAG))
		read_elf(data, size);
	else if (size >= 8 && !*data)
		read_events(data, size);
	else if (size >= 8 && *data == 1)
		read_records(data, size);
	else if (size)
		read_text(data, size);
	return 0;
}
