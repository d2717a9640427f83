// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

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

const (
	oPath = 0x200000

	coveringOrNext Flags = 0x10
	wantKernelID   Flags = 0x20000 // ask for it, although it is not known yet what is mapped

	permissions = Readable | Writable | Executable | Shared
)

var (
	errUnread = errors.New("the build ID was not read")
	errNoMaps = fmt.Errorf("neither a maps file nor a directory of a process: %w", syscall.EINVAL)
	errAnswer = fmt.Errorf("unexpected answer of the kernel: %w", syscall.EPROTO)
)

// Process is a handle on the mappings of one address space. One goroutine at a time may use
// it.
type Process struct {
	id      int // of the process; 0: unknown
	closed  bool
	options Options
	method  Method
	hasScan bool // the kernel has it, but it may not be the method
	asksIDs bool // the kernel, for build IDs

	isBounded bool     // PROCMAP_QUERY: it is not mainline's
	process   *os.File // the directory of the process in procfs, or nil
	dir       *os.File // that, or the one of another thread if the main one has exited
	maps      *os.File

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
		return isThere(maps, make([]byte, 1))
	}
	noQuery := p.refusal(Query)
	if noQuery == ErrNoProcess {
		return noQuery
	}
	noScan := noQuery
	if noQuery == nil {
		noScan = p.refusal(Scan)
	}
	// The query may be mainline's unless a scan says otherwise.
	p.hasScan = noScan == nil
	p.isBounded = p.hasScan && p.scan.flags&scanQueryBounded != 0
	p.asksIDs = p.isBounded || noQuery == nil && p.options.KernelBuildIDs
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
		return isThere(maps, make([]byte, 1))
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
		return isThere(p.maps, p.got[:1])
	case Query:
		err := p.doQuery(queryArg{flags: uint64(coveringOrNext)})
		if err == ErrNoMapping {
			err = nil
		}
		return err
	case Scan:
		// A scan of no addresses. A filter of system calls may return 0 without a call.
		p.scan = scanArg{walkEnd: 1, vec: 8, vecLen: 1}
		p.scan.size = uint64(unsafe.Sizeof(p.scan))
		p.scan.vmaSize = uint32(unsafe.Sizeof(scanVMA{}))
		_, err := p.ioctl(procmapScan, unsafe.Pointer(&p.scan))
		if err == nil && p.scan.walkEnd != 0 {
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
		if isThere(maps, make([]byte, 1)) != nil && !hasMemory(p.process) && !hasThreads(p.process) {
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
	if err := p.find(addr, flags&(permissions|AnyOf), &m); err != nil {
		return Mapping{}, p.lookupError(err)
	}
	p.addBuildID(flags, &m)
	return m, nil
}

// find finds the mapping at addr; with coveringOrNext, or the next one that passes.
// wantKernelID is for when the name is known.
func (p *Process) find(addr uint64, flags Flags, m *Mapping) error {
	err := error(syscall.ENAMETOOLONG)
	if p.method != Text {
		err = p.findByQuery(addr, flags, m)
		for err == nil && flags&coveringOrNext != 0 && !m.passes(flags) {
			err = p.findByQuery(m.End, flags, m)
		}
	}
	if err == syscall.ENAMETOOLONG && flags&wantKernelID == 0 {
		p.restart()
		err = p.nextLine(addr, flags, m)
	}
	if err == nil && (m.Start > addr && flags&coveringOrNext == 0 || !m.passes(flags)) {
		return ErrNoMapping
	}
	return err
}

func (p *Process) findByQuery(addr uint64, flags Flags, m *Mapping) error {
	arg := queryArg{
		flags:    uint64(flags.ofKernel() | flags&coveringOrNext),
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
	return err
}

// List appends the mappings that pass the filters in flags to list, in rising order. What
// it returned, cut to [:0], can be passed again: then it allocates only for what is new.
// Each address is in one mapping at most; one that has changed meanwhile may be cut. If
// ctx ends, that is the error. With an error, list comes back as it was.
func (p *Process) List(ctx context.Context, list []Mapping, flags Flags) (_ []Mapping, err error) {
	defer p.end("list", &err)
	return p.list(ctx, list, flags)
}

func (p *Process) list(ctx context.Context, list []Mapping, flags Flags) ([]Mapping, error) {
	before := len(list)
	for w := p.walk(flags); ; list = list[:len(list)+1] {
		if len(list) == cap(list) {
			list = append(list, Mapping{})[:len(list)]
		}
		err := w.next(ctx, &list[:len(list)+1][len(list)])
		if err == ErrNoMapping {
			return list, nil
		}
		if err != nil {
			return list[:before], err
		}
	}
}

// Each calls visit for the mappings that List would return, until it returns false. The
// mapping is the same variable each time; within visit, only OpenFile may use the handle.
func (p *Process) Each(ctx context.Context, flags Flags, visit func(*Mapping) bool) (err error) {
	defer p.end("list", &err)
	var m Mapping
	w := p.walk(flags)
	for err = w.next(ctx, &m); err == nil && visit(&m); {
		err = w.next(ctx, &m)
	}
	if err == ErrNoMapping {
		return nil
	}
	return err
}

// walker walks over the mappings of a process.
type walker struct {
	p      *Process
	find   func(*Process, uint64, Flags, *Mapping) error
	flags  Flags
	cursor uint64
}

func (p *Process) walk(flags Flags) walker {
	find := (*Process).find
	p.restart()
	if p.method == Scan {
		find = (*Process).nextOfScan
		p.batch, p.scan.walkEnd = nil, 0
	} else if p.method == Text || p.options.Method == Any && flags.ofKernel() == 0 {
		// A query for each mapping costs more than its line in the text.
		find = (*Process).nextLine
	}
	return walker{p: p, find: find, flags: flags&(permissions|AnyOf|WantBuildID) | coveringOrNext}
}

// next sets m to the next mapping, or returns ErrNoMapping.
func (w *walker) next(ctx context.Context, m *Mapping) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := w.find(w.p, w.cursor, w.flags, m)
	if err == syscall.ENAMETOOLONG { // of a scan: the text has it, and the rest
		w.find = (*Process).nextLine
		err = w.find(w.p, w.cursor, w.flags, m)
	}
	if err != nil {
		return w.p.lookupError(err)
	}
	w.p.addBuildID(w.flags, m)
	if m.Start < w.cursor {
		if m.File != (File{}) {
			m.Offset += w.cursor - m.Start
		}
		m.Start = w.cursor
	}
	w.cursor = m.End
	return nil
}
