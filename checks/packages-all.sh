#!/bin/bash
# packages-all: what the packages do in a guest, where DKMS builds the module twice; what
# autopkgtest says of them; those of arm64.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

# With the packages of the library and the tool installed. Status 2: one test was skipped,
# since it takes a machine that it may change. The index of the manual is not made anew: each
# file that the guest has seen stays open on the host.
# shellcheck disable=SC2016	# for the guest's shell
autopkgtest_passes() {
	expect 2 vm -t 1800 -k "stock:$release" -- bash -c '
		rm -f /var/lib/man-db/auto-update
		dpkg -i "$1"/{libprocmap,procfs-query,python3-procmap}*.deb
		autopkgtest --no-built-binaries "$1/tests/" -- null
	' autopkgtest "$BUILD/deb" | tee "$tmp/output"
	grep -E '^installed +PASS' "$tmp/output"
	grep -E '^packages +SKIP' "$tmp/output"
}

# Cross-built, unpacked, and run on Debian's kernel with the live module: the tool, and
# the library by the tests of the Python binding, but for those that install it by make.
# shellcheck disable=SC2016	# for the guest's shell
runs_unpacked='
set -eux
export LD_LIBRARY_PATH=$1/usr/lib/aarch64-linux-gnu PYTHONDONTWRITEBYTECODE=1
"$1/usr/bin/procfs_query" -p self --list --query
python3 -W error "$2" Lookup Files Handles Snapshots
'
debs_of_arm64_work() {
	local debs deb root=$BUILD/deb/arm64/root release
	mapfile -t debs <<<"$("$ROOT/scripts/deb" arm64)"
	[ ${#debs[@]} -eq 3 ]
	lintian --allow-root --fail-on error,warning "${debs[@]}"
	rm -rf "$root"
	for deb in "${debs[@]}"; do
		dpkg-deb -x "$deb" "$root"
	done
	release=$(cat "$("$ROOT/scripts/stock" cloud-arm64)/release")
	"$ROOT/scripts/live" "$release"
	vm -k "stock:$release" -M "$(module_of "$release")" -- bash -c "$runs_unpacked" \
		unpacked "$root" "$ROOT/tools/lib/procmap/test/test_procmap.py" |
		tee "$tmp/output"
	grep '\[vdso\]$' "$tmp/output"
}

release=$(newest_release)
check "the packages are made" "$ROOT/scripts/deb"
check "image of $release" "$ROOT/scripts/stock" "$release"
take_guest packages vm -t 3600 -k "stock:$release" -- "$ROOT/debian/tests/packages"
check "autopkgtest passes" autopkgtest_passes
check "the packages of arm64 work" debs_of_arm64_work
done_testing
