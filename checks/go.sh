#!/bin/bash
# go: the package in Go, on this machine and on Debian's kernel with the live module.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

cd "$ROOT/tools/lib/procmap/go"
export GOFLAGS=-count=1

vet() {
	local arch
	gofmt -l . | diff /dev/null -
	for arch in amd64 386 arm64; do
		GOARCH=$arch go vet .
	done
	go-staticcheck .
}

# The package needs no cgo, and the guest may have another libc. Files on the guest's
# overlayfs are not known by their numbers.
# shellcheck disable=SC2016	# for the guest's shell
test_on_live_module() {
	CGO_ENABLED=0 go test -c -o "$BUILD/go.test" .
	vm -t 1800 -k "stock:$FLAVOUR" -M 'live scan=1' -- env TMPDIR=/dev/shm \
		sh -c 'cp "$1" /dev/shm/ && exec /dev/shm/go.test -test.v' sh "$BUILD/go.test"
}

# Make a module whose program imports the package by a path; the arguments that follow are for
# go mod edit. Leaves the shell in it.
new_user() {
	mkdir "$tmp/$1"
	cd "$tmp/$1"
	go mod init example.com/user
	go mod edit -go 1.19 "${@:3}"
	cat >main.go <<-END
		package main

		import ("fmt"; "os"; "$2")

		func main() {
			p, err := procmap.Open(os.Getpid(), procmap.Options{})
			fmt.Println(p.Method(), err)
		}
	END
}

prints_the_method() {
	go run "$@" . | tee /dev/stderr | grep -E '^[a-z]+ <nil>$'
}

# Other modules use a copy that was published as its README says, and need no network.
other_modules_use_it() {
	local package=$tmp/package second=example.com/second/procmap
	local path=example.com/published/procmap
	local -x GOFLAGS=-mod=mod GOPROXY=off
	local known=(-require "$path@v0.0.0" -replace "$path=$package")
	[[ $(go list -m) == *.*/* ]]
	cp -r . "$package"
	(cd "$package" && go mod edit -module "$path" && go vet .)
	(
		new_user replace "$path" "${known[@]}"
		prints_the_method
		go mod vendor
		cmp "vendor/$path/LICENSE" "$package/LICENSE"
		prints_the_method -mod=vendor
	)
	(
		new_user copy example.com/user/internal/procmap
		mkdir -p internal/procmap
		cp "$package"/*.go "$package/LICENSE" internal/procmap
		prints_the_method
		go vet ./...
	)
	(
		mkdir "$tmp/second"
		cd "$tmp/second"
		go mod init "$second"
		printf '%s\n' 'package procmap' "import first \"$path\"" \
			'type Options = first.Options' 'var Open = first.Open' >second.go
		new_user by-second "$second" "${known[@]}" -require "$second@v0.0.0" \
			-replace "$second=$tmp/second"
		prints_the_method
	)
}

check "go vet" vet
check "other modules use it" other_modules_use_it
check "go test -race" go test -v -race .
check "the tests on the live module" test_on_live_module
done_testing
