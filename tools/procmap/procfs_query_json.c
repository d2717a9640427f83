// SPDX-License-Identifier: GPL-2.0
/* procfs_query: write JSON. procfs_query.schema.json describes all of it. */
#include "procfs_query_json.h"
#include "procfs.h"
#include "tool.h"

void json_name(struct json *json, const struct procmap_mapping *vma)
{
	json_exact(json, "name", "name_hex", vma->name_len ? vma->name : NULL);
}

void json_build_id(struct json *json, const struct procmap_mapping *vma)
{
	if (vma->build_id_size > 0)
		json_hex(json, "build_id", vma->build_id, vma->build_id_size);
	else
		json_null(json, "build_id");
	fail_without_files(vma->build_id_size);
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

/* @vma is NULL if there is none. */
void json_vma(struct json *json, const char *key, const struct options *options,
	      const struct procmap_mapping *vma)
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
	json_optional_address(json, "offset", has_file(vma), vma->offset);
	json_inode(json, vma);
	if (vma->page_size)
		json_number(json, "page_size", vma->page_size);
	else
		json_null(json, "page_size");
	json_name(json, vma);
	if (given(options, OPT_BUILD_ID))
		json_build_id(json, vma);
	json_close(json, '}');
}

/* The members of the answer for an address. */
void json_answer(struct json *json, const struct options *options,
		 const struct answer *answer)
{
	const struct procmap_mapping *const vma = answer->vma;
	static const struct procmap_mapping none;

	json_address(json, "address", answer->addr);
	json_bool(json, "mapped", vma);
	json_optional_address(json, "offset", vma && has_file(vma),
			      vma ? file_offset(vma, answer->addr) : 0);
	if (given(options, OPT_ELF_ADDRESS))
		json_optional_address(json, "elf_address", answer->elf > 0,
				      answer->elf_address);
	if (answer->elf < 0)
		json_bool(json, "elf_address_unreadable", true);
	json_name(json, vma ? vma : &none);
	if (given(options, OPT_BUILD_ID))
		json_build_id(json, vma ? vma : &none);
	if (given(options, OPT_VERBOSE))
		json_vma(json, "vma", options, vma);
}

/* @program is NULL if it is unknown. */
void json_program(struct json *json, const char *program)
{
	json_exact(json, "program", "program_hex", program);
}

/* Begin an object; it has the process, except for totals of several. */
struct json json_begin_with(FILE *out, const struct options *options)
{
	struct json json = json_begin(out, is_of_many(options) ||
					   given(options, OPT_INTERVAL));
	char *program;

	if (options->maps_file)
		json_exact(&json, "maps_file", "maps_file_hex", options->maps_file);
	if (given(options, OPT_FD))
		json_number(&json, "fd", options->fd);
	if (options->pid)
		json_number(&json, "pid", options->pid);
	if (options->pid && is_of_many(options)) {
		program = program_of(options->pid);
		json_program(&json, program);
		free(program);
	}
	return json;
}
