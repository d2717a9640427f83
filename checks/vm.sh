#!/bin/bash
# vm: scripts/vm itself. That it counts instructions is shown by the section bench.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# A stock kernel boots fastest; kmemleak takes most of a short run's time.
vm() {
	setpriv --pdeathsig TERM "$ROOT/scripts/vm" -k "stock:$newest" -a kmemleak=off "$@"
}

# What the command writes does not reach the host.
vm_passes_output_and_status_only() {
	echo before >"$BUILD/vm/witness"
	# shellcheck disable=SC2016	# for the guest's shell
	expect 7 vm -k patched -- bash -c 'pwd; echo "$1"; echo error >&2
		echo after >"$2"; cat "$2"; exit 7' run 'a  "b' "$BUILD/vm/witness" \
		>"$tmp/out" 2>"$tmp/err"
	diff "$tmp/out" <(pwd; echo 'a  "b'; echo after)
	diff "$tmp/err" <(echo error)
	grep -x before "$BUILD/vm/witness"
}

vm_ends_at_its_limit() {
	expect 124 vm -t 60 -- sh -c 'echo up; sleep 1000' >"$tmp/out"
	grep -x up "$tmp/out"
}

vm_fails_on_a_splat() {
	expect 125 vm -- sh -c 'echo "<4>WARNING: planted" >/dev/kmsg' 2>"$tmp/err"
	grep 'the kernel complained' "$tmp/err"
}

vm_fails_on_a_leak() {
	expect 125 vm -a kmemleak=on -m 1G -k patched \
		-M "$WORK/kernel/patched/samples/kmemleak/kmemleak-test.ko" -- true 2>"$tmp/err"
	grep 'kmemleak: unreferenced' "$tmp/err"
}

vm_reports_a_dead_guest() {
	expect 125 vm -- busybox poweroff -f
}

# Look for remains of a run by the directory that its command line names.
vm_dies_of() {
	local signal=$1 pid
	rm -f "$tmp/up"
	env --default-signal=INT setpriv --pdeathsig TERM "$ROOT/scripts/vm" -k "stock:$newest" \
		-- sh -c 'echo up; sleep 100' >"$tmp/up" &
	pid=$!
	wait_for 300 grep -q up "$tmp/up"
	pgrep -f -a -P "$(pgrep -d, -P "$pid")" qemu |
		grep -om1 "$BUILD/vm/run\.[A-Za-z0-9]*" | head -n 1 >"$tmp/run"
	[ -s "$tmp/run" ]
	kill "-$signal" "$pid"
	wait "$pid" || :
	wait_for 10 expect 1 pgrep -af "qemu.*$(cat "$tmp/run")"
	[ "$signal" = KILL ] || [ ! -e "$(cat "$tmp/run")" ]
	rm -rf "$(cat "$tmp/run")"
}

newest=$(debian_release newest)
kernel_is_built patched
check "vm passes output and status, and no more" vm_passes_output_and_status_only
check "vm ends at its limit" vm_ends_at_its_limit
check "vm fails on a splat" vm_fails_on_a_splat
check "vm fails on a planted leak" vm_fails_on_a_leak
check "vm reports a dead guest" vm_reports_a_dead_guest
check "vm leaves nothing after INT" vm_dies_of INT
check "vm leaves nothing after TERM" vm_dies_of TERM
check "vm leaves no QEMU after KILL" vm_dies_of KILL
done_testing
