#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare the stacks of the example "profile" with what a load has logged of itself.

Usage: profile_test.py [PROFILE]; without PROFILE it is the program beside this file, or
beside the link by which it was run. The results are TAP.
"""

import collections
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from subprocess import DEVNULL, PIPE

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "procmap", "test"))

from procfs_query_test import TapResult, run_tests  # noqa: E402	found in the path above

ROUNDS = 300    # of the load
FREQUENCY = 499 # of profile
SPIN = 5000     # us that the load spins in a round
FLAGS = ["-D_GNU_SOURCE", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread",
         "-Wl,--build-id"]


def stacks_of(output):
    """Each stack, the outermost function first, and how often it is there."""
    lines = output.splitlines()
    bad = [line for line in lines if not re.fullmatch(r"[^;]*(;[^;]+)* 1", line)]
    assert not bad, bad[0]
    return collections.Counter(tuple(line[:-2].split(";")) for line in lines)


class ProfileTest(unittest.TestCase):
    """A method test_NAME is the test NAME."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.tmp = os.path.realpath(directory.name)
        os.chmod(cls.tmp, 0o755)
        cls.load = cls.compile(cls.tmp)

    @staticmethod
    def compile(directory, *flags):
        """Compile the load and its libraries."""
        argv = ["cc", *FLAGS, *flags, f"{HERE}/profile-load.c", "-o"]
        load = f"{directory}/profile-load"
        subprocess.check_call([*argv, load])
        for number in range(1, 6):
            subprocess.check_call([*argv, f"{directory}/libspin{number}.so",
                                   f"-DNUMBER={number}", "-shared", "-fPIC"])
        return load

    def setUp(self):
        signal.alarm(600)
        self.log = f"{self.tmp}/{self.id()}.log"
        self.addCleanup(signal.alarm, 0)
        self.addCleanup(self.remove_maps)

    @staticmethod
    def remove_maps():
        """Remove what loads have written to /tmp, as a JIT compiler does."""
        for path in glob.glob("/tmp/perf-*.map"):
            with open(path, encoding="utf-8", errors="replace") as file:
                if "spinjit" in file.read():
                    os.unlink(path)

    def argv(self, *kind, load=None, rounds=ROUNDS, spin=SPIN):
        load = load or self.load
        return [load, self.log, os.path.dirname(load), str(rounds), str(spin), *kind]

    def start(self, *args, stdin=DEVNULL):
        """Start profile. It writes to files, so that it never waits for us."""
        files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        # It does not outlive the test, however that ends.
        profile = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", PROFILE, *args],
                                   stdin=stdin, stdout=files[0], stderr=files[1])
        profile.files = files
        for cleanup in *(file.close for file in files), profile.wait, profile.kill:
            self.addCleanup(cleanup)
        return profile

    def finish(self, profile, status=0):
        """Await its end; return its output and its messages."""
        profile.wait()
        for file in profile.files:
            file.seek(0)
        out, said = (file.read() for file in profile.files)
        self.assertEqual(profile.returncode, status, said)
        return out, said

    def run_profile(self, *args, status=0):
        return self.finish(self.start(*args), status)[0]

    def wait_until(self, condition):
        while not condition():
            time.sleep(0.01)

    def spells(self):
        """What the load has logged: the samples to expect of each chain of functions."""
        expected = collections.Counter()
        with open(self.log, encoding="ascii") as file:
            for line in file:
                duration, chain = line.rstrip("\n").split("\t")
                expected[tuple(chain.split(";"))] += int(duration) * FREQUENCY / 1e9
        return expected

    def count_spells(self):
        with open(self.log, encoding="ascii") as file:
            return file.read().count("\n")

    def check(self, out, depth=None):
        """Each stack of a function that spun was logged; and each that was logged, often.

        The library of "replaced" may be gone, and then has no names. With depth, so many
        functions of a stack are known.
        """
        expected = collections.Counter()
        for chain, count in self.spells().items():
            expected[chain[-depth:] if depth else chain] += count
        sampled, wrong = collections.Counter(), []
        for stack, count in stacks_of(out).items():
            if not re.match("fill|spin", stack[-1]):
                continue
            chain = next((chain for chain in expected if stack[-len(chain):] == chain), None)
            if chain and stack[0] in ("profile-load", "exe"):
                sampled[chain] += count
            else:
                wrong.append(stack)
        self.assertEqual(wrong, [])
        for chain, count in expected.items():
            self.assertLess(sampled[chain], 1.5 * count + 10, chain)
            if "replaced" not in chain:
                self.assertGreater(sampled[chain], count / 4 - 2, chain)
        self.assertGreater(sampled.total(), expected.total() / 4 - 2)
        return sampled

    def test_stacks_of_a_command(self):
        out = self.run_profile(*self.argv())
        sampled = self.check(out)
        self.assertEqual({chain[-4] for chain in sampled if len(chain) > 1},
                         {"in_place", "forked", "in_thread"} |
                         {chain[-4] for chain in sampled if "replaced" in chain})
        self.assertIn("profile-load;_start;__libc_start_main", out)

    def test_stacks_of_all_processes(self):
        profile = self.start()
        time.sleep(0.5)
        subprocess.check_call(self.argv(), stdin=DEVNULL)
        forked = {self.fork_for(0.01) for _ in range(50)}
        time.sleep(0.5)
        profile.send_signal(signal.SIGINT)
        out = self.finish(profile, -signal.SIGINT)[0]
        self.check(out)
        # No event has said their name.
        named = {stack[0] for stack in stacks_of(out)}
        self.assertTrue(named & {str(pid) for pid in forked}, named)
        self.assertFalse([name for name in named if "/proc" in name])

    @staticmethod
    def fork_for(duration):
        """The ID of a child that has been busy so long, in s."""
        pid = os.fork()
        if not pid:
            end = time.process_time() + duration
            while time.process_time() < end:
                pass
            os._exit(0)
        os.waitpid(pid, 0)
        return pid

    def run_while_stopped(self, kind, rounds=4, spells=4):
        """The samples of a load that has exited before profile has seen any."""
        profile = self.start(*self.argv(kind, rounds=rounds), stdin=PIPE)
        self.wait_until(lambda: os.path.exists(self.log))
        profile.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, profile.pid, os.WSTOPPED | os.WEXITED)
        profile.stdin.close()
        profile.stdin = None
        self.wait_until(lambda: self.count_spells() == spells)
        time.sleep(0.2)
        profile.send_signal(signal.SIGCONT)
        return self.finish(profile)[0]

    def test_names_from_events_alone(self):
        self.check(self.run_while_stopped("executed"))
        os.unlink(self.log)
        self.check(self.run_while_stopped("forked", spells=8))

    def test_names_of_a_deleted_library(self):
        sampled = self.check(self.run_profile(*self.argv("replaced", rounds=1, spin=500000)))
        self.assertTrue(sampled)

    def test_debug_files_if_asked(self):
        directory = f"{self.tmp}/stripped"
        os.mkdir(directory)
        load = self.compile(directory)
        for path in [load, *glob.glob(f"{directory}/*.so")]:
            notes = subprocess.check_output(["readelf", "-n", path], text=True)
            build_id = re.search(r"Build ID: (\w+)", notes)[1]
            debug = f"{directory}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
            os.makedirs(os.path.dirname(debug), exist_ok=True)
            subprocess.check_call(["objcopy", "--only-keep-debug", path, debug])
            subprocess.check_call(["strip", path])
        argv = self.argv("in_place", load=load, rounds=50)
        out = self.run_profile(*argv)
        self.assertRegex(out, r";profile-load\+0x[0-9a-f]+;entry_1;spin_1 1\n")
        self.assertNotIn(";main;", out)
        os.unlink(self.log)
        self.check(self.run_profile("-d", directory, *argv))

    def test_32_bit(self):
        directory = f"{self.tmp}/32"
        os.mkdir(directory)
        try:
            load = self.compile(directory, "-m32")
        except subprocess.CalledProcessError:
            self.skipTest("no 32-bit compiler")
        self.check(self.run_profile(*self.argv("in_place", load=load, rounds=50)), depth=1)

    def test_command_has_its_arguments_and_its_status(self):
        path = f"{self.tmp}/arguments"
        command = ["sh", "-c", f"printf '%s\\n' \"$@\" >{path}; echo said; exit 7", "sh",
                   "-n", "a b", "-d", ""]
        for args in [], ["--"]:
            self.assertNotIn("said", self.run_profile(*args, *command, status=7))
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read().splitlines(), command[4:])

    def refused(self, named, *args):
        out, said = self.finish(self.start(*args), 2)
        self.assertEqual(out, "")
        self.assertIn(named, said)

    def test_refuses_bad_usage(self):
        self.refused("usage: ", "-n")
        self.refused("/none: No such file", "/none")

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_names_the_missing_permission(self):
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            if int(file.read()) < 1:
                self.skipTest("every user may sample all processes")
        profile = shutil.copy(PROFILE, f"{self.tmp}/profile")
        result = subprocess.run([profile], user=65534, group=65534, extra_groups=[],
                                stderr=PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("run as root", result.stderr)


def main():
    tried = subprocess.run([PROFILE, "true"], stdout=DEVNULL, stderr=PIPE, text=True,
                           check=False)
    if tried.returncode and "perf_event_open" in tried.stderr:
        print("1..0 # SKIP no permission to open perf events")
        return 0
    return run_tests(ProfileTest, PROFILE, TapResult)


if __name__ == "__main__":
    PROFILE = os.path.abspath(sys.argv[1] if sys.argv[1:] else
                              f"{os.path.dirname(os.path.abspath(__file__))}/profile")
    sys.exit(main())
