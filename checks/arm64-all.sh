#!/bin/bash
# arm64-all: the patched base for arm64, with pages of 4 and of 64 KiB. With the latter
# there are no programs of 32 bits.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

check "the programs are built" "$ROOT/scripts/programs" arm64
programs=$BUILD/programs-arm64
export PROCMAP_TEST_MAPPINGS=6000
hold_arm64() {
	use_arm64
	ARCH=arm64 hold_module "$WORK/kernel/$1" "$1"
}
for pages in 4k 64k; do
	kernel_is_built "arm64-$pages"
	check "procmap_hold is built for $pages" hold_arm64 "arm64-$pages"
	mapfile -t tests < <(selftests proc; [ $pages = 64k ] || selftests proc32; library_tests lib64)
	guest "arm64-$pages" -k "arm64-$pages" -M "$BUILD/hold/arm64-$pages/procmap_hold.ko" \
		-a secretmem.enable=1 -- "${tests[@]}"
done
done_testing
