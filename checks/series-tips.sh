#!/bin/bash
# series-tips: the series of the other bases, of which no kernel is built here: their last
# commits compile.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

bases=$(own_bases)
for base in $bases; do
	[ "$base" = "$BASE" ] ||
		take_guest "series-$base" env -u KDIR BASE="$base" "$CHECKS/series.sh" tip
done
[ $results -gt 0 ] || [ -z "$bases" ] || skip_check 'other bases' "Debian has the source of $BASE only"
done_testing
