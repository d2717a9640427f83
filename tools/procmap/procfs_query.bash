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
	-f | --file | -m | --maps-file)
		_filedir
		return
		;;
	--proc)
		_filedir -d
		return
		;;
	-i | --interval | -n | --name | -b | --bench | --fd)
		return
		;;
	esac
	$split && return

	mapfile -t COMPREPLY < <(compgen -W "$(_parse_help "$1")" -- "$cur")
	[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
} &&
	complete -F _procfs_query procfs_query
