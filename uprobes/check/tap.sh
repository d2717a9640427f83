# shellcheck shell=bash
# Each section of this topic sources this file.
# shellcheck source=checks/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../checks/tap.sh"

TOPIC=$ROOT/uprobes

tests_are_built() {
	local out=$programs/uprobes selftests=$patched/tools/testing/selftests/proc source
	mkdir -p "$out"
	for source in "$TOPIC"/{test/x86,live/test}/*.c; do
		gcc -D_GNU_SOURCE -O2 -Wall -pthread -isystem "$patched/tools/include/uapi" \
			-I "$selftests" -I "$TOPIC/test/x86" -I "$ROOT/live/test" \
			"$source" -o "$out/$(basename "$source" .c)-64"
	done
	cp -u "$selftests/settings" "$out/"
}

# Print the stock kernels that the live module is for.
releases() {
	printf '%s\n' "$(debian_release newest)" "$(debian_release mainline)" | uniq
}

# Of guests in which many uprobes come and go, and wait for RCU each time. The CPU has AVX.
in_turn=(-c 1 -q '-cpu max' -m 1G -t 3600 -a rcupdate.rcu_expedited=1)

# Programs do the same with a uprobe on an instruction as without, with the module loaded.
programs_do_the_same() {
	check "uprobes: live module for $1" "$ROOT/scripts/live" -r uprobes "$1"
	guest "uprobes-insns-$1" "${in_turn[@]}" -k "stock:$1" \
		-M "$(module_of "$1" uprobes)" -- "${@:2}"
}
