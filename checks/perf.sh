#!/bin/bash
# perf: the events that perf makes, with the ioctl and from the text.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

check "the tree 'perf' is that of the series" tree_is_the_series perf
take_guest perf "$ROOT/scripts/perf"
done_testing
