#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Test procfs_query: its answers against /proc/PID/maps, its options, its exit
# status and its messages.
#
# Usage: procfs_query_test.sh [TOOL]; without TOOL it is $TOOL, or the program
# beside this file.
#
# A function test_NAME is a test. It fails if one of its commands does, or is
# skipped if it says why. What the tests share is set up once, at the end.
set -euo pipefail
export LC_ALL=C

readonly KSFT_SKIP=4

# The longer ones of the tool's messages.
readonly NO_MAPPINGS='has no mappings (a kernel thread, or exited): give another'
readonly NO_SPACE='No space left on device: not all of the result was written'
readonly CHANGED='changed each time, 10 times: stop it first'
readonly NOT_SEEN='that may be looked into: see ps(1), or become root'
readonly NO_IOCTL='this kernel has no such ioctl: use the text (-T), or none of -Q and -S'

skip() {
	echo "$*" >"$tmp/skip"
	exit $KSFT_SKIP
}

have() {
	command -v "$1" >/dev/null || skip "no $1"
}

have_ioctl() {
	[ "$ioctl" ] || skip "this kernel has no PROCMAP_QUERY"
}

have_scan() {
	[ "$scan" ] || skip "this kernel has no PROCMAP_SCAN"
}

have_python() {
	[ "$python" ] || skip "no python3"
}

have_odd() {
	[ "$odd" ] || skip "no python3 for a process with odd mappings"
}

is_root() {
	[ "$(id -u)" -eq 0 ] || skip "not root"
}

readonly AS_NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups
	--inh-caps=-all)

wait_for_program() {
	local try
	for ((try = 0; try < 100; try++)); do
		[ "$(readlink "/proc/$1/exe")" != "$2" ] || return 0
		sleep 0.1
	done
	return 1
}

# Run the tool and expect an exit status of it. What it prints is in out, err.
run() {
	local want=$1 status=0
	shift
	"$tool" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
	if [ "$status" -ne "$want" ]; then
		echo "exit status $status, not $want: procfs_query $*"
		cat "$tmp/err"
		return 1
	fi
}

# Run the tool, which has to fail with one line on stderr: this one.
refused() {
	local message=$1
	shift
	run 2 "$@"
	[ ! -s "$tmp/out" ]
	diff - "$tmp/err" <<<"procfs_query: $message"
}

# Run the tool, which has to succeed and to say nothing but its results.
granted() {
	run 0 "$@"
	[ ! -s "$tmp/err" ]
}

# What the tool may tell of a process: vsyscall is no mapping of it.
maps() {
	grep -v '\[vsyscall\]$' "/proc/$1/maps"
}

# Where a process maps a file, by its permissions and a part of its name.
start_of() {
	maps "$1" | awk -v permissions="$2" -v name="$3" '
		$2 ~ "^" permissions "$" && index($0, name) && !found++ {
			sub(/-.*/, "", $1)
			print $1
		}'
}

# From maps: the same filter, in another language.
filtered() {
	maps "$1" | awk -v all="$2" '
		function has(option) { return index(all, option) > 0 }
		(!has("executable") || $2 ~ /x/) &&
		(!has("readable") || $2 ~ /r/) &&
		(!has("writable") || $2 ~ /w/) &&
		(!has("shared") || $2 ~ /s/) &&
		(!has("file-backed") || $4 != "00:00")'
}

# For awk, which reads no hexadecimal numbers everywhere.
readonly NUMBER='function number(hex, i, n) {
	for (i = 1; i <= length(hex); i++)
		n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
	return n
}'

# From maps: addresses in and around each mapping to the file $1, and what is
# there to the file $2.
expect_addresses() {
	awk -v addresses="$1" -v answers="$2" "$NUMBER"'
		function hex(n, text) {
			do {
				text = substr("0123456789abcdef", n % 16 + 1, 1) text
				n = int(n / 16)
			} while (n)
			return text
		}
		function pad(n, text) {
			text = hex(n)
			while (length(text) < 16)
				text = "0" text
			return "0x" text
		}
		function expect(address, answer, prefix) {
			prefix = count++ % 2 ? "0x" : ""
			printf "%s%s\n", prefix, hex(address) >addresses
			printf "%s %s\n", pad(address), answer >answers
		}
		function in_mapping(address, offset) {
			offset = sprintf("%-18s", "-")
			if ($4 != "00:00")
				offset = pad(address - start + number($3))
			expect(address, offset " " name)
		}
		{
			name = $0
			for (i = 0; i < 5; i++)
				sub(/^[^ ]* */, "", name)
			if (name == "")
				name = "-"
			split($1, range, "-")
			start = number(range[1])
			if (NR > 1 && start != end)
				expect(end, "not mapped")
			end = number(range[2])
			in_mapping(start)
			in_mapping(start + 1234)
			in_mapping(end - 1)
		}'
}

# The build ID of a file as binutils tell it.
readelf_id() {
	have readelf
	readelf -n "$1" 2>/dev/null |
		awk '/Build ID:/ { print $3; found = 1 } END { exit !found }'
}

# Run the tool with an ioctl that lies as $1 says.
run_lying() {
	local lie=$1
	shift
	[ -e "$tmp/lie.so" ] || skip "no C compiler for an ioctl that lies"
	LIE=$lie LD_PRELOAD=$tmp/lie.so ASAN_OPTIONS=verify_asan_link_order=0 \
		run "$@"
}

test_help_lists_every_option() {
	granted --help
	local option
	for option in pid file list executable readable writable shared \
		file-backed query text verbose build-id json compare bench all \
		exe sum interval scale; do
		grep -q -- " --$option" "$tmp/out"
	done
	grep -q '^Exit status:' "$tmp/out"
}

test_short_and_long_options_are_the_same() {
	granted -p "$plain" -l -T -j -B
	cp "$tmp/out" "$tmp/short"
	granted --pid="$plain" --list --text --json --build-id
	diff "$tmp/short" "$tmp/out"
	have_ioctl
	granted -p "$plain" -f "$tmp/addresses" -Q -v -B
	cp "$tmp/out" "$tmp/short"
	granted --pid "$plain" --file "$tmp/addresses" --query --verbose --build-id
	diff "$tmp/short" "$tmp/out"
}

test_unknown_option_is_refused() {
	run 2 --no-such-option
	[ ! -s "$tmp/out" ]
	grep -q "unrecognized option '--no-such-option'" "$tmp/err"
}

test_process_is_required() {
	refused 'no process given: use -p PID, --all or --exe NAME' 400000
	refused 'no process given: use -p PID, --all or --exe NAME' --list
}

test_pid_has_to_be_a_number() {
	local pid
	for pid in '' abc 12x 1.5 0 -1 +1 ' 1' 2147483648 99999999999999999999; do
		refused "'$pid' is not a process ID: give a positive number, or self" \
			-p "$pid" --list
	done
}

test_process_that_has_gone_is_told() {
	local gone
	true &
	gone=$!
	wait "$gone"
	refused "there is no process $gone: see ps(1) for those there are" \
		-p "$gone" --list
	refused "there is no process $gone: see ps(1) for those there are" \
		-p "$gone" -T 400000
}

test_zombie_has_no_mappings() {
	have_odd
	local zombie way
	zombie=$(<"$tmp/zombie")
	grep -q '^State:.Z' "/proc/$zombie/status"
	for way in "${ways[@]}"; do
		refused "process $zombie $NO_MAPPINGS" \
			-p "$zombie" "$way" --list
	done
}

test_kernel_thread_has_no_mappings() {
	local way
	[ "$(cat /proc/2/comm 2>&1)" = kthreadd ] || skip "no kernel thread in sight"
	is_root
	for way in "${ways[@]}"; do
		refused "process 2 has no mappings (a kernel thread, or exited): give another" \
			-p 2 "$way" 400000
	done
}

test_process_that_exits_meanwhile_is_told() {
	have_ioctl
	run_lying gone 2 -p "$plain" --list
	[ ! -s "$tmp/out" ]
	diff - "$tmp/err" <<-END
		procfs_query: process $plain $NO_MAPPINGS
	END
}

test_foreign_process_is_refused() {
	is_root
	have setpriv
	local status=0
	"${AS_NOBODY[@]}" "$tool" -p "$plain" --list >"$tmp/out" 2>"$tmp/err" || status=$?
	[ "$status" -eq 2 ]
	[ ! -s "$tmp/out" ]
	diff - "$tmp/err" <<-END
		procfs_query: no permission to look into process $plain: become its user or root
	END
}

test_self_is_the_tool() {
	local way
	for way in "${ways[@]}"; do
		granted -p self "$way" --list --executable --file-backed
		grep -q " $tool\$" "$tmp/out"
	done
}

test_there_has_to_be_one_thing_to_do() {
	local message='give either addresses, or -f FILE, or --list, or --sum'
	refused "$message" -p "$plain"
	refused "$message" -p "$plain" --list 400000
	refused "$message" -p "$plain" --list -f "$tmp/addresses"
	refused "$message" -p "$plain" -f "$tmp/addresses" 400000
}

test_options_that_exclude_each_other_are_refused() {
	refused '-Q, -S and -T exclude each other: give one of them' \
		-p "$plain" --list -Q -T
	refused '-Q, -S and -T exclude each other: give one of them' \
		-p "$plain" --list -S -Q
	refused '--compare and --bench exclude each other: run one after the other' \
		-p "$plain" --list --compare --bench 2
	refused '--compare and --bench use all ways: leave out -Q, -S and -T' \
		-p "$plain" --list --compare -T
	refused '--compare and --bench use all ways: leave out -Q, -S and -T' \
		-p "$plain" --list --bench 2 -Q
}

test_number_of_runs_is_checked() {
	local runs
	for runs in '' 0 -1 ten 2x 1000001 99999999999999999999; do
		refused "'$runs' is not a number of runs: give one from 1 to 1000000" \
			-p "$plain" --list --bench "$runs"
	done
}

test_interval_is_checked() {
	local bad
	for bad in '' 0 -1 soon 1x nan inf 86401 0.0009; do
		refused "'$bad' is not an interval: give seconds from 0.001 to 86400" \
			-p "$plain" --list --interval "$bad"
	done
	refused '--interval watches all mappings: use it with --list' \
		-p "$plain" --interval 1 400000
	refused '--interval excludes --compare and --bench: leave out one' \
		-p "$plain" --list --interval 1 --bench 2
}

test_bad_address_is_told() {
	local bad
	for bad in '' xyz 0x 0xg 12g 1-2 '1 2' 0x0x1; do
		refused "argument '$bad' is not a hexadecimal address" \
			-p "$plain" 400000 "$bad"
	done
	for bad in 10000000000000000 0x10000000000000000 123456789012345678901; do
		refused "argument '$bad' is too large: an address has 64 bits at most" \
			-p "$plain" "$bad"
	done
	refused "argument '??' is not a hexadecimal address" -p "$plain" $'\t\xff'
}

test_bad_line_is_told_with_file_and_number() {
	local bad=$tmp/bad
	printf '# a comment\n\n400000\n40000g # bad\n400001\n' >"$bad"
	refused "$bad:4: '40000g' is not a hexadecimal address" -p "$plain" -f "$bad"
	printf '10000000000000000\n' >"$bad"
	refused "$bad:1: '10000000000000000' is too large: an address has 64 bits at most" \
		-p "$plain" -f "$bad"
	printf '1\n2\0\n' >"$bad"
	refused "$bad:2: '2?' is not a hexadecimal address" -p "$plain" -f "$bad"
	printf '1\n2' >"$bad"
	printf '%0100d' 7 | tr 07 xy >>"$bad"
	refused "$bad:2: '2$(printf '%059d' 0 | tr 0 x)...' is not a hexadecimal address" \
		-p "$plain" -f "$bad"
	printf '1\n400 000\n' >"$bad"
	refused "standard input:2: '400 000' is not a hexadecimal address" \
		-p "$plain" -f - <"$bad"
}

test_file_without_address_is_told() {
	local empty=$tmp/empty
	: >"$empty"
	refused "$empty:0: the file ends without an address: give one a line" \
		-p "$plain" -f "$empty"
	printf '# nothing\n\n   \n' >"$empty"
	refused "$empty:3: the file ends without an address: give one a line" \
		-p "$plain" -f "$empty"
	refused "standard input:0: the file ends without an address: give one a line" \
		-p "$plain" -f - </dev/null
}

test_file_that_cannot_be_read_is_told() {
	refused "$tmp:1: Is a directory: give a file with one address a line" \
		-p "$plain" -f "$tmp"
	refused "$tmp/none: No such file or directory: give a file with one address a line" \
		-p "$plain" -f "$tmp/none"
}

test_full_disk_is_told() {
	local status=0
	"$tool" -p "$plain" --list >/dev/full 2>"$tmp/err" || status=$?
	[ "$status" -eq 2 ]
	diff - "$tmp/err" <<-END
		procfs_query: standard output: $NO_SPACE
	END
}

test_reader_that_has_gone_is_told() {
	local status=0
	mkfifo "$tmp/fifo"
	exec 8<>"$tmp/fifo"
	exec 9>"$tmp/fifo"
	exec 8>&-
	"$tool" -p "$plain" --list >&9 2>"$tmp/err" || status=$?
	[ "$status" -eq 2 ]
	diff - "$tmp/err" <<-END
		procfs_query: standard output: Broken pipe: not all of the result was written
	END
}

test_resolves_as_the_text_says() {
	local target way
	for target in $plain $odd; do
		maps "$target" | expect_addresses "$tmp/input" "$tmp/expected"
		[ "$(wc -l <"$tmp/expected")" -gt 60 ]
		grep -q 'not mapped$' "$tmp/expected"
		sort -r "$tmp/input" >"$tmp/unsorted"
		for way in "${ways[@]}"; do
			granted -p "$target" "$way" -f "$tmp/unsorted"
			diff "$tmp/expected" "$tmp/out"
		done
	done
}

test_addresses_come_as_arguments_file_or_stdin() {
	local address input
	address=$(start_of "$plain" r-xp /sleep)
	granted -p "$plain" "$address" "0x$address" "0X$address" 1
	cp "$tmp/out" "$tmp/arguments"
	[ "$(wc -l <"$tmp/arguments")" -eq 4 ]
	input=$(printf ' %s\t# a comment\n\n#\n0x%s\r\n0X%s\n1' "$address" "$address" \
		"$address")
	granted -p "$plain" -f - <<<"$input"
	diff "$tmp/arguments" "$tmp/out"
	printf %s "$input" >"$tmp/input"
	granted -p "$plain" -f "$tmp/input"
	diff "$tmp/arguments" "$tmp/out"
	granted -p "$plain" -f /proc/self/fd/0 <<<"${input^^}"
	diff "$tmp/arguments" "$tmp/out"
}

test_nothing_mapped_is_exit_status_1() {
	local way
	for way in "${ways[@]}"; do
		run 1 -p "$plain" "$way" 0 ffffffffffffffff
		diff - "$tmp/out" <<-END
			0x0000000000000000 not mapped
			0xffffffffffffffff not mapped
		END
		[ ! -s "$tmp/err" ]
	done
}

test_vsyscall_is_no_mapping() {
	grep -q '\[vsyscall\]$' "/proc/$plain/maps" || skip "no vsyscall"
	local way
	for way in "${ways[@]}"; do
		run 1 -p "$plain" "$way" ffffffffff600000
	done
}

test_verbose_prints_the_line() {
	local way start
	start=$(start_of "$plain" r-xp /sleep)
	for way in "${ways[@]}"; do
		granted -p "$plain" "$way" -v "$start" 1
		tail -n 1 "$tmp/out" >"$tmp/last"
		grep "^$start-" "/proc/$plain/maps" | sed 's/^/  /' |
			diff - "$tmp/last"
		[ "$(wc -l <"$tmp/out")" -eq 3 ]
	done
}

test_lists_as_the_text() {
	local target way
	for target in $plain $odd; do
		maps "$target" >"$tmp/expected"
		for way in "${ways[@]}"; do
			granted -p "$target" "$way" --list
			diff "$tmp/expected" "$tmp/out"
		done
		granted -p "$target" -T --list
		diff "$tmp/expected" "$tmp/out"
	done
}

test_filters_list() {
	have_odd
	local filters way
	for filters in --executable --readable --writable --shared --file-backed \
		'--readable --writable --file-backed'; do
		filtered "$odd" "$filters" >"$tmp/expected"
		[ -s "$tmp/expected" ]
		for way in "${ways[@]}"; do
			# shellcheck disable=SC2086	# they are several words
			granted -p "$odd" "$way" --list $filters
			diff "$tmp/expected" "$tmp/out"
		done
	done
}

test_filters_addresses() {
	local way code data
	code=$(start_of "$plain" r-xp /sleep)
	data=$(start_of "$plain" rw-p /sleep)
	for way in "${ways[@]}"; do
		granted -p "$plain" "$way" --executable "$code" "$data"
		grep -q "^0x0*$code 0x.*/sleep\$" "$tmp/out"
		grep -q "^0x0*$data not mapped\$" "$tmp/out"
	done
}

test_empty_list_is_exit_status_1() {
	local way
	for way in "${ways[@]}"; do
		run 1 -p "$plain" "$way" --list --shared --executable
		[ ! -s "$tmp/out" ]
		[ ! -s "$tmp/err" ]
	done
}

test_odd_names_stay_on_one_line() {
	have_odd
	local way name
	for way in "${ways[@]}"; do
		granted -p "$odd" "$way" --list
		for name in '/with space ' '/new\012line' $'/b\xffyte' '/"quote\back' \
			'/deleted (deleted)'; do
			grep -qF -- "$tmp/odd$name" "$tmp/out"
		done
	done
}

test_name_longer_than_path_max() {
	have_odd
	local way
	for way in "${ways[@]}"; do
		granted -p "$odd" "$way" --list
		awk 'length() > 4200 && /\/long-x/ { found = 1 }
		     END { exit !found }' "$tmp/out"
	done
}

test_build_ids_are_those_of_readelf() {
	have readelf
	local way range file
	local -a starts=()
	maps "$plain" | grep 'r-xp .*/' >"$tmp/files"
	while read -r range _ _ _ _ file; do
		starts+=("${range%-*}")
		echo "${range%-*} $(readelf_id "$file")"
	done <"$tmp/files" >"$tmp/expected"
	[ "${#starts[@]}" -ge 2 ]
	for way in "${ways[@]}"; do
		granted -p "$plain" "$way" -B "${starts[@]}"
		awk '{ sub(/^0x0*/, "", $1); print $1, $3 }' "$tmp/out" |
			diff "$tmp/expected" -
		granted -p "$plain" "$way" -B --list --executable --file-backed
		awk '/^  build ID / { print start, $3 }
			{ start = $1; sub(/-.*/, "", start) }' "$tmp/out" |
			diff "$tmp/expected" -
	done
}

test_build_id_of_a_deleted_file() {
	have_odd
	is_root
	local way start id
	id=$(readelf_id "$tmp/sleep")
	start=$(start_of "$odd" r--p '/elf (deleted)')
	for way in "${ways[@]}"; do
		granted -p "$odd" "$way" -B "$start"
		grep -q " $id $tmp/odd/elf (deleted)\$" "$tmp/out"
	done
}

test_short_build_id() {
	have_odd
	local way start id
	id=$(readelf_id "$tmp/sleep")
	start=$(start_of "$odd" r--p /id-of-8)
	is_root
	for way in "${ways[@]}"; do
		granted -p "$odd" "$way" -B "$start"
		[ "$(awk '{ print $3 }' "$tmp/out")" = "${id:0:16}" ]
	done
}

test_no_build_id_in_other_files() {
	have_odd
	local way file
	local -a starts=()
	for file in '/with space ' /relocatable /id-of-21 \
		/foreign '[stack]'; do
		starts+=("$(start_of "$odd" 'r.*' "$file")")
	done
	for way in "${ways[@]}"; do
		granted -p "$odd" "$way" -B "${starts[@]}"
		[ "$(awk '$3 == "-"' "$tmp/out" | wc -l)" -eq 5 ]
	done
}

test_build_id_by_path_without_capabilities() {
	is_root
	have setpriv
	local start
	"${AS_NOBODY[@]}" "$tmp/sleep" 1000 &
	target=$!
	trap 'kill $target' EXIT
	wait_for_program "$target" "$tmp/sleep"
	start=$(start_of "$target" r-xp /sleep)
	granted -p "$target" -T -B "$start"
	cp "$tmp/out" "$tmp/by-root"
	[ "$(awk 'length($3) == 40' "$tmp/by-root" | wc -l)" -eq 1 ]
	"${AS_NOBODY[@]}" "$tool" -p "$target" -T -B "$start" | diff "$tmp/by-root" -
}

test_no_build_id_of_another_file_at_the_path() {
	is_root
	have setpriv
	local start
	cp "$tmp/sleep" "$tmp/replaced"
	"${AS_NOBODY[@]}" "$tmp/replaced" 1000 &
	target=$!
	trap 'kill $target' EXIT
	wait_for_program "$target" "$tmp/replaced"
	mv "$tmp/replaced" "$tmp/elsewhere"
	rm "$tmp/elsewhere"
	cp "$tool" "$tmp/elsewhere (deleted)"
	cp "$tool" "$tmp/replaced (deleted)"
	start=$(start_of "$target" r-xp '(deleted)')
	[ "$start" ]
	"${AS_NOBODY[@]}" "$tool" -p "$target" -T -B "$start" >"$tmp/out"
	[ "$(awk '{ print $3 }' "$tmp/out")" = '?' ]
	"${AS_NOBODY[@]}" "$tool" -p "$target" -T -B -j "$start" >"$tmp/out"
	grep -q '"build_id": null, "build_id_unreadable": true' "$tmp/out"
	have_ioctl
	"${AS_NOBODY[@]}" "$tool" -p "$target" --compare "$start" >"$tmp/out"
	grep -Eqx '  build IDs +0' "$tmp/out"
	grep -Eqx '  unreadable files +1' "$tmp/out"
}

test_json_is_what_the_text_says() {
	have_odd
	local way
	maps "$odd" >"$tmp/maps"
	cut -d - -f 1 "$tmp/maps" >"$tmp/starts"
	echo 1 >>"$tmp/starts"
	for way in "${ways[@]}"; do
		granted -p "$odd" "$way" --list -j
		cp "$tmp/out" "$tmp/list$way.json"
		granted -p "$odd" "$way" -v -j -f "$tmp/starts"
		cp "$tmp/out" "$tmp/addresses$way.json"
	done
	"$python" -m json.tool <"$tmp/list-T.json" >/dev/null
	"$python" - "$odd" "$tmp/maps" "$tmp"/{list,addresses}*.json <<-'END'
		import json, os, re, sys

		pid, maps, *files = sys.argv[1:]

		def as_text(name):
		    """Bytes that are no UTF-8 as the characters of the same numbers."""
		    return ''.join(chr(ord(c) & 0xff) if '\udc80' <= c <= '\udcff' else c
		                   for c in name.decode('utf-8', 'surrogateescape'))

		def parse(line, way):
		    span, perms, offset, dev, inode, name = line[:-1].split(b' ', 5)
		    start, end = (hex(int(x, 16)) for x in span.split(b'-'))
		    name = name.lstrip(b' ')
		    vma = {
		        'start': start, 'end': end, 'permissions': perms.decode(),
		        'offset': hex(int(offset, 16)),
		        'dev_major': int(dev.split(b':')[0], 16),
		        'dev_minor': int(dev.split(b':')[1], 16),
		        'inode': inode.decode(),
		        'page_size': os.sysconf('SC_PAGE_SIZE') if way != 'text' else None,
		        'name': as_text(name) if name else None,
		    }
		    if any(c >= '\udc80' and c <= '\udcff'
		           for c in name.decode('utf-8', 'surrogateescape')):
		        vma['name_hex'] = name.hex()
		    return vma

		def lookup(vma):
		    has_file = vma['dev_major'] or vma['dev_minor']
		    return {
		        'address': vma['start'], 'mapped': True,
		        'offset': vma['offset'] if has_file else None,
		        **{key: vma[key] for key in vma if key.startswith('name')},
		        'vma': vma,
		    }

		with open(maps, 'rb') as file:
		    lines = file.readlines()
		assert any('\\012' in line.decode('latin-1') for line in lines)
		for file in files:
		    with open(file, encoding='utf-8') as opened:
		        answer = json.load(opened)
		    way = answer['way']
		    assert way == {'-T': 'text', '-Q': 'ioctl', '-S': 'scan'}[file[-7:-5]], file
		    vmas = [parse(line, way) for line in lines]
		    assert any('name_hex' in vma for vma in vmas)
		    if 'vmas' in answer:
		        expected = {'pid': int(pid), 'way': way, 'vmas': vmas}
		    else:
		        none = {'address': '0x1', 'mapped': False}
		        expected = {'pid': int(pid), 'way': way,
		                    'addresses': [none] + [lookup(vma) for vma in vmas]}
		    if answer != expected:
		        print(json.dumps(answer, indent=1))
		        print(json.dumps(expected, indent=1))
		        sys.exit(file + ' differs')
	END
}

test_json_has_build_ids() {
	local way start id
	id=$(readelf_id "$tmp/sleep")
	start=$(start_of "$plain" r-xp /sleep)
	for way in "${ways[@]}"; do
		granted -p "$plain" "$way" -j -B "$start"
		grep -q "/sleep\", \"build_id\": \"$id\"}\]}\$" "$tmp/out"
	done
}

# A process that maps, unmaps, protects or executes when it is told to.
# shellcheck disable=SC2016	# for python
actor='
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
at = 0x10000000
print("ready", flush=True)
for line in sys.stdin:
    what = line.strip()
    if what == "map":
        assert libc.mmap(at, 8192, 1, 0x100022, -1, 0) == at
    elif what == "protect":
        assert not libc.mprotect(at, 8192, 0)
    elif what == "unmap":
        assert not libc.munmap(at, 8192)
    elif what == "execute":
        os.execv(sys.argv[1], ["sleep", "1000"])
'

# Wait for a line that matches in what the watching tool has printed.
seen() {
	local try
	for ((try = 0; try < 600; try++)); do
		! grep -Eq -- "$1" "$tmp/watched" || return 0
		sleep 0.1
	done
	cat "$tmp/watched"
	return 1
}

test_interval_tells_what_has_changed() {
	have_python
	local way watcher clock='^[0-9]{2}:[0-9]{2}:[0-9]{2}' range=10000000-10002000
	for way in "${ways[@]}"; do
		coproc "$python" -c "$actor" "$tmp/sleep"
		read -r _ <&"${COPROC[0]}"
		: >"$tmp/watched"
		"$tool" -p "$COPROC_PID" "$way" --list -i 0.05 >"$tmp/watched" &
		watcher=$!
		seen "$clock   [0-9]+ mappings$"
		echo map >&"${COPROC[1]}"
		seen "$clock \+ $range r--p 00000000 00:00 0 $"
		echo protect >&"${COPROC[1]}"
		seen "$clock < $range r--p 00000000 00:00 0 $"
		seen "$clock > $range ---p 00000000 00:00 0 $"
		echo unmap >&"${COPROC[1]}"
		seen "$clock - $range ---p 00000000 00:00 0 $"
		[ "$(grep -c " $range " "$tmp/watched")" -eq 4 ]
		echo execute >&"${COPROC[1]}"
		seen "$clock \+ .* r-xp .*/sleep$"
		kill "$COPROC_PID"
		wait "$watcher"
	done
}

test_interval_in_json_is_an_object_a_line() {
	have_python
	local watcher
	coproc "$python" -c "$actor"
	read -r _ <&"${COPROC[0]}"
	: >"$tmp/watched"
	"$tool" -p "$COPROC_PID" --list -j -i 0.05 >"$tmp/watched" &
	watcher=$!
	seen '"mappings": [0-9]+}$'
	echo map >&"${COPROC[1]}"
	seen '"appeared", "is": {"start": "0x10000000", .*}}$'
	echo unmap >&"${COPROC[1]}"
	seen '"vanished", "was": {"start": "0x10000000", .*}}$'
	kill "$COPROC_PID"
	wait "$watcher"
	"$python" -c 'import json, sys
for line in sys.stdin:
    assert "time" in json.loads(line)' <"$tmp/watched"
}

test_compare_finds_no_difference() {
	have_ioctl
	local target
	for target in $plain $odd; do
		granted -p "$target" --list --compare
		maps "$target" | awk -v scan="$scan" '
			NF > 5 { names++ }
			END {
				printf "compared by ioctl%s and text\n", scan
				printf "  mappings            %8d\n", NR
				printf "  names               %8d\n", names
			}' >"$tmp/expected"
		head -n 3 "$tmp/out" | diff "$tmp/expected" -
		tail -n 1 "$tmp/out" | grep -Eqx 'differences +0'
		grep -Eqx '  build IDs +[1-9][0-9]*' "$tmp/out"
	done
}

test_compare_counts_addresses() {
	have_ioctl
	local code
	code=$(start_of "$plain" r-xp /sleep)
	granted -p "$plain" --compare "$code" "${code%?}1" 1 2 3
	grep -Eqx '  addresses +5' "$tmp/out"
	grep -Eqx '  mappings +1' "$tmp/out"
	grep -Eqx '  names +1' "$tmp/out"
	run 1 -p "$plain" --compare 1 2
	grep -Eqx '  mappings +0' "$tmp/out"
}

test_compare_reports_each_field() {
	have_ioctl
	local start field
	start=$(start_of "$plain" r-xp /sleep)
	run_lying fields 1 -p "$plain" --compare "$start"
	for field in end permissions offset 'device major' 'device minor' inode \
		name 'build ID'; do
		grep -Eq "^0x0*$start: $field: ioctl .+, text .+" "$tmp/out"
	done
	grep -q ": permissions: ioctl rwxp, text r-xp\$" "$tmp/out"
	grep -q ": name: ioctl ?${tmp#?}/sleep, text $tmp/sleep\$" "$tmp/out"
	grep -Eqx 'differences +8' "$tmp/out"
	[ "$(grep -c '^0x' "$tmp/out")" -eq 8 ]

	have_python
	run_lying fields 1 -p "$plain" --compare --json "$start"
	"$python" -c "
import json, sys
compare = json.load(sys.stdin)['compare']
assert not compare['changed']
assert len(compare['differences']) == 8, compare
assert {'address': '0x$start', 'field': 'name', 'ioctl': '?${tmp#?}/sleep',
        'text': '$tmp/sleep'} in compare['differences'], compare" <"$tmp/out"
}

test_compare_reports_missing_mappings() {
	have_ioctl
	local start
	start=$(start_of "$plain" r-xp /sleep)
	run_lying hole 1 -p "$plain" --compare --list --executable
	grep -qx "0x0*$start: mapping: ioctl not mapped, text mapped" "$tmp/out"
	[ "$(grep -c '^0x' "$tmp/out")" -eq "$(filtered "$plain" executable | wc -l)" ]
	run_lying hole 1 -p "$plain" --compare "$start"
	grep -qx "0x0*$start: mapping: ioctl not mapped, text mapped" "$tmp/out"
}

test_compare_reports_mappings_too_many() {
	have_ioctl
	run_lying extra 1 -p "$plain" --compare --list
	[ "$(grep '^0x' "$tmp/out")" = \
		'0xffffffffffff0000: mapping: ioctl mapped, text not mapped' ]
	run_lying extra 1 -p "$plain" --compare ffffffffffff1234
	[ "$(grep '^0x' "$tmp/out")" = \
		'0xffffffffffff1234: mapping: ioctl mapped, text not mapped' ]
}

test_compare_reports_what_a_scan_says() {
	have_scan
	run_lying scan 1 -p "$plain" --compare --list
	grep -q ': end: scan 0x[0-9a-f]*, text 0x[0-9a-f]*$' "$tmp/out"
	if grep '^0x' "$tmp/out" | grep -v ': end: scan '; then
		return 1
	fi
}

test_compare_tells_of_a_process_that_changes() {
	have_ioctl
	run_lying change 1 -p self --compare --list
	[ ! -s "$tmp/out" ]
	grep -Eqx "procfs_query: the mappings of process [0-9]+ $CHANGED" \
		"$tmp/err"
	run_lying change 1 -p self --compare --list --json
	grep -q '"compare": {"changed": true, .*"differences": \[\]}}$' "$tmp/out"
}

test_with_the_ioctl_it_is_used() {
	have_ioctl
	granted -p "$plain" --list -j -Q
	grep -q '"way": "ioctl"' "$tmp/out"
	granted -p "$plain" --list -j
	grep -q "\"way\": \"$([ "$scan" ] && echo scan || echo ioctl)\"" "$tmp/out"
}

test_without_the_ioctl_the_text_is_used() {
	local lie
	if [ ! "$ioctl" ]; then
		granted -p "$plain" --list -j
		grep -q '"way": "text"' "$tmp/out"
		return
	fi
	for lie in none refused; do
		run_lying "$lie" 0 -p "$plain" --list -j
		grep -q '"way": "text"' "$tmp/out"
		[ ! -s "$tmp/err" ]
	done
}

test_without_the_ioctl_it_cannot_be_asked_for() {
	local option
	for option in -Q -S --compare '--bench 2'; do
		# shellcheck disable=SC2086	# they are two words
		if [ "$ioctl" ]; then
			run_lying none 2 -p "$plain" --list $option
		else
			run 2 -p "$plain" --list $option
		fi
		[ ! -s "$tmp/out" ]
		diff - "$tmp/err" <<-END
			procfs_query: $NO_IOCTL
		END
	done
}

# Print one number of a benchmark over three runs: its way and its key.
bench() {
	local way=$1 key=$2
	shift 2
	granted --bench 3 --json "$@"
	sed -n "s/.*\"$way\": {[^}]*\"$key\": \([0-9.]*\)[,}].*/\1/p" "$tmp/out"
}

test_bench_prints_times_in_order() {
	have_ioctl
	have_python
	granted -p "$plain" --list --bench 5 --json
	"$python" -c "
import json, sys
bench = json.load(sys.stdin)['bench']
assert bench['runs'] == 5
ways = [way for way in ('ioctl', 'scan', 'text') if way in bench]
assert list(bench)[1:1 + len(ways)] == ways, bench
assert ('scan' in ways) == bool('$scan'), bench
for way in (bench[way] for way in ways):
    assert 0 < way['min_us'] <= way['median_us'] <= way['max_us'], bench
    assert way['found'] == $(maps "$plain" | wc -l), bench
for way in ways[:-1]:
    ratio = bench['text']['median_us'] / bench[way]['median_us']
    assert abs(bench['text_to_' + way] - ratio) < 0.01 * ratio, bench" <"$tmp/out"
	granted -p "$plain" --list --bench 4
	grep -Eq '^ioctl( +[0-9.]+){5}$' "$tmp/out"
	grep -Eq '^text ( +[0-9.]+){5}$' "$tmp/out"
	run 1 -p "$plain" 1 --bench 2
}

test_one_query_answers_for_a_mapping() {
	have_ioctl
	local code data one
	code=$(start_of "$plain" r-xp /sleep)
	data=$(start_of "$plain" rw-p /sleep)
	one=$(bench ioctl syscalls -p "$plain" "$code")
	[ "$one" -gt 3 ]
	[ "$one" -lt 12 ]
	[ "$(bench ioctl syscalls -p "$plain" "$code" "${code%?}1" \
		"${code%??}ff")" = "$one" ]
	[ "$(bench ioctl syscalls -p "$plain" 1 2 3 "$code" "$data")" = $((one + 2)) ]
	[ "$(bench ioctl syscalls -p "$plain" "$code" ffffffffffff0000 \
		ffffffffffff0001)" = $((one + 1)) ]
}

test_one_scan_answers_for_all_mappings() {
	have_scan
	local nr
	nr=$(bench ioctl syscalls -p "$plain" --list)
	nr=$((nr - $(bench scan syscalls -p "$plain" --list)))
	# For each of the first sixteen a query, and so for the end, but for two.
	[ "$nr" -ge $(($(maps "$plain" | wc -l) - 4)) ]
}

test_text_is_read_once() {
	have_ioctl
	local code reads
	code=$(start_of "$plain" r-xp /sleep)
	reads=$(bench text syscalls -p "$plain" --list)
	[ "$reads" -le $((12 + $(wc -c <"/proc/$plain/maps") / 2048)) ]
	[ "$(bench text syscalls -p "$plain" "$code")" -le "$reads" ]
}

# Those of the processes $@ that are still there and have mappings.
with_mappings() {
	local pid
	for pid in "$@"; do
		! grep -qm 1 . "/proc/$pid/maps" || echo "$pid"
	done 2>/dev/null
}

test_all_looks_into_every_process() {
	have_odd
	local way pid zombie
	local -a before
	zombie=$(<"$tmp/zombie")
	for way in "${ways[@]}"; do
		mapfile -t before < <(cd /proc && printf '%s\n' [0-9]*)
		granted --all --list "$way"
		with_mappings "${before[@]}" | sort >"$tmp/expected"
		sed -n 's/^\([0-9]*\): .*/\1/p' "$tmp/out" >"$tmp/pids"
		sort -nc "$tmp/pids"
		sort "$tmp/pids" | comm -13 - "$tmp/expected" >"$tmp/missing"
		# Those that lived only for a moment may be missing.
		mapfile -t before <"$tmp/missing"
		[ ! "$(with_mappings "${before[@]}")" ]
		grep -qx "$plain" "$tmp/pids"
		(! grep -qx "$zombie" "$tmp/pids")
		(! grep -q "^[0-9]*: $tool$" "$tmp/out")
		for pid in $plain $odd; do
			maps "$pid" | sed "1i$pid: $(readlink "/proc/$pid/exe")" \
				>"$tmp/expected"
			awk -v pid="$pid:" '/^[0-9]+: / { on = $1 == pid } on' \
				"$tmp/out" | diff "$tmp/expected" -
		done
	done
}

test_all_in_json_is_an_object_each() {
	have_python
	granted --all --list --json --executable
	"$python" -c "
import json, sys
text = sys.stdin.read()
answers = []
while text:
    answer, end = json.JSONDecoder().raw_decode(text)
    answers.append(answer)
    assert text[end] == '\n'
    text = text[end + 1:]
plain, = (answer for answer in answers if answer['pid'] == $plain)
assert plain['program'] == '$tmp/sleep', plain
assert len(plain['vmas']) == $(filtered "$plain" executable | wc -l), plain
assert len(answers) > 1" <"$tmp/out"
}

test_others_may_look_into_their_own() {
	is_root
	have setpriv
	"${AS_NOBODY[@]}" "$tmp/sleep" 1000 &
	target=$!
	trap 'kill $target' EXIT
	wait_for_program "$target" "$tmp/sleep"
	"${AS_NOBODY[@]}" "$tool" --all --list --executable >"$tmp/out"
	grep -Ex '[0-9]+: .*' "$tmp/out" | grep -qx "$target: $tmp/sleep"
	(! grep -q "^$plain: " "$tmp/out")
}

test_exe_is_a_name_or_a_path() {
	local name unique="unique ${tmp##*.}"
	for name in sleep "$tmp/sleep"; do
		granted --exe "$name" --list --executable
		grep -qx "$plain: $tmp/sleep" "$tmp/out"
		(! grep -E '^[0-9]+: ' "$tmp/out" | grep -vq '/sleep$')
	done
	cp "$tmp/sleep" "$tmp/$unique"
	"$tmp/$unique" 1000 &
	target=$!
	trap 'kill $target' EXIT
	wait_for_program "$target" "$tmp/$unique"
	granted --exe "$unique" --list --executable
	sed -n 1p "$tmp/out" | diff - <(echo "$target: $tmp/$unique")
	rm "$tmp/$unique"
	granted -e "$tmp/$unique" --list
	maps "$target" | sed "1i$target: $tmp/$unique" | diff - "$tmp/out"
	run 1 -e "$unique" --list --shared --executable
	refused "there is no process of unique $NOT_SEEN" -e unique --list
	refused "there is no process of ./sleep $NOT_SEEN" -e ./sleep --list
	refused "'' is not a program: give its name, or its path" -e '' --list
}

# From maps: what --sum says of the processes $@.
summed() {
	local pid
	for pid in "$@"; do
		maps "$pid" | sed "s/^/$pid /"
	done | awk "$NUMBER"'
		function add(key, name) {
			count[key]++
			names[key] = name
			if (!((key, pid) in seen))
				processes[key]++
			seen[key, pid] = 1
			kib[key] += size
			executable[key] += $2 ~ /x/ ? size : 0
			writable[key] += $2 ~ /w/ ? size : 0
		}
		{
			pid = $1
			sub(/^[0-9]+ /, "")
			name = $0
			for (i = 0; i < 5; i++)
				sub(/^[^ ]* */, "", name)
			split($1, range, "-")
			size = (number(range[2]) - number(range[1])) / 1024
			add($4 " " $5 " " name, name == "" ? "-" : name)
			add("total", "total")
		}
		END {
			for (key in count)
				print processes[key], count[key], kib[key],
				      executable[key], writable[key], names[key]
		}' | sort
}

# What --sum prints, without its headings and its columns.
sums() {
	sed -E '1d; s/^ +//; :again; s/^([0-9 ]*[0-9])  +/\1 /; t again' | sort
}

test_sum_is_that_of_the_text() {
	local target way
	for target in $plain $odd; do
		summed "$target" | cut -d ' ' -f 2- | sort >"$tmp/expected"
		for way in "${ways[@]}"; do
			granted -p "$target" --sum "$way"
			sed -n 1p "$tmp/out" |
				grep -Eqx 'mappings +KiB +executable +writable +name'
			sed '1d; $d' "$tmp/out" | sort -srnc -k 2,2
			tail -n 1 "$tmp/out" | grep -q ' total$'
			sums <"$tmp/out" | diff "$tmp/expected" -
		done
	done
	run 1 -p "$plain" --sum --shared --executable
	[ ! -s "$tmp/out" ]
}

test_sum_of_several_processes() {
	local id
	cp "$tmp/sleep" "$tmp/twice"
	"$tmp/twice" 1000 &
	first=$!
	"$tmp/twice" 1000 &
	second=$!
	trap 'kill $first $second' EXIT
	wait_for_program "$first" "$tmp/twice"
	wait_for_program "$second" "$tmp/twice"
	granted -e twice --sum --executable
	summed "$first" "$second" >"$tmp/both"
	sed 1d "$tmp/out" | grep "/twice$" >"$tmp/twice-sum"
	id=$(filtered "$first" executable | grep -c '/twice$')
	[ "$(awk '{ print $1, $2, $5 }' "$tmp/twice-sum")" = "2 $((2 * id)) 0" ]
	granted -e twice --sum
	sums <"$tmp/out" | diff "$tmp/both" -
	granted -e twice --sum -B
	grep -A 1 "/twice$" "$tmp/out" |
		grep -qx "  build ID $(readelf_id "$tmp/twice")"
	have_python
	granted -e twice --sum -B -j
	"$python" - "$(readelf_id "$tmp/twice")" "$tmp/out" "$tmp/both" <<-'END'
		import json, sys

		answer = json.load(open(sys.argv[2]))
		with open(sys.argv[3]) as both:
		    for line in both:
		        *numbers, name = line[:-1].split(' ', 5)
		        processes, mappings, *kib = map(int, numbers)
		        expected = {
		            'processes': processes, 'mappings': mappings,
		            'bytes': kib[0] << 10, 'executable_bytes': kib[1] << 10,
		            'writable_bytes': kib[2] << 10,
		        }
		        found, = [answer['total']] if name == 'total' else [
		            sum for sum in answer['sums']
		            if sum['name'] == (None if name == '-' else name)]
		        assert expected.items() <= found.items(), (expected, found)
		        if name.endswith('/twice'):
		            assert found['build_id'] == sys.argv[1]
	END
}

test_processes_exclude_each_other() {
	local message='-p, --all and --exe exclude each other: leave out all but one'
	refused "$message" -p "$plain" --all --list
	refused "$message" -a -e sleep --list
	message='--interval and --bench look into one process: use -p PID'
	refused "$message" --all --list --interval 1
	refused "$message" --exe sleep --list --bench 2
	refused '--sum excludes --compare and --bench: use --list' \
		-p "$plain" --sum --compare
	refused '--sum excludes --compare and --bench: use --list' \
		-p "$plain" --sum --bench 2
	refused '--interval watches all mappings: use it with --list' \
		-p "$plain" --interval 1 --sum
}

test_compare_of_several_processes() {
	have_ioctl
	"$tmp/sleep" 1000 &
	target=$!
	trap 'kill $target' EXIT
	wait_for_program "$target" "$tmp/sleep"
	granted --exe "$tmp/sleep" --compare --list
	grep -Eqx '  processes +2' "$tmp/out"
	grep -Eqx "  mappings +$({ maps "$plain"; maps "$target"; } | wc -l)" "$tmp/out"
	grep -Eqx 'differences +0' "$tmp/out"
	run_lying fields 1 --exe "$tmp/sleep" --compare "$(start_of "$plain" r-xp /sleep)"
	grep -qx "$plain: $tmp/sleep" "$tmp/out"
	grep -Eqx 'differences +[1-9][0-9]*' "$tmp/out"
}

# Run a command on a terminal of 80 columns.
on_terminal() {
	have script
	TERM=xterm script -qec "stty cols 80; $*" /dev/null </dev/null |
		tr -d '\r' >"$tmp/out"
}

readonly ESCAPE=$'\033'

test_terminal_gets_lines_that_fit() {
	local long work
	long=$tmp/$(printf '%0100d' 0)
	mkdir "$long"
	cp "$tmp/sleep" "$long/program"
	"$long/program" 1000 &
	target=$!
	trap 'kill $target' EXIT
	wait_for_program "$target" "$long/program"
	for work in --list --sum '--sum -B' "$(start_of "$target" r-xp /program)"; do
		on_terminal "$tool" -p "$target" "$work"
		grep -q '\.\.\.0*/program$' "$tmp/out"
		(! sed "s/$ESCAPE\[[0-9]*m//g" "$tmp/out" | grep -E '^.{81}')
		# shellcheck disable=SC2086	# several words
		granted -p "$target" $work
		grep -qF " $long/program" "$tmp/out"
	done
	COLUMNS=300 on_terminal "$tool" -p "$target" --list
	maps "$target" | diff - <(sed "s/$ESCAPE\[[0-9]*m//g" "$tmp/out")
}

test_colours_are_for_a_terminal_that_wants_them() {
	local no_colour
	on_terminal "$tool" -p "$plain" --list
	grep -q "$ESCAPE\[32mr-xp$ESCAPE\[m" "$tmp/out"
	for no_colour in NO_COLOR=1 TERM=dumb; do
		on_terminal env "$no_colour" "$tool" -p "$plain" --list
		grep -q r-xp "$tmp/out"
		(! grep -q "$ESCAPE" "$tmp/out")
	done
	on_terminal env NO_COLOR= "$tool" -p "$plain" --list
	grep -q "$ESCAPE" "$tmp/out"
	granted -p "$plain" --list
	(! grep -q "$ESCAPE" "$tmp/out")
	on_terminal "$tool" -p "$plain" --list --json
	(! grep -q "$ESCAPE" "$tmp/out")
}

test_names_cannot_command_a_terminal() {
	have_odd
	granted -p "$odd" --list
	grep -q "/escape$ESCAPE\[2J$" "$tmp/out"
	COLUMNS=300 on_terminal "$tool" -p "$odd" --list
	grep -q '/escape?\[2J$' "$tmp/out"
	(! grep -q "$ESCAPE\[2J" "$tmp/out")
	grep -q '/b?yte$' "$tmp/out"
}

# A gnuplot that leaves what it reads in script, and then does $1.
fake_gnuplot() {
	mkdir -p "$tmp/bin"
	printf '#!/bin/sh\ncat >"%s/script"\n%s\n' "$tmp" "$1" >"$tmp/bin/gnuplot"
	chmod +x "$tmp/bin/gnuplot"
}

test_scale_draws_what_it_prints() {
	have_ioctl
	have gnuplot
	have_python
	granted --scale "$tmp/scale.svg" --json
	cp "$tmp/out" "$tmp/scale.json"
	"$python" - "$tmp/scale.json" "$tmp/scale.svg" "$scan" <<-'END'
		import json, sys
		import xml.etree.ElementTree

		points = json.load(open(sys.argv[1]))['scale']
		curves = [('lookup', 'ioctl'), ('lookup', 'text'), ('walk', 'ioctl'),
		          ('walk', 'scan'), ('walk', 'text')]
		if not sys.argv[3]:
		    curves.remove(('walk', 'scan'))
		keys = [f'{work}_{way}_us' for work, way in curves]
		assert all(list(point) == ['vmas'] + keys for point in points), points
		vmas = [point['vmas'] for point in points]
		own = vmas[0] - 10
		assert vmas == [own + n for n in (10, 30, 100, 300, 1000, 3000, 10000,
		                                  30000, 60000)], vmas
		assert all(point[key] > 0 for point in points for key in keys), points
		svg = xml.etree.ElementTree.parse(sys.argv[2]).getroot()
		assert svg.tag == '{http://www.w3.org/2000/svg}svg'
		texts = [''.join(e.itertext()).strip() for e in svg.iter()]
		for work, way in curves:
		    assert f'{work} by {way}' in texts, texts
	END
	fake_gnuplot 'echo "<svg/>"'
	PATH=$tmp/bin:$PATH on_terminal "$tool" --scale "$tmp/scale.svg" --json
	[ "$(cat "$tmp/scale.svg")" = '<svg/>' ]
	grep -q '9 of 9: 60000 mappings' "$tmp/out"
	grep -o '{"vmas": [^}]*}' "$tmp/out" >"$tmp/expected"
	[ "$(wc -l <"$tmp/expected")" -eq 9 ]
	grep -o '{"vmas": [^}]*}' "$tmp/script" | diff "$tmp/expected" -
}

test_scale_leaves_nothing_half_done() {
	have_ioctl
	local try
	echo before >"$tmp/picture.svg"
	fake_gnuplot 'echo "<svg>"; exit 1'
	PATH=$tmp/bin:$PATH refused 'gnuplot failed: there is no picture' \
		--scale "$tmp/picture.svg"
	PATH=$tmp/bin:$PATH "$tool" --scale "$tmp/picture.svg" &
	target=$!
	# Until a process that is measured has its mappings, and waits.
	until [ "$(wc -l <"/proc/$(pgrep -nP "$target" -f "^$tool")/maps")" \
			-gt 500 ]; do
		sleep 0.01
	done 2>/dev/null
	kill -STOP "$target"
	sleep 1
	kill -KILL "$target"
	(! wait "$target")
	for ((try = 0; try < 50; try++)); do
		pgrep -f "^$tool --scale" >/dev/null || break
		sleep 0.1
	done
	(! pgrep -af "^$tool --scale")
	[ "$(cat "$tmp/picture.svg")" = before ]
	[ "$(echo "$tmp"/picture.svg*)" = "$tmp/picture.svg" ]
}

test_scale_says_what_is_missing() {
	refused '--scale measures processes of its own: give it --json at most' \
		--scale "$tmp/scale.svg" -p "$plain" --list
	refused "$tmp is not a regular file: give another" --scale "$tmp"
	refused "$tmp/none/x.svg: No such file or directory: give a file that can be written" \
		--scale "$tmp/none/x.svg"
	mkdir "$tmp/without"
	printf '#!/bin/sh\nPATH=/none exec %s "$@"\n' "$tool" >"$tmp/without/gnuplot"
	chmod +x "$tmp/without/gnuplot"
	tool=$tmp/without/gnuplot refused \
		'gnuplot: No such file or directory: install gnuplot-nox' \
		--scale "$tmp/missing.svg"
	[ ! -e "$tmp/missing.svg" ]
}

test_bash_completes_options_and_processes() {
	local library=/usr/share/bash-completion/bash_completion
	[ -e $library ] || skip "no bash-completion"
	local file
	file=$(dirname "$0")/procfs_query.bash
	# shellcheck disable=SC2016	# for the other bash
	bash -c '
		. "$1"
		. "$2"
		shift 2
		PATH=$(dirname "$1"):$PATH
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		COMP_LINE=$* COMP_POINT=${#COMP_LINE}
		_procfs_query procfs_query "${@: -1}" "${*: -2:1}"
		printf "%s\n" "${COMPREPLY[@]}"
	' bash $library "$file" "$tool" -- >"$tmp/out"
	"$tool" --help | grep -oE -- '--[a-z-]+' | sort -u >"$tmp/expected"
	sed 's/=$//' "$tmp/out" | sort -u | diff "$tmp/expected" -
}

# An ioctl that lies, for what no kernel does.
build_liar() {
	command -v cc >/dev/null || return 0
	cc -D_GNU_SOURCE -x c -shared -fPIC -o "$tmp/lie.so" - <<-'END'
		#include <errno.h>
		#include <stdarg.h>
		#include <stdint.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <unistd.h>

		enum { ADDR = 2, START, END, FLAGS, OFFSET = 7, INODE, DEV, SIZES,
		       NAME, BUILD_ID };
		/* PROCMAP_SCAN, and where in what it is given the array is. */
		enum { SCAN = 0xc04866e0, VEC = 5 };

		static int fail(int error)
		{
			errno = error;
			return -1;
		}

		int ioctl(int fd, unsigned long request, ...)
		{
			const char *lie = getenv("LIE");
			static int calls;
			uint64_t *query;
			va_list args;

			va_start(args, request);
			query = va_arg(args, uint64_t *);
			va_end(args);

			if (!strcmp(lie, "none"))
				return fail(ENOTTY);
			if (!strcmp(lie, "refused"))
				return fail(EPERM);
			if (!strcmp(lie, "scan")) {
				const int nr = syscall(SYS_ioctl, fd, request, query);

				if (request == SCAN && nr > 0)
					((uint64_t *)query[VEC])[1] += 4096;
				return nr;
			}
			if (request == SCAN)
				return fail(ENOTTY);
			if (!strcmp(lie, "hole"))
				return fail(ENOENT);
			if (!strcmp(lie, "gone") && calls++ > 3)
				return fail(ESRCH);
			if (!strcmp(lie, "change") && !query[ADDR])
				mmap(NULL, 4096, calls++ % 2 ? PROT_READ : PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (syscall(SYS_ioctl, fd, request, query)) {
				if (errno != ENOENT || strcmp(lie, "extra") ||
				    query[ADDR] >= -4096ULL)
					return -1;
				memset(query + START, 0, 8 * (SIZES + 1 - START));
				query[START] = -65536;
				query[END] = -4096;
			} else if (!strcmp(lie, "fields")) {
				query[END] += 4096;
				query[FLAGS] ^= 2;
				query[OFFSET] += 4096;
				query[INODE]++;
				query[DEV] += 0x100000001;
				if (query[NAME])
					*(char *)query[NAME] = '?';
				if (query[BUILD_ID])
					*(char *)query[BUILD_ID] ^= 1;
			}
			return 0;
		}
	END
}

# A process that maps what is odd, and has a child that is a zombie. The pages of
# its files and of its shared memory are all there.
start_odd() {
	[ "$python" ] || return 0
	mkdir "$tmp/odd"
	coproc ODD { exec "$python" -c "$odd_program" "$tmp"; }
	read -r -t 60 _ <&"${ODD[0]}"
	odd=$ODD_PID
}

readonly odd_program='
import mmap, os, struct, sys

top = os.fsencode(sys.argv[1])
base = top + b"/odd"
kept = []

def keep(path, content, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ):
    with open(path, "wb+") as file:
        file.write(content)
        file.flush()
        kept.append(mmap.mmap(file.fileno(), 0, flags=flags, prot=prot))

with open(top + b"/sleep", "rb") as file:
    elf = file.read()
note = elf.index(b"\4\0\0\0\24\0\0\0\3\0\0\0GNU\0")

def change(at, byte):
    return elf[:at] + bytes([byte]) + elf[at + 1:]

for name in (b"with space ", b"new\nline", b"\"quote\\back",
             b"b\xffyte", b"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
             b"cut \xe2\x82 \xf0\x9f\x98", b"long \xc0\xaf \xe0\x80\x80",
             b"surrogate \xed\xa0\x80", b"large \xf4\x90\x80\x80 \xf5",
             b"escape\x1b[2J"):
    keep(base + b"/" + name, b"x" * 9000)
keep(base + b"/shared", b"x" * 9000, mmap.MAP_SHARED,
     mmap.PROT_READ | mmap.PROT_WRITE)
kept.append(mmap.mmap(-1, 4096))
kept[-1][0] = 1
for name in b"deleted", b"elf":
    keep(base + b"/" + name, elf)
    os.unlink(base + b"/" + name)
keep(base + b"/relocatable", change(16, 1))
# What a machine of the other byte order would have: ELF and program header, note.
foreign = ">" if sys.byteorder == "little" else "<"
keep(base + b"/foreign",
     b"\x7fELF\2" + (b"\2" if foreign == ">" else b"\1") + b"\1" + bytes(9) +
     struct.pack(foreign + "HHIQQQIHHHHHH", 3, 22, 1, 0, 64, 0, 0, 64, 56, 1,
                 64, 0, 0) +
     struct.pack(foreign + "IIQQQQQQ", 4, 4, 120, 0, 0, 36, 36, 4) +
     struct.pack(foreign + "III4s20s", 4, 20, 3, b"GNU", b"an ID of twenty byte"))
keep(base + b"/id-of-8", change(note + 4, 8))
keep(base + b"/id-of-21", change(note + 4, 21))

os.chdir(base)
for _ in range(17):
    os.mkdir(b"long-" + b"x" * 240)
    os.chdir(b"long-" + b"x" * 240)
keep(b"file", b"x")

child = os.fork()
if not child:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
with open(top + b"/zombie", "w") as file:
    file.write(str(child))
print("ready", flush=True)
sys.stdin.read()
'

set_up() {
	local given
	given=$(readlink -f "${1:-${TOOL:-$(dirname "$0")/procfs_query}}")
	[ -x "$given" ] || {
		echo "Bail out! no program ${1:-${TOOL:-procfs_query}}: build it first"
		exit 1
	}

	plain='' odd='' ioctl='' scan='' python=''
	tmp=$(mktemp -d)
	trap clean_up EXIT
	# Where every user may run it.
	chmod 755 "$tmp"
	tool=$tmp/procfs_query
	cp "$given" "$tool"
	cp "$(command -v sleep)" "$tmp/sleep"

	"$tmp/sleep" 1000 &
	plain=$!
	# A wrapper of python3 would take its time at each start.
	if command -v python3 >/dev/null; then
		python=$(python3 -c 'import sys; print(sys.executable)')
	fi
	start_odd
	build_liar
	wait_for_program "$plain" "$tmp/sleep"
	ways=(-T)
	if "$tool" -Q -p "$plain" --list >/dev/null 2>&1; then
		ioctl=y
		ways+=(-Q)
	fi
	if "$tool" -S -p "$plain" --list >/dev/null 2>&1; then
		scan=', scan'
		ways+=(-S)
	fi
	echo 400000 >"$tmp/addresses"
	start_of "$plain" r-xp /sleep >>"$tmp/addresses"
}

clean_up() {
	[ ! "$plain" ] || kill "$plain"
	[ ! "$odd" ] || kill "$odd"
	rm -rf "$tmp"
}

run_tests() {
	local name status tests number=0 failed=0

	mapfile -t tests <<<"$(sed -n 's/^test_\([a-z0-9_]*\)() {$/\1/p' "$0")"
	echo "TAP version 13"
	echo "1..${#tests[@]}"
	for name in "${tests[@]}"; do
		number=$((number + 1))
		set +e
		(set -e; "test_$name") >"$tmp/log" 2>&1
		status=$?
		set -e
		case $status in
		0)
			echo "ok $number $name"
			;;
		"$KSFT_SKIP")
			echo "ok $number $name # SKIP $(cat "$tmp/skip")"
			;;
		*)
			cut -c 1-300 "$tmp/log" | sed 's/^/# /'
			echo "not ok $number $name"
			failed=1
			;;
		esac
	done
	return $failed
}

set_up "$@"
run_tests
