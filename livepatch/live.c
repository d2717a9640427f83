// SPDX-License-Identifier: GPL-2.0
/*
 * PROCMAP_QUERY and PROCMAP_SCAN for the kernel that is running, as a livepatch
 * module.
 *
 *	# insmod procmap_query.ko
 *	# cat /sys/kernel/livepatch/procmap_query/enabled
 *	1
 *	# echo 0 > /sys/kernel/livepatch/procmap_query/enabled
 *	# rmmod procmap_query
 *
 * It replaces pid_maps_open(), the open method of /proc/<pid>/maps, with one
 * that does the same, and then gives the opened file a copy of its operations
 * that has the ioctls besides. A file that was opened before stays as it was; one
 * that was opened since holds a reference on this module until it is closed.
 *
 * Nothing is taken for granted: what the module relies on is looked up and held
 * against a maps file that it opens itself. If a thing is not as it was when
 * this was written, the module says so and does not load.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <asm/ibt.h>
#include <generated/utsrelease.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/livepatch.h>
#include <linux/mm.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/task_work.h>
#include <linux/utsname.h>

#include "../fs/proc/procmap_query.h"
#include "../fs/proc/procmap_scan.h"
#include "../fs/proc/vma_name.h"

/*
 * What the private_data of an opened maps file, a struct seq_file, has as its
 * private: as in fs/proc/internal.h, which no headers package has.
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

/* What the kernel does not export. */
static struct {
	struct mm_struct *(*proc_mem_open)(struct inode *inode,
					   unsigned int mode);
	void (*task_work_run)(void);
	const struct file_operations *operations;
	const struct seq_operations *seq_operations;
} base __ro_after_init;

/* A copy, so that all but the ioctls is what the base has. */
static struct file_operations live_operations __ro_after_init;

/* The engine calls it by its name. */
void task_work_run(void)
{
	base.task_work_run();
}

/*
 * The same decisions as in the base's show_map_vma(), less those on the gate
 * VMA, which a query never finds, and on arch_vma_name(), which x86 has none of.
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
		name->prefix = "[anon:";
	}
#endif
}

static long live_maps_ioctl(struct file *file, unsigned int cmd,
			    unsigned long arg)
{
	const struct seq_file *seq = file->private_data;
	const struct proc_maps_private *priv = seq->private;

	switch (cmd) {
	case PROCMAP_QUERY:
		return procmap_query(priv->mm, (void __user *)arg);
	case PROCMAP_SCAN:
		return procmap_scan(priv->mm, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static int live_maps_open(struct inode *inode, struct file *file)
{
	struct proc_maps_private *priv;
	int err;

	priv = __seq_open_private(file, base.seq_operations, sizeof(*priv));
	if (!priv)
		return -ENOMEM;

	priv->inode = inode;
	priv->mm = base.proc_mem_open(inode, PTRACE_MODE_READ);
	if (IS_ERR(priv->mm)) {
		err = PTR_ERR(priv->mm);
		seq_release_private(inode, file);
		return err;
	}

	/* The reference is dropped with the file, by its operations' owner. */
	if (try_module_get(THIS_MODULE))
		replace_fops(file, &live_operations);
	return 0;
}

static struct klp_func funcs[] = {
	{ .old_name = "pid_maps_open", .new_func = live_maps_open }, {}
};

static struct klp_object objects[] = { { .funcs = funcs }, {} };

static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objects };

static unsigned long (*look_up_name)(const char *name);

/* A kprobe tells the address of a function, or the one behind its ENDBR. */
static int __init find_look_up(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long addr;
	int err;

	/* A function that nothing in the kernel calls indirectly may be sealed. */
	if (IS_ENABLED(CONFIG_X86_KERNEL_IBT) && boot_cpu_has(X86_FEATURE_IBT)) {
		pr_err("not with indirect branch tracking; boot with ibt=off\n");
		return -EOPNOTSUPP;
	}

	err = register_kprobe(&probe);
	if (err) {
		pr_err("no kprobe on %s: %d\n", probe.symbol_name, err);
		return -EOPNOTSUPP;
	}
	addr = (unsigned long)probe.addr;
	unregister_kprobe(&probe);

	if (is_endbr(*(u32 *)(addr - ENDBR_INSN_SIZE)))
		addr -= ENDBR_INSN_SIZE;
	look_up_name = (void *)addr;
	return 0;
}

static void __init *look_up(const char *name, int *err)
{
	void *addr = (void *)look_up_name(name);

	if (!addr) {
		pr_err("this kernel has no %s\n", name);
		*err = -EOPNOTSUPP;
	}
	return addr;
}

static int __init look_up_base(void)
{
	const void *open;
	int err;

	err = find_look_up();
	if (err)
		return err;

	base.proc_mem_open = look_up("proc_mem_open", &err);
	base.task_work_run = look_up("task_work_run", &err);
	base.operations = look_up("proc_pid_maps_operations", &err);
	base.seq_operations = look_up("proc_pid_maps_op", &err);
	open = look_up("pid_maps_open", &err);
	if (err)
		return err;

	if (base.operations->unlocked_ioctl || base.operations->compat_ioctl) {
		pr_err("this kernel has an ioctl on /proc/<pid>/maps already\n");
		return -EEXIST;
	}
	if (base.operations->open != open) {
		pr_err("pid_maps_open is not what opens /proc/<pid>/maps\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

/*
 * Does the file have what live_maps_open() would have made, to the byte, and in
 * an allocation that is as large? Then all of the base that takes it finds what
 * it expects.
 */
static bool __init is_as_expected(struct file *file)
{
	struct proc_maps_private *expected;
	struct inode *inode = file_inode(file);
	const struct seq_file *seq;
	struct mm_struct *mm;
	bool same;

	if (file->f_op != base.operations)
		return false;
	seq = file->private_data;
	if (seq->file != file || seq->op != base.seq_operations)
		return false;

	mm = base.proc_mem_open(inode, PTRACE_MODE_READ);
	if (IS_ERR_OR_NULL(mm))
		return false;
	same = mm == current->mm;
	mmdrop(mm);

	expected = kzalloc(sizeof(*expected), GFP_KERNEL_ACCOUNT);
	if (!expected)
		return false;
	expected->inode = inode;
	expected->mm = current->mm;
	same = same && ksize(expected) == ksize(seq->private) &&
	       !memcmp(expected, seq->private, sizeof(*expected));
	kfree(expected);
	return same;
}

static int __init check_base(void)
{
	struct file *file = filp_open("/proc/self/maps", O_RDONLY, 0);
	int err = 0;

	if (IS_ERR(file)) {
		pr_err("cannot open /proc/self/maps: %ld\n", PTR_ERR(file));
		return PTR_ERR(file);
	}
	if (!is_as_expected(file)) {
		pr_err("an opened maps file is not made up as expected\n");
		err = -EOPNOTSUPP;
	}
	filp_close(file, NULL);
	return err;
}

static int __init live_init(void)
{
	int err;

	if (strcmp(init_utsname()->release, UTS_RELEASE)) {
		pr_err("built for %s, this is %s\n", UTS_RELEASE,
		       init_utsname()->release);
		return -EOPNOTSUPP;
	}

	err = look_up_base();
	if (!err)
		err = check_base();
	if (err)
		return err;

	live_operations = *base.operations;
	live_operations.owner = THIS_MODULE;
	live_operations.unlocked_ioctl = live_maps_ioctl;
	live_operations.compat_ioctl = compat_ptr_ioctl;
	return klp_enable_patch(&patch);
}

/* What there is to undo, livepatch has undone when the module may go. */
static void __exit live_exit(void)
{
}

module_init(live_init);
module_exit(live_exit);
MODULE_DESCRIPTION("PROCMAP_QUERY and PROCMAP_SCAN on /proc/<pid>/maps, as a livepatch");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
