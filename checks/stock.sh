#!/bin/bash
# stock: Debian's newest kernel of the base, with the live module. "make check-all" has
# 60,000 VMAs and all programs in 32 bits.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

export PROCMAP_TEST_MAPPINGS=6000
mapfile -t tests < <(selftests proc && selftests proc32 | grep -E -- '-(abi|names|truth)$' &&
	library_tests lib64 && tool_tests)
stock_kernel "$(newest_release)" "${tests[@]}"
done_testing
