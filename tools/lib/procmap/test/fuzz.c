// SPDX-License-Identifier: GPL-2.0
/*
 * Give the scanner and the readers of ELF files whatever libFuzzer thinks of. What begins
 * like an ELF file is one; all else is a text.
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

static void find_addresses(int fd, size_t size)
{
	const struct procmap_mapping mapping = { .flags = PROCMAP_READABLE, .end = size };
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
