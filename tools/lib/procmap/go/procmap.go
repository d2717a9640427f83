// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build !plan9

// Package procmap looks up the mappings (VMAs) of a process: by the ioctls
// PROCMAP_QUERY and PROCMAP_SCAN where the kernel has them, else from the text of
// /proc/PID/maps, with the same results. It needs no cgo, and has the rules of libprocmap: see
// procmap(7). A build ID that the kernel does not give is read from the mapped file, and that,
// as any file that is opened, may be one whose server does not answer.
//
// On another system than Linux, or another machine than x86 and arm64, all functions return an
// error that wraps syscall.ENOSYS.
package procmap

import (
	"fmt"
	"syscall"
)

// Method is an interface of the kernel.
type Method string

// The methods. Any is the fastest one for each operation.
const (
	Any   Method = ""
	Query Method = "query" // PROCMAP_QUERY, in mainline since Linux 6.11
	Text  Method = "text"  // the text of maps
	Scan  Method = "scan"  // PROCMAP_SCAN for lists, PROCMAP_QUERY for single mappings
)

// Flags are the permissions of a mapping, also as filters, and fields to add.
type Flags uint64

// A mapping passes if it has all that is given of the first four; with AnyOf, one of them.
const (
	Readable    Flags = 0x01
	Writable    Flags = 0x02
	Executable  Flags = 0x04
	Shared      Flags = 0x08
	AnyOf       Flags = 0x40000
	WantBuildID Flags = 0x10000 // set the build ID
)

// File identifies a mapped file as maps does; the zero value is none. Those of two files may
// be equal, as on overlayfs.
type File struct {
	Inode    uint64
	DevMajor uint32
	DevMinor uint32
}

// VMA has fields of a mapping in the order of the kernel's structures. Addresses, sizes and
// offsets are in bytes.
type VMA struct {
	Start    uint64 // first address
	End      uint64 // first address past it
	Flags    Flags  // permissions
	PageSize uint64 // 0: unknown, as always by Text
	Offset   uint64 // of Start in the file
	File
}

// Mapping is a mapping of a process.
type Mapping struct {
	VMA
	Name        string   // as in the text: a newline is \012, and " (deleted)" may follow
	Deleted     bool     // Name ends so, as that of a file may that is there
	BuildID     [20]byte // of an ELF file, or of the vDSO
	BuildIDSize int      // 0: none
	BuildIDErr  error    // why it is not known: those of OpenFile, or of reading the file
}

// Error is what all functions return: see the errors below.
type Error struct {
	Op  string
	PID int // 0: unknown, see OpenFD
	Err error
}

func (e *Error) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("procmap: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("procmap: process %d: %s: %v", e.PID, e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Errors, for errors.Is, which also finds the errno of libprocmap in them. Others are those of
// system calls, as os.ErrPermission; os.ErrClosed; or that of a context.
var (
	ErrNoMapping = fmt.Errorf("no mapping at the address: %w", syscall.ENOENT)
	// ErrNoProcess says that the process has exited, or that there was none.
	ErrNoProcess error = syscall.ESRCH
	// ErrNoMemory says that it is a kernel thread. It is an ErrNoProcess, too.
	ErrNoMemory = fmt.Errorf("a kernel thread has no memory of its own: %w", ErrNoProcess)
	// ErrOtherProgram says that the process has executed another program: see Reopen.
	ErrOtherProgram = fmt.Errorf("another program was executed: %w", syscall.ESTALE)
	// ErrNoDirectory says that the handle is on a maps file alone: see OpenFD. For Reopen,
	// libprocmap returns EINVAL.
	ErrNoDirectory = fmt.Errorf("without the directory of the process: %w", syscall.ENODEV)
	// ErrNoFile says that what is mapped is no regular file.
	ErrNoFile = fmt.Errorf("no regular file is mapped: %w", syscall.ENODEV)
	// ErrOtherFile says that what was found is not known to be the file that is mapped.
	ErrOtherFile = fmt.Errorf("the mapped file was not found: %w", syscall.ESTALE)
)

// Options are options of Open. The zero value is usual.
type Options struct {
	Method Method // Open fails if the kernel refuses it
	Proc   string // where procfs is mounted; "": /proc. Or a directory with 1234/maps, for tests

	// KernelBuildIDs asks the kernel for build IDs also if its query may be mainline's, that is,
	// if no PROCMAP_SCAN says otherwise. Mainline kernels from 6.12 to the first 6.18 can oops: any user can map a
	// file that brings it about, such as a memfd that only has a size. Others may wait for a file
	// server or a socket, even for ever. Set it only if you know your kernel.
	KernelBuildIDs bool
}
