// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"debug/elf"
	"io"
	"math"
	"os"
	"syscall"
	"unsafe"
)

const (
	pageBytes = 4096
	pagesMax  = 2048 // more than the 65,535 headers that a file may have
	notesMax  = 1024

	buildIDMax = 20 // bytes

	hostData = elf.ELFDATA2LSB // of all machines that this file is built for
)

// elfReader reads the build ID of an ELF file, by the rules of libprocmap. The number of reads is
// bounded, and no offset or size is trusted: elf.NewFile allocates what a file asks for.
type elfReader struct {
	file  *os.File
	begin uint64 // where the image begins in it
	pages int    // that may still be read
	notes int    // the same
	err   error  // why something was not read that may be the build ID
	is64  bool

	programs, sections     int // numbers of headers
	programsAt, sectionsAt uint64

	pos  uint64 // of the page in the image
	have []byte // what was read of it
	page [pageBytes]byte
}

// bytesOf returns the bytes of a structure that a file has in the same order.
func bytesOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}

// readPage reads the page at a multiple of its size.
func (r *elfReader) readPage(pos uint64) bool {
	r.have = nil
	if pos > math.MaxInt64-pageBytes-r.begin {
		return false
	}
	if r.pages == 0 {
		r.err = syscall.EFBIG
		return false
	}
	r.pages--
	n, err := r.file.ReadAt(r.page[:], int64(r.begin+pos))
	if n == 0 && err != io.EOF {
		r.err = err
	}
	r.pos, r.have = pos, r.page[:n]
	return n > 0
}

// read fills a buffer, if all of that can be read.
func (r *elfReader) read(pos uint64, to []byte) bool {
	for len(to) > 0 {
		at := pos % pageBytes
		if (r.have == nil || r.pos != pos-at) && !r.readPage(pos-at) || at >= uint64(len(r.have)) {
			return false
		}
		n := copy(to, r.have[at:])
		to, pos = to[n:], pos+uint64(n)
	}
	return true
}

// readHeader reads and checks the header of the file.
func (r *elfReader) readHeader() bool {
	var h elf.Header64
	var h32 elf.Header32
	if !r.read(0, h.Ident[:]) || string(h.Ident[:elf.EI_CLASS]) != elf.ELFMAG {
		return false
	}
	if elf.Data(h.Ident[elf.EI_DATA]) != hostData {
		r.err = syscall.ENOEXEC
		return false
	}
	switch elf.Class(h.Ident[elf.EI_CLASS]) {
	case elf.ELFCLASS64:
		r.is64 = true
		if !r.read(0, bytesOf(&h)) {
			return false
		}
	case elf.ELFCLASS32:
		if !r.read(0, bytesOf(&h32)) {
			return false
		}
		h.Type, h.Phnum, h.Shnum = h32.Type, h32.Phnum, h32.Shnum
		h.Phoff, h.Shoff = uint64(h32.Phoff), uint64(h32.Shoff)
	default:
		return false
	}
	r.programs, r.programsAt = int(h.Phnum), h.Phoff
	r.sections, r.sectionsAt = int(h.Shnum), h.Shoff
	switch elf.Type(h.Type) {
	case elf.ET_EXEC, elf.ET_DYN, elf.ET_REL:
		return true
	}
	return false
}

// readProgram reads a program header. Their size is that of the class.
func (r *elfReader) readProgram(i int, p *elf.Prog64) bool {
	var p32 elf.Prog32
	if r.is64 {
		return r.read(r.programsAt+uint64(i)*uint64(unsafe.Sizeof(*p)), bytesOf(p))
	}
	ok := r.read(r.programsAt+uint64(i)*uint64(unsafe.Sizeof(p32)), bytesOf(&p32))
	*p = elf.Prog64{Type: p32.Type, Off: uint64(p32.Off), Filesz: uint64(p32.Filesz),
		Align: uint64(p32.Align)}
	return ok
}

// readSection reads a section header as the program header of its notes, or of another type.
func (r *elfReader) readSection(i int, p *elf.Prog64) bool {
	var s elf.Section64
	var s32 elf.Section32
	var ok bool
	if r.is64 {
		ok = r.read(r.sectionsAt+uint64(i)*uint64(unsafe.Sizeof(s)), bytesOf(&s))
	} else {
		ok = r.read(r.sectionsAt+uint64(i)*uint64(unsafe.Sizeof(s32)), bytesOf(&s32))
		s.Type, s.Off, s.Size = s32.Type, uint64(s32.Off), uint64(s32.Size)
		s.Addralign = uint64(s32.Addralign)
	}
	*p = elf.Prog64{Off: s.Off, Filesz: s.Size, Align: s.Addralign}
	if elf.SectionType(s.Type) == elf.SHT_NOTE {
		p.Type = uint32(elf.PT_NOTE)
	}
	return ok
}

func alignUp(size, align uint64) uint64 { return (size + align - 1) &^ (align - 1) }

type elfNote struct{ nameSize, size, kind uint32 }

func (r *elfReader) isBuildID(pos uint64, note *elfNote) bool {
	const kind, name = 3, "GNU\x00"
	var have [len(name)]byte
	return note.kind == kind && note.nameSize == uint32(len(name)) &&
		note.size >= 1 && note.size <= buildIDMax &&
		r.read(pos+uint64(unsafe.Sizeof(*note)), have[:]) && string(have[:]) == name
}

// readNotes returns the build ID in a program header, or nil. As for the kernel, padding to 4
// bytes is part of a note, whatever the alignment.
func (r *elfReader) readNotes(p *elf.Prog64) []byte {
	if elf.ProgType(p.Type) != elf.PT_NOTE {
		return nil
	}
	align := uint64(4)
	if p.Align == 8 {
		align = 8
	}
	var note elfNote
	head := uint64(unsafe.Sizeof(note))
	for pos, left := p.Off, p.Filesz; left >= head; {
		if r.notes == 0 {
			r.err = syscall.EFBIG
			return nil
		}
		r.notes--
		if !r.read(pos, bytesOf(&note)) {
			return nil
		}
		// Both sizes have 32 bits: no sum can overflow.
		at := alignUp(head+uint64(note.nameSize), align)
		next := alignUp(at+uint64(note.size), align)
		if at+alignUp(uint64(note.size), 4) > left {
			return nil
		}
		if r.isBuildID(pos, &note) {
			id := make([]byte, note.size)
			if !r.read(pos+at, id) {
				return nil
			}
			return id
		}
		if next >= left {
			return nil
		}
		pos, left = pos+next, left-next
	}
	return nil
}

// readBuildID returns the build ID of an ELF image in a file; nil if it has none.
func readBuildID(file *os.File, begin uint64) (id []byte, err error) {
	r := &elfReader{file: file, begin: begin, pages: pagesMax, notes: notesMax}
	if !r.readHeader() {
		return nil, r.err
	}
	var p elf.Prog64
	for i := 0; i < r.programs && id == nil && r.readProgram(i, &p); i++ {
		id = r.readNotes(&p)
	}
	// The number is elsewhere if it does not fit, and so are headers.
	const doesNotFit = 0xffff
	if r.programs == doesNotFit || r.sections == 0 && r.sectionsAt != 0 {
		r.err = syscall.EFBIG
	}
	// Objects that are not linked, and some debug files, have section headers only.
	for i := 0; i < r.sections && id == nil && r.readSection(i, &p); i++ {
		id = r.readNotes(&p)
	}
	if id != nil {
		return id, nil
	}
	return nil, r.err
}
