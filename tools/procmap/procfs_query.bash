# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# bash completion for procfs_query(1)

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
		mapfile -t COMPREPLY < <(compgen -W \
			"$(readlink /proc/[0-9]*/exe | sed 's|.*/||')" -- "$cur")
		return
		;;
	-u | --user)
		mapfile -t COMPREPLY < <(compgen -u -- "$cur")
		return
		;;
	--unit)
		mapfile -t COMPREPLY < <(compgen -W \
			"$(cat /proc/[0-9]*/cgroup 2>/dev/null | tr / '\n' |
				grep -E '\.(service|scope|slice)$' | sort -u)" -- "$cur")
		return
		;;
	-f | --file | -m | --maps-file)
		_filedir
		return
		;;
	--scale)
		_filedir svg
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
