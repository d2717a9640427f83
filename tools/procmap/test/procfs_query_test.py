#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procfs_query: its answers, options, exit status and messages.

Usage: procfs_query_test.py [TOOL]; without TOOL it is $TOOL, or the program
in the directory above this file.

The truth is /proc/PID/maps, readelf and the manual. Results are TAP 13 on
standard output; the exit status is 1 if a test failed.
"""

import ctypes
import datetime
import errno
import fcntl
import json
import mmap
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
import typing
import unittest
from subprocess import DEVNULL, PIPE

# Debian's packages, for an interpreter that is not Debian's, too.
sys.path.append("/usr/lib/python3/dist-packages")
import jsonschema  # noqa: E402, python3-jsonschema

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCES = os.path.dirname(HERE)

# Seconds after which a test counts as hung.
LIMIT = 600

PAGE = mmap.PAGESIZE
PROCMAP_QUERY = 0xC0686611
PROCMAP_SCAN = 0xC06866E0

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
COMPILER = shutil.which("cc")
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"

# Characters that a terminal obeys, or that change the order of others.
CONTROLS = "[\0-\t\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"

# ISO 8601, with milliseconds and zone.
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[-+]\d\d:\d\d"

NOT_AN_ADDRESS = "is not a hexadecimal address"
NO_MAPPINGS = "has no mappings: it exited, or is a kernel thread"
NOT_FOUND = "found no process that you may inspect: see ps(1), or run as root"
# With --all; a security module may hide processes even from root.
SKIPPED = re.compile(r"^(procfs_query: skipped \d+ process(es)? without permission: .*\n)?$")


def has_ioctl(command):
    """Return whether the kernel has this ioctl: a size of 0 fails with another error."""
    with open("/proc/self/maps", "rb") as file:
        try:
            fcntl.ioctl(file, command, bytes(command >> 16 & 0x3fff))
        except OSError as error:
            return error.errno != errno.ENOTTY
    return True


HAS_QUERY = has_ioctl(PROCMAP_QUERY)
HAS_SCAN = has_ioctl(PROCMAP_SCAN)
METHODS = {"-T": "text"}
if HAS_QUERY:
    METHODS["-Q"] = "query"
if HAS_SCAN:
    METHODS["-S"] = "scan"

needs_query = unittest.skipUnless(HAS_QUERY, "this kernel has no PROCMAP_QUERY")
needs_root = unittest.skipUnless(os.geteuid() == 0, "not root")


def is_in_chroot():
    """Return whether names in other mount namespaces begin above the root."""
    try:
        return not os.path.samestat(os.stat("/proc/1/root/"), os.stat("/"))
    except PermissionError:
        return False


not_in_chroot = unittest.skipIf(is_in_chroot(), "in a chroot")


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"no {program}")


def as_text(raw):
    """Decode any bytes; those that are not UTF-8 become surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def schema():
    """Return the validator of JSON documents; the schema has to be valid itself."""
    with open(f"{SOURCES}/procfs_query.schema.json", encoding="ascii") as file:
        rules = json.load(file)
    jsonschema.Draft202012Validator.check_schema(rules)
    return jsonschema.Draft202012Validator(rules)


def lines_of(text):
    """Split complete lines at newlines only, unlike splitlines()."""
    *lines, rest = text.split("\n")
    assert not rest, f"the last line is cut off: {rest}"
    return lines


class Vma(typing.NamedTuple):
    """A mapping, as its line in /proc/PID/maps has it."""
    line: str
    start: int
    end: int
    permissions: str
    offset: int
    device: tuple
    inode: str
    name: str

    @classmethod
    def parse(cls, line):
        span, permissions, offset, device, inode, name = line.split(" ", 5)
        start, end = (int(part, 16) for part in span.split("-"))
        return cls(line, start, end, permissions, int(offset, 16),
                   tuple(int(part, 16) for part in device.split(":")), inode,
                   name.lstrip(" "))

    def line_with(self, columns):
        """The line with other columns before the name."""
        fields = self.line.removesuffix(self.name).rstrip()
        return f"{fields + ' ':56}".ljust(len(fields) + 2) + columns + self.name

    def has_file(self):
        return self.device != (0, 0)

    def json_name(self):
        name = {"name": "".join(chr(ord(c) & 0xff) if "\udc80" <= c <= "\udcff" else c
                                for c in self.name) or None}
        if re.search("[\udc80-\udcff]", self.name):
            name["name_hex"] = self.name.encode("utf-8", "surrogateescape").hex()
        return name

    def json_device(self):
        if not self.has_file():
            return {"dev_major": None, "dev_minor": None, "inode": None}
        return {"dev_major": self.device[0], "dev_minor": self.device[1],
                "inode": self.inode}

    def json_offset(self):
        return {"offset": hex(self.offset) if self.has_file() else None}

    def json(self, method):
        return {"start": hex(self.start), "end": hex(self.end),
                "size": self.end - self.start, "permissions": self.permissions,
                **self.json_offset(), **self.json_device(), "page_size": None if method == "-T" else PAGE,
                **self.json_name()}

    def json_lookup(self, method):
        return {"address": hex(self.start), "mapped": True,
                **self.json_offset(), **self.json_name(), "vma": self.json(method)}


def maps(pid):
    """The mappings of a process. The vsyscall page is not one of them."""
    with open(f"/proc/{pid}/maps", "rb") as file:
        lines = lines_of(as_text(file.read()))
    return [Vma.parse(line) for line in lines if not line.endswith("[vsyscall]")]


def map_lines(pid):
    return [vma.line for vma in maps(pid)]


def count_mappings(pid):
    """The number of mappings; 0 of a process that is gone or not ours."""
    try:
        return len(maps(pid))
    except OSError:
        return 0


def find(pid, permissions, name):
    """The first mapping of a process with these permissions and this name."""
    return next(vma for vma in maps(pid)
                if re.fullmatch(permissions, vma.permissions) and name in vma.name)


FILTERS = {
    "--executable": lambda vma: "x" in vma.permissions,
    "--readable": lambda vma: "r" in vma.permissions,
    "--writable": lambda vma: "w" in vma.permissions,
    "--shared": lambda vma: "s" in vma.permissions,
    "--file-backed": Vma.has_file,
}


def lookups(pid):
    """Addresses in and around each mapping, and the line of each answer."""
    end = None
    for vma in maps(pid):
        if end not in (None, vma.start):
            yield end, f"{end:#018x} not mapped"
        end = vma.end
        for address in vma.start, vma.start + 1234, end - 1:
            offset = f"{'-':18}"
            if vma.has_file():
                offset = f"{address - vma.start + vma.offset:#018x}"
            yield address, f"{address:#018x} {offset} {vma.name or '-'}"


class Sum:
    """The line of --sum for the mappings of one file, or of all."""

    def __init__(self, vma=None):
        self.vma = vma
        self.pids = set()
        self.mappings = 0
        self.bytes = self.executable = self.writable = 0

    def add(self, pid, vma):
        size = vma.end - vma.start
        self.pids.add(pid)
        self.mappings += 1
        self.bytes += size
        self.executable += size if "x" in vma.permissions else 0
        self.writable += size if "w" in vma.permissions else 0

    def line(self, of_many):
        return (f"{len(self.pids):9} " if of_many else "") + (
            f"{self.mappings:8} {self.bytes >> 10:11} "
            f"{self.executable >> 10:11} {self.writable >> 10:11}  " +
            (self.vma.name or "-" if self.vma else "total"))

    def json(self):
        of_file = {}
        if self.vma:
            of_file = self.vma.json_device() | self.vma.json_name()
        return {"processes": len(self.pids), "mappings": self.mappings,
                "bytes": self.bytes, "executable_bytes": self.executable,
                "writable_bytes": self.writable, **of_file}


def sums_of(*pids):
    """The sums of processes: by file or other name, and the total."""
    sums, total = {}, Sum()
    for pid in pids:
        for vma in maps(pid):
            key = vma.device, vma.inode, vma.name
            sums.setdefault(key, Sum(vma)).add(pid, vma)
            total.add(pid, vma)
    return list(sums.values()), total


def by_process(out):
    """The lines of each process: its heading "PID: program", and those below."""
    found = {}
    for line in lines_of(out):
        heading = re.match(r"(\d+): ", line)
        if heading:
            assert int(heading[1]) not in found, line
            lines = found[int(heading[1])] = []
        lines.append(line)
    return found


def processes():
    return set(map(int, filter(str.isdigit, os.listdir("/proc"))))


def program_of(pid):
    """The path of the program that a process runs, or None."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def running(program):
    return [pid for pid in processes() if program_of(pid) == program]


def build_id_of(path):
    """The build ID of a file, as binutils read it, or None."""
    notes = subprocess.run(["readelf", "-n", path], check=False, stdout=PIPE,
                           stderr=DEVNULL, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    return found and found[1]


def stop(child):
    child.kill()
    child.communicate()


def start(add_cleanup, *argv, **popen):
    """Start a program that echoes lines; return when it has started up.

    It exits at the end of its input, so it does not outlive this test.
    """
    child = subprocess.Popen(argv, stdin=PIPE, stdout=PIPE, **popen)
    add_cleanup(stop, child)
    command(child, "ready")
    return child


def command(child, line):
    """Send a command to a child; return when the child has done it."""
    child.stdin.write(f"{line}\n".encode())
    child.stdin.flush()
    assert child.stdout.readline() == f"{line}\n".encode(), line


def echo():
    """The other side of start() and command()."""
    for line in sys.stdin:
        yield line.strip()
        print(line, end="", flush=True)


def be_odd(top):
    """Map files with odd names and contents, and have a zombie child.

    The files were just written, so their pages are resident.
    """
    kept = []

    def keep(path, content, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ):
        with open(path, "wb+") as file:
            file.write(content)
            file.flush()
            kept.append(mmap.mmap(file.fileno(), 0, flags=flags, prot=prot))

    with open(f"{top}/cat", "rb") as file:
        elf = file.read()
    note = elf.index(b"\4\0\0\0\24\0\0\0\3\0\0\0GNU\0")

    os.mkdir(f"{top}/odd")
    os.chdir(f"{top}/odd")
    for name in (b"with space ", b"new\nline", b"\"quote\\back", b"b\xffyte",
                 b"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                 b"cut \xe2\x82 \xf0\x9f\x98", b"long \xc0\xaf \xe0\x80\x80",
                 b"surrogate \xed\xa0\x80", b"large \xf4\x90\x80\x80 \xf5",
                 b"escape\x1b[2J",
                 b"control \x7f \xc2\x80 \xc2\x9f \xe2\x80\xaa \xe2\x80\xae"
                 b" \xe2\x81\xa6 \xe2\x81\xa9"):
        keep(name, b"x" * 9000)
    keep("shared", b"x" * 9000, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    memory = os.memfd_create("a memfd")
    os.truncate(memory, PAGE)
    kept.append(mmap.mmap(memory, PAGE))
    kept.append(mmap.mmap(-1, PAGE))
    kept[-1][0] = 1
    for name in "deleted", "elf":
        keep(name, elf)
        os.unlink(name)
    keep("id-of-8", elf[:note + 4] + b"\x08" + elf[note + 5:])

    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    with open(f"{top}/zombie", "w", encoding="ascii") as file:
        file.write(str(child))
    for _ in echo():
        pass


def be_actor(program):
    """Map, protect, unmap or execute on command."""
    libc = ctypes.CDLL(None)
    at, size = ctypes.c_void_p(0x10000000), ctypes.c_size_t(2 * PAGE)
    libc.mmap.restype = ctypes.c_void_p
    private_anonymous_noreplace = 0x100022
    for line in echo():
        if line == "map":
            assert libc.mmap(at, size, mmap.PROT_READ, private_anonymous_noreplace, -1,
                             ctypes.c_long(0)) == at.value
        elif line == "protect":
            assert not libc.mprotect(at, size, 0)
        elif line == "unmap":
            assert not libc.munmap(at, size)
        elif line == "execute":
            print(line, flush=True)
            os.execv(program, [program])


# The fates of files that be_mapper() maps, and whether the file is deleted then; the
# tests of the library have more of them.
FATES = {
    "kept": False,
    "kept (deleted)": False,
    "replaced": True,
    "replaced (deleted)": True,
    "deleted new\nline": True,
}


def meet_fate(path, fate, content):
    """Let a file meet its fate, as an upgrade by dpkg would."""
    if fate.startswith("replaced"):
        with open(f"{path}.new", "wb") as file:
            file.write(content)
        os.rename(f"{path}.new", path)
    elif fate.startswith("deleted"):
        os.unlink(path)


def be_mapper(top, library):
    """Map a copy of a library for each fate, and memory that never had a path."""
    with open(library, "rb") as file:
        content = file.read()
    libc, kept = ctypes.CDLL(None, use_errno=True), []
    libc.shmat.restype = ctypes.c_void_p

    def keep(fd, permissions=mmap.PROT_READ | mmap.PROT_EXEC):
        for _ in range(2):
            kept.append(mmap.mmap(fd, 2 * PAGE, flags=mmap.MAP_PRIVATE,
                                  prot=permissions))

    os.mkdir(top)
    for fate in FATES:
        with open(f"{top}/{fate}", "wb+") as file:
            file.write(content)
            file.flush()
            keep(file.fileno())
        meet_fate(f"{top}/{fate}", fate, content)

    memory = os.memfd_create("a name/of memory")
    os.ftruncate(memory, 2 * PAGE)
    keep(memory)
    # Not on overlayfs of Linux 6.1, nor to be executed everywhere.
    memory = os.open("/dev/shm", os.O_RDWR | os.O_TMPFILE, 0o600)
    os.ftruncate(memory, 2 * PAGE)
    keep(memory, mmap.PROT_READ)
    kept.append(mmap.mmap(-1, 2 * PAGE))
    segment = libc.shmget(0, 2 * PAGE, 0o600)
    assert segment >= 0 and libc.shmat(segment, None, 0) != ctypes.c_void_p(-1).value
    assert not libc.shmctl(segment, 0, None)
    if os.uname().machine == "x86_64":
        io_setup = 206
        libc.syscall(io_setup, 1, ctypes.byref(ctypes.c_ulong(0)))
    for _ in echo():
        pass


ONE_A_LINE = "give a file with one address per line"
NO_COPY = "give a copy of /proc/PID/maps"
BAD_LINE = f"cannot be parsed, or is out of order: {NO_COPY}"
A_LINE = "1000-2000 r--p 0 0:1 1 /a\n"

# Each is a test: its name; the line that the tool prints before it exits with status 2;
# the command line; and the values of {0} in both. A value is also the content of the file
# {bad} and of standard input.
ERRORS = (
    ("process_is_required", "no process given: use -p PID, --all or --maps-file "
     "PATH", "{0}", ("400000", "--list", "")),
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
    ("large_address_in_a_file_is_told", "{bad}:1: '10000000000000000' is too large: an "
     "address has at most 64 bits", "-p {plain} -f {bad}", ("10000000000000000\n",)),
    ("bad_byte_in_a_file_is_told", "{bad}:2: '2?' {not_an_address}",
     "-p {plain} -f {bad}", ("1\n2\0\n", "1\n2\x1b\n")),
    ("bad_line_is_cut", "{bad}:2: '2" + "x" * 59 + "...' {not_an_address}",
     "-p {plain} -f {bad}", ("1\n2" + "x" * 100,)),
    ("bad_line_of_standard_input_is_told", "standard input:2: '400 000' {not_an_address}",
     "-p {plain} --bench=2 -f -", ("1\n400 000\n",)),
    ("file_without_address_is_told", "{bad}:0: the file has no address: give one per "
     "line", "-p {plain} -f {bad}", ("",)),
    ("file_of_comments_is_told", "{bad}:3: the file has no address: give one per line",
     "-p {plain} -f {bad}", ("# nothing\n\n   \n",)),
    ("empty_input_is_told", "standard input:0: the file has no address: give one per "
     "line", "-p {plain} -f -", ("",)),
    ("input_without_end_is_not_read", "/dev/zero:1: the line is too long: give one "
     "address per line", "-p {plain} -f /dev/zero", ("",)),
    ("file_has_to_exist", "{tmp}/none: No such file or directory: {0}",
     "-p {plain} -f {tmp}/none", (ONE_A_LINE,)),
    ("file_has_to_be_one", "{tmp}:1: Is a directory: {0}", "-p {plain} -f {tmp}",
     (ONE_A_LINE,)),
    ("maps_file_has_to_be_one", f"{{bad}}:1: {BAD_LINE}", "-m {bad} --list",
     ("nonsense\n", "400000-401000 r-xp", "-")),
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


def named(pattern):
    return lambda vma: re.fullmatch(pattern, vma.name)


# Each is a test: its name; a process and the command line; and the condition for a mapping
# of the process to be printed, by each method, in text and in JSON. At least one mapping
# meets it; None: the tool prints nothing and exits with status 1.
LISTS = (
    ("list_is_that_of_the_text", "plain --list", lambda vma: True),
    ("list_of_odd_mappings_is_that_of_the_text", "odd --list", lambda vma: True),
    *((f"filter_{name[2:].replace('-', '_')}", f"odd --list {name}", has)
      for name, has in FILTERS.items()),
    ("filters_are_all_applied", "odd --list --readable --writable --file-backed",
     lambda vma: "rw" in vma.permissions and vma.has_file()),
    ("empty_list_is_exit_status_1", "plain --list --shared --executable", None),
    ("name_is_a_path", "plain --name {tmp}/cat", named(".*/cat")),
    ("name_passes_filters", "plain -n {tmp}/cat --executable",
     lambda vma: "x" in vma.permissions and vma.name.endswith("/cat")),
    ("name_has_brackets", "plain --name [stack]", named(r"\[stack\]")),
    ("pattern_has_brackets", "plain --name '[st*]'", named(r"\[st.*\]")),
    ("pattern_has_sets", "plain --name '*[/][c]a[t]'", named(".*/cat")),
    ("pattern_matches_slashes", "odd --name '*/odd/*'", named(".*/odd/.*")),
    ("pattern_has_ranges", "odd --name '*/id-of-[0-9]*'", named(".*/id-of-[0-9].*")),
    ("name_is_without_deleted", "odd -n {tmp}/odd/deleted",
     named(r".*/deleted \(deleted\)")),
    ("pattern_is_without_deleted", "odd -n '*/deleted'", named(r".*/deleted \(deleted\)")),
    ("name_is_that_of_a_memfd", "odd -n 'a memfd'", named(r"/memfd:a memfd \(deleted\)")),
    ("name_is_complete", "plain --name cat", None),
    ("pattern_is_complete", "plain --name '*cat?'", None),
    ("name_has_no_blank_at_its_end", "plain --name '{tmp}/cat '", None),
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
    "--pid=1": "--all --maps-file=x",
    "--all": "--maps-file=x",
    "--maps-file=x": "--query --scan --build-id --proc=x",
    "--elf-address": "--list --name=x",
    "--query": "--scan --text",
    "--scan": "--text",
}
WORK = {"0x1", "--file=x", "--list", "--name=x", "--sum", "--deleted", "--build-ids"}
PROCESSES = {"--pid=1", "--all", "--maps-file=x"}


class ProcfsQueryTest(unittest.TestCase):
    """A method test_NAME is the test NAME."""

    maxDiff = 20000

    @classmethod
    def setUpClass(cls):
        signal.alarm(LIMIT)
        cls.schema = schema()
        # Every user may run the programs in it.
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.tmp = directory.name
        os.chmod(cls.tmp, 0o755)
        cls.tool = shutil.copy(TOOL, f"{cls.tmp}/procfs_query")
        cls.cat = shutil.copy(shutil.which("cat"), f"{cls.tmp}/cat")
        cls.liar = f"{cls.tmp}/liar.so"
        if COMPILER:
            subprocess.check_call([COMPILER, "-D_GNU_SOURCE", "-shared", "-fPIC", "-o",
                                   cls.liar, f"{HERE}/liar.c"])

        cls.plain = start(cls.addClassCleanup, cls.cat).pid
        cls.odd = start(cls.addClassCleanup, sys.executable, __file__, "--odd",
                        cls.tmp).pid
        with open(f"{cls.tmp}/zombie", encoding="ascii") as file:
            cls.zombie = int(file.read())
        with subprocess.Popen(["true"]) as gone:
            cls.gone = gone.pid
        cls.code = find(cls.plain, "r-xp", "/cat")
        cls.data = find(cls.plain, "rw-p", "/cat")
        cls.addresses = cls.write("addresses", f"400000\n{cls.code.start:x}\n")

    def setUp(self):
        signal.alarm(LIMIT)
        self.addCleanup(signal.alarm, 0)

    @classmethod
    def write(cls, name, content, mode=0o644):
        """Write a file below the test's directory; return its path."""
        path = f"{cls.tmp}/{name}"
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        return path

    def start(self, *argv, **popen):
        return start(self.addCleanup, *argv, **popen)

    def argv(self, args, of):
        """The command line; of is "plain", "odd", a process ID, several, "self" or None."""
        pid = {"plain": self.plain, "odd": self.odd}.get(of, of)
        if isinstance(pid, tuple):
            pid = ",".join(map(str, pid))
        return [self.tool, *(("-p", str(pid)) if pid else ()), *args]

    def lies(self, lie):
        """The environment in which the tool is lied to by liar.c."""
        return {"LIE": lie, "LD_PRELOAD": self.liar,
                "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def run_tool(self, *args, of="plain", status=0, message=None, lie=None, env=(),
                 stdin=b"", **popen):
        """Run the tool; return its output.

        It has to exit with this status, with this message on standard error (a
        string or a pattern). lie selects a lie of liar.c.
        """
        if message is None:
            message = SKIPPED if "--all" in args else ""
        self.last_run = self.argv(args, of)
        if lie and not COMPILER:
            self.skipTest("no C compiler for an ioctl that lies")
        env = os.environ | dict(env)
        if lie:
            env |= self.lies(lie)
        done = subprocess.run(self.last_run, input=stdin, env=env,
                              **{"stdout": PIPE, "stderr": PIPE} | popen)
        said, out = as_text(done.stderr), as_text(done.stdout or b"")
        self.assertEqual(done.returncode, status, said)
        if isinstance(message, re.Pattern):
            self.assertRegex(said, message)
        else:
            self.assertEqual(said, message)
        if status == 2:
            self.assertEqual(out, "")
        return out

    def valid(self, document):
        """Parse a JSON document, which has to follow the schema."""
        found = json.loads(document.encode("utf-8", "surrogateescape"))
        self.schema.validate(found)
        return found

    def run_json(self, *args, **options):
        return self.valid(self.run_tool(*args, "--json", **options))

    def run_json_lines(self, *args, **options):
        """Run the tool, which has to print one JSON document per line."""
        out = self.run_tool(*args, "--json", **options)
        return [self.valid(line) for line in lines_of(out)]

    def prints(self, lines, *args, **options):
        """Run the tool with each method: it has to print these lines."""
        for method in METHODS:
            out = self.run_tool(method, *args, **options)
            self.assertEqual(lines_of(out), lines)

    def prints_alone(self, lines, *args, **options):
        """Run the tool without a method: it has to print these lines."""
        self.assertEqual(lines_of(self.run_tool(*args, **options)), lines)

    def refused(self, message, *args, **options):
        """Run the tool, which has to fail with this one line, or pattern of it."""
        if isinstance(message, str):
            message = f"procfs_query: {message}\n"
        self.run_tool(*args, status=2, message=message, **options)

    def wait_until(self, condition):
        deadline = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

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
        pids = f"-p{self.plain},{self.odd},{self.start_mapper('elsewhere')[0].pid}"
        code = f"{self.code.start:x}"
        for args in ((pids, "-B", "--list"), (pids, "-B", "-E", code), (pids, "--sum", "-B"),
                     (pids, "--deleted", "-B"), ("-pself", "-l", "--executable", "-j"),
                     ("--all", "--name", self.cat), (pids, "--build-ids")):
            for method in METHODS:
                argv = "unshare", "--mount", "sh", "-c", (
                    'mount --bind /proc "$0/[proc]" && mount -t tmpfs none /proc && cd "$0" '
                    '&& exec "$@"'), elsewhere, self.tool, method, *args, "--proc=[proc]"
                found, expected = (subprocess.run(of, stdout=PIPE, stderr=DEVNULL,
                                                  check=True).stdout
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

    def test_self_is_the_tool(self):
        for method in METHODS:
            out = self.run_tool(method, "--list", "--executable", "--file-backed",
                                of="self")
            self.assertRegex(out, rf"(?m) {re.escape(self.tool)}$")

    def test_unknown_option_is_refused(self):
        self.refused(re.compile(r"unrecognized option '--no-such-option'\n"),
                     "--no-such-option", of=None)

    def test_bad_bytes_of_an_argument_are_not_printed(self):
        self.refused(f"argument '??' {NOT_AN_ADDRESS}", b"\t\xff")

    @needs_root
    def test_foreign_process_is_refused(self):
        denied = f"no permission to inspect process {self.plain}: "
        self.refused(denied + "run as its user, or as root", "--list", **NOBODY)

        def drop():
            # With another one than sys_ptrace, Linux 6.16 and later permit reading.
            bounding_drop, sys_ptrace, sys_admin, perfmon = 24, 19, 21, 38
            for capability in sys_ptrace, sys_admin, perfmon:
                assert not ctypes.CDLL(None).prctl(bounding_drop, capability, 0, 0, 0)
        self.refused(f"{denied}root needs CAP_SYS_PTRACE in its user namespace, and no "
                     "security module that forbids it", "--list", preexec_fn=drop)

    @needs_root
    def test_foreign_processes_are_skipped_and_counted(self):
        target = self.start(self.cat, **NOBODY).pid
        for pids, skipped in (((self.plain,), "1 process"),
                              ((self.plain, self.odd, self.gone), "2 processes")):
            found = by_process(self.run_tool(
                "--list", **NOBODY, of=(target, *pids), message="procfs_query: skipped "
                f"{skipped} without permission: run as root\n"))
            self.assertEqual(list(found), [target])

    def test_without_the_ioctl_it_cannot_be_asked_for(self):
        message = "the kernel lacks the ioctl: leave out -Q, -S and --bench"
        for option in "-Q", "-S", "--bench=2":
            self.refused(message, "--list", option, lie="none" if HAS_QUERY else None)
        if not HAS_SCAN:
            self.refused(message, "--list", "-S")

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

    def write_to_nobody(self, **options):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "wb") as nobody:
            self.run_tool("--list", stdout=nobody, **options)

    def test_reader_that_has_gone_ends_it_silently(self):
        self.write_to_nobody(status=-signal.SIGPIPE)

    def test_reader_that_has_gone_is_told_if_sigpipe_is_ignored(self):
        # This interpreter ignores it.
        self.write_to_nobody(
            status=2, restore_signals=False, message="procfs_query: standard output: "
            "Broken pipe: the result is incomplete\n")

    def test_resolves_as_the_text_says(self):
        for pid in self.plain, self.odd:
            addresses, answers = zip(*lookups(pid))
            self.assertGreater(len(answers), 50)
            self.assertRegex("\n".join(answers), "(?m)not mapped$")
            prefixed = (f"{'0x' if nr % 2 else ''}{address:x}\n"
                        for nr, address in enumerate(addresses))
            falling = self.write("falling", "".join(list(prefixed)[::-1]))
            self.prints(list(answers)[::-1], "-f", falling, of=pid)
            with open(falling, "rb") as file:
                lines = file.read()
            self.prints(list(answers)[::-1], "-f", "-", of=pid, stdin=lines)

    def ask(self, argv, pid, fifo=None):
        """Start the tool; return it and a function that asks it for an address."""
        asked = subprocess.Popen(self.argv(argv, pid), stdin=PIPE, stdout=PIPE,
                                 stderr=PIPE)
        to = open(fifo, "wb") if fifo else asked.stdin
        for clean in (asked.kill, asked.wait, to.close, asked.stdin.close,
                      asked.stdout.close, asked.stderr.close)[::-1]:
            self.addCleanup(clean)

        def answer(line):
            to.write(f"{line}\n".encode())
            to.flush()
            return as_text(asked.stdout.readline())

        return asked, to, answer

    def test_stream_is_answered_line_by_line(self):
        fifo = f"{self.tmp}/fifo"
        os.mkfifo(fifo)
        code = self.code
        head = f"{code.start:#018x} {code.offset:#018x}"
        for method in METHODS:
            for path, file in ("-", None), ("/dev/stdin", None), (fifo, fifo):
                asked, to, answer = self.ask((method, "-v", "-f", path), self.plain,
                                             file)
                self.assertEqual(answer("# a comment\n\n1"),
                                 f"{1:#018x} not mapped\n")
                for _ in range(2):
                    self.assertEqual(answer(f"{code.start:x}"), f"{head} {self.cat}\n")
                    self.assertEqual(as_text(asked.stdout.readline()),
                                     f"  {code.line}\n")
                to.close()
                self.assertEqual(asked.wait(), 0)

    def test_stream_in_json_is_an_object_a_line(self):
        for method, name in METHODS.items():
            asked, to, answer = self.ask((method, "-v", "-j", "-f", "-"), self.plain)
            head = {"pid": self.plain, "method": name}
            self.assertEqual(self.valid(answer(f"{self.code.start:x}")),
                             head | self.code.json_lookup(method))
            self.assertEqual(self.valid(answer("1")),
                             head | {"address": "0x1", "mapped": False, "offset": None,
                                     "name": None, "vma": None})
            to.close()
            self.assertEqual(asked.wait(), 0)

    def test_stream_follows_to_the_next_program(self):
        actor = self.start(sys.executable, __file__, "--actor", self.cat)
        asked, _, answer = self.ask(("-f", "-"), actor.pid)
        for what, expected in (("map", f"{'-':18} -"), ("execute", "not mapped")):
            command(actor, what)
            # It answers with the old program until that is gone.
            self.wait_until(lambda want=expected: answer("10000000") ==
                            f"{0x10000000:#018x} {want}\n")
        actor.kill()
        actor.wait()
        self.assertEqual(answer("1"), "")
        self.assertEqual(asked.wait(), 2)
        self.assertEqual(asked.stderr.read().decode(),
                         f"procfs_query: there is no process {actor.pid}: see ps(1)\n")

    def test_stream_ends_at_a_bad_line(self):
        asked, _, answer = self.ask(("-f", "-"), self.plain)
        self.assertEqual(answer("1"), f"{1:#018x} not mapped\n")
        self.assertEqual(answer("40g"), "")
        self.assertEqual(asked.wait(), 2)
        self.assertEqual(asked.stderr.read().decode(),
                         f"procfs_query: standard input:2: '40g' {NOT_AN_ADDRESS}\n")

    def test_addresses_come_as_arguments_file_or_stdin(self):
        address = f"{self.code.start:x}"
        expected = self.run_tool(address, f"0x{address}", f"0X{address}", "1")
        self.assertEqual(len(lines_of(expected)), 4)
        lines = (f" {address}\t# a comment\n\n#\n0x{address}\r\n0X{address}\n1"
                 .encode())
        for stdin in lines, lines + b"\n":
            self.assertEqual(self.run_tool("-f", "-", stdin=stdin), expected)
        for path in self.write("input", lines), "/proc/self/fd/0":
            self.assertEqual(self.run_tool("-f", path, stdin=lines.upper()), expected)

    def test_nothing_found_is_exit_status_1(self):
        none = "--shared", "--executable"
        for args, lines in ((("0", "f" * 16), [f"0x{'0' * 16} not mapped",
                                               f"0x{'f' * 16} not mapped"]),
                            (("--name", "x"), []), (("--sum",), []), (("--deleted",), []),
                            (("--build-ids",), [])):
            self.prints(lines, *args, *none, status=1)
            self.run_json_lines(*args, *none, status=1, of=(self.plain, self.gone))

    def test_verbose_prints_the_line(self):
        code = self.code
        self.prints([f"{code.start:#018x} {code.offset:#018x} {code.name}",
                     f"  {code.line}", f"{1:#018x} not mapped"], "-v", f"{code.start:x}", "1")

    def test_filters_addresses(self):
        code, data = self.code, self.data
        self.prints([f"{code.start:#018x} {code.offset:#018x} {self.cat}",
                     f"{data.start:#018x} not mapped"],
                    "--executable", f"{code.start:x}", f"{data.start:x}")

    def test_name_in_all_processes(self):
        expected = {pid: [f"{pid}: {program_of(pid)}",
                          *(vma.line for vma in maps(pid) if vma.name == self.cat)]
                    for pid in (self.plain, self.start(self.cat).pid)}
        for method in METHODS:
            self.assertEqual(by_process(self.run_tool("--all", "--name", self.cat,
                                                      method, of=None)), expected)
        found = self.run_json_lines("--all", "--name", self.cat, of=None)
        self.assertEqual([answer["pid"] for answer in found], sorted(expected))
        self.run_tool("--all", "--name", "no such name", of=None, status=1)

    @needs("readelf")
    def test_build_ids_are_those_of_readelf(self):
        code = [vma for vma in maps(self.plain)
                if vma.permissions == "r-xp" and vma.name.startswith("/")]
        ids = [build_id_of(vma.name) for vma in code]
        self.assertGreaterEqual(len(ids), 2)
        self.prints([f"{vma.start:#018x} {vma.offset:#018x} {build_id} {vma.name}"
                     for vma, build_id in zip(code, ids)],
                    "-B", *(f"{vma.start:x}" for vma in code))
        self.prints([vma.line_with(f"{build_id} ") for vma, build_id in zip(code, ids)],
                    "-B", "--list", "--executable", "--file-backed")
        vma = find(self.odd, "r.*", "/id-of-8")
        self.prints([vma.line_with(f"{ids[0][:16]:40} ")], "-B", "--name", vma.name, of="odd")
        for kind in "heap", "stack":
            vma = find(self.plain, "rw-p", f"[{kind}]")
            self.assertIn(vma.line_with(f"{'-':40} "),
                          lines_of(self.run_tool("-B", "--list")))

    # There, files are on overlayfs: the text may not say which one has data that was written.
    @not_in_chroot
    @needs("readelf")
    def test_elf_address_is_that_of_the_section(self):
        out = subprocess.check_output(["readelf", "-hSW", self.cat], text=True)
        entry = int(re.search("Entry point address: +0x(.*)", out)[1], 16)
        with open(f"/proc/{self.plain}/auxv", "rb") as file:
            at_entry = dict(struct.iter_unpack("NN", file.read()))[9]
        sections = [(int(address, 16), int(offset, 16)) for address, offset in re.findall(
            r"\] \.(?:text|rodata|init_array|data) +\w+ +(\w+) (\w+) ", out)]
        self.assertTrue(any(address != offset for address, offset in sections))
        stack = find(self.plain, "rw-p", "[stack]").start
        asked = [at_entry - entry + address for address, _ in sections] + [stack, 1]
        text = "".join(f"{address:x}\n" for address in asked).encode()
        answers = [f"{address:#018x}" for address, _ in sections] + ["-", "mapped"]
        path = self.write("sections", text)
        for method in METHODS:
            for file in path, "-":
                lines = lines_of(self.run_tool(method, "-E", "-f", file, stdin=text))
                self.assertEqual([line.split()[2] for line in lines], answers)
        found = self.run_json("-E", *(f"{address:x}" for address in asked))["addresses"]
        self.assertEqual([answer["elf_address"] for answer in found],
                         [hex(address) for address, _ in sections] + [None, None])

    @needs_root
    def test_file_that_cannot_be_read_is_told(self):
        path = shutil.copy(self.cat, f"{self.tmp}/unread")
        target = self.start(path, **NOBODY).pid
        os.unlink(path)
        work = "-T", "-B", "-E", f"{find(target, 'r-xp', path).start:x}"
        out = self.run_tool(*work, of=target, **NOBODY)
        self.assertEqual(out.split()[2:4], ["?", "?"])
        found, = self.run_json(*work, of=target, **NOBODY)["addresses"]
        for key in "build_id", "elf_address":
            self.assertIsNone(found[key])
            self.assertIs(found[f"{key}_unreadable"], True)

    def test_json_of_addresses_is_what_the_text_says(self):
        vmas = maps(self.odd)
        starts = self.write("starts", "\n".join(["1"] + [f"{vma.start:x}"
                                                         for vma in vmas]))
        for method, name in METHODS.items():
            self.assertEqual(self.run_json(method, "-v", "-f", starts, of="odd"), {
                "pid": self.odd, "method": name, "addresses": [
                    {"address": "0x1", "mapped": False, "offset": None, "name": None,
                     "vma": None}, *(vma.json_lookup(method) for vma in vmas)]})

    @needs("readelf")
    def test_json_has_build_ids(self):
        for method in METHODS:
            found, = self.run_json(method, "-B", "-v",
                                   f"{self.code.start:x}")["addresses"]
            self.assertEqual(found["build_id"], build_id_of(self.cat))
            self.assertEqual(found["vma"]["build_id"], build_id_of(self.cat))

    def watch(self, *args, program=None, stdout=PIPE, **env):
        """Start a process that acts on command, and the tool to watch it."""
        actor = self.start(sys.executable, __file__, "--actor", program or self.cat)
        watcher = subprocess.Popen(self.argv(("--list", "-i", "0.05", *args),
                                             actor.pid), stdin=PIPE, stdout=stdout,
                                   stderr=DEVNULL, env=os.environ | env)
        self.addCleanup(stop, watcher)
        return actor, watcher, (as_text(line) for line in watcher.stdout or ())

    def ends_with(self, actor, watcher, lines):
        """The process exits, and the tool with status 0; return the last line."""
        actor.kill()
        actor.wait()
        *_, last = lines
        self.assertEqual(watcher.wait(), 0)
        return last

    @needs("readelf")
    def test_interval_tells_what_has_changed(self):
        span, none = "10000000-10002000", f"{'-':40} "
        for method, args, build_id in (*((method, (), "") for method in METHODS),
                                       *((method, ("-B",), build_id_of(self.cat) + " ")
                                         for method in METHODS)):
            actor, watcher, lines = self.watch(method, *args)
            seen = [next(lines)]
            self.assertRegex(seen[0], f"^{TIME}   {len(maps(actor.pid))} mappings\n$")

            def until(change):
                while not re.fullmatch(f"{TIME} {change}\n", seen[-1]):
                    seen.append(next(lines))

            old, new = (f"{span} {mode} 00000000 00:00 0 +{none if args else ''}"
                        for mode in ("r--p", "---p"))
            for what, changes in (("map", [rf"\+ {old}"]),
                                  ("protect", [f"< {old}", f"> {new}"]),
                                  ("unmap", [f"- {new}"])):
                command(actor, what)
                for change in changes:
                    until(change)
            self.assertEqual(sum(span in line for line in seen), 4, seen)
            command(actor, "execute")
            until(rf"\* executed, \d+ mappings: {self.cat}")
            until(rf"\+ .* r-xp .* {build_id}{self.cat}")
            self.assertRegex(self.ends_with(actor, watcher, lines),
                             rf"^{TIME} \* exited\n$")

    def test_interval_in_json_is_an_object_a_line(self):
        actor, watcher, lines = self.watch("--json")
        objects = map(self.valid, lines)

        def until(event, key=None):
            for found in objects:
                self.assertEqual(found["pid"], actor.pid)
                self.assertRegex(found["time"], f"^{TIME}$")
                if found["event"] == event and (
                        not key or found[key]["start"] == "0x10000000"):
                    return found

        self.assertEqual(until("first")["mappings"], len(maps(actor.pid)))
        for what, event, key in (("map", "appeared", "is"),
                                 ("protect", "changed", "was"),
                                 ("unmap", "vanished", "was")):
            command(actor, what)
            until(event, key)
        command(actor, "execute")
        self.assertEqual(until("executed")["program"], self.cat)
        self.assertEqual(self.ends_with(actor, watcher, objects)["event"], "exited")

    def test_interval_ends_with_its_reader(self):
        _, watcher, lines = self.watch()
        next(lines)
        watcher.stdout.close()
        self.assertEqual(watcher.wait(), -signal.SIGPIPE)

    @needs_query
    @unittest.skipUnless(COMPILER, "no C compiler for an ioctl that lies")
    def test_interval_skips_what_it_missed(self):
        # The lie maps memory at each look, so that each look prints.
        watcher = subprocess.Popen(self.argv(("--list", "-Q", "-i", "0.005"), "self"),
                                   stdout=PIPE, env=os.environ | self.lies("change"))
        self.addCleanup(stop, watcher)
        looks = []

        def look(nr):
            while len(looks) < nr:
                line = as_text(watcher.stdout.readline())
                when = datetime.datetime.fromisoformat(re.match(TIME, line)[0])
                if looks[-1:] != [when]:
                    looks.append(when)

        look(3)
        watcher.send_signal(signal.SIGSTOP)
        time.sleep(1)
        watcher.send_signal(signal.SIGCONT)
        look(10)
        # No two looks are in one interval. Times are rounded down to a millisecond.
        for first, fourth in zip(looks, looks[3:]):
            self.assertGreaterEqual(fourth - first, datetime.timedelta(seconds=0.009))

    def test_interval_prints_the_time(self):
        for zone, offset in ("IST-5:30", "+05:30"), ("NST3:30", "-03:30"):
            before = datetime.datetime.now(datetime.timezone.utc)
            actor, watcher, lines = self.watch(TZ=zone)
            seen = re.match(TIME, next(lines))[0]
            self.assertEqual(seen[-6:], offset)
            found = datetime.datetime.fromisoformat(seen)
            # Times are rounded down to a millisecond.
            self.assertLess(before - datetime.timedelta(milliseconds=1), found)
            self.assertLess(found, datetime.datetime.now(datetime.timezone.utc))
            self.ends_with(actor, watcher, lines)

    @needs_query
    def test_with_the_ioctl_it_is_used(self):
        found = self.run_json("--list", "-Q")
        self.assertEqual(found["method"], "query")
        self.assertNotIn(None, [vma["page_size"] for vma in found["vmas"]])
        best = "scan" if HAS_SCAN else "query"
        self.assertEqual(self.run_json("--list")["method"], best)

    def test_without_the_ioctl_the_text_is_used(self):
        lie = "none" if HAS_QUERY else None
        self.assertEqual(self.run_json("--list", lie=lie)["method"], "text")

    @needs_query
    def test_bench_prints_times_in_order(self):
        methods = ["default", *(method for method in ("query", "scan", "text")
                                if method in METHODS.values())]
        bench = self.run_json("--list", "--bench", "5")["bench"]
        ratios = [f"text_to_{method}" for method in methods[:-1]]
        self.assertEqual(list(bench), ["runs", *methods, *ratios])
        self.assertEqual(bench["runs"], 5)
        for method in methods:
            found = bench[method]
            self.assertLess(0, found["min_us"])
            self.assertLessEqual(found["min_us"], found["median_us"])
            self.assertLessEqual(found["median_us"], found["max_us"])
            self.assertEqual(found["found"], len(maps(self.plain)))
        for method in methods[:-1]:
            ratio = bench["text"]["median_us"] / bench[method]["median_us"]
            self.assertAlmostEqual(bench[f"text_to_{method}"], ratio,
                                   delta=0.01 * ratio)
        out = self.run_tool("--list", "--bench", "4")
        for method in methods:
            self.assertRegex(out, rf"(?m)^{method:7}( +[0-9.]+){{5}}$")
        self.run_tool("1", "--bench", "2", status=1)

    def test_all_looks_into_every_process(self):
        for method in METHODS:
            # A process has no mappings for a moment when it executes a program,
            # so a missing one counts only if it is missing each time.
            missing = processes()
            for _ in range(3):
                before = processes()
                found = by_process(self.run_tool("--all", "--list", method, of=None))
                missing &= before - set(found)
                missing = set(filter(count_mappings, missing))
            self.assertEqual(missing, set())
            self.assertEqual(list(found), sorted(found))
            self.assertNotIn(self.zombie, found)
            self.assertNotIn(self.tool, (lines[0].split(": ", 1)[1]
                                         for lines in found.values()))
            for pid in self.plain, self.odd:
                self.assertEqual(found[pid],
                                 [f"{pid}: {program_of(pid)}"] + map_lines(pid))

    def test_all_in_json_is_an_object_a_line(self):
        answers = {answer["pid"]: answer for answer in self.run_json_lines(
            "--all", "--list", "--executable", of=None)}
        self.assertGreater(len(answers), 1)
        plain = answers[self.plain]
        self.assertEqual(plain["program"], self.cat)
        self.assertEqual([int(vma["start"], 16) for vma in plain["vmas"]],
                         [vma.start for vma in maps(self.plain)
                          if "x" in vma.permissions])
        self.assertEqual(len(self.run_json_lines("--sum", "-B",
                                                 of=(self.plain, self.odd))), 1)

    def test_schema_covers_each_member(self):
        """Without any of its members, or with another one, an object is invalid."""
        answers = [self.run_json("-B", "-v", f"{self.code.start:x}"),
                   self.run_json("--list"), self.run_json("--sum")]
        for answer in answers:
            for change in answer, next(value[0] for value in answer.values()
                                       if isinstance(value, list)):
                for key in ("another", *change):
                    if key in ("build_id", "vma"):
                        continue    # as an option says
                    before = dict(change)
                    if key in change:
                        del change[key]
                    else:
                        change[key] = 1
                    self.assertFalse(self.schema.is_valid(answer), key)
                    change.clear()
                    change.update(before)
            self.assertTrue(self.schema.is_valid(answer))

    def test_pids_are_a_list(self):
        pids = self.odd, self.gone, self.plain, self.zombie, self.odd
        for method in METHODS:
            found = by_process(self.run_tool("--list", method, of=pids))
            self.assertEqual(found, {pid: [f"{pid}: {program_of(pid)}"] + map_lines(pid)
                                     for pid in sorted((self.odd, self.plain))})
        twice = self.plain, self.plain
        self.assertEqual(self.run_tool("--list", of=twice), self.run_tool("--list"))
        self.assertEqual(self.run_tool("-p", str(self.odd), "--list"),
                         self.run_tool("--list", of=(self.odd, self.plain)))
        code = f"{self.code.start:x}"
        self.assertEqual(self.run_tool("-f", "-", of=pids, stdin=code.encode()),
                         self.run_tool(code, of=pids))

    def with_files(self, files):
        """For subprocess: these files have other contents, or are empty directories if
        None."""
        empty = tempfile.mkdtemp(dir=self.tmp)
        paths = [(path.encode(), empty.encode() if content is None else self.write(
            f"as{path.replace('/', '-')}", content).encode())
            for path, content in files.items()]
        libc = ctypes.CDLL(None)
        newns, bind, private = 0x20000, 0x1000, 0x44000

        def mount():
            assert not libc.unshare(newns)
            assert not libc.mount(None, b"/", None, ctypes.c_ulong(private), None)
            for at, path in paths:
                assert not libc.mount(path, at, None, ctypes.c_ulong(bind), None)
        return {"preexec_fn": mount}

    def test_maps_file_is_read_as_the_process(self):
        for pid in self.plain, self.odd:
            for name in "smaps", "maps":
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    saved = "-m", self.write(name, file.read())
                self.prints_alone(map_lines(pid), *saved, "--list", of=None)
            self.prints_alone(map_lines(pid), *saved, "-T", "--list", of=None)
            addresses, answers = zip(*lookups(pid))
            text = "".join(f"{address:x}\n" for address in addresses)
            path = self.write("addresses-of-file", text)
            self.prints_alone(list(answers), *saved, "-f", path, of=None)
            self.prints_alone(list(answers), *saved, "-f", "-", of=None,
                              stdin=text.encode())
            self.check_sums(self.run_tool(*saved, "--sum", of=None), pid)
            self.assertEqual(self.run_json(*saved, "--list", of=None),
                             {"maps_file": saved[1], "method": "text",
                              "vmas": [vma.json("-T") for vma in maps(pid)]})
            self.run_json(*saved, "--sum", of=None)
            self.run_json(*saved, "-f", "-", of=None, stdin=b"1\n", status=1)

    def test_maps_file_may_have_been_edited(self):
        lines = map_lines(self.plain)
        text = "\n".join(lines) + "\n"
        for edited in (f"\n \n{text}\n\t\n", text.replace("\n", "\r\n"),
                       f"\n{text}\n".replace("\n", "\r\n"),
                       re.sub("(?m)^(.*? ...)p", r"\1-", text)):
            self.prints_alone(lines, "-m", self.write("edited", edited), "-l", of=None)
        path = self.write("cr", A_LINE.replace("\n", "\r\n") + "3000-4000 r--p 0 0:1 1 /b\n")
        found = self.run_json("-m", path, "-l", of=None)["vmas"]
        self.assertEqual([vma["name"] for vma in found], ["/a\r", "/b"])

    def test_program_cannot_forge_a_heading(self):
        path = f"{self.tmp}/forged\n1: /sbin/init"
        os.makedirs(os.path.dirname(path))
        pids = self.start(shutil.copy(self.cat, path)).pid, self.gone
        heading = f"{pids[0]}: {path}".replace("\n", "\\012")
        self.assertEqual(lines_of(self.run_tool("--list", of=pids)),
                         [heading] + map_lines(pids[0]))
        out = self.on_terminal("--list", of=pids, COLUMNS="300")
        self.assertEqual(lines_of(self.without_colours(out))[0], heading)
        found = self.run_json("--list", of=pids)
        self.assertEqual(found["program"], path)
        self.assertNotIn("program_hex", found)

    def test_json_has_all_bytes_of_a_program(self):
        path = f"{self.tmp}/program \udcff".encode("utf-8", "surrogateescape")
        pids = self.start(shutil.copy(self.cat, path)).pid, self.gone
        found = self.run_json("--list", of=pids)
        self.assertEqual(found["pid"], pids[0])
        self.assertEqual(found["program"], f"{self.tmp}/program \xff")
        self.assertEqual(bytes.fromhex(found["program_hex"]), path)

    def check_sums(self, out, *pids):
        """Compare the output of --sum with the text."""
        heading, *found, total = lines_of(out)
        sums, total_of_text = sums_of(*pids)
        of_many = len(pids) > 1
        self.assertRegex(heading, ("^processes " if of_many else "^") +
                         "mappings +KiB +executable +writable  name$")
        self.assertEqual(sorted(found), sorted(sum.line(of_many) for sum in sums))
        self.assertEqual(total, total_of_text.line(of_many))
        sizes = [int(line.split()[2 if of_many else 1]) for line in found]
        self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_sum_is_that_of_the_text(self):
        for pid in self.plain, self.odd:
            for method in METHODS:
                self.check_sums(self.run_tool("--sum", method, of=pid), pid)

    @needs("readelf")
    def test_sum_of_several_processes(self):
        twice = shutil.copy(self.cat, f"{self.tmp}/twice")
        pids = self.start(twice).pid, self.start(twice).pid
        self.check_sums(self.run_tool("--sum", of=pids), *pids)
        build_id = build_id_of(twice)
        work = "--sum", "-B", "--executable"
        heading, *lines = lines_of(self.run_tool(*work, of=pids))
        column = heading.index("build ID")
        self.assertEqual({line[column:] for line in lines if line.endswith("/twice")},
                         {f"{build_id} {twice}"})
        self.assertTrue(heading[column:].endswith(f"{'build ID':40} name"))
        build_ids = {sum["name"]: sum["build_id"]
                     for sum in self.run_json(*work, of=pids)["sums"]}
        self.assertEqual(build_ids[twice], build_id)
        found = self.run_json("--sum", of=pids)
        sums, total = sums_of(*pids)
        self.assertEqual(found["total"], total.json())
        self.assertCountEqual(found["sums"], [sum.json() for sum in sums])

    def start_mapper(self, name, *before, **popen):
        """Start a process that maps files in a directory of its own."""
        library = find(self.plain, "r-xp", "/libc").name
        top = f"{self.tmp}/{name}"
        return self.start(*before, sys.executable, __file__, "--mapper", top, library,
                          **popen), top

    def deleted_files(self, *args, of=None, **options):
        """The files of each process that --deleted prints."""
        found = {}
        for row in self.run_json_lines("--deleted", *args, of=of, **options):
            found.setdefault(row["pid"], []).append(row["file"])
        return found

    @staticmethod
    def deleted_by_test(top):
        return [f"{top}/{fate}".replace("\n", "\\012")
                for fate, is_deleted in FATES.items() if is_deleted]

    def test_deleted_are_the_files_that_were_removed_or_replaced(self):
        mapper, top = self.start_mapper("fates")
        for method in METHODS:
            found = self.deleted_files(method, of=mapper.pid)
            self.assertEqual(list(found), [mapper.pid])
            self.assertCountEqual(found[mapper.pid], self.deleted_by_test(top))
            for filters in ("--executable",), ("--file-backed", "--readable"):
                self.assertEqual(self.deleted_files(method, *filters, of=mapper.pid),
                                 found)

    def test_deleted_finds_processes_among_all(self):
        mappers = dict(self.start_mapper(name) for name in ("first", "second"))
        expected = {mapper.pid: sorted(self.deleted_by_test(top))
                    for mapper, top in mappers.items()}
        for args, of in (("--all",), None), ((), (self.plain, *expected)):
            for method in METHODS:
                found = self.deleted_files(method, *args, of=of)
                self.assertEqual(list(found), sorted(found))
                self.assertNotIn(self.plain, found)
                for pid, files in expected.items():
                    self.assertEqual(sorted(found[pid]), files)

    @needs_root
    @needs("unshare")
    def test_deleted_knows_memory_without_path_by_its_name(self):
        files = ("/SYSV0000abcd.so", "/SYSVno-digit", "/SYSV", "/i915.so", "/dev/zero2",
                 "/anon_hugepages", "/srv/memfd:name", "/srv/[aio]", "/drm mm object/a",
                 "/secretmem.so", "/tmp/#1", "/tmp/#7.so", "/tmp/ffiserve", "/tmp/ffi/a.so",
                 "/usr/bin/ffiserver")
        memory = ("/SYSV0000abcd", "/i915", "/dev/zero", "/anon_hugepage", "/memfd:name",
                  "/[aio]", "/drm mm object", "/secretmem", "/tmp/#7", "/tmp/ffiaB0xYz",
                  "/run/user/1/orcexec.aB0xYz", "/.glaB0xYz", "/dev/shm/shmfd-aB0xYz",
                  "/var/tmp/ffiserver")
        names = [f"{name} (deleted)" for name in files + memory] + ["/dmabuf:name"]
        text = "".join(f"{i + 1:08x}000-{i + 2:08x}000 r-x{'sp'['ffi' in name]} 00000000 "
                       f"00:01 7 {name}\n" for i, name in enumerate(names))
        self.assertEqual(self.deleted_files("-T", of=self.plain, **self.with_files(
            {f"/proc/{self.plain}/maps": text})), {self.plain: list(files)})

    @needs_root
    @needs("readelf")
    def test_deleted_has_process_program_and_file(self):
        path = shutil.copy(self.cat, f"{self.tmp}/gone")
        pid = self.start(path).pid
        os.unlink(path)
        vma = find(pid, "r.*", f"{path} (deleted)")
        heading, row = lines_of(self.run_tool("--deleted", of=pid))
        self.assertRegex(heading, "^ +pid program +file$")
        self.assertEqual(row.split(), [str(pid), path, path])
        self.assertEqual(self.run_json("--deleted", of=pid), {
            "pid": pid, "program": path, "file": path, **vma.json_device()})
        build_id = build_id_of(self.cat)
        args = "--deleted", "-B", "--executable"
        heading_with_id, row = lines_of(self.run_tool(*args, of=pid))
        self.assertRegex(heading_with_id, "^ +pid program +build ID {32} file$")
        self.assertEqual(row.split(), [str(pid), path, build_id, path])
        self.assertEqual(self.run_json(*args, of=pid)["build_id"], build_id)
        out = lines_of(self.run_tool("--deleted", of=(pid, self.start_mapper("also")[0].pid)))
        self.assertEqual(out.count(heading), 1)

    @staticmethod
    def build_ids_by_readelf(*pids):
        """Return the rows of --build-ids --executable by readelf, and files without an ID."""
        rows, without = {}, set()
        for pid in pids:
            for vma in filter(FILTERS["--executable"], filter(Vma.has_file, maps(pid))):
                start, end = (int(part, 16) for part in vma.line.split()[0].split("-"))
                build_id = build_id_of(f"/proc/{pid}/map_files/{start:x}-{end:x}")
                if build_id:
                    row = rows.setdefault(build_id, (set(), set()))
                    row[0].add((vma.device, vma.inode, vma.name))
                    row[1].add(pid)
                else:
                    without.add((vma.device, vma.inode, vma.name))
        return rows, without

    def check_build_ids(self, *args, of=None, pids=()):
        """Compare --build-ids with readelf."""
        rows, without = self.build_ids_by_readelf(*pids)
        *found, others = self.run_json_lines("--build-ids", "--executable", *args, of=of)
        self.assertEqual(others, {"without_build_id": len(without), "unreadable": 0})
        for row in found:
            files, pids_of_row = rows.pop(row["build_id"])
            self.assertEqual(row["pids"], sorted(pids_of_row))
            self.assertEqual(row["processes"], len(pids_of_row))
            self.assertCountEqual(
                [((file["dev_major"], file["dev_minor"]), file["inode"], file["name"])
                 for file in row["files"]], files)
        self.assertEqual(rows, {})

    @needs_root
    @needs("readelf")
    def test_build_ids_of_all_files_are_those_of_readelf(self):
        twice = shutil.copy(self.cat, f"{self.tmp}/twice-mapped")
        mapper, _ = self.start_mapper("build-ids")
        pids = self.start(twice).pid, self.start(twice).pid
        for method in METHODS:
            self.check_build_ids(method, of=mapper.pid, pids=[mapper.pid])
            self.check_build_ids(method, of=pids, pids=pids)

    def program_with_build_id(self, name, build_id):
        """A copy of cat with this build ID."""
        path = shutil.copy(self.cat, f"{self.tmp}/{name}")
        with open(path, "rb+") as file:
            content = file.read()
            file.seek(content.index(bytes.fromhex(build_id_of(path))))
            file.write(bytes.fromhex(build_id))
        self.assertEqual(build_id_of(path), build_id)
        return path

    def build_id_lines(self, *args):
        """Run --build-ids; return the number, paths and processes of each ID."""
        heading, *lines = lines_of(self.run_tool("--all", "--build-ids", *args,
                                                 of=None))
        self.assertRegex(heading, "^build ID +processes  paths  PIDs$")
        found = {}
        for line in lines:
            if not re.fullmatch("files .*: [0-9]+", line):
                build_id, number, rest = line.split(None, 2)
                self.assertNotIn(build_id, found)
                found[build_id] = (int(number), *rest.rsplit("  ", 1))
        return found

    @needs("readelf")
    def test_build_ids_are_a_line_each(self):
        ids = "aa" * 20, "bb" * 20
        programs = [self.program_with_build_id(name, build_id) for name, build_id in
                    (("b", ids[0]), ("a", ids[0]), ("c", ids[1]))]
        *pids, other = (self.start(programs[i]).pid for i in (0, 1, 0, 2))
        pids.sort()
        for method in METHODS:
            found = self.build_id_lines(method)
            self.assertEqual(found[ids[0]], (3, f"{programs[1]}, {programs[0]}",
                                             ",".join(map(str, pids))))
            self.assertEqual(found[ids[1]], (1, programs[2], f"{other}"))
            paths = [line[1] for line in found.values()]
            self.assertEqual(paths, sorted(paths))

    @needs("readelf")
    def test_build_ids_have_as_many_processes_as_fit_the_terminal(self):
        program = self.program_with_build_id("many", "ee" * 20)
        of = tuple(sorted(self.start(program).pid for _ in range(30)))
        pids = [str(pid) for pid in of]
        head = f"{'ee' * 20}        30  {program}  "
        self.assertIn(head + ",".join(pids) + "\n", self.run_tool("--build-ids", of=of))
        for width in len(head) + 1, len(head) + 40, 1000:
            out = self.without_colours(self.on_terminal("--build-ids", of=of,
                                                        COLUMNS=str(width)))
            line, = (line for line in lines_of(out) if line.startswith(head))
            shown, _, rest = line[len(head):].partition(" +")
            nr = len(shown.split(","))
            self.assertEqual(shown, ",".join(pids[:nr]))
            self.assertEqual(nr + int(rest or 0), 30)
            if width == 1000:
                continue
            self.assertLessEqual(len(line), max(width, len(head) + 20))
            self.assertGreater(len(line) + len(pids[0]) + 1,
                               max(width, len(head) + 20))

    @needs_root
    @not_in_chroot
    @needs("mkfs.btrfs")
    @needs("readelf")
    @needs("unshare")
    def test_build_ids_of_files_with_the_same_numbers(self):
        """Programs in two subvolumes of btrfs, at a path each, and at one in two containers."""
        ids, top, of = ("cc" * 20, "dd" * 20), tempfile.mkdtemp(dir=self.tmp), {}
        image, one = self.write("image", ""), self.write("one", "")
        os.truncate(image, 256 << 20)
        subprocess.check_call(["mkfs.btrfs", "-q", image])
        if subprocess.call(["mount", "-o", "loop", image, top], stderr=DEVNULL):
            self.skipTest("cannot mount btrfs")
        self.addCleanup(subprocess.check_call, ["umount", "--lazy", top])
        for build_id in ids:
            subvolume = f"{top}/{build_id}"
            subprocess.check_call(["btrfs", "subvolume", "create", subvolume],
                                  stdout=DEVNULL)
            program = shutil.copy(self.program_with_build_id("of-volume", build_id),
                                  f"{subvolume}/program")
            of[build_id] = self.start(program).pid, self.start(
                "unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && exec "$1"',
                program, one).pid
        self.assertEqual(len({(vma.device, vma.inode) for pids in of.values()
                              for vma in maps(pids[0]) if top in vma.name}), 1)
        for method in METHODS:
            found = self.build_id_lines(method)
            for build_id, pids in of.items():
                paths = sorted((one, f"{top}/{build_id}/program"))
                self.assertEqual(found[build_id], (2, ", ".join(paths),
                                                   ",".join(map(str, sorted(pids)))))
            out = self.run_tool(method, "--sum", "-B", of=sum(of.values(), ()))
            self.assertEqual(sorted(re.findall(f"\\w+ {one}$", out, re.M)),
                             [f"{build_id} {one}" for build_id in ids])

    @needs_root
    @not_in_chroot
    def test_build_ids_counts_files_that_cannot_be_read(self):
        path = shutil.copy(self.cat, f"{self.tmp}/unreadable")
        os.link(path, f"{path}-but-here")
        target, other = (self.start(name, **NOBODY).pid
                         for name in (path, f"{path}-but-here"))
        os.unlink(path)
        args = "--build-ids", "-T"
        out = self.run_tool(*args, of=target, **NOBODY)
        self.assertEqual(lines_of(out)[-1], "files that cannot be read: 1")
        out = self.run_tool(*args, "--json", of=target, **NOBODY)
        self.assertEqual(json.loads(lines_of(out)[-1])["unreadable"], 1)
        # Its other name can, but may be that of another file with the same numbers.
        out = self.run_tool(*args, of=(target, other), **NOBODY)
        self.assertRegex(out, f" 1  {path}-but-here  {other}\n")
        self.assertEqual(lines_of(out)[-1], "files that cannot be read: 1")

    def on_terminal(self, *args, of="plain", status=0, **env):
        """Run the tool on a terminal of 80 columns; return the output."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        self.last_run = self.argv(args, of)
        child = subprocess.Popen(self.last_run, stdin=slave, stdout=slave, stderr=slave,
                                 env=os.environ | {"TERM": "xterm"} | env)
        self.addCleanup(stop, child)
        os.close(slave)
        out = b""
        with open(master, "rb", buffering=0) as terminal:
            try:
                while chunk := terminal.read(65536):
                    out += chunk
            except OSError as error:
                # The tool has closed the terminal.
                self.assertEqual(error.errno, errno.EIO)
        out = as_text(out).replace("\r\n", "\n")
        self.assertEqual(child.wait(), status, out)
        return out

    @staticmethod
    def without_colours(text):
        return re.sub("\033\\[[0-9]*m", "", text)

    def test_terminal_gets_lines_that_fit(self):
        path = f"{self.tmp}/{'0' * 100}/program"
        os.mkdir(os.path.dirname(path))
        target = self.start(shutil.copy(self.cat, path)).pid
        code = f"{find(target, 'r-xp', '/program').start:x}"

        def fits(width, work, ends, whole):
            out = self.without_colours(self.on_terminal(*work, of=target,
                                                        COLUMNS=str(width)))
            self.assertRegex(out, f"(?m){ends}$")
            self.assertLessEqual(max(map(len, lines_of(out))), width)
            self.assertIn(whole, self.run_tool(*work, of=target))

        cut = r"\.\.\.0*/program"
        for width, work in ((80, ["--list"]), (80, ["--sum"]), (80, [code]),
                            (120, ["--list", "-B"]), (120, ["--sum", "-B"]),
                            (120, ["-B", code])):
            fits(width, work, cut, f" {path}")
        out = self.on_terminal("--list", of=target, COLUMNS="300")
        self.assertEqual(lines_of(self.without_colours(out)), map_lines(target))
        os.unlink(path)
        fits(80, ["--deleted"], f" {cut}  {cut}", f" {path}  {path}\n")

    def test_colours_are_for_a_terminal_that_wants_them(self):
        self.assertIn("\033[32mr-xp\033[m", self.on_terminal("--list"))
        for no_colour in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
            out = self.on_terminal("--list", **no_colour)
            self.assertIn("r-xp", out)
            self.assertNotIn("\033", out)
        self.assertIn("\033", self.on_terminal("--list", NO_COLOR=""))
        self.assertNotIn("\033", self.run_tool("--list"))
        self.assertNotIn("\033", self.on_terminal("--list", "--json"))

    def test_no_control_character_gets_to_a_terminal(self):
        path = shutil.copy(self.cat, f"{self.tmp}/gone \x1b[2J\n\u202e")
        gone = self.start(path).pid
        os.unlink(path)
        code = f"{find(self.odd, 'r.*', '/control ').start:x}"
        control = "/control ? ? ? ? ? ? ?\n"
        for of, work, shown, env in (
                ("odd", ["--list"], control, {}), ("odd", ["--sum"], control, {}),
                ("odd", ["--list"], "/escape?[2J\n", {}),
                ("odd", ["--list"], "/b?yte\n", {"LC_ALL": "C"}),
                ("odd", [code], control, {}), ("odd", ["-v", code], control, {}),
                (gone, ["--deleted"], r"/gone ?[2J\012?", {}),
                (gone, ["--build-ids"], r"/gone ?[2J\012?", {})):
            out = self.on_terminal(*work, of=of,
                                   **{"COLUMNS": "300", "LC_ALL": "C.UTF-8"} | env)
            self.assertNotRegex(self.without_colours(out), CONTROLS)
            self.assertIn(shown, out)
        for of, work, shown in (
                *(("odd", work, r"/control \u007f \u0080 \u009f \u202a \u202e \u2066 "
                   r'\u2069"') for work in (["--list"], ["--sum"], ["-v", code])),
                *((gone, [work], r"/gone \u001b[2J\\012\u202e")
                  for work in ("--deleted", "--build-ids"))):
            out = self.run_tool(*work, "--json", of=of)
            self.assertNotRegex(out, CONTROLS)
            self.assertIn(shown, out)
        self.assertIn("/escape\033[2J\n", self.run_tool("--list", of="odd"))

    def test_no_control_character_of_a_program_gets_to_a_terminal(self):
        program = shutil.copy(self.cat, f"{self.tmp}/control \033[2J")
        master, slave = pty.openpty()
        actor, watcher, _ = self.watch(COLUMNS="300", program=program, stdout=slave)
        self.addCleanup(watcher.wait)
        os.close(slave)
        with open(master, "r", encoding="utf-8") as terminal:
            terminal.readline()
            command(actor, "execute")
            line = next(line for line in terminal if "executed" in line)
        self.assertNotRegex(self.without_colours(line), CONTROLS)
        self.assertRegex(line, r"/control \?\[2J$")

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
    setattr(ProcfsQueryTest, f"test_{name}", test)


def test_of_list(name, command_line, has):
    """Make a test of a line of LISTS."""
    def test(self):
        of, *args = shlex.split(command_line.format(tmp=self.tmp))
        vmas = [vma for vma in maps(getattr(self, of)) if has and has(vma)]
        self.assertEqual(bool(vmas), bool(has))
        status = 0 if vmas else 1
        self.prints([vma.line for vma in vmas], *args, of=of, status=status)
        for method, name in METHODS.items():
            self.assertEqual(self.run_json(method, *args, of=of, status=status), {
                "pid": getattr(self, of), "method": name,
                "vmas": [vma.json(method) for vma in vmas]})
    setattr(ProcfsQueryTest, f"test_{name}", test)


for case in LISTS:
    test_of_list(*case)
for error in ERRORS:
    test_of_error(*error)


def comment(text):
    """Print a diagnostic, which may have any bytes in it."""
    for line in text.split("\n"):
        line = re.sub("[^ -~]", lambda c: ascii(c[0])[1:-1], line)
        print(f"# {line[:300]}", flush=True)


class TapResult(unittest.TestResult):
    """Prints the results as TAP 13, each after its diagnostics."""

    def __init__(self, plan):
        super().__init__()
        print(f"TAP version 13\n1..{plan}", flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.verdict, self.remark = "ok", ""

    def stopTest(self, test):
        super().stopTest(test)
        name = test.id().rpartition(".test_")[2]
        print(f"{self.verdict} {self.testsRun} {name}{self.remark}", flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.explain(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.explain(test, err)
        if not isinstance(test, unittest.TestCase):
            print("Bail out! setUpClass failed", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.remark = f" # SKIP {reason}"

    def explain(self, test, err):
        self.verdict = "not ok"
        comment(f"last run: {getattr(test, 'last_run', None)}")
        for frame in traceback.extract_tb(err[2]):
            if frame.filename == __file__:
                comment(f"line {frame.lineno}, in {frame.name}: {frame.line}")
        comment(f"{err[0].__name__}: {err[1]}")


def hang(*_):
    raise TimeoutError(f"no end after {LIMIT} s")


def run_tests(case, tool, result_type):
    """Run all tests of a class; return the exit status."""
    os.environ["LC_ALL"] = "C"
    signal.signal(signal.SIGALRM, hang)
    # Raise an exception, so that nothing is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    if not os.access(tool, os.X_OK):
        print(f"Bail out! no program {tool}: build it first")
        return 1
    names = [name for name in vars(case) if name.startswith("test_")]
    result = result_type(len(names))
    unittest.TestSuite(map(case, names)).run(result)
    return 0 if result.wasSuccessful() else 1


def main():
    # The tests set these themselves.
    for name in "COLUMNS", "NO_COLOR":
        os.environ.pop(name, None)
    return run_tests(ProcfsQueryTest, TOOL, TapResult)


ROLES = {"--odd": be_odd, "--actor": be_actor, "--mapper": be_mapper}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in ROLES:
        sys.exit(ROLES[sys.argv[1]](*sys.argv[2:]))
    TOOL = os.path.realpath(sys.argv[1] if sys.argv[1:] else
                            os.environ.get("TOOL", f"{SOURCES}/procfs_query"))
    sys.exit(main())
