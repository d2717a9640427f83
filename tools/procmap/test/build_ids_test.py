#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procfs_query --build-ids. The truth is readelf."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from subprocess import DEVNULL

from util import (METHODS, NOBODY, ToolTest, build_id_of, by_process, find, lines_of, main, maps,
                  needs, needs_root, not_in_chroot)


class BuildIdsTest(ToolTest):
    """A method test_NAME is the test NAME."""

    def build_id_lines(self, *args):
        """Run --build-ids; return the number, paths and processes of each ID."""
        heading, *lines = lines_of(self.run_tool("--all", "--build-ids", *args,
                                                 of=None))
        self.assertRegex(heading, "^build ID +processes  paths  PIDs$")
        found = {}
        for line in lines:
            if not re.fullmatch("files .*: [0-9]+", line):
                build_id, number, rest = line.split(None, 2)
                self.assertNotIn(build_id, found)
                found[build_id] = (int(number), *rest.rsplit("  ", 1))
        return found

    @needs("readelf")
    def test_build_ids_are_a_line_each(self):
        ids = "aa" * 20, "bb" * 20
        programs = [self.program_with_build_id(name, build_id) for name, build_id in
                    (("b", ids[0]), ("a", ids[0]), ("c", ids[1]))]
        *pids, other = (self.start(programs[i]).pid for i in (0, 1, 0, 2))
        files = [find(pid, "r-xp", path).json_device() | {"name": path}
                 for pid, path in zip(pids, programs[:2])]
        pids.sort()
        for method in METHODS:
            found = self.build_id_lines(method)
            # A process with several copies of a program counts once.
            self.assertEqual(found[build_id_of(self.cat)][2].split(",").count(f"{self.odd}"), 1)
            self.assertEqual(found[ids[0]], (3, f"{programs[1]}, {programs[0]}",
                                             ",".join(map(str, pids))))
            self.assertEqual(found[ids[1]], (1, programs[2], f"{other}"))
            paths = [line[1] for line in found.values()]
            self.assertEqual(paths, sorted(paths))

            *rows, others = self.run_json_lines("--build-ids", method, of=(*pids, other))
            self.assertEqual(others["without_build_id"], 0)
            # On overlayfs, the text cannot tell the file of pages that were all written to.
            if method != "-T":
                self.assertEqual(others["unreadable"], 0)
            row, = (row for row in rows if row["build_id"] == ids[0])
            self.assertEqual(row["pids"], pids)
            self.assertEqual(row["processes"], 3)
            self.assertCountEqual(row["files"], files)

    @needs("readelf")
    def test_build_ids_have_as_many_processes_as_fit_the_terminal(self):
        program = self.program_with_build_id("many", "ee" * 20)
        of = tuple(sorted(self.start(program).pid for _ in range(30)))
        pids = [str(pid) for pid in of]
        head = f"{'ee' * 20}        30  {program}  "
        self.assertIn(head + ",".join(pids) + "\n", self.run_tool("--build-ids", of=of))
        for width in len(head) + 1, len(head) + 40, 1000:
            out = self.without_colours(self.on_terminal("--build-ids", of=of,
                                                        COLUMNS=str(width)))
            line, = (line for line in lines_of(out) if line.startswith(head))
            shown, _, rest = line[len(head):].partition(" +")
            nr = len(shown.split(","))
            self.assertEqual(shown, ",".join(pids[:nr]))
            self.assertEqual(nr + int(rest or 0), 30)
            if width == 1000:
                continue
            self.assertLessEqual(len(line), max(width, len(head) + 20))
            self.assertGreater(len(line) + len(pids[0]) + 1,
                               max(width, len(head) + 20))

    @needs_root
    @not_in_chroot
    @needs("mkfs.btrfs")
    @needs("readelf")
    @needs("unshare")
    def test_build_ids_of_files_with_the_same_numbers(self):
        """Programs in two subvolumes of btrfs, at a path each, and at one in two containers."""
        ids, top, of = ("cc" * 20, "dd" * 20), tempfile.mkdtemp(dir=self.tmp), {}
        image, one = self.write("image", ""), self.write("one", "")
        os.truncate(image, 256 << 20)
        subprocess.check_call(["mkfs.btrfs", "-q", image])
        if subprocess.call(["mount", "-o", "loop", image, top], stderr=DEVNULL):
            self.skipTest("cannot mount btrfs")
        self.addCleanup(subprocess.check_call, ["umount", "--lazy", top])
        for build_id in ids:
            subvolume = f"{top}/{build_id}"
            subprocess.check_call(["btrfs", "subvolume", "create", subvolume],
                                  stdout=DEVNULL)
            program = shutil.copy(self.program_with_build_id("of-volume", build_id),
                                  f"{subvolume}/program")
            of[build_id] = self.start(program).pid, self.start(
                "unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && exec "$1"',
                program, one).pid
        self.assertEqual(len({(vma.device, vma.inode) for pids in of.values()
                              for vma in maps(pids[0]) if top in vma.name}), 1)
        for method in METHODS:
            found = self.build_id_lines(method)
            for build_id, pids in of.items():
                paths = sorted((one, f"{top}/{build_id}/program"))
                self.assertEqual(found[build_id], (2, ", ".join(paths),
                                                   ",".join(map(str, sorted(pids)))))
                out = self.run_tool(method, "--name", f"{top}/{build_id}/program",
                                    of=sum(of.values(), ()))
                self.assertEqual(sorted(by_process(out)), sorted(pids))
            out = self.run_tool(method, "--sum", "-B", of=sum(of.values(), ()))
            self.assertEqual(sorted(re.findall(f"\\w+ {one}$", out, re.M)),
                             [f"{build_id} {one}" for build_id in ids])

    @needs_root
    @not_in_chroot
    def test_build_ids_counts_files_that_cannot_be_read(self):
        path = shutil.copy(self.cat, f"{self.tmp}/unreadable")
        os.link(path, f"{path}-but-here")
        target, other = (self.start(name, **NOBODY).pid
                         for name in (path, f"{path}-but-here"))
        os.unlink(path)
        args = "--build-ids", "-T"
        out = self.run_tool(*args, of=target, **NOBODY)
        self.assertEqual(lines_of(out)[-1], "files that cannot be read: 1")
        out = self.run_tool(*args, "--json", of=target, **NOBODY)
        self.assertEqual(json.loads(lines_of(out)[-1])["unreadable"], 1)
        # Its other name can, but may be that of another file with the same numbers.
        out = self.run_tool(*args, of=(target, other), **NOBODY)
        self.assertRegex(out, f" 1  {path}-but-here  {other}\n")
        self.assertEqual(lines_of(out)[-1], "files that cannot be read: 1")


if __name__ == "__main__":
    main(BuildIdsTest)
