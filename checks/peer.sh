#!/bin/bash
# peer: Debian's kernel with mainline's ioctl, where the live module's take its place, with
# per-VMA locks. If that is the kernel of the section stock, an older one.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

export PROCMAP_TEST_MAPPINGS=10000
release=$(peer_release)
[ "$release" != "$(newest_release)" ] ||
	release=$("$ROOT/scripts/live" -l "$(flavour)" | head -n 1)
mapfile -t tests < <(selftests proc)
stock_kernel "$release" "${tests[@]}" lib64/procmap-test
done_testing
