#!/bin/bash
# kcsan: the tests in which a process maps while another one reads its mappings, on a
# kernel that finds data races.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

kcsan_vm() {
	vm -k kcsan -m 1G "$@"
}

kcsan_is_on() {
	kcsan_vm -- grep -x 'enabled: 1' /sys/kernel/debug/kcsan
}

# Write a report of a race between the function $1, which the ioctl called, and another
# one to the kernel's log.
# shellcheck disable=SC2016	# for the guest's shell
report_of() {
	kcsan_vm -- bash -c 'printf "<3>%s\n" "==========" \
		"BUG: KCSAN: data-race in $1 / vm_area_dup" \
		"read to 0x1 of 8 bytes by task 7 on cpu 0:" " $1+0x10/0x20" \
		" procmap_query+0x10/0x20" "write to 0x1 of 8 bytes by task 8 on cpu 1:" \
		" vm_area_dup+0x10/0x20" "==========" |
		while read -r line; do echo "$line" >/dev/kmsg; done' report "$1"
}

# A static helper may have any name.
race_of_the_ioctls_is_found() {
	expect 125 report_of passes
	expect 0 report_of mas_walk
	expect 0 report_of d_path
}

kernel_is_built kcsan
check "KCSAN is on" kcsan_is_on
check "a race of the ioctls is found" race_of_the_ioctls_is_found
mapfile -t tests < <(selftests proc | grep -E -- '-(lock|race|text|truth)$')
PROCMAP_TEST_MAPPINGS=3000 guest_on_built kcsan kcsan -m 1G -- "${tests[@]}"
done_testing
