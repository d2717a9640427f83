# shellcheck shell=bash
# Every script sources this file: the directories, errors, logs and locks.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# Print the release of this machine's Debian: 12, 13.
debian() {
	sed -nE 's/^VERSION_ID="?([0-9]+)"?$/\1/p' /etc/os-release
}

# Print the version of the kernel tree $1: 6.18.
tree_version() {
	sed -n 's/^VERSION = //p; s/^PATCHLEVEL = /./p' "$1/Makefile" 2>/dev/null | tr -d '\n' || :
}

# The base is that of the tree, if there is one. Not every Debian has the kernels of the default.
default=$ROOT/series/default-$(debian)
[ -e "$default" ] || default=$ROOT/series/default
KDIR=${KDIR:-}
if [ -z "${BASE:-}" ]; then
	BASE=linux-$(tree_version "${KDIR:-/dev/null}")
	[ -e "$ROOT/series/$BASE/base" ] || BASE=$(cat "$default")
fi
BUILD=${BUILD:-$ROOT/build}
# The trees and kernels of the base. Each KDIR has its own.
# shellcheck disable=SC2034	# used by those that source this
WORK=$BUILD/$BASE${KDIR:+-$(cksum <<<"$KDIR" | cut -d ' ' -f 1)}
# The flavour of Debian's kernels that runs and benchmarks use.
# shellcheck disable=SC2034
FLAVOUR=cloud-amd64
export BASE KDIR BUILD
# A make that a script starts must not inherit from the make that started the
# script: kselftest sets OUTPUT only at MAKELEVEL 0, and KVER=… is not meant for
# the kernel's makefiles.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL

# Print one line that names the problem and what to do, and exit.
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 2
}

say() {
	printf '%s\n' "$*" >&2
}

[ -f "$ROOT/series/$BASE/base" ] ||
	die "there is no base '$BASE' in series/; there are:" \
	    "$(cd "$ROOT/series" && dirname linux-*/base | paste -sd ' ')"

# Print the value of a line KEY=value of the base, or its default.
base_value() {
	grep -h "^$1=" "$ROOT"/series/{"$BASE/base",common/base-defaults} |
		sed -n '1s/^[^=]*=//p' ||
		die "series/$BASE/base has no line $1="
}

# Does the base have a series of PROCMAP_QUERY, or of PROCMAP_SCAN alone?
has_query_series() {
	compgen -G "$ROOT/series/$BASE/*.patch" >/dev/null
}

# Print the version of the library, the tool, the module and the packages, which the header
# has as 0xMMmmpp.
project_version() {
	local version
	version=$(sed -n 's/^#define PROCMAP_VERSION\s*//p' "$ROOT/tools/lib/procmap/procmap.h")
	echo "$((version >> 16)).$((version >> 8 & 255)).$((version & 255))"
}

kernels() {
	sed '/^#/d' "$ROOT/kernel/kernels"
}

kernel_versions() {
	kernels | sed 's/[+\t].*//' | uniq
}

# Print Debian's as "5.10, 6.1 and 6.12".
kernels_in_words() {
	kernels | awk '$2 != "tree" { sub(/\+.*/, "", $1); print $1 }' | uniq | paste -sd ' ' |
		sed 's/ /, /g; s/, \([^ ]*\)$/ and \1/'
}

# Print the row of kernel/kernels for a version or release of the kernel.
kernel_row() {
	local kernel row number=${1%%[-+]*} found=''
	while read -r kernel row; do
		[[ $number. != "${kernel%+*}".* || $1 != *"${kernel#"${kernel%+*}"}"* ]] ||
			found="$kernel $row"
	done < <(kernels)
	echo "$found"
}

# Print Debian's first kernel with an ioctl of its own, and the newest one.
mainline_kernel() {
	kernels | awk '$2 != "tree" && $4 != "-" { print $1; exit }'
}

latest_kernel() {
	kernels | awk '$2 != "tree" { latest = $1 } END { print latest }'
}

# Print the bases whose source this release of Debian has.
own_bases() {
	local base
	apt-cache pkgnames linux-source- | sed 's/^linux-source-/linux-/' | sort |
		while read -r base; do
			[ ! -e "$ROOT/series/$base/base" ] || echo "$base"
		done
}

# Print the topics: directories of the project with a series of their own for the base,
# TOPIC/series/BASE/, with a cover letter.
topics() {
	(cd "$ROOT" && compgen -G "*/series/$BASE/cover-letter" | sed 's,/.*,,') || :
}

# Run a build with its output in the file $1. A terminal shows how many lines it
# has printed; if it fails, the last lines are shown.
logged() {
	local log=$1 meter=cat status
	shift
	mkdir -p "$(dirname "$log")"
	! [ -t 2 ] || ! command -v pv >/dev/null || meter="pv -lrbt -N ${log##*/}"
	# Not as a condition: that would keep set -e from ending a function.
	set +e
	(set -e; "$@") 2>&1 | tee "$log" | $meter >/dev/null
	status=$?
	set -e
	if [ $status -ne 0 ]; then
		tail -n 30 "$log" >&2
		die "failed: $*; the whole output is in $log"
	fi
}

# Run make in the kernel tree $1 with the objects in $2. Objects do not depend on
# where the checkout is, so that ccache finds them again. It goes by the files that the
# compiler names: to preprocess each source beforehand takes a fifth of the time.
kernel_make() {
	local source=$1 out=$2
	shift 2
	CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 \
	CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-10G} CCACHE_IGNOREOPTIONS='-fmacro-prefix-map=*' \
	KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=procmap KBUILD_BUILD_HOST=guest \
	LC_ALL=C make -C "$source" O="$out" LOCALVERSION= CC="ccache ${CROSS_COMPILE:-}gcc" \
		-j"$(nproc)" "$@"
}

# Run make for this machine as a user without rights, to whom the directory $1 goes with all in
# it: the makefiles of a tree are anybody's.
make_without_rights() {
	local out=$1
	shift
	set -- "$@" ARCH=x86 CROSS_COMPILE=
	[ "$(id -u)" -eq 0 ] || { make "$@"; return; }
	chown -R nobody: "$out"
	HOME=$out setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs make "$@"
}

# Build modules in the directory $2, for the kernel with the headers or the build in $1.
make_modules() {
	local headers=$1 out=$2
	shift 2
	if [[ $headers == "$BUILD"/trees/* ]]; then
		make_without_rights "$out" -C "$headers" M="$out" "$@" modules
	else
		make -C "$headers" M="$out" "$@" modules
	fi
}

# Take the lock $1 until this script ends: two runs in one checkout must not
# build the same thing at the same time.
lock() {
	mkdir -p "$BUILD"
	exec 9>"$BUILD/$1.lock"
	flock 9
}

install_packages() {
	local sudo=
	[ "$(id -u)" -eq 0 ] || sudo=sudo
	say "installing $*"
	logged "$BUILD/log/apt" $sudo env DEBIAN_FRONTEND=noninteractive sh -c \
		'apt-get -q update && apt-get -q -y --no-install-recommends install "$@"' \
		sh "$@"
}

# Write an apt.conf to the directory $1, with which apt looks at the lines $2 of a
# sources.list instead, and fetches the lists. $3… are more of it.
own_apt() {
	local apt=$1
	mkdir -p "$apt/lists/partial"
	: >"$apt/status"
	printf '%s\n' "$2" >"$apt/sources.list"
	printf '%s\n' "Dir::Etc::sourcelist \"$apt/sources.list\";" \
		'Dir::Etc::sourceparts "-";' "Dir::State::lists \"$apt/lists\";" \
		"Dir::State::status \"$apt/status\";" "Dir::Cache \"$apt\";" \
		"${@:3}" >"$apt/apt.conf.new"
	APT_CONFIG=$apt/apt.conf.new logged "$BUILD/log/apt" \
		apt-get -q -o APT::Update::Error-Mode=any update
	mv "$apt/apt.conf.new" "$apt/apt.conf"
}

# The architecture of the packages that apt looks at, if it is not this machine's.
foreign=

use_arm64_packages() {
	foreign=arm64
	APT_CONFIG=$("$ROOT/scripts/arm64")/apt.conf
	export APT_CONFIG
}

# Print the mirror of the host's own lists.
debian_mirror() {
	# shellcheck disable=SC2016	# for apt
	env -u APT_CONFIG apt-get indextargets --format '$(REPO_URI)' \
		'Created-By: Packages' 'Label: Debian' | sed -n 1p
}

# Have apt look at the suite $1 of Debian instead, such as its backports, on the mirror of the
# host's own lists. What it fetches for that is in build/.
use_suite() {
	local mirror suite=$1 options=()
	[ -z "$foreign" ] ||
		options=("APT::Architecture \"$foreign\";" "APT::Architectures { \"$foreign\"; };")
	mirror=$(debian_mirror)
	own_apt "$BUILD/apt/$suite$foreign" "deb $mirror $suite main" "${options[@]}"
	export APT_CONFIG=$BUILD/apt/$suite$foreign/apt.conf
}

# Unless a command prints something now, have apt look at the suite of the kernel $1. Status 1:
# it prints nothing there, either.
use_suite_of() {
	local from
	[ -z "$("${@:2}")" ] || return 0
	read -r _ from _ < <(kernel_row "$1")
	[ "${from:-tree}" != tree ] || return 1
	use_suite "$from"
	[ -n "$("${@:2}")" ]
}

# Unpack packages that apt knows into the directory $1.
unpack() {
	local to=$1 packages
	packages=$(mktemp -d "$BUILD/packages.XXXXXX")
	chmod 777 "$packages"	# so that apt's own user can write it
	(cd "$packages" && logged "$BUILD/log/download" apt-get -q download "${@:2}")
	find "$packages" -name '*.deb' -exec dpkg-deb -x {} "$to" \;
	rm -rf "$packages"
}

# Have compilers build for arm64 from here on: CROSS_COMPILE is for 64 bits.
use_arm64() {
	arm64=$("$ROOT/scripts/arm64")
	export PATH=$arm64/cross/usr/bin:$PATH CROSS_COMPILE=aarch64-linux-gnu-
	export LD_LIBRARY_PATH=$arm64/cross/usr/lib/x86_64-linux-gnu
}

# List the releases of Debian's kernels that apt knows, the newest last: those of
# the packages linux-$1-* with version $2, such as 6.12 or 6.12+deb13, and flavour $3. The
# pattern leaves out the debug and unsigned variants; a package of two numbers only depends
# on the newest.
debian_kernels() {
	local version=${2%%+*} suffix='(\+[a-z0-9]+)?'
	[[ $2 != *+* ]] || suffix="\\+${2#*+}"
	apt-cache pkgnames "linux-$1-$version" |
		sed -nE "/^linux-$1-[0-9]+\.[0-9]+-$3\$/d
			s/^linux-$1-(${version//./\\.}(\.[0-9]+)*$suffix(-[0-9]+)?-$3)\$/\1/p" |
		sort -V
}
