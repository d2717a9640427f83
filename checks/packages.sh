#!/bin/bash
# packages: make deb, and what the packages do in a guest.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# With what the packages depend on and this machine lacks: their test in the guest
# installs that, too.
debs_are_made() {
	local debs
	mapfile -t debs <<<"$("$ROOT/scripts/deb")"
	[ ${#debs[@]} -eq 4 ]
	lintian --allow-root --fail-on error,warning "${debs[@]}"
	rm -rf "$BUILD/deb/needed"
	mkdir "$BUILD/deb/needed"
	cd "$BUILD/deb/needed"
	apt-get -s --no-install-recommends install "${debs[@]}" |
		awk '$1 == "Inst" && !/^Inst (procmap-query|libprocmap|procfs-query)/ {
			print $2 }' |
		xargs -r apt-get -q download
}

release=$(newest_release)
check "make deb, and lintian" debs_are_made
check "image of $release" "$ROOT/scripts/stock" "$release"
take_guest packages vm -t 3600 -k "stock:$release" -- "$CHECKS/deb-test"
done_testing
