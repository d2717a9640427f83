// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a program does the same with uprobes on it as without: same registers,
 * flags and stack, same signal, for instructions that the kernel may emulate when a
 * uprobe on them is hit, or may take for one of these, in all situations that change
 * what they do.
 *
 * The truth is what the processor does with the same instruction where there is no
 * uprobe. If the kernel emulates what uprobes.h says that the base does not, it has to
 * do so without a second trap.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "../kselftest_harness.h"
#include "uprobes.h"

/* The general registers come first, up to @NOT_GENERAL. */
#ifdef __x86_64__
#define IP(regs)	((regs)->rip)
#define SP(regs)	((regs)->rsp)
#define ORIG_AX(regs)	((regs)->orig_rax)
#define NOT_GENERAL	orig_rax
#define UCONTEXT_IP	REG_RIP
#define GETFPREGS	PTRACE_GETFPREGS
#define SETFPREGS	PTRACE_SETFPREGS
#else
#define IP(regs)	((regs)->eip)
#define SP(regs)	((regs)->esp)
#define ORIG_AX(regs)	((regs)->orig_eax)
#define NOT_GENERAL	xds
#define UCONTEXT_IP	REG_EIP
#define user_fpregs_struct user_fpxregs_struct
#define GETFPREGS	PTRACE_GETFPXREGS
#define SETFPREGS	PTRACE_SETFPXREGS
#endif

#define PAGE		4096ul
#define WORD		sizeof(long)

/* Where an instruction is in the code, and where a return goes. */
#define INSN_AT		0x100
#define LANDING_AT	0x200

/* Between two pages that cannot be read, the stack. */
#define ARENA_SIZE	(4 * PAGE)

#define FLAGS		0xed7	/* IF, and CF, PF, AF, ZF, SF, DF and OF */
#define TF		0x100
#define AC		0x40000

/* What the kernel does with an instruction. */
enum handling {
	BY_BASE,	/* The base emulates it. */
	BY_EMULATION,	/* The base does not, but a kernel that emulates more does. */
	BY_RETURNS,	/* The base does not, but a kernel that emulates returns does. */
	BY_SOME,	/* Some of these kernels do. */
	OUT_OF_LINE,	/* Nobody emulates it. */
	MISREAD,	/* Nor this one, but the base does what it does for another. */
};

struct insn {
	const char *name;
	unsigned char code[16];
	unsigned int length;
	enum handling handling;
};

/* The state in which an instruction is executed. */
struct setup {
	const char *name;
	unsigned long sp;
	unsigned long target;	/* the word there */
	unsigned long flags;
	bool watched;		/* by a breakpoint on a word below */
	bool stepped;		/* by a debugger */
	bool left;		/* A return is left to the processor. */
};

/* How the program is when it has been stopped. */
struct outcome {
	struct user_regs_struct regs;
	struct user_fpregs_struct fpregs;
	int signal;
	int code;
	uintptr_t addr;
	int64_t watched;
	unsigned char stack[2 * PAGE];
};

struct counts {
	int64_t hits;
	int64_t steps;
};

static unsigned char *text;
static unsigned char *arena;
static unsigned char *stack;	/* in it */

static int code_fd = -1;
static struct calls steps;

/* Does the kernel emulate more than the base? */
static bool emulates;

/* Returns, too? */
static bool emulates_returns;

static bool place(const void *code, size_t size, size_t at)
{
	close(code_fd);
	code_fd = make_code(code, size, at);
	return code_fd >= 0 && map_code(text, code_fd) == text;
}

static unsigned long landing(void)
{
	return (uintptr_t)text + LANDING_AT;
}

/* A process that has stopped itself before it has done anything. */
static pid_t stopped_child(void)
{
	const pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL))
		return -1;
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A value of its own in each register. */
static bool set_registers(pid_t pid, const struct setup *setup, unsigned long ip)
{
	const size_t nr = offsetof(struct user_regs_struct, NOT_GENERAL) / WORD;
	struct user_fpregs_struct fpregs;
	struct user_regs_struct regs;
	size_t i;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) ||
	    ptrace(GETFPREGS, pid, NULL, &fpregs))
		return false;
	for (i = 0; i < ARRAY_SIZE(fpregs.xmm_space); i++)
		fpregs.xmm_space[i] = i * 0x01010101;
	for (i = 0; i < nr; i++)
		((unsigned long *)&regs)[i] = (i + 1) * 0x01010101;
	ORIG_AX(&regs) = -1;
	regs.eflags = setup->flags;
	IP(&regs) = ip;
	SP(&regs) = setup->sp;
	return !ptrace(PTRACE_SETREGS, pid, NULL, &regs) &&
	       !ptrace(SETFPREGS, pid, NULL, &fpregs);
}

/* What the situation has on the stack; the rest is a pattern. */
static void fill_stack(const struct setup *setup)
{
	const unsigned long start = (uintptr_t)stack, end = start + 2 * PAGE;
	size_t i;

	for (i = 0; i < 2 * PAGE; i++)
		stack[i] = i * 7;
	if (setup->sp < start || setup->sp >= end)
		return;
	i = end - setup->sp;
	memcpy((void *)setup->sp, &setup->target, i < WORD ? i : WORD);
}

static int watch(pid_t pid, unsigned long addr)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .bp_type = HW_BREAKPOINT_RW,
		.bp_addr = addr, .bp_len = WORD, .exclude_kernel = 1,
	};

	return open_event(&attr, pid, -1);
}

static bool observe(pid_t pid, struct outcome *outcome)
{
	struct iovec here = { outcome->stack, sizeof(outcome->stack) };
	struct iovec there = { stack, sizeof(outcome->stack) };
	siginfo_t info = {};

	if (ptrace(PTRACE_GETREGS, pid, NULL, &outcome->regs) ||
	    ptrace(GETFPREGS, pid, NULL, &outcome->fpregs) ||
	    ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) ||
	    process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(outcome->stack))
		return false;
	outcome->signal = info.si_signo;
	outcome->code = info.si_code;
	outcome->addr = (uintptr_t)info.si_addr;
	return true;
}

/*
 * Have a program in this situation execute the instruction that was placed, to its
 * first signal. @counts is NULL if there is to be no uprobe.
 */
static bool run(const struct setup *setup, struct outcome *outcome,
		struct counts *counts)
{
	const int64_t steps_before = count_calls(&steps);
	int uprobe = -1, watching = -1, status;
	bool done;
	pid_t pid;

	memset(outcome, 0, sizeof(*outcome));
	fill_stack(setup);
	pid = stopped_child();
	if (pid < 0)
		return false;
	if (setup->watched)
		watching = watch(pid, setup->sp - 8 * WORD);
	if (counts)
		uprobe = open_uprobe(pid, code_fd, INSN_AT, 0);
	done = (!setup->watched || watching >= 0) &&
	       (!counts || uprobe >= 0) &&
	       set_registers(pid, setup, (uintptr_t)text + INSN_AT) &&
	       !ptrace(setup->stepped ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, NULL) &&
	       waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
	       observe(pid, outcome);
	if (done && setup->watched)
		outcome->watched = count(watching);
	if (done && counts) {
		counts->hits = count(uprobe);
		counts->steps = count_calls(&steps) - steps_before;
	}
	if (!done)
		ksft_print_msg("%s: %s\n", setup->name, strerror(errno));
	end_child(pid);
	close(watching);
	close(uprobe);
	return done;
}

static void print_outcome(const char *name, const struct outcome *outcome)
{
	ksft_print_msg("%s: signal %d, code %d, address %#lx\n", name,
		       outcome->signal, outcome->code, (long)outcome->addr);
	ksft_print_msg("... ip %#lx, sp %#lx, flags %#lx, watched %d\n",
		       (long)IP(&outcome->regs), (long)SP(&outcome->regs),
		       (long)outcome->regs.eflags, (int)outcome->watched);
}

static bool is_same(const struct setup *setup, const struct outcome *bare,
		    const struct outcome *probed)
{
	/* The SIGTRAP of a step out of line, or of an emulated one, has another code. */
	if (setup->stepped || (setup->flags & TF))
		return bare->signal == SIGTRAP && probed->signal == SIGTRAP &&
		       !memcmp(&bare->regs, &probed->regs, sizeof(bare->regs));
	return !memcmp(bare, probed, sizeof(*bare));
}

/*
 * Compare a program with and without a uprobe, and how its instruction has been executed
 * with what is expected.
 */
static bool same(const struct insn *insn, const struct setup *setup)
{
	struct outcome bare, probed;
	struct counts counts;
	int steps = 0;

	if (!place(insn->code, insn->length, INSN_AT) || !run(setup, &bare, NULL) ||
	    !run(setup, &probed, &counts))
		return false;
	if (insn->handling == BY_SOME)
		steps = counts.steps;
	else if (insn->handling == OUT_OF_LINE || insn->handling == MISREAD ||
		 (insn->handling == BY_EMULATION && !emulates) ||
		 (insn->handling == BY_RETURNS && (setup->left || !emulates_returns)))
		steps = 1;

	if (is_same(setup, &bare, &probed) && counts.hits == 1 && counts.steps == steps)
		return true;
	print_outcome("without", &bare);
	print_outcome("with", &probed);
	ksft_print_msg("... of %s, %s, %d hits, %d steps, not %d\n", insn->name, setup->name,
		       (int)counts.hits, (int)counts.steps, steps);
	return false;
}

/* The stack pointer in the middle, and there where to return to. */
static struct setup usual(void)
{
	return (struct setup) {
		.name = "usual",
		.sp = (uintptr_t)stack + PAGE,
		.target = landing(),
		.flags = FLAGS,
	};
}

static void __attribute__((constructor)) set_up(void)
{
	struct outcome outcome;
	struct counts counts;
	struct setup setup;
	int fd;

	/* Tests end without flushing what they print. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (geteuid())
		ksft_exit_skip("only root has uprobes\n");
	if (probe_type("uprobe") < 0 || probe_type("kprobe") < 0)
		ksft_exit_skip("this kernel has no uprobes or no kprobes in perf\n");

	fd = make_code("", 1, 0);
	text = map_code(NULL, fd);
	close(fd);
	arena = mmap(NULL, ARENA_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack = arena + PAGE;
	mprotect(stack, 2 * PAGE, PROT_READ | PROT_WRITE);
	if (text == MAP_FAILED || arena == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");

	if (!open_steps(&steps))
		ksft_exit_fail_msg("no kprobe\n");
	setup = usual();
	if (!place("\x0f\x1f\x44\x00\x00", 5, INSN_AT) ||
	    !run(&setup, &outcome, &counts) || counts.hits != 1)
		ksft_exit_fail_msg("a uprobe is not hit\n");
	emulates = !counts.steps;
	if (!place("\xc3", 1, INSN_AT) || !run(&setup, &outcome, &counts))
		ksft_exit_fail_msg("a uprobe is not hit\n");
	emulates_returns = !counts.steps;
}

TEST(kernel_emulates_more_than_the_base)
{
	if (!emulates)
		SKIP(return, "this kernel emulates what the base does, no more");
}

#define INSN(name, code, handling)						\
	{ name, code, sizeof(code) - 1, handling }

/* Their operands are in memory that is not there, and are not read. */
static const struct insn nops[] = {
	INSN("nop", "\x90", BY_BASE),
	INSN("pause", "\xf3\x90", BY_BASE),
	INSN("push", "\x55", BY_BASE),
	INSN("mov", "\x89\xc0", OUT_OF_LINE),
	INSN("nopl (%ax)", "\x0f\x1f\x00", BY_EMULATION),
	INSN("nopl 0(%ax)", "\x0f\x1f\x40\x00", BY_EMULATION),
	INSN("nopl 0(%ax,%ax)", "\x0f\x1f\x44\x00\x00", BY_EMULATION),
	INSN("nopw 0(%ax,%ax)", "\x66\x0f\x1f\x44\x00\x00", BY_EMULATION),
	INSN("nopl 0L(%ax,%ax)", "\x0f\x1f\x84\x00\x00\x00\x00\x00", BY_EMULATION),
	INSN("nopw 0L(%ax,%ax)", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", BY_EMULATION),
	INSN("nopl %ax", "\x0f\x1f\xc0", BY_EMULATION),
	INSN("nopl L", "\x0f\x1f\x05\x10\x32\x54\x76", BY_EMULATION),
	INSN("data16 nopw", "\x66\x66\x0f\x1f\x44\x00\x00", BY_SOME),
	INSN("nopl %fs:(%ax)", "\x64\x0f\x1f\x00", BY_SOME),
	INSN("repz nopl", "\xf3\x0f\x1f\x00", OUT_OF_LINE),
	INSN("repnz nopl", "\xf2\x0f\x1f\x00", OUT_OF_LINE),
	INSN("reserved 0f 1f /1", "\x0f\x1f\x08", OUT_OF_LINE),
	INSN("reserved 0f 1e", "\x0f\x1e\xfa", OUT_OF_LINE),
	INSN("reserved f3 0f 1e", "\xf3\x0f\x1e\xf9", OUT_OF_LINE),
	INSN("endbr64", "\xf3\x0f\x1e\xfa", BY_EMULATION),
	INSN("endbr32", "\xf3\x0f\x1e\xfb", BY_EMULATION),
	INSN("data16 endbr64", "\x66\xf3\x0f\x1e\xfa", BY_SOME),
#ifdef __x86_64__
	INSN("nopl (%r8)", "\x41\x0f\x1f\x00", BY_SOME),
	INSN("nopq (%rax)", "\x48\x0f\x1f\x00", BY_SOME),
#endif
};

static void check_insns(struct __test_metadata *const _metadata,
			const struct insn *insns, size_t nr)
{
	const struct setup setup = usual();
	size_t i;

	for (i = 0; i < nr; i++)
		EXPECT_TRUE(same(&insns[i], &setup));
}

TEST(nops_of_all_lengths)
{
	check_insns(_metadata, nops, ARRAY_SIZE(nops));
}

/* A program that has set TF, or is stepped, is stopped behind the instruction. */
TEST(task_that_steps_stops_behind_it)
{
	static const struct insn insns[] = {
		INSN("nop", "\x90", BY_BASE),
		INSN("nop5", "\x0f\x1f\x44\x00\x00", BY_EMULATION),
		INSN("ret", "\xc3", BY_RETURNS),
		INSN("mov", "\x89\xc0", OUT_OF_LINE),
	};
	struct setup setup = usual();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(insns); i++) {
		setup.name = "TF";
		setup.flags = FLAGS | TF;
		setup.stepped = false;
		EXPECT_TRUE(same(&insns[i], &setup));
		setup.name = "debugger";
		setup.flags = FLAGS;
		setup.stepped = true;
		EXPECT_TRUE(same(&insns[i], &setup));
	}
}

#ifdef __x86_64__
static const struct insn rets[] = {
	INSN("ret", "\xc3", BY_RETURNS),
	INSN("rep ret", "\xf3\xc3", BY_RETURNS),
	INSN("bnd ret", "\xf2\xc3", BY_RETURNS),
	INSN("ret $8", "\xc2\x08\x00", BY_RETURNS),
	INSN("ret $0x7fff", "\xc2\xff\x7f", BY_RETURNS),
	INSN("retw", "\x66\xc3", OUT_OF_LINE),
	INSN("retw $8", "\x66\xc2\x08\x00", OUT_OF_LINE),
	INSN("rex.W ret", "\x48\xc3", BY_SOME),
};

TEST(returns_of_all_kinds)
{
	check_insns(_metadata, rets, ARRAY_SIZE(rets));
}

/*
 * To processors, the bytes released are a number without a sign. To QEMU 7.2,
 * they have one, so that it is no witness.
 */
TEST(return_that_releases_much)
{
	const struct setup setup = usual();
	struct outcome bare, probed;
	struct counts counts;

	ASSERT_TRUE(place("\xc2\xf8\xff", 3, INSN_AT));
	ASSERT_TRUE(run(&setup, &bare, NULL));
	ASSERT_TRUE(run(&setup, &probed, &counts));
	EXPECT_EQ(emulates_returns ? 0 : 1, counts.steps);
	if (emulates_returns)
		SP(&bare.regs) = setup.sp + WORD + 0xfff8;
	EXPECT_EQ(0, memcmp(&bare, &probed, sizeof(bare)));
}

/* QEMU does not check the alignment; processors do. */
TEST(returns_in_all_situations)
{
	/* Only then has user space anything at an address of more than 47 bits. */
	const bool five_levels = (uintptr_t)mmap((void *)(1ul << 50), PAGE, PROT_NONE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) >> 47;
	const unsigned long start = (uintptr_t)stack, end = start + 2 * PAGE;
	const unsigned long sp = usual().sp, target = landing();
	const struct setup setups[] = {
		{ "last word of a page", end - WORD, target, FLAGS, .left = false },
		{ "word over two pages", start + PAGE - 2, target, FLAGS, .left = false },
		{ "word half behind the stack", end - WORD / 2, target, FLAGS, .left = true },
		{ "before the stack", (uintptr_t)arena, target, FLAGS, .left = true },
		{ "no stack", 0, target, FLAGS, .left = true },
		{ "the kernel's", 0xffff888000000000, target, FLAGS, .left = true },
		{ "not canonical", 0x1234567812345678, target, FLAGS, .left = true },
		{ "to a page that cannot be executed", sp, start, FLAGS, .left = false },
		{ "nowhere", sp, 0, FLAGS, .left = false },
		{ "to the kernel", sp, 0xffffffff81000000, FLAGS, .left = true },
		{ "to no canonical address", sp, 0x1234567812345678, FLAGS, .left = true },
		{ "to the end", sp, 0x7ffffffff000, FLAGS, .left = !five_levels },
		{ "to what is not mapped", sp, 0x7fffffffdfff, FLAGS, .left = false },
		{ "aligned", sp, target, FLAGS | AC, .left = true },
		{ "not aligned", sp + 1, target, FLAGS | AC, .left = true },
		/* This breakpoint is not hit: QEMU 7.2 does not get over one that is. */
		{ "watched", sp, target, FLAGS, .watched = true, .left = true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(setups); i++)
		EXPECT_TRUE(same(&rets[3], &setups[i]));	/* ret $8 */
}
#endif

/* Their opcodes are those of others but for a prefix. The base gets the last ones right. */
static const struct insn avx[] = {
	INSN("vpor", "\xc5\xe9\xeb\xc1", MISREAD),
	INSN("vpcmpeqb", "\xc5\xe9\x74\xc2", MISREAD),
	INSN("vzeroupper", "\xc5\xf8\x77", MISREAD),
	INSN("vpshufd", "\xc5\xf9\x70\xc1\x1b", MISREAD),
	INSN("vpsubsb", "\xc5\xe9\xe8\xc1", MISREAD),
	INSN("vpsubsb %fs:(%ax)", "\x64\xc5\xe9\xe8\x00", MISREAD),
	INSN("vcmpps", "\xc5\xe8\xc2\xc1\x0f", MISREAD),
	INSN("vfnmadd132ss", "\xc4\xe2\x69\x9d\xc1", MISREAD),
	INSN("vpsubsb %zmm1", "\x62\xf1\x6d\x48\xe8\xc1", MISREAD),
#ifdef __x86_64__
	INSN("vpor 0x100(%rip)", "\xc5\xe9\xeb\x05\x00\x01\x00\x00", MISREAD),
	INSN("vmovaps 0x100(%rip)", "\xc5\xf8\x28\x05\xf8\x00\x00\x00", OUT_OF_LINE),
#else
	INSN("vpminsw", "\xc5\xe9\xea\xc1", MISREAD),
	INSN("vfmsub132ps", "\xc4\xe2\x69\x9a\xc1", MISREAD),
	INSN("les (%esp)", "\xc4\x04\x24", OUT_OF_LINE),
#endif
	INSN("vmovaps", "\xc5\xf8\x28\xc1", OUT_OF_LINE),
	INSN("vfmadd132ps", "\xc4\xe2\x69\x98\xc1", OUT_OF_LINE),
};

/* The live module refuses a uprobe on it. */
static bool is_refused(const struct insn *insn)
{
	int uprobe = -1, error = 0;
	pid_t pid;

	if (!place(insn->code, insn->length, INSN_AT))
		return false;
	pid = stopped_child();
	if (pid > 0) {
		uprobe = open_uprobe(pid, code_fd, INSN_AT, 0);
		error = errno;
		end_child(pid);
	}
	if (uprobe >= 0 || error != EOPNOTSUPP)
		ksft_print_msg("%s: %d, %s\n", insn->name, uprobe, strerror(error));
	close(uprobe);
	return uprobe < 0 && error == EOPNOTSUPP;
}

static void check_misread(struct __test_metadata *const _metadata,
			  const struct insn *insns, size_t nr)
{
	const bool guarded = !access("/sys/module/uprobes_emulate", F_OK);
	const struct setup setup = usual();
	size_t i;

	for (i = 0; i < nr; i++)
		EXPECT_TRUE(guarded && insns[i].handling == MISREAD ?
			    is_refused(&insns[i]) : same(&insns[i], &setup));
}

TEST(avx_instructions_are_no_legacy_ones)
{
	if (!__builtin_cpu_supports("avx") || !__builtin_cpu_supports("fma"))
		SKIP(return, "no AVX");
	check_misread(_metadata, avx, ARRAY_SIZE(avx));
}

#ifdef __x86_64__
static const struct insn exchanges[] = {
	INSN("xchg %r8d,%eax", "\x41\x90", MISREAD),
	INSN("xchg %r8,%rax", "\x49\x90", MISREAD),
	INSN("xchg %r8w,%ax", "\x66\x41\x90", MISREAD),
	INSN("rex nop", "\x48\x90", BY_BASE),
};

TEST(exchange_with_r8_is_no_nop)
{
	check_misread(_metadata, exchanges, ARRAY_SIZE(exchanges));
}
#endif

/* What follows calls the function in this program. */
FIXTURE(function)
{
	struct probed probed;
	int64_t steps_before;
};

FIXTURE_SETUP(function)
{
	ASSERT_TRUE(place(NEXT_FUNCTION, sizeof(NEXT_FUNCTION) - 1, 0));
	self->probed.next = (void *)text;
	self->probed.fd = code_fd;
	ASSERT_TRUE(open_probes(&self->probed));
	self->steps_before = count_calls(&steps);
}

FIXTURE_TEARDOWN(function)
{
	close_probes(&self->probed);
}

/* How many of a call's instructions are executed out of line. */
static int steps_of_call(void)
{
	return NR_PROBES - (emulates ? 2 : 0) - (emulates_returns ? 1 : 0);
}

TEST_F(function, calls_are_counted)
{
	EXPECT_TRUE(calls_are_right(&self->probed, 100));
	EXPECT_EQ(100 * steps_of_call(), count_calls(&steps) - self->steps_before);
}

/* The kernel changes the address on the stack before the return takes it. */
TEST_F(function, return_probe_on_entry_and_return)
{
	const int entry = open_uprobe(0, code_fd, ENDBR_AT, RETPROBE);
	const int returns = open_uprobe(0, code_fd, RET_AT, RETPROBE);

	ASSERT_LE(0, entry);
	ASSERT_LE(0, returns);
	EXPECT_TRUE(calls_are_right(&self->probed, 100));
	EXPECT_EQ(100, count(entry));
	EXPECT_EQ(100, count(returns));
	close(entry);
	close(returns);
}

static atomic_bool stop_threads;

/* Returns NULL if a call was not right. */
static void *call_until_stopped(void *next)
{
	while (!stop_threads)
		if (!next_is_right((long (*)(long))next, 10))
			return NULL;
	return next;
}

/* A thread may be in the trap when its breakpoint is removed. */
TEST_F_TIMEOUT(function, uprobes_come_and_go_under_threads, 300)
{
	pthread_t threads[2];
	unsigned int i;
	void *next;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, call_until_stopped,
					    (void *)self->probed.next));
	for (i = 0; i < 20; i++) {
		EXPECT_TRUE(calls_are_right(&self->probed, 10));
		close_probes(&self->probed);
		ASSERT_TRUE(open_probes(&self->probed));
	}
	stop_threads = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &next));
		EXPECT_FALSE(!next);
	}
}

#ifdef __x86_64__
/* Of arch_prctl(2), where user space has shadow stacks. */
#define ARCH_SHSTK_ENABLE	0x5001
#define ARCH_SHSTK_SHSTK	1

#define NO_SHADOW_STACK		2

/* On a new shadow stack. Nothing that has been called before may return from then on. */
static void call_on_shadow_stack(struct probed *probed)
{
	long err = SYS_arch_prctl;

	if (!open_probes(probed))
		_exit(1);
	asm volatile("syscall" : "+a" (err) : "D" (ARCH_SHSTK_ENABLE), "S" (ARCH_SHSTK_SHSTK) :
		     "rcx", "r11", "memory");
	_exit(err ? NO_SHADOW_STACK : !next_is_right(probed->next, 10));
}

/* Only the processor pops a shadow stack. */
TEST_F(function, return_with_a_shadow_stack)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		call_on_shadow_stack(&self->probed);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SHADOW_STACK)
		SKIP(return, "no shadow stacks");
	EXPECT_EQ(0, status);
	EXPECT_EQ(10 * (NR_PROBES - (emulates ? 2 : 0)),
		  count_calls(&steps) - self->steps_before);
}
#endif

/*
 * A child has the breakpoints of its parent, until it hits them and nobody wants to know.
 * It counts nothing.
 */
TEST_F(function, child)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(!next_is_right(self->probed.next, 10));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, hits(&self->probed));
	EXPECT_TRUE(calls_are_right(&self->probed, 10));
}

static atomic_int nr_signals;
static atomic_int nr_strays;

/* In the code, a signal may come only before or behind an instruction. */
static void note_signal(int signal, siginfo_t *info, void *ucontext)
{
	const unsigned long ip = ((ucontext_t *)ucontext)->uc_mcontext.gregs[UCONTEXT_IP];
	const unsigned long at = ip - (uintptr_t)text;

	nr_signals++;
	if (at < TEXT_SIZE && at != ENDBR_AT && at != NOP5_AT && at != MOV_AT &&
	    at != RET_AT && at != RET_AT - 1)
		nr_strays++;
}

/* One that comes during a step out of line waits for its end. */
TEST_F(function, signals_come_in_between)
{
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = {};
	const struct sigaction action = {
		.sa_sigaction = note_signal, .sa_flags = SA_SIGINFO | SA_RESTART,
	};
	long calls = 0;

	ASSERT_EQ(0, sigaction(SIGVTALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_VIRTUAL, &often, NULL));
	for (; nr_signals < 20 && calls < 1000000; calls += 100)
		ASSERT_TRUE(calls_are_right(&self->probed, 100));
	ASSERT_EQ(0, setitimer(ITIMER_VIRTUAL, &never, NULL));
	EXPECT_LE(20, atomic_load(&nr_signals));
	EXPECT_EQ(0, atomic_load(&nr_strays));
}

TEST_HARNESS_MAIN
