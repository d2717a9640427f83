/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: read addresses. */
#ifndef PROCFS_QUERY_INPUT_H
#define PROCFS_QUERY_INPUT_H

#include "options.h"

/**
 * struct input - a file with addresses
 * @name: its name, for messages.
 * @file: the stream.
 * @is_pipe: the writer may wait for the answers.
 * @has_address: an address was found.
 * @line: the number of lines that were read.
 * @text: the line that was read last.
 */
struct input {
	const char *name;
	FILE *file;
	bool is_pipe;
	bool has_address;
	size_t line;
	char text[4096];
};

void add_argument(struct options *options, const char *text);
void open_input(struct input *input, const char *path);
bool next_address(struct input *input, uint64_t *addr);
void read_addresses(struct options *options, struct input *input);
void close_input(struct input *input);

#endif /* PROCFS_QUERY_INPUT_H */
