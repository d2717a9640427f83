#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procfs_query --deleted."""

import os
import re
import shutil
import stat
import tempfile
import time

from util import (LIMIT, METHODS, NOBODY, ToolTest, build_id_of, command, find, lines_of, main,
                  needs, needs_root, not_in_chroot)

# Any user may run it.
PYTHON = "/usr/bin/python3"

# A process that runs each line that it gets, and has these functions, and mounts of its own.
WORKER = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
maps = []
def map_file(path):
    with open(path, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE))
def mount(kind, at, options=b""):
    assert not libc.mount(b"none", at.encode(), kind, ctypes.c_ulong(0), options)
def mount_dead_server(at, device="/dev/fuse"):
    maps.append(os.open(device, os.O_RDWR))
    mount(b"fuse", at, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % maps[-1])
if not os.geteuid():
    assert not libc.unshare(0x20000)
else:
    ids = f"0 {os.geteuid()} 1", "deny", f"0 {os.getegid()} 1"
    assert not libc.unshare(0x10020000)
    for name, line in zip(("uid_map", "setgroups", "gid_map"), ids):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
assert not libc.mount(None, b"/", None, ctypes.c_ulong(0x44000), None)
for line in sys.stdin:
    if line != "ready\\n":
        exec(line)
    print(line, end="", flush=True)
"""


class DeletedTest(ToolTest):
    """A method test_NAME is the test NAME."""

    def start_worker(self, **popen):
        """Files that are made from then on are made after its start."""
        worker = self.start(PYTHON, "-c", WORKER, **popen)
        time.sleep(0.1)
        return worker

    def make_directory(self):
        """On a file system that tells when a file was made, also in a guest."""
        path = tempfile.mkdtemp(dir="/dev/shm")
        self.addCleanup(shutil.rmtree, path)
        return path

    def map_copy(self, worker, path):
        """Have a new file mapped."""
        command(worker, f"map_file({shutil.copy(self.cat, path)!r})")
        return path

    def deleted_files(self, *args, of=None, **options):
        """The files of each process that --deleted prints."""
        found = {}
        for row in self.run_json_lines("--deleted", *args, of=of, **options):
            found.setdefault(row["pid"], []).append(row["file"])
        return found

    def test_deleted_are_the_files_that_were_removed_or_replaced(self):
        names = "removed\nfile", "replaced (deleted)"
        paths = [shutil.copy(self.cat, f"{self.tmp}/{name}") for name in names]
        expected = {self.start(path).pid: [path.replace("\n", "\\012")] for path in paths}
        os.unlink(paths[0])
        os.rename(shutil.copy(self.cat, f"{self.tmp}/new"), paths[1])
        for args, of in ((("--all",), None), (("--executable",), (self.plain, *expected)),
                         (("--file-backed", "--readable"), (self.plain, *expected))):
            for method in METHODS:
                found = self.deleted_files(method, *args, of=of)
                self.assertEqual(list(found), sorted(found))
                self.assertNotIn(self.plain, found)
                for pid, files in expected.items():
                    self.assertEqual(found[pid], files)

    @needs_root
    @needs("unshare")
    def test_deleted_knows_memory_without_path_by_its_name(self):
        files = ("/SYSV0000abcd.so", "/SYSVno-digit", "/SYSV", "/i915.so", "/dev/zero2",
                 "/anon_hugepages", "/srv/memfd:name", "/srv/[aio]", "/drm mm object/a",
                 "/secretmem.so", "/tmp/#1", "/tmp/#7.so")
        memory = ("/SYSV0000abcd", "/i915", "/dev/zero", "/anon_hugepage", "/memfd:name",
                  "/[aio]", "/drm mm object", "/secretmem", "/tmp/#7")
        names = [f"{name} (deleted)" for name in files + memory] + ["/dmabuf:name"]
        text = "".join(f"{i + 1:08x}000-{i + 2:08x}000 r-xs 00000000 00:01 7 {name}\n"
                        for i, name in enumerate(names))
        self.assertEqual(self.deleted_files("-T", of=self.plain, **self.with_files(
            {f"/proc/{self.plain}/maps": text})), {self.plain: list(files)})

    @needs_root
    @needs("readelf")
    def test_deleted_has_process_program_and_file(self):
        path = shutil.copy(self.cat, f"{self.tmp}/gone")
        pid = self.start(path).pid
        os.unlink(path)
        vma = find(pid, "r.*", f"{path} (deleted)")
        heading, row = lines_of(self.run_tool("--deleted", of=pid))
        self.assertRegex(heading, "^ +pid program +file$")
        self.assertEqual(row.split(), [str(pid), path, path])
        row = self.run_json("--deleted", of=pid)
        self.assertEqual(row, {
            "pid": pid, "program": path, "file": path, **vma.json_device(), "replaced": False,
            "verified": row["verified"], "born_after_start": row["born_after_start"]})
        build_id = build_id_of(self.cat)
        args = "--deleted", "-B", "--executable"
        heading_with_id, row = lines_of(self.run_tool(*args, of=pid))
        self.assertRegex(heading_with_id, "^ +pid program +build ID {32} file$")
        self.assertEqual(row.split(), [str(pid), path, build_id, path])
        self.assertEqual(self.run_json(*args, of=pid)["build_id"], build_id)
        out = lines_of(self.run_tool("--deleted", of=(pid, self.odd)))
        self.assertEqual(out.count(heading), 1)

    @needs_root
    @not_in_chroot
    def test_deleted_is_not_what_the_process_made_itself(self):
        worker = self.start_worker()
        top = self.make_directory()
        os.unlink(self.map_copy(worker, f"{top}/made later"))
        self.assertEqual(self.deleted_files(of=worker.pid, status=1), {})

    @needs_root
    @not_in_chroot
    def test_deleted_is_what_was_made_before_the_process(self):
        top = self.make_directory()
        path = shutil.copy(self.cat, f"{top}/before")
        time.sleep(0.1)
        worker = self.start_worker()
        command(worker, f"map_file({path!r})")
        os.unlink(path)
        row = self.run_json("--deleted", of=worker.pid)
        self.assertEqual((row["file"], row["verified"]), (path, True))
        self.assertLess(-LIMIT, row["born_after_start"])
        self.assertLess(row["born_after_start"], 0)

    @needs_root
    @not_in_chroot
    def test_deleted_is_a_plugin_that_was_upgraded_twice(self):
        worker = self.start_worker()
        top = self.make_directory()
        path = shutil.copy(self.cat, f"{top}/plugin")
        for i in range(2):
            os.rename(shutil.copy(self.cat, f"{top}/new"), path)
            if not i:
                command(worker, f"map_file({path!r})")
        row = self.run_json("--deleted", of=worker.pid)
        self.assertEqual((row["file"], row["replaced"]), (path, True))
        self.assertLess(0, row["born_after_start"])

    @needs_root
    @not_in_chroot
    def test_deleted_is_all_of_a_system_folder(self):
        worker = self.start_worker()
        command(worker, "mount(b'tmpfs', '/opt')")
        shutil.copy(self.cat, f"/proc/{worker.pid}/root/opt/late")
        command(worker, "map_file('/opt/late'); os.unlink('/opt/late')")
        self.assertEqual(self.deleted_files(of=worker.pid)[worker.pid], ["/opt/late"])

    @needs_root
    @not_in_chroot
    def test_deleted_is_not_what_has_a_random_number_for_a_name(self):
        top = self.make_directory()
        os.mkdir(f"{top}/tmp")
        names = ("tmp/jna4214035373404461359.tmp", "tmp/libzstd-jni-1.5.5-5731199546680919608.so",
                 "tmp/424214035373404461")
        files = ("tmp/lib20260101123456789.so", "tmp/jna4214035373404461350.tmp",
                 "lib4214035373404461359.so")
        for name in names + files:
            shutil.copy(self.cat, f"{top}/{name}")
        worker = self.start_worker()
        for name in names + files:
            command(worker, f"map_file({top + '/' + name!r})")
            os.unlink(f"{top}/{name}")
        shutil.copy(self.cat, f"{top}/{files[1]}")
        self.assertCountEqual(self.deleted_files(of=worker.pid)[worker.pid],
                              [f"{top}/{name}" for name in files])

    @needs_root
    @not_in_chroot
    def test_deleted_asks_no_dead_server(self):
        top = self.make_directory()
        os.mkdir(f"{top}/served")
        paths = [shutil.copy(self.cat, f"{top}/served/{name}") for name in ("there", "gone")]
        upgraded = shutil.copy(self.cat, f"{top}/upgraded")
        worker = self.start_worker()
        for path in *paths, upgraded:
            command(worker, f"map_file({path!r})")
        os.unlink(paths[1])
        os.rename(shutil.copy(self.cat, f"{top}/new"), upgraded)
        command(worker, f"mount_dead_server({top + '/served'!r})")
        for args, of in (("--all",), None), ((), worker.pid):
            rows = self.run_json_lines("--deleted", *args, of=of,
                                       message=re.compile("mappings? w.* judged by name"))
            self.assertCountEqual([(row["file"], row["verified"]) for row in rows
                                   if row["pid"] == worker.pid],
                                  [(paths[1], False), (upgraded, True)])
        # Nobody looked whether there is an upgraded one.
        late = self.map_copy(worker, f"{top}/late")
        os.rename(late, f"{top}/.nfs00000000018e179a00000009")
        self.assertIn(f"{top}/.nfs00000000018e179a00000009",
                      self.deleted_files(of=worker.pid)[worker.pid])

    def test_deleted_asks_servers_if_it_may(self):
        path = shutil.copy(self.cat, f"{self.tmp}/asked")
        pid = self.start(path).pid
        os.unlink(path)
        found = self.deleted_files("--ask-servers", of=pid)
        self.assertEqual(found, {pid: [path]})

    @needs_root
    @not_in_chroot
    def test_deleted_asks_no_dead_server_of_a_user(self):
        device = f"{self.tmp}/fuse"
        os.mknod(device, stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
        os.chmod(device, 0o666)
        worker = self.start_worker(**NOBODY)
        command(worker, f"mount_dead_server('/lib', {device!r})")
        self.run_tool("--deleted", of=worker.pid, status=1,
                      message=re.compile("mappings were judged by name"))


if __name__ == "__main__":
    main(DeletedTest)
