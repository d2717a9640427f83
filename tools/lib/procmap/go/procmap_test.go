// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"
)

var background = context.Background()

// The program is run again as a child, which does what PROCMAP_CHILD says, prints a line
// and waits for one.
func TestMain(m *testing.M) {
	what, number, _ := strings.Cut(os.Getenv("PROCMAP_CHILD"), " ")
	switch what {
	case "":
		os.Exit(m.Run())
	case "map":
		mappings, _ := strconv.Atoi(number)
		mapMany(mappings)
	case "thread":
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
func mapMany(mappings int) {
	page := os.Getpagesize()
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

// start starts a child that waits, and returns its process ID and its stdin.
func start(t testing.TB, name string, args ...string) (int, io.Writer) {
	t.Helper()
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "PROCMAP_CHILD="+name)
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

// openBy opens a process by each method that the kernel has.
func openBy(t testing.TB, pid int) (map[Method]*Process, error) {
	all := make(map[Method]*Process)
	for _, method := range []Method{Any, Query, Text, Scan} {
		p, err := Open(pid, Options{Method: method})
		if errors.Is(err, syscall.ENOTTY) && (method == Query || method == Scan) {
			continue
		}
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { p.Close() })
		all[method] = p
	}
	return all, nil
}

func openAll(t testing.TB, pid int) map[Method]*Process {
	t.Helper()
	all, err := openBy(t, pid)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// eachProcess calls compare until it finds no difference, since a process may change
// meanwhile.
func eachProcess(t *testing.T, compare func(pid int, p *Process, method Method) string) {
	directories, _ := filepath.Glob("/proc/[1-9]*")
	compared := 0
	for _, directory := range directories {
		pid, _ := strconv.Atoi(filepath.Base(directory))
		all, err := openBy(t, pid)
		if errors.Is(err, ErrNoProcess) || errors.Is(err, os.ErrPermission) || pid == os.Getpid() {
			continue
		}
		if err != nil {
			t.Errorf("process %d: %v", pid, err)
		}
		for method, p := range all {
			problem := "?"
			for try := 0; try < 8 && problem != ""; try++ {
				time.Sleep(time.Duration(try) * 5 * time.Millisecond)
				problem = compare(pid, p, method)
			}
			_, err := Open(pid, Options{})
			if problem != "" && !errors.Is(err, ErrNoProcess) {
				t.Errorf("process %d by %q: %s", pid, method, problem)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Error("no process was compared")
	}
}

// format makes a line as in maps, without the padding of the name.
func format(m *Mapping) string {
	permissions := []byte("---p")
	for i, c := range []byte("rwxs") {
		if m.Flags&(Readable<<i) != 0 {
			permissions[i] = c
		}
	}
	return fmt.Sprintf("%08x-%08x %s %08x %02x:%02x %d %s", m.Start, m.End, permissions, m.Offset,
		m.DevMajor, m.DevMinor, m.Inode, m.Name)
}

// readText is another reader of the text.
func readText(pid int) (lines []string) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	for _, line := range strings.SplitAfter(string(text), "\n") {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		if len(fields) < 6 {
			continue
		}
		fields[5] = strings.TrimLeft(fields[5], " ")
		if fields[5] != "[vsyscall]" {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return lines
}

func list(p *Process, flags Flags) ([]Mapping, []string, error) {
	mappings, err := p.List(background, nil, flags)
	lines := make([]string, 0, len(mappings))
	for i := range mappings {
		lines = append(lines, format(&mappings[i]))
	}
	return mappings, lines, err
}

// differ returns the first line that differs.
func differ(a, b []string) string {
	for i := 0; i < len(a) || i < len(b); i++ {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%q\n%q", i, a[i:min(i+1, len(a))], b[i:min(i+1, len(b))])
		}
	}
	return ""
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func compareWithText(pid int, p *Process) string {
	mappings, lines, err := list(p, 0)
	if problem := differ(lines, readText(pid)); err != nil || problem != "" {
		return fmt.Sprint(err, " ", problem)
	}
	for i := 0; i < len(mappings); i += 1 + len(mappings)/10 {
		m := &mappings[i]
		for _, addr := range []uint64{m.Start, m.End - 1} {
			found, err := p.Find(addr, 0)
			if err != nil || format(&found) != format(m) {
				return fmt.Sprintf("%v: %q, not %q", err, format(&found), format(m))
			}
		}
	}
	return ""
}

func TestEveryProcessIsAsInItsText(t *testing.T) {
	eachProcess(t, func(pid int, p *Process, method Method) string {
		return compareWithText(pid, p)
	})
}

// byLibrary lists with procfs_query, which uses libprocmap.
func byLibrary(tool string, pid int, method Method) []string {
	args := []string{"-p", strconv.Itoa(pid), "--list", "-B", "--json"}
	if method != Any {
		args = append(args, "--"+string(method))
	}
	out, _ := exec.Command(tool, args...).Output()
	var answer struct {
		VMAs []struct {
			Start, End, Permissions, Offset, Inode, Name string
			DevMajor                                     uint32 `json:"dev_major"`
			DevMinor                                     uint32 `json:"dev_minor"`
			BuildID                                      string `json:"build_id"`
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for _, v := range answer.VMAs {
		lines = append(lines, fmt.Sprintf("%s-%s %s %s %d:%d %s %s %q", v.Start, v.End, v.Permissions,
			v.Offset, v.DevMajor, v.DevMinor, v.Inode, v.BuildID, v.Name))
	}
	return lines
}

func TestEveryProcessIsAsByTheLibrary(t *testing.T) {
	tool := os.Getenv("TOOL")
	if tool == "" {
		t.Skip("TOOL is not set to the path of procfs_query")
	}
	eachProcess(t, func(pid int, p *Process, method Method) string {
		mappings, _, err := list(p, WantBuildID)
		var lines []string
		for i := range mappings {
			lines = append(lines, asByLibrary(&mappings[i]))
		}
		if problem := differ(lines, byLibrary(tool, pid, method)); err != nil || problem != "" {
			return fmt.Sprint(err, " ", problem)
		}
		return ""
	})
}

func asByLibrary(m *Mapping) string {
	fields := strings.Split(format(m), " ")
	offset, inode := "", ""
	if m.hasFile() {
		offset, inode = fmt.Sprintf("%#x", m.Offset), fmt.Sprint(m.Inode)
	}
	// In its JSON, a byte that is not UTF-8 is the character of this number.
	name := []rune(m.Name)
	for i, at := 0, 0; i < len(name); i++ {
		if name[i] == utf8.RuneError && m.Name[at] != 0xef {
			name[i] = rune(m.Name[at])
			at++
		} else {
			at += utf8.RuneLen(name[i])
		}
	}
	return fmt.Sprintf("%#x-%#x %s %s %d:%d %s %x %q", m.Start, m.End, fields[1], offset, m.DevMajor,
		m.DevMinor, inode, m.BuildID[:m.BuildIDSize], string(name))
}

func TestManyMappings(t *testing.T) {
	pid, _ := start(t, "map 65000", os.Args[0])
	for method, p := range openAll(t, pid) {
		if problem := compareWithText(pid, p); problem != "" {
			t.Errorf("%q: %s", method, problem)
		}
		mappings, _, err := list(p, Executable)
		if err != nil || len(mappings) < 6500 || len(mappings) > 6600 {
			t.Errorf("%q: %d executable mappings, %v", method, len(mappings), err)
		}
	}
}

// mapFile maps a page of a new file, or one that is there, in this process.
func mapFile(t *testing.T, path string) uint64 {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, _ := file.Stat(); info.Size() == 0 {
		file.WriteString("not an ELF file")
	}
	page, err := syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(page) })
	return address(page)
}

func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"new\nline", "\n\n", `back\slash`, `\012`, "deleted (deleted)",
		" blanks  and\ttab ", "[vsyscall]", "\xff\xfe", strings.Repeat("\n", 255)} {
		addr := mapFile(t, filepath.Join(dir, name))
		want := filepath.Join(dir, strings.ReplaceAll(name, "\n", `\012`))
		for method, p := range openAll(t, os.Getpid()) {
			m, err := p.Find(addr, WantBuildID)
			if err != nil || m.Name != want || m.BuildIDErr != nil {
				t.Errorf("%q: %q, not %q: %v, %v", method, m.Name, want, err, m.BuildIDErr)
				continue
			}
			file, err := p.OpenFile(&m)
			if err != nil {
				t.Errorf("%q: %q: %v", method, name, err)
				continue
			}
			file.Close()
			if file, err = p.openPath("root"+filepath.Join(dir, name), &m, false); err != nil {
				t.Errorf("%q: %q by name: %v", method, name, err)
			}
			file.Close()
		}
	}
}

func TestTheMappedFileIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	addr := mapFile(t, path)
	for method, p := range openAll(t, os.Getpid()) {
		os.Remove(path)
		m, err := p.Find(addr, 0)
		if err != nil || m.Name != path+" (deleted)" {
			t.Fatalf("%q: %q, %v", method, m.Name, err)
		}
		file, err := p.OpenFile(&m)
		if err != nil {
			t.Fatalf("%q: %v", method, err)
		}
		text, _ := io.ReadAll(file)
		if string(text) != "not an ELF file" {
			t.Errorf("%q: %q", method, text)
		}
		file.Close()
		os.WriteFile(path, []byte("another file"), 0600)
		m.Name = path
		if _, err := p.openPath("root"+path, &m, false); !errors.Is(err, ErrOtherFile) {
			t.Errorf("%q: by name: %v", method, err)
		}
		m.End = m.Start + 1 // as if it had been split since
		if _, err := p.OpenFile(&m); !errors.Is(err, ErrOtherFile) {
			t.Errorf("%q: a part: %v", method, err)
		}
		stack := Mapping{Name: "[stack]"}
		if _, err := p.OpenFile(&stack); !errors.Is(err, ErrNoFile) {
			t.Errorf("%q: stack: %v", method, err)
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
	bytes := (*[unsafe.Sizeof(ring)]byte)(unsafe.Pointer(&ring))[:]
	if err := syscall.SetsockoptString(fd, solPacket, packetRXRing, string(bytes)); err != nil {
		t.Fatal(err)
	}
	page, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(page)
	for method, p := range openAll(t, os.Getpid()) {
		done := make(chan error, 1)
		go func() {
			_, err := p.Find(address(page), WantBuildID)
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%q: %v", method, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q: it waits", method)
		}
	}
}

func TestExecAndExit(t *testing.T) {
	pid, stdin := start(t, "", "/bin/sh", "-c", "echo ready; read x; exec cat")
	for method, p := range openAll(t, pid) {
		if _, err := p.Find(0, 0); !errors.Is(err, ErrNoMapping) || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%q: %v", method, err)
		}
	}
	all := openAll(t, pid)
	fmt.Fprintln(stdin)
	for method, p := range all {
		var err error
		for try := 0; try < 500 && !errors.Is(err, ErrNoProcess); try++ {
			time.Sleep(10 * time.Millisecond)
			_, _, err = list(p, Executable)
		}
		if !errors.Is(err, ErrNoProcess) {
			t.Fatalf("%q: after exec: %v", method, err)
		}
		now, err := p.Reopen()
		if err != nil {
			t.Fatalf("%q: %v", method, err)
		}
		t.Cleanup(func() { now.Close() })
		mappings, _, err := list(now, Executable)
		if err != nil || !strings.HasSuffix(mappings[0].Name, "/cat") {
			t.Errorf("%q: after Reopen: %v, %v", method, mappings, err)
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
	var err error
	for try := 0; try < 500 && !errors.Is(err, ErrNoProcess); try++ {
		time.Sleep(10 * time.Millisecond)
		_, err = Open(pid, Options{})
	}
	if !errors.Is(err, ErrNoProcess) {
		t.Errorf("opened after exit: %v", err)
	}
	for method, p := range all {
		if _, err := p.Reopen(); !errors.Is(err, ErrNoProcess) || !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%q: opened again after exit: %v", method, err)
		}
	}
}

func TestTheMainThreadHasExited(t *testing.T) {
	pid, _ := start(t, "thread", os.Args[0])
	self, _ := os.Readlink("/proc/self/exe")
	for method, p := range openAll(t, pid) {
		mappings, _, err := list(p, Executable)
		if err != nil || len(mappings) == 0 || mappings[0].Name != self {
			t.Fatalf("%q: %v, %v", method, mappings, err)
		}
		file, err := p.OpenFile(&mappings[0])
		if err != nil {
			t.Fatalf("%q: %v", method, err)
		}
		file.Close()
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
	p.Close()
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
		{"1000", "2000"}, {"2000", "2:00"}, {"2000", "10000000000000001"}, {"x", "?"}, {"xp", "x"},
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
