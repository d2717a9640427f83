#!/bin/bash
# query: the kernel without the RFC, and what the series has for it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

tree=query
programs=$BUILD/programs-query
export TOOL=$programs/procmap/procfs_query

check "procmap_hold is built" hold_module "$WORK/kernel/query" query
mapfile -t tests < <(in_tree_tests)
guest query -k query -M "$BUILD/hold/query/procmap_hold.ko" \
	-a secretmem.enable=1 -- "${tests[@]}" \
	lib64/procmap-test procmap/procfs_query_test.py
done_testing
