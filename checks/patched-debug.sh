#!/bin/bash
# patched-debug: the selftests on the patched kernel with the debug aids, and 60,000
# VMAs on the debug kernel with the live module.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

kernel_is_built patched-debug
kernel_is_built debug
check "procmap_hold is built" hold_module "$WORK/kernel/patched-debug" patched-debug
mapfile -t tests < <(selftests proc)
mapfile -t tests32 < <(selftests proc32)
for bits in 64 32; do
	[ $bits = 64 ] || tests=("${tests32[@]}")
	PROCMAP_TEST_MAPPINGS=6000 guest debug-$bits -k patched-debug \
		-M "$BUILD/hold/patched-debug/procmap_hold.ko" \
		-a secretmem.enable=1 -- "${tests[@]}" lib$bits/procmap-test
done

mapfile -t tests < <(selftests proc | grep -E -- '-(truth|race|abi|soak|uring)$')
PROCMAP_TEST_MAPPINGS=60000 guest debug-64 -k debug \
	-M "$(module_with_scan "$(debug_release)")" -a secretmem.enable=1 -- "${tests[@]}"
done_testing
