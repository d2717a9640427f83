#!/bin/bash
# usage: what is wrong gets one line, and nothing is left half done.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

bad_options_are_refused() {
	refuses "no kernel 'nosuch'; take.* stock:FLAVOUR" vm -k nosuch -- true
	refuses 'no image .*nosuch' vm -k /nosuch -- true
	refuses '-M.*nosuch.ko$' vm -M 'nosuch.ko scan=1' -- true
	refuses 'no lib/nosuch; there are: lib64/procmap-elf-test .*$' "$CHECKS/test" lib/nosuch
	refuses "no base .linux-0.*$BASE" env BASE=linux-0 "$ROOT/scripts/series"
}

series_on() {
	env BUILD="$tmp/build" KDIR="$1" "$ROOT/scripts/series"
}

# A checkout, with a change that is not committed.
kdir_is_taken() {
	local sum kdir=$tmp/kdir
	rm -rf "$tmp/build"
	small_tree "$kdir"
	git -C "$kdir" init -q
	git -C "$kdir" add .
	git -C "$kdir" -c user.name=check -c user.email=check@localhost \
		commit -q -m base
	echo '# mine' >>"$kdir/fs/proc/Makefile"
	sum=$(find "$kdir" -type f -exec sha1sum {} + | sort)
	series_on "$kdir"
	[ "$sum" = "$(find "$kdir" -type f -exec sha1sum {} + | sort)" ]
	git --git-dir="$(echo "$tmp/build/$BASE"-*/git)" show series:fs/proc/Makefile |
		grep '^# mine'
}

kdir_that_does_not_fit() {
	local kdir=$tmp/misfit
	rm -rf "$tmp/build"
	refuses 'KDIR: there is no' series_on "$tmp/nosuch"
	mkdir -p "$tmp/empty"
	refuses "is not a tree of Linux $(base_value VERSION)" series_on "$tmp/empty"
	small_tree "$kdir"
	sed -i 's/task_mmu\.o/task_other.o/' "$kdir/fs/proc/Makefile"
	refuses '000[0-9]-.*fs/proc/Makefile' series_on "$kdir"
	[ ! -e "$tmp/build/series/$BASE" ]
}

check "bad options are refused" bad_options_are_refused
check "KDIR's tree that does not fit is refused" kdir_that_does_not_fit
check "KDIR's tree is taken and left alone" kdir_is_taken
done_testing
