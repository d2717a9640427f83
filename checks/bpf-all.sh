#!/bin/bash
# bpf-all: the BPF selftests that find VMAs, on the patched kernel, by the ioctl and without it.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

kernel=$WORK/kernel/bpf
selftests=$patched/tools/testing/selftests/bpf

# The BPF selftests that find VMAs.
finders=attach_probe,bpf_cookie,bpf_iter,task_pt_regs

# They are built in the tree, as upstream builds them, and the kernel beside it: what the
# makefiles look for in the tree is named. They do not know which object needs which header:
# everything is made anew.
make_selftests() {
	local broken clang
	broken=$(base_value BPF_BROKEN)
	clang=$(base_value BPF_CLANG)
	[ -z "$broken" ] || git -C "$patched" sparse-checkout set --no-cone '/*' \
		"!/tools/testing/selftests/bpf/prog_tests/$broken.c"
	git -C "$patched" clean -dfxq tools/testing/selftests/bpf
	LC_ALL=C make -C "$selftests" -j"$(nproc)" VMLINUX_BTF="$kernel/vmlinux" \
		GENDIR="$kernel/include/generated" KDIR="$kernel" CLANG="$clang" test_progs
}

# In the guest: run test_progs with the library $3, and print its results as TAP, with the
# queries that the system call answered. test_progs knows no TAP.
# shellcheck disable=SC2016	# for the guest's shell
bpf_tests='
set -eu
mount -t bpf bpf /sys/fs/bpf
mount -t securityfs securityfs /sys/kernel/security
ulimit -l unlimited
status=0
tr , "\n" <<<"$1" | sed "\$=;d" | sed "s/^/1../"
strace -f --seccomp-bpf -qqq -e trace=ioctl -e signal=none -o /run/ioctls \
	${3:+-E LD_PRELOAD="$3"} ./test_progs -vv -a "$1" ${2:+-d "$2"} >/run/out || status=1
sed -nE "s/^.*_IOC\(_IOC_READ\|_IOC_WRITE, 0x66, 0x11, 0x68\).* = /query: /p" \
	/run/ioctls >>/run/out
sed -E "s/^(ok|not ok) /# &/
	s/^#[0-9]+ +([^/ ]+):OK$/&\nok \1/
	s/^#[0-9]+ +([^/ ]+):SKIP$/&\nok \1 # SKIP/
	s/^#[0-9]+ +([^/ ]+):FAIL$/&\nnot ok \1/" /run/out
exit $status
'

# Run them as the guest $1, with the library $2. -s: they have the kernel patch the code that
# it runs.
bpf_finders() {
	take_tap "bpf-$1" vm -s -k bpf -t 3000 -- env -C "$selftests" \
		bash -c "$bpf_tests" tests "$finders" "$(base_value BPF_DENIED)" "${2:-}"
}

# The VMAs that each of the finders found and, by the ioctl, the queries that the system call
# answered have to be as many, and none be found by the other method. The series has the tests
# print what they find; those of a base with the query print "VMA FOUND" for each answer.
vmas_are_found_by() {
	awk -v method="$1" -v finders="$finders" '
		/ is in the VMA .* by / { found++; if (!index($0, "by " method)) bad = 1 }
		/^VMA FOUND \(/ { found++; if (method != "PROCMAP_QUERY") bad = 1 }
		/^#[0-9]+ +[^\/ ]+:OK$/ && found { sub(/:OK/, "", $2)
			print $2, found; all += found; tests++; found = 0 }
		/^query: / { queries++; if ($2) bad = 1 }
		END { print tests, "tests,", all, "found,", queries + 0, "queries"
		      exit bad || tests != split(finders, list, ",") ||
			queries != (method == "text" ? 0 : all) }' \
		"$BUILD/log/guest-bpf-$1"
}

kernel_is_built bpf
check "the BPF selftests are built" make_selftests
bpf_finders PROCMAP_QUERY
check "VMAs are found by the ioctl" vmas_are_found_by PROCMAP_QUERY
if ! base_git diff --quiet base patched -- tools/testing/selftests/bpf; then
	check "the library without the ioctl is built" gcc -D_GNU_SOURCE -shared -fPIC \
		-o "$programs/no-ioctl.so" "$CHECKS/programs/no-ioctl.c"
	bpf_finders text "$programs/no-ioctl.so"
	check "without the ioctl, VMAs are found by the text" vmas_are_found_by text
fi
done_testing
