// SPDX-License-Identifier: GPL-2.0
/* procmap-top: add up samples, and print them. */
#include "procmap_top.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* The columns of a function in the table. */
#define FUNCTION_WIDTH		32

/**
 * struct stack - a stack that samples have in common
 * @comm: the name of the process, which may be empty.
 * @count: how many samples.
 * @nr: the number of functions.
 * @functions: the functions, that which was executing first.
 */
struct stack {
	char comm[PROCMAP_COMM_SIZE];
	uint64_t count;
	size_t nr;
	struct function *functions[];
};

static int by_stack(const void *a, const void *b)
{
	const struct stack *const x = a, *const y = b;

	return x->nr != y->nr ? (x->nr > y->nr) - (x->nr < y->nr) :
	       strcmp(x->comm, y->comm) ?:
	       memcmp(x->functions, y->functions, x->nr * sizeof(*x->functions));
}

/* Count a stack, and each function once. */
void add_sample(struct report *report, const char *comm, const struct frame *frames,
		size_t nr_frames)
{
	struct stack *stack, **found;
	size_t i;

	report->samples++;
	stack = need(calloc(1, sizeof(*stack) + nr_frames * sizeof(*stack->functions)));
	memcpy(stack->comm, comm, strnlen(comm, sizeof(stack->comm) - 1));
	stack->nr = nr_frames;
	frames[0].function->self++;
	for (i = 0; i < nr_frames; i++) {
		struct function *const function = frames[i].function;

		stack->functions[i] = function;
		function->total += function->counted != report->samples;
		function->counted = report->samples;
	}
	found = need(tsearch(stack, &report->stacks, by_stack));
	if (*found != stack)
		free(stack);
	(*found)->count++;
}

/* A name that is not known is null. */
static void json_text(struct json *json, const char *key, const char *text)
{
	if (text && *text)
		json_string(json, key, text);
	else
		json_null(json, key);
}

static void json_file(struct json *json, const struct binary *binary)
{
	const char *const name = binary ? binary_name(binary) : NULL;
	const uint8_t *id;
	size_t size;

	if (name)
		json_exact(json, "file", "file_hex", name, strlen(name));
	else
		json_null(json, "file");
	size = binary ? binary_build_id(binary, &id) : 0;
	if (size)
		json_hex(json, "build_id", id, size);
	else
		json_null(json, "build_id");
}

static void json_function(struct json *json, const struct function *function)
{
	json_text(json, "function", function->name);
	if (function->name)
		json_address(json, "offset", function->offset);
	else
		json_null(json, "offset");
	json_file(json, function->binary);
}

static void json_begin(struct json *json, FILE *out, bool one_line)
{
	*json = (struct json) { .out = out, .one_line = one_line, .first = true };
	fputc('{', out);
}

/* A line of JSON. Times are strings, since many readers have no 64-bit numbers. */
void print_sample(FILE *out, const struct event *event, const char *comm,
		  const struct frame *frames, size_t nr_frames)
{
	char time[3 * sizeof(event->time)];
	struct json json;
	size_t i;

	snprintf(time, sizeof(time), "%" PRIu64, event->time);
	json_begin(&json, out, true);
	json_string(&json, "time", time);
	json_number(&json, "pid", event->pid);
	json_number(&json, "tid", event->tid);
	json_text(&json, "comm", comm);
	json_open(&json, "frames", '[');
	for (i = 0; i < nr_frames; i++) {
		json_open(&json, NULL, '{');
		json_address(&json, "address", frames[i].address);
		json_text(&json, "function", frames[i].function->name);
		if (frames[i].function->binary)
			json_address(&json, "offset", frames[i].offset);
		else
			json_null(&json, "offset");
		json_file(&json, frames[i].function->binary);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_end(&json);
}

/**
 * struct functions - functions to print
 * @functions: those that are in a stack, in the order of printing.
 * @nr: how many.
 * @size: room for so many.
 */
struct functions {
	struct function **functions;
	size_t nr;
	size_t size;
};

static void add_function(void *context, struct function *function)
{
	struct functions *const list = context;

	if (!function->total)
		return;
	list->functions = room_for_one(list->functions, list->nr, &list->size,
				       sizeof(*list->functions));
	list->functions[list->nr++] = function;
}

static const char *name_of(const struct function *function)
{
	return function->name ?: "[unknown]";
}

static const char *file_of(const struct function *function)
{
	return function->binary ? binary_name(function->binary) : "-";
}

/* The hottest first. */
static int by_heat(const void *a, const void *b)
{
	const struct function *const x = *(struct function *const *)a;
	const struct function *const y = *(struct function *const *)b;

	return (x->self < y->self) - (x->self > y->self) ?:
	       (x->total < y->total) - (x->total > y->total) ?:
	       strcmp(name_of(x), name_of(y)) ?: strcmp(file_of(x), file_of(y));
}

static struct functions hottest(struct unwinder *unwinder)
{
	struct functions list = { .nr = 0 };

	visit_functions(unwinder, add_function, &list);
	if (list.nr)
		qsort(list.functions, list.nr, sizeof(*list.functions), by_heat);
	return list;
}

/* Names are of files that anybody may have made. Returns the columns. */
static size_t print_escaped(FILE *out, const char *name)
{
	char *const escaped = escape(name);
	const size_t len = strlen(escaped);

	print_whole_name(out, escaped);
	free(escaped);
	return len;
}

static void print_row(FILE *out, const struct function *function, uint64_t samples)
{
	const uint8_t *id;
	size_t column;

	fprintf(out, "%6.2f%% %6.2f%% ", 100.0 * function->self / samples,
		100.0 * function->total / samples);
	column = print_escaped(out, name_of(function));
	fprintf(out, "%*s ", column < FUNCTION_WIDTH ? (int)(FUNCTION_WIDTH - column) : 0,
		"");
	print_escaped(out, file_of(function));
	if (function->name)
		fprintf(out, "+%#" PRIx64, function->offset);
	if (function->binary) {
		fputc(' ', out);
		print_hex(out, id, binary_build_id(function->binary, &id));
	}
	fputc('\n', out);
}

static void print_table(FILE *out, const struct report *report,
			const struct options *options, struct unwinder *unwinder)
{
	struct functions list = hottest(unwinder);
	size_t i;

	fprintf(out, "%" PRIu64 " samples in %.1f s, %lu a second of CPU time",
		report->samples, report->seconds, options->frequency);
	if (report->lost)
		fprintf(out, "; %" PRIu64 " records were lost", report->lost);
	fputc('\n', out);
	if (list.nr)
		fprintf(out, "%7s %7s %-*s %s\n", "self", "total", FUNCTION_WIDTH,
			"function", "file+offset, build ID");
	for (i = 0; i < list.nr && i < options->rows; i++)
		print_row(out, list.functions[i], report->samples);
	free(list.functions);
}

/* Separators of frames and ends of lines cannot be in a name. */
static void print_folded_name(FILE *out, const char *name)
{
	char *const text = need(strdup(name));
	char *at;

	for (at = text; *at; at++)
		if (*at == ';' || (unsigned char)*at < ' ')
			*at = '?';
	print_whole_name(out, text);
	free(text);
}

/* The name of a function or, in brackets, that of its file without the directories. */
static void print_folded_function(FILE *out, const struct function *function)
{
	const char *const file = function->binary ? binary_name(function->binary) : NULL;
	const char *const slash = file ? strrchr(file, '/') : NULL;

	fputc(';', out);
	if (function->name || !file) {
		print_folded_name(out, name_of(function));
	} else {
		fputc('[', out);
		print_folded_name(out, slash ? slash + 1 : file);
		fputc(']', out);
	}
}

static void print_folded(const void *node, VISIT order, void *out)
{
	const struct stack *const stack = *(struct stack *const *)node;
	size_t i;

	if (order != postorder && order != leaf)
		return;
	print_folded_name(out, *stack->comm ? stack->comm : "?");
	for (i = stack->nr; i--;)
		print_folded_function(out, stack->functions[i]);
	fprintf(out, " %" PRIu64 "\n", stack->count);
}

static void print_json_stack(const void *node, VISIT order, void *context)
{
	const struct stack *const stack = *(struct stack *const *)node;
	struct json *const json = context;
	size_t i;

	if (order != postorder && order != leaf)
		return;
	json_open(json, NULL, '{');
	json_text(json, "comm", stack->comm);
	json_number(json, "count", stack->count);
	json_open(json, "frames", '[');
	for (i = 0; i < stack->nr; i++) {
		json_open(json, NULL, '{');
		json_function(json, stack->functions[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void print_json(FILE *out, const struct report *report,
		       const struct options *options, struct unwinder *unwinder)
{
	struct functions list = hottest(unwinder);
	struct json json;
	size_t i;

	json_begin(&json, out, false);
	json_real(&json, "seconds", report->seconds);
	json_number(&json, "frequency", options->frequency);
	json_number(&json, "samples", report->samples);
	json_number(&json, "lost", report->lost);
	json_open(&json, "functions", '[');
	for (i = 0; i < list.nr; i++) {
		json_open(&json, NULL, '{');
		json_function(&json, list.functions[i]);
		json_number(&json, "self", list.functions[i]->self);
		json_number(&json, "total", list.functions[i]->total);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_open(&json, "stacks", '[');
	twalk_r(report->stacks, print_json_stack, &json);
	json_close(&json, ']');
	json_end(&json);
	free(list.functions);
}

void print_report(const struct report *report, const struct options *options,
		  struct unwinder *unwinder)
{
	struct output output;

	begin_output(&output);
	switch (options->format) {
	case TABLE:
		print_table(output.file, report, options, unwinder);
		break;
	case FOLDED:
		twalk_r(report->stacks, print_folded, output.file);
		break;
	case JSON:
		print_json(output.file, report, options, unwinder);
		break;
	case SAMPLES:
		break;
	}
	end_output(&output, true);
}

void free_report(struct report *report)
{
	tdestroy(report->stacks, free);
}
