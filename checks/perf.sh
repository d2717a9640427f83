#!/bin/bash
# perf: the events that perf makes, with the ioctl and from the text.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

take_guest perf "$ROOT/scripts/perf" test
done_testing
