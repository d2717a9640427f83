# shellcheck shell=bash
# Each section of the check sources this file, and prints TAP, a line a check.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

CHECKS=$ROOT/checks
patched=$WORK/patched
programs=$BUILD/programs
export TOOL=$programs/procmap/procfs_query
export VALGRIND_OPTS="-q --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite,indirect,possible"
section=${section:-$(basename "$0" .sh)}
log=$BUILD/log/check-$section
results=0
failures=0

mkdir -p "$BUILD/log"
rm -rf "$log"
mkdir "$log"
tmp=$(mktemp -d)
# shellcheck disable=SC2046	# one word a job
trap 'kill $(jobs -p) 2>/dev/null || :; wait; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# For sections that compile: leave the CPUs to the guests that run beside them.
at_idle_priority() {
	chrt --idle --pid 0 $$
}

# Run a command or function as the check NAME. What it prints is kept; the end of
# it is shown if it fails.
check() {
	local name=$1 status output
	output=$log/$(tr -c '[:alnum:]\n' - <<<"$1")
	shift
	# Not as a condition: that would keep set -e from ending it.
	set +e
	(set -e; "$@") >"$output" 2>&1 </dev/null
	status=$?
	set -e
	results=$((results + 1))
	if [ $status -eq 0 ]; then
		echo "ok - $name"
	else
		failures=$((failures + 1))
		echo "not ok - $name"
		{
			echo "# failed: $section: $name; its output ends:"
			tail -n 30 "$output" | sed 's/^/#   /'
		} >&2
	fi
}

# The plan. A section that does not come this far has none, and fails.
done_testing() {
	echo "1..$results"
	[ $results -gt 0 ] && [ $failures -eq 0 ]
}

# Wait for a command to succeed, so many seconds at most.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# Run a command, and expect this exit status of it.
expect() {
	local want=$1 status=0
	shift
	"$@" || status=$?
	[ "$status" -eq "$want" ] || {
		echo "exit status $status, not $want: $*"
		return 1
	}
}

# Boot a guest that dies with this section.
vm() {
	setpriv --pdeathsig TERM "$ROOT/scripts/vm" "$@"
}

# Take what a producer of TAP has printed into the file $2 as results of this section. Its
# skips have to be in checks/skips.
take_tap() {
	local lines=$tmp/taken locks lacks
	read -r _ _ locks _ lacks < <(kernel_row "${release:-$(base_value VERSION)}")
	"$CHECKS/parse-tap" "$1" "$locks,$lacks" "$2" "$CHECKS/skips" >"$lines"
	cat "$lines"
	results=$((results + $(grep -cE '^(ok|not ok) ' "$lines" || :)))
	failures=$((failures + $(grep -c '^not ok ' "$lines" || :)))
}

# Run programs of build/programs in a guest, by the base's kselftest runner:
#
#	guest NAME [options of scripts/vm] -- DIRECTORY/PROGRAM…
#
# The results of their tests are results of this section. The runner opens
# /dev/stdout again, which a pipe allows, and the guest's port does not. For each program
# it would start perl, to prefix lines, and tr, to look for arguments in the environment;
# on the debug kernel these take seconds.
# shellcheck disable=SC2016	# for the guest's shell
runner='
set -o pipefail
BASE_DIR=$1
. "$BASE_DIR/kselftest/runner.sh"
TR_CMD=
tap_prefix() { sed -u "s/^/# /"; }
[ -z "${NO_TIMEOUT:-}" ] || tap_timeout() { $1; }
[ -z "${VALGRIND:-}" ] || tap_timeout() { valgrind $1; }
shift
for directory in $(printf "%s\n" "$@" | sed "s,/.*,," | uniq); do
	cd "$BASE_DIR/$directory" || exit 1
	run_many $(printf "%s\n" "$@" | sed -n "s,^$directory/,,p")
done | cat
'

guest() {
	local name=$1 options=()
	shift
	until [ "$1" = -- ]; do
		options+=("$1")
		shift
	done
	shift
	take_guest "$name" vm -t 3600 "${options[@]}" ${NO_TIMEOUT:+-t 86400} -- \
		bash -c "$runner" runner "$programs" "$@"
	check "guest $name runs what it was given" guest_ran "$name" "$@"
}

guest_ran() {
	local name=$1
	shift
	diff <(printf '%s\n' "$@") <(sed -nE \
		's,^(not )?ok [0-9]+ selftests: ([^ ]+): ([^ ]+).*,\2/\3,p' \
		"$BUILD/log/guest-$name")
}

# Take the results of a command that runs a guest: the TAP that it prints, and how
# the guest ended.
take_guest() {
	local name=$1 output=$BUILD/log/guest-$1 status=0 failures_before=$failures
	shift
	"$@" 2>"$output.err" </dev/null | tee "$output" >>"${SHOWN:-/dev/null}" || status=$?
	echo "vm: exit status $status" >>"$output"
	take_tap "$name" "$output"
	# Programs with failed tests end with status 1.
	[ $failures -eq "$failures_before" ] || [ $status -ne 1 ] || status=0
	check "guest $name ends well" guest_ended_well "$name" $status
}

guest_ended_well() {
	cat "$BUILD/log/guest-$1.err"
	tail -n 5 "$BUILD/log/guest-$1"
	[ "$2" -eq 0 ]
}

# Print all programs that a guest may run, whether they have been built or not. There is no
# libelf in 32 bits for one.
all_programs() {
	compgen -G "$1/tools/testing/selftests/proc/procmap-*.c" | sort |
		sed -E 's,.*/(.*)\.c,proc/\1\nproc32/\1,' || :	# not every tree has some
	grep -l TEST_HARNESS_MAIN "$ROOT"/tools/testing/procmap-stress/*.c |
		sed -E 's,.*/(.*)\.c,stress/\1\nstress32/\1,' | grep -vx stress32/build-id-corpus
	basename -s .c "$ROOT"/live/test/*.c | sed 's,.*,live/&-64\nlive/&-32,'
	basename -s .c "$ROOT"/tools/lib/procmap/test/procmap-*-test.c |
		sed 's,.*,lib64/&\nlib32/&,'
	(cd "$ROOT/tools/procmap/test" && printf 'procmap/%s\n' *_test.py)
}

# Print the programs in the tree $1 that the patterns $2 of checks/guests name. One that names
# none of any base is an error.
expand() {
	local pattern all there
	all=$(all_programs "$ROOT")
	there=$(all_programs "$1")
	set -f
	eval "set -- $2"
	for pattern; do
		compgen -W "$all" -X "!$pattern" >/dev/null ||
			die "checks/guests: there is no program $pattern"
		compgen -W "$there" -X "!$pattern" || :
	done
}

# Print the release of Debian's kernel that checks/guests calls $1.
debian_release() {
	local kernel=$1 flavour=${1#*-}
	[ "$flavour" != "$1" ] || flavour=$FLAVOUR
	if [ "$kernel" = another ]; then
		kernel=mainline
		[ "$(debian_release mainline)" != "$(debian_release newest)" ] || kernel=oldest
	fi
	case $kernel in
	newest*) "$ROOT/scripts/live" -l "$flavour" | tail -n 1 ;;
	oldest*) "$ROOT/scripts/live" -l "$flavour" | head -n 1 ;;
	mainline) release_of_image "$(mainline_kernel)-$FLAVOUR" ;;
	[0-9]*) release_of_image "$kernel" ;;
	arm64) release_of_image cloud-arm64 ;;
	mainline-arm64) release_of_image "$(mainline_kernel)-cloud-arm64" ;;
	esac
}

release_of_image() {
	local directory
	directory=$("$ROOT/scripts/stock" "$1")
	cat "$directory/release"
}

# Run the guests of this section, by the table.
guests() {
	local line lines
	mapfile -t lines < <(grep "^$section"$'\t' "$CHECKS/guests")
	[ ${#lines[@]} -gt 0 ] || die "checks/guests has no guest for $section"
	for line in "${lines[@]}"; do
		guest_of_line "$line"
	done
}

skip_check() {
	results=$((results + 1))
	echo "ok - $1 # SKIP $2"
}

# Run the guest of a line of the table; with more arguments, only that program with its own
# arguments.
guest_of_line() {
	local guest kernel module settings patterns list word program release='' target headers
	local variant='' arch='' options=() programs=$programs tree=$patched
	local -x PATH=$PATH LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} CROSS_COMPILE=''
	IFS=$'\t' read -r _ guest kernel module settings patterns <<<"$1"
	if [ "$kernel" = query ] && ! has_query_series; then
		skip_check "$guest" "the query of $BASE is mainline's"
		return
	fi
	case $kernel in
	query)
		check "the tree 'query' is that of the series" tree_is_the_series query
		tree=$WORK/query
		;;
	*arm64*) variant=arm64 ;;
	esac
	programs+=${variant:+-$variant}
	# shellcheck disable=SC2086	# one word or none
	check "$guest: the programs are built" "$ROOT/scripts/programs" $variant "${@:2:1}"
	list=${2:-$(expand "$tree" "$patterns")}
	[ -n "$list" ] || die "checks/guests: there is no program for $guest"
	for word in $settings; do
		case $word in
		-) ;;
		[A-Z]*=*) [ -n "$(printenv "${word%%=*}")" ] || local -x "$word" ;;
		*) options+=("$word") ;;
		esac
	done

	case $kernel in
	host)
		# Some hypervisors run none, whatever the kernel is configured for.
		if [[ $patterns == lib32/* ]] && ! /lib/ld-linux.so.2 --version >/dev/null; then
			skip_check "$guest" 'this machine runs no programs of 32 bits'
			return
		fi
		for program in $list; do
			take_guest "$guest" "$programs/$program" "${@:3}"
		done
		return
		;;
	debug | patched | query | kcsan | arm64-*)
		[[ $kernel != arm64-* ]] || arch=arm64
		kernel_is_built "$kernel"
		target=$WORK/kernel/$kernel/ headers=$WORK/kernel/$kernel
		[ "$module" = tree ] || release=$(cat "$headers/include/config/kernel.release")
		options=(-k "$kernel" -a secretmem.enable=1 "${options[@]}")
		;;
	*)
		release=$(debian_release "$kernel") || {
			[[ $kernel == [0-9]* ]] || die "there is no kernel '$kernel'"
			skip_check "$guest-$kernel" 'the mirror has no such kernel'
			return
		}
		check "image of $release" "$ROOT/scripts/stock" "$release"
		guest+=-$release target=$release
		options=(-k "stock:$release" -a 'secretmem.enable=1 vsyscall=xonly' "${options[@]}")
		headers=$("$ROOT/scripts/headers" "$release")
		;;
	esac
	[ "$variant" != arm64 ] || use_arm64
	case $module in
	live) options+=(-M 'live scan=1') ;;
	test)
		check "live module for $guest" "$ROOT/scripts/live" "$target"
		check "procmap_conflict for $guest" test_module \
			"$ROOT/live/test/conflict" "$headers" "conflict/$guest"
		local -x PROCMAP_QUERY_KO PROCMAP_CONFLICT_KO
		PROCMAP_QUERY_KO=$(module_of "$release")
		PROCMAP_CONFLICT_KO=$BUILD/conflict/$guest/procmap_conflict.ko
		;;
	esac
	if [[ $list == *stress*/lock* ]]; then
		check "procmap_lock_holder for $guest" test_module \
			"$ROOT/tools/testing/procmap-stress/lock-holder" "$headers" \
			"lock-holder/$guest"
		options+=(-M "$BUILD/lock-holder/$guest/procmap_lock_holder.ko")
	fi
	# shellcheck disable=SC2086	# one word a program
	KSELFTEST_ARGS="${*:3}" guest "$guest" "${options[@]}" -- $list
}

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
# without line numbers. Sparse knows only functions that always lock, or never: these use either of two locks.
warnings_at() {
	local object there=()
	checkout_each "$1" >&2
	shift
	for object; do
		[ ! -e "$each/${object%o}c" ] || there+=("$object")
	done
	(cd "$out_each" && rm -f "${there[@]}")
	make_each W=1 C=2 "${there[@]}" 2>&1 | tee -a /dev/stderr |
		sed -nE "/context imbalance in '(walk_take_lock|walk_find_without_writer|procmap_walk_unlock|smaps_keep_vma)'/d
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

# Build a kernel before a section builds a module for it: another may be building it.
kernel_is_built() {
	check "the kernel '$1' is built" "$ROOT/scripts/kernel" "$1"
}

# Print the path of the module for the release $1: of the topic $2, or of the project.
module_of() {
	if [ $# -eq 1 ]; then
		printf '%s\n' "$BUILD/live/$1/procmap_query.ko"
	else
		sed -nE "s,^obj-m := (.*)\.o\$,$BUILD/$2/live/$1/\1.ko,p" "$ROOT/$2/live/Kbuild"
	fi
}

# Build the test module whose sources are in the directory $1, for the kernel that was
# built in $2, in the directory $3 of build/.
test_module() {
	mkdir -p "$BUILD/$3"
	cp -u "$1"/* "$BUILD/$3/"
	make -C "$2" M="$BUILD/$3" ${arch:+ARCH="$arch"} modules
}

# Fail on warnings of W=1 and sparse about the module of the topic $2, or this project's, for
# the release $1. Those in the kernel's headers do not count.
live_warnings() {
	local dir=$tmp/live-warnings
	"$ROOT/scripts/live" ${2:+-r "$2"} -s "$dir"
	make -C "$("$ROOT/scripts/headers" "$1")" M="$dir" W=1 C=2 modules 2>&1 |
		tee /dev/stderr | grep -E "^($dir.*(warning|error)|WARNING: modpost):" |
		grep -v "context imbalance in 'walk_take_lock'" >"$tmp/new" || :
	[ -n "$(compgen -G "$dir/*.ko")" ]
	[ ! -s "$tmp/new" ]
}

# In the guest: each broken module is refused with one line and leaves no trace; the
# whole one, the last argument, loads all the same afterwards.
# shellcheck disable=SC2016	# for the guest's shell
refusals='
set -eu
module=$1
shift
while [ $# -gt 1 ]; do
	echo "$1: $2"
	dmesg -C
	! insmod "$1" || exit 1
	dmesg
	[ "$(dmesg | grep "$module:" | grep -vc taint)" -eq 1 ]
	dmesg | grep -q "$module: .*$2"
	[ ! -e "/sys/module/$module" ]
	shift 2
done
insmod "$1"
'

# Break the module of the topic $2, or with "" that of the project, for the release $1 by
# each of the other arguments' pairs.
broken_modules_are_refused() {
	local release=$1 topic=$2 dir=$tmp/broken-$1-$2 pairs=() i=0 ko sources copy
	shift 2
	ko=$("$ROOT/scripts/live" ${topic:+-r "$topic"} "$release")
	"$ROOT/scripts/live" ${topic:+-r "$topic"} -s "$dir"
	mapfile -t sources < <(cd "$ROOT/$topic/live" && printf '%s\n' *.[ch])
	copy=$dir
	[ -n "$topic" ] || copy+=/live
	while [ $# -gt 0 ]; do
		(
			cd "$ROOT/$topic/live"
			cp "${sources[@]}" "$copy/"
			cat "${sources[@]}" >"$tmp/whole"
			cd "$copy"
			sed -i "$1" "${sources[@]}"
			expect 1 cmp -s "$tmp/whole" <(cat "${sources[@]}")
		)
		make -s -C "$("$ROOT/scripts/headers" "$release")" M="$dir" modules
		mv "$dir/${ko##*/}" "$dir/$i.ko"
		pairs+=("$dir/$i.ko" "$2")
		i=$((i + 1))
		shift 2
	done
	vm -k "stock:$release" -- bash -c "$refusals" refusals "$(basename "$ko" .ko)" \
		"${pairs[@]}" "$ko"
}

# With indirect branch tracking, a function that the kernel itself does not call through
# a pointer faults if it is called through one. The guests have no such CPU, so the
# functions of a module that call through a pointer are read from the object.
indirect_calls() {
	objdump -dr --no-show-raw-insn "$1" | awk '
		/^[0-9a-f]+ <.*>:$/ {
			name = substr($2, 2, length($2) - 3)
			sub(/\..*/, "", name)	# a clone of the function
		}
		/__x86_indirect_thunk|(call|jmp) +\*/ { print name }'
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
