# bash completion for procfs_query(1)				-*- shell-script -*-
# SPDX-License-Identifier: GPL-2.0

_procfs_query()
{
	local cur prev words cword split
	_init_completion -s || return

	case $prev in
	-p | --pid)
		_pids
		COMPREPLY+=($(compgen -W self -- "$cur"))
		return
		;;
	-e | --exe)
		COMPREPLY=($(compgen -W \
			'$(readlink /proc/[0-9]*/exe | sed "s|.*/||")' -- "$cur"))
		return
		;;
	-f | --file)
		_filedir
		return
		;;
	--scale)
		_filedir svg
		return
		;;
	-i | --interval | -b | --bench)
		return
		;;
	esac
	$split && return

	COMPREPLY=($(compgen -W '$(_parse_help "$1")' -- "$cur"))
	[[ ${COMPREPLY-} != *= ]] || compopt -o nospace
} &&
	complete -F _procfs_query procfs_query
