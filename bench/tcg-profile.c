// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts executed instructions. For each block of code that ran
 * between two marks of bench/bench.c, it writes the block's address and the number
 * of instructions executed in it.
 *
 *	qemu-system-x86_64 -plugin ./tcg-profile.so,out=FILE …
 *
 * With locked=FILE in place of that, it writes a line for each pair of marks: the number
 * of locked instructions executed between them.
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
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
		void (*cb)(qemu_plugin_id_t id, void *data), void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t nr);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* LOCK, REPNE, REP, those of segments, and those of sizes. */
static const unsigned char prefixes[] = {
	0xf0, 0xf2, 0xf3, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67,
};

/* The mark of bench/bench.c. */
static const unsigned char mark[] = { 0x66, 0x66, 0x66, 0x66, 0x87, 0xdb };

/**
 * struct block - a block of code without branches, as QEMU translated it
 * @next: the block translated before.
 * @address: its first address.
 * @insns: number of its instructions.
 * @locked: number of those that lock the bus.
 * @runs: number of its executions between the marks.
 */
struct block {
	struct block *next;
	uint64_t address;
	uint64_t insns;
	uint64_t locked;
	uint64_t runs;
};

static struct block *blocks;
static bool counting;
static const char *out;
static FILE *locked_out;
static uint64_t locked;

static void at_mark(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	counting = !counting;
	if (counting)
		locked = 0;
	else if (locked_out)
		fprintf(locked_out, "%llu\n", (unsigned long long)locked);
}

static void at_block(unsigned int vcpu, void *data)
{
	struct block *const block = data;

	(void)vcpu;
	block->runs += counting;
	locked += block->locked;
}

/* Has it a LOCK prefix, or is it an XCHG with memory, which has no need of one? */
static bool is_locked(const struct qemu_plugin_insn *insn)
{
	const unsigned char *byte = qemu_plugin_insn_data(insn);
	const unsigned char *const end = byte + qemu_plugin_insn_size(insn);

	for (; byte < end && memchr(prefixes, *byte, sizeof(prefixes)); byte++)
		if (*byte == 0xf0)
			return true;
	if (byte < end && (*byte & 0xf0) == 0x40)	/* REX */
		byte++;
	return byte + 1 < end && (byte[0] & 0xfe) == 0x86 && byte[1] < 0xc0;
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *const block = calloc(1, sizeof(*block));
	size_t i;

	(void)id;
	if (!block)
		abort();
	block->next = blocks;
	block->address = qemu_plugin_tb_vaddr(tb);
	block->insns = qemu_plugin_tb_n_insns(tb);
	blocks = block;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, at_block,
					     QEMU_PLUGIN_CB_NO_REGS, block);
	for (i = 0; i < block->insns; i++) {
		struct qemu_plugin_insn *const insn =
			qemu_plugin_tb_get_insn(tb, i);

		block->locked += is_locked(insn);
		if (qemu_plugin_insn_size(insn) == sizeof(mark) &&
		    !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, at_mark,
					QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

static void at_exit(qemu_plugin_id_t id, void *data)
{
	FILE *const file = fopen(out, "w");
	const struct block *block;

	(void)id;
	(void)data;
	if (!file)
		abort();
	for (block = blocks; block; block = block->next)
		if (block->runs)
			fprintf(file, "%016llx %llu\n",
				(unsigned long long)block->address,
				(unsigned long long)(block->runs * block->insns));
	fclose(file);
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
			char **argv)
{
	(void)info;
	if (argc == 1 && !strncmp(argv[0], "out=", 4)) {
		out = strdup(argv[0] + 4);
		qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	} else if (argc == 1 && !strncmp(argv[0], "locked=", 7)) {
		locked_out = fopen(argv[0] + 7, "w");
		if (!locked_out)
			abort();
	} else {
		fputs("tcg-profile: give out=FILE or locked=FILE\n", stderr);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
	return 0;
}
