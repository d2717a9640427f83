# shellcheck shell=bash
# What every script here starts with: its errors, its folders, its progress.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BASE=${BASE:-linux-6.1}
KDIR=${KDIR:-}
BUILD=${BUILD:-$ROOT/build}
# The trees and kernels of a base; each tree that KDIR names has its own.
# shellcheck disable=SC2034	# used by those that source this
WORK=$BUILD/$BASE${KDIR:+-$(cksum <<<"$KDIR" | cut -d ' ' -f 1)}
export BASE KDIR BUILD
# A make started here is the first of its tree, whatever make started us:
# kselftest sets OUTPUT only in a first one, and KVER=… is not for the kernel's.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL

# One line that names the thing and the way out.
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 2
}

say() {
	printf '%s\n' "$*" >&2
}

# Run a build, its output in the file $1; a terminal sees its lines counted, and
# a failure its last ones.
logged() {
	local log=$1 meter=cat status
	shift
	mkdir -p "$(dirname "$log")"
	[ -t 2 ] && meter="pv -lrbt -N ${log##*/}"
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

# Run the make of the kernel tree $1 for the objects in $2. The same input gives
# the same objects, wherever the checkout is, so that ccache finds them again.
kernel_make() {
	local source=$1 out=$2
	shift 2
	CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-10G} \
	CCACHE_IGNOREOPTIONS='-fmacro-prefix-map=*' \
	KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=procmap KBUILD_BUILD_HOST=guest \
	LC_ALL=C make -C "$source" O="$out" LOCALVERSION= CC="ccache gcc" \
		-j"$(nproc)" "$@"
}

# Hold the lock of that name until this script ends: two runs in one checkout
# must not build the same thing at once.
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

# The releases of Debian's own kernels, as apt knows them, the newest last: of
# the packages linux-$1-*, those of version $2 and flavour $3. The debug and
# unsigned variants end otherwise.
debian_kernels() {
	local version=${2//./\\.}
	version=${version//+/\\+}
	apt-cache pkgnames "linux-$1-$2" |
		sed -nE "s/^linux-$1-($version(\.[0-9]+)*(\+[a-z0-9]+)?(-[0-9]+)?-$3)\$/\1/p" |
		sort -V
}
