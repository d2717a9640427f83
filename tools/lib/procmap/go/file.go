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

func (m *Mapping) setBuildID(id []byte) {
	m.BuildIDSize, m.BuildIDErr = copy(m.BuildID[:], id), nil
}

// addBuildID sets the build ID if it is wanted, by the method of the handle.
func (p *Process) addBuildID(flags Flags, m *Mapping) {
	if flags&WantBuildID == 0 || m.hasFile() && m.BuildIDErr == nil {
		m.BuildIDErr = nil
		return
	}
	m.setBuildID(nil)
	if m.Name == "[vdso]" && !m.hasFile() {
		p.addVDSOBuildID(m)
		return
	}
	// Mainline reads whatever is mapped: it waits for a packet socket, and takes bytes
	// from a TCP socket. Their names have no slash. If a query fails, the mapping is
	// another one by now.
	if !m.hasFile() || !strings.HasPrefix(m.Name, "/") || p.method != Text && p.queryBuildID(m) == nil {
		return
	}
	file, err := p.OpenFile(m)
	if err != nil {
		if err != ErrNoFile {
			m.BuildIDErr = err
		}
		return
	}
	defer file.Close()
	id, err := buildIDOf(file)
	m.setBuildID(id)
	m.BuildIDErr = err
}

// addVDSOBuildID reads it from the memory of the process.
func (p *Process) addVDSOBuildID(m *Mapping) {
	memory, err := os.Open(p.path(p.thread + "mem"))
	if err != nil {
		m.BuildIDErr = err
		return
	}
	defer memory.Close()
	id, err := readBuildID(io.NewSectionReader(memory, int64(m.Start), int64(m.End-m.Start)))
	m.setBuildID(id)
	m.BuildIDErr = err
}

// buildIDOf reads a build ID as the kernel does: files of procfs and sysfs have none.
func buildIDOf(file *os.File) ([]byte, error) {
	var in syscall.Statfs_t
	if syscall.Fstatfs(int(file.Fd()), &in) != nil || in.Type == procMagic || in.Type == sysfsMagic {
		return nil, nil
	}
	return readBuildID(file)
}

// OpenFile opens the file of a mapping for reading. It is the one that the kernel has
// mapped, not the one that has its name now: the file is taken from map_files (for which the
// caller needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), or by its name below the root of
// the process, and compared with the mapping. The error is ErrNoFile; ErrOtherFile, also if
// they cannot be compared, as on overlayfs since Linux 6.7 without a build ID of the kernel;
// or that of opening it.
func (p *Process) OpenFile(m *Mapping) (*os.File, error) {
	defer runtime.KeepAlive(p)
	if !m.hasFile() || !strings.HasPrefix(m.Name, "/") {
		return nil, ErrNoFile
	}
	file, err := p.openPath(p.mapFile(m), m, true)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH) {
		file, err = p.openPart(m)
	}
	if err == nil || err == ErrNoFile {
		return file, err
	}
	file, err = p.openPath(p.thread+"root"+m.Name, m, false)
	// \012 may be these four characters, or a newline.
	if name := strings.ReplaceAll(m.Name, `\012`, "\n"); err != nil && name != m.Name {
		file, err = p.openPath(p.thread+"root"+name, m, false)
	}
	return file, err
}

// mapFile returns the path of a link in map_files, which a thread has only by its ID.
func (p *Process) mapFile(m *Mapping) string {
	return fmt.Sprintf("%smap_files/%x-%x", strings.Replace(p.thread, "task/", "../", 1), m.Start, m.End)
}

func (m *Mapping) sameName(other *Mapping) bool {
	const deleted = " (deleted)"
	return strings.TrimSuffix(m.Name, deleted) == strings.TrimSuffix(other.Name, deleted)
}

// openPart opens what is left of a mapping that was split, or has grown, since it was
// found, also by another thread, if that has exited by which the process was opened.
func (p *Process) openPart(m *Mapping) (*os.File, error) {
	again, err := p.Reopen()
	if err != nil {
		return nil, err
	}
	defer again.Close()
	part := Mapping{VMA: VMA{End: m.Start}}
	for part.End < m.End && again.find(part.End, coveringOrNext, &part) == nil && part.Start < m.End {
		if part.file() == m.file() && part.sameName(m) && part.Offset-part.Start == m.Offset-m.Start {
			part.BuildID, part.BuildIDSize = m.BuildID, m.BuildIDSize
			return again.openPath(again.mapFile(&part), &part, true)
		}
	}
	return nil, syscall.ENOENT
}

// openPath opens a regular file, if it is the one of the mapping. Opening a device or a FIFO
// with O_PATH has no side effects. The owner of a file may have a lease on it, for whose end
// open(2) would wait.
func (p *Process) openPath(path string, m *Mapping, byMapFiles bool) (*os.File, error) {
	found, err := os.OpenFile(p.path(path), oPath, 0)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(found.Fd()), &stat); err != nil {
		return nil, err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, ErrNoFile
	}
	path = fmt.Sprintf("%s/self/fd/%d", p.options.Proc, found.Fd())
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), m.Name)
	if err := p.checkFile(file, &stat, *m, byMapFiles); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// checkFile returns nil if this is the file of the mapping. A device and an inode do not
// identify a file on overlayfs, and an inode may be that of another file by now.
func (p *Process) checkFile(file *os.File, stat *syscall.Stat_t, m Mapping, byMapFiles bool) error {
	var in syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &in); err != nil {
		return err
	}
	isOverlay, dev := in.Type == overlayMagic, uint64(stat.Dev)
	found := VMA{
		Inode:    stat.Ino,
		DevMajor: uint32(dev>>8&0xfff | dev>>32&^0xfff),
		DevMinor: uint32(dev&0xff | dev>>12&^0xff),
	}
	if isOverlay || found.file() != m.file() {
		own, err := p.mapOwn(file, m.Offset)
		if err != nil {
			return err
		}
		// On btrfs, files of two subvolumes have the same numbers in maps: map_files
		// is the mapped file, if the name is still the same. On overlayfs, map_files
		// may be a copy that was made since. The numbers in maps are those of a
		// layer, up to Linux 6.6; or they, and the major number 0, are the overlay's,
		// and stay the same. Then, the build ID by which the kernel knows it decides.
		isKnown := byMapFiles && own.sameName(&m)
		if isOverlay {
			isKnown = m.DevMajor != 0
		}
		if own.file() != m.file() || !isKnown && m.BuildIDSize == 0 && !p.askBuildID(&m) {
			return ErrOtherFile
		}
	}
	if m.BuildIDSize > 0 {
		id, err := buildIDOf(file)
		if err != nil || !bytes.Equal(id, m.BuildID[:m.BuildIDSize]) {
			return ErrOtherFile
		}
	}
	return nil
}

// askBuildID asks the kernel, if a file of the same name is still mapped there.
func (p *Process) askBuildID(m *Mapping) bool {
	var now Mapping
	return p.method != Text && p.find(m.Start, 0, &now) == nil && now.sameName(m) &&
		p.queryBuildID(m) == nil && m.BuildIDSize > 0
}

// mapOwn maps a page of a file, and returns how maps shows that.
func (p *Process) mapOwn(file *os.File, offset uint64) (own Mapping, err error) {
	page, err := syscall.Mmap(int(file.Fd()), int64(offset), os.Getpagesize(), syscall.PROT_READ,
		syscall.MAP_PRIVATE)
	if err != nil {
		return own, err
	}
	defer syscall.Munmap(page)
	self, err := open("self", Options{Proc: p.options.Proc})
	if err != nil {
		return own, err
	}
	defer self.Close()
	return own, self.find(address(page), 0, &own)
}

// maxNotes bounds the notes that are read of a file. It has at most 65,535 headers.
const maxNotes = 1024

// elfFile reads an ELF file with the rules of libprocmap, which debug/elf does not have: no
// offset or size is trusted, and what is read is bounded.
type elfFile struct {
	file   io.ReaderAt
	is64   bool
	notes  int
	err    error // why something could not be read
	buffer [64]byte
}

// read returns some bytes, which are valid until the next call, or nil.
func (e *elfFile) read(pos uint64, size int) []byte {
	if pos > 1<<62 {
		return nil
	}
	_, err := e.file.ReadAt(e.buffer[:size], int64(pos))
	if err == nil {
		return e.buffer[:size]
	}
	if err != io.EOF {
		e.err = err
	}
	return nil
}

// long returns an address or a size: where it is in 64 bits, and in 32 bits.
func (e *elfFile) long(b []byte, at64, at32 int) uint64 {
	if e.is64 {
		return binary.LittleEndian.Uint64(b[at64:])
	}
	return uint64(binary.LittleEndian.Uint32(b[at32:]))
}

// readBuildID reads the build ID of an ELF file; none is no error.
func readBuildID(file io.ReaderAt) (id []byte, err error) {
	e := &elfFile{file: file}
	h := e.read(0, 52)
	if h == nil || string(h[:4]) != elf.ELFMAG {
		return nil, e.err
	}
	if elf.Data(h[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, syscall.ENOEXEC
	}
	e.is64 = elf.Class(h[elf.EI_CLASS]) == elf.ELFCLASS64
	size, numberAt := 32, 44
	if e.is64 {
		if h = e.read(0, 64); h == nil {
			return nil, e.err
		}
		size, numberAt = 56, 56
	}
	headers, number := e.long(h, 32, 28), int(binary.LittleEndian.Uint16(h[numberAt:]))
	for i := 0; i < number; i++ {
		if h = e.read(headers+uint64(i*size), size); h == nil {
			break
		}
		if elf.ProgType(binary.LittleEndian.Uint32(h)) != elf.PT_NOTE {
			continue
		}
		if id = e.inNotes(e.long(h, 8, 4), e.long(h, 32, 16), e.long(h, 48, 28)); id != nil {
			return id, nil
		}
	}
	return nil, e.err
}

func alignUp(size, align uint64) uint64 { return (size + align - 1) &^ (align - 1) }

// inNotes looks for it in the notes at pos. As for the kernel, padding to 4 bytes is part of
// a note, whatever the alignment.
func (e *elfFile) inNotes(pos, left, align uint64) []byte {
	const buildIDNote = 3
	word := binary.LittleEndian.Uint32
	if align != 8 {
		align = 4
	}
	for left >= 12 {
		if e.notes++; e.notes > maxNotes {
			e.err = syscall.EFBIG
			return nil
		}
		h := e.read(pos, 12)
		if h == nil {
			return nil
		}
		nameSize, size, kind := word(h), uint64(word(h[4:])), word(h[8:])
		at := alignUp(12+uint64(nameSize), align)
		next := alignUp(at+size, align)
		if at+alignUp(size, 4) > left {
			return nil
		}
		if kind == buildIDNote && nameSize == 4 && 0 < size && size <= 20 &&
			string(e.read(pos+12, 4)) == "GNU\x00" {
			return e.read(pos+at, int(size))
		}
		if next >= left {
			return nil
		}
		pos, left = pos+next, left-next
	}
	return nil
}
