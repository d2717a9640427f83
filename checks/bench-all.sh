#!/bin/bash
# bench-all: the tables of "make bench", of each base.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

for base in "$ROOT"/series/linux-*/base; do
	base=$(basename "$(dirname "$base")")
	check "bench/bench on $base" env -u KDIR BASE="$base" "$ROOT/bench/bench"
done
done_testing
