// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// hasPath returns whether the mapping may be one of a file in a file system.
func (m *Mapping) hasPath() bool { return m.File != File{} && strings.HasPrefix(m.Name, "/") }

// addBuildID asks the kernel for a build ID that is wanted and not known by a scan.
func (p *Process) addBuildID(flags Flags, m *Mapping) {
	// Mainline reads whatever is mapped: it waits for a packet socket, and takes bytes
	// from a TCP socket. Their names have no slash.
	if flags&WantBuildID == 0 || !m.hasPath() {
		m.BuildIDErr = nil
	} else if m.BuildIDErr != nil && p.method != Text {
		m.BuildIDErr = p.queryBuildID(m)
	}
}

// OpenFile opens the file of a mapping for reading. It is the one that the kernel has
// mapped, not the one that has its name now: the file is taken from map_files, for which the
// caller needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. The error is ErrNoFile; ErrOtherFile if
// another one is mapped there by now, or if that is not known, as on overlayfs since Linux 6.7
// if the kernel returns no build ID; or that of opening it.
func (p *Process) OpenFile(m *Mapping) (*os.File, error) {
	defer runtime.KeepAlive(p)
	if !m.hasPath() {
		return nil, ErrNoFile
	}
	// The mapping may have been split, or have grown, since it was found, and the thread
	// may have exited by which the process was opened.
	again, err := p.Reopen()
	if err != nil {
		return nil, err
	}
	defer again.Close()
	now, err := again.Find(m.Start, WantBuildID)
	if err != nil {
		return nil, err
	}
	// Another file may have got the number of the inode since.
	const deleted = " (deleted)"
	if !now.sameFile(&m.VMA) || m.BuildIDSize > 0 && now.BuildID != m.BuildID ||
		strings.TrimSuffix(now.Name, deleted) != strings.TrimSuffix(m.Name, deleted) {
		return nil, ErrOtherFile
	}
	return again.openLink(&now)
}

// openLink opens the file of a mapping that was just found, by its link in map_files. A thread
// has that only by its ID. Opening a device or a FIFO with O_PATH has no side effects. The owner
// of a file may have a lease on it, for whose end open(2) would wait.
func (p *Process) openLink(m *Mapping) (*os.File, error) {
	directory := strings.Replace(p.thread, "task/", "../", 1)
	path := p.path(fmt.Sprintf("%smap_files/%x-%x", directory, m.Start, m.End))
	link, err := os.OpenFile(path, oPath, 0)
	if err != nil {
		return nil, err
	}
	defer link.Close()
	if stat, err := link.Stat(); err != nil || !stat.Mode().IsRegular() {
		return nil, ErrNoFile
	}
	path = fmt.Sprintf("%s/fd/%d", p.self, link.Fd())
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// The runtime would poll one that does not block, and a FUSE server may never answer.
	if err = syscall.SetNonblock(fd, false); err == nil {
		err = p.checkFile(fd, m)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), m.Name), nil
}

// checkFile checks that the mapping is still there, and so is a thread, whose ID that of another
// process may have by now. Then the link led to the file that is mapped, on all file systems but
// overlayfs, where it may be a copy that was made since.
func (p *Process) checkFile(fd int, m *Mapping) error {
	if _, err := os.Stat(p.path(p.thread)); err != nil {
		return ErrNoProcess
	}
	var now Mapping
	if err := p.find(m.Start, 0, &now); err != nil {
		return err
	}
	var in syscall.Statfs_t
	if err := syscall.Fstatfs(fd, &in); err != nil {
		return err
	}
	if now.VMA != m.VMA || now.Name != m.Name || in.Type == overlayMagic && !p.isOnLayer(fd, m) {
		return ErrOtherFile
	}
	return nil
}

// sameFile returns whether both have the same part of a file at the same addresses.
func (v *VMA) sameFile(other *VMA) bool {
	return v.File == other.File && v.Offset-v.Start == other.Offset-other.Start
}

// isOnLayer maps a page of the file, and returns whether maps shows it as m. The numbers in maps
// are those of a layer, up to Linux 6.6; or they, and the major number 0, are the overlay's, and
// stay the same. Then, the build ID of the kernel decides.
func (p *Process) isOnLayer(fd int, m *Mapping) bool {
	page, err := syscall.Mmap(fd, int64(m.Offset), os.Getpagesize(), syscall.PROT_READ,
		syscall.MAP_PRIVATE)
	if err != nil {
		return false
	}
	defer syscall.Munmap(page)
	self, err := open(p.self, p.options)
	if err != nil {
		return false
	}
	defer self.Close()
	own, err := self.Find(address(page), WantBuildID)
	return err == nil && own.File == m.File &&
		(m.DevMajor != 0 || m.BuildIDSize > 0 && m.BuildID == own.BuildID)
}
