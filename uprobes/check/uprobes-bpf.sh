#!/bin/bash
# uprobes-bpf: the BPF selftests that attach to user space, and the benches of a hit, on
# the kernel with the patches for uprobes.
# shellcheck source=uprobes/check/tap.sh
. "$(dirname "$0")/tap.sh"

skip_without_series

# shellcheck disable=SC2016	# for the guest's shell
benches='
for bench in $(./bench -l | grep -oE "trig-u(ret)?probe-(nop5?|push|ret)$"); do
	./bench -w 1 -d 1 -p 2 "$bench" | sed -n "s/^Summary: /$bench: /p"
done
'

benches_count_hits() {
	"$ROOT/scripts/bpf" run uprobes bash -ec "$benches" | tee "$tmp/benches"
	[ "$(grep -cE '^trig-.*hits +[0-9.]*[1-9]' "$tmp/benches")" -eq 8 ]
}

export BPF_TESTS=attach_probe,bpf_cookie,$attachers
check "the kernel 'uprobes-bpf' is built" "$ROOT/scripts/kernel" uprobes-bpf
check "the BPF selftests are built" "$ROOT/scripts/bpf" build uprobes
bpf_finders uprobes attach_probe,bpf_cookie
check "the benches of a hit count hits" benches_count_hits
done_testing
