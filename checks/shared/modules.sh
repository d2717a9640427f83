# shellcheck shell=bash
# Live modules: what the compilers say, and that they refuse what they do not know.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "${BASH_SOURCE[0]}")/guests.sh"

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
