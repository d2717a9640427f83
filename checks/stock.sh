#!/bin/bash
# stock: Debian's newest kernel of the base, with the live module. "make check-all" has
# 60,000 VMAs.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

export PROCMAP_TEST_MAPPINGS=10000
stock_kernel "$(newest_release)"
done_testing
