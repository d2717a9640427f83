// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: write JSON. procfs_query.schema.json describes all of it.
 *
 * JSON strings are Unicode, but a name can have any bytes except NUL: print valid
 * UTF-8 as it is, but control characters as \uXXXX, and every other byte as \u00XX.
 */
#include "procfs_query.h"

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

struct json json_to(FILE *out, const struct options *options)
{
	return (struct json) {
		.out = out,
		.one_line = is_of_many(options) || options->interval,
	};
}

/*
 * Print the key of a member. An element (NULL) begins a new line instead, unless
 * each object is one line.
 */
static void json_key(struct json *json, const char *key)
{
	const bool new_line = !key && !json->one_line;

	if (!json->first)
		fputs(new_line ? "," : ", ", json->out);
	json->first = false;
	if (key)
		fprintf(json->out, "\"%s\": ", key);
	else if (new_line)
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

static void json_word(struct json *json, const char *key, const char *word)
{
	json_key(json, key);
	fputs(word, json->out);
}

void json_null(struct json *json, const char *key)
{
	json_word(json, key, "null");
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

		if (c > 0xffff && is_control(c)) {
			fprintf(json->out, "\\u%04x\\u%04x",
				0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
		} else if (!n || is_control(c)) {
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
void json_exact(struct json *json, const char *key, const char *hex_key,
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
		json_null(json, "name");
}

void json_build_id(struct json *json, const struct procmap_mapping *vma)
{
	if (vma->build_id_size > 0)
		json_hex(json, "build_id", vma->build_id, vma->build_id_size);
	else
		json_null(json, "build_id");
	if (vma->build_id_size < 0)
		json_bool(json, "build_id_unreadable", true);
}

/* The inode is a string, since many readers have no 64-bit numbers. */
void json_inode(struct json *json, const struct procmap_mapping *vma)
{
	char inode[3 * sizeof(vma->inode)];

	if (!has_file(vma)) {
		json_null(json, "dev_major");
		json_null(json, "dev_minor");
		json_null(json, "inode");
		return;
	}
	snprintf(inode, sizeof(inode), "%" PRIu64, vma->inode);
	json_number(json, "dev_major", vma->dev_major);
	json_number(json, "dev_minor", vma->dev_minor);
	json_string(json, "inode", inode);
}

/* The offset in the file of an address of a mapping; NULL if it is not mapped. */
static void json_offset(struct json *json, uint64_t addr,
			const struct procmap_mapping *vma)
{
	if (vma && has_file(vma))
		json_address(json, "offset", file_offset(vma, addr));
	else
		json_null(json, "offset");
}

static void json_rss(struct json *json, const struct procmap_mapping *vma,
		     const struct rss *rss)
{
	uint64_t bytes;

	if (find_rss(rss, vma, &bytes))
		json_number(json, "rss", bytes);
	else
		json_null(json, "rss");
}

/* @vma is NULL if there is none. */
void json_vma(struct json *json, const char *key,
	      const struct procmap_mapping *vma,
	      const struct line_format *format)
{
	char perms[5];

	if (!vma) {
		json_null(json, key);
		return;
	}
	permissions(vma, perms);
	json_open(json, key, '{');
	json_address(json, "start", vma->start);
	json_address(json, "end", vma->end);
	json_number(json, "size", vma->end - vma->start);
	json_string(json, "permissions", perms);
	json_offset(json, vma->start, vma);
	json_inode(json, vma);
	if (vma->page_size)
		json_number(json, "page_size", vma->page_size);
	else
		json_null(json, "page_size");
	if (format->rss)
		json_rss(json, vma, format->rss);
	json_name(json, vma);
	if (format->build_id)
		json_build_id(json, vma);
	json_close(json, '}');
}

/* The members of the answer for an address. */
void json_answer(struct json *json, const struct options *options,
		 uint64_t addr, const struct procmap_mapping *vma)
{
	const struct line_format format = { .build_id = options->build_id };
	static const struct procmap_mapping none;

	json_address(json, "address", addr);
	json_bool(json, "mapped", vma);
	json_offset(json, addr, vma);
	json_name(json, vma ? vma : &none);
	if (options->build_id)
		json_build_id(json, vma ? vma : &none);
	if (options->verbose)
		json_vma(json, "vma", vma, &format);
}

/* @program is NULL if it is unknown. */
void json_program(struct json *json, const char *program)
{
	if (program)
		json_exact(json, "program", "program_hex", program,
			   strlen(program));
	else
		json_null(json, "program");
}

/* Begin an object; it has the process, except for totals of several. */
void json_begin(struct json *json, const struct options *options)
{
	char *program;

	fputc('{', json->out);
	json->first = true;
	if (options->maps_file)
		json_exact(json, "maps_file", "maps_file_hex",
			   options->maps_file, strlen(options->maps_file));
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
