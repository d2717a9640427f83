# SPDX-License-Identifier: GPL-2.0
"""What the tests of procfs_query share: processes to look at, and runs of the tool.

A test is run as NAME_test.py [TOOL]; without TOOL it is $TOOL, or the program in the
directory above this file. Results are TAP 13 on standard output; the exit status is 1 if a
test failed. As a program, this file is one of the processes.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import traceback
import typing
import unittest
from subprocess import DEVNULL, PIPE

# Debian's packages, for an interpreter that is not Debian's, too.
sys.path.append("/usr/lib/python3/dist-packages")
import jsonschema  # noqa: E402, python3-jsonschema

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCES = os.path.dirname(HERE)

# Processes of this file.
ROLE = sys.executable, os.path.realpath(__file__)

# Seconds after which a test counts as hung.
LIMIT = 600

PAGE = mmap.PAGESIZE
PROCMAP_QUERY = 0xC0686611
PROCMAP_SCAN = 0xC06866E0
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
NOT_AN_ADDRESS = "is not a hexadecimal address"
NO_MAPPINGS = "has no mappings: it exited, or is a kernel thread"

# With --all; a security module may hide processes even from root.
SKIPPED = re.compile(r"^(procfs_query: skipped \d+ process(es)? without permission: .*\n)?$")
# With --deleted; up to Linux 6.6, maps has devices of an overlay's layers, which no mount has.
JUDGED = re.compile(SKIPPED.pattern[:-1] +
                    r"(procfs_query: \d+ mappings? .* judged by name: .*\n)?$")


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
# The best one is the last.
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
                "page_size": None if method == "-T" else PAGE,
                **self.json_offset(), **self.json_device(), **self.json_name()}

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


def find(pid, permissions, name):
    """The first mapping of a process with these permissions and this name."""
    return next(vma for vma in maps(pid)
                if re.fullmatch(permissions, vma.permissions) and name in vma.name)


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


def program_of(pid):
    """The path of the program that a process runs, or None."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


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
    for _ in range(2):
        kept.append(mmap.mmap(-1, PAGE))
        kept[-1][0] = 1
    for name in "elf", "same", "[s]ame", "deleted":
        keep(name, elf)
    os.unlink("deleted")
    os.link("elf", "linked")
    keep("linked", elf)
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


class ToolTest(unittest.TestCase):
    """Tests of the tool: a method test_NAME is the test NAME."""

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

        cls.plain = start(cls.addClassCleanup, cls.cat).pid
        cls.odd = start(cls.addClassCleanup, *ROLE, "--odd",
                        cls.tmp).pid
        with open(f"{cls.tmp}/zombie", encoding="ascii") as file:
            cls.zombie = int(file.read())
        with subprocess.Popen(["true"]) as gone:
            cls.gone = gone.pid
        cls.told_gone = f"procfs_query: there is no process {cls.gone}: see ps(1)\n"
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

    def run_tool(self, *args, of="plain", status=0, message=None, stdin=b"", **popen):
        """Run the tool; return its output.

        It has to exit with this status, with this message on standard error (a
        string or a pattern).
        """
        if message is None:
            message = JUDGED if "--deleted" in args else SKIPPED if "--all" in args else ""
        self.last_run = self.argv(args, of)
        done = subprocess.run(self.last_run, input=stdin,
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

    @staticmethod
    @contextlib.contextmanager
    def opened(path):
        """A descriptor of a file."""
        fd = os.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)

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

    def refused(self, message, *args, **options):
        """Run the tool, which has to fail with this one line, or pattern of it."""
        if isinstance(message, str):
            message = f"procfs_query: {message}\n"
        self.run_tool(*args, status=2, message=message, **options)

    def without_ioctl(self):
        """For subprocess: the maps file of the process is a copy, which has none."""
        with open(f"/proc/{self.plain}/maps", "rb") as file:
            return self.with_files({f"/proc/{self.plain}/maps": file.read()})

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

    def program_with_build_id(self, name, build_id):
        """A copy of cat with this build ID."""
        path = shutil.copy(self.cat, f"{self.tmp}/{name}")
        with open(path, "rb+") as file:
            content = file.read()
            file.seek(content.index(bytes.fromhex(build_id_of(path))))
            file.write(bytes.fromhex(build_id))
        self.assertEqual(build_id_of(path), build_id)
        return path

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
            # The end is EIO. n_tty_read() looks for input first, and for a tool that has
            # closed the terminal then: what came in between is there for the next read.
            for _ in range(2):
                with self.assertRaises(OSError) as caught:
                    while chunk := terminal.read(65536):
                        out += chunk
                self.assertEqual(caught.exception.errno, errno.EIO)
        out = as_text(out).replace("\r\n", "\n")
        self.assertEqual(child.wait(), status, out)
        return out

    def watch(self, *args, program=None, stdout=PIPE, **env):
        """Start a process that acts on command, and the tool to watch it."""
        actor = self.start(*ROLE, "--actor", program or self.cat)
        watcher = subprocess.Popen(self.argv(("--list", "-i", "0.05", *args),
                                             actor.pid), stdin=PIPE, stdout=stdout,
                                   stderr=DEVNULL, env=os.environ | env)
        self.addCleanup(stop, watcher)
        return actor, watcher, (as_text(line) for line in watcher.stdout or ())

    @staticmethod
    def without_colours(text):
        return re.sub("\033\\[[0-9]*m", "", text)


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
            if os.path.dirname(os.path.realpath(frame.filename)) == HERE:
                comment(f"line {frame.lineno}, in {frame.name}: {frame.line}")
        comment(f"{err[0].__name__}: {err[1]}")


def hang(*_):
    raise TimeoutError(f"no end after {LIMIT} s")


def main(case):
    """Run the tests of a class on the tool that the command line or $TOOL names."""
    global TOOL     # pylint: disable=global-statement
    TOOL = os.path.realpath(sys.argv[1] if sys.argv[1:] else
                            os.environ.get("TOOL", f"{SOURCES}/procfs_query"))
    if not os.access(TOOL, os.X_OK):
        print(f"Bail out! no program {TOOL}: build it first")
        sys.exit(1)
    # The tests set these themselves.
    for name in "COLUMNS", "NO_COLOR":
        os.environ.pop(name, None)
    os.environ["LC_ALL"] = "C"
    signal.signal(signal.SIGALRM, hang)
    # Raise an exception, so that nothing is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    names = [name for name in vars(case) if name.startswith("test_")]
    result = TapResult(len(names))
    unittest.TestSuite(map(case, names)).run(result)
    sys.exit(not result.wasSuccessful())


ROLES = {"--odd": be_odd, "--actor": be_actor}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
