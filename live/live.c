// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY and PROCMAP_SCAN for the running kernel, as a module.
 *
 *	# insmod procmap_query.ko
 *	# rmmod procmap_query
 *
 * By ftrace, live_open() is called in place of the open method of /proc/<pid>/maps. It
 * calls that, and then gives the opened file a copy of its operations to which the
 * ioctls are added. Each file opened this way holds a reference on this module until
 * it is closed. Files that were opened before are not changed.
 *
 * The module verifies what it relies on: it opens a maps file, and compares that, and
 * the names in its text, with what it expects. If anything differs, it prints one line,
 * changes nothing and does not load.
 */
#undef pr_fmt	/* Kbuild includes a header first. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <generated/utsrelease.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "../fs/proc/procmap_query.h"
#include "../fs/proc/procmap_scan.h"
#include "../fs/proc/vma_name.h"
#include "live.h"

/*
 * How the private data of a maps file's struct seq_file begins, as in
 * fs/proc/internal.h, which is not in the headers packages; check_file() verifies it.
 * @mm is NULL for a kernel thread; otherwise the opened file owns a reference on it
 * (mmgrab()), not on its users.
 */
struct proc_maps_private {
	struct inode *inode;
	struct task_struct *task;
	struct mm_struct *mm;
};

/* The kernel's operations of a maps file, and the same with the ioctls added. */
static const struct file_operations *base_operations __ro_after_init;
static struct file_operations live_operations __ro_after_init;

static bool scan;
module_param(scan, bool, 0444);
MODULE_PARM_DESC(scan, "have PROCMAP_SCAN, which no mainline kernel has (default: N)");

/*
 * The ioctls. May sleep. The file keeps the address space allocated, and the
 * module loaded.
 */
static long live_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct seq_file *seq = file->private_data;
	const struct proc_maps_private *priv = seq->private;

	switch (cmd) {
	case PROCMAP_QUERY:
		return procmap_query(priv->mm, (void __user *)arg);
	case PROCMAP_SCAN:
		if (scan)
			return procmap_scan(priv->mm, (void __user *)arg);
		fallthrough;
	default:
		return -ENOTTY;
	}
}

/**
 * live_open - open a maps file, and give it the ioctls
 * @inode: the inode of the maps file.
 * @file: the file that is being opened.
 *
 * The caller, live_hook(), has taken a reference on this module. The file keeps it;
 * __fput() drops it with the file's operations. May sleep.
 *
 * Return: 0, or a negative errno as of the kernel's own open method.
 */
static int live_open(struct inode *inode, struct file *file)
{
	const int err = base_operations->open(inode, file);

	if (err)
		module_put(THIS_MODULE);
	else
		replace_fops(file, &live_operations);
	return err;
}

/*
 * Have live_open() called in place of the open method, unless it is live_open() that
 * calls. If the module is going, the file keeps the kernel's operations. ftrace calls
 * this with preemption disabled.
 */
static void notrace live_hook(unsigned long ip, unsigned long parent_ip,
			      struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	if (!within_module_core(parent_ip, THIS_MODULE) &&
	    try_module_get(THIS_MODULE))
		live_redirect(regs, (unsigned long)live_open);
}

/* Some kernels let only a callback with all registers change the instruction pointer. */
static struct ftrace_ops live_ops = {
	.func	= live_hook,
	.flags	= FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT |
		  FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_SAVE_REGS_IF_SUPPORTED,
};

/*
 * Print the name of a VMA by the rules of proc_vma_name(), as the text has it at the
 * end of a line. The caller holds mmap_lock.
 */
static void __init print_name(struct seq_file *seq, struct vm_area_struct *vma)
{
	struct vma_name name;

	proc_vma_name(vma, &name);
	seq_putc(seq, ' ');
	if (name.path)
		seq_path(seq, name.path, "\n");
	else if (name.text)
		seq_printf(seq, name.format ?: "%s", name.text);
	seq_putc(seq, '\n');
}

/**
 * is_named_alike - compare a VMA's name with the kernel's text
 * @file: /proc/self/maps, opened by the kernel's own open method.
 * @vma: the VMA. The caller holds mmap_lock.
 * @buffer: memory for the text, two pages.
 *
 * Return: true if the names are the same.
 */
static bool __init is_named_alike(struct file *file, struct vm_area_struct *vma,
				  char *buffer)
{
	const struct seq_file *opened = file->private_data;
	struct seq_file text = { .buf = buffer, .size = PAGE_SIZE,
				 .file = file, .private = opened->private };
	struct seq_file name = { .buf = buffer + PAGE_SIZE, .size = PAGE_SIZE };

	if (opened->op->show(&text, vma))
		return false;
	print_name(&name, vma);
	return !seq_has_overflowed(&text) && !seq_has_overflowed(&name) &&
	       text.count > name.count &&
	       !memcmp(text.buf + text.count - name.count, name.buf, name.count);
}

/* Are all VMAs of this process named as its text has it? May sleep. */
static bool __init are_named_alike(struct file *file)
{
	char *buffer = kmalloc(2 * PAGE_SIZE, GFP_KERNEL);
	struct vm_area_struct *vma;
	bool alike = buffer;

	VMA_ITERATOR(vmi, current->mm, 0);
	mmap_read_lock(current->mm);
	for_each_vma(vmi, vma)
		alike = alike && is_named_alike(file, vma, buffer);
	mmap_read_unlock(current->mm);
	kfree(buffer);
	return alike;
}

/* Is this the name of a function of the kernel? */
static bool __init is_function(const void *addr, const char *name)
{
	char symbol[KSYM_NAME_LEN];

	snprintf(symbol, sizeof(symbol), "%ps", addr);
	return !strcmp(symbol, name);
}

/*
 * Check how the kernel sets up a maps file, and take over its operations. May
 * sleep.
 */
static int __init check_file(struct file *file)
{
	const struct file_operations *operations = file->f_op;
	const struct seq_file *seq = file->private_data;
	const struct proc_maps_private *priv = seq->private;

	if (!base_ioctl && (operations->unlocked_ioctl || operations->compat_ioctl)) {
		pr_err("this kernel has an ioctl on /proc/<pid>/maps already\n");
		return -EEXIST;
	}
	if (base_ioctl && !is_function(operations->unlocked_ioctl, base_ioctl)) {
		pr_err("ioctls on /proc/<pid>/maps are not by %s\n", base_ioctl);
		return -EOPNOTSUPP;
	}
	if (priv->inode != file_inode(file) || priv->task ||
	    priv->mm != current->mm) {
		pr_err("an opened maps file is not set up as expected\n");
		return -EOPNOTSUPP;
	}
	if (!are_named_alike(file)) {
		pr_err("this kernel names mappings by other rules\n");
		return -EOPNOTSUPP;
	}

	base_operations = operations;
	live_operations = *operations;
	live_operations.owner = THIS_MODULE;
	live_operations.unlocked_ioctl = live_ioctl;
	live_operations.compat_ioctl = compat_ptr_ioctl;
	return 0;
}

/* Check all that is relied on. May sleep. */
static int __init check_base(void)
{
	struct file *file;
	int err;

	if (strcmp(init_utsname()->release, UTS_RELEASE)) {
		pr_err("built for %s, this is %s\n", UTS_RELEASE,
		       init_utsname()->release);
		return -EOPNOTSUPP;
	}

	file = filp_open("/proc/self/maps", O_RDONLY, 0);
	if (IS_ERR(file)) {
		pr_err("cannot open /proc/self/maps: %ld\n", PTR_ERR(file));
		return PTR_ERR(file);
	}
	err = check_file(file);
	filp_close(file, NULL);
	return err;
}

static int __init live_init(void)
{
	int err = check_base();

	if (err)
		return err;

	err = ftrace_set_filter_ip(&live_ops, (unsigned long)base_operations->open,
				   0, 0);
	if (!err)
		err = register_ftrace_function(&live_ops);
	if (err) {
		pr_err("cannot redirect %ps: %d; sysctl kernel.ftrace_enabled is 0, or somebody else redirects it\n",
		       base_operations->open, err);
		ftrace_free_filter(&live_ops);
	}
	return err;
}

/* All files that live_open() opened are closed. */
static void __exit live_exit(void)
{
	unregister_ftrace_function(&live_ops);
	ftrace_free_filter(&live_ops);
	/* A task may be between the module_put() in live_open() and its end. */
	synchronize_rcu_tasks();
}

module_init(live_init);
module_exit(live_exit);
MODULE_DESCRIPTION("PROCMAP_QUERY and PROCMAP_SCAN on /proc/<pid>/maps");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
