#!/bin/bash
# uprobes-live: the live module: its build, refusals and lifetimes; programs that have
# uprobes, on stock kernels.
# shellcheck source=uprobes/check/tap.sh
. "$(dirname "$0")/tap.sh"

# TYPO_SPELLING: user_desc::useable. The tests are user space's.
style() {
	checkpatch '' -f "$ROOM"/live/*.c
	checkpatch PREFER_KERNEL_TYPES,TYPO_SPELLING -f "$ROOM"/live/test/*.c \
		"$ROOM"/test/x86/*.[ch]
}

# With both compilers. The harness of the base has warnings in its own lines, and
# parameters of the functions that it makes.
tests_are_warning_free() {
	local compiler bits
	for compiler in gcc clang; do
		for bits in 64 32; do
			compile_tests "$tmp" $bits $compiler -Wall -Wextra -Wno-unused-parameter
		done
	done 2>&1 | tee "$tmp/output"
	grep -E '(warning|error):' "$tmp/output" |
		grep -v 'kselftest_harness\.h:[0-9:]* warning:' >"$tmp/warnings" || :
	[ ! -s "$tmp/warnings" ]
}

# Pairs: a sed script that breaks an assumption of the module about the kernel, and the
# message that the module has to refuse with.
broken=(
	's/UTS_RELEASE/"6.0.0"/'
	"built for 6.0.0, this is"
	's/"arch_uprobe_analyze_insn"/"arch_uprobe_analyse_insn"/'
	'no kprobe on arch_uprobe_analyse_insn'
	's/"default_pre_xol_op"/"default_pre_sol_op"/'
	'cannot trace default_pre_sol_op: -22'
	's/^\tbool (\*emulate)/\tvoid *first;\n&/'
	'instruction 90 is not handled as expected'
	's/insn = auprobe->insn;/insn = auprobe->insn + 1;/'
	'instruction 0f 1f 44 00 00 is not handled as expected'
	's/= auprobe->defparam.ilen;/= auprobe->push.reg_offset;/'
	'instruction 0f 1f 44 00 00 is not handled as expected'
	's/^#define FIX_IP\t\t0x01/#define FIX_IP 0x08/'
	'instruction c5 f8 28 c1 is not handled as expected'
	's/sp + sizeof(narrow_target) + released/sp + sizeof(narrow_target)/'
	'instruction c2 34 f2 is not handled as expected'
)

# In the guest: load both modules, uprobes_emulate once more after ftrace was off, with
# which it refuses.
# shellcheck disable=SC2016	# for the guest's shell
loads='
set -eux
for i in 1 2; do
	insmod "$1"
	insmod "$2"
	rmmod uprobes_emulate
	rmmod procmap_query
done
sysctl kernel.ftrace_enabled=0
! insmod "$2" || exit 1
dmesg | grep -q "uprobes_emulate: cannot trace set_swbp: -16"
sysctl kernel.ftrace_enabled=1
insmod "$2"
'

loads_whatever_was_before() {
	vm -s -m 1G -k "stock:$1" -- bash -c "$loads" loads "$(module_of "$1")" \
		"$(module_of "$1" uprobes)"
}

nothing_is_called_by_pointer() {
	indirect_calls "$1" | diff /dev/null -
}

# A program that has uprobes does the same on the kernel of release $1, without the
# module, when it comes and goes, and with it. A thread's instruction is copied to a
# page from which other CPUs execute at the time: before 8.1, QEMU may go on with what was
# there, unless it emulates all CPUs in one thread. The other CPU has AVX.
programs_do_the_same() {
	local cpus=(-s -q '-cpu max')
	# On these, a program that never sleeps gets few signals of its timers with -s.
	! is_of_peer "$1" || cpus=(-c 1 -q '-cpu max')
	UPROBES_EMULATE_KO=$(module_of "$1" uprobes) UPROBES_EMULATE_ROUNDS=5 \
		guest "uprobes-base-$1" "${cpus[@]}" -m 1G -k "stock:$1" -- \
		uprobes/uprobes-{emulate-64,live-64,live-32}
	guest "uprobes-emulate-$1" "${cpus[@]}" -m 1G -k "stock:$1" \
		-M "$(module_of "$1" uprobes)" -- uprobes/uprobes-emulate-{64,32}
}

newest=$(newest_release)
mapfile -t releases < <(printf '%s\n' "$newest" "$(peer_release)" | uniq)
check "uprobes: the tests are built" tests_are_built
check "uprobes: gcc and clang have no warning" tests_are_warning_free
check "uprobes: checkpatch --strict" style
for release in "${releases[@]}"; do
	check "uprobes: live module for $release" "$ROOT/scripts/live" -r uprobes "$release"
	check "live module for $release" "$ROOT/scripts/live" "$release"
	check "uprobes: calls through pointers on $release" \
		nothing_is_called_by_pointer "$(module_of "$release" uprobes)"
	check "uprobes: broken modules are refused on $release" broken_modules_are_refused \
		"$release" uprobes "${broken[@]}"
	check "uprobes: both modules load on $release, whatever was before" \
		loads_whatever_was_before "$release"
	programs_do_the_same "$release"
done
check "uprobes: W=1 and sparse find nothing" live_warnings "$newest" uprobes
done_testing
