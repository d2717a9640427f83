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
 *   near returns, nops of several bytes, and ENDBR instead.
 *
 * Neither leaves anything behind in a uprobe, so the module can go at any time.
 *
 * The module verifies its assumptions about the kernel: it has the kernel analyze
 * instructions, and compares that, and what the module does with each, with what it
 * expects. If an assumption is wrong, it prints one line, changes nothing and does not
 * load.
 */
#undef pr_fmt	/* Kbuild includes a header first. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <generated/utsrelease.h>
#include <linux/ftrace.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mman.h>
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
#include <asm/segment.h>

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

/*
 * May a near return of this task be emulated? Not with a shadow stack, which only the
 * processor pops; nor if the alignment of what it reads is checked, or a breakpoint may
 * watch that, which has to be hit in user mode.
 */
static bool may_emulate_ret(const struct pt_regs *regs)
{
#ifdef CONFIG_X86_USER_SHADOW_STACK
	if (current->thread.features & ARCH_SHSTK_SHSTK)
		return false;
#endif
	return !(regs->flags & X86_EFLAGS_AC) &&
	       !(raw_cpu_read(cpu_dr7) & DR_GLOBAL_ENABLE_MASK);
}

/**
 * emulate_ret - emulate a near return
 * @regs: the registers of the current task, at the return.
 * @released: the bytes of arguments that it releases.
 *
 * It is left to the processor whenever that might do more than pop an address and go
 * there: fault, say. Then nothing is changed. Does not sleep: a page that is not
 * present is left to the processor, too.
 *
 * Return: true if it was emulated.
 */
static bool emulate_ret(struct pt_regs *regs, unsigned int released)
{
	const unsigned long sp = regs->sp;
	unsigned long target;
	u32 narrow_target;
	int err;

	if (!may_emulate_ret(regs))
		return false;

	if (user_64bit_mode(regs)) {
		pagefault_disable();
		err = get_user(target, (unsigned long __user *)sp);
		pagefault_enable();
		/* The processor faults at a RET to an address that is not canonical. */
		if (err || target >= TASK_SIZE_MAX)
			return false;
		regs->sp = sp + sizeof(target) + released;
		regs->ip = target;
		return true;
	}

	/* Another stack segment may have a base, a limit, and 16 bits. */
	if (regs->ss != __USER_DS || sp > U32_MAX - sizeof(narrow_target) + 1)
		return false;
	pagefault_disable();
	err = get_user(narrow_target, (u32 __user *)sp);
	pagefault_enable();
	if (err)
		return false;
	regs->sp = (u32)(sp + sizeof(narrow_target) + released);
	regs->ip = narrow_target;
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
 * Emulate an instruction that the kernel executes out of line, or return false. All
 * those emulated here are the same in 64 and in 32 bits, since the kernel analyzes an
 * instruction only once for all processes. Does not sleep.
 */
static bool emulate(struct arch_uprobe *auprobe, struct pt_regs *regs)
{
	const u8 *insn = auprobe->insn;

	/* A segment of the local descriptor table may have a base, or 16 bits. */
	if (!user_64bit_mode(regs) && regs->cs != __USER32_CS)
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

/* The emulator of an instruction. */
enum emulator { BY_NOBODY, BY_KERNEL, BY_MODULE };

/*
 * The expected effect of an instruction: how far the module's emulation moves the
 * instruction pointer, or that it pops it, and by how many words and bytes it moves the
 * stack pointer.
 */
struct expected {
	u8 insn[MAX_UINSN_BYTES];
	u8 length;
	enum emulator by;
	int moved;
	int words;
	int bytes;
};

#define POPPED	-1

static const struct expected expectations[] __initconst = {
	{ { 0x90 }, 1, BY_KERNEL },				/* nop */
	{ { 0xeb, 0x10 }, 2, BY_KERNEL },			/* jmp */
	{ { 0x55 }, 1, BY_KERNEL },				/* push %bp */
	{ { 0x89, 0xc0 }, 2, BY_NOBODY },			/* mov */
	{ { 0xcb }, 1, BY_NOBODY },				/* lret */
	{ { 0x0f, 0x1f, 0xc8 }, 3, BY_NOBODY },			/* reserved */
	{ { 0xc5, 0xf8, 0x28, 0xc1 }, 4, BY_NOBODY },		/* vmovaps */
	{ { 0x0f, 0x1f, 0x44 }, 5, BY_MODULE, 5 },		/* nopl */
	{ { 0x66, 0x0f, 0x1f, 0x84 }, 9, BY_MODULE, 9 },	/* nopw */
	{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4, BY_MODULE, 4 },	/* endbr64 */
	{ { 0xf3, 0x0f, 0x1e, 0xfb }, 4, BY_MODULE, 4 },	/* endbr32 */
	{ { 0xc3 }, 1, BY_MODULE, POPPED, 1 },			/* ret */
	{ { 0xf3, 0xc3 }, 2, BY_MODULE, POPPED, 1 },		/* rep ret */
	{ { 0xc2, 0x34, 0xf2 }, 3, BY_MODULE, POPPED, 1, 0xf234 },
};

#define FIRST_IP	0x123456
#define RETURN_IP	0x654321

/* The words on the stack around the stack pointer, which the middle one is at. */
#define NR_WORDS	3

/* The state that the emulation of an instruction may change. */
struct state {
	struct pt_regs regs;
	unsigned long words[NR_WORDS];
};

/* Change the state as the emulation of an instruction is expected to. */
static void __init expect(const struct expected *expected, int word_size,
			  struct state *state)
{
	if (expected->moved == POPPED)
		state->regs.ip = RETURN_IP;
	else
		state->regs.ip += expected->moved;
	state->regs.sp += expected->words * word_size + expected->bytes;
}

/**
 * is_run_as_expected - have an instruction emulated by the module
 * @expected: what is expected of it.
 * @auprobe: the instruction, as the kernel has analyzed it.
 * @stack: memory for a stack in user space, of @NR_WORDS words.
 * @long_mode: in a process of 64 bits.
 *
 * Return: true if the module did with it what it should do.
 */
static bool __init is_run_as_expected(const struct expected *expected,
				      struct arch_uprobe *auprobe,
				      unsigned long stack, bool long_mode)
{
	const struct state before = {
		.regs = {
			.ip = FIRST_IP,
			.cs = long_mode ? __USER_CS : __USER32_CS,
			.flags = X86_EFLAGS_IF,
			.sp = stack + sizeof(before.words[0]),
			.ss = __USER_DS,
			.bp = 0x11111111,
		},
		.words = { 0x22222222, RETURN_IP, 0x33333333 },
	};
	const bool may = expected->by == BY_MODULE &&
			 (expected->moved != POPPED || may_emulate_ret(&before.regs));
	struct state after = before, state = before;
	void __user *words = (void __user *)stack;

	if (may)
		expect(expected, long_mode ? sizeof(long) : sizeof(u32), &after);
	return !copy_to_user(words, state.words, sizeof(state.words)) &&
	       emulate(auprobe, &state.regs) == may &&
	       !copy_from_user(state.words, words, sizeof(state.words)) &&
	       !memcmp(&state, &after, sizeof(after));
}

/*
 * Check what the kernel makes of an instruction. The kernel's struct may be larger than
 * the module believes. May sleep.
 */
static bool __init check_insn(const struct expected *expected, unsigned long stack)
{
	union {
		struct arch_uprobe auprobe;
		u8 bytes[sizeof(struct arch_uprobe) + 256];
	} probed = {};
	struct arch_uprobe *const auprobe = &probed.auprobe;

	memcpy(auprobe->insn, expected->insn, sizeof(auprobe->insn));
	if (static_call(analyze_insn)(auprobe, current->mm, FIRST_IP) ||
	    memcmp(auprobe->insn, expected->insn, sizeof(auprobe->insn)) ||
	    memchr_inv(probed.bytes + sizeof(*auprobe), 0,
		       sizeof(probed) - sizeof(*auprobe)) ||
	    !auprobe->ops || is_misread(auprobe, true))
		return false;

	/* If the kernel emulates it, it has set another member. */
	if (auprobe->ops->emulate)
		return expected->by == BY_KERNEL;
	return expected->by != BY_KERNEL &&
	       auprobe->defparam.ilen == expected->length &&
	       is_run_as_expected(expected, auprobe, stack, true) &&
	       is_run_as_expected(expected, auprobe, stack, false);
}

/* Look up and check all that is needed of the kernel. May sleep. */
static int __init check_base(void)
{
	const struct expected *expected = expectations;
	unsigned long stack;
	void *analyze = find_function("arch_uprobe_analyze_insn");

	if (!analyze)
		return -EOPNOTSUPP;
	static_call_update(analyze_insn, analyze);

	/* An address that 32 bits can hold. */
	stack = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, 0);
	if (IS_ERR_VALUE(stack)) {
		pr_err("no memory for a stack: %ld\n", (long)stack);
		return stack;
	}
	while (expected < expectations + ARRAY_SIZE(expectations) &&
	       check_insn(expected, stack))
		expected++;
	vm_munmap(stack, PAGE_SIZE);
	if (expected == expectations + ARRAY_SIZE(expectations))
		return 0;
	pr_err("a uprobe on the instruction %*ph is not handled as expected\n",
	       expected->length, expected->insn);
	return -EOPNOTSUPP;
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
