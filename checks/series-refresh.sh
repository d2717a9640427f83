#!/bin/bash
# The round trip from the series to a tree and back. All is done in a copy of this
# project, with a base that has only the files that are patched.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

project=$tmp/project
copy_kdir=$tmp/kdir
copy_build=$tmp/build
export GIT_AUTHOR_NAME=check GIT_AUTHOR_EMAIL=check@localhost
export GIT_COMMITTER_NAME=check GIT_COMMITTER_EMAIL=check@localhost

copy_project() {
	mkdir -p "$project"
	git -C "$ROOT" ls-files -z --cached --others --exclude-standard |
		(cd "$ROOT" && xargs -0 ls -d 2>/dev/null | tar -c -T -) |
		tar -x -C "$project"
	git -C "$project" init -q
	git -C "$project" add -A -f
	git -C "$project" commit -q -m project
}

small_tree() {
	local -a paths
	"$ROOT/scripts/series"
	mapfile -t paths < <(changed_files)
	mkdir -p "$copy_kdir"
	base_git archive base Makefile "${paths[@]}" |
		tar -x -C "$copy_kdir"
}

in_copy() {
	env -C "$project" BUILD="$copy_build" KDIR="$copy_kdir" "$@"
}

series() {
	in_copy scripts/series "$@"
}

git_here() {
	git -C "$project" "$@"
}

git_there() {
	git -C "$tree" "$@"
}

# Undo all changes to the copy and to its tree.
start_again() {
	git_here reset -q --hard
	git_here clean -fdq
	if [ -e "$tree" ]; then
		git_there checkout -q -f --detach "refs/trees/${tree##*/}"
		git_there clean -fdq
	fi
	series tree "${tree##*/}"
}

# The tree's first commit that changes a path.
commit_of() {
	git_there log --reverse --format=%h base.. -- "$1" | sed -n 1p
}

# The patch of that commit.
patch_of() {
	local subject
	subject=$(git_there log -1 --format=%s "$(commit_of "$1")")
	(cd "$project" && grep -lFx "Subject: $subject" "series/$BASE"/*.patch)
}

fixup() {
	git_there add -A -- "$1"
	git_there commit -q --fixup="$(commit_of "${2:-$1}")"
}

changed_here() {
	git_here add -A -N
	git_here diff --name-only
}

# What has changed in the patches except line numbers, hashes and context.
changed_lines() {
	git_here diff -U0 -- series | grep -E '^[-+]([^-+]|[-+][^-+])' |
		grep -vE '^[-+](index |@@ | |$)'
}

# The patches apply in their order without an offset, but for files out of which the series
# drops functions before.
line_numbers_are_right() {
	local copy=$tmp/apply patch path
	rm -rf "$copy"
	cp -r "$copy_kdir" "$copy"
	for patch in "$project/series/$BASE"/*.patch; do
		grep -q '^diff ' "$patch" || continue
		(cd "$copy" && GIT_CEILING_DIRECTORIES=$tmp git apply -v "$patch") 2>&1
	done | tee "$tmp/applied"
	grep -q 'fs/proc/task_mmu.c cleanly' "$tmp/applied"
	sed -nE 's/^Drops: ([^ ]+) .*/Checking patch \1.../p' "$project/series/$BASE"/*.patch |
		awk 'NR == FNR && FILENAME == "-" { drops[$0] = 1; next }
		     /^Checking patch / { is_dropped = $0 in drops }
		     /^error/ || /offset/ && !is_dropped { print; bad = 1 }
		     END { exit bad }' - "$tmp/applied"
}

# The tree is the series that the copy makes, and another refresh writes nothing.
is_settled() {
	git_there diff --exit-code HEAD
	[ "$(git_there rev-parse HEAD)" = "$(git_there rev-parse series)" ]
	git_here add -A
	series refresh 2>&1 | grep -x 'nothing has changed'
	git_here diff --exit-code
}

#
# What comes back
#

nothing_changed() {
	start_again
	series refresh 2>&1 | grep -x 'nothing has changed'
	[ -z "$(git_here status --porcelain)" ]
	line_numbers_are_right
}

further_series_comes_back() {
	local tree=$trees/$1 path
	start_again
	series refresh "$1" 2>&1 | grep -x 'nothing has changed'
	[ -z "$(git_here status --porcelain)" ]
	path=$(git_there diff --name-only --diff-filter=M HEAD^ HEAD -- | sed -n 1p)
	sed -i '1i/* planted */' "$tree/$path"
	git_there commit -q -a --amend -m "$(git_there log -1 --format=%B)"
	series refresh "$1"
	changed_lines | diff - <(echo '++/* planted */')
}

change_of_a_hunk() {
	local path=fs/proc/task_mmu.c patch
	start_again
	patch=$(patch_of "$path")
	sed -i '1i/* planted */' "$tree/$path"
	fixup "$path"
	series refresh
	changed_here
	# The first patch has the line; later hunks in that file move down.
	grep -q '^+/\* planted \*/$' "$project/$patch"
	changed_lines | diff - <(echo '++/* planted */')
	[ "$(changed_here | wc -l)" -gt 1 ]
	line_numbers_are_right
	is_settled
}

change_of_a_whole_file() {
	local path=fs/proc/procmap_query.c
	start_again
	echo '/* planted */' >>"$tree/$path"
	chmod +x "$tree/$path"
	fixup "$path"
	series refresh
	[ "$(changed_here)" = "$path" ]
	cmp "$tree/$path" "$project/$path"
	[ "$(tail -n 1 "$project/$path")" = '/* planted */' ]
	[ -x "$project/$path" ]
	is_settled
}

# The copy in tools/ follows without a change of its own.
change_of_a_synced_file() {
	local path=include/uapi/linux/procmap_scan.h
	start_again
	echo '/* planted */' >>"$tree/$path"
	fixup "$path"
	series refresh
	[ "$(changed_here)" = "$path" ]
	[ "$(tail -n 1 "$tree/tools/$path")" = '/* planted */' ]
	is_settled
}

new_whole_file() {
	local path=fs/proc/planted.c patch
	start_again
	patch=$(patch_of fs/proc/procmap_query.c)
	echo '/* planted */' >"$tree/$path"
	fixup "$path" fs/proc/procmap_query.c
	series refresh
	diff <(changed_here) <(printf '%s\n' "$path" "$patch")
	cmp "$tree/$path" "$project/$path"
	changed_lines | diff - <(echo "+Adds: $path")
	is_settled
}

# The hunks of the patch are those of the file without what the patch drops.
dropped_definitions_stay_dropped() {
	local path=fs/proc/task_mmu.c patch made
	start_again
	patch=$(patch_of "$path")
	made=$(git_there rev-parse HEAD)
	sed -i "0,/^---\$/s//Drops: ${path//\//\\/} PSS_SHIFT task_vsize\n---/" "$project/$patch"
	series tree patched
	git_there diff -U0 "$made" HEAD -- | sed -n '/^@@/,$p' >"$tmp/dropped"
	grep -q '^-unsigned long task_vsize' "$tmp/dropped"
	grep -q '^-#define PSS_SHIFT' "$tmp/dropped"
	(! grep '^+' "$tmp/dropped")
	[ "$(grep -c '^-.*[^-]' "$tmp/dropped")" -eq 5 ]
	# Later lines have other numbers.
	series refresh
	changed_lines | diff - <(echo "+Drops: $path PSS_SHIFT task_vsize")
	is_settled
	sed -i 's/ PSS_SHIFT task_vsize$/ task_vsized/' "$project/$patch"
	refuses "$path does not define all of: task_vsized" series tree patched
}

# git takes a file with a NUL byte for a binary file.
change_of_a_binary_file() {
	local path
	start_again
	path=$(git_there log --format= --name-only --diff-filter=M base.. -- '*.c' |
		sort | uniq -u | sed -n 1p)
	printf '# planted \0\n' >>"$tree/$path"
	fixup "$path"
	series refresh
	is_settled
	[ "$(git_there show "HEAD:$path" | tr -dc '\0' | wc -c)" -eq 1 ]
}

# The author of the last commit is not who runs this, nor is one of the signers.
author_and_sign_offs() {
	local last
	local -a patches
	start_again
	patches=("$project/series/$BASE"/*.patch)
	last=${patches[-1]#"$project/"}
	git_there commit -q --amend -s --author='A. Ütor <author@localhost>' \
		-m "$(git_there log -1 --format=%s)" -m 'Planted.' \
		-m 'Signed-off-by: A. Ütor <author@localhost>'
	series refresh
	[ "$(sed -n 1p "$project/$last")" = 'From: A. Ütor <author@localhost>' ]
	diff <(grep Signed-off-by: "$project/$last") - \
		<<<'Signed-off-by: A. Ütor <author@localhost>'
	is_settled
	diff <(git_there log -1 --format='%an <%ae>%n%(trailers:key=Signed-off-by)') - <<-END
		A. Ütor <author@localhost>
		Signed-off-by: A. Ütor <author@localhost>
		Signed-off-by: check <check@localhost>

	END
}

# The developer amends the message of the last commit and adds a commit.
message_and_new_patch() {
	local last new=series/$BASE/9999-planted.patch
	local -a patches
	start_again
	patches=("$project/series/$BASE"/*.patch)
	last=${patches[-1]#"$project/"}
	git_there commit -q --amend -m "$(git_there log -1 --format=%s)" \
		-m 'A new message.' -m "$(git_there log -1 --format=%b)"
	echo '# planted' >>"$tree/fs/proc/Makefile"
	git_there commit -q -a -s -m 'Plant a line' -m 'It is a test.'
	echo 'Subject: Plant a line' >"$project/$new"
	series refresh
	diff <(changed_here) <(printf '%s\n' "$last" "$new")
	git_here diff "$last" | grep '^+A new message\.$'
	(! grep -r Signed-off-by: "$project/series")
	diff <(sed -n '1,/^---/p' "$project/$new") - <<-END
		Subject: Plant a line

		It is a test.

		---
	END
	grep -q '^+# planted$' "$project/$new"
	is_settled
}

work_in_the_tree_stays() {
	local made
	start_again
	echo '# planted' >>"$tree/fs/proc/Makefile"
	fixup fs/proc/Makefile
	made=$(git_there rev-parse HEAD)
	series tree patched
	[ "$(git_there rev-parse HEAD)" = "$made" ]
	echo '/* planted */' >>"$project/fs/proc/procmap_query.c"
	refuses 'has commits that are not in the series' series tree patched
	[ "$(git_there rev-parse HEAD)" = "$made" ]
}

# Neither the output of a run nor another runner takes a reworded commit away.
reworded_commit_stays() {
	local made tip
	start_again
	tip=$(git_there rev-parse series)
	git_there commit -q --amend -m "$(git_there log -1 --format=%s)" -m 'Planted.'
	made=$(git_there rev-parse HEAD)
	echo planted >"$trees/run.txt"
	series tree patched
	grep -qx planted "$copy_build/series/$BASE"/0000-*
	[ "$(git_there rev-parse series)" = "$tip" ]
	GIT_COMMITTER_EMAIL=other@localhost series tree patched
	[ "$(git_there rev-parse series)" != "$tip" ]
	[ "$(git_there rev-parse HEAD)" = "$made" ]
	tip=$(git_there rev-parse refs/trees/patched)
	git_there update-ref -d refs/trees/patched
	refuses 'has commits that are not in the series' series tree patched
	git_there update-ref refs/trees/patched "$tip"
}

refuses_a_checked_out_branch() {
	local made
	start_again
	git_there checkout -q --ignore-other-worktrees series
	echo '/* planted */' >>"$tree/fs/proc/procmap_query.c"
	fixup fs/proc/procmap_query.c
	made=$(git_there rev-parse HEAD)
	refuses "$tree is on the branch series, .*checkout --detach" series refresh
	[ "$(git_there rev-parse series)" = "$made" ]
	git_there checkout -q --detach
	git_there update-ref refs/heads/series refs/trees/patched
}

#
# What is refused: with one line that says why, and nothing is written
#

refuses() {
	local pattern=$1
	shift
	git_here add -A
	expect 2 "$@" >"$tmp/out" 2>"$tmp/err"
	cat "$tmp/err"
	[ "$(wc -l <"$tmp/err")" -eq 1 ]
	grep -qE -- "$pattern" "$tmp/err"
	[ ! -s "$tmp/out" ]
	git_here diff --exit-code
	[ -z "$(git_here ls-files --others --exclude-standard)" ]
}

refuses_what_is_not_committed() {
	start_again
	echo '# planted' >>"$tree/fs/proc/Makefile"
	refuses "fs/proc/Makefile .*not committed.*--fixup=$(git_there log -1 --format=%h \
		-- fs/proc/Makefile)" series refresh
	start_again
	echo >"$tree/fs/proc/planted.c"
	refuses 'fs/proc/planted.c .*not committed' series refresh
	mv "$tree/fs/proc/planted.c" "$tree/fs/proc/planted.txt"
	git_there config status.showUntrackedFiles no
	refuses 'fs/proc/planted.txt .*not committed' series refresh
	git_there config --unset status.showUntrackedFiles
	mv "$tree/fs/proc/planted.txt" "$tree/fs/proc/planted.c"
	# Debian's source package has a .gitignore that ignores everything.
	echo '/*' >"$(git_there rev-parse --git-path info/exclude)"
	refuses 'fs/proc/planted.c .*not committed' series refresh
	: >"$(git_there rev-parse --git-path info/exclude)"
}

# The valid fixup before it must not be written either, and not be squashed.
refuses_another_commit() {
	local head
	start_again
	echo '/* planted */' >>"$tree/fs/proc/procmap_query.c"
	fixup fs/proc/procmap_query.c
	echo '# planted' >>"$tree/fs/proc/Makefile"
	git_there commit -q -a -m 'Plant a line'
	head=$(git_there rev-parse HEAD)
	refuses 'Plant a line.* is not in series/' series refresh
	[ "$(git_there rev-parse HEAD)" = "$head" ]
}

refuses_a_change_in_the_wrong_commit() {
	start_again
	echo '/* planted */' >>"$tree/fs/proc/procmap_query.c"
	git_there commit -q -a --amend --no-edit
	refuses "changes fs/proc/procmap_query.c, which 0.*patch adds" series refresh
}

refuses_a_deleted_file() {
	start_again
	git_there rm -q fs/proc/procmap_walk.h
	fixup fs/proc fs/proc/procmap_walk.h
	refuses 'adds fs/proc/procmap_walk.h, which no commit' series refresh
}

refuses_a_changed_copy() {
	local path=tools/include/uapi/linux/procmap_scan.h
	start_again
	echo '/* planted */' >>"$tree/$path"
	fixup "$path"
	refuses "$path, which is a copy" series refresh
}

refuses_lost_and_moved_commits() {
	start_again
	git_there reset -q --hard HEAD^
	refuses 'no commit for 0' series refresh
	start_again
	reverse_messages
	refuses 'another order' series refresh
}

# The same trees, with the messages from the last to the first.
reverse_messages() {
	local head commit message
	head=$(git_there rev-parse base)
	while read -r commit message; do
		head=$(git_there log -1 --format=%B "$message" |
			git_there commit-tree -p "$head" "$commit^{tree}")
	done < <(paste -d ' ' <(git_there rev-list --reverse base..) \
		<(git_there rev-list base..))
	git_there checkout -q --detach "$head"
}

refuses_a_merge() {
	start_again
	git_there checkout -q --detach \
		"$(git_there commit-tree -p HEAD -p base -m merge 'HEAD^{tree}')"
	refuses 'has a merge' series refresh
}

refuses_paths_that_cannot_be_copied() {
	start_again
	mkdir "$tree/checks"
	echo planted >"$tree/checks/tap.sh"
	fixup checks fs/proc/procmap_query.c
	refuses 'adds checks/tap.sh, but there is' series refresh
	start_again
	ln -s inode.c "$tree/fs/proc/planted.c"
	fixup fs/proc/planted.c fs/proc/procmap_query.c
	refuses 'adds fs/proc/planted.c, which is not a regular file' series refresh
}

refuses_what_a_patch_cannot_hold() {
	local line
	start_again
	for line in --- 'diff -u a b' 'Adds: fs/proc/planted.c'; do
		git_there commit -q --amend -m "$(git_there log -1 --format=%s)" \
			-m 'Planted:' -m "$line" -m 'The end.'
		refuses 'message that a patch cannot keep' series refresh
	done
	start_again
	echo >"$tree/fs/proc/planted 1.c"
	fixup 'fs/proc/planted 1.c' fs/proc/procmap_query.c
	refuses 'the file fs/proc/planted 1.c: .*blanks' series refresh
	[ "$(git_there rev-parse HEAD)" != "$(git_there rev-parse refs/trees/patched)" ]
}

# The perf patch no longer applies to the series as it would be written.
refuses_what_breaks_perf() {
	local path
	start_again
	path=$(git_there diff --name-only --diff-filter=M series perf -- | sed -n 1p)
	: >"$tree/$path"
	fixup "$path" fs/proc/procmap_query.c
	refuses "does not fit .* at $path" series refresh
	[ "$(git_there rev-parse HEAD)" != "$(git_there rev-parse refs/trees/patched)" ]
}

refuses_a_change_here() {
	start_again
	echo '/* planted */' >>"$project/fs/proc/procmap_query.c"
	refuses 'fs/proc/procmap_query.c has changed here' series refresh
}

refuses_fixups_that_conflict() {
	start_again
	sed -i 's/ task_mmu\.o .*/ planted.o/' "$tree/fs/proc/Makefile"
	fixup fs/proc/Makefile
	refuses 'conflict with later commits' series refresh
	git_there diff --exit-code HEAD
	git_there log -1 --format=%s | grep '^fixup! '
}

#
# Trees and bases
#

query_is_the_series_without_the_rfc() {
	start_again
	series tree query
	git_there log --format=%s base..query >"$tmp/query"
	(! grep RFC "$tmp/query")
	[ -e "$trees/query/fs/proc/procmap_query.c" ]
	[ ! -e "$trees/query/fs/proc/procmap_scan.c" ]
	[ -e "$tree/fs/proc/procmap_scan.c" ]
}

prepare() {
	small_tree
	copy_project
	series tree patched
}

check "a copy of the project makes its series" prepare
tree=$(echo "$copy_build/$BASE"-*/patched)
trees=${tree%/patched}
check "no change: refresh writes nothing" nothing_changed
check "a change of a hunk comes back to its patch" change_of_a_hunk
check "a change of a whole file comes back" change_of_a_whole_file
check "a header's copy in tools/ follows" change_of_a_synced_file
check "a new whole file comes back, and its patch adds it" new_whole_file
check "definitions that a patch drops stay dropped" dropped_definitions_stay_dropped
check "a change of a binary file comes back" change_of_a_binary_file
check "a message and a new patch come back" message_and_new_patch
for further in $(further_series); do
	check "the patches for $further come back" further_series_comes_back "$further"
done
check "an author and sign-offs come back" author_and_sign_offs
check "commits in the tree are not overwritten" work_in_the_tree_stays
check "a reworded commit is not overwritten" reworded_commit_stays
check "refused: a branch that is checked out" refuses_a_checked_out_branch
check "refused: a change that is not committed" refuses_what_is_not_committed
check "refused: a commit that is not in the series" refuses_another_commit
check "refused: a change of a file that another patch adds" \
	refuses_a_change_in_the_wrong_commit
check "refused: a whole file that was deleted" refuses_a_deleted_file
check "refused: a header's copy that was changed" refuses_a_changed_copy
check "refused: lost or reordered commits" refuses_lost_and_moved_commits
check "refused: a merge" refuses_a_merge
check "refused: a file that cannot be copied here" refuses_paths_that_cannot_be_copied
check "refused: messages and paths that a patch cannot hold" \
	refuses_what_a_patch_cannot_hold
[ -z "$(base_fact PERF)" ] ||
	check "refused: a change that perf's patches do not fit" refuses_what_breaks_perf
check "refused: a file that has changed here too" refuses_a_change_here
check "refused: fixups that conflict" refuses_fixups_that_conflict
check "query is the series without the RFC" query_is_the_series_without_the_rfc
done_testing
