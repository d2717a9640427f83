// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

// Package procmap looks up the mappings (VMAs) of a process: by the ioctls
// PROCMAP_QUERY and PROCMAP_SCAN where the kernel has them, else from the text of
// /proc/PID/maps, with the same results. It needs no cgo, and has the rules of libprocmap: see
// procmap(7). A build ID that the kernel does not give is read from the mapped file, and that,
// as any file that is opened, may be one whose server does not answer.
package procmap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
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

// A mapping passes if it has all that is given of the first four.
const (
	Readable    Flags = 0x01
	Writable    Flags = 0x02
	Executable  Flags = 0x04
	Shared      Flags = 0x08
	WantBuildID Flags = 0x10000 // set the build ID

	coveringOrNext Flags = 0x10
	wantKernelID   Flags = 0x20000 // ask for it, although it is not known yet what is mapped

	permissions = Readable | Writable | Executable | Shared
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

	errUnread = errors.New("the build ID was not read")
	errNoMaps = fmt.Errorf("neither a maps file nor a directory of a process: %w", syscall.EINVAL)
	errAnswer = fmt.Errorf("unexpected answer of the kernel: %w", syscall.EPROTO)
)

// Options are options of Open. The zero value is usual.
type Options struct {
	Method Method // Open fails if the kernel refuses it
	Proc   string // where procfs is mounted; "": /proc

	// KernelBuildIDs asks the kernel for build IDs also if it may be mainline, that is, does not
	// have PROCMAP_SCAN. Mainline kernels from 6.12 to the first 6.18 can oops: any user can map a
	// file that brings it about, such as a memfd that only has a size. Others may wait for a file
	// server or a socket, even for ever. Set it only if you know your kernel.
	KernelBuildIDs bool
}

// Process is a handle on the mappings of one address space. One goroutine at a time may use
// it.
type Process struct {
	id      int // of the process; 0: unknown
	closed  bool
	options Options
	method  Method
	hasScan bool     // the kernel has it, but it may not be the method
	asksIDs bool     // the kernel, for build IDs
	process *os.File // the directory of the process in procfs, or nil
	dir     *os.File // that, or the one of another thread if the main one has exited
	maps    *os.File

	lines mapsReader
	text  *bufio.Reader // of lines
	query queryArg
	scan  scanArg
	vmas  []scanVMA
	batch []scanVMA // the rest of those in vmas
	data  []byte    // their names and build IDs
	name  [4096]byte
	got   [20]byte // a build ID
}

const oPath = 0x200000

// Open opens the mappings of a process.
func Open(pid int, options Options) (*Process, error) {
	p, err := openPID(pid, options)
	if err != nil {
		return nil, &Error{"open", pid, err}
	}
	return p, nil
}

func openPID(pid int, options Options) (*Process, error) {
	if options.Proc == "" {
		options.Proc = "/proc"
	}
	dir, err := os.OpenFile(fmt.Sprintf("%s/%d", options.Proc, pid), oPath|syscall.O_DIRECTORY, 0)
	if errors.Is(err, os.ErrNotExist) {
		err = missing(options.Proc, pid, err)
	}
	if err != nil {
		return nil, err
	}
	return openIn(dir, pid, options)
}

// missing returns why a process has no directory in procfs: that may be mounted with hidepid=4,
// and not be of the PID namespace of this process.
func missing(proc string, pid int, err error) error {
	self, _ := os.OpenFile(proc+"/self", oPath|syscall.O_DIRECTORY, 0)
	defer self.Close()
	var in syscall.Statfs_t
	if syscall.Statfs(proc, &in) != nil || in.Type != procMagic {
		return err
	}
	killErr := syscall.Kill(pid, 0)
	if pid > 0 && (killErr == nil || killErr == syscall.EPERM) &&
		status(self, "NSpid") == strconv.Itoa(os.Getpid()) {
		return syscall.EPERM
	}
	return ErrNoProcess
}

func openIn(dir *os.File, pid int, options Options) (*Process, error) {
	p := &Process{id: pid, options: options, process: dir, dir: dir}
	err := p.openMaps()
	if err == ErrNoProcess && isKernelThread(dir) {
		err = ErrNoMemory
	}
	// Between the opening and the first call, it may execute a program: in a row, not often.
	for try := 0; err == ErrNoProcess && try < 10 && hasMemory(dir); try++ {
		err = p.openMaps()
	}
	if err == ErrNoProcess {
		err = p.openThread()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// end ends what is exported. It keeps the handle alive until then, whose finalizer would close
// the descriptors.
func (p *Process) end(op string, err *error) {
	if *err != nil && p.closed {
		*err = os.ErrClosed
	}
	if *err != nil {
		*err = &Error{op, p.id, *err}
	}
	runtime.KeepAlive(p)
}

// openAt opens a file below a directory in procfs.
func openAt(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := syscall.Openat(int(dir.Fd()), name, flags|syscall.O_CLOEXEC, 0)
	for err == syscall.EINTR {
		fd, err = syscall.Openat(int(dir.Fd()), name, flags|syscall.O_CLOEXEC, 0)
	}
	// The runtime would poll one that does not block, and a FUSE server may never answer.
	if err == nil && flags&syscall.O_NONBLOCK != 0 {
		err = syscall.SetNonblock(fd, false)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openOwn opens a file in the directory of this process. The procfs of a PID namespace that does
// not have it has no such directory.
func openOwn(dir *os.File, name string, flags int) (*os.File, error) {
	file, err := openAt(dir, "../self/"+name, flags)
	if err == syscall.ENOENT {
		file, err = openAt(dir, "/proc/self/"+name, flags)
	}
	return file, err
}

// readAll returns the text of a short file in procfs, or "".
func readAll(dir *os.File, name string) string {
	file, err := openAt(dir, name, syscall.O_RDONLY)
	if err != nil {
		return ""
	}
	defer file.Close()
	text := make([]byte, 4096)
	n, _ := file.Read(text)
	return string(text[:n])
}

// status returns what the file status says, or "".
func status(dir *os.File, label string) string {
	_, value, _ := strings.Cut(readAll(dir, "status"), "\n"+label+":\t")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// hasMemory returns whether a process or thread has an address space.
func hasMemory(dir *os.File) bool { return status(dir, "VmSize") != "" }

// isKernelThread looks at the flags that follow the name in the file stat.
func isKernelThread(dir *os.File) bool {
	const flag, ofKernel = 6, 0x200000
	stat := readAll(dir, "stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= flag {
		return false
	}
	flags, _ := strconv.ParseUint(fields[flag], 10, 64)
	return flags&ofKernel != 0
}

// OpenFD opens the mappings of the process whose directory in procfs, or maps file, the descriptor
// is of; the caller keeps it. Another process may have opened the maps file and passed it on, since
// permission is checked only when it is opened. With that alone, OpenFile and Reopen return
// ErrNoDirectory, and no procfs has to be mounted.
func OpenFD(fd int, options Options) (*Process, error) {
	p, err := openFD(fd, options)
	if err != nil {
		return nil, &Error{"open", 0, err}
	}
	return p, nil
}

func openFD(fd int, options Options) (*Process, error) {
	var stat syscall.Stat_t
	var in syscall.Statfs_t
	err := syscall.Fstat(fd, &stat)
	if err == nil {
		err = syscall.Fstatfs(fd, &in)
	}
	if err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	if in.Type != procMagic {
		return nil, errNoMaps
	}
	file, err := dup(fd, "descriptor of a process")
	if err != nil {
		return nil, err
	}
	if options.Proc == "" {
		options.Proc = "/proc"
	}
	if stat.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return openIn(file, 0, options)
	}
	p := &Process{options: options}
	err = p.use(file)
	if err == nil && p.method == Text {
		err = p.nextLine(0, 0, new(Mapping))
	}
	if err == errAnswer {
		err = errNoMaps
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func dup(fd int, name string) (*os.File, error) {
	own, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("fcntl", errno)
	}
	return os.NewFile(own, name), nil
}

// openMaps opens maps in the directory of the handle.
func (p *Process) openMaps() error {
	maps, err := openAt(p.dir, "maps", syscall.O_RDONLY)
	if err == syscall.ENOENT {
		return gone(p.dir)
	}
	if err != nil {
		return err
	}
	p.maps.Close()
	return p.use(maps)
}

// gone returns why the directory of a process has no files: procfs may be mounted with hidepid=2.
func gone(dir *os.File) error {
	var stat syscall.Stat_t
	if syscall.Fstat(int(dir.Fd()), &stat) == syscall.ENOENT {
		return syscall.EPERM
	}
	return ErrNoProcess
}

// openThread opens maps of another thread than the main one, which has exited: its mappings are
// those of the process. The directory of a thread that has map_files is in the root of procfs,
// and that of another process by now if its ID is.
func (p *Process) openThread() error {
	tasks, err := openAt(p.process, "task", syscall.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return ErrNoProcess
	}
	defer tasks.Close()
	names, _ := tasks.Readdirnames(-1)
	pid := status(p.process, "Tgid")
	err = ErrNoProcess
	for i := 0; i < len(names) && err == ErrNoProcess; i++ {
		dir, openErr := openAt(p.process, "../"+names[i], oPath|syscall.O_DIRECTORY)
		if openErr != nil {
			continue
		}
		if p.dir != p.process {
			p.dir.Close()
		}
		p.dir = dir
		if status(dir, "Tgid") == pid {
			err = p.openMaps()
		}
	}
	return err
}

// use takes an opened maps file, and chooses the method.
func (p *Process) use(maps *os.File) error {
	p.maps, p.lines.maps = maps, maps
	p.method = p.options.Method
	if p.method == Text {
		return isThere(maps)
	}
	noQuery := p.refusal(Query)
	if noQuery == ErrNoProcess {
		return noQuery
	}
	noScan := noQuery
	if noQuery == nil {
		noScan = p.refusal(Scan)
	}
	// A kernel that does not have the scan may be mainline.
	p.hasScan = noScan == nil
	p.asksIDs = p.hasScan || noQuery == nil && p.options.KernelBuildIDs
	switch {
	case p.method == Query:
		return noQuery
	case p.method != Any:
		return p.refusal(p.method)
	case p.hasScan:
		p.method = Scan
	case noQuery == nil:
		p.method = Query
	default:
		p.method = Text
		return isThere(maps)
	}
	return nil
}

// Reopen returns another handle on the process, for another goroutine, or after an execve(2).
// Unlike Open, it never takes another process that has the same ID by now.
func (p *Process) Reopen() (again *Process, err error) {
	defer p.end("reopen", &err)
	return p.reopen()
}

func (p *Process) reopen() (*Process, error) {
	if p.process == nil {
		return nil, ErrNoDirectory
	}
	dir, err := dup(int(p.process.Fd()), p.process.Name())
	if err != nil {
		return nil, err
	}
	return openIn(dir, p.id, p.options)
}

// Close closes the handle.
func (p *Process) Close() (err error) {
	defer p.end("close", &err)
	err = p.maps.Close()
	p.process.Close()
	if p.dir != p.process {
		p.dir.Close()
	}
	p.closed = true
	return err
}

// Method returns the method that is used.
func (p *Process) Method() Method { return p.method }

// Refusal asks the kernel for a method. It returns nil if that works, or why not:
// syscall.ENOTTY if the kernel does not have it, or another error, as by seccomp.
func (p *Process) Refusal(method Method) (err error) {
	defer p.end("method", &err)
	if method == Scan {
		if err := p.refusal(Query); err != nil {
			return err
		}
	}
	return p.refusal(method)
}

// refusal asks for Query before Scan.
func (p *Process) refusal(method Method) error {
	switch method {
	case Text:
		return isThere(p.maps)
	case Query:
		err := p.doQuery(queryArg{flags: uint64(coveringOrNext)})
		if err == ErrNoMapping {
			err = nil
		}
		return err
	case Scan:
		// A kernel that has the scan refuses a size of 0 before it does anything.
		p.scan = scanArg{}
		_, err := p.ioctl(procmapScan, unsafe.Pointer(&p.scan))
		switch err {
		case syscall.EINVAL:
			return nil
		case nil:
			return errAnswer
		}
		return err
	}
	return fmt.Errorf("there is no method %q: %w", method, syscall.EINVAL)
}

// lookupError tells an execve(2) from an exit: either takes the address space away.
func (p *Process) lookupError(err error) error {
	if err != ErrNoProcess || p.process == nil || p.closed {
		return err
	}
	maps, err := openAt(p.process, "maps", syscall.O_RDONLY)
	switch err {
	case nil:
		defer maps.Close()
		if isThere(maps) != nil && !hasMemory(p.process) && !hasThreads(p.process) {
			return ErrNoProcess
		}
		return ErrOtherProgram
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		return err
	case syscall.EACCES, syscall.EPERM:
		return ErrOtherProgram
	}
	if gone(p.process) == syscall.EPERM {
		return ErrOtherProgram
	}
	return ErrNoProcess
}

// hasThreads returns whether there are others than the main one, which may have exited.
func hasThreads(dir *os.File) bool {
	number, _ := strconv.Atoi(status(dir, "Threads"))
	return number > 1
}

// Find returns the mapping at an address, if it passes the filters in flags.
func (p *Process) Find(addr uint64, flags Flags) (m Mapping, err error) {
	defer p.end("find", &err)
	if err := p.find(addr, flags&permissions, &m); err != nil {
		return Mapping{}, p.lookupError(err)
	}
	p.addBuildID(flags, &m)
	return m, nil
}

// find finds the mapping at addr; with coveringOrNext, or the next one that passes.
// wantKernelID is for when the name is known.
func (p *Process) find(addr uint64, flags Flags, m *Mapping) error {
	if p.method != Text {
		arg := queryArg{
			flags:    uint64(flags & (permissions | coveringOrNext)),
			addr:     addr,
			nameAddr: address(p.name[:]),
			nameSize: uint32(len(p.name)),
		}
		if flags&wantKernelID != 0 {
			arg.buildIDAddr, arg.buildIDSize = address(p.got[:]), uint32(len(p.got))
		}
		err := p.doQuery(arg)
		if err == nil {
			p.set(m, p.query.vma, p.name[:p.query.nameSize])
			m.BuildIDSize = copy(m.BuildID[:], p.got[:p.query.buildIDSize])
		}
		if err != syscall.ENAMETOOLONG || flags&wantKernelID != 0 {
			return err
		}
	}
	p.restart()
	err := p.nextLine(addr, flags, m)
	if err == nil && m.Start > addr && flags&coveringOrNext == 0 {
		return ErrNoMapping
	}
	return err
}

// List appends the mappings that pass the filters in flags to list, in rising order. What
// it returned, cut to [:0], can be passed again: then it allocates only for what is new.
// Each address is in one mapping at most; one that has changed meanwhile may be cut. If
// ctx ends, that is the error. With an error, list comes back as it was.
func (p *Process) List(ctx context.Context, list []Mapping, flags Flags) (_ []Mapping, err error) {
	defer p.end("list", &err)
	flags &= permissions | WantBuildID
	find := (*Process).find
	p.restart()
	if p.method == Scan {
		find = (*Process).nextOfScan
		p.batch, p.scan.walkEnd = nil, 0
	} else if p.method == Text || p.options.Method == Any && flags&permissions == 0 {
		// A query for each mapping costs more than its line in the text.
		find = (*Process).nextLine
	}
	before := len(list)
	for cursor := uint64(0); ; cursor = list[len(list)-1].End {
		if err := ctx.Err(); err != nil {
			return list[:before], err
		}
		if len(list) == cap(list) {
			list = append(list, Mapping{})[:len(list)]
		}
		m := &list[:len(list)+1][len(list)]
		err := find(p, cursor, flags|coveringOrNext, m)
		if err == syscall.ENAMETOOLONG { // of a scan: the text has it, and the rest
			find = (*Process).nextLine
			err = find(p, cursor, flags|coveringOrNext, m)
		}
		if err == ErrNoMapping {
			return list, nil
		}
		if err != nil {
			return list[:before], p.lookupError(err)
		}
		p.addBuildID(flags, m)
		if m.Start < cursor {
			if m.File != (File{}) {
				m.Offset += cursor - m.Start
			}
			m.Start = cursor
		}
		list = list[:len(list)+1]
	}
}
