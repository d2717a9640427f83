#!/bin/bash
# live: the live modules: their build, refusals and lifetimes; programs that have
# uprobes.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# Its own lines only: those of the kernel's headers are not ours.
live_warnings() {
	local dir=$tmp/live-warnings
	"$ROOT/scripts/live" -s "$dir"
	make -C "/lib/modules/$1/build" M="$dir" W=1 C=2 modules 2>&1 |
		tee /dev/stderr | grep -E "^($dir.*(warning|error)|WARNING: modpost):" |
		grep -v "context imbalance in 'walk_take_lock'" >"$tmp/new" || :
	[ -e "$dir/procmap_query.ko" ]
	[ -e "$dir/uprobes_emulate.ko" ]
	[ ! -s "$tmp/new" ]
}

# CONST_STRUCT: the operations are copied from the base's when it loads. The tests are
# user space's; TYPO_SPELLING: user_desc::useable.
live_checkpatch() {
	checkpatch CONST_STRUCT -f "$ROOT"/live/*.[ch] "$ROOT"/live/test/rival/*.c
	checkpatch PREFER_KERNEL_TYPES,TYPO_SPELLING -f "$ROOT"/live/test/*.[ch] \
		"$ROOT"/uprobes/test/x86/*.[ch]
}

# Pairs: a sed script that breaks an assumption of the module about the kernel, and the
# message that the module has to refuse with.
broken=(
	's/UTS_RELEASE/"6.0.0"/'
	'built for 6.0.0, this is [0-9]'
	's/(unsigned long)live_operations.open/1UL/'
	'cannot trace pid_maps_open: -22'
	's/!= PROC_SUPER_MAGIC/== PROC_SUPER_MAGIC/'
	'there is no procfs on .proc'
	's/"\[stack\]"/"[pile]"/'
	'names mappings by other rules'
	's/^\tstruct task_struct \*task;/&\n\tlong more;/'
	'not set up as expected'
	's/== base_has_ioctl/!= base_has_ioctl/'
	"are not those of Debian's kernel"
)

# Those of uprobes_emulate.ko: other members, functions and decisions.
uprobes_broken=(
	's/UTS_RELEASE/"6.0.0"/'
	"built for 6.0.0, this is"
	's/"arch_uprobe_analyze_insn"/"arch_uprobe_analyse_insn"/'
	'no kprobe on arch_uprobe_analyse_insn'
	's/"push_emulate_op"/"pop_emulate_op"/'
	'no kprobe on pop_emulate_op'
	's/"push_emulate_op"/"branch_emulate_op"/'
	'instruction 55 is not handled as expected'
	's/^\tbool (\*emulate)/\tvoid *first;\n&/'
	'instruction 90 is not handled as expected'
	's/insn = auprobe->insn;/insn = auprobe->insn + 1;/'
	'instruction 0f 1f 44 00 00 is not handled as expected'
	's/= auprobe->defparam.ilen/= auprobe->push.reg_offset/'
	'instruction 0f 1f 44 00 00 is not handled as expected'
	's/sp + sizeof(narrow_target) + released/sp + sizeof(narrow_target)/'
	'instruction c2 34 f2 is not handled as expected'
)

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
	[ -z "$(ls /sys/kernel/livepatch)" ]
	shift 2
done
insmod "$1"
'

# Break the module $2 for the release $1 by each of the other arguments' pairs.
broken_modules_are_refused() {
	local release=$1 module=$2 dir=$tmp/broken-$1-$2 pairs=() i=0
	shift 2
	"$ROOT/scripts/live" "$release"
	"$ROOT/scripts/live" -s "$dir"
	while [ $# -gt 0 ]; do
		cp "$ROOT"/live/*.[ch] "$dir/live/"
		sed -i "$1" "$dir"/live/*.[ch]
		expect 1 diff -q "$ROOT/live" "$dir/live" -x Kbuild -x test -x '*.o' \
			-x '.*'
		make -s -C "/lib/modules/$release/build" M="$dir" modules
		mv "$dir/$module.ko" "$dir/$i.ko"
		pairs+=("$dir/$i.ko" "$2")
		i=$((i + 1))
		shift 2
	done
	vm -k "stock:$release" -- bash -c "$refusals" refusals "$module" "${pairs[@]}" \
		"$BUILD/live/$release/$module.ko"
}

# In the guest: load both modules, uprobes_emulate once more after ftrace was off, with
# which livepatch takes none.
# shellcheck disable=SC2016	# for the guest's shell
loads='
set -eux
load() {
	insmod "$1"
	insmod "$2"
}
unload() {
	patch=/sys/kernel/livepatch/uprobes_emulate
	timeout 60 sh -c "until [ \$(cat $patch/transition) = 0 ]; do sleep 0.1; done"
	echo 0 >$patch/enabled
	timeout 60 sh -c "while [ -e $patch ]; do sleep 0.1; done"
	timeout 60 sh -c "until rmmod uprobes_emulate; do sleep 0.1; done"
	rmmod procmap_query
}
load "$@"
unload
sysctl kernel.ftrace_enabled=0
! insmod "$2" || exit 1
dmesg | grep -q "uprobes_emulate: another livepatch is in transition, or ftrace"
sysctl kernel.ftrace_enabled=1
load "$@"
unload
'

loads_whatever_was_before() {
	vm -s -m 1G -k "stock:$1" -- bash -c "$loads" loads "$(module_of "$1")" \
		"$(uprobes_module_of "$1")"
}

uprobes_module_of() {
	printf '%s\n' "$BUILD/live/$1/uprobes_emulate.ko"
}

# With indirect branch tracking, a function that the kernel itself does not call through
# a pointer faults if it is called through one. The guests have no such CPU, so what the
# module calls through a pointer is read from the object: by function, the methods
# show of seq_operations, name of vm_operations_struct, and read_iter of file_operations.
# On 6.12 also start and stop of seq_operations, and release of file_operations.
indirect_calls() {
	objdump -dr --no-show-raw-insn "$1" | awk '
		/^[0-9a-f]+ <.*>:$/ {
			name = substr($2, 2, length($2) - 3)
			sub(/\..*/, "", name)	# a clone of the function
		}
		/__x86_indirect_thunk|(call|jmp) +\*/ { print name }'
}

only_methods_are_called_by_pointer() {
	indirect_calls "$1" | grep -vxE 'live_text_(is_reaped|init|release)' | sort |
		diff <(printf '%s\n' build_id_read live_name_matches proc_vma_name) -
}

# The operation emulate of uprobe_xol_ops, by the pointer by which the kernel calls it.
only_emulate_is_called_by_pointer() {
	indirect_calls "$1" | diff - <(echo live_skip_sstep)
}

planted_call_is_found() {
	local dir=$tmp/planted-call
	"$ROOT/scripts/live" -s "$dir"
	sed -i 's/return procmap_query(/return ((typeof(\&procmap_query))live_operations.flush)(/' \
		"$dir/live/live.c"
	make -s -C "/lib/modules/$1/build" M="$dir" modules
	expect 1 only_methods_are_called_by_pointer "$dir/procmap_query.ko" >"$tmp/found"
	diff <(sed 1d "$tmp/found") - <<<'> live_ioctl'
}

# What a program does that has uprobes is the same on the kernel of release $1, without
# the module, when it comes and goes, and with it. A thread's instruction is copied to a
# page from which other CPUs execute at the time: before 8.1, QEMU may go on with what was
# there, unless it emulates all CPUs in one thread.
uprobes() {
	local cpus=(-s)
	# On these, a program that never sleeps gets few signals of its timers with -s.
	! is_of_peer "$1" || cpus=(-c 1)
	UPROBES_EMULATE_KO=$(uprobes_module_of "$1") UPROBES_EMULATE_ROUNDS=5 \
		guest "uprobes-base-$1" "${cpus[@]}" -m 1G -k "stock:$1" -- \
		live/uprobes-{emulate-64,live-64,live-32}
	guest "uprobes-emulate-$1" "${cpus[@]}" -m 1G -k "stock:$1" \
		-M "$(uprobes_module_of "$1")" -- live/uprobes-emulate-{64,32}
}

# In the guest: trace a program by bpftrace, as users do: a function and each of its
# returns, and the USDT probes of Python. Print what is counted, sorted.
# shellcheck disable=SC2016	# for the guest's shell
traced='
set -euo pipefail
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || :
program=$1
probes="kprobe:arch_uprobe_pre_xol { @steps = count(); }
	uprobe:$program:choose { @entry = count(); }
	uretprobe:$program:choose { @return[retval] = count(); }"
for i in 0 1 2 3; do
	probes+=" uprobe:$program:choose_$i { @at_return_$i[reg(\"ax\")] = count(); }"
done
bpftrace -e "$probes" -c "$program 4000" | sort
printf "import gc\nfor i in range(50): gc.collect()\n" >/run/collect.py
bpftrace -e "usdt:/usr/bin/python3:python:gc__start { @gc_start = count(); }
	usdt:/usr/bin/python3:python:gc__done { @gc_done = count(); }" \
	-c "/usr/bin/python3 /run/collect.py" | sort
'

# The live module changes nothing of it, but for the steps: one for each hit of the entry
# and of the returns.
tracer_sees_the_same() {
	local release=$1
	gcc -O2 -Wall -Wextra -Werror -o "$tmp/returns" "$CHECKS/returns.c"
	vm -s -m 1G -k "stock:$release" -- bash -c "$traced" traced "$tmp/returns" \
		>"$tmp/without"
	vm -s -m 1G -k "stock:$release" -M "$(uprobes_module_of "$release")" -- \
		bash -c "$traced" traced "$tmp/returns" >"$tmp/with"
	cat "$tmp/without"
	grep -x '@entry: 4000' "$tmp/without"
	grep -x '@at_return_2\[20\]: 1000' "$tmp/without"
	grep -x '@gc_start: [1-9][0-9]*' "$tmp/without"
	diff <(sed 's/^@steps: 8000$/@steps: 0/' "$tmp/without") "$tmp/with"
}

# In the guest: the module $2 comes before whoever traces its function and goes before
# it, and comes after it. The ioctl, tried by the command after that, works, and the
# tracer sees calls in each case.
# shellcheck disable=SC2016	# for the guest's shell
traces='
set -eux
module=$1
shift
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || :
cd /sys/kernel/tracing
function_on() { echo pid_maps_open >set_ftrace_filter; echo function >current_tracer; }
function_off() { echo nop >current_tracer; }
probe_on() {
	echo "p:entry pid_maps_open" >kprobe_events
	echo "r:end pid_maps_open" >>kprobe_events
	echo 1 >events/kprobes/enable
}
probe_off() { echo 0 >events/kprobes/enable; echo >kprobe_events; }
bpf_on() {
	bpftrace -e "BEGIN { printf(\"begun\\n\"); } kfunc:pid_maps_open { @entry = count(); }
		kretfunc:pid_maps_open { @end = count(); }" >/run/bpf &
	timeout 60 sh -c "until grep -qs begun /run/bpf; do sleep 0.1; done"
}
bpf_off() { kill -INT $!; wait $!; grep "@entry: [1-9]" /run/bpf; grep "@end: [1-9]" /run/bpf; }
sees() {
	[ "$1" = bpf ] || echo >trace
	cat /proc/self/maps >/dev/null
	[ "$1" = bpf ] || grep pid_maps_open trace >/dev/null
}
for tracer in function probe bpf; do
	insmod "$module"
	${tracer}_on
	"$@"
	sees $tracer
	rmmod procmap_query
	sees $tracer
	insmod "$module"
	"$@"
	sees $tracer
	${tracer}_off
	"$@"
	rmmod procmap_query
done
'

tracers_do_not_mind() {
	vm -s -m 1G -k "stock:$1" -- bash -c "$traces" traces "$(module_of "$1")" \
		"$TOOL" -p self --list --query
}

main_job() {
	"$ROOT/scripts/run" | tee "$tmp/run"
	grep -q 'the same answers by query and text' "$tmp/run"
}

kernel_is_built debug
newest=$(newest_release)
older=$("$ROOT/scripts/live" -l "$(flavour)" | head -n 1)
debug=$(debug_release)
peer=$(peer_release)
mapfile -t newest_ones < <(printf '%s\n' "$newest" "$peer" | uniq)
for release in "${newest_ones[@]}" "$older" "$WORK/kernel/debug/"; do
	check "live module for ${release#"$WORK/"}" "$ROOT/scripts/live" "$release"
done
check "live: W=1 and sparse find nothing" live_warnings "$newest"
check "live: checkpatch --strict" live_checkpatch
for release in "${newest_ones[@]}"; do
	check "live: calls through pointers on $release" \
		only_methods_are_called_by_pointer "$(module_of "$release")"
	check "live: calls through pointers for uprobes on $release" \
		only_emulate_is_called_by_pointer "$(uprobes_module_of "$release")"
	check "live: a planted one is found on $release" planted_call_is_found "$release"
done
check "make run" main_job
for release in "${newest_ones[@]}"; do
	check "live: broken modules are refused on $release" broken_modules_are_refused \
		"$release" procmap_query "${broken[@]}"
	check "live: tracers on $release do not mind" tracers_do_not_mind "$release"
	lifetimes 64 "stock:$release" "$release" 30
done
lifetimes 32 debug "$debug" 10
for release in "${newest_ones[@]}"; do
	check "live: broken modules for uprobes are refused on $release" \
		broken_modules_are_refused "$release" uprobes_emulate "${uprobes_broken[@]}"
	check "live: both modules load on $release, whatever was before" \
		loads_whatever_was_before "$release"
	uprobes "$release"
	check "live: bpftrace counts the same with uprobes_emulate on $release" \
		tracer_sees_the_same "$release"
done
done_testing
