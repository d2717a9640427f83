#!/bin/bash
# planted-faults: checks/run, checks/parse-tap and the tables: each planted fault is a failure.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

# Make a program of kselftest's that runs a shell script.
plant() {
	mkdir -p "$tmp/programs/planted"
	cat - >"$tmp/programs/planted/$1" <<<"#!/bin/sh
$2"
	chmod +x "$tmp/programs/planted/$1"
}

# Run the planted programs as a guest does, and take its results.
run_planted() {
	cp -r "$programs/kselftest" "$tmp/programs/"
	echo 'timeout=2' >"$tmp/programs/planted/settings"
	printf '%s\n' $'a,planted\tvma\tplanted/*\tallowed\tno such *' \
		$'other\t*\tplanted/*\t*\t*' $'planted\tmmap\tplanted/*\t*\t*' >"$tmp/skips"
	bash -c "$runner" runner "$tmp/programs" "$@" >"$tmp/output"
	SKIPS=$tmp/skips "$CHECKS/parse-tap" planted-64 vma,other "$tmp/output" 0 >"$tmp/taken"
	cat "$tmp/output" "$tmp/taken"
}

# A program with that script is reported as a failure, in a line that begins with
# PROGRAM[: TEST].
is_found() {
	local found=$1 script=$2
	plant "${found%%:*}" "$script"
	run_planted "planted/${found%%:*}"
	grep -E "^not ok - planted-64: planted/$found" "$tmp/taken"
}

passes() {
	plant program "$1"
	run_planted planted/program
	expect 1 grep '^not ok' "$tmp/taken"
	grep -c '^ok' "$tmp/taken"
}

# A guest is reported that ends with the status $2 after a program of the $1 it was given.
guest_is_found() {
	printf '%s\n' "1..$1" '# 1..1' '# ok 1 a' 'ok 1 selftests: planted: program' >"$tmp/output"
	"$CHECKS/parse-tap" planted - "$tmp/output" "$2" >"$tmp/taken"
	cat "$tmp/taken"
	grep -x "not ok - planted: $3" "$tmp/taken"
}

skip_is_found() {
	"$CHECKS/parse-tap" planted - skip 'a check' 'a reason' | grep '^not ok - planted: a check$'
}

# Make a copy of this project whose sections build and static are shell scripts.
plant_section() {
	copy=$tmp/copy
	rm -rf "$copy"
	mkdir -p "$copy"
	(cd "$ROOT" && cp -r --parents checks kernel/kernels scripts ./*/check series/default* \
		series/{*/base,common/base-defaults,linux-*/*.patch} "$copy")
	sed -i 's/\tmake_series_and_programs$/\tresults <<<ok/' "$copy/checks/sections"
	printf '#!/bin/sh\n%s\n' "$1" >"$copy/checks/static.sh"
}

run_copy() {
	env -u CI -u BUILD "$copy/checks/run" "$@"
}

section_is_found() {
	plant_section "$1"
	expect 1 run_copy static >"$tmp/out" 2>&1
	cat "$tmp/out"
	tail -n 1 "$tmp/out" | grep -E '^[0-9]+ passed, [1-9][0-9]* failed, 0 skipped$'
}

section_cannot_run() {
	plant_section 'echo 1..1; echo ok'
	chmod -x "$copy/checks/static.sh"
	expect 1 run_copy static
	rm "$copy/checks/static.sh"
	expect 1 run_copy static
}

# A row that sed script $2 makes of the file $1, or a file, is one that no section runs.
is_left_out() {
	plant_section 'echo 1..1; echo ok'
	if [ $# -eq 1 ]; then
		cp "$copy/checks/static.sh" "$copy/$1"
	else
		sed -i "$2" "$copy/$1"
	fi
	expect 2 run_copy static >"$tmp/out" 2>&1
	grep 'no section in checks/sections runs: ' "$tmp/out"
}

# scripts/series refuses a selftest that no patch adds. What it looks at is planted in its index.
# shellcheck disable=SC2034	# the functions of scripts/series use them
stray_is_found() {
	local inputs WORK=$tmp planted=tools/testing/selftests/proc/procmap-planted.c
	local selftests=tools/testing/selftests function
	local -x GIT_DIR=$tmp/git
	for function in named_in take_inputs refuse_strays; do
		eval "$(sed -n "/^$function() {/,/^}/p" "$ROOT/scripts/series")"
	done
	cd "$ROOT"
	git init -q --bare "$GIT_DIR"
	git config core.bare false
	inputs=$(take_inputs)
	refuse_strays
	planted=100644,$(git hash-object -w --stdin </dev/null),$planted
	GIT_INDEX_FILE=$WORK/inputs.index git update-index --add --cacheinfo "$planted"
	inputs=$(GIT_INDEX_FILE=$WORK/inputs.index git write-tree)
	expect 2 eval '(refuse_strays)' 2>"$tmp/err"
	grep "no patch adds ${planted##*,}: " "$tmp/err"
}

results_are_counted() {
	plant_section 'echo 1..3; echo ok a; echo "ok b # SKIP c"; echo "ok \# SKIP d"'
	run_copy static >"$tmp/out"
	tail -n 1 "$tmp/out" | grep -x '3 passed, 0 failed, 1 skipped'
}

second_run_is_refused() {
	plant_section :
	mkdir "$copy/build"
	expect 2 flock "$copy/build/check.lock" env -u BUILD "$copy/checks/run" static
}

interrupt_leaves_nothing() {
	local pid group
	plant_section "echo \$\$ >'$tmp/up'; sleep 100"
	env -u CI -u BUILD "$copy/checks/run" static >"$tmp/out" 2>&1 &
	pid=$!
	wait_for 60 [ -s "$tmp/up" ]
	group=$(ps -o pgid= "$(cat "$tmp/up")" | tr -d ' ')
	kill -TERM $pid
	expect 143 wait $pid
	wait_for 10 expect 1 pgrep -r D,R,S -ag "$group"
}

# Patterns that name no program, a section without a line, and "make test" of no program.
empty_selection_is_found() {
	rows | sed 's/.*\t//' | while read -r patterns; do
		programs_named "$patched" "$patterns" | wc -l
	done
	# shellcheck disable=SC2016	# later
	expect 2 eval '(programs_named "$patched" "proc/procmap-{nosuch,names}")'
	expect 2 eval '(section=nosuch; guests)'
	expect 2 "$CHECKS/test" lib/nosuch 2>&1 |
		grep 'no lib/nosuch; there are: lib64/procmap-elf-test'
}

check "a good program passes" passes 'echo 1..1; echo ok 1 a'
check "an allowed skip passes" passes 'echo 1..1; echo "ok 1 allowed # SKIP no such thing"'
while IFS='|' read -r fault found script; do
	check "$fault is found" is_found "$found" "$script"
done <<'END'
a skip for another reason|program: allowed|echo 1..1; echo "ok 1 allowed # SKIP why not"
a skip of another test|program: other|echo 1..1; echo "ok 1 other # SKIP no such thing"
a skip without a name|program: a.b|echo 1..1; echo "# RUN a.b ..."; echo "ok 1 # SKIP no such thing"
a program skipped by its exit status|program|exit 4
a program skipped by its plan|program|echo "1..0 # SKIP no such thing"
a test with the remark SKIPPED|program: a|echo 1..1; echo "ok 1 a #SKIPPED no such thing"
a test with the remark XFAIL|program: a|echo 1..1; echo "ok 1 a #XFAIL broken"
a test with another remark before a skip|program: a|echo 1..1; echo "ok 1 a #b # SKIP no such thing"
a failed test|program: a|echo 1..1; echo not ok 1 a
a failure called a TODO|program: a|echo 1..1; echo "not ok 1 a # TODO b"
a failure called a skip|program: allowed|echo 1..1; echo "not ok 1 allowed # SKIP no such thing"
a plan not fulfilled|program|echo 1..2; echo ok 1 a
a program without a plan|program|echo ok 1 a
a program that ends as if skipped|program|echo 1..1; echo ok 1 a; exit 4
a program that ends with an error|program|echo 1..1; echo ok 1 a; exit 3
a program that does not end|program|echo 1..1; echo ok 1 a; sleep 100
the end of another program|program: a|echo 1..1; echo not ok 1 a; echo "ok 1 selftests: planted: b"
END
check "a guest that does not run its last program is found" \
	guest_is_found 2 0 'runs what it was given'
check "a guest that ends with an error is found" guest_is_found 1 125 'ends well'
check "a skip that the list does not have is found" skip_is_found
check "a script that no section runs is found" is_left_out checks/other.sh
check "guests that no section runs are found" is_left_out checks/sections '/^stock-5.10/d'
check "a kernel that no section runs is found" is_left_out kernel/kernels \
	'/^7.3/s/.*/&\n7.4\ttrixie-backports\tvma\tvma\t-/'
check "a section that fails is found" section_is_found 'echo not ok a; echo 1..1'
check "a section that ends early is found" section_is_found 'echo ok a'
check "a section that skips all its checks is found" section_is_found 'echo 1..0 # SKIP'
check "a section's failure called a TODO is found" section_is_found \
	'echo "not ok 1 a # TODO"; echo 1..1'
check "a section that cannot be run is found" section_cannot_run
check "a check whose program is missing is found" section_is_found \
	'exec bash -c ". checks/shared/tap.sh; check a no-such-program; done_testing"'
check "a selftest that no patch adds is found" stray_is_found
check "a selection that selects nothing is found" empty_selection_is_found
check "results are counted" results_are_counted
check "an interrupt leaves no process" interrupt_leaves_nothing
check "a second run in a checkout is refused" second_run_is_refused
done_testing
