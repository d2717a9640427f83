# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Look up the mappings (VMAs) of a process: libprocmap for Python.

	with procmap.Procmap(pid) as maps:
		mapping = maps.find(address)

Procmap is a handle on the mappings of one process, and Snapshot keeps all of its
mappings. Threads may share these objects and take turns: a walk is one call for each
mapping. A signal handler that calls an object while it interrupts a call of it gets
RuntimeError. Errors of the library are OSError, or the subclass for the number, such
as PermissionError. An integer that does not fit into the argument of the library
raises OverflowError. procmap(7) describes the library, and its manual has a page for
each function. The table of many processes over time is not here: it is for C and C++.
"""
from __future__ import annotations

import array
import collections.abc
import contextlib
import ctypes
import enum
import errno
import functools
import operator
import os
import threading
from typing import Any, Iterable, Iterator, NamedTuple, TypeVar, Union, overload

# Of procmap.h: setup tools read it, where there may be no library.
__version__ = "1.0.0"

__all__ = [
    "File", "Flag", "Location", "Mapping", "Method", "OpenFlag", "Procmap", "Snapshot", "version",
]


_Path = Union[str, bytes, "os.PathLike[Any]"]
_Self = TypeVar("_Self", bound="_Owner")


class Method(enum.IntEnum):
    """The interface of the kernel to use: see procmap_open_pid(3)."""

    ANY = 0
    QUERY = 1
    TEXT = 2
    SCAN = 3


class OpenFlag(enum.IntFlag):
    """What a handle may do: see procmap_open_pid(3)."""

    KERNEL_BUILD_IDS = 0x01
    NO_SERVERS = 0x02
    ALL_SERVERS = 0x04


class Flag(enum.IntFlag):
    """Which mappings match, and what to return of them: see procmap_find(3)."""

    READABLE = 0x01
    WRITABLE = 0x02
    EXECUTABLE = 0x04
    SHARED = 0x08
    COVERING_OR_NEXT = 0x10
    FILE_BACKED = 0x20
    DELETED = 0x40
    REPLACED = 0x80
    UNVERIFIED = 0x100
    WANT_BUILD_ID = 0x10000
    WANT_PAGE_SIZE = 0x20000
    WANT_DELETED = 0x40000


class Mapping(NamedTuple):
    """A mapping: see procmap_find(3).

    A byte of the name that is not valid in the encoding of file names is escaped as
    by os.fsdecode(). The build ID is None if there is none or it was not wanted;
    build_id_error is the errno if the file could not be opened for it, or else 0.
    """

    start: int
    end: int
    offset: int
    inode: int
    page_size: int
    name: str
    flags: Flag
    dev_major: int
    dev_minor: int
    build_id: bytes | None
    build_id_error: int

    def offset_of(self, address: int) -> int:
        """The file offset of an address in this mapping."""
        return self.offset + (address - self.start)


class Location(NamedTuple):
    """Where an address is. Without a mapping, which is None then, the offset is 0."""

    address: int
    mapping: Mapping | None
    offset: int


# The library may append fields to the structures that it hands out by pointer.


class _Mapping(ctypes.Structure):
    _fields_ = [
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("inode", ctypes.c_uint64),
        ("page_size", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("name_len", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("dev_major", ctypes.c_uint32),
        ("dev_minor", ctypes.c_uint32),
        ("build_id_size", ctypes.c_int32),
        ("build_id", ctypes.c_uint8 * 20),
    ]


_MappingPointer = ctypes.POINTER(_Mapping)


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("method", ctypes.c_int),
        ("proc", ctypes.c_char_p),
        ("flags", ctypes.c_uint),
    ]


class _FileOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("root", ctypes.c_char_p),
        ("proc", ctypes.c_char_p),
    ]


class _Resolved(ctypes.Structure):
    _fields_ = [
        ("mappings", ctypes.POINTER(_MappingPointer)),
        ("nr_addrs", ctypes.c_size_t),
    ]


_ResolvedPointer = ctypes.POINTER(_Resolved)
_Changed = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, _MappingPointer, _MappingPointer
)
_EXACT, _GLOB = 0, 1

_library = ctypes.CDLL("libprocmap.so.1")


def _range_of(integer):
    """The first and last value of an integer type of C."""
    bits = 8 * ctypes.sizeof(integer)
    if integer(-1).value < 0:
        return -1 << bits - 1, (1 << bits - 1) - 1
    return 0, (1 << bits) - 1


_RANGES = {
    integer: _range_of(integer)
    for integer in (
        ctypes.c_int, ctypes.c_uint, ctypes.c_int32, ctypes.c_uint32,
        ctypes.c_uint64, ctypes.c_size_t,
    )
}


def _in_range(value, first, last):
    """The integer, which ctypes would cut to the size of its type."""
    value = operator.index(value)
    if not first <= value <= last:
        raise OverflowError(f"{value:#x} is not from {first:#x} to {last:#x}")
    return value


def _without_nul(string):
    """The bytes of a string, which would end at a NUL in C."""
    string = os.fsencode(string)
    if b"\0" in string:
        raise ValueError("embedded null byte")
    return string


def _check(result, function, _arguments):
    if result < 0:
        raise OSError(-result, f"{function.__name__}: {os.strerror(-result)}")
    return result


def _declare(name, *argtypes, restype=ctypes.c_int):
    function = getattr(_library, name)
    function.argtypes = argtypes
    function.restype = restype
    if restype is ctypes.c_int:
        function.errcheck = _check
    ranges = [(i, *_RANGES[t]) for i, t in enumerate(argtypes) if t in _RANGES]
    if not ranges:
        return function

    @functools.wraps(function, updated=())
    def checked(*arguments):
        arguments = list(arguments)
        for i, first, last in ranges:
            arguments[i] = _in_range(arguments[i], first, last)
        return function(*arguments)

    return checked


_pointer = ctypes.c_void_p
_to_pointer = ctypes.POINTER(ctypes.c_void_p)
_int = ctypes.c_int
_flags = ctypes.c_uint
_u64 = ctypes.c_uint64
_to_u64 = ctypes.POINTER(_u64)
_to_mapping = ctypes.POINTER(_MappingPointer)

_version = _declare("procmap_version", restype=ctypes.c_uint)
_to_options = ctypes.POINTER(_Options)
_open_pid = _declare("procmap_open_pid", _int, _to_options, _to_pointer)
_open_self = _declare("procmap_open_self", _to_options, _to_pointer)
_open_pidfd = _declare("procmap_open_pidfd", _int, _to_options, _to_pointer)
_open_fd = _declare("procmap_open_fd", _int, _to_options, _to_pointer)
_open_text = _declare(
    "procmap_open_text", ctypes.c_char_p, ctypes.c_size_t, _to_options, _to_pointer
)
_reopen = _declare("procmap_reopen", _pointer)
_close = _declare("procmap_close", _pointer, restype=None)
_get_method = _declare("procmap_get_method", _pointer)
_check_method = _declare("procmap_check_method", _pointer, _int)
_find = _declare("procmap_find", _pointer, _u64, _flags, _to_mapping)
_next = _declare("procmap_next", _pointer, _to_u64, _flags, _to_mapping)
_find_name = _declare(
    "procmap_find_name",
    _pointer,
    ctypes.c_char_p,
    _int,
    _to_u64,
    _flags,
    _to_mapping,
)
_find_file = _declare(
    "procmap_find_file", _pointer, _pointer, _to_u64, _flags, _to_mapping
)
_resolve = _declare(
    "procmap_resolve",
    _pointer,
    _to_u64,
    ctypes.c_size_t,
    _flags,
    ctypes.POINTER(_ResolvedPointer),
)
_free_resolved = _declare("procmap_free_resolved", _ResolvedPointer, restype=None)
_open_file = _declare(
    "procmap_open_file",
    _pointer,
    _MappingPointer,
    ctypes.POINTER(_FileOptions),
    _to_pointer,
)
_open_path = _declare("procmap_open_path", _pointer, ctypes.c_char_p, _to_pointer)
_open_file_fd = _declare("procmap_open_file_fd", _int, _to_pointer)
_file_fd = _declare("procmap_file_fd", _pointer)
_file_set_begin = _declare("procmap_file_set_begin", _pointer, _u64)
_file_mapped_address = _declare(
    "procmap_file_mapped_address", _pointer, _MappingPointer, _u64, _to_u64
)
_file_address = _declare("procmap_file_address", _pointer, _u64, _to_u64)
_file_build_id = _declare(
    "procmap_file_build_id", _pointer, ctypes.POINTER(ctypes.c_uint8)
)
_close_file = _declare("procmap_close_file", _pointer, restype=None)
_snapshot_take = _declare("procmap_snapshot_take", _pointer, _flags, _to_pointer)
_snapshot_refresh = _declare("procmap_snapshot_refresh", _pointer, _pointer)
_snapshot_is_consistent = _declare("procmap_snapshot_is_consistent", _pointer)
_snapshot_count = _declare(
    "procmap_snapshot_count", _pointer, restype=ctypes.c_size_t
)
_snapshot_at = _declare(
    "procmap_snapshot_at", _pointer, ctypes.c_size_t, restype=_MappingPointer
)
_snapshot_find = _declare(
    "procmap_snapshot_find", _pointer, _u64, restype=_MappingPointer
)
_snapshot_compare = _declare(
    "procmap_snapshot_compare", _pointer, _pointer, _Changed, _pointer
)
_snapshot_free = _declare("procmap_snapshot_free", _pointer, restype=None)


def _copy(pointer):
    """The mapping at a pointer, or None for NULL."""
    if not pointer:
        return None
    mapping = pointer.contents
    size = mapping.build_id_size
    return Mapping(
        mapping.start,
        mapping.end,
        mapping.offset,
        mapping.inode,
        mapping.page_size,
        os.fsdecode(mapping.name),
        Flag(mapping.flags),
        mapping.dev_major,
        mapping.dev_minor,
        bytes(mapping.build_id[:size]) if size > 0 else None,
        -size if size < 0 else 0,
    )


def _reference(mapping):
    """A mapping for the library, with its build ID or the error of that."""
    name = _without_nul(mapping.name)
    build_id = mapping.build_id or b""
    reference = _Mapping(
        name=name,
        name_len=len(name),
        build_id_size=len(build_id) or -mapping.build_id_error,
        build_id=tuple(build_id),
    )
    for field, integer in _Mapping._fields_[:10]:
        if not field.startswith("name"):
            value = _in_range(getattr(mapping, field), *_RANGES[integer])
            setattr(reference, field, value)
    return ctypes.byref(reference)


def _options(method, proc, flags):
    return _Options(
        size=ctypes.sizeof(_Options),
        method=_in_range(method, *_RANGES[ctypes.c_int]),
        proc=None if proc is None else _without_nul(proc),
        flags=_in_range(flags, *_RANGES[ctypes.c_uint]),
    )


def version() -> tuple[int, int, int]:
    """The version of the library: major, minor and patch."""
    number = _version()
    return number >> 16, number >> 8 & 0xFF, number & 0xFF


class _Owner:
    """The owner of a pointer that _free frees."""

    _free: Any = None
    _owned: Any = None

    def __new__(cls, *_arguments, **_options):
        new = super().__new__(cls)
        new._lock = threading.RLock()
        new._is_in_use = False
        return new

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __del__(self):
        self._free_owned()

    def __reduce__(self):
        raise TypeError(f"{type(self).__name__} cannot be copied")

    def close(self) -> None:
        """Free what the object owns. It cannot be used after that."""
        with contextlib.suppress(ValueError), self._in_use():
            self._free_owned()

    def _free_owned(self):
        owned, self._owned = self._owned, None
        if owned:
            self._free(owned)

    @contextlib.contextmanager
    def _in_use(self):
        """The pointer, for a call and the copy of its result, without another call.

        The thread of the call may come here, too, by a signal handler. It cannot wait.
        """
        with self._lock:
            if self._is_in_use:
                raise RuntimeError(f"{type(self).__name__} is in use by the same thread")
            if not self._owned:
                raise ValueError(f"{type(self).__name__} is closed")
            try:
                self._is_in_use = True
                yield self._owned
            finally:
                self._is_in_use = False


class Procmap(_Owner):
    """A handle on the mappings of a process; without a pid, of this one.

    proc is where procfs is mounted, if not at /proc, and flags are OpenFlag: see
    procmap_open_pid(3).
    """

    _free = staticmethod(_close)

    def __init__(self, pid: int | None = None, method: int = Method.ANY,
                 proc: _Path | None = None, flags: int = 0) -> None:
        if pid is None:
            self._open(_open_self, _options(method, proc, flags))
        else:
            self._open(_open_pid, pid, _options(method, proc, flags))

    def _open(self, function, *arguments):
        pointer = ctypes.c_void_p()
        function(*arguments, ctypes.byref(pointer))
        self._owned = pointer

    @classmethod
    def from_fd(cls, fd: int, method: int = Method.ANY, flags: int = 0) -> Procmap:
        """A handle by the descriptor of a maps file, or of the directory of a process.

        It is duplicated. With a maps file alone, no file of the process can be opened:
        see procmap_open_fd(3).
        """
        new = cls.__new__(cls)
        new._open(_open_fd, fd, _options(method, None, flags))
        return new

    @classmethod
    def from_pidfd(cls, pidfd: int, method: int = Method.ANY, proc: _Path | None = None,
                   flags: int = 0) -> Procmap:
        """A handle on the process of a descriptor from os.pidfd_open()."""
        new = cls.__new__(cls)
        new._open(_open_pidfd, pidfd, _options(method, proc, flags))
        return new

    @classmethod
    def from_text(cls, text: bytes) -> Procmap:
        """A handle on the content of a maps or smaps file, as bytes."""
        new = cls.__new__(cls)
        new._open(_open_text, text, len(text), None)
        new._text = text  # the library reads it as long as the handle is open
        return new

    def reopen(self) -> None:
        """Go on with the program that the process has executed."""
        with self._in_use() as pointer:
            _reopen(pointer)

    @property
    def method(self) -> Method:
        """The method of find()."""
        with self._in_use() as pointer:
            return Method(_get_method(pointer))

    def check_method(self, method: int) -> None:
        """Raise OSError if the kernel refuses a method."""
        with self._in_use() as pointer:
            _check_method(pointer, method)

    def find(self, address: int, flags: int = 0) -> Mapping | None:
        """The mapping at an address, or None."""
        found = _MappingPointer()
        with self._in_use() as pointer:
            try:
                _find(pointer, address, flags, ctypes.byref(found))
            except FileNotFoundError:
                return None
            return _copy(found)

    def _walk(self, function, *arguments):
        cursor = ctypes.c_uint64()
        found = _MappingPointer()
        unknown = None
        while True:
            with self._in_use() as pointer:
                try:
                    function(
                        pointer,
                        *arguments[:-1],
                        ctypes.byref(cursor),
                        arguments[-1],
                        ctypes.byref(found),
                    )
                except FileNotFoundError:
                    break
                except OSError as error:
                    if error.errno != errno.EXDEV:
                        raise
                    unknown = error
                    continue
                mapping = _copy(found)
            yield mapping
        if unknown:
            raise unknown

    def mappings(self, flags: int = 0) -> Iterator[Mapping]:
        """Walk over the mappings that pass the filters, in rising order."""
        return self._walk(_next, flags)

    def __iter__(self) -> Iterator[Mapping]:
        return self.mappings()

    def find_name(self, pattern: _Path, flags: int = 0,
                  glob: bool = False) -> Iterator[Mapping]:
        """Walk over the mappings with a name: see procmap_find_name(3)."""
        return self._walk(
            _find_name, _without_nul(pattern), _GLOB if glob else _EXACT, flags
        )

    def find_file(self, file: File, flags: int = 0) -> Iterator[Mapping]:
        """Walk over the mappings of a File: see procmap_find_file(3).

        At the end, OSError with EXDEV is raised if others may be of the file, too.
        """
        def find(pointer, *arguments):
            with file._in_use() as of_file:
                _find_file(pointer, of_file, *arguments)

        return self._walk(find, flags)

    def resolve(self, addresses: Iterable[int], flags: int = 0) -> list[Location]:
        """The locations of many addresses, in their order."""
        addresses = array.array("Q", addresses)
        number = len(addresses)
        resolved = _ResolvedPointer()
        with self._in_use() as pointer:
            if not number:
                return []
            values = (ctypes.c_uint64 * number).from_buffer(addresses)
            _resolve(pointer, values, number, flags, ctypes.byref(resolved))
        try:
            copies = {}
            locations = []
            for address, pointer in zip(addresses, resolved.contents.mappings):
                key = ctypes.cast(pointer, ctypes.c_void_p).value
                if key not in copies:
                    copies[key] = _copy(pointer)
                mapping = copies[key]
                has_offset = mapping and (mapping.inode or mapping.dev_major)
                offset = mapping.offset_of(address) if has_offset else 0
                locations.append(Location(address, mapping, offset))
            return locations
        finally:
            _free_resolved(resolved)

    def open_file(self, mapping: Mapping) -> File:
        """Open the file of a mapping: see File."""
        return File(mapping, self)

    def snapshot(self, flags: int = 0) -> Snapshot:
        """Keep all mappings that pass the filters."""
        return Snapshot(self, flags)


class File(_Owner):
    """An opened file, for its ELF addresses and its build ID.

    It is that of a mapping: of a handle, or of a snapshot of its process. Without a
    handle, as when the process has exited, it is opened by its name below root, and
    procfs is at proc. Or it is that of a descriptor, which is duplicated. See
    procmap_open_file(3).
    """

    _free = staticmethod(_close_file)

    def __init__(self, file: Mapping | int, maps: Procmap | None = None,
                 root: _Path | None = None, proc: _Path | None = None) -> None:
        pointer = ctypes.c_void_p()
        if isinstance(file, Mapping):
            options = _FileOptions(
                size=ctypes.sizeof(_FileOptions),
                root=None if root is None else _without_nul(root),
                proc=None if proc is None else _without_nul(proc),
            )
            with maps._in_use() if maps else contextlib.nullcontext() as handle:
                _open_file(
                    handle,
                    _reference(file),
                    options,
                    ctypes.byref(pointer),
                )
        else:
            _open_file_fd(file, ctypes.byref(pointer))
        self._owned = pointer

    @classmethod
    def in_root(cls, maps: Procmap, path: _Path) -> File:
        """A file by its path, such as one with debug information, in the process's root."""
        pointer = ctypes.c_void_p()
        with maps._in_use() as handle:
            try:
                _open_path(handle, _without_nul(path), ctypes.byref(pointer))
            except OSError as error:
                error.filename = os.fspath(path)
                raise
        new = cls.__new__(cls)
        new._owned = pointer
        return new

    def set_begin(self, begin: int) -> None:
        """Take the ELF file that begins at an offset, such as one in an archive."""
        with self._in_use() as pointer:
            _file_set_begin(pointer, begin)

    def fileno(self) -> int:
        """The descriptor, which is closed with the file."""
        with self._in_use() as pointer:
            return _file_fd(pointer)

    def mapped_address(self, mapping: Mapping, address: int) -> int:
        """The address in the ELF file of an address in a mapping of it."""
        result = ctypes.c_uint64()
        with self._in_use() as pointer:
            _file_mapped_address(
                pointer, _reference(mapping), address, ctypes.byref(result)
            )
        return result.value

    def address(self, offset: int) -> int:
        """The same at a file offset, which two mappings of a page may have in common."""
        address = ctypes.c_uint64()
        with self._in_use() as pointer:
            _file_address(pointer, offset, ctypes.byref(address))
        return address.value

    @property
    def build_id(self) -> bytes | None:
        """The build ID, or None."""
        build_id = (ctypes.c_uint8 * 20)()
        with self._in_use() as pointer:
            size = _file_build_id(pointer, build_id)
        return bytes(build_id[:size]) or None


class Snapshot(_Owner, collections.abc.Sequence[Mapping]):
    """All mappings of a process at one time: a sequence, in rising order.

    A slice is a list.
    """

    _free = staticmethod(_snapshot_free)

    def __init__(self, maps: Procmap, flags: int = 0) -> None:
        pointer = ctypes.c_void_p()
        with maps._in_use() as handle:
            _snapshot_take(handle, flags, ctypes.byref(pointer))
        self._owned = pointer

    def refresh(self, maps: Procmap) -> bool:
        """Bring it up to date, by the handle that it was taken from.

        Returns whether it has changed.
        """
        with self._in_use() as pointer, maps._in_use() as handle:
            return bool(_snapshot_refresh(pointer, handle))

    @property
    def is_consistent(self) -> bool:
        """Did the kernel say that nothing changed while the mappings were read?"""
        with self._in_use() as pointer:
            return bool(_snapshot_is_consistent(pointer))

    def __len__(self) -> int:
        with self._in_use() as pointer:
            return _snapshot_count(pointer)

    @overload
    def __getitem__(self, index: int) -> Mapping: ...

    @overload
    def __getitem__(self, index: slice) -> list[Mapping]: ...

    def __getitem__(self, index: int | slice) -> Mapping | list[Mapping]:
        with self._in_use() as pointer:
            number = _snapshot_count(pointer)
            if isinstance(index, slice):
                indices = range(*index.indices(number))
                return [_copy(_snapshot_at(pointer, i)) for i in indices]
            at = operator.index(index)
            if at < 0:
                at += number
            if not 0 <= at < number:
                raise IndexError(index)
            return _copy(_snapshot_at(pointer, at))

    def find(self, address: int) -> Mapping | None:
        """The mapping at an address, or None."""
        with self._in_use() as pointer:
            return _copy(_snapshot_find(pointer, address))

    def compare(self, after: Snapshot) -> list[tuple[Mapping | None, Mapping | None]]:
        """The differences to a later snapshot: a list of pairs (was, is).

        One of the two is None for a mapping that has appeared or vanished.
        """
        differences = []
        raised = []

        # ctypes prints what is raised here, a KeyboardInterrupt for one, and goes on.
        def changed(_context, was, now):
            try:
                differences.append((_copy(was), _copy(now)))
            except BaseException as error:
                raised.append(error)
            return len(raised)

        with contextlib.ExitStack() as stack:
            # Two threads that compare the same two wait in the same order.
            pointers = {
                snapshot: stack.enter_context(snapshot._in_use())
                for snapshot in sorted({self, after}, key=id)
            }
            _snapshot_compare(pointers[self], pointers[after], _Changed(changed), None)
        if raised:
            raise raised.pop()
        return differences
