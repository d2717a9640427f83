#!/bin/bash
# live: the live module: its build, refusals and lifetimes.
# shellcheck source=checks/shared/modules.sh
. "$(dirname "$0")/shared/modules.sh"

# CONST_STRUCT: the operations are copied from the base's when it loads. The tests are
# user space's; ENOSYS: what a FUSE server answers.
# Before 5.11, kmap() is all that there is.
live_checkpatch() {
	checkpatch CONST_STRUCT,DEPRECATED_API -f "$ROOT"/live/{,linux/}*.[ch] \
		"$ROOT"/live/test/conflict/*.c
	checkpatch PREFER_KERNEL_TYPES,ENOSYS -f "$ROOT"/live/test/*.[ch]
}

# Pairs: a sed script that breaks an assumption of the module about the kernel, and the
# message that the module has to refuse with.
broken=(
	's/UTS_RELEASE/"6.0.0"/'
	'built for 6.0.0, this is [0-9]'
	's,filp_open("/proc/self/maps,&.none,'
	'cannot open /proc/self/maps: -2'
	's/(unsigned long)live_operations.open/1UL/'
	'cannot trace pid_maps_open: -22'
	's/!= PROC_SUPER_MAGIC/== PROC_SUPER_MAGIC/'
	'there is no procfs on .proc'
	's/"\[stack\]"/"[pile]"/'
	'shows mappings by other rules'
	's/_inode((vma)->vm_file)/_inode((vma)->vm_mm->exe_file)/'
	'shows mappings by other rules'
	's/^\tstruct task_struct \*task;/&\n\tlong more;/'
	'not as expected'
	's/!= LIVE_KERNEL_HAS_QUERY/== LIVE_KERNEL_HAS_QUERY/'
	"are not those of Debian's kernel"
)

# By function: the methods show of seq_operations, name of vm_operations_struct, and
# read_iter of file_operations. On 6.12 also start and stop of seq_operations, and release
# of file_operations.
only_methods_are_called_by_pointer() {
	indirect_calls "$1" | grep -vxE 'live_text_(is_reaped|init|release)' | sort |
		diff <(printf '%s\n' build_id_read get_vma_name live_line_matches) -
}

# In the guest: the module comes before those who trace its function and goes before them, and
# comes after them: the function tracer, a kprobe, and BPF at the entry and at the end. The
# ioctl, tried by the command after that, works, and each tracer sees calls.
# shellcheck disable=SC2016	# for the guest's shell
traces='
set -eux
module=$1
shift
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || :
cd /sys/kernel/tracing
echo pid_maps_open >set_ftrace_filter
sees() {
	echo >trace
	cat /proc/self/maps >/dev/null
	grep pid_maps_open trace >/dev/null
}
insmod "$module"
echo function >current_tracer
bpftrace -e "BEGIN { printf(\"begun\\n\"); } kprobe:pid_maps_open { @probe = count(); }
	kfunc:pid_maps_open { @entry = count(); }
	kretfunc:pid_maps_open { @end = count(); }" >/run/bpf &
timeout 60 sh -c "until grep -qs begun /run/bpf; do sleep 0.1; done"
"$@"
sees
rmmod procmap_query
sees
insmod "$module"
"$@"
sees
# bpftrace ends by a signal that interrupts its sleep, and by no other. While it detaches, a
# second one kills it.
while kill -INT $!; timeout 20 tail -s 0.1 --pid=$! -f /dev/null; [ -n "$(jobs -r)" ]
do :; done
wait $!
for probe in probe entry end; do
	grep "@$probe: [1-9]" /run/bpf
done
echo nop >current_tracer
"$@"
rmmod procmap_query
'

tracers_do_not_mind() {
	vm -s -m 1G -k "stock:$1" -- bash -c "$traces" traces "$(module_of "$1")" \
		"$TOOL" -p self --list --query
}

newest=$(debian_release newest)
mapfile -t releases < <(printf '%s\n' "$newest" "$(debian_release another)" | uniq)
for release in "${releases[@]}" "$(debian_release oldest)"; do
	check "live module for $release" "$ROOT/scripts/live" "$release"
done
check "live: W=1 and sparse find nothing" live_warnings "$newest"
check "live: checkpatch --strict" live_checkpatch
check "make run" "$ROOT/scripts/demo"
for release in "${releases[@]}"; do
	check "live: calls through pointers on $release" \
		only_methods_are_called_by_pointer "$(module_of "$release")"
	check "live: broken modules are refused on $release" broken_modules_are_refused \
		"$release" "" "${broken[@]}"
	check "live: tracers on $release do not mind" tracers_do_not_mind "$release"
done
guests
done_testing
