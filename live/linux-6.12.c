// SPDX-License-Identifier: GPL-2.0
/*
 * The parts of the live module that are linux-6.12's.
 */
#include <linux/fs.h>
#include <linux/mm.h>

#include "../fs/proc/vma_name.h"
#include "live.h"

const bool base_has_ioctl = true;

const unsigned long base_ftrace_flags;

struct file *notrace live_file(struct ftrace_regs *regs)
{
	return (struct file *)ftrace_regs_get_argument(regs, 1);
}

bool base_has_gate(const struct mm_struct *mm)
{
#if defined(CONFIG_X86_64) && defined(CONFIG_COMPAT)
	return mm && test_bit(MM_CONTEXT_HAS_VSYSCALL, &mm->context.flags);
#else
	return true;
#endif
}

/*
 * Makes the same decisions as the kernel's get_vma_name(), except for two that
 * never apply here: the gate VMA is not in the address space, and arch_vma_name()
 * returns NULL on x86 and arm64. The caller has locked the VMA.
 */
void proc_vma_name(struct vm_area_struct *vma, struct vma_name *name)
{
	const char *set = NULL;		/* by prctl(PR_SET_VMA) */

	*name = (struct vma_name) {};
#ifdef CONFIG_ANON_VMA_NAME
	if (vma->anon_name)
		set = vma->anon_name->name;
#endif

	if (vma->vm_file) {
		if (set) {
			name->text = set;
			name->format = "[anon_shmem:%s]";
		} else {
			name->path = file_user_path(vma->vm_file);
		}
		return;
	}

	if (vma->vm_ops && vma->vm_ops->name)
		name->text = vma->vm_ops->name(vma);
	if (name->text)
		return;

	/* brk(2) moves the end of the heap before it locks the VMA. */
	if (data_race(vma_is_initial_heap(vma))) {
		name->text = "[heap]";
	} else if (vma_is_initial_stack(vma)) {
		name->text = "[stack]";
	} else if (set) {
		name->text = set;
		name->format = "[anon:%s]";
	}
}
