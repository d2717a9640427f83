#!/bin/bash
# uprobes: the series for uprobes: it applies to the base, each commit compiles, and its
# selftests pass on the kernel with it, and on stock kernels with the live module.
# shellcheck source=uprobes/check/common
. "$(dirname "$0")/common"

x86=tools/testing/selftests/x86
fragments=("$ROOT"/kernel/configs/procmap-{x86,guest}.config "$TOPIC/config"
	"$patched/tools/testing/selftests/proc/config" "$WORK/uprobes/$x86/config")

# Print the objects that the series changes, and those that include its headers.
objects() {
	{
		base_git diff --name-only --diff-filter=d base uprobes -- '*.c' ':!tools' \
			':!arch/arm64' |
			sed 's/c$/o/'
		printf '%s\n' arch/x86/kernel/uprobes.o kernel/{fork,signal,events/uprobes}.o
	} | sort -u
}

commits_compile() {
	local commit
	lock_each
	configure_each "${fragments[@]}"
	grep -x CONFIG_UPROBES=y "$out_each/.config"
	for commit; do
		checkout_each "$commit"
		make_each "${objects[@]}"
	done
}

# By the makefile of the tree, which does not know uprobes.h, to build/programs/x86.
selftests_are_built() {
	local out=$programs/x86
	mkdir -p "$out"
	make -B -C "$WORK/uprobes/$x86" OUTPUT="$out" "${tests[@]/#/"$programs/"}"
}

check "the tree 'uprobes' is that of the series" tree_is_the_series uprobes
check "git am takes it on the base" git_am base uprobes "uprobes-$(base_value VERSION)"
mapfile -t objects < <(objects)
mapfile -t commits < <(base_git rev-list --reverse base..uprobes)
check "each commit compiles" commits_compile "${commits[@]}"
check "W=1 and sparse find nothing new" no_new_warnings uprobes "${objects[@]}"
check "it compiles in 32 bits" compile_in_32_bits uprobes \
	<(cat "$TOPIC"/{,test/x86/}config) "${objects[@]}"
tests=(x86/uprobes-insns_{64,32} x86/uprobes-slots_64)
check "its selftests are built" selftests_are_built
guest uprobes-insns "${in_turn[@]}" -k uprobes -- "${tests[@]:0:2}"
# -s: see uprobes-live.sh.
guest uprobes-slots -s -m 1G -t 3600 -a rcupdate.rcu_expedited=1 -k uprobes -- "${tests[2]}"
for release in $(releases); do
	programs_do_the_same "$release" "${tests[@]:0:2}"
done
done_testing
