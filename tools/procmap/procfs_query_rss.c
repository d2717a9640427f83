// SPDX-License-Identifier: GPL-2.0
/* procfs_query: how much of each mapping is resident, from /proc/PID/smaps. */
#include "procfs_query.h"

/**
 * struct resident - the resident part of a mapping
 * @start: the first address of the mapping.
 * @end: the first address past it.
 * @bytes: the size of its resident part.
 */
struct resident {
	uint64_t start;
	uint64_t end;
	uint64_t bytes;
};

/**
 * struct rss - the resident parts of all mappings
 * @nr: their number.
 * @size: the number that @of has room for.
 * @of: the parts, in rising order.
 */
struct rss {
	size_t nr;
	size_t size;
	struct resident *of;
};

static void add_resident(struct rss *rss, const struct resident *resident)
{
	rss->of = room_for_one(rss->of, rss->nr, &rss->size, sizeof(*rss->of));
	rss->of[rss->nr++] = *resident;
}

/* sscanf(3) looks for the end of the text each time, which takes long in a large one. */
static struct rss *parse_smaps(const char *text)
{
	static const char field[] = "Rss:";
	struct rss *const rss = need(calloc(1, sizeof(*rss)));
	struct resident resident = {};

	while (text) {
		char *end;
		const uint64_t start = strtoull(text, &end, 16);

		if (*end == '-') {
			resident.start = start;
			resident.end = strtoull(end + 1, NULL, 16);
		} else if (!strncmp(text, field, strlen(field))) {
			resident.bytes =
				strtoull(text + strlen(field), NULL, 10) * 1024;
			add_resident(rss, &resident);
		}
		text = strchr(text, '\n');
		text += !!text;
	}
	return rss;
}

/* Returns 0 or -errno. free_rss() frees the result. */
int read_rss(const struct options *options, struct rss **rss)
{
	char *text;

	if (options->maps_file) {
		*rss = parse_smaps(options->text);
		return 0;
	}
	text = read_proc(options->pid, "smaps");
	if (!text)
		return -errno;
	*rss = parse_smaps(text);
	free(text);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct resident *const x = a, *const y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Returns false if the mapping was not there, or was another one. */
bool find_rss(const struct rss *rss, const struct procmap_mapping *vma,
	      uint64_t *bytes)
{
	const struct resident key = { .start = vma->start };
	const struct resident *found = NULL;

	if (rss->nr)
		found = bsearch(&key, rss->of, rss->nr, sizeof(key),
				by_start);
	if (!found || found->end != vma->end)
		return false;
	*bytes = found->bytes;
	return true;
}

void free_rss(struct rss *rss)
{
	if (rss)
		free(rss->of);
	free(rss);
}
