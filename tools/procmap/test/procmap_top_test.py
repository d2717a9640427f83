#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procmap-top: its samples, their sums, its options and messages.

Usage: procmap_top_test.py [TOOL]; without TOOL it is the program beside this
file, or beside the link by which it was run.

The truth is what procmap_top_load logs of itself, binutils, and perf. Results are
TAP 13 on standard output; the exit status is 1 if a test failed. On slow machines,
set PROCMAP_TEST_ROUNDS, PROCMAP_TEST_SPIN (us that each round takes at least) and
PROCMAP_TEST_FREQUENCY (samples per second).
"""

import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import typing
import unittest
from subprocess import DEVNULL, PIPE

import procfs_query_test as common
from procfs_query_test import as_text, lines_of, needs, needs_root, running

HERE = os.path.dirname(os.path.realpath(__file__))

ROUNDS = int(os.environ.get("PROCMAP_TEST_ROUNDS", "1000"))
SPIN = os.environ.get("PROCMAP_TEST_SPIN", "5000")
FREQUENCY = os.environ.get("PROCMAP_TEST_FREQUENCY", "499")

# The stacks of the load are small. The less is copied of them, the less is lost.
STACK = "2048"

FOREVER = str(10**9)

LIBRARIES = range(1, 6)
FLAGS = ["-D_GNU_SOURCE", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread",
         "-Wl,--build-id"]

# The size of the anonymous code that spins.
CODE_SIZE = 256


def anyone_may_sample_all():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        return int(file.read()) < 1


class Elf:
    """What binutils say of a file: its build ID; size and file offset of functions."""

    def __init__(self, path):
        self.build_id = common.build_id_of(path)
        segments = [[int(field, 16) for field in fields] for fields in re.findall(
            r"LOAD +(\w+) (\w+) \w+ (\w+) ",
            subprocess.check_output(["readelf", "-lW", path], text=True))]
        self.functions = {}
        for name, value, size in re.findall(
                r"^(\w+) [tT] (\w+) (\w+)$", subprocess.check_output(
                    ["nm", "-P", "-S", "--defined-only", path], text=True), re.M):
            self.functions[name] = int(size, 16), next(
                int(value, 16) - start + offset for offset, start, length in segments
                if start <= int(value, 16) < start + length)


class Spell(typing.NamedTuple):
    """A function spun for a while: a line of the log."""
    pid: int
    tid: int
    start: int
    end: int
    comm: str
    leaf: int
    file: str
    chain: list

    @classmethod
    def parse(cls, line):
        pid, tid, start, end, comm, leaf, file, chain = line.split("\t")
        return cls(int(pid), int(tid), int(start), int(end), comm, int(leaf, 16), file,
                   chain.split(" "))


def kinds(spells):
    """What is different in the rounds: the name of the process, and who calls."""
    return {(spell.comm, *spell.chain[3:]) for spell in spells}


def is_sampling(pid):
    """Whether a process has events of perf_event_open(2)."""
    try:
        return any("perf_event" in os.readlink(fd)
                   for fd in glob.glob(f"/proc/{pid}/fd/*"))
    except FileNotFoundError:
        return False


def path_in(frame):
    """The path of a mapped file, which may have been deleted since."""
    return frame["file"] and frame["file"].removesuffix(" (deleted)")


def key_of(frame):
    return frame["function"], frame["file"], frame["offset"], frame["build_id"]


@unittest.skipUnless(common.COMPILER, "no C compiler")
class ProcmapTopTest(unittest.TestCase):
    """A method test_NAME is the test NAME."""

    wait_until = common.ProcfsQueryTest.wait_until

    @classmethod
    def setUpClass(cls):
        signal.alarm(common.LIMIT)
        # Every user may run the programs in it.
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.tmp = os.path.realpath(directory.name)
        os.chmod(cls.tmp, 0o755)
        cls.tool = shutil.copy(TOOL, f"{cls.tmp}/procmap-top")
        cls.compile(cls.tmp)

    @classmethod
    def compile(cls, directory, *flags):
        """Compile the load and its libraries."""
        argv = [common.COMPILER, *FLAGS, *flags, f"{HERE}/procmap_top_load.c", "-o"]
        cls.load = f"{directory}/load"
        subprocess.check_call([*argv, cls.load])
        cls.elf = {"load": Elf(cls.load)}
        for number in LIBRARIES:
            path = f"{directory}/libspin{number}.so"
            subprocess.check_call([*argv, path, f"-DNUMBER={number}", "-shared", "-fPIC"])
            cls.elf[str(number)] = Elf(path)

    def setUp(self):
        signal.alarm(common.LIMIT)
        self.addCleanup(signal.alarm, 0)
        self.addCleanup(self.stop_loads)
        self.log = f"{self.tmp}/{self.id()}.log"

    def stop_loads(self):
        for pid in running(self.load):
            os.kill(pid, signal.SIGKILL)

    def start(self, *argv, stdin=DEVNULL, **popen):
        """Start a program. It writes to files, so that it never waits for us."""
        self.last_run = argv
        files = [tempfile.TemporaryFile() for _ in range(2)]
        child = subprocess.Popen(argv, stdin=stdin, stdout=files[0], stderr=files[1],
                                 **popen)
        child.files = files
        for cleanup in files[0].close, files[1].close, child.wait, child.kill:
            self.addCleanup(cleanup)
        return child

    def finish(self, child, status=0):
        """Await the end of a program; return its output and its messages."""
        if child.stdin:
            child.stdin.close()
        child.wait()
        for file in child.files:
            file.seek(0)
        out, said = (as_text(file.read()) for file in child.files)
        self.assertEqual(child.returncode, status, said)
        return out, said

    def start_tool(self, *args, **popen):
        return self.start(self.tool, "-F", FREQUENCY, "--stack-size", STACK, *args,
                          **popen)

    def run_tool(self, *args):
        return self.finish(self.start_tool(*args))[0]

    def load_argv(self, *kind, rounds=ROUNDS, spin=SPIN):
        return [self.load, self.log, os.path.dirname(self.load), str(rounds), spin, *kind]

    def spells(self):
        with open(self.log, encoding="ascii") as file:
            return [Spell.parse(line) for line in lines_of(file.read())]

    def elf_of(self, function):
        """The file that has a function, by its name."""
        return self.elf.get(function[-1], self.elf["load"])

    def check_stack(self, spell, frames, program):
        """Compare a stack with what ran, and with binutils."""
        self.assertEqual([(frame["function"], path_in(frame), frame["build_id"])
                          for frame in frames[:len(spell.chain)]],
                         [(name, spell.file if name[-1] in self.elf else program,
                           self.elf_of(name).build_id) for name in spell.chain])
        within = []
        for name, frame in zip(spell.chain, frames):
            size, start = self.elf_of(name).functions[name]
            within.append(int(frame["offset"], 16) - start)
            # It returns to the instruction after a call.
            self.assertTrue(0 <= within[-1] <= size, frame)
        self.assertEqual(within[0], int(frames[0]["address"], 16) - spell.leaf)

    def check_samples(self, out, spells, program=None):
        """Check each sample in a function that spun; return those that were hit.

        Whether it is in the function or in the clock that is read around it, shows the
        address. A library that was replaced may be gone: its functions may be without a
        name, but not with another one. Of program, if given, all files are still there.
        """
        of_thread = collections.defaultdict(list)
        for spell in spells:
            of_thread[spell.pid, spell.tid].append(spell)
        hit, wrong, others = [], [], 0
        for sample in map(json.loads, lines_of(out)):
            frames = sample["frames"]
            for spell in of_thread.get((sample["pid"], sample["tid"]), ()):
                if spell.start <= int(sample["time"]) <= spell.end:
                    break
            else:
                continue
            leaf = spell.chain[0]
            size = CODE_SIZE if leaf == "-" else self.elf_of(leaf).functions[leaf][0]
            if not spell.leaf <= int(frames[0]["address"], 16) < spell.leaf + size:
                others += 1
                continue
            hit.append(spell)
            if not program and "/swapped" in spell.file and not frames[0]["function"]:
                continue
            try:
                self.assertEqual(sample["comm"], spell.comm)
                if leaf == "-":
                    self.assertEqual(key_of(frames[0]), (None, None, None, None))
                else:
                    self.check_stack(spell, frames, program or self.load)
            except AssertionError as error:
                wrong.append(f"{spell}\n{sample}\n{error}")
        if wrong:
            self.fail(f"{len(wrong)} of {len(hit)} samples are wrong, as {wrong[0]}")
        self.assertLess(others, len(hit))
        return hit

    def check_most(self, out, spells):
        """Check samples; many of the spells have to be hit."""
        hit = self.check_samples(out, spells)
        self.assertGreater(len({(spell.tid, spell.start) for spell in hit}),
                           len(spells) / 4)
        return hit

    @needs_root
    def test_samples_of_the_machine(self):
        # It has to keep up with whatever else runs here.
        tool = self.start("nice", "-n", "-20", self.tool, "-a", "-F", FREQUENCY,
                          "--stack-size", STACK, "--samples")
        self.wait_until(lambda: tool.poll() is not None or is_sampling(tool.pid))
        self.finish(self.start(*self.load_argv()))
        tool.send_signal(signal.SIGINT)
        self.check_most(self.finish(tool)[0], self.spells())

    def test_samples_of_a_command(self):
        out = self.run_tool("--samples", *self.load_argv())
        spells = self.spells()
        hit = self.check_most(out, spells)
        # A file may be older than the boot.
        self.assertIn('"function": "__libc_start_main', out)
        # The load is what it has to be, and other code takes the place of some.
        self.assertGreaterEqual(len(spells), ROUNDS)
        self.assertLessEqual(kinds(spells), kinds(hit))
        places = collections.defaultdict(set)
        for spell in spells:
            places[spell.pid, spell.leaf >> 12].add(spell.chain[0])
        self.assertGreater(max(map(len, places.values())), 1)

    def test_samples_of_a_process_until_its_end(self):
        load = self.start(*self.load_argv(), stdin=PIPE)
        tool = self.start_tool("-p", str(load.pid), "--samples")
        self.wait_until(lambda: tool.poll() is not None or is_sampling(tool.pid))
        self.finish(load)
        out = self.finish(tool)[0]
        self.check_samples(out, self.spells())
        self.check_most(out, [spell for spell in self.spells() if spell.pid == load.pid])

    def run_while_stopped(self, kind, rounds=4):
        """The samples of a load that has exited before the tool has seen any."""
        tool = self.start_tool("--samples", *self.load_argv(kind, rounds=rounds),
                               stdin=PIPE)
        self.wait_until(lambda: os.path.exists(self.log))
        tool.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, tool.pid, os.WSTOPPED | os.WEXITED)
        tool.stdin.close()
        self.wait_until(lambda: len(self.spells()) == rounds and not running(self.load))
        tool.send_signal(signal.SIGCONT)
        return self.finish(tool)[0]

    def test_names_from_events_alone(self):
        self.check_most(self.run_while_stopped("executed"), self.spells())

    def test_no_name_from_another_file_at_the_path(self):
        self.check_most(self.run_while_stopped("replaced"), self.spells())

    def test_replaced_program_and_library(self):
        program = shutil.copy(self.load, f"{self.tmp}/program")
        argv = self.load_argv("replaced", rounds=1, spin=FOREVER)
        load = self.start(program, *argv[1:])
        path = f"{self.tmp}/swapped{load.pid}.so"
        self.wait_until(lambda: any(vma.name == f"{path} (deleted)"
                                    for vma in common.maps(load.pid)))
        os.replace(shutil.copy(f"{self.tmp}/libspin5.so", f"{self.tmp}/new"), program)
        # A file that is hardly older than a sample may not be the one that was mapped.
        time.sleep(0.1)
        code = common.find(load.pid, "r-xp", path)
        leaf = self.elf["1"].functions["spin_1"][1] - code.offset + code.start
        spell = Spell(load.pid, load.pid, 0, 1 << 64, "program", leaf, path,
                      ["spin_1", "entry_1", "enter", "replaced", "main"])
        out = self.run_tool("-p", str(load.pid), "-d", "1", "--samples")
        self.assertTrue(self.check_samples(out, [spell], program))

    @needs_root
    def test_files_of_others_are_not_read(self):
        load = shutil.copy(self.load, f"{self.tmp}/theirs")
        os.chown(load, 65534, 65534)
        time.sleep(0.1)
        argv = [load, *self.load_argv("in_place", rounds=20)[1:]]
        read = []
        for options in [], ["-f"]:
            out, said = self.finish(self.start_tool(*options, "--json", *argv))
            read.append(any(function["function"] == "main" and function["file"] == load
                            for function in json.loads(out)["functions"]))
            self.assertEqual("use -f if you trust them" in said, not options, said)
        self.assertEqual(read, [False, True])

    def test_32_bit(self):
        directory = f"{self.tmp}/32"
        os.mkdir(directory)
        for name in "load", "elf":
            self.addCleanup(setattr, type(self), name, getattr(self, name))
        self.addCleanup(self.stop_loads)
        try:
            self.compile(directory, "-m32")
        except subprocess.CalledProcessError:
            self.skipTest("no 32-bit compiler")
        out = self.run_tool("--samples", *self.load_argv("in_place", rounds=20))
        self.check_most(out, [spell._replace(chain=spell.chain[:1])
                              for spell in self.spells()])

    @needs("perf")
    def test_modules_are_those_of_perf(self):
        data = f"{self.tmp}/perf.data"
        perf = ["perf", "record", "-q", "-N", "-B", "-o", data, "-e", "cpu-clock:u", "-F",
                FREQUENCY, "--call-graph", f"dwarf,{STACK}", "-k", "CLOCK_MONOTONIC"]
        if subprocess.run([*perf, "true"], check=False, stderr=DEVNULL).returncode:
            self.skipTest("perf does not record")
        out = self.finish(self.start(*perf, self.tool, "-F", FREQUENCY, "--stack-size",
                                     STACK, "--samples",
                                     *self.load_argv(rounds=ROUNDS // 5)))[0]
        pids = {spell.pid for spell in self.spells()}
        ours, theirs = collections.Counter(), collections.Counter()
        for sample in map(json.loads, lines_of(out)):
            if sample["pid"] in pids:
                ours.update({path_in(frame) for frame in sample["frames"]})
        # It crashes if the events of the tool have changed what its own say.
        script = self.finish(self.start("perf", "script", "-i", data, "--no-inline", "-F",
                                        "pid,ip,sym,dso"))[0]
        for sample in script.strip().split("\n\n"):
            pid, *frames = sample.split("\n")
            if int(pid) in pids:
                theirs.update({re.search(r"\(([^(]*)( \(deleted\))?\)$", frame)[1]
                               for frame in frames})
        # Each takes samples of its own: what is rare may be in those of one only. Where
        # one expects ten, the other has none once in 20,000 times.
        limit = max(10, *(count / 100 for count in ours.values()))
        for seen, other in (ours, theirs), (theirs, ours):
            # Perf names code without a file, too.
            often = {path for path, count in seen.items() if count > limit
                     and path and re.match(r"/(?!tmp/perf-\d|/anon)", path)}
            self.assertTrue(often)
            self.assertLessEqual(often, set(other))

    def test_folded(self):
        out = self.run_tool("--folded", *self.load_argv("in_place", rounds=50))
        self.assertRegex(out, r"\A([^;\n]+(;[^;\n]+)+ [1-9]\d*\n)+\Z")
        stacks = [line.rpartition(" ")[::2] for line in lines_of(out)]
        self.assertEqual(len(dict(stacks)), len(stacks))
        own = sum(int(count) for stack, count in stacks if re.fullmatch(
            r"load;(.*;)?main;in_place;enter;entry_(\d);spin_\2", stack))
        self.assertGreater(own, 50 / 4)
        self.assertLess(sum(int(count) for _, count in stacks), 2 * own)

    def test_json_agrees_with_itself(self):
        found = json.loads(self.run_tool("--json", *self.load_argv()))
        self.assertEqual(found["frequency"], int(FREQUENCY))
        self.assertGreater(found["seconds"], 0)
        self.assertGreaterEqual(found["lost"], 0)
        self.assertGreater(found["samples"], ROUNDS / 4)
        own, total = collections.Counter(), collections.Counter()
        for stack in found["stacks"]:
            own[key_of(stack["frames"][0])] += stack["count"]
            for key in set(map(key_of, stack["frames"])):
                total[key] += stack["count"]
        self.assertEqual(own.total(), found["samples"])
        # Files that were replaced may share a path, and have no name besides.
        sums = collections.Counter(), collections.Counter()
        for function in found["functions"]:
            for name, of_name in zip(("self", "total"), sums):
                of_name[key_of(function)] += function[name]
        self.assertEqual(sums, (own, total))
        for number in LIBRARIES:
            elf, name = self.elf[str(number)], f"spin_{number}"
            self.assertIn((name, f"{self.tmp}/libspin{number}.so",
                           hex(elf.functions[name][1]), elf.build_id), total)

    def test_table_has_the_hottest_functions(self):
        argv = self.load_argv("in_place", rounds=50)
        for args, nr in ([], len(LIBRARIES)), (["-n", "2"], 2):
            out = self.run_tool(*args, *argv)
            self.assertEqual(len(re.findall(r"\bspin_\d\b", out)), nr, out)

    def test_command_has_its_arguments(self):
        path = f"{self.tmp}/arguments"
        command = ["sh", "-c", f"printf '%s\\n' \"$@\" >{path}; exit 7", "sh", "-n",
                   "a b", "--json", ""]
        for args in [], ["--"]:
            self.assertIn("stacks", json.loads(self.run_tool("--json", *args, *command)))
            with open(path, encoding="ascii") as file:
                self.assertEqual(lines_of(file.read()), command[4:])
            os.unlink(path)
        self.run_tool("--json", "sh", "-c", "kill -9 $$")

    def test_interrupt_ends_the_run(self):
        tool = self.start_tool("--json", *self.load_argv(rounds=FOREVER))
        self.wait_until(lambda: os.path.exists(self.log) and self.spells())
        tool.send_signal(signal.SIGINT)
        self.assertGreater(json.loads(self.finish(tool)[0])["samples"], 0)
        self.wait_until(lambda: not running(self.load))

    def refused(self, named, *args, **popen):
        """The tool has to fail, with one line that names what is wrong."""
        out, said = self.finish(self.start(self.tool, *args, **popen), 2)
        self.assertEqual(out, "", args)
        self.assertRegex(said, rf"\A\S*procmap-top: .*{named}.*\n\Z", args)

    def test_refuses_bad_usage(self):
        with subprocess.Popen(["true"]) as child:
            gone = str(child.pid)
        # The message of argp has two lines.
        self.refused("'--none'\nTry ", "--none")
        for named, *args in (
                ("COMMAND",), ("-a", "-a", "-p", "1"), ("-a", "-a", "true"),
                ("-p", "-p", "1", "true"), ("--json", "--folded", "--json", "true"),
                ("--samples", "--samples", "--folded", "true"), (gone, "-p", gone),
                ("/none", "/none")):
            self.refused(named, *args)
        for option, *values in (
                ("-F", "0", "x", "-1", "9x", ""), ("-p", "0", "x", "-1", "9x", ""),
                ("-d", "0", "x", "-1", "9x", "", "nan"), ("-n", "x", "-1", ""),
                ("--stack-size", "x", "-8", "70000", "")):
            for value in values:
                self.refused(value, option, value, *([] if option == "-p" else ["true"]))

    @needs_root
    @unittest.skipIf(anyone_may_sample_all(), "every user may sample the whole machine")
    def test_names_the_missing_permission(self):
        self.refused("run as root", "-a", **common.NOBODY)


class TapResult(common.TapResult):
    """As in procfs_query_test.py, with the lines of this file."""

    def explain(self, test, err):
        for frame in traceback.extract_tb(err[2]):
            if frame.filename == __file__:
                common.comment(f"line {frame.lineno}, in {frame.name}: {frame.line}")
        super().explain(test, err)


if __name__ == "__main__":
    BESIDE = os.path.dirname(os.path.abspath(__file__))
    TOOL = os.path.realpath(sys.argv[1] if sys.argv[1:] else f"{BESIDE}/procmap-top")
    sys.exit(common.run_tests(ProcmapTopTest, TOOL, TapResult))
