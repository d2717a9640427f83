// SPDX-License-Identifier: GPL-2.0
/*
 * Copy the name of a VMA.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "procmap_vma.h"
#include "vma_name.h"

int procmap_copy_name(struct vm_area_struct *vma, char buffer[SHORT_NAME_SIZE],
		      const struct path **path)
{
	struct vma_name name;
	int len;

	proc_vma_name(vma, &name);
	*path = name.path;
	if (!name.text)
		return 0;
	if (name.format)
		len = snprintf(buffer, SHORT_NAME_SIZE, name.format, name.text);
	else
		len = strscpy(buffer, name.text, SHORT_NAME_SIZE);
	return len >= 0 && len < SHORT_NAME_SIZE ? len + 1 : -ENAMETOOLONG;
}
