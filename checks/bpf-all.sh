#!/bin/bash
# bpf-all: the BPF selftests on the patched and the unpatched kernel, and all of
# test_progs.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# shellcheck disable=SC2016	# for the guest's shell
benches='
for bench in $(./bench -l | grep -oE "trig-u(ret)?probe-.*"); do
	strace -f --seccomp-bpf -qqq -e trace=ioctl -e signal=none -o /run/ioctls \
		./bench -w 1 -d 1 "$bench" >/run/out
	echo "$bench: $(grep -c "0x66, 0x11, 0x68.* = 0$" /run/ioctls) queries"
	grep "^Summary: " /run/out
done
'

# On 6.1, the one called base attaches nothing.
benches_run() {
	"$ROOT/scripts/bpf" run bpf bash -ec "$benches" | tee "$tmp/benches"
	[ "$(grep -c '^trig-u[a-z]*-' "$tmp/benches")" -ge 5 ]
	[ "$(grep -cvE '^Summary|^trig-uprobe-base: 0 queries|: 1 queries' \
		"$tmp/benches")" -eq 0 ]
	[ "$(grep -c '^Summary: hits  *[0-9.]*[1-9]' "$tmp/benches")" -eq \
	  "$(grep -c '^trig-' "$tmp/benches")" ]
}

check "the kernel 'bpf' is built" "$ROOT/scripts/kernel" bpf
check "the kernel 'unpatched' is built" "$ROOT/scripts/kernel" unpatched
check "the BPF selftests are built" "$ROOT/scripts/bpf" build
bpf_finders bpf "$finders"
check "the patched kernel's VMAs are found by ioctl" \
	vmas_are_found_by bpf PROCMAP_QUERY 0 "$finders"
check "the benches of uprobes run, by ioctl" benches_run
bpf_finders unpatched "$finders"
method=(text -1)
! grep -qw PROCMAP_QUERY "$WORK/base/include/uapi/linux/fs.h" || method=(PROCMAP_QUERY 0)
check "the unpatched kernel's VMAs are found by ${method[0]}" \
	vmas_are_found_by unpatched "${method[@]}" "$finders"
check "all of test_progs passes as on the unpatched kernel" "$ROOT/scripts/bpf" compare
done_testing
