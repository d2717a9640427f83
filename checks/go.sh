#!/bin/bash
# go: the package in Go, and its users.
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
check "go test" go test -v .
done_testing
