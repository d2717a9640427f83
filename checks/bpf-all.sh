#!/bin/bash
# bpf-all: the BPF selftests that find VMAs, on the patched and on the unpatched kernel.
# shellcheck source=checks/tap.sh
. "$(dirname "$0")/tap.sh"

# The BPF selftests that find VMAs.
finders=attach_probe,bpf_cookie,bpf_iter,task_pt_regs

# In the guest: run test_progs, and print its results as TAP, with the queries that
# the system call answered. test_progs knows no TAP.
# shellcheck disable=SC2016	# for the guest's shell
bpf_tests='
status=0
tr , "\n" <<<"$1" | sed "\$=;d" | sed "s/^/1../"
strace -f --seccomp-bpf -qqq -e trace=ioctl -e signal=none -o /run/ioctls \
	./test_progs -vv -a "$1" ${2:+-d "$2"} >/run/out || status=1
sed -nE "s/^.*_IOC\(_IOC_READ\|_IOC_WRITE, 0x66, 0x11, 0x68\).* = /query: /p" \
	/run/ioctls >>/run/out
sed -E "s/^(ok|not ok) /# &/
	s/^#[0-9]+ +([^/ ]+):OK$/&\nok \1/
	s/^#[0-9]+ +([^/ ]+):SKIP$/&\nok \1 # SKIP/
	s/^#[0-9]+ +([^/ ]+):FAIL$/&\nnot ok \1/" /run/out
exit $status
'

bpf() {
	setpriv --pdeathsig TERM "$ROOT/scripts/bpf" "$@"
}

# Run them on the kernel $1.
bpf_finders() {
	take_guest "bpf-$1" bpf "$1" bash -c "$bpf_tests" tests "$finders" \
		"$(base_value BPF_DENIED)"
}

# The VMAs that each of the finders found and the queries that the system call answered
# have to be as many, and none be found by the other method. The series has the tests print
# what they find; those of a base with the query print "VMA FOUND" for each answer.
vmas_are_found_by() {
	awk -v method="$2" -v result="$3" -v finders="$finders" '
		/ is in the VMA .* by / { found++; if (!index($0, "by " method)) bad = 1 }
		/^VMA FOUND \(/ { found++; if (method != "PROCMAP_QUERY") bad = 1 }
		/^#[0-9]+ +[^\/ ]+:OK$/ && found { sub(/:OK/, "", $2)
			print $2, found; all += found; tests++; found = 0 }
		/^query: / { queries++; if ($2 != result) bad = 1 }
		END { print tests, "tests,", all, "found,", queries, "queries"
		      exit bad || tests != split(finders, list, ",") || queries != all }' \
		"$BUILD/log/guest-bpf-$1"
}

bpf_finders bpf
check "the patched kernel's VMAs are found by ioctl" vmas_are_found_by bpf PROCMAP_QUERY 0
bpf_finders unpatched
method=(text -1)
! base_git grep -qw PROCMAP_QUERY base -- include/uapi/linux/fs.h || method=(PROCMAP_QUERY 0)
check "the unpatched kernel's VMAs are found by ${method[0]}" \
	vmas_are_found_by unpatched "${method[@]}"
done_testing
