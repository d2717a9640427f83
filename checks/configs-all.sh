#!/bin/bash
# configs-all: the series compiles without a warning for architectures and configurations of
# which no kernel is booted, and the library's tests pass in big endian.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

# For s390, the kernel takes no clang before 15. Its gcc cannot be installed beside
# gcc-multilib. The emulator runs single programs.
unpack_s390() {
	local package
	[ ! -e "$s390/usr/bin/qemu-s390x-static" ] || return 0
	cd "$tmp"
	apt-get -q download {gcc,cpp}-12-s390x-linux-gnu binutils-s390x-linux-gnu \
		libgcc-12-dev-s390x-cross libc6-dev-s390x-cross linux-libc-dev-s390x-cross \
		qemu-user-static
	for package in ./*.deb; do
		dpkg-deb -x "$package" "$s390"
	done
	ln -sf s390x-linux-gnu-gcc-12 "$s390/usr/bin/s390x-linux-gnu-gcc"
}

# Compile fs/proc, and what the series changes in mm, for the architecture $1 with the
# options $2, as OPTION=y or =n, beside those of the guest; an architecture takes what it
# has of these. Arguments of make follow.
compiles() {
	local arch=$1 wanted=$2 out=$WORK/kernel/configs-$1 make mm=()
	shift 2
	make=(kernel_make "$patched" "$out" -s ARCH="$arch" "$@")
	mkdir -p "$out"
	# shellcheck disable=SC2086	# one word an option
	{
		cat "$ROOT/kernel/configs/procmap-guest.config" \
			"$patched/tools/testing/selftests/proc/config"
		printf 'CONFIG_%s\n' EXPERT=y $wanted
	} >"$tmp/fragments"
	"${make[@]}" KCONFIG_ALLCONFIG="$tmp/fragments" allnoconfig
	for option in $wanted; do
		case $option in
		*=y) grep -x "CONFIG_$option" "$out/.config" ;;
		*) (! grep "^CONFIG_${option%=n}=" "$out/.config") ;;
		esac
	done
	"${make[@]}" prepare
	rm -f "$out"/{fs/proc,mm}/*.o
	if [[ $wanted != *MMU=n* ]]; then
		mapfile -t mm < <(base_git diff --name-only base series -- 'mm/*.c' | sed 's/c$/o/')
	fi
	"${make[@]}" fs/proc/ "${mm[@]}" 2>&1 | tee "$tmp/output"
	! grep -E '(warning|error):' "$tmp/output"
}

# The library's tests as programs of s390. The emulator has neither ioctl, so those of
# tables and of the text have to pass, but for two: it has no executable mappings, either.
# The <linux/types.h> in tools/ lacks a type of s390.
big_endian_passes() {
	local test
	make -C "$ROOT/tools/lib/procmap" OUTPUT="$tmp/lib" CC=s390x-linux-gnu-gcc \
		OBJCOPY=s390x-linux-gnu-objcopy CPPFLAGS="-include asm/types.h" \
		CFLAGS="-O1 -g -static" SELFTESTS="$patched/tools/testing/selftests" tests
	for test in "$tmp"/lib/procmap-*-test; do
		"$s390/usr/bin/qemu-s390x-static" "$test" || :
	done | tee "$tmp/tests"
	sed -nE 's/^((not )?ok) [0-9]+ ((table|[a-z]+\.text)\..*)/\1 \3/p' "$tmp/tests" \
		>"$tmp/results"
	[ "$(grep -c ^ok "$tmp/results")" -gt 60 ]
	grep '^not ok' "$tmp/results" | diff - <(printf 'not ok %s\n' \
		change.text.long_name_gets_the_room_that_it_needs \
		files.text.addresses_are_those_of_the_linker)
}

s390=$BUILD/s390
all='SMP=y IA32_EMULATION=y SHMEM=y HUGETLBFS=y PROC_PAGE_MONITOR=y'
check "the tree 'patched' is that of the series" tree_is_the_series patched
check "riscv" compiles riscv ARCH_RV64I=y LLVM=1 CC=clang
check "riscv without an MMU" compiles riscv 'NONPORTABLE=y ARCH_RV64I=y MMU=n' LLVM=1 CC=clang
check "i386" compiles i386 ''
check "the compiler for s390 is unpacked" unpack_s390
PATH=$s390/usr/bin:$PATH CROSS_COMPILE=s390x-linux-gnu- check "s390" compiles s390 ''
PATH=$s390/usr/bin:$PATH check "the library's tests in big endian" big_endian_passes
for option in $all; do
	check "x86-64 without ${option%=y}" compiles x86_64 "64BIT=y ${all/$option/${option%y}n}"
done
use_arm64
check "arm64 without any of these" \
	compiles arm64 'COMPAT=n SHMEM=n HUGETLBFS=n PROC_PAGE_MONITOR=n'
done_testing
