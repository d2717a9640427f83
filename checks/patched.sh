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

guests
check "the base's own proc tests pass" base_proc_tests
done_testing
