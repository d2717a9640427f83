#!/bin/bash
# build: the series and the programs that the other sections run.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# A tree with changes of its own is never overwritten: the checks would be about
# them, and not about the series.
trees_are_the_series() {
	local tree branch
	for tree in query patched perf; do
		branch=${tree/#patched/series}
		"$ROOT/scripts/series" tree $tree
		[ "$(git -C "$WORK/$tree" rev-parse HEAD)" = \
			"$(base_git rev-parse "$branch")" ] ||
			{ echo "$WORK/$tree has commits of its own"; return 1; }
		git -C "$WORK/$tree" status --porcelain -uno | tee "$tmp/changes"
		[ ! -s "$tmp/changes" ]
	done
}

check "the series is made" "$ROOT/scripts/series"
check "the trees are those of the series" trees_are_the_series
check "the programs are built" "$ROOT/scripts/programs"
check "the programs without the RFC are built" "$ROOT/scripts/programs" query
done_testing
