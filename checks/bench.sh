#!/bin/bash
# bench: the figures against their last known values, and the profile.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

bench_is_profiled() {
	"$ROOT/bench/bench" profile lookup | tee "$tmp/profile"
	grep -E '^ +[0-9.]+%  \[k\] procmap_query ' "$tmp/profile"
}

take_guest bench "$ROOT/bench/bench" short
check "bench/bench profile" bench_is_profiled
done_testing
