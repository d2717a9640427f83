// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: memory, numbers, and text on standard output. On a terminal, use colours,
 * shorten names to fit the line, and print no control characters.
 */
#include "tool.h"

#include <ctype.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* A message repeats at most this many bytes of bad input. */
#define QUOTE_LEN_MAX		60

void *need(void *memory)
{
	if (!memory)
		fail("out of memory");
	return memory;
}

/* Exit if it is this program that has too many open files. */
void fail_without_files(int err)
{
	if (err == -EMFILE)
		fail("too many open files: raise the limit with ulimit -n");
	if (err == -ENFILE)
		fail("too many open files in the system: raise fs.file-max");
}

/*
 * Return an array of @nr elements of @size bytes, enlarged if it has no @room for one
 * more.
 */
void *room_for_one(void *elements, size_t nr, size_t *room, size_t size)
{
	if (nr < *room)
		return elements;
	*room = *room * 2 + 16;
	return need(reallocarray(elements, *room, size));
}

/* A number from 1 to @max, in decimal. */
bool parse_number(const char *text, unsigned long max, unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return !errno && !*end && *number && *number <= max;
}

uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Bad input, cut and made printable for a message of one line. */
const char *quote(const char *text, size_t len)
{
	static char quoted[QUOTE_LEN_MAX + sizeof("...")];
	size_t i;

	for (i = 0; i < len && i < QUOTE_LEN_MAX; i++)
		quoted[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	strcpy(quoted + i, i < len ? "..." : "");
	return quoted;
}

/**
 * struct terminal - properties of standard output
 * @colours: print colours: it is a terminal, and the user did not turn them off.
 * @width: the columns of the terminal; 0 if it is not a terminal.
 */
static struct terminal {
	bool colours;
	size_t width;
} terminal;

void look_at_terminal(void)
{
	const char *const columns = getenv("COLUMNS");
	const char *const no_color = getenv("NO_COLOR");
	const char *const term = getenv("TERM");
	struct winsize size = {};

	/* For mbrtowc(), wcwidth() and fnmatch(3). */
	setlocale(LC_CTYPE, "");
	if (!isatty(STDOUT_FILENO))
		return;
	if (columns && atoi(columns) > 0)
		terminal.width = atoi(columns);
	else if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		terminal.width = size.ws_col;
	else
		terminal.width = 80;
	terminal.colours = (!no_color || !*no_color) &&
			   term && strcmp(term, "dumb");
}

/* The columns of the terminal; 0 if standard output is not one. */
size_t terminal_width(void)
{
	return terminal.width;
}

/* Returns the columns of @text. */
int print_coloured(FILE *out, enum colour colour, const char *text)
{
	if (terminal.colours)
		fprintf(out, "\033[%dm%s\033[m", colour, text);
	else
		fputs(text, out);
	return strlen(text);
}

/*
 * Returns true for characters that could make one name look like another on a terminal:
 * control characters, line ends, invisible ones, and those that set the direction of text.
 */
bool is_control(uint32_t c)
{
	return c < ' ' || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x2069) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

/*
 * Get the next character of a name for a terminal. Invalid bytes and control
 * characters become ?. Returns its length in bytes.
 */
static size_t next_character(const char *name, mbstate_t *state, wchar_t *wide,
			     size_t *width)
{
	const size_t bytes = mbrtowc(wide, name, strlen(name), state);
	const bool is_one = bytes != (size_t)-1 && bytes != (size_t)-2;

	if (is_one && !is_control(*wide) && wcwidth(*wide) >= 0) {
		*width = wcwidth(*wide);
		return bytes;
	}
	*state = (mbstate_t) {};
	*wide = L'?';
	*width = 1;
	return is_one ? bytes : 1;
}

static size_t width_of(const char *name)
{
	size_t width, sum = 0;
	mbstate_t state = {};
	wchar_t wide;

	while (*name) {
		name += next_character(name, &state, &wide, &width);
		sum += width;
	}
	return sum;
}

/* Print a name, on a terminal without unsafe characters. Returns its columns there. */
size_t print_whole_name(FILE *out, const char *name)
{
	mbstate_t state = {};
	size_t width, sum = 0;
	wchar_t wide;

	if (!terminal.width) {
		fputs(name, out);
		return 0;
	}
	while (*name) {
		const size_t len = next_character(name, &state, &wide, &width);

		if (wide == L'?')
			fputc('?', out);
		else
			fwrite(name, 1, len, out);
		name += len;
		sum += width;
	}
	return sum;
}

/*
 * Print a name at @column of a line. If it is too long for the terminal, cut its
 * beginning. Returns the columns that it takes on a terminal.
 */
size_t print_name(FILE *out, const char *name, size_t column)
{
	size_t room = NAME_WIDTH_MIN, sum, width;
	mbstate_t state = {};
	wchar_t wide;

	if (terminal.width > column + room)
		room = terminal.width - column;
	sum = terminal.width ? width_of(name) : 0;
	if (sum > room) {
		fputs("...", out);
		while (sum + strlen("...") > room) {
			name += next_character(name, &state, &wide, &width);
			sum -= width;
		}
		sum += strlen("...");
	}
	print_whole_name(out, name);
	return sum;
}

/* Escape each newline in a path as the text does; the caller frees the result. */
char *escape(const char *path)
{
	char *const escaped = need(malloc(strlen(path) * strlen("\\012") + 1));
	char *to = escaped;

	for (; *path; path++) {
		if (*path == '\n')
			to = stpcpy(to, "\\012");
		else
			*to++ = *path;
	}
	*to = '\0';
	return escaped;
}

/* Fail on a full disk, or on a closed pipe if SIGPIPE is ignored. */
static void write_output(const char *bytes, size_t len)
{
	while (len) {
		const ssize_t written = write(STDOUT_FILENO, bytes, len);

		if (written < 0)
			fail("standard output: %s: the result is incomplete",
			     strerror(errno));
		bytes += written;
		len -= written;
	}
}

/* A stream of open_memstream(3) does not tell that it lacks memory. */
static ssize_t hold_back(void *cookie, const char *bytes, size_t len)
{
	struct output *const output = cookie;
	char *const more = realloc(output->bytes, output->len + len);

	if (!more)
		return 0;
	output->bytes = more;
	memcpy(more + output->len, bytes, len);
	output->len += len;
	return len;
}

void begin_output(struct output *output)
{
	const cookie_io_functions_t functions = { .write = hold_back };

	output->bytes = NULL;
	output->len = 0;
	output->file = need(fopencookie(output, "w", functions));
}

/* Write all of the output or, after an error, none of it. Frees it. */
void end_output(struct output *output, bool is_good)
{
	if (fflush(output->file) || ferror(output->file))
		fail("out of memory");
	fclose(output->file);
	if (is_good)
		write_output(output->bytes, output->len);
	free(output->bytes);
}
