#!/bin/bash
# series-refresh: the round trip from the series to a tree and back. All is done in a copy of
# this project, with bases that have only the files that are patched.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

project=$tmp/project
export GIT_AUTHOR_NAME=check GIT_AUTHOR_EMAIL=check@localhost
export GIT_COMMITTER_NAME=check GIT_COMMITTER_EMAIL=check@localhost
mapfile -t bases < <(cd "$ROOT/series" && dirname linux-*/base)

# Of another base than BASE, the package.
small_base() {
	[ "$1" = "$BASE" ] || local KDIR='' BASE=$1 WORK=$BUILD/$1
	"$ROOT/scripts/series"
	small_tree "$tmp/$1"
}

prepare() {
	local base
	for base in "${bases[@]}"; do
		small_base "$base"
	done
	git init -q "$project"
	git -C "$ROOT" --git-dir="$project/.git" --work-tree="$ROOT" add -A
	git_here commit -q -m project
	git_here reset -q --hard
}

series() {
	env -C "$project" BUILD="$tmp/build" KDIR="$tmp/$BASE" scripts/series "$@"
}

git_here() {
	git -C "$project" "$@"
}

git_there() {
	git -C "$tree" "$@"
}

# Undo all changes to the copy, make its tree $1 anew, and set $name and $tree.
start() {
	name=$1
	git_here reset -q --hard
	git_here clean -fdq
	rm -rf "$tmp/build"
	series tree "$name"
	tree=$(echo "$tmp/build/$BASE"-*/"$name")
}

refresh() {
	series refresh "$name"
}

# Commit the change to a path as a fixup of the first commit that changes $2, or the path.
fixup() {
	git_there add -A -f -- "$1"
	git_there commit -q --fixup="$(git_there log --reverse --format=%h "base.." -- "${2:-$1}" |
		sed -n 1p)"
}

plant() {
	echo '/* planted */' >>"$tree/$1"
	fixup "$@"
}

changed_here() {
	git_here add -A -N
	git_here diff --name-only
}

# Print the changes to the patches, without line numbers, hashes and context.
changed_lines() {
	git_here add -A -N
	git_here diff -U0 -- '*.patch' | grep -E '^[-+]([^-+]|[-+][^-+])' |
		grep -vE '^[-+](index |@@ | |$)'
}

# The tree is the series that the copy makes, and another refresh writes nothing.
is_settled() {
	git_there diff --exit-code HEAD
	[ "$(git_there rev-parse HEAD)" = "$(git_there rev-parse "${name/#patched/series}")" ]
	git_here add -A
	refresh 2>&1 | grep -x 'nothing has changed'
	git_here diff --exit-code
}

# Nothing is written.
refuses_cleanly() {
	git_here add -A
	refuses "$@"
	git_here diff --exit-code
	[ -z "$(git_here ls-files --others --exclude-standard)" ]
}

refresh_as_it_is() {
	local BASE=$1
	start "$2"
	is_settled
	[ -z "$(git_here status --porcelain)" ]
}

# Each hunk is written where it was, and one for all bases is in the tree of each.
change_of_hunks() {
	local path=tools/testing/selftests/proc/.gitignore
	start patched
	sed -i '/^.procmap-\*/a/planted' "$tree/$path"
	fixup "$path"
	plant fs/proc/task_mmu.c
	refresh
	[[ $(changed_here | paste -sd ' ') == \
	   series/common/*-test-PROCMAP_QUERY.patch\ "series/$BASE"/*.patch ]]
	changed_lines | sort | diff - <(printf '%s\n' '++/* planted */' '++/planted')
	is_settled
	for BASE in "${bases[@]}"; do
		series tree patched
		grep -x /planted "$tmp/build/$BASE"-*/"patched/$path"
	done
}

# A room has directories of its own, and one for all bases, too.
change_in_a_room() {
	start uprobes
	plant arch/x86/kernel/uprobes.c
	refresh
	[[ $(changed_here) == uprobes/series/common/0001-* ]]
	changed_lines | diff - <(echo '++/* planted */')
	is_settled
}

# One in a directory that a patch adds is in no patch itself.
new_and_deleted_file() {
	local new=fs/proc/planted.c old=fs/proc/procmap_walk.h selftests=tools/testing/selftests/proc
	start patched
	plant "$selftests/planted.c" "$selftests/procmap-abi.c"
	git_there rm -q "$selftests/procmap-uffd.h"
	fixup "$selftests" "$selftests/procmap-abi.c"
	plant "$new" fs/proc/procmap_query.c
	git_there rm -q "$old"
	fixup fs/proc "$old"
	refresh
	cmp "$tree/$new" "$project/$new"
	changed_lines | sort | diff - <(printf '%s\n' "+Adds: $new" "-Adds: $old")
	git_here diff HEAD --name-status --no-renames -- tools fs | diff - <(printf '%s\t%s\n' \
		A "$new" D "$old" A "$selftests/planted.c" D "$selftests/procmap-uffd.h")
	is_settled
}

message_and_new_patch() {
	local new
	start patched
	git_there commit -q --amend --author='A. Ütor <author@localhost>' \
		-m "$(git_there log -1 --format=%s)" -m 'Planted.' -m "$(git_there log -1 --format=%b)"
	echo '# planted' >>"$tree/fs/proc/Makefile"
	git_there commit -q -a -m 'Plant a line' -m 'It is a test.'
	refresh
	new=$(changed_here | grep "series/$BASE/.*Plant-a-line")
	[[ $(changed_here | grep -vxF "$new") == series/common/*-RFC-* ]]
	changed_lines | grep -x '+From: A. Ütor <author@localhost>'
	changed_lines | grep -x '+Planted.'
	sed '/^---/q' "$project/$new" |
		diff - <(printf '%s\n' 'Subject: Plant a line' '' 'It is a test.' '' ---)
	is_settled
	git_there commit -q --amend -m 'Plant a line' -m 'As in:' -m 'diff -u a b' -m 'The end.'
	refuses_cleanly 'would not bring back the commits' refresh
	eval "$(sed 's/.*; see \(git .*\): a message .*/\1/' "$tmp/err")" | grep 'diff -u a b'
}

# A change here does not take a commit in the tree away, and can be taken along.
commits_are_not_overwritten() {
	start patched
	plant fs/proc/procmap_query.c
	echo '/* planted */' >>"$project/fs/proc/procmap_walk.c"
	refuses_cleanly 'has commits that are not in the series' series tree patched
	git_there rebase -q --onto series refs/trees/patched
	series tree patched
	refresh
	git_here diff --name-only HEAD |
		diff - <(printf '%s\n' fs/proc/procmap_query.c fs/proc/procmap_walk.c)
	is_settled
}

# Debian's source package has a .gitignore that ignores everything.
uncommitted_change() {
	start patched
	echo '/*' >"${tree%/*}/git/info/exclude"
	echo >"$tree/fs/proc/planted.c"
	refuses_cleanly 'fs/proc/planted.c that is not committed' refresh
	rm "$tree/fs/proc/planted.c" "${tree%/*}/git/info/exclude"
	echo '# planted' >>"$tree/fs/proc/Makefile"
	refuses_cleanly 'fs/proc/Makefile that is not committed' refresh
}

# The rebase stays for the developer to continue.
conflict() {
	start patched
	plant fs/proc/procmap_query.c
	echo '/* mine */' >>"$project/fs/proc/procmap_query.c"
	refuses_cleanly 'fs/proc/procmap_query.c.* has changed here' refresh
	start patched
	sed -i 's/ task_mmu\.o .*/ planted.o/' "$tree/fs/proc/Makefile"
	fixup fs/proc/Makefile
	refuses_cleanly 'has stopped in' refresh
}

check "a copy of the project makes its series" prepare
for base in "${bases[@]}"; do
	for name in patched $(BASE=$base further_series); do
		check "$base: '$name' comes back as it is" refresh_as_it_is "$base" "$name"
	done
done
check "a change of a hunk comes back to its patch" change_of_hunks
check "a change in a room comes back to its patch" change_in_a_room
check "the patches add a new file, and not a deleted one" new_and_deleted_file
check "a message, an author and a new patch come back" message_and_new_patch
check "commits in the tree are not overwritten" commits_are_not_overwritten
check "a change that is not committed is refused" uncommitted_change
check "a conflict with a file here, or of a fixup, is refused" conflict
done_testing
