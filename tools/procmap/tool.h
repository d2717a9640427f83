/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: memory, numbers, and text on standard output. */
#ifndef TOOL_H
#define TOOL_H

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXIT_TROUBLE		2

#define fail(...)		errx(EXIT_TROUBLE, __VA_ARGS__)

/* Returns a formatted text that the caller frees. */
#define format(...)	({							\
	char *formatted;							\
										\
	(char *)need(asprintf(&formatted, __VA_ARGS__) < 0 ? NULL : formatted);	\
})

void *need(void *memory);
void fail_without_files(int err);
void *room_for_one(void *elements, size_t nr, size_t *room, size_t size);
bool parse_number(const char *text, unsigned long max, unsigned long *number);
uint64_t now_ns(clockid_t clock);
const char *quote(const char *text, size_t len);
char *escape(const char *path);

/**
 * struct output - output that is held back until all of it is known to be good
 * @file: the stream to write to.
 * @bytes: the output so far; end_output() frees it.
 * @len: the number of bytes.
 */
struct output {
	FILE *file;
	char *bytes;
	size_t len;
};

void begin_output(struct output *output);
void end_output(struct output *output, bool is_good);

void look_at_terminal(void);
size_t terminal_width(void);

/* The fewest columns for a name, even on a narrow terminal. */
#define NAME_WIDTH_MIN		20

enum colour {
	BOLD = 1,
	RED = 31,
	GREEN = 32,
	YELLOW = 33,
};

int print_coloured(FILE *out, enum colour colour, const char *text);
size_t print_whole_name(FILE *out, const char *name);
size_t print_name(FILE *out, const char *name, size_t column);
bool is_control(uint32_t c);

#endif /* TOOL_H */
