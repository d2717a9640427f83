#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""In the guest of scripts/run: resolve addresses by query and by text, and compare.

run.py TOOL prints where the results differ, and the time of both in microseconds.
"""
import json
import mmap
import os
import platform
import subprocess
import sys

RUNS = 50
MODULES = "ssl sqlite3 ctypes decimal lzma bz2 zlib curses readline socket".split()


def file_mappings():
    """The (start, end) of each mapping of code.

    The guest's root is an overlayfs. By the text, the file of data that was written to is
    not known there, and so its build ID.
    """
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    return [tuple(int(x, 16) for x in line[0].split("-"))
            for line in lines if len(line) > 5 and line[5][0] == "/" and "x" in line[1]]


def load_modules():
    for name in MODULES:
        try:
            __import__(name)
        except ImportError:
            pass


def be_target(nr_mappings):
    """Map at least so many, print addresses, and wait for the end of stdin."""
    load_modules()
    kept = [mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | (i % 2 and mmap.PROT_WRITE))
            for i in range(nr_mappings)]
    mappings = file_mappings()
    with open("/proc/self/maps") as maps:
        nr = len(maps.readlines())
    addresses = []
    for i in range(300):
        start, end = mappings[i % len(mappings)]
        addresses.append(f"{start + i * 7919 % (end - start):x}")
    print(nr, *addresses, flush=True)
    sys.stdin.read()
    del kept


class Target:
    """A process to look at."""

    def __init__(self, nr_mappings):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "target", str(nr_mappings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        nr, *self.addresses = self.process.stdout.readline().split()
        self.nr_mappings = int(nr)

    def command(self, *arguments):
        return [TOOL, "-p", str(self.process.pid), *arguments]

    def bench(self, what, *arguments):
        """Print a row: the medians of the query and of the text, and their ratio."""
        output = subprocess.run(self.command("--bench", str(RUNS), "--json", *arguments),
                                check=True, stdout=subprocess.PIPE).stdout
        times = json.loads(output)["bench"]
        print_row(what, times["query"]["median_us"], times["text"]["median_us"])


def print_row(what, query, text):
    print(f"{what:<48}{query:>10.1f}{text:>10.1f}{text / query:>8.1f}", flush=True)


def main():
    python = Target(0)
    large = Target(2000 - python.nr_mappings)
    print(f"Linux {platform.release()}, Python {platform.python_version()}\n", flush=True)
    answers = [subprocess.check_output(python.command("-B", method, *python.addresses))
               for method in ("--query", "--text")]
    if answers[0] != answers[1]:
        sys.exit("query and text have different answers")
    print(f"{len(python.addresses)} addresses: the same answers by query and text")

    print(f"\n{'microseconds':<48}{'query':>10}{'text':>10}{'ratio':>8}")
    python.bench(f"one address, {python.nr_mappings} mappings", python.addresses[0])
    python.bench("ten addresses", *python.addresses[:10])
    stack = large.addresses[::10]
    large.bench(f"a stack of 30 frames, {large.nr_mappings} mappings", *stack)
    large.bench("  with build IDs", "-B", *stack)
    python.bench(f"all {python.nr_mappings} mappings", "--list")

    for target in (python, large):
        target.process.stdin.close()
        target.process.wait()


if sys.argv[1] == "target":
    be_target(int(sys.argv[2]))
else:
    TOOL = os.path.realpath(sys.argv[1])
    main()
