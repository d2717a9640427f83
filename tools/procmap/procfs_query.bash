# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# bash completion for procfs_query(1)

# Take the words, one a line, that go on from what is typed. They are names that other
# users have chosen: nothing may expand them, now or when the line is run.
_procfs_query_names()
{
	local word
	while IFS= read -r word; do
		[[ $word == "$cur"* && $word =~ ^[A-Za-z0-9._@:+-]+$ ]] &&
			COMPREPLY+=("$word")
	done
}

_procfs_query()
{
	# shellcheck disable=SC2034	# _init_completion sets them
	local cur prev words cword split
	_init_completion -s || return

	case $prev in
	-p | --pid)
		_pids
		[[ self != "$cur"* ]] || COMPREPLY+=(self)
		return
		;;
	-e | --exe)
		_procfs_query_names < <(readlink /proc/[0-9]*/exe 2>/dev/null |
			sed 's|.*/||; s/ (deleted)$//' | sort -u)
		return
		;;
	-u | --user)
		mapfile -t COMPREPLY < <(compgen -u -- "$cur")
		return
		;;
	--unit)
		_procfs_query_names < <(cat /proc/[0-9]*/cgroup 2>/dev/null | tr / '\n' |
			grep -E '\.(service|scope|slice)$' | sort -u)
		return
		;;
	-f | --file | -m | --maps-file)
		_filedir
		return
		;;
	-i | --interval | -n | --name | -b | --bench)
		return
		;;
	esac
	$split && return

	mapfile -t COMPREPLY < <(compgen -W "$(_parse_help "$1")" -- "$cur")
	[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
} &&
	complete -F _procfs_query procfs_query
