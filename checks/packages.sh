#!/bin/bash
# packages: make deb, and lintian.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

debs_are_made() {
	local debs
	mapfile -t debs <<<"$("$ROOT/scripts/deb")"
	[ ${#debs[@]} -eq "$(cat "$ROOT"/{,*/}debian/control | grep -c '^Package: ')" ]
	lintian --allow-root --fail-on error,warning "${debs[@]}"
}

check "make deb, and lintian" debs_are_made
done_testing
