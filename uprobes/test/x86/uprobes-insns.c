// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a program does the same with a uprobe on an instruction as without: same
 * registers, flags and stack, same signal; and that the kernel does what it should to get
 * there: emulate the instruction, execute it out of line, or refuse the uprobe.
 *
 * The truth is what the processor does with the same instruction where there is no
 * uprobe. The verdicts are in the tables below.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "../kselftest_harness.h"
#include "uprobes.h"

#ifdef __x86_64__
#define IP(regs)	((regs)->rip)
#define SP(regs)	((regs)->rsp)
#define DI(regs)	((regs)->rdi)
#define FIP(fpregs)	((fpregs)->rip)
#define ORIG_AX(regs)	((regs)->orig_rax)
#define NOT_GENERAL	orig_rax	/* The general registers come first, up to it. */
#define GETFPREGS	PTRACE_GETFPREGS
#define SETFPREGS	PTRACE_SETFPREGS
#else
#define IP(regs)	((regs)->eip)
#define SP(regs)	((regs)->esp)
#define DI(regs)	((regs)->edi)
#define FIP(fpregs)	((fpregs)->fip)
#define ORIG_AX(regs)	((regs)->orig_eax)
#define NOT_GENERAL	xds
#define user_fpregs_struct user_fpxregs_struct
#define GETFPREGS	PTRACE_GETFPXREGS
#define SETFPREGS	PTRACE_SETFPXREGS
#endif

#define IN_64_BITS	(sizeof(long) == 8)
#define STACK_SIZE	4096
#define FLAGS		0xed7	/* IF, and CF, PF, AF, ZF, SF, DF and OF */
#define TF		0x100
#define RF		0x10000

/* Of the kernel, not of the C library. */
#define ENOTSUPP	524

/* What the kernel should do with an instruction. */
enum verdict {
	STEPPED = '.',	/* execute it out of line */
	IN_KERNEL = 'e',	/* emulate it */
	REFUSED = 'r',
	NO_INSN = '-',	/* a prefix, or the start of a longer opcode */
};

/* How the program is when it has been stopped. */
struct outcome {
	struct user_regs_struct regs;
	struct user_fpregs_struct fpregs;
	int signal;
	int code;
	uintptr_t addr;
	unsigned char stack[STACK_SIZE];
};

/* The program: a child that executes nothing but what is in @text, from where it is told. */
static pid_t child;
static unsigned char *text;
static unsigned char *stack;	/* of the child, shared with it */
static struct user_regs_struct initial;
static struct user_fpregs_struct initial_fpregs;
static struct calls steps;	/* out of line */

static int code_fd = -1;

/* Have it be stopped before it has done anything. */
static bool start_child(void)
{
	int status;

	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
	       !ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL) &&
	       !ptrace(PTRACE_GETREGS, child, NULL, &initial) &&
	       !ptrace(GETFPREGS, child, NULL, &initial_fpregs);
}

static void end_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Map code where a child will execute it. The instruction is the first, if it is short. */
static bool place(const void *code, size_t size)
{
	close(code_fd);
	code_fd = make_code(code, size, 0);
	return code_fd >= 0 && map_code(text, code_fd) == text;
}

/* A value of its own in each register; the child has its instruction executed. */
static bool run(unsigned long at, unsigned long flags, enum __ptrace_request request,
		struct outcome *outcome)
{
	const size_t nr = offsetof(struct user_regs_struct, NOT_GENERAL) / sizeof(long);
	struct user_fpregs_struct fpregs = initial_fpregs;
	struct user_regs_struct regs = initial;
	siginfo_t info = {};
	int status;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fpregs.xmm_space); i++)
		fpregs.xmm_space[i] = i * 0x01010101;
	for (i = 0; i < nr; i++)
		((unsigned long *)&regs)[i] = (i + 1) * 0x01010101;
	for (i = 0; i < STACK_SIZE; i++)
		stack[i] = i * 7;
	ORIG_AX(&regs) = -1;
	regs.eflags = flags;
	IP(&regs) = (uintptr_t)text + at;
	SP(&regs) = (uintptr_t)stack + STACK_SIZE / 2;
	DI(&regs) = SP(&regs) + 64;

	memset(outcome, 0, sizeof(*outcome));
	if (ptrace(PTRACE_SETREGS, child, NULL, &regs) ||
	    ptrace(SETFPREGS, child, NULL, &fpregs) ||
	    ptrace(request, child, NULL, NULL) ||
	    waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, child, NULL, &outcome->regs) ||
	    ptrace(GETFPREGS, child, NULL, &outcome->fpregs) ||
	    ptrace(PTRACE_GETSIGINFO, child, NULL, &info))
		return false;
	/* The last instruction of the FPU was executed in a slot, and stays there. */
	FIP(&outcome->fpregs) = 0;
	/* No program can read it. QEMU has it set at an int3 behind a page fault. */
	outcome->regs.eflags &= ~RF;
	outcome->signal = info.si_signo;
	outcome->code = info.si_code;
	outcome->addr = (uintptr_t)info.si_addr;
	memcpy(outcome->stack, stack, STACK_SIZE);
	return true;
}

static void print_outcome(const char *name, const struct outcome *outcome)
{
	ksft_print_msg("%s: signal %d, code %d, address %#lx, ip %#lx, sp %#lx, flags %#lx\n",
		       name, outcome->signal, outcome->code, (long)outcome->addr,
		       (long)IP(&outcome->regs), (long)SP(&outcome->regs),
		       (long)outcome->regs.eflags);
}

static void print_insn(const unsigned char *insn)
{
	ksft_print_msg("of %02x %02x %02x %02x %02x %02x %02x %02x:\n", insn[0], insn[1],
		       insn[2], insn[3], insn[4], insn[5], insn[6], insn[7]);
}

static bool is_same(const struct outcome *bare, const struct outcome *probed, bool stepped)
{
	/* The SIGTRAP of a step out of line, or of an emulated one, has another code. */
	if (stepped)
		return bare->signal == SIGTRAP && probed->signal == SIGTRAP &&
		       !memcmp(&bare->regs, &probed->regs, sizeof(bare->regs));
	return !memcmp(bare, probed, sizeof(*bare));
}

/* The live module does not rewrite AVX instructions that are relative to the ip. */
static bool module_refuses(const unsigned char *insn, enum verdict verdict)
{
	const bool is_avx = insn[0] == 0xc4 || insn[0] == 0xc5 || insn[0] == 0x62;
	const int opcode_at = insn[0] == 0xc5 ? 2 : insn[0] == 0xc4 ? 3 : 4;
	const bool has_modrm = insn[opcode_at] != 0x77;	/* vzeroupper */
	const bool is_relative = has_modrm && (insn[opcode_at + 1] & 0xc7) == 0x05;

	return !access("/sys/module/uprobes_fix", F_OK) &&
	       (verdict == REFUSED || (IN_64_BITS && is_avx && is_relative));
}

/* Compare a program with and without a uprobe on the instruction at @at of the code. */
static bool same_with(unsigned long at, enum verdict verdict, unsigned long flags,
		      enum __ptrace_request request)
{
	const bool stepped = request == PTRACE_SINGLESTEP || (flags & TF);
	const int expected_steps = verdict == STEPPED;
	const int64_t before = count_calls(&steps);
	const int uprobe = open_uprobe(child, code_fd, at, 0);
	struct outcome bare, probed;
	int64_t nr_hits;
	int nr_steps;
	bool done;

	if (uprobe < 0 && errno == ENOEXEC)
		return true;	/* It is none for the decoder. */
	if (uprobe < 0) {
		if ((verdict == REFUSED && errno == ENOTSUPP) ||
		    (errno == EOPNOTSUPP && module_refuses(text + at, verdict)))
			return true;
		print_insn(text + at);
		ksft_print_msg("no uprobe, verdict '%c': %s\n", verdict, strerror(errno));
		return false;
	}
	done = run(at, flags, request, &probed);
	nr_hits = count(uprobe);
	nr_steps = count_calls(&steps) - before;
	close(uprobe);
	if (!done || !run(at, flags, request, &bare))
		ksft_exit_fail_msg("the child cannot be run: %s\n", strerror(errno));
	if (verdict != REFUSED && nr_hits == 1 && nr_steps == expected_steps &&
	    is_same(&bare, &probed, stepped))
		return true;
	print_insn(text + at);
	print_outcome("without", &bare);
	print_outcome("with", &probed);
	ksft_print_msg("%d hits, %d steps, verdict '%c'\n", (int)nr_hits, nr_steps, verdict);
	return false;
}

static void __attribute__((constructor)) set_up(void)
{
	const char *const why = why_no_uprobes();

	/* Tests end without flushing what they print. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (why)
		ksft_exit_skip("%s\n", why);
	text = mmap(NULL, TEXT_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (text == MAP_FAILED || stack == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");
	if (!open_calls(&steps, "arch_uprobe_pre_xol"))
		ksft_exit_fail_msg("no kprobe\n");
}

/*
 * The verdict on each opcode of one byte. Refused are: prefixes that no program has there
 * (segments, lock); what is none in 64 bits; far calls, whose return address is not fixed
 * up; in and out, int3, int, into, int1, hlt, cli and sti, which end in a signal or enter
 * the kernel; pop to ss, after which no trap comes, and to other segments; iret.
 * pushf is emulated because it would push the TF of the step. The debug exception of popf
 * is that of the flags before it: TF is then as the program wants it.
 */
#ifdef __x86_64__
static const char verdicts[] =
	"......rr......r-"	/* 00: add, or */
	"......rr......rr"	/* 10: adc, sbb */
	"......rr......rr"	/* 20: and, sub */
	"......rr......rr"	/* 30: xor, cmp */
	"----------------"	/* 40: rex */
	"eeeeeeee........"	/* 50: push, pop */
	"rr-.----....rrrr"	/* 60: EVEX, movsxd, prefixes, push, imul, ins, outs */
	"eeeeeeeeeeeeeeee"	/* 70: jcc */
	"..r............."	/* 80: test, xchg, mov, lea, pop */
	"e.........r.e..."	/* 90: nop, xchg, cdq, fwait, pushf, popf */
	"................"	/* a0: mov, movs, cmps, test, stos, lods, scas */
	"................"	/* b0: mov */
	"....--......rrrr"	/* c0: shifts, ret, VEX, mov, enter, leave, lret */
	"....rrr........."	/* d0: shifts, xlat, x87, whose pointer is to the slot */
	"....rrrreererrrr"	/* e0: loop, jcxz, in, out, call, jmp */
	"rr--r.....rr....";	/* f0: groups 3 to 5, cld, std */
#else
static const char verdicts[] =
	".......r.......-"	/* 00 */
	".......r.......r"	/* 10 */
	"......r.......r."	/* 20 */
	"......r.......r."	/* 30 */
	"................"	/* 40 */
	"eeeeeeee........"	/* 50 */
	"..-.----....rrrr"	/* 60 */
	"eeeeeeeeeeeeeeee"	/* 70 */
	"................"	/* 80 */
	"e.........r.e..."	/* 90 */
	"................"	/* a0 */
	"................"	/* b0 */
	"....--......rrrr"	/* c0 */
	"................"	/* d0 */
	"....rrrree.errrr"	/* e0 */
	"rr--r.....rr....";	/* f0 */
#endif

/* A map of opcodes: what comes before one. */
enum map_kind {
	ONE_BYTE,
	DATA16,		/* the same, with a prefix for operands of 16 bits */
	TWO_BYTES,
	THREE_BYTES,
	AVX,
};

struct map {
	const char *prefix;
	enum map_kind kind;
};

/* Are its operations told apart by a field of the byte that follows? */
static bool is_group(enum map_kind kind, int opcode)
{
	static const char *const groups[] = {
		[ONE_BYTE] = ("\x80\x81\x83\x8e\x8f\xc0\xc1\xc6\xc7\xd0\xd1\xd2\xd3\xd8\xd9"
			      "\xda\xdb\xdc\xdd\xde\xdf\xf6\xf7\xfe\xff"),
		[DATA16] = "\xff",
		[TWO_BYTES] = "\x01\x18\x1e\x1f\x71\x72\x73\xae\xba\xc7",
		[THREE_BYTES] = "",
		[AVX] = "\x71\x72\x73\xae\xf3",
	};

	return opcode ? !!strchr(groups[kind], opcode) : kind == TWO_BYTES;
}

/* Of an opcode of two bytes; those that are privileged, or none, end in the same signal. */
static enum verdict verdict_on_0f(int opcode, int modrm)
{
	const int reg = modrm >> 3 & 7;

	switch (opcode) {
	case 0x00:	/* sldt, str: emulated by the kernel, with UMIP */
		return reg <= 1 ? REFUSED : STEPPED;
	case 0x01:	/* sgdt, sidt, smsw; enclu */
		return reg == 4 || modrm == 0xd7 || (modrm < 0xc0 && reg <= 1) ? REFUSED : STEPPED;
	case 0x05:	/* syscall */
	case 0x34:	/* sysenter */
		return REFUSED;
	case 0x80 ... 0x8f:
		return IN_KERNEL;
	case 0x38:
	case 0x3a:
		return NO_INSN;
	/* Their results are never the same: rdtsc, rdtscp, rdrand, rdseed, rdpid */
	case 0x31:
		return NO_INSN;
	case 0xc7:
		return modrm >= 0xc0 && reg >= 6 ? NO_INSN : STEPPED;
	default:
		return STEPPED;
	}
}

static enum verdict verdict_on(enum map_kind kind, int opcode, int modrm)
{
	const int reg = modrm >> 3 & 7;
	enum verdict verdict = verdicts[opcode];

	if (kind == AVX || kind == THREE_BYTES)
		return STEPPED;
	/*
	 * QEMU gets these wrong by itself: lret; shld and shrd relative to the ip; fnsave, which
	 * stores a pointer to the instruction before it that ptrace has reset
	 */
	if (kind == TWO_BYTES ? (opcode == 0xa4 || opcode == 0xac) && modrm < 0xc0 :
	    opcode == 0xca || opcode == 0xcb || (opcode == 0xdd && reg == 6 && modrm < 0xc0))
		return NO_INSN;
	if (kind == TWO_BYTES)
		return opcode == 0x01 && modrm == 0xf9 ? NO_INSN : verdict_on_0f(opcode, modrm);
	if (opcode == 0x8e && reg == 2)		/* mov to ss */
		return REFUSED;
	if (opcode == 0xff && reg == 3)		/* far call */
		return REFUSED;
	if (kind == ONE_BYTE || opcode == 0x90)
		return verdict;
	/* Of 16 bits, branches relative to the ip cut it, and calls push less. */
	if ((opcode >= 0xe0 && opcode <= 0xe3) || (opcode == 0xff && reg == 2))
		return REFUSED;
	if (verdict == IN_KERNEL)
		return opcode >= 0x50 && opcode <= 0x57 ? STEPPED : REFUSED;
	return verdict;
}

/* Where code has an instruction, followed by what may be an operand. */
#define CELL		32
#define NR_CELLS	(TEXT_SIZE / CELL)

struct cells {
	unsigned char code[TEXT_SIZE];
	enum verdict verdicts[NR_CELLS];
	int nr;
};

static bool cells_are_same(struct cells *cells)
{
	bool right = place(cells->code, sizeof(cells->code)) && start_child();
	int i;

	for (i = 0; i < cells->nr; i++)
		right &= same_with(i * CELL, cells->verdicts[i], FLAGS, PTRACE_CONT);
	end_child();
	memset(cells, 0, sizeof(*cells));
	return right;
}

static bool add_cell(struct cells *cells, const struct map *map, int opcode, int modrm)
{
	const enum verdict verdict = verdict_on(map->kind, opcode, modrm);
	unsigned char *cell = cells->code + cells->nr * CELL;

	if (verdict == NO_INSN)
		return true;
	memset(cell, HLT, CELL);
	memcpy(cell, map->prefix, strlen(map->prefix));
	cell += strlen(map->prefix);
	cell[0] = opcode;
	cell[1] = modrm;
	memcpy(cell + 2, "\x10\x00\x00\x00\x01\x00\x00\x00", 8);
	cells->verdicts[cells->nr++] = verdict;
	return cells->nr < NR_CELLS || cells_are_same(cells);
}

/* Each opcode of a map with registers, and with memory: relative to the ip in 64 bits. */
static bool map_is_same(const struct map *map)
{
	static struct cells cells;
	bool right = true;
	int opcode, reg;

	for (opcode = 0; opcode < 256; opcode++)
		for (reg = 0; reg < 8; reg++) {
			if (!is_group(map->kind, opcode) && reg != 3)
				continue;
			right &= add_cell(&cells, map, opcode, 0xc1 | reg << 3);
			right &= add_cell(&cells, map, opcode, 0x05 | reg << 3);
			if (map->kind == ONE_BYTE)	/* (%di), on the stack */
				right &= add_cell(&cells, map, opcode, 0x07 | reg << 3);
		}
	return right & cells_are_same(&cells);
}

static const struct map maps[] = {
	{ "", ONE_BYTE },
	{ "\x66", DATA16 },
	{ "\x0f", TWO_BYTES },
	{ "\x66\x0f\x38", THREE_BYTES },
	{ "\x66\x0f\x3a", THREE_BYTES },
	{ "\xc5\xf9", AVX },		/* of two operands */
	{ "\xc5\xe9", AVX },
	{ "\xc4\xe2\x69", AVX },
	{ "\xc4\xe3\x69", AVX },
};

FIXTURE(insns)
{
};

FIXTURE_SETUP(insns)
{
}

FIXTURE_TEARDOWN(insns)
{
}

TEST_F_TIMEOUT(insns, each_opcode_does_the_same, 3600)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(maps); i++)
		EXPECT_TRUE(map_is_same(&maps[i]))
			TH_LOG("map %d", (int)i);
}

struct insn {
	const char *code;	/* as an assembler has it */
	unsigned int length;
	enum verdict verdict;
};

#define INSN(code, verdict)	{ code, sizeof(code) - 1, verdict }

static const struct insn insns[] = {
	INSN("\xf3\x90", IN_KERNEL),			/* pause */
	INSN("\xf3\xc3", STEPPED),			/* rep ret */
	INSN("\xf3\x0f\x1e\xfa", STEPPED),		/* endbr64 */
	INSN("\x0f\x1f\x44\x00\x00", STEPPED),		/* nopl 0(%ax,%ax) */
	INSN("\x64\x0f\x1f\x00", STEPPED),		/* nopl %fs:(%ax) */
	INSN("\x2e\x0f\x1f\x00", REFUSED),		/* nopl %cs:(%ax) */
	INSN("\xf0\x01\x0f", REFUSED),			/* lock add %ecx,(%di) */
	INSN("\x64\xc5\xe9\xe8\x00", STEPPED),		/* vpsubsb %fs:(%ax),%xmm2,%xmm0 */
	INSN("\x0f\x0bxen\xeb\x02", REFUSED),		/* ud2, and no prefix of Xen's */
	INSN("\x0f\x0bkvm\xf3\xe8\x10\x00\x00\x00", REFUSED), /* nor of KVM's */
	INSN("\x0f\x0bxen\xc4\xe2\x71\x0b\x05\x10\x00\x00\x00", REFUSED),
	/* What QEMU does not have, and ends in SIGILL there. */
	INSN("\x62\xf1\x6d\x48\xe8\xc1", STEPPED),	/* vpsubsb %zmm1,%zmm2,%zmm0 */
	INSN("\x8f\xe8\x68\xce\xc1\x04", STEPPED),	/* vpcomeqd (XOP) */
#ifdef __x86_64__
	INSN("\x48\x9c", IN_KERNEL),			/* rex.W pushf */
	INSN("\x48\x90", IN_KERNEL),			/* rex.W nop */
	INSN("\x66\x66\x66\x66\x66\x89\xc8", STEPPED),	/* mov %cx,%ax */
	INSN("\x41\x90", STEPPED),			/* xchg %r8d,%eax */
	INSN("\x49\x90", STEPPED),			/* xchg %r8,%rax */
	INSN("\x66\x41\x90", STEPPED),			/* xchg %r8w,%ax */
	INSN("\x41\x57", IN_KERNEL),			/* push %r15 */
	INSN("\x48\xff\x1f", REFUSED),			/* rex.W lcall *(%rdi) */
	INSN("\x67\x8b\x05\x10\x00\x00\x00", STEPPED),	/* mov 0x10(%eip),%eax */
	INSN("\x4c\x0f\xb1\x3d\x10\x00\x00\x00", STEPPED), /* cmpxchg %r15,0x10(%rip) */
	INSN("\x8f\xe8\x68\xce\x05\x10\x00\x00\x00\x04", REFUSED), /* vpcomeqd 0x10(%rip) */
	INSN("\x48\x66\x8b\x05\x10\x00\x00\x00", REFUSED), /* rex.W mov 0x10(%rip),%ax */
	INSN("\x48\x48\x05\x10\x00\x00\x00", REFUSED),	/* rex.W rex.W add $0x10,%rax */
	INSN("\x66\x67\xf2\xf3\x64\x8b\x05\x10\x00\x00\x00", REFUSED),
	INSN("\xd5\x18\x89\xc0", REFUSED),		/* mov %rax,%r16: REX2 */
	INSN("\xd5\x18\x89\x05\x10\x00\x00\x00", REFUSED), /* mov %rax,0x10(%rip) */
	INSN("\xc5\xf8\x77\x3d\x10\x00\x00\x00", STEPPED), /* vzeroupper, cmp %eax */
#else
	INSN("\xc4\x0f", STEPPED),			/* les (%edi),%ecx */
	INSN("\x62\x0f", STEPPED),			/* bound %ecx,(%edi) */
#endif
};

/* The same in a page of its own, with other flags or a debugger. */
static bool insns_are_same(const struct insn *insns, int nr, unsigned long flags,
			   enum __ptrace_request request)
{
	unsigned char code[TEXT_SIZE];
	bool right;
	int i;

	memset(code, HLT, sizeof(code));
	for (i = 0; i < nr; i++)
		memcpy(code + i * CELL, insns[i].code, insns[i].length);
	right = place(code, sizeof(code)) && start_child();
	for (i = 0; i < nr; i++)
		right &= same_with(i * CELL, insns[i].verdict, flags, request);
	end_child();
	return right;
}

TEST_F_TIMEOUT(insns, instructions_with_prefixes_do_the_same, 300)
{
	EXPECT_TRUE(insns_are_same(insns, ARRAY_SIZE(insns), FLAGS, PTRACE_CONT));
}

/* A program that has set TF, or is stepped, is stopped behind the instruction. */
TEST_F_TIMEOUT(insns, task_that_steps_stops_behind_it, 300)
{
	static const struct insn stepped[] = {
		INSN("\x90", IN_KERNEL),			/* nop */
		INSN("\x50", IN_KERNEL),			/* push */
		INSN("\x9c", IN_KERNEL),			/* pushf, which pushes TF */
		INSN("\x89\xc0", STEPPED),		/* mov */
		INSN("\xc3", STEPPED),			/* ret */
	};

	EXPECT_TRUE(insns_are_same(stepped, ARRAY_SIZE(stepped), FLAGS | TF, PTRACE_CONT));
	EXPECT_TRUE(insns_are_same(stepped, ARRAY_SIZE(stepped), FLAGS, PTRACE_SINGLESTEP));
}

#ifdef __x86_64__
/* An operand that is relative to the ip is rewritten to one relative to a register. */
static const struct {
	const char *code;	/* of 0x10(%rip), with an X and a B that say nothing */
	const char *copy;
	int length;		/* of the copy, before 10 00 00 00 */
} relatives[] = {
	/* vpaddd 0x10(%rip),%xmm1,%xmm2: 0x10(%rsi) */
	{ "\xc5\xf1\xfe\x15", "\xc5\xf1\xfe\x96", 4 },
	{ "\xc4\xc1\x71\xfe\x15", "\xc4\xe1\x71\xfe\x96", 5 },
	/* andn 0x10(%rip),%esi,%edx: 0x10(%rdi) */
	{ "\xc4\xc2\x48\xf2\x15", "\xc4\xe2\x48\xf2\x97", 5 },
	/* vpaddd 0x10(%rip),%zmm1,%zmm2: 0x10(%rsi) */
	{ "\x62\x91\x75\x48\xfe\x15", "\x62\xf1\x75\x48\xfe\x96", 6 },
	/* pushq 0x10(%rip): 0x10(%rdi), because of the /6 of push */
	{ "\x41\xff\x35", "\x40\xff\xb7", 3 },
};

/* Where the page of the slots is, or 0. */
static unsigned long address_of_slots(void)
{
	unsigned long address = 0;
	char line[200];
	FILE *maps;

	snprintf(line, sizeof(line), "/proc/%d/maps", child);
	maps = fopen(line, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[uprobes]"))
			address = strtoul(line, NULL, 16);
	if (maps)
		fclose(maps);
	return address;
}

/* Nobody but the program itself can read the slots: it copies them to its stack. */
static bool slots_have(const void *bytes, size_t length)
{
	struct user_regs_struct regs = initial;
	int status;

	IP(&regs) = (uintptr_t)text + CELL;
	regs.rsi = address_of_slots();
	DI(&regs) = (uintptr_t)stack;
	regs.rcx = STACK_SIZE;
	return regs.rsi && !ptrace(PTRACE_SETREGS, child, NULL, &regs) &&
	       !ptrace(PTRACE_CONT, child, NULL, NULL) &&
	       waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
	       memmem(stack, STACK_SIZE, bytes, length);
}

TEST_F_TIMEOUT(insns, relative_operands_are_rewritten, 300)
{
	unsigned char code[2 * CELL], copy[16];
	struct outcome outcome;
	size_t i, length;
	int uprobe;

	for (i = 0; i < ARRAY_SIZE(relatives); i++) {
		length = relatives[i].length;
		memset(code, HLT, sizeof(code));
		memcpy(code, relatives[i].code, length);
		memcpy(code + length, "\x10\x00\x00", 4);
		memcpy(code + CELL, "\xf3\xa4", 2);	/* rep movsb */
		memcpy(copy, relatives[i].copy, length);
		memcpy(copy + length, "\x10\x00\x00", 4);

		ASSERT_TRUE(place(code, sizeof(code)));
		ASSERT_TRUE(start_child());
		uprobe = open_uprobe(child, code_fd, 0, 0);
		ASSERT_LE(0, uprobe);
		EXPECT_TRUE(run(0, FLAGS, PTRACE_CONT, &outcome));
		EXPECT_EQ(1, count(uprobe));
		EXPECT_TRUE(slots_have(copy, length + 4))
			TH_LOG("instruction %d", (int)i);
		end_child();
		close(uprobe);
	}
}
#endif

TEST_HARNESS_MAIN
