#!/bin/bash
# i386-all: what the series changes compiles without a warning for a kernel of 32 bits, which
# is booted nowhere.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

compiles() {
	local arch=i386 objects
	lock_each
	mapfile -t objects < <(base_git diff --name-only base series -- 'mm/*.c' | sed 's/c$/o/')
	configure_each "$ROOT/kernel/configs/procmap-guest.config" \
		"$patched/tools/testing/selftests/proc/config"
	checkout_each series
	grep -x CONFIG_X86_32=y "$out_each/.config"
	rm -f "$out_each"/{fs/proc,mm}/*.o
	make_each fs/proc/ "${objects[@]}" 2>&1 | tee "$tmp/output"
	! grep -E '(warning|error):' "$tmp/output"
}

check "the series is made" "$ROOT/scripts/series" tree patched
check "the series compiles in 32 bits" compiles
done_testing
