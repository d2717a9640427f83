#!/bin/bash
# patched: the patched kernel: the selftests, and the base's own proc tests.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# The tree's Makefile builds the selftests of the series, and the base's own, which pass.
# proc-uptime-* asserts that idle time never falls, which it does now and then.
base_proc_tests() {
	local tests out=$programs/base-proc
	mapfile -t tests < <(base_git show base:tools/testing/selftests/proc/Makefile |
		sed -nE 's,^TEST_GEN_PROGS \+= ,base-proc/,p' | grep -v /proc-uptime-)
	[ ${#tests[@]} -gt 10 ]
	rm -rf "$out"
	mkdir "$out"
	make -s -C "$patched/tools/testing/selftests/proc" OUTPUT="$out" all
	vm -k patched -a kmemleak=off -- bash -c "$runner" runner "$programs" "${tests[@]}" |
		tee "$tmp/proc"
	sed -nE 's,^ok [0-9]+ selftests: base-proc: ([^ ]+)$,base-proc/\1,p' "$tmp/proc" |
		diff <(printf '%s\n' "${tests[@]}") -
}

guests
check "the selftests are built in the tree, and the base's own proc tests pass" base_proc_tests
done_testing
