#!/bin/bash
# stock-all: the newest and the oldest of Debian's kernels of each flavour, and the
# peer, with 60,000 VMAs; the module's lifetimes, where the kernel is preemptible, too;
# and on arm64 the 32-bit programs and the library.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

mapfile -t tests < <(all_programs)
for flavour in $(base_fact FLAVOURS); do
	mapfile -t releases < <("$ROOT/scripts/live" -l "$flavour")
	for release in "${releases[-1]}" "${releases[0]}"; do
		stock_kernel "$release" "${tests[@]}"
	done
done
stock_kernel "$(peer_release)" "${tests[@]}"
kernel_is_built debug
check "the module is built" "$ROOT/scripts/live" "$WORK/kernel/debug/"
for release in $(printf '%s\n' "$(newest_release)" "$(peer_release)" | uniq); do
	lifetimes 64 "stock:$release" "$release" 1000 -a preempt=full
done
lifetimes 64 debug "$(debug_release)" 1000

check "the programs are built for arm64" "$ROOT/scripts/programs" arm64
use_arm64
programs=$BUILD/programs-arm64
mapfile -t tests < <(selftests proc32 && library_tests lib64)
for version in '' "$(base_fact PEER | sed 's/-.*/-/')"; do
	release=$(cat "$("$ROOT/scripts/stock" "${version}cloud-arm64")/release")
	stock_kernel "$release" "${tests[@]}"
	lifetimes 64 "stock:$release" "$release" 30
done
done_testing
