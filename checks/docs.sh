#!/bin/bash
# docs: the code in Documentation is compiled and run.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

examples_are_compiled() {
	local example
	documented_programs "$tmp"
	for example in "$tmp"/*.c; do
		gcc -Wall -Wextra -Werror -isystem "$patched/tools/include/uapi" \
			-o "${example%.c}" "$example"
	done
	[ -x "$tmp/procmap_query-1" ]
	[ -x "$tmp/procmap_scan-1" ]
}

# shellcheck disable=SC2016	# for the guest's shell
example_program='
coproc cat
echo it runs >&"${COPROC[1]}"
read -r _ <&"${COPROC[0]}"
read -r range _ <"/proc/$COPROC_PID/maps"
"$1" "$COPROC_PID" "${range%-*}" 1000
"$2" "$COPROC_PID"
kill "$COPROC_PID"
'

examples_run() {
	vm -k "stock:$release" -M 'live scan=1' -- bash -c \
		"$example_program" run "$tmp/procmap_query-1" "$tmp/procmap_scan-1" |
		tee "$tmp/out"
	grep -Eq '^[0-9a-f]+: /.*\+0x0 [0-9a-f]{40}$' "$tmp/out"
	grep -q '^1000: not mapped$' "$tmp/out"
	grep -Eq '^[0-9a-f]+-[0-9a-f]+ /.*/libc\.so\.6$' "$tmp/out"
}

release=$(debian_release newest)
check "live module for $release" "$ROOT/scripts/live" "$release"
check "the examples are compiled" examples_are_compiled
check "the examples run" examples_run
done_testing
