// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY and PROCMAP_SCAN for the running kernel, as a livepatch module.
 *
 *	# insmod procmap_query.ko
 *	# cat /sys/kernel/livepatch/procmap_query/enabled
 *	1
 *	# echo 0 > /sys/kernel/livepatch/procmap_query/enabled
 *	# rmmod procmap_query
 *
 * It replaces pid_maps_open(), the open method of /proc/<pid>/maps. The new one
 * does the same, and then gives the opened file a copy of its operations to
 * which the ioctls are added. Each file opened this way holds a reference on
 * this module until it is closed. Files that were opened before are not
 * changed.
 *
 * The module verifies what it relies on: it finds the kernel's functions by
 * kprobes, opens a maps file, and compares that, and the names in its text, with
 * what it expects. If anything differs, it prints one line, changes nothing and
 * does not load.
 */
#undef pr_fmt	/* Kbuild includes a header first. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/livepatch.h>
#include <linux/mm.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/string.h>

#include "../fs/proc/procmap_query.h"
#include "../fs/proc/procmap_scan.h"
#include "../fs/proc/procmap_walk.h"
#include "../fs/proc/vma_name.h"
#include "check.h"
#include "live.h"

/*
 * The private data of an opened maps file's struct seq_file. A copy of the
 * definition in fs/proc/internal.h, which is not in the headers packages;
 * check_base() verifies it. @mm is NULL for a kernel thread; otherwise the
 * opened file owns a reference on it (mmgrab()), not on its users.
 */
struct proc_maps_private {
	struct inode *inode;
	struct task_struct *task;
	struct mm_struct *mm;
	struct vma_iterator iter;
#ifdef CONFIG_NUMA
	struct mempolicy *task_mempolicy;
#endif
};

/*
 * The function of the kernel that is called and not exported, by direct calls:
 * with indirect branch tracking, most functions may not be called through a
 * pointer.
 */
static struct mm_struct *no_mem_open(struct inode *inode, unsigned int mode)
{
	return ERR_PTR(-EOPNOTSUPP);
}

DEFINE_STATIC_CALL(proc_mem_open, no_mem_open);

/* The kernel's operations of the text of a maps file. */
static const struct seq_operations *base_seq_operations __ro_after_init;

/* The kernel's operations of a maps file, with the ioctls added. */
static struct file_operations live_operations __ro_after_init;

static bool scan;
module_param(scan, bool, 0444);
MODULE_PARM_DESC(scan, "have PROCMAP_SCAN, which no mainline kernel has (default: N)");

/*
 * The ioctls. May sleep. The file keeps the address space allocated, and the
 * module loaded.
 */
static long live_maps_ioctl(struct file *file, unsigned int cmd,
			    unsigned long arg)
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
 * live_maps_open - the replacement of pid_maps_open()
 * @inode: the inode of the maps file.
 * @file: the file that is being opened.
 *
 * As in the original, the file owns a reference on the address space
 * (mmgrab()), which the kernel's release method drops. The file also gets a
 * reference on this module; __fput() drops it with the file's operations. If
 * the module is going, the file keeps the kernel's operations. May sleep.
 *
 * Return: 0, or a negative errno as of pid_maps_open().
 */
static int live_maps_open(struct inode *inode, struct file *file)
{
	struct proc_maps_private *priv;
	int err;

	priv = __seq_open_private(file, base_seq_operations, sizeof(*priv));
	if (!priv)
		return -ENOMEM;

	priv->inode = inode;
	priv->mm = static_call(proc_mem_open)(inode, PTRACE_MODE_READ);
	if (IS_ERR(priv->mm)) {
		err = PTR_ERR(priv->mm);
		seq_release_private(inode, file);
		return err;
	}

	if (try_module_get(THIS_MODULE))
		replace_fops(file, &live_operations);
	return 0;
}

static struct klp_func funcs[] = {
	{ .old_name = "pid_maps_open", .new_func = live_maps_open }, {}
};

static struct klp_object objects[] = { { .funcs = funcs }, {} };

static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objects };

/**
 * is_as_expected - check the private data of a maps file
 * @file: /proc/self/maps, opened by the kernel's own open method.
 *
 * Builds what live_maps_open() would have built for it, and compares: the
 * bytes, and the size of the allocation. If both are equal, the kernel can use
 * what live_maps_open() builds. May sleep. The reference on the address space
 * that proc_mem_open() returns is dropped here.
 *
 * Return: true if all is as expected.
 */
static bool __init is_as_expected(struct file *file)
{
	struct proc_maps_private *expected;
	struct inode *inode = file_inode(file);
	const struct seq_file *seq = file->private_data;
	struct mm_struct *mm;
	bool same;

	mm = static_call(proc_mem_open)(inode, PTRACE_MODE_READ);
	if (IS_ERR_OR_NULL(mm))
		return false;
	same = mm == current->mm;
	mmdrop(mm);

	expected = kzalloc(sizeof(*expected), GFP_KERNEL_ACCOUNT);
	if (!expected)
		return false;
	expected->inode = inode;
	expected->mm = current->mm;
	same = same && seq->file == file &&
	       ksize(expected) == ksize(seq->private) &&
	       !memcmp(expected, seq->private, sizeof(*expected));
	kfree(expected);
	return same;
}

/*
 * Print the name of a VMA by the rules of proc_vma_name(), as the text has it. The
 * caller holds mmap_lock.
 */
static void __init print_name(struct seq_file *seq, struct vm_area_struct *vma)
{
	struct vma_name name;

	proc_vma_name(vma, &name);
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
 * The name is what follows the five fields of the line, and the blanks behind
 * them.
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
	size_t i = 0;
	int field;

	/* That the kernel calls it through this pointer allows it here. */
	if (base_seq_operations->show(&text, vma))
		return false;
	print_name(&name, vma);
	if (seq_has_overflowed(&text) || seq_has_overflowed(&name))
		return false;

	for (field = 0; field < 5; field++) {
		while (i < text.count && text.buf[i] != ' ' &&
		       text.buf[i] != '\n')
			i++;
		while (i < text.count && text.buf[i] == ' ')
			i++;
	}
	return text.count - i == name.count &&
	       !memcmp(text.buf + i, name.buf, name.count);
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

/*
 * Check how the kernel sets up a maps file, and take over its operations. May
 * sleep.
 */
static int __init check_file(struct file *file)
{
	const struct file_operations *operations = file->f_op;
	const struct seq_file *seq = file->private_data;

	if (base_ioctl) {
		if (operations->unlocked_ioctl != find_function(base_ioctl) ||
		    operations->compat_ioctl != compat_ptr_ioctl) {
			pr_err("ioctls on /proc/<pid>/maps are not by %s\n",
			       base_ioctl);
			return -EOPNOTSUPP;
		}
	} else if (operations->unlocked_ioctl || operations->compat_ioctl) {
		pr_err("this kernel has an ioctl on /proc/<pid>/maps already\n");
		return -EEXIST;
	}
	if (operations->open != find_function("pid_maps_open")) {
		pr_err("/proc/<pid>/maps is not opened by pid_maps_open\n");
		return -EOPNOTSUPP;
	}
	if (!is_as_expected(file)) {
		pr_err("an opened maps file is not set up as expected\n");
		return -EOPNOTSUPP;
	}
	base_seq_operations = seq->op;
	if (!are_named_alike(file)) {
		pr_err("this kernel names mappings by other rules\n");
		return -EOPNOTSUPP;
	}

	live_operations = *operations;
	live_operations.owner = THIS_MODULE;
	live_operations.unlocked_ioctl = live_maps_ioctl;
	live_operations.compat_ioctl = compat_ptr_ioctl;
	return 0;
}

/* Look up and check all that is needed of the kernel. May sleep. */
static int __init check_base(void)
{
	void *mem_open = find_function("proc_mem_open");
	struct file *file;
	int err;

	if (!mem_open)
		return -EOPNOTSUPP;
	static_call_update(proc_mem_open, mem_open);

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
	int err;

	err = check_release();
	if (err)
		return err;
	err = check_base();
	if (err)
		return err;
	return enable_patch(&patch);
}

/* Livepatch has disabled the patch, and all maps files are closed. */
static void __exit live_exit(void)
{
}

module_init(live_init);
module_exit(live_exit);
MODULE_DESCRIPTION("PROCMAP_QUERY and PROCMAP_SCAN on /proc/<pid>/maps, as a livepatch");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
