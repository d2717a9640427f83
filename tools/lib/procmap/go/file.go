// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

const (
	procMagic      = 0x9fa0
	sysfsMagic     = 0x62656572
	tmpfsMagic     = 0x01021994
	overlayMagic   = 0x794c7630
	hugetlbfsMagic = 0x958458f6

	comparedPages = 16
	deletedSuffix = " (deleted)"
)

// OpenFile opens the file of a mapping for reading. It is the one that the kernel has mapped, not
// the one that has its name now: the file is taken from map_files, for which the caller needs
// CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, or is that of its name in the root of the process; and
// it is compared with the mapping, as procmap_open_file(3) says. The error is ErrNoFile;
// ErrOtherFile if what was found is not known to be the mapped file; or that of opening the name.
func (p *Process) OpenFile(m *Mapping) (_ *os.File, err error) {
	defer p.end("open file", &err)
	file, err := p.openMapped(m)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return dup(int(file.Fd()), m.Name)
}

// hasPath returns whether the mapping may be one of a file in a file system.
func (m *Mapping) hasPath() bool { return m.File != File{} && strings.HasPrefix(m.Name, "/") }

func (m *Mapping) hasNameOf(name string) bool {
	return strings.TrimSuffix(m.Name, deletedSuffix) == strings.TrimSuffix(name, deletedSuffix)
}

// hasFileOf returns whether two mappings are parts of one by all that is known of the file.
func (m *Mapping) hasFileOf(other *Mapping) bool {
	return m.File == other.File && m.hasNameOf(other.Name) &&
		m.Offset-m.Start == other.Offset-other.Start
}

func (p *Process) openMapped(m *Mapping) (*os.File, error) {
	if !m.hasPath() {
		return nil, ErrNoFile
	}
	if p.process == nil {
		return nil, ErrNoDirectory
	}
	file, err := p.openLink(m)
	if err == syscall.ENOENT || err == syscall.ESRCH {
		file, err = p.openPart(m)
	}
	if err == nil || err == ErrNoFile {
		return file, err
	}
	file, nameErr := p.openName(m)
	if nameErr == nil && (m.BuildIDSize > 0 || p.isMapped(m)) {
		return file, nil
	}
	file.Close()
	if err == ErrOtherFile || err == ErrNoProcess {
		return nil, err
	}
	if nameErr == nil {
		nameErr = ErrOtherFile
	}
	return nil, nameErr
}

func (m *Mapping) link() string { return fmt.Sprintf("map_files/%x-%x", m.Start, m.End) }

// openLink opens the file of a mapping that has not changed by its link in map_files.
func (p *Process) openLink(m *Mapping) (*os.File, error) {
	link, err := openAt(p.dir, m.link(), oPath)
	if err != nil {
		return nil, err
	}
	file, err := p.openChecked(link, m, true)
	// Another file may have got the number of the inode since.
	if err == nil && !p.isStillThere(m, true) {
		file.Close()
		return nil, ErrOtherFile
	}
	return file, err
}

// isStillThere returns whether a file of the same name is mapped there, and may be deleted.
// Anybody may read the link.
func (p *Process) isStillThere(m *Mapping, mayBeDeleted bool) bool {
	var name [4096 + len(deletedSuffix)]byte
	path, _ := syscall.BytePtrFromString(m.link())
	n, _, errno := syscall.Syscall6(syscall.SYS_READLINKAT, p.dir.Fd(), uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), 0, 0)
	if errno != 0 || !mayBeDeleted && bytes.Contains(name[:n], []byte(deletedSuffix)) {
		return false
	}
	return m.hasNameOf(strings.ReplaceAll(string(name[:n]), "\n", `\012`))
}

// findPart finds the next part of a mapping that is still mapped behind another part.
func (p *Process) findPart(m, part *Mapping) bool {
	for part.End < m.End && p.find(part.End, coveringOrNext, part) == nil && part.Start < m.End {
		if part.hasFileOf(m) {
			return true
		}
	}
	return false
}

// openPart opens the file of a mapping that was split, or has grown, since it was found. Or the
// thread may have exited by which the process was opened.
func (p *Process) openPart(m *Mapping) (file *os.File, err error) {
	again, err := p.reopen()
	if err != nil {
		return nil, err
	}
	defer again.Close()
	err = ErrNoMapping
	part := Mapping{VMA: VMA{End: m.Start}}
	for err != nil && again.findPart(m, &part) {
		part.BuildID, part.BuildIDSize = m.BuildID, m.BuildIDSize
		file, err = again.openLink(&part)
	}
	return file, err
}

// isMapped returns whether a part of the mapping is still there, after its file was opened by
// name. Once it has gone, another file may have its inode number and its name.
func (p *Process) isMapped(m *Mapping) bool {
	if p.isStillThere(m, false) {
		return true
	}
	again, err := p.reopen()
	if err != nil {
		return false
	}
	defer again.Close()
	return again.findPart(m, &Mapping{VMA: VMA{End: m.Start}})
}

// openName opens the file by its name below the root of the process, or below that of this one:
// the kernel shows a name relative to the reader's root if the file is below it, and the process
// may be in a chroot. A \012 may be four characters or an escaped newline.
func (p *Process) openName(m *Mapping) (file *os.File, err error) {
	roots := []string{"root", ""}
	if !p.hasOurMounts() {
		roots = roots[:1]
	}
	names := []string{m.Name}
	if strings.Contains(m.Name, `\012`) {
		names = append(names, strings.ReplaceAll(m.Name, `\012`, "\n"))
	}
	for _, root := range roots {
		for _, name := range names {
			link, nameErr := openAt(p.dir, root+name, oPath)
			if nameErr == nil {
				file, nameErr = p.openChecked(link, m, false)
			}
			if nameErr == nil {
				return file, nil
			}
			if err == nil || err == syscall.ENOENT {
				err = nameErr
			}
		}
	}
	return nil, err
}

// hasOurMounts returns whether the process is in the mount namespace of this one.
func (p *Process) hasOurMounts() bool {
	theirs, err := openAt(p.dir, "ns/mnt", oPath)
	if err != nil {
		return false
	}
	defer theirs.Close()
	ours, err := openOwn(p.dir, "ns/mnt", oPath)
	if err != nil {
		return false
	}
	defer ours.Close()
	a, errA := theirs.Stat()
	b, errB := ours.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// openChecked opens for reading what a descriptor with O_PATH leads to, and closes that. Opening
// a device or a FIFO so has had no side effects. The owner of a file may have a lease on it, for
// whose end open(2) would wait.
func (p *Process) openChecked(link *os.File, m *Mapping, byLink bool) (*os.File, error) {
	defer link.Close()
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(link.Fd()), &stat); err != nil {
		return nil, err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, ErrNoFile
	}
	file, err := openOwn(p.dir, fmt.Sprintf("fd/%d", link.Fd()), syscall.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if err = p.check(file, &stat, m, byLink); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func typeOf(file *os.File) uint32 {
	var in syscall.Statfs_t
	syscall.Fstatfs(int(file.Fd()), &in)
	return uint32(in.Type)
}

// check returns nil if a file is known to be that of a mapping.
func (p *Process) check(file *os.File, stat *syscall.Stat_t, m *Mapping, byLink bool) error {
	dev := uint64(stat.Dev)
	major, minor := dev>>8&0xfff|dev>>32&^0xfff, dev&0xff|dev>>12&^0xff
	isSame := m.File == File{stat.Ino, uint32(major), uint32(minor)}
	in := typeOf(file)
	if !isSame || in == overlayMagic {
		// Of a file of huge pages, munmap(2) would not free the page.
		if in == hugetlbfsMagic {
			return ErrOtherFile
		}
		if err := p.compare(file, m, in == overlayMagic, byLink); err != nil {
			return err
		}
	}
	if m.BuildIDSize > 0 && !m.hasIDOf(file) {
		return ErrOtherFile
	}
	return nil
}

// compare maps a file, and compares that in maps with a mapping: with stat(2), the numbers may
// be others, or be those of several files.
//
// On btrfs, files of two subvolumes have the same numbers in maps: so only map_files is known to
// be the mapped file, if the name is still the same. On overlayfs, map_files may be a copy that
// was made since. The numbers in maps are those of a layer, up to Linux 6.6; or they are the
// overlay's, whose major number is 0, and stay the same. Then a build ID decides, or a page
// that both mappings have in common.
func (p *Process) compare(file *os.File, m *Mapping, isOverlay, byLink bool) error {
	size := comparedPages * os.Getpagesize()
	if m.End-m.Start < uint64(size) {
		size = int(m.End - m.Start)
	}
	pages, err := syscall.Mmap(int(file.Fd()), int64(m.Offset), size, syscall.PROT_READ,
		syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer syscall.Munmap(pages)
	own, err := p.findOwn(address(pages))
	if err != nil {
		return err
	}
	hasName := own.hasNameOf(m.Name)
	isKnown := byLink && hasName
	if isOverlay {
		isKnown = m.DevMajor != 0
	}
	if own.File != m.File || !isKnown && m.BuildIDSize == 0 &&
		!(hasName && p.isStillThere(m, true) && (p.hasKernelIDOf(file, m) || p.hasPage(m, &own))) {
		return ErrOtherFile
	}
	return nil
}

// findOwn finds a mapping of this process.
func (p *Process) findOwn(addr uint64) (own Mapping, err error) {
	dir, err := openOwn(p.dir, "", oPath|syscall.O_DIRECTORY)
	if err != nil {
		return own, err
	}
	self, err := openIn(dir, os.Getpid(), Options{})
	if err != nil {
		return own, err
	}
	defer self.Close()
	return own, self.find(addr, 0, &own)
}

func (p *Process) hasKernelIDOf(file *os.File, m *Mapping) bool {
	asked := *m
	return p.asksIDs && p.askBuildID(&asked) == nil && asked.BuildIDSize > 0 && asked.hasIDOf(file)
}

// hasPage returns whether a mapping and one of this process have a page in common: then they
// map the same file. It takes CAP_SYS_ADMIN to see the numbers of pages in memory.
func (p *Process) hasPage(m, own *Mapping) bool {
	mem, _ := openAt(p.dir, "mem", syscall.O_RDONLY)
	defer mem.Close()
	pagemap, _ := openAt(p.dir, "pagemap", syscall.O_RDONLY)
	defer pagemap.Close()
	ownMem, _ := openOwn(p.dir, "mem", syscall.O_RDONLY)
	defer ownMem.Close()
	ownPagemap, _ := openOwn(p.dir, "pagemap", syscall.O_RDONLY)
	defer ownPagemap.Close()
	for at := uint64(0); at < own.End-own.Start; at += uint64(os.Getpagesize()) {
		page := pageAt(ownMem, ownPagemap, own.Start+at)
		if page != 0 && page == pageAt(mem, pagemap, m.Start+at) {
			return true
		}
	}
	return false
}

// pageAt returns the number in memory of an unchanged page of a file, or 0. Reading by mem brings
// it into memory, and raises no signal.
func pageAt(mem, pagemap *os.File, addr uint64) uint64 {
	const present, ofFile, number = 1 << 63, 1 << 61, 1<<55 - 1
	var entry uint64
	var first [1]byte
	if n, _ := mem.ReadAt(first[:], int64(addr)); n != 1 {
		return 0
	}
	at := addr / uint64(os.Getpagesize()) * uint64(unsafe.Sizeof(entry))
	if n, _ := pagemap.ReadAt(bytesOf(&entry), int64(at)); n != int(unsafe.Sizeof(entry)) ||
		entry&present == 0 || entry&ofFile == 0 {
		return 0
	}
	return entry & number
}

// buildIDOf is readBuildID, but as in the kernel, files of procfs and sysfs have none.
func buildIDOf(file *os.File) ([]byte, error) {
	if in := typeOf(file); in == procMagic || in == sysfsMagic {
		return nil, nil
	}
	return readBuildID(file, 0)
}

func (m *Mapping) hasIDOf(file *os.File) bool {
	id, err := buildIDOf(file)
	return err == nil && bytes.Equal(id, m.BuildID[:m.BuildIDSize])
}

// addBuildID sets a build ID that is wanted and not known by a scan.
func (p *Process) addBuildID(flags Flags, m *Mapping) {
	if flags&WantBuildID == 0 {
		m.BuildIDSize, m.BuildIDErr = 0, nil
	} else if m.File == (File{}) && m.Name == "[vdso]" {
		m.setBuildID(p.buildIDOfVDSO(m))
	} else if !m.hasPath() {
		// Mainline reads whatever is mapped: it waits for a packet socket, and takes bytes
		// from a TCP socket. Their names have no slash.
		m.BuildIDErr = nil
	} else if m.BuildIDErr != nil {
		// Mainline looks at no section header, and at 256 program headers.
		if !p.asksIDs || p.askBuildID(m) != nil || m.BuildIDSize == 0 && !p.isBounded {
			m.setBuildID(p.buildIDOfFile(m))
		}
	}
}

func (m *Mapping) setBuildID(id []byte, err error) {
	m.BuildIDSize, m.BuildIDErr = copy(m.BuildID[:], id), err
}

// askBuildID asks the kernel for the build ID of a mapping. Another one may be there by now.
func (p *Process) askBuildID(m *Mapping) error {
	now := Mapping{Name: m.Name}
	err := p.find(m.Start, wantKernelID, &now)
	if err == nil && !now.hasFileOf(m) {
		err = ErrOtherFile
	}
	if err == nil {
		m.setBuildID(now.BuildID[:now.BuildIDSize], nil)
	}
	return err
}

func (p *Process) buildIDOfFile(m *Mapping) ([]byte, error) {
	file, err := p.openMapped(m)
	if err == ErrNoFile {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// A file in memory may be a large hole, which has no header.
	if typeOf(file) == tmpfsMagic {
		const seekData = 3
		if at, err := file.Seek(0, seekData); err != nil || at != 0 {
			return nil, nil
		}
	}
	return buildIDOf(file)
}

// buildIDOfVDSO reads it in memory. All programs of 64 bits have one vDSO, and addresses of 32
// bits are not theirs. The memory of another process is not read for it: a file may be mapped
// there by now whose server is dead.
func (p *Process) buildIDOfVDSO(m *Mapping) ([]byte, error) {
	if p.process == nil {
		return nil, ErrNoDirectory
	}
	open, at := openAt, m.Start
	if own := p.ownVDSO(); own > math.MaxUint32 && at > math.MaxUint32 {
		open, at = openOwn, own
	}
	mem, err := open(p.dir, "mem", syscall.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	return readBuildID(mem, at)
}

// ownVDSO returns the address of the vDSO in this process, or 0.
func (p *Process) ownVDSO() uint64 {
	const sysinfoEHDR = 33
	var auxv [128]uintptr
	file, err := openOwn(p.dir, "auxv", syscall.O_RDONLY)
	if err != nil {
		return 0
	}
	defer file.Close()
	file.Read(bytesOf(&auxv))
	for i := 0; i < len(auxv); i += 2 {
		if auxv[i] == sysinfoEHDR {
			return uint64(auxv[i+1])
		}
	}
	return 0
}
