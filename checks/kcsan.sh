#!/bin/bash
# kcsan: the tests in which a process maps while another one reads its mappings, on a
# kernel that finds data races.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# A report of a race between the function $1, which the ioctl called, and another one.
report_of() {
	printf '%s\n' ========== "BUG: KCSAN: data-race in $1 / vm_area_dup" \
		'read to 0x1 of 8 bytes by task 7 on cpu 0:' " $1+0x10/0x20" \
		' procmap_query+0x10/0x20' 'write to 0x1 of 8 bytes by task 8 on cpu 1:' \
		' vm_area_dup+0x10/0x20' ==========
}

# scripts/vm fails for the line that names a race of the ioctls, and drops that of another
# one. A static helper may have any name.
race_of_the_ioctls_is_found() {
	eval "$(sed -n '/^races_of_ioctls() {/,/^}/p' "$ROOT/scripts/vm")"
	for function in passes mas_walk d_path; do
		report_of $function
	done | races_of_ioctls | tee "$tmp/races"
	grep -c 'BUG: KCSAN' "$tmp/races" | grep -x 1
	grep 'data-race in passes ' "$tmp/races"
}

check "KCSAN is on" vm -k kcsan -m 1G -- grep -x 'enabled: 1' /sys/kernel/debug/kcsan
check "a race of the ioctls is found" race_of_the_ioctls_is_found
guests
done_testing
