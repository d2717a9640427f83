#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procmap.py. The results are compared with /proc/self/maps and readelf.

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
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

import procmap  # noqa: E402	found in the path above
from procmap import File, Flag, Method, Procmap, Snapshot  # noqa: E402

LIBC = ctypes.CDLL(None)
LINE = re.compile(
    r"([0-9a-f]+)-([0-9a-f]+) (....) ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)\n"
)


def address_of(function):
    """Where a function of a C library is."""
    return ctypes.cast(function, ctypes.c_void_p).value


def text_of(pid="self"):
    """The mappings by the text: start, end, permissions, offset, device, inode, name."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            start, end, perms, offset, major, minor, inode, name = LINE.fullmatch(
                line
            ).groups()
            if name != "[vsyscall]":
                yield (int(start, 16), int(end, 16), perms, int(offset, 16),
                       int(major, 16), int(minor, 16), int(inode), name)


def fields(mapping):
    """The same of a mapping."""
    perms = "".join(
        letter if flag in mapping.flags else "-"
        for letter, flag in (("r", Flag.READABLE), ("w", Flag.WRITABLE),
                             ("x", Flag.EXECUTABLE))
    )
    return (mapping.start, mapping.end,
            perms + ("s" if Flag.SHARED in mapping.flags else "p"), mapping.offset,
            mapping.dev_major, mapping.dev_minor, mapping.inode, mapping.name)


class Child:
    """A process that waits, so that its mappings do not change."""

    def __enter__(self):
        self.process = subprocess.Popen(
            ["cat"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.process.stdin.write(b"it runs")
        self.process.stdout.read(1)
        return self.process.pid

    def __exit__(self, *_exception):
        self.process.communicate()


class Lookup(unittest.TestCase):
    """Single mappings, and walks over them."""

    def test_answers_are_those_of_the_text(self):
        with Child() as pid:
            lines = list(text_of(pid))
            with Procmap(pid, Method.TEXT) as maps:
                maps.reopen()
                self.assertEqual(maps.method, Method.TEXT)
                self.assertEqual([fields(m) for m in maps], lines)
                self.assertEqual(
                    [fields(m) for m in maps.mappings(Flag.EXECUTABLE)],
                    [line for line in lines if line[2][2] == "x"],
                )
                for line in lines:
                    self.assertEqual(fields(maps.find(line[1] - 1)), line)
                self.assertIsNone(maps.find(8))

    def test_names(self):
        name = os.fsencode(tempfile.gettempdir()) + b"/procmap \xff name"
        with open(name, "w+b") as file:
            try:
                file.truncate(4096)
                with mmap.mmap(file.fileno(), 4096), Procmap() as maps:
                    found = list(maps.find_name(name))
                    self.assertEqual([os.fsencode(m.name) for m in found], [name])
                    self.assertEqual(
                        list(maps.find_name("*/procmap ? name", glob=True)), found
                    )
            finally:
                os.unlink(name)

    def test_build_id(self):
        address = address_of(LIBC.printf)
        with Procmap() as maps:
            found = maps.find(address, Flag.WANT_BUILD_ID | Flag.WANT_PAGE_SIZE)
            self.assertEqual(found.page_size, mmap.PAGESIZE)
            notes = subprocess.check_output(["readelf", "-n", found.name], text=True)
            self.assertEqual(found.build_id.hex(), re.search("Build ID: (.*)", notes)[1])
            self.assertIsNone(maps.find(address).build_id)

    def test_error_of_a_build_id(self):
        with Procmap() as maps:
            found = maps.find(address_of(LIBC.printf), Flag.WANT_BUILD_ID)
        failed = found._replace(build_id=None, build_id_error=errno.EACCES)
        for mapping in found, failed:
            passed = procmap._reference(mapping)._obj
            self.assertEqual(procmap._copy(ctypes.pointer(passed)), mapping)


class Files(unittest.TestCase):
    """Resolved addresses, and their files."""

    def test_resolve(self):
        addresses = [address_of(LIBC.printf), 8, address_of(LIBC.printf) + 1]
        with Procmap() as maps:
            first, second, third = maps.resolve(addresses)
            self.assertEqual(maps.resolve([]), [])
        self.assertEqual((second.mapping, second.offset), (None, 0))
        self.assertEqual(third.offset, first.offset + 1)
        self.assertIs(third.mapping, first.mapping)
        self.assertEqual(first.offset, first.mapping.offset_of(addresses[0]))

    def test_elf_address_is_that_of_the_symbol(self):
        with Procmap() as maps:
            [where] = maps.resolve([address_of(LIBC.printf)])
            with maps.open_file(where.mapping) as file:
                address = file.mapped_address(where.mapping, where.address)
                self.assertEqual(file.address(where.offset), address)
        symbols = subprocess.check_output(
            ["readelf", "-W", "--dyn-syms", where.mapping.name], text=True
        )
        self.assertEqual(
            address, int(re.search(r"([0-9a-f]+) .* printf@@", symbols)[1], 16)
        )

    def test_open_file(self):
        with Procmap() as maps:
            found = maps.find(address_of(LIBC.printf))
            build_id = maps.find(found.start, Flag.WANT_BUILD_ID).build_id
            with maps.open_file(found) as file, File(found) as alone:
                for opened in file, alone, File(file.fileno()), File(found, root="/"):
                    self.assertEqual(os.fstat(opened.fileno()).st_ino, found.inode)
                    self.assertEqual(opened.build_id, build_id)
            with self.assertRaises(ValueError):
                file.fileno()
            with self.assertRaises(OSError) as caught:
                maps.open_file(found._replace(inode=0, dev_major=0, dev_minor=0))
            self.assertEqual(caught.exception.errno, errno.ENODEV)
        with self.assertRaises(OSError) as caught:
            File(found, proc="/nosuch")
        self.assertEqual(caught.exception.errno, errno.ENOENT)


class Handles(unittest.TestCase):
    """How they are opened and closed, and their errors."""

    def test_version(self):
        self.assertEqual(procmap.version()[0], 1)

    def test_flags_are_those_of_the_header(self):
        with open(os.path.join(HERE, "..", "procmap.h"), encoding="ascii") as header:
            flags = re.findall(r"^\tPROCMAP_(\w+)\s*= (0x\w+),", header.read(), re.M)
        self.assertEqual(
            {name: int(value, 16) for name, value in flags},
            {name: flag.value for name, flag in Flag.__members__.items()},
        )

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

    def test_errors_are_of_their_class(self):
        with self.assertRaises(ProcessLookupError):
            Procmap(0x7FFFFFFF)
        with self.assertRaises(OSError) as caught:
            Procmap(0)
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        with Child() as pid:
            maps = Procmap(pid)
        with self.assertRaises(ProcessLookupError):
            maps.find(0)

    def test_procfs_that_is_mounted_elsewhere(self):
        for pid in None, os.getpid():
            with Procmap(pid, proc=pathlib.Path("/proc/self/root/proc")) as maps:
                self.assertEqual(fields(maps.find(address_of(LIBC.printf))),
                                 fields(Procmap().find(address_of(LIBC.printf))))
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
        with Child() as pid:
            with Procmap(pid) as maps:
                snapshot = maps.snapshot()
            lines = list(text_of(pid))
        self.assertEqual([fields(m) for m in snapshot], lines)
        self.assertEqual(len(snapshot), len(lines))
        for line in lines:
            self.assertEqual(fields(snapshot.find(line[0])), line)
        self.assertIsNone(snapshot.find(8))
        self.assertEqual(fields(snapshot[-1]), lines[-1])
        for index in len(lines), -len(lines) - 1, 2**64, -2**64:
            with self.assertRaises(IndexError):
                snapshot[index]
        self.assertIsInstance(snapshot, collections.abc.Sequence)
        for part in (slice(None), slice(2), slice(-2, None), slice(None, None, -2),
                     slice(1, 2**70), slice(5, 2)):
            self.assertEqual([fields(m) for m in snapshot[part]], lines[part])
        with self.assertRaises(TypeError):
            snapshot[1.0]
        self.assertIn(snapshot.is_consistent, (False, True))

    def test_compare(self):
        with open(sys.executable, "rb") as file, Procmap() as maps:
            before = maps.snapshot(Flag.SHARED)
            with mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as mapped:
                after = maps.snapshot(Flag.SHARED)
                [(was, now)] = before.compare(after)
                self.assertIsNone(was)
                self.assertEqual(now.inode, os.fstat(file.fileno()).st_ino)
                self.assertEqual(after.compare(before), [(now, None)])
                self.assertTrue(before.refresh(maps))
                self.assertEqual(before.compare(after), [])
                self.assertEqual(len(mapped), 4096)

    def test_compare_ends_at_an_exception(self):
        with Procmap() as maps, Child() as pid, Procmap(pid) as others:
            with maps.snapshot() as before, others.snapshot() as after:
                self.assertGreater(len(before.compare(after)), 1)
                for error in KeyboardInterrupt, MemoryError:
                    with mock.patch("procmap._copy", side_effect=error) as copied:
                        with self.assertRaises(error):
                            before.compare(after)
                    copied.assert_called_once()


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

    def test_answers_are_those_of_the_text(self):
        with Child() as pid, Procmap(pid) as maps:
            lines = list(text_of(pid))
            starts = [line[0] for line in lines]
            snapshot, other = maps.snapshot(), maps.snapshot()

            def look_up(line):
                for _ in range(1000):
                    self.assertEqual(fields(maps.find(line[0])), line)

            def walk():
                for _ in range(20):
                    self.assertEqual([fields(m) for m in maps], lines)
                    resolved = maps.resolve(starts)
                    self.assertEqual([fields(r.mapping) for r in resolved], lines)

            def refresh(one, another):
                for _ in range(100):
                    self.assertFalse(one.refresh(maps))
                    self.assertEqual(one.compare(another), [])

            self.run_at_once(
                *[functools.partial(look_up, line) for line in lines[:4]],
                walk, walk, functools.partial(refresh, snapshot, other),
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
