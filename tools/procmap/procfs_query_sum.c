// SPDX-License-Identifier: GPL-2.0
/* procfs_query: add up the sizes of mappings, by file or other name. */
#include "procfs_query_json.h"
#include "procfs_query_lookup.h"
#include "procfs_query_print.h"
#include "tool.h"

/**
 * struct sum - the mappings of one file, or with one name
 * @first: the first of them; its name is a copy that the sum owns.
 * @last_pid: the last process that was found to have one.
 * @processes: the number of processes that have one.
 * @mappings: the number of mappings.
 * @bytes: their size.
 * @executable: the size of the executable ones.
 * @writable: the size of the writable ones.
 */
struct sum {
	struct procmap_mapping first;
	pid_t last_pid;
	size_t processes;
	size_t mappings;
	uint64_t bytes;
	uint64_t executable;
	uint64_t writable;
};

static struct rows sums;

/* The number of processes that were added. */
static size_t nr_processes;

/* The largest first. */
static int by_bytes(const void *a, const void *b)
{
	const struct sum *const x = *(struct sum *const *)a;
	const struct sum *const y = *(struct sum *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_file(x, y);
}

static void add_mapping(const struct options *options, const struct procmap_mapping *vma)
{
	struct sum *const sum = row_of(&sums, vma, sizeof(*sum));
	const uint64_t bytes = vma->end - vma->start;

	if (sum->last_pid != options->pid)
		sum->processes++;
	sum->last_pid = options->pid;
	sum->mappings++;
	sum->bytes += bytes;
	if (vma->flags & PROCMAP_EXECUTABLE)
		sum->executable += bytes;
	if (vma->flags & PROCMAP_WRITABLE)
		sum->writable += bytes;
}

static int add_to_sums(const struct options *options, FILE *out)
{
	int err;

	(void)out;
	err = visit_snapshot(options, add_mapping);
	if (!err)
		nr_processes++;
	return err;
}

static void json_sum(struct json *json, const char *key, const struct sum *sum,
		     const struct options *options)
{
	json_open(json, key, '{');
	if (is_of_many(options))
		json_number(json, "processes", sum->processes);
	json_number(json, "mappings", sum->mappings);
	json_number(json, "bytes", sum->bytes);
	json_number(json, "executable_bytes", sum->executable);
	json_number(json, "writable_bytes", sum->writable);
	if (sum->first.name) {
		json_inode(json, &sum->first);
		json_name(json, &sum->first);
		if (given(options, OPT_BUILD_ID))
			json_build_id(json, &sum->first);
	}
	json_close(json, '}');
}

static void print_sum(const struct options *options, const struct sum *sum, FILE *out)
{
	int column = 0;

	if (is_of_many(options))
		column += fprintf(out, "%9zu ", sum->processes);
	column += fprintf(out, "%8zu %11" PRIu64 " %11" PRIu64 " %11" PRIu64 "  ",
			  sum->mappings, sum->bytes / 1024,
			  sum->executable / 1024, sum->writable / 1024);
	if (given(options, OPT_BUILD_ID)) {
		print_build_id_column(out, &sum->first);
		column += BUILD_ID_WIDTH + 1;
	}
	print_name(out, *sum->first.name ? sum->first.name : "-", column);
	fputc('\n', out);
}

static int print_sums(const struct options *options, FILE *out)
{
	struct json json = {};
	struct sum total = { .processes = nr_processes };
	size_t i;

	if (sums.nr)
		qsort(sums.all, sums.nr, sizeof(*sums.all), by_bytes);
	if (given(options, OPT_JSON)) {
		json = json_begin_with(out, options);
		json_open(&json, "sums", '[');
	} else if (sums.nr) {
		print_headings(out, options, is_of_many(options) ?
			       "processes mappings         KiB  executable    writable" :
			       "mappings         KiB  executable    writable", "name");
	}
	for (i = 0; i < sums.nr; i++) {
		const struct sum *const sum = sums.all[i];

		if (given(options, OPT_JSON))
			json_sum(&json, NULL, sum, options);
		else
			print_sum(options, sum, out);
		total.mappings += sum->mappings;
		total.bytes += sum->bytes;
		total.executable += sum->executable;
		total.writable += sum->writable;
	}
	if (given(options, OPT_JSON)) {
		json_close(&json, ']');
		json_sum(&json, "total", &total, options);
		json_end(&json);
	} else if (sums.nr) {
		total.first.name = "total";
		print_sum(options, &total, out);
	}
	return sums.nr ? EXIT_SUCCESS : EXIT_FAILURE;
}

const struct tool_option sum_options[] = {
	{ .argp = { .name = "sum", .key = 's', .group = GROUP_WORK,
		    .doc = "Add up the sizes of all mappings, by file" },
	  .bit = OPT_SUM, .takes = OPT_PROCESSES | OPT_METHODS | OPT_BUILD_ID,
	  .work = add_to_sums, .finish = print_sums },
	{}
};
