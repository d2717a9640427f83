#!/bin/bash
# arm64: Debian's newest kernel of the base for arm64, with the live module.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

check "the programs are built" "$ROOT/scripts/programs" arm64
use_arm64
programs=$BUILD/programs-arm64
release=$(cat "$("$ROOT/scripts/stock" cloud-arm64)/release")

export PROCMAP_TEST_MAPPINGS=6000
mapfile -t tests < <(selftests proc && selftests proc32 | grep -E -- '-(abi|names|truth)$')
stock_kernel "$release" "${tests[@]}"
done_testing
