// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * The text of /proc/<pid>/maps and smaps, line by line.
 *
 * The text may be a saved file that somebody has changed, so every byte is
 * checked before it is relied on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* The kernel returns about a page per read, unless a line is longer. */
#define READ_SIZE	(16 * 1024)

/*
 * The rest of a line. @end points to its newline, or to the CR in front of it, which
 * ends every loop over digits, blanks or a word.
 */
struct line {
	const char *at;
	const char *end;
};

static bool is_saved(const struct text *text)
{
	return text->fd < 0;
}

void text_restart(struct text *text)
{
	text->begin = 0;
	if (!is_saved(text)) {
		text->end = 0;
		text->pos = 0;
	}
	text->passed = 0;
	text->seen_line = false;
}

void text_close(struct text *text)
{
	if (text->size)
		free(text->bytes);
	if (text->fd >= 0)
		close(text->fd);
}

/* Move unread bytes to the start of the buffer; grow it if it is still full. */
static int make_room(struct text *text)
{
	char *bytes;

	if (text->begin) {
		memmove(text->bytes, text->bytes + text->begin,
			text->end - text->begin);
		text->end -= text->begin;
		text->begin = 0;
	}
	if (text->end < text->size)
		return 0;

	bytes = realloc(text->bytes, text->size + READ_SIZE);
	if (!bytes)
		return -ENOMEM;
	text->bytes = bytes;
	text->size += READ_SIZE;
	return 0;
}

/* Returns the number of bytes read, 0 at the end of the text, or -errno. */
static ssize_t read_more(struct text *text)
{
	ssize_t len;
	int err;

	if (is_saved(text))
		return 0;
	err = make_room(text);
	if (err)
		return err;
	do {
		len = pread(text->fd, text->bytes + text->end,
			    text->size - text->end, text->pos);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	text->end += len;
	text->pos += len;
	return len;
}

/*
 * The error for the end of the text. If the address space has gone, the text
 * ends early; a read from the start returns nothing then.
 */
static int end_error(const struct text *text)
{
	if (is_saved(text))
		return text->seen_line ? -ENOENT : -EBADMSG;
	return text->seen_line && !text_is_there(text->fd) ? -ENOENT : -ESRCH;
}

/*
 * Return whether all lines end in CR LF, as some editors save them: a CR at the end of one
 * may also be that of a name.
 */
static bool has_cr_in_each_line(const struct text *text)
{
	const char *const end = text->bytes + text->end;
	const char *line = text->bytes, *newline = NULL;

	while ((newline = memchr(line, '\n', end - line)) &&
	       newline > line && newline[-1] == '\r')
		line = newline + 1;
	return !newline;
}

/* Take the next line, which is valid until the next call. */
static int take_line(struct text *text, struct line *line)
{
	size_t searched = 0;
	const char *newline;
	ssize_t len;

	if (is_saved(text) && !text->begin)
		text->has_cr = has_cr_in_each_line(text);
	for (;;) {
		const size_t there = text->end - text->begin;

		/* Before the first read, there are no bytes to point to. */
		newline = there > searched ?
			  memchr(text->bytes + text->begin + searched, '\n',
				 there - searched) : NULL;
		if (newline) {
			line->at = text->bytes + text->begin;
			line->end = newline - text->has_cr;
			text->begin += newline + 1 - line->at;
			return 0;
		}
		searched = there;
		len = read_more(text);
		if (len < 0)
			return len;
		if (!len)
			return there ? -EBADMSG : end_error(text);
	}
}

static bool take_char(struct line *line, char wanted)
{
	if (*line->at != wanted)
		return false;
	line->at++;
	return true;
}

/* 1 + the value of each hexadecimal digit; 0 for other characters. */
static const uint8_t hex_digits[256] = {
	['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6,
	['6'] = 7, ['7'] = 8, ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

static bool take_hex(struct line *line, uint64_t *value)
{
	const char *at = line->at;
	uint64_t number = 0;
	unsigned int digit;

	while ((digit = hex_digits[(uint8_t)*at])) {
		number = (number << 4) + (digit - 1);
		at++;
	}
	if (at == line->at || at - line->at > 16)
		return false;
	line->at = at;
	*value = number;
	return true;
}

static bool take_decimal(struct line *line, uint64_t *value)
{
	const char *at = line->at;
	uint64_t number = 0;
	unsigned int digit;

	while ((digit = (uint8_t)*at - '0') <= 9) {
		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
		at++;
	}
	if (at == line->at)
		return false;
	line->at = at;
	*value = number;
	return true;
}

static bool take_device(struct line *line, uint32_t *number)
{
	uint64_t value;

	if (!take_hex(line, &value) || value > UINT32_MAX)
		return false;
	*number = value;
	return true;
}

/* WSL1 has a - for a private mapping. */
static bool take_permissions(struct line *line, uint32_t *flags)
{
	const char *const at = line->at + 1;

	if (!take_char(line, ' ') || line->end - at < 4)
		return false;
	if ((at[0] != 'r' && at[0] != '-') || (at[1] != 'w' && at[1] != '-') ||
	    (at[2] != 'x' && at[2] != '-') || (at[3] != 's' && at[3] != 'p' && at[3] != '-'))
		return false;
	line->at += 4;
	*flags = (at[0] == 'r' ? PROCMAP_READABLE : 0) |
		 (at[1] == 'w' ? PROCMAP_WRITABLE : 0) |
		 (at[2] == 'x' ? PROCMAP_EXECUTABLE : 0) |
		 (at[3] == 's' ? PROCMAP_SHARED : 0);
	return true;
}

static bool take_range(struct line *line, struct procmap_mapping *mapping)
{
	return take_hex(line, &mapping->start) && take_char(line, '-') &&
	       take_hex(line, &mapping->end) && mapping->start < mapping->end;
}

/* Take the fields between the permissions and the name. */
static bool take_fields(struct line *line, struct procmap_mapping *mapping)
{
	if (!take_char(line, ' ') || !take_hex(line, &mapping->offset) ||
	    !take_char(line, ' ') || !take_device(line, &mapping->dev_major) ||
	    !take_char(line, ':') || !take_device(line, &mapping->dev_minor) ||
	    !take_char(line, ' ') || !take_decimal(line, &mapping->inode))
		return false;
	if (line->at < line->end && *line->at != ' ')
		return false;
	while (*line->at == ' ')
		line->at++;
	/* No name begins with a CR: only some lines of this text end in CR LF. */
	return line->at == line->end || *line->at != '\r';
}

/* The vsyscall page has a line, but is not a mapping of the process. */
static bool is_vsyscall(const struct line *line)
{
	static const char name[] = "[vsyscall]";

	return line->end - line->at == sizeof(name) - 1 &&
	       !memcmp(line->at, name, sizeof(name) - 1);
}

/* Return whether this is one of the "Name: value" lines of smaps. */
static bool is_detail(const struct line *line)
{
	return *line->at >= 'A' && *line->at <= 'Z' &&
	       memchr(line->at, ':', line->end - line->at);
}

static bool take_kilobytes(struct line *line, const char *name, size_t name_len,
			   uint64_t *bytes)
{
	uint64_t number;

	if ((size_t)(line->end - line->at) <= name_len ||
	    memcmp(line->at, name, name_len))
		return false;
	line->at += name_len;
	while (take_char(line, ' '))
		;
	if (!take_decimal(line, &number) || number > UINT64_MAX / 1024)
		return false;
	*bytes = number * 1024;
	return true;
}

/* Take the page size from the details of a mapping in smaps, if it has any. */
static int take_page_size(struct text *text, uint64_t *page_size)
{
	static const char name[] = "KernelPageSize:";
	struct line line;
	int err;

	for (;;) {
		err = take_line(text, &line);
		if (err)
			return err == -ENOENT ? 0 : err;
		if (!is_detail(&line)) {
			text->begin = line.at - text->bytes;
			return 0;
		}
		if (take_kilobytes(&line, name, sizeof(name) - 1, page_size))
			return 0;
	}
}

static bool is_blank(const struct line *line)
{
	const char *at = line->at;

	while (*at == ' ' || *at == '\t')
		at++;
	return at == line->end;
}

static int set_name(struct procmap_mapping *mapping, const struct line *line,
		    struct name_buffer *name)
{
	const size_t len = line->end - line->at;
	int err;

	err = name_reserve(name, len + 1);
	if (err)
		return err;
	memcpy(name->bytes, line->at, len);
	name->bytes[len] = '\0';
	mapping->name = name->bytes;
	mapping->name_len = len;
	return 0;
}

int text_next(struct text *text, uint64_t addr, unsigned int flags,
	      struct procmap_mapping *mapping, struct name_buffer *name)
{
	struct line line;
	int err;

	for (;;) {
		err = take_line(text, &line);
		if (err)
			return err;
		if (text->seen_line && is_detail(&line))
			continue;
		if (is_saved(text) && is_blank(&line))
			continue;
		if (is_saved(text) && memchr(line.at, '\0', line.end - line.at))
			return -EBADMSG;
		if (!take_range(&line, mapping))
			return -EBADMSG;
		/* In the text of a process, the kernel guarantees that. */
		if (is_saved(text) && mapping->end <= text->passed)
			return -EBADMSG;
		text->seen_line = true;
		text->passed = mapping->end;
		if (mapping->end <= addr)
			continue;
		if (!take_permissions(&line, &mapping->flags))
			return -EBADMSG;
		if (flags & PERMISSIONS & ~mapping->flags)
			continue;
		if (!take_fields(&line, mapping))
			return -EBADMSG;
		if (passes(mapping, flags) && !is_vsyscall(&line))
			break;
	}

	err = set_name(mapping, &line, name);
	if (err)
		return err;
	mapping->page_size = 0;
	mapping->build_id_size = -EAGAIN;
	if (flags & PROCMAP_WANT_PAGE_SIZE)
		return take_page_size(text, &mapping->page_size);
	return 0;
}

int text_is_there(int fd)
{
	ssize_t len;
	char byte;

	do {
		len = pread(fd, &byte, 1, 0);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	return len ? 0 : -ESRCH;
}

int take_from_text(struct procmap *procmap, uint64_t addr, unsigned int flags,
		   struct procmap_mapping *mapping)
{
	const struct procmap_mapping by_ioctl = *mapping;
	int err;

	text_restart(&procmap->maps);
	err = text_next(&procmap->maps, addr, flags & FILTERS, mapping,
			&procmap->name);
	if (!err && same_file(mapping, &by_ioctl))
		mapping->page_size = by_ioctl.page_size;
	return err;
}
