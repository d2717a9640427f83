#!/bin/bash
# unpatched: the text fallback of the library and the tool, on a kernel without the
# ioctls; and what the series leaves as it was.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# Replace each device and inode by its place in the order of their first use, in the same
# width: file systems without a device, and files of anonymous huge pages, get the next free
# number.
number_files() {
	awk '$1 ~ /-/ && $4 ~ /:/ && match($0, " " $4 " " $5 " +") {
		file = $4 " " $5
		if (!(file in place))
			place[file] = ++places
		$0 = substr($0, 1, RSTART - 1) \
			sprintf(" %-" (RLENGTH - 1) "s", "file " place[file]) \
			substr($0, RSTART + RLENGTH)
	} { print }' "$1"
}

# shellcheck disable=SC2016	# for the guest's shell
print_text='
mkdir -p /dev/hugepages
mount -t hugetlbfs hugetlbfs /dev/hugepages
coproc PYTHONHASHSEED=0 setarch -R "$1"
read -r _ <&"${COPROC[0]}"
cd "/proc/$COPROC_PID"
grep -ah "^[0-9a-f]*-" maps task/*/maps smaps
'

# The text of maps, and of smaps' first lines, of a process on both kernels: the same boot, one
# CPU, every address fixed.
text_is_unchanged() {
	local kernel
	for kernel in debug patched; do
		vm -k "$kernel" -i -a 'hugepages=4 kmemleak=off' -- \
			bash -ec "$print_text" text "$CHECKS/programs/scene" >"$tmp/text-$kernel"
	done
	wc "$tmp/text-patched"
	[ "$(wc -l <"$tmp/text-patched")" -gt 300 ]
	diff <(number_files "$tmp/text-debug") <(number_files "$tmp/text-patched")
}

guests
check "the text is what the unpatched kernel prints" text_is_unchanged
done_testing
