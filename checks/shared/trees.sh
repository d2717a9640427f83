# shellcheck shell=bash
# The series: its trees and mails, its commits one after the other, and checkpatch.
# shellcheck source=checks/shared/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

patched=$WORK/patched

base_git() {
	git --git-dir="$WORK/git" "$@"
}

# The tree in which commits are tried one after the other, and what is compiled of it.
each=$WORK/each
out_each=$WORK/kernel/each-$section

# No other section may move it before the check ends that calls this.
lock_each() {
	lock "each-${WORK##*/}"
}

# Apply the patches of build/series/$3 on top of $1, and expect the tree of the branch $2.
git_am() {
	lock_each
	base_git worktree prune
	[ -e "$each/.git" ] ||
		base_git worktree add -q --detach "$each" base
	git -C "$each" am --abort 2>/dev/null || :
	git -C "$each" checkout -q -f --detach "$(base_git rev-parse "$1")"
	git -C "$each" -c user.name=check -c user.email=check@localhost am \
		"$BUILD/series/$3"/*[1-9]*-*.patch
	git -C "$each" diff --exit-code --stat "$(base_git rev-parse "$2")"
}

# Build perf from the tree $1 in the directory $2, and what checks/programs/perf-test
# preloads. Neither recording nor printing needs what is left out; of the libraries, only
# libelf is there.
make_perf() {
	local without=(AUXTRACE BPF_SKEL CAPSTONE DEMANGLE DWARF GTK2 JEVENTS JVMTI LIBAUDIT
		LIBBABELTRACE LIBBPF LIBCAP LIBCRYPTO LIBDEBUGINFOD LIBDW LIBLLVM LIBNUMA LIBPERL
		LIBPFM4 LIBPYTHON LIBTRACEEVENT LIBUNWIND LIBZSTD LZMA RUST SDT SLANG)
	local flags=("${without[@]/#/NO_}")
	mkdir -p "$2"
	LC_ALL=C make -C "$1/tools/perf" JOBS="$(nproc)" O="$2" CC="ccache gcc" \
		"${flags[@]/%/=1}"
	gcc -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -shared -fPIC -o "$2/no-ioctl.so" \
		"$CHECKS/programs/no-ioctl.c"
}

make_each() {
	kernel_make "$each" "$out_each" -s ${arch:+ARCH="$arch"} "$@"
}

configure_each() {
	mkdir -p "$out_each"
	cat "$@" >"$tmp/fragments"
	make_each KCONFIG_ALLCONFIG="$tmp/fragments" allnoconfig
}

checkout_each() {
	git -C "$each" log -1 --format=%s "$1"
	git -C "$each" checkout -q -f --detach "$1"
	make_each KCONFIG_ALLCONFIG="$tmp/fragments" allnoconfig
}

# The objects $3… of the branch $1, with the options in the file $2, compile without a warning
# for a kernel of 32 bits, which is booted nowhere.
compile_in_32_bits() {
	local arch=i386
	lock_each
	configure_each "$ROOT/kernel/configs/procmap-guest.config" "$2"
	checkout_each "$1"
	grep -x CONFIG_X86_32=y "$out_each/.config"
	make_each KCFLAGS=-Werror "${@:3}"
}

# Print the warnings of W=1 and sparse about those objects that a commit has the sources of,
# without line numbers. Sparse knows only functions that always lock, or never: these use
# either of two locks.
warnings_at() {
	local object there=()
	checkout_each "$1" >&2
	shift
	for object; do
		[ ! -e "$each/${object%o}c" ] || there+=("$object")
	done
	(cd "$out_each" && rm -f "${there[@]}")
	make_each W=1 C=2 "${there[@]}" 2>&1 | tee -a /dev/stderr |
		sed -nE "/context imbalance in '(walk_take_lock|walk_find_without_writer)'/d
			/context imbalance in '(procmap_walk_unlock|smaps_keep_vma)'/d
			/(warning|error):/ { s,^.*$each/,,; s/:[0-9]+//g; p }" | sort -u
}

# Of the objects at commits, W=1 and sparse say nothing that they do not say at base.
no_new_warnings() {
	local commit new=
	lock_each
	warnings_at base "${@:2}" >"$tmp/before"
	for commit in $1; do
		warnings_at "$commit" "${@:2}" >"$tmp/after"
		new+=$(comm -13 "$tmp/before" "$tmp/after")
	done
	echo "new: ${new:-nothing}"
	[ -z "$new" ]
}

# A tree with changes of its own is never overwritten: the checks would be about
# them, and not about the series.
tree_is_the_series() {
	"$ROOT/scripts/series" tree "$1"
	[ "$(git -C "$WORK/$1" rev-parse HEAD)" = "$(base_git rev-parse "$1")" ] ||
		{ echo "$WORK/$1 has commits of its own"; return 1; }
	git -C "$WORK/$1" status --porcelain -uno | tee "$tmp/changes"
	[ ! -s "$tmp/changes" ]
}

# Its report on what follows the errors to ignore has to be empty.
checkpatch() {
	local ignored=$1 reports
	shift
	# The PATH is for its spdxcheck.py, which needs the system's python3-ply.
	cd "$patched"
	[ -x scripts/checkpatch.pl ] && [ -e "${!#}" ]
	reports=$(PATH=/usr/bin:$PATH scripts/checkpatch.pl --strict \
		--no-summary --terse --ignore "$ignored" "$@" 2>&1) || :
	printf '%s\n' "$reports"
	[ -z "$reports" ]
}
