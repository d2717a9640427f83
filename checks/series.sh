#!/bin/bash
# series: it applies, and each commit of the kernel compiles by itself; "checks/series.sh tip":
# the last one compiles.
# shellcheck source=checks/shared/trees.sh
. "$(dirname "$0")/shared/trees.sh"

# The library and the tool compile in the tree that has both.
tools_compile() {
	local tools=$each/tools
	lock_each
	git -C "$each" checkout -q -f --detach "$(base_git rev-parse tools)"
	make -s -C "$tools/lib/procmap" OUTPUT="$tmp/lib" \
		CFLAGS='-O2 -Werror -Wno-sign-compare' all tests
	make -s -C "$tools/procmap" OUTPUT="$tmp/procmap" CFLAGS='-O2 -Werror'
}

# Print the objects of the kernel that the series changes (M) or adds (A).
objects_of() {
	base_git diff --name-only --diff-filter="$1" base patched -- 'fs/*.c' 'lib/*.c' 'mm/*.c' |
		sed 's/c$/o/'
}

# The commits given compile, with their selftests. Of those of BPF, which take minutes, one
# object, if the series changes it; the last commit is built as a whole elsewhere.
commits_compile() {
	local commit objects tools=$each/tools bpf=tools/testing/selftests/bpf
	lock_each
	mapfile -t objects < <(objects_of M)
	configure_each "$ROOT"/kernel/configs/procmap-{guest,x86}.config \
		"$patched/tools/testing/selftests/proc/config"
	for commit; do
		checkout_each "$commit"
		make_each fs/proc/ "${objects[@]}"
		rm -rf "$tmp/proc"
		mkdir "$tmp/proc"
		make -s -C "$tools/testing/selftests/proc" OUTPUT="$tmp/proc" all
		base_git diff --quiet base patched -- $bpf || gcc -Wall -Werror -O2 \
			-I "$tools"/include/uapi -I "$tools/lib" -I "$tools/include" -c \
			-o "$tmp/trace_helpers.o" "$each/$bpf/trace_helpers.c"
	done
}

no_warnings_in_the_engine() {
	local objects
	mapfile -t objects < <(objects_of AM)
	[ ${#objects[@]} -gt 2 ]
	no_new_warnings "$(base_git rev-list --reverse base..patched -- fs lib mm include)" \
		"${objects[@]}"
}

version=$(base_value VERSION)
mapfile -t commits < <("$ROOT/scripts/series" tree patched &&
	base_git rev-list --reverse base..patched)
if ! has_query_series; then
	check "git am takes PROCMAP_SCAN" git_am base patched "scan-$version"
else
	check "git am takes PROCMAP_QUERY" git_am base query "$BASE"
	check "git am takes PROCMAP_SCAN" git_am query patched "scan-$version"
	for further in tools perf; do
		check "git am takes the patches of $further" \
			git_am patched "$further" "$further-$version"
	done
	check "the library and the tool compile" tools_compile
fi
check "the mails name what the base has, and bring what is called" "$CHECKS/names"
for topic in $(topics); do
	check "git am takes the patches of $topic" git_am base "$topic" "$topic-$version"
done
if [ "${1:-}" = tip ]; then
	check "its last commit compiles" commits_compile patched
else
	check "each commit compiles" commits_compile "${commits[@]}"
	check "W=1 and sparse find nothing new in any" no_warnings_in_the_engine
	mapfile -t objects < <(objects_of M)
	! has_query_series || check "it compiles in 32 bits" compile_in_32_bits patched \
		"$patched/tools/testing/selftests/proc/config" fs/proc/ "${objects[@]}"
fi
done_testing
