#!/bin/bash
# live: the live module: its build, what it refuses, its lifetimes.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# Its own lines only: those of the kernel's headers are not ours.
live_warnings() {
	local dir=$tmp/live-warnings
	"$ROOT/scripts/live" -s "$dir"
	make -C "/lib/modules/$1/build" M="$dir" W=1 C=2 modules 2>&1 |
		tee /dev/stderr | grep -E "^($dir.*(warning|error)|WARNING: modpost):" \
		>"$tmp/new" || :
	[ -e "$dir/procmap_query.ko" ]
	[ ! -s "$tmp/new" ]
}

# CONST_STRUCT: the operations are copied from the base's when it loads.
live_checkpatch() {
	checkpatch CONST_STRUCT -f "$ROOT"/livepatch/*.[ch] \
		"$ROOT"/tools/testing/selftests/livepatch/*.c
}

# The module with a thing in it changed, so that the kernel does not have what it
# relies on: the sed script that does it, and what the module has to say then.
misfits=(
	's/UTS_RELEASE/"6.0.0"/'
	"built for 6.0.0, this is $(base_fact VERSION)"
	's/"proc_mem_open"/"proc_mem_opened"/'
	'no kprobe on proc_mem_opened'
	's/"pid_maps_open")/"pid_smaps_open")/'
	'not opened by'
	's/"\[stack\]"/"[pile]"/'
	'names mappings by other rules'
	'/struct task_struct \*task;/d'
	'not set up as expected'
	's/^\tstruct vma_iterator iter;/&\n\tlong more[16];/'
	'not set up as expected'
)

# More of them, for kernels without the ioctl, and for those that have it themselves.
plain_misfits=(
	's/&vma->vm_file->f_path/NULL/'
	'names mappings by other rules'
)
peer_misfits=(
	's/"procfs_procmap_ioctl"/NULL/'
	'has an ioctl on /proc/<pid>/maps already'
	's/"procfs_procmap_ioctl"/"pid_maps_open"/'
	'are not by pid_maps_open'
	's/file_user_path(vma->vm_file)/NULL/'
	'names mappings by other rules'
)

# In the guest: each misfit has to be refused with one line, and to leave no
# trace; the module itself loads all the same afterwards, and has the scan only if
# its parameter says so. The query before it ends with a status that -$3 0.
# shellcheck disable=SC2016	# for the guest's shell
refusals='
set -eu
tool=$1 good=$2 before=$3
shift 3
while [ $# -gt 0 ]; do
	echo "$1: $2"
	dmesg -C
	! insmod "$1" || exit 1
	dmesg
	[ "$(dmesg | grep procmap_query: | grep -vc taint)" -eq 1 ]
	dmesg | grep -q "procmap_query: .*$2"
	[ ! -e /sys/module/procmap_query ]
	[ -z "$(ls /sys/kernel/livepatch)" ]
	shift 2
done
[ -n "$good" ] || exit 0
status=0
"$tool" -p self --list --query || status=$?
[ $status -$before 0 ]
insmod "$good"
"$tool" -p self --list --query
! "$tool" -p self --list --scan || exit 1
'

misfits_are_refused() {
	local release=$1 good=$2 before=$3 dir=$tmp/misfits-$1 i=0 pairs=()
	shift 3
	"$ROOT/scripts/live" "$release"
	"$ROOT/scripts/live" -s "$dir"
	while [ $# -gt 0 ]; do
		cp "$ROOT"/livepatch/*.c "$dir/livepatch/"
		sed -i "$1" "$dir"/livepatch/*.c
		expect 1 diff -q "$ROOT/livepatch" "$dir/livepatch" -x Kbuild -x '*.o' \
			-x '.*'
		make -s -C "/lib/modules/$release/build" M="$dir" modules
		mv "$dir/procmap_query.ko" "$dir/$i.ko"
		pairs+=("$dir/$i.ko" "$2")
		i=$((i + 1))
		shift 2
	done
	vm -k "stock:$release" -- bash -c "$refusals" refusals \
		"$TOOL" "$good" "$before" "${pairs[@]}"
}

# With indirect branch tracking, a function that the kernel itself does not call through
# a pointer faults if it is called through one. The guests have no such CPU, so what the
# module calls through a pointer is read from the object: by function, the methods
# show of seq_operations, name of vm_operations_struct, and read_iter of file_operations.
indirect_calls() {
	objdump -dr --no-show-raw-insn "$1" | awk '
		/^[0-9a-f]+ <.*>:$/ { name = substr($2, 2, length($2) - 3) }
		/__x86_indirect_thunk|(call|jmp) +\*/ { print name }'
}

only_methods_are_called_by_pointer() {
	indirect_calls "$1" | sort | diff <(printf '%s\n' is_named_alike proc_vma_name \
		read_as_read) -
}

planted_call_is_found() {
	local dir=$tmp/planted-call
	"$ROOT/scripts/live" -s "$dir"
	sed -i '/^static.* live_maps_open(/,/^}/s/static_call(proc_mem_open)/((typeof(\&no_mem_open))base_seq_operations->stop)/' \
		"$dir/livepatch/live.c"
	make -s -C "/lib/modules/$1/build" M="$dir" modules
	expect 1 only_methods_are_called_by_pointer "$dir/procmap_query.ko" >"$tmp/found"
	diff <(sed 1d "$tmp/found") - <<<'> live_maps_open'
}

other_kernels_module_is_refused() {
	expect 1 vm -k "stock:$1" -- insmod "$(module_of "$2")" \
		2>"$tmp/err"
	cat "$tmp/err"
	grep -q 'Invalid module format' "$tmp/err"
}

main_job() {
	"$ROOT/scripts/run" | tee "$tmp/run"
	grep -q '^differences  *0$' "$tmp/run"
	grep -q '^query .* 300$' "$tmp/run"
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
	check "live: a planted one is found on $release" planted_call_is_found "$release"
done
if [ "$newest" = "$peer" ]; then
	check "live: misfits are refused" misfits_are_refused "$newest" \
		"$(module_of "$newest")" eq "${misfits[@]}" "${peer_misfits[@]}"
else
	check "live: misfits are refused" misfits_are_refused "$newest" \
		"$(module_of "$newest")" ne "${misfits[@]}" "${plain_misfits[@]}"
	check "live: misfits on the peer are refused" misfits_are_refused "$peer" \
		'' eq "${peer_misfits[@]}"
fi
check "live: another kernel's module is refused" \
	other_kernels_module_is_refused "$newest" "$older"
check "make run" main_job
lifetimes 64 "stock:$newest" "$newest" 10
lifetimes 32 debug "$debug" 3
done_testing
