#!/bin/bash
# kernels: the kernel that the guests boot. Sections that need one earlier wait for it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

kernel_is_built patched
done_testing
