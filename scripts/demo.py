#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""In the guest of scripts/demo: resolve addresses by query and by text, and compare.

demo.py TOOL prints where the results differ, and the time of both in microseconds.
"""
import json
import platform
import subprocess
import sys

RUNS = 50

# Map libraries, and so much memory more, and wait for the end of stdin.
TARGET = """
import bz2, ctypes, curses, decimal, lzma, mmap, readline, socket, sqlite3, ssl, sys, zlib
kept = [mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | (i % 2 and mmap.PROT_WRITE))
        for i in range(int(sys.argv[1]))]
print(flush=True)
sys.stdin.read()
"""


class Target:
    """A process to look at."""

    def __init__(self, nr_more):
        self.process = subprocess.Popen([sys.executable, "-c", TARGET, str(nr_more)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        with open(f"/proc/{self.process.pid}/maps") as maps:
            lines = [line.split() for line in maps]
        self.nr_mappings = len(lines)
        # The guest's root is an overlayfs. By the text, the file of data that was written
        # to is not known there, and so its build ID: addresses of code only.
        code = [[int(x, 16) for x in line[0].split("-")]
                for line in lines if "x" in line[1] and line[-1][0] == "/"]
        self.addresses = [f"{start + i * 7919 % (end - start):x}"
                          for i, (start, end) in enumerate(code * 300)][:300]

    def command(self, *arguments):
        return [sys.argv[1], "-p", str(self.process.pid), *arguments]

    def bench(self, what, *arguments):
        """Print a row: the medians of the query and of the text, and their ratio."""
        output = subprocess.check_output(self.command("--bench", str(RUNS), "--json",
                                                      *arguments))
        times = json.loads(output)["bench"]
        query, text = (times[method]["median_us"] for method in ("query", "text"))
        print(f"{what:<48}{query:>10.1f}{text:>10.1f}{text / query:>8.1f}", flush=True)


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
    target.process.communicate()
