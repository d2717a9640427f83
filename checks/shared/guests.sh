# shellcheck shell=bash
# Guests, and this machine: the programs and modules that run there, and their results.
# shellcheck source=checks/shared/trees.sh
. "$(dirname "${BASH_SOURCE[0]}")/trees.sh"

programs=$BUILD/programs
export TOOL=$programs/procmap/procfs_query
export VALGRIND_OPTS="-q --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite,indirect,possible"

# Boot a guest that dies with this section.
vm() {
	setpriv --pdeathsig TERM "$ROOT/scripts/vm" "$@"
}

# checks/parse-tap, told what the guest $1 and its kernel are.
parse_tap() {
	local locks lacks
	read -r _ _ locks _ lacks < <(kernel_row "${release:-$(base_value VERSION)}")
	"$CHECKS/parse-tap" "$1" "$locks,$lacks" "${@:2}" | results
}

# What checks/skips has to know: the check $2 of the guest or section $1 is not made, because $3.
skip() {
	parse_tap "$1" skip "$2" "$3"
}

# Run a command that prints TAP as the guest $1: its results are those of this section.
take_tap() {
	local name=$1 output=$BUILD/log/guest-$1 status=0
	shift
	"$@" 2>"$output.err" </dev/null | tee "$output" >>"${SHOWN:-/dev/null}" || status=$?
	parse_tap "$name" "$output" $status
}

# In the guest: run programs by the base's kselftest runner, with a plan of their number. It
# opens /dev/stdout again, which a pipe allows, and the guest's port does not. For each program
# it would start perl, to prefix lines, and tr, to look for arguments in the environment;
# on the debug kernel these take seconds. The longest program takes ten minutes there; a thousand
# loads of the live module take an hour.
# shellcheck disable=SC2016	# for the guest's shell
runner='
set -o pipefail
BASE_DIR=$1
. "$BASE_DIR/kselftest/runner.sh"
kselftest_default_timeout=4000
TR_CMD=
tap_prefix() { sed -u "s/^/# /"; }
[ -z "${NO_TIMEOUT:-}" ] || tap_timeout() { $1; }
[ -z "${VALGRIND:-}" ] || tap_timeout() { valgrind $1; }
shift
echo "1..$#"
for directory in $(printf "%s\n" "$@" | sed "s,/.*,," | uniq); do
	cd "$BASE_DIR/$directory" || exit 1
	run_many $(printf "%s\n" "$@" | sed -n "s,^$directory/,,p")
done | cat
'

# NAME=VALUE for the programs of a guest.
variables=()

# Run programs of build/programs: guest NAME [options of scripts/vm] -- DIRECTORY/PROGRAM…
guest() {
	local name=$1 options=()
	shift
	until [ "$1" = -- ]; do
		options+=("$1")
		shift
	done
	take_tap "$name" vm -t 3600 "${options[@]}" ${NO_TIMEOUT:+-t 86400} -- \
		env "${variables[@]}" bash -c "$runner" runner "$programs" "${@:2}"
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
programs_named() {
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

# Print the rows of checks/guests, each with one section and one kernel.
rows() {
	awk -F '\t' -v OFS='\t' '!/^#/ {
		sections = split($1, section, ",")
		kernels = split($3, kernel, ",")
		for (i = 1; i <= kernels; i++) {
			$1 = section[sections > 1 ? i : 1]
			$3 = kernel[i]
			print
		}
	}' "$CHECKS/guests"
}

# Print the release of Debian's kernel that checks/guests calls $1.
debian_release() {
	local kernel=${1%%-*} flavour=$FLAVOUR
	[[ $1 != *-* ]] || flavour=${1#*-}
	if [ "$kernel" = another ]; then
		kernel=mainline
		[ "$(debian_release mainline)" != "$(debian_release newest)" ] || kernel=oldest
	fi
	[ "$kernel" != mainline ] || kernel=$(mainline_kernel)
	case $kernel-$flavour in
	newest-*-arm64) release_of_image "$flavour" ;;
	newest-*) "$ROOT/scripts/live" -l "$flavour" | tail -n 1 ;;
	oldest-*) "$ROOT/scripts/live" -l "$flavour" | head -n 1 ;;
	*) release_of_image "$kernel-$flavour" ;;
	esac
}

release_of_image() {
	local directory
	directory=$("$ROOT/scripts/stock" "$1")
	cat "$directory/release"
}

# Build the kernel $1, tree or tree-debug, of the tree $linux, and keep the path of its image.
linux=${linux:-}
linux_is_built() {
	# shellcheck disable=SC2046	# one word or none
	"$ROOT/scripts/kernel" "$linux/" $([ "$1" = tree ] || echo debug) >"$tmp/image"
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
	[[ $2 != "$BUILD"/trees/* ]] || rm -rf "${BUILD:?}/$3"
	mkdir -p "$BUILD/$3"
	cp -u "$1"/* "$BUILD/$3/"
	make_modules "$2" "$BUILD/$3" ${arch:+ARCH="$arch"}
}

# Run the guests of this section, by the table.
guests() {
	local row section_rows
	mapfile -t section_rows < <(rows | grep "^$section"$'\t')
	[ ${#section_rows[@]} -gt 0 ] || die "checks/guests has no guest for $section"
	for row in "${section_rows[@]}"; do
		run_row "$row"
	done
}

# Run the guest of a row of the table; with more arguments, only that program with its own
# arguments. The functions below set the variables.
run_row() {
	local guest kernel module settings patterns list release='' target headers image
	local variant='' arch='' options=() variables=() programs=$programs tree=$patched
	local -x PATH=$PATH LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-} CROSS_COMPILE=''
	IFS=$'\t' read -r _ guest kernel module settings patterns <<<"$1"
	if [ "$kernel" = query ]; then
		has_query_series || { skip query "$BASE" 'no series of PROCMAP_QUERY'; return; }
		check "the tree 'query' is that of the series" tree_is_the_series query
		tree=$WORK/query
	fi
	[[ $kernel != *arm64* ]] || variant=arm64
	programs+=${variant:+-$variant}
	# shellcheck disable=SC2086	# one word or none
	check "$guest: the programs are built" "$ROOT/scripts/programs" $variant "${@:2:1}"
	list=${2:-$(programs_named "$tree" "$patterns")}
	[ -n "$list" ] || die "checks/guests: there is no program for $guest"
	if [ "$kernel" = host ]; then
		run_here "${@:3}"
		return
	fi
	choose_kernel || return 0
	set_options
	add_modules
	variables+=(KSELFTEST_ARGS="${*:3}")
	# shellcheck disable=SC2086	# one word a program
	guest "$guest" "${options[@]}" -- $list
}

# Some hypervisors run no programs of 32 bits, whatever the kernel is configured for.
run_here() {
	local program
	if [[ $list == lib32/* ]] && ! /lib/ld-linux.so.2 --version &>/dev/null; then
		skip "$guest" 'programs of 32 bits' 'this machine runs none'
		return
	fi
	for program in $list; do
		take_tap "$guest" "$programs/$program" "$@"
	done
}

choose_kernel() {
	case $kernel in
	debug | patched | query | kcsan | arm64-*)
		[[ $kernel != arm64-* ]] || arch=arm64
		kernel_is_built "$kernel"
		target=$WORK/kernel/$kernel/ headers=$WORK/kernel/$kernel
		[ "$module" = tree ] || release=$(cat "$headers/include/config/kernel.release")
		options=(-k "$kernel" -a secretmem.enable=1)
		;;
	tree | tree-debug)
		check "the kernel of $linux is built" linux_is_built "$kernel"
		image=$(cat "$tmp/image")
		target=${image%/arch/*}/ headers=${image%/arch/*}
		release=$(cat "$headers/include/config/kernel.release")
		[[ $release =~ ^[0-9][0-9A-Za-z.+_~-]*$ ]] ||
			die "$linux: its release, '$release', is not one to name a directory by"
		guest+=-$release
		options=(-k "$image" -a 'secretmem.enable=1 vsyscall=xonly')
		;;
	*)
		release=$(debian_release "$kernel") || {
			[[ $kernel == [0-9]* ]] || die "there is no kernel '$kernel'"
			skip "$guest" "linux-$kernel" 'the mirror has no such kernel'
			return 1
		}
		check "image of $release" "$ROOT/scripts/stock" "$release"
		guest+=-$release target=$release
		options=(-k "stock:$release" -a 'secretmem.enable=1 vsyscall=xonly')
		headers=$("$ROOT/scripts/headers" "$release")
		;;
	esac
}

# What the environment has of the programs' variables is what they get.
set_options() {
	local word
	for word in $settings; do
		case $word in
		-) ;;
		[A-Z]*=*) [ -n "$(printenv "${word%%=*}")" ] || variables+=("$word") ;;
		*) options+=("$word") ;;
		esac
	done
}

add_modules() {
	[ "$variant" != arm64 ] || use_arm64
	case $module in
	live)
		if [[ $kernel == tree* ]]; then
			check "live module for $release" "$ROOT/scripts/live" "$target"
			options+=(-M "$(module_of "$release") scan=1")
		else
			options+=(-M 'live scan=1')
		fi
		;;
	test)
		check "live module for $guest" "$ROOT/scripts/live" "$target"
		check "procmap_conflict for $guest" test_module \
			"$ROOT/live/test/conflict" "$headers" "conflict/$guest"
		variables+=(PROCMAP_QUERY_KO="$(module_of "$release")"
			PROCMAP_CONFLICT_KO="$BUILD/conflict/$guest/procmap_conflict.ko")
		;;
	esac
	[[ $list == *stress*/lock* ]] || return 0
	check "procmap_lock_holder for $guest" test_module \
		"$ROOT/tools/testing/procmap-stress/lock-holder" "$headers" "lock-holder/$guest"
	options+=(-M "$BUILD/lock-holder/$guest/procmap_lock_holder.ko")
}
