# shellcheck shell=bash
# Checks, which print TAP, a line each.
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

# shellcheck disable=SC2034	# for the sections
CHECKS=$ROOT/checks
section=${section:-$(basename "$0" .sh)}
log=$BUILD/log/check-$section

mkdir -p "$BUILD/log"
rm -rf "$log"
mkdir "$log"
tmp=$(mktemp -d)
: >"$tmp/results"
# shellcheck disable=SC2046	# one word a job
trap 'kill $(jobs -p) 2>/dev/null || :; wait; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Print the results on stdin, and keep them for done_testing().
results() {
	tee -a "$tmp/results"
}

# Run a command or function as the check NAME. What it prints is kept; the end of
# it is shown if it fails.
check() {
	local name=$1 status output
	output=$log/$(tr -c '[:alnum:]\n' - <<<"$1")
	shift
	# Not as a condition: that would keep set -e from ending it.
	set +e
	(set -e; "$@") >"$output" 2>&1 </dev/null
	status=$?
	set -e
	if [ $status -eq 0 ]; then
		echo "ok - $name" | results
	else
		echo "not ok - $name" | results
		{
			echo "# failed: $section: $name; its output ends:"
			tail -n 30 "$output" | sed 's/^/#   /'
		} >&2
	fi
}

# The plan. A section that does not come this far has none, and fails.
done_testing() {
	echo "1..$(wc -l <"$tmp/results")"
	[ -s "$tmp/results" ] && ! grep -q '^not ok ' "$tmp/results"
}

# Wait for a command to succeed, so many seconds at most.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# Run a command, and expect this exit status of it.
expect() {
	local want=$1 status=0
	shift
	"$@" || status=$?
	[ "$status" -eq "$want" ] || {
		echo "exit status $status, not $want: $*"
		return 1
	}
}
