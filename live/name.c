// SPDX-License-Identifier: GPL-2.0
/*
 * The names of VMAs, as in the kernel's show_map_vma() or get_vma_name().
 */
#include <linux/mm.h>
#include <linux/stddef.h>

#include "procmap_base.h"

/* Get the name that prctl(PR_SET_VMA) has set, or NULL. */
static const char *live_anon_name(const struct vm_area_struct *vma)
{
#ifdef CONFIG_ANON_VMA_NAME
	/* Before 6.2, files had no names: the member was shared with another one. */
	if (vma->vm_file && offsetof(struct vm_area_struct, anon_name) ==
			    offsetof(struct vm_area_struct, shared))
		return NULL;
	return vma->anon_name ? vma->anon_name->name : NULL;
#else
	return NULL;
#endif
}

static bool live_is_heap(const struct vm_area_struct *vma)
{
#if LIVE_INITIAL_HEAP
	return vma_is_initial_heap(vma);
#else
	return vma->vm_start <= vma->vm_mm->brk && vma->vm_end >= vma->vm_mm->start_brk;
#endif
}

/*
 * Makes the kernel's decisions, except for two that never apply here: the gate VMA is
 * not in the address space, and arch_vma_name() returns NULL on x86 and arm64.
 */
void get_vma_name(struct vm_area_struct *vma, const struct path **path,
		  const char **name, const char **format)
{
	const char *set = live_anon_name(vma);

	*path = NULL;
	*name = NULL;
	*format = NULL;
	if (vma->vm_file) {
		if (set) {
			*name = set;
			*format = "[anon_shmem:%s]";
		} else {
			*path = procmap_vma_path(vma);
		}
		return;
	}

	if (vma->vm_ops && vma->vm_ops->name)
		*name = vma->vm_ops->name(vma);
	if (*name)
		return;

	/* brk(2) moves the end of the heap before it locks the VMA. */
	if (data_race(live_is_heap(vma))) {
		*name = "[heap]";
	} else if (vma->vm_start <= vma->vm_mm->start_stack &&
		   vma->vm_end >= vma->vm_mm->start_stack) {
		*name = "[stack]";
	} else if (set) {
		*name = set;
		*format = "[anon:%s]";
	}
}
