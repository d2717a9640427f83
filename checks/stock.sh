#!/bin/bash
# stock: Debian's newest kernel of the base, with the live module.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

stock_kernel "$(newest_release)"
done_testing
