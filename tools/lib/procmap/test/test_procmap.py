#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test the module procmap: what it converts, raises and owns. The library has its own tests.

Usage: with the library in LD_LIBRARY_PATH, test_procmap.py
"""
import collections.abc
import concurrent.futures
import copy
import ctypes
import errno
import functools
import mmap
import os
import pathlib
import re
import subprocess
import sys
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

import hold_case  # noqa: E402	beside this file
import procmap  # noqa: E402	found in the path above
from procmap import File, Flag, Mapping, Method, OpenFlag, Procmap, Snapshot  # noqa: E402

LIBC = ctypes.CDLL(None)
TEXT = b"""\
1000-2000 rw-p 00000000 00:00 0
2000-5000 r-xs fffffff000 08:100000 18446744073709551615 /a \xff b
5000-6000 ---p 00001000 fd:01 7 /c
"""
MAPPINGS = [
    Mapping(0x1000, 0x2000, 0, 0, 0, "", Flag.READABLE | Flag.WRITABLE, 0, 0, None, 0),
    Mapping(0x2000, 0x5000, 0xFFFFFFF000, 2**64 - 1, 0, os.fsdecode(b"/a \xff b"),
            Flag.READABLE | Flag.EXECUTABLE | Flag.SHARED, 8, 0x100000, None, 0),
    Mapping(0x5000, 0x6000, 0x1000, 7, 0, "/c", Flag(0), 0xFD, 1, None, 0),
]


def address_of(function):
    """Where a function of a C library is."""
    return ctypes.cast(function, ctypes.c_void_p).value


class Lookup(unittest.TestCase):
    """Single mappings, and walks over them."""

    def test_fields(self):
        with Procmap.from_text(TEXT) as maps:
            self.assertEqual(list(maps), MAPPINGS)
            self.assertEqual(list(maps.mappings(Flag.EXECUTABLE)), MAPPINGS[1:2])
            self.assertEqual(maps.find(0x4FFF), MAPPINGS[1])
            self.assertIsNone(maps.find(8))
            self.assertEqual(maps.find(0x4FFF, Flag.WANT_BUILD_ID),
                             MAPPINGS[1]._replace(build_id_error=errno.ENODEV))
            for name, glob in (b"/a \xff b", False), ("/a [!/] b", True):
                self.assertEqual(list(maps.find_name(name, glob=glob)), MAPPINGS[1:2])
            self.assertEqual(list(maps.find_name("/a [!/] b")), [])

    def test_passed_on(self):
        for change in {"build_id": b"abc"}, {"build_id_error": errno.EACCES}:
            mapping = MAPPINGS[1]._replace(**change)
            passed = procmap._reference(mapping)._obj
            self.assertEqual(procmap._copy(ctypes.pointer(passed)), mapping)


class Files(unittest.TestCase):
    """Resolved addresses, and their files."""

    def test_resolve(self):
        with Procmap.from_text(TEXT) as maps:
            first, second, third, memory = maps.resolve([0x2001, 8, 0x2003, 0x1001])
            self.assertEqual(maps.resolve([]), [])
        self.assertEqual(first, (0x2001, MAPPINGS[1], 0xFFFFFFF001))
        self.assertEqual(second, (8, None, 0))
        self.assertIs(third.mapping, first.mapping)
        self.assertEqual(memory, (0x1001, MAPPINGS[0], 0))

    def test_open_file(self):
        address = address_of(LIBC.printf)
        with Procmap() as maps:
            found = maps.find(address)
            self.assertIsNone(found.build_id)
            wanted = maps.find(address, Flag.WANT_BUILD_ID | Flag.WANT_PAGE_SIZE)
            self.assertEqual(wanted.page_size, mmap.PAGESIZE)
            with maps.open_file(found) as file, File(found) as alone:
                for opened in file, alone, File(file.fileno()), File(found, root="/"):
                    self.assertEqual(os.fstat(opened.fileno()).st_ino, found.inode)
                    self.assertEqual(opened.build_id, wanted.build_id)
                    code = list(maps.find_file(opened, Flag.EXECUTABLE))
                    self.assertEqual(code, [found._replace(page_size=code[0].page_size)])
                elf_address = file.mapped_address(found, address)
                self.assertEqual(file.address(found.offset_of(address)), elf_address)
            with self.assertRaises(ValueError):
                file.fileno()
            with self.assertRaises(OSError) as caught:
                maps.open_file(found._replace(inode=0, dev_major=0, dev_minor=0))
            self.assertEqual(caught.exception.errno, errno.ENODEV)
            with File.in_root(maps, found.name) as file:
                self.assertEqual(file.address(found.offset_of(address)), elf_address)
                file.set_begin(0)
                with self.assertRaises(OSError) as caught:
                    file.set_begin(1)
                self.assertEqual(caught.exception.errno, errno.ENOEXEC)
            with self.assertRaises(FileNotFoundError) as caught:
                File.in_root(maps, pathlib.Path("/nosuch"))
            self.assertEqual(caught.exception.filename, "/nosuch")
        with self.assertRaises(OSError) as caught:
            File(found, proc="/nosuch")
        self.assertEqual(caught.exception.errno, errno.ENOENT)
        shown = subprocess.check_output(
            ["readelf", "-W", "-n", "--dyn-syms", found.name], text=True
        )
        self.assertEqual(wanted.build_id.hex(), re.search("Build ID: (.*)", shown)[1])
        symbol = re.search(r"([0-9a-f]+) .* printf@@", shown)
        self.assertEqual(elf_address, int(symbol[1], 16))

    def test_find_file_that_is_not_known(self):
        """The others come first."""
        answers = OSError(errno.EXDEV, "?"), None, FileNotFoundError()
        with Procmap() as maps, maps.open_file(maps.find(address_of(LIBC.printf))) as file, \
                mock.patch.object(procmap, "_find_file", side_effect=answers):
            walk = maps.find_file(file)
            self.assertIsNone(next(walk))
            with self.assertRaises(OSError) as caught:
                next(walk)
        self.assertEqual(caught.exception.errno, errno.EXDEV)


class Cases(unittest.TestCase):
    """What cases.h says of files."""

    IDS = {b"\1" * 20: "one", b"\2" * 20: "two", None: "none"}

    def opened(self, maps, found):
        """The build ID of what opening the mapped file leads to."""
        try:
            with maps.open_file(found) as file:
                return self.IDS[file.build_id]
        except OSError:
            return "unknown"

    def check(self, row, maps, address):
        """Compare the answers with those of the row."""
        _, _, _, _, build_id, deleted, opened = row
        found = maps.find(address, Flag.WANT_BUILD_ID | Flag.WANT_DELETED)
        got = "unknown" if found.build_id_error else self.IDS[found.build_id]
        self.assertIn((build_id, got), {(got, got), ("unknown", "one")})
        state = {Flag(0): "there", Flag.DELETED: "deleted", Flag.UNVERIFIED: "unverified",
                 Flag.DELETED | Flag.REPLACED: "replaced",
                 Flag.DELETED | Flag.UNVERIFIED: "deleted"}
        self.assertEqual(state[found.flags & ~Flag.READABLE], deleted)
        self.assertEqual(self.opened(maps, maps.find(address)), opened)

    @unittest.skipIf(os.geteuid(), "only root can mount a file system")
    def test_each(self):
        for row in hold_case.read_table("CASE_OF"):
            with subprocess.Popen([sys.executable, hold_case.__file__, row[0]], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
                address = holder.stdout.readline()
                for method in Method.ANY, Method.TEXT:
                    with self.subTest(row[0], method=method), Procmap(holder.pid, method) as maps:
                        if "cannot" in address:
                            self.skipTest(address)
                        self.check(row, maps, int(address, 16))
                holder.stdin.close()


class Handles(unittest.TestCase):
    """How they are opened and closed, and their errors."""

    def test_version(self):
        self.assertEqual(procmap.__version__, ".".join(map(str, procmap.version())))

    def test_flags_are_those_of_the_header(self):
        with open(os.path.join(HERE, "..", "procmap.h"), encoding="ascii") as header:
            text = header.read()
        for name, flags in ("open_flags", OpenFlag), ("flags", Flag):
            body = re.search(rf"(?s)\nenum procmap_{name} {{(.*?)\n}};", text)[1]
            values = re.findall(r"\n\tPROCMAP_(\w+)\s*= (0x\w+),", body)
            self.assertEqual(
                {name: int(value, 16) for name, value in values},
                {name: flag.value for name, flag in flags.__members__.items()},
            )
        for bad in 0x80, 2**32:
            with self.assertRaises((OSError, OverflowError)):
                Procmap(flags=bad)

    def test_text(self):
        with open("/proc/self/maps", "rb") as file:
            text = file.read()
        with Procmap.from_text(text) as maps:
            self.assertEqual(maps.method, Method.TEXT)
            self.assertIsNotNone(maps.find(address_of(LIBC.printf)))
        users = sys.getrefcount(text)
        with Procmap.from_text(text):
            self.assertEqual(sys.getrefcount(text), users + 1)
        with self.assertRaises(OSError) as caught:
            Procmap.from_text(b"no maps file\n")
        self.assertEqual(caught.exception.errno, errno.EBADMSG)

    def test_descriptors(self):
        address = address_of(LIBC.printf)
        with open("/proc/self/maps", "rb") as file:
            own = Procmap.from_fd(file.fileno(), Method.TEXT)
        with own as maps:
            self.assertEqual(maps.method, Method.TEXT)
            found = maps.find(address)
            with self.assertRaises(OSError) as caught:
                maps.open_file(found)
            self.assertEqual(caught.exception.errno, errno.ENODEV)
        for opened, function in ((os.open("/proc/self", os.O_PATH), Procmap.from_fd),
                                 (os.pidfd_open(os.getpid()), Procmap.from_pidfd)):
            maps = function(opened)
            os.close(opened)
            with maps, maps.open_file(found) as file:
                self.assertEqual(os.fstat(file.fileno()).st_ino, found.inode)
            with self.assertRaises(OSError) as caught:
                function(opened)
            self.assertEqual(caught.exception.errno, errno.EBADF)

    def test_methods_are_checked(self):
        with Procmap.from_text(TEXT) as maps:
            maps.check_method(Method.TEXT)
            with self.assertRaises(OSError) as caught:
                maps.check_method(Method.QUERY)
            self.assertEqual(caught.exception.errno, errno.ENODEV)

    def test_errors_are_of_their_class(self):
        with self.assertRaises(ProcessLookupError) as caught:
            Procmap(0x7FFFFFFF)
        self.assertIsNone(caught.exception.filename)
        self.assertRegex(str(caught.exception), "procmap_open_pid: No such process")
        with self.assertRaises(OSError) as caught:
            Procmap(0)
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
            maps = Procmap(process.pid, Method.TEXT)
            maps.reopen()
            self.assertEqual(maps.method, Method.TEXT)
        with self.assertRaises(ProcessLookupError):
            maps.find(0)

    def test_procfs_that_is_mounted_elsewhere(self):
        for pid in None, os.getpid():
            with Procmap(pid, proc=pathlib.Path("/proc/self/root/proc")) as maps:
                self.assertIsNotNone(maps.find(address_of(LIBC.printf)))
            with self.assertRaises(FileNotFoundError):
                Procmap(pid, proc="/nonexistent")

    def test_integers_that_do_not_fit(self):
        address = address_of(LIBC.printf)
        with Procmap() as maps, maps.snapshot() as snapshot:
            found = maps.find(address)
            calls = [
                (maps.find, 2**64 + address),
                (maps.find, address - 2**64),
                (maps.find, address, 2**32),
                (maps.find, address, -1),
                (next, maps.mappings(2**32)),
                (next, maps.find_name("*", 2**32, glob=True)),
                (maps.resolve, [address, 2**64 + address]),
                (maps.resolve, [-1]),
                (maps.resolve, [address], 2**32),
                (maps.snapshot, 2**32),
                (snapshot.find, 2**64 + address),
                (File(found).address, 2**64 + found.offset),
                (maps.open_file, found._replace(inode=2**64 + found.inode)),
                (maps.open_file, found._replace(dev_major=2**32 + found.dev_major)),
                (Procmap, 2**32 + os.getpid()),
                (Procmap, os.getpid() - 2**32),
                (Procmap, os.getpid(), 2**32),
                (Procmap, None, 2**32),
            ]
            for function, *arguments in calls:
                with self.subTest(function=function, arguments=arguments):
                    with self.assertRaises(OverflowError):
                        function(*arguments)
            for last in maps.find(2**64 - 1), snapshot.find(2**64 - 1):
                self.assertIsNone(last)

    def test_names_that_do_not_fit(self):
        with Procmap() as maps:
            found = maps.find(address_of(LIBC.printf))
            with self.assertRaises(ValueError):
                next(maps.find_name(found.name + "\0*"))
            with self.assertRaises(ValueError):
                maps.open_file(found._replace(name=found.name + "\0"))

    def test_copies_are_refused(self):
        with Procmap() as maps, maps.snapshot() as snapshot:
            for owner in maps, snapshot:
                for function in copy.copy, copy.deepcopy:
                    with self.assertRaises(TypeError):
                        function(owner)

    def test_closed(self):
        maps = Procmap()
        with maps.snapshot() as snapshot:
            pass
        with self.assertRaises(ValueError):
            snapshot.find(0)
        walk = iter(maps)
        next(walk)
        maps.close()
        maps.close()
        with self.assertRaises(ValueError):
            maps.find(0)
        with self.assertRaises(ValueError):
            next(walk)
        with self.assertRaises(ValueError):
            Snapshot(maps)
        with self.assertRaises(ValueError):
            maps.resolve([])

    def test_files_are_closed(self):
        before = os.listdir("/proc/self/fd")
        for _ in range(10):
            with Procmap() as maps:
                list(maps)
            Procmap()
        self.assertEqual(len(os.listdir("/proc/self/fd")), len(before))


class Snapshots(unittest.TestCase):
    """All mappings, kept and compared."""

    def test_sequence(self):
        with Procmap.from_text(TEXT) as maps:
            snapshot = maps.snapshot()
        self.assertEqual(list(snapshot), MAPPINGS)
        self.assertEqual(len(snapshot), 3)
        self.assertEqual(snapshot.find(0x2000), MAPPINGS[1])
        self.assertIsNone(snapshot.find(8))
        self.assertEqual(snapshot[-1], MAPPINGS[-1])
        for index in 3, -4, 2**64, -2**64:
            with self.assertRaises(IndexError):
                snapshot[index]
        self.assertIsInstance(snapshot, collections.abc.Sequence)
        for part in (slice(None), slice(2), slice(-2, None), slice(None, None, -2),
                     slice(1, 2**70), slice(5, 2)):
            self.assertEqual(snapshot[part], MAPPINGS[part])
        with self.assertRaises(TypeError):
            snapshot[1.0]
        self.assertIs(snapshot.is_consistent, False)

    def test_compare(self):
        line = TEXT[:TEXT.index(b"\n") + 1]
        with Procmap.from_text(TEXT) as maps, Procmap.from_text(line) as fewer:
            before, after = fewer.snapshot(), maps.snapshot()
            self.assertEqual(before.compare(after), [(None, m) for m in MAPPINGS[1:]])
            self.assertEqual(after.compare(before), [(m, None) for m in MAPPINGS[1:]])
            for error in KeyboardInterrupt, MemoryError:
                with mock.patch("procmap._copy", side_effect=error) as copied:
                    with self.assertRaises(error):
                        before.compare(after)
                copied.assert_called_once()
            self.assertIs(before.refresh(maps), True)
            self.assertEqual(before.compare(after), [])


class Threads(unittest.TestCase):
    """Objects that threads share."""

    def setUp(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)

    def run_at_once(self, *functions):
        """Run each in a thread of its own. What one raises is raised here."""
        with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
            for future in [pool.submit(function) for function in functions]:
                future.result()

    def test_answers_are_those_of_one(self):
        with Procmap.from_text(TEXT) as maps:
            snapshot, other = maps.snapshot(), maps.snapshot()

            def look_up():
                for mapping in MAPPINGS * 300:
                    self.assertEqual(maps.find(mapping.start), mapping)

            def walk():
                for _ in range(500):
                    self.assertEqual(list(maps), MAPPINGS)
                    resolved = maps.resolve([mapping.start for mapping in MAPPINGS])
                    self.assertEqual([where.mapping for where in resolved], MAPPINGS)

            def refresh(one, another):
                for _ in range(100):
                    self.assertIs(one.refresh(maps), False)
                    self.assertEqual(one.compare(another), [])

            self.run_at_once(
                look_up, look_up, walk, walk,
                functools.partial(refresh, snapshot, other),
                functools.partial(refresh, other, snapshot),
            )

    def test_closed_by_another(self):
        for _ in range(20):
            maps = Procmap()
            found = maps.find(address_of(LIBC.printf))
            for shared, use in (
                (maps.snapshot(), lambda snapshot: snapshot[:]),
                (File(found), lambda file: file.address(found.offset)),
                (maps, lambda handle: handle.find(found.start)),
            ):
                def use_until_closed(shared=shared, use=use):
                    with self.assertRaises(ValueError):
                        while True:
                            use(shared)

                self.run_at_once(use_until_closed, use_until_closed, shared.close)

    def test_interrupted_by_itself(self):
        address = address_of(LIBC.printf)
        with Procmap() as maps, maps.snapshot() as snapshot:
            for shared in maps, snapshot:
                for function, *arguments in (shared.find, address), (shared.close,):
                    with mock.patch("procmap._copy", lambda _: function(*arguments)):
                        with self.assertRaises(RuntimeError):
                            shared.find(address)
                self.assertEqual(shared.find(address).offset_of(address),
                                 snapshot.find(address).offset_of(address))


if __name__ == "__main__":
    unittest.main()
