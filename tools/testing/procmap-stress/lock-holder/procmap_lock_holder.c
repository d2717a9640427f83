// SPDX-License-Identifier: GPL-2.0
/*
 * Hold the mmap_lock of a process for writing, for tests of readers.
 *
 * Write a PID to /dev/procmap_lock_holder: when write(2) returns, the lock of that
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
 * struct lock_holder - argument of the thread that holds a lock
 * @mm: the address space, of which the thread drops the user.
 * @held: completed when it has the lock; not valid after that.
 */
struct lock_holder {
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
	struct lock_holder *holder = data;
	struct mm_struct *mm = holder->mm;

	mmap_write_lock(mm);
	complete(&holder->held);
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
static struct mm_struct *holder_get_mm(int nr)
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
static ssize_t holder_write(struct file *file, const char __user *buffer,
			    size_t size, loff_t *pos)
{
	struct lock_holder holder = {
		.held = COMPLETION_INITIALIZER_ONSTACK(holder.held),
	};
	struct task_struct *thread;
	int nr, err;

	err = kstrtoint_from_user(buffer, size, 10, &nr);
	if (err)
		return err;
	holder.mm = holder_get_mm(nr);
	if (!holder.mm)
		return -ESRCH;
	thread = kthread_run(hold_lock, &holder, KBUILD_MODNAME);
	if (IS_ERR(thread)) {
		mmput(holder.mm);
		return PTR_ERR(thread);
	}
	wait_for_completion(&holder.held);
	file->private_data = thread;
	return size;
}

static int holder_release(struct inode *inode, struct file *file)
{
	if (file->private_data)
		kthread_stop(file->private_data);
	return 0;
}

static const struct file_operations holder_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.write = holder_write,
	.release = holder_release,
};

static struct miscdevice holder_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &holder_fops,
	.mode = 0600,
};
module_misc_device(holder_device);

MODULE_DESCRIPTION("Hold the mmap_lock of a process, for tests");
MODULE_LICENSE("GPL");
