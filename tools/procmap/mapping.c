// SPDX-License-Identifier: GPL-2.0
/* procfs_query: what a mapping is, and the order of mappings. */
#include "mapping.h"

#include <string.h>

/* The hexadecimal digits in the name of a System V shared memory segment. */
#define SYSV_KEY_LEN		8

/* Cut off the remark of the kernel after the path of a deleted file. */
void cut_deleted(char *path)
{
	const size_t len = strlen(path);

	if (len > strlen(DELETED) && !strcmp(path + len - strlen(DELETED), DELETED))
		path[len - strlen(DELETED)] = '\0';
}

bool begins_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/*
 * Return whether this is the name of memory that the kernel keeps in a file which never was
 * in a directory. It looks deleted, and each piece of memory has an inode of its own.
 */
bool is_memory(const char *name)
{
	static const char *const names[] = {
		"/[aio]", "/anon_hugepage", "/dev/zero", "/drm mm object",
		"/i915", "/secretmem",
	};
	static const char sysv[] = "/SYSV";
	size_t i;

	if (begins_with(name, "/memfd:") || begins_with(name, "/dmabuf:"))
		return true;
	if (begins_with(name, sysv)) {
		name += strlen(sysv);
		return strspn(name, "0123456789abcdef") == SYSV_KEY_LEN &&
		       !strcmp(name + SYSV_KEY_LEN, DELETED);
	}
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (begins_with(name, names[i]))
			return !strcmp(name + strlen(names[i]), DELETED);
	}
	return false;
}

bool has_file(const struct procmap_mapping *vma)
{
	return vma->inode || vma->dev_major || vma->dev_minor;
}

uint64_t file_offset(const struct procmap_mapping *vma, uint64_t addr)
{
	return addr - vma->start + vma->offset;
}

void permissions(const struct procmap_mapping *vma, char text[5])
{
	text[0] = vma->flags & PROCMAP_READABLE ? 'r' : '-';
	text[1] = vma->flags & PROCMAP_WRITABLE ? 'w' : '-';
	text[2] = vma->flags & PROCMAP_EXECUTABLE ? 'x' : '-';
	text[3] = vma->flags & PROCMAP_SHARED ? 's' : 'p';
	text[4] = '\0';
}

/* Files that cannot be read come first, then those without a build ID. */
int by_build_id(const struct procmap_mapping *x, const struct procmap_mapping *y)
{
	const int x_size = x->build_id_size < 0 ? -1 : x->build_id_size;
	const int y_size = y->build_id_size < 0 ? -1 : y->build_id_size;

	if (x_size != y_size)
		return x_size < y_size ? -1 : 1;
	return x_size > 0 ? memcmp(x->build_id, y->build_id, x_size) : 0;
}

/*
 * Device and inode alone are no identity: two subvolumes of btrfs have them in common,
 * and so have two layers of overlays.
 */
int by_file(const void *a, const void *b)
{
	const struct procmap_mapping *const x = a, *const y = b;
	const int order = by_build_id(x, y);

	if (order)
		return order;
	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->dev_major != y->dev_major)
		return x->dev_major < y->dev_major ? -1 : 1;
	if (x->dev_minor != y->dev_minor)
		return x->dev_minor < y->dev_minor ? -1 : 1;
	return strcmp(x->name, y->name);
}
