// SPDX-License-Identifier: GPL-2.0
/*
 * Other users of the open method of /proc/<pid>/maps, for the test of the live module:
 *
 *	how=livepatch	replace it by a function that fails with EPERM
 *	how=kprobe	the same by a kprobe that changes the instruction pointer
 */
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/string.h>

#define MAPS_OPEN	"pid_maps_open"

static char *how = "";
module_param(how, charp, 0444);

static int refuse_open(struct inode *inode, struct file *file)
{
	return -EPERM;
}

static int refuse(struct kprobe *probe, struct pt_regs *regs)
{
	instruction_pointer_set(regs, (unsigned long)refuse_open);
	return 1;
}

static struct kprobe probe = { .symbol_name = MAPS_OPEN, .pre_handler = refuse };

#ifdef CONFIG_LIVEPATCH
static struct klp_func funcs[] = {
	{ .old_name = MAPS_OPEN, .new_func = refuse_open }, {}
};

static struct klp_object objects[] = { { .funcs = funcs }, {} };

static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objects };

static int enable_livepatch(void)
{
	return klp_enable_patch(&patch);
}

MODULE_INFO(livepatch, "Y");
#else
static int enable_livepatch(void)
{
	return -EOPNOTSUPP;
}
#endif

static int __init conflict_init(void)
{
	if (!strcmp(how, "livepatch"))
		return enable_livepatch();

	if (strcmp(how, "kprobe"))
		return -EINVAL;
	return register_kprobe(&probe);
}

static void __exit conflict_exit(void)
{
	if (strcmp(how, "livepatch"))
		unregister_kprobe(&probe);
}

module_init(conflict_init);
module_exit(conflict_exit);
MODULE_DESCRIPTION("Another user of the open method of /proc/<pid>/maps, for tests");
MODULE_LICENSE("GPL");
