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

check "go test -race" go test -v -race .
check "the tests on the live module" test_on_live_module
done_testing
