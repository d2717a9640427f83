/* SPDX-License-Identifier: GPL-2.0 */
/* Write JSON. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/**
 * struct json - a JSON object that is being written
 * @out: the stream.
 * @first: the next member or element needs no comma.
 * @one_line: the object is one line, also if it has arrays.
 */
struct json {
	FILE *out;
	bool first;
	bool one_line;
};

struct json json_begin(FILE *out, bool one_line);
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_end(struct json *json);
void json_null(struct json *json, const char *key);
void json_bool(struct json *json, const char *key, bool value);
void json_number(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value);
void json_address(struct json *json, const char *key, uint64_t addr);
void json_optional_address(struct json *json, const char *key, bool is_known, uint64_t addr);
bool json_string(struct json *json, const char *key, const char *string);
void json_hex(struct json *json, const char *key, const void *bytes, size_t len);
void json_exact(struct json *json, const char *key, const char *hex_key, const char *string);

#endif /* JSON_H */
