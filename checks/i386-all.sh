#!/bin/bash
# i386-all: what the series changes compiles without a warning for a kernel of 32 bits, which
# is booted nowhere.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

# The branch $1, with the options in the files that follow.
compiles() {
	local arch=i386 branch=$1 objects
	shift
	lock_each
	mapfile -t objects < <(base_git diff --name-only base "$branch" -- \
		'mm/*.c' 'kernel/*.c' 'arch/x86/*.c' | sed 's/c$/o/')
	configure_each "$ROOT/kernel/configs/procmap-guest.config" "$@"
	checkout_each "$branch"
	grep -x CONFIG_X86_32=y "$out_each/.config"
	(cd "$out_each" && rm -f fs/proc/*.o "${objects[@]}")
	make_each fs/proc/ "${objects[@]}" 2>&1 | tee "$tmp/output"
	! grep -E '(warning|error):' "$tmp/output"
}

check "the series is made" "$ROOT/scripts/series" tree patched
check "the series compiles in 32 bits" compiles series \
	"$patched/tools/testing/selftests/proc/config"
for topic in $(topics); do
	check "the patches of $topic are made" "$ROOT/scripts/series" tree "$topic"
	check "the patches of $topic compile in 32 bits" compiles "$topic" \
		"$ROOT/$topic"/{,test/*/}config
done
done_testing
