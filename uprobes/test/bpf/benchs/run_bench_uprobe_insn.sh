#!/bin/bash
# SPDX-License-Identifier: GPL-2.0

# shellcheck source=/dev/null
source ./benchs/run_common.sh

set -eufo pipefail

# What follows the name of the script goes to bench: -p 2
for probe in uprobe uretprobe
do
	for insn in nop push ret nop5 endbr
	do
		out=$($RUN_BENCH "$@" trig-$probe-$insn | tail -n2)
		printf "%-16s %s, system time %s\n" $probe-$insn \
		       "$(hits "${out##*$'\n'}")" "$(sed -n 's/^System time: *//p' <<<"$out")"
	done
done
