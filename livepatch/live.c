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
 * The module verifies what it relies on: it looks up the kernel's functions and
 * tables, opens a maps file, and compares that with what it expects. If
 * anything differs, it prints one line, changes nothing and does not load.
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
 * Functions and tables of the kernel that are not exported. Set before the
 * patch is enabled, read-only from then on.
 */
static struct {
	struct mm_struct *(*proc_mem_open)(struct inode *inode,
					   unsigned int mode);
	void (*task_work_run)(void);
	const struct file_operations *operations;
	const struct seq_operations *seq_operations;
} base __ro_after_init;

/* The kernel's operations of a maps file, with the ioctls added. */
static struct file_operations live_operations __ro_after_init;

/* The engine calls task_work_run(), which the kernel does not export. */
void task_work_run(void)
{
	base.task_work_run();
}

/*
 * Makes the same decisions as the kernel's show_map_vma(), except for two that
 * never apply here: the gate VMA is not in the address space, and x86 does not
 * implement arch_vma_name(). The caller holds mmap_lock.
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
		return procmap_scan(priv->mm, (void __user *)arg);
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

	if (try_module_get(THIS_MODULE))
		replace_fops(file, &live_operations);
	return 0;
}

static struct klp_func funcs[] = {
	{ .old_name = "pid_maps_open", .new_func = live_maps_open }, {}
};

static struct klp_object objects[] = { { .funcs = funcs }, {} };

static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objects };

/* kallsyms_lookup_name(), which is not exported. */
static unsigned long (*look_up_name)(const char *name);

/*
 * Get the address of kallsyms_lookup_name() from a kprobe on it. On kernels
 * with ENDBR instructions, the kprobe may sit behind the function's ENDBR. May
 * sleep.
 */
static int __init find_look_up(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long addr;
	int err;

	/*
	 * With IBT, the kernel removes the ENDBR of functions that it never
	 * calls through a pointer; calling one through a pointer faults.
	 */
	if (IS_ENABLED(CONFIG_X86_KERNEL_IBT) && boot_cpu_has(X86_FEATURE_IBT)) {
		pr_err("indirect branch tracking is not supported; boot with ibt=off\n");
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

/* Look up a symbol. If the kernel has none of that name, set @err. */
static void __init *look_up(const char *name, int *err)
{
	void *addr = (void *)look_up_name(name);

	if (!addr) {
		pr_err("this kernel has no %s\n", name);
		*err = -EOPNOTSUPP;
	}
	return addr;
}

/* Look up all that is needed of the kernel, and check that it fits together. */
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
		pr_err("/proc/<pid>/maps is not opened by pid_maps_open\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

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

/* Open a maps file and check how the kernel set it up. May sleep. */
static int __init check_base(void)
{
	struct file *file = filp_open("/proc/self/maps", O_RDONLY, 0);
	int err = 0;

	if (IS_ERR(file)) {
		pr_err("cannot open /proc/self/maps: %ld\n", PTR_ERR(file));
		return PTR_ERR(file);
	}
	if (!is_as_expected(file)) {
		pr_err("an opened maps file is not set up as expected\n");
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

/* Nothing to do: livepatch has disabled the patch before the module can go. */
static void __exit live_exit(void)
{
}

module_init(live_init);
module_exit(live_exit);
MODULE_DESCRIPTION("PROCMAP_QUERY and PROCMAP_SCAN on /proc/<pid>/maps, as a livepatch");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
