#!/bin/bash
# kselftest-all: the kernel's own tests of procfs and of mappings, as 7.3 has them, on Debian's
# kernels: each ends with the live module as it does without.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

source=$BUILD/linux-7.3/base/tools/testing/selftests
out=$BUILD/kselftest
mm=("$out"/mm/{merge,mseal_test,mremap_test,guard-regions})

build_tests() {
	BASE=linux-7.3 KDIR='' "$ROOT/scripts/series" tree base
	rm -rf "$out"
	mkdir -p "$out"/{proc,mm}
	make -C "$source/proc" OUTPUT="$out/proc"
	make -C "$source/mm" OUTPUT="$out/mm" "${mm[@]}"
	cp -r "$source/kselftest" "$out/"
}

# Run the tests in a guest with these options of scripts/vm, and write how each ended to the
# file $1. proc-maps-race takes longer than the runner waits, where CPUs are emulated.
run_tests() {
	local status=0
	kselftest_override_timeout=300 vm -t 900 "${@:2}" -- \
		bash -c "$runner" runner "$out" "${tests[@]}" >"$1.out" || status=$?
	cat "$1.out"
	awk '/^# selftests: / { program = $3 $4 }
		/^(# )?(not )?ok / { sub(/^# /, ""); print program ": " $0 }' "$1.out" >"$1"
	[ "$(grep -c ' selftests: ' "$1")" -eq ${#tests[@]} ] && [ $status -lt 124 ]
}

tests_on() {
	local release tests guest
	release=$(debian_release "$1") || {
		skip "$section" "tests on $1" 'the mirror has no such kernel'
		return
	}
	mapfile -t tests < <(cd "$out" && printf '%s\n' proc/* "${mm[@]#"$out"/}")
	if [[ $(kernel_row "$release") == *guard-regions* ]]; then
		unset 'tests[-1]'
		skip "$section" "mm/guard-regions on $release" 'guard regions are new in 6.13'
	fi
	check "live module for $release" "$ROOT/scripts/live" "$release"
	guest=(-k "stock:$release")
	check "tests on $release run" run_tests "$tmp/without" "${guest[@]}"
	check "tests on $release run with the module" run_tests "$tmp/with" "${guest[@]}" -M live
	check "tests on $release end with the module as without" diff "$tmp/without" "$tmp/with"
	sed -n '/: not ok/s/^/# without the module, too: /p' "$tmp/without"
}

check "the kernel's own tests are built" build_tests
for kernel in "$(mainline_kernel)" "$(latest_kernel)"; do
	tests_on "$kernel-$FLAVOUR"
done
done_testing
