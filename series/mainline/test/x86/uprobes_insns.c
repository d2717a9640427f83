// SPDX-License-Identifier: GPL-2.0
/*
 * Test that a uprobe on an instruction does not change what it does: one with a VEX
 * prefix, whose opcode is that of another instruction without it, given below; pushf;
 * and one with a REX2 prefix, which cannot have a uprobe.
 */
#define _GNU_SOURCE
#include <asm/processor-flags.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "kselftest_harness.h"

struct vectors {
	uint8_t a[16], b[16];
};

typedef void (*function)(struct vectors *vectors);

/*
 * A function that loads both vectors, has the instruction, and stores them. What follows
 * the instruction is longer than a slot, to which the kernel copies it: so a task that
 * goes on in the slot does not come back.
 */
#ifdef __x86_64__
# define ENTER	"endbr64\n"
# define V	"%rdi"
# define POP	"pop %rax\n"
#else
# define ENTER	"endbr32\n mov 4(%esp), %ecx\n"
# define V	"%ecx"
# define POP	"pop %eax\n"
#endif

#define PROBED(name, insn)						\
extern const uint8_t name##_insn[];					\
void name(struct vectors *vectors);					\
asm(".pushsection .text\n"						\
	".globl " #name "\n" #name ":\n" ENTER				\
	"movdqu (" V "), %xmm0\n movdqu 16(" V "), %xmm1\n"		\
	#name "_insn: " insn "\n .skip 128, 0x90\n"			\
	"movdqu %xmm0, (" V ")\n movdqu %xmm1, 16(" V ")\n ret\n"	\
	".popsection\n")

PROBED(vpor, "vpor %xmm1, %xmm0, %xmm0");
PROBED(vpcmpeqb, "vpcmpeqb %xmm1, %xmm0, %xmm0");
PROBED(vpshufd, "vpshufd $0x1b, %xmm1, %xmm0");
PROBED(vpsubsb, "vpsubsb %xmm1, %xmm0, %xmm0");
PROBED(vpsubsw, "vpsubsw %xmm1, %xmm0, %xmm0");
PROBED(vcmpps, "vcmpps $0, %xmm1, %xmm0, %xmm0");
PROBED(vptest, "vptest %xmm0, %xmm1\n setnc (" V ")\n movdqu (" V "), %xmm0");

extern const uint8_t pushf_insn[];
unsigned long read_flags(void);
asm(".pushsection .text\n"
	"read_flags: pushf_insn: pushf\n .skip 128, 0x90\n" POP " ret\n"
	".popsection\n");

#ifdef __x86_64__
const uint8_t pattern[16] = "relative to rip";
PROBED(vpor_rip, "vpor pattern(%rip), %xmm0, %xmm0");

/* pcmpeqb %mm1, %mm0; without the prefix, 0x74 is je. */
extern const uint8_t rex2_insn[];
asm(".pushsection .text\n"
	"rex2_insn: .byte 0xd5, 0x80, 0x74, 0xc1\n"
	".popsection\n");
#endif

/* Open a uprobe that counts its hits. Returns a file descriptor, or -errno. */
static int open_uprobe(const void *insn)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	unsigned long start, end, offset;
	char line[512], path[256];
	FILE *file;
	int fd = -ENOENT;

	file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	if (!file)
		return -ENOENT;
	if (fscanf(file, "%u", &attr.type) != 1)
		attr.type = 0;
	fclose(file);

	file = fopen("/proc/self/maps", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %255s", &start, &end,
			   &offset, path) != 4 ||
		    (unsigned long)insn < start || (unsigned long)insn >= end)
			continue;
		attr.uprobe_path = (unsigned long)path;
		attr.probe_offset = (unsigned long)insn - start + offset;
		fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
		if (fd < 0)
			fd = -errno;
		break;
	}
	if (file)
		fclose(file);
	return fd;
}

#define NO_UPROBES	"no uprobes: root and CONFIG_UPROBE_EVENTS"

static bool no_uprobes(int error)
{
	return error == -ENOENT || error == -EACCES || error == -EPERM;
}

FIXTURE(insn) {};

FIXTURE_VARIANT(insn) {
	function run;
	const uint8_t *insn;
};

FIXTURE_VARIANT_ADD(insn, vpor_is_not_jmp) { vpor, vpor_insn };
FIXTURE_VARIANT_ADD(insn, vpcmpeqb_is_not_je) { vpcmpeqb, vpcmpeqb_insn };
FIXTURE_VARIANT_ADD(insn, vpshufd_is_not_jo) { vpshufd, vpshufd_insn };
FIXTURE_VARIANT_ADD(insn, vpsubsb_is_not_call) { vpsubsb, vpsubsb_insn };
FIXTURE_VARIANT_ADD(insn, vpsubsw_is_not_jmp) { vpsubsw, vpsubsw_insn };
FIXTURE_VARIANT_ADD(insn, vcmpps_is_not_ret) { vcmpps, vcmpps_insn };
FIXTURE_VARIANT_ADD(insn, vptest_is_not_pop_ss) { vptest, vptest_insn };

#ifdef __x86_64__
FIXTURE_VARIANT_ADD(insn, vpor_relative_to_rip_is_not_jmp) { vpor_rip, vpor_rip_insn };
#endif

FIXTURE_SETUP(insn) {}
FIXTURE_TEARDOWN(insn) {}

TEST_F(insn, same_result_under_a_uprobe)
{
	struct vectors want, have;
	uint64_t hits = 0;
	int i, uprobe;

	if (!__builtin_cpu_supports("avx"))
		SKIP(return, "no AVX");
	for (i = 0; i < 16; i++) {
		want.a[i] = i * 0x11;
		want.b[i] = i % 4 ? 0xf0 - i : i * 0x11;
	}
	have = want;
	variant->run(&want);
	ASSERT_NE(0, memcmp(&want, &have, sizeof(want)))
		TH_LOG("the instruction does nothing");

	uprobe = open_uprobe(variant->insn);
	if (no_uprobes(uprobe))
		SKIP(return, NO_UPROBES);
	ASSERT_LE(0, uprobe);
	variant->run(&have);
	ASSERT_EQ(sizeof(hits), read(uprobe, &hits, sizeof(hits)));
	EXPECT_EQ(1, hits);
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(want.a[i], have.a[i]);
		ASSERT_EQ(want.b[i], have.b[i]);
	}
	close(uprobe);
}

TEST(pushf_pushes_no_trap_flag)
{
	const int uprobe = open_uprobe(pushf_insn);
	uint64_t hits = 0;

	if (no_uprobes(uprobe))
		SKIP(return, NO_UPROBES);
	ASSERT_LE(0, uprobe);
	EXPECT_EQ(0, read_flags() & X86_EFLAGS_TF);
	ASSERT_EQ(sizeof(hits), read(uprobe, &hits, sizeof(hits)));
	EXPECT_EQ(1, hits);
	close(uprobe);
}

#ifdef __x86_64__
TEST(rex2_is_refused)
{
	const int uprobe = open_uprobe(rex2_insn);

	if (no_uprobes(uprobe))
		SKIP(return, NO_UPROBES);
	EXPECT_EQ(-524, uprobe);	/* -ENOTSUPP */
	close(uprobe);
}
#endif

TEST_HARNESS_MAIN
