// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// readelf prints the build IDs of files.
func TestBuildIDsAreThoseOfReadelf(t *testing.T) {
	var files []string
	for _, pattern := range []string{"/usr/bin/[a-b]*", "/usr/lib/*-linux-gnu/*.o",
		"/usr/lib/*-linux-gnu/lib[a-b]*.so.*", "/usr/lib32/*.so*"} {
		files = append(files, must(filepath.Glob(pattern))...)
	}
	text, _ := exec.Command("readelf", append([]string{"-nW"}, files...)...).Output()
	ids := make(map[string]string)
	for _, part := range regexp.MustCompile(`(?m)^File: `).Split(string(text), -1) {
		name, notes, _ := bytes.Cut([]byte(part), []byte("\n"))
		if id := regexp.MustCompile(`Build ID: (\w+)`).FindSubmatch(notes); id != nil {
			ids[string(name)] = string(id[1])
		}
	}
	if len(ids) < 10 {
		t.Skip("readelf found no build IDs")
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		if id, err := readBuildID(file, 0); fmt.Sprintf("%x", id) != ids[name] || err != nil {
			t.Errorf("%s: %x, not %s: %v", name, id, ids[name], err)
		}
		file.Close()
	}
}

var testID = bytes.Repeat([]byte{7}, 20)

// fileOf makes an ELF file of structures, and notes of the kinds with testID behind them.
func fileOf(t *testing.T, ident string, structures []any, kinds ...uint32) *os.File {
	var image bytes.Buffer
	for _, structure := range structures {
		binary.Write(&image, binary.LittleEndian, structure)
	}
	for _, kind := range kinds {
		binary.Write(&image, binary.LittleEndian, []uint32{4, 20, kind})
		image.WriteString("GNU\x00")
		image.Write(testID)
	}
	copy(image.Bytes(), elf.ELFMAG+ident)
	path := filepath.Join(t.TempDir(), "file")
	must(0, os.WriteFile(path, image.Bytes(), 0600))
	return must(os.Open(path))
}

func TestHeadersOfFiles(t *testing.T) {
	const note, of32, of64, bigEndian = 36, "\x01\x01", "\x02\x01", "\x02\x02"
	manyKinds := append(make([]uint32, notesMax), 3)
	for _, row := range []struct {
		ident      string
		structures []any
		kinds      []uint32
		err        error
		hasID      bool
	}{
		{of64, []any{elf.Header64{Type: 3, Phoff: 64, Phnum: 1},
			elf.Prog64{Type: 4, Off: 120, Filesz: note}}, []uint32{3}, nil, true},
		{of64, []any{elf.Header64{Type: 3, Phoff: 64, Phnum: 1},
			elf.Prog64{Type: 4, Off: 120, Filesz: 2 * note}}, []uint32{1, 3}, nil, true},
		{of64, []any{elf.Header64{Type: 1, Shoff: 64, Shnum: 1},
			elf.Section64{Type: 7, Off: 128, Size: note}}, []uint32{3}, nil, true},
		{of32, []any{elf.Header32{Type: 2, Phoff: 52, Phnum: 1},
			elf.Prog32{Type: 4, Off: 84, Filesz: note}}, []uint32{3}, nil, true},
		{of32, []any{elf.Header32{Type: 1, Shoff: 52, Shnum: 1},
			elf.Section32{Type: 7, Off: 92, Size: note}}, []uint32{3}, nil, true},
		// A note is longer than its segment, or the file, or there is none.
		{of64, []any{elf.Header64{Type: 3, Phoff: 64, Phnum: 1},
			elf.Prog64{Type: 4, Off: 120, Filesz: note - 1}}, []uint32{3}, nil, false},
		{of64, []any{elf.Header64{Type: 3, Phoff: 64, Phnum: 1},
			elf.Prog64{Type: 4, Off: 121, Filesz: note}}, []uint32{3}, nil, false},
		{of64, []any{elf.Header64{Type: 3, Phoff: 1<<64 - 1, Phnum: 9}}, nil, nil, false},
		{of64, []any{elf.Header64{Type: 4}}, nil, nil, false},
		// It may have one.
		{of64, []any{elf.Header64{Type: 3, Shoff: 64}}, nil, syscall.EFBIG, false},
		{of64, []any{elf.Header64{Type: 3, Phnum: 0xffff}}, nil, syscall.EFBIG, false},
		{of64, []any{elf.Header64{Type: 3, Phoff: 64, Phnum: 1},
			elf.Prog64{Type: 4, Off: 120, Filesz: 1 << 60}}, manyKinds, syscall.EFBIG, false},
		{bigEndian, []any{elf.Header64{Type: 3}}, nil, syscall.ENOEXEC, false},
	} {
		file := fileOf(t, row.ident, row.structures, row.kinds...)
		id, err := readBuildID(file, 0)
		if err != row.err || bytes.Equal(id, testID) != row.hasID || id != nil != row.hasID {
			t.Errorf("%+v: %x, %v", row.structures, id, err)
		}
		file.Close()
	}
}
