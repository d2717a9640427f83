#!/bin/bash
# patched-all: all programs on the patched kernel and on the one without the RFC; and on
# the debug kernel with the live module, what takes too long for "make check", with
# 60,000 VMAs.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# All programs on the kernel $1, which is built from the tree of that name.
all_programs_on() {
	mapfile -t tests < <(tree=$1 all_programs)
	guest_on_built "$1" "$1" -t 7200 -- "${tests[@]}"
}

kernel_is_built debug
kernel_is_built patched
check "the tree 'query' is that of the series" tree_is_the_series query
check "the programs without the RFC are built" "$ROOT/scripts/programs" query
kernel_is_built query
check "the module is built" "$ROOT/scripts/live" "$WORK/kernel/debug/"
export PROCMAP_TEST_MAPPINGS=6000
all_programs_on patched
programs=$BUILD/programs-query TOOL=$BUILD/programs-query/procmap/procfs_query \
	all_programs_on query
check "make run-tree" main_job tree

mapfile -t tests < <(selftests proc | grep -E -- '-(lock|race|soak|truth)$')
PROCMAP_TEST_MAPPINGS=60000 guest debug-64 -k debug \
	-M "$(module_with_scan "$(debug_release)")" -a secretmem.enable=1 -- "${tests[@]}"
done_testing
