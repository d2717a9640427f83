#!/bin/bash
# mainline: the fixes for Debian's newest kernel. Each selftest fails on Debian's own image,
# with CPUs that run at the same time, and passes on the patched kernel with the debug aids.
export BASE=mainline THREADS=multi KDIR='' SECURITY=1
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

selftests=$WORK/selftests
# TCG's default CPU has no AVX.
on_debians=(vm -t 300 -q '-cpu max' -k "stock:$FLAVOUR" --)
on_patched=(vm -t 1800 -q '-cpu max' -k patched --)

# UNKNOWN_COMMIT_ID: the package has no history.
# FILE_PATH_CHANGES: MAINTAINERS has the directories of the new files.
# AVOID_BUG: MT_BUG_ON(), which the maple tree's tests are made of.
# AVOID_EXTERNS: functions in a test that are defined by asm().
# ENOTSUPP: the error of arch/x86/kernel/uprobes.c.
# ENOSYS: the answer of a FUSE server to requests that it does not know.
checkpatch_is_clean() {
	checkpatch UNKNOWN_COMMIT_ID,FILE_PATH_CHANGES,AVOID_BUG,AVOID_EXTERNS,ENOTSUPP,ENOSYS \
		"$BUILD/series/"{"$BASE","perf-$(base_value VERSION)"}/*[1-9]*-*.patch
}

# The patch $1 applies to the base by itself, and what it changes compiles.
alone() {
	local objects=() path
	lock_each
	git -C "$each" am --abort 2>/dev/null || :
	git -C "$each" checkout -q -f --detach "$(base_git rev-parse base)"
	git -C "$each" -c user.name=check -c user.email=check@localhost am "$1"
	for path in $(git -C "$each" diff --name-only HEAD^); do
		case $path in
		tools/perf/*) make_perf "$each" "$WORK/perf-build" ;;
		tools/testing/selftests/*/Makefile)
			mkdir -p "$tmp/alone"
			make -C "$each/${path%/*}" OUTPUT="$tmp/alone"
			;;
		tools/*) ;;
		*.c) objects+=("${path%c}o") ;;
		esac
	done
	[ ${#objects[@]} -eq 0 ] || {
		configure_each "$ROOT"/kernel/configs/procmap-{guest,x86,debug,live}.config \
			"$ROOT/series/$BASE/config" <(printf 'CONFIG_%s=y\n' BLOCK XFS_FS)
		make_each "${objects[@]}"
	}
}

selftests_are_built() {
	local directory
	mkdir -p "$selftests"/{proc,x86}
	for directory in proc x86; do
		make -C "$patched/tools/testing/selftests/$directory" OUTPUT="$selftests/$directory"
	done
}

# Run tools/testing/radix-tree/maple with lib/maple_tree.c as it is in the commit $1, and
# without the calls of the test $2. It is built in the tree, and so in a copy.
run_maple() {
	local copy=$tmp/maple
	rm -rf "$copy"
	mkdir "$copy"
	base_git archive patched lib include arch/x86/include tools/{arch,build,include,lib} \
		tools/{scripts,testing/{radix-tree,shared}} | tar -x -C "$copy"
	base_git show "$1:lib/maple_tree.c" >"$copy/lib/maple_tree.c"
	[ $# -eq 1 ] || sed -i "/^\t*$2(/d" "$copy/tools/testing/radix-tree/maple.c"
	make -C "$copy/tools/testing/radix-tree" maple >/dev/null
	"$copy/tools/testing/radix-tree/maple"
}

maple_fails_without_fix() {
	local status=0
	run_maple base >"$tmp/output" 2>&1 || status=$?
	[ $status -ne 0 ]
	tail -n 5 "$tmp/output"
	grep 'check_rcu_root: Assertion .* failed' "$tmp/output"

	status=0
	run_maple base check_rcu_root >"$tmp/output" 2>&1 || status=$?
	[ $status -ne 0 ]
	tail -n 30 "$tmp/output"
	grep -E 'AddressSanitizer: SEGV .*mas_(next|prev)_slot|#[0-9]+ .* mas_(next|prev)_slot' \
		"$tmp/output"
	grep -w check_rcu_no_nodes "$tmp/output"
}

maple_passes() {
	run_maple patched >"$tmp/output" 2>&1
	grep -xE 'maple_tree: ([0-9]+) of \1 tests passed' "$tmp/output"
}

# Run a command on Debian's kernel, and expect the exit status $1 of the guest.
expect_on_debians() {
	local status=0
	"${on_debians[@]}" "${@:2}" >"$tmp/output" 2>"$tmp/complaint" || status=$?
	cat "$tmp/output" "$tmp/complaint"
	[ $status -eq "$1" ]
	grep '^not ok ' "$tmp/output"
}

# Every test of a program fails on Debian's kernel. On one CPU, as a first perf event makes the
# kernel patch code that other CPUs execute: see scripts/vm-init.
fails_on_debians() {
	local -x CPUS=1
	expect_on_debians 1 "$selftests/$1"
	! grep '^ok ' "$tmp/output"
}

# The oops is the one that the first patch shows, under the function $2. It is a race, which
# not every run of the test meets.
# shellcheck disable=SC2016	# for the guest's shell
oopses_on_debians() {
	local line
	expect_on_debians 125 sh -c 'for run in 1 2 3 4; do "$@" || exit; done' run \
		"$selftests/proc/proc-maps-unmap" -v "$1"
	for line in 'BUG: kernel NULL pointer dereference' 'RIP: 0010:mas_next_slot+' \
		'] \+lock_next_vma+' "] \+$2"; do
		grep "$line" "$tmp/complaint"
	done
}

passes() {
	[[ $1 != x86/* ]] || local -x CPUS=1
	"${on_patched[@]}" "$selftests/$1" | tee "$tmp/output"
	grep '^ok ' "$tmp/output"
	! grep -E '^not ok |# SKIP' "$tmp/output"
}

check "the series is made" "$ROOT/scripts/series" tree patched
check "git am takes it" git_am base patched "$BASE"
check "checkpatch --strict" checkpatch_is_clean
for patch in "$BUILD/series/"{"$BASE","perf-$(base_value VERSION)"}/*[1-9]*-*.patch; do
	check "alone: $(basename "$patch" .patch)" alone "$patch"
done
check "the selftests are built" selftests_are_built
check "tools/testing/radix-tree/maple fails without the fix" maple_fails_without_fix
check "and passes with it" maple_passes
check "it oopses by reading maps of an empty address space" \
	oopses_on_debians text proc_get_vma
check "it oopses by a query" oopses_on_debians query query_matching_vma
check "its query reads sockets, and waits for a FUSE server" \
	fails_on_debians proc/proc-query-build-id
for bits in 64 32; do
	check "its uprobes change $bits-bit instructions" fails_on_debians "x86/uprobes_insns_$bits"
done
release=$(debian_release newest)
check "live module for $release" "$ROOT/scripts/live" "$release"
take_tap perf-mainline vm -i -t 2100 -k "stock:$release" -a 'mitigations=off vsyscall=xonly' -- \
	"$CHECKS/programs/perf-test" "$WORK/perf-build"/{perf,no-ioctl.so} "$(module_of "$release")"
kernel_is_built patched
for test in proc/proc-{maps-unmap,query-build-id} x86/uprobes_insns_{64,32}; do
	check "$test passes with the series" passes "$test"
done
done_testing
