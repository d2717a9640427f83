#!/bin/bash
# patched: the patched kernel: the selftests, and the base's own proc tests.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# proc-uptime-* asserts that idle time never falls, which it does now and then.
base_proc_tests() {
	local tests
	mapfile -t tests < <(base_git show base:tools/testing/selftests/proc/Makefile |
		sed -nE 's,^TEST_GEN_PROGS \+= ,proc/,p' | grep -v /proc-uptime-)
	[ ${#tests[@]} -gt 10 ]
	vm -k patched -a kmemleak=off -- bash -c "$runner" runner "$programs" "${tests[@]}" |
		tee "$tmp/proc"
	sed -nE 's,^ok [0-9]+ selftests: proc: ([^ ]+)$,proc/\1,p' "$tmp/proc" |
		diff <(printf '%s\n' "${tests[@]}") -
}

guests
check "the base's own proc tests pass" base_proc_tests
done_testing
