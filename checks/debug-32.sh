#!/bin/bash
# debug-32: the 32-bit selftests on the debug kernel with the live module.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# The debug aids take minutes for more mappings; "make check-all" has them.
export PROCMAP_TEST_MAPPINGS=${PROCMAP_TEST_MAPPINGS:-3000}
check "the module is built" "$ROOT/scripts/live" "$WORK/kernel/debug/"
check "procmap_hold is built" hold_module "$WORK/kernel/debug" debug-32
mapfile -t tests < <(selftests proc32)
guest debug-32 -k debug -M "$(module_of "$(debug_release)")" \
	-M "$BUILD/hold/debug-32/procmap_hold.ko" \
	-a secretmem.enable=1 -- "${tests[@]}"
done_testing
