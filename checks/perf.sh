#!/bin/bash
# perf: the events that perf makes, by the ioctl and by the text.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

take_guest perf "$ROOT/scripts/perf" test
done_testing
