// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

//go:build linux && (386 || amd64 || arm64)

package procmap

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// region is what profilers keep of a line.
type region struct {
	start, end, offset, inode uint64
	permissions, name         string
}

// bySscanf is how a text is usually parsed.
func bySscanf(pid int, list []region) ([]region, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return list, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r region
		var device string
		n, err := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d %s", &r.start, &r.end, &r.permissions,
			&r.offset, &device, &r.inode, &r.name)
		if n < 6 {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

// byHand is how it is parsed where that takes too long.
func byHand(pid int, list []region) ([]region, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return list, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		start, end, ok := strings.Cut(fields[0], "-")
		if !ok || len(fields) < 5 {
			return list, strconv.ErrSyntax
		}
		r := region{permissions: fields[1]}
		if len(fields) > 5 {
			r.name = fields[5]
		}
		r.start, _ = strconv.ParseUint(start, 16, 64)
		r.end, _ = strconv.ParseUint(end, 16, 64)
		r.offset, _ = strconv.ParseUint(fields[2], 16, 64)
		r.inode, _ = strconv.ParseUint(fields[4], 10, 64)
		list = append(list, r)
	}
	return list, nil
}

func findRegion(list []region, addr uint64) bool {
	for i := range list {
		if list[i].start <= addr && addr < list[i].end {
			return true
		}
	}
	return false
}

// cpuTime does not depend on what else runs on the machine.
func cpuTime() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// Of a process with so many mappings, list every tenth one, which is executable, and look
// up an address in the middle of them.
func Benchmark(b *testing.B) {
	for _, mappings := range []int{100, 3000, 60000} {
		pid, _ := start(b, "map "+strconv.Itoa(mappings), os.Args[0])
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		lines := bytes.Split(text, []byte("\n"))
		addr, _ := strconv.ParseUint(string(bytes.Split(lines[len(lines)/2], []byte("-"))[0]), 16, 64)
		run := func(name string, call func() error) {
			b.Run(fmt.Sprintf("%s/%d", name, mappings), func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime()
				for i := 0; i < b.N; i++ {
					if err := call(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
		for _, parser := range []struct {
			name  string
			parse func(int, []region) ([]region, error)
		}{{"Sscanf", bySscanf}, {"Fields", byHand}} {
			var regions []region
			run("List/"+parser.name, func() (err error) {
				regions, err = parser.parse(pid, regions[:0])
				return err
			})
			run("Find/"+parser.name, func() (err error) {
				if regions, err = parser.parse(pid, regions[:0]); !findRegion(regions, addr) {
					err = ErrNoMapping
				}
				return err
			})
		}
		for method, p := range openAll(b, pid) {
			if method == Any {
				continue
			}
			p := p
			var list []Mapping
			run("List/"+string(method), func() (err error) {
				list, err = p.List(background, list[:0], Executable)
				return err
			})
			run("Find/"+string(method), func() error {
				_, err := p.Find(addr, 0)
				return err
			})
		}
	}
}
