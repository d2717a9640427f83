#!/bin/bash
# packages-all: what the packages do in a guest, where DKMS builds the module twice; what
# autopkgtest says of them.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# With the packages of the library and the tool installed. The index of the manual is not made
# anew: each file that the guest has seen stays open on the host.
# shellcheck disable=SC2016	# for the guest's shell
autopkgtest_passes() {
	vm -t 1800 -k "stock:$release" -- bash -c '
		rm -f /var/lib/man-db/auto-update
		dpkg -i "$1"/{libprocmap,procfs-query,python3-procmap}*.deb
		autopkgtest --no-built-binaries "$1/tests/" -- null
	' autopkgtest "$BUILD/deb" | tee "$tmp/output"
	grep -E '^installed +PASS' "$tmp/output"
}

release=$(debian_release newest)
check "the packages are made" "$ROOT/scripts/deb"
take_tap packages vm -t 3600 -k "stock:$release" -- "$CHECKS/programs/packages-test"
check "autopkgtest passes" autopkgtest_passes
done_testing
