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

from util import TapResult, run_tests  # noqa: E402	found in the path above

ROUNDS = 300    # of the load
FREQUENCY = 499 # of profile
SPIN = 5000     # us that the load spins in a round
PERF_MAP_LINES = 100000
FLAGS = ["-D_GNU_SOURCE", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread",
         "-Wl,--build-id"]

# A perf map with each of these lines is still a perf map.
BAD_LINES = ["", "1000", "1000 20", "1000 20 ", "not hex", "1000 not_hex", "1000 20no_blank",
             "1000 0 empty", "0 ffffffffffffffff everything", "1000 -1 negative",
             "ffffffffffffffff 10 wraps", "10000000000000000 10 too_large", "\x01\x7f\udcff",
             "1000 10 " + "long" * 20000, "1000 10 CRLF\r"]

# Run a command in a root directory of its own, whose /tmp is a symbolic link. Arguments: that
# directory, one that is the same in both, and the command.
IN_CONTAINER = """
set -e
mount -t tmpfs none "$1"
cd "$1"
for directory in usr bin lib lib64 "$2"; do
	if [ -L "/$directory" ]; then
		cp -P "/$directory" .
	else
		mkdir -p "./$directory"
		mount --bind "/$directory" "./$directory"
	fi
done
mkdir maps
ln -s /maps tmp
shift 2
exec chroot . "$@"
"""

# Ways to have a perf map, $map, that is not to be read, although the process can write it.
UNTRUSTED_MAPS = {
    "fifo": 'mkfifo "$map"; exec 3<>"$map"',
    "symbolic link": '>/tmp/map; ln -s map "$map"',
    "hard link": '>/tmp/map; ln /tmp/map "$map"',
    "mount": '>/tmp/map; >"$map"; mount --bind /tmp/map "$map"',
    "file of another user": '>"$map"; chown 1 "$map"',
}


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
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        cls.addClassCleanup(directory.cleanup)
        cls.tmp = os.path.realpath(directory.name)
        os.chmod(cls.tmp, 0o755)
        cls.load = cls.compile(cls.tmp)

    @staticmethod
    def compile(directory, *flags):
        """Compile the load and its libraries, each if its path is a link where that leads."""
        argv = ["cc", *FLAGS, *flags, f"{HERE}/profile-load.c", "-o"]
        load = f"{directory}/profile-load"
        subprocess.check_call([*argv, load])
        for number in range(1, 5):
            library = os.path.realpath(f"{directory}/libspin{number}.so")
            subprocess.check_call([*argv, library, f"-DNUMBER={number}", "-shared", "-fPIC"])
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

    def run_profile(self, *args, status=0, meanwhile=lambda profile: None, nice=0):
        """Return its output. It writes to a file, so that it never waits for us."""
        with tempfile.TemporaryFile("w+") as output:
            with subprocess.Popen([PROFILE, *args], stdin=DEVNULL, stdout=output,
                                  stderr=PIPE, text=True,
                                  preexec_fn=lambda: os.nice(nice)) as profile:
                try:
                    meanwhile(profile)
                    self.said = profile.communicate()[1]
                finally:
                    profile.kill()
            self.assertEqual(profile.returncode, status, self.said)
            output.seek(0)
            return output.read()

    def check(self, out, depth=0):
        """Each stack of a function that spun was logged; and each that was logged, often.

        With depth, so many functions of a stack are known.
        """
        expected = collections.Counter()
        with open(self.log, encoding="ascii") as file:
            for line in file:
                duration, chain = line.rstrip("\n").split("\t")
                expected[tuple(chain.split(";")[-depth:])] += int(duration) * FREQUENCY / 1e9
        sampled, wrong = collections.Counter(), []
        for stack, count in stacks_of(out).items():
            if not re.match(r"fill_\d|spin_\d|spinjit", stack[-1]):
                continue
            chain = next((chain for chain in expected if stack[-len(chain):] == chain), None)
            if chain and stack[0] == "profile-load":
                sampled[chain] += count
            else:
                wrong.append(stack)
        self.assertEqual(wrong, [], self.said)
        for chain, count in expected.items():
            self.assertLess(sampled[chain], 1.5 * count + 10, chain)
            self.assertGreater(sampled[chain], count / 4 - 2, chain)
        self.assertGreater(sampled.total(), expected.total() / 4 - 2)

    def test_stacks_of_a_command(self):
        out = self.run_profile(*self.argv())
        self.check(out)
        self.assertRegex(out, "profile-load;_start;__libc_start_main.*;main;in_place;enter;")

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_stacks_of_all_processes(self):
        forked = set()

        def load(profile):
            time.sleep(0.5)
            subprocess.check_call(self.argv(), stdin=DEVNULL)
            forked.update(self.fork_for(0.01) for _ in range(50))
            time.sleep(0.5)
            profile.send_signal(signal.SIGINT)

        # The stacks of a second fill a ring. If it has to wait for others that long, it loses
        # samples, and events with the names of processes.
        out = self.run_profile(status=-signal.SIGINT, meanwhile=load, nice=-20)
        self.assertEqual(self.said, "")
        self.check(out)
        # No event has said their name.
        named = {stack[0] for stack in stacks_of(out)}
        self.assertTrue(named & {str(pid) for pid in forked}, named)

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

    def test_names_of_a_deleted_library(self):
        self.check(self.run_profile(*self.argv("replaced", rounds=1, spin=500000)))

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

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_names_of_a_library_in_memfd(self):
        directory = f"{self.tmp}/memfd"
        os.mkdir(directory)
        load = self.compile(directory, "-Wl,--build-id=none")
        self.check(self.run_profile(*self.argv("library_in_memfd", load=load, rounds=4,
                                               spin=200000)))

    def check_perf_map(self, kind, *command, rounds=20, spin=SPIN, lines=""):
        self.check(self.run_profile(*command, *self.argv(kind, lines, rounds=rounds, spin=spin)))

    def test_perf_map_of_code_in_memfd(self):
        self.check_perf_map("in_memfd")

    def test_perf_map_of_code_in_shared_memory(self):
        self.check_perf_map("in_shared_memory")

    def test_perf_map_is_read_again_if_it_is_replaced(self):
        self.check_perf_map("map_replaced", rounds=6, spin=200000)

    def test_perf_map_is_read_again_if_code_is_replaced(self):
        self.check_perf_map("code_replaced", rounds=4, spin=200000)

    def test_perf_map_after_main_has_exited(self):
        self.check_perf_map("main_exits")

    def test_bad_lines_of_a_perf_map_are_passed_over(self):
        self.check_perf_map("anonymous", lines="".join(line + "\n" for line in BAD_LINES))

    def check_no_perf_map(self, *command, kind="anonymous", named=None):
        out = self.run_profile(*command, *self.argv(kind, rounds=10))
        self.assertIn("profile-load;[unknown] 1\n", out, named)
        self.assertNotIn("spinjit", out, named)

    def test_unfinished_line_of_a_perf_map_is_not_read(self):
        self.check_no_perf_map(kind="line_unfinished")

    def test_names_a_perf_map_that_is_too_large(self):
        self.check_no_perf_map("sh", "-c", 'truncate -s 65M /tmp/perf-$$.map; exec "$@"', "sh")
        self.assertEqual(self.said.count("too large"), 1)

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_perf_map_in_a_container(self):
        root = f"{self.tmp}/container"
        os.mkdir(root)
        self.check_perf_map("anonymous", "unshare", "-mpf", "sh", "-c", IN_CONTAINER, "sh", root,
                            self.tmp[1:])

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_untrusted_perf_map_is_not_read(self):
        for name, make in UNTRUSTED_MAPS.items():
            script = f"""set -e
                mount -t tmpfs -o mode=755 none /tmp
                map=/tmp/perf-$$.map
                {make}
                exec "$@" """
            self.check_no_perf_map("unshare", "-m", "sh", "-c", script, "sh", named=name)

    def test_large_perf_map_is_read_once(self):
        lines = "".join(f"{i:x} 1 Builtin:function_{i} /srv/application/file.js:{i}\n"
                        for i in range(1, PERF_MAP_LINES))
        path = f"{self.tmp}/map"
        with open(path, "w", encoding="ascii") as file:
            file.write(lines)

        def read_io(profile):
            os.waitid(os.P_PID, profile.pid, os.WEXITED | os.WNOWAIT)
            with open(f"/proc/{profile.pid}/io", encoding="ascii") as file:
                self.bytes_read = int(re.search("rchar: (.*)", file.read())[1])

        out = self.run_profile("sh", "-c", 'cp "$0" /tmp/perf-$$.map; exec "$@"', path,
                               *self.argv("unlisted", rounds=100), meanwhile=read_io)
        self.assertGreater(stacks_of(out)[("profile-load", "[unknown]")], 50)
        # It waited for cp, which has read the lines, too.
        self.assertGreater(self.bytes_read, 2 * len(lines))
        self.assertLess(self.bytes_read, 2.9 * len(lines))

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

    def test_interrupt_leaves_no_process(self):
        def interrupt(profile):
            time.sleep(0.5)
            profile.send_signal(signal.SIGINT)

        argv = ["sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh",
                *self.argv("in_place", rounds=1, spin=10**9)]
        self.run_profile(*argv, status=-signal.SIGINT, meanwhile=interrupt)
        for _ in range(100):
            if subprocess.run(["pgrep", "-f", self.log], check=False, stdout=DEVNULL).returncode:
                return
            time.sleep(0.1)
        self.fail("the command goes on")

    def refused(self, named, *args):
        self.assertEqual(self.run_profile(*args, status=2), "")
        self.assertIn(named, self.said)

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
