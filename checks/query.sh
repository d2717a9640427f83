#!/bin/bash
# query: the kernel without the RFC, and what the series has for it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

tree=query
programs=$BUILD/programs-query
export TOOL=$programs/procmap/procfs_query

check "procmap_hold is built" hold_module "$WORK/kernel/query" query
# "make check-all" has the rest of the 32-bit programs.
mapfile -t tests < <(selftests proc; selftests proc32 | grep -- '-abi$')
guest query -k query -M "$BUILD/hold/query/procmap_hold.ko" \
	-a secretmem.enable=1 -- "${tests[@]}" \
	lib64/procmap-test procmap/procfs_query_test.py
done_testing
