#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Print where the interpreter is: file and ELF address of each native frame.

If addr2line is installed, it also prints their functions and lines, as far as the
files have debug information.
"""
import ctypes
import shutil
import subprocess

import procmap


def backtrace():
    """The return addresses of the calls that led here, by backtrace(3)."""
    frames = (ctypes.c_void_p * 64)()
    number = ctypes.CDLL(None).backtrace(frames, len(frames))
    return frames[:number]


def describe(maps, location):
    """A line on an address."""
    if location.mapping is None:
        return f"{location.address:#x}"
    name = location.mapping.name
    try:
        with maps.open_file(location.mapping) as file:
            address = file.mapped_address(location.mapping, location.address)
    except OSError as error:
        return f"{name} offset {location.offset:#x}: {error.strerror}"
    line = f"{name} {address:#x}"
    if shutil.which("addr2line"):
        output = subprocess.run(
            ["addr2line", "-Cfpe", name, f"{address:#x}"],
            capture_output=True, text=True, check=False,
        )
        line += " " + output.stdout.strip()
    return line


# A return address may be that of the next function or line; the call is before it.
with procmap.Procmap() as own:
    for where in own.resolve(address - 1 for address in backtrace()):
        print(describe(own, where))
