#!/bin/bash
# stock-all: the newest and the oldest of Debian's kernels of each flavour, and the
# peer, with 60,000 VMAs; the module's lifetimes; and on arm64 the library, too.
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

check "the programs are built for arm64" "$ROOT/scripts/programs" arm64
use_arm64
programs=$BUILD/programs-arm64
for version in '' "$(base_fact PEER | sed 's/-.*/-/')"; do
	release=$(cat "$("$ROOT/scripts/stock" "${version}cloud-arm64")/release")
	stock_kernel "$release" lib64/procmap-test
	lifetimes 64 "stock:$release" "$release" 30
done
done_testing
