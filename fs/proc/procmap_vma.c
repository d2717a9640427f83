// SPDX-License-Identifier: GPL-2.0
/*
 * Copy the name of a VMA.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "procmap_vma.h"

int procmap_copy_name(struct vm_area_struct *vma, char buffer[SHORT_NAME_SIZE],
		      const struct path **path)
{
	const char *name, *format;
	int len;

	get_vma_name(vma, path, &name, &format);
	if (!name)
		return 0;
	if (format)
		len = snprintf(buffer, SHORT_NAME_SIZE, format, name);
	else
		len = strscpy(buffer, name, SHORT_NAME_SIZE);
	return len >= 0 && len < SHORT_NAME_SIZE ? len + 1 : -ENAMETOOLONG;
}
