// SPDX-License-Identifier: GPL-2.0
/* procfs_query: compare the results of all methods. */
#include "procfs_query.h"

#include <unistd.h>

/* A process that changes is compared at most this often. */
#define COMPARE_ATTEMPTS	10

/**
 * struct comparison - counts of a comparison
 * @processes: processes that were compared.
 * @changed: processes that kept changing, which no other count includes.
 * @addresses: addresses that were looked up.
 * @mappings: mappings whose fields were compared.
 * @names: mappings with a name.
 * @build_ids: mappings with a build ID.
 * @unreadable: mappings whose file the text method could not read.
 * @differences: differences that were found.
 */
struct comparison {
	size_t processes;
	size_t changed;
	size_t addresses;
	size_t mappings;
	size_t names;
	size_t build_ids;
	size_t unreadable;
	size_t differences;
};

/* The sums over all processes. */
static struct comparison total;

/**
 * struct attempt - one comparison of a process
 * @count: the counts.
 * @method: the method that is compared with the text.
 * @changed: the process changed its mappings meanwhile.
 * @options: the command line.
 * @json: the stream of differences.
 * @lines: the differences that were written; compare() frees them.
 * @lines_size: the number of bytes in @lines.
 */
struct attempt {
	struct comparison count;
	enum procmap_method method;
	bool changed;
	const struct options *options;
	struct json json;
	char *lines;
	size_t lines_size;
};

static void json_value(struct json *json, enum procmap_method method,
		       const char *value)
{
	if (value)
		json_string(json, method_name(method), value);
	else
		json_null(json, method_name(method));
}

/* A value is NULL if there is none. */
static void compare_strings(struct attempt *attempt, uint64_t addr,
			    const char *field, const char *by_method,
			    const char *by_text)
{
	struct json *const json = &attempt->json;

	if (by_method && by_text ? !strcmp(by_method, by_text) :
				   by_method == by_text)
		return;
	if (given(attempt->options, OPT_JSON)) {
		json_open(json, NULL, '{');
		json_address(json, "address", addr);
		json_string(json, "field", field);
		json_value(json, attempt->method, by_method);
		json_value(json, PROCMAP_BY_TEXT, by_text);
		json_close(json, '}');
	} else {
		fprintf(json->out, "0x%016" PRIx64 ": %s: %s ", addr, field,
			method_name(attempt->method));
		print_whole_name(json->out, by_method ? by_method : "none");
		fputs(", text ", json->out);
		print_whole_name(json->out, by_text ? by_text : "none");
		fputc('\n', json->out);
	}
	attempt->count.differences++;
}

static void compare_numbers(struct attempt *attempt, uint64_t addr,
			    const char *field, uint64_t by_method,
			    uint64_t by_text)
{
	char a[sizeof("0x") + 16], b[sizeof("0x") + 16];

	if (by_method == by_text)
		return;
	snprintf(a, sizeof(a), "0x%" PRIx64, by_method);
	snprintf(b, sizeof(b), "0x%" PRIx64, by_text);
	compare_strings(attempt, addr, field, a, b);
}

#define BUILD_ID_TEXT_SIZE	(2 * PROCMAP_BUILD_ID_MAX + 1)

static const char *format_build_id(const struct procmap_mapping *vma,
				   char text[BUILD_ID_TEXT_SIZE])
{
	int i;

	for (i = 0; i < vma->build_id_size; i++)
		sprintf(text + 2 * i, "%02x", vma->build_id[i]);
	return vma->build_id_size > 0 ? text : NULL;
}

static void compare_build_ids(struct attempt *attempt, uint64_t addr,
			      const struct procmap_mapping *by_method,
			      const struct procmap_mapping *by_text)
{
	char a[BUILD_ID_TEXT_SIZE], b[BUILD_ID_TEXT_SIZE];

	fail_without_files(by_text->build_id_size);
	fail_without_files(by_method->build_id_size);
	if (by_text->build_id_size < 0) {
		attempt->count.unreadable++;
		return;
	}
	attempt->count.build_ids += by_method->build_id_size ||
				 by_text->build_id_size;
	compare_strings(attempt, addr, "build ID", format_build_id(by_method, a),
			format_build_id(by_text, b));
}

/* Compare all that the text has; the page size is not in it. */
static void compare_vmas(struct attempt *attempt,
			 const struct procmap_mapping *by_method,
			 const struct procmap_mapping *by_text)
{
	const uint64_t addr = by_text->start;
	char a[5], b[5];

	attempt->count.mappings++;
	compare_numbers(attempt, addr, "start", by_method->start,
			by_text->start);
	compare_numbers(attempt, addr, "end", by_method->end, by_text->end);
	permissions(by_method, a);
	permissions(by_text, b);
	compare_strings(attempt, addr, "permissions", a, b);
	compare_numbers(attempt, addr, "offset", by_method->offset,
			by_text->offset);
	compare_numbers(attempt, addr, "device major", by_method->dev_major,
			by_text->dev_major);
	compare_numbers(attempt, addr, "device minor", by_method->dev_minor,
			by_text->dev_minor);
	compare_numbers(attempt, addr, "inode", by_method->inode,
			by_text->inode);
	attempt->count.names += by_method->name_len || by_text->name_len;
	compare_strings(attempt, addr, "name",
			by_method->name_len ? by_method->name : NULL,
			by_text->name_len ? by_text->name : NULL);
	compare_build_ids(attempt, addr, by_method, by_text);
}

static void compare_existence(struct attempt *attempt, uint64_t addr,
			      bool by_method, bool by_text)
{
	compare_strings(attempt, addr, "mapping",
			by_method ? "mapped" : "not mapped",
			by_text ? "mapped" : "not mapped");
}

static void compare_snapshots(struct attempt *attempt,
			      const struct procmap_snapshot *by_method,
			      const struct procmap_snapshot *by_text)
{
	const struct procmap_mapping *a, *b;
	size_t in_a = 0, in_b = 0;
	uint64_t end = 0;

	for (;;) {
		while ((a = procmap_snapshot_at(by_method, in_a)) && a->end <= end)
			in_a++;
		while ((b = procmap_snapshot_at(by_text, in_b)) && b->end <= end)
			in_b++;
		if (!a && !b)
			return;

		if (!a || (b && b->end <= a->start)) {
			compare_existence(attempt, b->start, false, true);
			end = b->end;
		} else if (!b || a->end <= b->start) {
			compare_existence(attempt, a->start, true, false);
			end = a->end;
		} else {
			compare_vmas(attempt, a, b);
			end = a->end > b->end ? a->end : b->end;
		}
	}
}

static int compare_lists(struct attempt *attempt,
			 const struct options *options,
			 struct procmap *procmap,
			 const struct procmap_snapshot *by_text)
{
	struct procmap_snapshot *by_method;
	int err;

	err = procmap_snapshot_take(procmap, options->flags, &by_method);
	if (err)
		return err;
	compare_snapshots(attempt, by_method, by_text);
	procmap_snapshot_free(by_method);
	return 0;
}

static int compare_addresses(struct attempt *attempt,
			     const struct options *options,
			     struct procmap *by_method, struct procmap *by_text)
{
	const unsigned int flags = options->flags;
	const struct procmap_resolved *a = NULL, *b = NULL;
	uint64_t compared_to = 0;
	size_t i;
	int err;

	err = procmap_resolve(by_method, options->addrs, options->nr_addrs,
			      flags, &a);
	if (!err)
		err = procmap_resolve(by_text, options->addrs,
				      options->nr_addrs, flags, &b);
	for (i = 0; !err && i < options->nr_addrs; i++) {
		const uint64_t addr = options->addrs[i];
		const uint32_t in_a = a->locations[i].mapping;
		const uint32_t in_b = b->locations[i].mapping;

		attempt->count.addresses++;
		compare_existence(attempt, addr, in_a != PROCMAP_NOT_MAPPED,
				  in_b != PROCMAP_NOT_MAPPED);
		if (in_a != PROCMAP_NOT_MAPPED && in_b != PROCMAP_NOT_MAPPED &&
		    addr >= compared_to) {
			const struct procmap_mapping *const x =
				a->mappings[in_a];
			const struct procmap_mapping *const y =
				b->mappings[in_b];

			compare_vmas(attempt, x, y);
			compared_to = x->end < y->end ? x->end : y->end;
		}
	}
	procmap_free_resolved(a);
	procmap_free_resolved(b);
	return err;
}

/**
 * struct subject - a process, opened once for each method
 * @nr_methods: the number of methods.
 * @methods: the methods, the text last.
 * @by: the handle of each method.
 */
struct subject {
	size_t nr_methods;
	enum procmap_method methods[NR_METHODS];
	struct procmap *by[NR_METHODS];
};

static struct procmap *text_of(const struct subject *subject)
{
	return subject->by[subject->nr_methods - 1];
}

/* Compare one method with the text. Each method counts the same mappings anew. */
static int compare_method(struct attempt *attempt, const struct options *options,
			  const struct subject *subject, size_t method,
			  const struct procmap_snapshot *by_text)
{
	attempt->method = subject->methods[method];
	attempt->count = (struct comparison) {
		.differences = attempt->count.differences,
	};
	return given(options, OPT_LIST) ?
	       compare_lists(attempt, options, subject->by[method], by_text) :
	       compare_addresses(attempt, options, subject->by[method],
				 text_of(subject));
}

static int has_changed(void *context, const struct procmap_mapping *was,
		       const struct procmap_mapping *is)
{
	(void)context;
	(void)was;
	(void)is;
	return 1;
}

/* Read the text before and after, to see whether the process changed. */
static int compare_once(struct attempt *attempt, const struct options *options,
			const struct subject *subject)
{
	struct procmap_snapshot *before, *after;
	size_t method;
	int err;

	err = procmap_snapshot_take(text_of(subject), options->flags, &before);
	if (err)
		return err;
	attempt->json = json_to(need(open_memstream(&attempt->lines,
						    &attempt->lines_size)),
				options);
	attempt->json.first = true;
	for (method = 0; method + 1 < subject->nr_methods && !err; method++)
		err = compare_method(attempt, options, subject, method, before);
	fclose(attempt->json.out);
	if (!err)
		err = procmap_snapshot_take(text_of(subject),
					    options->flags & ~PROCMAP_WANT_BUILD_ID,
					    &after);
	if (!err) {
		err = procmap_snapshot_compare(before, after, has_changed, NULL);
		procmap_snapshot_free(after);
	}
	procmap_snapshot_free(before);
	attempt->changed = err == 1;
	return err < 0 ? err : 0;
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
		*attempt = (struct attempt) { .options = options };
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
	struct json json = json_to(out, options);

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

static void add_to_total(const struct comparison *count)
{
	total.processes++;
	total.addresses += count->addresses;
	total.mappings += count->mappings;
	total.names += count->names;
	total.build_ids += count->build_ids;
	total.unreadable += count->unreadable;
	total.differences += count->differences;
}

static int compare(const struct options *options, FILE *out)
{
	struct subject subject = {};
	struct attempt attempt = {};
	int err = 0;
	size_t i;

	subject.nr_methods = methods_to_compare(subject.methods);
	for (i = 0; i < subject.nr_methods && !err; i++)
		err = procmap_open_pid(options->pid, subject.methods[i],
				       &subject.by[i]);
	if (!err)
		err = compare_until_same(&attempt, options, &subject);
	for (i = 0; i < subject.nr_methods; i++)
		procmap_close(subject.by[i]);
	if (err)
		goto free;

	if (given(options, OPT_JSON))
		json_attempt(out, options, &attempt);
	if (attempt.changed) {
		warnx("the mappings of process %d kept changing in %d comparisons: stop it first",
		      options->pid, COMPARE_ATTEMPTS);
		total.changed++;
		goto free;
	}
	if (!given(options, OPT_JSON) && attempt.count.differences) {
		print_process(out, options);
		fputs(attempt.lines, out);
	}
	add_to_total(&attempt.count);
free:
	free(attempt.lines);
	return err;
}

static int print_comparison(const struct options *options, FILE *out)
{
	enum procmap_method methods[NR_METHODS];

	if (total.processes && !given(options, OPT_JSON)) {
		fprintf(out, "compared by query%s and text\n",
			methods_to_compare(methods) == NR_METHODS ? ", scan" : "");
		if (is_of_many(options))
			fprintf(out, "  processes           %8zu\n",
				total.processes);
		if (!given(options, OPT_LIST))
			fprintf(out, "  addresses           %8zu\n",
				total.addresses);
		fprintf(out,
			"  mappings            %8zu\n"
			"  names               %8zu\n"
			"  build IDs           %8zu\n",
			total.mappings, total.names, total.build_ids);
		if (total.unreadable)
			fprintf(out, "not compared\n  unreadable files    %8zu\n",
				total.unreadable);
		fprintf(out, "differences           %8zu\n",
			total.differences);
	}
	return !total.changed && !total.differences && total.mappings ?
	       EXIT_SUCCESS : EXIT_FAILURE;
}

const struct tool_option compare_options[] = {
	{ .argp = { .name = "compare", .key = 'c', .group = GROUP_COMPARING,
		    .doc = "Print where their results differ, build IDs included" },
	  .bit = OPT_COMPARE, .takes = OPT_PID | OPT_MANY | OPT_EITHER | OPT_LIST |
		   OPT_SORT | OPT_BUILD_ID,
	  .needs = OPT_EITHER | OPT_LIST, .flags = PROCMAP_WANT_BUILD_ID,
	  .work = compare, .finish = print_comparison },
	{}
};
