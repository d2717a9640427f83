#!/bin/bash
# lib-memory: the library's tests under valgrind and the sanitizers; what it parses, fuzzed.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

lib=$ROOT/tools/lib/procmap

tests_are_sanitized() {
	make -C "$lib" OUTPUT="$tmp/sanitized" CC=clang \
		CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" \
		SELFTESTS="$patched/tools/testing/selftests" tests
}

lib_is_fuzzed() {
	local corpus=$tmp/corpus
	mkdir -p "$corpus"
	tail -n 9 /proc/self/maps >"$corpus/maps"
	head -n 30 /proc/self/smaps >"$corpus/smaps"
	printf '%s\n' '1-2 r-xs f00 8:12 18446744073709551615 /a\012b (deleted)' >"$corpus/name"
	for elf in "$programs"/lib{64,32}/libprocmap.so; do
		head -c 4096 "$elf" >"$corpus/elf-$(cksum <"$elf" | cut -d ' ' -f 1)"
	done
	clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -isystem "$ROOT/include/uapi" \
		-I "$lib" -o "$tmp/fuzz" "$lib/test/fuzz.c" "$lib"/*.c
	cd "$tmp"	# what makes it fail is left there
	"$tmp/fuzz" -seed=1 -runs=100000 -max_len=4096 "$corpus"
}

# The filters of one test hold for valgrind, too, and the sanitizers map between its lines.
shopt -s extglob
for test in "$programs"/lib64/procmap-!(self)-test; do
	take_tap "host-lib-64-valgrind-${test##*/}" valgrind "$test"
done
check "the tests are built with ASan and UBSan" tests_are_sanitized
for test in "$tmp"/sanitized/procmap-!(self)-test; do
	take_tap "host-lib-64-sanitized-${test##*/}" "$test"
done
check "fuzzed" lib_is_fuzzed
done_testing
