#!/bin/bash
# bpf: the BPF selftests that find VMAs, on the patched kernel.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# shellcheck disable=SC2016	# for the guest's shell
benches='
for bench in trig-uprobe-base trig-u{,ret}probe-with{,out}-nop; do
	strace -f -qqq -e trace=ioctl -e signal=none -o /run/ioctls \
		./bench -w 1 -d 1 "$bench" >/run/out
	echo "$bench: $(grep -c "0x66, 0x11, 0x68.* = 0$" /run/ioctls) queries"
	grep "^Summary: " /run/out
done
'

benches_run() {
	bpf run patched bash -ec "$benches" | tee "$tmp/benches"
	[ "$(grep -c '^trig.*: 1 queries' "$tmp/benches")" -eq 4 ]
	[ "$(grep -c '^Summary: hits  *[0-9.]*[1-9]' "$tmp/benches")" -eq 5 ]
}

bpf_finders patched
check "the patched kernel's VMAs are found by ioctl" \
	vmas_are_found_by patched PROCMAP_QUERY 0
check "the benches of uprobes run, by ioctl" benches_run
done_testing
