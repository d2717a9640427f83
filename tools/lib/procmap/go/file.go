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
	id, err := readBuildID(file)
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
// open(2) would wait. The kernel reads no build ID from procfs or sysfs.
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
	var in syscall.Statfs_t
	if err := syscall.Fstatfs(int(found.Fd()), &in); err != nil {
		return nil, err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFREG || in.Type == procMagic || in.Type == sysfsMagic {
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
		id, err := readBuildID(file)
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
