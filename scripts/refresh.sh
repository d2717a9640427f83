# shellcheck shell=bash
# scripts/series refresh: write the commits of a tree back to the patches and files
# that the tree was made from. What was here then, and what the commits make of it, are
# trees for git. Their difference is applied here, or refused as a whole.

# shellcheck disable=SC2154	# set by scripts/series
refresh() {
	local name=$1 tree=$WORK/$1 branch=${1/#patched/series} was made head changes
	local below=${below_of[$branch]} copies=() whole=()
	made=$(git rev-parse -q --verify "refs/trees/$name") || :
	was=$(git rev-parse -q --verify "refs/inputs/$name") || :
	if [ -z "$made" ] || [ -z "$was" ] || [ ! -e "$tree/.git" ]; then
		die "there is no $tree; make it: scripts/series tree $name"
	fi
	refuse_uncommitted
	squash_fixups
	head=$(in_tree rev-parse HEAD)
	mapfile -t copies < <(git log --format=%b "$below..$head" | named_in Syncs: |
		tr ' ' '\n' | sed 's,^,:(exclude)tools/,')
	mapfile -t whole < <(added "$below" "$head")
	inputs=$(refreshed_inputs)
	make_tips
	refuse_difference
	changes=$(git diff-tree -r --no-renames --name-status "$was" "$inputs")
	git diff-tree -r -p --no-renames --binary "$was" "$inputs" |
		env -u GIT_DIR git -C "$ROOT" apply --allow-empty --whitespace=nowarn 2>"$tmp/err" ||
		die "$(sed -n '1s/^error: //p' "$tmp/err"); it has changed here since $tree was" \
		    "made: put that aside (git stash -u), refresh, and take it back (git stash pop)"
	say "${changes:-nothing has changed}"

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
		in_tree status --porcelain --untracked-files=all --no-renames -- . ':!/build-*' |
			sed 's/^...//'
		in_tree ls-files --others -- '*.[chS]' '*.rst' '*.sh' '*.py' \
			':!/build-*' ':!tools/testing/selftests/bpf'
	} | sed -n 1p)
	[ -z "$path" ] ||
		die "$tree has a change to $path that is not committed: git add -f it, then" \
		    "git commit --fixup=COMMIT, or drop it"
}

squash_fixups() {
	in_tree merge-base --is-ancestor "$below" HEAD ||
		die "$tree is not on top of the branch $below; put its commits there:" \
		    "git -C $tree rebase --onto $branch ${made::12}"
	GIT_SEQUENCE_EDITOR=: GIT_EDITOR=: in_tree -c rebase.updateRefs=false \
		rebase -q -i --autosquash "$below" >"$tmp/rebase" 2>&1 ||
		die "git rebase -i --autosquash $below has stopped in $tree: continue it there," \
		    "or abort it"
}

# Print the files that $2 has, and $1 has not, except copies.
added() {
	git diff-tree -r --no-renames --diff-filter=A --name-only "$1" "$2" -- . "${copies[@]}"
}

# Print the inputs with the patches and whole files of the tree's commits.
refreshed_inputs() {
	local commit subject old patch=0000 dirs shared own
	local -x GIT_INDEX_FILE=$tmp/new.index
	read -ra dirs <<<"${dirs_of[$branch]}"
	shared=${dirs[0]} own=${dirs[-1]}
	mkdir -p "$tmp/was" "$tmp/new/$shared" "$tmp/new/$own"
	git archive "$was" "${dirs[@]}" | tar -x -C "$tmp/was"
	for commit in $(git rev-list --reverse "$below..$head"); do
		subject=$(git log -1 --format=%f "$commit")
		old=$(inputs=$was patches "${dirs[@]}" | grep -x "[0-9]*[a-z]*-$subject\.patch") || old=none
		# The number of a new patch is that of the one before, and a letter.
		# shellcheck disable=SC2071	# names
		if [[ $old != none && $old > $patch ]]; then
			patch=$old
		else
			patch=${patch%%-*}a-$subject.patch
		fi
		if [ "$shared" = "$own" ] || [ ! -e "$tmp/was/$shared/$old" ]; then
			{ message; hunks "$tmp/was/$own/$old" .; } >"$tmp/new/$own/$patch"
		else
			{ message; shared_hunks; } >"$tmp/patch"
			mv "$tmp/patch" "$tmp/new/$shared/$patch"
			hunks "$tmp/was/$own/$old" . >"$tmp/new/$own/$patch"
		fi
	done
	find "$tmp/new" -empty -delete
	git read-tree "$was"
	GIT_GLOB_PATHSPECS=1 git ls-files "${dirs[@]/%/"/*.patch"}" |
		git update-index --force-remove --stdin
	git --work-tree="$tmp/new" add --ignore-removal .
	added "$below" "$made" | to_paths_here | git update-index --force-remove --stdin
	[ ${#whole[@]} -eq 0 ] ||
		git ls-tree "$head" -- "${whole[@]}" | to_paths_here | git update-index --index-info
	git write-tree
}

# Print the files that the patch in the directory $1 has hunks for.
paths_in() {
	sed -n 's,^diff --git a/.* b/,,p' "$tmp/was/$1/$old" 2>/dev/null
}

# Print the message of $commit, and the files that it adds.
message() {
	local author
	author=$(git log -1 --format='%an <%ae>' "$commit")
	[ "$author" = "$(git log -1 --format='%cn <%ce>' "$made")" ] || echo "From: $author"
	git log -1 --format=%B "$commit" | git stripspace | sed '1s/^/Subject: /'
	echo
	{
		(cd "$tmp/was" && grep -hs '^Adds: .*/$' "${dirs[@]/%/"/$old"}") || :
		added "$commit^" "$commit" | sed 's/^/Adds: /'
	} | awk '/\/$/ { dirs[$0] }
		{ for (dir in dirs) if (index($0, dir) == 1 && $0 != dir) next; print }'
	echo ---
}

# Print the hunks for all bases. In a file that the patch of this base changes too, they stay
# as they were.
shared_hunks() {
	local path
	for path in $(paths_in "$shared"); do
		awk -v path="b/$path" '/^diff / { on = $NF == path } on' \
			"$tmp/was/$shared/$old" >"$tmp/hunks"
		if grep -qxF "$path" < <(paths_in "$own"); then
			cat "$tmp/hunks"
		else
			hunks "$tmp/hunks" "$path"
		fi
	done
}

# Print the hunks of $commit in paths, after its drops and the hunks for all bases. If the old
# ones in the file $1 still have the same effect, print those: other bases may have them.
hunks() {
	local before file=$1
	local -x GIT_INDEX_FILE=$tmp/index
	shift
	set -- "$@" "${copies[@]}" "${whole[@]/#/":(exclude)"}"
	git read-tree "$commit^"
	git log -1 --format=%b "$commit" | drop_lines
	apply_hunks "$tmp/new/$shared/$patch" 2>/dev/null || :
	before=$(git write-tree)
	if apply_hunks "$file" 2>/dev/null && git diff-index --cached --quiet "$commit" -- "$@"; then
		sed -n '/^diff /,$p' "$file"
	else
		git diff-tree -p --binary --no-renames --no-ext-diff --no-textconv \
			--abbrev=12 "$before" "$commit" -- "$@"
	fi
}

# The series as it would be written has to have the messages and files of the tree.
refuse_difference() {
	cmp -s <(commits_of "$head") <(commits_of "${tips[$branch]}") ||
		die "the patches would not bring back the commits of $tree; see git -C $tree" \
		    "range-diff $below ${head::12} ${tips[$branch]::12}: a message cannot have" \
		    "each line, and a copy in tools/ has to be that of its original"
}

commits_of() {
	git log --reverse --format=%B%T "$below..$1"
}
