#!/bin/bash
# uprobes-live: the live module: its build, refusals and lifetimes; a program that has
# uprobes, on a stock kernel.
# shellcheck source=uprobes/check/common
. "$(dirname "$0")/common"

# The tests are user space's.
style() {
	checkpatch '' -f "$TOPIC"/live/*.c
	checkpatch PREFER_KERNEL_TYPES -f "$TOPIC"/live/test/*.c \
		"$TOPIC"/test/x86/*.[ch]
}

# Print the instruction in the bytes $1, as in a string of C, with a displacement.
decode() {
	printf '%b\x10\0\0\0\x04' "$1" >"$tmp/insn"
	objdump -D -b binary -m i386:x86-64 --no-show-raw-insn "$tmp/insn" |
		sed -nE 's/ *#.*//; s/ +/ /g; s/^ *0:\t(rex\S* )?//p'
}

# In the tables of uprobes-insns, which knows EVEX, XOP and REX2 only by their bytes: a copy
# is the same instruction, with a register that it does not have otherwise, and what has
# neither is refused, as are the registers of APX, which an older objdump calls bad.
decoder_agrees() {
	local source=$TOPIC/test/x86/uprobes-insns.c code copy register verdict
	sed -nE 's/^\t\{ "(\S+)", "(\S+)", [0-9] \},$/\1 \2/p' "$source" >"$tmp/copies"
	[ "$(wc -l <"$tmp/copies")" -eq 5 ]
	while read -r code copy; do
		copy=$(decode "$copy")
		register=${copy#*(%r}
		register=${register:0:2}
		diff <(decode "$code") - <<<"${copy/(%r$register)/(%rip)}"
		[ "$(grep -o "[%re]$register" <<<"$copy" | wc -l)" -eq 1 ]
	done <"$tmp/copies"
	sed -nE 's/^\tINSN\("(\\x(62|8f|d5)\S{8,})", ([A-Z]+)\).*/\1 \3/p' "$source" \
		>"$tmp/verdicts"
	[ "$(wc -l <"$tmp/verdicts")" -eq 5 ]
	while read -r code verdict; do
		if decode "$code" | grep -E '%rip|bad|%r(1[6-9]|2[0-9]|3[01])'; then
			[ "$verdict" = REFUSED ]
		else
			[ "$verdict" = STEPPED ]
		fi
	done <"$tmp/verdicts"
}

# Pairs: a sed script that breaks an assumption of the module about the kernel, and the
# message that the module has to refuse with.
broken=(
	's/UTS_RELEASE/"6.0.0"/'
	"built for 6.0.0, this is"
	's/"arch_uprobe_analyze_insn"/"arch_uprobe_analyse_insn"/'
	'no kprobe on arch_uprobe_analyse_insn'
	's/ftrace_set_filter(&hook, "/&no_/'
	'cannot trace arch_uprobe_analyze_insn: -22'
	's/offsetof(struct pt_regs, bp)/offsetof(struct pt_regs, bx)/'
	'a uprobe on a push is not handled as expected'
	's/^#define FIX_IP\t\t0x01/#define FIX_IP 0x08/'
	'instruction 9c is not handled as expected'
)

# shellcheck disable=SC2016	# for the guest's shell
needs_ftrace='
set -eux
sysctl kernel.ftrace_enabled=0
! insmod "$1" || exit 1
dmesg | grep -q "uprobes_fix: cannot trace arch_uprobe_analyze_insn: -16"
sysctl kernel.ftrace_enabled=1
insmod "$1"
'

is_refused_without_ftrace() {
	vm -k "stock:$1" -- bash -c "$needs_ftrace" needs "$(module_of "$1" uprobes)"
}

nothing_is_called_by_pointer() {
	indirect_calls "$1" | diff /dev/null -
}

# A program with uprobes does the same while the module comes and goes.
# A thread's instruction is copied to a page from which other CPUs execute at the time:
# before 8.1, QEMU may go on with what was there, unless it emulates all CPUs in one thread.
# On mainline's kernel, a program that never sleeps gets few signals of its timers with -s.
programs_survive_it() {
	local cpus=-s
	[ "$1" != "$(debian_release mainline)" ] || cpus='-c 1'
	# shellcheck disable=SC2086	# one word or two
	UPROBES_FIX_KO=$(module_of "$1" uprobes) guest "uprobes-lifetimes-$1" \
		$cpus -q '-cpu max' -m 1G -k "stock:$1" -- uprobes/uprobes-live-64
}

check "uprobes: the tests are built" tests_are_built
check "uprobes: checkpatch --strict" style
check "uprobes: objdump agrees" decoder_agrees
newest=$(debian_release newest)
for release in $(releases); do
	check "uprobes: live module for $release" "$ROOT/scripts/live" -r uprobes "$release"
	check "uprobes: calls through pointers on $release" \
		nothing_is_called_by_pointer "$(module_of "$release" uprobes)"
	check "uprobes: broken modules are refused on $release" broken_modules_are_refused \
		"$release" uprobes "${broken[@]}"
	check "uprobes: the module loads on $release with ftrace only" \
		is_refused_without_ftrace "$release"
	programs_survive_it "$release"
done
programs_do_the_same "$newest" uprobes/uprobes-insns-64
check "uprobes: W=1 and sparse find nothing" live_warnings "$newest" uprobes
done_testing
