#!/bin/bash
# debian-13-all: "make run", "make setup", the packages and the tests of library and tool on
# Debian 13, in a root of it that is made under build/. This machine stays as it is.
# shellcheck source=checks/shared/guests.sh
. "$(dirname "$0")/shared/guests.sh"

root=$BUILD/debian-13

make_root() {
	[ ! -e "$root/procmap" ] || return 0
	rm -rf "$root"
	unshare --mount --propagation private debootstrap --variant=minbase \
		--include=ca-certificates,make trixie "$root" "$(debian_mirror)"
	# No daemon is started.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	git init -q "$root/procmap"
}

# The commit, since packages have its date.
take_commit() {
	git -C "$root/procmap" fetch -q "$ROOT" HEAD
	git -C "$root/procmap" checkout -q -f --detach FETCH_HEAD
}

# Run a command in the root, in the directory of the project. The mounts go with it. In a
# chroot, user namespaces could not be made.
# shellcheck disable=SC2016	# for the shells
in_root() {
	unshare --mount --propagation private setpriv --pdeathsig TERM bash -euc '
		mount --rbind "$1" "$1"
		for name in proc sys dev; do
			mount --rbind "/$name" "$1/$name"
		done
		cd "$1"
		pivot_root . mnt
		umount -l /mnt
		cd /procmap
		exec env -i HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin "${@:2}"
	' in_root "$root" "$@"
}

# Print what an installation might change here. The kernel changes the numbers left out.
state() {
	findmnt -rn -o TARGET,SOURCE,OPTIONS
	sha256sum /var/lib/dpkg/status /var/lib/apt/extended_states
	sysctl -a 2>/dev/null | grep -vE \
		'^(fs\.(dentry|file-nr|inode|quota)|kernel\.(ns_last_pid|random)|.*conntrack_count)'
}

state >"$tmp/before"
check "a root of Debian 13" make_root
check "the commit is there" take_commit
check "make run" in_root make run
check "make setup" in_root make setup
check "make deb, and lintian" in_root checks/section checks/packages
check "the tests of library and tool" in_root checks/run lib
check "selftests on its stock kernel" in_root make test T=proc/procmap-query-abi
state >"$tmp/after"
check "this machine is as it was" diff "$tmp/before" "$tmp/after"
done_testing
