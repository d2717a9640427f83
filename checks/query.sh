#!/bin/bash
# query: the kernel without the RFC, and what the series has for it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

tree=query
programs=$BUILD/programs-query

query_is_built
PROCMAP_TEST_MAPPINGS=10000 guest query -k query -- \
	proc/procmap-query-{abi,names} proc32/procmap-query-abi lib64/procmap-test
done_testing
