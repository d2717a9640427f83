// SPDX-License-Identifier: GPL-2.0
/*
 * Uprobes on the right instruction.
 *
 *	# insmod uprobes_fix.ko
 *	# rmmod uprobes_fix
 *
 * arch_uprobe_analyze_insn() decides how an instruction under a uprobe is executed, once
 * for each uprobe. It takes some instructions for others, and has some executed out of
 * line that do something else there. live_analyze_insn(), which ftrace calls in its place,
 * calls it, and corrects what it has decided, or refuses the uprobe with EOPNOTSUPP.
 *
 * Nothing but the kernel's own operations is left behind in a uprobe, so the module can
 * go at any time; what it has corrected stays so.
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
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/uprobes.h>
#include <linux/utsname.h>

#include <asm/ibt.h>

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
 * Neither function is exported. The calls are direct ones: with indirect branch tracking,
 * most functions may not be called through a pointer.
 */
DEFINE_STATIC_CALL_RET0(analyze_insn, arch_uprobe_analyze_insn);
DEFINE_STATIC_CALL_RET0(lookup_name, kallsyms_lookup_name);

/*
 * The operations that the kernel has for an instruction: those for all that it executes
 * out of line, and those for push, which it emulates.
 */
static const struct uprobe_xol_ops *default_ops __ro_after_init;
static const struct uprobe_xol_ops *push_ops __ro_after_init;

/*
 * The bits of arch_uprobe::defparam.fixups for an instruction that is executed out of
 * line, as in arch/x86/kernel/uprobes.c.
 */
#define FIX_IP		0x01	/* It does not set the instruction pointer. */
#define FIX_RIP		0x38	/* Its operand was relative to the instruction pointer. */

/* Of the opcodes that are given in @opcode's cases below. */
#define REG(modrm)	(((modrm) >> 3) & 7)

/* A probed instruction. All but @bytes points into that, maybe to its last byte. */
struct live_insn {
	const u8 *bytes;
	const u8 *rex;		/* or NULL */
	const u8 *opcode;	/* or the prefix that says which map it is of */
	bool data16;		/* It has the prefix for operands of 16 bits. */
	bool long_mode;
};

/* Find the opcode, as the kernel does: a fifth prefix that differs from the others is one. */
static struct live_insn parse(const u8 *bytes, bool long_mode)
{
	const u8 *const last = bytes + MAX_UINSN_BYTES - 1;
	struct live_insn insn = { .bytes = bytes, .long_mode = long_mode };
	const u8 *byte = bytes;
	int nr = 0;

	for (; byte < last && memchr("\x66\x67\xf2\xf3\x64\x65", *byte, 6); byte++) {
		nr += !memchr(bytes, *byte, byte - bytes);
		if (nr > 4)
			break;
		insn.data16 |= *byte == 0x66;
	}
	if (long_mode && byte < last && (*byte & 0xf0) == 0x40)
		insn.rex = byte++;
	insn.opcode = byte;
	return insn;
}

static u8 byte_of(const struct live_insn *insn, int i)
{
	return insn->opcode + i < insn->bytes + MAX_UINSN_BYTES ? insn->opcode[i] : 0;
}

/*
 * Return the length of a VEX or EVEX prefix, or 0. In 32 bits, BOUND, LES and LDS have an
 * operand in memory.
 */
static int vex_prefix(const struct live_insn *insn)
{
	if (!insn->long_mode && byte_of(insn, 1) < 0xc0)
		return 0;
	switch (insn->opcode[0]) {
	case 0xc5:
		return 2;
	case 0xc4:
		return 3;
	case 0x62:
		return 4;
	default:
		return 0;
	}
}

/* 8f rxbmmmmm wvvvvLpp opcode modrm, with a map of 8 or more. The kernel takes it for POP. */
static bool is_xop(const struct live_insn *insn)
{
	return insn->opcode[0] == 0x8f && (byte_of(insn, 1) & 0x1f) >= 8;
}

static bool is_relative(const struct live_insn *insn, int modrm_at)
{
	return insn->long_mode && (byte_of(insn, modrm_at) & 0xc7) == 0x05;
}

/* It does something else in a slot, or if it is stepped: see the patch of the series. */
static bool is_step_unsafe(const struct live_insn *insn)
{
	const u8 modrm = byte_of(insn, 1), modrm2 = byte_of(insn, 2);

	/* A prefix where the kernel expects none, so that it has not seen the opcode. */
	if (memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", insn->opcode[0], 11) ||
	    (insn->long_mode && (insn->opcode[0] & 0xf0) == 0x40))
		return true;

	switch (insn->opcode[0]) {
	case 0x8f:
		return is_xop(insn) && is_relative(insn, 4);
	case 0x9a:
		return true;
	case 0x9c:
	case 0xe0 ... 0xe3:
		return insn->data16;
	case 0xc7:
		return modrm == 0xf8;
	case 0xd5:	/* a REX2 prefix: no kernel here has its registers */
		return insn->long_mode;
	case 0xff:
		return REG(modrm) == 3 || (REG(modrm) == 2 && insn->data16);
	case 0x0f:
		break;
	default:
		return false;
	}

	switch (byte_of(insn, 1)) {
	case 0x00:
		return REG(modrm2) <= 1;
	case 0x01:
		return modrm2 == 0xd7 || REG(modrm2) == 4 ||
		       (modrm2 < 0xc0 && REG(modrm2) <= 1);
	case 0x05:
	case 0x34:
		return true;
	case 0x0b:	/* ud2, and what the kernel takes for a prefix of Xen or KVM */
		return !memcmp(insn->bytes + 2, "xen", 3) || !memcmp(insn->bytes + 2, "kvm", 3);
	default:
		return false;
	}
}

/* Have it executed out of line. */
static int use_default_ops(struct arch_uprobe *auprobe, u8 fixups)
{
	auprobe->ops = default_ops;
	auprobe->defparam.fixups = FIX_IP | fixups;
	return 0;
}

/* vzeroupper, vzeroall: without a modrm */
static bool is_vzero(const struct live_insn *insn)
{
	return insn->opcode[0] != 0x62 && byte_of(insn, vex_prefix(insn)) == 0x77;
}

/*
 * Correct an instruction with a VEX or EVEX prefix, which none of the kernel's tables has:
 * none is emulated, or sets the instruction pointer or TF. The kernel may have refused it,
 * too, for the opcode of another one.
 */
static int correct_vex(struct arch_uprobe *auprobe, const struct live_insn *insn, int err)
{
	/* That has been rewritten. */
	if (!err && auprobe->ops == default_ops && (auprobe->defparam.fixups & FIX_RIP))
		return use_default_ops(auprobe, auprobe->defparam.fixups & FIX_RIP);
	if (!is_vzero(insn) && is_relative(insn, vex_prefix(insn) + 1))
		return -EOPNOTSUPP;
	return use_default_ops(auprobe, 0);
}

/*
 * Correct what the kernel has decided, which is @err, on the instruction in @bytes. It has
 * rewritten its own copy.
 */
static int correct(struct arch_uprobe *auprobe, const u8 *bytes, bool long_mode, int err)
{
	const struct live_insn insn = parse(bytes, long_mode);

	if (vex_prefix(&insn) && (!err || err == -ENOTSUPP))
		return correct_vex(auprobe, &insn, err);
	if (err)
		return err;
	if (is_step_unsafe(&insn))
		return -EOPNOTSUPP;

	switch (insn.opcode[0]) {
	case 0x90:	/* With REX.B, it exchanges R8 and RAX. */
		if (insn.rex && (*insn.rex & 1))
			use_default_ops(auprobe, 0);
		break;
	case 0x9c:	/* PUSHF, of a register that is not general. */
		auprobe->ops = push_ops;
		auprobe->push.reg_offset = offsetof(struct pt_regs, flags);
		auprobe->push.ilen = insn.opcode + 1 - insn.bytes;
		break;
	}
	return 0;
}

/* In place of arch_uprobe_analyze_insn(). Does not sleep. */
static int live_analyze_insn(struct arch_uprobe *auprobe, struct mm_struct *mm,
			     unsigned long addr)
{
	const struct arch_uprobe before = *auprobe;
	const int err = static_call(analyze_insn)(auprobe, mm, addr);
	const int corrected = correct(auprobe, before.insn, is_64bit_mm(mm), err);

	if (corrected && !err) {
		pr_warn_ratelimited("no uprobe at %#lx: on this kernel, %*ph would do something else with one\n",
				    addr, MAX_UINSN_BYTES, before.insn);
		*auprobe = before;
	}
	return corrected;
}

#ifndef arch_ftrace_regs	/* linux-6.1 */
#define arch_ftrace_regs(fregs) (fregs)
#endif

/* Unless it is live_analyze_insn() that calls. */
static void notrace live_hook(unsigned long ip, unsigned long parent_ip,
			      struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *call = &arch_ftrace_regs(fregs)->regs;

	if (!within_module(parent_ip, THIS_MODULE))
		instruction_pointer_set(call, (unsigned long)live_analyze_insn);
}

static struct ftrace_ops hook = {
	.func = live_hook,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

/* What the kernel is expected to make of an instruction. */
struct expected {
	u8 insn[MAX_UINSN_BYTES];
	u8 length;
	u8 fixups;
};

static const struct expected expectations[] __initconst = {
	{ { 0x9c }, 1, FIX_IP },			/* pushf */
	{ { 0x89, 0x05 }, 6, FIX_IP | 0x08 },		/* mov %eax,0(%rip) */
	{ { 0xc5, 0xf8, 0x28, 0xc1 }, 4, FIX_IP },	/* vmovaps */
};

/* Have the kernel analyze an instruction. Return the operations that it has, or NULL. */
static const struct uprobe_xol_ops __init *analyze(struct arch_uprobe *auprobe,
						   const u8 *insn)
{
	memset(auprobe, 0, sizeof(*auprobe));
	memcpy(auprobe->insn, insn, MAX_UINSN_BYTES);
	return static_call(analyze_insn)(auprobe, current->mm, 0) ? NULL : auprobe->ops;
}

static bool __init check_insn(const struct expected *expected)
{
	struct arch_uprobe auprobe;
	const struct uprobe_xol_ops *ops = analyze(&auprobe, expected->insn);

	return ops == default_ops && auprobe.defparam.fixups == expected->fixups &&
	       auprobe.defparam.ilen == expected->length;
}

/* Look up and check all that is needed of the kernel. May sleep. */
static int __init check_base(void)
{
	static const u8 mov[MAX_UINSN_BYTES] __initconst = { 0x89, 0xc0 };
	static const u8 push_bp[MAX_UINSN_BYTES] __initconst = { 0x55 };
	void *analyze_insn = find_function("arch_uprobe_analyze_insn");
	void *lookup_name = find_function("kallsyms_lookup_name");
	struct arch_uprobe auprobe;
	int i;

	if (!analyze_insn || !lookup_name)
		return -EOPNOTSUPP;
	static_call_update(analyze_insn, analyze_insn);
	static_call_update(lookup_name, lookup_name);

	default_ops = analyze(&auprobe, mov);
	push_ops = analyze(&auprobe, push_bp);
	if (!default_ops || !push_ops || default_ops == push_ops ||
	    auprobe.push.reg_offset != offsetof(struct pt_regs, bp) ||
	    auprobe.push.ilen != 1) {
		pr_err("a uprobe on a push is not handled as expected\n");
		return -EOPNOTSUPP;
	}
	for (i = 0; i < ARRAY_SIZE(expectations); i++) {
		if (!check_insn(&expectations[i])) {
			pr_err("a uprobe on the instruction %*ph is not handled as expected\n",
			       expectations[i].length, expectations[i].insn);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

/* Those that were analyzed before are left as they are. */
static void __init warn_of_earlier(void)
{
	const struct rb_root *uprobes = (void *)static_call(lookup_name)("uprobes_tree");

	if (!uprobes || READ_ONCE(uprobes->rb_node))
		pr_warn("earlier uprobes stay as they are: to have them checked, remove and add them\n");
}

static int __init uprobes_live_init(void)
{
	int err = check_release() ?: check_base();

	if (err)
		return err;
	err = ftrace_set_filter(&hook, "arch_uprobe_analyze_insn",
				strlen("arch_uprobe_analyze_insn"), 0) ?:
	      register_ftrace_function(&hook);
	if (err) {
		pr_err("cannot trace arch_uprobe_analyze_insn: %d; it takes sysctl kernel.ftrace_enabled=1\n",
		       err);
		ftrace_free_filter(&hook);
		return err;
	}
	warn_of_earlier();
	return 0;
}

/* ftrace waits for those who are in the hook, or in what it has put in place. */
static void __exit uprobes_live_exit(void)
{
	unregister_ftrace_function(&hook);
	ftrace_free_filter(&hook);
}

module_init(uprobes_live_init);
module_exit(uprobes_live_exit);
MODULE_DESCRIPTION("Uprobes on the right instruction");
MODULE_VERSION("2.0");
MODULE_LICENSE("GPL");
