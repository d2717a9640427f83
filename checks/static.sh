#!/bin/bash
# static: what needs no guest.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# Each with both compilers; the warnings of clang do not depend on what it optimizes.
# Left out is what the harness of the base brings along: warnings in its own lines, and
# parameters of the functions that it makes.
user_space_is_warning_free() {
	local compiler bits source
	local -a compile flags=(-D_GNU_SOURCE -O2 -Wall -Wextra -Wno-unused-parameter
		-isystem "$patched/tools/include/uapi")
	cd "$patched/tools/testing/selftests"
	for compiler in "ccache gcc -c -o $tmp/object.o" 'clang -fsyntax-only'; do
		read -ra compile <<<"$compiler"
		command -v "${compile[0]}"
		for bits in 64 32; do
			for source in proc/procmap[-_]*.c "$ROOT"/live/test/*.c \
				"$ROOT"/tools/testing/procmap-stress/*.c; do
				"${compile[@]}" -m"$bits" "${flags[@]}" -I . -I proc "$source" ||
					echo "$source: error:"
			done
		done
		for source in "$ROOT"/tools/procmap/*.c \
			"$ROOT"/tools/lib/procmap/examples/*.c \
			"$ROOT"/{,*/}bench/*.c "$CHECKS"/programs/*.c \
			"$ROOT"/*/{test/x86,live/test}/*.c; do
			"${compile[@]}" "${flags[@]}" -isystem "$ROOT/include/uapi" -I proc \
				-I "$ROOT/tools/lib/procmap" -I "$ROOT/live/test" \
				-I "$ROOT"/*/test/x86 "$source" || echo "$source: error:"
		done
	done >"$tmp/output" 2>&1
	grep -E '(warning|error):' "$tmp/output" |
		grep -v 'kselftest_harness\.h:[0-9:]* warning:' >"$tmp/warnings" || :
	cat "$tmp/warnings"
	[ ! -s "$tmp/warnings" ]
}

# Copy the header of a kernel that has the ioctl itself to $tmp/newer, nothing else.
get_newer_header() {
	local headers newer=$tmp/newer/linux
	headers=$(realpath "$("$ROOT/scripts/headers" "$(debian_release mainline)")")
	mkdir -p "$newer"
	cp "${headers%-cloud-*}-common/include/uapi/linux/fs.h" "$newer/"
	grep 'define PROCMAP_QUERY' "$newer/fs.h"
}

# Before, after and without a system header that has the ioctl itself. As C and C++,
# in 64 and 32 bits.
header_stands_anywhere() {
	local order flags
	for order in 'fs procmap_query' 'procmap_query fs' 'procmap_query' \
		'procmap_scan fs' 'fs procmap_scan'; do
		for flags in "-I$tmp/newer" "-isystem $patched/tools/include/uapi"; do
			# shellcheck disable=SC2086
			printf '#include <linux/%s.h>\n' $order >"$tmp/header.c"
			cat >>"$tmp/header.c" <<-END
				#define ASSERT(x) typedef char assertion[(x) ? 1 : -1]
				ASSERT(PROCMAP_QUERY == 0xC0686611 &&
				       sizeof(struct procmap_query) == 104);
			END
			for lang in 'c -m64' 'c -m32' 'c -std=c99' 'c++'; do
				# shellcheck disable=SC2086
				gcc -Wall -Werror -Wno-unused-local-typedefs $flags \
					-I"$ROOT/include/uapi" -c -o /dev/null \
					-x $lang "$tmp/header.c"
			done
		done
	done
}

# Print what a header, after options of gcc, declares of PROCMAP_QUERY.
query_abi() {
	gcc -E -P -x c "$@" | tr -s '[:space:]' ' ' |
		grep -oE '(enum procmap_query_flags|struct procmap_query) \{[^}]*\}'
	gcc -E -dM -x c "$@" | grep -E '^#define (PROCFS_IOCTL_MAGIC|PROCMAP_QUERY) '
}

# The project's header, where <linux/fs.h> has nothing of it, the kernel's own, and mainline's.
header_is_the_kernels() {
	mkdir -p "$tmp/older/linux"
	: >"$tmp/older/linux/fs.h"
	query_abi -I "$tmp/older" "$ROOT/include/uapi/linux/procmap_query.h" >"$tmp/ours"
	query_abi -isystem "$patched/tools/include/uapi" "$patched/include/uapi/linux/fs.h" |
		diff "$tmp/ours" -
	query_abi "$tmp/newer/linux/fs.h" | diff "$tmp/ours" -
	[ "$(wc -l <"$tmp/ours")" -eq 4 ]
}

kernel_doc() {
	local out
	out=$("$patched/scripts/kernel-doc" -none \
		"$ROOT"/fs/proc/*.[ch] "$ROOT"/include/uapi/linux/*.h 2>&1)
	echo "$out"
	[ -z "$out" ]
}

# README and the tables of kernels.rst have what kernel/kernels has.
pages_have_the_kernels() {
	local kernel from locks query
	local -A words=([-]=none [mmap]=mmap_lock [vma]='per-VMA locks')
	cd "$ROOT"
	grep -F "Debian's $(kernels_in_words)" README
	grep -F " linux-$(kernels_in_words)," Documentation/live.rst
	kernels | while read -r kernel from locks query _; do
		kernel=${kernel%+*}
		grep -E "^$kernel +${words[$query]} +${words[$locks]}(, 64 VMAs)?\$" \
			Documentation/kernels.rst
		grep -E "  $kernel +tested " Documentation/kernels.rst || [ "$from" = tree ]
	done
}

# What cannot take the version from the header.
versions_are_one() {
	local version
	version=$(project_version)
	cd "$ROOT"
	grep -E '^[0-9]' NEWS | sed 1q | grep -Fx "$version"
	grep -Fx "MODULE_VERSION(\"$version\");" live/live.c
	grep -Fx "__version__ = \"$version\"" tools/lib/procmap/python/procmap/__init__.py
}

shell_scripts() {
	cd "$ROOT"
	git ls-files -z --cached --others --exclude-standard |
		xargs -0 grep -lE '^#!/bin/|^# shellcheck shell' >"$tmp/scripts"
	xargs shellcheck -x <"$tmp/scripts"
}

# In columns of 8 for a tab.
shell_lines_are_short() {
	local script
	while read -r script; do
		expand "$ROOT/$script" |
			awk -v script="$script" 'length > 100 { print script ":" NR }'
	done <"$tmp/scripts" >"$tmp/long"
	[ -s "$tmp/scripts" ]
	diff /dev/null "$tmp/long"
}

check "shellcheck" shell_scripts
check "lines of shell have 100 columns at most" shell_lines_are_short
check "there is one version" versions_are_one
check "the pages have the kernels" pages_have_the_kernels
check "kernel-doc" kernel_doc
check "the mails name what the base has, and bring what is called" "$CHECKS/names"
check "user space compiles without a warning" user_space_is_warning_free
check "mainline's header is there" get_newer_header
check "the header stands anywhere" header_stands_anywhere
check "the header declares what the kernel's and mainline's do" header_is_the_kernels
done_testing
