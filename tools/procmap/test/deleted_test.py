#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procfs_query --deleted."""

import os
import shutil

from util import METHODS, ToolTest, build_id_of, find, lines_of, main, needs, needs_root


class DeletedTest(ToolTest):
    """A method test_NAME is the test NAME."""

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
                 "/secretmem.so", "/tmp/#1", "/tmp/#7.so", "/tmp/ffiserve", "/tmp/ffi/a.so",
                 "/usr/bin/ffiserver")
        memory = ("/SYSV0000abcd", "/i915", "/dev/zero", "/anon_hugepage", "/memfd:name",
                  "/[aio]", "/drm mm object", "/secretmem", "/tmp/#7", "/tmp/ffiaB0xYz",
                  "/run/user/1/orcexec.aB0xYz", "/.glaB0xYz", "/dev/shm/shmfd-aB0xYz",
                  "/var/tmp/ffiserver")
        names = [f"{name} (deleted)" for name in files + memory] + ["/dmabuf:name"]
        text = "".join(f"{i + 1:08x}000-{i + 2:08x}000 r-x{'sp'['ffi' in name]} 00000000 "
                       f"00:01 7 {name}\n" for i, name in enumerate(names))
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
        self.assertEqual(self.run_json("--deleted", of=pid), {
            "pid": pid, "program": path, "file": path, **vma.json_device()})
        build_id = build_id_of(self.cat)
        args = "--deleted", "-B", "--executable"
        heading_with_id, row = lines_of(self.run_tool(*args, of=pid))
        self.assertRegex(heading_with_id, "^ +pid program +build ID {32} file$")
        self.assertEqual(row.split(), [str(pid), path, build_id, path])
        self.assertEqual(self.run_json(*args, of=pid)["build_id"], build_id)
        out = lines_of(self.run_tool("--deleted", of=(pid, self.odd)))
        self.assertEqual(out.count(heading), 1)


if __name__ == "__main__":
    main(DeletedTest)
