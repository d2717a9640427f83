// SPDX-License-Identifier: GPL-2.0
/*
 * Uprobes without some faults of the kernel's, and without a second trap on more
 * instructions.
 *
 *	# insmod uprobes_emulate.ko
 *	# rmmod uprobes_emulate
 *
 * ftrace calls two hooks at the beginning of functions of the kernel:
 *
 * - set_swbp() writes the breakpoint of a uprobe into a process. live_set_swbp() refuses
 *   that on instructions which the kernel takes for others.
 * - default_pre_xol_op() prepares to execute an instruction out of line, in a slot and with
 *   a second trap behind it: any that the kernel does not emulate. live_pre_xol() emulates
 *   near returns, nops of several bytes, and ENDBR in programs of 64 bits instead.
 *
 * Neither leaves anything behind in a uprobe, so the module can go at any time.
 *
 * The module verifies its assumptions about the kernel: it has the kernel analyze
 * instructions, and compares that with what it expects. If an assumption is wrong, it
 * prints one line, changes nothing and does not load.
 */
#undef pr_fmt	/* Kbuild includes a header first. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <generated/utsrelease.h>
#include <linux/ftrace.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>
#include <linux/utsname.h>

#include <asm/debugreg.h>	/* It relies on those above. */
#include <asm/ibt.h>
#include <asm/prctl.h>

/* Return 0 if this is the kernel that the module was built for. */
static int __init check_release(void)
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
static void __init *find_function(const char *name)
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

/*
 * The operations that the kernel has chosen for a probed instruction: of the definition
 * in arch/x86/kernel/uprobes.c, what is used here. check_insn() verifies it. @emulate
 * is NULL if the instruction is executed out of line; then the kernel has set
 * arch_uprobe::defparam.
 */
struct uprobe_xol_ops {
	bool (*emulate)(struct arch_uprobe *auprobe, struct pt_regs *regs);
};

/**
 * emulate_ret - emulate a near return
 * @regs: the registers of the current task, at the return, in 64-bit mode.
 * @released: the bytes of arguments that it releases.
 *
 * It is left to the processor whenever that might do more than pop an address and go
 * there: with a shadow stack, which only the processor pops; if the alignment of what it
 * reads is checked; if a breakpoint may watch that, which has to be hit in user mode; if
 * it would fault. Then nothing is changed. Does not sleep: a page that is not present is
 * left to the processor, too.
 *
 * Return: true if it was emulated.
 */
static bool emulate_ret(struct pt_regs *regs, unsigned int released)
{
	unsigned long target;
	int err;

#ifdef CONFIG_X86_USER_SHADOW_STACK
	if (current->thread.features & ARCH_SHSTK_SHSTK)
		return false;
#endif
	if ((regs->flags & X86_EFLAGS_AC) ||
	    (raw_cpu_read(cpu_dr7) & DR_GLOBAL_ENABLE_MASK))
		return false;

	pagefault_disable();
	err = get_user(target, (unsigned long __user *)regs->sp);
	pagefault_enable();
	/* The processor faults at a RET to an address that is not canonical. */
	if (err || target >= TASK_SIZE_MAX)
		return false;
	regs->sp += sizeof(target) + released;
	regs->ip = target;
	return true;
}

/*
 * Is it ENDBR32, ENDBR64 or a nop of several bytes? Prefixes that no assembler writes
 * make it something else.
 */
static bool is_nop(const u8 *insn)
{
	if (insn[0] == 0xf3)
		return insn[1] == 0x0f && insn[2] == 0x1e &&
		       (insn[3] == 0xfa || insn[3] == 0xfb);
	if (insn[0] == 0x66)
		insn++;
	/* The other seven operations of this opcode are reserved. */
	return insn[0] == 0x0f && insn[1] == 0x1f && !(insn[2] & 0x38);
}

/*
 * Emulate an instruction that the kernel executes out of line, or return false: in
 * programs of 64 bits, whose segments have no base. Does not sleep.
 */
static bool emulate(struct arch_uprobe *auprobe, struct pt_regs *regs)
{
	const u8 *insn = auprobe->insn;

	if (!user_64bit_mode(regs))
		return false;

	if (is_nop(insn)) {
		regs->ip += auprobe->defparam.ilen;
		return true;
	}

	/* REP RET and BND RET */
	if (insn[0] == 0xf2 || insn[0] == 0xf3)
		insn++;
	switch (insn[0]) {
	case 0xc2:
		return emulate_ret(regs, insn[1] | insn[2] << 8);
	case 0xc3:
		return emulate_ret(regs, 0);
	default:
		return false;
	}
}

#ifndef arch_ftrace_regs	/* linux-6.1 */
#define arch_ftrace_regs(fregs) (fregs)
#endif

/* In place of default_pre_xol_op(): the task goes on where its registers say. */
static int live_emulated(struct arch_uprobe *auprobe, struct pt_regs *regs)
{
	return -EAGAIN;
}

/*
 * Emulate an instruction before default_pre_xol_op() is executed. As with those that the
 * kernel emulates, a task that steps, or is stepped, stops behind the instruction.
 */
static void notrace live_pre_xol(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *call = &arch_ftrace_regs(fregs)->regs;
	struct arch_uprobe *auprobe = (void *)call->di;
	struct pt_regs *regs = (void *)call->si;

	if (!emulate(auprobe, regs))
		return;
	if (regs->flags & X86_EFLAGS_TF)
		send_sig(SIGTRAP, current, 0);
	instruction_pointer_set(call, (unsigned long)live_emulated);
}

/*
 * The bits of arch_uprobe::defparam.fixups for an instruction that is executed out of
 * line, as in arch/x86/kernel/uprobes.c, but for those of operands.
 */
#define FIX_IP		0x01	/* It does not set the instruction pointer. */
#define FIX_CALL	0x02	/* It pushes the instruction pointer. */
#define FIX_SETF	0x04	/* It sets TF. */

/**
 * is_misread - whether the kernel takes an instruction for another one
 * @auprobe: the instruction, as the kernel has analyzed it.
 * @long_mode: in a process of 64 bits.
 *
 * The kernel looks up the opcode without the prefix that says which map it is of. No
 * instruction with a VEX or EVEX prefix is one that the kernel may emulate, and none
 * sets the instruction pointer or TF. XCHG of R8 and RAX is no nop.
 */
static bool is_misread(const struct arch_uprobe *auprobe, bool long_mode)
{
	const u8 *insn = auprobe->insn, *const end = insn + MAX_UINSN_BYTES - 1;
	const bool emulated = auprobe->ops->emulate;
	u8 rex = 0;

	while (insn < end && memchr("\x66\x67\xf2\xf3\x64\x65", *insn, 6))
		insn++;
	if (long_mode && insn < end && (*insn & 0xf0) == 0x40)
		rex = *insn++;
	switch (*insn) {
	case 0x90:
		return emulated && (rex & 1);
	case 0x62:
	case 0xc4:
	case 0xc5:
		/* In 32 bits, BOUND, LES and LDS have an operand in memory. */
		if (!long_mode && (insn == end || insn[1] < 0xc0))
			return false;
		return emulated || (auprobe->defparam.fixups &
				    (FIX_IP | FIX_CALL | FIX_SETF)) != FIX_IP;
	default:
		return false;
	}
}

/* In place of set_swbp(): if the uprobe is being registered, that fails with the error. */
static int live_refuse(struct arch_uprobe *auprobe, struct mm_struct *mm,
		       unsigned long vaddr)
{
	pr_warn_ratelimited("no uprobe at %#lx: this kernel takes %*ph for another instruction\n",
			    vaddr, auprobe->ops->emulate ? auprobe->branch.ilen :
							   auprobe->defparam.ilen,
			    auprobe->insn);
	return -EOPNOTSUPP;
}

/* The caller of set_swbp() has had the kernel analyze the instruction. */
static void notrace live_set_swbp(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *call = &arch_ftrace_regs(fregs)->regs;
	struct mm_struct *mm = (void *)call->si;

	if (is_misread((void *)call->di, is_64bit_mm(mm)))
		instruction_pointer_set(call, (unsigned long)live_refuse);
}

static struct {
	char *function;
	struct ftrace_ops ops;
} hooks[] = {
	{ "set_swbp", { .func = live_set_swbp } },
	{ "default_pre_xol_op", { .func = live_pre_xol } },
};

/*
 * It is not exported. The call is a direct one: with indirect branch tracking, most
 * functions may not be called through a pointer.
 */
static int no_analyze_insn(struct arch_uprobe *auprobe, struct mm_struct *mm,
			   unsigned long addr)
{
	return -EOPNOTSUPP;
}

DEFINE_STATIC_CALL(analyze_insn, no_analyze_insn);

/* What the kernel is expected to make of an instruction. */
struct expected {
	u8 insn[MAX_UINSN_BYTES];
	u8 length;
	bool emulated;
};

static const struct expected expectations[] __initconst = {
	{ { 0x90 }, 1, true },				/* nop */
	{ { 0xeb, 0x10 }, 2, true },			/* jmp */
	{ { 0x55 }, 1, true },				/* push %bp */
	{ { 0x89, 0xc0 }, 2 },				/* mov */
	{ { 0xc5, 0xf8, 0x28, 0xc1 }, 4 },		/* vmovaps */
	{ { 0x0f, 0x1f, 0x44 }, 5 },			/* nopl */
	{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4 },		/* endbr64 */
	{ { 0xc3 }, 1 },				/* ret */
	{ { 0xc2, 0x34, 0xf2 }, 3 },			/* ret imm16 */
};

/*
 * Check what the kernel makes of an instruction. The kernel's struct may be larger than
 * the module believes. May sleep.
 */
static bool __init check_insn(const struct expected *expected)
{
	union {
		struct arch_uprobe auprobe;
		u8 bytes[sizeof(struct arch_uprobe) + 256];
	} probed = {};
	struct arch_uprobe *const auprobe = &probed.auprobe;

	memcpy(auprobe->insn, expected->insn, sizeof(auprobe->insn));
	if (static_call(analyze_insn)(auprobe, current->mm, 0) ||
	    memcmp(auprobe->insn, expected->insn, sizeof(auprobe->insn)) ||
	    memchr_inv(probed.bytes + sizeof(*auprobe), 0,
		       sizeof(probed) - sizeof(*auprobe)) ||
	    !auprobe->ops || is_misread(auprobe, true))
		return false;

	/* If the kernel emulates it, it has set another member. */
	if (auprobe->ops->emulate)
		return expected->emulated;
	return !expected->emulated && auprobe->defparam.ilen == expected->length;
}

/* Look up and check all that is needed of the kernel. May sleep. */
static int __init check_base(void)
{
	void *analyze = find_function("arch_uprobe_analyze_insn");
	int i;

	if (!analyze)
		return -EOPNOTSUPP;
	static_call_update(analyze_insn, analyze);
	for (i = 0; i < ARRAY_SIZE(expectations); i++) {
		if (!check_insn(&expectations[i])) {
			pr_err("a uprobe on the instruction %*ph is not handled as expected\n",
			       expectations[i].length, expectations[i].insn);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

/* ftrace waits for those who are in a hook, or in what it has put in place. */
static void unhook(int nr)
{
	while (nr--) {
		unregister_ftrace_function(&hooks[nr].ops);
		ftrace_free_filter(&hooks[nr].ops);
	}
}

static int __init uprobes_live_init(void)
{
	int err = check_release() ?: check_base();
	struct ftrace_ops *ops;
	int i;

	for (i = 0; !err && i < ARRAY_SIZE(hooks); i++) {
		ops = &hooks[i].ops;
		ops->flags |= FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT;
		err = ftrace_set_filter(ops, hooks[i].function,
					strlen(hooks[i].function), 0) ?:
		      register_ftrace_function(ops);
		if (err) {
			pr_err("cannot trace %s: %d; it takes sysctl kernel.ftrace_enabled=1\n",
			       hooks[i].function, err);
			ftrace_free_filter(ops);
			unhook(i);
		}
	}
	return err;
}

static void __exit uprobes_live_exit(void)
{
	unhook(ARRAY_SIZE(hooks));
}

module_init(uprobes_live_init);
module_exit(uprobes_live_exit);
MODULE_DESCRIPTION("Uprobes on the right instruction, and on returns and nops without a second trap");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
