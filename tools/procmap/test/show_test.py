#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procfs_query for addresses, --list, --name and --bench.

The truth is /proc/PID/maps and readelf.
"""

import os
import re
import shlex
import shutil
import struct
import subprocess
import time
from subprocess import PIPE

from util import (LIMIT, METHODS, NOBODY, NOT_AN_ADDRESS, ROLE, ToolTest, Vma, as_text,
                  build_id_of, by_process, command, find, lines_of, main, map_lines, maps,
                  needs, needs_query, needs_root, not_in_chroot, program_of)

FILTERS = {
    "--executable": lambda vma: "x" in vma.permissions,
    "--readable": lambda vma: "r" in vma.permissions,
    "--writable": lambda vma: "w" in vma.permissions,
    "--shared": lambda vma: "s" in vma.permissions,
    "--file-backed": Vma.has_file,
}


def lookups(pid):
    """Addresses in and around each mapping, and the line of each answer."""
    end = None
    for vma in maps(pid):
        if end not in (None, vma.start):
            yield end, f"{end:#018x} not mapped"
        end = vma.end
        for address in vma.start, vma.start + 1234, end - 1:
            offset = f"{'-':18}"
            if vma.has_file():
                offset = f"{address - vma.start + vma.offset:#018x}"
            yield address, f"{address:#018x} {offset} {vma.name or '-'}"

def named(pattern):
    return lambda vma: re.fullmatch(pattern, vma.name)

# Each is a test: its name; a process and the command line; and the condition for a mapping
# of the process to be printed, by each method, in text and in JSON. At least one mapping
# meets it; None: the tool prints nothing and exits with status 1.
LISTS = (
    ("list_is_that_of_the_text", "plain --list", lambda vma: True),
    ("list_of_odd_mappings_is_that_of_the_text", "odd --list", lambda vma: True),
    *((f"filter_{name[2:].replace('-', '_')}", f"odd --list {name}", has)
      for name, has in FILTERS.items()),
    ("filters_are_all_applied", "odd --list --readable --writable --file-backed",
     lambda vma: "rw" in vma.permissions and vma.has_file()),
    ("name_is_a_path", "plain --name {tmp}/cat", named(".*/cat")),
    ("name_passes_filters", "plain -n {tmp}/cat --executable",
     lambda vma: "x" in vma.permissions and vma.name.endswith("/cat")),
    ("name_has_brackets", "plain --name [stack]", named(r"\[stack\]")),
    ("pattern_has_brackets", "plain --name '[st*]'", named(r"\[st.*\]")),
    ("pattern_has_sets", "plain --name '*[/][c]a[t]'", named(".*/cat")),
    ("name_comes_before_the_pattern", "odd --name '{tmp}/odd/[s]ame'", named(r".*/\[s\]ame")),
    ("name_is_one_of_two_of_a_file", "odd --name {tmp}/odd/elf", named(".*/(elf|linked)")),
    ("name_is_complete", "plain --name cat", None),
    ("name_has_no_blank_at_its_end", "plain --name '{tmp}/cat '", None),
)

A_LINE = "1000-2000 r--p 0 0:1 1 /a\n"

NOT_FOUND = re.compile("^procfs_query: no mapping[^\n]+\n$")


class ShowTest(ToolTest):
    """A method test_NAME is the test NAME."""

    def prints_alone(self, lines, *args, **options):
        """Run the tool without a method: it has to print these lines."""
        self.assertEqual(lines_of(self.run_tool(*args, **options)), lines)

    def test_resolves_as_the_text_says(self):
        for pid in self.plain, self.odd:
            addresses, answers = zip(*lookups(pid))
            self.assertGreater(len(answers), 50)
            self.assertRegex("\n".join(answers), "(?m)not mapped$")
            prefixed = (f"{'0x' if nr % 2 else ''}{address:x}\n"
                        for nr, address in enumerate(addresses))
            falling = self.write("falling", "".join(list(prefixed)[::-1]))
            self.prints(list(answers)[::-1], "-f", falling, of=pid)
            with open(falling, "rb") as file:
                lines = file.read()
            self.prints(list(answers)[::-1], "-f", "-", of=pid, stdin=lines)

    def ask(self, argv, pid, fifo=None):
        """Start the tool; return it and a function that asks it for an address."""
        asked = subprocess.Popen(self.argv(argv, pid), stdin=PIPE, stdout=PIPE,
                                 stderr=PIPE)
        to = open(fifo, "wb") if fifo else asked.stdin
        for clean in (asked.kill, asked.wait, to.close, asked.stdin.close,
                      asked.stdout.close, asked.stderr.close)[::-1]:
            self.addCleanup(clean)

        def answer(line):
            to.write(f"{line}\n".encode())
            to.flush()
            return as_text(asked.stdout.readline())

        return asked, to, answer

    def wait_until(self, condition):
        deadline = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_stream_is_answered_line_by_line(self):
        fifo = f"{self.tmp}/fifo"
        os.mkfifo(fifo)
        code = self.code
        head = f"{code.start:#018x} {code.offset:#018x}"
        for method in METHODS:
            for path, file in ("-", None), ("/dev/stdin", None), (fifo, fifo):
                asked, to, answer = self.ask((method, "-v", "-f", path), self.plain,
                                             file)
                self.assertEqual(answer("# a comment\n\n1"),
                                 f"{1:#018x} not mapped\n")
                for _ in range(2):
                    self.assertEqual(answer(f"{code.start:x}"), f"{head} {self.cat}\n")
                    self.assertEqual(as_text(asked.stdout.readline()),
                                     f"  {code.line}\n")
                to.close()
                self.assertEqual(asked.wait(), 0)

    def test_stream_in_json_is_an_object_a_line(self):
        asked, to, answer = self.ask(("-Tvjf", "-"), self.plain)
        for _ in range(2):
            self.assertEqual(self.valid(answer(f"{self.code.start:x}")),
                             {"pid": self.plain, "method": "text"} |
                             self.code.json_lookup("-T"))
        to.close()
        self.assertEqual(asked.wait(), 0)

    def test_stream_follows_to_the_next_program(self):
        actor = self.start(*ROLE, "--actor", self.cat)
        asked, _, answer = self.ask(("-f", "-"), actor.pid)
        for what, expected in (("map", f"{'-':18} -"), ("execute", "not mapped")):
            command(actor, what)
            # It answers with the old program until that is gone.
            self.wait_until(lambda want=expected: answer("10000000") ==
                            f"{0x10000000:#018x} {want}\n")
        actor.kill()
        actor.wait()
        self.assertEqual(answer("1"), "")
        self.assertEqual(asked.wait(), 2)
        self.assertEqual(asked.stderr.read().decode(),
                         f"procfs_query: there is no process {actor.pid}: see ps(1)\n")

    def test_stream_ends_at_a_bad_line(self):
        asked, _, answer = self.ask(("-f", "-"), self.plain)
        self.assertEqual(answer("1"), f"{1:#018x} not mapped\n")
        self.assertEqual(answer("40g"), "")
        self.assertEqual(asked.wait(), 2)
        self.assertEqual(asked.stderr.read().decode(),
                         f"procfs_query: standard input:2: '40g' {NOT_AN_ADDRESS}\n")

    def test_addresses_come_as_arguments_file_or_stdin(self):
        address = f"{self.code.start:x}"
        expected = self.run_tool(address, f"0x{address}", f"0X{address}", "1")
        self.assertEqual(len(lines_of(expected)), 4)
        lines = (f" {address}\t# a comment\n\n#\n0x{address}\r\n0X{address}\n1"
                 .encode())
        for stdin in lines, lines + b"\n":
            self.assertEqual(self.run_tool("-f", "-", stdin=stdin), expected)
        for path in self.write("input", lines), "/proc/self/fd/0":
            self.assertEqual(self.run_tool("-f", path, stdin=lines.upper()), expected)

    def test_nothing_found_is_exit_status_1(self):
        none = "--shared", "--executable"
        for args, lines in ((("0", "f" * 16), [f"0x{'0' * 16} not mapped",
                                               f"0x{'f' * 16} not mapped"]),
                            (("--list",), []), (("--name", "x"), []), (("--sum",), []),
                            (("--deleted",), []), (("--build-ids",), [])):
            expected = {"status": 1, "message": NOT_FOUND if args[0] == "--name" else ""}
            self.prints(lines, *args, *none, **expected)
            self.run_json_lines(*args, *none, of=(self.plain, self.odd), **expected)

    def test_filters_addresses(self):
        code, data = self.code, self.data
        self.prints([f"{code.start:#018x} {code.offset:#018x} {self.cat}",
                     f"{data.start:#018x} not mapped"],
                    "--executable", f"{code.start:x}", f"{data.start:x}")

    def test_name_in_all_processes(self):
        expected = {pid: [f"{pid}: {program_of(pid)}",
                          *(vma.line for vma in maps(pid) if vma.name == self.cat)]
                    for pid in (self.plain, self.start(self.cat).pid)}
        for method in METHODS:
            self.assertEqual(by_process(self.run_tool("--all", "--name", self.cat,
                                                      method, of=None)), expected)
        found = self.run_json_lines("--all", "--name", self.cat, of=None)
        self.assertEqual([answer["pid"] for answer in found], sorted(expected))
        self.run_tool("--all", "--name", "no such name", of=None, status=1,
                      message=re.compile("no mapping has the name no such name\n"))

    def test_name_is_a_path_with_links(self):
        """Maps has the name of the file without links."""
        path = f"{self.tmp}/new\nline"
        os.mkdir(path)
        os.symlink("new\nline", f"{self.tmp}/linked")
        shutil.copy(self.cat, f"{path}/cat")
        os.symlink("cat", f"{path}/link")
        old = self.start(f"{path}/cat").pid
        for name in "new\nline/cat", "new\\012line/cat", "linked/cat", "linked/link":
            lines = [vma.line for vma in maps(old) if vma.name.endswith("012line/cat")]
            self.prints(lines, "--name", f"{self.tmp}/{name}", of=old)
        # An older file had the same name.
        shutil.copy(self.cat, f"{path}/newer")
        os.rename(f"{path}/newer", f"{path}/cat")
        for pid in old, self.start(f"{path}/cat").pid:
            self.prints([vma.line for vma in maps(pid) if "012line/cat" in vma.name],
                        "--name", f"{self.tmp}/linked/link", of=pid)
        os.unlink(f"{path}/cat")
        self.prints([vma.line for vma in maps(old) if "012line/cat" in vma.name],
                    "--name", f"{path}/cat", of=old)

    def test_name_comes_before_the_pattern_in_each_process(self):
        paths = f"{self.tmp}/a[x]", f"{self.tmp}/ax"
        pids = tuple(self.start(shutil.copy(self.cat, path)).pid for path in paths)
        expected = {pid: [f"{pid}: {path}"] + [vma.line for vma in maps(pid) if vma.name == path]
                    for pid, path in zip(pids, paths)}
        for method in METHODS:
            self.assertEqual(by_process(self.run_tool(method, "--name", paths[0], of=pids)),
                             expected)
        os.symlink("a[x]", f"{self.tmp}/b[x]")
        self.prints(expected[pids[0]][1:], "--name", f"{self.tmp}/b[x]", of=pids[0])

    def test_what_was_looked_for_is_said(self):
        saved = self.write("saved", A_LINE)
        named = "no mapping has the name"
        for name, args, message in (
                ("x", (), f"{named} x"),
                ("[x*]", (), f"{named} [x*], or matches it as a pattern"),
                ("/x", (), f"{named} /x; no regular file is at this path"),
                ("/[x]", (), f"{named} /[x], or matches it as a pattern; no regular file is at "
                 "this path"),
                (saved, (), f"{named} {saved}, or is of the file at this path"),
                ("/x", ("--shared",), "no mapping that passes the filters has the name /x; "
                 "no regular file is at this path")):
            self.prints([], *args, "--name", name, status=1,
                        message=f"procfs_query: {message}\n")
        self.run_tool("-m", saved, "--name", "/x", of=None, status=1,
                      message=f"procfs_query: {named} /x\n")

    @needs_root
    def test_path_that_cannot_be_followed_is_said(self):
        os.mkdir(f"{self.tmp}/closed", 0o700)
        path = f"{self.tmp}/closed/x"
        self.run_tool("--name", path, of=self.start(self.cat, **NOBODY).pid, status=1,
                      message=f"procfs_query: {path} could not be followed in 1 process, only "
                      "compared by name: Permission denied\n"
                      f"procfs_query: no mapping has the name {path}\n", **NOBODY)

    @needs("readelf")
    def test_build_ids_are_those_of_readelf(self):
        code = [vma for vma in maps(self.plain)
                if vma.permissions == "r-xp" and vma.name.startswith("/")]
        ids = [build_id_of(vma.name) for vma in code]
        self.assertGreaterEqual(len(ids), 2)
        self.prints([f"{vma.start:#018x} {vma.offset:#018x} {build_id} {vma.name}"
                     for vma, build_id in zip(code, ids)],
                    "-B", *(f"{vma.start:x}" for vma in code))
        self.prints([vma.line_with(f"{build_id} ") for vma, build_id in zip(code, ids)],
                    "-B", "--list", "--executable", "--file-backed")
        vma = find(self.odd, "r.*", "/id-of-8")
        self.prints([vma.line_with(f"{ids[0][:16]:40} ")], "-B", "--name", vma.name, of="odd")
        for kind in "heap", "stack":
            vma = find(self.plain, "rw-p", f"[{kind}]")
            self.assertIn(vma.line_with(f"{'-':40} "),
                          lines_of(self.run_tool("-B", "--list")))

    # There, files are on overlayfs: the text may not say which one has data that was written.
    @not_in_chroot
    @needs("readelf")
    def test_elf_address_is_that_of_the_section(self):
        out = subprocess.check_output(["readelf", "-hSW", self.cat], text=True)
        entry = int(re.search("Entry point address: +0x(.*)", out)[1], 16)
        with open(f"/proc/{self.plain}/auxv", "rb") as file:
            at_entry = dict(struct.iter_unpack("NN", file.read()))[9]
        sections = [(int(address, 16), int(offset, 16)) for address, offset in re.findall(
            r"\] \.(?:text|rodata|init_array|data) +\w+ +(\w+) (\w+) ", out)]
        self.assertTrue(any(address != offset for address, offset in sections))
        stack = find(self.plain, "rw-p", "[stack]").start
        asked = [at_entry - entry + address for address, _ in sections] + [stack, 1]
        text = "".join(f"{address:x}\n" for address in asked).encode()
        answers = [f"{address:#018x}" for address, _ in sections] + ["-", "mapped"]
        path = self.write("sections", text)
        for method in METHODS:
            for file in path, "-":
                lines = lines_of(self.run_tool(method, "-E", "-f", file, stdin=text))
                self.assertEqual([line.split()[2] for line in lines], answers)
        found = self.run_json("-E", *(f"{address:x}" for address in asked))["addresses"]
        self.assertEqual([answer["elf_address"] for answer in found],
                         [hex(address) for address, _ in sections] + [None, None])

    @needs_root
    def test_file_that_cannot_be_read_is_told(self):
        path = shutil.copy(self.cat, f"{self.tmp}/unread")
        target = self.start(path, **NOBODY).pid
        os.unlink(path)
        work = "-T", "-B", "-E", f"{find(target, 'r-xp', path).start:x}"
        out = self.run_tool(*work, of=target, **NOBODY)
        self.assertEqual(out.split()[2:4], ["?", "?"])
        found, = self.run_json(*work, of=target, **NOBODY)["addresses"]
        for key in "build_id", "elf_address":
            self.assertIsNone(found[key])
            self.assertIs(found[f"{key}_unreadable"], True)

    def test_json_of_addresses_is_what_the_text_says(self):
        vmas = maps(self.odd)
        starts = self.write("starts", "\n".join(["1"] + [f"{vma.start:x}"
                                                         for vma in vmas]))
        for method, name in METHODS.items():
            self.assertEqual(self.run_json(method, "-v", "-f", starts, of="odd"), {
                "pid": self.odd, "method": name, "addresses": [
                    {"address": "0x1", "mapped": False, "offset": None, "name": None,
                     "vma": None}, *(vma.json_lookup(method) for vma in vmas)]})

    @needs("readelf")
    def test_json_has_build_ids(self):
        for method in METHODS:
            found, = self.run_json(method, "-B", "-v",
                                   f"{self.code.start:x}")["addresses"]
            self.assertEqual(found["build_id"], build_id_of(self.cat))
            self.assertEqual(found["vma"]["build_id"], build_id_of(self.cat))

    def test_best_method_is_used(self):
        self.assertEqual(self.run_json("--list")["method"], [*METHODS.values()][-1])

    @needs_root
    def test_without_the_ioctl_the_text_is_used(self):
        self.assertEqual(self.run_json("--list", **self.without_ioctl())["method"], "text")

    @needs_query
    def test_bench_prints_times_in_order(self):
        methods = ["default", *(method for method in ("query", "scan", "text")
                                if method in METHODS.values())]
        bench = self.run_json("--list", "--bench", "5")["bench"]
        self.assertEqual(list(bench), ["runs", *methods])
        self.assertEqual(bench["runs"], 5)
        for method in methods:
            found = bench[method]
            self.assertLess(0, found["min_us"])
            self.assertLessEqual(found["min_us"], found["median_us"])
            self.assertLessEqual(found["median_us"], found["max_us"])
            self.assertEqual(found["found"], len(maps(self.plain)))
        out = self.run_tool("--list", "--bench", "4")
        for method in methods:
            self.assertRegex(out, rf"(?m)^{method:7}( +[0-9.]+){{5}}$")
        self.run_tool("1", "--bench", "2", status=1)

    def test_all_looks_into_other_processes(self):
        for method in METHODS:
            found = by_process(self.run_tool("--all", "--list", method, of=None))
            self.assertLessEqual({os.getpid(), self.plain, self.odd}, set(found))
            self.assertEqual(list(found), sorted(found))
            self.assertNotIn(self.zombie, found)
            self.assertNotIn(self.tool, (lines[0].split(": ", 1)[1]
                                         for lines in found.values()))
            for pid in self.plain, self.odd:
                self.assertEqual(found[pid],
                                 [f"{pid}: {program_of(pid)}"] + map_lines(pid))

    def test_schema_covers_each_member(self):
        """Without any of its members, or with another one, an object is invalid."""
        answers = [self.run_json("-B", "-v", f"{self.code.start:x}"),
                   self.run_json("--list"), self.run_json("--sum")]
        for answer in answers:
            for change in answer, next(value[0] for value in answer.values()
                                       if isinstance(value, list)):
                for key in ("another", *change):
                    if key in ("build_id", "vma"):
                        continue    # as an option says
                    before = dict(change)
                    if key in change:
                        del change[key]
                    else:
                        change[key] = 1
                    self.assertFalse(self.schema.is_valid(answer), key)
                    change.clear()
                    change.update(before)
            self.assertTrue(self.schema.is_valid(answer))

    def test_pids_are_a_list(self):
        pids = self.odd, self.gone, self.plain, self.zombie, self.odd
        message = self.told_gone + ("procfs_query: skipped 1 process without mappings: "
                                    "zombies and kernel threads have none\n")
        for method in METHODS:
            found = by_process(self.run_tool("--list", method, of=pids, message=message))
            self.assertEqual(found, {pid: [f"{pid}: {program_of(pid)}"] + map_lines(pid)
                                     for pid in sorted((self.odd, self.plain))})
        twice = self.plain, self.plain
        self.assertEqual(self.run_tool("--list", of=twice), self.run_tool("--list"))
        self.assertEqual(self.run_tool("-p", str(self.odd), "--list"),
                         self.run_tool("--list", of=(self.odd, self.plain)))
        code = f"{self.code.start:x}"
        self.assertEqual(
            self.run_tool("-f", "-", of=pids, stdin=code.encode(), message=message),
            self.run_tool(code, of=pids, message=message))

    def test_fd_is_looked_up_as_its_process(self):
        code = f"{self.code.start:x}"
        # By the text, data that was all written to is not known to be of a file on overlayfs.
        for name in "maps", "":
            with self.opened(f"/proc/{self.plain}/{name}") as fd:
                passed = {"of": None, "pass_fds": (fd,)}
                for args in (("-v", code), ("-f", "-"), ("--name", self.cat), ("--sum",),
                             *([] if name else [("-B", "--list", "--executable"), ("-E", code)])):
                    self.prints(lines_of(self.run_tool(*args, stdin=code.encode())),
                                "--fd", str(fd), *args, stdin=code.encode(), **passed)
                self.prints(map_lines(self.plain), "--fd", str(fd), "--list", **passed)
                for method, in_words in METHODS.items():
                    self.assertEqual(self.run_json(method, "--fd", str(fd), "--list", **passed),
                                     {"fd": fd, "method": in_words, "vmas": [
                                         vma.json(method) for vma in maps(self.plain)]})
                for args in (code,), ("-f", "-"), ("--sum",):
                    self.run_json("--fd", str(fd), *args, stdin=code.encode(), **passed)

    @needs_root
    def test_maps_file_alone_is_enough_for_a_user_without_rights(self):
        code = f"{self.code.start:x}"
        with self.opened(f"/proc/{self.plain}/maps") as fd:
            passed = {"of": None, "pass_fds": (fd,), **NOBODY}
            self.prints(map_lines(self.plain), "--fd", str(fd), "--list", **passed)
            work = "-T", "-B", "-E", code
            (found,), (known,) = (out["addresses"] for out in (
                self.run_json("--fd", str(fd), *work, **passed), self.run_json(*work)))
            self.assertIs(found["build_id_unreadable"], True)
            # Device and inode do not identify a file on overlayfs and btrfs.
            if self.code.device[0]:
                self.assertEqual(found["elf_address"], known["elf_address"])

    def test_maps_file_is_read_as_the_process(self):
        for pid in self.plain, self.odd:
            addresses, answers = zip(*lookups(pid))
            text = "".join(f"{address:x}\n" for address in addresses)
            for name in "smaps", "maps":
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    saved = "-m", self.write(name, file.read())
                self.prints_alone(map_lines(pid), *saved, "--list", of=None)
            self.prints_alone(list(answers), *saved, "-T", "-f", "-", of=None,
                              stdin=text.encode())
            self.assertEqual(self.run_json(*saved, "--list", of=None),
                             {"maps_file": saved[1], "method": "text",
                              "vmas": [vma.json("-T") for vma in maps(pid)]})
            self.run_json(*saved, "-f", "-", of=None, stdin=b"1\n", status=1)

    def test_maps_file_may_have_been_edited(self):
        lines = map_lines(self.plain)
        text = "\n".join(lines) + "\n"
        for edited in (f"\n \n{text}\n\t\n", text.replace("\n", "\r\n"),
                       f"\n{text}\n".replace("\n", "\r\n"),
                       re.sub("(?m)^(.*? ...)p", r"\1-", text)):
            self.prints_alone(lines, "-m", self.write("edited", edited), "-l", of=None)
        path = self.write("cr", A_LINE.replace("\n", "\r\n") + "3000-4000 r--p 0 0:1 1 /b\n")
        found = self.run_json("-m", path, "-l", of=None)["vmas"]
        self.assertEqual([vma["name"] for vma in found], ["/a\r", "/b"])

    def test_program_cannot_forge_a_heading(self):
        path = f"{self.tmp}/forged\n1: /sbin/init"
        os.makedirs(os.path.dirname(path))
        pids = self.start(shutil.copy(self.cat, path)).pid, self.gone
        heading = f"{pids[0]}: {path}".replace("\n", "\\012")
        self.assertEqual(lines_of(self.run_tool("--list", of=pids, message=self.told_gone)),
                         [heading] + map_lines(pids[0]))
        out = self.on_terminal("--list", of=pids, COLUMNS="300")
        self.assertIn(heading, lines_of(self.without_colours(out)))
        found = self.run_json("--list", of=pids, message=self.told_gone)
        self.assertEqual(found["program"], path)
        self.assertNotIn("program_hex", found)

    def test_json_has_all_bytes_of_a_program(self):
        path = f"{self.tmp}/program \udcff".encode("utf-8", "surrogateescape")
        pids = self.start(shutil.copy(self.cat, path)).pid, self.gone
        found = self.run_json("--list", of=pids, message=self.told_gone)
        self.assertEqual(found["pid"], pids[0])
        self.assertEqual(found["program"], f"{self.tmp}/program \xff")
        self.assertEqual(bytes.fromhex(found["program_hex"]), path)


def test_of_list(name, command_line, has):
    """Make a test of a line of LISTS."""
    def test(self):
        of, *args = shlex.split(command_line.format(tmp=self.tmp))
        vmas = [vma for vma in maps(getattr(self, of)) if has and has(vma)]
        self.assertEqual(bool(vmas), bool(has))
        expected = {"status": 0, "message": ""} if vmas else {"status": 1, "message": NOT_FOUND}
        self.prints([vma.line for vma in vmas], *args, of=of, **expected)
        for method, name in METHODS.items():
            self.assertEqual(self.run_json(method, *args, of=of, **expected), {
                "pid": getattr(self, of), "method": name,
                "vmas": [vma.json(method) for vma in vmas]})
    setattr(ShowTest, f"test_{name}", test)


for case in LISTS:
    test_of_list(*case)


if __name__ == "__main__":
    main(ShowTest)
