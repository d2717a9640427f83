#!/bin/bash
# packages-all: what the packages do in a guest, where DKMS builds the module twice.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

# The test in the guest also installs dependencies of the packages that this machine
# lacks.
fetch_what_is_needed() {
	local debs ours
	mapfile -t debs <<<"$("$ROOT/scripts/deb")"
	rm -rf "$BUILD/deb/needed"
	mkdir "$BUILD/deb/needed"
	cd "$BUILD/deb/needed"
	ours=$(cat "$ROOT"/{,*/}debian/control | sed -n 's/^Package: //p')
	apt-get -s --no-install-recommends install "${debs[@]}" |
		awk '$1 == "Inst" { print $2 }' | { grep -vxF "$ours" || :; } |
		xargs -r apt-get -q download
}

release=$(newest_release)
check "what the packages need is fetched" fetch_what_is_needed
check "image of $release" "$ROOT/scripts/stock" "$release"
take_guest packages vm -t 3600 -k "stock:$release" -- "$ROOT/debian/tests/packages"
done_testing
