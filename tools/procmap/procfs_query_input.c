// SPDX-License-Identifier: GPL-2.0
/* procfs_query: read addresses, one per line. */
#include "procfs_query_input.h"
#include "tool.h"

#include <ctype.h>
#include <sys/stat.h>

/* Parse an address. Returns NULL, or the end of a message. */
static const char *parse_address(const char *text, size_t len, uint64_t *addr)
{
	size_t i = 0;

	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		i = 2;
	for (*addr = 0; i < len; i++) {
		const unsigned char c = text[i];

		if (!isxdigit(c))
			return "is not a hexadecimal address";
		if (*addr >> 60)
			return "is too large: an address has at most 64 bits";
		*addr = *addr << 4 | (isdigit(c) ? c - '0' :
						   tolower(c) - 'a' + 10);
	}
	return NULL;
}

static void add_address(struct options *options, uint64_t addr)
{
	options->addrs = room_for_one(options->addrs, options->nr_addrs,
				      &options->size_addrs, sizeof(addr));
	options->addrs[options->nr_addrs++] = addr;
}

void add_argument(struct options *options, const char *text)
{
	const char *problem;
	uint64_t addr;

	problem = parse_address(text, strlen(text), &addr);
	if (!*text)
		problem = "is not a hexadecimal address";
	if (problem)
		fail("argument '%s' %s", quote(text, strlen(text)), problem);
	add_address(options, addr);
	options->given |= OPT_ADDRESSES;
}

void open_input(struct input *input, const char *path)
{
	const bool is_stdin = !strcmp(path, "-");
	struct stat stat;

	input->name = is_stdin ? "standard input" : path;
	input->file = is_stdin ? stdin : fopen(path, "re");
	if (!input->file)
		fail("%s: %s: give a file with one address per line",
		     input->name, strerror(errno));
	input->is_pipe = is_stdin || (!fstat(fileno(input->file), &stat) &&
				      S_ISFIFO(stat.st_mode));
}

/* Returns false if the line is empty or a comment. */
static bool take_address(const struct input *input, size_t len, uint64_t *addr)
{
	const char *text = input->text;
	const char *const comment = memchr(text, '#', len);
	const char *problem;

	if (comment)
		len = comment - text;
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (!len)
		return false;
	problem = parse_address(text, len, addr);
	if (problem)
		fail("%s:%zu: '%s' %s", input->name, input->line,
		     quote(text, len), problem);
	return true;
}

/* Returns the length of the next line; 0 at the end of the input, or after an error. */
static size_t read_line(struct input *input)
{
	size_t len = 0;
	int c;

	while ((c = getc_unlocked(input->file)) != EOF) {
		if (len == sizeof(input->text))
			fail("%s:%zu: the line is too long: give one address per line",
			     input->name, input->line + 1);
		input->text[len++] = c;
		if (c == '\n')
			break;
	}
	return len;
}

/* Returns false at the end of the input. */
bool next_address(struct input *input, uint64_t *addr)
{
	size_t len;

	while ((len = read_line(input))) {
		input->line++;
		if (take_address(input, len, addr)) {
			input->has_address = true;
			return true;
		}
	}
	if (!feof(input->file))
		fail("%s:%zu: %s: give a file with one address per line",
		     input->name, input->line + 1, strerror(errno));
	if (!input->has_address)
		fail("%s:%zu: the file has no address: give one per line",
		     input->name, input->line);
	return false;
}

void read_addresses(struct options *options, struct input *input)
{
	uint64_t addr;

	while (next_address(input, &addr))
		add_address(options, addr);
}

void close_input(struct input *input)
{
	if (input->file && input->file != stdin)
		fclose(input->file);
}
