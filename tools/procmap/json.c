// SPDX-License-Identifier: GPL-2.0
/*
 * Write JSON.
 *
 * JSON strings are Unicode, but a name can have any bytes except NUL: print valid
 * UTF-8 as it is, but control characters as \uXXXX, and every other byte as \u00XX.
 */
#include "json.h"
#include "tool.h"

static bool is_continuation(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* The length of the multibyte UTF-8 character at @s, or 0 if it is not valid. */
static size_t utf8_len(const unsigned char *s)
{
	if (s[0] >= 0xc2 && s[0] <= 0xdf && is_continuation(s[1]))
		return 2;
	if (!is_continuation(s[1]) || !is_continuation(s[2]))
		return 0;
	/* Neither overlong nor a surrogate. */
	if ((s[0] & 0xf0) == 0xe0)
		return (s[0] == 0xe0 && s[1] < 0xa0) ||
		       (s[0] == 0xed && s[1] >= 0xa0) ? 0 : 3;
	/* Neither overlong nor above U+10FFFF. */
	if (!is_continuation(s[3]) || s[0] < 0xf0 || s[0] > 0xf4 ||
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

void json_optional_address(struct json *json, const char *key, bool is_known, uint64_t addr)
{
	if (is_known)
		json_address(json, key, addr);
	else
		json_null(json, key);
}

/*
 * Write a string, or null. Returns false if bytes were lost, as they were not valid UTF-8.
 */
bool json_string(struct json *json, const char *key, const char *string)
{
	const unsigned char *s = (const unsigned char *)string;
	bool valid = true;

	if (!string) {
		json_null(json, key);
		return true;
	}
	json_key(json, key);
	fputc('"', json->out);
	while (*s) {
		size_t n = *s < 0x80 ? 1 : utf8_len(s);
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
	}
	fputc('"', json->out);
	return valid;
}

void json_hex(struct json *json, const char *key, const void *bytes, size_t len)
{
	const unsigned char *const from = bytes;
	size_t i;

	json_key(json, key);
	fputc('"', json->out);
	for (i = 0; i < len; i++)
		fprintf(json->out, "%02x", from[i]);
	fputc('"', json->out);
}

/* If bytes were lost in the string, print all of them with the other key. */
void json_exact(struct json *json, const char *key, const char *hex_key, const char *string)
{
	if (!json_string(json, key, string))
		json_hex(json, hex_key, string, strlen(string));
}

/* Begin an object that is in no other. */
struct json json_begin(FILE *out, bool one_line)
{
	fputc('{', out);
	return (struct json) { .out = out, .first = true, .one_line = one_line };
}

/* End an object that is in no other. */
void json_end(struct json *json)
{
	fputs("}\n", json->out);
}
