#!/bin/bash
# tree, tree-debug: the kernel of the tree that KDIR names, of any version, with the live module:
# what a guest with Debian's kernel runs, and what the debug kernel does.
linux=${KDIR:+$(realpath "$KDIR")}
# The harness of the tests is that of the default base.
unset KDIR BASE
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

if [ -z "$linux" ]; then
	skip "$section" 'a tree' 'KDIR= names none'
else
	guests
fi
done_testing
