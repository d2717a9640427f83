// SPDX-License-Identifier: GPL-2.0
/*
 * Scan the text of a file, for an instruction counter:
 *
 *	scan FILE
 *
 * prints the number of mappings.
 */
#include <stdio.h>

#include <procmap.h>

void scan(const char *text, size_t size);

/* Not static, so that the counter finds it. */
void scan(const char *text, size_t size)
{
	const struct procmap_mapping *mapping;
	struct procmap *procmap;
	uint64_t cursor = 0;
	unsigned int nr = 0;

	if (procmap_open_text(text, size, NULL, &procmap))
		return;
	while (!procmap_next(procmap, &cursor, 0, &mapping))
		nr++;
	procmap_close(procmap);
	printf("%u\n", nr);
}

int main(int argc, char **argv)
{
	static char text[16 << 20];
	FILE *const file = argc == 2 ? fopen(argv[1], "re") : NULL;

	if (!file)
		return 2;
	scan(text, fread(text, 1, sizeof(text), file));
	fclose(file);
	return 0;
}
