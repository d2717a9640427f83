#!/bin/bash
# perf: with the patches of series/perf, it has the mappings of the processes that it
# records from the ioctls. In a guest with Debian's own kernel, the events that it makes from
# the text, by query (the kernel's and the live module's) and by scan have to be the same;
# what each costs is measured in instructions and system calls.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

out=$WORK/perf-build
release=$(debian_release newest)
check "the tree 'perf' is that of the series" tree_is_the_series perf
check "perf is built" make_perf "$WORK/perf" "$out"
check "live module for $release" "$ROOT/scripts/live" "$release"
take_guest perf vm -i -t 2400 -k "stock:$release" -a 'mitigations=off vsyscall=xonly' -- \
	"$CHECKS/programs/perf-test" "$out"/{perf,no-ioctl.so} "$(module_of "$release")"
done_testing
