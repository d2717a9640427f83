#!/bin/bash
# debug-32: the 32-bit selftests on the debug kernel with the live module.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

debug_kernel debug-32 proc32
done_testing
