#!/bin/bash
# debug-64: the selftests on the debug kernel with the live module.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# The debug aids take minutes for more mappings; "make check-all" has them.
export PROCMAP_TEST_MAPPINGS=${PROCMAP_TEST_MAPPINGS:-3000}
check "the module is built" "$ROOT/scripts/live" "$WORK/kernel/debug/"
check "procmap_hold is built" hold_module "$WORK/kernel/debug" debug-64
mapfile -t tests < <(selftests proc)
guest debug-64 -k debug -M "$(module_of "$(debug_release)")" \
	-M "$BUILD/hold/debug-64/procmap_hold.ko" \
	-a secretmem.enable=1 -- "${tests[@]}"
done_testing
