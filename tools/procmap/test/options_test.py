#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test what procfs_query does with its options, and with trouble: exit status and messages."""

import ctypes
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import tempfile
import unittest
from subprocess import DEVNULL, PIPE

from util import (METHODS, NOBODY, NOT_AN_ADDRESS, NO_MAPPINGS,
                  SOURCES, ToolTest, as_text, by_process, main, needs, needs_root,
                  not_in_chroot)

EMPTY = "skipped 1 process without mappings: zombies and kernel threads have none\n"

NOT_FOUND = ("there is no process {gone}: see ps(1)\nprocfs_query: " + EMPTY +
             "procfs_query: found no process that you may inspect: see ps(1)")

BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"

ONE_A_LINE = "give a file with one address per line"

NO_MAPS = "descriptor {} is not of a maps file: open /proc/PID/maps or /proc/PID"

OTHER = NOBODY | {"user": 65533}

NO_COPY = "give a copy of /proc/PID/maps"

BAD_LINE = f"cannot be parsed, or is out of order: {NO_COPY}"

A_LINE = "1000-2000 r--p 0 0:1 1 /a\n"

# Each is a test: its name; the line that the tool prints before it exits with status 2;
# the command line; and the values of {0} in both. A value is also the content of the file
# {bad} and of standard input.
ERRORS = (
    ("process_is_required", "no process given: use -p PID, --all, --fd N or --maps-file "
     "PATH", "{0}", ("400000", "--list", "")),
    ("fd_is_a_number", "'{0}' is not a descriptor: give the number of an opened "
     "/proc/PID/maps", "--fd '{0}' --list", ("", "x", "-1", "1x", "2147483648")),
    ("fd_has_to_be_open", "descriptor {0} is not open for reading: open it, as with "
     "{0}</proc/PID/maps", "--fd {0} -f {bad}", ("3", "99", "2147483647")),
    ("fd_of_something_else_is_told", NO_MAPS.format(0), "--fd 0 --list {0}", ("", "-Q", "-T")),
    ("work_is_required", "give addresses, -f FILE, --list, --name, --sum, --deleted or "
     "--build-ids", "-p {plain} {0}", ("", "-B", "--json --executable")),
    ("pid_has_to_be_a_number", "'{0}' is not a process ID: give a positive number, or "
     "self", "-p '{0}' --list", ("", "abc", "12x", "1.5", "0", "-1", "+1", " 1",
                                 "2147483648", "99999999999999999999")),
    ("list_of_pids_has_numbers", "'{0}' is not a process ID: give a positive number, or "
     "self", "-p '{plain},{0}' --list", ("", "x", "0", "1.2")),
    ("one_of_the_processes_has_to_be_there", NOT_FOUND, "-p {gone},{zombie} --list", ("",)),
    ("interval_and_bench_take_one_process", "{0} does not work with several processes: "
     "leave one of them out", "-p {plain},{gone} --list {0}=1", ("--interval", "--bench")),
    ("process_that_has_gone_is_told", "there is no process {gone}: see ps(1)",
     "-p {gone} {0}", ("--list", "-T 400000", "--sum", "--deleted", "--build-ids")),
    ("zombie_has_no_mappings", "process {zombie} {no_mappings}", "-p {zombie} -l {0}",
     METHODS),
    ("name_is_required", "'' is not a name: give that of a mapping, or a pattern",
     "-p {plain} --name ''", ("",)),
    ("number_of_runs_is_checked", "'{0}' is not a number of runs: give one from 1 to "
     "1000000", "-p {plain} --list --bench='{0}'",
     ("", "0", "-1", "ten", "2x", "1000001", "99999999999999999999")),
    ("interval_is_checked", "'{0}' is not an interval: give seconds from 0.001 to 86400",
     "-p {plain} --list --interval='{0}'",
     ("", "0", "-1", "soon", "1x", "nan", "inf", "86401", "0.0009")),
    ("columns_of_addresses_need_some", "{0} works only with an address or --file: add that",
     "-p {plain} --sum {0}", ("--verbose", "--elf-address")),
    ("interval_needs_list", "--interval works only with --list: add that",
     "-p {plain} --interval=1", ("",)),
    ("bench_needs_lookups", "--bench works only with an address or --file or --list or "
     "--name: add that", "-p {plain} --bench=2", ("",)),
    ("address_has_to_be_hexadecimal", "argument '{0}' {not_an_address}",
     "-p {plain} 400000 '{0}'", ("", "xyz", "0x", "0xg", "12g", "1-2", "1 2", "0x0x1")),
    ("address_has_at_most_64_bits", "argument '{0}' is too large: an address has at most "
     "64 bits", "-p {plain} {0}", ("10000000000000000", "0x10000000000000000",
                                   "123456789012345678901")),
    ("bad_line_is_told", "{bad}:4: '40g' {not_an_address}", "-p {plain} -f '{bad}'",
     ("# a comment\n\n1\n40g # bad\n2\n",)),
    ("bad_byte_in_a_file_is_told", "{bad}:2: '2?' {not_an_address}",
     "-p {plain} -f {bad}", ("1\n2\0\n", "1\n2\x1b\n")),
    ("bad_line_is_cut", "{bad}:2: '2" + "x" * 59 + "...' {not_an_address}",
     "-p {plain} -f {bad}", ("1\n2" + "x" * 100,)),
    ("file_without_address_is_told", "{bad}:0: the file has no address: give one per "
     "line", "-p {plain} -f {bad}", ("",)),
    ("input_without_end_is_not_read", "/dev/zero:1: the line is too long: give one "
     "address per line", "-p {plain} -f /dev/zero", ("",)),
    ("file_has_to_exist", "{tmp}/none: No such file or directory: {0}",
     "-p {plain} -f {tmp}/none", (ONE_A_LINE,)),
    ("bad_line_of_a_maps_file_is_told", f"{{bad}}:3: {BAD_LINE}", "-m {bad} --list",
     [f"\n{A_LINE}{bad}" for bad in (
         "nonsense", f"{A_LINE}4000-5000", "2000-3000 r--p 0 0:1 1 /cut",
         "2000-3000 r--p 0 0:1 1 /a\0\n", "2000-3000 rw-p 0 0:0 0 \r\n",
         "4000-5000 r--q 0 0:0 0\n" + A_LINE)]),
    ("maps_file_is_not_empty", f"{{bad}}: the file is empty: {NO_COPY}", "-m {bad} -l",
     ("",)),
    ("maps_file_has_to_be_text", "/dev/zero:1: {0}", "-m /dev/zero --list", (BAD_LINE,)),
    ("maps_file_has_to_exist", "{tmp}/none: No such file or directory: {0}",
     "-m {tmp}/none --list", (NO_COPY,)),
    ("maps_file_is_no_directory", "{tmp}: Is a directory: {0}", "-m {tmp} --list",
     (NO_COPY,)),
)

# An option, and those that do not work with it.
REFUSED_TOGETHER = {
    "--interval=1": "--all --maps-file=x --name=x --bench=2",
    "--bench=2": "--all --maps-file=x --query --scan --text",
    "0x1": "--file=x --list --name=x --sum --deleted --build-ids --interval=1",
    "--file=x": "--list --name=x --sum --deleted --build-ids --interval=1",
    "--list": "--name=x --sum --deleted --build-ids --verbose",
    "--name=x": "--sum --deleted --build-ids --verbose",
    "--sum": "--deleted --build-ids --interval=1 --bench=2",
    "--deleted": "--build-ids --interval=1 --bench=2 --maps-file=x",
    "--build-ids": "--interval=1 --bench=2 --build-id --maps-file=x",
    "--pid=1": "--all --fd=0 --maps-file=x",
    "--all": "--fd=0 --maps-file=x",
    "--fd=0": "--maps-file=x --deleted --build-ids --interval=1 --bench=2",
    "--maps-file=x": "--query --scan --build-id --proc=x",
    "--elf-address": "--list --name=x",
    "--query": "--scan --text",
    "--scan": "--text",
}

WORK = {"0x1", "--file=x", "--list", "--name=x", "--sum", "--deleted", "--build-ids"}

PROCESSES = {"--pid=1", "--all", "--fd=0", "--maps-file=x"}


class OptionsTest(ToolTest):
    """A method test_NAME is the test NAME."""

    def test_help_lists_every_option(self):
        out = self.run_tool("--help", of=None)
        listed = {(short, name, arg.upper()) for short, name, arg in re.findall(
            r"^ +(?:-(\w), )? *--([a-z-]+)(?:=(\S+))?", out, re.M)}
        with open(f"{SOURCES}/procfs_query.1", encoding="ascii") as file:
            in_manual = {(short, name, arg.upper())
                         for short, name, arg in re.findall(
                             r"^\.It Fl (?:(\w) , )?-([a-z-]+)"
                             r"(?: Ns = Ns Ar (\S+))?$",
                             file.read().partition(".Sh JSON")[0], re.M)}
        self.assertEqual({option for option in listed
                          if option[1] not in ("help", "usage")}, in_manual)
        self.assertRegex(out, r"(?m)^Exit status:$")
        self.assertEqual(self.run_tool("-h", of=None), out)

    def test_version_is_that_of_the_library(self):
        for option in "--version", "-V":
            self.assertRegex(self.run_tool(option, of=None),
                             r"^procfs_query (\d+\.\d+\.\d+), libprocmap \1\n$")

    def test_lack_of_memory_is_told(self):
        text = "".join(f"{i:05x}000-{i:05x}fff r--p 00000000 00:00 0 \n" for i in range(100000))
        argv = self.argv(["-m", self.write("long", text), "-l"], None)
        results = set()
        for limit in range(2 << 20, 32 << 20, 1 << 20):
            done = subprocess.run(["prlimit", f"--as={limit}", *argv], check=False,
                                  stdout=PIPE, stderr=PIPE, text=True)
            # With less memory, the tool cannot be loaded.
            if done.returncode != 127:
                results.add((done.returncode, done.stdout.count("\n"), done.stderr))
        self.assertEqual(results, {(0, 100000, ""), (2, 0, "procfs_query: out of memory\n")})

    def test_too_many_open_files_are_told(self):
        target = self.start(self.cat).pid
        message = "procfs_query: too many open files: raise the limit with ulimit -n\n"
        for args in (("-l",), ("-l", "-B", "-T"), ("-s",), ("--deleted",),
                     ("--build-ids", "-T"), ("-l", "-B", "-T", "-j")):
            argv = self.argv(args, target)
            results = []
            # Below 4, the tool cannot be loaded.
            for limit in range(4, 16):
                limits = limit, limit
                self.last_run = argv
                done = subprocess.run(argv, check=False, stdout=PIPE, stderr=PIPE,
                                      text=True, preexec_fn=lambda to=limits:
                                      resource.setrlimit(resource.RLIMIT_NOFILE, to))
                results.append((done.returncode, done.stdout, done.stderr))
            self.assertEqual(results[0], (2, "", message))
            self.assertIn(results[-1][0], (0, 1))
            self.assertEqual(set(results), {results[0], results[-1]})

    @needs_root
    def test_without_proc_it_says_to_mount_it(self):
        for args in ("-p", "1"), ("-p", "self"), ("--all",):
            self.refused("no procfs is mounted at /proc: mount one there, or give --proc DIR",
                         *args, "--list", of=None, **self.with_files({"/proc": None}))

    @needs_root
    @not_in_chroot
    @needs("unshare")
    @needs("readelf")
    def test_proc_is_looked_up_elsewhere(self):
        elsewhere = tempfile.mkdtemp(dir=self.tmp)
        os.mkdir(f"{elsewhere}/[proc]")
        pids = f"-p{self.plain},{self.odd}"
        code = f"{self.code.start:x}"
        for args in ((pids, "-B", "--list"), (pids, "-B", "-E", code), (pids, "--sum", "-B"),
                     (pids, "--deleted", "-B"), ("-pself", "-l", "--executable", "-j"),
                     ("--all", "--name", self.cat), (pids, "--build-ids")):
            for method in METHODS:
                argv = "unshare", "--mount", "sh", "-c", (
                    'mount --bind /proc "$0/[proc]" && mount -t tmpfs none /proc && cd "$0" '
                    '&& exec "$@"'), elsewhere, self.tool, method, *args, "--proc=[proc]"
                found, expected = (subprocess.run(of, stdout=PIPE, stderr=DEVNULL,
                                                  check="--deleted" not in args).stdout
                                   for of in (argv, (self.tool, method, *args)))
                if "-pself" in args:
                    found, expected = ([vma["name"] for vma in json.loads(out)["vmas"]]
                                       for out in (found, expected))
                self.assertEqual(found, expected)

    @needs_root
    @needs("unshare")
    def test_self_is_that_of_proc_in_another_pid_namespace(self):
        out = subprocess.check_output(["unshare", "--pid", "--fork", self.tool, "-p",
                                       "self", "-l", "-j"], text=True)
        found = self.valid(out)
        self.assertNotEqual(found["pid"], 1)
        self.assertIn(self.tool, {vma["name"] for vma in found["vmas"]})

    def test_standard_files_may_be_closed(self):
        bad = "Bad file descriptor"
        code = f"{self.code.start:x}"
        for closed, args, expected in (
                (">&-", (code,), (2, "", f"procfs_query: standard output: {bad}: the "
                                  "result is incomplete\n")),
                ("<&-", ("-f", "-"), (2, "", f"procfs_query: standard input:1: {bad}: "
                                      "give a file with one address per line\n")),
                ("2>&-", ("-f", "none"), (2, "", "")),
                ("<&- 2>&-", (code,), (0, self.run_tool(code), ""))):
            self.last_run = ["sh", "-c", f'exec "$@" {closed}', "sh",
                             *self.argv(args, self.plain)]
            done = subprocess.run(self.last_run, check=False, stdout=PIPE, stderr=PIPE,
                                  text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), expected)

    @needs_root
    def test_fd_of_a_foreign_directory_is_refused(self):
        with self.opened(f"/proc/{self.plain}") as fd:
            self.refused(f"descriptor {fd}: no permission to inspect the process: pass its "
                         "maps file", "--fd", str(fd), "--list", of=None, pass_fds=(fd,),
                         **NOBODY)

    def test_fd_without_mappings_is_told(self):
        for path, message in (
                (f"/proc/{self.plain}/status", NO_MAPS),
                ("/proc", "descriptor {} has no mappings, or not any more: open it again")):
            with self.opened(path) as fd:
                for method in METHODS:
                    self.refused(message.format(fd), method, "--fd", str(fd), "--list",
                                 of=None, pass_fds=(fd,))

    def test_unknown_option_is_refused(self):
        self.refused(re.compile(r"unrecognized option '--no-such-option'\n"),
                     "--no-such-option", of=None)

    @needs_root
    def test_refusal_says_who_may_inspect_the_process(self):
        for mode, target in (0o755, OTHER), (0o711, NOBODY):
            pid = self.start_by_mode(mode, **target)
            self.refused(f"no permission to inspect process {pid}: run as root", "--list",
                         of=pid, **NOBODY)

        def drop():
            # With another one than sys_ptrace, Linux 6.16 and later permit reading.
            bounding_drop, sys_ptrace, sys_admin, perfmon = 24, 19, 21, 38
            for capability in sys_ptrace, sys_admin, perfmon:
                assert not ctypes.CDLL(None).prctl(bounding_drop, capability, 0, 0, 0)
        self.refused(f"no permission to inspect process {self.plain}: root needs "
                     "CAP_SYS_PTRACE in its user namespace, and no security module that "
                     "forbids it", "--list", preexec_fn=drop)

    def start_by_mode(self, mode, **popen):
        """Start a program. One that its user cannot read is not dumpable."""
        program = shutil.copy(self.cat, tempfile.mkdtemp(dir=self.tmp))
        os.chmod(os.path.dirname(program), 0o755)
        os.chmod(program, mode)
        return self.start(program, **popen).pid

    def run_unshared(self, namespace, script, *args):
        """Run the tool from a shell in namespaces of its own."""
        self.last_run = ["unshare", *namespace.split(), "sh", "-c", script, self.tool, *args]
        done = subprocess.run(self.last_run, check=False, stdout=PIPE, stderr=PIPE, text=True)
        return done.returncode, done.stdout, done.stderr

    @needs_root
    @needs("setpriv")
    @needs("unshare")
    def test_hidden_process_is_told_from_none(self):
        foreign, own = self.start_by_mode(0o755, **OTHER), self.start_by_mode(0o711, **NOBODY)
        denied = "procfs_query: no permission to inspect process"
        for pid, message in (*((pid, f"{denied} {pid}: run as root\n") for pid in (foreign, own)),
                             (self.gone, self.told_gone)):
            for hidepid in 1, 2, 4:
                self.assertEqual((2, "", message), self.run_unshared(
                    "--mount", f"mount -t proc -o hidepid={hidepid} proc /proc && exec setpriv"
                    ' --reuid=65534 --regid=65534 --clear-groups "$0" "$@"', f"-p{pid}", "-l"))

    @needs_root
    @needs("unshare")
    def test_process_of_another_pid_namespace_is_not_taken_for_hidden(self):
        self.assertEqual((2, "", self.told_gone), self.run_unshared(
            "--pid --fork", f"echo {self.gone - 1} >/proc/sys/kernel/ns_last_pid; sleep 60 & "
            f'[ $! = {self.gone} ] && exec "$0" "$@"', f"-p{self.gone}", "-l"))

    @needs_root
    def test_foreign_processes_are_skipped_and_counted(self):
        target = self.start(self.cat, **NOBODY).pid
        for pids, skipped in (((self.plain,), "1 process"),
                              ((self.plain, self.odd), "2 processes")):
            found = by_process(self.run_tool(
                "--list", **NOBODY, of=(target, *pids), message="procfs_query: skipped "
                f"{skipped} without permission: run as root\n"))
            self.assertEqual(list(found), [target])

    @needs_root
    def test_without_the_ioctl_it_cannot_be_asked_for(self):
        for option in "-Q", "-S", "--bench=2":
            self.refused("the kernel lacks the ioctl: leave out -Q, -S and --bench",
                         "--list", option, **self.without_ioctl())

    def test_options_that_do_not_work_together_are_refused(self):
        for first, others in REFUSED_TOGETHER.items():
            for second in others.split():
                args = [arg for arg in ("-l", "-p1", first, second) if arg != "-l" or
                        not WORK.intersection((first, second))]
                if PROCESSES.intersection((first, second)):
                    args.remove("-p1")
                names = [arg.partition("=")[0].replace("0x1", "an address")
                         for arg in (first, second)]
                self.refused(re.compile("^procfs_query: ({0} does not work with {1}|{1} "
                                        "does not work with {0}): leave one of them "
                                        "out\n$".format(*names)), *args, of=None)

    def test_full_disk_is_told(self):
        with open("/dev/full", "wb") as full:
            for args in "--list", "--help", "--usage", "--version":
                self.refused("standard output: No space left on device: the result "
                             "is incomplete", args, stdout=full)

    def completions(self, *words):
        """The completions of the last word of a command line in bash."""
        script = r'''
            . "$1"
            . "$2"
            shift 2
            PATH=$(dirname "$1"):$PATH
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            COMP_LINE=$* COMP_POINT=${#COMP_LINE}
            _procfs_query procfs_query "${@: -1}" "${*: -2:1}"
            printf "%s\n" "${COMPREPLY[@]}"
        '''
        out = subprocess.check_output(["bash", "-c", script, "bash", BASH_COMPLETION,
                                       f"{SOURCES}/procfs_query.bash", self.tool,
                                       *words])
        return as_text(out).split()

    @unittest.skipUnless(os.path.exists(BASH_COMPLETION), "no bash-completion")
    def test_bash_completes_options_and_processes(self):
        options = set(re.findall("--[a-z-]+", self.run_tool("--help", of=None)))
        self.assertEqual({option.rstrip("=") for option in self.completions("--")},
                         options)
        self.assertLessEqual({str(self.plain), "self"}, set(self.completions("-p", "")))
        for option in "--interval", "--name":
            self.assertEqual(self.completions(option, ""), [])


def test_of_error(name, message, command_line, values):
    """Make a test of a line of ERRORS."""
    def test(self):
        known = {"plain": self.plain, "zombie": self.zombie, "gone": self.gone,
                 "tmp": self.tmp, "bad": f"{self.tmp}/bad", "no_mappings": NO_MAPPINGS,
                 "not_an_address": NOT_AN_ADDRESS}
        for value in values:
            self.write("bad", value)
            self.refused(message.format(value, **known),
                         *shlex.split(command_line.format(value, **known)), of=None,
                         stdin=value.encode())
    setattr(OptionsTest, f"test_{name}", test)


for error in ERRORS:
    test_of_error(*error)


if __name__ == "__main__":
    main(OptionsTest)
