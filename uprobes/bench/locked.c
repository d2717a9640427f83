// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts executed instructions which lock the bus: for each pair of
 * marks, it writes a line with the number of those executed between them.
 *
 *	qemu-system-x86_64 -plugin ./locked.so,out=FILE …
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
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
		void (*cb)(unsigned int vcpu, void *data),
		enum qemu_plugin_cb_flags flags, void *data);
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

/* The mark of hits.c: a form of an instruction that no compiler emits. */
static const unsigned char mark[] = { 0x66, 0x66, 0x66, 0x66, 0x87, 0xdb };

static bool counting;
static FILE *out;
static unsigned long locked;

static void at_mark(unsigned int vcpu, void *data)
{
	counting = !counting;
	if (counting)
		locked = 0;
	else
		fprintf(out, "%lu\n", locked);
}

/* @data is the number of locked instructions in the block. */
static void at_block(unsigned int vcpu, void *data)
{
	locked += (uintptr_t)data;
}

/* Has it a LOCK prefix, or is it an XCHG with memory, which has no need of one? */
static bool is_locked(const struct qemu_plugin_insn *insn)
{
	char *const text = qemu_plugin_insn_disas(insn);
	const bool locked = !strncmp(text, "lock", 4) ||
			    (!strncmp(text, "xchg", 4) && strpbrk(text, "([:"));

	free(text);
	return locked;
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t insns = qemu_plugin_tb_n_insns(tb);
	uintptr_t locked_insns = 0;
	size_t i;

	for (i = 0; i < insns; i++) {
		struct qemu_plugin_insn *const insn =
			qemu_plugin_tb_get_insn(tb, i);

		locked_insns += is_locked(insn);
		if (qemu_plugin_insn_size(insn) == sizeof(mark) &&
		    !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, at_mark,
					QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
	if (locked_insns)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_block,
				QEMU_PLUGIN_CB_NO_REGS, (void *)locked_insns);
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
			char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fputs("locked: give out=FILE\n", stderr);
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out)
		abort();
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
	return 0;
}
