#!/bin/bash
# build: the kernels and programs that the other sections run.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

check "the series is made" "$ROOT/scripts/series"
for kernel in debug patched query; do
	check "the kernel '$kernel' is built" "$ROOT/scripts/kernel" $kernel
done
check "the programs are built" "$ROOT/scripts/programs"
check "the programs without the RFC are built" "$ROOT/scripts/programs" query
check "the BPF selftests are built" "$ROOT/scripts/bpf" build
check "perf is built" "$ROOT/scripts/perf" build
done_testing
