// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts executed instructions, of x86-64 and arm64: for each pair of
 * marks, it writes a line with the number of atomic ones between them, which lock the bus
 * or store exclusively, and of those that flush a line of a cache.
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
extern char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *insn);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* The marks of hits.c: a form of an instruction that no compiler emits, and a hint. */
static const unsigned char x86_mark[] = { 0x66, 0x66, 0x66, 0x66, 0x87, 0xdb };
#define ARM64_MARK	0xd5032fff

static bool counting, is_arm64;
static FILE *out;
static unsigned long atomics, flushes;

static void at_mark(unsigned int vcpu, void *data)
{
	counting = !counting;
	if (counting)
		atomics = flushes = 0;
	else
		fprintf(out, "%lu %lu\n", atomics, flushes);
}

static void add_one(unsigned int vcpu, void *counter)
{
	++*(unsigned long *)counter;
}

/* An instruction of arm64; 0, which is none, on x86. */
static uint32_t arm64_code(const struct qemu_plugin_insn *insn)
{
	uint32_t code = 0;

	if (is_arm64)
		memcpy(&code, qemu_plugin_insn_data(insn), sizeof(code));
	return code;
}

/* On arm64: stxr; cas; ldadd, swp and their like. An XCHG with memory needs no LOCK prefix. */
static bool is_atomic(const struct qemu_plugin_insn *insn)
{
	const uint32_t code = arm64_code(insn);
	char *text;
	bool locked;

	if (is_arm64)
		return (code & 0x3fe00000) == 0x08000000 || (code & 0x3fa07c00) == 0x08a07c00 ||
		       (code & 0x3b200c00) == 0x38200000;
	text = qemu_plugin_insn_disas(insn);
	locked = !strncmp(text, "lock", 4) ||
		 (!strncmp(text, "xchg", 4) && strpbrk(text, "([:"));
	free(text);
	return locked;
}

/* dc cvau; ic ivau */
static bool is_flush(const struct qemu_plugin_insn *insn)
{
	const uint32_t code = arm64_code(insn) & ~0x1fU;

	return code == 0xd50b7b20 || code == 0xd50b7520;
}

static bool is_mark(const struct qemu_plugin_insn *insn)
{
	if (is_arm64)
		return arm64_code(insn) == ARM64_MARK;
	return qemu_plugin_insn_size(insn) == sizeof(x86_mark) &&
	       !memcmp(qemu_plugin_insn_data(insn), x86_mark, sizeof(x86_mark));
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t insns = qemu_plugin_tb_n_insns(tb);
	size_t i;

	for (i = 0; i < insns; i++) {
		struct qemu_plugin_insn *const insn =
			qemu_plugin_tb_get_insn(tb, i);

		if (is_mark(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, at_mark,
					QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (is_atomic(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, add_one,
					QEMU_PLUGIN_CB_NO_REGS, &atomics);
		if (is_flush(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, add_one,
					QEMU_PLUGIN_CB_NO_REGS, &flushes);
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
