#!/bin/bash
# debug-64: the selftests on the debug kernel with the live module.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

debug_kernel debug-64 proc
done_testing
