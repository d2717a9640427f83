/* SPDX-License-Identifier: GPL-2.0 */
/* procfs_query: the members of JSON. */
#ifndef PROCFS_QUERY_JSON_H
#define PROCFS_QUERY_JSON_H

#include "json.h"
#include "mapping.h"
#include "options.h"

struct json json_begin_with(FILE *out, const struct options *options);
void json_inode(struct json *json, const struct procmap_mapping *vma);
void json_program(struct json *json, const char *program);
void json_name(struct json *json, const struct procmap_mapping *vma);
void json_build_id(struct json *json, const struct procmap_mapping *vma);
void json_vma(struct json *json, const char *key, const struct options *options,
	      const struct procmap_mapping *vma);
void json_answer(struct json *json, const struct options *options,
		 const struct answer *answer);

#endif /* PROCFS_QUERY_JSON_H */
