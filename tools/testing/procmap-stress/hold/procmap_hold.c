// SPDX-License-Identifier: GPL-2.0
/*
 * Hold the mmap_lock of a process for writing, for tests of readers.
 *
 * Write a PID to /dev/procmap_hold: when write(2) returns, the lock of that
 * process' address space is held. Close the file to release it. Only root can
 * open the device: a process whose lock is held cannot go on.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

/**
 * struct hold - argument of the thread that holds a lock
 * @mm: the address space, of which the thread drops the user.
 * @held: completed when it has the lock; not valid after that.
 */
struct hold {
	struct mm_struct *mm;
	struct completion held;
};

/*
 * A lock must not be held on return to user space, so a kernel thread holds it.
 * It sleeps interruptibly, although no signal comes: a long uninterruptible sleep
 * is reported as a hung task.
 */
static int hold_lock(void *data)
{
	struct hold *hold = data;
	struct mm_struct *mm = hold->mm;

	mmap_write_lock(mm);
	complete(&hold->held);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	mmap_write_unlock(mm);
	mmput(mm);
	return 0;
}

/* Get the address space of a process in the caller's PID namespace. */
static struct mm_struct *hold_get_mm(int nr)
{
	struct pid *pid = find_get_pid(nr);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);
	struct mm_struct *mm = NULL;

	put_pid(pid);
	if (task) {
		mm = get_task_mm(task);
		put_task_struct(task);
	}
	return mm;
}

/* The file's private data is the thread, once there is one. A test writes once. */
static ssize_t hold_write(struct file *file, const char __user *buffer,
			  size_t size, loff_t *pos)
{
	struct hold hold = {
		.held = COMPLETION_INITIALIZER_ONSTACK(hold.held),
	};
	struct task_struct *holder;
	int nr, err;

	err = kstrtoint_from_user(buffer, size, 10, &nr);
	if (err)
		return err;
	hold.mm = hold_get_mm(nr);
	if (!hold.mm)
		return -ESRCH;
	holder = kthread_run(hold_lock, &hold, KBUILD_MODNAME);
	if (IS_ERR(holder)) {
		mmput(hold.mm);
		return PTR_ERR(holder);
	}
	wait_for_completion(&hold.held);
	file->private_data = holder;
	return size;
}

static int hold_release(struct inode *inode, struct file *file)
{
	if (file->private_data)
		kthread_stop(file->private_data);
	return 0;
}

static const struct file_operations hold_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
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
