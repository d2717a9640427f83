#!/bin/bash
# query: the kernel without the RFC, and what the series has for it. "make check-all" has
# all programs there.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

programs=$BUILD/programs-query

# shellcheck disable=SC2016	# for the guest's shell
tool_finds_no_scan() {
	vm -k query -a kmemleak=off -- bash -c '"$1" -p self --list --query || exit
		status=0
		out=$("$1" -p self --list --scan 2>&1) || status=$?
		echo "$status: $out"
		[ $status -eq 2 ] &&
		[[ $out == *"the kernel lacks the ioctl"* ]]' tool \
		"$programs/procmap/procfs_query"
}

query_is_built
PROCMAP_TEST_MAPPINGS=3000 guest query -k query -c 1 -a kmemleak=off -- \
	proc/procmap-names proc32/procmap-abi
check "the tool lists by query, and finds no scan" tool_finds_no_scan
done_testing
