#!/bin/bash
# bpf-all: the BPF selftests on the patched and the unpatched kernel, and all of
# test_progs.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

check "the BPF selftests are built" "$ROOT/scripts/bpf" build
bpf_finders bpf "$finders"
check "the patched kernel's VMAs are found by ioctl" \
	vmas_are_found_by bpf PROCMAP_QUERY 0 "$finders"
bpf_finders unpatched "$finders"
method=(text -1)
! grep -qw PROCMAP_QUERY "$WORK/base/include/uapi/linux/fs.h" || method=(PROCMAP_QUERY 0)
check "the unpatched kernel's VMAs are found by ${method[0]}" \
	vmas_are_found_by unpatched "${method[@]}" "$finders"
check "all of test_progs passes as on the unpatched kernel" "$ROOT/scripts/bpf" compare
done_testing
