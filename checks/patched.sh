#!/bin/bash
# patched: the patched kernel: the selftests, and the base's own proc tests.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# proc-uptime-* asserts that idle time never falls, which it does now and then on the
# base, too.
# shellcheck disable=SC2016	# for the guest's shell
proc_tests='
status=0
for test in "$1"/*; do
	[ -x "$test" ] && [ -f "$test" ] || continue
	case $test in */procmap-* | */proc-uptime-*) continue ;; esac
	"$test" && result=ok || { result="not ok"; status=1; }
	echo "$result ${test##*/}"
done
exit $status
'

base_proc_tests() {
	vm -k patched -a kmemleak=off -- bash -c "$proc_tests" tests "$programs/proc" | tee "$tmp/proc"
	sed -nE 's/^TEST_GEN_PROGS \+= //p' \
		"$WORK/base/tools/testing/selftests/proc/Makefile" |
		grep -v '^proc-uptime-' | sort >"$tmp/there"
	[ -s "$tmp/there" ]
	sed -n 's/^ok //p' "$tmp/proc" | sort | diff "$tmp/there" -
}

kernel_is_built patched
in_tree_tests >"$tmp/tests"
mapfile -t tests <"$tmp/tests"
PROCMAP_TEST_MAPPINGS=3000 guest_on_built patched patched -m 1G -- "${tests[@]}"
check "the base's own proc tests pass" base_proc_tests
done_testing
