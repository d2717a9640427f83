// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause

package procmap

import (
	"bufio"
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

// bySscanf is how a line is usually parsed.
func bySscanf(line string) (r region, err error) {
	var device string
	n, err := fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &r.start, &r.end, &r.permissions, &r.offset,
		&device, &r.inode, &r.name)
	if n >= 6 {
		err = nil
	}
	return r, err
}

// byHand is how it is parsed where that takes too long.
func byHand(line string) (r region, err error) {
	fields := strings.Fields(line)
	start, end, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields) < 5 {
		return r, strconv.ErrSyntax
	}
	r.permissions = fields[1]
	if len(fields) > 5 {
		r.name = fields[5]
	}
	r.start, _ = strconv.ParseUint(start, 16, 64)
	r.end, _ = strconv.ParseUint(end, 16, 64)
	r.offset, _ = strconv.ParseUint(fields[2], 16, 64)
	r.inode, _ = strconv.ParseUint(fields[4], 10, 64)
	return r, nil
}

func parseText(pid int, list []region, parse func(string) (region, error)) ([]region, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return list, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan() && err == nil; {
		var r region
		r, err = parse(lines.Text())
		list = append(list, r)
	}
	return list, err
}

// cpuTime does not depend on what else runs on the machine.
func cpuTime() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// Of a process with so many mappings, list every tenth one, which is executable, and look
// up an address in the middle of them. For either, a parser reads the whole text.
func Benchmark(b *testing.B) {
	for _, mappings := range []int{100, 3000, 60000} {
		pid, _ := start(b, "map "+strconv.Itoa(mappings), os.Args[0])
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
		regions, err := parseText(pid, nil, byHand)
		if err != nil {
			b.Fatal(err)
		}
		addr := regions[len(regions)/2].start
		run("Parse/Sscanf", func() (err error) {
			regions, err = parseText(pid, regions[:0], bySscanf)
			return err
		})
		run("Parse/Fields", func() (err error) {
			regions, err = parseText(pid, regions[:0], byHand)
			return err
		})
		all := openAll(b, pid)
		delete(all, Any)
		for method, p := range all {
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
