#!/bin/bash
# go-live: the package in Go under the race detector, and on Debian's kernel with the live module.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

cd "$ROOT/tools/lib/procmap/go"
export GOFLAGS=-count=1

# The package needs no cgo, and the guest may have another libc. Files on the guest's
# overlayfs are not known by their numbers.
# shellcheck disable=SC2016	# for the guest's shell
test_on_live_module() {
	CGO_ENABLED=0 go test -c -o "$BUILD/go.test" .
	vm -t 1800 -k "stock:$FLAVOUR" -M 'live scan=1' -- env TMPDIR=/dev/shm \
		sh -c 'cp "$1" /dev/shm/ && exec /dev/shm/go.test -test.v' sh "$BUILD/go.test"
}

# The example, under the race detector, while processes exit: of a process in PID and mount
# namespaces of its own, it prints what maps and readelf have. Of kernel threads, it says nothing.
example_lists_all_processes() {
	local pid id
	# shellcheck disable=SC2046,SC2154	# one word a job
	trap 'kill $(jobs -p) 2>/dev/null || :' EXIT
	cd ../examples/go-profiler
	gofmt -l . | diff /dev/null -
	GOPROXY=off go vet .
	GOPROXY=off go build -race -o "$tmp/profiler" .
	cp /bin/sleep "$tmp/sleeper"
	unshare -rmpf --kill-child "$tmp/sleeper" 1000 &
	wait_for 10 pgrep -x sleeper
	pid=$(pgrep -nx sleeper)
	(while :; do /bin/true; done) &
	"$tmp/profiler" 3 >"$tmp/lines"
	id=$(readelf -n "$tmp/sleeper" | sed -n 's/.*Build ID: //p')
	sed -nE "s/^$pid (\S+ \S+ \S+ \S+) (\S+) (.*)/\1 \3/p" "$tmp/lines" |
		sort -u >"$tmp/listed"
	grep -E " $id $tmp/sleeper$" "$tmp/lines"
	grep ' r-xp ' "/proc/$pid/maps" | awk '{
		sub(/^0+/, "", $3); split($4, dev, ":")
		for (i in dev) { sub(/^0+/, "", dev[i]); if (dev[i] == "") dev[i] = 0 }
		print $1, ($3 == "" ? 0 : $3), dev[1] ":" dev[2], $5, $6 }' | sort |
		diff - "$tmp/listed"
}

check "go test -race" go test -v -race .
check "the example lists all processes" example_lists_all_processes
check "the tests on the live module" test_on_live_module
done_testing
