// SPDX-License-Identifier: GPL-2.0
/* procfs_query: compare the results of all methods. */
#include "procfs_query.h"

#include <unistd.h>

/* A process that changes is compared at most this often. */
#define COMPARE_ATTEMPTS	10

/**
 * struct attempt - one comparison of a process
 * @count: the counts.
 * @way: the method that is compared with the text.
 * @changed: the process changed its mappings meanwhile.
 * @as_json: write differences as JSON objects, not as lines.
 * @json: where to write differences.
 * @lines: the differences that were written; compare() frees them.
 * @lines_size: the number of bytes in @lines.
 */
struct attempt {
	struct comparison count;
	enum procmap_way way;
	bool changed;
	bool as_json;
	struct json json;
	char *lines;
	size_t lines_size;
};

static void compare_strings(struct attempt *attempt, uint64_t addr,
			    const char *field, const char *by_way,
			    const char *by_text)
{
	struct json *const json = &attempt->json;

	if (!strcmp(by_way, by_text))
		return;
	if (attempt->as_json) {
		json_open(json, NULL, '{');
		json_address(json, "address", addr);
		json_string(json, "field", field);
		json_string(json, way_name(attempt->way), by_way);
		json_string(json, "text", by_text);
		json_close(json, '}');
	} else {
		fprintf(json->out, "0x%016" PRIx64 ": %s: %s ", addr, field,
			way_name(attempt->way));
		print_whole_name(json->out, by_way);
		fputs(", text ", json->out);
		print_whole_name(json->out, by_text);
		fputc('\n', json->out);
	}
	attempt->count.differences++;
}

static void compare_numbers(struct attempt *attempt, uint64_t addr,
			    const char *field, uint64_t by_way,
			    uint64_t by_text)
{
	char a[sizeof("0x") + 16], b[sizeof("0x") + 16];

	if (by_way == by_text)
		return;
	snprintf(a, sizeof(a), "0x%" PRIx64, by_way);
	snprintf(b, sizeof(b), "0x%" PRIx64, by_text);
	compare_strings(attempt, addr, field, a, b);
}

#define BUILD_ID_TEXT_SIZE	(2 * PROCMAP_BUILD_ID_MAX + sizeof("none"))

static void format_build_id(const struct procmap_mapping *vma,
			    char text[BUILD_ID_TEXT_SIZE])
{
	int i;

	strcpy(text, "none");
	for (i = 0; i < vma->build_id_size; i++)
		sprintf(text + 2 * i, "%02x", vma->build_id[i]);
}

static void compare_build_ids(struct attempt *attempt, uint64_t addr,
			      const struct procmap_mapping *by_way,
			      const struct procmap_mapping *by_text)
{
	char a[BUILD_ID_TEXT_SIZE], b[BUILD_ID_TEXT_SIZE];

	if (by_text->build_id_size < 0) {
		attempt->count.unreadable++;
		return;
	}
	attempt->count.build_ids += by_way->build_id_size ||
				 by_text->build_id_size;
	format_build_id(by_way, a);
	format_build_id(by_text, b);
	compare_strings(attempt, addr, "build ID", a, b);
}

/* Compare all that the text has; the page size is not in it. */
static void compare_vmas(struct attempt *attempt,
			 const struct procmap_mapping *by_way,
			 const struct procmap_mapping *by_text)
{
	const uint64_t addr = by_text->start;
	char a[5], b[5];

	attempt->count.mappings++;
	compare_numbers(attempt, addr, "start", by_way->start,
			by_text->start);
	compare_numbers(attempt, addr, "end", by_way->end, by_text->end);
	permissions(by_way, a);
	permissions(by_text, b);
	compare_strings(attempt, addr, "permissions", a, b);
	compare_numbers(attempt, addr, "offset", by_way->offset,
			by_text->offset);
	compare_numbers(attempt, addr, "device major", by_way->dev_major,
			by_text->dev_major);
	compare_numbers(attempt, addr, "device minor", by_way->dev_minor,
			by_text->dev_minor);
	compare_numbers(attempt, addr, "inode", by_way->inode,
			by_text->inode);
	attempt->count.names += by_way->name_len || by_text->name_len;
	compare_strings(attempt, addr, "name", by_way->name, by_text->name);
	compare_build_ids(attempt, addr, by_way, by_text);
}

static void compare_existence(struct attempt *attempt, uint64_t addr,
			      bool by_way, bool by_text)
{
	compare_strings(attempt, addr, "mapping",
			by_way ? "mapped" : "not mapped",
			by_text ? "mapped" : "not mapped");
}

/* Step to the next mapping of a walk, or set *at_end. */
static int next_of(struct procmap *procmap, uint64_t addr, unsigned int flags,
		   struct procmap_mapping *vma, bool *at_end)
{
	int err;

	if (*at_end || vma->end > addr)
		return 0;
	err = procmap_next(procmap, &addr, flags, vma);
	*at_end = err == -ENOENT;
	return *at_end ? 0 : err;
}

static int compare_lists(struct attempt *attempt,
			 const struct options *options,
			 struct procmap *by_way, struct procmap *by_text)
{
	const unsigned int flags = flags_of(options);
	struct procmap_mapping a = {}, b = {};
	bool end_a = false, end_b = false;
	uint64_t addr = 0;
	int err;

	for (;;) {
		err = next_of(by_way, addr, flags, &a, &end_a);
		if (!err)
			err = next_of(by_text, addr, flags, &b, &end_b);
		if (err || (end_a && end_b))
			return err;

		if (end_a || (!end_b && b.end <= a.start)) {
			compare_existence(attempt, b.start, false, true);
			addr = b.end;
		} else if (end_b || a.end <= b.start) {
			compare_existence(attempt, a.start, true, false);
			addr = a.end;
		} else {
			compare_vmas(attempt, &a, &b);
			addr = a.end > b.end ? a.end : b.end;
		}
	}
}

static int compare_addresses(struct attempt *attempt,
			     const struct options *options,
			     struct procmap *by_way, struct procmap *by_text)
{
	const unsigned int flags = flags_of(options);
	struct procmap_resolved *a = NULL, *b = NULL;
	uint64_t compared_to = 0;
	size_t i;
	int err;

	err = procmap_resolve(by_way, options->addrs, options->nr_addrs,
			      flags, &a);
	if (!err)
		err = procmap_resolve(by_text, options->addrs,
				      options->nr_addrs, flags, &b);
	for (i = 0; !err && i < options->nr_addrs; i++) {
		const uint64_t addr = options->addrs[i];
		const uint32_t in_a = a->places[i].mapping;
		const uint32_t in_b = b->places[i].mapping;

		attempt->count.addresses++;
		compare_existence(attempt, addr, in_a != PROCMAP_NOT_MAPPED,
				  in_b != PROCMAP_NOT_MAPPED);
		if (in_a != PROCMAP_NOT_MAPPED && in_b != PROCMAP_NOT_MAPPED &&
		    addr >= compared_to) {
			const struct procmap_mapping *const x =
				&a->mappings[in_a];
			const struct procmap_mapping *const y =
				&b->mappings[in_b];

			compare_vmas(attempt, x, y);
			compared_to = x->end < y->end ? x->end : y->end;
		}
	}
	procmap_free_resolved(a);
	procmap_free_resolved(b);
	return err;
}

/* Read all of the text; the caller frees it. Returns NULL if that fails. */
static char *read_maps(pid_t pid, size_t *len)
{
	char path[sizeof("/proc//maps") + 3 * sizeof(pid)];
	char *text = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	*len = 0;
	if (file) {
		text = read_all(file, len);
		fclose(file);
	}
	return text;
}

/**
 * struct subject - a process, opened once for each method
 * @nr_ways: the number of methods.
 * @ways: the methods, the text last.
 * @by: the handle of each method.
 */
struct subject {
	size_t nr_ways;
	enum procmap_way ways[NR_WAYS];
	struct procmap *by[NR_WAYS];
};

/* Compare one method with the text. Each method counts the same mappings anew. */
static int compare_way(struct attempt *attempt, const struct options *options,
		       const struct subject *subject, size_t way)
{
	struct procmap *const by_text = subject->by[subject->nr_ways - 1];

	attempt->way = subject->ways[way];
	attempt->count = (struct comparison) {
		.differences = attempt->count.differences,
	};
	return options->list ?
	       compare_lists(attempt, options, subject->by[way], by_text) :
	       compare_addresses(attempt, options, subject->by[way], by_text);
}

/* Read the text before and after, to see whether the process changed. */
static int compare_once(struct attempt *attempt, const struct options *options,
			const struct subject *subject)
{
	size_t len_before, len_after, way;
	char *before, *after;
	int err = 0;

	before = read_maps(options->pid, &len_before);
	attempt->json.first = true;
	attempt->json.out = need(open_memstream(&attempt->lines,
						&attempt->lines_size));
	for (way = 0; way + 1 < subject->nr_ways && !err; way++)
		err = compare_way(attempt, options, subject, way);
	fclose(attempt->json.out);
	after = read_maps(options->pid, &len_after);
	attempt->changed = len_before != len_after ||
			   memcmp(before, after, len_before);
	free(before);
	free(after);
	return err;
}

/*
 * A process that maps and unmaps the same range again and again can change
 * between two methods although the text before and after is the same. So report
 * differences only if every attempt found some, and the text never changed.
 */
static int compare_until_same(struct attempt *attempt,
			      const struct options *options,
			      const struct subject *subject)
{
	bool changed = false;
	int nr, err;

	for (nr = 0; nr < COMPARE_ATTEMPTS; nr++) {
		/* A process that is starting has 1 s in all to settle. */
		if (nr)
			usleep(1000 << nr);
		free(attempt->lines);
		*attempt = (struct attempt) { .as_json = options->json };
		err = compare_once(attempt, options, subject);
		if (err)
			return err;
		if (!attempt->changed && !attempt->count.differences)
			return 0;
		changed |= attempt->changed;
	}
	attempt->changed = changed;
	return 0;
}

static void json_attempt(FILE *out, const struct options *options,
			 const struct attempt *attempt)
{
	const struct comparison *const count = &attempt->count;
	struct json json = { .out = out };

	json_begin(&json, options);
	json_open(&json, "compare", '{');
	json_bool(&json, "changed", attempt->changed);
	json_number(&json, "addresses", count->addresses);
	json_number(&json, "mappings", count->mappings);
	json_number(&json, "names", count->names);
	json_number(&json, "build_ids", count->build_ids);
	json_number(&json, "build_ids_unreadable", count->unreadable);
	json_open(&json, "differences", '[');
	if (!attempt->changed)
		fputs(attempt->lines, out);
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}

static void add_to_total(struct comparison *total,
			 const struct comparison *count)
{
	total->processes++;
	total->addresses += count->addresses;
	total->mappings += count->mappings;
	total->names += count->names;
	total->build_ids += count->build_ids;
	total->unreadable += count->unreadable;
	total->differences += count->differences;
}

int compare(const struct options *options, struct comparison *total, FILE *out)
{
	struct subject subject = {};
	struct attempt attempt = {};
	int err = 0;
	size_t i;

	subject.nr_ways = ways_to_compare(subject.ways);
	for (i = 0; i < subject.nr_ways && !err; i++)
		err = procmap_open_pid(options->pid, subject.ways[i],
				       &subject.by[i]);
	if (!err)
		err = compare_until_same(&attempt, options, &subject);
	for (i = 0; i < subject.nr_ways; i++)
		procmap_close(subject.by[i]);
	if (err)
		goto free;

	if (options->json)
		json_attempt(out, options, &attempt);
	if (attempt.changed) {
		warnx("the mappings of process %d kept changing in %d comparisons: stop it first",
		      options->pid, COMPARE_ATTEMPTS);
		total->changed++;
		goto free;
	}
	if (!options->json && attempt.count.differences) {
		print_process(out, options);
		fputs(attempt.lines, out);
	}
	add_to_total(total, &attempt.count);
free:
	free(attempt.lines);
	return err;
}

int print_comparison(const struct options *options,
		     const struct comparison *total, FILE *out)
{
	enum procmap_way ways[NR_WAYS];

	if (total->processes && !options->json) {
		fprintf(out, "compared by ioctl%s and text\n",
			ways_to_compare(ways) == NR_WAYS ? ", scan" : "");
		if (is_of_many(options))
			fprintf(out, "  processes           %8zu\n",
				total->processes);
		if (!options->list)
			fprintf(out, "  addresses           %8zu\n",
				total->addresses);
		fprintf(out,
			"  mappings            %8zu\n"
			"  names               %8zu\n"
			"  build IDs           %8zu\n",
			total->mappings, total->names, total->build_ids);
		if (total->unreadable)
			fprintf(out, "not compared\n  unreadable files    %8zu\n",
				total->unreadable);
		fprintf(out, "differences           %8zu\n",
			total->differences);
	}
	return !total->changed && !total->differences && total->mappings ?
	       EXIT_SUCCESS : EXIT_FAILURE;
}
