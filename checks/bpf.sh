#!/bin/bash
# bpf: the BPF selftests that find VMAs, on Debian's newest kernel of the base with the
# live module: of all of test_progs, only they are built.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

export BPF_TESTS=$stock_finders,$attachers
check "the BPF selftests are built" "$ROOT/scripts/bpf" build stock
bpf_finders stock "$stock_finders"
check "their VMAs are found by ioctl" vmas_are_found_by stock PROCMAP_QUERY 0 \
	"$stock_finders"
done_testing
