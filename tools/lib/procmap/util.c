// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* What all other files may use: copies of the caller's structures, and names. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* As in the text, so that all methods return the same names. */
static const char newline[] = "\\012";
#define NEWLINE_LEN	(sizeof(newline) - 1)

/* Enough for a name of PROCMAP_QUERY that consists of newlines, and a NUL. */
#define NAME_SIZE	(PATH_MAX * NEWLINE_LEN)

int take_struct(void *to, size_t size, const void *from)
{
	const unsigned char *const bytes = from;
	size_t given = 0, i;

	memset(to, 0, size);
	if (!from)
		return 0;
	memcpy(&given, from, sizeof(given));
	if (given < sizeof(given))
		return -EINVAL;
	for (i = size; i < given; i++)
		if (bytes[i])
			return -EINVAL;
	memcpy(to, from, given < size ? given : size);
	return 0;
}

/* The first call, when a handle is opened, makes room for nearly all names. */
int name_reserve(struct name_buffer *name, size_t size)
{
	char *bytes;

	if (size <= name->size)
		return 0;
	size = size < NAME_SIZE ? NAME_SIZE : size * 2;
	bytes = realloc(name->bytes, size);
	if (!bytes)
		return -ENOMEM;
	/* Checkers of memory do not know that an ioctl will write it. */
	if (!name->bytes)
		memset(bytes, 0, PATH_MAX);
	name->bytes = bytes;
	name->size = size;
	return 0;
}

/* In place, from the last byte to the first. */
int escape_name(struct name_buffer *name, size_t *len)
{
	size_t nr_newlines = 0, i;
	char *to;
	int err;

	if (!memchr(name->bytes, '\n', *len))
		return 0;
	for (i = 0; i < *len; i++)
		nr_newlines += name->bytes[i] == '\n';
	err = name_reserve(name, *len + nr_newlines * (NEWLINE_LEN - 1) + 1);
	if (err)
		return err;

	i = *len;
	*len += nr_newlines * (NEWLINE_LEN - 1);
	to = name->bytes + *len;
	*to = '\0';
	while (i--) {
		if (name->bytes[i] != '\n') {
			*--to = name->bytes[i];
		} else {
			to -= NEWLINE_LEN;
			memcpy(to, newline, NEWLINE_LEN);
		}
	}
	return 0;
}
