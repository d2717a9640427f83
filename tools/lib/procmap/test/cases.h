/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What happens to mapped files, and what is to be said of them then. The tests of C, and by
 * hold_case.py those of Python and Go, read this table. Each line of SETUP is one of a shell
 * script, which the commands of a case come after. They run as root in an empty directory, on
 * a file system of its own, with the ELF files one and two, which have different build IDs,
 * and the file plain, which has none. A CASE_OF has, as strings:
 *
 *	its name
 *	a command that makes the file
 *	the file to map; without a slash, what a memfd that is mapped has in it
 *	a command that runs when it is mapped
 *	the build ID of the mapping: that of the file of this name, "none" or "unknown"
 *	"there", "deleted" or "replaced"
 *	the build ID of what opening the mapped file leads to
 *
 * A kernel that gives build IDs itself knows an unknown one: it is that of one.
 */
SETUP("set -e")
SETUP("overlay() { mount -t overlay -o lowerdir=$1 none $2; }")
SETUP("writable() { mkdir l u w m; cp one l/f; overlay l,upperdir=u,workdir=w m; }")
SETUP("layers() { mkdir l e; cp $1 l/f; cp $2 e/$3; }")
SETUP("subvolume() { btrfs -q subvolume create m/$1; cp $2 m/$1/f; }")
SETUP("subvolumes() { truncate -s 128M i; mkfs.btrfs -q i; mkdir m; mount -o loop i m;")
SETUP("subvolume a one; subvolume b two; }")

CASE_OF("untouched", "cp one f", "./f", ":", "one", "there", "one")
CASE_OF("renamed", "cp one f", "./f", "mv f g", "one", "there", "one")
CASE_OF("without a build ID", "cp plain f", "./f", ":", "none", "there", "none")
CASE_OF("deleted", "cp one f", "./f", "rm f", "one", "deleted", "one")
CASE_OF("upgraded", "cp one f", "./f", "cp two g; mv g f", "one", "replaced", "one")
CASE_OF("written in place", "cp one f", "./f", "cat two >f", "two", "there", "two")
CASE_OF("renamed by NFS", "cp one f", "./f",
	"mv f .nfs00000000018e179a00000009", "one", "deleted", "one")
CASE_OF("renamed by FUSE", "cp one f", "./f",
	"mv f .fuse_hidden0000002c00000001", "one", "deleted", "one")
CASE_OF("memfd", ":", "one", ":", "one", "deleted", "one")
CASE_OF("hole of a memfd", "truncate -s 1M hole", "hole", ":", "none", "deleted", "none")
CASE_OF("hidden by another", "cp one f", "./f", "mount --bind two f", "one", "replaced", "one")
CASE_OF("on btrfs", "subvolumes", "m/a/f", ":", "one", "there", "one")
CASE_OF("hidden by another subvolume", "subvolumes", "m/a/f",
	"mount --bind m/b/f m/a/f", "one", "replaced", "one")
CASE_OF("on an overlay", "writable", "m/f", ":", "one", "there", "one")
CASE_OF("on an overlay, without a build ID",
	"mkdir l u w m; cp plain l/f; overlay l,upperdir=u,workdir=w m", "m/f", ":",
	"none", "there", "none")
CASE_OF("deleted on an overlay", "writable", "m/f", "rm m/f", "one", "deleted", "one")
CASE_OF("written on an overlay", "writable", "m/f",
	"cat two >m/f", "unknown", "there", "unknown")
CASE_OF("merged over", "layers one plain g", "l/f", "overlay e:l l", "one", "there", "one")
CASE_OF("merged over, without a build ID", "layers plain two g", "l/f",
	"overlay e:l l", "none", "there", "none")
CASE_OF("merged over by another", "layers one two f", "l/f",
	"overlay e:l l", "one", "replaced", "one")
CASE_OF("merged over by another of its size", "tr a b <plain >other; layers plain other f", "l/f",
	"overlay e:l l", "none", "replaced", "none")
