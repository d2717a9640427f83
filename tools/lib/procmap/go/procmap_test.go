// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
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

// The query is mainline's unless a scan says otherwise.
var isBounded = func() bool {
	maps := must(os.Open("/proc/self/maps"))
	defer maps.Close()
	arg := scanArg{size: 104, end: 1, vec: 8, vecLen: 1, vmaSize: 72}
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, maps.Fd(), procmapScan,
		uintptr(unsafe.Pointer(&arg)))
	return err == 0 && arg.flags&scanQueryBounded != 0
}()

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// The program is run again as a child, which does what PROCMAP_CHILD says, prints a line
// and waits for one.
func TestMain(m *testing.M) {
	what, argument, _ := strings.Cut(os.Getenv("PROCMAP_CHILD"), " ")
	switch what {
	case "":
		os.Exit(m.Run())
	case "map":
		number, dir, _ := strings.Cut(argument, " ")
		mapMany(number)
		for _, path := range must(filepath.Glob(dir + "/*")) {
			mapFile(path)
		}
	case "own":
		openOwnFiles(argument)
		os.Exit(0)
	case "nobody":
		must(0, syscall.Setgroups(nil)) // hidepid is not for those of group 0
		must(0, syscall.Setgid(65534))
		must(0, syscall.Setuid(65534))
		_, err := Open(must(strconv.Atoi(argument)), Options{})
		fmt.Println(err)
		os.Exit(0)
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
	page, mappings := os.Getpagesize(), must(strconv.Atoi(number))
	area := must(syscall.Mmap(-1, 0, mappings*page, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON))
	for i := 0; i < mappings; i += 2 {
		permissions := syscall.PROT_READ
		if i%10 == 0 {
			permissions |= syscall.PROT_EXEC
		}
		must(0, syscall.Mprotect(area[i*page:(i+1)*page], permissions))
	}
}

// mapFile maps a page of a file in this process.
func mapFile(path string) []byte {
	file := must(os.Open(path))
	defer file.Close()
	return must(syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(), syscall.PROT_READ,
		syscall.MAP_SHARED))
}

// openOwnFiles opens a file that is mapped here, before and after it was deleted.
func openOwnFiles(path string) {
	m := must(must(Open(os.Getpid(), Options{})).Find(address(mapFile(path)), 0))
	for i := 0; i < 2; i++ {
		file, err := must(Open(os.Getpid(), Options{})).OpenFile(&m)
		text, _ := io.ReadAll(file)
		fmt.Printf("%s,%v,", text, errors.Is(err, os.ErrNotExist))
		os.Remove(path)
	}
}

// start starts a child that waits, and returns its process ID and its stdin.
func start(t testing.TB, name string, args ...string) (int, io.Writer) {
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "PROCMAP_CHILD="+name)
	stdin, _ := command.StdinPipe()
	stdout, _ := command.StdoutPipe()
	must(0, command.Start())
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	must(bufio.NewReader(stdout).ReadString('\n'))
	return command.Process.Pid, stdin
}

// eventually waits for what a process does.
func eventually(t *testing.T, isDone func() bool) {
	for try := 0; !isDone(); try++ {
		if try == 500 {
			t.Fatal("still not")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// openAll opens a process by each method that the kernel has.
func openAll(t testing.TB, pid int) (map[Method]*Process, error) {
	all := make(map[Method]*Process)
	for _, method := range []Method{Any, Query, Text, Scan} {
		p, err := Open(pid, Options{Method: method})
		if errors.Is(err, syscall.ENOTTY) && (method == Query || method == Scan) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[method] = p
		t.Cleanup(func() { p.Close() })
	}
	return all, nil
}

func openFile(t *testing.T, p *Process, m *Mapping) *os.File {
	file, err := p.OpenFile(m)
	if errors.Is(err, os.ErrPermission) {
		t.Skip("needs CAP_CHECKPOINT_RESTORE: ", err)
	}
	return must(file, err)
}

func withSingleBlanks(line string) string { return strings.Join(strings.Fields(line), " ") }

// format makes a line as in maps; with a build ID, as procfs_query prints it.
func format(m *Mapping, flags Flags) string {
	permissions, id := []byte("---p"), ""
	for i, c := range []byte("rwxs") {
		if m.Flags&(Readable<<i) != 0 {
			permissions[i] = c
		}
	}
	if m.BuildIDErr != nil {
		id = "?"
	} else if m.BuildIDSize > 0 {
		id = fmt.Sprintf("%x", m.BuildID[:m.BuildIDSize])
	} else if flags&WantBuildID != 0 {
		id = "-"
	}
	return withSingleBlanks(fmt.Sprintf("%08x-%08x %s %08x %02x:%02x %d %s %s", m.Start, m.End,
		permissions, m.Offset, m.DevMajor, m.DevMinor, m.Inode, id, m.Name))
}

// read returns the lines of maps; with build IDs, those of procfs_query, which uses libprocmap.
func read(pid int, flags Flags) (lines []string) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if flags&WantBuildID != 0 {
		tool := exec.Command(os.Getenv("TOOL"), "-p", strconv.Itoa(pid), "--list", "-B")
		text, _ = tool.Output()
	}
	for _, line := range strings.Split(string(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "ffffffffff600000-") {
			lines = append(lines, withSingleBlanks(line))
		}
	}
	return lines
}

// difference lists a process and looks up some of its mappings.
func difference(p *Process, flags Flags, lines []string) string {
	mappings, err := p.List(background, nil, flags)
	if err != nil || len(mappings) != len(lines) {
		return fmt.Sprintf("%d mappings, not %d: %v", len(mappings), len(lines), err)
	}
	for i := range mappings {
		m := &mappings[i]
		got := format(m, flags)
		if got != lines[i] {
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
func compare(t *testing.T, flags Flags, pids ...int) {
	if flags&WantBuildID != 0 && os.Getenv("TOOL") == "" {
		t.Log("not compared with libprocmap: TOOL is not set to the path of procfs_query")
		return
	}
	compared := 0
	for _, pid := range pids {
		all, err := openAll(t, pid)
		if err != nil && !errors.Is(err, ErrNoProcess) && !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
		for method, p := range all {
			lines := read(pid, flags)
			problem := difference(p, flags, lines)
			for try := 1; try < 8 && problem != ""; try++ {
				now := read(pid, flags)
				if strings.Join(now, "\n") == strings.Join(lines, "\n") && hasMemory(p.dir) {
					t.Errorf("process %d by %q: %s", pid, method, problem)
					break
				}
				time.Sleep(time.Duration(try) * 5 * time.Millisecond)
				lines = read(pid, flags)
				problem = difference(p, flags, lines)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Error("no process was compared")
	}
}

func TestEveryProcess(t *testing.T) {
	var pids []int
	for _, directory := range must(filepath.Glob("/proc/[1-9]*")) {
		if pid, _ := strconv.Atoi(filepath.Base(directory)); pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	compare(t, 0, pids...)
	compare(t, WantBuildID, pids...)
}

func TestManyMappingsAndHostileNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"new\nline", "\n\n", `back\slash`, `\012`, "deleted (deleted)",
		" blanks  and\ttab ", "[vsyscall]", "\xff\xfe", strings.Repeat("\n", 255)} {
		os.WriteFile(filepath.Join(dir, name), nil, 0600)
	}
	pid, _ := start(t, "map 65000 "+dir, os.Args[0])
	compare(t, 0, pid)
	either := 0
	for _, line := range read(pid, 0) {
		if strings.ContainsAny(strings.Fields(line)[1], "xw") {
			either++
		}
	}
	for method, p := range must(openAll(t, pid)) {
		list := must(p.List(background, nil, Executable))
		if len(list) < 6500 || len(list) > 6600 {
			t.Errorf("%q: %d executable mappings", method, len(list))
		}
		list = must(p.List(background, nil, AnyOf|Executable|Writable))
		if len(list) != either {
			t.Errorf("%q: %d, not %d, are executable or writable", method, len(list), either)
		}
	}
}

// A directory that is not procfs has what is written here.
func TestADirectoryForTests(t *testing.T) {
	dir := t.TempDir()
	must(0, os.MkdirAll(dir+"/1234/root", 0700))
	must(0, os.WriteFile(dir+"/1234/root/a", []byte("another file"), 0600))
	must(0, os.WriteFile(dir+"/1234/maps", []byte(`1000-2000 r--p 00000000 08:01 5 /a
2000-3000 r-xp 00001000 08:01 5 /a
3000-4000 -w-p 00000000 08:01 6 /b (deleted)
5000-6000 ---p 00000000 00:00 0 (deleted)
`), 0600))
	p := must(Open(1234, Options{Proc: dir}))
	defer p.Close()
	for _, row := range []struct {
		flags Flags
		want  string
	}{
		{0, "[1000 2000 3000 5000]"},
		{Readable | Executable, "[2000]"},
		{AnyOf | Readable | Executable, "[1000 2000]"},
		{AnyOf | Writable | Executable, "[2000 3000]"},
	} {
		var starts []string
		must(0, p.Each(background, row.flags, func(m *Mapping) bool {
			starts = append(starts, fmt.Sprintf("%x", m.Start))
			if m.Deleted != (m.Start == 0x3000) {
				t.Errorf("%x: deleted: %v", m.Start, m.Deleted)
			}
			return true
		}))
		if got := fmt.Sprint(starts); got != row.want {
			t.Errorf("%#x: %s, not %s", row.flags, got, row.want)
		}
	}
	calls := 0
	must(0, p.Each(background, 0, func(m *Mapping) bool { calls++; return calls < 2 }))
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
	m := must(p.Find(0x2000, WantBuildID))
	if _, err := p.OpenFile(&m); !errors.Is(err, ErrOtherFile) || m.BuildIDErr != ErrOtherFile {
		t.Errorf("another file was opened: %v, %v", err, m.BuildIDErr)
	}
	if _, err := Open(1235, Options{Proc: dir}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// The file has its name, or nobody without a capability can open it.
func TestFilesOfTheProcessItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(0, os.WriteFile(path, []byte("content"), 0600))
	args := []string{os.Args[0]}
	if os.Geteuid() == 0 {
		args = append([]string{"setpriv", "--bounding-set=-sys_admin,-checkpoint_restore"}, args...)
	}
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), "PROCMAP_CHILD=own "+path)
	if got := string(must(command.Output())); got != "content,false,,true," {
		t.Error(got)
	}
}

func TestTheMappedFileIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	os.WriteFile(path, []byte("not an ELF file"), 0600)
	addr, pid, procfs := address(mapFile(path)), os.Getpid(), t.TempDir()
	os.Remove(path)
	all := must(openAll(t, pid))
	// That of another PID namespace does not have this process.
	os.Symlink(fmt.Sprintf("/proc/%d", pid), fmt.Sprintf("%s/%d", procfs, pid))
	all["procfs"] = must(Open(pid, Options{Proc: procfs}))
	for method, p := range all {
		m := must(p.Find(addr, 0))
		file := openFile(t, p, &m)
		raw, _ := file.SyscallConn()
		raw.Control(func(fd uintptr) {
			flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
			if flags&syscall.O_NONBLOCK != 0 {
				t.Errorf("%q: the runtime may poll the file", method)
			}
		})
		if text := must(io.ReadAll(file)); string(text) != "not an ELF file" {
			t.Errorf("%q: %q", method, text)
		}
		file.Close()
		other, withID := m, m // as if another file was mapped, or is by now
		other.Inode++
		withID.BuildID, withID.BuildIDSize = [20]byte{1}, 20
		for m, want := range map[*Mapping]error{&other: ErrOtherFile, &withID: ErrOtherFile,
			{Name: "[stack]"}: ErrNoFile} {
			if _, err := p.OpenFile(m); !errors.Is(err, want) {
				t.Errorf("%q: %v, not %v", method, err, want)
			}
		}
		m.End = m.Start + 1 // as if it had been split since
		openFile(t, p, &m).Close()
		if m := must(p.Find(addr, WantBuildID)); m.BuildIDErr != nil || m.BuildIDSize != 0 {
			t.Errorf("%q: build ID: %x, %v", method, m.BuildID, m.BuildIDErr)
		}
	}
}

// The process maps two files at one address in turn.
func TestAnotherFileIsNotOpened(t *testing.T) {
	dir, done := t.TempDir(), make(chan bool)
	paths := []string{dir + "/a", dir + "/b"}
	for _, path := range paths {
		os.WriteFile(path, []byte(path), 0600)
	}
	addr, size := address(mapFile(paths[0])), uintptr(os.Getpagesize())
	all := must(openAll(t, os.Getpid()))
	m := must(all[Text].Find(addr, 0))
	openFile(t, all[Text], &m).Close()
	ctx, cancel := context.WithCancel(background)
	defer func() { cancel(); <-done }()
	go func() {
		const mayMoveFixed = 3
		for i := 1; ctx.Err() == nil; i++ {
			from := uintptr(address(mapFile(paths[i%2])))
			syscall.Syscall6(syscall.SYS_MREMAP, from, size, size, mayMoveFixed, uintptr(addr), 0)
		}
		close(done)
	}()
	for method, p := range all {
		for opened := 0; opened < 200; {
			if file, err := p.OpenFile(&m); err == nil {
				if text := must(io.ReadAll(file)); string(text) != m.Name {
					t.Fatalf("%q: %s instead of %s", method, text, m.Name)
				}
				opened++
				file.Close()
			}
		}
	}
}

// Mainline's kernel may oops, or wait. A mapping of /bin/sh does no harm.
func TestMainlineIsNotAskedForBuildIDs(t *testing.T) {
	asked := false
	onIoctl = func(p *Process) {
		asked = asked || p.query.buildIDAddr != 0 || p.scan.want&scanBuildIDs != 0
	}
	defer func() { onIoctl = func(p *Process) {} }()
	note := must(must(elf.Open("/bin/sh")).Section(".note.gnu.build-id").Data())
	addr := address(mapFile("/bin/sh"))
	for _, method := range []Method{Any, Query, Text} {
		for _, told := range []bool{false, true} {
			asked = false
			p, err := Open(os.Getpid(), Options{Method: method, KernelBuildIDs: told})
			if errors.Is(err, syscall.ENOTTY) {
				continue
			}
			m := must(must(p, err).Find(addr, WantBuildID))
			if !told {
				must(p.List(background, nil, WantBuildID))
			}
			want := p.Method() != Text && (told || isBounded)
			if asked != want || m.BuildIDErr != nil || !bytes.HasSuffix(note, m.BuildID[:]) {
				t.Errorf("%q, %v: asked: %v; %x, %v", method, told, asked, m.BuildID, m.BuildIDErr)
			}
			p.Close()
		}
	}
}

// Mainline's query would wait for a packet, to read a build ID from it.
func TestNothingIsAskedOfASocket(t *testing.T) {
	for method, p := range must(openAll(t, os.Getpid())) {
		p.query = queryArg{}
		m := Mapping{VMA: VMA{File: File{Inode: 1}}, Name: "socket:[1]", BuildIDErr: errUnread}
		p.addBuildID(WantBuildID, &m)
		if p.query.size != 0 || m.BuildIDErr != nil {
			t.Errorf("%q: %v", method, m.BuildIDErr)
		}
	}
}

func TestExecAndExit(t *testing.T) {
	pid, stdin := start(t, "", "/bin/sh", "-c", "echo ready; read x; exec cat")
	all := must(openAll(t, pid))
	fmt.Fprintln(stdin)
	for _, p := range all {
		eventually(t, func() bool {
			_, err := p.List(background, nil, Executable)
			return errors.Is(err, ErrOtherProgram)
		})
		eventually(t, func() bool {
			now, err := p.Reopen()
			if err != nil {
				return false
			}
			defer now.Close()
			mappings, _ := now.List(background, nil, Executable)
			return len(mappings) > 0 && strings.HasSuffix(mappings[0].Name, "/cat")
		})
	}
	now := must(openAll(t, pid))
	syscall.Kill(pid, syscall.SIGKILL)
	for method, p := range now {
		eventually(t, func() bool {
			_, err := all[Any].Reopen()
			return errors.Is(err, ErrNoProcess)
		})
		_, findErr := p.Find(0, 0)
		_, listErr := p.List(background, nil, 0)
		_, openErr := Open(pid, Options{}) // nobody has waited for it
		for _, err := range []error{findErr, listErr, openErr} {
			if !errors.Is(err, ErrNoProcess) || errors.Is(err, ErrNoMemory) {
				t.Errorf("%q: exited: %v", method, err)
			}
		}
	}
}

func TestTheMainThreadHasExited(t *testing.T) {
	pid, stdin := start(t, "thread", os.Args[0])
	self, _ := os.Readlink("/proc/self/exe")
	before := must(openAll(t, pid))
	stdin.Write([]byte{0})
	eventually(t, func() bool { return len(read(pid, 0)) == 0 })
	for _, all := range []map[Method]*Process{before, must(openAll(t, pid))} {
		for method, p := range all {
			m := &must(p.List(background, nil, Executable))[0]
			if m.Name != self {
				t.Errorf("%q: %q", method, m.Name)
			}
			openFile(t, p, m).Close()
		}
	}
}

// The maps file was passed by another process, which goes on reading it.
func TestOpenedByADescriptor(t *testing.T) {
	pid, _ := start(t, "wait", os.Args[0])
	path := fmt.Sprintf("/proc/%d", pid)
	maps, dir := must(os.Open(path+"/maps")), must(os.Open(path))
	defer maps.Close()
	defer dir.Close()
	maps.Read(make([]byte, 100))
	self, _ := os.Readlink(path + "/exe")
	for method, byPID := range must(openAll(t, pid)) {
		for _, file := range []*os.File{maps, dir} {
			p := must(OpenFD(int(file.Fd()), Options{Method: method}))
			defer p.Close()
			eventually(t, func() bool { // its runtime may map memory
				want := must(byPID.List(background, nil, 0))
				return fmt.Sprint(must(p.List(background, nil, 0))) == fmt.Sprint(want)
			})
			m := &must(p.List(background, nil, Executable))[0]
			if found := must(p.Find(m.Start, Executable)); found.Name != self {
				t.Errorf("%q: %q is mapped, not %q", method, found.Name, self)
			}
			if file == dir {
				openFile(t, p, m).Close()
				continue
			}
			if _, err := p.OpenFile(m); !errors.Is(err, ErrNoDirectory) {
				t.Errorf("%q: opened without the directory: %v", method, err)
			}
			if _, err := p.Reopen(); !errors.Is(err, ErrNoDirectory) {
				t.Errorf("%q: opened again without the directory: %v", method, err)
			}
		}
	}
	if at := must(maps.Seek(0, io.SeekCurrent)); at != 100 {
		t.Errorf("the position of the file is %d by now", at)
	}
	other := must(os.Open("/proc/self/status"))
	other.Close()
	if _, err := OpenFD(int(other.Fd()), Options{}); !errors.Is(err, syscall.EBADF) {
		t.Errorf("a closed descriptor: %v", err)
	}
	for _, path := range []string{"/proc/self/status", "/etc/passwd", "/etc"} {
		other := must(os.Open(path))
		defer other.Close()
		if _, err := OpenFD(int(other.Fd()), Options{}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOptionsAndErrors(t *testing.T) {
	if _, err := Open(os.Getpid(), Options{Method: "fast"}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("unknown method: %v", err)
	}
	if _, err := Open(os.Getpid(), Options{Proc: "/none"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no procfs: %v", err)
	}
	if _, err := Open(1<<22+1, Options{}); !errors.Is(err, ErrNoProcess) {
		t.Errorf("no process: %v", err)
	}
	for _, line := range []string{"1000-2000 r-xp 0 0:0", "Name:\tprocmap.test"} {
		if _, _, ok := parseLine([]byte(line)); ok {
			t.Errorf("%q is taken for a line of maps", line)
		}
	}
	for method, p := range must(openAll(t, os.Getpid())) {
		if _, err := p.Find(0, 0); !errors.Is(err, ErrNoMapping) || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%q: no mapping: %v", method, err)
		}
		done, cancel := context.WithCancel(background)
		cancel()
		if list, err := p.List(done, make([]Mapping, 1), 0); !errors.Is(err, context.Canceled) || len(list) != 1 {
			t.Errorf("%q: %d mappings, %v", method, len(list), err)
		}
	}
}

// Kernel threads are children of the second process.
func TestKernelThreadsHaveNoMemory(t *testing.T) {
	if comm, _ := os.ReadFile("/proc/2/comm"); string(comm) != "kthreadd\n" {
		t.Skip("no kernel thread is in this PID namespace")
	}
	for _, directory := range must(filepath.Glob("/proc/[1-9]*")) {
		pid, _ := strconv.Atoi(filepath.Base(directory))
		text, _ := os.ReadFile(directory + "/status")
		isThread := pid == 2 || bytes.Contains(text, []byte("\nPPid:\t2\n"))
		p, err := Open(pid, Options{})
		if isThread != errors.Is(err, ErrNoMemory) && syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d: %v", pid, err)
		}
		if err == nil {
			p.Close()
		}
	}
}

func TestErrorsOfPermission(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	for _, row := range []struct{ before, want string }{
		{"", fmt.Sprintf("procmap: process %d: open: permission denied", os.Getpid())},
		{"mount -t proc -o hidepid=2 none /proc;",
			fmt.Sprintf("procmap: process %d: open: operation not permitted", os.Getpid())},
	} {
		command := exec.Command("unshare", "-m", "sh", "-c", row.before+`exec "$0"`, os.Args[0])
		command.Env = append(os.Environ(), fmt.Sprintf("PROCMAP_CHILD=nobody %d", os.Getpid()))
		if got := string(must(command.Output())); !strings.HasPrefix(got, row.want) {
			t.Errorf("%q: %s, not %s", row.before, got, row.want)
		}
	}
}

func TestClosedHandle(t *testing.T) {
	for method, p := range must(openAll(t, os.Getpid())) {
		m := must(p.List(background, nil, Executable))[0]
		errs := []error{nil, nil, nil, nil, nil, nil}
		s := must(p.Snapshot(background, 0))
		must(0, p.Close())
		_, errs[0] = p.Find(m.Start, 0)
		_, errs[1] = p.List(background, nil, 0)
		_, errs[2] = p.OpenFile(&m)
		_, errs[3] = p.Reopen()
		_, _, errs[4] = s.Refresh(background)
		errs[5] = p.Close()
		for i, err := range errs {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%q: %d: %v", method, i, err)
			}
		}
	}
}

// The text is compared with what Refresh returns for a file that is mapped and unmapped.
func TestSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(0, os.WriteFile(path, []byte("content"), 0600))
	for method, p := range must(openAll(t, os.Getpid())) {
		s := must(p.Snapshot(background, Shared))
		refresh := func() string {
			added, removed, err := s.Refresh(background)
			return fmt.Sprint(names(added), names(removed), err)
		}
		got := []string{refresh()}
		page := mapFile(path)
		got = append(got, refresh(), refresh())
		addr := address(page)
		m := s.Find(addr)
		if m == nil || m.Name != path || m.Start != addr || s.Find(m.End-1) != m {
			t.Errorf("%q: found %v", method, m)
		}
		must(0, syscall.Mprotect(page, syscall.PROT_NONE))
		got = append(got, refresh())
		must(0, syscall.Munmap(page))
		got = append(got, refresh())
		want := []string{"[] [] <nil>", "[file] [] <nil>", "[] [] <nil>", "[file] [file] <nil>",
			"[] [file] <nil>"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %q, not %q", method, got, want)
		}
		if s.Find(addr) != nil {
			t.Errorf("%q: found what is unmapped", method)
		}
	}
}

func names(list []Mapping) (names []string) {
	for i := range list {
		names = append(names, filepath.Base(list[i].Name))
	}
	return names
}

// Where nothing has changed, and the kernel says so, that is one system call.
func TestRefreshOfAnIdleProcess(t *testing.T) {
	pid, _ := start(t, "wait", os.Args[0])
	for method, p := range must(openAll(t, pid)) {
		s := must(p.Snapshot(background, WantBuildID))
		calls := 0
		onIoctl = func(*Process) { calls++ }
		added, removed, err := s.Refresh(background)
		onIoctl = func(*Process) {}
		if len(added)+len(removed) > 0 || err != nil || s.IsConsistent() && calls != 1 {
			t.Errorf("%q: %v, %v, %v, %d calls", method, added, removed, err, calls)
		}
		t.Logf("%q: consistent: %v, %d ioctls", method, s.IsConsistent(), calls)
	}
}

func TestListDoesNotAllocate(t *testing.T) {
	pid, _ := start(t, "wait", os.Args[0])
	for method, p := range must(openAll(t, pid)) {
		list := must(p.List(background, nil, 0))
		n := testing.AllocsPerRun(10, func() { list = must(p.List(background, list[:0], 0)) })
		if n > 0 {
			t.Errorf("%q: %v allocations", method, n)
		}
	}
}

// nameOfID returns the file of a case that has this build ID: 20 bytes of 1 or 2.
func nameOfID(content []byte) string {
	switch {
	case bytes.Contains(content, bytes.Repeat([]byte{1}, 20)):
		return "one"
	case bytes.Contains(content, bytes.Repeat([]byte{2}, 20)):
		return "two"
	}
	return "none"
}

// checkCase compares what is said of a mapping with the last strings of a case. A kernel knows the
// build ID of a file that is mapped, and not at its path.
func checkCase(p *Process, addr uint64, buildID, opened string) error {
	m, err := p.Find(addr, WantBuildID)
	if err != nil {
		return err
	}
	got := "unknown"
	if m.BuildIDErr == nil {
		got = nameOfID(m.BuildID[:m.BuildIDSize])
	}
	if got != buildID && !(buildID == "unknown" && got == "one" && p.asksIDs) {
		return fmt.Errorf("build ID %s instead of %s", got, buildID)
	}
	file, err := p.OpenFile(&m)
	if err != nil {
		if opened == "unknown" && errors.Is(err, ErrOtherFile) {
			return nil
		}
		return err
	}
	defer file.Close()
	if got := nameOfID(must(io.ReadAll(file))); got != opened {
		return fmt.Errorf("opened %s instead of %s", got, opened)
	}
	return nil
}

func TestCases(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	_, source, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(source), "../test")
	table, err := os.ReadFile(filepath.Join(dir, "cases.h"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("a copy of the package has no table of cases")
	}
	for _, row := range regexp.MustCompile(`(?ms)^CASE_OF\((".*?")\)$`).FindAllStringSubmatch(string(table), -1) {
		column := regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(row[1], -1)
		holder := exec.Command("python3", filepath.Join(dir, "hold_case.py"), column[0][1])
		stdin, stdout := must(holder.StdinPipe()), must(holder.StdoutPipe())
		must(0, holder.Start())
		line := must(bufio.NewReader(stdout).ReadString('\n'))
		addr, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
		if err != nil {
			t.Logf("%s: %s", column[0][1], line)
		} else {
			for method, p := range must(openAll(t, holder.Process.Pid)) {
				if err := checkCase(p, addr, column[4][1], column[6][1]); err != nil {
					t.Errorf("%s: %q: %v", column[0][1], method, err)
				}
			}
		}
		stdin.Close()
		holder.Wait()
	}
}

// bySscanf appends all lines to list, as they are usually parsed.
func bySscanf(pid int, list []Mapping) []Mapping {
	file := must(os.Open(fmt.Sprintf("/proc/%d/maps", pid)))
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var m Mapping
		var permissions, device string
		fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d %s", &m.Start, &m.End, &permissions,
			&m.Offset, &device, &m.Inode, &m.Name)
		list = append(list, m)
	}
	return list
}

// Look at a process, and at one that has no memory.
func BenchmarkOpen(b *testing.B) {
	for _, pid := range []int{os.Getpid(), 2} {
		b.Run(strconv.Itoa(pid), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				if p, err := Open(pid, Options{}); err == nil {
					p.Close()
				}
			}
		})
	}
}

// Of a process with so many mappings, list every tenth one, which is executable, and look
// up an address in the middle of them. For either, a parser reads the whole text: Sscanf(), and
// the one of this package, List/text and Find/text.
func Benchmark(b *testing.B) {
	for _, mappings := range []int{100, 3000, 60000} {
		pid, _ := start(b, fmt.Sprintf("map %d %s", mappings, b.TempDir()), os.Args[0])
		run := func(name string, call func()) {
			b.Run(fmt.Sprintf("%s/%d", name, mappings), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; i < b.N; i++ {
					call()
				}
			})
		}
		list := bySscanf(pid, nil)
		addr := list[len(list)/2].Start
		run("Sscanf", func() { list = bySscanf(pid, list[:0]) })
		for method, p := range must(openAll(b, pid)) {
			run("List/"+string(method), func() {
				list = must(p.List(background, list[:0], Executable))
			})
			run("Find/"+string(method), func() { must(p.Find(addr, 0)) })
		}
	}
}
