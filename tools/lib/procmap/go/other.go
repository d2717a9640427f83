// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build !plan9 && !(linux && (386 || amd64 || arm64))

package procmap

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

var errSystem = fmt.Errorf("only on Linux, on x86 and arm64: %w", syscall.ENOSYS)

// Snapshot is of a Process.
type Snapshot struct{}

// Process is a handle, which cannot be opened here.
type Process struct{}

func noProcess(pid int) error { return &Error{"open", pid, errSystem} }

func Open(pid int, options Options) (*Process, error)  { return nil, noProcess(pid) }
func OpenFD(fd int, options Options) (*Process, error) { return nil, noProcess(0) }

func (p *Process) Reopen() (*Process, error)                      { return nil, noProcess(0) }
func (p *Process) Close() error                                   { return noProcess(0) }
func (p *Process) Method() Method                                 { return Any }
func (p *Process) Refusal(method Method) error                    { return noProcess(0) }
func (p *Process) Find(addr uint64, flags Flags) (Mapping, error) { return Mapping{}, noProcess(0) }
func (p *Process) OpenFile(m *Mapping) (*os.File, error)          { return nil, noProcess(0) }
func (p *Process) List(ctx context.Context, list []Mapping, flags Flags) ([]Mapping, error) {
	return list, noProcess(0)
}
func (p *Process) Each(ctx context.Context, flags Flags, visit func(*Mapping) bool) error {
	return noProcess(0)
}
func (p *Process) Snapshot(ctx context.Context, flags Flags) (*Snapshot, error) {
	return nil, noProcess(0)
}

func (s *Snapshot) Refresh(ctx context.Context) (added, removed []Mapping, err error) {
	return nil, nil, noProcess(0)
}
func (s *Snapshot) Mappings() []Mapping       { return nil }
func (s *Snapshot) IsConsistent() bool        { return false }
func (s *Snapshot) Find(addr uint64) *Mapping { return nil }
