#!/bin/bash
# peer: Debian's kernel with mainline's ioctl, where the live module's take its place, with
# per-VMA locks. One thread emulates its CPUs: with two, QEMU before 8.1 goes on with the
# old code while the kernel patches a tracepoint in, and dies of it.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

export PROCMAP_TEST_MAPPINGS=10000
mapfile -t tests < <(selftests proc)
stock_kernel "$(peer_release)" -s -- "${tests[@]}" lib64/procmap-test
done_testing
