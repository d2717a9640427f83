// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"context"
	"sort"
	"syscall"
	"unsafe"
)

// Snapshot is a list of the mappings of a process that is brought up to date. It uses the handle.
type Snapshot struct {
	p          *Process
	flags      Flags
	generation uint64 // while the mappings were read; 0 if it changed or is unknown
	list       []Mapping
	old        []Mapping // with room for the next list
}

// Snapshot reads the mappings that pass the filters in flags.
func (p *Process) Snapshot(ctx context.Context, flags Flags) (s *Snapshot, err error) {
	defer p.end("snapshot", &err)
	s = &Snapshot{p: p, flags: flags}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// generationOf returns that of the address space; 0 if the kernel has none.
func (p *Process) generationOf(known uint64) (uint64, error) {
	if p.method != Scan {
		return 0, nil
	}
	if p.vmas == nil {
		p.allocate()
	}
	p.scan = scanArg{
		size:            uint64(unsafe.Sizeof(p.scan)),
		end:             scanEnd,
		knownGeneration: known,
		vec:             uint64(uintptr(unsafe.Pointer(&p.vmas[0]))),
		vecLen:          1,
		vmaSize:         uint32(unsafe.Sizeof(p.vmas[0])),
	}
	_, err := p.ioctl(procmapScan, unsafe.Pointer(&p.scan))
	if err == syscall.EINTR {
		err = nil
	}
	return p.scan.generation, p.lookupError(err)
}

// read makes the next list. After an error, the old one stays.
func (s *Snapshot) read(ctx context.Context) error {
	before, err := s.p.generationOf(0)
	if err != nil {
		return err
	}
	next, err := s.p.list(ctx, s.old[:0], s.flags)
	if err != nil {
		return err
	}
	after, err := s.p.generationOf(0)
	if err != nil {
		return err
	}
	if after != before {
		after = 0
	}
	s.list, s.old, s.generation = next, s.list, after
	return nil
}

// Refresh brings the snapshot up to date. It returns the mappings that are new, and those that
// are gone; one that has changed in a field is among both. Where nothing has changed, it is one
// system call by Scan if the kernel numbers the generations of an address space; else, all
// mappings are read and compared. That a file is deleted changes no generation. After an error, the
// snapshot is as before.
func (s *Snapshot) Refresh(ctx context.Context) (added, removed []Mapping, err error) {
	defer s.p.end("refresh", &err)
	if s.generation != 0 {
		if now, err := s.p.generationOf(s.generation); err != nil || now == s.generation {
			return nil, nil, err
		}
	}
	if err := s.read(ctx); err != nil {
		return nil, nil, err
	}
	added, removed = compareLists(s.old, s.list)
	return added, removed, nil
}

func compareLists(old, list []Mapping) (added, removed []Mapping) {
	for len(old) > 0 || len(list) > 0 {
		isOld := len(list) == 0 || len(old) > 0 && old[0].Start <= list[0].Start
		isNew := len(old) == 0 || len(list) > 0 && list[0].Start <= old[0].Start
		isEqual := isOld && isNew && old[0].isEqual(&list[0])
		if isOld {
			if !isEqual {
				removed = append(removed, old[0])
			}
			old = old[1:]
		}
		if isNew {
			if !isEqual {
				added = append(added, list[0])
			}
			list = list[1:]
		}
	}
	return added, removed
}

// isEqual compares all fields, but for a page size that is not known, and the text of an error.
func (m *Mapping) isEqual(other *Mapping) bool {
	a, b := m.VMA, other.VMA
	if a.PageSize == 0 || b.PageSize == 0 {
		a.PageSize, b.PageSize = 0, 0
	}
	return a == b && m.Name == other.Name && m.BuildIDSize == other.BuildIDSize &&
		m.BuildID == other.BuildID && m.BuildIDErr == nil == (other.BuildIDErr == nil)
}

// Mappings returns the list, in rising order. It is valid until Refresh returns that something
// has changed, and must not be written to.
func (s *Snapshot) Mappings() []Mapping { return s.list }

// IsConsistent returns whether the kernel said that nothing changed while the mappings were read,
// so that they are one state of the address space.
func (s *Snapshot) IsConsistent() bool { return s.generation != 0 }

// Find returns the mapping that covers an address, or nil. It makes no system call.
func (s *Snapshot) Find(addr uint64) *Mapping {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].End > addr })
	if i < len(s.list) && s.list[i].Start <= addr {
		return &s.list[i]
	}
	return nil
}
