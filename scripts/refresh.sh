# shellcheck shell=bash
# scripts/series refresh: write the commits of a tree back to the patches and files
# that the tree was made from. They go to $tmp/new first. The series is made from
# that, and has to be the tree's commits, before anything is copied here: a refused
# refresh writes nothing.

# shellcheck disable=SC2154,SC2015	# set by scripts/series; die does not return
refresh() {
	local name=$1 tree branch below dir made commit i path
	local -a commits=() patch_names=() patch_subjects=()
	local -A added_by=()
	tree_of "$name"
	made=$(git rev-parse -q --verify "refs/trees/$name") || :
	[ -n "$made" ] && [ -e "$tree/.git" ] ||
		die "there is no $tree; make it: scripts/series tree $name"

	refuse_uncommitted
	refuse_changed_inputs
	squash_fixups
	match_commits

	while read -r path; do
		added_by[$path]=$below
	done < <(git diff-tree -r --no-renames --diff-filter=A --name-only base "$below" --)
	for i in "${!commits[@]}"; do
		refresh_patch "${commits[i]}" "$dir/${patch_names[i]}"
	done
	refuse_deleted_files
	make_tips
	refuse_difference
	squashed=()
	install_refreshed

	make_series
	git update-ref "refs/trees/$name" "$(in_tree rev-parse HEAD)"
	move_tree "$name"
}

# The .gitignore of Debian's source package ignores everything, new sources too; the
# BPF selftests are built in the tree.
refuse_uncommitted() {
	local path commit
	path=$({
		in_tree status --porcelain --untracked-files=all --no-renames -- . ':!/build-*' | sed 's/^...//'
		in_tree ls-files --others -- '*.[chS]' '*.rst' '*.sh' '*.py' \
			':!/build-*' ':!tools/testing/selftests/bpf'
	} | sed -n 1p)
	[ -n "$path" ] || return 0
	commit=$(in_tree log -1 --format=%h "$below.." -- "$path")
	die "$tree has a change to $path that is not committed: git add -f it, then" \
	    "git commit --fixup=${commit:-COMMIT}, or drop it"
}

# A refresh would overwrite what has changed here since the tree was made.
refuse_changed_inputs() {
	local path
	path=$(inputs "$dir" | sort | comm -23 "$WORK/$name.inputs" - |
		sed -n '1s/^[^ ]*  //p')
	[ -z "$path" ] || die "$path has changed here since $tree was made: put that" \
		"change aside (git stash), refresh, and take it back (git stash pop)"
}

squash_fixups() {
	in_tree merge-base --is-ancestor "$below" HEAD ||
		die "$tree is not on top of the branch $below; put its commits there:" \
		    "git -C $tree rebase --onto $branch ${made::12}"
	[ -n "$(in_tree log --format=%h --grep='^\(fixup\|squash\|amend\)! ' "$below..")" ] ||
		return 0
	squashed=("$tree" "$(in_tree rev-parse HEAD)")
	GIT_SEQUENCE_EDITOR=: GIT_EDITOR=: as_runner \
		env -u GIT_DIR git -C "$tree" -c rebase.updateRefs=false rebase -q -i \
		--autosquash "$below" >"$tmp/rebase" 2>&1 && return
	# shellcheck disable=SC2034	# for the EXIT trap of scripts/series
	squashed=()
	in_tree rebase --abort 2>/dev/null || :
	die "the fixups in $tree conflict with later commits; squash them by hand:" \
	    "git -C $tree rebase -i --autosquash $below"
}

# Print a commit as messages show it.
show_commit() {
	git log -1 --format='%h ("%s")' "$1"
}

# The commits and the patches must have the same subjects in the same order.
match_commits() {
	local patch i subject
	local -a subjects
	local -A seen=()
	[ -z "$(git rev-list --min-parents=2 "$below..$(in_tree rev-parse HEAD)")" ] ||
		die "$tree has a merge; make its history linear: git -C $tree rebase $below"
	mapfile -t commits < <(in_tree rev-list --reverse "$below..HEAD")
	mapfile -t subjects < <(in_tree log --reverse --format=%s "$below..HEAD")
	for patch in "$ROOT/$dir"/*.patch; do
		patch_names+=("${patch##*/}")
		patch_subjects+=("$(git mailinfo "$tmp/msg" "$tmp/diff" <"$patch" |
			sed -n 's/^Subject: //p')")
	done
	for i in "${!commits[@]}"; do
		subject=${subjects[i]}
		is_one_of "$subject" "${patch_subjects[@]}" && [ -z "${seen[$subject]:-}" ] ||
			die "$(show_commit "${commits[i]}") is not in $dir; squash it" \
			    "(git -C $tree rebase -i $below), or give it a patch:" \
			    "echo 'Subject: $subject' >$dir/NNNN-NAME.patch"
		seen[$subject]=y
	done
	for i in "${!patch_names[@]}"; do
		subject=${patch_subjects[i]}
		is_one_of "$subject" "${subjects[@]}" ||
			die "$tree has no commit for ${patch_names[i]}; remove the patch" \
			    "here if it is to go, or bring the commit back"
		[ "$subject" = "${subjects[i]}" ] ||
			die "$tree has another order than $dir: commit $((i + 1)) is" \
			    "\"${subjects[i]}\"; rename the patches, or reorder the commits"
	done
}

# Write the patch $2 from the commit $1, and the files that the commit adds.
refresh_patch() {
	local commit=$1 patch=$2 mode status path
	local -a added=() hunks=() synced
	git mailinfo "$tmp/msg" "$tmp/diff" <"$ROOT/$patch" >/dev/null
	read -ra synced < <(named_in Syncs: "$tmp/msg" | paste -sd ' ')
	check_synced
	while read -r _ mode _ _ status path; do
		[[ $path != *[[:space:]\"]* ]] ||
			die "$(show_commit "$commit") changes the file $path: a patch's" \
			    "files must not have blanks or special characters in their path"
		if is_one_of "$path" "${synced[@]/#/tools/}"; then
			continue
		elif [ "$status" = A ]; then
			add_file "$path" "$mode"
		elif [ -n "${added_by[$path]:-}" ]; then
			die "$(show_commit "$commit") changes $path, which" \
			    "${added_by[$path]} adds: make it a fixup of that commit"
		else
			hunks+=("$path")
		fi
	done < <(git diff-tree -r --no-renames --no-commit-id "$commit")

	mkdir -p "$tmp/new/$dir"
	{
		print_author
		commit_message | sed '1s/^/Subject: /'
		echo
		adds_lines
		grep -E '^(Drops|Syncs): ' "$tmp/msg" || :
		echo ---
		[ ${#hunks[@]} -eq 0 ] || print_hunks
	} >"$tmp/new/$patch"
	refuse_lost_message
}

# Print the commit's message as the patch has it.
commit_message() {
	git log -1 --format='%s%n%n%b' "$commit" |
		grep -vxF "$(runners | sed 's/^/Signed-off-by: /')" | git stripspace
}

# A patch ends its message at the first line that looks like a diff.
refuse_lost_message() {
	git mailinfo --no-scissors "$tmp/msg" "$tmp/diff" <"$tmp/new/$patch" >"$tmp/info"
	cmp -s <(message | git stripspace) <(commit_message) ||
		die "$(show_commit "$commit") has a message that a patch cannot keep;" \
		    "take lines like '---', 'diff -', 'From:' or 'Adds:' out of it:" \
		    "git -C $tree rebase -i $below"
}

is_one_of() {
	local first=$1 word
	shift
	for word; do
		[ "$word" != "$first" ] || return 0
	done
	return 1
}

# A copy in tools/ follows its original. It must not have a change of its own.
check_synced() {
	local path copy
	for path in "${synced[@]}"; do
		copy=$(git rev-parse -q --verify "$commit:tools/$path") || :
		[ "$copy" = "$(git rev-parse -q --verify "$commit:$path")" ] ||
			[ "$copy" = "$(git rev-parse -q --verify "$made:tools/$path")" ] ||
			die "$(show_commit "$commit") changes tools/$path, which is a" \
			    "copy of $path: change that"
	done
}

add_file() {
	local path=$1 mode=$2
	[[ $mode == 100??? ]] ||
		die "$(show_commit "$commit") adds $path, which is not a regular file"
	[ ! -e "$ROOT/$path" ] || grep -q "^[^ ]*  $path\$" "$WORK/$name.inputs" ||
		die "$(show_commit "$commit") adds $path, but there is such a file" \
		    "here that is in no patch: rename one of them"
	mkdir -p "$tmp/new/$(dirname "$path")"
	git cat-file blob "$commit:$path" >"$tmp/new/$path"
	chmod "${mode#100}" "$tmp/new/$path"
	added+=("$path")
	added_by[$path]=${patch##*/}
}

# Print the patch's lines "Adds:" without files that the commit no longer adds, and
# a line for each new file.
adds_lines() {
	local path
	local -a words kept named=()
	while read -ra words; do
		kept=()
		for path in "${words[@]:1}"; do
			! is_one_of "$path" "${added[@]}" || kept+=("$path")
		done
		named+=("${kept[@]}")
		[ ${#kept[@]} -eq 0 ] || echo "Adds: ${kept[*]}"
	done < <(grep '^Adds: ' "$tmp/msg")
	for path in "${added[@]}"; do
		is_one_of "$path" "${named[@]}" || echo "Adds: $path"
	done
}

# The hunks must not depend on the user's git configuration.
print_hunks() {
	local -x GIT_INDEX_FILE=$tmp/drops
	git read-tree "$commit^"
	drop_definitions
	printf '*.[ch] diff=cpp\n' >"$tmp/attributes"
	GIT_LITERAL_PATHSPECS=1 git -c core.attributesFile="$tmp/attributes" diff-tree \
		-p --binary --no-renames --no-ext-diff --no-textconv --abbrev=12 \
		"$(git write-tree)" "$commit" -- "${hunks[@]}"
}

# Print who runs this, and who made the tree: what makes the series adds their
# sign-off, and makes them the authors of patches without a line "From:".
runners() {
	sign_off
	git log -1 --format='%cn <%ce>' "$made"
}

print_author() {
	local author
	author=$(git log -1 --format='%an <%ae>' "$commit")
	runners | grep -xF -- "$author" >/dev/null || printf 'From: %s\n' "$author"
}

refuse_deleted_files() {
	local path patch
	for patch in "${patch_names[@]}"; do
		for path in $(named_in Adds: "$ROOT/$dir/$patch"); do
			[ -n "${added_by[$path]:-}" ] ||
				die "$patch adds $path, which no commit in $tree adds;" \
				    "bring it back there, and remove it here (git rm it," \
				    "and take it out of the patch)"
		done
	done
}

executable() {
	if [ -x "$1" ]; then echo +x; else echo -x; fi
}

install_refreshed() {
	local path mode written=0
	while read -r path; do
		mode=$(executable "$tmp/new/$path")
		if ! cmp -s "$tmp/new/$path" "$ROOT/$path" ||
		   [ "$mode" != "$(executable "$ROOT/$path")" ]; then
			mkdir -p "$ROOT/$(dirname "$path")"
			cat "$tmp/new/$path" >"$ROOT/$path"
			chmod "$mode" "$ROOT/$path"
			written=$((written + 1))
			say "wrote $path"
		fi
	done < <(cd "$tmp/new" && find . -type f -printf '%P\n' | sort)
	[ $written -gt 0 ] || say "nothing has changed"
}

# Each commit of the series as it would be written has to be the tree's. Copies in
# tools/ may differ: the series makes them from their originals.
refuse_difference() {
	local path i
	local -a built
	mapfile -t built < <(git rev-list --reverse -n "${#commits[@]}" "${tips[$branch]}")
	for path in $(cat "$tmp/new/$dir"/*.patch | named_in Syncs: -); do
		echo "tools/$path"
	done >"$tmp/synced"
	for i in "${!commits[@]}"; do
		git diff-tree -r --no-renames --name-only "${commits[i]}" "${built[i]}" \
			>"$tmp/differ"
		path=$(grep -m 1 -vxFf "$tmp/synced" "$tmp/differ") || :
		[ -z "$path" ] || die "${patch_names[i]} would not bring back $path of" \
			"$(show_commit "${commits[i]}"); nothing is written"
	done
}
