#!/bin/bash
# series-refresh: the round trip from the series to a tree and back. All is done in a copy of
# this project, with bases that have only the files that are patched.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

project=$tmp/project
mapfile -t bases < <(own_bases)

prepare() {
	for base in "${bases[@]}"; do
		# Of another base than BASE, the package.
		[ "$base" = "$BASE" ] || KDIR=''
		BASE=$base WORK=$BUILD/$base${KDIR:+${WORK#"$BUILD/$BASE"}}
		"$ROOT/scripts/series"
		small_tree "$tmp/$base"
	done
	git init -q "$project"
	git -C "$ROOT" --git-dir="$project/.git" --work-tree="$ROOT" add -A
	git_here -c user.name=check -c user.email=check@localhost commit -q -m project
}

git_here() {
	git -C "$project" "$@"
}

git_there() {
	git -C "$tree" "$@"
}

series() {
	env -C "$project" BUILD="$tmp/build" KDIR="$tmp/$BASE" scripts/series "$@"
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

# The series as it is written is that of the tree, and another refresh writes nothing.
comes_back() {
	series refresh "$name"
	git_here add -A
	series refresh "$name"
	git_here diff --exit-code
	[ "$(git_there rev-parse HEAD)" = "$(git_there rev-parse "${name/#patched/series}")" ]
}

comes_back_as_it_is() {
	local BASE=$1
	start "$2"
	comes_back
	git_here diff --exit-code HEAD
}

# A difference from a hunk for all bases is this base's; the last line is in a topic.
changes_come_back() {
	start patched
	plant fs/proc/task_mmu.c
	plant tools/testing/selftests/proc/.gitignore
	echo '# planted' >>"$tree/fs/proc/Makefile"
	git_there commit -q -a --author='A. Ütor <author@localhost>' -m 'Plant a line' -m 'It is a test.'
	comes_back
	git_here diff --cached --name-status | sed "s,series/$BASE/0,series/BASE/0," |
		tee "$tmp/changed"
	grep '^A	series/BASE/[0-9]*a-Plant-a-line.patch' "$tmp/changed"
	[ "$(grep -c '^M	series/BASE/' "$tmp/changed")" -eq 2 ]
	expect 1 grep series/common "$tmp/changed"
	grep -x 'From: A. Ütor <author@localhost>' "$project"/series/"$BASE"/*-Plant-a-line.patch
	start uprobes
	plant arch/x86/kernel/uprobes.c
	comes_back
}

# Nothing is written.
refuses_cleanly() {
	git_here add -A
	refuses "$@"
	git_here diff --exit-code
}

# A change here does not take a commit in the tree away, and can be taken along.
commits_are_not_overwritten() {
	start patched
	plant fs/proc/task_mmu.c
	echo '/* planted */' >>"$project/fs/proc/procmap_vma.c"
	refuses_cleanly 'has commits that are not in the series' series tree patched
	refuses_cleanly 'has changed here since' series refresh
	git_there rebase -q --onto series refs/trees/patched
	series tree patched
	comes_back
	git_here diff --name-only HEAD | sed "s,/$BASE/.*,," |
		diff - <(printf '%s\n' fs/proc/procmap_vma.c series)
}

# A rebase that stops stays for the developer to continue.
what_cannot_be_written_is_refused() {
	start patched
	sed -i 's/ task_mmu\.o .*/ planted.o/' "$tree/fs/proc/Makefile"
	refuses_cleanly 'failed in .*: cannot rebase: You have unstaged changes' series refresh
	fixup fs/proc/Makefile
	refuses_cleanly 'failed in .*: could not apply' series refresh
	start patched
	plant fs/proc/procmap_query.c
	refuses_cleanly 'changes fs/proc/procmap_query.c, which is a whole file' series refresh
}

check "a copy of the project makes its series" prepare
export GIT_AUTHOR_NAME=check GIT_AUTHOR_EMAIL=check@localhost
export GIT_COMMITTER_NAME=check GIT_COMMITTER_EMAIL=check@localhost
for base in "${bases[@]}"; do
	for name in patched $(BASE=$base further_series); do
		check "$base: '$name' comes back as it is" comes_back_as_it_is "$base" "$name"
	done
done
check "changes come back" changes_come_back
check "commits in the tree are not overwritten" commits_are_not_overwritten
check "what cannot be written is refused" what_cannot_be_written_is_refused
done_testing
