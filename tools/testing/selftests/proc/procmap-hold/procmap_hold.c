// SPDX-License-Identifier: GPL-2.0
/*
 * Hold the mmap_lock of a process for writing, for tests of what waits for it.
 *
 * Write a PID to /dev/procmap_hold: when write(2) returns, the lock of that
 * process' address space is held. Close the file to release it. Only root can
 * open the device: whoever holds the lock stops the process.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

/**
 * struct hold - one opened file
 * @mm: the address space, of which a user is held; NULL before the write.
 * @holder: the thread that holds @mm's lock.
 * @held: completed when @holder has the lock.
 * @release: completed when @holder is to release the lock.
 */
struct hold {
	struct mm_struct *mm;
	struct task_struct *holder;
	struct completion held;
	struct completion release;
};

/*
 * A lock must not be held on return to user space, so a kernel thread holds it.
 * It waits interruptibly, although no signal comes: a long uninterruptible wait
 * is reported as a hung task.
 */
static int hold_lock(void *data)
{
	struct hold *hold = data;

	mmap_write_lock(hold->mm);
	complete(&hold->held);
	while (wait_for_completion_interruptible(&hold->release))
		;
	mmap_write_unlock(hold->mm);
	return 0;
}

/* Get the address space of a process in the caller's PID namespace. */
static struct mm_struct *get_mm_of(int nr)
{
	struct task_struct *task;
	struct mm_struct *mm;
	struct pid *pid;

	pid = find_get_pid(nr);
	task = get_pid_task(pid, PIDTYPE_PID);
	put_pid(pid);
	if (!task)
		return NULL;
	mm = get_task_mm(task);
	put_task_struct(task);
	return mm;
}

static int start_holder(struct hold *hold, int nr)
{
	struct mm_struct *mm = get_mm_of(nr);
	struct task_struct *holder;

	if (!mm)
		return -ESRCH;
	hold->mm = mm;
	holder = kthread_create(hold_lock, hold, KBUILD_MODNAME);
	if (IS_ERR(holder)) {
		hold->mm = NULL;
		mmput(mm);
		return PTR_ERR(holder);
	}
	/* It may end before kthread_stop(), which needs the task. */
	get_task_struct(holder);
	hold->holder = holder;
	wake_up_process(holder);
	wait_for_completion(&hold->held);
	return 0;
}

static int hold_open(struct inode *inode, struct file *file)
{
	struct hold *hold = kzalloc(sizeof(*hold), GFP_KERNEL);

	if (!hold)
		return -ENOMEM;
	init_completion(&hold->held);
	init_completion(&hold->release);
	file->private_data = hold;
	return nonseekable_open(inode, file);
}

static ssize_t hold_write(struct file *file, const char __user *buffer,
			  size_t size, loff_t *pos)
{
	static DEFINE_MUTEX(writing);
	struct hold *hold = file->private_data;
	int nr, err;

	err = kstrtoint_from_user(buffer, size, 10, &nr);
	if (err)
		return err;
	mutex_lock(&writing);
	err = hold->mm ? -EBUSY : start_holder(hold, nr);
	mutex_unlock(&writing);
	return err ?: size;
}

static int hold_release(struct inode *inode, struct file *file)
{
	struct hold *hold = file->private_data;

	if (hold->mm) {
		complete(&hold->release);
		kthread_stop(hold->holder);
		put_task_struct(hold->holder);
		mmput(hold->mm);
	}
	kfree(hold);
	return 0;
}

static const struct file_operations hold_fops = {
	.owner = THIS_MODULE,
	.open = hold_open,
	.write = hold_write,
	.release = hold_release,
};

static struct miscdevice hold_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &hold_fops,
	.mode = 0600,
};
module_misc_device(hold_device);

MODULE_DESCRIPTION("Hold the mmap_lock of a process, for tests");
MODULE_LICENSE("GPL");
