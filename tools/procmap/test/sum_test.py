#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procfs_query --sum. The truth is /proc/PID/maps."""

import shutil

from util import METHODS, ToolTest, build_id_of, lines_of, main, maps, needs


class Sum:
    """The line of --sum for the mappings of one file, or of all."""

    def __init__(self, vma=None):
        self.vma = vma
        self.pids = set()
        self.mappings = 0
        self.bytes = self.executable = self.writable = 0

    def add(self, pid, vma):
        size = vma.end - vma.start
        self.pids.add(pid)
        self.mappings += 1
        self.bytes += size
        self.executable += size if "x" in vma.permissions else 0
        self.writable += size if "w" in vma.permissions else 0

    def line(self, of_many):
        return (f"{len(self.pids):9} " if of_many else "") + (
            f"{self.mappings:8} {self.bytes >> 10:11} "
            f"{self.executable >> 10:11} {self.writable >> 10:11}  " +
            (self.vma.name or "-" if self.vma else "total"))

    def json(self):
        of_file = {}
        if self.vma:
            of_file = self.vma.json_device() | self.vma.json_name()
        return {"processes": len(self.pids), "mappings": self.mappings,
                "bytes": self.bytes, "executable_bytes": self.executable,
                "writable_bytes": self.writable, **of_file}

def sums_of(*pids):
    """The sums of processes: by file or other name, and the total."""
    sums, total = {}, Sum()
    for pid in pids:
        for vma in maps(pid):
            key = vma.device, vma.inode, vma.name
            if vma.name == "/dev/zero (deleted)":
                key = vma.name
            sums.setdefault(key, Sum(vma)).add(pid, vma)
            total.add(pid, vma)
    return list(sums.values()), total


class SumTest(ToolTest):
    """A method test_NAME is the test NAME."""

    def check_sums(self, out, *pids):
        """Compare the output of --sum with the text."""
        heading, *found, total = lines_of(out)
        sums, total_of_text = sums_of(*pids)
        of_many = len(pids) > 1
        self.assertRegex(heading, ("^processes " if of_many else "^") +
                         "mappings +KiB +executable +writable  name$")
        self.assertEqual(sorted(found), sorted(sum.line(of_many) for sum in sums))
        self.assertEqual(total, total_of_text.line(of_many))
        sizes = [int(line.split()[2 if of_many else 1]) for line in found]
        self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_sum_is_that_of_the_text(self):
        for pid in self.plain, self.odd:
            for method in METHODS:
                self.check_sums(self.run_tool("--sum", method, of=pid), pid)
            with open(f"/proc/{pid}/maps", "rb") as file:
                saved = "-m", self.write("maps", file.read())
            self.check_sums(self.run_tool(*saved, "--sum", of=None), pid)
            self.run_json(*saved, "--sum", of=None)

    def test_sum_of_memory_without_path_is_by_name(self):
        of_memory = ("/dev/zero (deleted)", "/SYSV00000000 (deleted)", "/SYSV0000abcd (deleted)",
                     "/memfd:a (deleted)", "/memfd:b (deleted)", "/anon_hugepage (deleted)",
                     "[anon_shmem:a]", "[anon_shmem:b]", "anon_inode:[perf_event]")
        of_files = "/usr/lib/replaced.so", "/usr/lib/replaced.so (deleted)"
        names = 3 * (of_memory + of_files)
        text = "".join(f"{i + 1:08x}000-{i + 2:08x}000 rw-s 00000000 00:01 {i + 7} {name}\n"
                       for i, name in enumerate(names))
        found = self.run_json("-m", self.write("memory", text), "--sum", of=None)["sums"]
        self.assertCountEqual(
            [(sum["name"], sum["mappings"], sum["inode"]) for sum in found],
            [(name, 3, None) for name in of_memory] +
            [(name, 1, str(i + 7)) for i, name in enumerate(names) if name in of_files])

    @needs("readelf")
    def test_sum_of_several_processes(self):
        twice = shutil.copy(self.cat, f"{self.tmp}/twice")
        pids = self.start(twice).pid, self.start(twice).pid
        self.check_sums(self.run_tool("--sum", of=pids), *pids)
        build_id = build_id_of(twice)
        work = "--sum", "-B", "--executable"
        heading, *lines = lines_of(self.run_tool(*work, of=pids))
        column = heading.index("build ID")
        self.assertEqual({line[column:] for line in lines if line.endswith("/twice")},
                         {f"{build_id} {twice}"})
        self.assertTrue(heading[column:].endswith(f"{'build ID':40} name"))
        build_ids = {sum["name"]: sum["build_id"]
                     for sum in self.run_json(*work, of=pids)["sums"]}
        self.assertEqual(build_ids[twice], build_id)
        found = self.run_json("--sum", of=pids)
        sums, total = sums_of(*pids)
        self.assertEqual(found["total"], total.json())
        self.assertCountEqual(found["sums"], [sum.json() for sum in sums])


if __name__ == "__main__":
    main(SumTest)
