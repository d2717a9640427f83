// SPDX-License-Identifier: GPL-2.0
/*
 * Scan the text of a file, by the library or by sscanf(3), for an instruction
 * counter to compare:
 *
 *	scan procmap FILE
 *	scan sscanf FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <procmap.h>

void scan(const char *how, char *text, size_t size);

static void scan_procmap(const char *text, size_t size)
{
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	uint64_t cursor = 0, sum = 0;
	unsigned int nr = 0;

	if (procmap_open_text(text, size, NULL, &procmap))
		exit(1);
	while (!procmap_next(procmap, &cursor, 0, &mapping)) {
		sum += mapping->start + mapping->name_len;
		nr++;
	}
	procmap_close(procmap);
	printf("%u %" PRIx64 "\n", nr, sum);
}

static void scan_sscanf(char *text)
{
	uint64_t start, end, offset, inode, sum = 0;
	unsigned int dev_major, dev_minor, nr = 0;
	char *line = text, *newline;
	char perms[5], name[4096];

	for (; (newline = strchr(line, '\n')); line = newline + 1) {
		*newline = '\0';
		name[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64
			   " %x:%x %" SCNu64 " %4095[^\n]", &start, &end, perms,
			   &offset, &dev_major, &dev_minor, &inode, name) < 7)
			exit(1);
		if (!strcmp(name, "[vsyscall]"))
			continue;
		sum += start + strlen(name);
		nr++;
	}
	printf("%u %" PRIx64 "\n", nr, sum);
}

/* Not static, so that the counter finds it. */
void scan(const char *how, char *text, size_t size)
{
	if (!strcmp(how, "procmap"))
		scan_procmap(text, size);
	else
		scan_sscanf(text);
}

int main(int argc, char **argv)
{
	static char text[16 << 20];
	FILE *const file = argc == 3 ? fopen(argv[2], "re") : NULL;

	if (!file)
		return 2;
	scan(argv[1], text, fread(text, 1, sizeof(text) - 1, file));
	fclose(file);
	return 0;
}
