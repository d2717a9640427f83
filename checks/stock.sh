#!/bin/bash
# stock: Debian's newest kernel of the base, with the live module. "make check-all" has
# 60,000 VMAs.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

export PROCMAP_TEST_MAPPINGS=10000
mapfile -t tests < <(all_programs)
stock_kernel "$(newest_release)" -- "${tests[@]}"
done_testing
