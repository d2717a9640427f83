// SPDX-License-Identifier: GPL-2.0
/* The header in a C++ program. */
#include <procmap.h>

int main()
{
	const struct procmap_mapping *found;
	struct procmap *procmap;
	int err = procmap_open_self(NULL, &procmap);

	if (!err)
		err = procmap_find(procmap, reinterpret_cast<uintptr_t>(&err),
				   PROCMAP_WRITABLE, &found);
	if (!err)
		procmap_close(procmap);
	return -err;
}
