// SPDX-License-Identifier: GPL-2.0
/*
 * procfs_query: tell which mappings of a process cover given addresses, or list
 * them, by the PROCMAP_QUERY ioctl or by the text of /proc/PID/maps.
 *
 * Finding them, both ways, is libprocmap's. This asks it, and prints, compares
 * and times what it says.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <argp.h>
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <procmap.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_TROUBLE		2

#define fail(...)		errx(EXIT_TROUBLE, __VA_ARGS__)

/* How often a process that changes meanwhile is compared anew. */
#define COMPARE_ATTEMPTS	10

#define BENCH_RUNS_MAX		1000000

/* Longest piece of bad input that is repeated in a message. */
#define QUOTE_LEN_MAX		60

/**
 * struct options - what the user asked for
 * @pid: the process; 0 if none was given.
 * @way: the way asked for, or PROCMAP_ANY_WAY.
 * @file: the file with addresses, or NULL.
 * @addrs: the addresses, sorted before they are used.
 * @nr_addrs: how many there are.
 * @size_addrs: how many there is room for.
 * @filters: the flags that a mapping must have.
 * @runs: runs of the benchmark, 0 for none.
 * @interval: seconds from one look to the next, 0 for one look.
 * @list: all mappings, and not those of addresses.
 * @compare: compare both ways.
 * @build_id: print build IDs.
 * @verbose: print the line of the mapping.
 * @json: print JSON.
 */
struct options {
	pid_t pid;
	enum procmap_way way;
	const char *file;
	uint64_t *addrs;
	size_t nr_addrs;
	size_t size_addrs;
	unsigned int filters;
	unsigned long runs;
	double interval;
	bool list;
	bool compare;
	bool build_id;
	bool verbose;
	bool json;
};

static void *need(void *memory)
{
	if (!memory)
		fail("out of memory");
	return memory;
}

static bool has_file(const struct procmap_mapping *vma)
{
	return vma->inode || vma->dev_major || vma->dev_minor;
}

static uint64_t file_offset(const struct procmap_mapping *vma, uint64_t addr)
{
	return addr - vma->start + vma->offset;
}

static const char *way_name(enum procmap_way way)
{
	return way == PROCMAP_BY_IOCTL ? "ioctl" : "text";
}

/* What is asked of each mapping. */
static unsigned int flags_of(const struct options *options)
{
	return options->filters |
	       (options->build_id || options->compare ? PROCMAP_WANT_BUILD_ID :
							0);
}

typedef void (*visit_fn)(void *context, uint64_t addr,
			 const struct procmap_mapping *vma);

static int visit_all(struct procmap *procmap, unsigned int flags,
		     visit_fn visit, void *context)
{
	struct procmap_mapping vma;
	uint64_t cursor = 0;
	int err;

	while (!(err = procmap_next(procmap, &cursor, flags, &vma)))
		visit(context, vma.start, &vma);
	return err == -ENOENT ? 0 : err;
}

static int visit_addresses(struct procmap *procmap,
			   const struct options *options, visit_fn visit,
			   void *context)
{
	struct procmap_resolved *resolved;
	size_t i;
	int err;

	err = procmap_resolve(procmap, options->addrs, options->nr_addrs,
			      flags_of(options), &resolved);
	if (err)
		return err;
	for (i = 0; i < options->nr_addrs; i++) {
		const uint32_t index = resolved->places[i].mapping;

		visit(context, options->addrs[i],
		      index == PROCMAP_NOT_MAPPED ? NULL :
						    &resolved->mappings[index]);
	}
	procmap_free_resolved(resolved);
	return 0;
}

/*
 * Do the work that was asked for, in one pass: visit each address with the
 * mapping that covers it, or NULL; or each mapping with its first address.
 */
static int visit(struct procmap *procmap, const struct options *options,
		 visit_fn visit_one, void *context)
{
	return options->list ?
	       visit_all(procmap, flags_of(options), visit_one, context) :
	       visit_addresses(procmap, options, visit_one, context);
}

static void print_hex(FILE *out, const void *bytes, size_t len)
{
	const unsigned char *const from = bytes;
	size_t i;

	for (i = 0; i < len; i++)
		fprintf(out, "%02x", from[i]);
}

static void permissions(const struct procmap_mapping *vma, char text[5])
{
	text[0] = vma->flags & PROCMAP_READABLE ? 'r' : '-';
	text[1] = vma->flags & PROCMAP_WRITABLE ? 'w' : '-';
	text[2] = vma->flags & PROCMAP_EXECUTABLE ? 'x' : '-';
	text[3] = vma->flags & PROCMAP_SHARED ? 's' : 'p';
	text[4] = '\0';
}

/*
 * JSON. A name is any bytes but NUL: what is valid UTF-8 in it goes out as it
 * is, any other byte as \u00XX.
 */

struct json {
	FILE *out;
	bool first;	/* the next member or element needs no comma */
};

static bool is_continuation(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Length of the valid UTF-8 sequence of several bytes at @s, 0 if none. */
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

/* The key of a member; NULL for an element, which has a line of its own. */
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

static void json_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	fputc(bracket, json->out);
	json->first = true;
}

static void json_close(struct json *json, char bracket)
{
	fputc(bracket, json->out);
	json->first = false;
}

static void json_word(struct json *json, const char *key, const char *word)
{
	json_key(json, key);
	fputs(word, json->out);
}

static void json_bool(struct json *json, const char *key, bool value)
{
	json_word(json, key, value ? "true" : "false");
}

static void json_number(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

static void json_real(struct json *json, const char *key, double value)
{
	json_key(json, key);
	fprintf(json->out, "%.3f", value);
}

static void json_address(struct json *json, const char *key, uint64_t addr)
{
	json_key(json, key);
	fprintf(json->out, "\"0x%" PRIx64 "\"", addr);
}

/* Returns whether it was valid UTF-8, so that nothing is lost. */
static bool json_bytes(struct json *json, const char *key, const char *bytes,
		       size_t len)
{
	const unsigned char *s = (const unsigned char *)bytes;
	bool valid = true;

	json_key(json, key);
	fputc('"', json->out);
	while (len) {
		size_t n = *s < 0x80 ? 1 : utf8_len(s, len);

		if (!n || *s < ' ') {
			valid = valid && n;
			fprintf(json->out, "\\u%04x", *s);
			n = 1;
		} else {
			if (*s == '"' || *s == '\\')
				fputc('\\', json->out);
			fwrite(s, 1, n, json->out);
		}
		s += n;
		len -= n;
	}
	fputc('"', json->out);
	return valid;
}

static void json_string(struct json *json, const char *key, const char *string)
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

static void json_name(struct json *json, const struct procmap_mapping *vma)
{
	if (!vma->name_len)
		json_word(json, "name", "null");
	else if (!json_bytes(json, "name", vma->name, vma->name_len))
		json_hex(json, "name_hex", vma->name, vma->name_len);
}

static void json_build_id(struct json *json, const struct procmap_mapping *vma)
{
	if (vma->build_id_size > 0)
		json_hex(json, "build_id", vma->build_id, vma->build_id_size);
	else
		json_word(json, "build_id", "null");
	if (vma->build_id_size < 0)
		json_bool(json, "build_id_unreadable", true);
}

static void json_vma(struct json *json, const char *key, const struct procmap_mapping *vma,
		     bool build_id)
{
	char perms[5], inode[3 * sizeof(vma->inode)];

	permissions(vma, perms);
	snprintf(inode, sizeof(inode), "%" PRIu64, vma->inode);

	json_open(json, key, '{');
	json_address(json, "start", vma->start);
	json_address(json, "end", vma->end);
	json_string(json, "permissions", perms);
	json_address(json, "offset", vma->offset);
	json_number(json, "dev_major", vma->dev_major);
	json_number(json, "dev_minor", vma->dev_minor);
	json_string(json, "inode", inode);
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

static void json_begin(struct json *json, const struct options *options)
{
	fputc('{', json->out);
	json->first = true;
	json_number(json, "pid", options->pid);
}

static void json_end(struct json *json)
{
	fputs("}\n", json->out);
}

/*
 * Where names begin in a line of the text. That depends on the size of a
 * pointer in the kernel, which a 32-bit program cannot know otherwise.
 */
static int name_column(void)
{
	FILE *const file = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;
	int column = 0;

	/* A name is the only thing that has a slash or a bracket. */
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

/**
 * struct printer - where found mappings go
 * @out: the stream.
 * @options: what is to be printed of them.
 * @column: where names begin in a line.
 * @json: the state of JSON.
 * @nr_found: how many mappings, or addresses in one, were printed.
 */
struct printer {
	FILE *out;
	const struct options *options;
	int column;
	struct json json;
	size_t nr_found;
};

/* The line of a mapping, byte for byte as in the text. */
static void print_line(const struct printer *printer,
		       const struct procmap_mapping *vma)
{
	const int column = printer->column;
	char perms[5];
	int len;

	permissions(vma, perms);
	len = fprintf(printer->out,
		      "%08" PRIx64 "-%08" PRIx64 " %s %08" PRIx64
		      " %02x:%02x %" PRIu64 " ",
		      vma->start, vma->end, perms, vma->offset, vma->dev_major,
		      vma->dev_minor, vma->inode);
	if (vma->name_len)
		fprintf(printer->out, "%*s%s",
			len < column ? column - len : 1, "", vma->name);
	fputc('\n', printer->out);
}

static void print_build_id_column(FILE *out, const struct procmap_mapping *vma)
{
	if (vma->build_id_size > 0)
		print_hex(out, vma->build_id, vma->build_id_size);
	else
		fprintf(out, "%-*s", 2 * PROCMAP_BUILD_ID_MAX,
			vma->build_id_size ? "?" : "-");
	fputc(' ', out);
}

static void print_address(const struct printer *printer, uint64_t addr,
			  const struct procmap_mapping *vma)
{
	FILE *const out = printer->out;

	fprintf(out, "0x%016" PRIx64 " ", addr);
	if (!vma) {
		fputs("not mapped\n", out);
		return;
	}

	if (has_file(vma))
		fprintf(out, "0x%016" PRIx64 " ", file_offset(vma, addr));
	else
		fprintf(out, "%-18s ", "-");
	if (printer->options->build_id)
		print_build_id_column(out, vma);
	fprintf(out, "%s\n", vma->name_len ? vma->name : "-");
	if (printer->options->verbose) {
		fputs("  ", out);
		print_line(printer, vma);
	}
}

static void print_listed(const struct printer *printer,
			 const struct procmap_mapping *vma)
{
	print_line(printer, vma);
	if (!printer->options->build_id || !vma->build_id_size)
		return;
	fputs("  build ID ", printer->out);
	if (vma->build_id_size > 0)
		print_hex(printer->out, vma->build_id, vma->build_id_size);
	else
		fputc('?', printer->out);
	fputc('\n', printer->out);
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

static int show(const struct options *options, FILE *out)
{
	struct printer printer = {
		.out = out,
		.options = options,
		.json = { .out = out },
	};
	struct procmap *procmap;
	int err;

	err = procmap_open_pid(options->pid, options->way, &procmap);
	if (err)
		return err;
	if (options->json) {
		json_begin(&printer.json, options);
		json_string(&printer.json, "way",
			    way_name(procmap_get_way(procmap)));
		json_open(&printer.json, options->list ? "vmas" : "addresses",
			  '[');
	} else if (options->list || options->verbose) {
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

/* A full disk or a reader that has gone is told, and not ignored. */
static void write_output(const char *bytes, size_t len)
{
	while (len) {
		const ssize_t written = write(STDOUT_FILENO, bytes, len);

		if (written < 0)
			fail("standard output: %s: not all of the result was written",
			     strerror(errno));
		bytes += written;
		len -= written;
	}
}

/**
 * struct snapshot - all mappings at one look
 * @vmas: the mappings, in rising order, with names of their own.
 * @nr: how many there are.
 * @size: how many there is room for.
 */
struct snapshot {
	struct procmap_mapping *vmas;
	size_t nr;
	size_t size;
};

static void empty_snapshot(struct snapshot *snapshot)
{
	while (snapshot->nr)
		free((char *)snapshot->vmas[--snapshot->nr].name);
}

static void add_to_snapshot(void *context, uint64_t addr,
			    const struct procmap_mapping *vma)
{
	struct snapshot *const snapshot = context;
	struct procmap_mapping *copy;

	(void)addr;
	if (snapshot->nr == snapshot->size) {
		snapshot->size = snapshot->size * 2 + 64;
		snapshot->vmas = need(reallocarray(snapshot->vmas,
						   snapshot->size,
						   sizeof(*snapshot->vmas)));
	}
	copy = &snapshot->vmas[snapshot->nr++];
	*copy = *vma;
	copy->name = need(strdup(vma->name));
}

static bool is_same_vma(const struct procmap_mapping *a,
			const struct procmap_mapping *b)
{
	return a->start == b->start && a->end == b->end &&
	       a->flags == b->flags && a->offset == b->offset &&
	       a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && !strcmp(a->name, b->name);
}

/* A mapping that came (@was is NULL), went (@is is NULL) or changed. */
static void print_change(struct printer *printer, const char *when,
			 const struct procmap_mapping *was,
			 const struct procmap_mapping *is)
{
	const bool build_id = printer->options->build_id;
	struct json *const json = &printer->json;
	FILE *const out = printer->out;

	if (!printer->options->json) {
		if (was) {
			fprintf(out, "%s %c ", when, is ? '<' : '-');
			print_line(printer, was);
		}
		if (is) {
			fprintf(out, "%s %c ", when, was ? '>' : '+');
			print_line(printer, is);
		}
		return;
	}
	json_begin(json, printer->options);
	json_string(json, "time", when);
	json_string(json, "change",
		    was ? is ? "changed" : "vanished" : "appeared");
	if (was)
		json_vma(json, "was", was, build_id);
	if (is)
		json_vma(json, "is", is, build_id);
	json_end(json);
}

static void print_changes(struct printer *printer, const char *when,
			  const struct snapshot *before,
			  const struct snapshot *now)
{
	size_t i = 0, j = 0;

	while (i < before->nr || j < now->nr) {
		const struct procmap_mapping *was = NULL, *is = NULL;

		if (i < before->nr)
			was = &before->vmas[i];
		if (j < now->nr)
			is = &now->vmas[j];
		if (was && is && was->start < is->start)
			is = NULL;
		else if (was && is && is->start < was->start)
			was = NULL;
		i += !!was;
		j += !!is;
		if (!was || !is || !is_same_vma(was, is))
			print_change(printer, when, was, is);
	}
}

static void print_first_look(struct printer *printer, const char *when,
			     size_t nr)
{
	if (printer->options->json) {
		json_begin(&printer->json, printer->options);
		json_string(&printer->json, "time", when);
		json_number(&printer->json, "mappings", nr);
		json_end(&printer->json);
	} else {
		fprintf(printer->out, "%s   %zu mappings\n", when, nr);
	}
}

static void wait_until(struct timespec *next, double seconds)
{
	const long ns = next->tv_nsec + (long)((seconds - (long)seconds) * 1e9);

	next->tv_sec += (time_t)seconds + ns / 1000000000;
	next->tv_nsec = ns % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL))
		;
}

/* Look, and print what has changed since the look before. */
static int look(struct procmap *procmap, struct printer *printer,
		struct snapshot *before, struct snapshot *now, bool is_first)
{
	const time_t clock = time(NULL);
	char when[sizeof("23:59:59")];
	size_t len;
	char *text;
	int err;

	empty_snapshot(now);
	err = visit(procmap, printer->options, add_to_snapshot, now);
	if (err)
		return err;
	strftime(when, sizeof(when), "%T", localtime(&clock));
	printer->out = need(open_memstream(&text, &len));
	printer->json = (struct json) { .out = printer->out };
	if (is_first)
		print_first_look(printer, when, now->nr);
	else
		print_changes(printer, when, before, now);
	if (fclose(printer->out))
		fail("out of memory");
	write_output(text, len);
	free(text);
	return 0;
}

/* A process that executes another program goes on with new mappings. */
static int look_anew(const struct options *options, struct procmap **procmap,
		     struct printer *printer, struct snapshot *before,
		     struct snapshot *now, bool is_first)
{
	int err;

	procmap_close(*procmap);
	*procmap = NULL;
	err = procmap_open_pid(options->pid, options->way, procmap);
	return err ? err : look(*procmap, printer, before, now, is_first);
}

/* Until the process is no more. */
static int watch(const struct options *options)
{
	struct printer printer = { .options = options, .column = name_column() };
	struct snapshot snapshots[2] = {};
	struct procmap *procmap;
	struct timespec next;
	unsigned int i;
	int err;

	err = procmap_open_pid(options->pid, options->way, &procmap);
	if (err)
		return err;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (i = 0; !err; i++) {
		if (i)
			wait_until(&next, options->interval);
		err = look(procmap, &printer, &snapshots[(i + 1) % 2],
			   &snapshots[i % 2], !i);
		if (err == -ESRCH)
			err = look_anew(options, &procmap, &printer,
					&snapshots[(i + 1) % 2],
					&snapshots[i % 2], !i);
	}
	procmap_close(procmap);
	for (i = 0; i < 2; i++) {
		empty_snapshot(&snapshots[i]);
		free(snapshots[i].vmas);
	}
	return err == -ESRCH || err == -ENOENT ? EXIT_SUCCESS : err;
}

/**
 * struct comparison - what a comparison found
 * @changed: the process did not hold still meanwhile.
 * @as_json: differences are written as JSON objects, and not as lines.
 * @json: where they are written to.
 * @lines: what was written.
 * @lines_size: their bytes.
 * @addresses: addresses looked up.
 * @mappings: mappings that both ways found and whose fields were compared.
 * @names: those that have a name.
 * @build_ids: those that have a build ID.
 * @unreadable: those whose file could not be read for the text.
 * @differences: how many there are.
 */
struct comparison {
	bool changed;
	bool as_json;
	struct json json;
	char *lines;
	size_t lines_size;
	size_t addresses;
	size_t mappings;
	size_t names;
	size_t build_ids;
	size_t unreadable;
	size_t differences;
};

static void compare_strings(struct comparison *comparison, uint64_t addr,
			    const char *field, const char *by_ioctl,
			    const char *by_text)
{
	struct json *const json = &comparison->json;

	if (!strcmp(by_ioctl, by_text))
		return;
	if (comparison->as_json) {
		json_open(json, NULL, '{');
		json_address(json, "address", addr);
		json_string(json, "field", field);
		json_string(json, "ioctl", by_ioctl);
		json_string(json, "text", by_text);
		json_close(json, '}');
	} else {
		fprintf(json->out, "0x%016" PRIx64 ": %s: ioctl %s, text %s\n",
			addr, field, by_ioctl, by_text);
	}
	comparison->differences++;
}

static void compare_numbers(struct comparison *comparison, uint64_t addr,
			    const char *field, uint64_t by_ioctl,
			    uint64_t by_text)
{
	char a[sizeof("0x") + 16], b[sizeof("0x") + 16];

	if (by_ioctl == by_text)
		return;
	snprintf(a, sizeof(a), "0x%" PRIx64, by_ioctl);
	snprintf(b, sizeof(b), "0x%" PRIx64, by_text);
	compare_strings(comparison, addr, field, a, b);
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

static void compare_build_ids(struct comparison *comparison, uint64_t addr,
			      const struct procmap_mapping *by_ioctl,
			      const struct procmap_mapping *by_text)
{
	char a[BUILD_ID_TEXT_SIZE], b[BUILD_ID_TEXT_SIZE];

	if (by_text->build_id_size < 0) {
		comparison->unreadable++;
		return;
	}
	comparison->build_ids += by_ioctl->build_id_size ||
				 by_text->build_id_size;
	format_build_id(by_ioctl, a);
	format_build_id(by_text, b);
	compare_strings(comparison, addr, "build ID", a, b);
}

/* All that the text tells; the page size is not in it. */
static void compare_vmas(struct comparison *comparison,
			 const struct procmap_mapping *by_ioctl,
			 const struct procmap_mapping *by_text)
{
	const uint64_t addr = by_text->start;
	char a[5], b[5];

	comparison->mappings++;
	compare_numbers(comparison, addr, "start", by_ioctl->start,
			by_text->start);
	compare_numbers(comparison, addr, "end", by_ioctl->end, by_text->end);
	permissions(by_ioctl, a);
	permissions(by_text, b);
	compare_strings(comparison, addr, "permissions", a, b);
	compare_numbers(comparison, addr, "offset", by_ioctl->offset,
			by_text->offset);
	compare_numbers(comparison, addr, "device major", by_ioctl->dev_major,
			by_text->dev_major);
	compare_numbers(comparison, addr, "device minor", by_ioctl->dev_minor,
			by_text->dev_minor);
	compare_numbers(comparison, addr, "inode", by_ioctl->inode,
			by_text->inode);
	comparison->names += by_ioctl->name_len || by_text->name_len;
	compare_strings(comparison, addr, "name", by_ioctl->name, by_text->name);
	compare_build_ids(comparison, addr, by_ioctl, by_text);
}

static void compare_existence(struct comparison *comparison, uint64_t addr,
			      bool by_ioctl, bool by_text)
{
	compare_strings(comparison, addr, "mapping",
			by_ioctl ? "mapped" : "not mapped",
			by_text ? "mapped" : "not mapped");
}

/* The next of a walk; at its end, *at_end. */
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

static int compare_lists(struct comparison *comparison,
			 const struct options *options,
			 struct procmap *by_ioctl, struct procmap *by_text)
{
	const unsigned int flags = flags_of(options);
	struct procmap_mapping a = {}, b = {};
	bool end_a = false, end_b = false;
	uint64_t addr = 0;
	int err;

	for (;;) {
		err = next_of(by_ioctl, addr, flags, &a, &end_a);
		if (!err)
			err = next_of(by_text, addr, flags, &b, &end_b);
		if (err || (end_a && end_b))
			return err;

		if (end_a || (!end_b && b.end <= a.start)) {
			compare_existence(comparison, b.start, false, true);
			addr = b.end;
		} else if (end_b || a.end <= b.start) {
			compare_existence(comparison, a.start, true, false);
			addr = a.end;
		} else {
			compare_vmas(comparison, &a, &b);
			addr = a.end > b.end ? a.end : b.end;
		}
	}
}

static int compare_addresses(struct comparison *comparison,
			     const struct options *options,
			     struct procmap *by_ioctl, struct procmap *by_text)
{
	const unsigned int flags = flags_of(options);
	struct procmap_resolved *a = NULL, *b = NULL;
	uint64_t compared_to = 0;
	size_t i;
	int err;

	err = procmap_resolve(by_ioctl, options->addrs, options->nr_addrs,
			      flags, &a);
	if (!err)
		err = procmap_resolve(by_text, options->addrs,
				      options->nr_addrs, flags, &b);
	for (i = 0; !err && i < options->nr_addrs; i++) {
		const uint64_t addr = options->addrs[i];
		const uint32_t in_a = a->places[i].mapping;
		const uint32_t in_b = b->places[i].mapping;

		comparison->addresses++;
		compare_existence(comparison, addr, in_a != PROCMAP_NOT_MAPPED,
				  in_b != PROCMAP_NOT_MAPPED);
		if (in_a != PROCMAP_NOT_MAPPED && in_b != PROCMAP_NOT_MAPPED &&
		    addr >= compared_to) {
			const struct procmap_mapping *const x =
				&a->mappings[in_a];
			const struct procmap_mapping *const y =
				&b->mappings[in_b];

			compare_vmas(comparison, x, y);
			compared_to = x->end < y->end ? x->end : y->end;
		}
	}
	procmap_free_resolved(a);
	procmap_free_resolved(b);
	return err;
}

/* All of the text, to see whether a process has changed. */
static char *read_maps(pid_t pid, size_t *len)
{
	char path[sizeof("/proc//maps") + 3 * sizeof(pid)];
	char *text = NULL;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	*len = 0;
	while (file && !feof(file) && !ferror(file)) {
		if (*len == size) {
			size = size * 2 + 64 * 1024;
			text = need(realloc(text, size));
		}
		*len += fread(text + *len, 1, size - *len, file);
	}
	if (file)
		fclose(file);
	return text;
}

/*
 * One attempt. The text is read before and after, to see whether the process
 * held still.
 */
static int compare_once(struct comparison *comparison,
			const struct options *options, struct procmap *by_ioctl,
			struct procmap *by_text)
{
	size_t len_before, len_after;
	char *before, *after;
	int err;

	before = read_maps(options->pid, &len_before);
	comparison->json.first = true;
	comparison->json.out = need(open_memstream(&comparison->lines,
						   &comparison->lines_size));
	err = options->list ?
	      compare_lists(comparison, options, by_ioctl, by_text) :
	      compare_addresses(comparison, options, by_ioctl, by_text);
	fclose(comparison->json.out);
	after = read_maps(options->pid, &len_after);
	comparison->changed = len_before != len_after ||
			      memcmp(before, after, len_before);
	free(before);
	free(after);
	return err;
}

/*
 * A process that maps and unmaps at the same place can show the ioctl what no
 * text has, while the text before and after is the same. So there is only a
 * difference if each attempt found one, in a process that held still each time.
 */
static int compare_until_same(struct comparison *comparison,
			      const struct options *options,
			      struct procmap *by_ioctl, struct procmap *by_text)
{
	bool changed = false;
	int attempt, err;

	for (attempt = 0; attempt < COMPARE_ATTEMPTS; attempt++) {
		/* A process that starts up gets 1 s in all to come to rest. */
		if (attempt)
			usleep(1000 << attempt);
		free(comparison->lines);
		*comparison = (struct comparison) { .as_json = options->json };
		err = compare_once(comparison, options, by_ioctl, by_text);
		if (err)
			return err;
		if (!comparison->changed && !comparison->differences)
			return 0;
		changed |= comparison->changed;
	}
	comparison->changed = changed;
	return 0;
}

static void json_comparison(FILE *out, const struct options *options,
			    const struct comparison *comparison)
{
	struct json json = { .out = out };

	json_begin(&json, options);
	json_open(&json, "compare", '{');
	json_bool(&json, "changed", comparison->changed);
	json_number(&json, "addresses", comparison->addresses);
	json_number(&json, "mappings", comparison->mappings);
	json_number(&json, "names", comparison->names);
	json_number(&json, "build_ids", comparison->build_ids);
	json_number(&json, "build_ids_unreadable", comparison->unreadable);
	json_open(&json, "differences", '[');
	if (!comparison->changed)
		fputs(comparison->lines, out);
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}

static void print_comparison(FILE *out, const struct options *options,
			     const struct comparison *comparison)
{
	fputs(comparison->lines, out);
	fputs("compared by ioctl and text\n", out);
	if (!options->list)
		fprintf(out, "  addresses           %8zu\n",
			comparison->addresses);
	fprintf(out,
		"  mappings            %8zu\n"
		"  names               %8zu\n"
		"  build IDs           %8zu\n",
		comparison->mappings, comparison->names, comparison->build_ids);
	if (comparison->unreadable)
		fprintf(out, "not compared\n  unreadable files    %8zu\n",
			comparison->unreadable);
	fprintf(out, "differences           %8zu\n", comparison->differences);
}

static int compare(const struct options *options, FILE *out)
{
	struct procmap *by_ioctl = NULL, *by_text = NULL;
	struct comparison comparison = {};
	int err;

	err = procmap_open_pid(options->pid, PROCMAP_BY_IOCTL, &by_ioctl);
	if (!err)
		err = procmap_open_pid(options->pid, PROCMAP_BY_TEXT, &by_text);
	if (!err)
		err = compare_until_same(&comparison, options, by_ioctl,
					 by_text);
	procmap_close(by_ioctl);
	procmap_close(by_text);
	if (err)
		goto free;

	if (options->json)
		json_comparison(out, options, &comparison);
	else if (!comparison.changed)
		print_comparison(out, options, &comparison);
	if (comparison.changed)
		warnx("the mappings of process %d changed each time, %d times: stop it first",
		      options->pid, COMPARE_ATTEMPTS);
	err = !comparison.changed && !comparison.differences &&
	      comparison.mappings ? EXIT_SUCCESS : EXIT_FAILURE;
free:
	free(comparison.lines);
	return err;
}

/**
 * struct timing - what the runs of one way cost
 * @way: the way.
 * @ns: the time of each run.
 * @syscalls: of a run.
 * @nr_found: mappings, or addresses in one, that the last run found.
 */
struct timing {
	enum procmap_way way;
	uint64_t *ns;
	unsigned long syscalls;
	size_t nr_found;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void count_found(void *context, uint64_t addr,
			const struct procmap_mapping *vma)
{
	size_t *nr_found = context;

	(void)addr;
	if (vma)
		(*nr_found)++;
}

static int run(const struct options *options, enum procmap_way way,
	       size_t *nr_found)
{
	struct procmap *procmap;
	int err;

	*nr_found = 0;
	err = procmap_open_pid(options->pid, way, &procmap);
	if (!err) {
		err = visit(procmap, options, count_found, nr_found);
		procmap_close(procmap);
	}
	return err;
}

static int time_run(const struct options *options, struct timing *timing,
		    unsigned long nr)
{
	const uint64_t begin = now_ns();
	const int err = run(options, timing->way, &timing->nr_found);

	timing->ns[nr] = now_ns() - begin;
	return err;
}

/* A run between two system calls that a tracer finds; the heap has its size. */
static void run_to_be_counted(const struct options *options,
			      enum procmap_way way)
{
	size_t nr_found;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(EXIT_TROUBLE);
	run(options, way, &nr_found);
	raise(SIGSTOP);
	syscall(SYS_getpid);
	run(options, way, &nr_found);
	syscall(SYS_getpid);
	_exit(0);
}

/* How many system calls a run makes, as the kernel sees it; 0 if unknown. */
static unsigned long count_syscalls(const struct options *options,
				    enum procmap_way way)
{
	const pid_t child = fork();
	unsigned long stops = 0;
	bool counting = false;
	int status;

	if (!child)
		run_to_be_counted(options, way);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		struct __ptrace_syscall_info info = {};

		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info),
			       &info);
			if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
				if (info.entry.nr == SYS_getpid)
					counting = !counting;
				else
					stops += counting;
			}
		} else {
			ptrace(PTRACE_SETOPTIONS, child, NULL,
			       PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
		}
		ptrace(PTRACE_SYSCALL, child, NULL, NULL);
	}
	return stops;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(const struct timing *timing, unsigned long runs)
{
	return (timing->ns[(runs - 1) / 2] + timing->ns[runs / 2]) / 2000.0;
}

static void json_timings(FILE *out, const struct options *options,
			 const struct timing timings[2], double ratio)
{
	const unsigned long runs = options->runs;
	struct json json = { .out = out };
	int i;

	json_begin(&json, options);
	json_open(&json, "bench", '{');
	json_number(&json, "runs", runs);
	for (i = 0; i < 2; i++) {
		const struct timing *const timing = &timings[i];

		json_open(&json, way_name(timing->way), '{');
		json_real(&json, "min_us", timing->ns[0] / 1000.0);
		json_real(&json, "median_us", median_us(timing, runs));
		json_real(&json, "max_us", timing->ns[runs - 1] / 1000.0);
		json_number(&json, "syscalls", timing->syscalls);
		json_number(&json, "found", timing->nr_found);
		json_close(&json, '}');
	}
	json_real(&json, "text_to_ioctl", ratio);
	json_close(&json, '}');
	json_end(&json);
}

static void print_timings(FILE *out, const struct options *options,
			  const struct timing timings[2], double ratio)
{
	const unsigned long runs = options->runs;
	int i;

	fprintf(out, "%lu runs each, times in us\n", runs);
	fprintf(out, "%-5s %12s %12s %12s %12s %9s\n", "", "min", "median",
		"max", "syscalls", "found");
	for (i = 0; i < 2; i++) {
		const struct timing *const timing = &timings[i];

		fprintf(out, "%-5s %12.1f %12.1f %12.1f %12lu %9zu\n",
			way_name(timing->way), timing->ns[0] / 1000.0,
			median_us(timing, runs), timing->ns[runs - 1] / 1000.0,
			timing->syscalls, timing->nr_found);
	}
	fprintf(out, "ratio of the medians, text to ioctl: %.2f\n", ratio);
}

static int bench(const struct options *options, FILE *out)
{
	struct timing timings[2] = {
		{ .way = PROCMAP_BY_IOCTL },
		{ .way = PROCMAP_BY_TEXT },
	};
	unsigned long nr;
	double ratio;
	int i, err = 0;

	for (i = 0; i < 2; i++)
		timings[i].ns = need(calloc(options->runs, sizeof(uint64_t)));

	/* The two take turns, and take turns at being first. */
	for (nr = 0; nr < options->runs && !err; nr++)
		for (i = 0; i < 2 && !err; i++)
			err = time_run(options, &timings[(nr + i) % 2], nr);
	if (!err) {
		for (i = 0; i < 2; i++) {
			qsort(timings[i].ns, options->runs, sizeof(uint64_t),
			      by_number);
			timings[i].syscalls = count_syscalls(options,
							     timings[i].way);
		}
		ratio = median_us(&timings[1], options->runs) /
			median_us(&timings[0], options->runs);
		if (options->json)
			json_timings(out, options, timings, ratio);
		else
			print_timings(out, options, timings, ratio);
		err = timings[0].nr_found || timings[1].nr_found ?
		      EXIT_SUCCESS : EXIT_FAILURE;
	}

	for (i = 0; i < 2; i++)
		free(timings[i].ns);
	return err;
}

/* Bad input as it can stand in a message of one line. */
static const char *quote(const char *text, size_t len)
{
	static char quoted[QUOTE_LEN_MAX + sizeof("...")];
	size_t i;

	for (i = 0; i < len && i < QUOTE_LEN_MAX; i++)
		quoted[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	strcpy(quoted + i, i < len ? "..." : "");
	return quoted;
}

/* Parse an address and say what is wrong with it, or return NULL. */
static const char *parse_address(const char *text, size_t len, uint64_t *addr)
{
	size_t i = 0;

	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		i = 2;
	for (*addr = 0; i < len; i++) {
		const unsigned char c = text[i];

		if (!isxdigit(c))
			return "is not a hexadecimal address";
		if (*addr >> 60)
			return "is too large: an address has 64 bits at most";
		*addr = *addr << 4 | (isdigit(c) ? c - '0' :
						   tolower(c) - 'a' + 10);
	}
	return NULL;
}

static void add_address(struct options *options, uint64_t addr)
{
	if (options->nr_addrs == options->size_addrs) {
		options->size_addrs = options->size_addrs * 2 + 64;
		options->addrs = need(reallocarray(options->addrs,
						   options->size_addrs,
						   sizeof(addr)));
	}
	options->addrs[options->nr_addrs++] = addr;
}

static void read_address_line(struct options *options, const char *name,
			      size_t line, const char *text, size_t len)
{
	const char *const comment = memchr(text, '#', len);
	const char *problem;
	uint64_t addr;

	if (comment)
		len = comment - text;
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (!len)
		return;
	problem = parse_address(text, len, &addr);
	if (problem)
		fail("%s:%zu: '%s' %s", name, line, quote(text, len), problem);
	add_address(options, addr);
}

static void read_addresses(struct options *options)
{
	const bool is_stdin = !strcmp(options->file, "-");
	const char *const name = is_stdin ? "standard input" : options->file;
	FILE *const file = is_stdin ? stdin : fopen(options->file, "re");
	size_t size = 0, line = 0;
	char *text = NULL;
	ssize_t len;

	if (!file)
		fail("%s: %s: give a file with one address a line", name,
		     strerror(errno));
	while ((len = getline(&text, &size, file)) >= 0)
		read_address_line(options, name, ++line, text, len);
	if (!feof(file))
		fail("%s:%zu: %s: give a file with one address a line", name,
		     line + 1, strerror(errno));
	if (!options->nr_addrs)
		fail("%s:%zu: the file ends without an address: give one a line",
		     name, line);
	free(text);
	if (!is_stdin)
		fclose(file);
}

/* Say in one line what went wrong and what to do about it. */
static void report_trouble(pid_t pid, int err)
{
	switch (-err) {
	case ENOENT:
		fail("there is no process %d: see ps(1) for those there are",
		     pid);
	case EACCES:
	case EPERM:
		fail("no permission to look into process %d: become its user or root",
		     pid);
	case ESRCH:
		fail("process %d has no mappings (a kernel thread, or exited): give another",
		     pid);
	case ENOTTY:
		fail("this kernel has no PROCMAP_QUERY: only the text (-T) can be used");
	case EBADMSG:
		fail("/proc/%d/maps is not in the format of this kernel's text: use -Q",
		     pid);
	case EPROTO:
		fail("/proc/%d/maps: the kernel answered with what is no mapping: use -T",
		     pid);
	case ENOMEM:
		fail("out of memory");
	default:
		fail("/proc/%d/maps: %s", pid, strerror(-err));
	}
}

enum {
	KEY_EXECUTABLE = 0x100,
	KEY_READABLE,
	KEY_WRITABLE,
	KEY_SHARED,
	KEY_FILE_BACKED,
};

static const struct argp_option argp_options[] = {
	{ .doc = "What to look at:" },
	{ .name = "pid", .key = 'p', .arg = "PID",
	  .doc = "The process to look into, or self; required" },
	{ .name = "file", .key = 'f', .arg = "FILE",
	  .doc = "Read addresses from FILE, one a line; - is standard input, # begins a comment" },
	{ .name = "list", .key = 'l',
	  .doc = "List all mappings, each as its line in /proc/PID/maps" },
	{ .name = "interval", .key = 'i', .arg = "SECONDS",
	  .doc = "With --list: look again every SECONDS, print what has changed" },

	{ .doc = "Filters, of which a mapping has to pass all:" },
	{ .name = "executable", .key = KEY_EXECUTABLE, .doc = "Executable" },
	{ .name = "readable", .key = KEY_READABLE, .doc = "Readable" },
	{ .name = "writable", .key = KEY_WRITABLE, .doc = "Writable" },
	{ .name = "shared", .key = KEY_SHARED,
	  .doc = "Shared (s in the text)" },
	{ .name = "file-backed", .key = KEY_FILE_BACKED,
	  .doc = "Of a file" },

	{ .doc = "How to look:" },
	{ .name = "query", .key = 'Q',
	  .doc = "By the ioctl; fail if the kernel has none" },
	{ .name = "text", .key = 'T', .doc = "By the text" },

	{ .doc = "What to print:" },
	{ .name = "verbose", .key = 'v',
	  .doc = "With an address, the line of its mapping too" },
	{ .name = "build-id", .key = 'B',
	  .doc = "Build IDs; with -T they are read from the files" },
	{ .name = "json", .key = 'j', .doc = "JSON" },

	{ .doc = "Both ways, instead of printing what was found:" },
	{ .name = "compare", .key = 'c',
	  .doc = "Print what differs, build IDs included" },
	{ .name = "bench", .key = 'b', .arg = "N",
	  .doc = "Print what N runs of each cost, in turns" },
	{}
};

static const char argp_args_doc[] = "ADDR...\n-f FILE\n--list";

static const char argp_doc[] =
	"Tell which mappings of a process cover addresses, or list its mappings: by the PROCMAP_QUERY ioctl on /proc/PID/maps where the kernel has it, else by the text of that file.\n"
	"\n"
	"Addresses are hexadecimal, with or without 0x. They are looked up and printed in rising order: address, offset in the file, with -B build ID, name. A - stands for what there is none of, a ? for the build ID of a file that cannot be read.\n"
	"\vExamples:\n"
	"  procfs_query -p 1 7f5e12345678          what is mapped there\n"
	"  procfs_query -p 1 -B -f addresses.txt   for a symbolizer\n"
	"  procfs_query -p 1 --list --executable   the code of a process\n"
	"  procfs_query -p 1 --list --interval 1   what is mapped and unmapped\n"
	"  procfs_query -p 1 --list --compare      do both ways agree?\n"
	"  procfs_query -p 1 --list --bench 100    which one is faster?\n"
	"\n"
	"By the text, a build ID is read from /proc/PID/map_files, for which CAP_CHECKPOINT_RESTORE is needed, else from the path if the mapped file is still there.\n"
	"\n"
	"In JSON, addresses and offsets are strings in hexadecimal, inode numbers strings in decimal. A name is a string in which each byte that is not part of valid UTF-8 is \\u0080 to \\u00ff; there is a name_hex with all bytes of such a name.\n"
	"\n"
	"Exit status:\n"
	"  0  something was found, and with --compare nothing differs\n"
	"  1  nothing was found, or something differs\n"
	"  2  bad usage, or the process cannot be looked into";

static bool parse_number(const char *text, unsigned long max,
			 unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return !errno && !*end && *number && *number <= max;
}

static void set_interval(struct options *options, const char *text)
{
	char *end;

	options->interval = strtod(text, &end);
	if (end == text || *end || !(options->interval >= 0.001) ||
	    options->interval > 86400)
		fail("'%s' is not an interval: give seconds from 0.001 to 86400",
		     quote(text, strlen(text)));
}

static void set_pid(struct options *options, const char *text)
{
	unsigned long pid = getpid();

	if (strcmp(text, "self") && !parse_number(text, INT_MAX, &pid))
		fail("'%s' is not a process ID: give a positive number, or self",
		     quote(text, strlen(text)));
	options->pid = pid;
}

static void set_way(struct options *options, enum procmap_way way)
{
	if (options->way != PROCMAP_ANY_WAY && options->way != way)
		fail("-Q and -T exclude each other: leave out one");
	options->way = way;
}

static void add_argument(struct options *options, const char *text)
{
	const char *problem;
	uint64_t addr;

	problem = parse_address(text, strlen(text), &addr);
	if (!*text)
		problem = "is not a hexadecimal address";
	if (problem)
		fail("argument '%s' %s", quote(text, strlen(text)), problem);
	add_address(options, addr);
}

static void check_options(const struct options *options)
{
	if (!options->pid)
		fail("no process given: use -p PID");
	if (options->list + !!options->file + !!options->nr_addrs != 1)
		fail("give either addresses, or -f FILE, or --list");
	if (options->compare && options->runs)
		fail("--compare and --bench exclude each other: run one after the other");
	if (options->interval && !options->list)
		fail("--interval watches all mappings: use it with --list");
	if (options->interval && (options->compare || options->runs))
		fail("--interval excludes --compare and --bench: leave out one");
	if (options->way && (options->compare || options->runs))
		fail("--compare and --bench use both ways: leave out -Q and -T");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'p':
		set_pid(options, arg);
		break;
	case 'f':
		options->file = arg;
		break;
	case 'l':
		options->list = true;
		break;
	case 'i':
		set_interval(options, arg);
		break;
	case KEY_EXECUTABLE:
		options->filters |= PROCMAP_EXECUTABLE;
		break;
	case KEY_READABLE:
		options->filters |= PROCMAP_READABLE;
		break;
	case KEY_WRITABLE:
		options->filters |= PROCMAP_WRITABLE;
		break;
	case KEY_SHARED:
		options->filters |= PROCMAP_SHARED;
		break;
	case KEY_FILE_BACKED:
		options->filters |= PROCMAP_FILE_BACKED;
		break;
	case 'Q':
		set_way(options, PROCMAP_BY_IOCTL);
		break;
	case 'T':
		set_way(options, PROCMAP_BY_TEXT);
		break;
	case 'v':
		options->verbose = true;
		break;
	case 'B':
		options->build_id = true;
		break;
	case 'j':
		options->json = true;
		break;
	case 'c':
		options->compare = true;
		break;
	case 'b':
		if (!parse_number(arg, BENCH_RUNS_MAX, &options->runs))
			fail("'%s' is not a number of runs: give one from 1 to %d",
			     quote(arg, strlen(arg)), BENCH_RUNS_MAX);
		break;
	case ARGP_KEY_ARG:
		add_argument(options, arg);
		break;
	case ARGP_KEY_END:
		check_options(options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse_option,
		.args_doc = argp_args_doc,
		.doc = argp_doc,
	};
	struct options options = {};
	size_t output_len;
	char *output;
	FILE *out;
	int status;

	argp_err_exit_status = EXIT_TROUBLE;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (options.file)
		read_addresses(&options);
	if (options.nr_addrs)
		qsort(options.addrs, options.nr_addrs, sizeof(*options.addrs),
		      by_number);
	signal(SIGPIPE, SIG_IGN);

	if (options.interval) {
		status = watch(&options);
		if (status < 0)
			report_trouble(options.pid, status);
		return status;
	}

	/* It goes out as a whole or, after an error, not at all. */
	out = need(open_memstream(&output, &output_len));
	if (options.compare)
		status = compare(&options, out);
	else if (options.runs)
		status = bench(&options, out);
	else
		status = show(&options, out);
	if (fclose(out))
		fail("out of memory");
	if (status >= 0)
		write_output(output, output_len);
	free(output);
	free(options.addrs);
	if (status < 0)
		report_trouble(options.pid, status);
	return status;
}
