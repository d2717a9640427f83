#!/bin/bash
# bench: the figures against their last known values, and the profile.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

# Where the instructions of a lookup go can be counted.
bench_is_profiled() {
	"$ROOT/bench/bench" profile lookup 100 | tee "$tmp/profile"
	sed -n 1p "$tmp/profile" | awk '{ exit !($1 > 900 && $1 < 2000) }'
	grep -E '^ +[0-9.]+ procmap_query$' "$tmp/profile"
}

take_guest bench "$ROOT/bench/bench" short
check "bench/bench profile" bench_is_profiled
done_testing
