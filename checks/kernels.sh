#!/bin/bash
# kernels: the kernels that the guests boot, and what is built of their trees. Sections
# that need one of them earlier wait for it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

kernel_is_built debug
kernel_is_built patched
query_is_built
if [ -n "$(base_fact PERF)" ]; then
	check "the tree 'perf' is that of the series" tree_is_the_series perf
	check "perf is built" "$ROOT/scripts/perf" build
fi
if [ -n "$(base_fact UPROBES)" ]; then
	check "the tree 'uprobes' is that of the series" tree_is_the_series uprobes
	kernel_is_built uprobes
fi
done_testing
