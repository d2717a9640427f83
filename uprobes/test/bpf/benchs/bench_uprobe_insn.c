// SPDX-License-Identifier: GPL-2.0
#include <sys/resource.h>
#include "bench.h"
#include "bpf_util.h"
#include "trace_helpers.h"
#include "uprobe_insn_bench.skel.h"

/* What a hit of a uprobe costs depends on the instruction under it: the kernel
 * emulates some instructions, and single-steps a copy of the others. Which ones it
 * emulates is up to the architecture, as are the instructions.
 */
#ifdef __x86_64__
static struct ctx {
	struct uprobe_insn_bench *skel;
	void (*target)(void);
} ctx;

static void validate(void)
{
	if (env.consumer_cnt != 1) {
		fprintf(stderr, "benchmark doesn't support multi-consumer!\n");
		exit(1);
	}
}

static void attach_target(void (*target)(void), bool use_retprobe)
{
	struct bpf_link *link;

	setup_libbpf();

	ctx.skel = uprobe_insn_bench__open_and_load();
	if (!ctx.skel) {
		fprintf(stderr, "failed to open skeleton\n");
		exit(1);
	}

	link = bpf_program__attach_uprobe(ctx.skel->progs.count_hit,
					  use_retprobe,
					  -1 /* all PIDs */,
					  "/proc/self/exe",
					  get_uprobe_offset(target));
	if (!link) {
		fprintf(stderr, "failed to attach uprobe!\n");
		exit(1);
	}
	ctx.skel->links.count_hit = link;
	ctx.target = target;
}

static void *producer(void *input)
{
	while (true)
		ctx.target();
	return NULL;
}

static void *consumer(void *input)
{
	return NULL;
}

static void measure(struct bench_res *res)
{
	static long prev_hits, prev_stime_us;
	BPF_DECLARE_PERCPU(long, counts);
	long hits = 0, stime_us;
	struct rusage usage;
	__u32 key = 0;
	int i;

	if (bpf_map_lookup_elem(bpf_map__fd(ctx.skel->maps.hits), &key, counts) ||
	    getrusage(RUSAGE_SELF, &usage)) {
		fprintf(stderr, "failed to read hits and system time: %d\n", -errno);
		exit(1);
	}
	for (i = 0; i < bpf_num_possible_cpus(); i++)
		hits += bpf_percpu(counts, i);
	stime_us = usage.ru_stime.tv_sec * 1000000L + usage.ru_stime.tv_usec;

	res->hits = hits - prev_hits;
	res->stime = stime_us - prev_stime_us;
	prev_hits = hits;
	prev_stime_us = stime_us;
}

static void report_final(struct bench_res res[], int res_cnt)
{
	double mean = 0.0, stddev = 0.0, diff;
	int i;

	for (i = 0; i < res_cnt; i++)
		mean += res[i].stime * 1000.0 / res[i].hits / res_cnt;
	if (res_cnt > 1) {
		for (i = 0; i < res_cnt; i++) {
			diff = res[i].stime * 1000.0 / res[i].hits - mean;
			stddev += diff * diff / (res_cnt - 1.0);
		}
		stddev = sqrt(stddev);
	}
	printf("System time: %8.1lf \u00B1 %.1lf ns/hit\n", mean, stddev);

	/* The summary stays the last line, where the scripts expect it. */
	hits_drops_report_final(res, res_cnt);
}

/* The targets are not written in C, because a compiler may put an instruction of
 * its own first: with -fcf-protection, an endbr64.
 */
#define UPROBE_INSN_TARGET(insn, code)						\
	asm(".pushsection .text\n"						\
	    ".balign 16\n"							\
	    ".globl uprobe_target_" #insn "\n"					\
	    ".type uprobe_target_" #insn ", @function\n"			\
	    "uprobe_target_" #insn ":\n"					\
	    code "\n"								\
	    ".size uprobe_target_" #insn ", . - uprobe_target_" #insn "\n"	\
	    ".popsection\n")

#define UPROBE_INSN_BENCH(probe, insn, use_retprobe)				\
	static void probe##_setup_##insn(void)					\
	{									\
		attach_target(uprobe_target_##insn, use_retprobe);		\
	}									\
	const struct bench bench_trig_##probe##_##insn = {			\
		.name = "trig-" #probe "-" #insn,				\
		.validate = validate,						\
		.setup = probe##_setup_##insn,					\
		.producer_thread = producer,					\
		.consumer_thread = consumer,					\
		.measure = measure,						\
		.report_progress = hits_drops_report_progress,			\
		.report_final = report_final,					\
	}

void uprobe_target_nop(void), uprobe_target_push(void), uprobe_target_ret(void),
	uprobe_target_nop5(void), uprobe_target_endbr(void);

UPROBE_INSN_TARGET(nop, "nop; ret");
UPROBE_INSN_TARGET(push, "push %rbp; pop %rbp; ret");
UPROBE_INSN_TARGET(ret, "ret");
UPROBE_INSN_TARGET(nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00; ret");
UPROBE_INSN_TARGET(endbr, "endbr64; ret");

UPROBE_INSN_BENCH(uprobe, nop, false);
UPROBE_INSN_BENCH(uprobe, push, false);
UPROBE_INSN_BENCH(uprobe, ret, false);
UPROBE_INSN_BENCH(uprobe, nop5, false);
UPROBE_INSN_BENCH(uprobe, endbr, false);
UPROBE_INSN_BENCH(uretprobe, nop, true);
UPROBE_INSN_BENCH(uretprobe, push, true);
UPROBE_INSN_BENCH(uretprobe, ret, true);
UPROBE_INSN_BENCH(uretprobe, nop5, true);
UPROBE_INSN_BENCH(uretprobe, endbr, true);
#endif /* __x86_64__ */
