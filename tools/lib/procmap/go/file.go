// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// errNotAsked is BuildIDErr until it is known.
var errNotAsked error = syscall.EAGAIN

func (m *Mapping) setBuildID(id []byte, err error) {
	m.BuildIDSize, m.BuildIDErr = copy(m.BuildID[:], id), err
}

// hasPath returns whether the mapping may be one of a file in a file system.
func (m *Mapping) hasPath() bool { return m.hasFile() && strings.HasPrefix(m.Name, "/") }

// addBuildID sets the build ID if it is wanted, by the method of the handle. That of the vDSO
// is in the memory of the process.
func (p *Process) addBuildID(flags Flags, m *Mapping) {
	isKnown := m.BuildIDErr == nil && m.hasFile()
	m.BuildIDErr = nil
	if flags&WantBuildID == 0 || isKnown {
		return
	}
	if m.Name == "[vdso]" && !m.hasFile() {
		memory, err := os.Open(p.path(p.thread + "mem"))
		m.BuildIDErr = err
		if err == nil {
			defer memory.Close()
			m.setBuildID(readBuildID(io.NewSectionReader(memory, int64(m.Start), int64(m.End-m.Start))))
		}
		return
	}
	// Mainline reads whatever is mapped: it waits for a packet socket, and takes bytes
	// from a TCP socket. Their names have no slash. If a query fails, the mapping is
	// another one by now. Where mainline's says that there is none, it may not have read it.
	if !m.hasPath() || p.method != Text && p.queryBuildID(m) == nil &&
		(p.method == Scan || m.BuildIDSize > 0) {
		return
	}
	file, err := p.OpenFile(m)
	if err == nil {
		defer file.Close()
		m.setBuildID(readBuildID(file))
	} else if err != ErrNoFile {
		m.BuildIDErr = err
	}
}

// OpenFile opens the file of a mapping for reading. It is the one that the kernel has
// mapped, not the one that has its name now: the file is taken from map_files, for which the
// caller needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, and compared with the mapping. The
// error is ErrNoFile, also for a file of procfs or sysfs; ErrOtherFile, also if they cannot be
// compared, as on overlayfs since Linux 6.7 if the mapping has no build ID; or that of opening
// it.
func (p *Process) OpenFile(m *Mapping) (*os.File, error) {
	defer runtime.KeepAlive(p)
	if !m.hasPath() {
		return nil, ErrNoFile
	}
	file, err := p.openLink(m)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH) {
		return p.openAgain(m)
	}
	return file, err
}

// openLink opens the link in map_files, which a thread has only by its ID: a thread of another
// process may have that by now.
func (p *Process) openLink(m *Mapping) (*os.File, error) {
	directory := strings.Replace(p.thread, "task/", "../", 1)
	file, err := p.openPath(fmt.Sprintf("%smap_files/%x-%x", directory, m.Start, m.End), m)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(p.path(p.thread)); err != nil {
		file.Close()
		return nil, ErrNoProcess
	}
	return file, nil
}

// openAgain opens the file of a mapping that was split, or has grown, since it was found;
// also by another thread, if that has exited by which the process was opened.
func (p *Process) openAgain(m *Mapping) (*os.File, error) {
	again, err := p.Reopen()
	if err != nil {
		return nil, err
	}
	defer again.Close()
	var now Mapping
	if err := again.find(m.Start, 0, &now); err != nil {
		return nil, err
	}
	if !now.sameFile(&m.VMA) || !now.sameName(m) {
		return nil, ErrOtherFile
	}
	now.BuildID, now.BuildIDSize = m.BuildID, m.BuildIDSize
	return again.openLink(&now)
}

func (m *Mapping) sameName(other *Mapping) bool {
	const deleted = " (deleted)"
	return strings.TrimSuffix(m.Name, deleted) == strings.TrimSuffix(other.Name, deleted)
}

// sameFile returns whether both have the same part of a file at the same addresses.
func (v *VMA) sameFile(other *VMA) bool {
	return v.File == other.File && v.Offset-v.Start == other.Offset-other.Start
}

// openPath opens a regular file, if it is the one of the mapping. Opening a device or a FIFO
// with O_PATH has no side effects. The owner of a file may have a lease on it, for whose end
// open(2) would wait. The kernel reads no build ID from procfs or sysfs.
func (p *Process) openPath(path string, m *Mapping) (*os.File, error) {
	found, err := os.OpenFile(p.path(path), oPath, 0)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var stat syscall.Stat_t
	var in syscall.Statfs_t
	if err = syscall.Fstat(int(found.Fd()), &stat); err == nil {
		err = syscall.Fstatfs(int(found.Fd()), &in)
	}
	if err != nil {
		return nil, err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFREG || in.Type == procMagic || in.Type == sysfsMagic {
		return nil, ErrNoFile
	}
	dev := uint64(stat.Dev)
	major, minor := dev>>8&0xfff|dev>>32&^0xfff, dev&0xff|dev>>12&^0xff
	isSame := m.File == File{stat.Ino, uint32(major), uint32(minor)}
	// The kernel would map a whole huge page to compare it, which munmap(2) would not free.
	if !isSame && uint32(in.Type) == hugetlbfsMagic {
		return nil, ErrOtherFile
	}
	path = fmt.Sprintf("%s/fd/%d", p.self, found.Fd())
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// The runtime would poll one that does not block, and a FUSE server may never answer.
	if err = syscall.SetNonblock(fd, false); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	file := os.NewFile(uintptr(fd), m.Name)
	if !isSame || in.Type == overlayMagic {
		err = p.checkByMapping(file, m, in.Type == overlayMagic)
	}
	if err == nil && m.BuildIDSize > 0 {
		id, _ := readBuildID(file)
		if !bytes.Equal(id, m.BuildID[:m.BuildIDSize]) {
			err = ErrOtherFile
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// checkByMapping maps a page of the file, and returns nil if maps shows it as m. A device and
// an inode do not identify a file on overlayfs, and those of stat(2) may not be those in maps.
//
// On btrfs, files of two subvolumes have the same numbers in maps: map_files is the mapped
// file, if the name is still the same. On overlayfs, map_files may be a copy that was made
// since. The numbers in maps are those of a layer, up to Linux 6.6; or they, and the major
// number 0, are the overlay's, and stay the same. Then, the build ID of the kernel decides.
func (p *Process) checkByMapping(file *os.File, m *Mapping, isOverlay bool) error {
	page, err := syscall.Mmap(int(file.Fd()), int64(m.Offset), os.Getpagesize(), syscall.PROT_READ,
		syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer syscall.Munmap(page)
	self, err := open(p.self, p.options)
	if err != nil {
		return err
	}
	defer self.Close()
	var own Mapping
	if err := self.find(address(page), 0, &own); err != nil {
		return err
	}
	isKnown := own.sameName(m)
	if isOverlay {
		isKnown = m.DevMajor != 0
	}
	if own.File != m.File || !isKnown && m.BuildIDSize == 0 {
		return ErrOtherFile
	}
	return nil
}

// maxNotes bounds the bytes of notes that are read of a file.
const maxNotes = 128 << 10

// readBuildID reads the build ID of an ELF file; none is no error. debug/elf would trust the
// sizes of sections, and refuse what the kernel does not look at.
func readBuildID(file io.ReaderAt) (id []byte, err error) {
	defer func() {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
	}()
	var header elf.Header64
	var header32 elf.Header32
	headers := io.NewSectionReader(file, 0, 1<<62)
	if err = binary.Read(headers, binary.LittleEndian, &header32); err != nil {
		return nil, err
	}
	if string(header32.Ident[:len(elf.ELFMAG)]) != elf.ELFMAG {
		return nil, nil
	}
	if elf.Data(header32.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, syscall.ENOEXEC
	}
	switch elf.Type(header32.Type) {
	case elf.ET_EXEC, elf.ET_DYN, elf.ET_REL:
	default:
		return nil, nil
	}
	is64 := elf.Class(header32.Ident[elf.EI_CLASS]) == elf.ELFCLASS64
	header.Phoff, header.Phnum = uint64(header32.Phoff), header32.Phnum
	if is64 {
		headers.Seek(0, io.SeekStart)
		err = binary.Read(headers, binary.LittleEndian, &header)
	}
	if err == nil {
		_, err = headers.Seek(int64(header.Phoff), io.SeekStart)
	}
	for left := uint64(maxNotes); err == nil && header.Phnum > 0; header.Phnum-- {
		var prog elf.Prog64
		if is64 {
			err = binary.Read(headers, binary.LittleEndian, &prog)
		} else {
			var prog32 elf.Prog32
			err = binary.Read(headers, binary.LittleEndian, &prog32)
			prog = elf.Prog64{Type: prog32.Type, Off: uint64(prog32.Off),
				Filesz: uint64(prog32.Filesz), Align: uint64(prog32.Align)}
		}
		if err != nil || elf.ProgType(prog.Type) != elf.PT_NOTE {
			continue
		}
		if prog.Filesz > left {
			return nil, syscall.EFBIG
		}
		left -= prog.Filesz
		notes := make([]byte, prog.Filesz)
		n, unread := file.ReadAt(notes, int64(prog.Off))
		if id := findBuildID(notes, n, prog.Align); id != nil {
			return id, nil
		}
		if unread != io.EOF {
			err = unread
		}
	}
	return nil, err
}

func alignUp(size, align uint64) uint64 { return (size + align - 1) &^ (align - 1) }

// findBuildID finds it in notes, of which n bytes are in the file. As for the kernel, padding
// to 4 bytes is part of a note, whatever the alignment.
func findBuildID(notes []byte, n int, align uint64) []byte {
	const buildIDNote = 3
	word := binary.LittleEndian.Uint32
	if align != 8 {
		align = 4
	}
	for n >= 12 {
		nameSize, size, kind := uint64(word(notes)), uint64(word(notes[4:])), word(notes[8:])
		at := alignUp(12+nameSize, align)
		next := alignUp(at+size, align)
		if at+alignUp(size, 4) > uint64(len(notes)) {
			break
		}
		if kind == buildIDNote && nameSize == 4 && 0 < size && size <= 20 &&
			string(notes[12:16]) == "GNU\x00" && at+size <= uint64(n) {
			return notes[at : at+size]
		}
		if next >= uint64(n) {
			break
		}
		notes, n = notes[next:], n-int(next)
	}
	return nil
}
