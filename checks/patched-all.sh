#!/bin/bash
# patched-all: all programs on the patched kernel and on the one without the RFC.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

kernel_is_built patched
query_is_built
for kernel in patched query; do
	check "procmap_hold is built for $kernel" \
		hold_module "$WORK/kernel/$kernel" "$kernel"
done
mapfile -t tests < <(selftests proc proc32)
guest patched -k patched -M "$BUILD/hold/patched/procmap_hold.ko" \
	-a secretmem.enable=1 -- "${tests[@]}" \
	lib{64,32}/procmap-test procmap/procfs_query_test.py

programs=$BUILD/programs-query
export TOOL=$programs/procmap/procfs_query
mapfile -t tests < <(tree=query selftests proc proc32)
guest query -k query -M "$BUILD/hold/query/procmap_hold.ko" \
	-a secretmem.enable=1 -- "${tests[@]}" \
	lib{64,32}/procmap-test procmap/procfs_query_test.py
done_testing
