#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Make a case of cases.h and hold it, for a test in another language.

Usage: hold_case.py NAME

It prints the address of the mapping, or a line that says why it cannot be made, and stays until
its input ends. The build IDs of the files one and two are 20 bytes of 1, or of 2.
"""
import ast
import ctypes
import mmap
import os
import re
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, PRIVATE = 0x20000, 0x44000


def read_table(macro):
    """The strings of each line of the table that begins with this macro."""
    with open(f"{os.path.dirname(os.path.realpath(__file__))}/cases.h", encoding="ascii") as file:
        return [ast.literal_eval(f"({row},)")
                for row in re.findall(rf'(?ms)^{macro}\((".*?")\)$', file.read())]


def write_files():
    """The files that the commands take."""
    for name, byte in ("one", b"\1"), ("two", b"\2"):
        header = struct.pack("<7s9xHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, 0, 0,
                             64, 56, 1, 0, 0, 0)
        segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 120, 120, 36, 36, 4)
        note = struct.pack("<III4s", 4, 20, 3, b"GNU") + byte * 20
        with open(name, "wb") as file:
            file.write((header + segment + note).ljust(4 * mmap.PAGESIZE, b"\0"))
    with open("plain", "wb") as file:
        file.write(b"a" * 3 * mmap.PAGESIZE)


def run(command):
    """Run a command behind the script."""
    script = "\n".join(line for (line,) in read_table("SETUP"))
    return subprocess.run(["sh", "-c", f"{script}\n{command}"], check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


def map_file(path):
    """Map a page of the file, or if it has no slash, of a memfd like it."""
    with open(path, "rb") as file:
        fd = file.fileno()
        if "/" not in path:
            size, blocks = os.stat(fd).st_size, os.stat(fd).st_blocks
            fd = os.memfd_create("case")
            os.ftruncate(fd, size)
            if blocks:
                os.pwrite(fd, file.read(), 0)
        LIBC.mmap.restype = ctypes.c_void_p
        return LIBC.mmap(None, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ,
                         mmap.MAP_PRIVATE, fd, ctypes.c_long(0))


def make(name):
    """Make the case; return the address of the mapping, or None."""
    (_, before, path, since, *_), = (row for row in read_table("CASE_OF") if row[0] == name)
    if LIBC.unshare(NEW_MOUNTS) or LIBC.mount(None, b"/", None, ctypes.c_ulong(PRIVATE), None):
        return None
    if LIBC.mount(b"none", b"/tmp", b"tmpfs", ctypes.c_ulong(0), None):
        return None
    os.chdir("/tmp")
    write_files()
    if not run(before):
        return None
    address = map_file(path)
    return address if run(since) else None


if __name__ == "__main__":
    found = make(sys.argv[1])
    print(f"{found:x}" if found else "cannot be made here", flush=True)
    sys.stdin.read()
