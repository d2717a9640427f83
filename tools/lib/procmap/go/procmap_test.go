// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

var background = context.Background()

// The program is run again as a child, which does what PROCMAP_CHILD says, prints a line
// and waits for one.
func TestMain(m *testing.M) {
	what, argument, _ := strings.Cut(os.Getenv("PROCMAP_CHILD"), " ")
	switch what {
	case "":
		os.Exit(m.Run())
	case "map":
		mapMany(argument)
	case "files":
		paths, _ := filepath.Glob(argument + "/*")
		for _, path := range paths {
			mapFile(path)
		}
	case "procfs":
		if err := syscall.Mount("procfs", argument, "proc", 0, ""); err != nil {
			panic(err)
		}
	case "thread":
		fmt.Println("ready")
		os.Stdin.Read(make([]byte, 1))
		go waitForLine()
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	waitForLine()
}

// The main goroutine stays in the main thread, for which the child "thread" ends it.
func init() { runtime.LockOSThread() }

func waitForLine() {
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0)
}

// mapMany makes so many mappings, of which every tenth one is executable.
func mapMany(number string) {
	page := os.Getpagesize()
	mappings, _ := strconv.Atoi(number)
	area, err := syscall.Mmap(-1, 0, mappings*page, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	for i := 0; err == nil && i < mappings; i += 2 {
		permissions := syscall.PROT_READ
		if i%10 == 0 {
			permissions |= syscall.PROT_EXEC
		}
		err = syscall.Mprotect(area[i*page:(i+1)*page], permissions)
	}
	if err != nil {
		panic(err)
	}
}

// mapFile maps a page of a new file, or one that is there, in this process.
func mapFile(path string) uint64 {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	file.WriteString("not an ELF file")
	page, err := syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return address(page)
}

// start starts a child that waits, and returns its process ID and its stdin.
func start(t testing.TB, name string, args ...string) (int, io.Writer) {
	t.Helper()
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "PROCMAP_CHILD="+name)
	if strings.HasPrefix(name, "procfs ") {
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	}
	stdin, _ := command.StdinPipe()
	stdout, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	return command.Process.Pid, stdin
}

// openAll opens a process by each method that the kernel has; none, if it may fail so.
func openAll(t testing.TB, pid int, may ...error) map[Method]*Process {
	t.Helper()
	all := make(map[Method]*Process)
	for _, method := range []Method{Any, Query, Text, Scan} {
		p, err := Open(pid, Options{Method: method})
		for _, allowed := range may {
			if errors.Is(err, allowed) {
				return nil
			}
		}
		if errors.Is(err, syscall.ENOTTY) && (method == Query || method == Scan) {
			continue
		}
		if err != nil {
			t.Fatalf("process %d by %q: %v", pid, method, err)
		}
		t.Cleanup(func() { p.Close() })
		all[method] = p
	}
	return all
}

func openFile(t *testing.T, p *Process, m *Mapping) *os.File {
	t.Helper()
	file, err := p.OpenFile(m)
	if errors.Is(err, os.ErrPermission) {
		t.Skip("needs CAP_CHECKPOINT_RESTORE: ", err)
	}
	if err != nil {
		t.Fatalf("%q: %q: %v", p.Method(), m.Name, err)
	}
	return file
}

// format makes a line as in maps; with a build ID, as procfs_query prints it.
func format(m *Mapping, flags Flags) string {
	permissions, id := []byte("---p"), "-"
	for i, c := range []byte("rwxs") {
		if m.Flags&(Readable<<i) != 0 {
			permissions[i] = c
		}
	}
	line := fmt.Sprintf("%08x-%08x %s %08x %02x:%02x %d ", m.Start, m.End, permissions, m.Offset,
		m.DevMajor, m.DevMinor, m.Inode)
	if flags&WantBuildID == 0 {
		if m.Name != "" {
			line = fmt.Sprintf("%-72s %s", line, m.Name)
		}
		return line + "\n"
	}
	if m.BuildIDErr != nil {
		id = "?"
	} else if m.BuildIDSize > 0 {
		id = fmt.Sprintf("%x", m.BuildID[:m.BuildIDSize])
	}
	if len(line) >= 56 {
		line += " "
	}
	return fmt.Sprintf("%-56s%-40s %s\n", line, id, m.Name)
}

func readText(pid int, method Method) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	vsyscall := bytes.Index(text, []byte("ffffffffff600000-"))
	if vsyscall >= 0 {
		text = text[:vsyscall]
	}
	return string(text)
}

// readLibrary lists with procfs_query, which uses libprocmap.
func readLibrary(pid int, method Method) string {
	args := []string{"-p", strconv.Itoa(pid), "--list", "-B"}
	if method != Any {
		args = append(args, "--"+string(method))
	}
	text, _ := exec.Command(os.Getenv("TOOL"), args...).Output()
	return string(text)
}

var aBuildID = regexp.MustCompile(" ([0-9a-f]{40}|- {39}) ")

// difference lists a process and looks up some of its mappings. On overlayfs, the library may
// find that a file and a mapping have a page in common, where this package has an error.
func difference(p *Process, flags Flags, want string) string {
	mappings, err := p.List(background, nil, flags)
	lines := strings.SplitAfter(want, "\n")
	if err != nil || len(mappings) != len(lines)-1 {
		return fmt.Sprintf("%d mappings, not %d: %v", len(mappings), len(lines)-1, err)
	}
	for i := range mappings {
		m := &mappings[i]
		if m.BuildIDErr == ErrOtherFile {
			lines[i] = aBuildID.ReplaceAllString(lines[i], fmt.Sprintf(" %-40s ", "?"))
		}
		if got := format(m, flags); got != lines[i] {
			return fmt.Sprintf("%q, not %q", got, lines[i])
		}
		if i%(1+len(mappings)/10) != 0 {
			continue
		}
		for _, addr := range []uint64{m.Start, m.End - 1} {
			found, err := p.Find(addr, flags)
			if got := format(&found, flags); err != nil || got != lines[i] {
				return fmt.Sprintf("%#x: %q, not %q: %v", addr, got, lines[i], err)
			}
		}
	}
	return ""
}

// compare compares each process by each method. A process may change meanwhile, or exit.
func compare(t *testing.T, pids []int, flags Flags, read func(int, Method) string) {
	compared := 0
	for _, pid := range pids {
		for method, p := range openAll(t, pid, ErrNoProcess, os.ErrPermission) {
			problem := "?"
			for try := 0; try < 8 && problem != ""; try++ {
				time.Sleep(time.Duration(try) * 5 * time.Millisecond)
				problem = difference(p, flags, read(pid, method))
			}
			if _, err := os.Stat(p.path("maps")); problem != "" && err == nil {
				t.Errorf("process %d by %q: %s", pid, method, problem)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Error("no process was compared")
	}
}

func compareAll(t *testing.T, pids ...int) {
	t.Run("text", func(t *testing.T) { compare(t, pids, 0, readText) })
	t.Run("library", func(t *testing.T) {
		if os.Getenv("TOOL") == "" {
			t.Skip("TOOL is not set to the path of procfs_query")
		}
		compare(t, pids, WantBuildID, readLibrary)
	})
}

func TestEveryProcess(t *testing.T) {
	var pids []int
	directories, _ := filepath.Glob("/proc/[1-9]*")
	for _, directory := range directories {
		if pid, _ := strconv.Atoi(filepath.Base(directory)); pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	compareAll(t, pids...)
}

func TestManyMappings(t *testing.T) {
	pid, _ := start(t, "map 65000", os.Args[0])
	compareAll(t, pid)
	for method, p := range openAll(t, pid) {
		mappings, err := p.List(background, nil, Executable)
		if err != nil || len(mappings) < 6500 || len(mappings) > 6600 {
			t.Errorf("%q: %d executable mappings, %v", method, len(mappings), err)
		}
	}
}

func TestHostileNames(t *testing.T) {
	dir, names := t.TempDir(), []string{"new\nline", "\n\n", `back\slash`, `\012`, "deleted (deleted)",
		" blanks  and\ttab ", "[vsyscall]", "\xff\xfe", strings.Repeat("\n", 255)}
	for _, name := range names {
		os.WriteFile(filepath.Join(dir, name), nil, 0600)
	}
	pid, _ := start(t, "files "+dir, os.Args[0])
	compareAll(t, pid)
	for method, p := range openAll(t, pid) {
		mappings, err := p.List(background, nil, Shared)
		listed := make(map[string]*Mapping)
		for i := range mappings {
			listed[mappings[i].Name] = &mappings[i]
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			m := listed[strings.ReplaceAll(path, "\n", `\012`)]
			if m == nil {
				t.Fatalf("%q: %q is not in the list: %v", method, name, err)
			}
			openFile(t, p, m).Close()
		}
	}
}

func TestTheMappedFileIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	addr := mapFile(path)
	for method, p := range openAll(t, os.Getpid()) {
		os.Remove(path)
		m, err := p.Find(addr, 0)
		if err != nil || m.Name != path+" (deleted)" {
			t.Fatalf("%q: %q, %v", method, m.Name, err)
		}
		file := openFile(t, p, &m)
		raw, _ := file.SyscallConn()
		raw.Control(func(fd uintptr) {
			flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
			if flags&syscall.O_NONBLOCK != 0 {
				t.Errorf("%q: the runtime may poll the file", method)
			}
		})
		text, _ := io.ReadAll(file)
		if string(text) != "not an ELF file" {
			t.Errorf("%q: %q", method, text)
		}
		file.Close()
		m.End = m.Start + 1 // as if it had been split since
		openFile(t, p, &m).Close()
		m.Inode++
		if _, err := p.OpenFile(&m); !errors.Is(err, ErrOtherFile) {
			t.Errorf("%q: another file: %v", method, err)
		}
		if _, err := p.OpenFile(&Mapping{Name: "[stack]"}); !errors.Is(err, ErrNoFile) {
			t.Errorf("%q: stack: %v", method, err)
		}
	}
}

// What is mapped of huge pages to compare it stays mapped, or cannot be mapped.
func TestHugePagesAreNotMapped(t *testing.T) {
	const memfdHugetlb = 4
	memfdCreate := map[string]uintptr{"386": 356, "amd64": 319, "arm64": 279}[runtime.GOARCH]
	name := [2]byte{'h'}
	fd, _, errno := syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(&name)), memfdHugetlb, 0)
	if errno != 0 {
		t.Skip("this kernel has no CONFIG_HUGETLBFS: ", errno)
	}
	defer syscall.Close(int(fd))
	for method, p := range openAll(t, os.Getpid()) {
		_, err := p.openPath(fmt.Sprintf("fd/%d", fd), &Mapping{VMA: VMA{File: File{Inode: 1}}})
		if err != ErrOtherFile {
			t.Errorf("%q: %v", method, err)
		}
	}
}

// Mainline's query would wait for a packet, to read a build ID from it.
func TestNothingIsAskedOfASocket(t *testing.T) {
	const packetRXRing, solPacket = 5, 263
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
	if err != nil {
		t.Skip("needs CAP_NET_RAW: ", err)
	}
	defer syscall.Close(fd)
	size := os.Getpagesize()
	ring := [4]uint32{uint32(size), 1, uint32(size), 1}
	// 386 has no system call of its own for this.
	option := string((*[unsafe.Sizeof(ring)]byte)(unsafe.Pointer(&ring))[:])
	if err := syscall.SetsockoptString(fd, solPacket, packetRXRing, option); err != nil {
		t.Fatal(err)
	}
	page, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(page)
	for method, p := range openAll(t, os.Getpid()) {
		waits := time.AfterFunc(10*time.Second, func() { panic("it waits by " + method) })
		if _, err := p.Find(address(page), WantBuildID); err != nil {
			t.Errorf("%q: %v", method, err)
		}
		waits.Stop()
	}
}

func TestExecAndExit(t *testing.T) {
	pid, stdin := start(t, "", "/bin/sh", "-c", "echo ready; read x; exec cat")
	all := openAll(t, pid)
	for method, p := range all {
		if _, err := p.Find(0, 0); !errors.Is(err, ErrNoMapping) || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%q: %v", method, err)
		}
	}
	// What it does takes a moment.
	eventually := func(call func() (done bool, err error)) {
		t.Helper()
		done, err := call()
		for try := 0; try < 500 && !done; try++ {
			time.Sleep(10 * time.Millisecond)
			done, err = call()
		}
		if !done {
			t.Errorf("still: %v", err)
		}
	}
	fmt.Fprintln(stdin)
	for _, p := range all {
		eventually(func() (bool, error) {
			_, err := p.List(background, nil, Executable)
			return errors.Is(err, ErrNoProcess), err
		})
		eventually(func() (bool, error) {
			now, err := p.Reopen()
			if err != nil {
				return false, err
			}
			defer now.Close()
			mappings, err := now.List(background, nil, Executable)
			return len(mappings) > 0 && strings.HasSuffix(mappings[0].Name, "/cat"), err
		})
	}
	syscall.Kill(pid, syscall.SIGKILL)
	for _, p := range all {
		eventually(func() (bool, error) {
			_, err := p.Reopen()
			return errors.Is(err, ErrNoProcess), err
		})
	}
	if _, err := Open(pid, Options{}); !errors.Is(err, ErrNoProcess) {
		t.Errorf("opened after exit: %v", err)
	}
}

func TestTheMainThreadHasExited(t *testing.T) {
	pid, stdin := start(t, "thread", os.Args[0])
	self, _ := os.Readlink("/proc/self/exe")
	before := openAll(t, pid)
	stdin.Write([]byte{0})
	for try := 0; try < 500 && readText(pid, Text) != ""; try++ {
		time.Sleep(10 * time.Millisecond)
	}
	for _, all := range []map[Method]*Process{before, openAll(t, pid)} {
		for method, p := range all {
			mappings, err := p.List(background, nil, Executable)
			if err != nil || len(mappings) == 0 || mappings[0].Name != self {
				t.Fatalf("%q: %v, %v", method, mappings, err)
			}
			openFile(t, p, &mappings[0]).Close()
		}
	}
}

// Another process has the ID of the thread by which the process was opened.
func TestThreadIDIsReused(t *testing.T) {
	pid, _ := start(t, "wait", os.Args[0])
	p, err := Open(pid, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	list, err := p.List(background, nil, Executable)
	if err != nil {
		t.Fatal(err)
	}
	own, err := Open(os.Getpid(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	own.thread = fmt.Sprintf("task/%d/", pid)
	openFile(t, p, &list[0]).Close()
	if _, err := own.openLink(&list[0]); err != ErrNoProcess {
		t.Errorf("%v", err)
	}
}

// The procfs of another PID namespace does not have this process.
func TestForeignProcfs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	dir := t.TempDir()
	pid, _ := start(t, "procfs "+dir, os.Args[0])
	options := Options{Proc: fmt.Sprintf("/proc/%d/root%s", pid, dir)}
	p, err := Open(1, options)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	list, err := p.List(background, nil, Executable|WantBuildID)
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	openFile(t, p, &list[0]).Close()
	again, err := p.Reopen()
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if _, err := Open(1<<21, options); !errors.Is(err, ErrNoProcess) {
		t.Errorf("no process: %v", err)
	}
}

func TestOptionsAndErrors(t *testing.T) {
	if _, err := Open(os.Getpid(), Options{Method: "fast"}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("unknown method: %v", err)
	}
	if _, err := Open(os.Getpid(), Options{Proc: "/none"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no procfs: %v", err)
	}
	p, err := Open(os.Getpid(), Options{Proc: "/proc/self/root/proc"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for method, q := range openAll(t, os.Getpid()) {
		if p.Refusal(method) != nil && method != Any {
			t.Errorf("%q: %v", method, q.Refusal(method))
		}
		if _, err := q.Find(0, 1<<20); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%q: unknown flag: %v", method, err)
		}
		done, cancel := context.WithCancel(background)
		cancel()
		if list, err := q.List(done, make([]Mapping, 1), 0); err != context.Canceled || len(list) != 1 {
			t.Errorf("%q: %d mappings, %v", method, len(list), err)
		}
		q.Close()
		if _, err := q.Find(0, 0); err == nil || errors.Is(err, ErrNoMapping) {
			t.Errorf("%q: after Close: %v", method, err)
		}
	}
}

func TestListDoesNotAllocate(t *testing.T) {
	pid, _ := start(t, "wait", os.Args[0])
	for method, p := range openAll(t, pid) {
		mappings, err := p.List(background, nil, 0)
		n := testing.AllocsPerRun(10, func() {
			mappings, err = p.List(background, mappings[:0], 0)
		})
		if n > 0 || err != nil {
			t.Errorf("%q: %v allocations, %v", method, n, err)
		}
	}
}

func TestBadLinesAreRefused(t *testing.T) {
	const good = "1000-2000 r-xp 0 0:0 0 \n"
	for _, change := range [][2]string{{"", ""}, {good, ""}, {"\n", ""}, {" \n", "\n"}, {"1000", "g000"},
		{"1000", "2000"}, {"2000", "2:00"}, {"2000", "10000000000002000"}, {"x", "?"}, {"xp", "x"},
		{"0:0", "00"}, {" 0 \n", " a \n"}, {"\n", strings.Repeat("x", maxLine) + "\n"}} {
		line := strings.Replace(good, change[0], change[1], 1)
		path := filepath.Join(t.TempDir(), "maps")
		os.WriteFile(path, []byte(line), 0600)
		file, _ := os.Open(path)
		p := &Process{method: Text, maps: file, text: bufio.NewReaderSize(file, maxLine)}
		if err := p.find(0x1000, 0, &Mapping{}); err == ErrNoMapping || err == nil != (line == good) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
