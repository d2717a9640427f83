// SPDX-License-Identifier: GPL-2.0
/*
 * The parts of the live module that are linux-6.1's.
 */
#include <linux/mm.h>

#include "../fs/proc/vma_name.h"
#include "live.h"

const bool base_has_ioctl;

const unsigned long base_ftrace_flags = FTRACE_OPS_FL_SAVE_REGS;

struct file *notrace live_file(struct ftrace_regs *regs)
{
	return (struct file *)regs_get_kernel_argument(ftrace_get_regs(regs), 1);
}

bool base_has_gate(const struct mm_struct *mm)
{
#if defined(CONFIG_X86_64) && defined(CONFIG_COMPAT)
	return mm && mm->context.flags & MM_CONTEXT_HAS_VSYSCALL;
#else
	return true;
#endif
}

/*
 * Makes the same decisions as the kernel's show_map_vma(), except for two that
 * never apply here: the gate VMA is not in the address space, and arch_vma_name()
 * returns NULL on x86 and arm64. The caller holds mmap_lock.
 */
void proc_vma_name(struct vm_area_struct *vma, struct vma_name *name)
{
	const struct mm_struct *mm = vma->vm_mm;

	*name = (struct vma_name) {};

	if (vma->vm_file) {
		name->path = &vma->vm_file->f_path;
		return;
	}

	if (vma->vm_ops && vma->vm_ops->name)
		name->text = vma->vm_ops->name(vma);
	if (name->text)
		return;

	if (vma->vm_start <= mm->brk && vma->vm_end >= mm->start_brk) {
		name->text = "[heap]";
		return;
	}
	if (vma->vm_start <= mm->start_stack && vma->vm_end >= mm->start_stack) {
		name->text = "[stack]";
		return;
	}

#ifdef CONFIG_ANON_VMA_NAME
	if (vma->anon_name) {
		name->text = vma->anon_name->name;
		name->format = "[anon:%s]";
	}
#endif
}
