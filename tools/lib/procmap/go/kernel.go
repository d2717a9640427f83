// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

const (
	procmapQuery = 0xc0686611
	procmapScan  = 0xc06866e0

	scanNameTooLong   = 0x20
	scanBuildIDUnread = 0x40
	scanQueryBounded  = 0x02
	scanNames         = 0x01
	scanBuildIDs      = 0x02

	scanEnd   = 1<<64 - 1
	scanBatch = 256 // with more in a call, its fixed cost no longer matters
)

// queryArg is struct procmap_query.
type queryArg struct {
	size, flags, addr     uint64
	vma                   VMA
	nameSize, buildIDSize uint32
	nameAddr, buildIDAddr uint64
}

// scanArg is struct procmap_scan_arg.
type scanArg struct {
	size, filter, want, start, end       uint64
	knownGeneration, walkEnd, generation uint64
	vec, data                            uint64
	vecLen, vmaSize, dataSize            uint32
	dataUsed, dataNeeded, flags          uint32
}

// scanVMA is struct procmap_vma.
type scanVMA struct {
	VMA
	nameOffset, nameSize, buildIDOffset, buildIDSize uint32
}

// onIoctl is for tests.
var onIoctl = func(p *Process) {}

// ioctl passes a structure of the handle, which is on the heap, as are the buffers that it
// points to: none of them moves.
func (p *Process) ioctl(command uintptr, arg unsafe.Pointer) (int, error) {
	onIoctl(p)
	n, _, errno := syscall.Syscall(syscall.SYS_IOCTL, p.maps.Fd(), command, uintptr(arg))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func address(buffer []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&buffer[0]))) }

func (p *Process) doQuery(arg queryArg) error {
	p.query = arg
	p.query.size = uint64(unsafe.Sizeof(arg))
	_, err := p.ioctl(procmapQuery, unsafe.Pointer(&p.query))
	for err == syscall.EINTR {
		_, err = p.ioctl(procmapQuery, unsafe.Pointer(&p.query))
	}
	if err == syscall.ENOENT {
		return ErrNoMapping
	}
	// A filter of system calls may return 0 without a call.
	if err == nil && p.query.vma.End <= arg.addr {
		return errAnswer
	}
	return err
}

// set sets a mapping to what the kernel returned. The name from an ioctl ends with a NUL, and
// its newlines are escaped here as in the text. A name is not copied again if the mapping that is
// in its place in a list had it.
func (p *Process) set(m *Mapping, vma VMA, name []byte) {
	name = bytes.TrimSuffix(name, []byte{0})
	if bytes.IndexByte(name, '\n') >= 0 {
		name = bytes.ReplaceAll(name, []byte("\n"), []byte(`\012`))
	}
	vma.Flags &= permissions
	*m = Mapping{VMA: vma, Name: m.Name, BuildIDErr: errUnread}
	if string(name) != m.Name {
		m.Name = string(name)
	}
	m.Deleted = m.hasPath() && strings.HasSuffix(m.Name, deletedSuffix)
}

// ofKernel returns the filters that the kernel has.
func (f Flags) ofKernel() Flags {
	if f&AnyOf != 0 {
		return 0
	}
	return f & permissions
}

func (v *VMA) passes(flags Flags) bool {
	if flags&AnyOf != 0 {
		return v.Flags&flags&permissions != 0
	}
	return flags&permissions&^v.Flags == 0
}

func (p *Process) allocate() {
	p.vmas = make([]scanVMA, scanBatch)
	p.data = make([]byte, 128*scanBatch) // more than the longest name
}

// scanMore gets the next batch of mappings, which is empty if a signal ended the scan.
func (p *Process) scanMore(flags Flags) error {
	if p.vmas == nil {
		p.allocate()
	}
	p.scan = scanArg{
		size:     uint64(unsafe.Sizeof(p.scan)),
		filter:   uint64(flags.ofKernel()),
		want:     scanNames,
		start:    p.scan.walkEnd,
		end:      scanEnd,
		walkEnd:  p.scan.walkEnd,
		vec:      uint64(uintptr(unsafe.Pointer(&p.vmas[0]))),
		vecLen:   scanBatch,
		vmaSize:  uint32(unsafe.Sizeof(p.vmas[0])),
		data:     address(p.data),
		dataSize: uint32(len(p.data)),
	}
	if flags&WantBuildID != 0 {
		p.scan.want |= scanBuildIDs
	}
	n, err := p.ioctl(procmapScan, unsafe.Pointer(&p.scan))
	if err == nil && p.scan.walkEnd <= p.scan.start {
		return errAnswer
	}
	p.batch = p.vmas[:n]
	if err == syscall.EINTR {
		return nil
	}
	return err
}

// nextOfScan returns the next mapping that ends above addr and passes the filters.
func (p *Process) nextOfScan(addr uint64, flags Flags, m *Mapping) error {
	for len(p.batch) == 0 || p.batch[0].End <= addr || !p.batch[0].passes(flags) {
		if len(p.batch) > 0 {
			p.batch = p.batch[1:]
		} else if p.scan.walkEnd == scanEnd {
			return ErrNoMapping
		} else if err := p.scanMore(flags); err != nil {
			return err
		}
	}
	v := &p.batch[0]
	p.batch = p.batch[1:]
	if v.Flags&scanNameTooLong != 0 {
		return syscall.ENAMETOOLONG
	}
	p.set(m, v.VMA, p.data[v.nameOffset:v.nameOffset+v.nameSize])
	if v.Flags&scanBuildIDUnread == 0 {
		m.BuildIDSize = copy(m.BuildID[:], p.data[v.buildIDOffset:v.buildIDOffset+v.buildIDSize])
		m.BuildIDErr = nil
	}
	return nil
}

// isThere returns whether maps has a text, that is, whether the address space still exists.
// The kernel makes only one line for one byte: that is the size of first.
func isThere(maps *os.File, first []byte) error {
	_, err := maps.ReadAt(first, 0)
	if err == io.EOF || errors.Is(err, syscall.ESRCH) {
		return ErrNoProcess
	}
	return err
}

// mapsReader reads maps. The position is its own: that of the file is also that of whoever passed
// the descriptor on.
type mapsReader struct {
	maps *os.File
	at   int64
}

func (r *mapsReader) Read(to []byte) (int, error) {
	n, err := syscall.Pread(int(r.maps.Fd()), to, r.at)
	for err == syscall.EINTR {
		n, err = syscall.Pread(int(r.maps.Fd()), to, r.at)
	}
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	r.at += int64(n)
	return n, nil
}

// restart goes back to the first line.
func (p *Process) restart() {
	p.lines.at = 0
	if p.text != nil {
		p.text.Reset(&p.lines)
	}
}

// number cuts a number off a line, and the byte that has to follow it.
func number(line []byte, base uint64, next byte) (value uint64, rest []byte) {
	for i, c := range line {
		switch {
		case c == next:
			return value, line[i+1:]
		case '0' <= c && c <= '9':
			value = value*base + uint64(c-'0')
		case 'a' <= c && c <= 'f':
			value = value*base + uint64(c-'a'+10)
		default:
			return 0, nil
		}
	}
	return 0, nil
}

// parseLine parses a line of maps without its newline; the name is part of it.
func parseLine(line []byte) (v VMA, name []byte, ok bool) {
	v.Start, line = number(line, 16, '-')
	v.End, line = number(line, 16, ' ')
	if len(line) < 5 {
		return v, nil, false
	}
	for i, c := range line[:4] {
		if c == "rwxs"[i] {
			v.Flags |= Readable << i
		}
	}
	v.Offset, line = number(line[5:], 16, ' ')
	major, line := number(line, 16, ':')
	minor, line := number(line, 16, ' ')
	v.DevMajor, v.DevMinor = uint32(major), uint32(minor)
	v.Inode, line = number(line, 10, ' ')
	return v, bytes.TrimLeft(line, " "), line != nil && v.Start < v.End
}

// nextLine finds the next line of a mapping that ends above addr and passes the filters.
func (p *Process) nextLine(addr uint64, flags Flags, m *Mapping) error {
	if p.text == nil {
		p.text = bufio.NewReaderSize(&p.lines, 32<<10)
	}
	for {
		line, err := p.text.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			// If the address space is gone, the text ends early.
			if err = isThere(p.maps, p.got[:1]); err == nil {
				return ErrNoMapping
			}
		}
		if err != nil {
			return err
		}
		vma, name, ok := parseLine(line[:len(line)-1])
		if !ok {
			return errAnswer
		}
		// The vsyscall page has a line, but is not a mapping of the process.
		if vma.End > addr && vma.passes(flags) && string(name) != "[vsyscall]" {
			p.set(m, vma, name)
			return nil
		}
	}
}
