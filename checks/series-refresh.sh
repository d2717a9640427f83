#!/bin/bash
# series-refresh: the series of a developer's own tree, KDIR, and the round trip from the series
# to a tree and back. All is done in a copy of this project, with bases that have only the files
# that are patched.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"
at_idle_priority

project=$tmp/project
mapfile -t bases < <(own_bases)
export GIT_AUTHOR_NAME=check GIT_AUTHOR_EMAIL=check@localhost
export GIT_COMMITTER_NAME=check GIT_COMMITTER_EMAIL=check@localhost

# Make a directory with only the files of the base that its series change.
small_tree() {
	local branch
	mkdir "$1"
	# shellcheck disable=SC2046	# one word a file
	base_git archive base Makefile $(for branch in series $(further_series); do
		base_git diff --name-only --diff-filter=M base "$branch" --
	done | sort -u) | tar -x -C "$1"
}

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
	git_here commit -q -m project
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

# Change the file $1 in a fixup of the first commit that changes it.
plant() {
	echo '/* planted */' >>"$tree/$1"
	git_there commit -q -a --fixup="$(git_there log --reverse --format=%h base.. -- "$1" |
		sed -n 1p)"
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

# A difference from a hunk for all bases is this base's. KDIR is only read, with a change that
# is not in git.
changes_come_back() {
	echo '# mine' >>"$tmp/$BASE/fs/proc/Makefile"
	git -C "$tmp/$BASE" init -q
	cp -r "$tmp/$BASE" "$tmp/before"
	start patched
	grep -x '# mine' "$tree/fs/proc/Makefile"
	plant fs/proc/task_mmu.c
	plant tools/testing/selftests/proc/.gitignore
	echo '# planted' >>"$tree/fs/proc/Makefile"
	git_there commit -q -a -m 'Plant a line' -m 'It is a test.'
	comes_back
	git_here diff --cached --name-status | sed "s,series/$BASE/0,series/BASE/0," |
		tee "$tmp/changed"
	grep '^A	series/BASE/[0-9]*a-Plant-a-line.patch' "$tmp/changed"
	[ "$(grep -c '^M	series/BASE/' "$tmp/changed")" -eq 2 ]
	[ "$(wc -l <"$tmp/changed")" -eq 3 ]
	diff -r "$tmp/before" "$tmp/$BASE"
}

# Neither a change here nor a refresh takes a commit away that is in the tree only.
commits_are_not_lost() {
	start patched
	plant fs/proc/task_mmu.c
	echo '/* planted */' >>"$project/fs/proc/procmap_vma.c"
	refuses 'has commits that are not in the series' series tree patched
	refuses 'has changed here since' series refresh
	start patched
	plant fs/proc/procmap_query.c
	refuses 'does not fit .*: fs/proc/procmap_query.c' series refresh
}

kdir_that_does_not_fit_is_refused() {
	sed -i 's/task_mmu\.o/task_other.o/' "$tmp/$BASE/fs/proc/Makefile"
	rm -rf "$tmp/build"
	refuses '000[0-9]-.*fs/proc/Makefile' series
	[ ! -e "$tmp/build/series/$BASE" ]
	rm "$tmp/$BASE/Makefile"
	refuses "is not a tree of Linux $(base_value VERSION)" series
	rm -r "${tmp:?}/$BASE"
	refuses 'KDIR: there is no' series
}

check "a copy of the project makes its series" prepare
for base in "${bases[@]}"; do
	for name in patched $(BASE=$base further_series); do
		check "$base: '$name' comes back as it is" comes_back_as_it_is "$base" "$name"
	done
done
check "changes come back" changes_come_back
check "commits in the tree are not lost" commits_are_not_lost
check "KDIR's tree that does not fit is refused" kdir_that_does_not_fit_is_refused
done_testing
