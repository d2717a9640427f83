#!/bin/bash
# series: it applies, and each commit compiles by itself; "checks/series.sh tip": the last
# one does.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

each=$WORK/each
out_each=$WORK/kernel/each

# Apply the patches on top of $1, and expect the tree of the branch $2.
git_am() {
	local from=$1 branch=$2
	shift 2
	base_git worktree prune
	[ -e "$each/.git" ] ||
		base_git worktree add -q --detach "$each" base
	git -C "$each" am --abort 2>/dev/null || :
	git -C "$each" checkout -q -f --detach "$(base_git rev-parse "$from")"
	git -C "$each" -c user.name=check -c user.email=check@localhost am "$@"
	git -C "$each" diff --exit-code --stat "$(base_git rev-parse "$branch")"
}

make_each() {
	kernel_make "$each" "$out_each" -s "$@"
}

configure_each() {
	mkdir -p "$out_each"
	cat "$ROOT/kernel/configs/procmap-guest.config" \
		"$patched/tools/testing/selftests/proc/config" >"$tmp/fragments"
	make_each KCONFIG_ALLCONFIG="$tmp/fragments" allnoconfig
}

# All that the series has in user space at this commit. selftests/bpf takes minutes:
# one object here, if the series changes it; it is the same in the last commit, which
# is built as a whole.
compile_user_space() {
	local tools=$each/tools out=$tmp/each
	rm -rf "$out"
	mkdir -p "$out/proc"
	make -s -C "$tools/testing/selftests/proc" OUTPUT="$out/proc" all
	base_git diff --quiet base series -- tools/testing/selftests/bpf || gcc -Wall -Werror -O2 -I "$tools/include/uapi" -I "$tools/lib" \
		-I "$tools/include" -c -o "$out/trace_helpers.o" \
		"$tools/testing/selftests/bpf/trace_helpers.c"
	[ ! -e "$tools/lib/procmap" ] || make -s -C "$tools/lib/procmap" \
		OUTPUT="$out/lib" CFLAGS='-O2 -Werror -Wno-sign-compare' all procmap-test
	[ ! -e "$tools/procmap" ] || make -s -C "$tools/procmap" \
		OUTPUT="$out/procmap" CFLAGS='-O2 -Werror'
}

# The commits given compile.
commits_compile() {
	local commit
	configure_each
	for commit; do
		git -C "$each" log -1 --format=%s "$commit"
		git -C "$each" checkout -q --detach "$commit"
		make_each olddefconfig
		make_each fs/proc/ fs/ioctl.o
		compile_user_space
	done
	git -C "$each" diff --exit-code --stat series -- tools/testing/selftests/bpf
}

# What W=1 and sparse say about objects at a commit, without line numbers. Sparse
# knows only functions that always lock, or never: these two take either of two locks.
warnings_at() {
	local commit=$1
	shift
	git -C "$each" checkout -q --detach "$commit"
	make_each olddefconfig
	(cd "$out_each" && rm -f "$@")
	make_each W=1 C=2 "$@" 2>&1 | tee -a /dev/stderr |
		sed -nE '/(warning|error):/ { s/^.*(fs\/proc\/)/\1/; s/:[0-9]+//g; p }' |
		grep -vE "context imbalance in '(un)?lock_walk'" | sort -u
}

no_new_warnings() {
	local new objects
	mapfile -t objects < <(base_git diff --name-only base series -- 'fs/*.c' |
		sed 's/c$/o/')
	[ ${#objects[@]} -gt 2 ]
	warnings_at base fs/proc/task_mmu.o >"$tmp/before"
	warnings_at series "${objects[@]}" >"$tmp/after"
	new=$(comm -13 "$tmp/before" "$tmp/after")
	echo "new: ${new:-nothing}"
	[ -z "$new" ]
}

check "the series is made" "$ROOT/scripts/series" tree patched
check "git am takes the series" git_am base series \
	"$BUILD/series/$BASE"/*[1-9]*-*.patch
[ -z "$(base_fact PERF)" ] ||
	check "git am takes perf's patches" git_am series perf \
		"$BUILD/series/$(base_fact PERF)"/*.patch
if [ "${1:-}" = tip ]; then
	check "its last commit compiles" commits_compile series
	done_testing
	exit
fi
mapfile -t commits < <(base_git rev-list --reverse base..series)
check "each commit compiles" commits_compile "${commits[@]}"
check "W=1 and sparse find nothing new" no_new_warnings
done_testing
