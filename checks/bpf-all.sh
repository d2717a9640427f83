#!/bin/bash
# bpf-all: the BPF selftests on the unpatched kernel too, and all of test_progs.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

check "the kernel 'unpatched' is built" "$ROOT/scripts/kernel" unpatched
bpf_finders unpatched
check "the unpatched kernel's VMAs are found by text" \
	vmas_are_found_by unpatched text -1
check "all of test_progs passes as on the unpatched kernel" "$ROOT/scripts/bpf" compare
done_testing
