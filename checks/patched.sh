#!/bin/bash
# patched: the patched kernel: the selftests, the library, the tool, the examples.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

main_job() {
	"$ROOT/scripts/run" tree | tee "$tmp/run"
	grep -q '^differences  *0$' "$tmp/run"
	grep -q '^ioctl .* 300$' "$tmp/run"
}

check "procmap_hold is built" hold_module "$WORK/kernel/patched" patched
mapfile -t tests < <(in_tree_tests)
guest patched -k patched -M "$BUILD/hold/patched/procmap_hold.ko" \
	-a secretmem.enable=1 -- "${tests[@]}" lib64/procmap-test
check "make run-tree" main_job
done_testing
