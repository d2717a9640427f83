#!/bin/bash
# stock-all: the newest and the oldest of Debian's kernels of each flavour, and the
# peer, with 60,000 VMAs; and the module's lifetimes.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

mapfile -t tests < <(all_programs && echo procmap/procmap_top_test.py)
for flavour in $(base_fact FLAVOURS); do
	mapfile -t releases < <("$ROOT/scripts/live" -l "$flavour")
	for release in "${releases[-1]}" "${releases[0]}"; do
		stock_kernel "$release" "${tests[@]}"
	done
done
stock_kernel "$(peer_release)" "${tests[@]}"
kernel_is_built debug
check "the module is built" "$ROOT/scripts/live" "$WORK/kernel/debug/"
lifetimes 64 "stock:$(newest_release)" "$(newest_release)" 1000
lifetimes 64 debug "$(debug_release)" 1000
done_testing
