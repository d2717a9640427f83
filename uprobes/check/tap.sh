# shellcheck shell=bash
# Each section of this topic sources this file.
# shellcheck source=checks/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../checks/tap.sh"

TOPIC=$ROOT/uprobes
selftests=$patched/tools/testing/selftests

# Compile the tests for $2 bits, with the compiler and the options that follow, to the
# directory $1.
compile_tests() {
	local out=$1 bits=$2 source sources
	shift 2
	sources=("$TOPIC"/test/x86/*.c)
	[ "$bits" = 64 ] || sources=("$TOPIC"/test/x86/uprobes-insns.c)
	[ "$bits" = 32 ] || sources+=("$TOPIC"/live/test/*.c)
	for source in "${sources[@]}"; do
		"$@" -m"$bits" -D_GNU_SOURCE -O2 -pthread \
			-isystem "$patched/tools/include/uapi" -I "$selftests/proc" \
			-I "$TOPIC/test/x86" -I "$ROOT/live/test" "$source" \
			-o "$out/$(basename "$source" .c)-$bits"
	done
}

tests_are_built() {
	local out=$programs/uprobes
	mkdir -p "$out"
	compile_tests "$out" 64 gcc -Wall
	compile_tests "$out" 32 gcc -Wall
	cp -u "$selftests/proc/settings" "$out/"
}
