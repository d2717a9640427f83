// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY and PROCMAP_SCAN for the running kernel, as a module.
 *
 *	# insmod procmap_query.ko
 *	# rmmod procmap_query
 *
 * ftrace calls live_hook() at the beginning of the open method of /proc/<pid>/maps. It
 * gives the file a copy of the kernel's operations to which the ioctls are added. Each
 * file opened this way holds a reference on this module until it is closed. Files that
 * were opened before are not changed.
 *
 * The module verifies its assumptions about the kernel: it opens a maps file, and
 * looks at its private data and at its text. If an assumption is wrong, it prints one
 * line, changes nothing and does not load.
 */
#include <generated/utsrelease.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "../fs/proc/procmap_query.h"
#include "../fs/proc/procmap_scan.h"
#include "../fs/proc/procmap_vma.h"
#include "live.h"

/* The kernel's operations of a maps file, with the ioctls added. */
static struct file_operations live_operations __ro_after_init;

static bool scan;
module_param(scan, bool, 0444);
MODULE_PARM_DESC(scan, "add PROCMAP_SCAN, which is not in mainline (default: N)");

/*
 * The ioctls. May sleep. The file keeps the address space allocated, and the
 * module loaded.
 */
static long live_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct seq_file *seq = file->private_data;
	const struct proc_maps_private *priv = seq->private;

	if (cmd == PROCMAP_QUERY)
		return procmap_query(priv->mm, (void __user *)arg);
	if (cmd == PROCMAP_SCAN && scan)
		return procmap_scan(priv->mm, (void __user *)arg);
	return -ENOTTY;
}

/*
 * Give a maps file that is being opened the ioctls. The file keeps the reference on the
 * module: do_dentry_open() drops it with the file's operations if the open method fails,
 * and __fput() otherwise. If the module is going, the file keeps the kernel's operations.
 */
static void live_hook(unsigned long ip, unsigned long parent_ip,
		      struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	/* The second argument of the open method. */
	struct file *file = (struct file *)ftrace_regs_get_argument(regs, 1);

	if (try_module_get(THIS_MODULE))
		replace_fops(file, &live_operations);
}

static struct ftrace_ops live_ops = {
	.func	= live_hook,
	.flags	= FTRACE_OPS_FL_PERMANENT | (LIVE_FTRACE_ARGS ? 0 : FTRACE_OPS_FL_SAVE_REGS),
};

/* Print the line of a VMA from the engine's fields and name. The caller holds mmap_lock. */
static void __init live_print_line(struct seq_file *seq, struct vm_area_struct *vma)
{
	const u64 flags = procmap_vma_permissions(vma);
	const char *name, *format;
	const struct path *path;
	u32 major, minor;
	u64 offset, ino;

	procmap_file_fields(vma, &offset, &ino, &major, &minor);
	get_vma_name(vma, &path, &name, &format);
	seq_setwidth(seq, 25 + sizeof(void *) * 6 - 1);	/* the column of the name */
	seq_printf(seq, "%08lx-%08lx %c%c%c%c %08llx %02x:%02x %llu ",
		   vma->vm_start, vma->vm_end,
		   flags & PROCMAP_QUERY_VMA_READABLE ? 'r' : '-',
		   flags & PROCMAP_QUERY_VMA_WRITABLE ? 'w' : '-',
		   flags & PROCMAP_QUERY_VMA_EXECUTABLE ? 'x' : '-',
		   flags & PROCMAP_QUERY_VMA_SHARED ? 's' : 'p',
		   offset, major, minor, ino);
	if (path || name)
		seq_pad(seq, ' ');
	if (path)
		seq_path(seq, path, "\n");
	else if (name)
		seq_printf(seq, format ?: "%s", name);
	seq_putc(seq, '\n');
}

/*
 * Compare a VMA with its line in the kernel's text, if both fit into @buffer, which has two
 * pages. The caller holds mmap_lock.
 */
static bool __init live_line_matches(struct file *file, struct vm_area_struct *vma,
				     char *buffer)
{
	const struct seq_file *opened = file->private_data;
	struct seq_file seq = { .buf = buffer, .size = 2 * PAGE_SIZE,
				.private = opened->private };
	size_t size;

	opened->op->show(&seq, vma);
	size = seq.count;
	live_print_line(&seq, vma);
	return seq_has_overflowed(&seq) ||
	       (seq.count == 2 * size && !memcmp(buffer, buffer + size, size));
}

/* Compare all VMAs of this process with its text. */
static bool __init live_text_matches(struct file *file)
{
	char *buffer = kmalloc(2 * PAGE_SIZE, GFP_KERNEL);
	struct vm_area_struct *vma;
	bool alike = buffer;

	mmap_read_lock(current->mm);
	for (vma = find_vma(current->mm, 0); vma; vma = find_vma(current->mm, vma->vm_end))
		alike = alike && live_line_matches(file, vma, buffer);
	mmap_read_unlock(current->mm);
	kfree(buffer);
	return alike;
}

/* Check how the kernel sets up a maps file, and take over its operations. */
static int __init live_check_file(struct file *file)
{
	const struct file_operations *operations = file->f_op;
	const struct proc_maps_private *priv;

	if (file_inode(file)->i_sb->s_magic != PROC_SUPER_MAGIC) {
		pr_err("there is no procfs on /proc\n");
		return -EOPNOTSUPP;
	}
	if (operations->owner || !!operations->unlocked_ioctl != LIVE_KERNEL_HAS_QUERY) {
		pr_err("the ioctls on /proc/<pid>/maps are not those of Debian's kernel\n");
		return -EOPNOTSUPP;
	}
	priv = ((struct seq_file *)file->private_data)->private;
	if (priv->inode != file_inode(file) || priv->mm != current->mm) {
		pr_err("the private data of an opened maps file is not as expected\n");
		return -EOPNOTSUPP;
	}
	if (!live_text_matches(file)) {
		pr_err("this kernel shows mappings by other rules\n");
		return -EOPNOTSUPP;
	}

	live_operations = *operations;
	live_operations.owner = THIS_MODULE;
	live_operations.unlocked_ioctl = live_ioctl;
	live_operations.compat_ioctl = compat_ptr_ioctl;
	return live_text_init(file, &live_operations);
}

static int __init live_check_base(void)
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
	err = live_check_file(file);
	filp_close(file, NULL);
	return err;
}

static int __init live_init(void)
{
	int err = live_check_base();

	if (err)
		return err;

	err = ftrace_set_filter_ip(&live_ops, (unsigned long)live_operations.open,
				   0, 0);
	if (!err)
		err = register_ftrace_function(&live_ops);
	if (err) {
		pr_err("cannot trace %ps: %d; it takes sysctl kernel.ftrace_enabled=1\n",
		       live_operations.open, err);
		ftrace_set_filter(&live_ops, NULL, 0, 1);
	}
	return err;
}

/*
 * The files that have the module's operations are closed. ftrace waits for the callers of
 * live_hook(), unless it has shut itself down after a fault: then it goes on calling it, and
 * the code must stay. An exit function cannot fail, so this one does not return.
 */
static void __exit live_exit(void)
{
	if (unregister_ftrace_function(&live_ops)) {
		pr_err("ftrace has shut down and still calls this module, which stays loaded\n");
		for (;;) {
			set_current_state(TASK_IDLE | TASK_FREEZABLE);
			schedule();
		}
	}
	ftrace_set_filter(&live_ops, NULL, 0, 1);
}

module_init(live_init);
module_exit(live_exit);
MODULE_DESCRIPTION("PROCMAP_QUERY and PROCMAP_SCAN on /proc/<pid>/maps");
MODULE_VERSION("1.0.0");
MODULE_LICENSE("GPL");
