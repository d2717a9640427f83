/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a live module checks the kernel that it is loaded into. What it finds wrong, it
 * logs in one line of its own; pr_fmt() is that of the module.
 */
#ifndef _LIVEPATCH_CHECK_H
#define _LIVEPATCH_CHECK_H

#include <asm/ibt.h>
#include <generated/utsrelease.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/livepatch.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/utsname.h>

/* Is this the kernel that the module was built for? */
static inline int __init check_release(void)
{
	if (!strcmp(init_utsname()->release, UTS_RELEASE))
		return 0;
	pr_err("built for %s, this is %s\n", UTS_RELEASE, init_utsname()->release);
	return -EOPNOTSUPP;
}

/**
 * find_function - find a function of the kernel by a kprobe on it
 * @name: its name.
 *
 * The kprobe is not armed: it does not depend on ftrace, and going away it cannot fail.
 *
 * On kernels with ENDBR instructions, the kprobe may sit behind the function's
 * ENDBR, or what is left of that. May sleep.
 *
 * Return: its address, or NULL if there is none.
 */
static inline void __init *find_function(const char *name)
{
	struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	unsigned long addr;
	int err;

	err = register_kprobe(&probe);
	if (err) {
		pr_err("no kprobe on %s: %d\n", name, err);
		return NULL;
	}
	addr = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	if (is_endbr(*(u32 *)(addr - ENDBR_INSN_SIZE)))
		addr -= ENDBR_INSN_SIZE;
	return (void *)addr;
}

#define NR_TRIES	20

/**
 * enable_patch - have livepatch enable a patch
 * @patch: it. Nothing of it has been used before.
 *
 * Livepatch has one transition at a time, and refuses another one: at boot, that of the
 * module before may not be over. So this waits for it, for up to @NR_TRIES seconds, or a
 * signal.
 *
 * Return: 0, or what klp_enable_patch() returns.
 */
static inline int __init enable_patch(struct klp_patch *patch)
{
	struct klp_object *object;
	struct klp_func *func;
	int err, tries = 1;

	while ((err = klp_enable_patch(patch)) == -EBUSY && tries++ < NR_TRIES &&
	       !msleep_interruptible(1000)) {
		/* Livepatch has let go of them, and initializes them again. */
		memset(&patch->kobj, 0, sizeof(patch->kobj));
		klp_for_each_object_static(patch, object) {
			memset(&object->kobj, 0, sizeof(object->kobj));
			klp_for_each_func_static(object, func)
				memset(&func->kobj, 0, sizeof(func->kobj));
		}
	}
	if (err == -EBUSY)
		pr_err("another livepatch is in transition, or ftrace cannot be used\n");
	return err;
}

#endif /* _LIVEPATCH_CHECK_H */
