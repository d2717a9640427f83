# shellcheck shell=bash
# scripts/series refresh: write the commits of a tree back to the patches and files
# that the tree was made from. What was here then, and what the commits make of it, are
# trees for git. It moves the files here from one to the other, or refuses to, if that
# overwrites a change: a refused refresh writes nothing.

# shellcheck disable=SC2154	# set by scripts/series
refresh() {
	local name=$1 tree=$WORK/$1 branch=${1/#patched/series} was made head path
	local below=${below_of[$branch]} dir=${dir_of[$branch]} synced=() whole=()
	made=$(git rev-parse -q --verify "refs/trees/$name") || :
	was=$(git rev-parse -q --verify "refs/inputs/$name") || :
	if [ -z "$made" ] || [ -z "$was" ] || [ ! -e "$tree/.git" ]; then
		die "there is no $tree; make it: scripts/series tree $name"
	fi
	refuse_uncommitted
	squash_fixups
	head=$(in_tree rev-parse HEAD)
	for path in $(git log --format=%b "$below..$head" | named_in Syncs:); do
		refuse_changed_copy
		synced+=(":(exclude)tools/$path")
	done
	mapfile -t whole < <(added "$below" "$head")
	inputs=$(refreshed_inputs)
	make_tips
	refuse_difference
	install_inputs

	inputs=$(take_inputs)
	make_series
	git update-ref "refs/trees/$name" "$head"
	move_tree "$name"
}

# The .gitignore of Debian's source package ignores everything, new sources too; the
# BPF selftests are built in the tree.
refuse_uncommitted() {
	local path
	path=$({
		in_tree status --porcelain --untracked-files=all --no-renames -- . ':!/build-*' | sed 's/^...//'
		in_tree ls-files --others -- '*.[chS]' '*.rst' '*.sh' '*.py' \
			':!/build-*' ':!tools/testing/selftests/bpf'
	} | sed -n 1p)
	[ -z "$path" ] ||
		die "$tree has a change to $path that is not committed: git add -f it, then" \
		    "git commit --fixup=COMMIT, or drop it"
}

squash_fixups() {
	[ ! -e "$(in_tree rev-parse --git-path rebase-merge)" ] ||
		die "a rebase in $tree has not ended: git -C $tree rebase --continue"
	in_tree merge-base --is-ancestor "$below" HEAD ||
		die "$tree is not on top of the branch $below; put its commits there:" \
		    "git -C $tree rebase --onto $branch ${made::12}"
	GIT_SEQUENCE_EDITOR=: GIT_EDITOR=: in_tree -c rebase.updateRefs=false \
		rebase -q -i --autosquash "$below" >"$tmp/rebase" 2>&1 && return
	in_tree rebase --abort 2>/dev/null || :
	die "the fixups in $tree conflict with later commits; squash them by hand:" \
	    "git -C $tree rebase -i --autosquash $below"
}

# A copy in tools/ follows its original, and has no change of its own.
refuse_changed_copy() {
	git diff --quiet "$made:tools/$path" "$head:tools/$path" ||
		git diff --quiet "$head:$path" "$head:tools/$path" ||
		die "$tree changes tools/$path, which is a copy of $path: change that"
}

# Print the files that $2 has, and $1 has not, except copies.
added() {
	git diff-tree -r --no-renames --diff-filter=A --name-only "$1" "$2" -- . "${synced[@]}"
}

# Print the inputs with the patches and whole files of the tree's commits. A whole file that
# is gone there stays here: another base may have it.
refreshed_inputs() {
	local commit patch hash number=0
	local -x GIT_INDEX_FILE=$tmp/new
	git read-tree "$was"
	git ls-files "$dir/*.patch" | git update-index --force-remove --stdin
	[ ${#whole[@]} -eq 0 ] ||
		git ls-tree "$head" -- "${whole[@]}" | to_paths_here | git update-index --index-info
	for commit in $(git rev-list --reverse "$below..$head"); do
		number=$((number + 1))
		patch=$(printf '%s/%04d-%s.patch' "$dir" $number "$(git log -1 --format=%f "$commit")")
		hash=$(print_patch | git hash-object -w --stdin)
		git update-index --add --cacheinfo "100644,$hash,$patch"
	done
	git write-tree
}

# Print the patch of $commit. Its hunks are made after its drops, and must not depend on
# the user's git configuration.
print_patch() {
	local author
	local -x GIT_INDEX_FILE=$tmp/index
	author=$(git log -1 --format='%an <%ae>' "$commit")
	[ "$author" = "$(runner)" ] ||
		[ "$author" = "$(git log -1 --format='%cn <%ce>' "$made")" ] ||
		echo "From: $author"
	git log -1 --format=%B "$commit" | git stripspace | sed '1s/^/Subject: /'
	echo
	added "$commit^" "$commit" | sed 's/^/Adds: /'
	echo ---
	git read-tree "$commit^"
	git log -1 --format=%b "$commit" | drop_lines
	printf '*.[ch] diff=cpp\n' >"$tmp/attributes"
	git -c core.attributesFile="$tmp/attributes" diff-tree -p --binary --no-renames \
		--no-ext-diff --no-textconv --abbrev=12 "$(git write-tree)" "$commit" \
		-- . "${synced[@]}" "${whole[@]/#/:(exclude)}"
}

# The series as it would be written has to have the files and messages of the tree.
refuse_difference() {
	local line
	line=$(diff <(git log --format=%B "$below..$head") \
		<(git log --format=%B "$below..${tips[$branch]}") | sed -n '2s/^. //p') || :
	[ -z "$line" ] ||
		die "a message in $tree has a line that a patch cannot keep: '$line'; take it" \
		    "out: git -C $tree rebase -i $below"
	line=$(git diff-tree -r --no-renames --name-only "$head" "${tips[$branch]}" \
		-- . "${synced[@]}" | sed -n 1p)
	[ -z "$line" ] || die "the patches would not bring back $line of $tree"
}

install_inputs() {
	local changes path
	changes=$(git diff-tree -r --no-renames --name-status "$was" "$inputs")
	GIT_INDEX_FILE=$WORK/inputs.index GIT_WORK_TREE=$ROOT git -C "$ROOT" \
		read-tree -m -u "$was" "$inputs" 2>"$tmp/err" || {
		path=$(sed -n "s/^error: [^']*'\([^']*\)'.*/\1/p" "$tmp/err" | sed -n 1p)
		die "${path:-$(cat "$tmp/err")} has changed here since $tree was made: put" \
		    "that aside (git stash -u), refresh, and take it back (git stash pop)"
	}
	say "${changes:-nothing has changed}"
}
