#!/bin/bash
# patched-all: all programs on the patched kernel and on the one without the RFC; and on
# the debug kernel with the live module, what takes too long for "make check".
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

[ "$(base_value BACKPORT)" = y ] ||
	check "the tree 'query' is that of the series" tree_is_the_series query
guests
done_testing
