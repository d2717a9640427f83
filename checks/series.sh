#!/bin/bash
# series: it applies, and each commit compiles by itself; "checks/series.sh tip": the last
# one does.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

# All that the series has in user space at this commit. selftests/bpf takes minutes:
# one object here, if the series changes it; it is the same in the last commit, which
# is built as a whole.
compile_user_space() {
	local tools=$each/tools out=$tmp/each
	rm -rf "$out"
	mkdir -p "$out/proc"
	make -s -C "$tools/testing/selftests/proc" OUTPUT="$out/proc" all
	base_git diff --quiet base series -- tools/testing/selftests/bpf ||
		gcc -Wall -Werror -O2 -I "$tools/include/uapi" -I "$tools/lib" \
			-I "$tools/include" -c -o "$out/trace_helpers.o" \
			"$tools/testing/selftests/bpf/trace_helpers.c"
}

# The library compiles in its commit, and the tool in its own.
tools_compile() {
	local tools=$each/tools commit
	lock_each
	for commit in $(base_git rev-list --reverse series..tools); do
		git -C "$each" checkout -q -f --detach "$commit"
		make -s -C "$tools/lib/procmap" OUTPUT="$tmp/lib" \
			CFLAGS='-O2 -Werror -Wno-sign-compare' all procmap-test
		[ ! -e "$tools/procmap" ] ||
			make -s -C "$tools/procmap" OUTPUT="$tmp/procmap" CFLAGS='-O2 -Werror'
	done
	[ -e "$tmp/procmap/procfs_query" ]
}

# The commits given compile.
commits_compile() {
	local commit
	lock_each
	configure_each "$ROOT"/kernel/configs/procmap-{guest,x86}.config \
		"$patched/tools/testing/selftests/proc/config"
	for commit; do
		checkout_each "$commit"
		make_each fs/proc/ fs/ioctl.o
		compile_user_space
	done
	git -C "$each" diff --exit-code --stat series -- tools/testing/selftests/bpf
}

no_warnings_in_the_engine() {
	local objects
	lock_each
	mapfile -t objects < <(base_git diff --name-only base series -- 'fs/*.c' |
		sed 's/c$/o/')
	[ ${#objects[@]} -gt 2 ]
	no_new_warnings series "${objects[@]}"
}

check "the series is made" "$ROOT/scripts/series" tree patched
check "git am takes the series" git_am base series "$BASE"
for further in tools perf; do
	check "git am takes the patches of $further" \
		git_am series "$further" "$further-$(base_fact VERSION)"
done
for room in $(rooms); do
	check "git am takes the patches of $room" git_am base "$room" "$room-$(base_fact VERSION)"
done
check "the library and the tool compile" tools_compile
if [ "${1:-}" = tip ]; then
	check "its last commit compiles" commits_compile series
	done_testing
	exit
fi
mapfile -t commits < <(base_git rev-list --reverse base..series)
check "each commit compiles" commits_compile "${commits[@]}"
check "W=1 and sparse find nothing new" no_warnings_in_the_engine
done_testing
