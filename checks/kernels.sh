#!/bin/bash
# kernels: the kernels that the guests boot, and what is built of their trees. Sections
# that need one of them earlier wait for it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

for kernel in debug patched query; do
	kernel_is_built $kernel
done
check "perf is built" "$ROOT/scripts/perf" build
check "the BPF selftests are built" "$ROOT/scripts/bpf" build
done_testing
