#!/bin/bash
# patched: the patched kernel: the selftests, and the base's own proc tests.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

base_proc_tests() {
	vm -k patched -a kmemleak=off -- bash -c "$base_tests" tests "$programs" proc |
		tee "$tmp/proc"
	sed -nE 's/^TEST_GEN_PROGS \+= //p' \
		"$WORK/base/tools/testing/selftests/proc/Makefile" |
		grep -v '^proc-uptime-' | sort >"$tmp/there"
	[ -s "$tmp/there" ]
	sed -nE 's,^proc/([^ ]+) 0 .*,\1,p' "$tmp/proc" | sort | diff "$tmp/there" -
}

kernel_is_built patched
# How calls reach the engine, in 64 and in 32 bits, and what the tree does itself:
# permission, names, locks, the text. The engine is the same as in the live module, with
# which the debug kernel runs the others. "make check-all" runs all of them here, too.
mapfile -t tests < <(
	selftests proc | grep -E -- '-(fuse|lock|names|readers|smaps|text)$'
	selftests proc32 | grep -E -- '-readers$'
)
PROCMAP_TEST_MAPPINGS=3000 guest_on_built patched patched -m 1G -- "${tests[@]}"
check "the base's own proc tests pass" base_proc_tests
done_testing
