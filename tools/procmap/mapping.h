/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: what a mapping is. */
#ifndef MAPPING_H
#define MAPPING_H

#include <procmap.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct answer - what was found for an address
 * @addr: the address; without one, the start of the mapping.
 * @vma: the mapping that covers it, or NULL.
 * @elf_address: with --elf-address, the one that symbols of the mapped file have there.
 * @elf: 1 if @elf_address is known; 0 if there is none; -errno if the file cannot be read.
 */
struct answer {
	uint64_t addr;
	const struct procmap_mapping *vma;
	uint64_t elf_address;
	int elf;
};

typedef void (*visit_fn)(void *context, const struct answer *answer);

/* The kernel appends this to the path of a file that was deleted. */
#define DELETED			" (deleted)"

void cut_deleted(char *path);
bool begins_with(const char *name, const char *prefix);
bool is_memory(const char *name);
bool has_file(const struct procmap_mapping *vma);
uint64_t file_offset(const struct procmap_mapping *vma, uint64_t addr);
void permissions(const struct procmap_mapping *vma, char text[5]);
int by_build_id(const struct procmap_mapping *x, const struct procmap_mapping *y);
int by_file(const void *a, const void *b);

#endif /* MAPPING_H */
