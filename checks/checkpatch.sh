#!/bin/bash
# checkpatch: --strict, on the mails of the series.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

series_checkpatch() {
	local ignored=(
		# the reminder to update MAINTAINERS cannot know that its entries for fs/proc
		# and the selftests cover the new files.
		FILE_PATH_CHANGES
		CAMELCASE	# the types of <elf.h> are named so.
		ENOSYS		# the library looks at it, and returns none of its own.
		AVOID_EXTERNS	# functions in tests that the linker or libFuzzer calls.
		QUOTED_WHITESPACE_BEFORE_NEWLINE	# as it is in a maps file.
		STRCPY		# user space has no strscpy().
		INCLUDE_LINUX	# nor has it <linux/perf_regs.h>.
		# what the base returns in the same function for other instructions.
		ENOTSUPP
		# the package has no history with the commit of a Fixes: line.
		UNKNOWN_COMMIT_ID
	)
	local IFS=,
	checkpatch "${ignored[*]}" "$BUILD"/series/[!t]*-*/*[1-9]*-*.patch
	ignored+=(
		# Of a header without libc, which makes system calls, and sets a structure without
		# memset().
		ARCH_DEFINES VOLATILE
		PREFER_DEFINED_ATTRIBUTE_MACRO
	)
	checkpatch "${ignored[*]}" "$BUILD"/series/tools-*/*[1-9]*-*.patch
}

check "checkpatch --strict on the series" series_checkpatch
done_testing
