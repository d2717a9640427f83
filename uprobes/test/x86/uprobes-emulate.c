// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a program does the same with uprobes on it as without: same registers,
 * flags and stack, same signal, for instructions that the kernel may emulate when a
 * uprobe on them is hit, in all situations that change what they do.
 *
 * The truth is what the processor does with the same instruction where there is no
 * uprobe. If the kernel emulates what uprobes.h says that the base does not, it has to
 * do so without a second trap.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <asm/ldt.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "uprobes.h"

#ifdef __x86_64__
#define IP(regs)	((regs)->rip)
#define SP(regs)	((regs)->rsp)
#define UCONTEXT_IP	REG_RIP
#define GETFPREGS	PTRACE_GETFPREGS
#define SETFPREGS	PTRACE_SETFPREGS
#else
#define IP(regs)	((regs)->eip)
#define SP(regs)	((regs)->esp)
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

/* Between two pages that cannot be read, the stack: each may be a situation's. */
#define ARENA_SIZE	(4 * PAGE)

#define CF		0x001
#define FLAGS		0x202	/* the one that is always set, and IF */
#define ALL_FLAGS	0xed7	/* with CF, PF, AF, ZF, SF, DF and OF */
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
	unsigned long words[4];	/* there */
	unsigned long flags;
	unsigned long cs, ss;	/* segments, if they are others */
	bool watched;		/* by a breakpoint on a word below */
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
static unsigned char *absent;	/* a page that is in no child's page tables */
static unsigned char *no_file;	/* a page behind the end of its file */

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
	struct user_fpregs_struct fpregs;
	struct user_regs_struct regs;
	size_t i;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) ||
	    ptrace(GETFPREGS, pid, NULL, &fpregs))
		return false;
	for (i = 0; i < ARRAY_SIZE(fpregs.xmm_space); i++)
		fpregs.xmm_space[i] = i * 0x01010101;
#ifdef __x86_64__
	regs.rax = 0x1111111111111111;
	regs.rbx = 0x2222222222222222;
	regs.rcx = 0x3333333333333333;
	regs.rdx = 0x4444444444444444;
	regs.rsi = 0x5555555555555555;
	regs.rdi = 0x6666666666666666;
	regs.rbp = 0x7777777777777777;
	regs.r8 = 0x8888888888888888;
	regs.r9 = 0x9999999999999999;
	regs.r10 = 0xaaaaaaaaaaaaaaaa;
	regs.r11 = 0xbbbbbbbbbbbbbbbb;
	regs.r12 = 0xcccccccccccccccc;
	regs.r13 = 0xdddddddddddddddd;
	regs.r14 = 0xeeeeeeeeeeeeeeee;
	regs.r15 = 0x1010101010101010;
	regs.orig_rax = -1;
#else
	regs.eax = 0x11111111;
	regs.ebx = 0x22222222;
	regs.ecx = 0x33333333;
	regs.edx = 0x44444444;
	regs.esi = 0x55555555;
	regs.edi = 0x66666666;
	regs.ebp = 0x77777777;
	regs.orig_eax = -1;
	if (setup->cs)
		regs.xcs = setup->cs;
	if (setup->ss)
		regs.xss = setup->ss;
#endif
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
	memcpy((void *)setup->sp, setup->words,
	       i < sizeof(setup->words) ? i : sizeof(setup->words));
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
	       !ptrace(PTRACE_CONT, pid, NULL, NULL) &&
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

/*
 * Compare a program with and without a uprobe, which it hits @hits times. @steps gets
 * how many of these were executed out of line.
 */
static bool same_outcome(const struct insn *insn, const struct setup *setup, int hits,
			 int64_t *steps)
{
	struct outcome bare, probed;
	struct counts counts;
	bool ok;

	if (!place(insn->code, insn->length, INSN_AT) || !run(setup, &bare, NULL) ||
	    !run(setup, &probed, &counts))
		return false;
	*steps = counts.steps;
	ok = !memcmp(&bare, &probed, sizeof(bare)) && counts.hits == hits;
	if (!ok) {
		print_outcome("without", &bare);
		print_outcome("with", &probed);
		ksft_print_msg("... of %s, %s, %d hits\n", insn->name, setup->name,
			       (int)counts.hits);
	}
	return ok;
}

/* The same. @step is whether the emulation leaves that situation to the processor. */
static bool same(const struct insn *insn, const struct setup *setup, int hits, bool step)
{
	int64_t steps, expected = 0;

	if (insn->handling == OUT_OF_LINE || insn->handling == MISREAD ||
	    (insn->handling == BY_EMULATION && (step || !emulates)) ||
	    (insn->handling == BY_RETURNS && (step || !emulates_returns)))
		expected = hits;

	if (!same_outcome(insn, setup, hits, &steps))
		return false;
	if (insn->handling == BY_SOME)
		return true;
	if (steps != expected)
		ksft_print_msg("%d steps, not %d, of %s, %s\n", (int)steps,
			       (int)expected, insn->name, setup->name);
	return steps == expected;
}

/* The stack pointer in the middle, and there where to return to. */
static struct setup usual(void)
{
	return (struct setup) {
		.name = "usual",
		.sp = (uintptr_t)stack + PAGE,
		.words = { landing(), 0x1234 },
		.flags = FLAGS,
	};
}

static void __attribute__((constructor)) set_up(void)
{
	unsigned long target;
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
	target = landing();
	fd = make_code(&target, sizeof(target), 0);
	arena = mmap(NULL, ARENA_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack = arena + PAGE;
	mprotect(stack, 2 * PAGE, PROT_READ | PROT_WRITE);
	absent = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	no_file = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED || arena == MAP_FAILED || absent == MAP_FAILED ||
	    no_file == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");
	no_file += PAGE;

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
	ksft_print_msg("this kernel %s five-byte nops and %s returns\n",
		       emulates ? "emulates" : "does not emulate",
		       emulates_returns ? "emulates" : "does not emulate");
}

TEST(kernel_emulates_more_than_the_base)
{
	if (!emulates)
		SKIP(return, "this kernel emulates what the base does, no more");
}

#define INSN(name, code, handling)						\
	{ name, code, sizeof(code) - 1, handling }

static const struct insn nops[] = {
	INSN("nop", "\x90", BY_BASE),
	INSN("pause", "\xf3\x90", BY_BASE),
	INSN("push", "\x55", BY_BASE),
	INSN("mov", "\x89\xc0", OUT_OF_LINE),
	INSN("nopl (%ax)", "\x0f\x1f\x00", BY_EMULATION),
	INSN("nopl 0(%ax)", "\x0f\x1f\x40\x00", BY_EMULATION),
	INSN("nopl 0(%ax,%ax)", "\x0f\x1f\x44\x00\x00", BY_EMULATION),
	INSN("nopw 0(%ax,%ax)", "\x66\x0f\x1f\x44\x00\x00", BY_EMULATION),
	INSN("nopl 0L(%ax)", "\x0f\x1f\x80\x00\x00\x00\x00", BY_EMULATION),
	INSN("nopl 0L(%ax,%ax)", "\x0f\x1f\x84\x00\x00\x00\x00\x00", BY_EMULATION),
	INSN("nopw 0L(%ax,%ax)", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", BY_EMULATION),
	INSN("nopl %ax", "\x0f\x1f\xc0", BY_EMULATION),
	INSN("nopw %di", "\x66\x0f\x1f\xc7", BY_EMULATION),
	INSN("nopl L", "\x0f\x1f\x05\x10\x32\x54\x76", BY_EMULATION),
	INSN("nopl L(,%ax)", "\x0f\x1f\x04\x05\x10\x32\x54\x76", BY_EMULATION),
	INSN("nopl L(%sp)", "\x0f\x1f\x84\x24\x10\x32\x54\x76", BY_EMULATION),
	INSN("nopl 1(%bp)", "\x0f\x1f\x45\x01", BY_EMULATION),
	INSN("data16 nopw", "\x66\x66\x0f\x1f\x44\x00\x00", BY_SOME),
	INSN("nopl %fs:(%ax)", "\x64\x0f\x1f\x00", BY_SOME),
	INSN("repz nopl", "\xf3\x0f\x1f\x00", OUT_OF_LINE),
	INSN("repnz nopl", "\xf2\x0f\x1f\x00", OUT_OF_LINE),
	INSN("reserved 0f 1f /1", "\x0f\x1f\x08", OUT_OF_LINE),
	INSN("reserved 0f 1f /7", "\x0f\x1f\xf8", OUT_OF_LINE),
	INSN("reserved 0f 1e", "\x0f\x1e\xfa", OUT_OF_LINE),
	INSN("reserved f3 0f 1e", "\xf3\x0f\x1e\xf9", OUT_OF_LINE),
	INSN("reserved 0f 1c", "\x0f\x1c\xc0", OUT_OF_LINE),
	INSN("endbr64", "\xf3\x0f\x1e\xfa", BY_EMULATION),
	INSN("endbr32", "\xf3\x0f\x1e\xfb", BY_EMULATION),
	INSN("data16 endbr64", "\x66\xf3\x0f\x1e\xfa", BY_SOME),
#ifdef __x86_64__
	INSN("nopl (%r8)", "\x41\x0f\x1f\x00", BY_SOME),
	INSN("nopq (%rax)", "\x48\x0f\x1f\x00", BY_SOME),
	INSN("rex endbr64", "\xf3\x48\x0f\x1e\xfa", BY_SOME),
#endif
};

static void check_insns(struct __test_metadata *const _metadata,
			const struct insn *insns, size_t nr)
{
	const struct setup setup = usual();
	size_t i;

	for (i = 0; i < nr; i++)
		EXPECT_TRUE(same(&insns[i], &setup, 1, false));
}

TEST(nops_of_all_lengths)
{
	check_insns(_metadata, nops, ARRAY_SIZE(nops));
}

/* They have an operand, and do not read it. */
TEST(nops_of_memory_that_is_not_there)
{
	const struct insn insn = INSN("nopl (%sp)", "\x0f\x1f\x04\x24", BY_EMULATION);
	struct setup setup = usual();

	setup.name = "no stack";
	setup.sp = (uintptr_t)arena;
	EXPECT_TRUE(same(&insn, &setup, 1, false));
}

static const struct insn rets[] = {
	INSN("ret", "\xc3", BY_RETURNS),
	INSN("rep ret", "\xf3\xc3", BY_RETURNS),
	INSN("bnd ret", "\xf2\xc3", BY_RETURNS),
	INSN("ret $0", "\xc2\x00\x00", BY_RETURNS),
	INSN("ret $8", "\xc2\x08\x00", BY_RETURNS),
	INSN("ret $7", "\xc2\x07\x00", BY_RETURNS),
	INSN("ret $0x7fff", "\xc2\xff\x7f", BY_RETURNS),
	INSN("rep ret $8", "\xf3\xc2\x08\x00", BY_RETURNS),
	INSN("bnd ret $8", "\xf2\xc2\x08\x00", BY_RETURNS),
	INSN("retw", "\x66\xc3", OUT_OF_LINE),
	INSN("retw $8", "\x66\xc2\x08\x00", OUT_OF_LINE),
	INSN("rep rep ret", "\xf3\xf3\xc3", BY_SOME),
#ifdef __x86_64__
	INSN("rex.W ret", "\x48\xc3", BY_SOME),
#endif
};

TEST(returns_of_all_kinds)
{
	check_insns(_metadata, rets, ARRAY_SIZE(rets));
}

TEST(flags_stay)
{
	struct setup setup = usual();

	setup.name = "all flags";
	setup.flags = ALL_FLAGS;
	EXPECT_TRUE(same(&nops[6], &setup, 1, false));
	EXPECT_TRUE(same(&rets[0], &setup, 1, false));
	setup.name = "a carry";
	setup.flags = FLAGS | CF;
	EXPECT_TRUE(same(&rets[0], &setup, 1, false));
}

/*
 * To processors, the bytes released are a number without a sign. To QEMU 7.2,
 * they have one, so that it is no witness.
 */
TEST(returns_that_release_much)
{
	const struct setup setup = usual();
	unsigned char code[] = { 0xc2, 0, 0 };
	const unsigned int sizes[] = { 0x8000, 0xfff8, 0xffff };
	struct outcome bare, probed;
	struct counts counts;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		code[1] = sizes[i] & 0xff;
		code[2] = sizes[i] >> 8;
		ASSERT_TRUE(place(code, sizeof(code), INSN_AT));
		ASSERT_TRUE(run(&setup, &bare, NULL));
		ASSERT_TRUE(run(&setup, &probed, &counts));
		EXPECT_EQ(emulates_returns ? 0 : 1, counts.steps);
		if (emulates_returns)
			SP(&bare.regs) = setup.sp + WORD + sizes[i];
		EXPECT_EQ((long)SP(&bare.regs), (long)SP(&probed.regs));
		EXPECT_EQ(0, memcmp(&bare, &probed, sizeof(bare)));
	}
}

/*
 * Their opcodes are those of a jump, nop, return, call or popf, but for a prefix. The
 * base gets the last ones right.
 */
static const struct insn others[] = {
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
	INSN("xchg %r8d,%eax", "\x41\x90", MISREAD),
	INSN("xchg %r8,%rax", "\x49\x90", MISREAD),
	INSN("xchg %r8w,%ax", "\x66\x41\x90", MISREAD),
	INSN("rex nop", "\x48\x90", BY_BASE),
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

TEST(instructions_that_look_like_others)
{
	const bool guarded = !access("/sys/module/uprobes_emulate", F_OK);
	const bool avx = __builtin_cpu_supports("avx") && __builtin_cpu_supports("fma");
	const struct setup setup = usual();
	size_t i;

	if (!emulates)
		SKIP(return, "the base takes them for others");
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		const bool refused = guarded && others[i].handling == MISREAD;

		if (refused || avx || others[i].name[0] != 'v')
			EXPECT_TRUE(refused ? is_refused(&others[i]) :
					      same(&others[i], &setup, 1, false));
	}
	if (!avx)
		SKIP(return, "no AVX");
}

/* A situation in which a return is emulated, or left to the processor. */
struct situation {
	struct setup setup;
	bool step;
};

static struct situation stack_at(const char *name, unsigned long sp, bool step)
{
	struct situation situation = { usual(), step };

	situation.setup.name = name;
	situation.setup.sp = sp;
	return situation;
}

static struct situation return_to(const char *name, unsigned long target, bool step)
{
	struct situation situation = { usual(), step };

	situation.setup.name = name;
	situation.setup.words[0] = target;
	return situation;
}

static void check_situations(struct __test_metadata *const _metadata,
			     const struct situation *situations, size_t nr)
{
	const struct insn *const ret = &rets[0], *const ret_8 = &rets[4];
	size_t i;

	for (i = 0; i < nr; i++) {
		EXPECT_TRUE(same(ret, &situations[i].setup, 1, situations[i].step));
		EXPECT_TRUE(same(ret_8, &situations[i].setup, 1, situations[i].step));
	}
}

TEST(returns_from_any_stack)
{
	const unsigned long end = (uintptr_t)stack + 2 * PAGE;
	const struct situation situations[] = {
		stack_at("last word of a page", end - WORD, false),
		stack_at("word over two pages", (uintptr_t)stack + PAGE - 2, false),
		stack_at("word at an odd address", (uintptr_t)stack + 1, false),
		stack_at("word half behind the stack", end - WORD / 2, true),
		stack_at("behind the stack", end, true),
		stack_at("before the stack", (uintptr_t)arena, true),
		stack_at("behind the end of a file", (uintptr_t)no_file, true),
		stack_at("no stack", 0, true),
		stack_at("the last address", -1ul, true),
		stack_at("the last word", -WORD, true),
#ifdef __x86_64__
		stack_at("the kernel's", 0xffff888000000000, true),
		stack_at("behind four levels", 0x800000000000, true),
		stack_at("not canonical at all", 0x1234567812345678, true),
		stack_at("end of four levels", 0x7ffffffff000, true),
#endif
	};

	check_situations(_metadata, situations, ARRAY_SIZE(situations));
}

/* Whoever emulates a return may read the page, or leave that to the processor. */
TEST(returns_from_a_page_that_is_not_present)
{
	struct setup setup = usual();
	int64_t steps;

	setup.name = "not present";
	setup.sp = (uintptr_t)absent;
	EXPECT_TRUE(same_outcome(&rets[0], &setup, 1, &steps));
	EXPECT_TRUE(same_outcome(&rets[4], &setup, 1, &steps));
}

TEST(returns_to_anywhere)
{
#ifdef __x86_64__
	/* Only then has user space anything at an address of more than 47 bits. */
	const bool five_levels = (uintptr_t)mmap((void *)(1ul << 50), PAGE, PROT_NONE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) >> 47;
#endif
	const struct situation situations[] = {
		return_to("a page that cannot be executed", (uintptr_t)stack, false),
		return_to("a page that cannot be read", (uintptr_t)arena, false),
		return_to("nowhere", 0, false),
#ifdef __x86_64__
		return_to("the kernel", 0xffffffff81000000, true),
		return_to("the last address", -1ul, true),
		return_to("the vsyscall page", 0xffffffffff600400, true),
		return_to("behind four levels", 0x800000000000, !five_levels),
		return_to("not canonical below the kernel", 0xffff7fffffffffff, true),
		return_to("not canonical at all", 0x1234567812345678, true),
		return_to("end of four levels", 0x7ffffffff000, !five_levels),
		return_to("not mapped", 0x7fffffffdfff, false),
#else
		return_to("the last address", -1ul, false),
		return_to("the vdso's first edition", 0xffffe000, false),
#endif
	};

	check_situations(_metadata, situations, ARRAY_SIZE(situations));
}

#ifndef __x86_64__
/* The first two segments of the process's own table, for its level. */
#define FIRST_SEGMENT	0x07
#define SECOND_SEGMENT	0x0f

static bool set_segment(unsigned int number, unsigned long base, bool is_code)
{
	struct user_desc segment = {
		.entry_number = number, .base_addr = base, .limit = 0xfffff,
		.limit_in_pages = 1, .contents = is_code ? MODIFY_LDT_CONTENTS_CODE :
							   MODIFY_LDT_CONTENTS_DATA,
		.seg_32bit = !is_code, .useable = 1,
	};

	return !syscall(SYS_modify_ldt, 1, &segment, sizeof(segment));
}

TEST(returns_in_segments_of_its_own)
{
	struct setup setup = usual();

	/* CONFIG_X86_16BIT */
	if (set_segment(0, 0, true)) {
		setup.name = "16-bit code";
		setup.cs = FIRST_SEGMENT;
		EXPECT_TRUE(same(&rets[0], &setup, 1, true));
	} else {
		EXPECT_EQ(EINVAL, errno);
	}

	ASSERT_TRUE(set_segment(1, 2 * WORD, false));
	setup = usual();
	setup.name = "stack with a base";
	setup.ss = SECOND_SEGMENT;
	setup.words[0] = 0;
	setup.words[2] = landing();
	EXPECT_TRUE(same(&rets[0], &setup, 1, true));
}
#endif

/* Onto itself, twice, and then on. */
TEST(returns_to_a_probed_address)
{
	const unsigned long insn = (uintptr_t)text + INSN_AT;
	struct setup setup = usual();

	setup.name = "to itself";
	setup.words[0] = insn;
	setup.words[1] = insn;
	setup.words[2] = landing();
	EXPECT_TRUE(same(&rets[0], &setup, 3, false));
}

/* QEMU does not check the alignment; processors do. */
TEST(returns_with_alignment_check)
{
	struct setup setup = usual();

	setup.name = "aligned";
	setup.flags = FLAGS | AC;
	EXPECT_TRUE(same(&rets[0], &setup, 1, true));
	setup.name = "not aligned";
	setup.sp++;
	EXPECT_TRUE(same(&rets[0], &setup, 1, true));
}

/*
 * Where there is a breakpoint, it has to be hit in user mode. This one is not hit, since
 * QEMU 7.2 does not get over one that is.
 */
TEST(returns_under_a_breakpoint)
{
	struct setup setup = usual();

	setup.name = "watched";
	setup.watched = true;
	EXPECT_TRUE(same(&rets[0], &setup, 1, true));
	EXPECT_TRUE(same(&nops[6], &setup, 1, false));
}

/* A program that has set TF is stopped behind the instruction. */
TEST(trap_flag)
{
	const struct insn *const insns[] = { &nops[0], &nops[6], &rets[0], &rets[4] };
	struct outcome bare, probed;
	struct setup setup = usual();
	struct counts counts;
	size_t i;

	setup.name = "TF";
	setup.flags = FLAGS | TF;
	for (i = 0; i < ARRAY_SIZE(insns); i++) {
		ASSERT_TRUE(place(insns[i]->code, insns[i]->length, INSN_AT));
		ASSERT_TRUE(run(&setup, &bare, NULL));
		ASSERT_TRUE(run(&setup, &probed, &counts));
		EXPECT_EQ(SIGTRAP, bare.signal);
		EXPECT_EQ(SIGTRAP, probed.signal);
		EXPECT_EQ(1, counts.hits);
		EXPECT_EQ(0, memcmp(&bare.regs, &probed.regs, sizeof(bare.regs)));
	}
}

#define STEPS_MAX	16

/* Where a debugger sees the program that steps to its first other signal. */
static int step_through(struct __test_metadata *const _metadata, bool probed,
			struct user_regs_struct regs[STEPS_MAX])
{
	const unsigned int probes[] = { ENDBR_AT, NOP5_AT, MOV_AT, RET_AT };
	const struct setup setup = usual();
	int events[ARRAY_SIZE(probes)], status, nr = 0;
	size_t i;
	pid_t pid;

	fill_stack(&setup);
	pid = stopped_child();
	ASSERT_LT(0, pid);
	for (i = 0; probed && i < ARRAY_SIZE(probes); i++) {
		events[i] = open_uprobe(pid, code_fd, probes[i], 0);
		ASSERT_LE(0, events[i]);
	}
	ASSERT_TRUE(set_registers(pid, &setup, (uintptr_t)text));
	do {
		ASSERT_EQ(0, ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSTOPPED(status));
		ASSERT_EQ(0, ptrace(PTRACE_GETREGS, pid, NULL, &regs[nr]));
	} while (WSTOPSIG(status) == SIGTRAP && ++nr < STEPS_MAX);
	for (i = 0; probed && i < ARRAY_SIZE(probes); i++) {
		EXPECT_EQ(1, count(events[i]));
		close(events[i]);
	}
	end_child(pid);
	return nr;
}

TEST(debugger_steps_over_it)
{
	struct user_regs_struct bare[STEPS_MAX] = {}, probed[STEPS_MAX] = {};
	int i, nr;

	ASSERT_TRUE(place(NEXT_FUNCTION, sizeof(NEXT_FUNCTION) - 1, 0));
	nr = step_through(_metadata, false, bare);
	EXPECT_EQ(nr, step_through(_metadata, true, probed));
	EXPECT_LE(4, nr);
	for (i = 0; i < nr; i++)
		EXPECT_EQ((long)IP(&bare[i]), (long)IP(&probed[i]));
	EXPECT_EQ(0, memcmp(bare, probed, sizeof(bare)));
}

/* What follows calls the function in this program. */
FIXTURE(function)
{
	long (*next)(long number);
	int endbr, nop5, ret;
	int64_t steps_before;
};

FIXTURE_SETUP(function)
{
	ASSERT_TRUE(place(NEXT_FUNCTION, sizeof(NEXT_FUNCTION) - 1, 0));
	self->next = (void *)text;
	self->endbr = open_uprobe(0, code_fd, ENDBR_AT, 0);
	self->nop5 = open_uprobe(0, code_fd, NOP5_AT, 0);
	self->ret = open_uprobe(0, code_fd, RET_AT, 0);
	self->steps_before = count_calls(&steps);
	ASSERT_LE(0, self->endbr);
	ASSERT_LE(0, self->nop5);
	ASSERT_LE(0, self->ret);
}

FIXTURE_TEARDOWN(function)
{
	close(self->endbr);
	close(self->nop5);
	close(self->ret);
}

/* How many of a call's instructions are executed out of line. */
static int steps_of_call(void)
{
	return (emulates ? 0 : 2) + (emulates_returns ? 0 : 1);
}

static bool next_counts(long (*next)(long number), long calls)
{
	long i;

	for (i = 0; i < calls; i++)
		if (next(i) != i + 1)
			return false;
	return true;
}

TEST_F(function, calls_are_counted)
{
	EXPECT_TRUE(next_counts(self->next, 100));
	EXPECT_EQ(100, count(self->endbr));
	EXPECT_EQ(100, count(self->nop5));
	EXPECT_EQ(100, count(self->ret));
	EXPECT_EQ(100 * steps_of_call(), count_calls(&steps) - self->steps_before);
}

TEST_F(function, return_probe_on_top)
{
	const int returns = open_uprobe(0, code_fd, ENDBR_AT, RETPROBE);

	ASSERT_LE(0, returns);
	EXPECT_TRUE(next_counts(self->next, 100));
	EXPECT_EQ(100, count(returns));
	EXPECT_EQ(100, count(self->ret));
	EXPECT_EQ(100 * steps_of_call(), count_calls(&steps) - self->steps_before);
	close(returns);
	EXPECT_TRUE(next_counts(self->next, 100));
	EXPECT_EQ(200, count(self->ret));
}

/* The kernel changes the address on the stack before the return takes it. */
TEST_F(function, return_probe_on_a_return)
{
	const int returns = open_uprobe(0, code_fd, RET_AT, RETPROBE);

	ASSERT_LE(0, returns);
	EXPECT_TRUE(next_counts(self->next, 100));
	EXPECT_EQ(100, count(returns));
	EXPECT_EQ(100, count(self->ret));
	close(returns);
}

/*
 * A child has the breakpoints of its parent, until it hits them and nobody wants to know.
 * It counts nothing.
 */
TEST_F(function, child)
{
	pid_t pid;

	EXPECT_TRUE(next_counts(self->next, 10));
	pid = fork();
	if (!pid)
		_exit(!next_counts(self->next, 10));
	EXPECT_TRUE(ends_well(pid));
	EXPECT_EQ(10, count(self->ret));
	EXPECT_TRUE(next_counts(self->next, 10));
	EXPECT_EQ(20, count(self->ret));
}

static int call_as_child(void *next)
{
	return !next_counts((long (*)(long))next, 10);
}

TEST_F(function, child_in_the_same_memory)
{
	char *child_stack = malloc(64 << 10);

	ASSERT_FALSE(!child_stack);
	EXPECT_TRUE(ends_well(clone(call_as_child, child_stack + (64 << 10),
				    CLONE_VM | CLONE_VFORK | SIGCHLD,
				    (void *)self->next)));
	EXPECT_TRUE(next_counts(self->next, 10));
	EXPECT_EQ(10, count(self->ret));
	free(child_stack);
}

TEST_F(function, child_executes_a_program)
{
	pid_t pid = fork();

	if (!pid) {
		if (next_counts(self->next, 10))
			execl("/bin/true", "true", NULL);
		_exit(1);
	}
	EXPECT_TRUE(ends_well(pid));
	EXPECT_EQ(0, count(self->ret));
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
		ASSERT_TRUE(next_counts(self->next, 100));
	ASSERT_EQ(0, setitimer(ITIMER_VIRTUAL, &never, NULL));
	EXPECT_LE(20, atomic_load(&nr_signals));
	EXPECT_EQ(0, atomic_load(&nr_strays));
	EXPECT_EQ(calls, count(self->endbr));
	EXPECT_EQ(calls, count(self->ret));
}

#define NR_THREADS	8

static atomic_bool stop_threads;

static void *call_until_stopped(void *next)
{
	long calls = 0;

	while (!stop_threads) {
		if (!next_counts((long (*)(long))next, 10))
			return NULL;
		calls += 10;
	}
	return (void *)(calls + 1);
}

TEST_F_TIMEOUT(function, uprobes_come_and_go_under_threads, 300)
{
	pthread_t threads[NR_THREADS];
	int i, event, hits = 0;
	void *calls;

	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, call_until_stopped,
					    (void *)self->next));
	close(self->endbr);
	close(self->nop5);
	close(self->ret);
	for (i = 0; i < 60; i++) {
		event = open_uprobe(0, code_fd, i % 3 == 0 ? ENDBR_AT :
				    i % 3 == 1 ? NOP5_AT : RET_AT, 0);
		ASSERT_LE(0, event);
		ASSERT_TRUE(next_counts(self->next, 10));
		hits += count(event) == 10;
		close(event);
	}
	EXPECT_EQ(60, hits);
	stop_threads = true;
	for (i = 0; i < NR_THREADS; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &calls));
		EXPECT_LT(1, (long)calls);
	}
}

TEST_HARNESS_MAIN
