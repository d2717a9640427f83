// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

// Go-profiler does what a profiler of the whole machine does to symbolize its samples: each
// second, it lists the executable mappings of all processes, with the device, the inode and the
// build ID of the file: "-" if there is none, "?" if it is not known. go-profiler [looks]
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"example.org/procmap"
)

func buildID(m *procmap.Mapping) string {
	switch {
	case m.BuildIDErr != nil:
		return "?"
	case m.BuildIDSize == 0:
		return "-"
	}
	return fmt.Sprintf("%x", m.BuildID[:m.BuildIDSize])
}

// list adds the lines of a process.
func list(pid int, lines *bytes.Buffer) error {
	p, err := procmap.Open(pid, procmap.Options{})
	if err != nil {
		return err
	}
	defer p.Close()
	const flags = procmap.Executable | procmap.WantBuildID
	return p.Each(context.Background(), flags, func(m *procmap.Mapping) bool {
		fmt.Fprintf(lines, "%d %x-%x %x %x:%x %d %s %s\n", pid, m.Start, m.End, m.Offset,
			m.DevMajor, m.DevMinor, m.Inode, buildID(m), m.Name)
		return true
	})
}

// look writes the lines of all processes, from several goroutines, and counts those that it may
// not inspect. A process that has exited, or is a kernel thread, has no lines.
func look(out *bufio.Writer) (refused int) {
	var group sync.WaitGroup
	var lock sync.Mutex // of out and refused
	entries, _ := os.ReadDir("/proc")
	pids := make(chan int)
	group.Add(runtime.GOMAXPROCS(0))
	for i := 0; i < runtime.GOMAXPROCS(0); i++ {
		go func() {
			defer group.Done()
			var lines bytes.Buffer
			for pid := range pids {
				err := list(pid, &lines)
				lock.Lock()
				if errors.Is(err, os.ErrPermission) {
					refused++
				} else if err != nil && !errors.Is(err, syscall.ESRCH) {
					log.Print(err)
				}
				lines.WriteTo(out)
				lock.Unlock()
			}
		}()
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids <- pid
		}
	}
	close(pids)
	group.Wait()
	return refused
}

func main() {
	looks := -1
	if len(os.Args) > 1 {
		looks, _ = strconv.Atoi(os.Args[1])
	}
	out := bufio.NewWriter(os.Stdout)
	for tick := time.Tick(time.Second); looks != 0; looks-- {
		if refused := look(out); refused > 0 {
			log.Printf("no permission to inspect %d processes", refused)
		}
		if out.Flush() != nil || looks == 1 {
			return
		}
		<-tick
	}
}
