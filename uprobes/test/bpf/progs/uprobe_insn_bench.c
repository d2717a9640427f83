// SPDX-License-Identifier: GPL-2.0
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, long);
} hits SEC(".maps");

SEC("uprobe")
int count_hit(void *ctx)
{
	__u32 key = 0;
	long *count;

	count = bpf_map_lookup_elem(&hits, &key);
	/* Atomic, since another producer on this CPU can preempt this one. */
	if (count)
		__sync_add_and_fetch(count, 1);
	return 0;
}
