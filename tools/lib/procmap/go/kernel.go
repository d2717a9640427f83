// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"bytes"
	"io"
	"runtime"
	"syscall"
	"unsafe"
)

const (
	procmapQuery = 0xc0686611
	procmapScan  = 0xc06866e0

	scanNameTooLong   = 0x20
	scanBuildIDUnread = 0x40
	scanNames         = 0x01
	scanBuildIDs      = 0x02

	scanEnd   = 1<<64 - 1
	scanBatch = 256 // with more in a call, its fixed cost no longer matters
	maxLine   = 32 << 10
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

// ioctl passes a structure of the handle, which is on the heap, as are the buffers that it
// points to: none of them moves.
func (p *Process) ioctl(command uintptr, arg unsafe.Pointer) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_IOCTL, p.fd, command, uintptr(arg))
	runtime.KeepAlive(p)
	switch errno {
	case 0:
		return int(n), nil
	case syscall.ESRCH:
		return 0, ErrNoProcess
	}
	return 0, errno
}

func address(buffer []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&buffer[0]))) }

func (p *Process) doQuery(arg queryArg) error {
	q := &p.query
	*q = arg
	q.size = uint64(unsafe.Sizeof(arg))
	_, err := p.ioctl(procmapQuery, unsafe.Pointer(q))
	for err == syscall.EINTR {
		_, err = p.ioctl(procmapQuery, unsafe.Pointer(q))
	}
	if err == syscall.ENOENT {
		return ErrNoMapping
	}
	// A walk has to end, whatever the kernel returns.
	if err == nil && (q.vma.End <= q.addr || q.vma.End <= q.vma.Start ||
		int(q.nameSize) > len(p.name) || int(q.buildIDSize) > len(p.id)) {
		return errAnswer
	}
	return err
}

// findByQuery is find by PROCMAP_QUERY. It asks for no build ID: mainline's reads one from
// whatever is mapped, a socket included. addBuildID asks, when the name is known.
func (p *Process) findByQuery(addr uint64, flags Flags, m *Mapping) error {
	err := p.doQuery(queryArg{
		flags:    uint64(flags & (permissions | coveringOrNext)),
		addr:     addr,
		nameAddr: address(p.name[:]),
		nameSize: uint32(len(p.name)),
	})
	if err == nil {
		p.set(m, p.query.vma, p.name[:p.query.nameSize])
	}
	return err
}

// queryBuildID asks for the build ID of a mapping that has the name of a file.
func (p *Process) queryBuildID(m *Mapping) error {
	arg := queryArg{addr: m.Start, buildIDAddr: address(p.id[:]), buildIDSize: uint32(len(p.id))}
	if err := p.doQuery(arg); err != nil {
		return err
	}
	// The mapping may be another one by now, or have been split.
	if !p.query.vma.sameFile(&m.VMA) {
		return ErrOtherFile
	}
	m.setBuildID(p.id[:p.query.buildIDSize], nil)
	return nil
}

// set sets a mapping to what the kernel returned. The name ends with a NUL, if there is
// one. Newlines are escaped as in the text.
func (p *Process) set(m *Mapping, vma VMA, name []byte) {
	vma.Flags &= permissions
	was := m.Name
	*m = Mapping{VMA: vma, BuildIDErr: errNotAsked}
	if len(name) > 0 {
		name = name[:len(name)-1]
		if bytes.IndexByte(name, '\n') >= 0 {
			name = bytes.ReplaceAll(name, []byte("\n"), []byte(`\012`))
		}
		m.Name = p.nameOf(was, name)
	}
}

// scanMore gets the next batch of mappings, which is empty after a signal.
func (p *Process) scanMore(flags Flags) error {
	if p.vmas == nil {
		p.vmas = make([]scanVMA, scanBatch)
		p.data = make([]byte, 128*scanBatch) // more than the longest name
	}
	arg := scanArg{
		size:     uint64(unsafe.Sizeof(p.scan)),
		filter:   uint64(flags & permissions),
		want:     scanNames,
		start:    p.scan.walkEnd,
		end:      scanEnd,
		vec:      uint64(uintptr(unsafe.Pointer(&p.vmas[0]))),
		vecLen:   scanBatch,
		vmaSize:  uint32(unsafe.Sizeof(p.vmas[0])),
		data:     address(p.data),
		dataSize: uint32(len(p.data)),
	}
	if flags&WantBuildID != 0 {
		arg.want |= scanBuildIDs
	}
	p.scan = arg
	n, err := p.ioctl(procmapScan, unsafe.Pointer(&p.scan))
	if err != nil && err != syscall.EINTR {
		return err
	}
	// A walk has to end, whatever the kernel returns.
	if n > scanBatch || p.scan.dataUsed > arg.dataSize || p.scan.walkEnd < arg.start ||
		err == nil && p.scan.walkEnd == arg.start {
		return errAnswer
	}
	p.batch = p.vmas[:n]
	return nil
}

// nextOfScan returns the next mapping that ends above addr and passes the filters.
func (p *Process) nextOfScan(addr uint64, flags Flags, m *Mapping) error {
	for len(p.batch) == 0 || p.batch[0].End <= addr {
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
	nameEnd := uint64(v.nameOffset) + uint64(v.nameSize)
	idEnd := uint64(v.buildIDOffset) + uint64(v.buildIDSize)
	if used := uint64(p.scan.dataUsed); v.Start >= v.End || nameEnd > used || idEnd > used ||
		int(v.buildIDSize) > len(p.id) {
		return errAnswer
	}
	if v.Flags&scanNameTooLong != 0 {
		p.restart()
		return p.nextLine(addr, flags, m)
	}
	p.set(m, v.VMA, p.data[v.nameOffset:nameEnd])
	if v.Flags&scanBuildIDUnread == 0 {
		m.setBuildID(p.data[v.buildIDOffset:idEnd], nil)
	}
	return nil
}

// isThere returns whether maps has a text, that is, whether the address space still exists.
// The kernel makes only one line for one byte.
func (p *Process) isThere() error {
	_, err := p.maps.ReadAt(p.id[:1], 0)
	if err == io.EOF {
		return ErrNoProcess
	}
	return err
}

// restart goes back to the first line.
func (p *Process) restart() {
	p.start.Seek(0, io.SeekStart)
	p.text.Reset(p.start)
}

// number returns the hexadecimal number in front of a byte, and what follows that.
func number(line []byte, before byte) (value uint64, rest []byte, ok bool) {
	for i, c := range line {
		switch {
		case '0' <= c && c <= '9':
			value = value<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			value = value<<4 | uint64(c-'a'+10)
		default:
			return value, line[i+1:], c == before && 0 < i && i <= 16
		}
	}
	return 0, nil, false
}

func parsePermissions(line []byte) (flags Flags, ok bool) {
	if len(line) < 5 || line[4] != ' ' {
		return 0, false
	}
	for i, c := range line[:4] {
		switch {
		case c == "rwxs"[i]:
			flags |= Readable << i
		case c != '-' && (i < 3 || c != 'p'):
			return 0, false
		}
	}
	return flags, true
}

// parseFile parses what follows the permissions, and returns the name.
func parseFile(line []byte, v *VMA) (name []byte, ok bool) {
	offset, line, ok1 := number(line, ' ')
	major, line, ok2 := number(line, ':')
	minor, line, ok3 := number(line, ' ')
	v.Offset, v.DevMajor, v.DevMinor = offset, uint32(major), uint32(minor)
	i := 0
	for ; i < len(line) && '0' <= line[i] && line[i] <= '9'; i++ {
		v.Inode = v.Inode*10 + uint64(line[i]-'0')
	}
	name = bytes.TrimLeft(line[i:], " ")
	return name, ok1 && ok2 && ok3 && i > 0 && (len(line) == i || line[i] == ' ')
}

// nextLine finds the next line of a mapping that ends above addr and passes the filters.
func (p *Process) nextLine(addr uint64, flags Flags, m *Mapping) error {
	for {
		line, err := p.text.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			// If the address space is gone, the text ends early.
			if err = p.isThere(); err == nil {
				return ErrNoMapping
			}
		}
		if err != nil {
			return err
		}
		start, line, ok1 := number(line, '-')
		end, line, ok2 := number(line, ' ')
		perms, ok3 := parsePermissions(line)
		if !ok1 || !ok2 || !ok3 || start >= end {
			return errText
		}
		if end <= addr || flags&permissions&^perms != 0 {
			continue
		}
		vma := VMA{Start: start, End: end, Flags: perms}
		name, ok := parseFile(line[5:len(line)-1], &vma)
		if !ok {
			return errText
		}
		// The vsyscall page has a line, but is not a mapping of the process.
		if string(name) == "[vsyscall]" {
			continue
		}
		*m = Mapping{VMA: vma, Name: p.nameOf(m.Name, name), BuildIDErr: errNotAsked}
		return nil
	}
}
