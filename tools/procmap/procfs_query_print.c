// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: print mappings as text or JSON. On a terminal, use colours and
 * shorten names to fit the line; elsewhere, print the lines of /proc/PID/maps.
 */
#include "procfs_query.h"

#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* The fewest columns for a name, even on a narrow terminal. */
#define NAME_WIDTH_MIN		20

#define BUILD_ID_WIDTH		(2 * PROCMAP_BUILD_ID_MAX)

/* Where names begin on a terminal too narrow for the column of the text. */
#define NARROW_COLUMN		56

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

	if (!isatty(STDOUT_FILENO))
		return;
	/* mbrtowc() and wcwidth() need it. */
	setlocale(LC_CTYPE, "");
	if (columns && atoi(columns) > 0)
		terminal.width = atoi(columns);
	else if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		terminal.width = size.ws_col;
	else
		terminal.width = 80;
	terminal.colours = (!no_color || !*no_color) &&
			   term && strcmp(term, "dumb");
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

/* What a terminal obeys, or what changes the order in which it shows the rest. */
static bool is_control(uint32_t c)
{
	return c < ' ' || (c >= 0x7f && c <= 0x9f) ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
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

/* Print a name: as it is, unless on a terminal. */
void print_whole_name(FILE *out, const char *name)
{
	mbstate_t state = {};
	wchar_t wide;
	size_t width;

	if (!terminal.width) {
		fputs(name, out);
		return;
	}
	while (*name) {
		const size_t len = next_character(name, &state, &wide, &width);

		if (wide == L'?')
			fputc('?', out);
		else
			fwrite(name, 1, len, out);
		name += len;
	}
}

/*
 * Print a name at @column of a line. If it is too long for the terminal, cut its
 * beginning.
 */
void print_name(FILE *out, const char *name, size_t column)
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
	}
	print_whole_name(out, name);
}

static bool has_file(const struct procmap_mapping *vma)
{
	return vma->inode || vma->dev_major || vma->dev_minor;
}

static uint64_t file_offset(const struct procmap_mapping *vma, uint64_t addr)
{
	return addr - vma->start + vma->offset;
}

static void print_hex(FILE *out, const void *bytes, size_t len)
{
	const unsigned char *const from = bytes;
	size_t i;

	for (i = 0; i < len; i++)
		fprintf(out, "%02x", from[i]);
}

void permissions(const struct procmap_mapping *vma, char text[5])
{
	text[0] = vma->flags & PROCMAP_READABLE ? 'r' : '-';
	text[1] = vma->flags & PROCMAP_WRITABLE ? 'w' : '-';
	text[2] = vma->flags & PROCMAP_EXECUTABLE ? 'x' : '-';
	text[3] = vma->flags & PROCMAP_SHARED ? 's' : 'p';
	text[4] = '\0';
}

/*
 * Find the column of names in the text. It depends on the size of a pointer in
 * the kernel, so a 32-bit program has to look.
 */
int name_column(void)
{
	FILE *const file = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;
	int column = 0;

	/* Only a name has a slash or a bracket. */
	while (file && !column && getline(&line, &size, file) > 0) {
		column = strcspn(line, "/[");
		if (!line[column])
			column = 0;
	}
	free(line);
	if (file)
		fclose(file);
	return column;
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

/* With --all or --exe, each process has a heading. */
void print_process(FILE *out, const struct options *options)
{
	char pid[sizeof(": ") + 3 * sizeof(options->pid)];
	char *program, *escaped;
	int column;

	if (!is_of_many(options))
		return;
	program = program_of(options->pid);
	escaped = escape(program ? program : "?");
	snprintf(pid, sizeof(pid), "%d: ", options->pid);
	column = print_coloured(out, BOLD, pid);
	print_name(out, escaped, column);
	fputc('\n', out);
	free(escaped);
	free(program);
}

/*
 * Print the line of a mapping, byte for byte as in the text unless on a terminal.
 * The line begins at column @indent of the terminal; its name at @column of the
 * line.
 */
void print_line(FILE *out, const struct procmap_mapping *vma, int indent,
		int column)
{
	char perms[5];
	int len;

	if (terminal.width && terminal.width < (size_t)column + 2 * NAME_WIDTH_MIN)
		column = NARROW_COLUMN;
	permissions(vma, perms);
	len = fprintf(out, "%08" PRIx64 "-%08" PRIx64 " ", vma->start, vma->end);
	if (~vma->flags & PROCMAP_EXECUTABLE)
		len += fprintf(out, "%s", perms);
	else
		len += print_coloured(out, vma->flags & PROCMAP_WRITABLE ?
				      RED : GREEN, perms);
	len += fprintf(out, " %08" PRIx64 " %02x:%02x %" PRIu64 " ", vma->offset,
		       vma->dev_major, vma->dev_minor, vma->inode);
	if (vma->name_len) {
		len += fprintf(out, "%*s", len < column ? column - len : 1, "");
		print_name(out, vma->name, indent + len);
	}
	fputc('\n', out);
}

/* Returns the columns of the build ID. */
static int print_build_id(FILE *out, const struct procmap_mapping *vma)
{
	if (vma->build_id_size > 0)
		print_hex(out, vma->build_id, vma->build_id_size);
	return vma->build_id_size > 0 ? 2 * vma->build_id_size :
	       fprintf(out, "%s", vma->build_id_size ? "?" : "-");
}

/* Print the line with the build ID below a mapping, if there is one. */
void print_build_id_line(FILE *out, const struct procmap_mapping *vma)
{
	if (!vma->build_id_size)
		return;
	fputs("  build ID ", out);
	print_build_id(out, vma);
	fputc('\n', out);
}

/**
 * struct printer - the state of printing mappings
 * @out: the stream.
 * @options: the command line.
 * @column: where names begin in a line.
 * @json: the state of JSON.
 * @nr_found: the number of mappings, or of mapped addresses, printed so far.
 */
struct printer {
	FILE *out;
	const struct options *options;
	int column;
	struct json json;
	size_t nr_found;
};

static void print_address(const struct printer *printer, uint64_t addr,
			  const struct procmap_mapping *vma)
{
	FILE *const out = printer->out;
	int column;

	column = fprintf(out, "0x%016" PRIx64 " ", addr);
	if (!vma) {
		print_coloured(out, YELLOW, "not mapped");
		fputc('\n', out);
		return;
	}

	if (has_file(vma))
		column += fprintf(out, "0x%016" PRIx64 " ",
				  file_offset(vma, addr));
	else
		column += fprintf(out, "%-18s ", "-");
	if (printer->options->build_id) {
		const int width = print_build_id(out, vma);

		column += width + fprintf(out, "%*s", BUILD_ID_WIDTH - width + 1,
					  "");
	}
	print_name(out, vma->name_len ? vma->name : "-", column);
	fputc('\n', out);
	if (printer->options->verbose)
		print_line(out, vma, fprintf(out, "  "), printer->column);
}

static void print_listed(const struct printer *printer,
			 const struct procmap_mapping *vma)
{
	print_line(printer->out, vma, 0, printer->column);
	if (printer->options->build_id)
		print_build_id_line(printer->out, vma);
}

/*
 * JSON strings are Unicode, but a name can have any bytes except NUL: print valid
 * UTF-8 as it is, but control characters as \uXXXX, and every other byte as \u00XX.
 */

static bool is_continuation(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* The length of the multibyte UTF-8 character at @s, or 0 if it is not valid. */
static size_t utf8_len(const unsigned char *s, size_t left)
{
	if (left >= 2 && s[0] >= 0xc2 && s[0] <= 0xdf && is_continuation(s[1]))
		return 2;
	if (left < 3 || !is_continuation(s[1]) || !is_continuation(s[2]))
		return 0;
	/* Neither overlong nor a surrogate. */
	if ((s[0] & 0xf0) == 0xe0)
		return (s[0] == 0xe0 && s[1] < 0xa0) ||
		       (s[0] == 0xed && s[1] >= 0xa0) ? 0 : 3;
	/* Neither overlong nor above U+10FFFF. */
	if (left < 4 || !is_continuation(s[3]) || s[0] < 0xf0 || s[0] > 0xf4 ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return 4;
}

/* Decode a valid character of @len bytes. */
static uint32_t utf8_decode(const unsigned char *s, size_t len)
{
	uint32_t c = len == 1 ? *s : *s & (0x7f >> len);

	while (--len)
		c = c << 6 | (*++s & 0x3f);
	return c;
}

/* Print the key of a member. An element (NULL) begins a new line instead. */
static void json_key(struct json *json, const char *key)
{
	if (!json->first)
		fputs(key ? ", " : ",", json->out);
	json->first = false;
	if (key)
		fprintf(json->out, "\"%s\": ", key);
	else
		fputc('\n', json->out);
}

void json_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	fputc(bracket, json->out);
	json->first = true;
}

void json_close(struct json *json, char bracket)
{
	fputc(bracket, json->out);
	json->first = false;
}

void json_word(struct json *json, const char *key, const char *word)
{
	json_key(json, key);
	fputs(word, json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
	json_word(json, key, value ? "true" : "false");
}

void json_number(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
	json_key(json, key);
	fprintf(json->out, "%.3f", value);
}

void json_address(struct json *json, const char *key, uint64_t addr)
{
	json_key(json, key);
	fprintf(json->out, "\"0x%" PRIx64 "\"", addr);
}

/* Returns whether it was valid UTF-8, that is, whether no byte was lost. */
static bool json_bytes(struct json *json, const char *key, const char *bytes,
		       size_t len)
{
	const unsigned char *s = (const unsigned char *)bytes;
	bool valid = true;

	json_key(json, key);
	fputc('"', json->out);
	while (len) {
		size_t n = *s < 0x80 ? 1 : utf8_len(s, len);
		const uint32_t c = n ? utf8_decode(s, n) : *s;

		if (!n || is_control(c)) {
			fprintf(json->out, "\\u%04x", c);
		} else {
			if (c == '"' || c == '\\')
				fputc('\\', json->out);
			fwrite(s, 1, n, json->out);
		}
		if (!n) {
			valid = false;
			n = 1;
		}
		s += n;
		len -= n;
	}
	fputc('"', json->out);
	return valid;
}

void json_string(struct json *json, const char *key, const char *string)
{
	json_bytes(json, key, string, strlen(string));
}

static void json_hex(struct json *json, const char *key, const void *bytes,
		     size_t len)
{
	json_key(json, key);
	fputc('"', json->out);
	print_hex(json->out, bytes, len);
	fputc('"', json->out);
}

/* If bytes were lost in the string, print all of them with the other key. */
static void json_exact(struct json *json, const char *key, const char *hex_key,
		       const char *bytes, size_t len)
{
	if (!json_bytes(json, key, bytes, len))
		json_hex(json, hex_key, bytes, len);
}

void json_name(struct json *json, const struct procmap_mapping *vma)
{
	if (vma->name_len)
		json_exact(json, "name", "name_hex", vma->name, vma->name_len);
	else
		json_word(json, "name", "null");
}

void json_build_id(struct json *json, const struct procmap_mapping *vma)
{
	if (vma->build_id_size > 0)
		json_hex(json, "build_id", vma->build_id, vma->build_id_size);
	else
		json_word(json, "build_id", "null");
	if (vma->build_id_size < 0)
		json_bool(json, "build_id_unreadable", true);
}

/* The inode is a string, since many readers have no 64-bit numbers. */
void json_inode(struct json *json, const struct procmap_mapping *vma)
{
	char inode[3 * sizeof(vma->inode)];

	snprintf(inode, sizeof(inode), "%" PRIu64, vma->inode);
	json_number(json, "dev_major", vma->dev_major);
	json_number(json, "dev_minor", vma->dev_minor);
	json_string(json, "inode", inode);
}

void json_vma(struct json *json, const char *key,
	      const struct procmap_mapping *vma, bool build_id)
{
	char perms[5];

	permissions(vma, perms);
	json_open(json, key, '{');
	json_address(json, "start", vma->start);
	json_address(json, "end", vma->end);
	json_string(json, "permissions", perms);
	json_address(json, "offset", vma->offset);
	json_inode(json, vma);
	if (vma->page_size)
		json_number(json, "page_size", vma->page_size);
	else
		json_word(json, "page_size", "null");
	json_name(json, vma);
	if (build_id)
		json_build_id(json, vma);
	json_close(json, '}');
}

static void json_lookup(struct json *json, const struct options *options,
			uint64_t addr, const struct procmap_mapping *vma)
{
	json_open(json, NULL, '{');
	json_address(json, "address", addr);
	json_bool(json, "mapped", vma);
	if (vma) {
		if (has_file(vma))
			json_address(json, "offset", file_offset(vma, addr));
		else
			json_word(json, "offset", "null");
		json_name(json, vma);
		if (options->build_id)
			json_build_id(json, vma);
		if (options->verbose)
			json_vma(json, "vma", vma, options->build_id);
	}
	json_close(json, '}');
}

/* @program is NULL if it is unknown. */
void json_program(struct json *json, const char *program)
{
	if (program)
		json_exact(json, "program", "program_hex", program,
			   strlen(program));
	else
		json_word(json, "program", "null");
}

/* Begin an object; it has the process, except for totals of several. */
void json_begin(struct json *json, const struct options *options)
{
	char *program;

	fputc('{', json->out);
	json->first = true;
	if (!options->pid)
		return;
	json_number(json, "pid", options->pid);
	if (is_of_many(options)) {
		program = program_of(options->pid);
		json_program(json, program);
		free(program);
	}
}

void json_end(struct json *json)
{
	fputs("}\n", json->out);
}

static void print_found(void *context, uint64_t addr,
			const struct procmap_mapping *vma)
{
	struct printer *printer = context;

	if (vma)
		printer->nr_found++;
	if (printer->options->json) {
		if (printer->options->list)
			json_vma(&printer->json, NULL, vma,
				 printer->options->build_id);
		else
			json_lookup(&printer->json, printer->options, addr,
				    vma);
	} else if (printer->options->list) {
		print_listed(printer, vma);
	} else {
		print_address(printer, addr, vma);
	}
}

int show(const struct options *options, FILE *out)
{
	struct printer printer = {
		.out = out,
		.options = options,
		.json = { .out = out },
	};
	struct procmap *procmap;
	int err;

	err = procmap_open_pid(options->pid, options->method, &procmap);
	if (err)
		return err;
	if (options->json) {
		json_begin(&printer.json, options);
		json_string(&printer.json, "method",
			    method_name(procmap_get_method(procmap)));
		json_open(&printer.json, options->list ? "vmas" : "addresses",
			  '[');
	} else {
		print_process(out, options);
		printer.column = name_column();
	}

	err = visit(procmap, options, print_found, &printer);
	procmap_close(procmap);
	if (err)
		return err;
	if (options->json) {
		json_close(&printer.json, ']');
		json_end(&printer.json);
	}
	return printer.nr_found ? EXIT_SUCCESS : EXIT_FAILURE;
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

void begin_output(struct output *output)
{
	output->file = need(open_memstream(&output->bytes, &output->len));
}

/* Write all of the output or, after an error, none of it. Frees it. */
void end_output(struct output *output, bool is_good)
{
	if (fclose(output->file))
		fail("out of memory");
	if (is_good)
		write_output(output->bytes, output->len);
	free(output->bytes);
}
