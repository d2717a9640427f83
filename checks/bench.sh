#!/bin/bash
# bench: the figures against their last known values.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

take_guest bench "$ROOT/bench/bench" short
done_testing
