// SPDX-License-Identifier: GPL-2.0
/*
 * Give the scanner, snapshots and the readers of ELF files whatever libFuzzer thinks
 * of. What begins like an ELF file is one; all else is a text.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define NR_ADDRS	64
#define IMAGE		0x100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_thing)
{
	if (!true_thing)
		abort();
}

/* The file is mapped, as the library wants to know which one it is. */
static void find_addresses(int fd, size_t size)
{
	void *const map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	uint64_t address;
	size_t offset;
	int err;

	require(map != MAP_FAILED);
	require(!procmap_open_self(PROCMAP_ANY_METHOD, &procmap));
	require(!procmap_find(procmap, (uintptr_t)map, 0, &mapping));
	for (offset = 0; offset < size; offset = offset * 4 + 1) {
		err = procmap_elf_address(procmap, mapping, offset, &address);
		require(!err || err == -ENOENT || err == -ENOEXEC);
	}
	procmap_close(procmap);
	munmap(map, size);
}

/* Is each mapping found, and nothing where there is none? */
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
	len = read_build_id(fd, 0, size, id);
	require(len >= 0 && len <= PROCMAP_BUILD_ID_MAX);
	find_addresses(fd, size);

	/* As an image in the memory of a process. */
	require(pwrite(fd, data, size, IMAGE) == (ssize_t)size);
	require(read_build_id(fd, IMAGE, size, in_image) == len);
	require(!memcmp(id, in_image, len));
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

	require(!procmap_open_text((const char *)data, size, &procmap));
	while (!(err = procmap_next(procmap, &cursor, flags, &mapping))) {
		require(mapping->start >= last && mapping->start < mapping->end);
		require(cursor == mapping->end);
		require(strlen(mapping->name) <= mapping->name_len);
		require(!memchr(mapping->name, '\n', mapping->name_len));
		if (nr < NR_ADDRS)
			addrs[nr++] = mapping->start;
		last = mapping->end;
	}
	require(err == -ENOENT || err == -EBADMSG);
	for (i = 0; i < nr; i++) {
		require(!procmap_find(procmap, addrs[i], 0, &mapping));
		require(mapping->start <= addrs[i] && addrs[i] < mapping->end);
	}
	if (nr && !procmap_resolve(procmap, addrs, nr, 0, &resolved)) {
		require(resolved->nr_locations == nr && resolved->nr_mappings <= nr);
		for (i = 0; i < nr; i++)
			require(resolved->locations[i].mapping <
				resolved->nr_mappings);
		procmap_free_resolved(resolved);
	}
	take_snapshot(procmap);
	procmap_close(procmap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= SELFMAG && !memcmp(data, ELFMAG, SELFMAG))
		read_elf(data, size);
	else if (size)
		read_text(data, size);
	return 0;
}
