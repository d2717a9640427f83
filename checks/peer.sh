#!/bin/bash
# peer: Debian's kernel with mainline's ioctl, where the live module's take its place, with
# per-VMA locks: the programs that show how VMAs are found, locked and named. If that is
# the kernel of the section stock, an older one. "make check-all" has all programs.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

export PROCMAP_TEST_MAPPINGS=6000
release=$(peer_release)
[ "$release" != "$(newest_release)" ] ||
	release=$("$ROOT/scripts/live" -l "$(flavour)" | head -n 1)
mapfile -t tests < <(selftests proc |
	grep -E -- '-(abi|generation|lock|names|race|readers|truth)$'; library_tests lib64)
stock_kernel "$release" "${tests[@]}"
done_testing
