#!/bin/bash
# kernels: the kernels that the guests boot, and what is built of their trees. Sections
# that need one of them earlier wait for it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

kernel_is_built debug
kernel_is_built patched
if [ -n "$(base_fact PERF)" ]; then
	check "the tree 'perf' is that of the series" tree_is_the_series perf
	check "perf is built" "$ROOT/scripts/perf" build
fi
done_testing
