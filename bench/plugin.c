// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts executed instructions of a kernel of x86-64 or arm64: atomic
 * ones, which lock the bus or store exclusively; and LFENCE or, on arm64, those that flush
 * a line of a cache. Of NR_MARKED runs between marks, it writes a line with both counts of
 * the run that has the least.
 *
 *	qemu-system-x86_64 -plugin ./plugin.so,out=FILE …
 *
 * No Debian package has qemu-plugin.h, so the part of the interface that is used
 * here is declared here: version 1, as documented in QEMU 7.2's
 * docs/devel/tcg-plugins.rst.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
		void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
		void (*cb)(unsigned int vcpu, void *data),
		enum qemu_plugin_cb_flags flags, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t nr);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* The marks of cost.c: a form of an instruction that no compiler emits, and a hint. */
static const unsigned char x86_mark[] = { 0x66, 0x66, 0x66, 0x66, 0x87, 0xdb };
#define ARM64_MARK	0xd5032fff

static const unsigned char x86_lfence[] = { 0x0f, 0xae, 0xe8 };

/* The prefixes of x86-64 but for REX. */
#define LOCK		0xf0
#define PREFIXES	"\xf0\xf2\xf3\x26\x2e\x36\x3e\x64\x65\x66\x67"

static bool counting, is_arm64;
static FILE *out;
static struct counts {
	unsigned long atomics, fences;
} counts, least;

static void at_mark(unsigned int vcpu, void *data)
{
	static unsigned int runs;

	counting = !counting;
	if (counting) {
		counts = (struct counts){};
		return;
	}
	/* A timer interrupt makes it more. */
	if (!runs || counts.atomics < least.atomics)
		least = counts;
	runs = (runs + 1) % NR_MARKED;
	if (!runs)
		fprintf(out, "%lu\t%lu\n", least.atomics, least.fences);
}

static void add_one(unsigned int vcpu, void *counter)
{
	++*(unsigned long *)counter;
}

static bool is(const struct qemu_plugin_insn *insn, const unsigned char *code, size_t size)
{
	return qemu_plugin_insn_size(insn) == size &&
	       !memcmp(qemu_plugin_insn_data(insn), code, size);
}

static uint32_t arm64_code(const struct qemu_plugin_insn *insn)
{
	uint32_t code;

	memcpy(&code, qemu_plugin_insn_data(insn), sizeof(code));
	return code;
}

/* stxr; cas; ldadd, swp and their like */
static bool is_arm64_atomic(uint32_t code)
{
	return (code & 0x3fe00000) == 0x08000000 || (code & 0x3fa07c00) == 0x08a07c00 ||
	       (code & 0x3b200c00) == 0x38200000;
}

/* An XCHG with memory needs no LOCK. */
static bool is_x86_atomic(const unsigned char *code)
{
	const size_t prefixes = strspn((const char *)code, PREFIXES);
	const bool locked = memchr(code, LOCK, prefixes);

	code += prefixes;
	if ((*code & 0xf0) == 0x40)	/* REX */
		code++;
	return locked || ((*code | 1) == 0x87 && code[1] < 0xc0);
}

static bool is_atomic(const struct qemu_plugin_insn *insn)
{
	return is_arm64 ? is_arm64_atomic(arm64_code(insn)) :
			  is_x86_atomic(qemu_plugin_insn_data(insn));
}

/* Of arm64: dc cvau; ic ivau */
static bool is_fence(const struct qemu_plugin_insn *insn)
{
	uint32_t code;

	if (!is_arm64)
		return is(insn, x86_lfence, sizeof(x86_lfence));
	code = arm64_code(insn) & ~0x1fU;
	return code == 0xd50b7b20 || code == 0xd50b7520;
}

static bool is_mark(const struct qemu_plugin_insn *insn)
{
	return is_arm64 ? arm64_code(insn) == ARM64_MARK :
			  is(insn, x86_mark, sizeof(x86_mark));
}

/* The counter of an instruction, or NULL. The kernel has the upper half of the addresses. */
static unsigned long *counter_of(const struct qemu_plugin_insn *insn)
{
	if (!(qemu_plugin_insn_vaddr(insn) >> 63))
		return NULL;
	if (is_atomic(insn))
		return &counts.atomics;
	return is_fence(insn) ? &counts.fences : NULL;
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t insns = qemu_plugin_tb_n_insns(tb);
	size_t i;

	for (i = 0; i < insns; i++) {
		struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
		unsigned long *const counter = counter_of(insn);

		if (is_mark(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, at_mark,
					QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (counter)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, add_one,
					QEMU_PLUGIN_CB_NO_REGS, counter);
	}
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const char *const *info, int argc,
			char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fputs("plugin: give out=FILE\n", stderr);
		return -1;
	}
	is_arm64 = !strcmp(info[0], "aarch64");	/* the member target_name */
	out = fopen(argv[0] + 4, "w");
	if (!out)
		abort();
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
	return 0;
}
