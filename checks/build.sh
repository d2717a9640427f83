#!/bin/bash
# build: the series and the programs that the other sections run.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

check "the series is made" "$ROOT/scripts/series"
check "the tree 'patched' is that of the series" tree_is_the_series patched
check "the programs are built" "$ROOT/scripts/programs"
done_testing
