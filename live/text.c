// SPDX-License-Identifier: GPL-2.0
/*
 * The text of /proc/<pid>/maps without mmap_lock.
 *
 * The first read or seek gives an opened file seq_operations that find the VMAs by the
 * engine. The lines are the kernel's own.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "../fs/proc/procmap_text.h"
#include "live.h"

/* True if anon_vma_name() takes the lock of the VMA for mmap_lock. */
#ifdef VM_REFCNT_LIMIT
#define LIVE_TEXT_NAMES		true
#else
#define LIVE_TEXT_NAMES		false
#endif

/* The data of an opened file, to which its struct seq_file points, too. */
struct live_text {
	struct seq_operations op;
	struct procmap_text text;
};

/* The kernel's operations. */
static const struct seq_operations *live_text_base __ro_after_init;
static int (*live_text_base_release)(struct inode *inode, struct file *file) __ro_after_init;

/* The kernel's gate VMA, or NULL. */
static struct vm_area_struct *live_text_gate __ro_after_init;

static bool live_text_enabled = true;
module_param_named(text, live_text_enabled, bool, 0444);
MODULE_PARM_DESC(text, "read the text of maps without mmap_lock, where VMAs have locks (default: Y)");

/*
 * Return true if an address space has the gate VMA. get_gate_vma() is not exported. @mm is
 * NULL for a kernel thread.
 */
static bool live_text_has_gate(const struct mm_struct *mm)
{
#if LIVE_VMA_LOCK && defined(CONFIG_X86_64) && defined(CONFIG_COMPAT)
	return mm && test_bit(MM_CONTEXT_HAS_VSYSCALL, &mm->context.flags);
#else
	return true;
#endif
}

/*
 * Return true if the task has been waited for. The kernel's start method looks for the
 * task first, and then finds no address space here. The kernel's private data may have
 * members behind those that this module knows: there is room for them, zeroed.
 */
static bool live_text_is_reaped(struct inode *inode)
{
	union {
		struct proc_maps_private known;
		char all[512];
	} priv = { .all = { 0 } };
	struct seq_file seq = { .private = &priv };
	loff_t pos = 0;

	priv.known.inode = inode;
	return IS_ERR(live_text_base->start(&seq, &pos));
}

static struct live_text *live_text_of(const struct seq_file *seq)
{
	return container_of(seq->op, struct live_text, op);
}

static void *live_text_start(struct seq_file *seq, loff_t *pos)
{
	const struct proc_maps_private *priv = seq->private;

	if (*pos == -1UL)
		return NULL;
	if (live_text_is_reaped(priv->inode))
		return ERR_PTR(-ESRCH);
	return procmap_text_start(&live_text_of(seq)->text, priv->mm,
				  live_text_has_gate(priv->mm) ? live_text_gate : NULL, pos);
}

static void *live_text_next(struct seq_file *seq, void *vma, loff_t *pos)
{
	return procmap_text_next(&live_text_of(seq)->text, pos);
}

static void live_text_stop(struct seq_file *seq, void *vma)
{
	procmap_text_stop(&live_text_of(seq)->text);
}

/* Give an opened file its operations, unless it has them. */
static int live_text_take_over(struct file *file)
{
	struct seq_file *seq = file->private_data;
	struct live_text *new;

	if (READ_ONCE(seq->op) != live_text_base)
		return 0;
	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return -ENOMEM;
	new->op.start = live_text_start;
	new->op.next = live_text_next;
	new->op.stop = live_text_stop;
	new->op.show = live_text_base->show;
	if (cmpxchg(&seq->op, live_text_base, &new->op) != live_text_base)
		kfree(new);
	return 0;
}

static ssize_t live_text_read(struct file *file, char __user *buf, size_t size,
			      loff_t *pos)
{
	return live_text_take_over(file) ?: seq_read(file, buf, size, pos);
}

static loff_t live_text_llseek(struct file *file, loff_t offset, int whence)
{
	return live_text_take_over(file) ?: seq_lseek(file, offset, whence);
}

static int live_text_release(struct inode *inode, struct file *file)
{
	const struct seq_file *seq = file->private_data;
	struct live_text *own = NULL;
	int err;

	if (seq->op != live_text_base)
		own = live_text_of(seq);
	err = live_text_base_release(inode, file);
	kfree(own);
	return err;
}

/* Return why the text is left alone, or NULL. */
static const char __init *live_text_find_obstacle(const struct file *file)
{
	const struct file_operations *operations = file->f_op;

	if (operations->read != seq_read || operations->llseek != seq_lseek ||
	    operations->read_iter || operations->splice_read)
		return "it is read by other methods";
	if (live_text_is_reaped(file_inode(file)))
		return "it finds its task in another way";
	if (IS_ENABLED(CONFIG_ANON_VMA_NAME) && !LIVE_TEXT_NAMES)
		return "CONFIG_ANON_VMA_NAME has it assert mmap_lock";
	if (!live_text_has_gate(current->mm))
		return "a 32-bit process loads the module";
	return NULL;
}

int __init live_text_init(struct file *file, struct file_operations *operations)
{
	struct seq_file *seq = file->private_data;
	const char *obstacle;
	loff_t pos = -2UL;

	live_text_enabled = live_text_enabled && LIVE_VMA_LOCK;
	if (!live_text_enabled)
		return 0;
	live_text_base = seq->op;
	obstacle = live_text_find_obstacle(file);
	if (obstacle) {
		pr_info("the text of maps is left as it is: %s\n", obstacle);
		live_text_enabled = false;
		return 0;
	}

	live_text_gate = live_text_base->start(seq, &pos);
	live_text_base->stop(seq, live_text_gate);
	if (IS_ERR(live_text_gate))
		return PTR_ERR(live_text_gate);
	live_text_base_release = operations->release;
	operations->read = live_text_read;
	operations->llseek = live_text_llseek;
	operations->release = live_text_release;
	return 0;
}
