#!/bin/bash
# stock-all: the newest and the oldest of Debian's kernels of each flavour.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

for flavour in $(base_fact FLAVOURS); do
	mapfile -t releases < <("$ROOT/scripts/live" -l "$flavour")
	for release in "${releases[-1]}" "${releases[0]}"; do
		[ "$release" = "$(newest_release)" ] || stock_kernel "$release"
	done
done
done_testing
